/* OpenBLAS: one call of cblas_sgemm. */
#include "bench/peer.h"

#include <cblas.h>
#include <stdlib.h>

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

static const struct peer openblas = {
    .name = "openblas", .can = can, .prepare = prepare, .run = run, .release = free};
static const struct peer *const exported[] = {&openblas, NULL};

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
