#include "scheduler/schedule/schedule_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const keep_name[4] = {"argument", "prepared", "workspace", "local"};
static const char *const loop_kind_name[4] = {"sequential", "parallel", "unrolled", "hardware"};

int kernel_axis_count(const struct kernel *k) {
    int n = 0;
    for (int i = 0; i < k->nitems; i++) n += k->item[i].kind == KITEM_AXIS;
    return n;
}

const struct kernel_axis *kernel_axis_at(const struct kernel *k, int axis) {
    for (int i = 0; i < k->nitems; i++)
        if (k->item[i].kind == KITEM_AXIS && axis-- == 0) return k->item[i].axis;
    return NULL;
}

static bool expr_names(const struct expr *x, const char *name) {
    if (x->kind == EXPR_NAME) return strcmp(x->name, name) == 0;
    if (x->kind != EXPR_OP) return false;
    for (int k = 0; k < 3; k++)
        if (x->arg[k] && expr_names(x->arg[k], name)) return true;
    return false;
}

bool kernel_axis_names(const struct kernel *k, int axis, int param) {
    return expr_names(kernel_axis_at(k, axis)->extent, k->param[param].name);
}

int instr_flag_count(const struct instr *in) {
    int n = 0;
    for (int o = 0; o < in->noperands; o++) n += in->operand[o].accumulate != NULL;
    return n;
}

int instr_flag_operand(const struct instr *in, int flag) {
    for (int o = 0; o < in->noperands; o++)
        if (in->operand[o].accumulate && flag-- == 0) return o;
    return -1;
}

static bool is_plain(const char *name) {
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.~'", *c)) return false;
    return true;
}

static void print_quoted(const char *text, struct text *out) {
    text_append(out, "\"", 1);
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') text_append(out, "\\", 1);
        text_append(out, c, 1);
    }
    text_append(out, "\"", 1);
}

static void print_name(const char *name, struct text *out) {
    if (is_plain(name))
        text_printf(out, "%s", name);
    else
        print_quoted(name, out);
}

static void print_word(const char *word, const char *name, struct text *out) {
    text_printf(out, "%s ", word);
    print_name(name, out);
}

static void print_double(double x, struct text *out) {
    if (isnan(x) || isinf(x)) {
        text_printf(out, isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
        return;
    }
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (strtod(digits, NULL) == x) break;
    }
    text_printf(out, "%s", digits);
}

/* Names may repeat (in inner scopes, or in a schedule made by hand): a later one is told apart by
 * its number. */
static void print_numbered(const char *name, int number, bool repeats, struct text *out) {
    struct text full = {0};
    text_printf(&full, repeats ? "%s~%d" : "%s", name, number);
    print_name(full.at, out);
    text_free(&full);
}

static void print_place_name(const struct schedule *s, int place, struct text *out) {
    int p = 0;
    while (strcmp(s->place[p].name, s->place[place].name) != 0) p++;
    print_numbered(s->place[place].name, place, p < place, out);
}

static void print_buffer(const struct program *p, int buffer, struct text *out) {
    int b = 0;
    while (strcmp(p->buffer[b].name, p->buffer[buffer].name) != 0) b++;
    print_numbered(p->buffer[buffer].name, buffer, b < buffer, out);
}

static void print_axis(const struct program *p, int axis, struct text *out) {
    int a = 0;
    while (strcmp(p->axis[a].name, p->axis[axis].name) != 0) a++;
    print_numbered(p->axis[axis].name, axis, a < axis, out);
}

static void print_signals(const struct schedule *s, const struct signals *g, struct text *out) {
    for (int k = 0; k < g->npops + g->npushes; k++) {
        bool pop = k < g->npops;
        const struct signal *one = pop ? &g->pop[k] : &g->push[k - g->npops];
        text_printf(out, " ");
        print_word(pop ? "pop" : "push", s->machine->sync[one->sync].id, out);
        if (one->rotating) {
            text_printf(out, "[");
            print_place_name(s, one->rotating - 1, out);
            if (one->channel) text_printf(out, " + %d", one->channel);
            text_printf(out, "]");
        } else if (one->channel) {
            text_printf(out, "[%d]", one->channel);
        }
        if (one->pending) text_printf(out, " pending %d", one->pending);
    }
}

static void indent_to(int indent, struct text *out) {
    for (int k = 0; k < indent; k++) text_append(out, "  ", 2);
}

static void separator(bool *first, struct text *out) {
    if (!*first) text_printf(out, ", ");
    *first = false;
}

static void print_binding(const struct schedule *s, const char *name, const struct sx *x,
                          bool *first, struct text *out) {
    separator(first, out);
    print_name(name, out);
    text_printf(out, " = ");
    sx_print(x, s, out);
}

