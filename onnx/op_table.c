#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

static const struct op_entry operators[] = {
#define X(name, lo, hi, function) {#name, lo, hi, op_##function},
    ONNX_OPERATORS(X)
#undef X
};

const struct op_entry *op_find(const char *name) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].name, name) == 0) return &operators[i];
    return NULL;
}
#endif
