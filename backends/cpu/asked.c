#if ISAMAP_WITH_LLVM
#include "backends/cpu/asked.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>

int64_t asked_trips(const struct asked *x, const struct loop_node *l, int64_t *lo) {
    int64_t hi = sx_eval(l->hi, x->var);
    *lo = sx_eval(l->lo, x->var);
    return hi > *lo ? (hi - *lo + l->step - 1) / l->step : 0;
}

void asked_open(struct asked *x, struct function *f, const struct node *node, int n) {
    *x = (struct asked){.f = f, .node = node, .nnodes = n};
    x->var = memory_array((size_t)f->cpu->schedule->nvars + 1, sizeof *x->var);
    for (int i = 0; i < f->naround; i++) {
        int64_t lo, trips = asked_trips(x, f->around[i], &lo);
        x->var[f->around[i]->var] = lo + trips / 2 * f->around[i]->step;
    }
}

void asked_close(struct asked *x) {
    free(x->var);
}

static double near_bytes(const struct machine *m, const struct instr *in) {
    double bytes = 0;
    for (int c = in->from[0]; c >= 0 && m->memory[c].caches >= 0; c = m->memory[c].caches)
        if (m->memory[c].unit == in->unit)
            bytes = fmax(bytes, m->memory[c].usable * (double)m->memory[c].size);
    return bytes;
}

static bool reads_cache(const struct machine *m, const struct instr *in) {
    return m->memory[in->from[0]].line > 0;
}

/* What it reads or stores at home, of which its machine says how to ask for it; -1. */
static int asked_operand(const struct asked *x, const struct instr *in,
                         const struct issue_node *n) {
    const struct schedule *s = x->f->cpu->schedule;
    if (!in->nfrom || !instr_ahead(in, LANGUAGE_LLVM)) return -1;
    bool reads = reads_cache(s->machine, in);
    if (!reads && !x->stores) return -1;
    for (int o = 0; o < in->noperands; o++) {
        const struct place *p = n->arg[o].place < 0 ? NULL : &s->place[n->arg[o].place];
        if (p && (in->operand[o].role == ROLE_IN) == reads && p->keep != KEEP_LOCAL &&
            p->memory == s->machine->home && p->slots == 1)
            return o;
    }
    return -1;
}

static bool meet_issue(struct asked *x, const struct issue_node *n) {
    const struct instr *in = &x->f->cpu->machine->instr[n->instr];
    int o = asked_operand(x, in, n);
    if (o < 0) return true;
    if (x->n == MOST_ACCESSES) return false;
    struct access_at *a = &x->at[x->n++];
    if (x->met == MET_MAKE) {
        if (a->asked && a->in_sum == (x->sum != NULL)) build_ahead(x->f, n);
        return true;
    }
    const struct machine *m = x->f->cpu->machine;
    bool reads = reads_cache(m, in);
    int64_t at = sx_eval(n->arg[o].offset, x->var);
    if (x->met == MET_NOW)
        *a = (struct access_at){
            .place = n->arg[o].place, .now = at, .reads = reads, .in_sum = x->in_sum};
    else
        *(x->met == MET_NEXT ? &a->next : &a->before) = at;
    x->line = m->memory[reads ? in->from[0] : in->to[0]].line;
    if (reads) x->near = near_bytes(m, in);
    return true;
}

static bool meet_nodes(struct asked *x, const struct node *node, int n) {
    struct function *f = x->f;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_ISSUE) {
            if (!meet_issue(x, node[i].issue)) return false;
            continue;
        }
        if (node[i].kind != NODE_LOOP) return false;
        const struct loop_node *l = node[i].loop;
        if (x->own && l->kind != LOOP_UNROLLED) continue;
        int64_t lo, trips = asked_trips(x, l, &lo);
        if (l == x->sum) trips = 1;
        if (trips > MOST_ACCESSES) return false;
        struct lv was = f->var[l->var];
        bool inside = x->in_sum;
        x->in_sum |= l == x->sum;
        for (int64_t k = 0; k < trips; k++) {
            x->var[l->var] = lo + k * l->step;
            if (x->met == MET_MAKE && l != x->sum) f->var[l->var] = lv_const(f, x->var[l->var]);
            if (!meet_nodes(x, l->body, l->nbody)) return false;
        }
        x->in_sum = inside;
        f->var[l->var] = was;
    }
    return true;
}

bool asked_meet(struct asked *x, enum met met) {
    x->n = 0;
    x->met = met;
    return meet_nodes(x, x->node, x->nnodes);
}

/* Where the row that the access is in begins. */
static int64_t row_of(const struct asked *x, const struct access_at *a) {
    int64_t first = a->next, was = first + 1;
    while (was != first) {
        was = first;
        for (int k = 0; k < x->n; k++)
            if (x->at[k].place == a->place && x->at[k].next < first &&
                first - x->at[k].next < x->line)
                first = x->at[k].next;
    }
    return first;
}

int asked_once(struct asked *x) {
    int n = 0;
    for (int i = 0; i < x->n; i++) {
        struct access_at *a = &x->at[i];
        int64_t first = a->asked ? row_of(x, a) : 0;
        for (int k = 0; k < x->n && a->asked; k++) {
            int64_t at = x->at[k].next;
            a->asked = k == i || !x->at[k].asked || x->at[k].place != a->place || at < first ||
                       (at - first) / x->line != (a->next - first) / x->line || at < a->next ||
                       (at == a->next && k < i);
        }
        n += a->asked;
    }
    return n;
}
#endif
