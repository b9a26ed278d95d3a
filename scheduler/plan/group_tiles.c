/* Where tensors that do not leave their group stay: a tile of each, of one turn of the shared
 * loops. It is the reader's own hold where the maker can write there (SCHEDULING §7, "Producer");
 * else it stays in a memory that hardware manages, as a place of its own or, where the host works
 * with it too, as a home whose tiles lie over one another. What is dead leaves its room to others.
 */
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* ---- which tensors ---- */

/* Nobody but members touches it, and no value of it is needed later. */
static bool is_inner(const struct work *w, const struct draft *d, int buffer) {
    int count;
    if (w->p->buffer[buffer].role != ROLE_TEMP || recur_carries(w, buffer) ||
        !draft_shares(d, buffer))
        return false;
    const int *use = buffer_uses(w, buffer, &count);
    for (int i = 0; i < count; i++) {
        int part = d->part_of[use[i]];
        if (w->in_prepare[use[i]] || part < d->first || part > d->last || !d->in[part - d->first])
            return false;
    }
    return true;
}

/* The unit on which all members run; -1: they have several, or none. */
static int unit_of(const struct work *w, const struct draft *d) {
    int unit = -1;
    for (int m = 0; m <= d->last - d->first; m++) {
        const struct nest *n = d->in[m] ? draft_nest(w, d, m) : NULL;
        if (!n) continue;
        const struct task *t = &w->task[nest_head(n)];
        int u = w->m->queue[t->needle->in->queue].unit;
        if (unit >= 0 && unit != u) return -1;
        unit = u;
    }
    return unit;
}

/* The outermost cache that the unit has alone, or the next one inside that cache; -1: none is. */
static int cache_of(const struct work *w, int unit, int outside) {
    int best = -1;
    for (int m = 0; m < w->m->nmemories && unit >= 0; m++) {
        const struct memory *mem = &w->m->memory[m];
        if (mem->caches < 0 || mem->size <= 0 || !memory_is_home(w->m, m) || mem->unit == 0 ||
            !unit_inside(w->m, unit, mem->unit) || (outside >= 0 && mem->caches != outside))
            continue;
        if (best < 0 || mem->size > w->m->memory[best].size) best = m;
    }
    return best;
}

/* ---- how large ---- */

/* Of the dimension that loop k of the prefix walks; all of it where the first member's window is.
 */
static int64_t tile_extent(const struct work *w, const struct draft *d, const struct nest_group *g,
                           const struct passed *p, int dim) {
    int64_t extent = work_home(w, p->buffer)->extent[dim];
    const struct nest *first = draft_nest(w, d, 0);
    for (int k = 0; k < g->nprefix; k++) {
        if (p->dim[k] != dim) continue;
        for (int x = 0; first && d->in[0] && x < first->nwindows; x++)
            if (first->window[x].shared == g->prefix[k].axis && first->window[x].n &&
                p->buffer == d->shared[g->shared[k]].slid)
                return first->window[x].n;
        return g->prefix[k].tile < w->p->buffer[p->buffer].extent[dim] ? g->prefix[k].tile : extent;
    }
    return extent;
}

/* The reader's hold, with the zeros around it that are read. */
static void make_own(struct work *w, const struct draft *d, const struct nest_group *g,
                     struct passed *p, int operand) {
    struct home *h = home_own(w, p->buffer);
    const struct buffer *b = &w->p->buffer[p->buffer];
    const struct task *t = &w->task[draft_nest(w, d, p->reader)->core];
    const struct opnd *o = &t->op[operand];
    const struct access *used = &w->p->stmt[t->stmt].read[o->read];
    struct geom inside = o->geom;
    inside.plain_home = false; /* there it lies as it is used */
    *h = home_packed(w, p->buffer, &inside);
    h->memory = o->memory;
    for (int k = 0; k < b->ndims; k++) {
        int64_t lo, hi, all = b->extent[k];
        access_range(w->p, &w->p->stmt[t->stmt], used, k, &lo, &hi);
        h->extent[k] = tile_extent(w, d, g, p, k);
        h->border[k] = lo < 0 ? -lo : 0;
        p->bordered |= lo < 0 || hi >= all;
        h->extent[k] += h->border[k] + (hi >= all ? hi - all + 1 : 0);
    }
}

