/* Copies that make operands direct: in the layout a needle wants, or indexed by the axes themselves
 * (im2col, fused axes). */
#include "ir/number.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <stdlib.h>
#include <string.h>

static void set(struct work *w, struct access *a, int dim, int axis, int64_t c) {
    a->coef[dim * (w->p->naxes + 1) + axis] = c;
}

/* An axis of this extent that the set does not use yet: one of the program's, or a new one. */
static int pick_axis(struct work *w, const char *name, int64_t extent, uint64_t *used) {
    int a;
    for (a = 0; a < w->p->naxes - w->nscopes; a++)
        if (w->p->axis[a].extent == extent && !w->p->axis[a].sequential && !(*used >> a & 1)) break;
    if (a == w->p->naxes - w->nscopes) a = rewrite_axis(w, unique_name(w, name, "x"), extent);
    if (a >= 0) *used |= UINT64_C(1) << a;
    return a;
}

/* Where there is no room for one more axis: the shortest that is longer. */
static int longer_axis(const struct work *w, int64_t extent, uint64_t *used) {
    int best = -1;
    for (int a = 0; a < w->p->naxes - w->nscopes; a++)
        if (w->p->axis[a].extent >= extent && !w->p->axis[a].sequential && !(*used >> a & 1) &&
            (best < 0 || w->p->axis[a].extent < w->p->axis[best].extent))
            best = a;
    if (best >= 0) *used |= UINT64_C(1) << best;
    return best;
}

/* A copy of what `stmt` reads: constants and inputs first, temporaries just before their reader, in
 * the recurrence that gives them their values. Of what is computed once it is made once. */
static void place_copy(struct work *w, int copy, int stmt, const struct access *read) {
    enum role r = w->p->buffer[read->buffer].role;
    int scope = recur_copy_scope(w, stmt, read);
    bool first = !scope && (r == ROLE_IN || r == ROLE_CONST);
    w->p->stmt[copy].scope = scope;
    w->in_prepare[copy] = !scope && buffer_prepared(w, read->buffer);
    rewrite_order(w, copy, first ? -1 : recur_copy_after(w, stmt, scope));
}

static void place_beside(struct work *w, int copy, int stmt, bool before) {
    w->p->stmt[copy].scope = w->p->stmt[stmt].scope;
    rewrite_order(w, copy, before ? recur_copy_after(w, stmt, w->p->stmt[stmt].scope) : stmt);
}

/* Of the indices that a dimension takes, every so manieth: what is between is not copied. Axes with
 * one value do not count. */
static int64_t every(const struct work *w, const struct stmt *st, const struct access *acc,
                     int dim) {
    int64_t g = 0;
    for (int x = 0; x < w->p->naxes; x++) {
        if ((stmt_span(w, st) >> x & 1) && w->p->axis[x].extent > 1)
            g = common_divisor(llabs(access_coef(w->p, acc, dim, x)), g);
    }
    return g > 1 ? g : 1;
}

/* What the statement reads, counted in such steps from the first index on. */
static void count_in_steps(struct work *w, const struct stmt *st, struct access *acc, int dim,
                           int64_t lo, int64_t step) {
    for (int x = 0; x < w->p->naxes; x++) {
        int64_t *c = &acc->coef[dim * (w->p->naxes + 1) + x];
        if (stmt_span(w, st) >> x & 1) *c = w->p->axis[x].extent == 1 && *c % step ? 0 : *c / step;
    }
    int64_t *first = &acc->coef[dim * (w->p->naxes + 1) + w->p->naxes];
    *first = (*first - lo) / step;
}

