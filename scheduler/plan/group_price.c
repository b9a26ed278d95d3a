/* What a group costs: its nests are planned inside the shared loops, each with the room that the
 * others leave it; other parts are priced by their work and by the bytes that pass caches which are
 * too small for them. */
#include "ir/number.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/search.h"
#include <math.h>
#include <string.h>

enum { STEPS = 6000 };

/* ---- parts without a plan ---- */

/* What lies in a result's home comes there from far away when it is made, and the result, made of
 * it, does not. */
static bool stays(const struct work *w, const struct draft *d, const struct nest_group *g,
                  const struct touch *t) {
    for (int i = 0; i < g->nforeseen; i++)
        if (g->foreseen[i].buffer == t->buffer) return g->foreseen[i].member != t->member;
    for (int i = 0; i < g->npassed; i++) {
        const struct passed *p = &g->passed[i];
        int in = work_home(w, p->buffer)->lies_in;
        if (p->buffer == t->buffer) return !in || !t->write || t->member != p->first;
        if (in == t->buffer + 1) return true;
    }
    for (int i = 0; i < d->ntouches; i++) { /* an earlier member has brought it */
        const struct touch *u = &d->touch[i];
        bool all = u->buffer == t->buffer && d->in[u->member] && u->member < t->member;
        for (int k = 0; k < g->nprefix && all; k++) {
            const int *axis = d->shared[g->shared[k]].axis;
            all = axis[u->member] >= 0 && axis[t->member] >= 0 &&
                  touch_walks(w, u, axis[u->member]) >= 0 &&
                  touch_walks(w, t, axis[t->member]) >= 0;
        }
        if (all) return touch_near(w, d, g, t);
    }
    return false;
}

/* What a nest makes and nobody else reads never leaves the registers. */
static bool is_inside(const struct work *w, const struct draft *d, const struct touch *t) {
    const struct nest *n = draft_nest(w, d, t->member);
    bool made = false;
    for (int i = 0; n && i < n->nchain; i++)
        made |= w->p->stmt[w->task[n->chain[i].task].stmt].dst.buffer == t->buffer;
    return made && !needs_home(w, n, t->buffer);
}

/* Lines that are written come and go back; held: all of them once. */
static struct passing passing_bytes(const struct work *w, const struct draft *d,
                                    const struct nest_group *g, int member, double *held) {
    struct passing s = {0, 0};
    *held = 0;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        bool known = t->member != member || (g && stays(w, d, g, t)) || is_inside(w, d, t);
        for (int k = 0; k < i && !known; k++)
            known = d->touch[k].member == member && d->touch[k].buffer == t->buffer &&
                    d->touch[k].write >= t->write;
        if (known) continue;
        *held += touch_bytes(w, t);
        s.brought += touch_bytes(w, t);
        s.back += t->write ? touch_bytes(w, t) : 0;
    }
    return s;
}

static bool is_inside_cache(const struct work *w, int memory, int cache) {
    if (memory == cache) return false;
    while (memory >= 0 && memory != cache) memory = w->m->memory[memory].caches;
    return memory == cache;
}

/* Tiles that lie in a cache come from there once for each member, through the caches before it. */
static double tiles_cycles(const struct work *w, const struct draft *d, int member,
                           double *exposed) {
    double sum = 0;
    *exposed = 0;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        const struct home *h = work_home(w, t->buffer);
        bool known = t->member != member || !h->is_tile || is_inside(w, d, t);
        for (int k = 0; k < i && !known; k++)
            known = d->touch[k].member == member && d->touch[k].buffer == t->buffer;
        for (int m = 0; m < w->m->nmemories && !known; m++) {
            const struct memory *mem = &w->m->memory[m];
            if (!is_inside_cache(w, m, h->memory) || mem->line <= 0) continue;
            double cycles = touch_bytes(w, t) / (double)mem->line * mem->refill;
            sum += cycles;
            *exposed += cycles * (1 - mem->hidden);
        }
    }
    return sum;
}

/* Bytes that each turn reads again: of operands that the shared loops do not walk. */
static double lasting_bytes(const struct work *w, const struct draft *d, const struct nest_group *g,
                            int member) {
    double bytes = 0;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        bool other = t->member != member || t->write || work_home(w, t->buffer)->is_tile ||
                     is_inside(w, d, t);
        for (int k = 0; k < g->nprefix && !other; k++) {
            int axis = d->shared[g->shared[k]].axis[member];
            other = axis >= 0 && access_varies(w->p, t->access, axis);
        }
        for (int k = 0; k < i && !other; k++)
            other = d->touch[k].member == member && d->touch[k].buffer == t->buffer;
        if (!other) bytes += touch_bytes(w, t);
    }
    return bytes;
}

/* A nest alone finds them in a cache that holds them; the members of a group pass through it turn
 * by turn, and where all of them exceed it each turn brings them again. */
