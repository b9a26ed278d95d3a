/* A driver of a board with VDLA on it, as a device of isamap's runtime (backends/device.h):
 * registers and a piece of memory that the board reads and writes, both mapped from files. On a
 * board these are what its kernel module offers (/dev/uio0, a reserved piece of memory, uncached);
 * a test puts a process in its place (tests/driver.sh).
 *
 *   VDLA_REGISTERS=/dev/uio0 VDLA_MEMORY=/dev/udmabuf0 VDLA_MEMORY_BYTES=67108864 isamap sim …
 * --rtl
 *
 * Those that the machine file's `begin` names are written first, in its order. */
#include "backends/device.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    CONTROL = 0x00, /* write 1: go */
    STATUS = 0x04,  /* what the last launch came to; of type status */
    CYCLES = 0x10,  /* of all launches, low word; high word */
    INSTRUCTIONS = 0x18,
    WINDOW = 0x1000
};
enum status { BUSY = 1, FAILED = 2, DEADLOCK = 4 };
static const long long MEMORY_BYTES = 64 << 20;

struct board {
    volatile uint32_t *reg;
    uint8_t *memory;
    int64_t bytes, used;
};

static void *map(const char *name, size_t bytes, char *what) {
    const char *path = getenv(name);
    int file = path ? open(path, O_RDWR | O_SYNC) : -1;
    void *at =
        file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (at != MAP_FAILED) return at;
    snprintf(what, DEVICE_TEXT, "cannot map %s (%s)", name, path ? path : "not set");
    return NULL;
}

static void board_close(void *d) {
    struct board *b = d;
    if (b->reg) munmap((void *)(uintptr_t)b->reg, WINDOW);
    if (b->memory) munmap(b->memory, (size_t)b->bytes);
    free(b);
}

/* The hardware's parameters are what they are: the compiler was told by the machine file. */
static void *board_open(const struct device_setting *set, int n, char *what) {
    const char *bytes = getenv("VDLA_MEMORY_BYTES");
    struct board *b = calloc(1, sizeof *b);
    if (n > 0) {
        snprintf(what, DEVICE_TEXT, "'%s' cannot be set on a board", set[0].name);
    } else if (!b) {
        snprintf(what, DEVICE_TEXT, "no memory");
    } else {
        b->bytes = bytes ? strtoll(bytes, NULL, 0) : MEMORY_BYTES;
        b->reg = b->bytes > 0 ? map("VDLA_REGISTERS", WINDOW, what) : NULL;
        b->memory = b->reg ? map("VDLA_MEMORY", (size_t)b->bytes, what) : NULL;
        if (b->memory) return b;
    }
    if (b) board_close(b);
    return NULL;
}

static int64_t board_allocate(void *d, int64_t bytes, int64_t align) {
    struct board *b = d;
    if (bytes < 0 || align < 1) return -1;
    int64_t at = (b->used + align - 1) / align * align;
    if (at > b->bytes || bytes > b->bytes - at) return -1;
    b->used = at + bytes;
    return at;
}

static int outside(const struct board *b, int64_t address, int64_t bytes) {
    return address < 0 || bytes < 0 || address > b->bytes || bytes > b->bytes - address;
}

static int board_write(void *d, int64_t address, const void *from, int64_t bytes) {
    struct board *b = d;
    if (outside(b, address, bytes)) return 1;
    memcpy(b->memory + address, from, (size_t)bytes);
    return 0;
}

static int board_read(void *d, int64_t address, void *to, int64_t bytes) {
    struct board *b = d;
    if (outside(b, address, bytes)) return 1;
    memcpy(to, b->memory + address, (size_t)bytes);
    return 0;
}

static int board_launch(void *d, int64_t address, int64_t n, int64_t bytes,
                        const struct device_register *reg, int nregisters, char *what) {
    struct board *b = d;
    (void)n;
    if (outside(b, address, bytes)) return snprintf(what, DEVICE_TEXT, "no such words"), 1;
    for (int k = 0; k < nregisters; k++) {
        if (reg[k].address % 4 || reg[k].address >= WINDOW || reg[k].bits > 32)
            return snprintf(what, DEVICE_TEXT, "no register 0x%" PRIx64, reg[k].address), 1;
        b->reg[reg[k].address / 4] = (uint32_t)reg[k].value;
    }
    __sync_synchronize(); /* what the board reads is in memory before it begins */
    b->reg[CONTROL / 4] = 1;
    return 0;
}

static uint64_t cycles(const struct board *b) {
    uint32_t high, low;
    do {
        high = b->reg[CYCLES / 4 + 1];
        low = b->reg[CYCLES / 4];
    } while (b->reg[CYCLES / 4 + 1] != high);
    return (uint64_t)high << 32 | low;
}

/* The board counts while it works; one that stands still is given up too. */
static enum device_end board_wait(void *d, uint64_t limit, char *what) {
    struct board *b = d;
    const struct timespec nap = {0, 100000};
    uint64_t start = cycles(b);
    long naps = 0;
    while ((b->reg[STATUS / 4] & BUSY) || b->reg[CONTROL / 4])
        if (cycles(b) - start > limit || ++naps > 6000000)
            return DEVICE_LIMIT;
        else
            nanosleep(&nap, NULL);
    __sync_synchronize();
    uint32_t status = b->reg[STATUS / 4];
    snprintf(what, DEVICE_TEXT, "status 0x%" PRIx32, status);
    return status & DEADLOCK ? DEVICE_DEADLOCK : status & FAILED ? DEVICE_FAILED : DEVICE_DONE;
}

static size_t board_counters(void *d, struct device_counter *out, size_t most) {
    const struct board *b = d;
    const struct device_counter list[] = {{"cycles", cycles(b)},
                                          {"instructions", b->reg[INSTRUCTIONS / 4]}};
    const size_t n = sizeof list / sizeof *list;
    for (size_t k = 0; k < n && k < most; k++) out[k] = list[k];
    return n;
}

/* This board keeps no record of single instructions. */
static size_t board_records(void *d, struct device_record *out, size_t first, size_t most) {
    (void)d, (void)out, (void)first, (void)most;
    return 0;
}

static const struct device table = {DEVICE_VERSION, "vdla on a board", board_open,   board_close,
                                    board_allocate, board_write,       board_read,   board_launch,
                                    board_wait,     board_counters,    board_records};

const struct device *isamap_device(void) {
    return &table;
}
