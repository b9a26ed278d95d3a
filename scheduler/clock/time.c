/* Times (docs/simulator.md). Instructions enter their queues in program order, as far as the
 * queues' depths let them; among the queues' heads the one that can start first runs next. */
#include "ir/pick.h"
#include "scheduler/clock/clock_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKAHEAD = 4096 }; /* of queues without a depth */

static int capacity(const struct engine *e, int q) {
    int64_t depth = e->machine->queue[q].depth;
    return depth > 0 && depth < LOOKAHEAD ? (int)depth : LOOKAHEAD;
}

/* ---- costs ---- */

struct cost {
    double overhead, service, bytes, latency;
    int bus;
};

static double operand_bytes(const struct instr *in, const struct shape *s, int o) {
    return (double)s->reach[o].elements * (double)type_size(in->operand[o].type);
}

/* Bytes of a move: the smaller of read and written. */
static struct cost issue_cost(struct engine *e, const struct executed *x) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    const struct shape *s = shape_of(e, x->node, x);
    double read = 0, written = 0;
    for (int o = 0; o < in->noperands; o++) {
        if (i->arg[o].place < 0) continue;
        if (in->operand[o].role != ROLE_OUT) read += operand_bytes(in, s, o);
        if (in->operand[o].role != ROLE_IN) written += operand_bytes(in, s, o);
    }
    return (struct cost){.overhead = s->overhead,
                         .service = s->interval * (double)x->iterations,
                         .latency = s->latency,
                         .bytes = fmin(read, written) * (double)x->iterations,
                         .bus = in->bus};
}

static double number(const struct mexpr *x) {
    double v = 0;
    return x && mexpr_constant(x, &v) ? v : 0;
}

static struct cost fallback_cost(const struct engine *e, const struct executed *x) {
    const struct fallback_node *n = x->node->fallback;
    const struct program *p = e->schedule->program;
    const struct stmt *s = &p->stmt[n->stmt];
    return (struct cost){.service = (double)stmt_looks_at(p, s, x->work) *
                                    fallback_interval(e, n->fallback, s),
                         .latency = number(e->machine->fallback[n->fallback].latency),
                         .bus = -1};
}

/* Of the nop that carries the signals, or of the syncs, which are instructions by themselves. */
static struct cost sync_cost(const struct engine *e, const struct executed *x) {
    struct cost c = {.bus = -1};
    const struct signals *g = signals_of(x->node);
    int queue = x->queue;
    if (signals_are_host(e, x)) return c;
    if (queue < 0 || e->machine->queue[queue].nop < 0) {
        for (int i = 0; i < g->npops; i++) c.service += e->machine->sync[g->pop[i].sync].interval;
        for (int i = 0; i < g->npushes; i++)
            c.service += e->machine->sync[g->push[i].sync].interval;
        return c;
    }
    const struct instr *nop = &e->machine->instr[e->machine->queue[queue].nop];
    c.overhead = number(nop->overhead);
    c.service = number(nop->interval);
    c.latency = number(nop->latency);
    return c;
}

static struct cost setting_cost(struct engine *e, const struct executed *x) {
    struct cost c = {.bus = -1};
    configure_cost(e, &e->machine->configure[x->node->configure->configure], &c.overhead,
                   &c.service, &c.latency);
    return c;
}

static struct cost node_cost(struct engine *e, const struct executed *x) {
    if (x->node->kind == NODE_ISSUE) return issue_cost(e, x);
    if (x->node->kind == NODE_CONFIGURE) return setting_cost(e, x);
    return x->node->kind == NODE_FALLBACK ? fallback_cost(e, x) : sync_cost(e, x);
}

static double bus_time(const struct engine *e, const struct cost *c) {
    const struct bus *b = c->bus < 0 ? NULL : &e->machine->bus[c->bus];
    if (!b || b->rate <= 0) return 0;
    return (b->burst > 0 ? ceil(c->bytes / b->burst) * b->burst : c->bytes) / b->rate;
}

/* Beside other instances, which use the bus too. */
static double transfer_time(const struct engine *e, const struct cost *c) {
    return c->bus < 0 ? 0 : bus_time(e, c) / e->bus_left[c->bus];
}

