/* The symbolic proof against the walk of all elements: of schedules that it proves, every mutant
 * that the walk rejects is not proved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command/isamap_int.h"
#include "mutate.h"
#include "tests/sample.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const mutation_name[] = {
#define X(id, text) text,
    MUTATION_TABLE(X)
#undef X
};

enum { MUTANTS = 48 };

struct subject {
    const char *program, *machine, *define; /* sizes, and `threads`, which is an option */
};

static const struct subject subjects[] = {
    {"examples/f32/gmm.isam", "cpu-avx2", "M=45 N=48 K=24"},
    {"examples/f32/softmax.isam", "cpu-avx2", "M=32 N=40"},
    {"examples/f32/c2d.isam", "cpu-avx512", "N=2 K=32 P=14 Q=14 C=7"},
    {"examples/f32/layernorm.isam", "cpu-avx512", "M=24 N=48"},
    {"examples/f32/att.isam", "cpu-avx512", "B=2 T=32 D=16"},
    {"examples/f32/bottleneck.isam", "cpu-avx512", "H=6 W=24 C=32 K=16"},
    {"examples/f32/dwpw.isam", "cpu-avx512", "H=12 W=24 C=32 K=32"},
    {"bench/conv2d.isam", "cpu-avx512", "C=6 H=12 W=20 K=6 groups=6"},
    {"bench/conv2d.isam", "cpu-avx512", "C=6 H=12 W=70 K=6 groups=6 stride=2"},
    {"bench/conv2d.isam", "cpu-avx2", "C=6 H=12 W=20 K=6 groups=6"},
    {"tests/data/proofs/concat.isam", "cpu-avx2", ""},
    {"tests/data/proofs/lanes.isam", "cpu-avx2", ""},
    {"tests/data/proofs/max-pool.isam", "cpu-avx2", ""},
    {"tests/data/proofs/depthwise.isam", "cpu-avx512", ""},
    {"tests/data/proofs/one-lane-of-padding.isam", "cpu-avx512", ""},
    {"tests/data/proofs/rows-across-planes.isam", "tests/data/machines/ports/nimc.xml", ""},
    {"examples/i8/gmm.isam", "cpu-amx", "M=256 N=512 K=256 threads=2"},
    {"examples/i8/gmm.isam", "cpu-amx", "M=519 N=200 K=520 threads=2"},
    {"tests/data/found/weights-of-a-window-in-words.isam", "cpu-amx", ""},
    {"tests/data/proofs/corner-of-a-fragment.isam", "gpu-sm80", ""},
    {"tests/data/proofs/weights-of-all-instances.isam", "tests/data/machines/ports/finch.xml", ""},
    {"tests/data/proofs/rows-home.isam", "vdla", "P=5 Q=13 K=40"},
    {"examples/i8/bottleneck.isam", "edge16", "H=7 W=7 C=32 K=16"},
    {"examples/i8/gmm.isam", "edge16", "M=96 N=80 K=96"},
    {"examples/i8/gmm.isam", "vdla", "M=96 N=80 K=96"},
    {"examples/i8/dwpw.isam", "edge16", "H=14 W=14"},
    {"examples/i8/gmv.isam", "edge16", "M=96 K=80"},
    {"examples/i8/gmv.isam", "vdla", "M=96 K=144"},
    {"tests/data/proofs/steps.isam", "cpu-avx2", ""},
    {"tests/data/proofs/steps.isam", "cpu-avx512", "T=7 H=40"},
    {"tests/data/recur/rows_back.isam", "cpu-avx2", ""},
    {"tests/data/proofs/both-ways.isam", "cpu-avx512", ""},
    {"tests/data/proofs/layers.isam", "cpu-avx512", ""},
    {"tests/data/proofs/layers-outside.isam", "cpu-avx512", ""},
    {"tests/data/proofs/rows-of-groups.isam", "cpu-avx2", ""},
    {"tests/data/proofs/backwards-in-groups.isam", "cpu-avx2", ""},
    {"tests/data/proofs/layers.isam", "cpu-avx2", "T=4 L=2"},
    {"tests/data/recur/edit.isam", "cpu-avx2", ""},
    {"examples/f32/gru.isam", "cpu-avx512", "H=32"},
    {"examples/i8/gru.isam", "edge16", "T=8 H=32"},
    {"examples/i8/rnn.isam", "vdla", "T=8 H=32"},
    {"examples/i8/gru.isam", "vdla", "H=32"},
    {"examples/i8/rnn.isam", "edge16", "H=32"},
    {"examples/bf16/gmm.isam", "cpu-avx512", "M=9 N=33 K=121"},
    {"examples/i8/dep.isam", "cpu-avx512", "N=1 C=8 M=16 P=4 Q=16"},
    {"examples/i8/gmm.isam", "tests/data/machines/ports/duo.xml", "M=9 N=65 K=24"},
    {"tests/data/found/set-by-a-product.isam", "edge16", ""},
    {"tests/data/found/sums-fetched-apart.isam", "edge16", ""},
    {"examples/recurrent/attend.isam", "cpu-avx512", "D=32"},
    {"examples/recurrent/attend.isam", "edge16", "T=7 D=16"},
    {"examples/recurrent/decoder.isam", "cpu-avx2", "T=5 E=32 H=2 D=16 F=32"},
    {"bench/conv2d_i8.isam", "edge16", "C=3 H=12 W=12 K=32 R=5 S=5 stride=2 pad=2"},
    {"examples/i8/dep.isam", "vdla", "N=1 C=8 M=4 P=8 Q=8"},
    {"examples/i8/dep.isam", "gemmini", "N=2 C=4 M=16 P=4 Q=24"},
    {"examples/i8/att.isam", "edge16", "B=2 T=64 D=32"},
    {"examples/i8/att.isam", "vdla", "B=2 T=64 D=32"},
    {"bench/recurrent.isam", "cpu-avx512", "T=6 B=2 H=32"},
    {"examples/i8/gmv.isam", "gemmini", "M=96 K=80"},
    {"examples/i8/c2d.isam", "gemmini", "N=1 K=32 P=8 Q=8 C=16"},
    {"examples/i8/rnn.isam", "gemmini", "H=32"},
    {"examples/i8/c3d.isam", "gemmini", "N=2 C=32 K=32 D=4 P=4 Q=8"},
    {"tests/data/proofs/weights-remain.isam", "gemmini", ""},
    {"examples/i8/gmm.isam", "cpu-amx", "M=33 N=17 K=65"},
    {"examples/bf16/gmm.isam", "cpu-amx", "M=24 N=40 K=80"},
    {"examples/i8/c2d.isam", "cpu-amx", "N=1 K=24 P=6 Q=20 C=8"},
    {"examples/bf16/gmm.isam", "gpu-sm80", "M=128 N=64 K=256"},
    {"examples/bf16/gmm.isam", "gpu-sm80", "M=65 N=33 K=40"},
    {"examples/bf16/gmm.isam", "gpu-sm90", "M=75 N=43 K=64"},
    {"examples/f32/gmm.isam", "gpu-sm80", "M=48 N=64 K=40"},
    {"examples/operators/dep.isam", "gpu-sm80", "N=1 C=2 M=16 P=4 Q=8"},
    {"examples/operators/sep.isam", "gpu-sm80", "N=1 C=4 K=32 P=8 Q=8"},
    {"examples/operators/dil.isam", "gpu-sm90", "N=1 C=64 K=64 P=1 Q=56"},
};

