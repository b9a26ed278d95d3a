/* What a program that calls compiled code sees: struct NAME_args, the table of its arguments, where weights are, and the checks around
 * prepare and run (docs/backends.md, "What is generated"). Both backends write what stands here. The first 64 bytes of the prepared
 * block belong to the entries: its owner's key. */
#ifndef ISAMAP_BACKENDS_INTERFACE_H
#define ISAMAP_BACKENDS_INTERFACE_H

#include "backends/backend.h"

/* Of the generated interface; grows when a program written for an older one would not work. */
enum { INTERFACE_VERSION = 1, INTERFACE_MOST_THREADS = 1024 };

/* What prepare and run return. */
enum interface_status {
    INTERFACE_DONE,
    INTERFACE_REFUSED,   /* the kernel refuses a permission that an instruction needs */
    INTERFACE_ARGUMENT,  /* a pointer is NULL or not aligned, a size is out of its range, a number of threads is wrong */
    INTERFACE_UNPREPARED, /* run before prepare, or with the block of another program */
    INTERFACE_WEIGHTS,   /* the weights are those of another program */
    INTERFACE_OTHER,     /* NAME_matches: header and library are of different compilations */
    INTERFACE_STREAM,    /* a stream that init did not begin */
    INTERFACE_NO_DEVICE, /* there is no driver, or no device */
    INTERFACE_DEVICE,    /* the device refuses the code, has no room, or failed */
    INTERFACE_STATUSES
};
extern const char *const interface_message[INTERFACE_STATUSES];

struct interface {
    const char *name; /* of the program, a C identifier */
    const struct schedule *schedule;
    enum weights weights;
    int *buffer, n;     /* the fields of NAME_args, in order */
    char **field;       /* their names in C, all different */
    const char **title; /* as the program or model names them */
    int64_t *offset;    /* [program.nbuffers] of a weight: bytes into the weights (behind a file's head); -1: it is none */
    const void *const *data; /* [program.nbuffers] content of the weights */
    int64_t weight_bytes;    /* multiple of 64; 0: there are none */
    uint64_t key;            /* of this program, its arguments and its blocks */
    /* words of 8 bytes in NAME_args; weights: -1 where it has no such field */
    int at_weights, at_prepared, at_threads, at_sizes, words;
    struct carried_state *state; /* that streams carry from run to run */
    int nstates;
    /* Steps count on from run to run, with what they left in the rows of these buffers. A run then has one word more than NAME_args, the number of its first
     * step; its size is where its steps end, and rows of arguments lie as if it had begun with step 0. */
    bool counted;
    const char *steps; /* the field that says how many */
    const char *device_text; /* a C expression: what failed on the device, in words; NULL: there is none */
    int *row, nrows;
    const int64_t *row_at; /* [nrows] bytes into the workspace (interface_rows) */
};

/* A stream's block: the program's key, which of the two copies of each state is the current one, how many steps there were; the states; the workspace. */
enum { STREAM_HEAD = 64 };
struct carried_state {
    int from, to;      /* fields */
    int64_t at, bytes; /* in the block: two, each padded to 64 bytes */
};
static inline int64_t stream_room(const struct carried_state *s) {
    return (s->bytes + 63) / 64 * 64;
}

/* `options` may be NULL. `blocks`: what else another compilation may differ in. */
struct interface *interface_make(struct arena *, const struct schedule *,
                                 const struct backend_options *, uint64_t blocks);
/* offset[place]: where homes lie in the workspace. */
void interface_rows(struct arena *, struct interface *, const int64_t *offset);
static inline bool interface_streams(const struct interface *i) {
    return i->nstates || i->counted;
}
/* Bytes of an argument's row where each step has one; 0. */
int64_t interface_row_bytes(const struct interface *, int field);
const struct buffer *interface_array(const struct schedule *, int buffer); /* as the caller declared it */
const char *interface_header(struct arena *, const struct interface *); /* NAME.h */
/* NAME.h in the folder of `path`. */
bool interface_write_header(const struct interface *, const char *path, struct diags *);
/* The weights, as they are embedded or, with a head that says whose they are, as a file. */
char *interface_weights(struct arena *, const struct interface *, bool head, size_t *n);
/* To the file that goes with OUT, where there is one. */
bool interface_write_weights(const struct interface *, const char *out, struct diags *);
/* Reports that a text has no room for embedded weights. */
bool weights_in_text(const struct interface *, const char *out, struct diags *);

/* The entries in C. They call NAME_prepare_body, NAME_run_body. */
void interface_c(struct text *, const struct interface *, size_t prepared, size_t workspace);
/* The same in LLVM's text form. */
void interface_llvm(struct text *, const struct interface *, size_t workspace);
/* stream.c: of those the ones for streams, where there are states. */
void counted_c(struct text *, const struct interface *);
void counted_llvm(struct text *, const struct interface *);
void stream_header(struct text *, const struct interface *);
void stream_c(struct text *, const struct interface *, size_t workspace);
void stream_llvm(struct text *, const struct interface *, size_t workspace);

#endif