bool pack_steps(struct work *w, const struct task *t, const struct opnd *o, struct home *h,
                struct stepped *was) {
    if (!reads_elements(o)) return false;
    struct stmt *st = &w->p->stmt[t->stmt];
    struct access *acc = &st->read[o->read];
    struct buffer *b = &w->p->buffer[acc->buffer];
    int64_t lo[MAX_DIMS], step[MAX_DIMS], hi;
    bool steps = false, inside = true;
    *h = *work_home(w, acc->buffer);
    if (b->role != ROLE_IN || b->size || st->scope || h->packed || h->is_tile) return false;
    for (int d = 0; d < b->ndims; d++) {
        access_range(w->p, st, acc, d, &lo[d], &hi);
        inside &= lo[d] >= 0 && hi < b->extent[d];
        step[d] = every(w, st, acc, d);
        steps |= step[d] > 1;
    }
    if (!steps || !inside) return false;
    *was = (struct stepped){acc->buffer, acc, acc->coef, {0}, b->elements};
    acc->coef = arena_copy(&w->p->arena, acc->coef,
                           sizeof *acc->coef * (size_t)b->ndims * (size_t)(w->p->naxes + 1));
    b->elements = 1;
    for (int d = 0; d < b->ndims; d++) {
        access_range(w->p, st, acc, d, &lo[d], &hi);
        was->extent[d] = b->extent[d];
        if (step[d] > 1) {
            b->extent[d] = (hi - lo[d]) / step[d] + 1;
            count_in_steps(w, st, acc, d, lo[d], step[d]);
        }
        b->elements *= b->extent[d];
    }
    h->extent = arena_copy(w->arena, b->extent, sizeof *b->extent * (size_t)b->ndims);
    h->elements = b->elements;
    return true;
}

void pack_steps_end(struct work *w, const struct stepped *was) {
    struct buffer *b = &w->p->buffer[was->buffer];
    was->access->coef = was->coef;
    b->elements = was->elements;
    for (int d = 0; d < b->ndims; d++) b->extent[d] = was->extent[d];
}

/* Does one statement before `stmt` write all elements of the buffer? If not, a copy of the whole
 * would read some that have no value. */
static bool written_whole(const struct work *w, int buffer, int stmt) {
    for (int k = 0; k < w->norder && w->order[k] != stmt; k++) {
        const struct stmt *st = &w->p->stmt[w->order[k]];
        if (st->dst.buffer == buffer && (!st->scope || st->scope == w->p->stmt[stmt].scope) &&
            stmt_writes_whole(w->p, st))
            return true;
    }
    return false;
}

/* The statement sets [lo, hi) of dimension `dim` of its buffer, and all of the others. */
static bool writes_slice(const struct program *p, const struct stmt *st, int dim, int64_t *lo,
                         int64_t *hi) {
    int64_t from[MAX_DIMS], n[MAX_DIMS];
    const struct buffer *b = &p->buffer[st->dst.buffer];
    if (!stmt_writes_box(p, st, from, n)) return false;
    for (int d = 0; d < b->ndims; d++)
        if (d != dim && (from[d] || n[d] != b->extent[d])) return false;
    *lo = from[dim];
    *hi = from[dim] + n[dim];
    return true;
}

/* Slices of one dimension, in any order, as those who concatenate write them. */
static bool written_in_slices(const struct work *w, int buffer, int stmt, int dim) {
    int64_t reached = 0, before = -1, lo, hi;
    while (reached != before) {
        before = reached;
        for (int k = 0; k < w->norder && w->order[k] != stmt; k++) {
            const struct stmt *st = &w->p->stmt[w->order[k]];
            if (st->dst.buffer == buffer && (!st->scope || st->scope == w->p->stmt[stmt].scope) &&
                writes_slice(w->p, st, dim, &lo, &hi) && lo <= reached && hi > reached)
                reached = hi;
        }
    }
    return reached == w->p->buffer[buffer].extent[dim];
}

bool written_all(const struct work *w, int buffer, int stmt) {
    if (written_whole(w, buffer, stmt)) return true;
    for (int d = 0; d < w->p->buffer[buffer].ndims; d++)
        if (written_in_slices(w, buffer, stmt, d)) return true;
    return false;
}

/* The same in the first step of the recurrences around. */
static struct access without_steps(const struct work *w, const struct stmt *st,
                                   const struct access *a) {
    struct access c = *a;
    size_t n = (size_t)w->p->naxes + 1, ndims = (size_t)w->p->buffer[a->buffer].ndims;
    c.coef = arena_copy(&w->p->arena, a->coef, sizeof *a->coef * ndims * n);
    for (int k = st->scope - 1; k >= 0; k = w->scope[k].parent)
        for (size_t d = 0; d < ndims; d++) c.coef[d * n + (size_t)w->scope[k].axis] = 0;
    return c;
}

