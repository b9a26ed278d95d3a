/* Statements of the scheduled program are numbered in the order of its text, so that a schedule
 * that is printed and read again means the same. */
#include "scheduler/emit/emit.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct numbering {
    struct program *p;
    int *now, n; /* [nstmts] new number of each statement; -1: not met yet */
};

static void number_items(struct numbering *x, struct item *item, int n) {
    for (int k = 0; k < n; k++) {
        if (item[k].kind == ITEM_RECUR) number_items(x, item[k].recur->item, item[k].recur->nitems);
        if (item[k].kind != ITEM_STMT) continue;
        if (x->now[item[k].stmt] < 0) x->now[item[k].stmt] = x->n++;
        item[k].stmt = x->now[item[k].stmt];
    }
}

static void number_nodes(const struct numbering *x, struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) number_nodes(x, node[k].loop->body, node[k].loop->nbody);
        if (node[k].kind == NODE_FALLBACK) node[k].fallback->stmt = x->now[node[k].fallback->stmt];
        if (node[k].kind != NODE_ISSUE) continue;
        struct issue_node *i = node[k].issue;
        if (i->stmt >= 0) i->stmt = x->now[i->stmt];
        for (int q = 0; q < i->nalso; q++) i->also[q] = x->now[i->also[q]];
        if (i->stmt >= 0 && i->init >= 0) i->init = x->now[i->init];
    }
}

static void number_forecasts(const struct numbering *x, struct schedule *s) {
    if (!s->forecast) return;
    struct forecast *f = arena_array(&s->arena, (size_t)x->p->nstmts + 1, sizeof *f);
    for (int k = 0; k < x->p->nstmts; k++) f[x->now[k]] = s->forecast[k];
    s->forecast = f;
}

void statements_number(struct work *w) {
    struct program *p = w->p;
    struct numbering x = {.p = p};
    struct stmt *old = arena_copy(w->arena, p->stmt, sizeof *old * (size_t)p->nstmts);
    x.now = arena_array(w->arena, (size_t)p->nstmts + 1, sizeof *x.now);
    for (int s = 0; s < p->nstmts; s++) x.now[s] = -1;
    number_items(&x, p->item, p->nitems);
    for (int s = 0; s < p->nstmts; s++) {
        if (x.now[s] < 0) x.now[s] = x.n++;
        p->stmt[x.now[s]] = old[s];
    }
    number_nodes(&x, w->s->prepare.node, w->s->prepare.nnodes);
    number_nodes(&x, w->s->run.node, w->s->run.nnodes);
    number_forecasts(&x, w->s);
}
