/* What the fallback takes for an element: plain copies have intervals of their own, by how rows lie
 * on both sides (docs/machine-format.md). */
#include "ir/memory.h"
#include "scheduler/clock/clock_int.h"
#include <stdlib.h>

/* The dimension along which the elements of a home follow one another; -1: none. */
static int row_dim(const struct engine *e, int buffer) {
    const struct buffer *b = &e->schedule->program->buffer[buffer];
    const struct place *home = &e->schedule->place[schedule_home(e->schedule, buffer)];
    int64_t index[MAX_DIMS] = {0};
    if (!home->layout) return b->ndims - 1;
    for (int d = b->ndims - 1; d >= 0; d--) {
        if (b->extent[d] < 2) continue;
        index[d] = 1;
        if (layout_offset(home->layout, b->ndims, home->extent ? home->extent : b->extent, NULL,
                          index) == 1)
            return d;
        index[d] = 0;
    }
    return -1;
}

/* The axis that walks along the rows; -1: none. */
static int row_axis(const struct engine *e, const struct stmt *s, const struct access *a) {
    const struct program *p = e->schedule->program;
    int dim = row_dim(e, a->buffer);
    for (int x = 0; x < p->naxes && dim >= 0; x++)
        if ((s->axes >> x & 1) && p->axis[x].extent > 1 && access_coef(p, a, dim, x) == 1) return x;
    return -1;
}

double fallback_interval(const struct engine *e, int fallback, const struct stmt *s) {
    const struct program *p = e->schedule->program;
    enum copy_kind kind = COPY_NONE;
    if (s->combine == COMBINE_SET && s->nops == 1 && s->op[0].code == OP_READ && !s->nwhere) {
        int a = row_axis(e, s, &s->read[s->op[0].read]), b = row_axis(e, s, &s->dst);
        kind = copy_kind_of(p, s, a, b);
    } else {
        int *row = memory_array((size_t)s->nreads + 1, sizeof *row);
        for (int r = -1; r < s->nreads; r++)
            row[r + 1] = row_axis(e, s, r < 0 ? &s->dst : &s->read[r]);
        kind = loop_kind_of(p, s, row);
        free(row);
        if (kind == COPY_VECTOR)
            return fallback_cycles(e->machine, fallback, kind) * loop_words(p, s);
    }
    return fallback_cycles(e->machine, fallback, kind);
}
