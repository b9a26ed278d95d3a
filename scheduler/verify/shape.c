#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t POINTS_LIMIT = INT64_C(1) << 24, SPAN_LIMIT = INT64_C(1) << 40;

/* ---- strides: expressions over parameters, sizes, free strides and let values ---- */
struct names {
    const struct machine *m;
    const struct instr *in;
    const struct operand_layout *layout;
    const int64_t *size, *stride;
};

static bool kernel_value(const struct names *n, const char *name, double *out) {
    const struct kernel *k = n->in->semantics;
    struct arena scratch;
    arena_init(&scratch);
    struct binding *at = arena_array(&scratch, (size_t)k->nparams + 1, sizeof *at);
    struct bindings known = {at, 0, &n->m->params};
    bool found = false;
    for (int p = 0; p < k->nparams && !found; p++) {
        int64_t value = 0;
        bool has = k->param[p].value && expr_integer(k->param[p].value, &known, &value);
        for (int r = 0; r < n->in->nranged; r++) {
            if (n->in->ranged[r] != p) continue;
            value = n->size[r];
            has = true;
        }
        if (!has) continue;
        at[known.n++] = (struct binding){k->param[p].name, value};
        found = strcmp(k->param[p].name, name) == 0;
        if (found) *out = (double)value;
    }
    arena_free(&scratch);
    return found;
}

static bool stride_name(void *user, const char *name, const char *field, double *out) {
    const struct names *n = user;
    if (field) return false;
    if (n->layout && n->layout->let_name && strcmp(n->layout->let_name, name) == 0) {
        *out = (double)n->layout->let_value;
        return true;
    }
    for (int k = 0; k < n->in->nstride_names; k++) {
        if (strcmp(n->in->stride_name[k], name) != 0) continue;
        *out = (double)n->stride[k];
        return true;
    }
    if (kernel_value(n, name, out)) return true;
    for (int k = 0; k < n->m->nparams; k++) {
        if (strcmp(n->m->param[k].name, name) != 0) continue;
        *out = (double)n->m->param[k].value;
        return true;
    }
    return false;
}

bool shape_name(const struct machine *m, const struct instr *in,
                const struct operand_layout *layout, const int64_t *size, const int64_t *stride,
                const char *name, double *out) {
    struct names n = {m, in, layout, size, stride};
    return stride_name(&n, name, NULL, out);
}

static bool strides_of(const struct names *n, int64_t *out) {
    struct mexpr_env env = {.name = stride_name, .user = (void *)n};
    for (int k = 0; k < n->layout->nstrides; k++)
        if (!mexpr_integer(n->layout->stride[k], &env, &out[k], NULL)) return false;
    return true;
}

/* ---- operands ---- */
static bool next_index(const struct buffer *b, int64_t *index) {
    for (int d = b->ndims - 1; d >= 0; d--) {
        if (++index[d] < b->extent[d]) return true;
        index[d] = 0;
    }
    return false;
}

/* Offsets could leave 64 bits only if a stride times an extent does. */
static bool strides_small(const struct operand_layout *l, const int64_t *stride) {
    for (int k = 0; k < l->nstrides; k++)
        if (stride[k] < -SPAN_LIMIT || stride[k] > SPAN_LIMIT) return false;
    return true;
}

/* Which instance of the memory holds each element. */
static void shape_instances(struct verify *v, struct shape_operand *p, const struct buffer *b,
                            const struct layout *map, int memory) {
    int64_t index[MAX_DIMS] = {0}, element = 0;
    if (!layout_spreads(map) || b->elements == 0) return;
    p->instance = arena_array(&v->shapes->arena, (size_t)b->elements + 1, sizeof *p->instance);
    do p->instance[element++] = (int32_t)layout_instance(v->m, map, memory, index);
    while (next_index(b, index));
}

static void shape_steps(struct shape_operand *p, const struct buffer *b,
                        const struct operand_layout *l, const int64_t *stride) {
    int64_t step = (int64_t)type_size(b->type);
    for (int d = b->ndims - 1; d >= 0 && !l->map; d--) {
        p->step[d] = l->nstrides ? (int64_t)type_size(b->type) * stride[d] : step;
        step *= b->extent[d];
    }
}