struct run {
    struct schedule *schedule;
    const char *name;
    int every, seen, tried, rejected, proved, wrong;
};

static bool walked(const struct schedule *s) {
    struct diags d;
    diags_init(&d);
    bool good = schedule_verify(s, &(struct verify_options){0}, &d);
    diags_free(&d);
    return good;
}

static int guessed;

/* In either of two ways; `guessed` counts the second. */
static bool proved(const struct schedule *s) {
    struct text why = {0};
    bool good = schedule_prove_symbolically(s, 0, &why);
    bool also = schedule_prove_guessing(s, &why);
    guessed += also;
    good |= also;
    if (!good && getenv("ISAMAP_SHOW")) fprintf(stderr, "  not proved: %s\n", why.at);
    text_free(&why);
    return good;
}

/* The change from the program as written to the one that is scheduled. */
static bool chain_proved(const struct schedule *s) {
    struct text what = {0};
    struct chain_report r = chain_verify(s->chain, s->program, &what);
    if (r.evidence != EVIDENCE_PROVED) fprintf(stderr, "%s", what.at ? what.at : "");
    text_free(&what);
    return r.evidence == EVIDENCE_PROVED;
}

static void try_mutant(void *user, enum mutation kind, const char *where) {
    struct run *r = user;
    if (r->seen++ % r->every != 0) return;
    r->tried++;
    bool symbolic = proved(r->schedule);
    r->proved += symbolic;
    if (!symbolic || walked(r->schedule)) return;
    r->wrong++;
    fprintf(stderr, "%s: proved, though the walk rejects it: %s at %s\n", r->name,
            mutation_name[kind], where ? where : "");
    if (!getenv("ISAMAP_SHOW")) return;
    struct text t = {0};
    schedule_print(r->schedule, &t);
    fprintf(stderr, "%s", t.at);
    text_free(&t);
}

