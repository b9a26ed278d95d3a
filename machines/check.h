/* The parts of machine_check. Each reports and goes on. Internal to this folder. */
#ifndef ISAMAP_MACHINES_CHECK_H
#define ISAMAP_MACHINES_CHECK_H

#include "machines/tree.h"

enum { MOST_SIZES = 64 };

/* Sizes of an instruction at which it is tried: the low end of every range, the high end, or a
 * middle that fills a tile. */
enum corner { CORNER_LOW, CORNER_MIDDLE, CORNER_HIGH };

struct sizes {
    struct binding at[MOST_SIZES]; /* every kernel parameter that has a value, in order */
    int n;
    int64_t ranged[MOST_SIZES]; /* one for each of instr.ranged */
    bool unbounded[MOST_SIZES]; /* CORNER_HIGH of a size without an end */
    bool known;                /* all have a value; otherwise: */
    const struct kernel_param *missing;
};

void check_error(struct diags *, struct place_in_file, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct sizes check_sizes(const struct machine *, const struct instr *, enum corner);

/* Maps that were found right over buffers of these extents: many instructions have the same. */
struct known_map {
    const char *map;
    int ndims;
    int64_t extent[MAX_DIMS];
};
struct known_maps {
    struct arena arena;
    struct known_map *at;
    int n, cap;
};
void check_instr_layouts(const struct machine *, const struct instr *, const struct program *,
                         struct known_maps *, struct diags *);
/* What remains of operands in other memories (`also`), at the largest sizes. */
void check_copies(const struct machine *, const struct instr *, const struct program *,
                  struct diags *);
void check_instr_bits(const struct machine *, const struct instr *, struct diags *);
void check_other_bits(const struct machine *,
                      struct diags *); /* configure, sync, begin, end, formats */
void check_queues(const struct machine *, struct diags *);
void check_axes(const struct machine *, struct diags *);
void check_signals(const struct machine *, struct diags *);
void check_reach(const struct machine *, struct diags *);

#endif
