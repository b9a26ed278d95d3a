/* Fitting: which move copies a box of data, which of its axes takes which dimension, and what is
 * left as loops. */
#include "ir/number.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static bool among(const struct machine *m, const struct operand *o, int memory) {
    for (int i = 0; i < o->nmemories; i++) {
        int at = o->memory[i];
        if (at == memory) return true;
        if (at >= 0 && memory_is_home(m, at) && memory_is_home(m, memory)) return true;
    }
    return false;
}

/* A byte-wise move sees an element as several. */
static bool takes_type(const struct move *mv, enum type type) {
    return mv->type == type ||
           ((mv->needle->in->move_types >> type & 1) && type_size(type) % type_size(mv->type) == 0);
}

bool move_joins(const struct machine *m, const struct move *mv, int from, int to, enum type type) {
    const struct instr *in = mv->needle->in;
    return takes_type(mv, type) && among(m, &in->operand[mv->from_operand], from) &&
           among(m, &in->operand[mv->to_operand], to);
}

static void box_insert(struct box *b, int at, struct box_dim d) {
    assert(b->n < MAX_COORDS);
    memmove(&b->dim[at + 1], &b->dim[at], sizeof b->dim[0] * (size_t)(b->n - at));
    b->dim[at] = d;
    b->n++;
}

static void box_remove(struct box *b, int at) {
    memmove(&b->dim[at], &b->dim[at + 1], sizeof b->dim[0] * (size_t)(b->n - at - 1));
    b->n--;
}

static bool plain(const struct box_dim *d) {
    return !d->extent.x && val_is(d->before, 0) && val_is(d->after, 0) && !d->from.x && !d->to.x;
}

static bool goes_on(const struct box_dim *in, const struct box_dim *out) {
    return plain(in) && plain(out) && out->from.c == in->from.c * in->extent.c &&
           out->to.c == in->to.c * in->extent.c;
}

/* Dimensions that are contiguous on both sides become one. */
static void box_merge(struct box *b) {
    for (int i = 0; i < b->n;) {
        int k = i + 1;
        while (k < b->n && !goes_on(&b->dim[i], &b->dim[k])) k++;
        if (k < b->n) {
            b->dim[i].extent = b->dim[i].total = val_const(b->dim[i].extent.c * b->dim[k].extent.c);
            box_remove(b, k);
        } else {
            i++;
        }
    }
}

/* In elements of the move. */
static void box_convert(struct arena *a, struct box *b, const struct move *mv) {
    int64_t ratio = (int64_t)(type_size(b->type) / type_size(mv->type));
    if (ratio == 1) return;
    for (int i = 0; i < b->n; i++) {
        b->dim[i].from = val_scale(a, b->dim[i].from, ratio);
        b->dim[i].to = val_scale(a, b->dim[i].to, ratio);
    }
    struct val one = val_const(1), zero = val_const(0), n = val_const(ratio);
    box_insert(b, 0, (struct box_dim){n, zero, zero, n, one, one, -1, 1, false});
}

static void box_copy(struct box *to, const struct box *from) {
    memcpy(to, from, offsetof(struct box, dim) + sizeof from->dim[0] * (size_t)from->n);
}

static void fit_copy(struct fit *to, const struct fit *from) {
    memcpy(to, from, offsetof(struct fit, box));
    box_copy(&to->box, &from->box);
}

struct match {
    struct work *w;
    const struct move *mv;
    struct fit *f;
    struct val run_from, run_to;
    int from, to;        /* memories */
    bool begins, shared; /* what follows a share of a dimension must begin as its axis may ask;
                            there is a share */
};

static bool stride_fits(const struct side *s, struct val stride, struct val dense) {
    if (s->kind == STRIDE_CONST) return val_is(stride, s->value);
    if (s->kind == STRIDE_DENSE) return val_same(stride, dense);
    return stride.max <= s->value;
}

