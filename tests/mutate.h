/* All single mutants of a schedule: each is made in place, handed over, and taken back. */
#ifndef ISAMAP_TESTS_MUTATE_H
#define ISAMAP_TESTS_MUTATE_H

#include "scheduler/schedule/schedule_int.h"

#include <string.h>

/* clang-format off */
#define MUTATION_TABLE(X) \
    X(DROP_SYNC, "drop a sync") \
    X(DROP_POP, "drop a pop") \
    X(DROP_PUSH, "drop a push") \
    X(DROP_PAIR, "drop a push with a pop") \
    X(TWICE_POP, "pop twice") \
    X(TWICE_PUSH, "push twice") \
    X(OTHER_SYNC, "another sync") \
    X(OTHER_CHANNEL, "another channel") \
    X(DROP_COPY, "drop a copy") \
    X(DROP_ISSUE, "drop an issue") \
    X(DROP_LOOP, "drop a loop") \
    X(DROP_FALLBACK, "drop host work") \
    X(DROP_ROTATE, "drop a rotate") \
    X(DROP_CONFIGURE, "drop a configure") \
    X(OTHER_STATE, "another state") \
    X(DROP_STATE, "drop a state") \
    X(TWICE_NODE, "a node twice") \
    X(COPY_LATER, "a copy later") \
    X(COPY_EARLIER, "a copy earlier") \
    X(SWAP_NODES, "swap neighbours") \
    X(COPY_OUT, "a copy out of its loop") \
    X(COPY_IN, "a copy into a loop") \
    X(SHIFT_COPY, "shift a copy") \
    X(SHIFT_OPERAND, "shift an operand") \
    X(SHRINK_COPY, "shrink a copy") \
    X(GROW_COPY, "grow a copy") \
    X(SHRINK_ISSUE, "shrink an issue") \
    X(GROW_ISSUE, "grow an issue") \
    X(STRIDE, "change a stride") \
    X(FLAG, "flip a flag") \
    X(BASE, "shift the work") \
    X(SWAP_OPERANDS, "swap operands") \
    X(OTHER_PLACE, "another place") \
    X(OTHER_LAYOUT, "another layout") \
    X(CONSTANT, "change a constant") \
    X(ROUND, "change a modulus or bound") \
    X(INIT, "drop an initialisation") \
    X(LOOP_LO, "begin a loop later") \
    X(LOOP_HI, "end a loop earlier") \
    X(LOOP_MORE, "end a loop later") \
    X(LOOP_STEP, "double a step") \
    X(FEWER_SLOTS, "fewer slots") \
    X(MORE_SLOTS, "more slots") \
    X(ADDRESS, "move a place") \
    X(BYTES, "shrink a place")
/* clang-format on */

enum mutation {
#define X(id, text) MUTATION_##id,
    MUTATION_TABLE(X)
#undef X
        MUTATION_COUNT
};

struct mutator {
    struct schedule *s;
    void (*try)(void *user, enum mutation, const char *where);
    void *user;
    const char *where; /* the node that is changed, for messages */
};

static inline void mutant(struct mutator *m, enum mutation kind) {
    m->try(m->user, kind, m->where);
}

static inline void *mutate_copy(struct mutator *m, const void *from, int n, size_t size) {
    void *to = arena_array(&m->s->arena, (size_t)n + 2, size);
    if (n) memcpy(to, from, (size_t)n * size);
    return to;
}

/* ---- expressions ---- */
static inline void mutate_sx(struct mutator *m, const struct sx **at, const struct sx *to,
                             enum mutation kind) {
    const struct sx *old = *at;
    *at = to;
    mutant(m, kind);
    *at = old;
}

static inline void mutate_add(struct mutator *m, const struct sx **at, int64_t by,
                              enum mutation kind) {
    struct arena *a = &m->s->arena;
    if (*at && by) mutate_sx(m, at, sx_make(a, SX_ADD, *at, sx_const(a, by)), kind);
}

/* x with its number `*at` of the constants that something is divided by, compared with or cut off at
 * changed by so much; *at becomes negative. */
