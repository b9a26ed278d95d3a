/* What the fallback's work costs: copies by how rows lie on both sides, other statements by the
 * point. */
#include "ir/pick.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/work.h"
#include <math.h>

/* The axis along which consecutive elements of the buffer's home follow each other; -1: none. */
static int row_axis(const struct work *w, const struct stmt *st, const struct access *acc) {
    const struct buffer *b = &w->p->buffer[acc->buffer];
    const struct home *h = &w->home[acc->buffer];
    int dim = b->ndims - 1;
    for (int i = 0; h->packed && i < h->n; i++)
        if (h->stride[i] == 1) dim = h->at[i].dim;
    for (int a = 0; a < w->p->naxes && dim >= 0; a++)
        if ((st->axes >> a & 1) && access_coef(w->p, acc, dim, a) == 1 && w->p->axis[a].extent > 1)
            return a;
    return -1;
}

static enum copy_kind kind_of(const struct work *w, const struct stmt *st) {
    if (st->combine != COMBINE_SET || st->nops != 1 || st->op[0].code != OP_READ || st->nwhere)
        return COPY_NONE;
    const struct access *from = &st->read[st->op[0].read];
    for (int d = 0; d < w->p->buffer[from->buffer].ndims; d++) {
        int n = 0;
        for (int a = 0; a < w->p->naxes; a++)
            n += (st->axes >> a & 1) && w->p->axis[a].extent > 1 &&
                 access_coef(w->p, from, d, a) != 0;
        if (n > 1) return COPY_ANY;
    }
    int a = row_axis(w, st, from), b = row_axis(w, st, &st->dst);
    return a < 0 || b < 0 ? COPY_ANY : a == b ? COPY_ROWS : COPY_TURN;
}

/* Cycles to stream the bytes through the caches that are too small for them. */
double stream_cycles(const struct work *w, double bytes) {
    double worst = 0;
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        if (mem->caches < 0 || mem->size <= 0 || mem->line <= 0 ||
            bytes <= mem->usable * (double)mem->size)
            continue;
        worst = fmax(worst, bytes / (double)mem->line * mem->refill);
    }
    return worst;
}

double host_in_cycles(const struct work *w, int queue, double cycles) {
    const struct machine *m = w->m;
    double host = m->unit[m->fallback[w->fallback].unit].clock,
           own = m->unit[m->queue[queue].unit].clock;
    return host > 0 && own > 0 ? cycles * own / host : cycles;
}

double host_cycles(const struct work *w, int stmt) {
    const struct stmt *st = &w->p->stmt[stmt];
    if (w->fallback < 0) return 0;
    double points = (double)stmt_points(w->p, st), bytes = 0;
    enum copy_kind kind = kind_of(w, st);
    struct pick pick;
    if (stmt_picks(w->p, st, &pick))
        points *= fmin(1, (double)pick.n / (double)w->p->axis[pick.axis].extent);
    double cycles = points * fallback_cycles(w->m, w->fallback, kind);
    if (kind == COPY_ANY || kind == COPY_NONE) return cycles;
    bytes = 3 * points *
            (double)type_size(w->p->buffer[st->dst.buffer].type); /* read; fetched, written back */
    return cycles + stream_cycles(w, bytes);
}

double host_turns(const struct work *w, int stmt, double turns) {
    const struct stmt *st = &w->p->stmt[stmt];
    return (double)stmt_points(w->p, st) * fallback_cycles(w->m, w->fallback, kind_of(w, st)) +
           turns * w->m->fallback[w->fallback].enter;
}
