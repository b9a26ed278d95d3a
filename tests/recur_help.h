/* Recurrences compiled, executed in every way, and compared with the interpreter. */
#ifndef ISAMAP_TESTS_RECUR_HELP_H
#define ISAMAP_TESTS_RECUR_HELP_H

#include "approaches/approaches.h"
#include "backends/backend.h"
#include "ir/interp.h"
#include "mapper/mapper.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- programs ---- */
static inline uint32_t pick(uint64_t *s, uint32_t n) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33) % n;
}

static inline struct program *parse_as(struct arena *a, const char *text, const struct binding *b,
                                       int n, bool sizes, struct diags *d) {
    struct source *source = arena_alloc(a, sizeof *source);
    struct kernel **kernel;
    struct bindings given = {b, n, NULL};
    *source = (struct source){"recur.isam", text, strlen(text), 1, 1};
    struct program *p =
        kernel_parse(a, source, &kernel, d) > 0
            ? (sizes ? program_bind_sizes : program_bind)(kernel[0], &given, NULL, d)
            : NULL;
    if (!p || !program_verify(p, d)) {
        diags_print(d, stderr);
        fprintf(stderr, "%s", text);
    }
    assert_non_null(p);
    return p;
}

static inline struct program *parse(struct arena *a, const char *text, const struct binding *b,
                                    int n, struct diags *d) {
    return parse_as(a, text, b, n, false, d);
}

static inline char *read_example(struct arena *a, const char *path) {
    struct diags d;
    size_t length;
    diags_init(&d);
    char *text = file_read(a, path, 1 << 20, &length, &d);
    assert_non_null(text);
    diags_free(&d);
    return text;
}

/* ---- data ---- */
static inline void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP || x->role == ROLE_STATE) continue;
        data[b] = calloc((size_t)x->elements + 1, type_size(x->type));
        for (int64_t e = 0; e < x->elements; e++) {
            union value v;
            int n = (int)pick(&seed, 256) - 128;
            if (type_is_float(x->type))
                v.f = n / 1024.0;
            else
                v.i = x->role == ROLE_OUT ? 0x5a : n;
            type_store(x->type, (char *)data[b] + (size_t)e * type_size(x->type), v);
        }
    }
    return data;
}

static inline void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static inline bool same_outputs(const struct program *p, void **want, void **got) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        for (int64_t e = 0; x->role == ROLE_OUT && e < x->elements; e++) {
            size_t at = (size_t)e * type_size(x->type);
            union value w = type_load(x->type, (char *)want[b] + at),
                        g = type_load(x->type, (char *)got[b] + at);
            if (type_is_float(x->type) ? !(fabs(w.f - g.f) <= 1e-4) : w.i != g.i) return false;
        }
    }
    return true;
}

static inline void **rebind(const struct program *from, const struct program *to, void **data) {
    void **out = calloc((size_t)to->nbuffers + 1, sizeof *out);
    for (int b = 0; b < to->nbuffers; b++) {
        enum role role = to->buffer[b].role;
        int f =
            role == ROLE_TEMP || role == ROLE_STATE ? -1 : program_buffer(from, to->buffer[b].name);
        if (f >= 0) out[b] = data[f];
    }
    return out;
}

/* ---- one compilation ---- */
static inline struct schedule *schedule_of(const struct program *p, const struct machine *m,
                                           const struct approach *a, uint64_t seed,
                                           struct diags *d) {
    struct decider *decider = decider_open(a, seed);
    struct cover *cover = mapper_cover(p, m, decider, d);
    struct schedule *s =
        cover && cover_verify(cover, m, d) ? scheduler_run(cover, m, decider, NULL, d) : NULL;
    cover_free(cover);
    decider_close(decider);
    return s;
}

static inline struct schedule *compile(const struct program *p, const struct machine *m,
                                       const struct approach *a, uint64_t seed, struct diags *d) {
    struct schedule *s = schedule_of(p, m, a, seed, d);
    if (s && !schedule_verify(s, &(struct verify_options){.trips = 0}, d)) {
        schedule_free(s);
        s = NULL;
    }
    return s;
}

static inline bool prints_back(const struct schedule *s, struct diags *d) {
    struct text one = {0}, two = {0};
    schedule_print(s, &one);
    struct source source = {"printed", one.at, one.n, 1, 1};
    struct schedule *again = schedule_parse(s->machine, &source, d);
    if (again) schedule_print(again, &two);
    bool same = again && strcmp(one.at, two.at) == 0 &&
                schedule_verify(again, &(struct verify_options){.trips = 0}, d);
    schedule_free(again);
    text_free(&one);
    text_free(&two);
    return same;
}

static const char *try_all(const struct program *p, const struct schedule *s, bool run,
                           struct diags *d) {
    void **want = make_data(p, 3), **got = make_data(p, 3), **bound = rebind(p, s->program, got);
    struct sim_result result = {0};
    const char *wrong = program_run(p, want, NULL, NULL, d) ? NULL : "the interpreter fails";
    if (!wrong && !sim_run(s, bound, &(struct sim_options){0}, &result, d))
        wrong = "the simulator fails";
    if (!wrong && !same_outputs(p, want, got)) wrong = "simulated values differ";
    sim_result_free(&result);
    for (int k = 0; run && !wrong && backends[k]; k++) {
        if (!backends[k]->accepts(s)) continue;
        free_data(p, got);
        free(bound);
        got = make_data(p, 3);
        bound = rebind(p, s->program, got);
        struct executable *e = backends[k]->load(s, &(struct backend_options){0}, d);
        if (!e || !executable_prepare(e, bound, d) || !executable_run(e, bound, 1, d))
            wrong = "a backend fails";
        else if (!same_outputs(p, want, got))
            wrong = backends[k]->name;
        if (e) executable_free(e);
    }
    free_data(p, want);
    free_data(p, got);
    free(bound);
    return wrong;
}

struct machines {
    struct machine *at[3];
    bool run[3], integer[3];
    int n;
};

static inline struct machines load_machines(void) {
    struct diags d;
    struct machines m = {.n = 3};
    diags_init(&d);
    m.at[0] = machine_load("machines/cpu-avx2.xml", NULL, &d);
    m.at[1] = machine_load("machines/cpu-scalar.xml", NULL, &d);
    m.at[2] = machine_join("machines/edge16.xml", "machines/cpu-avx2.xml", NULL, &d);
    diags_print(&d, stderr);
    for (int k = 0; k < 3; k++) assert_non_null(m.at[k]);
    m.run[0] = machine_runs_here(m.at[0], &d);
    m.run[1] = true;
    m.integer[2] = true;
    diags_free(&d);
    return m;
}

static inline void free_machines(struct machines *m) {
    for (int k = 0; k < m->n; k++) machine_free(m->at[k]);
}

static inline int failures(const char *text, const struct machines *m, int k, uint64_t seed) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    const struct approach *approach = approaches[seed % 2];
    struct schedule *s = compile(p, m->at[k], approach, seed, &d);
    const char *wrong = s ? try_all(p, s, m->run[k], &d) : "no schedule";
    if (!wrong && !prints_back(s, &d)) wrong = "printed and read it differs";
    if (wrong) {
        fprintf(stderr, "seed %llu on %s: %s\n", (unsigned long long)seed, m->at[k]->name, wrong);
        diags_print(&d, stderr);
        fprintf(stderr, "%s\n", text);
    }
    schedule_free(s);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
    return wrong != NULL;
}

#endif
