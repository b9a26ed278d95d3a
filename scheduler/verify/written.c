/* Reads that find nothing, whatever the loops do: a statement reads a buffer of which no element
 * can have come to the places that its instruction reads. The tree is walked in the order of the
 * first iterations of all loops: what stands behind a node has not run when that node runs first.
 * Then each outermost node is looked at again, in the middle and in the last iterations of its
 * loops, when all that it writes counts as there. Instances are points that are surely executed:
 * the first of an issue, corners and the middle of a fallback's box. What may lie in a place is
 * taken as a set of buffers, so that schedules of any size are looked at, and none is refused that
 * may be right. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of buffers, in the order in which they came, and a bit for each. */
struct set {
    int *at, n, cap;
    uint64_t *bit;
};

struct reach {
    struct verify *v;
    struct set *held;        /* [groups] buffers of which elements may lie there */
    int *group_of;           /* [nplaces] each its own; or one for all that may share bytes */
    const struct node *node; /* the first one that reads what is not there, and what that is */
    int stmt, buffer;
};

static struct set *held_at(const struct reach *r, int place) {
    return &r->held[r->group_of[place]];
}

static bool holds(const struct reach *r, int place, int buffer) {
    const struct set *s = held_at(r, place);
    return s->bit && s->bit[buffer / 64] >> buffer % 64 & 1;
}

static void hold(struct reach *r, int place, int buffer) {
    struct set *s = held_at(r, place);
    if (holds(r, place, buffer)) return;
    if (!s->bit) s->bit = memory_array((size_t)r->v->p->nbuffers / 64 + 1, sizeof *s->bit);
    s->bit[buffer / 64] |= UINT64_C(1) << buffer % 64;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 2;
        s->at = memory_grow(s->at, (size_t)s->cap * sizeof *s->at);
    }
    s->at[s->n++] = buffer;
}

static void hold_all(struct reach *r, int place, int from) {
    const struct set *s = held_at(r, from);
    for (int k = 0; s != held_at(r, place) && k < s->n; k++) hold(r, place, s->at[k]);
}

/* ---- reads ---- */
static void missing(struct reach *r, const struct node *node, int stmt, int buffer) {
    if (r->node) return;
    r->node = node;
    r->stmt = stmt;
    r->buffer = buffer;
}

/* What is read there is an element that a statement or the caller has made: not what stands for
 * those outside the buffer, and nothing whose contents are not followed. */
static bool reads_element(const struct reach *r, const struct access *read, const int64_t *at) {
    const struct program *p = r->v->p;
    const struct buffer *b = &p->buffer[read->buffer];
    if (r->v->loose[read->buffer] || (read->has_fill && b->size)) return false;
    for (int d = 0; d < b->ndims && read->has_fill; d++) {
        int64_t x = access_coef(p, read, d, p->naxes);
        for (int a = 0; a < p->naxes; a++) x += access_coef(p, read, d, a) * at[a];
        if (x < 0 || x >= b->extent[d]) return false;
    }
    return true;
}

/* An earlier statement of the issue hands it on. */
static bool handed_on(const struct reach *r, const struct issue_node *n, int q, int buffer) {
    for (int k = 0; k < q; k++)
        if (r->v->p->stmt[n->also[k]].dst.buffer == buffer) return true;
    return false;
}

static bool operand_holds(const struct reach *r, const struct issue_node *n, int buffer) {
    for (int o = 0; o < r->v->m->instr[n->instr].noperands; o++)
        if (n->arg[o].place >= 0 && holds(r, n->arg[o].place, buffer)) return true;
    return false;
}

/* The q-th of the issue's statements, at its first point. */
static void statement_reads(struct reach *r, const struct node *node, int q) {
    const struct issue_node *n = node->issue;
    const struct verify *v = r->v;
    int64_t at[MAX_AXES] = {0};
    int stmt = q < n->nalso ? n->also[q] : n->stmt;
    if (v->loose_stmt[stmt]) return;
    for (int a = 0; a < v->p->naxes; a++)
        if (n->base[a]) at[a] = sx_eval(n->base[a], v->var);
    if (!point_in_domain(v, stmt, at)) return;
    const struct stmt *t = &v->p->stmt[stmt];
    for (int k = 0; k < t->nreads; k++)
        if (reads_element(r, &t->read[k], at) && !handed_on(r, n, q, t->read[k].buffer) &&
            !operand_holds(r, n, t->read[k].buffer))
            missing(r, node, stmt, t->read[k].buffer);
}

