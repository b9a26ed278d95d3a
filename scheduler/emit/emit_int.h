/* Inside emission: lists of nodes, and what holds contain while the tree is built in program order.
 */
#ifndef ISAMAP_SCHEDULER_EMIT_EMIT_INT_H
#define ISAMAP_SCHEDULER_EMIT_EMIT_INT_H

#include "scheduler/emit/emit.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"

struct nodes {
    struct node *at;
    int n, cap;
};

struct marks { /* of a section: the first node of each part, before which all queues have met */
    int *at, n, cap;
};

enum { WHOLE = -1 }; /* held.led: before all loops of the nest */
struct held {  /* what is in a place's current slot */
    int place; /* -1: nothing yet */
    int slots, fill_by, drain_by;
    int queue; /* 1 + that of its fills, for which syncs are planned; 0: none is */
    bool used;
    int led; /* of a chain's operand: it is filled before so many loops over grains, or before all of the nest's; 0: in them */
    struct region whole;
    struct slot slot;
};

enum { MAX_FILLS = MAX_OPERANDS * (MAX_VIA + 1) };
struct filling { /* of one hold: the operand's in the memory at this place of its route */
    const struct opnd *stop;         /* the operand as it lies in that memory */
    int operand, level, queue, user; /* user: of the fills (or instructions) that read it */
    int completes, user_completes;   /* syncs at which theirs are done; -1 */
    bool keeps;                      /* a ring, or pinned in part */
    const struct hold *hold;
    struct held *held, *outer; /* outer: the copy that it is filled from; NULL: home */
};
struct flow { /* all fills by one queue for another: the deepest set the pace */
    int queue, user, depth, credits, bracket;
    bool war, lends; /* a slot must be free first; its credit may last until it is filled again */
    bool behind; /* the core's results leave on the same queue behind the next step's fills (ahead.c) */
    struct edge there, back;        /* to the user, and from it */
    struct signal channel, release; /* on these: one for each slot where a sync holds few tokens */
    struct signal apart;            /* to the user, of fills outside of its step and of pieces */
};
struct way_out { /* copies between a result's memory and home, from home on */
    struct held via[MAX_VIA];
    int completes[MAX_VIA + 1]; /* sync at which the move is done; -1 */
    int queue[MAX_VIA + 1], n; /* of the move that leaves via[k]; the last: the result's own memory */
    bool collects; /* of a chain: all grains of a tile wait in the copy nearest to the result */
};

struct along { /* of an axis: [lo, lo + size) */
    struct val lo, size;
    int64_t tile, extent; /* where the size is no number: modulo `tile` it is 0 or what `extent` is */
};

