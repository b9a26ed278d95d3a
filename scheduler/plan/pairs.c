/* Pairs of nests: the first makes tiles of a temporary that the second reads, inside loops that
 * both share, so that the temporary never goes home (SCHEDULING §7, "Producer"; Apollo §4's fusion
 * of loops). The tile is the second's own hold where the first can write there, and else stays in a
 * memory that hardware manages. */
#include "scheduler/plan/footprint.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/keep.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search.h"
#include "scheduler/plan/slots.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/transfer.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = 3, EACH = 1, STEPS = 6000, SPARE_AXES = 16 /* for copies */ };

struct pair {
    int first, second, maker;                 /* nests; the task that makes the temporary */
    int buffer, given;                        /* the operand of the second's core that reads it */
    int axis[MAX_DIMS], dim[MAX_DIMS], naxes; /* that may be shared, outermost first */
    struct window
        window[MAX_DIMS]; /* over which they slide; axis -1: they are the same on both sides */
};

static int maker_of(const struct nest *n) {
    return n->nchain ? n->chain[n->nchain - 1] : n->core;
}

int maker_result(const struct work *w, const struct nest *n) {
    return w->p->stmt[w->task[maker_of(n)].stmt].dst.buffer;
}

static bool belongs(const struct work *w, const struct nest *n, int stmt) {
    int t = w->task_of[stmt];
    if (t == -2) return true; /* some core's zero fill */
    if (t == n->core || t == n->init) return t >= 0;
    for (int i = 0; i < n->nchain; i++)
        if (n->chain[i] == t) return true;
    return false;
}

/* Is the buffer made by the first alone, and read by the second's core alone? */
static bool passes(const struct work *w, const struct pair *k) {
    const struct nest *a = &w->nest[k->first], *b = &w->nest[k->second];
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i], t = w->task_of[s];
        const struct stmt *st = &w->p->stmt[s];
        bool starts = s == w->task[k->maker].init || (t >= 0 && t == a->init);
        if (st->dst.buffer == k->buffer && t != k->maker && !starts) return false;
        for (int r = 0; r < st->nreads; r++)
            if (st->read[r].buffer == k->buffer && t != b->core) return false;
    }
    return true;
}

/* Nothing else happens between the two, so that the second may begin with the first. */
static bool adjacent(const struct work *w, const struct pair *k) {
    bool inside = false;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        inside |= s == w->nest[k->first].first;
        if (s == w->nest[k->second].first) return inside;
        if (inside && !w->in_prepare[s] && !belongs(w, &w->nest[k->first], s)) return false;
    }
    return false;
}

static bool find_operand(const struct work *w, struct pair *k) {
    const struct task *t = &w->task[w->nest[k->second].core];
    const struct stmt *st = &w->p->stmt[t->stmt];
    k->given = -1;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_IMM || o->read < 0 || st->read[o->read].buffer != k->buffer) continue;
        if (k->given >= 0 || o->writes || o->geom.repeat_axis >= 0) return false;
        k->given = i;
    }
    return k->given >= 0;
}

static bool uses(const struct work *w, const struct nest *n, int buffer) {
    for (int i = 0; i < w->norder; i++) {
        const struct stmt *st = &w->p->stmt[w->order[i]];
        if (!belongs(w, n, w->order[i]) || w->task_of[w->order[i]] < 0) continue;
        if (st->dst.buffer == buffer) return true;
        for (int r = 0; r < st->nreads; r++)
            if (st->read[r].buffer == buffer) return true;
    }
    return false;
}

/* The second begins before the first has ended: a state that it writes, say, the first must not
 * read. */
static bool meet_otherwise(const struct work *w, const struct nest *a, const struct nest *b) {
    for (int i = -1; i < b->nchain; i++) {
        const struct task *t = &w->task[i < 0 ? b->core : b->chain[i]];
        if (uses(w, a, w->p->stmt[t->stmt].dst.buffer)) return true;
    }
    return false;
}

