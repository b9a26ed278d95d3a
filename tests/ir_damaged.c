/* Kernels with small damages: what is refused, where and with which words, and what the accepted
 * ones mean. Kept in tests/data/golden/ir_damaged.txt. */
#include "tests/damage.h"
#include "tests/ir_support.h"

enum { MOST_POINTS = 20000, SHOWN = 12 };

static bool is_small(const struct program *p) {
    int64_t points[256] = {0}, sum = 0;
    if (p->nstmts > 256) return false;
    program_points(p, points);
    for (int s = 0; s < p->nstmts; s++) sum += points[s] > MOST_POINTS ? MOST_POINTS : points[s];
    for (int b = 0; b < p->nbuffers; b++)
        sum += p->buffer[b].elements > MOST_POINTS ? MOST_POINTS : p->buffer[b].elements;
    return sum < MOST_POINTS;
}

static void **inputs(const struct program *p) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    uint64_t seed = 1;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP || x->role == ROLE_STATE) continue;
        data[b] = calloc((size_t)x->elements + 1, type_size(x->type));
        for (int64_t k = 0; k < x->elements; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            union value v = {.i = (int64_t)(seed >> 33) % 9 - 4};
            v = type_convert(x->type, TYPE_I64, v);
            type_store(x->type, (char *)data[b] + (size_t)k * type_size(x->type), v);
        }
    }
    return data;
}

/* The first elements of what the program writes, as it is run, and their bounds. */
static void put_values(const struct program *p, struct text *out) {
    struct diags d;
    void **data = inputs(p);
    diags_init(&d);
    struct bounds *bounds = program_run_bounded(p, data, NULL, &d);
    bool ran = program_run(p, data, NULL, NULL, &d);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        bool written = x->role == ROLE_OUT || x->role == ROLE_INOUT;
        for (int64_t k = 0; ran && written && k < x->elements && k < SHOWN; k++) {
            union value v = type_load(x->type, (char *)data[b] + (size_t)k * type_size(x->type));
            text_printf(out, " %.4g", type_is_float(x->type) ? v.f : (double)v.i);
            if (bounds)
                text_printf(out, "-%.2g+%.2g", bounds_at(bounds, b, k).below,
                            bounds_at(bounds, b, k).above);
        }
    }
    text_printf(out, "%s", d.n ? d.at[0].text : "");
    if (bounds) bounds_free(bounds);
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
    diags_free(&d);
}

static void put_program(const char *what, struct program *p, struct text *out) {
    text_printf(out, "\n%s\n", what);
    if (p) program_print(p, out);
    program_free(p);
}

/* What a program means, and what the passes make of it. */
static void put_meaning(const struct program *p, struct text *out) {
    program_print(p, out);
    text_printf(out, "%016llx %lld %lld %lld\n", (unsigned long long)program_hash(p),
                (long long)program_macs(p), (long long)program_operations(p),
                (long long)program_touched_bytes(p));
    put_program("canonical", program_canonical(p), out);
    put_program("collapsed", program_collapse(p), out);
    struct program *q = program_copy(p);
    program_trim(q);
    put_program("trimmed", q, out);
    for (int all = 0; all < 2; all++) {
        q = program_copy(p);
        text_printf(out, "%d forwarded", program_forward(q, all));
        put_program("forwarded", q, out);
    }
    q = program_copy(p);
    text_printf(out, "%d absorbed", program_absorb(q));
    put_program("absorbed", q, out);
    q = program_copy(p);
    text_printf(out, "%d coalesced", program_coalesce(q));
    put_program("coalesced", q, out);
    for (int s = 0; s < p->nstmts; s++)
        for (uint64_t seed = 1; seed < 4; seed++)
            text_printf(out, " %lld", (long long)stmt_place(p, &p->stmt[s], seed));
    if (is_small(p)) put_values(p, out);
}

