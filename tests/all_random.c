/* Random small programs × machine files × random approach, against the interpreter: schedules are
 * verified, devices and CPUs simulated, and the CPU's code run. ISAMAP_RANDOM=N sets how many
 * programs (default: some seconds' worth), ISAMAP_SEED the first seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "approaches/approaches.h"
#include "backends/backend.h"
#include "ir/interp.h"
#include "mapper/mapper.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rng {
    uint64_t s;
};

static int pick(struct rng *r, int n) {
    r->s = r->s * 6364136223846793005u + 1442695040888963407u;
    return (int)((r->s >> 33) % (uint64_t)n);
}

static int between(struct rng *r, int lo, int hi) {
    return lo + pick(r, hi - lo + 1);
}

/* A program text: a product-sum of up to five axes with padding, strides and dilations, or an
 * elementwise chain, then an epilogue. */
static char *random_program(struct rng *r, struct arena *a, bool integer) {
    struct text t = {0};
    const char *in = integer ? "i8" : "f32", *acc = integer ? "i32" : "f32";
    const char *cast_a = integer ? "i32(" : "(", *zero = integer ? "0" : "0.0";
    (void)zero;
    int kind = pick(r, 4), epilogue = pick(r, 4);
    int M = between(r, 1, 37), N = between(r, 1, 37), K = between(r, 1, 37);
    text_printf(&t, "kernel random() {\n");
    const char *out_index = "i,j", *extents = NULL;
    char dims[128];
    if (kind <= 1) { /* matmul, perhaps with transposed operands */
        bool ta = pick(r, 2), tb = pick(r, 2), cb = pick(r, 2);
        text_printf(&t, "  in A: %s[%s]  %s B: %s[%s]\n", in, ta ? "K, M" : "M, K",
                    cb ? "const" : "in", in, tb ? "N, K" : "K, N");
        snprintf(dims, sizeof dims, "M, N");
        text_printf(&t, "  axes i: M, j: N, k: K\n  temp T: %s[M, N]\n", acc);
        text_printf(&t, "  T[i,j] = 0\n  T[i,j] += %s%s) * %s%s)\n", cast_a,
                    ta ? "A[k,i]" : "A[i,k]", cast_a, tb ? "B[j,k]" : "B[k,j]");
    } else if (kind == 2) { /* conv2d */
        int P = between(r, 1, 9), Q = between(r, 1, 9), C = between(r, 1, 20),
            F = between(r, 1, 20), R = between(r, 1, 3);
        int stride = between(r, 1, 2), dil = between(r, 1, 2), pad = between(r, 0, 1),
            b = between(r, 1, 2);
        int H = (P - 1) * stride + (R - 1) * dil + 1 - 2 * pad,
            W = (Q - 1) * stride + (R - 1) * dil + 1 - 2 * pad;
        if (H < 1) H = 1;
        if (W < 1) W = 1;
        snprintf(dims, sizeof dims, "%d, %d, %d, %d", b, F, P, Q);
        out_index = "n,f,p,q";
        text_printf(&t, "  in I: %s[%d, %d, %d, %d]  const W: %s[%d, %d, %d, %d]\n", in, b, C, H, W,
                    in, F, C, R, R);
        text_printf(&t,
                    "  axes n: %d, f: %d, p: %d, q: %d, c: %d, r: %d, s: %d\n  temp T: %s[%s]\n", b,
                    F, P, Q, C, R, R, acc, dims);
        text_printf(&t,
                    "  T[n,f,p,q] = 0\n  T[n,f,p,q] += %sI[n,c,%d*p+%d*r-%d,%d*q+%d*s-%d else 0]) "
                    "* %sW[f,c,r,s])\n",
                    cast_a, stride, dil, pad, stride, dil, pad, cast_a);
    } else { /* elementwise */
        text_printf(&t, "  in A: %s[M, N]  in B: %s[M, N]\n", in, in);
        snprintf(dims, sizeof dims, "M, N");
        text_printf(&t, "  axes i: M, j: N\n  temp T: %s[M, N]\n", acc);
        const char *op = pick(r, 2) ? "+" : "*";
        text_printf(&t, "  T[i,j] = %sA[i,j]) %s %sB[i,j])\n", cast_a, op, cast_a);
    }
    (void)extents;
    if (epilogue == 0)
        text_printf(&t, "  out O: %s[%s]\n  O[%s] = T[%s]\n", acc, dims, out_index, out_index);
    if (epilogue == 1)
        text_printf(&t, "  out O: %s[%s]\n  O[%s] = max(T[%s], 0)\n", acc, dims, out_index,
                    out_index);
    if (epilogue == 2 && integer)
        text_printf(
            &t, "  out O: i8[%s]\n  O[%s] = i8(clip(round(f64(T[%s]) * 0.0078125), -128, 127))\n",
            dims, out_index, out_index);
    if (epilogue == 2 && !integer)
        text_printf(&t, "  out O: f32[%s]\n  O[%s] = exp(T[%s] * 0.125)\n", dims, out_index,
                    out_index);
    if (epilogue == 3)
        text_printf(&t, "  in D: %s[%s]  out O: %s[%s]\n  O[%s] = max(T[%s] + D[%s], 0)\n", acc,
                    dims, acc, dims, out_index, out_index, out_index);
    text_printf(&t, "}\n");
    /* sizes stand as numbers: a kernel needs no parameters */
    struct text u = {0};
    for (const char *s = t.at; *s; s++) {
        bool word = (s == t.at ||
                     !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", s[-1])) &&
                    strchr("MNK", *s) && (s[1] == ',' || s[1] == ']' || s[1] == '\n');
        if (word)
            text_printf(&u, "%d", *s == 'M' ? M : *s == 'N' ? N : K);
        else
            text_append(&u, s, 1);
    }
    char *copy = arena_strdup(a, u.at);
    text_free(&t);
    text_free(&u);
    return copy;
}

static void **make_data(const struct program *p, struct rng *r) {
    void **data = calloc((size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP) continue;
        data[b] = calloc((size_t)x->elements, type_size(x->type));
        for (int64_t e = 0; e < x->elements && x->role != ROLE_OUT; e++) {
            union value v;
            int n = between(r, -128, 127);
            if (type_is_float(x->type))
                v.f = n / 128.0;
            else
                v.i = n;
            type_store(x->type, (char *)data[b] + (size_t)e * type_size(x->type), v);
        }
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static void clear_outputs(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role == ROLE_OUT)
            memset(data[b], 0x5a, (size_t)p->buffer[b].elements * type_size(p->buffer[b].type));
}

static bool equal_outputs(const struct program *p, void **want, void **got) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role != ROLE_OUT) continue;
        for (int64_t e = 0; e < x->elements; e++) {
            size_t at = (size_t)e * type_size(x->type);
            union value w = type_load(x->type, (char *)want[b] + at),
                        g = type_load(x->type, (char *)got[b] + at);
            if (type_is_float(x->type) ? !(fabs(w.f - g.f) <= 1e-3 * fmax(1, fabs(w.f)))
                                       : w.i != g.i)
                return false;
        }
    }
    return true;
}

