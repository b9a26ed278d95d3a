/* Recurrences: what the planner and the mapper decide about their steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/recur_help.h"

/* ---- the order in which operands lie ---- */

/* The batch is as long as a vector: lanes along it would need nothing packed, but what steps move
 * in, and what they hand on, lies in rows. */
static void lanes_lie_along_rows(void **state) {
    static const char *const cell[] = {"gru", "lstm"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct arena a;
        struct diags d;
        struct kernel **kernel;
        arena_init(&a);
        diags_init(&d);
        struct machine *m = machine_load("machines/cpu-avx512.xml", NULL, &d);
        assert_non_null(m);
        char *text = read_example(&a, "bench/recurrent.isam");
        struct source source = {"recurrent.isam", text, strlen(text), 1, 1};
        assert_true(kernel_parse(&a, &source, &kernel, &d) > k);
        assert_string_equal(kernel[k]->name, cell[k]);
        struct binding b[3] = {{"T", 8}, {"B", 16}, {"H", 512}};
        struct bindings given = {b, 3, NULL};
        struct program *p = program_bind(kernel[k], &given, NULL, &d);
        assert_non_null(p);
        struct decider *decider = decider_open(approaches[0], 0);
        struct cover *cover = mapper_cover(p, m, decider, &d);
        assert_non_null(cover);
        for (int i = 0; i < cover->nmappings; i++) { /* of what has rows of vectors */
            const struct mapping *x = &cover->mapping[i];
            const struct stmt *s = &cover->program->stmt[x->stmt];
            int last = cover->program->buffer[s->dst.buffer].ndims - 1, lanes = x->ngroups - 1;
            if (!s->scope || last < 0 || lanes < 0 || x->group[lanes].n != 1) continue;
            assert_true(access_coef(cover->program, &s->dst, last, x->group[lanes].axis[0]) == 1);
        }
        assert_true(cover->nmappings > 8);
        cover_free(cover);
        decider_close(decider);
        program_free(p);
        machine_free(m);
        diags_free(&d);
        arena_free(&a);
    }
}

/* What a step costs does not grow with the rows that other steps read; a state that the product
 * wants in another order than who writes it is turned, and nobody leaves the vectors for it. */
static void steps_cost_the_same(void **state) {
    static const char text[] =
        "kernel gru(T=4, B=16, H=1024) {\n"
        "  in x: f32[T, B, 3, H]  const U: f32[3, H, H]  in h0: f32[B, H]  out y: f32[T, B, H]\n"
        "  recur t: T state h: f32[B, H] from h0 {\n"
        "    axes b: B, g: 3, i: H, j: H\n"
        "    temp a: f32[B, 3, H] temp z: f32[B, H] temp r: f32[B, H] temp v: f32[B, H]\n"
        "    a[b,g,i] = 0\n"
        "    a[b,g,i] += U[g,i,j] * h[b,j]\n"
        "    z[b,i] = sigmoid(a[b,0,i] + x[t,b,0,i])\n"
        "    r[b,i] = sigmoid(a[b,1,i] + x[t,b,1,i])\n"
        "    v[b,i] = tanh(r[b,i] * a[b,2,i] + x[t,b,2,i])\n"
        "    h'[b,i] = v[b,i] + z[b,i] * (h[b,i] - v[b,i])\n"
        "    y[t,b,i] = h'[b,i]\n"
        "  }\n"
        "}\n";
    double cost[2];
    struct arena a;
    struct diags d;
    (void)state;
    arena_init(&a);
    diags_init(&d);
    struct machine *m = machine_load("machines/cpu-avx512.xml", NULL, &d);
    assert_non_null(m);
    for (int k = 0; k < 2; k++) {
        struct binding b = {"T", k ? 128 : 4};
        struct program *p = parse(&a, text, &b, 1, &d);
        struct schedule *s = schedule_of(p, m, approaches[0], 0, &d);
        assert_non_null(s);
        cost[k] = schedule_cost(s, NULL) / (double)b.value;
        schedule_free(s);
        program_free(p);
    }
    diags_print(&d, stderr);
    assert_int_equal(d.n, 0);
    printf("cycles a step: %.0f of 4, %.0f of 128\n", cost[0], cost[1]);
    assert_true(cost[1] < 1.01 * cost[0]);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

/* ---- what needs no step before it ---- */

/* Sums of products that stand in the steps, and before them, as the mapper has the program. */
static void count_sums(const char *text, const struct machine *m, int *inside, int *before) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    struct decider *decider = decider_open(approaches[0], 0);
    struct cover *cover = mapper_cover(p, m, decider, &d);
    assert_non_null(cover);
    *inside = *before = 0;
    for (int s = 0; s < cover->program->nstmts; s++)
        if (cover->program->stmt[s].combine == COMBINE_ADD)
            ++*(cover->program->stmt[s].scope ? inside : before);
    cover_free(cover);
    decider_close(decider);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
}

