/* Which loops may stand around several parts of the run (FUSION §1.4). A loop over an axis may, if
 * each tensor that one part writes and another touches is walked by it alone in one dimension, the
 * same for all: then each turn reads what that turn has written, and no dependence is carried. So
 * the question is answered by composing access maps, edge by edge. */
#include "ir/number.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <string.h>

enum { SPARE_AXES = 16 /* for copies */ };

/* ---- one axis ---- */

static bool is_reduced(const struct work *w, const struct run_part *q, int axis) {
    return q->nest >= 0 && w->nest[q->nest].core >= 0 &&
           (w->task[w->nest[q->nest].core].reductions >> axis & 1);
}

/* The axis of a member that walks this dimension of the touch; -1: several, or none alone. */
static bool take_axis(const struct work *w, const struct touch *t, int dim, int *axis) {
    int x = touch_lone(w, t, dim);
    if (x < 0 || (axis[t->member] >= 0 && axis[t->member] != x)) return false;
    axis[t->member] = x;
    return true;
}

/* From members whose axis is known to those that share a tensor with them. */
static void spread(const struct work *w, const struct draft *d, int *axis) {
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < d->ntouches; i++) {
            const struct touch *t = &d->touch[i];
            int dim =
                d->in[t->member] && axis[t->member] >= 0 ? touch_walks(w, t, axis[t->member]) : -1;
            for (int k = 0; k < d->ntouches && dim >= 0; k++) {
                const struct touch *u = &d->touch[k];
                if (u->buffer == t->buffer && d->in[u->member] && axis[u->member] < 0 &&
                    draft_shares(d, t->buffer))
                    more |= take_axis(w, u, dim, axis);
            }
        }
    }
}

/* The core's read of what the first member makes, if that is all that is read of it; NULL. */
static const struct touch *only_read(const struct work *w, const struct draft *d, int buffer) {
    const struct touch *read = NULL;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        const struct run_part *b = &d->part[d->first + t->member];
        if (t->buffer != buffer || t->member == 0) continue;
        if (read || t->write || b->nest < 0 || w->nest[b->nest].core < 0 ||
            w->task[w->nest[b->nest].core].stmt != t->stmt)
            return NULL;
        read = t;
    }
    return read;
}

/* Does the reader slide a window over what the first member makes? */
static bool slides(struct work *w, struct draft *d, const struct touch *made, int dim,
                   struct shared_axis *s) {
    const struct run_part *a = &d->part[d->first];
    const struct touch *t = only_read(w, d, made->buffer);
    const struct stmt *maker = &w->p->stmt[made->stmt];
    struct window x;
    if (!t || a->nest < 0 || w->nest[a->nest].core < 0 || w->nscopes ||
        w->p->naxes >= MAX_AXES - SPARE_AXES)
        return false;
    const struct task *reader = &w->task[w->nest[d->part[d->first + t->member].nest].core];
    int known = s->axis[t->member];
    if (!window_find(w, made->access, maker->axes, reader, t->access, dim, &x) ||
        (known >= 0 && known != x.shared) || (maker->axes >> x.shared & 1))
        return false;
    s->window = x;
    s->slid = made->buffer;
    s->dim = dim;
    s->axis[t->member] = x.shared;
    return true;
}

/* What the first member makes in windows, one other reads; it reads nothing of the others'. */
static bool may_slide(const struct draft *d, int buffer) {
    int reader = -1;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (!d->in[t->member] || !draft_shares(d, t->buffer)) continue;
        if (t->member == 0 && t->buffer != buffer) return false;
        if (t->member == 0 || t->buffer != buffer) continue;
        if (reader >= 0 && reader != t->member) return false;
        reader = t->member;
    }
    return reader >= 0;
}

/* The first member may know none of the axis's names, but make what another slides over it. */
static bool slide_first(struct work *w, struct draft *d, struct shared_axis *s) {
    for (int i = 0; i < d->ntouches && s->axis[0] < 0 && s->window.axis < 0; i++) {
        const struct touch *t = &d->touch[i];
        if (t->member != 0 || !t->write || !draft_shares(d, t->buffer)) continue;
        for (int dim = 0; dim < w->p->buffer[t->buffer].ndims; dim++)
            if (touch_lone(w, t, dim) >= 0 && slides(w, d, t, dim, s)) return true;
    }
    return false;
}

static bool seed(struct work *w, struct draft *d, int buffer, int dim, struct shared_axis *s) {
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (t->buffer != buffer || take_axis(w, t, dim, s->axis)) continue;
        for (int m = 0; m <= d->last - d->first; m++) s->axis[m] = -1;
        for (int k = 0; k < d->ntouches; k++)
            if (d->touch[k].buffer == buffer && d->touch[k].member == 0 && d->touch[k].write &&
                touch_lone(w, &d->touch[k], dim) >= 0)
                return slides(w, d, &d->touch[k], dim, s);
        return false;
    }
    return true;
}

