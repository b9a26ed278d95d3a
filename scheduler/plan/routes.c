/* Routes: the program-managed memories that an operand passes through between its home and the
 * memory where its instruction wants it (ISA Mapper §3.5's cached copies; SCHEDULING §1). */
#include "ir/number.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

enum { MAX_ROUTES = 8 };

static bool has(const int *memory, int n, int m) {
    for (int i = 0; i < n; i++)
        if (memory[i] == m) return true;
    return false;
}

static bool leads(const struct work *w, const struct moves *moves, int from, int to) {
    for (int i = 0; i < moves->n; i++) {
        const struct instr *in = moves->at[i].needle->in;
        bool a = move_takes(in, from), b = move_fills(in, to);
        for (int k = 0; k < in->nfrom; k++)
            a |=
                memory_is_home(w->m, from) && in->from[k] >= 0 && memory_is_home(w->m, in->from[k]);
        for (int k = 0; k < in->nto; k++)
            b |= memory_is_home(w->m, to) && in->to[k] >= 0 && memory_is_home(w->m, in->to[k]);
        if (a && b) return true;
    }
    return false;
}

struct finder {
    const struct work *w;
    const struct moves *moves;
    int from, to;
    enum type type;
    struct route now, *out;
    int n;
};

/* Simple paths in which every memory between the ends is filled by the schedule, short ones first.
 */
static void find(struct finder *f, int at, int left) {
    if (!left) {
        if (leads(f->w, f->moves, at, f->to) && f->n < MAX_ROUTES) f->out[f->n++] = f->now;
        return;
    }
    for (int m = 0; m < f->w->m->nmemories; m++) {
        if (m == f->to || memory_is_home(f->w->m, m) || graph_is_static(f->w->m, m) ||
            f->w->m->memory[m].caches >= 0 || !graph_holds(f->w->m, m, f->type) ||
            has(f->now.memory, f->now.n, m) || !leads(f->w, f->moves, at, m))
            continue;
        f->now.memory[f->now.n++] = m;
        find(f, m, left - 1);
        f->now.n--;
    }
}

/* From home on; of a result too. */
static int routes_find(const struct work *w, const struct moves *moves, const struct opnd *o,
                       enum type type, bool write, struct route *out) {
    struct finder f = {w, moves, w->m->home, o->memory, type, {.n = 0}, out, 0};
    struct finder back = {w, moves, o->memory, w->m->home, type, {.n = 0}, out, 0};
    for (int n = 0; n <= MAX_VIA; n++) find(write ? &back : &f, write ? o->memory : w->m->home, n);
    for (int i = 0; write && i < back.n; i++)
        for (int k = 0; k < out[i].n / 2; k++) {
            int m = out[i].memory[k];
            out[i].memory[k] = out[i].memory[out[i].n - 1 - k];
            out[i].memory[out[i].n - 1 - k] = m;
        }
    return write ? back.n : f.n;
}

/* Tiles that begin anywhere do so in a plain copy: along such a dimension it has no blocks. */
static void without_blocks(struct geom *g) {
    int n = 0, inner = 0;
    for (int i = 0; i < g->n; i++) {
        struct coord c = g->at[i];
        bool loose = c.dim >= 0 && (g->loose >> c.dim & 1);
        if (loose && i < g->ninner) continue;
        if (loose) c.div = 1;
        g->stride[n] = g->stride[i];
        inner += i < g->ninner;
        g->at[n++] = c;
    }
    for (int d = 0; d < MAX_DIMS; d++)
        if (g->loose >> d & 1) {
            g->takes[d] = g->room[d] ? g->block[d] : 0;
            g->block[d] = g->grain[d] = 1;
        }
    g->n = n;
    g->ninner = inner;
    g->loose = 0;
}

static bool is_repeat(const struct geom *g, int i) {
    return i < g->ninner && g->at[i].dim < 0;
}

static bool repeats(const struct geom *g) {
    for (int i = 0; i < g->ninner; i++)
        if (is_repeat(g, i)) return true;
    return false;
}

