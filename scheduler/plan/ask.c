/* What is asked for ahead: where each step of a sum begins rows of an operand that lie apart,
 * nothing foresees their first lines, and the step waits for them. A move that asks (machine
 * format, `ahead`) brings those of a later step near meanwhile. */
#include "scheduler/plan/ask.h"
#include "ir/program.h"
#include "machines/machine.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* Elements at home from one index of the axis to the next, of so many indices; 0: it stays. */
struct walk {
    int64_t count, stride;
};

static struct walk walk_plain(const struct work *w, const struct access *acc, int axis,
                              int64_t size) {
    const struct buffer *b = &w->p->buffer[acc->buffer];
    struct walk all = {size, 0};
    int64_t stride = 1;
    for (int d = b->ndims - 1; d >= 0; stride *= b->extent[d--])
        all.stride += access_coef(w->p, acc, d, axis) * stride;
    return all;
}

/* Of an axis with so many indices: one walk, or where the home has blocks one in each coordinate.
 */
static int axis_walks(const struct work *w, const struct access *acc, int axis, int64_t size,
                      struct walk walk[MAX_COORDS]) {
    const struct home *h = work_home(w, acc->buffer);
    int n = 0;
    if (!h->packed) walk[n++] = walk_plain(w, acc, axis, size);
    for (int i = 0; h->packed && i < h->n; i++) {
        struct coord c = h->at[i];
        int64_t by = c.dim >= 0 ? access_coef(w->p, acc, c.dim, axis) : 0,
                count = (size + c.div - 1) / c.div;
        if (by)
            walk[n++] = (struct walk){c.mod && count > c.mod ? c.mod : count, by * h->stride[i]};
    }
    return n;
}

/* Elements from one step along the axis to the next; 0: they differ. */
static int64_t axis_stride(const struct work *w, const struct access *acc, int axis) {
    struct walk walk[MAX_COORDS];
    return axis_walks(w, acc, axis, 1, walk) == 1 ? walk[0].stride : 0;
}

/* The cache whose lines the move asks for; NULL: it reads from none. */
static const struct memory *cache_of(const struct work *w, const struct move *by) {
    const struct instr *in = by->needle->in;
    for (int k = 0; k < in->nfrom; k++)
        if (w->m->memory[in->from[k]].line > 0) return &w->m->memory[in->from[k]];
    return NULL;
}

/* One element, to all of what it fills: that is lost, its line is what counts. */
static const struct move *asking_move(const struct work *w, const struct moves *moves, int memory,
                                      enum type type) {
    for (int i = 0; i < moves->n; i++) {
        const struct move *mv = &moves->at[i];
        bool one = mv->ahead >= 0 && mv->type == type && move_fills(mv->needle->in, memory) &&
                   cache_of(w, mv);
        for (int k = 0; k < mv->naxes; k++)
            one &= mv->axis[k].from.kind == STRIDE_CONST && !mv->axis[k].from.value;
        if (one) return mv;
    }
    return NULL;
}

/* An operand whose only slot is filled anew in each step. */
static int filled_each(const struct work *w, const struct plan *p, const struct task *t,
                       int depth) {
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        const struct hold *h = &p->hold[i];
        if (o->where == IN_LOCAL && o->read >= 0 && !o->writes && !o->attached &&
            h->depth == depth && h->slots == 1 && !h->spread && !h->ahead && !h->ring &&
            !h->pinned && graph_is_static(w->m, o->memory))
            return i;
    }
    return -1;
}

static bool stays_inside(const struct work *w, const struct task *t, const struct access *acc) {
    struct region r;
    bool inside = true;
    region_padding(w->p, &w->p->stmt[t->stmt], acc, &r);
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        inside &= !r.pad_lo[d] && !r.pad_hi[d];
    return inside;
}

/* At home, all of it inside of its buffer. */
static bool lies_at_home(const struct work *w, const struct task *t, const struct opnd *o) {
    const struct access *acc = o->read >= 0 && !o->writes ? opnd_access(w, t, o) : NULL;
    const struct home *h = acc ? work_home(w, acc->buffer) : NULL;
    return h && h->memory == w->m->home && !h->is_tile && !h->fold && !h->lies_in && !h->ahead &&
           !o->from && !o->attached && (!acc->has_fill || stays_inside(w, t, acc));
}

