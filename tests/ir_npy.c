#include "ir/npz.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static size_t make_file(unsigned char *at, const char *dict, const void *data, size_t bytes) {
    size_t n = strlen(dict);
    memcpy(at, "\x93NUMPY\x01\x00", 8);
    at[8] = n & 255;
    at[9] = (unsigned char)(n >> 8);
    memcpy(at + 10, dict, n);
    if (bytes) memcpy(at + 10 + n, data, bytes);
    return 10 + n + bytes;
}

static const char *first(const struct diags *d) {
    return d->n ? d->at[0].text : "";
}

static void check_refused(const char *dict, size_t bytes, const char *expected) {
    unsigned char file[512], data[256] = {0};
    struct diags d;
    struct array a;
    diags_init(&d);
    size_t n = make_file(file, dict, data, bytes);
    assert_false(npy_parse("a.npy", file, n, &a, &d));
    assert_int_equal(d.errors, 1);
    if (!strstr(first(&d), expected)) fail_msg("'%s' has no '%s'", first(&d), expected);
    assert_string_equal(d.at[0].file, "a.npy");
    diags_free(&d);
}

static void reads_what_numpy_writes(void **state) {
    (void)state;
    struct diags d;
    struct array a;
    unsigned char file[512];
    float x[6] = {1, 2, 3, 4.5f, -5, 6};
    diags_init(&d);
    size_t n = make_file(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
                         x, sizeof x);
    assert_true(npy_parse("a.npy", file, n, &a, &d));
    assert_int_equal(a.type, TYPE_F32);
    assert_int_equal(a.ndims, 2);
    assert_int_equal(a.extent[0], 2);
    assert_int_equal(a.extent[1], 3);
    assert_int_equal(a.elements, 6);
    assert_memory_equal(a.data, x, sizeof x);
    array_free(&a);
    int8_t i = -7;
    n = make_file(file, "{\"shape\":(),\"fortran_order\":True,\"descr\":\"|i1\"}", &i, 1);
    assert_true(npy_parse("a.npy", file, n, &a, &d));
    assert_int_equal(a.type, TYPE_I8);
    assert_int_equal(a.ndims, 0);
    assert_int_equal(a.elements, 1);
    assert_int_equal(*(int8_t *)a.data, -7);
    array_free(&a);
    unsigned char b[3] = {0, 2, 1}, want[3] = {0, 1, 1};
    n = make_file(file, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", b, 3);
    assert_true(npy_parse("a.npy", file, n, &a, &d));
    assert_memory_equal(a.data, want, 3);
    array_free(&a);
    assert_int_equal(d.n, 0);
    diags_free(&d);
}

static void refuses_with_reasons(void **state) {
    (void)state;
    check_refused("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8,
                  "byte 20: big-endian data is not supported");
    check_refused("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", 16, "type '<c8'");
    check_refused("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16, "Fortran order");
    check_refused("{'descr': '<f4', 'fortran_order': False}", 8, "no 'shape'");
    check_refused("{'fortran_order': False, 'shape': (1,)}", 8, "no 'descr'");
    check_refused("{'descr': '<f4', 'shape': (1,)}", 8, "no 'fortran_order'");
    check_refused("{'descr': '<f4', 'descr': '<f4'}", 8, "twice");
    check_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", 8,
                  "unexpected text");
    check_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8,
                  "expected an extent");
    check_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 7,
                  "7 bytes of data follow, but the shape needs 2 elements of f32, 8 bytes");
    check_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 7,
                  "too large");
    check_refused("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}", 7,
                  "too many bytes");
    check_refused(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 8,
        "more than 16");
    check_refused("['descr']", 8, "expected '{'");
}