static void print_arg(const struct schedule *s, const struct operand *o, const struct arg *a,
                      struct text *out) {
    print_name(o->buffer, out);
    text_printf(out, " = ");
    if (a->place < 0) {
        text_printf(out, "imm ");
        if (type_is_float(o->type))
            print_double(a->imm.f, out);
        else
            text_printf(out, "%" PRId64, a->imm.i);
        return;
    }
    print_place_name(s, a->place, out);
    int64_t constant;
    if (!sx_constant(a->offset, &constant) || constant != 0) {
        text_printf(out, " + ");
        sx_print(a->offset, s, out);
    }
    if (a->layout) text_printf(out, " layout %d", a->layout);
}

static void print_work(const struct schedule *s, const struct instr *in, const struct issue_node *n,
                       struct text *out) {
    const struct program *p = s->program;
    text_printf(out, "do %d", n->stmt);
    for (int q = 0; q < n->nalso; q++) text_printf(out, q ? ", %d" : " after %d", n->also[q]);
    if (n->init >= 0) text_printf(out, " init %d", n->init);
    text_printf(out, " axes (");
    bool first = true;
    for (int x = 0; x < kernel_axis_count(in->semantics); x++) {
        separator(&first, out);
        print_name(kernel_axis_at(in->semantics, x)->name, out);
        text_printf(out, ": ");
        if (n->axis[x] < 0)
            text_printf(out, "-");
        else
            print_name(p->axis[n->axis[x]].name, out);
    }
    text_printf(out, ") at (");
    first = true;
    for (int a = 0; a < p->naxes; a++) {
        if (!n->base[a]) continue;
        separator(&first, out);
        print_axis(p, a, out);
        text_printf(out, " = ");
        sx_print(n->base[a], s, out);
    }
    text_printf(out, ")");
}

static void print_issue(const struct schedule *s, const struct issue_node *n, int indent,
                        struct text *out) {
    const struct instr *in = &s->machine->instr[n->instr];
    print_word("issue", in->id, out);
    text_printf(out, "(");
    bool first = true;
    for (int k = 0; k < in->nranged; k++)
        print_binding(s, in->semantics->param[in->ranged[k]].name, n->size[k], &first, out);
    for (int k = 0; k < in->nstride_names; k++)
        print_binding(s, in->stride_name[k], n->stride[k], &first, out);
    for (int k = 0; k < instr_flag_count(in); k++)
        print_binding(s, in->operand[instr_flag_operand(in, k)].accumulate, n->flag[k], &first,
                      out);
    for (int o = 0; o < in->noperands; o++) {
        separator(&first, out);
        print_arg(s, &in->operand[o], &n->arg[o], out);
    }
    text_printf(out, ")");
    if (n->stmt >= 0) {
        text_printf(out, "\n");
        indent_to(indent + 1, out);
        print_work(s, in, n, out);
    }
    print_signals(s, &n->signals, out);
    text_printf(out, "\n");
}

static void print_fallback(const struct schedule *s, const struct fallback_node *n,
                           struct text *out) {
    const struct fallback *f = &s->machine->fallback[n->fallback];
    print_word("fallback", s->machine->unit[f->unit].id, out);
    text_printf(out, " %s do %d", language_name[f->language], n->stmt);
    bool first = true;
    for (int a = 0; a < s->program->naxes; a++) {
        if (!n->lo || !n->hi || !n->lo[a] || !n->hi[a]) continue;
        if (first) text_printf(out, " over (");
        separator(&first, out);
        print_axis(s->program, a, out);
        text_printf(out, " = ");
        sx_print(n->lo[a], s, out);
        text_printf(out, " to ");
        sx_print(n->hi[a], s, out);
    }
    if (!first) text_printf(out, ")");
    print_signals(s, &n->signals, out);
    text_printf(out, "\n");
}

static void print_setting(const struct schedule *s, const struct state_value *set,
                          struct text *out) {
    const struct state *state = &s->machine->state[set->state];
    bool first = true;
    print_name(state->id, out);
    if (state->count != 1 || state->of >= 0) text_printf(out, "[%d]", set->index);
    text_printf(out, " = (");
    for (int k = 0; k < state->nfields; k++) {
        separator(&first, out);
        sx_print(set->value[k], s, out);
    }
    text_printf(out, ")");
}

static void print_configure(const struct schedule *s, const struct configure_node *n,
                            struct text *out) {
    bool first = true;
    print_word("configure", s->machine->configure[n->configure].id, out);
    text_printf(out, "(");
    for (int k = 0; k < n->nsets; k++) {
        separator(&first, out);
        print_setting(s, &n->set[k], out);
    }
    text_printf(out, ")");
    print_signals(s, &n->signals, out);
}

static void print_nodes(const struct schedule *s, const struct node *node, int n, int indent,
                        struct text *out) {
    for (int k = 0; k < n; k++) schedule_print_node(s, &node[k], indent, true, out);
}

