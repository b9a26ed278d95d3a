/* The order in which a schedule names its places says nothing: with any of them first it is right
 * as before and takes the same cycles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command/isamap_int.h"
#include "tests/sim_help.h"

static const char *line_of(const char *text, int k) {
    const char *line = strstr(text, "\n  place ") + 1;
    while (k-- > 0) line = strchr(line, '\n') + 1;
    return strncmp(line, "  place ", 8) == 0 ? line : NULL;
}

/* The text with place k before all others. */
static char *with_first(struct arena *arena, const char *text, int k) {
    const char *first = line_of(text, 0), *line = line_of(text, k);
    assert_non_null(line);
    int length = (int)(strchr(line, '\n') + 1 - line);
    return arena_printf(arena, "%.*s%.*s%.*s%s", (int)(first - text), text, length, line,
                        (int)(line - first), first, line + length);
}

static double cycles(const struct schedule *s) {
    struct sim_options options = {.no_values = true};
    struct sim_result result;
    struct diags d;
    diags_init(&d);
    bool ran = sim_run(s, NULL, &options, &result, &d);
    if (!ran) diags_print(&d, stderr);
    assert_true(ran);
    double found = result.cycles;
    sim_result_free(&result);
    diags_free(&d);
    return found;
}

/* The product has an issue of this instruction. */
static void same(const char *machine, const char *instruction) {
    static const char *const size[] = {"M=40", "N=37", "K=53"};
    struct job j;
    struct text text = {0};
    struct diags d;
    diags_init(&d);
    isamap *im = isamap_open();
    assert_int_equal(isamap_option(im, "machine", machine), ISAMAP_DONE);
    for (int k = 0; k < 3; k++) assert_int_equal(isamap_option(im, "define", size[k]), ISAMAP_DONE);
    job_init(&j, "examples/i8/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM) && job_program(im, &j) && job_compile(im, &j));
    schedule_print(j.schedule, &text);
    assert_non_null(strstr(text.at, instruction));
    for (int k = 0; k < j.schedule->nplaces; k++) {
        struct schedule *s =
            help_parse(j.machine, "moved.sched", with_first(&d.arena, text.at, k), &d);
        if (!s) diags_print(&d, stderr);
        assert_non_null(s);
        assert_true(cycles(s) == cycles(j.schedule));
        sim_check_values(s, machine);
        schedule_free(s);
    }
    text_free(&text);
    job_free(&j);
    diags_free(&d);
    isamap_close(im);
}

static void order_of_places(void **state) {
    (void)state;
    same("gemmini", "issue ws.again("); /* weights remain while rows pass */
    same("edge16", "issue mm16(");
    same("vdla", "issue gemm(");
}

int main(void) {
    setenv("ISAMAP_HOST", "cpu-avx512", 1); /* what gemmini's host is decides its plan */
    const struct CMUnitTest tests[] = {cmocka_unit_test(order_of_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