static void count_traffic(struct engine *e, const struct executed *x, double moved) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    const struct shape *s = shape_of(e, x->node, x);
    for (int o = 0; o < in->noperands; o++) {
        if (i->arg[o].place < 0) continue;
        double bytes =
            fmin(operand_bytes(in, s, o) * (double)x->iterations, in->is_move ? moved : INFINITY);
        int memory = e->schedule->place[i->arg[o].place].memory;
        const struct memory *m = &e->machine->memory[memory];
        if (in->operand[o].role != ROLE_OUT) e->result->energy += bytes * m->energy_read;
        if (in->operand[o].role != ROLE_IN) e->result->energy += bytes * m->energy_write;
        if (memory != e->machine->home) continue;
        if (in->operand[o].role != ROLE_OUT) e->result->home_read_bytes += bytes;
        if (in->operand[o].role != ROLE_IN) e->result->home_write_bytes += bytes;
    }
    e->result->energy += s->energy * (double)x->iterations;
}

/* A fallback reads and writes each element once. */
static void count_fallback(struct engine *e, const struct executed *x) {
    const struct program *p = e->schedule->program;
    const struct stmt *s = &p->stmt[x->node->fallback->stmt];
    double *read = e->joined ? &e->result->host_read_bytes : &e->result->home_read_bytes;
    double *written = e->joined ? &e->result->host_write_bytes : &e->result->home_write_bytes;
    for (int r = -1; r < s->nreads; r++) {
        const struct buffer *b = &p->buffer[r < 0 ? s->dst.buffer : s->read[r].buffer];
        double bytes = fmin((double)x->work, (double)b->elements) * (double)type_size(b->type);
        *(r < 0 ? written : read) += bytes;
    }
}

static void count_bytes(struct engine *e, const struct executed *x, const struct cost *c) {
    if (x->node->kind == NODE_ISSUE) count_traffic(e, x, c->bytes);
    if (x->node->kind == NODE_FALLBACK) count_fallback(e, x);
    if (c->bus < 0) return;
    e->result->bus[c->bus].bytes += c->bytes;
    e->result->bus[c->bus].busy += bus_time(e, c);
}

static bool execute(struct engine *e, const struct executed *x) {
    if (x->node->kind == NODE_CONFIGURE) return configure_execute(e, x);
    if (x->node->kind == NODE_ISSUE && !e->skipped &&
        e->machine->instr[x->node->issue->instr].nneeds) {
        const struct shape *s = shape_of(e, x->node, x);
        if (!s || !needs_hold(e, x, s)) return false;
    }
    return e->executor ? e->executor->execute(e, x) && !e->failed : !e->failed;
}

/* An in-order queue: when the next may start. */
static int free_server(const struct queue_time *t, int64_t width) {
    int best = 0;
    for (int w = 1; w < width; w++)
        if (t->server[w].free < t->server[best].free) best = w;
    return best;
}

static double queue_free(const struct engine *e, int q) {
    const struct queue_time *t = &e->queue[q];
    return fmax(t->server[free_server(t, e->machine->queue[q].width)].free, t->last_start);
}

/* ---- out of order: gaps between what was placed before ---- */

static double gap_in(const struct server *s, double ready, double length) {
    double at = fmax(ready, s->from);
    for (int k = 0; k < s->n; k++) {
        if (at + length <= s->busy[k].start) return at;
        at = fmax(at, s->busy[k].end);
    }
    return at;
}

static double gap_start(const struct engine *e, int q, double ready, double length, int *server) {
    const struct queue_time *t = &e->queue[q];
    double best = 0;
    for (int w = 0; w < e->machine->queue[q].width; w++) {
        double at = gap_in(&t->server[w], ready, length);
        if (w > 0 && at >= best) continue;
        best = at;
        *server = w;
    }
    return best;
}

/* Neighbours that touch become one; the oldest is given up when there are too many, and with it the
 * gaps before its end. */
static void gap_take(struct server *s, double start, double end) {
    int k = s->n;
    if (end <= start) return;
    while (k > 0 && s->busy[k - 1].start > start) k--;
    if (k > 0 && s->busy[k - 1].end >= start) {
        k--;
        s->busy[k].end = fmax(s->busy[k].end, end);
    } else {
        if (s->n == SIM_GAPS) {
            s->from = s->busy[0].end;
            if (k == 0) return;
            memmove(s->busy, s->busy + 1, (size_t)(--s->n) * sizeof *s->busy);
            k--;
        }
        memmove(s->busy + k + 1, s->busy + k, (size_t)(s->n++ - k) * sizeof *s->busy);
        s->busy[k] = (struct span){start, end};
    }
    int next = k + 1;
    while (next < s->n && s->busy[next].start <= s->busy[k].end) {
        s->busy[k].end = fmax(s->busy[k].end, s->busy[next].end);
        next++;
    }
    memmove(s->busy + k + 1, s->busy + next, (size_t)(s->n - next) * sizeof *s->busy);
    s->n -= next - k - 1;
}

