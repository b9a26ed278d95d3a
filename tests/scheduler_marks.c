/* Who used which piece of a memory last: whole blocks of pieces are marked at once, and every
 * answer is that of an array whose pieces are marked one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduler/clock/marks.h"
#include "tests/ir_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUES = 5, STEPS = 4000 };

/* Piece by piece. */
struct plain {
    struct granule *granule;
    int64_t *read, n;
};

static void plain_put(struct plain *p, int64_t first, int64_t last, const struct mark *x) {
    for (int64_t g = first < 0 ? 0 : first; g <= last && g < p->n; g++) {
        struct granule *is = &p->granule[g];
        int16_t queue = (int16_t)(x->queue + 1);
        if (x->kind == MARK_READER) p->read[g * QUEUES + x->queue] = x->number;
        if (x->kind == MARK_WRITER) is->wrote = x->number, is->wrote_queue = queue;
        if (x->kind == MARK_WRITTEN) is->visible = x->at, is->writer = queue;
        if (x->kind == MARK_READ && x->at >= is->read_end) is->read_end = x->at, is->reader = queue;
    }
}

static void plain_remove(struct plain *p, int64_t first, int64_t last, int queue, int64_t number) {
    for (int64_t g = first < 0 ? 0 : first; g <= last && g < p->n; g++) {
        struct granule *is = &p->granule[g];
        if (is->wrote_queue == queue + 1 && is->wrote == number) is->wrote_queue = 0;
        if (p->read[g * QUEUES + queue] == number) p->read[g * QUEUES + queue] = 0;
    }
}

static void plain_numbers(const struct plain *p, int64_t first, int64_t last, uint64_t writers,
                          uint64_t readers, int64_t *number) {
    for (int64_t g = first < 0 ? 0 : first; g <= last && g < p->n; g++)
        for (int q = 0; q < QUEUES; q++) {
            const struct granule *is = &p->granule[g];
            if (is->wrote_queue == q + 1 && writers >> q & 1 && is->wrote > number[q])
                number[q] = is->wrote;
            if (readers >> q & 1 && p->read[g * QUEUES + q] > number[q])
                number[q] = p->read[g * QUEUES + q];
        }
}

static double plain_time(const struct plain *p, int64_t first, int64_t last, uint64_t writers,
                         uint64_t readers) {
    double at = 0;
    for (int64_t g = first < 0 ? 0 : first; g <= last && g < p->n; g++) {
        const struct granule *is = &p->granule[g];
        if (is->writer && writers >> (is->writer - 1) & 1) at = fmax(at, is->visible);
        if (is->reader && readers >> (is->reader - 1) & 1) at = fmax(at, is->read_end);
    }
    return at;
}

/* ---- what is done at random ---- */

static int64_t below(uint64_t *s, int64_t n) {
    return (int64_t)(next_random(s) % (uint64_t)n);
}

static void some_range(uint64_t *s, int64_t n, int64_t *first, int64_t *last) {
    int64_t width = below(s, 3) ? below(s, 40) : below(s, n);
    *first = below(s, n + 10) - 5;
    *last = *first + width - 1;
    if (!below(s, 20)) *first = 0, *last = n - 1;
    if (!below(s, 4)) *first = *first / 64 * 64, *last = *last / 64 * 64 - 1;
}

static struct mark some_mark(uint64_t *s, int64_t step) {
    struct mark x = {.kind = (enum mark_kind)below(s, 4), .queue = (int)below(s, QUEUES)};
    if (x.kind == MARK_READER || x.kind == MARK_WRITER) x.number = step + 1;
    if (x.kind == MARK_WRITTEN || x.kind == MARK_READ) x.at = (double)(step / 2 + below(s, 300));
    return x;
}

