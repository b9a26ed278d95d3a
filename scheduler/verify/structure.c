#include "scheduler/schedule/sizes.h"
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

enum { SX_DEPTH = 2 * SCHEDULE_TERMS };

/* Where the check is: the loops around. */
struct scope {
    struct verify *v;
    bool *bound;          /* [nvars] */
    enum loop_kind *kind; /* [nvars] of the loop that binds it */
    bool *parallel;       /* [nunits] a loop over its instances is around */
    bool unrolled;        /* every loop around is */
    bool hardware;        /* a hardware loop is around */
    bool table;           /* a loop over a table's entries is around */
    bool prepare;         /* the section */
    int depth;
};

/* ---- places ---- */
static bool place_error(struct verify *v, const struct place *p, const char *what) {
    v->node = NULL;
    return verify_error(v, "place '%s' %s", p->name, what);
}

static bool span_of(const struct place *p, const struct buffer *b, int64_t *span) {
    int64_t elements = 1;
    for (int d = 0; d < b->ndims; d++) {
        int64_t e = p->extent ? p->extent[d] : b->extent[d];
        if (e < b->extent[d] || __builtin_mul_overflow(elements, e, &elements)) return false;
    }
    if (elements > ADDRESS_LIMIT) return false;
    *span = p->layout ? layout_span(p->layout, b->ndims, p->extent ? p->extent : b->extent, NULL)
                      : elements;
    return *span >= 0 && *span <= ADDRESS_LIMIT;
}

static bool check_home(struct verify *v, const struct place *p, const struct buffer *b) {
    int64_t span;
    if (p->memory != v->m->home) return place_error(v, p, "is a home outside the home memory");
    if (p->slots != 1) return place_error(v, p, "is a home with several slots");
    if (p->layout && p->layout->nindices != b->ndims)
        return place_error(v, p, "has a layout of another rank than its buffer");
    for (int k = 0; p->layout && k < p->layout->nplaces; k++)
        if (p->layout->place[k].unit)
            return place_error(v, p, "has a layout over units, which a home cannot have");
    if (!span_of(p, b, &span))
        return place_error(v, p, "has extents below its buffer's or too large");
    if (p->bytes == 0 && p->keep == KEEP_WORKSPACE) return true; /* nobody may touch it */
    if (span * (int64_t)type_size(b->type) > p->bytes)
        return place_error(v, p, "is smaller than its buffer in that layout");
    if (p->table &&
        (p->keep != KEEP_PREPARED || p->layout || b->ndims != 1 || b->role != ROLE_TEMP ||
         type_is_float(b->type) || p->bytes != b->elements * (int64_t)type_size(b->type)))
        return place_error(v, p, "has a table, but is no prepared home of one row of integers");
    if (p->keep != KEEP_ARGUMENT) return true;
    if (b->role == ROLE_TEMP || b->role == ROLE_STATE)
        return place_error(v, p, "is an argument, but its buffer is none");
    bool exact = !p->layout;
    for (int d = 0; p->extent && d < b->ndims; d++) exact &= p->extent[d] == b->extent[d];
    return exact || place_error(v, p, "is an argument, which is row-major, but has a layout");
}

static bool check_place(struct verify *v, int number) {
    const struct place *p = &v->s->place[number];
    if (p->buffer < 0 || p->buffer >= v->p->nbuffers || p->memory < 0 ||
        p->memory >= v->m->nmemories)
        return place_error(v, p, "has a buffer or a memory that does not exist");
    const struct buffer *b = &v->p->buffer[p->buffer];
    const struct memory *m = &v->m->memory[p->memory];
    int64_t end;
    if (p->slots < 1 || p->bytes < 0 || p->address < 0 ||
        __builtin_mul_overflow(p->bytes, (int64_t)p->slots, &end) ||
        __builtin_add_overflow(end, p->address, &end) || end > ADDRESS_LIMIT)
        return place_error(v, p, "has a size or an address out of range");
    if (m->size >= 0 && end > m->size)
        return verify_error(
            v, "place '%s' ends at byte %" PRId64 " of memory '%s', which has %" PRId64, p->name,
            end, m->id, m->size);
    if (m->caches >= 0 && p->keep != KEEP_LOCAL)
        return place_error(v, p, "is in a cache, which hardware manages");
    if (m->types && !(m->types >> b->type & 1))
        return verify_error(v, "place '%s' holds %s, which memory '%s' does not", p->name,
                            type_name(b->type), m->id);
    if (b->elements >= ELEMENT_LIMIT)
        return place_error(v, p, "has too many elements to verify");
    if (p->keep == KEEP_LOCAL && p->table) return place_error(v, p, "has a table, but is no home");
    if (p->keep == KEEP_LOCAL) return true;
    if (v->home[p->buffer] != number) return place_error(v, p, "is a second home of its buffer");
    return check_home(v, p, b);
}

