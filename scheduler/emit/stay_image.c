/* Results of a loop over tiles that later nests of the same step load: in place of slots, from
 * which each tile is stored, a place as large as all of them, in which each element lies as it
 * would at home. */
#include "ir/number.h"
#include "scheduler/emit/stay_int.h"
#include <limits.h>

struct image {
    struct stay *c;
    int pos, home, place;           /* the node with the loop; the home; the tiles' slots */
    int queue;                      /* of the instructions */
    int to;                         /* the new place */
    const struct issue_node *store; /* one of them */
};

/* Elements from one value of the program's axis to the next, at home. */
static int64_t stride_of(const struct stay *c, const struct access *a, int axis) {
    const struct buffer *b = &c->w->p->buffer[a->buffer];
    int64_t stride = 1, sum = 0;
    for (int d = b->ndims - 1; d >= 0; d--) {
        sum += stride * access_coef(c->w->p, a, d, axis);
        stride *= b->extent[d];
    }
    return sum;
}

/* Do the issue's elements lie at home as they lie in the operand, and does it write no others? */
static bool lies_alike(const struct stay *c, const struct issue_node *n, const struct task *t,
                       const struct opnd *o, const struct access *a) {
    for (int i = 0; i < o->form.n; i++) {
        const struct digit *d = &o->form.digit[i];
        int axis = n->axis[d->x], size = t->needle->ranged[d->x];
        int64_t is, by;
        if (d->extent == 1) continue;
        if (axis < 0) {
            if (size < 0 || !sx_constant(n->size[size], &is) || is != 1) return false;
            continue;
        }
        if (d->free_stride >= 0 || __builtin_mul_overflow(d->weight, stride_of(c, a, axis), &by) ||
            by != d->stride ||
            (size < 0 ? c->w->p->axis[axis].extent % t->needle->hi[d->x] != 0
                      : t->needle->step[d->x] != 1))
            return false;
    }
    return true;
}

static const struct opnd *operand_of(const struct work *w, const struct issue_node *n, int operand,
                                     const struct task **t) {
    int task = n->stmt >= 0 ? w->task_of[n->stmt] : -1;
    *t = task >= 0 ? &w->task[task] : NULL;
    for (int o = 0; *t && o < (*t)->nops; o++)
        if ((*t)->op[o].number == operand) return &(*t)->op[o];
    return NULL;
}

/* The instruction makes elements of the home, and their place follows from the point that it is at.
 */
static bool may_address(const struct image *x, const struct use *u) {
    const struct stay *c = x->c;
    const struct task *t;
    const struct opnd *o = operand_of(c->w, u->issue, u->operand, &t);
    const struct access *a = t ? &c->w->p->stmt[t->stmt].dst : NULL;
    return o && o->writes && !u->fixed && !u->issue->nalso && !o->form.fragment &&
           !o->form.swizzle && a->buffer == c->w->s->place[x->home].buffer &&
           lies_alike(c, u->issue, t, o, a);
}

static bool is_store(const struct image *x, const struct issue_node *n) {
    const struct move *mv = stay_move(x->c, n->instr);
    return mv && n->stmt < 0 && n->arg[mv->from_operand].place == x->place &&
           n->arg[mv->to_operand].place == x->home;
}

static bool makers_agree(struct image *x) {
    const struct stay *c = x->c;
    x->queue = -1;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place == x->home && u->writes && (!u->issue || !is_store(x, u->issue))) return false;
        if (u->place != x->place) continue;
        if (u->pos != x->pos || u->queue < 0) return false;
        if (is_store(x, u->issue)) {
            if (!stay_may_go(c, u->issue)) return false;
            continue;
        }
        if (!may_address(x, u) || (x->queue >= 0 && u->queue != x->queue)) return false;
        x->queue = u->queue;
    }
    return x->queue >= 0 && !c->w->m->queue[x->queue].data_order;
}

/* Each load brings a part into a place of its own in the same memory, used behind it alone; what is
 * changed there no other brings. */
static bool load_agrees(const struct image *x, const struct copy *l) {
    const struct stay *c = x->c;
    const struct place *d = &c->w->s->place[l->local], *p = &c->w->s->place[x->place];
    struct span of = stay_span(c, l->local, l->issue);
    int queue;
    if (!stay_may(c, l->local) || !stay_may_go(c, l->issue) || l->pos <= x->pos ||
        of.first <= l->pos || d->memory != p->memory || d->slots != 1 || l->from != 0 ||
        l->bytes != d->bytes || l->at % stay_alignment(c, l->local) ||
        !stay_one_queue(c, l->local, l->local, &queue) || queue != x->queue)
        return false;
    for (int i = 0; i < c->ncopies; i++) {
        const struct copy *m = &c->copy[i];
        if (m == l || m->home != x->home || !m->loads) continue;
        if (of.write < INT_MAX && m->at < l->at + l->bytes && l->at < m->at + m->bytes)
            return false;
    }
    return true;
}

