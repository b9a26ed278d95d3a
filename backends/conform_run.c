#include "backends/conform_int.h"
#include "ir/interp.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256 };

/* One operand's memory with guards around it, and its values row by row. */
struct memory_of {
    unsigned char *block, *before,
        *at; /* block: now; before: as it was; at: where the operand starts in block */
    size_t bytes;
    int64_t extent[MAX_DIMS], stride[MAX_DIMS], elements;
    bool dense;
    const struct layout *map;
    int ndims, buffer;
};

struct trial {
    const struct site *site;
    struct program *program;
    struct memory_of *memory;             /* [noperands] */
    void **data, **expected, **magnitude; /* [nbuffers] */
    uint64_t seed;
    bool special; /* NaN, infinities and the like among the operands */
};

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static union value random_value(enum type t, bool special, uint64_t *state) {
    static const double rare[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40, -0.5, 2.5};
    uint64_t r = next_random(state);
    union value v;
    if (type_is_float(t)) {
        if (special && r % 8 == 0) {
            v.f = type_round(t, rare[next_random(state) % 8]);
            return v;
        }
        v.f = type_round(t, ((double)(r % 4001) - 2000) / 512);
        return v;
    }
    int64_t wide = type_size(t) > 1 ? (int64_t)(r % 60001) - 30000 : (int64_t)(r % 256);
    v.i = type_wrap(t, (uint64_t)wide);
    if (t == TYPE_BOOL) v.i = r & 1;
    return v;
}

