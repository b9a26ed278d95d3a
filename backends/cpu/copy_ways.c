#if ISAMAP_WITH_LLVM
/* Which loops a copy has: where its elements lie on both sides, and which axes are written out. */
#include "backends/cpu/copy_int.h"
#include "ir/memory.h"
#include "machines/layout.h"

#include <stdlib.h>
#include <string.h>

/* ---- where elements lie ---- */

static int64_t offset_at(const struct copier *c, int side, const int64_t *value) {
    const struct place *p = c->place[side];
    const struct buffer *b = &c->program->buffer[p->buffer];
    const int64_t *extent = p->extent ? p->extent : b->extent;
    int64_t index[MAX_DIMS] = {0};
    int n = c->program->naxes;
    for (int d = 0; d < b->ndims; d++) {
        const int64_t *coef = &c->access[side]->coef[d * (n + 1)];
        index[d] = coef[n];
        for (int a = 0; a < n; a++) index[d] += coef[a] * value[a];
    }
    return layout_offset(p->layout, b->ndims, extent, NULL, index) * c->size;
}

int64_t step_of(const struct copier *c, int side, int axis, int64_t by) {
    int64_t value[MAX_AXES] = {0};
    value[axis] = by;
    return offset_at(c, side, value) - c->start[side];
}

uint64_t all_entries(const struct copier *c) {
    return c->nentries == 64 ? UINT64_MAX : (UINT64_C(1) << c->nentries) - 1;
}

/* Of a dimension that the axis alone walks: a block as long as the part that is copied, which
 * begins where the block does, cuts nothing. */
static bool is_uncut(const struct copier *c, int side, int d, int axis, int64_t block) {
    const struct program *p = c->program;
    const struct access *a = c->access[side];
    for (int x = 0; x < p->naxes; x++)
        if (x != axis && (c->stmt->axes >> x & 1) && p->axis[x].extent > 1 &&
            access_coef(p, a, d, x))
            return false;
    return access_coef(p, a, d, axis) == 1 && access_coef(p, a, d, p->naxes) == 0 &&
           c->extent[axis] <= block && c->grid[axis] % block == 0;
}

struct cut { /* of a dimension of one side, by the axis */
    const struct copier *c;
    int side, dim, axis;
};

struct blocks { /* smallest first, each a part of the next */
    int64_t size[MAX_BLOCKS];
    int n;
};

static bool blocks_add(struct blocks *b, int64_t size) {
    int at = 0;
    while (at < b->n && b->size[at] < size) at++;
    if (at < b->n && b->size[at] == size) return true;
    if (b->n == MAX_BLOCKS || (at > 0 && size % b->size[at - 1]) ||
        (at < b->n && b->size[at] % size))
        return false;
    memmove(&b->size[at + 1], &b->size[at], sizeof b->size[0] * (size_t)(b->n++ - at));
    b->size[at] = size;
    return true;
}

static bool divisors_of(const struct cut *x, const struct lexpr *e, struct blocks *found) {
    if (e->op == 'n' || e->op == 'i') return true;
    if ((e->op == '/' || e->op == '%') && e->b->op == 'n') {
        const struct lexpr *of = e->a;
        if (of->op == 'i' && of->index == x->dim)
            return is_uncut(x->c, x->side, x->dim, x->axis, e->b->number) ||
                   blocks_add(found, e->b->number);
    }
    return divisors_of(x, e->a, found) && divisors_of(x, e->b, found);
}

/* Several axes that meet in a dimension cut into blocks lie in equal steps only where all but one
 * step over whole blocks, or where together they stay within one. */
