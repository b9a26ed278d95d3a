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
static int
    marked; /* a time is taken: no kernel is loaded now, as it is when it is first asked for */

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

/* ---- the device: what $ISAMAP_EMULATED_CAPABILITY says, 8.0; and $ISAMAP_EMULATED_FAULT ---- */
enum { OUT_OF_MEMORY = 2, NO_BINARY = 209, ILLEGAL_ADDRESS = 700, OUT_OF_RESOURCES = 701 };

static int capability(void) {
    const char *text = getenv("ISAMAP_EMULATED_CAPABILITY");
    return text ? (text[0] - '0') * 10 + text[2] - '0' : 0;
}

static int fault(const char *name) {
    const char *text = getenv("ISAMAP_EMULATED_FAULT");
    return text && !strcmp(text, name);
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? capability() / 10 : capability() % 10;
    return device || (attribute != 75 && attribute != 76);
}

int cuGetErrorString(int status, const char **words) {
    *words = status == OUT_OF_MEMORY ? "out of memory"
             : status == NO_BINARY   ? "no kernel image is available for execution on the device"
             : status == ILLEGAL_ADDRESS  ? "an illegal memory access was encountered"
             : status == OUT_OF_RESOURCES ? "too many resources requested for launch"
                                          : NULL;
    return !*words;
}

static int load_library(void **module, const void *image, size_t bytes, int is_ptx) {
    char path[] = "/tmp/isamap.module.XXXXXX";
    int fd = mkstemp(path), device = capability();
    if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes) return 1;
    close(fd);
    *module = library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) fprintf(stderr, "emulated device: %s\n", dlerror());
    unlink(path);
    if (!library) return 1;
    const char *target = dlsym(library, "emulated_target");
    int wants = target ? atoi(target + 3) : 0, alone = target && target[strlen(target) - 1] > '9';
    if (device && wants &&
        (alone    ? wants != device
         : is_ptx ? wants > device
                  : wants / 10 != device / 10 || wants > device))
        return NO_BINARY;
    return 0;
}

static int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

int cuModuleLoadData(void **module, const void *image) {
    const char *text = image;
    marked = 0;
    if (strncmp(text, "//ptx ", 6)) {
        const Elf64_Ehdr *head = image;
        return load_library(module, image,
                            head->e_shoff + (size_t)head->e_shnum * head->e_shentsize, 0);
    }
    text += 6;
    size_t n = strlen(text) / 2;
    unsigned char *bytes = malloc(n);
    for (size_t k = 0; k < n; k++)
        bytes[k] = (unsigned char)(digit(text[2 * k]) << 4 | digit(text[2 * k + 1]));
    int status = load_library(module, bytes, n, 1);
    free(bytes);
    return status;
}

int cuModuleUnload(void *module) {
    return dlclose(module);
}

static struct { void *function, *module; } * loaded;
static size_t nloaded;

/* The library of the function is the one that is looked into. */
static void look_into(void *function) {
    for (size_t k = 0; k < nloaded; k++)
        if (loaded[k].function == function) library = loaded[k].module;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    char *emulated;
    if (marked) fprintf(stderr, "emulated device: a kernel is loaded while a time is taken\n");
    if (marked) return 1;
    library = module;
    if (asprintf(&emulated, "emulated_%s", name) < 0) return 1;
    *function = dlsym(module, emulated);
    free(emulated);
    loaded = realloc(loaded, (nloaded + 1) * sizeof *loaded);
    loaded[nloaded].function = *function;
    loaded[nloaded++].module = module;
    return !*function;
}