static inline const struct sx *mutate_other(struct arena *a, const struct sx *x, int *at,
                                            int64_t by) {
    if (x->op == SX_CONST || x->op == SX_VAR) return x;
    const struct sx *side[2] = {x->a, x->b};
    for (int k = 0; k < 2; k++) {
        bool counts = x->op != SX_ADD && x->op != SX_SUB && x->op != SX_MUL;
        if (side[k]->op != SX_CONST)
            side[k] = mutate_other(a, side[k], at, by);
        else if (counts && (*at)-- == 0)
            side[k] = sx_const(a, side[k]->value + by);
    }
    return side[0] == x->a && side[1] == x->b ? x : sx_make(a, x->op, side[0], side[1]);
}

/* Rows of rings, pieces that are pinned, first times. */
static inline void mutate_round(struct mutator *m, const struct sx **x) {
    for (int k = 0; *x && k < 12; k++)
        for (int64_t by = -1; by <= 1; by += 2) {
            int at = k;
            const struct sx *other = mutate_other(&m->s->arena, *x, &at, by);
            if (other != *x) mutate_sx(m, x, other, MUTATION_ROUND);
        }
}

/* The largest constant factor in an expression: a row, perhaps. */
static inline int64_t mutate_row(const struct sx *x) {
    int64_t a, b;
    if (!x || x->op == SX_VAR) return 0;
    if (x->op == SX_CONST) return x->value < 0 ? -x->value : x->value;
    a = x->a ? mutate_row(x->a) : 0;
    b = x->b ? mutate_row(x->b) : 0;
    return a > b ? a : b;
}

/* ---- signals ---- */
static inline void mutate_signal(struct mutator *m, struct signal *g, bool pop) {
    struct signal old = *g;
    const struct machine *machine = m->s->machine;
    (void)pop;
    g->sync = (g->sync + 1) % machine->nsyncs;
    if (g->sync != old.sync) mutant(m, MUTATION_OTHER_SYNC);
    *g = old;
    g->channel++;
    mutant(m, MUTATION_OTHER_CHANNEL);
    *g = old;
}

static inline void mutate_side(struct mutator *m, struct signal **list, int *n, bool pop) {
    struct signal *old = *list;
    int count = *n;
    for (int k = 0; k < count; k++) {
        struct signal *less = mutate_copy(m, old, count, sizeof *old),
                      *more = mutate_copy(m, old, count, sizeof *old);
        memmove(&less[k], &less[k + 1], (size_t)(count - k - 1) * sizeof *less);
        more[count] = more[k];
        *list = less, *n = count - 1;
        mutant(m, pop ? MUTATION_DROP_POP : MUTATION_DROP_PUSH);
        *list = more, *n = count + 1;
        mutant(m, pop ? MUTATION_TWICE_POP : MUTATION_TWICE_PUSH);
        *list = old, *n = count;
        mutate_signal(m, &old[k], pop);
    }
}

static inline void mutate_signals(struct mutator *m, struct signals *g) {
    mutate_side(m, &g->pop, &g->npops, true);
    mutate_side(m, &g->push, &g->npushes, false);
}

/* ---- issues ---- */
static inline void mutate_operand(struct mutator *m, struct issue_node *i, int o) {
    const struct instr *in = &m->s->machine->instr[i->instr];
    struct arg *arg = &i->arg[o], old = *arg;
    if (arg->place < 0) {
        if (type_is_float(in->operand[o].type))
            arg->imm.f += 1;
        else
            arg->imm.i += 1;
        mutant(m, MUTATION_CONSTANT);
        *arg = old;
        return;
    }
    enum mutation kind = in->is_move ? MUTATION_SHIFT_COPY : MUTATION_SHIFT_OPERAND;
    const struct place *p = &m->s->place[arg->place];
    int64_t size = (int64_t)type_size(in->operand[o].type);
    int64_t by[3] = {size, m->s->machine->memory[p->memory].word, mutate_row(arg->offset)};
    for (int k = 0; k < 3; k++) {
        bool again = by[k] <= 0;
        for (int j = 0; j < k; j++) again |= by[j] == by[k];
        if (again) continue;
        mutate_add(m, &arg->offset, by[k], kind);
        mutate_add(m, &arg->offset, -by[k], kind);
    }
    mutate_round(m, &arg->offset);
    for (int q = 0; q < m->s->nplaces; q++) {
        if (q == old.place || m->s->place[q].memory != p->memory) continue;
        arg->place = q;
        mutant(m, MUTATION_OTHER_PLACE);
        *arg = old;
    }
    if (in->operand[o].nlayouts > 1) {
        arg->layout = (arg->layout + 1) % in->operand[o].nlayouts;
        mutant(m, MUTATION_OTHER_LAYOUT);
        *arg = old;
    }
}