static bool shape_offsets(struct verify *v, struct shape *h, int o, const struct buffer *b,
                          const struct names *n) {
    struct shape_operand *p = &h->operand[o];
    int64_t stride[MAX_DIMS] = {0};
    p->elements = b->elements;
    p->buffer_bytes = b->elements * (int64_t)type_size(b->type);
    if (b->elements > POINTS_LIMIT)
        return verify_limit(v, "operand '%s' has %" PRId64 " elements, too many to verify", b->name,
                            b->elements);
    if (n->layout->nstrides > MAX_DIMS || !strides_of(n, stride) ||
        !strides_small(n->layout, stride))
        return verify_error(v, "the strides of operand '%s' are no integers in range", b->name);
    if (!swizzle_parse(n->layout->swizzle, &p->swizzle))
        return verify_error(v, "the swizzle of operand '%s' is none", b->name);
    if (v->renamed) p->swizzle = (struct swizzle){0};
    h->cost += b->elements;
    if (!verify_step(v, b->elements)) return false;
    shape_steps(p, b, n->layout, stride);
    if (!n->layout->map && n->layout->nstrides == 0) return true;
    p->offset = arena_array(&v->shapes->arena, (size_t)b->elements + 1, sizeof *p->offset);
    int64_t index[MAX_DIMS] = {0}, element = 0, size = (int64_t)type_size(b->type);
    if (b->elements > 0) do
            p->offset[element++] = size * layout_offset(n->layout->map, b->ndims, b->extent,
                                                        n->layout->nstrides ? stride : NULL, index);
        while (next_index(b, index));
    return true;
}

int64_t shape_offset(const struct shape *h, int operand, int64_t element) {
    const struct shape_operand *p = &h->operand[operand];
    return p->offset ? p->offset[element]
                     : element * (p->elements ? p->buffer_bytes / p->elements : 0);
}

int32_t shape_instance(const struct shape *h, int operand, int64_t element) {
    const struct shape_operand *p = &h->operand[operand];
    return p->instance ? p->instance[element] : 0;
}

/* ---- points ---- */
static int operand_of_buffer(const struct instr *in, const struct program *bound, int buffer) {
    for (int o = 0; o < in->noperands; o++)
        if (strcmp(in->operand[o].buffer, bound->buffer[buffer].name) == 0) return o;
    return -1;
}

/* The element that an access means at a point; -1 outside the buffer. */
static int64_t access_element(const struct program *p, const struct access *a, const int64_t *at) {
    const struct buffer *b = &p->buffer[a->buffer];
    int64_t element = 0;
    for (int d = 0; d < b->ndims; d++) {
        int64_t x = access_coef(p, a, d, p->naxes);
        for (int k = 0; k < p->naxes; k++) x += access_coef(p, a, d, k) * at[k];
        if (x < 0 || x >= b->extent[d]) return -1;
        element = element * b->extent[d] + x;
    }
    return element;
}

static bool in_domain(const struct program *p, const struct stmt *s, const int64_t *at) {
    for (int w = 0; w < s->nwhere; w++) {
        int64_t x = s->where[w].coef[p->naxes];
        for (int k = 0; k < p->naxes; k++) x += s->where[w].coef[k] * at[k];
        if (x < 0) return false;
    }
    return true;
}

static bool next_point(const struct shape *h, int64_t *at) {
    for (int x = h->naxes - 1; x >= 0; x--) {
        int a = h->axis_of[x];
        if (++at[a] < h->extent[x]) return true;
        at[a] = 0;
    }
    return false;
}

static bool fill_points(struct verify *v, struct shape *h) {
    const struct stmt *s = h->stmt;
    int64_t at[MAX_AXES] = {0}, n = 0;
    h->dst = arena_array(&v->shapes->arena, (size_t)h->points + 1, sizeof *h->dst);
    for (int r = 0; r < s->nreads; r++)
        h->read[r] = arena_array(&v->shapes->arena, (size_t)h->points + 1, sizeof *h->read[r]);
    if (h->points == 0) return true;
    do {
        bool runs = in_domain(h->bound, s, at);
        int64_t e = access_element(h->bound, &s->dst, at);
        if (runs && e < 0) return verify_error(v, "the semantics write outside their buffer");
        h->dst[n] = runs ? (int32_t)e : -1;
        for (int r = 0; r < s->nreads; r++)
            h->read[r][n] = runs ? (int32_t)access_element(h->bound, &s->read[r], at) : -1;
        n++;
    } while (next_point(h, at));
    return true;
}

