/* The host's copies that turn with a nest's loops (plan/feeds.c decides which), in the tree. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

static void emit_one(struct emitter *e, struct nodes *out, const struct feed *f) {
    struct work *w = e->w;
    struct arena *a = &w->s->arena;
    struct fallback_node *node = arena_alloc(a, sizeof *node);
    struct home *h = &w->home[feed_access(w, f)->buffer];
    int dim;
    node->fallback = w->fallback;
    node->stmt = f->stmt;
    node->lo = arena_array(a, (size_t)w->p->naxes, sizeof *node->lo);
    node->hi = arena_array(a, (size_t)w->p->naxes, sizeof *node->hi);
    for (int i = 0; i < f->depth; i++) {
        int axis = e->nest->plan.loop[i].axis, x = feed_axis(w, e->nest, f, i, &dim);
        node->lo[x] = val_sx(a, e->lo[axis]);
        node->hi[x] = val_sx(a, val_add(a, e->lo[axis], e->size[axis]));
        if (h->fold) h->lo[dim] = e->lo[axis];
    }
    nodes_add(w, out, (struct node){.kind = NODE_FALLBACK, .fallback = node});
}

/* Where a result's home is folded, its tile begins here too. */
static void begin_tile(struct emitter *e, const struct feed *f) {
    struct home *h = &e->w->home[feed_access(e->w, f)->buffer];
    int dim;
    for (int i = 0; i < f->depth && h->fold; i++) {
        feed_axis(e->w, e->nest, f, i, &dim);
        h->lo[dim] = e->lo[e->nest->plan.loop[i].axis];
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