/* ---- running one instruction ---- */

/* The earliest start; false: it waits for a token that nobody has given yet, or for what has not
 * run. `could`: when it would have started but for signals and operands. */
static bool ready_time(struct engine *e, const struct executed *x, double *at, double *could,
                       int *server) {
    double tokens;
    if (!signals_ready(e, x, &tokens) || !order_ready(e, x)) return false;
    double ready = fmax(fmax(x->dispatched, tokens), order_visible(e, x));
    if (e->machine->queue[x->queue].data_order) {
        struct cost c = node_cost(e, x);
        double length = c.overhead + fmax(c.service, transfer_time(e, &c));
        *at = gap_start(e, x->queue, ready, length, server);
        *could = *at - ready > 0 ? *at : x->dispatched;
    } else {
        *server = free_server(&e->queue[x->queue], e->machine->queue[x->queue].width);
        *could = fmax(x->dispatched, queue_free(e, x->queue));
        *at = fmax(ready, *could);
    }
    return true;
}

static void account(struct engine *e, const struct executed *x, double start, double end,
                    double busy, double wait) {
    if (!e->counting || signals_are_host(e, x)) return;
    if (x->queue >= 0) {
        struct sim_queue *r = &e->result->queue[x->queue];
        r->instructions++;
        r->busy += busy;
        if (wait > 0) r->wait += wait;
    }
    e->result->instructions++;
    count_work(e, x);
    note_times(e, x, start, end);
    trace_event(e, x, start, end);
}

/* Host work beside a device takes none of the device's time; its cost is reported apart. A queue
 * that serves several instructions at a time takes a part of each one's time. */
static bool run_host(struct engine *e, const struct executed *x, double at) {
    struct cost c = node_cost(e, x);
    int width = x->node->kind == NODE_ISSUE ? e->machine->queue[x->queue].width : 1;
    if (e->counting) count_bytes(e, x, &c);
    if (e->counting) count_host(e, x->node, (c.overhead + c.service) / (width > 1 ? width : 1));
    signals_take(e, x, at, at);
    account(e, x, at, at, 0, 0);
    signals_give(e, x, at);
    order_ran(e, x, at, at);
    signals_ran(e, x, at, at);
    return execute(e, x);
}

static double bus_latency(struct engine *e, int bus) { /* xorshift64 (Marsaglia 2003) */
    const struct clock_options *o = e->options;
    if (!o->latency_seed) return e->machine->bus[bus].latency;
    uint64_t *x = &e->latency;
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return (double)(o->latency_low + (*x >> 32) % (o->latency_high - o->latency_low + 1));
}

/* The bus is taken after the overhead, when it is free. */
static double take_bus(struct engine *e, struct cost *c, double begin) {
    double transfer = transfer_time(e, c);
    begin = fmax(begin, e->bus_free[c->bus]);
    e->bus_free[c->bus] = begin + transfer;
    c->service = fmax(c->service, transfer);
    c->latency += bus_latency(e, c->bus);
    return begin;
}

/* What a queue gets from buses with random latencies arrives in order, and takes its time to
 * arrive. */
static double arrival(const struct engine *e, struct queue_time *t, const struct cost *c,
                      double visible) {
    if (!e->options->latency_seed || c->bus < 0) return visible;
    return t->arrived = fmax(visible, t->arrived + c->service);
}

/* A token says that all before it in its queue is visible, unless the queue has no order. */
static double token_given(struct queue_time *t, bool data_order, double visible) {
    if (data_order) return visible;
    t->visible = fmax(t->visible, visible);
    return t->visible;
}

static bool is_blocking(const struct engine *e, const struct executed *x) {
    return x->node->kind == NODE_ISSUE && e->machine->instr[x->node->issue->instr].blocking;
}

static bool run(struct engine *e, const struct executed *x, double start, double could,
                int server) {
    struct queue_time *t = &e->queue[x->queue];
    bool data_order = e->machine->queue[x->queue].data_order;
    if (e->is_host[x->queue] && e->joined) return run_host(e, x, start);
    struct cost c = node_cost(e, x);
    if (e->counting) count_bytes(e, x, &c);
    double begin = start + c.overhead, wanted = begin;
    if (c.bus >= 0) begin = take_bus(e, &c, begin);
    double end = begin + c.service, visible = arrival(e, t, &c, end + c.latency);
    if (is_blocking(e, x)) end = visible;
    if (data_order)
        gap_take(&t->server[server], start, end);
    else
        t->server[server].free = end;
    t->last_start = start;
    signals_take(e, x, start, could);
    account(e, x, start, end, end - start - (begin - wanted), start - could + (begin - wanted));
    signals_give(e, x, token_given(t, data_order, visible));
    order_ran(e, x, end, visible);
    signals_ran(e, x, end, visible);
    if (visible > e->end) e->end = visible;
    return execute(e, x);
}

