/* Inside a nest: loops over axes, issues, and the grains of elementwise statements that follow a
 * result. */
#include "ir/number.h"
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "machines/needle.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct walk {
    int axis;
    int64_t step;
    bool unroll;
    body_fn body;
    int arg;
};

/* The body with the axis at [lo, lo + size), once or in a loop over [lo, lo + n). In unrolled loops
 * the variable counts from 0, so that addresses inside a hold are constants. */
static bool piece(struct emitter *e, struct nodes *out, const struct walk *w, struct val lo,
                  struct val n, struct val size, bool loop) {
    struct arena *a = &e->w->s->arena;
    int axis = w->axis;
    const struct along keep = e->at[axis];
    struct nodes inner = {0};
    bool ok;
    e->at[axis].lo = lo;
    e->at[axis].size = size;
    if (!n.x) e->at[axis].extent = n.c;
    if (!loop) {
        ok = w->body(e, out, w->arg);
    } else {
        int var = new_var(e->w, e->w->p->axis[axis].name);
        struct val v = val_var(a, var, e->w->p->axis[axis].extent - 1),
                   hi = w->unroll ? n : val_add(a, lo, n);
        int64_t first = w->unroll ? 0 : lo.max, last = n.x ? v.max : (n.c - 1) / w->step * w->step;
        if (first + last < v.max) v.max = first + last;
        if (!w->unroll && lo.min > 0) v.min = lo.min;
        e->at[axis].lo = w->unroll ? val_add(a, lo, v) : v;
        if (!size.max)
            e->at[axis].size = val_make(a, SX_MIN, val_const(w->step), val_minus(a, hi, v));
        if (e->at[axis].size.x) e->at[axis].size.min = 1; /* where the loop turns */
        if (e->at[axis].size.x && !size.max)
            e->at[axis].size.of = common_divisor(w->step, val_multiple(n));
        e->at[axis].tile = n.x ? common_divisor(e->at[axis].tile, w->step) : w->step;
        ok = w->body(e, &inner, w->arg);
        nodes_add(e->w, out,
                  loop_node(e->w, var, w->unroll ? val_const(0) : lo, hi, w->step,
                            w->unroll ? LOOP_UNROLLED : LOOP_SEQUENTIAL, axis, &inner));
    }
    e->at[axis] = keep;
    return ok;
}

/* A loop over an axis in tiles. Tails are min(tile, rest) in the one body; where addresses must be
 * constants, a body of their own. */
bool emit_loop(struct emitter *e, struct nodes *out, int axis, int64_t tile, bool split,
               bool unroll, body_fn body, int arg) {
    struct arena *a = &e->w->s->arena;
    struct val lo = e->at[axis].lo, size = e->at[axis].size, none = {0}, whole = val_const(tile);
    struct walk w = {axis, tile, unroll, body, arg};
    split &= tile > 1;
    if (!size.x) {
        int64_t rest = size.c % tile, full = size.c - rest;
        if (size.c <= tile) return piece(e, out, &w, lo, size, size, false);
        if (!rest || tile == 1) return piece(e, out, &w, lo, size, whole, true);
        if (!split) return piece(e, out, &w, lo, size, none, true);
        return piece(e, out, &w, lo, val_const(full), whole, full > tile) &&
               piece(e, out, &w, val_add(a, lo, val_const(full)), val_const(rest), val_const(rest),
                     false);
    }
    int64_t rest = e->at[axis].extent % tile;
    bool aligned = e->at[axis].tile % tile == 0;
    if ((aligned && !rest) || tile == 1) return piece(e, out, &w, lo, size, whole, true);
    if (!split || !aligned) return piece(e, out, &w, lo, size, none, true);
    e->split = true;
    struct val full = val_scale(a, val_div(a, size, tile), tile);
    return piece(e, out, &w, lo, full, whole, true) &&
           piece(e, out, &w, val_add(a, lo, full), val_minus(a, size, full), val_const(rest), true);
}

/* ---- issues ---- */