/* ---- expressions ---- */
static bool check_sx_at(struct scope *c, const struct sx *x, int depth) {
    if (!x) return verify_error(c->v, "an expression is missing");
    if (depth > SX_DEPTH) return verify_error(c->v, "an expression is too deep");
    if (x->op == SX_CONST) return true;
    if (x->op == SX_VAR) {
        if (x->var < 0 || x->var >= c->v->s->nvars || !c->bound[x->var])
            return verify_error(c->v, "a variable is used outside its loop");
        return true;
    }
    if ((unsigned)x->op > SX_OR) return verify_error(c->v, "an expression has no such operation");
    return check_sx_at(c, x->a, depth + 1) && check_sx_at(c, x->b, depth + 1);
}

static bool check_sx(struct scope *c, const struct sx *x) {
    return check_sx_at(c, x, 0);
}

static bool sx_static(const struct scope *c, const struct sx *x) {
    if (x->op == SX_CONST) return true;
    if (x->op == SX_VAR) return c->kind[x->var] == LOOP_UNROLLED;
    return sx_static(c, x->a) && sx_static(c, x->b);
}

/* ---- signals ---- */

/* The queues that may pop (or push) it. */
static uint64_t signalling(const struct verify *v, const struct sync *y, bool pop) {
    if (y->kind != SYNC_BARRIER) return pop ? y->to : y->kind == SYNC_FENCE ? 0 : y->from;
    int unit = y->barrier_unit;
    uint64_t set = 0;
    for (int q = 0; pop && q < v->m->nqueues; q++)
        if (unit_inside(v->m, v->m->queue[q].unit, unit)) set |= UINT64_C(1) << q;
    return set;
}

static bool check_channel(struct verify *v, const struct sync *y, const struct signal *g) {
    if (g->rotating < 0 || g->rotating > v->s->nplaces)
        return verify_error(v, "sync '%s' has channels of a place that does not exist", y->id);
    int64_t last = g->rotating ? v->s->place[g->rotating - 1].slots - 1 : g->channel;
    if (g->channel >= 0 && last >= 0 && last < sync_channels(y)) return true;
    return verify_error(v, "sync '%s' has no channel %" PRId64, y->id, last);
}

/* Of several pairs of queues: a channel of a pair to which the queue belongs. */
static bool check_pair(struct verify *v, const struct sync *y, int queue, const struct signal *g,
                       bool pop) {
    int pairs = sync_pairs(y), takers = __builtin_popcountll(y->to);
    if (pairs == 1) return true;
    if (g->rotating)
        return verify_error(
            v, "the channels of sync '%s' belong to pairs of queues and cannot turn", y->id);
    int pair = g->channel % pairs;
    uint64_t of = pop ? y->to : y->from;
    int member = __builtin_popcountll(of & ((UINT64_C(1) << queue) - 1));
    if (member == (pop ? pair % takers : pair / takers)) return true;
    return verify_error(v, "channel %d of sync '%s' belongs to other queues than '%s'", g->channel,
                        y->id, v->m->queue[queue].id);
}

