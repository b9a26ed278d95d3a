/* Random programs on machines, through the library's pipeline as `isamap run` and `isamap sim` go
 * through it: compiled, proved, simulated, executed where the machine is this CPU, and compared
 * with the interpreter. Trials run in a child process, many in each: what crashes or hangs is a
 * result like others. */
#ifndef ISAMAP_TESTS_RANDOM_TRIAL_H
#define ISAMAP_TESTS_RANDOM_TRIAL_H

#include "machines/machine.h"
#include "tests/random/random.h"

enum outcome {
    OUTCOME_MAPPED,   /* right, and an instruction has a part in it */
    OUTCOME_FALLBACK, /* right, without any */
    OUTCOME_REFUSED,  /* a message says why there is no schedule */
    OUTCOME_WRONG,    /* values differ, or a stage fails without a word */
    OUTCOME_UNSOUND,  /* the verifier refuses what the scheduler made */
    OUTCOME_CRASH,
    OUTCOME_HANG,
    OUTCOME_ILLEGAL, /* the generator's defect: the program is not right */
    OUTCOME_COUNT
};
extern const char *const outcome_name[OUTCOME_COUNT];
static inline bool outcome_fails(enum outcome o) {
    return o >= OUTCOME_WRONG;
}

struct bench {
    char file[100];          /* of a device: + its host, where that is not the smallest */
    struct machine *machine; /* owned */
    bool shipped; /* of machines/, or a port that somebody wrote: as what is shipped may be */
    bool run;     /* its code runs here */
    struct schemes native; /* types of its products */
};

enum { BENCHES = 256 };
/* All machine files of machines/ and tests/data/machines; devices beside a host without
 * instructions and beside one that has some. `only`: those whose name has it, or NULL. How many. */
int benches_load(struct bench *, const char *only);
void benches_free(struct bench *, int n);
void bench_types(struct bench *); /* finds `native` */

struct trial {
    const struct bench *bench;
    const char *text; /* NULL: the tape's program */
    struct tape tape;
    uint64_t seed; /* chooses options and data */
    /* what came of it */
    enum outcome outcome;
    bool unproved;
    char reason[160]; /* one line */
    char *messages;   /* owned; or NULL */
    double seconds;   /* of compilation */
    struct random_info info;
};

/* Options of the command that the seed stands for, "" most often: in the form of a command's. The
 * environment's ISAMAP_OPTIONS stands for all. */
const char *trial_options(uint64_t seed);
void trial_here(struct trial *);                                  /* in this process */
void trials_run(struct trial *, int n);                          /* in child processes */
char *trial_program(const struct trial *, struct random_info *); /* from the heap */
/* The tape of a failing trial becomes one of a small program that fails with the same outcome and a
 * like reason. */
void trial_shrink(struct trial *, int tries);

#endif
