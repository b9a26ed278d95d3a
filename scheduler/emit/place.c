/* Places: where copies stand in their memories; what is said where there is no place or no way. */
#include "ir/number.h"
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/work.h"
#include <string.h>

int place_append(struct work *w, const struct place *made) {
    struct schedule *s = w->s;
    if (s->nplaces >= w->cap_places) {
        w->cap_places = 2 * s->nplaces + 16;
        struct place *pl = arena_array(&s->arena, (size_t)w->cap_places, sizeof *pl);
        memcpy(pl, s->place, sizeof *pl * (size_t)s->nplaces);
        s->place = pl;
    }
    s->place[s->nplaces] = *made;
    return s->nplaces++;
}

int add_place(struct work *w, int buffer, int memory, int64_t align_to, int64_t *at, int64_t bytes,
              int slots) {
    struct schedule *s = w->s;
    int64_t align = least_multiple(w->m->memory[memory].align, align_to);
    *at = (*at + align - 1) / align * align;
    struct place made = {.name = arena_printf(&s->arena, "%s.%s.%d", w->p->buffer[buffer].name,
                                              w->m->memory[memory].id, s->nplaces),
                         .buffer = buffer,
                         .memory = memory,
                         .keep = KEEP_LOCAL,
                         .address = *at,
                         .bytes = bytes,
                         .slots = slots};
    *at += bytes * slots;
    return place_append(w, &made);
}

bool emit_refuse(struct work *w, const char *why) {
    if (!task_refuse(w, w->emitted, why)) diag_line(w->diags, work_file(w), 0, 0, "%s", why);
    return false;
}

bool emit_fail(struct work *w, const char *message) {
    if (!w->diags->errors && !w->refused) diag_line(w->diags, work_file(w), 0, 0, "%s", message);
    return false;
}
