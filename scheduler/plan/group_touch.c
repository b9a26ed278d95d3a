/* What the parts of a draft touch, and how: by dimension, the axis that walks it. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

static void touch_stmt(struct work *w, struct draft *d, int member, int stmt) {
    const struct stmt *st = &w->p->stmt[stmt];
    for (int r = -1; r < st->nreads; r++) {
        const struct access *a = r < 0 ? &st->dst : &st->read[r];
        GROW(w->arena, d->touch, d->ntouches, d->cap_touches);
        d->touch[d->ntouches++] = (struct touch){member, stmt, a->buffer, a, r < 0};
    }
}

static void touch_task(struct work *w, struct draft *d, int member, int task) {
    const struct task *t = &w->task[task];
    touch_stmt(w, d, member, t->stmt);
    if (t->init >= 0) touch_stmt(w, d, member, t->init);
    for (int i = 0; i < t->nops; i++)
        for (const struct attachment *x = t->op[i].attached; x; x = x->next)
            if (x->side == FILLS) touch_stmt(w, d, member, w->task[x->task].stmt);
}

void draft_touch(struct work *w, struct draft *d, int member) {
    const struct run_part *q = &d->part[d->first + member];
    const struct nest *n = q->nest >= 0 ? &w->nest[q->nest] : NULL;

    if (!n) touch_stmt(w, d, member, q->stmt);
    for (int i = 0; n && i < nest_ntasks(n); i++) touch_task(w, d, member, nest_task(n, i));
}

int touch_lone(const struct work *w, const struct touch *t, int dim) {
    return access_lone(w->p, t->access, dim, w->p->stmt[t->stmt].axes);
}

int touch_walks(const struct work *w, const struct touch *t, int axis) {
    int64_t by;
    int dim = access_dim(w->p, t->access, axis, &by);
    return dim >= 0 && touch_lone(w, t, dim) == axis ? dim : -1;
}

bool draft_shares(const struct draft *d, int buffer) {
    int first = -1;
    bool several = false, written = false;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (t->buffer != buffer || !d->in[t->member]) continue;
        if (first < 0) first = t->member;
        several |= t->member != first;
        written |= t->write;
    }
    return several && written;
}

const struct nest *draft_nest(const struct work *w, const struct draft *d, int member) {
    int nest = d->part[d->first + member].nest;
    return nest < 0 ? NULL : d->nest ? &d->nest[member] : &w->nest[nest];
}

const struct nest *draft_first(const struct work *w, const struct draft *d) {
    for (int m = 0; m <= d->last - d->first; m++)
        if (d->in[m] && draft_nest(w, d, m)) return draft_nest(w, d, m);
    return NULL;
}

/* The core's only operand that reads it, from a memory which the schedule fills. */
static int operand_of(const struct work *w, const struct task *t, int buffer) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int found = -1;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_IMM || o->read < 0 || st->read[o->read].buffer != buffer) continue;
        if (found >= 0 || o->writes || o->geom.repeat_axis >= 0 || o->where != IN_LOCAL ||
            graph_is_static(w->m, o->memory))
            return -1;
        found = i;
    }
    return found;
}

bool tile_own(const struct work *w, const struct draft *d, int buffer, int *reader, int *operand) {
    int maker = -1;
    *reader = -1;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (t->buffer != buffer || !d->in[t->member]) continue;
        const struct nest *n = draft_nest(w, d, t->member);
        if (!n || n->core < 0) return false;
        int *as = t->write ? &maker : reader;
        if (*as >= 0 && *as != t->member) return false;
        *as = t->member;
        if (t->write ? maker_result(w, n) != buffer : w->task[n->core].stmt != t->stmt)
            return false;
    }
    if (maker < 0 || *reader <= maker) return false;
    *operand = operand_of(w, &w->task[draft_nest(w, d, *reader)->core], buffer);
    return *operand >= 0;
}

/* Of a part of the buffer alone, where the step or a number says which. */
double touch_bytes(const struct work *w, const struct touch *t) {
    const struct stmt *s = &w->p->stmt[t->stmt];
    const struct buffer *b = &w->p->buffer[t->buffer];
    uint64_t axes = s->axes & ~recur_axes(w, s);
    double elements = 1;
    for (int a = 0; a < w->p->naxes; a++)
        if ((axes >> a & 1) && access_varies(w->p, t->access, a))
            elements *= (double)w->p->axis[a].extent;
    return fmin(elements, (double)b->elements) * (double)type_size(b->type);
}

/* Do the members' own caches hold what they pass to one another and this part of what the turn
 * reads, with as much room beside it? Instances of a grid find it in a cache that they share. */
bool touch_near(const struct work *w, const struct draft *d, const struct nest_group *g,
                const struct touch *t) {
    const struct nest *first = draft_first(w, d);
    double bytes = touch_bytes(w, t) / g->turns;
    for (int i = 0; i < g->npassed; i++) bytes += (double)g->passed[i].bytes;
    return g->around < 0 || (first && first->is_grid) ||
           2 * bytes <= (double)w->m->memory[g->around].size;
}
