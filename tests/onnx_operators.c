/* docs/onnx.md lists the operators of the importer's tables, and says of each what it takes.
 * `UPDATE_DOCS=1 build/tests/test_onnx_operators` writes its lists anew. */
#include "onnx/onnx.h"
#include "tests/docs_page.h"

#include <ctype.h>

#ifdef ISAMAP_WITH_ONNX
#define BEGIN "<!-- operators: tests/onnx_operators.c writes these lists -->\n"
#define END "<!-- end of operators -->\n"

static struct docs_page operators_page(struct arena *a) {
    return docs_page_read(a, SOURCE_DIR "/docs/onnx.md", BEGIN, END);
}

static void lists(void **state) {
    struct arena a;
    struct text want = {0};
    (void)state;
    arena_init(&a);
    struct docs_page page = operators_page(&a);
    text_printf(&want, "Of `ai.onnx`: ");
    onnx_operators_list(&want, "ai.onnx");
    text_printf(&want, ".\n\nOf `com.microsoft`: ");
    onnx_operators_list(&want, "com.microsoft");
    text_printf(&want, ".\n\nOf `ai.onnx.ml`: ");
    onnx_operators_list(&want, "ai.onnx.ml");
    text_printf(&want, ".\n");
    docs_page_holds(&page, &want);
    text_free(&want);
    arena_free(&a);
}

/* Whether the word stands in the text, not as a part of another. */
static bool has_word(const char *text, const char *word, size_t length) {
    for (const char *s = text; (s = strstr(s, word)); s++) {
        bool begins = s == text || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
        if (begins && !isalnum((unsigned char)s[length]) && s[length] != '_') return true;
    }
    return false;
}

/* Each is named outside the lists too, where the page says what is taken of it. */
static void restrictions(void **state) {
    struct arena a;
    (void)state;
    static const char *const domain[] = {"ai.onnx", "com.microsoft", "ai.onnx.ml"};
    for (int d = 0; d < 3; d++) {
        struct text list = {0};
        arena_init(&a);
        struct docs_page page = operators_page(&a);
        memset(page.begin, ' ', (size_t)(page.end - page.begin));
        onnx_operators_list(&list, domain[d]);
        int missing = 0, n = 0;
        for (char *s = list.at; s && *s; n++) {
            size_t length = strcspn(s, " ");
            char *name = arena_strndup(&a, s, length);
            if (!has_word(page.text, name, length)) {
                print_error("%s is not described\n", name);
                missing++;
            }
            s = strstr(s, ", ");
            if (s) s += 2;
        }
        assert_true(n > 5);
        assert_int_equal(missing, 0);
        text_free(&list);
        arena_free(&a);
    }
}
#endif

int main(void) {
#ifdef ISAMAP_WITH_ONNX
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(restrictions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 0;
#endif
}
