/* Times (docs/simulator.md). Instructions enter their queues in program order, as far as the
 * queues' depths let them; among the queues' heads the one that can start first runs next. */
#include "sim/sim_int.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKAHEAD = 4096 }; /* of queues without a depth */

static const struct signals *signals_of(const struct node *n) {
    return n->kind == NODE_ISSUE      ? &n->issue->signals
           : n->kind == NODE_FALLBACK ? &n->fallback->signals
                                      : &n->sync.signals;
}

static int capacity(const struct engine *e, int q) {
    int64_t depth = e->machine->queue[q].depth;
    return depth > 0 && depth < LOOKAHEAD ? (int)depth : LOOKAHEAD;
}

/* ---- tokens ---- */

static void token_push(struct engine *e, int sync, double at) {
    struct sync_time *s = &e->sync[sync];
    if (s->count == s->room) {
        int room = s->room ? 2 * s->room : 16;
        double *moved = malloc((size_t)room * sizeof *moved);
        for (int i = 0; i < s->count; i++) moved[i] = s->at[(s->head + i) % s->room];
        free(s->at);
        s->at = moved, s->head = 0, s->room = room;
    }
    s->at[(s->head + s->count++) % s->room] = at;
    struct sim_sync *r = &e->result->sync[sync];
    r->pushes++;
    if (s->count > r->peak) r->peak = s->count;
}

static bool is_token(const struct engine *e, int sync) {
    return e->machine->sync[sync].kind == SYNC_TOKEN;
}

/* When all tokens that the node waits for are there; false: not yet given. */
static bool tokens_ready(const struct engine *e, const struct signals *g, double *at) {
    *at = 0;
    for (int i = 0; i < g->npops; i++) {
        int sync = g->pop[i].sync, before = 0;
        if (!is_token(e, sync)) continue;
        for (int k = 0; k < i; k++) before += g->pop[k].sync == sync;
        const struct sync_time *s = &e->sync[sync];
        if (s->count <= before) return false;
        *at = fmax(*at, s->at[(s->head + before) % s->room]);
    }
    return true;
}

static void tokens_take(struct engine *e, const struct signals *g) {
    for (int i = 0; i < g->npops; i++) {
        struct sync_time *s = &e->sync[g->pop[i].sync];
        if (!is_token(e, g->pop[i].sync)) continue;
        s->head = (s->head + 1) % s->room;
        s->count--;
    }
}

/* ---- operands of issues ---- */

struct range {
    struct image *image;
    int64_t first, last;
}; /* granules */

static struct range operand_range(struct engine *e, const struct executed *x, const struct shape *s,
                                  int o) {
    const struct issue_node *i = x->node->issue;
    const struct place *p = &e->schedule->place[i->arg[o].place];
    struct image *image = image_of(e, p->memory, x->instance);
    int64_t bytes = s->span[o] * (int64_t)type_size(e->machine->instr[i->instr].operand[o].type);
    int64_t first = x->address[o] / image->granule,
            last = (x->address[o] + bytes - 1) / image->granule,
            most = image->bytes / image->granule;
    if (first < 0) first = 0;
    return (struct range){image, first, last > most ? most : last};
}

/* When everything it reads, written by queues that hardware makes it wait for, is visible. */
static double operands_visible(struct engine *e, const struct executed *x) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    uint64_t waits = e->interlocked[x->queue];
    double at = 0;
    if (!waits) return 0;
    const struct shape *s = shape_of(e, i, x);
    for (int o = 0, flag = 0; s && o < in->noperands; o++) {
        bool overwrites = in->operand[o].accumulate && x->flag[flag++] == 0;
        if (i->arg[o].place < 0 || in->operand[o].role == ROLE_OUT || overwrites) continue;
        struct range r = operand_range(e, x, s, o);
        for (int64_t g = r.first; g <= r.last; g++)
            if (r.image->writer[g] && (waits >> (r.image->writer[g] - 1) & 1))
                at = fmax(at, r.image->visible[g]);
    }
    return at;
}

static void mark_written(struct engine *e, const struct executed *x, double visible) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    const struct shape *s = shape_of(e, i, x);
    for (int o = 0; s && o < in->noperands; o++) {
        if (i->arg[o].place < 0 || in->operand[o].role == ROLE_IN) continue;
        struct range r = operand_range(e, x, s, o);
        for (int64_t g = r.first; g <= r.last; g++) {
            r.image->visible[g] = visible;
            r.image->writer[g] = (int16_t)(x->queue + 1);
        }
    }
}

/* ---- costs ---- */

struct cost {
    double overhead, service, bytes, latency;
    int bus;
};

