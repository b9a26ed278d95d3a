/* oneDNN: matmul and convolution with formats of its choice, primitives reused, constant operands
 * reordered ahead. For convolutions two peers: `onednn` has its activations in its own format and
 * the time contains no reordering, `onednn-plain` takes and gives plain arrays as our programs do.
 */
#include "bench/peer.h"

#include <oneapi/dnnl/dnnl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One operand: the caller's array in plain format, and the library's memory, which is the same
 * where the formats agree. */
struct tensor {
    dnnl_memory_desc_t plain;
    dnnl_memory_t user, own;
    dnnl_primitive_t reorder; /* between the two; NULL: they are one */
};

struct plan {
    dnnl_primitive_t primitive;
    struct tensor a, b, c; /* source, weights, destination */
    bool timed_reorders;
};

struct net {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    int threads;
    struct plan plan;
};

static dnnl_data_type_t data_type(enum type t) {
    switch (t) {
    case TYPE_F32:
        return dnnl_f32;
    case TYPE_BF16:
        return dnnl_bf16;
    case TYPE_I8:
        return dnnl_s8;
    case TYPE_U8:
        return dnnl_u8;
    case TYPE_I32:
        return dnnl_s32;
    default:
        return dnnl_data_type_undef;
    }
}

static bool types_fit(const struct work *w) {
    if (w->type_a == TYPE_F32) return w->type_b == TYPE_F32 && w->type_c == TYPE_F32;
    if (w->type_a == TYPE_BF16) return w->type_b == TYPE_BF16 && w->type_c == TYPE_F32;
    return (w->type_a == TYPE_I8 || w->type_a == TYPE_U8) && w->type_b == TYPE_I8 &&
           w->type_c == TYPE_I32;
}

static bool can(const struct work *w) {
    return (w->kind == WORK_GEMM || w->kind == WORK_CONV) && types_fit(w);
}

static bool can_plain(const struct work *w) {
    return w->kind == WORK_CONV && types_fit(w);
}

/* ---- memory ---- */

static bool describe(dnnl_memory_desc_t *d, int n, const dnnl_dims_t extent, enum type t,
                     const dnnl_dims_t strides) {
    dnnl_dims_t dense = {0};
    for (int i = n; i-- > 0;) dense[i] = i == n - 1 ? 1 : dense[i + 1] * extent[i + 1];
    return !dnnl_memory_desc_init_by_strides(d, n, extent, data_type(t), strides ? strides : dense);
}

static dnnl_memory_desc_t any_format(const dnnl_memory_desc_t *plain) {
    dnnl_memory_desc_t d;
    dnnl_memory_desc_init_by_tag(&d, plain->ndims, plain->dims, plain->data_type,
                                 dnnl_format_tag_any);
    return d;
}

static bool execute(struct net *net, dnnl_primitive_t p, int n, const dnnl_exec_arg_t *args) {
    return !dnnl_primitive_execute(p, net->stream, n, args) && !dnnl_stream_wait(net->stream);
}

static bool reorder(struct net *net, const struct tensor *t, bool in) {
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, in ? t->user : t->own},
                               {DNNL_ARG_TO, in ? t->own : t->user}};
    return !t->reorder || execute(net, t->reorder, 2, args);
}

/* The library's memory for an operand whose format the primitive chose. */
static bool tensor_open(struct net *net, struct tensor *t, const dnnl_memory_desc_t *chosen,
                        const void *array, bool in) {
    void *user = (void *)(uintptr_t)array;
    if (dnnl_memory_create(&t->user, &t->plain, net->engine, user)) return false;
    if (dnnl_memory_desc_equal(&t->plain, chosen)) {
        t->own = t->user;
        return true;
    }
    dnnl_primitive_desc_t d;
    if (dnnl_memory_create(&t->own, chosen, net->engine, DNNL_MEMORY_ALLOCATE) ||
        dnnl_reorder_primitive_desc_create(&d, in ? &t->plain : chosen, net->engine,
                                           in ? chosen : &t->plain, net->engine, NULL))
        return false;
    bool ok = !dnnl_primitive_create(&t->reorder, d);
    dnnl_primitive_desc_destroy(d);
    return ok && (!in || reorder(net, t, true));
}

static void tensor_close(struct tensor *t) {
    if (t->reorder) dnnl_primitive_destroy(t->reorder);
    if (t->own && t->own != t->user) dnnl_memory_destroy(t->own);
    if (t->user) dnnl_memory_destroy(t->user);
}

