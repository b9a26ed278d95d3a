/* Signals in time: tokens, groups, and where queues meet (fences, barriers). Program order, in
 * which instructions enter their queues, says which groups a pop means and what stands before a
 * meeting. */
#include "scheduler/clock/clock_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct signals *signals_of(const struct node *n) {
    return n->kind == NODE_ISSUE       ? &n->issue->signals
           : n->kind == NODE_FALLBACK  ? &n->fallback->signals
           : n->kind == NODE_CONFIGURE ? &n->configure->signals
                                       : &n->sync.signals;
}

static enum sync_kind kind_of(const struct engine *e, const struct signal *g) {
    return e->machine->sync[g->sync].kind;
}

/* ---- channels ---- */

static int channel_now(const struct engine *e, const struct signal *g) {
    if (!g->rotating) return e->channel[g->sync] + g->channel;
    int64_t slot = e->slot[g->rotating - 1] < 0 ? 0 : e->slot[g->rotating - 1];
    return e->channel[g->sync] +
           (int)((slot + g->channel) % e->schedule->place[g->rotating - 1].slots);
}

/* Signals to and from a host beside a device cost the device nothing. */
static bool of_host(const struct engine *e, const struct sync *s) {
    for (int q = 0; q < e->machine->nqueues; q++)
        if (e->is_host[q] && ((s->from | s->to) >> q & 1)) return e->joined;
    return false;
}

/* A sync of the device's that only hears or tells the host: no instruction of the device. */
bool signals_are_host(const struct engine *e, const struct executed *x) {
    const struct signals *g = signals_of(x->node);
    if (x->node->kind != NODE_SYNC || g->npops + g->npushes == 0) return false;
    for (int i = 0; i < g->npops; i++)
        if (!of_host(e, &e->machine->sync[g->pop[i].sync])) return false;
    for (int i = 0; i < g->npushes; i++)
        if (!of_host(e, &e->machine->sync[g->push[i].sync])) return false;
    return true;
}

static double latency_of(const struct engine *e, const struct signal *g) {
    const struct sync *s = &e->machine->sync[g->sync];
    return of_host(e, s) ? 0 : s->latency;
}

/* ---- tokens ---- */

static double token_at(const struct sync_time *s, int k) {
    return s->at[(s->head + k) % s->room];
}

static void token_room(struct sync_time *s) {
    if (s->count < s->room) return;
    int room = s->room ? 2 * s->room : 16;
    double *moved = memory_bytes((size_t)room * sizeof *moved);
    for (int i = 0; i < s->count; i++) moved[i] = token_at(s, i);
    free(s->at);
    s->at = moved, s->head = 0, s->room = room;
}

/* Kept in the order of their arrival. */
static void token_push(struct sync_time *s, double at) {
    token_room(s);
    int k = s->count++;
    for (; k > 0 && token_at(s, k - 1) > at; k--)
        s->at[(s->head + k) % s->room] = token_at(s, k - 1);
    s->at[(s->head + k) % s->room] = at;
}

/* Earlier pops of the same channel in the same list. */
static int pops_before(const struct engine *e, const struct executed *x, int i) {
    int n = 0;
    for (int k = 0; k < i; k++)
        n += x->pop[k].channel == x->pop[i].channel &&
             kind_of(e, &signals_of(x->node)->pop[k]) == SYNC_TOKEN;
    return n;
}

static bool token_time(const struct engine *e, const struct executed *x, int i, double *at) {
    const struct sync_time *s = &e->sync[x->pop[i].channel];
    int k = pops_before(e, x, i);
    if (s->count <= k) return false;
    return *at = token_at(s, k), true;
}

static void token_peak(struct engine *e, int sync, const struct sync_time *s, double at) {
    int n = 0;
    while (n < s->count && token_at(s, n) <= at) n++;
    if (e->counting && n > e->result->sync[sync].peak) e->result->sync[sync].peak = n;
}

/* ---- groups: numbered in program order; at[k]: when groups 0 to k are all complete ---- */

static void group_close(struct sync_time *s, int64_t number, double at) {
    while (s->room <= number) {
        int room = s->room ? 2 * s->room : 16;
        s->at = memory_grow(s->at, (size_t)room * sizeof *s->at);
        for (int k = s->room; k < room; k++) s->at[k] = -1;
        s->room = room;
    }
    s->at[number] = at;
    while (s->count < s->room && s->at[s->count] >= 0) {
        if (s->count > 0) s->at[s->count] = fmax(s->at[s->count], s->at[s->count - 1]);
        s->count++;
    }
}

