/* Each term of the price decides something: on some machine and program the plan is another one if
 * the term counts nothing, and that one is slower where the simulator runs it. Each figure of the
 * machine file that prices read decides too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "tests/scheduler_help.h"
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <math.h>

#define HOST "machines/cpu-scalar.xml"
#define PORT(name) "tests/data/machines/ports/" name ".xml", HOST

/* M, N, K; what is left of the text with sizes in. */
#define GMM_I8(M, N, K)                                                                            \
    "kernel gmm(M=" #M ", N=" #N ", K=" #K ") {\n"                                                 \
    "  in A: i8[M, K]  const B: i8[N, K]  out C: i32[M, N]  axes i: M, j: N, k: K\n"               \
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n}\n"
#define GMM_F32(M, N, K)                                                                           \
    "kernel gmm(M=" #M ", N=" #N ", K=" #K ") {\n"                                                 \
    "  in A: f32[M, K]  in B: f32[K, N]  out C: f32[M, N]  axes i: M, j: N, k: K\n"                \
    "  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j]\n}\n"
#define C2D(T, S, CAST, C, K, H, W)                                                                \
    "kernel c2d(C=" #C ", K=" #K ", H=" #H ", W=" #W ") {\n"                                       \
    "  in I: " T "[C, H, W]  const F: " T "[K, C, 3, 3]  out O: " S "[K, H, W]\n"                  \
    "  axes k: K, p: H, q: W, c: C, r: 3, s: 3\n  O[k,p,q] = 0\n"                                  \
    "  O[k,p,q] += " CAST "(I[c,p+r-1,q+s-1 else 0]) * " CAST "(F[k,c,r,s])\n}\n"
#define C2D_I8(C, K, H, W) C2D("i8", "i32", "i32", C, K, H, W)
#define C1D_I8(C, K, P)                                                                            \
    "kernel c1d(C=" #C ", K=" #K ", P=" #P ") {\n"                                                 \
    "  in I: i8[C, 2*P]  const F: i8[K, C, 2]  out O: i32[K, P]\n"                                 \
    "  axes k: K, p: P, c: C, r: 2\n  O[k,p] = 0\n"                                                \
    "  O[k,p] += i32(I[c,2*p+r]) * i32(F[k,c,r])\n}\n"
#define WIDE_I8(C, K, H, W)                                                                        \
    "kernel wide(C=" #C ", K=" #K ", H=" #H ", W=" #W ") {\n"                                      \
    "  in I: i8[C, H, W]  const F: i8[K, C, 7, 7]  out O: i32[K, H, W]\n"                          \
    "  axes k: K, p: H, q: W, c: C, r: 7, s: 7\n  O[k,p,q] = 0\n"                                  \
    "  O[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n}\n"
#define DEPTH_F32(C, H, W)                                                                         \
    "kernel depth(C=" #C ", H=" #H ", W=" #W ") {\n"                                               \
    "  in I: f32[C, H, W]  const D: f32[C, 3, 3]  out O: f32[C, H, W]\n"                           \
    "  axes c: C, p: H, q: W, r: 3, s: 3\n  O[c,p,q] = 0\n"                                        \
    "  O[c,p,q] += I[c,p+r-1,q+s-1 else 0] * D[c,r,s]\n}\n"
#define GMM_BF16(M, N, K)                                                                          \
    "kernel gmm(M=" #M ", N=" #N ", K=" #K ") {\n"                                                 \
    "  in A: bf16[M, K]  in B: bf16[N, K]  out C: f32[M, N]  axes i: M, j: N, k: K\n"              \
    "  C[i,j] = 0\n  C[i,j] += f32(A[i,k]) * f32(B[j,k])\n}\n"
