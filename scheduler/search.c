/* Search: for each loop order growth from one grain, then local search over balanced extents
 * (SCHEDULING §2); answers are the decider's. */
#include "scheduler/scheduler_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SEARCH = 10,
    MAX_VALUES = 400,
    MAX_ORDERS = 24,
    SMALL_REDUCTION = 11,
    DEFAULT_STEPS = 9000,
    OPTIONS = 8
};

struct axis_space {
    int axis;
    int64_t unit, leaf_hi;
    int x;
    int64_t value[MAX_VALUES];
    int n;
    bool reduction;
};
struct search {
    struct work *w;
    const struct moves *moves;
    const struct nest *nest;
    const struct task *t;
    struct axis_space ax[MAX_SEARCH];
    int n, norder; /* axes ax[0..norder) are ordered; the others stay whole outside */
    int order[MAX_SEARCH];
    bool reversed; /* order of the inner non-reduction loops */
    struct tiling tiling;
    int64_t budget;
};

static int descending(const void *a, const void *b) {
    const struct axis_space *x = a, *y = b;
    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return x->axis - y->axis;
}

static void fill_values(struct axis_space *s, int64_t extent) {
    int64_t blocks = (extent + s->unit - 1) / s->unit, last = 0;
    for (int64_t n = blocks; n >= 1 && s->n < MAX_VALUES;) {
        int64_t size = (blocks + n - 1) / n;
        if (size != last) s->value[s->n++] = size * s->unit;
        last = size;
        n = (blocks - 1) / size; /* the most tiles that are larger than these */
    }
    s->value[s->n - 1] = blocks * s->unit;
}

static bool find_axes(struct search *s) {
    const struct program *p = s->w->p;
    const struct stmt *st = &p->stmt[s->t->stmt];
    for (int a = 0; a < p->naxes; a++) {
        if (!(st->axes >> a & 1)) continue;
        if (s->n == MAX_SEARCH) return false;
        struct axis_space *v = &s->ax[s->n];
        *v = (struct axis_space){
            .axis = a, .unit = 1, .x = -1, .reduction = s->t->reductions >> a & 1};
        for (int x = 0; x < s->t->needle->nx; x++)
            if (s->t->axis[x] == a) {
                v->x = x;
                v->unit = s->t->needle->ranged[x] < 0 ? s->t->needle->hi[x] : s->t->needle->step[x];
            }
        if (p->axis[a].extent <= v->unit) continue;
        fill_values(v, p->axis[a].extent);
        s->n++;
    }
    qsort(s->ax, (size_t)s->n, sizeof s->ax[0], descending);
    return true;
}

static int64_t leaf(const struct search *s, const struct axis_space *v, int64_t tile) {
    return v->x < 0 ? 1 : needle_leaf(s->t->needle, v->x, tile);
}

static void push_loop(struct plan *p, int axis, int64_t tile) {
    p->loop[p->nloops++] = (struct loop){axis, tile, LOOP_SEQUENTIAL};
}

static void build(const struct search *s, const int *at, struct plan *p) {
    memset(p, 0, sizeof *p);
    const struct program *prog = s->w->p;
    for (int pass = 0; pass < 2;
         pass++) /* unordered axes: results outside, reductions inside of the ordered ones */
        for (int i = pass ? 0 : s->norder; i < (pass ? s->norder : s->n); i++) {
            int k = pass ? s->order[i] : i;
            if (s->ax[k].value[at[k]] < prog->axis[s->ax[k].axis].extent)
                push_loop(p, s->ax[k].axis, s->ax[k].value[at[k]]);
        }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < s->n; i++) {
            int k = pass && s->reversed ? s->n - 1 - i : i;
            const struct axis_space *v = &s->ax[k];
            int64_t tile = v->value[at[k]], l = leaf(s, v, tile);
            if (v->reduction == (pass == 0) && l < tile && l < prog->axis[v->axis].extent)
                push_loop(p, v->axis, l);
        }
    p->depth_out = p->nloops;
    for (int i = p->nloops - 1; i >= 0; i--)
        if (s->t->reductions >> p->loop[i].axis & 1) p->depth_out = i;
}

static const struct access *main_access(const struct search *s, const struct opnd *o) {
    const struct stmt *st = &s->w->p->stmt[s->t->stmt];
    return o->read >= 0 ? &st->read[o->read] : &st->dst;
}

static int64_t hold_bytes(const struct search *s, const struct plan *p, int i, int depth) {
    struct region r;
    plan_region(s->w, p, s->t, main_access(s, &s->t->op[i]), &s->t->op[i].geom, depth, &r);
    return slot_bytes(s->w, &s->t->op[i], &r);
}

