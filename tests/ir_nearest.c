/* Names near a name that is not there. */
#include "ir_support.h"
#include "ir/nearest.h"

static void distances(void **state) {
    static const struct {
        const char *a, *b;
        int distance;
    } cases[] = {{"edge16", "edge16", 0}, {"edge16", "EDGE16", 0}, {"edge61", "edge16", 1},
                 {"check", "chekc", 1},   {"cpu", "cpu-avx2", 1},  {"", "vdla", 4},
                 {"kitten", "sitting", 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(name_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(name_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
}

static void lists(void **state) {
    static const char *const names[] = {"ones", "twos", "once", "a", "b", "c", "d", "e", "f", "g"};
    struct arena a;
    (void)state;
    arena_init(&a);
    assert_string_equal(names_near(&a, "onse", names, 0), "none");
    assert_string_equal(names_near(&a, "onse", names, 1), "'ones'");
    assert_string_equal(names_near(&a, "tows", names, 3), "'twos', 'ones' or 'once'");
    assert_non_null(strstr(names_near(&a, "once", names, 10), "'once', 'ones'"));
    assert_non_null(strstr(names_near(&a, "once", names, 10), "and 2 more"));
    assert_string_equal(name_meant("oncce", names, 10), "once");
    assert_null(name_meant("winograd", names, 10));
    arena_free(&a);
}

/* Files of the folder with the suffix, where one is spelt alike. */
static void files(void **state) {
    struct arena a;
    (void)state;
    arena_init(&a);
    assert_non_null(strstr(files_near(&a, "machines/edge61.xml"), "the folder has 'edge16.xml'"));
    assert_string_equal(files_near(&a, "machines/something-else.xml"), "");
    assert_string_equal(files_near(&a, "no/such/folder.xml"), "");
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(lists),
                                       cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
