/* The fallback of every backend computes what the interpreter computes: each operation on each
 * type, casts, reductions, random expressions. */
#include "backends/backend.h"
#include "ir/interp.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { POINTS = 97 };

struct bench {
    struct diags diags;
    struct machine *machine;
};

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 32;
}

static int setup(void **state) {
    struct bench *b = calloc(1, sizeof *b);
    diags_init(&b->diags);
    b->machine =
        machine_load(SOURCE_DIR "/tests/data/machines/backends/plain.xml", NULL, &b->diags);
    if (!b->machine) diags_print(&b->diags, stderr);
    *state = b;
    return b->machine ? 0 : -1;
}

static int teardown(void **state) {
    struct bench *b = *state;
    machine_free(b->machine);
    diags_free(&b->diags);
    free(b);
    return 0;
}

/* A schedule that runs every statement of the kernel by the fallback. */
static struct schedule *plan(struct bench *b, struct arena *a, const char *kernel) {
    struct text t = {0};
    struct kernel **k;
    struct source only = {"kernel", kernel, strlen(kernel), 1, 1};
    assert_int_equal(kernel_parse(a, &only, &k, &b->diags), 1);
    struct program *p = program_bind(k[0], NULL, NULL, &b->diags);
    if (!p) diags_print(&b->diags, stderr);
    assert_non_null(p);
    text_printf(&t, "schedule t on plain {\nprogram {\n%s\n}\n", kernel);
    int64_t address = 0;
    for (int i = 0; i < p->nbuffers; i++) {
        int64_t bytes = p->buffer[i].elements * (int64_t)type_size(p->buffer[i].type);
        text_printf(&t, "place %s: %s in dram at %lld bytes %lld %s\n", p->buffer[i].name,
                    p->buffer[i].name, (long long)address, (long long)bytes,
                    p->buffer[i].role == ROLE_TEMP ? "workspace" : "argument");
        address += (bytes + 63) / 64 * 64;
    }
    text_printf(&t, "run {\n");
    for (int s = 0; s < p->nstmts; s++) text_printf(&t, "fallback core c do %d\n", s);
    text_printf(&t, "}\n}\n");
    program_free(p);
    struct source *s = arena_alloc(a, sizeof *s);
    *s = (struct source){"ops.sched", arena_strdup(a, t.at), t.n, 1, 1};
    text_free(&t);
    struct schedule *schedule = schedule_parse(b->machine, s, &b->diags);
    if (!schedule) diags_print(&b->diags, stderr);
    assert_non_null(schedule);
    return schedule;
}

/* ---- data ---- */
static union value random_value(enum type t, uint64_t *state) {
    static const double special[] = {
        0,      -0.0,     1,         -1,    0.5,          -0.5,          1.5,     2.5,
        -2.5,   INFINITY, -INFINITY, NAN,   1e-40,        65504,         65519.9, 65520,
        -70000, 3e38,     -3e38,     1e300, 2147483648.0, -2147483649.0, 9.3e18,  1.9e19,
        5.9e-8, 127.5,    254.5};
    union value v;
    uint64_t r = next_random(state);
    if (type_is_float(t)) {
        if (r % 3 == 0)
            v.f = special[(r >> 8) % (sizeof special / sizeof *special)];
        else
            v.f = ((double)(next_random(state) % 200001) - 100000) / (r % 2 ? 1000.0 : 8192.0);
        v.f = type_round(t, v.f);
        return v;
    }
    int64_t low, high;
    type_limits(t, &low, &high);
    switch (r % 6) {
    case 0:
        v.i = low;
        break;
    case 1:
        v.i = high;
        break;
    case 2:
        v.i = (int64_t)(r >> 8) % 3 - 1;
        break;
    case 3:
        v.i = (int64_t)((r >> 8) % 140) - 70;
        break;
    default:
        v.i = (int64_t)(next_random(state) << 32 ^ next_random(state));
        break;
    }
    v.i = type_wrap(t, (uint64_t)v.i);
    return v;
}

