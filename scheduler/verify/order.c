/* Order between queues, for the symbolic walk: tokens, groups, fences and clocks as they are walked
 * element by element (race.c, sync.c), but of memories only slots of places are told apart, or,
 * where that is too coarse, the bytes that each access touches.
 * Every trip is walked, but for loops without signals, whose third iteration finds what the second
 * found. */
#include "scheduler/verify/exact.h"
#include "scheduler/verify/steady.h"
#include "scheduler/verify/stretch.h"

#include <stdlib.h>
#include <string.h>

struct order {
    struct verify *v;
    struct exact exact;  /* accesses have their own bytes */
    bool twice;          /* an iteration of a loop is walked that is walked twice */
    int top;             /* number of the node at the top level that is walked */
    bool again;          /* accesses were out of order where bytes were not told apart */
    int open;            /* the variable of the size that is open; -1 */
    struct size_at at;   /* its values */
    int64_t whole, rest; /* the one that is walked */
    /* Of the loops that end at it: after so many groups more, or so many more in the rest, all is
     * as before; 0: not known. */
    int period[2];
    struct steady steady;
    int64_t phase_steps; /* what the last phase cost */
    int64_t steps;
    int met_before; /* errors of walks before this one */
    const char *why;
};

static bool order_fail(struct order *o, const char *why) {
    if (!o->why) o->why = why;
    o->v->stop = true;
    return false;
}

static bool spend(struct order *o, int64_t steps) {
    o->steps -= steps;
    return o->steps >= 0 || order_fail(o, "more steps than its budget");
}

static int64_t down_to(int64_t x, int64_t word) {
    return x - ((x % word) + word) % word;
}

/* An access to bytes of a memory, or to slots of a state. place: -1: of no place alone. */
struct access_of {
    struct order *o;
    int qi, place, memory;
    bool write;
};

static bool touch_stretch(void *user, struct granule *g, int64_t from) {
    const struct access_of *x = user;
    struct place_at at = {x->memory, 0, from};
    struct order *o = x->o;
    if (exact_missed(&o->exact, x->memory, x->place)) return true;
    if (race_granule(o->v, g, x->qi, at, x->write)) return true;
    o->again = exact_more(&o->exact, x->memory, x->place, o->top);
    o->v->stop = !o->again;
    if (!o->again) return false;
    o->v->errors = 0;
    o->met_before = o->v->diags->n;
    return true;
}

static void touch_pieces(struct access_of x, const struct piece *piece, int n) {
    struct order *o = x.o;
    int64_t steps;
    if (exact_missed(&o->exact, x.memory, x.place)) return;
    bool good = stretches_touch(&o->v->stretch[x.memory], piece, n, touch_stretch, &x, &steps);
    if (!good && !o->v->stop) order_fail(o, "accesses of many kinds");
    spend(o, steps / 8);
}

static void touch(struct access_of x, int64_t low, int64_t high) {
    int64_t word = x.o->v->word[x.memory];
    struct piece all = {down_to(low, word), down_to(high + word - 1, word)};
    if (x.o->v->races_matter && high > low) touch_pieces(x, &all, 1);
}

static void touch_slot(struct order *o, int qi, int place, bool write) {
    const struct place *p = &o->v->s->place[place];
    int64_t at = p->address + verify_slot(o->v, place) * p->bytes;
    touch((struct access_of){o, qi, place, p->memory, write}, at, at + p->bytes);
}

/* ---- accesses ---- */
/* To whole words, which neighbours may share. */
static void round_to_words(struct pieces *all, int64_t word) {
    int n = 0;
    for (int k = 0; k < all->n; k++) {
        struct piece x = {down_to(all->at[k].low, word), down_to(all->at[k].high + word - 1, word)};
        if (x.high <= x.low) continue;
        if (n && x.low <= all->at[n - 1].high)
            all->at[n - 1].high = x.high;
        else
            all->at[n++] = x;
    }
    all->n = n;
}

static void touch_bytes(struct access_of x, int64_t at, const struct shape_operand *operand,
                        const struct hardware *h, const struct sx *offset) {
    struct verify *v = x.o->v;
    struct pieces all;
    pieces_of(&all, at, operand, h, offset, v->var);
    round_to_words(&all, v->word[x.memory]);
    if (v->races_matter && spend(x.o, 1 + all.n / 8)) touch_pieces(x, all.at, all.n);
}

