/* How many mappings of a 16x16x16 matrix product the operators have, what each validity rule leaves
 * of all assignments, and that all are certified. The counts are those of docs/mapping.md. */
#include "mapper_help.h"

#define MATMUL "tests/data/machines/mapper/matmul16.xml"

static const struct {
    const char *name;
    int count;
} table[] = {
    {"gmv", 1},  {"gmm", 1},  {"c1d", 9},  {"c2d", 49},  {"c3d", 225}, {"t2d", 21},
    {"grp", 49}, {"dil", 49}, {"dep", 21}, {"cap", 675}, {"bcv", 21},  {"gfc", 1},
};
enum { OPERATORS = sizeof table / sizeof *table };

static int count(const struct program *p, const struct machine *m) {
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true});
    assert_false(f->bounded);
    assert_true(f->seconds_find < 1);
    int n = f->distinct;
    findings_free(f);
    return n;
}

static void test_counts(void **state) {
    struct machine *m = help_machine(MATMUL);
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        struct program *p = help_operator(table[i].name);
        assert_int_equal(count(p, m), table[i].count);
        program_free(p);
    }
    machine_free(m);
}

/* MATMUL with this product. */
static struct machine *machine_with(const char *kernel) {
    char *text = help_text(MATMUL), *from = strstr(text, "kernel mm()"),
         *to = strstr(from, "</semantics>");
    struct text all = {0};
    struct diags d;
    text_append(&all, text, (size_t)(from - text));
    text_printf(&all, "%s%s", kernel, to);
    diags_init(&d);
    struct machine *m = machine_parse("product.xml", all.at, all.n, NULL, &d);
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    text_free(&all);
    free(text);
    return m;
}

/* Exchanging the factors and transposing the result is one mapping only where the instruction's
 * axes have the same sizes, step by step. */
static void test_exchanges(void **state) {
    static const struct {
        const char *sizes;
        int count;
    } cases[] = {{"I=4..16, J=4..16", 1},
                 {"I=4..16 step 4, J=4..16 step 4", 1},
                 {"I=4..16 step 4, J=4..16 step 2", 2},
                 {"I=4..16, J=4..12", 2},
                 {"I=4..16, J=8..16", 2}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char kernel[400];
        snprintf(kernel, sizeof kernel,
                 "kernel mm(%s) { in A: f16[I,16]  in B: f16[16,J]  inout C: f32[I,J]  "
                 "axes i: I, j: J, k: 16\n C[i,j] += f32(A[i,k]) * f32(B[k,j]) }",
                 cases[k].sizes);
        struct machine *m = machine_with(kernel);
        struct program *p = help_operator("gmm");
        assert_int_equal(count(p, m), cases[k].count);
        program_free(p);
        machine_free(m);
    }
}

/* What each rule leaves: in the scatter form V3 refuses 28 of 49 sets. */
static void test_totals(void **state) {
    struct machine *m = help_machine(MATMUL);
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        struct program *p = help_operator(table[i].name);
        struct findings *f =
            mapper_find(p, m, &(struct map_options){.all = true, .certify_all = true});
        const struct map_totals *t = &f->totals;
        bool scatter = strcmp(table[i].name, "t2d") == 0;
        assert_int_equal(t->bindings, 2);
        for (int k = 1; k <= STAGE_COUPLED; k++) assert_true(t->count[k] <= t->count[k - 1]);
        assert_int_equal(t->distinct[STAGE_FULL], scatter ? 49 : table[i].count);
        assert_int_equal(t->distinct[STAGE_COUPLED], table[i].count);
        assert_int_equal(t->count[STAGE_COUPLED], f->nmappings);
        assert_int_equal(t->certified, f->nmappings);
        assert_int_equal(t->count[STAGE_INIT], scatter ? 0 : f->nmappings);
        findings_free(f);
        program_free(p);
    }
    machine_free(m);
}

/* Axes of extent 1 take no part: a convolution of one image has the mappings of its other axes. */
static void test_unit_axes(void **state) {
    struct machine *m = help_machine(MATMUL);
    (void)state;
    struct program *p = help_program(
        "unit",
        "kernel c(N=1, C=64, K=64, P=56, Q=56, R=3, S=3) {\n"
        "  in I: f16[N, C, P+R-1, Q+S-1]  const F: f16[K, C, R, S]  out O: f32[N, K, P, Q]\n"
        "  axes n: N, k: K, p: P, q: Q, c: C, r: R, s: S\n"
        "  O[n,k,p,q]  = 0\n"
        "  O[n,k,p,q] += f32(I[n,c,p+r,q+s]) * f32(F[k,c,r,s])\n}\n");
    assert_int_equal(count(p, m), 3 * 1 * 7);
    program_free(p);
    machine_free(m);
}

static void test_bound(void **state) {
    struct machine *m = help_machine(MATMUL);
    struct program *p = help_operator("c3d");
    (void)state;
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true, .steps = 50});
    assert_true(f->bounded);
    assert_true(f->distinct < 225);
    findings_free(f);
    f = mapper_find(p, m, &(struct map_options){0});
    assert_true(f->nmappings > 0 && f->nmappings <= 8);
    for (int k = 1; k < f->nmappings; k++)
        assert_true(f->mapping[k].cost + f->mapping[k].copies >=
                    f->mapping[k - 1].cost + f->mapping[k - 1].copies);
    findings_free(f);
    program_free(p);
    machine_free(m);
}

/* The zero fill belongs to the accumulation; a fill with another value, or one that is read in
 * between, does not. */
static void test_fill(void **state) {
    static const struct {
        const char *fill, *between;
        int init;
    } cases[] = {{"0", "", 0},
                 {"1", "", -1},
                 {"0", "D[i,j] = C[i,j]", -1},
                 {"0", "D[i,j] = f32(A[i,j])", 0}};
    struct machine *m = help_machine(MATMUL);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel f() { in A: f16[32,32]  in B: f16[32,32]  out C: f32[32,32]  out D: "
                    "f32[32,32]\n"
                    "  axes i: 32, j: 32, k: 32\n  C[i,j] = %s\n  %s\n  C[i,j] += f32(A[i,k]) * "
                    "f32(B[k,j])\n  %s\n}\n",
                    cases[i].fill, cases[i].between, *cases[i].between ? "" : "D[i,j] = C[i,j]");
        struct program *p = help_program("fill", t.at);
        struct findings *f = mapper_find(p, m, &(struct map_options){0});
        int at = 0;
        while (at < f->nmappings && f->mapping[at].instr != machine_instr(m, "mm")) at++;
        assert_true(at < f->nmappings);
        assert_int_equal(f->mapping[at].init, cases[i].init);
        findings_free(f);
        program_free(p);
        text_free(&t);
    }
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_totals), cmocka_unit_test(test_unit_axes),
        cmocka_unit_test(test_bound),  cmocka_unit_test(test_fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