static inline void mutate_issue(struct mutator *m, struct issue_node *i) {
    const struct machine *machine = m->s->machine;
    const struct instr *in = &machine->instr[i->instr];
    struct arena *a = &m->s->arena;
    for (int k = 0; k < in->nranged; k++) {
        mutate_round(m, &i->size[k]);
        mutate_add(m, &i->size[k], -1, in->is_move ? MUTATION_SHRINK_COPY : MUTATION_SHRINK_ISSUE);
        mutate_add(m, &i->size[k], 1, in->is_move ? MUTATION_GROW_COPY : MUTATION_GROW_ISSUE);
    }
    for (int k = 0; k < in->nstride_names; k++) {
        mutate_add(m, &i->stride[k], 1, MUTATION_STRIDE);
        mutate_add(m, &i->stride[k], -1, MUTATION_STRIDE);
    }
    for (int o = 0, k = 0; o < in->noperands; o++)
        if (in->operand[o].accumulate) {
            mutate_sx(m, &i->flag[k], sx_make(a, SX_EQ, i->flag[k], sx_const(a, 0)), MUTATION_FLAG);
            k++;
        }
    for (int o = 0; o < in->noperands; o++) mutate_operand(m, i, o);
    for (int o = 0; o < in->noperands; o++)
        for (int q = o + 1; q < in->noperands; q++) {
            struct arg x = i->arg[o], y = i->arg[q];
            i->arg[o] = y, i->arg[q] = x;
            if (x.place != y.place || x.offset != y.offset) mutant(m, MUTATION_SWAP_OPERANDS);
            i->arg[o] = x, i->arg[q] = y;
        }
    if (i->stmt >= 0)
        for (int x = 0; x < m->s->program->naxes; x++) {
            mutate_add(m, &i->base[x], 1, MUTATION_BASE);
            mutate_add(m, &i->base[x], -1, MUTATION_BASE);
        }
    if (i->stmt >= 0 && i->init >= 0) {
        int init = i->init;
        i->init = -1;
        mutant(m, MUTATION_INIT);
        i->init = init;
    }
    mutate_signals(m, &i->signals);
}

static inline void mutate_configure(struct mutator *m, struct configure_node *c) {
    for (int k = 0; k < c->nsets; k++)
        for (int f = 0; f < m->s->machine->state[c->set[k].state].nfields; f++) {
            mutate_add(m, &c->set[k].value[f], 1, MUTATION_OTHER_STATE);
            mutate_add(m, &c->set[k].value[f], -1, MUTATION_OTHER_STATE);
        }
    for (int k = --c->nsets; k >= 0; k--) { /* without the last one, the one before it, … */
        struct state_value last = c->set[c->nsets];
        c->set[c->nsets] = c->set[k];
        c->set[k] = last;
        mutant(m, MUTATION_DROP_STATE);
        c->set[k] = c->set[c->nsets];
        c->set[c->nsets] = last;
    }
    c->nsets++;
    mutate_signals(m, &c->signals);
}

static inline void mutate_loop(struct mutator *m, struct loop_node *l) {
    int64_t step = l->step;
    mutate_round(m, &l->lo);
    mutate_round(m, &l->hi);
    mutate_add(m, &l->lo, step, MUTATION_LOOP_LO);
    mutate_add(m, &l->hi, -step, MUTATION_LOOP_HI);
    mutate_add(m, &l->hi, step, MUTATION_LOOP_MORE);
    l->step = 2 * step;
    mutant(m, MUTATION_LOOP_STEP);
    l->step = step;
}

/* ---- lists of nodes ---- */
struct mutate_list {
    struct node **node;
    int *n;
};

static inline bool mutate_is_copy(const struct mutator *m, const struct node *n) {
    return n->kind == NODE_ISSUE && n->issue->stmt < 0 &&
           m->s->machine->instr[n->issue->instr].is_move;
}

