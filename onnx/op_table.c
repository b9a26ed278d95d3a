#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <stdlib.h>
#include <string.h>

#define X(name, lo, hi, function) {#name, lo, hi, op_##function},
static const struct op_entry operators[] = {ONNX_OPERATORS(X){0}},
                             microsoft[] = {MICROSOFT_OPERATORS(X){0}},
                             learning[] = {ML_OPERATORS(X){0}};
#undef X

bool standard_domain(const char *domain) {
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* NULL: none are known */
static const struct op_entry *operators_of(const char *domain) {
    return standard_domain(domain)                ? operators
           : strcmp(domain, "com.microsoft") == 0 ? microsoft
           : strcmp(domain, "ai.onnx.ml") == 0    ? learning
                                                  : NULL;
}

const struct op_entry *op_find(const char *domain, const char *name) {
    const struct op_entry *op = operators_of(domain);
    for (; op && op->name; op++)
        if (strcmp(op->name, name) == 0) return op;
    return NULL;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct op_entry *)a)->name, ((const struct op_entry *)b)->name);
}

void onnx_operators_list(struct text *to, const char *domain) {
    enum {
        MOST = sizeof operators / sizeof *operators + sizeof microsoft / sizeof *microsoft + 100
    };
    struct op_entry list[MOST];
    int n = 0, inputs;
    const char *name;
    bool standard = standard_domain(domain);
    for (const struct op_entry *op = operators_of(domain); op && op->name; op++) list[n++] = *op;
    for (int i = 0; standard && (name = formula_name(i, &inputs)); i++)
        list[n++] = (struct op_entry){name, inputs < 0 ? 1 : inputs, inputs, NULL};
    if (standard) list[n++] = (struct op_entry){"If", 1, 1, NULL}; /* the graph's (graph.c) */
    qsort(list, (size_t)n, sizeof *list, by_name);
    for (int i = 0; i < n; i++) {
        const struct op_entry *op = &list[i];
        text_printf(to, "%s%s (%d", i ? ", " : "", op->name, op->min_inputs);
        if (op->max_inputs < 0)
            text_printf(to, " or more");
        else if (op->max_inputs > op->min_inputs)
            text_printf(to, "-%d", op->max_inputs);
        text_printf(to, ")");
    }
}
#endif