static bool pair_find(const struct work *w, int first, struct pair *k) {
    if (first + 1 >= w->nnests) return false;
    *k = (struct pair){.first = first, .second = first + 1};
    const struct nest *a = &w->nest[k->first], *b = &w->nest[k->second];
    if (a->core < 0 || b->core < 0 || a->partner >= 0) return false;
    if (w->p->stmt[a->first].scope != w->p->stmt[b->first].scope || a->kept || b->kept ||
        a->part_n || b->part_n || a->is_grid || b->is_grid)
        return false;
    for (int i = 0; i < w->task[b->core].nops; i++)
        if (w->task[b->core].op[i].finish) return false;
    k->maker = maker_of(a);
    k->buffer = maker_result(w, a);
    return w->p->buffer[k->buffer].role == ROLE_TEMP && !recur_carries(w, k->buffer) &&
           !meet_otherwise(w, a, b) && find_operand(w, k) && passes(w, k) && adjacent(w, k);
}

static const struct access *given_access(const struct work *w, const struct pair *k) {
    const struct task *t = &w->task[w->nest[k->second].core];
    return &w->p->stmt[t->stmt].read[t->op[k->given].read];
}

void pairs_rename(struct work *w) {
    for (int i = 0; i < w->nnests; i++) {
        struct pair k;
        int map[MAX_AXES];
        if (!pair_find(w, i, &k)) continue;
        int core = w->nest[k.second].core, read = w->task[core].op[k.given].read;
        if (nest_unify(w, k.maker, core, read, map) || windows_map(w, k.maker, core, read, map))
            nest_rename(w, &w->nest[k.second], map);
    }
}

/* The axis that both walk alone in a dimension of the temporary; -1. */
static int same_axis(const struct work *w, const struct pair *k, int d) {
    const struct program *p = w->p;
    const struct stmt *reads = &p->stmt[w->task[w->nest[k->second].core].stmt],
                      *makes = &p->stmt[w->task[k->maker].stmt];
    const struct access *made = &makes->dst, *used = given_access(w, k);
    int a = -1;
    bool alone = !access_coef(p, made, d, p->naxes) && !access_coef(p, used, d, p->naxes);
    for (int x = 0; x < p->naxes; x++) {
        int64_t c = makes->axes >> x & 1 ? access_coef(p, made, d, x) : 0,
                u = reads->axes >> x & 1 ? access_coef(p, used, d, x) : 0;
        if (!c && !u) continue;
        alone &= c == 1 && u == 1 && a < 0;
        a = x;
    }
    return alone ? a : -1;
}

static bool is_blocked(const struct work *w, const struct pair *k, int d) {
    const struct task *m = &w->task[k->maker];
    for (int i = 0; i < m->nops; i++)
        if (m->op[i].writes && m->op[i].where != IN_IMM && m->op[i].geom.block[d] > 1) return true;
    return w->task[w->nest[k->second].core].op[k->given].geom.block[d] > 1;
}

/* What neither sums over, and both walk alone in a dimension of the temporary, or the second in
 * windows. Those need a name for the turns. */
static void find_shared(struct work *w, struct pair *k) {
    const struct task *t = &w->task[w->nest[k->second].core];
    uint64_t makes = w->p->stmt[w->task[k->maker].stmt].axes;
    for (int d = 0; d < w->p->buffer[k->buffer].ndims; d++) {
        struct window x = {.axis = -1};
        int a = same_axis(w, k, d);
        if (a < 0 && w->nscopes == 0 &&
            window_find(w, &w->p->stmt[w->task[k->maker].stmt].dst, makes, t, given_access(w, k), d,
                        &x) &&
            !(makes >> x.shared & 1))
            a = x.shared;
        if (a < 0 || (t->reductions >> a & 1) || w->p->axis[a].extent < 2 || is_blocked(w, k, d) ||
            (x.axis >= 0 && w->p->naxes >= MAX_AXES - SPARE_AXES))
            continue;
        if (x.axis >= 0) {
            x.turn = rewrite_axis(w, unique_name(w, w->p->axis[a].name, "turn"), 1);
            if (x.turn < 0) continue;
        }
        k->window[k->naxes] = x;
        k->axis[k->naxes] = a;
        k->dim[k->naxes++] = d;
    }
}