/* ---- plans ---- */

static void plan_close(struct plan *p) {
    if (p->primitive) dnnl_primitive_destroy(p->primitive);
    tensor_close(&p->a);
    tensor_close(&p->b);
    tensor_close(&p->c);
    *p = (struct plan){0};
}

/* Implementations for reference alone (seconds for a product of milliseconds) are none. */
static bool plan_open(struct net *net, struct plan *p, const void *op, const void *a, const void *b,
                      void *c) {
    dnnl_primitive_desc_t d;
    const char *name = "";
    if (dnnl_primitive_desc_create(&d, op, NULL, net->engine, NULL)) return false;
    bool ok =
        !dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &name) &&
        strncmp(name, "ref", 3) != 0 && !dnnl_primitive_create(&p->primitive, d) &&
        tensor_open(net, &p->a, dnnl_primitive_desc_query_md(d, dnnl_query_src_md, 0), a, true) &&
        tensor_open(net, &p->b, dnnl_primitive_desc_query_md(d, dnnl_query_weights_md, 0), b,
                    true) &&
        tensor_open(net, &p->c, dnnl_primitive_desc_query_md(d, dnnl_query_dst_md, 0), c, false);
    dnnl_primitive_desc_destroy(d);
    if (!ok) plan_close(p);
    return ok;
}

static bool plan_run(struct net *net, const struct plan *p) {
    dnnl_exec_arg_t args[3] = {
        {DNNL_ARG_SRC, p->a.own}, {DNNL_ARG_WEIGHTS, p->b.own}, {DNNL_ARG_DST, p->c.own}};
    return (!p->timed_reorders || reorder(net, &p->a, true)) &&
           execute(net, p->primitive, 3, args) &&
           (!p->timed_reorders || reorder(net, &p->c, false));
}

/* C = A B with either operand as the weights: the one that is constant, whose format is then free.
 * With A as the weights C' = B' A'; what oneDNN wants otherwise than it lies is reordered each
 * time. */
static bool gemm_plan(struct net *net, const struct work *w, const void *a, const void *b, void *c,
                      bool free_weights, struct plan *p) {
    bool swap = w->a_constant && !w->b_constant && free_weights; /* C' = B' A' */
    dnnl_dims_t ea = {w->m, w->k}, eb = {w->k, w->n}, ec = {w->m, w->n};
    dnnl_dims_t sa = {w->a_transposed ? 1 : w->k, w->a_transposed ? w->m : 1};
    dnnl_dims_t sb = {w->b_transposed ? 1 : w->n, w->b_transposed ? w->k : 1};
    dnnl_dims_t sc = {w->n, 1};
    if (swap) {
        dnnl_dims_t ta = {sa[1], sa[0]}, tb = {sb[1], sb[0]}, tc = {1, w->n};
        dnnl_dims_t xa = {w->k, w->m}, xb = {w->n, w->k}, xc = {w->n, w->m};
        if (!describe(&p->b.plain, 2, xa, w->type_a, ta) ||
            !describe(&p->a.plain, 2, xb, w->type_b, tb) ||
            !describe(&p->c.plain, 2, xc, w->type_c, tc))
            return false;
    } else if (!describe(&p->a.plain, 2, ea, w->type_a, sa) ||
               !describe(&p->b.plain, 2, eb, w->type_b, sb) ||
               !describe(&p->c.plain, 2, ec, w->type_c, sc)) {
        return false;
    }
    dnnl_memory_desc_t any_a = any_format(&p->a.plain), any_b = any_format(&p->b.plain),
                       any_c = any_format(&p->c.plain);
    bool packed = free_weights && (swap || w->b_constant);
    p->timed_reorders = swap;
    dnnl_matmul_desc_t op;
    return !dnnl_matmul_desc_init(&op, swap ? &any_a : &p->a.plain, packed ? &any_b : &p->b.plain,
                                  NULL, swap ? &any_c : &p->c.plain) &&
           plan_open(net, p, &op, swap ? b : a, swap ? a : b, c);
}