static const struct shape *shape_here(struct order *o, const struct issue_node *n) {
    const struct instr *in = &o->v->m->instr[n->instr];
    int64_t size[64], stride[64];
    if (in->nranged > 64 || in->nstride_names > 64) return NULL;
    for (int k = 0; k < in->nranged; k++) size[k] = sx_eval(n->size[k], o->v->var);
    for (int k = 0; k < in->nstride_names; k++) stride[k] = sx_eval(n->stride[k], o->v->var);
    return shape_get(o->v, n, size, stride);
}

static void operand_access(struct order *o, const struct issue_node *n, const struct hardware *h,
                           const struct shape *shape, int who, int operand, bool write) {
    const struct arg *a = &n->arg[operand];
    if (a->place < 0) return;
    const struct place *p = &o->v->s->place[a->place];
    if (!o->exact.place[a->place]) {
        touch_slot(o, who, a->place, write);
        return;
    }
    const struct shape_operand *x = &shape->operand[operand];
    int64_t at = p->address + verify_slot(o->v, a->place) * p->bytes;
    if (x->instance || x->swizzle.bits) {
        touch_slot(o, who, a->place, write);
        return;
    }
    struct access_of access = {o, who, a->place, p->memory, write};
    touch_bytes(access, at, x, h, a->offset);
}

static void accesses(struct order *o, const struct issue_node *n, const struct hardware *h,
                     int who) {
    const struct instr *in = &o->v->m->instr[n->instr];
    const struct shape *shape = shape_here(o, n);
    if (!shape) {
        order_fail(o, "an instruction that is not followed");
        return;
    }
    for (int write = 0; write < 2; write++)
        for (int k = 0; k < in->noperands && !o->v->stop; k++) {
            const struct shape_operand *x = &shape->operand[k];
            if (write ? x->writes : x->reads) operand_access(o, n, h, shape, who, k, write);
        }
}

/* All of its slots, whichever holds what is needed; objects that `prepare` makes are never written
 * again. */
static void needs(struct order *o, const struct instr *in, int who) {
    const struct machine *m = o->v->m;
    for (int k = 0; k < in->nneeds && !o->v->stop; k++) {
        int state = in->need[k].state;
        if (state_from_addresses(m, state) || state_slots(m, state) < 0) continue;
        touch((struct access_of){o, who, -1, m->nmemories + state, false}, 0,
              state_slots(m, state));
    }
}

/* What was in the memory is lost. */
static void remains(struct order *o, const struct issue_node *n, int who) {
    const struct instr *in = &o->v->m->instr[n->instr];
    for (int k = 0; k < in->noperands && !o->v->stop; k++) {
        int also = in->operand[k].also;
        if (also < 0 || n->arg[k].place < 0 || o->v->s->place[n->arg[k].place].memory == also)
            continue;
        touch((struct access_of){o, who, -1, also, true}, 0, o->v->m->memory[also].size);
    }
}

static bool configure(struct order *o, const struct configure_node *n) {
    struct verify *v = o->v;
    const struct machine *m = v->m;
    const struct configure *c = &m->configure[n->configure];
    if (c->queue < 0) return true;
    int qi = race_queue(v, c->queue, c->unit);
    race_begin(v, qi, &n->signals);
    for (int k = 0; k < c->nsets && !v->stop; k++) /* of words it writes all, values or none */
        if (m->state[c->sets[k]].of >= 0)
            touch((struct access_of){o, qi, -1, m->nmemories + c->sets[k], true}, 0,
                  state_slots(m, c->sets[k]));
    for (int k = 0; k < n->nsets && !v->stop; k++)
        if (m->state[n->set[k].state].of < 0)
            touch((struct access_of){o, qi, -1, m->nmemories + n->set[k].state, true},
                  n->set[k].index, n->set[k].index + 1);
    for (int k = 0; k < c->nclobbers && !v->stop; k++)
        touch((struct access_of){o, qi, -1, c->clobbers[k], true}, 0,
              m->memory[c->clobbers[k]].size);
    race_push(v, qi, &n->signals);
    return spend(o, 1 + n->nsets);
}