static bool at_home(const struct engine *e, int place) {
    return e->schedule->place[place].memory == e->machine->home;
}

/* Bytes of a move: the smaller of read and written. Traffic of the home memory is counted on the
 * way. */
static struct cost issue_cost(struct engine *e, const struct executed *x) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    const struct shape *s = shape_of(e, i, x);
    double read = 0, written = 0;
    struct cost c = {
        .overhead = s->overhead, .service = s->interval, .latency = s->latency, .bus = in->bus};
    for (int o = 0; o < in->noperands; o++) {
        if (i->arg[o].place < 0) continue;
        double bytes = (double)s->elements[o] * (double)type_size(in->operand[o].type);
        if (in->operand[o].role != ROLE_OUT) read += bytes;
        if (in->operand[o].role != ROLE_IN) written += bytes;
    }
    c.bytes = fmin(read, written);
    if (!e->counting) return c;
    for (int o = 0; o < in->noperands; o++) {
        if (i->arg[o].place < 0) continue;
        double bytes = fmin((double)s->elements[o] * (double)type_size(in->operand[o].type),
                            in->is_move ? c.bytes : INFINITY);
        const struct memory *m = &e->machine->memory[e->schedule->place[i->arg[o].place].memory];
        if (in->operand[o].role != ROLE_OUT) e->result->energy += bytes * m->energy_read;
        if (in->operand[o].role != ROLE_IN) e->result->energy += bytes * m->energy_write;
        if (!at_home(e, i->arg[o].place)) continue;
        if (in->operand[o].role != ROLE_OUT) e->result->home_read_bytes += bytes;
        if (in->operand[o].role != ROLE_IN) e->result->home_write_bytes += bytes;
    }
    e->result->energy += s->energy;
    return c;
}

static double number(const struct mexpr *x) {
    double v = 0;
    return x && mexpr_constant(x, &v) ? v : 0;
}

static struct cost fallback_cost(struct engine *e, const struct executed *x) {
    const struct fallback *f = &e->machine->fallback[x->node->fallback->fallback];
    const struct program *p = e->schedule->program;
    const struct stmt *s = &p->stmt[x->node->fallback->stmt];
    struct cost c = {
        .service = (double)x->work * number(f->interval), .latency = number(f->latency), .bus = -1};
    if (!e->counting) return c;
    double *read = e->joined ? &e->result->host_read_bytes : &e->result->home_read_bytes;
    double *written = e->joined ? &e->result->host_write_bytes : &e->result->home_write_bytes;
    for (int r = 0; r < s->nreads; r++)
        *read += (double)p->buffer[s->read[r].buffer].elements *
                 (double)type_size(p->buffer[s->read[r].buffer].type);
    *written += (double)p->buffer[s->dst.buffer].elements *
                (double)type_size(p->buffer[s->dst.buffer].type);
    return c;
}

static struct cost sync_cost(const struct engine *e, int queue) {
    struct cost c = {.bus = -1};
    if (queue < 0 || e->machine->queue[queue].nop < 0) return c;
    const struct instr *nop = &e->machine->instr[e->machine->queue[queue].nop];
    return (struct cost){
        .overhead = number(nop->overhead), .service = number(nop->interval), .bus = -1};
}

static struct cost node_cost(struct engine *e, const struct executed *x) {
    if (x->node->kind == NODE_ISSUE) return issue_cost(e, x);
    return x->node->kind == NODE_FALLBACK ? fallback_cost(e, x) : sync_cost(e, x->queue);
}

/* ---- what was done ---- */

static int64_t operations_per_point(const struct stmt *s) {
    int64_t n = s->combine != COMBINE_SET;
    for (int o = 0; o < s->nops; o++) {
        enum opcode c = s->op[o].code;
        n += c != OP_READ && c != OP_LITERAL && c != OP_AXIS && c != OP_CAST;
    }
    return n;
}

static void count_work(struct engine *e, const struct executed *x) {
    const struct program *p = e->schedule->program;
    int stmt = x->node->kind == NODE_ISSUE      ? x->node->issue->stmt
               : x->node->kind == NODE_FALLBACK ? x->node->fallback->stmt
                                                : -1;
    int by = x->node->kind == NODE_ISSUE ? x->node->issue->instr : e->machine->ninstrs;
    if (stmt < 0) return;
    if (stmt_is_mac(p, &p->stmt[stmt]))
        e->result->macs_on[by] += x->work;
    else
        e->result->operations_on[by] += x->work * operations_per_point(&p->stmt[stmt]);
}

