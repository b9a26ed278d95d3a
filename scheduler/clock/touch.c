/* Which pieces of the larger memories were used, in which order. Where an instruction of a queue in
 * order waits for other queues, all uses that can still delay something are kept; where only
 * out-of-order queues wait (a CPU: they rename), all that is written. */
#include "scheduler/clock/period_int.h"
#include "ir/memory.h"

#include <math.h>
#include <string.h>

enum { SMALL = MARKS_WIDE, MOST_TOUCHES = 1 << 21 };

bool queue_tracked(const struct engine *e, int queue) {
    return e->interlocked[queue] || e->relied >> queue & 1;
}

bool image_small(const struct image *i) {
    return i->bytes / i->piece + 1 <= SMALL;
}

double earliest_start(const struct engine *e) {
    double at = e->floor;
    for (int q = 0; q < e->machine->nqueues; q++) {
        const struct queue_time *t = &e->queue[q];
        if (t->count) at = fmin(at, t->fifo[t->head].dispatched);
    }
    return at;
}

bool touch_hot(const struct engine *e, const struct touch *t, double earliest) {
    if (t->number) return t->number > e->queue[t->queue].ran;
    return fmax(t->visible, t->end) > earliest;
}

/* ---- what nobody reads ---- */

static void note_read(const struct schedule *s, int buffer, bool *read) {
    int place = schedule_home(s, buffer);
    if (place >= 0) read[place] = true;
}

static void note_reads(const struct schedule *s, const struct node *node, int n, bool *read) {
    for (int k = 0; k < n; k++) {
        const struct node *x = &node[k];
        if (x->kind == NODE_LOOP) {
            if (x->loop->table > 0) read[x->loop->table - 1] = true;
            note_reads(s, x->loop->body, x->loop->nbody, read);
        } else if (x->kind == NODE_ISSUE) {
            const struct instr *in = &s->machine->instr[x->issue->instr];
            for (int o = 0; o < in->noperands; o++)
                if (x->issue->arg[o].place >= 0 && in->operand[o].role != ROLE_OUT)
                    read[x->issue->arg[o].place] = true;
        } else if (x->kind == NODE_FALLBACK) {
            const struct stmt *st = &s->program->stmt[x->fallback->stmt];
            for (int r = 0; r < st->nreads; r++) note_read(s, st->read[r].buffer, read);
        }
    }
}

/* Some piece of a memory is part of both places. */
static bool share_pieces(const struct engine *e, const struct place *a, const struct place *b) {
    int64_t piece = e->image[a->memory][0].piece;
    return a->memory == b->memory &&
           a->address / piece <= (b->address + b->bytes * b->slots - 1) / piece &&
           b->address / piece <= (a->address + a->bytes * a->slots - 1) / piece;
}

/* Out-of-order queues wait for what they read alone: when the others' results arrive holds up
 * nobody. */
void touches_open(struct engine *e) {
    const struct schedule *s = e->schedule;
    if (!e->tracks || e->exact) return;
    bool *read = arena_array(&e->arena, (size_t)s->nplaces + 1, sizeof *read);
    note_reads(s, s->prepare.node, s->prepare.nnodes, read);
    note_reads(s, s->run.node, s->run.nnodes, read);
    e->unread = arena_array(&e->arena, (size_t)s->nplaces + 1, sizeof *e->unread);
    for (int p = 0; p < s->nplaces; p++) {
        e->unread[p] = !read[p];
        for (int q = 0; q < s->nplaces && e->unread[p]; q++)
            e->unread[p] = !read[q] || !share_pieces(e, &s->place[p], &s->place[q]);
    }
}

/* ---- touches ---- */

/* Those that can delay nothing go. */
static void forget_cold(struct engine *e) {
    struct touches *all = &e->touches;
    double earliest = earliest_start(e);
    size_t n = 0;
    for (size_t k = 0; k < all->n; k++)
        if (touch_hot(e, &all->at[k], earliest)) all->at[n++] = all->at[k];
    all->n = n;
    all->hot = 0;
}

static void note(struct engine *e, const struct touch *t) {
    struct touches *all = &e->touches;
    if (!e->followed || all->lost) return;
    if (all->n == all->cap) {
        if (e->exact) forget_cold(e);
        if (2 * all->n >= all->cap) {
            if (all->n >= MOST_TOUCHES) {
                all->lost = true;
                return;
            }
            all->cap = 2 * all->cap + 1024;
            all->at = memory_grow(all->at, all->cap * sizeof *all->at);
        }
    }
    all->at[all->n++] = *t;
}

int64_t touch_first(const struct touch *t) {
    return t->address / t->image->piece;
}

int64_t touch_last(const struct touch *t) {
    return t->bytes > 0 ? (t->address + t->bytes - 1) / t->image->piece : touch_first(t) - 1;
}

void touch_entered(struct engine *e, const struct executed *x, const struct use *u, int k) {
    struct image *image = image_of(e, u->memory);
    if (!image || image_small(image) || !e->exact) return;
    struct touch t = {.image = image,
                      .node = x->node,
                      .address = u->address,
                      .bytes = u->bytes,
                      .use = k,
                      .number = x->number,
                      .queue = x->queue,
                      .reads = u->reads,
                      .writes = u->writes};
    note(e, &t);
}

void touch_ran(struct engine *e, const struct executed *x, const struct use *u, int k, double end,
               double visible) {
    struct image *image = image_of(e, u->memory);
    if (!image || image_small(image) || (!e->exact && (!u->writes || u->unread))) return;
    struct touch t = {.image = image,
                      .node = x->node,
                      .address = u->address,
                      .bytes = u->bytes,
                      .use = k,
                      .visible = u->writes ? visible : 0,
                      .end = u->reads ? end : 0,
                      .queue = x->queue,
                      .reads = u->reads,
                      .writes = u->writes};
    note(e, &t);
}

/* The instruction stands for a later one, whose use is elsewhere. */
static void mark_gone(const struct touch *t) {
    marks_remove(&t->image->marks, touch_first(t), touch_last(t), t->queue, t->number);
}

/* Of instructions that have not run, nothing stays. */
void touches_restart(struct engine *e, const struct touch *hot, int n) {
    e->touches.n = e->touches.hot = 0;
    for (int k = 0; k < n; k++) {
        struct touch t = hot[k];
        if (t.number) t.number += e->queue[t.queue].ran;
        if (t.number)
            mark_gone(&t);
        else
            note(e, &t);
    }
}

/* The same use, elsewhere and later. */
void touch_again(struct engine *e, const struct touch *was, int64_t further, double later) {
    struct touch t = *was;
    t.address += further;
    t.visible += later;
    t.end += later;
    struct marks *marks = &t.image->marks;
    int64_t first = touch_first(&t), last = touch_last(&t);
    struct mark reads = {t.number ? MARK_READER : MARK_READ, t.queue, t.number, t.end},
                writes = {t.number ? MARK_WRITER : MARK_WRITTEN, t.queue, t.number, t.visible};
    if (t.reads) marks_put(marks, first, last, &reads);
    if (t.writes) marks_put(marks, first, last, &writes);
    note(e, &t);
}
