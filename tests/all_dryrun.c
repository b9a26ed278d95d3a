/* The yardstick of traffic: figures counted by hand, and for plans of all kinds: not less than what
 * must move once, not more than what the rolled schedule moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "approaches/approaches.h"
#include "mapper/mapper.h"
#include "scheduler/clock/dryrun.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"
#include "tests/scheduler_help.h"

/* Everything fits: each array moves once. */
static void what_fits_moves_once(void **state) {
    (void)state;
    struct arena a;
    struct diags d;
    struct dryrun out;
    arena_init(&a);
    diags_init(&d);
    const char *text = help_read(&a, "tests/data/schedules/gemm.sched");
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, "gemm.sched", text, &d);
    diags_print(&d, stderr);
    assert_non_null(s);
    assert_true(dryrun_traffic(s, 1000000, &out));
    double in = 0, written = 0;
    for (int b = 0; b < s->program->nbuffers; b++) {
        const struct buffer *x = &s->program->buffer[b];
        double bytes = (double)x->elements * (double)type_size(x->type);
        if (x->role == ROLE_IN || x->role == ROLE_CONST) in += bytes;
        if (x->role == ROLE_OUT) written += bytes;
    }
    assert_true(out.read == in);
    assert_true(out.written == written);
    assert_false(dryrun_traffic(s, 10, &out));
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

/* Rows of A one word each, two of them fit and the result's: i = 0, 1, 2 and again. By hand: A[0],
 * A[1], then A[2] takes the place of A[1], whose next use is farther than A[0]'s; A[0] is still
 * there, A[1] is read again in place of A[0], which is not used any more; A[2] is there. */
static const char cyclic_machine[] =
    "<?xml version=\"1.0\"?>\n"
    "<machine name=\"cyclic\" clock=\"1e9\" xmlns=\"urn:isamap:machine:1\">\n"
    "<memory id=\"dram\"/><memory id=\"x\" size=\"8\" word=\"4\"/><memory id=\"y\" size=\"64\" "
    "word=\"4\"/>\n"
    "<queue id=\"q\"/>\n"
    "<move id=\"ld\" queue=\"q\" from=\"dram\" to=\"x\"><semantics>kernel ld() { in S: i8[4] out "
    "D: i8[4] axes e: 4\n"
    "  D[e] = S[e] }</semantics><operand buffer=\"S\"/><operand buffer=\"D\"/><emit "
    "as=\"c\">;</emit></move>\n"
    "<move id=\"st\" queue=\"q\" from=\"y\" to=\"dram\"><semantics>kernel st() { in S: i32[1] out "
    "D: i32[1] axes e: 1\n"
    "  D[e] = S[e] }</semantics><operand buffer=\"S\"/><operand buffer=\"D\"/><emit "
    "as=\"c\">;</emit></move>\n"
    "<instruction id=\"sum\" queue=\"q\"><semantics>kernel sum() { in A: i8[4] inout C: i32[1] "
    "axes i: 1, k: 4\n"
    "  C[i] += i32(A[k]) }</semantics><operand buffer=\"A\" memory=\"x\"/>\n"
    "  <operand buffer=\"C\" memory=\"y\" accumulate=\"add\"/><emit "
    "as=\"c\">;</emit></instruction>\n"
    "</machine>\n";
static const char cyclic_schedule[] =
    "schedule cyclic on cyclic {\n"
    "  program {\n"
    "    kernel cyclic() {\n"
    "      in A: i8[3, 4]\n"
    "      out C: i32[2]\n"
    "      axes t: 2, i: 3, k: 4\n"
    "      C[t] = 0\n"
    "      C[t] += i32(A[i, k])\n"
    "    }\n"
    "  }\n"
    "  place A: A in dram at 0 bytes 12 argument\n"
    "  place C: C in dram at 64 bytes 8 argument\n"
    "  place a: A in x at 0 bytes 4 local\n"
    "  place c: C in y at 0 bytes 4 local\n"
    "  prepare { }\n"
    "  run {\n"
    "    loop t0 = 0 to 2 axis t {\n"
    "      loop i0 = 0 to 3 axis i {\n"
    "        issue ld(S = A + i0*4, D = a)\n"
    "        issue sum(add = i0 != 0, A = a, C = c)\n"
    "          do 1 init 0 axes (i: -, k: k) at (t = t0, i = i0, k = 0)\n"
    "      }\n"
    "      issue st(S = c, D = C + t0*4)\n"
    "    }\n"
    "  }\n"
    "}\n";

