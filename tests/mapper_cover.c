/* Covers: which instruction executes what, splits, fills inside accumulations, and that any legal
 * choice keeps the program's meaning. */
#include "ir/interp.h"
#include "mapper_help.h"
#include <math.h>
#include <unistd.h>

/* ---- two approaches of the test's own: cheapest, and by lot ---- */

static void *open_lot(uint64_t seed) {
    uint64_t *s = malloc(sizeof *s);
    *s = seed * 2654435761u + 1;
    return s;
}

static int choose_lot(void *state, const struct question *q) {
    return help_below(state, q->ncandidates);
}

static int choose_cheapest(void *state, const struct question *q) {
    int best = 0;
    (void)state;
    for (int i = 1; i < q->ncandidates; i++)
        if (q->candidate[i].cost < q->candidate[best].cost) best = i;
    return best;
}

static const struct approach cheapest = {
    .name = "cheapest", .open = open_lot, .close = free, .choose = choose_cheapest};
static const struct approach lot = {
    .name = "lot", .open = open_lot, .close = free, .choose = choose_lot};

static struct cover *cover_of(const struct program *p, const struct machine *m,
                              const struct approach *a, uint64_t seed) {
    struct diags d;
    diags_init(&d);
    struct decider *decider = decider_open(a, seed);
    struct cover *c = mapper_cover(p, m, decider, &d);
    if (!c) diags_print(&d, stderr);
    assert_non_null(c);
    bool good = cover_verify(c, m, &d);
    if (!good) diags_print(&d, stderr);
    assert_true(good);
    decider_close(decider);
    diags_free(&d);
    return c;
}

/* "mm16 requant -": instruction of each item; "+": inside another, "-": the fallback */
static char *shape_of(const struct cover *c, const struct machine *m) {
    struct text t = {0};
    for (int i = 0; i < c->nitems; i++) {
        const struct cover_item *x = &c->item[i];
        text_printf(&t, "%s%s", i ? " " : "",
                    x->inside >= 0   ? "+"
                    : x->mapping < 0 ? "-"
                                     : m->instr[c->mapping[x->mapping].instr].id);
    }
    return t.at;
}

static void expect_shape_on(const struct machine *m, const char *text, const char *shape) {
    struct program *p = help_program("p", text);
    struct cover *c = cover_of(p, m, &cheapest, 0);
    char *got = shape_of(c, m);
    assert_string_equal(got, shape);
    free(got);
    cover_free(c);
    program_free(p);
}

static void expect_shape(const char *machine, const char *text, const char *shape) {
    struct machine *m = help_machine(machine);
    expect_shape_on(m, text, shape);
    machine_free(m);
}

#define CONV                                                                                       \
    "kernel conv(N=1, C=64, K=64, P=28, Q=28, R=3, S=3) {\n"                                       \
    "  in I: i8[N, C, P, Q]  const F: i8[K, C, R, S]  const B: i32[K]  out O: i8[N, K, P, Q]\n"    \
    "  temp A: i32[N,K,P,Q]  axes n: N, k: K, p: P, q: Q, c: C, r: R, s: S\n"                      \
    "  A[n,k,p,q]  = %s\n; A[n,k,p,q] += i32(I[n,c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n"       \
    "  O[n,k,p,q] = i8(clip(round(f64(%s) * 0.0078125), -128, 127))\n}\n"

static void test_shapes(void **state) {
    struct text t = {0};
    (void)state;
    text_printf(&t, CONV, "0", "max(A[n,k,p,q] + B[k], 0)");
    expect_shape("machines/edge16.xml", t.at, "+ mm16 v.add v.max.imm requant");
    text_free(&t);
    text_printf(&t, CONV, "B[k]", "max(A[n,k,p,q], 0)");
    expect_shape("machines/edge16.xml", t.at, "ld.row mm16 v.max.imm requant");
    text_free(&t);
    expect_shape(
        "machines/cpu-avx512.xml",
        "kernel g() { in A: f32[96,80]  const B: f32[80,64]  const b: f32[64]  out C: f32[96,64]\n"
        "  temp T: f32[96,64]  axes i: 96, j: 64, k: 80\n"
        "  T[i,j] = 0; T[i,j] += A[i,k] * B[k,j]; C[i,j] = max(T[i,j] + b[j], 0)\n}\n",
        "zero.f32 fma.bcast add.f32 max.imm.f32");
    expect_shape("machines/cpu-blas.xml",
                 "kernel g() { in A: f32[96,80]  const B: f32[80,64]  out C: f32[96,64]  axes i: "
                 "96, j: 64, k: 80\n"
                 "  C[i,j] = 0; C[i,j] += A[i,k] * B[k,j]\n}\n",
                 "+ sgemm");
    expect_shape("machines/cpu-scalar.xml",
                 "kernel g() { in A: f32[96]  out C: f32[96]  axes i: 96; C[i] = A[i] + 1.0 }",
                 "-");
}