static double again_cycles(const struct work *w, const struct draft *d, const struct nest_group *g,
                           int member) {
    double own = lasting_bytes(w, d, g, member), all = 0, cycles = 0;
    for (int m = 0; m <= d->last - d->first; m++)
        if (d->in[m]) all += lasting_bytes(w, d, g, m);
    for (int i = 0; i < g->npassed; i++) all += (double)g->passed[i].bytes;
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        if (mem->caches < 0 || mem->line <= 0 || mem->size <= 0) continue;
        if (own > (double)mem->size || all <= (double)mem->size) continue;
        cycles += (g->turns - 1) * own / (double)mem->line * mem->refill * (1 - mem->hidden);
    }
    return cycles;
}

/* What the member asks for ahead comes while it computes: of a core, whose plan knows nothing of
 * it, so many cycles. */
static double asking_cycles(const struct work *w, const struct draft *d, const struct nest_group *g,
                            int member, bool core, double cycles) {
    for (int i = 0; i < g->nforeseen; i++) {
        const struct foreseen *a = &g->foreseen[i];
        double bytes = 0, far;
        if (a->member != member) continue;
        for (int k = 0; k < d->ntouches; k++)
            if (d->touch[k].member == member && d->touch[k].buffer == a->buffer)
                bytes = touch_bytes(w, &d->touch[k]);
        double stream = core ? stream_cycles(w->m, (struct passing){bytes, 0}, bytes, &far) : 0;
        cycles = fmax(fmax(cycles, stream), a->cycles) + (core ? far : 0);
    }
    return cycles;
}

static bool turn_cuts(const struct work *w, const struct draft *d, const struct nest_group *g,
                      int member) {
    bool cuts = false;
    for (int k = 0; k < g->nprefix; k++) {
        int axis = d->shared[g->shared[k]].axis[member];
        cuts |= axis >= 0 && host_cuts(w, d->part[d->first + member].stmt, axis, g->prefix[k].tile);
    }
    return cuts;
}

double part_cycles(const struct work *w, const struct draft *d, const struct nest_group *g,
                   int member) {
    const struct run_part *q = &d->part[d->first + member];
    const struct nest *n = draft_nest(w, d, member);
    if (n && n->core >= 0 && g)
        return asking_cycles(w, d, g, member, true, n->plan.cycles * grid_part(w, n)) +
               again_cycles(w, d, g, member);
    if (n && n->core >= 0) return n->plan.cycles * grid_part(w, n);
    double held, far, near;
    struct passing passing = passing_bytes(w, d, g, member, &held);
    double cycles = n ? 0 : host_turns(w, q->stmt, 0, g && turn_cuts(w, d, g, member)),
           stream = stream_cycles(w->m, passing, held, &far),
           tiles = tiles_cycles(w, d, member, &near), part = n ? grid_part(w, n) : 1,
           enter = g && w->fallback >= 0 ? part * g->turns * w->m->fallback[w->fallback].enter : 0;
    for (int i = 0; n && i < n->nchain; i++) cycles += part * task_cost(w, n->chain[i].task);
    if (!n) return enter + cycles + stream;
    cycles = fmax(cycles, fmax(stream, tiles));
    return enter + (g ? asking_cycles(w, d, g, member, false, cycles) : cycles) + far + near;
}

double part_least(const struct work *w, const struct draft *d, int member) {
    const struct run_part *q = &d->part[d->first + member];
    const struct nest *n = draft_nest(w, d, member);
    double cycles = n ? 0 : host_turns(w, q->stmt, 0, false);
    if (n && n->core >= 0) return n->plan.alone * grid_part(w, n);
    for (int i = 0; n && i < n->nchain; i++)
        cycles += task_cost(w, n->chain[i].task) * grid_part(w, n);
    return cycles;
}

/* ---- nests ---- */

/* Bytes of each program-managed memory that a planned nest uses. */
static void add_holds(struct work *w, const struct nest *n, int64_t *bytes) {
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    for (int i = 0; t && i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || graph_is_static(w->m, o->memory) || i == n->given) continue;
        bytes[o->memory] += hold_bytes(w, &n->plan, t, o, opnd_access(w, t, o), &n->plan.hold[i]);
    }
    for (int c = 0; c < n->nchain; c++) {
        const struct task *e = &w->task[n->chain[c].task];
        for (int i = 0; i < e->nops; i++) {
            const struct opnd *o = &e->op[i];
            struct region r;
            if (!chain_needs_hold(n, c, i) || graph_is_static(w->m, o->memory) ||
                chain_takes_over(w, &n->plan, n, c, i).follower >= 0)
                continue;
            chain_region(w, &n->plan, n, e, o, &r);
            bytes[o->memory] += slot_bytes(w, o, &r) * 2;
        }
    }
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

