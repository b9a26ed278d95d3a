/* Rewrites of types: operands in another type than the instruction's. Each makes an image of a
 * buffer, elementwise, or sums in another type where ranges show that nothing overflows. */
#include "mapper/range.h"
#include "mapper/rewrite_int.h"

#include <math.h>

/* ---- what is asked for ---- */

struct operand_pair { /* the product as it is, and as the needle has it */
    struct factors f;
    int read[2]; /* -1: the factor is no read */
    enum type have[2], want[2], sum;
};

/* Is every value of `from` one of `to`? */
static bool holds(enum type to, enum type from) {
    if (to == from) return true;
    if (to == TYPE_BOOL || from == TYPE_BOOL) return false;
    if (type_is_float(to) && type_is_float(from)) return type_size(to) > type_size(from);
    if (type_is_float(to) || type_is_float(from)) return false;
    if (type_is_signed(from) && !type_is_signed(to)) return false;
    return type_is_signed(to) == type_is_signed(from) ? type_size(to) > type_size(from)
                                                      : type_size(to) > type_size(from);
}

static bool find_pair(const struct program *p, const struct failure *why, const struct needle *n,
                      struct operand_pair *x) {
    struct product_types t;
    int at = why->stmt;
    if (!n || !needle_product(n, &t) || !rw_factors(p, at, &x->f) || x->f.n != 2 ||
        p->stmt[at].nwhere)
        return false;
    const struct stmt *s = &p->stmt[at];
    for (int k = 0; k < 2; k++) {
        int node = rw_bare(s, x->f.node[k]);
        x->read[k] = s->op[node].code == OP_READ ? s->op[node].read : -1;
        x->have[k] = rw_stored(p, s, x->f.node[k]);
    }
    bool swap = x->have[0] != t.a && (x->have[0] == t.b || x->have[1] == t.a);
    x->want[0] = swap ? t.b : t.a;
    x->want[1] = swap ? t.a : t.b;
    x->sum = t.sum;
    return true;
}

/* What an integer factor can be; false: anything, or it wraps. */
static bool factor_range(const struct program *p, int at, int node, double *lo, double *hi) {
    struct arena scratch;
    arena_init(&scratch);
    struct range *all = arena_array(&scratch, (size_t)p->stmt[at].nops, sizeof *all);
    ranges_of_ops(p, at, all);
    bool known = !type_is_float(p->stmt[at].op[node].type) && !all[node].wraps &&
                 isfinite(all[node].lo) && isfinite(all[node].hi);
    *lo = all[node].lo;
    *hi = all[node].hi;
    arena_free(&scratch);
    return known;
}

/* ---- images ---- */

struct exchange { /* one read comes from an image, whose fill is another */
    struct program *p;
    int read;
    const struct image *image;
    double fill_more;
    enum type type;
};

static struct access exchanged(void *user, const struct access *a, int read) {
    const struct exchange *x = user;
    struct access c = rw_copy(x->p, a);
    if (read != x->read) return c;
    if (x->image->by_axes) return rw_imaged(x->p, x->image, false);
    if (c.has_fill) {
        enum type from = x->p->buffer[a->buffer].type;
        if (x->fill_more != 0)
            c.fill.i += (int64_t)x->fill_more;
        else
            c.fill = type_convert(x->type, from, c.fill);
    }
    c.buffer = x->image->buffer;
    return c;
}

/* The statement's product with factor k read from the image, cast to `type`. */
static void write_product(struct program *q, int at, const struct stmt *old,
                          const struct operand_pair *x, int k, const struct exchange *e,
                          enum type type, struct access dst) {
    struct draft d = draft_open(q, old, COMBINE_ADD, dst);
    int node[2];
    for (int i = 0; i < 2; i++) {
        int bare = rw_bare(old, x->f.node[i]);
        if (i == k) {
            struct access a = exchanged((void *)e, &old->read[x->read[k]], x->read[k]);
            node[i] = draft_cast(&d, type, draft_read(&d, a));
        } else {
            node[i] = draft_cast(&d, type, draft_tree(&d, old, bare));
        }
    }
    draft_binary(&d, OP_MUL, node[0], node[1]);
    draft_close(&d, at);
}