/* Points at which the axes that do not move an access are 0. */
static void fill_first(struct verify *v, struct shape *h, const struct access *a,
                       struct first *out) {
    int64_t x[MAX_AXES] = {0};
    bool still[MAX_AXES];
    for (int k = 0; k < h->naxes; k++) {
        still[k] = true;
        for (int d = 0; d < h->bound->buffer[a->buffer].ndims; d++)
            if (access_coef(h->bound, a, d, h->axis_of[k])) still[k] = false;
    }
    out->at = arena_array(&v->shapes->arena, (size_t)h->points, sizeof *out->at);
    for (int64_t n = 0; n < h->points; n++) {
        bool first = true;
        for (int k = 0; k < h->naxes; k++) first &= !still[k] || x[k] == 0;
        if (first) out->at[out->n++] = n;
        for (int k = h->naxes - 1; k >= 0 && ++x[k] == h->extent[k]; k--) x[k] = 0;
    }
}

static bool all_differ(struct verify *v, const struct shape *h) {
    const struct first *f = &h->first[0];
    bool *met = arena_array(&v->shapes->arena, (size_t)h->operand[h->dst_operand].elements + 1, 1);
    for (int k = 0; k < f->n; k++) {
        if (met[h->dst[f->at[k]]]) return false;
        met[h->dst[f->at[k]]] = true;
    }
    return true;
}

static void find_regular(struct verify *v, struct shape *h) {
    const struct stmt *s = h->stmt;
    for (int64_t n = 0; n < h->points; n++) {
        if (h->dst[n] < 0) return;
        for (int r = 0; r < s->nreads; r++)
            if (h->read[r][n] < 0) return;
    }
    if (h->points == 0 || h->points > UINT32_MAX) return;
    fill_first(v, h, &s->dst, &h->first[0]);
    for (int r = 0; r < s->nreads; r++) fill_first(v, h, &s->read[r], &h->first[r + 1]);
    h->regular = all_differ(v, h);
}

/* ---- bytes touched ---- */
static int by_start(const void *a, const void *b) {
    const struct run *x = a, *y = b;
    if (x->instance != y->instance) return x->instance - y->instance;
    return (x->at > y->at) - (x->at < y->at);
}

static void mark_elements(const struct shape *h, const int32_t *element, bool *used) {
    for (int64_t n = 0; n < h->points; n++)
        if (element[n] >= 0) used[element[n]] = true;
}

/* Elements mostly lie one after the other: what goes on where the last run ends is one with it. */
static bool run_goes_on(struct run *last, const struct run *next) {
    if (next->instance != last->instance || next->at < last->at ||
        next->at > last->at + last->bytes)
        return false;
    if (next->at + next->bytes > last->at + last->bytes)
        last->bytes = next->at + next->bytes - last->at;
    return true;
}

static void fill_runs(struct verify *v, struct shape *h, int o, size_t size) {
    struct shape_operand *p = &h->operand[o];
    bool *used = memory_array((size_t)p->elements + 1, 1);
    if (h->dst_operand == o) mark_elements(h, h->dst, used);
    for (int r = 0; r < h->stmt->nreads; r++)
        if (h->read_operand[r] == o) mark_elements(h, h->read[r], used);
    struct run *run = NULL;
    int n = 0, cap = 0;
    for (int64_t e = 0; e < p->elements; e++) {
        if (!used[e]) continue;
        struct run next = {shape_offset(h, o, e), (int64_t)size, shape_instance(h, o, e)};
        if (n && run_goes_on(&run[n - 1], &next)) continue;
        GROW(&v->shapes->arena, run, n, cap);
        run[n++] = next;
    }
    free(used);
    if (n > 1) qsort(run, (size_t)n, sizeof *run, by_start);
    for (int k = 0; k < n; k++)
        if (!p->nruns || !run_goes_on(&run[p->nruns - 1], &run[k])) run[p->nruns++] = run[k];
    p->run = run;
    if (p->nruns == 0) return;
    p->low = run[0].at;
    for (int k = 0; k < p->nruns; k++) {
        if (run[k].at < p->low) p->low = run[k].at;
        if (run[k].at + run[k].bytes > p->high) p->high = run[k].at + run[k].bytes;
    }
}