static void **arrays(struct arena *a, const struct program *p) {
    void **data = arena_array(a, (size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role != ROLE_TEMP)
            data[b] =
                arena_array(a, (size_t)p->buffer[b].elements + 1, type_size(p->buffer[b].type));
    return data;
}

static int64_t element_offset(const struct memory_of *m, int64_t flat) {
    int64_t index[MAX_DIMS];
    for (int d = m->ndims - 1; d >= 0; d--) {
        index[d] = flat % m->extent[d];
        flat /= m->extent[d];
    }
    return layout_offset(m->map, m->ndims, m->extent, m->dense ? NULL : m->stride, index);
}

static bool is_written(const struct site *s, int o) {
    enum role r = s->instr->operand[o].role;
    return r == ROLE_OUT || r == ROLE_INOUT;
}

static bool memory_make(struct arena *a, struct trial *t, int o) {
    const struct site *s = t->site;
    struct memory_of *m = &t->memory[o];
    const struct operand *op = &s->instr->operand[o];
    size_t size = type_size(op->type);
    m->buffer = program_buffer(t->program, op->buffer);
    m->ndims = t->program->buffer[m->buffer].ndims;
    m->elements = t->program->buffer[m->buffer].elements;
    m->map = op->layout[s->layout[o]].map;
    if (!site_extents(s, o, m->extent)) return false;
    if (s->memory[o] == MEMORY_IMM) return m->elements == 1;
    if (!site_strides(s, o, m->stride, &m->dense)) return false;
    size_t word = (size_t)s->machine->memory[s->memory[o]].word, widest = 0;
    struct site *wide = site_copy(a, s);
    struct diags ignored;
    diags_init(&ignored);
    if (site_pass(s, o) == PASS_VALUE && site_widest(wide, &ignored))
        widest = (size_t)site_span(wide, o) * size + word;
    diags_free(&ignored);
    m->bytes = (size_t)site_span(s, o) * size;
    if (m->bytes < widest) m->bytes = widest;
    m->bytes = (m->bytes + 63) / 64 * 64 + 2 * GUARD;
    m->block = aligned_alloc(64, m->bytes);
    m->before = arena_array(a, m->bytes, 1);
    m->at = m->block + GUARD;
    for (size_t i = 0; i < m->bytes; i++)
        m->block[i] = (unsigned char)(0x31 + i % 3 + 8 * (size_t)(o % 5));
    return true;
}

static void fill_operand(struct trial *t, int o) {
    const struct site *s = t->site;
    struct memory_of *m = &t->memory[o];
    enum type type = s->instr->operand[o].type;
    size_t size = type_size(type);
    for (int64_t i = 0; i < m->elements; i++) {
        union value v =
            s->memory[o] == MEMORY_IMM ? s->imm[o] : random_value(type, t->special, &t->seed);
        char *row = (char *)t->data[m->buffer] + (size_t)i * size;
        type_store(type, row, v);
        if (s->memory[o] != MEMORY_IMM && s->instr->operand[o].role != ROLE_OUT)
            memcpy(m->at + (size_t)element_offset(m, i) * size, row, size);
    }
    if (m->block) memcpy(m->before, m->block, m->bytes);
}

/* ---- what should come out ---- */

/* A flag of 0 overwrites: the sum starts from its neutral element. */
static void neutralise(const struct trial *t, int buffer, void *data) {
    const struct program *p = t->program;
    enum type type = p->buffer[buffer].type;
    for (int k = 0; k < p->nstmts; k++) {
        if (p->stmt[k].dst.buffer != buffer || p->stmt[k].combine == COMBINE_SET) continue;
        union value v = combiner_neutral(p->stmt[k].combine, type);
        for (int64_t i = 0; i < p->buffer[buffer].elements; i++)
            type_store(type, (char *)data + (size_t)i * type_size(type), v);
        return;
    }
}

static bool expect(const struct trial *t, void **data, bool absolute) {
    const struct program *p = t->program;
    const struct instr *x = t->site->instr;
    struct diags diags;
    for (int b = 0; b < p->nbuffers; b++) {
        enum type type = p->buffer[b].type;
        size_t size = type_size(type);
        if (!data[b]) continue;
        memcpy(data[b], t->data[b], (size_t)p->buffer[b].elements * size);
        for (int64_t i = 0; absolute && type_is_float(type) && i < p->buffer[b].elements; i++) {
            union value v = type_load(type, (char *)data[b] + (size_t)i * size);
            v.f = fabs(v.f);
            type_store(type, (char *)data[b] + (size_t)i * size, v);
        }
    }
    for (int o = 0, flag = 0; o < x->noperands; o++) {
        if (!x->operand[o].accumulate) continue;
        if (t->site->flag[flag++].value == 0)
            neutralise(t, t->memory[o].buffer, data[t->memory[o].buffer]);
    }
    diags_init(&diags);
    bool good = program_run(p, data, NULL, NULL, &diags);
    diags_free(&diags);
    return good;
}

static bool transcendental(const struct program *p) {
    for (int k = 0; k < p->nstmts; k++)
        for (int i = 0; i < p->stmt[k].nops; i++) switch (p->stmt[k].op[i].code) {
            case OP_RSQRT:
            case OP_EXP:
            case OP_LOG:
            case OP_SIN:
            case OP_COS:
            case OP_TANH:
            case OP_SIGMOID:
            case OP_ERF:
            case OP_ATAN:
            case OP_POW:
                return true;
            default:
                break;
            }
    return false;
}

/* Terms that one element of the result sums. */
static double terms(const struct program *p, int buffer) {
    double most = 1;
    for (int k = 0; k < p->nstmts; k++) {
        const struct stmt *s = &p->stmt[k];
        double n = 1;
        for (int a = 0; a < p->naxes; a++)
            if (s->axes >> a & 1 && !access_varies(p, &s->dst, a)) n *= (double)p->axis[a].extent;
        if (s->combine != COMBINE_SET && s->dst.buffer == buffer && n > most) most = n;
    }
    return most;
}

static double epsilon(enum type t) {
    return t == TYPE_F64 ? 0x1p-52 : t == TYPE_F32 ? 0x1p-23 : t == TYPE_F16 ? 0x1p-10 : 0x1p-7;
}

static bool close_enough(const struct trial *t, int buffer, int64_t i, union value got) {
    enum type type = t->program->buffer[buffer].type;
    size_t size = type_size(type);
    union value want = type_load(type, (char *)t->expected[buffer] + (size_t)i * size);
    union value sum = type_load(type, (char *)t->magnitude[buffer] + (size_t)i * size);
    if (!type_is_float(type)) return got.i == want.i;
    if (isnan(want.f) || isnan(got.f)) return isnan(want.f) && isnan(got.f);
    if (got.f == want.f) return true;
    if (isinf(want.f) || isinf(got.f)) return false;
    double scale = fabs(want.f), k = 4 * terms(t->program, buffer);
    bool mac = false;
    for (int n = 0; n < t->program->nstmts; n++)
        mac = mac || stmt_macs(&t->program->stmt[n]) > 0;
    if ((mac || k > 4) && isfinite(sum.f) && fabs(sum.f) > scale) scale = fabs(sum.f);
    double allowed = mac || k > 4 || transcendental(t->program) ? k * epsilon(type) * scale
                                                                : epsilon(type) * scale;
    return fabs(got.f - want.f) <= allowed;
}

static bool compare_operand(struct arena *a, struct trial *t, int o, const char **what) {
    struct memory_of *m = &t->memory[o];
    const struct operand *op = &t->site->instr->operand[o];
    size_t size = type_size(op->type);
    if (!m->block) return true;
    for (int64_t i = 0; is_written(t->site, o) && i < m->elements; i++) {
        size_t at = (size_t)element_offset(m, i) * size;
        union value got = type_load(op->type, m->at + at);
        union value want = type_load(op->type, (char *)t->expected[m->buffer] + (size_t)i * size);
        memcpy(m->before + GUARD + at, m->at + at, size);
        if (close_enough(t, m->buffer, i, got)) continue;
        bool f = type_is_float(op->type);
        *what =
            arena_printf(a, "element %lld of '%s' is %.9g, its semantics give %.9g", (long long)i,
                         op->buffer, f ? got.f : (double)got.i, f ? want.f : (double)want.i);
        return false;
    }
    if (site_pass(t->site, o) == PASS_VALUE && is_written(t->site, o)) return true;
    if (memcmp(m->before, m->block, m->bytes) == 0) return true;
    *what = arena_printf(a, "it writes outside the elements of '%s' that its semantics name",
                         op->buffer);
    return false;
}

static const char *describe(struct arena *a, const struct site *s) {
    const char *text = "";
    for (int i = 0; i < s->instr->nranged; i++)
        text = arena_printf(a, "%s %s=%lld", text,
                            s->instr->semantics->param[s->instr->ranged[i]].name,
                            (long long)s->size[i].value);
    for (int i = 0; i < s->instr->nstride_names; i++)
        text = arena_printf(a, "%s %s=%lld", text, s->instr->stride_name[i],
                            (long long)s->stride[i].value);
    for (int o = 0, flag = 0; o < s->instr->noperands; o++) {
        if (s->instr->operand[o].nlayouts > 1)
            text = arena_printf(a, "%s layout(%s)=%d", text, s->instr->operand[o].buffer,
                                s->layout[o]);
        if (!s->instr->operand[o].accumulate) continue;
        text = arena_printf(a, "%s %s=%lld", text, s->instr->operand[o].accumulate,
                            (long long)s->flag[flag++].value);
    }
    return *text ? arena_printf(a, " (with%s)", text) : "";
}

static bool execute(struct arena *a, struct trial *t, probe_function call, const char **what) {
    const struct instr *x = t->site->instr;
    void **pointer = arena_array(a, (size_t)x->noperands + 1, sizeof *pointer);
    t->memory = arena_array(a, (size_t)x->noperands + 1, sizeof *t->memory);
    t->data = arrays(a, t->program);
    t->expected = arrays(a, t->program);
    t->magnitude = arrays(a, t->program);
    bool good = true;
    for (int o = 0; o < x->noperands && good; o++) {
        good = memory_make(a, t, o);
        if (!good)
            *what = arena_printf(a, "operand '%s' has no known shape", x->operand[o].buffer);
        else
            fill_operand(t, o);
        pointer[o] = t->memory[o].at;
    }
    if (good) {
        call(pointer);
        good = expect(t, t->expected, false) && expect(t, t->magnitude, true);
        if (!good) *what = "its semantics cannot be executed";
    }
    for (int o = 0; o < x->noperands && good; o++) good = compare_operand(a, t, o, what);
    for (int o = 0; o < x->noperands; o++) free(t->memory[o].block);
    return good;
}

bool trial_run(struct arena *a, const struct site *s, probe_function call, uint64_t seed,
               const char **what) {
    struct trial t = {.site = s, .seed = seed, .special = seed % 2};
    struct diags diags;
    int64_t size[64];
    diags_init(&diags);
    for (int i = 0; i < s->instr->nranged && i < 64; i++) size[i] = s->size[i].value;
    t.program = s->instr->nranged <= 64 ? instr_bind(s->machine, s->instr, size, &diags) : NULL;
    bool good = t.program;
    if (!good) *what = arena_printf(a, "its semantics cannot be bound%s", describe(a, s));
    if (t.program) {
        good = execute(a, &t, call, what);
        if (!good) *what = arena_printf(a, "%s%s", *what, describe(a, s));
        program_free(t.program);
    }
    diags_free(&diags);
    return good;
}
