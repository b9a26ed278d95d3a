/* A statement over a part of its domain. */
#include "scheduler/clock/clock_int.h"

/* The statement over the box alone: axes become lo + a, so accesses get their constants moved. */
struct program *boxed(const struct program *p, int stmt, const int64_t *lo, const int64_t *hi) {
    struct program *q = program_copy(p);
    struct stmt *s = &q->stmt[stmt];
    int n = q->naxes + 1;
    for (int a = 0; a < q->naxes; a++) {
        if (!(s->axes >> a & 1) || lo[a] == 0) continue;
        for (int r = -1; r < s->nreads; r++) {
            struct access *x = r < 0 ? &s->dst : &s->read[r];
            for (int d = 0; d < q->buffer[x->buffer].ndims; d++)
                x->coef[d * n + n - 1] += x->coef[d * n + a] * lo[a];
        }
        for (int w = 0; w < s->nwhere; w++) s->where[w].coef[n - 1] += s->where[w].coef[a] * lo[a];
    }
    for (int a = 0; a < q->naxes; a++)
        if (s->axes >> a & 1) q->axis[a].extent = hi[a] - lo[a];
    return q;
}

int64_t box_points(const struct program *p, int stmt, const int64_t *lo, const int64_t *hi) {
    const struct stmt *s = &p->stmt[stmt];
    int64_t points = 1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1)) continue;
        int64_t n = hi[a] > lo[a] ? hi[a] - lo[a] : 0;
        if (__builtin_mul_overflow(points, n, &points)) points = INT64_MAX;
    }
    if (!s->nwhere || points == 0) return points;
    struct program *q = boxed(p, stmt, lo, hi);
    for (int w = 0; w < s->nwhere; w++) /* steps of recurrences around it are known */
        for (int a = 0; a < p->naxes; a++) {
            int64_t *row = q->stmt[stmt].where[w].coef;
            if (s->axes >> a & 1) continue;
            row[p->naxes] += row[a] * lo[a];
            row[a] = 0;
        }
    points = stmt_points(q, &q->stmt[stmt]);
    program_free(q);
    return points;
}
