/* V1, V3, V5 and V6 of docs/mapping.md on access matrices; the certificate proves the same again
 * with isl. */
#include "ir/determines.h"
#include "mapper/mapper_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct site site_of(struct arena *arena, const struct program *p, int stmt) {
    struct site s = {.program = p, .stmt = stmt, .said = stmt, .s = &p->stmt[stmt]};
    s.term = term_of(arena, p, s.s);
    term_simplify(arena, &s.term, p, stmt);
    for (int a = 0; a < p->naxes; a++)
        if (s.s->axes >> a & 1 && p->axis[a].extent > 1 && !p->axis[a].sequential)
            s.live |= UINT64_C(1) << a;
    return s;
}

const struct access *bound_access(const struct site *site, const struct bound *b) {
    if (b->kind == BOUND_DST) return &site->s->dst;
    return b->kind == BOUND_READ ? &site->s->read[b->read] : NULL;
}

const struct access *mapped_access(const struct stmt *s, const struct mapped_operand *o) {
    if (o->role == OPERAND_DST) return &s->dst;
    return o->role == OPERAND_READ ? &s->read[o->read] : NULL;
}

/* V1, and its converse: where the needle's operand varies the haystack's must too, unless the
 * needle is elementwise along the axis and the operand is copied into a memory where one element
 * may be repeated. */
bool axis_in_class(const struct needle *n, const struct site *site, const struct binding_set *b,
                   int needle_axis, int axis) {
    const struct needle_axis *x = &n->axis[needle_axis];
    for (int o = 0; o < n->noperands; o++) {
        const struct access *a = bound_access(site, &b->operand[o]);
        if (!a) continue;
        bool needle = x->signature >> o & 1, hay = access_varies(site->program, a, axis);
        bool repeated = needle && !hay && o != n->dst && x->elementwise && !(n->home >> o & 1);
        if (needle != hay && !repeated) return false;
    }
    return x->signature != 0;
}

/* ---- V3 ---- */

/* Is there a difference of two points, not zero, that reaches no other element? Walks the
 * differences of the axes that the quick test left open; only windows with overlap come here. */
struct difference {
    const struct program *p;
    const struct access *a;
    int axis[MAX_AXES], n;
    int64_t steps;
};

static bool collides(struct difference *d, int k, const int64_t *sum, bool nonzero) {
    int ndims = d->p->buffer[d->a->buffer].ndims;
    if (--d->steps < 0) return true;
    if (k == d->n) {
        for (int i = 0; i < ndims; i++)
            if (sum[i]) return false;
        return nonzero;
    }
    int64_t next[MAX_DIMS], extent = d->p->axis[d->axis[k]].extent;
    for (int64_t step = nonzero ? 1 - extent : 0; step < extent; step++) {
        bool possible = true;
        for (int i = 0; i < ndims && possible; i++) {
            __int128 reach = 0;
            next[i] = sum[i] + step * access_coef(d->p, d->a, i, d->axis[k]);
            for (int j = k + 1; j < d->n; j++)
                reach += (__int128)llabs(access_coef(d->p, d->a, i, d->axis[j])) *
                         (d->p->axis[d->axis[j]].extent - 1);
            possible = next[i] <= reach && -next[i] <= reach;
        }
        if (possible && collides(d, k + 1, next, nonzero || step != 0)) return true;
    }
    return false;
}

bool access_injective(const struct program *p, const struct access *a, uint64_t axes) {
    uint64_t open = axes & ~access_determines(p, a, axes);
    if (!open) return true;
    struct difference d = {.p = p, .a = a, .steps = 100000};
    for (int x = 0; x < p->naxes; x++)
        if (open >> x & 1) d.axis[d.n++] = x;
    int64_t zero[MAX_DIMS] = {0};
    return !collides(&d, 0, zero, false);
}

/* ---- V6 ---- */

/* Each dimension is one axis over its whole extent, and no axis stands twice: all elements, once
 * per point of those axes. */