/* The first `part` of a dimension; how often is a dimension of its own. */
static bool split_dim(struct match *t, int i, int64_t part) {
    struct box *b = &t->f->box;
    if (b->n == MAX_COORDS || part < 1) return false;
    struct box_dim *d = &b->dim[i], rest = *d;
    rest.outside |= b->apart; /* one axis of the move for each dimension */
    rest.extent = rest.total = val_const(d->extent.c / part);
    rest.unit = d->unit * part;
    rest.from = val_scale(&t->w->s->arena, d->from, part);
    rest.to = val_scale(&t->w->s->arena, d->to, part);
    d->extent = d->total = val_const(part);
    box_insert(b, i + 1, rest);
    for (int k = 0; k < t->mv->naxes; k++)
        if (t->f->dim_of[k] > i) t->f->dim_of[k]++;
    memmove(&t->f->looped[i + 2], &t->f->looped[i + 1], sizeof(bool) * (size_t)(b->n - i - 2));
    t->f->looped[i + 1] = true;
    return true;
}

static void drop_dim(struct match *t, int i) {
    box_remove(&t->f->box, i);
    memmove(&t->f->looped[i], &t->f->looped[i + 1], sizeof(bool) * (size_t)(t->f->box.n - i));
    for (int k = 0; k < t->mv->naxes; k++)
        if (t->f->dim_of[k] > i) t->f->dim_of[k]--;
}

/* The largest divisor that the move's size may take, a multiple of `unit`, looked for among few
 * parts, then among long shares; 0: none found. */
static int64_t longest_share(int64_t extent, const struct move_axis *ax, int64_t unit) {
    enum { TRIES = 4096 };
    int64_t first = (extent + ax->hi - 1) / ax->hi, longest = ax->hi - (ax->hi - ax->lo) % ax->step;
    for (int64_t parts = first; parts < extent && parts < first + TRIES; parts++)
        if (extent % parts == 0 && extent / parts >= ax->lo &&
            (extent / parts - ax->lo) % ax->step == 0 && extent / parts % unit == 0)
            return extent / parts;
    for (int k = 0; k < TRIES && longest >= ax->lo && longest > 0; k++, longest -= ax->step)
        if (extent % longest == 0 && longest % unit == 0) return longest;
    return 0;
}

static int64_t align_of(const struct match *t, bool from) {
    const struct move *mv = t->mv;
    const struct operand *o = &mv->needle->in->operand[from ? mv->from_operand : mv->to_operand];
    return operand_align(t->w->m, o, from ? t->from : t->to, mv->needle->bound);
}

/* Of so many elements at a time what follows may begin on both sides, whichever axis takes it. */
static int64_t share_unit(const struct match *t, const struct box_dim *d) {
    int64_t unit = 1;
    for (int side = 0; side < 2; side++) {
        struct val stride = side ? d->from : d->to;
        int64_t align = align_of(t, side == 1), bytes = stride.c * (int64_t)type_size(t->mv->type);
        if (!stride.x && bytes > 0)
            unit = least_multiple(unit, align / common_divisor(align, bytes));
    }
    return unit;
}

/* Of a size that is known only when it runs, at least its steps are. */
static bool size_steps(const struct move_axis *ax, struct val extent) {
    int64_t m = extent.x ? val_multiple(extent) : extent.c;
    if (!extent.x) return m >= ax->lo && (m - ax->lo) % ax->step == 0;
    return m >= ax->lo && m % ax->step == 0 && ax->lo % ax->step == 0;
}

static bool extent_fits(struct match *t, const struct move_axis *ax, int i) {
    struct box *b = &t->f->box;
    struct box_dim *d = &b->dim[i];
    bool padded = d->before.max > 0 || d->after.max > 0;
    if (ax->part >= 0 && d->before.max <= ax->max_before && val_is(d->total, ax->fixed) &&
        size_steps(ax, d->extent))
        return true;
    if (padded && (d->before.max > ax->max_before || d->after.max > ax->max_after)) return false;
    if (!ax->fixed) {
        if (!size_steps(ax, d->extent)) return false;
        if (d->extent.max <= ax->hi) return true;
        if (d->extent.x || padded) return false;
        t->shared = true;
        return split_dim(t, i, longest_share(d->extent.c, ax, t->begins ? share_unit(t, d) : 1));
    }
    if (d->extent.x || padded || d->extent.c % ax->fixed) return false;
    return d->extent.c == ax->fixed || split_dim(t, i, ax->fixed);
}

