#include "scheduler/cost.h"
#include "ir/number.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

#include <math.h>
#include <string.h>

/* How often the statement is executed, as far as it is known; *open: bit k, as often as size k says
 * besides. */
static double turns_of(const struct work *w, int stmt, uint64_t *open) {
    double turns = 1;
    *open = 0;
    for (int k = w->p->stmt[stmt].scope - 1; k >= 0; k = w->scope[k].parent) {
        const struct axis *a = &w->p->axis[w->scope[k].axis];
        if (a->size && !a->rest) *open |= UINT64_C(1) << (a->size - 1);
        if (a->rest)
            turns *= (double)(a->group - 1) / 2; /* on average */
        else if (a->size)
            turns /= a->group ? (double)a->group : 1;
        else
            turns *= (double)axis_steps(a);
    }
    return turns;
}

static double most_turns(const struct work *w, int stmt) {
    uint64_t open;
    double turns = turns_of(w, stmt, &open);
    for (int k = 0; k < w->p->nsizes; k++)
        if (open >> k & 1) turns *= (double)w->p->size[k].hi;
    return turns;
}

/* Cycles of one execution of the statement, in each of its turns, and what bounds them; NULL. */
static void add(struct work *w, int stmt, double cycles, const char *bound) {
    struct schedule *s = w->s;
    s->forecast[stmt].cycles += most_turns(w, stmt) * cycles;
    if (bound) s->forecast[stmt].bound = bound;
    uint64_t open;
    double turns = turns_of(w, stmt, &open);
    if (!open) {
        s->cost += turns * cycles;
        return;
    }
    int k = 0;
    while (k < s->nopen && s->open[k].sizes != open) k++;
    if (k == s->nopen) {
        struct open_cost *all = arena_array(&s->arena, (size_t)k + 1, sizeof *all);
        if (k) memcpy(all, s->open, sizeof *all * (size_t)k);
        all[s->nopen++].sizes = open;
        s->open = all;
    }
    s->open[k].cycles += turns * cycles;
}

static int nest_queue(const struct work *w, const struct nest *n) {
    return w->task[nest_head(n)].needle->in->queue;
}

/* Of the fallback's statements; device: they are beside one, which takes its own time. */
static double fallback_sum(struct work *w, bool device) {
    double sum = 0;
    for (int i = 0; i < w->norder && w->fallback >= 0; i++) {
        int s = w->order[i];
        if (w->task_of[s] != -1 || w->in_prepare[s] || w->group_of[s]) continue;
        double cycles = feeds_have(w, s) ? feeds_cycles(w, s) : host_cycles(w, s);
        if (device)
            sum += most_turns(w, s) * cycles;
        else
            add(w, s, cycles, "element by element");
    }
    return sum;
}

/* The statement at which the group's own part of the run stands. */
static int lead_of(const struct nest_group *g) {
    int m = 0;
    while (m < g->n - 1 && g->member[m].before) m++;
    return g->member[m].stmt;
}

/* What is known of the turns alone: a bound from below. */
static double least_turns(const struct work *w, int stmt) {
    uint64_t open;
    double turns = turns_of(w, stmt, &open);
    return open ? 0 : turns;
}

static uint64_t nests_unsearched(struct work *w) {
    struct arena scratch;
    uint64_t hash = 1;
    arena_init(&scratch);
    for (int i = 0; i < w->nnests; i++)
        if (w->nest[i].core < 0)
            hash = hash_add(hash, (int64_t)nest_key(w, &w->nest[i], &scratch).hash);
    arena_free(&scratch);
    return hash;
}

void cost_begin(struct work *w) {
    int device = -1;
    double sum = 0;
    for (int i = 0; i < w->nnests && device < 0; i++)
        if (graph_apart(w->m, nest_queue(w, &w->nest[i]))) device = nest_queue(w, &w->nest[i]);
    for (int i = 0; i < w->norder && w->fallback >= 0 && device >= 0; i++)
        if (w->task_of[w->order[i]] == -1 && !w->in_prepare[w->order[i]])
            sum += most_turns(w, w->order[i]) * host_cycles(w, w->order[i]);
    w->on_host = sum > 0 ? host_in_cycles(w, device, sum) : 0;
    w->planned = (struct planned){w->on_host, nests_unsearched(w)};
    memset(w->alone, 0, sizeof w->alone);
}

