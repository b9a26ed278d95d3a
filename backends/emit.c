#include "backends/backends_int.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MAX_NAMES = 128 };

/* ---- sites ---- */
struct site *site_new(struct arena *a, const struct machine *m, const struct instr *instr) {
    struct site *s = arena_alloc(a, sizeof *s);
    size_t n = (size_t)instr->noperands + 1;
    s->machine = m;
    s->instr = instr;
    s->size = arena_array(a, (size_t)instr->nranged + 1, sizeof *s->size);
    s->stride = arena_array(a, (size_t)instr->nstride_names + 1, sizeof *s->stride);
    s->flag = arena_array(a, n, sizeof *s->flag);
    s->address = arena_array(a, n, sizeof *s->address);
    s->memory = arena_array(a, n, sizeof *s->memory);
    s->layout = arena_array(a, n, sizeof *s->layout);
    s->imm = arena_array(a, n, sizeof *s->imm);
    for (int o = 0; o < instr->noperands; o++)
        s->memory[o] = instr->operand[o].nmemories ? instr->operand[o].memory[0] : m->home;
    return s;
}

struct site *site_copy(struct arena *a, const struct site *from) {
    const struct instr *instr = from->instr;
    size_t n = (size_t)instr->noperands;
    struct site *s = site_new(a, from->machine, instr);
    s->draft = from->draft;
    s->handles = from->handles;
    memcpy(s->size, from->size, (size_t)instr->nranged * sizeof *s->size);
    memcpy(s->stride, from->stride, (size_t)instr->nstride_names * sizeof *s->stride);
    memcpy(s->flag, from->flag, n * sizeof *s->flag);
    memcpy(s->address, from->address, n * sizeof *s->address);
    memcpy(s->memory, from->memory, n * sizeof *s->memory);
    memcpy(s->layout, from->layout, n * sizeof *s->layout);
    memcpy(s->imm, from->imm, n * sizeof *s->imm);
    return s;
}

bool site_widest(struct site *s, struct diags *diags) {
    const struct instr *instr = s->instr;
    for (int i = 0; i < instr->nranged; i++) {
        int64_t lo, hi, step;
        if (!instr_size_range(s->machine, instr, i, &lo, &hi, &step) || hi < 0) {
            diag_line(
                diags, instr->at.file, instr->at.line, 0,
                "size '%s' of '%s' has no upper end, but an operand is passed by value, expected "
                "a range",
                instr->semantics->param[instr->ranged[i]].name, instr->id);
            return false;
        }
        s->size[i] = (struct known){true, hi};
    }
    return true;
}

const struct kernel_buffer *site_buffer(const struct site *s, int operand) {
    const struct kernel *k = s->instr->semantics;
    int n = s->instr->operand[operand].kernel_buffer;
    for (int i = 0; i < k->nitems; i++)
        if (k->item[i].kind == KITEM_BUFFER && n-- == 0) return k->item[i].buffer;
    assert(!"an operand is a buffer of the semantics");
    return NULL;
}

/* The kernel's parameters that have a value here, earlier ones first. */
static int site_bindings(const struct site *s, struct binding *at) {
    const struct kernel *k = s->instr->semantics;
    int n = 0;
    for (int p = 0; p < k->nparams && n < MAX_NAMES; p++) {
        struct bindings known = {at, n, &s->machine->params};
        int64_t value;
        bool has = false, ranged = false;
        for (int i = 0; i < s->instr->nranged; i++) {
            if (s->instr->ranged[i] != p) continue;
            ranged = true;
            has = s->size[i].is;
            value = s->size[i].value;
        }
        if (!ranged && k->param[p].value) has = expr_integer(k->param[p].value, &known, &value);
        if (has) at[n++] = (struct binding){k->param[p].name, value};
    }
    return n;
}

bool site_extents(const struct site *s, int operand, int64_t *extent) {
    struct binding at[MAX_NAMES];
    struct bindings known = {at, site_bindings(s, at), &s->machine->params};
    const struct kernel_buffer *b = site_buffer(s, operand);
    for (int d = 0; d < b->ndims; d++)
        if (!expr_integer(b->extent[d], &known, &extent[d]) || extent[d] < 0) return false;
    return true;
}

