/* Statements that a move executes while it copies a reduction's result: on the way in what the sums
 * start with, on the way out what is stored instead of them. Such a move takes the place of the
 * plain one. begin.c, finish.c and follow.c find them. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct stmt *attached_stmt(const struct work *w, const struct attachment *x) {
    return &w->p->stmt[w->task[x->task].stmt];
}

void attach(struct work *w, int task, const struct move *move, struct opnd *o,
            enum attach_side side) {
    struct attachment **at = &o->attached;
    while (*at) at = &(*at)->next;
    *at = arena_alloc(w->arena, sizeof **at);
    **at = (struct attachment){.task = task, .side = side};
    if (move) (*at)->move = *move;
    w->task_of[w->task[task].stmt] = -2;
}

struct view attached_view(const struct work *w, const struct opnd *o, int buffer, bool fill) {
    const struct attachment *x = attached_at(o, fill);
    if (!x) return view_plain(buffer);
    const struct stmt *st = attached_stmt(w, x);
    if (!fill) return view_plain(st->dst.buffer);
    const struct access *from = &st->read[0];
    struct view v = {.of = st->dst.buffer, .buffer = from->buffer};
    for (int d = 0; d < w->p->buffer[v.of].ndims; d++) {
        int axis = access_mover(w->p, &st->dst, d, st->axes);
        v.dim[d] = -1;
        for (int k = w->p->buffer[v.buffer].ndims - 1; k >= 0 && axis >= 0; k--)
            if (access_coef(w->p, from, k, axis)) v.dim[d] = k;
    }
    return v;
}

bool attached_fit(struct work *w, const struct opnd *o, const struct slot *s,
                  const struct region *r, bool fill, struct fit *fit) {
    const struct attachment *x = attached_at(o, fill);
    struct view v = attached_view(w, o, -1, fill);
    struct moves one = {.at = (struct move *)&x->move, .n = 1};
    struct box box;
    int home = work_home(w, v.buffer)->memory;
    for (int i = 0; i < o->geom.n; i++)
        if (o->geom.at[i].dim < 0) return false;
    if (!box_make(w, &v, &o->geom, s, r, fill, &box)) return false;
    box.type = x->move.type;
    box.apart = true; /* an axis of the move stands for one of the program's, in unit steps */
    for (int i = 0; i < box.n; i++) box.dim[i].outside = o->geom.at[i].div != 1;
    return fit_box(w, &one, 0, fill ? home : o->memory, fill ? o->memory : home, &box, fit);
}

/* The same tile anywhere in the buffer, at whole blocks: windows begin where their axes say. */
static void move_anywhere(struct work *w, const struct buffer *b, const struct geom *g,
                          struct region *r) {
    for (int d = 0; d < b->ndims; d++) {
        int64_t last = (b->extent[d] - r->n[d].max) / g->block[d];
        if (last > 0)
            r->lo[d] = val_scale(&w->s->arena, val_var(&w->s->arena, 0, last), g->block[d]);
    }
}

const char *attached_check(struct work *w, const struct task *t, const struct opnd *o, bool fill) {
    struct region r;
    struct fit fit;
    struct view v = attached_view(w, o, -1, fill);
    const struct geom *g = &o->geom;
    const char *why =
        fill ? "no move that computes brings it there" : "no move that computes brings it home";
    operand_sample(w, t, o, o->writes, &r);
    struct slot s = slot_make(&w->s->arena, g, &r);
    if (fill && !o->writes) move_anywhere(w, &w->p->buffer[v.of], g, &r);
    for (int d = 0; d < w->p->buffer[v.of].ndims; d++) {
        bool ends = w->p->buffer[v.of].extent[d] % g->block[d] || (!fill && g->live >> d & 1);
        if (g->block[d] > 1 && ends && (fill || !home_is_padded(w, v.buffer, g, d, true)))
            return why;
    }
    return (fill && g->loose) || !attached_fit(w, o, &s, &r, fill, &fit) ? why : NULL;
}

/* One statement of the same operations on the same types. */
static bool computes_alike(const struct program *a, const struct program *b) {
    const struct stmt *x = &a->stmt[0], *y = &b->stmt[0];
    if (a->nstmts != 1 || b->nstmts != 1 || x->nops != y->nops || x->nreads != y->nreads ||
        x->combine != y->combine || memcmp(x->op, y->op, (size_t)x->nops * sizeof *x->op) != 0)
        return false;
    for (int r = 0; r < x->nreads; r++)
        if (a->buffer[x->read[r].buffer].type != b->buffer[y->read[r].buffer].type) return false;
    return a->buffer[x->dst.buffer].type == b->buffer[y->dst.buffer].type;
}

bool attached_other(struct work *w, const struct task *t, struct opnd *o) {
    struct attachment *x = o->attached;
    while (x->side != FILLS) x = x->next;
    const struct move first = x->move;
    for (int i = 0; i < w->m->ninstrs; i++)
        if (w->m->instr[i].is_move && i != first.needle->instr &&
            move_begins(w, i, o->memory, &x->move) &&
            computes_alike(first.needle->bound, x->move.needle->bound) &&
            !attached_check(w, t, o, true))
            return true;
    x->move = first;
    return false;
}

void attached_issue(struct work *w, const struct opnd *o, bool fill, const struct fit *f,
                    const struct region *r, const struct val *turn, struct issue_node *n) {
    struct arena *a = &w->s->arena;
    const struct task *t = &w->task[attached_at(o, fill)->task];
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct instr *in = f->move->needle->in;
    struct val at[MAX_DIMS];
    n->stmt = t->stmt;
    for (int i = 0; i < in->noperands; i++)
        if (t->op[i].where == IN_IMM)
            n->arg[i] = (struct arg){.place = -1, .offset = sx_const(a, 0), .imm = t->op[i].imm};
    for (int d = 0; d < w->p->buffer[st->dst.buffer].ndims; d++) at[d] = r->lo[d];
    for (int i = 0; i < f->box.n; i++) {
        struct coord c = o->geom.at[f->box.dim[i].coord];
        if (f->looped[i])
            at[c.dim] = val_add(a, at[c.dim], val_scale(a, turn[i], c.div * f->box.dim[i].unit));
    }
    for (int k = 0; k < f->move->naxes; k++)
        if (f->dim_of[k] >= 0)
            n->axis[f->move->axis[k].x] = access_mover(
                w->p, &st->dst, o->geom.at[f->box.dim[f->dim_of[k]].coord].dim, st->axes);
    for (int d = 0; d < w->p->buffer[st->dst.buffer].ndims; d++) {
        int x = access_mover(w->p, &st->dst, d, st->axes);
        if (x >= 0) n->base[x] = val_sx(a, at[d]);
    }
    for (int k = st->scope - 1; k >= 0; k = w->scope[k].parent)
        n->base[w->scope[k].axis] = val_sx(a, w->step[k]);
    for (int x = 0; x < w->p->naxes; x++)
        if ((stmt_span(w, st) >> x & 1) && !n->base[x]) n->base[x] = sx_const(a, 0);
}
