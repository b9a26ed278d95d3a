/* Which nodes use which place. Nodes have numbers in the order of the text, so that the uses of a
 * place in any block are a range of numbers, and a question about two places needs no walk. */
#include "scheduler/verify/span.h"
#include "scheduler/verify/verify_int.h"

#include <stdlib.h>

struct uses_node {
    int parent, end;  /* numbers: of the loop around (-1), of what follows the node's body */
    int depth, index; /* loops around; where it stands in its block */
};

struct section_uses {
    struct uses_node *node;
    int *at;    /* of place p: at[start[p] .. start[p + 1]), ascending numbers of nodes */
    int *start; /* [nplaces + 1] */
    int n;
};

struct fill { /* first counts uses, then writes them down */
    struct verify *v;
    struct section_uses *u;
    int *next; /* [nplaces] */
    bool counting;
    int number;
};

static void use(struct fill *f, int place) {
    if (place < 0 || place >= f->v->s->nplaces) return;
    if (!f->counting) f->u->at[f->next[place]] = f->number;
    f->next[place]++;
}

static void use_homes(struct fill *f, int stmt) {
    const struct program *p = f->v->p;
    if (stmt < 0 || stmt >= p->nstmts) return;
    use(f, f->v->home[p->stmt[stmt].dst.buffer]);
    for (int r = 0; r < p->stmt[stmt].nreads; r++) use(f, f->v->home[p->stmt[stmt].read[r].buffer]);
}

static void fill_nodes(struct fill *f, const struct node *node, int n, int parent, int depth) {
    for (int k = 0; k < n; k++) {
        int number = f->number;
        if (node[k].kind == NODE_LOOP && node[k].loop->table) use(f, node[k].loop->table - 1);
        if (node[k].kind == NODE_ISSUE)
            for (int o = 0; o < f->v->m->instr[node[k].issue->instr].noperands; o++)
                use(f, node[k].issue->arg[o].place);
        if (node[k].kind == NODE_FALLBACK) use_homes(f, node[k].fallback->stmt);
        f->number++;
        if (node[k].kind == NODE_LOOP)
            fill_nodes(f, node[k].loop->body, node[k].loop->nbody, number, depth + 1);
        if (!f->counting) f->u->node[number] = (struct uses_node){parent, f->number, depth, k};
    }
}

static struct section_uses *uses_of(struct verify *v, const struct section *c) {
    struct section_uses *u = arena_alloc(&v->arena, sizeof *u);
    size_t places = (size_t)v->s->nplaces;
    struct fill f = {.v = v, .u = u, .counting = true};
    f.next = arena_array(&v->arena, places + 1, sizeof *f.next);
    u->start = arena_array(&v->arena, places + 1, sizeof *u->start);
    fill_nodes(&f, c->node, c->nnodes, -1, 0);
    u->n = f.number;
    u->node = arena_array(&v->arena, (size_t)u->n + 1, sizeof *u->node);
    for (size_t p = 0; p < places; p++) {
        u->start[p + 1] = u->start[p] + f.next[p];
        f.next[p] = u->start[p];
    }
    u->at = arena_array(&v->arena, (size_t)u->start[places] + 1, sizeof *u->at);
    f.counting = false;
    f.number = 0;
    fill_nodes(&f, c->node, c->nnodes, -1, 0);
    return u;
}

void uses_tables(struct verify *v) {
    v->home = arena_array(&v->arena, (size_t)v->p->nbuffers + 1, sizeof *v->home);
    for (int b = 0; b < v->p->nbuffers; b++) v->home[b] = -1;
    for (int p = v->s->nplaces - 1; p >= 0; p--) {
        const struct place *x = &v->s->place[p];
        if (x->keep != KEEP_LOCAL && x->buffer >= 0 && x->buffer < v->p->nbuffers)
            v->home[x->buffer] = p;
    }
    v->uses[0] = uses_of(v, &v->s->prepare);
    v->uses[1] = uses_of(v, &v->s->run);
}