#define LAYER_I8(M, N, K)                                                                          \
    "kernel layer(M=" #M ", N=" #N ", K=" #K ") {\n"                                               \
    "  in A: i8[M, K]  const B: i8[N, K]  const b: i32[N]  out D: i8[M, N]\n"                      \
    "  temp C: i32[M, N]  temp E: i32[M, N]  temp G: i32[M, N]  axes i: M, j: N, k: K\n"           \
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n  E[i,j] = C[i,j] + b[j]\n"              \
    "  G[i,j] = max(E[i,j], 0)\n"                                                                  \
    "  D[i,j] = i8(clip(round(f64(G[i,j]) * 0.0625), -128, 127))\n}\n"
#define ADDED_I8(M, N, K)                                                                          \
    "kernel added(M=" #M ", N=" #N ", K=" #K ") {\n"                                               \
    "  in A: i8[M, K]  const B: i8[N, K]  const b: i32[N]  in R: i32[M, N]  out D: i32[M, N]\n"    \
    "  temp C: i32[M, N]  temp E: i32[M, N]  temp G: i32[M, N]  axes i: M, j: N, k: K\n"           \
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n  E[i,j] = C[i,j] + b[j]\n"              \
    "  G[i,j] = E[i,j] + R[i,j]\n  D[i,j] = max(G[i,j], 0)\n}\n"
#define BIAS_I8(M, N, K)                                                                           \
    "kernel bias(M=" #M ", N=" #N ", K=" #K ") {\n"                                                \
    "  in A: i8[M, K]  const B: i8[N, K]  const b: i32[N]  out D: i8[M, N]  temp C: i32[M, N]\n"   \
    "  axes i: M, j: N, k: K\n  C[i,j] = b[j]\n  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n"            \
    "  D[i,j] = i8(clip(shr(C[i,j], 6), -128, 127))\n}\n"
#define TWO_I8(M, N)                                                                               \
    "kernel two(M=" #M ", N=" #N ", K=64, L=64) {\n"                                               \
    "  in A: i8[M, K]  const B: i8[N, K]  const F: i8[L, N]  out O: i8[M, L]\n"                    \
    "  temp C: i32[M, N]  temp D: i8[M, N]  temp E: i32[M, L]  axes i: M, j: N, k: K, l: L\n"      \
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n"                                        \
    "  D[i,j] = i8(clip(round(f64(C[i,j]) * 0.0625), -128, 127))\n"                                \
    "  E[i,l] = 0\n  E[i,l] += i32(D[i,j]) * i32(F[l,j])\n"                                        \
    "  O[i,l] = i8(clip(round(f64(E[i,l]) * 0.0078125), -128, 127))\n}\n"
#define BLOCK_I8                                                                                   \
    "kernel block(C=32, H=40, W=40, K=48, M=32) {\n"                                               \
    "  in I: i8[C, H, W]  const E: i8[K, C]  const F: i8[M, K, 3, 3]  out O: i8[M, H, W]\n"        \
    "  temp a: i32[K, H, W]  temp x: i8[K, H, W]  temp b: i32[M, H, W]\n"                          \
    "  axes k: K, p: H, q: W, c: C, r: 3, s: 3, m: M\n"                                            \
    "  a[k,p,q] = 0\n  a[k,p,q] += i32(I[c,p,q]) * i32(E[k,c])\n"                                  \
    "  x[k,p,q] = i8(clip(round(f64(max(a[k,p,q], 0)) * 0.015625), -128, 127))\n"                  \
    "  b[m,p,q] = 0\n  b[m,p,q] += i32(x[k,p+r-1,q+s-1 else 0]) * i32(F[m,k,r,s])\n"               \
    "  O[m,p,q] = i8(clip(round(f64(b[m,p,q]) * 0.0078125), -128, 127))\n}\n"

struct row {
    const char *machine, *host, *param;
    int64_t value;
    const char *text;
};
/* Another plan for one of the rows, and at least so much slower, in percent. Of plans that take
 * equally long, and of caches, which the simulator does not time, the plan alone is asked for. */
