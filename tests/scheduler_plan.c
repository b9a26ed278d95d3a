/* Schedules of small programs on processors and on an accelerator: verified, equal in meaning, of
 * bounded size, with clear errors. */
#include "tests/sample.h"
#include "tests/scheduler_plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void run_open(struct compiled *r, const struct plan_case *k, const struct approach *approach,
                     uint64_t seed, const struct binding *b, int n) {
    compiled_case(r, k, b, n);
    compiled_by(r, approach, seed, &(struct scheduler_options){.threads = 1});
}

static void check(struct compiled *r, const char *what) {
    struct verify_options options = {0, 0};
    assert_non_null(r->s);
    bool ok = schedule_verify(r->s, &options, &r->diags);
    if (!ok) {
        fprintf(stderr, "%s:\n", what);
        diags_print(&r->diags, stderr);
    }
    assert_true(ok);
}

static void schedules_verify(void **state) {
    (void)state;
    for (int i = 0; i < PLAN_CASES; i++) {
        struct compiled r;
        run_open(&r, &plan_cases[i], &plan_best, 0, NULL, 0);
        check(&r, plan_cases[i].machine);
        compiled_free(&r);
    }
}

static void any_answers_are_legal(void **state) {
    (void)state;
    for (int i = 0; i < PLAN_CASES; i++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct compiled r;
            if (!sampled((size_t)i + seed)) continue;
            run_open(&r, &plan_cases[i], &plan_any, seed, NULL, 0);
            char what[200];
            snprintf(what, sizeof what, "seed %d on %s: %.60s", (int)seed, plan_cases[i].machine,
                     plan_cases[i].text);
            check(&r, what);
            compiled_free(&r);
        }
}

static void meaning_is_kept(void **state) {
    (void)state;
    for (int i = 0; i < PLAN_CASES; i++) {
        struct compiled r;
        run_open(&r, &plan_cases[i], &plan_best, 0, NULL, 0);
        void **x = plan_data(r.p), **y = plan_data(r.s->program);
        assert_true(program_verify(r.s->program, &r.diags));
        assert_true(program_run(r.p, x, NULL, NULL, &r.diags));
        assert_true(program_run(r.s->program, y, NULL, NULL, &r.diags));
        assert_int_equal(plan_differ(r.p, x, r.s->program, y), 0);
        plan_data_free(r.p, x);
        plan_data_free(r.s->program, y);
        compiled_free(&r);
    }
}

static int64_t nodes_at(const struct plan_case *k, int64_t n) {
    const struct binding size[] = {{"M", n}, {"N", n}, {"K", n}};
    struct compiled r;
    run_open(&r, k, &plan_best, 0, size, 3);
    assert_non_null(r.s);
    int64_t nodes = schedule_nodes(r.s);
    compiled_free(&r);
    return nodes;
}

static void size_does_not_follow_extents(void **state) {
    (void)state;
    const struct plan_case cases[] = {{EDGE, gmm_i8},
                                      {"machines/cpu-avx2.xml", NULL, gmm_f32},
                                      {"machines/cpu-avx512.xml", NULL, gmm_f32}};
    for (int i = 0; i < 3; i++) {
        int64_t nodes[4];
        for (int k = 0; k < 4; k++) {
            nodes[k] = nodes_at(&cases[i], INT64_C(1024) << k);
            assert_in_range(nodes[k], 1, 64);
        }
        if (i == 0)
            assert_in_range(nodes[3], nodes[2] - 4, nodes[2] + 4); /* fills in parts or not */
        assert_in_range(nodes[3], nodes[2] * 2 / 3,
                        nodes[2] * 3 / 2); /* caches may change the shape */
    }
}

/* On registers the result stays there: no store inside the reduction. */
static int stores_in(const struct schedule *s, const struct node *node, int n, bool reduction,
                     int axis) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP)
            found += stores_in(s, node[i].loop->body, node[i].loop->nbody,
                               reduction || node[i].loop->axis == axis, axis);
        else if (node[i].kind == NODE_ISSUE && reduction) {
            const struct instr *in = &s->machine->instr[node[i].issue->instr];
            for (int k = 0; k < in->nto; k++) found += memory_is_home(s->machine, in->to[k]);
        }
    }
    return found;
}

static void results_stay_in_registers(void **state) {
    (void)state;
    const struct binding size[] = {{"M", 96}, {"N", 96}, {"K", 96}};
    struct compiled r;
    run_open(&r, &plan_cases[0], &plan_best, 0, size, 3);
    assert_non_null(r.s);
    int k = -1;
    for (int a = 0; a < r.s->program->naxes; a++)
        if (!strcmp(r.s->program->axis[a].name, "k")) k = a;
    assert_in_range(k, 0, MAX_AXES);
    assert_int_equal(stores_in(r.s, r.s->run.node, r.s->run.nnodes, false, k), 0);
    assert_true(r.s->cost < 1.35 * 96 * 96 * 96 / 8 / 2); /* two eight-wide products a cycle */
    compiled_free(&r);
}

/* Rows of 2,048 bytes fall on two sets of the innermost cache: the panel that a tile reads again
 * and again is copied. */
static void crowded_rows_are_packed(void **state) {
    (void)state;
    const struct binding size[] = {{"M", 512}, {"N", 512}, {"K", 512}};
    struct compiled r;
    compiled_open(&r, "machines/cpu-avx2.xml", NULL, NULL, gmm_f32, size, 3);
    compiled_by(&r, &plan_best, 0, NULL);
    assert_true(program_buffer(r.s->program, "B_packed") >= 0);
    compiled_free(&r);
}