static inline enum mutation mutate_drop_kind(const struct mutator *m, const struct node *n) {
    switch (n->kind) {
    case NODE_SYNC:
        return MUTATION_DROP_SYNC;
    case NODE_ROTATE:
        return MUTATION_DROP_ROTATE;
    case NODE_LOOP:
        return MUTATION_DROP_LOOP;
    case NODE_FALLBACK:
        return MUTATION_DROP_FALLBACK;
    case NODE_ISSUE:
        return mutate_is_copy(m, n) ? MUTATION_DROP_COPY : MUTATION_DROP_ISSUE;
    case NODE_CONFIGURE:
        return MUTATION_DROP_CONFIGURE;
    }
    return MUTATION_COUNT;
}

static inline struct node *mutate_without(struct mutator *m, const struct node *list, int n,
                                          int at) {
    struct node *less = mutate_copy(m, list, n, sizeof *less);
    memmove(&less[at], &less[at + 1], (size_t)(n - at - 1) * sizeof *less);
    return less;
}

static inline struct node *mutate_with(struct mutator *m, const struct node *list, int n, int at,
                                       struct node extra) {
    struct node *more = mutate_copy(m, list, n, sizeof *more);
    memmove(&more[at + 1], &more[at], (size_t)(n - at) * sizeof *more);
    more[at] = extra;
    return more;
}

static inline void mutate_swap(struct mutator *m, struct mutate_list l, int at) {
    struct node x = (*l.node)[at], y = (*l.node)[at + 1];
    (*l.node)[at] = y, (*l.node)[at + 1] = x;
    mutant(m, mutate_is_copy(m, &x)   ? MUTATION_COPY_LATER
              : mutate_is_copy(m, &y) ? MUTATION_COPY_EARLIER
                                      : MUTATION_SWAP_NODES);
    (*l.node)[at] = x, (*l.node)[at + 1] = y;
}

/* Copies in the body of the loop at `at`, before and after the loop. */
static inline void mutate_out(struct mutator *m, struct mutate_list l, int at) {
    struct loop_node *loop = (*l.node)[at].loop;
    struct node *list = *l.node, *body = loop->body;
    int n = *l.n, nbody = loop->nbody;
    for (int k = 0; k < nbody; k++) {
        if (!mutate_is_copy(m, &body[k])) continue;
        loop->body = mutate_without(m, body, nbody, k);
        loop->nbody = nbody - 1;
        *l.n = n + 1;
        *l.node = mutate_with(m, list, n, at, body[k]);
        mutant(m, MUTATION_COPY_OUT);
        *l.node = mutate_with(m, list, n, at + 1, body[k]);
        mutant(m, MUTATION_COPY_OUT);
        loop->body = body, loop->nbody = nbody, *l.node = list, *l.n = n;
    }
}

/* The copy at `at` into the loop beside it, at the near end of its body. */
static inline void mutate_in(struct mutator *m, struct mutate_list l, int at, int beside) {
    struct node *list = *l.node;
    int n = *l.n;
    if (beside < 0 || beside >= n || list[beside].kind != NODE_LOOP) return;
    struct loop_node *loop = list[beside].loop;
    struct node *body = loop->body;
    int nbody = loop->nbody;
    loop->body = mutate_with(m, body, nbody, beside > at ? 0 : nbody, list[at]);
    loop->nbody = nbody + 1;
    *l.node = mutate_without(m, list, n, at), *l.n = n - 1;
    mutant(m, MUTATION_COPY_IN);
    loop->body = body, loop->nbody = nbody, *l.node = list, *l.n = n;
}

static inline void mutate_order(struct mutator *m, struct mutate_list l, int at) {
    struct node *list = *l.node;
    int n = *l.n;
    *l.node = mutate_without(m, list, n, at), *l.n = n - 1;
    mutant(m, mutate_drop_kind(m, &list[at]));
    *l.node = mutate_with(m, list, n, at, list[at]), *l.n = n + 1;
    mutant(m, MUTATION_TWICE_NODE);
    *l.node = list, *l.n = n;
    if (at + 1 < n) mutate_swap(m, l, at);
    if (list[at].kind == NODE_LOOP) mutate_out(m, l, at);
    if (mutate_is_copy(m, &list[at])) mutate_in(m, l, at, at + 1), mutate_in(m, l, at, at - 1);
}