static void inputs_products_come_before_the_steps(void **state) {
    static const struct {
        const char *steps, *body;
        int inside, before;
    } body[] = {
        {"9", "w[i] = 0\n w[i] += W[i,j] * X[t,j]\n h'[i] = h[i] + w[i]\n", 0, 1},
        {"9 reverse", "w[i] = b[i]\n w[i] += W[i,j] * X[t-1,j else 0]\n h'[i] = h[i] + w[i]\n", 0,
         1},
        {"9",
         "w[i] = b[i]\n w[i] += W[i,j] * h[j]\n w[i] += W[j,i] * X[t,j]\n"
         " w[i] += W[i,j] * X[t+1,j else 0]\n h'[i] = w[i]\n",
         1, 2},
        /* a state goes in, or it is read before, or there is one step, or nothing is saved */
        {"9", "w[i] = h[i]\n w[i] += W[i,j] * X[t,j]\n h'[i] = w[i]\n", 1, 0},
        {"9", "w[i] = 0\n w[i] += W[i,j] * h[j]\n h'[i] = w[i]\n", 1, 0},
        {"9", "w[i] = 0\n v[i] = w[i]\n w[i] += W[i,j] * X[t,j]\n h'[i] = w[i] + v[i]\n", 1, 0},
        {"1", "w[i] = 0\n w[i] += W[i,j] * X[t,j]\n h'[i] = h[i] + w[i]\n", 1, 0},
        {"9", "w[i] = 0\n w[i] += X[t,j] * X[t+1,i]\n h'[i] = h[i] + w[i]\n", 1, 0},
        {"9", "w[i] = 0\n w[i] += V[i,e] * X[t,e]\n h'[i] = h[i] + w[i]\n", 1, 0},
    };
    struct diags d;
    (void)state;
    diags_init(&d);
    struct machine *m = machine_load("machines/cpu-scalar.xml", NULL, &d);
    assert_non_null(m);
    for (size_t k = 0; k < sizeof body / sizeof *body; k++) {
        struct text t = {0};
        int inside, before;
        text_printf(&t,
                    "kernel r() {\n in X: f32[10, 24]  const W: f32[24, 24]  const V: f32[24, 4]  "
                    "const b: f32[24]\n"
                    " in h0: f32[24]  out hT: f32[24]\n"
                    " recur t: %s state h: f32[24] from h0 to hT {\n axes i: 24, j: 24, e: 4\n"
                    " temp w: f32[24] temp v: f32[24]\n %s}\n}\n",
                    body[k].steps, body[k].body);
        count_sums(t.at, m, &inside, &before);
        if (inside != body[k].inside || before != body[k].before)
            print_error("%s%d in the steps, %d before\n", t.at, inside, before);
        assert_int_equal(inside, body[k].inside);
        assert_int_equal(before, body[k].before);
        struct machines all = {.at = {m}, .run = {true}, .n = 1};
        assert_int_equal(failures(t.at, &all, 0, k), 0);
        text_free(&t);
    }
    machine_free(m);
    diags_free(&d);
}

/* ---- products that read the same ---- */

