/* In the driver's place, for tests: the device's memory is the host's, a module is the library that
 * nvrtc.c made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void kernel(const int64_t *);
static void *library; /* of the kernels that are launched */

int cuInit(unsigned flags) {
    return (int)flags;
}

int cuDeviceGet(int *device, int n) {
    *device = n;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    static int one;
    *context = &one;
    return device;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    return device;
}

int cuCtxSetCurrent(void *context) {
    return !context;
}

int cuModuleLoadData(void **module, const void *image) {
    const Elf64_Ehdr *head = image;
    size_t bytes = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    char path[] = "/tmp/isamap.module.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes) return 1;
    close(fd);
    *module = library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) fprintf(stderr, "emulated device: %s\n", dlerror());
    unlink(path);
    return !library;
}

int cuModuleUnload(void *module) {
    return dlclose(module);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    char *emulated;
    library = module;
    if (asprintf(&emulated, "emulated_%s", name) < 0) return 1;
    *function = dlsym(module, emulated);
    free(emulated);
    return !*function;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    return !function || attribute != 8 || value < 0;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (memory) memset(memory, 0xff, bytes);
    *at = (uint64_t)(uintptr_t)memory;
    return !memory;
}

int cuMemFree_v2(uint64_t at) {
    free((void *)(uintptr_t)at);
    return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) {
    memcpy((void *)(uintptr_t)to, from, n);
    return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) {
    memcpy(to, (const void *)(uintptr_t)from, n);
    return 0;
}

int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n) {
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, n);
    return 0;
}

int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t n) {
    memset((void *)(uintptr_t)at, value, n);
    return 0;
}

/* A millisecond passes between two events. */
int cuEventCreate(void **event, unsigned flags) {
    static int one;
    *event = &one;
    return (int)flags;
}

int cuEventDestroy_v2(void *event) {
    return !event;
}

int cuEventRecord(void *event, void *stream) {
    return !event || stream;
}

int cuEventElapsedTime(float *ms, void *from, void *to) {
    *ms = 1;
    return !from || !to;
}

int cuCtxSynchronize(void) {
    return 0;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned ty, unsigned tz, unsigned shared, void *stream, void **argument,
                   void **extra) {
    void (*launch)(kernel *, unsigned, unsigned, unsigned, unsigned, unsigned, const int64_t *);
    void *at = dlsym(library, "emulated_launch");
    Dl_info info;
    char *name;
    (void)stream, (void)extra;
    if (!at || ty != 1 || tz != 1 || !dladdr(function, &info) ||
        asprintf(&name, "arguments_%s", info.dli_sname + strlen("emulated_")) < 0)
        return 1;
    const int *n = dlsym(library, name);
    free(name);
    int64_t value[64];
    for (int k = 0; n && k < *n && k < 64; k++) memcpy(&value[k], argument[k], 8);
    memcpy(&launch, &at, sizeof at);
    if (n) launch((kernel *)function, x, y, z, threads, shared, value);
    return !n;
}
