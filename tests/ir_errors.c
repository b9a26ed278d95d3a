/* Each tests/data/errors/ir/NAME.isam must be refused with the words of NAME.expected. A new case
 * needs no C: ISAMAP_UPDATE=1 writes the expectations, to be read before they are kept. */
#include "tests/ir_support.h"

#include <glob.h>

static char *messages_of(const char *path) {
    struct trial t;
    char *out = NULL;
    size_t n = 0;
    trial_open(&t);
    const char *text = file_read(&t.arena, path, 1 << 20, &n, &t.diags);
    assert_non_null(text);
    trial_parse(&t, strrchr(path, '/') + 1, text);
    bool ok = t.nkernels > 0 && trial_bind(&t, "", "");
    if (ok) fail_msg("%s is accepted", path);
    assert_true(t.diags.errors > 0);
    FILE *f = open_memstream(&out, &n);
    diags_print(&t.diags, f);
    fclose(f);
    trial_close(&t);
    return out;
}

static void check_case(const char *path) {
    char *got = messages_of(path);
    char *file = strdup(path);
    *strrchr(file, '.') = 0;
    char expected_path[4096];
    snprintf(expected_path, sizeof expected_path, "%s.expected", file);
    if (getenv("ISAMAP_UPDATE")) {
        FILE *f = fopen(expected_path, "w");
        assert_non_null(f);
        fputs(got, f);
        fclose(f);
    }
    struct arena a;
    struct diags d;
    size_t n;
    arena_init(&a);
    diags_init(&d);
    const char *want = file_read(&a, expected_path, 1 << 16, &n, &d);
    assert_non_null(want);
    assert_string_equal(got, want);
    diags_free(&d);
    arena_free(&a);
    free(file);
    free(got);
}

static void test_messages(void **state) {
    (void)state;
    glob_t files;
    assert_int_equal(glob(SOURCE_DIR "/tests/data/errors/ir/*.isam", 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= 60);
    for (size_t k = 0; k < files.gl_pathc; k++) check_case(files.gl_pathv[k]);
    globfree(&files);
}

/* Values from outside. */
static void test_given_values(void **state) {
    (void)state;
    const struct {
        const char *sizes, *message;
    } row[] = {
        {"M=3 K=8", "'M' is 3, outside its range 4..16 step 4"},
        {"M=6 K=8", "'M' is 6, outside its range 4..16 step 4"},
        {"M=20 K=8", "'M' is 20, outside its range 4..16 step 4"},
        {"M=8", "parameter 'K' has no value; give one, for instance -D K=16"},
        {"M=8 K=8 L=1", "kernel 'a' has no parameter 'L', which was given a value"},
        {"M=8 K=0", "axis 'i' has extent 0, expected 1 to 2^48"},
        {"M=8 K=300000000000000", "axis 'i' has extent 300000000000000, expected 1 to 2^48"},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct trial t;
        trial_open(&t);
        trial_parse(&t, "text", "kernel a(M=4..16 step 4, K) { axes i: K }");
        assert_false(trial_bind(&t, row[k].sizes, ""));
        assert_string_equal(t.diags.at[0].text, row[k].message);
        trial_close(&t);
    }
}

static void test_at_most_100_are_kept(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    for (int k = 0; k < 250; k++) diag_line(&d, "f", k + 1, 1, "error %d", k);
    diag_warn(&d, "f", 1, 1, "late");
    assert_int_equal(d.n, 100);
    assert_int_equal(d.errors, 250);
    diags_free(&d);
}

static void test_files(void **state) {
    (void)state;
    struct diags d;
    struct arena a;
    size_t n;
    diags_init(&d);
    arena_init(&a);
    assert_null(file_read(&a, SOURCE_DIR "/no/such/file", 100, &n, &d));
    assert_non_null(strstr(d.at[0].text, "cannot open"));
    assert_null(file_read(&a, SOURCE_DIR "/examples/f32/rnn.isam", 10, &n, &d));
    assert_non_null(strstr(d.at[1].text, "is longer than 10 bytes"));
    assert_null(file_read(&a, SOURCE_DIR, 10, &n, &d));
    assert_int_equal(d.errors, 3);
    arena_free(&a);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_given_values),
        cmocka_unit_test(test_at_most_100_are_kept),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
