/* What the steps of a recurrence make that only one side has, or that is asked for at another step
 * than the one that is compared: elements that one step alone writes, and states. */
#include "ir/equal_int.h"

#include <string.h>

/* The index moves with the steps, one by one, and with nothing else but the recurrences around. */
static bool follows_steps(const struct side *s, int enter, const int64_t *coef) {
    uint64_t others = 0;
    for (int a = 0; a < s->p->naxes; a++) others |= (uint64_t)(coef[a] != 0) << a;
    for (int e = enter; e >= 0; e = event_around(s, e))
        others &= ~(UINT64_C(1) << s->event[e].recur->axis);
    int64_t k = coef[s->event[enter].recur->axis];
    return !others && (k == 1 || k == -1);
}

/* All that the recurrence writes in the buffer, it writes where this index, a row over the axes,
 * follows the steps. */
static const int64_t *step_index(const struct side *s, int enter, int buffer, int *dim) {
    const struct event *e = &s->event[enter];
    size_t width = (size_t)s->p->naxes + 1;
    const int64_t *index = NULL;
    for (int i = enter + 1; i < e->match; i++) {
        if (s->event[i].to != buffer) continue;
        if (s->event[i].kind != EVENT_STMT) return NULL;
        const struct access *dst = &s->p->stmt[s->event[i].stmt].dst;
        int d = 0, ndims = s->p->buffer[buffer].ndims;
        while (d < ndims && !follows_steps(s, enter, dst->coef + (size_t)d * width)) d++;
        const int64_t *coef = dst->coef + (size_t)d * width;
        if (d == ndims || (index && (d != *dim || memcmp(coef, index, width * sizeof *coef) != 0)))
            return NULL;
        *dim = d;
        index = coef;
    }
    return index;
}

/* The step that writes these elements, as a row; NULL: it is not one of them alone. */
static int64_t *step_of(struct equal *x, const struct side *s, int enter, int buffer,
                        int64_t *const *row, const struct spot *c) {
    int d, own = s->event[enter].recur->axis;
    const int64_t *index = step_index(s, enter, buffer, &d);
    if (!index) return NULL;
    int64_t *step = row_longer(x, row[d], c->n, 0);
    step[0] -= index[s->p->naxes];
    for (int a = 0; a < s->p->naxes; a++) {
        if (a == own || !index[a]) continue;
        if (!c->axis[a]) return NULL;
        for (int k = 0; k <= c->n; k++) step[k] -= index[a] * c->axis[a][k];
    }
    for (int k = 0; k <= c->n && index[own] < 0; k++) step[k] = -step[k];
    return step;
}

/* Behind a recurrence: as the only step leaves it that writes it, or as it was before, as where
 * there are no steps. */
struct form *form_behind(struct equal *x, struct side *s, int leave, int buffer,
                         int64_t *const *row, const struct spot *c) {
    const struct event *e = &s->event[leave];
    int a = e->recur->axis, n = s->p->naxes;
    if (s->p->axis[a].group || s->p->axis[a].first) {
        equal_stop(x, "steps in groups leave it, where the programs differ");
        return NULL;
    }
    if (s->p->axis[a].extent == 0) return form_element(x, s, e->match, buffer, row, c);
    int64_t *step = step_of(x, s, e->match, buffer, row, c), *up = equal_row(x, c->n);
    if (!step) {
        struct form *all = NULL;
        row_add_extent(up, s->p->axis[a].extent, s->p->axis[a].size);
        up[0]++;
        if (!(all = form_unrolled(x, s, e->match, buffer, up, row, c)))
            equal_stop(x, "steps of a recurrence hand it on, where the programs differ");
        return all;
    }
    struct spot in = *c;
    in.compared &= ~(UINT64_C(1) << a);
    in.axis = arena_copy(&x->arena, c->axis, ((size_t)n + 1) * sizeof *in.axis);
    in.axis[a] = step;
    row_end(up, step, c->n, &s->p->axis[a]);
    in.dom = equal_keep(
        x, set_with(x, set_with(x, isl_set_copy(c->dom), step, c->n, false), up, c->n, false));
    struct spot rest = spot_without(x, c, in.dom);
    struct form *f = form_new(x, s->p->buffer[buffer].type, c->n);
    if (!x->failed && !equal_is_empty(x, in.dom))
        form_join(x, f, form_element(x, s, leave, buffer, row, &in), 1);
    if (!x->failed && !equal_is_empty(x, rest.dom))
        form_join(x, f, form_element(x, s, e->match, buffer, row, &rest), 1);
    return f;
}

/* In a step that is not the one of the other side: what this step alone writes, and has not yet. */
struct form *form_untouched(struct equal *x, struct side *s, int enter, int buffer,
                            int64_t *const *row, const struct spot *c) {
    int64_t *now = c->axis[s->event[enter].recur->axis];
    struct form *state = form_open_state(x, s, enter, buffer, row, c);
    if (!state) state = form_unrolled(x, s, enter, buffer, now, row, c);
    if (state || x->failed) return state;
    int64_t *step = step_of(x, s, enter, buffer, row, c);
    for (int k = 0; step && k <= c->n; k++) step[k] -= now[k];
    isl_set *own = step ? equal_keep(x, set_with(x, isl_set_copy(c->dom), step, c->n, true)) : NULL;
    if (own && isl_set_is_equal(own, c->dom) == isl_bool_true)
        return form_element(x, s, enter, buffer, row, c);
    equal_stop(x, "steps of a recurrence hand it on, where the programs differ");
    return NULL;
}

/* The next value of a state, when the step has made it: the state behind one step more. */
struct form *form_next_state(struct equal *x, struct side *s, int before, int buffer,
                             int64_t *const *row, const struct spot *c) {
    int enter = event_around(s, before);
    const struct recur *r = enter < 0 ? NULL : s->event[enter].recur;
    if (!r || c->compared >> r->axis & 1 || !c->axis[r->axis]) return NULL;
    for (int i = before; i < s->event[enter].match; i++)
        if (s->event[i].kind == EVENT_STMT && s->event[i].to == buffer) return NULL;
    int64_t *end = row_longer(x, c->axis[r->axis], c->n, 0);
    end[0]++;
    for (int k = 0; k < r->nstates; k++)
        if (r->state[k].next == buffer && r->state[k].current != buffer)
            return form_unrolled(x, s, enter, r->state[k].current, end, row, c);
    return NULL;
}