/* ---- widen and narrow: the image has the needle's type ---- */

static struct program *convert(const struct program *p, int at, const struct operand_pair *pair,
                               int k) {
    struct program *q = program_copy(p);
    struct operand_pair x = *pair;
    struct image image;
    if (!rw_image(q, at, x.read[k], x.want[k], &image)) {
        program_free(q);
        return NULL;
    }
    struct stmt old = q->stmt[at];
    program_make_room(q, at, 1);
    struct draft d = draft_open(q, &old, COMBINE_SET, rw_imaged(q, &image, false));
    draft_cast(&d, x.want[k], draft_read(&d, rw_imaged(q, &image, true)));
    draft_close(&d, at);
    struct exchange e = {q, x.read[k], &image, 0, x.want[k]};
    write_product(q, at + 1, &old, &x, k, &e, x.f.type, old.dst);
    return q;
}

/* Where no instruction failed, one may still multiply more integers at a time if it has factor k in
 * a type between its own and that of the sum. Not where each element of the other factor is used
 * once: bringing it sets the pace then. */
static bool worth_widening(const struct program *p, int at, const struct product_types *t,
                           struct operand_pair *x, int k) {
    enum type other = x->have[1 - k], wide = t->b == other ? t->a : t->b;
    if (x->read[k] < 0 || (t->a != other && t->b != other) || type_is_float(wide) ||
        wide == x->have[k] || !holds(wide, x->have[k]) || type_size(wide) >= type_size(x->f.type))
        return false;
    x->want[k] = wide;
    x->want[1 - k] = other;
    return rw_points(p, p->stmt[at].axes & ~x->f.axes[1 - k]) > 1;
}

/* What constants decide stays narrow where it can: it is put in the instruction's order once. */
static struct program *widen_unasked(const struct program *p, int at, const struct needle *n,
                                     struct operand_pair *x) {
    struct product_types t;
    if (!rw_plain(p, at) || !needle_product(n, &t)) return NULL;
    for (int steady = 0; steady < 2; steady++)
        for (int k = 0; k < 2; k++)
            if (worth_widening(p, at, &t, x, k) &&
                buffer_steady(p, p->stmt[at].read[x->read[k]].buffer) == steady)
                return convert(p, at, x, k);
    return NULL;
}

static struct program *widen_one(const struct program *p, int at, const struct operand_pair *x) {
    for (int k = 0; k < 2; k++)
        if (x->read[k] >= 0 && x->have[k] != x->want[k] && holds(x->want[k], x->have[k]) &&
            holds(x->f.type, x->want[k]))
            return convert(p, at, x, k);
    return NULL;
}

static struct program *widen(const struct program *p, const struct failure *why,
                             const struct needle *n) {
    struct operand_pair x;
    if (!find_pair(p, why, n, &x)) return NULL;
    if (why->instr < 0) return widen_unasked(p, why->stmt, n, &x);
    return widen_one(p, why->stmt, &x);
}

/* Factors of one type, of which the instruction reads one wider: the other one than above, which
 * may come where that does not. */
static struct program *widen_other(const struct program *p, const struct failure *why,
                                   const struct needle *n) {
    struct operand_pair x;
    if (!find_pair(p, why, n, &x) || x.have[0] != x.have[1] || x.want[0] == x.want[1]) return NULL;
    enum type first = x.want[0];
    x.want[0] = x.want[1];
    x.want[1] = first;
    return widen_one(p, why->stmt, &x);
}

const struct rewrite rw_widen = {
    .name = "widen",
    .doc = "an operand is copied to the wider type that the instruction reads",
    .answers = ANSWERS(TYPE) | ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .everywhere = true,
    .by_needle = true,
    .apply = widen,
};

const struct rewrite rw_widen_other = {
    .name = "widen-other",
    .doc = "the same of the other operand, where both have one type",
    .answers = ANSWERS(TYPE) | ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .by_needle = true,
    .apply = widen_other,
};

