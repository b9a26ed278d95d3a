/* What the rewriting of QDQ graphs shares: qdq.c, qdq_product.c for operators of two factors, and qdq_fold.c for what joins an
 * operator that is on integers already. */
#ifndef ISAMAP_ONNX_QDQ_INT_H
#define ISAMAP_ONNX_QDQ_INT_H

#include "onnx/onnx_int.h"
#include <onnx.pb-c.h>

struct qdq {
    struct import *im;
    Onnx__GraphProto *g;     /* what is made */
    struct name_table maker; /* name of a value -> its node */
    struct name_table uses;  /* name of a value -> how often it is read, an int */
    int changed;
    bool exact, moved; /* nothing may round otherwise; rows of weights are taken before they are dequantised */
};

struct link { /* a value with its integers, scale and zero point */
    const char *integers, *scale, *zero; /* names of values */
    const struct tensor *scales, *zeros; /* known; zeros NULL where there is no zero point */
    enum type type;                      /* of the integers */
    int64_t axis;
};

struct chain_end { /* the chain that ends in QuantizeLinear */
    struct link y;
    const Onnx__NodeProto *op;   /* the operator before it; Relu, Clip and the line left out */
    const Onnx__NodeProto *line; /* BatchNormalization between them, on what the operator gives; NULL */
    int64_t least, most;         /* of the integers, by the type and what was left out */
};

Onnx__NodeProto *qdq_maker_of(const struct qdq *, const char *name);
bool qdq_is(const Onnx__NodeProto *, const char *op);
const char *qdq_input_of(const Onnx__NodeProto *, size_t k);
const Onnx__AttributeProto *qdq_attribute_of(const Onnx__NodeProto *, const char *name);
void qdq_drop_attribute(Onnx__NodeProto *, const char *name);
const struct tensor *qdq_known_of(const struct qdq *, const char *name);   /* an initialiser or a Constant; NULL: not known */
int qdq_used(const struct qdq *, const char *name);
bool qdq_dequantised(const struct qdq *, const char *name, struct link *); /* from 8-bit integers, or i32, a bias */
bool qdq_one_step(const struct link *);
const char *qdq_new_constant(struct qdq *, const char *base, const char *suffix, enum type, int64_t n, const void *data);
const char *qdq_zero_of(struct qdq *, const struct link *, const char *base); /* made where it has none */
Onnx__NodeProto *qdq_new_node(struct qdq *, const Onnx__NodeProto *from, const char *op, bool microsoft, int ninputs,
                              const char *const *input, const char *output);

const char *qdq_new_name(struct qdq *, const char *base, const char *suffix);
void qdq_put_integer(struct qdq *, Onnx__NodeProto *, const char *attribute, int64_t);
void qdq_push(struct qdq *, Onnx__NodeProto *); /* the graph's next node */

bool qdq_eight_bits(enum type);
int64_t qdq_integer_of(const Onnx__NodeProto *, const char *attribute, int64_t preset);

int64_t qdq_lowest(const struct link *), qdq_highest(const struct link *); /* integers of its type */
void qdq_limit(struct chain_end *, double lo, double hi);                  /* the result lies between these values too; infinite: no limit */
void qdq_unlimited(struct chain_end *);                                    /* but for the type */

/* qdq_product.c: the operator on integers; NULL: not possible. */
Onnx__NodeProto *qdq_convolution(struct qdq *, const struct chain_end *, const char *out);
Onnx__NodeProto *qdq_matrix_product(struct qdq *, const struct chain_end *, const char *out);
Onnx__NodeProto *qdq_gemm(struct qdq *, const Onnx__NodeProto *, const struct chain_end *, const char *out);
/* Of two factors, each with its scale and zero point before those of the result. */
Onnx__NodeProto *qdq_of_two(struct qdq *, const struct chain_end *, const struct link *, const struct link *, const char *op,
                            bool microsoft, const char *out);
/* Whose result stays in floats: integers, and a scale behind them. */
Onnx__NodeProto *qdq_product_to_float(struct qdq *, const Onnx__NodeProto *);

/* qdq_fold.c. NULL: not possible. */
/* The operator on integers whose result is dequantised before the chain gives the chain's result itself. */
Onnx__NodeProto *qdq_behind(struct qdq *, struct chain_end *, const char *out);
/* Input k of a QLinearConcat in the steps of its result; *e: these. */
Onnx__NodeProto *qdq_part_of(struct qdq *, const Onnx__NodeProto *concat, size_t k, const char *out, struct chain_end *e);
/* The nodes of a Gather of rows of dequantised weights, as rows of the integers. False: not possible. */
bool qdq_rows_first(struct qdq *, const Onnx__NodeProto *gather);
/* A QLinearConv, in steps of the chain's end, with the chain's line. */
Onnx__NodeProto *qdq_on_line(struct qdq *, const Onnx__NodeProto *, const struct chain_end *);

#endif
