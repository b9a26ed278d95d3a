/* Many starts, growth and local search over points (SCHEDULING §2): extents slide and trade, loops
 * change places, outer cuts are added where a memory above repays them. Bounded in plans priced. */
#include "ir/number.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/search.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/tiling.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ORDERED = 4,
    MAX_ORDERS = 24,
    THIN = 20,
    POLISHED = 8,
    POLISHED_NEAR = 2,
    FINAL_ALIKE = 2,
    KICKED = 2,
    DEEPENED = 3
};
static const double ENOUGH = 0.9998, NEAR = 1.002, ALIKE = 1.1, LITTLE = 1.01, SOME = 1.04,
                    LOOP_COST = 0.0005, BODY_COST = 0.005;

static uint64_t plan_hash(const struct plan *p) {
    uint64_t h = 1;
    for (int i = 0; i < p->nloops; i++) h = hash_add(hash_add(h, p->loop[i].axis), p->loop[i].tile);
    return h ? h : 1;
}

void point_plan(struct search *s, const struct point *q, struct plan *p) {
    if (q->plan) {
        *p = *q->plan;
        plan_tabulate(s->w, search_task(s), p, &s->tiling);
        return;
    }
    space_build(s, q, p);
    residency_best(s, p, q->refined, INFINITY);
}

/* Code grows with loops, and doubles with each axis whose tail needs a body of its own. */
static double bulk(const struct search *s, const struct plan *p) {
    if (!price_counts(s->w, PRICE_CODE)) return 1;
    const struct nest *n = s->nest;
    int bodies = 1;
    for (int i = 0; p->is_static && i < p->nloops; i++) {
        bool splits = p->loop[i].tile > 1 && !loop_unrolled(s->w, n, p, i);
        for (int k = i + 1; k < p->nloops && splits; k++)
            splits = p->loop[k].axis != p->loop[i].axis || loop_unrolled(s->w, n, p, k);
        if (splits && s->w->p->axis[p->loop[i].axis].extent % p->loop[i].tile) bodies *= 2;
    }
    return 1 + LOOP_COST * p->nloops + BODY_COST * (bodies - 1);
}

static bool begin_alike(const struct search *s, const struct point *a, const struct point *b) {
    return a->shape.n && b->shape.n && a->shape.k[0] == b->shape.k[0] &&
           s->ax[a->shape.k[0]].value[a->at[0]] == s->ax[b->shape.k[0]].value[b->at[0]];
}

/* Of those with the same outermost tiles a few are enough: what the price does not see in one it
 * does not see in the others. False: there are better ones. */
static bool make_room(struct search *s, const struct point *q, double cost) {
    int n = 0, worst = -1;
    for (int i = 0; i < s->nfinal; i++)
        if (begin_alike(s, &s->final[i], q)) n++, worst = i;
    if (n < FINAL_ALIKE) return true;
    if (s->final[worst].cost <= cost) return false;
    s->nfinal--;
    memmove(&s->final[worst], &s->final[worst + 1],
            sizeof s->final[0] * (size_t)(s->nfinal - worst));
    return true;
}

static void final_add(struct search *s, const struct point *q, const struct plan *p, double cost) {
    int i;
    if (isinf(cost) || (s->nfinal == FINALISTS && cost >= s->final[FINALISTS - 1].cost)) return;
    for (int k = 0; k < s->nfinal; k++) /* loops in another order that comes to the same */
        if (fabs(s->final[k].cost - cost) < 1e-9 * cost ||
            (s->final[k].predicted == p->predicted && s->final[k].bytes == p->bytes))
            return;
    if (!make_room(s, q, cost)) return;
    if (s->nfinal < FINALISTS) s->nfinal++;
    i = s->nfinal - 1;
    for (; i > 0 && s->final[i - 1].cost > cost; i--) s->final[i] = s->final[i - 1];
    s->final[i] = *q;
    s->final[i].cost = cost;
    s->final[i].predicted = p->predicted;
    s->final[i].rest = p->cycles - p->predicted;
    s->final[i].bytes = p->bytes;
}

double point_cost_again(struct search *s, const struct point *q) {
    struct plan p;
    space_build(s, q, &p);
    double cost = residency_best(s, &p, q->refined, INFINITY);
    return cost * bulk(s, &p);
}