/* What a tile repeats is there once: the rest of it moves together. */
static void without_repeats(struct geom *g) {
    int n = 0, inner = g->ninner, first = g->first, row = g->row;
    struct geom old = *g;
    for (int i = 0; i < old.n; i++) {
        if (is_repeat(&old, i)) {
            inner--;
            g->span /= old.at[i].mod;
            if (i < old.first) first--;
            if (i < old.row) row--;
            continue;
        }
        g->at[n] = old.at[i];
        g->stride[n] = old.stride[i];
        for (int k = 0; k < old.ninner; k++)
            if (is_repeat(&old, k) && i < old.ninner && old.stride[k] < old.stride[i])
                g->stride[n] /= old.at[k].mod;
        n++;
    }
    g->n = n;
    g->ninner = inner;
    g->first = first;
    g->row = row;
}

struct opnd route_stop(const struct work *w, const struct opnd *o, const struct route *r, int k) {
    struct opnd at = *o;
    if (k >= r->n) return at;
    at.memory = r->memory[k];
    at.where = IN_LOCAL;
    at.geom.sparse = 0;
    at.geom.first = o->geom.first;
    if (o->once) without_repeats(&at.geom);
    if (o->stop_align) at.align = o->stop_align[at.memory];
    geom_tile(w, &at);
    at.geom.plain = k < o->plain;
    if (at.geom.plain) without_blocks(&at.geom);
    return at;
}

/* The distance along a coordinate of g in a slot that lies as `own` says. */
static struct val stride_in(struct arena *a, const struct geom *g, int i, const struct geom *own,
                            const struct slot *s, const struct region *r) {
    struct coord c = g->at[i];
    if (g->n == own->n) return slot_step(a, s, r, i, c);
    for (int k = 0; k < own->n; k++)
        if (own->at[k].dim == c.dim && own->at[k].div == c.div && own->at[k].mod == c.mod)
            return slot_step(a, s, r, k, c);
    for (int k = 0; k < own->n && c.dim >= 0; k++)
        if (own->at[k].dim == c.dim && own->at[k].div == 1 && !own->at[k].mod)
            return val_scale(a, slot_step(a, s, r, k, c), c.div);
    return val_const(0);
}

static bool box_between(const struct geom *outer, const struct slot *there, const struct geom *g,
                        const struct slot *here, bool fill, const struct region *r, struct arena *a,
                        enum type type, struct box *box) {
    *box = (struct box){.type = type};
    if (g->fragment || g->swizzle) return false; /* lies so in its own memory only */
    for (int i = 0; i < g->n; i++) {
        struct coord c = g->at[i];
        struct val far = stride_in(a, g, i, outer, there, r), near = slot_step(a, here, r, i, c);
        struct box_dim *d = &box->dim[box->n++];
        *d = box_whole(i < g->ninner ? val_const(c.mod) : coord_places(a, g, r, c));
        if (i < g->ninner && c.dim >= 0 && r->partial[c.dim]) d->extent = r->n[c.dim];
        d->after = val_minus(a, d->total, d->extent);
        d->from = fill ? far : near;
        d->to = fill ? near : far;
    }
    return true;
}

bool copy_fit(struct work *w, const struct moves *moves, int buffer, const struct opnd *o,
              const struct slot *s, const struct slot *far, const struct region *r, bool fill,
              int by, struct fit *f) {
    struct box box;
    const struct opnd *outer = !far ? NULL : fill ? o->from : o->to;
    int from = outer ? outer->memory : work_home(w, buffer)->memory, to = o->memory;
    if (!outer && attached_at(o, fill)) return attached_fit(w, o, s, r, fill, f);
    struct view home = view_plain(buffer);
    bool ok = outer ? box_between(&outer->geom, far, &o->geom, s, fill, r, &w->s->arena,
                                  w->p->buffer[buffer].type, &box)
                    : box_make(w, &home, &o->geom, s, r, fill, &box);
    return ok && fit_parts(w, moves, by, fill ? from : to, fill ? to : from, &o->geom, r, &box, f);
}

/* From a plain copy come parts of tiles too, the last ones along a dimension without blocks, where
 * its axis is no multiple of them. */
