/* What library call a program is: a matrix product or a convolution, read off its accesses; a recurrent cell, by its arrays. */
#ifndef ISAMAP_BENCH_WORK_H
#define ISAMAP_BENCH_WORK_H

#include "ir/program.h"

enum work_kind { WORK_OTHER, WORK_GEMM, WORK_CONV, WORK_CELL };

/* The arrays of a cell: X [steps, batch, inputs], W [gates, units, inputs], U [gates, units, units], biases [gates, units] and, of a GRU, one
 * more of its new gate's product of the state [units], states before and behind [batch, units], Y [steps, batch, units]. */
enum cell_part { CELL_X, CELL_W, CELL_U, CELL_BIAS, CELL_BIAS_NEW, CELL_H0, CELL_C0, CELL_Y, CELL_HT, CELL_CT, CELL_PARTS };

struct work {
    enum work_kind kind;
    int a, b, c;                       /* buffers: GEMM C = A B; CONV image, filter, result */
    enum type type_a, type_b, type_c;
    bool a_constant, b_constant;       /* may be rearranged ahead */
    int64_t m, n, k;                   /* GEMM: C[m,n] */
    bool a_transposed, b_transposed;   /* GEMM: A is [k,m], B is [n,k] */
    /* CONV: image [batch, groups*c_in, h, w], filter [groups, c_out, c_in, r, s], result [batch, groups*c_out, p, q]; dimension 0 is the
     * height. Left and upper padding; how far windows reach past the other ends follows. */
    /* CELL, f32: gates 1 (tanh), 3 (a GRU, the reset gate behind the product), 4 (an LSTM); a is X, b is W, c is Y. Whether a program computes
     * just that its values say: a peer whose result differs is left out. */
    int64_t gates, steps, units, inputs;
    int part[CELL_PARTS];              /* buffers; -1: none */
    void *const *data;                 /* by buffer; what peers write of states goes there */
    int64_t batch, groups, c_in, c_out, image[2], filter[2], result[2], stride[2], pad[2], dilation[2];
};

void work_recognise(const struct program *, struct work *);

#endif
