/* An access cuts the stretches at the ends of its pieces, looks at each part inside, and joins what
 * is the same afterwards: so a write to many rows leaves a stretch for each row, until something
 * that covers all of them is written. */
#include "scheduler/verify/stretch.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

static const struct granule untouched;

static bool same(const struct granule *a, const struct granule *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static void reserve(struct stretches *x, int n) {
    if (n <= x->cap) return;
    x->cap = n > 2 * x->cap ? n : 2 * x->cap;
    x->at = memory_grow(x->at, (size_t)x->cap * sizeof *x->at);
}

/* From `from` on that holds; joined with what comes before. */
static void append(struct stretches *x, int64_t from, const struct granule *g) {
    if (x->n ? same(&x->at[x->n - 1].g, g) : same(g, &untouched)) return;
    reserve(x, x->n + 1);
    x->at[x->n++] = (struct stretch){from, *g};
}

/* How many begin at that byte or before. */
static int begin_by(const struct stretches *x, int64_t byte) {
    int lo = 0, hi = x->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (x->at[mid].from <= byte)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* What holds from there on, the stretches before *k being those that begin by then. */
static const struct granule *holds(const struct stretches *x, int k) {
    return k > 0 ? &x->at[k - 1].g : &untouched;
}

/* Stretches [first, last) become those of `by`. */
static void put(struct stretches *x, int first, int last, const struct stretches *by) {
    reserve(x, x->n - (last - first) + by->n);
    if (by->n != last - first && last < x->n)
        memmove(&x->at[first + by->n], &x->at[last], (size_t)(x->n - last) * sizeof *x->at);
    if (by->n) memcpy(&x->at[first], by->at, (size_t)by->n * sizeof *x->at);
    x->n += by->n - (last - first);
}

bool stretches_touch(struct stretches *x, const struct piece *piece, int n, stretch_visit *visit,
                     void *user, int64_t *steps) {
    struct stretches made = {0};
    bool good = true;
    *steps = 0;
    if (n == 0) return true;
    int first = begin_by(x, piece[0].low - 1), k = first;
    if (first > 0) append(&made, 0, &x->at[first - 1].g); /* for what is joined to it */
    int before = made.n;
    for (int p = 0; p < n && good; p++) {
        int64_t at = piece[p].low;
        for (; k < x->n && x->at[k].from < at; k++) append(&made, x->at[k].from, &x->at[k].g);
        while (at < piece[p].high && good) {
            if (k < x->n && x->at[k].from <= at) k++;
            struct granule g = *holds(x, k);
            good = visit(user, &g, at);
            append(&made, at, &g);
            at = k < x->n && x->at[k].from < piece[p].high ? x->at[k].from : piece[p].high;
            ++*steps;
        }
        if (k < x->n && x->at[k].from == at) k++;
        append(&made, at, holds(x, k));
    }
    struct stretches rest = {.at = made.at + before, .n = made.n - before};
    *steps += k - first + (rest.n == k - first ? 0 : (x->n - k) / 64);
    if (good) put(x, first, k, &rest);
    free(made.at);
    return good && x->n <= MOST_STRETCHES;
}

static int memories(const struct verify *v) {
    return v->m->nmemories + v->m->nstates;
}

struct stretches *stretches_open(const struct verify *v) {
    return memory_array((size_t)memories(v) + 1, sizeof(struct stretches));
}

void stretches_forget(const struct verify *v, struct stretches *all) {
    for (int m = 0; all && m < memories(v); m++) all[m].n = 0;
}

void stretches_free(const struct verify *v, struct stretches *all) {
    for (int m = 0; all && m < memories(v); m++) free(all[m].at);
    free(all);
}
