/* The plan of a nest: what the search found, as questions (SCHEDULING §2); answers are the
 * decider's. */
#include "scheduler/plan/price.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/search.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Where the search begins and ends, no figures of machines: sums of so many terms (windows of
 * convolutions) are cut only where nothing fits otherwise; so many plans are priced, of several
 * nests fewer each, but never so few that a search says little. */
enum { SMALL_REDUCTION = 11, SMALL_GRAIN = 16, DEFAULT_STEPS = 120000, LEAST_STEPS = 6000 };
static const double EXACT = 1 + 1e-9; /* sums in another order */

static const char *shape_text(struct search *s, const struct shape *o) {
    struct text t = {0};
    for (int i = 0; i < o->n; i++)
        text_printf(&t, "%s%s", i ? "," : "", s->w->p->axis[s->ax[o->k[i]].axis].name);
    if (o->reversed & REVERSED_RESULT) text_printf(&t, " inner reversed");
    if (o->reversed & REVERSED_SUM) text_printf(&t, " sums reversed");
    char *out = arena_strdup(s->w->arena, t.at ? t.at : "");
    text_free(&t);
    return out;
}

static void ask_order(struct search *s, struct point *chosen) {
    struct candidate *c = arena_array(s->w->arena, (size_t)s->npool, sizeof *c);
    for (int i = 0; i < s->npool; i++)
        c[i] = (struct candidate){shape_text(s, &s->pool[i].shape), s->pool[i].cost, NULL};
    const char *subject =
        arena_printf(s->w->arena, "loop order of statement %d", search_task(s)->stmt);
    *chosen = s->pool[work_ask(s->w, QUESTION_ORDER, subject, c, s->npool,
                               (int)(pool_best(s) - s->pool))];
}

struct tile_space {
    struct search *s;
    struct point point, start;
};

static double tile_cost(void *user, const int *at) {
    struct tile_space *t = user;
    size_t size = sizeof *at * (size_t)t->point.shape.n;
    memcpy(t->point.at, at, size);
    double cost = point_cost(t->s, &t->point, INFINITY);
    if (memcmp(t->start.at, at, size) == 0 && t->start.simulated > 0) return t->start.cost;
    return beside(t->s, cost, t->start.cost);
}

/* "i" is the innermost cut; "i'" outside of it counts how many of its tiles. */
static const char *cut_name(const struct search *s, const struct shape *o, int i) {
    const char *name = s->w->p->axis[s->ax[o->k[i]].axis].name;
    for (int j = i + 1; j < o->n; j++)
        if (o->k[j] == o->k[i]) name = arena_printf(s->w->arena, "%s'", name);
    return name;
}

static void ask_tiles(struct search *s, struct point *q) {
    const char *name[MAX_SHAPE];
    int count[MAX_SHAPE], keep[MAX_SHAPE], n = q->shape.n;
    const int64_t *value[MAX_SHAPE];
    if (!s->w->decider || !n) return;
    for (int i = 0; i < n; i++) {
        name[i] = cut_name(s, &q->shape, i);
        count[i] = s->ax[q->shape.k[i]].n;
        value[i] = s->ax[q->shape.k[i]].value;
    }
    memcpy(keep, q->at, sizeof keep);
    struct tile_space user = {s, *q, *q};
    struct space sp = {QUESTION_TILE,
                       arena_printf(s->w->arena, "tile of statement %d", search_task(s)->stmt),
                       n,
                       name,
                       count,
                       value,
                       tile_cost,
                       &user,
                       keep};
    decide_point(s->w->decider, &sp, q->at);
    for (int i = 0; i < n; i++)
        if (q->at[i] < 0 || q->at[i] >= count[i]) memcpy(q->at, keep, sizeof keep);
    if (isinf(point_cost(s, q, INFINITY))) memcpy(q->at, keep, sizeof keep);
    if (memcmp(q->at, keep, sizeof keep) != 0) q->plan = NULL;
}

