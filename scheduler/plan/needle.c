/* Needles: which sizes an instruction's axes have, and how each axis walks through each operand. */
#include "scheduler/plan/limits.h"
#include "scheduler/plan/needle.h"
#include "scheduler/schedule/schedule.h"
#include <string.h>

enum { UNBOUNDED_SAMPLE = 64 };

struct needle *needle_make(struct arena *arena, const struct machine *m, int instr,
                           struct diags *diags) {
    static const int64_t none[MAX_SIZES];
    return needle_fixed(arena, m, instr, none, diags);
}

static void learn_entries(const struct machine *m, struct needle *n) {
    const struct hwloop *l = instr_table(n->in);
    if (!l) return;
    n->entry_bytes = table_entry_bytes(m, l);
    for (int i = 0; i < m->ninstrs; i++)
        for (int k = 0; m->instr[i].is_move && k < m->instr[i].nto; k++)
            if (m->instr[i].to[k] == l->table && m->instr[i].bus >= 0 &&
                m->bus[m->instr[i].bus].rate > 0)
                n->entry_cycles = (double)n->entry_bytes / m->bus[m->instr[i].bus].rate;
}

struct needle *needle_fixed(struct arena *arena, const struct machine *m, int instr,
                            const int64_t *fixed, struct diags *diags) {
    const struct instr *in = &m->instr[instr];
    int64_t lo[MAX_SIZES], hi[MAX_SIZES], step[MAX_SIZES], size[MAX_SIZES];
    if (in->nranged > MAX_SIZES) return NULL;
    for (int i = 0; i < in->nranged; i++) {
        if (!instr_size_range(m, in, i, &lo[i], &hi[i], &step[i])) return NULL;
        if (step[i] < 1) step[i] = 1;
        size[i] = hi[i] < 0 ? (lo[i] > UNBOUNDED_SAMPLE ? lo[i] : UNBOUNDED_SAMPLE) : hi[i];
        if (hi[i] > 1 << 20) size[i] = 1 << 20;
        if (hi[i] < 0) hi[i] = INT64_C(1) << 31;
        if (fixed[i]) size[i] = fixed[i];
    }
    struct needle *n = arena_alloc(arena, sizeof *n);
    n->in = in;
    n->instr = instr;
    n->again = n->remaining = -1;
    learn_entries(m, n);
    n->bound = instr_bind(m, in, size, diags);
    if (!n->bound) return NULL;
    n->nx = n->bound->naxes;
    if (n->nx > MAX_NEEDLE || n->bound->nstmts < 1) {
        program_free(n->bound);
        return NULL;
    }
    for (int i = 0; i < in->nranged; i++) n->size[i] = size[i];
    for (int x = 0; x < n->nx; x++) {
        n->ranged[x] = -1;
        n->lo[x] = n->hi[x] = n->step[x] = n->bound->axis[x].extent;
        for (int i = 0; i < in->nranged; i++)
            if (in->ranged[i] == n->bound->axis[x].param && !fixed[i]) {
                n->ranged[x] = i;
                n->lo[x] = lo[i];
                n->hi[x] = hi[i];
                n->step[x] = step[i];
            }
    }
    return n;
}

int64_t needle_unit(const struct needle *n, int x) {
    return n->ranged[x] < 0 || n->whole[x] ? n->hi[x] : n->step[x];
}

static bool at_origin(const struct program *p, const struct access *a) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, p->naxes)) return false;
    return true;
}

static const struct access *kernel_access(const struct needle *n, int operand) {
    int b = n->in->operand[operand].kernel_buffer;
    for (int s = 0; s < n->bound->nstmts; s++) {
        const struct stmt *st = &n->bound->stmt[s];
        const struct access *found = NULL;
        if (st->dst.buffer == b) return &st->dst;
        for (int r = 0; r < st->nreads; r++)
            if (st->read[r].buffer == b && (!found || at_origin(n->bound, &st->read[r])))
                found = &st->read[r];
        if (found) return found;
    }
    return NULL;
}

bool needle_dense(const struct needle *n, int x) {
    for (int i = 0; i < n->in->noperands; i++) {
        const struct operand *o = &n->in->operand[i];
        const struct access *a = o->nlayouts == 1 && !o->layout[0].map && !o->layout[0].stride
                                     ? kernel_access(n, i)
                                     : NULL;
        for (int d = 1; a && d < n->bound->buffer[a->buffer].ndims; d++)
            if (access_coef(n->bound, a, d, x)) return true;
    }
    return false;
}

bool needle_reads_beside(const struct needle *n, int operand) {
    const struct access *a = kernel_access(n, operand);
    for (int r = 0; r < n->bound->stmt[0].nreads && n->bound->nstmts == 1; r++) {
        const struct access *x = &n->bound->stmt[0].read[r];
        for (int d = 0; a && x->buffer == a->buffer && d < n->bound->buffer[a->buffer].ndims; d++)
            if (access_coef(n->bound, x, d, n->bound->naxes) !=
                access_coef(n->bound, a, d, n->bound->naxes))
                return true;
    }
    return false;
}

