/* Constant folding: a node whose inputs are all known, and small, is lowered to a kernel of its
 * own, which the interpreter runs; its results are constants. So whatever computes a shape is known
 * when compiling, with the meaning that the operator has anywhere else. Large ones stay in the
 * program: what depends on constants alone is computed once, before the first run. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "ir/interp.h"
#include "onnx/onnx_int.h"

#include <string.h>

enum { FOLDED = 1 << 16 };  /* elements of the inputs, and of a result */
enum { LOOKED_AT = 1 << 22 }; /* points that the interpreter goes through: a table looked up by constants has elements times places */

bool node_folds(struct import *im) {
    int64_t elements = 0;
    bool any = false;
    if (node_on_sequences(im->node)) return false; /* parts that are known stay known */
    for (size_t a = 0; a < im->node->n_attribute; a++)
        if (im->node->attribute[a]->g) return false; /* a body reads values of the graph around */
    for (int k = 0; k < (int)im->node->n_input; k++) {
        const struct tensor *t = node_given(im, k);
        if (!t) continue;
        if (!t->data || (elements += t->elements) > FOLDED) return false;
        any = true;
    }
    return any;
}

/* The same node, alone: its inputs are constants, its results outputs. */
static struct import alone(struct import *im) {
    struct import sub = {.arena = im->arena,
                         .diags = im->diags,
                         .path = im->path,
                         .opset = im->opset,
                         .node = im->node,
                         .node_index = im->node_index,
                         .attribute_used = im->attribute_used,
                         .empty_input = -1,
                         .folding = true};
    for (int k = 0; k < (int)im->node->n_input; k++) {
        const struct tensor *t = node_given(im, k);
        if (!t || name_find(&sub.value, im->node->input[k])) continue;
        struct tensor *own = arena_copy(im->arena, t, sizeof *t);
        own->buffer = name_unique(&sub, "x");
        own->declared = false;
        name_put(im->arena, &sub.value, im->node->input[k], own);
    }
    for (int k = 0; k < (int)im->node->n_output; k++) {
        if (!node_wants(im, k)) continue;
        struct graph_output *out = arena_alloc(im->arena, sizeof *out);
        out->buffer = name_unique(&sub, "y");
        name_put(im->arena, &sub.result, im->node->output[k], out);
    }
    kernel_node(&sub);
    return sub;
}

static bool is_long(const struct import *sub, const struct program *p) {
    int64_t *points = arena_array(sub->arena, (size_t)p->nstmts, sizeof *points), all = 0;
    program_points(p, points);
    for (int s = 0; s < p->nstmts; s++)
        if (points[s] > LOOKED_AT || (all += points[s]) > LOOKED_AT) return true;
    return false;
}

/* Runs what was lowered; the data of each of the program's outputs. NULL after reporting, or where that would take long. */
static struct program *run_alone(struct import *sub, void ***data, bool *done) {
    struct source source;
    struct kernel *kernel;
    const void **known;
    struct program *p =
        kernel_program(sub, kernel_text(sub, "folded"), NULL, &source, &kernel, &known);
    if (!p) return NULL;
    if (is_long(sub, p)) {
        program_free(p);
        *done = false;
        return NULL;
    }
    *data = arena_array(sub->arena, (size_t)p->nbuffers, sizeof **data);
    for (int b = 0; b < p->nbuffers; b++)
        (*data)[b] = p->buffer[b].role == ROLE_OUT
                         ? arena_array(sub->arena, (size_t)p->buffer[b].elements,
                                       type_size(p->buffer[b].type))
                         : (void *)known[b];
    if (program_run(p, *data, NULL, NULL, sub->diags)) return p;
    program_free(p);
    return NULL;
}

static bool take_results(struct import *im, struct import *sub, bool *done) {
    struct program *p = NULL;
    void **data = NULL;
    bool ok = sub->body.n + sub->first.n == 0 || (p = run_alone(sub, &data, done)) || !*done;
    for (int k = 0; ok && *done && k < (int)im->node->n_output; k++) {
        if (!node_wants(im, k)) continue;
        const struct tensor *t = name_find(&sub->value, im->node->output[k]);
        if (!t) continue; /* a result that the operator does not have: missed where it is read */
        ok = node_constant_at(im, k, t->type, t->ndims, t->extent,
                              t->data ? t->data : data[program_buffer(p, t->buffer)]);
    }
    if (p) program_free(p);
    return ok;
}

bool node_fold(struct import *im, const struct op_entry *op, const struct formula *formula, bool *done) {
    struct import sub = alone(im);
    *done = true;
    bool ok = (op ? op->lower(&sub) : formula_lower(&sub, formula)) &&
              node_empties(&sub, (struct text_marks){0});
    if (ok && sub.empty_input >= 0)
        ok = node_fail(im, "input %d is an empty tensor", sub.empty_input);
    ok = ok && take_results(im, &sub, done);
    import_free(&sub);
    return ok;
}
#endif