static void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *f = &p->buffer[b];
        size_t size = type_size(f->type);
        if (f->role == ROLE_TEMP) continue;
        data[b] = calloc((size_t)f->elements, size);
        for (int64_t i = 0; i < f->elements; i++)
            type_store(f->type, (char *)data[b] + (size_t)i * size, random_value(f->type, &seed));
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static double unit_in_last_place(enum type t, double x) {
    double a = fabs(x);
    if (t == TYPE_F64) return nextafter(a, INFINITY) - a;
    if (t == TYPE_F32) return (double)nextafterf((float)a, INFINITY) - (double)(float)a;
    int fraction = t == TYPE_F16 ? 10 : 7, lowest = t == TYPE_F16 ? -14 : -126, e;
    frexp(a, &e);
    return ldexp(1, (a == 0 || e - 1 < lowest ? lowest : e - 1) - fraction);
}

static bool same(enum type t, union value a, union value b, double ulps) {
    if (!type_is_float(t)) return a.i == b.i;
    if (isnan(a.f) || isnan(b.f)) return isnan(a.f) && isnan(b.f);
    if (a.f == b.f) return signbit(a.f) == signbit(b.f) || ulps > 0;
    if (isinf(a.f) || isinf(b.f)) return false;
    return fabs(a.f - b.f) <= ulps * unit_in_last_place(t, b.f);
}

static void check(struct bench *b, const char *kernel, double ulps) {
    struct arena a;
    arena_init(&a);
    struct schedule *s = plan(b, &a, kernel);
    const struct program *p = s->program;
    int speak = 0;
    for (int k = 0; backends[k]; k++) {
        if (!backends[k]->accepts(s)) continue;
        speak++;
        struct executable *e = backends[k]->load(s, NULL, &b->diags);
        if (!e) diags_print(&b->diags, stderr);
        assert_non_null(e);
        void **got = make_data(p, 5), **want = make_data(p, 5);
        assert_true(program_run(p, want, NULL, NULL, &b->diags));
        assert_true(executable_prepare(e, got, &b->diags));
        assert_true(executable_run(e, got, 1, &b->diags));
        for (int f = 0; f < p->nbuffers; f++) {
            enum type t = p->buffer[f].type;
            size_t size = type_size(t);
            for (int64_t i = 0; got[f] && i < p->buffer[f].elements; i++) {
                union value x = type_load(t, (char *)got[f] + (size_t)i * size);
                union value y = type_load(t, (char *)want[f] + (size_t)i * size);
                if (!same(t, x, y, ulps))
                    fail_msg(
                        "%s: %s[%lld] of type %s is %.17g (%lld), expected %.17g (%lld) in\n%s",
                        backends[k]->name, p->buffer[f].name, (long long)i, type_name(t), x.f,
                        (long long)x.i, y.f, (long long)y.i, kernel);
            }
        }
        free_data(p, got);
        free_data(p, want);
        executable_free(e);
    }
    assert_true(speak > 0);
    schedule_free(s);
    arena_free(&a);
}

/* ---- every operation on every type ---- */
static bool defined_on(enum opcode op, enum type t) {
    int flags = op_info[op].flags;
    if (op_info[op].notation == NOTE_LEAF || op == OP_CAST) return false;
    if (flags & OP_FLOAT_ONLY) return type_is_float(t);
    if (flags & OP_INT_ONLY && type_is_float(t)) return false;
    if (t != TYPE_BOOL) return true;
    bool bitwise = flags & OP_INT_ONLY && op != OP_SHL && op != OP_SHR;
    return bitwise || op == OP_MIN || op == OP_MAX || op == OP_SELECT || op == OP_EQ || op == OP_NE;
}

