/* The interpreter against loops written out by hand, for every program of examples/operators. */
#include "tests/ir_support.h"

#define EACH(i, n) for (int i = 0; i < (n); i++)
#define OPERATOR(name) SOURCE_DIR "/examples/operators/" name ".isam"

/* loops of loops stand on one line */
/* clang-format off */

static const double tight = 1e-5;

static void test_gmm(void **state) {
    (void)state;
    enum { M = 5, N = 7, K = 9 };
    struct trial t;
    double C[M * N] = {0};
    trial_file(&t, OPERATOR("gmm"), "M=5 N=7 K=9", "");
    const double *A = given(&t, "A"), *B = given(&t, "B");
    EACH(i, M) EACH(j, N) EACH(k, K) C[i * N + j] += A[i * K + k] * B[k * N + j];
    check_close(&t, "C", C, tight);
    assert_int_equal(program_macs(t.p), M * N * K);
    assert_int_equal(program_operations(t.p), 0);
    trial_close(&t);
}

static void test_gmv(void **state) {
    (void)state;
    enum { M = 11, K = 13 };
    struct trial t;
    double y[M] = {0};
    trial_file(&t, OPERATOR("gmv"), "M=11 K=13", "");
    const double *A = given(&t, "A"), *x = given(&t, "x");
    EACH(i, M) EACH(k, K) y[i] += A[i * K + k] * x[k];
    check_close(&t, "y", y, tight);
    trial_close(&t);
}

