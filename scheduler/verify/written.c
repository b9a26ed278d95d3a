/* Reads that find nothing, whatever the loops do: a statement reads a buffer of which no element
 * can have come to the places that its instruction reads. The tree is walked once, in the order of
 * the first iterations of all loops: what stands behind a node has not run when that node runs
 * first. What may lie in a place is taken as a set of buffers, so that schedules of any size are
 * looked at, and none is refused that may be right. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

struct set {
    int *at;
    int n, cap;
};

struct reach {
    struct verify *v;
    struct set *held;        /* [nplaces] buffers of which elements may lie there */
    bool sharing;            /* what is written to a place is in all that share bytes with it */
    const struct node *node; /* the first one that reads what is not there, and what that is */
    int stmt, buffer;
};

static bool has(const struct set *s, int x) {
    for (int k = 0; k < s->n; k++)
        if (s->at[k] == x) return true;
    return false;
}

static void put(struct set *s, int x) {
    if (has(s, x)) return;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 2;
        s->at = memory_grow(s->at, (size_t)s->cap * sizeof *s->at);
    }
    s->at[s->n++] = x;
}

static void hold(struct reach *r, int place, int buffer) {
    const struct schedule *s = r->v->s;
    if (has(&r->held[place], buffer)) return;
    put(&r->held[place], buffer);
    for (int p = 0; p < s->nplaces && r->sharing; p++)
        if (places_share(&s->place[p], &s->place[place])) put(&r->held[p], buffer);
}

static void hold_all(struct reach *r, int place, int from) {
    for (int k = 0; k < r->held[from].n; k++) hold(r, place, r->held[from].at[k]);
}

/* ---- reads ---- */
static void missing(struct reach *r, const struct node *node, int stmt, int buffer) {
    if (r->node) return;
    r->node = node;
    r->stmt = stmt;
    r->buffer = buffer;
}

/* What is read is an element that a statement or the caller has made: not what stands for those
 * outside the buffer, and nothing that calls write. */
static bool reads_element(const struct reach *r, const struct stmt *t, int read) {
    return !t->read[read].has_fill && !r->v->loose[t->read[read].buffer];
}

/* Some instance of the statement is executed. */
static bool executes(const struct reach *r, const struct issue_node *n) {
    const struct verify *v = r->v;
    if (n->stmt < 0 || n->nalso || v->loose_stmt[n->stmt] || v->p->stmt[n->stmt].nwhere)
        return false;
    for (int a = 0; a < v->p->naxes; a++) {
        if (!n->base[a]) continue;
        int64_t at = sx_eval(n->base[a], v->var);
        if (at < 0 || at >= v->p->axis[a].extent) return false;
    }
    return true;
}

static void issue_reads(struct reach *r, const struct node *node) {
    const struct issue_node *n = node->issue;
    if (!executes(r, n)) return;
    const struct stmt *t = &r->v->p->stmt[n->stmt];
    for (int k = 0; k < t->nreads; k++) {
        bool there = !reads_element(r, t, k);
        for (int o = 0; o < r->v->m->instr[n->instr].noperands && !there; o++)
            there = n->arg[o].place >= 0 && has(&r->held[n->arg[o].place], t->read[k].buffer);
        if (!there) missing(r, node, n->stmt, t->read[k].buffer);
    }
}

static void fallback_reads(struct reach *r, const struct node *node) {
    const struct fallback_node *n = node->fallback;
    const struct verify *v = r->v;
    const struct stmt *t = &v->p->stmt[n->stmt];
    if (v->loose_stmt[n->stmt] || t->nwhere) return;
    for (int a = 0; a < v->p->naxes; a++)
        if (n->lo && n->lo[a] && sx_eval(n->lo[a], v->var) >= sx_eval(n->hi[a], v->var)) return;
    for (int k = 0; k < t->nreads; k++) {
        int home = v->home[t->read[k].buffer];
        if (reads_element(r, t, k) && home >= 0 && !has(&r->held[home], t->read[k].buffer))
            missing(r, node, n->stmt, t->read[k].buffer);
    }
}

/* ---- writes ---- */
static void issue_writes(struct reach *r, const struct issue_node *n) {
    const struct verify *v = r->v;
    const struct instr *in = &v->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++) {
        int to = n->arg[o].place, also = in->operand[o].also;
        for (int p = 0; p < v->s->nplaces && also >= 0 && to >= 0; p++)
            if (v->s->place[p].memory == also) hold_all(r, p, to);
        if (to < 0 || (in->operand[o].role != ROLE_OUT && in->operand[o].role != ROLE_INOUT))
            continue;
        if (n->stmt >= 0) hold(r, to, v->p->stmt[n->stmt].dst.buffer);
        if (n->init >= 0) hold(r, to, v->p->stmt[n->init].dst.buffer);
        for (int q = 0; q < n->nalso; q++) hold(r, to, v->p->stmt[n->also[q]].dst.buffer);
        for (int i = 0; i < in->noperands && n->stmt < 0; i++)
            if (n->arg[i].place >= 0) hold_all(r, to, n->arg[i].place);
    }
}

/* ---- the walk ---- */
/* runs: the nodes surely do, in the first iterations of the loops around. */
static void walk(struct reach *r, const struct node *node, int n, bool runs) {
    const struct verify *v = r->v;
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) {
            const struct loop_node *l = node[k].loop;
            bool first = runs && sx_eval(l->lo, v->var) < sx_eval(l->hi, v->var);
            if (first) v->var[l->var] = sx_eval(l->lo, v->var);
            walk(r, l->body, l->nbody, first);
        }
        if (node[k].kind == NODE_ISSUE) {
            if (runs) issue_reads(r, &node[k]);
            issue_writes(r, node[k].issue);
        }
        if (node[k].kind == NODE_FALLBACK) {
            int to = v->p->stmt[node[k].fallback->stmt].dst.buffer;
            if (runs) fallback_reads(r, &node[k]);
            if (v->home[to] >= 0) hold(r, v->home[to], to);
        }
    }
}

static void given(struct reach *r) {
    const struct verify *v = r->v;
    for (int p = 0; p < v->s->nplaces; p++) {
        const struct place *place = &v->s->place[p];
        enum role role = v->p->buffer[place->buffer].role;
        if (place->table || role == ROLE_IN || role == ROLE_INOUT || role == ROLE_CONST)
            if (place->table || place->keep == KEEP_ARGUMENT) hold(r, p, place->buffer);
    }
}

static bool finds_all(struct reach *r) {
    const struct schedule *s = r->v->s;
    r->held = memory_array((size_t)s->nplaces + 1, sizeof *r->held);
    r->node = NULL;
    given(r);
    walk(r, s->prepare.node, s->prepare.nnodes, true);
    walk(r, s->run.node, s->run.nnodes, true);
    for (int p = 0; p < s->nplaces; p++) free(r->held[p].at);
    free(r->held);
    return !r->node;
}

bool reads_written(struct verify *v) {
    struct reach r = {.v = v};
    if (finds_all(&r)) return true;
    r.sharing = true;
    if (finds_all(&r)) return true;
    v->node = r.node;
    return verify_error(v, "statement %d reads '%s' where nothing of it has been written", r.stmt,
                        v->p->buffer[r.buffer].name);
}
