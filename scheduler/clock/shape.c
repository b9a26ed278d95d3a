/* Operands of an instruction for one choice of its sizes and strides, and what the instruction
 * costs then. The last few shapes of each instruction are kept. */
#include "scheduler/clock/clock_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t far = (int64_t)1 << 40;

/* ---- names in cost and stride expressions ---- */
struct names {
    const struct machine *machine;
    const struct instr *instr;
    const int64_t *size, *stride;
    const int *alternative; /* or NULL */
};

static bool find(const struct names *n, const char *name, double *out) {
    const struct instr *in = n->instr;
    for (int i = 0; i < in->nranged; i++)
        if (strcmp(name, in->semantics->param[in->ranged[i]].name) == 0)
            return *out = (double)n->size[i], true;
    for (int i = 0; i < in->nstride_names && n->stride; i++)
        if (strcmp(name, in->stride_name[i]) == 0) return *out = (double)n->stride[i], true;
    for (int o = 0; o < in->noperands && n->alternative; o++) {
        const struct operand_layout *l = &in->operand[o].layout[n->alternative[o]];
        if (l->let_name && strcmp(name, l->let_name) == 0) return *out = (double)l->let_value, true;
    }
    for (int i = 0; i < n->machine->nparams; i++)
        if (strcmp(name, n->machine->param[i].name) == 0)
            return *out = (double)n->machine->param[i].value, true;
    return false;
}

/* A parameter of the semantics with a value of its own (W=T) is visible too. */
static bool name_value(void *user, const char *name, const char *field, double *out) {
    const struct names *n = user;
    if (field) return false;
    if (find(n, name, out)) return true;
    if (!n->instr->semantics) return false;
    int p = kernel_param_index(n->instr->semantics, name);
    int64_t v;
    if (p < 0 || !n->instr->semantics->param[p].value) return false;
    if (!expr_integer(n->instr->semantics->param[p].value, &n->machine->params, &v)) return false;
    return *out = (double)v, true;
}

static bool evaluate(struct names *n, const struct mexpr *x, double *out) {
    struct mexpr_env env = {.name = name_value, .user = n};
    return mexpr_eval(x, &env, out, NULL) && isfinite(*out);
}

static bool evaluate_cost(struct engine *e, const struct node *node, struct names *n,
                          const struct mexpr *x, const char *what, double *out) {
    if (evaluate(n, x, out) && *out >= 0) return true;
    return engine_error(e, node, "the %s of '%s' has no value at these sizes", what, n->instr->id);
}

struct issue_names {
    struct names names;
    const struct issue_node *issue;
};

static bool issue_name(void *user, const char *name, const char *field, double *out) {
    struct issue_names *n = user;
    return name_value(&n->names, name, field, out);
}

static bool imm_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                     double *out) {
    const struct issue_names *n = user;
    const struct instr *in = n->names.instr;
    (void)env;
    for (int o = 0; o < in->noperands && call->nargs == 1; o++) {
        enum type t = in->operand[o].type;
        if (call->arg[0]->kind != MEXPR_NAME || strcmp(call->arg[0]->name, in->operand[o].buffer) ||
            n->issue->arg[o].place >= 0)
            continue;
        union value v = n->issue->arg[o].imm;
        uint64_t bits = 0;
        type_store(t, &bits, v);
        if (!strcmp(call->name, "value")) return *out = type_is_float(t) ? v.f : (double)v.i, true;
        if (!strcmp(call->name, "bits")) return *out = (double)bits, type_size(t) <= 4;
    }
    return false;
}

bool shape_number(struct engine *e, const struct executed *x, const struct shape *s,
                  const struct mexpr *expr, int64_t *out) {
    const struct issue_node *i = x->node->issue;
    struct issue_names n = {
        {e->machine, &e->machine->instr[i->instr], s->size, s->stride, s->alternative}, i};
    struct mexpr_env env = {.name = issue_name, .call = imm_call, .user = &n};
    return mexpr_integer(expr, &env, out, NULL);
}

void configure_cost(struct engine *e, const struct configure *c, double *overhead, double *interval,
                    double *latency) {
    static const struct instr none;
    struct names n = {e->machine, &none, NULL, NULL, NULL};
    if (!evaluate(&n, c->overhead, overhead)) *overhead = 0;
    if (!evaluate(&n, c->interval, interval)) *interval = 0;
    if (!evaluate(&n, c->latency, latency)) *latency = 0;
}

double shape_interval(struct engine *e, int instr, const int64_t *size) {
    struct names n = {e->machine, &e->machine->instr[instr], size, NULL, NULL};
    double v;
    return evaluate(&n, n.instr->interval, &v) ? v : 0;
}

/* ---- which elements an operand covers ---- */
static bool strides_of(struct engine *e, const struct node *node, struct names *n, int o,
                       const struct operand_layout *l, int64_t *stride) {
    for (int i = 0; i < l->nstrides; i++) {
        double v;
        if (!evaluate(n, l->stride[i], &v) || fabs(v) > (double)far)
            return engine_error(e, node, "a stride of operand '%s' of '%s' has no sensible value",
                                n->instr->operand[o].buffer, n->instr->id);
        stride[i] = (int64_t)v;
    }
    return true;
}

static bool stretch(struct reach *r, int64_t extent, int64_t stride) {
    int64_t last;
    if (__builtin_mul_overflow(extent - 1, stride, &last) || last > far || last < -far)
        return false;
    if (last < 0)
        r->lo += last;
    else
        r->hi += last;
    return true;
}

/* Of each dimension, how much is touched: what masks leave alone, which are axes that end early,
 * need not be there. */
