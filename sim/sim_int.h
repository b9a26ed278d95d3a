/* Inside the simulator. walk.c turns the tree into instructions in program order; time.c gives each
 * its start and end; values.c executes it; image.c holds what the memories contain. */
#ifndef ISAMAP_SIM_INT_H
#define ISAMAP_SIM_INT_H

#include "sim/sim.h"

enum { SIM_SIZES = 16, SIM_OPERANDS = 16, SIM_STRIDES = 8 };

/* ---- what memories contain: one array of bytes for each memory and instance of its unit, grown to
 * what is used ---- */
struct image {
    uint8_t *byte;
    int64_t bytes;   /* allocated; reading beyond is an error of the schedule */
    int64_t granule; /* of the two arrays below */
    double *visible; /* when the last write of a granule is seen by other queues */
    int16_t *writer; /* queue + 1; 0: nobody yet */
};

/* ---- one executed instruction, all expressions evaluated ---- */
struct executed {
    const struct node *node;
    int queue; /* -1: none; done at once */
    int64_t sequence;
    double dispatched;
    int64_t size[SIM_SIZES], stride[SIM_STRIDES], flag[SIM_OPERANDS];
    int64_t address[SIM_OPERANDS];      /* in the operand's memory; immediates: unused */
    int64_t lo[MAX_AXES], hi[MAX_AXES]; /* fallback: the box */
    int64_t work;                       /* points of the program's statement that it executes */
    int instance;                       /* of the parallel unit around it */
};

/* The operands' shape for one instruction and one choice of sizes and strides. */
struct shape {
    bool valid;
    int64_t size[SIM_SIZES], stride[SIM_STRIDES];
    int alternative[SIM_OPERANDS];
    struct program *program;       /* the semantics, bound */
    int64_t *offset[SIM_OPERANDS]; /* element -> element offset; NULL: dense */
    int64_t elements[SIM_OPERANDS], span[SIM_OPERANDS];
    uint8_t *data[SIM_OPERANDS];
    void **by_buffer; /* for program_run */
    double latency, interval, overhead, energy;
};

struct queue_time {
    double *server; /* [width]: free from then on */
    double clock;   /* data order: throughput bound */
    struct executed *fifo;
    int head, count, room;
    double last_start;
};

struct sync_time {
    double *at; /* tokens waiting: when each was given */
    int head, count, room;
};

struct engine {
    const struct schedule *schedule;
    const struct machine *machine;
    const struct sim_options *options;
    struct sim_result *result;
    struct diags *diags;
    struct arena arena;
    void *const *data;
    struct image *image; /* [nmemories * instances] */
    int instances;
    struct shape *shape;      /* [ninstrs] */
    struct queue_time *queue; /* [nqueues] */
    struct sync_time *sync;   /* [nsyncs] */
    bool *is_host, joined;    /* queues of a host beside a device take no device time */
    uint64_t *interlocked;    /* [nqueues]: queues whose results hardware makes it wait for */
    double *bus_free, floor, end;
    int64_t *value; /* of the schedule's variables */
    int64_t *slot;  /* [nplaces]: current slot; -1 before the first rotate */
    int64_t sequence, steps, limit;
    int instance;
    bool counting, failed;
    FILE *trace;
    bool traced;
};

/* image.c */
bool images_open(struct engine *);
void images_close(struct engine *);
struct image *image_of(struct engine *, int memory, int instance);
void images_load(struct engine *);  /* arguments in */
void images_store(struct engine *); /* out and inout back */
void home_gather(struct engine *, int buffer, uint8_t *to);
void home_scatter(struct engine *, int buffer, const uint8_t *from);

/* values.c */
const struct shape *shape_of(struct engine *, const struct issue_node *, const struct executed *);
bool issue_execute(struct engine *, const struct executed *);
bool fallback_execute(struct engine *, const struct executed *);

/* walk.c */
bool walk_section(struct engine *, const struct section *);

/* time.c */
bool time_dispatch(struct engine *, struct executed *);
bool time_drain(struct engine *);
void time_reset_queues(struct engine *, double floor);
void trace_close(struct engine *);

bool engine_error(struct engine *, const struct node *, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
