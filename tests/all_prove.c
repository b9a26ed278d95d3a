/* What the commands say of the schedules that they make: proved, unproved with the reason,
 * unchecked; refused is a defect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command/isamap_int.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static isamap *opened(const char *machine, const char *const *define) {
    isamap *im = isamap_open();
    isamap_option(im, "machine", machine);
    for (; *define; define++) isamap_option(im, "define", *define);
    return im;
}

static const char *const small[] = {"M=32", "N=32", "K=32", NULL};

/* A schedule as text, which the test changes. */
static char *schedule_text(isamap *im, struct job *j, const char *program) {
    struct text t = {0};
    job_init(j, program);
    assert_true(job_machine(im, j, USE_SIM) && job_program(im, j) && job_compile(im, j));
    schedule_print(j->schedule, &t);
    return t.at;
}

static void small_ones_are_proved(void **state) {
    (void)state;
    isamap *im = opened("edge16", small);
    assert_int_equal(isamap_sim(im, "examples/i8/gmm.isam"), ISAMAP_DONE);
    assert_non_null(strstr(isamap_result(im), "schedule    proved"));
    assert_true(isamap_number(im, "proof_seconds") >= 0);
    isamap_option(im, "no-check", NULL);
    isamap_option(im, "json", NULL);
    assert_int_equal(isamap_sim(im, "examples/i8/gmm.isam"), ISAMAP_DONE);
    assert_non_null(strstr(isamap_result(im), "\"schedule_proof\": \"unchecked\""));
    isamap_close(im);
}

/* Within too few steps nothing is proved, and nothing is wrong. */
static void a_small_budget_proves_nothing(void **state) {
    (void)state;
    isamap *im = opened("edge16", small);
    struct job j;
    char *text = schedule_text(im, &j, "examples/i8/gmm.isam");
    struct text reason = {0};
    int sampled;
    assert_int_equal(j.proof, PROOF_PROVED);
    assert_int_equal(schedule_prove(j.schedule, 30, &sampled, &reason, &im->diags), PROOF_UNPROVED);
    assert_non_null(strstr(reason.at, "budget"));
    assert_int_equal(im->diags.errors, 0);
    text_free(&reason);
    free(text);
    job_free(&j);
    isamap_close(im);
}

static void proved_within(const char *machine, const char *program, const char *const *defines,
                          int64_t steps) {
    isamap *im = opened(machine, defines);
    struct job j;
    struct text why = {0};
    free(schedule_text(im, &j, program));
    if (!schedule_prove_symbolically(j.schedule, steps, &why)) fail_msg("%s", why.at);
    text_free(&why);
    job_free(&j);
    isamap_close(im);
}

static const char *const none[] = {NULL};

/* Loops in many loops: those that are met often are guessed before one of their iterations is
 * walked. Without that the proof takes 186,600 steps. */
static void loops_met_often_are_guessed(void **state) {
    (void)state;
    proved_within("gemmini", "examples/i8/c3d.isam", none, 130000);
}

/* An address of 256 u - 64 lies in the row in which u = 1 does. Otherwise all tiles of the maps are
 * walked, in more than 500,000 steps. */
static void columns_before_a_tile_are_found(void **state) {
    (void)state;
    static const char *const large[] = {"P=112", "Q=112", NULL};
    proved_within("cpu-avx512", "tests/data/proofs/depthwise.isam", large, 40000);
}

/* Rows of lanes that end inside are stored one box after the other. */
static void moves_are_followed_in_parts(void **state) {
    (void)state;
    static const char *const large[] = {"P=13", "Q=13", "K=1000", "C=512", NULL};
    proved_within("vdla", "tests/data/proofs/rows-home.isam", large, 0);
}

/* A wrong schedule that isamap would have made: status 4, and what makes it again. */
static void a_refusal_is_a_defect(void **state) {
    (void)state;
    isamap *im = opened("edge16", small);
    struct job j;
    call_begin(im);
    char *text = schedule_text(im, &j, "examples/i8/gmm.isam"),
         *issue = strstr(text, "issue st.acc");
    assert_non_null(issue);
    memcpy(issue, "#ssue", 5);
    struct source source = {.file = "x.sched", .text = text, .length = strlen(text)};
    schedule_free(j.schedule);
    j.schedule = schedule_parse(j.machine, &source, &im->diags);
    assert_non_null(j.schedule);
    assert_false(job_prove(im, &j));
    assert_int_equal(j.proof, PROOF_REFUSED);
    assert_int_equal(call_end(im, ISAMAP_INPUT), ISAMAP_DEFECT);
    static const char command[] =
        "isamap compile examples/i8/gmm.isam -m edge16 -D M=32 -D N=32 -D K=32 --seed 1";
    assert_non_null(strstr(isamap_messages(im), command));
    free(text);
    job_free(&j);
    isamap_close(im);
}

