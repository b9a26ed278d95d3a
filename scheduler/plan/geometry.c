/* Where an operand's elements are: coordinates inside a slot (needle tiles, then rows, then the
 * rest), and the same at home. */
#include "ir/number.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* The one dimension of the access that axis a moves in unit steps; -1: it moves none; -2: several,
 * or in larger steps. */
static int dim_of_axis(const struct program *p, const struct access *acc, int a) {
    int64_t by;
    int dim = access_dim(p, acc, a, &by);
    return dim >= 0 && by != 1 ? -2 : dim;
}

/* Do tiles along the dimension begin at multiples of `block` of an array that holds all of them?
 * One that ends inside a block, with padding behind it, is a tile that begins anywhere. */
static bool blockable(const struct work *w, const struct task *t, const struct access *acc, int dim,
                      int a, int64_t block) {
    const struct program *p = w->p;
    int64_t lo, hi;
    access_range(p, &p->stmt[t->stmt], acc, dim, &lo, &hi);
    if (lo < 0 || hi >= p->buffer[acc->buffer].extent[dim]) return false;
    if (access_coef(p, acc, dim, p->naxes) % block) return false;
    for (int b = 0; b < p->naxes; b++)
        if (b != a && (stmt_span(w, &p->stmt[t->stmt]) >> b & 1) &&
            access_coef(p, acc, dim, b) % block)
            return false;
    return true;
}

static bool tail_is_padding(const struct work *w, const struct task *t, int x) {
    int a = t->axis[x];
    if (!needle_reduces(t->needle, x)) return false;
    if (a < 0) return t->needle->lo[x] > 1;
    return w->p->axis[a].extent %
               (t->needle->ranged[x] < 0 ? t->needle->hi[x] : t->needle->step[x]) !=
           0;
}

/* Of so many elements, as far as the next tile that may begin: for the task's instruction, or NULL
 * for moves. */
static int64_t tile_words(const struct work *w, const struct task *t, const struct opnd *o,
                          int64_t elements, int64_t size) {
    if (o->where != IN_LOCAL) return elements;
    const struct memory *m = &w->m->memory[o->memory];
    int64_t word = o->decl->align ? m->word : m->align;
    word = word < 1 ? 1 : word;
    if (t) word = least_multiple(word, operand_align(w->m, o->decl, o->memory, t->needle->bound));
    int64_t bytes = round_up(elements * size, word);
    return bytes % size ? elements : bytes / size;
}

/* Values of the needle's axis that the digit runs through: a size that nothing walks is the least.
 */
static int64_t digit_extent(const struct task *t, const struct opnd *o, const struct digit *dg) {
    bool alone = t->axis[dg->x] < 0 && o->alone_dim[dg->x] < 0 && dg->weight == 1;
    if (!alone || t->needle->ranged[dg->x] < 0 || t->needle->lo[dg->x] >= dg->extent)
        return dg->extent;
    return t->needle->lo[dg->x] > 1 ? t->needle->lo[dg->x] : 1;
}

/* The dimension that axis x of the needle walks, in steps of *by elements; negative: none, or
 * several. */
static int stepped_dim(const struct work *w, const struct task *t, const struct access *acc, int x,
                       int64_t *by) {
    return t->axis[x] < 0 ? -1 : access_dim(w->p, acc, t->axis[x], by);
}

/* Registers take a tile from any place of an unblocked home, and other memories from a plain copy:
 * one at a time, so that no two share elements (loose_alone). */
static bool may_begin_anywhere(const struct work *w, const struct task *t, const struct opnd *o,
                               const struct digit *dg) {
    return o->where == IN_LOCAL && !o->writes &&
           (graph_is_static(w->m, o->memory) || (o->plain && !o->form.fragment)) &&
           !needle_reduces(t->needle, dg->x) && dg->weight == 1;
}

