/* Where each rewrite must refuse: it would be wrong, or of no use. */
#include "rewrite_cases.h"

static const struct rewrite_case refusals[] = {
    {"bounds", NULL, /* a scaling turns the order round */
     "kernel p() { in X: i32[64]  out Y: i8[64]  axes i: 64\n"
     "  Y[i] = i8(clip(round(f64(max(X[i], 0)) * -0.25), -128, 127))\n}\n",
     0},
    {"bounds", NULL, /* nothing is between */
     "kernel p() { in X: i32[64]  out Y: i8[64]  axes i: 64\n"
     "  Y[i] = i8(clip(round(f64(max(X[i], 9000)) * 0.25), -128, 127))\n}\n",
     0},
    {"bounds", NULL, /* others read it too */
     "kernel p() { in X: i32[64]  out Y: i8[64]  out Z: i8[64]  temp T: i8[64]  axes i: 64\n"
     "  T[i] = i8(clip(round(f64(X[i]) * 0.25), -128, 127)); Y[i] = max(T[i], 0); Z[i] = T[i]\n}\n",
     1},
    {"bounds", NULL, /* not all of it */
     "kernel p() { in X: i32[64]  out Y: i8[32]  temp T: i8[64]  axes i: 64, j: 32\n"
     "  T[i] = i8(clip(round(f64(X[i]) * 0.25), -128, 127)); Y[j] = max(T[j], 0)\n}\n",
     1},
    {"factor", NULL, /* the third factor varies with everything that is reduced */
     "kernel p() { in A: f32[4,5]  in B: f32[5]  in D: f32[5]  inout C: f32[4]  axes i: 4, k: 5\n"
     "  C[i] += A[i,k] * B[k] * D[k]\n}\n",
     0},
    {"factor", NULL, /* a maximum of products: signs */
     "kernel p() { in A: f32[4,5]  in b: f32[4]  inout C: f32[4]  axes i: 4, k: 5\n"
     "  C[i] max= A[i,k] * b[i]\n}\n",
     0},
    {"ones", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"ones", NULL, "kernel p() { in A: f32[4]  inout C: f32[4]  axes i: 4\n  C[i] += A[i]\n}\n", 0},
    {"ones", NULL,
     "kernel p() { in A: f32[4,5]  inout C: f32[4]  axes i: 4, k: 5\n  C[i] max= A[i,k]\n}\n", 0},
    {"mask", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"mask", NULL,
     "kernel p() { in A: f32[4,5]  inout C: f32[4]  axes i: 4, k: 5\n"
     "  C[i] min= A[i,k] where k <= i\n}\n",
     0},
    {"mask", NULL, /* the factor without zeros would be read outside of its buffer */
     "kernel p() { in A: i32[9,9]  in B: i32[9,9]  inout C: i32[9,9]  axes i: 9, j: 9, k: 9\n"
     "  C[i,j] += A[i,k] * B[i-k,j] where k <= i\n}\n",
     0},
    {"whole", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"whole", NULL, /* it says what is summed, not what of the result is asked for */
     "kernel p() { in A: i32[9,9]  in B: i32[9,9]  inout C: i32[9,9]  axes i: 9, j: 9, k: 9\n"
     "  C[i,j] += A[i,k] * B[k,j] where k <= i\n}\n",
     0},
    {"whole", NULL, /* what is not asked for would be read outside of a buffer */
     "kernel p() { in A: i32[9,9]  in B: i32[9,9]  inout C: i32[9,9]  axes i: 9, j: 9, k: 9\n"
     "  C[i,j] += A[i,k] * B[k,i-j] where j <= i\n}\n",
     0},
    {"whole", NULL, /* nothing is summed */
     "kernel p() { in A: i32[9]  in B: i32[9]  inout C: i32[9,9]  axes i: 9, j: 9\n"
     "  C[i,j] += A[i] * B[j] where j <= i\n}\n",
     0},
    {"privatise", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"phases", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"trim", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"trim", NULL, /* the axis is used as a value */
     "kernel p() { inout Y: i64[20]  axes i: 20\n  Y[i] += i where i < 11\n}\n", 0},
    {"trim", NULL, /* nothing is left */
     "kernel p() { in X: i64[20]  inout Y: i64[20]  axes i: 20\n  Y[i] += X[i] where i > 19\n}\n",
     0},
    {"split-residual", "mm.i8.i8", MATMUL_OF("16"), 1}, /* nothing is left over */
    {"split-residual", "mm.i8.i8", MATMUL_OF("15"), 1}, /* nothing fills the instruction */
    {"split-residual", NULL, MATMUL_OF("17"), 1},
    {"split-residual", "mm.i8.i8", MATMUL_OF("17"), 0}, /* a fill */
    {"split-residual", "mm.i8.i8",                      /* the domain is not a box */
     "kernel p() { in A: i32[17,20]  in x: i32[20]  inout Y: i32[17]  axes i: 17, k: 20\n"
     "  Y[i] += A[i,k] * x[k] where k <= i\n}\n",
     0},
    {"phases", NULL, /* the data's buffer goes on behind the axis: other values would come in */
     "kernel p() { in I: i32[3,9]  const F: i32[3,4,3]  inout O: i32[4,11]\n"
     "  axes c: 3, k: 4, p: 5, r: 3\n  O[k,2*p+r] += I[c,p] * F[c,k,r]\n}\n",
     0},
    {"widen", "mm.i8.i8", MATMUL("i16", "i8", "i32"), 1},
    {"widen", "mm.f16.f16", MATMUL("f32", "f32", "f32"), 1},
    {"widen-other", "mm.i16.i8", MATMUL("i16", "i8", "i32"), 1}, /* the types differ */
    {"widen-other", "mm.i16.i16", MATMUL("i8", "i8", "i32"), 1},
    {"offset", "mm.u8.i8", MATMUL("i16", "i8", "i32"), 1},
    {"offset", "mm.u8.i8", MATMUL("u8", "i8", "i32"), 1},
    {"shift", "mm.moved", MOVED("in", "i8", "0"), 1}, /* what takes it back is made in each run */
    {"shift", "mm.moved", MOVED("const", "i16", "0"), 1},
    {"shift", "mm.moved", MOVED("const", "i8", "b[i]"), 1},
    {"shift", "mm.i8.i8", MOVED("const", "i8", "0"), 1},         /* it moves nothing */
    {"zero-point", NULL, ZEROS("in", "b[i]", "B[k,j]) - 3"), 1}, /* made in each run */
    {"zero-point", NULL, ZEROS("const", "b[i] + i32(B[0,j])", "B[k,j]) - 3"), 1},
    {"zero-point", NULL, ZEROS("const", "b[i]", "B[k,j])"), 1}, /* nothing is added */
    {"narrow-sum", "mm.i8.i8",                                  /* one more than fits */
     "kernel p() { in A: i8[2,131072]  in B: i8[131072,2]  inout C: i64[2,2]\n"
     "  axes i: 2, j: 2, k: 131072\n  C[i,j] += i64(A[i,k]) * i64(B[k,j])\n}\n",
     0},
    {"narrow-sum", "mm.u8.i8",
     "kernel p() { in A: u8[2,65794]  in B: i8[65794,2]  inout C: i64[2,2]\n"
     "  axes i: 2, j: 2, k: 65794\n  C[i,j] += i64(A[i,k]) * i64(B[k,j])\n}\n",
     0},
    {"digits", "mm.i8.i8", MATMUL("i32", "i8", "i32"),
     1}, /* any i32: four digits and their carry */
    {"narrow", "mm.f16.f16", MATMUL("f32", "f16", "f32"),
     1}, /* an argument's precision is the caller's */
    {"distribute", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"constants", NULL, /* a constant as it is needs no copy */
     "kernel p() { in X: f32[5,4]  const W: f32[6,4]  in S: f32[6]  out Y: f32[5,6]\n"
     "  axes n: 5, k: 6, c: 4\n  Y[n,k] = 0; Y[n,k] += X[n,c] * (W[k,c] * S[k])\n}\n",
     1},
    {"as-stored", NULL, /* what is stored is no smaller */
     "kernel p() { in X: f32[5,4]  const W: f32[4,6], S: f32[6]  out Y: f32[5,6]  temp D: "
     "f32[4,6]\n"
     "  axes n: 5, k: 6, c: 4\n  D[c,k] = W[c,k] * S[k]\n"
     "  Y[n,k] = 0; Y[n,k] += X[n,c] * D[c,k]\n}\n",
     2},
    {"as-stored", NULL, /* data is added */
     "kernel p() { in X: f32[5,4]  const W: i8[4,6]  in S: f32[6]  out Y: f32[5,6]  temp D: "
     "f32[4,6]\n"
     "  axes n: 5, k: 6, c: 4\n  D[c,k] = f32(W[c,k]); D[c,k] += S[k]\n"
     "  Y[n,k] = 0; Y[n,k] += X[n,c] * D[c,k]\n}\n",
     3},
    {"as-stored", NULL, /* the statement knows a window where the other has two axes */
     "kernel p() { in X: f32[5,4]  const W: i8[3,2,6]  out Y: f32[5,6]  temp D: f32[6,6]\n"
     "  axes n: 5, k: 6, c: 4, a: 3, b: 2\n  D[2*a+b,k] = f32(W[a,b,k])\n"
     "  Y[n,k] = 0; Y[n,k] += X[n,c] * D[c+1,k]\n}\n",
     2},
    {"from-zero", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"scale-weights", NULL, /* the sum is read elsewhere too */
     "kernel p() { in X: f32[5,4]  const W: f32[6,4], f: f32[6]  out Y: f32[5,6], Z: f32[5,6]\n"
     "  temp T: f32[5,6]  axes n: 5, k: 6, c: 4\n  T[n,k] = 0; T[n,k] += X[n,c] * W[k,c]\n"
     "  Y[n,k] = T[n,k] * f[k]; Z[n,k] = T[n,k]\n}\n",
     2},
    {"scale-weights", NULL, /* the factor is no constant */
     "kernel p() { in X: f32[5,4]  const W: f32[6,4]  in f: f32[6]  out Y: f32[5,6]\n"
     "  temp T: f32[5,6]  axes n: 5, k: 6, c: 4\n  T[n,k] = 0; T[n,k] += X[n,c] * W[k,c]\n"
     "  Y[n,k] = T[n,k] * f[k]\n}\n",
     2},
    {"scale-weights", NULL, /* it varies along what the weights lack */
     "kernel p() { in X: f32[5,4]  const W: f32[6,4], f: f32[5]  out Y: f32[5,6]\n"
     "  temp T: f32[5,6]  axes n: 5, k: 6, c: 4\n  T[n,k] = 0; T[n,k] += X[n,c] * W[k,c]\n"
     "  Y[n,k] = T[n,k] * f[n]\n}\n",
     2},
    {"scale-weights", NULL, /* integers wrap: digits of the weights would not fit */
     "kernel p() { in X: i32[5,4]  const W: i32[6,4], f: i32[6]  out Y: i32[5,6]\n"
     "  temp T: i32[5,6]  axes n: 5, k: 6, c: 4\n  T[n,k] = 0; T[n,k] += X[n,c] * W[k,c]\n"
     "  Y[n,k] = T[n,k] * f[k]\n}\n",
     2},
    {"from-zero", NULL, /* it reads what it writes */
     "kernel p() { inout A: f32[6]  in B: f32[6]  axes i: 6\n  A[i] = A[i] * B[i]\n}\n", 0},
    {"block-diagonal", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"identity", NULL,
     "kernel p() { in X: f32[6,8]  inout Y: f32[6,8]  axes i: 6, j: 8\n  Y[i,j] max= X[i,j]\n}\n",
     0},
    {"variance", NULL, /* the mean varies along the sum */
     "kernel p() { in X: i32[6,20]  in m: i32[20]  inout v: i32[6]  axes i: 6, j: 20\n"
     "  v[i] += (X[i,j] - m[j]) * (X[i,j] - m[j])\n}\n",
     0},
    {"associate", NULL, /* a difference is not associative */
     "kernel p() { in A: i32[6]  out C: i32[6]  axes i: 6\n  C[i] = A[i] - (A[i] - 3)\n}\n", 0},
    {"commute", NULL, "kernel p() { in A: i32[6]  out C: i32[6]  axes i: 6\n  C[i] = A[i] - 3\n}\n",
     0},
    {"split", NULL, "kernel p() { in A: i32[17]  inout C: i32[17]  axes i: 17\n  C[i] += A[i]\n}\n",
     0},
    {"fuse", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"fuse", NULL, /* only the first of the reads goes another way */
     "kernel p() { in A: i32[24]  in B: i32[30]  inout C: i32[24]  axes i: 4, j: 6\n"
     "  C[6*i+j] += A[4*j+i] * B[6*i+j+2]\n}\n",
     0},
    {"drop-axis", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"im2col", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"transpose", NULL,
     "kernel p() { in A: i32[17]  inout C: i32[17]  axes i: 17\n  C[i] += A[i]\n}\n", 0},
    {"reshape", NULL, /* an index outside would be inside the row */
     "kernel p() { in A: i32[4,5]  out C: i32[4,5]  axes i: 4, j: 5\n"
     "  C[i,j] = A[i,j+1 else 0]\n}\n",
     0},
    {"lanes", "add.f32", MATMUL("f32", "f32", "f32"), 1},
    {"lanes", "mm.f32.f32", /* it reduces no vector lane by lane */
     "kernel p() { in X: f32[6,48]  inout v: f32[6]  axes i: 6, j: 48\n  v[i] += X[i,j]\n}\n", 0},
    {"lanes", "add.i32", /* another type */
     "kernel p() { in X: f32[6,48]  inout v: f32[6]  axes i: 6, j: 48\n  v[i] += X[i,j]\n}\n", 0},
    {"lanes", "add.f32", /* its rows lie across */
     "kernel p() { in X: f32[48,6]  inout v: f32[6]  axes i: 6, j: 48\n  v[i] += X[j,i]\n}\n", 0},
    {"lanes", "add.f32", /* a window: vectors of its places need nothing of that */
     "kernel p() { in X: f32[6,79]  in W: f32[40]  inout v: f32[6,40]\n"
     "  axes i: 6, q: 40, j: 40\n  v[i,q] += X[i,q+j] * W[j]\n}\n",
     0},
    {"lanes", "add.f32", /* less than two vectors */
     "kernel p() { in X: f32[6,31]  inout v: f32[6]  axes i: 6, j: 31\n  v[i] += X[i,j]\n}\n", 0},
    {"lanes", "add.f32", /* more partial results than elements */
     "kernel p() { in X: f32[6,48]  in Y: f32[6,48]  inout v: f32[6,6]  axes i: 6, k: 6, j: 48\n"
     "  v[i,k] += X[i,j] * Y[k,j]\n}\n",
     0},
    {"winograd-2", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"winograd-2", NULL, /* stride 2 */
     "kernel p() { in I: f32[3,19]  const F: f32[4,3,3]  inout O: f32[4,9]\n"
     "  axes k: 4, p: 9, c: 3, r: 3\n  O[k,p] += I[c,2*p+r] * F[k,c,r]\n}\n",
     0},
    {"winograd-2", NULL, /* integers would need fractions */
     CONV("i32", "i32", "7", "8") "  O[n,k,p,q] += I[n,c,p+r,q+s]" TIMES_FILTER("i32"), 1},
    {"winograd-2", NULL, /* outside is no zero */
     CONV("f32", "f32", "9", "10") "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 2]" TIMES_FILTER("f32"),
     1},
};

static void test_refused(void **state) {
    struct machine *m = help_machine(TYPES);
    struct needles *needles = needles_open(m);
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct program *p = help_program("p", refusals[i].text);
        struct program *q = rewritten(needles, &refusals[i], p);
        if (q) show("must refuse", &refusals[i], q);
        assert_null(q);
        program_free(p);
    }
    needles_close(needles);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
