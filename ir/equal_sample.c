/* Samples: single elements of what changed statements write are computed in both programs from
 * random values of what they read, at full size (Schwartz 1980, Zippel 1979). It refutes; what it
 * does not refute is not proved by it.
 *
 * Over the field of 2^61 - 1 a sum of products is exact, whatever the order; functions that the
 * field does not have (exp, rounding, narrowing casts) are keyed hashes of their arguments; max,
 * min and comparisons take elements as integers around zero. Where an element depends on integers
 * alone, and for rewrites that must keep every bit, the same is computed as the machine would, on
 * random and on extreme values: wrapping and the order of casts are seen there. */
#include "ir/chain.h"
#include "ir/interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SAMPLES = 3,
    FIELD_SAMPLES = 32,
    VALUE_SAMPLES = 256,
    CHUNK = 32,
    SPECIAL_TRIALS = 4,
    VALUE_TRIALS = 64
};
static const uint64_t prime = (UINT64_C(1) << 61) - 1;
static const int64_t visits_in_all = 100000, visits_of_one = 3000000;

struct both {
    const struct program *p[2];
    struct items w[2];
    int *twin; /* buffer of program 0 in program 1; -1: none */
};

static struct program view_of(const struct both *x, int side) {
    struct program view = *x->p[side];
    view.item += x->w[side].from;
    view.nitems = x->w[side].to - x->w[side].from;
    return view;
}

static bool written(const struct program *view, int buffer) {
    for (int i = 0; i < view->nitems && buffer >= 0; i++)
        if (view->item[i].kind != ITEM_STMT || view->stmt[view->item[i].stmt].dst.buffer == buffer)
            return true;
    return false;
}

/* ---- the field ---- */

struct trial {
    uint64_t seed;
    bool
        integers; /* all values are: casts keep them, the other evaluation sees what they cut off */
    int trial;    /* of real values: which kind of numbers */
};

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

static uint64_t field_mul(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b % prime);
}

static uint64_t field_power(uint64_t a, uint64_t e) {
    uint64_t r = 1;
    for (; e; e >>= 1, a = field_mul(a, a))
        if (e & 1) r = field_mul(r, a);
    return r;
}

static uint64_t field_of(int64_t i) {
    int64_t r = i % (int64_t)prime;
    return (uint64_t)(r < 0 ? r + (int64_t)prime : r);
}

static int64_t centred(union value v) {
    uint64_t x = (uint64_t)v.i;
    return x > prime / 2 ? (int64_t)x - (int64_t)prime : (int64_t)x;
}

static union value element(uint64_t x) {
    return (union value){.i = (int64_t)x};
}

static union value field_literal(void *user, enum type t, union value v) {
    (void)user;
    if (!type_is_float(t)) return element(field_of(v.i));
    if (fabs(v.f) < 0x1p53 && v.f == (double)(int64_t)v.f) return element(field_of((int64_t)v.f));
    if (isnan(v.f)) return element(prime / 3);
    if (isinf(v.f)) return element(v.f > 0 ? prime / 2 : prime / 2 + 1);
    int e;
    int64_t m = (int64_t)ldexp(frexp(v.f, &e), 53);
    e -= 53;
    uint64_t two = e < 0 ? field_power(2, prime - 2) : 2;
    return element(field_mul(field_of(m), field_power(two, (uint64_t)(e < 0 ? -e : e))));
}

static union value field_hash(const struct trial *f, enum opcode code, enum type to, int n,
                              const union value *arg) {
    uint64_t h = mix(f->seed, (uint64_t)code * 64 + (uint64_t)to);
    for (int k = 0; k < n; k++) h = mix(h, (uint64_t)arg[k].i);
    return element(to == TYPE_BOOL ? h & 1 : h % prime);
}

/* Does a cast keep every value? */
static bool cast_keeps(const struct trial *f, enum type to, enum type from) {
    if (f->integers || type_is_float(to)) return true;
    if (type_is_float(from)) return false;
    if (type_is_signed(to) == type_is_signed(from)) return type_size(to) >= type_size(from);
    return type_is_signed(to) && type_size(to) > type_size(from);
}