/* A ReLU after a requantisation goes before it, where the device has it. */
static void test_rewrite(void **state) {
    (void)state;
    expect_shape(
        "machines/edge16.xml",
        "kernel c() { in X: i8[64,64]  const W: i8[64,64]  const B: i32[64]  out Y: i8[64,64]\n"
        "  temp A: i32[64,64]  temp Q: i8[64,64]  axes i: 64, j: 64, k: 64\n"
        "  A[i,j] = 0; A[i,j] += i32(X[i,k]) * i32(W[k,j])\n"
        "  Q[i,j] = i8(clip(round(f64(A[i,j] + B[j]) * 0.0078125), -128, 127))\n; Y[i,j] = "
        "max(Q[i,j], 0)\n}\n",
        "+ mm16 v.add v.max.imm requant");
}

static void expect_products(const char *text) {
    struct machine *m = help_machine("machines/cpu-avx2.xml");
    struct program *p = help_program("p", text);
    struct cover *c = cover_of(p, m, &cheapest, 0);
    char *shape = shape_of(c, m);
    assert_non_null(strstr(shape, "pairs."));
    free(shape);
    cover_free(c);
    program_free(p);
    machine_free(m);
}

/* Zero points leave the products, in few rows too (what remains of them are sums of weights, which
 * are made once), on both sides, and where sums of neither factor are known before. */
static void test_offsets(void **state) {
    (void)state;
    expect_products("kernel p() { in X: i8[32,128]  const W: i8[128,64]  inout A: i32[32,64]\n"
                    "  axes i: 32, j: 64, k: 128; A[i,j] += (i32(X[i,k]) + 128) * i32(W[k,j]) }\n");
    expect_products("kernel p() { in X: i8[8,48,32]  in Y: i8[8,32,48]  inout A: i32[8,48,48]\n"
                    "  axes l: 8, i: 48, j: 48, k: 32\n"
                    "  A[l,i,j] += (i32(X[l,i,k]) + 36) * (i32(Y[l,k,j]) - 22) }\n");
}

/* Quantisers with zero points, as exporters write them, are instructions of both vector machines.
 */
static void test_zero_points(void **state) {
    static const char *const machine[] = {"machines/cpu-avx2.xml", "machines/cpu-avx512.xml"};
    (void)state;
    for (int m = 0; m < 2; m++)
        expect_shape(
            machine[m],
            "kernel z() { in a: u8[32,64]  in b: u8[32,64]  in n: i32[32,64]  in f: f32[32,64]\n"
            "  const s: f64[64]  out p: u8[32,64]  out q: u8[32,64]  out r: i8[32,64]\n"
            "  out t: u8[32,64]  out u: u8[32,64]  out v: f32[32,64]  out w: i8[32,64]\n"
            "  axes i: 32, j: 64\n"
            "  p[i,j] = u8(clip(round(f32(i32(a[i,j]) - 0) * 0.5 + f32(i32(b[i,j]) - 128) * 0.25) "
            "+ 7.0, 0, 255.0))\n"
            "  q[i,j] = u8(clip(round(f32(i32(a[i,j]) - 3) * f32(i32(b[i,j]) - 128) * 0.01) + "
            "7.0, 0, 255.0))\n"
            "  r[i,j] = i8(clip(round(f64(n[i,j]) * s[j]) + -94.0, -128.0, 127.0))\n"
            "  t[i,j] = u8(clip(round(f[i,j] / 0.03) + 94.0, 0, 255.0))\n"
            "  u[i,j] = u8(clip(round(f32(i32(a[i,j]) - 9) * 0.5) + 0, 0, 255.0))\n"
            "  v[i,j] = f32(i32(a[i,j]) - 9) * 0.5\n"
            "  w[i,j] = i8(clip(round(f32(n[i,j]) * 0.001) + 3.0, -128.0, 127.0))\n}\n",
            "add.zero.u8 mul.zero.u8 requantise.zero.i8.channels quantise.zero.u8 "
            "requantise.zero.u8 dequantise.zero.u8 requantise.sum.zero.i8");
}