static bool meet_in_blocks(const struct copier *c, int side, int d, int64_t block) {
    const struct program *p = c->program;
    const struct access *a = c->access[side];
    int64_t within = access_coef(p, a, d, p->naxes) % block;
    int n = 0;
    if (within < 0) within += block;
    for (int x = 0; x < p->naxes; x++) {
        int64_t coef = access_coef(p, a, d, x);
        if (!(c->stmt->axes >> x & 1) || p->axis[x].extent == 1 || coef % block == 0) continue;
        if (c->listed >> x & 1) return false;
        within += coef < 0 ? block : coef * (p->axis[x].extent - 1);
        n++;
    }
    return n < 2 || within < block;
}

/* The blocks in which the layouts cut an axis; false: they do not lie in one another. */
static bool blocks_of(const struct copier *c, int axis, struct blocks *blocks) {
    *blocks = (struct blocks){.n = 0};
    for (int side = 0; side < 2; side++) {
        const struct layout *l = c->place[side]->layout;
        for (int d = 0; l && d < c->program->buffer[c->place[side]->buffer].ndims; d++) {
            if (!access_coef(c->program, c->access[side], d, axis)) continue;
            struct cut cut = {c, side, d, axis};
            for (int k = 0; k < l->nplaces; k++)
                if (!divisors_of(&cut, l->place[k].expr, blocks)) return false;
            for (int k = 0; k < blocks->n; k++)
                if (!meet_in_blocks(c, side, d, blocks->size[k])) return false;
        }
    }
    return true;
}

bool has_turns(const struct copier *c, int axis) {
    return c->start_low[axis] <= c->start_high[axis];
}

/* Values of the axis between which the entry's source is inside; false: other axes count too. */
static bool inside_range(const struct copier *c, const struct entry *e, int axis, int64_t *lo,
                         int64_t *hi) {
    const struct access *a = c->access[0];
    const struct buffer *b = &c->program->buffer[a->buffer];
    *lo = 0;
    *hi = c->extent[axis];
    for (int d = 0; a->has_fill && d < b->ndims; d++) {
        int64_t coef = access_coef(c->program, a, d, axis),
                at = access_coef(c->program, a, d, c->program->naxes);
        for (int x = 0; x < c->program->naxes; x++)
            at += access_coef(c->program, a, d, x) * e->value[x];
        int64_t low = at, high = at;
        for (int x = 0; x < c->program->naxes; x++) {
            int64_t k = access_coef(c->program, a, d, x) * (c->program->axis[x].extent - 1);
            if (!(c->stmt->axes >> x & 1) || c->listed >> x & 1) continue;
            low += k < 0 ? k : 0;
            high += k > 0 ? k : 0;
        }
        if (low >= 0 && high < b->extent[d]) continue;
        if (!coef) continue;
        if (coef < 0) return false;
        for (int x = 0; x < c->program->naxes; x++)
            if (x != axis && access_coef(c->program, a, d, x) && c->program->axis[x].extent > 1 &&
                !(c->listed >> x & 1))
                return false;
        int64_t end = at + coef * (c->start_high[axis] + c->extent[axis] - 1);
        at += coef * c->start_low[axis];
        if ((at >= 0 && end < b->extent[d]) || !has_turns(c, axis)) continue;
        if (c->start_low[axis] < c->start_high[axis]) return false;
        int64_t first = at < 0 ? (-at + coef - 1) / coef : 0,
                last = at > b->extent[d] - 1 ? 0 : (b->extent[d] - 1 - at) / coef + 1;
        if (first > *lo) *lo = first;
        if (last < *hi) *hi = last;
    }
    if (*lo > *hi) *lo = *hi;
    return true;
}

/* Is some index of the entry the same everywhere, and outside the source? */
static bool always_outside(const struct copier *c, const struct entry *e) {
    const struct access *a = c->access[0];
    const struct buffer *b = &c->program->buffer[a->buffer];
    for (int d = 0; a->has_fill && d < b->ndims; d++) {
        int64_t at = access_coef(c->program, a, d, c->program->naxes);
        bool moves = false;
        for (int x = 0; x < c->program->naxes; x++)
            at += access_coef(c->program, a, d, x) * e->value[x];
        for (int i = 0; i < c->naxes; i++) moves |= access_coef(c->program, a, d, c->axis[i]) != 0;
        if (!moves && (at < 0 || at >= b->extent[d])) return true;
    }
    return false;
}

