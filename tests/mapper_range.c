/* Ranges of integers and exact floats, and what mappings they allow: a sum that may overflow, or a
 * float that may be rounded, is not moved to a narrower type. */
#include "mapper_help.h"
#include "mapper/range.h"

#include <math.h>

static struct range result(const char *types, const char *value, long k) {
    struct text t = {0};
    text_printf(&t, "kernel f() { %s axes i: 4, j: 4, k: %ld\n C[i,j] = 0\n C[i,j] += %s\n}\n",
                types, k, value);
    char *text = t.at, *at;
    while ((at = strchr(text, 'K'))) { /* the length, as many digits as the letter stands */
        char digits[8];
        size_t n = strspn(at, "K");
        snprintf(digits, sizeof digits, "%0*ld", (int)n, k);
        memcpy(at, digits, n);
    }
    struct program *p = help_program("f", text);
    struct range r = range_of_result(p, 1);
    program_free(p);
    text_free(&t);
    return r;
}

/* The longest sums that no i32 overflows on: for s8 and s8, u8 and s8, u8 and u8. */
static void test_sums(void **state) {
    static const struct {
        const char *types;
        long most;
    } cases[] = {
        {"in A: i8[4, KKKKKK]  in B: i8[KKKKKK, 4]  out C: i32[4, 4]", 131071},
        {"in A: u8[4, KKKKKK]  in B: i8[KKKKKK, 4]  out C: i32[4, 4]", 65793},
        {"in A: u8[4, KKKKKK]  in B: u8[KKKKKK, 4]  out C: i32[4, 4]", 33025},
        {"in A: u8[4, KKKKKK]  in B: u8[KKKKKK, 4]  out C: u32[4, 4]", 66051},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *value = strstr(cases[i].types, "u32") ? "u32(A[i,k]) * u32(B[k,j])"
                                                          : "i32(A[i,k]) * i32(B[k,j])";
        assert_false(result(cases[i].types, value, cases[i].most).wraps);
        assert_true(result(cases[i].types, value, cases[i].most + 1).wraps);
    }
}

static void test_grains(void **state) {
    struct range r;
    (void)state;
    r = result("in A: i16[4, KKKKKK]  out C: f64[4, 4]", "f64(A[i,k]) * 0.25 + f64(j)", 10);
    assert_true(r.lo == -81920 && r.hi == 81917.5 + 30 && r.grain == -2);
    assert_true(range_fits(&r, TYPE_F32));
    r = result("in A: i32[4, KKKKKK]  out C: f64[4, 4]", "f64(A[i,k])", 10);
    assert_true(range_fits(&r, TYPE_F64) && !range_fits(&r, TYPE_F32));
    r = result("in A: f64[4, KKKKKK]  out C: f64[4, 4]", "clip(A[i,k], 0, 1)", 10);
    assert_true(r.lo == 0 && r.hi >= 10 && r.hi < 10.001 && r.grain == GRAIN_NONE);
    r = result("in A: i8[4, KKKKKK]  out C: i32[4, 4]", "i32(shr(A[i,k], 2)) % 3", 1);
    assert_true(r.lo == -2147483648.0 && !r.wraps);
}

/* Every op of random expressions over i8 stays in its range. */
static void test_inside(void **state) {
    static const char *const value[] = {
        "i32(A[i,k] * A[j,k])",
        "i32(i8(clip(round(f64(A[i,k]) * 0.37 - 3.25), -100, 90)))",
        "abs(i32(A[i,k]) - i32(A[j,k])) * -3",
        "max(i32(A[i,k]), min(i32(A[j,k]), -i32(A[i,k])))",
        "i32(i16(A[i,k]) * i16(A[j,k]) + i16(7)) / 5",
        "shr(i32(A[i,k]), 3) * i32(k)",
        "select(A[i,k] < A[j,k], i32(A[i,k]), i32(floor(f32(A[j,k]) * 0.1)))",
    };
    uint64_t seed = 3;
    (void)state;
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        struct text t = {0};
        struct range range[64];
        union value at[64];
        text_printf(&t,
                    "kernel f() { in A: i8[4, 5]  out C: i32[4, 4]  axes i: 4, j: 4, k: 5\n"
                    " C[i,j] = 0\n C[i,j] += %s\n}\n",
                    value[i]);
        struct program *p = help_program("f", t.at);
        const struct stmt *s = &p->stmt[1];
        ranges_of_ops(p, 1, range);
        for (int n = 0; n < 2000; n++)
            for (int o = 0; o < s->nops; o++) {
                const struct op *op = &s->op[o];
                union value arg[3];
                int from = op_info[op->code].arity > 1 ? 1 : 0;
                for (int k = 0; k < op_info[op->code].arity; k++) arg[k] = at[op->arg[k]];
                if (op->code == OP_READ)
                    at[o].i = n < 4 ? (n & 1 ? 127 : -128) : help_below(&seed, 256) - 128;
                else if (op->code == OP_LITERAL)
                    at[o] = op->value;
                else if (op->code == OP_AXIS)
                    at[o].i = help_below(&seed, 5);
                else
                    at[o] = op_eval(op->code, op->type, s->op[op->arg[from]].type, arg);
                double x = type_is_float(op->type) ? at[o].f : (double)at[o].i;
                assert_true(x >= range[o].lo && x <= range[o].hi);
                if (range[o].grain != GRAIN_NONE)
                    assert_true(ldexp(x, -range[o].grain) == rint(ldexp(x, -range[o].grain)));
            }
        program_free(p);
        text_free(&t);
    }
}

