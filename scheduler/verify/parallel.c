/* Parallel loops in the symbolic walk. Their iterations are walked in order, like those of any
 * loop. That stands for all of them at once where no iteration finds anything in the memories of
 * its instance, and where none touches at a home what another one writes: of each two boxes, one of
 * them written, some index is apart in any two iterations. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TOUCHES = 4096 };

/* ---- the instances ---- */
static bool own_memory(const struct sym *s, int place, int unit) {
    const struct place *p = &s->v->s->place[place];
    return p->keep == KEEP_LOCAL && unit_inside(s->v->m, s->v->m->memory[p->memory].unit, unit);
}

static bool meets(const struct sym *s, int a, int b) {
    const struct place *all = s->v->s->place;
    return a >= 0 && (a == b || places_share(&all[a], &all[b]));
}

static bool issue_changes(const struct sym *s, const struct issue_node *n, int place) {
    const struct instr *in = &s->v->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++)
        if (in->operand[o].also == s->v->s->place[place].memory ||
            (in->operand[o].role != ROLE_IN && meets(s, n->arg[o].place, place)))
            return true;
    return false;
}

/* Do the nodes write bytes of the place, or turn its slots? */
static bool changes(const struct sym *s, const struct node *node, int n, int place) {
    const struct verify *v = s->v;
    bool some = false;
    for (int k = 0; k < n && !some; k++) {
        if (node[k].kind == NODE_ROTATE) some = node[k].rotate == place;
        if (node[k].kind == NODE_ISSUE) some = issue_changes(s, node[k].issue, place);
        if (node[k].kind == NODE_LOOP)
            some = changes(s, node[k].loop->body, node[k].loop->nbody, place);
        if (node[k].kind == NODE_FALLBACK)
            some = meets(s, v->home[v->p->stmt[node[k].fallback->stmt].dst.buffer], place);
        if (node[k].kind == NODE_CONFIGURE) {
            const struct configure *c = &v->m->configure[node[k].configure->configure];
            for (int i = 0; i < c->nclobbers; i++)
                some |= c->clobbers[i] == v->s->place[place].memory;
        }
    }
    return some;
}

/* A place of each instance's own, or one that all of them only read. */
static bool own_place(struct sym *s, int place, const struct loop_node *l) {
    if (place < 0 || s->v->s->place[place].keep != KEEP_LOCAL || own_memory(s, place, l->unit))
        return true;
    return (sym_spend(s, 1) && !changes(s, l->body, l->nbody, place)) ||
           sym_fail(s, "instances of unit '%s' share place '%s'", s->v->m->unit[l->unit].id,
                    s->v->s->place[place].name);
}

/* Elements that lie in several instances of units lie in those of units inside. */
static bool spreads_inside(struct sym *s, const struct layout *map, int unit) {
    const struct machine *m = s->v->m;
    for (int k = 0; map && k < map->nplaces; k++) {
        if (!map->place[k].unit) continue;
        for (int u = 0; u < m->nunits; u++)
            if (!strcmp(m->unit[u].id, map->place[k].unit) &&
                (u == unit || !unit_inside(m, u, unit)))
                return sym_fail(s, "an operand lies in several instances of unit '%s'",
                                m->unit[u].id);
    }
    return true;
}

static bool own_issue(struct sym *s, const struct issue_node *n, const struct loop_node *l) {
    const struct instr *in = &s->v->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++)
        if (!own_place(s, n->arg[o].place, l) ||
            !spreads_inside(s, in->operand[o].layout[n->arg[o].layout].map, l->unit))
            return false;
    return true;
}

/* Of the parallel loop l. */
static bool own_nodes(struct sym *s, const struct node *node, int n, const struct loop_node *l) {
    bool good = true;
    for (int k = 0; k < n && good; k++) {
        if (node[k].kind == NODE_ROTATE) good = own_place(s, node[k].rotate, l);
        if (node[k].kind == NODE_ISSUE) good = own_issue(s, node[k].issue, l);
        if (node[k].kind == NODE_LOOP)
            good = own_place(s, node[k].loop->table - 1, l) &&
                   own_nodes(s, node[k].loop->body, node[k].loop->nbody, l);
    }
    return good;
}

