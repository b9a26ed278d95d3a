/* `isamap bench` through the library: small suites on this CPU and on a simulated device, every key
 * of the result, and what it refuses. No times are judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "isamap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option {
    const char *name, *value;
};

static int bench(isamap *im, const char *path, const struct option *o) {
    isamap_reset(im);
    for (; o && o->name; o++) assert_int_equal(isamap_option(im, o->name, o->value), ISAMAP_DONE);
    return isamap_bench(im, path);
}

static double number(isamap *im, const char *row, const char *key) {
    char path[256];
    snprintf(path, sizeof path, "results.%s.%s", row, key);
    return isamap_number(im, path);
}

static void assert_positive(isamap *im, const char *row, const char *key) {
    double x = number(im, row, key);
    if (!(x > 0)) fail_msg("results.%s.%s is %g", row, key, x);
}

static void done(isamap *im, int status) {
    if (status != ISAMAP_DONE) fail_msg("status %d: %s", status, isamap_messages(im));
}

static void host_suite(void **state) {
    isamap *im = *state;
    static const char *const row[] = {"0", "1", "2"};
    static const char *const key[] = {"ours_ms",         "ours_min_ms",    "ours_max_ms",
                                      "gflops",          "predicted_ms",   "dram_bound_bytes",
                                      "compile_seconds", "schedule_nodes", "threads"};
    done(im, bench(im, "bench/smoke.csv", (struct option[]){{"runs", "3"}, {NULL, NULL}}));
    for (int r = 0; r < 3; r++) {
        assert_true(number(im, row[r], "verified") == 1);
        for (size_t k = 0; k < sizeof key / sizeof *key; k++) assert_positive(im, row[r], key[k]);
        assert_true(number(im, row[r], "ours_min_ms") <= number(im, row[r], "ours_ms"));
        assert_true(number(im, row[r], "ours_max_ms") >= number(im, row[r], "ours_ms"));
    }
    assert_true(isnan(number(im, "3", "ours_ms")));
    assert_true(number(im, "0", "dram_bound_bytes") == 3 * 32 * 32 * 4);
    /* Where one peer took part there is a ratio, the fastest one's. */
    double best = INFINITY;
    for (int i = 0; isamap_key(im, "results.0.peers", i); i++) {
        char path[128];
        snprintf(path, sizeof path, "peers.%s", isamap_key(im, "results.0.peers", i));
        assert_positive(im, "0", path);
        best = fmin(best, number(im, "0", path));
    }
    if (isfinite(best)) {
        assert_true(fabs(number(im, "0", "ratio") - best / number(im, "0", "ours_ms")) < 1e-9);
        assert_true(isamap_number(im, "geomean_ratio") > 0);
    }
    assert_non_null(strstr(isamap_result(im), "depthwise"));
}

/* The rate that the machine file promises is measured, where it has such an instruction. */
static void peak_is_measured(void **state) {
    isamap *im = *state;
    done(im, bench(im, "bench/smoke.csv",
                   (struct option[]){
                       {"only", "product"}, {"runs", "1"}, {"vs", "none"}, {NULL, NULL}}));
    assert_null(isamap_key(im, "results.0.peers", 0));
    assert_true(isnan(number(im, "0", "ratio")));
    double peak = number(im, "0", "peak_gflops");
    if (!isnan(peak)) {
        assert_true(peak > 0 && number(im, "0", "clock_ghz") > 0);
        assert_true(fabs(number(im, "0", "peak_fraction") - number(im, "0", "gflops") / peak) <
                    1e-9);
    }
    done(im, bench(im, "bench/smoke.csv",
                   (struct option[]){{"only", "product"},
                                     {"runs", "1"},
                                     {"vs", "none"},
                                     {"machine", "cpu-scalar"},
                                     {NULL, NULL}}));
    assert_true(number(im, "0", "verified") == 1 && number(im, "0", "ours_ms") > 0);
}

static void several_threads(void **state) {
    isamap *im = *state;
    done(im, bench(im, "bench/smoke.csv",
                   (struct option[]){
                       {"only", "product"}, {"runs", "1"}, {"threads", "1,2"}, {NULL, NULL}}));
    assert_true(number(im, "0", "threads") == 1 && number(im, "1", "threads") == 2);
    assert_true(number(im, "0", "speedup") == 1);
    assert_positive(im, "1", "speedup");
    assert_true(number(im, "1", "verified") == 1);
    bench(im, "bench/smoke.csv", NULL);
    isamap_reset(im);
    isamap_option(im, "threads", "1,2");
    assert_int_equal(isamap_run(im, "bench/gemm.isam"), ISAMAP_INPUT);
    assert_int_equal(isamap_option(im, "threads", "1,,2"), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "threads", "1,"), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "threads", "0"), ISAMAP_USAGE);
}

