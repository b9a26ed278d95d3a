/* ONNX models. A model's graph becomes one kernel: each operator is lowered to statements of .isam
 * text, which the importer writes and parses like any other program, so that mapper and scheduler
 * see through operator borders and `show` can print what they see.
 *
 *   wire.c     bytes: nesting, lengths and counts, before protobuf-c sees them
 *   tensor.c   tensors: types, data, external files
 *   graph.c    the graph: names, order, inputs, outputs
 *   function.c the model's own functions, replaced by their nodes
 *   qdq.c      operators between quantisers, as operators on integers
 *   qdq_fold.c what stands behind such an operator, as part of it
 *   fold.c     nodes that only constants reach: their values
 *   custom.c   operators that kernel files give
 *   kernel.c   the program
 *   lower.c    what all operators need: attributes, axes, buffers, statements
 *   op_*.c     the operators; the table is in op_table.c */
#ifndef ISAMAP_ONNX_ONNX_H
#define ISAMAP_ONNX_ONNX_H

#include "ir/npy.h"
#include "ir/program.h"

/* a graph input or output, and the buffer that stands for it */
struct onnx_name {
    const char *onnx, *buffer;
};

/* the nodes of one operator: "Conv", "com.microsoft.QGemm" */
struct onnx_kind {
    const char *name;
    int nodes, folded; /* folded: of them computed when the model was read */
};

struct onnx_model {
    struct arena arena;   /* owns all but the program */
    const char *text;     /* the kernel, as .isam */
    struct source source; /* of that text */
    struct kernel *kernel;
    struct program *program;
    const void **data; /* for each of the program's buffers: of a const one its data, else NULL */
    struct onnx_name *input, *output;
    int ninputs, noutputs; /* inputs that have an initialiser are constants and not among them */
    const char *producer, *version; /* what wrote the file; "" where it does not say */
    int64_t opset;
    struct onnx_kind *kind; /* of the nodes that outputs need */
    int nkinds;
    int *made_by;          /* for each of the program's buffers, the kind of the node that made it; -1 */
    int requantised;       /* operators between quantisers that are computed on integers */
};

/* An operator that the first kernel of a file computes: "Op", or "domain.Op". */
struct onnx_custom {
    const char *op, *file;
};

struct onnx_options {
    bool exact; /* operators between quantisers, and inputs of products in blocks, stay in floats */
    const char *const *keep; /* values that become outputs too, where a node makes them */
    int nkeep;
    const struct onnx_custom *custom;
    int ncustom;
};

/* Reads a model. `dims` gives the symbolic dimensions (may be NULL); each of its own entries, those
 * of `outer` aside, must be a dimension of the model. NULL after reporting; places in the file are
 * byte offsets: line 1, column offset + 1. Without protobuf-c this says so. The options may be NULL. */
struct onnx_model *onnx_load(const char *path, const struct bindings *dims,
                             const struct onnx_options *, struct diags *);
/* The same for bytes in memory; `path` is for messages, and its folder is where external data may
 * lie. */
struct onnx_model *onnx_parse(const char *path, const void *bytes, size_t length,
                              const struct bindings *dims, const struct onnx_options *,
                              struct diags *);
void onnx_free(struct onnx_model *);

/* The operators of the domain that are taken, in alphabetical order, "Conv (2-3)": with the number of their inputs.
 * Only with protobuf-c. */
void onnx_operators_list(struct text *, const char *domain);

/* Reads one serialised TensorProto (.pb). The caller frees it with array_free. */
bool onnx_tensor_read(const char *path, struct array *, struct diags *);

#endif