/* Only beside an operand that has the narrow type already: the program multiplies at that
 * precision. */
static struct program *narrow(const struct program *p, const struct failure *why,
                              const struct needle *n) {
    struct operand_pair x;
    if (!find_pair(p, why, n, &x)) return NULL;
    for (int k = 0; k < 2; k++)
        if (x.read[k] >= 0 && type_is_float(x.have[k]) && type_is_float(x.want[k]) &&
            type_size(x.want[k]) < type_size(x.have[k]) && x.have[1 - k] == x.want[1 - k] &&
            p->buffer[p->stmt[why->stmt].read[x.read[k]].buffer].role == ROLE_TEMP)
            return convert(p, why->stmt, &x, k);
    return NULL;
}

const struct rewrite rw_narrow = {
    .name = "narrow",
    .doc = "a temporary is rounded to the floating type that the other operand has",
    .answers = ANSWERS(TYPE),
    .effect = REWRITE_ROUNDS,
    .apply = narrow,
};

/* ---- offset: x·y = (x + o)·y - o·Σ y for bytes of the other sign ---- */

static bool offset_of(const struct operand_pair *x, int k, double *offset) {
    enum type have = x->have[k], want = x->want[k];
    if (type_is_float(have) || type_is_float(want) || have == want || have == TYPE_BOOL ||
        want == TYPE_BOOL || type_size(have) != type_size(want) || type_size(have) > 2)
        return false;
    *offset = (type_is_signed(have) ? 1 : -1) * ldexp(1, (int)(8 * type_size(have)) - 1);
    return x->read[k] >= 0;
}

/* Σ of the other factor over what is reduced, and the correction with it. */
static bool write_correction(struct program *q, int at, const struct stmt *old,
                             const struct operand_pair *x, int other, double offset) {
    int axis[MAX_AXES];
    struct access sum;
    uint64_t reduced = old->axes & ~rw_access_axes(q, &old->dst);
    double times = rw_points(q, reduced & ~x->f.axes[other]);
    int n = rw_axes(x->f.axes[other] & ~reduced, axis);
    if (!rw_temporary_of(q, "offset", x->f.type, axis, n, &sum)) return false;
    rw_fill(q, at, old, sum, 0);
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &sum));
    draft_tree(&d, old, x->f.node[other]);
    draft_close(&d, at + 1);
    d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &old->dst));
    int y = draft_read(&d, rw_copy(q, &sum));
    draft_binary(&d, OP_MUL, y, draft_number(&d, x->f.type, -offset * times));
    draft_close(&d, at + 2);
    return true;
}

static struct program *offset(const struct program *p, const struct failure *why,
                              const struct needle *n) {
    struct operand_pair x;
    double by = 0;
    int k = 0, at = why->stmt;
    if (!find_pair(p, why, n, &x) || x.f.type != TYPE_I32) return NULL;
    while (k < 2 && !offset_of(&x, k, &by)) k++;
    if (k == 2 || rw_points(p, p->stmt[at].axes) * fabs(by) > 0x1p52) return NULL;
    struct program *q = program_copy(p);
    struct image image;
    if (!rw_image(q, at, x.read[k], x.want[k], &image) || !rw_factors(q, at, &x.f)) goto no;
    struct stmt old = q->stmt[at];
    program_make_room(q, at, 4);
    struct draft d = draft_open(q, &old, COMBINE_SET, rw_imaged(q, &image, false));
    int v = draft_cast(&d, TYPE_I32, draft_read(&d, rw_imaged(q, &image, true)));
    v = draft_binary(&d, OP_ADD, v, draft_number(&d, TYPE_I32, by));
    draft_cast(&d, x.want[k], v);
    draft_close(&d, at);
    if (!write_correction(q, at + 1, &old, &x, 1 - k, by)) goto no;
    struct exchange e = {q, x.read[k], &image, by, x.want[k]};
    write_product(q, at + 4, &old, &x, k, &e, x.f.type, rw_copy(q, &old.dst));
    return q;
no:
    program_free(q);
    return NULL;
}

