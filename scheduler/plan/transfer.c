/* Boxes: how part of a buffer lies at home and in a slot. */
#include "ir/number.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

int64_t region_step(const struct geom *g, const struct region *r, int dim) {
    return r->apart[dim] ? r->apart[dim] : g->step[dim];
}

struct val slot_step(struct arena *a, const struct slot *s, const struct region *r, int i,
                     struct coord c) {
    int64_t here = c.dim < 0 || !r->apart[c.dim] ? 1 : r->apart[c.dim],
            there = c.dim < 0 || !s->apart[c.dim] ? 1 : s->apart[c.dim];
    return here > there ? val_scale(a, s->stride[i], here / there) : s->stride[i];
}

/* Dimension after dimension, in the order in which the coordinates name them. */
static struct slot plain_slot(struct arena *a, const struct geom *g, const struct region *r) {
    struct slot s = {.base = val_const(0), .back = val_const(0)};
    struct val run = val_const(1);
    for (int i = 0; i < g->n; i++) {
        int d = g->at[i].dim;
        bool known = false;
        for (int k = 0; k < i && d >= 0; k++) known |= g->at[k].dim == d;
        if (known) continue;
        for (int k = i; k < g->n; k++)
            if (k == i || (d >= 0 && g->at[k].dim == d))
                s.stride[k] = val_scale(a, run, d < 0 ? 1 : g->at[k].div);
        struct val n = d < 0 ? i < g->ninner ? val_const(g->at[i].mod) : r->repeat
                             : val_scale(a, val_ceil(a, r->n[d], g->block[d]), g->block[d]);
        run = val_mul(a, run, n);
    }
    s.elements = run;
    return s;
}

struct val coord_places(struct arena *a, const struct geom *g, const struct region *r,
                        struct coord c) {
    if (c.dim < 0) return r->repeat;
    if (r->partial[c.dim]) return g->even >> c.dim & 1 ? r->n[c.dim] : val_const(1);
    if (!(g->even >> c.dim & 1)) return val_ceil(a, r->n[c.dim], c.div);
    return val_scale(a, val_ceil(a, r->n[c.dim], g->block[c.dim]), g->block[c.dim]);
}

struct slot slot_make(struct arena *a, const struct geom *g, const struct region *r) {
    if (g->plain) return plain_slot(a, g, r);
    struct slot s = {.base = val_const(0), .back = val_const(0)};
    struct val run = val_const(g->tile);
    memcpy(s.apart, r->apart, sizeof s.apart);
    for (int i = 0; i < g->ninner; i++) s.stride[i] = val_const(g->stride[i]);
    for (int k = g->first ? g->ninner - 1 : g->ninner; k < g->n; k++) {
        int i = k < g->ninner ? g->first : k;
        if (k == g->first && g->first) continue;
        s.stride[i] = run;
        run = val_mul(a, run, coord_places(a, g, r, g->at[i]));
    }
    s.elements = run;
    return s;
}

bool home_is_padded(const struct work *w, int buffer, const struct geom *g, int dim, bool write) {
    const struct home *h = work_home(w, buffer);
    if (g->loose >> dim & 1)
        return (g->fragment || g->room[dim] > 0) &&
               h->extent[dim] >= w->p->buffer[buffer].extent[dim] + g->room[dim];
    if (h->tight >> dim & 1) return true;
    return h->extent[dim] % g->block[dim] == 0 && !(g->exact >> dim & 1) &&
           !(write && g->live >> dim & 1);
}

/* Elements before the buffer's first. */
static struct val before_first(struct arena *a, struct val lo) {
    struct val zero = val_const(0);
    if (lo.min >= 0) return zero;
    return val_make(a, SX_MAX, val_make(a, SX_SUB, zero, lo), zero);
}

/* Elements at or behind the end, of those before `to`. */
static struct val behind_last(struct arena *a, struct val to, int64_t end) {
    if (to.max <= end) return val_const(0);
    return val_make(a, SX_MAX, val_make(a, SX_SUB, to, val_const(end)), val_const(0));
}

