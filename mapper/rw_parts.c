/* Sums in parts (split-K): where a grid has more instances than a statement has tiles, several of
 * them sum a part of each result, and the parts are added:
 *
 *   t[p,i] op= x[i, K/P*p + k]      y[i] op= t[p,i]
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
    return most;
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

/* The axes of the destination in the order of its dimensions, behind the parts'. */
static int result_axes(const struct program *p, const struct access *dst, int *by) {
    uint64_t known = 0;
    int n = 1;
    for (int d = 0; d < p->buffer[dst->buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, dst, d, a) && !(known >> a & 1)) {
                known |= UINT64_C(1) << a;
                by[n++] = a;
            }
    return n;
}

static bool write_parts(struct program *q, int at, int axis, int64_t parts) {
    int64_t extent = q->axis[axis].extent;
    int part = rw_axis(q, "part", parts), inner = rw_axis(q, q->axis[axis].name, extent / parts);
    if (part < 0 || inner < 0) return false;
    struct stmt old = q->stmt[at]; /* its accesses know the new axes */
    enum type t = old.op[old.nops - 1].type;
    int by[MAX_AXES + 1] = {part}, n = result_axes(q, &old.dst, by);
    if (n > MAX_DIMS) return false;
    struct substitution x = {.p = q};
    int64_t *row = rw_substitution(&x, axis);
    row[part] = extent / parts;
    row[inner] = 1;
    struct access own;
    const char *name = arena_printf(&q->arena, "%s" PARTS_SUFFIX, q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, t, by, n, &own)) return false;
    union value neutral = combiner_neutral(old.combine, t);
    program_make_room(q, at, 2);
    rw_fill(q, at, &old, own, type_is_float(t) ? neutral.f : (double)neutral.i);
    struct draft d = draft_open(q, &old, old.combine, rw_copy(q, &own));
    draft_mapped(&d, &old, old.nops - 1, rw_substituted, &x);
    draft_close(&d, at + 1);
    d = draft_open(q, &old, old.combine, old.dst);
    draft_read(&d, rw_copy(q, &own));
    draft_close(&d, at + 2);
    return true;
}

struct program *sum_in_parts(const struct program *p, int stmt, int64_t parts) {
    struct program *q = program_copy(p);
    if (write_parts(q, stmt, summed_axis(p, stmt), parts)) return q;
    program_free(q);
    return NULL;
}

const struct rewrite rw_parts = {
    .name = "parts",
    .doc = "a long sum in parts, which instances of a grid make beside one another, and which are "
           "added in the end",
    .effect = REWRITE_REORDERS,
};