/* The dimension of the buffer that the digit's axis walks, as dim_of_axis says; in larger steps
 * where tiles may begin anywhere, since a move may take elements that are so far apart. */
static int dim_of_digit(const struct work *w, const struct task *t, struct opnd *o,
                        const struct access *acc, const struct digit *dg) {
    int dim = dim_of_axis(w->p, acc, t->axis[dg->x]);
    int64_t by = 1;
    if (dim != -2 || !may_begin_anywhere(w, t, o, dg) || !graph_is_static(w->m, o->memory))
        return dim;
    dim = stepped_dim(w, t, acc, dg->x, &by);
    if (dim < 0 || by < 1) return -2;
    o->geom.step[dim] = by;
    return dim;
}

static bool place_digit(const struct work *w, const struct task *t, struct opnd *o,
                        const struct access *acc, const struct digit *dg, bool rows) {
    struct geom *g = &o->geom;
    int a = t->axis[dg->x], dim = -1;
    if (a >= 0)
        dim = dim_of_digit(w, t, o, acc, dg);
    else if (o->alone_dim[dg->x] >= 0 && !o->single)
        dim = o->alone_dim[dg->x];
    if (dim == -2 ||
        (dim < 0 && needle_reduces(t->needle, dg->x) && t->needle->hi[dg->x] > 1 && a < 0))
        return false;
    if (dim < 0 && a >= 0 && needle_reduces(t->needle, dg->x) && o->writes) return false;
    if (o->where == IN_HOME && (o->form.fragment || o->form.swizzle)) return false;
    if (o->where == IN_HOME && t->needle->lo[dg->x] < t->needle->hi[dg->x]) return dg->weight == 1;
    int64_t extent = digit_extent(t, o, dg);
    if (extent < dg->extent && extent == 1) return true;
    if (g->n + MAX_DIMS >= MAX_COORDS) return false;
    if (dim >= 0) {
        if (g->block[dim] != dg->weight) return false;
        g->block[dim] *= extent;
        if (a >= 0 && extent > 1 && !rows) t->needle->whole[dg->x] = true;
        if (t->needle->lo[dg->x] < t->needle->hi[dg->x] &&
            needs_exact(w->edges, t->needle->in, o->number))
            g->exact |= UINT64_C(1) << dim;
    }
    g->stride[g->n] = dg->stride;
    g->at[g->n++] = (struct coord){dim, dg->weight, extent, o->single && dim < 0 && a < 0};
    o->zero_tail |= tail_is_padding(w, t, dg->x);
    return true;
}

/* An axis that goes on in rows of `weight` elements, of which a needle takes as many as there are.
 */
static bool goes_on_in_rows(const struct work *w, const struct task *t, const struct opnd *o,
                            const struct digit *last) {
    const struct needle *nd = t->needle;
    return nd->ranged[last->x] >= 0 && nd->step[last->x] == last->weight &&
           nd->lo[last->x] <= last->weight && t->axis[last->x] >= 0 &&
           !graph_is_static(w->m, o->memory);
}

/* Does the axis of digit i go on at a distance that the schedule chooses? */
static bool goes_on_apart(const struct form *f, int i) {
    for (int k = i + 1; k < f->n; k++)
        if (f->digit[k].x == f->digit[i].x && f->digit[k].free_stride >= 0) return true;
    return false;
}

/* The digit along which needles may start anywhere: outermost of those with given strides, whole
 * tiles apart. */
static int row_digit(const struct work *w, const struct task *t, const struct opnd *o,
                     int64_t size) {
    const struct form *f = &o->form;
    int64_t span = 1;
    int n = f->n;
    while (n > 0 && f->digit[n - 1].free_stride >= 0) n--;
    if (o->where != IN_LOCAL || !n) return -1;
    const struct digit *last = &f->digit[n - 1];
    if (goes_on_apart(f, n - 1)) return -1;
    for (int i = 0; i + 1 < n; i++) {
        if (f->digit[i].x == last->x && !goes_on_in_rows(w, t, o, last)) return -1;
        span += (f->digit[i].extent - 1) * f->digit[i].stride;
    }
    return last->stride == tile_words(w, t, o, span, size) ? n - 1 : -1;
}