/* 1 unless every reduction is at its first step; the zero fill then happens inside the issue. */
static struct val accumulate_flag(struct emitter *e, const struct task *t, const struct opnd *o) {
    struct arena *a = &e->w->s->arena;
    if (!o->accumulates) return val_const(o->read >= 0); /* on what it reads in place */
    if (t->init < 0) return val_const(1);
    struct val f = val_const(0);
    for (int x = 0; x < e->w->p->naxes; x++)
        if (t->reductions >> x & 1)
            f = val_make(a, SX_OR, f, val_make(a, SX_NE, e->at[x].lo, val_const(0)));
    return f;
}

static int home_stride_of(const struct work *w, const struct task *t, const struct opnd *o,
                          const struct access *acc, int name, int64_t *out) {
    for (int i = 0; i < o->form.n; i++) {
        const struct digit *dg = &o->form.digit[i];
        int a = t->axis[dg->x];
        if (dg->free_stride != name || a < 0) continue;
        for (int k = 0; k < o->geom.n; k++) {
            struct coord c = o->geom.at[k];
            if (c.dim >= 0 && access_coef(w->p, acc, c.dim, a) && !c.mod &&
                (dg->weight == 1 || c.div == dg->weight))
                return home_stride(work_home(w, acc->buffer), w->p->buffer[acc->buffer].ndims, c,
                                   out);
        }
    }
    return 0;
}

/* In a slot: as far as one step of the axis that walks there. */
static bool slot_stride_of(struct emitter *e, const struct task *t, const struct opnd *o,
                           const struct access *acc, const struct held *h, int name,
                           struct val *out) {
    for (int i = 0; i < o->form.n; i++) {
        int a = t->axis[o->form.digit[i].x];
        if (o->form.digit[i].free_stride != name || a < 0) continue;
        for (int k = 0; k < o->geom.n; k++) {
            int d = o->geom.at[k].dim;
            if (k < o->geom.ninner && (d < 0 || o->geom.grain[d] == o->geom.block[d])) continue;
            int64_t by = d >= 0 ? access_coef(e->w->p, acc, d, a) / o->form.digit[i].times : 0;
            if (o->form.digit[i].weight > 1 && o->geom.at[k].div != o->form.digit[i].weight)
                continue;
            if (by) return *out = val_scale(&e->w->s->arena, h->slot.stride[k], by), true;
        }
    }
    return false;
}

/* Where nothing walks with it, it is as far as the least tile reaches: words may say strides in
 * whole rows or blocks. */
static int64_t idle_stride(const struct task *t, int name) {
    int64_t most = 1;
    for (int k = 0; k < t->nops; k++) {
        const struct form *f = &t->op[k].form;
        int64_t span = 1;
        bool has = false;
        for (int i = 0; i < f->n; i++) {
            const struct digit *d = &f->digit[i];
            has |= d->free_stride == name;
            if (d->free_stride >= 0) continue;
            int64_t n = d->extent, least = (t->needle->lo[d->x] + d->weight - 1) / d->weight;
            if (t->needle->ranged[d->x] >= 0 && least < n) n = least;
            span += d->stride * d->times * (n - 1);
        }
        if (has && span > most) most = span;
    }
    return most;
}

static void issue_strides(struct emitter *e, const struct task *t, struct held **held,
                          struct issue_node *n) {
    struct work *w = e->w;
    const struct instr *in = t->needle->in;
    for (int i = 0; i < in->nstride_names; i++) {
        int64_t c = 1;
        struct val v = val_const(idle_stride(t, i));
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            if (o->where == IN_IMM) continue;
            const struct access *acc = task_access(w, t, o, o->writes);
            if (o->where == IN_LOCAL && slot_stride_of(e, t, o, acc, held[k], i, &v)) break;
            if (o->where == IN_HOME && home_stride_of(w, t, o, acc, i, &c)) {
                v = val_const(c);
                break;
            }
        }
        n->stride[i] = val_sx(&w->s->arena, v);
    }
}

static void issue_arg(struct emitter *e, const struct task *t, const struct opnd *o,
                      const struct held *h, struct arg *arg) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    *arg = (struct arg){
        .place = -1, .offset = sx_const(a, 0), .layout = o->form.layout, .imm = o->imm};
    if (o->where == IN_IMM) return;
    const struct access *acc = opnd_access(w, t, o);
    int64_t size = (int64_t)type_size(w->p->buffer[acc->buffer].type);
    struct region r;
    region_here(e, t, o, acc, &r);
    struct val at;
    if (o->where == IN_HOME) {
        arg->place = home_place(w, acc->buffer);
        struct view v = view_plain(acc->buffer);
        at = home_offset(w, &v, &o->geom, &r);
    } else {
        arg->place = h->place;
        at = slot_offset(a, &o->geom, &h->slot, &h->whole, &r);
    }
    arg->offset = val_sx(a, val_scale(a, at, size));
}

