/* What instructions need of states: who sets them, whether they can be set; and which instructions
 * take an operand that another one left in the unit. */
#include "ir/kernel.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/needs.h"
#include <string.h>

int need_operand(const struct instr *in, const struct need *need) {
    for (int o = 0; need->of && o < in->noperands; o++)
        if (!strcmp(in->operand[o].buffer, need->of)) return o;
    return -1;
}

/* ---- who sets a state ---- */

static bool orders(const struct edges *all, int a, int b) {
    return edge_find(all, a, -1, b).kind == EDGE_FREE || graph_distance(all, a, b, NULL) > 0;
}

int state_setter(const struct edges *all, int state, int queue) {
    const struct machine *m = all->m;
    for (int k = 0; k < m->nconfigures; k++) {
        const struct configure *c = &m->configure[k];
        if (c->nsets != 1 || c->sets[0] != state) continue;
        if (c->at_launch || c->at_program) return k;
        if (c->queue >= 0 && orders(all, c->queue, queue) && orders(all, queue, c->queue)) return k;
    }
    return -1;
}

static bool clobbers(const struct configure *c, int memory) {
    for (int k = 0; k < c->nclobbers; k++)
        if (c->clobbers[k] == memory) return true;
    return false;
}

bool state_is_fragile(const struct edges *all, const struct instr *in, const struct need *n) {
    int of = all->m->state[n->state].of, setter = state_setter(all, n->state, in->queue);
    return of >= 0 && setter >= 0 && clobbers(&all->m->configure[setter], of);
}

bool needs_exact(const struct edges *all, const struct instr *in, int operand) {
    for (int k = 0; k < in->nneeds; k++)
        if (need_operand(in, &in->need[k]) == operand && state_is_fragile(all, in, &in->need[k]))
            return true;
    return false;
}

const char *needs_why(const struct edges *all, const struct instr *in) {
    for (int k = 0; k < in->nneeds; k++) {
        const struct need *n = &in->need[k];
        if (state_from_addresses(all->m, n->state)) continue;
        if (n->nvalues > MAX_FIELDS) return "a state that it needs has too many fields";
        if (in->queue >= 0 && state_setter(all, n->state, in->queue) < 0)
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
            operand_may_be(&m->instr[k].operand[*operand], m->instr[first].operand[*operand].also))
            return k;
    }
    return -1;
}