/* The best plans that differ, by the model's cost. */
static void explain_candidates(struct search *s) {
    struct text *t = s->w->options ? s->w->options->explain : NULL;
    if (!t) return;
    text_printf(t, "statement %d: %d loop orders, the best plans\n", search_task(s)->stmt,
                s->npool);
    for (int k = 0; k < s->nfinal; k++) {
        const struct point *q = &s->final[k];
        struct plan p;
        point_plan(s, q, &p);
        text_printf(t, "  %s:", shape_text(s, &q->shape));
        for (int i = 0; i < q->shape.n; i++)
            text_printf(t, " %s=%lld", cut_name(s, &q->shape, i),
                        (long long)s->ax[q->shape.k[i]].value[q->at[i]]);
        text_printf(t, ": %.0f cycles", p.predicted);
        if (q->simulated > 0) text_printf(t, ", simulated %.0f", q->simulated);
        text_printf(t, ", bound by %s\n", p.bound ? p.bound : "nothing");
    }
}

static void explain_hold(const struct work *w, struct text *t, const struct opnd *o,
                         const struct hold *h) {
    text_printf(t, "  hold %s in %s at depth %d, %d slots", o->decl->buffer,
                w->m->memory[o->memory].id, h->depth, h->slots);
    if (h->ring) text_printf(t, ", a ring of %lld rows", (long long)h->ring);
    if (h->pinned) text_printf(t, ", %lld pieces pinned", (long long)h->pinned);
    text_printf(t, "\n");
}

static void explain(const struct search *s, const struct plan *p) {
    struct text *t = s->w->options ? s->w->options->explain : NULL;
    if (!t) return;
    const struct task *k = search_task(s);
    text_printf(t, "statement %d on '%s': %.0f cycles, %.0f bytes, bound by %s\n", k->stmt,
                k->needle->in->id, p->predicted, p->bytes, p->bound ? p->bound : "nothing");
    price_text(t, p);
    for (int i = 0; i < p->nloops; i++)
        text_printf(t, "  loop %s step %lld%s\n", s->w->p->axis[p->loop[i].axis].name,
                    (long long)p->loop[i].tile,
                    loop_unrolled(s->w, s->nest, p, i) ? " unrolled" : "");
    for (int i = 0; i < k->nops; i++)
        if (k->op[i].where == IN_LOCAL) explain_hold(s->w, t, &k->op[i], &p->hold[i]);
    for (int i = 0; i < k->nops; i++)
        if (p->asks >> i & 1) text_printf(t, "  %s asked for ahead\n", k->op[i].decl->buffer);
}

static int64_t steps(const struct work *w, const struct nest *n) {
    if (n->steps) return n->steps;
    if (w->options && w->options->steps > 0) return w->options->steps;
    int64_t share = DEFAULT_STEPS / (w->nnests > 4 ? w->nnests / 2 : 1);
    return share > LEAST_STEPS ? share : LEAST_STEPS;
}

/* ---- what was found before ---- */

static const size_t FOUND = offsetof(struct search, memo); /* where what is remembered begins */

static void remember(struct search *s) {
    s->known->grain_most = s->nest->grain_most;
    s->known->way_single = s->nest->way_single;
    s->known->steps = steps(s->w, s->nest);
    s->known->enough = s->enough;
    if (s->npool) s->known->cost = nest_cost(s);
    if (s->npool) s->known->found = arena_copy(s->memo->arena, &s->memo, sizeof *s - FOUND);
}

static bool recall(struct search *s) {
    s->nest->grain_most = s->known->grain_most;
    s->nest->way_single = s->known->way_single;
    if (s->known->found) memcpy((char *)s + FOUND, s->known->found, sizeof *s - FOUND);
    return s->known->found != NULL;
}

