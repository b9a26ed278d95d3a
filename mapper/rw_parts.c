/* Sums in parts, which are added:
 *
 *   t[p,i] op= x[i, K/P*p + k]      y[i] op= t[p,i]
 *
 * Where a grid has more instances than a statement has tiles, several of them sum a part of each
 * result (split-K). Where an instruction does not accumulate, a part has the terms of one issue.
 */
#include "mapper/rewrite_int.h"

#include <math.h>

/* Numbers of parts that are tried leave tiles for a FEW-th of the instances at least, for each of
 * them in ROUNDS turns at most, and ISSUES issues for each part. */
enum { FEW = 8, ROUNDS = 2, ISSUES = 2 };

/* The longest axis that is summed over. */
static int summed_axis(const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    uint64_t summed = s->axes & ~rw_access_axes(p, &s->dst) & ~rw_value_axes(s);
    int longest = -1;
    for (int a = 0; a < p->naxes; a++)
        if (summed >> a & 1 && !p->axis[a].sequential && !p->axis[a].size &&
            (longest < 0 || p->axis[a].extent > p->axis[longest].extent))
            longest = a;
    return longest;
}

static bool on_grid(const struct machine *m, int unit) {
    while (unit >= 0 && !m->unit[unit].is_virtual) unit = m->unit[unit].parent;
    return unit >= 0;
}

/* Issues side by side that make all results. */
static double tiles_of(const struct needle *n, const struct program *p, const struct mapping *map) {
    double tiles = rw_points(p, rw_access_axes(p, &p->stmt[map->stmt].dst));
    for (int x = 0; x < n->naxes; x++) {
        if (n->axis[x].reduction || map->group[x].n == 0) continue;
        double extent = (double)group_extent(p, &map->group[x]), hi = (double)n->axis[x].hi;
        tiles *= ceil(extent / (hi > 1 ? hi : 1)) / extent;
    }
    return tiles;
}

double instances_busy(const struct machine *m, const struct needle *n, const struct program *p,
                      const struct mapping *map, int64_t parts) {
    int unit = m->instr[n->instr].unit;
    if (!on_grid(m, unit)) return 1;
    double tiles = tiles_of(n, p, map) * (double)parts, many = instances_at_once(m, unit);
    return tiles / (ceil(tiles / many) * many);
}

static bool all_meet(const struct sync *s) {
    return s->kind == SYNC_BARRIER && s->barrier_unit == 0;
}

double meeting_price(const struct machine *m) {
    double most = 0;
    for (int k = 0; k < m->nsyncs; k++)
        if (all_meet(&m->sync[k])) most = fmax(most, reference_cycles(m, 0, m->sync[k].latency));
    return most + reference_cycles(m, 0, m->launch);
}

/* What one instance leaves another one reads: there must be a barrier where all of them meet. */
static bool can_meet(const struct machine *m) {
    for (int k = 0; k < m->nsyncs; k++)
        if (all_meet(&m->sync[k])) return true;
    return false;
}

int parts_of(const struct machine *m, const struct needle *n, const struct program *p,
             const struct mapping *map, int64_t *parts) {
    const struct stmt *s = &p->stmt[map->stmt];
    int count = 0, unit = m->instr[n->instr].unit, axis = summed_axis(p, map->stmt);
    if (!on_grid(m, unit) || !can_meet(m) || !rw_plain(p, map->stmt) || axis < 0 ||
        s->op[s->nops - 1].type != p->buffer[s->dst.buffer].type)
        return 0;
    double many = instances_at_once(m, unit), tiles = tiles_of(n, p, map);
    int64_t extent = p->axis[axis].extent, issue = rw_tile(n);
    for (int64_t k = 2;
         count < MAX_PARTS && k * ISSUES * issue <= extent && tiles * (double)k <= ROUNDS * many;
         k *= 2)
        if (extent % (k * issue) == 0 && tiles * (double)k * FEW >= many) parts[count++] = k;
    return count;
}

/* ---- writing ---- */

struct cut_sum {
    uint64_t outside; /* axes that are summed over last, whole */
    int axis;         /* cut in parts; -1: none */
    int64_t length;   /* of a part; what is left behind the last whole one is a part of its own */
    const char *suffix;
};

/* Axes of a part's sums: those outside, then those of the result in the order of its dimensions. */
static int part_axes(const struct program *p, const struct stmt *s, uint64_t outside, int *by) {
    uint64_t known = 0;
    int n = rw_axes(outside, by);
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, &s->dst, d, a) && !(known >> a & 1)) {
                known |= UINT64_C(1) << a;
                by[n++] = a;
            }
    return n;
}

/* A part: its sums begin, are made, and are added to the statement's. part: the axis that counts
 * such parts; -1: there is one. */
static bool write_part(struct program *q, int at, const struct stmt *old, const struct cut_sum *c,
                       int part, struct substitution *x) {
    struct access own;
    enum type t = old->op[old->nops - 1].type;
    int by[MAX_AXES + 1] = {part}, n = part >= 0;
    n += part_axes(q, old, c->outside, by + n);
    if (n > MAX_DIMS) return false;
    const char *name = arena_printf(&q->arena, "%s%s", q->buffer[old->dst.buffer].name, c->suffix);
    if (!rw_temporary_of(q, name, t, by, n, &own)) return false;
    union value neutral = combiner_neutral(old->combine, t);
    rw_fill(q, at, old, own, type_is_float(t) ? neutral.f : (double)neutral.i);
    struct draft d = draft_open(q, old, old->combine, rw_copy(q, &own));
    draft_mapped(&d, old, old->nops - 1, rw_substituted, x);
    draft_close(&d, at + 1);
    d = draft_open(q, old, old->combine, old->dst);
    draft_read(&d, rw_copy(q, &own));
    draft_close(&d, at + 2);
    return true;
}

