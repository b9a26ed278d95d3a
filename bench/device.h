/* How a CUDA device is doing: its name, clock and power, from its management library where that is there. */
#ifndef ISAMAP_BENCH_DEVICE_H
#define ISAMAP_BENCH_DEVICE_H

#include <stdbool.h>

struct device_state {
    char name[96];
    double mhz, most_mhz, watts, celsius; /* NAN: it does not say */
};

/* False: there is no such library, or no device. */
bool device_state(struct device_state *);

#endif
