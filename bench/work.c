/* Recognition by accesses: a fill with 0 and one sum of products of two arrays, all row-major; of
 * recurrent cells by what their arrays are and which of them are multiplied. */
#include "bench/work.h"

#include <string.h>

/* One index of an access: Σ coef * axis + constant, axes of extent 1 left out. */
struct row {
    int axis[3];
    int64_t coef[3], constant;
    int n; /* 4: more than three */
};

struct shape {
    const struct program *p;
    const struct access *dst, *x, *y;
};

static struct row row_of(const struct program *p, const struct access *a, int dim) {
    struct row r = {.constant = access_coef(p, a, dim, p->naxes)};
    for (int axis = 0; axis < p->naxes; axis++) {
        int64_t coef = access_coef(p, a, dim, axis);
        if (!coef || p->axis[axis].extent == 1) continue;
        if (r.n < 3) r.axis[r.n] = axis, r.coef[r.n] = coef;
        r.n++;
    }
    return r;
}

/* The axis that alone is this index and runs over the whole dimension. -1: the dimension is one
 * element; -2: something else. */
static int whole_axis(const struct program *p, const struct access *a, int dim) {
    struct row r = row_of(p, a, dim);
    int64_t extent = p->buffer[a->buffer].extent[dim];
    if (r.constant != 0 || r.n > 1) return -2;
    if (r.n == 0) return extent == 1 ? -1 : -2;
    return r.coef[0] == 1 && p->axis[r.axis[0]].extent == extent ? r.axis[0] : -2;
}

static int64_t axis_extent(const struct program *p, int axis) {
    return axis < 0 ? 1 : p->axis[axis].extent;
}

static bool is_zero_fill(const struct program *p, const struct stmt *s, int buffer) {
    const struct op *o = &s->op[s->nops - 1];
    if (s->combine != COMBINE_SET || s->dst.buffer != buffer || o->code != OP_LITERAL) return false;
    return stmt_points(p, s) == p->buffer[buffer].elements &&
           (type_is_float(o->type) ? o->value.f == 0 : o->value.i == 0);
}

/* "C = 0; C += x * y" and nothing else; casts around the reads are the widening of the sum. */
static bool is_product(const struct program *p, struct shape *out) {
    if (p->nitems != 2 || p->nstmts != 2 || p->item[0].kind != ITEM_STMT ||
        p->item[1].kind != ITEM_STMT)
        return false;
    const struct stmt *s = &p->stmt[p->item[1].stmt];
    if (!stmt_is_mac(p, s) || s->nreads != 2 || s->nwhere) return false;
    const struct op *o = &s->op[s->nops - 1];
    if (o->code != OP_MUL || !is_zero_fill(p, &p->stmt[p->item[0].stmt], s->dst.buffer))
        return false;
    const struct access *read[2];
    for (int k = 0; k < 2; k++) {
        const struct op *x = &s->op[o->arg[k]];
        while (x->code == OP_CAST) x = &s->op[x->arg[0]];
        if (x->code != OP_READ) return false;
        read[k] = &s->read[x->read];
    }
    *out = (struct shape){p, &s->dst, read[0], read[1]};
    return p->buffer[s->dst.buffer].role == ROLE_OUT && read[0]->buffer != read[1]->buffer;
}

static void set_operands(struct work *w, const struct program *p, int a, int b, int c) {
    w->a = a, w->b = b, w->c = c;
    w->type_a = p->buffer[a].type, w->type_b = p->buffer[b].type, w->type_c = p->buffer[c].type;
    w->a_constant = p->buffer[a].role == ROLE_CONST;
    w->b_constant = p->buffer[b].role == ROLE_CONST;
}

/* C[i,j] += A[i,k] B[k,j], each of A and B possibly transposed. Where axes of extent 1 leave it
 * open, either reading is right. */
