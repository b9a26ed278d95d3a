/* A whole kernel, scheduled by hand, on a device without a fallback: values, work, traffic and the
 * trace. */
#include "tests/sim_help.h"

#include <ctype.h>
#include <math.h>

#define SCHEDULE SOURCE_DIR "/tests/data/schedules/edge/edge_17x19x23.sched"

struct fixture {
    struct arena arena;
    struct diags diags;
    struct machine *machine;
    struct schedule *schedule;
};

static void open_fixture(struct fixture *f) {
    arena_init(&f->arena);
    diags_init(&f->diags);
    const char *text = help_read(&f->arena, SCHEDULE);
    f->machine = help_machine(text);
    f->schedule = help_parse(f->machine, SCHEDULE, text, &f->diags);
    diags_print(&f->diags, stderr);
    assert_non_null(f->schedule);
}

static void close_fixture(struct fixture *f) {
    schedule_free(f->schedule);
    machine_free(f->machine);
    diags_free(&f->diags);
    arena_free(&f->arena);
}

static void run(struct fixture *f, const struct sim_options *options, struct sim_result *r) {
    bool ran = sim_run(f->schedule, NULL, options, r, &f->diags);
    diags_print(&f->diags, stderr);
    assert_true(ran);
}

static void values(void **state) {
    (void)state;
    struct fixture f;
    open_fixture(&f);
    sim_check_values(f.schedule, "edge_17x19x23");
    close_fixture(&f);
}

static void figures(void **state) {
    (void)state;
    struct fixture f;
    struct sim_result r;
    struct sim_options options = {.no_values = true};
    open_fixture(&f);
    run(&f, &options, &r);
    const struct machine *m = f.machine;
    /* padding is not work; moves: the weights, rows once for each 16 columns, results padded to 32
     * columns */
    assert_int_equal(r.macs, 17 * 19 * 23);
    assert_int_equal(r.macs_on[machine_instr(m, "mm16")], 17 * 19 * 23);
    assert_int_equal(r.home_read_bytes, 1024 + 2 * 17 * 32);
    assert_int_equal(r.home_write_bytes, 17 * 32 * 4);
    assert_int_equal(r.bus[0].bytes, 1024 + 2 * 17 * 32 + 17 * 32 * 4);
    /* 17 rows for each of 2 x 2 blocks, overhead 4 for each of 8; 10 syncs of one cycle */
    assert_int_equal(r.queue[machine_queue(m, "exec")].busy, 4 * 17 + 8 * 4 + 10);
    assert_int_equal(r.sync[machine_sync(m, "l2e")].pushes, 8);
    assert_int_equal(r.sync[machine_sync(m, "e2l")].peak, 2);
    assert_int_equal(r.peak_bytes[machine_memory(m, "acc")], 2048);
    assert_true(r.cycles >= r.bus[0].busy);
    assert_true(fabs(r.utilisation - 17 * 19 * 23 / (256 * r.cycles)) < 1e-9);
    assert_true(r.energy > 8 * 0.3 * 256);
    sim_result_free(&r);
    close_fixture(&f);
}

/* ---- a JSON scanner: says where the value that begins at `at` ends, NULL where it is none ---- */
static const char *json_value(const char *at, int depth);

static const char *json_space(const char *at) {
    while (at && isspace((unsigned char)*at)) at++;
    return at;
}

static const char *json_string(const char *at) {
    if (*at != '"') return NULL;
    for (at++; *at && *at != '"'; at++) {
        if ((unsigned char)*at < ' ') return NULL;
        if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at)) return NULL;
    }
    return *at ? at + 1 : NULL;
}

static const char *json_number(const char *at) {
    char *end;
    if (*at != '-' && !isdigit((unsigned char)*at)) return NULL;
    strtod(at, &end);
    return end > at ? end : NULL;
}

static const char *json_list(const char *at, char close, int depth) {
    at = json_space(at + 1);
    if (*at == close) return at + 1;
    for (;;) {
        if (close == '}') {
            at = json_string(at);
            at = json_space(at);
            if (!at || *at != ':') return NULL;
            at = json_space(at + 1);
        }
        at = json_space(json_value(at, depth + 1));
        if (!at || (*at != ',' && *at != close)) return NULL;
        if (*at == close) return at + 1;
        at = json_space(at + 1);
    }
}

static const char *json_value(const char *at, int depth) {
    if (depth > 20) return NULL;
    if (*at == '{') return json_list(at, '}', depth);
    if (*at == '[') return json_list(at, ']', depth);
    if (*at == '"') return json_string(at);
    for (int k = 0; k < 3; k++) {
        static const char *const word[] = {"true", "false", "null"};
        if (strncmp(at, word[k], strlen(word[k])) == 0) return at + strlen(word[k]);
    }
    return json_number(at);
}

static void the_scanner_refuses(void **state) {
    (void)state;
    static const char *const bad[] = {"{",          "[1,]",  "{\"a\" 1}", "[1 2]",     "\"a",
                                      "{\"a\":1,}", "{a:1}", "nul",       "[\"\\q\"]", "[nan]"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) assert_null(json_value(bad[k], 0));
    assert_non_null(json_value("{\"a\": [1.5, -2e3, \"x\\n\", {}, [], null]}", 0));
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) n++;
    return n;
}

static void trace(void **state) {
    (void)state;
    struct fixture f;
    struct sim_result r;
    open_fixture(&f);
    char *path = arena_printf(&f.arena, "%s/sim_edge_trace.json", BUILD_DIR);
    struct sim_options options = {.no_values = true, .trace = path};
    run(&f, &options, &r);
    const char *text = help_read(&f.arena, path), *end = json_space(json_value(text, 0));
    assert_non_null(end);
    assert_int_equal(*end, '\0');
    assert_int_equal(count(text, "\"ph\":\"X\""), r.instructions);
    assert_int_equal(count(text, "\"name\":\"mm16\""), 8);
    assert_int_equal(count(text, "thread_name"), f.machine->nqueues);
    double waited = 0, wait = 0; /* for the bus, once they have started */
    for (const char *at = strstr(text, "\"dur\":"); at; at = strstr(at + 1, "\"dur\":"))
        waited += strtod(at + 6, NULL);
    for (int q = 0; q < f.machine->nqueues; q++) {
        waited -= r.queue[q].busy;
        wait += r.queue[q].wait;
    }
    assert_true(waited > -1e-3 && waited < wait + 1e-3);
    sim_result_free(&r);
    remove(path);
    options.trace = "/nonexistent/trace.json";
    assert_false(sim_run(f.schedule, NULL, &options, &r, &f.diags));
    assert_int_equal(f.diags.errors, 1);
    sim_result_free(&r);
    close_fixture(&f);
}

static void bounded(void **state) {
    (void)state;
    struct fixture f;
    struct sim_result r;
    struct sim_options options = {.no_values = true, .steps = 10};
    open_fixture(&f);
    assert_false(sim_run(f.schedule, NULL, &options, &r, &f.diags));
    assert_string_equal(f.diags.at[0].text, "the step bound is reached");
    sim_result_free(&r);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(figures),
                                       cmocka_unit_test(the_scanner_refuses),
                                       cmocka_unit_test(trace), cmocka_unit_test(bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