/* Integer operations that the field lacks: on small numbers, as positions are, as they are. */
static union value field_integer(const struct trial *f, enum opcode code, enum type to,
                                 const union value *arg) {
    int64_t a = centred(arg[0]), b = centred(arg[1]);
    union value small[2] = {{.i = a}, {.i = b}};
    if (llabs(a) < INT64_C(1) << 31 && llabs(b) < INT64_C(1) << 31)
        return element(field_of(op_eval(code, TYPE_I64, TYPE_I64, small).i));
    return field_hash(f, code, to, 2, arg);
}

static union value field_logic(const struct trial *f, enum opcode code, enum type to,
                               const union value *arg) {
    if (to != TYPE_BOOL) return field_hash(f, code, to, op_info[code].arity, arg);
    bool a = arg[0].i != 0, b = op_info[code].arity > 1 && arg[1].i != 0;
    return element(code == OP_AND ? a && b : code == OP_OR ? a || b : code == OP_XOR ? a != b : !a);
}

static union value field_eval(void *user, enum opcode code, enum type to, enum type from,
                              const union value *arg) {
    const struct trial *f = user;
    uint64_t a = (uint64_t)arg[0].i, b = op_info[code].arity > 1 ? (uint64_t)arg[1].i : 0;
    int64_t ca = centred(arg[0]), cb = op_info[code].arity > 1 ? centred(arg[1]) : 0;
    switch (code) {
    case OP_ADD:
        return element((a + b) % prime);
    case OP_SUB:
        return element((a + prime - b) % prime);
    case OP_NEG:
        return element((prime - a) % prime);
    case OP_MUL:
        return element(field_mul(a, b));
    case OP_DIV:
        return type_is_float(to) || f->integers ? element(field_mul(a, field_power(b, prime - 2)))
                                                : field_integer(f, code, to, arg);
    case OP_MOD:
    case OP_SHL:
    case OP_SHR:
        return field_integer(f, code, to, arg);
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_NOT:
        return field_logic(f, code, to, arg);
    case OP_MAX:
        return ca >= cb ? arg[0] : arg[1];
    case OP_MIN:
        return ca <= cb ? arg[0] : arg[1];
    case OP_CLIP: {
        union value low = ca >= cb ? arg[0] : arg[1];
        return centred(low) <= centred(arg[2]) ? low : arg[2];
    }
    case OP_SELECT:
        return arg[0].i ? arg[1] : arg[2];
    case OP_EQ:
        return element(a == b);
    case OP_NE:
        return element(a != b);
    case OP_LT:
        return element(ca < cb);
    case OP_LE:
        return element(ca <= cb);
    case OP_GT:
        return element(ca > cb);
    case OP_GE:
        return element(ca >= cb);
    case OP_CAST:
        if (to == TYPE_BOOL) return element(a != 0);
        return cast_keeps(f, to, from) ? arg[0] : field_hash(f, code, to, 1, arg);
    default:
        return field_hash(f, code, to, op_info[code].arity, arg);
    }
}

static uint64_t place_hash(const struct trial *f, const struct program *p, int buffer,
                           int64_t element) {
    uint64_t h = mix(f->seed, (uint64_t)element);
    for (const char *c = p->buffer[buffer].name; *c; c++) h = mix(h, (unsigned char)*c);
    return h;
}

static union value field_input(void *user, const struct program *p, int buffer, int64_t at) {
    uint64_t h = place_hash(user, p, buffer, at);
    return element(p->buffer[buffer].type == TYPE_BOOL ? h & 1 : h % prime);
}

/* ---- as a machine computes ---- */

static union value real_eval(void *user, enum opcode code, enum type to, enum type from,
                             const union value *arg) {
    (void)user;
    return op_eval(code, to, from, arg);
}

static union value real_literal(void *user, enum type t, union value v) {
    (void)user;
    (void)t;
    return v;
}

