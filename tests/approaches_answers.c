/* The approaches: legal answers only, the same for the same seed, and the heuristic finds good
 * points. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "approaches/approaches.h"

enum { VALUES = 12 };

/* Points with x + y > 14 are not legal; the best one is (9, 5). */
static double bowl(void *user, const int *at) {
    ++*(long *)user;
    if (at[0] + at[1] > 14) return INFINITY;
    return 10 + (at[0] - 9) * (at[0] - 9) + 2 * (at[1] - 5) * (at[1] - 5);
}

struct made_space {
    struct space s;
    int64_t value[VALUES];
    long evaluations;
};

static void make(struct made_space *m) {
    static const char *const var[] = {"x", "y"};
    static const int nvalues[] = {VALUES, VALUES}, start[] = {0, 0};
    static const int64_t *value[2];
    for (int i = 0; i < VALUES; i++) m->value[i] = i + 1;
    value[0] = value[1] = m->value;
    m->evaluations = 0;
    m->s =
        (struct space){QUESTION_TILE, "bowl", 2, var, nvalues, value, bowl, &m->evaluations, start};
}

static void test_listed(void **state) {
    int n = 0;
    (void)state;
    while (approaches[n]) n++;
    assert_true(n >= 2);
    assert_string_equal(approaches[0]->name, "heuristic");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(approaches[i]->name, approaches[k]->name);
}

static void test_legal_and_repeatable(void **state) {
    const struct candidate c[] = {{"a", 3, NULL}, {"b", 1, NULL}, {"c", 2, NULL}};
    const struct question q = {QUESTION_COVER, "s", 3, 0, c, NULL};
    struct made_space m;
    (void)state;
    make(&m);
    for (int i = 0; approaches[i]; i++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            int answer[2], at[2][2];
            for (int k = 0; k < 2; k++) {
                struct decider *d = decider_open(approaches[i], seed);
                answer[k] = decide(d, &q);
                decide_point(d, &m.s, at[k]);
                decider_close(d);
            }
            assert_true(answer[0] == answer[1] && memcmp(at[0], at[1], sizeof at[0]) == 0);
            assert_true(answer[0] >= 0 && answer[0] < 3);
            assert_true(isfinite(bowl(&m.evaluations, at[0])));
        }
}

static void test_heuristic(void **state) {
    const struct candidate c[] = {{"a", 3, NULL}, {"b", 1, NULL}, {"c", 2, NULL}, {"d", 1, NULL}};
    const struct question q = {QUESTION_COVER, "s", 4, 0, c, NULL};
    struct made_space m;
    int at[2];
    (void)state;
    make(&m);
    struct decider *d = decider_open(&approach_heuristic, 0);
    assert_int_equal(decide(d, &q), 1);
    decide_point(d, &m.s, at);
    assert_true(at[0] == 9 && at[1] == 5);
    assert_true(m.evaluations <= 4001);
    decider_close(d);
}

/* A narrow valley where x + weight * y is `sum`: beside it costs rise with the distance from x = y,
 * so that growth meets it in the middle. Its bottom is where the variable `low` is least. */
struct valley {
    int sum, weight, low, nvalues[2];
};

static double valley(void *user, const int *at) {
    const struct valley *v = user;
    for (int k = 0; k < 2; k++) assert_in_range(at[k], 0, v->nvalues[k] - 1);
    int beside = abs(at[0] + v->weight * at[1] - v->sum);
    return beside ? 100 * beside + 90 * abs(at[0] - at[1]) : at[v->low];
}

static void check_valley(int sum, int weight, int low, int nx, int ny, int x, int y) {
    static const char *const var[] = {"x", "y"};
    static const int start[] = {0, 0};
    int64_t number[VALUES];
    const int64_t *value[] = {number, number};
    struct valley v = {sum, weight, low, {nx, ny}};
    const struct space s = {QUESTION_TILE, "valley", 2, var, v.nvalues, value, valley, &v, start};
    int at[2];
    for (int i = 0; i < VALUES; i++) number[i] = i + 1;
    struct decider *d = decider_open(&approach_heuristic, 0);
    decide_point(d, &s, at);
    decider_close(d);
    assert_int_equal(at[0], x);
    assert_int_equal(at[1], y);
}

