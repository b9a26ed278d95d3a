/* Each rewrite where it applies: it is proved, and the interpreter gives the same values; and that
 * the proof sees what a broken rewrite does: signs, shifted indices, other operations, statements
 * that are gone. */
#include "ir/interp.h"
#include "rewrite_cases.h"

#include <math.h>

static const struct rewrite_case cases[] = {
    {"factor", NULL,
     "kernel p() { in I: f32[4,6,6]  const D: f32[4,3,3]  const W: f32[5,4]  out O: f32[5,4,4]\n"
     "  axes k: 5, p: 4, q: 4, c: 4, r: 3, s: 3\n"
     "  O[k,p,q] = 0; O[k,p,q] += I[c,p+r,q+s] * D[c,r,s] * W[k,c]\n}\n",
     1},
    {"factor", NULL,
     "kernel p() { in A: i32[4,6]  in B: i32[6,5]  in D: i32[5,3]  inout O: i32[4,3]\n"
     "  axes i: 4, j: 6, k: 5, l: 3\n  O[i,l] += A[i,j] * (B[j,k] * D[k,l])\n}\n",
     0},
    {"ones", "mm.f16.f16",
     "kernel p() { in X: f16[6,20]  out y: f32[6]  axes i: 6, j: 20\n"
     "  y[i] = 0; y[i] += f32(X[i,j])\n}\n",
     1},
    {"ones", "mm.u8.i8",
     "kernel p() { in X: u8[6,20]  out y: i32[6]  axes i: 6, j: 20\n"
     "  y[i] = 0; y[i] += i32(X[i,j])\n}\n",
     1},
    {"mask", "mm.f16.f16",
     "kernel p() { in X: f16[6,20]  out Y: f32[6,20]  axes i: 6, j: 20, k: 20\n"
     "  Y[i,j] = 0; Y[i,j] += f32(X[i,k]) where k <= j\n}\n",
     1},
    {"mask", NULL,
     "kernel p() { in A: i32[6,20]  in B: i32[20,7]  inout Y: i32[6,7]  axes i: 6, j: 7, k: 20\n"
     "  Y[i,j] += A[i,k] * B[k,j] where k <= 2*j+1 and k >= i\n}\n",
     0},
    {"mask", NULL, /* each constraint in the factor that has its axes */
     "kernel p() { in A: i32[9,20]  in B: i32[20,7]  inout Y: i32[9,7]  axes i: 9, j: 7, k: 20\n"
     "  Y[i,j] += A[i,k] * B[k,j] where k <= i and 2*j + 3 <= k\n}\n",
     0},
    {"mask", NULL, /* over two axes of the sum */
     "kernel p() { in A: f32[6,5,4]  in B: f32[5,4,7]  inout Y: f32[6,7]\n"
     "  axes i: 6, j: 7, k: 5, l: 4\n"
     "  Y[i,j] += A[i,k,l] * B[k,l,j] where k <= l + 1 and l < i\n}\n",
     0},
    {"mask", NULL, /* what is copied is read outside of its buffer without the constraint */
     "kernel p() { in F: i8[9]  in B: i8[9,7]  inout Y: i32[9,7]  axes i: 9, j: 7, k: 9\n"
     "  Y[i,j] += i32(F[i-k]) * i32(B[k,j]) where k <= i\n}\n",
     0},
    {"whole", NULL,
     "kernel p() { in A: i32[9,20]  in B: i32[20,9]  inout Y: i32[9,9]  axes i: 9, j: 9, k: 20\n"
     "  Y[i,j] += A[i,k] * B[k,j] where j < i and k <= 2*j + 1\n}\n",
     0},
    {"whole", NULL, /* an offset in the result, windows */
     "kernel p() { in I: f32[3,22]  in F: f32[4,3,3]  inout O: f32[4,24]\n"
     "  axes k: 4, p: 20, c: 3, r: 3\n"
     "  O[k,p+2] += I[c,p+r-1 else 0] * F[k,c,r] where 5*k <= p\n}\n",
     0},
    {"whole", NULL, /* of maxima too */
     "kernel p() { in A: f32[9,20]  inout m: f32[9]  axes i: 9, k: 20\n"
     "  m[i] max= A[i,k] where i >= 4\n}\n",
     0},
    {"privatise", NULL,
     "kernel p() { in I: i32[3,5]  const F: i32[3,4,3]  out O: i32[4,11]\n"
     "  axes c: 3, k: 4, p: 5, r: 3, x: 11\n"
     "  O[k,x] = 0; O[k,2*p+r] += I[c,p] * F[c,k,r]\n}\n",
     1},
    {"privatise", NULL,
     "kernel p() { in I: f32[3,5]  const F: f32[3,4,2]  out O: f32[4,10]\n"
     "  axes c: 3, k: 4, p: 5, r: 2\n"
     "  O[k,2*p+r] = 0; O[k,2*p+r] += I[c,p] * F[c,k,r]\n}\n",
     1},
    {"phases", NULL,
     "kernel p() { in I: i32[3,5,4]  const F: i32[3,4,3,3]  out O: i32[4,11,9]\n"
     "  axes c: 3, k: 4, p: 5, q: 4, r: 3, s: 3, y: 11, x: 9\n"
     "  O[k,y,x] = 0; O[k,2*p+r,2*q+s] += I[c,p,q] * F[c,k,r,s]\n}\n",
     1},
    {"phases", NULL,
     "kernel p() { in I: f32[3,5]  const F: f32[3,4,4]  out O: f32[4,17]\n"
     "  axes c: 3, k: 4, p: 5, r: 4, x: 17\n"
     "  O[k,x] = 0; O[k,3*p+r+1] += I[c,p] * F[c,k,r]\n}\n",
     1},
    {"widen", "mm.i16.i16", MATMUL("i8", "i16", "i32"), 1},
    {"widen", "mm.f32.f32", MATMUL("f16", "f32", "f32"), 1},
    {"widen-other", "mm.i16.i8", MATMUL("i8", "i8", "i32"), 1},
    {"offset", "mm.u8.i8", MATMUL("i8", "i8", "i32"), 1},
    {"offset", "mm.i8.i8", MATMUL("u8", "i8", "i32"), 1},
    {"offset", "mm.u8.i8",
     CONV("i8", "i32", "9",
          "10") "  O[n,k,p,q] += i32(I[n,c,p+r-1,q+s-1 else 0])" TIMES_FILTER("i32"),
     1},
    {"shift", "mm.moved", MOVED("const", "i8", "0"), 1},
    {"shift", "mm.moved", /* what lies outside is moved too */
     "kernel p() { in I: i8[3,9,10]  const F: i8[4,3,3,3]  out O: i32[4,9,10]\n"
     "  axes k: 4, p: 9, q: 10, c: 3, r: 3, s: 3\n  O[k,p,q] = 0\n"
     "  O[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n}\n",
     1},
    {"shift", "mm.moved", MOVED("const", "i8", "7"), 1},
    {"zero-point", NULL, ZEROS("const", "b[i]", "B[k,j]) - 3"), 1},
    {"zero-point", NULL, ZEROS("const", "b[i] * 2 + 1", "B[k,j]) + 128"), 1},
    {"zero-point", NULL, ZEROS("const", "0", "B[k,j]) - 3"), 1},
    {"zero-point",
     NULL, /* what lies outside has the number too; a row and a column to begin with */
     "kernel p() { in I: i8[3,9,10]  const F: i8[4,3,3,3], b: i32[9]  out O: i32[4,9,10]\n"
     "  axes k: 4, p: 9, q: 10, c: 3, r: 3, s: 3\n  O[k,p,q] = b[p]\n"
     "  O[k,p,q] += (i32(I[c,p+r-1,q+s-1 else -128]) + 128) * i32(F[k,c,r,s])\n}\n",
     1},
    {"zero-point", NULL, /* each channel has its own weights, and one axis of the sum none */
     "kernel p() { in I: u8[5,9,7]  const F: i8[5,3]  out O: i32[5,7]\n"
     "  axes c: 5, p: 7, r: 3, s: 7\n  O[c,p] = 4\n"
     "  O[c,p] += (i32(I[c,p+r,s]) - 131) * i32(F[c,r])\n}\n",
     1},
    {"narrow-sum", "mm.i8.i8", MATMUL("i8", "i8", "i64"), 1},
    {"digits", "mm.i8.i8",
     "kernel p() { in I: i8[4,9]  const D: i8[4,3]  const W: i8[5,4]  out O: i32[5,7]\n"
     "  temp T: i32[4,7]  axes k: 5, p: 7, c: 4, r: 3\n  T[c,p] = 0\n"
     "  T[c,p] += i32(I[c,p+r]) * i32(D[c,r])\n"
     "  O[k,p] = 0; O[k,p] += T[c,p] * i32(W[k,c])\n}\n",
     3},
    {"digits", "mm.u8.i8",
     "kernel p() { in I: u8[4,9]  const D: i8[4,3]  const W: i8[5,4]  out O: i32[5,7]\n"
     "  temp T: i32[4,7]  axes k: 5, p: 7, c: 4, r: 3\n  T[c,p] = 0\n"
     "  T[c,p] += i32(I[c,p+r]) * i32(D[c,r])\n"
     "  O[k,p] = 0; O[k,p] += T[c,p] * i32(W[k,c])\n}\n",
     3},
    {"narrow", "mm.f16.f16",
     "kernel p() { in A: f32[6,5]  in B: f16[5,7]  out C: f32[6,7]  temp T: f32[6,5]  axes i: 6, "
     "j: 7, k: 5\n  T[i,k] = A[i,k]; C[i,j] = 0; C[i,j] += T[i,k] * f32(B[k,j])\n}\n",
     2},
    {"distribute", NULL,
     "kernel p() { in A: i32[6,5]  in B: i32[5,7]  in b: i32[7]  inout C: i32[6,7]\n"
     "  axes i: 6, j: 7, k: 5\n  C[i,j] += A[i,k] * (B[k,j] - b[j])\n}\n",
     0},
    {"distribute", NULL,
     "kernel p() { in A: i32[6,5]  in b: i32[6]  inout C: i32[6]  axes i: 6, k: 5\n"
     "  C[i] += A[i,k] + b[i]\n}\n",
     0},
    {"distribute", NULL,
     "kernel p() { in A: i8[6,5]  in B: i8[5,7]  inout C: i32[6,7]  axes i: 6, j: 7, k: 5\n"
     "  C[i,j] += (i32(A[i,k]) - 3) * (4 + i32(B[k,j]))\n}\n",
     0},
    {"constants", NULL,
     "kernel p() { in X: i32[5,4]  const W: u8[6,2], S: i32[6]  out Y: i32[5,6]\n"
     "  axes n: 5, k: 6, c: 2\n  Y[n,k] = 0\n"
     "  Y[n,k] += X[n,2*c] * ((i32(W[k,c] & 15) - 8) * S[k]) + X[n,2*c+1] * i32(shr(W[k,c], "
     "4))\n}\n",
     1},
    {"as-stored", NULL, /* two numbers in a byte, a scale for each block, through a copy */
     "kernel p() { in X: f32[5,12]  const W: u8[7,6], S: f32[7,3]  out Y: f32[5,7]\n"
     "  temp D: f32[7,12], T: f32[12,7]  axes n: 5, k: 7, c: 12, g: 3, b: 2\n"
     "  D[k,4*g+2*b] = (f32(W[k,2*g+b] & 15) - 8) * S[k,g]\n"
     "  D[k,4*g+2*b+1] = (f32(shr(W[k,2*g+b], 4)) - 8) * S[k,g]\n"
     "  T[c,k] = D[k,c]\n"
     "  Y[n,k] = 0\n  Y[n,k] += X[n,c] * T[c,k]\n}\n",
     4},
    {"as-stored", NULL, /* axes of one name in both; every second column; parts of a dimension */
     "kernel p() { in X: f32[5,4]  const W: i8[4,9], V: i8[2,9]  out Y: f32[5,4]\n"
     "  temp D: f32[6,9]  axes n: 5, k: 4, c: 4, v: 2, d: 6, j: 9\n"
     "  D[k,j] = f32(W[k,j]); D[v+4,j] = f32(V[1-v,j])\n"
     "  Y[n,k] = 0\n  Y[n,k] += X[n,c] * D[d,2*k+1]\n}\n",
     3},
    {"scale-weights", NULL,
     "kernel p() { in X: f32[5,4]  const W: f32[6,4], f: f32[6], o: f32[6]  out Y: f32[5,6]\n"
     "  temp T: f32[5,6]  axes n: 5, k: 6, c: 4\n"
     "  T[n,k] = 0; T[n,k] += X[n,c] * W[k,c]\n"
     "  Y[n,k] = max(T[n,k] * (f[k] / 3) + o[k], 0)\n}\n",
     2},
    {"scale-weights", NULL, /* groups of channels */
     "kernel p() { in X: f32[8,9]  const W: f32[6,4,3], f: f32[6]  out Y: f32[6,7]\n"
     "  temp T: f32[6,7], g: f32[6]  axes h: 2, k: 3, c: 4, p: 7, r: 3, i: 6\n"
     "  g[i] = f[i] + 0.5; T[3*h+k,p] = 0\n"
     "  T[3*h+k,p] += X[4*h+c,p+r] * W[3*h+k,c,r]; Y[i,p] = g[i] * T[i,p]\n}\n",
     3},
    {"from-zero", NULL,
     "kernel p() { in A: f32[6]  in B: f32[7]  out C: f32[6,7]  axes i: 6, j: 7\n"
     "  C[i,j] = A[i] * B[j]\n}\n",
     0},
    {"block-diagonal", "mm.f16.f16",
     "kernel p() { in I: f16[32,6,6]  const F: f16[32,3,3]  out O: f32[32,4,4]\n"
     "  axes c: 32, p: 4, q: 4, r: 3, s: 3\n"
     "  O[c,p,q] = 0; O[c,p,q] += f32(I[c,p+r,q+s]) * f32(F[c,r,s])\n}\n",
     1},
    {"block-diagonal", NULL,
     "kernel p() { in I: i8[6,9]  const F: i8[6,2,3]  inout O: i32[6,2,7]\n"
     "  axes c: 6, m: 2, p: 7, r: 3\n  O[c,m,p] += i32(I[c,p+r]) * i32(F[c,m,r])\n}\n",
     0},
    {"identity", "mm.i8.i8",
     "kernel p() { in X: i8[6,32]  inout Y: i32[6,32]  axes i: 6, j: 32\n"
     "  Y[i,j] += i32(X[i,j])\n}\n",
     0},
    {"identity", NULL,
     "kernel p() { in X: f32[6,8]  out Y: f32[8,6]  axes i: 6, j: 8\n  Y[j,i] = X[i,j]\n}\n", 0},
    {"variance", NULL,
     "kernel p() { in X: i32[6,20]  in m: i32[6]  out v: i32[6]  axes i: 6, j: 20\n"
     "  v[i] = 0; v[i] += (X[i,j] - m[i]) * (X[i,j] - m[i])\n}\n",
     1},
    {"variance", NULL,
     "kernel p() { in X: f32[6,20]  in m: f32[6]  out v: f32[6]  axes i: 6, j: 20\n"
     "  v[i] = 0; v[i] += (X[i,j] - m[i]) * (X[i,j] - m[i])\n}\n",
     1},
    {"associate", NULL,
     "kernel p() { in A: i32[6]  out C: i32[6]  axes i: 6\n  C[i] = A[i] * (A[i] * (A[i] + "
     "3))\n}\n",
     0},
    {"commute", NULL,
     "kernel p() { in A: f32[6]  in B: f32[6]  out C: f32[6]  axes i: 6\n"
     "  C[i] = A[i] + B[i] * 3.0\n}\n",
     0},
    {"split", NULL,
     "kernel p() { in A: i32[64]  inout C: i32[64]  axes i: 64\n  C[i] += A[i] where i <= 40\n}\n",
     0},
    {"trim", NULL,
     "kernel p() { in A: i32[9,20]  in B: i32[20,7]  inout Y: i32[9,7]  axes i: 9, j: 7, k: 20\n"
     "  Y[i,j] += A[i,k] * B[k,j] where 2*k > 7 and 3*k <= 50 and j < 9\n}\n",
     0},
    {"trim", NULL, /* what ties axes to each other stays */
     "kernel p() { in X: f32[6,20]  out Y: f32[6,20]  axes i: 6, j: 20, k: 20\n"
     "  Y[i,j] = 0; Y[i,j] += X[i,k] where k <= j and k < 11\n}\n",
     1},
    {"split-residual", "mm.i8.i8", MATMUL_OF("18"), 1},
    {"split-residual", "mm.i8.i8", MATMUL_OF("35"), 1},
    {"split-residual", "mm.i8.i8",
     "kernel p() { in A: i8[6,35]  in B: i8[35,7]  out C: i32[6,7]  axes i: 6, j: 7, k: 35\n"
     "  C[i,j] = 0; C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n",
     1},
    {"split-residual", "mm.i8.i8", /* what was there stays */
     "kernel p() { in A: i8[19,5]  in B: i8[5,7]  inout C: i32[7,19]  axes i: 19, j: 7, k: 5\n"
     "  C[j,i] += i32(A[i,k]) * i32(B[k,j])\n}\n",
     0},
    {"split-residual", "mm.f16.f16", /* windows */
     "kernel p() { in I: f16[3,22]  in F: f16[4,3,3]  out O: f32[4,20]\n"
     "  axes k: 4, p: 20, c: 3, r: 3\n"
     "  O[k,p] = 0; O[k,p] += f32(I[c,p+r-1 else 0]) * f32(F[k,c,r])\n}\n",
     1},
    {"split-residual", "mm.i8.i8", /* an outer product */
     "kernel p() { in A: i8[17]  in B: i8[3]  out C: i32[3,17]  axes i: 17, j: 3\n"
     "  C[j,i] = i32(A[i]) * i32(B[j])\n}\n",
     0},
    {"fuse", NULL,
     "kernel p() { in A: i32[24]  in B: i32[30]  inout C: i32[24]  axes i: 4, j: 6\n"
     "  C[6*i+j] += A[6*i+j] * B[6*i+j+2]\n}\n",
     0},
    {"add-axis", NULL,
     "kernel p() { in A: i32[6,5]  in x: i32[5]  inout y: i32[6]  axes i: 6, k: 5\n"
     "  y[i] += A[i,k] * x[k]\n}\n",
     0},
    {"drop-axis", NULL,
     "kernel p() { in A: i32[1,5]  inout y: i32[1]  axes i: 1, k: 5\n  y[i] += A[i,k]\n}\n", 0},
    {"im2col", NULL,
     CONV("f32", "f32", "9", "10") "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 0]" TIMES_FILTER("f32"),
     1},
    {"transpose", NULL, MATMUL("f32", "f32", "f32"), 1},
    {"transpose", NULL,
     CONV("i32", "i32", "9", "10") "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 3]" TIMES_FILTER("i32"),
     1},
    {"reshape", NULL,
     CONV("i32", "i32", "7", "8") "  O[n,k,p,q] += I[n,c,p+r,q+s]" TIMES_FILTER("i32"), 1},
    {"lanes", "add.f32",
     "kernel p() { in X: f32[6,48]  out m: f32[6]  axes i: 6, j: 48\n"
     "  m[i] = -inf; m[i] max= X[i,j] * 2\n}\n",
     1},
    {"lanes", "add.f32", /* something is left over, and what was there stays */
     "kernel p() { in X: f32[6,53]  in Y: f32[53]  inout v: f32[6]  axes i: 6, j: 53\n"
     "  v[i] += X[i,j] * Y[j]\n}\n",
     0},
    {"lanes", "add.f32", /* eight vectors at a time, whose lanes are reduced in lanes again */
     "kernel p() { in X: f32[3,2064]  inout v: f32[3]  axes i: 3, j: 2064\n"
     "  v[i] += X[i,j]\n}\n",
     0},
    {"lanes", "add.i32", /* one is left over; of two axes one lies along */
     "kernel p() { in X: i32[4,6,33]  inout v: i32[6]  axes k: 4, i: 6, j: 33\n"
     "  v[i] += X[k,i,j]\n}\n",
     0},
    {"winograd-2", NULL,
     CONV("f32", "f32", "7", "8") "  O[n,k,p,q] += I[n,c,p+r,q+s]" TIMES_FILTER("f32"), 1},
    {"winograd-2", NULL,
     CONV("f32", "f32", "9", "10") "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 0]" TIMES_FILTER("f32"),
     1},
    {"winograd-4", NULL,
     CONV("f32", "f32", "9", "10") "  O[n,k,p,q] += I[n,c,p+r-1,q+s-1 else 0]" TIMES_FILTER("f32"),
     1},
    {"winograd-4", NULL,
     "kernel p() { in I: f32[3,20]  const F: f32[4,3,5]  out O: f32[4,16]\n"
     "  axes k: 4, p: 16, c: 3, r: 5\n  O[k,p] = 0; O[k,p] += I[c,p+r] * F[k,c,r]\n}\n",
     1},
    {"monotone-exchange", NULL,
     "kernel p() { in X: i32[64]  out Y: i8[64]  axes i: 64\n"
     "  Y[i] = max(i8(clip(round(f64(X[i] + 7) * 0.25), -128, 127)), 0)\n}\n",
     0},
    {"bounds", NULL,
     "kernel p() { in X: i32[64]  out Y: i8[64]  axes i: 64\n"
     "  Y[i] = max(i8(clip(round(f64(X[i] + 7) * 0.25), -128, 127)), 0)\n}\n",
     0},
    {"bounds", NULL,
     "kernel p() { in X: i32[64]  out Y: i8[64]  axes i: 64\n"
     "  Y[i] = i8(clip(round(f64(min(max(X[i], 20), 9000)) * 0.25), -128, 127))\n}\n",
     0},
    {"bounds", NULL,
     "kernel p() { in X: i32[6,8]  out Y: i8[6,8]  temp T: i8[6,8]  axes i: 6, j: 8\n"
     "  T[i,j] = i8(clip(round(f64(X[i,j]) * 0.25), -128, 127))\n  Y[i,j] = min(T[i,j], 6)\n}\n",
     1},
};

