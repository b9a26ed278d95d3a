/* What an expression may name where it stands (docs/machine-format.md, "Expressions"). */
#include "machines/tree.h"
#include <ctype.h>
#include <string.h>

struct walk {
    const struct scope *s;
    const char *file, *what, *text;
    int line;
    struct diags *d;
    bool good;
};

static bool wrong(struct walk *w, const char *name, const char *expected) {
    diag_line(w->d, w->file, w->line, 0, "'%s' in %s '%s', expected %s", name, w->what, w->text,
              expected);
    w->good = false;
    return true;
}

static int operand_named(const struct scope *s, const struct mexpr *e) {
    if (e->kind == MEXPR_NAME && s->instr)
        for (int i = 0; i < s->instr->noperands; i++)
            if (!strcmp(s->instr->operand[i].buffer, e->name)) return i;
    return -1;
}

static bool loop_named(const struct scope *s, const struct mexpr *e) {
    if (e->kind == MEXPR_NAME && s->instr)
        for (int i = 0; i < s->instr->nloops; i++)
            if (!strcmp(s->instr->loop[i].id, e->name)) return true;
    return false;
}

/* an id may have a dot, which reads as a field */
static bool spells(const struct mexpr *e, const char *id) {
    if (e->kind == MEXPR_NAME) return !strcmp(e->name, id);
    size_t n = e->kind == MEXPR_FIELD ? strlen(e->name) : 0;
    return n && !strncmp(e->name, id, n) && id[n] == '.' && !strcmp(e->field, id + n + 1);
}

static bool sync_named(const struct scope *s, const struct mexpr *e) {
    for (int i = 0; i < s->machine->nsyncs; i++)
        if (spells(e, s->machine->sync[i].id)) return true;
    return false;
}

static bool memory_named(const struct scope *s, const struct mexpr *e) {
    for (int i = 0; i < s->machine->nmemories; i++)
        if (spells(e, s->machine->memory[i].id)) return true;
    return false;
}

static bool part_named(const struct scope *s, const struct mexpr *e) {
    for (int i = 0; i < s->machine->nmemories; i++)
        for (int k = 0; k < s->machine->memory[i].nparts; k++)
            if (spells(e, s->machine->memory[i].part[k].id)) return true;
    return false;
}

static const struct state *state_named(const struct scope *s, const struct mexpr *e) {
    for (int i = 0; i < s->machine->nstates; i++)
        if (spells(e, s->machine->state[i].id)) return &s->machine->state[i];
    return NULL;
}

static bool state_field(const struct scope *s, const char *state, const char *field) {
    for (int i = 0; i < s->machine->nstates; i++)
        for (int k = 0; !strcmp(s->machine->state[i].id, state) && k < s->machine->state[i].nfields;
             k++)
            if (!strcmp(s->machine->state[i].field[k], field)) return true;
    return false;
}

static const struct function {
    const char *name, *args; /* each: o operand, d dimension of it, l loop, s sync, t state, p part,
                                m memory or operand, q list, e expression */
    const char *expected;
} functions[] = {
    {"addr", "o", "addr(OPERAND)"},
    {"word", "o", "word(OPERAND)"},
    {"row", "o", "row(OPERAND)"},
    {"bank", "o", "bank(OPERAND)"},
    {"bytes", "o", "bytes(OPERAND)"},
    {"value", "o", "value(OPERAND)"},
    {"bits", "o", "bits(OPERAND)"},
    {"dim", "od", "dim(OPERAND, DIMENSION)"},
    {"at", "od", "at(OPERAND, DIMENSION)"},
    {"base", "m", "base(MEMORY), base(OPERAND) or, in begin and end, base(program)"},
    {"extent", "l", "extent(LOOP)"},
    {"first", "l", "first(LOOP)"},
    {"step", "ol", "step(OPERAND, LOOP)"},
    {"push", "s", "push(SYNC)"},
    {"pop", "s", "pop(SYNC)"},
    {"slot", "t", "slot(STATE)"},
    {"banks", "p", "banks(PART)"},
    {"list", "qe", "list('text', COUNT)"},
};

static bool check_expression(struct walk *, const struct mexpr *);

static bool argument_fits(struct walk *w, char kind, const struct mexpr *call, int i) {
    const struct scope *s = w->s;
    const struct mexpr *e = call->arg[i];
    double v;
    switch (kind) {
    case 'o':
        return operand_named(s, e) >= 0;
    case 'l':
        return loop_named(s, e);
    case 's':
        return sync_named(s, e);
    case 't':
        return state_named(s, e) != NULL;
    case 'p':
        return part_named(s, e);
    case 'm':
        return memory_named(s, e) || operand_named(s, e) >= 0 ||
               (s->program && e->kind == MEXPR_NAME && !strcmp(e->name, "program"));
    case 'q':
        return e->kind == MEXPR_STRING;
    case 'd': {
        int o = operand_named(s, call->arg[0]);
        return o >= 0 && mexpr_constant(e, &v) && v >= 0 && v < instr_buffer(s->instr, o)->ndims;
    }
    default:
        return e->kind != MEXPR_STRING && check_expression(w, e);
    }
}

