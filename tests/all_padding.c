/* Copies that the host makes for instructions of large blocks: nothing in them twice that no
 * needle's axis wants, no padding where moves bring zeros; and what is not full is priced as the
 * moves take it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"

#define BLOCKS_256 "tests/data/machines/ports/tpu1.xml", "machines/cpu-avx2.xml"

static const char windows_text[] =
    "kernel windows(C=5, K=6, P=7, Q=9) {\n"
    "  in I: i8[C, P+2, Q+2]  const F: i8[K, C, 3, 3]  out O: i32[K, P, Q]\n"
    "  axes k: K, p: P, q: Q, c: C, r: 3, s: 3\n"
    "  O[k,p,q] = 0\n"
    "  O[k,p,q] += i32(I[c,p+r,q+s]) * i32(F[k,c,r,s])\n"
    "}\n";

/* The first mapping whose text has `mapping`, and of ways to fuse axes `fusion`. */
static int answer_with(void *s, const struct question *q, const char *mapping, const char *fusion) {
    for (int i = 0; i < q->ncandidates; i++) {
        const char *text = q->candidate[i].text;
        if (q->kind == QUESTION_MAPPING ? strstr(text, mapping) != NULL
                                        : q->kind == QUESTION_FUSION && strcmp(text, fusion) == 0)
            return i;
    }
    return plan_cheapest(s, q);
}

/* Answers: `q` alone on the instruction's columns, `c` alone on its sums. */
static int columns_of_q(void *s, const struct question *q) {
    return answer_with(s, q, "j=(q) k=(c", "c");
}

static const struct approach by_rows = {"rows",       "q alone", plan_open, free,
                                        columns_of_q, plan_stay, NULL,      false};

/* Answers: `q` alone on the instruction's rows, `c` and `s` on its sums. */
static int sums_of_s(void *s, const struct question *q) {
    return answer_with(s, q, "i=(q) j=(k) k=(c,s)", "all");
}

static const struct approach by_sums = {"sums",    "c and s", plan_open, free,
                                        sums_of_s, plan_stay, NULL,      false};

static const struct buffer *copy_of_windows(const struct compiled *x) {
    for (int b = 0; b < x->s->program->nbuffers; b++)
        if (strncmp(x->s->program->buffer[b].name, "I_by_axes", 9) == 0)
            return &x->s->program->buffer[b];
    return NULL;
}

/* q + s is wanted by q and by s, p + r as it is. */
static void windows_that_nothing_walks_stay(void **state) {
    struct compiled x;
    (void)state;
    compiled_open(&x, BLOCKS_256, NULL, windows_text, NULL, 0);
    compiled_by(&x, &by_sums, 1, NULL);
    const struct buffer *copy = copy_of_windows(&x);
    assert_non_null(copy);
    assert_int_equal(copy->elements, (7 + 2) * 3 * 9 * 5);
    plan_values(&x, 0);
    compiled_free(&x);
}

/* Blocks of 256 by 256 of which 5 by 9 are there: they come by a move that adds the zeros. */
static void homes_have_no_padding_that_moves_bring(void **state) {
    struct compiled x;
    (void)state;
    compiled_open(&x, BLOCKS_256, NULL, windows_text, NULL, 0);
    compiled_by(&x, &by_sums, 1, NULL);
    const struct buffer *copy = copy_of_windows(&x);
    assert_non_null(copy);
    int place = schedule_home(x.s, (int)(copy - x.s->program->buffer));
    assert_int_equal(x.s->place[place].bytes, copy->elements);
    compiled_free(&x);
}

static int rows_of_q(void *s, const struct question *q) {
    for (int i = 0; i < q->ncandidates; i++)
        if (q->kind == QUESTION_MAPPING && strstr(q->candidate[i].text, "i=(q) j=(k) k=(c) "))
            return i;
    return plan_cheapest(s, q);
}

static const struct approach by_columns = {"columns", "k on columns", plan_open, free,
                                           rows_of_q, plan_stay,      NULL,      false};

