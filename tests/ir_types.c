/* Numbers: the conversions of types.h and the operations of ops.h, at their edges. */
#include "tests/ir_support.h"

static union value f(double x) {
    return (union value){.f = x};
}

static union value i(int64_t x) {
    return (union value){.i = x};
}

static int64_t to_int(enum type to, double x) {
    return type_convert(to, TYPE_F64, f(x)).i;
}

static void test_float_to_integer(void **state) {
    (void)state;
    assert_int_equal(to_int(TYPE_I8, 127.9), 127);
    assert_int_equal(to_int(TYPE_I8, 128), 127);
    assert_int_equal(to_int(TYPE_I8, -1e30), -128);
    assert_int_equal(to_int(TYPE_I8, -1.9), -1);
    assert_int_equal(to_int(TYPE_U8, -1), 0);
    assert_int_equal(to_int(TYPE_U8, 300), 255);
    assert_int_equal(to_int(TYPE_I64, INFINITY), INT64_MAX);
    assert_int_equal(to_int(TYPE_I64, -INFINITY), INT64_MIN);
    assert_int_equal(to_int(TYPE_U64, 0x1p64), -1);
    assert_int_equal(to_int(TYPE_U64, 0x1p63), INT64_MIN);
    assert_int_equal(to_int(TYPE_U64, -5), 0);
    assert_int_equal(to_int(TYPE_I32, NAN), 0);
    assert_int_equal(to_int(TYPE_BOOL, 0.25), 1);
    assert_int_equal(to_int(TYPE_BOOL, -0.0), 0);
}

static void test_integers_wrap(void **state) {
    (void)state;
    assert_int_equal(type_convert(TYPE_I8, TYPE_I32, i(200)).i, -56);
    assert_int_equal(type_convert(TYPE_U8, TYPE_I32, i(-1)).i, 255);
    assert_int_equal(type_convert(TYPE_U64, TYPE_I8, i(-1)).i, -1);
    assert_int_equal(type_convert(TYPE_I64, TYPE_U32, i(4294967295)).i, 4294967295);
    assert_int_equal(type_convert(TYPE_BOOL, TYPE_I32, i(256)).i, 1);
    assert_int_equal(type_wrap(TYPE_I16, 0x18000), -32768);
}

static void test_integer_to_float_rounds_once(void **state) {
    (void)state;
    /* 2^24 + 1 is a tie in f32; 2^60 + 2^36 + 1 is just above one, which a detour through f64 would
     * lose */
    assert_true(type_convert(TYPE_F32, TYPE_I32, i(16777217)).f == 16777216);
    int64_t above = ((int64_t)1 << 60) + ((int64_t)1 << 36) + 1;
    assert_true(type_convert(TYPE_F32, TYPE_I64, i(above)).f == 0x1p60 + 0x1p37);
    assert_true(type_convert(TYPE_F32, TYPE_I64, i(above - 1)).f == 0x1p60);
    assert_true(type_convert(TYPE_F64, TYPE_U64, i(-1)).f == 0x1p64);
    assert_true(type_convert(TYPE_F32, TYPE_U64, i(-1)).f == 0x1p64);
    assert_true(type_convert(TYPE_F16, TYPE_I32, i(65520)).f == INFINITY);
    assert_true(type_convert(TYPE_BF16, TYPE_I32, i(257)).f == 256);
    assert_true(type_convert(TYPE_F64, TYPE_I64, i(INT64_MIN)).f == -0x1p63);
}