static bool unpadded(const struct box_dim *d) {
    return val_is(d->before, 0) && val_is(d->after, 0) && !d->outside;
}

static bool adds_up(struct arena *a, struct val stride, struct val extent, struct val next) {
    return val_is(val_minus(a, next, val_mul(a, stride, extent)), 0);
}

/* Tails and whole tiles alike: a dimension of which the extent is known when it runs takes those
 * that go on where it ends, as far as the move's size reaches. */
static int take_next(struct match *t, const struct move_axis *ax, int i) {
    struct arena *a = &t->w->s->arena;
    struct box *b = &t->f->box;
    for (int k = 0; !b->apart && !ax->fixed && k < b->n; k++) {
        struct box_dim *in = &b->dim[i], *out = &b->dim[k];
        if (k == i || !t->f->looped[k] || !(in->extent.x || out->extent.x) || !unpadded(in) ||
            !unpadded(out) || in->extent.max > ax->hi / out->extent.max ||
            !adds_up(a, in->from, in->extent, out->from) ||
            !adds_up(a, in->to, in->extent, out->to) ||
            !size_steps(ax, val_mul(a, in->extent, out->extent)))
            continue;
        in->extent = in->total = val_mul(a, in->extent, out->extent);
        drop_dim(t, k);
        i -= k < i;
        k = -1;
    }
    return i;
}

/* A stride that the schedule chooses is one number, whichever axes and sides go by it. */
static bool stride_agrees(const struct match *t, const struct side *s, struct val stride) {
    for (int k = 0; k < t->mv->naxes && s->kind == STRIDE_FREE; k++) {
        const struct move_axis *ax = &t->mv->axis[k];
        if (t->f->dim_of[k] < 0) continue;
        const struct box_dim *d = &t->f->box.dim[t->f->dim_of[k]];
        if ((ax->from.kind == STRIDE_FREE && ax->from.name == s->name &&
             !val_same(d->from, stride)) ||
            (ax->to.kind == STRIDE_FREE && ax->to.name == s->name && !val_same(d->to, stride)))
            return false;
    }
    return true;
}

static bool strides_agree(const struct match *t, const struct move_axis *ax,
                          const struct box_dim *d) {
    bool one =
        ax->from.kind == STRIDE_FREE && ax->to.kind == STRIDE_FREE && ax->from.name == ax->to.name;
    return stride_agrees(t, &ax->from, d->from) && stride_agrees(t, &ax->to, d->to) &&
           (!one || val_same(d->from, d->to));
}

static bool match_axis(struct match *t, int k) {
    const struct move_axis *ax = &t->mv->axis[k];
    struct fit *f = t->f;
    for (int i = 0; i < f->box.n; i++) {
        struct box_dim *d = &f->box.dim[i];
        if (!f->looped[i] || d->outside || !stride_fits(&ax->from, d->from, t->run_from) ||
            !stride_fits(&ax->to, d->to, t->run_to) || !strides_agree(t, ax, d))
            continue;
        i = take_next(t, ax, i);
        if (!extent_fits(t, ax, i)) continue;
        d = &f->box.dim[i];
        f->dim_of[k] = i;
        f->looped[i] = false;
        if (!val_is(d->from, 0)) t->run_from = val_mul(&t->w->s->arena, t->run_from, d->extent);
        t->run_to = val_mul(&t->w->s->arena, t->run_to, d->total);
        return true;
    }
    f->dim_of[k] = -1;
    return ax->fixed ? ax->fixed == 1 : ax->lo <= 1;
}

/* Addresses that the move sees: starts of its issues and rows of chosen stride. */
static bool aligned(const struct match *t, bool from) {
    const struct move *mv = t->mv;
    const struct fit *f = t->f;
    const struct operand *o = &mv->needle->in->operand[from ? mv->from_operand : mv->to_operand];
    int64_t align = align_of(t, from);
    if (f->box.fill == from && f->box.begins % align) return false; /* its home is on this side */
    for (int i = 0; i < f->box.n; i++) {
        bool named = false;
        for (int k = 0; k < mv->naxes; k++)
            if (f->dim_of[k] == i)
                named = (from ? mv->axis[k].from.kind : mv->axis[k].to.kind) == STRIDE_FREE;
        struct val s = from ? f->box.dim[i].from : f->box.dim[i].to;
        if (!s.x && (named || f->looped[i]) && s.c * (int64_t)type_size(o->type) % align)
            return false;
    }
    return true;
}

