/* The clock: what it says when it multiplies what repeats is what it says when it walks every
 * instruction, to the cycle where no processor's out-of-order queues are involved; and the work
 * that it takes does not grow with the program. Every second pair of program and machine;
 * ISAMAP_CLOCK=1: all of them, at larger sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command/isamap_int.h"
#include "tests/clock_same.h"
#include "tests/sample.h"

#include <stdlib.h>
#include <string.h>

static void compile(isamap *im, struct job *j, const char *program, const char *machine,
                    const char *sizes) {
    char text[200], *rest = text, *word;
    snprintf(text, sizeof text, "%s", sizes);
    assert_int_equal(isamap_option(im, "machine", machine), ISAMAP_DONE);
    assert_int_equal(isamap_option(im, "no-check", NULL), ISAMAP_DONE);
    while ((word = strsep(&rest, " ")) && *word)
        assert_int_equal(isamap_option(im, "define", word), ISAMAP_DONE);
    job_init(j, program);
    bool ok = job_machine(im, j, USE_SIM) && job_program(im, j) && job_compile(im, j);
    if (!ok) diags_print(&im->diags, stderr);
    assert_true(ok);
}

static void same(const char *program, const char *machine, const char *sizes) {
    char why[200] = "";
    struct job j;
    isamap *im = isamap_open();
    compile(im, &j, program, machine, sizes);
    bool ok = clock_same(j.schedule, NULL, getenv("ISAMAP_CLOCK") ? 0 : 400000, why, sizeof why);
    if (!ok) print_error("%s on %s, %s: %s\n", program, machine, sizes, why);
    assert_true(ok);
    job_free(&j);
    isamap_close(im);
}

static const struct {
    const char *program, *sizes, *larger;
} operators[] = {
    {"i8/att", "B=1 T=64 D=32", "B=2 T=256 D=64"},
    {"i8/bottleneck", "C=16 H=9 W=10 K=16", "C=64 H=28 W=28 K=64"},
    {"i8/c1d", "N=2 C=32 K=24 P=45", "N=4 C=64 K=64 P=128"},
    {"i8/c2d", "N=1 C=16 K=32 P=19 Q=14", "N=2 C=64 K=64 P=28 Q=28"},
    {"i8/c3d", "N=1 C=8 K=16 D=4 P=9 Q=7", "N=1 C=32 K=32 D=8 P=14 Q=14"},
    {"i8/dep", "N=1 C=8 M=4 P=14 Q=13", "N=1 C=32 M=8 P=28 Q=28"},
    {"i8/dil", "N=1 C=16 K=16 P=12 Q=14", "N=1 C=32 K=32 P=28 Q=28"},
    {"i8/gmm", "M=96 N=80 K=130", "M=256 N=256 K=256"},
    {"i8/gmv", "M=200 K=130", "M=1024 K=1024"},
    {"i8/grp", "N=1 G=2 C=16 K=16 P=9 Q=10", "N=2 G=4 C=32 K=32 P=14 Q=14"},
    {"i8/mobilenet", "C=16 H=9 W=9 M=16", "C=32 H=14 W=14 M=32"},
    {"i8/residual", "H=9 W=8 C=20", "H=28 W=28 C=64"},
    {"f32/gmm", "M=50 N=70 K=64", "M=192 N=160 K=256"},
    {"f32/c2d", "N=1 C=8 K=16 P=12 Q=13", "N=1 C=32 K=32 P=28 Q=28"},
    {"f32/softmax", "M=12 N=200", "M=64 N=1000"},
    {"f32/layernorm", "M=20 N=100", "M=100 N=500"},
    {"f32/att", "B=1 T=48 D=32", "B=2 T=128 D=64"},
    {"bf16/gmm", "M=130 N=200 K=192", "M=512 N=640 K=512"},
};

static const char *const machines[] = {
    "edge16",
    "vdla",
    "gemmini",
    "sm90",
    "cpu-avx2",
    "cpu-amx",
    "mma",
    "dot4",
    "u573",
    "tpu1",
    "vdla-board",
    "flags",
    "heron",
    "kite",
    "condor",
    "tests/data/machines/levels.xml",
    "tests/data/machines/fused.xml",
};

static void operators_on(void **state) {
    const char *const *machine = *state;
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++) {
        char path[100];
        size_t pair = k + (size_t)(machine - machines);
        if (!getenv("ISAMAP_CLOCK") && (pair % 2 || !sampled(pair / 2))) continue;
        snprintf(path, sizeof path, "examples/%s.isam", operators[k].program);
        same(path, *machine, getenv("ISAMAP_CLOCK") ? operators[k].larger : operators[k].sizes);
    }
}

/* Of large products few instructions are walked. */
static void few_steps(void **state) {
    static const struct {
        const char *program, *machine, *sizes;
        int64_t steps;
    } large[] = {
        {"examples/f32/gmm.isam", "cpu-avx2", "M=512 N=512 K=512", 300000},
        {"examples/bf16/gmm.isam", "sm90", "M=8192 N=8192 K=8192", 1000000},
        {"examples/i8/gmm.isam", "edge16", "M=4096 N=4096 K=4096", 300000},
        {"examples/i8/gmm.isam", "gemmini", "M=2048 N=2048 K=2048", 300000},
        {"examples/f32/att.isam", "cube", "T=128", 300000}, /* on the host beside a device */
    };
    (void)state;
    for (size_t k = 0; k < sizeof large / sizeof *large; k++) {
        struct job j;
        struct sim_result x;
        isamap *im = isamap_open();
        compile(im, &j, large[k].program, large[k].machine, large[k].sizes);
        struct sim_options options = {.no_values = true, .steps = large[k].steps};
        bool ok = sim_run(j.schedule, NULL, &options, &x, &im->diags);
        if (!ok) print_error("%s on %s takes more steps\n", large[k].program, large[k].machine);
        assert_true(ok);
        assert_true(x.instructions > 0);
        sim_result_free(&x);
        job_free(&j);
        isamap_close(im);
    }
}

int main(void) {
    setenv("ISAMAP_MACHINE_PATH", "tests/data/machines/ports:machines", 1);
    enum { N = sizeof machines / sizeof *machines };
    struct CMUnitTest tests[N + 1];
    for (int k = 0; k < N; k++)
        tests[k] = (struct CMUnitTest){machines[k], operators_on, NULL, NULL, (void *)&machines[k]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(few_steps);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