/* Of the schedule with one digit changed. */
static enum proof with_digit(isamap *im, const struct machine *m, const char *text, const char *at,
                             char digit) {
    char *changed = strdup(text), *here = strstr(changed, at);
    struct text reason = {0};
    assert_non_null(here);
    here[strlen(at)] = digit;
    struct source source = {.file = "x.sched", .text = changed, .length = strlen(changed)};
    struct schedule *s = schedule_parse(m, &source, &im->diags);
    assert_non_null(s);
    int errors = im->diags.errors, sampled;
    enum proof proof = schedule_prove(s, 0, &sampled, &reason, &im->diags);
    assert_int_equal(im->diags.errors > errors, proof == PROOF_REFUSED);
    text_free(&reason);
    schedule_free(s);
    free(changed);
    return proof;
}

/* Of the schedule without its first issue of the instruction. */
static enum proof without(isamap *im, const struct machine *m, const char *text,
                          const char *instruction) {
    char *changed = strdup(text), *here = strstr(changed, instruction);
    struct text reason = {0};
    int sampled;
    assert_non_null(here);
    *here = '#';
    struct source source = {.file = "x.sched", .text = changed, .length = strlen(changed)};
    struct schedule *s = schedule_parse(m, &source, &im->diags);
    assert_non_null(s);
    enum proof proof = schedule_prove(s, 0, &sampled, &reason, &im->diags);
    text_free(&reason);
    schedule_free(s);
    free(changed);
    return proof;
}

/* What can be seen without a walk is refused where the elements are too many to be walked. */
static void broken_large_ones_are_refused(void **state) {
    (void)state;
    static const char *const large[] = {"M=512", "N=512", "K=512", NULL};
    isamap *im = opened("edge16", large);
    struct job j;
    char *text = schedule_text(im, &j, "examples/i8/gmm.isam");
    assert_int_equal(with_digit(im, j.machine, text, "place A: A in dram at ", '0'), PROOF_PROVED);
    assert_int_equal(with_digit(im, j.machine, text, "place B: B in dram at ", '0'), PROOF_REFUSED);
    assert_int_equal(with_digit(im, j.machine, text, "in inp at ", '9'), PROOF_REFUSED);
    assert_int_equal(without(im, j.machine, text, "issue ld.wgt"), PROOF_REFUSED);
    free(text);
    job_free(&j);
    isamap_close(im);
}

/* Of a large schedule, and of the same with one digit changed behind each text: no longer proved.
 */
static void proved_but_for_digits(const char *machine, const char *program, const char *const *at,
                                  const char *digit) {
    static const char *const large[] = {NULL};
    isamap *im = opened(machine, large);
    struct job j;
    char *text = schedule_text(im, &j, program);
    assert_int_equal(j.proof, PROOF_PROVED);
    for (int k = 0; digit[k]; k++)
        assert_int_not_equal(with_digit(im, j.machine, text, at[k], digit[k]), PROOF_PROVED);
    free(text);
    job_free(&j);
    isamap_close(im);
}

/* Tiles that later rounds find where the first one put them, behind or before others that come
 * again; what a loop overwrites in part. */
static void tiles_that_stay_are_known(void **state) {
    (void)state;
    static const char *const stays[] = {" == 0 or "};
    proved_but_for_digits("gemmini", "examples/i8/gmm.isam", stays, "9");
    proved_but_for_digits("vdla", "examples/i8/gmm.isam", stays, "3");
    proved_but_for_digits("edge16", "examples/i8/gmm_scaled.isam", stays, "4");
    proved_but_for_digits("vdla", "examples/i8/residual.isam", stays, "2");
}

/* The schedule with the first text of each pair as the second. */
static char *changed_text(const char *text, const char *from, const char *to) {
    const char *here = strstr(text, from);
    assert_non_null(here);
    size_t before = (size_t)(here - text), n = strlen(text) + strlen(to) + 1;
    char *out = malloc(n);
    assert_non_null(out);
    snprintf(out, n, "%.*s%s%s", (int)before, text, to, here + strlen(from));
    return out;
}