/* A copy of the part; of what the statement's read brings in its step, copied there, if `in_step`.
 * -1: there is no room. */
static int copy_part(struct work *w, int task, int old, struct copied *part, int read, bool in_step,
                     const char *name) {
    int ndims = w->p->buffer[old].ndims, axis[MAX_DIMS], stmt = w->task[task].stmt;
    uint64_t used = 0;
    for (int d = 0; d < ndims; d++) {
        axis[d] = pick_axis(w, name, part->extent[d], &used);
        if (axis[d] < 0 && part->fills) axis[d] = longer_axis(w, part->extent[d], &used);
        if (axis[d] < 0) return -1;
        part->extent[d] = w->p->axis[axis[d]].extent;
    }
    int made = rewrite_buffer(w, name, w->p->buffer[old].type, ROLE_TEMP, ndims, part->extent);
    if (made < 0) return -1;
    struct access dst = rewrite_access(w, made), src = rewrite_access(w, old);
    for (int d = 0; d < ndims; d++) {
        set(w, &dst, d, axis[d], 1);
        set(w, &src, d, axis[d], part->step[d]);
        set(w, &src, d, w->p->naxes, part->lo[d]);
    }
    src.has_fill = part->fills;
    src.fill = part->fill;
    const struct access *whole = &w->p->stmt[stmt].read[read]; /* axes that were added are in it */
    for (int k = w->p->stmt[stmt].scope - 1; k >= 0 && in_step; k = w->scope[k].parent)
        for (int d = 0; d < ndims; d++)
            set(w, &src, d, w->scope[k].axis, access_coef(w->p, whole, d, w->scope[k].axis));
    int copy = rewrite_copy(w, dst, src, used);
    if (in_step)
        place_beside(w, copy, stmt, true);
    else
        place_copy(w, copy, stmt, &src);
    return made;
}

bool pack_identity(struct work *w, int task, int operand) {
    struct task *t = &w->task[task];
    struct opnd *o = &t->op[operand];
    int stmt = t->stmt, read = o->read, old = w->p->stmt[stmt].read[read].buffer,
        ndims = w->p->buffer[old].ndims;
    const struct geom geom = o->geom;
    const struct access whole = w->p->stmt[stmt].read[read];
    bool open = w->p->buffer[old].size; /* as long as it is when the program runs */
    const struct access own = open ? without_steps(w, &w->p->stmt[stmt], &whole) : whole,
                        *was = &own;
    struct copied part = {.fill = was->fill};
    bool shifted = false,
         given = w->p->buffer[old].role == ROLE_IN || w->p->buffer[old].role == ROLE_CONST;
    if (open && !recur_moves(w, &w->p->stmt[stmt], &whole)) return false;
    if (!given && recur_moves(w, &w->p->stmt[stmt], was)) return false;
    bool all =
        given || written_all(w, old, stmt); /* else what is read alone: the rest has no value */
    for (int d = 0; d < ndims; d++) {
        int64_t *lo = &part.lo[d], hi, extent = w->p->buffer[old].extent[d];
        access_range(w->p, &w->p->stmt[stmt], was, d, lo, &hi);
        part.step[d] = every(w, &w->p->stmt[stmt], was, d);
        bool outside = *lo < 0 || hi >= extent;
        shifted |= outside;
        if (outside || !all || (open && d == 0) || part.step[d] > 1 || geom.live >> d & 1)
            extent = (hi - *lo) / part.step[d] + 1;
        else
            *lo = 0;
        part.extent[d] = extent;
    }
    /* what is read outside has a value: of that the copy may have more */
    part.fills = shifted && was->has_fill;
    int made = open ? -1 : pack_made(w, t, was, &geom, &part);
    bool anew = made < 0;
    if (anew)
        made = copy_part(w, task, old, &part, read, open,
                         unique_name(w, w->p->buffer[old].name, "packed"));
    if (made < 0) return false;
    struct access now = w->p->stmt[stmt].read[read];
    if (open) now = without_steps(w, &w->p->stmt[stmt], &now);
    now.buffer = made;
    now.coef = arena_copy(&w->p->arena, now.coef,
                          sizeof *now.coef * (size_t)ndims * (size_t)(w->p->naxes + 1));
    for (int d = 0; d < ndims; d++)
        count_in_steps(w, &w->p->stmt[stmt], &now, d, part.lo[d], part.step[d]);
    if (shifted) now.has_fill = false;
    rewrite_read(w, &w->task[task], operand, now);
    w->changes++;
    if (!anew) return true;
    w->home[made] = pack_layout(w, &w->task[task], &w->p->stmt[stmt].read[read], &geom);
    return true;
}

