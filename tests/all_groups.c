/* Groups (scheduler/plan/groups.c): whatever tiles pass between their members, the schedule is
 * verified, of the temporaries only tiles are there, and simulator and compiled code give the
 * interpreter's values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"
#include "approaches/approaches.h"
#include "tests/sample.h"

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

/* Row after row: reductions, and what follows them on the same row. */
static const char softmax_text[] = "kernel softmax(M=48, N=37) {\n"
                                   "  in X: f32[M, N]  out Y: f32[M, N]\n"
                                   "  axes i: M, j: N\n"
                                   "  temp m: f32[M]  temp z: f32[M]  temp E: f32[M, N]\n"
                                   "  m[i]    = -inf\n"
                                   "  m[i] max= X[i,j]\n"
                                   "  E[i,j]  = exp(X[i,j] - m[i])\n"
                                   "  z[i]    = 0\n"
                                   "  z[i]   += E[i,j]\n"
                                   "  Y[i,j]  = E[i,j] / z[i]\n"
                                   "}\n";
static const char attention_text[] =
    "kernel att(B=2, T=48, D=16) {\n"
    "  in Q: f32[B, T, D]  in K: f32[B, T, D]  in V: f32[B, T, D]  out O: f32[B, T, D]\n"
    "  axes b: B, i: T, j: T, d: D\n"
    "  temp S: f32[B, T, T]  temp m: f32[B, T]  temp E: f32[B, T, T]  temp z: f32[B, T]\n"
    "  temp A: f32[B, T, D]\n"
    "  S[b,i,j]  = 0\n"
    "  S[b,i,j] += Q[b,i,d] * K[b,j,d]\n"
    "  m[b,i]    = -inf\n"
    "  m[b,i] max= S[b,i,j]\n"
    "  E[b,i,j]  = exp((S[b,i,j] - m[b,i]) * 0.25)\n"
    "  z[b,i]    = 0\n"
    "  z[b,i]   += E[b,i,j]\n"
    "  A[b,i,d]  = 0\n"
    "  A[b,i,d] += E[b,i,j] * V[b,j,d]\n"
    "  O[b,i,d]  = A[b,i,d] / z[b,i]\n"
    "}\n";
/* Three products that share rows; the first two read the same input. */
static const char gated_text[] =
    "kernel gated(T=26, D=24, F=40) {\n"
    "  in X: f32[T, D]  const A: f32[F, D]  const B: f32[F, D]  const C: f32[D, F]\n"
    "  out O: f32[T, D]\n"
    "  temp a: f32[T, F]  temp g: f32[T, F]  temp u: f32[T, F]  temp h: f32[T, F]\n"
    "  axes t: T, d: D, f: F, k: D\n"
    "  a[t,f]  = 0\n"
    "  a[t,f] += X[t,d] * A[f,d]\n"
    "  g[t,f]  = max(a[t,f], 0)\n"
    "  u[t,f]  = 0\n"
    "  u[t,f] += X[t,d] * B[f,d]\n"
    "  h[t,f]  = g[t,f] * u[t,f]\n"
    "  O[t,k]  = 0\n"
    "  O[t,k] += h[t,f] * C[k,f]\n"
    "}\n";
/* 1x1, 3x3 and 1x1: windows slide over what the first makes, and the third follows in turn. */
static const char bottleneck_text[] =
    "kernel three(C=32, H=9, W=6, K=16) {\n"
    "  in I: i8[C, H, W]  const E: i8[K, C]  const F: i8[K, K, 3, 3]  const G: i8[C, K]\n"
    "  out O: i8[C, H, W]\n"
    "  temp a: i32[K, H, W]  temp x: i8[K, H, W]  temp b: i32[K, H, W]  temp y: i8[K, H, W]\n"
    "  temp d: i32[C, H, W]\n"
    "  axes k: K, p: H, q: W, c: C, r: 3, s: 3, m: K\n"
    "  a[k,p,q]  = 0\n"
    "  a[k,p,q] += i32(I[c,p,q]) * i32(E[k,c])\n"
    "  x[k,p,q] = i8(clip(round(f64(max(a[k,p,q], 0)) * 0.015625), -128, 127))\n"
    "  b[k,p,q]  = 0\n"
    "  b[k,p,q] += i32(x[m,p+r-1,q+s-1 else 0]) * i32(F[k,m,r,s])\n"
    "  y[k,p,q] = i8(clip(round(f64(max(b[k,p,q], 0)) * 0.0078125), -128, 127))\n"
    "  d[c,p,q]  = 0\n"
    "  d[c,p,q] += i32(y[m,p,q]) * i32(G[c,m])\n"
    "  O[c,p,q] = i8(clip(round(f64(d[c,p,q]) * 0.0078125), -128, 127))\n"
    "}\n";