static bool access_plain(const struct program *p, const struct access *a) {
    const struct buffer *b = &p->buffer[a->buffer];
    uint64_t seen = 0;
    for (int d = 0; d < b->ndims; d++) {
        int found = -1;
        if (access_coef(p, a, d, p->naxes) != 0) return false;
        for (int x = 0; x < p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (!c || p->axis[x].extent == 1) continue;
            if (c != 1 || found >= 0 || seen >> x & 1) return false;
            found = x;
            seen |= UINT64_C(1) << x;
        }
        if (b->extent[d] != (found < 0 ? 1 : p->axis[found].extent)) return false;
    }
    return true;
}

static bool fills_neutral(const struct program *p, const struct stmt *fill, const struct stmt *s) {
    struct arena scratch;
    enum type t = p->buffer[s->dst.buffer].type;
    union value neutral = combiner_neutral(s->combine, t);
    if (fill->combine != COMBINE_SET || fill->nwhere || !access_plain(p, &fill->dst)) return false;
    arena_init(&scratch);
    struct term term = term_of(&scratch, p, fill);
    const struct term_node *root = &term.at[term.root];
    bool same = root->constant &&
                (type_is_float(t) ? root->value.f == neutral.f : root->value.i == neutral.i);
    arena_free(&scratch);
    return same;
}

int init_of(const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    int at = 0;
    while (at < p->nitems && !(p->item[at].kind == ITEM_STMT && p->item[at].stmt == stmt)) at++;
    if (at == p->nitems || s->combine == COMBINE_SET || s->nwhere || !access_plain(p, &s->dst))
        return -1;
    while (at-- > 0) {
        const struct item *item = &p->item[at];
        if (item->kind == ITEM_STMT && p->stmt[item->stmt].scope != s->scope) return -1;
        if (!items_touch(p, item, 1, s->dst.buffer)) continue;
        if (item->kind != ITEM_STMT || p->stmt[item->stmt].dst.buffer != s->dst.buffer) return -1;
        return fills_neutral(p, &p->stmt[item->stmt], s) ? item->stmt : -1;
    }
    return -1;
}

/* ---- V5 ---- */

int64_t group_extent(const struct program *p, const struct group *g) {
    int64_t extent = 1;
    for (int k = 0; k < g->n; k++) extent *= p->axis[g->axis[k]].extent;
    return extent;
}

/* The needle's extent for a group, and how many issues of it cover the group; the last may be
 * smaller. */
static void axis_tiles(const struct needle_axis *x, int64_t extent, int64_t *tile, int64_t *full,
                       int64_t *rest) {
    int64_t most = x->hi < 0 || x->hi > extent ? extent : x->hi;
    *tile = x->lo + (most > x->lo ? (most - x->lo + x->step - 1) / x->step * x->step : 0);
    if (x->hi >= 0 && *tile > x->hi) *tile -= x->step;
    if (*tile < x->lo) *tile = x->lo;
    *full = extent / *tile;
    int64_t left = extent % *tile;
    *rest = left == 0       ? 0
            : left <= x->lo ? x->lo
                            : x->lo + (left - x->lo + x->step - 1) / x->step * x->step;
}

double axis_executed(const struct needle_axis *x, int64_t extent) {
    int64_t tile, full, rest;
    axis_tiles(x, extent, &tile, &full, &rest);
    return (double)tile * (double)full + (double)(x->ranged < 0 && rest > 0 ? tile : rest);
}

void mapping_sizes(const struct needle *n, const struct program *p, const struct group *g,
                   int64_t *size) {
    memcpy(size, n->size, sizeof n->size);
    for (int x = 0; x < n->naxes; x++) {
        int64_t tile, full, rest;
        int i = n->axis[x].ranged;
        axis_tiles(&n->axis[x], group_extent(p, &g[x]), &tile, &full, &rest);
        if (i >= 0) size[i] = tile - (n->program->axis[x].extent - n->size[i]);
    }
}

