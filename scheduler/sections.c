/* Sections: nests and host work in order, with drains between nests and bell and done between host
 * and device. */
#include "scheduler/emit_int.h"
#include <string.h>

static void add_fallback(struct work *w, struct nodes *out, int stmt) {
    struct fallback_node *f = arena_alloc(&w->s->arena, sizeof *f);
    f->fallback = w->fallback;
    f->stmt = stmt;
    nodes_add(w, out, (struct node){.kind = NODE_FALLBACK, .fallback = f});
}

static int host_queue(const struct work *w) {
    return w->fallback >= 0 ? w->m->fallback[w->fallback].queue : -1;
}

/* Does the host tell queue q when to go on? Not where hardware tracks dependences, or there is no
 * host. */
static bool is_device(const struct work *w, int q) {
    int host = host_queue(w);
    return host >= 0 && q != host && graph_sync(w->m, host, q) != -2;
}

static bool ring(struct work *w, struct nodes *out, uint64_t queues, bool bell) {
    int host = host_queue(w);
    for (int q = 0; q < w->m->nqueues; q++) {
        if (!(queues >> q & 1) || !is_device(w, q)) continue;
        if (!(bell ? add_signal(w, out, host, q) : add_signal(w, out, q, host))) return false;
    }
    return true;
}

static int nest_queue(const struct work *w, const struct nest *n) {
    return w->task[n->core >= 0 ? n->core : n->chain[0]].needle->in->queue;
}

static int nest_at(const struct work *w, int stmt) {
    for (int i = 0; i < w->nnests; i++)
        if (w->nest[i].first == stmt) return i;
    return -1;
}

static bool emit_run(struct work *w, const struct moves *moves, struct nodes *out) {
    uint64_t device = 0, last = 0;
    bool host = false;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i], nest = nest_at(w, s);
        if (w->in_prepare[s]) continue;
        if (nest >= 0 && w->nest[nest].partner >= 0 && !w->nest[nest].leads) continue;
        if (nest >= 0) {
            struct nodes list = {0};
            if (!emit_nest(w, moves, nest, &list)) return false;
            uint64_t queues = nodes_queues(w, list.at, list.n);
            if (host && !ring(w, out, queues, true)) return false;
            if (!host && last && !add_barrier(w, out, last, queues, nest_queue(w, &w->nest[nest])))
                return false;
            for (int k = 0; k < list.n; k++) nodes_add(w, out, list.at[k]);
            last = host ? queues : last | queues;
            device |= queues;
            host = false;
        } else if (w->task_of[s] == -1) {
            if (!host && last && !ring(w, out, last, false)) return false;
            add_fallback(w, out, s);
            last = 0;
            host = true;
        }
    }
    return host || !last || ring(w, out, last, false);
}

/* A queue whose signals nothing carries: neither its own instructions nor one that does nothing. */
static int mute_queue(const struct work *w, const struct node *at, int n) {
    int mute = -1;
    for (int i = 0; i < n && mute < 0; i++) {
        if (at[i].kind == NODE_LOOP) mute = mute_queue(w, at[i].loop->body, at[i].loop->nbody);
        if (at[i].kind != NODE_SYNC) continue;
        const struct queue *q = &w->m->queue[at[i].sync.queue];
        bool carried = q->nop >= 0;
        for (int f = 0; f < w->m->nfallbacks; f++)
            carried |= w->m->fallback[f].queue == at[i].sync.queue ||
                       w->m->fallback[f].unit == q->unit;
        if (!carried) mute = at[i].sync.queue;
    }
    return mute;
}

static bool fail(struct work *w, const char *message) {
    if (!w->diags->errors)
        diag_line(w->diags, w->p->source.file ? w->p->source.file : w->p->name, 0, 0, "%s",
                  message);
    return false;
}

bool schedule_emit(struct work *w, const struct moves *moves) {
    struct nodes prepare = {0}, run = {0};
    for (int i = 0; i < w->norder; i++)
        if (w->in_prepare[w->order[i]]) add_fallback(w, &prepare, w->order[i]);
    if (!emit_run(w, moves, &run))
        return fail(w, "queues of the machine have no sync between them");
    nodes_fold(w, &run);
    int mute = mute_queue(w, run.at, run.n);
    if (mute >= 0) {
        struct text t = {0};
        text_printf(&t,
                    "queue '%s' would have to carry signals where it has no instruction, expected "
                    "one that carries them alone (nop)",
                    w->m->queue[mute].id);
        fail(w, t.at);
        text_free(&t);
        return false;
    }
    w->s->prepare = (struct section){prepare.at, prepare.n};
    w->s->run = (struct section){run.at, run.n};
    return true;
}