static bool conv_plan(struct net *net, const struct work *w, const void *a, const void *b, void *c,
                      bool any_activations, struct plan *p) {
    int grouped = w->groups > 1;
    dnnl_dims_t ea = {w->batch, w->groups * w->c_in, w->image[0], w->image[1]},
                ec = {w->batch, w->groups * w->c_out, w->result[0], w->result[1]},
                dense = {w->c_out, w->c_in, w->filter[0], w->filter[1]},
                in_groups = {w->groups, w->c_out, w->c_in, w->filter[0], w->filter[1]},
                stride = {0}, dilation = {0}, left = {0}, right = {0};
    for (int d = 0; d < 2; d++) {
        int64_t reach = (w->result[d] - 1) * w->stride[d] + (w->filter[d] - 1) * w->dilation[d] +
                        1 - w->image[d] - w->pad[d];
        stride[d] = w->stride[d], dilation[d] = w->dilation[d] - 1, left[d] = w->pad[d];
        right[d] = reach > 0 ? reach : 0;
    }
    if (!describe(&p->a.plain, 4, ea, w->type_a, NULL) ||
        !describe(&p->b.plain, 4 + grouped, grouped ? in_groups : dense, w->type_b, NULL) ||
        !describe(&p->c.plain, 4, ec, w->type_c, NULL))
        return false;
    dnnl_memory_desc_t any_a = any_format(&p->a.plain), any_b = any_format(&p->b.plain),
                       any_c = any_format(&p->c.plain);
    dnnl_convolution_desc_t op;
    return !dnnl_dilated_convolution_forward_desc_init(
               &op, dnnl_forward_inference, dnnl_convolution_auto,
               any_activations ? &any_a : &p->a.plain, w->b_constant ? &any_b : &p->b.plain, NULL,
               any_activations ? &any_c : &p->c.plain, stride, dilation, left, right) &&
           plan_open(net, p, &op, a, b, c);
}

/* Least of three runs. */
static double plan_seconds(struct net *net, const struct plan *p) {
    double least = 1e30;
    for (int i = 0; i < 4; i++) {
        struct timespec t, u;
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (!plan_run(net, p)) return 1e30;
        clock_gettime(CLOCK_MONOTONIC, &u);
        double s = (double)(u.tv_sec - t.tv_sec) + 1e-9 * (double)(u.tv_nsec - t.tv_nsec);
        if (i > 0 && s < least) least = s;
    }
    return least;
}

/* Of two plans the faster. */
static bool choose(struct net *net, struct plan *x, bool has_x, struct plan *y, bool has_y) {
    if (has_x && has_y && plan_seconds(net, y) < plan_seconds(net, x)) {
        plan_close(x);
        has_x = false;
    }
    net->plan = has_x ? *x : *y;
    if (has_x && has_y) plan_close(y);
    return has_x || has_y;
}

/* ---- the peers ---- */

static void release(void *user) {
    struct net *net = user;
    plan_close(&net->plan);
    if (net->stream) dnnl_stream_destroy(net->stream);
    if (net->engine) dnnl_engine_destroy(net->engine);
    free(net);
}

static void *prepare_net(const struct work *w, const void *a, const void *b, void *c, int threads,
                         bool plain) {
    struct net *net = calloc(1, sizeof *net);
    struct plan x = {0}, y = {0};
    if (!net) return NULL;
    net->threads = threads;
    omp_set_num_threads(threads);
    bool ok = !dnnl_engine_create(&net->engine, dnnl_cpu, 0) &&
              !dnnl_stream_create(&net->stream, net->engine, dnnl_stream_default_flags);
    if (ok && w->kind == WORK_GEMM) {
        bool constant = w->a_constant || w->b_constant;
        bool has_x = gemm_plan(net, w, a, b, c, false, &x),
             has_y = constant && gemm_plan(net, w, a, b, c, true, &y);
        ok = choose(net, &x, has_x, &y, has_y);
    } else if (ok) {
        bool has_x = conv_plan(net, w, a, b, c, true, &x),
             has_y = plain && conv_plan(net, w, a, b, c, false, &y);
        x.timed_reorders = plain;
        ok = choose(net, &x, has_x, &y, has_y);
    }
    if (ok) return net;
    release(net);
    return NULL;
}

static void *prepare(const struct work *w, const void *a, const void *b, void *c, int threads) {
    return prepare_net(w, a, b, c, threads, false);
}

static void *prepare_plain(const struct work *w, const void *a, const void *b, void *c,
                           int threads) {
    return prepare_net(w, a, b, c, threads, true);
}

static bool run(void *user) {
    struct net *net = user;
    omp_set_num_threads(net->threads);
    return plan_run(net, &net->plan);
}

static bool finish(void *user) {
    struct net *net = user;
    return reorder(net, &net->plan.c, false);
}

