/* Fills and drains: issues of the move that fits, in loops over the dimensions that it has no axis
 * for. */
#include "ir/number.h"
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct transfer {
    struct work *w;
    const struct moves *moves;
    const struct opnd *o;
    const struct held *held;
    bool fill;
    const struct held *outer; /* instead of the home: the outer copy on the operand's route; NULL */
    struct view home;
    const struct region *part;
    struct val
        turn[MAX_COORDS]; /* variables of the loops around the issue, by dimension of the box */
    struct val there;     /* 0: a loop around the issue is in padding, which brings nothing */
};

/* The operand as it lies in the outer copy. */
static const struct opnd *outer_of(const struct transfer *t) {
    return t->fill ? t->o->from : t->o->to;
}

static int far_memory(const struct transfer *t) {
    return t->outer ? outer_of(t)->memory : work_home(t->w, t->home.buffer)->memory;
}

static const struct sx **sized(struct arena *a, int n) {
    return arena_array(a, (size_t)n + 1, sizeof(struct sx *));
}

struct issue_node *issue_of_move(struct work *w, const struct move *mv) {
    struct arena *a = &w->s->arena;
    const struct instr *in = mv->needle->in;
    struct issue_node *n = arena_alloc(a, sizeof *n);
    n->instr = mv->instr;
    n->stmt = n->init = -1;
    n->size = sized(a, in->nranged);
    n->stride = sized(a, in->nstride_names);
    n->flag = sized(a, in->noperands);
    n->base = sized(a, w->p->naxes);
    n->axis = arena_array(a, (size_t)mv->needle->nx + 1, sizeof *n->axis);
    for (int x = 0; x < mv->needle->nx; x++) n->axis[x] = -1;
    for (int i = 0; i < in->nranged; i++) n->size[i] = sx_const(a, mv->least[i]);
    for (int i = 0; i < in->nstride_names; i++) n->stride[i] = sx_const(a, move_inner_run(mv));
    for (int i = 0, k = 0; i < in->noperands; i++)
        if (in->operand[i].accumulate) n->flag[k++] = sx_const(a, 0);
    n->arg = arena_array(a, (size_t)in->noperands + 1, sizeof *n->arg);
    return n;
}

static struct issue_node *move_issue(struct transfer *t, const struct fit *f, struct val from,
                                     struct val to) {
    struct work *w = t->w;
    struct arena *a = &w->s->arena;
    const struct move *mv = f->move;
    const struct instr *in = mv->needle->in;
    struct issue_node *n = issue_of_move(w, mv);
    for (int k = 0; k < mv->naxes; k++) {
        const struct move_axis *ax = &mv->axis[k];
        const struct box_dim *d = f->dim_of[k] >= 0 ? &f->box.dim[f->dim_of[k]] : NULL;
        if (ax->size >= 0)
            n->size[ax->size] = d ? val_sx(a, d->extent) : sx_const(a, ax->lo > 1 ? ax->lo : 1);
        if (ax->part >= 0)
            n->size[ax->part] =
                d ? val_sx(a, k == f->none ? val_mul(a, d->extent, t->there) : d->extent)
                  : sx_const(a, ax->fixed);
        if (ax->before >= 0 && d) n->size[ax->before] = val_sx(a, d->before);
        if (ax->after >= 0 && d) n->size[ax->after] = val_sx(a, d->after);
        if (ax->from.kind == STRIDE_FREE && d) n->stride[ax->from.name] = val_sx(a, d->from);
        if (ax->to.kind == STRIDE_FREE && d) n->stride[ax->to.name] = val_sx(a, d->to);
    }
    if (mv->ahead >= 0) n->size[mv->ahead] = sx_const(a, work_home(w, t->home.buffer)->ahead);
    int home = t->outer ? t->outer->place : home_place(w, t->home.buffer), local = t->held->place;
    from = val_scale(a, from, (int64_t)type_size(in->operand[mv->from_operand].type));
    to = val_scale(a, to, (int64_t)type_size(in->operand[mv->to_operand].type));
    n->arg[mv->from_operand] =
        (struct arg){.place = t->fill ? home : local, .offset = val_sx(a, from)};
    n->arg[mv->to_operand] = (struct arg){.place = t->fill ? local : home, .offset = val_sx(a, to)};
    if (!t->outer && attached_at(t->o, t->fill))
        attached_issue(w, t->o, t->fill, f, t->part, t->turn, n);
    return n;
}

static void emit_looped(struct transfer *, struct nodes *, const struct fit *, int dim,
                        struct val from, struct val to);

/* An index that may be in padding, or loops over those that are not: at home they begin behind the
 * padding, and where nothing is brought the address is the first one's. */
