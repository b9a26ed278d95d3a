/* Every choice of the compiler is one question put to one interface (ISA Mapper §4). Legality is the asker's: an approach only picks
 * among legal candidates, so a bad approach gives a slow program, never a wrong one. */
#ifndef ISAMAP_IR_CHOICE_H
#define ISAMAP_IR_CHOICE_H

#include "ir/diag.h"
#include <stdbool.h>
#include <stdint.h>

#define QUESTION_TABLE(X)                                                                          \
    X(REWRITE, rewrite) X(MAPPING, mapping) X(COVER, cover) X(FUSION, fusion) X(LAYOUT, layout)    \
    X(TILE, tile) X(ORDER, order) X(UNIT, unit) X(COPY, copy) X(PATH, path) X(EVICT, evict)        \
    X(RESIDENCY, residency) X(PARTS, parts)

enum question_kind {
#define X(id, name) QUESTION_##id,
    QUESTION_TABLE(X)
#undef X
        QUESTION_COUNT
};
extern const char *const question_name[QUESTION_COUNT];

struct candidate {
    const char *text;       /* stable name: what a trace records */
    double cost;            /* analytic, cycles; lower is better */
    const double *feature;  /* question.nfeatures values, or NULL */
};

struct question {
    enum question_kind kind;
    const char *subject;    /* what it is about: "stmt 1", "loop order of nest 0" */
    int ncandidates, nfeatures;
    const struct candidate *candidate;
    const bool *alike;     /* ncandidates: one before it leads to the same in every schedule; NULL: none */
};

/* A space: integer variables moved in by approaches that construct or wander. cost() is infinite where not legal. */
struct space {
    enum question_kind kind;
    const char *subject;
    int nvars;
    const char *const *var;             /* names */
    const int *nvalues;                 /* for each variable, its values ascending */
    const int64_t *const *value;
    double (*cost)(void *user, const int *at);   /* at[v]: index into value[v] */
    void *user;
    const int *start;                   /* a legal point */
};

struct approach {
    const char *name, *doc;
    void *(*open)(uint64_t seed);
    void (*close)(void *);
    int (*choose)(void *, const struct question *);             /* index of the candidate */
    void (*move)(void *, const struct space *, int *at);        /* in: a legal start; out: the point picked, legal */
    void (*outcome)(void *, double cost);                       /* cost of the whole, afterwards; may be NULL */
    bool by_cost;                                               /* the same question has the same answer: one of the cheapest */
};

/* One compilation's answers: asks the approach, records; or replays a trace exactly, whoever made it. */
struct decider;
struct decider *decider_open(const struct approach *, uint64_t seed);
struct decider *decider_replay(const char *file, struct diags *);      /* NULL after reporting */
/* The file's answers, each to the first question of its kind and subject, in any order; the approach answers all others. */
struct decider *decider_guide(const char *file, const struct approach *, uint64_t seed, struct diags *);
void decider_close(struct decider *);
int decide(struct decider *, const struct question *);                  /* index; on a trace that does not fit: reports once, takes 0 */
void decide_point(struct decider *, const struct space *, int *at);

/* ---- the same compilation again, with other prices ---- */
/* What an approach that goes by cost was asked about statements (cover, mapping, fusion), where there was a choice. */
struct put_question { enum question_kind kind; const char *subject; int n, answer; const char **text; double *cost; bool *alike; };
const struct put_question *decider_asked(const struct decider *, int *n);      /* none: the approach does not go by cost */
/* From now on this candidate counts as cheaper than the others. How many such there are before it. */
int decider_prefer(struct decider *, enum question_kind, const char *subject, const char *text);
int decider_preferred(const struct decider *);                          /* how many */
void decider_again(struct decider *, int keep);                         /* nothing was asked; the first `keep` that were preferred are still */
bool decider_by_cost(const struct decider *);                           /* the approach gives all answers, and goes by cost */
/* What was answered and preferred so far, and back to it, whatever was asked in between. */
struct decider_mark { struct answer *answer, *guide, *preferred; int n, npreferred; };
struct decider_mark decider_mark(struct decider *);
void decider_back(struct decider *, const struct decider_mark *);
void decider_outcome(struct decider *, double cost);                   /* tells the approach the cost of the whole */
bool decider_save(const struct decider *, const char *file, struct diags *);
bool decider_failed(const struct decider *, struct diags *);            /* a replayed trace did not fit: reports file:line */

#endif