/* ---- cells ---- */

enum { CELL_TENSORS = 10 };

struct recurrent {
    struct net net; /* its plan's primitive alone */
    struct tensor tensor[CELL_TENSORS];
    int arg[CELL_TENSORS], n;
    float *bias;
};

static bool can_cell(const struct work *w) {
    return w->kind == WORK_CELL;
}

static void release_cell(void *user) {
    struct recurrent *r = user;
    if (r->net.plan.primitive) dnnl_primitive_destroy(r->net.plan.primitive);
    for (int k = 0; k < r->n; k++) tensor_close(&r->tensor[k]);
    if (r->net.stream) dnnl_stream_destroy(r->net.stream);
    if (r->net.engine) dnnl_engine_destroy(r->net.engine);
    free(r->bias);
    free(r);
}

/* A GRU's bias of its new gate's product of the state stands behind the others. */
static float *cell_bias(const struct work *w) {
    size_t n = (size_t)(w->gates * w->units), more = w->gates == 3 ? (size_t)w->units : 0;
    float *out = malloc((n + more) * sizeof *out);
    if (!out) return NULL;
    memcpy(out, w->data[w->part[CELL_BIAS]], n * sizeof *out);
    if (more) memcpy(out + n, w->data[w->part[CELL_BIAS_NEW]], more * sizeof *out);
    return out;
}

static bool cell_describe(const struct work *w, dnnl_memory_desc_t *d) {
    int64_t g = w->gates, n = w->units, in = w->inputs, b = w->batch;
    dnnl_dims_t x = {w->steps, b, in}, y = {w->steps, b, n}, state = {1, 1, b, n},
                layer = {1, 1, in, g, n}, iter = {1, 1, n, g, n}, bias = {1, 1, g + (g == 3), n},
                by_input = {g * n * in, g * n * in, 1, n * in, in},
                by_unit = {g * n * n, g * n * n, 1, n * n, n};
    return describe(&d[CELL_X], 3, x, TYPE_F32, NULL) &&
           describe(&d[CELL_Y], 3, y, TYPE_F32, NULL) &&
           describe(&d[CELL_W], 5, layer, TYPE_F32, by_input) &&
           describe(&d[CELL_U], 5, iter, TYPE_F32, by_unit) &&
           describe(&d[CELL_BIAS], 4, bias, TYPE_F32, NULL) &&
           describe(&d[CELL_H0], 4, state, TYPE_F32, NULL) &&
           describe(&d[CELL_C0], 4, state, TYPE_F32, NULL) &&
           describe(&d[CELL_HT], 4, state, TYPE_F32, NULL) &&
           describe(&d[CELL_CT], 4, state, TYPE_F32, NULL);
}

/* Inputs, outputs and states are plain, weights in the format that the library chooses. */
static bool cell_descriptor(const struct work *w, const dnnl_memory_desc_t *d,
                            dnnl_rnn_desc_t *op) {
    dnnl_memory_desc_t wx = any_format(&d[CELL_W]), wh = any_format(&d[CELL_U]);
    const dnnl_rnn_direction_t way = dnnl_unidirectional_left2right;
    if (w->gates == 1)
        return !dnnl_vanilla_rnn_forward_desc_init(
            op, dnnl_forward_inference, dnnl_eltwise_tanh, way, &d[CELL_X], &d[CELL_H0], &wx, &wh,
            &d[CELL_BIAS], &d[CELL_Y], &d[CELL_HT], dnnl_rnn_flags_undef, 0, 0);
    if (w->gates == 3)
        return !dnnl_lbr_gru_forward_desc_init(op, dnnl_forward_inference, way, &d[CELL_X],
                                               &d[CELL_H0], &wx, &wh, &d[CELL_BIAS], &d[CELL_Y],
                                               &d[CELL_HT], dnnl_rnn_flags_undef);
    return !dnnl_lstm_forward_desc_init(op, dnnl_forward_inference, way, &d[CELL_X], &d[CELL_H0],
                                        &d[CELL_C0], &wx, &wh, &d[CELL_BIAS], &d[CELL_Y],
                                        &d[CELL_HT], &d[CELL_CT], dnnl_rnn_flags_undef);
}

static bool cell_tensor(struct recurrent *r, const dnnl_memory_desc_t *plain,
                        const dnnl_memory_desc_t *chosen, int arg, const void *array, bool in) {
    struct tensor *t = &r->tensor[r->n];
    r->arg[r->n++] = arg;
    t->plain = *plain;
    return tensor_open(&r->net, t, chosen, array, in);
}

