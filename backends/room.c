#include "backends/backends_int.h"
#include "ir/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- walking ---- */
bool section_rotates(const struct node *node, int nnodes, int place) {
    for (int i = 0; i < nnodes; i++) {
        if (node[i].kind == NODE_ROTATE && node[i].rotate == place) return true;
        if (node[i].kind == NODE_LOOP &&
            section_rotates(node[i].loop->body, node[i].loop->nbody, place))
            return true;
    }
    return false;
}

bool memory_in_unit(const struct machine *m, int memory, int unit) {
    int u = m->memory[memory].unit;
    for (; u > 0; u = m->unit[u].parent)
        if (u == unit) return true;
    return u == unit;
}

/* ---- what is used ---- */
static void mark_instrs(const struct node *node, int n, bool *used) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_ISSUE) used[node[i].issue->instr] = true;
        if (node[i].kind == NODE_LOOP) mark_instrs(node[i].loop->body, node[i].loop->nbody, used);
    }
}

void schedule_instrs(const struct schedule *s, bool *used) {
    memset(used, 0, (size_t)s->machine->ninstrs * sizeof *used);
    mark_instrs(s->prepare.node, s->prepare.nnodes, used);
    mark_instrs(s->run.node, s->run.nnodes, used);
}

static int parallel_instances(const struct machine *m, const struct node *node, int n) {
    int most = 0;
    for (int i = 0; i < n; i++) {
        if (node[i].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[i].loop;
        int inside = parallel_instances(m, l->body, l->nbody);
        if (l->kind == LOOP_PARALLEL && inside < 1) inside = 1;
        if (l->kind == LOOP_PARALLEL && l->unit >= 0 && m->unit[l->unit].count > inside)
            inside = m->unit[l->unit].count < 4096 ? (int)m->unit[l->unit].count : 4096;
        if (inside > most) most = inside;
    }
    return most;
}

static int schedule_instances(const struct schedule *s) {
    int a = parallel_instances(s->machine, s->prepare.node, s->prepare.nnodes);
    int b = parallel_instances(s->machine, s->run.node, s->run.nnodes);
    return a > b ? a : b;
}

bool schedule_parallel(const struct schedule *s) {
    return schedule_instances(s) > 0;
}

bool fallback_hoists(const struct program *p, const struct stmt *s, int axis) {
    enum type t = p->buffer[s->dst.buffer].type;
    if (s->combine == COMBINE_SET || axis < 0 || t == TYPE_F16 || t == TYPE_BF16) return false;
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == s->dst.buffer) return false;
    return !access_varies(p, &s->dst, axis);
}

int fallback_shortens(const struct constraint *w, const int *order, int n) {
    int last = n - 1;
    while (last >= 0 && !w->coef[order[last]]) last--;
    return last >= 0 && (w->coef[order[last]] == 1 || w->coef[order[last]] == -1) ? last : -1;
}

uint64_t schedule_features(const struct schedule *s) {
    const struct machine *m = s->machine;
    bool *used = memory_array((size_t)m->ninstrs + 1, sizeof *used);
    uint64_t features = m->code_features;
    schedule_instrs(s, used);
    for (int i = 0; i < m->ninstrs; i++)
        if (used[i]) features |= m->instr[i].needs_features;
    free(used);
    return features;
}

bool schedule_takes(const struct schedule *s, const struct emit *emit) {
    return !(emit->needs_features & ~schedule_features(s));
}

static bool speaks_nodes(const struct schedule *s, const struct node *node, int n,
                         enum language language, const char **what) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP &&
            !speaks_nodes(s, node[i].loop->body, node[i].loop->nbody, language, what))
            return false;
        if (node[i].kind == NODE_ISSUE) {
            const struct instr *instr = &s->machine->instr[node[i].issue->instr];
            *what = instr->id;
            if (!instr_emit(instr, language)) return false;
        }
        if (node[i].kind == NODE_FALLBACK) {
            enum language l = s->machine->fallback[node[i].fallback->fallback].language;
            *what = "the fallback";
            if (language == LANGUAGE_CUDA ? l != language : l != LANGUAGE_LLVM && l != LANGUAGE_C)
                return false;
        }
    }
    return true;
}

bool schedule_speaks(const struct schedule *s, enum language language, const char **what) {
    const char *ignored;
    if (!what) what = &ignored;
    return speaks_nodes(s, s->prepare.node, s->prepare.nnodes, language, what) &&
           speaks_nodes(s, s->run.node, s->run.nnodes, language, what);
}

int schedule_arguments(const struct schedule *s, int *buffer) {
    int n = 0;
    for (int b = 0; b < s->program->nbuffers; b++) {
        enum role r = s->program->buffer[b].role;
        if (r == ROLE_IN || r == ROLE_OUT || r == ROLE_INOUT || r == ROLE_CONST) buffer[n++] = b;
    }
    return n;
}

