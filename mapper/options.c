/* The ways to execute one statement: a needle on the whole, a needle on the root of its value with
 * the rest cut off into temporaries (maximal munch over the tree, what is cut off priced the same
 * way), or the fallback. */
#include "mapper/body.h"
#include "mapper/mapper_int.h"
#include "mapper/rewrite_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NO_WAY_CYCLES = 1e15; /* what the fallback makes cannot reach its reader */
enum { MAX_CUT_SETS = 24, PAIR_STEPS = 100000 };

struct cut_set {
    int n, node[MAX_CUTS];
};

struct cut_sets {
    struct cut_set at[MAX_CUT_SETS];
    int n;
};

/* What can execute a statement, or what a cut leaves of it: found once, priced for each state of
 * the neighbours. Views are shallow: cuts elsewhere in the program close them. */
struct way {
    struct cut_set cuts;
    struct program view;
    bool open;
    struct mapping *map;
    int nmaps;
    struct option *own; /* without neighbours and cuts; NULL: not priced yet */
    int nown;
};

struct listing {    /* of the whole statement, or of a node of it as a statement of its own */
    int node, base; /* base: node of the statement that node 0 of this one is */
    struct way *way;
    int nways;
    struct program part;
    bool listed, open;
    int64_t turn; /* in which `options` were priced */
    struct options options;
};

struct estimate {
    struct arena arena;
    int stmt, nops;
    struct listing whole, *node;
};

struct estimator {
    struct covering *c;
    struct estimate *of;
    const struct program *p;
};

static const struct options *price_listing(struct estimator *, struct listing *);

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

double cut_elements(const struct program *p, const struct stmt *s) {
    double most = (double)p->buffer[s->dst.buffer].elements;
    for (int r = 0; r < s->nreads; r++)
        most = fmax(most, (double)p->buffer[s->read[r].buffer].elements);
    return 2 * most;
}

static bool cuts_small(const struct program *p, const struct site *site, const struct cut_set *s) {
    double most = cut_elements(p, site->s);
    for (int k = 0; k < s->n; k++) {
        double elements = 1;
        for (int a = 0; a < p->naxes; a++)
            if (node_axes(&site->term, s->node[k]) & site->s->axes & UINT64_C(1) << a)
                elements *= (double)p->axis[a].extent;
        if (elements > most) return false;
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
    double begin = c->machine->cycles.statement;
    out->floor = fmin(out->floor, o.cost + begin);
    o.cost += begin + more + neighbour_price(c, p, stmt, &o);
    if (isnan(o.cost)) return;
    if (isinf(o.cost) && (!o.fallback || c->machine->nfallbacks == 0)) return;
    if (isinf(o.cost)) o.cost = NO_WAY_CYCLES; /* its reader will run there too */
    GROW(&c->scratch, out->at, out->n, out->cap);
    out->at[out->n++] = o;
}

/* What it takes to read a buffer once, from the smallest cache that holds it or from home, by as
 * many instances at a time as it serves. */
static double stream_price(const struct machine *m, const struct buffer *b) {
    double bytes = (double)b->elements * (double)type_size(b->type);
    int from = m->home;
    for (int c = 0; c < m->nmemories; c++)
        if (m->memory[c].caches == from &&
            m->memory[c].usable * (double)m->memory[c].size >= bytes) {
            from = c;
            c = -1;
        }
    const struct memory *x = &m->memory[from];
    double many = 1;
    for (int u = 0; u < m->nunits; u++) many = fmax(many, instances_at_once(m, u));
    if (x->serves > 0) many = fmin(many, fmax(1, x->serves));
    return x->rate > 0 ? bytes / (x->rate * many) : 0;
}

double constants_price(const struct machine *m, const struct program *p, const bool *steady,
                       int from, int to) {
    double price = 0;
    bool *seen = memory_array((size_t)p->nbuffers + 1, sizeof *seen);
    for (int s = from; s < to; s++)
        for (int r = 0; !steady[s] && r < p->stmt[s].nreads; r++) {
            int b = p->stmt[s].read[r].buffer;
            if (!seen[b] && buffer_steady(p, b)) price += stream_price(m, &p->buffer[b]);
            seen[b] = true;
        }
    free(seen);
    return price;
}

/* Is the buffer read beside the statement's node? */
static bool read_beside(const struct program *p, int stmt, int node, int buffer) {
    const struct stmt *s = &p->stmt[stmt];
    for (int k = 0; k < p->nstmts; k++)
        if (k != stmt && stmt_reads(&p->stmt[k], buffer)) return true;
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer && !term_reads(s, node, r)) return true;
    return false;
}

/* A value made before the first run: what it takes longer to read than what need not be read then.
 */
