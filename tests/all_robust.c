/* Bad bytes: every truncation and 10,000 seeded bit flips of a model, a machine file, a kernel, a
 * schedule and an array either read well or are reported with a place; nothing else may happen (run
 * under the address sanitizer by CI). ISAMAP_FLIPS sets another number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/npy.h"
#include "machines/machine.h"
#include "onnx/onnx.h"
#include "scheduler/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

typedef bool (*reader)(void *user, const char *bytes, size_t n, struct diags *);

static bool read_kernel(void *user, const char *bytes, size_t n, struct diags *d) {
    (void)user;
    struct arena a;
    arena_init(&a);
    struct source s = {.file = "kernel", .text = bytes, .length = n, .line0 = 1, .col0 = 1};
    struct kernel **k;
    int kernels = kernel_parse(&a, &s, &k, d);
    struct program *p = kernels > 0 ? program_bind(k[0], NULL, NULL, d) : NULL;
    bool ok = kernels == 0 || (p && program_verify(p, d));
    if (p) program_free(p);
    arena_free(&a);
    return ok;
}

static bool read_machine(void *user, const char *bytes, size_t n, struct diags *d) {
    struct machine *m = machine_parse(user, bytes, n, NULL, d);
    if (m) machine_free(m);
    return m != NULL;
}

static bool read_model(void *user, const char *bytes, size_t n, struct diags *d) {
    (void)user;
    struct binding batch = {"N", 2};
    struct onnx_model *m =
        onnx_parse("model.onnx", bytes, n, &(struct bindings){.at = &batch, .n = 1}, NULL, d);
    if (m) onnx_free(m);
    return m != NULL;
}

static bool read_schedule(void *user, const char *bytes, size_t n, struct diags *d) {
    struct source s = {.file = "schedule", .text = bytes, .length = n, .line0 = 1, .col0 = 1};
    struct schedule *x = schedule_parse(user, &s, d);
    bool ok = x && schedule_verify(x, &(struct verify_options){.trips = 2, .steps = 20000}, d);
    if (x) schedule_free(x);
    return ok;
}

static bool read_array(void *user, const char *bytes, size_t n, struct diags *d) {
    (void)user;
    struct array a;
    bool ok = npy_parse("array.npy", bytes, n, &a, d);
    if (ok) array_free(&a);
    return ok;
}

/* A failure must have said where. */
static bool judge(reader read, void *user, const char *bytes, size_t n, const char *what,
                  size_t at) {
    struct diags d;
    diags_init(&d);
    char *exact =
        malloc(n + 1); /* the sanitizer sees every byte past the end but the NUL that texts have */
    memcpy(exact, bytes, n);
    exact[n] = 0;
    bool ok = read(user, exact, n, &d);
    if (!ok && (d.errors == 0 || !d.at[0].file || !d.at[0].text || !*d.at[0].text)) {
        fprintf(stderr, "%s at %zu: refused without a message\n", what, at);
        fail();
    }
    if (ok && d.errors) {
        fprintf(stderr, "%s at %zu: accepted with errors\n", what, at);
        fail();
    }
    free(exact);
    diags_free(&d);
    return ok;
}

static void batter(reader read, void *user, const char *bytes, size_t n, size_t step) {
    assert_true(judge(read, user, bytes, n, "whole", 0));
    for (size_t k = 0; k < n; k += step) judge(read, user, bytes, k, "truncation", k);
    uint64_t s = 1;
    int flips = getenv("ISAMAP_FLIPS") ? atoi(getenv("ISAMAP_FLIPS")) : 10000;
    char *copy = malloc(n + 1);
    for (int i = 0; i < flips; i++) {
        memcpy(copy, bytes, n);
        copy[n] = 0;
        s = s * 6364136223846793005u + 1442695040888963407u;
        size_t bit = (size_t)((s >> 20) % (8 * n));
        copy[bit / 8] ^= (char)(1 << bit % 8);
        judge(read, user, copy, n, "bit flip", bit);
    }
    free(copy);
}

static char *slurp(struct arena *a, const char *path, size_t *n) {
    struct diags d;
    diags_init(&d);
    char *text = file_read(a, path, 16u << 20, n, &d);
    if (!text) diags_print(&d, stderr);
    diags_free(&d);
    assert_non_null(text);
    return text;
}

static void batter_file(reader read, void *user, const char *path, size_t step) {
    struct arena a;
    arena_init(&a);
    size_t n;
    char *bytes = slurp(&a, path, &n);
    batter(read, user, bytes, n, step);
    arena_free(&a);
}

static void kernels(void **state) {
    (void)state;
    batter_file(read_kernel, NULL, "examples/operators/att.isam", 1);
    batter_file(read_kernel, NULL, "examples/operators/c2d.isam", 1);
}

static void machines(void **state) {
    (void)state;
    batter_file(read_machine, "machines/edge16.xml", "machines/edge16.xml", 1);
}

static void models(void **state) {
    (void)state;
    batter_file(read_model, NULL, "examples/digits/digits-int8.onnx", 1);
}

static void arrays(void **state) {
    (void)state;
    batter_file(read_array, NULL, "examples/digits/labels.npy", 1);
}

static void schedules(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load("machines/cpu-avx2.xml", NULL, &d);
    assert_non_null(m);
    batter_file(read_schedule, m, "tests/data/robust.sched", 1);
    machine_free(m);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels), cmocka_unit_test(machines),
                                       cmocka_unit_test(models), cmocka_unit_test(arrays),
                                       cmocka_unit_test(schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
