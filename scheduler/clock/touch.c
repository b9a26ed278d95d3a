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
    if (!e->followed) return;
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
    if (!image || image_small(image) || (!e->exact && !u->writes)) return;
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
