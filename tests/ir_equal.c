/* The checker of program changes: what it proves, by which laws, and that it refuses what is wrong
 * in one thing alone: a multiplicity, a law that an operation does not have, a shifted index, a
 * domain that is shorter by one, another neutral element. */
#include "ir/chain.h"
#include "ir/equal_alike.h"
#include "equal_help.h"

#define IN "in A: i32[16,16]  in B: i32[16,16]  inout C: i32[70,70]  "
#define WHOLE "in A: i32[16,16]  inout C: i32[16,16]  axes i: 16, j: 16, k: 16\n"
#define FLOATS "in A: f32[16,16]  in B: f32[16,16]  inout C: f32[70,70]  "
#define COPIED                                                                                     \
    "in A: f32[16,3]  in X: f32[3,40]  out C: f32[16,16]  out W: f32[16,3]  "                      \
    "temp T: f32[3,16]  temp D: f32[16,16]  axes i: 16, j: 16, r: 3, k: 3\n"
#define HALVES                                                                                     \
    "in A: f16[16,9]  in B: f32[16,9]  inout C: f16[16]  inout D: f32[16]  temp T: f32[16]  "      \
    "axes i: 16, k: 9\n"
#define THIRDS                                                                                     \
    "in A: f16[16,9]  inout C: f16[48]  temp D: f32[48]  temp T: f16[48]  axes i: 48, j: 16, k: "  \
    "9\n"
#define WINDOWS FLOATS "temp T: f32[14,12]  axes w: 14, u: 3, v: 4, f: 12\n"
#define WINDOW "C[w,0] max= A[w+u,v]"
#define BORDERED "C[w,0] max= A[w+u,2*w+v-2 else -4]"
#define FUSED                                                                                      \
    "in A: f32[48,17]  in B: f32[17,16]  out C: f32[48,16]  inout D: f32[48]  "                    \
    "temp P: f32[17,768]  temp Q: f32[17,768]  temp R: f32[768]  "                                 \
    "axes i: 48, j: 16, k: 17, f: 768\n"
#define PRODUCT "C[i,j] = 0; C[i,j] += A[i,k] * B[k,j]; "
#define FUSED_PRODUCT                                                                              \
    "P[k,16*i+j] = A[i,k]; Q[k,16*i+j] = B[k,j]; C[i,j] = 0; R[16*i+j] = C[i,j]; "                 \
    "R[f] += P[k,f] * Q[k,f]; C[i,j] = R[16*i+j]; "
#define LANES                                                                                      \
    "in A: f32[8,64]  inout D: f32[8]  temp L: f32[8,16]  temp T: f32[4,128]  temp R: f32[128]  "  \
    "axes i: 8, a: 4, b: 16, f: 128\n"
#define LARGEST "L[i,b] = -inf; L[i,b] max= A[i,16*a+b]; "
#define LANES_FUSED                                                                                \
    "L[i,b] = -inf; T[a,16*i+b] = A[i,16*a+b]; R[16*i+b] = L[i,b]; R[f] max= T[a,f]; "             \
    "L[i,b] = R[16*i+b]; "
#define CORNERS FLOATS "temp T: f32[3,3,9]  axes p: 3, q: 3, r: 3, s: 3, f: 9\n"
#define CORNERED "C[p,q] = -inf; C[p,q] max= A[2*p+r-1,2*q+s-1 else -inf]"
#define AXES "axes i: 16, j: 16, k: 16, n: 9\n"

#define STAGES                                                                                     \
    "in A: i32[5]  out B: i32[5]  out D: i32[5]  out E: i32[5]  temp T: i32[5]  temp U: i32[5]  "  \
    "temp V: i32[5]  axes i: 5, n: 3, m: 4\n"
#define STAGED                                                                                     \
    "B[i] = 0; B[i] += A[4-i] where n < 2; D[i] = 0; D[i] += B[4-i] where n < 2; E[i] = 0; "       \
    "E[i] += D[4-i] where n < 2"
#define STAGED_2 "T[i] = A[4-i]; B[i] = T[i] * 2; U[i] = B[4-i]; D[i] = U[i] * 2; "

#define PLACED                                                                                     \
    "in X: f32[6,5]  in W: f32[6,5]  out Y: f32[6,5]  temp a: f32[6,5]  temp b: f32[6,5]  "        \
    "temp s: f32[6]  axes i: 6, j: 5\n"
#define PLACE(a, read) a "[i,j] = exp(X[i,j]); s[i] = 0; s[i] += " a "[i,j]; " read "; "

#define CELL                                                                                       \
    "in X: i32[9,8]  in U: i32[8,8]  in h0: i32[8]  inout y: i32[9,8]  inout hT: i32[8]  "         \
    "axes i: 8, j: 8, s: 9\n"
#define CELL_AS(state, step)                                                                       \
    "recur t: 9 state " state ": i32[8] from h0 to hT { temp a: i32[8]; a[i] = X[" step ",i]; "    \
    "a[i] += U[i,j] * " state "[j]; " state "'[i] = max(a[i], 0); y[t,i] = " state "'[i] }"
#define OPENED(first, next, last)                                                                  \
    "temp h: i32[8]; temp a: i32[8]; temp V: i32[8,8]; V[j,i] = U[i,j]; h[i] = h0[i]; "            \
    "a[i] = 0; recur t: 9 { " first "; a[i] += V[j,i] * h[j]; h[i] = " next "; y[t,i] = h[i] } "   \
    "hT[i] = " last
#define LIFTED(made, read)                                                                         \
    "temp h: i32[8]; temp a: i32[8]; temp G: i32[9,8]; " made "; h[i] = h0[i]; "                   \
    "recur t: 9 { a[i] = " read "; a[i] += U[i,j] * h[j]; h[i] = max(a[i], 0); y[t,i] = h[i] } "   \
    "hT[i] = h[i]"
#define SUMMED(before, step) before "recur t: 9 { " step "; y[t,i] = hT[i] }"
#define OPEN                                                                                       \
    "(T=0..9) { in X: i32[T]  in h0: i32[1]  inout y: i32[9]  inout hT: i32[1]  axes i: 1\n"
#define OPEN_CELL(read, state)                                                                     \
    "recur t: T state " state ": i32[1] from h0 to hT { " state "'[i] = 3 * " state "[i] + " read  \
    "; y[t] = " state "'[0] }"
#define OPEN_LIFTED(read)                                                                          \
    "temp h: i32[1]; temp G: i32[T]; recur t: T { G[t] = X[t] } h[i] = h0[i]; "                    \
    "recur t: T { h[i] = " read " + 3 * h[i]; y[t] = h[0] } hT[i] = h[i]"
#define KEPT(name, step)                                                                           \
    "temp a: i32[8]; temp " name ": i32[9,8]; recur t: 9 { a[i] = X[t,i]; y[t,i] = a[i]; " name    \
    "[t,i] = a[i] } hT[i] = " name "[" step ",i]"
/* A matrix that decays, step by step, and in chunks of four steps. */
#define DECAY(steps)                                                                               \
    "in f: f32[" steps "]  in k: f32[" steps ",3]  in v: f32[" steps ",5]  in q: f32[" steps       \
    ",3]  in S0: f32[3,5]  inout o: f32[" steps ",5]  out ST: f32[3,5]\n"
#define DECAYING(name, steps, at, from, to)                                                        \
    "recur " name ": " steps " state S: f32[3,5] from " from " to " to " { axes i: 3, j: 5; "      \
    "S'[i,j] = f[" at "] * S[i,j] + k[" at ",i] * v[" at ",j]; "                                   \
    "o[" at ",j] = 0; o[" at ",j] += q[" at ",i] * S'[i,j] } "