/* Trials: any value, the lowest, the highest, small ones, then any again. */
static union value real_input(void *user, const struct program *p, int buffer, int64_t at) {
    const struct trial *f = user;
    enum type t = p->buffer[buffer].type;
    uint64_t h = mix(place_hash(f, p, buffer, at), (uint64_t)f->trial);
    if (type_is_float(t)) {
        double v =
            (double)(int64_t)h * 0x1p-60; /* quarters: their sums are the same in any order */
        return (union value){.f = f->trial == 3 ? round(v) : round(4 * v) / 4};
    }
    int64_t low, high;
    type_limits(t, &low, &high);
    if (f->trial == 1) return (union value){.i = low};
    if (f->trial == 2) return (union value){.i = high};
    return (union value){.i = type_wrap(t, f->trial == 3 ? h % 7 - 3 : h)};
}

/* ---- comparing ---- */

static bool stmt_integers(const struct program *view, const struct stmt *s) {
    bool integers = !type_is_float(view->buffer[s->dst.buffer].type);
    for (int o = 0; integers && o < s->nops; o++) integers = !type_is_float(s->op[o].type);
    return integers;
}

/* Are all values that the buffer's depend on integers? */
static bool all_integers(const struct program *view, int buffer, struct arena *scratch) {
    bool *needed = arena_array(scratch, (size_t)view->nbuffers + 1, sizeof *needed);
    needed[buffer] = true;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < view->nitems; i++) {
            if (view->item[i].kind != ITEM_STMT) return false;
            const struct stmt *s = &view->stmt[view->item[i].stmt];
            if (!needed[s->dst.buffer]) continue;
            if (!stmt_integers(view, s)) return false;
            for (int r = 0; r < s->nreads; r++) {
                more |= !needed[s->read[r].buffer];
                needed[s->read[r].buffer] = true;
            }
        }
    }
    return true;
}

/* One sample in four is any element; the others are elements that a changed statement writes, those
 * of both programs in turn: near the corners of its domain, at the borders of its constraints,
 * anywhere in it. */
static int64_t sample_place(const struct program *const view[2], int buffer, int twin, int k,
                            uint64_t seed) {
    const struct buffer *b = &view[0]->buffer[buffer];
    uint64_t h = mix(mix(seed, (uint64_t)buffer), (uint64_t)k);
    const struct program *p = view[k & 1];
    for (int tries = 0; k % 4 != 3 && tries < p->nitems; tries++) {
        const struct item *item = &p->item[(h + (uint64_t)tries) % (uint64_t)p->nitems];
        if (item->kind != ITEM_STMT || p->stmt[item->stmt].dst.buffer != (k & 1 ? twin : buffer))
            continue;
        int64_t at = stmt_place(p, &p->stmt[item->stmt], h);
        if (at >= 0) return at;
    }
    return (int64_t)(h >> 8) % b->elements;
}

struct comparison {
    const struct program *view[2];
    struct arithmetic over;
    int64_t visits, most; /* most: of a buffer, about */
    int64_t samples;
    bool costly;
    struct text *why;
};

__attribute__((format(printf, 2, 0))) static bool refuse(struct text *why, const char *text,
                                                         const char *name) {
    if (why) text_printf(why, text, name);
    return false;
}

/* Elements first .. n - 1 of the samples, in both programs; what they share is computed once. */
static bool compare_samples(struct comparison *c, int buffer, int twin, int first, int n) {
    const struct buffer *b = &c->view[0]->buffer[buffer];
    const struct trial *f = c->over.user;
    int64_t at[CHUNK];
    union value v[2][CHUNK];
    for (int k = first; k < n; k++) at[k - first] = sample_place(c->view, buffer, twin, k, f->seed);
    n -= first;
    for (int side = 0; side < 2; side++)
        if (!program_sample_over(c->view[side], &c->over, side ? twin : buffer, at, n, v[side]))
            return c->costly = true,
                   refuse(c->why, "elements of '%s' take too many steps to compute", b->name);
    c->samples += n;
    if (memcmp(v[0], v[1], (size_t)n * sizeof **v) != 0)
        return refuse(c->why, "an element of '%s' comes out differently", b->name);
    return true;
}

