/* Plans: sizes of tiles, footprints, capacity and cost (docs/scheduling.md, "Plans"). */
#include "scheduler/plan/ask.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

/* Between plans that take equally long: what else they use counts a little. */
static const double TIE = 0.02;

static bool is_local(const struct opnd *o) {
    return o->where == IN_LOCAL;
}

struct transfer { /* of a hold, over the whole nest; copy.in NULL: no move does it */
    struct copy copy;
    double trips, often, share, bytes; /* share: of its elements that are moved, on average */
};

/* Of a home in blocks whole ones are moved, with the padding of the last: how much that adds. */
static double blocks_add(const struct work *w, const struct access *acc) {
    const struct buffer *b = &w->p->buffer[acc->buffer];
    const struct home *h = work_home(w, acc->buffer);
    double more = 1;
    for (int d = 0; h->packed && !h->is_tile && d < b->ndims; d++)
        more *= (double)h->extent[d] / (double)b->extent[d];
    return more;
}

/* To the elements of the copy: where zeros come instead of the padding, and from one copy to the
 * next, all of a block counts too. */
static double zeros_add(const struct work *w, const struct opnd *o, const struct access *acc,
                        bool fill) {
    const struct buffer *b = &w->p->buffer[acc->buffer];
    const struct home *h = work_home(w, acc->buffer);
    double more = 1;
    for (int d = 0; d < b->ndims; d++) {
        int64_t block = o->geom.block[d], whole = (b->extent[d] + block - 1) / block * block;
        bool between = (fill ? o->from : o->to) && !h->packed && !(o->geom.loose >> d & 1);
        if (block > 1 && (between || (h->tight >> d & 1)))
            more *= (double)whole / (double)b->extent[d];
    }
    return more;
}

static struct transfer transfer_of(const struct pricing *c, const struct task *t,
                                   const struct opnd *o, const struct access *acc, bool fill,
                                   const struct hold *h) {
    int depth = h->depth;
    struct transfer x = {.copy = copy_price(c->w, c->moves, c->plan, t, o, acc, fill, depth,
                                            fill ? h->fill_by : h->drain_by),
                         .often = 1};
    if (h->ring) price_rows(c, t, o, acc, h, &x.copy);
    if (!x.copy.in) return x;
    x.trips = plan_trips(c->w, c->plan, depth);
    double moved = plan_traffic(c->w, c->plan, t, acc, depth);
    if (keeps_part(h)) {
        double all = moved;
        moved = hold_traffic(c->w, c->nest, c->plan, t, o, acc, h);
        if (h->pinned) x.often = moved / all;
    }
    moved *= blocks_add(c->w, acc);
    int stored = attached_view(c->w, o, acc->buffer, fill).buffer;
    x.bytes = moved * fmax(1, x.copy.reads) * (double)type_size(c->w->p->buffer[stored].type);
    moved *= zeros_add(c->w, o, acc, fill);
    x.share = fmin(1, moved / (x.trips * x.often * x.copy.elements));
    return x;
}

static void charge_transfer(struct pricing *c, const struct transfer *x) {
    charge(c, x->copy.in, x->trips * x->often,
           x->copy.issues + (x->copy.cycles - x->copy.issues) * x->share, x->bytes);
}

/* Does the user's queue wait for nothing but the data? Each of several queues in program order runs
 * ahead as far as free slots let it, whoever tells them so. */
static bool in_step(const struct machine *m, int queue, int user) {
    return queue == user || m->queue[queue].data_order || m->queue[user].data_order;
}

/* The instruction that uses a copy, and how long after its last issue its results are seen. */
struct user {
    const struct instr *in;
    double latency;
};

static struct user user_of(const struct pricing *c, const struct task *t) {
    struct user u = {.in = t->needle->in};
    instr_times(c->w->m, u.in, t->needle->bound, NULL, &u.latency, NULL, NULL);
    return u;
}

static double bus_cycles(const struct machine *m, const struct instr *in, double bytes) {
    return in->bus >= 0 && m->bus[in->bus].rate > 0 ? bytes / m->bus[in->bus].rate : 0;
}