bool padding_legal(const struct needle *n, const struct program *p, const struct group *g) {
    for (int x = 0; x < n->naxes; x++) {
        int64_t tile, full, rest, extent = group_extent(p, &g[x]);
        axis_tiles(&n->axis[x], extent, &tile, &full, &rest);
        bool reduces = n->axis[x].reduction || n->whole >> x & 1;
        if (reduces && tile * full + rest != extent && !(n->absorbing >> x & 1)) return false;
    }
    return true;
}

/* ---- V2 ---- */

int64_t linear_stride(const struct program *p, const struct access *a, int axis) {
    const struct buffer *b = &p->buffer[a->buffer];
    int64_t stride = 1, sum = 0;
    for (int d = b->ndims; d-- > 0; stride *= b->extent[d])
        sum += access_coef(p, a, d, axis) * stride;
    return sum;
}

/* Columns of each group are collinear with mixed-radix strides in the row-major buffer; all zero:
 * one element is repeated. */
bool operand_direct(const struct needle *n, const struct program *p, const struct access *a,
                    const struct group *g, int operand) {
    for (int x = 0; x < n->naxes; x++) {
        if (!(n->axis[x].signature >> operand & 1)) continue;
        for (int k = 0; k + 1 < g[x].n; k++) {
            int inner = g[x].axis[k + 1];
            if (linear_stride(p, a, g[x].axis[k]) !=
                linear_stride(p, a, inner) * p->axis[inner].extent)
                return false;
        }
        if (g[x].n > 1 && a->has_fill) return false;
    }
    return true;
}

uint64_t operand_broadcast(const struct needle *n, const struct program *p, const struct stmt *s,
                           const struct mapping *m, int operand) {
    const struct access *a = mapped_access(s, &m->operand[operand]), *na = n->access[operand];
    int rank = n->program->buffer[na->buffer].ndims;
    uint64_t mask = 0;
    for (int x = 0; a && x < n->naxes; x++) {
        bool repeated = m->group[x].n > 0;
        for (int k = 0; k < m->group[x].n; k++)
            repeated &= !access_varies(p, a, m->group[x].axis[k]);
        for (int d = 0; repeated && d < rank; d++)
            if (access_coef(n->program, na, d, x)) mask |= UINT64_C(1) << (rank - 1 - d);
    }
    return mask;
}

/* ---- price ---- */

static double issue_cycles(const struct needles *all, const struct needle *n,
                           const struct program *p, const struct group *g, int x, int64_t *size,
                           double issues, double *points) {
    if (x == n->naxes) return issues * needle_issue_cost(all->machine, n, size);
    int64_t tile, full, rest;
    int i = n->axis[x].ranged;
    axis_tiles(&n->axis[x], group_extent(p, &g[x]), &tile, &full, &rest);
    if (i < 0) {
        *points *= (double)(tile * (full + (rest > 0)));
        return issue_cycles(all, n, p, g, x + 1, size, issues * (double)(full + (rest > 0)),
                            points);
    }
    int64_t beside = n->program->axis[x].extent - n->size[i];
    double cost = 0, unused = 1;
    *points *= (double)(tile * full + rest);
    size[i] = tile - beside;
    if (full > 0) cost += issue_cycles(all, n, p, g, x + 1, size, issues * (double)full, points);
    size[i] = rest - beside;
    if (rest > 0)
        cost += issue_cycles(all, n, p, g, x + 1, size, issues, full > 0 ? &unused : points);
    return cost;
}

/* `stepped`: axes that moves follow in larger steps. */
static bool dimension_shared(const struct program *p, const struct access *a, uint64_t mapped,
                             uint64_t stepped) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int n = 0;
        for (int x = 0; x < p->naxes; x++)
            if (mapped >> x & 1 && access_coef(p, a, d, x)) {
                n++;
                if (llabs(access_coef(p, a, d, x)) > 1 && !(stepped >> x & 1)) return true;
            }
        if (n > 1) return true;
    }
    return false;
}