static void count_mutant(void *user, enum mutation kind, const char *where) {
    (void)kind, (void)where;
    ++*(int *)user;
}

static int run_subject(const struct subject *x) {
    isamap *im = isamap_open();
    struct job j;
    int all = 0, most = getenv("ISAMAP_MUTANTS") ? atoi(getenv("ISAMAP_MUTANTS")) : MUTANTS;
    char word[64];
    isamap_option(im, "machine", x->machine);
    isamap_option(im, "no-check", NULL);
    for (const char *p = x->define; *p; p += strcspn(p, " "), p += strspn(p, " ")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(p, " "), p);
        bool threads = strncmp(word, "threads=", 8) == 0;
        isamap_option(im, threads ? "threads" : "define", threads ? word + 8 : word);
    }
    job_init(&j, x->program);
    bool made = job_machine(im, &j, USE_SIM) && job_program(im, &j) && job_compile(im, &j);
    diags_print(&im->diags, stderr);
    assert_true(made);
    struct run r = {.schedule = j.schedule, .name = x->program};
    clock_t begin = clock();
    bool original = proved(j.schedule) && chain_proved(j.schedule);
    struct mutator counter = {.s = j.schedule, .try = count_mutant, .user = &all};
    mutate_schedule(&counter);
    r.every = most > 0 ? (all + most - 1) / most : 1;
    struct mutator m = {.s = j.schedule, .try = try_mutant, .user = &r};
    mutate_schedule(&m);
    fprintf(stderr, "%-24s on %-10s %s, %4d mutants, %4d tried, %3d proved, %d wrong, %.2f s\n",
            x->program, x->machine, original ? "proved" : "NOT PROVED", all, r.tried, r.proved,
            r.wrong, (double)(clock() - begin) / CLOCKS_PER_SEC);
    job_free(&j);
    isamap_close(im);
    return r.wrong + !original;
}

static void proved_mutants_are_right(void **state) {
    (void)state;
    int wrong = 0;
    const char *only = getenv("ISAMAP_ONLY"); /* a part of a program's or a machine's name */
    for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++)
        if (only ? strstr(subjects[k].program, only) || strstr(subjects[k].machine, only)
                 : sampled(k))
            wrong += run_subject(&subjects[k]);
    assert_int_equal(wrong, 0);
    assert_true(guessed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(proved_mutants_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
