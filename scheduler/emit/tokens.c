/* Tokens between the queues of a nest: which edge a fill's user waits for, whether fills and
 * results share tokens, how many credits a sync holds. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/graph.h"

struct edge filling_edge(const struct emitter *e, const struct filling *f) {
    return edge_find(e->w->m, f->queue, f->completes, f->user);
}

bool same_tokens(const struct emitter *e) {
    struct edge give = edge_find(e->w->m, e->exec, e->exec_completes, e->store),
                back = edge_find(e->w->m, e->store, e->store_completes, e->exec);
    if (e->store < 0 || back.kind != EDGE_TOKEN) return false;
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        struct edge to = filling_edge(e, f),
                    from = edge_find(e->w->m, f->user, f->user_completes, f->queue);
        if (f->queue < 0 || f->user != e->exec || to.kind != EDGE_TOKEN) continue;
        if (to.sync == back.sync || from.sync == give.sync) return true;
    }
    return false;
}

int within_depth(const struct machine *m, int credits, const struct edge *edge) {
    int64_t depth = edge->kind == EDGE_TOKEN ? m->sync[edge->sync].depth : -1;
    return depth >= 0 && depth < credits ? (int)depth : credits;
}