void emit_issue(struct emitter *e, struct nodes *out, const struct task *t, struct held **held) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    const struct instr *in = t->needle->in;
    const struct stmt *st = &w->p->stmt[t->stmt];
    struct issue_node *n = arena_alloc(a, sizeof *n);
    n->instr = t->needle->instr;
    n->stmt = t->stmt;
    n->init = -1;
    join_issue(w, n);
    n->size = arena_array(a, (size_t)in->nranged + 1, sizeof *n->size);
    n->stride = arena_array(a, (size_t)in->nstride_names + 1, sizeof *n->stride);
    n->flag = arena_array(a, (size_t)in->noperands + 1, sizeof *n->flag);
    n->arg = arena_array(a, (size_t)in->noperands + 1, sizeof *n->arg);
    n->axis = arena_array(a, (size_t)t->needle->nx + 1, sizeof *n->axis);
    n->base = arena_array(a, (size_t)w->p->naxes + 1, sizeof *n->base);
    for (int i = 0; i < in->nranged; i++) n->size[i] = sx_const(a, t->needle->size[i]);
    for (int x = 0; x < t->needle->nx; x++) {
        n->axis[x] = t->axis[x];
        int i = t->needle->ranged[x];
        if (i < 0) continue;
        int64_t step = t->needle->step[x];
        if (t->axis[x] < 0)
            n->size[i] = sx_const(a, t->needle->lo[x]);
        else
            n->size[i] = val_sx(a, val_scale(a, val_ceil(a, e->at[t->axis[x]].size, step), step));
    }
    for (int x = 0; x < w->p->naxes; x++)
        if (stmt_span(w, st) >> x & 1) n->base[x] = val_sx(a, e->at[x].lo);
    issue_strides(e, t, held, n);
    for (int i = 0, f = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        issue_arg(e, t, o, held[i], &n->arg[i]);
        if (!in->operand[i].accumulate) continue;
        struct val flag = accumulate_flag(e, t, o);
        if (o->accumulates && t->init >= 0 && !val_is(flag, 1)) n->init = t->init;
        n->flag[f++] = val_sx(a, flag);
    }
    nodes_add(w, out, (struct node){.kind = NODE_ISSUE, .issue = n});
}

/* ---- grains: elementwise statements on part of a result ---- */

static struct held *made_of(struct emitter *e, int buffer) {
    for (int i = e->nmade - 1; i >= 0; i--)
        if (e->made[i].buffer == buffer) return e->made[i].held;
    return NULL;
}

static bool drain(struct emitter *e, struct nodes *out, const struct task *t, const struct opnd *o,
                  struct held *h, bool credit, struct way_out *way) {
    struct work *w = e->w;
    const struct access *acc = &w->p->stmt[t->stmt].dst;
    struct nodes moves = {0};
    struct region r;
    region_here(e, t, o, acc, &r);
    if (!way_begin(e, &moves, o, acc->buffer, h, &r, way)) return false;
    int q = way->queue[way->n];
    struct edge give = edge_of_queue(w->edges, e->chain, q),
                back = edge_of_queue(w->edges, q, e->chain);
    if (!edge_pass(w, out, &give)) return false;
    nodes_append(w, out, &moves);
    if (credit)
        edge_give(w, out, &back, edge_plain(w, &back));
    else if (!edge_pass(w, out, &back))
        return false;
    return way->collects || way_home(e, out, o, acc->buffer, &r, way);
}

/* What the copy of a result holds, counted in the buffer of another statement with the same axes,
 * which stores `part` of it. */