/* Results leave without the columns that nobody wants. */
static void results_have_no_padding_either(void **state) {
    struct compiled x;
    int results = 0;
    (void)state;
    compiled_open(&x, BLOCKS_256, NULL, windows_text, NULL, 0);
    compiled_by(&x, &by_columns, 1, NULL);
    for (int p = 0; p < x.s->nplaces; p++) {
        const struct buffer *b = &x.s->program->buffer[x.s->place[p].buffer];
        if (x.s->place[p].keep != KEEP_WORKSPACE || strncmp(b->name, "O_", 2) != 0) continue;
        assert_int_equal(x.s->place[p].bytes, b->elements * (int64_t)type_size(b->type));
        results++;
    }
    assert_int_equal(results, 1);
    plan_values(&x, 0);
    compiled_free(&x);
}

/* A block of which 9 columns are full is shifted as long as a full one, and the product that uses
 * it is only seen to be done after its latency. */
static void blocks_take_their_whole_time(void **state) {
    static const struct binding large[] = {{"C", 40}, {"K", 48}, {"P", 24}, {"Q", 24}};
    struct sim_options quick = {.no_values = true};
    struct sim_result result;
    struct compiled x;
    (void)state;
    compiled_open(&x, BLOCKS_256, NULL, windows_text, large, 4);
    compiled_by(&x, &by_rows, 1, NULL);
    assert_true(sim_run(x.s, NULL, &quick, &result, &x.diags));
    assert_true(x.s->cost > 0.8 * result.cycles && x.s->cost < 1.25 * result.cycles);
    sim_result_free(&result);
    compiled_free(&x);
}

static const char depthwise_text[] =
    "kernel depthwise(C=3, H=9, W=9, R=3, T=1, U=1, P=(H+2*T-R)/U+1, Q=(W+2*T-R)/U+1) {\n"
    "  in I: f32[C, H, W]  const F: f32[C, R, R]  out O: f32[C, P, Q]\n"
    "  axes c: C, p: P, q: Q, r: R, s: R\n"
    "  O[c,p,q] = 0\n"
    "  O[c,p,q] += I[c,U*p+r-T,U*q+s-T else 0] * F[c,r,s]\n"
    "}\n";

/* By the compiler, beside those of the program; the schedule is verified and its values compared.
 */
static int buffers_made(const char *machine, const struct binding *size, int n) {
    struct compiled x;
    compiled_open(&x, machine, NULL, NULL, depthwise_text, size, n);
    compiled_by(&x, &plan_best, 1, NULL);
    struct verify_options whole = {0, 0};
    if (!schedule_verify(x.s, &whole, &x.diags)) diags_print(&x.diags, stderr);
    assert_int_equal(x.diags.errors, 0);
    plan_values(&x, 1);
    int made = x.s->program->nbuffers - x.p->nbuffers;
    compiled_free(&x);
    return made;
}

/* A window's rows come with their zeros where a load has a mask, and rows outside as zeros alone:
 * nothing is copied. Short rows, one and several tiles with a tail, images of one row. Where a
 * border is wider than the window's reach, tiles of eight lie outside as a whole: a copy is made. */
static void windows_are_read_where_they_lie(void **state) {
    static const struct {
        struct binding size[4];
        int made; /* with eight lanes; with 16 none */
    } windows[] = {{{{"H", 7}, {"W", 7}, {"R", 3}, {"T", 1}}, 0},
                   {{{"H", 9}, {"W", 28}, {"R", 3}, {"T", 1}}, 0},
                   {{{"H", 20}, {"W", 32}, {"R", 3}, {"T", 1}}, 0},
                   {{{"H", 5}, {"W", 40}, {"R", 5}, {"T", 2}}, 0},
                   {{{"H", 6}, {"W", 17}, {"R", 3}, {"T", 3}}, 1},
                   {{{"H", 1}, {"W", 20}, {"R", 3}, {"T", 1}}, 0},
                   {{{"H", 33}, {"W", 3}, {"R", 3}, {"T", 2}}, 0}};
    (void)state;
    for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
        assert_int_equal(buffers_made("machines/cpu-avx512.xml", windows[k].size, 4), 0);
        assert_int_equal(buffers_made("machines/cpu-avx2.xml", windows[k].size, 4),
                         windows[k].made);
    }
}