static bool check_call(struct walk *w, const struct mexpr *e) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct function *f = &functions[i];
        if (strcmp(f->name, e->name)) continue;
        bool good = e->nargs == (int)strlen(f->args);
        for (int k = 0; k < e->nargs && good; k++) good = argument_fits(w, f->args[k], e, k);
        return good || wrong(w, e->name, f->expected);
    }
    return wrong(w, e->name,
                 "a function: addr word row bank bytes value bits dim at base extent first step "
                 "push pop slot banks list, or "
                 "min max ceil floor log2 pick sizeof with the right number of arguments");
}

static bool mentions_size(const struct kernel *k, const struct expr *e) {
    int p = e && e->kind == EXPR_NAME ? kernel_param_index(k, e->name) : -1;
    bool found = p >= 0 && (!k->param[p].value || mentions_size(k, k->param[p].value));
    for (int i = 0; i < 3 && e && !found; i++) found = mentions_size(k, e->arg[i]);
    return found;
}

/* A parameter of the semantics whose value follows from sizes that the schedule chooses. */
static bool follows_from_sizes(const struct instr *x, const char *name) {
    int p = x ? kernel_param_index(x->semantics, name) : -1;
    return p >= 0 && mentions_size(x->semantics, x->semantics->param[p].value);
}

static bool name_fits(const struct scope *s, const char *name) {
    static const char *const at_sync[] = {"channel", "phase", "pending", "bytes"};
    const struct instr *x = s->instr;
    for (int i = 0; i < s->machine->nparams; i++)
        if (!strcmp(s->machine->param[i].name, name)) return true;
    if (s->program && !strcmp(name, "instructions")) return true;
    for (int i = 0; i < 4 && (s->sync || x); i++)
        if (!strcmp(at_sync[i], name)) return true;
    if (!x) return false;
    if (kernel_param_index(x->semantics, name) >= 0 || instr_is_flag(x, name)) return true;
    for (int i = 0; i < x->nstride_names; i++)
        if (!strcmp(x->stride_name[i], name)) return true;
    return false;
}

static bool check_leaf(void *user, const struct mexpr *e) {
    struct walk *w = user;
    const struct scope *s = w->s;
    enum type t;
    double index;
    if (e->kind == MEXPR_NAME) {
        if (follows_from_sizes(s->instr, e->name))
            return wrong(w, e->name, "what it stands for, written out: the schedule chooses sizes");
        if (name_fits(s, e->name)) return true;
        return wrong(
            w, e->name,
            s->instr ? "a parameter, a size of the semantics, a stride name, a flag or a let name"
                     : "a parameter of the machine");
    }
    if (e->kind == MEXPR_FIELD || e->field) {
        if (e->kind == MEXPR_CALL && (e->nargs != 1 || !mexpr_constant(e->arg[0], &index)))
            return wrong(w, e->name, "a number as index");
        if ((s->states || s->instr) && state_field(s, e->name, e->field)) return true;
        return wrong(w, e->field,
                     "STATE.FIELD of a state of the machine, inside configure or an instruction");
    }
    if (!strcmp(e->name, "sizeof")) {
        const struct mexpr *a = e->arg[0];
        return (a->kind == MEXPR_NAME && type_parse(a->name, strlen(a->name), &t)) ||
               wrong(w, "sizeof", "sizeof(TYPE)");
    }
    return check_call(w, e);
}

static bool check_expression(struct walk *w, const struct mexpr *e) {
    return mexpr_names(e, check_leaf, w);
}

bool scope_check(const struct scope *s, const struct mexpr *e, const char *file, int line,
                 const char *what, struct diags *d) {
    struct walk w = {s, file, what, e->text, line ? line : e->line, d, true};
    check_expression(&w, e);
    return w.good;
}

bool emit_holes(const char *text, bool (*each)(void *, const char *, size_t, size_t), void *user,
                size_t *bad) {
    for (const char *p = text; (p = strstr(p, "${"));) {
        const char *start = p + 2, *q = start;
        int depth = 1;
        bool quoted = false;
        for (; *q; q++) {
            if (*q == '\'') quoted = !quoted;
            if (!quoted) depth += *q == '{' ? 1 : *q == '}' ? -1 : 0;
            if (!depth) break;
        }
        if (!*q) {
            *bad = (size_t)(p - text);
            return false;
        }
        if (!each(user, start, (size_t)(q - start), (size_t)(start - text))) return true;
        p = q + 1;
    }
    return true;
}
