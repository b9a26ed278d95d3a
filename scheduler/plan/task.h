/* Mapped statements and their operands. */
#ifndef ISAMAP_SCHEDULER_PLAN_TASK_H
#define ISAMAP_SCHEDULER_PLAN_TASK_H

#include "ir/program.h"
#include "machines/machine.h"
#include "mapper/mapper.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/limits.h"
#include "machines/needle.h"

struct attachment;

struct route { /* memories that the schedule fills between home and the operand's own, from home on */
    int memory[MAX_VIA], n;
};

enum where { IN_IMM, IN_HOME, IN_LOCAL };

struct opnd {
    const struct operand *decl;
    int number; /* of instr.operand */
    enum where where;
    int memory;
    int read;                 /* what it reads: read of the statement; -1: nothing */
    bool writes, accumulates; /* result; reads its own old value */
    union value imm;
    struct form form;
    struct geom geom;
    const struct opnd *source; /* of a result that is changed in place, as what it reads is filled; NULL: as it is written */
    struct route in, out; /* of what it reads, of what it writes */
    const struct opnd *from, *to; /* the operand in the next memory of these routes; NULL: at home */
    int alone_dim[MAX_NEEDLE]; /* buffer dimension made for a needle axis that stands alone; -1 */
    bool by_axes,
        expand; /* already a copy indexed by axes; by those too that do not move the buffer */
    struct attachment *attached; /* statements executed on its copies, or on the way to them and home (attach.h) */
    bool padded;     /* its buffer was copied with what lies outside */
    bool single;     /* of what stands alone, fills bring the first element */
    int repairs;
    bool handed;     /* what it reads never comes from home: it must follow who makes it (nests.c) */
    int plain;       /* so many copies on the way in, from home on, lie row by row, whatever the order in the operand's own memory */
    bool once;       /* copies on the way in hold once what the needle repeats: the last move repeats it */
    bool returns;    /* of a result: moves bring it back from home, its last tiles too */
    bool whole;      /* only whole tiles are read of these copies: they and the home have room behind the last one */
    uint64_t firsts; /* coordinates that may lie next to the tile in the copy nearest to home: each copy takes what its move likes best */
    int order;       /* of a result: the coordinate that lies next to the tile in its own memory and on the way home; 0: as listed */
    int64_t quantum; /* elements that rows of plain copies, and single elements in other copies, are multiples of, so that they begin at words everywhere; 0 */
    int spaced, turned; /* of a home made for it (geom.h) */
    int64_t align;  /* of its slots, where it is local: what instructions and moves ask for */
    const int64_t *stop_align; /* the same of its copies on the way, by memory; NULL: not known yet */
    bool zero_tail; /* a reduction axis of the needle reaches past the statement's: needs a padded
                       home */
};

struct task {
    int stmt, init, item; /* item of the cover */
    struct needle *needle;
    int axis[MAX_NEEDLE];      /* program axis of needle axis x; -1 */
    const struct group *group; /* the cover's */
    struct opnd op[MAX_OPERANDS];
    int nops;
    uint64_t reductions; /* program axes that the result lacks */
    int place;           /* in the chain of the nest that it follows in (nest.h) */
    bool finishes;       /* by a move that computes: part of another task's nest (finish.c) */
    bool apart;          /* it follows nobody: what it followed did not fit with it */
};

/* The operand that it writes; NULL. */
static inline struct opnd *task_result(const struct task *t) {
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].writes) return (struct opnd *)&t->op[i];
    return NULL;
}

/* tasks.c */
bool tasks_make(struct work *);

/* demote.c */
void task_demote(struct work *, int task, const char *why); /* the fallback runs it */
/* A schedule cannot be made with this statement as it is mapped. True: it can be mapped otherwise, and this cover is given up; stmt may be -1. */
bool task_refuse(struct work *, int stmt, const char *why);
/* What starts it, stores its result too, or follows and finishes it (enum attach_side) has to be executed otherwise. */
void attached_drop(struct work *, struct task *, int side, const char *why);

double sizes_rounded(int64_t extent, int64_t tile); /* padded to whole tiles, over the extent */
/* Cycles for each step of the needle's axis where tiles are so long, over those where they are as
 * long as may be: what issues cost that no loop of the machine's own repeats. */
double sizes_short(const struct work *, const struct task *, int x, int64_t tile);

/* Each fills in what it fixes, by the numbers of ranged sizes; false: nothing. */
bool sizes_steps(const struct work *, const struct task *, int64_t *fixed);
bool sizes_idle(const struct task *, const struct mapping *, int64_t *fixed);
bool sizes_dense(struct work *, struct task *, const struct group *, int64_t *fixed);

#endif
