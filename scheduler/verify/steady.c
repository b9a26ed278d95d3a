/* Iterations of a loop that ask the same of the queues: the loops in it run as often, instructions
 * have the same sizes, and operands in memories whose bytes are told apart lie where they lay. The
 * walk of the order (order.c) then goes on from one to the next as it went on before. */
#include "scheduler/verify/steady.h"

/* Counter 0 is the loop's variable; the others count the iterations of loops in it. */
enum { MOVING = 0 };

static bool same_nodes(struct steady *t, const struct node *node, int n);

/* It depends on the loop's variable, if only by name. */
static bool moves(const struct sym *s, const struct sx *x) {
    if (x->op == SX_CONST) return false;
    if (x->op == SX_VAR) return s->var[x->var].l.k[MOVING] != 0;
    return moves(s, x->a) || moves(s, x->b);
}

/* Nothing is known of one of its variables but that it does not move. */
static bool vague(const struct steady *t, const struct sx *x) {
    if (x->op == SX_CONST) return false;
    if (x->op == SX_VAR) return t->vague[x->var];
    return vague(t, x->a) || vague(t, x->b);
}

/* It has one value in all iterations. */
static bool same(struct steady *t, const struct sx *x) {
    struct affine f;
    if (!x || !moves(&t->sym, x)) return true;
    return !vague(t, x) && sym_eval(&t->sym, x, &f) && !f.l.k[MOVING];
}

static bool same_issue(struct steady *t, const struct issue_node *n) {
    const struct instr *in = &t->sym.v->m->instr[n->instr];
    bool exact = false;
    for (int k = 0; k < in->nranged; k++)
        if (!same(t, n->size[k])) return false;
    for (int k = 0; k < in->noperands; k++) {
        if (n->arg[k].place < 0 || !t->exact[n->arg[k].place]) continue;
        exact = true;
        if (!same(t, n->arg[k].offset)) return false;
    }
    for (int k = 0; k < in->nstride_names && exact; k++)
        if (!same(t, n->stride[k])) return false;
    return true;
}

/* How often the loop runs at most: as often in each of the iterations around. False: it may not, or
 * where it begins and how often it runs is no form; then *same says whether these move. */
static bool trips_known(struct steady *t, const struct loop_node *l, struct affine *lo,
                        int64_t *most, bool *same) {
    struct affine hi;
    int64_t least;
    *same = !moves(&t->sym, l->lo) && !moves(&t->sym, l->hi);
    if (vague(t, l->lo) || vague(t, l->hi)) return false;
    if (!sym_eval(&t->sym, l->lo, lo) || !sym_eval(&t->sym, l->hi, &hi) ||
        !affine_add(&hi, lo, -1) || hi.l.k[MOVING])
        return false;
    lin_range(&t->sym, &hi.l, &least, most);
    *most = *most <= 0 ? 0 : (*most - 1) / l->step + 1;
    return *same = true;
}

static bool same_loop(struct steady *t, const struct loop_node *l) {
    struct sym *s = &t->sym;
    struct affine lo;
    int64_t most = 1;
    bool same;
    if (l->kind == LOOP_PARALLEL) return false;
    if (l->kind == LOOP_HARDWARE && !t->any_exact) return true;
    bool known = trips_known(t, l, &lo, &most, &same), counted = known && s->nloops < SYM_LOOPS;
    if (most == 0) return true;
    if (!same || (!counted && moves(s, l->lo))) return false;
    t->vague[l->var] = !counted;
    s->var[l->var] = counted ? lo : affine_of(0);
    if (!counted) return same_nodes(t, l->body, l->nbody);
    s->lo[s->nloops] = 0;
    s->hi[s->nloops] = most - 1;
    s->turn[s->nloops] = -1;
    s->var[l->var].l.k[s->nloops++] = l->step;
    bool good = same_nodes(t, l->body, l->nbody);
    s->nloops--;
    return good;
}

static bool same_nodes(struct steady *t, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP && !same_loop(t, node[k].loop)) return false;
        if (node[k].kind == NODE_ISSUE && !same_issue(t, node[k].issue)) return false;
    }
    return true;
}

void steady_open(struct steady *t, struct verify *v, const bool *exact) {
    size_t n = (size_t)v->s->nvars + 1;
    *t = (struct steady){.sym = {.v = v}, .exact = exact};
    t->sym.var = arena_array(&v->arena, n, sizeof *t->sym.var);
    t->vague = arena_array(&v->arena, n, sizeof *t->vague);
    t->sym.cycle = arena_array(&v->arena, SYM_LOOPS, sizeof *t->sym.cycle);
    t->sym.turn = arena_array(&v->arena, SYM_LOOPS, sizeof *t->sym.turn);
    for (int k = 0; k < v->p->nsizes; k++) t->sym.var[k] = affine_of(v->var[k]);
}

void steady_at(struct steady *t, int var, int64_t value) {
    t->sym.var[var] = affine_of(value);
    t->vague[var] = false;
}

bool steady_from(struct steady *t, const struct loop_node *l, int64_t from, int64_t *last) {
    struct sym *s = &t->sym;
    for (int tries = 0; tries < 2 && from <= *last; tries++) {
        s->nloops = 1;
        s->lo[MOVING] = from;
        s->hi[MOVING] = *last;
        s->turn[MOVING] = from - 1;
        s->var[l->var] = (struct affine){.l.k[MOVING] = 1};
        t->vague[l->var] = false;
        if (same_nodes(t, l->body, l->nbody)) return true;
        *last = s->turn[MOVING];
    }
    return false;
}
