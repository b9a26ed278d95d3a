/* Patterns of the iterations of a loop (pattern.c), for the symbolic walk (induct.c). */
#ifndef ISAMAP_SCHEDULER_VERIFY_PATTERN_H
#define ISAMAP_SCHEDULER_VERIFY_PATTERN_H

#include "scheduler/verify/sym.h"

/* A loop while it is walked: `n` times `group` iterations from iteration `first` on. */
struct trips {
    const struct loop_node *loop;
    struct affine lo;
    int64_t n, first, group;
    int64_t begin; /* of the part whose iterations are alike */
    bool misled; /* by a guess */
    bool hasty;  /* there may be no more iterations to wait for */
    bool lost; /* the last induction held, and was given up for what it loses */
    struct frame frame;
    struct known start, before, now; /* before the loop; before and after the last iteration */
    struct regions spared; /* by a guess: its first iteration does without them */
};

/* Lines through what held before iteration `from` and before the one before, in that counter. */
struct pattern {
    int64_t from;
    int counter;
};
/* What an induction found of a loop. old: regions that were there before the loop, and stayed. */
struct learned {
    struct regions inv;
    int counter, nold;
    bool *old;
};

/* What visits of a loop found, for a guess of the next one; there is one for each kind of visit,
 * such as first blocks and later ones. r: before its general iteration the regions that were not
 * there before the loop; spare: [r.n] the first iteration did without it.
 * at: where the variables of the loops around stood; by: how much each number grows with each of
 * them, in its constant, where that is known. */
enum { MOST_AROUND = 16, GUESSES = 8 };
struct guess {
    const struct loop_node *loop;
    int64_t first, group;
    struct regions r, by[MOST_AROUND];
    struct lin at[MOST_AROUND];
    int naround, var[MOST_AROUND];
    bool known[MOST_AROUND], *spare;
};

/* The patterns that it had lately: visits may take turns, as first and later blocks do. turn: the
 * iteration as far as which the last one went before an answer changed; -1: it went to the end. */
struct history {
    const struct loop_node *loop;
    struct learned lately[4];
    int n, next;
    int64_t first, group; /* of the iterations that were taken together */
    int64_t turn;
    bool missed; /* at the last visit it had none of them */
    bool loses; /* whatever pattern it has loses something that iterations leave */
    struct guess *guess; /* [GUESSES], the newest takes the place of the oldest; NULL: none */
    int next_guess;
    int failed; /* guesses in a row that were wrong */
    int visits; /* with an induction that held */
};

/* The loop was met before, with as many iterations taken together. */
bool pattern_known(const struct sym *, const struct trips *);
/* In the place of pattern `of`, or, if that is -1, of the oldest. */
void pattern_learn(struct sym *, const struct trips *, int of, const struct regions *inv, int counter);
/* Which of its patterns the loop has again after its first iteration; -1: none. */
int pattern_recall(struct sym *, const struct pattern *, const struct loop_node *, const struct known *before, const struct known *now,
                   struct regions *out);
/* False: an executed instance fits no pattern. */
bool pattern_find(struct sym *, const struct pattern *, const struct known *before, const struct known *now, struct regions *out);
/* Some number of it changes from one iteration to the next. */
bool pattern_moves(const struct region *, int counter);
/* The general iteration left something that the pattern does not know before the next one. */
bool pattern_loses(struct sym *, const struct trips *, const struct regions *inv, int counter);
/* In the place of region k, which the general iteration did not leave whole, the parts of it that each iteration left. */
void pattern_parts(struct sym *, struct regions *inv, int k, int counter);
void history_free(struct history *);

/* guess.c: by an induction that held. Then before a visit what holds before its iterations, by one of the guesses that holds before the first; false: none. */
void guess_learn(struct sym *, const struct trips *, const struct regions *inv, int counter);
bool guess_find(struct sym *, struct trips *, int counter, struct regions *inv);
void guesses_free(struct history *);

#endif