bool leaves_buffer(const struct program *p, const struct stmt *s, const struct access *a) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t lo, hi;
        access_range(p, s, a, d, &lo, &hi);
        if (lo < 0 || hi >= p->buffer[a->buffer].extent[d]) return true;
    }
    return false;
}

static bool on_device(const struct needles *all, const struct needle *n) {
    int queue = all->machine->instr[n->instr].queue;
    return queue >= 0 && !machine_queue_is_host(all->machine, queue);
}

/* Not where elements are repeated: other moves do that. Nor where a CPU reads the same elements for
 * several results: masks are made for each read, a copy is made once. */
static bool moved_once(const struct needles *all, const struct needle *n, const struct program *p,
                       const struct mapping *m, int i) {
    const struct stmt *s = &p->stmt[m->stmt];
    const struct access *a = mapped_access(s, &m->operand[i]);
    if (operand_broadcast(n, p, s, m, i)) return false;
    for (int x = 0; x < p->naxes && !on_device(all, n); x++)
        if ((s->axes >> x & 1) && p->axis[x].extent > 1 && access_varies(p, &s->dst, x) &&
            !access_varies(p, a, x))
            return false;
    return true;
}

static bool among_memories(const struct operand *o, uint64_t memories) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] >= 0 && o->memory[k] < 64 && memories >> o->memory[k] & 1) return true;
    return false;
}

static bool padded_by_move(const struct needles *all, const struct needle *n,
                           const struct program *p, const struct mapping *m, int i) {
    return among_memories(&all->machine->instr[n->instr].operand[i], all->moves.pads) &&
           moved_once(all, n, p, m, i);
}

/* A move takes elements of the innermost dimension that are as far apart as the axis goes. */
static bool stepped_by_move(const struct needles *all, const struct needle *n,
                            const struct program *p, const struct mapping *m, int i, int axis) {
    const struct access *a = mapped_access(&p->stmt[m->stmt], &m->operand[i]);
    int64_t by = linear_stride(p, a, axis);
    for (int k = 0; by > 1 && k < all->moves.nsteps; k++)
        if (all->moves.step[k].by == by &&
            among_memories(&all->machine->instr[n->instr].operand[i], all->moves.step[k].into) &&
            moved_once(all, n, p, m, i))
            return access_coef(p, a, p->buffer[a->buffer].ndims - 1, axis) == by;
    return false;
}

/* May a tile begin at any of the operand's rows, which its first dimension counts? Not where a word
 * of the memory holds several rows of fixed length. */
static bool rows_are_words(const struct needles *all, const struct needle *n, int o) {
    const struct operand *op = &all->machine->instr[n->instr].operand[o];
    const struct buffer *b = &n->program->buffer[n->access[o]->buffer];
    int64_t row = (int64_t)type_size(b->type);
    for (int d = 1; d < b->ndims; d++) row *= b->extent[d];
    for (int x = 0; x < n->naxes; x++)
        for (int d = 1; d < b->ndims; d++)
            if (n->axis[x].ranged >= 0 && access_coef(n->program, n->access[o], d, x)) return true;
    for (int k = 0; k < op->nmemories; k++) {
        int64_t word = op->memory[k] >= 0 ? all->machine->memory[op->memory[k]].word : 1;
        if (word > 1 && row % word != 0) return false;
    }
    return true;
}

/* What a program makes on the way: the device waits while it is copied. A caller's array is copied
 * beside the work before. */
static bool made_on_the_way(const struct program *p, const struct access *a) {
    return p->buffer[a->buffer].role == ROLE_TEMP && !buffer_steady(p, a->buffer);
}

/* Axes of windows (q + s) that the instruction walks itself, in the same proportion: it finds them
 * in the rows as they are. */