static const struct {
    enum price_term term;
    double slower;
    struct row row[4];
} terms[] = {
    {PRICE_STATES, 0.5, {{"machines/cpu-amx.xml", NULL, NULL, 0, C2D_I8(128, 64, 12, 28)}}},
    {PRICE_ENTRIES,
     3,
     {{"machines/edge16.xml", HOST, NULL, 0, C2D_I8(20, 24, 9, 11)},
      {"machines/edge16.xml", HOST, NULL, 0, C2D_I8(32, 48, 17, 23)},
      {"machines/edge16.xml", HOST, NULL, 0, GMM_I8(256, 192, 320)}}},
    {PRICE_CHAINS,
     0,
     {{"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(4, 256, 512)},
      {"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(256, 256, 32)}}},
    {PRICE_READS,
     0,
     {{"machines/cpu-avx512.xml", NULL, NULL, 0, GMM_F32(90, 70, 130)},
      {"machines/cpu-avx512.xml", NULL, NULL, 0, GMM_F32(4, 256, 512)},
      {"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(4, 256, 512)}}},
    {PRICE_FOLLOWERS,
     1,
     {{"machines/edge16.xml", HOST, "SPAD", 16384, ADDED_I8(512, 64, 32)},
      {"machines/edge16.xml", HOST, NULL, 0, BLOCK_I8}}},
    {PRICE_FIRST,
     3,
     {{"machines/edge16.xml", HOST, NULL, 0, C2D_I8(20, 24, 9, 11)},
      {"machines/edge16.xml", HOST, NULL, 0, LAYER_I8(128, 96, 160)},
      {"machines/vdla.xml", HOST, NULL, 0, C2D_I8(20, 24, 9, 11)}}},
    {PRICE_TABLE,
     0.2,
     {{"machines/vdla.xml", HOST, "ACC", 32768, BLOCK_I8},
      {"machines/vdla.xml", HOST, "LAT", 1000, BLOCK_I8},
      {"machines/vdla.xml", HOST, "LAT", 200, GMM_I8(256, 128, 512)}}},
    {PRICE_STEPS,
     10,
     {{PORT("kite"), NULL, 0, GMM_I8(256, 192, 320)},
      {PORT("kite"), NULL, 0, GMM_I8(100, 70, 130)},
      {PORT("outer"), NULL, 0, GMM_F32(90, 70, 130)}}},
    {PRICE_SHORT,
     0.5,
     {{"machines/edge16.xml", HOST, NULL, 0, C2D_I8(20, 24, 9, 11)},
      {PORT("odd"), NULL, 0, C2D_I8(64, 64, 28, 28)},
      {"machines/vdla.xml", HOST, NULL, 0, GMM_I8(256, 192, 320)}}},
    {PRICE_OUTER,
     5,
     {{PORT("vliw"), NULL, 0, GMM_F32(90, 70, 130)},
      {PORT("flags"), NULL, 0, GMM_I8(256, 192, 320)},
      {PORT("loom"), NULL, 0, C2D_I8(64, 64, 28, 28)}}},
    {PRICE_BRACKETS,
     10,
     {{PORT("outer"), NULL, 0, GMM_F32(90, 70, 130)},
      {PORT("ferro"), NULL, 0, GMM_I8(100, 70, 130)},
      {PORT("odd"), NULL, 0, C2D_I8(64, 64, 28, 28)}}},
    {PRICE_RINGS,
     0.3,
     {{"tests/data/machines/slow_bus.xml", HOST, "SPAD", 32768, C2D_I8(64, 64, 28, 28)},
      {"tests/data/machines/slow_bus.xml", HOST, "SPAD", 16384, WIDE_I8(8, 64, 48, 14)},
      {"tests/data/machines/slow_bus.xml", HOST, "SPAD", 24576, WIDE_I8(8, 80, 40, 14)}}},
    {PRICE_STREAM,
     0,
     {{PORT("flags"), NULL, 0, GMM_I8(256, 192, 320)},
      {PORT("heron"), NULL, 0, C2D_I8(64, 64, 28, 28)},
      {PORT("sorrel"), NULL, 0, GMM_I8(128, 96, 128)}}},
    {PRICE_PIECES,
     10,
     {{PORT("u573"), NULL, 0, GMM_I8(100, 70, 130)},
      {PORT("odd"), NULL, 0, C2D_I8(20, 24, 9, 11)},
      {"machines/vdla.xml", HOST, NULL, 0, LAYER_I8(128, 96, 160)}}},
    {PRICE_BUS,
     5,
     {{"machines/edge16.xml", HOST, NULL, 0, BIAS_I8(128, 96, 160)},
      {"machines/vdla.xml", HOST, NULL, 0, BIAS_I8(128, 96, 160)},
      {"machines/vdla.xml", HOST, NULL, 0, GMM_I8(256, 192, 320)}}},
    {PRICE_GIVING,
     0,
     {{"machines/sm90.xml", NULL, NULL, 0, GMM_BF16(256, 192, 512)},
      {"machines/sm90.xml", NULL, NULL, 0, GMM_BF16(512, 256, 256)},
      {"machines/sm90.xml", NULL, NULL, 0, GMM_BF16(256, 256, 128)},
      {"machines/sm90.xml", NULL, NULL, 0, GMM_BF16(64, 256, 512)}}},
    {PRICE_RETURNS,
     20,
     {{"tests/data/machines/slow_bus.xml", HOST, "SPAD", 32768, C2D_I8(64, 64, 28, 28)},
      {"tests/data/machines/slow_bus.xml", HOST, "SPAD", 24576, GMM_I8(256, 192, 320)},
      {PORT("flags"), NULL, 0, LAYER_I8(128, 96, 160)},
      {PORT("heron"), NULL, 0, C2D_I8(20, 24, 9, 11)}}},
    {PRICE_SPILLS,
     0,
     {{"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(256, 256, 32)},
      {"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(90, 70, 130)},
      {"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(4, 256, 512)}}},
    {PRICE_STARTS,
     0.5,
     {{"machines/vdla.xml", HOST, "INP", 8192, BIAS_I8(128, 96, 160)},
      {"machines/vdla.xml", HOST, "LAT", 1000, BIAS_I8(196, 64, 128)}}},
    {PRICE_BEHIND,
     3,
     {{"machines/gemmini.xml", HOST, NULL, 0, C2D_I8(96, 40, 14, 14)},
      {"machines/gemmini.xml", HOST, NULL, 0, C2D_I8(64, 64, 28, 28)},
      {"machines/gemmini.xml", HOST, NULL, 0, GMM_I8(256, 192, 320)},
      {PORT("kite"), NULL, 0, C2D_I8(64, 64, 28, 28)}}},
    {PRICE_APART,
     5,
     {{PORT("nimc"), NULL, 0, C1D_I8(14, 10, 57)},
      {PORT("kite"), NULL, 0, LAYER_I8(128, 96, 160)},
      {PORT("kite"), NULL, 0, GMM_I8(100, 70, 130)}}},
    {PRICE_SLOTS,
     3,
     {{PORT("heron"), NULL, 0, LAYER_I8(128, 96, 160)},
      {PORT("outer"), NULL, 0, GMM_F32(256, 256, 32)},
      {PORT("tpu1"), NULL, 0, GMM_I8(100, 70, 130)}}},
    {PRICE_GRAINS,
     1,
     {{"machines/edge16.xml", HOST, "SPAD", 16384, TWO_I8(2048, 64)},
      {"machines/edge16.xml", HOST, "SPAD", 16384, ADDED_I8(512, 64, 32)},
      {"machines/edge16.xml", HOST, "SPAD", 16384, BLOCK_I8}}},
    {PRICE_LAST,
     3,
     {{PORT("condor"), NULL, 0, GMM_I8(100, 70, 130)},
      {"machines/edge16.xml", HOST, NULL, 0, GMM_I8(256, 192, 320)},
      {PORT("odd"), NULL, 0, LAYER_I8(128, 96, 160)}}},
    {PRICE_BUSIEST,
     1,
     {{"machines/gemmini.xml", HOST, NULL, 0, TWO_I8(96, 64)},
      {PORT("outer"), NULL, 0, GMM_F32(256, 256, 32)},
      {"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(256, 256, 32)}}},
    {PRICE_REFILLS,
     0,
     {{"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(4, 256, 512)},
      {"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(90, 70, 130)}}},
    {PRICE_WAKING,
     20,
     {{"machines/cpu-avx2.xml", NULL, "CORES", 8, GMM_F32(32, 64, 64)},
      {"machines/cpu-avx512.xml", NULL, "CORES", 8, GMM_F32(32, 64, 96)}}},
    {PRICE_TIES,
     0,
     {{"machines/gemmini.xml", HOST, NULL, 0, C2D_I8(64, 64, 28, 28)},
      {PORT("odd"), NULL, 0, GMM_I8(100, 70, 130)}}},
    {PRICE_CODE,
     0,
     {{"machines/cpu-avx2.xml", NULL, NULL, 0, GMM_F32(4, 256, 512)},
      {PORT("condor"), NULL, 0, LAYER_I8(128, 96, 160)},
      {"machines/vdla.xml", HOST, NULL, 0, GMM_I8(100, 70, 130)}}},
    {PRICE_MEETINGS,
     5,
     {{"tests/data/machines/slow_bus.xml", HOST, NULL, 0, TWO_I8(256, 128)},
      {"tests/data/machines/slow_bus.xml", HOST, "SPAD", 16384, TWO_I8(512, 128)}}},
    {PRICE_LANES,
     0,
     {{PORT("kite"), NULL, 0, C2D_I8(20, 24, 9, 11)},
      {PORT("tr8"), NULL, 0, C2D_I8(64, 64, 28, 28)}}},
    {PRICE_OVERLAP,
     0,
     {{"tests/data/machines/slow_bus.xml", HOST, NULL, 0, TWO_I8(2048, 64)},
      {"tests/data/machines/slow_bus.xml", HOST, NULL, 0, TWO_I8(1024, 96)},
      {"tests/data/machines/slow_bus.xml", HOST, NULL, 0, TWO_I8(96, 64)},
      {"tests/data/machines/slow_bus.xml", HOST, NULL, 0, TWO_I8(4096, 32)}}},
};

static void row_open(struct compiled *x, const struct row *r, uint64_t left_out) {
    struct binding b = {r->param, r->value};
    struct bindings set = {&b, r->param != NULL, NULL};
    bool cores = r->param && strcmp(r->param, "CORES") == 0;
    struct scheduler_options options = {.threads = cores ? (int)r->value : 1, .left_out = left_out};
    compiled_open(x, r->machine, r->host, &set, r->text, NULL, 0);
    compiled_by(x, &plan_best, 0, &options);
}

static double cycles_of(struct compiled *x) {
    struct sim_options options = {.no_values = true, .trusted = true};
    struct sim_result result;
    if (!sim_run(x->s, NULL, &options, &result, &x->diags)) diags_print(&x->diags, stderr);
    assert_int_equal(x->diags.errors, 0);
    double cycles = result.cycles;
    sim_result_free(&result);
    return cycles;
}

static bool same(const struct compiled *x, const struct compiled *y) {
    struct text a = {0}, b = {0};
    schedule_print(x->s, &a);
    schedule_print(y->s, &b);
    bool equal = strcmp(a.at, b.at) == 0;
    text_free(&a);
    text_free(&b);
    return equal;
}

/* Slower by so much without the term, in percent; below -100: the same plan. */
static double decides(enum price_term term, const struct row *r) {
    struct compiled with, without;
    double slower = -1000;
    row_open(&with, r, 0);
    row_open(&without, r, UINT64_C(1) << term);
    if (!same(&with, &without)) slower = 100 * (cycles_of(&without) / cycles_of(&with) - 1);
    compiled_free(&with);
    compiled_free(&without);
    return slower;
}

static void each_term_decides(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
        double most = -1000;
        for (int k = 0; k < 4 && terms[i].row[k].machine; k++) {
            most = fmax(most, decides(terms[i].term, &terms[i].row[k]));
            if (most >= terms[i].slower || (terms[i].slower == 0 && most > -100)) break;
        }
        if (most >= terms[i].slower || (terms[i].slower == 0 && most > -100)) continue;
        fprintf(stderr, "%s decides nothing: %.2f %%\n", price_name[terms[i].term], most);
        bad++;
    }
    assert_int_equal(bad, 0);
}

/* ---- beside the clock ---- */

#define BATCH_I8(N, C, K, H, W)                                                                    \
    "kernel batch(N=" #N ", C=" #C ", K=" #K ", H=" #H ", W=" #W ") {\n"                           \
    "  in I: i8[N, C, H+2, W+2]  const F: i8[K, C, 3, 3]  out O: i32[N, K, H, W]\n"                \
    "  axes n: N, k: K, p: H, q: W, c: C, r: 3, s: 3\n  O[n,k,p,q] = 0\n"                          \
    "  O[n,k,p,q] += i32(I[n,c,p+r,q+s]) * i32(F[k,c,r,s])\n}\n"
#define CHANNELS_I8(C, M, H, W)                                                                    \
    "kernel channels(C=" #C ", M=" #M ", H=" #H ", W=" #W ") {\n"                                  \
    "  in I: i8[C, H+2, W+2]  const F: i8[C, M, 3, 3]  out O: i32[C, M, H, W]\n"                   \
    "  axes c: C, m: M, p: H, q: W, r: 3, s: 3\n  O[c,m,p,q] = 0\n"                                \
    "  O[c,m,p,q] += i32(I[c,p+r,q+s]) * i32(F[c,m,r,s])\n}\n"

/* Stores that take the bus from fills, and fills from stores, signals that no issue carries, tiles
 * with tails, which moves bring in as few issues as whole ones. */
static void prices_are_near(void **state) {
    static const struct {
        double percent; /* off at most */
        struct row row;
    } rows[] = {
        {5, {PORT("u573"), NULL, 0, GMM_I8(256, 784, 64)}},
        {5, {PORT("flags"), NULL, 0, BATCH_I8(16, 64, 64, 28, 28)}},
        {10, {PORT("triple"), NULL, 0, CHANNELS_I8(8, 32, 28, 56)}},
    };
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct compiled x;
        row_open(&x, &rows[i].row, 0);
        double off = 100 * (x.s->cost / cycles_of(&x) - 1);
        if (fabs(off) > rows[i].percent) print_error("%s%.1f %%\n", rows[i].row.text, off);
        bad += fabs(off) > rows[i].percent;
        compiled_free(&x);
    }
    assert_int_equal(bad, 0);
}

/* ---- figures of the machine file ---- */

/* The machine file with one piece of its text replaced, as a file of its own. */
static void edit(const char *file, const char *from, const char *to, const char *path) {
    struct arena arena;
    arena_init(&arena);
    const char *text = help_replace(&arena, help_read(&arena, file), from, to, 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    arena_free(&arena);
}

static const struct {
    const char *file, *from, *to, *text;
    int64_t cores;
} figures[] = {
    {"machines/cpu-avx2.xml", "waking=\"WAKING\"", "waking=\"0\"", GMM_F32(32, 64, 64), 8},
    {"machines/cpu-avx2.xml", "waking=\"WAKING\"", "waking=\"1e6\"", GMM_F32(128, 128, 256), 8},
    {"machines/cpu-avx2.xml", "contention=\"4\"", "contention=\"1\"", GMM_F32(2, 8, 2000), 1},
    {"machines/cpu-avx2.xml", "serves=\"DRAM_SERVES/100\"", "serves=\"0.5\"",
     GMM_F32(512, 512, 512), 64},
    {"machines/cpu-avx2.xml", "turn=\"TURN/100\"", "turn=\"TURN/100\" enter=\"100000\"",
     C2D_I8(16, 32, 14, 14), 1},
    {"machines/cpu-avx2.xml", "<param name=\"HIDDEN\" value=\"88\"/>",
     "<param name=\"HIDDEN\" value=\"0\"/>", GMM_F32(512, 512, 512), 1},
    {"machines/cpu-amx.xml", "crossing=\"2.8\"", "crossing=\"0\"", C2D_I8(64, 64, 14, 14), 1},
    {"machines/cpu-amx.xml", "latency=\"160\" interval=\"160\"", "latency=\"0\" interval=\"0\"",
     C2D_I8(128, 64, 12, 28), 1},
    {"machines/cpu-avx512.xml", "streams=\"16\"", "streams=\"1\"", GMM_F32(64, 64, 4096), 1},
};

static char folder[] = "/tmp/isamap-test-XXXXXX";

static void each_figure_decides(void **state) {
    (void)state;
    char path[100];
    int bad = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/machine.xml", folder);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        edit(figures[i].file, figures[i].from, figures[i].to, path);
        struct compiled x, y;
        struct row r = {figures[i].file, NULL, "CORES", figures[i].cores, figures[i].text};
        row_open(&x, &r, 0);
        r.machine = path;
        row_open(&y, &r, 0);
        y.s->cost = x.s->cost; /* what is done counts, not what it is said to take */
        if (same(&x, &y)) {
            fprintf(stderr, "%s decides nothing (figure %zu)\n", figures[i].to, i);
            bad++;
        }
        compiled_free(&x);
        compiled_free(&y);
    }
    unlink(path);
    rmdir(folder);
    assert_int_equal(bad, 0);
}

/* What the mapper reads of a host's fallback: cycles of a statement with a division and a function,
 * of copies for a device; and the tokens between the two. */
static void figures_of_the_host(void **state) {
    (void)state;
    static const char root[] = "kernel root(N=64) {\n  in A: f32[N]  out B: f32[N]  axes i: N\n"
                               "  B[i] = exp(A[i]) / A[i]\n}\n";
    static const char turned[] =
        "kernel turned(M=64, N=64, K=64) {\n  in A: i8[K, M]  in B: i8[K, N]  out C: i32[M, N]\n"
        "  axes i: M, j: N, k: K\n  C[i,j] = 0\n  C[i,j] += i32(A[k,i]) * i32(B[k,j])\n}\n";
    static const struct {
        const char *more, *text;
        bool beside;
    } rows[] = {{"divide=\"500\"", root, false},
                {"function=\"500\"", root, false},
                {"hidden=\"0\"", turned, true}};
    char path[100], more[100], device[] = "machines/edge16.xml";
    static char place[] = "/tmp/isamap-test-XXXXXX";
    assert_non_null(mkdtemp(place));
    snprintf(path, sizeof path, "%s/host.xml", place);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double cost[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            struct compiled x;
            snprintf(more, sizeof more, "interval=\"2\" %s", rows[i].more);
            edit(HOST, "interval=\"2\"", k ? more : "interval=\"2\"", path);
            compiled_open(&x, rows[i].beside ? device : path, rows[i].beside ? path : NULL, NULL,
                          rows[i].text, NULL, 0);
            struct decider *d = decider_open(&plan_best, 0);
            x.c = mapper_cover(x.p, x.m, d, &x.diags);
            assert_non_null(x.c);
            cost[k] = x.c->cost;
            for (int m = 0; m < x.c->nmappings; m++) cost[k] += x.c->mapping[m].copies;
            decider_close(d);
            compiled_free(&x);
        }
        if (!(cost[1] > cost[0])) fail_msg("%s: %g, %g without", rows[i].more, cost[1], cost[0]);
    }
    edit(HOST, "<machine ", "<machine doorbell=\"777\" ", path);
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_join(device, path, NULL, &d);
    assert_non_null(m);
    int bells = 0;
    for (int i = 0; i < m->nsyncs; i++)
        if (strncmp(m->sync[i].id, "bell.", 5) == 0) {
            assert_true(m->sync[i].latency == 777);
            bells++;
        }
    assert_true(bells > 0);
    machine_free(m);
    diags_free(&d);
    unlink(path);
    rmdir(place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_term_decides), cmocka_unit_test(prices_are_near),
        cmocka_unit_test(each_figure_decides), cmocka_unit_test(figures_of_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