/* The pop waits for groups 0 to number - 1. */
static bool group_time(const struct engine *e, const struct executed *x, int i, double *at) {
    const struct sync_time *s = &e->sync[x->pop[i].channel];
    int64_t n = x->pop[i].number;
    if (n <= 0) return *at = 0, true;
    if (s->count < n) return false;
    *at = s->at[n - 1] + latency_of(e, &signals_of(x->node)->pop[i]);
    return true;
}

/* What was before a parallel loop or a section is complete. */
void signals_forget(struct engine *e) {
    for (int s = 0; s < e->machine->nsyncs; s++) {
        if (e->machine->sync[s].kind != SYNC_GROUP) continue;
        for (int c = e->channel[s]; c < e->channel[s + 1]; c++) {
            for (int k = 0; k < e->sync[c].room; k++) e->sync[c].at[k] = -1;
            e->sync[c].count = 0;
            e->sync[c].dispatched = 0;
        }
    }
    for (int q = 0; e->meets && q < e->machine->nqueues; q++)
        for (int k = 0; k < e->machine->nqueues; k++) e->queue[q].barrier[k] = 0;
}

/* ---- meetings ---- */

static bool in_barrier(const struct engine *e, const struct sync *s, int queue) {
    return unit_inside(e->machine, e->machine->queue[queue].unit, s->barrier_unit);
}

static void at_least(int64_t *number, int64_t n) {
    if (n > *number) *number = n;
}

/* A fence waits until earlier instructions of the queues it comes from have left their queues, a
 * barrier until the results of all queues in its unit are visible; what follows in them comes after
 * the barrier. */
static void enter_meetings(struct engine *e, struct executed *x) {
    const struct signals *g = signals_of(x->node);
    int nq = e->machine->nqueues;
    memset(x->left, 0, (size_t)nq * sizeof *x->left);
    memset(x->seen, 0, (size_t)nq * sizeof *x->seen);
    for (int q = 0; q < nq; q++) at_least(&x->left[q], e->queue[x->queue].barrier[q]);
    for (int i = 0; i < g->npops; i++) {
        const struct sync *s = &e->machine->sync[g->pop[i].sync];
        for (int q = 0; q < nq; q++) {
            int64_t before = e->queue[q].dispatched - (q == x->queue);
            if (s->kind == SYNC_FENCE && (s->from >> q & 1)) at_least(&x->left[q], before);
            if (s->kind != SYNC_BARRIER || !in_barrier(e, s, q)) continue;
            at_least(&x->seen[q], before);
            if (q != x->queue) at_least(&e->queue[q].barrier[x->queue], x->number);
        }
    }
}

static bool met(const struct engine *e, const struct executed *x, double *at) {
    const struct signals *g = signals_of(x->node);
    double latency = 0;
    for (int i = 0; e->meets && i < g->npops; i++)
        if (kind_of(e, &g->pop[i]) == SYNC_FENCE || kind_of(e, &g->pop[i]) == SYNC_BARRIER)
            latency = fmax(latency, latency_of(e, &g->pop[i]));
    for (int q = 0; e->meets && q < e->machine->nqueues; q++) {
        const struct queue_time *t = &e->queue[q];
        if (t->ran < x->left[q] || t->ran < x->seen[q]) return false;
        if (x->left[q]) *at = fmax(*at, t->left[x->left[q] % SIM_PAST] + latency);
        if (x->seen[q]) *at = fmax(*at, t->seen[x->seen[q] % SIM_PAST] + latency);
    }
    return true;
}

void signals_ran(struct engine *e, const struct executed *x, double end, double visible) {
    struct queue_time *t = &e->queue[x->queue];
    if (!e->meets) return;
    bool async =
        x->node->kind == NODE_ISSUE && e->machine->instr[x->node->issue->instr].completes >= 0;
    double left = t->left[(x->number - 1) % SIM_PAST], seen = t->seen[(x->number - 1) % SIM_PAST];
    t->left[x->number % SIM_PAST] = fmax(left, end);
    t->seen[x->number % SIM_PAST] = async ? seen : fmax(seen, visible);
}

/* ---- of one instruction ---- */

bool signals_enter(struct engine *e, struct executed *x) {
    const struct signals *g = signals_of(x->node);
    if (g->npops > SIM_SIGNALS || g->npushes > SIM_SIGNALS)
        return engine_error(e, x->node, "more than %d signals cannot be simulated", SIM_SIGNALS);
    for (int i = 0; i < g->npops; i++) {
        x->pop[i].channel = channel_now(e, &g->pop[i]);
        x->pop[i].number = e->sync[x->pop[i].channel].dispatched - g->pop[i].pending;
    }
    for (int i = 0; i < g->npushes; i++) {
        x->push[i].channel = channel_now(e, &g->push[i]);
        x->push[i].number = e->sync[x->push[i].channel].dispatched++;
    }
    if (e->meets && x->queue >= 0) enter_meetings(e, x);
    return true;
}