#define CHUNKS(n, to, first, last, upto)                                                           \
    "recur c: " n " state S: f32[3,5] from S0 to " to " { axes i: 3, j: 5, r: 4, s: 4, u: 4; "     \
    "temp m: f32[4,4]; temp e: f32[4]; temp P: f32[4,4]; temp W: f32[4,4]; temp x: f32[4,3]; "     \
    "temp y: f32[4,3]; m[r,s] = 1.0; m[r,s] *= f[4*c+u] where " first " and u <= r; e[r] = 1.0; "  \
    "e[r] *= f[4*c+u] where " last "; P[r,s] = 0; P[r,s] += q[4*c+r,i] * k[4*c+s,i]; "             \
    "W[r,s] = P[r,s] * m[r,s]; x[r,i] = q[4*c+r,i] * e[r]; y[s,i] = k[4*c+s,i] * m[3,s]; "         \
    "o[4*c+r,j] = 0; o[4*c+r,j] += W[r,s] * v[4*c+s,j] where " upto "; "                           \
    "o[4*c+r,j] += x[r,i] * S[i,j]; S'[i,j] = e[3] * S[i,j]; S'[i,j] += y[s,i] * v[4*c+s,j] } "
#define NESTED(next)                                                                               \
    "recur t: 9 state h: i32[8] from h0 to hT { recur u: 3 state p: i32[8] from h to h' "          \
    "{ p'[i] = " next " } y[t,i] = h'[i] }"

