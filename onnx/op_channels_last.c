/* Of com.microsoft: operators that ONNX Runtime's optimiser gives tensors whose channels are their
 * last dimension (QLinearConv, NhwcMaxPool). They are ONNX's own between two exchanges, which
 * mapper and scheduler see as such. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

bool channels_moved(struct import *im, const char *from, bool back, const char *to) {
    const struct tensor *x = name_find(&im->value, from);
    int64_t order[MAX_DIMS] = {0};
    struct inner n = {.input = {from}, .ninputs = 1, .output = {to}};
    for (int d = 1; d < x->ndims; d++) order[d] = back ? d + 1 : d - 1;
    order[back ? x->ndims - 1 : 1] = back ? 1 : x->ndims - 1;
    inner_ints(im, &n, "perm", x->ndims, order);
    return inner_lower(im, &n, "Transpose");
}

bool op_channels_last(struct import *im) {
    const char *result = im->node->output[0];
    bool pool = strcmp(im->node->op_type, "NhwcMaxPool") == 0;
    int64_t last = pool;
    if (!pool && !attribute_int(im, "channels_last", &last)) return false;
    if (node_input(im, 0)->ndims < 3) return node_fail(im, "the input has no dimension of pixels");
    struct inner n = {.ninputs = (int)im->node->n_input,
                      .output = {last ? inner_name(im, "first") : result}};
    for (int k = 0; k < n.ninputs; k++) n.input[k] = im->node->input[k];
    if (last) {
        n.input[0] = inner_name(im, "moved");
        if (!channels_moved(im, im->node->input[0], false, n.input[0])) return false;
    }
    inner_pass(im, &n, "channels_last");
    return inner_lower(im, &n, pool ? "MaxPool" : "QLinearConv") &&
           (!last || channels_moved(im, n.output[0], true, result));
}
#endif
