/* The machine as a graph: what it has so that one queue knows what another did, which memories hold what. */
#ifndef ISAMAP_SCHEDULER_PLAN_GRAPH_H
#define ISAMAP_SCHEDULER_PLAN_GRAPH_H

#include "ir/program.h"
#include "machines/machine.h"

/* edges.c: how one queue learns what another has done. */
struct edge {
    enum { EDGE_NONE, EDGE_FREE, EDGE_TOKEN, EDGE_GROUP, EDGE_FENCE, EDGE_BARRIER } kind;
    int sync;
    int first; /* group on which the first queue waits for itself, before it gives; -1 */
    int from, to; /* queues that the sync joins */
    int origin;   /* what it did is told: `from` itself, or it hears of it by a chain of tokens */
};

/* Of each pair of queues, looked up once. */
struct edges {
    const struct machine *m;
    struct edge *plain; /* [from * nqueues + to] where it completes at no sync: a sync of the two,
                           or the last token of the shortest chain */
    int *completes;     /* [nqueues] the sync at which the first instruction there does; -1 */
    bool *tracked;      /* [from * nqueues + to] hardware tracks what completes behind `from`, too */
};
struct edges *edges_new(struct arena *, const struct machine *);

/* What `from` did with an instruction that completes at that sync (-1: at none), for `to`. */
struct edge edge_find(const struct edges *, int from, int completes, int to);
struct edge edge_of_queue(const struct edges *, int from, int to); /* whatever `from` did */
/* A barrier, where hardware keeps their order: there `to` hears of all that `from` knows. */
struct edge edge_meeting(const struct edges *, int from, int to);
/* Hardware keeps their order, whichever comes first. */
bool queues_in_step(const struct edges *, int a, int b);
/* Channels of a sync that has as many as needed: of slots that turn; then one for each queue that takes, of meetings,
 * and of brackets, whose last token a meeting may follow before the taker has answered; then of results, which may be
 * told of while slots turn. A sync that has fewer takes the first for all that does not turn. */
int channel_of_meeting(const struct sync *, int to, bool bracket);
int channel_of_results(const struct sync *);
bool edge_counts(const struct machine *, const struct edge *, int slots);  /* one channel holds so many tokens */
bool edge_rotates(const struct machine *, const struct edge *, int slots); /* a channel for each */
bool edge_holds(const struct machine *, const struct edge *, int slots);   /* so many are outstanding */
/* The edge before, by which its `from` hears of it; false: it is the origin. */
bool edge_before(const struct edges *, const struct edge *, struct edge *before);
/* Tokens of one link, there or back, could be taken for the other's: of one sync, for one pair of
 * queues. */
bool edges_share(const struct edges *, const struct edge a[2], const struct edge b[2]);
int64_t edge_objects(const struct machine *, int memory); /* bytes that syncs take of it */
/* A queue of a device beside a host: work of the host's fallback, and its caches, cost it nothing. */
bool graph_apart(const struct machine *, int queue);

/* graph.c */
int64_t graph_capacity(const struct machine *, int memory); /* usable bytes; INT64_MAX unlimited */
bool graph_is_static(const struct machine *, int memory);   /* addresses must be constants */
bool graph_holds(const struct machine *, int memory, enum type);
/* May the operand lie, does the move take from, or bring to, that memory? */
bool operand_may_be(const struct operand *, int memory);
bool move_takes(const struct instr *, int memory);
bool move_fills(const struct instr *, int memory);
/* Hops over edges, and over meetings where these alone do not lead there; next: after `from`. */
int graph_distance(const struct edges *, int from, int to, struct edge *next);

#endif
