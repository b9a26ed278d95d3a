/* What stands in ${…} of emit texts, a line each: what becomes of it, or the message and its line.
 */
#include "backends/backends_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { FIRST_LINE = 70 };

static const struct line {
    const char *text, *becomes; /* NULL: it is refused, */
    const char *message;
    int line; /* behind the first, */
    enum language language;
} lines[] = {
    {"", "", NULL, 0, LANGUAGE_C},
    {"a $ {b} $c", "a $ {b} $c", NULL, 0, LANGUAGE_C},
    {"x${CORES}y${CORES * 2 - 1}", "x3y5", NULL, 0, LANGUAGE_C},
    {"${CORES / 2}", "1.5", NULL, 0, LANGUAGE_C},
    {"${CORES / 2}", "0x3FF8000000000000", NULL, 0, LANGUAGE_LLVM},
    {"${0 - CORES}", "-3", NULL, 0, LANGUAGE_LLVM},
    {"${4611686018427387904}", "4611686018427387904", NULL, 0, LANGUAGE_C},
    {"${4611686018427387904 * 2}", "9.2233720368547758e+18", NULL, 0, LANGUAGE_C},
    {"[${list('r#', 0)}]", "[]", NULL, 0, LANGUAGE_C},
    {"[${list('r#', 1)}]", "[r0]", NULL, 0, LANGUAGE_C},
    {"[${list('#:}#', CORES)}]", "[0:}0, 1:}1, 2:}2]", NULL, 0, LANGUAGE_C},
    {"${list('#', -1)}", NULL, "'${list('#', -1)}' is not list('text#', n)", 0, LANGUAGE_C},
    {"a\n${list('#', 4097)}", NULL, "with a number n up to 4096", 1, LANGUAGE_C},
    {"${list('#')}", NULL, "is not list('text#', n)", 0, LANGUAGE_C},
    {"${list('#', 1, 1)}", NULL, "is not list('text#', n)", 0, LANGUAGE_C},
    {"${list(CORES, 1)}", NULL, "is not list('text#', n)", 0, LANGUAGE_C},
    {"${list('#', M)}", NULL, "is not list('text#', n)", 0, LANGUAGE_C},
    {"\n\n${CORES + 0 * M}", NULL, "'M' in '${CORES + 0 * M}' has no value", 2, LANGUAGE_C},
    {"${CORES +\n1}\n${M}", NULL, "'M' in '${M}' has no value", 2, LANGUAGE_C},
    {"${addr(S)}", NULL, "'addr' in '${addr(S)}' has no value", 0, LANGUAGE_C},
    {"a\n${CORES", NULL, "'${' without '}' in emit text", 1, LANGUAGE_C},
    {"${list('}', 1)", NULL, "'${' without '}' in emit text", 0, LANGUAGE_C},
};

static void check_line(const struct machine *m, const struct line *l) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    const struct emit e = {
        .language = l->language, .text = l->text, .at = {.file = "m.xml", .line = FIRST_LINE}};
    const char *got = emit_expand(&a, m, NULL, &e, NULL, NULL, &d);
    if (l->becomes) {
        assert_non_null(got);
        assert_string_equal(got, l->becomes);
        assert_int_equal(d.n, 0);
    } else {
        assert_null(got);
        assert_int_equal(d.n, 1);
        assert_non_null(strstr(d.at[0].text, l->message));
        assert_int_equal(d.at[0].line, FIRST_LINE + l->line);
    }
    diags_free(&d);
    arena_free(&a);
}

static struct machine *machine(void) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(SOURCE_DIR "/tests/data/machines/backends/reg4.xml", NULL, &d);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

static void every_line(void **state) {
    struct machine *m = machine();
    (void)state;
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++) check_line(m, &lines[i]);
    machine_free(m);
}

/* As long as a list may be. */
static void longest_list(void **state) {
    struct machine *m = machine();
    struct arena a;
    struct diags d;
    (void)state;
    arena_init(&a);
    diags_init(&d);
    const struct emit e = {.language = LANGUAGE_C, .text = "${list('#', 4096)}"};
    const char *got = emit_expand(&a, m, NULL, &e, NULL, NULL, &d);
    assert_non_null(got);
    assert_string_equal(got + strlen(got) - 12, ", 4094, 4095");
    diags_free(&d);
    arena_free(&a);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_line),
                                       cmocka_unit_test(longest_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
