/* Live ranges of places over the nodes of a section. */
#include "scheduler/schedule/schedule.h"
#include "ir/memory.h"

#include <stdlib.h>

struct walk {
    const struct schedule *s;
    const int *home; /* [nbuffers] place; -1 */
    struct live_range *live;
    int node; /* of the section */
};

static void use(struct walk *w, int place) {
    if (place < 0 || place >= w->s->nplaces) return;
    struct live_range *r = &w->live[place];
    if (w->node < r->first) r->first = w->node;
    if (w->node > r->last) r->last = w->node;
}

static void use_nodes(struct walk *w, const struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP) {
            use(w, node[i].loop->table - 1);
            use_nodes(w, node[i].loop->body, node[i].loop->nbody);
        }
        if (node[i].kind == NODE_ISSUE)
            for (int o = 0; o < w->s->machine->instr[node[i].issue->instr].noperands; o++)
                use(w, node[i].issue->arg[o].place);
        if (node[i].kind == NODE_FALLBACK) {
            const struct stmt *t = &w->s->program->stmt[node[i].fallback->stmt];
            use(w, w->home[t->dst.buffer]);
            for (int r = 0; r < t->nreads; r++) use(w, w->home[t->read[r].buffer]);
        }
    }
}

struct live_range *schedule_live(struct arena *a, const struct schedule *s,
                                 const struct section *c) {
    struct live_range *live = arena_array(a, (size_t)s->nplaces + 1, sizeof *live);
    int *home = memory_array((size_t)s->program->nbuffers + 1, sizeof *home);
    for (int b = 0; b < s->program->nbuffers; b++) home[b] = -1;
    for (int p = 0; p < s->nplaces; p++) {
        live[p] = (struct live_range){c->nnodes, -1};
        if (s->place[p].keep != KEEP_LOCAL) home[s->place[p].buffer] = p;
    }
    struct walk w = {s, home, live, 0};
    for (; w.node < c->nnodes; w.node++) use_nodes(&w, &c->node[w.node], 1);
    free(home);
    return live;
}

int64_t schedule_workspace(const struct schedule *s) {
    int64_t low = INT64_MAX, high = 0;
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *x = &s->place[p];
        if (x->keep != KEEP_WORKSPACE || x->bytes == 0) continue;
        if (x->address < low) low = x->address;
        if (x->address + x->bytes > high) high = x->address + x->bytes;
    }
    return high > low ? high - low : 0;
}

static int64_t most_live(const struct schedule *s, const struct section *c) {
    struct arena a;
    arena_init(&a);
    const struct live_range *live = schedule_live(&a, s, c);
    int64_t *more = arena_array(&a, (size_t)c->nnodes + 1, sizeof *more), now = 0, most = 0;
    for (int p = 0; p < s->nplaces; p++) {
        if (s->place[p].keep != KEEP_WORKSPACE || live[p].last < 0) continue;
        more[live[p].first] += s->place[p].bytes;
        more[live[p].last + 1] -= s->place[p].bytes;
    }
    for (int n = 0; n < c->nnodes; n++)
        if ((now += more[n]) > most) most = now;
    arena_free(&a);
    return most;
}

int64_t schedule_workspace_bound(const struct schedule *s) {
    int64_t prepare = most_live(s, &s->prepare), run = most_live(s, &s->run);
    return prepare > run ? prepare : run;
}