struct emitter {
    struct work *w;
    const struct moves *moves;
    const struct nest *nest;
    const struct task *t; /* the core; NULL */
    const struct nest_group *group; /* of which this emitter walks the shared loops; NULL */
    struct emitter **team;          /* then: of each member that is a nest in them; NULL */
    struct along at[MAX_AXES]; /* of each axis: what the loops around are at */
    struct held held[MAX_OPERANDS]; /* of the core */
    const struct held *stay; /* [MAX_OPERANDS] of its operands that stay over all steps of a recurrence; NULL */
    struct held via[MAX_OPERANDS][MAX_VIA]; /* outer copies of what it reads */
    struct filling fill[MAX_FILLS]; /* along each operand's route from home on */
    int nfills;
    struct flow flow[MAX_FILLS]; /* of these fills, but for those that hardware keeps in step */
    int nflows;
    struct way_out *out; /* [1 + nchain] results on their way home: the core's, then the chain's */
    struct held (*own)[MAX_OPERANDS]; /* of what follows the core: the chain, or what changes its result where it lies */
    struct made {
        int buffer;
        struct held *held;
    } *made; /* [nmade] results that are there now */
    int nmade;
    struct { /* of task_loops */
        const struct task *task;
        struct held **held;
    } inner;
    int exec, store; /* queues; store -1: nothing is drained */
    int chain; /* the queue of what follows the core: that of the core, or one that hears of each result from it and tells it when its slot is free */
    int exec_completes, store_completes; /* syncs at which their results are done; -1 */
    const char *unmoved;      /* a buffer whose tile no move brings; NULL */
    int load, load_completes; /* queue that brings what the sums start with, where nothing keeps it in step; -1 */
    bool load_ahead;          /* the storing queue gives its credits to that one */
    bool *shared;    /* [token_numbers]: credits could be taken for other tokens */
    bool drained;    /* the core's own result goes home */
    int root; /* depth outside of which results have their credits */
    bool behind; /* inside a loop where they leave behind the next fills: no slot is given back (ahead.c) */
    bool inside; /* they have them behind the fills of that depth, whose tokens are the same */
    int parts_depth; /* loops around the pieces in which copies are filled; -1: they are filled whole */
    struct along from[MAX_OPERANDS][MAX_AXES]; /* what of each axis a copy covers, then */
    struct along begin[MAX_OPERANDS][MAX_AXES]; /* the same where a ring, or a pinned range, begins */
    struct val outset[MAX_LOOPS]; /* of each loop of the plan around: where its axis stood before it */
    struct val due[MAX_OPERANDS]; /* 0: the piece that is wanted now is there */
    bool early[MAX_FILLS]; /* flows whose fills at the current tile stand a step ahead (ahead.c) */
    struct { /* of pieces that are filled a step ahead (ahead.c) */
        int depth, step;    /* loops around the copies, 0: none are; which step of the innermost of them */
        bool last;          /* nothing comes behind it */
    } ahead;
    enum { ASKS = 1, ASKS_NOT } asks; /* in the bodies of a loop that stands twice (ask.c); 0: it stands once */
    bool failed;
    bool turned; /* of a group: its members have been written down once */
    bool split; /* some loops may be empty: over whole tiles only, or over the tail */
};

/* place.c */
int place_append(struct work *, const struct place *); /* its number */
/* The buffer's home: one behind the other until live ranges are known, each placed when it is first asked for. -1: it has none, or (reported)
 * there is no room. */
int home_place(struct work *, int buffer);
void homes_forget(struct work *); /* of all buffers */
bool homes_place(struct work *);  /* of all buffers. False after reporting */
int add_place(struct work *, int buffer, int memory, int64_t align, int64_t *at, int64_t bytes,
              int slots);

/* The nest cannot be emitted: its sums are mapped otherwise where they can be, else it is an error.
 * False. */
bool emit_refuse(struct work *, const char *why);
/* An error, if nothing else is said yet. False. */
bool emit_fail(struct work *, const char *message);

/* states.c: states are set where they must change. Reports and returns false. */
bool configures_place(struct work *, struct nodes *prepare, struct nodes *run);
/* stay.c: what a recurrence's body stores and loads again stays in its memory, and steps overlap; the marks move with
 * their nodes. False after reporting. */
bool values_stay(struct work *, const struct moves *, struct nodes *run, struct marks *parts);
/* remain.c: operands that stay in a unit are taken from there. */
void remains_place(struct work *, struct nodes *run);

/* node.c */
void nodes_add(struct work *, struct nodes *, struct node);
void nodes_append(struct work *, struct nodes *, const struct nodes *more);
/* The host executes all of the statement, until it is told a part of an axis. */
struct fallback_node *nodes_host(struct work *, struct nodes *, int stmt);
void host_part(struct work *, struct fallback_node *, int axis, struct val lo, struct val size);
/* The body as often as `times` says, which is 0 or 1; in a loop of that variable where it is no
 * number. */
void nodes_when(struct work *, struct nodes *, struct val times, const char *var,
                struct nodes *body);
