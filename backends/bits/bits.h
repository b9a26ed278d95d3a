/* Backend `bits`: schedules become instruction words and table entries, laid out by the bit fields
 * of the machine file alone (docs/backends.md). */
#ifndef ISAMAP_BACKENDS_BITS_BITS_H
#define ISAMAP_BACKENDS_BITS_BITS_H

#include "backends/device.h"
#include "scheduler/schedule/schedule.h"

/* A SystemVerilog package with the parameters, memories, queues and syncs of the machine, and for
 * each word its fields as constants and as a packed struct, and the bits by which it is known. */
void bits_package(const struct machine *, struct text *);
/* Does the machine have bit fields at all? */
bool bits_spoken(const struct machine *);

/* ---- encoding ---- */

/* One word of a stream. */
struct bits_line {
    int64_t offset;   /* bytes from the start of the stream */
    const char *name; /* the instruction's, the configure's, … id */
    int queue;        /* -1: none */
    int node; /* which of the walked steps it came from, from 0 in each launch; -1: begin, end */
};

/* What the device executes between two pieces of the host's work. */
struct bits_launch {
    uint8_t *stream;
    int64_t bytes, n; /* n words */
    struct bits_line *line;
    struct device_register *reg; /* of `begin` */
    int nregs;
};

/* Schedules are walked by others (the tree in program order); each step on a queue of the device is
 * added with the values of the variables and the current slots: an issue, a sync, a configure, or
 * the outermost of hardware loops. Signals to and from a host's queues are left out: the host waits
 * for each launch. */
struct bits_encoder;
/* The home memory begins at address `home` of the device: base() of the machine file. */
struct bits_encoder *bits_open(const struct schedule *, int64_t home, struct diags *);
bool bits_add(struct bits_encoder *, const struct node *, const int64_t *value,
              const int64_t *slot);
bool bits_pending(const struct bits_encoder *); /* something was added since the last launch */
int64_t bits_stream_bytes(const struct bits_encoder *); /* of the launch, as it would be taken now */
/* Ends a launch whose stream will lie at this address of the device. False after reporting. The
 * launch lives as long as the encoder. */
bool bits_take(struct bits_encoder *, int64_t address, struct bits_launch *);
void bits_close(struct bits_encoder *);

/* ---- program images: files with the suffix .bin ---- */

/* One of the caller's arrays, in the device's memory. */
struct bits_array {
    const char *name;
    enum role role; /* ROLE_IN, ROLE_OUT, ROLE_INOUT */
    enum type type;
    int ndims;
    int64_t extent[MAX_DIMS], address, bytes; /* row-major */
};

/* Bytes that lie in the device's memory before it starts: constants as the device wants them,
 * tables. */
struct bits_blob {
    int64_t address, bytes;
    const uint8_t *at;
};

struct bits_image {
    const char *machine, *program;
    struct bits_array *array;
    int narrays;
    struct bits_blob *blob;
    int nblobs;
    struct device_register *reg;
    int nregs;
    int64_t address, n, bytes; /* the stream: where it lies, words, bytes */
    const uint8_t *stream;
    int64_t end; /* bytes of the device's memory that are used, from address 0 on */
};

void bits_image_write(const struct bits_image *, struct text *);
/* What it points to lives in the arena. NULL after reporting. */
struct bits_image *bits_image_read(struct arena *, const char *path, struct diags *);
/* The image in words: arrays, blobs, registers, instructions. False after reporting: another
 * machine's, or words that are no instruction. */
bool bits_disassemble(const struct machine *, const struct bits_image *, const char *path,
                      struct text *, struct diags *);

/* A stream as the text of a schedule (docs/schedule.md): buffer mK is memory K of the machine, the
 * home memory an inout array of so many bytes; `home`, where it is given, is what it holds, from
 * which tables of entries are read. So what any words do, and when, can be simulated. False after
 * reporting: words that are no instruction, or that a schedule cannot say. */
bool bits_schedule(const struct machine *, const char *name, const uint8_t *stream, int64_t bytes,
                   const uint8_t *home, int64_t home_bytes, struct text *out, struct diags *);
/* The same of an image and what it puts into the home memory. False after reporting: another
 * machine's too. */
bool bits_image_schedule(const struct machine *, const struct bits_image *, const char *path,
                         struct text *out, struct diags *);

#endif
