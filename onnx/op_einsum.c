/* Einsum: letters are axes; a product of elements is summed over those that the result does not
 * have. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

enum { OPERANDS = 8, DOTS = '.' };

struct einsum {
    char term[OPERANDS + 1][MAX_DIMS + 1]; /* the last is the result's */
    int n, dots;                           /* operands; dimensions that "..." stands for */
    int64_t extent[128];                   /* of each letter; digits for those of "..." */
    const char *axis[128];
};

/* Letters of a term, its "..." as digits: '0' + k stands for the k-th of the dots' dimensions. */
static bool read_term(struct einsum *e, const char **at, int ndims, char *to) {
    int n = 0, letters = 0;
    for (const char *c = *at; *c && *c != ',' && *c != '-'; c++)
        letters += (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
    int dots = ndims < 0 ? e->dots : ndims - letters;
    for (; **at && **at != ',' && **at != '-'; ++*at) {
        char c = **at;
        if (c == ' ') continue;
        if (c == DOTS && strncmp(*at, "...", 3) == 0) {
            *at += 2;
            if (dots < 0 || n + dots > MAX_DIMS || dots > 9) return false;
            if (dots > e->dots) e->dots = dots;
            for (int k = 0; k < dots; k++) to[n++] = (char)('0' + e->dots - dots + k);
        } else if (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && n < MAX_DIMS) {
            to[n++] = c;
        } else {
            return false;
        }
    }
    to[n] = 0;
    return ndims < 0 || n == ndims;
}

static bool read_equation(struct import *im, struct einsum *e, const char *text) {
    const char *at = text;
    int count[128] = {0};
    for (int pass = 0; pass < 2; pass++) { /* the second knows how many dimensions the dots have */
        at = text;
        for (int k = 0; k < e->n; k++) {
            if (!read_term(e, &at, node_input(im, k)->ndims, e->term[k])) return false;
            if (k < e->n - 1 && *at++ != ',') return false;
        }
    }
    if (strncmp(at, "->", 2) == 0) {
        at += 2;
        return read_term(e, &at, -1, e->term[e->n]) && !*at;
    }
    if (*at) return false;
    for (int k = 0; k < e->n; k++)
        for (const char *c = e->term[k]; *c; c++) count[(int)*c]++;
    int n = 0;
    for (int c = '0'; c < 128; c++) /* the dots, then letters that stand once, in their order */
        if (count[c] && (c <= '9' || count[c] == 1) && n < MAX_DIMS) e->term[e->n][n++] = (char)c;
    return true;
}

static bool letter_extents(struct import *im, struct einsum *e) {
    for (int k = 0; k < e->n; k++)
        for (int d = 0; e->term[k][d]; d++) {
            int64_t n = node_input(im, k)->extent[d], *have = &e->extent[(int)e->term[k][d]];
            if (*have > 1 && n > 1 && *have != n)
                return node_fail(im, "'%c' is %" PRId64 " and %" PRId64, e->term[k][d], *have, n);
            if (n > *have) *have = n;
        }
    for (const char *c = e->term[e->n]; *c; c++)
        if (!e->extent[(int)*c])
            return node_fail(im, "'%c' of the result stands in no operand", *c);
    return true;
}

static void term_index(const struct einsum *e, int k, const struct tensor *t, const char **index) {
    for (int d = 0; e->term[k][d]; d++)
        index[d] = t->extent[d] == 1 ? "0" : e->axis[(int)e->term[k][d]];
}

bool op_einsum(struct import *im) {
    struct einsum e = {.n = (int)im->node->n_input};
    const char *equation = NULL, *index[MAX_DIMS];
    int64_t extent[MAX_DIMS];
    if (!attribute_string(im, "equation", &equation)) return false;
    if (!equation || im->node->n_input > OPERANDS)
        return node_fail(im, "'equation' is missing, or it has more than %d operands", OPERANDS);
    for (int k = 0; k < e.n; k++)
        if (!node_input(im, k) || node_input(im, k)->type != node_input(im, 0)->type ||
            node_input(im, k)->type == TYPE_BOOL)
            return node_fail(im, "its operands are not numbers of one type");
    if (!read_equation(im, &e, equation))
        return node_fail(im, "the equation '%s' does not fit its %d operands",
                         name_shown(im->arena, equation), e.n);
    if (!letter_extents(im, &e)) return false;
    const char *out = e.term[e.n];
    int ndims = (int)strlen(out);
    for (int d = 0; d < ndims; d++) extent[d] = e.extent[(int)out[d]];
    struct tensor *y = node_result(im, node_input(im, 0)->type, ndims, extent);
    struct tensor *acc = y ? sum_open(im, y) : NULL;
    if (!acc) return false;
    for (int c = 0; c < 128; c++)
        if (e.extent[c])
            e.axis[c] = axis_for(im, c > '9' ? arena_printf(im->arena, "%c", c) : "n", e.extent[c]);
    struct text product = {0};
    for (int k = 0; k < e.n; k++) {
        struct tensor *t = node_input(im, k);
        term_index(&e, k, t, index);
        text_printf(&product, "%s%s", k ? " * " : "",
                    sum_widen(im, t->type, tensor_element(im, t, index)));
    }
    term_index(&e, e.n, y, index);
    emit_statement(im, "%s = 0", tensor_element(im, acc, index));
    emit_statement(im, "%s += %s", tensor_element(im, acc, index), product.at);
    text_free(&product);
    sum_close(im, y, acc, index);
    return true;
}
#endif