struct defect {
    const char *from, *to, *says;
};

/* Barriers between the copying and the computing threads of a block: one left out, too early or of
 * another slot. */
static void barriers_of_blocks_order_queues(void **state) {
    (void)state;
    static const struct defect defect[] = {
        {" pop full[A.smem.4]", "", "without"},
        {" pop empty[A.smem.4]", "", "already holds 1 tokens"},
        {" pop full[A.smem.4]", " pop full[A.smem.4 + 1]", "pushes 'empty' again without knowing"},
        {"sync copy pop empty\n", "", "tokens of sync 'empty' are left"},
        {"sync tile push empty[2]\n", "", "finds no token"},
        {"at 49152 bytes 16384 slots 3", "at 49152 bytes 16384 slots 2", "without a sync"},
        {" push full[A.smem.4]", "", "pushes 'empty' again without knowing"},
        {" push empty[A.smem.4]", " push empty[A.smem.4 + 1]", "sync 'empty'"},
    };
    static const char *const large[] = {"M=4096", "N=4096", "K=4096", NULL};
    isamap *im = opened("gpu-sm80", large);
    struct job j;
    char *text = schedule_text(im, &j, "examples/bf16/gmm.isam");
    assert_int_equal(j.proof, PROOF_PROVED);
    for (size_t k = 0; k < sizeof defect / sizeof *defect; k++) {
        char *changed = changed_text(text, defect[k].from, defect[k].to);
        struct source source = {.file = "x.sched", .text = changed, .length = strlen(changed)};
        struct schedule *s = schedule_parse(j.machine, &source, &im->diags);
        struct text why = {0};
        assert_non_null(s);
        assert_false(schedule_prove_symbolically(s, 0, &why));
        assert_non_null(strstr(why.at, defect[k].says));
        text_free(&why);
        schedule_free(s);
        free(changed);
    }
    free(text);
    job_free(&j);
    isamap_close(im);
}

static struct operand_layout *layout_of(struct machine *m, const char *instr, int operand) {
    for (int k = 0; k < m->ninstrs; k++)
        if (!strcmp(m->instr[k].id, instr)) return &m->instr[k].operand[operand].layout[0];
    fail_msg("no instruction '%s'", instr);
    return NULL;
}

/* Who writes a swizzled copy and who reads it exchange the same bytes, or nothing is proved; nor
 * where the copy takes part of the bytes that are exchanged. */
static void swizzles_agree(void **state) {
    (void)state;
    static const char *const large[] = {"M=4096", "N=4096", "K=4096", NULL};
    static const char *const other[] = {"2,4,3", NULL};
    isamap *im = opened("gpu-sm90", large);
    struct job j;
    char *text = schedule_text(im, &j, "examples/bf16/gmm.isam");
    struct operand_layout *copied = layout_of(j.machine, "tma.bf16", 1);
    const char *right = copied->swizzle;
    assert_string_equal(right, "3,4,3");
    assert_true(schedule_prove_symbolically(j.schedule, 0, &(struct text){0}));
    for (int k = 0; k < 2; k++) {
        struct text why = {0};
        copied->swizzle = other[k];
        assert_false(schedule_prove_symbolically(j.schedule, 0, &why));
        assert_non_null(strstr(why.at, "not affine"));
        text_free(&why);
    }
    copied->swizzle = right;
    struct place *p = j.schedule->place;
    for (int k = 0; k < j.schedule->nplaces; k++) {
        if (strcmp(j.machine->memory[p[k].memory].id, "smem") != 0) continue;
        struct text why = {0};
        p[k].address += 16;
        assert_false(schedule_prove_symbolically(j.schedule, 0, &why));
        p[k].address -= 16;
        text_free(&why);
    }
    free(text);
    job_free(&j);
    isamap_close(im);
}

/* Places that turn together have no entries for slots that never meet. */
static void entries_follow_slots(void **state) {
    (void)state;
    static const char *const entry[] = {" prepared table ["};
    proved_but_for_digits("vdla", "examples/i8/gmm.isam", entry, "9");
    proved_but_for_digits("vdla", "examples/i8/c2d.isam", entry, "9");
}

/* A product of as many matrices as there are layers: what is known grows with the program, its
 * verdict does not depend on that. */