static void gates_are_one_product(void **state) {
    static const struct {
        const char *body;
        int inside; /* sums of products in a step */
    } body[] = {
        {"a[i] = 0\n a[i] += A[i,j] * h[j]\n b[i] = 0\n b[i] += B[i,j] * h[j]\n"
         " c[i] = 0\n c[i] += C[i,j] * h[j]\n h'[i] = a[i] + b[i] * c[i]\n",
         1},
        /* with biases, also those of a step; of parts of one array; read before all
         * are there; beside a sum that leaves the steps */
        {"a[i] = X[t,i]\n a[i] += A[i,j] * h[j]\n b[i] = x[i]\n b[i] += B[i,j] * h[j]\n"
         " h'[i] = a[i] - b[i]\n",
         1},
        {"a[i] = 0\n a[i] += D[i,j] * h[j]\n b[i] = 0\n b[i] += D[i+24,j] * h[j]\n"
         " h'[i] = a[i] - b[i]\n",
         1},
        {"a[i] = 0\n a[i] += A[i,j] * h[j]\n c[i] = a[i] * x[i]\n b[i] = 0\n"
         " b[i] += B[i,j] * h[j]\n h'[i] = a[i] - b[i] + c[i]\n",
         1},
        {"a[i] = 0\n b[i] = 0\n a[i] += A[i,j] * h[j]\n a[i] += B[i,j] * X[t,j]\n"
         " b[i] += B[i,j] * h[j]\n h'[i] = a[i] - b[i]\n",
         1},
        /* other vectors, other weights' axes, weights of a step, what is begun late */
        {"a[i] = 0\n a[i] += A[i,j] * h[j]\n c[i] = a[i] * x[i]\n b[i] = 0\n"
         " b[i] += B[i,j] * c[j]\n h'[i] = a[i] - b[i] + c[i]\n",
         2},
        {"a[i] = 0\n a[i] += A[i,j] * h[j]\n b[i] = 0\n b[i] += B[j,i] * h[j]\n"
         " h'[i] = a[i] - b[i]\n",
         2},
        {"a[i] = 0\n a[i] += A[i,j] * h[j]\n b[i] = 0\n b[i] += E[t,i,j] * h[j]\n"
         " h'[i] = a[i] - b[i]\n",
         2},
        {"a[i] = 0\n a[i] += A[i,j] * h[j]\n b[i] = a[i]\n b[i] += B[i,j] * h[j]\n"
         " h'[i] = a[i] - b[i]\n",
         2},
    };
    struct diags d;
    (void)state;
    diags_init(&d);
    struct machine *m = machine_join("machines/edge16.xml", "machines/cpu-scalar.xml", NULL, &d),
                   *host = machine_load("machines/cpu-scalar.xml", NULL, &d);
    assert_non_null(m);
    assert_non_null(host);
    for (size_t k = 0; k < sizeof body / sizeof *body; k++) {
        struct text t = {0};
        int inside, before, apart;
        text_printf(&t,
                    "kernel r() {\n in X: i32[3, 24]  const A: i32[24, 24]  const B: i32[24, 24]\n"
                    " const C: i32[24, 24]  const D: i32[48, 24]  in E: i32[3, 24, 24]\n"
                    " const x: i32[24]  in h0: i32[24]  out hT: i32[24]\n"
                    " recur t: 3 state h: i32[24] from h0 to hT {\n axes i: 24, j: 24\n"
                    " temp a: i32[24]  temp b: i32[24]  temp c: i32[24]\n %s}\n}\n",
                    body[k].body);
        count_sums(t.at, m, &inside, &before);
        count_sums(t.at, host, &apart, &before);
        if (inside != body[k].inside) print_error("%s%d in the steps\n", t.at, inside);
        assert_int_equal(inside, body[k].inside);
        assert_true(apart > 1); /* in the host's caches nothing is brought twice */
        struct machines all = {.at = {m}, .n = 1};
        assert_int_equal(failures(t.at, &all, 0, 0), 0);
        text_free(&t);
    }
    machine_free(m);
    machine_free(host);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes_lie_along_rows),
                                       cmocka_unit_test(steps_cost_the_same),
                                       cmocka_unit_test(inputs_products_come_before_the_steps),
                                       cmocka_unit_test(gates_are_one_product)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