/* ---- the semantics' form ---- */
static bool several_statements(struct verify *v, struct shape *h) {
    int all[MAX_JOINED];
    h->stmt = arena_alloc(&v->shapes->arena, sizeof *h->stmt);
    if (h->bound->nstmts > MAX_JOINED)
        return verify_limit(v, "semantics with more than %d statements cannot be verified",
                            MAX_JOINED);
    for (int q = 0; q < h->bound->nstmts; q++) all[q] = q;
    const char *why = stmts_join(&v->shapes->arena, h->bound, all, h->bound->nstmts, h->stmt);
    if (why) return verify_limit(v, "semantics of several statements cannot be verified: %s", why);
    h->nparts = h->bound->nstmts;
    return true;
}

static bool one_statement(struct verify *v, struct shape *h, const struct issue_node *n) {
    struct program *b = h->bound;
    for (int k = 0; k < b->nitems; k++)
        if (b->item[k].kind != ITEM_STMT)
            return verify_limit(v, "semantics with a recurrence or a call cannot be verified");
    if (b->nstmts == 2 && !n->nalso && stmt_is_neutral_fill(b, &b->stmt[0], &b->stmt[1])) {
        h->stmt = &b->stmt[1];
        h->initialises = true;
        return true;
    }
    if (b->nstmts > 1) return several_statements(v, h);
    h->stmt = b->nstmts == 1 ? &b->stmt[0] : NULL;
    return true;
}

static bool map_axes(struct verify *v, struct shape *h, const struct kernel *k) {
    struct program *b = h->bound;
    h->naxes = kernel_axis_count(k);
    h->points = 1;
    for (int x = 0; x < h->naxes; x++) {
        const char *name = kernel_axis_at(k, x)->name;
        int a = 0;
        while (a < b->naxes && strcmp(b->axis[a].name, name) != 0) a++;
        if (a == b->naxes) return verify_error(v, "the semantics have no axis '%s'", name);
        h->axis_of[x] = a;
        bool has = h->stmt && h->stmt->axes >> a & 1;
        h->extent[x] = has ? b->axis[a].extent : 1;
        if (__builtin_mul_overflow(h->points, h->extent[x], &h->points) || h->points > POINTS_LIMIT)
            return verify_limit(v, "an instruction of more than 2^24 points cannot be verified");
    }
    if (!h->stmt) h->points = 0;
    return true;
}

static bool map_operands(struct verify *v, struct shape *h, const struct instr *in) {
    const struct stmt *s = h->stmt;
    h->dst_operand = -1;
    if (!s) return true;
    if (s->nreads > MAX_READS)
        return verify_limit(v, "semantics read more than %d operands", MAX_READS);
    h->dst_operand = operand_of_buffer(in, h->bound, s->dst.buffer);
    if (h->dst_operand < 0) return verify_error(v, "the semantics write no operand");
    h->operand[h->dst_operand].writes = true;
    h->operand[h->dst_operand].reads = s->combine != COMBINE_SET && !h->initialises;
    for (int r = 0; r < s->nreads; r++) {
        h->read_operand[r] = operand_of_buffer(in, h->bound, s->read[r].buffer);
        if (h->read_operand[r] < 0) return verify_error(v, "the semantics read no operand");
        h->operand[h->read_operand[r]].reads = true;
    }
    return true;
}

static bool map_parts(struct verify *v, struct shape *h, const struct instr *in) {
    h->part = arena_array(&v->shapes->arena, (size_t)h->nparts + 1, sizeof *h->part);
    for (int q = 0; q < h->nparts; q++) {
        struct shape *part = &h->part[q];
        *part = (struct shape){.instr = h->instr, .bound = h->bound, .stmt = &h->bound->stmt[q]};
        if (part->stmt->nreads > MAX_READS)
            return verify_limit(v, "semantics read more than %d operands", MAX_READS);
        for (int r = 0; r < part->stmt->nreads; r++)
            part->read_operand[r] = operand_of_buffer(in, h->bound, part->stmt->read[r].buffer);
    }
    return true;
}