/* Which slot is the current one depends on what the instance did before. */
void parallel_forget(struct sym *s, const struct loop_node *l) {
    for (int p = 0; p < s->v->s->nplaces; p++) {
        if (!own_memory(s, p, l->unit)) continue;
        regions_forget(s, p);
        s->slot[p] = (struct slot){.turned = true, .lost = true};
    }
    settings_forget(s);
}

static bool configures(const struct node *node, int n) {
    bool some = false;
    for (int k = 0; k < n && !some; k++)
        some = node[k].kind == NODE_CONFIGURE ||
               (node[k].kind == NODE_LOOP && configures(node[k].loop->body, node[k].loop->nbody));
    return some;
}

bool parallel_begin(struct sym *s, const struct loop_node *l, struct parallel *p) {
    if (!own_nodes(s, l->body, l->nbody, l)) return false;
    *p = (struct parallel){.loop = l, .around = s->parallel};
    if (!s->v->m->unit[l->unit].is_virtual && !configures(l->body, l->nbody))
        p->settings = settings_copy(s, NULL);
    s->parallel = p;
    parallel_forget(s, l);
    return true;
}

/* ---- what is touched ---- */
static bool touch_same(const struct touch *a, const struct touch *b) {
    bool same = a->place == b->place && a->of == b->of && a->write == b->write;
    for (int e = 0; e < a->nindices && same; e++)
        same = lin_same(&a->o[e], &b->o[e]) && lin_same(&a->end[e], &b->end[e]);
    return same;
}

static bool add(struct sym *s, struct parallel *p, const struct touch *x) {
    for (int k = p->n - 1; k >= 0; k--)
        if (touch_same(&p->at[k], x)) return true;
    if (p->n == MOST_TOUCHES) return sym_never(s, "a parallel loop touches too much to compare");
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 16;
        p->at = memory_grow(p->at, (size_t)p->cap * sizeof *p->at);
    }
    p->at[p->n++] = *x;
    return sym_spend(s, 1 + p->n / 16);
}

bool parallel_touch(struct sym *s, int place, const struct lin *o, const struct lin *n,
                    int nindices, bool write) {
    struct touch x = {.place = place, .nindices = nindices, .write = write};
    if (!s->parallel) return true;
    x.of = s->parallel->of;
    for (int e = 0; e < nindices; e++) {
        x.o[e] = x.end[e] = o[e];
        if (!lin_add(&x.end[e], &n[e], 1)) return sym_fail(s, "an index is out of range");
    }
    return add(s, s->parallel, &x);
}

static void fold_lin(const struct sym *s, struct lin *x, int counter, bool most) {
    int64_t k = x->k[counter];
    x->c += k * ((k > 0) == most ? s->hi[counter] : s->lo[counter]);
    x->k[counter] = 0;
}

static void fold_touch(const struct sym *s, struct touch *x, int counter) {
    for (int e = 0; e < x->nindices; e++) {
        fold_lin(s, &x->o[e], counter, false);
        fold_lin(s, &x->end[e], counter, true);
    }
}

static bool touch_moves(const struct touch *x, int counter) {
    for (int e = 0; e < x->nindices; e++)
        if (x->o[e].k[counter] || x->end[e].k[counter]) return true;
    return false;
}

void parallel_fold(struct sym *s, int counter) {
    for (struct parallel *p = s->parallel; p; p = p->around) {
        int n = p->n, same = 0;
        while (same < n && !touch_moves(&p->at[same], counter)) same++;
        p->n = same;
        for (int k = same; k < n; k++) {
            struct touch x = p->at[k];
            fold_touch(s, &x, counter);
            add(s, p, &x);
        }
    }
}

