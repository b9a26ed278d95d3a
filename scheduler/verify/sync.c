/* Signals between the clocks of queues: tokens, groups, barriers, fences (docs/schedule.md,
 * "Signals"). */
#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct token_channel *channel_of(struct verify *v, const struct signal *g) {
    int instance = (int)verify_instance(v, v->m->sync[g->sync].unit), channel = g->channel;
    if (g->rotating)
        channel =
            (verify_slot(v, g->rotating - 1) + g->channel) % v->s->place[g->rotating - 1].slots;
    for (struct token_channel *c = v->channels; c; c = c->next)
        if (c->sync == g->sync && c->channel == channel && c->instance == instance) return c;
    struct token_channel *c = arena_alloc(&v->arena, sizeof *c);
    c->sync = g->sync;
    c->channel = channel;
    c->instance = instance;
    c->next = v->channels;
    return v->channels = c;
}

/* The out-of-order queues of a host are one program: what one of them waits for holds them all, and
 * what one says is said when all before it is done. */
static void join_program(struct verify *v, int qi, const uint32_t *heard, uint32_t *said) {
    int queue = v->queue[qi]->queue;
    if (queue < 0 || !v->m->queue[queue].data_order || !machine_queue_is_host(v->m, queue)) return;
    for (int q = 0; q < v->m->nqueues; q++) {
        if (!v->m->queue[q].data_order || v->m->queue[q].unit != v->m->queue[queue].unit) continue;
        struct queue_instance *other = v->queue[race_queue(v, q, -1)];
        if (heard) race_join(v, other->clock, heard);
        if (said) race_join(v, said, other->clock);
    }
}

/* What a push says, of the queues so far: all before it in its queue, and behind the queue what
 * that sync completes. */
static void said_by(struct verify *v, int qi, int sync, uint32_t *clock) {
    int behind = race_behind(v, qi, sync);
    join_program(v, qi, NULL, NULL); /* its queues are met */
    memcpy(clock, v->queue[qi]->clock, (size_t)v->nqueues * sizeof *clock);
    join_program(v, qi, NULL, clock);
    if (behind >= 0) race_join(v, clock, v->queue[behind]->clock);
}

/* ---- objects: those of a sync held in memory lie at the end of that memory ---- */

static void count_channels(const struct verify *v, const struct signals *g, int64_t *most) {
    for (int k = 0; k < g->npops + g->npushes; k++) {
        const struct signal *one = k < g->npops ? &g->pop[k] : &g->push[k - g->npops];
        int64_t n = one->rotating ? v->s->place[one->rotating - 1].slots : one->channel + 1;
        if (n > most[one->sync]) most[one->sync] = n;
    }
}

static void count_all(const struct verify *v, const struct node *node, int n, int64_t *most) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP)
            count_all(v, node[k].loop->body, node[k].loop->nbody, most);
        else if (node[k].kind == NODE_ISSUE)
            count_channels(v, &node[k].issue->signals, most);
        else if (node[k].kind == NODE_FALLBACK)
            count_channels(v, &node[k].fallback->signals, most);
        else if (node[k].kind == NODE_SYNC)
            count_channels(v, &node[k].sync.signals, most);
        else if (node[k].kind == NODE_CONFIGURE)
            count_channels(v, &node[k].configure->signals, most);
    }
}

bool sync_objects_fit(struct verify *v) {
    const struct schedule *s = v->s;
    int64_t *most = arena_array(&v->arena, (size_t)v->m->nsyncs + 1, sizeof *most);
    count_all(v, s->prepare.node, s->prepare.nnodes, most);
    count_all(v, s->run.node, s->run.nnodes, most);
    for (int m = 0; m < v->m->nmemories; m++) {
        int64_t objects = 0;
        for (int k = 0; k < v->m->nsyncs; k++)
            if (v->m->sync[k].memory == m) objects += most[k] * v->m->sync[k].size;
        for (int p = 0; objects && v->m->memory[m].size >= 0 && p < s->nplaces; p++) {
            const struct place *x = &s->place[p];
            if (x->memory != m ||
                x->address + x->bytes * x->slots + objects <= v->m->memory[m].size)
                continue;
            return verify_error(v,
                                "place '%s' ends at byte %" PRId64
                                " of memory '%s', whose last %" PRId64 " bytes of %" PRId64
                                " hold the objects of syncs",
                                x->name, x->address + x->bytes * x->slots, v->m->memory[m].id,
                                objects, v->m->memory[m].size);
        }
    }
    return true;
}