/* Axes of fixed extents reach past no end. */
static bool ends_even(const struct work *w, const struct task *t, int x) {
    const struct needle *nd = t->needle;
    return t->axis[x] >= 0 &&
           w->p->axis[t->axis[x]].extent % (nd->ranged[x] < 0 ? nd->hi[x] : nd->step[x]) == 0;
}

/* Does the needle take as many rows as there are? Else they are a block like others, padded. */
static bool rows_end(const struct work *w, const struct task *t, int x, int64_t weight) {
    const struct needle *nd = t->needle;
    return ends_even(w, t, x) || nd->hi[x] == 1 ||
           (nd->ranged[x] >= 0 && nd->lo[x] <= weight && nd->step[x] <= weight);
}

/* Windows inside the instruction (rows x + s): all digits from the first that are whole tiles apart
 * walk one dimension of the buffer, as far for each step as in the needle. Their mask; 0: none. */
static uint64_t window_digits(const struct work *w, const struct task *t, const struct opnd *o,
                              const struct access *acc, int64_t size, int *dim) {
    const struct form *f = &o->form;
    uint64_t rows = 0;
    int64_t span = 1, tile = 0, by = 0;
    for (int i = 0; i < f->n && !tile; i++) { /* the least stride that begins a tile */
        int64_t below = 1, stride = f->digit[i].stride;
        if (f->digit[i].free_stride >= 0) continue;
        for (int k = 0; k < f->n; k++)
            if (f->digit[k].free_stride < 0 && f->digit[k].stride < stride)
                below += (f->digit[k].extent - 1) * f->digit[k].stride;
        if (stride == tile_words(w, t, o, below, size)) tile = stride, span = below;
    }
    int found = -1;
    for (int i = 0; i < f->n && tile; i++) {
        const struct digit *dg = &f->digit[i];
        if (dg->free_stride >= 0 || dg->stride < span) continue;
        int d = stepped_dim(w, t, acc, dg->x, &by);
        if (d < 0 || (found >= 0 && d != found) || by * tile != dg->stride || dg->weight != 1 ||
            !ends_even(w, t, dg->x))
            return 0;
        found = d;
        rows |= UINT64_C(1) << i;
    }
    if (!(rows & (rows - 1))) return 0;
    *dim = found;
    return rows;
}

/* Axes that go the same chosen distance (y*2+r) walk rows of one dimension, as far as they say. */
static bool walks_alike(const struct work *w, const struct task *t, const struct opnd *o,
                        const struct access *acc, const struct digit *dg, int dim, int64_t by) {
    for (int i = 0; i < o->form.n; i++) {
        const struct digit *k = &o->form.digit[i];
        int64_t step;
        if (k->free_stride != dg->free_stride || t->axis[k->x] < 0) continue;
        if (stepped_dim(w, t, acc, k->x, &step) != dim ||
            step * k->weight * dg->times != by * dg->weight * k->times)
            return false;
    }
    return by * dg->weight % dg->times == 0;
}

/* Where needles take a whole number of steps of a size, each step is a tile and the steps are its
 * rows, so that needles take as many of them as there are: if a word holds several elements, or the
 * axis ends inside of a step. */