static void test_no_way(void **state) {
    struct machine *m = help_machine("machines/edge16.xml");
    struct program *p = help_program(
        "p", "kernel g() { in A: f32[96]  out C: f32[96]  axes i: 96\n; C[i] = exp(A[i]) }");
    struct diags d;
    (void)state;
    diags_init(&d);
    struct decider *decider = decider_open(&cheapest, 0);
    assert_null(mapper_cover(p, m, decider, &d));
    assert_int_equal(d.errors, 1);
    assert_non_null(strstr(d.at[0].text, "no instruction of 'edge16' executes this statement (of "
                                         "'C'), and the machine has no fallback"));
    decider_close(decider);
    diags_free(&d);
    program_free(p);
    machine_free(m);
}

/* ---- meaning ---- */

static void fill(const struct buffer *b, void *data, uint64_t *seed) {
    for (int64_t i = 0; i < b->elements; i++) {
        union value v;
        if (type_is_float(b->type))
            v.f = (double)help_below(seed, 17) / 8 - 1;
        else
            v.i = help_below(seed, 15) - 7;
        type_store(b->type, (char *)data + (size_t)i * type_size(b->type), v);
    }
}

static void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        if (p->buffer[b].role == ROLE_TEMP || p->buffer[b].role == ROLE_STATE) continue;
        data[b] = calloc((size_t)p->buffer[b].elements, type_size(p->buffer[b].type));
        if (p->buffer[b].role != ROLE_OUT) fill(&p->buffer[b], data[b], &seed);
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static void assert_close(const struct program *p, void **x, const struct program *q, void **y) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *f = &p->buffer[b];
        if (f->role != ROLE_OUT && f->role != ROLE_INOUT) continue;
        int c = program_buffer(q, f->name);
        assert_true(c >= 0);
        for (int64_t i = 0; i < f->elements; i++) {
            size_t at = (size_t)i * type_size(f->type);
            union value u = type_load(f->type, (char *)x[b] + at),
                        v = type_load(f->type, (char *)y[c] + at);
            if (type_is_float(f->type))
                assert_true(fabs(u.f - v.f) <= 1e-5 * (1 + fabs(u.f)) ||
                            (isnan(u.f) && isnan(v.f)));
            else
                assert_int_equal(u.i, v.i);
        }
    }
}

static const char *const programs[] = {
    "kernel mlp() { in X: f32[6,20]  const W: f32[10,20]  const B: f32[10]  out Y: f32[6,10]  temp "
    "A: f32[6,10]  axes i: 6, j: 10, k: 20\n"
    "  A[i,j] = 0; A[i,j] += X[i,k] * W[j,k]; Y[i,j] = max(A[i,j] + B[j], 0) * 0.5 - tanh(X[i,j]) "
    "}",
    "kernel q() { in X: i8[6,20]  const W: i8[20,18]  const B: i32[18]  in R: i32[6,18]  out Y: "
    "i8[6,18]  temp A: i32[6,18]  temp Q: i8[6,18]\n"
    "  axes i: 6, j: 18, k: 20\n; A[i,j] = B[j]; A[i,j] += i32(X[i,k]) * i32(W[k,j])\n"
    "  Q[i,j] = i8(clip(round(f64(A[i,j] + R[i,j]) * 0.03125), -128, 127)); Y[i,j] = max(Q[i,j], "
    "0) }",
    "kernel softmax() { in X: f32[5,18]  out Y: f32[5,18]  axes i: 5, j: 18  temp m: f32[5]  temp "
    "z: f32[5]  temp E: f32[5,18]\n"
    "  m[i] = -inf; m[i] max= X[i,j]; E[i,j] = exp(X[i,j] - m[i]); z[i] = 0; z[i] += E[i,j]; "
    "Y[i,j] = E[i,j] / z[i] }",
    "kernel norm() { in X: f32[5,18]  in g: f32[18]  out Y: f32[5,18]  axes i: 5, j: 18  temp s: "
    "f32[5]  temp d: f32[5,18]  temp v: f32[5]\n"
    "  s[i] = 0; s[i] += X[i,j]; d[i,j] = X[i,j] - s[i] / 18; v[i] = 0; v[i] += d[i,j] * d[i,j]\n"
    "  Y[i,j] = d[i,j] * rsqrt(v[i] / 18 + 0.00001) * g[j] }",
    "kernel rnn() { in X: f32[4,8]  const U: f32[8,8]  in h0: f32[8]  out y: f32[4,8]\n"
    "  recur t: 4  state h: f32[8] from h0 {\n    axes i: 8, j: 8\n    temp a: f32[8]\n    a[i] = "
    "X[t,i]\n    a[i] += U[i,j] * h[j]\n"
    "    h'[i] = tanh(a[i])\n    y[t,i] = h'[i]\n  }\n}",
};

