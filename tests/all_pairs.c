/* Pairs of nests (scheduler/plan/pairs.c): whatever tile passes between them, the schedule is verified,
 * the temporary has no home, and simulator and compiled code give the interpreter's values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"
#include "approaches/approaches.h"

/* Depthwise, then pointwise convolution; odd sizes leave tails. */
static const char f32_text[] =
    "kernel dwpw(C=6, H=11, W=19, K=10) {\n"
    "  in I: f32[C, H, W]  const D: f32[C, 3, 3]  const F: f32[K, C]  out O: f32[K, H, W]\n"
    "  temp a: f32[C, H, W]\n"
    "  axes c: C, p: H, q: W, r: 3, s: 3, k: K\n"
    "  a[c,p,q]  = 0\n"
    "  a[c,p,q] += I[c,p+r-1,q+s-1 else 0] * D[c,r,s]\n"
    "  O[k,p,q]  = 0\n"
    "  O[k,p,q] += a[c,p,q] * F[k,c]\n"
    "}\n";
/* The second names its axes otherwise: the pointwise sum runs over what the first calls k. */
static const char chain_text[] =
    "kernel two(M=18, N=23, K=12, L=15) {\n"
    "  in A: f32[M, K]  const B: f32[K, N]  const D: f32[N, L]  out E: f32[M, L]\n"
    "  temp C: f32[M, N]  temp R: f32[M, N]  temp S: f32[M, L]\n"
    "  axes i: M, j: N, k: K, l: L, m: M, n: N\n"
    "  C[i,j]  = 0\n"
    "  C[i,j] += A[i,k] * B[k,j]\n"
    "  R[i,j]  = max(C[i,j], 0)\n"
    "  S[m,l]  = 0\n"
    "  S[m,l] += R[m,n] * D[n,l]\n"
    "  E[m,l]  = max(S[m,l], 0)\n"
    "}\n";
static const char i8_text[] =
    "kernel qdwpw(G=2, H=9, W=13, K=48) {\n"
    "  in I: i8[G, 16, H, W]  const D: i8[G, 16, 16, 3, 3]  const F: i8[K, G, 16]\n"
    "  out O: i8[H, W, K]\n"
    "  temp a: i32[G, 16, H, W]  temp b: i8[G, 16, H, W]  temp d: i32[K, H, W]\n"
    "  axes p: H, q: W, r: 3, s: 3, k: K, g: G, j: 16, i: 16\n"
    "  a[g,j,p,q]  = 0\n"
    "  a[g,j,p,q] += i32(I[g,i,p+r-1,q+s-1 else 0]) * i32(D[g,j,i,r,s])\n"
    "  b[g,j,p,q] = i8(clip(round(f64(a[g,j,p,q]) * 0.03125), -128, 127))\n"
    "  d[k,p,q]  = 0\n"
    "  d[k,p,q] += i32(b[g,j,p,q]) * i32(F[k,g,j])\n"
    "  O[p,q,k] = i8(clip(round(f64(d[k,p,q]) * 0.0625), -128, 127))\n"
    "}\n";

/* Windows that overlap: 3x3 after 1x1. */
static const char window_text[] =
    "kernel block(C=20, H=10, W=5, K=28, M=16) {\n"
    "  in I: i8[C, H, W]  const E: i8[K, C]  const F: i8[M, K, 3, 3]  out O: i8[M, H, W]\n"
    "  temp a: i32[K, H, W]  temp x: i8[K, H, W]  temp b: i32[M, H, W]\n"
    "  axes k: K, p: H, q: W, c: C, r: 3, s: 3, m: M\n"
    "  a[k,p,q]  = 0\n"
    "  a[k,p,q] += i32(I[c,p,q]) * i32(E[k,c])\n"
    "  x[k,p,q] = i8(clip(round(f64(max(a[k,p,q], 0)) * 0.015625), -128, 127))\n"
    "  b[m,p,q]  = 0\n"
    "  b[m,p,q] += i32(x[k,p+r-1,q+s-1 else 0]) * i32(F[m,k,r,s])\n"
    "  O[m,p,q] = i8(clip(round(f64(b[m,p,q]) * 0.0078125), -128, 127))\n"
    "}\n";
