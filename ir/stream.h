/* Can a sequence be cut into pieces, one run for each, with the same results? */
#ifndef ISAMAP_IR_STREAM_H
#define ISAMAP_IR_STREAM_H

#include "ir/program.h"

struct stream_state { /* arguments: what `to` holds after a run, `from` holds before the next */
    int from, to;
};

/* The states that one run hands to the next, from the arena; n of them. 0: a sequence cannot be cut, and *why says it (NULL: the
 * program is no recurrence of an open length). */
int program_stream(struct arena *, const struct program *, struct stream_state **, const char **why);
/* Do these two arguments make a state: in and out, of one type and shape? */
bool stream_pair(const struct program *, int from, int to);

#endif