/* ---- apart ---- */
static bool boxes_apart(const struct sym *s, const struct touch *a, const struct touch *b) {
    for (int e = 0; e < a->nindices; e++)
        if (lin_le(s, &a->end[e], &b->o[e]) == YES || lin_le(s, &b->end[e], &a->o[e]) == YES)
            return true;
    return false;
}

/* Index e moves by as much in both, at least by the length of what both cover. */
static bool moves_apart(const struct sym *s, const struct touch *a, const struct touch *b, int e,
                        int counter) {
    int64_t step = a->o[e].k[counter], least, most, unused;
    struct lin low = a->o[e], high = a->end[e];
    if (a->end[e].k[counter] != step || b->o[e].k[counter] != step ||
        b->end[e].k[counter] != step || !lin_add(&low, &b->end[e], -1) ||
        !lin_add(&high, &b->o[e], -1))
        return false;
    if (step < 0) step = -step;
    lin_range(s, &low, &least, &unused);
    lin_range(s, &high, &unused, &most);
    return step > 0 && least + step >= 0 && most - step <= 0;
}

static bool iterations_apart(const struct sym *s, const struct touch *a, const struct touch *b,
                             int counter) {
    for (int e = 0; e < a->nindices; e++)
        if (moves_apart(s, a, b, e, counter)) return true;
    struct touch x = *a, y = *b;
    fold_touch(s, &x, counter);
    fold_touch(s, &y, counter);
    return boxes_apart(s, &x, &y);
}

static bool may_meet(const struct sym *s, const struct touch *a, const struct touch *b) {
    const struct place *p = &s->v->s->place[a->place], *q = &s->v->s->place[b->place];
    return (a->write || b->write) && (a->place == b->place || places_share(p, q));
}

static bool meet(struct sym *s, const struct touch *a, const struct touch *b) {
    return sym_fail(s, "iterations of a parallel loop are not known to %s of '%s'",
                    a->write && b->write ? "write different elements"
                                         : "leave alone what others read",
                    s->v->s->place[a->write ? a->place : b->place].name);
}

bool parallel_general_ends(struct sym *s, int counter, int n) {
    struct parallel *p = s->parallel;
    for (int i = n; i < p->n; i++)
        for (int k = i; k < p->n; k++)
            if (may_meet(s, &p->at[i], &p->at[k]) &&
                (p->at[i].place != p->at[k].place ||
                 !iterations_apart(s, &p->at[i], &p->at[k], counter)))
                return meet(s, &p->at[i], &p->at[k]);
    p->general++;
    for (int i = n; i < p->n; i++) p->at[i].of = IN_GENERAL - p->general;
    return sym_spend(s, 1 + (int64_t)(p->n - n) * (p->n - n) / 16);
}

static bool all_apart(struct sym *s, const struct parallel *p) {
    for (int i = 0; i < p->n; i++)
        for (int k = i + 1; k < p->n; k++)
            if (p->at[i].of != p->at[k].of && may_meet(s, &p->at[i], &p->at[k]) &&
                (p->at[i].place != p->at[k].place || !boxes_apart(s, &p->at[i], &p->at[k])))
                return meet(s, &p->at[i], &p->at[k]);
    return sym_spend(s, 1 + (int64_t)p->n * p->n / 32);
}

bool parallel_end(struct sym *s, bool good) {
    struct parallel *p = s->parallel;
    parallel_forget(s, p->loop);
    if (p->settings) memcpy(s->setting, p->settings, (size_t)s->nsettings * sizeof *s->setting);
    free(p->settings);
    if (good) good = all_apart(s, p);
    s->parallel = p->around;
    for (int k = 0; k < p->n && good && s->parallel; k++) {
        p->at[k].of = s->parallel->of;
        good = add(s, s->parallel, &p->at[k]);
    }
    free(p->at);
    return good;
}