bool site_strides(const struct site *s, int operand, int64_t *stride, bool *dense) {
    const struct operand *op = &s->instr->operand[operand];
    const struct operand_layout *l = &op->layout[s->layout[operand]];
    *dense = !l->stride;
    for (int i = 0; i < l->nstrides; i++) {
        double v;
        if (!site_eval(s, l->stride[i], &v, NULL) || v != floor(v) || fabs(v) > 0x1p53)
            return false;
        stride[i] = (int64_t)v;
    }
    return true;
}

int64_t site_span(const struct site *s, int operand) {
    int64_t extent[MAX_DIMS], stride[MAX_DIMS];
    bool dense;
    const struct operand *op = &s->instr->operand[operand];
    if (op->layout[s->layout[operand]].nstrides > MAX_DIMS) return -1;
    if (!site_extents(s, operand, extent) || !site_strides(s, operand, stride, &dense)) return -1;
    return layout_span(op->layout[s->layout[operand]].map, site_buffer(s, operand)->ndims, extent,
                       dense ? NULL : stride);
}

enum pass site_pass(const struct site *s, int operand) {
    const struct operand *op = &s->instr->operand[operand];
    if (op->has_pass) return op->pass;
    return s->memory[operand] < 0 ? PASS_VALUE : s->machine->memory[s->memory[operand]].pass;
}

/* ---- names and functions in ${…} ---- */
static bool named(const struct known *k, double *out) {
    *out = (double)k->value;
    return k->is;
}

static bool eval_name(void *user, const char *name, const char *field, double *out) {
    const struct site *s = user;
    const struct instr *instr = s->instr;
    if (field) return false;
    int flag = 0;
    for (int o = 0; o < instr->noperands; o++) {
        const struct operand *op = &instr->operand[o];
        const struct operand_layout *l = &op->layout[s->layout[o]];
        if (l->let_name && !strcmp(l->let_name, name)) return *out = (double)l->let_value, true;
        if (!op->accumulate) continue;
        if (!strcmp(op->accumulate, name)) return named(&s->flag[flag], out);
        flag++;
    }
    struct binding at[MAX_NAMES];
    int n = site_bindings(s, at);
    for (int i = 0; i < n; i++)
        if (!strcmp(at[i].name, name)) return *out = (double)at[i].value, true;
    if (kernel_param_index(instr->semantics, name) >= 0) return false;
    for (int i = 0; i < instr->nstride_names; i++)
        if (!strcmp(instr->stride_name[i], name)) return named(&s->stride[i], out);
    return machine_param((void *)s->machine, name, NULL, out);
}

static int call_operand(const struct site *s, const struct mexpr *call) {
    if (call->field || call->nargs != 1 || call->arg[0]->kind != MEXPR_NAME) return -1;
    for (int o = 0; o < s->instr->noperands; o++)
        if (!strcmp(s->instr->operand[o].buffer, call->arg[0]->name)) return o;
    return -1;
}

static double imm_bits(enum type t, union value v) {
    unsigned char byte[8] = {0};
    uint64_t bits = 0;
    type_store(t, byte, v);
    for (int k = 7; k >= 0; k--) bits = bits << 8 | byte[k];
    return (double)bits;
}

static bool eval_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                      double *out) {
    const struct site *s = user;
    int o = call_operand(s, call);
    (void)env;
    if (o < 0) return false;
    enum type t = s->instr->operand[o].type;
    if (s->memory[o] == MEMORY_IMM) {
        if (!strcmp(call->name, "bits")) return *out = imm_bits(t, s->imm[o]), true;
        if (strcmp(call->name, "value")) return false;
        *out = type_is_float(t) ? s->imm[o].f : (double)s->imm[o].i;
        return true;
    }
    if (!strcmp(call->name, "bytes")) {
        int64_t span = site_span(s, o);
        return *out = (double)span * (double)type_size(t), span >= 0;
    }
    if (s->memory[o] < 0 || !s->address[o].is) return false;
    const struct memory *m = &s->machine->memory[s->memory[o]];
    int64_t address = s->address[o].value;
    if (!strcmp(call->name, "addr")) return *out = (double)address, true;
    if (!strcmp(call->name, "word")) return *out = (double)address / (double)m->word, true;
    if (strcmp(call->name, "bank") || m->banks < 1) return false;
    int64_t interleave = m->interleave > 0 ? m->interleave : m->size / m->banks;
    return *out = (double)(interleave > 0 ? address / interleave % m->banks : 0), true;
}