/* A few elements decide over a field. Values as they are have rare cases (carries): many more. */
static bool compare_buffer(struct comparison *c, int buffer, int twin) {
    const struct buffer *b = &c->view[0]->buffer[buffer];
    int most = c->over.exact ? FIELD_SAMPLES : VALUE_SAMPLES;
    c->visits = 0;
    if (b->elements == 0) return true;
    for (int k = 0; k < most && (k == 0 || c->visits < c->most);) {
        int next = k == 0 ? FIRST_SAMPLES : k + CHUNK < most ? k + CHUNK : most;
        if (!compare_samples(c, buffer, twin, k, next)) return false;
        k = next;
    }
    return true;
}

struct outcome {
    bool same, costly;
    int64_t visits, samples;
};

/* integers: [nbuffers] of program 0; others are compared only where `floats`. */
static void compare(const struct both *x, const struct arithmetic *over, const bool *integers,
                    bool floats, int64_t most, struct outcome *o, struct text *why) {
    struct trial *f = over->user;
    struct program view[2] = {view_of(x, 0), view_of(x, 1)};
    struct comparison c = {.view = {&view[0], &view[1]}, .over = *over, .most = most, .why = why};
    c.over.visits = &c.visits;
    for (int b = 0; b < x->p[0]->nbuffers && o->same; b++) {
        int t = x->twin[b];
        if (!written(&view[0], b) && !written(&view[1], t)) continue;
        if (!span_shows(x->p[0], x->w[0], b) && (t < 0 || !span_shows(x->p[1], x->w[1], t)))
            continue;
        if (!integers[b] && !floats) continue;
        f->integers = integers[b];
        o->same = t < 0 ? refuse(why, "'%s' is declared differently", x->p[0]->buffer[b].name)
                        : compare_buffer(&c, b, t);
        o->visits += c.visits;
    }
    o->samples += c.samples;
    o->costly |= c.costly;
}

struct verdict items_sampled(const struct program *p, struct items a, const struct program *q,
                             struct items b, enum sampling how, struct text *why) {
    struct arena arena;
    arena_init(&arena);
    struct both x = {.p = {p, q}, .w = {a, b}};
    x.twin = arena_array(&arena, (size_t)p->nbuffers + 1, sizeof *x.twin);
    for (int k = 0; k < p->nbuffers; k++) x.twin[k] = buffer_twin(p, k, q);
    struct program view[2] = {view_of(&x, 0), view_of(&x, 1)};
    bool *integers = arena_array(&arena, (size_t)p->nbuffers + 1, sizeof *integers), any = false;
    for (int k = 0; k < p->nbuffers; k++) {
        integers[k] = all_integers(&view[0], k, &arena) &&
                      (x.twin[k] < 0 || all_integers(&view[1], x.twin[k], &arena));
        any |= integers[k] && written(&view[0], k);
    }
    struct trial f = {.seed = 0x51a5};
    struct arithmetic field = {.eval = field_eval,
                               .literal = field_literal,
                               .input = field_input,
                               .user = &f,
                               .exact = true,
                               .most_visits = visits_of_one};
    struct arithmetic real = {.eval = real_eval,
                              .literal = real_literal,
                              .input = real_input,
                              .user = &f,
                              .most_visits = visits_of_one};
    struct outcome o = {.same = true};
    bool by_values = how != SAMPLE_FIELD;
    if (!by_values) compare(&x, &field, integers, true, visits_in_all, &o, why);
    /* what the field has decided needs few values: only wrapping and casts are left */
    int64_t most = by_values ? visits_in_all : visits_in_all / SPECIAL_TRIALS;
    o.visits = 0;
    for (; o.same && (by_values || any) && f.trial < VALUE_TRIALS &&
           (f.trial < SPECIAL_TRIALS || o.visits < (how == SAMPLE_RANGES ? 4 : 1) * visits_in_all);
         f.trial++)
        compare(&x, &real, integers, by_values, most, &o, why);
    arena_free(&arena);
    return (struct verdict){.evidence = o.same     ? EVIDENCE_SAMPLED
                                        : o.costly ? EVIDENCE_UNPROVED
                                                   : EVIDENCE_REFUTED,
                            .samples = o.samples,
                            .why = o.same     ? NULL
                                   : o.costly ? "elements take too many steps to compute"
                                              : "an element comes out differently"};
}
