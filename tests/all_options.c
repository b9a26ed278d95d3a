/* The tables of commands and options: consistent, and docs/command.md has them. `UPDATE_DOCS=1
 * build/tests/test_all_options` writes its table anew. */
#include "command/options.h"
#include "command/isamap_int.h"
#include "tests/docs_page.h"

static void names(void **state) {
    (void)state;
    for (const struct option *o = option_table; o->name; o++) {
        assert_true(strspn(o->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(o->name));
        assert_true((o->kind == OPTION_SWITCH) == (o->value == NULL));
        assert_true((o->kind == OPTION_WORDS) == (o->word != NULL));
        assert_true(o->commands < 1u << COMMANDS);
        for (const struct option *p = option_table; p < o; p++) {
            assert_false(strcmp(o->name, p->name) == 0 && (o->commands & p->commands));
            if (strcmp(o->name, p->name) == 0) assert_int_equal(o->at, p->at);
            if (strcmp(o->name, p->name) != 0 && o->letter)
                assert_int_not_equal(o->letter, p->letter);
            if (o->at != NOT_STORED && strcmp(o->name, p->name) != 0)
                assert_int_not_equal(o->at, p->at);
        }
    }
    for (int c = 0; c < COMMANDS; c++) {
        assert_int_equal(command_find(command_table[c].name), c);
        assert_non_null(option_find("help", c));
        assert_non_null(option_find("json", c));
        assert_true(command_table[c].statuses & 1u << ISAMAP_DONE);
        assert_int_equal(strncmp(command_table[c].examples, "isamap ", 7), 0);
    }
}

/* Every value that a kind takes is stored, and nothing else. */
static void values(void **state) {
    static const struct {
        const char *name, *value;
        bool good;
    } cases[] = {
        {"seed", "0", true},           {"seed", "9007199254740992", true},
        {"seed", "1e3", true},         {"seed", "-1", false},
        {"seed", "0.5", false},        {"seed", "", false},
        {"seed", NULL, false},         {"seed", " 1", false},
        {"seed", "inf", false},        {"rtol", "0.25", true},
        {"rtol", ".5", true},          {"rtol", "nan", false},
        {"threads", "3", true},        {"threads", "1,2,4", true},
        {"threads", "1,", false},      {"threads", "1025", false},
        {"threads", NULL, false},      {"contexts", "3", true},
        {"contexts", "2.5", false},    {"json", NULL, true},
        {"json", "", false},           {"define", "M=", true},
        {"define", "M", false},        {"define", "=3", false},
        {"define", NULL, false},       {"latencies", "1..1", true},
        {"latencies", "0..0", false},  {"latencies", "9..1", false},
        {"latencies", "1..2x", false}, {"latencies", "", false},
        {"machine", "", true},         {"machine", NULL, false},
        {"out", "x", false},           {"help", NULL, false},
        {"nothing", "x", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        isamap *im = isamap_open();
        int status = isamap_option(im, cases[i].name, cases[i].value);
        if ((status == ISAMAP_DONE) != cases[i].good)
            fail_msg("--%s '%s' gives %d", cases[i].name, cases[i].value ? cases[i].value : "NULL",
                     status);
        assert_true((*isamap_messages(im) == 0) == cases[i].good);
        if (!cases[i].good) assert_non_null(strstr(isamap_messages(im), cases[i].name));
        isamap_close(im);
    }
}

/* A name that is given again has its last value, as every option. */
static void again(void **state) {
    static const char *const given[] = {"M=20", "N=3", "M=24"};
    isamap *im = isamap_open();
    (void)state;
    for (int k = 0; k < 3; k++)
        assert_int_equal(isamap_option(im, "define", given[k]), ISAMAP_DONE);
    assert_int_equal(im->option.define.n, 2);
    assert_string_equal(im->option.define.at[0].value, "24");
    assert_string_equal(im->option.define.at[1].value, "3");
    isamap_close(im);
}

#define BEGIN "<!-- options: tests/all_options.c writes this table -->\n"
#define END "<!-- end of options -->\n"

static void docs(void **state) {
    struct text want = {0};
    struct arena a;
    (void)state;
    arena_init(&a);
    help_options_table(&want);
    struct docs_page page = docs_page_read(&a, SOURCE_DIR "/docs/command.md", BEGIN, END);
    docs_page_holds(&page, &want);
    text_free(&want);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(values),
                                       cmocka_unit_test(again), cmocka_unit_test(docs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
