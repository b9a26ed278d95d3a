/* Vector clocks over queues. Program order is one execution in which every pop finds its token; a
 * pair of accesses that the clocks do not order may happen either way round when queues run ahead.
 */
#include "scheduler/verify_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool same_instances(const struct verify *v, const int64_t *a, const int64_t *b, int unit) {
    for (; unit >= 0; unit = v->m->unit[unit].parent)
        if (a[unit] != b[unit]) return false;
    return true;
}

static int unit_of(const struct verify *v, int queue, int unit) {
    return queue >= 0 ? v->m->queue[queue].unit : unit;
}

int race_queue(struct verify *v, int queue, int unit) {
    unit = unit_of(v, queue, unit);
    for (int q = 0; q < v->nqueues; q++)
        if (v->queue[q]->queue == queue && same_instances(v, v->queue[q]->inst, v->inst, unit))
            return q;
    if (v->nqueues == MAX_QUEUES) {
        verify_error(v, "more than %d instances of queues cannot be verified", MAX_QUEUES);
        return MAX_QUEUES - 1;
    }
    struct queue_instance *q = arena_alloc(&v->arena, sizeof *q);
    q->queue = queue;
    q->inst = arena_copy(&v->arena, v->inst, (size_t)v->m->nunits * sizeof *q->inst);
    v->queue[v->nqueues] = q;
    if (v->nqueues > 0) /* it starts after what the last barrier saw */
        for (int k = 0; k < v->nqueues; k++) q->clock[k] = v->at_barrier[k];
    return v->nqueues++;
}

/* Does hardware keep program order from an access of queue a to one of queue b? */
static bool hardware_orders(const struct verify *v, const struct queue_instance *a,
                            const struct queue_instance *b) {
    if (a->queue < 0 || b->queue < 0)
        return same_instances(v, a->inst, b->inst, unit_of(v, b->queue, 0));
    if (v->m->queue[b->queue].data_order &&
        same_instances(v, a->inst, b->inst, v->m->queue[b->queue].unit))
        return true;
    for (int s = 0; s < v->m->nsyncs; s++) {
        const struct sync *y = &v->m->sync[s];
        if (y->kind == SYNC_INTERLOCK && y->from >> a->queue & 1 && y->to >> b->queue & 1 &&
            same_instances(v, a->inst, b->inst, y->unit))
            return true;
    }
    return false;
}

static bool ordered(struct verify *v, struct epoch e, int qi) {
    if (e.clock == 0 || e.queue == qi || v->queue[qi]->clock[e.queue] >= e.clock) return true;
    if (!hardware_orders(v, v->queue[e.queue], v->queue[qi])) return false;
    v->queue[qi]->clock[e.queue] = e.clock;
    return true;
}

static const char *queue_text(const struct verify *v, int qi) {
    int queue = v->queue[qi]->queue;
    return queue < 0 ? "the fallback's" : v->m->queue[queue].id;
}

static void report(struct verify *v, int qi, struct place_at at, struct epoch other,
                   const char *what, const char *before) {
    verify_error(v,
                 "queue '%s' %s byte %" PRId64
                 " of memory '%s', which queue '%s' %s without a sync between them",
                 queue_text(v, qi), what, at.address, v->m->memory[at.memory].id,
                 queue_text(v, other.queue), before);
}

static void note_read(struct verify *v, struct granule *g, int qi, struct epoch now) {
    struct epoch *spare = NULL;
    for (int k = 0; k < 4; k++) {
        struct epoch *e = &g->read[k];
        if (e->clock && e->queue == qi) {
            e->clock = now.clock;
            return;
        }
        if (!spare && (e->clock == 0 || v->queue[qi]->clock[e->queue] >= e->clock)) spare = e;
    }
    if (spare)
        *spare = now;
    else
        g->crowd = v->barriers + 1;
}

static bool access_granule(struct verify *v, struct granule *g, int qi, struct place_at at,
                           bool write) {
    struct epoch now = {v->queue[qi]->clock[qi], (int16_t)qi};
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
                     queue_text(v, qi), at.address, v->m->memory[at.memory].id);
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
        uint64_t key = ((uint64_t)at.memory << 16 | (uint64_t)at.instance) << 40 |
                       (uint64_t)(k / PAGE_ENTRIES);
        struct granule *page = pages_get(&v->races, key, NULL);
        struct place_at where = {at.memory, at.instance, k * word};
        if (!access_granule(v, &page[k % PAGE_ENTRIES], qi, where, write)) return;
    }
    verify_step(v, last - first);
}

/* ---- tokens ---- */
static struct token_channel *channel_of(struct verify *v, const struct signal *g) {
    int instance = (int)verify_instance(v, v->m->sync[g->sync].unit);
    for (struct token_channel *c = v->channels; c; c = c->next)
        if (c->sync == g->sync && c->channel == g->channel && c->instance == instance) return c;
    struct token_channel *c = arena_alloc(&v->arena, sizeof *c);
    c->sync = g->sync;
    c->channel = g->channel;
    c->instance = instance;
    c->next = v->channels;
    return v->channels = c;
}

