/* Loops over tiles of a result that has a place as large as all of them: where only the bounds of
 * loops inside follow the tile, these run over all of it at once, and what is paid for each tile is
 * paid once. */
#include "scheduler/emit/stay_int.h"
#include <string.h>

struct tiles {
    const struct stay *c;
    const struct loop_node *loop;
    int64_t lo, hi;
};

static bool uses_only(const struct stay *c, const struct sx *x, int var) {
    for (int v = 0; v < c->w->s->nvars; v++)
        if (v != var && sx_uses(x, v)) return false;
    return true;
}

/* The loop inside goes over the tile, in each turn. */
static bool goes_over(const struct tiles *t, const struct loop_node *l) {
    struct schedule *s = t->c->w->s;
    int64_t *value = arena_array(t->c->w->arena, (size_t)s->nvars + 1, sizeof *value);
    if (l->step != 1 || l->table || !uses_only(t->c, l->lo, t->loop->var) ||
        !uses_only(t->c, l->hi, t->loop->var))
        return false;
    for (int64_t v = t->lo; v < t->hi; v += t->loop->step) {
        int64_t end = t->hi - v < t->loop->step ? t->hi : v + t->loop->step;
        value[t->loop->var] = v;
        if (sx_eval(l->lo, value) != v || sx_eval(l->hi, value) != end) return false;
    }
    return true;
}

static bool issue_uses(const struct stay *c, const struct issue_node *n, int var) {
    const struct instr *in = &c->w->m->instr[n->instr];
    bool uses = false;
    for (int i = 0; i < in->nranged; i++) uses |= sx_uses(n->size[i], var);
    for (int i = 0; i < in->nstride_names; i++) uses |= sx_uses(n->stride[i], var);
    for (int o = 0, k = 0; o < in->noperands; o++) {
        if (in->operand[o].accumulate) uses |= sx_uses(n->flag[k++], var);
        uses |= n->arg[o].place >= 0 && sx_uses(n->arg[o].offset, var);
    }
    for (int a = 0; n->stmt >= 0 && a < c->w->p->naxes; a++)
        uses |= n->base[a] && sx_uses(n->base[a], var);
    return uses;
}

static void count(int *balance, const struct signals *g) {
    for (int i = 0; g && i < g->npops; i++) balance[g->pop[i].sync]--;
    for (int i = 0; g && i < g->npushes; i++) balance[g->push[i].sync]++;
}

/* Each turn gives as many tokens as it takes, and nothing but bounds follows the tile; what makes
 * results stands in a loop over it (`inside`), and all else does in each turn what it did in the
 * first. */
static bool may_open(const struct tiles *t, const struct node *at, int n, bool inside) {
    int *balance = arena_array(t->c->w->arena, (size_t)t->c->w->m->nsyncs + 1, sizeof *balance);
    for (int i = 0; i < n; i++) {
        const struct loop_node *l = at[i].kind == NODE_LOOP ? at[i].loop : NULL;
        if (at[i].kind == NODE_FALLBACK || at[i].kind == NODE_CONFIGURE) return false;
        if (at[i].kind == NODE_ISSUE &&
            (issue_uses(t->c, at[i].issue, t->loop->var) || (at[i].issue->stmt >= 0 && !inside)))
            return false;
        bool over = l && goes_over(t, l);
        if (l && !over && (sx_uses(l->lo, t->loop->var) || sx_uses(l->hi, t->loop->var)))
            return false;
        if (l && ((over && inside) || !may_open(t, l->body, l->nbody, inside || over)))
            return false;
        if (!l) count(balance, node_signals(&at[i]));
    }
    for (int y = 0; y < t->c->w->m->nsyncs; y++)
        if (balance[y]) return false;
    return true;
}

static void open(const struct tiles *t, struct node *at, int n) {
    for (int i = 0; i < n; i++) {
        if (at[i].kind != NODE_LOOP) continue;
        if (goes_over(t, at[i].loop)) {
            at[i].loop->lo = t->loop->lo;
            at[i].loop->hi = t->loop->hi;
        }
        open(t, at[i].loop->body, at[i].loop->nbody);
    }
}

/* Loops that the machine runs are no longer than it can count. */
static bool counts_to(const struct tiles *t, const struct node *at, int n) {
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        struct hardware h;
        if (at[i].kind != NODE_LOOP) continue;
        if (at[i].loop->kind != LOOP_HARDWARE) {
            ok = counts_to(t, at[i].loop->body, at[i].loop->nbody);
            continue;
        }
        ok = hardware_issue(t->c->w->m, at[i].loop, &h);
        for (int k = 0; ok && k < h.nloops; k++)
            ok = !goes_over(t, h.loop[k]) || t->hi - t->lo <= h.counter[k]->max;
    }
    return ok;
}

void stay_tiles(const struct stay *c, struct nodes *out, const struct node *n) {
    struct tiles t = {.c = c, .loop = n->kind == NODE_LOOP ? n->loop : NULL};
    bool opens = t.loop && t.loop->kind == LOOP_SEQUENTIAL && sx_constant(t.loop->lo, &t.lo) &&
                 sx_constant(t.loop->hi, &t.hi) && t.hi > t.lo &&
                 may_open(&t, t.loop->body, t.loop->nbody, false) &&
                 counts_to(&t, t.loop->body, t.loop->nbody);
    if (!opens) {
        nodes_add(c->w, out, *n);
        return;
    }
    open(&t, t.loop->body, t.loop->nbody);
    for (int i = 0; i < t.loop->nbody; i++) stay_tiles(c, out, &t.loop->body[i]);
}