/* ---- help ---- */

static void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP) continue;
        data[b] = calloc((size_t)x->elements + 1, type_size(x->type));
        for (int64_t i = 0; i < x->elements; i++) {
            union value v = {.i = (int64_t)help_random(&seed) % 1000};
            if (type_is_float(x->type)) v.f = (double)help_below(&seed, 2001) / 1000 - 1;
            type_store(x->type, (char *)data[b] + (size_t)i * type_size(x->type), v);
        }
    }
    return data;
}

/* Do both programs leave the same in all arguments? Floats: within 1e-3 (f16 operands: 1e-2). */
static bool same_values(const struct program *p, const struct program *q, uint64_t seed) {
    void **x = make_data(p, seed), **y = make_data(p, seed);
    void **z = calloc((size_t)q->nbuffers + 1, sizeof *z);
    struct diags d;
    diags_init(&d);
    for (int b = 0; b < p->nbuffers; b++) z[b] = y[b];
    bool same = program_run(p, x, NULL, NULL, &d) && program_run(q, z, NULL, NULL, &d);
    for (int b = 0; b < p->nbuffers && same; b++)
        for (int64_t i = 0; x[b] && i < p->buffer[b].elements && same; i++) {
            enum type t = p->buffer[b].type;
            union value v = type_load(t, (char *)x[b] + (size_t)i * type_size(t));
            union value w = type_load(t, (char *)y[b] + (size_t)i * type_size(t));
            same = type_is_float(t) ? fabs(v.f - w.f) <= 1e-2 : v.i == w.i;
        }
    for (int b = 0; b < p->nbuffers; b++) {
        free(x[b]);
        free(y[b]);
    }
    diags_free(&d);
    free(x);
    free(y);
    free(z);
    return same;
}

