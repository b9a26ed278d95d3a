/* Hand-made schedules through every backend, against the interpreter. */
#include "backends/backend.h"
#include "ir/interp.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MACHINES SOURCE_DIR "/tests/data/machines/backends/"
#define SCHEDULES SOURCE_DIR "/tests/data/backends/"

struct fixture {
    struct diags diags;
    struct arena arena;
    struct machine *machine;
    struct schedule *schedule;
};

static void show(const struct diags *d) {
    diags_print(d, stderr);
}

static void open_fixture(struct fixture *f, const char *machine, const char *schedule) {
    diags_init(&f->diags);
    arena_init(&f->arena);
    f->machine = machine_load(machine, NULL, &f->diags);
    if (!f->machine) show(&f->diags);
    assert_non_null(f->machine);
    struct source *s = arena_alloc(&f->arena, sizeof *s);
    *s = (struct source){.file = schedule, .line0 = 1, .col0 = 1};
    s->text = file_read(&f->arena, schedule, 1 << 20, &s->length, &f->diags);
    assert_non_null(s->text);
    f->schedule = schedule_parse(f->machine, s, &f->diags);
    if (!f->schedule) show(&f->diags);
    assert_non_null(f->schedule);
}

static void close_fixture(struct fixture *f) {
    schedule_free(f->schedule);
    machine_free(f->machine);
    arena_free(&f->arena);
    diags_free(&f->diags);
}

