/* Prices, decisions, schedules, cycles and what is written for devices, of small programs on many
 * machines, as a line each: readable figures, and hashes of all that was said. Kept in
 * tests/data/golden/all_figures.txt. A change of the planner changes lines: look whether the cycles
 * got better, then rewrite the file (ISAMAP_UPDATE=1). ISAMAP_FIGURES=FOLDER keeps the texts that
 * are hashed, to compare two builds. */
#include "tests/figures.h"
#include "tests/sample.h"

#define PORTS "tests/data/machines/ports/"
#define I8(name) "examples/i8/" name ".isam"
#define F32(name) "examples/f32/" name ".isam"
#define F16(name) "examples/operators/" name ".isam"

static const struct figures grid[] = {
    {"edge16", I8("gmm"), "M=45 N=37 K=53", NULL},
    {"edge16", I8("gmm"), "M=128 N=96 K=200", NULL},
    {"edge16", I8("gmm_scaled"), "M=20 N=50 K=70", NULL},
    {"edge16", I8("c2d"), "N=1 P=9 Q=11 C=20 K=24", NULL},
    {"edge16", I8("c1d"), "N=2 P=37 C=20 K=24", NULL},
    {"edge16", I8("dep"), "N=1 C=5 M=3 P=7 Q=9", NULL},
    {"edge16", I8("gmv"), "M=70 K=90", NULL},
    {"edge16", I8("residual"), "N=1 C=16 H=9 W=9", NULL},
    {"edge16", I8("dwpw"), "G=2 H=9 W=11 K=32", NULL},
    {"edge16", I8("att"), "B=1 T=32 D=16", NULL},
    {"edge16", I8("gru"), "T=5 H=24", NULL},
    {"edge16", I8("rnn"), "T=4 H=32", NULL},
    {"edge16", F32("softmax"), "M=5 N=9", NULL},
    {"vdla", I8("gmm"), "M=45 N=37 K=53", NULL},
    {"vdla", I8("c2d"), "N=1 P=9 Q=11 C=20 K=24", NULL},
    {"vdla", I8("residual"), "N=1 C=16 H=9 W=9", NULL},
    {"vdla", I8("dep"), "N=1 C=5 M=3 P=7 Q=9", NULL},
    {"vdla", I8("lstm"), "T=4 H=16", NULL},
    {"gemmini", I8("gmm"), "M=48 N=32 K=64", ".bin"},
    {"gemmini", I8("gmm"), "M=45 N=37 K=53", NULL},
    {"gemmini", I8("c2d"), "N=1 P=6 Q=5 C=20 K=24", NULL},
    {"gemmini", I8("gmm_scaled"), "M=20 N=50 K=70", NULL},
    {"dot4", I8("gmm"), "M=13 N=10 K=22", NULL},
    {"cpu-scalar", F32("c2d"), "N=1 P=4 Q=5 C=3 K=4", ".c"},
    {"cpu-avx2", F32("gmm"), "M=37 N=45 K=29", NULL},
    {"cpu-avx2", F32("c2d"), "N=1 P=9 Q=11 C=5 K=20", NULL},
    {"cpu-avx2", F32("dep"), "N=1 C=5 M=3 P=7 Q=9", NULL},
    {"cpu-avx2", F32("softmax"), "M=10 N=50", NULL},
    {"cpu-avx2", F32("layernorm"), "M=10 N=50", NULL},
    {"cpu-avx2", F32("att"), "B=1 T=20 D=16", NULL},
    {"cpu-avx2", F32("rnn"), "T=6 H=24", NULL},
    {"cpu-avx2", F32("gated"), "T=9 D=24 F=40", NULL},
    {"cpu-avx2", "tests/data/copies.isam", "", NULL},
    {"cpu-avx512", F32("gmm"), "M=64 N=100 K=33", NULL},
    {"cpu-avx512", F32("mobilenet"), "C=5 K=20 H=9 W=9 M=8", NULL},
    {"cpu-avx512", F32("gru"), "T=3 H=20", NULL},
    {"cpu-avxvnni", I8("gmm"), "M=20 N=30 K=40", NULL},
    {"cpu-amx", "examples/bf16/gmm.isam", "M=40 N=30 K=50", NULL},
    {"mma", F16("gmm"), "M=40 N=30 K=50", NULL},
    {"sm90", F16("gmm"), "M=128 N=128 K=96", NULL},
    {"gpu-sm80", F16("gmm"), "M=128 N=64 K=96", ".cu"},
    {"gpu-sm90", F16("gmm"), "M=128 N=128 K=128", ".cu"},
    {"gpu-sm80", F16("softmax"), "M=8 N=100", ".cu"},
    {PORTS "tpu1.xml", I8("c1d"), "N=2 C=10 K=12 P=20", NULL},
    {PORTS "u573.xml", I8("gmm"), "M=35 N=37 K=36", NULL},
    {PORTS "flags.xml", I8("gmm"), "M=35 N=37 K=36", NULL},
    {PORTS "wren.xml", I8("gmm"), "M=70 N=88 K=136", NULL},
    {PORTS "finch.xml", I8("rnn"), "T=4 H=32", NULL},
    {PORTS "cube.xml", I8("gmm"), "M=48 N=48 K=64", NULL},
    {PORTS "ruff.xml", I8("c2d"), "N=1 C=10 K=4 P=5 Q=20", NULL},
    {PORTS "vliw.xml", I8("gmm"), "M=20 N=24 K=36", NULL},
    {PORTS "weft.xml", I8("c2d"), "N=1 C=20 K=24 P=5 Q=6", NULL},
    {PORTS "stork.xml", I8("gmm"), "M=9 N=17 K=130", NULL},
    {PORTS "avocet.xml", I8("c1d"), "N=2 C=10 K=12 P=20", NULL},
    {PORTS "mole.xml", I8("residual"), "N=1 C=16 H=9 W=9", NULL},
    {PORTS "mole.xml", I8("c1d"), "N=4", NULL},
    {PORTS "merlin.xml", I8("gmm"), "M=128 N=64 K=512", NULL},
    {PORTS "heron.xml", I8("gmm"), "M=20 N=24 K=36", NULL},
    {PORTS "nibble.xml", I8("gmm"), "M=20 N=24 K=36", NULL},
};

static void figures(void **state) {
    struct text seen = {0};
    char made[] = "/tmp/figures.XXXXXX";
    (void)state;
    setenv("ISAMAP_HOST", "cpu-avx2", 1); /* beside devices, on every computer */
    folder = mkdtemp(made);
    assert_non_null(folder);
    for (int k = 0; k < (int)(sizeof grid / sizeof *grid); k++) {
        if (!sampled((size_t)k)) continue;
        struct arena a;
        arena_init(&a);
        isamap *im = isamap_open();
        const struct figures *f = &grid[k];
        const char *name = arena_printf(&a, "%s %s %s", f->machine, f->program, f->sizes);
        text_printf(&seen, "%s:", name);
        figures_line(im, &a, f, name, &seen);
        isamap_close(im);
        arena_free(&a);
    }
    rmdir(folder);
    golden_check("all_figures", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(figures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