static void whole_beside(struct emitter *e, const struct access *made, const struct held *h,
                         const struct stmt *by, const struct region *part, struct region *out) {
    const struct program *p = e->w->p;
    *out = *part;
    for (int d = 0; d < p->buffer[by->dst.buffer].ndims; d++) {
        int64_t step;
        int x = access_mover(p, &by->dst, d, by->axes),
            from = x < 0 ? -1 : access_dim(p, made, x, &step);
        if (from < 0) continue;
        int64_t apart =
            access_coef(p, &by->dst, d, p->naxes) - access_coef(p, made, from, p->naxes);
        out->lo[d] = val_add(&e->w->s->arena, h->whole.lo[from], val_const(apart));
        out->n[d] = h->whole.n[from];
    }
}

/* Moves that compute store it too, each when the one before has ended. */
static bool drain_beside(struct emitter *e, struct nodes *out, const struct task *t,
                         const struct opnd *o, struct held *h) {
    struct work *w = e->w;
    for (const struct attachment *x = o->attached; x; x = x->next) {
        struct task by;
        struct opnd as;
        struct region r;
        struct nodes moves = {0};
        int completes;
        if (x->side != STORES_TOO) continue;
        if (!finish_beside(w, t, o, x, &by, &as)) return false;
        const struct access *acc = &w->p->stmt[by.stmt].dst;
        region_here(e, &by, &as, acc, &r);
        int q = transfer_queue(w, e->moves, acc->buffer, &as, &r, false, 0, &completes);
        struct held stored = *h;
        whole_beside(e, &w->p->stmt[t->stmt].dst, h, &w->p->stmt[by.stmt], &r, &stored.whole);
        stored.slot = slot_make(&w->s->arena, &as.geom, &stored.whole);
        if (q < 0 ||
            !emit_transfer(w, e->moves, &moves, acc->buffer, &as, &stored, NULL, &r, false))
            return false;
        if (!add_signal(w, out, e->chain, q)) return false;
        nodes_append(w, out, &moves);
        if (!add_signal(w, out, q, e->chain)) return false;
    }
    return true;
}

static bool chain_task(struct emitter *e, struct nodes *out, int i) {
    struct work *w = e->w;
    const struct task *t = &w->task[e->nest->chain[i].task];
    const struct stmt *st = &w->p->stmt[t->stmt];
    struct held *held[MAX_OPERANDS] = {0}, *result = NULL;
    bool home = e->nest->chain[i].leaves, credit = false;
    for (int k = 0; k < t->nops; k++) {
        const struct opnd *o = &t->op[k];
        if (o->where != IN_LOCAL) continue;
        held[k] = o->read >= 0 ? made_of(e, st->read[o->read].buffer) : NULL;
        bool own = !held[k];
        if (own) held[k] = &e->own[i][k];
        if (o->writes) {
            result = held[k];
            credit = own && e->store >= 0 && chain_runs_ahead(e);
            struct edge back = edge_of_queue(w->edges, e->store, e->chain);
            if (home && credit) edge_take(w, out, &back, edge_plain(w, &back));
        }
        if (held[k]->led) continue;
        if (own) renew_place(e, held[k]);
        if (own && held[k]->slots > 1) add_rotate(w, out, held[k]->place);
        if (own && o->read >= 0 &&
            !fill_in_step(e, out, t, o->source ? o->source : o, &st->read[o->read], held[k]))
            return false;
        if (own && (o->read < 0 || o->source)) {
            region_here(e, t, o, &st->dst, &held[k]->whole);
            held[k]->slot = slot_make(&w->s->arena, &o->geom, &held[k]->whole);
        }
    }
    if (!task_loops(e, out, t, held)) return false;
    if (!result) return true;
    e->made[e->nmade].buffer = st->dst.buffer;
    e->made[e->nmade++].held = result;
    for (int k = 0; k < t->nops; k++) {
        if (!t->op[k].writes) continue;
        if (home && !drain(e, out, t, &t->op[k], result, credit, &e->out[i + 1])) return false;
        if (!drain_beside(e, out, t, &t->op[k], result)) return false;
    }
    return true;
}

static bool grain_body(struct emitter *e, struct nodes *out, int arg) {
    (void)arg;
    int keep = e->nmade;
    bool ok = true;
    for (int i = 0; i < e->nest->nchain && ok; i++) ok = chain_task(e, out, i);
    e->nmade = keep;
    return ok;
}

static int64_t balanced(int64_t extent, int64_t most) {
    int64_t parts = (extent + most - 1) / most;
    return (extent + parts - 1) / parts;
}

