/* The simulator: values and cycles of any schedule on any machine, from the machine file alone.
 * Values come from the instructions' semantics, cycles from queues, intervals, buses, latencies and
 * syncs (docs/simulator.md). Shares no code with backends: each is the other's oracle. */
#ifndef ISAMAP_SIM_SIM_H
#define ISAMAP_SIM_SIM_H

#include "scheduler/clock/clock.h"

/* Somebody else executes what stands on a device's queues: each such step is handed over (an issue, a
 * sync, a configure, the outermost of hardware loops) with the values of the variables and the
 * current slots; `run` then, with the bytes of the home memory, before the host goes on and at the
 * end of a section. The host's work is done as always; nothing is timed. False after reporting. */
struct sim_device {
    bool (*step)(void *user, const struct node *, const int64_t *value, const int64_t *slot);
    bool (*run)(void *user, uint8_t *home, int64_t bytes, bool prepare);
    void *user;
};

struct sim_options {
    bool no_values;         /* cycles alone */
    bool walk;              /* with no_values: each instruction; otherwise what repeats is multiplied */
    bool trusted;           /* with no_values: addresses are looked at only where times depend on
                               them; the program's work is not counted */
    const char *trace;      /* Chrome trace JSON to write; or NULL */
    const int64_t *size;    /* of the program's sizes known only when it runs; NULL: the largest */
    int64_t steps;          /* bound on instructions executed; 0: 10^10 */
    double most;            /* bound on cycles, beyond which the run ends in an error; 0: none */
    uint64_t order_seed;    /* not 0: among the instructions that signals let go on, any is next, as
                               other times would have it; cycles then mean nothing */
    bool times;             /* fill sim_result.time */
    uint64_t latency_low, latency_high; /* with latency_seed: of buses, instead of their own latency */
    uint64_t latency_seed; /* not 0: each transfer's latency is drawn evenly from low..high */
    const struct sim_device *device; /* or NULL: everything is simulated */
    bool with_prepare_cost; /* count the `prepare` section too; otherwise it is executed but free */
};

/* data[b]: row-major array of buffer b of schedule.program for in, out, inout and const buffers
 * (NULL for others; may be NULL altogether with no_values). False after reporting: deadlock (which
 * queue waits for which sync), step bound, illegal address. */
bool sim_run(const struct schedule *, void *const *data, const struct sim_options *,
             struct sim_result *, struct diags *);

#endif
