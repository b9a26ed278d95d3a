/* Why there is no mapping, in words that name both sides; bounded in number; the deepest first. */
#include "mapper_help.h"

static const struct failure *failure_of(const struct findings *f, const struct machine *m,
                                        const char *instr, int stmt) {
    for (int i = 0; i < f->nfailures; i++)
        if (f->failure[i].stmt == stmt && !strcmp(m->instr[f->failure[i].instr].id, instr))
            return &f->failure[i];
    return NULL;
}

static void expect(const char *machine, const char *text, const char *instr, int stmt,
                   enum failure_kind kind, const char *reason) {
    struct machine *m = help_machine(machine);
    struct program *p = help_program("p", text);
    struct findings *f = mapper_find(p, m, &(struct map_options){0});
    const struct failure *x = failure_of(f, m, instr, stmt);
    assert_non_null(x);
    assert_string_equal(x->reason, reason);
    assert_string_equal(failure_name[x->kind], failure_name[kind]);
    for (int i = 1; i < f->nfailures; i++)
        assert_true(f->failure[i].depth <= f->failure[i - 1].depth);
    assert_true(f->nfailures <= 2 * m->ninstrs * p->nstmts);
    findings_free(f);
    program_free(p);
    machine_free(m);
}

#define HEAD                                                                                       \
    "kernel p() { in X: i32[32,32]  in Z: i32[32,32]  in A: i8[32,32]  in B: i8[32,32]  out Y: "   \
    "i32[32,32]  axes i: 32, j: 32, k: 32\n"

static void test_kinds(void **state) {
    static const char edge[] = "machines/edge16.xml";
    (void)state;
    expect(edge, "kernel p() { in X: f32[32]  out Y: f32[32]  axes i: 32; Y[i] = exp(X[i]) }",
           "v.add", 0, FAILURE_TYPE, "'v.add' has a result of i32 where statement 0 ('Y') has f32");
    expect(edge, HEAD "Y[i,j] = X[i,j] - Z[i,j] }", "v.add", 0, FAILURE_OPERATION,
           "'v.add' has '+' on i32 where statement 0 ('Y') has '-' on i32");
    expect(edge, HEAD "Y[i,j] = X[i,31-j] + Z[31-i,j] }", "v.add", 0, FAILURE_LIVE_OUT,
           "'v.add' has 'C' (i32) where statement 0 ('Y') has 'X' (i32); it would be overwritten "
           "in place, but is no temporary that ends there");
    expect(edge, HEAD "Y[i,j] = 0; Y[i,j] += i32(A[i,k]) * X[k,j] }", "mm16", 1, FAILURE_OPERATION,
           "'mm16' has a cast of i8 to i32 where statement 1 ('Y') has 'X' (i32)");
    expect(edge, HEAD "Y[i,j] = 0; Y[i,j] max= i32(A[i,k]) * i32(B[k,j]) }", "mm16", 1,
           FAILURE_COMBINER, "'mm16' has '+=' on i32 where statement 1 ('Y') has 'max=' on i32");
    expect(edge, HEAD "Y[i,j] = 0; Y[i,j] += i32(A[i,k]) * i32(B[k,j]) where k <= j }", "mm16", 1,
           FAILURE_EXTENT,
           "'mm16' on statement 1 ('Y'): the statement's domain is cut by a constraint");
}

/* Conditions of instructions: one that says how long an axis is makes no difference, one over
 * several axes is said. */
static void test_masks(void **state) {
    static const char masked[] = "tests/data/machines/mapper/masked.xml";
    struct machine *m = help_machine(masked);
    struct program *p = help_program("p", "kernel p() { in A: i32[21]  in B: i32[21]  out C: "
                                          "i32[21]  axes i: 21; C[i] = A[i] + B[i] }");
    struct findings *f = mapper_find(p, m, &(struct map_options){.certify_all = true});
    (void)state;
    assert_int_equal(f->nmappings, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(m->instr[f->mapping[i].instr].id, "add");
        assert_true(f->mapping[i].certified && f->mapping[i].waste == 1);
        assert_true(f->mapping[i].cost == 3);
    }
    findings_free(f);
    program_free(p);
    machine_free(m);
    expect(masked,
           "kernel p() { in A: i32[8,8]  inout C: i32[8]  axes i: 8, j: 8; C[i] += A[i,j] }",
           "triangle", 0, FAILURE_MISSING_STATEMENT,
           "'triangle' has a constraint over several axes on its domain, so it executes no "
           "statement of a program");
}