static bool check_signal(struct scope *c, int queue, const struct signal *g, bool pop) {
    struct verify *v = c->v;
    if (g->sync < 0 || g->sync >= v->m->nsyncs) return verify_error(v, "a sync does not exist");
    const struct sync *y = &v->m->sync[g->sync];
    if (y->kind == SYNC_INTERLOCK)
        return verify_error(v, "sync '%s' is kept by hardware and cannot be signalled", y->id);
    if (!check_channel(v, y, g)) return false;
    if (g->pending < 0 || (g->pending && (!pop || y->kind != SYNC_GROUP)))
        return verify_error(v, "only the pop of a group leaves groups pending, '%s' is none",
                            y->id);
    for (int u = 0; y->kind == SYNC_BARRIER && u < v->m->nunits; u++)
        if (c->parallel[u] && u != y->barrier_unit && unit_inside(v->m, u, y->barrier_unit))
            return verify_error(v,
                                "barrier '%s' of unit '%s' stands in a parallel loop over unit "
                                "'%s', whose instances do not meet",
                                y->id, v->m->unit[y->barrier_unit].id, v->m->unit[u].id);
    uint64_t mask = signalling(v, y, pop);
    if (queue < 0 || !(mask >> queue & 1))
        return verify_error(v, "queue '%s' cannot %s sync '%s'",
                            queue < 0 ? "of the fallback" : v->m->queue[queue].id,
                            pop ? "pop" : "push", y->id);
    return check_pair(v, y, queue, g, pop);
}

static bool check_signals(struct scope *c, int queue, const struct signals *g) {
    for (int k = 0; k < g->npops; k++)
        if (!check_signal(c, queue, &g->pop[k], true)) return false;
    for (int k = 0; k < g->npushes; k++)
        if (!check_signal(c, queue, &g->push[k], false)) return false;
    return true;
}

/* ---- nodes ---- */
static bool check_memory(struct scope *c, const struct operand *o, const struct arg *a) {
    struct verify *v = c->v;
    const struct place *p = &v->s->place[a->place];
    for (int k = 0; k < o->nmemories; k++) {
        int m = o->memory[k];
        if (m == MEMORY_IMM) continue;
        if (m == p->memory || (memory_is_home(v->m, p->memory) && memory_is_home(v->m, m)))
            return true;
    }
    if (o->nmemories == 0 && p->memory == v->m->home) return true;
    return verify_error(v, "operand '%s' cannot be in memory '%s'", o->buffer,
                        v->m->memory[p->memory].id);
}

static bool check_arg(struct scope *c, const struct operand *o, const struct arg *a) {
    struct verify *v = c->v;
    if (a->place < 0) {
        for (int k = 0; k < o->nmemories; k++)
            if (o->memory[k] == MEMORY_IMM) return true;
        return verify_error(v, "operand '%s' cannot be an immediate", o->buffer);
    }
    if (a->place >= v->s->nplaces) return verify_error(v, "operand '%s' has no place", o->buffer);
    if (a->layout < 0 || a->layout >= o->nlayouts)
        return verify_error(v, "operand '%s' has no layout %d", o->buffer, a->layout);
    if (!check_sx(c, a->offset) || !check_memory(c, o, a)) return false;
    const struct place *p = &v->s->place[a->place];
    enum pass pass = o->has_pass ? o->pass : v->m->memory[p->memory].pass;
    if (pass == PASS_POINTER || sx_static(c, a->offset)) return true;
    return verify_error(v,
                        "operand '%s' is passed by value: its offset must be constant, but "
                        "depends on a loop that is not unrolled",
                        o->buffer);
}

static bool check_work(struct scope *c, const struct instr *in, const struct issue_node *n) {
    struct verify *v = c->v;
    if (n->stmt < -1 || n->stmt >= v->p->nstmts || n->init < -1 || n->init >= v->p->nstmts)
        return verify_error(v, "a statement does not exist");
    if (n->stmt < 0) return true;
    uint64_t covered = 0, domain = v->domain[n->stmt];
    for (int q = 0; q < n->nalso; q++) {
        if (n->also[q] < 0 || n->also[q] >= v->p->nstmts || n->also[q] == n->stmt)
            return verify_error(v, "a statement does not exist, or is named twice");
        for (int k = 0; k < q; k++)
            if (n->also[k] == n->also[q])
                return verify_error(v, "statement %d is named twice", n->also[q]);
        domain |= v->domain[n->also[q]];
    }
    if (!n->axis || !n->base) return verify_error(v, "the axis map is missing");
    for (int x = 0; x < kernel_axis_count(in->semantics); x++) {
        int a = n->axis[x];
        if (a < -1 || a >= v->p->naxes || (a >= 0 && !(domain >> a & 1)))
            return verify_error(
                v, "axis %d of '%s' stands for an axis that statement %d does not have", x, in->id,
                n->stmt);
        if (a >= 0 && covered >> a & 1)
            return verify_error(v, "two axes of '%s' stand for axis '%s'", in->id,
                                v->p->axis[a].name);
        if (a >= 0) covered |= UINT64_C(1) << a;
    }
    for (int a = 0; a < v->p->naxes; a++) {
        if (n->base[a] && !check_sx(c, n->base[a])) return false;
        if (domain >> a & 1 && !n->base[a])
            return verify_error(v, "axis '%s' of statement %d has no value", v->p->axis[a].name,
                                n->stmt);
    }
    return true;
}

