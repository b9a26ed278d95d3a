#include "mapper/mirror.h"
#include <string.h>

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Each a name of its own that the schedule chooses, or the same text. */
static bool strides_alike(const struct instr *in, const struct operand_layout *a,
                          const struct operand_layout *b) {
    for (int i = 0; i < a->nstrides; i++) {
        int chosen = 0;
        for (int k = 0; k < in->nstride_names; k++)
            chosen += same_text(a->stride[i]->text, in->stride_name[k]) +
                      same_text(b->stride[i]->text, in->stride_name[k]);
        if (chosen != 2 && !same_text(a->stride[i]->text, b->stride[i]->text)) return false;
    }
    return true;
}

static bool layouts_alike(const struct instr *in, const struct operand *a,
                          const struct operand *b) {
    if (a->nlayouts != b->nlayouts) return false;
    for (int i = 0; i < a->nlayouts; i++) {
        const struct operand_layout *x = &a->layout[i], *y = &b->layout[i];
        if (!same_text(x->map_text, y->map_text) || !same_text(x->swizzle, y->swizzle) ||
            x->let_name || y->let_name || x->nstrides != y->nstrides || !strides_alike(in, x, y))
            return false;
    }
    return true;
}

static bool operands_alike(const struct machine *m, const struct needle *n, int a, int b) {
    const struct instr *in = &m->instr[n->instr];
    const struct operand *x = &in->operand[a], *y = &in->operand[b];
    const struct access *at = n->access[a], *as = n->access[b];
    if (!at || !as || x->type != y->type || x->role != y->role || x->also != y->also ||
        x->has_pass != y->has_pass || x->pass != y->pass || x->align || y->align ||
        x->nmemories != y->nmemories ||
        memcmp(x->memory, y->memory, sizeof *x->memory * (size_t)x->nmemories) != 0)
        return false;
    int ndims = n->program->buffer[at->buffer].ndims;
    size_t row = (size_t)n->program->naxes + 1;
    return ndims == n->program->buffer[as->buffer].ndims && !at->has_fill && !as->has_fill &&
           memcmp(at->coef, as->coef, sizeof *at->coef * row * (size_t)ndims) == 0 &&
           layouts_alike(in, x, y);
}

static bool same_groups(const struct mapping *a, const struct mapping *b) {
    if (a->ngroups != b->ngroups) return false;
    for (int x = 0; x < a->ngroups; x++) {
        const struct group *g = &a->group[x], *h = &b->group[x];
        if (g->n != h->n || memcmp(g->axis, h->axis, sizeof *g->axis * (size_t)g->n) != 0)
            return false;
    }
    return true;
}

bool mapping_mirrors(const struct machine *m, const struct needle *n, const struct mapping *a,
                     const struct mapping *b) {
    const struct instr *in = &m->instr[n->instr];
    int swapped[2], nswapped = 0;
    if (a->instr != b->instr || a->init != b->init || a->nalso || b->nalso || n->nparts ||
        n->twins || in->nrequires || in->nneeds || in->nloops || !same_groups(a, b))
        return false;
    for (int k = 0; k < n->noperands; k++) {
        const struct mapped_operand *x = &a->operand[k], *y = &b->operand[k];
        if (x->role != y->role) return false;
        if (x->role == OPERAND_IMM || x->read == y->read) continue;
        if (x->role != OPERAND_READ || nswapped == 2) return false;
        swapped[nswapped++] = k;
    }
    return nswapped == 2 && a->operand[swapped[0]].read == b->operand[swapped[1]].read &&
           a->operand[swapped[1]].read == b->operand[swapped[0]].read &&
           operands_alike(m, n, swapped[0], swapped[1]);
}
