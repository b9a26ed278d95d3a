/* Two programs with the same declarations, for tests of the checker of program changes. */
#ifndef ISAMAP_TESTS_EQUAL_HELP_H
#define ISAMAP_TESTS_EQUAL_HELP_H

#include "mapper_help.h"

struct equal_case {
    const char *declarations, *before, *after;
    uint32_t laws;
    bool proved;
};

static inline struct program *program_of(const struct equal_case *c, const char *body) {
    struct text t = {0};
    const char *open = *c->declarations == '(' ? "" : "() { ";
    text_printf(&t, "kernel p%s%s %s\n}\n", open, c->declarations, body);
    struct program *p = help_program("p", t.at);
    text_free(&t);
    return p;
}

#endif
