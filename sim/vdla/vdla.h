/* The accelerator in RTL, compiled by Verilator, as a C library: DRAM that the caller fills, a stream of instructions in it, a
 * run, and what came out. Times are cycles from the first instruction's arrival at the queues. */
#ifndef VDLA_H
#define VDLA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vdla;

enum vdla_end {
    VDLA_DONE,
    VDLA_DEADLOCK,
    VDLA_LIMIT,
    VDLA_FAULT /* an illegal instruction or address, or a token counter that overflowed */
};

struct vdla_retired {
    int queue; /* 0 load, 1 exec, 2 store */
    uint32_t number;
    uint64_t start, end; /* it held its queue from start until before end */
};

/* In the order of counter_t in rtl/vdla_types.sv. */
enum vdla_counter {
    VDLA_GEMM, /* cycles */
    VDLA_ALU,
    VDLA_PORT,
    VDLA_BUSY, /* of load, exec, store; likewise below */
    VDLA_INSTRUCTIONS = VDLA_BUSY + 3,
    VDLA_PORT_WAIT = VDLA_INSTRUCTIONS + 3,
    VDLA_TOKEN_WAIT = VDLA_PORT_WAIT + 3, /* l2c, c2l, c2s, s2c */
    VDLA_READ_BYTES = VDLA_TOKEN_WAIT + 4, /* inputs, weights, accumulators, micro-ops */
    VDLA_STORED_BYTES = VDLA_READ_BYTES + 4,
    VDLA_COUNTERS
};

/* NULL: no memory. DRAM is zero. */
struct vdla *vdla_open(int64_t dram_bytes);
void vdla_close(struct vdla *);
uint8_t *vdla_dram(struct vdla *);
/* A latency drawn from low..high for each copy, by a generator that starts with the seed; low = high: fixed. False: a latency below
 * 8 or above 1000, a rate of none or more than 64 bytes a cycle. */
int vdla_set(struct vdla *, uint32_t rate, uint32_t latency_low, uint32_t latency_high, uint64_t seed);
/* From reset; what the buffers on the chip hold stays from run to run. `what` (may be NULL) gets a line about any end but VDLA_DONE. */
enum vdla_end vdla_run(struct vdla *, uint64_t address, uint32_t instructions, uint64_t limit, char *what, size_t n);
uint64_t vdla_cycles(const struct vdla *); /* of the last run; likewise below */
uint64_t vdla_count(const struct vdla *, enum vdla_counter);
const struct vdla_retired *vdla_retired_list(const struct vdla *, size_t *n); /* as they left */

#ifdef __cplusplus
}
#endif
#endif
