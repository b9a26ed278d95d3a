/* What holds before a general iteration of a loop, guessed before any of its iterations is walked:
 * from earlier visits, by how much each number grew with each variable of the loops around. A guess
 * that is wrong proves nothing (induct.c). */
#include "scheduler/verify/pattern.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* The loop's own counter, in what is kept: its number may be another one at the next visit. */
enum { OWN = SYM_LOOPS - 1, MOST_NUMBERS = 3 + 2 * SYM_INDICES };

static int numbers_of(struct region *x, struct lin **at) {
    int n = 0;
    at[n++] = &x->count;
    at[n++] = &x->step;
    if (!x->box) at[n++] = &x->base;
    for (int e = 0; e < x->nindices; e++) at[n++] = &x->o[e];
    for (int k = 0; k < (x->box ? x->nindices : x->ndims); k++) at[n++] = &x->n[k];
    return n;
}

static void swap_counters(struct regions *r, int a, int b) {
    struct lin *at[MOST_NUMBERS];
    for (int k = 0; k < r->n; k++)
        for (int n = numbers_of(&r->at[k], at); n-- > 0;) {
            int64_t was = at[n]->k[a];
            at[n]->k[a] = at[n]->k[b];
            at[n]->k[b] = was;
        }
}

/* The same but for numbers. */
static bool same_make(const struct region *a, const struct region *b) {
    if (a->place != b->place || a->age != b->age || a->buffer != b->buffer ||
        a->writer != b->writer || a->type != b->type || a->box != b->box ||
        a->filled != b->filled || (a->filled && a->fill.i != b->fill.i) ||
        a->nindices != b->nindices || a->ndims != b->ndims)
        return false;
    for (int d = 0; d < a->ndims; d++)
        if (a->s[d] != b->s[d] ||
            memcmp(a->c[d], b->c[d], (size_t)a->nindices * sizeof a->c[d][0]) != 0)
            return false;
    return true;
}

static void put(struct regions *r, const struct region *x) {
    regions_reserve(r, r->n + 1);
    region_copy(&r->at[r->n++], x, 1);
}

static int find(const struct regions *r, const struct region *x) {
    for (int k = 0; k < r->n; k++)
        if (region_same(&r->at[k], x)) return k;
    return -1;
}

static bool same_place_in_tree(const struct sym *s, const struct guess *g, const struct trips *t) {
    return g->loop == t->loop && g->group == t->group && g->first == t->first &&
           g->naround == s->naround &&
           !memcmp(g->var, s->around, (size_t)s->naround * sizeof *g->var);
}

/* How far variable k has come since; false: out of range. */
static bool moved(const struct sym *s, const struct guess *g, int k, struct lin *by) {
    *by = s->var[g->var[k]].l;
    return lin_add(by, &g->at[k], -1);
}

static bool stays(const struct lin *x) {
    int64_t c;
    return lin_constant(x, &c) && c == 0;
}

/* x = times * by, if `by` is not zero. */
static bool ratio(const struct lin *x, const struct lin *by, int64_t *times) {
    struct lin again = *x;
    int64_t a = x->c, b = by->c;
    for (int k = 0; k < SYM_LOOPS && !b; k++) {
        a = x->k[k];
        b = by->k[k];
    }
    if (!b || a % b != 0) return false;
    *times = a / b;
    return lin_add(&again, by, -*times) && stays(&again);
}

/* Where the regions of g went by what is known. */
static bool go_along(const struct sym *s, const struct guess *g, struct regions *r, int *unknown) {
    *unknown = -1;
    for (int v = 0; v < g->naround; v++) {
        struct lin by, *to[MOST_NUMBERS], *each[MOST_NUMBERS];
        if (!moved(s, g, v, &by)) return false;
        if (stays(&by)) continue;
        if (!g->known[v] && *unknown >= 0) return false;
        if (!g->known[v]) *unknown = v;
        for (int k = 0; k < r->n && g->known[v]; k++) {
            int n = numbers_of(&r->at[k], to);
            numbers_of(&g->by[v].at[k], each);
            for (int i = 0; i < n; i++)
                if (!lin_add(to[i], &by, each[i]->c)) return false;
        }
    }
    return true;
}

