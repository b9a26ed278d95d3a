/* The meaning of instructions as machine files write them, against loops written out by hand. */
#include "tests/ir_support.h"

#define EACH(i, n) for (int i = 0; i < (n); i++)
#define SEMANTICS(name) SOURCE_DIR "/tests/data/semantics/" name ".isam"

static double clip(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

static void test_tile_product(void **state) {
    (void)state;
    enum { M = 5, N = 7, K = 12 };
    struct trial t;
    double C[M * N];
    trial_file(&t, SEMANTICS("amx_05_tdp"), "M=5 N=7 K=12", "");
    const double *A = given(&t, "A"), *B = given(&t, "B"), *C0 = given(&t, "C");
    assert_int_equal(t.p->buffer[0].type, TYPE_I8);
    assert_int_equal(t.p->buffer[1].type, TYPE_U8);
    EACH(i, M) EACH(j, N) {
        C[i * N + j] = C0[i * N + j];
        EACH(k, K) C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
    check_close(&t, "C", C, 0);
    trial_close(&t);
}

static void test_tile_product_bf16(void **state) {
    (void)state;
    enum { M = 3, N = 5, K = 6 };
    struct trial t;
    double C[M * N];
    trial_file(&t, SEMANTICS("amx_08_tdp"), "M=3 N=5 K=6", "");
    const double *A = given(&t, "A"), *B = given(&t, "B"), *C0 = given(&t, "C");
    EACH(i, M) EACH(j, N) {
        C[i * N + j] = C0[i * N + j];
        EACH(k, K) C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
    check_close(&t, "C", C, 1e-6);
    trial_close(&t);
}

static void test_tile_load(void **state) {
    (void)state;
    struct trial t;
    trial_file(&t, SEMANTICS("amx_01_tileload"), "R=7 B=12", "");
    check_close(&t, "D", given(&t, "S"), 0);
    trial_close(&t);
}

static void test_tile_zero(void **state) {
    (void)state;
    struct trial t;
    double zero[5 * 3] = {0};
    trial_file(&t, SEMANTICS("amx_03_tilezero"), "M=5 N=3", "");
    check_close(&t, "C", zero, 0);
    trial_close(&t);
}

static void test_broadcast_fma(void **state) {
    (void)state;
    struct trial t;
    double C[16];
    trial_file(&t, SEMANTICS("avx512_03_fma"), "", "");
    EACH(j, 16) C[j] = given(&t, "C")[j] + given(&t, "A")[0] * given(&t, "B")[j];
    check_close(&t, "C", C, 1e-6);
    trial_close(&t);
}

static void test_dot_of_bytes(void **state) {
    (void)state;
    struct trial t;
    double C[16];
    trial_file(&t, SEMANTICS("avx512_04_vnni"), "", "");
    EACH(j, 16) {
        C[j] = given(&t, "C")[j];
        EACH(k, 4) C[j] += given(&t, "A")[k] * given(&t, "B")[k * 16 + j];
    }
    check_close(&t, "C", C, 0);
    trial_close(&t);
}

static void test_vector_minimum(void **state) {
    (void)state;
    struct trial t;
    double C[16];
    trial_file(&t, SEMANTICS("avx512_08_min"), "", "");
    EACH(j, 16) C[j] = fmin(given(&t, "A")[j], given(&t, "B")[j]);
    check_close(&t, "C", C, 0);
    trial_close(&t);
}

static void test_sgemm(void **state) {
    (void)state;
    enum { M = 3, N = 5, K = 7 };
    struct trial t;
    double C[M * N];
    trial_file(&t, SEMANTICS("blas_01_sgemm"), "M=3 N=5 K=7", "");
    EACH(i, M) EACH(j, N) {
        C[i * N + j] = given(&t, "C")[i * N + j];
        EACH(k, K) C[i * N + j] += given(&t, "A")[i * K + k] * given(&t, "B")[k * N + j];
    }
    check_close(&t, "C", C, 1e-5);
    trial_close(&t);
}

static void test_allreduce(void **state) {
    (void)state;
    enum { P = 3, L = 5 };
    struct trial t;
    double Y[P * L] = {0};
    trial_file(&t, SEMANTICS("cluster_02_allreduce"), "L=5", "NODES=3");
    EACH(p, P) EACH(q, P) EACH(x, L) Y[p * L + x] += given(&t, "X")[q * L + x];
    check_close(&t, "Y", Y, 1e-6);
    trial_close(&t);
}

static void test_padded_load(void **state) {
    (void)state;
    enum { Y = 3, X = 4, W = 16, y0 = 1, y1 = 2, x0 = 3, x1 = 0, H = y0 + Y + y1, V = x0 + X + x1 };
    struct trial t;
    double D[H * V * W] = {0};
    trial_file(&t, SEMANTICS("vdla_02_ld"), "Y=3 X=4 y0=1 y1=2 x0=3 x1=0", "");
    EACH(y, Y)
    EACH(x, X) EACH(e, W) D[((y + y0) * V + x + x0) * W + e] = given(&t, "S")[(y * X + x) * W + e];
    check_close(&t, "D", D, 0);
    trial_close(&t);
}

static void test_requantise(void **state) {
    (void)state;
    enum { M = 5, T = 16 };
    struct trial t;
    double Y[M * T];
    trial_file(&t, SEMANTICS("edge16_04_requant"), "M=5", "T=16");
    EACH(k, M * T) Y[k] = clip(nearbyint(given(&t, "X")[k] * given(&t, "s")[0]), -128, 127);
    check_close(&t, "Y", Y, 0);
    trial_close(&t);
}

static void test_transposed_weights(void **state) {
    (void)state;
    enum { M = 3, T = 4 };
    struct trial t;
    double C[M * T];
    trial_file(&t, SEMANTICS("edge16_03_mm16"), "M=3", "T=4");
    EACH(i, M) EACH(j, T) {
        C[i * T + j] = given(&t, "C")[i * T + j];
        EACH(k, T) C[i * T + j] += given(&t, "A")[i * T + k] * given(&t, "B")[j * T + k];
    }
    check_close(&t, "C", C, 0);
    trial_close(&t);
}

static void test_move_in(void **state) {
    (void)state;
    enum { R = 3, B = 2, N = 16 };
    struct trial t;
    double D[B * R * N];
    trial_file(&t, SEMANTICS("gemmini_01_mvin"), "R=3 B=2", "DIM=16");
    EACH(b, B) EACH(r, R) EACH(c, N) D[(b * R + r) * N + c] = given(&t, "S")[(r * B + b) * N + c];
    check_close(&t, "D", D, 0);
    trial_close(&t);
}

static void test_alu_shift(void **state) {
    (void)state;
    struct trial t;
    double C[16];
    trial_file(&t, SEMANTICS("vdla_11_alu"), "", "");
    EACH(j, 16) {
        int64_t c = (int64_t)given(&t, "C")[j], n = (int64_t)given(&t, "X")[j];
        int32_t left = n > -32 && n < 0 ? (int32_t)((uint32_t)c << -n) : 0;
        C[j] = n < 0 ? left : n > 31 ? (c < 0 ? -1 : 0) : (double)(c >> n);
    }
    check_close(&t, "C", C, 0);
    trial_close(&t);
}

static void test_narrowing_store(void **state) {
    (void)state;
    enum { Y = 2, X = 3, E = 16 };
    struct trial t;
    double D[Y * X * E];
    trial_file(&t, SEMANTICS("vdla_05_st"), "Y=2 X=3", "");
    EACH(k, Y * X * E) D[k] = clip(nearbyint(given(&t, "S")[k] * given(&t, "s")[0]), -128, 127);
    check_close(&t, "D", D, 0);
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tile_product),    cmocka_unit_test(test_tile_product_bf16),
        cmocka_unit_test(test_tile_load),       cmocka_unit_test(test_tile_zero),
        cmocka_unit_test(test_broadcast_fma),   cmocka_unit_test(test_dot_of_bytes),
        cmocka_unit_test(test_vector_minimum),  cmocka_unit_test(test_sgemm),
        cmocka_unit_test(test_allreduce),       cmocka_unit_test(test_padded_load),
        cmocka_unit_test(test_requantise),      cmocka_unit_test(test_transposed_weights),
        cmocka_unit_test(test_move_in),         cmocka_unit_test(test_alu_shift),
        cmocka_unit_test(test_narrowing_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
