/* Local places that instructions read and nothing writes, whatever the loops do: what needs no walk
 * is seen in schedules of any size. */
#include "scheduler/verify/sym.h"
#include "scheduler/verify/verify_int.h"

struct ends {
    struct verify *v;
    bool *written;            /* [nplaces] by some instruction, or where copies of operands stay */
    const struct node **read; /* [nplaces] the first node that reads it */
};

static void mark_issue(struct ends *e, const struct node *node) {
    const struct issue_node *n = node->issue;
    const struct instr *in = &e->v->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++) {
        int place = n->arg[o].place, also = in->operand[o].also;
        for (int p = 0; p < e->v->s->nplaces && also >= 0; p++)
            e->written[p] |= e->v->s->place[p].memory == also;
        if (place < 0) continue;
        if (in->operand[o].role == ROLE_OUT || in->operand[o].role == ROLE_INOUT)
            e->written[place] = true;
        else if (!e->read[place])
            e->read[place] = node;
    }
}

static void mark_nodes(struct ends *e, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_ISSUE) mark_issue(e, &node[k]);
        if (node[k].kind == NODE_LOOP) mark_nodes(e, node[k].loop->body, node[k].loop->nbody);
    }
}

static bool is_filled(const struct ends *e, int place) {
    const struct schedule *s = e->v->s;
    if (e->written[place] || s->place[place].keep != KEEP_LOCAL) return true;
    for (int p = 0; p < s->nplaces; p++)
        if ((e->written[p] || s->place[p].keep != KEEP_LOCAL) &&
            places_share(&s->place[p], &s->place[place]))
            return true;
    return false;
}

bool places_filled(struct verify *v) {
    size_t n = (size_t)v->s->nplaces + 1;
    struct ends e = {.v = v};
    e.written = arena_array(&v->arena, n, sizeof *e.written);
    e.read = arena_array(&v->arena, n, sizeof *e.read);
    mark_nodes(&e, v->s->prepare.node, v->s->prepare.nnodes);
    mark_nodes(&e, v->s->run.node, v->s->run.nnodes);
    for (int p = 0; p < v->s->nplaces; p++) {
        if (!e.read[p] || is_filled(&e, p)) continue;
        v->node = e.read[p];
        return verify_error(v, "nothing writes place '%s', which is read", v->s->place[p].name);
    }
    return true;
}