/* One for each slot. */
static bool credits_fit(const struct machine *m, const struct edge *credit, int slots) {
    return credit->kind != EDGE_TOKEN || edge_rotates(m, credit, slots) ||
           m->sync[credit->sync].depth < 0 || slots <= m->sync[credit->sync].depth;
}

/* Of a result: each time that it goes home, or that its sums come back. */
static void price_returns(struct pricing *c, const struct hold *h, double trips, double each,
                          bool fill) {
    if (h->slots == 1 && trips > 1) c->bubble += price_add(c, PRICE_RETURNS, (trips - 1) * each);
    if (!fill) c->tail += price_add(c, PRICE_LAST, each);
    if (fill) c->bubble += price_add(c, PRICE_RETURNS, each);
}

static bool price_transfer(struct pricing *c, const struct task *t, const struct opnd *o,
                           const struct access *acc, bool fill, struct hold *h, int inner,
                           struct user *user) {
    int depth = h->depth, slots = h->slots;
    struct transfer x = transfer_of(c, t, o, acc, fill, h);
    struct copy f = x.copy;
    const struct instr *in = f.in;
    if (!in) return false;
    double trips = x.trips, often = x.often, share = x.share, seen = user->latency;
    charge_transfer(c, &x);
    if (fill ? !o->from : !o->to) c->plan->bytes += x.bytes;
    const struct instr *next = user->in;
    if (in->queue == t->needle->in->queue) c->beside += trips * often * f.issues;
    struct edge there = edge_find(c->w->edges, in->queue, in->completes, next->queue),
                back = edge_find(c->w->edges, next->queue, next->completes, in->queue);
    *user = (struct user){in, f.latency};
    if (there.kind == EDGE_NONE || back.kind == EDGE_NONE) return false;
    if (there.kind == EDGE_FREE && in_step(c->w->m, in->queue, next->queue)) return true;
    if (there.kind != EDGE_FREE && keeps_part(h) && !(c->w->counts[in->queue] >> next->queue & 1))
        return false;
    if (h->ring && !price_ring(c, t, o, acc, h)) return false;
    if (slots_held(c->w->edges, in, next, slots) < slots) return false;
    if (!credits_fit(c->w->m, fill ? &back : &there, slots)) return false;
    if (fill && back.first >= 0 && trips > 1) { /* the user waits for itself before it releases */
        double latency;
        instr_times(c->w->m, next, t->needle->bound, NULL, &latency, NULL, NULL);
        c->bubble += price_add(c, PRICE_GIVING, (trips - 1) * latency);
    }
    bool own = o >= t->op && o < t->op + t->nops && !o->in.n;
    struct stream stream = {.outer = !own && fill && !o->from ? h : NULL,
                            .operand = own ? (int)(o - t->op) : -1,
                            .queue = in->queue,
                            .user = next->queue,
                            .bus = in->bus,
                            .depth = depth,
                            .slots = h->slots,
                            .trips = trips,
                            .cycles = f.issues + (f.cycles - f.issues) * share,
                            .latency = f.latency,
                            .issues = f.issues,
                            .busy = bus_cycles(c->w->m, in, x.bytes / (trips * often)),
                            .often = often,
                            .periods = h->ring && ring_waits(c->w, c->nest, c->plan, t, o, acc, h)
                                           ? plan_trips(c->w, c->plan, depth - 1)
                                           : 1,
                            .largest = f.cycles,
                            .seen = back.kind == EDGE_FREE ? 0 : seen,
                            .pieces = 1};
    stream.first = stream.cycles;
    if (fill && !o->writes) {
        if (stream.outer) spread_choose(c, t, o, &f, inner, h, &stream);
        pieces_choose(c, t, o, h, &stream);
        c->fill[c->nfills++] = stream;
        return true;
    }
    if (!fill) c->drain = stream;
    price_returns(c, h, trips, f.cycles * share + f.latency, fill);
    return true;
}