static void check_meaning(const struct program *p, const struct machine *m,
                          const struct approach *a, uint64_t seed) {
    struct diags d;
    struct cover *c = cover_of(p, m, a, seed);
    struct program *q = program_closed(c->program, &c->steps);
    void **x = make_data(p, 9), **y = make_data(q, 9);
    diags_init(&d);
    assert_true(program_run(p, x, NULL, NULL, &d));
    assert_true(program_run(q, y, NULL, NULL, &d));
    assert_close(p, x, q, y);
    free_data(p, x);
    free_data(q, y);
    program_free(q);
    diags_free(&d);
    cover_free(c);
}

static void test_meaning(void **state) {
    struct diags d;
    diags_init(&d);
    struct machine *m[3] = {help_machine("machines/cpu-avx512.xml"),
                            help_machine("machines/cpu-blas.xml"),
                            machine_join("machines/edge16.xml", "machines/cpu-avx2.xml", NULL, &d)};
    (void)state;
    assert_non_null(m[2]);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct program *p = help_program("p", programs[i]);
        for (int k = 0; k < 3; k++)
            for (uint64_t seed = 0; seed < 8; seed++)
                check_meaning(p, m[k], seed ? &lot : &cheapest, seed);
        program_free(p);
    }
    for (int k = 0; k < 3; k++) machine_free(m[k]);
    diags_free(&d);
}

/* The device gets the product of a sum of products, not the sum alone, though the host would be
 * cheaper. */
static void test_device_first(void **state) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_join("machines/gemmini.xml", "machines/cpu-avx2.xml", NULL, &d);
    (void)state;
    assert_non_null(m);
    expect_shape_on(m,
                    "kernel n() { in A: i8[35,40]  out C: i32[35]  axes i: 35, k: 40\n"
                    "  C[i] = 0; C[i] += i32(A[i,k]) * i32(A[i,k])\n}\n",
                    "+ ws.first");
    machine_free(m);
    diags_free(&d);
}

/* What can only be made in one order, or meets itself, is not offered to instructions: the
 * scheduler would refuse one mapping after the other. The same without is. */
static void test_tiles_in_any_order(void **state) {
    (void)state;
    expect_shape("machines/cpu-avx2.xml",
                 "kernel n() { in X: f32[64,64]  in Z: f32[64,64]  inout Y: f32[64,64]\n"
                 "  axes i: 64  seq t: 64\n Y[t,i] = X[t,i] + Z[t,i]\n}\n",
                 "-");
    expect_shape("machines/cpu-avx2.xml",
                 "kernel n() { in X: f32[64,64]  in Z: f32[64,64]  inout Y: f32[64,127]\n"
                 "  axes i: 64, t: 64\n Y[t,63 + i - t] = X[t,i] + Z[t,i]\n}\n",
                 "-");
    expect_shape("machines/cpu-avx2.xml",
                 "kernel n() { in X: f32[64,64]  in Z: f32[64,64]  inout Y: f32[64,64]\n"
                 "  axes i: 64, t: 64\n Y[t,i] = X[t,i] + Z[t,i]\n}\n",
                 "add.f32");
}

