/* Which points each approach tries, in which order, and what it takes: in spaces of one to four
 * variables with uneven values, smooth, rough and with parts that are not legal. Kept in
 * tests/data/golden/approaches_points.txt. */
#include "approaches/approaches.h"
#include "tests/golden.h"

#include <math.h>

enum { MOST_VARS = 4, MOST_VALUES = 16 };

struct land {
    struct text *seen;
    int nvars, rough;
    uint32_t tried; /* a hash of all points */
    int points;
    const int64_t *const *value;
};

/* Ridges across a bowl; what is too large together is not legal. */
static double height(void *user, const int *at) {
    struct land *l = user;
    double sum = 0, cost = 100;
    for (int v = 0; v < l->nvars; v++) {
        double x = log2((double)l->value[v][at[v]]), far = x - 1.5 - v;
        char word[32];
        cost += far * far + (l->rough ? 3 * sin(7 * x + v * (double)at[0]) : 0);
        sum += x;
        snprintf(word, sizeof word, "%d ", at[v]);
        l->tried = golden_hash(l->tried, word);
    }
    l->points++;
    return sum > 3.5 * l->nvars ? INFINITY : cost;
}

static void try_land(const struct approach *a, uint64_t seed, int nvars, int rough,
                     struct text *seen) {
    static const char *const var[] = {"x", "y", "z", "w"};
    static const int64_t fine[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128},
                         coarse[] = {1, 2, 4, 16, 64}, odd[] = {3, 5, 7, 21, 105}, one[] = {9};
    static const int64_t *const value[] = {fine, coarse, odd, one};
    static const int nvalues[] = {16, 5, 5, 1}, start[MOST_VARS] = {0};
    struct land l = {seen, nvars, rough, GOLDEN_HASH, 0, value};
    const struct space s = {QUESTION_TILE, "land", nvars, var, nvalues, value, height, &l, start};
    int at[MOST_VARS];
    struct decider *d = decider_open(a, seed);
    decide_point(d, &s, at);
    decider_close(d);
    text_printf(seen, "%s %d, %d variables%s: %d points %08x, taken", a->name, (int)seed, nvars,
                rough ? ", rough" : "", l.points, l.tried);
    for (int v = 0; v < nvars; v++) text_printf(seen, " %lld", (long long)value[v][at[v]]);
    text_printf(seen, "\n");
}

static void points(void **state) {
    struct text seen = {0};
    (void)state;
    for (int a = 0; approaches[a]; a++)
        for (int nvars = 1; nvars <= MOST_VARS; nvars++)
            for (int rough = 0; rough < 2; rough++)
                for (uint64_t seed = 0; seed < (approaches[a]->by_cost ? 1 : 3); seed++)
                    try_land(approaches[a], seed, nvars, rough, &seen);
    golden_check("approaches_points", &seen);
}

/* A wide flat space: the search ends at its limit. */
static double downhill(void *user, const int *at) {
    double cost = 1e6;
    ++*(int *)user;
    for (int v = 0; v < 64; v++) cost -= at[v];
    return cost;
}

static void limit(void **state) {
    static const char *var[64];
    static const int64_t number[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    static const int64_t *value[64];
    static int nvalues[64], start[64];
    int priced = 0, at[64], sum = 0;
    (void)state;
    for (int v = 0; v < 64; v++) {
        var[v] = "v";
        value[v] = number;
        nvalues[v] = MOST_VALUES;
    }
    const struct space s = {QUESTION_TILE, "wide",   64,      var,  nvalues,
                            value,         downhill, &priced, start};
    struct decider *d = decider_open(&approach_heuristic, 0);
    decide_point(d, &s, at);
    decider_close(d);
    for (int v = 0; v < 64; v++) sum += at[v];
    assert_int_equal(priced, 4001); /* the start and the 4,000 that are allowed */
    assert_int_equal(sum, 780);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(points), cmocka_unit_test(limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