/* What operand i reads, from its own memory outwards. */
static bool price_route(struct pricing *c, const struct task *t, int i, const struct access *acc) {
    const struct opnd *o = &t->op[i];
    struct hold *h = &c->plan->hold[i];
    struct user user = user_of(c, t);
    if (!price_transfer(c, t, o, acc, true, h, h->depth, &user)) return false;
    for (int k = o->in.n - 1; k >= 0 && !o->writes; k--) {
        int inner = h->depth;
        o = o->from;
        h = &c->plan->via[i][k];
        if (!price_transfer(c, t, o, acc, true, h, inner, &user)) return false;
    }
    return true;
}

/* A result, from its own memory home. */
static bool price_way(struct pricing *c, const struct task *t, int i) {
    struct hold *h = &c->plan->hold[i];
    const struct access *acc = &c->w->p->stmt[t->stmt].dst;
    struct user user = user_of(c, t);
    if (!price_transfer(c, t, &t->op[i], acc, false, h, h->depth, &user)) return false;
    c->leaves = c->drain;
    for (const struct opnd *o = t->op[i].to; o; o = o->to) {
        struct stream before = c->drain;
        struct hold via = {.depth = h->depth, .slots = way_slots(c->nest)};
        const struct instr *in =
            copy_price(c->w, c->moves, c->plan, t, o, acc, false, via.depth, 0).in;
        if (!in) return false;
        via.slots = slots_held(c->w->edges, in, user.in, via.slots);
        if (!price_transfer(c, t, o, acc, false, &via, via.depth, &user)) return false;
        double turn = before.cycles + before.latency + c->drain.cycles + c->drain.latency;
        c->way = fmax(c->way, (c->drain.trips - via.slots) * turn / via.slots);
    }
    return true;
}

/* Static memories are registers: what the chain needs may lie over the inputs, which are dead by
 * then. In *result all that is used. */
static bool fits_memories(struct pricing *c, int64_t *result, const int64_t *input) {
    int64_t chain[MAX_MEMORIES], core[MAX_MEMORIES];
    struct work *w = c->w;
    memset(chain, 0, sizeof *chain * (size_t)w->m->nmemories);
    for (int i = 0; i < c->nest->nchain; i++) {
        const struct task *t = &w->task[c->nest->chain[i].task];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct region r;
            if (!chain_needs_hold(c->nest, i, k) ||
                chain_takes_over(w, c->plan, c->nest, i, k).follower >= 0)
                continue;
            chain_region(w, c->plan, c->nest, t, o, &r);
            chain[o->memory] +=
                slot_bytes(w, o, &r) * chain_slots_least(w, c->moves, c->nest, t, o);
        }
    }
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++) {
        core[m] = result[m] + input[m];
        result[m] += graph_is_static(w->m, m) ? (input[m] > chain[m] ? input[m] : chain[m])
                                              : input[m] + chain[m];
        if (result[m] > nest_room(w, c->nest, m)) return false;
    }
    return banks_chain_fits(w, c->moves, c->nest, c->plan, core);
}

bool chain_fits(struct work *w, const struct moves *moves, const struct nest *n,
                const struct plan *p) {
    struct plan q = *p;
    struct pricing c;
    pricing_begin(&c, w, moves, n, &q);
    int64_t used[MAX_MEMORIES] = {0}, none[MAX_MEMORIES] = {0};
    return fits_memories(&c, used, none);
}

bool never_spills(const struct nest *n, const struct task *t, const struct opnd *o) {
    if (n->is_grid || o->from || o->to || !o->returns || t->needle->in->completes >= 0) return true;
    for (int i = 0; i < t->nops; i++)
        if (attached_at(&t->op[i], STORES)) return true; /* nobody brings partial sums home */
    return attached_at(o, CHANGES) || attached_at(o, FILLS);
}

/* Does a block's result reach home before the next block fetches it? */
static bool spills_in_step(const struct pricing *c, const struct task *t, const struct hold *h,
                           const struct instr *in, const struct instr *out) {
    int exec = t->needle->in->queue;
    if (h->slots > 1 || t->needle->in->completes >= 0) return false;
    for (int i = 0; i < t->nops; i++)
        if (attached_at(&t->op[i], STORES)) return false; /* nobody brings partial sums home */
    if (edge_find(c->w->edges, in->queue, in->completes, exec).kind != EDGE_FREE) return false;
    return !c->nest->nchain ||
           edge_find(c->w->edges, out->queue, out->completes, exec).kind == EDGE_FREE;
}

