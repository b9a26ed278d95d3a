/* Does the clock say the same of a schedule when it multiplies as when it walks? */
#ifndef ISAMAP_TESTS_CLOCK_SAME_H
#define ISAMAP_TESTS_CLOCK_SAME_H

#include "sim/sim.h"

#include <math.h>
#include <stdio.h>

/* Out-of-order queues with no device beside them: times are within 1 %. */
static inline bool clock_approximate(const struct machine *m) {
    bool some = false;
    for (int q = 0; q < m->nqueues; q++) {
        if (m->nfallbacks && !machine_queue_is_host(m, q)) return false;
        some = some || m->queue[q].data_order;
    }
    return some;
}

static inline bool clock_near(const char *what, double a, double b, double part, char *why,
                              size_t n) {
    if (fabs(a - b) <= part * fmax(fabs(b), 1)) return true;
    snprintf(why, n, "%s: %.17g multiplied, %.17g walked", what, a, b);
    return false;
}

static inline bool clock_results_same(const struct machine *m, const struct sim_result *a,
                                      const struct sim_result *b, char *why, size_t n) {
    static const double exact = 1e-9;
    double time = clock_approximate(m) ? 0.01 : exact;
    bool ok =
        clock_near("cycles", a->cycles, b->cycles, time, why, n) &&
        clock_near("utilisation", a->utilisation, b->utilisation, time, why, n) &&
        clock_near("host cycles", a->host_cycles, b->host_cycles, exact, why, n) &&
        clock_near("instructions", (double)a->instructions, (double)b->instructions, 0, why, n) &&
        clock_near("MACs", (double)a->macs, (double)b->macs, 0, why, n) &&
        clock_near("bytes read", a->home_read_bytes, b->home_read_bytes, exact, why, n) &&
        clock_near("bytes written", a->home_write_bytes, b->home_write_bytes, exact, why, n) &&
        clock_near("host's reads", a->host_read_bytes, b->host_read_bytes, exact, why, n) &&
        clock_near("host's writes", a->host_write_bytes, b->host_write_bytes, exact, why, n) &&
        clock_near("energy", a->energy, b->energy, exact, why, n);
    for (int q = 0; q < m->nqueues && ok; q++)
        ok = clock_near("a queue's instructions", (double)a->queue[q].instructions,
                        (double)b->queue[q].instructions, 0, why, n) &&
             clock_near("busy", a->queue[q].busy, b->queue[q].busy, exact, why, n) &&
             (time > exact ||
              clock_near("waiting", a->queue[q].wait, b->queue[q].wait, exact, why, n));
    for (int k = 0; k < m->nbuses && ok; k++)
        ok = clock_near("a bus's bytes", a->bus[k].bytes, b->bus[k].bytes, exact, why, n) &&
             clock_near("a bus busy", a->bus[k].busy, b->bus[k].busy, exact, why, n);
    for (int k = 0; k < m->nsyncs && ok; k++)
        ok =
            clock_near("tokens", (double)a->sync[k].pushes, (double)b->sync[k].pushes, 0, why, n) &&
            clock_near("tokens at once", (double)a->sync[k].peak, (double)b->sync[k].peak, 0, why,
                       n);
    for (int k = 0; k < m->nmemories && ok; k++)
        ok =
            clock_near("peak bytes", (double)a->peak_bytes[k], (double)b->peak_bytes[k], 0, why, n);
    for (int k = 0; k <= m->ninstrs && ok; k++)
        ok = clock_near("MACs by instruction", (double)a->macs_on[k], (double)b->macs_on[k], 0, why,
                        n) &&
             clock_near("operations by instruction", (double)a->operations_on[k],
                        (double)b->operations_on[k], 0, why, n);
    return ok;
}

/* Where the walk takes more than `steps`, nothing is compared. False: `why` not. */
static inline bool clock_same(const struct schedule *s, const int64_t *size, int64_t steps,
                              char *why, size_t n) {
    struct sim_options options = {.no_values = true, .walk = true, .steps = steps, .size = size};
    struct sim_result walked = {0}, multiplied = {0};
    struct diags d;
    diags_init(&d);
    bool ok = true;
    if (sim_run(s, NULL, &options, &walked, &d)) {
        options.walk = false;
        ok = sim_run(s, NULL, &options, &multiplied, &d);
        if (!ok) snprintf(why, n, "it fails where the walk does not");
        ok = ok && clock_results_same(s->machine, &multiplied, &walked, why, n);
        sim_result_free(&multiplied);
    }
    sim_result_free(&walked);
    diags_free(&d);
    return ok;
}

#endif
