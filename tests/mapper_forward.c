/* Temporaries between statements that could be one: which end, that meaning stays, and that a
 * product and its sum in two statements, of program or instruction, are mapped as one. */
#include "ir/interp.h"
#include "mapper/rewrite_int.h"
#include "mapper_help.h"

static void **random_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        if (p->buffer[b].role == ROLE_TEMP) continue;
        size_t size = type_size(p->buffer[b].type);
        data[b] = calloc((size_t)p->buffer[b].elements, size);
        for (int64_t i = 0; i < p->buffer[b].elements; i++) {
            union value v = {.i = help_below(&seed, 200) - 100};
            if (type_is_float(p->buffer[b].type)) v.f = (double)(help_below(&seed, 200) - 100);
            type_store(p->buffer[b].type, (char *)data[b] + (size_t)i * size, v);
        }
    }
    return data;
}

static void data_free(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static void run(const struct program *p, void **data) {
    struct diags d;
    diags_init(&d);
    bool good = program_verify(p, &d) && program_run(p, data, NULL, NULL, &d);
    if (!good) diags_print(&d, stderr);
    assert_true(good);
    diags_free(&d);
}

static void check_same(const struct program *p, const struct program *q) {
    void **x = random_data(p, 7), **y = random_data(q, 7);
    run(p, x);
    run(q, y);
    for (int b = 0; b < p->nbuffers; b++) {
        int other = program_buffer(q, p->buffer[b].name);
        if (p->buffer[b].role == ROLE_TEMP) continue;
        assert_memory_equal(x[b], y[other],
                            (size_t)p->buffer[b].elements * type_size(p->buffer[b].type));
    }
    data_free(p, x);
    data_free(q, y);
}

#define DECLARED                                                                                   \
    "in A: i32[4,6]  in B: i32[6,5]  out C: i32[4,5]  inout E: i32[4,6]  axes i: 4, j: 5, k: 6, "  \
    "x: 4, y: 6\n"

static const struct {
    const char *body;
    int sums, all; /* how many end: what is accumulated as it is, everywhere */
} cases[] = {
    {"temp T: i32[4,5,6]; T[i,j,k] = A[i,k] * B[k,j]; C[i,j] = 0; C[i,j] += T[i,j,k]", 1, 1},
    {"temp T: i32[5,4,6]; T[j,x,y] = A[x,y] * B[y,j]; C[i,j] = 0; C[i,j] += T[j,i,k]", 1, 1},
    {"temp T: i32[4,6]; T[x,y] = A[x,y] * 3 + y; E[i,k] = max(T[i,k], 5); C[i,j] = 0", 0, 1},
    {"temp T: i32[4,6]; T[i,k] = A[i,k] * 3; E[i,k] = A[i,k] - T[i,k]; C[i,j] = 0", 0, 1},
    {"temp T: i32[4,6]; T[i,k] = A[i,k] * 3; C[i,j] = 0; C[i,j] += T[i,k] * B[k,j]", 0, 0},
    {"temp T: i32[4,6]; T[i,k] = A[i,k]; E[i,k] = T[i,k] * T[i,k]; C[i,j] = 0", 0, 0},
    {"temp T: i32[4,6]; T[i,k] = E[i,k] + 1; E[i,k] = 2; E[i,k] += T[i,k]; C[i,j] = 0", 0, 0},
    {"temp T: i32[4,6]; T[i,k] = E[i,k] + 1; E[i,k] += T[i,k]; C[i,j] = 0", 0, 0},
    {"temp T: i32[6,6]; T[y,k] = k + y; E[i,k] = T[i,k]; C[i,j] = 0", 0, 0},
    {"temp T: i16[4,6]; temp U: i32[4,6]; T[i,k] = i16(A[i,k]); U[i,k] = i32(T[i,k]) * 2; "
     "C[i,j] = 0; E[x,y] += U[x,y]",
     1, 2},
};

static void test_which(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text t = {0};
        text_printf(&t, "kernel f() { " DECLARED "%s\n}\n", cases[i].body);
        for (int all = 0; all < 2; all++) {
            struct program *p = help_program("f", t.at), *q = program_copy(p);
            assert_int_equal(program_forward(q, all), all ? cases[i].all : cases[i].sums);
            check_same(p, q);
            program_free(q);
            program_free(p);
        }
        text_free(&t);
    }
}

