/* Copies of which a part stays, rings and pinned ranges: taken wherever they are offered, on
 * machines with little memory; verified whole and cut short, simulated in random orders, right. The
 * default approach takes them where they save traffic. */
#include "tests/keeping.h"
#include "scheduler/clock/dryrun.h"
#include "sim/sim.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { PROGRAMS = 30 };

static const char conv[] = "kernel conv(C=8, K=8, H=11, W=13, R=3, S=3, T=1, P=9, Q=11) {\n"
                           "  in I: i8[C, H, W]  const F: i8[K, C, R, S]  out O: i32[K, P, Q]\n"
                           "  axes k: K, p: P, q: Q, c: C, r: R, s: S\n"
                           "  O[k,p,q]  = 0\n"
                           "  O[k,p,q] += i32(I[c,T*p+r,T*q+s]) * i32(F[k,c,r,s])\n"
                           "}\n";
static const char quantised[] =
    "kernel conv(C=8, K=8, H=7, W=13, R=3, S=3, T=1, P=7, Q=13) {\n"
    "  in I: i8[C, H, W]  const F: i8[K, C, R, S]  out O: i8[K, P, Q]  temp a: i32[K, P, Q]\n"
    "  axes k: K, p: P, q: Q, c: C, r: R, s: S\n"
    "  a[k,p,q]  = 0\n"
    "  a[k,p,q] += i32(I[c,T*p+r-1,T*q+s-1 else 0]) * i32(F[k,c,r,s])\n"
    "  O[k,p,q]  = i8(clip(round(f64(a[k,p,q]) * 0.0625), -128, 127))\n"
    "}\n";

static bool is_right(struct compiled *x) {
    bool good = true;
    void **want = plan_data(x->p), **got = plan_data(x->s->program);
    for (int trips = 0; trips <= 4 && good; trips += 4)
        good = schedule_verify(x->s, &(struct verify_options){.trips = trips}, &x->diags);
    good = good && program_run(x->p, want, NULL, NULL, &x->diags);
    for (uint64_t order = 0; order < 2 && good; order++) {
        struct sim_options options = {.order_seed = order};
        struct sim_result r;
        good = sim_run(x->s, got, &options, &r, &x->diags);
        if (!good) break;
        sim_result_free(&r);
        good = plan_differ(x->p, want, x->s->program, got) == 0;
    }
    plan_data_free(x->p, want);
    plan_data_free(x->s->program, got);
    return good;
}

/* Programs in which some were taken. */
static void run(const struct approach *approach, int *turns, int *pinned) {
    static const struct binding strided[] = {{"T", 2}, {"P", 5}, {"Q", 6}};
    for (int k = 0; k < PROGRAMS; k++) {
        const struct binding bytes[] = {{"SPAD", 256 << (k / 3 % 3)}};
        const struct bindings param = {bytes, 1, NULL};
        struct compiled x;
        int turn = 0, pin = 0;
        compiled_open(&x, "tests/data/machines/proof/edge4.xml", "cpu-scalar", &param,
                      k % 3 ? conv : quantised, strided, k % 3 == 1 ? 3 : 0);
        compiled_by(&x, approach, (uint64_t)k, NULL);
        if (!is_right(&x)) {
            struct text t = {0};
            diags_print(&x.diags, stderr);
            schedule_print(x.s, &t);
            fail_msg("seed %d\n%s", k, t.at);
        }
        keeping_count(x.s, x.s->run.node, x.s->run.nnodes, &turn, &pin);
        *turns += turn > 0;
        *pinned += pin > 0;
        compiled_free(&x);
    }
}

static void rings_are_right(void **state) {
    int turns = 0, pinned = 0;
    (void)state;
    run(&plan_rings, &turns, &pinned);
    assert_true(turns >= 2);
}

/* Sums in registers have addresses that are constants, which no end of a ring may cut; one row at a
 * time is never cut. */
static void rings_beside_constants(void **state) {
    static const struct binding size[] = {{"C", 16}, {"K", 32}, {"H", 16},
                                          {"W", 18}, {"P", 14}, {"Q", 16}};
    int turns = 0, pinned = 0;
    (void)state;
    for (int k = 0; k < 6; k++) {
        const struct binding bytes[] = {{"TCM", 2048 << k % 4}};
        const struct bindings param = {bytes, 1, NULL};
        struct compiled x;
        compiled_open(&x, "tests/data/machines/ports/rail.xml", "cpu-scalar", &param, conv, size,
                      6);
        compiled_by(&x, k < 2 ? &plan_best : &plan_rings, (uint64_t)k, NULL);
        struct text t = {0};
        schedule_print(x.s, &t);
        if (!is_right(&x)) {
            diags_print(&x.diags, stderr);
            fail_msg("%d\n%s", k, t.at);
        }
        keeping_count(x.s, x.s->run.node, x.s->run.nnodes, &turns, &pinned);
        text_free(&t);
        compiled_free(&x);
    }
    assert_true(turns > 0);
}

static void pinned_ranges_are_right(void **state) {
    int turns = 0, pinned = 0;
    (void)state;
    run(&plan_pinned, &turns, &pinned);
    assert_true(pinned >= 5);
}

/* Layers of ResNet-18, halved, with a quarter of the memory. */
static void traffic_is_near_the_yardstick(void **state) {
    static const int64_t layer[][5] = {/* C, H, W, K, T */
                                       {32, 28, 56, 32, 1},
                                       {32, 28, 56, 64, 2},
                                       {64, 14, 28, 64, 1}};
    const struct binding bytes[] = {{"SPAD", 16384}};
    const struct bindings param = {bytes, 1, NULL};
    double sum = 0;
    int pinned = 0, turns = 0;
    (void)state;
    for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
        const int64_t *l = layer[k];
        struct binding size[] = {{"C", l[0]},
                                 {"H", l[1]},
                                 {"W", l[2]},
                                 {"K", l[3]},
                                 {"T", l[4]},
                                 {"P", (l[1] - 1) / l[4] + 1},
                                 {"Q", (l[2] - 1) / l[4] + 1}};
        struct compiled x;
        struct sim_result r;
        struct dryrun least;
        compiled_open(&x, "edge16", "cpu-scalar", &param, quantised, size, 7);
        compiled_by(&x, &plan_best, 0, NULL);
        assert_true(sim_run(x.s, NULL, &(struct sim_options){.no_values = true}, &r, &x.diags));
        assert_true(dryrun_traffic(x.s, 10000000, &least));
        sum += log((r.home_read_bytes + r.home_write_bytes) / (least.read + least.written));
        keeping_count(x.s, x.s->run.node, x.s->run.nnodes, &turns, &pinned);
        sim_result_free(&r);
        compiled_free(&x);
    }
    assert_true(pinned > 0);
    assert_true(exp(sum / 3) <= 1.15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_are_right), cmocka_unit_test(rings_beside_constants),
        cmocka_unit_test(pinned_ranges_are_right), cmocka_unit_test(traffic_is_near_the_yardstick)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
