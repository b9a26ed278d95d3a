/* Cases of rewrites, by name and with a program as text: of mapper_rewrites and mapper_refusals. */
#ifndef ISAMAP_TESTS_REWRITE_CASES_H
#define ISAMAP_TESTS_REWRITE_CASES_H

#include "mapper/rewrite_int.h"
#include "mapper_help.h"

#define TYPES "tests/data/machines/mapper/types.xml"

struct rewrite_case {
    const char *rewrite, *needle, *text; /* needle NULL: none in mind */
    int stmt;
};

#define MATMUL(a, b, sum)                                                                          \
    "kernel p() { in A: " a "[6,5]  in B: " b "[5,7]  out C: " sum                                 \
    "[6,7]  axes i: 6, j: 7, k: 5\n"                                                               \
    "  C[i,j] = 0; C[i,j] += " sum "(A[i,k]) * " sum "(B[k,j])\n}\n"
#define MOVED(role, type, begin)                                                                   \
    "kernel p() { " role " A: " type "[6,5]  in B: i8[5,7], b: i32[6]  out C: i32[6,7]\n"          \
    "  axes i: 6, j: 7, k: 5\n  C[i,j] = " begin "; C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n"
#define ZEROS(role, begin, factor)                                                                 \
    "kernel p() { " role " A: i8[6,5], b: i32[6]  in B: i8[5,7]  out C: i32[6,7]\n"                \
    "  axes i: 6, j: 7, k: 5\n  C[i,j] = " begin "; C[i,j] += i32(A[i,k]) * (i32(" factor ")\n}\n"
#define MATMUL_OF(n)                                                                               \
    "kernel p() { in A: i8[6,5]  in B: i8[5," n "]  out C: i32[6," n "]  axes i: 6, j: " n         \
    ", k: 5\n  C[i,j] = 0; C[i,j] += i32(A[i,k]) * i32(B[k,j])\n}\n"
#define CONV(type, result, h, w)                                                                   \
    "kernel p() { in I: " type "[2,3,9,10]  const F: " type "[4,3,3,3]  out O: " result "[2,4," h  \
    "," w "]\n"                                                                                    \
    "  axes n: 2, k: 4, p: " h ", q: " w ", c: 3, r: 3, s: 3\n  O[n,k,p,q] = 0\n"
#define TIMES_FILTER(type) " * " type "(F[k,c,r,s])\n}\n"

static inline const struct rewrite *named(const char *name) {
    for (int r = 0; rewrites[r]; r++)
        if (!strcmp(rewrites[r]->name, name)) return rewrites[r];
    fail_msg("no rewrite '%s'", name);
    return NULL;
}

static inline struct program *rewritten(const struct needles *needles, const struct rewrite_case *c,
                                 const struct program *p) {
    struct failure f = {.stmt = c->stmt,
                        .needle_op = -1,
                        .stmt_op = -1,
                        .needle_axis = -1,
                        .stmt_axis = -1,
                        .operand = -1};
    const struct needle *n = NULL;
    if (c->needle) {
        n = needle_of(needles, machine_instr(needles->machine, c->needle));
        assert_non_null(n);
    }
    return named(c->rewrite)->apply(p, &f, n);
}

static inline void show(const char *what, const struct rewrite_case *c, const struct program *q) {
    struct text t = {0};
    if (q) program_print(q, &t);
    print_error("%s: %s on\n%s\n%s\n", what, c->rewrite, c->text, t.at ? t.at : "");
    text_free(&t);
}

#endif
