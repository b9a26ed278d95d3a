/* More memory, a faster bus, a longer queue: the plan that is taken is never more than 2 % slower
 * where the simulator runs it, with the host's work beside it. Machines are written for it from
 * those of the ports, one figure changed. What the clock chose among plans is what is done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "approaches/approaches.h"
#include "sim/sim.h"
#include "tests/scheduler_help.h"
#include "tests/scheduler_plan.h"
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

static double simulated(const struct schedule *s, int64_t *steps) {
    struct sim_options quick = {.no_values = true, .trusted = true, .steps = *steps};
    struct sim_result result;
    struct diags d;
    diags_init(&d);
    double cycles = sim_run(s, NULL, &quick, &result, &d) ? result.cycles : -1;
    *steps = result.steps;
    sim_result_free(&result);
    diags_free(&d);
    return cycles;
}

/* Cycles of the device; *host: the host's, in its clock. */
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
    if (!s) diags_print(&d, stderr);
    assert_non_null(s);
    int64_t steps = 0;
    double cycles = simulated(s, &steps);
    *host = s->host;
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
    return device + host;
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
        climb(&grids[k], product, path);
        climb(&grids[k], convolution, path);
    }
    unlink(path);
}

/* Questions that come after the clock was asked do not go back to the model's choice. */
static void what_the_clock_chose_stays(void **state) {
    static const char vector[] = "kernel gmv(M=1024, K=1024) {\n"
                                 "  in A: i8[M, K]  in x: i8[K]  out y: i32[M]  axes i: M, k: K\n"
                                 "  y[i] = 0\n  y[i] += i32(A[i,k]) * i32(x[k])\n}\n";
    struct diags d;
    struct text explain = {0};
    diags_init(&d);
    (void)state;
    struct machine *m = plan_machine(PORT("mole"), "machines/cpu-avx2.xml", &d);
    assert_non_null(m);
    double host, least = INFINITY, cycles = device_cycles(m, vector, &explain, &host);
    for (const char *at = explain.at; (at = strstr(at, "simulated ")); at++)
        least = fmin(least, strtod(at + strlen("simulated "), NULL));
    assert_true(isfinite(least));
    if (cycles > MORE * least) fprintf(stderr, "%.0f cycles, %.0f found\n", cycles, least);
    assert_true(cycles <= MORE * least);
    text_free(&explain);
    machine_free(m);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_clock_chose_stays),
                                       cmocka_unit_test(more_is_never_slower)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