/* By how much the numbers grow with variable v, the one that nothing was known of. */
static bool learn_of(const struct sym *s, struct guess *g, int v, struct regions *expected,
                     struct regions *now) {
    struct lin by, *a[MOST_NUMBERS], *b[MOST_NUMBERS], *to[MOST_NUMBERS];
    if (!moved(s, g, v, &by)) return false;
    regions_copy(&g->by[v], expected);
    for (int k = 0; k < now->n; k++) {
        int n = numbers_of(&expected->at[k], a);
        numbers_of(&now->at[k], b);
        numbers_of(&g->by[v].at[k], to);
        for (int i = 0; i < n; i++) {
            struct lin grown = *b[i];
            if (!lin_add(&grown, a[i], -1) || !ratio(&grown, &by, &to[i]->c)) return false;
        }
    }
    return g->known[v] = true;
}

static bool same_numbers(struct regions *a, struct regions *b) {
    for (int k = 0; k < a->n; k++)
        if (!region_same(&a->at[k], &b->at[k])) return false;
    return true;
}

/* What it was, and where that is now. False: another kind of visit. */
static bool compare(const struct sym *s, struct guess *g, struct regions *now) {
    struct regions expected = {0};
    int unknown;
    bool good = g->r.n == now->n;
    for (int k = 0; k < now->n && good; k++) good = same_make(&g->r.at[k], &now->at[k]);
    regions_copy(&expected, &g->r);
    good = good && go_along(s, g, &expected, &unknown) &&
           (unknown >= 0 ? learn_of(s, g, unknown, &expected, now) : same_numbers(&expected, now));
    regions_free(&expected);
    return good;
}

/* In the place of the one that was there the longest. */
static struct guess *oldest(struct history *h) {
    if (!h->guess) h->guess = memory_array(GUESSES, sizeof *h->guess);
    return &h->guess[h->next_guess++ % GUESSES];
}

/* Which regions of the guess the visit did without in its first iteration. */
static void learn_spare(struct sym *s, const struct trips *t, struct guess *g, int counter) {
    const struct lin first = lin_of(0);
    free(g->spare);
    g->spare = memory_array((size_t)g->r.n + 1, sizeof *g->spare);
    for (int k = 0, next = 0; k < g->r.n; k++) {
        struct region x = g->r.at[k];
        region_move(&x, counter, &first, true);
        g->spare[k] = !regions_imply(s, t->start.r.at, t->start.r.n, &x, &next);
    }
}

void guess_learn(struct sym *s, const struct trips *t, const struct regions *inv, int counter) {
    struct history *h = &s->history[t->loop->var];
    struct regions now = {0};
    struct guess *g = NULL;
    if (counter >= OWN || s->naround > MOST_AROUND) return;
    for (int k = 0; k < inv->n; k++)
        if (find(&t->start.r, &inv->at[k]) < 0) put(&now, &inv->at[k]);
    swap_counters(&now, counter, OWN);
    for (int k = 0; h->guess && k < GUESSES && !g; k++)
        if (same_place_in_tree(s, &h->guess[k], t) && compare(s, &h->guess[k], &now))
            g = &h->guess[k];
    if (!g) {
        g = oldest(h);
        memset(g->known, 0, sizeof g->known);
    }
    g->loop = t->loop;
    g->group = t->group;
    g->first = t->first;
    g->naround = s->naround;
    memcpy(g->var, s->around, (size_t)s->naround * sizeof *g->var);
    for (int k = 0; k < s->naround; k++) g->at[k] = s->var[g->var[k]].l;
    regions_copy(&g->r, &now);
    learn_spare(s, t, g, OWN);
    regions_free(&now);
}

/* No counter is in it that has ended. */
static bool of_now(const struct sym *s, struct regions *r) {
    struct lin *at[MOST_NUMBERS];
    for (int k = 0; k < r->n; k++)
        for (int n = numbers_of(&r->at[k], at); n-- > 0;)
            for (int i = s->nloops; i < SYM_LOOPS; i++)
                if (at[n]->k[i]) return false;
    return true;
}