static uint64_t own_windows(const struct needle *n, const struct program *p,
                            const struct mapping *m, const struct access *na,
                            const struct access *a) {
    uint64_t own = 0;
    for (int d = 0; d < n->program->buffer[na->buffer].ndims; d++)
        for (int x = 0; x < n->naxes; x++)
            for (int y = 0; y < x; y++) {
                int64_t nx = access_coef(n->program, na, d, x),
                        ny = access_coef(n->program, na, d, y);
                if (!nx || !ny || m->group[x].n != 1 || m->group[y].n != 1) continue;
                int px = m->group[x].axis[0], py = m->group[y].axis[0];
                for (int e = 0; e < p->buffer[a->buffer].ndims; e++) {
                    int64_t cx = access_coef(p, a, e, px), cy = access_coef(p, a, e, py);
                    if (cx && cy && cx * ny == cy * nx)
                        own |= UINT64_C(1) << px | UINT64_C(1) << py;
                }
            }
    return own;
}

/* Does the operand have neighbours along the axis side by side, whatever its last dimension is? */
static bool packed_along(const struct needles *all, const struct needle *n, int o, int x) {
    const struct operand *op = &all->machine->instr[n->instr].operand[o];
    const struct access *a = n->access[o];
    const struct buffer *b = &n->program->buffer[a->buffer];
    const struct layout *map = op->layout[0].map;
    int64_t stride[MAX_PLACES], index[MAX_DIMS] = {0}, next[MAX_DIMS] = {0};
    if (op->nlayouts != 1 || !map || layout_spreads(map) || n->axis[x].hi == 1) return false;
    for (int d = 0; d < b->ndims; d++) next[d] = access_coef(n->program, a, d, x);
    layout_strides(map, b->ndims, b->extent, stride);
    return layout_offset(map, b->ndims, b->extent, stride, next) -
               layout_offset(map, b->ndims, b->extent, stride, index) ==
           1;
}

/* Axes of which an issue's elements begin at multiples of their number: all but a device's rows,
 * and those that a CPU's operand has inside of another one, side by side. */
static bool begins_in_steps(const struct needles *all, const struct needle *n,
                            const struct program *p, const struct access *a, int o, int x) {
    bool inside = false;
    if (!on_device(all, n)) {
        for (int y = 0; y < n->naxes; y++)
            inside |= y != x && n->axis[y].hi > 1 && n->axis[y].signature >> o & 1;
        return inside && packed_along(all, n, o, x);
    }
    bool rows = !made_on_the_way(p, a) || rows_are_words(all, n, o);
    for (int d = rows ? 1 : 0; d < n->program->buffer[n->access[o]->buffer].ndims; d++)
        inside |= access_coef(n->program, n->access[o], d, x) != 0;
    return inside && n->axis[x].hi > 1;
}

/* Does another axis of the statement move the operand along the k-th axis of the group on x,
 * between two places where an issue may begin? In elements of the group, which only its first axis
 * counts on a CPU: what is inside of one is taken apart there. */
static bool moved_between(const struct program *p, const struct stmt *s, const struct access *a,
                          const struct group *g, int k, int64_t step, bool device, uint64_t own) {
    int x = g->axis[k];
    int64_t weight = 1;
    for (int i = k + 1; i < g->n && !device; i++) weight *= p->axis[g->axis[i]].extent;
    for (int b = 0; b < p->naxes; b++) {
        if (b == x || !(s->axes >> b & 1) || p->axis[b].extent == 1 || (own >> b & own >> x & 1))
            continue;
        for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
            int64_t by = access_coef(p, a, d, x) ? access_coef(p, a, d, b) : 0;
            if (by * weight % step || (by && k > 0 && !device)) return true;
        }
    }
    return false;
}

/* A window (q + s) along such an axis is copied, a tile for each step, but for the instruction's
 * own. */