/* The members still to be planned divide what is left of each memory. */
static void leave_room(const struct work *w, struct nest *n, const int64_t *used, int others) {
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++) {
        int64_t all = graph_capacity(w->m, m), left = all - used[m];
        n->reserved[m] = 0;
        if (!graph_is_static(w->m, m) && all != INT64_MAX)
            n->reserved[m] = used[m] + left - left / (others + 1);
    }
}

static uint64_t homes_sum(const struct work *w, const struct draft *d, int m) {
    uint64_t sum = 1;
    for (int i = 0; i < d->ntouches; i++) {
        const struct home *h = work_home(w, d->touch[i].buffer);
        if (d->touch[i].member != m) continue;
        sum = hash_add(hash_add(hash_add(sum, d->touch[i].buffer), h->is_tile), home_near(h));
        sum = hash_add(sum, h->elements);
        for (int k = 0; k < w->p->buffer[d->touch[i].buffer].ndims; k++)
            sum = hash_add(hash_add(hash_add(sum, h->extent[k]), h->fold ? h->fold[k] : 0),
                           h->border[k]);
    }
    return sum;
}

static const struct known_plan *known(const struct draft *d, int number, const struct nest *n,
                                      uint64_t homes) {
    const struct known_plan *k = d->known[number];
    for (; k; k = k->next)
        if (k->nprefix == n->nprefix && k->given == n->given && k->homes == homes &&
            k->slid == n->slid && k->summed == n->summed &&
            !memcmp(k->prefix, n->prefix, sizeof *n->prefix * (size_t)n->nprefix) &&
            !memcmp(k->reserved, n->reserved, sizeof k->reserved))
            return k;
    return NULL;
}

/* As nest_plan; windows have plans of their own each time. */
static bool plan_once(struct work *w, const struct moves *moves, struct draft *d, int m) {
    int number = d->part[d->first + m].nest;
    struct nest *n = &d->nest[m];
    if (n->nwindows) return nest_plan(w, moves, n);
    uint64_t homes = homes_sum(w, d, m);
    const struct known_plan *old = known(d, number, n, homes);
    if (old) {
        n->plan = old->plan;
        n->grain_most = old->grain_most;
        n->way_single = old->way_single;
        return old->ok;
    }
    struct known_plan *k = arena_alloc(w->arena, sizeof *k);
    k->nprefix = n->nprefix;
    k->given = n->given;
    k->slid = n->slid;
    k->summed = n->summed;
    k->homes = homes;
    memcpy(k->prefix, n->prefix, sizeof *n->prefix * (size_t)n->nprefix);
    memcpy(k->reserved, n->reserved, sizeof k->reserved);
    k->ok = nest_plan(w, moves, n);
    k->plan = n->plan;
    k->grain_most = n->grain_most;
    k->way_single = n->way_single;
    k->next = d->known[number];
    d->known[number] = k;
    return k->ok;
}

static bool plan_member(struct work *w, const struct moves *moves, struct draft *d,
                        const struct nest_group *g, int m) {
    struct nest *n = &d->nest[m];
    n->steps = STEPS;
    n->group = 1;
    n->leads = draft_first(w, d) == n;
    n->slid = n->summed = 0;
    for (int k = 0; k < d->nshared; k++)
        if (d->shared[k].window.axis >= 0)
            n->slid |= UINT64_C(1) << d->shared[k].window.axis | UINT64_C(1)
                                                                     << d->shared[k].window.shared;
    for (int k = 0; k < g->nprefix; k++)
        if (g->shared[k] >= d->nkept) n->summed |= UINT64_C(1) << g->prefix[k].axis;
    n->given = -1;
    for (int i = 0; i < g->npassed; i++)
        if (g->passed[i].reader == m) n->given = g->passed[i].given;
    if (!n->nwindows) {
        memcpy(n->prefix, g->prefix, sizeof *g->prefix * (size_t)g->nprefix);
        n->nprefix = g->nprefix;
        for (int k = 0; k < n->nprefix && n->is_grid; k++) n->prefix[k].kind = LOOP_PARALLEL;
    }
    struct stmt *keep = windows_open(w, n);
    bool ok = plan_once(w, moves, d, m);
    windows_close(w, n, keep);
    return ok;
}

/* What each turn adds: first fills, and results that go home when the others wait for them. */
static double turn_cycles(const struct work *w, const struct draft *d, const struct nest_group *g) {
    const struct nest *before = NULL;
    double lead = 0, tail = 0;
    bool ordered = true;
    for (int m = 0; m <= d->last - d->first; m++) {
        const struct nest *n = d->in[m] ? draft_nest(w, d, m) : NULL;
        if (!n || n->core < 0) continue;
        bool next = before && nests_in_order(w, before, n);
        double hidden =
            next && price_counts(w, PRICE_OVERLAP) ? last_steps(w, before, g->turns) : 0;
        lead += fmax(0, n->plan.lead - hidden);
        tail += n->plan.tail;
        ordered &= !before || next;
        before = n;
    }
    return lead + (ordered ? 0 : tail);
}

