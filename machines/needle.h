/* The digest of an instruction or a move: its axes with their ranges and steps, and how each operand's elements
 * follow from them. */
#ifndef ISAMAP_MACHINES_NEEDLE_H
#define ISAMAP_MACHINES_NEEDLE_H

#include "ir/program.h"
#include "machines/machine.h"

struct arena;
struct diags;

enum { MAX_NEEDLE = 12, MAX_DIGITS = 16, MAX_SIZES = 16 };

struct needle {
    const struct instr *in;
    int instr;
    struct program *bound; /* semantics with every size at its largest (64 where unbounded) */
    int nx;
    int ranged[MAX_NEEDLE]; /* index into in->ranged of the size that axis x is; -1: a fixed extent
                             */
    int64_t lo[MAX_NEEDLE], hi[MAX_NEEDLE], step[MAX_NEEDLE]; /* of instructions lo is one step */
    int64_t fine[MAX_NEEDLE]; /* the step of the machine file, from lo on */
    int64_t size[MAX_SIZES]; /* of those that no axis chooses */
    uint64_t other_bank[MAX_SIZES]; /* bit b of a: rules keep operands a and b in different banks */
    /* Filled in by the planner: */
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
/* Of the operand, the one at the origin where it is read at several places; NULL: none. */
const struct access *needle_access(const struct needle *, int operand);
/* Does a given stride of the layout name the size that axis x is? */
bool needle_strides_use(const struct needle *, const struct operand_layout *, int x);
bool needle_dense(const struct needle *, int x); /* distances in some operand change with the size of the axis */
bool needle_reads_beside(const struct needle *, int operand); /* at constant distances too */
bool needle_reduces(const struct needle *, int x);
int64_t needle_leaf(const struct needle *, int x, int64_t tile); /* extent of the instructions of a tile */
int64_t needle_unit(const struct needle *, int x); /* what tiles of the axis are multiples of */
uint64_t form_fragment(const struct operand *, const struct layout *,
                       const struct buffer *, const int64_t *stride);
/* The strides of a layout's places, with sizes as in `bound`: given, named (name >= 0: the schedule's choice) or
 * dense. Places in units have none. */
struct strides {
    int64_t stride[MAX_DIMS];
    int name[MAX_DIMS];
    int n;
};
bool operand_strides(const struct machine *, const struct instr *, int operand, int layout,
                     const struct program *bound, struct strides *);
/* Strides of the places inside an instance, with sizes as in `bound`; none may be chosen. */
bool fragment_strides(const struct machine *, const struct needle *, int operand,
                      const struct program *bound, int64_t *out);
bool needle_form(const struct machine *, const struct needle *, int operand, int layout,
                 struct form *);

#endif
