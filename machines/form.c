/* How each axis of an instruction walks through each operand: the digits of the layouts' offsets.
 */
#include "machines/layout.h"
#include "machines/needle.h"
#include <string.h>

bool operand_strides(const struct machine *m, const struct instr *in, int operand, int layout,
                     const struct program *bound, struct strides *out) {
    const struct operand *o = &in->operand[operand];
    const struct operand_layout *l = &o->layout[layout];
    const struct buffer *b = &bound->buffer[o->kernel_buffer];
    int64_t extent[MAX_DIMS];
    out->n = l->map ? l->map->nplaces : b->ndims;
    if (out->n > MAX_DIMS) return false;
    if (l->map) {
        layout_extents(l->map, b->extent, extent);
        out->n = 0; /* places in units have no stride */
        for (int i = 0; i < l->map->nplaces; i++)
            if (!l->map->place[i].unit) extent[out->n++] = extent[i];
    } else {
        for (int d = 0; d < b->ndims; d++) extent[d] = b->extent[d];
    }
    int64_t run = 1;
    for (int d = out->n - 1; d >= 0; d--) {
        out->stride[d] = run;
        out->name[d] = -1;
        run *= extent[d];
    }
    for (int d = 0; l->stride && d < l->nstrides && d < out->n; d++) {
        const struct mexpr *e = l->stride[d];
        double v;
        if (e->kind == MEXPR_NAME)
            for (int s = 0; s < in->nstride_names; s++)
                if (!strcmp(in->stride_name[s], e->name)) out->name[d] = s;
        if (out->name[d] >= 0) continue;
        struct instr probe = *in;
        probe.latency = (struct mexpr *)e;
        v = -1;
        instr_times(m, &probe, bound, NULL, &v, NULL, NULL);
        if (v < 0) return false;
        out->stride[d] = (int64_t)v;
    }
    return true;
}

bool fragment_strides(const struct machine *m, const struct needle *nd, int operand,
                      const struct program *bound, int64_t *out) {
    struct strides st;
    if (!operand_strides(m, nd->in, operand, 0, bound, &st)) return false;
    for (int i = 0; i < st.n; i++) {
        if (st.name[i] >= 0) return false;
        out[i] = st.stride[i];
    }
    return true;
}

static void index_at(const struct program *p, const struct access *a, int x, int64_t v,
                     int64_t *index) {
    int n = p->buffer[a->buffer].ndims;
    for (int d = 0; d < n; d++)
        index[d] = access_coef(p, a, d, p->naxes) + (x >= 0 ? v * access_coef(p, a, d, x) : 0);
}

/* By strides; those that the schedule chooses (`stride` is then how many of them a step goes) come
 * last. */
static void add_digit(struct form *f, int x, int64_t weight, int64_t extent, int64_t stride,
                      int name) {
    int at = f->n++;
    while (at > 0 && name < 0 &&
           (f->digit[at - 1].free_stride >= 0 || stride < f->digit[at - 1].stride)) {
        f->digit[at] = f->digit[at - 1];
        at--;
    }
    f->digit[at] =
        (struct digit){x, weight, extent, name < 0 ? stride : 0, name, name < 0 ? 1 : stride};
}

/* Do the axis's digits follow each other, so that each value is one setting of them? */
static bool digits_follow(const struct form *f, int x) {
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < f->n; k++) {
            const struct digit *a = &f->digit[i], *b = &f->digit[k];
            if (i != k && a->x == x && b->x == x && a->weight <= b->weight &&
                a->weight * a->extent > b->weight)
                return false;
        }
    return true;
}

/* Splits the offsets of one axis into mixed-radix digits: f(v) for v < extent, f(0) = 0. name: the
 * stride that they count steps of; -1: elements. Digits that do not move are left out. */
static bool split_digits(struct form *f, int x, const int64_t *offset, int64_t extent, int name) {
    struct form own = {0};
    int64_t weight = 1;
    while (weight < extent) {
        int64_t stride = offset[weight], run = 2;
        while (run * weight < extent && offset[run * weight] == run * stride) run++;
        while (extent % (weight * run) && run > 1) run--;
        if (run == 1 || own.n == MAX_DIGITS) return false;
        own.digit[own.n++] = (struct digit){x, weight, run, stride, name, 1};
        weight *= run;
    }
    for (int64_t v = 0; v < extent; v++) {
        int64_t sum = 0;
        for (int i = 0; i < own.n; i++)
            sum += own.digit[i].stride * (v / own.digit[i].weight % own.digit[i].extent);
        if (sum != offset[v]) return false;
    }
    for (int i = 0; i < own.n; i++) {
        const struct digit *d = &own.digit[i];
        if (!d->stride) continue;
        if (f->n == MAX_DIGITS || (name >= 0 && d->stride < 0)) return false;
        add_digit(f, x, d->weight, d->extent, d->stride, name);
    }
    return true;
}