/* Of a tile those that lie before the buffer. */
static struct val steps_before(struct arena *a, const struct geom *g, const struct region *r,
                               int dim) {
    struct val outside = before_first(a, r->lo[dim]);
    int64_t step = region_step(g, r, dim);
    return step > 1 ? val_ceil(a, outside, step) : outside;
}

struct val home_offset(struct work *w, const struct view *v, const struct geom *g,
                       const struct region *r) {
    struct arena *a = &w->s->arena;
    const struct home *h = work_home(w, v->buffer);
    const int64_t *extent = w->p->buffer[v->of].extent;
    struct val sum = val_const(0);
    for (int i = g->ninner; i < g->n; i++) {
        int64_t stride;
        int d = g->at[i].dim;
        if (d < 0 || v->dim[d] < 0) continue;
        struct val lo = r->lo[d];
        view_stride(w, v, g->at[i], &stride);
        if (r->pad_lo[d] > 0 && region_step(g, r, d) > 1)
            lo = val_add(a, lo, val_scale(a, steps_before(a, g, r, d), region_step(g, r, d)));
        else if (r->pad_lo[d] > 0 && lo.min < 0)
            lo = val_make(a, SX_MAX, lo, val_const(0));
        if (r->pad_hi[d] > 0 && lo.max >= extent[d])
            lo = val_make(a, SX_MIN, lo, val_const(extent[d] - 1));
        if (h->is_tile || (h->fold && h->fold[v->dim[d]])) lo = val_minus(a, lo, h->lo[v->dim[d]]);
        if (g->loose >> d & 1)
            sum = val_add(a, sum, val_scale(a, lo, stride / g->at[i].div));
        else
            sum = val_add(a, sum, val_blocks(a, lo, g->at[i].div, val_const(stride)));
    }
    return sum;
}

/* Do the elements of the coordinate's dimension go on behind its last place as before it? */
static bool goes_on(const struct geom *g, const struct slot *s, int i) {
    struct coord c = g->at[i];
    for (int k = i + 1; k < g->n; k++)
        if (g->at[k].dim == c.dim)
            return g->at[k].div == c.div * c.mod && !g->at[k].mod &&
                   val_is(s->stride[k], s->stride[i].c * c.mod) && !s->stride[i].x;
    return false;
}

struct val slot_offset(struct arena *a, const struct geom *g, const struct slot *s,
                       const struct region *whole, const struct region *part) {
    struct val sum = s->base;
    uint64_t counted = 0; /* dimensions of which the next coordinate only goes on */
    for (int i = 0; i < g->n; i++) {
        struct coord c = g->at[i];
        if (c.dim < 0 || (counted >> c.dim & 1) || val_same(whole->lo[c.dim], part->lo[c.dim]))
            continue;
        bool inside = g->grain[c.dim] != g->block[c.dim]; /* may start inside a block */
        if (i < g->ninner && !inside) continue;
        struct val delta = val_minus(a, part->lo[c.dim], whole->lo[c.dim]);
        if (!inside) {
            sum = val_add(a, sum,
                          val_blocks(a, delta, c.div * region_step(g, whole, c.dim), s->stride[i]));
            continue;
        }
        struct val at = val_div(a, delta, c.div);
        if (goes_on(g, s, i))
            counted |= UINT64_C(1) << c.dim;
        else if (c.mod)
            at = val_make(a, SX_MOD, at, val_const(c.mod));
        sum = val_add(a, sum, val_mul(a, at, s->stride[i]));
    }
    return val_is(s->back, 0) ? sum : val_minus(a, sum, s->back);
}