/* Its room is used again. */
static struct search *search_new(struct work *w, const struct moves *moves, struct nest *nest) {
    struct search *s = w->room->unused;
    if (s)
        w->room->unused = s->next;
    else
        s = arena_alloc(w->arena, sizeof *s);
    s->w = w;
    s->moves = moves;
    s->nest = nest;
    s->tiling.asked.task = NULL; /* of another search */
    return s;
}

void nest_drop(struct search *s) {
    s->next = s->w->room->unused;
    s->w->room->unused = s;
}

/* ---- a search ---- */

static bool has_ways(const struct work *w, const struct nest *n) {
    for (int c = -1; c < n->nchain; c++) {
        const struct task *t = &w->task[c < 0 ? n->core : n->chain[c].task];
        for (int i = 0; i < t->nops; i++)
            if (t->op[i].to) return true;
    }
    return false;
}

/* Does the chain take more than `most` at once along an axis of which it may take less? */
static bool grains_are_longer(const struct nest *n, int64_t most) {
    bool any = false;
    for (int a = 0; a < MAX_AXES && n->nchain; a++)
        any |= !n->grain[a].fixed && n->grain[a].least > most;
    return any;
}

/* Is the best plan's tile shorter than an issue of the core may be, along an axis of which the
 * chain takes what the tile has? */
static bool grains_bind(struct search *s) {
    const struct nest *n = s->nest;
    const struct task *t = search_task(s);
    struct plan p;
    if (!n->nchain) return false;
    point_plan(s, pool_best(s), &p);
    for (int x = 0; x < t->needle->nx; x++) {
        int a = t->axis[x];
        if (a < 0 || n->grain[a].fixed || n->grain[a].least <= 1) continue;
        int64_t extent = s->w->p->axis[a].extent, most = t->needle->hi[x],
                issues = (extent + most - 1) / most, tile = plan_tile(s->w, &p, a, p.depth_out);
        if (tile < (extent + issues - 1) / issues && tile <= nest_grain(n, a)) return true;
    }
    return false;
}

static void search_pass(struct search *s, bool keep_whole) {
    if (!space_axes(s)) return;
    if (keep_whole) space_keep_whole(s, SMALL_REDUCTION);
    s->memo = memo_new(known_arena(s->w->searches));
    s->nfinal = 0;
    s->budget = steps(s->w, s->nest);
    s->least_time = s->least_rest = s->least_bulk = s->least_alone = INFINITY;
    pool_fill(s);
}

/* With smaller and smaller grains, as long as that is better: what the chain makes has a memory of
 * its own, which may have less room than the sums. */
static void search_grains(struct search *s) {
    struct nest *n = s->nest;
    for (int64_t most = SMALL_GRAIN; most > 0 && grains_bind(s); most /= 2) {
        int64_t before = n->grain_most;
        if (!grains_are_longer(n, most) || (before && before <= most)) continue;
        struct search *was = arena_copy(known_arena(s->w->searches), s, sizeof *s);
        n->grain_most = most;
        s->npool = 0;
        search_pass(s, true);
        if (s->npool && nest_cost(s) < nest_cost(was)) continue;
        *s = *was;
        n->grain_most = before;
    }
}

/* Short reductions stay whole inside (windows of convolutions) unless nothing fits then. After that
 * the chain takes smaller and smaller grains; of each size, results have two slots in each memory
 * on their way home, or only one, so that each waits for the one before. */
static void search_make(struct search *s) {
    struct nest *n = s->nest;
    int ways = has_ways(s->w, n) ? 2 : 1;
    memset((char *)s + FOUND, 0, sizeof *s - FOUND);
    s->w->copies = copies_new(s->w);
    s->enough = 0;
    n->way_single = false;
    search_pass(s, true);
    if (!s->npool) search_pass(s, false);
    for (int64_t most = SMALL_GRAIN; !s->npool && most > 0; most /= 2) {
        if (most < SMALL_GRAIN && !grains_are_longer(n, most)) continue;
        n->grain_most = most;
        for (int k = 0; k < ways && !s->npool; k++) {
            n->way_single = k > 0;
            search_pass(s, false);
        }
    }
    if (s->npool) search_grains(s);
    if (s->npool && nest_least(s->w, n) > EXACT * s->least_alone) s->w->effort->below++;
    finals_refine(s);
    s->w->copies = NULL;
}