struct strides {
    int64_t stride[MAX_DIMS];
    int name[MAX_DIMS];
    int n;
};

/* The strides of a layout's places: given, named (the schedule's choice) or dense. */
static bool place_strides(const struct machine *m, const struct needle *nd, int operand, int layout,
                          const struct program *bound, struct strides *out) {
    const struct operand *o = &nd->in->operand[operand];
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
            for (int s = 0; s < nd->in->nstride_names; s++)
                if (!strcmp(nd->in->stride_name[s], e->name)) out->name[d] = s;
        if (out->name[d] >= 0) continue;
        struct instr probe = *nd->in;
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
    if (!place_strides(m, nd, operand, 0, bound, &st)) return false;
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

/* Splits the offsets of one axis into mixed-radix digits: f(v) for v < extent, f(0) = 0. */
static bool split_digits(struct form *f, int x, const int64_t *offset, int64_t extent) {
    int64_t weight = 1;
    while (weight < extent) {
        int64_t stride = offset[weight], run = 2;
        while (run * weight < extent && offset[run * weight] == run * stride) run++;
        while (extent % (weight * run) && run > 1) run--;
        if (run == 1 || f->n == MAX_DIGITS) return false;
        add_digit(f, x, weight, run, stride, -1);
        weight *= run;
    }
    for (int64_t v = 0; v < extent; v++) {
        int64_t sum = 0;
        for (int i = 0; i < f->n; i++)
            if (f->digit[i].x == x)
                sum += f->digit[i].stride * (v / f->digit[i].weight % f->digit[i].extent);
        if (sum != offset[v]) return false;
    }
    return true;
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

/* A fragment: each axis walks one dimension of the operand as a whole. */
static bool fragment_form(const struct needle *nd, const struct access *a, const struct operand *o,
                          const struct layout *map, const struct strides *st, struct form *f) {
    const struct buffer *b = &nd->bound->buffer[o->kernel_buffer];
    for (int x = 0; x < nd->nx; x++) {
        int64_t stride = FRAGMENT;
        for (int d = b->ndims - 1; d >= 0; d--, stride *= FRAGMENT) {
            int64_t c = access_coef(nd->bound, a, d, x);
            if (!c) continue;
            if (c != 1 || nd->ranged[x] >= 0 || f->n == MAX_DIGITS || b->ndims > 2) return false;
            add_digit(f, x, 1, nd->bound->axis[x].extent, stride, -1);
        }
    }
    for (int i = 0; i < st->n; i++)
        if (st->name[i] >= 0) return false;
    f->share = layout_span(map, b->ndims, b->extent, st->stride);
    return true;
}

/* The digits of an operand in one of its layouts. False: not a sum over the axes, strides that
 * depend on sizes, or other instances. */
bool needle_form(const struct machine *m, const struct needle *nd, int operand, int layout,
                 struct form *f) {
    const struct access *a = kernel_access(nd, operand);
    const struct operand *o = &nd->in->operand[operand];
    struct strides st;
    memset(f, 0, sizeof *f);
    f->layout = layout;
    if (!a || !place_strides(m, nd, operand, layout, nd->bound, &st)) return false;
    const struct layout *map = o->layout[layout].map;
    f->swizzle = o->layout[layout].swizzle;
    f->fragment = form_fragment(o, map, &nd->bound->buffer[o->kernel_buffer], st.stride);
    if (f->fragment) return fragment_form(nd, a, o, map, &st, f);
    int ndims = nd->bound->buffer[o->kernel_buffer].ndims;
    for (int x = 0; x < nd->nx; x++) {
        int64_t extent = nd->bound->axis[x].extent, index[MAX_DIMS];
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
        if (extent > 4096) return false;
        int64_t offset[4096], zero;
        index_at(nd->bound, a, -1, 0, index);
        zero =
            layout_offset(map, ndims, nd->bound->buffer[o->kernel_buffer].extent, st.stride, index);
        for (int64_t v = 0; v < extent; v++) {
            index_at(nd->bound, a, x, v, index);
            offset[v] = layout_offset(map, ndims, nd->bound->buffer[o->kernel_buffer].extent,
                                      st.stride, index) -
                        zero;
        }
        if (!split_digits(f, x, offset, extent)) return false;
    }
    return o->layout[layout].stride || !(map ? places_depend(nd, a, map) : outer_depends(nd, f));
}

int64_t needle_leaf(const struct needle *nd, int x, int64_t tile) {
    if (nd->ranged[x] < 0 || nd->whole[x]) return nd->hi[x];
    int64_t hi = nd->hi[x], step = nd->step[x];
    if (tile <= hi) return (tile + step - 1) / step * step;
    int64_t parts = (tile + hi - 1) / hi, leaf = (tile + parts - 1) / parts;
    return (leaf + step - 1) / step * step;
}

bool needle_reduces(const struct needle *nd, int x) {
    return !access_varies(nd->bound, &nd->bound->stmt[nd->bound->nstmts - 1].dst, x);
}
