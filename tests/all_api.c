/* isamap.h used wrongly: every call says so with its status and a message, and the next right call
 * works. */
#include "isamap.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#define DATA "tests/data/api/"

enum { ROWS = 64, COLUMNS = 8, ARGUMENTS = 4 };

struct arrays {
    float x[ROWS * COLUMNS], w[COLUMNS * COLUMNS], y[ROWS * COLUMNS];
    float h0[COLUMNS];
    void *args[ARGUMENTS];
};

static struct arrays *arrays_new(void) {
    struct arrays *a = calloc(1, sizeof *a);
    for (int i = 0; i < ROWS * COLUMNS; i++) a->x[i] = (float)(i % 13);
    for (int i = 0; i < COLUMNS; i++) a->w[i * COLUMNS + i] = 2;
    a->args[0] = a->x, a->args[1] = a->w, a->args[2] = a->y, a->args[3] = a->h0;
    return a;
}

static isamap *context(void) {
    isamap *im = isamap_open();
    assert_non_null(im);
    return im;
}

static void says(const char *messages, const char *what) {
    if (strstr(messages, what)) return;
    print_error("expected '%s' in: %s\n", what, messages);
    fail();
}

static void test_nothing(void **state) {
    (void)state;
    size_t bytes;
    int is_output;
    isamap_close(NULL);
    isamap_reset(NULL);
    assert_int_equal(isamap_option(NULL, "machine", "host"), ISAMAP_USAGE);
    assert_int_equal(isamap_check(NULL, "x"), ISAMAP_USAGE);
    assert_int_equal(isamap_map(NULL, "x"), ISAMAP_USAGE);
    assert_int_equal(isamap_compile(NULL, "x", "y"), ISAMAP_USAGE);
    assert_int_equal(isamap_run(NULL, "x"), ISAMAP_USAGE);
    assert_int_equal(isamap_sim(NULL, "x"), ISAMAP_USAGE);
    assert_int_equal(isamap_sweep(NULL, "x", "y"), ISAMAP_USAGE);
    assert_int_equal(isamap_bench(NULL, "x"), ISAMAP_USAGE);
    assert_int_equal(isamap_show(NULL, "x", "y"), ISAMAP_USAGE);
    assert_int_equal(isamap_new_machine(NULL, "x", "y"), ISAMAP_USAGE);
    assert_int_equal(isamap_calibrate(NULL, "y"), ISAMAP_USAGE);
    assert_string_equal(isamap_result(NULL), "");
    assert_string_equal(isamap_messages(NULL), "");
    assert_string_equal(isamap_doing(NULL), "");
    assert_true(isnan(isamap_number(NULL, "x")));
    assert_null(isamap_key(NULL, "x", 0));
    assert_null(isamap_load(NULL, "x"));
    isamap_code_free(NULL);
    assert_int_equal(isamap_code_arguments(NULL), 0);
    assert_null(isamap_code_argument(NULL, 0, &bytes, &is_output));
    assert_int_equal(isamap_code_prepare(NULL, NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_code_size(NULL, "T", 1), ISAMAP_USAGE);
    assert_int_equal(isamap_code_run(NULL, NULL, 1), ISAMAP_USAGE);
    assert_string_equal(isamap_code_messages(NULL), "");
}

static void test_null_texts(void **state) {
    (void)state;
    isamap *im = context();
    assert_int_equal(isamap_check(im, NULL), ISAMAP_USAGE);
    says(isamap_messages(im), "isamap_check: error: 'file' is NULL");
    assert_int_equal(isamap_map(im, NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_compile(im, NULL, "y.so"), ISAMAP_USAGE);
    says(isamap_messages(im), "'program' is NULL");
    assert_int_equal(isamap_compile(im, DATA "scale.isam", NULL), ISAMAP_USAGE);
    says(isamap_messages(im), "'out' is NULL");
    assert_int_equal(isamap_run(im, NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_sim(im, NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_sweep(im, NULL, NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_bench(im, NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_show(im, NULL, "y.dot"), ISAMAP_USAGE);
    assert_int_equal(isamap_show(im, DATA "scale.isam", NULL), ISAMAP_INPUT);
    assert_int_equal(isamap_new_machine(im, NULL, NULL), ISAMAP_USAGE);
    assert_null(isamap_load(im, NULL));
    says(isamap_messages(im), "'program' is NULL");
    assert_true(isnan(isamap_number(im, NULL)));
    assert_true(isnan(isamap_number(im, "no.such.number")));
    assert_null(isamap_key(im, NULL, 0));
    assert_null(isamap_key(im, "macs_on", -1));
    isamap_close(im);
}

static void test_options(void **state) {
    (void)state;
    isamap *im = context();
    assert_int_equal(isamap_option(im, NULL, "1"), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "no-such-option", "1"), ISAMAP_USAGE);
    says(isamap_messages(im), "no-such-option");
    assert_int_equal(isamap_option(im, "threads", "0"), ISAMAP_USAGE);
    says(isamap_messages(im), "threads");
    assert_null(strstr(isamap_messages(im), "no-such-option"));
    assert_int_equal(isamap_option(im, "machine", NULL), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "define", "=4"), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "threads", "-1"), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "threads", "99999999999"), ISAMAP_USAGE);
    assert_int_equal(isamap_option(im, "define", "T=4"), ISAMAP_DONE);
    assert_string_equal(isamap_messages(im), "");
    assert_int_equal(isamap_check(im, DATA "scale.isam"), ISAMAP_DONE);
    assert_string_equal(isamap_messages(im), "");
    isamap_reset(im);
    assert_int_equal(isamap_option(im, "machine", "no-such-machine"), ISAMAP_DONE);
    assert_int_equal(isamap_run(im, DATA "scale.isam"), ISAMAP_INPUT);
    says(isamap_messages(im), "no-such-machine");
    isamap_close(im);
}

/* ---- every call fails, says why, and the next one works ---- */

enum { MOST_OPTIONS = 3 };

typedef int (*failing)(isamap *);

static int check_nothing(isamap *im) {
    return isamap_check(im, DATA "no-such-file.isam");
}

static int check_wrong(isamap *im) {
    return isamap_check(im, DATA "wrong.isam");
}

static int check_folder(isamap *im) {
    return isamap_check(im, DATA);
}

static int map_scale(isamap *im) {
    return isamap_map(im, DATA "scale.isam");
}

static int map_model(isamap *im) {
    return isamap_map(im, DATA "wrong.isam.onnx");
}

static int compile_nowhere(isamap *im) {
    return isamap_compile(im, DATA "scale.isam", "no/such/folder/x.so");
}

static int compile_unknown(isamap *im) {
    return isamap_compile(im, DATA "scale.isam", "x.unknown");
}

static int run_scale(isamap *im) {
    return isamap_run(im, DATA "scale.isam");
}

static int sim_scale(isamap *im) {
    return isamap_sim(im, DATA "scale.isam");
}

static int sweep_scale(isamap *im) {
    return isamap_sweep(im, DATA "scale.isam", NULL);
}

static int bench_scale(isamap *im) {
    return isamap_bench(im, DATA "scale.isam");
}

static int bench_suite(isamap *im) {
    return isamap_bench(im, "bench/no-such-suite.csv");
}

static int show_unknown(isamap *im) {
    return isamap_show(im, DATA "scale.isam", "x.unknown");
}

static int new_machine_nowhere(isamap *im) {
    return isamap_new_machine(im, "mine", "no/such/folder/mine.xml");
}

static int new_machine_name(isamap *im) {
    return isamap_new_machine(im, "a/b\"c", "mine.xml");
}

static int calibrate(isamap *im) {
    return isamap_calibrate(im, "x.params");
}

static const struct {
    failing call;
    const char *option[MOST_OPTIONS][2];
    int status;
    const char *says;
} failures[] = {
    {check_nothing, {{0}}, ISAMAP_INPUT, "no-such-file.isam"},
    {check_wrong, {{0}}, ISAMAP_INPUT, "wrong.isam:5:"},
    {check_folder, {{0}}, ISAMAP_INPUT, "folder"},
    {map_scale, {{"kernel", "scalf"}}, ISAMAP_INPUT, "'scale'"},
    {map_scale, {{"define", "T=65"}}, ISAMAP_INPUT, "T"},
    {map_scale, {{"define", "U=1"}}, ISAMAP_INPUT, "U"},
    {map_scale, {{"machine", "edge16"}}, ISAMAP_NO_MAPPING, ""},
    {map_model, {{0}}, ISAMAP_INPUT, "wrong.isam.onnx"},
    {compile_nowhere, {{0}}, ISAMAP_INPUT, "no/such/folder"},
    {compile_unknown, {{0}}, ISAMAP_INPUT, "unknown"},
    {run_scale, {{"machine", "edge16"}}, ISAMAP_INPUT, "device"},
    {run_scale, {{"size", "T=65"}}, ISAMAP_INPUT, "'T' is 65"},
    {run_scale, {{"size", "T=4"}, {"input", "X=no-such.npy"}}, ISAMAP_INPUT, "no-such.npy"},
    {run_scale, {{"size", "T=4"}, {"input", "Z=no-such.npy"}}, ISAMAP_INPUT, "'X'"},
    {run_scale, {{"size", "T=4"}, {"approach", "luck"}}, ISAMAP_INPUT, "luck"},
    {run_scale, {{"size", "T=4"}, {"rewrite", "magic"}}, ISAMAP_INPUT, "magic"},
    {run_scale, {{"size", "T=4"}, {"allow", "all"}}, ISAMAP_INPUT, "all"},
    {run_scale, {{"size", "T=4"}, {"decisions", "none.csv"}}, ISAMAP_INPUT, "none.csv"},
    {run_scale, {{"size", "T=4"}, {"output-dir", "no/such"}}, ISAMAP_INPUT, "no/such"},
    {run_scale, {{"size", "T=4"}, {"param", "NONE=1"}}, ISAMAP_INPUT, "NONE"},
    {sim_scale, {{"machine", "edge61"}}, ISAMAP_INPUT, "'edge16'"},
    {sim_scale, {{"machine", "edge16"}, {"strict", NULL}}, ISAMAP_NO_MAPPING, "statement"},
    {sweep_scale, {{"machine", "edge16"}, {"set", "NONE=1..2"}}, ISAMAP_INPUT, "NONE"},
    {bench_scale, {{"machine", "none"}}, ISAMAP_INPUT, "none"},
    {bench_suite, {{0}}, ISAMAP_INPUT, "no-such-suite.csv"},
    {show_unknown, {{0}}, ISAMAP_INPUT, "unknown"},
    {new_machine_nowhere, {{0}}, ISAMAP_INPUT, "no/such/folder"},
    {new_machine_name, {{0}}, ISAMAP_INPUT, "name"},
    {calibrate, {{"machine", "none"}}, ISAMAP_INPUT, "none"},
};

/* In one context after another, as text and as JSON, which has the status and what was said. */
static void test_failures(void **state) {
    char status[32];
    (void)state;
    for (int json = 0; json < 2; json++) {
        isamap *im = context();
        for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
            isamap_reset(im);
            if (json) assert_int_equal(isamap_option(im, "json", NULL), ISAMAP_DONE);
            for (int o = 0; o < MOST_OPTIONS && failures[k].option[o][0]; o++)
                assert_int_equal(
                    isamap_option(im, failures[k].option[o][0], failures[k].option[o][1]),
                    ISAMAP_DONE);
            int got = failures[k].call(im);
            if (got != failures[k].status)
                print_error("failure %d: status %d: %s\n", (int)k, got, isamap_messages(im));
            assert_int_equal(got, failures[k].status);
            says(isamap_messages(im), failures[k].says);
            assert_string_equal(isamap_doing(im), "");
            snprintf(status, sizeof status, "\"status\": %d", failures[k].status);
            if (json) says(isamap_result(im), status);
            isamap_reset(im);
            assert_int_equal(isamap_check(im, DATA "scale.isam"), ISAMAP_DONE);
            assert_string_equal(isamap_messages(im), "");
        }
        isamap_close(im);
    }
}

static void test_load(void **state) {
    (void)state;
    isamap *im = context();
    assert_null(isamap_load(im, DATA "no-such-file.isam"));
    says(isamap_messages(im), "no-such-file.isam");
    assert_null(isamap_load(im, DATA "wrong.isam"));
    says(isamap_messages(im), "wrong.isam:5:");
    assert_null(strstr(isamap_messages(im), "no-such-file.isam"));
    isamap_code *c = isamap_load(im, DATA "scale.isam");
    assert_non_null(c);
    assert_string_equal(isamap_messages(im), "");
    assert_string_equal(isamap_code_messages(c), "");
    isamap_close(im);
    isamap_code_free(c);
}

static void check_values(const struct arrays *a, int rows) {
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(a->y[i] == (i < rows * COLUMNS ? 2 * a->x[i] : 0));
}

static void test_code(void **state) {
    (void)state;
    isamap *im = context();
    struct arrays *a = arrays_new();
    isamap_code *c = isamap_load(im, DATA "scale.isam");
    assert_non_null(c);
    size_t bytes = 0;
    assert_int_equal(isamap_code_arguments(c), ARGUMENTS);
    assert_string_equal(isamap_code_argument(c, 2, &bytes, NULL), "Y");
    assert_int_equal(bytes, sizeof a->y);
    assert_null(isamap_code_argument(c, ARGUMENTS, &bytes, NULL));
    assert_null(isamap_code_argument(c, -1, NULL, NULL));

    assert_int_equal(isamap_code_run(c, a->args, 1), ISAMAP_USAGE);
    says(isamap_code_messages(c), "isamap_code_prepare");
    assert_int_equal(isamap_code_prepare(c, NULL), ISAMAP_USAGE);
    says(isamap_code_messages(c), "'args' is NULL");
    for (int i = 0; i < ARGUMENTS; i++) {
        void *args[ARGUMENTS];
        memcpy(args, a->args, sizeof args);
        args[i] = NULL;
        assert_int_equal(isamap_code_prepare(c, args), ISAMAP_USAGE);
        says(isamap_code_messages(c), isamap_code_argument(c, i, NULL, NULL));
    }
    assert_int_equal(isamap_code_run(c, a->args, 1), ISAMAP_USAGE);
    assert_int_equal(isamap_code_prepare(c, a->args), ISAMAP_DONE);
    assert_string_equal(isamap_code_messages(c), "");

    assert_int_equal(isamap_code_size(c, "T", 65), ISAMAP_INPUT);
    says(isamap_code_messages(c), "'T' is 65, expected 1 to 64");
    assert_int_equal(isamap_code_size(c, "T", 0), ISAMAP_INPUT);
    assert_int_equal(isamap_code_size(c, "T", INT64_MIN), ISAMAP_INPUT);
    assert_int_equal(isamap_code_size(c, "T", INT64_MAX), ISAMAP_INPUT);
    assert_int_equal(isamap_code_size(c, "U", 3), ISAMAP_USAGE);
    assert_int_equal(isamap_code_size(c, NULL, 3), ISAMAP_USAGE);
    assert_int_equal(isamap_code_size(c, "T", 5), ISAMAP_DONE);

    static const int wrong[] = {0, -1, 1025, 0x7fffffff, -0x7fffffff};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(isamap_code_run(c, a->args, wrong[i]), ISAMAP_USAGE);
        says(isamap_code_messages(c), "threads");
    }
    assert_int_equal(isamap_code_run(c, NULL, 1), ISAMAP_USAGE);
    assert_int_equal(isamap_code_run(c, a->args, 1), ISAMAP_DONE);
    check_values(a, 5);
    assert_int_equal(isamap_code_size(c, "T", 1000), ISAMAP_INPUT);
    assert_int_equal(isamap_code_run(c, a->args, 2), ISAMAP_DONE);
    check_values(a, 5);
    isamap_code_free(c);
    isamap_close(im);
    free(a);
}

