/* Operators that kernel files give (--op DOMAIN.NAME=FILE): the first kernel of the file computes
 * the node. Its inputs are the node's in order, but for those that have the name of an attribute:
 * they hold its value. Its sizes come from the shapes of inputs, from integer attributes of their
 * name, or are the kernel's own. Its statements are written with the model's buffers and axes. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "ir/file.h"
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

struct custom {
    const char *file;
    struct kernel *kernel;
};

struct instance { /* the kernel for one node */
    const struct custom *custom;
    struct tensor **given; /* for each of the kernel's items, what its argument is; else NULL */
    struct binding *size;  /* those that have a value */
    struct bindings bindings;
};

bool custom_read(struct import *im, const struct onnx_options *options) {
    for (int i = 0; options && i < options->ncustom; i++) {
        struct custom *c = arena_alloc(im->arena, sizeof *c);
        struct source *source = arena_alloc(im->arena, sizeof *source);
        struct kernel **kernels;
        const char *op = options->custom[i].op;
        c->file = arena_strdup(im->arena, options->custom[i].file);
        *source = (struct source){.file = c->file, .line0 = 1, .col0 = 1};
        source->text = file_read(im->arena, c->file, 16u << 20, &source->length, im->diags);
        if (!source->text) return false;
        int n = kernel_parse(im->arena, source, &kernels, im->diags);
        if (n < 0) return false;
        if (n == 0) return graph_fail(im, "'%s' has no kernel for the operator '%s'", c->file, op);
        if (name_find(&im->custom, op))
            return graph_fail(im, "two kernels are given for the operator '%s'", op);
        c->kernel = kernels[0];
        name_put(im->arena, &im->custom, arena_strdup(im->arena, op), c);
    }
    return true;
}

/* An operator that no node has is a mistake in the name. */
bool custom_all_used(struct import *im, const struct onnx_options *options) {
    for (int i = 0; options && i < options->ncustom; i++)
        if (!name_find(&im->kinds, options->custom[i].op))
            return graph_fail(im,
                              "no node that an output needs is a '%s', for which there is a kernel",
                              name_shown(im->arena, options->custom[i].op));
    return true;
}

/* ---- arguments ---- */

/* The attribute's value as a constant of the type that the kernel's buffer has. NULL after
 * reporting; *there false: the node has no such attribute. */
static struct tensor *attribute_tensor(struct import *im, const struct kernel_buffer *f,
                                       bool *there) {
    const Onnx__AttributeProto *a = attribute_find(im, f->name);
    *there = a != NULL;
    if (!a) return NULL;
    bool floats = a->has_f || a->n_floats, list = a->n_floats || a->n_ints;
    int64_t n = a->n_floats ? (int64_t)a->n_floats : a->n_ints ? (int64_t)a->n_ints : 1;
    if (!floats && !a->has_i && !a->n_ints) {
        node_fail(im, "the attribute '%s' is neither numbers nor a number, as its kernel reads it",
                  f->name);
        return NULL;
    }
    char *data = arena_array(im->arena, (size_t)n, type_size(f->type));
    for (int64_t i = 0; i < n; i++) {
        union value v;
        if (floats)
            v.f = a->n_floats ? (double)a->floats[i] : (double)a->f;
        else
            v.i = a->n_ints ? a->ints[i] : a->i;
        type_store(f->type, data + (size_t)i * type_size(f->type),
                   type_convert(f->type, floats ? TYPE_F64 : TYPE_I64, v));
    }
    return tensor_constant(im, f->name, "value", f->type, list, &n, data);
}

static bool bind_size(struct import *im, struct instance *x, const char *name, int64_t value) {
    for (int k = 0; k < x->bindings.n; k++) {
        if (strcmp(x->size[k].name, name) != 0) continue;
        return x->size[k].value == value ||
               node_fail(im, "its kernel's size '%s' would be %" PRId64 " and %" PRId64, name,
                         x->size[k].value, value);
    }
    x->size[x->bindings.n++] = (struct binding){name, value};
    return true;
}

/* Sizes that are an extent of the input alone. */
static bool sizes_of_shape(struct import *im, struct instance *x, const struct kernel_buffer *f,
                           const struct tensor *t) {
    if (f->ndims != t->ndims)
        return node_fail(im, "the input '%s' of its kernel has %d dimensions, but is given %s",
                         f->name, f->ndims, shape_text(im->arena, t->ndims, t->extent));
    for (int d = 0; d < f->ndims; d++)
        if (f->extent[d]->kind == EXPR_NAME &&
            kernel_param_index(x->custom->kernel, f->extent[d]->name) >= 0 &&
            !bind_size(im, x, f->extent[d]->name, t->extent[d]))
            return false;
    return true;
}

static bool read_input(struct import *im, struct instance *x, int item, int *next) {
    const struct kernel_buffer *f = x->custom->kernel->item[item].buffer;
    bool there;
    struct tensor *t = attribute_tensor(im, f, &there);
    if (there && !t) return false;
    if (!t) t = node_input(im, (*next)++);
    if (!t)
        return node_fail(im, "'%s' of its kernel is neither an input of the node nor an attribute",
                         f->name);
    x->given[item] = t;
    return sizes_of_shape(im, x, f, t);
}

