/* Messages about nodes, which may be anything: only what has legal indices is printed. */
#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool sx_printable(const struct schedule *s, const struct sx *x, int depth) {
    if (!x || depth > SCHEDULE_TERMS || (unsigned)x->op > SX_OR) return false;
    if (x->op == SX_CONST) return true;
    if (x->op == SX_VAR) return x->var >= 0 && x->var < s->nvars;
    return sx_printable(s, x->a, depth + 1) && sx_printable(s, x->b, depth + 1);
}

static bool all_printable(const struct schedule *s, const struct sx *const *x, int n) {
    for (int k = 0; k < n; k++)
        if (!sx_printable(s, x[k], 0)) return false;
    return true;
}

static bool signal_printable(const struct schedule *s, const struct signal *g) {
    return g->sync >= 0 && g->sync < s->machine->nsyncs && g->rotating >= 0 &&
           g->rotating <= s->nplaces;
}

static bool signals_printable(const struct schedule *s, const struct signals *g) {
    for (int k = 0; k < g->npops; k++)
        if (!signal_printable(s, &g->pop[k])) return false;
    for (int k = 0; k < g->npushes; k++)
        if (!signal_printable(s, &g->push[k])) return false;
    return true;
}

static bool issue_printable(const struct schedule *s, const struct issue_node *n) {
    if (n->instr < 0 || n->instr >= s->machine->ninstrs) return false;
    const struct instr *in = &s->machine->instr[n->instr];
    if (!all_printable(s, n->size, in->nranged) ||
        !all_printable(s, n->stride, in->nstride_names) ||
        !all_printable(s, n->flag, instr_flag_count(in)))
        return false;
    for (int o = 0; o < in->noperands; o++)
        if (n->arg[o].place >= s->nplaces ||
            (n->arg[o].place >= 0 && !sx_printable(s, n->arg[o].offset, 0)))
            return false;
    if (n->stmt < 0) return signals_printable(s, &n->signals);
    if (!n->axis || !n->base) return false;
    for (int x = 0; x < kernel_axis_count(in->semantics); x++)
        if (n->axis[x] >= s->program->naxes) return false;
    for (int a = 0; a < s->program->naxes; a++)
        if (n->base[a] && !sx_printable(s, n->base[a], 0)) return false;
    return signals_printable(s, &n->signals);
}

static bool fallback_printable(const struct schedule *s, const struct fallback_node *n) {
    if (n->fallback < 0 || n->fallback >= s->machine->nfallbacks) return false;
    for (int a = 0; n->lo && n->hi && a < s->program->naxes; a++)
        if (n->lo[a] && n->hi[a] &&
            (!sx_printable(s, n->lo[a], 0) || !sx_printable(s, n->hi[a], 0)))
            return false;
    return signals_printable(s, &n->signals);
}

static bool loop_printable(const struct schedule *s, const struct loop_node *l) {
    return l->var >= 0 && l->var < s->nvars && l->table >= 0 && l->table <= s->nplaces &&
           sx_printable(s, l->lo, 0) && sx_printable(s, l->hi, 0) &&
           (l->kind != LOOP_PARALLEL || (l->unit >= 0 && l->unit < s->machine->nunits)) &&
           l->axis < s->program->naxes;
}

static bool configure_printable(const struct schedule *s, const struct configure_node *n) {
    if (n->configure < 0 || n->configure >= s->machine->nconfigures) return false;
    for (int k = 0; k < n->nsets; k++)
        if (n->set[k].state < 0 || n->set[k].state >= s->machine->nstates ||
            !all_printable(s, n->set[k].value, s->machine->state[n->set[k].state].nfields))
            return false;
    return signals_printable(s, &n->signals);
}

static bool node_printable(const struct schedule *s, const struct node *n) {
    switch (n->kind) {
    case NODE_LOOP:
        return loop_printable(s, n->loop);
    case NODE_ISSUE:
        return issue_printable(s, n->issue);
    case NODE_FALLBACK:
        return fallback_printable(s, n->fallback);
    case NODE_ROTATE:
        return n->rotate >= 0 && n->rotate < s->nplaces;
    case NODE_CONFIGURE:
        return configure_printable(s, n->configure);
    case NODE_SYNC:
        return n->sync.queue >= 0 && n->sync.queue < s->machine->nqueues &&
               signals_printable(s, &n->sync.signals);
    }
    return false;
}

/* On one line. */
static void squeeze(struct text *t) {
    size_t n = 0;
    for (size_t k = 0; k < t->n; k++) {
        bool blank = t->at[k] == ' ' || t->at[k] == '\n';
        if (blank && (n == 0 || t->at[n - 1] == ' ')) continue;
        t->at[n++] = blank ? ' ' : t->at[k];
    }
    while (n > 0 && t->at[n - 1] == ' ') n--;
    t->n = n;
    if (t->at) t->at[n] = 0;
}

static void vars_text(const struct verify *v, struct text *out) {
    bool first = true;
    for (int k = 0; v->live && k < v->s->nvars; k++) {
        if (!v->live[k]) continue;
        struct sx var = {.op = SX_VAR, .var = k};
        text_printf(out, first ? " at " : ", ");
        sx_print(&var, v->s, out);
        text_printf(out, " = %" PRId64, v->var[k]);
        first = false;
    }
}

bool verify_limit(struct verify *v, const char *fmt, ...) {
    va_list args;
    char what[512];
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (!v->limit.n) text_printf(&v->limit, "%s", what);
    v->stop = true;
    return false;
}

bool verify_error(struct verify *v, const char *fmt, ...) {
    va_list args;
    if (v->limit.n) return false;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *what = memory_bytes((size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(what, (size_t)n + 1, fmt, args);
    va_end(args);
    struct text node = {0};
    if (v->node && node_printable(v->s, v->node)) {
        schedule_print_node(v->s, v->node, 0, false, &node);
        squeeze(&node);
        vars_text(v, &node);
    }
    if (node.at)
        diag_line(v->diags, v->s->program->name, 0, 0, "in '%s': %s", node.at, what);
    else
        diag_line(v->diags, v->s->program->name, 0, 0, "%s", what);
    free(what);
    text_free(&node);
    if (++v->errors >= MAX_ERRORS) v->stop = true;
    return false;
}
