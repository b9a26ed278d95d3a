/* Reductions along rows and what follows them (softmax): one pass in the nearest cache that holds
 * the rows, each register summed up across, no work of the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/scheduler_plan.h"

static const char softmax_text[] = "kernel softmax(M=64, N=1024) {\n"
                                   "  in X: f32[M, N]  out Y: f32[M, N]\n"
                                   "  axes i: M, j: N\n"
                                   "  temp m: f32[M]  temp z: f32[M]  temp E: f32[M, N]\n"
                                   "  m[i]    = -inf\n"
                                   "  m[i] max= X[i,j]\n"
                                   "  E[i,j]  = exp(X[i,j] - m[i])\n"
                                   "  z[i]    = 0\n"
                                   "  z[i]   += E[i,j]\n"
                                   "  Y[i,j]  = E[i,j] / z[i]\n"
                                   "}\n";

struct seen {
    int host, across, with_division; /* with it: loads in the innermost loop around the division */
    bool tile, inside; /* the exponentials have a tile of their own; lie where the result will */
};

static bool begins(const char *s, const char *with) {
    return !strncmp(s, with, strlen(with));
}

static void walk(const struct schedule *s, const struct node *n, int count, struct seen *x) {
    bool divides = false;
    int loads = 0;
    for (int i = 0; i < count; i++) {
        if (n[i].kind == NODE_LOOP) walk(s, n[i].loop->body, n[i].loop->nbody, x);
        x->host += n[i].kind == NODE_FALLBACK;
        if (n[i].kind != NODE_ISSUE) continue;
        const char *id = s->machine->instr[n[i].issue->instr].id;
        divides |= begins(id, "div.");
        loads += begins(id, "load.") || begins(id, "bcast.");
        x->across += strstr(id, ".across.") != NULL;
    }
    if (divides && count < 8) x->with_division = loads;
}

static struct seen look(int64_t rows, int64_t columns) {
    const struct binding size[] = {{"M", rows}, {"N", columns}};
    struct compiled x;
    struct seen seen = {0};
    struct verify_options whole = {0, 0};
    compiled_open(&x, "machines/cpu-avx2.xml", NULL, NULL, softmax_text, size, 2);
    compiled_by(&x, &plan_best, 1, &(struct scheduler_options){0});
    assert_true(rows * columns > 1 << 18 || schedule_verify(x.s, &whole, &x.diags));
    walk(x.s, x.s->run.node, x.s->run.nnodes, &seen);
    const struct program *q = x.s->program;
    for (int p = 0; p < x.s->nplaces; p++) seen.tile |= begins(x.s->place[p].name, "E.l");
    for (int k = 0; k < q->nstmts; k++)
        for (int o = 0; o < q->stmt[k].nops; o++)
            seen.inside |= q->stmt[k].op[o].code == OP_EXP &&
                           !strcmp(q->buffer[q->stmt[k].dst.buffer].name, "Y");
    compiled_free(&x);
    return seen;
}

static void rows_take_one_pass(void **state) {
    (void)state;
    struct seen x = look(512, 256);
    assert_int_equal(x.host, 0);
    assert_int_equal(x.across, 2);
    assert_true(x.inside && !x.tile);
}

static void longer_rows_do_too(void **state) {
    (void)state;
    struct seen x = look(64, 16384);
    assert_int_equal(x.host, 0);
    assert_true(x.inside && !x.tile);
}

/* The row's sum stands in a register while its row is divided. */
static void a_divisor_is_loaded_once_a_row(void **state) {
    (void)state;
    assert_int_equal(look(64, 256).with_division, 1);
}

/* What is left of a row is reduced by the same instructions. */
static void odd_rows_stay_on_instructions(void **state) {
    (void)state;
    struct seen x = look(20, 1021);
    assert_int_equal(x.host, 0);
    assert_int_equal(x.across, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_take_one_pass),
                                       cmocka_unit_test(longer_rows_do_too),
                                       cmocka_unit_test(a_divisor_is_loaded_once_a_row),
                                       cmocka_unit_test(odd_rows_stay_on_instructions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
