/* What instructions need of states, as expressions of the loops around; and which instructions take
 * an operand that another one left in the unit. */
#include "scheduler/emit/configure_int.h"
#include "ir/kernel.h"
#include <math.h>
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

int need_operand(const struct instr *in, const struct need *need) {
    for (int o = 0; need->of && o < in->noperands; o++)
        if (!strcmp(in->operand[o].buffer, need->of)) return o;
    return -1;
}

/* ---- who sets a state ---- */

static bool orders(const struct machine *m, int a, int b) {
    return edge_find(m, a, -1, b).kind == EDGE_FREE || graph_distance(m, a, b, NULL) > 0;
}

int state_setter(const struct machine *m, int state, int queue) {
    for (int k = 0; k < m->nconfigures; k++) {
        const struct configure *c = &m->configure[k];
        if (c->nsets != 1 || c->sets[0] != state) continue;
        if (c->at_launch || c->at_program) return k;
        if (c->queue >= 0 && orders(m, c->queue, queue) && orders(m, queue, c->queue)) return k;
    }
    return -1;
}

const char *needs_why(const struct machine *m, const struct instr *in) {
    for (int k = 0; k < in->nneeds; k++) {
        const struct need *n = &in->need[k];
        if (state_from_addresses(m, n->state)) continue;
        if (n->nvalues > MAX_FIELDS) return "a state that it needs has too many fields";
        if (in->queue >= 0 && state_setter(m, n->state, in->queue) < 0)
            return "no configure sets a state that it needs, alone and in order with it";
    }
    return NULL;
}

/* ---- operands that remain ---- */

static bool same_semantics(const struct instr *a, const struct instr *b) {
    struct text s = {0}, t = {0};
    kernel_print(a->semantics, &s);
    kernel_print(b->semantics, &t);
    bool same = s.at && t.at && !strcmp(s.at, t.at);
    text_free(&s);
    text_free(&t);
    return same;
}

static bool may_be_in(const struct operand *o, int memory) {
    for (int i = 0; i < o->nmemories; i++)
        if (o->memory[i] == memory) return true;
    return false;
}

/* Equal but for the memory of one operand, which `first` leaves there; the operand, or -1. */
static int remaining_operand(const struct instr *first, const struct instr *again) {
    int found = -1;
    if (first == again || first->queue != again->queue || first->is_move || again->is_move ||
        first->noperands != again->noperands || first->nneeds != again->nneeds)
        return -1;
    for (int o = 0; o < first->noperands; o++) {
        const struct operand *a = &first->operand[o], *b = &again->operand[o];
        if (a->nlayouts != b->nlayouts) return -1;
        if (a->nmemories == b->nmemories &&
            !memcmp(a->memory, b->memory, (size_t)a->nmemories * sizeof *a->memory))
            continue;
        if (found >= 0 || a->also < 0 || b->nmemories != 1 || b->memory[0] != a->also) return -1;
        found = o;
    }
    return found >= 0 && same_semantics(first, again) ? found : -1;
}

int remain_first(const struct machine *m, int again) {
    for (int k = 0; k < m->ninstrs; k++)
        if (remaining_operand(&m->instr[k], &m->instr[again]) >= 0) return k;
    return -1;
}

int remain_again(const struct machine *m, int first, int *operand) {
    for (int k = 0; k < m->ninstrs; k++) {
        *operand = remaining_operand(&m->instr[first], &m->instr[k]);
        if (*operand >= 0 &&
            may_be_in(&m->instr[k].operand[*operand], m->instr[first].operand[*operand].also))
            return k;
    }
    return -1;
}