/* When pop i is satisfied; false: what it waits for has not run. */
bool pop_time(const struct engine *e, const struct executed *x, int i, double *at) {
    enum sync_kind kind = kind_of(e, &signals_of(x->node)->pop[i]);
    *at = 0;
    if (kind == SYNC_TOKEN) return token_time(e, x, i, at);
    return kind != SYNC_GROUP || group_time(e, x, i, at);
}

bool signals_ready(const struct engine *e, const struct executed *x, double *at) {
    const struct signals *g = signals_of(x->node);
    *at = 0;
    for (int i = 0; i < g->npops; i++) {
        double one;
        if (!pop_time(e, x, i, &one)) return false;
        *at = fmax(*at, one);
    }
    return x->queue < 0 || met(e, x, at);
}

void signals_take(struct engine *e, const struct executed *x, double at, double could) {
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npops; i++) {
        double one;
        if (e->counting && pop_time(e, x, i, &one) && one > could)
            e->result->sync[g->pop[i].sync].wait += one - could;
    }
    for (int i = 0; i < g->npops; i++) {
        if (kind_of(e, &g->pop[i]) != SYNC_TOKEN) continue;
        struct sync_time *s = &e->sync[x->pop[i].channel];
        token_peak(e, g->pop[i].sync, s, at);
        s->head = (s->head + 1) % s->room;
        s->count--;
    }
}

void signals_give(struct engine *e, const struct executed *x, double at) {
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npushes; i++) {
        enum sync_kind kind = kind_of(e, &g->push[i]);
        if (kind == SYNC_TOKEN)
            token_push(&e->sync[x->push[i].channel], at + latency_of(e, &g->push[i]));
        if (kind == SYNC_GROUP) group_close(&e->sync[x->push[i].channel], x->push[i].number, at);
        if (e->counting && (kind == SYNC_TOKEN || kind == SYNC_GROUP))
            e->result->sync[g->push[i].sync].pushes++;
    }
}

/* ---- setting up: as many channels as the schedule uses ---- */

static void count_channel(const struct schedule *s, const struct signal *g, int *most) {
    int n = g->rotating ? s->place[g->rotating - 1].slots : g->channel + 1;
    if (n > most[g->sync]) most[g->sync] = n;
}

static void count_signals(const struct schedule *s, const struct signals *g, int *most) {
    for (int i = 0; i < g->npops; i++) count_channel(s, &g->pop[i], most);
    for (int i = 0; i < g->npushes; i++) count_channel(s, &g->push[i], most);
}

static void find_channels(const struct schedule *s, const struct node *node, int n, int *most) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP)
            find_channels(s, node[k].loop->body, node[k].loop->nbody, most);
        else if (node[k].kind != NODE_ROTATE)
            count_signals(s, signals_of(&node[k]), most);
    }
}

void signals_open(struct engine *e) {
    const struct schedule *s = e->schedule;
    int nsyncs = e->machine->nsyncs,
        *most = arena_array(&e->arena, (size_t)nsyncs + 1, sizeof *most);
    find_channels(s, s->prepare.node, s->prepare.nnodes, most);
    find_channels(s, s->run.node, s->run.nnodes, most);
    e->channel = arena_array(&e->arena, (size_t)nsyncs + 1, sizeof *e->channel);
    for (int k = 0; k < nsyncs; k++) {
        e->channel[k] = e->nchannels;
        e->nchannels += most[k];
        e->meets = e->meets || e->machine->sync[k].kind == SYNC_BARRIER ||
                   e->machine->sync[k].kind == SYNC_FENCE;
    }
    e->channel[nsyncs] = e->nchannels;
    e->sync = arena_array(&e->arena, (size_t)e->nchannels + 1, sizeof *e->sync);
    for (int q = 0; e->meets && q < e->machine->nqueues; q++) {
        e->queue[q].left = arena_array(&e->arena, SIM_PAST, sizeof *e->queue[q].left);
        e->queue[q].seen = arena_array(&e->arena, SIM_PAST, sizeof *e->queue[q].seen);
        e->queue[q].barrier =
            arena_array(&e->arena, (size_t)e->machine->nqueues, sizeof *e->queue[q].barrier);
    }
}
