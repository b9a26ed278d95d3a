/* Places: where copies stand in their memories; what is said where there is no place or no way. */
#include "ir/number.h"
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/work.h"
#include <string.h>

int place_append(struct work *w, const struct place *made) {
    struct schedule *s = w->s;
    if (s->nplaces >= w->cap_places) {
        w->cap_places = 2 * s->nplaces + 16;
        struct place *pl = arena_array(&s->arena, (size_t)w->cap_places, sizeof *pl);
        if (s->nplaces) memcpy(pl, s->place, sizeof *pl * (size_t)s->nplaces);
        s->place = pl;
    }
    s->place[s->nplaces] = *made;
    return s->nplaces++;
}

int home_place(struct work *w, int buffer) {
    struct schedule *s = w->s;
    int64_t align = w->m->home_align, bytes;
    const struct buffer *buf = &w->p->buffer[buffer];
    struct home *h = &w->home[buffer];
    if (h->place >= 0 || buf->role == ROLE_STATE || h->is_tile || join_inner(w, buffer))
        return h->place;
    if (h->lies_in) return h->place = home_place(w, h->lies_in - 1);
    struct place pl = {.name = arena_strdup(&s->arena, buf->name),
                       .buffer = buffer,
                       .memory = w->m->home,
                       .keep = buf->role != ROLE_TEMP ? KEEP_ARGUMENT
                               : h->prepared          ? KEEP_PREPARED
                                                      : KEEP_WORKSPACE,
                       .address = w->homes_end,
                       .slots = 1};
    pl.extent = arena_copy(&s->arena, h->packed ? h->extent : buf->extent,
                           sizeof *pl.extent * (size_t)buf->ndims);
    if (h->packed) pl.layout = home_layout(w, &s->arena, h, buf->ndims, &pl.layout_text);
    if (h->packed && !pl.layout) return -1;
    if (__builtin_mul_overflow(h->packed ? h->elements : buf->elements,
                               (int64_t)type_size(buf->type), &bytes) ||
        bytes > INT64_MAX / 4 || w->homes_end > INT64_MAX / 4) {
        homes_beyond(w, buf->name);
        return -1;
    }
    pl.bytes = bytes;
    w->homes_end = (w->homes_end + bytes + align - 1) / align * align;
    return h->place = place_append(w, &pl);
}

/* From now on the program says so too. */
void homes_join(struct work *w) {
    for (int b = 0; b < w->p->nbuffers; b++) {
        int in = w->home[b].lies_in - 1;
        if (in < 0) continue;
        for (int s = 0; s < w->p->nstmts; s++) {
            struct stmt *st = &w->p->stmt[s];
            if (st->dst.buffer == b) st->dst.buffer = in;
            stmt_reread(st, b, in);
        }
        for (int p = 0; p < w->s->nplaces; p++)
            if (w->s->place[p].buffer == b) w->s->place[p].buffer = in;
        w->changes++;
    }
}

void homes_forget(struct work *w) {
    for (int b = 0; b < w->p->nbuffers; b++) w->home[b].place = -1;
    w->homes_end = 0;
}

bool homes_place(struct work *w) {
    int errors = w->diags->errors;
    homes_forget(w);
    for (int b = 0; b < w->p->nbuffers && w->diags->errors == errors; b++) home_place(w, b);
    return w->diags->errors == errors;
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
