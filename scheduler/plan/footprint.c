/* Tiles of operands: what they hold, whether moves can bring them, and how much passes in all. */
#include "ir/number.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <stdlib.h>

int plan_normalise(const struct work *w, const struct plan *p, const struct access *acc,
                   int depth) {
    while (depth > 0 && !access_varies(w->p, acc, p->loop[depth - 1].axis)) depth--;
    return depth;
}

void tile_region(const struct work *w, const struct stmt *st, const struct access *acc,
                 const struct geom *g, const int64_t *tile, struct region *r) {
    region_padding(w->p, st, acc, r);
    if (g->repeat_axis >= 0) r->repeat = val_const(tile[g->repeat_axis]);
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        int64_t n = 1;
        for (uint64_t left = st->axes; left; left &= left - 1) {
            int a = __builtin_ctzll(left);
            int64_t c = access_coef(w->p, acc, d, a), whole = g->walks[d] == a ? g->takes[d] : 0;
            if (c) n += c * ((whole ? round_up(tile[a], whole) : tile[a]) - 1);
            if ((g->sparse >> d & 1) && c && tile[a] > 1)
                r->apart[d] = common_divisor(r->apart[d], c);
        }
        r->lo[d] = val_const(access_coef(w->p, acc, d, w->p->naxes));
        r->n[d] = val_const(round_up((n - 1) / region_step(g, r, d) + 1, g->block[d]));
    }
}

void plan_region(const struct work *w, const struct plan *p, const struct task *t,
                 const struct access *acc, const struct geom *g, int depth, struct region *r) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int64_t tile[MAX_AXES];
    for (uint64_t left = st->axes; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        tile[a] = plan_tile(w, p, a, depth);
    }
    tile_region(w, st, acc, g, tile, r);
}

bool last_region(const struct work *w, const struct plan *p, const struct task *t,
                 const struct access *acc, const struct geom *g, int depth, struct region *r) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    int64_t tile[MAX_AXES];
    bool other = false;
    for (uint64_t left = st->axes; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        tile[a] = plan_least(w, p, a, depth);
        other |= tile[a] != plan_tile(w, p, a, depth) && access_varies(w->p, acc, a);
    }
    if (other) tile_region(w, st, acc, g, tile, r);
    return other;
}

int64_t slot_bytes(struct work *w, const struct opnd *o, const struct region *r) {
    struct slot s = slot_make(&w->s->arena, &o->geom, r);
    int64_t align = least_multiple(w->m->memory[o->memory].align, o->align), bytes;
    if (__builtin_mul_overflow(s.elements.c, (int64_t)type_size(o->decl->type), &bytes) ||
        bytes > INT64_C(1) << 50)
        return INT64_C(1) << 50;
    return (bytes + align - 1) / align * align;
}

int64_t blocks_along(const struct work *w, const struct task *t, const struct opnd *o, int axis,
                     uint64_t dims) {
    const struct access *acc = opnd_access(w, t, o);
    int64_t unit = 1;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        int64_t by = llabs(access_coef(w->p, acc, d, axis)), block = o->geom.block[d];
        if (by && (dims >> d & 1)) unit = least_multiple(unit, block / common_divisor(by, block));
    }
    return unit;
}

/* Copies hold whole blocks, also where needles take parts of them. */
static bool whole_blocks(const struct work *w, const struct plan *p, const struct task *t,
                         const struct opnd *o, const struct access *acc, int depth) {
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        for (int a = 0; o->geom.grain[d] != o->geom.block[d] && a < w->p->naxes; a++) {
            int64_t tile = plan_tile(w, p, a, depth);
            if (access_coef(w->p, acc, d, a) && (w->p->stmt[t->stmt].axes >> a & 1) &&
                tile % o->geom.block[d] && tile < w->p->axis[a].extent)
                return false;
        }
    return true;
}

/* Each padded tile must hold some real data: moves have no empty boxes. */
static bool never_empty(const struct work *w, const struct plan *p, const struct task *t,
                        const struct access *acc, int depth) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    struct region r;
    region_padding(w->p, st, acc, &r);
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        if (!r.pad_lo[d] && !r.pad_hi[d]) continue;
        int64_t first_hi = access_coef(w->p, acc, d, w->p->naxes), last_lo = first_hi;
        for (int a = 0; a < w->p->naxes; a++) {
            int64_t c = access_coef(w->p, acc, d, a), e = w->p->axis[a].extent,
                    tile = plan_tile(w, p, a, depth);
            if (!c || !(st->axes >> a & 1)) continue;
            first_hi += c * (tile - 1); /* the first tile is never a tail */
            last_lo += c * (e - plan_least(w, p, a, depth));
        }
        if (first_hi < 0 || last_lo >= w->p->buffer[acc->buffer].extent[d]) return false;
    }
    return true;
}

bool tile_sound(const struct pricing *c, const struct task *t, int i, const struct access *acc,
                int depth, enum check what) {
    struct asked *a = plan_asked(c->plan, t);
    uint64_t bit = UINT64_C(1) << depth;
    if (a && (a->checked[what][i] & bit)) return a->sound[what][i] & bit;
    bool ok = what == NEVER_EMPTY ? never_empty(c->w, c->plan, t, acc, depth)
                                  : whole_blocks(c->w, c->plan, t, &t->op[i], acc, depth);
    if (a) a->checked[what][i] |= bit;
    if (a && ok) a->sound[what][i] |= bit;
    return ok;
}

/* Tails exact, padding counted. */
static double traffic(const struct work *w, const struct plan *p, const struct task *t,
                      const struct access *acc, int depth) {
    double n = 1;
    uint64_t seen = 0;
    for (int i = 0; i < depth; i++) {
        int a = p->loop[i].axis;
        if (access_varies(w->p, acc, a) || (seen >> a & 1)) continue;
        seen |= UINT64_C(1) << a;
        n *= plan_tiles(w, p, a, depth);
    }
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        double points = 1, trips = 1;
        for (uint64_t left = w->p->stmt[t->stmt].axes; left; left &= left - 1) {
            int a = __builtin_ctzll(left);
            int64_t c = access_coef(w->p, acc, d, a);
            if (!c) continue;
            double k = plan_tiles(w, p, a, depth);
            points = points * k + (double)c * ((double)w->p->axis[a].extent - k) * trips;
            trips *= k;
        }
        n *= points;
    }
    return n;
}

double plan_traffic(const struct work *w, const struct plan *p, const struct task *t,
                    const struct access *acc, int depth) {
    struct asked *a = plan_asked(p, t);
    int i = asked_access(&w->p->stmt[t->stmt], acc);
    if (!a || i < 0) return traffic(w, p, t, acc, depth);
    if (!(a->passed[i] >> depth & 1)) a->traffic[i][depth] = traffic(w, p, t, acc, depth);
    a->passed[i] |= UINT64_C(1) << depth;
    return a->traffic[i][depth];
}

bool loose_alone(const struct work *w, const struct plan *p, const struct task *t,
                 const struct opnd *o, const struct access *acc, int depth) {
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        for (int a = 0; a < w->p->naxes && (o->geom.loose >> d & 1); a++)
            if ((w->p->stmt[t->stmt].axes >> a & 1) &&
                access_coef(w->p, acc, d, a) % (o->geom.block[d] * o->geom.step[d]) &&
                plan_tile(w, p, a, depth) > 1) {
                bool walked = false;
                for (int x = 0; x < t->needle->nx; x++) walked |= t->axis[x] == a;
                if (!walked) return false;
            }
    return true;
}
