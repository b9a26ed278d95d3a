#if ISAMAP_WITH_LLVM
/* Lines that the next turn of a loop reads first: of rows that lie apart a processor foresees few,
 * and where they are far away the instructions wait for them. So the turn before asks for them,
 * where its sums begin, each line once if it can be. */
#include "backends/cpu/asked.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_TURNS = 32, /* of loops around which asking stands, each time with all of their lines */
    MOST_LINES = 32, /* asked for at a time: of more, those that are waited for come too late */
    SHARE = 8,       /* of the cycles of the turn asking takes one in so many at most */
    AGAIN = 4,       /* a line is asked for so often at most */
    TURNS = 4        /* so many times as many turns as it asks ahead has a loop */
};

/* With another turn of the loop, by so many. */
static bool moved(struct asked *x, const struct loop_node *l, int64_t turns, enum met met) {
    x->var[l->var] += turns * l->step;
    bool ok = asked_meet(x, met);
    x->var[l->var] -= turns * l->step;
    return ok;
}

/* ---- where asking stands ---- */

static bool sums(const struct function *f, const struct loop_node *l) {
    return l->axis >= 0 && is_summed(f->cpu->schedule->program, l, l->axis, true);
}

/* Written out. */
static bool has_sum(const struct function *f, const struct node *node, int n) {
    for (int i = 0; i < n; i++)
        if (node[i].kind == NODE_LOOP && node[i].loop->kind == LOOP_UNROLLED &&
            (sums(f, node[i].loop) || has_sum(f, node[i].loop->body, node[i].loop->nbody)))
            return true;
    return false;
}

static bool is_leaf(const struct loop_node *l) {
    for (int i = 0; i < l->nbody; i++)
        if (l->body[i].kind == NODE_LOOP &&
            (l->body[i].loop->kind != LOOP_UNROLLED || !is_leaf(l->body[i].loop)))
            return false;
    return true;
}

/* Asks there: for sums that are written out; before a sum of one loop, which is x->sum; in the loop
 * around sums of few turns. */
static bool stands_in(struct asked *x, const struct loop_node *l) {
    const struct function *f = x->f;
    const struct loop_node **sum = &x->sum;
    int64_t lo;
    x->own = !sums(f, l) && has_sum(f, l->body, l->nbody);
    if (x->own) return true;
    for (int i = 0; i < l->nbody; i++) {
        const struct loop_node *in = l->body[i].kind == NODE_LOOP ? l->body[i].loop : NULL;
        if (!in || in->kind == LOOP_UNROLLED) continue;
        if (in->kind != LOOP_SEQUENTIAL || !sums(f, in) || *sum) return false;
        *sum = in;
    }
    if (!*sum) return false;
    if (!sums(f, l)) return is_leaf(*sum);
    double turns = 1;
    for (const struct loop_node *in = *sum, *inner; in; in = inner) { /* steps outside of these */
        turns *= (double)asked_trips(x, in, &lo);
        inner = NULL;
        for (int i = 0; i < in->nbody; i++)
            if (in->body[i].kind == NODE_LOOP && in->body[i].loop->kind != LOOP_UNROLLED)
                inner = in->body[i].loop;
    }
    *sum = NULL;
    return turns <= MOST_TURNS;
}

/* ---- which lines ---- */

/* Does none of them read a line near it in this turn, or, if `before`, in that one? */
static bool alone(const struct asked *x, const struct access_at *a, bool before) {
    for (int k = 0; k < x->n; k++) {
        int64_t by = a->next - (before ? x->at[k].before : x->at[k].now);
        if (x->at[k].place == a->place && llabs(by) < x->line) return false;
    }
    return true;
}

/* Lines that nothing in this turn reads, of what is far away. */
static int choose(struct asked *x) {
    const struct schedule *s = x->f->cpu->schedule;
    for (int i = 0; i < x->n; i++) {
        struct access_at *a = &x->at[i];
        a->asked = a->in_sum == (x->sum != NULL) && (double)s->place[a->place].bytes > x->near &&
                   alone(x, a, false);
    }
    return asked_once(x);
}

/* Bytes by which the loads that are asked for move with the loop, at most; -1: not known. */
static int64_t moves_by(struct asked *x, const struct loop_node *l) {
    int64_t by = 0;
    if (!moved(x, l, 1, MET_BEFORE)) return -1;
    for (int k = 0; k < x->n; k++)
        if (x->at[k].asked && llabs(x->at[k].before - x->at[k].now) > by)
            by = llabs(x->at[k].before - x->at[k].now);
    return by;
}

struct turns { /* of some loops around: that read the same lines, the same bytes, other lines */
    double again, stay, lines;
};

/* Of the loops around from `from` on. */
static struct turns turns_of(struct asked *x, int from) {
    struct turns sum = {1, 1, 1};
    for (int i = from; i < x->f->naround; i++) {
        int64_t lo, by = moves_by(x, x->f->around[i]);
        double trips = (double)asked_trips(x, x->f->around[i], &lo), same = 1;
        if (by < x->line) same = by > 0 ? fmin(trips, (double)x->line / (double)by) : trips;
        sum.again *= same;
        sum.lines *= trips / same;
        if (by <= 0) sum.stay *= trips;
    }
    return sum;
}

/* Lines are left out that a loop outside of the i-th has brought in its turn before, if they are
 * still near. How many are left. */
