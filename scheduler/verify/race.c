/* Vector clocks over queues. Program order is one execution in which every pop finds its token; a
 * pair of accesses that the clocks do not order may happen either way round when queues run ahead.
 */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool race_same(const struct verify *v, const int64_t *a, const int64_t *b, int unit) {
    for (; unit >= 0; unit = v->m->unit[unit].parent)
        if (a[unit] != b[unit]) return false;
    return true;
}

static int unit_of(const struct verify *v, int queue, int unit) {
    return queue >= 0 ? v->m->queue[queue].unit : unit;
}

static int find_queue(const struct verify *v, int queue, int unit, int completes) {
    for (int q = 0; q < v->nqueues; q++)
        if (!v->queue[q]->left && v->queue[q]->queue == queue &&
            v->queue[q]->completes == completes && race_same(v, v->queue[q]->inst, v->inst, unit))
            return q;
    return -1;
}

/* The number of one that is left, with its count, or a new one. */
static int free_queue(struct verify *v, int queue, int completes) {
    for (int q = 0; q < v->nqueues; q++)
        if (v->queue[q]->left && v->queue[q]->queue == queue && v->queue[q]->completes == completes)
            return q;
    if (v->nqueues == MAX_QUEUES) return -1;
    struct queue_instance *q = v->queue[v->nqueues] = arena_alloc(&v->arena, sizeof *q);
    q->queue = queue;
    q->completes = completes;
    q->inst = arena_array(&v->arena, (size_t)v->m->nunits, sizeof *q->inst);
    return v->nqueues++;
}

static int make_queue(struct verify *v, int queue, int completes) {
    int qi = free_queue(v, queue, completes);
    if (qi < 0) {
        verify_limit(v, "more than %d instances of queues cannot be verified", MAX_QUEUES);
        return MAX_QUEUES - 1;
    }
    struct queue_instance *q = v->queue[qi];
    uint32_t counted = q->clock[qi];
    memcpy(q->clock, v->at_barrier, sizeof q->clock); /* it starts after what that saw */
    if (counted > q->clock[qi]) q->clock[qi] = counted;
    memcpy(q->inst, v->inst, (size_t)v->m->nunits * sizeof *q->inst);
    q->generation = v->generation;
    q->left = false;
    return qi;
}

uint16_t race_enter(struct verify *v) {
    uint16_t around = v->generation;
    v->generations = v->generations == UINT16_MAX ? 1 : v->generations + 1;
    v->generation = v->generations;
    return around;
}

/* Nobody meets its queues again before all have met: their numbers are free. */
void race_leave(struct verify *v, uint16_t around) {
    for (int q = 0; q < v->nqueues; q++)
        if (v->queue[q]->generation == v->generation) v->queue[q]->left = true;
    v->generation = around;
}

int race_queue(struct verify *v, int queue, int unit) {
    int q = find_queue(v, queue, unit_of(v, queue, unit), -1);
    return q >= 0 ? q : make_queue(v, queue, -1);
}

int race_behind(struct verify *v, int qi, int completes) {
    int queue = v->queue[qi]->queue;
    return queue < 0 ? -1 : find_queue(v, queue, unit_of(v, queue, -1), completes);
}

int race_start_behind(struct verify *v, int qi, int completes) {
    int b = race_behind(v, qi, completes);
    if (b < 0) b = make_queue(v, v->queue[qi]->queue, completes);
    race_join(v, v->queue[b]->clock, v->queue[qi]->clock);
    v->queue[b]->clock[b]++;
    return b;
}

/* Does hardware keep program order from an access of queue a to one of queue b? */
static bool hardware_orders(const struct verify *v, const struct queue_instance *a,
                            const struct queue_instance *b) {
    if (a->queue < 0 || b->queue < 0)
        return a->completes < 0 && race_same(v, a->inst, b->inst, unit_of(v, b->queue, 0));
    if (a->completes < 0 && v->m->queue[a->queue].data_order && v->m->queue[b->queue].data_order &&
        race_same(v, a->inst, b->inst, v->m->queue[b->queue].unit))
        return true;
    for (int s = 0; s < v->m->nsyncs; s++) {
        const struct sync *y = &v->m->sync[s];
        if (y->kind == SYNC_INTERLOCK && (a->completes < 0 || y->asynchronous) &&
            y->from >> a->queue & 1 && y->to >> b->queue & 1 && race_same(v, a->inst, b->inst, y->unit))
            return true;
    }
    return false;
}

/* One of the iterations of a virtual unit that stood inside this one and are over: all have met
 * then. They were counted later. */
static bool stood_inside(const struct verify *v, uint16_t mine, uint16_t other) {
    return v->generation == mine && (uint16_t)(other - mine) <= INT16_MAX;
}

/* Iterations of a virtual unit that took the same numbers know of each other what was known before.
 */
bool race_knows(const struct verify *v, int qi, struct epoch e) {
    uint16_t mine = v->queue[qi]->generation;
    if (e.clock == 0) return true;
    if (mine && e.generation && mine != e.generation && !stood_inside(v, mine, e.generation))
        return v->begin[e.queue] >= e.clock;
    return e.queue == qi || v->queue[qi]->clock[e.queue] >= e.clock;
}