struct index_dim {
    int axis, x; /* fused needle axis; -1 */
    int64_t extent;
    bool alone;
    int whole; /* the buffer's dimension that stands for it as it is, from `lo` in such steps; -1 */
    int64_t lo, step;
};

/* How far one step along an axis moves in the operand, as the needle lays it out: a stride that may
 * be chosen is the slowest. */
static int64_t needle_stride(const struct task *t, const struct opnd *o, int axis) {
    for (int i = 0; i < o->form.n; i++)
        if (t->axis[o->form.digit[i].x] == axis)
            return o->form.digit[i].free_stride >= 0 ? INT64_MAX : o->form.digit[i].stride;
    return 0;
}

/* An operand that is read where it lies must lie as the needle says: its last indices in the
 * needle's order. */
static void order_as_needle(const struct task *t, const struct opnd *o, struct index_dim *dim,
                            int n) {
    for (int i = 1; i < n; i++)
        for (int k = i;
             k > 0 && needle_stride(t, o, dim[k - 1].axis) < needle_stride(t, o, dim[k].axis);
             k--) {
            struct index_dim x = dim[k];
            dim[k] = dim[k - 1];
            dim[k - 1] = x;
        }
}

static struct index_dim of_axis(const struct work *w, int axis, int x) {
    return (struct index_dim){.axis = axis, .x = x, .extent = w->p->axis[axis].extent, .whole = -1};
}

/* A window that the needle does not walk (p + r) stays one dimension: nobody needs its elements
 * once for each of the axes. Not where steps of a recurrence move it. */
static bool stays_whole(const struct work *w, const struct task *t, const struct access *acc, int d,
                        uint64_t walked, struct index_dim *out) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int movers = 0;
    int64_t lo, hi, step = every(w, st, acc, d);
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(stmt_span(w, st) >> a & 1) || !access_coef(w->p, acc, d, a)) continue;
        if ((walked >> a & 1) || !(st->axes >> a & 1)) return false;
        movers += w->p->axis[a].extent > 1;
    }
    access_range(w->p, st, acc, d, &lo, &hi);
    *out = (struct index_dim){
        .axis = -1, .x = -1, .extent = (hi - lo) / step + 1, .whole = d, .lo = lo, .step = step};
    return movers > 1;
}

