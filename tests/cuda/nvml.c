/* In the place of the driver's management library, for tests: one device, whose figures all differ.
 */
#include <stdio.h>

int nvmlInit_v2(void) {
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **device) {
    static int one;
    *device = &one;
    return n != 0;
}

int nvmlDeviceGetName(void *device, char *name, unsigned n) {
    return !device || snprintf(name, n, "an emulated device") >= (int)n;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz) {
    *mhz = 1755;
    return !device || which != 1;
}

int nvmlDeviceGetMaxClockInfo(void *device, int which, unsigned *mhz) {
    *mhz = 1980;
    return !device || which != 1;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    *milliwatts = 130358;
    return !device;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    *celsius = 41;
    return !device || sensor;
}