/* ---- pieces ---- */

/* From value lo on, n values in whole blocks of the `level` smallest sizes. */
static struct piece piece_make(const struct copier *c, int axis, const struct blocks *b, int level,
                               int64_t lo, int64_t n, uint64_t outside) {
    struct piece p = {
        .from = step_of(c, 0, axis, lo), .to = step_of(c, 1, axis, lo), .outside = outside};
    for (int k = level; k >= 0; k--) {
        int64_t by = k ? b->size[k - 1] : 1;
        if (n / by > 1 || k == 0)
            p.walk[p.n++] = (struct walk){n / by, step_of(c, 0, axis, by), step_of(c, 1, axis, by)};
        n = by;
    }
    return p;
}

/* The values lo to hi - 1: the rest of a block, whole blocks, the first values of the last one; of
 * both ends, which lie within one block, the same by smaller blocks. */
static int range_pieces(const struct copier *c, int axis, const struct blocks *b, int level,
                        int64_t lo, int64_t hi, uint64_t outside, struct piece *out) {
    if (level == 0) {
        if (lo < hi) *out = piece_make(c, axis, b, 0, lo, hi - lo, outside);
        return lo < hi;
    }
    int64_t size = b->size[level - 1], first = (lo + size - 1) / size * size,
            last = hi / size * size;
    if (first >= last) {
        int64_t cut = first > hi ? hi : first;
        int n = range_pieces(c, axis, b, level - 1, lo, cut, outside, out);
        return n + range_pieces(c, axis, b, level - 1, cut, hi, outside, out + n);
    }
    int n = range_pieces(c, axis, b, level - 1, lo, first, outside, out);
    out[n++] = piece_make(c, axis, b, level, first, last - first, outside);
    return n + range_pieces(c, axis, b, level - 1, last, hi, outside, out + n);
}

/* Between neighbouring cuts each entry is inside, or outside. */
static int axis_pieces(const struct copier *c, int axis, struct piece *out) {
    int64_t range[MAX_LISTED][2], extent = c->extent[axis];
    struct blocks blocks;
    int n = 0;
    if (!blocks_of(c, axis, &blocks)) return 0;
    for (int k = 0; k < blocks.n; k++)
        if (c->grid[axis] % blocks.size[k]) return 0;
    while (blocks.n && blocks.size[blocks.n - 1] >= extent) blocks.n--;
    for (int e = 0; e < c->nentries; e++)
        if (!inside_range(c, &c->entry[e], axis, &range[e][0], &range[e][1])) return 0;
    for (int64_t at = 0, next; at < extent; at = next) {
        uint64_t outside = 0;
        next = extent;
        for (int e = 0; e < c->nentries; e++) {
            for (int k = 0; k < 2; k++)
                if (range[e][k] > at && range[e][k] < next) next = range[e][k];
            if (at < range[e][0] || at >= range[e][1]) outside |= UINT64_C(1) << e;
        }
        if (n + 2 * MAX_BLOCKS + 1 > MAX_CUTS) return 0;
        n += range_pieces(c, axis, &blocks, blocks.n, at, next, outside, out + n);
    }
    return n;
}

/* Do the elements of the part that begins there lie as from 0 on? */
static bool start_holds(const struct copier *c, int axis, int64_t at) {
    int64_t last = c->extent[axis] - 1;
    bool holds = true;
    for (int side = 0; side < 2 && at + last < c->program->axis[axis].extent; side++)
        holds &= step_of(c, side, axis, at + last) ==
                 step_of(c, side, axis, at) + step_of(c, side, axis, last);
    return holds;
}

