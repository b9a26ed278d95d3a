/* Damaged schedules: every truncation, and seeded bit flips. Whatever is still accepted goes
 * through the verifier with a bound on its steps; nothing may crash or hang (run under the
 * sanitizers too). */
#include "tests/scheduler_help.h"

enum { FLIPS = 10000, STEPS = 3000 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Parsed: 1; verified as well: 2. */
static int survive(const struct machine *m, const char *text, size_t length) {
    struct diags d;
    diags_init(&d);
    struct source source = {
        .file = "damaged", .text = text, .length = length, .line0 = 1, .col0 = 1};
    struct schedule *s = schedule_parse(m, &source, &d);
    int result = s != NULL;
    if (s) {
        struct text out = {0};
        schedule_print(s, &out);
        text_free(&out);
        for (int trips = 0; trips <= 2; trips += 2) {
            struct verify_options options = {.trips = trips, .steps = STEPS};
            if (schedule_verify(s, &options, &d)) result = 2;
        }
    } else {
        assert_true(d.errors > 0);
    }
    schedule_free(s);
    diags_free(&d);
    return result;
}

static void damage(const char *path, uint64_t seed) {
    struct arena arena;
    arena_init(&arena);
    char *text = help_read(&arena, path);
    struct machine *m = help_machine(text);
    size_t n = strlen(text), end = n;
    while (end > 0 && text[end - 1] != '}') end--;
    for (size_t k = 0; k < end; k++) {
        char *part = arena_strndup(&arena, text, k);
        assert_int_equal(survive(m, part, k), 0);
    }
    int parsed = 0;
    for (int k = 0; k < FLIPS / 2; k++) {
        char *copy = arena_strndup(&arena, text, n);
        int flips = 1 + (int)(next_random(&seed) % 2);
        for (int f = 0; f < flips; f++)
            copy[next_random(&seed) % n] ^= (char)(1 << next_random(&seed) % 8);
        parsed += survive(m, copy, n) > 0;
    }
    assert_in_range(parsed, 1, FLIPS / 2 - 1);
    machine_free(m);
    arena_free(&arena);
}

static void test_gemm(void **state) {
    (void)state;
    damage("tests/data/schedules/gemm.sched", 1);
}

static void test_board(void **state) {
    (void)state;
    damage("tests/data/schedules/board.sched", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gemm), cmocka_unit_test(test_board)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