static bool check_issue(struct scope *c, const struct issue_node *n) {
    struct verify *v = c->v;
    if (n->instr < 0 || n->instr >= v->m->ninstrs)
        return verify_error(v, "an instruction does not exist");
    const struct instr *in = &v->m->instr[n->instr];
    if (in->noperands > MAX_OPERANDS_OF_ISSUE)
        return verify_limit(v, "'%s' has more than %d operands", in->id, MAX_OPERANDS_OF_ISSUE);
    for (int k = 0; k < in->nranged; k++)
        if (!check_sx(c, n->size[k])) return false;
    for (int k = 0; k < in->nstride_names; k++)
        if (!check_sx(c, n->stride[k])) return false;
    for (int k = 0; k < instr_flag_count(in); k++)
        if (!check_sx(c, n->flag[k])) return false;
    for (int o = 0; o < in->noperands; o++)
        if (!check_arg(c, &in->operand[o], &n->arg[o])) return false;
    if (instr_table(in) && !c->table)
        return verify_error(v, "'%s' takes its addresses from a table, expected a loop over one",
                            in->id);
    return check_work(c, in, n) && check_signals(c, in->queue, &n->signals);
}

static bool check_fallback(struct scope *c, const struct fallback_node *n) {
    struct verify *v = c->v;
    if (n->fallback < 0 || n->fallback >= v->m->nfallbacks)
        return verify_error(v, "a fallback does not exist");
    if (n->stmt < 0 || n->stmt >= v->p->nstmts)
        return verify_error(v, "a statement does not exist");
    for (int a = 0; a < v->p->naxes; a++) {
        bool lo = n->lo && n->lo[a], hi = n->hi && n->hi[a];
        if (lo != hi) return verify_error(v, "axis '%s' has half a range", v->p->axis[a].name);
        if (lo && (!check_sx(c, n->lo[a]) || !check_sx(c, n->hi[a]))) return false;
    }
    const struct stmt *s = &v->p->stmt[n->stmt];
    for (int r = -1; r < s->nreads; r++) {
        int b = r < 0 ? s->dst.buffer : s->read[r].buffer;
        if (v->home[b] < 0 || v->s->place[v->home[b]].bytes == 0)
            return verify_error(v, "buffer '%s' has no home", v->p->buffer[b].name);
    }
    return check_signals(c, v->m->fallback[n->fallback].queue, &n->signals);
}

static bool stand_alone(const struct verify *v, int queue, const struct signals *g) {
    for (int k = 0; k < g->npops + g->npushes; k++) {
        const struct signal *one = k < g->npops ? &g->pop[k] : &g->push[k - g->npops];
        if (one->sync < 0 || one->sync >= v->m->nsyncs ||
            !machine_signals_alone(v->m, queue, one->sync, k < g->npops))
            return false;
    }
    return true;
}

static bool check_sync(struct scope *c, int queue, const struct signals *g) {
    struct verify *v = c->v;
    if (queue < 0 || queue >= v->m->nqueues) return verify_error(v, "a queue does not exist");
    if (!stand_alone(v, queue, g))
        return verify_error(v, "queue '%s' has no instruction that carries signals alone",
                            v->m->queue[queue].id);
    return check_signals(c, queue, g);
}