/* The stride or size of this name, where it is known when the schedule is made. */
static bool known_stride(const struct match *t, int name, double *out) {
    struct val v = val_const(move_inner_run(t->mv));
    for (int k = 0; k < t->mv->naxes; k++) {
        const struct move_axis *ax = &t->mv->axis[k];
        const struct box_dim *d = t->f->dim_of[k] >= 0 ? &t->f->box.dim[t->f->dim_of[k]] : NULL;
        if (d && ax->from.kind == STRIDE_FREE && ax->from.name == name) v = d->from;
        if (d && ax->to.kind == STRIDE_FREE && ax->to.name == name) v = d->to;
    }
    *out = (double)v.c;
    return !v.x;
}

static bool known_size(const struct match *t, int size, double *out) {
    for (int k = 0; k < t->mv->naxes; k++) {
        if (t->mv->axis[k].size != size) continue;
        struct val v = t->f->dim_of[k] >= 0 ? t->f->box.dim[t->f->dim_of[k]].extent : val_const(1);
        *out = (double)v.c;
        return !v.x;
    }
    return false;
}

static bool rule_name(void *user, const char *name, const char *field, double *out) {
    const struct match *t = user;
    const struct instr *in = t->mv->needle->in;
    for (int i = 0; i < in->nstride_names && !field; i++)
        if (!strcmp(in->stride_name[i], name)) return known_stride(t, i, out);
    for (int i = 0; i < in->nranged && !field; i++)
        if (!strcmp(in->semantics->param[in->ranged[i]].name, name)) return known_size(t, i, out);
    for (int i = 0; i < t->w->m->nparams && !field; i++)
        if (!strcmp(t->w->m->param[i].name, name))
            return *out = (double)t->w->m->param[i].value, true;
    return false;
}

/* What the machine file requires of strides and sizes; the verifier looks at the rest. */
static bool rules_hold(const struct match *t) {
    const struct instr *in = t->mv->needle->in;
    struct mexpr_env env = {.name = rule_name, .user = (void *)(uintptr_t)t};
    double x;
    for (int k = 0; k < in->nrequires; k++)
        if (mexpr_eval(in->require[k], &env, &x, NULL) && x == 0) return false;
    return true;
}

static void fit_cost(struct work *w, struct fit *f) {
    const struct instr *in = f->move->needle->in;
    int64_t size[MAX_SIZES];
    double latency, interval, overhead, bytes = (double)type_size(f->move->type);
    f->reads = 1;
    for (int i = 0; i < in->nranged; i++) size[i] = 0;
    for (int k = 0; k < f->move->naxes; k++) {
        const struct move_axis *ax = &f->move->axis[k];
        const struct box_dim *d = f->dim_of[k] >= 0 ? &f->box.dim[f->dim_of[k]] : NULL;
        if (ax->size >= 0) size[ax->size] = d ? d->extent.max : 1;
        if (ax->part >= 0) size[ax->part] = d ? d->extent.max : ax->fixed;
        bool once = ax->from.kind == STRIDE_CONST && ax->from.value == 0; /* it reads one for all */
        if (!d || once) continue;
        bytes *= (double)d->extent.max;
        if (val_is(d->from, 0)) f->reads *= (double)d->extent.max;
    }
    instr_times(w->m, in, f->move->needle->bound, size, &latency, &interval, &overhead);
    f->issues = 1;
    for (int i = 0; i < f->box.n; i++) {
        if (!f->looped[i]) continue;
        f->issues *= (double)f->box.dim[i].total.max;
        if (val_is(f->box.dim[i].from, 0)) f->reads *= (double)f->box.dim[i].total.max;
    }
    const struct bus *bus = in->bus >= 0 ? &w->m->bus[in->bus] : NULL;
    double busy = interval, behind = in->blocking ? latency + (bus ? bus->latency : 0) : 0;
    if (bus && bus->burst > 0) bytes = ceil(bytes / bus->burst) * bus->burst;
    if (bus && bus->rate > 0) busy = fmax(busy, bytes / bus->rate);
    f->cycles = f->issues * (overhead + busy + behind);
}

