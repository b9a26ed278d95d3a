/* The digest of a move: which box of elements it copies, dimension by dimension. */
#ifndef ISAMAP_MACHINES_MOVE_H
#define ISAMAP_MACHINES_MOVE_H

#include "machines/needle.h"

struct side {
    enum { STRIDE_CONST, STRIDE_DENSE, STRIDE_FREE } kind;
    int64_t value; /* CONST: the stride; FREE: the largest that its words can say */
    int name;
};

struct move_axis {
    int64_t fixed;           /* 0: ranged */
    int size, before, after; /* indices into instr.ranged; -1 */
    int part;                /* of a fixed axis: how much is data, with padding around it; -1: all */
    int64_t lo, hi, step, max_before, max_after; /* lo and step: of the size, or of the part */
    struct side from, to;
    int x; /* of the needle */
};

struct move {
    int instr;
    struct needle *needle;
    struct move_axis axis[MAX_NEEDLE]; /* innermost on the destination first */
    int naxes, from_operand, to_operand;
    int64_t least[MAX_SIZES]; /* of each size: what an issue has that no axis gives another */
    int ahead; /* index into instr.ranged: bytes behind what it reads, where it asks for a line; -1 */
    uint64_t from_fragment, to_fragment; /* as in struct form */
    const char *from_swizzle, *to_swizzle;
    enum type type;
};

/* Reads it off the semantics, by binding them at sample sizes. `computes`: an instruction that computes from the
 * rows of one operand, the others being constants. False: it is no such move; the needle's program is freed. */
bool move_learn(struct arena *, const struct machine *, int instr, bool computes, struct move *, struct diags *);

#endif