static bool cell_open(struct recurrent *r, const struct work *w, void *y) {
    dnnl_memory_desc_t d[CELL_PARTS];
    dnnl_rnn_desc_t op;
    dnnl_primitive_desc_t made;
    void *const *data = w->data;
    const int *part = w->part;
    if (!cell_describe(w, d) || !cell_descriptor(w, d, &op) ||
        dnnl_primitive_desc_create(&made, &op, NULL, r->net.engine, NULL))
        return false;
    const dnnl_memory_desc_t *wx = dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 0),
                             *wh = dnnl_primitive_desc_query_md(made, dnnl_query_weights_md, 1);
    bool ok =
        !dnnl_primitive_create(&r->net.plan.primitive, made) &&
        cell_tensor(r, &d[CELL_X], &d[CELL_X], DNNL_ARG_SRC_LAYER, data[part[CELL_X]], true) &&
        cell_tensor(r, &d[CELL_W], wx, DNNL_ARG_WEIGHTS_LAYER, data[part[CELL_W]], true) &&
        cell_tensor(r, &d[CELL_U], wh, DNNL_ARG_WEIGHTS_ITER, data[part[CELL_U]], true) &&
        cell_tensor(r, &d[CELL_BIAS], &d[CELL_BIAS], DNNL_ARG_BIAS, r->bias, true) &&
        cell_tensor(r, &d[CELL_H0], &d[CELL_H0], DNNL_ARG_SRC_ITER, data[part[CELL_H0]], true) &&
        cell_tensor(r, &d[CELL_Y], &d[CELL_Y], DNNL_ARG_DST_LAYER, y, false) &&
        cell_tensor(r, &d[CELL_HT], &d[CELL_HT], DNNL_ARG_DST_ITER, data[part[CELL_HT]], false);
    if (ok && w->gates == 4)
        ok = cell_tensor(r, &d[CELL_C0], &d[CELL_C0], DNNL_ARG_SRC_ITER_C, data[part[CELL_C0]],
                         true) &&
             cell_tensor(r, &d[CELL_CT], &d[CELL_CT], DNNL_ARG_DST_ITER_C, data[part[CELL_CT]],
                         false);
    dnnl_primitive_desc_destroy(made);
    return ok;
}

static void *prepare_cell(const struct work *w, const void *a, const void *b, void *c,
                          int threads) {
    struct recurrent *r = calloc(1, sizeof *r);
    (void)a, (void)b;
    if (!r) return NULL;
    r->net.threads = threads;
    r->bias = cell_bias(w);
    omp_set_num_threads(threads);
    if (r->bias && !dnnl_engine_create(&r->net.engine, dnnl_cpu, 0) &&
        !dnnl_stream_create(&r->net.stream, r->net.engine, dnnl_stream_default_flags) &&
        cell_open(r, w, c))
        return r;
    release_cell(r);
    return NULL;
}

static bool run_cell(void *user) {
    struct recurrent *r = user;
    dnnl_exec_arg_t args[CELL_TENSORS];
    omp_set_num_threads(r->net.threads);
    for (int k = 0; k < r->n; k++) args[k] = (dnnl_exec_arg_t){r->arg[k], r->tensor[k].own};
    return execute(&r->net, r->net.plan.primitive, r->n, args);
}

static const struct peer onednn_cell = {
    .name = "onednn-cell",
    .note = "one primitive for all steps, weights reordered ahead",
    .can = can_cell,
    .prepare = prepare_cell,
    .run = run_cell,
    .release = release_cell,
};
static const struct peer onednn = {
    .name = "onednn",
    .note = "constants reordered ahead; of a convolution the activations too",
    .can = can,
    .prepare = prepare,
    .run = run,
    .finish = finish,
    .release = release,
};
static const struct peer onednn_plain = {
    .name = "onednn-plain",
    .note = "constants reordered ahead, activations plain: reordering them is in the time",
    .can = can_plain,
    .prepare = prepare_plain,
    .run = run,
    .finish = finish,
    .release = release,
};
static const struct peer *const exported[] = {&onednn, &onednn_plain, &onednn_cell, NULL};

__attribute__((visibility("default"))) peers_export isamap_peers;
const struct peer *const *isamap_peers(void) {
    return exported;
}