/* Where the tile lives: the follower's own memory, if the schedule fills that; else the outermost
 * cache that the follower's unit has alone; -1: nowhere. */
static int tile_memory(const struct work *w, const struct pair *k) {
    const struct task *t = &w->task[w->nest[k->second].core];
    const struct opnd *o = &t->op[k->given];
    int unit = w->m->queue[t->needle->in->queue].unit, best = -1;
    if (o->where == IN_LOCAL && !graph_is_static(w->m, o->memory)) return o->memory;
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        if (mem->caches < 0 || mem->size <= 0 || !memory_is_home(w->m, m) || mem->unit == 0 ||
            !unit_inside(w->m, unit, mem->unit))
            continue;
        if (best < 0 || mem->size > w->m->memory[best].size) best = m;
    }
    return best;
}

/* Indices of the dimension in a tile, without its borders. */
static int64_t tile_extent(const struct work *w, const struct pair *k, const struct loop *prefix,
                           int n, int dim) {
    int64_t extent = w->home[k->buffer].extent[dim];
    const struct nest *a = &w->nest[k->first];
    for (int d = 0; d < k->naxes; d++)
        for (int i = 0; i < n; i++) {
            if (k->dim[d] != dim || k->axis[d] != prefix[i].axis) continue;
            if (k->window[d].axis < 0) return prefix[i].tile < extent ? prefix[i].tile : extent;
            for (int x = 0; x < a->nwindows; x++)
                if (a->window[x].shared == prefix[i].axis) return a->window[x].n;
        }
    return extent;
}

/* The home becomes a tile, with the zeros around it that the second reads; false: it does not fit.
 */
static bool tile_make(struct work *w, const struct pair *k, const struct loop *prefix, int n) {
    struct home *h = &w->home[k->buffer];
    const struct buffer *b = &w->p->buffer[k->buffer];
    const struct task *t = &w->task[w->nest[k->second].core];
    const struct opnd *o = &t->op[k->given];
    bool own;
    h->memory = tile_memory(w, k);
    if (h->memory < 0) return false;
    own = h->memory == o->memory && o->where == IN_LOCAL;
    struct geom inside = o->geom;
    inside.plain_home = false; /* there it lies as it is used */
    if (own) home_pack(w, k->buffer, &inside);
    h->is_tile = true;
    h->extent = arena_copy(w->arena, h->extent, sizeof *h->extent * (size_t)b->ndims);
    for (int d = 0; d < b->ndims; d++) {
        int64_t lo, hi, all = b->extent[d];
        access_range(w->p, &w->p->stmt[t->stmt], given_access(w, k), d, &lo, &hi);
        h->extent[d] = tile_extent(w, k, prefix, n, d);
        h->border[d] = own && lo < 0 ? -lo : 0;
        h->extent[d] += h->border[d] + (own && hi >= all ? hi - all + 1 : 0);
    }
    home_run(h, b->ndims);
    int64_t room = graph_capacity(w->m, h->memory) / 2;
    return h->elements <= room / (int64_t)type_size(b->type);
}

static int64_t tile_bytes(const struct work *w, const struct pair *k) {
    int64_t align = w->m->memory[w->home[k->buffer].memory].align;
    int64_t bytes = w->home[k->buffer].elements * (int64_t)type_size(w->p->buffer[k->buffer].type);
    return (bytes + align - 1) / align * align;
}

