/* Programs, machines and a random approach for the tests of scheduling. */
#ifndef ISAMAP_TESTS_SCHEDULER_PLAN_H
#define ISAMAP_TESTS_SCHEDULER_PLAN_H

#include "ir/interp.h"
#include "scheduler/scheduler.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct machine *plan_machine(const char *name, const char *host, struct diags *d) {
    struct machine *m = host ? machine_join(name, host, NULL, d) : machine_load(name, NULL, d);
    if (!m) diags_print(d, stderr);
    return m;
}

static inline struct program *plan_program(struct arena *a, const char *text,
                                           const struct binding *b, int n, struct diags *d) {
    struct source *src = arena_alloc(a, sizeof *src);
    *src = (struct source){"test.isam", text, strlen(text), 1, 1};
    struct kernel **k;
    struct bindings given = {b, n, NULL};
    struct program *p =
        kernel_parse(a, src, &k, d) > 0 ? program_bind(k[0], &given, NULL, d) : NULL;
    if (!p) diags_print(d, stderr);
    return p;
}

/* ---- any legal answer ---- */
static inline uint64_t plan_random(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static inline void *plan_open(uint64_t seed) {
    uint64_t *s = malloc(sizeof *s);
    *s = seed * 0x9e3779b97f4a7c15u + 1;
    return s;
}

static inline int plan_choose(void *s, const struct question *q) {
    return (int)(plan_random(s) % (uint64_t)q->ncandidates);
}

static inline void plan_move(void *s, const struct space *sp, int *at) {
    int try[64];
    for (int k = 0; k < 200; k++) {
        for (int v = 0; v < sp->nvars; v++)
            try[v] = (int)(plan_random(s) % (uint64_t)sp->nvalues[v]);
        if (!(sp->cost(sp->user, try) < 1e300)) continue;
        memcpy(at, try, sizeof *at * (size_t)sp->nvars);
        return;
    }
}

static const struct approach plan_any = {"any",       "any legal answer", plan_open, free,
                                         plan_choose, plan_move,          NULL,      false};

static inline int plan_cheapest(void *s, const struct question *q) {
    int best = 0;
    (void)s;
    for (int i = 1; i < q->ncandidates; i++)
        if (q->candidate[i].cost < q->candidate[best].cost) best = i;
    return best;
}

static inline void plan_stay(void *s, const struct space *sp, int *at) {
    (void)s;
    (void)sp;
    (void)at;
}

static const struct approach plan_best = {"best",     "the least cost", plan_open, free,
                                          plan_cheapest, plan_stay,        NULL,      true};

/* A program and the schedule made of it for a machine. */
struct compiled {
    struct arena arena;
    struct diags diags;
    struct machine *m;
    struct program *p;
    struct cover *c;
    struct schedule *s;
};

static inline void compiled_need(struct compiled *x, bool there, const char *what) {
    if (there) return;
    diags_print(&x->diags, stderr);
    fprintf(stderr, "%s\n", what);
    abort();
}

/* Machine and program only. Ends the test where one is wrong. */
static inline void compiled_open(struct compiled *x, const char *machine, const char *host,
                                 const struct bindings *params, const char *text,
                                 const struct binding *size, int n) {
    memset(x, 0, sizeof *x);
    arena_init(&x->arena);
    diags_init(&x->diags);
    x->m = host ? machine_join(machine, host, params, &x->diags)
                : machine_load(machine, params, &x->diags);
    compiled_need(x, x->m != NULL, machine);
    x->p = plan_program(&x->arena, text, size, n, &x->diags);
    compiled_need(x, x->p != NULL, text);
}

/* Then cover and schedule. */
static inline void compiled_decide(struct compiled *x, struct decider *d,
                                   const struct scheduler_options *options) {
    /* values are compared bit by bit: sums of floats keep their order */
    x->c = mapper_cover_allowing(x->p, x->m, REWRITE_EXACT, NULL, NULL, d,
                                     &x->diags);
    compiled_need(x, x->c != NULL, "no cover");
    x->s = scheduler_run(x->c, x->m, d, options, &x->diags);
    compiled_need(x, x->s != NULL, "no schedule");
}

static inline void compiled_by(struct compiled *x, const struct approach *approach, uint64_t seed,
                               const struct scheduler_options *options) {
    struct decider *d = decider_open(approach, seed);
    compiled_decide(x, d, options);
    decider_close(d);
}

static inline void compiled_free(struct compiled *x) {
    schedule_free(x->s);
    cover_free(x->c);
    program_free(x->p);
    machine_free(x->m);
    diags_free(&x->diags);
    arena_free(&x->arena);
}

/* Small integers that every type holds exactly. */
static inline void plan_fill(const struct buffer *b, void *data, unsigned seed) {
    unsigned x = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < b->elements; i++) {
        union value v;
        x = x * 1664525u + 1013904223u;
        int r = (int)(x >> 24) % 7 - 3;
        if (type_is_float(b->type))
            v.f = r;
        else
            v.i = type_is_signed(b->type) ? r : r + 3;
        type_store(b->type, (char *)data + (size_t)i * type_size(b->type), v);
    }
}

