/* Moves that compute while they bring a result home: scaling, rounding, narrowing (DESIGN §5). A
 * statement that such a move executes on a reduction's result finishes it: the move takes the place
 * of the plain copy, and the result never goes home as it is. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

bool finish_may(struct work *w, const struct task *t, const struct mapping *map) {
    const struct instr *in = t->needle->in;
    const struct stmt *st = &w->p->stmt[t->stmt];
    int sources = 0;
    if (!in->is_move || st->combine != COMBINE_SET || st->nwhere || st->nreads < 1) return false;
    for (int i = 0; i < in->noperands; i++) {
        enum operand_role role = map->operand[i].role;
        bool home = false;
        for (int k = 0; k < in->operand[i].nmemories; k++)
            home |= in->operand[i].memory[k] >= 0 && memory_is_home(w->m, in->operand[i].memory[k]);
        if (role == OPERAND_IMM) continue;
        if (role == OPERAND_DST ? !home || map->operand[i].read >= 0 : home) return false;
        sources += role != OPERAND_DST;
    }
    return sources == 1;
}

/* The same element of the same dimensions, both indexed by one axis each. */
static bool same_element(const struct program *p, const struct access *a, uint64_t axes,
                         const struct access *b) {
    int n = p->buffer[a->buffer].ndims;
    uint64_t seen = 0;
    if (p->buffer[b->buffer].ndims != n) return false;
    for (int d = 0; d < n; d++) {
        int movers = 0;
        for (int x = 0; x <= p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (access_coef(p, b, d, x) != c) return false;
            if (!c) continue;
            if (x == p->naxes || c != 1 || (seen >> x & 1)) return false;
            movers++;
            seen |= UINT64_C(1) << x;
        }
        if (movers > 1 || p->buffer[a->buffer].extent[d] != p->buffer[b->buffer].extent[d])
            return false;
    }
    return (seen & axes) == axes;
}

static bool read_elsewhere(const struct work *w, int buffer, int core, int finish) {
    int zero = w->task[core].init;
    for (int k = 0; k < w->task[core].nops; k++)
        if (w->task[core].op[k].begin) zero = w->task[w->task[core].op[k].begin->task].stmt;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        if (s != finish && stmt_reads(&w->p->stmt[s], buffer)) return true;
        if (s != w->task[core].stmt && s != zero && w->p->stmt[s].dst.buffer == buffer) {
            int t = w->task_of[s];
            if (t < 0 || w->p->stmt[s].combine != COMBINE_SET) return true;
        }
    }
    return w->p->buffer[buffer].role != ROLE_TEMP || recur_carries(w, buffer);
}

/* The task whose result the buffer is; -1. */
static int maker_of(const struct work *w, int buffer, bool sums) {
    int found = -1;
    for (int k = 0; k < w->ntasks; k++)
        if (w->task_of[w->task[k].stmt] == k && !w->task[k].finishes &&
            (w->task[k].reductions != 0) == sums &&
            w->p->stmt[w->task[k].stmt].dst.buffer == buffer)
            found = k;
    return found;
}

/* It finishes sums, or what changes them in place in the machine's own loops (follow.c), or a
 * statement that may follow them tile by tile (nests.c). */
static const char *link(struct work *w, int finish) {
    struct task *t = &w->task[finish];
    struct stmt *st = &w->p->stmt[t->stmt];
    int *chain = NULL, n = 0, core = maker_of(w, st->read[0].buffer, true);
    if (core < 0) core = follow_core(w, st->read[0].buffer, t->stmt, &chain, &n);
    if (core < 0 && (core = maker_of(w, st->read[0].buffer, false)) >= 0) n = 0;
    struct opnd *made = core >= 0 ? task_result(&w->task[core]) : NULL;
    if (!made || made->where != IN_LOCAL || st->nreads != 1 ||
        w->p->stmt[w->task[core].stmt].scope != st->scope)
        return "it stores what no instruction leaves in that memory";
    struct move mv;
    if (!move_finishes(w, t->needle->instr, made->memory, &mv))
        return "its move has no rows of the result's memory";
    if (mv.needle->in->operand[mv.from_operand].type != made->decl->type)
        return "the result is of another type";
    if (read_elsewhere(w, st->read[0].buffer, core, t->stmt))
        return "others use what it stores, too";
    struct stmt *maker = &w->p->stmt[w->task[core].stmt];
    if (!stmt_adopt(w, st, &st->read[0], &maker->dst, maker->axes, NULL))
        return "its axes are not the reduction's";
    if (!same_element(w->p, &st->read[0], st->axes, &st->dst))
        return "it stores elements elsewhere than the reduction counts them";
    struct finish *f = arena_alloc(w->arena, sizeof *f);
    *f = (struct finish){finish, mv};
    made->finish = f;
    w->task_of[t->stmt] = -2;
    follow_keep(w, core, chain, n);
    return NULL;
}

void finishes_link(struct work *w) {
    for (int k = 0; k < w->ntasks; k++) {
        if (!w->task[k].finishes || w->task_of[w->task[k].stmt] != k) continue;
        const char *why = link(w, k);
        if (why) task_demote(w, k, why);
    }
}

int finish_buffer(const struct work *w, const struct finish *f) {
    return w->p->stmt[w->task[f->task].stmt].dst.buffer;
}

bool finish_box(struct work *w, const struct opnd *o, const struct slot *s, const struct region *r,
                struct box *box, struct fit *fit) {
    const struct finish *f = o->finish;
    int b = finish_buffer(w, f);
    struct moves one = {(struct move *)&f->move, 1};
    if (!box_make(w, b, &o->geom, s, r, false, box)) return false;
    box->type = f->move.type;
    box->apart = true;
    for (int i = 0; i < box->n;
         i++) { /* an axis of the move stands for one of the program's, in unit steps */
        struct coord c = o->geom.at[i];
        if (c.dim < 0) return false;
        box->dim[i].outside = c.div != 1;
    }
    return fit_box(w, &one, 0, o->memory, w->home[b].memory, box, fit);
}

bool finish_fits(struct work *w, const struct task *t, const struct opnd *o, const char **why) {
    struct region r;
    struct box box;
    struct fit fit;
    int b = finish_buffer(w, o->finish);
    operand_sample(w, t, o, true, &r);
    *why = "no move that computes brings it home";
    struct slot s = slot_make(&w->s->arena, &o->geom, &r);
    for (int d = 0; d < w->p->buffer[b].ndims; d++)
        if (o->geom.block[d] > 1 &&
            (o->geom.live >> d & 1 || w->p->buffer[b].extent[d] % o->geom.block[d]) &&
            !home_is_padded(w, b, &o->geom, d, true))
            return false;
    return finish_box(w, o, &s, &r, &box, &fit);
}

void finish_issue(struct work *w, int task, const struct opnd *o, const struct fit *f,
                  const struct region *r, const struct val *turn, struct issue_node *n) {
    struct arena *a = &w->s->arena;
    const struct task *t = &w->task[task];
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
    for (int x = 0; x < w->p->naxes; x++)
        if ((stmt_span(w, st) >> x & 1) && !n->base[x]) n->base[x] = sx_const(a, 0);
}