static bool issue(struct order *o, const struct issue_node *n, const struct hardware *h) {
    struct verify *v = o->v;
    const struct instr *in = &v->m->instr[n->instr];
    int qi = race_queue(v, in->queue, in->unit), who = qi;
    race_begin(v, qi, &n->signals);
    if (in->completes >= 0) who = race_start_behind(v, qi, in->completes);
    if (v->races_matter && !v->stop) {
        needs(o, in, qi);
        accesses(o, n, h, who);
        remains(o, n, qi);
    }
    if (h && h->table >= 0) touch_slot(o, qi, h->loop[h->table]->table - 1, false);
    race_push(v, qi, &n->signals);
    return spend(o, 1 + n->signals.npops + n->signals.npushes);
}

static bool fallback(struct order *o, const struct fallback_node *n) {
    struct verify *v = o->v;
    const struct fallback *f = &v->m->fallback[n->fallback];
    const struct stmt *s = &v->p->stmt[n->stmt];
    int qi = race_queue(v, f->queue, f->unit);
    race_begin(v, qi, &n->signals);
    for (int r = 0; r <= s->nreads; r++) {
        int home = v->home[r < s->nreads ? s->read[r].buffer : s->dst.buffer];
        if (home < 0) return order_fail(o, "a buffer has no home");
        touch_slot(o, qi, home, r == s->nreads);
    }
    race_push(v, qi, &n->signals);
    return spend(o, 2);
}

/* ---- the walk ---- */
static bool walk(struct order *o, const struct node *node, int n);

static bool walk_iteration(struct order *o, const struct loop_node *l, int64_t x) {
    o->v->var[l->var] = x;
    steady_at(&o->steady, l->var, x);
    return spend(o, 1) && walk(o, l->body, l->nbody);
}

/* ---- a loop that ends at a size that is open ---- */
enum { MOST_PERIOD = 8, RING = MOST_PERIOD + 1 };

/* Operands in memories whose bytes are told apart lie elsewhere at each step, or at each size. */
static bool bytes_use(const struct order *o, const struct node *node, int n, int var, int size) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP &&
            bytes_use(o, node[k].loop->body, node[k].loop->nbody, var, size))
            return true;
        if (node[k].kind != NODE_ISSUE) continue;
        const struct issue_node *i = node[k].issue;
        const struct instr *in = &o->v->m->instr[i->instr];
        bool exact = false;
        for (int a = 0; a < in->noperands; a++) {
            if (i->arg[a].place < 0 || !o->exact.place[i->arg[a].place]) continue;
            exact = true;
            if (sx_uses(i->arg[a].offset, var) || sx_uses(i->arg[a].offset, size)) return true;
        }
        for (int a = 0; a < in->nranged && exact; a++)
            if (sx_uses(i->size[a], var) || sx_uses(i->size[a], size)) return true;
        for (int a = 0; a < in->nstride_names && exact; a++)
            if (sx_uses(i->stride[a], var) || sx_uses(i->stride[a], size)) return true;
    }
    return false;
}

enum grows { GROUPS, RESTS };

/* How many iterations more there are where there is a group more, or one more in the rest; -1: not
 * known. */
static int64_t more_with(struct order *o, const struct loop_node *l, enum grows by) {
    const struct size_at *at = &o->at;
    int64_t *size = &o->v->var[o->open], was = *size, lo[2], hi[2];
    if (by == GROUPS ? at->whole[0] == at->whole[1] : at->rest[0] == at->rest[1]) return 0;
    if (by == RESTS && o->rest == at->rest[1]) *size -= 1;
    for (int k = 0; k < 2; k++) {
        lo[k] = sx_eval(l->lo, o->v->var);
        hi[k] = sx_eval(l->hi, o->v->var);
        *size += by == GROUPS ? at->group : 1;
    }
    *size = was;
    int64_t first = lo[1] - lo[0], last = hi[1] - hi[0];
    bool plain = l->step == 1 && l->kind != LOOP_PARALLEL && l->kind != LOOP_HARDWARE;
    return plain && (first == 0 || first == last) ? last - first : -1;
}