static bool parts_fit(struct work *w, const struct moves *moves, const struct task *t,
                      const struct opnd *inner, const struct region *whole,
                      const struct access *acc) {
    int buffer = acc->buffer;
    for (int d = 0; d < MAX_DIMS; d++) {
        if (!(inner->geom.loose >> d & 1) || inner->geom.block[d] < 2 || inner->geom.room[d] ||
            !axis_tail(w, t, inner, acc, d))
            continue;
        struct region part = *whole;
        struct fit f;
        part.partial[d] = true;
        part.n[d] = val_const(1);
        struct slot a = slot_make(&w->s->arena, &inner->from->geom, whole),
                    b = slot_make(&w->s->arena, &inner->geom, whole);
        if (!copy_fit(w, moves, buffer, inner, &b, &a, &part, true, 0, &f)) return false;
    }
    return true;
}

/* Does the operand begin between the steps of its tiles too? What lies in steps is brought together
 * by the first move: a copy on the way would hold the elements of one beginning alone. */
static bool begins_between_steps(const struct work *w, const struct task *t, const struct opnd *o,
                                 const struct access *acc) {
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        for (int a = 0; a < w->p->naxes && o->geom.step[d] > 1; a++)
            if ((w->p->stmt[t->stmt].axes >> a & 1) &&
                access_coef(w->p, acc, d, a) % o->geom.step[d])
                return true;
    return false;
}

/* Do moves lead along the whole route? *cost: queue cycles of a sample of the operand. */
static bool route_fits(struct work *w, const struct moves *moves, const struct task *t,
                       const struct opnd *o, bool write, const struct route *r, double *cost,
                       const char **why) {
    struct opnd stop = route_stop(w, o, r, 0);
    if (o->geom.loose && o->plain < r->n)
        return false; /* else tiles that begin anywhere come from home */
    struct region part;
    if (!operand_fits(w, moves, t, &stop, write, why)) return false;
    const struct access *acc = operand_sample(w, t, o, write, &part);
    if (r->n && begins_between_steps(w, t, o, acc)) return false;
    *cost = operand_cost(w, moves, acc->buffer, &stop, &part, write);
    for (int k = 1; k <= r->n; k++) {
        struct opnd outer = route_stop(w, o, r, k - 1), inner = route_stop(w, o, r, k);
        struct slot a = slot_make(&w->s->arena, &outer.geom, &part),
                    b = slot_make(&w->s->arena, &inner.geom, &part);
        struct fit f;
        inner.from = inner.to = &outer;
        *why = arena_printf(
            w->arena, "no move brings '%s' (operand '%s') on from '%s' to '%s' as it lies there",
            w->p->buffer[acc->buffer].name, o->decl->buffer,
            w->m->memory[write ? inner.memory : outer.memory].id,
            w->m->memory[write ? outer.memory : inner.memory].id);
        if (!copy_fit(w, moves, acc->buffer, &inner, &b, &a, &part, !write, 0, &f) ||
            !parts_fit(w, moves, t, &inner, &part, acc))
            return false;
        *cost += f.cycles;
    }
    return true;
}

static enum type stored(const struct work *w, const struct task *t, const struct opnd *o,
                        bool write) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    return w->p->buffer[write || o->read < 0 ? st->dst.buffer : st->read[o->read].buffer].type;
}

/* The same with copies on the way that hold each element once, where moves fit these or take less
 * time. */
static bool way_fits(struct work *w, const struct moves *moves, const struct task *t,
                     struct opnd *o, bool write, const struct route *r, double *cost,
                     const char **why) {
    const char *none;
    double once;
    o->once = !write && r->n && !o->geom.fragment && repeats(&o->geom);
    bool folds = o->once && route_fits(w, moves, t, o, write, r, &once, &none);
    o->once = false;
    bool fits = route_fits(w, moves, t, o, write, r, cost, why);
    if (!folds || (fits && *cost <= once)) return fits;
    o->once = true;
    *cost = once;
    return true;
}

/* The first route along which moves lead; *cost: as above. */
static bool pick(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o,
                 bool write, double *cost, const char **why) {
    *cost = 0;
    if (write ? attached_at(o, STORES) != NULL : !o->writes && attached_at(o, FILLS))
        return !(*why = attached_check(w, t, o, !write));
    struct route found[MAX_ROUTES], *mine = write ? &o->out : &o->in;
    const char *first = NULL;
    int n = routes_find(w, moves, o, stored(w, t, o, write), write, found);
    mine->n = 0;
    *why = arena_printf(w->arena, "no moves lead %s '%s', where operand '%s' is",
                        write ? "home from" : "from home to", w->m->memory[o->memory].id,
                        o->decl->buffer);
    for (int i = 0; i < n; i++) {
        if (!write && o->writes && found[i].n) continue; /* results come straight from home */
        if (!way_fits(w, moves, t, o, write, &found[i], cost, why)) {
            if (!first) first = *why;
            continue;
        }
        *mine = found[i];
        return true;
    }
    if (first) *why = first; /* of the shortest */
    return false;
}