static const char *node_name(const struct engine *e, const struct node *n) {
    return n->kind == NODE_ISSUE      ? e->machine->instr[n->issue->instr].id
           : n->kind == NODE_FALLBACK ? "fallback"
                                      : "sync";
}

static void trace_event(struct engine *e, const struct executed *x, double start, double end) {
    if (!e->trace || !e->counting) return;
    fprintf(e->trace,
            "%s\n{\"name\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d}",
            e->traced ? "," : "", node_name(e, x->node), start, end - start, x->instance, x->queue);
    e->traced = true;
}

void trace_close(struct engine *e) {
    if (!e->trace) return;
    for (int q = 0; q < e->machine->nqueues; q++)
        fprintf(e->trace,
                "%s\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{"
                "\"name\":\"%s\"}}",
                e->traced ? "," : "", q, e->machine->queue[q].id),
            e->traced = true;
    fprintf(e->trace, "\n],\"displayTimeUnit\":\"ns\"}\n");
    fclose(e->trace);
    e->trace = NULL;
}

static bool execute(struct engine *e, const struct executed *x) {
    if (e->options->no_values) return true;
    if (x->node->kind == NODE_ISSUE) return issue_execute(e, x);
    if (x->node->kind == NODE_FALLBACK) return fallback_execute(e, x);
    return true;
}

/* ---- running one instruction ---- */

static int free_server(const struct queue_time *t, int width) {
    int best = 0;
    for (int w = 1; w < width; w++)
        if (t->server[w] < t->server[best]) best = w;
    return best;
}

/* The earliest start; false: it waits for a token that nobody has given yet. */
static bool ready_time(struct engine *e, const struct executed *x, double *at) {
    const struct queue *q = &e->machine->queue[x->queue];
    const struct queue_time *t = &e->queue[x->queue];
    double tokens;
    if (!tokens_ready(e, signals_of(x->node), &tokens)) return false;
    double queue_free =
        q->data_order ? t->clock : fmax(t->server[free_server(t, (int)q->width)], t->last_start);
    *at = fmax(fmax(x->dispatched, tokens), queue_free);
    if (x->node->kind == NODE_ISSUE) *at = fmax(*at, operands_visible(e, x));
    return true;
}

static void account(struct engine *e, const struct executed *x, double start, double end,
                    double free_at) {
    if (!e->counting) return;
    struct sim_queue *r = &e->result->queue[x->queue];
    r->instructions++;
    r->busy += end - start;
    double wait = start - fmax(free_at, x->dispatched);
    if (wait > 0) r->wait += wait;
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npops && wait > 0; i++) e->result->sync[g->pop[i].sync].wait += wait;
    e->result->instructions++;
    count_work(e, x);
    trace_event(e, x, start, end);
}

/* Host work beside a device takes none of the device's time; its cost is reported apart. */
static bool run_host(struct engine *e, const struct executed *x, double at) {
    struct cost c = node_cost(e, x);
    if (e->counting) e->result->host_cycles += c.service;
    tokens_take(e, signals_of(x->node));
    account(e, x, at, at, at);
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npushes; i++) token_push(e, g->push[i].sync, at);
    return execute(e, x);
}

static bool run(struct engine *e, const struct executed *x, double start) {
    const struct queue *q = &e->machine->queue[x->queue];
    struct queue_time *t = &e->queue[x->queue];
    if (e->is_host[x->queue] && e->joined) return run_host(e, x, start);
    struct cost c = node_cost(e, x);
    double service = c.service, latency = c.latency, begin = start + c.overhead;
    if (c.bus >= 0) {
        const struct bus *b = &e->machine->bus[c.bus];
        double transfer = b->rate > 0 ? c.bytes / b->rate : 0;
        begin = fmax(begin, e->bus_free[c.bus]);
        service = fmax(service, transfer);
        latency += b->latency;
        e->bus_free[c.bus] = begin + transfer;
        if (e->counting)
            e->result->bus[c.bus].bytes += c.bytes, e->result->bus[c.bus].busy += transfer;
    }
    double end = begin + service;
    int server = free_server(t, (int)q->width);
    double free_at = q->data_order ? t->clock : t->server[server];
    if (q->data_order)
        t->clock = fmax(t->clock, x->dispatched) + (end - start) / (double)q->width;
    else
        t->server[server] = end;
    t->last_start = start;
    tokens_take(e, signals_of(x->node));
    account(e, x, start, end, free_at);
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npushes; i++)
        if (is_token(e, g->push[i].sync)) token_push(e, g->push[i].sync, end + latency);
    if (x->node->kind == NODE_ISSUE) mark_written(e, x, end + latency);
    if (end + latency > e->end) e->end = end + latency;
    return execute(e, x);
}