static bool window_in_tiles(const struct needles *all, const struct needle *n,
                            const struct program *p, const struct mapping *m, int o) {
    const struct stmt *s = &p->stmt[m->stmt];
    const struct access *a = mapped_access(s, &m->operand[o]);
    uint64_t own = own_windows(n, p, m, n->access[o], a);
    bool device = on_device(all, n);
    for (int x = 0; x < n->naxes; x++) {
        const struct group *g = &m->group[x];
        bool steps = g->n > 0 && begins_in_steps(all, n, p, a, o, x);
        if (device && !steps) continue;
        for (int k = 0; k < g->n && n->axis[x].signature >> o & 1; k++)
            if (moved_between(p, s, a, g, k, steps ? n->axis[x].hi : 1, device, own)) return true;
    }
    return false;
}

/* Elements of a copy by axes: a dimension that no mapped axis moves stays as it is. */
static double elements_by_axes(const struct program *p, const struct stmt *s,
                               const struct access *a, uint64_t mapped) {
    double all = 1;
    uint64_t done = 0;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        double range = 1, product = 1;
        bool walked = false;
        for (int x = 0; x < p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (!(s->axes >> x & 1) || !c) continue;
            walked |= mapped >> x & 1;
            range += (double)llabs(c) * (double)(p->axis[x].extent - 1);
            if (!(done >> x & 1)) product *= (double)p->axis[x].extent;
            done |= UINT64_C(1) << x;
        }
        all *= walked ? product : fmin(range, product);
    }
    return all;
}

/* Does an issue take elements of the home side by side, where they may not be further apart? */
static bool dense_along(const struct needles *all, const struct needle *n, int o, int x) {
    const struct operand *op = &all->machine->instr[n->instr].operand[o];
    return n->axis[x].hi > 1 && op->nlayouts == 1 && !op->layout[0].map &&
           op->layout[0].nstrides == 0;
}

/* Is the group, in whole tiles, all that the buffer has, row by row? */
static bool is_whole_run(const struct needle_axis *axis, const struct program *p,
                         const struct access *a, const struct group *g) {
    int64_t extent = group_extent(p, g);
    return extent == p->buffer[a->buffer].elements && extent % axis->hi == 0;
}

/* Does the scheduler have to copy the operand into another order? Fused groups, but for whole
 * buffers that a CPU runs through; windows that share a dimension, fills that no move makes, and
 * arrays of the caller whose mapped axis is not the innermost one; rows that the operand has
 * interleaved have two such axes. */
static bool operand_copied(const struct needles *all, const struct needle *n,
                           const struct program *p, const struct mapping *m, int o) {
    const struct access *a = mapped_access(&p->stmt[m->stmt], &m->operand[o]);
    const struct access *na = n->access[o];
    bool home = n->home >> o & 1;
    bool whole_runs = p->stmt[m->stmt].combine == COMBINE_SET && !has_device(all->machine);
    int last = n->program->buffer[na->buffer].ndims - 1;
    uint64_t mapped = 0, stepped = 0;
    if (!m->operand[o].direct) return true;
    if (a->has_fill && leaves_buffer(p, &p->stmt[m->stmt], a) &&
        (home || !padded_by_move(all, n, p, m, o)))
        return true;
    for (int x = 0; x < n->naxes; x++) {
        const struct group *g = &m->group[x];
        if (!(n->axis[x].signature >> o & 1)) continue;
        if (g->n > 1 && !(whole_runs && is_whole_run(&n->axis[x], p, a, g))) return true;
        for (int k = 0; k < g->n; k++) mapped |= UINT64_C(1) << g->axis[k];
        bool fast =
            last >= 0 && (access_coef(n->program, na, last, x) != 0 || packed_along(all, n, o, x));
        int inner = g->n ? g->axis[g->n - 1] : 0;
        int64_t stride = g->n ? linear_stride(p, a, inner) : 1;
        if (fast && g->n == 1 && stepped_by_move(all, n, p, m, o, inner))
            stepped |= UINT64_C(1) << inner;
        else if (fast && (!home || dense_along(all, n, o, x)) &&
                 p->buffer[a->buffer].role != ROLE_TEMP && stride != 1 && stride != 0)
            return true;
    }
    return dimension_shared(p, a, mapped & ~own_windows(n, p, m, na, a), stepped);
}

