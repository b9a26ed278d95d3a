/* Instructions of several statements: which statements they execute and which not, that covers take
 * them where they are cheaper, and that what is scheduled is verified and gives the interpreter's
 * values; schedules that name other statements are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"

static const char machine[] = "tests/data/machines/fused.xml";

#define DENSE                                                                                      \
    "  in A: f32[M, K]  const B: f32[K, N]  const b: f32[N]  out C: f32[M, N]  temp t: f32[M, "    \
    "N]\n"                                                                                         \
    "  axes i: M, j: N, k: K, x: M, y: N\n"
#define ROWS                                                                                       \
    "  in X: f32[M, N]  out Y: f32[M, N]  temp m: f32[M]  temp e: f32[M, N]  temp s: f32[M]\n"     \
    "  axes r: M, j: N, l: N, q: M\n"

static const struct {
    const char *instr, *text;
    int mapped; /* statements in one mapping at least; 0: there is none */
} forms[] = {
    {"mbr", DENSE "t[i,j] = 0\n t[i,j] += A[i,k] * B[k,j]\n C[i,j] = max(t[i,j] + b[j], 0)\n", 3},
    {"mbr", DENSE "t[x,y] = 0\n t[i,j] += B[k,j] * A[i,k]\n C[x,y] = max(0, b[y] + t[x,y])\n", 3},
    /* another operation, another order, a sum that is needed elsewhere, no fill, another index */
    {"mbr", DENSE "t[i,j] = 0\n t[i,j] += A[i,k] * B[k,j]\n C[i,j] = min(t[i,j] + b[j], 0)\n", 0},
    {"mbr", DENSE "t[i,j] = 1\n t[i,j] += A[i,k] * B[k,j]\n C[i,j] = max(t[i,j] + b[j], 0)\n", 0},
    {"mbr",
     DENSE "temp u: f32[M, N]\n t[i,j] = 0\n t[i,j] += A[i,k] * B[k,j]\n u[i,j] = t[i,j] * 2\n"
           "C[i,j] = max(t[i,j] + b[j], 0)\n C[i,j] += u[i,j]\n",
     0},
    {"mbr", DENSE "t[i,j] = b[j]\n t[i,j] += A[i,k] * B[k,j]\n C[i,j] = max(t[i,j], 0)\n", 0},
    {"softmax",
     ROWS "m[r] = -inf\n m[r] max= X[r,j]\n e[r,j] = exp(X[r,j] - m[r])\n s[r] = 0\n"
          "s[r] += e[r,j]\n Y[r,j] = e[r,j] / s[r]\n",
     6},
    {"softmax",
     ROWS "s[q] = 0\n m[r] = -inf\n m[q] max= X[q,l]\n e[r,j] = exp(X[r,j] - m[r])\n"
          "s[r] += e[r,l]\n Y[q,j] = e[q,j] / s[q]\n",
     6},
    {"mo", DENSE "C[x,y] = 0\n C[i,j] += A[i,k] * B[k,j]\n", 2},
    {"mo", DENSE "C[x,y] = b[y]\n C[i,j] += A[i,k] * B[k,j]\n", 0},
    {"softmax", /* the maximum is that of another row's elements: m[l], not m[r] */
     "  in X: f32[N, N]  out Y: f32[N, N]  temp m: f32[N]  temp e: f32[N, N]  temp s: f32[N]\n"
     "  axes r: N, j: N\n"
     "m[r] = -inf\n m[r] max= X[r,j]\n e[r,j] = exp(X[r,j] - m[j])\n s[r] = 0\n"
     "s[r] += e[r,j]\n Y[r,j] = e[r,j] / s[r]\n",
     0},
    {"softmax", /* what it reads is not what was summed */
     ROWS "  in Z: f32[M, N]\n m[r] = -inf\n m[r] max= Z[r,j]\n e[r,j] = exp(X[r,j] - m[r])\n"
          "s[r] = 0\n s[r] += e[r,j]\n Y[r,j] = e[r,j] / s[r]\n",
     0},
};

static const int64_t sizes[][3] = {{16, 16, 16}, {7, 20, 10}, {33, 17, 1}, {1, 1, 5}, {5, 64, 16}};

static struct binding size_of(const int64_t *s, int k) {
    static const char *const name[] = {"M", "N", "K"};
    return (struct binding){name[k], s[k]};
}

static void open_form(struct compiled *x, int form, const int64_t *s) {
    char text[2048];
    struct binding b[3] = {size_of(s, 0), size_of(s, 1), size_of(s, 2)};
    snprintf(text, sizeof text, "kernel f(M, N, K) {\n%s}\n", forms[form].text);
    compiled_open(x, machine, NULL, NULL, text, b, 3);
}

static int most_mapped(const struct compiled *x, const char *instr, char *why, size_t n) {
    struct map_options o = {.certify_all = true};
    struct findings *f = mapper_find(x->p, x->m, &o);
    int most = 0;
    for (int i = 0; i < f->nmappings; i++) {
        if (f->mapping[i].instr != machine_instr(x->m, instr)) continue;
        assert_true(f->mapping[i].certified);
        if (f->mapping[i].nalso + 1 > most) most = f->mapping[i].nalso + 1;
    }
    for (int i = 0; i < f->nfailures && !*why; i++)
        if (f->failure[i].instr == machine_instr(x->m, instr))
            snprintf(why, n, "%s", f->failure[i].reason);
    findings_free(f);
    return most;
}

