/* What a loop may touch: its frame. The states of a loop's iterations are compared, copied and put
 * back for its frame alone, so that the walk of a loop does not depend on how long the program
 * around it is. What shares bytes with a place of the frame and is not in it is forgotten when the
 * loop begins. */
#include "scheduler/verify/span.h"
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- groups: places that may share bytes ---- */
int places_groups(struct verify *v, int *group_of) {
    const struct schedule *x = v->s;
    size_t n = (size_t)x->nplaces;
    struct span *all = arena_array(&v->arena, n + 1, sizeof *all);
    int groups = 0;
    int64_t end = -1;
    for (size_t p = 0; p < n; p++) all[p] = (struct span){(int)p, &x->place[p]};
    qsort(all, n, sizeof *all, span_by_address);
    for (size_t k = 0; k < n; k++) {
        const struct place *p = all[k].at;
        int64_t to = p->address + p->bytes * p->slots;
        bool apart = k == 0 || p->memory != all[k - 1].at->memory || p->address >= end;
        if (apart && k > 0) groups++;
        group_of[all[k].place] = groups;
        if (apart || to > end) end = to;
    }
    return groups + 1;
}

void frame_groups(struct sym *s) {
    struct arena *a = &s->v->arena;
    size_t n = (size_t)s->v->s->nplaces;
    s->group_of = arena_array(a, n + 1, sizeof *s->group_of);
    s->listed = arena_array(a, n + 1, sizeof *s->listed);
    int groups = places_groups(s->v, s->group_of);
    s->group = arena_array(a, (size_t)groups, sizeof *s->group);
    for (size_t p = 0; p < n; p++) s->group[s->group_of[p]].cap++;
    for (int g = 0; g < groups; g++)
        s->group[g].at = arena_array(a, (size_t)s->group[g].cap + 1, sizeof *s->group[g].at);
}

bool places_share(const struct place *p, const struct place *q) {
    return p->memory == q->memory && p->address < q->address + q->bytes * q->slots &&
           q->address < p->address + p->bytes * p->slots;
}

static bool anything_known(const struct sym *s, int place) {
    return s->of[place].n > 0 || s->padded[place];
}

static void forget(struct sym *s, int place) {
    s->of[place].n = 0;
    s->unpadded += s->padded[place];
    s->padded[place] = false;
}

/* Of the others that something is known of. With `frame`, of those outside it. */
static void forget_others(struct sym *s, int place, bool frame) {
    struct group_of_places *g = &s->group[s->group_of[place]];
    const struct place *all = s->v->s->place;
    int left = 0;
    for (int k = 0; k < g->n; k++) {
        int q = g->at[k];
        bool spared = q == place || (frame && s->stamp[q] == s->stamps);
        if (!spared && anything_known(s, q) && places_share(&all[q], &all[place])) forget(s, q);
        s->listed[q] = anything_known(s, q);
        if (s->listed[q]) g->at[left++] = q;
    }
    g->n = left;
}

void frame_forget_sharers(struct sym *s, int place) {
    forget_others(s, place, false);
}

/* ---- frames ---- */
static void add(struct sym *s, struct frame *f, int place) {
    if (place < 0 || s->stamp[place] == s->stamps) return;
    s->stamp[place] = s->stamps;
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 16;
        f->at = memory_grow(f->at, (size_t)f->cap * sizeof *f->at);
    }
    f->at[f->n++] = place;
}

static void add_stmt(struct sym *s, struct frame *f, int stmt) {
    if (stmt >= 0) add(s, f, s->v->s->nplaces + stmt);
}

static void add_memory(struct sym *s, struct frame *f, int memory) {
    for (int p = 0; p < s->v->s->nplaces; p++)
        if (s->v->s->place[p].memory == memory) add(s, f, p);
}

static void add_issue(struct sym *s, struct frame *f, const struct issue_node *n) {
    const struct instr *in = &s->v->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++) {
        add(s, f, n->arg[o].place);
        if (in->operand[o].also >= 0) add_memory(s, f, in->operand[o].also);
    }
    add_stmt(s, f, n->stmt);
    add_stmt(s, f, n->init);
    for (int q = 0; q < n->nalso; q++) add_stmt(s, f, n->also[q]);
}

static void add_fallback(struct sym *s, struct frame *f, int stmt) {
    const struct stmt *t = &s->v->p->stmt[stmt];
    add_stmt(s, f, stmt);
    add(s, f, s->v->home[t->dst.buffer]);
    for (int r = 0; r < t->nreads; r++) add(s, f, s->v->home[t->read[r].buffer]);
}

static void add_nodes(struct sym *s, struct frame *f, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) {
            if (node[k].loop->table) add(s, f, node[k].loop->table - 1);
            add_nodes(s, f, node[k].loop->body, node[k].loop->nbody);
        }
        if (node[k].kind == NODE_ISSUE) add_issue(s, f, node[k].issue);
        if (node[k].kind == NODE_FALLBACK) add_fallback(s, f, node[k].fallback->stmt);
        if (node[k].kind == NODE_ROTATE) add(s, f, node[k].rotate);
        if (node[k].kind == NODE_CONFIGURE) {
            const struct configure *c = &s->v->m->configure[node[k].configure->configure];
            for (int i = 0; i < c->nclobbers; i++) add_memory(s, f, c->clobbers[i]);
        }
    }
}

void sym_frame(struct sym *s, const struct loop_node *l, struct frame *f) {
    *f = (struct frame){0};
    s->stamps++;
    add_nodes(s, f, l->body, l->nbody);
    for (int k = 0; k < f->n; k++)
        if (f->at[k] < s->v->s->nplaces) forget_others(s, f->at[k], true);
}

void sym_frame_free(struct frame *f) {
    free(f->at);
}

/* ---- states ---- */
void known_take(const struct sym *s, const struct frame *f, struct known *out) {
    int n = 0;
    for (int k = 0; k < f->n; k++) n += s->of[f->at[k]].n;
    out->r.n = 0;
    regions_reserve(&out->r, n);
    if (!out->slot) out->slot = memory_array((size_t)f->n + 1, sizeof *out->slot);
    for (int k = 0; k < f->n; k++) {
        const struct regions *r = &s->of[f->at[k]];
        region_copy(&out->r.at[out->r.n], r->at, r->n);
        out->r.n += r->n;
        out->slot[k] = f->at[k] < s->v->s->nplaces ? s->slot[f->at[k]] : (struct slot){0};
    }
    out->setting = settings_copy(s, out->setting);
}

void known_put(struct sym *s, const struct frame *f, const struct regions *r,
               const struct slot *slot, const struct setting *setting) {
    memcpy(s->setting, setting, (size_t)s->nsettings * sizeof *setting);
    for (int k = 0; k < f->n; k++) {
        s->of[f->at[k]].n = 0;
        if (f->at[k] < s->v->s->nplaces) s->slot[f->at[k]] = slot[k];
    }
    for (int k = 0; k < r->n; k++) regions_append(s, &r->at[k]);
    sym_compare(s, r->n);
}

void known_free(struct known *x) {
    regions_free(&x->r);
    free(x->slot);
    free(x->setting);
    *x = (struct known){0};
}