/* Buffers that the caller gives, filled by name so that two programs get the same. */
static inline void **plan_data(const struct program *p) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *buf = &p->buffer[b];
        if (buf->role == ROLE_TEMP || buf->role == ROLE_STATE) continue;
        data[b] = calloc((size_t)buf->elements + 1, type_size(buf->type));
        plan_fill(buf, data[b], (unsigned)buf->name[0]);
    }
    return data;
}

static inline void plan_data_free(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

/* Elements in which the caller's buffers differ. */
static inline int64_t plan_differ(const struct program *p, void **x, const struct program *q,
                                  void **y) {
    int64_t bad = 0;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *buf = &p->buffer[b];
        int other = program_buffer(q, buf->name);
        if (!x[b]) continue;
        if (other < 0 || !y[other]) return -1;
        size_t size = type_size(buf->type);
        for (int64_t i = 0; i < buf->elements; i++) {
            union value u = type_load(buf->type, (char *)x[b] + (size_t)i * size);
            union value v = type_load(buf->type, (char *)y[other] + (size_t)i * size);
            bad += type_is_float(buf->type) ? u.f != v.f : u.i != v.i;
        }
    }
    return bad;
}

static const char gmm_f32[] = "kernel gmm(M=13, N=21, K=9) {\n"
                              "  in A: f32[M, K]  in B: f32[K, N]  out C: f32[M, N]\n"
                              "  axes i: M, j: N, k: K\n"
                              "  C[i,j]  = 0\n"
                              "  C[i,j] += A[i,k] * B[k,j]\n"
                              "}\n";
static const char gmm_i8[] = "kernel gmm(M=45, N=37, K=53) {\n"
                             "  in A: i8[M, K]  const B: i8[N, K]  out C: i32[M, N]\n"
                             "  axes i: M, j: N, k: K\n"
                             "  C[i,j]  = 0\n"
                             "  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n"
                             "}\n";
static const char c2d_f32[] =
    "kernel c2d(C=5, K=11, H=6, W=9, R=3, S=3) {\n"
    "  in I: f32[C, H, W]  const F: f32[K, C, R, S]  out O: f32[K, H, W]\n"
    "  axes k: K, p: H, q: W, c: C, r: R, s: S\n"
    "  O[k,p,q]  = 0\n"
    "  O[k,p,q] += I[c,p+r-1,q+s-1 else 0] * F[k,c,r,s]\n"
    "}\n";
static const char c2d_i8[] = "kernel c2d(C=20, K=24, H=9, W=11, R=3, S=3) {\n"
                             "  in I: i8[C, H, W]  const F: i8[K, C, R, S]  out O: i32[K, H, W]\n"
                             "  axes k: K, p: H, q: W, c: C, r: R, s: S\n"
                             "  O[k,p,q]  = 0\n"
                             "  O[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n"
                             "}\n";
static const char c1d_i8[] =
    "kernel c1d(N=2, C=16, K=32, P=13, R=3) {\n"
    "  in I: i8[N, C, 2*P+R-2]  const F: i8[K, C, R]  out O: i32[N, K, P]\n"
    "  axes n: N, k: K, p: P, c: C, r: R\n"
    "  O[n,k,p]  = 0\n"
    "  O[n,k,p] += i32(I[n,c,2*p+r]) * i32(F[k,c,r])\n"
    "}\n";
static const char layer_f32[] =
    "kernel layer(M=13, N=29, K=7) {\n"
    "  in A: f32[M, K]  in B: f32[K, N]  in b: f32[N]  in R: f32[M, N]  out D: f32[M, N]\n"
    "  temp C: f32[M, N]  temp E: f32[M, N]  temp G: f32[M, N]\n"
    "  axes i: M, j: N, k: K\n"
    "  C[i,j]  = 0\n"
    "  C[i,j] += A[i,k] * B[k,j]\n"
    "  E[i,j]  = C[i,j] + b[j]\n"
    "  G[i,j]  = E[i,j] + R[i,j]\n"
    "  D[i,j]  = max(G[i,j], 0)\n"
    "}\n";