bool route_first(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o,
                 bool write, const char **why) {
    double cost;
    return pick(w, moves, t, o, write, &cost, why);
}

bool route_leads(const struct work *w, const struct moves *moves, const struct task *t,
                 const struct opnd *o) {
    struct route found[MAX_ROUTES];
    return routes_find(w, moves, o, stored(w, t, o, false), false, found) > 0;
}

/* Of a copy that has the elements outside of the buffer too. */
static void with_padding(const struct work *w, const struct task *t, struct access *acc,
                         struct buffer *b) {
    int n = w->p->naxes;
    acc->coef =
        arena_copy(w->arena, acc->coef, sizeof *acc->coef * (size_t)b->ndims * (size_t)(n + 1));
    b->extent = arena_copy(w->arena, b->extent, sizeof *b->extent * (size_t)b->ndims);
    for (int d = 0; d < b->ndims; d++) {
        int64_t lo, hi;
        access_range(w->p, &w->p->stmt[t->stmt], acc, d, &lo, &hi);
        if (lo >= 0 && hi < b->extent[d]) continue;
        b->extent[d] = hi - lo + 1;
        acc->coef[d * (n + 1) + n] -= lo;
    }
}

/* Were the buffer packed as the operand wants it: what its moves cost then; infinite: none lead. */
static double cost_packed(struct work *w, const struct moves *moves, const struct task *t,
                          struct opnd *o, bool write) {
    double cost;
    const char *why;
    struct access *acc = task_access(w, t, o, write), read = *acc;
    struct buffer *b = &w->p->buffer[acc->buffer], whole = *b;
    if (!write) with_padding(w, t, acc, b);
    struct homes packed = {w->tried, acc->buffer, home_packed(w, acc->buffer, &o->geom)};
    struct work as = work_with(w, &packed);
    bool fits = pick(&as, moves, t, o, write, &cost, &why);
    *b = whole;
    *acc = read;
    return fits ? cost : INFINITY;
}

/* Do moves lead to a copy packed as the operand wants it? */
static bool packed_fits(struct work *w, const struct moves *moves, const struct task *t,
                        struct opnd *o, bool write) {
    return geom_make(w, t, o) && !isinf(cost_packed(w, moves, t, o, write));
}

/* In elements: what begins anew in each of the first memories of the route, and at home, may begin
 * there. */
static int64_t route_quantum(const struct work *w, const struct route *r, int stops, int64_t size) {
    int64_t bytes = w->m->memory[w->m->home].align;
    for (int i = 0; i < stops; i++) bytes = least_multiple(bytes, w->m->memory[r->memory[i]].align);
    return least_multiple(bytes, size) / size;
}

/* Are moves shorter by more than what a sample may be wrong by? */
static bool cheaper(double plain, double blocked) {
    return plain < 0.95 * blocked;
}

bool route_plain(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o) {
    struct route found[MAX_ROUTES];
    const char *why;
    if (o->plain || o->writes || o->read < 0 || o->form.fragment || o->form.swizzle) return false;
    int n = routes_find(w, moves, o, stored(w, t, o, false), false, found), shared = -1;
    for (int i = 0; i < n && shared < 0; i++)
        if (found[i].n) shared = i;
    if (shared < 0) return false;
    struct opnd probe = *o, now = *o, best = *o;
    double blocked = INFINITY, least = INFINITY;
    bool lies = geom_make(w, t, &now),
         fits = lies && pick(w, moves, t, &now, false, &blocked, &why), packs = true;
    int stops = found[shared].n;
    for (int k = 0; k < 2 * stops && !(k >= stops && best.plain); k++) {
        double plain;
        probe.whole = k >= stops; /* where short tiles cannot be read of a copy */
        probe.plain = stops - k % stops;
        probe.quantum =
            route_quantum(w, &found[shared], probe.plain, (int64_t)type_size(o->decl->type));
        if (!geom_make(w, t, &probe)) continue;
        bool as_is = pick(w, moves, t, &probe, false, &plain, &why);
        if (!as_is && (fits || !packs)) continue; /* a copy at home, where none is needed */
        if (!as_is) plain = cost_packed(w, moves, t, &probe, false);
        if (plain >= least && !(as_is && packs)) continue;
        packs = !as_is;
        least = plain;
        best = probe;
    }
    if (isinf(least)) return false;
    if (!fits) blocked = packs && lies ? cost_packed(w, moves, t, &now, false) : INFINITY;
    if (!cheaper(least, blocked)) return false;
    *o = best;
    return true;
}