/* ---- tests ---- */

static void test_applied(void **state) {
    struct machine *m = help_machine(TYPES);
    struct needles *needles = needles_open(m);
    bool used[64] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program *p = help_program("p", cases[i].text), *q = rewritten(needles, &cases[i], p);
        struct text why = {0};
        struct diags d;
        diags_init(&d);
        if (!q) show("does not apply", &cases[i], p);
        assert_non_null(q);
        bool proved = rewrite_prove(named(cases[i].rewrite), p, q, &why);
        if (!proved) show(why.at, &cases[i], q);
        assert_true(proved);
        assert_true(program_verify(q, &d));
        for (uint64_t seed = 1; seed < 4; seed++) {
            bool same = same_values(p, q, seed);
            if (!same) show("other values", &cases[i], q);
            assert_true(same);
        }
        for (int r = 0; rewrites[r]; r++) used[r] |= rewrites[r] == named(cases[i].rewrite);
        text_free(&why);
        diags_free(&d);
        program_free(q);
        program_free(p);
    }
    for (int r = 0; rewrites[r]; r++) assert_true(used[r]); /* none without a test */
    needles_close(needles);
    machine_free(m);
}

/* The largest sums that fit are made, in the narrow type. */
static void test_ranges(void **state) {
    static const struct {
        const char *needle, *a;
        int k;
    } at[] = {{"mm.i8.i8", "i8", 131071}, {"mm.u8.i8", "u8", 65793}};
    struct machine *m = help_machine(TYPES);
    struct needles *needles = needles_open(m);
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel p() { in A: %s[2,%d]  in B: i8[%d,2]  inout C: i64[2,2]\n"
                    "  axes i: 2, j: 2, k: %d\n  C[i,j] += i64(A[i,k]) * i64(B[k,j])\n}\n",
                    at[i].a, at[i].k, at[i].k, at[i].k);
        struct program *p = help_program("p", t.at);
        struct rewrite_case c = {"narrow-sum", at[i].needle, t.at, 0};
        struct program *q = rewritten(needles, &c, p);
        assert_non_null(q);
        assert_true(rewrite_prove(named("narrow-sum"), p, q, NULL));
        program_free(q);
        program_free(p);
        text_free(&t);
    }
    needles_close(needles);
    machine_free(m);
}