static void device_suite(void **state) {
    isamap *im = *state;
    static const char *const key[] = {"ours_ms",          "cycles",         "predicted_cycles",
                                      "limit_cycles",     "utilisation",    "dram_read_bytes",
                                      "dram_write_bytes", "gflops",         "peak_gflops",
                                      "dram_bound_bytes", "schedule_nodes", "compile_seconds"};
    done(im,
         bench(im, "bench/smoke_i8.csv", (struct option[]){{"machine", "edge16"}, {NULL, NULL}}));
    for (int r = 0; r < 2; r++) {
        const char *row = r ? "1" : "0";
        for (size_t k = 0; k < sizeof key / sizeof *key; k++) assert_positive(im, row, key[k]);
        assert_true(number(im, row, "verified") == 1);
        assert_true(number(im, row, "limit_fraction") > 0 &&
                    number(im, row, "limit_fraction") <= 1);
    }
    /* 32^3 MACs by 256 a cycle take 128; the 6,144 bytes of A, B and C at 8 a cycle take 768 */
    assert_true(number(im, "0", "limit_cycles") == 768);
    assert_true(number(im, "0", "peak_gflops") == 2 * 256 * 0.5);
    assert_true(isamap_number(im, "geomean_limit_fraction") > 0);
}

/* Larger work is simulated without values; its schedule is proved instead. The limit is the matrix
 * unit's time and requantisation's. */
static void device_layer(void **state) {
    isamap *im = *state;
    done(im, bench(im, "bench/resnet18_i8.csv",
                   (struct option[]){{"machine", "edge16"}, {"only", "rn18_c12"}, {NULL, NULL}}));
    assert_true(number(im, "0", "verified") == 1);
    assert_true(number(im, "0", "limit_cycles") == 115605504.0 / 256 + 512 * 7 * 7 / 16.0);
}

/* Loads hidden behind computing, beside the best schedule that hides none; the weights of a tap and
 * all blocks of outputs come by one move each. */
static void contexts(void **state) {
    isamap *im = *state;
    done(im,
         bench(im, "bench/resnet18_i8.csv",
               (struct option[]){
                   {"machine", "vdla"}, {"only", "rn18_c05"}, {"contexts", "1"}, {NULL, NULL}}));
    double cycles = number(im, "0", "cycles"), one = number(im, "0", "few_contexts_cycles");
    assert_true(number(im, "0", "verified") == 1);
    assert_true(number(im, "0", "limit_fraction") >= 0.945);
    assert_true(one > 1.3 * cycles);
    assert_true(fabs(number(im, "0", "few_contexts_limit_fraction") -
                     number(im, "0", "limit_cycles") / one) < 1e-9);
    assert_true(number(im, "0", "instructions") > 100 && number(im, "0", "instructions") < 500);
    assert_int_equal(isamap_option(im, "contexts", "0"), ISAMAP_USAGE);
    assert_int_equal(
        bench(im, "bench/smoke.csv", (struct option[]){{"contexts", "1"}, {NULL, NULL}}),
        ISAMAP_INPUT);
}

static void one_program(void **state) {
    isamap *im = *state;
    done(im, bench(im, "bench/gemm.isam",
                   (struct option[]){{"define", "M=16"},
                                     {"define", "N=24"},
                                     {"define", "K=8"},
                                     {"runs", "1"},
                                     {NULL, NULL}}));
    assert_true(number(im, "0", "dram_bound_bytes") == 4 * (16 * 8 + 8 * 24 + 16 * 24));
    assert_int_equal(bench(im, "bench/gemm.isam", (struct option[]){{"only", "x"}, {NULL, NULL}}),
                     ISAMAP_INPUT);
    done(im, bench(im, "examples/f32/softmax.isam",
                   (struct option[]){
                       {"define", "M=4"}, {"define", "N=32"}, {"runs", "1"}, {NULL, NULL}}));
    assert_true(isnan(number(im, "0", "ratio")));
}

static void refusals(void **state) {
    isamap *im = *state;
    assert_int_equal(bench(im, "nothing.csv", NULL), ISAMAP_INPUT);
    assert_int_equal(bench(im, "bench/smoke.csv", (struct option[]){{"vs", "mkl"}, {NULL, NULL}}),
                     ISAMAP_INPUT);
    assert_non_null(strstr(isamap_messages(im), "no peer 'mkl'"));
    assert_int_equal(
        bench(im, "bench/smoke.csv", (struct option[]){{"machine", "nowhere"}, {NULL, NULL}}),
        ISAMAP_INPUT);
    setenv("ISAMAP_PEER_PATH", "/nowhere", 1);
    assert_int_equal(bench(im, "bench/smoke.csv", (struct option[]){{"vs", "blis"}, {NULL, NULL}}),
                     ISAMAP_INPUT);
    assert_non_null(strstr(isamap_messages(im), "built without blis"));
    done(im, bench(im, "bench/smoke.csv",
                   (struct option[]){{"only", "product"}, {"runs", "1"}, {NULL, NULL}}));
    assert_non_null(isamap_key(im, "missing_peers", 3));
    unsetenv("ISAMAP_PEER_PATH");
    assert_int_equal(isamap_option(im, "runs", "0"), ISAMAP_USAGE);
}