static void test_places(void **state) {
    static const char beside[] = "tests/data/machines/mapper/beside.xml";
    (void)state;
    expect(beside, "kernel p() { in A: i32[9]  out C: i32[8]  axes i: 8; C[i] = A[i+1] * A[i] }",
           "local", 0, FAILURE_MISSING_STATEMENT,
           "'local' reads operand 'A' at several places, so it executes no statement of a program");
    expect(beside, "kernel p() { in A: i32[9,2]  out C: i32[8]  axes i: 8; C[i] = A[i,1] * 2 }",
           "complex", 0, FAILURE_MISSING_STATEMENT,
           "'complex' reads operand 'A' at several places, so it executes no statement of a "
           "program");
    expect(beside, "kernel p() { in A: i32[10]  out C: i32[8]  axes i: 8; C[i] = A[i+2] - A[i] }",
           "slope", 0, FAILURE_CERTIFICATE,
           "'slope' on statement 0 ('C'): the operations, or the places that are read, differ");
}

/* A scale that the instruction's field cannot hold: -log2(0.3) is no integer. */
static void test_encodability(void **state) {
    struct machine *m = help_machine("machines/edge16.xml");
    static const char *const text[] = {
        "kernel p() { in X: i32[32,32]  out Y: i8[32,32]  axes i: 32, j: 32; Y[i,j] = "
        "i8(clip(round(f64(X[i,j]) * 0.25), -128, 127)) }",
        "kernel p() { in X: i32[32,32]  out Y: i8[32,32]  axes i: 32, j: 32; Y[i,j] = "
        "i8(clip(round(f64(X[i,j]) * 0.3), -128, 127)) }",
        "kernel p() { in X: i32[32,32]  out Y: i8[32,32]  axes i: 32, j: 32; Y[i,j] = "
        "i8(clip(round(f64(X[i,j]) * 0.25), -127, 127)) }"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct program *p = help_program("p", text[i]);
        struct findings *f = mapper_find(p, m, &(struct map_options){0});
        assert_int_equal(f->nmappings > 0, i == 0);
        if (i == 0) {
            assert_int_equal(f->mapping[0].instr, machine_instr(m, "requant"));
            assert_true(f->mapping[0].operand[1].role == OPERAND_IMM &&
                        f->mapping[0].operand[1].imm.f == 0.25);
        }
        findings_free(f);
        program_free(p);
    }
    machine_free(m);
}

static void test_softmax(void **state) {
    struct machine *m = help_machine("machines/edge16.xml");
    struct program *p = help_operator("softmax");
    (void)state;
    struct findings *f = mapper_find(p, m, &(struct map_options){0});
    assert_int_equal(f->nmappings, 0);
    for (int s = 0; s < p->nstmts; s++) {
        const struct failure *x = failure_of(f, m, "mm16", s);
        assert_non_null(x);
        assert_non_null(strstr(x->reason, "'mm16' has a result of i32 where statement"));
    }
    findings_free(f);
    program_free(p);
    machine_free(m);
}

/* What is written in place is a temporary that ends there or a copy that the schedule fills: the
 * same elements at the same place. */
static void test_in_place(void **state) {
    static const struct {
        const char *read, *head, *tail;
        bool mapped;
    } cases[] = {{"T[i,j]", "", "", true},
                 {"T[i,j]", " out W: i32[32,32] ", "  W[i,j] = T[i,j]\n", true},
                 {"T[i,31-j]", "", "", false}};
    struct machine *m = help_machine("machines/edge16.xml");
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel p() { in X: i32[32,32]  out Y: i32[32,32] %s temp T: i32[32,32]  axes "
                    "i: 32, j: 32\n"
                    "  T[i,j] = X[i,j] * 3\n; Y[i,j] = max(%s, 0)\n%s}\n",
                    cases[i].head, cases[i].read, cases[i].tail);
        struct program *p = help_program("p", t.at);
        struct findings *f = mapper_find(p, m, &(struct map_options){0});
        int found = 0;
        for (int k = 0; k < f->nmappings; k++) {
            if (f->mapping[k].stmt != 1) continue;
            found++;
            assert_int_equal(f->mapping[k].operand[1].role, OPERAND_DST);
            assert_int_equal(f->mapping[k].operand[1].read, 0);
        }
        assert_int_equal(found > 0, cases[i].mapped);
        findings_free(f);
        program_free(p);
        text_free(&t);
    }
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),   cmocka_unit_test(test_masks),
        cmocka_unit_test(test_places),  cmocka_unit_test(test_encodability),
        cmocka_unit_test(test_softmax), cmocka_unit_test(test_in_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
