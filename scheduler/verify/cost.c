/* How far loops are cut short. Loops that only move data run whole: a move may cover what several
 * loops of instructions share. Where the walk would still take too long, fewer iterations are
 * walked, but never less than the first and the last. */
#include "scheduler/verify/verify_int.h"

static const double POINTS_WANTED = 4e6;

/* Executes statements, not only moves. */
static bool loop_computes(const struct loop_node *l) {
    for (int k = 0; k < l->nbody; k++) {
        const struct node *n = &l->body[k];
        if (n->kind == NODE_FALLBACK || (n->kind == NODE_ISSUE && n->issue->stmt >= 0)) return true;
        if (n->kind == NODE_LOOP && loop_computes(n->loop)) return true;
    }
    return false;
}

static bool loop_rotates(const struct loop_node *l) {
    for (int k = 0; k < l->nbody; k++)
        if (l->body[k].kind == NODE_ROTATE) return true;
    return false;
}

/* ---- loops that are walked whole ---- */

static void mark_all(struct verify *v, const struct sx *x) {
    if (x->op == SX_CONST) return;
    if (x->op == SX_VAR) {
        v->goes_round[x->var] = true;
        return;
    }
    mark_all(v, x->a);
    mark_all(v, x->b);
}

/* Addresses and sizes modulo something, or other in some iterations than in the rest; bounds that
 * count turns: an iteration finds there what the one before has left. */
static void mark(struct verify *v, const struct sx *x, bool bound) {
    if (!x || x->op == SX_CONST || x->op == SX_VAR) return;
    if (x->op == SX_MOD || (bound ? x->op == SX_DIV : x->op >= SX_LT)) {
        mark_all(v, x);
        return;
    }
    mark(v, x->a, bound);
    mark(v, x->b, bound);
}

/* Does it follow a window that is moved inside an extent? Where windows overlap, what one turn
 * makes again must not be left out in another. */
static bool is_moved(const struct verify *v, const struct sx *x) {
    if (!x || x->op == SX_CONST) return false;
    if (x->op == SX_VAR) return v->moved[x->var];
    return x->op == SX_MIN || x->op == SX_MAX || is_moved(v, x->a) || is_moved(v, x->b);
}

static void mark_windows(struct verify *v, const struct issue_node *n) {
    if (n->stmt < 0 || !v->may_repeat[v->p->stmt[n->stmt].dst.buffer]) return;
    for (int a = 0; a < v->p->naxes; a++)
        if (n->base[a] && is_moved(v, n->base[a])) mark_all(v, n->base[a]);
}

static void mark_nodes(struct verify *v, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) {
            const struct loop_node *l = node[k].loop;
            v->moved[l->var] = is_moved(v, l->lo);
            if (l->lo->op < SX_LT) mark(v, l->lo, true);
            if (l->hi->op < SX_LT) mark(v, l->hi, true);
            mark_nodes(v, l->body, l->nbody);
        }
        if (node[k].kind != NODE_ISSUE) continue;
        const struct issue_node *i = node[k].issue;
        const struct instr *in = &v->m->instr[i->instr];
        mark_windows(v, i);
        for (int s = 0; s < in->nranged; s++) mark(v, i->size[s], false);
        for (int o = 0; o < in->noperands; o++)
            if (i->arg[o].place >= 0) mark(v, i->arg[o].offset, false);
    }
}

/* Slots come round in the loops that turn them; others repeat what they did, but for those over
 * entries of a table, of which each is another. */
int64_t loop_trips(const struct verify *v, const struct loop_node *l) {
    if (!v->trips || l->table || v->goes_round[l->var] || !loop_computes(l)) return 0;
    return loop_rotates(l) || v->trips < v->plain_trips ? v->trips : v->plain_trips;
}

/* Points of the semantics, the sizes being those of the loops' first iterations; 0 where that is
 * not legal. */
static double issue_points(struct verify *v, const struct issue_node *n) {
    const struct instr *in = &v->m->instr[n->instr];
    int64_t size[64];
    if (in->nranged > 64) return 0;
    for (int k = 0; k < in->nranged; k++) size[k] = sx_eval(n->size[k], v->var);
    struct diags ignored;
    diags_init(&ignored);
    struct program *p = instr_bind(v->m, in, size, &ignored);
    double points = 0;
    for (int s = 0; p && s < p->nstmts; s++) {
        double x = 1;
        for (int a = 0; a < p->naxes; a++)
            if (p->stmt[s].axes >> a & 1) x *= (double)p->axis[a].extent;
        points += x;
    }
    if (p) program_free(p);
    diags_free(&ignored);
    return points;
}

static double nodes_points(struct verify *v, const struct node *node, int n) {
    double points = 0;
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_ISSUE) points += issue_points(v, node[k].issue);
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        double lo = (double)sx_eval(l->lo, v->var), hi = (double)sx_eval(l->hi, v->var);
        double trips = hi > lo ? (hi - lo + (double)l->step - 1) / (double)l->step : 0;
        if (trips < 1) continue;
        int64_t most = loop_trips(v, l);
        if (most && trips > (double)most) trips = (double)most;
        v->var[l->var] = sx_eval(l->lo, v->var);
        points += trips * nodes_points(v, l->body, l->nbody);
    }
    return points;
}

void limit_trips(struct verify *v) {
    const struct schedule *s = v->s;
    v->plain_trips = v->trips;
    v->goes_round = arena_array(&v->arena, (size_t)s->nvars + 1, sizeof *v->goes_round);
    v->moved = arena_array(&v->arena, (size_t)s->nvars + 1, sizeof *v->moved);
    mark_nodes(v, s->prepare.node, s->prepare.nnodes);
    mark_nodes(v, s->run.node, s->run.nnodes);
    while (v->trips > 2 && nodes_points(v, s->prepare.node, s->prepare.nnodes) +
                                   nodes_points(v, s->run.node, s->run.nnodes) >
                               POINTS_WANTED)
        --*(v->plain_trips > 2 ? &v->plain_trips : &v->trips);
}

static double fallback_points(const struct verify *v, const struct node *node, int n) {
    double points = 0;
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_FALLBACK)
            points += (double)stmt_points(v->p, &v->p->stmt[node[k].fallback->stmt]);
        if (node[k].kind == NODE_LOOP)
            points += fallback_points(v, node[k].loop->body, node[k].loop->nbody);
    }
    return points;
}

/* A fallback in loops has parts of its statement in each iteration: it is counted whole, once. */
double verify_points(struct verify *v) {
    const struct section *c[] = {&v->s->prepare, &v->s->run};
    double points = 0;
    v->goes_round = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *v->goes_round);
    for (int k = 0; k < 2; k++)
        points += nodes_points(v, c[k]->node, c[k]->nnodes) +
                  fallback_points(v, c[k]->node, c[k]->nnodes);
    return points;
}