static bool as_gemm(const struct shape *s, struct work *w) {
    const struct program *p = s->p;
    const struct access *a = s->x, *b = s->y;
    int c[2], x[2], y[2];
    if (p->buffer[s->dst->buffer].ndims != 2 || p->buffer[a->buffer].ndims != 2 ||
        p->buffer[b->buffer].ndims != 2)
        return false;
    for (int d = 0; d < 2; d++) {
        c[d] = whole_axis(p, s->dst, d), x[d] = whole_axis(p, a, d), y[d] = whole_axis(p, b, d);
        if (c[d] == -2 || x[d] == -2 || y[d] == -2) return false;
    }
    for (int swap = 0; swap < 2; swap++) {
        const int *l = swap ? y : x, *r = swap ? x : y;
        for (int form = 0; form < 4; form++) {
            int ta = form & 1, tb = form >> 1, i = l[ta], k = l[!ta];
            if (i != c[0] || r[tb] != k || r[!tb] != c[1] || (k >= 0 && (k == c[0] || k == c[1])) ||
                (c[0] >= 0 && c[0] == c[1]))
                continue;
            w->kind = WORK_GEMM;
            w->a_transposed = ta, w->b_transposed = tb;
            w->m = axis_extent(p, c[0]), w->n = axis_extent(p, c[1]), w->k = axis_extent(p, k);
            set_operands(w, p, swap ? b->buffer : a->buffer, swap ? a->buffer : b->buffer,
                         s->dst->buffer);
            return true;
        }
    }
    return false;
}

/* stride * out + dilation * tap - pad */
static bool as_window(const struct shape *s, const struct access *image,
                      const struct access *filter, int of_image, int of_filter, int of_result,
                      int d, struct work *w) {
    const struct program *p = s->p;
    struct row r = row_of(p, image, of_image);
    int out = whole_axis(p, s->dst, of_result), tap = whole_axis(p, filter, of_filter);
    if (out == -2 || tap == -2 || (out >= 0 && out == tap)) return false;
    w->stride[d] = w->dilation[d] = 1;
    w->pad[d] = -r.constant;
    for (int t = 0; t < r.n; t++) {
        if (r.n > 2 || (r.axis[t] != out && r.axis[t] != tap)) return false;
        *(r.axis[t] == out ? &w->stride[d] : &w->dilation[d]) = r.coef[t];
    }
    if (r.n != (out >= 0) + (tap >= 0)) return false;
    w->image[d] = p->buffer[image->buffer].extent[of_image];
    w->result[d] = axis_extent(p, out);
    w->filter[d] = axis_extent(p, tap);
    return w->pad[d] >= 0 && w->stride[d] > 0 && w->dilation[d] > 0;
}

/* image [n, g, c, y, x], filter [g, k, c, r, s], result [n, g, k, p, q]; without g one group. */
static bool as_conv(const struct shape *s, const struct access *image, const struct access *filter,
                    struct work *w) {
    const struct program *p = s->p;
    const struct buffer *i = &p->buffer[image->buffer], *f = &p->buffer[filter->buffer];
    int g = i->ndims == 5;
    if (i->ndims < 4 || i->ndims > 5 || f->ndims != i->ndims ||
        p->buffer[s->dst->buffer].ndims != i->ndims)
        return false;
    int batch = whole_axis(p, image, 0), c = whole_axis(p, image, g + 1),
        k = whole_axis(p, s->dst, g + 1), group = g ? whole_axis(p, image, 1) : -1;
    if (batch == -2 || c == -2 || k == -2 || group == -2) return false;
    if (whole_axis(p, s->dst, 0) != batch || whole_axis(p, filter, g) != k ||
        whole_axis(p, filter, g + 1) != c || (c >= 0 && c == k))
        return false;
    if (g && (whole_axis(p, s->dst, 1) != group || whole_axis(p, filter, 0) != group)) return false;
    for (int d = 0; d < 2; d++)
        if (!as_window(s, image, filter, g + 2 + d, g + 2 + d, g + 2 + d, d, w)) return false;
    if ((w->pad[0] || w->pad[1]) && !image->has_fill) return false;
    if (image->has_fill && (type_is_float(i->type) ? image->fill.f != 0 : image->fill.i != 0))
        return false;
    w->kind = WORK_CONV;
    w->batch = axis_extent(p, batch), w->groups = axis_extent(p, group);
    w->c_in = axis_extent(p, c), w->c_out = axis_extent(p, k);
    set_operands(w, p, image->buffer, filter->buffer, s->dst->buffer);
    return true;
}

/* ---- cells ---- */

static bool has_extents(const struct program *p, int buffer, int n, const int64_t *extent) {
    const struct buffer *b = buffer < 0 ? NULL : &p->buffer[buffer];
    bool same = b && b->ndims == n && b->type == TYPE_F32;
    for (int d = 0; d < n && same; d++) same = b->extent[d] == extent[d];
    return same;
}

