/* In a board's place: a process that maps the same two files as examples/driver and runs what is
 * launched on the model in RTL. board MODEL.so REGISTERS MEMORY BYTES */
#include "backends/device.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    CONTROL = 0,
    STATUS = 1,
    COUNT = 2,
    BASE = 3,
    CYCLES = 4,
    INSTRUCTIONS = 6,
    WINDOW = 0x1000
};

static void *map(const char *path, size_t bytes) {
    int file = open(path, O_RDWR);
    void *at =
        file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) exit(fprintf(stderr, "board: cannot map %s\n", path));
    close(file);
    return at;
}

static uint64_t counter(const struct device *d, void *o, const char *name) {
    struct device_counter c[64];
    size_t n = d->counters(o, c, 64);
    for (size_t k = 0; k < n && k < 64; k++)
        if (!strcmp(c[k].name, name)) return c[k].value;
    return 0;
}

static uint32_t launch(const struct device *d, void *o, volatile uint32_t *reg, uint8_t *memory,
                       int64_t bytes) {
    char what[DEVICE_TEXT] = "";
    struct device_register r[] = {{0x08, reg[COUNT], 32}, {0x0c, reg[BASE], 32}};
    enum device_end end = DEVICE_FAILED;
    if (!d->write(o, 0, memory, bytes) &&
        !d->launch(o, reg[BASE], reg[COUNT], (int64_t)reg[COUNT] * 16, r, 2, what))
        end = d->wait(o, UINT64_MAX / 2, what);
    if (end != DEVICE_DONE) fprintf(stderr, "board: %s\n", what);
    d->read(o, 0, memory, bytes);
    uint64_t cycles = counter(d, o, "cycles");
    reg[CYCLES] = (uint32_t)cycles;
    reg[CYCLES + 1] = (uint32_t)(cycles >> 32);
    reg[INSTRUCTIONS] = (uint32_t)counter(d, o, "instructions");
    return end == DEVICE_DONE ? 0 : end == DEVICE_DEADLOCK ? 4 : 2;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int64_t bytes = atoll(argv[4]);
    volatile uint32_t *reg = map(argv[2], WINDOW);
    uint8_t *memory = map(argv[3], (size_t)bytes);
    void *library = dlopen(argv[1], RTLD_NOW),
         *symbol = library ? dlsym(library, "isamap_device") : NULL;
    const struct device *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof get);
    char what[DEVICE_TEXT] = "";
    void *o = get ? get()->open(NULL, 0, what) : NULL;
    if (!o) return fprintf(stderr, "board: no model: %s\n", what), 1;
    for (const struct timespec nap = {0, 100000};;) {
        while (!reg[CONTROL]) nanosleep(&nap, NULL);
        reg[STATUS] = 1;
        __sync_synchronize();
        reg[CONTROL] = 0;
        uint32_t status = launch(get(), o, reg, memory, bytes);
        __sync_synchronize();
        reg[STATUS] = status;
    }
}
