/* Inside the simulator: values of what the clock times. values.c executes instructions, home.c
 * knows where arguments lie, device.c hands over what somebody else executes. */
#ifndef ISAMAP_SIM_SIM_INT_H
#define ISAMAP_SIM_SIM_INT_H

#include "scheduler/clock/clock_int.h"
#include "sim/sim.h"

struct simulation {
    void *const *data;
    const struct sim_device *device;
    void **row_major; /* of each buffer: its elements for fallbacks, made at the first use */
    bool waiting;     /* steps that the device was given, but has not run */
};

/* home.c */
bool images_load(struct engine *);  /* arguments in */
bool images_store(struct engine *); /* out and inout back */
/* Elements whose indices lie in [lo, hi), to or from their places in the row-major array. */
bool home_gather(struct engine *, int buffer, const int64_t *lo, const int64_t *hi, uint8_t *to);
bool home_scatter(struct engine *, int buffer, const int64_t *lo, const int64_t *hi,
                  const uint8_t *from);
bool home_zero(struct engine *, int place);

/* operand.c */
bool shape_ready(struct engine *, const struct node *, const struct shape *);

/* values.c */
bool values_execute(struct engine *, const struct executed *);

/* device.c */
bool device_takes(const struct engine *, const struct node *);
bool device_step(struct engine *, const struct node *);
bool device_run(struct engine *); /* what it was given so far */

#endif