static void make_cached(struct work *w, const struct draft *d, const struct nest_group *g,
                        const struct passed *p, int memory) {
    struct home *h = home_own(w, p->buffer);
    int ndims = w->p->buffer[p->buffer].ndims;
    int64_t *extent = arena_copy(w->arena, h->extent, sizeof *extent * (size_t)ndims);
    h->memory = memory;
    for (int k = 0; k < ndims; k++) extent[k] = tile_extent(w, d, g, p, k);
    h->extent = extent;
}

/* A home that the host finds its way in: tiles lie over one another, where all are equal. */
static bool make_folded(struct work *w, const struct nest_group *g, const struct passed *p,
                        int memory) {
    const struct buffer *b = &w->p->buffer[p->buffer];
    for (int k = 0; k < g->nprefix; k++)
        if (p->dim[k] >= 0 && b->extent[p->dim[k]] % g->prefix[k].tile) return false;
    struct home *h = home_own(w, p->buffer);
    h->fold = arena_array(w->arena, (size_t)b->ndims + 1, sizeof *h->fold);
    for (int k = 0; k < g->nprefix; k++)
        if (p->dim[k] >= 0) h->fold[p->dim[k]] = g->prefix[k].tile;
    for (int k = b->ndims - 1; k >= 0 && !h->packed; k--)
        h->at[h->n++] = (struct coord){k, 1, 0, false};
    h->packed = true;
    h->near = memory;
    return true;
}

static bool make_inside(struct work *w, const struct passed *p, int made, int memory) {
    struct home *h = home_own(w, p->buffer);
    h->lies_in = 1 + made;
    h->near = memory;
    return true;
}

/* Of a tile. */
static int64_t bytes_of(const struct work *w, const struct draft *d, const struct nest_group *g,
                        const struct passed *p) {
    const struct home *h = work_home(w, p->buffer);
    const struct buffer *b = &w->p->buffer[p->buffer];
    int64_t align = h->is_tile ? w->m->memory[h->memory].align : 1, elements = h->elements;
    for (int k = 0; k < b->ndims && h->lies_in; k++)
        elements = elements / b->extent[k] * tile_extent(w, d, g, p, k);
    int64_t bytes = elements * (int64_t)type_size(b->type);
    return align > 1 ? (bytes + align - 1) / align * align : bytes;
}

static bool is_host(const struct draft *d, int buffer) {
    for (int i = 0; i < d->ntouches; i++)
        if (d->touch[i].buffer == buffer && d->part[d->first + d->touch[i].member].nest < 0)
            return true;
    return false;
}

/* ---- in a result's home ---- */

/* Each index of the result is the value of one axis, from end to end, and every axis is one. */
static bool makes_all(const struct work *w, const struct stmt *st) {
    const struct buffer *b = &w->p->buffer[st->dst.buffer];
    uint64_t left = st->axes;
    for (int d = 0; d < b->ndims; d++) {
        int a = access_lone(w->p, &st->dst, d, st->axes);
        if (a < 0 || !(left >> a & 1) || w->p->axis[a].extent != b->extent[d]) return false;
        left &= ~(UINT64_C(1) << a);
    }
    return !left && !st->nwhere;
}

static bool is_plain(const struct work *w, int buffer) {
    const struct home *h = work_home(w, buffer);
    return h->memory == w->m->home && !h->is_tile && !h->packed && !h->fold && !h->lies_in;
}

static bool alike(const struct buffer *a, const struct buffer *b) {
    return a->type == b->type && a->ndims == b->ndims &&
           !memcmp(a->extent, b->extent, sizeof *a->extent * (size_t)a->ndims);
}

/* In the nest of its last reader every access is to the element at hand. */
static bool reads_there(const struct work *w, const struct draft *d, const struct passed *p,
                        const struct access *at) {
    bool there = true;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (t->buffer == p->buffer && t->member == p->last)
            there &= !t->access->has_fill && access_same_index(w->p, t->access, at);
    }
    return there;
}

/* Turns that are apart: no window of one reaches into another. */
static bool turns_apart(const struct draft *d, const struct nest_group *g, const struct passed *p) {
    bool apart = true;
    for (int k = 0; k < g->nprefix; k++)
        apart &= p->dim[k] >= 0 && d->shared[g->shared[k]].window.axis < 0;
    return apart;
}