/* At least so much keeps a point from being a finalist. */
static double final_limit(const struct search *s, const struct point *q) {
    int n = 0, worst = 0;
    for (int i = 0; i < s->nfinal; i++)
        if (begin_alike(s, &s->final[i], q)) n++, worst = i;
    if (n >= FINAL_ALIKE) return s->final[worst].cost;
    return s->nfinal == FINALISTS ? s->final[FINALISTS - 1].cost : INFINITY;
}

/* Of two that cost the same the smaller one. A collision of hashes would only mislead the
 * search: what it finds is priced again. Costs that were found to be at least so much are
 * remembered as negative numbers. */
double point_cost(struct search *s, const struct point *q, double limit) {
    struct plan p;
    space_build(s, q, &p);
    uint64_t h = plan_hash(&p);
    const double *known = memo_cost(s->memo, h);
    if (known && (*known >= 0 || -*known >= limit)) return fabs(*known);
    int64_t budget = s->budget;
    double least_size = price_counts(s->w, PRICE_CODE) ? 1 + LOOP_COST * p.nloops : 1;
    limit = fmax(limit, final_limit(s, q));
    double cost = residency_best(s, &p, false, limit / least_size);
    bool below = cost < limit / least_size;
    if (!isinf(cost)) s->least_alone = fmin(s->least_alone, p.alone);
    if (!isinf(p.cycles)) {
        double size = bulk(s, &p);
        s->least_time = fmin(s->least_time, p.predicted);
        s->least_rest = fmin(s->least_rest, p.cycles - p.predicted);
        s->least_bulk = fmin(s->least_bulk, size);
        if (below) cost *= size;
    }
    if (below) final_add(s, q, &p, cost);
    if (!below && !isinf(cost)) cost = limit;
    (known ? memo_change : memo_put)(s->memo, h, below || isinf(cost) ? cost : -cost);
    if (known) s->budget = budget; /* it was counted before */
    return cost;
}

static int by_cost(const void *a, const void *b) {
    const struct point *x = a, *y = b;
    return x->cost < y->cost ? -1 : x->cost > y->cost;
}

void finals_refine(struct search *s) {
    for (int i = 0; i < s->nfinal; i++) {
        struct point *q = &s->final[i];
        struct plan p;
        q->refined = true;
        point_plan(s, q, &p);
        q->plan = arena_copy(s->memo->arena, &p, sizeof p);
        q->cost = p.cycles * bulk(s, &p);
        memo_change(s->memo, plan_hash(&p), q->cost);
        pool_add(s, q);
    }
    qsort(s->final, (size_t)s->nfinal, sizeof s->final[0], by_cost);
}

/* ---- the pool ---- */

static bool same_shape(const struct shape *a, const struct shape *b) {
    return a->n == b->n && a->reversed == b->reversed &&
           memcmp(a->k, b->k, sizeof a->k[0] * (size_t)a->n) == 0;
}

void pool_add(struct search *s, const struct point *q) {
    if (isinf(q->cost)) return;
    int worst = 0;
    for (int i = 0; i < s->npool; i++) {
        if (same_shape(&s->pool[i].shape, &q->shape)) {
            if (q->cost < s->pool[i].cost) s->pool[i] = *q;
            return;
        }
        if (s->pool[i].cost > s->pool[worst].cost) worst = i;
    }
    if (s->npool < MAX_POOL)
        s->pool[s->npool++] = *q;
    else if (q->cost < s->pool[worst].cost)
        s->pool[worst] = *q;
}

const struct point *pool_best(const struct search *s) {
    const struct point *best = NULL;
    for (int i = 0; i < s->npool; i++)
        if (!best || s->pool[i].cost < best->cost) best = &s->pool[i];
    return best;
}

/* ---- starts ---- */

int axis_nearest(const struct axis_space *v, int64_t value) {
    int i = 0;
    while (i + 1 < v->n && v->value[i + 1] <= value) i++;
    return i;
}

/* How much passes through registers depends on which loop of a tile is inside: where one order has
 * no room the other one may. */
static bool try(struct search *s, struct point *best, const struct point *q) {
    struct point p = *q;
    s->tiling.crowded = false;
    p.cost = point_cost(s, q, best->cost * ENOUGH);
    if (isinf(p.cost) && s->tiling.crowded) {
        p.shape.reversed ^= REVERSED_RESULT;
        p.cost = point_cost(s, &p, best->cost * ENOUGH);
    }
    if (p.cost >= best->cost * ENOUGH) return false;
    *best = p;
    return true;
}

