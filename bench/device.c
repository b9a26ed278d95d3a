#include "bench/device.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

/* Of nvml.h. */
enum { CLOCK_SM = 1, TEMPERATURE_CHIP = 0 };

static struct {
    int (*init)(void), (*device)(unsigned, void **), (*name)(void *, char *, unsigned);
    int (*clock)(void *, int, unsigned *), (*most_clock)(void *, int, unsigned *);
    int (*power)(void *, unsigned *), (*temperature)(void *, int, unsigned *);
    void *first;
} library;

static bool find_library(void) {
    static const char *const name[] = {"nvmlInit_v2",
                                       "nvmlDeviceGetHandleByIndex_v2",
                                       "nvmlDeviceGetName",
                                       "nvmlDeviceGetClockInfo",
                                       "nvmlDeviceGetMaxClockInfo",
                                       "nvmlDeviceGetPowerUsage",
                                       "nvmlDeviceGetTemperature"};
    void *const to[] = {&library.init,       &library.device, &library.name,       &library.clock,
                        &library.most_clock, &library.power,  &library.temperature};
    void *handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < (int)(sizeof to / sizeof *to); i++) {
        void *at = handle ? dlsym(handle, name[i]) : NULL;
        if (!at) return false;
        memcpy(to[i], &at, sizeof at);
    }
    return !library.init() && !library.device(0, &library.first);
}

/* What a call left in `value`: by its address, since C may read a value beside the call before it
 * is made. */
static double known(int status, const unsigned *value, double scale) {
    return status ? NAN : *value * scale;
}

bool device_state(struct device_state *x) {
    static bool asked, found;
    unsigned v = 0;
    if (!asked) found = find_library();
    asked = true;
    memset(x, 0, sizeof *x);
    if (!found || library.name(library.first, x->name, sizeof x->name)) return false;
    x->mhz = known(library.clock(library.first, CLOCK_SM, &v), &v, 1);
    x->most_mhz = known(library.most_clock(library.first, CLOCK_SM, &v), &v, 1);
    x->watts = known(library.power(library.first, &v), &v, 1e-3);
    x->celsius = known(library.temperature(library.first, TEMPERATURE_CHIP, &v), &v, 1);
    return true;
}
