/* Requantisers in fixed point: for equal sums no result is more than a step from that in floats,
 * nothing wraps where sums are largest, and they are taken where prices say so. */
#include "ir/choice.h"
#include "ir/interp.h"
#include "mapper/fixed.h"
#include "mapper_help.h"

#include <math.h>

enum { C = 24, K = 20, P = 6, MAX = 32 };

struct model {
    struct program *p;
    void *data[MAX];
    const void *known[MAX]; /* constants */
    int8_t x[C * P], w[K * C], y[K * P];
    uint8_t u[C * P];
    int32_t b[K];
    double scale[K], offset[K];
};

static void put(struct model *m, const char *name, void *data, bool constant) {
    int b = program_buffer(m->p, name);
    if (b < 0) return;
    m->data[b] = data;
    if (constant) m->known[b] = data;
}

/* `line`: what is rounded, of S[k,p]; `begin`: the first value of the sums; `x`: the factor that is
 * data. */
static void make(struct model *m, const char *begin, const char *x, const char *line,
                 const char *bounds) {
    struct text t = {0};
    *m = (struct model){.p = NULL};
    text_printf(&t,
                "kernel p() { in x: i8[%d,%d]  const w: i8[%d,%d]  const b: i32[%d]\n"
                "  const f: f64[%d]  const o: f64[%d]  out y: i8[%d,%d]  temp S: i32[%d,%d]\n"
                "  axes k: %d, c: %d, p: %d\n"
                "  S[k,p] = %s\n  S[k,p] += %s * i32(w[k,c])\n"
                "  y[k,p] = i8(clip(%s, %s))\n}\n",
                C, P, K, C, K, K, K, K, P, K, P, K, C, P, begin, x, line, bounds);
    m->p = help_program("p", t.at);
    text_free(&t);
    put(m, "x", m->x, false);
    put(m, "w", m->w, true);
    put(m, "b", m->b, true);
    put(m, "f", m->scale, true);
    put(m, "o", m->offset, true);
    put(m, "y", m->y, false);
}

/* Scales of channels differ up to `spread` times; every third run has the largest sums. */
static void fill(struct model *m, uint64_t *seed, double scale, double spread) {
    bool largest = help_below(seed, 3) == 0;
    for (int k = 0; k < K; k++) {
        m->scale[k] = scale * (1 + (k ? spread - 1 : 0) * help_below(seed, 1000) / 1000.0);
        m->offset[k] = (help_below(seed, 2001) - 1000) / 20.0;
        m->b[k] = help_below(seed, 4001) - 2000;
        for (int c = 0; c < C; c++) m->w[k * C + c] = (int8_t)(help_below(seed, 255) - 127);
    }
    for (int i = 0; i < C * P; i++) {
        m->x[i] = (int8_t)(help_below(seed, 256) - 128);
        if (largest) m->x[i] = m->w[i / P] < 0 ? -128 : 127; /* of the first channel */
    }
}

static void run(const struct model *m, const struct program *p, int8_t *out) {
    struct diags d;
    void *data[2 * MAX] = {0};
    diags_init(&d);
    memcpy(data, m->data, sizeof m->data);
    data[program_buffer(p, "y")] = out;
    assert_true(program_run(p, data, NULL, NULL, &d));
    diags_free(&d);
}

static int statement(const struct program *p, const char *buffer) {
    for (int s = p->nstmts; s-- > 0;)
        if (!strcmp(p->buffer[p->stmt[s].dst.buffer].name, buffer)) return s;
    return -1;
}

static bool found(struct model *m, struct arena *a, struct requantiser *x, struct fixed_point *f) {
    return requantiser_find(a, m->p, m->known, statement(m->p, "y"), x) && fixed_point_of(x, f);
}

/* Returns the most that a result differs. */
static int compare(struct model *m, bool apart, double *error) {
    struct arena a;
    struct requantiser x;
    struct fixed_point f;
    struct diags d;
    int8_t want[K * P], got[K * P];
    int most = 0;
    arena_init(&a);
    diags_init(&d);
    assert_true(found(m, &a, &x, &f));
    *error = f.error;
    struct program *q = fixed_point_write(m->p, &x, &f, apart);
    assert_non_null(q);
    assert_true(program_verify(q, &d));
    run(m, m->p, want);
    run(m, q, got);
    for (int i = 0; i < K * P; i++) {
        int by = abs(want[i] - got[i]);
        most = by > most ? by : most;
    }
    program_free(q);
    diags_free(&d);
    arena_free(&a);
    return most;
}