const char **schedule_libraries(struct arena *a, const struct schedule *s, enum language language) {
    const struct machine *m = s->machine;
    bool *used = arena_array(a, (size_t)m->ninstrs + 1, sizeof *used);
    const char **library = arena_array(a, (size_t)m->ninstrs + 1, sizeof *library);
    int n = 0;
    schedule_instrs(s, used);
    for (int i = 0; i < m->ninstrs; i++) {
        const struct emit *e = used[i] ? instr_emit(&m->instr[i], language) : NULL;
        bool seen = !e || !e->library;
        for (int k = 0; k < n && !seen; k++) seen = !strcmp(library[k], e->library);
        if (!seen) library[n++] = e->library;
    }
    return library;
}

/* ---- room ---- */
static bool in_room(const struct schedule *s, int p, enum keep keep) {
    const struct place *place = &s->place[p];
    if (place->keep != keep) return false;
    return keep != KEEP_LOCAL || s->machine->memory[place->memory].pass == PASS_POINTER;
}

static int compare_starts(const void *a, const void *b, void *user) {
    const struct schedule *s = user;
    const struct place *x = &s->place[*(const int *)a], *y = &s->place[*(const int *)b];
    if (x->memory != y->memory) return x->memory < y->memory ? -1 : 1;
    return (x->address > y->address) - (x->address < y->address);
}

/* Places of one kind keep their mutual distances where they overlap (rooms used again and again);
 * gaps between such groups close. */
static bool plan_keep(struct arena *a, const struct schedule *s, enum keep keep, struct room *room,
                      int64_t *bytes, struct diags *diags) {
    int *at = arena_array(a, (size_t)s->nplaces + 1, sizeof *at), n = 0;
    for (int p = 0; p < s->nplaces; p++)
        if (in_room(s, p, keep)) at[n++] = p;
    qsort_r(at, (size_t)n, sizeof *at, compare_starts, (void *)s);
    int64_t cursor = 0, start = 0, end = INT64_MIN, base = 0, align = s->machine->home_align;
    for (int i = 0; i < n; i++) {
        const struct place *p = &s->place[at[i]];
        int64_t size, last;
        if (p->address < 0 || p->bytes < 0 ||
            __builtin_mul_overflow(p->bytes, (int64_t)p->slots, &size) ||
            __builtin_add_overflow(p->address, size, &last) || last > INT64_MAX / 4 ||
            cursor > INT64_MAX / 4) {
            diag_line(diags, s->machine->file, 0, 0,
                      "place '%s' of %lld bytes is beyond every memory, expected a smaller program",
                      p->name, (long long)p->bytes);
            return false;
        }
        if (i == 0 || p->memory != s->place[at[i - 1]].memory || p->address >= end) {
            start = p->address;
            base = (cursor + align - 1) / align * align + start % align;
            end = last;
        }
        if (last > end) end = last;
        room->offset[at[i]] = base + (p->address - start);
        if (base + (end - start) > cursor) cursor = base + (end - start);
    }
    *bytes = (cursor + 63) / 64 * 64;
    return true;
}

static bool prepare_needs(const struct schedule *s, const struct room *room) {
    for (int p = 0; p < s->nplaces; p++)
        if ((in_room(s, p, KEEP_WORKSPACE) || in_room(s, p, KEEP_LOCAL)) &&
            room->prepare_live[p].last >= 0)
            return true;
    return false;
}

bool zeroed_before(const struct schedule *s, const struct room *room, const struct section *section,
                   int place, int n) {
    bool prepare = section == &s->prepare;
    const struct live_range *live = prepare ? room->prepare_live : room->run_live;
    return live[place].first == n && schedule_pads(s, place) &&
           (s->place[place].keep == KEEP_PREPARED) == prepare;
}

bool loop_counts(const struct schedule *s, const struct loop_node *l) {
    return l->axis >= 0 && s->program->axis[l->axis].size && s->program->axis[l->axis].sequential;
}

bool room_plan(struct arena *a, const struct schedule *s, struct room *room, struct diags *diags) {
    room->offset = arena_array(a, (size_t)s->nplaces + 1, sizeof *room->offset);
    room->prepare_live = schedule_live(a, s, &s->prepare);
    room->run_live = schedule_live(a, s, &s->run);
    if (!plan_keep(a, s, KEEP_PREPARED, room, &room->prepared, diags) ||
        !plan_keep(a, s, KEEP_WORKSPACE, room, &room->homes, diags) ||
        !plan_keep(a, s, KEEP_LOCAL, room, &room->local, diags))
        return false;
    for (int p = 0; p < s->nplaces; p++)
        if (in_room(s, p, KEEP_PREPARED)) room->offset[p] += ROOM_HEAD;
    room->prepared += ROOM_HEAD;
    room->instances = schedule_instances(s) > 1 ? schedule_instances(s) : 1;
    int64_t locals;
    if (__builtin_mul_overflow(room->local, (int64_t)room->instances, &locals) ||
        __builtin_add_overflow(room->homes, locals, &room->workspace)) {
        diag_line(diags, s->machine->file, 0, 0,
                  "the workspace of %d threads is too large, expected fewer", room->instances);
        return false;
    }
    room->scratch = prepare_needs(s, room) ? room->prepared : -1;
    room->prepared_block = room->prepared + (room->scratch >= 0 ? room->workspace : 0);
    return true;
}