/* Between two blocks partial sums leave their registers and others come: the moves of a queue in
 * data order are free to begin early, but they find no room before, and no sum grows meanwhile. */
static double spill_cycles(const struct pricing *c, const struct task *t, const struct copy *in,
                           const struct copy *out) {
    const struct queue *queue = c->w->m->queue, *fill = &queue[in->in->queue],
                       *drain = &queue[out->in->queue];
    if (in->in->queue == t->needle->in->queue || !fill->data_order || !drain->data_order) return 0;
    return in->cycles / fmax(1, (double)fill->width) + out->cycles / fmax(1, (double)drain->width);
}

/* A result that begins with what is at home: every block fetches it. */
static bool price_blocks(struct pricing *c, const struct task *t, const struct opnd *o,
                         const struct hold *h, double blocks) {
    const struct access *acc = &c->w->p->stmt[t->stmt].dst;
    struct copy in = copy_price(c->w, c->moves, c->plan, t, o, acc, true, h->depth, h->fill_by),
                out = copy_price(c->w, c->moves, c->plan, t, o, acc, false, h->depth, h->drain_by);
    if (!in.in || !out.in) return true;
    if (!spills_in_step(c, t, h, in.in, out.in)) return false;
    double times = plan_trips(c->w, c->plan, h->depth) * (1 - 1 / blocks);
    c->bubble += price_add(c, PRICE_SPILLS, times * spill_cycles(c, t, &in, &out));
    return true;
}

/* Partial sums go home after each block of the reductions and return before the next but the
 * first, through queues that hardware keeps in step, or one after the other in one slot. */
static bool price_spills(struct pricing *c, const struct task *t, const struct opnd *o,
                         const struct hold *h, double blocks) {
    const struct access *acc = &c->w->p->stmt[t->stmt].dst;
    if (never_spills(c->nest, t, o)) return false;
    struct copy in = copy_price(c->w, c->moves, c->plan, t, o, acc, true, h->depth, h->fill_by),
                out = copy_price(c->w, c->moves, c->plan, t, o, acc, false, h->depth, h->drain_by);
    if (!in.in || !out.in || !spills_in_step(c, t, h, in.in, out.in)) return false;
    double share = 1 - 1 / blocks, times = plan_trips(c->w, c->plan, h->depth) * share,
           bytes = plan_traffic(c->w, c->plan, t, acc, h->depth) * share *
                   (double)type_size(c->w->p->buffer[acc->buffer].type);
    charge(c, in.in, times, in.cycles, bytes);
    c->bubble += price_add(c, PRICE_SPILLS, /* a block starts with what the last one left */
                           times * fmax(in.latency + out.latency, spill_cycles(c, t, &in, &out)));
    c->plan->bytes += bytes;
    if (!c->nest->nchain) return true; /* drained as every result */
    charge(c, out.in, times, out.cycles, bytes);
    c->plan->bytes += bytes;
    return true;
}

/* In straight-line code the code generator keeps a register that would be filled again with the
 * same data: such a hold is really the one further out. */
static bool repeats_fill(const struct pricing *c, const struct opnd *o, const struct access *acc,
                         int depth) {
    if (!graph_is_static(c->w->m, o->memory)) return false;
    for (int i = depth - 1; i >= 0 && loop_unrolled(c->w, c->nest, c->plan, i); i--)
        if (!access_varies(c->w->p, acc, c->plan->loop[i].axis)) return true;
    return false;
}

/* What an instruction reads at home passes through registers that the code generator takes, and its
 * own code may need some. */