static double opened_price(const struct machine *m, const struct program *p, int stmt, int node,
                           const struct buffer *opened) {
    const struct stmt *s = &p->stmt[stmt];
    double price = stream_price(m, opened);
    for (int r = 0; r < s->nreads; r++) {
        int buffer = s->read[r].buffer;
        bool spared = !read_beside(p, stmt, node, buffer);
        for (int k = 0; k < r; k++) spared &= s->read[k].buffer != buffer;
        if (spared) price -= stream_price(m, &p->buffer[buffer]);
    }
    return fmax(0, price) + prepared_price(m, (double)opened->elements);
}

/* The cheapest way to bring the temporary that a cut makes to the mapping that reads it. */
static double cut_price(struct estimator *e, const struct program *view, int stmt,
                        const struct mapping *m, int node, int buffer) {
    const struct stmt *s = &view->stmt[stmt];
    const struct options *ways = price_listing(e, &e->of->node[node]);
    double best = INFINITY;
    int noperands = e->c->machine->instr[m->instr].noperands;
    for (int o = 0; o < noperands; o++) {
        const struct mapped_operand *mo = &m->operand[o];
        if (mo->role == OPERAND_IMM || mo->read < 0 || s->read[mo->read].buffer != buffer) continue;
        for (int i = 0; i < ways->n && ways->at[i].cost < best; i++) /* cheapest first */
            best =
                fmin(best, ways->at[i].cost + transfer_price(e->c, view, stmt, &ways->at[i], m, o));
        return best;
    }
    return best;
}

/* ---- what a listing has ---- */

static const struct program *part_of(struct estimator *e, struct listing *l) {
    if (l->node < 0) return e->p;
    if (!l->open) {
        l->part = *e->p;
        arena_init(&l->part.arena);
        view_part(&l->part, e->of->stmt, l->node);
        l->open = true;
    }
    return &l->part;
}

static const struct program *view_of(struct estimator *e, struct listing *l, struct way *w) {
    if (w->cuts.n == 0) return part_of(e, l);
    if (!w->open) {
        w->view = *part_of(e, l);
        arena_init(&w->view.arena);
        view_rest(&w->view, e->of->stmt, w->cuts.node, w->cuts.n, e->c->machine->nfallbacks > 0);
        w->open = true;
    }
    return &w->view;
}

static void close_views(struct listing *l) {
    for (int k = 0; k < l->nways; k++) {
        if (l->way[k].open) arena_free(&l->way[k].view.arena);
        l->way[k].open = false;
    }
    if (l->open) arena_free(&l->part.arena);
    l->open = false;
}

static void find_mappings(struct estimator *e, struct listing *l, struct way *w) {
    struct covering *c = e->c;
    const struct program *p = view_of(e, l, w);
    struct search s = {
        .arena = &e->of->arena, .needles = c->needles, .limit = PAIR_STEPS, .unasked = true};
    struct site site = site_of(&e->of->arena, p, e->of->stmt);
    s.all = site.s->nops == 1; /* who continues a fill is decided, and wants one mapping */
    site_recall(&s, &site);
    for (int i = 0; i < c->needles->n; i++)
        if (c->needles->at[i].offered) search_pair(&s, &c->needles->at[i], &site);
    w->map = s.mapping;
    w->nmaps = s.nmappings;
}

/* Where several points meet in an element, each reads there what those before it left: what is made
 * of it beforehand, for all points, would not know. */
static bool may_be_cut(const struct stmt *s) {
    bool follows = s->combine != COMBINE_SET && stmt_reads(s, s->dst.buffer);
    return s->nwhere == 0 && !follows;
}

static void list_ways(struct estimator *e, struct listing *l) {
    const struct program *p = part_of(e, l);
    struct cut_sets sets = {.n = 0};
    if (may_be_cut(&p->stmt[e->of->stmt])) sets = find_cut_sets(e->c, p, e->of->stmt);
    l->nways = sets.n + 1;
    l->way = arena_array(&e->of->arena, (size_t)l->nways, sizeof *l->way);
    for (int k = 0; k < sets.n; k++) l->way[k + 1].cuts = sets.at[k];
    for (int k = 0; k < l->nways; k++) find_mappings(e, l, &l->way[k]);
    l->listed = true;
}

/* Can tiles be made one by one, in any order? A dimension of the result may go on in blocks
 * (16*b + l), each of which is a tile of the instruction, whole. The scheduler would refuse each
 * mapping by itself, and each refusal is a cover anew. */
