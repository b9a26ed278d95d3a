/* Which statements access a buffer, which axes walk a result. The list of accesses is made anew
 * when one is asked for after a change, or after a buffer was added. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct uses {
    struct arena *arena; /* of the work */
    int made_at;         /* 1 + work.changes; 0: not yet */
    int nbuffers;        /* of which it was made */
    int *first, *stmt, cap_first, cap_stmt;
};

struct uses *uses_new(struct arena *a) {
    struct uses *u = arena_alloc(a, sizeof *u);
    u->arena = a;
    return u;
}

static void count_or_list(const struct work *w, int *at, int *stmt) {
    for (int i = 0; i < w->norder; i++) {
        const struct stmt *st = &w->p->stmt[w->order[i]];
        for (int r = -1; r < st->nreads; r++) {
            int b = r < 0 ? st->dst.buffer : st->read[r].buffer;
            bool listed = r >= 0 && b == st->dst.buffer;
            for (int q = 0; q < r; q++) listed |= st->read[q].buffer == b;
            if (listed) continue;
            int n = at[b]++;
            if (stmt) stmt[n] = w->order[i];
        }
    }
}

static int *at_least(struct arena *a, int *old, int *cap, int n) {
    if (n <= *cap) return old;
    *cap = 2 * n;
    return arena_array(a, (size_t)*cap, sizeof *old);
}

static void make(const struct work *w, struct uses *u) {
    int n = w->p->nbuffers, sum = 0;
    u->first = at_least(u->arena, u->first, &u->cap_first, n + 1);
    memset(u->first, 0, sizeof *u->first * ((size_t)n + 1));
    count_or_list(w, u->first, NULL);
    for (int b = 0; b <= n; b++) {
        int here = b < n ? u->first[b] : 0;
        u->first[b] = sum;
        sum += here;
    }
    u->stmt = at_least(u->arena, u->stmt, &u->cap_stmt, sum + 1);
    count_or_list(w, u->first, u->stmt); /* now each is where the next one begins */
    for (int b = n; b > 0; b--) u->first[b] = u->first[b - 1];
    u->first[0] = 0;
    u->made_at = w->changes + 1;
    u->nbuffers = n;
}

const int *buffer_uses(const struct work *w, int buffer, int *n) {
    struct uses *u = w->uses;
    if (u->made_at != w->changes + 1 || u->nbuffers != w->p->nbuffers) make(w, u);
    *n = u->first[buffer + 1] - u->first[buffer];
    return u->stmt + u->first[buffer];
}

bool buffer_prepared(const struct work *w, int buffer) {
    bool any = w->p->buffer[buffer].role == ROLE_CONST;
    for (int i = 0; i < w->norder; i++) {
        int s = w->order[i];
        if (w->p->stmt[s].dst.buffer != buffer) continue;
        if (!w->in_prepare[s]) return false;
        any = true;
    }
    return any;
}

/* Program axes of a statement's result, outermost dimension first. */
int result_axes(const struct work *w, int stmt, int *axis) {
    const struct stmt *st = &w->p->stmt[stmt];
    int n = 0;
    uint64_t seen = 0;
    for (int d = 0; d < w->p->buffer[st->dst.buffer].ndims; d++)
        for (int a = 0; a < w->p->naxes; a++)
            if ((st->axes >> a & 1) && access_coef(w->p, &st->dst, d, a) && !(seen >> a & 1)) {
                seen |= UINT64_C(1) << a;
                axis[n++] = a;
            }
    for (int a = 0; a < w->p->naxes; a++)
        if ((st->axes >> a & 1) && !(seen >> a & 1)) axis[n++] = a;
    return n;
}