/* As many iterations at each size, which ask the same. */
static bool same_with(struct order *o, const struct loop_node *l) {
    return more_with(o, l, GROUPS) == 0 && more_with(o, l, RESTS) == 0 &&
           !bounds_use(l->body, l->nbody, l->var, o->open) &&
           !bytes_use(o, l->body, l->nbody, l->var, o->open);
}

/* 0: not known. */
static int common_period(int a, int b) {
    int c = a;
    while (b && c % b) c += a;
    return b ? c : 0;
}

/* Walked at one value of the size. If it ends as it stood p iterations before, it ends so at each
 * value with p iterations more, or twice as many, and so on. */
static bool walk_open(struct order *o, const struct loop_node *l) {
    struct verify *v = o->v;
    struct phase ring[RING] = {{0}};
    int64_t lo = sx_eval(l->lo, v->var), hi = sx_eval(l->hi, v->var), n = 0;
    bool good = true;
    int64_t more[2] = {more_with(o, l, GROUPS), more_with(o, l, RESTS)};
    if (more[GROUPS] < 0 || more[RESTS] < 0 || more[GROUPS] + more[RESTS] != 1 ||
        bounds_use(l->body, l->nbody, l->var, o->open) ||
        bytes_use(o, l->body, l->nbody, l->var, o->open))
        return order_fail(o, "the order of queues over a size that is open is not followed");
    for (int64_t x = lo; x < hi && good; x++) {
        phase_take(v, &ring[n % RING]);
        good = spend(o, (int64_t)ring[n++ % RING].n / 16) && walk_iteration(o, l, x);
    }
    int p = 1;
    phase_take(v, &ring[n % RING]);
    while (p <= MOST_PERIOD && p <= n && !phase_same(&ring[n % RING], &ring[(n - p) % RING])) p++;
    int *period = &o->period[more[RESTS] ? RESTS : GROUPS];
    *period = common_period(*period, p <= MOST_PERIOD && p <= n ? p : 0);
    for (int k = 0; k < RING; k++) free(ring[k].at);
    return good;
}

static bool walk_body(void *user, const struct loop_node *l) {
    struct order *o = user;
    return walk_iteration(o, l, o->v->var[l->var]);
}

/* Iterations of a virtual unit differ in nothing that is looked at here. */
static bool all_alike(struct order *o, const struct loop_node *l) {
    return o->v->m->unit[l->unit].is_virtual && !bounds_use(l->body, l->nbody, l->var, l->var) &&
           !sizes_change(o->v->m, l->body, l->nbody, l->var) &&
           !bytes_use(o, l->body, l->nbody, l->var, l->var);
}

static bool walk_parallel(struct order *o, const struct loop_node *l) {
    const char *why = instances_apart(o->v, l);
    if (why) return order_fail(o, why);
    if (o->open >= 0 && (sx_uses(l->lo, o->open) || sx_uses(l->hi, o->open)))
        return order_fail(o, "a parallel loop over a size that is open");
    return instances_walk(o->v, l, all_alike(o, l), walk_body, o) && !o->v->stop;
}

/* ---- a loop that comes back to where it was ---- */
/* Iterations that ask the same of the queues, of which one left all as it was p iterations before:
 * more of them go round. */
struct round {
    struct phase ring[RING];
    int64_t n;    /* phases since such iterations began */
    int64_t last; /* the last of them */
    int tries;
};

/* Is it worth a look at what iterations leave, where the last one took so many steps? */
static bool worth_looking(const struct order *o, int64_t steps, int64_t left) {
    enum { FEW = 3 };
    return left >= FEW && steps * left > 4 * o->phase_steps;
}

