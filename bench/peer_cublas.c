/* cuBLAS: one call of cublasGemmEx. Its matrices lie by columns, so it makes the transposed product
 * of the transposed operands. */
#include "bench/peer_device.h"

#include <stdlib.h>

/* Of library_types.h and cublas_api.h. */
enum { R_32F = 0, R_16F = 2, R_8I = 3, R_32I = 10, R_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_32I = 72, DEFAULT = -1 };

static struct {
    int (*create)(void **), (*destroy)(void *);
    int (*product)(void *, int, int, int, int, int, const void *, const void *, int, int,
                   const void *, int, int, const void *, void *, int, int, int, int);
    void *handle;
} blas;

struct product {
    struct work w;
    struct peer_arrays arrays;
    void *c;
};

/* -1: cuBLAS has no such product. */
static int operand_type(const struct work *w) {
    bool wide = w->type_c == TYPE_F32;
    if (w->type_a != w->type_b) return -1;
    if (w->type_a == TYPE_F32 && wide) return R_32F;
    if (w->type_a == TYPE_BF16 && wide) return R_16BF;
    if (w->type_a == TYPE_F16 && wide) return R_16F;
    return w->type_a == TYPE_I8 && w->type_c == TYPE_I32 ? R_8I : -1;
}

static bool can(const struct work *w) {
    return w->kind == WORK_GEMM && operand_type(w) >= 0 && w->m < INT32_MAX && w->n < INT32_MAX &&
           w->k < INT32_MAX;
}

static bool call(void *user, void *a, void *b, void *c) {
    static const float one = 1, zero = 0;
    static const int32_t whole = 1, none = 0;
    const struct product *x = user;
    const struct work *w = &x->w;
    int type = operand_type(w), integer = type == R_8I;
    return !blas.product(
        blas.handle, w->b_transposed, w->a_transposed, (int)w->n, (int)w->m, (int)w->k,
        integer ? (const void *)&whole : &one, b, type, (int)(w->b_transposed ? w->k : w->n), a,
        type, (int)(w->a_transposed ? w->m : w->k), integer ? (const void *)&none : &zero, c,
        integer ? R_32I : R_32F, (int)w->n, integer ? COMPUTE_32I : COMPUTE_32F, DEFAULT);
}

static void release(void *user) {
    struct product *x = user;
    peer_arrays_free(&x->arrays);
    free(x);
}

static void *prepare(const struct work *w, const void *a, const void *b, void *c, int threads) {
    struct product *x = calloc(1, sizeof *x);
    int64_t size = w->type_a == TYPE_F32 ? 4 : w->type_a == TYPE_I8 ? 1 : 2;
    int64_t bytes[] = {w->m * w->k * size, w->k * w->n * size, w->m * w->n * 4};
    (void)threads;
    if (!x) return NULL;
    *x = (struct product){.w = *w, .c = c};
    if (peer_arrays_make(&x->arrays, bytes, a, b) && peer_once(&x->arrays, call, x)) return x;
    release(x);
    return NULL;
}

static bool run(void *user) {
    const struct product *x = user;
    return peer_once(&x->arrays, call, user);
}

static bool finish(void *user) {
    const struct product *x = user;
    return peer_result(&x->arrays, x->c);
}

static bool measure(void *user, int calls, int64_t span, double *seconds) {
    struct product *x = user;
    return peer_measure(&x->arrays, call, x, calls, span, seconds);
}

static const struct peer cublas = {.name = "cublas",
                                   .can = can,
                                   .prepare = prepare,
                                   .run = run,
                                   .measure = measure,
                                   .finish = finish,
                                   .release = release};
static const struct peer *const exported[] = {&cublas, NULL};

__attribute__((visibility("default"))) peers_missing isamap_peers_missing;
const char *isamap_peers_missing(void) {
    static const char *const library[] = {"libcublas.so", "libcublas.so.13", "libcublas.so.12",
                                          NULL};
    static const char *const name[] = {"cublasCreate_v2", "cublasDestroy_v2", "cublasGemmEx"};
    void *const to[] = {&blas.create, &blas.destroy, &blas.product};
    const char *why;
    if (blas.handle) return NULL;
    if (!peer_device(&why)) return why;
    if (!peer_symbols(peer_library(library), name, to, 3))
        return "there is no cuBLAS (libcublas.so) in the library path, $CUDA_HOME/lib64 or "
               "/usr/local/cuda/lib64";
    return blas.create(&blas.handle) ? "cuBLAS does not work on the device" : NULL;
}

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