static void print_op(struct text *t, enum opcode op) {
    const struct op_info *o = &op_info[op];
    if (op == OP_SELECT)
        text_printf(t, "select(S[i], A[i], B[i])");
    else if (o->notation == NOTE_INFIX)
        text_printf(t, "A[i] %s B[i]", o->spelling);
    else if (o->notation == NOTE_PREFIX)
        text_printf(t, "%sA[i]", o->spelling);
    else if (o->arity == 1)
        text_printf(t, "%s(A[i])", o->spelling);
    else if (o->arity == 2)
        text_printf(t, "%s(A[i], B[i])", o->spelling);
    else
        text_printf(t, "%s(A[i], B[i], C[i])", o->spelling);
}

static bool transcendental(enum opcode op) {
    return op == OP_EXP || op == OP_LOG || op == OP_SIN || op == OP_COS || op == OP_TANH ||
           op == OP_SIGMOID || op == OP_ERF || op == OP_ATAN || op == OP_POW;
}

static void operations(struct bench *b, enum type type, bool inexact) {
    struct text t = {0}, body = {0};
    const char *name = type_name(type);
    text_printf(&t,
                "kernel t() {\nin A: %s[%d] in B: %s[%d] in C: %s[%d] in S: bool[%d]\naxes i: %d\n",
                name, POINTS, name, POINTS, name, POINTS, POINTS, POINTS);
    for (int op = 0; op < OP_COUNT; op++) {
        if (!defined_on((enum opcode)op, type) || transcendental((enum opcode)op) != inexact)
            continue;
        bool boolean = op_info[op].flags & OP_TO_BOOL;
        text_printf(&t, "out O%d: %s[%d]\n", op, boolean ? "bool" : name, POINTS);
        text_printf(&body, "O%d[i] = ", op);
        print_op(&body, (enum opcode)op);
        text_printf(&body, "\n");
    }
    if (body.n) {
        text_printf(&t, "%s}\n", body.at);
        check(b, t.at, inexact ? 4 : 0);
    }
    text_free(&t);
    text_free(&body);
}

static void test_operations(void **state) {
    for (int t = 0; t < TYPE_COUNT; t++) operations(*state, (enum type)t, false);
}

static void test_transcendental(void **state) {
    for (int t = 0; t < TYPE_COUNT; t++) operations(*state, (enum type)t, true);
}

static void test_casts(void **state) {
    struct text t = {0}, body = {0};
    text_printf(&t, "kernel t() {\naxes i: %d\n", POINTS);
    for (int from = 0; from < TYPE_COUNT; from++) {
        text_printf(&t, "in A%d: %s[%d]\n", from, type_name((enum type)from), POINTS);
        for (int to = 0; to < TYPE_COUNT; to++) {
            text_printf(&t, "out O%d_%d: %s[%d]\n", from, to, type_name((enum type)to), POINTS);
        }
    }
    for (int from = 0; from < TYPE_COUNT; from++)
        for (int to = 0; to < TYPE_COUNT; to++)
            text_printf(&body, "O%d_%d[i] = %s(A%d[i])\n", from, to, type_name((enum type)to),
                        from);
    text_printf(&t, "%s}\n", body.at);
    check(*state, t.at, 0);
    text_free(&t);
    text_free(&body);
}

static void test_reductions(void **state) {
    struct text t = {0}, body = {0};
    text_printf(&t, "kernel t() {\naxes i: 7, k: 5, l: 3\n");
    for (int type = 0; type < TYPE_COUNT; type++) {
        if (type == TYPE_BOOL) continue;
        text_printf(&t, "in A%d: %s[7,5,3]\n", type, type_name((enum type)type));
        for (int c = COMBINE_ADD; c < COMBINE_COUNT; c++) {
            text_printf(&t, "inout O%d_%d: %s[7] inout P%d_%d: %s[5]\n", type, c,
                        type_name((enum type)type), type, c, type_name((enum type)type));
            text_printf(&body, "O%d_%d[i] %s A%d[i,k,l]\n", type, c, combiner_spelling[c], type);
            text_printf(&body, "P%d_%d[k] %s A%d[i,k,l] where l <= i and k + l >= 2\n", type, c,
                        combiner_spelling[c], type);
        }
    }
    text_printf(&t, "%s}\n", body.at);
    check(*state, t.at, 0);
    text_free(&t);
    text_free(&body);
}