/* How many of the iterations after x can be left out. */
static int64_t go_round(struct order *o, struct round *r, const struct loop_node *l, int64_t x,
                        int64_t hi) {
    enum { TRIES = 3 };
    int64_t next = x + l->step, p = 1;
    if (next > r->last) {
        r->n = 0;
        r->last = hi - 1;
        if (r->tries++ >= TRIES || !steady_from(&o->steady, l, next, &r->last))
            return r->last = x, 0;
    }
    phase_take(o->v, &r->ring[r->n++ % RING]);
    const struct phase *now = &r->ring[(r->n - 1) % RING];
    o->phase_steps = 1 + (int64_t)now->n / 16;
    spend(o, o->phase_steps);
    while (p <= MOST_PERIOD && p < r->n && !phase_same(now, &r->ring[(r->n - 1 - p) % RING])) p++;
    if (p > MOST_PERIOD || p >= r->n) return 0;
    return ((r->last - x) / l->step) / p * p;
}

static bool walk_trips(struct order *o, const struct loop_node *l, int64_t lo, int64_t hi) {
    struct round r = {.last = lo - 1};
    bool good = true;
    for (int64_t x = lo; x < hi && good; x += l->step) {
        int64_t before = o->steps;
        good = walk_iteration(o, l, x);
        if (good && worth_looking(o, before - o->steps, (hi - 1 - x) / l->step))
            x += l->step * go_round(o, &r, l, x, hi);
    }
    for (int k = 0; k < RING; k++) free(r.ring[k].at);
    return good;
}

/* All iterations touch the same, and nothing is signalled: the third finds what the second found.
 * Of such a loop in another one a single iteration is enough: what one node touches before another
 * in its iterations it also touches before it in two of the loop around. */
static bool walk_twice(struct order *o, const struct loop_node *l, int64_t lo, int64_t hi) {
    bool twice = o->twice, good = true;
    o->twice = true;
    for (int64_t x = lo, k = twice; x < hi && k < 2 && good; x += l->step, k++)
        good = walk_iteration(o, l, x);
    o->twice = twice;
    return good;
}

static bool walk_loop(struct order *o, const struct loop_node *l) {
    struct verify *v = o->v;
    struct hardware h;
    int64_t lo = sx_eval(l->lo, v->var), hi = sx_eval(l->hi, v->var);
    if (l->kind == LOOP_PARALLEL) return walk_parallel(o, l);
    if (l->kind == LOOP_HARDWARE) {
        if (!hardware_issue(v->m, l, &h)) return order_fail(o, "hardware loops around no issue");
        for (int k = 0; k < h.nloops; k++) v->var[h.loop[k]->var] = sx_eval(h.loop[k]->lo, v->var);
        return issue(o, h.issue, &h);
    }
    if (o->open >= 0 && (sx_uses(l->lo, o->open) || sx_uses(l->hi, o->open)) && !same_with(o, l))
        return walk_open(o, l);
    bool few = hi > lo && !depends_on(l->body, l->nbody, l->var) &&
               !sizes_change(o->v->m, l->body, l->nbody, l->var) &&
               (!o->exact.any || !bytes_use(o, l->body, l->nbody, l->var, l->var));
    return few ? walk_twice(o, l, lo, hi) : walk_trips(o, l, lo, hi);
}

static bool walk_one(struct order *o, const struct node *n) {
    struct verify *v = o->v;
    int qi;
    switch (n->kind) {
    case NODE_LOOP:
        return walk_loop(o, n->loop);
    case NODE_ISSUE:
        return issue(o, n->issue, NULL);
    case NODE_FALLBACK:
        return fallback(o, n->fallback);
    case NODE_ROTATE:
        verify_rotate(v, n->rotate);
        return true;
    case NODE_SYNC:
        qi = race_queue(v, n->sync.queue, -1);
        race_begin(v, qi, &n->sync.signals);
        race_push(v, qi, &n->sync.signals);
        return spend(o, 1);
    case NODE_CONFIGURE:
        return configure(o, n->configure);
    }
    return order_fail(o, "a node that is not followed");
}

static bool walk(struct order *o, const struct node *node, int n) {
    for (int k = 0; k < n && !o->v->stop && !o->v->errors; k++) {
        o->v->node = &node[k];
        if (!walk_one(o, &node[k])) return false;
    }
    return !o->v->stop && !o->v->errors;
}

static void forget(struct order *o) {
    race_forget(o->v);
    stretches_forget(o->v, o->v->stretch);
    o->v->stop = false;
    o->v->errors = 0;
    o->again = false;
    exact_begin(&o->exact);
    o->met_before = o->v->diags->n;
    o->why = NULL;
}