static void kernel_try(struct damaged *d, void *user, const char *text) {
    struct trial t;
    struct binding given[] = {{"K", 9}};
    struct bindings b = {given, 1, NULL};
    (void)user;
    trial_open(&t);
    trial_parse(&t, "damaged", text);
    bool takes_k = t.nkernels > 0 && kernel_param_index(t.kernel[0], "K") >= 0 &&
                   kernel_param_index(t.kernel[0], "s") < 0;
    t.p = t.nkernels > 0 ? program_bind(t.kernel[0], takes_k ? &b : NULL, NULL, &t.diags) : NULL;
    damage_diags(d, &t.diags);
    if (t.p) {
        struct text out = {0};
        put_meaning(t.p, &out);
        damage_said(d, "accepted", out.at);
        text_free(&out);
    }
    trial_close(&t);
}

static const struct {
    const char *name, *text;
} kernels[] = {
    {"conv2d", "kernel conv2d(N=1, C=4, K=5, H=6, W=7, R=3, S=3) {\n"
               "  in I: f32[N, C, H, W]  const F: f32[K, C, R, S]  out O: f32[N, K, H, W]\n"
               "  axes n: N, k: K, p: H, q: W, c: C, r: R, s: S\n  O[n,k,p,q] = 0\n"
               "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 0] * F[k,c,r,s]\n}\n"},
    {"rnn",
     "kernel rnn(T=6, H=5) {\n"
     "  in X: f32[T, H]  const U: f32[H, H]  in h0: f32[H]  out y: f32[T, H]  out hT: f32[H]\n"
     "  recur t: T  state h: f32[H] from h0 to hT {\n    axes i: H, j: H\n    temp a: f32[H]\n"
     "    a[i] = X[t,i]\n    a[i] += U[i,j] * h[j]\n    h'[i] = tanh(a[i])\n    y[t,i] = h'[i]\n"
     "  }\n}\n"},
    {"mix", "kernel mix(M=9, K=1..64 step 8) {\n  in x: i8[M]  in s: f64[1]  out y: i8[M]  temp t: "
            "i32[M]\n"
            "  axes i: M, j: M\n  t[i] = 0\n  t[i] += i32(x[j]) where j <= i and i >= 1\n"
            "  y[i] = i8(clip(round(f64(t[i]) * s[0]), -128, 127))\n  call f(y) -> (t)\n}\n"},
    {"tail", "kernel tail(M=8, N=6) {\n  in A: bf16[M, N]  inout B: u8[N, M]  out m: f32[M]\n"
             "  out g: i64[M]  temp e: f32[M, N]  axes i: M, j: N\n  m[i] = -inf\n"
             "  m[i] max= f32(A[i, N-1-j]) where i + 2*j < 11\n"
             "  e[i,j] = select(f32(A[i,j]) > m[i], exp(-m[i]) / 2.0, sqrt(abs(m[i])) - 0.5)\n"
             "  B[j,i] = shr(u8(e[i,j]), 1)\n  g[i] = i64(i) * 3 - 1\n}\n"},
};

static void damaged_kernels(void **state) {
    struct text seen = {0};
    (void)state;
    for (int k = 0; k < (int)(sizeof kernels / sizeof *kernels); k++) {
        struct damaged *d = damage_open();
        damage_all(d, kernels[k].text, "(){}[]:,=+-*/<>'", 1, kernel_try, NULL);
        damage_close(d, kernels[k].name, &seen);
    }
    golden_check("ir_damaged", &seen);
}

static void damage_file(void *user, const char *path) {
    struct trial t;
    size_t n;
    trial_open(&t);
    const char *text = file_read(&t.arena, path, 1 << 20, &n, &t.diags);
    assert_non_null(text);
    damage_all(user, text, "()[],=+-*/<>", 7, kernel_try, NULL);
    trial_close(&t);
}

/* Programs that random search kept: a few damages each. */
static void damaged_found(void **state) {
    struct damaged *d = damage_open();
    struct text seen = {0};
    (void)state;
    damage_files("ir_damaged_found", damage_file, d);
    damage_close(d, "programs", &seen);
    golden_check("ir_damaged_found", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_kernels),
                                       cmocka_unit_test(damaged_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
