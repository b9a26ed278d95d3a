/* More memory, a faster bus, a longer queue: the plan that is taken is never more than 2 % slower
 * where the simulator runs it, with the host's work beside it. Machines are written for it from
 * those of the ports, one figure changed. What the clock chose among plans is what is done.
 *
 * Then machines and operators are drawn, and the machine gets one thing more: twice a memory, a
 * bus's rate, a queue's or a sync's depth, half an overhead, or an instruction beside one that
 * does the same. ISAMAP_MORE=N sets how many and leaves out the other tests, ISAMAP_SEED the first
 * seed, ISAMAP_MACHINE=NAME the only machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "approaches/approaches.h"
#include "sim/sim.h"
#include "tests/random_machine.h"
#include "tests/sample.h"
#include "tests/scheduler_help.h"
#include "tests/scheduler_plan.h"
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT(name) "tests/data/machines/ports/" name ".xml"
enum { MOST_STEPS = 4 };
static const double MORE = 1.02;

static const char product[] =
    "kernel gmm(M=96, N=80, K=72) {\n"
    "  in A: i8[M, K]  in B: i8[K, N]  out C: i32[M, N]  axes i: M, j: N, k: K\n"
    "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n";
static const char convolution[] =
    "kernel c2d(C=12, K=20, P=14, Q=14) {\n"
    "  in I: i8[C, P+2, Q+2]  const F: i8[K, C, 3, 3]  out O: i32[K, P, Q]\n"
    "  axes k: K, p: P, q: Q, c: C, r: 3, s: 3\n"
    "  O[k,p,q] = 0\n  O[k,p,q] += i32(I[c,p+r,q+s]) * i32(F[k,c,r,s])\n}\n";

/* `part` of the file becomes each step's text in turn, which is worth more from step to step. */
static const struct grid {
    const char *machine, *part, *step[MOST_STEPS];
} grids[] = {
    {PORT("u573"), "size=\"15*64\"", {"size=\"15*32\"", "size=\"15*64\"", "size=\"15*512\""}},
    {PORT("u573"), "size=\"140*24\"", {"size=\"140*24\"", "size=\"140*48\""}},
    {PORT("flags"),
     "id=\"stage\"  size=\"512K\"",
     {"id=\"stage\" size=\"16K\"", "id=\"stage\" size=\"64K\""}},
    {PORT("u573"), "rate=\"8\"", {"rate=\"4\"", "rate=\"8\"", "rate=\"64\""}},
    {PORT("u573"),
     "id=\"exec\" depth=\"16\"",
     {"id=\"exec\" depth=\"8\"", "id=\"exec\" depth=\"64\""}},
    {PORT("tr8"), "rate=\"8\"", {"rate=\"4\"", "rate=\"8\"", "rate=\"32\""}},
    {PORT("flags"),
     "id=\"la\" size=\"32K\"",
     {"id=\"la\" size=\"16K\"", "id=\"la\" size=\"128K\""}},
    {PORT("flags"), "rate=\"32\"", {"rate=\"16\"", "rate=\"32\"", "rate=\"128\""}},
    {PORT("tpu1"), "size=\"24M\"", {"size=\"256K\"", "size=\"24M\""}},
    {PORT("tpu1"), "rate=\"20\"", {"rate=\"10\"", "rate=\"20\"", "rate=\"80\""}},
};

static double simulated(const struct schedule *s, double most, int64_t *steps) {
    struct sim_options quick = {.no_values = true, .trusted = true, .steps = *steps, .most = most};
    struct sim_result result;
    struct diags d;
    diags_init(&d);
    double cycles = sim_run(s, NULL, &quick, &result, &d) ? result.cycles
                    : result.beyond                       ? INFINITY
                                                          : -1;
    *steps = result.steps;
    sim_result_free(&result);
    diags_free(&d);
    return cycles;
}

