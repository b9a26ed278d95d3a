/* Random programs as text, legal by docs/ir.md, and the classes that each belongs to. */
#ifndef ISAMAP_TESTS_RANDOM_RANDOM_H
#define ISAMAP_TESTS_RANDOM_RANDOM_H

#include "ir/program.h"
#include "tests/random/tape.h"

/* What a program has, by name: the campaign counts programs of each class. */
#define CLASS_TABLE(X)                                                                             \
    X(CONTRACTION, "contraction")                                                                  \
    X(NATIVE, "types of an instruction")                                                           \
    X(PARTIAL, "writes a part")                                                                    \
    X(OFFSET, "reads at an offset")                                                                \
    X(STRIDED, "strided")                                                                          \
    X(REVERSED, "reversed")                                                                        \
    X(TRANSPOSED, "transposed")                                                                    \
    X(DIAGONAL, "diagonal")                                                                        \
    X(REREAD, "reads again elsewhere")                                                             \
    X(WINDOW, "window")                                                                            \
    X(FILL, "else")                                                                                \
    X(WHERE, "where")                                                                              \
    X(ONLY_WHERE, "axis in where alone")                                                           \
    X(UNUSED_AXIS, "unused axis")                                                                  \
    X(AXIS_VALUE, "axis as a value")                                                               \
    X(SCALAR, "no dimensions")                                                                     \
    X(EXTENT_1, "extent 1")                                                                        \
    X(SEVERAL, "several statements")                                                               \
    X(IN_PLACE, "in place")                                                                        \
    X(SCATTER, "scatter")                                                                          \
    X(EXTREME, "max= min= *=")                                                                     \
    X(SELECT, "select")                                                                            \
    X(BITS, "shifts and bits")                                                                     \
    X(CAST, "cast")                                                                                \
    X(CHAIN, "chain of 64")                                                                        \
    X(ROWS, "statistics of rows")                                                                  \
    X(SECOND, "product after product")                                                             \
    X(RECURRENCE, "recurrence")                                                                    \
    X(NO_STEPS, "recurrence of 0 steps")                                                           \
    X(SEQ, "seq axis")                                                                             \
    X(PARAM, "parameter")                                                                          \
    X(OPEN, "size that stays open")                                                                \
    X(SHARED, "many statements on shared axes")                                                    \
    X(CALL, "opaque call")                                                                         \
    X(OUT_FIRST, "declared in any order")                                                          \
    X(WIDE, "integers of the whole range")                                                         \
    X(BIG, "beyond scratchpads")                                                                   \
    X(ROUNDS, "rounds")

enum class {
#define X(id, name) CLASS_##id,
    CLASS_TABLE(X)
#undef X
        CLASS_COUNT
};
extern const char *const class_name[CLASS_COUNT];

struct scheme { /* types of a product's factors and of its sum */
    enum type a, b, sum;
};
struct schemes { /* what the machine's instructions take */
    struct scheme at[16];
    int n;
};

struct random_info {
    uint64_t classes; /* bit: enum class */
    bool exact;       /* nothing rounds: all results are bit for bit what the interpreter says */
    uint32_t types;   /* bit: enum type, of buffers */
};

/* Text of the program, from the heap. Small where the tape has run out. */
char *random_program(struct tape *, const struct schemes *native, struct random_info *);

/* An element of an argument before the program runs: small integers, so that sums are exact;
 * `wide`: integers of the type's whole range. *s is the state of a generator. */
union value random_element(enum type, bool wide, uint64_t *s);

#endif
