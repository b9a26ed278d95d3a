/* The words of a launch, simulated from the machine file, beside what the device recorded of them.
 */
#include "command/isamap_int.h"
#include "backends/bits/bits.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

void latencies_set(const struct latencies *l, struct sim_options *out) {
    if (!l->high) return;
    out->latency_low = l->low;
    out->latency_high = l->high;
    out->latency_seed = l->seed ? l->seed : 1;
}

static bool words_simulate(isamap *im, const struct machine *m, const struct latencies *l,
                           const struct bits_launch *launch, const uint8_t *home, int64_t bytes,
                           struct sim_result *out) {
    struct text t = {0};
    struct sim_options options = {.no_values = true, .times = true};
    latencies_set(l, &options);
    struct schedule *s = NULL;
    if (bits_schedule(m, "launch", launch->stream, launch->bytes, home, bytes, &t, &im->diags)) {
        struct source source = {
            .file = "launch", .text = t.at, .length = t.n, .line0 = 1, .col0 = 1};
        s = schedule_parse(m, &source, &im->diags);
    }
    bool ok = s && sim_run(s, NULL, &options, out, &im->diags);
    if (s) schedule_free(s);
    text_free(&t);
    return ok;
}

/* An instruction that only one of the two has differs. `since`: when the launch began. */
static int64_t count_different(const struct machine *m, const struct sim_result *x,
                               const struct device_record *record, size_t n, double since) {
    int64_t equal = 0, all = x->ntimes > n ? (int64_t)x->ntimes : (int64_t)n;
    const struct sim_time **of = memory_array(x->ntimes + 1, sizeof(*of));
    for (size_t k = 0; k < x->ntimes; k++) of[x->time[k].number] = &x->time[k];
    for (size_t k = 0; k < n; k++) {
        const struct sim_time *t = record[k].number < x->ntimes ? of[record[k].number] : NULL;
        equal += t && machine_queue(m, record[k].queue) == t->queue &&
                 (double)record[k].start - since == t->start &&
                 (double)record[k].end - since == t->end;
    }
    free(of);
    return all - equal;
}

bool launch_agrees(isamap *im, const struct machine *m, const struct latencies *l,
                   const struct bits_launch *launch, const uint8_t *home, int64_t bytes,
                   const struct device_record *record, size_t n, double since,
                   struct agreement *out) {
    struct sim_result x = {0};
    bool ok = words_simulate(im, m, l, launch, home, bytes, &x);
    if (ok) {
        out->instructions += (int64_t)n;
        out->differ += count_different(m, &x, record, n, since);
    }
    sim_result_free(&x);
    return ok;
}