bool machine_param(void *user, const char *name, const char *field, double *out) {
    const struct machine *m = user;
    for (int i = 0; i < m->nparams; i++)
        if (!field && !strcmp(m->param[i].name, name))
            return *out = (double)m->param[i].value, true;
    return false;
}

struct mexpr_env site_names(const struct site *s) {
    return (struct mexpr_env){eval_name, eval_call, (void *)s};
}

bool site_eval(const struct site *s, const struct mexpr *e, double *out,
               const struct mexpr **missing) {
    struct mexpr_env env = site_names(s);
    return mexpr_eval(e, &env, out, missing);
}

/* ---- expansion ---- */
struct expansion {
    struct arena *arena;
    const struct machine *machine;
    const struct site *site; /* or NULL: env */
    const struct mexpr_env *env;
    const struct emit *emit;
    emit_unknown unknown;
    void *user;
    struct diags *diags;
    struct text out;
};

static void print_number(struct expansion *x, double v) {
    uint64_t bits;
    if (v == floor(v) && fabs(v) < 0x1p63) {
        text_printf(&x->out, "%lld", (long long)v);
    } else if (x->emit->language == LANGUAGE_LLVM) {
        memcpy(&bits, &v, sizeof bits);
        text_printf(&x->out, "0x%016llX", (unsigned long long)bits);
    } else {
        text_printf(&x->out, "%.17g", v);
    }
}

static bool expand_value(struct expansion *x, const struct mexpr *e, int line) {
    const struct mexpr *missing = NULL;
    double v;
    bool has = x->site ? site_eval(x->site, e, &v, &missing) : mexpr_eval(e, x->env, &v, &missing);
    if (has) {
        print_number(x, v);
        return true;
    }
    if (x->unknown) {
        const char *text = x->unknown(x->user, e, missing);
        if (text) text_append(&x->out, text, strlen(text));
        return text;
    }
    const char *name = missing && missing->name ? missing->name : e->text;
    diag_line(
        x->diags, x->emit->at.file, line, 0,
        "'%s' in '${%s}' has no value when code is generated, expected sizes, strides, flags, "
        "parameters, word, addr, bank, bytes, value or bits of an operand with a constant address",
        name, e->text);
    return false;
}

/* list('text#', n): the text n times, # numbered, joined by commas */
static bool expand_list(struct expansion *x, const struct mexpr *e, int line) {
    double n;
    if (e->nargs != 2 || e->arg[0]->kind != MEXPR_STRING ||
        !(x->site ? site_eval(x->site, e->arg[1], &n, NULL)
                  : mexpr_eval(e->arg[1], x->env, &n, NULL)) ||
        !(n >= 0 && n <= 4096)) {
        diag_line(x->diags, x->emit->at.file, line, 0,
                  "'${%s}' is not list('text#', n) with a number n up to 4096", e->text);
        return false;
    }
    for (int i = 0; i < (int)n; i++) {
        if (i) text_append(&x->out, ", ", 2);
        for (const char *c = e->arg[0]->name; *c; c++) {
            if (*c == '#')
                text_printf(&x->out, "%d", i);
            else
                text_append(&x->out, c, 1);
        }
    }
    return true;
}

const char *draft_unknown(void *user, const struct mexpr *whole, const struct mexpr *missing) {
    (void)user, (void)whole, (void)missing;
    return "1";
}

static const char *closing_brace(const char *at) {
    bool quoted = false;
    for (; *at; at++) {
        if (*at == '\'') quoted = !quoted;
        if (*at == '}' && !quoted) return at;
    }
    return NULL;
}

