/* Schedules written by hand or drawn: the symbolic proof beside the walk of all elements. */
#ifndef ISAMAP_TESTS_BY_HAND_H
#define ISAMAP_TESTS_BY_HAND_H

#include "command/isamap_int.h"

#include <string.h>

/* The job holds the machine, which the schedule looks at. */
static struct schedule *parsed(isamap *im, struct job *j, const char *machine, const char *text) {
    isamap_option(im, "machine", machine);
    job_init(j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, j, USE_SIM));
    struct source source = {.file = "x.sched", .text = text, .length = strlen(text)};
    struct schedule *s = schedule_parse(j->machine, &source, &im->diags);
    diags_print(&im->diags, stderr);
    assert_non_null(s);
    return s;
}

enum { WRONG, RIGHT };

/* Both walks say so. */
static void expect(const char *machine, const char *text, bool right) {
    isamap *im = isamap_open();
    struct text why = {0};
    struct diags ignored;
    struct job j;
    struct schedule *s = parsed(im, &j, machine, text);
    diags_init(&ignored);
    bool walked = schedule_verify(s, NULL, &ignored);
    bool proved = schedule_prove_symbolically(s, 0, &why);
    if (walked != right || proved != right)
        fprintf(stderr, "walked %d, proved %d: %s\n%s\nof %s\n", walked, proved,
                why.n ? why.at : "", ignored.n ? ignored.at[0].text : "", text);
    assert_int_equal(walked, right);
    assert_int_equal(proved, right);
    text_free(&why);
    diags_free(&ignored);
    schedule_free(s);
    job_free(&j);
    isamap_close(im);
}

__attribute__((unused)) static uint64_t draw(uint64_t *seed, uint64_t below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

#endif