static void print_loop(const struct schedule *s, const struct loop_node *l, int indent, bool body,
                       struct text *out) {
    struct sx var = {.op = SX_VAR, .var = l->var};
    text_printf(out, "loop ");
    sx_print(&var, s, out);
    text_printf(out, " = ");
    sx_print(l->lo, s, out);
    text_printf(out, " to ");
    sx_print(l->hi, s, out);
    if (l->step != 1) text_printf(out, " step %" PRId64, l->step);
    if (l->kind != LOOP_SEQUENTIAL) text_printf(out, " %s", loop_kind_name[l->kind]);
    if (l->kind == LOOP_PARALLEL) {
        text_printf(out, " ");
        print_name(s->machine->unit[l->unit].id, out);
    }
    if (l->table) {
        text_printf(out, " table ");
        print_place_name(s, l->table - 1, out);
    }
    if (l->axis >= 0) {
        text_printf(out, " ");
        text_printf(out, "axis ");
        print_axis(s->program, l->axis, out);
    }
    if (!body) {
        text_printf(out, "\n");
        return;
    }
    text_printf(out, " {\n");
    print_nodes(s, l->body, l->nbody, indent + 1, out);
    indent_to(indent, out);
    text_printf(out, "}\n");
}

/* body false: of a loop, its head only. */
void schedule_print_node(const struct schedule *s, const struct node *n, int indent, bool body,
                         struct text *out) {
    indent_to(indent, out);
    switch (n->kind) {
    case NODE_LOOP:
        print_loop(s, n->loop, indent, body, out);
        return;
    case NODE_ISSUE:
        print_issue(s, n->issue, indent, out);
        return;
    case NODE_FALLBACK:
        print_fallback(s, n->fallback, out);
        return;
    case NODE_ROTATE:
        text_printf(out, "rotate ");
        print_place_name(s, n->rotate, out);
        break;
    case NODE_SYNC:
        print_word("sync", s->machine->queue[n->sync.queue].id, out);
        print_signals(s, &n->sync.signals, out);
        break;
    case NODE_CONFIGURE:
        print_configure(s, n->configure, out);
        break;
    }
    text_printf(out, "\n");
}

static bool rounded(const struct place *p, const struct buffer *b) {
    for (int d = 0; p->extent && d < b->ndims; d++)
        if (p->extent[d] != b->extent[d]) return true;
    return false;
}

static void print_table(const struct place *p, const struct buffer *b, struct text *out) {
    text_printf(out, " table [");
    for (int64_t e = 0; e < b->elements; e++) {
        union value x = type_load(b->type, p->table + (size_t)e * type_size(b->type));
        text_printf(out, "%s%" PRId64, e == 0 ? "" : e % 16 ? ", " : ",\n    ", x.i);
    }
    text_printf(out, "]");
}

static void print_place(const struct schedule *s, int place, struct text *out) {
    const struct place *p = &s->place[place];
    const struct buffer *b = &s->program->buffer[p->buffer];
    text_printf(out, "  place ");
    print_place_name(s, place, out);
    text_printf(out, ": ");
    print_buffer(s->program, p->buffer, out);
    text_printf(out, " ");
    print_word("in", s->machine->memory[p->memory].id, out);
    text_printf(out, " at %" PRId64 " bytes %" PRId64, p->address, p->bytes);
    if (p->slots != 1) text_printf(out, " slots %d", p->slots);
    text_printf(out, " %s", keep_name[p->keep]);
    if (p->layout) {
        text_printf(out, " layout ");
        print_quoted(p->layout_text, out);
    }
    if (rounded(p, b)) {
        text_printf(out, " extent [");
        for (int d = 0; d < b->ndims; d++)
            text_printf(out, d ? ", %" PRId64 : "%" PRId64, p->extent[d]);
        text_printf(out, "]");
    }
    if (p->table) print_table(p, b, out);
    text_printf(out, "\n");
}

static void print_section(const struct schedule *s, const char *name, const struct section *c,
                          struct text *out) {
    text_printf(out, "  %s {\n", name);
    print_nodes(s, c->node, c->nnodes, 2, out);
    text_printf(out, "  }\n");
}

static void print_open_cost(const struct schedule *s, const struct open_cost *c, struct text *out) {
    text_printf(out, "  cost ");
    print_double(c->cycles, out);
    for (int k = 0, n = 0; k < s->program->nsizes; k++)
        if (c->sizes >> k & 1) print_word(n++ ? "," : " each", s->program->size[k].name, out);
    text_printf(out, "\n");
}

void schedule_print(const struct schedule *s, struct text *out) {
    print_word("schedule", s->program->name, out);
    text_printf(out, " ");
    print_word("on", s->machine_name, out);
    text_printf(out, " version %d", SCHEDULE_VERSION);
    if (s->cost != 0) {
        text_printf(out, " cost ");
        print_double(s->cost, out);
    }
    text_printf(out, " {\n  program ");
    print_program_block(s->program, 2, out);
    chain_print(s->chain, out);
    for (int k = 0; k < s->nopen; k++) print_open_cost(s, &s->open[k], out);
    for (int p = 0; p < s->nplaces; p++) print_place(s, p, out);
    print_section(s, "prepare", &s->prepare, out);
    print_section(s, "run", &s->run, out);
    text_printf(out, "}\n");
}