static void write_chain(const char *path, int layers) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "kernel chain() {\n in T0: f32[64, 64]\n");
    for (int k = 1; k <= layers; k++)
        fprintf(f, " const W%d: f32[64, 64]\n %s T%d: f32[64, 64]\n", k,
                k < layers ? "temp" : "out", k);
    fprintf(f, " axes i: 64, j: 64, k: 64\n");
    for (int k = 1; k <= layers; k++)
        fprintf(f, " T%d[i, j] = 0\n T%d[i, j] += T%d[i, k] * W%d[k, j]\n", k, k, k - 1, k);
    fprintf(f, "}\n");
    fclose(f);
}

static void long_ones_are_proved(void **state) {
    (void)state;
    isamap *im = opened("cpu-avx2", none);
    struct job j;
    char path[] = "/tmp/isamap_chain_XXXXXX.isam";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    close(file);
    write_chain(path, 40);
    job_init(&j, path);
    assert_true(job_machine(im, &j, USE_SIM) && job_program(im, &j) && job_compile(im, &j));
    assert_int_equal(j.proof, PROOF_PROVED);
    remove(path);
    job_free(&j);
    isamap_close(im);
}

/* Weights that do not all fit: most of them stay in their memory over all tiles, the others take
 * turns in what is left of it. */
static void pinned_parts_of_rings_are_proved(void **state) {
    (void)state;
    static const char *const layer[] = {"C=64", "H=56",     "W=56",  "K=128", "R=3",
                                        "S=3",  "stride=2", "pad=1", NULL};
    isamap *im = opened("edge16", layer);
    struct job j;
    job_init(&j, "bench/conv2d_i8.isam");
    assert_true(job_machine(im, &j, USE_SIM) && job_program(im, &j) && job_compile(im, &j));
    assert_int_equal(j.proof, PROOF_PROVED);
    job_free(&j);
    isamap_close(im);
}

/* Rows of 24 in vectors of 16: the second one of a row goes on beyond it. */
#define ROWS(place, rows)                                                                          \
    "schedule rows on \"cpu-avx512\" { program { kernel rows() { out O: f32[2, 24] temp T: "       \
    "f32[2, "                                                                                      \
    "24] axes r: 2, i: 24\n T[r, i] = 0\n O[r, i] = T[r, i] } } "                                  \
    "place O: O in dram at 0 bytes 192 argument "                                                  \
    "place T: T in dram at 192 " place " place t: T in zmm at 0 bytes 64 local "                   \
    "run { loop n = 0 to 2 { loop v = 0 to 32 step 16 { "                                          \
    "issue zero.f32(C = t) do 0 axes (j: i) at (r = " rows ", i = v) "                             \
    "issue store.f32(S = t, D = T + (" rows ")*%d + v*4) } } fallback core llvm do 1 } }"

static bool text_proved(isamap *im, const struct machine *m, const char *format, int row) {
    char text[2000];
    struct text why = {0};
    snprintf(text, sizeof text, format, row);
    struct source source = {.file = "rows.sched", .text = text, .length = strlen(text)};
    struct schedule *s = schedule_parse(m, &source, &im->diags);
    diags_print(&im->diags, stderr);
    assert_non_null(s);
    bool proved = schedule_prove_symbolically(s, 0, &why);
    assert_true(!proved || schedule_verify(s, NULL, &im->diags));
    text_free(&why);
    schedule_free(s);
    return proved;
}

/* Whether an instruction computes its statement is proved, or counted as only sampled: no random
 * point shows where these two differ. */
#define RECTIFIED(value)                                                                           \
    "schedule rectified on \"cpu-avx2\" { program { kernel rectified() { in X: f32[8] out O: "     \
    "f32[8] axes i: 8\n O[i] = " value " } } place X: X in dram at 0 bytes 32 argument "           \
    "place O: O in dram at 32 bytes 32 argument place x: X in ymm at 0 bytes 32 local "            \
    "place o: O in ymm at 32 bytes 32 local run { issue load.f32(S = X, D = x) "                   \
    "issue max.imm.f32(A = x, s = imm 0, C = o) do 0 axes (j: i) at (i = 0) "                      \
    "issue store.f32(S = o, D = O) } }"