static bool shape_build(struct verify *v, struct shape *h, const struct issue_node *n,
                        const int64_t *size, const int64_t *stride) {
    const struct instr *in = &v->m->instr[n->instr];
    struct diags inner;
    diags_init(&inner);
    h->bound = instr_bind(v->m, in, size, &inner);
    if (!h->bound)
        verify_error(v, "the sizes are illegal: %s", inner.n ? inner.at[0].text : "not bound");
    diags_free(&inner);
    if (!h->bound) return false;
    if (!one_statement(v, h, n) || !map_axes(v, h, in->semantics) || !map_operands(v, h, in) ||
        !map_parts(v, h, in))
        return false;
    for (int o = 0; o < in->noperands; o++) {
        int buffer = program_buffer(h->bound, in->operand[o].buffer);
        struct names names = {v->m, in, &in->operand[o].layout[n->arg[o].layout], size, stride};
        if (buffer < 0)
            return verify_error(v, "the semantics have no buffer '%s'", in->operand[o].buffer);
        if (!shape_offsets(v, h, o, &h->bound->buffer[buffer], &names)) return false;
        if (n->arg[o].place >= 0)
            shape_instances(v, &h->operand[o], &h->bound->buffer[buffer], names.layout->map,
                            v->s->place[n->arg[o].place].memory);
    }
    if (!h->stmt) return true;
    h->cost += h->points;
    v->page_bytes += (size_t)h->points * sizeof(int32_t) * (size_t)(h->stmt->nreads + 1);
    if (!verify_step(v, h->points) || !fill_points(v, h)) return false;
    for (int o = 0; o < in->noperands; o++) fill_runs(v, h, o, type_size(in->operand[o].type));
    if (!in->is_move) find_regular(v, h);
    return true;
}

static uint64_t hash_key(const int64_t *key, int n) {
    uint64_t h = 1469598103934665603u;
    for (int k = 0; k < n; k++)
        h = (h ^ (uint64_t)key[k]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 31;
    return h;
}

/* NULL after reporting. */
const struct shape *shape_get(struct verify *v, const struct issue_node *n, const int64_t *size,
                              const int64_t *stride) {
    const struct instr *in = &v->m->instr[n->instr];
    int64_t key[64];
    int nkeys = 0;
    if (2 + in->nranged + in->nstride_names + 2 * in->noperands > 64) {
        verify_limit(v, "'%s' has too many sizes to verify", in->id);
        return NULL;
    }
    key[nkeys++] = n->instr;
    key[nkeys++] = n->nalso;
    for (int k = 0; k < in->nranged; k++) key[nkeys++] = size[k];
    for (int k = 0; k < in->nstride_names; k++) key[nkeys++] = stride[k];
    for (int o = 0; o < in->noperands; o++) {
        key[nkeys++] = n->arg[o].layout;
        if (n->arg[o].place >= 0 && layout_spreads(in->operand[o].layout[n->arg[o].layout].map))
            key[nkeys++] = v->s->place[n->arg[o].place].memory;
    }
    struct shape **bucket = &v->shapes->bucket[hash_key(key, nkeys) % SHAPE_BUCKETS];
    for (struct shape *h = *bucket; h; h = h->next)
        if (h->nkeys == nkeys && memcmp(h->key, key, (size_t)nkeys * sizeof *key) == 0) return h;
    struct shape *h = arena_alloc(&v->shapes->arena, sizeof *h);
    h->instr = n->instr;
    h->key = arena_copy(&v->shapes->arena, key, (size_t)nkeys * sizeof *key);
    h->nkeys = nkeys;
    h->next = *bucket;
    *bucket = h;
    if (shape_build(v, h, n, size, stride)) return h;
    *bucket = h->next;
    if (h->bound) program_free(h->bound);
    v->stop = true;
    return NULL;
}

void verify_shapes_open(struct shapes *all) {
    *all = (struct shapes){0};
    arena_init(&all->arena);
    all->bucket = arena_array(&all->arena, SHAPE_BUCKETS, sizeof *all->bucket);
}

void verify_shapes_close(struct shapes *all) {
    for (int k = 0; k < SHAPE_BUCKETS; k++)
        for (struct shape *h = all->bucket[k]; h; h = h->next)
            if (h->bound) program_free(h->bound);
    arena_free(&all->arena);
}
