/* From the program as written to the one that is scheduled: a chain of programs. Each step leaves
 * witnesses: which statements stand in the place of which, and by what laws. The checker
 * (ir/equal*.c) shares no code with what makes the steps. */
#ifndef ISAMAP_IR_CHAIN_H
#define ISAMAP_IR_CHAIN_H

#include "ir/program.h"

/* Laws by which one program stands for another. Those of floats that change roundings are used only
 * where a witness names them. */
#define LAW_TABLE(X)                                                                               \
    X(COPY, copy)             /* a read gives what was stored there */                             \
    X(REINDEX, reindex)       /* a bijection of iteration domains */                               \
    X(SPLIT, split)           /* a reduction in parts */                                           \
    X(NEUTRAL, neutral)       /* 0 + x, 1 * x */                                                   \
    X(COUNT, count)           /* n equal contributions are n times one */                          \
    X(COMMUTE, commute)       /* a . b = b . a */                                                  \
    X(ASSOCIATE, associate)   /* (a . b) . c = a . (b . c) */                                      \
    X(DISTRIBUTE, distribute) /* (a + b) * c = a * c + b * c */                                    \
    X(ABSORB, absorb)         /* 0 * x = 0, for finite x: padding with zeros */                    \
    X(WRAP, wrap)             /* arithmetic modulo 2^n, and casts of what fits */                  \
    X(DIGITS, digits)         /* shifts and masks as quotients and remainders of powers of two */  \
    X(MONOTONE, monotone)     /* functions of one integer that do not decrease are equal: compared \
                                 where they step */

enum law {
#define X(id, name) LAW_##id,
    LAW_TABLE(X)
#undef X
        LAW_COUNT_OF
};
extern const char *const law_name[LAW_COUNT_OF];
#define LAW(id) (UINT32_C(1) << LAW_##id)
/* Change no bit of a float. */
#define LAWS_EXACT                                                                                 \
    (LAW(COPY) | LAW(REINDEX) | LAW(SPLIT) | LAW(NEUTRAL) | LAW(COMMUTE) | LAW(WRAP) |             \
     LAW(DIGITS) | LAW(MONOTONE))
#define LAWS_REORDER (LAWS_EXACT | LAW(COUNT) | LAW(ASSOCIATE) | LAW(DISTRIBUTE))
#define LAWS_FINITE (LAWS_REORDER | LAW(ABSORB))

enum evidence {
    EVIDENCE_PROVED,
    EVIDENCE_SAMPLED,
    EVIDENCE_UNPROVED,
    EVIDENCE_REFUTED,
    EVIDENCE_COUNT
};
extern const char *const evidence_name[EVIDENCE_COUNT];

struct items {
    int from, to;
}; /* items from .. to - 1 at the top level */

struct verdict {
    enum evidence evidence;
    uint32_t laws;   /* used by a proof */
    int64_t samples; /* elements that were compared */
    int64_t nodes;   /* operations of values that a proof looked at: what it costs beside isl's */
    const char *why; /* not proved: the reason; static */
};

/* Do items `b` of program q leave the same as items `a` of program p, wherever anything else can
 * see it? By these laws; of integers all are allowed. What is not proved is not sampled here.
 * `steps` bounds isl's operations; 0: the default. */
struct verdict items_equal_by(const struct program *p, struct items a, const struct program *q,
                              struct items b, uint32_t laws, int64_t steps);

/* A shallow copy of a program becomes one in which the items begin with copies of those who make what they read and constants alone decide, in temporaries
 * of their own, whose names end with the suffix. False: it stays as it is, as there are none. */
bool items_with_makers(struct arena *, struct program *, struct items *, const char *suffix);

/* Single elements of what the items write, in both programs, from random values of what they read: over a field, where a sum of products is
 * exact; and as a machine computes, for integers and for programs that must keep every bit. Refuted, sampled, or unproved where even that
 * costs too much. */
enum sampling { SAMPLE_FIELD, SAMPLE_VALUES, SAMPLE_RANGES /* more of them: what temporaries can hold counts */ };
struct verdict items_sampled(const struct program *p, struct items a, const struct program *q, struct items b, enum sampling, struct text *why);

/* Does anything outside these items see the buffer? The buffer of q with the name and shape of buffer b of p; -1: none. */
bool item_touches(const struct program *, const struct item *, int buffer);
bool span_shows(const struct program *, struct items, int buffer);
int buffer_twin(const struct program *p, int b, const struct program *q);

/* ---- the chain ---- */

/* Items `after` of a step's program stand in the place of items `before` of the one before it, by laws: those of integers, and of floats the ones
 * named. Axes of the same name in both are the same axis; the checker finds the map between the others' domains, and proves it. */
struct witness {
    const char *by;                    /* what made it: rewrites, or a stage */
    uint32_t laws;
    enum sampling sampling;            /* how it may be sampled */
    bool may_sample;                   /* nothing but the rounding of floats may change: samples are something */
    struct items before, after;
};

struct chain_step {
    struct program *program;           /* owned; NULL in the last step: the program that the chain leads to */
    struct witness *witness; int nwitnesses;   /* by items, apart from one another; all between them is the same */
};

struct reason {                        /* why statements that write a buffer will be found changed */
    const char *by, *buffer;
    uint32_t laws;
    enum sampling sampling;
    bool may_sample;
};

struct chain {
    struct arena arena;
    struct program *written;           /* owned */
    struct chain_step *step; int nsteps, cap;
    struct reason *reason; int nreasons, reason_cap;   /* for the next step */
};

struct chain *chain_new(const struct program *written);           /* copies */
struct chain *chain_copy(const struct chain *);                   /* NULL: NULL */
void chain_free(struct chain *);
bool chain_opens(const struct chain *);                            /* statements alone: the same program when it is opened (ir/steps.h) */
void chain_reason(struct chain *, const struct reason *);         /* copies */
/* What changed since the last program, as one step; none where nothing did. What no reason is for was changed by the stage `by`. keep: the chain
 * keeps a copy; otherwise it is the last step. */
void chain_append(struct chain *, const struct program *, const char *by, bool keep);
void chain_prefix(struct chain *, const struct program *first, const struct reason *);   /* the chain begins earlier; reason.buffer NULL: all */

struct chain_report {
    enum evidence evidence;            /* the weakest of all */
    int nproved, nsampled, nunproved;  /* witnesses */
    uint32_t laws;
    int64_t samples;
    const char *by, *why;              /* of the weakest; NULL */
};

/* From the program as written to `last`. A chain that is NULL is unproved. what (NULL: not asked): a line for each witness. */
struct chain_report chain_verify(const struct chain *, const struct program *last, struct text *what);

bool items_alike(const struct program *p, const struct item *, const struct program *q, const struct item *);

#endif