/* ---- random expressions ---- */
static void expression(struct text *t, enum type type, int depth, uint64_t *state);

static void leaf(struct text *t, enum type type, uint64_t *state) {
    const char *name = type_name(type);
    static const char *const fills[] = {"0", "3", "1"};
    switch (next_random(state) % 4) {
    case 0:
        text_printf(t, "%s_a[i,j]", name);
        return;
    case 1:
        text_printf(t, "%s_b[j+%d,2*i-1 else %s]", name, (int)(next_random(state) % 3) - 1,
                    type == TYPE_BOOL ? "1" : fills[next_random(state) % 3]);
        return;
    case 2:
        if (type != TYPE_BOOL) {
            text_printf(t, "%s(i)", name);
            return;
        }
        break;
    default:
        break;
    }
    text_printf(t, "%s_a[j,i]", name);
}

static void call(struct text *t, enum opcode op, enum type type, int depth, uint64_t *state) {
    const struct op_info *o = &op_info[op];
    text_printf(t, o->notation == NOTE_CALL ? "%s(" : "(", o->spelling);
    if (o->notation == NOTE_PREFIX) text_printf(t, "%s ", o->spelling);
    for (int k = 0; k < o->arity; k++) {
        if (k) text_printf(t, o->notation == NOTE_CALL ? ", " : " %s ", o->spelling);
        expression(t, op == OP_SELECT && k == 0 ? TYPE_BOOL : type, depth - 1, state);
    }
    text_printf(t, ")");
}

static void expression(struct text *t, enum type type, int depth, uint64_t *state) {
    enum opcode op = (enum opcode)(next_random(state) % OP_COUNT);
    enum type other = (enum type)(next_random(state) % TYPE_COUNT);
    if (depth == 0) {
        leaf(t, type, state);
    } else if (op == OP_CAST || op_info[op].notation == NOTE_LEAF) {
        text_printf(t, "%s(", type_name(type));
        expression(t, other, depth - 1, state);
        text_printf(t, ")");
    } else if (op_info[op].flags & OP_TO_BOOL) {
        if (type != TYPE_BOOL) text_printf(t, "%s", type_name(type));
        if (!defined_on(op, other)) op = OP_EQ;
        text_printf(t, "(");
        call(t, op, other, depth, state);
        text_printf(t, ")");
    } else if (defined_on(op, type) && !transcendental(op)) {
        call(t, op, type, depth, state);
    } else {
        leaf(t, type, state);
    }
}

static void test_random(void **state) {
    uint64_t seed = 11;
    for (int round = 0; round < 3; round++) {
        struct text t = {0}, body = {0};
        text_printf(&t, "kernel t() {\naxes i: 6, j: 6\n");
        for (int type = 0; type < TYPE_COUNT; type++) {
            const char *name = type_name((enum type)type);
            text_printf(&t, "in %s_a: %s[6,6] in %s_b: %s[6,9]\n", name, name, name, name);
            for (int n = 0; n < 4; n++) {
                text_printf(&t, "out %s_%d: %s[6,6]\n", name, n, name);
                text_printf(&body, "%s_%d[i,j] = ", name, n);
                expression(&body, (enum type)type, 3, &seed);
                text_printf(&body, "\n");
            }
        }
        text_printf(&t, "%s}\n", body.at);
        check(*state, t.at, 0);
        text_free(&t);
        text_free(&body);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations), cmocka_unit_test(test_transcendental),
        cmocka_unit_test(test_casts),      cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
