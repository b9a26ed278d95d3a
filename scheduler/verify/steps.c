/* Recurrences: which version of an element a statement must see. Time is the number of the step in
 * each recurrence around; a walk that is cut short knows only the steps that it visits, in their
 * order. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

static const int64_t MOST_STEPS = INT64_C(1) << 26, MOST_COUNTS = INT64_C(1) << 54;

/* ---- tables ---- */
static void add_writer(struct verify *v, int buffer, int position) {
    struct writer_list *l = &v->written[buffer];
    GROW(&v->arena, l->at, l->n, l->cap);
    l->at[l->n++] = position;
}

static int recurrence_new(struct verify *v, const struct recur *r, int parent, int first) {
    GROW(&v->arena, v->recurrence, v->nrecurrences, v->recurrence_cap);
    v->recurrence[v->nrecurrences] =
        (struct recurrence){.axis = r->axis,
                            .parent = parent,
                            .level = parent < 0 ? 0 : v->recurrence[parent].level + 1,
                            .first = first,
                            .reverse = r->reverse,
                            .steps = v->p->axis[r->axis].extent};
    return v->nrecurrences++;
}

static void walk_items(struct verify *v, const struct item *item, int n, int around, bool states) {
    const struct program *p = v->p;
    uint64_t axes = 0;
    for (int k = around; k >= 0; k = v->recurrence[k].parent)
        axes |= UINT64_C(1) << v->recurrence[k].axis;
    for (int k = 0; k < n; k++) {
        if (item[k].kind == ITEM_STMT) {
            int s = item[k].stmt;
            v->domain[s] = p->stmt[s].axes | axes;
            v->loose_stmt[s] = states;
            v->recurrence_of[s] = around;
            if (states) v->loose[p->stmt[s].dst.buffer] = true;
            v->position[s] = v->norder;
            add_writer(v, p->stmt[s].dst.buffer, v->norder);
            v->order[v->norder++] = s;
        } else if (item[k].kind == ITEM_CALL) {
            for (int w = 0; w < item[k].call->nwrites; w++) v->loose[item[k].call->write[w]] = true;
        } else {
            const struct recur *r = item[k].recur;
            for (int s = 0; s < r->nstates; s++) {
                v->loose[r->state[s].current] = v->loose[r->state[s].next] = true;
                if (r->state[s].to >= 0) v->loose[r->state[s].to] = true;
            }
            int inner = recurrence_new(v, r, around, v->norder);
            walk_items(v, r->item, r->nitems, inner, states || r->nstates > 0);
            v->recurrence[inner].last = v->norder;
        }
    }
}

bool steps_tables(struct verify *v) {
    const struct program *p = v->p;
    size_t ns = (size_t)p->nstmts;
    v->recurrence_of = arena_array(&v->arena, ns + 1, sizeof *v->recurrence_of);
    v->position = arena_array(&v->arena, ns + 1, sizeof *v->position);
    v->order = arena_array(&v->arena, ns + 1, sizeof *v->order);
    v->written = arena_array(&v->arena, (size_t)p->nbuffers + 1, sizeof *v->written);
    walk_items(v, p->item, p->nitems, -1, false);
    v->recurrence_of[p->nstmts] = -1;
    v->position[p->nstmts] = v->norder;
    for (size_t s = 0; s < ns; s++) {
        int64_t n = p->buffer[p->stmt[s].dst.buffer].elements;
        for (int k = v->recurrence_of[s]; k >= 0; k = v->recurrence[k].parent)
            if (__builtin_mul_overflow(n, v->recurrence[k].steps, &n) || n >= MOST_COUNTS)
                return verify_limit(v, "statement %zu has too many results to verify", s);
    }
    for (int k = 0; k < v->nrecurrences; k++) {
        struct recurrence *r = &v->recurrence[k];
        if (r->steps > MOST_STEPS)
            return verify_limit(v, "a recurrence has too many steps to verify");
        r->seen = arena_array(&v->arena, (size_t)r->steps + 1, sizeof *r->seen);
        r->before = arena_array(&v->arena, (size_t)r->steps + 1, sizeof *r->before);
    }
    return true;
}

/* ---- time ---- */

void step_visit(struct verify *v, int stmt, const int64_t *at) {
    for (int k = v->recurrence_of[stmt]; k >= 0; k = v->recurrence[k].parent) {
        struct recurrence *r = &v->recurrence[k];
        bool *seen = &r->seen[step_at(r, at)];
        r->stale |= !*seen;
        *seen = true;
    }
}

/* The last step visited before step `at` (steps: the last of all); -1: none. */
static int64_t step_before(struct verify *v, struct recurrence *r, int64_t at) {
    if (!r->stale && r->before[0] == 0) r->stale = true;
    if (r->stale) {
        int64_t last = -1;
        for (int64_t t = 0; t <= r->steps; t++) {
            r->before[t] = last;
            if (r->seen[t]) last = t;
        }
        r->stale = false;
        verify_step(v, r->steps / 64);
    }
    return r->before[at];
}

