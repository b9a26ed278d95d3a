/* Which mapping a statement takes: whole schedules decide, not the mapper's estimates, and the
 * host's work counts in the device's clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduler_plan.h"
#include <math.h>

static const struct way_case {
    const char *machine, *text;
} cases[] = {
    {"tests/data/machines/ports/tpu1.xml",
     "kernel c1d() {\n in I: i8[16, 64, 130]\n const F: i8[64, 64, 3]\n out O: i32[16, 64, 128]\n"
     " axes n: 16, k: 64, p: 128, c: 64, r: 3\n O[n,k,p] = 0\n"
     " O[n,k,p] += i32(I[n,c,p+r]) * i32(F[k,c,r])\n}\n"},
    {"tests/data/machines/ports/tr8.xml",
     "kernel c2d() {\n in I: i8[2, 16, 30, 30]\n const F: i8[32, 16, 3, 3]\n"
     " out O: i32[2, 32, 28, 28]\n axes n: 2, k: 32, p: 28, q: 28, c: 16, r: 3, s: 3\n"
     " O[n,k,p,q] = 0\n O[n,k,p,q] += i32(I[n,c,p+r,q+s]) * i32(F[k,c,r,s])\n}\n"},
    /* rows of 20 would fill one vector of 16 and a quarter of the next */
    {"machines/cpu-avx512.xml",
     "kernel c2d() {\n in I: f32[96, 20, 20]\n const F: f32[128, 96, 3, 3]\n"
     " out O: f32[128, 20, 20]\n axes k: 128, p: 20, q: 20, c: 96, r: 3, s: 3\n"
     " O[k,p,q] = 0\n O[k,p,q] += I[c,p+r-1,q+s-1 else 0] * F[k,c,r,s]\n}\n"},
    /* as many lanes along the batch as along the units, but then rows of weights are read in place,
     * which lie on the same sets of the cache */
    {"machines/cpu-avx512.xml",
     "kernel cell() {\n in X: f32[64, 16, 1024]\n const U: f32[3, 1024, 1024]\n"
     " in h0: f32[16, 1024]\n out y: f32[64, 16, 1024]\n"
     " recur t: 64 state h: f32[16, 1024] from h0 {\n  axes b: 16, g: 3, i: 1024, j: 1024\n"
     "  temp a: f32[16, 3, 1024]\n  a[b,g,i] = 0\n  a[b,g,i] += U[g,i,j] * h[b,j]\n"
     "  h'[b,i] = tanh(a[b,0,i] * a[b,1,i] + X[t,b,i]) + a[b,2,i]\n  y[t,b,i] = h'[b,i]\n }\n}\n"},
};

struct setup {
    struct arena a;
    struct diags d;
    struct machine *m;
    struct program *p;
    struct decider *decider;
};

static void set_up(struct setup *x, const char *machine, const char *host, const char *text) {
    arena_init(&x->a);
    diags_init(&x->d);
    x->m = plan_machine(machine, host, &x->d);
    x->p = plan_program(&x->a, text, NULL, 0, &x->d);
    x->decider = decider_open(&plan_best, 0);
    assert_true(x->m && x->p);
}

static void tear_down(struct setup *x) {
    decider_close(x->decider);
    program_free(x->p);
    machine_free(x->m);
    arena_free(&x->a);
    diags_free(&x->d);
}

/* INFINITY: it cannot be scheduled so. */
static double cost_of(const struct machine *m, const struct program *p, struct decider *decider) {
    struct diags d;
    struct cover *cover = NULL;
    struct scheduler_options options = {.threads = 1};
    diags_init(&d);
    struct schedule *s = scheduler_compile(p, m, REWRITE_REORDERS, decider, &options, &cover, &d);
    double cost = s && !d.n ? s->cost + s->host : INFINITY;
    schedule_free(s);
    cover_free(cover);
    diags_free(&d);
    return cost;
}

/* Another mapping of the sums alone makes none cheaper. */
static void other_mappings(const struct way_case *c) {
    struct setup x;
    set_up(&x, c->machine, strstr(c->machine, "cpu-") ? NULL : "machines/cpu-scalar.xml", c->text);
    double taken = cost_of(x.m, x.p, x.decider);
    int n, tried = 0;
    const struct put_question *asked = decider_asked(x.decider, &n);
    assert_true(isfinite(taken));
    for (int i = 0; i < n; i++)
        for (int k = 0; asked[i].kind == QUESTION_MAPPING && k < asked[i].n; k++) {
            struct decider *other = decider_open(&plan_best, 0);
            decider_prefer(other, QUESTION_MAPPING, asked[i].subject, asked[i].text[k]);
            double cost = cost_of(x.m, x.p, other);
            if (cost < 0.98 * taken)
                fprintf(stderr, "%s %s: %.0f, not %.0f\n", x.m->name, asked[i].text[k], cost,
                        taken);
            assert_true(cost >= 0.98 * taken);
            decider_close(other);
            tried++;
        }
    assert_true(tried > 2);
    tear_down(&x);
}