static inline void mutate_nodes(struct mutator *m, struct mutate_list l) {
    for (int k = 0; k < *l.n; k++) {
        struct node *n = &(*l.node)[k];
        struct text where = {0};
        const char *outer = m->where;
        schedule_print_node(m->s, n, 0, false, &where);
        m->where = arena_strdup(&m->s->arena, where.at ? where.at : "");
        text_free(&where);
        mutate_order(m, l, k);
        n = &(*l.node)[k];
        if (n->kind == NODE_ISSUE) mutate_issue(m, n->issue);
        if (n->kind == NODE_SYNC) mutate_signals(m, &n->sync.signals);
        if (n->kind == NODE_FALLBACK) mutate_signals(m, &n->fallback->signals);
        if (n->kind == NODE_CONFIGURE) mutate_configure(m, n->configure);
        if (n->kind == NODE_LOOP) {
            mutate_loop(m, n->loop);
            mutate_nodes(m, (struct mutate_list){&n->loop->body, &n->loop->nbody});
        }
        m->where = outer;
    }
}

static inline void mutate_places(struct mutator *m) {
    for (int k = 0; k < m->s->nplaces; k++) {
        struct place *p = &m->s->place[k], old = *p;
        const struct memory *memory = &m->s->machine->memory[p->memory];
        int64_t word = memory->word > 1 ? memory->word : 4;
        m->where = p->name;
        p->slots--;
        if (old.slots > 1) mutant(m, MUTATION_FEWER_SLOTS);
        p->slots = old.slots + 1;
        if (old.slots > 1) mutant(m, MUTATION_MORE_SLOTS);
        *p = old;
        p->address += word;
        mutant(m, MUTATION_ADDRESS);
        p->address = old.address - word;
        if (p->address >= 0) mutant(m, MUTATION_ADDRESS);
        *p = old;
        p->bytes -= word;
        if (p->bytes > 0) mutant(m, MUTATION_BYTES);
        *p = old;
    }
}

/* ---- a push together with a pop of the same sync: fewer credits, or an order less ---- */
enum { MUTATE_SITES = 256 };

struct mutate_sites {
    struct signals *at[MUTATE_SITES];
    int n;
};

static inline void mutate_find(struct node *node, int n, struct mutate_sites *out) {
    for (int k = 0; k < n; k++) {
        struct signals *g = node[k].kind == NODE_ISSUE       ? &node[k].issue->signals
                            : node[k].kind == NODE_FALLBACK  ? &node[k].fallback->signals
                            : node[k].kind == NODE_SYNC      ? &node[k].sync.signals
                            : node[k].kind == NODE_CONFIGURE ? &node[k].configure->signals
                                                             : NULL;
        if (g && out->n < MUTATE_SITES) out->at[out->n++] = g;
        if (node[k].kind == NODE_LOOP) mutate_find(node[k].loop->body, node[k].loop->nbody, out);
    }
}

static inline void mutate_pair(struct mutator *m, struct signals *x, int push, struct signals *y,
                               int pop) {
    struct signal *pushes = x->push, *pops = y->pop;
    x->push = mutate_copy(m, pushes, x->npushes, sizeof *pushes);
    y->pop = mutate_copy(m, pops, y->npops, sizeof *pops);
    memmove(&x->push[push], &x->push[push + 1], (size_t)(--x->npushes - push) * sizeof *pushes);
    memmove(&y->pop[pop], &y->pop[pop + 1], (size_t)(--y->npops - pop) * sizeof *pops);
    m->where = m->s->machine->sync[pops[pop].sync].id;
    mutant(m, MUTATION_DROP_PAIR);
    x->npushes++, y->npops++;
    x->push = pushes, y->pop = pops;
}

static inline void mutate_pairs(struct mutator *m) {
    struct mutate_sites site = {.n = 0};
    mutate_find(m->s->run.node, m->s->run.nnodes, &site);
    for (int i = 0; i < site.n; i++)
        for (int k = 0; k < site.at[i]->npushes; k++)
            for (int j = 0; j < site.n; j++)
                for (int q = 0; q < site.at[j]->npops; q++)
                    if (site.at[i]->push[k].sync == site.at[j]->pop[q].sync)
                        mutate_pair(m, site.at[i], k, site.at[j], q);
}

static inline void mutate_schedule(struct mutator *m) {
    mutate_places(m);
    mutate_nodes(m, (struct mutate_list){&m->s->prepare.node, &m->s->prepare.nnodes});
    mutate_nodes(m, (struct mutate_list){&m->s->run.node, &m->s->run.nnodes});
    mutate_pairs(m);
}

#endif
