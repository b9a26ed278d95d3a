#include "ir/print.h"

#include <math.h>
#include <string.h>

void print_float(double x, enum type t, struct text *out) {
    char s[40];
    if (isnan(x) || isinf(x)) {
        text_printf(out, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, x);
        double y = strtod(s, NULL);
        if (t == TYPE_F32 ? (float)y == (float)x : y == x) break;
    }
    text_printf(out, "%s%s", s, strpbrk(s, ".e") ? "" : ".0");
}

static void print_expr(const struct expr *e, int precedence, struct text *out);

static void print_list(struct expr *const *e, int n, struct text *out) {
    for (int k = 0; k < n; k++) {
        if (k > 0) text_printf(out, ", ");
        print_expr(e[k], 0, out);
    }
}

static void print_access(const struct expr *e, struct text *out) {
    text_printf(out, "%s%s[", e->name, e->next ? "'" : "");
    print_list(e->index, e->nindex, out);
    if (e->fill) {
        text_printf(out, " else ");
        print_expr(e->fill, 0, out);
    }
    text_printf(out, "]");
}

static void print_infix(const struct expr *e, int precedence, struct text *out) {
    int own = op_info[e->op].precedence;
    if (own < precedence) text_printf(out, "(");
    print_expr(e->arg[0], own, out);
    text_printf(out, " %s ", op_info[e->op].spelling);
    print_expr(e->arg[1], own + 1, out);
    if (own < precedence) text_printf(out, ")");
}

/* A minus before a number would read as a literal. */
static void print_prefix(const struct expr *e, struct text *out) {
    bool number = e->arg[0]->kind == EXPR_INT || e->arg[0]->kind == EXPR_FLOAT;
    bool bracket = e->op == OP_NEG && number;
    text_printf(out, "%s%s", op_info[e->op].spelling, bracket ? "(" : "");
    print_expr(e->arg[0], op_info[e->op].precedence, out);
    if (bracket) text_printf(out, ")");
}

static void print_op(const struct expr *e, int precedence, struct text *out) {
    switch (op_info[e->op].notation) {
    case NOTE_INFIX:
        print_infix(e, precedence, out);
        return;
    case NOTE_PREFIX:
        print_prefix(e, out);
        return;
    default:
        break;
    }
    text_printf(out, "%s(", e->op == OP_CAST ? type_name(e->type) : op_info[e->op].spelling);
    print_list(e->arg, op_info[e->op].arity, out);
    text_printf(out, ")");
}

static void print_expr(const struct expr *e, int precedence, struct text *out) {
    switch (e->kind) {
    case EXPR_INT:
        if (e->i < 0 && e->f > 0)
            text_printf(out, "%" PRIu64, (uint64_t)e->i);
        else
            text_printf(out, "%" PRId64, e->i);
        return;
    case EXPR_FLOAT:
        print_float(e->f, TYPE_F64, out);
        return;
    case EXPR_NAME:
        text_printf(out, "%s", e->name);
        return;
    case EXPR_READ:
        print_access(e, out);
        return;
    case EXPR_OP:
        print_op(e, precedence, out);
        return;
    }
}

static void print_buffer(const struct kernel_buffer *b, struct text *out) {
    text_printf(out, "%s %s: %s[", role_name[b->role], b->name, type_name(b->type));
    print_list(b->extent, b->ndims, out);
    text_printf(out, "]");
    if (b->from) text_printf(out, " from %s", b->from);
    if (b->to) text_printf(out, " to %s", b->to);
}

static void print_names(const char *const *name, int n, struct text *out) {
    text_printf(out, "(");
    for (int k = 0; k < n; k++) text_printf(out, "%s%s", k ? ", " : "", name[k]);
    text_printf(out, ")");
}

static void print_stmt(const struct kernel_stmt *s, struct text *out) {
    print_access(s->dst, out);
    text_printf(out, " %s ", combiner_spelling[s->combine]);
    print_expr(s->value, 0, out);
    for (int k = 0; k < s->nwhere; k++) {
        text_printf(out, k ? " and " : " where ");
        print_expr(s->where[k], 0, out);
    }
}

static void print_items(const struct kernel_item *item, int n, int indent, struct text *out);

static void print_recur(const struct kernel_recur *r, int indent, struct text *out) {
    text_printf(out, "recur %s: ", r->axis);
    print_expr(r->length, 0, out);
    if (r->first) {
        text_printf(out, " from ");
        print_expr(r->first, 0, out);
    }
    if (r->reverse) text_printf(out, " reverse");
    for (int k = 0; k < r->nstates; k++) {
        text_printf(out, " ");
        print_buffer(r->state[k], out);
    }
    text_printf(out, " {\n");
    print_items(r->item, r->nitems, indent + 2, out);
    text_printf(out, "%*s}", indent, "");
}

static void print_item(const struct kernel_item *item, int indent, struct text *out) {
    switch (item->kind) {
    case KITEM_BUFFER:
        print_buffer(item->buffer, out);
        return;
    case KITEM_AXIS:
        text_printf(out, "%s %s: ", item->axis->sequential ? "seq" : "axes", item->axis->name);
        print_expr(item->axis->extent, 0, out);
        return;
    case KITEM_STMT:
        print_stmt(item->stmt, out);
        return;
    case KITEM_RECUR:
        print_recur(item->recur, indent, out);
        return;
    case KITEM_CALL:
        text_printf(out, "call %s", item->call->function);
        print_names(item->call->read, item->call->nreads, out);
        text_printf(out, " -> ");
        print_names(item->call->write, item->call->nwrites, out);
        return;
    }
}

static void print_items(const struct kernel_item *item, int n, int indent, struct text *out) {
    for (int k = 0; k < n; k++) {
        text_printf(out, "%*s", indent, "");
        print_item(&item[k], indent, out);
        text_printf(out, "\n");
    }
}

static void print_param(const struct kernel_param *q, struct text *out) {
    text_printf(out, "%s", q->name);
    if (q->value || q->lo) text_printf(out, "=");
    if (q->value) print_expr(q->value, 0, out);
    if (!q->lo) return;
    print_expr(q->lo, 0, out);
    text_printf(out, "..");
    print_expr(q->hi, 0, out);
    if (!q->step) return;
    text_printf(out, " step ");
    print_expr(q->step, 0, out);
}

void kernel_print(const struct kernel *k, struct text *out) {
    text_printf(out, "kernel %s(", k->name);
    for (int i = 0; i < k->nparams; i++) {
        if (i > 0) text_printf(out, ", ");
        print_param(&k->param[i], out);
    }
    text_printf(out, ") {\n");
    print_items(k->item, k->nitems, 2, out);
    text_printf(out, "}\n");
}
