/* The runtime of a device that executes instruction words: a plain struct of functions, which a
 * model of the hardware fills in, or a driver of a board. C and nothing of isamap's, so that a
 * driver is one file of its own. Functions that can fail give 0 when done; `what` then gets one
 * line of text. */
#ifndef ISAMAP_BACKENDS_DEVICE_H
#define ISAMAP_BACKENDS_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DEVICE_VERSION = 1, DEVICE_TEXT = 512 };

enum device_end {
    DEVICE_DONE,
    DEVICE_FAILED,
    DEVICE_DEADLOCK, /* `what`: which queue waits for which sync */
    DEVICE_LIMIT     /* still running after so many cycles */
};

/* A parameter of the machine file (name, value) that the device is to be opened with. Those that it
 * cannot change must be as it was built, else open fails. */
struct device_setting {
    const char *name;
    int64_t value;
};

/* A register that is written before the device starts, in this order: `begin` of the machine file.
 */
struct device_register {
    uint64_t address, value;
    int bits;
};

/* What the device counted since it was opened, by name: "cycles", "instructions"; and, with the ids
 * of the machine file, "busy.QUEUE", "wait.QUEUE", "wait.SYNC" (cycles), "bytes.BUS",
 * "read.MEMORY", "written.MEMORY" (bytes). */
struct device_counter {
    const char *name;
    uint64_t value;
};

/* One instruction that is done: its number in the stream of the launch (from 0), the queue's id,
 * the cycles since the device was opened in which it began and after which it had ended. */
struct device_record {
    const char *queue;
    uint64_t number, start, end;
};

struct device {
    int version; /* DEVICE_VERSION */
    const char *name;
    void *(*open)(const struct device_setting *, int n, char *what);
    void (*close)(void *);
    /* Addresses are the device's; the first allocation is at 0. -1: no room. All is given back by
     * close. */
    int64_t (*allocate)(void *, int64_t bytes, int64_t align);
    int (*write)(void *, int64_t address, const void *from, int64_t bytes);
    int (*read)(void *, int64_t address, void *to, int64_t bytes);
    /* Starts the `n` instructions at this address of the device's memory, `bytes` in all. */
    int (*launch)(void *, int64_t address, int64_t n, int64_t bytes,
                  const struct device_register *, int nregisters, char *what);
    enum device_end (*wait)(void *, uint64_t cycles, char *what);
    size_t (*counters)(void *, struct device_counter *,
                       size_t most); /* returns how many there are */
    size_t (*records)(void *, struct device_record *, size_t first, size_t most); /* likewise */
};

/* A model or driver is a shared library that exports this. */
const struct device *isamap_device(void);

#ifdef __cplusplus
}
#endif
#endif
