/* What is decided about random programs on all machine files, as a line each (tests/figures.h):
 * tests/data/golden/all_drawn.txt. Programs that somebody chose have figures in all_figures; these
 * meet rewrites, layouts, copies, refusals and warnings that nobody thought of. Right values are
 * not looked at here: see all_random. A change that is meant changes lines; ISAMAP_UPDATE=1 writes
 * them anew. ISAMAP_DRAWN=FOLDER keeps the programs. */
#include "tests/figures.h"
#include "tests/random/trial.h"

#include <glob.h>

enum { PER_MACHINE = 2 };

/* Of the machine in the file: what its products have as types, so that they map, and what is
 * written for it beside the schedule. */
static const char *look_at(const char *file, struct bench *b) {
    struct diags d;
    diags_init(&d);
    struct machine *m = b->machine = machine_load(file, NULL, &d);
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    const char *suffix = machine_needs_host(m) ? NULL : ".c";
    for (int i = 0; i < m->ninstrs; i++)
        suffix = instr_emit(&m->instr[i], LANGUAGE_BITS)   ? ".bin"
                 : instr_emit(&m->instr[i], LANGUAGE_CUDA) ? ".cu"
                                                           : suffix;
    bench_types(b);
    machine_free(m);
    diags_free(&d);
    return suffix;
}

static uint32_t draw(const struct bench *b, uint64_t seed, const char *path) {
    struct tape tape = {.s = seed * 7919 + 13};
    struct random_info info;
    char *text = random_program(&tape, &b->native, &info);
    uint32_t hash = golden_hash(GOLDEN_HASH, text);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(text);
    return hash;
}

static void pair(const char *file, const char *suffix, const struct bench *b, int seed,
                 struct text *seen) {
    struct arena a;
    arena_init(&a);
    isamap *im = isamap_open();
    struct figures f = {file, path_of(&a, ".isam"), "", suffix};
    const char *name = arena_printf(&a, "%s %d", file, seed);
    text_printf(seen, "%s, program %08x:", name, draw(b, (uint64_t)seed, f.program));
    figures_line(im, &a, &f, name, seen);
    unlink(f.program);
    isamap_close(im);
    arena_free(&a);
}

static void drawn(void **state) {
    struct text seen = {0};
    char made[] = "/tmp/figures.XXXXXX";
    glob_t files;
    (void)state;
    setenv("ISAMAP_HOST", "cpu-avx2", 1); /* beside devices, on every computer */
    folder = mkdtemp(made);
    assert_non_null(folder);
    glob("machines/*.xml", 0, NULL, &files);
    glob("tests/data/machines/*.xml", GLOB_APPEND, NULL, &files);
    glob("tests/data/machines/ports/*.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc; k++) {
        struct bench b = {0};
        const char *suffix = look_at(files.gl_pathv[k], &b);
        for (int n = 1; n <= PER_MACHINE; n++)
            pair(files.gl_pathv[k], suffix, &b, (int)k * PER_MACHINE + n, &seen);
    }
    globfree(&files);
    rmdir(folder);
    golden_check("all_drawn", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