/* One axis of an operand in a layout: in the places of given strides, then in each that names one,
 * as in `k,j -> j/32, k, j%32` with strides "panel, 32, 1". */
static bool map_digits(const struct needle *nd, const struct access *a, const struct strides *st,
                       const struct layout *map, int x, struct form *f) {
    const struct buffer *b = &nd->bound->buffer[a->buffer];
    int64_t extent = nd->bound->axis[x].extent, index[MAX_DIMS], offset[4096];
    if (extent > 4096) return false;
    for (int part = -1; part < st->n; part++) {
        int64_t stride[MAX_DIMS];
        if (part >= 0 && st->name[part] < 0) continue;
        for (int i = 0; i < st->n; i++)
            stride[i] = part >= 0 ? i == part : st->name[i] < 0 ? st->stride[i] : 0;
        for (int64_t v = 0; v < extent; v++) {
            index_at(nd->bound, a, x, v, index);
            offset[v] = layout_offset(map, b->ndims, b->extent, stride, index);
        }
        for (int64_t v = extent - 1; v >= 0; v--) offset[v] -= offset[0];
        if (!split_digits(f, x, offset, extent, part < 0 ? -1 : st->name[part])) return false;
    }
    return digits_follow(f, x);
}

/* One axis of a row-major operand: the sum over its dimensions. */
static bool plain_digit(const struct needle *nd, const struct access *a, const struct strides *st,
                        int x, int ndims, struct form *f) {
    int64_t stride = 0, times = 0;
    int name = -1, hits = 0;
    for (int d = 0; d < ndims; d++) {
        int64_t c = access_coef(nd->bound, a, d, x);
        if (!c) continue;
        hits++;
        if (st->name[d] >= 0) name = st->name[d];
        times += c;
        stride += c * st->stride[d];
    }
    if (!hits) return true;
    if (f->n == MAX_DIGITS || (name >= 0 && hits > 1)) return false;
    add_digit(f, x, 1, nd->bound->axis[x].extent, name >= 0 ? times : stride, name);
    return true;
}

/* Do other places than the slowest grow with a size that the schedule chooses? */
static bool places_depend(const struct needle *nd, const struct access *a,
                          const struct layout *map) {
    const struct buffer *b = &nd->bound->buffer[a->buffer];
    int64_t least[MAX_DIMS], most[MAX_DIMS], extent[MAX_DIMS];
    for (int d = 0; d < b->ndims; d++) {
        extent[d] = b->extent[d];
        for (int x = 0; x < nd->nx; x++)
            extent[d] -= access_coef(nd->bound, a, d, x) * (nd->hi[x] - nd->lo[x]);
        if (extent[d] < 1) return true;
    }
    layout_extents(map, b->extent, most);
    layout_extents(map, extent, least);
    for (int i = 1; i < map->nplaces; i++)
        if (least[i] != most[i]) return true;
    return false;
}

/* Does a dense stride change with a size that the schedule chooses? */
static bool outer_depends(const struct needle *nd, const struct form *f) {
    for (int i = 1; i < f->n; i++)
        for (int j = 0; j < i; j++)
            if (nd->lo[f->digit[j].x] != nd->hi[f->digit[j].x]) return true;
    return false;
}

