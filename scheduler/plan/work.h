/* One compilation: the program as scheduled, tasks, homes, nests, and the schedule under construction (docs/scheduling.md). */
#ifndef ISAMAP_SCHEDULER_PLAN_WORK_H
#define ISAMAP_SCHEDULER_PLAN_WORK_H

#include "ir/program.h"
#include "scheduler/scheduler.h"
#include "scheduler/plan/limits.h"

struct copies;
struct edges;
struct follower;
struct home;
struct homes;
struct joined;
struct moves;
struct nest;
struct nest_group;
struct plan;
struct search;
struct task;
struct uses;
struct val;

struct room { /* of searches that are over, for the next one */
    struct search *unused;
    struct copies *copies;
};

struct work {
    struct arena *arena; /* scratch, lives during the compilation */
    const struct machine *m;
    const struct edges *edges; /* between its queues (graph.h) */
    const struct cover *cover;
    struct decider *decider;
    const struct scheduler_options *options;
    struct diags *diags;
    bool refused; /* sums could be mapped otherwise: this cover is given up */
    int emitted;  /* the statement whose nest is being emitted */
    struct schedule *s;
    struct program *p; /* s->program */
    struct task *task;
    int ntasks;
    int *task_of; /* for each statement: its task; -1: fallback, -2: executed by another as its init
                   */
    struct home *home;  /* for each buffer: those that are decided */
    struct homes *tried; /* a candidate's own, in their place (work_home); NULL */
    int *order, norder; /* statements in the order of execution */
    bool *in_prepare;   /* for each statement */
    int cap_buffers, cap_homes, cap_stmts, cap_tasks_of, cap_prepare, cap_order; /* rewrite.c */
    int cap_places;    /* of the schedule's */
    int64_t homes_end; /* bytes of the home memory that places take until live ranges are known */
    int changes;       /* of statements and what they access */
    struct uses *uses; /* of buffers (uses.c) */
    struct program **finishing; /* semantics of moves that finish results: freed at the end */
    int nfinishing, finishing_cap;
    struct nest *nest;
    int nnests, cap_nests;
    struct follower *follower; /* of all nests, one after the other */
    int nfollowers;
    struct nest_group *group;
    int ngroups, cap_groups;
    int *group_of; /* for each statement at which a part of the run stands: 1 + its group; 0 */
    struct scope *scope; /* recurrences; their axes are the program's last */
    struct val *step;    /* [nscopes] while the tree is built: the value of the scope's axis */
    int nscopes;
    bool keep_nothing;
    int64_t (*kept_bytes)[MAX_MEMORIES]; /* [nscopes] copies that stay over all steps */
    int fallback;  /* machine.fallback; -1 */
    double on_host; /* cycles of the fallback's statements, beside a device */
    struct planned planned; /* of these and the nests planned so far, as the model has their best plans */
    double alone[MAX_QUEUES]; /* the least that the instructions of these take by themselves */
    struct known_searches *searches; /* that were made, for this nest or another (search_known.h) */
    struct effort *effort;           /* theirs */
    struct room *room;
    struct copies *copies; /* of the nest being planned; NULL */
    int64_t capacity[MAX_MEMORIES];
    uint64_t counts[MAX_QUEUES]; /* users for whom the syncs with the queue count tokens (counts_tokens) */
    /* The driver's answer: cycles of the nest alone with this plan, on the clock; negative: not known. */
    double (*time)(const struct work *, const struct moves *, const struct nest *, const struct plan *, int64_t *steps);
    struct joined *joined; /* statements that one instruction executes (join.c) */
};

/* The same for a candidate with homes of its own. */
static inline struct work work_with(const struct work *w, struct homes *tried) {
    struct work as = *w;
    as.tried = tried;
    return as;
}

/* That messages name. */
static inline const char *work_file(const struct work *w) {
    return w->p->source.file ? w->p->source.file : w->p->name;
}

/* The answer to a question: which of n candidates. `otherwise`: where there is nobody to ask. */
static inline int work_ask(const struct work *w, enum question_kind kind, const char *subject,
                           const struct candidate *c, int n, int otherwise) {
    struct question q = {kind, subject, n, 0, c, NULL};
    return w->decider ? decide(w->decider, &q) : otherwise;
}

/* Of `many` slots those that the options allow. */
static inline int slots_most(const struct work *w, int many) {
    int most = w->options ? w->options->contexts : 0;
    return most > 0 && most < many ? most : many;
}

#endif