static void test_which(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct compiled x;
        char why[1024] = "";
        open_form(&x, (int)i, sizes[0]);
        assert_int_equal(most_mapped(&x, forms[i].instr, why, sizeof why), forms[i].mapped);
        compiled_free(&x);
    }
}

/* What an instruction does not hold in one issue is refused, and says so. */
static void test_whole(void **state) {
    static const int64_t long_sum[3] = {16, 16, 17}, long_row[3] = {3, 65, 1};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct compiled x;
        char why[1024] = "";
        open_form(&x, k ? 6 : 0, k ? long_row : long_sum);
        assert_int_equal(most_mapped(&x, k ? "softmax" : "mbr", why, sizeof why), 0);
        assert_non_null(strstr(why, "one issue must have all of this axis"));
        compiled_free(&x);
    }
}

static int statements_of(const struct node *node, int n, int most) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP)
            most = statements_of(node[k].loop->body, node[k].loop->nbody, most);
        else if (node[k].kind == NODE_ISSUE && node[k].issue->nalso + 1 > most)
            most = node[k].issue->nalso + 1;
    }
    return most;
}

static void check_values(struct compiled *x) {
    struct text text = {0};
    struct verify_options all = {.trips = 0}, some = {.trips = 2};
    bool good = cover_verify(x->c, x->m, &x->diags) && schedule_verify(x->s, &all, &x->diags) &&
                schedule_verify(x->s, &some, &x->diags);
    if (!good) diags_print(&x->diags, stderr);
    assert_true(good);
    plan_values(x, 0);
    schedule_print(x->s, &text);
    struct source source = {"x.sched", text.at, text.n, 1, 1};
    struct schedule *again = schedule_parse(x->m, &source, &x->diags);
    struct text twice = {0};
    assert_non_null(again);
    schedule_print(again, &twice);
    assert_string_equal(text.at, twice.at);
    schedule_free(again);
    text_free(&twice);
    text_free(&text);
}

static void test_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes && forms[i].mapped; k++)
            for (uint64_t seed = 0; seed < 4; seed++) {
                struct compiled x;
                struct scheduler_options options = {0};
                open_form(&x, (int)i, sizes[k]);
                compiled_by(&x, seed ? &plan_any : &plan_best, seed, &options);
                if (!seed && sizes[k][1] > 1)
                    assert_int_equal(statements_of(x.s->run.node, x.s->run.nnodes, 0),
                                     forms[i].mapped);
                check_values(&x);
                compiled_free(&x);
            }
}

/* Sums longer than an issue go to the simple instruction, and the rest to the fallback. */
static void test_apart(void **state) {
    static const int64_t long_sum[3] = {20, 20, 40};
    struct compiled x;
    struct scheduler_options options = {0};
    (void)state;
    open_form(&x, 0, long_sum);
    compiled_by(&x, &plan_best, 0, &options);
    assert_int_equal(statements_of(x.s->run.node, x.s->run.nnodes, 0), 1);
    check_values(&x);
    compiled_free(&x);
}

static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    if (!at) return NULL;
    char *out = malloc(strlen(text) + strlen(to) + 1);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

static bool verified(struct compiled *x, const char *text) {
    struct source source = {"x.sched", text, strlen(text), 1, 1};
    struct diags d;
    struct verify_options all = {.trips = 0};
    diags_init(&d);
    struct schedule *s = schedule_parse(x->m, &source, &d);
    bool good = s && schedule_verify(s, &all, &d);
    schedule_free(s);
    diags_free(&d);
    return good;
}

/* The verifier sees what an issue does not do. */
static void test_mutants(void **state) {
    static const struct {
        int form;
        const char *from, *to;
    } mutant[] = {
        {0, "do 2 after 0, 1", "do 2 after 1, 0"},
        {0, "do 2 after 0, 1", "do 2 after 0"},
        {0, "do 2 after 0, 1", "do 2"},
        {0, "do 2 after 0, 1", "do 1 after 0, 2"},
        {0, "do 2 after 0, 1", "do 2 after 0, 0"},
        {0, "k: k", "k: -"},
        {0, "k = 0", "k = 1"},
        {0, "max(t", "min(t"},
        {0, "t[i, j] = 0", "t[i, j] = 1"},
        {0, "A[i, k] * B[k, j]", "A[i, k] * B[k, j] * 2"},
        {6, "after 0, 1, 2, 3, 4", "after 0, 1, 2, 4, 3"},
        {6, "max= X[r, j]", "min= X[r, j]"},
        {6, "X[r, j] - m[r]", "m[r] - X[r, j]"},
        {6, "e[r, j] / s[r]", "s[r] / e[r, j]"},
        {6, "N = 16", "N = 15"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof mutant / sizeof *mutant; i++) {
        struct compiled x;
        struct text text = {0};
        struct scheduler_options options = {0};
        open_form(&x, mutant[i].form, sizes[0]);
        compiled_by(&x, &plan_best, 0, &options);
        schedule_print(x.s, &text);
        assert_true(verified(&x, text.at));
        char *wrong = replaced(text.at, mutant[i].from, mutant[i].to);
        if (!wrong) fprintf(stderr, "'%s' is not in\n%s", mutant[i].from, text.at);
        assert_non_null(wrong);
        if (verified(&x, wrong)) fprintf(stderr, "'%s' is accepted\n", mutant[i].to);
        assert_false(verified(&x, wrong));
        free(wrong);
        text_free(&text);
        compiled_free(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_which), cmocka_unit_test(test_whole),
                                       cmocka_unit_test(test_values), cmocka_unit_test(test_apart),
                                       cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
