#include "backends/c/c_int.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_EXTRAS = 32 };

/* One issue on its way into a call of its emit function. */
struct issue {
    struct cgen *g;
    const struct issue_node *node;
    struct site *site;
    const struct emit *emit;
    const struct mexpr *extra[MAX_EXTRAS]; /* expressions that are parameters */
    int nextras;
    struct c_handle handle[MAX_HANDLES];
    int nhandles;
};

static struct known known_value(struct cgen *g, const struct sx *e) {
    struct known k = {false, 0};
    k.is = c_known(g, e, &k.value);
    return k;
}

static void site_fill(struct cgen *g, struct site *s, const struct issue_node *n) {
    const struct instr *instr = s->instr;
    int flags = 0;
    for (int i = 0; i < instr->nranged; i++) s->size[i] = known_value(g, n->size[i]);
    for (int i = 0; i < instr->nstride_names; i++) s->stride[i] = known_value(g, n->stride[i]);
    for (int o = 0; o < instr->noperands; o++) {
        const struct arg *a = &n->arg[o];
        s->layout[o] = a->layout;
        s->imm[o] = a->imm;
        if (instr->operand[o].accumulate) {
            s->flag[flags] = known_value(g, n->flag[flags]);
            flags++;
        }
        if (a->place < 0) {
            s->memory[o] = MEMORY_IMM;
            continue;
        }
        const struct place *p = &g->schedule->place[a->place];
        s->memory[o] = p->memory;
        s->address[o] = known_value(g, a->offset);
        if (g->rotates[a->place]) s->address[o].is = false;
        s->address[o].value += p->address;
    }
}

/* ---- expressions of the emit text that are known only at run time ---- */
static const char *run_time(struct issue *, const struct mexpr *);

static const char *address_text(struct issue *i, int o) {
    const struct arg *a = &i->node->arg[o];
    const struct place *p = &i->g->schedule->place[a->place];
    const char *slot = i->g->rotates[a->place] ? arena_printf(&i->g->arena, " + s_%d * %s",
                                                              a->place, c_integer(i->g, p->bytes))
                                               : "";
    return arena_printf(&i->g->arena, "(%s%s + %s)", c_integer(i->g, p->address), slot,
                        c_sx(i->g, a->offset));
}

static const char *name_text(struct issue *i, const struct mexpr *e) {
    const struct instr *instr = i->site->instr;
    if (e->field) return NULL;
    for (int k = 0; k < instr->nranged; k++)
        if (!strcmp(instr->semantics->param[instr->ranged[k]].name, e->name))
            return c_sx(i->g, i->node->size[k]);
    for (int k = 0; k < instr->nstride_names; k++)
        if (!strcmp(instr->stride_name[k], e->name)) return c_sx(i->g, i->node->stride[k]);
    for (int o = 0, flag = 0; o < instr->noperands; o++) {
        if (!instr->operand[o].accumulate) continue;
        if (!strcmp(instr->operand[o].accumulate, e->name)) return c_sx(i->g, i->node->flag[flag]);
        flag++;
    }
    return NULL;
}

static const char *stride_text(struct issue *i, int o, int n) {
    const struct operand_layout *l = &i->site->instr->operand[o].layout[i->site->layout[o]];
    return n < l->nstrides ? run_time(i, l->stride[n]) : NULL;
}

/* dim(A,n) and at(A,n): by the operand's strides, of which each divides the one before it, the
 * array is counted in digits; of the first there are as many as are begun in the array's bytes. */