static int leave_near(struct asked *x, int i, int64_t turns, int count, int64_t steps) {
    const struct loop_node *l = x->f->around[i];
    for (int k = i - 1; k >= 0 && count; k--) {
        const struct loop_node *out = x->f->around[k];
        int64_t lo;
        double brought = turns_of(x, k + 1).lines * count * (double)(steps * x->line);
        if (asked_trips(x, out, &lo) < 2 || brought > x->near) continue;
        x->var[l->var] += turns * l->step;
        bool ok = moved(x, out, -1, MET_BEFORE);
        x->var[l->var] -= turns * l->step;
        count = 0;
        for (int j = 0; j < x->n; j++) {
            x->at[j].asked = x->at[j].asked && ok && alone(x, &x->at[j], true);
            count += x->at[j].asked;
        }
    }
    return count;
}

/* Turns of the i-th loop around, and of those outside of it that go on where it ends. */
static double goes_on(struct asked *x, int i) {
    double all = 1;
    for (;; i--) {
        const struct loop_node *l = x->f->around[i];
        int64_t lo, trips = asked_trips(x, l, &lo);
        all *= (double)trips;
        if (i == 0 || !moved(x, l, trips, MET_NEXT) ||
            !moved(x, x->f->around[i - 1], 1, MET_BEFORE))
            return all;
        for (int k = 0; k < x->n; k++)
            if (x->at[k].next != x->at[k].now && x->at[k].next != x->at[k].before) return all;
    }
}

/* ---- asking ---- */

/* The number of this turn among those of loops around, from `from` on, that stay. */
static struct lv turn_number(struct asked *x, int from) {
    struct function *f = x->f;
    struct lv at = lv_const(f, 0);
    for (int i = from; i < f->naround; i++) {
        const struct loop_node *l = f->around[i];
        int64_t lo, trips = asked_trips(x, l, &lo);
        if (moves_by(x, l)) continue;
        struct lv turn = lv_op(f, SX_DIV, lv_op(f, SX_SUB, f->var[l->var], lv_sx(f, l->lo)),
                               lv_const(f, l->step));
        at = lv_op(f, SX_ADD, lv_op(f, SX_MUL, at, lv_const(f, trips)), turn);
    }
    return at;
}

static void make(struct asked *x, int i, int64_t turns, int64_t steps, int64_t each) {
    struct function *f = x->f;
    const struct loop_node *l = f->around[i], *s = x->sum;
    struct lv was = f->var[l->var],
              first = s ? lv_op(f, SX_MUL, turn_number(x, i + 1), lv_const(f, each)) : was;
    f->var[l->var] = lv_op(f, SX_ADD, was, lv_const(f, turns * l->step));
    for (int64_t k = 0; k < each && !f->cpu->failed; k++) {
        struct lv step = lv_op(f, SX_ADD, first, lv_const(f, k));
        if (s) {
            step = lv_op(f, SX_MUL, lv_op(f, SX_MIN, step, lv_const(f, steps - 1)),
                         lv_const(f, s->step));
            f->var[s->var] = lv_op(f, SX_ADD, lv_sx(f, s->lo), step);
        }
        asked_meet(x, MET_MAKE);
    }
    if (s) f->var[s->var].v = NULL;
    f->var[l->var] = was;
}

/* For the turns of the i-th loop around; cycles: of the innermost one's turn. */
static bool asks_for(struct asked *x, int i, double cycles, int64_t steps) {
    const struct machine *m = x->f->cpu->machine;
    const struct loop_node *l = x->f->around[i];
    double turn = 0;
    if (!turn_cycles(x->f, l->body, l->nbody, 1, MANY_TURNS, &turn)) return false;
    turn /= 2; /* what reads works beside what computes */
    int64_t each = 1, turns = (int64_t)ceil(m->memory[m->home].latency / fmax(1, turn));
    if (goes_on(x, i) <= (double)(TURNS * turns) || !moved(x, l, turns, MET_NEXT)) return false;
    int count = choose(x);
    if (count) count = leave_near(x, i, turns, count, steps);
    if (!count) return false;
    struct turns inside = turns_of(x, i + 1);
    if (x->sum) {
        each = (int64_t)ceil((double)steps / inside.stay);
        inside.again /= inside.stay;
    }
    if (inside.again > AGAIN || count * each > MOST_LINES ||
        (double)(count * each * SHARE) > cycles)
        return false;
    make(x, i, turns, steps, each);
    return true;
}

void ask_next(struct function *f) {
    const struct loop_node *l = f->around[f->naround - 1];
    struct asked x;
    int64_t lo, steps = 1;
    double cycles = 0;
    asked_open(&x, f, l->body, l->nbody);
    bool ok = stands_in(&x, l) && asked_meet(&x, MET_NOW) && x.line > 0;
    for (int i = 0; ok && i < l->nbody; i++) {
        const struct node *n = &l->body[i];
        if (!x.own || n->kind != NODE_LOOP || n->loop->kind == LOOP_UNROLLED)
            ok = turn_cycles(f, n, 1, 1, MANY_TURNS, &cycles);
    }
    if (ok && x.sum) steps = asked_trips(&x, x.sum, &lo);
    for (int i = f->naround - 1; ok && steps && i >= 0 && !asks_for(&x, i, cycles, steps); i--) {
    }
    asked_close(&x);
}
#endif
