/* Inside onnx/: the state of one import, and what operators are written with. */
#ifndef ISAMAP_ONNX_ONNX_INT_H
#define ISAMAP_ONNX_ONNX_INT_H

#include "onnx/onnx.h"
#include <onnx.pb-c.h>

/* ---- wire.c, tensor.c ---- */

/* Checks the bytes of a message of this kind: fields whole, at most 64 levels, at most 2^21
 * messages. */
bool wire_check(const char *path, const uint8_t *bytes, size_t length,
                const ProtobufCMessageDescriptor *, struct diags *);

/* A list of tensors, which operators on sequences alone take. */
struct sequence {
    int n;
    bool optional; /* not a sequence: its part, if there is one */
    struct tensor **part;
};

/* A value of the graph. */
struct tensor {
    const char *name;   /* ONNX's */
    const char *buffer; /* the buffer's */
    enum type type;
    int ndims;
    int64_t extent[MAX_DIMS];
    int64_t elements; /* 0 only for known ones (lists); bytes do not overflow */
    const void *data; /* row-major when known at compile time, else NULL */
    bool declared;    /* the buffer stands in the text */
    bool halves;      /* known integers of 4 bits, in bytes */
    struct sequence *list; /* not NULL: no tensor, but these */
};

bool tensor_type(int32_t onnx_type, enum type *out);
const char *tensor_type_name(int32_t onnx_type); /* "FLOAT16"; "type 99" has NULL */
bool tensor_count(struct tensor *); /* fills elements; false: an extent < 0, or too large */
bool tensor_readable(const Onnx__TensorProto *); /* its type is supported, or of no name */
/* what: "initialiser 'w'", for messages */
bool tensor_from_proto(struct arena *, const char *path, const char *what,
                       const Onnx__TensorProto *, struct tensor *, struct diags *);
/* the same, zeros with it, of a tensor that lists its other elements */
bool tensor_from_sparse(struct arena *, const char *path, const char *what,
                        const Onnx__SparseTensorProto *, struct tensor *, struct diags *);
int64_t tensor_int(const struct tensor *, int64_t i); /* element i of known data, as an integer */
double tensor_float(const struct tensor *, int64_t i);
char *shape_text(struct arena *, int ndims, const int64_t *extent); /* "[2,3]" */

/* ---- lower.c ---- */

struct name_table { /* from string to pointer; in the arena */
    struct name_slot *slot;
    int n, cap;
};
void *name_find(const struct name_table *, const char *);
void name_put(struct arena *, struct name_table *, const char *, void *);
struct name_table name_copy(struct arena *, const struct name_table *);

struct import_axis {
    const char *name, *hint;
    int64_t extent;
    bool taken; /* by the node being lowered */
};

struct import_const {
    const char *buffer;
    const void *data;
};

/* Where the statements of a node begin. */
struct text_marks {
    size_t body, first;
};
struct import_origin {
    struct text_marks from;
    const char *node; /* "node 'conv1' (Conv)" */
};

struct graph_output {
    const Onnx__ValueInfoProto *info;
    const char *buffer;
};

struct import {
    struct arena *arena;
    struct diags *diags;
    const char *path;
    int64_t opset;
    struct name_table value;  /* ONNX name -> struct tensor */
    struct name_table used;   /* names in the text */
    struct name_table result; /* name of a graph output -> struct graph_output */
    struct name_table custom; /* operator, with its domain -> struct custom */
    struct text ins, outs, consts, temps, first, body;
    bool ahead; /* statements go to `first`: they read nothing but constants and what stands there */
    struct import_axis *axis;
    int naxes, axis_cap;
    struct import_const *constant;
    int nconstants, constant_cap;
    const Onnx__NodeProto *node; /* being lowered */
    int node_index;
    bool *attribute_used; /* for each of its attributes */
    struct onnx_kind **kind; /* of the nodes lowered so far; now: of this one, or NULL */
    struct onnx_kind *now;
    int nkinds, kind_cap;
    struct import_origin *origin; /* of the nodes, in their order */
    int norigins, origin_cap;
    struct name_table kinds;   /* by name */
    struct name_table made_by; /* buffer -> kind */
    int empty_input;      /* an empty one whose elements were asked for; -1 */
    int empties;          /* results and temporaries of the node that have no elements */
    bool exact;           /* nothing is rounded to integers that the model has in floats */
    int coarse;           /* products whose inputs are made bytes, as the model allows */
    bool folding;         /* a node alone (fold.c): results that are known need no statement */
};

