/* Do points that agree in some linear forms agree in another one too? Nearly all such questions of
 * certificates are answered by bounds, by elimination, by a pair of points close to each other, or
 * by a short search. */
#include "mapper/mapper_int.h"

#include <stdlib.h>

enum {
    MAX_COLUMNS = 16,
    MAX_ROWS = MAX_DIMS,
    BIG = 1 << 28, /* sums of products of two fit */
    MAX_TRIED = 4096
};

struct forms { /* the last row is the one in question */
    int64_t coef[MAX_ROWS + 1][MAX_COLUMNS], bound[MAX_COLUMNS]; /* |d| <= bound */
    int n, rows;
};

static bool copied(struct forms *f, const struct differences *d, const int64_t *form) {
    if (d->naxes > MAX_COLUMNS || d->nsame > MAX_ROWS) return false;
    f->n = d->naxes;
    f->rows = d->nsame;
    for (int k = 0; k < f->n; k++) {
        f->bound[k] = d->extent[d->axis[k]] - 1;
        if (f->bound[k] >= BIG) return false;
        for (int r = 0; r <= f->rows; r++) {
            f->coef[r][k] = (r < f->rows ? d->same[r] : form)[d->axis[k]];
            if (f->coef[r][k] >= BIG || f->coef[r][k] <= -BIG) return false;
        }
    }
    return true;
}

/* A row that is zero bounds each term by all others; what cannot move has no column. */
static void tighten(struct forms *f) {
    bool changed = true;
    for (int round = 0; round < MAX_COLUMNS && changed; round++) {
        changed = false;
        for (int r = 0; r < f->rows; r++) {
            int64_t all = 0;
            for (int k = 0; k < f->n; k++) all += llabs(f->coef[r][k]) * f->bound[k];
            for (int k = 0; k < f->n; k++) {
                int64_t c = llabs(f->coef[r][k]);
                if (c == 0 || f->bound[k] == 0) continue;
                int64_t most = (all - c * f->bound[k]) / c;
                if (most >= f->bound[k]) continue;
                all -= c * (f->bound[k] - most);
                f->bound[k] = most;
                changed = true;
            }
        }
    }
    for (int k = 0; k < f->n; k++)
        for (int r = 0; r <= f->rows && f->bound[k] == 0; r++) f->coef[r][k] = 0;
}

static int first_column(const struct forms *f, int row) {
    for (int k = 0; k < f->n; k++)
        if (f->coef[row][k] != 0) return k;
    return -1;
}

/* The pivot's column of the row becomes zero; the row keeps small numbers. */
static bool cancel(struct forms *f, int pivot, int column, int row) {
    int64_t p = f->coef[pivot][column], c = f->coef[row][column], common = 0;
    for (int k = 0; k < f->n && c != 0; k++) {
        f->coef[row][k] = f->coef[row][k] * p - f->coef[pivot][k] * c;
        for (int64_t a = llabs(f->coef[row][k]), t; a != 0; t = common % a, common = a, a = t)
            continue;
    }
    for (int k = 0; k < f->n && common > 0; k++) {
        f->coef[row][k] /= common;
        if (llabs(f->coef[row][k]) >= BIG) return false;
    }
    return true;
}

/* The last row is a combination of the others. False in *good: numbers are too large. */
static bool spanned(struct forms f, bool *good) {
    for (int r = 0; r < f.rows; r++) {
        int column = first_column(&f, r);
        for (int q = r + 1; q <= f.rows && column >= 0; q++)
            if (!cancel(&f, r, column, q)) return *good = false;
    }
    return first_column(&f, f.rows) < 0;
}

/* u steps along i and v along j, which the rows do not see, but the last one does. */
static bool unseen(const struct forms *f, int i, int64_t u, int j, int64_t v) {
    if (llabs(u) > f->bound[i] || llabs(v) > f->bound[j]) return false;
    for (int r = 0; r < f->rows; r++)
        if (f->coef[r][i] * u + f->coef[r][j] * v != 0) return false;
    return f->coef[f->rows][i] * u + f->coef[f->rows][j] * v != 0;
}

static bool close_pair(const struct forms *f) {
    for (int i = 0; i < f->n; i++) {
        if (unseen(f, i, 1, i, 0)) return true;
        for (int j = 0; j < i; j++) {
            int r = 0;
            while (r < f->rows && f->coef[r][i] == 0) r++;
            if (r == f->rows || f->coef[r][j] == 0) continue;
            int64_t a = f->coef[r][i], b = f->coef[r][j], x = llabs(a), y = llabs(b);
            while (y != 0) {
                int64_t t = x % y;
                x = y;
                y = t;
            }
            if (unseen(f, i, b / x, j, -a / x)) return true;
        }
    }
    return false;
}

struct trial { /* the columns before one have their values */
    const struct forms *f;
    int64_t sum[MAX_ROWS + 1];                   /* of each row so far */
    int64_t rest[MAX_COLUMNS + 1][MAX_ROWS + 1]; /* what the columns from here on add at most */
    int tried;
};

static int64_t divided_down(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The values of column k with which the rows can still become zero. */
static void possible(const struct trial *t, int k, int64_t *from, int64_t *to) {
    *from = -t->f->bound[k];
    *to = t->f->bound[k];
    for (int r = 0; r < t->f->rows; r++) {
        int64_t c = t->f->coef[r][k], sign = c < 0 ? -1 : 1, rest = t->rest[k + 1][r];
        if (c == 0) continue;
        int64_t high = divided_down(rest - sign * t->sum[r], c * sign);
        int64_t low = -divided_down(rest + sign * t->sum[r], c * sign);
        if (low > *from) *from = low;
        if (high < *to) *to = high;
    }
}

static void add_column(struct trial *t, int k, int64_t value) {
    for (int r = 0; r <= t->f->rows; r++) t->sum[r] += value * t->f->coef[r][k];
}

/* AGREE_NO: values of the columns from k on make all rows zero but the last one. */
static enum agreement try_columns(struct trial *t, int k) {
    int64_t from, to, last = t->sum[t->f->rows];
    enum agreement found = AGREE_YES;
    if (last == 0 && t->rest[k][t->f->rows] == 0) return AGREE_YES;
    if (k == t->f->n) return AGREE_NO;
    if (++t->tried > MAX_TRIED) return AGREE_OPEN;
    possible(t, k, &from, &to);
    for (int64_t v = from; v <= to && found == AGREE_YES; v++) {
        add_column(t, k, v);
        found = try_columns(t, k + 1);
        add_column(t, k, -v);
    }
    return found;
}

static enum agreement searched(const struct forms *f) {
    struct trial t = {.f = f};
    for (int k = f->n - 1; k >= 0; k--)
        for (int r = 0; r <= f->rows; r++)
            t.rest[k][r] = t.rest[k + 1][r] + llabs(f->coef[r][k]) * f->bound[k];
    return try_columns(&t, 0);
}

enum agreement differences_agree(const struct differences *d, const int64_t *form) {
    struct forms f;
    bool good = true;
    if (!copied(&f, d, form)) return AGREE_OPEN;
    tighten(&f);
    if (spanned(f, &good)) return AGREE_YES;
    return close_pair(&f) ? AGREE_NO : searched(&f);
}