/* What is copied into a part of U, and who makes it. */
static const struct {
    const char *body;
    int ended;
} copied[] = {
    {"temp T: i32[4,6]; temp V: i32[4,6]; T[i,k] = A[i,k] * 3; V[i,k] = A[i,k] + 1; "
     "U[i,k] = T[i,k]; U[i + 4, k] = V[i,k]",
     2},
    {"temp T: i32[4,6]; U[x,y] = 1; T[i,k] = 0; T[i,k] += A[i,j] * B[j,k]; U[i + 4, k] = T[i,k]; "
     "U[i,k] = A[i,k]",
     1},
    {"temp T: i32[4,6]; temp V: i32[2,6]; U[x,y] = 1; V[g,k] = A[g,k]; T[g,k] = A[g,k] + 7; "
     "T[g + 2, k] = V[g,k]; U[i + 2, k] = T[i,k]",
     2},
    {"temp T: i32[4,6]; T[i,k] = A[i,k] * 3; U[x,y] = 1; U[i + 4, k] = T[i,k]", 0},
    {"temp T: i32[4,6]; U[x,y] = 1; T[i,k] = A[i,k] + U[i + 4, k]; U[i + 4, k] = T[i,k]", 0},
    {"temp T: i32[4,6]; U[x,y] = 1; T[i,k] = A[i,k] * 3; C[i,k] = U[i,k]; U[i + 4, k] = T[i,k]", 0},
    {"temp T: i32[4,6]; U[x,y] = 1; T[i,k] = A[i,k] * 3; U[i,k] = T[i,k]; C[i,k] = T[i,k]", 0},
    {"temp T: i32[6,4]; U[x,y] = 1; T[k,i] = A[i,k] * 3; U[i,k] = T[k,i]", 0},
    {"temp T: i32[4,6]; U[x,y] = 1; T[2 * g, k] = A[g,k]; T[2 * g + 1, k] = A[g + 2, k]; "
     "U[i,k] = T[i,k]",
     0},
    {"temp T: i32[4,6]; U[x,y] = 1; T[i,k] = A[i,k] * 3; U[i,k] += T[i,k]", 0},
    {"temp T: i32[4,6]; U[x,y] = 1; T[i,k] = W[i,k] * 3; U[i,k] = T[i,k]", 0},
    {"temp T: i32[5,6]; U[x,y] = 1; T[h,k] = B[k,h]; U[i,k] = T[i,k]", 0},
    {"temp T: i32[4,6]; U[i,k] = A[i,k]; T[i,k] = A[i,k] * 3; U[i + 4, k] = T[i,k]", 1},
    {"temp T: i32[4,6]; U[i,k] = A[i,k]; C[i,k] = U[i,k]; T[i,k] = A[i,k] * 3; "
     "U[i + 4, k] = T[i,k]",
     0},
};

static void test_copied(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel f() { in A: i32[4,6]  in B: i32[6,6]  inout C: i32[4,6]\n"
                    "const W: i32[4,6]  out Z: i32[8,6]  temp U: i32[8,6]\n"
                    "axes g: 2, h: 5, i: 4, j: 6, k: 6, x: 8, y: 6\n%s; Z[x,y] = U[x,y] + 1\n}\n",
                    copied[i].body);
        struct program *p = help_program("f", t.at), *q = program_copy(p);
        int ended = program_coalesce(q);
        if (ended != copied[i].ended) print_error("%s\n", copied[i].body);
        assert_int_equal(ended, copied[i].ended);
        check_same(p, q);
        program_free(q);
        program_free(p);
        text_free(&t);
    }
}

/* What U begins with too: T is put together by copies. */
static const struct {
    const char *body;
    int ended;
} absorbed[] = {
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; E[h,k] = T[h,k] * 3; U[i,k] = A[i,k]; "
     "U[g + 4, k] = D[g,k]; U[g + 6, k] = E[g,k]",
     1},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; E[h,k] = T[h,k] * 3; U[g,k] = E[g,k]; "
     "U[i + 2, k] = A[i,k]; U[g + 6, k] = D[g,k]",
     1},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; E[h,k] = T[h, k + 1 else 3]; U[i,k] = A[i,k]; "
     "U[g + 4, k] = D[g,k]; U[g + 6, k] = E[g,k]",
     0},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; E[h,k] = T[h,k] * 3; U[i,k] = A[i,k]; "
     "U[g + 4, k] = E[g,k]; U[g + 6, k] = D[g,k]",
     0},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; E[h,k] = T[h,k] * 3; U[x,y] = 1; U[i,k] = A[i,k]; "
     "U[g + 4, k] = D[g,k]",
     0},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; E[h,k] = T[h,k] * 3; U[i,k] = A[i,k]; "
     "U[g + 4, k] = D[g,k]; U[g + 6, k] = E[g,k]; U[i,k] = 2",
     0},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k] + 1; E[h,k] = T[h,k] * 3; U[i,k] = A[i,k]; "
     "U[g + 4, k] = D[g,k]; U[g + 6, k] = E[g,k]",
     0},
    {"T[i,k] = A[i,k]; T[g + 4, k] = D[g,k]; D[g,k] = 5; E[h,k] = T[h,k] * 3; U[i,k] = A[i,k]; "
     "U[g + 4, k] = D[g,k]; U[g + 6, k] = E[g,k]",
     0},
};