static bool read_arguments(struct import *im, struct instance *x) {
    const struct kernel *k = x->custom->kernel;
    int next = 0, results = 0;
    x->given = arena_array(im->arena, (size_t)k->nitems + 1, sizeof *x->given);
    x->size = arena_array(im->arena, (size_t)k->nparams + 1, sizeof *x->size);
    for (int i = 0; i < k->nitems; i++) {
        if (k->item[i].kind != KITEM_BUFFER) continue;
        enum role role = k->item[i].buffer->role;
        if (role == ROLE_INOUT)
            return node_fail(im, "'%s' of its kernel is inout; an operator has inputs and results",
                             k->item[i].buffer->name);
        results += role == ROLE_OUT;
        if ((role == ROLE_IN || role == ROLE_CONST) && !read_input(im, x, i, &next)) return false;
    }
    if ((size_t)next < im->node->n_input || (size_t)results < im->node->n_output)
        return node_fail(im, "it has %zu inputs and %zu results, its kernel '%s' %d and %d",
                         im->node->n_input, im->node->n_output, k->name, next, results);
    for (int p = 0; p < k->nparams; p++) {
        int64_t value = INT64_MIN;
        if (!attribute_int(im, k->param[p].name, &value)) return false;
        if (value != INT64_MIN && !bind_size(im, x, k->param[p].name, value)) return false;
    }
    x->bindings = (struct bindings){.at = x->size, .n = x->bindings.n};
    return true;
}

/* ---- the statements ---- */

static bool input_fits(struct import *im, const struct buffer *f, const struct tensor *t) {
    bool same = f->type == t->type && f->ndims == t->ndims;
    for (int d = 0; same && d < f->ndims; d++) same = f->extent[d] == t->extent[d];
    return same || node_fail(im, "'%s' of its kernel is %s%s, but is given %s%s", f->name,
                             type_name(f->type), shape_text(im->arena, f->ndims, f->extent),
                             type_name(t->type), shape_text(im->arena, t->ndims, t->extent));
}

/* Each argument is a tensor of the model, under that tensor's name. */
static bool name_arguments(struct import *im, const struct instance *x, struct program *p) {
    const struct kernel *k = x->custom->kernel;
    const char *first[MAX_DIMS];
    int *buffer = arena_array(im->arena, (size_t)k->nitems + 1, sizeof *buffer), results = 0;
    for (int d = 0; d < MAX_DIMS; d++) first[d] = "0";
    for (int i = 0; i < k->nitems; i++) {
        if (k->item[i].kind != KITEM_BUFFER || k->item[i].buffer->role == ROLE_TEMP) continue;
        buffer[i] = program_buffer(p, k->item[i].buffer->name);
        const struct buffer *f = &p->buffer[buffer[i]];
        if (f->role == ROLE_OUT)
            x->given[i] = node_result_at(im, results++, f->type, f->ndims, f->extent);
        else if (!input_fits(im, f, x->given[i]))
            return false;
        if (!x->given[i]) return false;
        tensor_element(im, x->given[i], first); /* declares a constant */
    }
    for (int i = 0; i < k->nitems; i++)
        if (x->given[i]) p->buffer[buffer[i]].name = x->given[i]->buffer;
    return true;
}

/* What the kernel has for itself gets names that nothing else has. */
static void name_states(struct import *im, struct program *p, const struct item *item, int n) {
    for (int i = 0; i < n; i++) {
        const struct recur *r = item[i].recur;
        if (item[i].kind != ITEM_RECUR) continue;
        for (int k = 0; k < r->nstates; k++) {
            struct buffer *now = &p->buffer[r->state[k].current];
            now->name = name_unique(im, now->name);
            p->buffer[r->state[k].next].name = arena_printf(&p->arena, "%s'", now->name);
        }
        name_states(im, p, r->item, r->nitems);
    }
}

static void name_own(struct import *im, struct program *p) {
    for (int b = 0; b < p->nbuffers; b++) {
        struct buffer *f = &p->buffer[b];
        if (f->role != ROLE_TEMP) continue;
        f->name = name_unique(im, f->name);
        if (im->now) name_put(im->arena, &im->made_by, f->name, im->now);
    }
    for (int a = 0; a < p->naxes; a++) {
        struct axis *axis = &p->axis[a];
        axis->name = axis->sequential
                         ? name_unique(im, axis->name)
                         : axis_for(im, arena_strdup(im->arena, axis->name), axis->extent);
    }
    name_states(im, p, p->item, p->nitems);
}

bool custom_lower(struct import *im, const struct custom *c) {
    struct instance x = {.custom = c};
    if (!read_arguments(im, &x)) return false;
    struct program *p = program_bind(c->kernel, &x.bindings, NULL, im->diags);
    if (!p) return false;
    bool ok = program_verify(p, im->diags) && name_arguments(im, &x, p);
    if (ok) {
        name_own(im, p);
        program_print_body(p, im->ahead ? &im->first : &im->body);
    }
    program_free(p);
    return ok;
}
#endif