/* All axes grown alike, one of them whole. */
static struct point start(struct search *s, const struct shape *shape) {
    struct point best = {.shape = *shape, .cost = INFINITY}, q = best;
    for (int whole = -1; whole < shape->n; whole++)
        for (int64_t grown = 1; grown <= 256 && s->budget > 0; grown *= 2) {
            bool more = false;
            for (int i = 0; i < shape->n; i++) {
                const struct axis_space *v = &s->ax[shape->k[i]];
                q.at[i] = i == whole ? v->n - 1 : axis_nearest(v, grown * v->unit);
                more |= i != whole && q.at[i] < v->n - 1;
            }
            try(s, &best, &q);
            if (!more) break;
        }
    return best;
}

/* The extent whose growth (next, doubled, whole) saves most, until none does. */
static void grow(struct search *s, struct point *q) {
    for (bool better = true; better && s->budget > 0;) {
        struct point from = *q;
        better = false;
        for (int i = 0; i < q->shape.n; i++) {
            const struct axis_space *v = &s->ax[q->shape.k[i]];
            int to[3] = {from.at[i] + 1, axis_nearest(v, 2 * v->value[from.at[i]]), v->n - 1};
            for (int k = 0; k < 3; k++) {
                struct point p = from;
                if (to[k] <= from.at[i] || to[k] >= v->n) continue;
                p.at[i] = to[k];
                better |= try(s, q, &p);
            }
        }
    }
}

/* ---- local search ---- */

/* The cut outside of cut i of the same axis, which counts its tiles; -1. */
static int cut_outside(const struct point *q, int i) {
    for (int k = i - 1; k >= 0; k--)
        if (q->shape.k[k] == q->shape.k[i]) return k;
    return -1;
}

/* The cut outside of cut i keeps its extent, of as many other tiles. False: it has no other number
 * of them. */
static bool keep_outside(const struct search *s, const struct point *from, struct point *p, int i) {
    const struct axis_space *v = &s->ax[from->shape.k[i]];
    int outer = cut_outside(from, i);
    if (outer < 0 || p->at[i] == from->at[i]) return false;
    p->at[outer] =
        axis_nearest(v, (int64_t)((double)v->value[from->at[outer]] *
                                  (double)v->value[from->at[i]] / (double)v->value[p->at[i]]));
    return p->at[outer] != from->at[outer];
}

/* A cut outside keeps how many tiles it has, or its extent. */
static bool slide_one(struct search *s, struct point *q, int i) {
    struct point from = *q, p = from;
    const struct axis_space *v = &s->ax[q->shape.k[i]];
    int stride = v->n > THIN ? v->n / THIN : 1;
    bool better = false;
    for (int a = 0; a < v->n && s->budget > 0;
         a += (a > from.at[i] - 3 && a < from.at[i] + 3) || a + stride > v->n - 1 ? 1 : stride) {
        if (a == from.at[i]) continue;
        p.at[i] = a;
        better |= try(s, q, &p);
        if (keep_outside(s, &from, &p, i)) better |= try(s, q, &p);
        p = from;
    }
    return better;
}

static bool slide(struct search *s, struct point *q) {
    bool better = false;
    for (int i = 0; i < q->shape.n; i++) better |= slide_one(s, q, i);
    return better;
}

static bool trade(struct search *s, struct point *q) {
    bool better = false;
    for (int i = 0; i < q->shape.n; i++)
        for (int k = 0; k < q->shape.n; k++)
            for (int how = 0; how < 4 && i != k && s->budget > 0; how++) {
                const struct axis_space *v = &s->ax[q->shape.k[i]], *u = &s->ax[q->shape.k[k]];
                struct point p = *q;
                p.at[i] = how & 1 ? axis_nearest(v, 2 * v->value[q->at[i]]) : q->at[i] + 1;
                p.at[k] = how & 2 ? axis_nearest(u, u->value[q->at[k]] / 2) : q->at[k] - 1;
                if (p.at[i] >= v->n || p.at[k] < 0 || (p.at[i] == q->at[i] && p.at[k] == q->at[k]))
                    continue;
                struct point from = *q, kept = p;
                better |= try(s, q, &p);
                bool grows = keep_outside(s, &from, &kept, i),
                     shrinks = keep_outside(s, &from, &kept, k);
                if (grows || shrinks) better |= try(s, q, &kept);
            }
    return better;
}