static void rows_of_steps(const struct work *w, const struct task *t, struct opnd *o) {
    struct form *f = &o->form;
    int n = f->n;
    while (n > 0 && f->digit[n - 1].free_stride >= 0) n--;
    if (o->where != IN_LOCAL || f->fragment || !n || f->n == MAX_DIGITS) return;
    struct digit *last = &f->digit[n - 1], rows = *last;
    int64_t align = w->m->memory[o->memory].align, size = (int64_t)type_size(o->decl->type),
            step = t->needle->step[last->x];
    if (t->needle->ranged[last->x] < 0 || t->axis[last->x] < 0 || last->weight != 1 ||
        goes_on_apart(f, n - 1) || t->needle->lo[last->x] > step || last->extent <= step ||
        last->extent % step || last->stride * step * size % align ||
        (last->stride * size % align == 0 && ends_even(w, t, last->x)))
        return;
    memmove(last + 2, last + 1, sizeof *last * (size_t)(f->n++ - n));
    rows.weight = step;
    rows.extent = last->extent / step;
    rows.stride *= step;
    last->extent = step;
    last[1] = rows;
}

/* Of an axis that goes a chosen distance after each `weight` elements: they are a block of the
 * dimension, and the copy has as many blocks as the needle's last tile reaches. */
static bool blocks_apart(const struct work *w, const struct task *t, const struct opnd *o,
                         const struct digit *dg, int dim, int64_t by) {
    const struct needle *nd = t->needle;
    const struct geom *g = &o->geom;
    int a = t->axis[dg->x];
    if (a < 0 || by != 1 || dg->times != 1 || g->block[dim] != dg->weight ||
        g->grain[dim] != dg->weight)
        return false;
    if (nd->ranged[dg->x] >= 0) return dg->weight % nd->step[dg->x] == 0;
    return round_up(w->p->axis[a].extent, dg->weight) % nd->hi[dg->x] == 0;
}

/* Distances that the schedule chooses in a local memory are those between a slot's rows. Where the
 * axis ends inside of a step, the rows go on to its end. */
static bool free_digits_walk(const struct work *w, const struct task *t, struct opnd *o,
                             const struct access *acc, int row_dim) {
    for (int i = 0; i < o->form.n && o->where == IN_LOCAL; i++) {
        const struct digit *dg = &o->form.digit[i];
        int64_t by;
        if (dg->free_stride < 0) continue;
        if (t->axis[dg->x] < 0 && t->needle->lo[dg->x] == 1) continue;
        int d = stepped_dim(w, t, acc, dg->x, &by);
        if (d < 0 || d == row_dim || !walks_alike(w, t, o, acc, dg, d, by)) return false;
        if (dg->weight > 1) {
            if (!blocks_apart(w, t, o, dg, d, by)) return false;
            continue;
        }
        if (o->geom.block[d] != 1) return false;
        if (ends_even(w, t, dg->x)) continue;
        int64_t step = t->needle->ranged[dg->x] < 0 ? t->needle->hi[dg->x] : t->needle->step[dg->x];
        if (by != 1 || dg->times != 1 || t->axis[dg->x] < 0 || t->needle->lo[dg->x] > step ||
            !blockable(w, t, acc, d, t->axis[dg->x], step))
            return false;
        o->geom.block[d] = o->geom.grain[d] = step;
        o->geom.even |= UINT64_C(1) << d;
    }
    return true;
}

/* Where two digits that are not rows of one window reach the same elements, no slot serves them. */
static bool digits_apart(const struct opnd *o, uint64_t rows) {
    const struct form *f = &o->form;
    for (int i = 0; i < f->n && o->where == IN_LOCAL && !f->fragment; i++)
        for (int k = 0; k < f->n; k++) {
            const struct digit *a = &f->digit[i], *b = &f->digit[k];
            bool both = rows >> i & rows >> k & 1;
            if (i == k || both || a->free_stride >= 0 || b->free_stride >= 0) continue;
            if (a->stride <= b->stride && a->extent > 1 && b->extent > 1 &&
                (a->extent - 1) * a->stride >= b->stride)
                return false;
        }
    return true;
}

/* Rows may be longer than what the needle takes of them: 64 elements and 16. The dimension that
 * walks the inner digit fills them: its blocks are longer than the needle; not where a state says
 * how long the rows are that the needle takes, nor where it may not begin inside of them. Strides
 * leave such gaps, and so do rows at a distance that the schedule chooses, where moves take more
 * at once than the needle does. */