static const char *digit_text(struct issue *i, int o, const struct mexpr *e) {
    const struct arg *a = &i->node->arg[o];
    const struct place *p = &i->g->schedule->place[a->place];
    long long size = (long long)type_size(i->site->instr->operand[o].type);
    double v;
    if (!mexpr_constant(e->arg[1], &v)) return NULL;
    int n = (int)v;
    const char *stride = stride_text(i, o, n), *before = n ? stride_text(i, o, n - 1) : NULL;
    if (!stride || (n && !before)) return NULL;
    if (!strcmp(e->name, "dim"))
        return n ? arena_printf(&i->g->arena, "(%s / %s)", before, stride)
                 : arena_printf(&i->g->arena, "((%s / %lld + %s - 1) / %s)",
                                c_integer(i->g, p->bytes * p->slots), size, stride, stride);
    const char *slot = i->g->rotates[a->place] ? arena_printf(&i->g->arena, " + s_%d * %s",
                                                              a->place, c_integer(i->g, p->bytes))
                                               : "",
               *at = arena_printf(&i->g->arena, "(%s%s) / %lld", c_sx(i->g, a->offset), slot, size);
    return n ? arena_printf(&i->g->arena, "(%s %% %s / %s)", at, before, stride)
             : arena_printf(&i->g->arena, "(%s / %s)", at, stride);
}

static const char *call_text(struct issue *i, const struct mexpr *e) {
    const struct instr *instr = i->site->instr;
    bool addr = !strcmp(e->name, "addr"), word = !strcmp(e->name, "word");
    if (!e->field && e->nargs == 2 && (!strcmp(e->name, "min") || !strcmp(e->name, "max"))) {
        const char *a = run_time(i, e->arg[0]), *b = run_time(i, e->arg[1]);
        return a && b ? arena_printf(&i->g->arena, "isamap_%s(%s, %s)", e->name, a, b) : NULL;
    }
    bool digit = e->nargs == 2 && (!strcmp(e->name, "dim") || !strcmp(e->name, "at"));
    if (e->field || e->arg[0]->kind != MEXPR_NAME || !((e->nargs == 1 && (addr || word)) || digit))
        return NULL;
    for (int o = 0; o < instr->noperands; o++) {
        if (strcmp(instr->operand[o].buffer, e->arg[0]->name) || i->site->memory[o] < 0) continue;
        if (digit) return digit_text(i, o, e);
        const char *a = address_text(i, o);
        int64_t size = i->g->machine->memory[i->site->memory[o]].word;
        return addr ? a : arena_printf(&i->g->arena, "(%s / %s)", a, c_integer(i->g, size));
    }
    return NULL;
}

static const char *operation_text(struct issue *i, const struct mexpr *e) {
    const char *arg[3] = {NULL, NULL, NULL};
    for (int k = 0; k < e->nargs && k < 3; k++)
        if (!(arg[k] = run_time(i, e->arg[k]))) return NULL;
    if (e->nargs == 1) return arena_printf(&i->g->arena, "(%s%s)", e->op, arg[0]);
    if (e->nargs == 3) return arena_printf(&i->g->arena, "(%s ? %s : %s)", arg[0], arg[1], arg[2]);
    return arena_printf(&i->g->arena, "(%s %s %s)", arg[0], e->op, arg[1]);
}

/* The expression as C on 64-bit integers; NULL where it cannot be said. */
static const char *run_time(struct issue *i, const struct mexpr *e) {
    double v;
    if (site_eval(i->site, e, &v, NULL))
        return v == (double)(int64_t)v ? c_integer(i->g, (int64_t)v) : NULL;
    switch (e->kind) {
    case MEXPR_NAME:
        return name_text(i, e);
    case MEXPR_CALL:
        return call_text(i, e);
    case MEXPR_OP:
        return operation_text(i, e);
    default:
        return NULL;
    }
}

static const char *extra_parameter(void *user, const struct mexpr *whole,
                                   const struct mexpr *missing) {
    struct issue *i = user;
    if (i->nextras == MAX_EXTRAS || !run_time(i, whole)) {
        diag_line(i->g->diags, i->emit->at.file, whole->line, 0,
                  "'%s' in '${%s}' has no meaning in c code, expected sizes, strides, flags, "
                  "parameters, word "
                  "or addr",
                  missing && missing->name ? missing->name : whole->text, whole->text);
        return NULL;
    }
    i->extra[i->nextras] = whole;
    return arena_printf(&i->g->arena, "isamap_e%d", i->nextras++);
}

