/* A program that grows by equal statements. */
#ifndef ISAMAP_TESTS_SCHEDULER_CHAIN_H
#define ISAMAP_TESTS_SCHEDULER_CHAIN_H

#include "ir/arena.h"

#include <stdio.h>

/* n products one after the other: each reads the temporary that the one before wrote. All of a
 * product lies in the first cache of a CPU, so no group of products is faster than one at a time. */
static inline char *chain_text(struct arena *a, int n) {
    struct text t = {0};
    text_printf(&t, "kernel chain(N=32) {\n  axes i: N, j: N, k: N\n  in X: f32[N, N]\n");
    for (int s = 0; s < n; s++) text_printf(&t, "  const W%d: f32[N, N]\n", s);
    for (int s = 0; s + 1 < n; s++) text_printf(&t, "  temp T%d: f32[N, N]\n", s);
    text_printf(&t, "  out Y: f32[N, N]\n");
    for (int s = 0; s < n; s++) {
        char from[16] = "X", to[16] = "Y";
        if (s > 0) snprintf(from, sizeof from, "T%d", s - 1);
        if (s + 1 < n) snprintf(to, sizeof to, "T%d", s);
        text_printf(&t, "  %s[i,j] = 0\n  %s[i,j] += %s[i,k] * W%d[k,j]\n", to, to, from, s);
    }
    text_printf(&t, "}\n");
    char *copy = arena_strdup(a, t.at);
    text_free(&t);
    return copy;
}

#endif