/* ---- questions ---- */
/* The first use that is not before node `from`; where none is, its index is the end's. */
static int use_from(const struct section_uses *u, int place, int from) {
    int lo = u->start[place], hi = u->start[place + 1];
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (u->at[mid] < from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Which node of its block at that depth the node is in. */
static int node_around(const struct section_uses *u, int number, int depth) {
    while (u->node[number].depth > depth) number = u->node[number].parent;
    return number;
}

/* The nodes of the block [from, end) that use the place first and last; false: none does. */
static bool ends_of_use(const struct section_uses *u, int place, int from, int end, int depth,
                        int *first, int *last) {
    int a = use_from(u, place, from), b = use_from(u, place, end);
    if (a == b) return false;
    *first = node_around(u, u->at[a], depth);
    *last = node_around(u, u->at[b - 1], depth);
    return true;
}

/* Do the uses of two places that share bytes interleave? One may begin where the other ends: an
 * instruction in place. */
static bool interleave(const struct section_uses *u, int from, int end, int depth, int p, int q) {
    int first_p, last_p, first_q, last_q;
    if (!ends_of_use(u, p, from, end, depth, &first_p, &last_p) ||
        !ends_of_use(u, q, from, end, depth, &first_q, &last_q) || last_p < first_q ||
        last_q < first_p)
        return false;
    int shared = last_p == first_q ? last_p : last_q == first_p ? last_q : -1;
    if (shared < 0) return true;
    return interleave(u, shared + 1, u->node[shared].end, depth + 1, p, q);
}

int uses_first(const struct verify *v, bool prepare, int place) {
    const struct section_uses *u = v->uses[!prepare];
    int k = u->start[place];
    return k < u->start[place + 1] ? u->node[node_around(u, u->at[k], 0)].index : -1;
}

/* ---- places that share bytes ---- */
static bool share_bytes(const struct place *p, const struct place *q) {
    return p->memory == q->memory && p->address < q->address + q->bytes * q->slots &&
           q->address < p->address + p->bytes * p->slots;
}

static bool overlap_error(struct verify *v, int p, int q) {
    const struct place *a = &v->s->place[p < q ? p : q], *b = &v->s->place[p < q ? q : p];
    return verify_error(v, "places '%s' and '%s' overlap in memory '%s' while both are in use",
                        a->name, b->name, v->m->memory[a->memory].id);
}

struct lifetime {
    int place, first, last; /* nodes of the section */
};

static int by_first(const void *a, const void *b) {
    const struct lifetime *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : x->place - y->place;
}

/* Places in the order in which they are first used; each meets those whose uses have not ended. */
static bool check_lifetimes(struct verify *v, const struct section_uses *u) {
    int n = 0, nlive = 0;
    bool good = true;
    struct lifetime *all = arena_array(&v->arena, (size_t)v->s->nplaces + 1, sizeof *all);
    struct lifetime *live = arena_array(&v->arena, (size_t)v->s->nplaces + 1, sizeof *live);
    for (int p = 0; p < v->s->nplaces; p++) {
        struct lifetime x = {.place = p};
        if (ends_of_use(u, p, 0, u->n, 0, &x.first, &x.last)) all[n++] = x;
    }
    qsort(all, (size_t)n, sizeof *all, by_first);
    for (int k = 0; k < n && !v->stop; k++) {
        int left = 0, p = all[k].place;
        for (int i = 0; i < nlive; i++) {
            int q = live[i].place;
            if (live[i].last < all[k].first) continue;
            live[left++] = live[i];
            if (share_bytes(&v->s->place[p], &v->s->place[q]) && interleave(u, 0, u->n, 0, p, q))
                good = overlap_error(v, p, q);
        }
        nlive = left;
        live[nlive++] = all[k];
    }
    return good;
}

static int64_t end_of(const struct place *p) {
    return p->address + p->bytes * p->slots;
}

/* Homes of arguments and prepared ones share with nothing: of those before in the memory the one
 * that reaches farthest is looked at, of all and of such homes. */
static bool check_lasting(struct verify *v) {
    int n = 0;
    bool good = true;
    struct span *all = arena_array(&v->arena, (size_t)v->s->nplaces + 1, sizeof *all);
    for (int p = 0; p < v->s->nplaces; p++)
        if (v->s->place[p].bytes > 0) all[n++] = (struct span){p, &v->s->place[p]};
    qsort(all, (size_t)n, sizeof *all, span_by_address);
    const struct span *any = NULL, *lasting = NULL;
    for (int k = 0; k < n && !v->stop; k++) {
        const struct place *p = all[k].at;
        bool lasts = p->keep < KEEP_WORKSPACE;
        const struct span *other = lasts ? any : lasting;
        if (other && other->at->memory == p->memory && end_of(other->at) > p->address)
            good = overlap_error(v, all[k].place, other->place);
        if (!any || any->at->memory != p->memory || end_of(p) > end_of(any->at)) any = &all[k];
        if (lasts &&
            (!lasting || lasting->at->memory != p->memory || end_of(p) > end_of(lasting->at)))
            lasting = &all[k];
    }
    return good;
}

bool uses_check_overlaps(struct verify *v) {
    bool good = check_lasting(v);
    for (int k = 0; k < 2 && !v->stop; k++) good &= check_lifetimes(v, v->uses[k]);
    return good;
}