static void **rebind(const struct program *from, const struct program *to, void **data) {
    void **out = calloc((size_t)to->nbuffers, sizeof *out);
    for (int b = 0; b < to->nbuffers; b++) {
        int f = to->buffer[b].role == ROLE_TEMP ? -1 : program_buffer(from, to->buffer[b].name);
        if (f >= 0) out[b] = data[f];
    }
    return out;
}

struct bench {
    struct machine *machine;
    bool run;
    const char *name;
    bool integer;
};

/* NULL: right; otherwise what went wrong. */
static const char *try_one(const struct program *p, const struct bench *b,
                           const struct approach *approach, uint64_t seed, void **want, void **data,
                           struct diags *d) {
    struct decider *decider = decider_open(approach, seed);
    struct cover *cover = mapper_cover(p, b->machine, decider, d);
    struct scheduler_options options = {.threads = 1};
    struct schedule *s = cover ? scheduler_run(cover, b->machine, decider, &options, d) : NULL;
    const char *wrong = !cover ? "no cover" : !s ? "no schedule" : NULL;
    if (!wrong && !cover_verify(cover, b->machine, d)) wrong = "cover not valid";
    if (!wrong && !schedule_verify(s, &(struct verify_options){.trips = 0}, d))
        wrong = "schedule not valid";
    void **bound = wrong ? NULL : rebind(p, s->program, data);
    if (!wrong) {
        struct sim_result x = {0};
        clear_outputs(p, data);
        if (!sim_run(s, bound, &(struct sim_options){0}, &x, d))
            wrong = "simulation failed";
        else if (!equal_outputs(p, want, data))
            wrong = "simulated values differ";
        sim_result_free(&x);
    }
    if (!wrong && b->run) {
        const struct backend *backend = backend_find(s, NULL, d);
        struct executable *e = backend ? backend->load(s, &(struct backend_options){0}, d) : NULL;
        clear_outputs(p, data);
        if (!e)
            wrong = "backend failed";
        else if (!executable_prepare(e, bound, d) || !executable_run(e, bound, 1, d))
            wrong = "execution failed";
        else if (!equal_outputs(p, want, data))
            wrong = "executed values differ";
        if (e) executable_free(e);
    }
    free(bound);
    if (s) schedule_free(s);
    if (cover) cover_free(cover);
    decider_close(decider);
    return wrong;
}