/* Where the part begins at a multiple of the grid, its elements lie as from 0 on, and the first
 * ones follow each other in equal steps. */
static bool starts_hold(const struct copier *c, int axis) {
    int64_t g = c->grid[axis], n = g ? c->program->axis[axis].extent / g : 0;
    if (c->start_low[axis] == c->start_high[axis]) return start_holds(c, axis, c->start_low[axis]);
    if (n > MAX_STARTS) return false;
    for (int64_t k = 1; k < n; k++) {
        for (int side = 0; side < 2; side++) {
            int64_t step = step_of(c, side, axis, g);
            if (step % g || step_of(c, side, axis, k * g) != k * step) return false;
        }
        if (!start_holds(c, axis, k * g)) return false;
    }
    return true;
}

/* Do the pieces' strides say where the elements are? Tried at the last element of each piece alone,
 * and of all together. */
static bool pieces_hold(const struct copier *c, int axis, const struct piece *p, int n) {
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        int64_t from = p[i].from, to = p[i].to, count = 1;
        for (int k = 0; k < p[i].n; k++) {
            from += (p[i].walk[k].extent - 1) * p[i].walk[k].from;
            to += (p[i].walk[k].extent - 1) * p[i].walk[k].to;
            count *= p[i].walk[k].extent;
        }
        at += count;
        if (step_of(c, 1, axis, at - 1) != to) return false;
        if (p[i].outside != all_entries(c) && step_of(c, 0, axis, at - 1) != from) return false;
    }
    return at == c->extent[axis] && starts_hold(c, axis);
}

/* outside: the source of the entry is nowhere in its buffer. */
static bool axes_independent(const struct copier *c, const struct entry *e, bool outside) {
    int64_t value[MAX_AXES], sum[2] = {c->start[0] + e->from, c->start[1] + e->to};
    memcpy(value, e->value, sizeof value);
    for (int i = 0; i < c->naxes; i++) {
        int a = c->axis[i];
        int64_t last = c->extent[a] - 1;
        value[a] = last;
        for (int side = 0; side < 2; side++) sum[side] += step_of(c, side, a, last);
    }
    return (outside || offset_at(c, 0, value) == sum[0]) && offset_at(c, 1, value) == sum[1];
}

/* ---- entries ---- */