/* What of it lies outside of the buffer. */
static void outer_padding(struct work *w, int buffer, const struct geom *g, struct coord c,
                          const struct region *r, struct box_dim *b) {
    struct arena *a = &w->s->arena;
    int64_t step = region_step(g, r, c.dim);
    struct val to = val_add(a, r->lo[c.dim], val_scale(a, r->n[c.dim], step));
    if (r->pad_lo[c.dim] > 0) b->before = steps_before(a, g, r, c.dim);
    if (r->pad_hi[c.dim] > 0) {
        b->after = behind_last(a, to, w->p->buffer[buffer].extent[c.dim]);
        if (step > 1) b->after = val_div(a, b->after, step);
    }
    if (b->before.x) b->before.max = (r->pad_lo[c.dim] + step - 1) / step;
    if (b->after.x) b->after.max = (r->pad_hi[c.dim] + step - 1) / step;
    if (!val_is(b->before, 0)) b->extent = val_make(a, SX_SUB, b->extent, b->before);
    if (!val_is(b->after, 0)) b->extent = val_make(a, SX_SUB, b->extent, b->after);
    if (b->extent.x) b->extent.max = b->total.max;
}

bool pads_inside(const struct geom *g, const struct region *r, int dim) {
    return (g->loose >> dim & 1) && (r->pad_lo[dim] > 0 || r->pad_hi[dim] > 0);
}

/* One tile that begins anywhere: what lies before and behind the buffer, and behind the region. */
static bool inner_padding(struct work *w, int buffer, const struct geom *g, struct coord c,
                          const struct region *r, struct box_dim *b) {
    struct arena *a = &w->s->arena;
    int64_t step = g->step[c.dim], first = (r->pad_lo[c.dim] + step - 1) / step,
            last = (r->pad_hi[c.dim] + step - 1) / step;
    struct val zero = val_const(0), n = b->extent, over = zero;
    if (n.x) return false;
    b->total = val_const(c.mod);
    b->before = first > 0 ? steps_before(a, g, r, c.dim) : zero;
    if (first > n.c) b->before = val_make(a, SX_MIN, b->before, n);
    if (last > 0) {
        over = behind_last(a, val_add(a, r->lo[c.dim], val_scale(a, n, step)),
                           w->p->buffer[buffer].extent[c.dim]);
        if (step > 1) over = val_div(a, over, step);
    }
    if (last > n.c) over = val_make(a, SX_MIN, over, n);
    b->extent = val_make(a, SX_SUB, val_make(a, SX_SUB, n, b->before), over);
    b->after = val_add(a, over, val_const(c.mod - n.c));
    if (b->before.x) b->before.max = first;
    if (b->after.x) b->after.max = c.mod;
    if (b->extent.x) b->extent.max = n.c;
    return first <= c.mod;
}

/* Are the elements of this dimension the same distance apart everywhere in the home? */
static bool home_is_even(const struct home *h, int dim) {
    for (int i = 0; h->packed && i < h->n; i++)
        if (h->at[i].dim == dim && (h->at[i].div != 1 || h->at[i].mod)) return false;
    return true;
}

/* Bytes of which the tile begins at a multiple, from the home's start; 0: it begins there. Without
 * a region: every tile. */
static int64_t tiles_begin(const struct work *w, const struct geom *g, const struct view *v,
                           const struct region *r) {
    int64_t size = (int64_t)type_size(w->p->buffer[v->buffer].type);
    int64_t begins = 0;
    for (int k = g->ninner; k < g->n; k++) {
        struct coord c = g->at[k];
        int64_t stride;
        if (c.dim < 0) continue;
        int64_t apart = g->loose >> c.dim & 1 ? 1 : c.div; /* elements from begin to begin */
        if (w->p->buffer[v->of].extent[c.dim] <= apart || (r && val_is(r->lo[c.dim], 0))) continue;
        view_stride(w, v, c, &stride);
        if (g->loose >> c.dim & 1) stride /= c.div;
        if (r && !r->lo[c.dim].x && r->lo[c.dim].c > 0) { /* so many strides from the first */
            int64_t at = r->lo[c.dim].c / apart;
            stride *= c.mod > 0 ? at % c.mod : at;
        }
        begins = common_divisor(begins, stride * size);
    }
    return begins;
}
/* A coordinate of the tile itself; *stride: of the home. False: its blocks are not those of the
 * home. */