static void none_is_cheaper(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) other_mappings(&cases[i]);
}

/* A preferred answer is the heuristic's from then on, the last one where several are; it is
 * forgotten when asked to. */
static void preferred_answers(void **state) {
    (void)state;
    struct candidate c[3] = {{"a", 1, NULL}, {"b", 2, NULL}, {"c", 3, NULL}};
    struct question q = {QUESTION_MAPPING, "x", 3, 0, c, NULL};
    struct decider *d = decider_open(&plan_best, 0);
    int n;
    assert_int_equal(decide(d, &q), 0);
    assert_int_equal(decider_prefer(d, QUESTION_MAPPING, "x", "c"), 0);
    assert_int_equal(decide(d, &q), 2);
    assert_int_equal(decider_prefer(d, QUESTION_MAPPING, "x", "b"), 1);
    assert_int_equal(decide(d, &q), 1);
    assert_int_equal(decider_asked(d, &n)[2].answer, 1);
    assert_int_equal(n, 3);
    decider_again(d, 1);
    decider_asked(d, &n);
    assert_int_equal(n, 0);
    assert_int_equal(decide(d, &q), 2);
    decider_close(d);
}

/* How many mappings do what another one does with the reads of alike operands swapped. */
static int alike_on(const char *machine, const char *text) {
    struct setup x;
    int n, alike = 0, mappings = 0;
    set_up(&x, machine, NULL, text);
    struct cover *cover =
        mapper_cover_allowing(x.p, x.m, REWRITE_REORDERS, NULL, NULL, x.decider, &x.d);
    assert_non_null(cover);
    const struct put_question *asked = decider_asked(x.decider, &n);
    for (int i = 0; i < n; i++)
        for (int k = 0; asked[i].kind == QUESTION_MAPPING && k < asked[i].n; k++, mappings++)
            alike += asked[i].alike[k];
    assert_true(mappings > 1);
    cover_free(cover);
    tear_down(&x);
    return alike;
}

#define OF_TWO(op)                                                                                 \
    "kernel two() {\n in A: f32[24, 40]\n in B: f32[40]\n out C: f32[24, 40]\n"                    \
    " axes i: 24, j: 40\n C[i,j] = A[i,j] " op " B[j]\n}\n"

/* The terms of a sum may change places, those of a difference may not. */
static void swapped_reads_are_alike(void **state) {
    (void)state;
    assert_true(alike_on("machines/cpu-avx2.xml", OF_TWO("+")) > 0);
    assert_int_equal(alike_on("machines/cpu-avx2.xml", OF_TWO("-")), 0);
}

/* What is planned counts the parts of a nest, one that stays over the steps and one that comes in
 * each: else all other answers looked dearer than such a schedule, and none was tried. */
static void parts_are_planned(void **state) {
    static const char text[] =
        "kernel cell() {\n in X: i32[32, 128]\n const U: i8[3, 128, 128]\n in q0: i8[128]\n"
        " out y: i8[32, 128]\n recur t: 32 state q: i8[128] from q0 {\n"
        "  axes g: 3, i: 128, j: 128\n  temp a: i32[3, 128]\n  temp b: i32[128]\n  a[g,i] = 0\n"
        "  a[g,i] += i32(U[g,i,j]) * i32(q[j])\n"
        "  b[i] = shr(a[0,i] + a[1,i] + a[2,i] + X[t,i], 9)\n"
        "  q'[i] = i8(min(max(b[i], -128), 127))\n  y[t,i] = q'[i]\n }\n}\n";
    struct setup x;
    struct cover *cover = NULL;
    struct scheduler_options options = {.threads = 1};
    (void)state;
    set_up(&x, "machines/vdla.xml", "machines/cpu-scalar.xml", text);
    struct schedule *s =
        scheduler_compile(x.p, x.m, REWRITE_REORDERS, x.decider, &options, &cover, &x.d);
    assert_non_null(s);
    assert_true(s->planned.cycles > 0.5 * (s->cost + s->host));
    schedule_free(s);
    cover_free(cover);
    tear_down(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_cheaper),
        cmocka_unit_test(preferred_answers),
        cmocka_unit_test(swapped_reads_are_alike),
        cmocka_unit_test(parts_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
