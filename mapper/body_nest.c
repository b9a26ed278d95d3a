/* Steps in groups: a recurrence of the groups, in which one of the steps of a group stands. */
#include "mapper/body.h"
#include "ir/steps.h"
#include "mapper/rewrite_int.h"

void body_count_groups(struct body *b, int64_t length) {
    struct program *p = b->p;
    struct axis *steps = &p->axis[b->r->axis];
    steps->name = program_unique(p, steps->name, arena_printf(&p->arena, "%d", (int)length));
    steps->extent /= length;
    steps->group = steps->size ? length : 0;
    steps->param = -1;
}

/* Step g·length + t, t being that of the group. */
static void number_steps(const struct body *b, int inner, int64_t length) {
    struct program *p = b->p;
    int group = b->r->axis;
    for (int i = 0; i < b->r->nitems; i++) {
        struct stmt *s = body_stmt(b, i);
        for (int r = -1; r < s->nreads; r++) {
            struct access *a = r < 0 ? &s->dst : &s->read[r];
            *a = rw_copy(p, a);
            for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
                int64_t *row = rw_row(p, a, d);
                row[inner] = row[group];
                row[group] *= length;
            }
        }
    }
}

/* The groups hand on a state of their own, from which a group's steps begin. */
static bool hand_on(struct program *p, struct recur_state *groups, struct recur_state *steps) {
    const struct buffer like = p->buffer[steps->current];
    int both[2];
    for (int k = 0; k < 2; k++) {
        const char *base = k ? "next" : arena_printf(&p->arena, "%s.group", like.name);
        both[k] = rw_temporary(p, base, like.type, like.ndims, like.extent);
        if (both[k] < 0) return false;
        p->buffer[both[k]].role = ROLE_STATE;
    }
    p->buffer[both[1]].name = arena_printf(&p->arena, "%s'", p->buffer[both[0]].name);
    groups->current = steps->from = both[0];
    groups->next = steps->to = both[1];
    return true;
}

bool body_nest(struct body *b, int64_t length, struct body *inner) {
    struct program *p = b->p;
    struct recur *steps = arena_alloc(&p->arena, sizeof *steps);
    uint64_t used = ~UINT64_C(0);
    if ((p->axis[b->r->axis].size || p->axis[b->r->axis].extent % length) && !body_rest(b, length))
        return false;
    *steps = *b->r;
    steps->axis = program_copy_axis(p, "step", length, p->naxes, &used);
    if (steps->axis < 0) return false;
    p->axis[steps->axis].sequential = true;
    steps->state = arena_copy(&p->arena, b->r->state, sizeof *steps->state * (size_t)b->r->nstates);
    for (int k = 0; k < steps->nstates; k++)
        if (!hand_on(p, &b->r->state[k], &steps->state[k])) return false;
    number_steps(b, steps->axis, length);
    body_count_groups(b, length);
    b->r->item = arena_alloc(&p->arena, sizeof *b->r->item);
    *b->r->item = (struct item){.kind = ITEM_RECUR, .recur = steps};
    b->r->nitems = 1;
    *inner = (struct body){.p = p, .r = steps, .around = b};
    body_renew(inner);
    return true;
}