static bool inner_dim(struct work *w, const struct view *v, const struct geom *g,
                      const struct region *r, bool fill, struct coord c, int64_t *stride,
                      struct box_dim *d) {
    const struct home *h = work_home(w, v->buffer);
    struct val n = val_const(c.mod);
    bool tight = c.dim >= 0 && v->dim[c.dim] >= 0 && h->tight >> v->dim[c.dim] & 1,
         partial = c.dim >= 0 && r->partial[c.dim];
    if ((tight || partial) && c.mod != g->block[c.dim]) return false;
    if (tight)
        n = val_const(w->p->buffer[v->of].extent[c.dim]);
    else if (partial)
        n = r->n[c.dim];
    else if (c.dim < 0 && !fill)
        n = val_const(1);
    *d = box_whole(n);
    if (fill && c.dim >= 0 && pads_inside(g, r, c.dim) && !inner_padding(w, v->of, g, c, r, d))
        return false;
    if (tight && fill) {
        d->total = val_const(c.mod);
        d->after = val_const(c.mod - n.c);
    }
    if (fill && c.first) {
        d->extent = val_const(1);
        d->after = val_const(c.mod - 1);
        *stride = 1;
    }
    return true;
}

/* One over tiles. */
static void outer_dim(struct work *w, const struct view *v, const struct geom *g,
                      const struct region *r, struct coord c, int64_t *stride, struct box_dim *d) {
    *d = box_whole(c.dim < 0 ? r->repeat : coord_places(&w->s->arena, g, r, c));
    if (c.dim < 0 || pads_inside(g, r, c.dim)) return;
    outer_padding(w, v->of, g, c, r, d);
    if (w->p->buffer[v->of].extent[c.dim] <= g->block[c.dim] && !(g->even >> c.dim & 1) &&
        !r->pad_lo[c.dim] && !r->pad_hi[c.dim])
        *stride = 0;
}

bool box_make(struct work *w, const struct view *v, const struct geom *g, const struct slot *s,
              const struct region *r, bool fill, struct box *box) {
    const struct buffer *b = &w->p->buffer[v->of];
    const struct home *h = work_home(w, v->buffer);
    for (int d = 0; d < b->ndims; d++)
        if ((g->loose >> d & 1) && !home_is_even(h, v->dim[d])) return false;
    box->n = 0;
    box->type = b->type;
    box->fill = fill;
    box->apart = false;
    box->fragment = g->fragment;
    box->swizzle = g->swizzle;
    box->begins = tiles_begin(w, g, v, r);
    for (int i = 0; i < g->n; i++) {
        struct coord c = g->at[i];
        struct box_dim *d = &box->dim[box->n++];
        int64_t stride;
        if (!view_stride(w, v, c, &stride)) return false;
        if (i >= g->ninner)
            outer_dim(w, v, g, r, c, &stride, d);
        else if (!inner_dim(w, v, g, r, fill, c, &stride, d))
            return false;
        struct val near = slot_step(&w->s->arena, s, r, i, c);
        if (c.dim >= 0) stride *= region_step(g, r, c.dim);
        d->coord = i;
        d->from = fill ? val_const(stride) : near;
        d->to = fill ? near : val_const(stride);
    }
    return true;
}

void region_padding(const struct program *p, const struct stmt *st, const struct access *acc,
                    struct region *r) {
    for (int d = 0; d < p->buffer[acc->buffer].ndims; d++) {
        int64_t lo, hi;
        access_range(p, st, acc, d, &lo, &hi);
        r->pad_lo[d] = lo < 0 ? -lo : 0;
        r->pad_hi[d] =
            hi >= p->buffer[acc->buffer].extent[d] ? hi - p->buffer[acc->buffer].extent[d] + 1 : 0;
        r->partial[d] = false;
        r->apart[d] = 0;
    }
}

