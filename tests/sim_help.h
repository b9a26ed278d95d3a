/* What the simulator's tests share: random arguments, and the interpreter's answer beside the
 * simulator's. */
#ifndef ISAMAP_TESTS_SIM_HELP_H
#define ISAMAP_TESTS_SIM_HELP_H

#include "ir/interp.h"
#include "sim/sim.h"
#include "tests/scheduler_help.h"

#include <stdlib.h>

static inline size_t sim_bytes(const struct buffer *b) {
    return (size_t)b->elements * type_size(b->type);
}

/* Small integers, exact in any order of summation. */
static inline void **sim_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role != ROLE_IN && x->role != ROLE_OUT && x->role != ROLE_INOUT &&
            x->role != ROLE_CONST)
            continue;
        data[b] = malloc(sim_bytes(x) + 1);
        memset(data[b], 0x5a, sim_bytes(x) + 1);
        for (int64_t k = 0; k < x->elements; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            union value v = {.i = (int64_t)(seed >> 33) % 15 - 7};
            v = type_convert(x->type, TYPE_I64, v);
            type_store(x->type, (char *)data[b] + (size_t)k * type_size(x->type), v);
        }
    }
    return data;
}

static inline void sim_data_free(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

/* Elements of outputs that differ. */
static inline int64_t sim_differ(const struct program *p, void **x, void **y) {
    int64_t bad = 0;
    for (int b = 0; b < p->nbuffers; b++) {
        size_t size = type_size(p->buffer[b].type);
        if (p->buffer[b].role != ROLE_OUT && p->buffer[b].role != ROLE_INOUT) continue;
        for (int64_t k = 0; k < p->buffer[b].elements; k++)
            bad +=
                memcmp((char *)x[b] + (size_t)k * size, (char *)y[b] + (size_t)k * size, size) != 0;
    }
    return bad;
}

/* Runs the schedule on random data and compares with the program's own run. */
static inline void sim_check_values(const struct schedule *s, const char *name) {
    struct diags d;
    struct sim_result r;
    struct sim_options options = {0};
    diags_init(&d);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        void **x = sim_data(s->program, seed), **y = sim_data(s->program, seed);
        bool ok = program_run(s->program, x, NULL, NULL, &d) && sim_run(s, y, &options, &r, &d);
        diags_print(&d, stderr);
        assert_true(ok);
        int64_t bad = sim_differ(s->program, x, y);
        if (bad) fail_msg("%s: %lld elements differ from the interpreter's", name, (long long)bad);
        sim_result_free(&r);
        sim_data_free(s->program, x);
        sim_data_free(s->program, y);
    }
    diags_free(&d);
}

#endif