static char *expand_text(struct expansion *x) {
    const struct emit *emit = x->emit;
    int line = emit->at.line;
    bool good = true;
    text_append(&x->out, "", 0);
    for (const char *at = emit->text ? emit->text : ""; *at && good; at++) {
        if (*at == '\n') line++;
        if (at[0] != '$' || at[1] != '{') {
            text_append(&x->out, at, 1);
            continue;
        }
        const char *end = closing_brace(at + 2);
        if (!end) {
            diag_line(x->diags, emit->at.file, line, 0, "'${' without '}' in emit text");
            good = false;
            break;
        }
        char *inner = arena_strndup(x->arena, at + 2, (size_t)(end - at - 2));
        const struct mexpr *e = mexpr_parse(x->arena, inner, emit->at.file, line, x->diags);
        good = e && (e->kind == MEXPR_CALL && !e->field && !strcmp(e->name, "list")
                         ? expand_list(x, e, line)
                         : expand_value(x, e, line));
        for (; at < end; at++) line += *at == '\n';
    }
    char *text = good ? arena_strndup(x->arena, x->out.at ? x->out.at : "", x->out.n) : NULL;
    text_free(&x->out);
    return text;
}

char *emit_expand(struct arena *a, const struct machine *m, const struct site *site,
                  const struct emit *emit, emit_unknown unknown, void *user, struct diags *diags) {
    struct mexpr_env outside = {machine_param, NULL, (void *)m};
    struct expansion x = {a, m, site, &outside, emit, unknown, user, diags, {0}};
    return expand_text(&x);
}

/* ---- configure ---- */
static bool setting_value(const struct settings *s, const char *state, const char *field,
                          int64_t index, double *out) {
    const int64_t *value = s->value;
    bool known = false;
    for (int k = 0; k < s->node->nsets; k++) {
        const struct state *t = &s->machine->state[s->node->set[k].state];
        for (int f = 0; f < t->nfields; f++, value++) {
            if (strcmp(t->id, state) || strcmp(t->field[f], field)) continue;
            if (index >= 0 && s->node->set[k].index != index) continue;
            *out = (double)*value;
            known = true;
        }
    }
    if (known || index < 0) return known;
    const struct configure *c = &s->machine->configure[s->node->configure];
    for (int k = 0; k < c->nsets; k++) /* words that nothing uses */
        known |= !strcmp(s->machine->state[c->sets[k]].id, state);
    return *out = 0, known;
}

static bool setting_name(void *user, const char *name, const char *field, double *out) {
    const struct settings *s = user;
    return field ? setting_value(s, name, field, -1, out)
                 : machine_param((void *)s->machine, name, field, out);
}

static bool setting_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                         double *out) {
    const struct settings *s = user;
    int64_t index;
    if (call->field && call->nargs == 1)
        return mexpr_integer(call->arg[0], env, &index, NULL) && index >= 0 &&
               setting_value(s, call->name, call->field, index, out);
    if (strcmp(call->name, "slot") || call->nargs != 1 || call->arg[0]->kind != MEXPR_NAME)
        return false;
    for (int k = 0; k < s->node->nsets; k++)
        if (!strcmp(s->machine->state[s->node->set[k].state].id, call->arg[0]->name))
            return *out = (double)s->node->set[k].index, true;
    return false;
}

struct mexpr_env settings_env(const struct settings *s) {
    return (struct mexpr_env){setting_name, setting_call, (void *)s};
}

char *emit_expand_configure(struct arena *a, const struct machine *m,
                            const struct configure_node *node, const int64_t *value,
                            const struct emit *emit, struct diags *diags) {
    struct settings s = {m, node, value};
    struct mexpr_env env = settings_env(&s);
    struct expansion x = {a, m, NULL, &env, emit, NULL, NULL, diags, {0}};
    return expand_text(&x);
}