/* ---- tokens ---- */

/* Objects in memory do not hold up who pushes: a push before the token that lay there was taken
 * loses one. */
static bool keeps_up(const struct verify *v, const struct token_channel *c) {
    const struct sync *y = &v->m->sync[c->sync];
    return y->memory >= 0 && y->depth > 0 && y->depth <= 4096;
}

/* Of several queues that give or take on one channel each must know that the one before has done
 * so: else who comes first decides which token is taken. */
static bool in_turn(struct verify *v, int qi, const struct token_channel *c, struct epoch before,
                    const char *does) {
    if (!before.clock || before.queue == qi || race_knows(v, qi, before)) return true;
    verify_error(v, "queue '%s' %s sync '%s' without knowing that queue '%s' did so before",
                 race_name(v, qi), does, v->m->sync[c->sync].id, race_name(v, before.queue));
    return false;
}

static void pop_token(struct verify *v, int qi, struct token_channel *c) {
    const struct sync *y = &v->m->sync[c->sync];
    struct token *first = &c->token[c->first];
    if (!in_turn(v, qi, c, c->taken, "takes a token of")) return;
    c->taken = (struct epoch){v->queue[qi]->clock[qi] + 1, (int16_t)qi, v->queue[qi]->generation};
    uint32_t known[MAX_QUEUES] = {0};
    memcpy(known, first->clock, (size_t)first->n * sizeof *known);
    race_join(v, v->queue[qi]->clock, known);
    free(first->clock);
    c->first++;
    c->n--;
    if (keeps_up(v, c)) {
        if (!c->popped) c->popped = arena_array(&v->arena, (size_t)y->depth, sizeof *c->popped);
        c->popped[c->pops % y->depth] = c->taken;
    }
    c->pops++;
}

static void token_room(struct token_channel *c) {
    if (c->first + c->n < c->cap) return;
    if (c->first > c->n) {
        memmove(c->token, c->token + c->first, (size_t)c->n * sizeof *c->token);
        c->first = 0;
        return;
    }
    c->cap = c->cap ? 2 * c->cap : 16;
    c->token = memory_grow(c->token, (size_t)c->cap * sizeof *c->token);
}

static void push_token(struct verify *v, int qi, struct token_channel *c) {
    const struct sync *y = &v->m->sync[c->sync];
    if (y->depth >= 0 && c->n >= y->depth) {
        verify_error(v, "sync '%s' already holds %" PRId64 " tokens, as many as it can", y->id,
                     y->depth);
        return;
    }
    if (keeps_up(v, c) && c->popped && c->pushes >= y->depth &&
        !race_knows(v, qi, c->popped[c->pushes % y->depth])) {
        verify_error(v,
                     "queue '%s' pushes '%s' again without knowing that queue '%s' took the token "
                     "before",
                     race_name(v, qi), y->id, race_name(v, c->popped[c->pushes % y->depth].queue));
        return;
    }
    if (!in_turn(v, qi, c, c->given, "pushes")) return;
    c->given = (struct epoch){v->queue[qi]->clock[qi], (int16_t)qi, v->queue[qi]->generation};
    token_room(c);
    uint32_t said[MAX_QUEUES];
    said_by(v, qi, c->sync, said);
    size_t bytes = (size_t)v->nqueues * sizeof *said;
    struct token t = {.clock = memory_bytes(bytes), .n = v->nqueues};
    memcpy(t.clock, said, bytes);
    c->token[c->first + c->n++] = t;
    c->pushes++;
}

/* ---- groups ---- */

static void push_group(struct verify *v, int qi, struct token_channel *c) {
    const struct sync *y = &v->m->sync[c->sync];
    struct group *g = c->groups;
    while (g && g->queue != qi) g = g->next;
    if (!g) {
        g = arena_alloc(&v->arena, sizeof *g);
        g->queue = qi;
        g->next = c->groups;
        c->groups = g;
    }
    if (y->depth >= 0 && g->n - g->waited >= y->depth) {
        verify_error(v,
                     "sync '%s' already holds %" PRId64
                     " groups that nothing waited for, as many as it can",
                     y->id, y->depth);
        return;
    }
    uint32_t **clock = &g->clock[g->n % MAX_GROUPS];
    if (!*clock) *clock = arena_array(&v->arena, MAX_QUEUES, sizeof **clock);
    said_by(v, qi, c->sync, *clock);
    g->n++;
}

