#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <string.h>

#define X(name, lo, hi, function) {#name, lo, hi, op_##function},
static const struct op_entry operators[] = {ONNX_OPERATORS(X){0}},
                             microsoft[] = {MICROSOFT_OPERATORS(X){0}};
#undef X

bool standard_domain(const char *domain) {
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

const struct op_entry *op_find(const char *domain, const char *name) {
    const struct op_entry *op = standard_domain(domain)                ? operators
                                : strcmp(domain, "com.microsoft") == 0 ? microsoft
                                                                       : NULL;
    for (; op && op->name; op++)
        if (strcmp(op->name, name) == 0) return op;
    return NULL;
}
#endif