static int add_option(struct hold *out, int n, int depth, int slots) {
    for (int i = 0; i < n; i++)
        if (out[i].depth == depth && out[i].slots == slots) return n;
    if (n < OPTIONS) out[n++] = (struct hold){depth, slots};
    return n;
}

/* Residencies worth trying, outermost first: as far out as fits alone; in registers every depth
 * inside the result's. */
static int hold_options(const struct search *s, const struct plan *p, int i, struct hold *out) {
    const struct opnd *o = &s->t->op[i];
    const struct access *acc = main_access(s, o);
    bool is_static = graph_is_static(s->w->m, o->memory);
    int n = 0, deepest = o->writes ? p->depth_out : p->nloops;
    if (is_static) {
        for (int d = o->writes ? deepest : p->depth_out; d <= deepest; d++)
            n = add_option(out, n, plan_normalise(s->w, p, acc, d), 1);
        return n;
    }
    for (int slots = 2; slots >= 1; slots--)
        for (int d = 0; d <= deepest; d++) {
            int at = plan_normalise(s->w, p, acc, d);
            if (slots > 1 && plan_trips(s->w, p, at) <= 1) continue;
            if (o->writes && s->nest->nchain && slots > 1) continue;
            if (hold_bytes(s, p, i, at) > graph_capacity(s->w->m, o->memory) / slots) continue;
            n = add_option(out, n, at, slots);
            break;
        }
    return n;
}

/* The best legal residency for these loops; infinite when there is none. */
static double residency(struct search *s, struct plan *p) {
    struct hold option[MAX_OPERANDS][OPTIONS];
    int count[MAX_OPERANDS], at[MAX_OPERANDS] = {0};
    plan_tabulate(s->w, p, &s->tiling);
    struct plan best = *p;
    best.cycles = INFINITY;
    for (int i = 0; i < s->t->nops; i++) {
        count[i] = s->t->op[i].where == IN_LOCAL ? hold_options(s, p, i, option[i]) : 1;
        if (!count[i]) return INFINITY;
        if (s->t->op[i].where != IN_LOCAL) option[i][0] = (struct hold){p->nloops, 1};
    }
    for (bool more = true; more;) {
        struct plan q = *p;
        for (int i = 0; i < s->t->nops; i++) {
            q.hold[i] = option[i][at[i]];
            if (s->t->op[i].writes) q.depth_out = q.hold[i].depth;
            if (s->t->op[i].writes && s->t->op[i].where != IN_LOCAL) q.depth_out = p->depth_out;
        }
        s->budget--;
        if (plan_price(s->w, s->moves, s->nest, &q) && q.cycles < best.cycles) best = q;
        int i = 0;
        while (i < s->t->nops && ++at[i] == count[i]) at[i++] = 0;
        more = i < s->t->nops;
    }
    *p = best;
    return best.cycles;
}

static double evaluate(struct search *s, const int *at, struct plan *out) {
    struct plan p;
    build(s, at, &p);
    double c = residency(s, &p);
    if (out) *out = p;
    return c;
}

static int next_index(const struct axis_space *v, int at, int how) {
    if (at + 1 >= v->n) return -1;
    if (how == 0) return at + 1;
    if (how == 2) return v->n - 1;
    for (int i = at + 1; i < v->n; i++)
        if (v->value[i] >= 2 * v->value[at]) return i;
    return -1;
}

static double grow(struct search *s, int *at) {
    double now = evaluate(s, at, NULL);
    for (bool better = true; better && s->budget > 0;) {
        int axis = -1, to = 0;
        double least = now;
        better = false;
        for (int k = 0; k < s->n; k++)
            for (int how = 0; how < 3; how++) {
                int keep = at[k], i = next_index(&s->ax[k], at[k], how);
                if (i < 0) continue;
                at[k] = i;
                double c = evaluate(s, at, NULL);
                at[k] = keep;
                if (c < least) {
                    least = c;
                    axis = k;
                    to = i;
                }
            }
        if (axis >= 0) {
            at[axis] = to;
            now = least;
            better = true;
        }
    }
    return now;
}