static void test_c1d(void **state) {
    (void)state;
    enum { N = 2, C = 3, K = 5, P = 7, R = 3, W = P + R - 1 };
    struct trial t;
    double O[N * K * P] = {0};
    trial_file(&t, OPERATOR("c1d"), "N=2 C=3 K=5 P=7 R=3", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(n, N) EACH(k, K) EACH(p, P) EACH(c, C) EACH(r, R)
        O[(n * K + k) * P + p] += I[(n * C + c) * W + p + r] * F[(k * C + c) * R + r];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_c2d(void **state) {
    (void)state;
    enum { N = 2, C = 3, K = 5, P = 4, Q = 7, R = 3, S = 2, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[N * K * P * Q] = {0};
    trial_file(&t, OPERATOR("c2d"), "N=2 C=3 K=5 P=4 Q=7 R=3 S=2", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(n, N) EACH(k, K) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(r, R) EACH(s, S)
        O[((n * K + k) * P + p) * Q + q] +=
        I[((n * C + c) * H + p + r) * W + q + s] * F[((k * C + c) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    assert_int_equal(program_macs(t.p), N * K * P * Q * C * R * S);
    trial_close(&t);
}

static void test_c3d(void **state) {
    (void)state;
    enum { C = 2, K = 3, D = 3, P = 2, Q = 5, T = 2, R = 3, S = 2 };
    enum { DD = D + T - 1, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[K * D * P * Q] = {0};
    trial_file(&t, OPERATOR("c3d"), "N=1 C=2 K=3 D=3 P=2 Q=5 T=2 R=3 S=2", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(k, K) EACH(d, D) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(x, T) EACH(r, R) EACH(s, S)
        O[((k * D + d) * P + p) * Q + q] +=
        I[((c * DD + d + x) * H + p + r) * W + q + s] * F[(((k * C + c) * T + x) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_t2d(void **state) {
    (void)state;
    enum { N = 1, C = 3, K = 2, P = 3, Q = 5, R = 3, S = 3, H = 2 * P + R - 2, W = 2 * Q + S - 2 };
    struct trial t;
    double O[N * K * H * W] = {0};
    trial_file(&t, OPERATOR("t2d"), "N=1 C=3 K=2 P=3 Q=5 R=3 S=3", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(n, N) EACH(k, K) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(r, R) EACH(s, S)
        O[((n * K + k) * H + 2 * p + r) * W + 2 * q + s] +=
        I[((n * C + c) * P + p) * Q + q] * F[((c * K + k) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_grp(void **state) {
    (void)state;
    enum { N = 2, G = 3, C = 2, K = 3, P = 3, Q = 4, R = 2, S = 3, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[N * G * K * P * Q] = {0};
    trial_file(&t, OPERATOR("grp"), "N=2 G=3 C=2 K=3 P=3 Q=4 R=2 S=3", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(n, N) EACH(g, G) EACH(k, K) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(r, R) EACH(s, S)
        O[(((n * G + g) * K + k) * P + p) * Q + q] +=
        I[(((n * G + g) * C + c) * H + p + r) * W + q + s] *
        F[(((g * K + k) * C + c) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_dil(void **state) {
    (void)state;
    enum { C = 3, K = 2, P = 5, Q = 3, R = 3, S = 2, H = P + 2 * R - 2, W = Q + 2 * S - 2 };
    struct trial t;
    double O[K * P * Q] = {0};
    trial_file(&t, OPERATOR("dil"), "N=1 C=3 K=2 P=5 Q=3 R=3 S=2", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(k, K) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(r, R) EACH(s, S) O[(k * P + p) * Q + q] +=
        I[(c * H + p + 2 * r) * W + q + 2 * s] * F[((k * C + c) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_dep(void **state) {
    (void)state;
    enum { N = 2, C = 3, M = 2, P = 4, Q = 3, R = 3, S = 2, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[N * C * M * P * Q] = {0};
    trial_file(&t, OPERATOR("dep"), "N=2 C=3 M=2 P=4 Q=3 R=3 S=2", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(n, N) EACH(c, C) EACH(m, M) EACH(p, P) EACH(q, Q) EACH(r, R) EACH(s, S)
        O[(((n * C + c) * M + m) * P + p) * Q + q] +=
        I[((n * C + c) * H + p + r) * W + q + s] * F[((c * M + m) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_cap(void **state) {
    (void)state;
    enum { C = 2, K = 3, P = 2, Q = 3, R = 2, S = 2, E = 3, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[K * P * Q * E * E] = {0};
    trial_file(&t, OPERATOR("cap"), "N=1 C=2 K=3 P=2 Q=3 R=2 S=2 H=3", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(k, K) EACH(p, P) EACH(q, Q) EACH(i, E) EACH(j, E) EACH(c, C) EACH(r, R) EACH(s, S) EACH(l, E)
        O[(((k * P + p) * Q + q) * E + i) * E + j] +=
        I[(((c * H + p + r) * W + q + s) * E + i) * E + l] *
        F[((((k * C + c) * R + r) * S + s) * E + l) * E + j];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_bcv(void **state) {
    (void)state;
    enum { N = 3, C = 2, K = 3, P = 3, Q = 2, R = 2, S = 3, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[N * K * P * Q] = {0};
    trial_file(&t, OPERATOR("bcv"), "N=3 C=2 K=3 P=3 Q=2 R=2 S=3", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(n, N) EACH(k, K) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(r, R) EACH(s, S)
        O[((n * K + k) * P + p) * Q + q] +=
        I[((n * C + c) * H + p + r) * W + q + s] * F[(((n * K + k) * C + c) * R + r) * S + s];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_gfc(void **state) {
    (void)state;
    enum { G = 3, M = 5, N = 4, K = 7 };
    struct trial t;
    double O[M * G * N] = {0};
    trial_file(&t, OPERATOR("gfc"), "G=3 M=5 N=4 K=7", "");
    const double *A = given(&t, "A"), *F = given(&t, "F");
    EACH(m, M) EACH(g, G) EACH(n, N) EACH(k, K)
        O[(m * G + g) * N + n] += A[(m * G + g) * K + k] * F[(g * K + k) * N + n];
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

static void test_men_and_var(void **state) {
    (void)state;
    enum { M = 5, N = 13 };
    struct trial t;
    double mean[M] = {0}, square[M] = {0}, variance[M];
    trial_file(&t, OPERATOR("men"), "M=5 N=13", "");
    const double *X = given(&t, "X");
    EACH(i, M) EACH(j, N) mean[i] += X[i * N + j] / N;
    check_close(&t, "y", mean, tight);
    assert_int_equal(program_macs(t.p), 0);
    assert_int_equal(program_operations(t.p), M * N + M);
    trial_close(&t);
    trial_file(&t, OPERATOR("var"), "M=5 N=13", "");
    X = given(&t, "X");
    EACH(i, M) mean[i] = 0;
    EACH(i, M) EACH(j, N) mean[i] += X[i * N + j] / N;
    EACH(i, M) EACH(j, N) square[i] += X[i * N + j] * X[i * N + j] / N;
    EACH(i, M) variance[i] = square[i] - mean[i] * mean[i];
    check_close(&t, "v", variance, tight);
    assert_int_equal(program_macs(t.p), M * N);
    trial_close(&t);
}

static void test_scn(void **state) {
    (void)state;
    enum { M = 3, N = 9 };
    struct trial t;
    double Y[M * N] = {0};
    trial_file(&t, OPERATOR("scn"), "M=3 N=9", "");
    const double *X = given(&t, "X");
    EACH(i, M) EACH(j, N) EACH(k, j + 1) Y[i * N + j] += X[i * N + k];
    check_close(&t, "Y", Y, tight);
    assert_int_equal(stmt_points(t.p, &t.p->stmt[1]), M * N * (N + 1) / 2);
    trial_close(&t);
}

static void test_sep(void **state) {
    (void)state;
    enum { C = 3, K = 5, P = 3, Q = 4, R = 3, S = 2, H = P + R - 1, W = Q + S - 1 };
    struct trial t;
    double O[K * P * Q] = {0};
    trial_file(&t, OPERATOR("sep"), "N=1 C=3 K=5 P=3 Q=4 R=3 S=2", "");
    const double *I = given(&t, "I"), *D = given(&t, "D"), *V = given(&t, "W");
    EACH(k, K) EACH(p, P) EACH(q, Q) EACH(c, C) EACH(r, R) EACH(s, S) O[(k * P + p) * Q + q] +=
        I[(c * H + p + r) * W + q + s] * D[(c * R + r) * S + s] * V[k * C + c];
    check_close(&t, "O", O, tight);
    assert_int_equal(program_macs(t.p), K * P * Q * C * R * S);
    assert_int_equal(program_operations(t.p), K * P * Q * C * R * S);
    trial_close(&t);
}

static void test_softmax(void **state) {
    (void)state;
    enum { M = 4, N = 11 };
    struct trial t;
    double Y[M * N];
    trial_file(&t, OPERATOR("softmax"), "M=4 N=11", "");
    const double *X = given(&t, "X");
    EACH(i, M) {
        double most = -INFINITY, sum = 0;
        EACH(j, N) most = fmax(most, X[i * N + j]);
        EACH(j, N) sum += exp(X[i * N + j] - most);
        EACH(j, N) Y[i * N + j] = exp(X[i * N + j] - most) / sum;
    }
    check_close(&t, "Y", Y, tight);
    trial_close(&t);
}

static void test_layernorm(void **state) {
    (void)state;
    enum { M = 3, N = 17 };
    struct trial t;
    double Y[M * N];
    trial_file(&t, OPERATOR("layernorm"), "M=3 N=17", "");
    const double *X = given(&t, "X"), *g = given(&t, "g"), *b = given(&t, "b");
    EACH(i, M) {
        double mean = 0, v = 0;
        EACH(j, N) mean += X[i * N + j] / N;
        EACH(j, N) v += (X[i * N + j] - mean) * (X[i * N + j] - mean) / N;
        EACH(j, N) Y[i * N + j] = (X[i * N + j] - mean) / sqrt(v + 1e-5) * g[j] + b[j];
    }
    check_close(&t, "Y", Y, tight);
    trial_close(&t);
}

static void test_att(void **state) {
    (void)state;
    enum { B = 2, T = 5, D = 3 };
    struct trial t;
    double O[B * T * D];
    trial_file(&t, OPERATOR("att"), "B=2 T=5 D=3", "");
    const double *Q = given(&t, "Q"), *K = given(&t, "K"), *V = given(&t, "V");
    EACH(b, B) EACH(i, T) {
        double e[T], z = 0, most = -INFINITY;
        EACH(j, T) {
            e[j] = 0;
            EACH(d, D) e[j] += Q[(b * T + i) * D + d] * K[(b * T + j) * D + d];
            most = fmax(most, e[j]);
        }
        EACH(j, T) z += e[j] = exp((e[j] - most) * 0.125);
        EACH(d, D) {
            double sum = 0;
            EACH(j, T) sum += e[j] * V[(b * T + j) * D + d];
            O[(b * T + i) * D + d] = sum / z;
        }
    }
    check_close(&t, "O", O, 2e-3); /* E is rounded to f16 */
    trial_close(&t);
}

static void rnn_by_hand(const struct trial *t, int steps, int H, double *y, double *h) {
    const double *X = given(t, "X"), *U = given(t, "U"), *h0 = given(t, "h0");
    double a[16];
    EACH(i, H) h[i] = h0[i];
    EACH(s, steps) {
        EACH(i, H) {
            a[i] = X[s * H + i];
            EACH(j, H) a[i] += U[i * H + j] * h[j];
        }
        EACH(i, H) y[s * H + i] = h[i] = tanh(a[i]);
    }
}

static void test_rnn(void **state) {
    (void)state;
    enum { T = 4, H = 7 };
    struct trial t;
    double y[T * H], h[H];
    trial_file(&t, SOURCE_DIR "/examples/f32/rnn.isam", "T=4 H=7", "");
    rnn_by_hand(&t, T, H, y, h);
    check_close(&t, "y", y, tight);
    check_close(&t, "hT", h, tight);
    assert_int_equal(program_macs(t.p), T * H * H);
    assert_int_equal(program_operations(t.p), T * H);
    trial_close(&t);
}

static void test_rnn_without_steps(void **state) {
    (void)state;
    struct trial t;
    trial_file(&t, SOURCE_DIR "/examples/f32/rnn.isam", "T=0 H=7", "");
    check_close(&t, "hT", given(&t, "h0"), 0);
    assert_int_equal(program_macs(t.p), 0);
    trial_close(&t);
}

static void test_conv2d(void **state) {
    (void)state;
    enum { C = 2, K = 3, H = 5, W = 4 };
    struct trial t;
    double O[K * H * W] = {0};
    trial_file(&t, SOURCE_DIR "/examples/conv2d.isam", "N=1 C=2 K=3 H=5 W=4", "");
    const double *I = given(&t, "I"), *F = given(&t, "F");
    EACH(k, K) EACH(p, H) EACH(q, W) EACH(c, C) EACH(r, 3) EACH(s, 3) {
        int y = p + r - 1, x = q + s - 1;
        if (y < 0 || y >= H || x < 0 || x >= W) continue;
        O[(k * H + p) * W + q] += I[(c * H + y) * W + x] * F[((k * C + c) * 3 + r) * 3 + s];
    }
    check_close(&t, "O", O, tight);
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gmm),         cmocka_unit_test(test_gmv),
        cmocka_unit_test(test_c1d),         cmocka_unit_test(test_c2d),
        cmocka_unit_test(test_c3d),         cmocka_unit_test(test_t2d),
        cmocka_unit_test(test_grp),         cmocka_unit_test(test_dil),
        cmocka_unit_test(test_dep),         cmocka_unit_test(test_cap),
        cmocka_unit_test(test_bcv),         cmocka_unit_test(test_gfc),
        cmocka_unit_test(test_men_and_var), cmocka_unit_test(test_scn),
        cmocka_unit_test(test_sep),         cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_layernorm),   cmocka_unit_test(test_att),
        cmocka_unit_test(test_rnn),         cmocka_unit_test(test_rnn_without_steps),
        cmocka_unit_test(test_conv2d),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