static void write_file(const char *folder, const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A row that cannot be compiled says why; the others are done. */
static void failing_rows(void **state) {
    isamap *im = *state;
    char folder[] = "/tmp/isamap-bench-XXXXXX", suite[64], kernel[64];
    assert_non_null(mkdtemp(folder));
    write_file(folder, "call.isam",
               "kernel opaque(M=4) { in A: f32[M]  out C: f32[M]\n"
               "  call no_such_function(A) -> (C)\n}\n");
    write_file(folder, "suite.csv", "name,kernel,M\nopaque,call.isam,8\nproduct,gemm.isam,8\n");
    snprintf(suite, sizeof suite, "%s/suite.csv", folder);
    snprintf(kernel, sizeof kernel, "%s/call.isam", folder);
    assert_int_equal(bench(im, suite, (struct option[]){{"runs", "1"}, {NULL, NULL}}),
                     ISAMAP_INPUT);
    assert_true(isnan(number(im, "0", "ours_ms")));
    assert_non_null(strstr(isamap_result(im), "failed"));
    assert_true(number(im, "1", "verified") == 1);
    isamap_option(im, "json", NULL);
    assert_non_null(strstr(isamap_result(im), "\"error\": \""));
    remove(suite);
    remove(kernel);
    remove(folder);
}

/* The log has a line for each row, those that failed too, when the next row begins. */
static void log_of_rows(void **state) {
    isamap *im = *state;
    char folder[] = "/tmp/isamap-bench-XXXXXX", suite[64], log[64], line[8192];
    static const char *const row[] = {"{ \"workload\": \"a\"", "{ \"workload\": \"wide\"",
                                      "{ \"workload\": \"b\""};
    assert_non_null(mkdtemp(folder));
    write_file(folder, "suite.csv",
               "name,kernel,M\na,gemm.isam,8\nwide,call.isam,8\nb,gemm.isam,9\n");
    write_file(folder, "call.isam",
               "kernel opaque(M=4) { in A: f32[M]  out C: f32[M]\n"
               "  call no_such_function(A) -> (C)\n}\n");
    snprintf(suite, sizeof suite, "%s/suite.csv", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    struct option once[] = {{"runs", "1"}, {"vs", "none"}, {"log", log}, {NULL, NULL}};
    assert_int_equal(bench(im, suite, once), ISAMAP_INPUT);
    FILE *f = fopen(log, "r");
    assert_non_null(f);
    for (int i = 0; i < 3; i++) {
        assert_non_null(fgets(line, sizeof line, f));
        assert_true(strncmp(line, row[i], strlen(row[i])) == 0);
        assert_true(strlen(line) > 3 && strcmp(line + strlen(line) - 3, " }\n") == 0);
        assert_true((strstr(line, "\"error\": \"") != NULL) == (i == 1));
        assert_true((strstr(line, "\"ours_ms\": ") != NULL) == (i != 1));
    }
    assert_null(fgets(line, sizeof line, f));
    fclose(f);
    remove(log);
    once[2].value = "/dev/full";
    assert_int_equal(bench(im, suite, once), ISAMAP_RESOURCES);
    assert_non_null(strstr(isamap_messages(im), "cannot write '/dev/full'"));
    once[2].value = folder;
    assert_int_equal(bench(im, suite, once), ISAMAP_INPUT);
    assert_non_null(strstr(isamap_messages(im), "cannot write '"));
    remove(suite);
    snprintf(suite, sizeof suite, "%s/call.isam", folder);
    remove(suite);
    remove(folder);
}

static int open_context(void **state) {
    *state = isamap_open();
    return *state == NULL;
}

static int close_context(void **state) {
    isamap_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_suite),      cmocka_unit_test(peak_is_measured),
        cmocka_unit_test(several_threads), cmocka_unit_test(device_suite),
        cmocka_unit_test(device_layer),    cmocka_unit_test(one_program),
        cmocka_unit_test(refusals),        cmocka_unit_test(failing_rows),
        cmocka_unit_test(contexts),        cmocka_unit_test(log_of_rows),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