/* Loop i to place k. False: it would cross a cut of its own axis. */
bool point_move_loop(struct point *q, int i, int k) {
    int axis = q->shape.k[i], at = q->at[i], step = i < k ? 1 : -1;
    for (; i != k; i += step) {
        if (q->shape.k[i + step] == axis) return false;
        q->shape.k[i] = q->shape.k[i + step];
        q->at[i] = q->at[i + step];
    }
    q->shape.k[k] = axis;
    q->at[k] = at;
    return true;
}

static bool reorder(struct search *s, struct point *q) {
    bool better = false;
    struct point p = *q;
    for (int other = REVERSED_RESULT; other <= REVERSED_SUM; other *= 2) {
        p = *q;
        p.shape.reversed ^= other;
        better |= try(s, q, &p);
    }
    for (int i = 0; i < q->shape.n; i++)
        for (int k = 0; k < q->shape.n && s->budget > 0; k++) {
            p = *q;
            if (i != k && point_move_loop(&p, i, k)) better |= try(s, q, &p);
        }
    return better;
}

/* Two axes with each other's extents. */
static bool exchange(struct search *s, struct point *q) {
    bool better = false;
    for (int i = 0; i < q->shape.n; i++)
        for (int k = 0; k < i && s->budget > 0; k++) {
            const struct axis_space *v = &s->ax[q->shape.k[i]], *u = &s->ax[q->shape.k[k]];
            struct point p = *q;
            if (v == u) continue;
            p.at[i] = axis_nearest(v, u->value[q->at[k]]);
            p.at[k] = axis_nearest(u, v->value[q->at[i]]);
            if (p.at[i] != q->at[i] || p.at[k] != q->at[k]) better |= try(s, q, &p);
        }
    return better;
}

/* Sums over several axes in the other order, and a smaller tile: rows of a window that stay in
 * registers serve several results, but want so many registers that the tile must give some back. */
static bool reverse_smaller(struct search *s, struct point *q) {
    int sums = 0;
    bool better = false;
    for (int k = 0; k < s->n; k++) sums += s->ax[k].reduction;
    for (int i = 0; i < q->shape.n && sums > 1 && !better && s->budget > 0; i++) {
        struct point p = *q;
        p.shape.reversed ^= REVERSED_SUM;
        if (!s->ax[p.shape.k[i]].reduction && p.at[i]-- > 0) better = try(s, q, &p);
    }
    return better;
}

static void polish(struct search *s, struct point *q) {
    exchange(s, q);
    do
        for (bool better = true; better && s->budget > 0;) {
            better = slide(s, q);
            better |= trade(s, q);
            better |= reorder(s, q);
        }
    while (reverse_smaller(s, q));
    q->polished = true;
    pool_add(s, q);
}

/* One extent to something else altogether, the others after it: out of a local minimum. */
static bool kick(struct search *s, struct point *q) {
    bool better = false;
    for (int i = 0; i < q->shape.n; i++) {
        const struct axis_space *v = &s->ax[q->shape.k[i]];
        for (int64_t value = v->unit; s->budget > 0; value *= 2) {
            struct point p = *q;
            p.at[i] = axis_nearest(v, value);
            if (p.at[i] != q->at[i]) {
                p.cost = INFINITY;
                try(s, &p, &p);
                for (int round = 0; round < 2; round++)
                    for (int k = 0; k < q->shape.n; k++)
                        if (k != i) slide_one(s, &p, k);
                if (p.cost < q->cost * ENOUGH) {
                    *q = p;
                    better = true;
                }
            }
            if (value >= v->value[v->n - 1]) break;
        }
    }
    return better;
}

static void insert_cut(struct point *q, int place, int axis, int at) {
    int after = q->shape.n - place;
    memmove(&q->shape.k[place + 1], &q->shape.k[place], sizeof q->shape.k[0] * (size_t)after);
    memmove(&q->at[place + 1], &q->at[place], sizeof q->at[0] * (size_t)after);
    q->shape.k[place] = axis;
    q->at[place] = at;
    q->shape.n++;
}

/* One more cut outside the axis's others; the next inner one has another extent then. */
static bool deepen(struct search *s, struct point *q) {
    struct point from = *q;
    bool better = false;
    if (from.shape.n == MAX_SHAPE) return false;
    for (int axis = 0; axis < s->n; axis++) {
        const struct axis_space *v = &s->ax[axis];
        int outermost = 0;
        while (outermost < from.shape.n && from.shape.k[outermost] != axis) outermost++;
        if (v->n < 3 || outermost == from.shape.n) continue;
        for (int place = 0; place <= outermost && s->budget > 0; place++) {
            struct point best = {.cost = INFINITY};
            for (int64_t times = 2; times < v->value[v->n - 1] / v->unit && s->budget > 0;
                 times *= 2) {
                struct point p = from;
                insert_cut(&p, place, axis, axis_nearest(v, times * v->unit));
                try(s, &best, &p);
            }
            if (isinf(best.cost)) continue;
            slide_one(s, &best, outermost + 1);
            slide_one(s, &best, place);
            slide_one(s, &best, outermost + 1);
            if (best.cost >= q->cost * ENOUGH) continue;
            *q = best;
            better = true;
        }
    }
    return better;
}