struct cut_axes { /* of parts of one length: part counts them, inner goes through each; -1: none */
    int part, inner;
    int64_t length, from;
};

static bool cut_axis(struct program *q, int axis, int64_t n, struct cut_axes *x) {
    x->part = n > 1 ? rw_axis(q, "part", n) : -1;
    x->inner = x->length > 1 ? rw_axis(q, q->axis[axis].name, x->length) : -1;
    return (n == 1 || x->part >= 0) && (x->length == 1 || x->inner >= 0);
}

static void cut_substitute(struct program *q, int axis, const struct cut_axes *x,
                           struct substitution *s) {
    *s = (struct substitution){.p = q};
    if (axis < 0) return;
    int64_t *row = rw_substitution(s, axis);
    if (x->part >= 0) row[x->part] = x->length;
    if (x->inner >= 0) row[x->inner] = 1;
    row[q->naxes] = x->from;
}

/* How many statements stand in place of the one; 0: there is no room. */
static int write_cut(struct program *q, int at, const struct cut_sum *c) {
    int64_t extent = c->axis >= 0 ? q->axis[c->axis].extent : 1, n = extent / c->length;
    struct cut_axes x[2] = {{.part = -1, .inner = -1, .length = c->length},
                            {.length = extent - n * c->length, .from = n * c->length}};
    int parts = x[1].length > 0 ? 2 : 1;
    for (int k = 0; k < parts && c->axis >= 0; k++)
        if (!cut_axis(q, c->axis, k ? 1 : n, &x[k])) return 0;
    struct stmt old = q->stmt[at]; /* its accesses know the new axes */
    program_make_room(q, at, 3 * parts - 1);
    for (int k = 0; k < parts; k++) {
        struct substitution s;
        cut_substitute(q, c->axis, &x[k], &s);
        if (!write_part(q, at + 3 * k, &old, c, x[k].part, &s)) return 0;
    }
    return 3 * parts;
}

static struct program *cut_program(const struct program *p, int stmt, const struct cut_sum *c,
                                   int *n) {
    struct program *q = program_copy(p);
    int stmts = write_cut(q, stmt, c);
    if (n) *n = stmts;
    if (stmts) return q;
    program_free(q);
    return NULL;
}

struct program *sum_in_parts(const struct program *p, int stmt, int64_t parts) {
    int axis = summed_axis(p, stmt);
    struct cut_sum c = {
        .axis = axis, .length = p->axis[axis].extent / parts, .suffix = PARTS_SUFFIX};
    return cut_program(p, stmt, &c, NULL);
}

/* ---- sums of few terms ---- */

/* An issue takes so many terms at most: the longest axes that it has room for are inside, the next
 * one is cut if that fills it, the others are outside. */
static struct cut_sum terms_inside(const struct program *p, int stmt, int64_t most, int64_t step) {
    const struct stmt *s = &p->stmt[stmt];
    struct cut_sum c = {.axis = -1, .length = 1, .suffix = TERMS_SUFFIX};
    c.outside = s->axes & ~rw_access_axes(p, &s->dst);
    for (int64_t room = most;;) {
        int next = -1;
        for (int a = 0; a < p->naxes; a++)
            if (c.outside >> a & 1 && (next < 0 || p->axis[a].extent > p->axis[next].extent))
                next = a;
        if (next < 0) return c;
        int64_t extent = p->axis[next].extent, parts = (extent + room - 1) / room;
        if (parts > 1 && room < most) return c;
        c.outside &= ~(UINT64_C(1) << next);
        if (parts == 1) {
            room /= extent;
            continue;
        }
        int64_t even = ((extent + parts - 1) / parts + step - 1) / step * step;
        c.axis = next;
        c.length = even <= room ? even : room;
        return c;
    }
}

/* The axis of the needle that must hold all terms of a sum; NULL: it is none that only sums. */
static const struct needle_axis *axis_of_terms(const struct needle *n) {
    if (n->nparts != 2 || n->part[0].program->stmt[0].combine != COMBINE_SET) return NULL;
    for (int x = 0; x < n->naxes; x++)
        if (n->whole >> x & 1 && n->axis[x].hi > 1) return &n->axis[x];
    return NULL;
}

struct program *sum_of_terms(const struct program *p, int stmt, const struct needle *n,
                             int *stmts) {
    const struct stmt *s = &p->stmt[stmt];
    const struct needle_axis *x = axis_of_terms(n);
    if (!x || !rw_plain(p, stmt) || s->op[s->nops - 1].type != p->buffer[s->dst.buffer].type)
        return NULL;
    struct cut_sum c = terms_inside(p, stmt, x->hi, needle_axis_unit(x));
    return c.axis >= 0 || c.outside ? cut_program(p, stmt, &c, stmts) : NULL;
}

const struct rewrite rw_parts = {
    .name = "parts",
    .doc = "a long sum in parts, which instances of a grid make beside one another, and which are "
           "added in the end",
    .effect = REWRITE_REORDERS,
};

const struct rewrite rw_terms = {
    .name = "terms",
    .doc = "a sum in parts of as many terms as an instruction that does not accumulate takes, "
           "which are added",
    .effect = REWRITE_REORDERS,
};