/* What is there of a tile may be filled alone, or with zeros behind it. */
bool fit_parts(struct work *w, const struct moves *moves, int by, int from, int to,
               const struct geom *g, const struct region *r, struct box *box, struct fit *f) {
    if (fit_box(w, moves, by, from, to, box, f)) return true;
    bool parts = false;
    for (int i = 0; i < g->ninner && box->fill; i++) {
        struct box_dim *d = &box->dim[i];
        if (g->at[i].dim < 0 || !r->partial[g->at[i].dim] || !val_is(d->after, 0)) continue;
        d->total = val_const(g->at[i].mod);
        d->after = val_minus(&w->s->arena, d->total, d->extent);
        parts = true;
    }
    return parts && fit_box(w, moves, by, from, to, box, f);
}

static bool region_fits(struct work *w, const struct moves *moves, const struct opnd *o, int buffer,
                        const struct region *r, bool write, struct fit *f) {
    struct slot s = slot_make(&w->s->arena, &o->geom, r);
    struct box box;
    struct view v = view_plain(buffer);
    int home = work_home(w, buffer)->memory;
    if (!box_make(w, &v, &o->geom, &s, r, !write, &box)) return false;
    box.begins = tiles_begin(w, &o->geom, &v, NULL);
    return fit_parts(w, moves, 0, write ? o->memory : home, write ? home : o->memory, &o->geom, r,
                     &box, f);
}

static bool has_single_digit(const struct geom *g, int dim) {
    for (int i = 0; i < g->ninner; i++)
        if (g->at[i].dim == dim && g->at[i].mod != g->block[dim]) return false;
    return true;
}

/* The next step's elements too: their distance must suit the moves. */
static void step_range(const struct work *w, const struct stmt *st, const struct access *acc, int d,
                       int64_t *lo, int64_t *hi) {
    for (int k = st->scope - 1; k >= 0; k = w->scope[k].parent) {
        int64_t c = access_coef(w->p, acc, d, w->scope[k].axis);
        if (w->p->axis[w->scope[k].axis].extent < 2) continue;
        if (c > 0) *hi += c;
        if (c < 0) *lo += c;
    }
}

const struct access *operand_sample(const struct work *w, const struct task *t,
                                    const struct opnd *o, bool write, struct region *r) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct access *acc = write ? &st->dst : opnd_access(w, t, o);
    memset(r, 0, sizeof *r);
    region_padding(w->p, st, acc, r);
    if (o->geom.repeat_axis >= 0) r->repeat = val_const(w->p->axis[o->geom.repeat_axis].extent);
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        int64_t lo, hi;
        access_range(w->p, st, acc, d, &lo, &hi);
        step_range(w, st, acc, d, &lo, &hi);
        int64_t b = o->geom.block[d], step = o->geom.step[d], most = 2 * step * (b > 1 ? b : 8);
        bool pads = lo < 0 || hi >= w->p->buffer[acc->buffer].extent[d];
        if (!pads && hi - lo + 1 > most) hi = lo + most - 1;
        r->lo[d] = val_const(lo);
        r->n[d] = val_const(((hi - lo) / step + b) / b * b);
    }
    return acc;
}

double operand_cost(struct work *w, const struct moves *moves, int buffer, const struct opnd *o,
                    const struct region *r, bool write) {
    struct fit f;
    return region_fits(w, moves, o, buffer, r, write, &f) ? f.cycles : 0;
}

int64_t axis_tail(const struct work *w, const struct task *t, const struct opnd *o,
                  const struct access *acc, int dim) {
    for (int i = 0; i < o->form.n; i++) {
        int a = t->axis[o->form.digit[i].x];
        if (a >= 0 && access_coef(w->p, acc, dim, a))
            return w->p->axis[a].extent % o->geom.block[dim];
    }
    return 0;
}