static void same_answers(struct marks *m, const struct plain *p, uint64_t *s, int64_t step) {
    int64_t first, last, number[2][QUEUES] = {{0}};
    uint64_t writers = next_random(s) % 32, readers = below(s, 2) ? next_random(s) % 32 : 0;
    some_range(s, p->n, &first, &last);
    number[0][1] = number[1][1] = step / 2;
    marks_numbers(m, first, last, writers, readers, number[0]);
    plain_numbers(p, first, last, writers, readers, number[1]);
    assert_memory_equal(number[0], number[1], sizeof number[0]);
    double at[2] = {marks_time(m, first, last, writers, readers),
                    plain_time(p, first, last, writers, readers)};
    assert_true(at[0] == at[1]);
}

static void same_pieces(struct marks *m, const struct plain *p) {
    marks_settle(m, 0, p->n - 1);
    for (int64_t g = 0; g < p->n; g++) {
        const struct granule own = marks_granule(m, g), *a = &own, *b = &p->granule[g];
        const struct marks_page *page = marks_page(m, g);
        for (int q = 0; q < QUEUES; q++)
            assert_int_equal(page ? page->read[g % MARKS_PAGE * QUEUES + q] : 0,
                             p->read[g * QUEUES + q]);
        assert_true(a->wrote_queue == b->wrote_queue && a->wrote == b->wrote);
        assert_true(a->writer == b->writer && a->visible == b->visible);
        assert_true(a->reader == b->reader && a->read_end == b->read_end);
    }
}

static void forget(struct marks *m, struct plain *p) {
    marks_forget(m);
    memset(p->granule, 0, (size_t)p->n * sizeof *p->granule);
    memset(p->read, 0, (size_t)p->n * QUEUES * sizeof *p->read);
}

static void as_piece_by_piece(int64_t n, uint64_t seed) {
    struct plain p = {calloc((size_t)n, sizeof *p.granule),
                      calloc((size_t)n * QUEUES, sizeof *p.read), n};
    struct marks m;
    uint64_t s = seed;
    marks_open(&m, n, QUEUES);
    for (int64_t step = 0; step < STEPS; step++) {
        struct mark x = some_mark(&s, step);
        int64_t first, last;
        some_range(&s, n, &first, &last);
        marks_put(&m, first, last, &x);
        plain_put(&p, first, last, &x);
        if (!below(&s, 30)) {
            some_range(&s, n, &first, &last);
            int64_t number = step - below(&s, 9);
            marks_remove(&m, first, last, x.queue, number);
            plain_remove(&p, first, last, x.queue, number);
        }
        if (!below(&s, 300)) forget(&m, &p); /* what was made is used again */
        same_answers(&m, &p, &s, step);
        if (step % 997 == 0) same_pieces(&m, &p);
    }
    same_pieces(&m, &p);
    forget(&m, &p);
    same_pieces(&m, &p);
    same_answers(&m, &p, &s, 0);
    marks_close(&m);
    free(p.granule);
    free(p.read);
}

static void blocks_answer_as_pieces_do(void **state) {
    (void)state;
    as_piece_by_piece(1, 1);
    as_piece_by_piece(500, 2);
    as_piece_by_piece(4096, 3);
    as_piece_by_piece(5003, 4);
    as_piece_by_piece(70000, 5);
}

static double seconds_of(int64_t n) {
    struct marks m;
    struct timespec from, to;
    int64_t number[QUEUES] = {0};
    double at = 0;
    marks_open(&m, n, QUEUES);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int64_t step = 1; step <= 20000; step++) {
        struct mark all = {MARK_WRITER, 1, step, 0}, one = {MARK_READER, 2, step, 0};
        marks_put(&m, 3, n - 3, &all);
        marks_put(&m, 5 + step % (n - 8), 6 + step % (n - 8), &one);
        marks_numbers(&m, 5, n - 1, 31, 31, number);
        at += marks_time(&m, 5, n - 1, 31, 31);
        assert_true(number[1] == step && number[2] == step);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    assert_true(at == 0);
    marks_close(&m);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Piece by piece, 20,000 uses of two million pieces take more than a minute. */
static void wide_uses_cost_little(void **state) {
    (void)state;
    double few = seconds_of(1 << 13), many = seconds_of(1 << 21);
    assert_true(many < 8 * few + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_answer_as_pieces_do),
        cmocka_unit_test(wide_uses_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