/* ---- is it legal ---- */

static const char *name_of(struct work *w, int stmt, const char *what) {
    return arena_printf(w->arena, "%s of statement %d", what, stmt);
}

/* What a nest alone touches it may sum up over the turns: its partial sums go home after each. */
static bool sums_up(const struct work *w, const struct draft *d, const struct touch *t, int axis) {
    return is_reduced(w, &d->part[d->first + t->member], axis) && !draft_shares(d, t->buffer);
}

/* All that members share is walked in one dimension by the axis alone. */
static bool is_legal(struct work *w, struct draft *d, const struct shared_axis *s) {
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        int x = d->in[t->member] ? s->axis[t->member] : -1;
        if (!d->in[t->member] || (s->window.axis >= 0 && t->member == 0)) continue;
        int dim = x >= 0 ? touch_walks(w, t, x) : -1;
        if (x < 0 || w->p->axis[x].extent != s->extent ||
            (t->write && dim < 0 && !sums_up(w, d, t, x))) {
            d->why = name_of(w, t->stmt, "no shared axis: the axes");
            return false;
        }
        if (!draft_shares(d, t->buffer)) continue;
        for (int k = 0; k < d->ntouches; k++) {
            const struct touch *u = &d->touch[k];
            if (u->buffer != t->buffer || !d->in[u->member] ||
                (s->window.axis >= 0 && (u->member == 0 || t->buffer == s->slid)))
                continue;
            if (dim >= 0 && s->axis[u->member] >= 0 && touch_walks(w, u, s->axis[u->member]) == dim)
                continue;
            d->why =
                arena_printf(w->arena, "no shared axis: '%s' is walked otherwise by statement %d",
                             w->p->buffer[t->buffer].name, u->stmt);
            return false;
        }
    }
    return s->window.axis < 0 || may_slide(d, s->slid);
}

/* Nests know the axis by one name. */
static bool one_name(const struct draft *d, const struct shared_axis *s) {
    int name = -1;
    for (int m = 0; m <= d->last - d->first; m++) {
        if (!d->in[m] || d->part[d->first + m].nest < 0 || (m == 0 && s->window.axis >= 0))
            continue;
        if (name >= 0 && name != s->axis[m]) return false;
        name = s->axis[m];
    }
    return name >= 0;
}

/* ---- tiles are whole blocks ---- */

/* The least tile along the axis, of which others are multiples, so that each turn begins where the
 * task's instructions and the blocks of its operands do. */
static int64_t task_unit(struct work *w, const struct task *t, int axis) {
    int64_t unit = 1;
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] == axis) unit = least_multiple(unit, needle_unit(t->needle, x));
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where != IN_IMM)
            unit = least_multiple(unit, blocks_along(w, t, &t->op[i], axis, ~t->op[i].geom.loose));
    return unit;
}

static int64_t nest_unit(struct work *w, const struct nest *n, int axis) {
    int64_t unit = 1;
    for (int i = 0; i < nest_ntasks(n); i++)
        unit = least_multiple(unit, task_unit(w, &w->task[nest_task(n, i)], axis));
    return unit;
}

static int64_t home_unit(const struct work *w, const struct touch *t, int axis) {
    const struct home *h = work_home(w, t->buffer);
    int dim = touch_walks(w, t, axis);
    int64_t unit = 1;
    for (int k = 0; dim >= 0 && h->packed && k < h->n; k++)
        if (h->at[k].dim == dim)
            unit = least_multiple(unit, h->at[k].div * (h->at[k].mod ? h->at[k].mod : 1));
    return unit;
}

static int64_t quantum(struct work *w, const struct draft *d, const struct shared_axis *s) {
    int64_t unit = 1;
    for (int m = 0; m <= d->last - d->first; m++)
        if (d->in[m] && s->axis[m] >= 0 && draft_nest(w, d, m))
            unit = least_multiple(unit, nest_unit(w, draft_nest(w, d, m), s->axis[m]));
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (d->in[t->member] && s->axis[t->member] >= 0 && draft_shares(d, t->buffer))
            unit = least_multiple(unit, home_unit(w, t, s->axis[t->member]));
    }
    return unit;
}