static void join(uint32_t *clock, const uint32_t *other) {
    for (int k = 0; k < MAX_QUEUES; k++)
        if (other[k] > clock[k]) clock[k] = other[k];
}

static bool one_bit(uint64_t mask) {
    return mask && !(mask & (mask - 1));
}

/* Where several queues push or pop, any token may be the one that is taken: only what all of them
 * say is known. */
static void pop_token(struct verify *v, int qi, struct token_channel *c) {
    const struct sync *y = &v->m->sync[c->sync];
    uint32_t known[MAX_QUEUES];
    memcpy(known, c->token[c->first].clock, sizeof known);
    if (!one_bit(y->from) || !one_bit(y->to))
        for (int t = 1; t < c->n; t++)
            for (int k = 0; k < MAX_QUEUES; k++)
                if (c->token[c->first + t].clock[k] < known[k])
                    known[k] = c->token[c->first + t].clock[k];
    join(v->queue[qi]->clock, known);
    free(c->token[c->first].clock);
    c->first++;
    c->n--;
}

static void push_token(struct verify *v, int qi, struct token_channel *c) {
    const struct sync *y = &v->m->sync[c->sync];
    if (y->depth >= 0 && c->n >= y->depth) {
        verify_error(v, "sync '%s' already holds %" PRId64 " tokens, as many as it can", y->id,
                     y->depth);
        return;
    }
    if (c->first + c->n == c->cap) {
        if (c->first > c->n) {
            memmove(c->token, c->token + c->first, (size_t)c->n * sizeof *c->token);
            c->first = 0;
        } else {
            c->cap = c->cap ? 2 * c->cap : 16;
            c->token = realloc(c->token, (size_t)c->cap * sizeof *c->token);
            if (!c->token) abort();
        }
    }
    uint32_t *clock = malloc(sizeof v->queue[qi]->clock);
    if (!clock) abort();
    memcpy(clock, v->queue[qi]->clock, sizeof v->queue[qi]->clock);
    c->token[c->first + c->n++].clock = clock;
}

/* Groups, barriers and fences: what was pushed before is finished; a barrier or fence needs no
 * push. */
static void meet(struct verify *v, int qi, struct token_channel *c, bool push) {
    const struct sync *y = &v->m->sync[c->sync];
    if (!c->group) c->group = arena_array(&v->arena, MAX_QUEUES, sizeof *c->group);
    if (y->kind == SYNC_GROUP) {
        if (push)
            join(c->group, v->queue[qi]->clock);
        else
            join(v->queue[qi]->clock, c->group);
        return;
    }
    for (int q = 0; q < v->nqueues; q++)
        if (v->queue[q]->queue >= 0 && y->from >> v->queue[q]->queue & 1 &&
            same_instances(v, v->queue[q]->inst, v->inst, y->unit))
            join(v->queue[qi]->clock, v->queue[q]->clock);
}

void race_begin(struct verify *v, int qi, const struct signals *g) {
    for (int k = 0; k < g->npops; k++) {
        struct token_channel *c = channel_of(v, &g->pop[k]);
        const struct sync *y = &v->m->sync[c->sync];
        if (y->kind != SYNC_TOKEN) {
            meet(v, qi, c, false);
        } else if (c->n == 0) {
            verify_error(v,
                         "pop of '%s' finds no token: nothing earlier in program order pushed one, "
                         "so queue '%s' waits for ever",
                         y->id, queue_text(v, qi));
            return;
        } else {
            pop_token(v, qi, c);
        }
    }
    v->queue[qi]->clock[qi]++;
}

void race_push(struct verify *v, int qi, const struct signals *g) {
    for (int k = 0; k < g->npushes; k++) {
        struct token_channel *c = channel_of(v, &g->push[k]);
        if (v->m->sync[c->sync].kind != SYNC_TOKEN)
            meet(v, qi, c, true);
        else
            push_token(v, qi, c);
    }
}

/* A parallel loop, or a section, begins and ends when all queues are done. */
void race_barrier(struct verify *v) {
    for (int q = 0; q < v->nqueues; q++) join(v->at_barrier, v->queue[q]->clock);
    for (int q = 0; q < v->nqueues; q++) join(v->queue[q]->clock, v->at_barrier);
    v->barriers++;
}

void race_section_end(struct verify *v) {
    for (struct token_channel *c = v->channels; c; c = c->next) {
        if (c->n > 0)
            verify_error(v, "%d tokens of sync '%s' are left at the end of the section", c->n,
                         v->m->sync[c->sync].id);
        while (c->n > 0) free(c->token[c->first + --c->n].clock);
        free(c->token);
        c->token = NULL;
        c->first = c->cap = 0;
    }
    race_barrier(v);
}

/* A machine whose queues hardware keeps in order, run by one thread, has no races. */
void race_init(struct verify *v) {
    const struct machine *m = v->m;
    for (int a = 0; a < m->nqueues && !v->races_matter; a++)
        for (int b = 0; b < m->nqueues; b++) {
            struct queue_instance x = {.queue = a, .inst = v->inst},
                                  y = {.queue = b, .inst = v->inst};
            if (a != b && !hardware_orders(v, &x, &y)) v->races_matter = true;
        }
}