bool route_turned(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o,
                  bool write) {
    struct opnd probe = *o;
    if (o->turned || o->spaced || o->where != IN_LOCAL || o->form.fragment ||
        (write ? attached_at(o, STORES) != NULL : o->read < 0) ||
        packed_fits(w, moves, t, &probe, write))
        return false;
    for (int k = 1; k < o->geom.ninner; k++) {
        probe.turned = k;
        if (!packed_fits(w, moves, t, &probe, write)) continue;
        o->turned = k;
        return geom_make(w, t, o);
    }
    return false;
}

bool route_spaced(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o,
                  bool write) {
    struct opnd probe = *o;
    if (o->spaced || o->where != IN_LOCAL || o->form.fragment ||
        (write ? attached_at(o, STORES) != NULL : o->read < 0) ||
        packed_fits(w, moves, t, &probe, write))
        return false;
    for (probe.spaced = probe.geom.ninner; probe.spaced > 0; probe.spaced--) {
        if (!packed_fits(w, moves, t, &probe, write)) continue;
        o->spaced = probe.spaced;
        return geom_make(w, t, o);
    }
    return false;
}

/* The fewest elements in a row that a move takes to the memory, or from there; 1: no move does. */
static int64_t least_row(const struct moves *moves, int memory, enum type type, bool write) {
    int64_t least = 0;
    for (int i = 0; i < moves->n; i++) {
        const struct move *mv = &moves->at[i];
        const struct move_axis *row = &mv->axis[0];
        bool there =
            write ? move_takes(mv->needle->in, memory) : move_fills(mv->needle->in, memory);
        if (!there || mv->type != type || mv->naxes < 1) continue;
        int64_t n = row->fixed ? row->fixed : row->lo > 1 ? row->lo : row->step;
        if (!least || n < least) least = n;
    }
    return least > 1 ? least : 1;
}

bool route_in_blocks(struct work *w, const struct moves *moves, const struct task *t,
                     struct opnd *o, bool write) {
    struct route found[MAX_ROUTES];
    struct opnd probe = *o;
    enum type type = stored(w, t, o, write);
    if (o->quantum || o->plain || o->where != IN_LOCAL ||
        (write ? attached_at(o, STORES) != NULL : o->writes || o->read < 0) ||
        packed_fits(w, moves, t, &probe, write))
        return false;
    int n = routes_find(w, moves, o, type, write, found);
    int64_t row = least_row(moves, o->memory, type, write);
    for (int i = 0; i < 2 * n; i++) { /* as aligned memories ask, then as moves do too */
        const struct route *r = &found[i % n];
        probe.quantum = route_quantum(w, r, r->n, (int64_t)type_size(o->decl->type));
        if (i >= n) probe.quantum = least_multiple(probe.quantum, row);
        if (!packed_fits(w, moves, t, &probe, write) || probe.geom.span < probe.quantum) continue;
        o->quantum = probe.quantum;
        return geom_make(w, t, o);
    }
    return false;
}

bool route_whole(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o) {
    struct opnd probe = *o;
    probe.whole = true;
    if (o->whole || o->plain || o->where != IN_LOCAL || o->writes || o->read < 0 ||
        packed_fits(w, moves, t, o, false) || !packed_fits(w, moves, t, &probe, false))
        return false;
    o->whole = true;
    return geom_make(w, t, o);
}

static const char *route_text(struct work *w, const struct opnd *o, const struct route *r) {
    struct text t = {0};
    for (int i = 0; i < r->n; i++) text_printf(&t, "%s ", w->m->memory[r->memory[i]].id);
    text_printf(&t, "%s", w->m->memory[o->memory].id);
    const char *out = arena_strdup(w->arena, t.at);
    text_free(&t);
    return out;
}