/* Bytes of each program-managed memory that a planned nest uses. */
static void add_holds(struct work *w, const struct nest *n, int64_t *bytes) {
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    for (int i = 0; t && i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || graph_is_static(w->m, o->memory) || i == n->given) continue;
        bytes[o->memory] +=
            hold_bytes(w, &n->plan, t, o, task_access(w, t, o, o->read < 0), &n->plan.hold[i]);
    }
    for (int c = 0; c < n->nchain; c++) {
        const struct task *e = &w->task[n->chain[c]];
        for (int i = 0; i < e->nops; i++) {
            const struct opnd *o = &e->op[i];
            struct region r;
            if (!chain_needs_hold(w, n, e, o) || graph_is_static(w->m, o->memory)) continue;
            chain_region(w, &n->plan, n, e, o, &r);
            bytes[o->memory] += slot_bytes(w, o, &r) * 2;
        }
    }
}

bool pair_in_order(const struct work *w, const struct nest *a, const struct nest *b) {
    const struct task *x = &w->task[a->core], *y = &w->task[b->core];
    return b->given >= 0 && x->needle->in->queue == y->needle->in->queue &&
           !w->m->queue[x->needle->in->queue].data_order && x->needle->in->completes < 0 &&
           y->needle->in->completes < 0;
}

/* Of a turn of the first, when its last fills are done: the second's begin behind them. */
static double last_steps(const struct work *w, const struct nest *a, double turns) {
    const struct task *t = &w->task[a->core];
    const struct hold *pace = NULL;
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL && !t->op[i].writes &&
            (!pace || a->plan.hold[i].depth > pace->depth))
            pace = &a->plan.hold[i];
    double steps =
        pace ? plan_trips(w, &a->plan, pace->depth) / plan_trips(w, &a->plan, a->nprefix) : 1;
    return pace && steps > pace->slots ? a->plan.cycles / turns * pace->slots / steps
                                       : a->plan.cycles / turns;
}

static void windows_begin(struct work *w, const struct pair *k) {
    struct nest *a = &w->nest[k->first];
    a->nwindows = 0;
    for (int d = 0; d < k->naxes; d++)
        if (k->window[d].axis >= 0) a->window[a->nwindows++] = k->window[d];
}

/* Cycles of both with these shared loops; infinite where there is no plan. Leaves the nests
 * planned. */
static double pair_plan(struct work *w, const struct moves *moves, const struct pair *k,
                        const struct loop *prefix, int n) {
    struct nest *a = &w->nest[k->first], *b = &w->nest[k->second];
    struct nest *both[2] = {a, b};
    windows_begin(w, k);
    if (!windows_prefix(w, a, prefix, n) || !tile_make(w, k, prefix, n)) return INFINITY;
    memcpy(b->prefix, prefix, sizeof *prefix * (size_t)n);
    b->nprefix = n;
    for (int i = 0; i < 2; i++) {
        both[i]->steps = STEPS;
        memset(both[i]->reserved, 0, sizeof both[i]->reserved);
    }
    const struct opnd *o = &w->task[b->core].op[k->given];
    bool own = o->where == IN_LOCAL && o->memory == w->home[k->buffer].memory;
    b->given = own ? k->given : -1;
    a->leads = true;
    int64_t bytes = tile_bytes(w, k);
    if (own) { /* half of each memory for each: the second plans with what the first leaves */
        for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++)
            if (!graph_is_static(w->m, m) && graph_capacity(w->m, m) != INT64_MAX)
                a->reserved[m] = graph_capacity(w->m, m) / 2;
        if (a->reserved[o->memory] < bytes) a->reserved[o->memory] = bytes;
    }
    a->partner = k->second;
    b->partner = k->first;
    struct stmt *keep = windows_open(w, a);
    bool ok = nest_plan(w, moves, k->first);
    windows_close(w, a, keep);
    if (ok && own) add_holds(w, a, b->reserved);
    ok = ok && nest_plan(w, moves, k->second);
    if (ok && own) {
        memset(a->reserved, 0, sizeof a->reserved);
        a->reserved[o->memory] = bytes;
    }
    if (!ok) return INFINITY;
    double turns = plan_trips(w, &b->plan, n), lead = a->plan.lead, meets = b->plan.lead;
    if (pair_in_order(w, a, b))
        meets = fmax(0, meets - last_steps(w, a, turns));
    else
        lead += a->plan.tail + b->plan.tail;
    double meetings = (turns * b->plan.share.part - 1) * (lead + meets);
    if (!price_counts(w, PRICE_MEETINGS)) meetings = 0;
    return a->plan.cycles + b->plan.cycles + fmax(0, meetings);
}