static bool goes_by_tiles(const struct covering *c, const struct program *p,
                          const struct mapping *m) {
    const struct needle *n = needle_of(c->needles, m->instr);
    uint64_t tiles = 0;
    for (int x = 0; x < n->naxes; x++) {
        const struct group *g = &m->group[x];
        if (n->axis[x].ranged < 0 && g->n == 1 && p->axis[g->axis[0]].extent == n->axis[x].hi)
            tiles |= UINT64_C(1) << g->axis[0];
    }
    return stmt_ordered(p, &p->stmt[m->stmt]) < 0 && stmt_in_tiles(p, &p->stmt[m->stmt], tiles);
}

static int writer_before(const struct program *p, int stmt, const struct access *a) {
    for (int t = stmt - 1; t >= 0; t--)
        if (p->stmt[t].dst.buffer == a->buffer) return t;
    return -1;
}

/* Of a statement that sets, whether it goes on from sums at the same points, directly or through
 * the first that it reads of others: it may be done in the tiles of those, where the number of its
 * own tiles says nothing. Not where it reads what sums over its axes made, or a cut of fewer axes.
 */
static bool follows_sums(const struct program *p, int stmt) {
    bool sums = false;
    for (int next; stmt >= 0 && !sums; stmt = next) {
        const struct stmt *s = &p->stmt[stmt];
        next = -1;
        for (int a = 0; a < s->nreads; a++) {
            bool same = rw_access_axes(p, &s->read[a]) == s->axes;
            int t = writer_before(p, stmt, &s->read[a]);
            bool made = p->buffer[s->read[a].buffer].role == ROLE_TEMP; /* t < 0: by a cut */
            if (t < 0 && (same || !made)) continue;
            if (t < 0) return false;
            if (!same && (p->stmt[t].combine != COMBINE_SET || follows_sums(p, t))) return false;
            if (same && next < 0) next = t;
            sums |= same && p->stmt[t].combine != COMBINE_SET;
        }
    }
    return sums;
}

/* Sums of products go on from what the statement sets, in their tiles. */
static bool starts_products(const struct program *p, int stmt) {
    for (int t = stmt + 1; t < p->nstmts; t++)
        if (p->stmt[t].dst.buffer == p->stmt[stmt].dst.buffer) return stmt_is_mac(p, &p->stmt[t]);
    return false;
}

/* Products of matrices have a tile of two axes. */
static bool is_narrow(const struct needle *n, const struct mapping *map) {
    int rows = 0;
    for (int x = 0; x < n->naxes; x++) rows += !n->axis[x].reduction && map->group[x].n > 0;
    return rows < 2;
}

/* What the instances of a grid cost that have no tile: of statements that cannot be done in the
 * tiles of others, and of a product with a matrix of one row or column, or by an instruction for
 * one. All instances meet then (a launch). The fallback's threads share all of its points. */
static double idle_price(const struct covering *c, const struct program *p, int stmt,
                         const struct mapping *map) {
    const struct needle *n = needle_of(c->needles, map->instr);
    const struct stmt *s = &p->stmt[stmt];
    bool adds = s->combine != COMBINE_SET && s->axes == rw_access_axes(p, &s->dst);
    bool alone = stmt_is_mac(p, s) ? is_narrow(n, map)
                 : s->combine == COMBINE_SET
                     ? is_narrow(n, map) || (!follows_sums(p, stmt) && !starts_products(p, stmt))
                     : !adds;
    if (!alone) return 0;
    double busy = instances_busy(c->machine, n, p, map, 1);
    return reference_cycles(c->machine, c->machine->instr[map->instr].unit, map->cost) *
               (1 / busy - 1) +
           (busy < 1 ? meeting_price(c->machine) : 0);
}

/* What does not change with the neighbours' state. */
static void price_own(struct estimator *e, struct way *w, const struct program *p) {
    struct covering *c = e->c;
    int stmt = e->of->stmt;
    bool multiplies = stmt_is_mac(p, &p->stmt[stmt]),
         choice = c->machine->nfallbacks > 0; /* else the scheduler says why not */
    w->own = arena_array(&e->of->arena, (size_t)w->nmaps + 1, sizeof *w->own);
    w->nown = 0;
    for (int i = 0; i < w->nmaps; i++) {
        if (choice && !goes_by_tiles(c, p, &w->map[i])) continue;
        struct option o = {.map = w->map[i], .ncuts = w->cuts.n, .multiplies = multiplies};
        if (c->refused && refusals_have(c->refused, p, c->machine, &o.map)) continue;
        if (!rounding_fits(p, stmt, &c->machine->instr[o.map.instr], c->floats)) continue;
        o.result = placing_of(c, p, &o.map, needle_of(c->needles, o.map.instr)->dst);
        memcpy(o.cut, w->cuts.node, sizeof o.cut);
        o.cost = reference_cycles(c->machine, c->machine->instr[o.map.instr].unit, o.map.cost) +
                 idle_price(c, p, stmt, &o.map) + o.map.copies;
        w->own[w->nown++] = o;
    }
}