static bool check_setting(struct scope *c, const struct configure *f,
                          const struct state_value *set) {
    struct verify *v = c->v;
    bool sets = false;
    for (int k = 0; k < f->nsets; k++) sets |= f->sets[k] == set->state;
    if (!sets) return verify_error(v, "'%s' does not set that state", f->id);
    const struct state *state = &v->m->state[set->state];
    if (!state_index_legal(v, set->state, set->index))
        return verify_error(v, "state '%s' has no number %d", state->id, set->index);
    for (int k = 0; k < state->nfields; k++)
        if (!check_sx(c, set->value[k])) return false;
    return true;
}

static bool check_configure(struct scope *c, const struct configure_node *n) {
    struct verify *v = c->v;
    if (n->configure < 0 || n->configure >= v->m->nconfigures)
        return verify_error(v, "a configure does not exist");
    const struct configure *f = &v->m->configure[n->configure];
    bool before = f->at_launch || f->at_program;
    if (before != c->prepare)
        return verify_error(
            v, before ? "'%s' stands before the run, in 'prepare'" : "'%s' is no part of 'prepare'",
            f->id);
    if (!before && f->queue < 0) return verify_error(v, "configure '%s' has no queue", f->id);
    for (int k = 0; k < n->nsets; k++)
        if (!check_setting(c, f, &n->set[k])) return false;
    return before ? !n->signals.npops && !n->signals.npushes
                  : check_signals(c, f->queue, &n->signals);
}

static bool check_nodes(struct scope *c, const struct node *node, int n);

/* The place of a loop over entries holds a whole table in the loop's memory. */
static bool check_table(struct verify *v, const struct hardware *h) {
    int place = h->loop[h->table]->table - 1;
    if (place < 0 || place >= v->s->nplaces) return verify_error(v, "a place does not exist");
    const struct place *p = &v->s->place[place], *home = table_home(v->s, place);
    const struct hwloop *l = h->counter[h->table];
    int64_t size = table_entry_bytes(v->m, l);
    if (!home) return verify_error(v, "place '%s' holds no table", p->name);
    if (p->memory != l->table)
        return verify_error(v, "loop '%s' of '%s' has its table in memory '%s', not '%s'", l->id,
                            v->m->instr[h->issue->instr].id, v->m->memory[l->table].id,
                            v->m->memory[p->memory].id);
    if (p->slots != 1 || p->bytes < home->bytes)
        return verify_error(v, "place '%s' has not room for the whole table", p->name);
    if (size < 1 || p->address % size || size % (int64_t)type_size(v->p->buffer[p->buffer].type))
        return verify_error(v,
                            "place '%s' is not a whole number of entries of %" PRId64
                            " bytes from the start of its memory",
                            p->name, size);
    return true;
}

/* The outermost of the hardware loops around an issue, all that is in it being legal. */
static bool check_hardware(struct scope *c, const struct node *node) {
    struct verify *v = c->v;
    struct hardware h;
    v->node = node;
    if (!hardware_issue(v->m, node->loop, &h)) {
        if (!h.issue)
            return verify_error(v, "a hardware loop stands around one issue, alone or with other "
                                   "hardware loops");
        return verify_error(v, "'%s' has fewer hardware loops than the %d that stand around it",
                            v->m->instr[h.issue->instr].id, h.nloops);
    }
    const char *why = hardware_obstacle(&v->arena, v->m, &h);
    if (why) return verify_error(v, "%s", why);
    return h.table < 0 || check_table(v, &h);
}

static bool check_loop(struct scope *c, const struct node *node) {
    struct verify *v = c->v;
    const struct loop_node *l = node->loop;
    bool outermost = l->kind == LOOP_HARDWARE && !c->hardware, hardware = c->hardware,
         table = c->table;
    if (l->var < 0 || l->var >= v->s->nvars || c->bound[l->var])
        return verify_error(v, "a loop's variable does not exist or is bound already");
    if (l->step <= 0) return verify_error(v, "a loop's step is not positive");
    if (l->table && l->kind != LOOP_HARDWARE)
        return verify_error(v, "a loop has a table, but hardware does not run it");
    if (!check_sx(c, l->lo) || !check_sx(c, l->hi)) return false;
    if (c->depth >= SCHEDULE_DEPTH)
        return verify_error(v, "loops nest deeper than %d", SCHEDULE_DEPTH);
    bool parallel = l->kind == LOOP_PARALLEL;
    if (parallel && (l->unit < 0 || l->unit >= v->m->nunits || c->parallel[l->unit]))
        return verify_error(v, "a parallel loop needs a unit that no loop around distributes");
    bool unrolled = c->unrolled;
    c->unrolled &= l->kind == LOOP_UNROLLED;
    if (parallel) c->parallel[l->unit] = true;
    c->hardware |= l->kind == LOOP_HARDWARE;
    c->table |= l->table != 0;
    c->bound[l->var] = true;
    c->kind[l->var] = l->kind;
    c->depth++;
    bool good = check_nodes(c, l->body, l->nbody) && (!outermost || check_hardware(c, node));
    c->hardware = hardware;
    c->table = table;
    c->depth--;
    c->bound[l->var] = false;
    if (parallel) c->parallel[l->unit] = false;
    c->unrolled = unrolled;
    return good;
}