static void test_halves(void **state) {
    (void)state;
    const struct {
        enum type t;
        double in, out;
    } row[] = {{TYPE_F16, 2049, 2048},
               {TYPE_F16, 2051, 2052},
               {TYPE_F16, 65519, 65504},
               {TYPE_F16, 65520, INFINITY},
               {TYPE_F16, 0x1p-24, 0x1p-24},
               {TYPE_F16, 0x1p-25, 0},
               {TYPE_F16, 0x1.8p-25, 0x1p-24},
               {TYPE_F16, 0x1.fffp-15, 0x1p-14},
               {TYPE_F16, -0.1, -0.0999755859375},
               {TYPE_BF16, 1.00390625, 1},
               {TYPE_BF16, 1.01171875, 1.015625},
               {TYPE_BF16, 3.4e38, INFINITY},
               {TYPE_BF16, 0x1p-133, 0x1p-133},
               {TYPE_F32, 16777217, 16777216}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (type_round(row[k].t, row[k].in) != row[k].out)
            fail_msg("%s %.17g: %.17g", type_name(row[k].t), row[k].in,
                     type_round(row[k].t, row[k].in));
    assert_true(isnan(type_round(TYPE_F16, NAN)));
    assert_true(signbit(type_round(TYPE_F16, -0.0)));
}

static void test_every_half_loads_and_stores(void **state) {
    (void)state;
    for (int t = TYPE_F16; t <= TYPE_BF16; t++) {
        for (uint32_t bits = 0; bits < 65536; bits++) {
            uint16_t in = (uint16_t)bits, out;
            union value v = type_load((enum type)t, &in);
            type_store((enum type)t, &out, v);
            if (isnan(v.f))
                assert_true(isnan(type_load((enum type)t, &out).f));
            else
                assert_int_equal(in, out);
        }
    }
}

static void test_every_type_stores(void **state) {
    (void)state;
    for (int t = 0; t < TYPE_COUNT; t++) {
        unsigned char bytes[16];
        memset(bytes, 0xa5, sizeof bytes);
        union value v = type_is_float((enum type)t) ? f(-1.5) : i(t == TYPE_BOOL ? 1 : 77);
        type_store((enum type)t, bytes + 3, v); /* not aligned */
        union value back = type_load((enum type)t, bytes + 3);
        assert_true(type_is_float((enum type)t) ? back.f == v.f : back.i == v.i);
        assert_int_equal(bytes[3 + type_size((enum type)t)], 0xa5);
    }
}

static int64_t of_ints(enum opcode op, enum type t, int64_t a, int64_t b) {
    union value arg[3] = {i(a), i(b)};
    return op_eval(op, op_info[op].flags & OP_TO_BOOL ? TYPE_BOOL : t, t, arg).i;
}

static double of_floats(enum opcode op, enum type t, double a, double b) {
    union value arg[3] = {f(a), f(b)};
    return op_eval(op, t, t, arg).f;
}

static void test_integer_operations(void **state) {
    (void)state;
    assert_int_equal(of_ints(OP_ADD, TYPE_I8, 100, 100), -56);
    assert_int_equal(of_ints(OP_MUL, TYPE_U16, 300, 300), 90000 - 65536);
    assert_int_equal(of_ints(OP_DIV, TYPE_I32, -7, 2), -3);
    assert_int_equal(of_ints(OP_DIV, TYPE_I32, 7, 0), 0);
    assert_int_equal(of_ints(OP_DIV, TYPE_I32, INT32_MIN, -1), INT32_MIN);
    assert_int_equal(of_ints(OP_DIV, TYPE_I64, INT64_MIN, -1), INT64_MIN);
    assert_int_equal(of_ints(OP_MOD, TYPE_I32, -7, 2), -1);
    assert_int_equal(of_ints(OP_MOD, TYPE_I64, INT64_MIN, -1), 0);
    assert_int_equal(of_ints(OP_MOD, TYPE_I32, 7, 0), 0);
    assert_int_equal(of_ints(OP_DIV, TYPE_U64, -1, 2), INT64_MAX);
    assert_int_equal(of_ints(OP_LT, TYPE_U64, -1, 2), 0);
    assert_int_equal(of_ints(OP_LT, TYPE_I64, -1, 2), 1);
    assert_int_equal(of_ints(OP_MAX, TYPE_U64, -1, 2), -1);
    assert_int_equal(of_ints(OP_MIN, TYPE_U64, -1, 2), 2);
    assert_int_equal(of_ints(OP_NOT, TYPE_U8, 1, 0), 254);
    assert_int_equal(of_ints(OP_NOT, TYPE_BOOL, 1, 0), 0);
    assert_int_equal(of_ints(OP_ABS, TYPE_I8, -128, 0), -128);
    assert_int_equal(of_ints(OP_NEG, TYPE_U8, 1, 0), 255);
}

static void test_shifts(void **state) {
    (void)state;
    assert_int_equal(of_ints(OP_SHR, TYPE_I32, -5, 1), -3);
    assert_int_equal(of_ints(OP_SHR, TYPE_I32, -5, 32), -1);
    assert_int_equal(of_ints(OP_SHR, TYPE_I32, 5, 99), 0);
    assert_int_equal(of_ints(OP_SHR, TYPE_I32, 5, -2), 20);
    assert_int_equal(of_ints(OP_SHR, TYPE_I32, 5, -32), 0);
    assert_int_equal(of_ints(OP_SHR, TYPE_I32, 1, -31), INT32_MIN);
    assert_int_equal(of_ints(OP_SHR, TYPE_U8, 200, 1), 100);
    assert_int_equal(of_ints(OP_SHR, TYPE_U64, -1, 63), 1);
    assert_int_equal(of_ints(OP_SHR, TYPE_I64, 1, INT64_MIN), 0);
    assert_int_equal(of_ints(OP_SHL, TYPE_I8, 3, 7), -128);
    assert_int_equal(of_ints(OP_SHL, TYPE_I8, 3, 8), 0);
    assert_int_equal(of_ints(OP_SHL, TYPE_I8, -8, -2), -2);
    assert_int_equal(of_ints(OP_SHL, TYPE_I64, -8, INT64_MIN), -1);
}

static void test_float_operations(void **state) {
    (void)state;
    assert_true(of_floats(OP_ADD, TYPE_F32, 16777216, 1) == 16777216);
    assert_true(of_floats(OP_ADD, TYPE_F64, 16777216, 1) == 16777217);
    assert_true(of_floats(OP_MUL, TYPE_F16, 1000, 1000) == 1000000); /* computed in f32 */
    assert_true(of_floats(OP_MAX, TYPE_F32, NAN, 2) == 2);
    assert_true(of_floats(OP_MIN, TYPE_F32, 2, NAN) == 2);
    assert_true(isnan(of_floats(OP_MAX, TYPE_F32, NAN, NAN)));
    assert_true(of_floats(OP_ROUND, TYPE_F64, 2.5, 0) == 2);
    assert_true(of_floats(OP_ROUND, TYPE_F64, -3.5, 0) == -4);
    assert_true(of_floats(OP_MOD, TYPE_F64, -7, 2) == -1);
    assert_true(isinf(of_floats(OP_DIV, TYPE_F32, 1, 0)));
    assert_true(of_floats(OP_SIGMOID, TYPE_F32, 0, 0) == 0.5);
    assert_true(of_floats(OP_RSQRT, TYPE_F32, 4, 0) == 0.5);
    assert_true(of_floats(OP_POW, TYPE_F64, 2, 10) == 1024);
    union value clip[3] = {f(NAN), f(-1), f(1)}, choose[3] = {i(0), f(3), f(4)};
    assert_true(op_eval(OP_CLIP, TYPE_F32, TYPE_F32, clip).f == -1);
    assert_true(op_eval(OP_SELECT, TYPE_F32, TYPE_F32, choose).f == 4);
}

/* One rounding at the end of a computation in double is the operation in float. */
static void test_single_precision_is_exact(void **state) {
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int n = 0; n < 200000; n++) {
        uint32_t bits[2] = {(uint32_t)next_random(&seed), (uint32_t)(next_random(&seed) >> 16)};
        float x, y;
        memcpy(&x, &bits[0], 4);
        memcpy(&y, &bits[1], 4);
        if (isnan(x) || isnan(y)) continue;
        const float want[] = {x + y, x - y, x * y, x / y};
        const enum opcode op[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV};
        for (int k = 0; k < 4; k++) {
            float got = (float)of_floats(op[k], TYPE_F32, x, y);
            if (memcmp(&got, &want[k], 4) != 0 && !(isnan(got) && isnan(want[k])))
                fail_msg("%a %s %a is %a, expected %a", x, op_info[op[k]].spelling, y, got,
                         want[k]);
        }
    }
}

