#include "sim/sim_int.h"

bool sim_run(const struct schedule *s, void *const *data, const struct sim_options *o,
             struct sim_result *r, struct diags *d) {
    struct clock_options options = {.walk = o->walk,
                                    .trusted = o->trusted,
                                    .trace = o->trace,
                                    .size = o->size,
                                    .steps = o->steps,
                                    .order_seed = o->order_seed,
                                    .times = o->times,
                                    .latency_low = o->latency_low,
                                    .latency_high = o->latency_high,
                                    .latency_seed = o->latency_seed,
                                    .with_prepare_cost = o->with_prepare_cost};
    struct simulation sim = {.data = data, .device = o->device};
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
    return clock_run(s, &options, o->no_values ? NULL : &executor, r, d);
}