/* Does the statement make a result of the program, before anybody else touches it, whose elements
 * may lie where the tensor's do? A temporary may become a tile itself, in a larger group. */
static bool makes_result(const struct work *w, const struct draft *d, const struct nest_group *g,
                         const struct passed *p, int stmt) {
    const struct stmt *st = &w->p->stmt[stmt];
    int n, made = st->dst.buffer;
    for (int i = 0; i < g->npassed; i++) /* another tensor lies there */
        if (work_home(w, g->passed[i].buffer)->lies_in == 1 + made) return false;
    return st->combine == COMBINE_SET && w->p->buffer[made].role == ROLE_OUT &&
           !recur_carries(w, made) && buffer_uses(w, made, &n)[0] == stmt && is_plain(w, made) &&
           alike(&w->p->buffer[made], &w->p->buffer[p->buffer]) && makes_all(w, st) &&
           reads_there(w, d, p, &st->dst);
}

/* The nest that reads the tensor last makes a result of it, element by element: the tensor may lie
 * where the result will. Then the result's lines come from far away while the tensor is made, and
 * not once more. -1: there is no such result, or a grid, whose instances have memories for tiles.
 */
static int result_of(const struct work *w, const struct draft *d, const struct nest_group *g,
                     const struct passed *p) {
    int n, last = buffer_uses(w, p->buffer, &n)[n - 1];
    const struct nest *x = draft_nest(w, d, p->last);
    bool read = false;
    if (!x || x->is_grid || !turns_apart(d, g, p) || !is_plain(w, p->buffer)) return -1;
    for (int i = 0; i < x->nchain; i++) {
        int stmt = w->task[x->chain[i].task].stmt;
        read |= stmt == last;
        if (read && makes_result(w, d, g, p, stmt)) return w->p->stmt[stmt].dst.buffer;
    }
    return -1;
}

/* False: it keeps its home. */
static bool make_tile(struct work *w, const struct draft *d, const struct nest_group *g,
                      struct passed *p, int cache) {
    int operand, made, ndims = w->p->buffer[p->buffer].ndims;
    p->given = tile_own(w, d, p->buffer, &p->reader, &operand) ? operand : -1;
    if (p->given >= 0)
        make_own(w, d, g, p, operand);
    else if (cache < 0)
        return false;
    else if ((made = result_of(w, d, g, p)) >= 0)
        return make_inside(w, p, made, cache);
    else if (is_host(d, p->buffer))
        return make_folded(w, g, p, cache) && (home_run(home_own(w, p->buffer), ndims), true);
    else
        make_cached(w, d, g, p, cache);
    home_own(w, p->buffer)->is_tile = true;
    home_run(home_own(w, p->buffer), ndims);
    return true;
}

/* ---- rooms ---- */

static bool in_memory(const struct work *w, const struct passed *p, int memory) {
    return home_near(work_home(w, p->buffer)) == memory;
}

/* A member that has its room, lives with this one, and lies where this one would; NULL: none.
 * Queues that run ahead are a member further at most. */
static const struct passed *in_the_way(const struct work *w, const struct nest_group *g,
                                       const bool *placed, const struct passed *p, int memory) {
    for (int i = 0; i < g->npassed; i++) {
        const struct passed *q = &g->passed[i];
        if (placed[i] && q->first <= p->last + 1 && p->first <= q->last + 1 &&
            in_memory(w, q, memory) && q->at < p->at + p->bytes && p->at < q->at + q->bytes)
            return q;
    }
    return NULL;
}

/* The largest first, each at the first address where nothing lies that lives with it. */
static void find_rooms(const struct work *w, struct nest_group *g, int memory) {
    bool *placed = arena_array(w->arena, (size_t)g->npassed + 1, sizeof *placed);
    for (int turn = 0; turn < g->npassed; turn++) {
        int best = -1;
        for (int i = 0; i < g->npassed; i++)
            if (!placed[i] && in_memory(w, &g->passed[i], memory) &&
                (best < 0 || g->passed[i].bytes > g->passed[best].bytes))
                best = i;
        if (best < 0) return;
        struct passed *p = &g->passed[best];
        const struct passed *q;
        for (p->at = 0; (q = in_the_way(w, g, placed, p, memory)) != NULL;)
            p->at = q->at + q->bytes;
        placed[best] = true;
    }
}