static void ask(struct work *w, const struct moves *moves, const struct task *t, struct opnd *o,
                bool write) {
    struct route found[MAX_ROUTES], fits[MAX_ROUTES];
    struct candidate c[MAX_ROUTES];
    const char *why;
    int all = routes_find(w, moves, o, stored(w, t, o, write), write, found), n = 0, best = 0;
    for (int i = 0; i < all; i++) {
        double cost;
        if (!route_fits(w, moves, t, o, write, &found[i], &cost, &why)) continue;
        c[n] = (struct candidate){route_text(w, o, &found[i]), cost, NULL};
        fits[n] = found[i];
        if (cost < c[best].cost) best = n;
        n++;
    }
    if (n < 2) return;
    best =
        work_ask(w, QUESTION_PATH,
                 arena_printf(w->arena, "operand '%s' of statement %d", o->decl->buffer, t->stmt),
                 c, n, best);
    *(write ? &o->out : &o->in) = fits[best];
}

/* The copy nearest to home may lie so that the tiles along any one coordinate follow each other:
 * moves from home are longest where these go on there too. Which ones can be taken from there? */
static void find_firsts(struct work *w, const struct moves *moves, const struct task *t,
                        struct opnd *o) {
    struct opnd probe = *o;
    const char *why;
    double cost;
    o->firsts = 0;
    if (o->in.n != 1 || o->plain) return;
    for (int i = o->geom.ninner; i < o->geom.n; i++) {
        probe.geom.first = i;
        if (route_fits(w, moves, t, &probe, false, &o->in, &cost, &why))
            o->firsts |= UINT64_C(1) << i;
    }
}

static bool read_by_others(const struct work *w, int stmt, int buffer) {
    int n;
    const int *at = buffer_uses(w, buffer, &n);
    for (int i = 0; i < n; i++)
        if (at[i] != stmt && stmt_reads(&w->p->stmt[at[i]], buffer)) return true;
    return false;
}

/* A result that only goes home may lie so that its moves are longest. */
static void find_order(struct work *w, const struct moves *moves, const struct task *t,
                       struct opnd *o) {
    struct opnd probe = *o;
    const char *why;
    double least, cost;
    if (o->geom.row >= 0 || o->geom.fragment || o->read >= 0 ||
        read_by_others(w, t->stmt, w->p->stmt[t->stmt].dst.buffer) ||
        !route_fits(w, moves, t, o, true, &o->out, &least, &why))
        return;
    for (int i = o->geom.ninner + 1; i < o->geom.n; i++) {
        probe.geom.first = i;
        if (!route_fits(w, moves, t, &probe, true, &o->out, &cost, &why) || cost >= least) continue;
        least = cost;
        o->order = o->geom.first = i;
    }
}

const struct opnd *opnd_stop(const struct opnd *o, bool in, int k) {
    for (int left = (in ? o->in.n : o->out.n) - k; left > 0; left--) o = in ? o->from : o->to;
    return o;
}

void route_link(const struct work *w, struct opnd *o) {
    const struct opnd *at = NULL;
    for (int k = 0; k < o->in.n; k++) {
        struct opnd stop = route_stop(w, o, &o->in, k);
        stop.from = at;
        at = arena_copy(w->arena, &stop, sizeof stop);
    }
    o->from = at;
    at = NULL;
    for (int k = 0; k < o->out.n; k++) {
        struct opnd stop = route_stop(w, o, &o->out, k);
        stop.to = at;
        at = arena_copy(w->arena, &stop, sizeof stop);
    }
    o->to = at;
}

void routes_decide(struct work *w, const struct moves *moves) {
    for (int k = 0; k < w->norder; k++) {
        int task = w->task_of[w->order[k]];
        for (int i = 0; task >= 0 && i < w->task[task].nops; i++) {
            struct opnd *o = &w->task[task].op[i];
            if (o->where != IN_LOCAL) continue;
            if (o->read >= 0 && !o->writes) {
                ask(w, moves, &w->task[task], o, false);
                find_firsts(w, moves, &w->task[task], o);
            }
            if (o->writes && !attached_at(o, STORES)) {
                ask(w, moves, &w->task[task], o, true);
                find_order(w, moves, &w->task[task], o);
            }
            route_link(w, o);
        }
    }
}