/* ---- the function ---- */
static void print_lets(struct text *t, const struct site *s) {
    for (int o = 0; o < s->instr->noperands; o++) {
        const struct operand_layout *l = &s->instr->operand[o].layout[s->layout[o]];
        if (l->let_name)
            text_printf(t, " const long %s = %lld; (void)%s;", l->let_name, (long long)l->let_value,
                        l->let_name);
    }
}

static void print_parameter(struct text *t, const struct cgen *g, const struct site *s,
                            const struct emit_param *p, const char *comma) {
    const char *constant = p->written ? "" : "const ";
    switch (p->kind) {
    case PARAM_POINTER:
        text_printf(t, "%s%s%s *%s", comma, constant, c_type_name(p->type), p->name);
        break;
    case PARAM_VALUE:
        text_printf(t, "%s%s%s *%s", comma, constant,
                    c_value_type(g->machine, s->memory[p->index], p->type), p->name);
        break;
    case PARAM_IMM:
        text_printf(t, "%s%s %s", comma, c_type_name(p->type), p->name);
        break;
    case PARAM_SIZE:
    case PARAM_STRIDE:
        text_printf(t, "%slong %s", comma, p->name);
        break;
    case PARAM_FLAG:
        text_printf(t, "%sint %s", comma, p->name);
        break;
    }
}

const char *c_function_text(struct cgen *g, const struct site *s, const struct emit *emit,
                            const struct signature *sig, int extras, const struct c_handle *handle,
                            int nhandles, const char *body) {
    struct text t = {0};
    text_printf(&t, "(");
    for (int k = 0; k < sig->nparams; k++) print_parameter(&t, g, s, &sig->param[k], k ? ", " : "");
    for (int k = 0; k < extras; k++)
        text_printf(&t, "%slong isamap_e%d", k || sig->nparams ? ", " : "", k);
    for (int k = 0; k < nhandles; k++)
        text_printf(&t, "%s%s%s", k || sig->nparams || extras ? ", " : "", handle[k].type,
                    handle[k].name);
    text_printf(&t, "%s) {", sig->nparams || extras || nhandles ? "" : "void");
    print_lets(&t, s);
    text_printf(&t, "\n#line %d \"%s\"\n%s\n}\n", emit->at.line > 0 ? emit->at.line : 1,
                emit->at.file, body);
    const char *text = arena_strdup(&g->arena, t.at);
    text_free(&t);
    return text;
}

/* Equal texts are one function, called after the first instruction that has it. */
static const char *function_name(struct cgen *g, const struct instr *instr, const char *text) {
    for (int k = 0; k < g->nemitted; k++)
        if (!strcmp(g->emitted[k].key, text)) return g->emitted[k].name;
    GROW(&g->arena, g->emitted, g->nemitted, g->cap_emitted);
    const char *name =
        arena_printf(&g->arena, "emit_%d_%s", g->nemitted, c_identifier(&g->arena, instr->id));
    g->emitted[g->nemitted++] = (struct c_emitted){text, name};
    text_printf(&g->emits, "%s %s%s\n", g->dialect->function, name, text);
    return name;
}

/* ---- the call ---- */
const char *c_immediate(struct cgen *g, enum type t, union value v) {
    unsigned char bytes[8] = {0};
    uint16_t half;
    if (t == TYPE_F16 || t == TYPE_BF16) {
        type_store(t, bytes, v);
        memcpy(&half, bytes, 2);
        return arena_printf(&g->arena, "%u", half);
    }
    if (!type_is_float(t)) return c_integer(g, v.i);
    if (v.f != v.f) return "NAN";
    if (v.f - v.f != 0) return v.f > 0 ? "INFINITY" : "(-INFINITY)";
    return arena_printf(&g->arena, "%a", v.f);
}

