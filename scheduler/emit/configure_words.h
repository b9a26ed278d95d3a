/* Inside configure_words.c and configure_move.c. */
#ifndef ISAMAP_SCHEDULER_EMIT_CONFIGURE_WORDS_H
#define ISAMAP_SCHEDULER_EMIT_CONFIGURE_WORDS_H

#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/work.h"

struct words { /* value of each word; NULL: any */
    const struct sx **field[MAX_WORDS];
};

struct placer {
    struct work *w;
    int state, configure, nwords, nfields;
    const struct node *at; /* the node that is being configured */
    int only; /* only words of this place count; -1: all */
    uint64_t users;
    bool *known; /* variables of unrolled loops around */
    int64_t *value;
    bool failed;
};

/* Adds what the nodes need. False: a word has two values. */
bool collect_all(struct placer *, const struct node *, int n, struct words *);
/* Reports why, once. False. */
bool placer_fail(struct placer *, const char *what);
bool places_mentioned(const struct node *, int n, const struct machine *, int place);
void places_settle(struct placer *, const struct nodes *run);

#endif