static const struct equal_case cases[] = {
    /* multiplicities */
    {IN AXES, "C[i+30,j] += A[i,k] where n < 5", "C[i+30,j] += A[i,k] * 5", LAWS_EXACT, true},
    {IN AXES, "C[i+30,j] += A[i,k] where n < 5", "C[i+30,j] += A[i,k]", LAWS_EXACT, false},
    {IN AXES, "C[i+30,j] += A[i,k] where n < 5", "C[i+30,j] += A[i,k] * 4", LAWS_EXACT, false},
    {IN AXES, "C[i,j] max= A[i,k] where n < 5", "C[i,j] max= A[i,k]", LAWS_EXACT, true},
    {IN AXES, "C[i,j] *= A[i,k] where n < 5", "C[i,j] *= A[i,k]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] += A[i,k] where n <= i", "C[i,j] += A[i,k] where n <= j", LAWS_EXACT, false},
    {IN AXES, "C[i,j] += A[i,k] where n <= i", "C[i,j] += A[i,k] where i >= n", LAWS_EXACT, true},
    {FLOATS AXES, "C[i,j] += A[i,k] where n < 5", "C[i,j] += A[i,k] * 5.0", LAWS_EXACT, false},
    {FLOATS AXES, "C[i,j] += A[i,k] where n < 5", "C[i,j] += A[i,k] * 5.0", LAWS_REORDER, true},
    {FLOATS AXES, "C[i,j] += A[i,k] + 3.0 where n < 5", "C[i,j] += A[i,n] + 3.0 where k < 5",
     LAWS_EXACT, false},
    {"in A: f32[4,20]  inout C: f32[4]  axes i: 4, b: 5, c: 4, d: 20\n", "C[i] += A[i,4*b+c] + 3.0",
     "C[i] += A[i,d] + 3.0", LAWS_EXACT, true},
    {"in A: f32[4,20]  inout C: f32[4]  axes i: 4, b: 5, c: 4, d: 20\n", "C[i] += A[i,4*b+c] + 3.0",
     "C[i] += A[i,d] + 3.0 where d < 19", LAWS_EXACT, false},
    {"in A: f32[4,20]  inout C: f32[4]  axes i: 4, b: 5, c: 4, d: 20\n",
     "C[i] += A[i-2,4*b+c else 1.0] * 3.0", "C[i] += A[i-2,d else 1.0] * 3.0", LAWS_EXACT, true},
    {"in A: f32[4,20]  inout C: f32[4]  axes i: 4, b: 5, c: 4, d: 20\n",
     "C[i] += A[i-2,4*b+c else 1.0] * 3.0 where c < b", "C[i] += A[i-2,d else 1.0] * 3.0",
     LAWS_EXACT, false},
    {"in A: f32[4,20]  inout C: f32[4]  axes i: 4, b: 5, c: 4, d: 20\n", "C[i] += 3.0 where b < 4",
     "C[i] += 3.0 where d < 16 and b < 1", LAWS_EXACT, false},
    {"in A: f32[4,20]  inout C: f32[4]  axes i: 4, b: 5, c: 4, d: 20\n",
     "C[i] += 3.0 where b < 4 and c < 5", "C[i] += 3.0 where d < 16", LAWS_EXACT, true},
    /* a temporary lies where the result will */
    {PLACED, PLACE("a", "Y[i,j] = a[i,j] / s[i]"), PLACE("Y", "Y[i,j] = Y[i,j] / s[i]"), LAWS_EXACT,
     true},
    {PLACED, PLACE("a", "b[i,j] = a[i,j] / s[i]") "Y[i,j] = b[i,j] + W[i,j]",
     PLACE("Y", "b[i,j] = Y[i,j] / s[i]") "Y[i,j] = b[i,j] + W[i,j]", LAWS_EXACT, true},
    {PLACED, PLACE("a", "b[i,j] = a[i,j] / s[i]") "Y[i,j] = b[i,j] + a[i,j]",
     PLACE("Y", "b[i,j] = Y[i,j] / s[i]") "Y[i,j] = b[i,j] + Y[i,j]", LAWS_EXACT, true},
    {PLACED, PLACE("a", "Y[i,j] = a[i,j] / s[i]") "Y[i,j] += a[i,j]",
     PLACE("Y", "Y[i,j] = Y[i,j] / s[i]") "Y[i,j] += Y[i,j]", LAWS_EXACT, false},
    /* a sum of what it writes, once and more than once */
    {WHOLE, "C[i,j] += C[i,j]", "C[i,j] = C[i,j] + C[i,j]", LAWS_EXACT, true},
    {WHOLE, "C[i,j] += C[i,j]", "C[i,j] = C[i,j] + A[i,j]", LAWS_EXACT, false},
    {WHOLE, "C[i,j] += C[i,j] where k < 1", "C[i,j] = C[i,j] + C[i,j]", LAWS_EXACT, true},
    /* a condition on indices that another statement writes down */
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i - j >= 2, A[i,j], 0)",
     "T[i,j] = i - j >= 2; C[i,j] = select(T[i,j], A[i,j], 0)", LAWS_EXACT, true},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i - j >= 2, A[i,j], 0)",
     "T[i,j] = i - j >= 2; C[i,j] = select(T[j,i], A[i,j], 0)", LAWS_EXACT, false},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i - j >= 2, A[i,j], 0)",
     "T[i,j] = i - j > 2; C[i,j] = select(T[i,j], A[i,j], 0)", LAWS_EXACT, false},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i - j >= 2, A[i,j], 0)",
     "T[j,i] = i - j >= 2; C[i,j] = select(T[j,i], A[i,j], 0)", LAWS_EXACT, true},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i >= j & j + 4 > i, A[i,j], 0)",
     "T[i,j] = i >= j & j + 4 > i; C[i,j] = select(T[i,j], A[i,j], 0)", LAWS_EXACT, true},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i >= j & j + 4 > i, A[i,j], 0)",
     "T[i,j] = i >= j & j + 4 > i; C[i,j] = select(T[j,i], A[i,j], 0)", LAWS_EXACT, false},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i >= j & j + 4 > i, A[i,j], 0)",
     "T[i,j] = i >= j & j + 3 > i; C[i,j] = select(T[i,j], A[i,j], 0)", LAWS_EXACT, false},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i >= j & j + 4 > i, A[i,j], 0)",
     "T[i,j] = i >= j | j + 4 > i; C[i,j] = select(T[i,j], A[i,j], 0)", LAWS_EXACT, false},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i >= j & j + 4 > i, A[i,j], 0)",
     "T[i,j] = i < j | j + 4 <= i; C[i,j] = select(T[i,j], 0, A[i,j])", LAWS_EXACT, true},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i >= j & j + 4 > i, A[i,j], 0)",
     "T[i,j] = i < j & j + 4 <= i; C[i,j] = select(T[i,j], 0, A[i,j])", LAWS_EXACT, false},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i != 2 * j, A[i,j], B[i,j])",
     "T[i,j] = i == 2 * j; C[i,j] = select(T[i,j], B[i,j], A[i,j])", LAWS_EXACT, true},
    {IN AXES "temp T: bool[16,16]\n", "C[i,j] = select(i != 2 * j, A[i,j], B[i,j])",
     "T[i,j] = i == 2 * j where j < 15; T[i,j] = i == j where j == 15; C[i,j] = select(T[i,j], "
     "B[i,j], A[i,j])",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = select(select(i < 3, i64(j), 0) >= 1, A[i,j], B[i,j])",
     "C[i,j] = select(j >= 1, A[i,j], B[i,j])", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = select(select(i < 3, i64(j), 0) + 1 >= 2, A[i,j], B[i,j])",
     "C[i,j] = select(j >= 1, A[i,j], B[i,j])", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = select(select(i < 3, i64(j) + 1, 1) >= 2, A[i,j], B[i,j])",
     "C[i,j] = select(j >= 1, A[i,j], B[i,j])", LAWS_EXACT, false},
    {IN AXES "temp T: i64[16,16]\n",
     "T[i,j] = 0; T[i,j] += i64(j) where n < 1 and i < 3; C[i,j] = select(T[i,j] >= 1, A[i,j], "
     "B[i,j])",
     "C[i,j] = select(j >= 1, A[i,j], B[i,j])", LAWS_EXACT, false},
    /* what is a constant on a part of the domain is none on the whole of it */
    {IN AXES, "C[i,j] = shr(A[i,j], select(i < 3, 2, 0))", "C[i,j] = shr(A[i,j], 2)", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = shl(A[i,j], select(i < 3, 2, 0))", "C[i,j] = shl(A[i,j], 2)", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = A[i,j] & select(i < 3, 7, 0)", "C[i,j] = A[i,j] & 7", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = max(A[i,j], select(i < 3, 7, 0))", "C[i,j] = max(A[i,j], 7)", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = max(max(A[i,j], select(i < 3, 7, 0)), 1)", "C[i,j] = max(A[i,j], 7)",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = select(i < 3, max(max(A[i,j], 2), 7), 0)", "C[i,j] = max(A[i,j], 7)",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = max(select(i < 3, max(A[i,j], 2), 0), 7)", "C[i,j] = max(A[i,j], 7)",
     LAWS_EXACT, false},
    {IN AXES "temp T: i32[16]\n", "T[i] = 2; C[i,j] = shr(A[i,j], T[i-4 else 0])",
     "C[i,j] = shr(A[i,j], 2)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = shr(shr(A[i,j], select(i < 3, 2, 0)), 1)", "C[i,j] = shr(A[i,j], 3)",
     LAWS_EXACT, false},
    /* what differs at few values, or on a part of the domain */
    {IN AXES, "C[i,j] = A[i,j] & 7", "C[i,j] = A[i,j] % 8", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = shr(A[i,j], 1)", "C[i,j] = A[i,j] / 2", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(i8(A[i,j]))", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = max(A[i,j],0)*2", "C[i,j] = max(2*A[i,j],0)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = clip(A[i,j],3,1)", "C[i,j] = clip(A[i,j],1,3)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(u8(A[i,j]))", "C[i,j] = A[i,j] & 127", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(u8(A[i,j]))", "C[i,j] = i32(i8(A[i,j]))", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(i64(A[i,j])*i64(B[i,j])/2)", "C[i,j] = A[i,j]*B[i,j]/2", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = shr(A[i,j]*2,1)", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(shr(i64(A[i,j])+1,1))", "C[i,j] = shr(A[i,j],1)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(shr(i64(A[i,j])+1,1))", "C[i,j] = shr(A[i,j]+1,1)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = shr(shr(A[i,j],1),1)", "C[i,j] = shr(A[i,j],3)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = shl(shr(A[i,j],2),2)", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = abs(A[i,j])", "C[i,j] = max(A[i,j],0)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(bool(A[i,j]))", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = min(max(A[i,j],0),7)", "C[i,j] = max(min(A[i,j],7),1)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = clip(shr(A[i,j],2),0,7)", "C[i,j] = shr(clip(A[i,j],0,35),2)", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = i32(i8(clip(A[i,j],-200,100)))", "C[i,j] = clip(A[i,j],-200,100)",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = select(A[i,j] > 0, A[i,j], 0)", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(u8(clip(A[i,j], -1, 255)))", "C[i,j] = clip(A[i,j],-1,255)", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = select(i < 3, A[i,j], 0) + select(i >= 2, A[i,j], 0)", "C[i,j] = A[i,j]",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = max(select(i < 3, A[i,j], 0), select(i >= 3, A[i,j], 0))",
     "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = select(i < j, A[i,j], B[i,j])",
     "C[i,j] = select(j > i + 1, A[i,j], B[i,j])", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j] * select(i < 3, 2, 1)", "C[i,j] = A[i,j] * 2", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j] / select(i < 3, 2, 0)", "C[i,j] = A[i,j] / 2", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j] % select(i < 3, 2, 0)", "C[i,j] = A[i,j] % 2", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = min(A[i,j], select(i < 3, 2, 0))", "C[i,j] = min(A[i,j], 2)", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = clip(A[i,j], select(i < 3, -2, 0), 7)", "C[i,j] = clip(A[i,j], -2, 7)",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(i8(select(i < 3, 100, 0) + 100))", "C[i,j] = select(i < 3, 200, 100)",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(u8(select(i < 3, i64(j) + 250, 0)))",
     "C[i,j] = i32(select(i < 3, i64(j) + 250, 0))", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = shr(select(i < 3, shr(A[i,j], 2), 0) + 1, 1)",
     "C[i,j] = shr(A[i,j] + 4, 3)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = shr(select(i < 3, A[i,j], 0) + select(i < 4, 2, 0), 1)",
     "C[i,j] = shr(A[i,j] + 2, 1)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(f32(A[i,j]))", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = i32(f64(A[i,j]) * 0.5)", "C[i,j] = shr(A[i,j],1)", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = ~A[i,j]", "C[i,j] = -A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j] ^ B[i,j]", "C[i,j] = A[i,j] | B[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j] where j < 8", "C[i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i+2*j,0] += A[i,j]", "C[i+2*j,0] += A[j,i]", LAWS_EXACT, false},
    {IN AXES, "C[i+j,0] max= A[i,j] where i < 3", "C[i+j,0] max= A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] max= select(i < 3, A[i,k], 0)", "C[i,j] max= A[i,k]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] *= select(k < 3, A[i,k], 0)", "C[i,j] *= A[i,k] where k < 3", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] min= select(k < 3, A[i,k], 0)", "C[i,j] min= A[i,k] where k < 3", LAWS_EXACT,
     false},
    /* a result that is read before, and not any more */
    {COPIED, "W[i,r] = A[i,r]; C[i,j] = 0.0; C[i,j] += X[k,2*j+r] * W[i,r]",
     "T[r,i] = A[i,r]; D[i,j] = 0.0; D[i,j] += X[k,2*j+r] * T[r,i]; W[i,r] = T[r,i]; "
     "C[i,j] = D[i,j]",
     LAWS_EXACT, true},
    {COPIED, "W[i,r] = A[i,r]; C[i,j] = 0.0; C[i,j] += X[k,2*j+r] * W[i,r]",
     "T[r,i] = A[i,2-r]; D[i,j] = 0.0; D[i,j] += X[k,2*j+r] * T[r,i]; W[i,r] = T[2-r,i]; "
     "C[i,j] = D[i,j]",
     LAWS_EXACT, false},
    /* laws */
    {IN AXES, "C[i,j] = (A[i,j] + B[i,j]) * 3", "C[i,j] = 3 * B[i,j] + A[i,j] * 3", LAWS_EXACT,
     true},
    {FLOATS AXES, "C[i,j] = (A[i,j] + B[i,j]) * 3.0", "C[i,j] = 3.0 * B[i,j] + A[i,j] * 3.0",
     LAWS_EXACT, false},
    {FLOATS AXES, "C[i,j] = (A[i,j] + B[i,j]) * 3.0", "C[i,j] = 3.0 * B[i,j] + A[i,j] * 3.0",
     LAWS_REORDER, true},
    {FLOATS AXES, "C[i,j] = A[i,j] * B[i,j] * A[j,i]", "C[i,j] = A[i,j] * (A[j,i] * B[i,j])",
     LAWS_EXACT, false},
    {FLOATS AXES, "C[i,j] = A[i,j] * B[i,j] * A[j,i]", "C[i,j] = A[i,j] * (A[j,i] * B[i,j])",
     LAWS_REORDER, true},
    {FLOATS AXES, "C[i,j] = A[i,j] * B[i,j]", "C[i,j] = B[i,j] * A[i,j]", LAWS_EXACT, true},
    {IN AXES, "C[i,j] = A[i,j] - B[i,j]", "C[i,j] = B[i,j] - A[i,j]", LAWS_FINITE, false},
    {IN AXES, "C[i,j] = A[i,j] / B[i,j]", "C[i,j] = B[i,j] / A[i,j]", LAWS_FINITE, false},
    {IN AXES, "C[i,j] = max(A[i,j], B[i,j])", "C[i,j] = max(B[i,j], A[i,j])", LAWS_EXACT, true},
    {IN AXES, "C[i,j] = max(A[i,j], B[i,j]) * 2", "C[i,j] = max(2 * A[i,j], 2 * B[i,j])",
     LAWS_FINITE, false}, /* it wraps */
    {FLOATS AXES, "C[i,j] = 0.0; C[i,j] += A[i,k] * B[k,j] where k <= j",
     "C[i,j] = 0.0; C[i,j] += A[i,k] * select(k <= j, B[k,j], 0.0)", LAWS_REORDER, false},
    {FLOATS AXES, "C[i,j] = 0.0; C[i,j] += A[i,k] * B[k,j] where k <= j",
     "C[i,j] = 0.0; C[i,j] += A[i,k] * select(k <= j, B[k,j], 0.0)", LAWS_FINITE, true},
    {FLOATS AXES, "C[i,j] = 0.0; C[i,j] += A[i,k] * B[k,j] where k <= j",
     "C[i,j] = 0.0; C[i,j] += A[i,k] * select(k < j, B[k,j], 0.0)", LAWS_FINITE, false},
    /* maps */
    {IN AXES, "C[i+3,j] = A[i,j]", "C[18-i,j] = A[15-i,j]", LAWS_EXACT, true},
    {IN AXES, "C[i+3,j] = A[i,j]", "C[18-i,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i+3,j] = A[i,j]", "C[i+4,j] = A[i,j]", LAWS_EXACT, false},
    {IN AXES, "C[i+3,j] += A[i,k] * B[k,j]", "C[i+3,j] += A[i,15-k] * B[15-k,j]", LAWS_EXACT, true},
    {IN AXES, "C[i+3,j] += A[i,k] * B[k,j]", "C[i+3,j] += A[i,15-k] * B[k,j]", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j]", "C[i,j] = A[j,i]", LAWS_EXACT, false},
    {IN AXES "temp T: i32[16,16]\n", "C[i,j] = A[j,i]", "T[j,i] = A[i,j]; C[i,j] = T[i,j]",
     LAWS_EXACT, true},
    {IN AXES "temp T: i32[16,16]\n", "C[i,j] = A[j,i]", "T[j,i] = A[i,j]; C[i,j] = T[j,i]",
     LAWS_EXACT, false},
    {"in I: i8[6,6]  in F: i8[3,3]  out O: i32[4,4]  temp X: i8[4,4,9]  temp Y: i8[9]  axes p: 4, "
     "q: 4, r: 3, s: 3, t: 9\n",
     "O[p,q] = 0; O[p,q] += i32(I[p+r,q+s]) * i32(F[r,s])",
     "X[p,q,3*r+s] = I[p+r,q+s]; Y[3*r+s] = F[r,s]; O[p,q] = 0; O[p,q] += i32(X[p,q,t]) * "
     "i32(Y[t])",
     LAWS_EXACT, true},
    {"in I: i8[6,6]  in F: i8[3,3]  out O: i32[4,4]  temp X: i8[4,4,9]  temp Y: i8[9]  axes p: 4, "
     "q: 4, r: 3, s: 3, t: 9\n",
     "O[p,q] = 0; O[p,q] += i32(I[p+r,q+s]) * i32(F[r,s])",
     "X[p,q,3*r+s] = I[p+r,q+s]; Y[3*s+r] = F[r,s]; O[p,q] = 0; O[p,q] += i32(X[p,q,t]) * "
     "i32(Y[t])",
     LAWS_EXACT, false},
    /* domains */
    {IN AXES, "C[i+9,j] += A[i,k]",
     "C[i+9,j] += A[i,k] where k < 8; C[i+9,j] += A[i,k] where k >= 8", LAWS_EXACT, true},
    {IN AXES, "C[i+9,j] += A[i,k]",
     "C[i+9,j] += A[i,k] where k < 8; C[i+9,j] += A[i,k] where k > 8", LAWS_EXACT, false},
    {IN AXES, "C[i+9,j] += A[i,k]",
     "C[i+9,j] += A[i,k] where k <= 8; C[i+9,j] += A[i,k] where k >= 8", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j]", "C[i,j] = A[i,j] where i + j < 30", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j] where i <= j", "C[i,j] = A[i,j] where i < j", LAWS_EXACT, false},
    {IN AXES, "C[i,j] max= A[i,k]", "C[i,j] max= A[i,k] where k < 15", LAWS_EXACT, false},
    {IN AXES, "C[i,j] = A[i,j]; C[i,j] += B[i,j]", "C[i,j] += B[i,j]; C[i,j] = A[i,j]", LAWS_EXACT,
     false},
    {IN AXES, "C[i,j] = C[i,j] * 2; C[i,j] += B[i,j]", "C[i,j] += B[i,j]; C[i,j] = C[i,j] * 2",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = C[i,j] + 2; C[i,j] += B[i,j]", "C[i,j] += B[i,j]; C[i,j] = C[i,j] + 2",
     LAWS_EXACT, true},
    /* a reduction in parts */
    {WINDOWS, WINDOW, "T[w,4*u+v] = A[w+u,v]; C[w,0] max= T[w,f]", LAWS_EXACT, true},
    {WINDOWS, WINDOW, "T[w,4*u+v] = A[w+u,v]; C[w,0] max= T[w,f] where f < 11", LAWS_EXACT, false},
    {WINDOWS, WINDOW, "T[w,4*u+v] = A[w+u,v+1]; C[w,0] max= T[w,f]", LAWS_EXACT, false},
    {WINDOWS, WINDOW, "T[w,f] = 0; T[w,4*u+v] = A[w+u,v] where v < 3; C[w,0] max= T[w,f]",
     LAWS_EXACT, false},
    {WINDOWS, WINDOW, "T[w,4*u+v] = A[w+u,v]; C[w,0] min= T[w,f]", LAWS_EXACT, false},
    {WINDOWS, BORDERED, "T[w,4*u+v] = A[w+u,2*w+v-2 else -4]; C[w,0] max= T[w,f]", LAWS_EXACT,
     true},
    {WINDOWS, BORDERED, "T[w,4*u+v] = A[w+u,2*w+v-2 else -5]; C[w,0] max= T[w,f]", LAWS_EXACT,
     false},
    {WINDOWS, BORDERED, "T[w,4*u+v] = A[w+u,2*w+v-3 else -4]; C[w,0] max= T[w,f]", LAWS_EXACT,
     false},
    {WINDOWS, BORDERED, "T[w,4*u+v] = A[w+u,2*w+v-2 else -4]; C[w,0] max= T[w,f] where f < 11",
     LAWS_EXACT, false},
    {WINDOWS, BORDERED, "T[w,3*v+u] = A[w+u,2*w+v-2 else -4]; C[w,0] max= T[w,f]", LAWS_EXACT,
     true},
    {FUSED, PRODUCT "D[i] max= C[i,j]", FUSED_PRODUCT "D[i] max= C[i,j]", LAWS_REORDER, true},
    {FUSED, PRODUCT "D[i] max= C[i,j]", FUSED_PRODUCT "D[i] max= C[i,j] where j < 15", LAWS_REORDER,
     false},
    {LANES, LARGEST "D[i] max= L[i,b]", LANES_FUSED "D[i] max= L[i,b]", LAWS_EXACT, true},
    {LANES, LARGEST "D[i] max= L[i,b]", LANES_FUSED "D[i] max= L[i,b] where b < 15", LAWS_EXACT,
     false},
    {LANES, "L[i,b] = 2; L[i,b] max= A[i,16*a+b]; D[i] max= L[i,b]", LANES_FUSED "D[i] max= L[i,b]",
     LAWS_EXACT, false},
    {CORNERS, CORNERED,
     "T[p,q,3*r+s] = A[2*p+r-1,2*q+s-1 else -inf]; C[p,q] = -inf; C[p,q] max= T[p,q,f]", LAWS_EXACT,
     true},
    {CORNERS, CORNERED,
     "T[p,q,3*r+s] = A[2*p+r-1,2*q+s else -inf]; C[p,q] = -inf; C[p,q] max= T[p,q,f]", LAWS_EXACT,
     false},
    {WINDOWS, "C[w,0] *= A[w+u,2*w+v-2 else 3]",
     "T[w,4*u+v] = A[w+u,2*w+v-2 else 3]; C[w,0] *= T[w,f]", LAWS_EXACT, true},
    {WINDOWS, "C[w,0] *= A[w+u,2*w+v-2 else 3]",
     "T[w,4*u+v] = A[w+u,2*w+v-2 else 3]; C[w,0] *= T[w,f] where f > 0", LAWS_EXACT, false},
    {WINDOWS, "C[w,0] *= A[w+u,v]", "T[w,4*u+v] = A[w+u,v]; C[w,0] *= T[w,f]", LAWS_EXACT, true},
    {WINDOWS, "C[w,0] *= A[w+u,v]", "T[w,4*u+v] = A[w+u,0]; C[w,0] *= T[w,f]", LAWS_EXACT, false},
    {FLOATS AXES "temp T: f32[16,4]  axes b: 4, l: 4\n", "C[i,0] max= A[i,k]",
     "T[i,l] = -inf; T[i,l] max= A[i,4*b+l]; C[i,0] max= T[i,l]", LAWS_EXACT, true},
    {FLOATS AXES "temp T: f32[16,4]  axes b: 4, l: 4\n", "C[i,0] max= A[i,k]",
     "T[i,l] = 0; T[i,l] max= A[i,4*b+l]; C[i,0] max= T[i,l]", LAWS_EXACT, false},
    {FLOATS AXES "temp T: f32[16,4]  axes b: 4, l: 4\n", "C[i,0] max= A[i,k]",
     "T[i,l] = -inf; T[i,l] max= A[i,4*b+l] where b < 3; C[i,0] max= T[i,l]", LAWS_EXACT, false},
    {FLOATS AXES "temp T: f32[16,4]  axes b: 4, l: 4\n", "C[i,0] max= A[i,k]",
     "T[i,l] = -inf; T[i,l] min= A[i,4*b+l]; C[i,0] max= T[i,l]", LAWS_EXACT, false},
    {FLOATS AXES "temp T: f32[16,4]  axes b: 4, l: 4\n", "C[i,0] *= A[i,k]",
     "T[i,l] = 1; T[i,l] *= A[i,4*b+l]; C[i,0] *= T[i,l]", LAWS_EXACT, true},
    {FLOATS AXES "temp T: f32[16,4]  axes b: 4, l: 4\n", "C[i,0] *= A[i,k]",
     "T[i,l] = 1; T[i,l] *= A[i,4*b+l]; C[i,0] *= T[i,l] where k < 2", LAWS_EXACT, false},
    /* what a statement does not write stays */
    {IN AXES, "C[i,j] = 0; C[i+40,j] = C[i+40,j] + A[i,j]", "C[i,j] = 0; C[i+40,j] = A[i,j]",
     LAWS_EXACT, false},
    {IN AXES, "C[i,j] = 0; C[i+40,j] = C[i+40,j] + A[i,j]", "C[i+40,j] += A[i,j]; C[i,j] = 0",
     LAWS_EXACT, true},
    {IN AXES, "C[i,j] = 0; C[i+8,j] += A[i,j]", "C[i+8,j] += A[i,j]; C[i,j] = 0", LAWS_EXACT,
     false},
    {IN AXES "temp T: i32[60,16]\n", "T[i,j] = 0; T[i+16,j] = 1; C[2*i,j] = T[2*i,j]",
     "T[i,j] = 0; C[2*i,j] = T[i,j]", LAWS_EXACT, false},
    /* what is there on one side is not yet on the other */
    {"in A: i32[5]  out B: i32[5]  out D: i32[5]  temp T: i32[5]  axes i: 5\n",
     "B[i] = A[i] * 3; D[i] = B[i] + 1", "T[i] = A[i] * 3; D[i] = T[i] + 1; B[i] = T[i]",
     LAWS_EXACT, true},
    /* parts that are the same but for names are proved once, others are not the same */
    {STAGES, STAGED, STAGED_2 "V[i] = D[4-i]; E[i] = V[i] * 2", LAWS_EXACT, true},
    {STAGES, STAGED, STAGED_2 "V[i] = B[4-i]; E[i] = V[i] * 2", LAWS_EXACT, false},
    {STAGES, STAGED, STAGED_2 "V[i] = D[i]; E[i] = V[i] * 2", LAWS_EXACT, false},
    {STAGES, STAGED, STAGED_2 "V[i] = D[4-i]; E[i] = V[i] * 3", LAWS_EXACT, false},
    {STAGES, STAGED, STAGED_2 "V[i] = D[4-i]; E[i] = V[i] + 2", LAWS_EXACT, false},
    {STAGES, STAGED, STAGED_2 "V[i] = D[4-i]; E[i] = U[i] * 2", LAWS_EXACT, false},
    {STAGES, STAGED, STAGED_2 "V[i] = D[4-i]; E[i] = 0; E[i] += V[i] where m < 2", LAWS_EXACT,
     true},
    {STAGES, STAGED, STAGED_2 "V[i] = D[4-i]; E[i] = 0; E[i] += V[i] where m < 3", LAWS_EXACT,
     false},
    /* recurrences: the states of one are temporaries of the other */
    {CELL, CELL_AS("h", "t"), OPENED("a[i] = X[t,i]", "max(a[i], 0)", "h[i]"), LAWS_EXACT, true},
    {CELL, CELL_AS("h", "t"), OPENED("a[i] = X[8-t,i]", "max(a[i], 0)", "h[i]"), LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"), OPENED("a[i] = X[t,i]", "max(a[i], 1)", "h[i]"), LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"), OPENED("a[i] = X[t,i]", "max(a[i], 0)", "h0[i]"), LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"), OPENED("a[i] += X[t,i]", "max(a[i], 0)", "h[i]"), LAWS_EXACT, false},
    {CELL, CELL_AS("h", "8-t"), OPENED("a[i] = X[8-t,i]", "max(a[i], 0)", "h[i]"), LAWS_EXACT,
     true},
    {CELL, CELL_AS("h", "t"),
     "temp h: i32[8]; temp a: i32[8]; h[i] = 0; recur t: 9 { a[i] = X[t,i]; a[i] += U[i,j] * h[j]; "
     "h[i] = max(a[i], 0); y[t,i] = h[i] } hT[i] = h[i]",
     LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"),
     "temp h: i32[8]; temp a: i32[8]; h[i] = h0[i]; recur t: 9 { a[i] = X[t,i]; y[t,i] = h[i]; "
     "a[i] += U[i,j] * h[j]; h[i] = max(a[i], 0) } hT[i] = h[i]",
     LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"),
     "temp h: i32[8]; temp a: i32[8]; h[i] = h0[i]; recur t: 8 { a[i] = X[t,i]; a[i] += U[i,j] * "
     "h[j]; h[i] = max(a[i], 0); y[t,i] = h[i] } hT[i] = h[i]",
     LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"),
     "temp h: i32[8]; temp a: i32[8]; h[i] = h0[i]; recur t: 9 reverse { a[i] = X[t,i]; a[i] += "
     "U[i,j] * h[j]; h[i] = max(a[i], 0); y[t,i] = h[i] } hT[i] = h[i]",
     LAWS_EXACT, false},
    /* what reads no state is made for all steps before them */
    {CELL, CELL_AS("h", "t"), LIFTED("G[s,i] = X[s,i]", "G[t,i]"), LAWS_EXACT, true},
    {CELL, CELL_AS("h", "t"), LIFTED("G[8-s,i] = X[8-s,i]", "G[t,i]"), LAWS_EXACT, true},
    {CELL, CELL_AS("h", "t"), LIFTED("G[8-s,i] = X[s,i]", "G[8-t,i]"), LAWS_EXACT, true},
    {CELL, CELL_AS("h", "t"), LIFTED("G[8-s,i] = X[s,i]", "G[t,i]"), LAWS_EXACT, false},
    {CELL, CELL_AS("h", "t"), LIFTED("G[s,i] = 0; G[s,i] = X[s,i] where s < 8", "G[t,i]"),
     LAWS_EXACT, false},
    /* what steps add up */
    {CELL, SUMMED("hT[i] = 0; ", "hT[i] += X[t,i]"),
     SUMMED("hT[i] = 0; ", "hT[i] = hT[i] + X[t,i]"), LAWS_EXACT, true},
    {CELL, SUMMED("hT[i] = 0; ", "hT[i] += X[t,i]"),
     SUMMED("hT[i] = 0; ", "hT[i] = 0; hT[i] += X[t,i]"), LAWS_EXACT, false},
    {CELL, SUMMED("hT[i] = 0; ", "hT[i] += X[t,i]"), SUMMED("hT[i] = 1; ", "hT[i] += X[t,i]"),
     LAWS_EXACT, false},
    {CELL, SUMMED("hT[i] = 0; ", "hT[i] max= X[t,i]"), SUMMED("hT[i] = 0; ", "hT[i] max= X[t,7-i]"),
     LAWS_EXACT, false},
    /* as many steps as a size says: what is as long holds for all of them, what is longer is not */
    {OPEN, OPEN_CELL("X[t]", "h"), OPEN_LIFTED("G[t]"), LAWS_EXACT, true},
    {OPEN, OPEN_CELL("X[t]", "h"), OPEN_LIFTED("X[0]"), LAWS_EXACT, false},
    /* no steps */
    {CELL, "recur t: 0 state h: i32[8] from h0 to hT { h'[i] = 3 * max(h[i], 5); y[t,i] = h[i] }",
     "temp h: i32[8]; h[i] = h0[i]; hT[i] = h[i]", LAWS_EXACT, true},
    {CELL, "recur t: 0 state h: i32[8] from h0 to hT { h'[i] = 3 * max(h[i], 5); y[t,i] = h[i] }",
     "hT[i] = 3 * max(h0[i], 5)", LAWS_EXACT, false},
    {CELL, "recur t: 0 state h: i32[8] from h0 to hT { h'[i] = 3 * max(h[i], 5); y[t,i] = h[i] }",
     "hT[i] = h0[i]; y[0,i] = h0[i]", LAWS_EXACT, false},
    {CELL, "recur t: 1 state h: i32[8] from h0 to hT { h'[i] = 3 * max(h[i], 5); y[t,i] = h[i] }",
     "hT[i] = h0[i]; y[0,i] = h0[i]", LAWS_EXACT, false},
    {OPEN, "axes s: 9; y[s] = 0; recur t: T { y[t] = 1 }", "axes s: 9; y[s] = 0; y[s] = 1",
     LAWS_EXACT, false},
    {OPEN, "axes s: 9; y[s] = 0; recur t: T { y[t] = 1 } hT[i] = y[4]",
     "axes s: 9; y[s] = 0; recur t: T { y[t] = 1 } recur t: T { y[t] = y[t] * 1 } hT[i] = y[4]",
     LAWS_EXACT, true},
    /* a step of one side alone is none that both are in */
    {CELL, KEPT("G", "4"), KEPT("K", "4"), LAWS_EXACT, true},
    {CELL, KEPT("G", "4"), KEPT("K", "3"), LAWS_EXACT, false},
    /* one inside another */
    {CELL, NESTED("p[i] + X[t,i]"), NESTED("X[t,i] + p[i]"), LAWS_EXACT, true},
    {CELL, NESTED("p[i] + X[t,i]"), NESTED("X[u,i] + p[i]"), LAWS_EXACT, false},
    /* what only scales a state and adds to it, in chunks */
    {DECAY("12"), DECAYING("t", "12", "t", "S0", "ST"),
     CHUNKS("3", "ST", "s < u", "u <= r", "s <= r"), LAWS_REORDER, true},
    {DECAY("12"), DECAYING("t", "12", "t", "S0", "ST"),
     CHUNKS("3", "ST", "s < u", "u <= r", "s <= r"), LAWS_EXACT, false},
    {DECAY("12"), DECAYING("t", "12", "t", "S0", "ST"),
     CHUNKS("3", "ST", "s <= u", "u <= r", "s <= r"), LAWS_REORDER, false},
    {DECAY("12"), DECAYING("t", "12", "t", "S0", "ST"),
     CHUNKS("3", "ST", "s < u", "u < r", "s <= r"), LAWS_REORDER, false},
    {DECAY("12"), DECAYING("t", "12", "t", "S0", "ST"),
     CHUNKS("3", "ST", "s < u", "u <= r", "s < r"), LAWS_REORDER, false},
    {DECAY("14"), DECAYING("t", "14", "t", "S0", "ST"),
     "temp Z: f32[3,5]; " CHUNKS("3", "Z", "s < u", "u <= r", "s <= r")
         DECAYING("z", "2", "z+12", "Z", "ST"),
     LAWS_REORDER, true},
    {DECAY("14"), DECAYING("t", "14", "t", "S0", "ST"),
     "temp Z: f32[3,5]; " CHUNKS("3", "Z", "s < u", "u <= r", "s <= r")
         DECAYING("z", "2", "z+12", "S0", "ST"),
     LAWS_REORDER, false},
    {DECAY("14"), DECAYING("t", "14", "t", "S0", "ST"),
     "temp Z: f32[3,5]; " CHUNKS("3", "Z", "s < u", "u <= r", "s <= r")
         DECAYING("z", "2", "z+11", "Z", "ST"),
     LAWS_REORDER, false},
    /* neutral elements */
    {IN AXES "temp T: i32[16,16]\n", "C[i,j] += A[i,k] * B[k,j]",
     "T[i,j] = 0; T[i,j] += A[i,k] * B[k,j]; C[i,j] += T[i,j]", LAWS_EXACT, true},
    {IN AXES "temp T: i32[16,16]\n", "C[i,j] += A[i,k] * B[k,j]",
     "T[i,j] = 1; T[i,j] += A[i,k] * B[k,j]; C[i,j] += T[i,j]", LAWS_EXACT, false},
    {FLOATS AXES "temp T: f32[16,16]\n", "C[i,j] += A[i,k]",
     "T[i,k] = 1.0; C[i,j] += A[i,k] * T[i,k]", LAWS_EXACT, true},
    {FLOATS AXES "temp T: f32[16,16]\n", "C[i,j] += A[i,k]",
     "T[i,k] = 2.0; C[i,j] += A[i,k] * T[i,k]", LAWS_FINITE, false},
    /* types */
    {"in A: i8[16]  out C: i32[16]  axes i: 16\n", "C[i] = i32(A[i])", "C[i] = i32(i16(A[i]))",
     LAWS_EXACT, true},
    {"in A: i32[16]  out C: i32[16]  axes i: 16\n", "C[i] = A[i]", "C[i] = i32(i16(A[i]))",
     LAWS_EXACT, false},
    {"in A: i32[16]  out C: i32[16]  axes i: 16\n", "C[i] = A[i] & 255", "C[i] = i32(u8(A[i]))",
     LAWS_EXACT, true},
    {"in A: i32[16]  out C: i32[16]  axes i: 16\n", "C[i] = A[i] & 255", "C[i] = i32(i8(A[i]))",
     LAWS_EXACT, false},
    {"in A: i16[16]  out C: i32[16]  axes i: 16\n", "C[i] = i32(A[i])",
     "C[i] = 256 * shr(i32(A[i]) + 128, 8) + i32(i8(A[i]))", LAWS_EXACT, true},
    {"in A: i16[16]  out C: i32[16]  axes i: 16\n", "C[i] = i32(A[i])",
     "C[i] = 256 * shr(i32(A[i]) + 127, 8) + i32(i8(A[i]))", LAWS_EXACT, false},
    {"in A: f32[16]  out C: f32[16]  temp T: f16[16]  axes i: 16\n", "C[i] = A[i]",
     "T[i] = f16(A[i]); C[i] = f32(T[i])", LAWS_FINITE, false},
    /* rounding leaves alone what is chosen from rounded values, and nothing else */
    {THIRDS, "T[3*j+1] = 2; T[3*j] = 1; T[3*j+2] = A[j,0] * 3; C[i] = T[i]",
     "C[3*j+1] = 2; C[3*j] = 1; C[3*j+2] = A[j,0] * 3", LAWS_EXACT, true},
    {THIRDS, "T[3*j+1] = 2; T[3*j] = 1; T[3*j+2] = A[j,0] * 3; C[i] = T[i]",
     "C[3*j+1] = 2; C[3*j] = 1; C[3*j+2] = A[j,0] * 2", LAWS_EXACT, false},
    {THIRDS, "T[i] = 0; T[j] += A[j,0]; C[i] = T[i]", "C[i] = 0; C[j] += A[j,0]", LAWS_EXACT, true},
    {THIRDS, "D[i] = 0; D[j] += f32(A[j,k]); C[i] = f16(D[i])", "C[i] = 0; C[j] += A[j,k]",
     LAWS_EXACT, false},
    {HALVES, "C[i] = -inf; C[i] max= A[i,k]",
     "T[i] = -inf; T[i] max= f32(A[i,k]); C[i] = f16(T[i])", LAWS_EXACT, true},
    {HALVES, "C[i] = -inf; C[i] max= A[i,k]",
     "T[i] = -inf; T[i] max= f32(A[i,k]); C[i] = f16(T[i] * 0.7)", LAWS_EXACT, false},
    {HALVES, "C[i] = -inf; C[i] max= A[i,k]", "T[i] = 0; T[i] max= f32(A[i,k]); C[i] = f16(T[i])",
     LAWS_EXACT, false},
    {HALVES, "C[i] = -inf; C[i] max= A[i,k]", "C[i] = inf; C[i] min= A[i,k]", LAWS_EXACT, false},
    {HALVES, "C[i] = 1; C[i] *= A[i,k]", "T[i] = 1; T[i] *= f32(A[i,k]); C[i] = f16(T[i])",
     LAWS_EXACT, false},
    {HALVES, "C[i] = 0; C[i] += A[i,k]", "T[i] = 0; T[i] += f32(A[i,k]); C[i] = f16(T[i])",
     LAWS_REORDER, false},
    {HALVES, "D[i] = max(f32(A[i,0]), 0.5)",
     "C[i] = f16(max(f32(A[i,0]), 0.5)); D[i] = f32(C[i]); C[i] = 0", LAWS_EXACT, false},
    {HALVES, "C[i] = 0; D[i] = max(f32(A[i,0]), 0.5)",
     "C[i] = f16(max(f32(A[i,0]), 0.5)); D[i] = f32(C[i]); C[i] = 0", LAWS_EXACT, true},
    {HALVES, "C[i] = 0; D[i] = max(f32(A[i,0]), 0.1)",
     "C[i] = f16(max(f32(A[i,0]), 0.1)); D[i] = f32(C[i]); C[i] = 0", LAWS_EXACT, false},
    {HALVES, "C[i] = 0; D[i] = max(B[i,0], 0.5)",
     "C[i] = f16(max(B[i,0], 0.5)); D[i] = f32(C[i]); C[i] = 0", LAWS_EXACT, false},
    {HALVES, "C[i] = 0; D[i] = select(B[i,0] < 1, f32(A[i,0]), 0.5)",
     "C[i] = f16(select(B[i,0] < 1, f32(A[i,0]), 0.5)); D[i] = f32(C[i]); C[i] = 0", LAWS_EXACT,
     true},
    {HALVES, "C[i] = 0; D[i] = select(B[i,0] < 1, B[i,1], 0.5)",
     "C[i] = f16(select(B[i,0] < 1, B[i,1], 0.5)); D[i] = f32(C[i]); C[i] = 0", LAWS_EXACT, false},
    {"in A: f16[16]  out C: f32[16]  temp T: f32[16]  axes i: 16\n", "C[i] = f32(A[i])",
     "T[i] = f32(A[i]); C[i] = T[i]", LAWS_EXACT, true},
    /* functions of one integer */
    {"in A: i32[16]  out C: i8[16]  axes i: 16\n",
     "C[i] = i8(clip(round(f64(max(A[i], 0)) * 0.25), -128, 127))",
     "C[i] = i8(clip(round(f64(A[i]) * 0.25), 0, 127))", LAWS_EXACT, true},
    {"in A: i32[16]  out C: i8[16]  axes i: 16\n",
     "C[i] = i8(clip(round(f64(max(A[i], 3)) * 0.25), -128, 127))",
     "C[i] = i8(clip(round(f64(A[i]) * 0.25), 0, 127))", LAWS_EXACT, false},
    {"in A: i32[16]  out C: i8[16]  axes i: 16\n",
     "C[i] = i8(clip(round(f64(max(A[i], 0)) * -0.25), -128, 127))",
     "C[i] = i8(clip(round(f64(A[i]) * -0.25), 0, 127))", LAWS_EXACT, false},
};