static void emit_turn(struct transfer *t, struct nodes *out, const struct fit *f, int dim,
                      struct val v, struct val there, struct val from, struct val to) {
    struct arena *a = &t->w->s->arena;
    const struct box_dim *d = &f->box.dim[dim];
    struct val keep = t->there, at = val_mul(a, val_make(a, SX_SUB, v, d->before), there);
    t->turn[dim] = v;
    t->there = val_mul(a, keep, there);
    emit_looped(t, out, f, dim - 1, val_add(a, from, val_mul(a, at, d->from)),
                val_add(a, to, val_mul(a, v, d->to)));
    t->there = keep;
}

/* Padding at both ends may be there or not, as the tile lies; between them it is not. */
static void emit_padded(struct transfer *t, struct nodes *out, const struct fit *f, int dim,
                        struct val from, struct val to) {
    struct work *w = t->w;
    struct arena *a = &w->s->arena;
    const struct box_dim *d = &f->box.dim[dim];
    int64_t n = d->total.c, first = d->before.max, end = n - d->after.max;
    for (int64_t i = 0; i < n; i++) {
        struct val v = val_const(i), there = val_const(1);
        if (i < first) there = val_make(a, SX_LE, d->before, v);
        if (i >= end)
            there = val_mul(a, there, val_make(a, SX_LT, val_add(a, v, d->after), d->total));
        if (i < first || i >= end) {
            emit_turn(t, out, f, dim, v, there, from, to);
        } else if (i == first) {
            int var = new_var(w, "m");
            struct nodes body = {0};
            emit_turn(t, &body, f, dim, val_var(a, var, end - 1), there, from, to);
            nodes_add(
                w, out,
                loop_node(w, var, v, val_const(end), 1,
                          graph_is_static(w->m, t->o->memory) ? LOOP_UNROLLED : LOOP_SEQUENTIAL, -1,
                          &body));
        }
    }
}

static void emit_looped(struct transfer *t, struct nodes *out, const struct fit *f, int dim,
                        struct val from, struct val to) {
    struct work *w = t->w;
    struct arena *a = &w->s->arena;
    while (dim >= 0 && !f->looped[dim]) dim--;
    if (dim < 0) {
        nodes_add(w, out, (struct node){.kind = NODE_ISSUE, .issue = move_issue(t, f, from, to)});
        return;
    }
    const struct box_dim *d = &f->box.dim[dim];
    if (d->before.max > 0 || d->after.max > 0) {
        emit_padded(t, out, f, dim, from, to);
        return;
    }
    int var = new_var(w, "m");
    struct val v = val_var(a, var, d->extent.max - 1);
    struct nodes body = {0};
    t->turn[dim] = v;
    emit_looped(t, &body, f, dim - 1, val_add(a, from, val_mul(a, v, d->from)),
                val_add(a, to, val_mul(a, v, d->to)));
    bool unroll = graph_is_static(w->m, t->o->memory) && !val_is(t->fill ? d->to : d->from, 0);
    nodes_add(w, out,
              loop_node(w, var, val_const(0), d->extent, 1,
                        unroll ? LOOP_UNROLLED : LOOP_SEQUENTIAL, -1, &body));
}

static bool fit_by(struct transfer *t, const struct region *part, int by, struct fit *f) {
    return copy_fit(t->w, t->moves, t->home.of, t->o, &t->held->slot,
                    t->outer ? &t->outer->slot : NULL, part, t->fill, by, f);
}

/* For parts of a tile another move may be the cheapest: of the same queue, whose syncs are there.
 */
static bool fit_transfer(struct transfer *t, const struct region *part, struct fit *f) {
    int queue = t->fill ? t->held->queue - 1 : -1;
    if (!fit_by(t, part, t->fill ? t->held->fill_by : t->held->drain_by, f)) return false;
    bool found = queue < 0 || f->move->needle->in->queue == queue;
    for (int i = 0; i < t->moves->n && !found; i++) {
        const struct move *mv = &t->moves->at[i];
        struct fit x;
        if (mv->ahead >= 0 || mv->needle->in->queue != queue || !fit_by(t, part, i + 1, &x) ||
            x.move != mv || (f->move->needle->in->queue == queue && f->cycles <= x.cycles))
            continue;
        *f = x;
    }
    return f->move->needle->in->queue == queue || queue < 0;
}

/* The same copy by a move that also asks for what lies ahead, if there is one. */
static void ask_ahead(struct transfer *t, const struct region *part, struct fit *f) {
    struct work *w = t->w;
    if (!t->fill || t->outer || attached_at(t->o, true) || !work_home(w, t->home.buffer)->ahead)
        return;
    for (int i = 0; i < t->moves->n; i++) {
        struct fit asks;
        if (t->moves->at[i].ahead >= 0 &&
            copy_fit(w, t->moves, t->home.of, t->o, &t->held->slot, NULL, part, true, i + 1,
                     &asks) &&
            asks.move == &t->moves->at[i])
            *f = asks;
    }
}

static bool report(const struct transfer *t) {
    struct work *w = t->w;
    const char *why =
        arena_printf(w->arena, "no move between '%s' and '%s' copies the tile of '%s'",
                     w->m->memory[far_memory(t)].id, w->m->memory[t->o->memory].id,
                     w->p->buffer[t->home.of].name);
    return emit_refuse(w, why);
}

