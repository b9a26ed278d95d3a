/* libxsmm: its kernel for small products, its tiled product for others. It is linked without a
 * BLAS, so that nothing falls back to one. */
#include "bench/peer.h"

#include <libxsmm.h>
#include <omp.h>
#include <stdlib.h>

struct product {
    struct work w;
    const void *a, *b;
    void *c;
    int threads;
};

static bool can(const struct work *w) {
    return w->kind == WORK_GEMM && w->type_a == TYPE_F32 && w->type_b == TYPE_F32 &&
           w->type_c == TYPE_F32 && !w->a_transposed && !w->b_transposed && w->m < INT32_MAX &&
           w->n < INT32_MAX && w->k < INT32_MAX;
}

static void *prepare(const struct work *w, const void *a, const void *b, void *c, int threads) {
    struct product *x = malloc(sizeof *x);
    if (x) *x = (struct product){*w, a, b, c, threads};
    libxsmm_init();
    return x;
}

/* Its matrices are column-major: C' = B' A'. */
static bool run(void *user) {
    const struct product *x = user;
    libxsmm_blasint m = (libxsmm_blasint)x->w.n, n = (libxsmm_blasint)x->w.m,
                    k = (libxsmm_blasint)x->w.k;
    const float alpha = 1, beta = 0;
    const char no = 'N';
    libxsmm_smmfunction kernel =
        (double)m * n * k <= 64.0 * 64 * 64
            ? libxsmm_smmdispatch(m, n, k, &m, &k, &m, &alpha, &beta, NULL, NULL)
            : NULL;
    omp_set_num_threads(x->threads);
    if (kernel)
        kernel(x->b, x->a, x->c);
    else
        libxsmm_sgemm_omp(&no, &no, &m, &n, &k, &alpha, x->b, &m, x->a, &k, &beta, x->c, &m);
    return true;
}

static const struct peer libxsmm = {
    .name = "libxsmm", .can = can, .prepare = prepare, .run = run, .release = free};
static const struct peer *const exported[] = {&libxsmm, NULL};

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