static void test_cases(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct equal_case *c = &cases[k];
        struct program *p = program_of(c, c->before), *q = program_of(c, c->after);
        struct items a = {0, p->nitems}, b = {0, q->nitems};
        bool proved = items_equal_by(p, a, q, b, c->laws, 0).evidence == EVIDENCE_PROVED;
        if (proved != c->proved)
            print_error("%s: %s -> %s\n", proved ? "proved" : "not proved", c->before, c->after);
        assert_int_equal(proved, c->proved);
        proved = items_equal_by(q, b, p, a, c->laws, 0).evidence == EVIDENCE_PROVED;
        if (proved != c->proved)
            print_error("%s: %s -> %s\n", proved ? "proved" : "not proved", c->after, c->before);
        assert_int_equal(proved, c->proved);
        assert_int_equal(items_equal_by(p, a, p, a, c->laws, 0).evidence, EVIDENCE_PROVED);
        program_free(p);
        program_free(q);
    }
}

/* Too few steps: not proved, and nothing else. */
static void test_bounded(void **state) {
    struct program *p = program_of(&cases[0], cases[0].before);
    struct program *q = program_of(&cases[0], cases[0].after);
    struct items all = {0, 1};
    (void)state;
    for (int64_t steps = 1; steps < 2000; steps = steps * 3 / 2 + 1) {
        struct verdict v = items_equal_by(p, all, q, all, LAWS_EXACT, steps);
        assert_true(v.evidence == EVIDENCE_PROVED || (v.evidence == EVIDENCE_UNPROVED && v.why));
    }
    program_free(p);
    program_free(q);
}