static void test_absorbed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof absorbed / sizeof *absorbed; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel f() { in A: i32[4,6]  inout D: i32[2,6]  inout E: i32[6,6]\n"
                    "out Z: i32[8,6]  temp T: i32[6,6]  temp U: i32[8,6]\n"
                    "axes g: 2, h: 6, i: 4, k: 6, x: 8, y: 6\n%s; Z[x,y] = U[x,y] + 1\n}\n",
                    absorbed[i].body);
        struct program *p = help_program("f", t.at), *q = program_copy(p);
        int ended = program_absorb(q);
        if (ended != absorbed[i].ended) print_error("%s\n", absorbed[i].body);
        assert_int_equal(ended, absorbed[i].ended);
        check_same(p, q);
        program_free(q);
        program_free(p);
        text_free(&t);
    }
}

/* Y is copied out of three blocks T[b,p,l] of four; which statements are left, and what the last
 * but one says. */
static const struct {
    const char *body;
    int left;
    const char *says;
} blocks[] = {
    {"Z[k,p] = max(Y[k,p], 5) * F[k]", 2, "Z[4 * b + l, p] = max(T[b, p, l], 5) * F[4 * b + l]"},
    {"temp U: i32[12,7]; U[k,q] = Y[k,q] * F[k]; Z[k,p] = max(U[k,p], 0)", 3,
     "U[b, q, l] = T[b, q, l] * F[4 * b + l]"},
    {"temp U: i32[12,7]; U[k,q] = Y[k,q] * F[k]; Z[k,p] = 3; Z[m,p] += U[k,p] * F[m]", 4,
     "Z[k, p] = 3"},
    {"Z[m,p] = 0; Z[m,p] += Y[k,p] * W[m,k]", 3, "Z[m, p] = 0"},
    {"Z[m,p] = 0; Z[m,p] += Y[k, p + r - 1 else 2] * W[m,k]", 3, "Z[m, p] = 0"},
    /* as it is: read twice, by no whole axis, twice by one, changed before, or made elsewhere too
     */
    {"Z[k,p] = Y[k,p] * Y[k,p]", 3, NULL},
    {"Z[k,p] = 1; Z[n,p] = Y[n + 2, p]", 4, NULL},
    {"Z[k,p] = 1; Z[k,p] += Y[k,p]", 4, NULL},
    {"T[b,p,l] = 1; Z[k,p] = Y[k,p]", 4, NULL},
    {"Y[k,0] = 1; Z[k,p] = Y[k,p]", 4, NULL},
    {"Z[k,p] = Y[k,p] + k", 3, NULL},
};

static void test_blocks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct text t = {0}, says = {0};
        int last;
        text_printf(
            &t,
            "kernel f() { in A: i32[12,7]  in F: i32[12]  in W: i32[12,12]  out Z: i32[12,7]\n"
            "temp T: i32[3,7,4]  temp Y: i32[12,7]\n"
            "axes b: 3, l: 4, k: 12, m: 12, n: 10, p: 7, q: 7, r: 3\n"
            "T[b,p,l] = A[4 * b + l, p] - 3; Y[4 * b + l, p] = T[b,p,l]; %s\n}\n",
            blocks[i].body);
        struct program *p = help_program("f", t.at), *q = program_copy(p);
        int gone = blocks_hand_on(q, 0, 2, false, &last);
        stmt_print(q, &q->stmt[q->nstmts > 2 ? q->nstmts - 2 : 1], &says, NULL);
        if (q->nstmts != blocks[i].left) print_error("%s: %s\n", blocks[i].body, says.at);
        assert_int_equal(q->nstmts, blocks[i].left);
        assert_int_equal(gone, blocks[i].says != NULL);
        if (gone) assert_string_equal(says.at, blocks[i].says);
        check_same(p, q);
        text_free(&says);
        program_free(q);
        program_free(p);
        text_free(&t);
    }
}