/* Several contexts at once: each with its own program, options and errors. */
static void *thread_main(void *user) {
    int number = *(int *)user;
    char size[16];
    isamap *im = isamap_open();
    struct arrays *a = arrays_new();
    snprintf(size, sizeof size, "T=%d", 8 * number);
    bool good = im && isamap_option(im, "define", size) == ISAMAP_DONE;
    for (int round = 0; good && round < 3; round++) {
        good = isamap_load(im, DATA "wrong.isam") == NULL &&
               strstr(isamap_messages(im), "wrong.isam:") != NULL;
        isamap_code *c = good ? isamap_load(im, DATA "scale.isam") : NULL;
        good = c && isamap_code_prepare(c, a->args) == ISAMAP_DONE &&
               isamap_code_run(c, a->args, 1) == ISAMAP_DONE;
        for (int i = 0; good && i < ROWS * COLUMNS; i++)
            good = a->y[i] == (i < 8 * number * COLUMNS ? 2 * a->x[i] : 0);
        isamap_code_free(c);
    }
    free(a);
    isamap_close(im);
    *(int *)user = good;
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t thread[4];
    int number[4] = {1, 2, 3, 4};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &number[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++) assert_int_equal(number[i], 1);
}

static size_t address_space(void) { /* bytes */
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%zu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Arrays beyond the memory end the call, again and again without a loss, and the next call works.
 */
static void test_memory(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    static const char *const size[] = {"M=20000", "N=20000", "K=8"};
    struct rlimit before, now;
    isamap *im = context();
    assert_int_equal(isamap_option(im, "no-check", NULL), ISAMAP_DONE);
    assert_int_equal(isamap_option(im, "define", "T=4"), ISAMAP_DONE);
    assert_int_equal(isamap_run(im, DATA "scale.isam"), ISAMAP_DONE);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = address_space() + (512u << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    isamap_reset(im);
    for (int i = 0; i < 3; i++) isamap_option(im, "define", size[i]);
    isamap_option(im, "no-check", NULL);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(isamap_run(im, "examples/f32/gmm.isam"), ISAMAP_RESOURCES);
        says(isamap_messages(im), "not enough memory for 1600000004 bytes");
    }
    isamap_option(im, "json", NULL);
    assert_int_equal(isamap_run(im, "examples/f32/gmm.isam"), ISAMAP_RESOURCES);
    assert_string_equal(isamap_result(im),
                        "{\n  \"error\": \"not enough memory for 1600000004 bytes, expected a "
                        "smaller program or more memory\",\n  \"status\": 6\n}\n");
    isamap_reset(im);
    isamap_option(im, "define", "T=4");
    assert_int_equal(isamap_run(im, DATA "scale.isam"), ISAMAP_DONE);
    assert_string_equal(isamap_messages(im), "");
    setrlimit(RLIMIT_AS, &before);
    isamap_close(im);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_null_texts),
        cmocka_unit_test(test_options), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_load),    cmocka_unit_test(test_code),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
