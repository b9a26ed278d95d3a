/* Instructions as the planner sees them: axes with ranges and steps, and how each operand's elements follow from them. */
#ifndef ISAMAP_SCHEDULER_PLAN_NEEDLE_H
#define ISAMAP_SCHEDULER_PLAN_NEEDLE_H

#include "ir/program.h"
#include "machines/machine.h"
#include "scheduler/plan/limits.h"

struct needle {
    const struct instr *in;
    int instr;
    struct program *bound; /* semantics with every size at its largest (64 where unbounded) */
    int nx;
    int ranged[MAX_NEEDLE]; /* index into in->ranged of the size that axis x is; -1: a fixed extent
                             */
    int64_t lo[MAX_NEEDLE], hi[MAX_NEEDLE], step[MAX_NEEDLE];
    int64_t size[MAX_SIZES]; /* of those that no axis chooses */
    int again, remaining; /* the instruction that takes an operand which this one left in the unit,
                             and that operand; -1 */
    bool whole[MAX_NEEDLE]; /* blocked in a local memory: needles start at multiples of hi */
    int64_t entry_bytes;    /* of its loop with a table; 0: it has none */
    double entry_cycles;    /* to load one */
};

/* How one needle axis moves through an operand: offset += stride * (value / weight % extent);
 * elements. */
struct digit {
    int x;
    int64_t weight, extent, stride;
    int free_stride; /* index of a stride name, -1 */
    int64_t times;   /* that it goes in each step: 2 for y of y*2+r */
};
/* A fragment lies in the memories of several instances. Seen from here it is a whole: its digits are
 * those of the row-major operand, in strides of FRAGMENT elements that stand for no address. */
struct form {
    struct digit digit[MAX_DIGITS];
    int n;
    int layout;
    uint64_t fragment; /* two operands with the same one lie alike; 0: in one memory */
    int64_t share;     /* of a fragment: elements in each instance */
    const char *swizzle;
};

enum { FRAGMENT = 1 << 20 };

struct needle *needle_make(struct arena *, const struct machine *, int instr, struct diags *);
/* The same with some of the sizes chosen for good (0: not). NULL: not legal. */
struct needle *needle_fixed(struct arena *, const struct machine *, int instr, const int64_t *fixed,
                            struct diags *);
bool needle_dense(const struct needle *, int x); /* distances in some operand change with the size of the axis */
bool needle_reads_beside(const struct needle *, int operand); /* at constant distances too */
bool needle_reduces(const struct needle *, int x);
int64_t needle_leaf(const struct needle *, int x, int64_t tile); /* extent of the instructions of a tile */
int64_t needle_unit(const struct needle *, int x); /* what tiles of the axis are multiples of */
uint64_t form_fragment(const struct operand *, const struct layout *,
                       const struct buffer *, const int64_t *stride);
/* Strides of the places inside an instance, with sizes as in `bound`; none may be chosen. */
bool fragment_strides(const struct machine *, const struct needle *, int operand,
                      const struct program *bound, int64_t *out);
bool needle_form(const struct machine *, const struct needle *, int operand, int layout,
                 struct form *);
void instr_times(const struct machine *, const struct instr *, const struct program *bound,
                 const int64_t *size, double *latency, double *interval, double *overhead);

#endif