/* Products of one step of the innermost loop around the sums: unrolled loops alone stand inside. */
static int64_t products_of_step(const struct node *node, int n, int64_t around) {
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        int64_t in = node[i].kind == NODE_ISSUE && node[i].issue->stmt == 1 ? around : 0;
        if (node[i].kind == NODE_LOOP) {
            const struct loop_node *l = node[i].loop;
            int64_t hi = 0;
            bool unrolled = l->kind == LOOP_UNROLLED && sx_constant(l->hi, &hi);
            in = products_of_step(l->body, l->nbody, unrolled ? around * (hi / l->step) : 1);
        }
        most = in > most ? in : most;
    }
    return most;
}

/* Rows of 4,096 bytes that are read in place, an element of each in a step of the sum, fall on one
 * set of the innermost cache: no more of them than it has ways. */
static void crowded_rows_are_few(void **state) {
    (void)state;
    const struct binding size[] = {{"M", 1024}, {"N", 16}, {"K", 1024}};
    struct compiled r;
    compiled_open(&r, "machines/cpu-avx512.xml", NULL, NULL, gmm_f32, size, 3);
    compiled_by(&r, &plan_best, 0, NULL);
    assert_in_range(products_of_step(r.s->run.node, r.s->run.nnodes, 1), 4, 12);
    compiled_free(&r);
}

static const char half_f32[] = "kernel half() {\n"
                               "  in X: f32[1024, 14, 14]  const W: f32[2048, 1024]\n"
                               "  out Y: f32[2048, 7, 7]\n"
                               "  axes k: 2048, p: 7, q: 7, c: 1024\n"
                               "  Y[k,p,q] = 0\n"
                               "  Y[k,p,q] += X[c, 2*p, 2*q] * W[k,c]\n"
                               "}\n";

/* Every second element of rows of 56 bytes: rows share lines, so that the picture stays in a cache
 * while the weights pass. Were each row to have lines of its own, refills would take a quarter of
 * the products' time. And the sums are whole: in parts, each part of a tile would begin with lines
 * that nothing has foreseen. */
static void near_rows_share_lines(void **state) {
    (void)state;
    struct compiled r;
    compiled_open(&r, "machines/cpu-avx512.xml", NULL, NULL, half_f32, NULL, 0);
    compiled_by(&r, &plan_best, 0, &(struct scheduler_options){.threads = 1});
    assert_true(r.s->cost <
                1.23 * 2048 * 49 * 1024 / 16 / 2); /* two sixteen-wide products a cycle */
    int c = 0;
    while (strcmp(r.s->program->axis[c].name, "c") != 0) c++;
    assert_int_equal(stores_in(r.s, r.s->run.node, r.s->run.nnodes, false, c), 0);
    compiled_free(&r);
}

/* Of weights that stand in one column of an instruction's tile, as many rows as the tile has come
 * home, but not the other 255 columns. */
static void one_column_takes_no_tile(void **state) {
    (void)state;
    static const char text[] = "kernel rows() {\n"
                               "  in X: i8[71, 4]  const W: i8[16, 9]  out Y: i32[16]\n"
                               "  axes i: 16, c: 4, r: 9\n"
                               "  Y[i] = 0\n"
                               "  Y[i] += i32(X[2*i + 2*r, c]) * i32(W[i, r])\n"
                               "}\n";
    struct compiled r;
    int homes = 0;
    compiled_open(&r, "tests/data/machines/ports/tpu1.xml", "cpu-scalar", NULL, text, NULL, 0);
    compiled_by(&r, &plan_best, 0, NULL);
    for (int k = 0; k < r.s->nplaces; k++) {
        const struct place *x = &r.s->place[k];
        if (x->memory != r.m->home || !strstr(x->name, "by_axes")) continue;
        assert_in_range(x->bytes, 1, 16 * 4 * 256);
        homes++;
    }
    assert_true(homes > 0);
    compiled_free(&r);
}

static int64_t nodes_of_steps(int64_t steps) {
    static const char text[] =
        "kernel scan(T, H=40) {\n"
        "  in X: f32[T, H]  const U: f32[H, H]  in h0: f32[H]  out y: f32[T, H]\n"
        "  recur t: T  state h: f32[H] from h0 {\n"
        "    axes i: H, j: H\n"
        "    temp a: f32[H]\n"
        "    a[i] = X[t,i]\n"
        "    a[i] += U[i,j] * h[j]\n"
        "    h'[i] = clip(a[i], -1, 1)\n"
        "    y[t,i] = h'[i]\n"
        "  }\n"
        "}\n";
    struct binding T = {"T", steps};
    struct compiled r;
    compiled_open(&r, "machines/cpu-avx2.xml", NULL, NULL, text, &T, 1);
    compiled_by(&r, &plan_best, 0, NULL);
    int64_t nodes = schedule_nodes(r.s);
    compiled_free(&r);
    return nodes;
}

static void recurrences_stay_loops(void **state) {
    (void)state;
    int64_t nodes = nodes_of_steps(1);
    assert_int_equal(nodes_of_steps(50), nodes);
    assert_int_equal(nodes_of_steps(1500), nodes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_verify),          cmocka_unit_test(any_answers_are_legal),
        cmocka_unit_test(meaning_is_kept),           cmocka_unit_test(size_does_not_follow_extents),
        cmocka_unit_test(results_stay_in_registers), cmocka_unit_test(crowded_rows_are_packed),
        cmocka_unit_test(near_rows_share_lines),     cmocka_unit_test(crowded_rows_are_few),
        cmocka_unit_test(one_column_takes_no_tile),  cmocka_unit_test(recurrences_stay_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
