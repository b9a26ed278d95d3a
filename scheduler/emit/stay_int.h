/* Values that stay in a local memory over the steps of a recurrence (stay.c): what its files share. */
#ifndef ISAMAP_SCHEDULER_EMIT_STAY_INT_H
#define ISAMAP_SCHEDULER_EMIT_STAY_INT_H

#include "scheduler/emit/emit_int.h"

/* An operand of an issue in the body; of a local place, or of a home. */
struct use {
    int pos;          /* node of the body in which it stands */
    int queue;
    struct issue_node *issue;
    int operand, place;
    int64_t lo, n;    /* bytes of the place's slot that it may touch */
    bool reads, writes;
    bool fixed;       /* its address is written down elsewhere too, or some rule is kept by it */
};

/* A node of the body that copies neighbouring bytes between a home and a local place with one slot. */
struct copy {
    int pos;
    struct issue_node *issue;
    int home, local, home_operand, local_operand;
    int64_t at, from, bytes; /* from where on, at home and in the place */
    bool loads, gone;
};

struct stay {
    struct work *w;
    const struct moves *moves;
    struct nodes *list; /* in which the recurrence stands */
    int node;           /* at which number */
    struct nodes body;
    struct use *use;
    int nuses, cap_uses;
    struct copy *copy;  /* in the body's order */
    int ncopies, cap_copies;
    bool mixed; /* the host has a part in the body: it is at work before and behind each step, and queues are told each time */
    bool *carries;      /* [nplaces] from step to step */
    struct nodes before, after; /* what is to stand around the recurrence */
};

struct span { /* nodes in which something is used or written; first > last: none */
    int first, last, write;
};

/* stay_use.c */
bool stay_look(struct stay *); /* finds uses and copies; false: instances of a unit work apart in the body */
void stay_use(struct stay *, struct use);
bool stay_overlaps(const struct use *, int place, int64_t lo, int64_t bytes);
const struct place *stay_place(const struct stay *, int place);
struct copy *stay_copy_at(const struct stay *, const struct use *); /* the use is one of its; NULL */
struct span stay_span(const struct stay *, int place, const struct issue_node *but);
bool stay_may(const struct stay *, int place); /* a local place of a memory that schedules address */
/* Bytes that the place's address must be a multiple of. */
int64_t stay_alignment(const struct stay *, int place);
/* One queue, in program order, does all that is done with both but for copies from and to homes. */
bool stay_one_queue(const struct stay *, int a, int b, int *queue);
bool stay_may_go(const struct stay *, const struct issue_node *); /* can its signals stand without it? */
void stay_signals(struct stay *, struct nodes *, const struct issue_node *); /* they alone */

/* stay_image.c: the tiles of one loop's result; true: the body is another one. */
bool stay_image(struct stay *);

/* stay_turn.c: instructions that could change the state's copy in place, and not their other operand, do so, one after
 * the other up to the state's store: at best that stores what lies where the state lay. */
void stay_turn(struct stay *, const struct copy *load, const struct copy *store);

/* stay_pieces.c: states that loops load in pieces; true: the body is another one. */
bool stay_pieces(struct stay *);

/* stay_tiles.c: adds the node, and in place of a loop over tiles whose results all stay what stands in it, once. */
void stay_tiles(const struct stay *, struct nodes *, const struct node *);

/* overlap.c: a step begins while the one before ends; false: queues have no sync between them. */
bool steps_overlap(struct stay *);

/* stay_copy.c */
const struct move *stay_move(const struct stay *, int instr); /* NULL: it is none */
/* Bytes that lie next to one another on both sides; 0: they do not, or are not known. */
int64_t stay_bytes(const struct stay *, const struct move *, const struct issue_node *);
/* An issue of a move that copies so many neighbouring bytes between these memories; NULL: there is none. */
struct issue_node *stay_issue(const struct stay *, int from_memory, int to_memory, enum type, int64_t bytes);
/* The same issue, which shares nothing that is changed later. */
struct issue_node *stay_again(const struct stay *, const struct issue_node *);

#endif