static const char layer_i8[] =
    "kernel layer(M=37, N=32, K=48) {\n"
    "  in A: i8[M, K]  const B: i8[N, K]  const b: i32[N]  out D: i8[M, N]\n"
    "  temp C: i32[M, N]  temp E: i32[M, N]  temp G: i32[M, N]\n"
    "  axes i: M, j: N, k: K\n"
    "  C[i,j]  = 0\n"
    "  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n"
    "  E[i,j]  = C[i,j] + b[j]\n"
    "  G[i,j]  = max(E[i,j], 0)\n"
    "  D[i,j]  = i8(clip(round(f64(G[i,j]) * 0.0625), -128, 127))\n"
    "}\n";
static const char gmv_i8[] = "kernel gmv(M=40, K=75) {\n"
                             "  in A: i8[M, K]  in x: i8[K]  out y: i32[M]\n"
                             "  axes i: M, k: K\n"
                             "  y[i]  = 0\n"
                             "  y[i] += i32(A[i,k]) * i32(x[k])\n"
                             "}\n";

static const char gmm_rows_i8[] = "kernel gmm(M=40, N=24, K=96) {\n"
                                  "  in A: i8[M, K]  in B: i8[N, K]  out C: i32[M, N]\n"
                                  "  axes i: M, j: N, k: K\n"
                                  "  C[i,j] = 0\n"
                                  "  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n}\n";
static const char gmm_bf16[] = "kernel gmm(M=64, N=64, K=64) {\n"
                               "  in A: bf16[M, K]  in B: bf16[N, K]  out C: f32[M, N]\n"
                               "  axes i: M, j: N, k: K\n"
                               "  C[i,j] = 0\n"
                               "  C[i,j] += f32(A[i,k]) * f32(B[j,k])\n}\n";

/* The sum may be a move that accumulates on what the product left. */
static const char sum_i8[] = "kernel sum(M=2, N=2, K=3) {\n"
                             "  in A: i8[M, K]  in B: i8[K, N]  in D: i32[M, N]  out E: i32[M, N]\n"
                             "  temp C: i32[M, N]\n"
                             "  axes i: M, j: N, k: K\n"
                             "  C[i,j]  = 0\n"
                             "  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n"
                             "  E[i,j]  = C[i,j] + D[i,j]\n"
                             "}\n";

struct plan_case {
    const char *machine, *host, *text;
};
static inline void compiled_case(struct compiled *x, const struct plan_case *k,
                                 const struct binding *size, int n) {
    compiled_open(x, k->machine, k->host, NULL, k->text, size, n);
}
#define EDGE "machines/edge16.xml", "machines/cpu-scalar.xml"
#define GEMMINI "machines/gemmini.xml", "machines/cpu-scalar.xml"
#define LEVELS "tests/data/machines/levels.xml", "machines/cpu-scalar.xml"
#define WARPS "tests/data/machines/schedule/warps.xml", NULL
#define SM90 "machines/sm90.xml", NULL
static const struct plan_case plan_cases[] = {
    {WARPS, gmm_i8},
    {WARPS, gmm_rows_i8},
    {SM90, gmm_bf16},
    {"tests/data/machines/mapper/types.xml", NULL, gmm_f32}, /* nothing but whole tiles */
    {"machines/cpu-avx2.xml", NULL, gmm_f32},
    {"machines/cpu-avx512.xml", NULL, gmm_f32},
    {"machines/cpu-blas.xml", NULL, gmm_f32},
    {"machines/cpu-scalar.xml", NULL, gmm_f32},
    {"machines/cpu-avx2.xml", NULL, c2d_f32},
    {"machines/cpu-avx512.xml", NULL, c2d_f32},
    {"machines/cpu-avx2.xml", NULL, layer_f32},
    {"machines/cpu-avx512.xml", NULL, layer_f32},
    {EDGE, gmm_i8},
    {EDGE, c2d_i8},
    {EDGE, c1d_i8},
    {EDGE, layer_i8},
    {EDGE, gmv_i8},
    {GEMMINI, sum_i8},
    {LEVELS, gmm_i8},
    {LEVELS, c2d_i8},
};
enum { PLAN_CASES = sizeof plan_cases / sizeof plan_cases[0] };

#endif