/* Registers are loaded anew for other results, each time with the masks; a border is copied once.
 */
static bool read_again(const struct work *w, const struct task *t, const struct opnd *o,
                       const struct access *acc) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    for (int a = 0; a < w->p->naxes && w->fallback >= 0; a++)
        if ((st->axes >> a & 1) && w->p->axis[a].extent > 1 && access_varies(w->p, &st->dst, a) &&
            !access_varies(w->p, acc, a))
            return graph_is_static(w->m, o->memory);
    return false;
}

static bool goes_in_steps(const struct opnd *o, int ndims) {
    bool steps = false;
    for (int d = 0; d < ndims; d++) steps |= o->geom.step[d] > 1;
    return steps;
}

/* Do moves take longer where the elements of a tile are apart? The rows of a tile lie as far apart
 * as a move is told anyway. */
static bool steps_cost(struct work *w, const struct moves *moves, const struct opnd *o, int buffer,
                       const struct region *r, double cycles) {
    struct opnd dense = *o;
    struct fit f;
    for (int d = 0; d < w->p->buffer[buffer].ndims; d++) dense.geom.step[d] = 1;
    return !region_fits(w, moves, &dense, buffer, r, false, &f) || f.cycles < cycles;
}

bool steps_stay_dear(struct work *w, const struct moves *moves, const struct task *t,
                     const struct opnd *o) {
    struct region r;
    struct fit f;
    const struct access *acc = operand_sample(w, t, o, false, &r);
    int buffer = acc->buffer, ndims = w->p->buffer[buffer].ndims;
    if (!goes_in_steps(o, ndims) || !read_again(w, t, o, acc)) return false;
    struct homes packed = {w->tried, buffer, home_packed(w, buffer, &o->geom)};
    struct work as = work_with(w, &packed);
    for (int d = 0; d < ndims; d++) {
        r.pad_lo[d] = r.pad_hi[d] = 0; /* the copy has what is outside */
        if (r.lo[d].min < 0) r.lo[d] = val_const(0);
    }
    return !region_fits(&as, moves, o, buffer, &r, false, &f) ||
           steps_cost(&as, moves, o, buffer, &r, f.cycles);
}

/* Of tiles that begin anywhere any one: before the buffer, in it, or reaching behind it. */
static bool pads_anywhere(struct work *w, const struct opnd *o, int ndims, struct region *r) {
    bool found = false;
    for (int d = 0; d < ndims; d++) {
        int64_t first = r->lo[d].c;
        if (!pads_inside(&o->geom, r, d) || r->lo[d].x || (!r->pad_lo[d] && !r->pad_hi[d]))
            continue;
        r->lo[d] = val_var(&w->s->arena, 0, first + r->n[d].c - 1);
        r->lo[d].min = first;
        found = true;
    }
    return found;
}