static bool emit_box(struct transfer *t, struct nodes *out, const struct region *part) {
    struct work *w = t->w;
    struct arena *a = &w->s->arena;
    const struct geom *g = &t->o->geom;
    struct fit f;
    if (!fit_transfer(t, part, &f)) return report(t);
    ask_ahead(t, part, &f);
    t->part = part;
    t->there = val_const(1);
    int64_t ratio =
        (int64_t)type_size(w->p->buffer[t->home.of].type) / (int64_t)type_size(f.move->type);
    struct val far =
        t->outer ? slot_offset(a, &outer_of(t)->geom, &t->outer->slot, &t->outer->whole, part)
                 : home_offset(w, &t->home, g, part);
    struct val near = slot_offset(a, g, &t->held->slot, &t->held->whole, part);
    far = val_scale(a, far, ratio);
    near = val_scale(a, near, ratio);
    emit_looped(t, out, &f, f.box.n - 1, t->fill ? far : near, t->fill ? near : far);
    return true;
}

/* What is attached on the way in is there in whole blocks (attached_check). */
static bool in_whole_blocks(const struct transfer *t, int dim) {
    const struct geom *g = &t->o->geom;
    if (g->block[dim] == 1) return true;
    if (t->outer) return !(g->loose >> dim & 1) || g->room[dim];
    return t->home.buffer != t->home.of || home_is_padded(t->w, t->home.buffer, g, dim, !t->fill);
}

/* Blocks that reach past an unpadded home are boxes of their own: whole blocks, then the part of
 * one. */
static bool emit_parts(struct transfer *t, struct nodes *out, const struct region *r, int dim) {
    struct work *w = t->w;
    struct arena *a = &w->s->arena;
    const struct geom *g = &t->o->geom;
    int ndims = w->p->buffer[t->home.of].ndims;
    while (dim < ndims && in_whole_blocks(t, dim)) dim++;
    if (dim == ndims) return emit_box(t, out, r);
    int64_t b = g->block[dim];
    struct region part = *r;
    if (r->n[dim].x && r->n[dim].min > 0 && r->n[dim].max <= b) { /* of one block */
        part.partial[dim] = true;
        return emit_parts(t, out, &part, dim + 1);
    }
    if (r->n[dim].x) { /* not known: block by block */
        int var = new_var(w, "b");
        struct val end = val_add(a, r->lo[dim], r->n[dim]);
        struct nodes body = {0};
        part.lo[dim] = val_var(a, var, r->lo[dim].max + r->n[dim].max);
        part.n[dim] = val_make(a, SX_MIN, val_const(b), val_minus(a, end, part.lo[dim]));
        part.n[dim].min = 1;
        part.n[dim].of = common_divisor(b, val_multiple(r->n[dim]));
        part.partial[dim] = true;
        bool ok = emit_parts(t, &body, &part, dim + 1);
        nodes_add(w, out, loop_node(w, var, r->lo[dim], end, b, LOOP_SEQUENTIAL, -1, &body));
        return ok;
    }
    int64_t whole = r->n[dim].c / b * b, rest = r->n[dim].c - whole;
    int64_t step = pads_inside(g, r, dim) ? b : whole;
    part.n[dim] = val_const(step);
    for (int64_t at = 0; at < whole; at += step) {
        part.lo[dim] = val_add(a, r->lo[dim], val_const(at * g->step[dim]));
        if (!emit_parts(t, out, &part, dim + 1)) return false;
    }
    if (!rest) return true;
    part.lo[dim] = val_add(a, r->lo[dim], val_const(whole * g->step[dim]));
    part.n[dim] = val_const(rest);
    part.partial[dim] = true;
    return emit_parts(t, out, &part, dim + 1);
}

bool emit_transfer(struct work *w, const struct moves *moves, struct nodes *out, int buffer,
                   const struct opnd *o, const struct held *h, const struct held *outer,
                   const struct region *part, bool fill) {
    struct transfer t = {.w = w,
                         .moves = moves,
                         .home = outer ? view_plain(buffer) : attached_view(w, o, buffer, fill),
                         .o = o,
                         .held = h,
                         .fill = fill,
                         .outer = outer};
    return emit_parts(&t, out, part, 0);
}

int transfer_queue(struct work *w, const struct moves *moves, int buffer, const struct opnd *o,
                   const struct region *r, bool fill, int by, int *completes) {
    const struct opnd *outer = fill ? o->from : o->to;
    struct slot near = slot_make(&w->s->arena, &o->geom, r), far = near;
    struct fit f;
    *completes = -1;
    if (outer) far = slot_make(&w->s->arena, &outer->geom, r);
    if (!copy_fit(w, moves, buffer, o, &near, outer ? &far : NULL, r, fill, by, &f)) return -1;
    *completes = f.move->needle->in->completes;
    return f.move->needle->in->queue;
}
