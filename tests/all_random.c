/* Random small programs × every machine file, as `isamap run` and `isamap sim` would do them: most
 * with default options, some with other approaches (tests/random/). Schedules and covers are
 * verified, every machine is simulated, code is executed where the machine is this CPU, values are
 * the interpreter's: bit by bit where nothing rounds. A crash or a hang is a failure like others; a
 * failing program is made smaller before it is printed. Any file in machines/ takes part; so do
 * those of tests/data/machines.
 *
 * Programs that once failed are in tests/data/found: the first line of each names the machine, the
 * seed (which chooses options and data) and what was wrong.
 *
 * Then the machine files are varied: depths, sizes, alignments and times are others.
 *
 * ISAMAP_RANDOM=N sets how many programs (default: some seconds' worth), ISAMAP_VARIED=N how many
 * varied machines, ISAMAP_SEED the first seed, ISAMAP_MACHINE=NAME the only machine,
 * ISAMAP_OPTIONS='--approach random' the options of all, ISAMAP_FOUND=FOLDER gets a file of each
 * failing program, ISAMAP_REFUSED prints what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/diag.h"
#include "tests/random/trial.h"
#include "tests/random_machine.h"
#include "tests/sample.h"

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

enum { PER_PROGRAM = 4, BATCH = 64, SMALLER = 8, TRIES = 500 };

struct tally {
    int outcome[OUTCOME_COUNT], unproved, tried, by_class[CLASS_COUNT], by_type[TYPE_COUNT],
        standard, failures;
    double slowest;
};

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *s = getenv(variable);
    return s ? strtoull(s, NULL, 0) : otherwise;
}

/* ---- what failed ---- */
static void print_failure(const struct trial *t, FILE *to) {
    struct random_info info;
    char *text = trial_program(t, &info);
    const char *options = trial_options(t->seed);
    fprintf(to, "# %s %llu: %s: %s\n# options:%s%s; %s\n%s", t->bench->file,
            (unsigned long long)t->seed, outcome_name[t->outcome], t->reason,
            *options ? " " : " none", options, info.exact ? "exact" : "rounds", text);
    free(text);
}

static void save_failure(const struct trial *t) {
    const char *folder = getenv("ISAMAP_FOUND"), *name = strrchr(t->bench->file, '/');
    char path[300];
    if (!folder) return;
    snprintf(path, sizeof path, "%s/%d-%llu-%s.isam", folder, (int)t->outcome,
             (unsigned long long)t->seed, name ? name + 1 : t->bench->file);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    print_failure(t, f);
    fclose(f);
}

static void fails(struct trial *t, struct tally *all, const char *varied) {
    if (all->failures++ < SMALLER || getenv("ISAMAP_FOUND")) trial_shrink(t, TRIES);
    if (all->failures <= SMALLER || getenv("ISAMAP_FOUND")) print_failure(t, stderr);
    if (all->failures <= SMALLER) fprintf(stderr, "%s", t->messages ? t->messages : "");
    if (varied) fprintf(stderr, "on a varied machine:%s\n", varied);
    if (!varied) save_failure(t);
}

static void count(struct trial *t, struct tally *one, struct tally *all, const char *varied) {
    struct tally *both[2] = {one, all};
    for (int k = 0; k < 2; k++) {
        both[k]->tried++;
        both[k]->outcome[t->outcome]++;
        both[k]->unproved += t->unproved;
        both[k]->standard += !*trial_options(t->seed);
        if (t->seconds > both[k]->slowest) both[k]->slowest = t->seconds;
    }
    for (int c = 0; c < CLASS_COUNT; c++) all->by_class[c] += t->info.classes >> c & 1;
    for (int c = 0; c < TYPE_COUNT; c++) all->by_type[c] += t->info.types >> c & 1;
    if (t->outcome == OUTCOME_REFUSED && getenv("ISAMAP_REFUSED"))
        fprintf(stderr, "seed %llu on %s: refused: %s\n", (unsigned long long)t->seed,
                t->bench->file, t->reason);
    if (t->unproved && getenv("ISAMAP_REFUSED"))
        fprintf(stderr, "seed %llu on %s: unproved\n", (unsigned long long)t->seed, t->bench->file);
    if (outcome_fails(t->outcome)) fails(t, all, varied);
    free(t->messages);
    t->messages = NULL;
}

static void print_tally(const struct tally *t) {
    for (int c = 0; c < CLASS_COUNT; c++)
        fprintf(stderr, "%7d %s\n", t->by_class[c], class_name[c]);
    for (int c = 0; c < TYPE_COUNT; c++)
        fprintf(stderr, "%7d with %s\n", t->by_type[c], type_name((enum type)c));
    fprintf(stderr, "%d programs on machines, %d with default options\n", t->tried, t->standard);
    for (int o = 0; o < OUTCOME_COUNT; o++)
        fprintf(stderr, "%7d %s\n", t->outcome[o], outcome_name[o]);
    fprintf(stderr, "%7d unproved\n", t->unproved);
}