static bool meets_at(struct sym *s, const struct region *x, struct region grown, int counter,
                     int64_t at) {
    const struct lin value = lin_of(at);
    region_move(&grown, counter, &value, true);
    return !region_empty(s, &grown) && regions_may_meet(s, x, &grown);
}

/* What was there before the loop goes where that comes: looked at before the first iteration and
 * behind the last, where more is decided than at any one. Instances that were executed before are
 * those from which it grows. */
static bool overwritten(struct sym *s, const struct region *x, const struct regions *grown,
                        int counter) {
    const bool instances = x->place >= s->v->s->nplaces;
    for (int k = 0; k < grown->n; k++)
        if (grown->at[k].place == x->place &&
            (meets_at(s, x, grown->at[k], counter, s->lo[counter]) ||
             (!instances && meets_at(s, x, grown->at[k], counter, s->hi[counter] + 1))))
            return true;
    return false;
}

static bool pattern_of(struct sym *s, const struct trips *t, const struct guess *g, int counter,
                       struct regions *inv, int *ngrown) {
    struct regions r = {0};
    int unknown = -1;
    bool good = counter < OWN && same_place_in_tree(s, g, t);
    if (good) {
        regions_copy(&r, &g->r);
        good = go_along(s, g, &r, &unknown) && unknown < 0;
        swap_counters(&r, counter, OWN);
        good = good && of_now(s, &r);
    }
    inv->n = 0;
    sym_compare(s, t->start.r.n);
    for (int k = 0; k < t->start.r.n && good; k++)
        if (!overwritten(s, &t->start.r.at[k], &r, counter)) put(inv, &t->start.r.at[k]);
    for (int k = 0; k < r.n && good; k++) {
        put(inv, &r.at[k]);
        inv->at[inv->n - 1].settled = false;
    }
    *ngrown = r.n;
    regions_free(&r);
    return good;
}

/* It holds before the first iteration: each of its last ngrown regions, but for those that can be
 * spared, which are left out; and each instance of now is in it, once. */
static bool begins(struct sym *s, struct trips *t, struct regions *inv, int ngrown, int counter,
                   const bool *spare) {
    const struct lin first = lin_of(s->lo[counter]);
    int instances = 0, expected = 0;
    t->spared.n = 0;
    for (int k = inv->n - 1, last = inv->n - ngrown, next = 0; k >= last; k--) {
        struct region x = inv->at[k];
        region_move(&x, counter, &first, true);
        if (regions_imply(s, s->of[x.place].at, s->of[x.place].n, &x, &next)) continue;
        if (!spare[k - last] || x.place >= s->v->s->nplaces) return false;
        put(&t->spared, &inv->at[k]);
        inv->at[k] = inv->at[--inv->n];
    }
    for (int k = 0, next = 0; k < t->start.r.n; k++) {
        const struct region *y = &t->start.r.at[k];
        if (y->place < s->v->s->nplaces) continue;
        expected++;
        if (!regions_have(s, inv, y, counter, &first, true, &next)) return false;
    }
    for (int i = 0; i < inv->n; i++) {
        struct region x = inv->at[i];
        region_move(&x, counter, &first, true);
        instances += x.place >= s->v->s->nplaces && !region_empty(s, &x);
    }
    return instances == expected;
}

bool guess_find(struct sym *s, struct trips *t, int counter, struct regions *inv) {
    const struct guess *g = s->history[t->loop->var].guess;
    int ngrown;
    for (int k = 0; k < GUESSES; k++)
        if (pattern_of(s, t, &g[k], counter, inv, &ngrown) &&
            begins(s, t, inv, ngrown, counter, g[k].spare))
            return true;
    return sym_fail(s, "a guess does not hold");
}

void guesses_free(struct history *h) {
    for (int i = 0; h->guess && i < GUESSES; i++) {
        regions_free(&h->guess[i].r);
        free(h->guess[i].spare);
        for (int k = 0; k < MOST_AROUND; k++) regions_free(&h->guess[i].by[k]);
    }
    free(h->guess);
}