int new_var(struct work *, const char *name);
void add_sync(struct work *, struct nodes *, int queue, bool push, int sync);
void add_rotate(struct work *, struct nodes *, int place);
/* The first queue gives, or the second takes, on that channel (its sync is the edge's). */
void edge_give(struct work *, struct nodes *, const struct edge *, struct signal channel);
void edge_take(struct work *, struct nodes *, const struct edge *, struct signal channel);
struct signal edge_plain(const struct work *, const struct edge *); /* the channel of what tells of results */
/* Both; by way of other queues where the two have no sync. False: there is no way. */
bool edge_tell(struct work *, struct nodes *, const struct edge *, struct signal channel);
/* On the channel of results. */
bool edge_pass(struct work *, struct nodes *, const struct edge *);
/* Once, outside the steady flow: on a channel of its own, where there are as many as needed. */
void signal_apart(struct work *, struct nodes *, const struct edge *, bool bracket);
/* from gives, to takes, along the shortest path of tokens; nothing where hardware interlocks.
 * False: no path. */
bool add_signal(struct work *, struct nodes *, int from, int to);
/* Before signals are folded: none of these loops may be empty. */
void nodes_hardware(struct work *, struct node *, int n);
/* All queues of `before` finish before any of `after` goes on: to the root queue, and from it. */
bool add_barrier(struct work *, struct nodes *, uint64_t before, uint64_t after, int root);
void nodes_fold(struct work *, struct nodes *);
struct node loop_node(struct work *, int var, struct val lo, struct val hi, int64_t step,
                      enum loop_kind, int axis, struct nodes *body);
uint64_t nodes_queues(const struct work *, const struct node *, int n);

/* tokens.c */
/* What one queue does for another, and the syncs at which theirs is done; -1. */
struct link {
    int from, completes, to, to_completes;
};
struct edge link_there(const struct emitter *, struct link); /* it is done, for who uses it */
struct edge link_back(const struct emitter *, struct link);  /* it was used, for who does it again */
struct link fill_link(const struct filling *);               /* for whom it is filled */
struct link hand_link(const struct emitter *);               /* results, for the queue of what follows them */
struct link result_link(const struct emitter *);             /* results, for the queue that stores them */
struct link start_link(const struct emitter *); /* the same of the queue that brings what they start with */
struct link way_link(const struct way_out *, int k); /* from the k-th memory's inner neighbour */
int within_depth(const struct machine *, int credits, const struct edge *); /* as its sync holds */
/* Tokens of each sync and pair of queues that it joins are counted apart: which of all these. */
size_t token_number(const struct emitter *, const struct edge *);
size_t token_numbers(const struct emitter *);
/* Do the queues that fill and store tell the core by the same tokens? Then none may be left over for the other to take. */
bool same_tokens(const struct emitter *);
/* Finds the syncs of a nest's credits that others take from too; when its queues are known. */
void tokens_share(struct emitter *);
/* Are credits on this edge taken as soon as they are given? Then nobody else can take them. */
bool ways_same_tokens(const struct emitter *, int user); /* fills for that queue, and results that it takes on, share tokens */
bool way_in_step(const struct emitter *, const struct way_out *, int k); /* slots of its k-th memory are not lent */
bool in_step(const struct emitter *, const struct edge *back);
/* Results that share tokens with fills have credits between two of them, where fills are rarer. */
void results_root(struct emitter *);

/* move.c: nodes that fill (or drain) `part` of a hold, from (to) the outer copy on the operand's route, which holds its
 * padding too, or home (outer NULL). Reports and returns false when no move fits after all. */
bool emit_transfer(struct work *, const struct moves *, struct nodes *, int buffer,
                   const struct opnd *, const struct held *, const struct held *outer,
                   const struct region *part, bool fill);

/* An issue of the move with its least sizes, flags of 0, strides of neighbours, and no addresses yet. */
struct issue_node *issue_of_move(struct work *, const struct move *);

/* Queue of the move that would do it, along the operand's route; -1: none; and the sync at which it is done. */
int transfer_queue(struct work *, const struct moves *, int buffer, const struct opnd *,
                   const struct region *, bool fill, int by, int *completes);

/* held.c */
void region_here(struct emitter *, const struct task *, const struct opnd *, const struct access *,
                 struct region *); /* at the current tile */
void renew_place(struct emitter *, struct held *);
bool hold_fill(struct emitter *, struct nodes *, const struct task *, const struct opnd *,
               const struct access *, struct held *, const struct held *outer);