/* Is there a move for whole tiles, and one for the tails where the home has no room for them? */
bool operand_fits(struct work *w, const struct moves *moves, const struct task *t,
                  const struct opnd *o, bool write, const char **why) {
    struct region r;
    struct fit f;
    const struct access *acc = operand_sample(w, t, o, write, &r);
    const struct buffer *b = &w->p->buffer[acc->buffer];
    *why = arena_printf(w->arena, "no move brings '%s' (operand '%s') %s '%s' as it lies there",
                        b->name, o->decl->buffer, write ? "home from" : "from home to",
                        w->m->memory[o->memory].id);
    bool pads = false;
    for (int d = 0; d < b->ndims; d++) pads |= r.pad_lo[d] > 0 || r.pad_hi[d] > 0;
    if (pads && acc->has_fill && (type_is_float(b->type) ? acc->fill.f != 0 : acc->fill.i != 0)) {
        *why = "a read outside its buffer gives another value than zero";
        return false;
    }
    for (int d = 0; d < b->ndims; d++) {
        if (!o->geom.takes[d]) continue;
        *why = "its extent is no multiple of the tile";
        if (r.pad_lo[d] > 0 || r.pad_hi[d] > 0 ||
            work_home(w, acc->buffer)->extent[d] < b->extent[d] + o->geom.room[d])
            return false;
    }
    bool steps = goes_in_steps(o, b->ndims), again = (pads || steps) && read_again(w, t, o, acc);
    struct region any = r;
    if ((pads && again) || !region_fits(w, moves, o, acc->buffer, &r, write, &f) ||
        (again && steps_cost(w, moves, o, acc->buffer, &r, f.cycles)) ||
        (!write && pads_anywhere(w, o, b->ndims, &any) &&
         !region_fits(w, moves, o, acc->buffer, &any, write, &f)))
        return false;
    for (int d = 0; d < b->ndims; d++) {
        int64_t block = o->geom.block[d], tail = b->extent[d] % block;
        if ((o->geom.loose | o->geom.live) >> d & 1) tail = axis_tail(w, t, o, acc, d);
        if (block == 1 || !tail) continue;
        bool zeros = o->zero_tail && !write && !(o->geom.exact >> d & 1);
        if (home_is_padded(w, acc->buffer, &o->geom, d, write)) {
            if (!zeros || padding_neutral(w, t, o, acc->buffer)) continue;
            *why = "the padding that a reduction runs into is not zero";
            return false;
        }
        *why = "its extent is no multiple of the tile";
        if (zeros || !has_single_digit(&o->geom, d)) return false;
        struct region part = r;
        part.partial[d] = true;
        part.n[d] = val_const(tail);
        if (!region_fits(w, moves, o, acc->buffer, &part, write, &f)) return false;
    }
    return true;
}

/* How far axis `a` moves the needle at least: by its fixed extent, or by a step of its range. */
static int64_t least_step(const struct task *t, int a) {
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] == a)
            return t->needle->lo[x] == t->needle->hi[x] ? t->needle->hi[x] : t->needle->step[x];
    return 1;
}

/* Are all addresses that loops around the needle give, at an aligned home, multiples of the
 * alignment? */
static bool steps_aligned(const struct work *w, const struct task *t, const struct opnd *o,
                          const struct access *acc) {
    const struct home *h = work_home(w, acc->buffer);
    int64_t size = (int64_t)type_size(o->decl->type);
    int64_t align = operand_align(w->m, o->decl, w->m->home, t->needle->bound);
    for (int k = 0; k < o->geom.n; k++) {
        struct coord c = o->geom.at[k];
        int64_t stride;
        if (c.dim < 0 || !home_stride(h, w->p->buffer[acc->buffer].ndims, c, &stride)) continue;
        for (int a = 0; a <= w->p->naxes; a++) {
            int64_t step = access_coef(w->p, acc, c.dim, a);
            if (a < w->p->naxes) {
                int64_t grain = least_step(t, a);
                if (!step || w->p->axis[a].extent <= grain) continue;
                step *= grain;
            }
            if (c.mod && step % (c.div * c.mod) == 0) continue;
            int64_t moves = step % c.div == 0 ? step / c.div * stride : stride;
            if (step && moves * size % align != 0) return false;
        }
    }
    return true;
}

/* How far the last needle of each axis reaches past the statement's largest index. */
static int64_t overhang(const struct work *w, const struct task *t, const struct access *acc,
                        int dim) {
    int64_t past = 0;
    for (int x = 0; x < t->needle->nx; x++) {
        int a = t->axis[x];
        if (a < 0) continue;
        int64_t grain = least_step(t, a), over = (grain - w->p->axis[a].extent % grain) % grain;
        past += access_coef(w->p, acc, dim, a) * over;
    }
    return past;
}

