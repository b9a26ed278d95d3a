/* How far apart neighbours along an axis of a move lie on one of its sides. */
#ifndef ISAMAP_MACHINES_MOVE_SIDE_H
#define ISAMAP_MACHINES_MOVE_SIDE_H

#include "machines/layout.h"
#include "machines/needle.h"

/* Part of an axis: each `div`-th value, `mod` of them; 0: all. A layout that cuts the axis into
 * blocks gives the values inside of a block, and the blocks, distances of their own. */
struct stretch {
    int x;
    int64_t div, mod;
};

/* Of part of an axis, or what it would be in dense places; *name: of a stride that the schedule
 * chooses. */
bool side_stride(const struct machine *, const struct instr *, const struct program *, const struct access *,
                 int operand, bool dense, struct stretch, int64_t *stride, int *name);

/* The parts into which the layouts of both sides cut an axis, the inner ones first; 0: into none that go along
 * independently. */
int axis_stretches(const struct program *, const struct access *from, const struct layout *, const struct access *to,
                   const struct layout *, int x, struct stretch part[MAX_NEEDLE]);

#endif