/* A later statement goes on with the result, and pays for its order. */
bool stmt_continued(const struct program *p, int stmt) {
    for (int s = stmt + 1; s < p->nstmts; s++)
        if (p->stmt[s].combine != COMBINE_SET && p->stmt[s].dst.buffer == p->stmt[stmt].dst.buffer)
            return true;
    return false;
}

/* ---- rows that a sum crosses ---- */

/* Cycles that computing does not hide of a line that no prefetcher brings; *line: its bytes. */
static double lone_line(const struct machine *m, int64_t *line) {
    for (int k = 0; k < m->nmemories; k++) {
        const struct memory *c = &m->memory[k];
        if (c->caches < 0 || m->memory[c->caches].caches >= 0 || c->line <= 0 || c->ways == 0)
            continue;
        *line = c->line;
        return m->memory[c->caches].latency * (1 - c->hidden);
    }
    *line = 1;
    return 0;
}

/* Weights as they are written down, of which an issue reads one element and the sum's next step one
 * of another row: a tile finds a few neighbours in each line, and each line comes for itself from
 * behind the caches. What a program computes or is given lies in them. */
static bool crosses_rows(const struct program *p, const struct stmt *s, const struct access *a,
                         uint64_t mapped) {
    const struct buffer *b = &p->buffer[a->buffer];
    uint64_t along = 0, all = 0, result = 0;
    int last = b->ndims - 1;
    while (last > 0 && b->extent[last] == 1) last--;
    for (int x = 0; x < p->naxes; x++) {
        uint64_t bit = UINT64_C(1) << x;
        if (!(s->axes & bit) || p->axis[x].extent < 2) continue;
        if (access_varies(p, a, x)) all |= bit;
        if (last >= 0 && access_coef(p, a, last, x)) along |= bit;
        if (access_varies(p, &s->dst, x)) result |= bit;
    }
    return b->role == ROLE_CONST && along && !(along & ~result) && all & ~result && !(all & mapped);
}

static double rows_price(const struct needles *all, const struct needle *n, const struct program *p,
                         const struct mapping *m, uint64_t mapped) {
    const struct stmt *s = &p->stmt[m->stmt];
    int64_t line;
    double sum = 0, each = on_device(all, n) ? 0 : lone_line(all->machine, &line);
    for (int o = 0; o < n->noperands && each > 0 && s->combine != COMBINE_SET; o++) {
        const struct access *a = mapped_access(s, &m->operand[o]);
        if (!a || o == n->dst || !crosses_rows(p, s, a, mapped)) continue;
        const struct buffer *b = &p->buffer[a->buffer];
        sum += each * (double)b->elements * (double)type_size(b->type) / (double)line;
    }
    return sum;
}

/* How a CPU copies windows by axes: what mapped axes walk is taken apart, other dimensions stay.
 * For a device they count as copied one by one: by the lower price MobileNet-V2 took 6 % longer on
 * gemmini, of which the host's copies had the most. */
static enum copy_kind kind_of_windows(const struct program *p, const struct stmt *s,
                                      const struct access *a, uint64_t mapped, bool device) {
    uint64_t apart = 0, movers = 0;
    if (device) return COPY_ANY;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        movers = 0;
        for (int x = 0; x < p->naxes; x++)
            if ((s->axes >> x & 1) && access_coef(p, a, d, x)) movers |= UINT64_C(1) << x;
        if (movers & mapped) apart |= movers;
    }
    return !(movers & mapped) || copied_in_vectors(p, apart, a, NULL) ? COPY_TURN : COPY_ANY;
}

/* What a device moves of a copy by axes beyond the tensor itself: each element as often as the copy
 * has it, in whole tiles. What nobody waits for passes beside the issues. */