static double passing_room(const struct pricing *c, const struct task *t, int64_t *bytes) {
    const struct work *w = c->w;
    int memory = -1;
    double words = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->writes && is_local(o) && w->m->memory[o->memory].pass == PASS_VALUE)
            memory = o->memory;
        if (o->where == IN_HOME && o->read >= 0)
            words =
                fmax(words, plan_passing(w, c->nest, c->plan, &w->p->stmt[t->stmt].read[o->read]));
    }
    if (memory < 0) return words;
    const struct memory *m = &w->m->memory[memory];
    if (words > 0 && m->size > 4 * m->word) bytes[memory] += (int64_t)words * m->word;
    bytes[memory] += w->m->instr[t->needle->instr].scratch * m->word;
    return words;
}

bool price_loads(const struct work *w, const struct nest *n, const struct task *t, int i) {
    const struct opnd *o = &t->op[i];
    const struct home *h = work_home(w, opnd_access(w, t, o)->buffer);
    return nest_begins_at_home(w, n, o) && !(n->kept >> i & 1) &&
           (!h->is_tile || h->memory != o->memory);
}

/* Whatever the outer copies: in the other plans of these holds it is so too. */
static bool holds_fit(struct pricing *c, const struct task *t, struct outward *outward) {
    struct work *w = c->w;
    int64_t result[MAX_MEMORIES], input[MAX_MEMORIES], bytes[MAX_OPERANDS] = {0};
    memset(result, 0, sizeof *result * (size_t)w->m->nmemories);
    memset(input, 0, sizeof *input * (size_t)w->m->nmemories);
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (!is_local(o)) continue;
        const struct access *acc = opnd_access(w, t, o);
        bool lasts = o->writes || c->plan->hold[i].depth < c->plan->depth_out;
        bytes[i] = keeps_part(&c->plan->hold[i])
                       ? hold_bytes(w, c->plan, t, o, acc, &c->plan->hold[i])
                       : copy_bytes(w, c->plan, t, o, acc, c->plan->hold[i].depth) *
                             c->plan->hold[i].slots;
        (lasts ? result : input)[o->memory] += bytes[i];
        if (repeats_fill(c, o, acc, c->plan->hold[i].depth) ||
            !loose_alone(w, c->plan, t, o, acc, c->plan->hold[i].depth))
            return false;
    }
    for (int i = 0; i < t->nops; i++)
        if (attached_at(&t->op[i], CHANGES))
            result[t->op[i].memory] += follow_bytes(w, c->plan, &t->op[i], c->plan->hold[i].depth);
    bool crowded = passing_room(c, t, input) > 1;
    int64_t address[MAX_OPERANDS];
    if (crowded && c->plan->tiling) c->plan->tiling->crowded = true;
    if (!banks_plan(w, c->nest, bytes, address)) return false;
    banks_gaps(w, c->nest, bytes, address, result);
    if (!fits_memories(c, result, input) || !needs_keep(w, c->nest, c->plan)) return false;
    return route_holds(w, c->moves, c->nest, c->plan, result, outward);
}

static bool price_copies(struct pricing *c, const struct task *t) {
    struct work *w = c->w;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        const struct hold *h = o->in.n ? &c->plan->via[i][0] : &c->plan->hold[i];
        const struct access *acc = opnd_access(w, t, o);
        if (!is_local(o)) continue;
        if (!tile_sound(c, t, i, acc, h->depth, NEVER_EMPTY) ||
            !tile_sound(c, t, i, acc, h->depth, WHOLE_BLOCKS) ||
            !tile_sound(c, t, i, acc, c->plan->hold[i].depth, WHOLE_BLOCKS))
            return false;
    }
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (!is_local(o)) continue;
        const struct access *acc = opnd_access(w, t, o);
        bool load = price_loads(c->w, c->nest, t, i);
        double blocks = o->writes ? plan_blocks(w, c->plan, t, c->plan->hold[i].depth) : 1;
        if (attached_at(o, CHANGES) && (blocks > 1 || !follow_price(c, o, &c->plan->hold[i])))
            return false;
        if (o->writes && attached_at(o, FILLS) &&
            (blocks > 1 || !price_start(c, t, o, acc, c->plan->hold[i].depth)))
            return false;
        if (load && blocks > 1 && !price_blocks(c, t, o, &c->plan->hold[i], blocks)) return false;
        if (!load && blocks > 1 && !price_spills(c, t, o, &c->plan->hold[i], blocks)) return false;
        if (load && !price_route(c, t, i, acc)) return false;
        if (o->writes && !c->nest->nchain && !price_way(c, t, i)) return false;
    }
    return true;
}