/* The slot's side of the move lies as the slot, the home's side plainly. */
static bool lies_alike(const struct move *mv, const struct box *b) {
    uint64_t slot = b->fill ? mv->to_fragment : mv->from_fragment,
             home = b->fill ? mv->from_fragment : mv->to_fragment;
    return slot == b->fragment && !home &&
           swizzle_same(b->fill ? mv->to_swizzle : mv->from_swizzle, b->swizzle) &&
           !(b->fill ? mv->from_swizzle : mv->to_swizzle);
}

/* A loop goes through padding too if issues may bring zeros alone. */
static bool loops_through(struct fit *f) {
    const struct move *mv = f->move;
    f->none = -1;
    for (int k = 0; k < mv->naxes; k++)
        if (mv->axis[k].part >= 0 && mv->axis[k].lo == 0 && f->dim_of[k] >= 0) f->none = k;
    for (int i = 0; i < f->box.n; i++) {
        const struct box_dim *d = &f->box.dim[i];
        bool padded = f->looped[i] && (d->before.max > 0 || d->after.max > 0);
        if (padded && (f->none < 0 || !f->box.fill || d->total.x)) return false;
    }
    return true;
}

static bool fit_axes(struct match *t, const struct box *box) {
    struct fit *f = t->f;
    const struct move *mv = t->mv;
    f->move = mv;
    box_copy(&f->box, box);
    for (int k = 0; k < MAX_NEEDLE; k++) f->dim_of[k] = -1;
    box_convert(&t->w->s->arena, &f->box, mv);
    for (int i = f->box.n - 1; i >= 0; i--)
        if (val_is(f->box.dim[i].total, 1) && val_is(f->box.dim[i].extent, 1))
            box_remove(&f->box, i);
    if (!box->apart) box_merge(&f->box);
    for (int i = 0; i < f->box.n; i++) f->looped[i] = true;
    for (int k = 0; k < mv->naxes; k++)
        if (!match_axis(t, k)) return false;
    if (!loops_through(f)) return false;
    for (int i = 0; box->fragment && i < f->box.n; i++) { /* no address inside a fragment */
        struct val slot = box->fill ? f->box.dim[i].to : f->box.dim[i].from;
        if (f->looped[i] && !slot.x && slot.c >= FRAGMENT) return false;
    }
    return aligned(t, true) && aligned(t, false) && rules_hold(t);
}

static bool fit_move(struct work *w, const struct move *mv, int from, int to, const struct box *box,
                     struct fit *f) {
    struct match t = {w, mv, f, val_const(1), val_const(1), from, to, false, false};
    if (!lies_alike(mv, box)) return false;
    if (fit_axes(&t, box)) return true;
    if (!t.shared) return false;
    t = (struct match){w, mv, f, val_const(1), val_const(1), from, to, true, false};
    return fit_axes(&t, box);
}

static bool try_move(struct work *w, const struct move *mv, int from, int to, const struct box *box,
                     struct fit *f) {
    if (!move_joins(w->m, mv, from, to, box->type) || !fit_move(w, mv, from, to, box, f))
        return false;
    fit_cost(w, f);
    return true;
}

bool fit_box(struct work *w, const struct moves *moves, int by, int from, int to,
             const struct box *box, struct fit *best) {
    bool found = false;
    if (by && try_move(w, &moves->at[by - 1], from, to, box, best)) return true;
    for (int i = 0; i < moves->n; i++) {
        const struct move *mv = &moves->at[i];
        struct fit f;
        if (i + 1 == by || mv->ahead >= 0 || !try_move(w, mv, from, to, box, &f)) continue;
        if (!found || f.cycles < best->cycles ||
            (f.cycles == best->cycles &&
             mv->needle->in->nranged < best->move->needle->in->nranged)) {
            fit_copy(best, &f);
            found = true;
        }
    }
    return found;
}
