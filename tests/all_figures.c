/* Prices, decisions, schedules, cycles and what is written for devices, of small programs on many
 * machines, as a line each: readable figures, and hashes of all that was said. Kept in
 * tests/data/golden/all_figures.txt. A change of the planner changes lines: look whether the cycles
 * got better, then rewrite the file (ISAMAP_UPDATE=1). ISAMAP_FIGURES=FOLDER keeps the texts that
 * are hashed, to compare two builds. */
#include "isamap.h"
#include "tests/golden.h"

#include <sys/stat.h>
#include <unistd.h>

struct figures {
    const char *machine, *program, *sizes, *suffix; /* suffix: of what else is written, or NULL */
};

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

static const char *folder; /* for files */

/* A line about times or about the folder says nothing. */
static void append_clean(struct text *t, const char *from) {
    for (const char *at = from; *at;) {
        size_t n = strcspn(at, "\n") + 1;
        struct text line = {0};
        if (!at[n - 1]) n--;
        text_append(&line, at, n);
        if (!strstr(line.at, "seconds") && !strstr(line.at, folder)) text_append(t, line.at, n);
        text_free(&line);
        at += n;
    }
}

static const char *path_of(struct arena *a, const char *suffix) {
    return arena_printf(a, "%s/x%s", folder, suffix);
}

static void append_file(struct arena *a, struct text *t, const char *path) {
    struct diags d;
    size_t n;
    diags_init(&d);
    const char *text = access(path, R_OK) == 0 ? file_read(a, path, 1 << 26, &n, &d) : NULL;
    for (size_t k = 0; text && k < n; k++) text_printf(t, text[k] ? "%c" : "\\0", text[k]);
    text_printf(t, "\n");
    diags_free(&d);
}

static void option(isamap *im, const char *name, const char *value) {
    if (isamap_option(im, name, value) != ISAMAP_DONE) fail_msg("%s", isamap_messages(im));
}

/* Keeps the text under its name, where that is asked for; returns its hash and frees it. */
static uint32_t hashed(struct arena *a, const char *name, const char *what, struct text *t) {
    const char *keep = getenv("ISAMAP_FIGURES");
    uint32_t hash = golden_hash(GOLDEN_HASH, t->at ? t->at : "");
    if (keep) {
        char *path = arena_printf(a, "%s.%s", name, what);
        for (char *c = path; *c; c++)
            if (*c == '/' || *c == ' ') *c = '_';
        FILE *f = fopen(arena_printf(a, "%s/%s", keep, path), "w");
        assert_non_null(f);
        fputs(t->at ? t->at : "", f);
        fclose(f);
    }
    text_free(t);
    return hash;
}

static void options(isamap *im, struct arena *a, const struct figures *f) {
    isamap_reset(im);
    option(im, "machine", f->machine);
    char *sizes = arena_strdup(a, f->sizes);
    for (char *s = strtok(sizes, " "); s; s = strtok(NULL, " ")) option(im, "define", s);
}

/* What maps, and why the rest does not. */
static void map(isamap *im, struct arena *a, const struct figures *f, const char *name,
                struct text *line) {
    struct text said = {0};
    options(im, a, f);
    option(im, "json", NULL);
    option(im, "why", NULL);
    int status = isamap_map(im, f->program);
    append_clean(&said, isamap_result(im));
    append_clean(&said, isamap_messages(im));
    text_printf(line, " map %d %08x", status, hashed(a, name, "map", &said));
}

/* What the compiler says and decides, and what the simulator finds. */
static int simulate(isamap *im, struct arena *a, const struct figures *f, const char *name,
                    struct text *line) {
    struct text said = {0}, result = {0}, decisions = {0};
    options(im, a, f);
    option(im, "json", NULL);
    option(im, "no-values", NULL);
    option(im, "explain", NULL);
    option(im, "record", path_of(a, ".kept"));
    int status = isamap_sim(im, f->program);
    append_clean(&said, isamap_messages(im));
    append_clean(&result, isamap_result(im));
    append_file(a, &decisions, path_of(a, ".kept"));
    text_printf(line, ", sim %d: %.6g cycles", status, isamap_number(im, "cycles"));
    if (isamap_number(im, "host_cycles") > 0)
        text_printf(line, " and %.6g of the host", isamap_number(im, "host_cycles"));
    text_printf(line, ", said %08x, decided %08x, found %08x", hashed(a, name, "said", &said),
                hashed(a, name, "decisions", &decisions), hashed(a, name, "sim", &result));
    return status;
}

/* What is written, by the same decisions. */
static void written(isamap *im, struct arena *a, const struct figures *f, const char *suffix,
                    const char *name, struct text *line) {
    struct text out = {0};
    options(im, a, f);
    option(im, "decisions", path_of(a, ".kept"));
    int status = isamap_compile(im, f->program, path_of(a, suffix));
    append_file(a, &out, path_of(a, suffix));
    text_printf(line, ", %s %d %08x", suffix, status, hashed(a, name, suffix, &out));
}

static void one(isamap *im, struct arena *a, const struct figures *f, struct text *line) {
    const char *name = arena_printf(a, "%s %s %s", f->machine, f->program, f->sizes);
    text_printf(line, "%s:", name);
    map(im, a, f, name, line);
    if (simulate(im, a, f, name, line) == ISAMAP_DONE) {
        written(im, a, f, ".sched", name, line);
        if (f->suffix) written(im, a, f, f->suffix, name, line);
    }
    unlink(path_of(a, ".sched"));
    unlink(path_of(a, f->suffix ? f->suffix : ".sched"));
    unlink(path_of(a, ".kept"));
    text_printf(line, "\n");
}

static void figures(void **state) {
    struct text seen = {0};
    char made[] = "/tmp/figures.XXXXXX";
    (void)state;
    setenv("ISAMAP_HOST", "cpu-avx2", 1); /* beside devices, on every computer */
    folder = mkdtemp(made);
    assert_non_null(folder);
    for (int k = 0; k < (int)(sizeof grid / sizeof *grid); k++) {
        struct arena a;
        arena_init(&a);
        isamap *im = isamap_open();
        one(im, &a, &grid[k], &seen);
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
