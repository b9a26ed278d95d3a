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
#include "scheduler/plan/routes.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

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
        !queues_in_step(w->edges, mv.needle->in->queue, user->needle->in->queue))
        return false;
    if (!stmt_adopt(w, st, &st->dst, made, w->p->stmt[user->stmt].axes, NULL)) return false;
    attach(w, task, &mv, o, FILLS);
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

/* The only task that reads the buffer, a reduction, and the operand that it has it in. */
static struct opnd *only_reader(struct work *w, int buffer, int *task) {
    struct opnd *found = NULL;
    for (int i = 0; i < w->norder; i++) {
        const struct stmt *x = &w->p->stmt[w->order[i]];
        if (!stmt_reads(x, buffer)) continue;
        int k = w->task_of[w->order[i]];
        if (found || k < 0 || x->combine == COMBINE_SET) return NULL;
        for (int o = 0; o < w->task[k].nops; o++) {
            struct opnd *op = &w->task[k].op[o];
            if (op->where == IN_IMM || op->read < 0 || x->read[op->read].buffer != buffer) continue;
            if (found || op->writes || x->read[op->read].has_fill) return NULL;
            found = op;
        }
        *task = k;
    }
    return found;
}

static bool written_once(const struct work *w, int buffer) {
    int n = 0;
    for (int i = 0; i < w->norder; i++) n += w->p->stmt[w->order[i]].dst.buffer == buffer;
    return n == 1;
}

bool begin_read(struct work *w, int task) {
    struct task *t = &w->task[task];
    const struct stmt *st = &w->p->stmt[t->stmt];
    int buffer = st->dst.buffer, reader;
    struct move mv;
    if (!is_start(w, t) || w->p->buffer[buffer].role != ROLE_TEMP || !written_once(w, buffer) ||
        !reads_plainly(w->p, &st->read[0]) || !reads_plainly(w->p, &st->dst) ||
        written_after(w, st->read[0].buffer, t->stmt))
        return false;
    struct opnd *o = only_reader(w, buffer, &reader);
    if (!o || o->where != IN_LOCAL || o->attached || w->p->stmt[w->task[reader].stmt].scope ||
        graph_is_static(w->m, o->memory) ||
        route_leads(w, known_moves(w->searches, w), &w->task[reader], o) ||
        !move_begins(w, t->needle->instr, o->memory, &mv) ||
        mv.needle->in->operand[mv.to_operand].type != o->decl->type)
        return false;
    attach(w, task, &mv, o, FILLS);
    return true;
}

/* What it reads gets the layout that the move wants: a temporary as its own, an argument in a copy.
 */
bool begin_pack(struct work *w, const struct opnd *o) {
    const struct attachment *x = attached_at(o, FILLS);
    struct stmt *st = attached_stmt(w, x);
    struct access *from = &st->read[0];
    int buffer = from->buffer;
    const struct buffer *b = &w->p->buffer[buffer];
    struct geom g = o->geom;
    const struct access *made = &st->dst;
    for (int d = 0; d < b->ndims && d < w->p->buffer[made->buffer].ndims; d++)
        for (int a = 0; a < w->p->naxes; a++)
            if (access_coef(w->p, made, d, a) != access_coef(w->p, from, d, a)) return false;
    if (b->ndims != w->p->buffer[made->buffer].ndims || work_home(w, buffer)->locked) return false;
    if (b->role == ROLE_TEMP && !recur_carries(w, buffer)) {
        home_pack(w, buffer, &g);
        return true;
    }
    return pack_argument(w, from, w->task[x->task].stmt, &g);
}