/* Some sum of products multiplies the two. */
static bool multiplied(const struct program *p, int a, int b) {
    for (int s = 0; s < p->nstmts; s++) {
        bool x = false, y = false;
        for (int r = 0; r < p->stmt[s].nreads && stmt_is_mac(p, &p->stmt[s]); r++) {
            x |= p->stmt[s].read[r].buffer == a;
            y |= p->stmt[s].read[r].buffer == b;
        }
        if (x && y) return true;
    }
    return false;
}

static const struct recur *only_recurrence(const struct program *p) {
    const struct recur *found = NULL;
    for (int i = 0; i < p->nitems; i++) {
        if (p->item[i].kind != ITEM_RECUR) continue;
        if (found) return NULL;
        found = p->item[i].recur;
    }
    return found && !found->reverse && !p->axis[found->axis].size && found->nstates <= 2 ? found
                                                                                         : NULL;
}

static void find_arrays(const struct program *p, const struct recur *r, struct work *w) {
    int *part = w->part;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_OUT && x->ndims == 3) part[CELL_Y] = b;
        if (x->role == ROLE_IN && x->ndims == 3) part[CELL_X] = b;
        if (x->role == ROLE_CONST && x->ndims >= 2 && multiplied(p, b, r->state[0].current))
            part[CELL_U] = b;
    }
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role != ROLE_CONST || b == part[CELL_U]) continue;
        if (part[CELL_X] >= 0 && multiplied(p, b, part[CELL_X]))
            part[CELL_W] = b;
        else
            part[part[CELL_BIAS] < 0 ? CELL_BIAS : CELL_BIAS_NEW] = b;
    }
    part[CELL_H0] = r->state[0].from;
    part[CELL_HT] = r->state[0].to;
    if (r->nstates < 2) return;
    part[CELL_C0] = r->state[1].from;
    part[CELL_CT] = r->state[1].to;
}

static bool as_cell(const struct program *p, struct work *w) {
    const struct recur *r = only_recurrence(p);
    const int *part = w->part;
    for (int k = 0; k < CELL_PARTS; k++) w->part[k] = -1;
    if (!r || r->nstates < 1) return false;
    find_arrays(p, r, w);
    if (part[CELL_X] < 0 || part[CELL_Y] < 0 || part[CELL_U] < 0 || part[CELL_W] < 0) return false;
    bool gated = p->buffer[part[CELL_U]].ndims == 3;
    w->gates = gated ? p->buffer[part[CELL_U]].extent[0] : 1;
    w->steps = p->axis[r->axis].extent;
    w->batch = p->buffer[part[CELL_X]].extent[1];
    w->inputs = p->buffer[part[CELL_X]].extent[2];
    w->units = p->buffer[part[CELL_Y]].extent[2];
    if (w->gates != (r->nstates == 2 ? 4 : gated ? 3 : 1)) return false;
    int64_t x[] = {w->steps, w->batch, w->inputs}, y[] = {w->steps, w->batch, w->units},
            wx[] = {w->gates, w->units, w->inputs}, wh[] = {w->gates, w->units, w->units},
            h[] = {w->batch, w->units};
    int plain = !gated;
    w->kind = WORK_CELL;
    set_operands(w, p, part[CELL_X], part[CELL_W], part[CELL_Y]);
    return w->steps > 0 && has_extents(p, part[CELL_X], 3, x) &&
           has_extents(p, part[CELL_Y], 3, y) &&
           has_extents(p, part[CELL_W], 3 - plain, wx + plain) &&
           has_extents(p, part[CELL_U], 3 - plain, wh + plain) &&
           has_extents(p, part[CELL_BIAS], 2 - plain, wh + plain) &&
           has_extents(p, part[CELL_H0], 2, h) && has_extents(p, part[CELL_HT], 2, h) &&
           (w->gates == 3) == has_extents(p, part[CELL_BIAS_NEW], 1, &w->units) &&
           (r->nstates == 1 ||
            (has_extents(p, part[CELL_C0], 2, h) && has_extents(p, part[CELL_CT], 2, h)));
}

void work_recognise(const struct program *p, struct work *w) {
    struct shape s;
    struct work empty = {.kind = WORK_OTHER, .a = -1, .b = -1, .c = -1};
    *w = empty;
    if (as_cell(p, w)) return;
    *w = empty;
    if (!is_product(p, &s)) return;
    if (as_gemm(&s, w)) return;
    *w = empty;
    if (as_conv(&s, s.x, s.y, w)) return;
    *w = empty;
    if (as_conv(&s, s.y, s.x, w)) return;
    *w = empty;
}
