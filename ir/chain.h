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
    const char *why; /* not proved: the reason; static */
};

/* Do items `b` of program q leave the same as items `a` of program p, wherever anything else can
 * see it? By these laws; of integers all are allowed. What is not proved is not sampled here.
 * `steps` bounds isl's operations; 0: the default. */
struct verdict items_equal_by(const struct program *p, struct items a, const struct program *q,
                              struct items b, uint32_t laws, int64_t steps);

/* Single elements of what the items write, in both programs, from random values of what they read: over a field, where a sum of products is
 * exact; and as a machine computes, for integers and for programs that must keep every bit. Refuted, sampled, or unproved where even that
 * costs too much. */
enum sampling { SAMPLE_FIELD, SAMPLE_VALUES, SAMPLE_RANGES /* more of them: what temporaries can hold counts */ };
struct verdict items_sampled(const struct program *p, struct items a, const struct program *q, struct items b, enum sampling, struct text *why);

/* Does anything outside these items see the buffer? The buffer of q with the name and shape of buffer b of p; -1: none. */
bool span_shows(const struct program *, struct items, int buffer);
int buffer_twin(const struct program *p, int b, const struct program *q);

#endif