/* The answers of one run, given again, make the same cover. */
static void test_replay(void **state) {
    struct machine *m = help_machine("machines/cpu-avx512.xml");
    struct program *p = help_program("p", programs[0]);
    char file[] = "/tmp/isamap-cover-XXXXXX";
    struct diags d;
    struct text first = {0}, second = {0};
    (void)state;
    diags_init(&d);
    close(mkstemp(file));
    struct decider *decider = decider_open(&lot, 4);
    struct cover *c = mapper_cover(p, m, decider, &d);
    assert_true(decider_save(decider, file, &d));
    cover_print(c, m, &first);
    decider_close(decider);
    cover_free(c);
    decider = decider_replay(file, &d);
    assert_non_null(decider);
    c = mapper_cover(p, m, decider, &d);
    assert_false(decider_failed(decider, &d));
    cover_print(c, m, &second);
    assert_string_equal(first.at, second.at);
    decider_close(decider);
    cover_free(c);
    unlink(file);
    text_free(&first);
    text_free(&second);
    diags_free(&d);
    program_free(p);
    machine_free(m);
}

/* A cover that was tampered with is refused. */
static void test_verify(void **state) {
    struct machine *m = help_machine("machines/cpu-blas.xml");
    struct program *p = help_program("p", "kernel g() { in A: f32[96,80]  const B: f32[80,64]  out "
                                          "C: f32[96,64]  axes i: 96, j: 64, k: 80\n"
                                          "  C[i,j] = 0; C[i,j] += A[i,k] * B[k,j]\n}\n");
    struct cover *c = cover_of(p, m, &cheapest, 0);
    struct diags d;
    (void)state;
    diags_init(&d);
    c->mapping[0].init = -1;
    assert_false(cover_verify(c, m, &d));
    c->mapping[0].init = 0;
    assert_true(cover_verify(c, m, &d));
    c->item[0].inside = -1;
    assert_false(cover_verify(c, m, &d));
    c->item[0].inside = 1;
    struct group g = c->mapping[0].group[0];
    c->mapping[0].group[0] = c->mapping[0].group[1];
    c->mapping[0].group[1] = g;
    assert_false(cover_verify(c, m, &d));
    diags_free(&d);
    cover_free(c);
    program_free(p);
    machine_free(m);
}

/* Branches that end in one concatenation store their parts: nothing copies them, and it is proved.
 */
static void test_branches(void **state) {
    static const char text[] =
        "kernel f() { in X: f32[32,16]  in A: f32[16,16]  in B: f32[16,32]\n"
        " out Z: f32[32,48]  temp S: f32[32,16]  temp T: f32[32,32]  temp U: f32[32,48]\n"
        " axes i: 32, j: 16, l: 32, k: 16, m: 48\n"
        " S[i,j] = 0; S[i,j] += X[i,k] * A[k,j]\n"
        " T[i,l] = 0; T[i,l] += X[i,k] * B[k,l]\n"
        " U[i,j] = S[i,j]; U[i, l + 16] = T[i,l]\n"
        " Z[i,m] = max(U[i,m], 0)\n}\n";
    struct machine *m = help_machine("machines/cpu-avx2.xml");
    struct program *p = help_program("f", text);
    (void)state;
    struct cover *c = cover_of(p, m, &cheapest, 0);
    assert_int_equal(program_buffer(c->program, "S"), -1);
    assert_int_equal(program_buffer(c->program, "T"), -1);
    for (int s = 0; s < c->program->nstmts; s++) {
        const struct stmt *x = &c->program->stmt[s];
        assert_false(x->nops == 1 && x->nreads == 1 && x->combine == COMBINE_SET);
    }
    cover_free(c);
    program_free(p);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_rewrite),
                                       cmocka_unit_test(test_offsets),
                                       cmocka_unit_test(test_zero_points),
                                       cmocka_unit_test(test_no_way),
                                       cmocka_unit_test(test_meaning),
                                       cmocka_unit_test(test_device_first),
                                       cmocka_unit_test(test_replay),
                                       cmocka_unit_test(test_branches),
                                       cmocka_unit_test(test_verify),
                                       cmocka_unit_test(test_tiles_in_any_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