static void pop_group(struct verify *v, int qi, struct token_channel *c, int pending) {
    for (struct group *g = c->groups; g; g = g->next) {
        int64_t done = g->n - pending;
        if (done > g->waited) g->waited = done;
        if (done > 0 && g->n - done < MAX_GROUPS)
            race_join(v, v->queue[qi]->clock, g->clock[(done - 1) % MAX_GROUPS]);
    }
}

/* ---- meetings: what runs behind queues is no part of them ---- */

static void pop_fence(struct verify *v, int qi, const struct sync *y) {
    for (int q = 0; q < v->nqueues; q++)
        if (v->queue[q]->queue >= 0 && v->queue[q]->completes < 0 &&
            y->from >> v->queue[q]->queue & 1 && race_same(v, v->queue[q]->inst, v->inst, y->unit))
            race_join(v, v->queue[qi]->clock, v->queue[q]->clock);
}

static void pop_barrier(struct verify *v, const struct sync *y) {
    int unit = y->barrier_unit;
    uint32_t all[MAX_QUEUES] = {0};
    for (int q = 0; q < v->m->nqueues; q++)
        if (unit_inside(v->m, v->m->queue[q].unit, unit)) race_queue(v, q, -1);
    for (int pass = 0; pass < 2; pass++)
        for (int q = 0; q < v->nqueues; q++) {
            const struct queue_instance *x = v->queue[q];
            if (x->queue < 0 || x->completes >= 0 ||
                !unit_inside(v->m, v->m->queue[x->queue].unit, unit) ||
                !race_same(v, x->inst, v->inst, unit))
                continue;
            if (pass == 0)
                race_join(v, all, x->clock);
            else
                race_join(v, v->queue[q]->clock, all);
        }
}

/* ---- instructions ---- */

static bool pop_one(struct verify *v, int qi, const struct signal *g) {
    const struct sync *y = &v->m->sync[g->sync];
    if (y->kind == SYNC_FENCE) {
        pop_fence(v, qi, y);
    } else if (y->kind == SYNC_BARRIER) {
        pop_barrier(v, y);
    } else if (y->kind == SYNC_GROUP) {
        pop_group(v, qi, channel_of(v, g), g->pending);
    } else {
        struct token_channel *c = channel_of(v, g);
        if (c->n == 0)
            return verify_error(v,
                                "pop of '%s' finds no token: nothing earlier in program order "
                                "pushed one, so queue '%s' waits for ever",
                                y->id, race_name(v, qi));
        pop_token(v, qi, c);
        join_program(v, qi, v->queue[qi]->clock, NULL);
    }
    return true;
}

void race_begin(struct verify *v, int qi, const struct signals *g) {
    for (int k = 0; k < g->npops; k++)
        if (!pop_one(v, qi, &g->pop[k])) return;
    v->queue[qi]->clock[qi]++;
}

void race_push(struct verify *v, int qi, const struct signals *g) {
    for (int k = 0; k < g->npushes; k++) {
        struct token_channel *c = channel_of(v, &g->push[k]);
        if (v->m->sync[c->sync].kind == SYNC_GROUP)
            push_group(v, qi, c);
        else
            push_token(v, qi, c);
    }
}

/* ---- ends ---- */

static void channel_free(struct token_channel *c) {
    while (c->n > 0) free(c->token[c->first + --c->n].clock);
    free(c->token);
    c->token = NULL;
    c->first = c->cap = 0;
}

void race_tokens_left(struct verify *v) {
    for (struct token_channel *c = v->channels; c; c = c->next) {
        if (c->n > 0)
            verify_error(v, "%d tokens of sync '%s' are left at the end of the section", c->n,
                         v->m->sync[c->sync].id);
        channel_free(c);
    }
}

void race_tokens_free(struct verify *v) {
    for (struct token_channel *c = v->channels; c; c = c->next) channel_free(c);
}

void race_section_end(struct verify *v) {
    race_tokens_left(v);
    race_barrier(v);
}

/* Nothing has happened yet. */
void race_forget(struct verify *v) {
    race_tokens_free(v);
    pages_free(&v->races);
    pages_free(&v->slots);
    v->channels = NULL;
    v->nqueues = 0;
    memset(v->at_barrier, 0, sizeof v->at_barrier);
    v->barriers = 0;
}