static void random_programs(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    struct machine *host = machine_host(&d);
    assert_non_null(host);
    struct bench benches[] = {
        {machine_join(SOURCE_DIR "/machines/edge16.xml", "cpu-scalar", NULL, &d), false, "edge16",
         true},
        {machine_load(SOURCE_DIR "/machines/cpu-avx512.xml", NULL, &d), false, "cpu-avx512", false},
        {host, true, "host", false},
        {machine_load(SOURCE_DIR "/machines/cpu-blas.xml", NULL, &d), false, "cpu-blas", false}};
    diags_print(&d, stderr);
    int n = getenv("ISAMAP_RANDOM") ? atoi(getenv("ISAMAP_RANDOM")) : 60, failed = 0, tried = 0;
    uint64_t first = getenv("ISAMAP_SEED") ? strtoull(getenv("ISAMAP_SEED"), NULL, 0) : 1;
    for (uint64_t seed = first; seed < first + (uint64_t)n; seed++) {
        for (int k = 0; k < 4; k++) {
            struct bench *b = &benches[k];
            assert_non_null(b->machine);
            struct rng r = {.s = seed * 7919 + 13};
            bool integer = b->integer || (k != 3 && pick(&r, 4) == 0);
            struct arena a;
            arena_init(&a);
            struct diags e;
            diags_init(&e);
            struct source source = {.file = "random", .line0 = 1, .col0 = 1};
            source.text = random_program(&r, &a, integer);
            source.length = strlen(source.text);
            struct kernel **kernel;
            struct program *p = kernel_parse(&a, &source, &kernel, &e) == 1
                                    ? program_bind(kernel[0], NULL, NULL, &e)
                                    : NULL;
            if (!p) {
                diags_print(&e, stderr);
                fprintf(stderr, "%s\n", source.text);
            }
            assert_non_null(p);
            void **data = make_data(p, &r), **want = make_data(p, &r);
            for (int x = 0; x < p->nbuffers; x++)
                if (data[x])
                    memcpy(want[x], data[x],
                           (size_t)p->buffer[x].elements * type_size(p->buffer[x].type));
            assert_true(program_run(p, want, NULL, NULL, &e));
            const struct approach *approach = approaches[seed % 3 == 0 ? 0 : 1];
            const char *wrong = try_one(p, b, approach, seed, want, data, &e);
            tried++;
            if (wrong) {
                failed++;
                fprintf(stderr, "seed %llu on %s (%s): %s\n", (unsigned long long)seed, b->name,
                        approach->name, wrong);
                diags_print(&e, stderr);
                if (failed <= 3) fprintf(stderr, "%s\n", source.text);
            }
            free_data(p, want);
            free_data(p, data);
            program_free(p);
            diags_free(&e);
            arena_free(&a);
        }
    }
    for (int k = 0; k < 4; k++) machine_free(benches[k].machine);
    diags_free(&d);
    fprintf(stderr, "%d compilations, %d wrong\n", tried, failed);
    assert_true(tried >= n);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