static void hash(uint64_t *h, uint64_t v) {
    *h = (*h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    *h ^= *h >> 29;
}

static void hash_text(uint64_t *h, const char *text) {
    for (; *text; text++) hash(h, (unsigned char)*text);
}

static void hash_expr(uint64_t *h, const struct lexpr *e) {
    hash(h, (uint64_t)e->op);
    if (e->op == 'n') hash(h, (uint64_t)e->number);
    if (e->op == 'i') hash(h, (uint64_t)e->index + 1);
    if (e->op == 'n' || e->op == 'i') return;
    hash_expr(h, e->a);
    hash_expr(h, e->b);
}

/* Equal maps over buffers of equal extents with equal strides. */
uint64_t form_fragment(const struct operand *o, const struct layout *map, const struct buffer *b,
                       const int64_t *stride) {
    uint64_t h = 1;
    if (!layout_spreads(map)) return 0;
    hash(&h, (uint64_t)type_size(o->type));
    for (int d = 0; d < b->ndims; d++) hash(&h, (uint64_t)b->extent[d]);
    for (int p = 0, k = 0; p < map->nplaces; p++) {
        hash_expr(&h, map->place[p].expr);
        if (map->place[p].unit)
            hash_text(&h, map->place[p].unit);
        else
            hash(&h, (uint64_t)stride[k++]);
    }
    return h ? h : 1;
}

uint64_t instr_fragment(const struct machine *m, const struct instr *in, int operand,
                        const struct program *bound) {
    const struct operand *o = &in->operand[operand];
    struct strides st;
    if (!layout_spreads(o->layout[0].map) || !operand_strides(m, in, operand, 0, bound, &st))
        return 0;
    return form_fragment(o, o->layout[0].map, &bound->buffer[o->kernel_buffer], st.stride);
}

/* A fragment: each axis walks one dimension of the operand as a whole. A size that varies needs
 * strides that are given. */
static bool fragment_form(const struct needle *nd, const struct access *a, const struct operand *o,
                          const struct layout *map, const struct strides *st, struct form *f) {
    const struct buffer *b = &nd->bound->buffer[o->kernel_buffer];
    for (int x = 0; x < nd->nx; x++) {
        int64_t stride = FRAGMENT;
        for (int d = b->ndims - 1; d >= 0; d--, stride *= FRAGMENT) {
            int64_t c = access_coef(nd->bound, a, d, x);
            if (!c) continue;
            if (c != 1 || (nd->ranged[x] >= 0 && !o->layout[f->layout].stride) ||
                f->n == MAX_DIGITS || b->ndims > 2)
                return false;
            add_digit(f, x, 1, nd->bound->axis[x].extent, stride, -1);
        }
    }
    for (int i = 0; i < st->n; i++)
        if (st->name[i] >= 0) return false;
    f->share = layout_span(map, b->ndims, b->extent, st->stride);
    return true;
}

/* Do given strides change with a size that the schedule chooses, such as K*32? */
static bool strides_vary(const struct needle *nd, const struct operand_layout *l) {
    for (int x = 0; x < nd->nx; x++)
        if (nd->lo[x] != nd->hi[x] && needle_strides_use(nd, l, x)) return true;
    return false;
}

/* The digits of an operand in one of its layouts. False: not a sum over the axes, strides that
 * depend on sizes, or other instances. */
bool needle_form(const struct machine *m, const struct needle *nd, int operand, int layout,
                 struct form *f) {
    const struct access *a = needle_access(nd, operand);
    const struct operand *o = &nd->in->operand[operand];
    struct strides st;
    memset(f, 0, sizeof *f);
    f->layout = layout;
    if (!a || !operand_strides(m, nd->in, operand, layout, nd->bound, &st)) return false;
    const struct layout *map = o->layout[layout].map;
    f->swizzle = o->layout[layout].swizzle;
    f->fragment = form_fragment(o, map, &nd->bound->buffer[o->kernel_buffer], st.stride);
    if (f->fragment)
        return !strides_vary(nd, &o->layout[layout]) && fragment_form(nd, a, o, map, &st, f);
    int ndims = nd->bound->buffer[o->kernel_buffer].ndims;
    for (int x = 0; x < nd->nx; x++) {
        int64_t extent = nd->bound->axis[x].extent;
        if (extent == 1 && nd->ranged[x] < 0) continue;
        if (!map) {
            if (!plain_digit(nd, a, &st, x, ndims, f)) return false;
            continue;
        }
        bool used = false;
        for (int d = 0; d < ndims; d++) used |= access_coef(nd->bound, a, d, x) != 0;
        if (!used) continue;
        int named = -1; /* a map that only permutes may name a stride */
        for (int i = 0; i < map->nplaces; i++)
            if (st.name[i] >= 0 && map->place[i].expr->op == 'i' &&
                access_coef(nd->bound, a, map->place[i].expr->index, x) == 1)
                named = st.name[i];
        if (named >= 0) {
            if (f->n == MAX_DIGITS) return false;
            add_digit(f, x, 1, extent, 1, named);
            continue;
        }
        if (!map_digits(nd, a, &st, map, x, f)) return false;
    }
    if (o->layout[layout].stride) return !strides_vary(nd, &o->layout[layout]);
    return !(map ? places_depend(nd, a, map) : outer_depends(nd, f));
}
