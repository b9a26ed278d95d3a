/* Moves that start a reduction's result: the statement before the sums is a row of biases that
 * repeats, or a tile that widens on its way. Such a move takes the place of the plain one that
 * would fetch the sums, and what it brings is nowhere else. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

static const struct stmt *begin_stmt(const struct work *w, const struct finish *b) {
    return &w->p->stmt[w->task[b->task].stmt];
}

/* From one array at home to a memory, element by element. */
static bool is_start(const struct work *w, const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int sources = 0;
    if (!t->needle->in->is_move || st->combine != COMBINE_SET || st->nwhere || st->nreads != 1 ||
        st->scope || st->read[0].has_fill)
        return false;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->writes ? o->where != IN_LOCAL || o->read >= 0 : o->where == IN_LOCAL) return false;
        sources += o->where == IN_HOME;
    }
    return sources == 1;
}

/* The reduction whose sums the statement writes first, with nothing between that minds; -1. */
static int core_of(const struct work *w, const struct stmt *st, int stmt) {
    bool after = false;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i], k = w->task_of[s];
        const struct stmt *x = &w->p->stmt[s];
        after |= s == stmt;
        if (s == stmt) continue;
        if (x->dst.buffer == st->dst.buffer) {
            bool sums = after && k >= 0 && w->task[k].reductions && x->combine != COMBINE_SET &&
                        x->scope == st->scope;
            return sums && w->task[k].init < 0 ? k : -1;
        }
        if (stmt_reads(x, st->dst.buffer)) return -1;
        if (after && x->dst.buffer == st->read[0].buffer) return -1;
    }
    return -1;
}

static bool written_again(const struct work *w, int buffer, int stmt, int core) {
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        if (s != stmt && s != core && w->p->stmt[s].dst.buffer == buffer) return true;
    }
    return false;
}

/* Each index of what it reads is one axis of its own, from 0, or stands still. */
static bool reads_plainly(const struct program *p, const struct access *a) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int n = 0;
        if (access_coef(p, a, d, p->naxes)) return false;
        for (int x = 0; x < p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (c && (c != 1 || n++)) return false;
        }
    }
    return true;
}

/* The task's move brings what operand o reads (of `user`, made by that access) instead of its
 * statement. */
static bool adopt(struct work *w, int task, struct opnd *o, const struct task *user,
                  const struct access *made) {
    struct task *t = &w->task[task];
    struct stmt *st = &w->p->stmt[t->stmt];
    struct move mv;
    if (graph_is_static(w->m, o->memory) || !reads_plainly(w->p, &st->read[0]) ||
        !move_begins(w, t->needle->instr, o->memory, &mv) ||
        mv.needle->in->operand[mv.to_operand].type != o->decl->type ||
        !queues_in_step(w->m, mv.needle->in->queue, user->needle->in->queue))
        return false;
    if (!stmt_adopt(w, st, &st->dst, made, w->p->stmt[user->stmt].axes, NULL)) return false;
    struct finish *f = arena_alloc(w->arena, sizeof *f);
    *f = (struct finish){task, mv};
    o->begin = f;
    w->task_of[t->stmt] = -2;
    return true;
}

bool begin_link(struct work *w, int task) {
    struct task *t = &w->task[task];
    const struct stmt *st = &w->p->stmt[t->stmt];
    int k = is_start(w, t) ? core_of(w, st, t->stmt) : -1;
    if (k < 0 || written_again(w, st->dst.buffer, t->stmt, w->task[k].stmt)) return false;
    struct opnd *o = task_result(&w->task[k]);
    return o && o->where == IN_LOCAL && o->accumulates && w->task[k].needle->in->completes < 0 &&
           adopt(w, task, o, &w->task[k], &w->p->stmt[w->task[k].stmt].dst);
}

static bool written_after(const struct work *w, int buffer, int stmt) {
    bool after = false;
    for (int i = 0; i < w->norder; i++) {
        after |= w->order[i] == stmt;
        if (after && w->p->stmt[w->order[i]].dst.buffer == buffer) return true;
    }
    return false;
}

