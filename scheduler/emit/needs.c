/* The fields of a state that an instruction needs, as expressions of the loops around it. */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct reading {
    struct work *w;
    const struct instr *in;
    const struct issue_node *n;
};

static bool known_name(void *user, const char *name, const char *field, double *out) {
    const struct reading *r = user;
    int64_t v;
    if (field) return false;
    for (int o = 0; o < r->in->noperands; o++) {
        const struct operand_layout *l = &r->in->operand[o].layout[r->n->arg[o].layout];
        if (l->let_name && !strcmp(l->let_name, name)) return *out = (double)l->let_value, true;
    }
    int p = kernel_param_index(r->in->semantics, name);
    if (p >= 0 && r->in->semantics->param[p].value &&
        expr_integer(r->in->semantics->param[p].value, &r->w->m->params, &v))
        return *out = (double)v, true;
    if (p >= 0) return false;
    for (int i = 0; i < r->w->m->nparams; i++)
        if (!strcmp(r->w->m->param[i].name, name))
            return *out = (double)r->w->m->param[i].value, true;
    return false;
}

static bool known_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                       double *out) {
    const struct reading *r = user;
    (void)env;
    for (int o = 0; o < r->in->noperands && call->nargs == 1; o++) {
        enum type t = r->in->operand[o].type;
        if (call->arg[0]->kind != MEXPR_NAME ||
            strcmp(call->arg[0]->name, r->in->operand[o].buffer))
            continue;
        if (r->n->arg[o].place >= 0) return false;
        union value v = r->n->arg[o].imm;
        uint64_t bits = 0;
        if (!strcmp(call->name, "value")) return *out = type_is_float(t) ? v.f : (double)v.i, true;
        if (strcmp(call->name, "bits") || type_size(t) > 4) return false;
        type_store(t, &bits, v);
        return *out = (double)bits, true;
    }
    return false;
}

static const struct sx *named(const struct reading *r, const char *name) {
    int flag = 0;
    for (int i = 0; i < r->in->nranged; i++)
        if (!strcmp(r->in->semantics->param[r->in->ranged[i]].name, name)) return r->n->size[i];
    for (int i = 0; i < r->in->nstride_names; i++)
        if (!strcmp(r->in->stride_name[i], name)) return r->n->stride[i];
    for (int o = 0; o < r->in->noperands; o++) {
        if (!r->in->operand[o].accumulate) continue;
        if (!strcmp(r->in->operand[o].accumulate, name)) return r->n->flag[flag];
        flag++;
    }
    return NULL;
}

/* NULL: more than sums, products, quotients, min and max of sizes, strides and flags. The verifier
 * asks for exact quotients; here they are rounded down. */
static const struct sx *value_of(const struct reading *r, const struct mexpr *e) {
    static const struct {
        const char *text;
        enum sx_op op;
    } ops[] = {{"+", SX_ADD}, {"-", SX_SUB},   {"*", SX_MUL},   {"/", SX_DIV},
               {"%", SX_MOD}, {"min", SX_MIN}, {"max", SX_MAX}, {"==", SX_EQ},
               {"!=", SX_NE}, {"<", SX_LT},    {"<=", SX_LE}};
    struct mexpr_env env = {known_name, known_call, (void *)r};
    struct arena *a = &r->w->s->arena;
    int64_t v;
    if (mexpr_integer(e, &env, &v, NULL)) return sx_const(a, v);
    if (e->kind == MEXPR_NAME) return named(r, e->name);
    const char *op = e->kind == MEXPR_OP ? e->op : e->kind == MEXPR_CALL ? e->name : "";
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        if (strcmp(ops[k].text, op) || e->nargs != 2) continue;
        const struct sx *x = value_of(r, e->arg[0]), *y = value_of(r, e->arg[1]);
        return x && y ? sx_make(a, ops[k].op, x, y) : NULL;
    }
    return NULL;
}

bool need_fields(struct work *w, const struct issue_node *n, const struct need *need,
                 const struct sx **out) {
    struct reading r = {w, &w->m->instr[n->instr], n};
    for (int f = 0; f < need->nvalues; f++)
        if (!(out[f] = value_of(&r, need->value[f]))) return false;
    return true;
}