static void fill_gaps(const struct work *w, const struct task *t, const struct opnd *o,
                      struct form *f) {
    int64_t align = operand_align(w->m, o->decl, o->memory, t->needle->bound),
            size = (int64_t)type_size(o->decl->type);
    *f = o->form;
    if (o->where != IN_LOCAL || f->fragment || needs_exact(w->edges, t->needle->in, o->number))
        return;
    bool blocks = !o->plain && !graph_is_static(w->m, o->memory);
    for (int i = 0; i < f->n; i++) {
        struct digit *in = &f->digit[i];
        const struct digit *out = i + 1 < f->n ? &f->digit[i + 1] : NULL;
        bool given = out && out->free_stride < 0;
        int64_t dense = in->stride * in->extent, row = blocks ? o->quantum : 0;
        if (given) row = out->stride;
        bool last = t->axis[in->x] >= 0 && t->needle->ranged[in->x] < 0;
        for (int k = i + 1; k < f->n; k++) last &= f->digit[k].x != in->x;
        if (in->free_stride >= 0 || dense < 1) return;
        if (last && row > dense && row % dense == 0 && dense * size % align == 0)
            in->extent *= row / dense;
    }
}

static bool reduction_moves(const struct work *w, const struct task *t, const struct access *acc,
                            int dim) {
    for (int a = 0; a < w->p->naxes; a++)
        if ((t->reductions >> a & 1) && access_coef(w->p, acc, dim, a)) return true;
    return false;
}

static bool only_reductions_move(const struct work *w, const struct task *t,
                                 const struct access *acc, int dim) {
    for (int a = 0; a < w->p->naxes; a++)
        if (w->p->axis[a].extent > 1 && !(t->reductions >> a & 1) && access_coef(w->p, acc, dim, a))
            return false;
    return reduction_moves(w, t, acc, dim);
}

static bool blocked_alone(const struct work *w, const struct task *t, const struct access *acc,
                          int dim, int64_t block) {
    int movers = 0;
    for (int a = 0; a < w->p->naxes; a++)
        movers += (w->p->stmt[t->stmt].axes >> a & 1) && access_coef(w->p, acc, dim, a) != 0;
    return movers == 1 && access_coef(w->p, acc, dim, w->p->naxes) % block == 0;
}

/* From the last dimension to the first; in panels what reductions walk lies innermost. Of constants
 * that moves fill in pieces it lies outermost: a piece is together at home and in its slot. What
 * others make keeps one order, so that it passes on as it is. */
static void outer_coords(const struct work *w, const struct task *t, struct opnd *o,
                         const struct access *acc, bool rows, int row_dim) {
    struct geom *g = &o->geom;
    bool panels = o->where != IN_LOCAL || graph_is_static(w->m, o->memory),
         sorts = !rows && (panels || (!o->writes && buffer_prepared(w, acc->buffer)));
    for (int pass = 0; pass < 2; pass++)
        for (int d = w->p->buffer[acc->buffer].ndims - 1; d >= 0; d--) {
            bool sums = panels ? reduction_moves(w, t, acc, d) : only_reductions_move(w, t, acc, d),
                 last = sorts && sums != panels;
            if ((!rows || d != row_dim) && last == (pass == 1))
                g->at[g->n++] = (struct coord){d, g->even >> d & 1 ? 1 : g->block[d], 0, false};
        }
}

/* The elements behind the axis's end in its last tile: where the buffer has some there, padding may
 * neither be written to them nor taken for zeros. False: they lie between others that are used. */