/* Equalities between axes: how many axes end, and the statement behind it. */
static const struct {
    const char *body;
    int gone;
    const char *says;
} equalities[] = {
    {"C[i,j] += A[i,k] * B[k,j] where k == i", 1, "C[i, j] += A[i, i] * B[i, j]"},
    {"C[i,j] += A[i,k] * B[k,j] where k <= i and i <= k", 1, "C[i, j] += A[i, i] * B[i, j]"},
    {"C[i,j] += A[i,k] * B[k,j] where i == j", 1, "C[j, j] += A[j, k] * B[k, j]"},
    {"C[i,j] += A[i,k] * B[k,j] where k == 2*j + 1", 1,
     "C[i, j] += A[i, 2 * j + 1] * B[2 * j + 1, j] where -2 * j + 4 >= 0"},
    {"C[i,j] += A[i,k] * B[k,j] where 2*k == 2*i + 2 and j < k", 1,
     "C[i, j] += A[i, i + 1] * B[i + 1, j] where i - j >= 0"},
    {"C[i,j] += A[i,k] * B[k,j] where i == j and k == j + 1", 2,
     "C[j, j] += A[j, j + 1] * B[j + 1, j]"},
    {"C[i,j] += A[i,k] where x == k", 1, ""},
    {"C[i,j] += A[i,k] + k where k == i", 1, ""},
    {"C[i,j] += A[i,k] + k where k == i + 1", 1, ""},
    {"C[i,j] += A[i,k] + k where 2*k == 3*i", 0, ""},
    {"C[i,j] += A[i,j] where x == y", 1, ""},
    {"C[i,j] += A[i,k] where k == i + 40", 1, ""},
    {"C[i,j] += A[i,k] where k == 3", 1, ""},
};

static void test_equalities(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof equalities / sizeof *equalities; i++) {
        struct text t = {0}, says = {0};
        text_printf(&t,
                    "kernel f() { in A: i32[4,6]  in B: i32[6,6]  inout C: i32[4,6]\n"
                    "axes i: 4, j: 4, k: 6, x: 3, y: 9\n%s\n}\n",
                    equalities[i].body);
        struct program *p = help_program("f", t.at), *q = program_copy(p);
        int gone = program_equate(q);
        stmt_print(q, &q->stmt[0], &says, NULL);
        if (gone != equalities[i].gone || !strstr(says.at, equalities[i].says))
            print_error("%s: %s\n", equalities[i].body, says.at);
        assert_int_equal(gone, equalities[i].gone);
        assert_non_null(strstr(says.at, equalities[i].says));
        struct items all = {0, 1};
        assert_int_equal(items_equal_by(p, all, q, all, LAWS_EXACT, 0).evidence, EVIDENCE_PROVED);
        check_same(p, q);
        text_free(&says);
        program_free(q);
        program_free(p);
        text_free(&t);
    }
}

static int mapped(const struct machine *m, const char *instr, const char *text) {
    struct program *p = help_program("f", text);
    program_forward(p, false);
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true, .certify_all = true});
    int n = 0;
    for (int i = 0; i < f->nmappings; i++)
        n += f->mapping[i].instr == machine_instr(m, instr) && f->mapping[i].certified;
    findings_free(f);
    program_free(p);
    return n;
}

/* The instruction `two` of the machine is written in two statements. */
static void test_mapped(void **state) {
    static const char one[] = "kernel f() { in A: i64[4,6]  in B: i64[6,5]  inout C: i64[4,5]\n"
                              " axes i: 4, j: 5, k: 6\n C[i,j] += A[i,k] * B[k,j]\n}\n",
                      two[] = "kernel f() { in A: i64[4,6]  in B: i64[6,5]  inout C: i64[4,5]\n"
                              " temp T: i64[4,5,6]  axes i: 4, j: 5, k: 6\n"
                              " T[i,j,k] = A[i,k] * B[k,j]\n C[i,j] += T[i,j,k]\n}\n";
    struct machine *m = help_machine("tests/data/machines/mapper/tiny.xml");
    (void)state;
    int n = mapped(m, "vector", one);
    assert_true(n > 0);
    assert_int_equal(mapped(m, "vector", two), n);
    assert_int_equal(mapped(m, "two", one), n);
    assert_int_equal(mapped(m, "two", two), n);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which),      cmocka_unit_test(test_copied),
        cmocka_unit_test(test_absorbed),   cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_equalities), cmocka_unit_test(test_mapped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
