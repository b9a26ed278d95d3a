/* Lanes: a reduction along the dimension in which its data lie. Instructions on vectors reduce
 * across rows: one that runs along them would want the data transposed. Instead each lane of a
 * vector reduces every L-th element, and the L partial results of a row are reduced in the end:
 *
 *   p[i,l] op= x[i, L*b + l]      m[i] op= p[i,l]      m[i] op= x[i, L*B + r], what is left
 *
 * Issues of one vector wait for each other. So of long rows L is several vectors, as many as fill
 * the queue, and their partial results are reduced in lanes again. Without that as many rows would
 * have to be at work at a time, and they leave the innermost cache.
 */
#include "mapper/rewrite_int.h"

enum { LEAST_STEPS = 16 /* of each chain: what it adds in the end should be little beside */ };

/* The lanes of an instruction that accumulates vectors of the type; 0: it is none. */
static int64_t lanes_of(const struct needle *n, enum type type) {
    if (!n || n->nparts || n->program->nstmts != 1 || n->naxes != 1) return 0;
    const struct needle_axis *x = &n->axis[0];
    const struct stmt *s = &n->program->stmt[0];
    bool sums = s->combine != COMBINE_SET && n->program->buffer[s->dst.buffer].type == type;
    return sums && !x->reduction && x->lo == x->hi ? x->hi : 0;
}

/* Its last dimension is the axis alone: no window slides over it. */
static bool row_along(const struct program *p, const struct access *a, int axis) {
    int dim, last = p->buffer[a->buffer].ndims - 1;
    int64_t coef;
    bool along = !a->has_fill && rw_place(p, a, axis, &dim, &coef) && coef == 1 && dim == last;
    for (int b = 0; b < p->naxes && along; b++) along = b == axis || !access_coef(p, a, last, b);
    return along;
}

/* All that varies with the axis lies along it. */
static bool lies_along(const struct program *p, const struct stmt *s, int axis) {
    int n = 0;
    for (int r = 0; r < s->nreads; r++) {
        if (!(rw_access_axes(p, &s->read[r]) >> axis & 1)) continue;
        if (!row_along(p, &s->read[r], axis)) return false;
        n++;
    }
    return n > 0;
}

/* The partial results are no more than what they are made of. */
static bool few_results(const struct program *p, const struct stmt *s, int axis, int64_t lanes) {
    double results = rw_points(p, rw_access_axes(p, &s->dst)) * (double)lanes, most = 0;
    for (int r = 0; r < s->nreads; r++) {
        uint64_t axes = rw_access_axes(p, &s->read[r]);
        if (axes >> axis & 1 && rw_points(p, axes) > most) most = rw_points(p, axes);
    }
    return results <= most;
}

static int find_axis(const struct program *p, int stmt, int64_t lanes) {
    const struct stmt *s = &p->stmt[stmt];
    uint64_t reduced = s->axes & ~rw_access_axes(p, &s->dst) & ~rw_value_axes(s);
    for (int a = 0; a < p->naxes; a++)
        if (reduced >> a & 1 && !p->axis[a].sequential && p->axis[a].extent >= 2 * lanes &&
            lies_along(p, s, a) && few_results(p, s, a, lanes))
            return a;
    return -1;
}

/* Elements that are reduced apart: no more are left over than of one vector. */
static int64_t lanes_at_once(const struct needle *n, int64_t lanes, int64_t extent) {
    int64_t many = lanes;
    while (2 * many <= n->chains * lanes && extent / (2 * many) >= LEAST_STEPS &&
           extent % (2 * many) == extent % lanes)
        many *= 2;
    return many;
}

static void reduce(struct program *q, int at, const struct stmt *old, struct access dst,
                   struct substitution *x) {
    struct draft d = draft_open(q, old, old->combine, dst);
    draft_mapped(&d, old, old->nops - 1, rw_substituted, x);
    draft_close(&d, at);
}

static bool in_lanes(struct program *q, int at, int axis, int64_t lanes) {
    int64_t extent = q->axis[axis].extent, rest = extent % lanes;
    int block = rw_axis(q, q->axis[axis].name, extent / lanes),
        lane = rw_axis(q, q->axis[axis].name, lanes),
        last = rest > 1 ? rw_axis(q, q->axis[axis].name, rest) : -1;
    if (block < 0 || lane < 0 || (rest > 1 && last < 0)) return false;
    struct stmt old = q->stmt[at];
    enum type t = old.op[old.nops - 1].type;
    int by[MAX_AXES], n = rw_axes(rw_access_axes(q, &old.dst), by);
    struct substitution main = {.p = q}, tail = {.p = q};
    int64_t *row = rw_substitution(&main, axis);
    row[block] = lanes;
    row[lane] = 1;
    row = rw_substitution(&tail, axis);
    if (last >= 0) row[last] = 1;
    row[q->naxes] = extent - rest;
    struct access own;
    by[n++] = lane;
    const char *name = arena_printf(&q->arena, "%s.lanes", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, t, by, n, &own)) return false;
    union value neutral = combiner_neutral(old.combine, t);
    program_make_room(q, at, rest ? 3 : 2);
    rw_fill(q, at++, &old, own, type_is_float(t) ? neutral.f : (double)neutral.i);
    reduce(q, at++, &old, rw_copy(q, &own), &main);
    struct draft d = draft_open(q, &old, old.combine, old.dst);
    draft_read(&d, rw_copy(q, &own));
    draft_close(&d, at);
    if (rest) reduce(q, at + 1, &old, rw_copy(q, &old.dst), &tail);
    return true;
}

static struct program *lanes(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    int at = why->stmt;
    if (!rw_plain(p, at) || p->stmt[at].combine == COMBINE_SET) return NULL;
    int64_t many = lanes_of(n, p->buffer[p->stmt[at].dst.buffer].type);
    int axis = many > 1 ? find_axis(p, at, many) : -1;
    if (axis < 0) return NULL;
    struct program *q = program_copy(p);
    if (in_lanes(q, at, axis, lanes_at_once(n, many, p->axis[axis].extent))) return q;
    program_free(q);
    return NULL;
}

const struct rewrite rw_lanes = {
    .name = "lanes",
    .doc = "a reduction along the rows of its data: each lane of a vector reduces every so many "
           "elements, and the lanes are reduced in the end",
    .answers = ANSWERS(NOT_COLLINEAR),
    .effect = REWRITE_REORDERS,
    .everywhere = true,
    .by_needle = true,
    .apply = lanes,
};