static void test_neutral_elements(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int t = 0; t < TYPE_BOOL; t++) {
        for (int c = COMBINE_ADD; c < COMBINE_COUNT; c++) {
            enum type in = (enum type)t;
            union value x = random_value(in, &seed);
            union value arg[2] = {combiner_neutral((enum combiner)c, in), x};
            union value r = op_eval(combiner_op((enum combiner)c), in, in, arg);
            assert_true(type_is_float(in) ? r.f == x.f : r.i == x.i);
        }
    }
}

static void test_names(void **state) {
    (void)state;
    for (int t = 0; t < TYPE_COUNT; t++) {
        enum type back;
        assert_true(type_parse(type_name((enum type)t), strlen(type_name((enum type)t)), &back));
        assert_int_equal(back, t);
    }
    enum type none;
    assert_false(type_parse("f3", 2, &none));
    assert_false(type_parse("f321", 4, &none));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_to_integer),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_integer_to_float_rounds_once),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_every_half_loads_and_stores),
        cmocka_unit_test(test_every_type_stores),
        cmocka_unit_test(test_integer_operations),
        cmocka_unit_test(test_shifts),
        cmocka_unit_test(test_float_operations),
        cmocka_unit_test(test_single_precision_is_exact),
        cmocka_unit_test(test_neutral_elements),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