/* Issues between two updates of the same accumulator; where the queue sees several results at a
 * time, as many more. */
static double independent(const struct pricing *c, const struct task *t) {
    int last = -1;
    for (int i = 0; i < c->plan->nloops; i++)
        if (t->reductions >> c->plan->loop[i].axis & 1) last = i;
    double all = plan_trips(c->w, c->plan, c->plan->nloops),
           inner = fmax(1, all / plan_trips(c->w, c->plan, last + 1)),
           period = all / plan_trips(c->w, c->plan, c->plan->depth_out),
           window = (double)c->w->m->queue[t->needle->in->queue].window;
    return window > period ? inner * window / period : inner;
}

static double queue_width(const struct queue *q) {
    return (double)(q->width > 0 ? q->width : 1);
}

double issues_alone(struct pricing *c, const struct task *t) {
    double issues, overhead, cycles = leaf_cycles(c, t, &issues);
    const struct instr *in = t->needle->in;
    instr_times(c->w->m, in, t->needle->bound, NULL, NULL, NULL, &overhead);
    double saved = remain_saving(c->w, t, c->plan, issues, c->spared);
    return (cycles - overhead * issues - saved) / queue_width(&c->w->m->queue[in->queue]);
}

static bool price_issues(struct pricing *c, const struct task *t) {
    double issues, latency, overhead, cycles;
    const struct instr *in = t->needle->in;
    const struct queue *q = &c->w->m->queue[in->queue];
    double width = queue_width(q);
    leaf_cycles(c, t, &issues);
    instr_times(c->w->m, in, t->needle->bound, NULL, &latency, NULL, &overhead);
    double entries = plan_entries(c->w, c->nest, c->plan, issues);
    cycles = price_add(c, PRICE_ISSUES, issues_alone(c, t)) +
             price_add(c, PRICE_ENTRIES, overhead * entries / width);
    if (q->data_order && t->reductions) {
        double chains = independent(c, t), filled = fmin(1, chains / (latency * width));
        double waited = issues / chains * (latency + q->pick * pow(filled, q->contention));
        cycles += price_add(c, PRICE_CHAINS, fmax(0, waited - cycles));
    }
    c->queue[in->queue] += cycles;
    double body = 1, settled = 1;
    for (int i = 0; i < c->plan->nloops; i++) {
        double trips = ceil((double)plan_tile(c->w, c->plan, c->plan->loop[i].axis, i) /
                            (double)c->plan->loop[i].tile);
        if (trips <= 1 || !loop_unrolled(c->w, c->nest, c->plan, i)) continue;
        *(loop_settles(c->w, c->nest, c->plan, i) ? &settled : &body) *= trips;
    }
    return unrolled_fits(body, settled);
}

/* What is compared: where the nest takes so long, and a little for what else is used. */
static double compared(struct pricing *c, double steady) {
    double all = 0, port = 0;
    for (int q = 0; q < c->w->m->nqueues && q < MAX_QUEUES; q++) all += c->queue[q];
    for (int b = 0; b < c->w->m->nbuses && b < MAX_BUSES; b++) port += c->bus[b];
    c->plan->port = port;
    return steady + TIE * (all - steady > 0 ? all - steady : 0) + TIE * port;
}

static double busiest(const struct pricing *c, const char **bound) {
    const struct machine *m = c->w->m;
    double steady = 0;
    for (int q = 0; q < m->nqueues && q < MAX_QUEUES; q++) {
        if (c->queue[q] > steady) *bound = m->queue[q].id;
        steady = fmax(steady, c->queue[q]);
    }
    for (int b = 0; b < m->nbuses && b < MAX_BUSES; b++) {
        if (c->bus[b] > steady) *bound = m->bus[b].id;
        steady = fmax(steady, c->bus[b]);
    }
    return steady;
}

