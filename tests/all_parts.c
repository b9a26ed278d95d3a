/* The cpu backend: a function for each part of a section, and one for all parts that are equal. */
#include "backends/backend.h"
#include "ir/file.h"
#include "tests/scheduler_help.h"
#include "tests/scheduler_chain.h"
#include "tests/scheduler_plan.h"

#include <stdlib.h>
#include <unistd.h>

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

struct counted {
    int functions, calls;
    size_t bytes; /* of the largest function */
};

static size_t largest_function(const char *text) {
    size_t most = 0;
    for (const char *at = text; (at = strstr(at, "\ndefine ")); at++) {
        const char *end = strstr(at, "\n}\n");
        if (end && (size_t)(end - at) > most) most = (size_t)(end - at);
    }
    return most;
}

/* Of a chain of n products as LLVM's text. */
static struct counted chain_code(int n) {
    struct compiled x;
    struct arena a;
    char path[] = "/tmp/isamap-parts-XXXXXX.ll";
    int fd = mkstemps(path, 3);
    size_t bytes;
    assert_true(fd >= 0);
    close(fd);
    arena_init(&a);
    compiled_open(&x, "cpu-avx2", NULL, NULL, chain_text(&a, n), NULL, 0);
    compiled_by(&x, &plan_best, 1, NULL);
    const struct backend *b = backend_find(x.s, ".ll", &x.diags);
    assert_non_null(b);
    assert_true(b->write(x.s, path, &(struct backend_options){0}, &x.diags));
    const char *text = file_read(&a, path, 1 << 26, &bytes, &x.diags);
    assert_non_null(text);
    struct counted c = {count(text, "\ndefine internal void @chain."), count(text, "call void @chain."),
                        largest_function(text)};
    unlink(path);
    compiled_free(&x);
    arena_free(&a);
    return c;
}

/* More products call the functions of fewer more often; none grows but for those calls. */
static void equal_parts_are_one_function(void **state) {
    (void)state;
    struct counted few = chain_code(8), many = chain_code(24);
    assert_true(few.functions > 0 && few.calls >= 8);
    assert_int_equal(many.functions, few.functions);
    assert_int_equal(many.calls, 3 * few.calls);
    assert_true(many.bytes < few.bytes + 16 * 2000);
}

int main(void) {
#if ISAMAP_WITH_LLVM
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_parts_are_one_function)};
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 0;
#endif
}