static bool same_iteration(const struct verify *v, struct epoch e) {
    return v->queue[e.queue]->generation == e.generation && !v->queue[e.queue]->left;
}

static bool ordered(struct verify *v, struct epoch e, int qi) {
    if (race_knows(v, qi, e)) return true;
    if (!same_iteration(v, e) || !hardware_orders(v, v->queue[e.queue], v->queue[qi])) return false;
    v->queue[qi]->clock[e.queue] = e.clock;
    return true;
}

const char *race_name(const struct verify *v, int qi) {
    int queue = v->queue[qi]->queue;
    return queue < 0 ? "the fallback's" : v->m->queue[queue].id;
}

static const char *memory_text(const struct verify *v, int memory) {
    int n = v->m->nmemories;
    return memory < n ? v->m->memory[memory].id : v->m->state[memory - n].id;
}

static const char *part_text(const struct verify *v, int memory) {
    return memory < v->m->nmemories ? "byte" : "slot";
}

static void report(struct verify *v, int qi, struct place_at at, struct epoch other,
                   const char *what, const char *before) {
    verify_error(v,
                 "queue '%s' %s %s %" PRId64
                 " of %s '%s', which queue '%s' %s without a sync between them",
                 race_name(v, qi), what, part_text(v, at.memory), at.address,
                 at.memory < v->m->nmemories ? "memory" : "state", memory_text(v, at.memory),
                 race_name(v, other.queue), before);
}

static void note_read(struct verify *v, struct granule *g, int qi, struct epoch now) {
    struct epoch *spare = NULL;
    for (int k = 0; k < 4; k++) {
        struct epoch *e = &g->read[k];
        if (e->clock && e->queue == qi && e->generation == now.generation) {
            e->clock = now.clock;
            return;
        }
        if (!spare && race_knows(v, qi, *e)) spare = e;
    }
    if (spare)
        *spare = now;
    else
        g->crowd = v->barriers + 1;
}

bool race_granule(struct verify *v, struct granule *g, int qi, struct place_at at, bool write) {
    struct epoch now = {v->queue[qi]->clock[qi], (int16_t)qi, v->queue[qi]->generation};
    if (!ordered(v, g->write, qi)) {
        report(v, qi, at, g->write, write ? "writes" : "reads", "writes");
        return false;
    }
    if (!write) {
        note_read(v, g, qi, now);
        return true;
    }
    for (int k = 0; k < 4; k++) {
        if (ordered(v, g->read[k], qi)) continue;
        report(v, qi, at, g->read[k], "writes", "reads");
        return false;
    }
    if (g->crowd == v->barriers + 1) {
        verify_error(v,
                     "queue '%s' writes byte %" PRId64
                     " of memory '%s', which many queues read without a sync between them",
                     race_name(v, qi), at.address, memory_text(v, at.memory));
        return false;
    }
    *g = (struct granule){.write = now};
    return true;
}

void race_access(struct verify *v, int qi, struct place_at at, int64_t bytes, bool write) {
    if (!v->races_matter || bytes <= 0) return;
    int64_t word = v->word[at.memory];
    int64_t first = at.address / word, last = (at.address + bytes - 1) / word;
    for (int64_t k = first; k <= last; k++) {
        uint64_t key = granule_key(at.memory, at.instance, k / PAGE_ENTRIES);
        struct granule *page = pages_get(&v->races, key, NULL);
        struct place_at where = {at.memory, at.instance, k * word};
        if (!race_granule(v, &page[k % PAGE_ENTRIES], qi, where, write)) return;
    }
    verify_step(v, last - first);
}

void race_join(struct verify *v, uint32_t *clock, const uint32_t *other) {
    for (int k = 0; k < v->nqueues; k++)
        if (other[k] > clock[k]) clock[k] = other[k];
}

/* A parallel loop, or a section, begins and ends when all queues are done. */
/* Is the queue one of the instances that are walked? */
static bool walked(const struct verify *v, const struct queue_instance *q) {
    for (int u = 0; u < v->m->nunits; u++)
        if (v->shared[u] && q->inst[u] != v->inst[u]) return false;
    return true;
}

/* The readers that a granule has no room for count until all queues have met. */
void race_barrier(struct verify *v) {
    for (int q = 0; q < v->nqueues; q++)
        if (walked(v, v->queue[q])) race_join(v, v->at_barrier, v->queue[q]->clock);
    for (int q = 0; q < v->nqueues; q++)
        if (walked(v, v->queue[q])) race_join(v, v->queue[q]->clock, v->at_barrier);
    if (!v->nshared) v->barriers++;
}

/* A machine whose queues hardware keeps in order, run by one thread, has no races. */
void race_init(struct verify *v) {
    const struct machine *m = v->m;
    for (int a = 0; a < m->nqueues && !v->races_matter; a++)
        for (int b = 0; b < m->nqueues; b++) {
            struct queue_instance x = {.queue = a, .completes = -1, .inst = v->inst},
                                  y = {.queue = b, .completes = -1, .inst = v->inst};
            if (a != b && !hardware_orders(v, &x, &y)) v->races_matter = true;
        }
    for (int i = 0; i < m->ninstrs; i++) v->races_matter |= m->instr[i].completes >= 0;
}
