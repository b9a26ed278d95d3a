/* Can a sequence be cut into pieces, one run for each, with the same results? */
#ifndef ISAMAP_IR_STREAM_H
#define ISAMAP_IR_STREAM_H

#include "ir/program.h"

struct stream_state { /* arguments: what `to` holds after a run, `from` holds before the next */
    int from, to;
};

struct stream {
    struct stream_state *state; /* that one run hands to the next, from the arena */
    int nstates;
    bool counted;               /* steps use their number, or rows that earlier steps left: a run goes on counting where the one before ended */
};

/* False: a sequence cannot be cut, and *why says it (NULL: the program is no recurrence of an open length). */
bool program_stream(struct arena *, const struct program *, struct stream *, const char **why);
/* Temporaries of which each step writes its own rows, and which may hand them to later steps; buffers, from the arena. How many. */
int stream_rows(struct arena *, const struct program *, int **buffer);
/* Do these two arguments make a state: in and out, of one type and shape? */
bool stream_pair(const struct program *, int from, int to);

#endif
