/* A swizzle exchanges bytes inside aligned pieces of a memory. Where all that lies in a piece is
 * reached with one swizzle alone, bytes can be named by the addresses before it: each has one name,
 * and what overlaps, is read or is written is the same. Then no operand needs its swizzle. */
#include "scheduler/verify/verify_int.h"

#include <string.h>

enum { NOT_REACHED, PLAIN, FIRST };

struct swizzles {
    struct verify *v;
    int *of;                /* [nplaces] NOT_REACHED, PLAIN, or FIRST + the number of a swizzle */
    struct swizzle *number; /* by number */
    int n;
    bool mixed;
};

static int number_of(struct swizzles *x, struct swizzle s) {
    if (s.bits == 0) return PLAIN;
    for (int k = 0; k < x->n; k++)
        if (x->number[k].bits == s.bits && x->number[k].base == s.base &&
            x->number[k].shift == s.shift)
            return FIRST + k;
    x->number[x->n] = s;
    return FIRST + x->n++;
}

static void of_operand(struct swizzles *x, const struct operand *o, const struct arg *a) {
    struct swizzle s;
    if (a->place < 0) return;
    if (!swizzle_parse(o->layout[a->layout].swizzle, &s) || x->n >= x->v->s->nplaces) {
        x->mixed = true;
        return;
    }
    int *of = &x->of[a->place], number = number_of(x, s);
    /* what also remains elsewhere is not renamed there */
    if ((*of != NOT_REACHED && *of != number) || (number != PLAIN && o->also >= 0)) x->mixed = true;
    *of = number;
}

static void of_nodes(struct swizzles *x, const struct node *node, int n) {
    for (int k = 0; k < n && !x->mixed; k++) {
        if (node[k].kind == NODE_LOOP) of_nodes(x, node[k].loop->body, node[k].loop->nbody);
        if (node[k].kind != NODE_ISSUE) continue;
        const struct instr *in = &x->v->m->instr[node[k].issue->instr];
        for (int o = 0; o < in->noperands; o++)
            of_operand(x, &in->operand[o], &node[k].issue->arg[o]);
    }
}

/* Whole pieces, of a copy: the homes of buffers have layouts of their own. */
static bool whole(const struct place *p, struct swizzle s) {
    int64_t piece = INT64_C(1) << (s.base + s.bits);
    return p->keep == KEEP_LOCAL && p->address % piece == 0 && p->bytes % piece == 0;
}

static bool overlap(const struct place *a, const struct place *b) {
    return a->memory == b->memory && a->address < b->address + b->slots * b->bytes &&
           b->address < a->address + a->slots * a->bytes;
}

/* States in words of the memory, and what other operands leave there, have plain addresses. */
static bool plain_besides(const struct verify *v, int memory) {
    for (int k = 0; k < v->m->nstates; k++)
        if (v->m->state[k].of == memory) return true;
    for (int k = 0; k < v->m->ninstrs; k++)
        for (int o = 0; o < v->m->instr[k].noperands; o++)
            if (v->m->instr[k].operand[o].also == memory) return true;
    return false;
}

static bool apart(const struct swizzles *x, int p) {
    const struct place *place = x->v->s->place;
    if (x->of[p] < FIRST) return true;
    if (!whole(&place[p], x->number[x->of[p] - FIRST]) || plain_besides(x->v, place[p].memory))
        return false;
    for (int q = 0; q < x->v->s->nplaces; q++)
        if (x->of[q] != x->of[p] && overlap(&place[p], &place[q])) return false;
    return true;
}

void verify_rename_swizzled(struct verify *v) {
    const struct schedule *s = v->s;
    struct swizzles x = {.v = v};
    x.of = arena_array(&v->arena, (size_t)s->nplaces + 1, sizeof *x.of);
    x.number = arena_array(&v->arena, (size_t)s->nplaces + 1, sizeof *x.number);
    of_nodes(&x, s->prepare.node, s->prepare.nnodes);
    of_nodes(&x, s->run.node, s->run.nnodes);
    v->renamed = !x.mixed;
    for (int p = 0; p < s->nplaces && v->renamed; p++) v->renamed = apart(&x, p);
}
