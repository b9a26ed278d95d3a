/* Inside the generator of random programs: a program that is being made. */
#ifndef ISAMAP_TESTS_RANDOM_MAKER_H
#define ISAMAP_TESTS_RANDOM_MAKER_H

#include "tests/random/random.h"

enum {
    MAKER_AXES = 56,
    MAKER_BUFFERS = 160,
    MAKER_DIMS = 5,
    MAKER_LINES = 400,
    TERMS = 3,
    MAKER_ELEMENTS = 1 << 21
};

/* What is known of all values of a buffer or an expression: |v| <= most, v is a multiple of
 * 2^grain. Floats whose bits between the two fit their type are exact in any order of summation. */
struct number {
    double most;
    int grain;
    bool exact; /* false: something has rounded */
};

/* offset + the sum of coef * axis */
struct affine {
    int axis[TERMS], coef[TERMS], n, offset;
};

struct place { /* of an element: indices of a buffer */
    struct affine at[MAKER_DIMS];
    int n;
    bool fill; /* some may lie outside */
};

/* The elements of a dimension that are set: lo, lo + stride, … count of them. */
struct grid {
    int lo, stride, count;
};

struct variable {
    char name[16];
    enum type type;
    enum role role;
    int ndims, extent[MAKER_DIMS];
    struct grid grid[MAKER_DIMS];
    struct number number;
    int reads, writes; /* statements so far */
    int scope;         /* recurrence it belongs to, + 1; 0: the program */
    bool open;         /* its first extent is the size that stays open */
    bool placed;       /* its declaration stands somewhere in the body */
};

struct list { /* axes */
    int at[8], n;
};

struct term {
    const char *text;
    enum type type;
    struct number number;
};

struct maker {
    struct tape *tape;
    struct arena arena;
    struct variable var[MAKER_BUFFERS];
    int nvars;
    int extent[MAKER_AXES], naxes;
    uint64_t seq; /* axes that are run through in order */
    const char *line[MAKER_LINES];
    int nlines;
    int64_t points;      /* of one statement at most */
    int spice;           /* how often what is unusual happens: 0 never, 3 often */
    bool wide, rounding; /* rounding: operations that round may come */
    int recurrences, scope;
    int open;               /* the most that the size T may be; 0: there is none */
    int slides[MAKER_AXES]; /* the axis that slides where this one moves: a window; -1 */
    struct random_info info;
};

/* ---- maker.c ---- */
static inline void is_a(struct maker *g, enum class c) {
    g->info.classes |= (uint64_t)1 << c;
}
bool odd(struct maker *g, int n); /* one time in n, seldom or never where the program is plain */
int pick_of(struct maker *g, int n);
int make_variable(struct maker *g, enum role role, enum type type, const int *extent, int ndims);
struct number number_of_data(const struct maker *g, enum type type);
enum role input_role(struct maker *g);
bool maker_full(const struct maker *g); /* no room for another step */
int extent_of(const struct maker *g, int axis);
int new_axis(struct maker *g, const struct list *used,
             int extent); /* or one of that extent that `used` lacks */
int random_extent(struct maker *g, int64_t most);
int64_t list_points(const struct maker *g, const struct list *l);
void list_add(struct list *l, int axis);
bool list_has(const struct list *l, int axis);
void list_shuffle(struct maker *g, struct list *l);
void make_line(struct maker *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *maker_print(struct maker *g);
const char *make_literal(struct maker *g, enum type type, double value);

/* ---- number.c: expressions ---- */
int mantissa(enum type type);
double type_most(enum type type); /* greatest magnitude of an integer type */
struct term make_cast(struct maker *g, struct term e, enum type to);
bool can_cast(const struct term *e, enum type to);
struct term make_unary(struct maker *g, struct term e,
                       const struct list *axes); /* some operation, of the same type */
struct term make_binary(struct maker *g, struct term a, struct term b); /* both of one type */
struct term make_product(struct maker *g, struct term a, struct term b);
struct term axis_value(struct maker *g, int axis, enum type type);
struct number number_sum(struct number n, enum type type, double terms);
struct number number_join(struct number a, struct number b);
struct term stored(struct maker *g, struct term e,
                   enum type to); /* made to fit a buffer of that type */
struct number number_stored(struct number n, enum type type);
struct number settle(struct number n, enum type type); /* the result of an operation of that type */

/* ---- access.c ---- */
const char *make_index(struct maker *g, const struct affine *x);
const char *place_text(struct maker *g, int var, const struct place *p, double fill);
struct place whole_place(struct maker *g, int var,
                         struct list *axes); /* a new axis for each dimension */
struct place part_place(struct maker *g, int var,
                        const struct list *axes); /* of a variable that is there, over these axes */
struct place fresh_place(struct maker *g, const struct list *axes, bool writes, int *extent,
                         struct grid *grid);
struct term make_read(struct maker *g, int var, const struct place *p);
struct term make_operand(struct maker *g, enum type type, const struct list *axes);
int readable(struct maker *g, int but); /* a variable that has been set, not `but`; -1: none */

/* ---- steps.c ---- */
struct sum {
    struct list result, reduced, a, b;
    enum combiner combine;
    bool constrained;
};
/* A new buffer, written over these axes. `sums`: it starts with `start`. */
int new_buffer(struct maker *g, enum type type, const struct list *axes, struct place *place,
               bool sums, double start);
double start_of(struct maker *g, enum combiner c, enum type type);
void accumulate(struct maker *g, int var, const struct place *p, struct sum *s, struct term e);
struct term any_operand(struct maker *g, const struct list *axes, enum type type, int but);
struct term operations(struct maker *g, struct term e, const struct list *axes, int but, int n);
enum role fresh_role(struct maker *g);
void make_contraction(struct maker *g, const struct scheme *type, int from);
void make_elementwise(struct maker *g, int from);
void make_in_place(struct maker *g);
void make_concatenation(struct maker *g);
void make_chain(struct maker *g, int from);
void make_copy(struct maker *g, int from);
const char *where_text(struct maker *g, const struct list *axes, bool only);
void make_store(struct maker *g, int var, const struct place *p, struct term e);
void make_finish(struct maker *g);

void make_call(struct maker *g, int from);

/* ---- rows.c ---- */
void make_rows(struct maker *g, int from);
void make_shared(struct maker *g, int from);

/* ---- recur.c ---- */
void make_recurrence(struct maker *g, const struct scheme *type);

#endif