static void round_trip_of(enum type type, int ndims, const int64_t *extent, const char *path) {
    struct diags d;
    struct array a = {.type = type, .ndims = ndims, .elements = 1}, b;
    diags_init(&d);
    for (int i = 0; i < ndims; i++) a.elements *= a.extent[i] = extent[i];
    size_t bytes = (size_t)a.elements * type_size(type);
    a.data = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)a.data)[i] = (unsigned char)(type == TYPE_BOOL ? i & 1 : i * 37 + 11);
    assert_true(npy_write(path, &a, &d));
    assert_true(npy_read(path, &b, &d));
    assert_int_equal(b.type, type);
    assert_int_equal(b.ndims, ndims);
    assert_int_equal(b.elements, a.elements);
    for (int i = 0; i < ndims; i++) assert_int_equal(b.extent[i], extent[i]);
    if (bytes) assert_memory_equal(a.data, b.data, bytes);
    array_free(&a);
    array_free(&b);
    assert_int_equal(d.n, 0);
    diags_free(&d);
}

/* As ml_dtypes saves it, as numpy saves a copy of that, and by its name. */
static void reads_bf16(void **state) {
    (void)state;
    static const char *const descr[] = {"<V2", "|V2", "bfloat16"};
    uint16_t x[3] = {0x3f80, 0xc000, 0x7f80};
    for (int i = 0; i < 3; i++) {
        char dict[128];
        unsigned char file[256];
        struct diags d;
        struct array a;
        diags_init(&d);
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }",
                 descr[i]);
        assert_true(npy_parse("a.npy", file, make_file(file, dict, x, sizeof x), &a, &d));
        assert_int_equal(a.type, TYPE_BF16);
        assert_memory_equal(a.data, x, sizeof x);
        array_free(&a);
        diags_free(&d);
    }
}

static void writes_and_reads_back(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/isamap-npy-%ld.npy", (long)getpid());
    for (int t = 0; t < TYPE_COUNT; t++) {
        round_trip_of((enum type)t, 3, (int64_t[]){2, 3, 5}, path);
        round_trip_of((enum type)t, 1, (int64_t[]){7}, path);
        round_trip_of((enum type)t, 0, NULL, path);
        round_trip_of((enum type)t, 2, (int64_t[]){0, 4}, path);
    }
    round_trip_of(TYPE_U8, 2, (int64_t[]){300, 1000}, path); /* longer than the first read */
    unlink(path);
}

static void says_why_files_fail(void **state) {
    (void)state;
    struct diags d;
    struct array a = {.type = TYPE_BF16, .elements = 1};
    diags_init(&d);
    assert_false(npy_read("/nonexistent/x.npy", &a, &d));
    assert_non_null(strstr(first(&d), "No such file or directory"));
    assert_false(npy_read("/tmp", &a, &d));
    a = (struct array){.type = TYPE_U8, .elements = 1};
    a.data = "x";
    assert_false(npy_write("/nonexistent/x.npy", &a, &d));
    assert_false(npy_write("/tmp", &a, &d));
    assert_int_equal(d.errors, 4);
    diags_free(&d);
}