bool ask_make(const struct work *w, const struct moves *moves, const struct nest *n,
              const struct plan *p, int operand, struct ask *out) {
    const struct task *t = &w->task[n->core];
    const struct opnd *o = &t->op[operand];
    int d = p->nloops;
    while (d > 0 && loop_unrolled(w, n, p, d - 1)) d--;
    if (d == 0 || !lies_at_home(w, t, o) || !(t->reductions >> p->loop[d - 1].axis & 1))
        return false;
    *out = (struct ask){.depth = d, .into = filled_each(w, p, t, d)};
    if (out->into < 0 || (o->where != IN_HOME && p->hold[operand].depth != d)) return false;
    const struct access *acc = opnd_access(w, t, o);
    enum type type = w->p->buffer[acc->buffer].type;
    out->by = asking_move(w, moves, t->op[out->into].memory, type);
    if (!out->by) return false;
    int axis = p->loop[d - 1].axis;
    int64_t step = axis_stride(w, acc, axis) * (int64_t)type_size(type), lo, hi, by;
    double cycles = p->alone / plan_trips(w, p, d);
    out->steps = (int64_t)ceil((double)w->m->memory[w->m->home].latency / fmax(1, cycles));
    int around = d - 2;
    while (around >= 0 && p->loop[around].axis != axis &&
           !access_varies(w->p, acc, p->loop[around].axis))
        around--;
    out->on = around >= 0 && p->loop[around].axis == axis;
    int64_t least = plan_least(w, p, axis, d - 1),
            reach = out->on ? w->p->axis[axis].extent : least;
    if (p->loop[d - 1].tile != 1 || step < cache_of(w, out->by)->line || least < out->steps ||
        reach < 2 * out->steps)
        return false;
    out->far = step * out->steps;
    int near = plan_normalise(w, p, acc, cache_depth(w, cache_of(w, out->by), p, t));
    for (int i = near > n->nprefix ? near : n->nprefix; i < d - 1; i++)
        if (!access_varies(w->p, acc, p->loop[i].axis)) out->first |= UINT64_C(1) << i;
    return instr_size_range(w->m, out->by->needle->in, out->by->ahead, &lo, &hi, &by) &&
           out->far >= lo && (hi < 0 || out->far <= hi);
}

bool ask_lines(const struct work *w, const struct task *t, const struct opnd *o,
               const struct ask *a, const int64_t *size, struct ask_lines *out) {
    const struct access *acc = opnd_access(w, t, o);
    int64_t run = 0,
            line = cache_of(w, a->by)->line / (int64_t)type_size(w->p->buffer[acc->buffer].type);
    out->n = 0;
    for (uint64_t left = w->p->stmt[t->stmt].axes; left; left &= left - 1) {
        struct walk walk[MAX_COORDS];
        int x = __builtin_ctzll(left), n = axis_walks(w, acc, x, size[x], walk);
        for (int k = 0; k < n; k++) {
            if (walk[k].stride == 0 || walk[k].count <= 1) continue;
            if (walk[k].stride < 0 || out->n == MAX_AXES) return false;
            if (walk[k].stride <= line) {
                run += walk[k].stride * (walk[k].count - 1);
            } else {
                out->count[out->n] = walk[k].count;
                out->stride[out->n++] = walk[k].stride;
            }
        }
    }
    /* Blocks of whole lines begin with a line; another row begins anywhere in its first one. */
    bool whole = work_home(w, acc->buffer)->packed && (run + 1) % line == 0;
    for (int k = 0; k < out->n; k++) whole &= out->stride[k] % line == 0;
    int64_t lines = whole ? (run + 1) / line : run ? (run + line - 1) / line + 1 : 1;
    out->count[out->n] = lines;
    out->stride[out->n++] = whole ? line : lines > 1 ? run / (lines - 1) : 0;
    return true;
}

/* Queue cycles of asking in all steps, on all of its servers. */
static double ask_cycles(const struct work *w, const struct plan *p, const struct task *t,
                         int operand, const struct ask *a) {
    int64_t size[MAX_AXES];
    struct ask_lines lines;
    const struct instr *in = a->by->needle->in;
    for (uint64_t left = w->p->stmt[t->stmt].axes; left; left &= left - 1)
        size[__builtin_ctzll(left)] = plan_tile(w, p, __builtin_ctzll(left), a->depth);
    if (!ask_lines(w, t, &t->op[operand], a, size, &lines)) return INFINITY;
    int axis = p->loop[a->depth - 1].axis;
    double interval, overhead,
        n = plan_trips(w, p, a->depth),
        reach = (double)(a->on ? w->p->axis[axis].extent : plan_tile(w, p, axis, a->depth - 1));
    n *= 1 - (double)a->steps / reach;
    for (int i = 0; i < a->depth; i++)
        if (a->first >> i & 1) n *= plan_trips(w, p, i) / plan_trips(w, p, i + 1);
    for (int k = 0; k < lines.n; k++) n *= (double)lines.count[k];
    instr_times(w->m, in, a->by->needle->bound, NULL, NULL, &interval, &overhead);
    return n * (interval + overhead) / fmax(1, (double)w->m->queue[in->queue].width);
}

/* Asked is where that takes less than the lines are late, or where its queue is the busiest then,
 * less than what of that nothing hides. What it saves is what would not have been hidden, less what
 * it takes. */
uint64_t asks_charge(const struct work *w, const struct moves *moves, const struct nest *n,
                     const struct plan *p, struct refills *r, int nr, double *queue) {
    const struct task *t = &w->task[n->core];
    double core = queue[t->needle->in->queue];
    uint64_t asks = 0;
    for (int i = 0; i < t->nops; i++) {
        int read = t->op[i].read;
        struct ask a;
        if (read < 0 || read >= MAX_OPERANDS || r->late[read] < 0.01 * core ||
            !ask_make(w, moves, n, p, i, &a))
            continue;
        int q = a.by->needle->in->queue;
        double cycles = ask_cycles(w, p, t, i, &a);
        double saves = queue[q] + cycles > core ? r->apart[read] : r->late[read];
        if (cycles >= saves) continue;
        queue[q] += cycles;
        asks |= UINT64_C(1) << i;
        for (int k = 0; k < nr; k++) {
            r[k].exposed -= fmax(0, r[k].apart[read] - cycles);
            r[k].worst_exposed = fmin(r[k].worst_exposed, r[k].exposed);
        }
    }
    return asks;
}