/* Temporaries have the last buffers of the view. */
static void price_way(struct estimator *e, struct listing *l, struct way *w, struct options *out) {
    const struct program *p = view_of(e, l, w), *whole = part_of(e, l);
    int stmt = e->of->stmt, n = w->cuts.n;
    if (!w->own) price_own(e, w, p);
    for (int i = 0; i < w->nown; i++) {
        struct option o = w->own[i];
        double more = 0;
        o.view = n > 0 ? p : NULL;
        for (int k = 0; k < n; k++) {
            int node = w->cuts.node[k], made = p->nbuffers - n + k;
            more += p->buffer[made].role == ROLE_CONST
                        ? opened_price(e->c->machine, whole, stmt, node, &p->buffer[made])
                        : cut_price(e, p, stmt, &o.map, l->base + node, made);
        }
        add_option(e->c, out, p, stmt, o, more);
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

bool has_device(const struct machine *m) {
    bool device = false;
    for (int q = 0; q < m->nqueues; q++) device |= !machine_queue_is_host(m, q);
    return device;
}

bool option_on_device(const struct machine *m, const struct option *o) {
    int queue = o->fallback ? -1 : m->instr[o->map.instr].queue;
    return queue >= 0 && !machine_queue_is_host(m, queue);
}

bool wanted_away(const struct covering *c, const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    return has_device(c->machine) && stmt_is_mac(p, s) && s->axes & ~rw_access_axes(p, &s->dst);
}

/* What is wanted on the device is best done by an instruction for the product and its sum; failing
 * that, where one of them is done. */
static void prefer_device(const struct machine *m, struct options *o) {
    bool both = false;
    int kept = 0;
    for (int i = 0; i < o->n; i++) both |= option_on_device(m, &o->at[i]) && o->at[i].multiplies;
    for (int i = 0; i < o->n; i++)
        if (option_on_device(m, &o->at[i]) && (o->at[i].multiplies || !both))
            o->at[kept++] = o->at[i];
    if (kept > 0) o->n = kept;
}

static const struct options *price_listing(struct estimator *e, struct listing *l) {
    if (l->turn == e->c->turn) return &l->options;
    if (!l->listed) list_ways(e, l);
    const struct program *p = part_of(e, l);
    const struct stmt *s = &p->stmt[e->of->stmt];
    struct option fallback = {.fallback = true, .cost = fallback_price(e->c, p, s)};
    struct options out = {.floor = INFINITY};
    for (int k = 0; k < l->nways; k++) price_way(e, l, &l->way[k], &out);
    add_option(e->c, &out, p, e->of->stmt, fallback, 0);
    if (wanted_away(e->c, p, e->of->stmt)) prefer_device(e->c->machine, &out);
    if (out.n > 1) qsort(out.at, (size_t)out.n, sizeof *out.at, by_price);
    l->options = out;
    l->turn = e->c->turn;
    return &l->options;
}

/* ---- estimates ---- */

struct estimate *estimate_open(const struct program *p, int stmt) {
    struct estimate *of = memory_array(1, sizeof *of);
    arena_init(&of->arena);
    of->stmt = stmt;
    of->nops = p->stmt[stmt].nops;
    of->whole.node = -1;
    of->node = arena_array(&of->arena, (size_t)of->nops, sizeof *of->node);
    for (int i = 0; i < of->nops; i++) {
        of->node[i].node = i;
        of->node[i].base = i - term_size(&p->stmt[stmt], i) + 1;
    }
    return of;
}

void estimate_close(struct estimate *of) {
    if (!of) return;
    close_views(&of->whole);
    for (int i = 0; i < of->nops; i++) close_views(&of->node[i]);
    arena_free(&of->arena);
    free(of);
}

static void renumber(struct listing *l, int from, int by) {
    close_views(l);
    for (int k = 0; k < l->nways; k++) {
        l->way[k].own = NULL;
        for (int i = 0; i < l->way[k].nmaps; i++) {
            struct mapping *m = &l->way[k].map[i];
            if (m->stmt >= from) m->stmt += by;
            if (m->init >= from) m->init += by;
        }
    }
}

void estimate_shift(struct estimate *of, int from, int by) {
    renumber(&of->whole, from, by);
    for (int i = 0; i < of->nops; i++) renumber(&of->node[i], from, by);
    if (of->stmt >= from) of->stmt += by;
}

struct options estimate_options(struct covering *c, struct estimate *of, const struct program *p) {
    struct estimator e = {c, of, p};
    c->turn++;
    return *price_listing(&e, &of->whole);
}

struct options options_of(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    if (!c->estimate[stmt]) c->estimate[stmt] = estimate_open(p, stmt);
    return estimate_options(c, c->estimate[stmt], p);
}