/* The same for the chain, whatever queue it goes to: that one waits until the slot's last use is over, the chain until the data is there. */
bool fill_in_step(struct emitter *, struct nodes *, const struct task *, const struct opnd *, const struct access *, struct held *);

/* lead.c: before so many loops over a chain's grains, of which those over these axes turn, fills of what none of them moves; and after them */
struct several { int n, axis[MAX_AXES]; int64_t grain[MAX_AXES]; };
bool chain_lead(struct emitter *, struct nodes *, const struct several *, int loops);
void chain_lead_end(struct emitter *, int loops);
bool chain_whole(struct emitter *, struct nodes *); /* before the nest's loops, fills of what comes whole */

/* grain.c */
typedef bool (*body_fn)(struct emitter *, struct nodes *, int);
bool emit_loop(struct emitter *, struct nodes *, int axis, int64_t tile, bool split, bool unroll,
               body_fn, int arg);
void emit_issue(struct emitter *, struct nodes *, const struct task *, struct held **held);
bool grain_loops(struct emitter *, struct nodes *,
                 int k); /* the chain over the current tile, from its axis k on */
/* All issues of a statement that starts the core's result, or changes it where it lies, over its tile. */
bool task_loops(struct emitter *, struct nodes *, const struct task *, struct held **);

/* ask.c: behind a step what a later one reads is asked for, where lines come for the first time: there the loop over
 * the steps has a body of its own. */
void asks_emit(struct emitter *, struct nodes *, int depth);
bool asks_split(const struct emitter *, int depth); /* there is such a loop at this depth, and its bodies are not being emitted */
bool asks_steps(struct emitter *, struct nodes *, int depth, body_fn);

/* recur.c: fills what stays over the steps of an outermost recurrence. stay[nest][operand]: where. */
bool recur_prime(struct work *, const struct moves *, int scope, struct held **stay, struct nodes *);
/* The same for one nest that is looked at alone: what stays is taken to be there. */
bool recur_primed(struct work *, const struct moves *, int nest, struct held **stay);

/* emit.c */
/* stay: copies that recur_prime filled. */
bool emit_nest(struct work *, const struct moves *, int nest, struct held **stay, struct nodes *out);
/* core.c */
bool nest_turn(struct emitter *, struct nodes *); /* one nest inside the loops that it shares */

/* result.c */
void result_load(struct emitter *); /* finds which queue brings what the sums start with */
bool result_start(struct emitter *, struct nodes *, int operand, int depth);
bool result_finish(struct emitter *, struct nodes *, int operand, int depth);
void nest_credits(struct emitter *, struct nodes *, bool give); /* of its results, at the root */

/* out.c */
/* Slots in each memory, for `r`; `own`: what leaves the result's own memory at a time. */
void way_place(struct emitter *, const struct opnd *, int buffer, const struct region *own,
               const struct region *r, int by, struct way_out *, int64_t *at);
/* Around the grains of a tile: copies that collect their results begin, or all of the tile goes home. */
bool ways_collect(struct emitter *, struct nodes *, bool begin);
bool way_begin(struct emitter *, struct nodes *, const struct opnd *, int buffer,
               const struct held *, const struct region *, struct way_out *); /* out of its own memory */
bool way_home(struct emitter *, struct nodes *, const struct opnd *, int buffer,
              const struct region *, struct way_out *); /* and on */
/* On which the slots of a result are given back: one for each where a sync holds few tokens, and no other result takes them. */
/* Of a result's slots: of those that are given back, and that are full. */
struct signal credit_channel(const struct emitter *, const struct edge *there, const struct edge *back, const struct held *);
struct signal told_channel(const struct emitter *, const struct edge *there, const struct edge *back, const struct held *);
/* Do the chain's results have credits of the storing queue? */
bool chain_runs_ahead(const struct emitter *);
void ways_credits(struct emitter *, struct nodes *, bool give); /* of all results, around the nest */