int64_t group_room(const struct work *w, const struct nest_group *g, int memory) {
    int64_t top = 0;
    for (int i = 0; i < g->npassed; i++)
        if (in_memory(w, &g->passed[i], memory) && g->passed[i].at + g->passed[i].bytes > top)
            top = g->passed[i].at + g->passed[i].bytes;
    return top;
}

static int64_t tiles_room(const struct machine *m, int memory) {
    int64_t size = graph_capacity(m, memory);
    return size == INT64_MAX ? size : (int64_t)(m->memory[memory].tiles * (double)size);
}

static bool fit(struct work *w, struct draft *d, struct nest_group *g) {
    for (int m = 0; m < w->m->nmemories; m++) {
        find_rooms(w, g, m);
        int64_t need = group_room(w, g, m), room = tiles_room(w->m, m);
        if (need <= room) continue;
        d->why = arena_printf(w->arena, "tiles exceed their share of memory '%s' by %lld bytes",
                              w->m->memory[m].id, (long long)(need - room));
        return false;
    }
    return true;
}

/* Tiles in this cache are in that one, where all of them find room. */
static bool move_tiles(struct work *w, struct draft *d, struct nest_group *g, int from, int to) {
    for (int i = 0; i < g->npassed; i++) {
        struct home *h = home_own(w, g->passed[i].buffer);
        if (in_memory(w, &g->passed[i], from)) *(h->is_tile ? &h->memory : &h->near) = to;
    }
    return fit(w, d, g);
}

/* As near to the unit as all of them fit. */
static bool settle(struct work *w, struct draft *d, struct nest_group *g, int unit) {
    if (!fit(w, d, g)) return false;
    for (int inner; g->cache >= 0; g->cache = inner) {
        inner = cache_of(w, unit, g->cache);
        if (inner < 0 || !move_tiles(w, d, g, g->cache, inner))
            return inner < 0 || move_tiles(w, d, g, inner, g->cache);
    }
    return true;
}

/* ---- all of a group ---- */

/* Dimensions that the shared loops walk; members that touch it. */
static void pass(const struct work *w, const struct draft *d, const struct nest_group *g,
                 int buffer, struct passed *p) {
    *p = (struct passed){.buffer = buffer, .first = -1, .given = -1, .reader = -1};
    for (int k = 0; k < g->nprefix; k++) p->dim[k] = -1;
    for (int i = 0; i < d->ntouches; i++) {
        const struct touch *t = &d->touch[i];
        if (t->buffer != buffer || !d->in[t->member]) continue;
        if (p->first < 0) p->first = t->member;
        p->last = t->member;
        for (int k = 0; k < g->nprefix; k++) {
            int x = d->shared[g->shared[k]].axis[t->member];
            if (x < 0) continue;
            p->dim[k] = touch_walks(w, t, x);
            if (d->shared[g->shared[k]].window.axis >= 0 && buffer == d->shared[g->shared[k]].slid)
                p->dim[k] = d->shared[g->shared[k]].dim;
        }
    }
}

bool group_tiles(struct work *w, struct draft *d, struct nest_group *g) {
    int unit = unit_of(w, d);
    g->cache = g->around = cache_of(w, unit, -1);
    g->npassed = 0;
    for (int i = 0; i < d->ntouches; i++) {
        int b = d->touch[i].buffer;
        bool known = !d->in[d->touch[i].member];
        for (int k = 0; k < g->npassed; k++) known |= g->passed[k].buffer == b;
        if (known || !is_inner(w, d, b)) continue;
        GROW(w->arena, g->passed, g->npassed, g->cap_passed);
        struct passed *p = &g->passed[g->npassed];
        pass(w, d, g, b, p);
        if (!make_tile(w, d, g, p, g->cache)) continue;
        p->bytes = bytes_of(w, d, g, p);
        g->npassed++;
    }
    if (w->p->buffer[d->buffer].role == ROLE_IN && g->cache >= 0) return settle(w, d, g, unit);
    for (int k = 0; k < g->npassed; k++)
        if (g->passed[k].buffer == d->buffer) return settle(w, d, g, unit);
    d->why = "no memory near the units holds a tile";
    return false;
}