/* Expand, depthwise as products with diagonal blocks, project: the first two, or the last two. */
static const char mobile_text[] =
    "kernel block(C=32, G=2, H=9, W=8, M=16) {\n"
    "  in I: i8[C, H, W]  const E: i8[G, 16, C]  const D: i8[G, 16, 16, 3, 3]  const F: i8[M, G, "
    "16]\n"
    "  out O: i8[M, H, W]\n"
    "  temp a: i32[G, 16, H, W]  temp x: i8[G, 16, H, W]  temp b: i32[G, 16, H, W]\n"
    "  temp y: i8[G, 16, H, W]  temp d: i32[M, H, W]\n"
    "  axes g: G, j: 16, p: H, q: W, c: C, r: 3, s: 3, i: 16, m: M\n"
    "  a[g,j,p,q]  = 0\n"
    "  a[g,j,p,q] += i32(I[c,p,q]) * i32(E[g,j,c])\n"
    "  x[g,j,p,q] = i8(clip(round(f64(max(a[g,j,p,q], 0)) * 0.0078125), -128, 127))\n"
    "  b[g,j,p,q]  = 0\n"
    "  b[g,j,p,q] += i32(x[g,i,p+r-1,q+s-1 else 0]) * i32(D[g,j,i,r,s])\n"
    "  y[g,j,p,q] = i8(clip(round(f64(max(b[g,j,p,q], 0)) * 0.0078125), -128, 127))\n"
    "  d[m,p,q]  = 0\n"
    "  d[m,p,q] += i32(y[g,j,p,q]) * i32(F[m,g,j])\n"
    "  O[m,p,q] = i8(clip(round(f64(d[m,p,q]) * 0.0078125), -128, 127))\n"
    "}\n";
/* Without borders, in steps of two, on a processor: tiles stay in a cache. */
static const char valid_text[] =
    "kernel valid(C=5, H=19, W=24, K=6, M=7) {\n"
    "  in I: f32[C, H, W]  const E: f32[K, C]  const F: f32[M, K, 3, 3]  out O: f32[M, (H-1)/2, "
    "W-2]\n"
    "  temp a: f32[K, H, W]\n"
    "  axes k: K, p: H, q: W, c: C, r: 3, s: 3, m: M, u: (H-1)/2, v: W-2\n"
    "  a[k,p,q]  = 0\n"
    "  a[k,p,q] += I[c,p,q] * E[k,c]\n"
    "  O[m,u,v]  = 0\n"
    "  O[m,u,v] += a[k,2*u+r,v+s] * F[m,k,r,s]\n"
    "}\n";

static bool about_nests(const struct question *q) {
    return strncmp(q->subject, "nests of", 8) == 0;
}

/* The least cost, but pairs never stay apart: which tile, the seed says. */
static int choose_pair(void *s, const struct question *q) {
    if (!about_nests(q)) return plan_least(s, q);
    return 1 + (int)(plan_random(s) % (uint64_t)(q->ncandidates - 1));
}

static void grow(void *s, const struct space *space, int *at) {
    (void)s;
    approach_heuristic.move(NULL, space, at);
}

static const struct approach paired = {
    "paired", "pairs, else the least cost", plan_open, free, choose_pair, grow, NULL, false};

struct pair_case {
    const char *machine, *host, *text, *temporary;
    int threads;
    bool runs;
};
static const struct pair_case cases[] = {
    {"machines/cpu-avx2.xml", NULL, f32_text, "a", 1, true},
    {"machines/cpu-avx2.xml", NULL, f32_text, "a", 2, true},
    {"machines/cpu-avx2.xml", NULL, chain_text, "R", 1, true},
    {"machines/cpu-avx512.xml", NULL, chain_text, "R", 1, true},
    {EDGE, i8_text, "b", 1, false},
    {EDGE, window_text, "x", 1, false},
    {EDGE, mobile_text, "x", 1, false},
    {"machines/cpu-avx2.xml", NULL, valid_text, "a", 1, true},
    {"machines/cpu-avx2.xml", NULL, valid_text, "a", 2, true},
};

static void compare(const struct pair_case *k, uint64_t seed) {
    struct compiled x;
    compiled_open(&x, k->machine, k->host, NULL, k->text, NULL, 0);
    compiled_by(&x, &paired, seed, &(struct scheduler_options){.threads = k->threads});
    assert_int_equal(schedule_home(x.s, program_buffer(x.s->program, k->temporary)), -1);
    struct verify_options whole = {0, 0};
    if (!schedule_verify(x.s, &whole, &x.diags)) diags_print(&x.diags, stderr);
    assert_int_equal(x.diags.errors, 0);
    plan_values(&x, k->runs ? k->threads : 0);
    compiled_free(&x);
}

static void every_tile_is_right(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) compare(&cases[i], seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_tile_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