struct choice {
    struct loop prefix[MAX_PREFIX];
    int n;
    double cost;
    struct nest a, b;
    struct home home;
};

/* Does a tile of these loops fit? */
static bool prefix_fits(struct work *w, const struct pair *k, const struct choice *c) {
    struct nest *a = &w->nest[k->first];
    const struct nest keep = *a;
    struct home home = w->home[k->buffer];
    bool fits;
    windows_begin(w, k);
    fits = windows_prefix(w, a, c->prefix, c->n) && tile_make(w, k, c->prefix, c->n);
    *a = keep;
    w->home[k->buffer] = home;
    return fits;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    return b ? common_divisor(b, a % b) : a;
}

static int64_t common_multiple(int64_t a, int64_t b) {
    return a / common_divisor(a, b) * b;
}

/* The least tile along the axis, of which others are multiples, so that each turn begins where the
 * task's instructions and the blocks of its operands do. */
static int64_t task_unit(struct work *w, const struct task *t, int axis) {
    int64_t unit = 1;
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] == axis) unit = common_multiple(unit, needle_unit(t->needle, x));
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        const struct access *acc = task_access(w, t, o, o->read < 0);
        for (int d = 0; o->where != IN_IMM && d < w->p->buffer[acc->buffer].ndims; d++) {
            int64_t by = llabs(access_coef(w->p, acc, d, axis)), block = o->geom.block[d];
            if (by && !(o->geom.loose >> d & 1))
                unit = common_multiple(unit, block / common_divisor(by, block));
        }
    }
    return unit;
}

static int64_t nest_unit(struct work *w, const struct nest *n, int axis) {
    int64_t unit = task_unit(w, &w->task[n->core], axis);
    for (int i = 0; i < n->nchain; i++)
        unit = common_multiple(unit, task_unit(w, &w->task[n->chain[i]], axis));
    return unit;
}

/* Of the shared axis; what the first nest makes of a window begins anywhere. */
static int64_t shared_unit(struct work *w, const struct pair *k, int shared) {
    int64_t unit = nest_unit(w, &w->nest[k->second], k->axis[shared]);
    return k->window[shared].axis >= 0
               ? unit
               : common_multiple(unit, nest_unit(w, &w->nest[k->first], k->axis[shared]));
}

/* Axes from the first on one by one, the last in a few tiles, of which the largest that fit are
 * taken. */
static int prefixes(struct work *w, const struct pair *k, int first, int n, int most,
                    struct choice *c) {
    struct choice now = {0};
    for (int last = first; last < k->naxes && now.n < MAX_PREFIX && n < most; last++) {
        int64_t unit = shared_unit(w, k, last), before = 0,
                units = (w->p->axis[k->axis[last]].extent + unit - 1) / unit;
        struct loop *loop = &now.prefix[now.n];
        if (units < 2) continue;
        now.n++;
        for (int64_t parts = 2; parts <= units && n < most;
             parts = parts < units && 2 * parts > units ? units : 2 * parts) {
            int64_t tile = (units + parts - 1) / parts * unit;
            if (tile == before) break;
            before = tile;
            *loop = (struct loop){k->axis[last], tile, LOOP_SEQUENTIAL};
            c[n] = now;
            n += prefix_fits(w, k, &c[n]);
            if (parts == units) break;
        }
        loop->tile = unit;
    }
    return n;
}

/* Inner axes begin on their own too: in loops around them the first nest would fetch its operands
 * anew, and instructions may be shorter along one axis than along another. */