static const char *argument(struct issue *i, const struct emit_param *p) {
    struct cgen *g = i->g;
    const struct arg *a = &i->node->arg[p->index];
    const char *type = c_type_name(p->type), *slot = "";
    switch (p->kind) {
    case PARAM_VALUE:
        type = c_value_type(g->machine, i->site->memory[p->index], p->type); /* fall through */
    case PARAM_POINTER:
        if (g->rotates[a->place])
            slot = arena_printf(&g->arena, " + s_%d * %s", a->place,
                                c_integer(g, g->schedule->place[a->place].bytes));
        return arena_printf(&g->arena, "(%s *)(p_%d%s + %s)", type, a->place, slot,
                            c_sx(g, a->offset));
    case PARAM_IMM:
        return c_immediate(g, p->type, a->imm);
    case PARAM_SIZE:
        return c_sx(g, i->node->size[p->index]);
    case PARAM_STRIDE:
        return c_sx(g, i->node->stride[p->index]);
    case PARAM_FLAG:
        break;
    }
    return arena_printf(&g->arena, "(int)%s", c_sx(g, i->node->flag[p->index]));
}

static void print_call(struct issue *i, const struct signature *sig, const char *name) {
    const char *list = "";
    for (int k = 0; k < sig->nparams; k++)
        list =
            arena_printf(&i->g->arena, "%s%s%s", list, k ? ", " : "", argument(i, &sig->param[k]));
    for (int k = 0; k < i->nextras; k++)
        list =
            arena_printf(&i->g->arena, "%s%s%s", list, *list ? ", " : "", run_time(i, i->extra[k]));
    for (int k = 0; k < i->nhandles; k++)
        list = arena_printf(&i->g->arena, "%s%s%s", list, *list ? ", " : "", i->handle[k].value);
    c_line(i->g, "%s(%s);", name, list);
}

static struct issue issue_new(struct cgen *g, const struct issue_node *n) {
    const struct instr *instr = &g->machine->instr[n->instr];
    struct issue i = {.g = g, .node = n, .site = site_new(&g->arena, g->machine, instr)};
    i.emit = instr_emit(instr, g->dialect->language);
    i.site->handles = g->dialect->handles != NULL;
    site_fill(g, i.site, n);
    return i;
}

const char *c_value(struct cgen *g, const struct issue_node *n, const struct mexpr *e) {
    struct issue i = issue_new(g, n);
    return run_time(&i, e);
}

void c_issue(struct cgen *g, const struct issue_node *n) {
    const struct instr *instr = &g->machine->instr[n->instr];
    struct issue i = issue_new(g, n);
    struct signature sig;
    const char *body = NULL;
    if (g->dialect->handles) i.nhandles = g->dialect->handles(g, n, i.handle);
    if (i.nhandles < 0) return;
    if (emit_signature(&g->arena, i.site, &sig, g->diags))
        body = emit_expand(&g->arena, g->machine, i.site, i.emit, extra_parameter, &i, g->diags);
    g->failed = g->failed || !body;
    if (!body) return;
    bool narrowed = g->dialect->narrow && g->dialect->narrow(g, instr->unit);
    print_call(&i, &sig,
               function_name(g, instr,
                             c_function_text(g, i.site, i.emit, &sig, i.nextras, i.handle,
                                             i.nhandles, body)));
    if (!narrowed) return;
    g->indent--;
    c_line(g, "}");
}

void c_plain_emit(struct cgen *g, const struct emit *emit, int n) {
    for (int k = 0; k < n && !g->failed; k++) {
        if (emit[k].language != g->dialect->language) continue;
        const char *body = emit_expand(&g->arena, g->machine, NULL, &emit[k], NULL, NULL, g->diags);
        g->failed = !body;
        if (body) c_line(g, "{ %s }", body);
    }
}