static int orders_make(const struct search *s, struct shape *out) {
    int perm[ORDERED], n = 0, cut = 0, ordered;
    while (cut < s->n && cut < MAX_CUT && s->ax[cut].n > 1) cut++;
    ordered = cut < ORDERED ? cut : ORDERED;
    for (int i = 0; i < ordered; i++) perm[i] = i;
    for (bool more = true; more;) {
        struct shape *o = &out[n++];
        memset(o, 0, sizeof *o);
        for (int i = ordered; i < cut; i++) o->k[o->n++] = i;
        for (int i = 0; i < ordered; i++) o->k[o->n++] = perm[i];
        int i = ordered - 2; /* next permutation */
        while (i >= 0 && perm[i] > perm[i + 1]) i--;
        more = i >= 0;
        if (!more) break;
        int j = ordered - 1;
        while (perm[j] < perm[i]) j--;
        int x = perm[i];
        perm[i] = perm[j];
        perm[j] = x;
        for (int a = i + 1, b = ordered - 1; a < b; a++, b--) {
            x = perm[a];
            perm[a] = perm[b];
            perm[b] = x;
        }
    }
    return n;
}

static struct point *next_rough(struct search *s) {
    struct point *best = NULL;
    for (int i = 0; i < s->npool; i++)
        if (!s->pool[i].polished && (!best || s->pool[i].cost < best->cost)) best = &s->pool[i];
    return best;
}

/* No plan was much better in any part of its cost: searching on would hardly pay. */
static bool near_least(const struct search *s) {
    const struct point *best = &s->final[0];
    return s->nfinal > 0 && best->rest <= ALIKE * s->least_rest &&
           best->cost <= NEAR * (s->least_time + s->least_rest) * s->least_bulk;
}

/* The best takes at most so many times as long as instructions alone. */
static bool within_alone(const struct search *s, double times) {
    return s->nfinal > 0 && s->final[0].cost <= times * s->least_alone * s->least_bulk;
}

bool near_alone(const struct search *s) {
    return within_alone(s, LITTLE);
}

/* What one start leads to is the least of what was priced there, in a local minimum too: where more
 * than a little could be won, another start is polished as well. */
static bool polished_enough(const struct search *s, int starts) {
    if (starts < POLISHED_NEAR) return starts > 0 && near_least(s) && within_alone(s, SOME);
    return near_least(s) || near_alone(s);
}

/* The end of a phase that could price `part / of` of all plans. */
static void phase_end(struct search *s, int64_t given, int64_t part, int64_t of) {
    int64_t enough = ((given - s->budget + 1) * of + part - 1) / part;
    if (enough > s->enough) s->enough = enough;
}

void pool_fill(struct search *s) {
    struct shape order[MAX_ORDERS];
    int64_t total = s->budget;
    int n = orders_make(s, order);
    for (int i = 0; i < n; i++) {
        s->budget = total * 2 / 5 / n;
        struct point p = start(s, &order[i]);
        if (!isinf(p.cost)) grow(s, &p);
        phase_end(s, total * 2 / 5 / n, 2, 5 * n);
        pool_add(s, &p);
    }
    if (s->w->options && s->w->options->plain) return;
    s->budget = total * 3 / 10;
    for (int i = 0; i < POLISHED && s->budget > 0 && next_rough(s) && !polished_enough(s, i); i++) {
        struct point p = *next_rough(s);
        next_rough(s)->polished = true;
        polish(s, &p);
    }
    phase_end(s, total * 3 / 10, 3, 10);
    if (!s->npool || near_least(s) || near_alone(s)) return;
    s->budget = total * 3 / 10;
    struct point p = *pool_best(s);
    for (int i = 0; i < KICKED && kick(s, &p); i++) polish(s, &p);
    for (int i = 0; i < DEEPENED && deepen(s, &p); i++) polish(s, &p);
    phase_end(s, total * 3 / 10, 3, 10);
    pool_add(s, &p);
}