char *name_shown(struct arena *, const char *); /* for messages: printable, not too long */
/* an identifier that nothing else has */
const char *name_unique(struct import *, const char *wanted);

/* "node 'conv1'", or its number */
const char *node_shown(struct import *);
/* Reports "node 'conv1' (Conv, opset 15): ..."; false */
bool node_fail(struct import *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool node_has_input(const struct import *, int k);
bool node_needs_input(struct import *, int k); /* false after reporting that it is missing */
struct tensor *node_given(const struct import *, int k); /* may be empty; NULL: not given */
struct tensor *node_part(const struct import *, int k); /* the same, NULL where it is empty: what joins it with something has that alone */
/* The same for an operator that reads elements: an empty one makes the node an error. */
struct tensor *node_input(struct import *, int k);
bool node_wants(const struct import *, int k); /* somebody may read its k-th result */
/* Where the node's results have no elements, its statements since `from` are taken back. False after reporting one that has some,
 * beside temporaries that have none. */
bool node_empties(struct import *, struct text_marks from);
/* Input k as a list of integers, which must be known when compiling. *out NULL: not given */
bool node_list(struct import *, const char *name, int k, const int64_t **out, int *n);

/* Attributes: false after reporting a wrong type; absent ones leave *out. Asking marks an attribute
 * as understood. */
const Onnx__AttributeProto *attribute_find(struct import *, const char *name);
bool attribute_int(struct import *, const char *name, int64_t *out);
bool attribute_float(struct import *, const char *name, double *out);
bool attribute_string(struct import *, const char *name, const char **out);
/* *out NULL: absent */
bool attribute_ints(struct import *, const char *name, const int64_t **out, int *n);
/* A list of n integers from `least` to MAX_COUNT. *given (may be NULL): it is there; otherwise `to` is
 * left alone. */
enum { MAX_COUNT = 1 << 24 };
bool attribute_counts(struct import *, const char *name, int n, int64_t least, int64_t *to,
                      bool *given);
/* negative ones count from the end */
bool attribute_axis(struct import *, const char *name, int64_t preset, int ndims, int *out);
bool attributes_all_used(struct import *);
bool axis_normal(struct import *, int64_t axis, int ndims, int *out);
/* A list of integers that older operators have as an attribute and newer ones as a constant input
 * k. *out NULL: neither */
bool attribute_or_input(struct import *, const char *name, int k, const int64_t **out, int *n);

/* An axis for the node being lowered, other than those it has: its name, or "0" for extent 1. */
const char *axis_for(struct import *, const char *hint, int64_t extent);
void axes_release(struct import *); /* a later statement of the node may use them anew */
void axes_for(struct import *, int ndims, const int64_t *extent, const char **out);
/* Σ coef[i] * axis[i] + constant as text; "0" axes fall out */
const char *affine_text(struct import *, int n, const int64_t *coef, const char *const *axis,
                        int64_t constant);

void emit_declare(struct import *, struct text *where, const char *role, const struct tensor *);
/* The node's result: a temporary, or an output of the graph. NULL after reporting. */
struct tensor *node_result(struct import *, enum type, int ndims, const int64_t *extent);
/* The k-th result; where nobody wants it a temporary. */
struct tensor *node_result_at(struct import *, int k, enum type, int ndims, const int64_t *extent);
/* The node's result is `from`, under another shape of as many elements. */
bool node_alias(struct import *, const struct tensor *from, int ndims, const int64_t *extent);
bool node_alias_at(struct import *, int k, const struct tensor *from, int ndims,
                   const int64_t *extent);
bool node_constant(struct import *, enum type, int ndims, const int64_t *extent, const void *data);
bool node_constant_at(struct import *, int k, enum type, int ndims, const int64_t *extent,
                      const void *data);
void tensor_put_known(struct import *, const char *name, enum type, int64_t); /* a number of this name */
struct tensor *tensor_temporary(struct import *, const char *base, const char *suffix, enum type,
                                int ndims, const int64_t *extent);
struct tensor *tensor_constant(struct import *, const char *base, const char *suffix, enum type,
                               int ndims, const int64_t *extent, const void *data);

/* Sums of 16-bit floats are kept in f32: sum_type is f32 for them, else the type itself; sum_widen
 * casts an element to it, sum_narrow back. */
enum type sum_type(enum type);
const char *sum_widen(struct import *, enum type, const char *element);
const char *sum_narrow(struct import *, enum type, const char *value);
/* where to accumulate y: y itself, or a temporary of the wide type; sum_close copies it to y */
struct tensor *sum_open(struct import *, struct tensor *y);
void sum_close(struct import *, struct tensor *y, struct tensor *acc, const char *const *index);

/* "x[n,c]"; declares constants */
const char *tensor_element(struct import *, struct tensor *, const char *const *index);
const char *tensor_element_else(struct import *, struct tensor *, const char *const *index,
                                const char *fill);
/* as tensor_element, the index of a tensor of `ndims` dimensions that this one is broadcast to
 * (extent: its extents) */
const char *tensor_element_broadcast(struct import *, struct tensor *, int ndims,
                                     const int64_t *extent, const char *const *index);
bool shape_broadcast(struct import *, struct tensor *const *, int n, int *ndims, int64_t *extent);
/* a literal that reads back as the same value */
const char *text_number(struct import *, enum type, double);
const char *type_lowest(enum type); /* the least value: -inf, -128 */
const char *type_highest(enum type);
/* the value of a tensor of one element: a literal where known */
const char *tensor_scalar(struct import *, struct tensor *);
void emit_statement(struct import *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* out[...] = x[...] over all elements, extents of both the same */
bool emit_copy(struct import *, struct tensor *to, struct tensor *from);

/* graph.c: reports what is wrong with the model as a whole; false */
bool graph_fail(struct import *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* graph_ends.c */
bool graph_read_inputs(struct import *, struct onnx_model *, const Onnx__GraphProto *, const struct bindings *dims, bool *used);
bool graph_all_dims_used(struct import *, const struct bindings *dims, const bool *used); /* else reports */
bool graph_read_outputs(struct import *, struct onnx_model *, const Onnx__GraphProto *);
bool graph_read_initialisers(struct import *, const Onnx__GraphProto *);
void graph_name_initialisers(struct import *, const Onnx__GraphProto *); /* after inputs and outputs, which keep their names */
/* After the nodes: outputs that no node makes are copies of an input or an initialiser; those that are sequences become several. */
bool graph_pass_outputs(struct import *, struct onnx_model *, const Onnx__GraphProto *);
void graph_drop_raw(const Onnx__GraphProto *); /* they have been copied: weights are held once while the graph is lowered and compiled */
void graph_keep_values(struct import *, const struct onnx_options *); /* that are wanted beside the outputs */
void graph_name_kept(struct import *, struct onnx_model *, const struct onnx_options *); /* those that were made are outputs too */

/* graph.c: the nodes of a graph that is an attribute of the node, whose names join the values there are; then the node is under
 * way again. */
bool graph_nodes(struct import *, const Onnx__GraphProto *);

/* ---- inner.c ---- */

/* A node inside the node being lowered; inputs NULL or "": not given. */
enum { INNER_INPUTS = 9, INNER_OUTPUTS = 4 };
struct inner {
    const char *input[INNER_INPUTS], *output[INNER_OUTPUTS];
    int ninputs;
    Onnx__AttributeProto **attribute;
    int nattributes, attribute_cap;
};
const char *inner_name(struct import *, const char *suffix); /* of a value; nothing else has it */
const char *inner_value(struct import *, struct tensor *, const char *suffix); /* names a temporary */
void inner_int(struct import *, struct inner *, const char *name, int64_t value);
void inner_ints(struct import *, struct inner *, const char *name, int n, const int64_t *values);
void inner_float(struct import *, struct inner *, const char *name, double value);
void inner_string(struct import *, struct inner *, const char *name, const char *value);
/* the node's attributes, but for those whose names begin with `but` (NULL: all) */
void inner_pass(struct import *, struct inner *, const char *but);
bool inner_lower(struct import *, struct inner *, const char *op);
/* the same of one or two inputs (b NULL: one), without attributes */
bool inner_node(struct import *, const char *op, const char *a, const char *b, const char *to);

/* ---- op_blocks.c ---- */
struct tensor *fields_open(struct import *, struct tensor *bytes, int64_t bits, const char *suffix);
void fields_dequantise(struct import *, struct tensor *y, struct tensor *fields, struct tensor *scale, struct tensor *zero,
                       int64_t bits);

/* ---- loop_count.c ---- */
enum loop_end { LOOP_END_FAILED, LOOP_END_KNOWN, LOOP_END_BY_VALUE };
/* How often a Loop's body runs, if its condition was true before: *steps, which comes in as the most there may be. By value: it
 * may end before. Failed after reporting. */
enum loop_end loop_count(struct import *, const Onnx__GraphProto *body, int64_t *steps);

/* function.c: the model's graph without calls of the model's functions; NULL after reporting. An
 * attribute of this name says which opset a node is of, where its function imports another one than
 * the model. */
#define ATTRIBUTE_OPSET "isamap.opset"
bool opset_known(int64_t opset); /* graph.c */
const Onnx__GraphProto *functions_expand(struct import *, const Onnx__ModelProto *);

/* custom.c: operators that kernel files give. False after reporting. */
struct custom;
bool custom_read(struct import *, const struct onnx_options *);
bool custom_all_used(struct import *, const struct onnx_options *);
bool custom_lower(struct import *, const struct custom *);

/* op_sequence.c: it takes a sequence, or makes one */
bool node_on_sequences(const Onnx__NodeProto *);

/* ---- op_table.c ---- */

struct op_entry {
    const char *name;
    int min_inputs, max_inputs; /* max -1: any number */
    bool (*lower)(struct import *);
};
/* Where the data say how many elements are named: the index of those behind the last one. What is gathered there is 0. */
#define NO_ELEMENT "2147483647"

/* NULL: this operator of this domain is not one of them */
const struct op_entry *op_find(const char *domain, const char *name);
bool standard_domain(const char *domain);

/* clang-format off */
/*  ONNX's name, least and most inputs (-1: any number), function */
#define ONNX_OPERATORS(X) \
    X(Conv, 2, 3, conv) X(ConvInteger, 2, 4, conv_integer) \
    X(QLinearConv, 8, 9, qlinear_conv) X(MaxPool, 1, 1, max_pool) X(MaxUnpool, 2, 3, max_unpool) \
    X(AveragePool, 1, 1, average_pool) X(GlobalMaxPool, 1, 1, global_max_pool) \
    X(GlobalAveragePool, 1, 1, global_average_pool) \
    X(Gemm, 2, 3, gemm) X(MatMul, 2, 2, matmul) X(MatMulInteger, 2, 4, matmul_integer) \
    X(QLinearMatMul, 8, 8, qlinear_matmul) \
    X(QuantizeLinear, 2, 3, quantize) X(DequantizeLinear, 2, 3, dequantize) \
    X(Identity, 1, 1, identity) X(Dropout, 1, 3, dropout) \
    X(Constant, 0, 0, constant_node) X(Cast, 1, 1, cast) \
    X(Flatten, 1, 1, flatten) X(Reshape, 1, 2, reshape) \
    X(Squeeze, 1, 2, squeeze) X(Unsqueeze, 1, 2, unsqueeze) \
    X(Transpose, 1, 1, transpose) X(Concat, 1, -1, concat) X(Pad, 1, 4, pad) \
    X(Softmax, 1, 1, softmax) X(LogSoftmax, 1, 1, log_softmax) X(Clip, 1, 3, clip) \
    X(HardSigmoid, 1, 1, hard_sigmoid) \
    X(BatchNormalization, 5, 5, batch_normalization) \
    X(ReduceSum, 1, 2, reduce_sum) X(ReduceMean, 1, 2, reduce_mean) \
    X(ReduceMax, 1, 2, reduce_max) X(ReduceMin, 1, 2, reduce_min) \
    X(ReduceProd, 1, 2, reduce_prod) X(ReduceL1, 1, 2, reduce_l1) X(ReduceL2, 1, 2, reduce_l2) \
    X(ReduceSumSquare, 1, 2, reduce_sum_square) X(ReduceLogSum, 1, 2, reduce_log_sum) \
    X(ReduceLogSumExp, 1, 2, reduce_log_sum_exp) \
    X(ArgMax, 1, 1, arg_max) X(ArgMin, 1, 1, arg_min) X(Hardmax, 1, 1, hardmax) \
    X(TopK, 1, 2, top_k) X(CumSum, 2, 2, cum_sum) \
    X(Where, 3, 3, where) X(Pow, 2, 2, pow) X(Mod, 2, 2, mod) X(BitShift, 2, 2, bit_shift) \
    X(IsInf, 1, 1, is_inf) X(CastLike, 2, 2, cast_like) X(Mean, 1, -1, mean) X(Gelu, 1, 1, gelu) \
    X(Trilu, 1, 2, trilu) X(EyeLike, 1, 1, eye_like) \
    X(Shape, 1, 1, shape) X(Size, 1, 1, size) X(ConstantOfShape, 1, 1, constant_of_shape) \
    X(Range, 3, 3, range) X(Slice, 1, 5, slice) X(Split, 1, 2, split) X(Expand, 2, 2, expand) \
    X(Tile, 2, 2, tile) X(DepthToSpace, 1, 1, depth_to_space) \
    X(SpaceToDepth, 1, 1, space_to_depth) \
    X(Gather, 2, 2, gather) X(GatherElements, 2, 2, gather_elements) \
    X(GatherND, 2, 2, gather_nd) X(Scatter, 3, 3, scatter_elements) \
    X(ScatterElements, 3, 3, scatter_elements) X(ScatterND, 3, 3, scatter_nd) \
    X(OneHot, 3, 3, one_hot) X(Einsum, 1, -1, einsum) \
    X(LayerNormalization, 2, 3, layer_normalization) \
    X(RMSNormalization, 2, 2, rms_normalization) \
    X(SimplifiedLayerNormalization, 2, 2, simplified_layer_normalization) \
    X(InstanceNormalization, 3, 3, instance_normalization) \
    X(GroupNormalization, 3, 3, group_normalization) \
    X(MeanVarianceNormalization, 1, 1, mean_variance_normalization) X(LRN, 1, 1, lrn) \
    X(LpNormalization, 1, 1, lp_normalization) \
    X(Resize, 1, 4, resize) X(Upsample, 1, 2, upsample) X(ConvTranspose, 2, 3, conv_transpose) \
    X(DynamicQuantizeLinear, 1, 1, dynamic_quantize) \
    X(NegativeLogLikelihoodLoss, 2, 3, nll_loss) \
    X(SoftmaxCrossEntropyLoss, 2, 3, softmax_cross_entropy) \
    X(PRelu, 2, 2, prelu) X(Shrink, 1, 1, shrink) X(ReverseSequence, 2, 2, reverse_sequence) \
    X(HannWindow, 1, 1, hann_window) X(HammingWindow, 1, 1, hamming_window) \
    X(BlackmanWindow, 1, 1, blackman_window) X(Compress, 2, 2, compress) \
    X(NonZero, 1, 1, non_zero) X(Unique, 1, 1, unique) X(GridSample, 2, 2, grid_sample) \
    X(NonMaxSuppression, 2, 5, non_max_suppression) X(Det, 1, 1, det) \
    X(RNN, 3, 6, rnn) X(GRU, 3, 6, gru) X(LSTM, 3, 8, lstm) \
    X(Scan, 0, -1, scan) X(Loop, 0, -1, loop) \
    X(Attention, 3, 7, scaled_attention) X(RotaryEmbedding, 3, 4, rotary_embedding) \
    X(LpPool, 1, 1, lp_pool) X(CenterCropPad, 2, 2, center_crop_pad) \
    X(TensorScatter, 2, 3, tensor_scatter) X(DFT, 1, 3, dft) X(STFT, 2, 4, stft) \
    X(AffineGrid, 2, 2, affine_grid) X(CumProd, 2, 2, cum_prod) \
    X(CausalConvWithState, 2, 4, causal_conv) X(RoiAlign, 3, 3, roi_align) \
    X(LinearAttention, 3, 6, linear_attention) X(GlobalLpPool, 1, 1, global_lp_pool) \
    X(BitCast, 1, 1, bit_cast) X(MaxRoiPool, 2, 2, max_roi_pool) X(MelWeightMatrix, 5, 5, mel_weight_matrix) \
    X(DeformConv, 3, 5, deform_conv) X(Col2Im, 3, 3, col_to_im) \
    X(SequenceEmpty, 0, 0, sequence_empty) X(SequenceConstruct, 1, -1, sequence_construct) \
    X(SequenceInsert, 2, 3, sequence_insert) X(SequenceErase, 1, 2, sequence_erase) \
    X(SequenceAt, 2, 2, sequence_at) X(SequenceMap, 1, -1, sequence_map) X(SequenceLength, 1, 1, sequence_length) \
    X(SplitToSequence, 1, 2, split_to_sequence) X(ConcatFromSequence, 1, 1, concat_from_sequence) \
    X(Optional, 0, 1, optional) X(OptionalHasElement, 0, 1, optional_has_element) \
    X(OptionalGetElement, 1, 1, optional_get_element)
/* The same for the domain com.microsoft. */
#define MICROSOFT_OPERATORS(X) \
    X(QLinearAdd, 7, 8, qlinear_add) X(QLinearMul, 7, 8, qlinear_mul) \
    X(QLinearConcat, 5, -1, qlinear_concat) X(QLinearSigmoid, 4, 5, qlinear_sigmoid) \
    X(QLinearLeakyRelu, 4, 5, qlinear_leaky_relu) X(QLinearSoftmax, 5, 5, qlinear_softmax) \
    X(QLinearGlobalAveragePool, 5, 5, qlinear_global_average_pool) X(QGemm, 6, 9, qgemm) \
    X(QLinearAveragePool, 5, 5, qlinear_average_pool) \
    X(MatMulIntegerToFloat, 4, 7, matmul_integer_to_float) \
    X(DynamicQuantizeMatMul, 3, 5, dynamic_quantize_matmul) \
    X(QuantizeLinear, 2, 3, quantize) X(DequantizeLinear, 2, 3, dequantize) X(Gelu, 1, 1, gelu) \
    X(FusedMatMul, 2, 2, fused_matmul) X(FusedConv, 2, 4, fused_conv) \
    X(FusedGemm, 2, 3, fused_gemm) \
    X(BiasGelu, 2, 2, bias_gelu) X(FastGelu, 1, 2, fast_gelu) X(QuickGelu, 1, 1, quick_gelu) \
    X(SkipLayerNormalization, 3, 5, skip_layer_normalization) \
    X(SkipSimplifiedLayerNormalization, 3, 4, skip_simplified_layer_normalization) \
    X(SimplifiedLayerNormalization, 2, 2, simplified_layer_normalization) \
    X(EmbedLayerNormalization, 1, 9, embed_layer_normalization) \
    X(Attention, 2, 7, attention) X(QAttention, 5, 9, qattention) \
    X(MultiHeadAttention, 3, 8, multi_head_attention) \
    X(GroupQueryAttention, 1, 17, group_query_attention) \
    X(MatMulNBits, 3, 6, matmul_nbits) \
    X(RotaryEmbedding, 4, 4, ms_rotary_embedding) X(QLinearWhere, 8, 9, qlinear_where) \
    X(QEmbedLayerNormalization, 1, 18, qembed_layer_normalization) \
    X(GatherBlockQuantized, 3, 4, gather_block_quantized) \
    X(DynamicQuantizeLSTM, 3, 12, dynamic_quantize_lstm) X(MoE, 3, 8, experts) \
    X(QMoE, 3, 15, experts) X(QLinearConv, 8, 9, channels_last) \
    X(NhwcMaxPool, 1, 1, channels_last) X(TransposeMatMul, 2, 2, fused_matmul) \
    X(LinearAttention, 3, 6, linear_attention) X(CausalConvWithState, 2, 4, ms_causal_conv) \
    X(Trilu, 1, 2, trilu) X(Range, 2, 3, range) X(GatherND, 2, 2, gather_nd) X(Pad, 2, 3, pad) \
    X(GridSample, 2, 2, grid_sample) X(ExpandDims, 2, 2, expand_dims) X(Unique, 1, 1, ms_unique) \
    X(CDist, 2, 2, distances) X(MatMulInteger16, 2, 2, matmul_integer16) \
    X(GroupNorm, 3, 3, ms_group_norm) X(SkipGroupNorm, 4, 5, ms_group_norm) \
    X(BiasAdd, 3, 3, bias_add) X(BiasSplitGelu, 2, 2, bias_split_gelu) \
    X(GemmFastGelu, 2, 3, gemm_fast_gelu) X(GatedRMSNorm, 3, 3, gated_rms_norm) \
    X(BranchwiseRMSNorm, 1, 2, branchwise_rms_norm) X(ScaledSiLU, 1, 2, scaled_silu) \
    X(GatedAdd, 3, 3, gated_add) X(LinearAttentionGate, 3, 4, linear_attention_gate) \
    X(MatMulBnb4, 3, 3, matmul_bnb4)
/* The same for the domain ai.onnx.ml. */
#define ML_OPERATORS(X) \
    X(Scaler, 1, 1, ml_scaler) X(Normalizer, 1, 1, ml_normalizer) \
    X(Binarizer, 1, 1, ml_binarizer) X(LinearRegressor, 1, 1, ml_linear_regressor) \
    X(LinearClassifier, 1, 1, ml_linear_classifier) \
    X(TreeEnsembleRegressor, 1, 1, ml_tree_regressor) \
    X(TreeEnsembleClassifier, 1, 1, ml_tree_classifier) X(TreeEnsemble, 1, 1, ml_tree_ensemble) \
    X(LabelEncoder, 1, 1, ml_label_encoder) X(Imputer, 1, 1, ml_imputer) \
    X(ArrayFeatureExtractor, 2, 2, ml_array_feature_extractor) \
    X(FeatureVectorizer, 1, -1, ml_feature_vectorizer) X(OneHotEncoder, 1, 1, ml_one_hot) \
    X(SVMRegressor, 1, 1, ml_svm_regressor) X(SVMClassifier, 1, 1, ml_svm_classifier) \
    X(ZipMap, 1, 1, ml_zip_map)
/* clang-format on */

struct formula;
#define X(name, lo, hi, function) bool op_##function(struct import *);
ONNX_OPERATORS(X)
MICROSOFT_OPERATORS(X)
ML_OPERATORS(X)
#undef X

/* qdq.c: *out is the graph with operators on integers where operators on floats stood between
 * quantisers (*requantised: how many; none with `exact`), and with rows of weights taken before they
 * are dequantised. It shares all else with g. False: it is the same graph. */
bool qdq_rewrite(struct import *, const Onnx__GraphProto *g, bool exact, Onnx__GraphProto *out, int *requantised);
/* Attributes of such operators: the least and the greatest integer of the result, where a Relu or a
 * Clip stood behind it. */
#define ATTRIBUTE_LEAST "isamap.least"
#define ATTRIBUTE_MOST "isamap.most"
/* The name of a constant: numbers that are added to the result before it is rounded, one for each channel. */
#define ATTRIBUTE_OFFSET "isamap.offset"

/* fold.c: nodes whose inputs are known */
bool node_folds(struct import *);
/* *done false: it would take long, and stays in the program. */
bool node_fold(struct import *, const struct op_entry *, const struct formula *, bool *done);

/* axes.c: no more of them than a program has room for, where that is possible */
void axes_fit(struct import *);

/* kernel.c */
void kernel_node(struct import *); /* what is emitted from here on belongs to the node */
char *kernel_text(struct import *, const char *name); /* in the arena */
/* Parsed and bound; for each of its buffers the data of constants. NULL after reporting. The caller
 * frees it with program_free. */
struct program *kernel_program(struct import *, const char *text, const struct bindings *outer,
                               struct source *, struct kernel **, const void ***data);
void import_free(struct import *);

/* op_suppress.c: NonMaxSuppression where boxes, scores or thresholds are data; `most` boxes of a class */
bool suppress_data(struct import *, struct tensor *box, struct tensor *score, int64_t most, bool centre);

/* op_channels_last.c: the value `to` has the channels of `from` as its second dimension instead of
 * the last, or back. */
bool channels_moved(struct import *, const char *from, bool back, const char *to);

/* op_gather.c: the node's result is x at the places of `index` along the axis */
bool gather_places(struct import *, struct tensor *x, struct tensor *index, int axis);

/* op_elementwise.c: operators that are one formula of elements; NULL: not one of them */
const struct formula *formula_find(const char *domain, const char *name);
bool formula_lower(struct import *, const struct formula *);
/* The i-th of them and the number of its inputs, -1: any; NULL: there are no more. */
const char *formula_name(int i, int *inputs);

/* op_quantize.c */
/* A zero point (NULL: none) of the type of `like`: *text NULL when all are zero, else text of type
 * i32, with `index` for a vector. */
bool quantised_zero(struct import *, struct tensor *zp, const struct tensor *like, int64_t vector,
                    const char *index, const char **text);
/* The scale and zero point of (De)QuantizeLinear, one for the tensor, one for each index of an
 * axis, or one for each block of elements along it. */
struct quantisation {
    struct tensor *x, *scale, *zero;
    int axis;      /* -1: one for the tensor */
    int64_t block; /* 0: none */
    const char *index[MAX_DIMS], *at[MAX_DIMS]; /* of x; of scale and zero */
    const char *part[2];                        /* of a block: which, and where in it */
    const char *scale_text, *zero_text; /* zero_text NULL: no zero point; type i32 */
};
bool quantisation_read(struct import *, struct quantisation *, enum type *integer);
bool small_integer(enum type); /* of 8 or 16 bits */
/* The range of x, widened to hold 0, becomes 255 steps: y of u8, one scale of f32, one zero of u8 */
bool dynamic_quantise(struct import *, struct tensor *x, struct tensor *y, struct tensor *scale,
                      struct tensor *zero);
/* i32(e) - zp, or i32(e) alone */
const char *quantised_element(struct import *, const char *element, const char *zp);
/* The limits of a quantised result, those of its type or closer ones. */
bool quantised_limits(struct import *, enum type, const char **least, const char **most);
/* The statement y[...] = T(clip(round(f32(acc[...]) * s) + zp, lo, hi)) with s = alpha * x * w / y, all in f32 as in
 * ONNX Runtime (MlasRequantizeOutput), so its integers are equal; with an offset before rounding, which that lacks, in
 * f64. Inputs xs, ws, ys: numbers of the scales' inputs; ws may be a vector along `channel` (-1: not). */
bool quantised_result(struct import *, struct tensor *acc, float alpha, int xs, int ws, int ys, int yzp,
                      int channel);

#endif