/* ---- queues ---- */

/* Where hardware keeps dependences, instructions run in program order among the queues concerned, so that values are right; their times overlap
 * all the same. */
static bool in_program_order(const struct engine *e, int q) {
    return e->machine->queue[q].data_order || e->interlocked[q];
}

static const struct executed *head_of(const struct engine *e, int q) {
    return e->queue[q].count ? &e->queue[q].fifo[e->queue[q].head] : NULL;
}

static int next_queue(struct engine *e, double *at) {
    int best = -1;
    int64_t oldest = INT64_MAX;
    for (int q = 0; q < e->machine->nqueues; q++)
        if (head_of(e, q) && in_program_order(e, q) && head_of(e, q)->sequence < oldest) oldest = head_of(e, q)->sequence;
    for (int q = 0; q < e->machine->nqueues; q++) {
        const struct executed *x = head_of(e, q);
        double ready;
        if (!x || (in_program_order(e, q) && x->sequence != oldest) || !ready_time(e, x, &ready)) continue;
        if (best < 0 || ready < *at || (ready == *at && x->sequence < head_of(e, best)->sequence)) best = q, *at = ready;
    }
    return best;
}

static bool deadlock(struct engine *e) {
    struct text t = {0};
    for (int q = 0; q < e->machine->nqueues; q++) {
        if (!e->queue[q].count) continue;
        const struct executed *x = &e->queue[q].fifo[e->queue[q].head];
        const struct signals *g = signals_of(x->node);
        text_printf(&t, "%squeue '%s' waits at '%s' for", t.n ? "; " : "", e->machine->queue[q].id,
                    node_name(e, x->node));
        for (int i = 0; i < g->npops; i++)
            text_printf(&t, " '%s' (%d given)", e->machine->sync[g->pop[i].sync].id,
                        e->sync[g->pop[i].sync].count);
    }
    diag_line(e->diags, e->schedule->machine_name, 0, 0, "deadlock: %s",
              t.at ? t.at : "no queue can go on");
    text_free(&t);
    e->failed = true;
    return false;
}

/* Runs one head; *ran says whether there was one that could. */
static bool run_one(struct engine *e, bool *ran) {
    double at = 0;
    int q = next_queue(e, &at);
    *ran = q >= 0;
    if (q < 0) return true;
    struct queue_time *t = &e->queue[q];
    struct executed x = t->fifo[t->head];
    t->head = (t->head + 1) % t->room;
    t->count--;
    if (t->count + 1 == capacity(e, q) && at > e->floor) e->floor = at;
    return run(e, &x, at);
}

static bool run_all(struct engine *e) {
    for (bool ran = true; ran;)
        if (!run_one(e, &ran)) return false;
    return true;
}

static bool enqueue(struct engine *e, struct executed *x) {
    struct queue_time *t = &e->queue[x->queue];
    int room = capacity(e, x->queue);
    if (!t->fifo) {
        t->room = room;
        t->fifo = malloc((size_t)room * sizeof *t->fifo);
    }
    while (t->count == room) {
        bool ran;
        if (!run_one(e, &ran)) return false;
        if (!ran) return deadlock(e);
    }
    x->sequence = e->sequence++;
    x->dispatched = e->floor;
    t->fifo[(t->head + t->count++) % t->room] = *x;
    return true;
}

/* A fallback touches whole buffers: all before it is done first, and all after it waits. */
bool time_dispatch(struct engine *e, struct executed *x) {
    if (x->queue < 0) return time_drain(e) && execute(e, x);
    if (x->node->kind != NODE_FALLBACK) return enqueue(e, x);
    if (!run_all(e)) return false;
    bool beside_device = e->is_host[x->queue] && e->joined;
    if (!beside_device && e->end > e->floor) e->floor = e->end;
    if (!enqueue(e, x) || !run_all(e)) return false;
    if (!beside_device && e->end > e->floor) e->floor = e->end;
    return true;
}

bool time_drain(struct engine *e) {
    for (;;) {
        bool ran, waiting = false;
        if (!run_one(e, &ran)) return false;
        for (int q = 0; q < e->machine->nqueues; q++) waiting = waiting || e->queue[q].count;
        if (!waiting) return true;
        if (!ran) return deadlock(e);
    }
}

void time_reset_queues(struct engine *e, double floor) {
    e->floor = e->end = floor;
    for (int q = 0; q < e->machine->nqueues; q++) {
        for (int w = 0; w < (int)e->machine->queue[q].width; w++) e->queue[q].server[w] = floor;
        e->queue[q].clock = e->queue[q].last_start = floor;
    }
}
