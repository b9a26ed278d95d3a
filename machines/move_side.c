/* How far apart neighbours along an axis of a move lie on one of its sides. */
#include "machines/move_side.h"
#include "machines/layout.h"

static void index_at(const struct program *p, const struct access *a, int x, int64_t v,
                     int64_t index[MAX_DIMS]) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        index[d] = access_coef(p, a, d, p->naxes) + v * access_coef(p, a, d, x);
}

static int64_t place_at(const struct program *p, const struct access *a, const struct lexpr *e,
                        int x, int64_t v) {
    int64_t index[MAX_DIMS];
    index_at(p, a, x, v, index);
    return lexpr_eval(e, index);
}

/* Where a part of an axis moves an operand in a layout: the place that names its stride, and no
 * other, or the distance between neighbours, which must be the same everywhere. */
static bool layout_stride(const struct program *p, const struct access *a, const struct layout *map,
                          const struct strides *st, struct stretch part, int64_t *stride,
                          int *name) {
    const struct buffer *b = &p->buffer[a->buffer];
    int64_t index[MAX_DIMS], before = 0, n = part.mod ? part.mod : p->axis[part.x].extent;
    int named = 0, walked = 0;
    for (int i = 0; i < map->nplaces; i++) {
        const struct lexpr *e = map->place[i].expr;
        int64_t first = place_at(p, a, e, part.x, 0);
        bool moves = false, counts = true;
        for (int64_t k = 1; k < n || k < 2; k++) {
            int64_t by = place_at(p, a, e, part.x, k * part.div) - first;
            moves |= by != 0;
            counts &= by == k;
        }
        walked += moves;
        if (!moves || st->name[i] < 0) continue;
        if (named++ || !counts) return false;
        *name = st->name[i];
    }
    if (named) return walked == 1;
    for (int64_t k = 0; k < n; k++) {
        index_at(p, a, part.x, k * part.div, index);
        int64_t at = layout_offset(map, b->ndims, b->extent, st->stride, index);
        if (k == 1) *stride = at - before;
        if (k > 0 && at - before != *stride) return false;
        before = at;
    }
    return *stride >= 0;
}

/* The length of the blocks in which a layout's place cuts one of the dimensions that the axis
 * walks; 0: of none that is longer than `least`. The shortest. */
static int64_t place_block(const struct program *p, const struct access *a, const struct lexpr *e,
                           int x, int64_t least) {
    if (!e || e->op == 'n' || e->op == 'i') return 0;
    if ((e->op == '/' || e->op == '%') && e->a->op == 'i' && e->b->op == 'n')
        return e->b->number > least && access_coef(p, a, e->a->index, x) == 1 ? e->b->number : 0;
    int64_t l = place_block(p, a, e->a, x, least), r = place_block(p, a, e->b, x, least);
    return l && r ? (l < r ? l : r) : l + r;
}

static int64_t next_block(const struct program *p, const struct access *a, const struct layout *map,
                          int x, int64_t least) {
    int64_t found = 0;
    for (int i = 0; map && i < map->nplaces; i++) {
        int64_t n = place_block(p, a, map->place[i].expr, x, least);
        if (n && (!found || n < found)) found = n;
    }
    return found;
}

/* Does each place go along with the parts of the axis independently? */
static bool parts_add(const struct program *p, const struct access *a, const struct layout *map,
                      const struct stretch *part, int n) {
    for (int i = 0; map && i < map->nplaces; i++) {
        const struct lexpr *e = map->place[i].expr;
        int64_t first = place_at(p, a, e, part->x, 0);
        for (int64_t v = 0; v < p->axis[part->x].extent; v++) {
            int64_t sum = first;
            for (int k = 0; k < n; k++)
                sum +=
                    place_at(p, a, e, part->x, v / part[k].div % part[k].mod * part[k].div) - first;
            if (sum != place_at(p, a, e, part->x, v)) return false;
        }
    }
    return true;
}

bool side_stride(const struct machine *m, const struct instr *in, const struct program *p,
                 const struct access *a, int operand, bool dense, struct stretch part,
                 int64_t *stride, int *name) {
    int x = part.x;
    const struct operand_layout *l = &in->operand[operand].layout[0];
    const struct buffer *b = &p->buffer[a->buffer];
    *stride = 0;
    *name = -1;
    if (layout_spreads(l->map)) { /* a fragment, seen as a whole (struct form) */
        int64_t whole = FRAGMENT;
        for (int d = b->ndims - 1; d >= 0; d--, whole *= FRAGMENT) {
            int64_t c = access_coef(p, a, d, x);
            if (c && (c != 1 || *stride || b->ndims > 2 || part.mod)) return false;
            if (c) *stride = whole;
        }
        return true;
    }
    struct strides st;
    if (!operand_strides(m, in, operand, 0, p, &st)) return false;
    if (dense) {
        int64_t run[MAX_PLACES];
        layout_strides(l->map, b->ndims, b->extent, run);
        for (int i = 0; i < st.n; i++) st.stride[i] = run[i], st.name[i] = -1;
    }
    if (l->map) return layout_stride(p, a, l->map, &st, part, stride, name);
    for (int d = b->ndims - 1; d >= 0; d--) {
        int64_t c = access_coef(p, a, d, x);
        if (!c) continue;
        *name = (c == 1 && part.div == 1) || st.name[d] < 0 ? st.name[d] : -2;
        if (c < 1 || *stride || *name == -2) return false;
        if (*name < 0) *stride = st.stride[d] * c * part.div;
    }
    return true;
}

int axis_stretches(const struct program *p, const struct access *from, const struct layout *map,
                   const struct access *to, const struct layout *other, int x,
                   struct stretch part[MAX_NEEDLE]) {
    int64_t all = p->axis[x].extent, block = 1;
    int n = 0;
    for (; block < all && n < MAX_NEEDLE; n++) {
        int64_t a = next_block(p, from, map, x, block), b = next_block(p, to, other, x, block),
                next = !a || (b && b < a) ? b : a;
        if (!next || next > all) next = all;
        if (next % block || all % next) return 0;
        part[n] = (struct stretch){x, block, next / block};
        block = next;
    }
    bool sound =
        block == all && parts_add(p, from, map, part, n) && parts_add(p, to, other, part, n);
    return sound ? n : 0;
}