int cuFuncSetAttribute(void *function, int attribute, int value) {
    return !function || attribute != 8 || value < 0;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
    if (fault("room")) return OUT_OF_MEMORY;
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

int cuEventElapsedTime(float *ms, void *from, void *to) {
    *ms = 1;
    return !from || !to;
}

int cuCtxSynchronize(void) {
    return fault("address") ? ILLEGAL_ADDRESS : 0;
}

static int start(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                 unsigned shared, const int64_t *value) {
    void (*launch)(kernel *, unsigned, unsigned, unsigned, unsigned, unsigned, const int64_t *);
    look_into(function);
    void *at = dlsym(library, "emulated_launch");
    if (!at) return 1;
    memcpy(&launch, &at, sizeof at);
    launch((kernel *)function, x, y, z, threads, shared, value);
    return 0;
}

/* ---- graphs: what a stream was given while it was recorded ---- */
enum { MOST_ARGUMENTS = 512 }; /* words of 8 bytes */
struct recorded {
    void *function; /* NULL: bytes are set */
    unsigned x, y, z, threads, shared;
    int64_t value[MOST_ARGUMENTS];
};
struct graph {
    int n;
    struct recorded *at;
};
static struct graph *recording;
static int stream_now, made, replays;

static int note(const struct recorded *r) {
    recording->at = realloc(recording->at, ((size_t)recording->n + 1) * sizeof *r);
    recording->at[recording->n++] = *r;
    return 0;
}

int cuStreamCreate(void **stream, unsigned flags) {
    *stream = &stream_now;
    return (int)flags;
}

int cuEventRecord(void *event, void *stream) {
    marked = 1;
    return !event || (stream && stream != &stream_now);
}

int cuStreamDestroy_v2(void *stream) {
    const char *file = getenv("ISAMAP_EMULATED_GRAPHS");
    FILE *f = file ? fopen(file, "a") : NULL;
    if (f) fprintf(f, "%d recorded, %d replays\n", made, replays);
    if (f) fclose(f);
    return stream != &stream_now;
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
    if (stream != &stream_now || mode != 2 || recording) return 1;
    recording = calloc(1, sizeof *recording);
    return !recording;
}

int cuStreamEndCapture(void *stream, void **graph) {
    *graph = recording;
    recording = NULL;
    return stream != &stream_now || !*graph;
}

int cuGraphInstantiateWithFlags(void **all, void *graph, unsigned long long flags) {
    struct graph *copy = malloc(sizeof *copy);
    *copy = *(struct graph *)graph;
    ((struct graph *)graph)->at = NULL;
    *all = copy;
    made++;
    return flags != 0;
}

int cuGraphDestroy(void *graph) {
    free(((struct graph *)graph)->at);
    free(graph);
    return 0;
}

int cuGraphExecDestroy(void *all) {
    return cuGraphDestroy(all);
}

int cuMemsetD8Async(uint64_t at, unsigned char value, size_t n, void *stream) {
    if (stream != &stream_now) return 1;
    struct recorded r = {.threads = value, .value = {(int64_t)at, (int64_t)n}};
    return recording ? note(&r) : cuMemsetD8_v2(at, value, n);
}

int cuGraphLaunch(void *all, void *stream) {
    const struct graph *g = all;
    int status = stream != &stream_now;
    replays++;
    for (int k = 0; k < g->n && !status; k++) {
        const struct recorded *r = &g->at[k];
        status = r->function ? start(r->function, r->x, r->y, r->z, r->threads, r->shared, r->value)
                             : cuMemsetD8_v2((uint64_t)r->value[0], (unsigned char)r->threads,
                                             (size_t)r->value[1]);
    }
    return status;
}

int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned ty, unsigned tz, unsigned shared, void *stream, void **argument,
                   void **extra) {
    struct recorded r = {function, x, y, z, threads, shared, {0}};
    Dl_info info;
    char *name;
    (void)extra;
    look_into(function);
    if (fault("launch")) return OUT_OF_RESOURCES;
    if (stream != &stream_now || ty != 1 || tz != 1 || !dladdr(function, &info) ||
        asprintf(&name, "arguments_%s", info.dli_sname + strlen("emulated_")) < 0)
        return 1;
    const int *n = dlsym(library, name);
    free(name);
    for (int k = 0, at = 0; n && n[k] && at + n[k] <= MOST_ARGUMENTS; at += n[k++])
        memcpy(&r.value[at], argument[k], (size_t)n[k] * 8);
    if (!n || recording) return n ? note(&r) : 1;
    return start(function, x, y, z, threads, shared, r.value);
}

/* What a tensor map says, as tests/cuda/emulate.h reads it; refused as the driver's manual says. */
struct map {
    uint64_t mark, base, dim[2], pitch;
    uint32_t size, box[2], swizzle;
};

int cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *base, const uint64_t *dim,
                           const uint64_t *pitch, const uint32_t *box, const uint32_t *step,
                           int interleave, int swizzle, int promotion, int fill) {
    static const uint32_t size[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    const char *file = getenv("ISAMAP_EMULATED_MAPS");
    FILE *f = file ? fopen(file, "a") : NULL;
    if (f && rank == 2)
        fprintf(f, "type %d dims %llu %llu pitch %llu box %u %u swizzle %d\n", type,
                (unsigned long long)dim[0], (unsigned long long)dim[1],
                (unsigned long long)pitch[0], box[0], box[1], swizzle);
    if (f) fclose(f);
    if ((uintptr_t)out % 64 || type < 0 || type > 9 || rank != 2 || (uintptr_t)base % 16 ||
        interleave || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill)
        return 1;
    struct map m = {0x54454e534f52, (uint64_t)(uintptr_t)base, {dim[0], dim[1]}, pitch[0],
                    size[type],     {box[0], box[1]},          (uint32_t)swizzle};
    for (int k = 0; k < 2; k++)
        if (!dim[k] || dim[k] > UINT64_C(1) << 32 || !box[k] || box[k] > 256 || step[k] != 1)
            return 1;
    uint64_t row = (uint64_t)box[0] * m.size;
    if (pitch[0] % 16 || pitch[0] >= UINT64_C(1) << 40 || pitch[0] < dim[0] * m.size || row % 16 ||
        (swizzle && row > (UINT64_C(16) << swizzle)))
        return 1;
    memset(out, 0, 128);
    memcpy(out, &m, sizeof m);
    return 0;
}