static bool core_is_static(const struct emitter *e) {
    for (int i = 0; e->t && i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL)
            return graph_is_static(e->w->m, e->t->op[i].memory);
    return false;
}

static bool task_is_static(const struct work *w, const struct task *t) {
    for (int k = 0; k < t->nops; k++)
        if (t->op[k].where == IN_LOCAL && graph_is_static(w->m, t->op[k].memory)) return true;
    return false;
}

static bool static_chain(const struct emitter *e) {
    for (int i = 0; i < e->nest->nchain; i++)
        if (task_is_static(e->w, &e->w->task[e->nest->chain[i].task])) return true;
    return false;
}

static bool fixed_grain(const struct emitter *e, int axis) {
    for (int i = 0; i < e->nest->nchain; i++) {
        bool fixed;
        task_grain(&e->w->task[e->nest->chain[i].task], axis, &fixed);
        if (fixed) return true;
    }
    return false;
}

/* Elements of the blocks in which the axis moves an operand of the task; 1: it does not. */
static int64_t block_of(struct work *w, const struct task *t, int axis) {
    for (int k = 0; k < t->nops; k++) {
        const struct opnd *o = &t->op[k];
        const struct access *acc = o->where == IN_IMM ? NULL : task_access(w, t, o, o->writes);
        for (int d = 0; acc && d < w->p->buffer[acc->buffer].ndims; d++)
            if (o->geom.block[d] > 1 && access_coef(w->p, acc, d, axis)) return o->geom.block[d];
    }
    return 1;
}

/* Then grains are whole blocks. */
static bool in_blocks(const struct emitter *e, int axis) {
    for (int i = 0; i < e->nest->nchain; i++)
        if (block_of(e->w, &e->w->task[e->nest->chain[i].task], axis) > 1) return true;
    return false;
}

static int64_t grain_here(const struct emitter *e, int axis) {
    int64_t grain = nest_grain(e->nest, axis), most = e->at[axis].size.max;
    if (fixed_grain(e, axis)) return grain;
    if (most <= grain) return most;
    return in_blocks(e, axis) ? grain : balanced(most, grain);
}

/* Along which of the axes are there several grains? */
static struct several several_grains(const struct emitter *e, const int *axis, int n) {
    struct several out = {0};
    for (int i = 0; i < n; i++) {
        int64_t grain = grain_here(e, axis[i]);
        if (!e->at[axis[i]].size.x && e->at[axis[i]].size.c <= grain) continue;
        out.axis[out.n] = axis[i];
        out.grain[out.n++] = grain;
    }
    return out;
}

bool grain_loops(struct emitter *e, struct nodes *out, int k) {
    int axis[MAX_AXES], n = result_axes(e->w, e->w->task[e->nest->chain[0].task].stmt, axis);
    if (k == n) return grain_body(e, out, 0);
    struct several grains = several_grains(e, axis + k, n - k);
    bool ok = chain_lead(e, out, &grains, n - k) &&
              emit_loop(e, out, axis[k], grain_here(e, axis[k]), static_chain(e), core_is_static(e),
                        grain_loops, k + 1);
    chain_lead_end(e, n - k);
    return ok;
}

/* ---- statements before a result's sums, and on it, over its tile ---- */

static bool task_loop(struct emitter *e, struct nodes *out, int k) {
    const struct task *t = e->inner.task;
    int axis[MAX_AXES], n = result_axes(e->w, t->stmt, axis);
    int64_t grain = 1;
    if (k == n) {
        emit_issue(e, out, t, e->inner.held);
        return true;
    }
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] == axis[k]) {
            int64_t block = block_of(e->w, t, axis[k]), most = t->needle->hi[x] / block * block;
            grain = needle_leaf(t->needle, x, e->at[axis[k]].size.max);
            if (grain % block && grain < e->at[axis[k]].size.max && most) grain = most;
        }
    bool unroll = core_is_static(e) || task_is_static(e->w, t);
    return emit_loop(e, out, axis[k], grain, unroll, unroll, task_loop, k + 1);
}

bool task_loops(struct emitter *e, struct nodes *out, const struct task *t, struct held **held) {
    e->inner.task = t;
    e->inner.held = held;
    return task_loop(e, out, 0);
}
