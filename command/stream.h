/* Streams: which arguments are states, and how long a step takes. */
#ifndef ISAMAP_COMMAND_STREAM_H
#define ISAMAP_COMMAND_STREAM_H

#include "backends/backend.h"
#include "command/isamap_int.h"
#include "ir/stream.h"

/* Do the pairs of --state name inputs and outputs of one type and shape? False after reporting. */
bool states_are_there(isamap *, struct job *);
/* Of job.schedule's program: those of its recurrences and of --state. *counted: steps count on from run to run. *why: why recurrences are not a
 * stream; NULL. False after reporting. */
bool job_states(isamap *, struct job *, struct stream_state **, int *n, bool *counted, const char **why);

struct latency {
    int64_t steps;
    double median, most_of_1000, worst; /* seconds of a step; most_of_1000: 99.9 % take no longer */
};
/* --steps: runs one after the other, the states in turns in two arrays of their own; data as for executable_run. */
bool steps_time(isamap *, struct job *, struct executable *, void *const *data, struct latency *);
void report_latency(struct report *, const struct latency *);

#endif
