/* Which nodes of a section make a function of their own. LLVM's code generator takes more than
 * linear time in a function's length, and equal functions are kept once: groups that were planned
 * alike differ only in where their homes are, which they are given as parameters. */
#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"

struct spans { /* of places whose content is a value of the function: registers, and slots that turn
                */
    const struct schedule *s;
    struct live_range *live; /* [nplaces] */
    bool *read;              /* [nplaces] the first access only reads */
    int node;
};

static void mention(struct spans *x, int place, bool reads) {
    const struct place *p = &x->s->place[place];
    if (x->s->machine->memory[p->memory].pass != PASS_VALUE && p->slots < 2) return;
    struct live_range *r = &x->live[place];
    if (r->last < 0) r->first = x->node, x->read[place] = reads;
    r->last = x->node;
}

static void mention_nodes(struct spans *x, const struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP) mention_nodes(x, node[i].loop->body, node[i].loop->nbody);
        if (node[i].kind == NODE_ROTATE) mention(x, node[i].rotate, false);
        if (node[i].kind != NODE_ISSUE) continue;
        const struct issue_node *issue = node[i].issue;
        const struct instr *in = &x->s->machine->instr[issue->instr];
        for (int o = 0; o < in->noperands; o++)
            if (issue->arg[o].place >= 0)
                mention(x, issue->arg[o].place,
                        in->operand[o].role == ROLE_IN || in->operand[o].role == ROLE_CONST);
    }
}

static bool overlap(const struct place *p, const struct place *q) {
    return p->memory == q->memory && p->address < q->address + q->bytes * q->slots &&
           q->address < p->address + p->bytes * p->slots;
}

/* What is read first was left there by another place of the same registers. */
static void reach_back(struct spans *x, int place) {
    struct live_range *r = &x->live[place];
    for (int q = 0; q < x->s->nplaces; q++)
        if (x->live[q].last >= 0 && x->live[q].first < r->first &&
            overlap(&x->s->place[q], &x->s->place[place]))
            r->first = x->live[q].first;
}

bool *section_cuts(struct cpu *c, const struct section *section) {
    const struct schedule *s = c->schedule;
    size_t places = (size_t)s->nplaces + 1, nodes = (size_t)section->nnodes + 2;
    bool *cut = arena_array(&c->arena, nodes, sizeof *cut);
    int *around = arena_array(&c->arena, nodes, sizeof *around);
    struct spans x = {.s = s,
                      .live = arena_array(&c->arena, places, sizeof *x.live),
                      .read = arena_array(&c->arena, places, sizeof *x.read)};
    for (int p = 0; p < s->nplaces; p++) x.live[p].last = -1;
    for (; x.node < section->nnodes; x.node++) mention_nodes(&x, &section->node[x.node], 1);
    for (int p = 0; p < s->nplaces; p++)
        if (x.live[p].last >= 0 && x.read[p]) reach_back(&x, p);
    for (int p = 0; p < s->nplaces; p++) {
        if (x.live[p].last < 0) continue;
        around[x.live[p].first + 1]++;
        around[x.live[p].last + 1]--;
    }
    for (int n = 0, open = 0; n <= section->nnodes; n++) cut[n] = (open += around[n]) == 0;
    return cut;
}

/* ---- homes ---- */
static void list_home(struct cpu *c, int place, struct home_list *out) {
    if (place < 0 || c->schedule->place[place].keep == KEEP_LOCAL || c->listed[place] == out->turn)
        return;
    c->listed[place] = out->turn;
    GROW(&c->arena, out->place, out->n, out->cap);
    out->place[out->n++] = place;
}

static void list_nodes(struct cpu *c, const struct node *node, int n, struct home_list *out) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP) list_nodes(c, node[i].loop->body, node[i].loop->nbody, out);
        if (node[i].kind == NODE_ISSUE)
            for (int o = 0; o < c->machine->instr[node[i].issue->instr].noperands; o++)
                list_home(c, node[i].issue->arg[o].place, out);
        if (node[i].kind != NODE_FALLBACK) continue;
        const struct stmt *t = &c->schedule->program->stmt[node[i].fallback->stmt];
        list_home(c, c->home[t->dst.buffer], out);
        for (int r = 0; r < t->nreads; r++) list_home(c, c->home[t->read[r].buffer], out);
    }
}

struct home_list homes_of(struct cpu *c, const struct node *node, int n) {
    struct home_list out = {.turn = ++c->turn};
    list_nodes(c, node, n, &out);
    return out;
}
#endif
