/* What the tests of ir/ share: a program from a file or a text, with random inputs, run by the
 * interpreter. */
#ifndef ISAMAP_TESTS_IR_SUPPORT_H
#define ISAMAP_TESTS_IR_SUPPORT_H

#include "ir/interp.h"
#include "ir/interp_int.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_BUFFERS = 64, MOST_KERNELS = 16 };

struct trial {
    struct diags diags;
    struct arena arena;
    struct source source;
    struct kernel **kernel;
    int nkernels;
    struct program *p;
    void *data[MOST_BUFFERS];
    double *before[MOST_BUFFERS]; /* the data as it was given, as doubles */
    double *after[MOST_BUFFERS];  /* after the run */
};

static inline void trial_open(struct trial *t) {
    *t = (struct trial){0};
    diags_init(&t->diags);
    arena_init(&t->arena);
}

static inline void trial_close(struct trial *t) {
    for (int b = 0; b < MOST_BUFFERS; b++) {
        free(t->data[b]);
        free(t->before[b]);
        free(t->after[b]);
    }
    program_free(t->p);
    arena_free(&t->arena);
    diags_free(&t->diags);
}

static inline void trial_parse(struct trial *t, const char *file, const char *text) {
    t->source = (struct source){file, text, strlen(text), 1, 1};
    t->nkernels = kernel_parse(&t->arena, &t->source, &t->kernel, &t->diags);
}

static inline void trial_read(struct trial *t, const char *path) {
    size_t n;
    const char *text = file_read(&t->arena, path, 1 << 20, &n, &t->diags);
    if (!text) fail_msg("cannot read %s", path);
    trial_parse(t, path, text);
}

/* sizes: "M=3 N=5" */
static inline int parse_sizes(struct arena *a, const char *sizes, struct binding *out) {
    int n = 0;
    while (*sizes) {
        size_t name = strcspn(sizes, "=");
        char *end;
        out[n].name = arena_strndup(a, sizes, name);
        out[n++].value = strtoll(sizes + name + 1, &end, 10);
        sizes = end + strspn(end, " ");
    }
    return n;
}

static inline bool trial_bind(struct trial *t, const char *sizes, const char *outer) {
    struct binding given[32], machine[32];
    struct bindings g = {given, parse_sizes(&t->arena, sizes, given), NULL};
    struct bindings m = {machine, parse_sizes(&t->arena, outer, machine), NULL};
    t->p = t->nkernels > 0 ? program_bind(t->kernel[0], &g, &m, &t->diags) : NULL;
    return t->p != NULL;
}

static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Floats are eighths in [-2, 2), so that few roundings happen; integers use the whole type up to
 * ±100. */
static inline union value random_value(enum type t, uint64_t *state) {
    union value v = {.i = 0};
    uint64_t r = next_random(state) >> 20;
    if (type_is_float(t))
        v.f = (double)((int64_t)(r % 32) - 16) / 8;
    else if (t == TYPE_BOOL)
        v.i = r & 1;
    else
        v.i = type_is_signed(t) ? (int64_t)(r % 201) - 100 : (int64_t)(r % 201);
    return v;
}

static inline double *as_doubles(const struct buffer *f, const unsigned char *data) {
    double *x = calloc((size_t)f->elements + 1, sizeof *x);
    for (int64_t k = 0; k < f->elements; k++) {
        union value v = type_load(f->type, data + (size_t)k * type_size(f->type));
        x[k] = type_is_float(f->type) ? v.f : (double)v.i;
    }
    return x;
}

static inline void trial_data(struct trial *t, uint64_t seed) {
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    for (int b = 0; b < t->p->nbuffers; b++) {
        const struct buffer *f = &t->p->buffer[b];
        size_t size = type_size(f->type);
        if (f->role == ROLE_TEMP || f->role == ROLE_STATE) continue;
        unsigned char *data = calloc((size_t)f->elements + 1, size);
        for (int64_t k = 0; k < f->elements; k++)
            type_store(f->type, data + (size_t)k * size, random_value(f->type, &state));
        t->data[b] = data;
        t->before[b] = as_doubles(f, data);
    }
}

static inline void trial_run(struct trial *t) {
    if (!program_run(t->p, t->data, NULL, NULL, &t->diags)) {
        diags_print(&t->diags, stderr);
        fail();
    }
    for (int b = 0; b < t->p->nbuffers; b++)
        if (t->data[b]) t->after[b] = as_doubles(&t->p->buffer[b], t->data[b]);
}

/* A program from a file, bound and run on random data. */
static inline void trial_file(struct trial *t, const char *path, const char *sizes,
                              const char *outer) {
    trial_open(t);
    trial_read(t, path);
    if (t->nkernels < 1 || !trial_bind(t, sizes, outer)) {
        diags_print(&t->diags, stderr);
        fail_msg("%s does not bind", path);
    }
    trial_data(t, 1);
    trial_run(t);
}

static inline void trial_text(struct trial *t, const char *text, const char *sizes) {
    trial_open(t);
    trial_parse(t, "test", text);
    if (t->nkernels < 1 || !trial_bind(t, sizes, "")) {
        diags_print(&t->diags, stderr);
        fail_msg("does not bind: %s", text);
    }
    trial_data(t, 1);
    trial_run(t);
}

static inline int buffer_of(const struct trial *t, const char *name) {
    int b = program_buffer(t->p, name);
    if (b < 0) fail_msg("no buffer %s", name);
    return b;
}

static inline const double *given(const struct trial *t, const char *name) {
    return t->before[buffer_of(t, name)];
}

static inline const double *result(const struct trial *t, const char *name) {
    return t->after[buffer_of(t, name)];
}

static inline void check_close(const struct trial *t, const char *name, const double *want,
                               double tolerance) {
    int b = buffer_of(t, name);
    for (int64_t k = 0; k < t->p->buffer[b].elements; k++) {
        double got = t->after[b][k];
        if (isnan(want[k]) && isnan(got)) continue;
        if (!(fabs(got - want[k]) <= tolerance * (1 + fabs(want[k]))) && got != want[k])
            fail_msg("%s[%lld] is %.9g, expected %.9g", name, (long long)k, got, want[k]);
    }
}

#endif