static int index_dims(const struct work *w, const struct task *t, const struct opnd *o,
                      const struct access *acc, struct index_dim *out) {
    const struct program *p = w->p;
    int n = 0;
    uint64_t done = 0, fused = 0, needle = 0, mask = p->stmt[t->stmt].axes;
    for (int x = 0; x < t->needle->nx; x++) {
        for (int i = 0; t->group[x].n > 1 && i < t->group[x].n; i++)
            fused |= UINT64_C(1) << t->group[x].axis[i];
        if (t->group[x].n == 1) needle |= UINT64_C(1) << t->axis[x];
    }
    int first = 0;
    for (int pass = 0; pass < 2; first = n, pass++) { /* the needle's axes innermost */
        for (int d = 0; d < p->buffer[acc->buffer].ndims; d++) {
            struct index_dim whole;
            if (!o->writes && stays_whole(w, t, acc, d, needle | fused, &whole)) {
                if (n == MAX_DIMS) return -1;
                if (!pass) out[n++] = whole;
                continue;
            }
            for (int a = 0; a < p->naxes; a++)
                if (access_coef(p, acc, d, a) && (mask >> a & 1) && !((done | fused) >> a & 1) &&
                    (int)(needle >> a & 1) == pass) {
                    if (n == MAX_DIMS) return -1;
                    done |= UINT64_C(1) << a;
                    out[n++] = of_axis(w, a, -1);
                }
        }
        if (pass == 1 && o->where == IN_HOME) order_as_needle(t, o, out + first, n - first);
    }
    for (int x = 0; x < t->needle->nx; x++) {
        bool varies = false, digit = false;
        for (int i = 0; i < t->group[x].n; i++)
            varies |= access_varies(p, acc, t->group[x].axis[i]);
        for (int i = 0; i < o->form.n; i++) digit |= o->form.digit[i].x == x;
        if (n == MAX_DIMS) return -1;
        if (t->group[x].n > 1 && varies) out[n++] = of_axis(w, t->axis[x], x);
        bool moves = varies || (t->axis[x] >= 0 && access_varies(p, acc, t->axis[x]));
        if (o->expand && digit && t->axis[x] >= 0 && !moves) {
            out[n++] = of_axis(w, t->axis[x], -1);
            if (n == MAX_DIMS) return -1;
        }
        if (t->axis[x] < 0 && digit && t->needle->hi[x] > 1)
            out[n++] =
                (struct index_dim){.axis = -1, .x = x, .extent = 1, .alone = true, .whole = -1};
    }
    return n;
}

/* Indices by the statement's own axes (members of fused ones) and those of whole dimensions: what
 * the copy uses. */
static struct access spread(struct work *w, const struct task *t, int buffer,
                            const struct index_dim *dim, int n) {
    struct access a = rewrite_access(w, buffer);
    for (int d = 0; d < n; d++) {
        int64_t c = 1;
        if (dim[d].alone) continue;
        if (dim[d].x < 0) {
            set(w, &a, d, dim[d].axis, 1);
            continue;
        }
        const struct group *g = &t->group[dim[d].x];
        for (int i = g->n - 1; i >= 0; i--) {
            set(w, &a, d, g->axis[i], c);
            c *= w->p->axis[g->axis[i]].extent;
        }
    }
    return a;
}

/* What the statement itself reads or writes then; `old`: before. */
static struct access direct(struct work *w, int stmt, int buffer, const struct access *old,
                            const struct index_dim *dim, int n) {
    struct access a = rewrite_access(w, buffer);
    for (int d = 0; d < n; d++) {
        for (int x = 0; dim[d].whole >= 0 && x <= w->p->naxes; x++)
            set(w, &a, d, x, access_coef(w->p, old, dim[d].whole, x));
        if (dim[d].whole >= 0)
            count_in_steps(w, &w->p->stmt[stmt], &a, d, dim[d].lo, dim[d].step);
        else if (!dim[d].alone)
            set(w, &a, d, dim[d].axis, 1);
    }
    return a;
}

/* Axes along which the copy walks dimensions that stay whole, and so what it reads of them. */
static bool walk_whole(struct work *w, const char *name, struct index_dim *dim, int n,
                       uint64_t used) {
    for (int d = 0; d < n; d++)
        if (dim[d].whole >= 0 && (dim[d].axis = pick_axis(w, name, dim[d].extent, &used)) < 0)
            return false;
    return true;
}

static void read_whole(struct work *w, struct access *home, const struct index_dim *dim, int n) {
    for (int d = 0; d < n; d++) {
        if (dim[d].whole < 0) continue;
        for (int x = 0; x < w->p->naxes; x++) set(w, home, dim[d].whole, x, 0);
        set(w, home, dim[d].whole, dim[d].axis, dim[d].step);
        set(w, home, dim[d].whole, w->p->naxes, dim[d].lo);
    }
}

static uint64_t axes_of(const struct program *p, const struct access *a) {
    uint64_t out = 0;
    for (int x = 0; x < p->naxes; x++)
        if (access_varies(p, a, x)) out |= UINT64_C(1) << x;
    return out;
}

