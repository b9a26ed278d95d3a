/* The decider: asks, records, replays; what does not fit a trace is an error with file:line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ir/choice.h"

static void *open_last(uint64_t seed) {
    double *cost = calloc(1, sizeof *cost);
    (void)seed;
    return cost;
}

static int choose_last(void *state, const struct question *q) {
    (void)state;
    return q->ncandidates - 1;
}

static void move_up(void *state, const struct space *s, int *at) {
    (void)state;
    for (int v = 0; v < s->nvars; v++) at[v] = s->nvalues[v] - 1;
}

static double seen_cost;

static void outcome(void *state, double cost) {
    (void)state;
    seen_cost = cost;
}

static const struct approach last = {.name = "last",
                                     .open = open_last,
                                     .close = free,
                                     .choose = choose_last,
                                     .move = move_up,
                                     .outcome = outcome};

static double cost_of(void *user, const int *at) {
    (void)user;
    return at[0] == 1 && at[1] == 0 ? 1e308 * 10 : 1;
}

static const int64_t sizes[] = {4, 8, 16};
static const int64_t *const values[] = {sizes, sizes};
static const char *const names[] = {"m", "n"};
static const int counts[] = {3, 2}, start[] = {0, 0};
static const struct space space = {QUESTION_TILE, "nest 0", 2,    names, counts,
                                   values,        cost_of,  NULL, start};
static const struct candidate ways[] = {{"left", 1, NULL}, {"right", 2, NULL}};
static const struct question fork_in_road = {QUESTION_PATH, "road", 2, 0, ways, NULL};

static char *save(struct decider *d, char *file) {
    struct diags diags;
    diags_init(&diags);
    close(mkstemp(file));
    assert_true(decider_save(d, file, &diags));
    diags_free(&diags);
    return file;
}

static void write_file(char *file, const char *text) {
    close(mkstemp(file));
    FILE *f = fopen(file, "w");
    fputs(text, f);
    fclose(f);
}

static void test_replay(void **state) {
    char file[] = "/tmp/isamap-trace-XXXXXX";
    struct diags diags;
    int at[2];
    (void)state;
    diags_init(&diags);
    struct decider *d = decider_open(&last, 0);
    assert_int_equal(decide(d, &fork_in_road), 1);
    decide_point(d, &space, at);
    assert_true(at[0] == 2 && at[1] == 1);
    decider_outcome(d, 42);
    assert_true(seen_cost == 42);
    save(d, file);
    decider_close(d);
    d = decider_replay(file, &diags);
    assert_non_null(d);
    assert_int_equal(decide(d, &fork_in_road), 1);
    at[0] = at[1] = 0;
    decide_point(d, &space, at);
    assert_true(at[0] == 2 && at[1] == 1);
    decider_outcome(d, 1); /* nobody to tell */
    assert_false(decider_failed(d, &diags));
    decider_close(d);
    unlink(file);
    diags_free(&diags);
}

/* What a trace that does not fit says; the answer is then the first candidate, or the start. */
static void expect_failure(const char *text, bool point, int line, const char *part) {
    char file[] = "/tmp/isamap-trace-XXXXXX";
    struct diags diags;
    int at[2] = {2, 1};
    diags_init(&diags);
    write_file(file, text);
    struct decider *d = decider_replay(file, &diags);
    assert_non_null(d);
    assert_int_equal(decide(d, &fork_in_road), 0);
    if (point) decide_point(d, &space, at);
    if (point) assert_true(at[0] == 0 && at[1] == 0);
    assert_true(decider_failed(d, &diags));
    assert_int_equal(diags.n, 1);
    assert_int_equal(diags.at[0].line, line);
    if (!strstr(diags.at[0].text, part)) print_error("'%s' without '%s'\n", diags.at[0].text, part);
    assert_non_null(strstr(diags.at[0].text, part));
    decider_close(d);
    unlink(file);
    diags_free(&diags);
}

static void test_misfits(void **state) {
    (void)state;
    expect_failure("# nothing\n", false, 1, "the trace ends");
    expect_failure("path \"road\" \"up\"\n", false, 1, "'up' is no candidate");
    expect_failure("# comment\ntile \"road\" \"left\"\n", false, 2, "expected path \"road\"");
    expect_failure("path \"road\" \"left\"\ntile \"nest 0\" \"m=5 n=4\"\n", true, 2,
                   "no legal point");
    expect_failure("path \"road\" \"left\"\ntile \"nest 0\" \"m=8 n=4\"\n", true, 2,
                   "no legal point");
    expect_failure("path \"road\" \"left\"\ntile \"nest 0\" \"m=8\"\n", true, 2, "no legal point");
    expect_failure("path \"road\" \"left\"\npath \"road\" \"left\"\n", false, 2, "nobody asked");
}

/* What the guide answers, in any order, and what is left to the approach; all of it is recorded. */
static void test_guide(void **state) {
    char file[] = "/tmp/isamap-trace-XXXXXX", saved[] = "/tmp/isamap-trace-XXXXXX";
    struct diags diags;
    int at[2];
    (void)state;
    diags_init(&diags);
    write_file(file, "tile \"nest 0\" \"m=8 n=8\"\npath \"road\" \"left\"\n");
    struct decider *d = decider_guide(file, &last, 0, &diags);
    assert_non_null(d);
    assert_int_equal(decide(d, &fork_in_road), 0);
    assert_int_equal(decide(d, &fork_in_road), 1); /* used up: the approach's */
    assert_true(decider_failed(d, &diags));        /* the tile was not asked for */
    assert_int_equal(diags.at[0].line, 1);
    decide_point(d, &space, at);
    assert_true(at[0] == 1 && at[1] == 1);
    assert_false(decider_failed(d, &diags));
    decider_outcome(d, 7);
    assert_true(seen_cost == 7);
    save(d, saved);
    decider_close(d);
    unlink(file);
    d = decider_replay(saved, &diags);
    assert_int_equal(decide(d, &fork_in_road), 0);
    assert_int_equal(decide(d, &fork_in_road), 1);
    decide_point(d, &space, at);
    assert_false(decider_failed(d, &diags));
    decider_close(d);
    unlink(saved);
    write_file(strcpy(file, "/tmp/isamap-trace-XXXXXX"), "path \"road\" \"up\"\n");
    d = decider_guide(file, &last, 0, &diags);
    decide(d, &fork_in_road);
    assert_true(decider_failed(d, &diags));
    decider_close(d);
    unlink(file);
    diags_free(&diags);
}

static void test_malformed(void **state) {
    static const char *const text[] = {"walk \"road\" \"left\"\n", "path road left\n",
                                       "path \"road\"\n", "path \"road\" \"left\" more\n"};
    (void)state;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        char file[] = "/tmp/isamap-trace-XXXXXX";
        struct diags diags;
        diags_init(&diags);
        write_file(file, text[i]);
        assert_null(decider_replay(file, &diags));
        assert_int_equal(diags.errors, 1);
        assert_int_equal(diags.at[0].line, 1);
        unlink(file);
        diags_free(&diags);
    }
    struct diags diags;
    diags_init(&diags);
    assert_null(decider_replay("/nonexistent/trace", &diags));
    assert_int_equal(diags.errors, 1);
    diags_free(&diags);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replay),
                                       cmocka_unit_test(test_misfits), cmocka_unit_test(test_guide),
                                       cmocka_unit_test(test_malformed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