struct group_case {
    const char *machine, *host, *text, *temporaries; /* in one letter each; those that stay tiles */
    int threads;
    bool runs;
};

static const char *wanted; /* temporaries of the case that is compiled */

static bool is_wanted(const char *name) {
    return !name[1] && strchr(wanted, name[0]);
}

/* The least cost; but the wanted tensors never go home, in which tiles the seed says, and others
 * only stay where the seed is odd. */
static int choose_group(void *s, const struct question *q) {
    char name[64];
    if (sscanf(q->subject, "tensor '%63[^']'", name) != 1) return plan_cheapest(s, q);
    if (!is_wanted(name) && wanted[1] == 0) return 0;
    return 1 + (int)(plan_random(s) % (uint64_t)(q->ncandidates - 1));
}

static void grow(void *s, const struct space *space, int *at) {
    (void)s;
    approach_heuristic.move(NULL, space, at);
}

static const struct approach grouped = {
    "grouped", "groups, else the least cost", plan_open, free, choose_group, grow, NULL, false};

static const struct group_case cases[] = {
    {"machines/cpu-avx2.xml", NULL, f32_text, "a", 1, true},
    {"machines/cpu-avx2.xml", NULL, f32_text, "a", 2, true},
    {"machines/cpu-avx2.xml", NULL, chain_text, "R", 1, true},
    {"machines/cpu-avx512.xml", NULL, chain_text, "R", 1, true},
    {EDGE, i8_text, "b", 1, false},
    {EDGE, window_text, "x", 1, false},
    {EDGE, mobile_text, "x", 1, false},
    {"machines/cpu-avx2.xml", NULL, valid_text, "a", 1, true},
    {"machines/cpu-avx2.xml", NULL, valid_text, "a", 2, true},
    {"machines/cpu-avx2.xml", NULL, softmax_text, "Em", 1, false},
    {"machines/cpu-avx512.xml", NULL, softmax_text, "Em", 1, false},
    {"machines/cpu-avx2.xml", NULL, attention_text, "SEAmz", 1, false},
    {"machines/cpu-avx512.xml", NULL, attention_text, "SEAmz", 1, false},
    {"machines/cpu-avx2.xml", NULL, gated_text, "gh", 1, true},
    {"machines/cpu-avx2.xml", NULL, gated_text, "gh", 2, true},
    {EDGE, bottleneck_text, "xy", 1, false},
};

/* Bytes of the largest place of a buffer outside of registers. */
static int64_t bytes_there(const struct schedule *s, const struct machine *m, int buffer) {
    int64_t most = 0;
    for (int k = 0; k < s->nplaces; k++)
        if (s->place[k].buffer == buffer && s->place[k].bytes > most &&
            memory_is_home(m, s->place[k].memory))
            most = s->place[k].bytes;
    return most;
}

static void compare(const struct group_case *k, uint64_t seed) {
    struct compiled x;
    wanted = k->temporaries;
    compiled_open(&x, k->machine, k->host, NULL, k->text, NULL, 0);
    compiled_by(&x, &grouped, seed, &(struct scheduler_options){.threads = k->threads});
    int tiles = 0;
    for (const char *name = k->temporaries; *name; name++) {
        int b = program_buffer(x.s->program, (char[]){*name, 0});
        const struct buffer *whole = &x.s->program->buffer[b];
        tiles += bytes_there(x.s, x.m, b) < whole->elements * (int64_t)type_size(whole->type);
    }
    if (k->temporaries[1] == 0 || seed == 1) assert_true(tiles > 0);
    struct verify_options whole = {0, 0};
    if (!schedule_verify(x.s, &whole, &x.diags)) diags_print(&x.diags, stderr);
    assert_int_equal(x.diags.errors, 0);
    plan_values(&x, k->runs ? k->threads : 0);
    compiled_free(&x);
}

static void every_tile_is_right(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            if (sampled(i + seed)) compare(&cases[i], seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_tile_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