/* Proofs are kept by what they look at: a statement of a recurrence's body is not one outside. */
static void test_kept_proofs(void **state) {
    struct program *p = program_of(&cases[0], cases[0].before);
    struct program *q = program_of(&cases[0], cases[0].after);
    struct witness all = {.laws = LAWS_EXACT, .before = {0, p->nitems}, .after = {0, q->nitems}};
    struct arena a;
    (void)state;
    arena_init(&a);
    struct alike_row one, same, inside, unmapped;
    assert_true(alike_witness(&a, p, q, &all, &one) && alike_witness(&a, p, q, &all, &same));
    assert_true(alike_same(&one, &same));
    p->stmt[0].scope = 1;
    assert_true(alike_witness(&a, p, q, &all, &inside));
    assert_false(alike_same(&one, &inside));
    p->stmt[0].scope = 0;
    p->stmt[0].unmapped = true;
    assert_true(alike_witness(&a, p, q, &all, &unmapped));
    assert_false(alike_same(&one, &unmapped));
    arena_free(&a);
    program_free(p);
    program_free(q);
}

#define TENTHS "in A: f32[16,9]  inout C: f32[16,16]  inout H: f16[16,16]  "

/* As a machine computes, sums of floats differ by the order of their terms, which is free. */
static void test_samples_of_sums(void **state) {
    static const struct equal_case sums[] = {
        {TENTHS, "axes i: 16, k: 16, n: 9\n C[i,0] += A[k,n] * 0.1",
         "axes i: 16, n: 9, k: 16\n C[i,0] += A[k,n] * 0.1", 0, true},
        {TENTHS "axes i: 16, k: 16, n: 9\n", "C[i,0] += A[k,n] * 0.1",
         "C[i,0] += A[k,n] * 0.1 where n >= 4; C[i,0] += A[k,n] * 0.1 where n < 4", 0, true},
        {TENTHS "axes i: 16, k: 16, n: 9\n", "C[i,0] += A[k,n] * 0.1",
         "C[i,0] += A[k,n] * 0.1 where n >= 4; C[i,0] += A[k,n] * 0.1 where n < 3", 0, false},
        {TENTHS, "axes i: 16, k: 16, n: 9\n H[i,0] += f16(A[k,n] * 0.1)",
         "axes i: 16, n: 9, k: 16\n H[i,0] += f16(A[k,n] * 0.1)", 0, true},
        {TENTHS "axes i: 16, k: 16, n: 9\n", "C[i,0] += A[k,n] * 0.1", "C[i,0] += A[k,n] * 0.2", 0,
         false},
        {TENTHS, "axes i: 16, k: 16, n: 9\n C[i,0] += C[i,0] * A[k,n]",
         "axes i: 16, n: 9, k: 16\n C[i,0] += C[i,0] * A[k,n]", 0, false},
    };
    (void)state;
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) {
        struct program *p = program_of(&sums[k], sums[k].before);
        struct program *q = program_of(&sums[k], sums[k].after);
        struct items a = {0, p->nitems}, b = {0, q->nitems};
        enum evidence e = items_sampled(p, a, q, b, SAMPLE_VALUES, NULL).evidence;
        if (e != (sums[k].proved ? EVIDENCE_SAMPLED : EVIDENCE_REFUTED))
            print_error("%s: %s -> %s\n", evidence_name[e], sums[k].before, sums[k].after);
        assert_int_equal(e, sums[k].proved ? EVIDENCE_SAMPLED : EVIDENCE_REFUTED);
        program_free(p);
        program_free(q);
    }
}

/* Where a sum meets an element twice, the second time reads what the first one left. */
static void test_sum_of_itself(void **state) {
    (void)state;
    const struct equal_case c = {WHOLE, "C[i,j] += C[i,j] where k < 2",
                                 "C[i,j] = C[i,j] + C[i,j] + C[i,j]", LAWS_EXACT, false};
    struct program *p = program_of(&c, c.before), *q = program_of(&c, c.after);
    struct items a = {0, p->nitems}, b = {0, q->nitems};
    assert_int_not_equal(items_equal_by(p, a, q, b, c.laws, 0).evidence, EVIDENCE_PROVED);
    program_free(p);
    program_free(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases), cmocka_unit_test(test_sum_of_itself),
        cmocka_unit_test(test_samples_of_sums), cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_kept_proofs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
