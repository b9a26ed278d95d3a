#include "tests/random/trial.h"

#include "ir/diag.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_types(struct bench *b) {
    const struct machine *m = b->machine;
    struct schemes *out = &b->native;
    for (int i = 0; i < m->ninstrs && out->n < 16; i++) {
        const struct instr *in = &m->instr[i];
        enum type type[2], sum = TYPE_COUNT;
        int reads = 0;
        bool known = false;
        for (int o = 0; o < in->noperands; o++) {
            if (in->operand[o].role == ROLE_IN && reads < 2) type[reads++] = in->operand[o].type;
            if (in->operand[o].role == ROLE_INOUT) sum = in->operand[o].type;
        }
        if (in->is_move || reads < 2 || sum == TYPE_COUNT) continue;
        for (int k = 0; k < out->n; k++)
            known |= out->at[k].a == type[0] && out->at[k].b == type[1] && out->at[k].sum == sum;
        if (!known) out->at[out->n++] = (struct scheme){type[0], type[1], sum};
    }
}

/* A board's device is not here, whatever its host has. */
static bool runs_here(const struct machine *m) {
    struct diags d;
    diags_init(&d);
    bool runs = machine_runs_here(m, &d);
    for (int i = 0; i < m->ninstrs; i++)
        runs &= !instr_emit(&m->instr[i], LANGUAGE_BITS) ||
                instr_emit(&m->instr[i], LANGUAGE_LLVM) || instr_emit(&m->instr[i], LANGUAGE_C);
    diags_free(&d);
    return runs;
}

static struct machine *checked(struct machine *m, struct diags *d) {
    if (!m) {
        diags_print(d, stderr);
        abort();
    }
    diags_free(d);
    return m;
}

static void add_bench(struct bench *b, int *n, const char *file, const char *host,
                      const char *only) {
    bool plain = !host || !strcmp(host, "cpu-scalar"), shipped = strstr(file, "tests/data") == NULL;
    struct bench x = {0};
    struct diags d;
    snprintf(x.file, sizeof x.file, "%s%s%s", file + strlen(SOURCE_DIR) + 1, plain ? "" : "+",
             plain ? "" : host);
    if (only && !strstr(x.file, only)) return;
    if (*n == BENCHES) {
        fprintf(stderr, "%s: more machines than %d\n", x.file, BENCHES);
        abort(); /* none is left out in silence */
    }
    diags_init(&d);
    x.machine =
        checked(host ? machine_join(file, host, NULL, &d) : machine_load(file, NULL, &d), &d);
    x.shipped = shipped || strstr(file, "/ports/");
    x.run = shipped && !host && runs_here(x.machine);
    bench_types(&x);
    b[(*n)++] = x;
}

static bool is_device(const char *file) {
    struct diags d;
    diags_init(&d);
    struct machine *m = checked(machine_load(file, NULL, &d), &d);
    bool device = machine_needs_host(m);
    machine_free(m);
    return device;
}

int benches_load(struct bench *b, const char *only) {
    glob_t files;
    int n = 0;
    glob(SOURCE_DIR "/machines/*.xml", 0, NULL, &files);
    glob(SOURCE_DIR "/tests/data/machines/*.xml", GLOB_APPEND, NULL, &files);
    glob(SOURCE_DIR "/tests/data/machines/*/*.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc; k++) {
        const char *file = files.gl_pathv[k];
        bool device = is_device(file);
        add_bench(b, &n, file, device ? "cpu-scalar" : NULL, only);
        if (device) add_bench(b, &n, file, "cpu-avx2", only);
        if (device && !strstr(file, "tests/data")) add_bench(b, &n, file, "cpu-avx512", only);
    }
    globfree(&files);
    return n;
}

void benches_free(struct bench *b, int n) {
    for (int k = 0; k < n; k++) machine_free(b[k].machine);
}