/* ---- queues ---- */

struct start {
    double at, could;
    int server;
};

/* One of n that may go on is the last one looked at: so each is as likely as the others. */
static bool takes_over(struct engine *e, int n) { /* xorshift (Marsaglia 2003) */
    e->order ^= e->order << 13;
    e->order ^= e->order >> 7;
    e->order ^= e->order << 17;
    return e->order % (uint64_t)n == 0;
}

/* Of out-of-order queues only the oldest instruction is looked at (unless nothing else can go on),
 * so that they run in program order, and fast. */
static int next_queue(struct engine *e, bool any, struct start *out) {
    int best = -1, ready = 0;
    int64_t oldest = INT64_MAX;
    for (int q = 0; q < e->machine->nqueues; q++)
        if (e->machine->queue[q].data_order && e->queue[q].count &&
            e->queue[q].fifo[e->queue[q].head].sequence < oldest)
            oldest = e->queue[q].fifo[e->queue[q].head].sequence;
    for (int q = 0; q < e->machine->nqueues; q++) {
        struct queue_time *t = &e->queue[q];
        struct start one;
        if (!t->count) continue;
        const struct executed *x = &t->fifo[t->head];
        if (!any && e->machine->queue[q].data_order && x->sequence != oldest) continue;
        if (!ready_time(e, x, &one.at, &one.could, &one.server)) continue;
        if (e->order) {
            if (takes_over(e, ++ready)) best = q, *out = one;
            continue;
        }
        if (best < 0 || one.at < out->at ||
            (one.at == out->at && x->sequence < e->queue[best].fifo[e->queue[best].head].sequence))
            best = q, *out = one;
    }
    return best;
}

static void deadlock_of(struct engine *e, int queue, struct text *t) {
    const struct executed *x = &e->queue[queue].fifo[e->queue[queue].head];
    const struct signals *g = signals_of(x->node);
    const char *id = e->machine->queue[queue].id;
    for (int i = 0; i < g->npops; i++) {
        double at;
        if (pop_time(e, x, i, &at)) continue;
        text_printf(t, "%squeue '%s' waits at '%s' for '%s'", t->n ? "; " : "", id,
                    node_name(e, x->node), e->machine->sync[g->pop[i].sync].id);
        int channel = x->pop[i].channel - e->channel[g->pop[i].sync];
        if (channel) text_printf(t, "[%d]", channel);
        return;
    }
    for (int q = 0; e->tracks && q < e->machine->nqueues; q++) {
        if (e->queue[q].ran >= x->after[q]) continue;
        text_printf(t, "%squeue '%s' waits at '%s' for queue '%s'", t->n ? "; " : "", id,
                    node_name(e, x->node), e->machine->queue[q].id);
        return;
    }
}

static bool deadlock(struct engine *e) {
    struct text t = {0};
    for (int q = 0; q < e->machine->nqueues; q++)
        if (e->queue[q].count) deadlock_of(e, q, &t);
    engine_error(e, NULL, "deadlock: %s", t.at ? t.at : "no queue can go on");
    text_free(&t);
    return false;
}

static bool run_head(struct engine *e, int q, struct start start) {
    struct queue_time *t = &e->queue[q];
    const struct executed *x = &t->fifo[t->head]; /* nothing enters while it runs */
    t->started[x->number % t->room] = start.at;
    t->head = (t->head + 1) % t->room;
    t->count--;
    t->ran++;
    return run(e, x, start.at, start.could, start.server);
}

static bool run_one(struct engine *e) {
    struct start start = {0};
    int q = next_queue(e, false, &start);
    if (q < 0) q = next_queue(e, true, &start);
    return q < 0 ? deadlock(e) : run_head(e, q, start);
}

/* Out-of-order queues run in program order: as soon as the oldest can go on, it does. */
static bool run_ready(struct engine *e) {
    struct start start = {0};
    for (int q; (q = next_queue(e, false, &start)) >= 0;)
        if (!run_head(e, q, start)) return false;
    return !e->failed;
}