/* So do windows that go in steps of two, where a load takes every second element: odd and even
 * widths, with and without borders, several tiles, a border that holds a whole tile, windows of one
 * element. Steps of three are copied. */
static void windows_may_go_in_steps(void **state) {
    static const struct binding sizes[][5] = {{{"H", 7}, {"W", 7}, {"R", 3}, {"T", 1}, {"U", 2}},
                                              {{"H", 9}, {"W", 28}, {"R", 3}, {"T", 1}, {"U", 2}},
                                              {{"H", 9}, {"W", 71}, {"R", 3}, {"T", 1}, {"U", 2}},
                                              {{"H", 20}, {"W", 70}, {"R", 3}, {"T", 0}, {"U", 2}},
                                              {{"H", 6}, {"W", 33}, {"R", 5}, {"T", 4}, {"U", 2}},
                                              {{"H", 1}, {"W", 40}, {"R", 3}, {"T", 1}, {"U", 2}},
                                              {{"H", 33}, {"W", 3}, {"R", 3}, {"T", 2}, {"U", 2}},
                                              {{"H", 8}, {"W", 65}, {"R", 1}, {"T", 0}, {"U", 2}}};
    static const struct binding thirds[] = {{"H", 9}, {"W", 70}, {"U", 3}};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        assert_int_equal(buffers_made("machines/cpu-avx512.xml", sizes[k], 5), 0);
        assert_int_equal(buffers_made("machines/cpu-avx2.xml", sizes[k], 5), 0);
    }
    assert_true(buffers_made("machines/cpu-avx512.xml", thirds, 3) > 0);
}

/* Issues whose sizes follow the innermost loop over the axis that stands around them. */
static int sizes_that_follow(const struct schedule *s, const struct node *at, int n, int var,
                             const char *axis, int *loops) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_ISSUE && var >= 0)
            for (int k = 0; k < s->machine->instr[at[i].issue->instr].nranged; k++)
                found += sx_uses(at[i].issue->size[k], var);
        if (at[i].kind != NODE_LOOP) continue;
        const struct loop_node *l = at[i].loop;
        bool over = l->kind == LOOP_SEQUENTIAL && l->axis >= 0 &&
                    strcmp(s->program->axis[l->axis].name, axis) == 0;
        *loops += over;
        found += sizes_that_follow(s, l->body, l->nbody, over ? l->var : var, axis, loops);
    }
    return found;
}

/* Only the first and the last tile of a row leave it: between them no load needs a mask that is
 * worked out anew in each turn. */
static void tiles_between_the_borders_have_no_masks(void **state) {
    static const struct binding sizes[][4] = {{{"H", 40}, {"W", 160}, {"R", 3}, {"U", 1}},
                                              {{"H", 40}, {"W", 150}, {"R", 3}, {"U", 1}},
                                              {{"H", 40}, {"W", 320}, {"R", 3}, {"U", 2}}};
    static const char *const machine[] = {"machines/cpu-avx2.xml", "machines/cpu-avx512.xml"};
    int loops = 0;
    (void)state;
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof sizes[0]; k++) {
        struct compiled x;
        compiled_open(&x, machine[k % 2], NULL, NULL, depthwise_text, sizes[k / 2], 4);
        compiled_by(&x, &plan_best, 1, NULL);
        int found = sizes_that_follow(x.s, x.s->run.node, x.s->run.nnodes, -1, "q", &loops);
        assert_int_equal(found, 0);
        plan_values(&x, 1);
        compiled_free(&x);
    }
    assert_true(loops > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_that_nothing_walks_stay),
        cmocka_unit_test(homes_have_no_padding_that_moves_bring),
        cmocka_unit_test(results_have_no_padding_either),
        cmocka_unit_test(blocks_take_their_whole_time),
        cmocka_unit_test(windows_are_read_where_they_lie),
        cmocka_unit_test(windows_may_go_in_steps),
        cmocka_unit_test(tiles_between_the_borders_have_no_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
