/* Values with error bounds: what the reference of `--verify` computes with. A value is what exact
 * arithmetic gives (f64; integers and bool exactly, by themselves); the bounds say between what
 * every implementation that the language allows may lie.
 *
 * One operation: the rule in its row of the operation table (ir/ops.h), plus `units` unit roundoffs
 * of the type it is computed in. The first operation on exact operands is exact where its result is
 * (an integer times a power of two), and where nothing but a rounding, a comparison or a cast to an
 * integer uses it: then every implementation rounds it alike.
 *
 * A sum of n terms, in any order: the terms' own bounds, plus the smaller of (n-1)·u·Σ|t| (Higham,
 * Accuracy and Stability of Numerical Algorithms, §4.2) and 4·√(n-1)·u·√(peak² + Σt²) + 2·d, where
 * `peak` is the largest partial sum and d the difference that the declared order makes in the type
 * itself. The second is the probabilistic bound of Higham and Mary (2019), for partial sums in an
 * order that does not depend on the data; d covers data on which roundings do not cancel (equal
 * terms). */
#ifndef ISAMAP_IR_BOUND_H
#define ISAMAP_IR_BOUND_H

#include "ir/ops.h"

struct bounded {
    union value v;
    double below, above; /* >= 0: legal results lie in [v - below, v + above]; both 0: exactly v
                            (NaN: NaN); infinite: undecided */
    bool loose; /* a step (comparison, rounding, clip) that the bounds straddle is part of them */
    bool arose; /* NaN or infinite though no operand was: in a sum another order may avoid it */
};

static inline struct bounded bounded_exactly(union value v) {
    return (struct bounded){.v = v};
}
static inline bool bounded_is_exact(const struct bounded *x) {
    return x->below == 0 && x->above == 0;
}

double type_unit(enum type);    /* unit roundoff of a float type: 2^-24 for f32 */
double type_largest(enum type); /* largest finite value of a float type */
double type_normal(enum type);  /* smallest normal value of a float type */
double type_tiny(enum type); /* what underflow may change: results below the normal range may become
                                0 in f32 and bf16 */
enum type type_computed(enum type); /* of temporaries: f32 for f16 and bf16 */

/* What instructions of a machine may do beside what the language says. */
struct leeway {
    uint32_t zeroed; /* bit t: factors of sums of products that are read as float type t may count
                        as 0 below its normal range */
    unsigned char units[OP_COUNT]; /* unit roundoffs, where an operand is not exact; not below the
                                      operation table's counts */
};

/* As op_eval. crisp: see above; only a step uses the result. leeway NULL: none. */
struct bounded bounded_eval_within(const struct leeway *, enum opcode, enum type to, enum type from,
                                   const struct bounded *arg, bool crisp);
struct bounded bounded_eval(enum opcode, enum type to, enum type from, const struct bounded *arg,
                            bool crisp);

/* A factor, read as type t, of instructions that may take 0 for what is below the normal range. */
static inline struct bounded bounded_zeroed(enum type t, struct bounded x) {
    double v = x.v.f < 0 ? -x.v.f : x.v.f;
    if (!(v > 0) || v >= type_normal(t)) return x;
    x.below = x.below > v ? x.below : v;
    x.above = x.above > v ? x.above : v;
    return x;
}

/* `x`, computed in type_computed(t), stored in an element of type t. */
struct bounded bounded_store(enum type t, struct bounded x);

/* A sum into an element of type t. Where some order of its terms passes the largest number of the
 * type, or meets infinities of both signs, the sum is undecided, unless every order ends in the
 * same infinity or a term is NaN already. */
struct bounded_sum {
    enum type type;
    double total, magnitude, square, peak; /* of the finite terms */
    double side[2];                        /* of `magnitude`: the terms below 0, those above */
    double infinite; /* Σ of the other terms: an infinity or NaN, 0 without them */
    double narrow;   /* in the type itself, in the order of the calls */
    double start;    /* e of what the sum began with */
    double linear;   /* Σ e of the terms */
    double square_error, by_sign, by_a,
        by_b;        /* of products: Σ e², Σ ±e by the sign of the term, of the factors */
    double rounding; /* of the products, in f64 */
    double loose_below, loose_above;
    double unit;   /* coarsest rounding in what products read */
    int64_t terms; /* that are not 0 */
    int granule;   /* every term is a multiple of 2^granule, if all are exact */
    bool exact, products, loose;
    bool nan;     /* a term is NaN, whatever the order */
    bool brittle; /* a term arose as NaN or infinite */
};
enum { NO_GRANULE = -5000, ANY_GRANULE = 5000 };

/* unit: the coarsest unit roundoff among the types that the factors of products are read from. */
void bounded_sum_open(struct bounded_sum *, enum type, double unit, struct bounded start);
void bounded_sum_add(struct bounded_sum *, const struct bounded *term); /* floats */
void bounded_sum_product(struct bounded_sum *, const struct bounded *a, const struct bounded *b,
                         enum type computed_in);
struct bounded bounded_sum_close(const struct bounded_sum *);
int value_granule(double x); /* the largest g of which x is a multiple of 2^g; ANY_GRANULE for 0,
                                NO_GRANULE for NaN and infinities */
double round_quickly(enum type, double x); /* as type_round but for halves and NaN */

/* An integer sum, wrapping: in place. */
void bounded_add_integer(enum type, struct bounded *sum, const struct bounded *term);

#endif
