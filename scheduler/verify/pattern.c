/* What changes from one iteration of a loop to the next: the line through the regions of two
 * iterations, and those that earlier visits of the loop found. A pattern is a guess: induct.c
 * proves it. */
#include "scheduler/verify/pattern.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* Regions that iterations left as they were; *next: where the next one is looked for first. */
static bool was_there(const struct known *before, const struct region *x, int *next) {
    for (int k = 0; k < before->r.n; k++) {
        int at = (*next + k) % before->r.n;
        if (!region_same(&before->r.at[at], x)) continue;
        *next = at + 1;
        return true;
    }
    return false;
}

bool pattern_known(const struct sym *s, const struct trips *t) {
    const struct history *h = &s->history[t->loop->var];
    return h->loop == t->loop && h->group == t->group && h->n > 0;
}

void pattern_learn(struct sym *s, const struct trips *t, int of, const struct regions *inv,
                   int counter) {
    enum { LATELY = sizeof s->history->lately / sizeof *s->history->lately };
    struct history *h = &s->history[t->loop->var];
    if (!pattern_known(s, t)) h->n = h->next = 0;
    if (of < 0) {
        of = h->next;
        h->next = s->bold ? (h->next + 1) % LATELY : 0;
        if (h->n < LATELY && (s->bold || h->n == 0)) h->n++;
    }
    struct learned *x = &h->lately[of];
    h->loop = t->loop;
    h->first = t->first;
    h->group = t->group;
    x->counter = counter;
    regions_copy(&x->inv, inv);
    if (x->nold < inv->n) x->old = memory_grow(x->old, (size_t)(x->nold = inv->n));
    for (int k = 0, next = 0; k < inv->n; k++) x->old[k] = was_there(&t->start, &inv->at[k], &next);
}

void history_free(struct history *h) {
    for (size_t k = 0; k < sizeof h->lately / sizeof *h->lately; k++) {
        regions_free(&h->lately[k].inv);
        free(h->lately[k].old);
    }
    guesses_free(h);
}

/* b before iteration `from`, a before the one before: the line through them. */
static bool line(const struct pattern *p, const struct lin *a, const struct lin *b, struct lin *out,
                 int *differ) {
    struct lin step = *b;
    int64_t d;
    if (!lin_add(&step, a, -1) || !lin_constant(&step, &d)) return false;
    *out = *b;
    *differ += d != 0;
    int64_t back;
    if (__builtin_mul_overflow(d, p->from, &back) || __builtin_sub_overflow(b->c, back, &out->c))
        return false;
    out->k[p->counter] = d;
    return true;
}