/* ---- signatures ---- */
static bool supported(const struct site *s, struct diags *diags) {
    const struct instr *i = s->instr;
    const char *what = NULL;
    if (i->across >= 0) what = "moves across units, which";
    if (i->completes >= 0 && s->machine->sync[i->completes].kind != SYNC_INTERLOCK &&
        !(s->handles && s->machine->sync[i->completes].memory >= 0))
        what = "completes through a sync, whose handle";
    for (int k = 0; k < i->nneeds; k++)
        if (state_from_addresses(s->machine, i->need[k].state) && !s->handles)
            what = "needs a state that a host makes of addresses, which";
    if (!what) return true;
    diag_line(
        diags, i->at.file, i->at.line, 0,
        "'%s' %s code for this processor cannot provide, expected an instruction that is complete "
        "when it returns",
        i->id, what);
    return false;
}

static bool value_param(const struct site *s, const struct site *widest, int o,
                        struct emit_param *p, struct diags *diags) {
    const struct instr *i = s->instr;
    if (s->memory[o] < 0) {
        p->words = 1;
        p->lanes = 1;
        return true;
    }
    const struct memory *m = &s->machine->memory[s->memory[o]];
    int64_t size = (int64_t)type_size(p->type), span = site_span(widest, o);
    if (m->scalable) {
        diag_line(diags, i->at.file, i->at.line, 0,
                  "operand '%s' of '%s' is in the scalable memory '%s', which no backend supports, "
                  "expected a word of fixed size",
                  p->name, i->id, m->id);
        return false;
    }
    if (span < 0 || m->word < size || m->word % size || span > INT32_MAX / size) {
        diag_line(
            diags, i->at.file, i->at.line, 0,
            "operand '%s' of '%s' has no fixed number of words of '%s', expected constant strides "
            "and whole elements in a word",
            p->name, i->id, m->id);
        return false;
    }
    p->words = (int)((span * size + m->word - 1) / m->word);
    if (p->words < 1) p->words = 1;
    p->lanes = (int)(m->word / size);
    return true;
}

static bool has_value_operand(const struct site *s) {
    for (int o = 0; o < s->instr->noperands; o++)
        if (s->memory[o] >= 0 && site_pass(s, o) == PASS_VALUE) return true;
    return false;
}

bool emit_signature(struct arena *a, const struct site *s, struct signature *sig,
                    struct diags *diags) {
    const struct instr *i = s->instr;
    int n = 0, nflags = 0;
    if (!supported(s, diags)) return false;
    struct site *widest = site_copy(a, s);
    if (has_value_operand(s) && !site_widest(widest, diags)) return false;
    sig->param = arena_array(a, (size_t)(2 * i->noperands + i->nranged + i->nstride_names + 1),
                             sizeof *sig->param);
    for (int o = 0; o < i->noperands; o++) {
        const struct operand *op = &i->operand[o];
        struct emit_param *p = &sig->param[n];
        *p = (struct emit_param){.index = o, .name = op->buffer, .type = op->type};
        p->read = op->role != ROLE_OUT;
        p->written = op->role == ROLE_OUT || op->role == ROLE_INOUT;
        p->kind = s->memory[o] == MEMORY_IMM        ? PARAM_IMM
                  : site_pass(s, o) == PASS_POINTER ? PARAM_POINTER
                                                    : PARAM_VALUE;
        if (s->memory[o] != MEMORY_IMM && site_pass(s, o) == PASS_NUMBER) continue;
        if (p->kind == PARAM_VALUE && !value_param(s, widest, o, p, diags)) return false;
        n++;
    }
    for (int r = 0; r < i->nranged; r++)
        sig->param[n++] = (struct emit_param){
            .kind = PARAM_SIZE, .index = r, .name = i->semantics->param[i->ranged[r]].name};
    for (int t = 0; t < i->nstride_names; t++)
        sig->param[n++] =
            (struct emit_param){.kind = PARAM_STRIDE, .index = t, .name = i->stride_name[t]};
    for (int o = 0; o < i->noperands; o++)
        if (i->operand[o].accumulate)
            sig->param[n++] = (struct emit_param){
                .kind = PARAM_FLAG, .index = nflags++, .name = i->operand[o].accumulate};
    sig->nparams = n;
    return true;
}
