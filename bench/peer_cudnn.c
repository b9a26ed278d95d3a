/* cuDNN: convolutions of f32 arrays that lie as ours do, by the fastest of its algorithms that
 * multiply in f32. */
#include "bench/peer_device.h"

#include <stdlib.h>

/* Of cudnn_graph.h and cudnn_ops.h. */
enum { NCHW = 0, FLOAT = 0, CROSS_CORRELATION = 1, FMA_MATH = 3, MOST_ALGORITHMS = 16 };

struct algorithm {
    int algorithm, status;
    float ms;
    size_t bytes;
    int determinism, math, reserved[3];
};

static struct {
    int (*create)(void **);
    int (*new_tensor)(void **), (*set_tensor)(void *, int, int, int, int, int, int);
    int (*drop_tensor)(void *);
    int (*new_filter)(void **), (*set_filter)(void *, int, int, int, int, int, int);
    int (*drop_filter)(void *);
    int (*new_convolution)(void **);
    int (*set_convolution)(void *, int, int, int, int, int, int, int, int);
    int (*set_groups)(void *, int), (*set_math)(void *, int), (*drop_convolution)(void *);
    int (*find)(void *, void *, void *, void *, void *, int, int *, struct algorithm *);
    int (*forward)(void *, const void *, void *, const void *, void *, const void *, void *, int,
                   void *, size_t, const void *, void *, void *);
    void *handle;
} dnn;

struct convolution {
    struct work w;
    struct peer_arrays arrays;
    void *image, *filter, *result, *shape, *workspace, *c;
    struct algorithm by;
};

/* Padding is the same at both ends. */
static bool can(const struct work *w) {
    bool good = w->kind == WORK_CONV && w->type_a == TYPE_F32 && w->type_b == TYPE_F32 &&
                w->type_c == TYPE_F32 && w->batch < INT32_MAX;
    for (int d = 0; d < 2 && good; d++) {
        int64_t reach = w->dilation[d] * (w->filter[d] - 1) + 1;
        good = w->pad[d] >= 0 && w->image[d] < INT32_MAX && w->image[d] + 2 * w->pad[d] >= reach &&
               (w->image[d] + 2 * w->pad[d] - reach) / w->stride[d] + 1 == w->result[d];
    }
    return good;
}

static bool call(void *user, void *a, void *b, void *c) {
    static const float one = 1, zero = 0;
    const struct convolution *x = user;
    return !dnn.forward(dnn.handle, &one, x->image, a, x->filter, b, x->shape, x->by.algorithm,
                        x->workspace, x->by.bytes, &zero, x->result, c);
}

static bool describe(struct convolution *x) {
    const struct work *w = &x->w;
    int n = (int)w->batch, groups = (int)w->groups, in = (int)w->c_in, out = (int)w->c_out;
    return !dnn.new_tensor(&x->image) && !dnn.new_tensor(&x->result) &&
           !dnn.new_filter(&x->filter) && !dnn.new_convolution(&x->shape) &&
           !dnn.set_tensor(x->image, NCHW, FLOAT, n, groups * in, (int)w->image[0],
                           (int)w->image[1]) &&
           !dnn.set_tensor(x->result, NCHW, FLOAT, n, groups * out, (int)w->result[0],
                           (int)w->result[1]) &&
           !dnn.set_filter(x->filter, FLOAT, NCHW, groups * out, in, (int)w->filter[0],
                           (int)w->filter[1]) &&
           !dnn.set_convolution(x->shape, (int)w->pad[0], (int)w->pad[1], (int)w->stride[0],
                                (int)w->stride[1], (int)w->dilation[0], (int)w->dilation[1],
                                CROSS_CORRELATION, FLOAT) &&
           !dnn.set_groups(x->shape, groups) && !dnn.set_math(x->shape, FMA_MATH);
}