static bool same_row(const int64_t *a, const int64_t *b, int n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* The dimension of b that a, being one shorter, has once; -1: none; -2: they have the same. */
static int extra_dim(const struct region *a, const struct region *b) {
    if (a->ndims == b->ndims) return -2;
    if (a->ndims + 1 != b->ndims || a->nindices != b->nindices) return -1;
    for (int d = 0; d < b->ndims; d++) {
        bool same = true;
        for (int k = 0; k < b->ndims && same; k++) {
            int i = k > d ? k - 1 : k;
            same = k == d || (a->s[i] == b->s[k] && same_row(a->c[i], b->c[k], a->nindices));
        }
        if (same) return d;
    }
    return -1;
}

/* Dimension d of `like`, of length 1. */
static void add_dim(struct region *x, const struct region *like, int d) {
    for (int k = x->ndims; k > d; k--) {
        x->n[k] = x->n[k - 1];
        x->s[k] = x->s[k - 1];
        memcpy(x->c[k], x->c[k - 1], sizeof x->c[k]);
    }
    x->n[d] = lin_of(1);
    x->s[d] = like->s[d];
    memcpy(x->c[d], like->c[d], sizeof x->c[d]);
    x->ndims++;
}

static bool region_line(const struct pattern *p, const struct region *a, const struct region *b,
                        struct region *out, int *differ) {
    struct lin one = lin_of(1);
    struct region longer;
    if (!a->box && !b->box && a->ndims == b->ndims + 1) {
        int d = extra_dim(b, a);
        if (d < 0) return false;
        longer = *b;
        add_dim(&longer, a, d);
        b = &longer;
    }
    *out = *b;
    *differ = 0;
    if (a->place != b->place || a->age != b->age || a->buffer != b->buffer ||
        a->writer != b->writer || a->type != b->type || a->box != b->box ||
        a->filled != b->filled || (a->filled && a->fill.i != b->fill.i) ||
        a->nindices != b->nindices || !line(p, &a->count, &b->count, &out->count, differ) ||
        !line(p, &a->step, &b->step, &out->step, differ))
        return false;
    for (int e = 0; e < a->nindices; e++)
        if (!line(p, &a->o[e], &b->o[e], &out->o[e], differ) ||
            (a->box && !line(p, &a->n[e], &b->n[e], &out->n[e], differ)))
            return false;
    if (a->box) return true;
    int extra = extra_dim(a, b);
    if (extra == -1 || !line(p, &a->base, &b->base, &out->base, differ)) return false;
    for (int d = 0; d < b->ndims; d++) {
        int i = extra >= 0 && d > extra ? d - 1 : d;
        if (d != extra && (a->s[i] != b->s[d] || !same_row(a->c[i], b->c[d], a->nindices)))
            return false;
        if (!line(p, d == extra ? &one : &a->n[i], &b->n[d], &out->n[d], differ)) return false;
    }
    return true;
}

/* What the loop's last induction found, for the state after its first iteration: by how much each
 * number of a region grows. Others are taken to stay. */
static void learned_line(const struct pattern *p, const struct lin *grows, int counter,
                         struct lin *out) {
    int64_t step = grows->k[counter];
    out->c -= step * p->from;
    out->k[p->counter] += step;
}

static bool alike_but_numbers(const struct region *a, const struct region *b) {
    if (a->place != b->place || a->age != b->age || a->buffer != b->buffer || a->type != b->type ||
        a->box != b->box || a->filled != b->filled || a->nindices != b->nindices)
        return false;
    return a->box || extra_dim(a, b) != -1;
}

/* As long as the grown one was after its first iteration, where both are numbers: what is left of
 * an older region grows otherwise. */
static bool begins_alike(const struct learned *l, const struct region *a,
                         const struct region *grown) {
    for (int k = 0; k < (a->box ? a->nindices : a->ndims); k++) {
        struct lin then = grown->n[k];
        int64_t x, y;
        then.c += then.k[l->counter];
        then.k[l->counter] = 0;
        if (lin_constant(&then, &x) && lin_constant(&a->n[k], &y) && x != y) return false;
    }
    return true;
}

static bool by_learned(const struct pattern *p, const struct learned *l, const struct region *a,
                       const struct region *grown, struct region *out) {
    *out = *a;
    if (!alike_but_numbers(a, grown)) return false;
    int extra = a->box ? -2 : extra_dim(a, grown);
    if (extra >= 0) {
        add_dim(out, grown, extra);
    }
    for (int d = 0; !a->box && d < out->ndims; d++)
        if (out->s[d] != grown->s[d] || !same_row(out->c[d], grown->c[d], a->nindices))
            return false;
    if (!begins_alike(l, out, grown)) return false;
    out->settled = false;
    if (a->writer == grown->writer) {
        learned_line(p, &grown->count, l->counter, &out->count);
        learned_line(p, &grown->step, l->counter, &out->step);
    }
    learned_line(p, &grown->base, l->counter, &out->base);
    for (int e = 0; e < out->nindices; e++) learned_line(p, &grown->o[e], l->counter, &out->o[e]);
    for (int k = 0; k < (out->box ? out->nindices : out->ndims); k++)
        learned_line(p, &grown->n[k], l->counter, &out->n[k]);
    return true;
}

/* False: the first iteration made what no iteration made then. */
static bool recall_pattern(const struct pattern *p, const struct learned *l,
                           const struct known *before, const struct known *now,
                           struct regions *out) {
    bool *used = memory_array((size_t)l->inv.n + 1, sizeof *used), good = true;
    regions_copy(out, &now->r);
    for (int k = 0, next = 0; k < out->n; k++) {
        const struct region a = out->at[k];
        if (was_there(before, &a, &next)) continue;
        bool found = false;
        /* What is left of older ones may have been written by another statement then. */
        for (int i = 0; i < 2 * l->inv.n && !found; i++) {
            const struct region *grown = &l->inv.at[i % l->inv.n];
            struct region x;
            bool same = a.writer == grown->writer, now_same = i < l->inv.n;
            if (used[i % l->inv.n] || l->old[i % l->inv.n] || same != now_same ||
                !by_learned(p, l, &a, grown, &x))
                continue;
            used[i % l->inv.n] = found = true;
            out->at[k] = x;
        }
        good &= found;
    }
    free(used);
    return good;
}

int pattern_recall(struct sym *s, const struct pattern *p, const struct loop_node *l,
                   const struct known *before, const struct known *now, struct regions *out) {
    const struct history *h = &s->history[l->var];
    for (int k = 0; k < h->n; k++)
        if (recall_pattern(p, &h->lately[k], before, now, out)) return k;
    sym_fail(s, "another pattern than before");
    return -1;
}

bool pattern_find(struct sym *s, const struct pattern *p, const struct known *before,
                  const struct known *now, struct regions *out) {
    bool *used = memory_array((size_t)before->r.n + 1, sizeof *used), good = true;
    out->n = 0;
    regions_copy(out, &now->r);
    out->n = 0;
    for (int k = 0, next = 0; k < now->r.n && good; k++) {
        const struct region *b = &now->r.at[k];
        int best = -1, least = 1000, tries = 0;
        struct region x, found;
        for (; tries < before->r.n && least > 0; tries++) {
            int i = (next + tries) % before->r.n, differ;
            if (used[i] || !region_line(p, &before->r.at[i], b, &x, &differ) || differ >= least)
                continue;
            best = i;
            least = differ;
            found = x;
        }
        sym_compare(s, tries);
        next = best + 1;
        if (best >= 0) used[best] = true;
        if (least > 0) found.settled = false;
        out->at[out->n++] = best >= 0 ? found : *b; /* what has no pattern may stay */
        good = best >= 0 || b->place < s->v->s->nplaces;
    }
    for (int i = 0; i < before->r.n && good; i++)
        good = used[i] || before->r.at[i].place < s->v->s->nplaces;
    free(used);
    return good || sym_fail(s, "the instances that a loop executes have no pattern");
}

/* ---- what an iteration did not leave as it was ---- */
bool pattern_moves(const struct region *x, int counter) {
    bool some = x->base.k[counter] || x->count.k[counter] || x->step.k[counter];
    for (int e = 0; e < x->nindices; e++) some |= x->o[e].k[counter] != 0;
    for (int k = 0; k < (x->box ? x->nindices : x->ndims); k++) some |= x->n[k].k[counter] != 0;
    return some;
}

/* What all values of the counter have of a region of which one end moves: its first or its last
 * one. */
static bool in_common(struct sym *s, const struct region *y, int counter, struct region *out) {
    const struct lin end[2] = {lin_of(s->lo[counter]), lin_of(s->hi[counter])};
    struct region at[2] = {*y, *y};
    *out = *y;
    if (!pattern_moves(y, counter)) return true;
    for (int k = 0; k < 2; k++) region_move(&at[k], counter, &end[k], true);
    for (int k = 0; k < 2; k++) {
        if (region_empty(s, &at[k]) || !region_inside(s, &at[k], &at[1 - k])) continue;
        *out = at[k];
        return true;
    }
    return false;
}

void pattern_parts(struct sym *s, struct regions *inv, int k, int counter) {
    const struct region x = inv->at[k];
    inv->n--;
    memmove(&inv->at[k], &inv->at[k + 1], (size_t)(inv->n - k) * sizeof *inv->at);
    for (int i = 0; i < s->of[x.place].n; i++) {
        struct region y;
        if (!in_common(s, &s->of[x.place].at[i], counter, &y) || !region_inside(s, &y, &x))
            continue;
        y.settled = false;
        regions_reserve(inv, inv->n + 1);
        inv->at[inv->n++] = y;
    }
}

/* What moves with the counter, for that is what the iteration brought. */
static bool is_kept(struct sym *s, const struct region *y, const struct regions *inv, int counter) {
    const struct lin one = lin_of(1);
    if (!pattern_moves(y, counter) || region_empty(s, y)) return true;
    for (int k = 0; k < inv->n; k++) {
        struct region x = inv->at[k];
        if (x.place != y->place) continue;
        region_move(&x, counter, &one, false);
        if (region_inside(s, y, &x)) return true;
    }
    return false;
}

bool pattern_loses(struct sym *s, const struct trips *t, const struct regions *inv, int counter) {
    const struct frame *f = &t->frame;
    for (int k = 0; k < f->n; k++) {
        const struct regions *r = &s->of[f->at[k]];
        for (int i = 0; f->at[k] < s->v->s->nplaces && i < r->n; i++)
            if (!is_kept(s, &r->at[i], inv, counter) && !is_kept(s, &r->at[i], &t->spared, counter))
                return true;
    }
    return false;
}