/* What is blocked along the axis cannot be the reader's hold. */
static bool is_blocked(const struct work *w, const struct draft *d, const struct shared_axis *s) {
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        const struct nest *n = d->in[t->member] ? draft_nest(w, d, t->member) : NULL;
        int dim = t->buffer != d->buffer || !n ? -1
                  : s->slid == t->buffer && s->window.axis >= 0
                      ? s->dim
                      : touch_walks(w, t, s->axis[t->member]);
        for (int k = -1; dim >= 0 && k < n->nchain; k++) {
            const struct task *x =
                k < 0 ? n->core >= 0 ? &w->task[n->core] : NULL : &w->task[n->chain[k].task];
            for (int o = 0; x && o < x->nops; o++) {
                const struct stmt *st = &w->p->stmt[x->stmt];
                bool here = x->op[o].writes
                                ? st->dst.buffer == t->buffer
                                : x->op[o].read >= 0 && st->read[x->op[o].read].buffer == t->buffer;
                if (x->op[o].where != IN_IMM && here && x->op[o].geom.block[dim] > 1) return true;
            }
        }
    }
    return false;
}

/* ---- the group ---- */

/* What stands between the members and is none goes before them, if nothing that it touches is made
 * or read by those which it passes. */
static bool goes_before(const struct draft *d, int member) {
    for (int i = 0; i < d->ntouches; i++)
        for (int k = 0; d->touch[i].member == member && k < d->ntouches; k++) {
            const struct touch *t = &d->touch[i], *u = &d->touch[k];
            if (u->member < member && d->in[u->member] && u->buffer == t->buffer &&
                (u->write || t->write))
                return false;
        }
    return true;
}

static bool find_members(struct work *w, struct draft *d, const struct shared_axis *s) {
    for (int m = 0; m <= d->last - d->first; m++)
        d->in[m] = s->axis[m] >= 0 || (m == 0 && s->window.axis >= 0);
    for (int m = 0; m <= d->last - d->first; m++)
        if (!d->in[m] && !goes_before(d, m)) {
            d->why = name_of(w, d->part[d->first + m].stmt, "no shared axis: the axes");
            return false;
        }
    return true;
}

static bool find_axis(struct work *w, struct draft *d, int buffer, int dim, bool members,
                      struct shared_axis *s) {
    int n = d->last - d->first + 1;
    *s = (struct shared_axis){.axis = arena_array(w->arena, (size_t)n, sizeof *s->axis)};
    for (int m = 0; m < n; m++) s->axis[m] = -1;
    s->window.axis = -1;
    if (!seed(w, d, buffer, dim, s)) {
        d->why = arena_printf(w->arena, "no shared axis: '%s' is walked otherwise on either side",
                              w->p->buffer[buffer].name);
        return false;
    }
    spread(w, d, s->axis);
    if (d->in[0] && slide_first(w, d, s)) spread(w, d, s->axis);
    if (!members && !find_members(w, d, s)) return false;
    for (int m = 0; m < n; m++)
        if (d->in[m] && s->axis[m] >= 0) s->extent = w->p->axis[s->axis[m]].extent;
    if (s->extent < 2 || !is_legal(w, d, s) || !one_name(d, s)) return false;
    s->quantum = quantum(w, d, s);
    return (s->window.axis < 0 && !d->own) || !is_blocked(w, d, s);
}

static bool is_summed(const struct work *w, const struct draft *d, const struct shared_axis *s) {
    bool summed = false;
    for (int m = 0; m <= d->last - d->first; m++)
        summed |= d->in[m] && s->axis[m] >= 0 && is_reduced(w, &d->part[d->first + m], s->axis[m]);
    return summed;
}

/* Partial sums go home after each turn of the innermost loop: axes that are summed over come last.
 */
static void order_axes(const struct work *w, struct draft *d) {
    struct shared_axis last[MAX_DIMS];
    int n = d->nshared, nlast = 0;
    d->nshared = 0;
    for (int k = 0; k < n; k++)
        if (is_summed(w, d, &d->shared[k]))
            last[nlast++] = d->shared[k];
        else
            d->shared[d->nshared++] = d->shared[k];
    d->nkept = d->nshared;
    for (int k = 0; k < nlast; k++) d->shared[d->nshared++] = last[k];
}

bool draft_make(const struct grouping *g, struct draft *d, int first, int last, int buffer) {
    struct work *w = g->w;
    int n = last - first + 1, members = 0, reader, operand;
    *d = (struct draft){
        .part = g->part, .part_of = g->part_of, .first = first, .last = last, .buffer = buffer};
    d->in = arena_array(w->arena, (size_t)n, sizeof *d->in);
    d->why = "no shared axis";
    for (int m = 0; m < n; m++) draft_touch(w, d, m);
    for (int m = 0; m < n; m++) d->in[m] = true;
    d->own = tile_own(w, d, buffer, &reader, &operand);
    for (int k = 0; k < w->p->buffer[buffer].ndims && d->nshared < MAX_DIMS; k++) {
        for (int m = 0; !d->nshared && m < n; m++) d->in[m] = true;
        d->nshared += find_axis(w, d, buffer, k, d->nshared > 0, &d->shared[d->nshared]);
    }
    order_axes(w, d);
    for (int m = 0; m < n; m++) members += d->in[m];
    return d->nshared && members > 1;
}