static bool mark_live(const struct work *w, const struct task *t, struct opnd *o,
                      const struct access *acc) {
    const struct program *p = w->p;
    const struct stmt *st = &p->stmt[t->stmt];
    for (int x = 0; x < t->needle->nx; x++) {
        int a = t->axis[x], dim = a >= 0 ? dim_of_axis(p, acc, a) : -1;
        if (dim < 0 || (o->geom.loose >> dim & 1) || !(o->writes || needle_reduces(t->needle, x)))
            continue;
        if (p->axis[a].extent % o->geom.block[dim] == 0 ||
            access_coef(p, acc, dim, p->naxes) + p->axis[a].extent >=
                p->buffer[acc->buffer].extent[dim])
            continue;
        for (int b = 0; b < p->naxes; b++)
            if (b != a && (stmt_span(w, st) >> b & 1) && p->axis[b].extent > 1 &&
                access_coef(p, acc, dim, b))
                return false;
        o->geom.live |= UINT64_C(1) << dim;
    }
    return true;
}

/* Needles take one element, or as many as there are from any place on, but home and the memories on
 * the way are aligned to several: copies hold blocks of so many, in which needles begin anywhere.
 */
static void blocks_of_quantum(const struct work *w, const struct task *t, const struct opnd *o,
                              const struct access *acc, struct geom *g) {
    struct coord *c = &g->at[g->ninner];
    int64_t lo, hi;
    if (o->quantum < 2 || o->plain || g->span > 1 || g->n == g->ninner || c->dim < 0 ||
        c->div > 1 || g->block[c->dim] > 1 || g->n + 1 == MAX_COORDS ||
        access_coef(w->p, acc, c->dim, w->p->naxes) % o->quantum)
        return;
    access_range(w->p, &w->p->stmt[t->stmt], acc, c->dim, &lo, &hi);
    int64_t size = (int64_t)type_size(o->decl->type), tile = tile_words(w, t, o, o->quantum, size);
    if (tile_words(w, t, o, 1, size) > 1) return; /* a needle may not begin anywhere there */
    if (lo < 0 || hi >= w->p->buffer[acc->buffer].extent[c->dim] || tile != o->quantum) return;
    int dim = c->dim;
    c->div = g->block[dim] = o->quantum;
    memmove(c + 1, c, sizeof *c * (size_t)(g->n++ - g->ninner));
    g->stride[g->ninner++] = 1;
    *c = (struct coord){dim, 1, o->quantum, false};
    if (g->row >= 0) g->row++;
    g->span = g->tile = tile;
}

/* Digits of the operand's form whose elements lie in rows outside of the tile, and what moves the
 * rows. */
struct rows {
    uint64_t digits; /* 0: there are no rows */
    int dim;         /* that they walk; -1: all are one, which repeats */
    int axis;        /* of the needle, where they are blocks of it; -1 */
    int64_t block;   /* of the axis, in each of them */
};

static void geom_begin(const struct buffer *b, const struct opnd *o, struct geom *g) {
    *g = (struct geom){.row = -1,
                       .repeat_axis = -1,
                       .fragment = o->form.fragment,
                       .swizzle = o->form.swizzle,
                       .plain_home = o->plain,
                       .first = o->order,
                       .spaced = o->spaced,
                       .turned = o->turned};
    for (int d = 0; d < b->ndims; d++) g->block[d] = g->grain[d] = g->step[d] = 1;
}

static bool walks_forward(const struct work *w, const struct task *t, const struct access *acc) {
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        for (int a = 0; a < w->p->naxes; a++)
            if ((w->p->stmt[t->stmt].axes >> a & 1) && access_coef(w->p, acc, d, a) < 0)
                return false;
    return true;
}