void nest_enter(struct search *s, struct work *w, struct nest *n) {
    s->w = w;
    s->nest = n;
}

struct search *nest_search(struct work *w, const struct moves *moves, struct nest *nest) {
    struct search *s = search_new(w, moves, nest);
    struct arena scratch;
    arena_init(&scratch);
    struct nest_key key = nest_key(w, nest, &scratch);
    s->known = known_find(w->searches, &key, steps(w, nest));
    w->effort->nests++;
    if (!s->known) {
        w->effort->searches++;
        s->known = known_add(w->searches, &key);
        search_make(s);
        remember(s);
    }
    arena_free(&scratch);
    if (recall(s)) return s;
    nest_drop(s);
    return NULL;
}

double nest_known(struct work *w, const struct nest *n) {
    struct arena scratch;
    arena_init(&scratch);
    struct nest_key key = nest_key(w, n, &scratch);
    const struct known_search *known = known_find(w->searches, &key, steps(w, n));
    arena_free(&scratch);
    return known && known->found ? known->cost : -1;
}

double nest_cost(const struct search *s) {
    return pool_best(s)->cost;
}

double nest_clocked(struct search *s) {
    struct plan p;
    s->w->copies = copies_new(s->w);
    point_plan(s, pool_best(s), &p);
    s->w->copies = NULL;
    return plan_simulated(s->w, s->moves, s->nest, &p);
}

double nest_alone(const struct search *s) {
    return isinf(s->least_alone) ? 0 : s->least_alone;
}

double nest_cost_again(struct search *s, struct work *as) {
    struct work *own = s->w;
    s->w = as;
    as->copies = copies_new(as);
    double cost = point_cost_again(s, pool_best(s));
    s->w = own;
    return cost;
}

/* Questions in their order; the answers make the plan. */
static void ask_all(struct search *s, struct plan *p) {
    struct point q;
    s->w->copies = copies_new(s->w);
    finalists_simulate(s);
    explain_candidates(s);
    ask_order(s, &q);
    s->walked = q.simulated > 0;
    ask_tiles(s, &q);
    point_plan(s, &q, p);
    s->walked = q.simulated > 0 && q.plan;
    residency_ask(s, p);
    keeps_ask(s, p);
    path_ask(s, p);
    s->w->copies = NULL;
    p->tiling = NULL;
    explain(s, p);
}

/* While other answers to the mapper's questions are tried nobody hears of these questions: equal
 * nests get equal plans, and are asked about once. */
void nest_decide(struct search *s) {
    bool trying = s->w->options && s->w->options->trying;
    if (!trying) {
        ask_all(s, &s->nest->plan);
    } else if (s->known->decided) {
        s->nest->plan = *s->known->decided;
    } else {
        ask_all(s, &s->nest->plan);
        s->known->decided = arena_copy(s->memo->arena, &s->nest->plan, sizeof s->nest->plan);
    }
    nest_drop(s);
}

static bool chain_plan(struct work *w, const struct moves *moves, struct nest *n) {
    memset(&n->plan, 0, sizeof n->plan);
    for (n->grain_most = 1 << 16; n->grain_most > 1 && !chain_fits(w, moves, n, &n->plan);)
        n->grain_most /= 2;
    return chain_fits(w, moves, n, &n->plan);
}

bool nest_plan(struct work *w, const struct moves *moves, struct nest *nest) {
    if (nest->core < 0) return chain_plan(w, moves, nest);
    struct search *s = nest_search(w, moves, nest);
    if (s) nest_decide(s);
    return s != NULL;
}
