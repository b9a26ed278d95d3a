/* What memory_take gives: zeroed, aligned, and in large pages where there are many; and with
 * the address sanitizer, where it and the pieces of an arena end. */
#include "ir/memory.h"
#include "ir/poison.h"
#include "ir_support.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 16 << 20, SMALL = 64 << 10 };

/* The system's word on the pages of an address: "hg" where large ones were asked for. -1: it says
 * nothing. */
static int large_pages(const void *p) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[4096];
    bool here = false;
    int found = -1;
    while (f && found < 0 && fgets(line, sizeof line, f)) {
        uintptr_t lo, hi;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &lo, &hi) == 2)
            here = (uintptr_t)p >= lo && (uintptr_t)p < hi;
        if (here && strncmp(line, "VmFlags:", 8) == 0) found = strstr(line, " hg") != NULL;
    }
    if (f) fclose(f);
    return found;
}

static bool zeroed(const unsigned char *p, size_t n) {
    size_t k = 0;
    while (k < n && !p[k]) k++;
    return k == n;
}

static void test_taken(void **state) {
    (void)state;
    unsigned char *large = memory_take(LARGE, 1), *small = memory_take(SMALL, 1);
    assert_int_equal((uintptr_t)large % 64, 0);
    assert_int_equal((uintptr_t)small % 64, 0);
    assert_true(zeroed(large, LARGE));
    assert_true(zeroed(small, SMALL));
    int in_large = large_pages(large + LARGE / 2);
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) || in_large < 0)
        print_message("the system has no large pages, or does not say\n");
    else
        assert_true(in_large);
    assert_int_not_equal(large_pages(small), 1);
    memory_give(small);
    memory_give(large);
}

/* The address sanitizer sees what reaches past a piece of an arena, though a block holds many, and
 * past what is aligned. */
static void test_pieces(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    struct arena a;
    arena_init(&a);
    for (size_t n = 0; n < 100; n++) {
        char *p = arena_alloc(&a, n), *q = arena_copy(&a, "", 1);
        assert_false(__asan_address_is_poisoned(q));
        assert_true(__asan_address_is_poisoned(q + 1));
        assert_true(__asan_address_is_poisoned(p + n));
        assert_true(n == 0 || !__asan_address_is_poisoned(p + n - 1));
        char *taken = memory_take(n + 1, 1);
        assert_false(__asan_address_is_poisoned(taken + n));
        assert_true(__asan_address_is_poisoned(taken + n + 1));
        memory_give(taken);
    }
    arena_free(&a);
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken), cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
