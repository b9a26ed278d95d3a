/* What is decided about programs that are kept because something once went wrong with them, and
 * about those of tests/data, as a line each (tests/figures.h): tests/data/golden/all_kept.txt. The
 * list of them and of their machines (MACHINE[+HOST] PROGRAM) is tests/data/golden/all_kept.list:
 * programs that are new beside them change nothing. ISAMAP_UPDATE=1 writes the lines anew. */
#include "tests/figures.h"
#include "tests/sample.h"

static void kept_line(struct arena *a, char *at, struct text *seen) {
    isamap *im = isamap_open();
    const char *name = arena_strdup(a, at), *machine = strsep(&at, " ");
    char *host = strchr(machine, '+');
    struct figures f = {machine, at, "", NULL};
    assert_non_null(at);
    if (host) *host++ = 0;
    setenv("ISAMAP_HOST", host ? host : "cpu-avx2", 1); /* beside devices, on every computer */
    text_printf(seen, "%s:", name);
    figures_line(im, a, &f, name, seen);
    isamap_close(im);
}

static void kept(void **state) {
    struct text seen = {0};
    struct arena a;
    struct diags d;
    size_t n;
    char made[] = "/tmp/figures.XXXXXX";
    (void)state;
    folder = mkdtemp(made);
    assert_non_null(folder);
    arena_init(&a);
    diags_init(&d);
    char *rest = file_read(&a, "tests/data/golden/all_kept.list", 1 << 20, &n, &d), *line;
    assert_non_null(rest);
    for (size_t k = 0; (line = strsep(&rest, "\n")) && *line; k++)
        if (sampled(k)) kept_line(&a, line, &seen);
    diags_free(&d);
    arena_free(&a);
    rmdir(folder);
    golden_check("all_kept", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
