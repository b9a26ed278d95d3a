/* The clock: when each instruction of a schedule runs on a machine known from its file, and what
 * that makes busy (docs/simulator.md): queues, buses, syncs, units. Knows the schedule and the
 * machine only; what instructions compute is for others to say (struct executor, clock_int.h). */
#ifndef ISAMAP_SCHEDULER_CLOCK_CLOCK_H
#define ISAMAP_SCHEDULER_CLOCK_CLOCK_H

#include "scheduler/schedule/schedule.h"

struct clock_options {
    bool walk;              /* each instruction; otherwise what repeats is multiplied */
    bool trusted;           /* addresses are looked at only where times depend on them; the
                               program's work is not counted */
    const char *trace;      /* Chrome trace JSON to write; or NULL */
    const int64_t *size;    /* of the program's sizes known only when it runs; NULL: the largest */
    int64_t steps;          /* bound on instructions executed; 0: 10^10 */
    double most;            /* bound on cycles; 0: none */
    uint64_t order_seed;    /* not 0: among the instructions that signals let go on, any is next, as
                               other times would have it; cycles then mean nothing */
    bool times;             /* fill sim_result.time */
    uint64_t latency_low, latency_high; /* with latency_seed: of buses, instead of their own latency */
    uint64_t latency_seed; /* not 0: each transfer's latency is drawn evenly from low..high */
    bool with_prepare_cost; /* count the `prepare` section too; otherwise it takes no time */
};

struct sim_queue {
    double busy, wait;
    int64_t instructions;
}; /* cycles; wait: on syncs, buses, operands */
struct sim_bus {
    double bytes, busy;
};
struct sim_sync {
    int64_t pushes;
    double wait;
    int64_t peak;
};

/* When an instruction held its queue. */
struct sim_time {
    int queue;
    int64_t number; /* of those counted, in program order, from 0 */
    double start, end;
};

struct sim_result {
    double cycles; /* of the device: the queues of units that are not the fallback's; of everything
                      on a machine without a device */
    double host_cycles; /* busy cycles of fallback work on the host, reported apart (in the host's
                           clock); 0 when the machine is the host */
    double *host_of;    /* [nhost]: of them, by statement; last: loads and stores of vectors */
    int nhost;          /* 0: there is no device */
    double utilisation; /* MACs executed / (cycles x peak MACs per cycle of the units used); 0 when
                           there is no MAC */
    int64_t macs;       /* of the program */
    int64_t instructions;
    int64_t launches; /* where the machine says what one takes */
    bool beyond;      /* it was given up, since it takes more than options.most */
    double home_read_bytes,
        home_write_bytes; /* moves and direct operands, padding free; host work apart: */
    double host_read_bytes, host_write_bytes;
    double energy;           /* pJ; 0 when the machine says nothing */
    struct sim_queue *queue; /* [machine.nqueues] */
    struct sim_bus *bus;     /* [machine.nbuses] */
    struct sim_sync *sync;   /* [machine.nsyncs] */
    int64_t *peak_bytes;     /* [machine.nmemories]: most bytes occupied at once */
    int64_t *macs_on;       /* [machine.ninstrs + 1]: the program's MACs by instruction, padding not
                               counted; last: the fallback */
    int64_t *operations_on; /* likewise, other operations */
    struct sim_time *time; /* in the order in which they ran */
    size_t ntimes;
    int64_t steps; /* executed one by one: what was multiplied counts once */
    double wall_seconds;
};

struct executor;

/* False after reporting: deadlock (which queue waits for which sync), step bound, illegal address.
 * `executor`: computes what the instructions do; NULL: nobody. */
bool clock_run(const struct schedule *, const struct clock_options *, const struct executor *,
               struct sim_result *, struct diags *);
void sim_result_free(struct sim_result *);

#endif