/* A queue that only brings results home has nothing to do before the first of them. */
static double after_lead(const struct pricing *c) {
    const struct stream *d = &c->drain;
    if (d->trips <= 0) return 0;
    for (int i = 0; i < c->nfills; i++)
        if (c->fill[i].queue == d->queue || c->fill[i].user == d->queue) return 0;
    return c->plan->lead + c->queue[d->queue];
}

/* Known for loops of which the same are unrolled. */
static struct share share_of(const struct work *w, const struct nest *n, const struct plan *p) {
    struct tiling *k = p->tiling;
    uint64_t unrolled = 0;
    if (share_instances(w, &w->task[n->core]) < 2) return (struct share){.part = 1};
    if (!k || k->nloops != p->nloops) return share_best(w, n, p);
    for (int i = 0; i < p->nloops; i++) unrolled |= (uint64_t)loop_unrolled(w, n, p, i) << i;
    if (!k->share_known || k->share_unrolled != unrolled) k->share = share_best(w, n, p);
    k->share_known = true;
    k->share_unrolled = unrolled;
    return k->share;
}

/* With the share, where that is less; the second nest of a pair runs with the first one's. */
static double shared_cycles(const struct work *w, const struct task *t, const struct share *s,
                            double cycles) {
    return s->n ? fmin(cycles, share_waking(w, t) + cycles * s->part) : cycles;
}

/* All that is left out adds to a queue, a bus or the waits, and none of these lowers what is
 * compared. */
double least_compared(struct pricing *c, const struct task *t) {
    const char *bound;
    double cycles = compared(c, busiest(c, &bound)), n = (double)share_instances(c->w, t);
    return n > 1 ? fmin(cycles, share_waking(c->w, t) + cycles / n) : cycles;
}

/* The operand's own copies take their queues and buses; nothing is known of those that stay in
 * part. False: no move brings them. */
bool least_charge(struct pricing *c, const struct task *t, int i, const struct hold *h) {
    const struct opnd *o = &t->op[i];
    if (!is_local(o) || keeps_part(h)) return true;
    for (int fill = 0; fill < 2; fill++) {
        if (fill ? !price_loads(c->w, c->nest, t, i) : !o->writes || c->nest->nchain) continue;
        struct transfer x = transfer_of(
            c, t, o, fill ? opnd_access(c->w, t, o) : &c->w->p->stmt[t->stmt].dst, fill, h);
        if (!x.copy.in) return false;
        charge_transfer(c, &x);
    }
    return true;
}

/* Once the issues are charged. */
static double least_cycles(const struct pricing *c, const struct task *t) {
    struct pricing least;
    memcpy(&least, c, offsetof(struct pricing, queue));
    memcpy(least.queue, c->queue, sizeof *c->queue * (size_t)c->w->m->nqueues);
    memcpy(least.bus, c->bus, sizeof *c->bus * (size_t)c->w->m->nbuses);
    for (int i = 0; i < t->nops; i++)
        if (!least_charge(&least, t, i, &c->plan->hold[i])) return INFINITY;
    return compared(&least, busiest(&least, &c->plan->bound));
}

/* What is read where it lies, and what caches bring, take load slots. */
static const struct refills *price_reads(struct pricing *c, const struct task *t,
                                         const struct share *share) {
    double before[MAX_QUEUES];
    size_t queues = sizeof *before * (size_t)c->w->m->nqueues;
    memcpy(before, c->queue, queues);
    direct_charge(c->w, c->moves, c->plan, t, c->queue);
    const struct refills *r = caches_charge(c->w, c->moves, c->plan, t, share, c->queue);
    if (!price_counts(c->w, PRICE_READS)) memcpy(c->queue, before, queues);
    price_add(c, PRICE_READS, c->queue[t->needle->in->queue] - before[t->needle->in->queue]);
    return r;
}

bool plan_price(struct work *w, const struct moves *moves, const struct nest *n, struct plan *p) {
    return plan_price_below(w, moves, n, p, INFINITY);
}

/* With at least so many cycles the plan is not priced further. */
static bool is_above(struct plan *p, double limit, double least) {
    if (isinf(limit) || least < limit) return false;
    p->cycles = limit;
    return true;
}

