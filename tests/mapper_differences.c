/* Differences of points against all of them: what is said must be so, and of small boxes nothing is
 * left open. */
#include "mapper_help.h"
#include "mapper/mapper_int.h"

enum { CASES = 20000, AXES = 4, FORMS = 3 };

struct box {
    int64_t extent[AXES], same[FORMS][MAX_AXES + 1], form[MAX_AXES + 1];
    int nsame;
};

static int64_t value(const int64_t *row, const int64_t *d) {
    int64_t sum = 0;
    for (int k = 0; k < AXES; k++) sum += row[k] * d[k];
    return sum;
}

static bool agrees(const struct box *b) {
    int64_t d[AXES];
    for (int k = 0; k < AXES; k++) d[k] = 1 - b->extent[k];
    for (;;) {
        bool same = true;
        for (int r = 0; r < b->nsame; r++) same &= value(b->same[r], d) == 0;
        if (same && value(b->form, d) != 0) return false;
        int k = 0;
        while (k < AXES && ++d[k] == b->extent[k]) {
            d[k] = 1 - b->extent[k];
            k++;
        }
        if (k == AXES) return true;
    }
}

/* Strides of places in groups and windows beside small numbers. */
static int64_t coefficient(uint64_t *seed, const struct box *b, int k) {
    switch (help_below(seed, 5)) {
    case 0:
        return 1;
    case 1:
        return k > 0 ? b->extent[k - 1] : 2;
    case 2:
        return help_below(seed, 7) - 3;
    default:
        return 0;
    }
}

static void test_differences(void **state) {
    (void)state;
    static const int axis[AXES] = {0, 1, 2, 3};
    uint64_t seed = 7;
    int said[3] = {0};
    for (int i = 0; i < CASES; i++) {
        struct box b = {.nsame = help_below(&seed, FORMS + 1)};
        for (int k = 0; k < AXES; k++) b.extent[k] = 1 + help_below(&seed, 4);
        for (int k = 0; k < AXES; k++) {
            for (int r = 0; r < b.nsame; r++) b.same[r][k] = coefficient(&seed, &b, k);
            b.form[k] = coefficient(&seed, &b, k);
        }
        struct differences d = {.extent = b.extent,
                                .axis = axis,
                                .naxes = AXES,
                                .nsame = b.nsame,
                                .same = (const int64_t(*)[MAX_AXES + 1]) b.same};
        enum agreement a = differences_agree(&d, b.form);
        said[a]++;
        if (a != AGREE_OPEN) assert_int_equal(a == AGREE_YES, agrees(&b));
    }
    assert_true(said[AGREE_YES] > CASES / 10 && said[AGREE_NO] > CASES / 10);
    assert_int_equal(said[AGREE_OPEN], 0);
}

/* A group of 16 places over rows of a padded plane, read by a window: the two points lie a row
 * apart and meet through a place of the window. */
static void test_window(void **state) {
    (void)state;
    static const int axis[4] = {0, 1, 2, 3};
    static const int64_t extent[4] = {16, 28, 28, 3};
    static const int64_t same[2][MAX_AXES + 1] = {{56, 2, 0, 1}, {0, 0, 2, 0}};
    static const int64_t group[MAX_AXES + 1] = {1}, column[MAX_AXES + 1] = {0, 0, 1};
    struct differences d = {.extent = extent, .axis = axis, .naxes = 4, .nsame = 2, .same = same};
    assert_int_equal(differences_agree(&d, group), AGREE_NO);
    assert_int_equal(differences_agree(&d, column), AGREE_YES);
}

/* Numbers whose products do not fit are left open. */
static void test_large(void **state) {
    (void)state;
    static const int axis[2] = {0, 1};
    int64_t extent[2] = {3, INT64_MAX}, same[1][MAX_AXES + 1] = {{1, INT64_MAX / 2}};
    int64_t form[MAX_AXES + 1] = {1, 0};
    struct differences d = {.extent = extent,
                            .axis = axis,
                            .naxes = 2,
                            .nsame = 1,
                            .same = (const int64_t(*)[MAX_AXES + 1]) same};
    assert_int_equal(differences_agree(&d, form), AGREE_OPEN);
}

/* An answer as far as sums of products fit; beyond, none. */
static void test_limit(void **state) {
    (void)state;
    static const int axis[1] = {0};
    const int64_t most = 1 << 28;
    static const int64_t same[1][MAX_AXES + 1] = {{1}};
    for (int k = 0; k < 4; k++) {
        int64_t extent[1] = {k == 0 ? most : k == 1 ? most + 1 : 3};
        int64_t form[MAX_AXES + 1] = {k == 2 ? most - 1 : k == 3 ? -most : 2};
        struct differences d = {
            .extent = extent, .axis = axis, .naxes = 1, .nsame = 1, .same = same};
        assert_int_equal(differences_agree(&d, form), k % 2 ? AGREE_OPEN : AGREE_YES);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differences),
                                       cmocka_unit_test(test_window), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
