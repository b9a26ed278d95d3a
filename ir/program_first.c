/* The first steps of a recurrence, for a check that need not walk through all of them. */
#include "ir/program.h"

#include <string.h>

/* Dimension 0 is the axis and nothing else, the other dimensions do not vary with it. */
static bool is_row(const struct program *p, const struct access *a, int axis) {
    int ndims = p->buffer[a->buffer].ndims;
    for (int x = 0; ndims && x <= p->naxes; x++)
        if (access_coef(p, a, 0, x) != (x == axis)) return false;
    for (int d = 1; d < ndims; d++)
        if (access_coef(p, a, d, axis)) return false;
    return ndims > 0;
}

static const struct recur *only_recurrence(const struct program *p) {
    const struct recur *found = NULL;
    for (int i = 0; i < p->nitems; i++) {
        if (p->item[i].kind == ITEM_CALL || (p->item[i].kind == ITEM_RECUR && found)) return NULL;
        if (p->item[i].kind == ITEM_RECUR) found = p->item[i].recur;
    }
    for (int i = 0; found && i < found->nitems; i++)
        if (found->item[i].kind != ITEM_STMT) return NULL;
    return found && !found->reverse ? found : NULL;
}

static bool is_inside(const struct recur *r, int stmt) {
    for (int i = 0; i < r->nitems; i++)
        if (r->item[i].stmt == stmt) return true;
    return false;
}

/* Along another axis of the same parameter, do all statements make rows, each of its own? */
static bool walks_rows(const struct program *p, int axis) {
    for (int s = 0; s < p->nstmts; s++)
        if ((p->stmt[s].axes >> axis & 1) &&
            (p->stmt[s].nwhere || !is_row(p, &p->stmt[s].dst, axis)))
            return false;
    return true;
}

/* Elements that the first steps alone decide; 0: not only they write the buffer. */
static int64_t elements_of(const struct program *p, const struct recur *r, int buffer,
                           int64_t steps) {
    const struct buffer *b = &p->buffer[buffer];
    int writers = 0;
    for (int s = 0; s < p->nstmts; s++) {
        if (p->stmt[s].dst.buffer != buffer) continue;
        if (!is_inside(r, s) || !is_row(p, &p->stmt[s].dst, r->axis)) return 0;
        writers++;
    }
    return b->role == ROLE_OUT && writers && b->extent[0] >= steps
               ? b->elements / b->extent[0] * steps
               : 0;
}

struct program *program_first_steps(const struct program *p, int64_t steps, int64_t *elements) {
    const struct recur *r = only_recurrence(p);
    int64_t all = 0;
    if (!r || p->axis[r->axis].first || steps > p->axis[r->axis].extent) return NULL;
    for (int b = 0; b < p->nbuffers; b++) all += elements[b] = elements_of(p, r, b, steps);
    if (!all) return NULL;
    struct program *q = program_copy(p);
    for (int b = 0; b < q->nbuffers; b++) /* its other rows nobody writes */
        if (elements[b]) q->buffer[b].extent[0] = steps, q->buffer[b].elements = elements[b];
    for (int a = 0; a < q->naxes; a++) {
        bool same = q->axis[a].param >= 0 && q->axis[a].param == q->axis[r->axis].param &&
                    q->axis[a].extent == p->axis[r->axis].extent;
        if (a == r->axis || (same && walks_rows(p, a))) q->axis[a].extent = steps;
    }
    return q;
}