static size_t buffer_bytes(const struct buffer *b) {
    return (size_t)b->elements * type_size(b->type);
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Small integers as floats: sums are exact in any order. */
static void fill(const struct buffer *b, void *data, uint64_t *state) {
    for (int64_t i = 0; i < b->elements; i++) {
        int64_t r = (int64_t)(next_random(state) % 17) - 8;
        union value v = {.i = type_wrap(type_is_float(b->type) ? TYPE_I64 : b->type, (uint64_t)r)};
        if (type_is_float(b->type)) v.f = (double)r;
        type_store(b->type, (char *)data + (size_t)i * type_size(b->type), v);
    }
}

static void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        enum role r = p->buffer[b].role;
        if (r != ROLE_IN && r != ROLE_OUT && r != ROLE_INOUT && r != ROLE_CONST) continue;
        data[b] = malloc(buffer_bytes(&p->buffer[b]) + 1);
        memset(data[b], 0xcd, buffer_bytes(&p->buffer[b]) + 1);
        if (r != ROLE_OUT) fill(&p->buffer[b], data[b], &seed);
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static void compare(const struct program *p, void **got, void **expected, const char *backend) {
    for (int b = 0; b < p->nbuffers; b++) {
        if (!got[b]) continue;
        if (memcmp(got[b], expected[b], buffer_bytes(&p->buffer[b])) == 0) continue;
        for (int64_t i = 0; i < p->buffer[b].elements; i++) {
            size_t size = type_size(p->buffer[b].type);
            const char *x = (char *)got[b] + (size_t)i * size,
                       *y = (char *)expected[b] + (size_t)i * size;
            if (memcmp(x, y, size) == 0) continue;
            union value v = type_load(p->buffer[b].type, x), w = type_load(p->buffer[b].type, y);
            fail_msg("%s: %s[%lld] is %g, expected %g", backend, p->buffer[b].name, (long long)i,
                     type_is_float(p->buffer[b].type) ? v.f : (double)v.i,
                     type_is_float(p->buffer[b].type) ? w.f : (double)w.i);
        }
    }
}

static void run_on(struct fixture *f, const struct backend *backend, int threads, int times) {
    const struct program *p = f->schedule->program;
    struct executable *e = backend->load(f->schedule, NULL, &f->diags);
    if (!e) show(&f->diags);
    assert_non_null(e);
    for (int t = 0; t < times; t++) {
        void **got = make_data(p, (uint64_t)t + 7), **expected = make_data(p, (uint64_t)t + 7);
        assert_true(program_run(p, expected, NULL, NULL, &f->diags));
        assert_true(executable_prepare(e, got, &f->diags));
        for (int again = 0; again < 2; again++)
            assert_true(executable_run(e, got, threads, &f->diags));
        bool stable = true;
        for (int b = 0; b < p->nbuffers; b++) stable = stable && p->buffer[b].role != ROLE_INOUT;
        if (!stable) assert_true(program_run(p, expected, NULL, NULL, &f->diags));
        compare(p, got, expected, backend->name);
        free_data(p, got);
        free_data(p, expected);
    }
    assert_true(executable_bytes(e) >= 0);
    executable_free(e);
}

static void run_everywhere(const char *machine, const char *schedule, int threads) {
    struct fixture f;
    int ran = 0;
    open_fixture(&f, machine, schedule);
    for (int i = 0; backends[i]; i++) {
        if (!backends[i]->accepts(f.schedule)) continue;
        run_on(&f, backends[i], threads, 2);
        ran++;
    }
    assert_true(ran >= 1);
    close_fixture(&f);
}

static void test_gemm(void **state) {
    (void)state;
    run_everywhere(MACHINES "reg4.xml", SCHEDULES "gemm.sched", 1);
}

static void test_tails(void **state) {
    (void)state;
    run_everywhere(MACHINES "reg4.xml", SCHEDULES "tails.sched", 1);
}

static void test_parallel(void **state) {
    (void)state;
    for (int threads = 0; threads < 6; threads++)
        run_everywhere(MACHINES "reg4.xml", SCHEDULES "parallel.sched", threads);
}

static void test_rotate(void **state) {
    (void)state;
    run_everywhere(MACHINES "reg4.xml", SCHEDULES "rotate.sched", 1);
}

static void test_prepare(void **state) {
    (void)state;
    run_everywhere(MACHINES "reg4.xml", SCHEDULES "prepare.sched", 1);
}

static void test_outer(void **state) {
    (void)state;
    run_everywhere(MACHINES "reg4.xml", SCHEDULES "outer.sched", 1);
}

static void test_partial(void **state) {
    (void)state;
    for (int threads = 0; threads < 6; threads++)
        run_everywhere(MACHINES "reg4.xml", SCHEDULES "partial.sched", threads);
}

/* A window written out in turns of two loops: in the first and last ones parts of it are outside.
 */
static void window(int rows, int columns, int turn, int reach, const char *fill) {
    char path[] = "/tmp/isamap-window-XXXXXX";
    int file = mkstemp(path), size = 2 * reach + 1, elements = rows * columns;
    FILE *f = fdopen(file, "w");
    assert_non_null(f);
    fprintf(f,
            "schedule window on reg4 { program { kernel window() {\n"
            "in A: i32[2, %d, %d]  out D: i32[2, %d, %d, %d, %d]\n"
            "axes c: 2, i: %d, j: %d, r: %d, s: %d\n"
            "D[c,j,r,i,s] = A[c, i + r - %d, j + s - %d else %s] } }\n"
            "place A: A in dram at 0 bytes %d argument\n"
            "place D: D in dram at 65536 bytes %d argument\n"
            "run { loop p = 0 to %d step %d { loop q = 0 to %d step %d {\n"
            "fallback core llvm do 0 over (i = p to min(p + %d, %d), j = q to min(q + %d, %d))\n"
            "} } } }\n",
            rows, columns, columns, size, rows, size, rows, columns, size, size, reach, reach, fill,
            8 * elements, 8 * elements * size * size, rows, turn, columns, turn + 1, turn, rows,
            turn + 1, columns);
    fclose(f);
    run_everywhere(MACHINES "reg4.xml", path, 1);
    unlink(path);
}

static void test_windows(void **state) {
    (void)state;
    for (int rows = 7; rows <= 25; rows += 9) /* a turn, two full ones, a last one of one row */
        for (int reach = 1; reach < 3; reach++) {
            window(rows, 27, 8, reach, "5");
            window(9, rows, 4, reach, "-1");
        }
}

/* They are values from block to block, on processors without arithmetic for them. */
static void test_halves(void **state) {
    (void)state;
    run_everywhere(MACHINES "half8.xml", SCHEDULES "last-f16.sched", 1);
    run_everywhere(MACHINES "half8.xml", SCHEDULES "last-bf16.sched", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),     cmocka_unit_test(test_tails),
        cmocka_unit_test(test_parallel), cmocka_unit_test(test_rotate),
        cmocka_unit_test(test_prepare),  cmocka_unit_test(test_outer),
        cmocka_unit_test(test_partial),  cmocka_unit_test(test_windows),
        cmocka_unit_test(test_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