static void survives_damage(void **state) {
    (void)state;
    unsigned char file[512], copy[512];
    float x[6] = {0};
    uint64_t seed = 1;
    size_t n =
        make_file(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", x, sizeof x);
    for (int i = 0; i < 20000; i++) {
        struct diags d;
        struct array a;
        size_t length = i < (int)n ? (size_t)i : n;
        diags_init(&d);
        memcpy(copy, file, n);
        for (int k = 0; i >= (int)n && k < 2; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy[(seed >> 33) % n] ^= (unsigned char)(1u << (seed >> 20 & 7));
        }
        unsigned char *exact = malloc(length + 1);
        memcpy(exact, copy, length);
        bool ok = npy_parse("a.npy", exact, length, &a, &d);
        assert_true(ok == (d.errors == 0));
        if (i < (int)n) assert_false(ok);
        if (ok) array_free(&a);
        free(exact);
        diags_free(&d);
    }
}

/* Every prefix and every changed byte of an archive is read or refused, never worse. */
static void reads_archives(void **state) {
    (void)state;
    enum { MOST = 1 << 13 };
    static unsigned char bytes[MOST], was;
    struct diags d;
    struct npz z;
    char path[] = "/tmp/isamap-npz-XXXXXX";
    diags_init(&d);
    assert_true(npz_read("tests/data/onnx/three_layers/right.npz", &z, &d));
    assert_int_equal(z.n, 5);
    const struct array *y = npz_find(&z, "layer/1");
    assert_non_null(y);
    assert_int_equal(y->type, TYPE_F32);
    assert_int_equal(y->extent[1], 4);
    assert_null(npz_find(&z, "layer/3"));
    npz_free(&z);
    FILE *f = fopen("tests/data/onnx/three_layers/right.npz", "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, MOST, f);
    fclose(f);
    assert_true(n < MOST);
    int file = mkstemp(path);
    assert_true(file >= 0);
    for (size_t k = 0; k < 2 * n; k += 7) {
        bool cut = k < n;
        size_t length = cut ? k : n;
        if (!cut) was = bytes[k - n], bytes[k - n] ^= 0x55;
        assert_int_equal(ftruncate(file, 0), 0);
        assert_int_equal(pwrite(file, bytes, length, 0), (ssize_t)length);
        if (!cut) bytes[k - n] = was;
        struct diags own;
        diags_init(&own);
        bool ok = npz_read(path, &z, &own);
        assert_true(ok || own.errors > 0);
        assert_false(ok && cut);
        if (ok) npz_free(&z);
        diags_free(&own);
    }
    close(file);
    unlink(path);
    diags_free(&d);
}

static void little(unsigned char *at, uint64_t value, int n) {
    for (int k = 0; k < n; k++) at[k] = (unsigned char)(value >> 8 * k);
}

static uint64_t little_at(const unsigned char *at, int n) {
    uint64_t value = 0;
    for (int k = n - 1; k >= 0; k--) value = value << 8 | at[k];
    return value;
}

/* The directory's first entry says its sizes in the extra field of large files, which need not
 * come first there: numpy's own archive, changed so, is read as before. */
static void reads_large_archives(void **state) {
    (void)state;
    enum { MOST = 1 << 13, OTHER = 9, LARGE = 20, MORE = OTHER + LARGE, ENTRY = 46, END = 22 };
    static unsigned char bytes[MOST + MORE];
    char path[] = "/tmp/isamap-npz-XXXXXX";
    FILE *f = fopen("tests/data/onnx/three_layers/right.npz", "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, MOST, f);
    fclose(f);
    assert_true(n > END && n < MOST);
    unsigned char *end = bytes + n - END;
    uint64_t from = little_at(end + 16, 4), size = little_at(end + 12, 4);
    unsigned char *entry = bytes + from;
    size_t name = (size_t)little_at(entry + 28, 2);
    assert_int_equal(little_at(entry + 30, 2), 0);
    unsigned char *extra = entry + ENTRY + name;
    memmove(extra + MORE, extra, (size_t)(bytes + n - extra));
    little(extra, 0x5455, 2), little(extra + 2, OTHER - 4, 2), little(extra + 4, 0, 5);
    little(extra + OTHER, 1, 2), little(extra + OTHER + 2, LARGE - 4, 2);
    little(extra + OTHER + 4, little_at(entry + 24, 4), 8);
    little(extra + OTHER + 12, little_at(entry + 20, 4), 8);
    little(entry + 20, UINT32_MAX, 4), little(entry + 24, UINT32_MAX, 4);
    little(entry + 30, MORE, 2), little(end + MORE + 12, size + MORE, 4);
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, n + MORE, 0), (ssize_t)(n + MORE));
    struct diags d;
    struct npz z, plain;
    diags_init(&d);
    assert_true(npz_read(path, &z, &d));
    assert_true(npz_read("tests/data/onnx/three_layers/right.npz", &plain, &d));
    assert_int_equal(z.n, plain.n);
    for (int k = 0; k < z.n; k++) {
        const struct array *a = &z.array[k], *b = &plain.array[k];
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->ndims, b->ndims);
        for (int i = 0; i < a->ndims; i++) assert_int_equal(a->extent[i], b->extent[i]);
        assert_memory_equal(a->data, b->data, (size_t)b->elements * type_size(b->type));
    }
    npz_free(&z);
    npz_free(&plain);
    diags_free(&d);
    close(file);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_numpy_writes),
        cmocka_unit_test(refuses_with_reasons),
        cmocka_unit_test(reads_bf16),
        cmocka_unit_test(writes_and_reads_back),
        cmocka_unit_test(says_why_files_fail),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(reads_archives),
        cmocka_unit_test(reads_large_archives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
