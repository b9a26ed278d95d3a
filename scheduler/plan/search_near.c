/* The neighbours of a point: one extent a little or much larger or smaller, two of them traded, two
 * loops that change places, the loops down to the needle in the other order. */
#include "scheduler/plan/search_int.h"

struct near {
    struct search *s;
    double limit;
    struct point *out;
    int n, most;
};

/* In the order of their prices; those that cost the same are likely the same. */
static void add(struct near *near, struct point *q) {
    int at = near->n;
    q->plan = NULL;
    q->simulated = 0;
    q->refined = true;
    q->cost = point_cost(near->s, q, near->limit);
    if (!(q->cost < near->limit)) return;
    while (at > 0 && near->out[at - 1].cost > q->cost) at--;
    if (at > 0 && near->out[at - 1].cost >= q->cost * (1 - 1e-9)) return;
    if (at == near->most) return;
    if (near->n < near->most) near->n++;
    for (int i = near->n - 1; i > at; i--) near->out[i] = near->out[i - 1];
    near->out[at] = *q;
}

static void add_extents(struct near *near, const struct point *from, int i) {
    const struct axis_space *v = &near->s->ax[from->shape.k[i]];
    int64_t now = v->value[from->at[i]];
    int to[] = {from->at[i] - 1, from->at[i] + 1, axis_nearest(v, now / 2),
                axis_nearest(v, 2 * now), v->n - 1};
    for (size_t k = 0; k < sizeof to / sizeof *to; k++) {
        struct point q = *from;
        if (to[k] < 0 || to[k] >= v->n || to[k] == from->at[i]) continue;
        q.at[i] = to[k];
        add(near, &q);
    }
}

static void add_trade(struct near *near, const struct point *from, int i, int k) {
    const struct axis_space *v = &near->s->ax[from->shape.k[i]],
                            *u = &near->s->ax[from->shape.k[k]];
    struct point q = *from;
    q.at[i] = axis_nearest(v, 2 * v->value[from->at[i]]);
    q.at[k] = axis_nearest(u, u->value[from->at[k]] / 2);
    if (q.at[i] != from->at[i] && q.at[k] != from->at[k]) add(near, &q);
}

int point_neighbours(struct search *s, const struct point *from, double limit, struct point *out,
                     int most) {
    struct near near = {.s = s, .limit = limit, .out = out, .most = most};
    struct point q;
    for (int i = 0; i < from->shape.n; i++) {
        add_extents(&near, from, i);
        for (int k = 0; k < from->shape.n; k++) {
            if (k == i) continue;
            add_trade(&near, from, i, k);
            q = *from;
            if (point_move_loop(&q, i, k)) add(&near, &q);
        }
    }
    for (int other = REVERSED_RESULT; other <= REVERSED_SUM; other *= 2) {
        q = *from;
        q.shape.reversed ^= other;
        add(&near, &q);
    }
    return near.n;
}