/* Half of the programs go to machines as they are shipped, half to any. */
static const struct bench *bench_of(const struct bench *b, int n, uint64_t seed, uint64_t turn) {
    uint64_t shipped = 0;
    for (int k = 0; k < n; k++) shipped += b[k].shipped;
    if (turn % 2 || !shipped) return &b[(seed * PER_PROGRAM + turn) % (uint64_t)n];
    uint64_t which = (seed * (PER_PROGRAM / 2) + turn / 2) % shipped;
    for (int k = 0;; k++)
        if (b[k].shipped && which-- == 0) return &b[k];
}

/* ---- the tests ---- */
static void random_programs(void **state) {
    (void)state;
    struct bench *bench = calloc(BENCHES, sizeof *bench);
    struct tally *one = calloc(BENCHES, sizeof *one), all = {0};
    struct trial *batch = calloc(BATCH, sizeof *batch);
    int nbenches = benches_load(bench, getenv("ISAMAP_MACHINE"));
    uint64_t n = number_of("ISAMAP_RANDOM", 60), first = number_of("ISAMAP_SEED", 1);
    uint64_t trials = n * (uint64_t)(nbenches < PER_PROGRAM ? nbenches : PER_PROGRAM),
             per = n ? trials / n : 1;
    assert_true(nbenches > 0);
    for (uint64_t k = 0; k < trials; k += BATCH) {
        int m = (int)(trials - k < BATCH ? trials - k : BATCH);
        for (int i = 0; i < m; i++) {
            uint64_t seed = first + (k + (uint64_t)i) / per, turn = (k + (uint64_t)i) % per;
            batch[i] = (struct trial){.seed = seed, .tape = {.s = seed * 7919 + 13}};
            batch[i].bench = bench_of(bench, nbenches, seed, turn);
        }
        trials_run(batch, m);
        for (int i = 0; i < m; i++) count(&batch[i], &one[batch[i].bench - bench], &all, NULL);
    }
    for (int k = 0; k < nbenches; k++)
        fprintf(stderr,
                "%-44s %5d programs, %5d mapped, %5d refused, %4d unproved, %3d failed; slowest "
                "compilation %.3f s%s\n",
                bench[k].file, one[k].tried, one[k].outcome[OUTCOME_MAPPED],
                one[k].outcome[OUTCOME_REFUSED], one[k].unproved,
                one[k].tried - one[k].outcome[OUTCOME_MAPPED] - one[k].outcome[OUTCOME_FALLBACK] -
                    one[k].outcome[OUTCOME_REFUSED],
                one[k].slowest, bench[k].run ? "; executed" : "");
    print_tally(&all);
    benches_free(bench, nbenches);
    free(bench);
    free(one);
    free(batch);
    assert_true((uint64_t)all.tried == trials);
    assert_int_equal(all.failures, 0);
}

/* ---- machines that are not there ---- */

/* The file, varied, under another name; NULL: the checker refuses it, with a message. *what says
 * how it was varied; from the heap. */
static struct machine *varied(const char *file, uint64_t seed, struct text *what) {
    char path[] = "/tmp/isamap-machine-XXXXXX";
    struct tape tape = {.s = seed * 7919 + 13};
    struct arena a;
    struct diags d;
    size_t length;
    arena_init(&a);
    diags_init(&d);
    char *text = file_read(&a, file, 1 << 20, &length, &d);
    assert_non_null(text);
    char *other = vary_machine(text, &tape, what);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, other, strlen(other)) == (ssize_t)strlen(other));
    close(fd);
    struct machine *m = machine_load(path, NULL, &d);
    if (m && machine_needs_host(m)) {
        machine_free(m);
        m = machine_join(path, "cpu-scalar", NULL, &d);
    }
    assert_true(m || d.errors > 0);
    unlink(path);
    free(other);
    diags_free(&d);
    arena_free(&a);
    return m;
}

/* Files that stand alone, of machines that move data. */
static bool may_vary(const char *file) {
    struct arena a;
    struct diags d;
    size_t length;
    arena_init(&a);
    diags_init(&d);
    const char *text = file_read(&a, file, 1 << 20, &length, &d), *only = getenv("ISAMAP_MACHINE");
    bool may = text && !strstr(text, "<include") && strstr(text, "<move");
    diags_free(&d);
    arena_free(&a);
    return may && (!only || strstr(file, only));
}

