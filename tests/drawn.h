/* Random programs, some for each machine file. */
#ifndef ISAMAP_TESTS_DRAWN_H
#define ISAMAP_TESTS_DRAWN_H

#include "tests/golden.h"
#include "tests/random/trial.h"

#include <glob.h>

/* Each machine file that a program may be planned for, with its number. */
static inline void drawn_machines(void (*each)(void *user, const char *file, int number),
                                  void *user) {
    glob_t files;
    glob("machines/*.xml", 0, NULL, &files);
    glob("tests/data/machines/*.xml", GLOB_APPEND, NULL, &files);
    glob("tests/data/machines/ports/*.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc; k++) each(user, files.gl_pathv[k], (int)k);
    globfree(&files);
}

/* A device stands beside `host`, unless that is NULL. */
static inline struct machine *drawn_machine(const char *file, const char *host) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(file, NULL, &d);
    if (m && host && machine_needs_host(m)) {
        machine_free(m);
        m = machine_join(file, host, NULL, &d);
    }
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

/* With products of types that the machine's instructions take; from the heap. */
static inline char *drawn_program(struct machine *m, int seed) {
    struct bench b = {.machine = m};
    struct tape tape = {.s = (uint64_t)seed * 7919 + 13};
    struct random_info info;
    bench_types(&b);
    return random_program(&tape, &b.native, &info);
}

#endif