static int all_prefixes(struct work *w, const struct pair *k, struct choice *c) {
    int n = 0, most = k->naxes > 1 ? EACH : MAX_CANDIDATES;
    for (int i = 0; i < k->naxes && n < MAX_CANDIDATES; i++)
        n = prefixes(w, k, i, n, n + most < MAX_CANDIDATES ? n + most : MAX_CANDIDATES, c);
    return n;
}

static const char *prefix_text(struct work *w, const struct choice *c) {
    struct text t = {0};
    for (int i = 0; i < c->n; i++)
        text_printf(&t, "%s%s %lld", i ? ", " : "", w->p->axis[c->prefix[i].axis].name,
                    (long long)c->prefix[i].tile);
    const char *out = arena_strdup(w->arena, t.at);
    text_free(&t);
    return out;
}

/* Where the tile has borders they are filled with zeros, once. */
static void add_border(struct work *w, const struct pair *k) {
    const struct opnd *o = &w->task[w->nest[k->second].core].op[k->given];
    for (int d = 0; d < w->p->buffer[k->buffer].ndims; d++) {
        int64_t lo, hi;
        const struct stmt *st = &w->p->stmt[w->task[w->nest[k->second].core].stmt];
        access_range(w->p, st, given_access(w, k), d, &lo, &hi);
        if (lo >= 0 && hi < w->p->buffer[k->buffer].extent[d]) continue;
        w->nest[k->first].border = windows_zeros(w, o, k->buffer);
        return;
    }
}

static void pair_decide(struct work *w, const struct moves *moves, struct pair *k) {
    struct choice *c = arena_array(w->arena, MAX_CANDIDATES + 1, sizeof *c);
    struct candidate *q = arena_array(w->arena, MAX_CANDIDATES + 1, sizeof *q);
    struct nest *a = &w->nest[k->first], *b = &w->nest[k->second];
    int n = 0, best = 0, made = all_prefixes(w, k, c + 1) + 1;
    const struct choice apart = {
        .cost = a->plan.cycles + b->plan.cycles, .a = *a, .b = *b, .home = w->home[k->buffer]};
    for (int i = 0; i < made; i++) {
        struct choice x = c[i];
        if (i == 0) {
            x = apart;
        } else {
            x.cost = pair_plan(w, moves, k, x.prefix, x.n);
            x.a = *a, x.b = *b, x.home = w->home[k->buffer];
        }
        *a = apart.a, *b = apart.b, w->home[k->buffer] = apart.home;
        if (isinf(x.cost)) continue;
        q[n] = (struct candidate){i ? prefix_text(w, &x) : "apart", x.cost, NULL};
        c[n] = x;
        if (x.cost < c[best].cost) best = n;
        n++;
    }
    if (n > 1 && w->decider) {
        struct question ask = {
            QUESTION_FUSION,
            arena_printf(w->arena, "nests of statements %d and %d", a->first, b->first), n, 0, q};
        int answer = decide(w->decider, &ask);
        if (answer >= 0 && answer < n) best = answer;
    }
    struct text *t = w->options ? w->options->explain : NULL;
    for (int i = 0; t && i < n; i++)
        text_printf(
            t, "%s %s %.0f cycles%s",
            i ? "," : arena_printf(w->arena, "nests of statements %d and %d:", a->first, b->first),
            q[i].text, q[i].cost, i == best ? " (taken)" : "");
    if (t && n) text_printf(t, "\n");
    *a = c[best].a, *b = c[best].b, w->home[k->buffer] = c[best].home;
    if (a->nwindows) windows_prefix(w, a, c[best].prefix, c[best].n);
    if (b->given >= 0) add_border(w, k);
}

bool pairs_decide(struct work *w, const struct moves *moves) {
    for (int i = 0; i < w->nnests; i++) {
        struct pair k;
        if (!pair_find(w, i, &k)) continue;
        find_shared(w, &k);
        if (k.naxes) pair_decide(w, moves, &k);
        if (w->diags->errors) return false;
    }
    return true;
}
