/* The host's copies that turn with a nest's loops (plan/feeds.c decides which), in the tree. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"

static void emit_one(struct emitter *e, struct nodes *out, const struct feed *f) {
    struct fallback_node *node = nodes_host(e->w, out, f->stmt);
    struct home *h = &e->w->home[feed_access(e->w, f)->buffer];
    int dim;
    for (int i = 0; i < f->depth; i++) {
        int axis = e->nest->plan.loop[i].axis, x = feed_axis(e->w, e->nest, f, i, &dim);
        host_part(e->w, node, x, e->at[axis].lo, e->at[axis].size);
        if (h->fold) h->lo[dim] = e->at[axis].lo;
    }
}

/* Where a result's home is folded, its tile begins here too. */
static void begin_tile(struct emitter *e, const struct feed *f) {
    struct home *h = &e->w->home[feed_access(e->w, f)->buffer];
    int dim;
    for (int i = 0; i < f->depth && h->fold; i++) {
        feed_axis(e->w, e->nest, f, i, &dim);
        h->lo[dim] = e->at[e->nest->plan.loop[i].axis].lo;
    }
}

void feeds_emit(struct emitter *e, struct nodes *out, int depth, bool after) {
    for (int k = 0; k < e->nest->nfeeds; k++) {
        const struct feed *f = &e->nest->feed[k];
        if (f->depth != depth) continue;
        if (!after) begin_tile(e, f);
        if (f->after == after) emit_one(e, out, f);
    }
}
