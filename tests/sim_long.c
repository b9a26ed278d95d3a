/* Long programs are scheduled as short ones are: how many statements stand before or behind one
 * does not decide whether an instruction executes it. */
#include "tests/scheduler_plan.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* Sums of products, then `n` elementwise statements. */
static char *product_chain(struct arena *a, int n) {
    struct text t = {0};
    text_printf(&t, "kernel chain() {\n  in A: f32[64, 64]  const B: f32[64, 64]\n"
                    "  out O: f32[64, 64]\n");
    for (int i = 0; i < n; i++) text_printf(&t, "  temp T%d: f32[64, 64]\n", i);
    text_printf(&t, "  axes i: 64, j: 64, k: 64\n"
                    "  T0[i,j] = 0\n  T0[i,j] += A[i,k] * B[k,j]\n");
    for (int i = 1; i < n; i++)
        text_printf(&t, "  T%d[i,j] = %s(T%d[i,j], %d)\n", i, i % 2 ? "max" : "min", i - 1,
                    i % 2 ? i - n : n - i);
    text_printf(&t, "  O[i,j] = T%d[i,j] + 1\n}\n", n - 1);
    char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

/* Convolutions one behind the other: each wants a layout of what it reads. */
static char *convolutions(struct arena *a, int n) {
    struct text t = {0};
    text_printf(&t, "kernel convs() {\n  in T0: f32[16, 5, 6]  out O: f32[16, 5, 6]\n");
    for (int i = 1; i <= n; i++)
        text_printf(&t, "  const F%d: f32[16, 16, 3, 3]  temp T%d: f32[16, 5, 6]\n", i, i);
    text_printf(&t, "  axes k: 16, c: 16, p: 5, q: 6, r: 3, s: 3\n");
    for (int i = 1; i <= n; i++)
        text_printf(&t,
                    "  T%d[k,p,q] = 0\n"
                    "  T%d[k,p,q] += T%d[c,p+r-1,q+s-1 else 0] * F%d[k,c,r,s]\n",
                    i, i, i - 1, i);
    text_printf(&t, "  O[k,p,q] = T%d[k,p,q] + 1\n}\n", n);
    char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

/* Products one beside the other, of a type that the instructions have not: each is rewritten, with
 * axes of its own. */
static char *products_bf16(struct arena *a, int n) {
    struct text t = {0};
    text_printf(&t, "kernel products() {\n");
    for (int i = 0; i < n; i++)
        text_printf(&t, "  in A%d: bf16[16, 16]  const B%d: bf16[16, 16]  out C%d: f32[16, 16]\n",
                    i, i, i);
    text_printf(&t, "  axes i: 16, j: 16, k: 16\n");
    for (int i = 0; i < n; i++)
        text_printf(&t, "  C%d[i,j] = 0\n  C%d[i,j] += f32(A%d[i,k]) * f32(B%d[k,j])\n", i, i, i,
                    i);
    text_printf(&t, "}\n");
    char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

static int on_fallback(const struct node *node, int n) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        found += node[i].kind == NODE_FALLBACK;
        if (node[i].kind == NODE_LOOP)
            found += on_fallback(node[i].loop->body, node[i].loop->nbody);
    }
    return found;
}

static void check(const char *machine, char *(*make)(struct arena *, int), int n, bool values) {
    struct arena arena;
    struct compiled x;
    struct sim_result r;
    struct sim_options options = {.no_values = !values};
    arena_init(&arena);
    compiled_open(&x, machine, NULL, NULL, make(&arena, n), NULL, 0);
    compiled_by(&x, &plan_best, 0, NULL);
    if (x.diags.n) diags_print(&x.diags, stderr);
    assert_int_equal(x.diags.n, 0);
    int copies = on_fallback(x.s->run.node, x.s->run.nnodes);
    void **got = plan_data(x.s->program), **want = plan_data(x.p);
    assert_true(sim_run(x.s, got, &options, &r, &x.diags));
    assert_int_equal(r.macs_on[x.m->ninstrs], 0);
    assert_true(copies == 0 || make != product_chain);
    if (values) {
        assert_true(program_run(x.p, want, NULL, NULL, &x.diags));
        assert_int_equal(plan_differ(x.p, want, x.s->program, got), 0);
    }
    sim_result_free(&r);
    plan_data_free(x.p, want);
    plan_data_free(x.s->program, got);
    compiled_free(&x);
    arena_free(&arena);
}

static void chains_behind_a_product(void **state) {
    static const int length[] = {16, 17, 64, 200};
    (void)state;
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        check("machines/cpu-avx2.xml", product_chain, length[i], i < 2);
        check("machines/cpu-avx512.xml", product_chain, length[i], i < 2);
    }
}

static void chains_of_convolutions(void **state) {
    (void)state;
    check("machines/cpu-avx2.xml", convolutions, 40, false);
    check("machines/cpu-avx512.xml", convolutions, 40, false);
}

static void products_that_are_rewritten(void **state) {
    (void)state;
    check("machines/cpu-avx2.xml", products_bf16, 40, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains_behind_a_product),
                                       cmocka_unit_test(products_that_are_rewritten),
                                       cmocka_unit_test(chains_of_convolutions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
