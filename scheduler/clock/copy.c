/* What the fallback takes for an element: by how rows lie on both sides
 * (docs/machine-format.md). */
#include "scheduler/clock/clock_int.h"

/* The dimension along which the elements of a home follow one another; -1: none. */
static int row_dim(const void *of, int buffer) {
    const struct engine *e = of;
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

double fallback_interval(const struct engine *e, int fallback, const struct stmt *s) {
    const struct program *p = e->schedule->program;
    struct row_order rows = {row_dim, e};
    return loop_cycles(e->machine, fallback, p, s, loop_kind_of(p, s, &rows), &rows);
}