/* ---- broken rewrites ---- */

enum { MUTANTS = 12 };

static void shift_index(struct program *q, struct stmt *s, uint64_t *seed) {
    struct access *a = help_below(seed, s->nreads + 1) && s->nreads
                           ? &s->read[help_below(seed, s->nreads)]
                           : &s->dst;
    int ndims = q->buffer[a->buffer].ndims;
    if (ndims == 0) return;
    int64_t *row = a->coef + (size_t)help_below(seed, ndims) * ((size_t)q->naxes + 1);
    int axis = help_below(seed, q->naxes + 1);
    if (axis < q->naxes && !(s->axes >> axis & 1)) axis = q->naxes;
    row[axis] += help_below(seed, 2) ? 1 : -1;
}

static bool change_op(struct stmt *s, uint64_t *seed) {
    struct op *o = &s->op[help_below(seed, s->nops)];
    if (o->code == OP_LITERAL && type_is_float(o->type))
        o->value.f = o->value.f == 0 ? 1 : -o->value.f;
    else if (o->code == OP_LITERAL && o->type != TYPE_BOOL)
        o->value.i += 1;
    else if (o->code == OP_ADD || o->code == OP_SUB)
        o->code = o->code == OP_ADD ? OP_SUB : OP_ADD;
    else if (o->code == OP_EQ || o->code == OP_GE)
        o->code = o->code == OP_EQ ? OP_LE : OP_GT;
    else if (o->code == OP_MUL)
        o->code = OP_ADD;
    else
        return false;
    return true;
}

