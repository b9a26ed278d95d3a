/* `isamap calibrate`, and the files of parameters that it writes: a machine whose only guess is the
 * price of a point gets it measured; bad files are refused with their place. */
#include "isamap.h"
#include "machines/machine.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char machine_text[] =
    "<?xml version=\"1.0\"?>\n"
    "<machine name=\"guess\" clock=\"1e9\" xmlns=\"urn:isamap:machine:1\">\n"
    "  <param name=\"POINT\" value=\"%d\"/>\n"
    "  <param name=\"OTHER\" value=\"3\" range=\"1..9\"/>\n"
    "  <param name=\"SIZE\" value=\"3\" host=\"cache 1 size\"/>\n"
    "  <param name=\"SMALL\" value=\"3\" range=\"1..9\" host=\"cache 1 size\"/>\n"
    "  <measure param=\"POINT\" from=\"%d\" to=\"1000000\" with=\"N=40; N=60\">\n"
    "    kernel k(N) { in A: f32[N, N]  in B: f32[N, N]  out C: f32[N, N]  axes i: N, j: N, k: N\n"
    "      C[i,j] = 0\n"
    "      C[i,j] += A[i,k] * B[k,j] }\n"
    "  </measure>\n"
    "  <memory id=\"dram\"/>\n"
    "  <unit id=\"core\"><queue id=\"cpu\" order=\"data\"/>\n"
    "    <fallback as=\"c\" queue=\"cpu\" memory=\"dram\" interval=\"POINT/1000\"/></unit>\n"
    "</machine>\n";

struct place {
    char folder[64], machine[96], parameters[96], program[96];
};

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int set_up(void **state) {
    static struct place p;
    char text[2048];
    strcpy(p.folder, "/tmp/isamap-test-XXXXXX");
    if (!mkdtemp(p.folder)) return -1;
    snprintf(p.machine, sizeof p.machine, "%s/guess.xml", p.folder);
    snprintf(p.parameters, sizeof p.parameters, "%s/guess.params", p.folder);
    snprintf(p.program, sizeof p.program, "%s/k.isam", p.folder);
    snprintf(text, sizeof text, machine_text, 77, 1);
    write_file(p.machine, text);
    write_file(p.program,
               "kernel k(N=50) { in A: f32[N, N]  in B: f32[N, N]  out C: f32[N, N]  axes i: "
               "N, j: N, k: N\n C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j] }\n");
    setenv("ISAMAP_PARAMETERS", p.folder, 1);
    *state = &p;
    return 0;
}

static int tear_down(void **state) {
    struct place *p = *state;
    unlink(p->machine), unlink(p->parameters), unlink(p->program), rmdir(p->folder);
    return 0;
}

static double predict(struct place *p, const char *param) {
    isamap *im = isamap_open();
    isamap_option(im, "machine", p->machine);
    if (param) isamap_option(im, "param", param);
    assert_int_equal(isamap_run(im, p->program), ISAMAP_DONE);
    double predicted = isamap_number(im, "predicted_seconds"),
           measured = isamap_number(im, "run_seconds");
    assert_true(predicted > 0 && measured > 0);
    isamap_close(im);
    return predicted;
}

static void calibrate_measures(void **state) {
    struct place *p = *state;
    unlink(p->parameters);
    double guessed = predict(p, NULL);
    isamap *im = isamap_open();
    isamap_option(im, "machine", p->machine);
    int status = isamap_calibrate(im, NULL);
    if (status) fputs(isamap_messages(im), stderr);
    assert_int_equal(status, ISAMAP_DONE);
    double value = isamap_number(im, "parameters.POINT.value"),
           seconds = isamap_number(im, "parameters.POINT.seconds"),
           before = isamap_number(im, "parameters.POINT.predicted_before"),
           after = isamap_number(im, "parameters.POINT.predicted_after");
    isamap_close(im);
    assert_int_equal(access(p->parameters, R_OK), 0);
    assert_true(fabs(after - seconds) <= 0.02 * seconds);
    assert_true(fabs(after - seconds) < fabs(before - seconds));
    double now = predict(p, NULL); /* read from the file, linear in the parameter */
    assert_true(fabs(now / guessed - value / 77) < 0.02 * value / 77);
    assert_true(fabs(predict(p, "POINT=77") - guessed) < 1e-9); /* --param goes before */
}

/* With all values in the range the program is predicted to take 500 ns for each of its products. */
static void what_no_value_explains_is_left(void **state) {
    struct place *p = *state;
    char text[2048];
    unlink(p->parameters);
    snprintf(text, sizeof text, machine_text, 77, 500000);
    write_file(p->machine, text);
    isamap *im = isamap_open();
    isamap_option(im, "machine", p->machine);
    assert_int_equal(isamap_calibrate(im, NULL), ISAMAP_DONE);
    assert_int_equal(isamap_number(im, "parameters.POINT.value"), 77);
    assert_int_equal(isamap_number(im, "parameters.POINT.measured"), 0);
    int64_t size = system_value(SYSTEM_CACHES, "cache 1 size");
    assert_true(size > 9 || !size);
    if (size) assert_true(isamap_number(im, "parameters.SIZE.value") == (double)size);
    assert_true(isnan(isamap_number(im, "parameters.SMALL.value"))); /* not in its range */
    isamap_close(im);
    snprintf(text, sizeof text, machine_text, 77, 1);
    write_file(p->machine, text);
}

static void bad_files_are_refused(void **state) {
    struct place *p = *state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"POINT 4\n", ":1:1: error: 'POINT' has no value, expected NAME = NUMBER"},
        {"# x\n  POINT = 4x # y\n", ":2:11: error: '4x ' is no number, expected an integer"},
        {"POINT = 4\nPOINT = 5\n", ":2:1: error: 'POINT' is given twice"},
        {"\n\nPIONT = 4\n", ":3:1: error: machine 'guess' has no parameter 'PIONT'"},
        {" OTHER = 12\n",
         ":1:2: error: parameter 'OTHER' is 12, expected a value in its range 1..9"},
        {"= 4\n", ":1:1: error: '=' is no name"},
        {"POINT = 99999999999999999999\n", ":1:9: error: '99999999999999999999' is no number"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(p->parameters, bad[i].text);
        isamap *im = isamap_open();
        isamap_option(im, "machine", p->machine);
        assert_int_equal(isamap_run(im, p->program), ISAMAP_INPUT);
        if (!strstr(isamap_messages(im), bad[i].says)) fputs(isamap_messages(im), stderr);
        assert_non_null(strstr(isamap_messages(im), bad[i].says));
        isamap_close(im);
    }
}

static void nothing_to_measure(void **state) {
    (void)state;
    isamap *im = isamap_open();
    isamap_option(im, "machine", "machines/cpu-scalar.xml");
    assert_int_equal(isamap_calibrate(im, NULL), ISAMAP_INPUT);
    assert_non_null(strstr(isamap_messages(im), "has nothing to measure"));
    isamap_close(im);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibrate_measures), cmocka_unit_test(what_no_value_explains_is_left),
        cmocka_unit_test(bad_files_are_refused), cmocka_unit_test(nothing_to_measure)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