/* Two variables move in opposite directions, as far as the first and the last of their values. */
static void test_valleys(void **state) {
    (void)state;
    check_valley(6, 1, 1, 8, 8, 6, 0);
    check_valley(6, 1, 0, 8, 8, 0, 6);
    check_valley(7, 1, 1, 7, 8, 6, 1);
    check_valley(7, 1, 0, 8, 7, 1, 6);
    check_valley(6, 1, 1, 7, 7, 6, 0);
    check_valley(6, 1, 0, 7, 7, 0, 6);
    check_valley(9, 2, 1, 12, 12, 9, 0);
}

/* Growth jumps over what lies between: to twice the value, and to the last. */
static double pits(void *user, const int *at) {
    const int *pit = user;
    return at[0] == pit[1] ? 1 : at[0] == pit[0] ? 50 : 60;
}

static void check_jump(int from, int to) {
    static const char *const var[] = {"x"};
    static const int nvalues[] = {VALUES};
    const int start[] = {from};
    int pit[] = {from, to}, at[1];
    int64_t number[VALUES];
    const int64_t *value[] = {number};
    const struct space s = {QUESTION_TILE, "pits", 1, var, nvalues, value, pits, pit, start};
    for (int i = 0; i < VALUES; i++) number[i] = i + 1;
    struct decider *d = decider_open(&approach_heuristic, 0);
    decide_point(d, &s, at);
    decider_close(d);
    assert_int_equal(at[0], to);
}

static void test_jumps(void **state) {
    (void)state;
    check_jump(0, VALUES - 1);
    check_jump(3, 7);
    check_jump(4, 9);
    check_jump(4, VALUES - 1);
}

/* What stands where it cannot move is priced once. */
static void test_one_point(void **state) {
    static const int nvalues[] = {1, 1}, start[] = {0, 0};
    struct made_space m;
    int at[2];
    (void)state;
    make(&m);
    m.s.nvalues = nvalues;
    m.s.start = start;
    struct decider *d = decider_open(&approach_heuristic, 0);
    decide_point(d, &m.s, at);
    decider_close(d);
    assert_true(at[0] == 0 && at[1] == 0);
    assert_int_equal(m.evaluations, 1);
}

/* Of a cover the best that is no fallback; of anything else the best. */
static void test_instructions(void **state) {
    const struct candidate c[] = {{"fallback", 1, NULL}, {"a", 4, NULL}, {"b", 3, NULL}};
    const struct question cover = {QUESTION_COVER, "s", 3, 0, c, NULL},
                          alone = {QUESTION_COVER, "t", 1, 0, c, NULL},
                          other = {QUESTION_FUSION, "s", 3, 0, c, NULL};
    (void)state;
    struct decider *d = decider_open(&approach_instructions, 0);
    assert_int_equal(decide(d, &cover), 2);
    assert_int_equal(decide(d, &alone), 0);
    assert_int_equal(decide(d, &other), 0);
    decider_close(d);
}

static void test_random_differs(void **state) {
    const struct candidate c[] = {{"a", 3, NULL}, {"b", 1, NULL}, {"c", 2, NULL}};
    const struct question q = {QUESTION_COVER, "s", 3, 0, c, NULL};
    int seen[3] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct decider *d = decider_open(&approach_random, seed);
        seen[decide(d, &q)]++;
        decider_close(d);
    }
    assert_true(seen[0] > 5 && seen[1] > 5 && seen[2] > 5);
}

/* Points of a space too: every value of each variable, with every value of the others. */
static void test_random_points(void **state) {
    struct made_space m;
    int seen[VALUES][VALUES] = {0}, points = 0;
    (void)state;
    make(&m);
    for (uint64_t seed = 0; seed < 400; seed++) {
        int at[2];
        struct decider *d = decider_open(&approach_random, seed);
        decide_point(d, &m.s, at);
        decider_close(d);
        points += seen[at[0]][at[1]]++ == 0;
    }
    assert_true(points > 80); /* of 108 that are legal */
    assert_true(seen[0][0] < 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listed),       cmocka_unit_test(test_legal_and_repeatable),
        cmocka_unit_test(test_heuristic),    cmocka_unit_test(test_valleys),
        cmocka_unit_test(test_jumps),        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_one_point),    cmocka_unit_test(test_random_differs),
        cmocka_unit_test(test_random_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