static int entry_order(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* All values of the listed axes. */
static void entries_make(struct copier *c) {
    int64_t value[MAX_AXES] = {0};
    int a;
    c->nentries = 0;
    c->never = 0;
    do {
        struct entry *e = &c->entry[c->nentries++];
        memcpy(e->value, value, sizeof value);
        e->from = offset_at(c, 0, value) - c->start[0];
        e->to = offset_at(c, 1, value) - c->start[1];
        for (a = 0; a < c->program->naxes; a++) {
            if (!(c->listed >> a & 1)) continue;
            if (++value[a] < c->extent[a]) break;
            value[a] = 0;
        }
    } while (a < c->program->naxes);
    qsort(c->entry, (size_t)c->nentries, sizeof *c->entry, entry_order);
    for (int e = 0; e < c->nentries; e++)
        if (always_outside(c, &c->entry[e])) c->never |= UINT64_C(1) << e;
}

/* Do both axes move one dimension, on some side? */
static bool meet(const struct copier *c, int x, int y) {
    for (int side = 0; side < 2; side++)
        for (int d = 0; d < c->program->buffer[c->access[side]->buffer].ndims; d++)
            if (access_coef(c->program, c->access[side], d, x) &&
                access_coef(c->program, c->access[side], d, y))
                return true;
    return false;
}

static bool may_list(const struct copier *c, int i) {
    int a = c->axis[i];
    return !c->grid[a] && c->extent[a] * c->nentries <= MAX_LISTED;
}

static void list_axis(struct copier *c, int i) {
    c->listed |= UINT64_C(1) << c->axis[i];
    memmove(&c->axis[i], &c->axis[i + 1], sizeof *c->axis * (size_t)(--c->naxes - i));
    entries_make(c);
}

/* Of an axis that cannot be walked and those that meet it the shortest one is written out; false:
 * there would be too many entries. */
static bool list_for(struct copier *c, int failed) {
    int best = -1;
    for (int i = 0; i < c->naxes; i++)
        if (may_list(c, i) && (i == failed || meet(c, c->axis[failed], c->axis[i])) &&
            (best < 0 || c->extent[c->axis[i]] < c->extent[c->axis[best]]))
            best = i;
    if (best >= 0) list_axis(c, best);
    return best >= 0;
}

/* An axis along which the destination goes on where the entries end, and which is too short to be a
 * row; -1: there is none. */
static int next_of_run(const struct copier *c) {
    int64_t run = c->nentries * c->size;
    if (c->entry[c->nentries - 1].to - c->entry[0].to != run - c->size) return -1;
    for (int i = 0; i < c->naxes; i++)
        if (may_list(c, i) && c->extent[c->axis[i]] < SQUARE && step_of(c, 1, c->axis[i], 1) == run)
            return i;
    return -1;
}

/* ---- the statement ---- */

/* The part from a loop's variable on, a multiple of g: `whole` elements in all turns but the last,
 * which has `rest`. false: otherwise. */
static bool part_lengths(const struct function *f, const struct sx *lo, const struct sx *hi,
                         int64_t g, int64_t extent, int64_t *whole, int64_t *rest) {
    int nvars = f->cpu->schedule->nvars;
    for (int v = 0; v < nvars; v++)
        if (v != lo->var && sx_uses(hi, v)) return false;
    if (extent / g > MAX_STARTS) return false;
    int64_t *value = memory_array((size_t)nvars + 1, sizeof *value);
    bool same = true;
    *whole = *rest = 0;
    for (int64_t at = 0; at < extent; at += g) {
        value[lo->var] = at;
        *rest = sx_eval(hi, value) - at;
        if (!at) *whole = *rest;
        same &= *rest == *whole || (at + g >= extent && *rest < *whole);
    }
    free(value);
    return same && *rest > 0 && *whole <= g;
}

/* Does the axis lead outside of the source somewhere? */
static bool leads_outside(const struct copier *c, int axis) {
    const struct access *a = c->access[0];
    const struct program *p = c->program;
    const struct buffer *b = &p->buffer[a->buffer];
    for (int d = 0; a->has_fill && d < b->ndims; d++) {
        int64_t low = access_coef(p, a, d, p->naxes), high = low;
        for (int x = 0; x < p->naxes; x++) {
            int64_t k = access_coef(p, a, d, x) * (p->axis[x].extent - 1);
            low += k < 0 ? k : 0;
            high += k > 0 ? k : 0;
        }
        if (access_coef(p, a, d, axis) && (low < 0 || high >= b->extent[d])) return true;
    }
    return false;
}

static void start_at(struct copier *c, int a, int64_t at) {
    c->grid[a] = c->start_low[a] = c->start_high[a] = at;
    c->first[a] = lv_const(c->f, at);
}

/* The part of the axis that the node names: all of it, or so much from a loop's variable on. */
static bool take_part(struct copier *c, const struct fallback_node *node, int a,
                      struct turns turns) {
    const struct sx *lo = node->lo ? node->lo[a] : NULL, *hi = node->hi ? node->hi[a] : NULL;
    int64_t extent = c->program->axis[a].extent, rest;
    c->extent[a] = extent;
    if (!lo && !hi) return true;
    if (!(c->stmt->axes >> a & 1)) return false;
    if (lo && hi && lo->op == SX_CONST && hi->op == SX_CONST) {
        c->extent[a] = hi->value - lo->value;
        start_at(c, a, lo->value);
        return lo->value >= 0 && c->extent[a] > 0 && hi->value <= extent;
    }
    if (!lo || !hi || lo->op != SX_VAR || !c->f->grid[lo->var]) return false;
    int64_t grid = c->f->grid[lo->var], last = (extent - 1) / grid * grid;
    bool apart = turns.apart >> a & 1;
    if (!part_lengths(c->f, lo, hi, grid, extent, &c->extent[a], &rest)) return false;
    if (turns.first >> a & 1 || !last) {
        start_at(c, a, 0);
        return true;
    }
    if (turns.last >> a & 1) {
        c->extent[a] = rest;
        start_at(c, a, last);
        return true;
    }
    bool shorter = rest < c->extent[a];
    if (shorter) c->ragged |= UINT64_C(1) << a;
    if (leads_outside(c, a)) c->edged |= UINT64_C(1) << a;
    c->grid[a] = grid;
    c->start_low[a] = apart ? grid : 0;
    c->start_high[a] = apart || shorter ? last - grid : last;
    c->first[a] = lv_sx(c->f, lo);
    return true;
}

bool copier_open(struct copier *c, struct function *f, const struct fallback_node *node,
                 struct entry *entry, struct turns turns) {
    const struct schedule *s = f->cpu->schedule;
    const struct program *p = s->program;
    const struct stmt *st = &p->stmt[node->stmt];
    *c = (struct copier){.f = f, .program = p, .stmt = st, .entry = entry};
    if (st->nops != 1 || st->op[0].code != OP_READ || st->nwhere || !stmt_order_free(st))
        return false;
    c->access[0] = &st->read[st->op[0].read];
    c->access[1] = &st->dst;
    const struct buffer *from = &p->buffer[c->access[0]->buffer], *to = &p->buffer[st->dst.buffer];
    if (from->type != to->type) return false;
    c->size = (int64_t)type_size(to->type);
    for (int side = 0; side < 2; side++) {
        int home = f->cpu->home[c->access[side]->buffer];
        if (home < 0) return false;
        c->place[side] = &s->place[home];
    }
    for (int a = 0; a < p->naxes; a++) {
        if (!take_part(c, node, a, turns)) return false;
        if (!(st->axes >> a & 1) || p->axis[a].extent == 1) continue;
        if (c->naxes == MAX_DIMS || p->axis[a].extent < 1) return false;
        c->axis[c->naxes++] = a;
    }
    int64_t zero[MAX_AXES] = {0};
    for (int side = 0; side < 2; side++) c->start[side] = offset_at(c, side, zero);
    return true;
}

/* The loops over the axes that are walked; *failed: the one that cannot be, or the last one. */
static bool find_pieces(const struct copier *c, struct ways *ways, int *failed) {
    int all = 1;
    *failed = c->naxes - 1;
    if (c->never == all_entries(c)) return false;
    for (int i = 0; i < c->naxes; i++) {
        *failed = i;
        ways->n[i] = axis_pieces(c, c->axis[i], ways->piece[i]);
        if (!ways->n[i] || !pieces_hold(c, c->axis[i], ways->piece[i], ways->n[i])) return false;
        all *= ways->n[i];
        if (all > MAX_PIECES) return false;
    }
    for (int e = 0; e < c->nentries; e++)
        if (!axes_independent(c, &c->entry[e], c->never >> e & 1)) return false;
    return true;
}

/* Writes out axes until the others can be walked, then those that make the entries' runs longer. */
bool find_ways(struct copier *c, struct ways *ways) {
    int failed, more;
    entries_make(c);
    while (!find_pieces(c, ways, &failed))
        if (failed < 0 || !list_for(c, failed)) return false;
    while ((more = next_of_run(c)) >= 0) {
        struct copier before = *c;
        list_axis(c, more);
        if (find_pieces(c, ways, &failed)) continue;
        *c = before;
        entries_make(c);
        return find_pieces(c, ways, &failed);
    }
    return true;
}
#endif
