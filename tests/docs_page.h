/* Parts of pages of docs/ that tests keep equal to tables of the program: what stands between two
 * lines. With UPDATE_DOCS in the environment the test writes the part anew. */
#ifndef ISAMAP_TESTS_DOCS_PAGE_H
#define ISAMAP_TESTS_DOCS_PAGE_H

#include "ir/arena.h"
#include "ir/diag.h"
#include "ir/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The page, and in it the part from after the first line to before the last one. */
struct docs_page {
    const char *path;
    char *text, *begin, *end;
};

static inline struct docs_page docs_page_read(struct arena *a, const char *path, const char *first,
                                              const char *last) {
    struct docs_page page = {.path = path};
    struct diags d;
    size_t n;
    diags_init(&d);
    page.text = file_read(a, path, 1 << 20, &n, &d);
    assert_non_null(page.text);
    assert_non_null(page.begin = strstr(page.text, first));
    page.begin += strlen(first);
    assert_non_null(page.end = strstr(page.begin, last));
    diags_free(&d);
    return page;
}

/* Fails where the part is another text than is wanted. */
static inline void docs_page_holds(const struct docs_page *page, const struct text *want) {
    if ((size_t)(page->end - page->begin) == want->n && memcmp(page->begin, want->at, want->n) == 0)
        return;
    if (!getenv("UPDATE_DOCS"))
        fail_msg("%s is not what the program's table says; UPDATE_DOCS=1 and this test write it",
                 page->path);
    FILE *f = fopen(page->path, "w");
    assert_non_null(f);
    fprintf(f, "%.*s%s%s", (int)(page->begin - page->text), page->text, want->at, page->end);
    assert_int_equal(fclose(f), 0);
}

#endif
