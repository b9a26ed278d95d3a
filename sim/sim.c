#include "sim/sim_int.h"

#include "ir/memory.h"

#include <stdlib.h>

bool sim_run(const struct schedule *s, void *const *data, const struct sim_options *o,
             struct sim_result *r, struct diags *d) {
    struct clock_options options = {.walk = o->walk,
                                    .trusted = o->trusted,
                                    .trace = o->trace,
                                    .size = o->size,
                                    .steps = o->steps,
                                    .most = o->most,
                                    .order_seed = o->order_seed,
                                    .times = o->times,
                                    .latency_low = o->latency_low,
                                    .latency_high = o->latency_high,
                                    .latency_seed = o->latency_seed,
                                    .with_prepare_cost = o->with_prepare_cost};
    int nbuffers = s->program->nbuffers;
    struct simulation sim = {.data = data,
                             .device = o->device,
                             .row_major = memory_array((size_t)nbuffers + 1, sizeof(void *))};
    struct executor executor = {.begin = images_load,
                                .end = images_store,
                                .execute = values_execute,
                                .zero = home_zero,
                                .user = &sim};
    if (o->device) {
        executor.takes = device_takes;
        executor.step = device_step;
        executor.run = device_run;
    }
    bool ok = clock_run(s, &options, o->no_values ? NULL : &executor, r, d);
    for (int b = 0; b < nbuffers; b++) memory_give(sim.row_major[b]);
    free(sim.row_major);
    return ok;
}
