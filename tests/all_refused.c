/* A schedule that the verifier refuses is a defect of isamap: the context knows it, and the message
 * names the command that makes the schedule once more, with all that decides it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command/isamap_int.h"

#include <string.h>

static void option(isamap *im, const char *name, const char *value) {
    assert_int_equal(isamap_option(im, name, value), ISAMAP_DONE);
}

static void compile(isamap *im, struct job *j) {
    option(im, "machine", "edge16");
    option(im, "define", "M=40");
    option(im, "define", "N=32");
    option(im, "define", "K=64");
    option(im, "param", "SPAD=32K");
    option(im, "approach", "instructions");
    option(im, "allow", "exact");
    option(im, "seed", "7");
    option(im, "threads", "3");
    job_init(j, "examples/i8/gmm.isam");
    bool ok = job_machine(im, j, USE_SIM) && job_program(im, j) && job_compile(im, j);
    if (!ok) diags_print(&im->diags, stderr);
    assert_true(ok);
}

static void refused(void **state) {
    static const char expected[] = "isamap compile examples/i8/gmm.isam -m edge16 -D M=40 -D N=32 "
                                   "-D K=64 --param SPAD=32K --approach instructions "
                                   "--allow exact --seed 7 --threads 3 -o x.sched";
    struct job j;
    struct text said = {0};
    (void)state;
    isamap *im = isamap_open();
    compile(im, &j);
    assert_true(job_prove(im, &j));
    assert_false(im->defect);
    assert_true(j.schedule->run.nnodes > 0);
    j.schedule->run.nnodes--; /* what the program wants last is not done */
    assert_false(job_prove(im, &j));
    assert_true(im->defect);
    diags_text(&im->diags, &said);
    const char *command = strstr(said.at, "isamap compile ");
    assert_non_null(command);
    assert_non_null(strstr(said.at, "which is a defect of isamap"));
    assert_int_equal(strncmp(command, expected, strlen(expected)), 0);
    text_free(&said);
    option(im, "no-check", NULL);
    assert_true(job_prove(im, &j));
    job_free(&j);
    isamap_close(im);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