/* One digit of the form. False: its axis moves several dimensions. */
static bool find_row(struct work *w, const struct task *t, struct opnd *o, const struct access *acc,
                     int64_t size, struct rows *r) {
    int row = row_digit(w, t, o, size);
    if (row < 0 || !rows_end(w, t, o->form.digit[row].x, o->form.digit[row].weight)) return true;
    int x = o->form.digit[row].x, a = t->axis[x];
    int64_t weight = o->form.digit[row].weight;
    r->dim = a >= 0 ? dim_of_axis(w->p, acc, a) : o->alone_dim[x];
    if (r->dim == -2) return false;
    if (r->dim >= 0) {
        o->zero_tail |= tail_is_padding(w, t, x);
        if (weight > 1) r->axis = x;
    } else if (weight == 1 && a >= 0 && !o->writes && t->needle->lo[x] < t->needle->hi[x]) {
        o->geom.repeat_axis = a;
    } else {
        return true;
    }
    r->digits = UINT64_C(1) << row;
    return true;
}

static bool find_rows(struct work *w, const struct task *t, struct opnd *o,
                      const struct access *acc, const struct form *form, int64_t size,
                      struct rows *r) {
    *r = (struct rows){.dim = -1, .axis = -1, .block = 1};
    if (o->where == IN_LOCAL && !o->writes && !form->fragment)
        r->digits = window_digits(w, t, o, acc, size, &r->dim);
    return digits_apart(o, r->digits) && (r->digits || find_row(w, t, o, acc, size, r));
}

/* Rows in blocks that are shorter than what moves take at once: several of them, one after the
 * other. */
static void widen_rows(const struct opnd *o, const struct rows *r, struct form *form) {
    if (r->axis < 0) return;
    const struct digit *row = &o->form.digit[__builtin_ctzll(r->digits)];
    if (o->quantum > row->weight && o->quantum % row->weight == 0 && form->n < MAX_DIGITS)
        form->digit[form->n++] =
            (struct digit){r->axis, row->weight, o->quantum / row->weight, row->stride, -1, 1};
}

/* Coordinates of the tile: the digits that are no rows; *span: elements from its first to its last.
 */
static bool place_digits(struct work *w, const struct task *t, struct opnd *o,
                         const struct access *acc, const struct form *form, struct rows *r,
                         int64_t *span) {
    struct geom *g = &o->geom;
    *span = 1;
    for (int i = 0; i < form->n; i++) {
        const struct digit *dg = &form->digit[i];
        if (r->digits >> i & 1 || dg->free_stride >= 0) continue;
        int n = g->n;
        if (!place_digit(w, t, o, acc, dg, dg->x == r->axis)) return false;
        if (i < o->form.n && g->n > n && g->at[n].dim >= 0)
            g->grain[g->at[n].dim] *= digit_extent(t, o, &o->form.digit[i]);
        *span += (digit_extent(t, o, dg) - 1) * dg->stride;
    }
    if (r->axis >= 0) r->block = g->block[r->dim];
    if (form->fragment) *span = form->share;
    return free_digits_walk(w, t, o, acc, r->dim);
}

/* Are the dimensions in blocks cut where the needle's digits are, or may tiles begin anywhere in
 * them? */
static bool blocks_hold(struct work *w, const struct task *t, struct opnd *o,
                        const struct access *acc, const struct rows *r) {
    struct geom *g = &o->geom;
    for (int i = 0; i < o->form.n; i++) {
        const struct digit *dg = &o->form.digit[i];
        if (r->digits >> i & 1) continue;
        int a = t->axis[dg->x], dim = a >= 0 ? dim_of_digit(w, t, o, acc, dg) : -1;
        if (dim == -2) return false;
        if (dim < 0 || g->block[dim] == 1) continue;
        if (dim == r->dim && dg->x != r->axis) return false;
        if (g->step[dim] == 1 && blockable(w, t, acc, dim, a, g->grain[dim])) continue;
        if (dg->extent != g->block[dim] || !may_begin_anywhere(w, t, o, dg)) return false;
        g->loose |= UINT64_C(1) << dim;
        int64_t tail = w->p->axis[a].extent % dg->extent;
        if (!tail || !(o->form.fragment || o->whole)) continue;
        g->room[dim] = (dg->extent - tail) * access_coef(w->p, acc, dim, a);
        g->walks[dim] = a;
    }
    if (!mark_live(w, t, o, acc)) return false;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims;
         d++) /* needles may start inside a block, copies may not */
        if (g->grain[d] != g->block[d] && !blocked_alone(w, t, acc, d, g->block[d])) return false;
    return true;
}

