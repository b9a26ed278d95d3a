#include "bench/peer_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*use)(void *);
    int (*take)(uint64_t *, size_t), (*give)(uint64_t);
    int (*in)(uint64_t, const void *, size_t), (*out)(void *, uint64_t, size_t);
    int (*copy)(uint64_t, uint64_t, size_t), (*wait)(void);
    int (*new_event)(void **, unsigned), (*drop_event)(void *);
    int (*mark)(void *, void *), (*between)(float *, void *, void *);
} driver;

void *peer_library(const char *const *name) {
    const char *home = getenv("CUDA_HOME");
    char path[4096];
    void *found = NULL;
    for (int i = 0; name[i] && !found; i++) found = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; name[i] && !found; i++) {
        snprintf(path, sizeof path, "%s/lib64/%s", home && *home ? home : "/usr/local/cuda",
                 name[i]);
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

bool peer_symbols(void *library, const char *const *name, void *const *to, int n) {
    bool all = library != NULL;
    for (int i = 0; i < n && all; i++) {
        void *at = dlsym(library, name[i]);
        all = at != NULL;
        memcpy(to[i], &at, sizeof at);
    }
    return all;
}

static const char *find_device(void) {
    static const char *const library[] = {"libcuda.so.1", NULL};
    static const char *const name[] = {
        "cuInit",           "cuDeviceGet",       "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",  "cuMemAlloc_v2",     "cuMemFree_v2",
        "cuMemcpyHtoD_v2",  "cuMemcpyDtoH_v2",   "cuMemcpyDtoD_v2",
        "cuCtxSynchronize", "cuEventCreate",     "cuEventDestroy_v2",
        "cuEventRecord",    "cuEventElapsedTime"};
    void *const to[] = {&driver.init, &driver.get,    &driver.retain,    &driver.use,
                        &driver.take, &driver.give,   &driver.in,        &driver.out,
                        &driver.copy, &driver.wait,   &driver.new_event, &driver.drop_event,
                        &driver.mark, &driver.between};
    void *handle = peer_library(library), *context;
    int device;
    if (!handle) return "there is no CUDA driver here (libcuda.so.1)";
    if (!peer_symbols(handle, name, to, (int)(sizeof to / sizeof *to)))
        return "the CUDA driver lacks functions";
    if (driver.init(0) || driver.get(&device, 0) || driver.retain(&context, device) ||
        driver.use(context))
        return "there is no CUDA device here";
    return NULL;
}

bool peer_device(const char **why) {
    static bool asked;
    static const char *missing;
    if (!asked) missing = find_device();
    asked = true;
    *why = missing;
    return !missing;
}

/* Copies lie at multiples of 256 bytes, as the driver's own allocations do. */
static int64_t aligned(int64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

bool peer_arrays_make(struct peer_arrays *x, const int64_t bytes[3], const void *a, const void *b) {
    *x = (struct peer_arrays){.copies = 1};
    for (int i = 0; i < 3; i++) {
        x->at[i] = x->each;
        x->bytes[i] = bytes[i];
        x->each += aligned(bytes[i]);
    }
    if (driver.take(&x->base, (size_t)x->each)) return x->base = 0, false;
    return !driver.in(x->base, a, (size_t)bytes[0]) &&
           !driver.in(x->base + (uint64_t)x->at[1], b, (size_t)bytes[1]);
}

void peer_arrays_free(struct peer_arrays *x) {
    if (x->base) driver.give(x->base);
    x->base = 0;
}

bool peer_result(const struct peer_arrays *x, void *c) {
    return !driver.wait() && !driver.out(c, x->base + (uint64_t)x->at[2], (size_t)x->bytes[2]);
}

void *peer_memory(size_t bytes) {
    uint64_t at = 0;
    return bytes && !driver.take(&at, bytes) ? (void *)(uintptr_t)at : NULL;
}

void peer_memory_free(void *at) {
    if (at) driver.give((uint64_t)(uintptr_t)at);
}

/* As many as are missing, as long as there is room. */
static void more_copies(struct peer_arrays *x, int64_t wanted) {
    uint64_t at;
    if (wanted <= x->copies || driver.take(&at, (size_t)(wanted * x->each))) return;
    for (int64_t k = 0; k < wanted; k++)
        driver.copy(at + (uint64_t)(k * x->each), x->base, (size_t)x->each);
    driver.give(x->base);
    x->base = at;
    x->copies = (int)wanted;
}

static bool call_copy(const struct peer_arrays *x, int copy, peer_call *call, void *user) {
    uint64_t at = x->base + (uint64_t)(copy * x->each);
    return call(user, (void *)(uintptr_t)at, (void *)(uintptr_t)(at + (uint64_t)x->at[1]),
                (void *)(uintptr_t)(at + (uint64_t)x->at[2]));
}

bool peer_once(const struct peer_arrays *x, peer_call *call, void *user) {
    return call_copy(x, 0, call, user) && !driver.wait();
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static bool time_calls(const struct peer_arrays *x, peer_call *call, void *user, void **event,
                       int calls, float *ms) {
    bool good = !driver.mark(event[0], NULL);
    for (int i = 0; i < calls && good; i++)
        good = call_copy(x, i % x->copies, call, user) && !driver.mark(event[i + 1], NULL);
    good = good && !driver.wait();
    for (int i = 0; i < calls && good; i++) good = !driver.between(&ms[i], event[i], event[i + 1]);
    return good;
}

bool peer_measure(struct peer_arrays *x, peer_call *call, void *user, int calls, int64_t span,
                  double *seconds) {
    int64_t wanted = (span + x->each - 1) / x->each;
    void **event = calloc((size_t)calls + 1, sizeof *event);
    float *ms = calloc((size_t)calls + 1, sizeof *ms);
    int made = 0;
    more_copies(x, wanted < calls ? wanted : calls);
    while (event && ms && made <= calls && !driver.new_event(&event[made], 0)) made++;
    bool good = made > calls && time_calls(x, call, user, event, calls, ms);
    if (good) {
        qsort(ms, (size_t)calls, sizeof *ms, compare);
        *seconds = 5e-4 * ((double)ms[calls / 2] + (double)ms[(calls - 1) / 2]);
    }
    while (made > 0) driver.drop_event(event[--made]);
    free(event);
    free(ms);
    return good;
}