static void test_at_most_a_step(void **state) {
    static const char *const begin[] = {"0", "b[k]"},
                             *const x[] = {"i32(x[c,p])", "(i32(x[c,p]) + 128)",
                                           "(i32(x[c,p]) - 9)"},
                             *const line[] = {"round(f64(S[k,p]) * f[k])",
                                              "round(f64(S[k,p]) * f[k] + o[k])",
                                              "round(f64(S[k,p]) * f[k]) + 5.0",
                                              "round(f64(S[k,p]) * 0.00123)",
                                              "round(o[k] + f[k] * f64(S[k,p])) + -7.0"},
                             *const bounds[] = {"-128, 127", "0, 127", "-5.0, 96.0"};
    uint64_t seed = 5;
    int steps = 0, runs = 0;
    (void)state;
    for (int i = 0; i < 600; i++) {
        struct model m;
        double error;
        make(&m, begin[i % 2], x[i / 30 % 3], line[i / 2 % 5], bounds[i / 10 % 3]);
        fill(&m, &seed, i % 7 < 4 ? 0.0005 : 0.02, i % 4 ? 1.5 : 20);
        int by = compare(&m, i % 3 == 0, &error);
        assert_true(error <= 0.5);
        assert_in_range(by, 0, 1);
        steps += by;
        runs++;
        program_free(m.p);
    }
    assert_true(steps > 0 && steps < runs); /* some differ, or nothing was compared */
}

static bool taken(const char *begin, const char *line, double scale, double spread, bool weights,
                  double *error) {
    struct model m;
    struct arena a;
    struct requantiser x;
    struct fixed_point f = {.error = -1};
    uint64_t seed = 9;
    make(&m, begin, "i32(x[c,p])", line, "-128, 127");
    fill(&m, &seed, scale, spread);
    if (!weights) m.known[program_buffer(m.p, "w")] = NULL;
    arena_init(&a);
    bool ok = found(&m, &a, &x, &f);
    *error = f.error;
    arena_free(&a);
    program_free(m.p);
    return ok;
}

/* What is not known, or needs more bits than there are, is left alone. */
static void test_left_alone(void **state) {
    static const char plain[] = "round(f64(S[k,p]) * f[k])";
    double error;
    (void)state;
    assert_true(taken("0", plain, 0.001, 2, true, &error));
    assert_true(error > 0 && error <= 0.25);
    assert_false(taken("0", plain, 0.001, 2, false, &error));
    assert_false(taken("0", plain, 1e-7, 1e6, true, &error));
    assert_false(taken("0", plain, INFINITY, 2, true, &error));
    assert_false(taken("0", plain, NAN, 2, true, &error));
    assert_false(taken("0", plain, -0.001, 2, true, &error));
    assert_false(taken("3", plain, 0.001, 2, true, &error));
    assert_false(taken("0", "round(f64(S[k,p]) * f[k] * 0.5)", 0.001, 2, true, &error));
    assert_false(taken("0", "floor(f64(S[k,p]) * f[k])", 0.001, 2, true, &error));
    assert_false(taken("0", "round(f64(S[k,p]) * f[k] + f64(S[k,0]))", 0.001, 2, true, &error));
}

static void *open_none(uint64_t seed) {
    (void)seed;
    return NULL;
}

static int least(void *state, const struct question *q) {
    int best = 0;
    (void)state;
    for (int i = 1; i < q->ncandidates; i++)
        if (q->candidate[i].cost < q->candidate[best].cost) best = i;
    return best;
}

static const struct approach cheapest = {
    .name = "cheapest", .open = open_none, .close = free, .choose = least};

/* Beside a device, where products are short and sums many; not on a processor alone. */
static int changed_on(const struct machine *mach, const char *name, int c, int side) {
    struct text t = {0};
    uint64_t seed = 3;
    text_printf(&t,
                "kernel p() { in x: i8[%d,%d,%d]  const w: i8[64,%d]  const f: f64[64]\n"
                "  out y: i8[64,%d,%d]  temp S: i32[64,%d,%d]  axes k: 64, c: %d, p: %d, q: %d\n"
                "  S[k,p,q] = 0\n  S[k,p,q] += i32(x[c,p,q]) * i32(w[k,c])\n"
                "  y[k,p,q] = i8(clip(round(f64(S[k,p,q]) * f[k]), -128, 127))\n}\n",
                c, side, side, c, side, side, side, side, c, side, side);
    struct program *p = help_program(name, t.at);
    const void *known[MAX] = {0};
    int8_t *w = malloc((size_t)(64 * c));
    double f[64];
    for (int i = 0; i < 64 * c; i++) w[i] = (int8_t)(help_below(&seed, 255) - 127);
    for (int k = 0; k < 64; k++) f[k] = 0.001 + k * 1e-5;
    known[program_buffer(p, "w")] = w;
    known[program_buffer(p, "f")] = f;
    struct decider *d = decider_open(&cheapest, 1);
    int changed = -1;
    struct program *q = mapper_fixed_point(p, mach, known, REWRITE_REORDERS, d, &changed);
    assert_int_equal(q != NULL, changed > 0);
    decider_close(d);
    program_free(q);
    program_free(p);
    text_free(&t);
    free(w);
    return changed;
}

static void test_where_it_pays(void **state) {
    struct diags d;
    (void)state;
    diags_init(&d);
    struct machine *edge = machine_join("machines/edge16.xml", "machines/cpu-avx2.xml", NULL, &d),
                   *cpu = help_machine("machines/cpu-avx2.xml");
    assert_non_null(edge);
    assert_int_equal(changed_on(edge, "short sums", 16, 56), 1);
    assert_int_equal(changed_on(edge, "long sums", 4096, 28), 0);
    assert_int_equal(changed_on(cpu, "no device", 16, 56), 0);
    machine_free(edge);
    machine_free(cpu);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_most_a_step),
        cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_where_it_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