static bool loads_agree(const struct image *x) {
    const struct stay *c = x->c;
    int loads = 0, reads = 0;
    for (int i = 0; i < c->nuses; i++) reads += c->use[i].place == x->home && c->use[i].reads;
    for (int i = 0; i < c->ncopies; i++) {
        if (c->copy[i].home != x->home) continue;
        if (!c->copy[i].loads || !load_agrees(x, &c->copy[i])) return false;
        loads++;
    }
    return loads > 0 && loads == reads;
}

/* ---- the loop anew ---- */

static void address(struct image *x, struct use *u) {
    struct work *w = x->c->w;
    struct arena *a = &w->s->arena;
    const struct access *acc = &w->p->stmt[u->issue->stmt].dst;
    int64_t size = (int64_t)type_size(w->p->buffer[acc->buffer].type);
    int64_t first = stride_of(x->c, acc, w->p->naxes);
    const struct sx *at = sx_const(a, first);
    for (int k = 0; k < w->p->naxes; k++) {
        int64_t stride = stride_of(x->c, acc, k);
        if (stride && u->issue->base[k])
            at = sx_make(a, SX_ADD, at, sx_make(a, SX_MUL, u->issue->base[k], sx_const(a, stride)));
    }
    u->issue->arg[u->operand].place = x->to;
    u->issue->arg[u->operand].offset = sx_make(a, SX_MUL, at, sx_const(a, size));
}

static void strip(struct image *x, struct loop_node *l) {
    struct nodes out = {0};
    for (int i = 0; i < l->nbody; i++) {
        struct node *n = &l->body[i];
        if (n->kind == NODE_LOOP) strip(x, n->loop);
        if (n->kind == NODE_ROTATE && n->rotate == x->place) continue;
        if (n->kind == NODE_ISSUE && is_store(x, n->issue))
            stay_signals(x->c, &out, n->issue);
        else
            nodes_add(x->c->w, &out, *n);
    }
    l->body = out.at;
    l->nbody = out.n;
}

/* Behind the loop all of it is stored at once. */
static bool make(struct image *x) {
    struct stay *c = x->c;
    struct work *w = c->w;
    const struct place home = w->s->place[x->home], slots = w->s->place[x->place];
    struct issue_node *n =
        stay_issue(c, slots.memory, home.memory, w->p->buffer[home.buffer].type, home.bytes);
    const struct move *mv = n ? stay_move(c, n->instr) : NULL;
    int64_t align = stay_alignment(c, x->place), top = 0, room = graph_capacity(w->m, slots.memory);
    for (int p = 0; p < w->s->nplaces; p++) {
        const struct place *y = &w->s->place[p];
        int64_t end = y->address + y->bytes * y->slots;
        if (y->memory == slots.memory && y->keep == KEEP_LOCAL && end > top) top = end;
    }
    if (!mv || top > room - home.bytes - align) return false;
    struct nodes out = {0}, stored = {0};
    int queue = w->m->instr[n->instr].queue;
    if (!add_signal(w, &stored, x->queue, queue)) return false;
    x->to = add_place(w, home.buffer, slots.memory, align, &top, home.bytes, 1);
    for (int i = 0; i < c->nuses; i++)
        if (c->use[i].place == x->place && !is_store(x, c->use[i].issue)) address(x, &c->use[i]);
    strip(x, c->body.at[x->pos].loop);
    n->arg[mv->from_operand] = (struct arg){.place = x->to, .offset = sx_const(&w->s->arena, 0)};
    n->arg[mv->to_operand] = (struct arg){.place = x->home, .offset = sx_const(&w->s->arena, 0)};
    nodes_add(w, &stored, (struct node){.kind = NODE_ISSUE, .issue = n});
    for (int i = 0; i < x->pos; i++) nodes_add(w, &out, c->body.at[i]);
    stay_tiles(c, &out, &c->body.at[x->pos]);
    nodes_append(w, &out, &stored);
    for (int i = x->pos + 1; i < c->body.n; i++) nodes_add(w, &out, c->body.at[i]);
    c->body = out;
    return true;
}

bool stay_image(struct stay *c) {
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        const struct place *h = &c->w->s->place[u->place];
        if (h->keep != KEEP_WORKSPACE || h->layout || !u->writes || !u->issue ||
            u->issue->stmt >= 0 || c->body.at[u->pos].kind != NODE_LOOP)
            continue;
        const struct move *mv = stay_move(c, u->issue->instr);
        if (!mv || u->operand != mv->to_operand) continue;
        struct image x = {.c = c, .pos = u->pos, .home = u->place};
        x.place = u->issue->arg[mv->from_operand].place;
        if (x.place >= 0 && stay_may(c, x.place) && makers_agree(&x) && loads_agree(&x) && make(&x))
            return true;
    }
    return false;
}