/* The fastest comes first. */
static bool choose(struct convolution *x) {
    struct algorithm all[MOST_ALGORITHMS];
    int n = 0;
    if (dnn.find(dnn.handle, x->image, x->filter, x->shape, x->result, MOST_ALGORITHMS, &n, all))
        return false;
    for (int i = 0; i < n; i++) {
        if (all[i].status || all[i].math != FMA_MATH) continue;
        x->by = all[i];
        x->workspace = peer_memory(all[i].bytes);
        if (x->workspace || !all[i].bytes) return true;
    }
    return false;
}

static void release(void *user) {
    struct convolution *x = user;
    if (x->shape) dnn.drop_convolution(x->shape);
    if (x->filter) dnn.drop_filter(x->filter);
    if (x->result) dnn.drop_tensor(x->result);
    if (x->image) dnn.drop_tensor(x->image);
    peer_memory_free(x->workspace);
    peer_arrays_free(&x->arrays);
    free(x);
}

static void *prepare(const struct work *w, const void *a, const void *b, void *c, int threads) {
    struct convolution *x = calloc(1, sizeof *x);
    int64_t maps = w->batch * w->groups;
    int64_t bytes[] = {4 * maps * w->c_in * w->image[0] * w->image[1],
                       4 * w->groups * w->c_out * w->c_in * w->filter[0] * w->filter[1],
                       4 * maps * w->c_out * w->result[0] * w->result[1]};
    (void)threads;
    if (!x) return NULL;
    *x = (struct convolution){.w = *w, .c = c};
    if (describe(x) && choose(x) && peer_arrays_make(&x->arrays, bytes, a, b) &&
        peer_once(&x->arrays, call, x))
        return x;
    release(x);
    return NULL;
}

static bool run(void *user) {
    const struct convolution *x = user;
    return peer_once(&x->arrays, call, user);
}

static bool finish(void *user) {
    const struct convolution *x = user;
    return peer_result(&x->arrays, x->c);
}

static bool measure(void *user, int calls, int64_t span, double *seconds) {
    struct convolution *x = user;
    return peer_measure(&x->arrays, call, x, calls, span, seconds);
}

static const struct peer cudnn = {.name = "cudnn",
                                  .can = can,
                                  .prepare = prepare,
                                  .run = run,
                                  .measure = measure,
                                  .finish = finish,
                                  .release = release};
static const struct peer *const exported[] = {&cudnn, NULL};

__attribute__((visibility("default"))) peers_missing isamap_peers_missing;
const char *isamap_peers_missing(void) {
    static const char *const library[] = {"libcudnn.so", "libcudnn.so.9", NULL};
    static const char *const name[] = {"cudnnCreate",
                                       "cudnnCreateTensorDescriptor",
                                       "cudnnSetTensor4dDescriptor",
                                       "cudnnDestroyTensorDescriptor",
                                       "cudnnCreateFilterDescriptor",
                                       "cudnnSetFilter4dDescriptor",
                                       "cudnnDestroyFilterDescriptor",
                                       "cudnnCreateConvolutionDescriptor",
                                       "cudnnSetConvolution2dDescriptor",
                                       "cudnnSetConvolutionGroupCount",
                                       "cudnnSetConvolutionMathType",
                                       "cudnnDestroyConvolutionDescriptor",
                                       "cudnnFindConvolutionForwardAlgorithm",
                                       "cudnnConvolutionForward"};
    void *const to[] = {&dnn.create,      &dnn.new_tensor,      &dnn.set_tensor,
                        &dnn.drop_tensor, &dnn.new_filter,      &dnn.set_filter,
                        &dnn.drop_filter, &dnn.new_convolution, &dnn.set_convolution,
                        &dnn.set_groups,  &dnn.set_math,        &dnn.drop_convolution,
                        &dnn.find,        &dnn.forward};
    const char *why;
    if (dnn.handle) return NULL;
    if (!peer_device(&why)) return why;
    if (!peer_symbols(peer_library(library), name, to, (int)(sizeof to / sizeof *to)))
        return "there is no cuDNN 9 (libcudnn.so) in the library path, $CUDA_HOME/lib64 or "
               "/usr/local/cuda/lib64";
    return dnn.create(&dnn.handle) ? "cuDNN does not work on the device" : NULL;
}

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