const struct rewrite rw_offset = {
    .name = "offset",
    .doc = "bytes of the other sign are moved by half their range; a correction takes the "
           "difference back",
    .answers = ANSWERS(TYPE),
    .effect = REWRITE_EXACT,
    .apply = offset,
};

/* ---- narrow-sum: a sum in the instruction's narrower type, where it cannot overflow ---- */

static struct program *narrow_sum(const struct program *p, const struct failure *why,
                                  const struct needle *n) {
    struct operand_pair x;
    double lo[2], hi[2], most = 0, low, high;
    int axis[MAX_AXES], at = why->stmt;
    struct access sum;
    int64_t least, limit;
    if (!find_pair(p, why, n, &x) || type_is_float(x.f.type) || type_is_float(x.sum) ||
        type_size(x.sum) >= type_size(x.f.type) || !type_is_signed(x.sum))
        return NULL;
    const struct stmt *s = &p->stmt[at];
    for (int k = 0; k < 2; k++)
        if (!holds(x.sum, x.have[k]) ||
            !factor_range(p, at, rw_bare(s, x.f.node[k]), &lo[k], &hi[k]))
            return NULL;
    for (int k = 0; k < 4; k++)
        most = fmax(most, fabs((k & 1 ? lo[0] : hi[0]) * (k & 2 ? lo[1] : hi[1])));
    uint64_t result = rw_access_axes(p, &s->dst), reduced = s->axes & ~result;
    type_limits(x.sum, &least, &limit);
    low = high = most * rw_points(p, reduced);
    if (high > (double)limit || low > -(double)least || rw_points(p, result) > 0x1p31) return NULL;
    struct program *q = program_copy(p);
    struct stmt old = q->stmt[at];
    const char *name = arena_printf(&q->arena, "%s.sum", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, x.sum, axis, rw_axes(result, axis), &sum)) {
        program_free(q);
        return NULL;
    }
    program_make_room(q, at, 2);
    rw_fill(q, at, &old, sum, 0);
    struct draft d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &sum));
    int a = draft_cast(&d, x.sum, draft_tree(&d, &old, rw_bare(&old, x.f.node[0])));
    int b = draft_cast(&d, x.sum, draft_tree(&d, &old, rw_bare(&old, x.f.node[1])));
    draft_binary(&d, OP_MUL, a, b);
    draft_close(&d, at + 1);
    d = draft_open(q, &old, COMBINE_ADD, old.dst);
    draft_cast(&d, x.f.type, draft_read(&d, rw_copy(q, &sum)));
    draft_close(&d, at + 2);
    return q;
}

const struct rewrite rw_narrow_sum = {
    .name = "narrow-sum",
    .doc = "a sum is made in the instruction's narrower type where its range fits there",
    .answers = ANSWERS(TYPE),
    .effect = REWRITE_EXACT,
    .by_values = true,
    .by_ranges = true,
    .apply = narrow_sum,
};

/* ---- digits: a wide integer factor as bytes, a product of each (Horner's rule joins them) ----
 * Signed bytes; or, for an instruction that reads unsigned ones, those of the factor moved by the
 * least that it can be, and a correction. */

enum { MOST_DIGITS = 3 };

struct digits {
    struct operand_pair x;
    enum type type; /* i8 or u8 */
    int k, count;
    double least; /* u8: taken off before */
};

/* Digits of base 256 that reach the range; more than MOST_DIGITS: none. */
static int digits_for(double lo, double hi, bool is_signed) {
    double reach = 1;
    for (int n = 1; n <= MOST_DIGITS; n++, reach = reach * 256 + 1)
        if (is_signed ? lo >= -128 * reach && hi <= 127 * reach : hi - lo <= 255 * reach) return n;
    return MOST_DIGITS + 1;
}