/* Cycles of the device, -1 without a schedule; *host: the host's work, in the device's clock. */
static double device_cycles(const struct machine *m, const char *text, struct text *explain,
                            double *host) {
    struct scheduler_options options = {.threads = 1, .simulate = simulated, .explain = explain};
    struct decider *decider = decider_open(&approach_heuristic, 1);
    struct cover *cover = NULL;
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = plan_program(&a, text, NULL, 0, &d);
    assert_non_null(p);
    struct schedule *s = scheduler_compile(p, m, REWRITE_REORDERS, decider, &options, &cover, &d);
    int64_t steps = 0;
    double cycles = s ? simulated(s, 0, &steps) : -1;
    *host = s ? s->host : 0;
    int sampled;
    struct text reason = {0};
    assert_true(!s || schedule_prove(s, 0, &sampled, &reason, &d) != PROOF_REFUSED);
    text_free(&reason);
    schedule_free(s);
    cover_free(cover);
    program_free(p);
    decider_close(decider);
    diags_free(&d);
    arena_free(&a);
    return cycles;
}

static double cycles_on(const struct machine *m, const char *text) {
    double host, device = device_cycles(m, text, NULL, &host);
    return device < 0 ? -1 : device + host;
}

static struct machine *changed(struct arena *a, const struct grid *g, int k, const char *path) {
    struct diags d;
    diags_init(&d);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(help_replace(a, help_read(a, g->machine), g->part, g->step[k], 0), f);
    fclose(f);
    struct machine *m = plan_machine(path, "machines/cpu-avx2.xml", &d);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

static void climb(const struct grid *g, const char *text, const char *path) {
    double least = 0;
    for (int k = 0; k < MOST_STEPS && g->step[k]; k++) {
        struct arena a;
        arena_init(&a);
        struct machine *m = changed(&a, g, k, path);
        double now = cycles_on(m, text);
        assert_true(now >= 0);
        if (k && now > MORE * least)
            fprintf(stderr, "%s, %s: %.0f cycles, %.0f before\n%s", g->machine, g->step[k], now,
                    least, text);
        assert_true(!k || now <= MORE * least);
        if (!k || now < least) least = now;
        machine_free(m);
        arena_free(&a);
    }
}

static void more_is_never_slower(void **state) {
    char path[] = "/tmp/isamap-monotonic-XXXXXX.xml";
    int file = mkstemps(path, 4);
    (void)state;
    assert_true(file >= 0);
    close(file);
    for (size_t k = 0; k < sizeof grids / sizeof *grids; k++) {
        if (!sampled(k)) continue;
        climb(&grids[k], product, path);
        climb(&grids[k], convolution, path);
    }
    unlink(path);
}

/* Questions that come after the clock was asked do not go back to the model's choice; nor does
 * what costs no cycles (ties, code) outweigh what the clock says. */
static void clock_decides(const char *machine, const char *text, double within) {
    struct diags d;
    struct text explain = {0};
    diags_init(&d);
    struct machine *m = plan_machine(machine, "machines/cpu-avx2.xml", &d);
    assert_non_null(m);
    double host, least = INFINITY, cycles = device_cycles(m, text, &explain, &host);
    for (const char *at = explain.at; (at = strstr(at, "simulated ")); at++)
        least = fmin(least, strtod(at + strlen("simulated "), NULL));
    assert_true(isfinite(least) && cycles >= 0);
    if (cycles > within * least) fprintf(stderr, "%.0f cycles, %.0f found\n", cycles, least);
    assert_true(cycles <= within * least);
    text_free(&explain);
    machine_free(m);
    diags_free(&d);
}

static void what_the_clock_chose_stays(void **state) {
    (void)state;
    clock_decides(PORT("mole"),
                  "kernel gmv(M=1024, K=1024) {\n"
                  "  in A: i8[M, K]  in x: i8[K]  out y: i32[M]  axes i: M, k: K\n"
                  "  y[i] = 0\n  y[i] += i32(A[i,k]) * i32(x[k])\n}\n",
                  MORE);
    clock_decides("machines/vdla.xml",
                  "kernel c2d(C=128, K=256, P=14) {\n"
                  "  in I: i8[C, 2*P, 2*P]  const F: i8[K, C]  out O: i8[K, P, P]\n"
                  "  temp A: i32[K, P, P]  axes k: K, p: P, q: P, c: C\n"
                  "  A[k,p,q] = 0\n  A[k,p,q] += i32(I[c,2*p,2*q]) * i32(F[k,c])\n"
                  "  O[k,p,q] = i8(clip(round(f64(A[k,p,q]) * 0.0009765625), -128, 127))\n}\n",
                  1.003);
}

/* Tiles of a matrix lie in the outer copy as its rows come from home: so few moves bring it that
 * what a move costs beside its bytes hardly counts. */
static void an_outer_copy_comes_in_few_moves(void **state) {
    static const struct grid moves = {
        PORT("flags"),
        "queue=\"fetch\" from=\"dram\" to=\"stage\" bus=\"bus.dram\" overhead=\"16\"",
        {"queue=\"fetch\" from=\"dram\" to=\"stage\" bus=\"bus.dram\" overhead=\"1\""}};
    static const char whole[] = "kernel gmm(M=256, N=256, K=256) {\n"
                                "  in A: i8[M, K]  const B: i8[K, N]  out C: i32[M, N]\n"
                                "  axes i: M, j: N, k: K\n"
                                "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n";
    char path[] = "/tmp/isamap-monotonic-XXXXXX.xml";
    int file = mkstemps(path, 4);
    struct diags d;
    struct arena a;
    diags_init(&d);
    arena_init(&a);
    (void)state;
    assert_true(file >= 0);
    close(file);
    struct machine *dear = plan_machine(moves.machine, "machines/cpu-avx2.xml", &d),
                   *cheap = changed(&a, &moves, 0, path);
    double with = cycles_on(dear, whole), without = cycles_on(cheap, whole);
    if (with > 1.1 * without) fprintf(stderr, "%.0f cycles, %.0f\n", with, without);
    assert_true(without > 0 && with <= 1.1 * without);
    machine_free(dear);
    machine_free(cheap);
    unlink(path);
    arena_free(&a);
    diags_free(&d);
}

/* Instructions take 24,576 cycles. An outer copy that is fetched whole before the first of them
 * adds 8,192, and so do outer copies that are fetched when the step before is nearly over. Without
 * pieces and fills a step ahead the product takes 41,210 cycles, with pieces alone 38,683. */
static void outer_copies_overlap_with_products(void **state) {
    static const char whole[] = "kernel gmm(M=512, N=512, K=512) {\n"
                                "  in A: i8[M, K]  in B: i8[K, N]  out C: i32[M, N]\n"
                                "  axes i: M, j: N, k: K\n"
                                "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n";
    struct diags d;
    double host;
    (void)state;
    diags_init(&d);
    struct machine *m = plan_machine(PORT("flags"), "machines/cpu-avx2.xml", &d);
    double cycles = device_cycles(m, whole, NULL, &host);
    if (cycles > 36400) fprintf(stderr, "%.0f cycles\n", cycles);
    assert_true(cycles > 24576 && cycles <= 36400);
    machine_free(m);
    diags_free(&d);
}

/* ---- machines and operators that are drawn ---- */

enum { FILES = 64 };

static const struct {
    const char *element, *attribute, *to;
} more[] = {
    {"memory", "size", "*2"},  {"memory", "size", "*2"},    {"bus", "rate", "*2"},
    {"queue", "depth", "*2"},  {"sync", "depth", "*2"},     {"move", "overhead", "/2"},
    {"move", "latency", "/2"}, {"instruction", "id", NULL},
};

/* The text with a copy of an instruction that adds products, under a name of its own; NULL. */
static char *with_another(const char *text, struct tape *tape, struct text *what) {
    const char *tag[PLACES];
    int n = tags_of(text, "instruction", tag), sums = 0;
    for (int k = 0; k < n; k++) {
        const char *end = strstr(tag[k], "</instruction>"), *sum = strstr(tag[k], "+=");
        size_t length;
        if (end && sum && sum < end && value_in(tag[k], "id", &length)) tag[sums++] = tag[k];
    }
    if (!sums) return NULL;
    const char *at = tag[pick(tape, sums)], *end = strstr(at, "</instruction>") + 14;
    struct text out = {0};
    size_t length;
    const char *id = value_in(at, "id", &length);
    text_append(&out, text, (size_t)(end - text));
    text_append(&out, at, (size_t)(id + length - at));
    text_printf(&out, ".again%s", id + length);
    text_printf(what, " another '%.*s';", (int)length, id);
    return out.at;
}

static char *with_more(const char *text, struct tape *tape, struct text *what) {
    const char *tag[PLACES];
    int kind = pick(tape, (int)(sizeof more / sizeof *more));
    if (!more[kind].to) return with_another(text, tape, what);
    int n = tags_of(text, more[kind].element, tag);
    if (!n) return NULL;
    const char *at = tag[pick(tape, n)];
    char *out = set_value(text, at, more[kind].element, more[kind].attribute, more[kind].to);
    if (out) say_value(what, at, more[kind].attribute, more[kind].to);
    return out;
}

static struct machine *machine_of(const char *text) {
    char path[] = "/tmp/isamap-monotonic-XXXXXX.xml";
    struct diags d;
    diags_init(&d);
    int file = mkstemps(path, 4);
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    struct machine *m = machine_join(path, "machines/cpu-avx2.xml", NULL, &d);
    unlink(path);
    diags_free(&d);
    return m;
}

static char *operator_of(struct arena *a, struct tape *tape) {
    int x = 8 + pick(tape, 120), y = 8 + pick(tape, 120), z = 8 + pick(tape, 120),
        r = 1 + pick(tape, 3), s = 1 + pick(tape, 2);
    switch (pick(tape, 4)) {
    case 0:
        return arena_printf(a,
                            "kernel gmv(M=%d, K=%d) {\n"
                            "  in A: i8[M, K]  in x: i8[K]  out y: i32[M]  axes i: M, k: K\n"
                            "  y[i] = 0\n  y[i] += i32(A[i,k]) * i32(x[k])\n}\n",
                            x, y);
    case 1:
        return arena_printf(a,
                            "kernel c1d(C=%d, K=%d, P=%d, R=%d, S=%d) {\n"
                            "  in I: i8[C, (P-1)*S+R]  const F: i8[K, C, R]  out O: i32[K, P]\n"
                            "  axes k: K, p: P, c: C, r: R\n"
                            "  O[k,p] = 0\n  O[k,p] += i32(I[c,p*S+r]) * i32(F[k,c,r])\n}\n",
                            x, y, z, r, s);
    case 2:
        return arena_printf(
            a,
            "kernel c2d(C=%d, K=%d, P=%d, Q=%d, R=%d, S=%d) {\n"
            "  in I: i8[C, (P-1)*S+R, (Q-1)*S+R]  const F: i8[K, C, R, R]  out O: i32[K, P, Q]\n"
            "  axes k: K, p: P, q: Q, c: C, r: R, s: R\n"
            "  O[k,p,q] = 0\n  O[k,p,q] += i32(I[c,p*S+r,q*S+s]) * i32(F[k,c,r,s])\n}\n",
            x / 3 + 1, y / 3 + 1, z / 8 + 2, 2 + z % 13, r, s);
    default:
        return arena_printf(a,
                            "kernel gmm(M=%d, N=%d, K=%d) {\n"
                            "  in A: i8[M, K]  const B: i8[K, N]  out C: i32[M, N]\n"
                            "  axes i: M, j: N, k: K\n"
                            "  C[i,j] = 0\n  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n",
                            x, y, z);
    }
}

/* Cycles without and with what it has more; false: it cannot have it. */
static bool one_more(const char *file, uint64_t seed, struct arena *a, double *ratio) {
    struct tape tape = {.s = seed * 7919 + 13};
    struct text what = {0};
    char *text = help_read(a, file), *base = pick(&tape, 2) ? vary_once(text, &tape, &what) : NULL;
    text_printf(&what, " then");
    char *rich = with_more(base ? base : text, &tape, &what);
    struct machine *less = rich ? machine_of(base ? base : text) : NULL,
                   *most = less ? machine_of(rich) : NULL;
    *ratio = 0;
    if (most) {
        const char *program = operator_of(a, &tape);
        double before = cycles_on(less, program), after = cycles_on(most, program);
        if (before > 0 && after > 0) *ratio = after / before;
        if (*ratio > MORE)
            fprintf(stderr, "seed %llu, %s with%s %.0f cycles, %.0f without\n%s",
                    (unsigned long long)seed, file, what.at, after, before, program);
    }
    machine_free(less);
    machine_free(most);
    free(base);
    free(rich);
    text_free(&what);
    return *ratio > 0;
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *s = getenv(variable);
    return s ? strtoull(s, NULL, 0) : otherwise;
}

/* Another name is no other answer: trying both used up the tries, and a schedule was 9 % slower. */
static void a_repeated_instruction_takes_no_try(void **state) {
    struct arena a;
    double ratio;
    (void)state;
    arena_init(&a);
    assert_true(one_more(PORT("flags"), 650, &a, &ratio));
    assert_true(ratio > 0 && ratio <= MORE);
    arena_free(&a);
}

/* Bytes become words in a nest without sums, through a DMA and registers: along the batch each grain
 * waits for its way from home and back. Such nests had no price, nothing else was tried, and all of
 * it took 1,677,344 cycles. */
static void a_nest_without_sums_has_a_price(void **state) {
    struct diags d;
    double host;
    (void)state;
    diags_init(&d);
    struct machine *m = plan_machine(PORT("whimbrel"), "machines/cpu-scalar.xml", &d);
    assert_non_null(m);
    double cycles = device_cycles(
        m,
        "kernel c1d(N=2, C=64, K=64, P=128, R=3) {\n  in I: i8[N, C, P+R-1]\n"
        "  const F: i8[K, C, R]\n  out O: i32[N, K, P]\n  axes n: N, k: K, p: P, c: C, r: R\n"
        "  O[n,k,p] = 0\n  O[n,k,p] += i32(I[n,c,p+r]) * i32(F[k,c,r])\n}\n",
        NULL, &host);
    assert_true(cycles > 0 && cycles < 300000);
    machine_free(m);
    diags_free(&d);
}

static void drawn_machines_with_more(void **state) {
    const char *only = getenv("ISAMAP_MACHINE"), *file[FILES];
    uint64_t first = number_of("ISAMAP_SEED", 1), n = number_of("ISAMAP_MORE", 24);
    glob_t files;
    int nfiles = 0, tried = 0, slower = 0;
    (void)state;
    glob("tests/data/machines/ports/*.xml", 0, NULL, &files);
    glob("machines/edge16.xml", GLOB_APPEND, NULL, &files);
    glob("machines/vdla.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc && nfiles < FILES; k++)
        if (!only || strstr(files.gl_pathv[k], only)) file[nfiles++] = files.gl_pathv[k];
    assert_true(nfiles > 0);
    for (uint64_t seed = first; seed < first + n; seed++) {
        struct arena a;
        double ratio;
        arena_init(&a);
        tried += one_more(file[seed % (uint64_t)nfiles], seed, &a, &ratio);
        slower += ratio > MORE;
        arena_free(&a);
    }
    globfree(&files);
    fprintf(stderr, "%d machines with more, %d slower\n", tried, slower);
    assert_true(tried * 3 >= (int)n);
    assert_int_equal(slower, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_clock_chose_stays),
                                       cmocka_unit_test(an_outer_copy_comes_in_few_moves),
                                       cmocka_unit_test(outer_copies_overlap_with_products),
                                       cmocka_unit_test(a_repeated_instruction_takes_no_try),
                                       cmocka_unit_test(a_nest_without_sums_has_a_price),
                                       cmocka_unit_test(drawn_machines_with_more),
                                       cmocka_unit_test(more_is_never_slower)};
    if (getenv("ISAMAP_MORE")) cmocka_set_test_filter("drawn_*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