/* Of a token that several queues give, an earlier one may still come. */
static bool waits_for_several(const struct engine *e, const struct executed *x) {
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npops; i++) {
        uint64_t from = e->machine->sync[g->pop[i].sync].from;
        if (from & (from - 1)) return true;
    }
    return false;
}

/* Work of the host beside a device takes none of the device's time, and holds up nobody who does
 * not wait for it: it runs as soon as it can. */
static bool run_ahead(struct engine *e) {
    for (int q = 0; q < e->machine->nqueues; q++) {
        const struct queue_time *t = &e->queue[q];
        const struct executed *x = t->count ? &t->fifo[t->head] : NULL;
        struct start start;
        if (!e->is_host[q] || !x || waits_for_several(e, x)) continue;
        if (!ready_time(e, x, &start.at, &start.could, &start.server)) continue;
        if (!run_head(e, q, start)) return false;
        q = -1; /* those before it may have waited for it */
    }
    return !e->failed;
}

bool time_drain(struct engine *e) {
    for (;;) {
        bool waiting = false;
        for (int q = 0; q < e->machine->nqueues; q++) waiting = waiting || e->queue[q].count;
        if (!waiting) return !e->failed;
        if (!run_one(e)) return false;
    }
}

/* Without a queue: when all before is done, and all that follows comes after it. */
static bool run_alone(struct engine *e, struct executed *x) {
    double tokens;
    if (!signals_enter(e, x) || !time_drain(e)) return false;
    if (!signals_ready(e, x, &tokens))
        return engine_error(e, x->node, "deadlock: a token is missing");
    struct cost c = node_cost(e, x);
    if (e->counting) count_bytes(e, x, &c);
    double start = fmax(e->end, tokens), end = start;
    signals_take(e, x, start, e->end);
    if (!e->joined) end += c.overhead + c.service + c.latency;
    if (e->joined && e->counting) count_host(e, x->node, c.overhead + c.service);
    account(e, x, start, end, end - start, 0);
    signals_give(e, x, end);
    if (end > e->end) e->end = end;
    time_reset_queues(e, e->end);
    return execute(e, x);
}

static void open_fifo(struct engine *e, int q) {
    struct queue_time *t = &e->queue[q];
    size_t nq = (size_t)e->machine->nqueues;
    t->room = capacity(e, q);
    t->fifo = memory_bytes((size_t)t->room * sizeof *t->fifo);
    t->after = memory_bytes((size_t)t->room * 3 * nq * sizeof *t->after);
    t->started = memory_array((size_t)t->room, sizeof *t->started);
    for (int k = 0; k < t->room; k++) t->started[k] = e->floor;
}

bool time_dispatch(struct engine *e, struct executed *x) {
    if (x->queue < 0) return run_alone(e, x);
    struct queue_time *t = &e->queue[x->queue];
    if (!t->fifo) open_fifo(e, x->queue);
    while (t->count == t->room)
        if (!run_one(e)) return false;
    x->sequence = e->sequence++;
    x->number = ++t->dispatched;
    if (e->machine->queue[x->queue].depth > 0) {
        /* there is room since the instruction that many before has started */
        double left = t->started[x->number % t->room];
        if (left > e->floor) e->floor = left;
    }
    if (!signals_are_host(e, x))
        e->floor += e->machine->unit[e->machine->queue[x->queue].unit].fetch;
    x->dispatched = e->floor;
    int at = (t->head + t->count++) % t->room;
    size_t nq = (size_t)e->machine->nqueues;
    x->after = t->after + (size_t)at * 3 * nq;
    x->left = x->after + nq;
    x->seen = x->left + nq;
    order_enter(e, x);
    if (!signals_enter(e, x)) return false;
    t->fifo[at] = *x;
    if (e->ahead && !run_ahead(e)) return false;
    return e->eager ? run_ready(e) : !e->failed;
}

void time_reset_queues(struct engine *e, double floor) {
    e->floor = e->end = floor;
    signals_forget(e);
    for (int q = 0; q < e->machine->nqueues; q++) {
        struct queue_time *t = &e->queue[q];
        for (int w = 0; w < (int)e->machine->queue[q].width; w++) {
            t->server[w].free = t->server[w].from = floor;
            t->server[w].n = 0;
        }
        t->last_start = t->visible = t->arrived = floor;
        for (int k = 0; e->meets && k < SIM_PAST; k++) t->left[k] = t->seen[k] = floor;
        bool limited = e->machine->queue[q].depth > 0; /* others always have room */
        for (int k = 0; limited && k < t->room; k++) t->started[k] = floor;
    }
}