/* fill.c */
bool fill_hold(struct emitter *, struct nodes *, const struct filling *);
void flows_find(struct emitter *); /* when the nest's queues and places are known */
bool fills_before(struct emitter *, struct nodes *); /* what all instances of a grid share: whole, before their loops */
bool fills_open(struct emitter *, struct nodes *, int depth);  /* credits, fills and their tokens */
void fills_close(struct emitter *, struct nodes *, int depth); /* releases, credits back */
/* A flow: one queue's fills for another (its number among them). Which one's fills at this depth may stand a step
 * ahead, as the plan says; -1: none. Then apart from what uses them: the fills of a step, with a credit and the token
 * that they are there; turning the copies' slots, on or back. */
int fills_step(const struct emitter *, int depth);
bool pieces_begin(struct emitter *, struct nodes *, int depth); /* the pieces of the first step of loop[depth] */
bool fills_begin(struct emitter *, struct nodes *, int flow);
void fills_wait(struct emitter *, struct nodes *, const struct flow *); /* the fills of the current step are there */
void fills_turn(struct emitter *, struct nodes *, int flow, bool back);

/* ahead.c: a loop in which each step's fills stand before the instructions of the step before. */
int ahead_at(const struct emitter *, int depth); /* the flow; -1: no such loop */
/* The loop around registers whose pieces are filled a step of the loop inside ahead of their first uses, and those
 * steps, one after the other. */
bool pieces_ahead_at(const struct emitter *, int depth);
bool emit_pieces_ahead(struct emitter *, struct nodes *, int depth, body_fn);
bool emit_piece_steps(struct emitter *, struct nodes *, int depth, body_fn);
bool emit_ahead(struct emitter *, struct nodes *, int depth, int flow, body_fn);
bool emit_behind(struct emitter *, struct nodes *, int depth, int flow, body_fn); /* where results leave behind these fills */

/* feeds.c: the host's copies that turn with the loops outside of depth, before what is inside or after it */
void feeds_emit(struct emitter *, struct nodes *, int depth, bool after);

/* keep.c: copies of which a part stays */
int keeps_from(const struct emitter *, const struct filling *); /* the depth where they begin */
void keep_begin(struct emitter *, const struct filling *);
void keep_slot(struct emitter *, const struct filling *);  /* where the current piece lies, and whether it is due */
bool ring_fill(struct emitter *, struct nodes *, const struct filling *, const struct region *window);
/* Here a loop over the pieces of the window stands, which goes round the end of a ring. */
bool ring_turns_at(const struct emitter *, int depth);
bool emit_turns(struct emitter *, struct nodes *, int depth, body_fn);

/* follow.c: what starts the core's result, or changes it, where it lies, over the current tile; own: where that lies which it
 * reads beside (NULL: nothing) */
bool tile_emit(struct emitter *, struct nodes *, const struct task *, struct held *result, struct held *own);
void follow_place(struct emitter *, int64_t *at);
bool follow_emit(struct emitter *, struct nodes *);

/* group.c */
void group_place(struct work *, const struct nest_group *, int64_t *at); /* its tiles, before its nests */
bool group_turn(struct emitter *, struct nodes *); /* one turn of them: each member in order */
bool emit_group(struct emitter *, struct nodes *); /* its nests in the loops that they share */

/* homes.c: final addresses of homes, of the schedule whose sections are complete. False: reported, they do not fit. */
void homes_join(struct work *); /* what lies in another buffer's home is that buffer, in the program and in all places */
bool homes_arrange(struct work *, const struct marks *parts);

/* ---- instructions that take their operands' addresses from entries of a table ---- */

enum { TABLE_WANTED = 1 << 30 }; /* loop_node.table while nobody knows where the entries will stand */

/* micro.c: issues of such instructions get loops over entries; whole: no loop around them is ever empty. */
void micro_make(struct work *, struct nodes *, bool whole);
int flags_of(const struct instr *);
int64_t counter_max(const struct instr *, int innermost); /* iterations that each of so many inner loops takes */

/* tables.c: the entries of the list's issues in tables, and loads of these before it. False after reporting. */
bool tables_load(struct work *, const struct moves *, struct nodes *, bool again);

/* node.c */
int64_t loop_most(struct work *, const struct loop_node *); /* iterations; INT64_MAX: not known */

#endif