/* Does the home have every coordinate along which the needle is moved? */
static bool home_has_coords(const struct work *w, const struct opnd *o, int buffer) {
    const struct buffer *b = &w->p->buffer[buffer];
    int64_t stride;
    for (int k = o->geom.ninner; k < o->geom.n; k++) {
        struct coord c = o->geom.at[k];
        if (c.dim >= 0 && b->extent[c.dim] > 1 &&
            !home_stride(work_home(w, buffer), b->ndims, c, &stride))
            return false;
    }
    return true;
}

/* Is one step of the axis what the instruction takes for one, and of one dimension with all that go
 * the same chosen distance? */
static bool walks_home(const struct work *w, const struct task *t, const struct opnd *o,
                       const struct access *acc, const struct digit *dg) {
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims && t->axis[dg->x] >= 0; d++) {
        if (!access_coef(w->p, acc, d, t->axis[dg->x])) continue;
        for (int i = 0; i < o->form.n; i++) {
            const struct digit *k = &o->form.digit[i];
            if (k->free_stride == dg->free_stride && t->axis[k->x] >= 0 &&
                access_coef(w->p, acc, d, t->axis[k->x]) != k->times)
                return false;
        }
    }
    return true;
}

/* Used where it lies: the strides of the home must be the needle's, in one of the operand's
 * layouts. */
bool home_direct(struct work *w, const struct task *t, struct opnd *o, bool write) {
    const struct access *acc = task_access(w, t, o, write);
    for (int l = 0; l < o->decl->nlayouts; l++) {
        struct opnd probe = *o;
        if (!needle_form(w->m, t->needle, o->number, l, &probe.form) || !geom_make(w, t, &probe))
            continue;
        bool ok = true;
        int64_t chosen = INT64_MAX, span = 1; /* the smallest stride that may be chosen; elements
                                                 that the other axes reach */
        for (int i = 0; ok && i < probe.form.n; i++) {
            const struct digit *dg = &probe.form.digit[i];
            int a = t->axis[dg->x];
            int64_t stride = 0;
            bool ranged = t->needle->lo[dg->x] < t->needle->hi[dg->x];
            for (int k = 0; k < probe.geom.n && a >= 0; k++) {
                struct coord c = probe.geom.at[k];
                bool mine =
                    c.dim >= 0 && access_coef(w->p, acc, c.dim, a) &&
                    (dg->free_stride >= 0 || ranged ? !c.mod
                                                    : c.div == dg->weight && c.mod == dg->extent) &&
                    (dg->free_stride < 0 || dg->weight == 1 || c.div == dg->weight);
                if (mine)
                    ok = home_stride(work_home(w, acc->buffer), w->p->buffer[acc->buffer].ndims, c,
                                     &stride);
            }
            ok = ok && (dg->free_stride >= 0 ? stride > 0 && walks_home(w, t, &probe, acc, dg)
                                             : stride == dg->stride || (a < 0 && dg->extent == 1));
            if (dg->free_stride >= 0 && stride < chosen) chosen = stride;
            if (dg->free_stride < 0 && a >= 0) span += (w->p->axis[a].extent - 1) * stride;
        }
        ok = ok && chosen >= span; /* windows that overlap are no layout */
        for (int d = 0; ok && d < w->p->buffer[acc->buffer].ndims; d++)
            ok = home_is_padded(w, acc->buffer, &probe.geom, d, write);
        int64_t lo, hi;
        for (int d = 0; ok && d < w->p->buffer[acc->buffer].ndims; d++) {
            access_range(w->p, &w->p->stmt[t->stmt], acc, d, &lo, &hi);
            ok = lo >= 0 && hi < w->p->buffer[acc->buffer].extent[d] &&
                 hi + overhang(w, t, acc, d) < work_home(w, acc->buffer)->extent[d];
        }
        if (!ok || !home_has_coords(w, &probe, acc->buffer) || !steps_aligned(w, t, &probe, acc) ||
            (probe.zero_tail && !write &&
             (!work_home(w, acc->buffer)->packed || !padding_neutral(w, t, &probe, acc->buffer))))
            continue;
        *o = probe;
        return true;
    }
    return false;
}
