/* What library call a program is: a matrix product or a convolution, read off its accesses. */
#ifndef ISAMAP_BENCH_WORK_H
#define ISAMAP_BENCH_WORK_H

#include "ir/program.h"

enum work_kind { WORK_OTHER, WORK_GEMM, WORK_CONV };

struct work {
    enum work_kind kind;
    int a, b, c;                       /* buffers: GEMM C = A B; CONV image, filter, result */
    enum type type_a, type_b, type_c;
    bool a_constant, b_constant;       /* may be rearranged ahead */
    int64_t m, n, k;                   /* GEMM: C[m,n] */
    bool a_transposed, b_transposed;   /* GEMM: A is [k,m], B is [n,k] */
    /* CONV: image [batch, groups*c_in, h, w], filter [groups, c_out, c_in, r, s], result [batch, groups*c_out, p, q]; dimension 0 is the
     * height. Left and upper padding; how far windows reach past the other ends follows. */
    int64_t batch, groups, c_in, c_out, image[2], filter[2], result[2], stride[2], pad[2], dilation[2];
};

void work_recognise(const struct program *, struct work *);

#endif