static bool walk_all(struct order *o) {
    struct verify *v = o->v;
    const struct section *section[] = {&v->s->prepare, &v->s->run};
    bool good = true;
    forget(o);
    o->period[GROUPS] = o->period[RESTS] = 1;
    o->top = -1;
    for (int k = 0; k < 2 && good; k++) {
        pages_free(&v->slots);
        for (int i = 0; i < section[k]->nnodes && good; i++) {
            exact_at(&o->exact, ++o->top);
            o->steady.any_exact = o->exact.any;
            good = walk(o, &section[k]->node[i], 1);
        }
        if (good) race_section_end(v);
    }
    v->node = NULL;
    return good && !v->stop && v->errors == 0;
}

/* By slots; of the places in which they are too coarse, by accesses. */
static bool in_order(struct order *o) {
    bool good = walk_all(o);
    while (good && o->again) good = walk_all(o);
    return good;
}

static bool has_signals(const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        const struct signals *g = node[k].kind == NODE_LOOP ? NULL : node_signals(&node[k]);
        if (g && g->npops + g->npushes > 0) return true;
        if (node[k].kind == NODE_LOOP && has_signals(node[k].loop->body, node[k].loop->nbody))
            return true;
    }
    return false;
}

bool order_matters(const struct verify *v) {
    const struct schedule *s = v->s;
    return v->races_matter || has_signals(s->prepare.node, s->prepare.nnodes) ||
           has_signals(s->run.node, s->run.nnodes);
}

static void report(const struct order *o, struct text *why) {
    const struct verify *v = o->v;
    text_printf(why, "%s",
                o->why                        ? o->why
                : v->limit.n                  ? v->limit.at
                : v->diags->n > o->met_before ? v->diags->at[o->met_before].text
                                              : "queues are not known to be in order");
}

static struct order order_of(struct verify *v, int64_t steps) {
    struct order o = {.v = v, .steps = steps, .open = -1};
    v->stretch = stretches_open(v);
    exact_open(&o.exact, v);
    steady_open(&o.steady, v, o.exact.place);
    return o;
}

static void order_free(struct order *o) {
    stretches_free(o->v, o->v->stretch);
    o->v->stretch = NULL;
    exact_free(&o->exact);
}

bool order_prove(struct verify *v, int64_t steps, struct text *why) {
    if (!order_matters(v)) return true;
    struct order o = order_of(v, steps);
    bool good = in_order(&o);
    if (!good) report(&o, why);
    order_free(&o);
    return good;
}

/* At one number of groups, all rests; *period: after so many groups more each of them is as it is
 * here. */
static bool rests_in_order(struct order *o, int *period) {
    int64_t last = o->at.rest[1];
    bool good = true;
    *period = 1;
    for (o->rest = o->at.rest[0]; o->rest <= last && good; o->rest++) {
        int64_t *size = &o->v->var[o->open];
        *size = o->at.group * o->whole + o->rest;
        steady_at(&o->steady, o->open, *size);
        good = in_order(o);
        *period = common_period(*period, o->period[GROUPS]);
        if (o->period[RESTS] && o->rest + o->period[RESTS] - 1 < last)
            last = o->rest + o->period[RESTS] - 1;
    }
    return good;
}

bool order_prove_open(struct verify *v, int size, const struct size_at *at, int64_t steps,
                      struct text *why) {
    enum { MOST_VALUES = 32 };
    if (!order_matters(v)) return true;
    struct order o = order_of(v, steps);
    int64_t most = v->var[size], last = at->whole[1];
    int period;
    bool good = true;
    o.open = size;
    o.at = *at;
    for (o.whole = at->whole[0]; o.whole <= last && good; o.whole++) {
        o.steps = steps;
        good = rests_in_order(&o, &period);
        if (good && !period && o.whole - at->whole[0] == MOST_VALUES)
            good = order_fail(&o, "queues do not come back to where they were");
        if (good && period && o.whole + period - 1 < last) last = o.whole + period - 1;
    }
    v->var[size] = most;
    if (!good) report(&o, why);
    order_free(&o);
    return good;
}