static int found(const struct machine *m, const char *instr, const char *text, char *why,
                 size_t size) {
    struct program *p = help_program("f", text);
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true, .certify_all = true});
    int n = 0;
    for (int i = 0; i < f->nmappings; i++)
        if (f->mapping[i].instr == machine_instr(m, instr)) n += f->mapping[i].certified;
    *why = 0;
    for (int i = 0; i < f->nfailures; i++)
        if (f->failure[i].instr == machine_instr(m, instr) && f->failure[i].stmt == p->nstmts - 1 &&
            !*why)
            snprintf(why, size, "%s", f->failure[i].reason);
    findings_free(f);
    program_free(p);
    return n;
}

/* i8 -> i16 -> i32, by casts alone or through products that fit. */
static void test_chains(void **state) {
    static const struct {
        const char *type, *value;
        int count;
    } cases[] = {
        {"i8", "i32(A[i,k]) * i32(B[j,k])", 2},      {"i8", "i32(i16(A[i,k])) * i32(B[j,k])", 2},
        {"i8", "i32(i16(A[i,k]) * i16(B[j,k]))", 2}, {"i8", "i32(i64(A[i,k]) * i64(B[j,k]))", 0},
        {"i8", "i32(A[i,k] * B[j,k])", 0},           {"i8", "i32(u16(A[i,k])) * i32(B[j,k])", 0},
        {"i16", "i32(i8(A[i,k])) * i32(B[j,k])", 0},
    };
    struct machine *m = help_machine("machines/edge16.xml");
    char why[400];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel f() { in A: %s[32,32]  in B: i8[32,32]  out C: i32[32,32]\n"
                    " axes i: 32, j: 32, k: 32\n C[i,j] = 0\n C[i,j] += %s\n}\n",
                    cases[i].type, cases[i].value);
        assert_int_equal(found(m, "mm16", t.at, why, sizeof why), cases[i].count);
        text_free(&t);
    }
    machine_free(m);
}

/* A requantisation in f64 on a unit that computes in f32: where what does not saturate is exact. */
static void test_requantised(void **state) {
    static const struct {
        long k;
        const char *scale;
        bool mapped;
    } cases[] = {{1024, "0.0078125", true},
                 {1025, "0.0078125", true},            /* sums beyond 2^24 saturate */
                 {100000, "0.0000152587890625", true}, /* 2^-16 */
                 {1025, "0.00000762939453125", true},  /* 2^-17: 128 steps are 2^24 */
                 {1025, "0.000003814697265625", false},
                 {512, "0.03125", true},
                 {341, "0.0234375", true}, /* 3/128: products of two bits more */
                 {342, "0.0234375", true},
                 {1400, "0.000011444091796875", false}, /* 3 / 2^18 */
                 {16, "0.1", false}};
    struct machine *m = help_machine("machines/gemmini.xml");
    char why[400];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text t = {0};
        text_printf(
            &t,
            "kernel f() { in A: i8[32,%ld]  in B: i8[%ld,32]  out D: i8[32,32]  temp C: "
            "i32[32,32]\n"
            " axes i: 32, j: 32, k: %ld\n C[i,j] = 0\n C[i,j] += i32(A[i,k]) * i32(B[k,j])\n"
            " D[i,j] = i8(clip(round(f64(C[i,j]) * %s), -128, 127))\n}\n",
            cases[i].k, cases[i].k, cases[i].k, cases[i].scale);
        assert_int_equal(found(m, "mvout.i8", t.at, why, sizeof why) > 0, cases[i].mapped);
        assert_true(cases[i].mapped || strstr(why, "f32"));
        if (!cases[i].mapped && cases[i].k > 16)
            assert_non_null(strstr(why, "not all exact in f32"));
        text_free(&t);
    }
    machine_free(m);
}

/* Changes in place of a part: each may have left what it did not reach, so all are looked at, but
 * none more than once for each depth. Asked anew wherever one reads what the others wrote, 400 of
 * them are 400^4 / 24 questions. */
static void test_changes_in_place(void **state) {
    struct text t = {0};
    (void)state;
    text_printf(&t, "kernel f() { in A: i8[8]  temp B: i32[8]  out C: i32[8]  axes i: 8, j: 5\n"
                    " B[i] = i32(A[i])\n");
    for (int n = 0; n < 400; n++)
        text_printf(&t, n % 2 ? " B[j+3] = min(B[j+3], 100)\n" : " B[j+3] = max(B[j+3], -50)\n");
    text_printf(&t, " C[i] = B[i] }\n");
    struct program *p = help_program("f", t.at);
    struct range first = range_of_buffer(p, p->stmt[0].dst.buffer, 1),
                 last = range_of_result(p, p->nstmts - 1);
    assert_true(first.lo == -128 && first.hi == 127 && !first.wraps);
    assert_true(last.lo <= -128 && last.hi >= 127 && !last.wraps);
    program_free(p);
    text_free(&t);
}

/* A statement that stands for several says nothing of what it writes. */
static void test_joined(void **state) {
    (void)state;
    struct program *p =
        help_program("f", "kernel f() { in A: i8[4, 8]  out C: i32[4]  axes i: 4, k: 8\n"
                          " C[i] = 0\n C[i] += i32(A[i,k]) }\n");
    struct stmt joined;
    assert_null(stmts_join(&p->arena, p, (const int[]){0, 1}, 2, &joined));
    stmt_hide(&p->arena, p, 0, 1);
    p->stmt[1] = joined;
    struct range r = range_of_result(p, 1);
    assert_true(r.lo == -2147483648.0 && r.hi == 2147483647.0);
    program_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_grains),
                                       cmocka_unit_test(test_inside),
                                       cmocka_unit_test(test_chains),
                                       cmocka_unit_test(test_changes_in_place),
                                       cmocka_unit_test(test_requantised),
                                       cmocka_unit_test(test_joined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