static bool check_rotate(struct scope *c, int place) {
    struct verify *v = c->v;
    if (place < 0 || place >= v->s->nplaces) return verify_error(v, "a place does not exist");
    const struct place *p = &v->s->place[place];
    if (p->slots > 1 && !c->unrolled && v->m->memory[p->memory].pass != PASS_POINTER)
        return verify_error(v,
                            "place '%s' is passed by value and cannot rotate in a loop that is not "
                            "unrolled",
                            p->name);
    return true;
}

static bool check_node(struct scope *c, const struct node *n) {
    c->v->node = n;
    switch (n->kind) {
    case NODE_LOOP:
        return check_loop(c, n);
    case NODE_ISSUE:
        return check_issue(c, n->issue);
    case NODE_FALLBACK:
        return check_fallback(c, n->fallback);
    case NODE_ROTATE:
        return check_rotate(c, n->rotate);
    case NODE_SYNC:
        return check_sync(c, n->sync.queue, &n->sync.signals);
    case NODE_CONFIGURE:
        return check_configure(c, n->configure);
    }
    return verify_error(c->v, "a node has no such kind");
}

static bool check_nodes(struct scope *c, const struct node *node, int n) {
    for (int k = 0; k < n; k++)
        if (!check_node(c, &node[k])) return false;
    return true;
}

static void find_shared(const struct node *node, int n, bool *shared) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind != NODE_LOOP) continue;
        if (node[k].loop->kind == LOOP_PARALLEL) shared[node[k].loop->unit] = true;
        find_shared(node[k].loop->body, node[k].loop->nbody, shared);
    }
}

/* Instances that work at once share the bytes of a pool. */
static bool check_pools(struct verify *v) {
    const struct schedule *s = v->s;
    bool *shared = arena_array(&v->arena, (size_t)v->m->nunits + 1, sizeof *shared);
    find_shared(s->run.node, s->run.nnodes, shared);
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *x = &s->place[p];
        int64_t end = x->address + x->bytes * x->slots, share = pool_share(v->m, x->memory, shared);
        if (end <= share) continue;
        return verify_error(
            v,
            "place '%s' ends at byte %" PRId64 " of memory '%s', of whose pool '%s' "
            "each instance has %" PRId64,
            x->name, end, v->m->memory[x->memory].id, v->m->memory[x->memory].pool, share);
    }
    return true;
}

bool verify_structure(struct verify *v) {
    const struct schedule *s = v->s;
    for (int p = 0; p < s->nplaces; p++)
        if (!check_place(v, p)) return false;
    struct scope c = {.v = v, .unrolled = true};
    c.bound = arena_array(&v->arena, (size_t)s->nvars + 1, sizeof *c.bound);
    for (int k = 0; k < v->p->nsizes; k++) c.bound[k] = true;
    c.kind = arena_array(&v->arena, (size_t)s->nvars + 1, sizeof *c.kind);
    c.parallel = arena_array(&v->arena, (size_t)v->m->nunits + 1, sizeof *c.parallel);
    c.prepare = true;
    if (!check_nodes(&c, s->prepare.node, s->prepare.nnodes)) return false;
    c.prepare = false;
    if (!check_nodes(&c, s->run.node, s->run.nnodes)) return false;
    v->node = NULL;
    return sync_objects_fit(v) && check_pools(v) && uses_check_overlaps(v) && places_filled(v) &&
           reads_written(v);
}
