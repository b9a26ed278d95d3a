/* What does not change from step to step leaves a recurrence: statements that fill temporaries from
 * what no step writes, and products of such factors in sums. A sum (W·g)·h of weights, gates that
 * stand still and a state reads W·g, made once, instead of making it in each step. */
#include "mapper/hoist.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <string.h>

/* ---- statements ---- */

static bool stands_still(const struct body *b, const struct stmt *s) {
    bool still = body_reads_inputs(b, s);
    for (int r = 0; r < s->nreads; r++) still &= !access_varies(b->p, &s->read[r], b->r->axis);
    return still;
}

/* Only additions follow the statement that sets all of the buffer, and readers follow those; none
 * of them changes from step to step. */
static bool may_leave(const struct body *b, int item) {
    const struct stmt *first = body_stmt(b, item);
    if (!first || first->combine != COMBINE_SET || !stmt_writes_whole(b->p, first) ||
        !stands_still(b, first) || !body_owns(b, first->dst.buffer))
        return false;
    bool read = false;
    for (int i = 0; i < b->r->nitems; i++) {
        const struct stmt *s = body_stmt(b, i);
        if (!s || i == item) continue;
        bool writes = s->dst.buffer == first->dst.buffer;
        if (writes && (i < item || read || s->combine == COMBINE_SET || !stands_still(b, s)))
            return false;
        read |= stmt_reads(s, first->dst.buffer);
        if (read && i < item) return false;
    }
    return true;
}

static void leave(struct body *b, int item) {
    int buffer = body_stmt(b, item)->dst.buffer;
    for (int i = item; i < b->r->nitems;) {
        const struct stmt *s = body_stmt(b, i);
        if (!s || s->dst.buffer != buffer) {
            i++;
            continue;
        }
        int stmt = b->r->item[i].stmt;
        body_drop(b, i);
        body_insert_before(b, &stmt, 1);
    }
    body_renew(b);
}

/* ---- products ---- */

static bool still_tree(const struct body *b, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    bool still = o->code != OP_AXIS || o->axis != b->r->axis;
    if (o->code == OP_READ) {
        const struct access *a = &s->read[o->read];
        still = !b->written[a->buffer] && !access_varies(b->p, a, b->r->axis);
    }
    for (int k = 0; k < op_info[o->code].arity; k++) still &= still_tree(b, s, o->arg[k]);
    return still;
}

/* The factors that stand still and have the axes of the largest of them: several; 0: none. A
 * smaller one is cheaper beside what a step makes (group.c). */
static uint32_t still_factors(const struct body *b, const struct stmt *s, struct factors *f) {
    const struct program *p = b->p;
    uint32_t mask = 0;
    double most = 0;
    *f = (struct factors){.type = s->op[s->nops - 1].type};
    if (s->combine != COMBINE_ADD || !type_is_float(f->type) || s->nwhere ||
        !rw_collect(p, s, s->nops - 1, f))
        return 0;
    for (int k = 0; k < f->n; k++) {
        double n = rw_points(p, f->axes[k]);
        if (rw_stored(p, s, f->node[k]) != f->type || !still_tree(b, s, f->node[k]) || n < most)
            continue;
        int first = mask ? __builtin_ctz(mask) : k;
        if (n > most) mask = 0;
        if (!mask || f->axes[first] == f->axes[k]) mask |= UINT32_C(1) << k;
        most = n;
    }
    int n = __builtin_popcount(mask);
    return n > 1 && n < f->n ? mask : 0;
}

/* Are they multiplied with one another first as it stands? */
static bool in_order(const struct program *p, const struct stmt *s, uint32_t mask) {
    struct factors left = {0};
    return rw_collect(p, s, s->op[s->nops - 1].arg[0], &left) &&
           mask == (UINT32_C(1) << left.n) - 1;
}

static bool product_leaves(struct body *b, int item, const struct factors *f, uint32_t mask) {
    struct program *p = b->p;
    int stmt = b->r->item[item].stmt, axis[MAX_AXES];
    const struct stmt old = p->stmt[stmt];
    struct access own;
    uint64_t axes = 0;
    for (int k = 0; k < f->n; k++)
        if (mask >> k & 1) axes |= f->axes[k];
    const char *name = arena_printf(&p->arena, "%s.steady", p->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(p, name, f->type, axis, rw_axes(axes, axis), &own)) return false;
    struct draft d = draft_open(p, &old, COMBINE_SET, rw_copy(p, &own));
    draft_product(&d, &old, f, mask);
    d.s.axes = stmt_axes(p, &d.s);
    int one = body_append(p, d.s);
    d = draft_open(p, &old, old.combine, old.dst);
    int x = draft_read(&d, rw_copy(p, &own));
    draft_binary(&d, OP_MUL, x, draft_product(&d, &old, f, ~mask));
    draft_close(&d, stmt);
    p->stmt[stmt].axes = old.axes;
    body_insert_before(b, &one, 1);
    body_renew(b);
    return true;
}

/* ---- the whole ---- */

static bool leave_products(struct body *b, bool floats) {
    bool reordered = false;
    for (int i = 0; i < b->r->nitems; i++) {
        const struct stmt *s = body_stmt(b, i);
        struct factors f;
        uint32_t mask = s ? still_factors(b, s, &f) : 0;
        bool same = mask && in_order(b->p, s, mask);
        if (mask && (same || floats) && product_leaves(b, i, &f, mask)) reordered |= !same;
    }
    return reordered;
}

bool hoist_steady(struct program *p, bool floats) {
    bool reordered = false;
    for (int at = 0; at < p->nitems; at++) {
        struct body b;
        if (!body_open(p, at, &b)) continue;
        const struct axis *steps = &p->axis[b.r->axis];
        if (steps->extent < 2 && !steps->size) continue;
        for (int i = 0; i < b.r->nitems; i++)
            if (may_leave(&b, i)) {
                leave(&b, i);
                i = -1;
            }
        reordered |= leave_products(&b, floats);
        at = b.at;
    }
    return reordered;
}
