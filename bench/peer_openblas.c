/* OpenBLAS: one call of cblas_sgemm; of a recurrent cell one for all inputs and one in each step,
 * with loops for the gates between them. */
#include "bench/peer.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct product {
    struct work w;
    const void *a, *b;
    void *c;
};

static bool can(const struct work *w) {
    return w->kind == WORK_GEMM && w->type_a == TYPE_F32 && w->type_b == TYPE_F32 &&
           w->type_c == TYPE_F32 && w->m < INT32_MAX && w->n < INT32_MAX && w->k < INT32_MAX;
}

static void *prepare(const struct work *w, const void *a, const void *b, void *c, int threads) {
    struct product *x = malloc(sizeof *x);
    if (x) *x = (struct product){*w, a, b, c};
    openblas_set_num_threads(threads);
    return x;
}

static bool run(void *user) {
    const struct product *x = user;
    const struct work *w = &x->w;
    cblas_sgemm(CblasRowMajor, w->a_transposed ? CblasTrans : CblasNoTrans,
                w->b_transposed ? CblasTrans : CblasNoTrans, (int)w->m, (int)w->n, (int)w->k, 1,
                x->a, (int)(w->a_transposed ? w->m : w->k), x->b,
                (int)(w->b_transposed ? w->k : w->n), 0, x->c, (int)w->n);
    return true;
}

/* ---- cells ---- */

struct cell {
    struct work w;
    const float *in[CELL_PARTS];
    float *y, *h_t, *c_t;
    float *x, *a, *h, *c; /* gates of all inputs; of a step's state; the states */
};

static bool can_cell(const struct work *w) {
    return w->kind == WORK_CELL && w->steps * w->batch < INT32_MAX &&
           w->gates * w->units < INT32_MAX && w->inputs < INT32_MAX;
}

static void release_cell(void *user) {
    struct cell *x = user;
    free(x->x);
    free(x->a);
    free(x->h);
    free(x->c);
    free(x);
}

static void *prepare_cell(const struct work *w, const void *a, const void *b, void *c,
                          int threads) {
    struct cell *x = calloc(1, sizeof *x);
    (void)a, (void)b;
    if (!x) return NULL;
    size_t rows = (size_t)w->batch * (size_t)w->units, gates = rows * (size_t)w->gates;
    x->w = *w;
    for (int k = 0; k < CELL_PARTS; k++) x->in[k] = w->part[k] < 0 ? NULL : w->data[w->part[k]];
    x->y = c;
    x->h_t = w->data[w->part[CELL_HT]];
    x->c_t = w->part[CELL_CT] < 0 ? NULL : w->data[w->part[CELL_CT]];
    x->x = malloc(gates * (size_t)w->steps * sizeof *x->x);
    x->a = malloc(gates * sizeof *x->a);
    x->h = malloc(rows * sizeof *x->h);
    x->c = malloc(rows * sizeof *x->c);
    openblas_set_num_threads(threads);
    if (x->x && x->a && x->h && x->c) return x;
    release_cell(x);
    return NULL;
}

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

/* to [rows, gates * units] += from [rows, depth] weights [gates * units, depth]' */
static void add_product(const struct work *w, int64_t rows, int64_t depth, const float *from,
                        const float *weights, float *to) {
    int n = (int)(w->gates * w->units);
    if (rows == 1)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, n, (int)depth, 1, weights, (int)depth, from, 1, 1,
                    to, 1);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, n, (int)depth, 1, from,
                    (int)depth, weights, (int)depth, 1, to, n);
}

/* x: what the inputs bring; a: what the state brings, with x already where nothing comes between.
 */
static void next_state(const struct cell *s, const float *x, const float *a, float *h, float *c) {
    int64_t n = s->w.units;
    const float *more = s->in[CELL_BIAS_NEW];
    for (int64_t i = 0; i < n; i++) {
        if (s->w.gates == 1) {
            h[i] = tanhf(a[i]);
        } else if (s->w.gates == 3) {
            float z = sigmoid(a[i] + x[i]), r = sigmoid(a[n + i] + x[n + i]),
                  v = tanhf(r * (a[2 * n + i] + more[i]) + x[2 * n + i]);
            h[i] = v + z * (h[i] - v);
        } else {
            c[i] = sigmoid(a[n + i]) * c[i] + sigmoid(a[i]) * tanhf(a[2 * n + i]);
            h[i] = sigmoid(a[3 * n + i]) * tanhf(c[i]);
        }
    }
}

static bool run_cell(void *user) {
    const struct cell *s = user;
    const struct work *w = &s->w;
    int64_t row = w->gates * w->units, all = w->steps * w->batch;
    size_t states = (size_t)(w->batch * w->units) * sizeof(float);
    for (int64_t k = 0; k < all; k++)
        memcpy(s->x + k * row, s->in[CELL_BIAS], (size_t)row * sizeof *s->x);
    add_product(w, all, w->inputs, s->in[CELL_X], s->in[CELL_W], s->x);
    memcpy(s->h, s->in[CELL_H0], states);
    if (s->c_t) memcpy(s->c, s->in[CELL_C0], states);
    for (int64_t t = 0; t < w->steps; t++) {
        const float *x = s->x + t * w->batch * row;
        if (w->gates == 3)
            memset(s->a, 0, (size_t)(w->batch * row) * sizeof *s->a);
        else
            memcpy(s->a, x, (size_t)(w->batch * row) * sizeof *s->a);
        add_product(w, w->batch, w->units, s->h, s->in[CELL_U], s->a);
        for (int64_t b = 0; b < w->batch; b++)
            next_state(s, x + b * row, s->a + b * row, s->h + b * w->units, s->c + b * w->units);
        memcpy(s->y + t * w->batch * w->units, s->h, states);
    }
    memcpy(s->h_t, s->h, states);
    if (s->c_t) memcpy(s->c_t, s->c, states);
    return true;
}

static const struct peer openblas_cell = {.name = "openblas-cell",
                                          .note = "a product of all inputs, one in each step, "
                                                  "and loops for the gates",
                                          .can = can_cell,
                                          .prepare = prepare_cell,
                                          .run = run_cell,
                                          .release = release_cell};
static const struct peer openblas = {
    .name = "openblas", .can = can, .prepare = prepare, .run = run, .release = free};
static const struct peer *const exported[] = {&openblas, &openblas_cell, NULL};

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