static double polish(struct search *s, int *at, double now) {
    for (bool better = true; better && s->budget > 0;) {
        int best[MAX_SEARCH], keep[MAX_SEARCH];
        double least = now * 0.9999;
        memcpy(keep, at, sizeof keep);
        better = false;
        for (int k = 0; k < s->n; k++) {
            int stride = s->ax[k].n > 24 ? s->ax[k].n / 24 : 1;
            for (int i = 0; i < s->ax[k].n && s->budget > 0;
                 i += (i > at[k] - 3 && i < at[k] + 3) ? 1 : stride) {
                if (i == keep[k]) continue;
                at[k] = i;
                double c = evaluate(s, at, NULL);
                if (c < least) {
                    least = c;
                    memcpy(best, at, sizeof best);
                    better = true;
                }
                at[k] = keep[k];
            }
            for (int j = 0; j < s->n && s->budget > 0; j++)
                for (int up = 1; up <= 2 && j != k; up++)
                    for (int down = 1; down <= 2; down++) {
                        if (keep[k] + up >= s->ax[k].n || keep[j] - down < 0) continue;
                        at[k] = keep[k] + up;
                        at[j] = keep[j] - down;
                        double c = evaluate(s, at, NULL);
                        if (c < least) {
                            least = c;
                            memcpy(best, at, sizeof best);
                            better = true;
                        }
                        at[k] = keep[k];
                        at[j] = keep[j];
                    }
        }
        if (better) {
            memcpy(at, best, sizeof best);
            now = least;
        }
    }
    return now;
}

struct order {
    int order[MAX_SEARCH];
    bool reversed;
    int at[MAX_SEARCH];
    double cost;
    bool polished;
};

static int orders_make(const struct search *s, struct order *out) {
    int perm[MAX_SEARCH], n = 0;
    for (int i = 0; i < s->norder; i++) perm[i] = i;
    for (bool more = true; more && n < 2 * MAX_ORDERS;) {
        for (int rev = 0; rev < 2 && n < 2 * MAX_ORDERS; rev++) {
            memcpy(out[n].order, perm, sizeof perm);
            out[n++].reversed = rev;
        }
        int i = s->norder - 2; /* next permutation */
        while (i >= 0 && perm[i] > perm[i + 1]) i--;
        more = i >= 0;
        if (!more) break;
        int j = s->norder - 1;
        while (perm[j] < perm[i]) j--;
        int x = perm[i];
        perm[i] = perm[j];
        perm[j] = x;
        for (int a = i + 1, b = s->norder - 1; a < b; a++, b--) {
            x = perm[a];
            perm[a] = perm[b];
            perm[b] = x;
        }
    }
    return n;
}

static void use_order(struct search *s, const struct order *o) {
    memcpy(s->order, o->order, sizeof s->order);
    s->reversed = o->reversed;
}

static const char *order_text(struct search *s, const struct order *o) {
    struct text t = {0};
    for (int i = 0; i < s->norder; i++)
        text_printf(&t, "%s%s", i ? "," : "", s->w->p->axis[s->ax[o->order[i]].axis].name);
    text_printf(&t, o->reversed ? " inner reversed" : "");
    char *out = arena_strdup(s->w->arena, t.at ? t.at : "");
    text_free(&t);
    return out;
}

static double space_cost(void *user, const int *at) {
    return evaluate(user, at, NULL);
}

static int ask_order(struct search *s, const struct order *o, int n) {
    int best = 0;
    struct candidate *c = arena_array(s->w->arena, (size_t)n, sizeof *c);
    int *which = arena_array(s->w->arena, (size_t)n, sizeof *which), m = 0;
    for (int i = 0; i < n; i++) {
        if (o[i].cost < o[best].cost) best = i;
        if (isinf(o[i].cost)) continue;
        which[m] = i;
        c[m++] = (struct candidate){order_text(s, &o[i]), o[i].cost, NULL};
    }
    if (m < 2 || !s->w->decider) return best;
    struct question q = {QUESTION_ORDER,
                         arena_printf(s->w->arena, "loop order of statement %d", s->t->stmt), m, 0,
                         c};
    int answer = decide(s->w->decider, &q);
    return answer >= 0 && answer < m ? which[answer] : best;
}

static void ask_tiles(struct search *s, int *at) {
    if (!s->w->decider || !s->n) return;
    const char *name[MAX_SEARCH];
    int count[MAX_SEARCH], keep[MAX_SEARCH];
    const int64_t *value[MAX_SEARCH];
    for (int k = 0; k < s->n; k++) {
        name[k] = s->w->p->axis[s->ax[k].axis].name;
        count[k] = s->ax[k].n;
        value[k] = s->ax[k].value;
    }
    memcpy(keep, at, sizeof keep);
    struct space sp = {QUESTION_TILE, arena_printf(s->w->arena, "tile of statement %d", s->t->stmt),
                       s->n,          name,
                       count,         value,
                       space_cost,    s,
                       keep};
    decide_point(s->w->decider, &sp, at);
    for (int k = 0; k < s->n; k++)
        if (at[k] < 0 || at[k] >= count[k]) memcpy(at, keep, sizeof keep);
    if (isinf(evaluate(s, at, NULL))) memcpy(at, keep, sizeof keep);
}