static double moves_price(const struct needles *all, const struct needle *n,
                          const struct program *p, const struct mapping *m, int o,
                          double elements) {
    const struct access *a = mapped_access(&p->stmt[m->stmt], &m->operand[o]);
    double own = (double)p->buffer[a->buffer].elements,
           each = operand_in_cost(all, n, o, operand_broadcast(n, p, &p->stmt[m->stmt], m, o));
    for (int x = 0; x < n->naxes; x++) {
        double extent = (double)group_extent(p, &m->group[x]);
        if (n->axis[x].signature >> o & 1 && m->group[x].n > 0)
            elements *= axis_executed(&n->axis[x], (int64_t)extent) / extent;
    }
    if (elements <= own || isinf(each)) return 0;
    double beside = made_on_the_way(p, a) ? 0 : m->cost;
    return reference_cycles(all->machine, all->machine->instr[n->instr].unit,
                            fmax(0, each * (elements - own) - beside));
}

/* What is made once counts little beside a run, and less beside one step of many. */
static const double PREPARED = 0.02, PREPARED_FOR_STEPS = 0.001;

double prepared_price(const struct machine *m, double elements) {
    return PREPARED * elements * copy_interval(m, COPY_TURN);
}

/* For a device the host copies: callers' arrays beside the work before, and what a program makes on
 * the way for a product, one way, while the device waits for it. */
static void copies_price(const struct needles *all, const struct needle *n, const struct program *p,
                         struct mapping *m, uint64_t mapped) {
    const struct stmt *s = &p->stmt[m->stmt];
    bool device = on_device(all, n), waits = stmt_is_mac(p, s);
    m->copies = rows_price(all, n, p, m, mapped);
    m->hidden = 0;
    for (int o = 0; o < n->noperands; o++) {
        const struct access *a = mapped_access(s, &m->operand[o]);
        if (!a || (o == n->dst && stmt_continued(p, m->stmt))) continue;
        bool windows = window_in_tiles(all, n, p, m, o);
        if (!windows && !operand_copied(all, n, p, m, o)) continue;
        windows |= dimension_shared(p, a, mapped & ~own_windows(n, p, m, n->access[o], a), 0);
        double once = !buffer_steady(p, a->buffer) ? 1
                      : s->scope                   ? PREPARED_FOR_STEPS
                                                   : PREPARED,
               elements = elements_by_axes(p, s, a, mapped);
        if (!windows && elements > (double)p->buffer[a->buffer].elements)
            elements = (double)p->buffer[a->buffer].elements;
        double cycles =
            2 * once * elements *
            copy_interval(all->machine,
                          windows ? kind_of_windows(p, s, a, mapped, device) : COPY_TURN);
        bool made = made_on_the_way(p, a);
        double hidden = !device                        ? 0
                        : waits && o != n->dst && made ? cycles / 2
                                                       : cycles * all->machine->copies_hidden;
        m->copies += cycles - hidden;
        m->hidden += hidden;
        if (device && windows && waits && o != n->dst)
            m->copies += moves_price(all, n, p, m, o, elements);
    }
}

void mapping_price(const struct needles *all, const struct needle *n, const struct program *p,
                   struct mapping *m) {
    const struct stmt *s = &p->stmt[m->stmt];
    int64_t size[MAX_RANGED];
    uint64_t mapped = 0;
    double outer = 1, points = 1, inside = 1;
    memcpy(size, n->size, sizeof size);
    for (int x = 0; x < n->naxes; x++)
        for (int k = 0; k < m->group[x].n; k++) mapped |= UINT64_C(1) << m->group[x].axis[k];
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1) *(mapped >> a & 1 ? &inside : &outer) *= (double)p->axis[a].extent;
    m->cost = outer * issue_cycles(all, n, p, m->group, 0, size, 1, &points);
    m->waste = points / inside;
    copies_price(all, n, p, m, mapped);
}