static void touched(const struct program *p, int buffer, int64_t *extent) {
    const struct buffer *b = &p->buffer[buffer];
    for (int d = 0; d < b->ndims; d++) {
        int64_t end = 1, lo, hi;
        for (int s = 0; s < p->nstmts; s++)
            for (int r = -1; r < p->stmt[s].nreads; r++) {
                const struct access *acc = r < 0 ? &p->stmt[s].dst : &p->stmt[s].read[r];
                if (acc->buffer != buffer) continue;
                access_range(p, &p->stmt[s], acc, d, &lo, &hi);
                if (hi >= end) end = hi + 1;
            }
        extent[d] = end < b->extent[d] ? end : b->extent[d];
    }
}

static bool reach_of(const struct operand_layout *l, const struct program *p, const int64_t *stride,
                     struct reach *r) {
    const struct buffer *b = &p->buffer[r->buffer];
    r->lo = r->hi = 0;
    r->elements = b->elements;
    if (b->elements == 0) {
        r->hi = -1;
        return true;
    }
    if (b->elements > far) return false;
    int64_t extent[SIM_SIZES + MAX_DIMS] = {0}, dense = 1;
    if (!l->map) {
        touched(p, r->buffer, extent);
        for (int d = b->ndims - 1; d >= 0; dense *= b->extent[d--])
            if (!stretch(r, extent[d], l->nstrides ? stride[d] : dense)) return false;
        return true;
    }
    if (!l->nstrides) {
        r->hi = layout_span(l->map, b->ndims, b->extent, NULL) - 1;
        return true;
    }
    if (l->map->nplaces > SIM_SIZES + MAX_DIMS) return false;
    layout_extents(l->map, b->extent, extent);
    for (int i = 0, k = 0; i < l->map->nplaces; i++)
        if (!l->map->place[i].unit && !stretch(r, extent[i], stride[k++])) return false;
    return true;
}

/* ---- shapes ---- */
static void shape_clear(struct shape *s) {
    for (int o = 0; o < SIM_OPERANDS; o++) {
        free(s->reach[o].offset);
        free(s->reach[o].instance);
        free(s->reach[o].data);
    }
    free(s->by_buffer);
    if (s->program) program_free(s->program);
    memset(s, 0, sizeof *s);
}

static bool same_shape(const struct shape *s, const struct instr *in, const struct issue_node *i,
                       const struct executed *x) {
    if (!s->valid) return false;
    for (int k = 0; k < in->nranged; k++)
        if (s->size[k] != x->size[k]) return false;
    for (int k = 0; k < in->nstride_names; k++)
        if (s->stride[k] != x->stride[k]) return false;
    for (int o = 0; o < in->noperands; o++)
        if (s->alternative[o] != i->arg[o].layout) return false;
    return true;
}

static bool shape_fill(struct engine *e, const struct node *node, const struct executed *x,
                       struct shape *s) {
    const struct issue_node *i = node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    s->program = instr_bind(e->machine, in, x->size, e->diags);
    if (!s->program) return engine_error(e, node, "'%s' cannot have these sizes", in->id);
    for (int o = 0; o < in->noperands; o++) s->alternative[o] = i->arg[o].layout;
    memcpy(s->size, x->size, sizeof s->size);
    memcpy(s->stride, x->stride, sizeof s->stride);
    struct names n = {e->machine, in, s->size, s->stride, s->alternative};
    for (int o = 0; o < in->noperands; o++) {
        const struct operand_layout *l = &in->operand[o].layout[s->alternative[o]];
        int64_t stride[SIM_SIZES + MAX_DIMS];
        s->reach[o].buffer = program_buffer(s->program, in->operand[o].buffer);
        if (l->nstrides > SIM_SIZES + MAX_DIMS || !strides_of(e, node, &n, o, l, stride))
            return false;
        if (!reach_of(l, s->program, stride, &s->reach[o]))
            return engine_error(e, node, "operand '%s' of '%s' is too large", in->operand[o].buffer,
                                in->id);
        if (!swizzle_parse(l->swizzle, &s->reach[o].swizzle))
            return engine_error(e, node, "the swizzle of operand '%s' of '%s' is none",
                                in->operand[o].buffer, in->id);
    }
    return evaluate_cost(e, node, &n, in->latency, "latency", &s->latency) &&
           evaluate_cost(e, node, &n, in->interval, "interval", &s->interval) &&
           evaluate_cost(e, node, &n, in->overhead, "overhead", &s->overhead) &&
           evaluate_cost(e, node, &n, in->energy, "energy", &s->energy);
}

const struct shape *shape_of(struct engine *e, const struct node *node, const struct executed *x) {
    int instr = node->issue->instr;
    struct shape *all = &e->shape[instr * SIM_SHAPES];
    for (int k = 0; k < SIM_SHAPES; k++)
        if (same_shape(&all[k], &e->machine->instr[instr], node->issue, x)) return &all[k];
    struct shape *s = &all[e->shape_next[instr]];
    e->shape_next[instr] = (e->shape_next[instr] + 1) % SIM_SHAPES;
    shape_clear(s);
    s->valid = shape_fill(e, node, x, s);
    return s->valid ? s : NULL;
}

bool shape_strides(struct engine *e, const struct node *node, const struct shape *s, int o,
                   int64_t *stride) {
    const struct instr *in = &e->machine->instr[node->issue->instr];
    struct names n = {e->machine, in, s->size, s->stride, s->alternative};
    return strides_of(e, node, &n, o, &in->operand[o].layout[s->alternative[o]], stride);
}

void shapes_close(struct engine *e) {
    for (int k = 0; k < e->machine->ninstrs * SIM_SHAPES; k++) shape_clear(&e->shape[k]);
}
