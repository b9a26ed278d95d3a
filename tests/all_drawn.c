/* What is decided about random programs on all machine files, as a line each (tests/figures.h):
 * tests/data/golden/all_drawn.txt. Programs that somebody chose have figures in all_figures; these
 * meet rewrites, layouts, copies, refusals and warnings that nobody thought of. Right values are
 * not looked at here: see all_random. A change that is meant changes lines; ISAMAP_UPDATE=1 writes
 * them anew. ISAMAP_DRAWN=FOLDER keeps the programs. */
#include "tests/drawn.h"
#include "tests/figures.h"
#include "tests/sample.h"

enum { PER_MACHINE = 2 };

/* What is written beside the schedule, or NULL. */
static const char *suffix_of(const struct machine *m) {
    const char *suffix = machine_needs_host(m) ? NULL : ".c";
    for (int i = 0; i < m->ninstrs; i++)
        suffix = instr_emit(&m->instr[i], LANGUAGE_BITS)   ? ".bin"
                 : instr_emit(&m->instr[i], LANGUAGE_CUDA) ? ".cu"
                                                           : suffix;
    return suffix;
}

static void pair(const char *file, struct machine *m, int seed, struct text *seen) {
    struct arena a;
    arena_init(&a);
    isamap *im = isamap_open();
    char *program = drawn_program(m, seed);
    struct figures f = {file, path_of(&a, ".isam"), "", suffix_of(m)};
    const char *name = arena_printf(&a, "%s %d", file, seed);
    FILE *out = fopen(f.program, "w");
    assert_non_null(out);
    fputs(program, out);
    fclose(out);
    text_printf(seen, "%s, program %08x:", name, golden_hash(GOLDEN_HASH, program));
    figures_line(im, &a, &f, name, seen);
    unlink(f.program);
    free(program);
    isamap_close(im);
    arena_free(&a);
}

/* Programs are drawn by the file's name, so another file changes no other one's. */
static void machine_figures(void *seen, const char *file, int number) {
    struct machine *m = drawn_machine(file, NULL);
    int first = (int)(golden_hash(GOLDEN_HASH, file) % 100000) * PER_MACHINE;
    for (int k = 1; k <= PER_MACHINE; k++)
        if (sampled((size_t)(number * PER_MACHINE + k))) pair(file, m, first + k, seen);
    machine_free(m);
}

static void drawn(void **state) {
    struct text seen = {0};
    char made[] = "/tmp/figures.XXXXXX";
    (void)state;
    setenv("ISAMAP_HOST", "cpu-avx2", 1); /* beside devices, on every computer */
    folder = mkdtemp(made);
    assert_non_null(folder);
    drawn_machines(machine_figures, &seen);
    rmdir(folder);
    golden_check("all_drawn", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
