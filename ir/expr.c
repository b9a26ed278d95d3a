#include "ir/kernel.h"

#include <math.h>
#include <string.h>

static bool name_value(const char *name, const struct bindings *b, int64_t *out) {
    for (; b; b = b->outer)
        for (int k = 0; k < b->n; k++)
            if (strcmp(b->at[k].name, name) == 0) {
                *out = b->at[k].value;
                return true;
            }
    return false;
}

static bool op_integer(enum opcode op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case OP_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case OP_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case OP_NEG:
        return !__builtin_sub_overflow((int64_t)0, a, out);
    case OP_MIN:
        *out = a < b ? a : b;
        return true;
    case OP_MAX:
        *out = a > b ? a : b;
        return true;
    case OP_DIV:
    case OP_MOD:
        if (b == 0 || (a == INT64_MIN && b == -1)) return false;
        *out = op == OP_DIV ? a / b : a % b;
        return true;
    default:
        return false;
    }
}

bool expr_integer(const struct expr *e, const struct bindings *names, int64_t *out) {
    int64_t arg[2] = {0, 0};
    switch (e->kind) {
    case EXPR_INT:
        *out = e->i;
        return e->i >= 0 || e->f < 0;
    case EXPR_NAME:
        return name_value(e->name, names, out);
    case EXPR_OP:
        break;
    default:
        return false;
    }
    if (op_info[e->op].arity > 2) return false;
    for (int k = 0; k < op_info[e->op].arity; k++)
        if (!expr_integer(e->arg[k], names, &arg[k])) return false;
    return op_integer(e->op, arg[0], arg[1], out);
}

static bool float_equal(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static bool expr_equal(const struct expr *, const struct expr *);

static bool list_equal(struct expr *const *a, int na, struct expr *const *b, int nb) {
    if (na != nb) return false;
    for (int k = 0; k < na; k++)
        if (!expr_equal(a[k], b[k])) return false;
    return true;
}

static bool expr_equal(const struct expr *a, const struct expr *b) {
    if (!a || !b) return a == b;
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case EXPR_INT:
        return a->i == b->i && float_equal(a->f, b->f);
    case EXPR_FLOAT:
        return float_equal(a->f, b->f);
    case EXPR_NAME:
        return strcmp(a->name, b->name) == 0;
    case EXPR_READ:
        return strcmp(a->name, b->name) == 0 && a->next == b->next &&
               list_equal(a->index, a->nindex, b->index, b->nindex) && expr_equal(a->fill, b->fill);
    case EXPR_OP:
        break;
    }
    if (a->op != b->op || (a->op == OP_CAST && a->type != b->type)) return false;
    return list_equal(a->arg, op_info[a->op].arity, b->arg, op_info[b->op].arity);
}

static bool text_equal(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool names_equal(const char **a, int na, const char **b, int nb) {
    if (na != nb) return false;
    for (int k = 0; k < na; k++)
        if (strcmp(a[k], b[k]) != 0) return false;
    return true;
}

static bool buffer_equal(const struct kernel_buffer *a, const struct kernel_buffer *b) {
    return text_equal(a->name, b->name) && a->role == b->role && a->type == b->type &&
           text_equal(a->from, b->from) && text_equal(a->to, b->to) &&
           list_equal(a->extent, a->ndims, b->extent, b->ndims);
}

static bool items_equal(const struct kernel_item *a, int na, const struct kernel_item *b, int nb);

static bool recur_equal(const struct kernel_recur *a, const struct kernel_recur *b) {
    if (strcmp(a->axis, b->axis) != 0 || a->reverse != b->reverse || a->nstates != b->nstates)
        return false;
    for (int k = 0; k < a->nstates; k++)
        if (!buffer_equal(a->state[k], b->state[k])) return false;
    bool same = a->first && b->first ? expr_equal(a->first, b->first) : a->first == b->first;
    return same && expr_equal(a->length, b->length) &&
           items_equal(a->item, a->nitems, b->item, b->nitems);
}

static bool item_equal(const struct kernel_item *a, const struct kernel_item *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case KITEM_BUFFER:
        return buffer_equal(a->buffer, b->buffer);
    case KITEM_AXIS:
        return strcmp(a->axis->name, b->axis->name) == 0 &&
               a->axis->sequential == b->axis->sequential &&
               expr_equal(a->axis->extent, b->axis->extent);
    case KITEM_STMT:
        return a->stmt->combine == b->stmt->combine && expr_equal(a->stmt->dst, b->stmt->dst) &&
               expr_equal(a->stmt->value, b->stmt->value) &&
               list_equal(a->stmt->where, a->stmt->nwhere, b->stmt->where, b->stmt->nwhere);
    case KITEM_RECUR:
        return recur_equal(a->recur, b->recur);
    case KITEM_CALL:
        return strcmp(a->call->function, b->call->function) == 0 &&
               names_equal(a->call->read, a->call->nreads, b->call->read, b->call->nreads) &&
               names_equal(a->call->write, a->call->nwrites, b->call->write, b->call->nwrites);
    }
    return false;
}

static bool items_equal(const struct kernel_item *a, int na, const struct kernel_item *b, int nb) {
    if (na != nb) return false;
    for (int k = 0; k < na; k++)
        if (!item_equal(&a[k], &b[k])) return false;
    return true;
}

bool kernel_equal(const struct kernel *a, const struct kernel *b) {
    if (strcmp(a->name, b->name) != 0 || a->nparams != b->nparams) return false;
    for (int k = 0; k < a->nparams; k++) {
        const struct kernel_param *x = &a->param[k], *y = &b->param[k];
        if (strcmp(x->name, y->name) != 0 || !expr_equal(x->value, y->value)) return false;
        if (!expr_equal(x->lo, y->lo) || !expr_equal(x->hi, y->hi) || !expr_equal(x->step, y->step))
            return false;
    }
    return items_equal(a->item, a->nitems, b->item, b->nitems);
}