static void explain(const struct search *s, const struct plan *p) {
    struct text *t = s->w->options ? s->w->options->explain : NULL;
    if (!t) return;
    text_printf(t, "statement %d on '%s': %.0f cycles, %.0f bytes\n", s->t->stmt,
                s->t->needle->in->id, p->cycles, p->bytes);
    for (int i = 0; i < p->nloops; i++)
        text_printf(t, "  loop %s step %lld%s\n", s->w->p->axis[p->loop[i].axis].name,
                    (long long)p->loop[i].tile,
                    loop_unrolled(s->w, s->nest, p, i) ? " unrolled" : "");
    for (int i = 0; i < s->t->nops; i++)
        if (s->t->op[i].where == IN_LOCAL)
            text_printf(t, "  hold %s in %s at depth %d, %d slots\n", s->t->op[i].decl->buffer,
                        s->w->m->memory[s->t->op[i].memory].id, p->hold[i].depth, p->hold[i].slots);
}

static bool search_core(struct search *s, struct plan *out) {
    struct order *o = arena_array(s->w->arena, 2 * MAX_ORDERS, sizeof *o);
    int n = orders_make(s, o), best = 0;
    int64_t total = s->budget;
    for (int i = 0; i < n; i++) {
        use_order(s, &o[i]);
        s->budget = total / (2 * n);
        o[i].cost = grow(s, o[i].at);
        if (o[i].cost < o[best].cost) best = i;
    }
    if (isinf(o[best].cost)) return false;
    s->budget = total / 2;
    for (int k = 0; k < n && s->budget > 0; k++) { /* the most promising first */
        int next = -1;
        for (int i = 0; i < n; i++)
            if (!o[i].polished && !isinf(o[i].cost) && (next < 0 || o[i].cost < o[next].cost))
                next = i;
        if (next < 0) break;
        use_order(s, &o[next]);
        o[next].polished = true;
        o[next].cost = polish(s, o[next].at, o[next].cost);
    }
    int chosen = ask_order(s, o, n);
    use_order(s, &o[chosen]);
    s->budget = total / 4;
    ask_tiles(s, o[chosen].at);
    evaluate(s, o[chosen].at, out);
    out->tiling = NULL;
    return true;
}

bool nest_plan(struct work *w, const struct moves *moves, int nest) {
    struct nest *n = &w->nest[nest];
    if (n->core < 0) {
        memset(&n->plan, 0, sizeof n->plan);
        for (n->grain_most = 1 << 16; n->grain_most > 1 && !chain_fits(w, moves, n, &n->plan);)
            n->grain_most /= 2;
        return chain_fits(w, moves, n, &n->plan);
    }
    struct search *s = arena_alloc(w->arena, sizeof *s);
    *s = (struct search){.w = w, .moves = moves, .nest = n, .t = &w->task[n->core]};
    s->budget = w->options && w->options->steps > 0
                    ? w->options->steps
                    : DEFAULT_STEPS / (w->nnests > 4 ? w->nnests / 2 : 1);
    if (!find_axes(s)) return false;
    w->copies = copies_new(w);
    struct axis_space whole[MAX_SEARCH];
    memcpy(whole, s->ax, sizeof whole);
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 2) n->grain_most = 16;
        if (!pass) /* short reductions stay inside: windows of convolutions */
            for (int k = 0; k < s->n; k++) {
                struct axis_space *v = &s->ax[k];
                if (!v->reduction || w->p->axis[v->axis].extent > SMALL_REDUCTION || v->x >= 0)
                    continue;
                v->value[0] = v->value[v->n - 1];
                v->n = 1;
            }
        qsort(s->ax, (size_t)s->n, sizeof s->ax[0], descending);
        s->norder = s->n < 4 ? s->n : 4;
        while (s->norder > 0 && s->ax[s->norder - 1].n < 2) s->norder--;
        if (search_core(s, &n->plan)) {
            w->copies = NULL;
            explain(s, &n->plan);
            return true;
        }
        memcpy(s->ax, whole, sizeof whole);
        s->budget = DEFAULT_STEPS;
    }
    w->copies = NULL;
    return false;
}
