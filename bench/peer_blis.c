/* BLIS: one call of its typed interface, which takes both strides of each matrix. */
#include "bench/peer.h"

#include <blis.h>
#include <stdlib.h>

struct product {
    struct work w;
    void *a, *b, *c;
    float one, zero;
    rntm_t threads;
};

static bool can(const struct work *w) {
    return w->kind == WORK_GEMM && w->type_a == TYPE_F32 && w->type_b == TYPE_F32 &&
           w->type_c == TYPE_F32;
}

static void *prepare(const struct work *w, const void *a, const void *b, void *c, int threads) {
    struct product *x = malloc(sizeof *x);
    if (!x) return NULL;
    *x = (struct product){.w = *w, .c = c, .one = 1, .zero = 0};
    x->a = (void *)(uintptr_t)a, x->b = (void *)(uintptr_t)b;
    bli_rntm_init(&x->threads);
    bli_rntm_set_num_threads(threads, &x->threads);
    return x;
}

static bool run(void *user) {
    struct product *x = user;
    const struct work *w = &x->w;
    inc_t ra = w->a_transposed ? 1 : w->k, ca = w->a_transposed ? w->m : 1;
    inc_t rb = w->b_transposed ? 1 : w->n, cb = w->b_transposed ? w->k : 1;
    bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, w->m, w->n, w->k, &x->one, x->a, ra, ca,
                 x->b, rb, cb, &x->zero, x->c, w->n, 1, NULL, &x->threads);
    return true;
}

static const struct peer blis = {
    .name = "blis", .can = can, .prepare = prepare, .run = run, .release = free};
static const struct peer *const exported[] = {&blis, NULL};

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