/* Room in the home memory for one more buffer, whose tiles may yet be padded. */
static bool has_room(const struct work *w, const int64_t *extent, int n, enum type type) {
    double bytes = 2 * (double)type_size(type);
    for (int i = 0; i < n; i++) bytes *= (double)extent[i];
    for (int b = 0; b < w->p->nbuffers; b++)
        bytes += (double)w->home[b].elements * (double)type_size(w->p->buffer[b].type);
    int64_t size = w->m->memory[w->m->home].size;
    return size < 0 || bytes <= (double)size;
}

bool pack_by_axes(struct work *w, int task, int operand, bool write) {
    struct task *t = &w->task[task];
    struct opnd *o = &t->op[operand];
    struct index_dim dim[MAX_DIMS];
    const struct access *acc = task_access(w, t, o, write);
    int stmt = t->stmt, old = acc->buffer, n = index_dims(w, t, o, acc, dim);
    if (n < 1 || (write && t->init >= 0 && w->p->stmt[t->init].dst.buffer != old)) return false;
    int64_t extent[MAX_DIMS];
    for (int i = 0; i < n; i++) extent[i] = dim[i].extent;
    if (!has_room(w, extent, n, w->p->buffer[old].type)) return false;
    int made = rewrite_buffer(w, unique_name(w, w->p->buffer[old].name, "by_axes"),
                              w->p->buffer[old].type, ROLE_TEMP, n, extent);
    if (made < 0 ||
        !walk_whole(w, w->p->buffer[made].name, dim, n, stmt_span(w, &w->p->stmt[stmt])))
        return false;
    t = &w->task[task];
    o = &t->op[operand];
    struct access *at = task_access(w, t, o, write);
    const struct access was = *at;
    struct access far = spread(w, t, made, dim, n), home = *at;
    home.coef =
        arena_copy(&w->p->arena, at->coef,
                   sizeof *at->coef * (size_t)w->p->buffer[old].ndims * (size_t)(w->p->naxes + 1));
    read_whole(w, &home, dim, n);
    uint64_t axes =
        (axes_of(w->p, &home) | axes_of(w->p, &far)) & ~recur_axes(w, &w->p->stmt[stmt]);
    if (write) {
        if (t->init < 0 && o->accumulates) {
            int in = rewrite_copy(w, far, home, axes);
            place_beside(w, in, stmt, true);
        }
        home.has_fill = false;
        place_beside(w, rewrite_copy(w, home, far, axes), stmt, false);
    } else {
        place_copy(w, rewrite_copy(w, far, home, axes), stmt, &home);
    }
    t = &w->task[task];
    o = &t->op[operand];
    struct access now = direct(w, stmt, made, &was, dim, n);
    if (write)
        w->p->stmt[stmt].dst = now;
    else
        rewrite_read(w, t, operand, now);
    if (write && t->init >= 0) {
        struct stmt *zero = &w->p->stmt[t->init]; /* by the axes of the sum, not by its own */
        zero->dst = direct(w, stmt, made, &was, dim, n);
        zero->axes = axes_of(w->p, &zero->dst);
    }
    for (int i = 0; i < n; i++)
        if (dim[i].alone) o->alone_dim[dim[i].x] = i;
    return true;
}

/* A statement that copies all elements of a buffer to another one; -1. */
static int copy_all(struct work *w, const char *name, int to, int from, struct access *src) {
    int axis[MAX_DIMS], n = w->p->buffer[from].ndims;
    uint64_t used = 0;
    for (int d = 0; d < n; d++)
        if ((axis[d] = pick_axis(w, name, w->p->buffer[from].extent[d], &used)) < 0) return -1;
    struct access dst = rewrite_access(w, to);
    *src = rewrite_access(w, from);
    for (int d = 0; d < n; d++) {
        set(w, &dst, d, axis[d], 1);
        set(w, src, d, axis[d], 1);
    }
    return rewrite_copy(w, dst, *src, used);
}