/* With outer copies as far out as the plan says. */
static bool price_outward(struct work *w, const struct moves *moves, const struct nest *n,
                          struct plan *p, double limit, struct outward *outward) {
    struct pricing c;
    pricing_begin(&c, w, moves, n, p);
    const struct task *t = &w->task[n->core];
    w->effort->plans++;
    p->bytes = 0;
    memset(p->price, 0, sizeof p->price);
    p->bound = NULL;
    p->is_static = false;
    for (int i = 0; i < t->nops; i++)
        p->is_static |= is_local(&t->op[i]) && graph_is_static(w->m, t->op[i].memory);
    p->cycles = INFINITY;
    struct share share = share_of(w, n, p);
    if (!price_issues(&c, t)) return false;
    p->alone = shared_cycles(w, t, &share, issues_alone(&c, t));
    bool known = !p->tiling || p->tiling->fits;
    if (known && is_above(p, limit, shared_cycles(w, t, &share, least_cycles(&c, t)))) return false;
    if (outward->known)
        outward_again(p, outward);
    else if (!holds_fit(&c, t, outward))
        return false;
    if (!price_copies(&c, t)) return false;
    if (p->tiling) p->tiling->fits = p->tiling->held = true;
    if (is_above(p, limit, shared_cycles(w, t, &share, compared(&c, busiest(&c, &p->bound)))))
        return false;
    const struct refills *brought = price_reads(&c, t, &share);
    struct refills refills[2] = {brought[0], brought[1]};
    p->asks = graph_apart(w->m, t->needle->in->queue)
                  ? 0
                  : asks_charge(w, moves, n, p, refills, 2, c.queue);
    pipe_chain(&c, t);
    pipe_signals(&c, t);
    double steady = busiest(&c, &p->bound), waits = c.queue[t->needle->in->queue], shared;
    p->busy = steady;
    waits += pipe_waits(&c, t);
    if (isinf(waits)) return false;
    if (waits > 1.05 * steady) p->bound = "waits for copies";
    steady = fmax(steady, after_lead(&c));
    steady = waits + price_add(&c, PRICE_BUSIEST, fmax(0, steady - waits));
    steady += price_add(&c, PRICE_STATES, needs_changes(w, t, p));
    shared = steady * share.part;
    if (!graph_apart(w->m, t->needle->in->queue)) {
        double caches = caches_cycles(&refills[0], steady);
        if (caches > 1.25 * steady) p->bound = "refills of caches";
        shared += price_add(&c, PRICE_REFILLS, caches_cycles(&refills[1], shared) - shared);
        p->price[PRICE_REFILLS] = 0;
        steady += price_add(&c, PRICE_REFILLS, caches - steady);
    }
    shared += price_add(&c, PRICE_WAKING, share_waking(w, t));
    p->whole = p->predicted = steady;
    p->share = (struct share){.part = 1};
    if (share.n && shared < steady) {
        p->share = share;
        p->predicted = shared;
        p->busy *= share.part;
    } else {
        p->price[PRICE_WAKING] = 0;
    }
    p->cycles =
        p->predicted + price_add(&c, PRICE_TIES, (compared(&c, steady) - steady) * p->share.part);
    return true;
}

/* Copies further out are filled less often, but whole before anything begins: not always less. */
bool plan_price_below(struct work *w, const struct moves *moves, const struct nest *n,
                      struct plan *p, double limit) {
    struct outward outward = {.known = false};
    bool any = !p->outward;
    int parts = p->parts;
    bool ok = price_outward(w, moves, n, p, limit, &outward);
    for (int k = p->outward - 1; any && k > 0; k--) {
        struct plan q = *p;
        q.outward = k;
        q.parts = parts;
        if (!price_outward(w, moves, n, &q, ok ? fmin(limit, p->cycles) : limit, &outward)) {
            if (!ok) p->cycles = fmin(p->cycles, q.cycles);
            continue;
        }
        if (!ok || q.cycles < p->cycles) *p = q;
        ok = true;
    }
    return ok;
}
