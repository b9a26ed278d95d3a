/* The ways to execute one statement: a needle on the whole, a needle on the root of its value with
 * the rest cut off into temporaries (maximal munch over the tree, what is cut off priced the same
 * way), or the fallback. */
#include "mapper/mapper_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CUT_SETS = 24, PAIR_STEPS = 100000, STATEMENT_CYCLES = 100 /* to start a loop nest */ };

struct cut_set {
    int n, node[MAX_CUTS];
};

struct cut_sets {
    struct cut_set at[MAX_CUT_SETS];
    int n;
};

struct estimator {
    struct covering *c;
    const struct program *p;
    int stmt;
    struct options *node; /* of each node as a statement of its own */
    bool *known;
};

static struct options list_options(struct estimator *e, const struct program *p, int stmt,
                                   int base);

/* ---- cut sets ---- */

static int compare_ints(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void add_cut_set(struct cut_sets *all, const struct needle *n, const struct binding_set *b) {
    struct cut_set s = {0};
    for (int o = 0; o < n->noperands; o++) {
        int node = b->operand[o].node;
        bool known = node < 0;
        for (int k = 0; k < s.n; k++) known |= s.node[k] == node;
        if (!known && s.n == MAX_CUTS) return;
        if (!known) s.node[s.n++] = node;
    }
    qsort(s.node, (size_t)s.n, sizeof *s.node, compare_ints);
    if (s.n == 0 || all->n == MAX_CUT_SETS) return;
    for (int i = 0; i < all->n; i++)
        if (all->at[i].n == s.n &&
            memcmp(all->at[i].node, s.node, (size_t)s.n * sizeof *s.node) == 0)
            return;
    all->at[all->n++] = s;
}

/* A temporary may not be much larger than what the statement touches anyway. */
static bool cuts_small(const struct program *p, const struct site *site, const struct cut_set *s) {
    double most = (double)p->buffer[site->s->dst.buffer].elements;
    for (int r = 0; r < site->s->nreads; r++)
        most = fmax(most, (double)p->buffer[site->s->read[r].buffer].elements);
    for (int k = 0; k < s->n; k++) {
        double elements = 1;
        for (int a = 0; a < p->naxes; a++)
            if (node_axes(&site->term, s->node[k]) & site->s->axes & UINT64_C(1) << a)
                elements *= (double)p->axis[a].extent;
        if (elements > 2 * most) return false;
    }
    return true;
}

static struct cut_sets find_cut_sets(struct covering *c, const struct program *p, int stmt) {
    struct cut_sets all = {.n = 0};
    struct arena scratch;
    arena_init(&scratch);
    struct site site = site_of(&scratch, p, stmt);
    for (int i = 0; i < c->needles->n; i++) {
        const struct needle *n = &c->needles->at[i];
        struct match match;
        if (!n->offered || n->copy) continue;
        match_terms(&scratch, c->machine, n, &site, site.term.root, true, &match);
        for (int k = 0; k < match.n; k++)
            if (imm_encodable(c->machine, n, &match.at[k])) add_cut_set(&all, n, &match.at[k]);
    }
    int kept = 0;
    for (int i = 0; i < all.n; i++)
        if (cuts_small(p, &site, &all.at[i])) all.at[kept++] = all.at[i];
    all.n = kept;
    arena_free(&scratch);
    return all;
}

/* ---- prices ---- */

static void add_option(struct covering *c, struct options *out, const struct program *p, int stmt,
                       struct option o, double more) {
    o.cost += STATEMENT_CYCLES + more + neighbour_price(c, p, stmt, &o);
    if (isinf(o.cost) || isnan(o.cost)) return;
    GROW(&c->scratch, out->at, out->n, out->cap);
    out->at[out->n++] = o;
}

static const struct options *node_options(struct estimator *e, int node) {
    if (e->known[node]) return &e->node[node];
    struct program view = *e->p;
    arena_init(&view.arena);
    view_part(&view, e->stmt, node);
    e->node[node] =
        list_options(e, &view, e->stmt, node - term_size(&e->p->stmt[e->stmt], node) + 1);
    e->known[node] = true;
    arena_free(&view.arena);
    return &e->node[node];
}

/* The cheapest way to bring the temporary that a cut makes to the mapping that reads it. */
static double cut_price(struct estimator *e, const struct program *view, int stmt,
                        const struct mapping *m, int node, int buffer) {
    const struct stmt *s = &view->stmt[stmt];
    const struct options *ways = node_options(e, node);
    double best = INFINITY;
    int noperands = e->c->machine->instr[m->instr].noperands;
    for (int o = 0; o < noperands; o++) {
        const struct mapped_operand *mo = &m->operand[o];
        if (mo->role == OPERAND_IMM || mo->read < 0 || s->read[mo->read].buffer != buffer) continue;
        for (int i = 0; i < ways->n; i++)
            best =
                fmin(best, ways->at[i].cost + transfer_price(e->c, view, stmt, &ways->at[i], m, o));
        return best;
    }
    return best;
}

/* Needles on the whole of a statement, which may be what cuts left of it; temporaries have the last
 * buffers of the view. */
static void add_needles(struct estimator *e, struct options *out, const struct program *p, int stmt,
                        const struct cut_set *cuts, int base) {
    struct covering *c = e->c;
    struct search s = {.arena = &c->scratch, .needles = c->needles, .limit = PAIR_STEPS};
    struct site site = site_of(&c->scratch, p, stmt);
    s.all = p->stmt[stmt].nops == 1; /* who continues a fill is decided, and wants one mapping */
    for (int i = 0; i < c->needles->n; i++)
        if (c->needles->at[i].offered) search_pair(&s, &c->needles->at[i], &site);
    for (int i = 0; i < s.nmappings; i++) {
        struct option o = {.map = s.mapping[i]};
        double more = 0;
        o.result = placing_of(c, p, &o.map, needle_of(c->needles, o.map.instr)->dst);
        for (int k = 0; cuts && k < cuts->n; k++)
            more += cut_price(e, p, stmt, &o.map, base + cuts->node[k], p->nbuffers - cuts->n + k);
        if (cuts) {
            o.ncuts = cuts->n;
            memcpy(o.cut, cuts->node, sizeof o.cut);
        }
        o.cost = reference_cycles(c->machine, c->machine->instr[o.map.instr].unit, o.map.cost) +
                 o.map.copies;
        add_option(c, out, p, stmt, o, more);
    }
}

static void add_munched(struct estimator *e, struct options *out, const struct program *p, int stmt,
                        int base) {
    struct cut_sets sets = find_cut_sets(e->c, p, stmt);
    for (int i = 0; i < sets.n; i++) {
        struct program view = *p;
        arena_init(&view.arena);
        view_rest(&view, stmt, sets.at[i].node, sets.at[i].n);
        add_needles(e, out, &view, stmt, &sets.at[i], base);
        arena_free(&view.arena);
    }
}

static int by_price(const void *a, const void *b) {
    const struct option *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    if (x->ncuts != y->ncuts) return x->ncuts - y->ncuts;
    if (x->fallback || y->fallback) return x->fallback - y->fallback;
    if (x->map.instr != y->map.instr) return x->map.instr - y->map.instr;
    return mapping_compare(&x->map, &y->map);
}

static bool on_device(const struct machine *m, const struct option *o) {
    int queue = o->fallback ? -1 : m->instr[o->map.instr].queue;
    return queue >= 0 && !machine_queue_is_host(m, queue);
}

/* Who names a device wants sums of products done there, however slow it is: the host's time is
 * reported apart. */
static void prefer_device(const struct machine *m, struct options *o) {
    int kept = 0;
    for (int i = 0; i < o->n; i++)
        if (on_device(m, &o->at[i])) o->at[kept++] = o->at[i];
    if (kept > 0) o->n = kept;
}

/* `base`: node of the estimator's statement that node 0 of this one is. */
static struct options list_options(struct estimator *e, const struct program *p, int stmt,
                                   int base) {
    struct options out = {0};
    struct option fallback = {.fallback = true, .cost = fallback_price(e->c, p, &p->stmt[stmt])};
    add_needles(e, &out, p, stmt, NULL, base);
    if (p->stmt[stmt].nwhere == 0) add_munched(e, &out, p, stmt, base);
    add_option(e->c, &out, p, stmt, fallback, 0);
    if (stmt_is_mac(p, &p->stmt[stmt])) prefer_device(e->c->machine, &out);
    if (out.n > 1) qsort(out.at, (size_t)out.n, sizeof *out.at, by_price);
    return out;
}

struct options options_of(struct covering *c, const struct program *p, int stmt) {
    int n = p->stmt[stmt].nops;
    struct estimator e = {.c = c, .p = p, .stmt = stmt};
    e.node = arena_array(&c->scratch, (size_t)n, sizeof *e.node);
    e.known = arena_array(&c->scratch, (size_t)n, sizeof *e.known);
    return list_options(&e, p, stmt, 0);
}