static int sampled_of(isamap *im, const struct machine *m, const char *text) {
    struct source source = {.file = "x.sched", .text = text, .length = strlen(text)};
    struct schedule *s = schedule_parse(m, &source, &im->diags);
    struct text reason = {0};
    int sampled;
    diags_print(&im->diags, stderr);
    assert_non_null(s);
    assert_int_equal(schedule_prove(s, 0, &sampled, &reason, &im->diags), PROOF_PROVED);
    text_free(&reason);
    schedule_free(s);
    return sampled;
}

static void sampled_instructions_are_counted(void **state) {
    (void)state;
    isamap *im = opened("cpu-avx2", none);
    struct job j;
    job_init(&j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM));
    assert_int_equal(sampled_of(im, j.machine, RECTIFIED("max(X[i], 0.0)")), 0);
    assert_int_equal(sampled_of(im, j.machine, RECTIFIED("max(0.0, X[i])")), 0);
    assert_int_equal(
        sampled_of(im, j.machine, RECTIFIED("select(X[i] < -200.0, 1.0, max(X[i], 0.0))")), 1);
    job_free(&j);
    isamap_close(im);
    im = opened("edge16", small);
    assert_int_equal(isamap_sim(im, "examples/i8/gmm_scaled.isam"), ISAMAP_DONE);
    assert_true(isamap_number(im, "proof_sampled") >= 1);
    assert_non_null(strstr(isamap_result(im), "at random points alone"));
    isamap_close(im);
}

/* Padding may be written to a home that has room for it, and only there. */
static void padding_needs_room(void **state) {
    (void)state;
    isamap *im = opened("cpu-avx512", none);
    struct job j;
    job_init(&j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM));
    assert_true(text_proved(im, j.machine, ROWS("bytes 256 workspace extent [2, 32]", "n"), 128));
    assert_true(
        text_proved(im, j.machine, ROWS("bytes 256 workspace extent [2, 32]", "1 - n"), 128));
    assert_false(text_proved(im, j.machine, ROWS("bytes 256 workspace", "1 - n"), 96));
    assert_false(text_proved(im, j.machine,
                             ROWS("bytes 256 workspace layout \"i0,i1 -> i0, i1%%24\" extent "
                                  "[2, 32]",
                                  "1 - n"),
                             96));
    job_free(&j);
    isamap_close(im);
}

#define SUM                                                                                        \
    "schedule sum on \"cpu-avx512\" { program { kernel sum() { in A: f32[32] in B: f32[32] "       \
    "out O: f32[32] axes i: 32\n O[i] = A[i] + B[i] } } "                                          \
    "place A: A in dram at 0 bytes 128 argument place B: B in dram at 128 bytes 128 argument "     \
    "place O: O in dram at 256 bytes 128 argument place a: A in zmm at 0 bytes 64 local "          \
    "place b: B in zmm at 64 bytes 64 local place o: O in zmm at %d bytes 64 local "               \
    "run { loop n = 0 to 32 step 16 { issue load.f32(S = A + n*4, D = a) "                         \
    "issue load.f32(S = B + n*4, D = b) "                                                          \
    "issue add.f32(A = a, B = b, C = o) do 0 axes (j: i) at (i = n) "                              \
    "issue store.f32(S = o, D = O + n*4) } } }"

/* A register may take the result of what it held, under another name too. */
static void results_may_replace_operands(void **state) {
    (void)state;
    isamap *im = opened("cpu-avx512", none);
    struct job j;
    job_init(&j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM));
    for (int address = 0; address <= 128; address += 64)
        assert_true(text_proved(im, j.machine, SUM, address));
    job_free(&j);
    isamap_close(im);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_are_proved),
        cmocka_unit_test(a_small_budget_proves_nothing),
        cmocka_unit_test(loops_met_often_are_guessed),
        cmocka_unit_test(columns_before_a_tile_are_found),
        cmocka_unit_test(moves_are_followed_in_parts),
        cmocka_unit_test(a_refusal_is_a_defect),
        cmocka_unit_test(broken_large_ones_are_refused),
        cmocka_unit_test(tiles_that_stay_are_known),
        cmocka_unit_test(barriers_of_blocks_order_queues),
        cmocka_unit_test(swizzles_agree),
        cmocka_unit_test(entries_follow_slots),
        cmocka_unit_test(long_ones_are_proved),
        cmocka_unit_test(pinned_parts_of_rings_are_proved),
        cmocka_unit_test(padding_needs_room),
        cmocka_unit_test(sampled_instructions_are_counted),
        cmocka_unit_test(results_may_replace_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