void cost_plan(struct work *w, const struct nest *n, double cycles, double alone) {
    double grid = grid_part(w, n);
    w->planned.cycles += most_turns(w, n->first) * cycles * grid;
    w->alone[nest_queue(w, n)] += least_turns(w, n->first) * alone * grid;
}

/* The rate at which so many bytes come: that of the home, or of the cache for all units that keeps
 * them from one run to the next; 0: no limit is stated, or a unit's own cache keeps them. */
static double rate_of(const struct machine *m, double bytes) {
    double rate = m->memory[m->home].rate;
    for (int k = 0; k < m->nmemories; k++) {
        if (m->memory[k].caches < 0 || bytes > (double)m->memory[k].size) continue;
        if (m->memory[k].unit > 0) return 0;
        rate = m->memory[k].rate;
    }
    return rate;
}

/* Bytes of the array that the nest reads, or that it leaves at home. */
static double passing_bytes(const struct work *w, const struct nest *n, int buffer) {
    bool made = nest_maker(w, n, buffer) >= 0;
    double most = 0;
    if (made && !needs_home(w, n, buffer)) return 0;
    for (int i = 0; i < nest_ntasks(n); i++) {
        const struct stmt *st = &w->p->stmt[w->task[nest_task(n, i)].stmt];
        for (int r = -1; r < st->nreads; r++) {
            const struct access *acc = r < 0 ? &st->dst : &st->read[r];
            if (acc->buffer == buffer) most = fmax(most, access_bytes(w->p, st, acc));
        }
    }
    return most;
}

/* What a nest that has no plan takes at least: what it reads or leaves passes once. */
static double passing_cycles(const struct work *w, const struct nest *n) {
    double bytes = 0;
    for (int b = 0; b < w->p->nbuffers; b++) bytes += passing_bytes(w, n, b);
    double rate = rate_of(w->m, bytes);
    return rate > 0 ? bytes / rate : 0;
}

void cost_sum(struct work *w) {
    int device = -1; /* a queue of it */
    double busy[MAX_QUEUES] = {0};
    w->s->forecast = arena_array(&w->s->arena, (size_t)w->p->nstmts + 1, sizeof *w->s->forecast);
    for (int i = 0; i < w->nnests; i++) {
        const struct nest *n = &w->nest[i];
        int queue = nest_queue(w, n);
        if (w->fallback >= 0 && graph_apart(w->m, queue)) device = queue;
        if (n->group) continue;
        double grid = grid_part(w, n);
        double alone = n->core >= 0 ? most_turns(w, n->first) * n->plan.alone * grid : 0;
        if (n->core >= 0 || n->plan.predicted > 0)
            add(w, n->first, n->plan.predicted * grid, n->plan.bound);
        w->s->alone += alone;
        w->s->forecast[n->first].alone += alone;
        if (n->core >= 0) busy[queue] += least_turns(w, n->first) * n->plan.alone * grid;
        w->s->least = fmax(w->s->least, busy[queue]);
        double part = n->plan.share.n ? n->plan.share.part : grid;
        bool priced = n->core >= 0 ? !n->plan.is_static : n->plan.predicted > 0;
        double chain = 0;
        for (int k = 0; k < n->nchain && !priced; k++)
            chain += part * task_cost(w, n->chain[k].task);
        if (chain > 0) add(w, n->first, fmax(chain, passing_cycles(w, n)), NULL);
    }
    for (int i = 0; i < w->ngroups; i++)
        if (w->group[i].n) add(w, lead_of(&w->group[i]), w->group[i].cycles, "a group");
    double fallback = fallback_sum(w, device >= 0);
    if (device < 0) return;
    w->s->host = host_in_cycles(w, device, fallback);
    w->s->host_rate = 1 / host_in_cycles(w, device, 1);
}