bool begin_side(struct work *w, int user, struct opnd *o, int core) {
    const struct task *t = &w->task[user];
    const struct access *read = &w->p->stmt[t->stmt].read[o->read];
    int maker = -1, uses = 0;
    if (w->p->buffer[read->buffer].role != ROLE_TEMP || read->has_fill) return false;
    for (int i = 0; i < w->norder; i++) {
        const struct stmt *x = &w->p->stmt[w->order[i]];
        for (int r = 0; r < x->nreads; r++) uses += x->read[r].buffer == read->buffer;
        if (x->dst.buffer != read->buffer) continue;
        if (maker >= 0) return false;
        maker = w->task_of[w->order[i]];
        if (maker < 0) return false;
    }
    return maker >= 0 && uses == 1 && is_start(w, &w->task[maker]) &&
           !written_after(w, w->p->stmt[w->task[maker].stmt].read[0].buffer, w->task[core].stmt) &&
           adopt(w, maker, o, t, read);
}

/* Of what it reads: how far one step of the result's coordinate is. */
static bool source_stride(const struct work *w, const struct stmt *st, struct coord c,
                          int64_t *stride) {
    const struct access *from = &st->read[0];
    int axis = access_mover(w->p, &st->dst, c.dim, st->axes);
    *stride = 0;
    for (int d = 0; axis >= 0 && d < w->p->buffer[from->buffer].ndims; d++)
        if (access_coef(w->p, from, d, axis))
            return home_stride(&w->home[from->buffer], w->p->buffer[from->buffer].ndims,
                               (struct coord){d, c.div, c.mod, false}, stride);
    return true;
}

bool begin_box(struct work *w, const struct opnd *o, const struct slot *s, const struct region *r,
               struct box *box, struct fit *fit) {
    const struct finish *f = o->begin;
    const struct stmt *st = begin_stmt(w, f);
    struct moves one = {(struct move *)&f->move, 1};
    const struct geom *g = &o->geom;
    *box = (struct box){.type = f->move.type,
                        .fill = true,
                        .apart = true,
                        .fragment = g->fragment,
                        .swizzle = g->swizzle};
    for (int i = 0; i < g->n; i++) {
        struct coord c = g->at[i];
        int64_t stride;
        if (c.dim < 0 || !source_stride(w, st, c, &stride)) return false;
        struct box_dim *d = &box->dim[box->n++];
        *d = box_whole(i < g->ninner ? val_const(c.mod)
                                     : val_ceil(&w->s->arena, r->n[c.dim], c.div));
        d->from = val_const(stride);
        d->to = s->stride[i];
        d->coord = i;
        d->outside = c.div != 1;
    }
    return fit_box(w, &one, 0, w->home[st->read[0].buffer].memory, o->memory, box, fit);
}

struct val begin_offset(struct work *w, const struct opnd *o, const struct region *r) {
    struct arena *a = &w->s->arena;
    struct val sum = val_const(0);
    for (int i = o->geom.ninner; i < o->geom.n; i++) {
        struct coord c = o->geom.at[i];
        int64_t stride;
        if (source_stride(w, begin_stmt(w, o->begin), c, &stride) && stride)
            sum = val_add(a, sum, val_blocks(a, r->lo[c.dim], c.div, val_const(stride)));
    }
    return sum;
}

bool begin_fits(struct work *w, const struct task *t, const struct opnd *o) {
    struct region r;
    struct box box;
    struct fit fit;
    const struct stmt *st = begin_stmt(w, o->begin);
    operand_sample(w, t, o, true, &r);
    struct slot s = slot_make(&w->s->arena, &o->geom, &r);
    for (int d = 0; d < w->p->buffer[st->dst.buffer].ndims; d++)
        if (o->geom.block[d] > 1 && w->p->buffer[st->dst.buffer].extent[d] % o->geom.block[d])
            return false;
    return !o->geom.loose && begin_box(w, o, &s, &r, &box, &fit);
}

/* What it reads gets the layout that the move wants: a temporary as its own, an argument in a copy.
 */
bool begin_pack(struct work *w, const struct opnd *o) {
    struct access *from = &w->p->stmt[w->task[o->begin->task].stmt].read[0];
    int buffer = from->buffer;
    const struct buffer *b = &w->p->buffer[buffer];
    struct geom g = o->geom;
    const struct access *made = &begin_stmt(w, o->begin)->dst;
    for (int d = 0; d < b->ndims && d < w->p->buffer[made->buffer].ndims; d++)
        for (int x = 0; x < w->p->naxes; x++)
            if (access_coef(w->p, made, d, x) != access_coef(w->p, from, d, x)) return false;
    if (b->ndims != w->p->buffer[made->buffer].ndims || w->home[buffer].locked) return false;
    if (b->role == ROLE_TEMP && !recur_carries(w, buffer)) {
        home_pack(w, buffer, &g);
        return true;
    }
    return pack_argument(w, from, w->task[o->begin->task].stmt, &g);
}