static void write_digit(struct program *q, int at, const struct stmt *old, const struct digits *g,
                        const struct image *image, int digit) {
    double carry = g->type == TYPE_U8 ? -g->least : 0;
    for (int e = 0; e < digit && g->type == TYPE_I8; e++) carry += ldexp(128, 8 * e);
    struct draft d = draft_open(q, old, COMBINE_SET, rw_imaged(q, image, false));
    int v = draft_read(&d, rw_imaged(q, image, true));
    enum type t = d.s.op[v].type;
    if (carry != 0) v = draft_binary(&d, OP_ADD, v, draft_number(&d, t, carry));
    if (digit > 0) v = draft_binary(&d, OP_SHR, v, draft_number(&d, t, 8 * digit));
    draft_cast(&d, g->type, v);
    draft_close(&d, at);
}

/* dst += (part[2] * 256 + part[1]) * 256 + part[0] */
static void write_joined(struct program *q, int at, const struct stmt *old,
                         const struct access *part, int count) {
    struct draft d = draft_open(q, old, COMBINE_ADD, rw_copy(q, &old->dst));
    int v = draft_read(&d, rw_copy(q, &part[count - 1]));
    for (int i = count - 1; i-- > 0;) {
        v = draft_binary(&d, OP_MUL, v, draft_number(&d, TYPE_I32, 256));
        v = draft_binary(&d, OP_ADD, v, draft_read(&d, rw_copy(q, &part[i])));
    }
    draft_close(&d, at);
}

static bool wide_factor(const struct program *p, int at, struct digits *g, int k) {
    const struct operand_pair *x = &g->x;
    double lo, hi;
    if (x->read[k] < 0 || (x->want[k] != TYPE_I8 && x->want[k] != TYPE_U8) ||
        x->have[k] != TYPE_I32 || p->stmt[at].read[x->read[k]].has_fill ||
        !factor_range(p, at, rw_bare(&p->stmt[at], x->f.node[k]), &lo, &hi))
        return false;
    g->k = k;
    g->type = x->want[k];
    g->least = lo;
    g->count = digits_for(lo, hi, g->type == TYPE_I8);
    return g->count <= MOST_DIGITS &&
           (g->type == TYPE_I8 || rw_points(p, p->stmt[at].axes) * fabs(lo) <= 0x1p52);
}

static struct program *digits(const struct program *p, const struct failure *why,
                              const struct needle *n) {
    struct digits g;
    struct image image[MOST_DIGITS];
    struct access part[MOST_DIGITS];
    int k = 0, at = why->stmt, axis[MAX_AXES];
    if (!find_pair(p, why, n, &g.x) || g.x.f.type != TYPE_I32) return NULL;
    while (k < 2 && !wide_factor(p, at, &g, k)) k++;
    if (k == 2) return NULL;
    struct program *q = program_copy(p);
    bool room = true, moved = g.type == TYPE_U8 && g.least != 0;
    for (int i = 0; i < g.count && room; i++)
        room = rw_image(q, at, g.x.read[k], g.type, &image[i]);
    struct stmt old = q->stmt[at];
    uint64_t result = rw_access_axes(q, &old.dst);
    const char *name = arena_printf(&q->arena, "%s.part", q->buffer[old.dst.buffer].name);
    for (int i = 0; i < g.count && room; i++)
        room = rw_temporary_of(q, name, TYPE_I32, axis, rw_axes(result, axis), &part[i]);
    if (!room || !rw_factors(q, at, &g.x.f)) goto no;
    program_make_room(q, at, 3 * g.count + (moved ? 3 : 0));
    for (int i = 0; i < g.count; i++) {
        struct exchange e = {q, g.x.read[k], &image[i], 0, g.type};
        write_digit(q, at++, &old, &g, &image[i], i);
        rw_fill(q, at++, &old, part[i], 0);
        write_product(q, at++, &old, &g.x, k, &e, TYPE_I32, rw_copy(q, &part[i]));
    }
    if (moved && !write_correction(q, at, &old, &g.x, 1 - k, -g.least)) goto no;
    write_joined(q, at + (moved ? 3 : 0), &old, part, g.count);
    return q;
no:
    program_free(q);
    return NULL;
}

const struct rewrite rw_digits = {
    .name = "digits",
    .doc = "a wide integer factor is taken apart into bytes, one product each",
    .answers = ANSWERS(TYPE) | ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .by_values = true,
    .by_ranges = true,
    .apply = digits,
};