static int nests_left(const struct draft *d, int m) {
    int n = 0;
    while (++m <= d->last - d->first) n += d->in[m] && d->part[d->first + m].nest >= 0;
    return n;
}

static bool windows_begin(struct work *w, const struct draft *d, const struct nest_group *g) {
    struct nest *n = &d->nest[0];
    if (!d->in[0] || !draft_nest(w, d, 0)) return true;
    n->nwindows = 0;
    for (int k = 0; k < d->nshared; k++)
        if (d->shared[k].window.axis >= 0) n->window[n->nwindows++] = d->shared[k].window;
    return !n->nwindows || windows_prefix(w, n, g->prefix, g->nprefix);
}

/* Of the turns those that the busiest instance takes. */
static double instances_part(const struct work *w, const struct draft *d) {
    const struct nest *n = draft_first(w, d);
    if (!n) return 1;
    if (n->is_grid) return grid_part(w, n);
    return n->core >= 0 ? n->plan.share.part : 1;
}

/* Of a grid each unit takes a loop, and every turn begins anew: no borders stay, no windows slide.
 */
static bool suits_grid(const struct work *w, struct draft *d, const struct nest_group *g) {
    const struct nest *n = draft_first(w, d);
    int unit[MAX_PREFIX];
    if (!n || !n->is_grid) return true;
    bool slides = false;
    for (int k = 0; k < d->nshared; k++) slides |= d->shared[k].window.axis >= 0;
    for (int i = 0; i < g->npassed; i++) slides |= g->passed[i].bordered;
    if (slides) d->why = "a grid has no tiles that slide or have borders";
    if (slides) return false;
    for (int k = 0; k < g->nprefix; k++)
        if (g->shared[k] >= d->nkept) {
            d->why = "instances of a grid share no axis that a member sums over";
            return false;
        }
    d->why = "the grid has fewer dimensions";
    return g->nprefix <= grid_units(w, grid_task(w, n), unit);
}

bool group_fits(struct work *w, struct draft *d, struct nest_group *g) {
    d->why = "windows of neighbouring tiles overlap wholly";
    return windows_begin(w, d, g) && group_tiles(w, d, g) && suits_grid(w, d, g);
}

/* What is asked for a turn before is near when its turn comes. */
static void bring_near(struct work *w, const struct nest_group *g) {
    for (int i = 0; i < g->nforeseen; i++) {
        struct home *h = home_own(w, g->foreseen[i].buffer);
        h->asked = true;
        h->near = g->around;
    }
}

/* At least, before the plan of a core in it. */
static double member_least(const struct work *w, const struct draft *d, const struct nest_group *g,
                           int m) {
    const struct nest *n = d->in[m] ? draft_nest(w, d, m) : NULL;
    return n && n->core >= 0 ? part_least(w, d, m) : part_cycles(w, d, d->in[m] ? g : NULL, m);
}

/* It may cost less when arrays are asked for a turn before. */
static bool may_ask_ahead(const struct work *w, const struct moves *moves, const struct draft *d,
                          const struct nest_group *g) {
    struct foreseen first;
    int at = 0;
    return !g->nforeseen && foreseen_next(w, moves, d, g, &at, &first);
}

double group_plan(struct work *w, const struct moves *moves, struct draft *d, struct nest_group *g,
                  double limit) {
    int64_t used[MAX_MEMORIES] = {0};
    double cycles = 0, least = 0;
    if (!group_fits(w, d, g)) return INFINITY;
    bring_near(w, g);
    if (may_ask_ahead(w, moves, d, g)) limit = INFINITY;
    for (int m = 0; m <= d->last - d->first; m++) least += member_least(w, d, g, m);
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++) used[m] = group_room(w, g, m);
    for (int m = 0; m <= d->last - d->first; m++) {
        if (!d->in[m] || !draft_nest(w, d, m)) continue;
        d->why = "price";
        if (least >= limit) return INFINITY;
        least -= member_least(w, d, g, m);
        leave_room(w, &d->nest[m], used, nests_left(d, m));
        if (!plan_member(w, moves, d, g, m)) {
            d->why = "no plan of a nest fits beside the others";
            return INFINITY;
        }
        add_holds(w, &d->nest[m], used);
        least += part_cycles(w, d, g, m);
    }
    for (int m = 0; m <= d->last - d->first; m++)
        cycles += part_cycles(w, d, d->in[m] ? g : NULL, m);
    d->why = "price";
    double turns = price_counts(w, PRICE_MEETINGS) ? g->turns * instances_part(w, d) - 1 : 0;
    return cycles + fmax(0, turns * turn_cycles(w, d, g));
}
