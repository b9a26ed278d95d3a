/* What the fallback's work costs: copies by how rows lie on both sides, other statements by the
 * point. */
#include "ir/memory.h"
#include "ir/number.h"
#include "ir/pick.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <stdlib.h>

/* The dimension along which elements of the buffer's home follow each other; -1: none. */
static int row_dim(const void *of, int buffer) {
    const struct work *w = of;
    const struct home *h = work_home(w, buffer);
    int dim = w->p->buffer[buffer].ndims - 1;
    for (int i = 0; h->packed && i < h->n; i++)
        if (h->stride[i] == 1) dim = h->at[i].dim;
    return dim;
}

double host_in_cycles(const struct work *w, int queue, double cycles) {
    const struct machine *m = w->m;
    double host = m->unit[m->fallback[w->fallback].unit].clock,
           own = m->unit[m->queue[queue].unit].clock;
    return host > 0 && own > 0 ? cycles * own / host : cycles;
}

/* ---- parts for the instances of the host's unit ---- */

enum { MOST_PARTS = 64 /* of an instance: more divide no better */ };

/* Parts of the dimension are whole blocks of its home. */
static int64_t dim_grain(const struct work *w, int buffer, int dim) {
    const struct home *h = work_home(w, buffer);
    int64_t grain = 1;
    for (int i = 0; h->packed && i < h->n; i++) {
        if (h->at[i].dim != dim) continue;
        int64_t block = h->at[i].mod ? h->at[i].div * h->at[i].mod : h->at[i].div;
        grain = least_multiple(grain, block);
    }
    return grain;
}

/* The dimension that the axis alone moves, element by element; -1: it moves none so, or several. */
static int dim_alone(const struct work *w, const struct access *acc, int axis) {
    int64_t by;
    int dim = access_dim(w->p, acc, axis, &by);
    for (int a = 0; a < w->p->naxes && dim >= 0; a++)
        if (a != axis && w->p->axis[a].extent > 1 && access_coef(w->p, acc, dim, a)) return -1;
    return dim >= 0 && by == 1 ? dim : -1;
}

static bool leaves(const struct work *w, const struct access *acc, int dim, int axis) {
    int64_t at = access_coef(w->p, acc, dim, w->p->naxes);
    return at < 0 || at + w->p->axis[axis].extent > w->p->buffer[acc->buffer].extent[dim];
}

/* Each part of the axis writes elements of its own, and all read alike; 0: not so. */
static int64_t axis_grain(const struct work *w, const struct stmt *st, int axis) {
    int dim = st->axes >> axis & 1 ? dim_alone(w, &st->dst, axis) : -1;
    if (dim < 0) return 0;
    int64_t grain = dim_grain(w, st->dst.buffer, dim);
    for (int r = 0; r < st->nreads; r++) {
        const struct access *acc = &st->read[r];
        if (acc->buffer == st->dst.buffer) return 0;
        if (!access_varies(w->p, acc, axis)) continue;
        int d = dim_alone(w, acc, axis);
        if (d < 0 || leaves(w, acc, d, axis)) return 0;
        grain = least_multiple(grain, dim_grain(w, acc->buffer, d));
    }
    return grain;
}

/* How far outside the axis stands in what is written. */
static int axis_rank(const struct work *w, const struct stmt *st, int axis) {
    const struct home *h = work_home(w, st->dst.buffer);
    int dim = dim_alone(w, &st->dst, axis), rank = -dim;
    for (int i = 0; h->packed && i < h->n; i++)
        if (h->at[i].dim == dim) rank = i;
    return rank;
}

/* Of the statement what the busiest instance has; 1: it is not taken apart. Equal parts, so that
 * copies know their length. */
static double host_share(const struct work *w, int stmt, struct loop *out) {
    const struct stmt *st = &w->p->stmt[stmt];
    int64_t units = w->m->unit[w->m->fallback[w->fallback].unit].count;
    int threads = w->options ? w->options->threads : 0, rank = 0;
    double best = 1;
    if (threads > 0 && threads < units) units = threads;
    for (int a = 0; a < w->p->naxes && units > 1 && !st->scope; a++) {
        int64_t extent = w->p->axis[a].extent, grain = extent > 1 ? axis_grain(w, st, a) : 0;
        for (int64_t n = units; grain && n <= extent / grain && n <= MOST_PARTS * units; n++) {
            int64_t tile = extent / n;
            if (extent % n || tile % grain) continue;
            double part = (double)((n + units - 1) / units * tile) / (double)extent;
            int at = axis_rank(w, st, a);
            if (part > best || (part == best && (best == 1 || at <= rank))) continue;
            *out = (struct loop){a, tile, LOOP_PARALLEL};
            best = part;
            rank = at;
        }
    }
    return best;
}

static double host_alone(const struct work *w, int stmt) {
    struct row_order rows = {row_dim, w};
    return loop_alone(w->m, w->fallback, w->p, &w->p->stmt[stmt], &rows);
}

static double host_shared(const struct work *w, int stmt, double alone, struct loop *part) {
    double of = alone > 0 ? host_share(w, stmt, part) : 1;
    return of < 1 ? w->m->unit[w->m->fallback[w->fallback].unit].waking + alone * of : alone;
}

double host_cycles(const struct work *w, int stmt) {
    struct loop part;
    double alone = w->fallback < 0 ? 0 : host_alone(w, stmt);
    return fmin(alone, host_shared(w, stmt, alone, &part));
}

bool host_is_shared(const struct work *w, int stmt, struct loop *part) {
    double alone = w->fallback < 0 ? 0 : host_alone(w, stmt);
    return host_shared(w, stmt, alone, part) < alone;
}

/* Is an end of a tile of so many values of the axis inside a block of a layout? Then the elements
 * of a tile do not lie in equal steps, and no rows are copied. */
static bool cuts_block(const struct work *w, const struct access *acc, int axis, int64_t tile) {
    const struct home *h = work_home(w, acc->buffer);
    int64_t by;
    int dim = access_dim(w->p, acc, axis, &by);
    for (int i = 0; h->packed && dim >= 0 && i < h->n; i++)
        if (h->at[i].dim == dim && h->at[i].mod && tile * by % (h->at[i].div * h->at[i].mod))
            return true;
    return false;
}

/* Has a tile too little of a row to copy it in vectors? */
static bool cuts_row(const struct work *w, const struct stmt *st, const struct access *acc,
                     int axis, int64_t tile) {
    struct row_order rows = {row_dim, w};
    return tile < ROW_OF_WINDOW && rows_axis(w->p, st, acc, &rows) == axis;
}

bool host_cuts(const struct work *w, int stmt, int axis, int64_t tile) {
    const struct stmt *st = &w->p->stmt[stmt];
    if (tile >= w->p->axis[axis].extent) return false;
    bool cuts = cuts_block(w, &st->dst, axis, tile) || cuts_row(w, st, &st->dst, axis, tile);
    for (int r = 0; r < st->nreads; r++)
        cuts |=
            cuts_block(w, &st->read[r], axis, tile) || cuts_row(w, st, &st->read[r], axis, tile);
    return cuts;
}

double host_turns(const struct work *w, int stmt, double turns, bool cuts) {
    const struct stmt *st = &w->p->stmt[stmt];
    struct row_order rows = {row_dim, w};
    enum copy_kind kind = loop_kind_of(w->p, st, &rows);
    if (cuts && kind != COPY_NONE && kind != COPY_VECTOR) kind = COPY_ANY;
    return (double)stmt_points(w->p, st) * loop_cycles(w->m, w->fallback, w->p, st, kind, &rows) +
           turns * w->m->fallback[w->fallback].enter;
}
