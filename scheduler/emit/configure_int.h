/* Inside the passes over a finished tree: what instructions need of states, and operands that
 * remain in a unit. */
#ifndef ISAMAP_SCHEDULER_EMIT_CONFIGURE_INT_H
#define ISAMAP_SCHEDULER_EMIT_CONFIGURE_INT_H

#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/work.h"

enum { MAX_SLOTS = 16, MAX_WORDS = 1024 };

/* needs.c */
/* The fields of a need at an issue; false: an expression that schedules do not have. */
bool need_fields(struct work *, const struct issue_node *, const struct need *,
                 const struct sx **out);

/* What places a state in the tree. */
struct placer {
    struct work *w;
    int state, configure, nfields;
    uint64_t users;
    bool failed;
    int nslots, nwords;    /* of a state with slots; of words of a memory: */
    const struct node *at; /* the node that is being configured */
    int stmt;              /* of a product in the block, where that node has none; -1 */
    int only;              /* only words of this place count; -1: all */
    bool *known;           /* variables of unrolled loops around */
    int64_t *value;
};
bool placer_fail(struct placer *, int stmt, const char *what); /* reports why, once; false */

/* configure_slots.c: states with slots. configure_words.c: states of a memory's words. False after
 * reporting. */
bool configure_slots(struct work *, int state, int configure, struct nodes *);
bool configure_words(struct work *, int state, int configure, struct nodes *);
bool configure_objects(struct work *, int state, int configure, struct nodes *prepare,
                       const struct nodes *run);

/* configure.c: what they share */
const struct sx *sx_known(struct arena *, const struct sx *, const bool *known,
                          const int64_t *value); /* with the values of some variables */
bool fields_same(const struct sx *const *, const struct sx *const *, int n);
bool binds(const struct node *, int var); /* a loop in the node */
bool needs_state(const struct work *, const struct node *, int state);
struct node configure_node(struct work *, int configure, struct state_value *, int n);
/* The configure with the syncs that order it with the queues that use the state. */
void add_configure(struct work *, struct nodes *, struct node, uint64_t users);
uint64_t state_users(const struct work *, const struct node *, int n, int state);
/* The first sums whose issues there need it; -1: none. */
int state_stmt(const struct work *, const struct node *, int n, int state);
/* False. Sums that can be mapped otherwise are (task_refuse); else an error. stmt: whose issue wants it. */
bool configure_error(struct work *, int state, int stmt, const char *what);

/* ---- configure_collect.c, configure_move.c: words of a memory ---- */

struct words { /* value of each word; NULL: any */
    const struct sx **field[MAX_WORDS];
};

/* Adds what the nodes need. False: a word has two values. */
bool collect_all(struct placer *, const struct node *, int n, struct words *);
bool words_fail(struct placer *, const char *what); /* of what the node at hand wants; false */
bool places_mentioned(const struct node *, int n, const struct machine *, int place);
void places_settle(struct placer *, const struct nodes *run);

#endif