static void issue_reads(struct reach *r, const struct node *node) {
    for (int q = 0; node->issue->stmt >= 0 && q <= node->issue->nalso; q++)
        statement_reads(r, node, q);
}

/* Parts of a box: its first point, the one in the middle, the last. */
enum { BOX_POINTS = 3 };

/* False: nothing is in the box. */
static bool box_point(const struct verify *v, const struct fallback_node *n, int part,
                      int64_t *at) {
    for (int a = 0; a < v->p->naxes; a++) {
        int64_t lo = 0, hi = v->p->axis[a].extent;
        if (n->lo && n->lo[a]) lo = sx_eval(n->lo[a], v->var), hi = sx_eval(n->hi[a], v->var);
        if (lo < 0 || lo >= hi || hi > v->p->axis[a].extent) return false;
        at[a] = lo + (hi - 1 - lo) * part / (BOX_POINTS - 1);
    }
    return true;
}

static void fallback_reads(struct reach *r, const struct node *node) {
    const struct verify *v = r->v;
    int stmt = node->fallback->stmt;
    const struct stmt *t = &v->p->stmt[stmt];
    int64_t at[MAX_AXES];
    for (int part = 0; part < BOX_POINTS && !v->loose_stmt[stmt]; part++) {
        if (!box_point(v, node->fallback, part, at)) return;
        if (!point_in_domain(v, stmt, at)) continue;
        for (int k = 0; k < t->nreads; k++) {
            int home = v->home[t->read[k].buffer];
            if (reads_element(r, &t->read[k], at) && home >= 0 &&
                !holds(r, home, t->read[k].buffer))
                missing(r, node, stmt, t->read[k].buffer);
        }
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

/* Which iterations of all loops, as a part of them. */
enum which { FIRST, MIDDLE, LAST };

/* The loop's variable there; false: it has no iterations. */
static bool iteration(const struct verify *v, const struct loop_node *l, enum which which) {
    int64_t lo = sx_eval(l->lo, v->var), hi = sx_eval(l->hi, v->var), far;
    if (lo >= hi || __builtin_sub_overflow(hi - 1, lo, &far)) return false;
    int64_t last = far / l->step;
    v->var[l->var] = lo + (which == FIRST ? 0 : which == MIDDLE ? last / 2 : last) * l->step;
    return true;
}

/* runs: the nodes surely do, in these iterations of the loops around. Only the first ones write. */
static void walk(struct reach *r, const struct node *node, int n, enum which which, bool runs) {
    const struct verify *v = r->v;
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) {
            const struct loop_node *l = node[k].loop;
            walk(r, l->body, l->nbody, which, runs && iteration(v, l, which));
        }
        if (node[k].kind == NODE_ISSUE) {
            if (runs) issue_reads(r, &node[k]);
            if (which == FIRST) issue_writes(r, node[k].issue);
        }
        if (node[k].kind == NODE_FALLBACK) {
            int to = v->p->stmt[node[k].fallback->stmt].dst.buffer;
            if (runs) fallback_reads(r, &node[k]);
            if (which == FIRST && v->home[to] >= 0) hold(r, v->home[to], to);
        }
    }
}

static void walk_section(struct reach *r, const struct section *s) {
    for (int k = 0; k < s->nnodes && !r->node; k++)
        for (enum which which = FIRST; which <= LAST && !r->node; which++)
            walk(r, &s->node[k], 1, which, true);
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

static bool finds_all(struct reach *r, int groups) {
    const struct schedule *s = r->v->s;
    r->held = memory_array((size_t)groups, sizeof *r->held);
    r->node = NULL;
    given(r);
    walk_section(r, &s->prepare);
    walk_section(r, &s->run);
    for (int g = 0; g < groups; g++) {
        free(r->held[g].at);
        free(r->held[g].bit);
    }
    free(r->held);
    return !r->node;
}

/* First as if no places shared bytes; where something is missing then, as if what is written to a
 * place were in all that may share bytes with it. */
bool reads_written(struct verify *v) {
    int n = v->s->nplaces;
    struct reach r = {.v = v,
                      .group_of = arena_array(&v->arena, (size_t)n + 1, sizeof *r.group_of)};
    for (int p = 0; p < n; p++) r.group_of[p] = p;
    if (finds_all(&r, n + 1)) return true;
    if (finds_all(&r, places_groups(v, r.group_of))) return true;
    v->node = r.node;
    return verify_error(v, "statement %d reads '%s' where nothing of it has been written", r.stmt,
                        v->p->buffer[r.buffer].name);
}