/* One thing is wrong in a statement that the rewrite wrote. */
static struct program *broken(const struct program *p, const struct program *q, int from,
                              uint64_t *seed) {
    struct program *b = program_copy(q);
    int more = q->nstmts - p->nstmts; /* negative: the one before took it in */
    struct stmt *s = &b->stmt[more < 0 ? from + more : from + help_below(seed, more + 1)];
    switch (help_below(seed, 4)) {
    case 0:
        shift_index(b, s, seed);
        break;
    case 1:
        for (int k = 0; k < 20 && !change_op(s, seed); k++) {
        }
        break;
    case 2:
        s->combine = s->combine == COMBINE_SET ? COMBINE_ADD : COMBINE_SET;
        break;
    default:
        for (int i = 0; i < b->nitems; i++)
            if (b->item[i].stmt == (int)(s - b->stmt)) {
                memmove(b->item + i, b->item + i + 1,
                        (size_t)(b->nitems - i - 1) * sizeof *b->item);
                b->nitems--;
                break;
            }
    }
    s->axes = stmt_axes(b, s);
    return b;
}

/* What is proved are the statements that changed: what stands before and behind them may be
 * anything, a recurrence too. */
static void test_others_stay(void **state) {
    static const char *const last[] = {"y[i] = a[i] + b[i]", "y[i] = b[i] + a[i]",
                                       "y[i] = b[i] - a[i]"};
    struct program *p[3];
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel p() { in X: f32[7,12] in h0: f32[12] out hT: f32[12] out y: f32[12]\n"
                    "  temp a: f32[12] temp b: f32[12] axes i: 12\n  a[i] = X[0,i]\n"
                    "  recur t: 7 state h: f32[12] from h0 to hT { axes j: 12\n"
                    "  h'[j] = h[j] + X[t,j] }\n  b[i] = hT[i] * 2.0\n  %s\n}\n",
                    last[k]);
        p[k] = help_program("p", t.at);
        text_free(&t);
    }
    assert_true(rewrite_prove(named("narrow-sum"), p[0], p[1], NULL));
    assert_false(rewrite_prove(named("narrow-sum"), p[0], p[2], NULL));
    for (int k = 0; k < 3; k++) program_free(p[k]);
}

static void test_broken(void **state) {
    struct machine *m = help_machine(TYPES);
    struct needles *needles = needles_open(m);
    uint64_t seed = 7;
    int caught = 0, harmless = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < MUTANTS; k++) {
            struct program *p = help_program("p", cases[i].text);
            struct program *q = rewritten(needles, &cases[i], p);
            struct program *b = broken(p, q, cases[i].stmt, &seed);
            if (!rewrite_prove(named(cases[i].rewrite), p, b, NULL)) {
                caught++;
            } else { /* then nothing was broken */
                for (uint64_t s = 1; s < 6; s++) {
                    bool same = same_values(p, b, s);
                    if (!same) show("a broken program was proved", &cases[i], b);
                    assert_true(same);
                }
                harmless++;
            }
            program_free(b);
            program_free(q);
            program_free(p);
        }
    print_message("%d broken programs caught, %d changes that changed nothing\n", caught, harmless);
    assert_true(caught > 8 * harmless);
    needles_close(needles);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_applied), cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_others_stay), cmocka_unit_test(test_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