/* size: bytes of an element in the operand's memory. */
static bool make(struct work *w, const struct task *t, struct opnd *o, int64_t size) {
    const struct access *acc = task_access(w, t, o, o->writes);
    struct geom *g = &o->geom;
    struct form form;
    struct rows r;
    int64_t span;
    geom_begin(&w->p->buffer[acc->buffer], o, g);
    o->zero_tail = false;
    rows_of_steps(w, t, o);
    fill_gaps(w, t, o, &form);
    if (!walks_forward(w, t, acc) || !find_rows(w, t, o, acc, &form, size, &r)) return false;
    widen_rows(o, &r, &form);
    if (!place_digits(w, t, o, acc, &form, &r, &span) || !blocks_hold(w, t, o, acc, &r))
        return false;
    g->ninner = g->n;
    g->span = span;
    g->tile = tile_words(w, t, o, span, size);
    if (r.digits) {
        g->row = g->n;
        g->at[g->n++] = (struct coord){r.dim, r.block, 0, false};
    }
    outer_coords(w, t, o, acc, r.digits != 0, r.dim);
    if (o->where == IN_LOCAL && !form.fragment) blocks_of_quantum(w, t, o, acc, g);
    return true;
}

/* ---- what is changed in place ---- */

static int64_t stored_size(const struct work *w, const struct access *acc) {
    return (int64_t)type_size(w->p->buffer[acc->buffer].type);
}

/* What is read may be a slice of another buffer, such as a step's row. */
static bool make_source(struct work *w, const struct task *t, struct opnd *o) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    o->source = NULL;
    if (!o->writes || o->read < 0 || o->where != IN_LOCAL ||
        access_same_index(w->p, &st->dst, &st->read[o->read]))
        return true;
    struct opnd *as = arena_copy(w->arena, o, sizeof *o);
    as->writes = false;
    for (int x = 0; x < MAX_NEEDLE; x++) as->alone_dim[x] = -1; /* these are the result's */
    if (!make(w, t, as, stored_size(w, &st->dst)) ||
        !slot_alike(w, t, &o->geom, &st->dst, &as->geom, &st->read[o->read]))
        return false;
    o->source = as;
    return true;
}

bool geom_alike(struct work *w, const struct task *t, const struct opnd *made,
                const struct task *by, struct opnd *as) {
    const struct access *mine = &w->p->stmt[t->stmt].dst, *its = &w->p->stmt[by->stmt].dst;
    return make(w, by, as, stored_size(w, mine)) &&
           slot_alike(w, t, &made->geom, mine, &as->geom, its);
}

/* Instructions name each register that they read, so a window that goes in steps takes no registers
 * for what lies between them. */
static void mark_sparse(const struct work *w, const struct access *acc, struct opnd *o) {
    struct geom *g = &o->geom;
    if (o->where != IN_LOCAL || o->writes || o->form.fragment || !graph_is_static(w->m, o->memory))
        return;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        if (g->block[d] == 1 && !((g->loose | g->even | g->exact) >> d & 1) &&
            (g->row < 0 || g->at[g->row].dim != d))
            g->sparse |= UINT64_C(1) << d;
}

bool geom_make(struct work *w, const struct task *t, struct opnd *o) {
    const struct access *acc = task_access(w, t, o, o->writes);
    if (!make(w, t, o, stored_size(w, acc)) || !make_source(w, t, o)) return false;
    mark_sparse(w, acc, o);
    return true;
}

void geom_tile(const struct work *w, struct opnd *o) {
    o->geom.tile = tile_words(w, NULL, o, o->geom.span, (int64_t)type_size(o->decl->type));
}