/* ---- versions ---- */
struct search {
    struct verify *v;
    int buffer, around, position; /* what stands before `position` inside recurrence `around` */
    int64_t element;
    int64_t time[MAX_AXES]; /* by axis of a recurrence */
};

/* Position of the last writer before; -1. */
static int last_writer(const struct search *s) {
    const struct writer_list *l = &s->v->written[s->buffer];
    for (int k = l->n - 1; k >= 0; k--)
        if (l->at[k] < s->position) return l->at[k];
    return -1;
}

static bool has_writer(const struct search *s, const struct recurrence *r) {
    const struct writer_list *l = &s->v->written[s->buffer];
    for (int k = 0; k < l->n; k++)
        if (l->at[k] >= r->first && l->at[k] < r->last) return true;
    return false;
}

/* The recurrence directly inside `around` that holds the statement; -1: none. */
static int child_of(const struct verify *v, int stmt, int around) {
    int k = v->recurrence_of[stmt];
    if (k == around) return -1;
    while (v->recurrence[k].parent != around) k = v->recurrence[k].parent;
    return k;
}

static void go_inside(struct search *s, int child) {
    struct recurrence *r = &s->v->recurrence[child];
    int64_t last = step_before(s->v, r, r->steps);
    if (last < 0) {
        s->position = r->first;
        return;
    }
    s->time[r->axis] = r->reverse ? r->steps - 1 - last : last;
    s->around = child;
    s->position = r->last;
}

/* To the step before, or out of the recurrence. */
static void go_back(struct search *s) {
    struct recurrence *r = &s->v->recurrence[s->around];
    int64_t last = has_writer(s, r) ? step_before(s->v, r, step_at(r, s->time)) : -1;
    if (last >= 0) {
        s->time[r->axis] = r->reverse ? r->steps - 1 - last : last;
        s->position = r->last;
        return;
    }
    s->position = r->first;
    s->around = r->parent;
}

/* Without recurrences: the last statement before that wrote the element. */
static bool plain_version(const struct verify *v, int stmt, const int64_t *at, int buffer,
                          int64_t element, struct tag *out) {
    const struct writer_list *l = &v->written[buffer];
    for (int k = l->n - 1; k >= 0; k--) {
        if (l->at[k] >= v->position[stmt]) continue;
        int writer = v->order[l->at[k]];
        uint32_t count = count_of(v, writer, at, element);
        if (!count) continue;
        *out = tag_element(buffer, element, writer, count, v->p->buffer[buffer].type);
        return true;
    }
    return false;
}

static bool step_version(struct verify *v, int stmt, const int64_t *at, int buffer, int64_t element,
                         struct tag *out) {
    if (v->nrecurrences == 0) return plain_version(v, stmt, at, buffer, element, out);
    struct search s = {.v = v,
                       .buffer = buffer,
                       .around = v->recurrence_of[stmt],
                       .position = v->position[stmt],
                       .element = element};
    for (int k = s.around; k >= 0; k = v->recurrence[k].parent)
        s.time[v->recurrence[k].axis] = at[v->recurrence[k].axis];
    while (verify_step(v, 0)) {
        int w = last_writer(&s), first = s.around >= 0 ? v->recurrence[s.around].first : 0;
        if (w < first) {
            if (s.around < 0) return false;
            go_back(&s);
            continue;
        }
        int writer = v->order[w], child = child_of(v, writer, s.around);
        if (child >= 0) {
            go_inside(&s, child);
            continue;
        }
        uint32_t count = count_of(v, writer, s.time, element);
        s.position = w;
        if (!count) continue;
        *out = tag_element(buffer, element, writer, count, v->p->buffer[buffer].type);
        out->step = step_number(v, writer, s.time);
        return true;
    }
    return false;
}

bool step_writes_before(const struct verify *v, int stmt, int buffer) {
    int end = v->position[stmt];
    for (int k = v->recurrence_of[stmt]; k >= 0; k = v->recurrence[k].parent)
        end = v->recurrence[k].last;
    const struct writer_list *l = &v->written[buffer];
    return l->n > 0 && l->at[0] < end;
}

bool version_before(struct verify *v, int stmt, const int64_t *at, int buffer, int64_t element,
                    struct tag *out) {
    const struct buffer *b = &v->p->buffer[buffer];
    if (step_version(v, stmt, at, buffer, element, out)) return true;
    *out = tag_element(buffer, element, -1, 0, b->type);
    return b->role == ROLE_IN || b->role == ROLE_INOUT || b->role == ROLE_CONST;
}