bool pack_argument(struct work *w, struct access *read, int stmt, const struct geom *g) {
    int old = read->buffer;
    struct buffer b = w->p->buffer[old];
    struct access src;
    const char *name = unique_name(w, b.name, "packed");
    if ((b.role != ROLE_IN && b.role != ROLE_CONST) || b.size || w->fallback < 0) return false;
    int made = rewrite_buffer(w, name, b.type, ROLE_TEMP, b.ndims, b.extent),
        copy = made < 0 ? -1 : copy_all(w, name, made, old, &src);
    if (copy < 0) return false;
    w->p->stmt[stmt].read[0].buffer = made;
    place_copy(w, copy, stmt, &src);
    home_pack(w, made, g);
    return true;
}

bool pack_whole(struct work *w, int argument, int temporary, bool load) {
    const char *name = w->p->buffer[temporary].name;
    struct access src;
    int in = load ? copy_all(w, name, temporary, argument, &src) : 0,
        out = copy_all(w, name, argument, temporary, &src);
    if (in < 0 || out < 0) return false;
    if (load) rewrite_order(w, in, -1);
    rewrite_order(w, out, -2);
    return true;
}

/* The last statement in order that writes the buffer, if all that do stand in one scope and nobody
 * reads it before; -1 otherwise. */
static int last_writer(const struct work *w, int buffer) {
    int last = -1;
    bool read = false;
    for (int k = 0; k < w->norder; k++) {
        const struct stmt *st = &w->p->stmt[w->order[k]];
        if (st->dst.buffer == buffer) {
            if (read || (last >= 0 && w->p->stmt[last].scope != st->scope)) return -1;
            last = w->order[k];
            continue;
        }
        read |= stmt_reads(st, buffer);
    }
    return last;
}

/* Those that say which elements a statement writes: of what it sums up to set them there are more.
 */
static uint64_t written_axes(const struct program *p, const struct stmt *st) {
    uint64_t out = axes_of(p, &st->dst);
    for (int k = 0; k < st->nwhere; k++)
        for (int x = 0; x < p->naxes; x++)
            if (st->where[k].coef[x]) out |= UINT64_C(1) << x;
    return out & st->axes;
}

/* Does a statement before s set the same elements? */
static bool set_before(const struct program *p, int s) {
    const struct stmt *st = &p->stmt[s];
    for (int k = 0; k < s; k++)
        if (p->stmt[k].combine == COMBINE_SET && !p->stmt[k].nwhere && !st->nwhere &&
            access_equal(p, &p->stmt[k].dst, &st->dst))
            return true;
    return false;
}

/* All elements that statements have set, after the last of them. */
static void copy_set(struct work *w, int to, int from, int last) {
    bool whole = written_whole(w, from, last) || stmt_writes_whole(w->p, &w->p->stmt[last]);
    for (int s = 0, n = w->p->nstmts; s < n; s++) {
        const struct stmt *st = &w->p->stmt[s];
        if (st->dst.buffer != from || st->combine != COMBINE_SET ||
            (whole ? !stmt_writes_whole(w->p, st) : set_before(w->p, s)))
            continue;
        struct access there = st->dst, here = st->dst;
        struct stmt made = *st;
        here.buffer = to;
        int copy = rewrite_copy(w, here, there, written_axes(w->p, &made));
        w->p->stmt[copy].where = made.where;
        w->p->stmt[copy].nwhere = made.nwhere;
        place_beside(w, copy, last, false);
        if (whole) return;
    }
}

bool pack_between(struct work *w, int old) {
    struct buffer b = w->p->buffer[old];
    int last = last_writer(w, old);
    if (w->fallback < 0 || last < 0 || b.size || !has_room(w, b.extent, b.ndims, b.type))
        return false;
    const char *name = unique_name(w, b.name, "made");
    int made = rewrite_buffer(w, name, b.type, ROLE_TEMP, b.ndims, b.extent);
    if (made < 0) return false;
    for (int s = 0; s < w->p->nstmts; s++) {
        struct stmt *st = &w->p->stmt[s];
        if (st->dst.buffer != old) continue;
        st->dst.buffer = made;
        stmt_reread(st, old, made);
    }
    copy_set(w, old, made, last);
    return true;
}