static void next_use_decides(void **state) {
    (void)state;
    struct diags d;
    struct dryrun out;
    diags_init(&d);
    struct machine *m =
        machine_parse("cyclic.xml", cyclic_machine, strlen(cyclic_machine), NULL, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    struct schedule *s = help_parse(m, "cyclic.sched", cyclic_schedule, &d);
    bool good = s && schedule_verify(s, NULL, &d);
    diags_print(&d, stderr);
    assert_true(good);
    assert_true(dryrun_traffic(s, 1000000, &out));
    assert_true(out.read == 4 * 4); /* rolled: 6 rows */
    assert_true(out.written == 2 * 4);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
}

/* ---- plans ---- */
static const char gmm[] = "kernel gmm() {\n"
                          "  in A: i8[20, 24]  const B: i8[24, 28]  out C: i32[20, 28]\n"
                          "  axes i: 20, j: 28, k: 24\n"
                          "  C[i,j]  = 0\n"
                          "  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n"
                          "}\n";

static bool has_copy(const struct node *n, int count) {
    for (int k = 0; k < count; k++)
        if ((n[k].kind == NODE_ISSUE && n[k].issue->stmt >= 0) ||
            (n[k].kind == NODE_LOOP && has_copy(n[k].loop->body, n[k].loop->nbody)))
            return true;
    return false;
}

static bool one_plan(const struct program *p, const struct machine *m, uint64_t seed) {
    struct diags d;
    diags_init(&d);
    struct decider *decider = decider_open(approaches[seed > 0], seed);
    struct cover *cover = mapper_cover(p, m, decider, &d);
    struct schedule *s = scheduler_run(cover, m, decider, &(struct scheduler_options){0}, &d);
    assert_non_null(s);
    struct dryrun best;
    bool mapped = has_copy(s->run.node, s->run.nnodes);
    if (mapped) {
        struct sim_result x = {0};
        assert_true(sim_run(s, NULL, &(struct sim_options){.no_values = true}, &x, &d));
        assert_true(dryrun_traffic(s, 10000000, &best));
        double once = 20 * 24 + 24 * 28, written = 4 * 20 * 28;
        assert_true(best.read >= once && best.written >= written);
        assert_true(best.read + best.written <= x.home_read_bytes + x.home_write_bytes);
        sim_result_free(&x);
    }
    schedule_free(s);
    cover_free(cover);
    decider_close(decider);
    diags_free(&d);
    return mapped;
}

static void rolled_moves_no_less(void **state) {
    (void)state;
    struct arena a;
    struct diags d;
    struct kernel **kernel;
    struct source source = {
        .file = "gmm", .line0 = 1, .col0 = 1, .text = gmm, .length = strlen(gmm)};
    int mapped = 0;
    arena_init(&a);
    diags_init(&d);
    struct machine *m =
        machine_join(SOURCE_DIR "/tests/data/machines/proof/edge4.xml", "cpu-scalar", NULL, &d);
    assert_non_null(m);
    assert_int_equal(kernel_parse(&a, &source, &kernel, &d), 1);
    struct program *p = program_bind(kernel[0], NULL, NULL, &d);
    for (uint64_t seed = 0; seed < 24; seed++) mapped += one_plan(p, m, seed);
    assert_true(mapped > 5);
    program_free(p);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_fits_moves_once),
                                       cmocka_unit_test(next_use_decides),
                                       cmocka_unit_test(rolled_moves_no_less)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