static void one_machine(const char *file, uint64_t seed, struct tally *all, int *machines) {
    struct bench b = {0};
    struct text what = {0};
    struct tally one = {0};
    struct trial batch[PER_PROGRAM];
    snprintf(b.file, sizeof b.file, "%s", file + strlen(SOURCE_DIR) + 1);
    b.machine = varied(file, seed, &what);
    if (b.machine) {
        bench_types(&b);
        ++*machines;
        for (uint64_t k = 0; k < PER_PROGRAM; k++) {
            uint64_t s = seed + k * 1000000007u;
            batch[k] = (struct trial){.bench = &b, .seed = s, .tape = {.s = s * 7919 + 13}};
        }
        trials_run(batch, PER_PROGRAM);
        for (int k = 0; k < PER_PROGRAM; k++) count(&batch[k], &one, all, what.at);
        if (all->failures && one.tried > one.outcome[OUTCOME_MAPPED] +
                                             one.outcome[OUTCOME_FALLBACK] +
                                             one.outcome[OUTCOME_REFUSED])
            fprintf(stderr, "machine of seed %llu, with%s\n", (unsigned long long)seed, what.at);
    }
    machine_free(b.machine);
    text_free(&what);
}

static void random_machines(void **state) {
    (void)state;
    uint64_t n = number_of("ISAMAP_VARIED", 30), first = number_of("ISAMAP_SEED", 1);
    glob_t files;
    const char *chosen[BENCHES];
    struct tally all = {0};
    uint64_t nfiles = 0;
    int machines = 0;
    glob(SOURCE_DIR "/machines/*.xml", 0, NULL, &files);
    glob(SOURCE_DIR "/tests/data/machines/*/*.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc; k++)
        if (may_vary(files.gl_pathv[k]) && nfiles < BENCHES) chosen[nfiles++] = files.gl_pathv[k];
    for (uint64_t seed = first; seed < first + n && nfiles > 0; seed++)
        one_machine(chosen[seed % nfiles], seed, &all, &machines);
    globfree(&files);
    fprintf(stderr, "%d varied machines of %d, %d programs mapped, %d refused, %d failed\n",
            machines, (int)n, all.outcome[OUTCOME_MAPPED], all.outcome[OUTCOME_REFUSED],
            all.failures);
    assert_true(nfiles > 0 || getenv("ISAMAP_MACHINE"));
    assert_true(n < 20 || nfiles == 0 || all.outcome[OUTCOME_MAPPED] > 0);
    assert_int_equal(all.failures, 0);
}

/* ---- programs that failed ---- */
static bool found_passes(struct bench *bench, int nbenches, const char *file) {
    char line[200] = "", name[100], shipped[120], *text;
    unsigned long long seed;
    struct arena a;
    struct diags d;
    size_t length;
    bool passes = true, known = getenv("ISAMAP_MACHINE") != NULL;
    arena_init(&a);
    diags_init(&d);
    text = file_read(&a, file, 1 << 16, &length, &d);
    assert_non_null(text);
    snprintf(line, sizeof line, "%s", text);
    assert_int_equal(sscanf(line, "# %99s %llu:", name, &seed), 2);
    snprintf(shipped, sizeof shipped, "machines/%s.xml", name);
    for (int k = 0; k < nbenches; k++) {
        if (strcmp(bench[k].file, name) != 0 && strcmp(bench[k].file, shipped) != 0) continue;
        known = true;
        struct trial t = {.bench = &bench[k], .seed = seed, .text = text};
        trials_run(&t, 1);
        passes = !outcome_fails(t.outcome) && t.outcome != OUTCOME_REFUSED;
        if (!passes)
            fprintf(stderr, "%s: %s: %s\n%s", file, outcome_name[t.outcome], t.reason,
                    t.messages ? t.messages : "");
        free(t.messages);
    }
    if (!known) fprintf(stderr, "%s: no machine file '%s'\n", file, name);
    diags_free(&d);
    arena_free(&a);
    return passes && known;
}

static void programs_that_failed(void **state) {
    (void)state;
    struct bench *bench = calloc(BENCHES, sizeof *bench);
    glob_t files;
    int nbenches = benches_load(bench, getenv("ISAMAP_MACHINE")), failures = 0;
    const char *these = getenv("ISAMAP_PROGRAMS");
    glob(these ? these : SOURCE_DIR "/tests/data/found/*.isam", 0, NULL, &files);
    assert_true(files.gl_pathc > 0);
    for (size_t k = 0; k < files.gl_pathc; k++)
        if (sampled(k)) failures += !found_passes(bench, nbenches, files.gl_pathv[k]);
    benches_free(bench, nbenches);
    globfree(&files);
    free(bench);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_that_failed),
                                       cmocka_unit_test(random_programs),
                                       cmocka_unit_test(random_machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
