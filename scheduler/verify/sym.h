/* Inside the verifier's symbolic walk (docs/schedule.md, "Proofs"): it follows boxes of elements instead of elements, and walks a loop's
 * general iteration instead of all.
 *
 * Numbers are affine in the counters of the loops around that are walked in general (struct lin) and in the dimensions of one issue
 * (struct affine): its instruction's axes and the loops directly around it. A question that has two answers in those ranges has none: the
 * walk of that loop fails, and its iterations are walked one by one. What a region says holds; what no region says is not known, so
 * that to forget a region is always right, but for the instances that were executed. */
#ifndef ISAMAP_SCHEDULER_VERIFY_SYM_H
#define ISAMAP_SCHEDULER_VERIFY_SYM_H

#include "scheduler/verify/verify_int.h"

enum { SYM_LOOPS = 7, SYM_LEVELS = 4, SYM_DIMS = 14, SYM_INDICES = 12, TILE_DIMS = 8, SYM_DIGITS = 16 };

struct lin { int64_t c, k[SYM_LOOPS]; };
struct affine { struct lin l; int64_t d[SYM_DIMS]; };

/* What is known to lie somewhere, all written by the same statement (-1: the caller) after the same number of contributions, at
 * the same step.
 * Box: elements of a home, each where the home's layout says; or, at place nplaces + s, instances of statement s that were executed.
 * Tile: bytes of a local place's slot of that age (0: the current one): the element at base + Σ s[d] y[d] is o + Σ c[d] y[d]. */
struct region {
    int place, age, buffer, writer;
    enum type type;
    bool box;
    int nindices, ndims;
    bool settled;                      /* no other settled one of its place can be joined to it; never true of what was changed since */
    bool filled;                       /* tile: indices outside the buffer stand for the constant; all of it does where there are no indices */
    union value fill;
    struct lin count, step;            /* step: by number, of the recurrences around the writer in which it writes an element at each; else 0 */
    struct lin base;
    int64_t s[TILE_DIMS];
    struct lin o[SYM_INDICES];         /* [nindices] first index */
    struct lin n[SYM_INDICES];         /* box: [nindices]; tile: [ndims] */
    int64_t c[TILE_DIMS][SYM_INDICES]; /* tile: [ndims][nindices] */
};

struct regions { struct region *at; int n, cap; };

/* The current one of a place: not rotated yet in this section; not known; else a form, modulo the number of slots. */
struct slot { bool turned, lost; struct lin at; };

/* What a loop may touch: places, and at nplaces + s the instances of statement s. */
struct frame { int *at, n, cap; };
/* Of a slot of a state: the values of its fields (0 behind them). */
enum { SETTING_SLOTS = 64, SETTING_FIELDS = 8 };
struct setting { bool known; int64_t value[SETTING_FIELDS]; };

/* Of a frame, at one point of the walk; slot [frame.n], setting [nsettings]. */
struct known { struct regions r; struct slot *slot; struct setting *setting; };
struct group_of_places { int *at, n, cap; };     /* places that may share bytes, of which something is known */

/* One factor of an index in a home's layout: (index / div) % mod, in steps of `stride` bytes. */
struct digit { int index; int64_t div, mod, stride; };
struct home_layout { bool known, usable; int n; struct digit d[SYM_DIGITS]; int64_t period[SYM_INDICES]; };

/* What a statement writes: in one step of each recurrence around it; in all where index timed[level] moves with the steps (-1: none does), by as
 * many rows[level] as a step writes. Level 0 is the outermost one.
 * Not box but whole: lo and n are bounds of what is written, and the statement is followed only where all of its instances that may write the elements
 * of a box are executed at once. Then each element of the box is what it is after the statement, written by it or not. `loose`: indices that
 * do not move by a box; `together`: axes of which all values must be executed at once. */
/* Counts that are no number of contributions: of such regions, and of those of parted.c. */
enum { WHOLE = -1, PARTED = -2 };
struct image { bool known, box, whole; int timed[SYM_LEVELS]; int64_t rows[SYM_LEVELS], lo[SYM_INDICES], n[SYM_INDICES], times; struct lin from[SYM_INDICES], end[SYM_INDICES];
    uint64_t loose, together; };   /* from: where it begins, end: behind its last element; lo and n: if all axes began at 0 and were as long as they may be */

/* What an iteration of a parallel loop reads or writes of a home: a box of indices. of: that iteration, a number of its own for all that a general
 * one stands for, or IN_GENERAL while that is walked. */
enum { IN_GENERAL = -1 };
struct touch { int place, nindices; int64_t of; bool write; struct lin o[SYM_INDICES], end[SYM_INDICES]; };
/* A parallel loop while it is walked, and the one around it. */
struct parallel {
    const struct loop_node *loop;
    struct parallel *around;
    struct touch *at; int n, cap;
    int64_t of, general;
    struct setting *settings;          /* before it: those of the first instance, which goes on with them behind it; NULL: iterations may set others */
};

/* Of a place whose contents end with each iteration of a loop; next: 1 + another one of a loop over the same variable. */
struct ending { const struct loop_node *with; int next; };

struct sym {
    struct verify *v;
    int nsizes;                        /* the first counters stand for sizes that are open: any value of their ranges */
    int nloops;                        /* counters in use, and their ranges, both ends included */
    int64_t lo[SYM_LOOPS], hi[SYM_LOOPS];
    int ntied; struct lin last[SYM_LOOPS]; bool tied[SYM_LOOPS]; /* of a loop that ends at a size that is open: its counter's last value, by sizes */
    int ndims;                         /* of the issue that is looked at */
    int64_t n[SYM_DIMS];
    struct affine *var;                  /* [nvars] */
    struct regions *of;                /* [nplaces + nstmts] what is known of each place, and which instances were executed */
    struct regions among;              /* of some bytes of a place, while an issue is looked at (regions_cut) */
    struct slot *slot;                 /* [nplaces] */
    struct group_of_places *group; int *group_of; bool *listed;
    int *stamp, stamps;                /* [nplaces + nstmts] in which frame it was put last; frames so far */
    struct region executed[2]; int nexecuted;   /* instances that the issue at hand executes */
    bool ended[2];                     /* they are the last terms of their sums, which may be made again (remade.c) */
    bool remakes, made_again;          /* what never goes home may be made again; such instances were executed before */
    struct lin time[SYM_LEVELS], step[SYM_LEVELS]; /* of those, in the recurrences around, the outermost first: the value of its axis, and by number */
    struct history *history;           /* [nvars] of the loop that binds it, from its last inductions */
    int64_t *turn;                     /* [SYM_LOOPS] of each counter the last value before an answer changed that was asked for all; or below its range */
    struct parallel *parallel;         /* the innermost one around; NULL */
    int64_t *cycle;                    /* [SYM_LOOPS] of each counter after how many values a quotient that was asked for all is in the same place of its course; 0: not known */
    struct ending *ending; int *ends;  /* [nplaces]; [nvars] 1 + the first place of its loops */
    struct home_layout *home;          /* [nplaces] */
    struct image *image;               /* [nstmts] */
    struct setting *setting; int nsettings, *first_setting; /* of state k: setting[first_setting[k] .. first_setting[k + 1]) */
    bool *padded; int unpadded;        /* [nplaces] the padding of a home is zero; how often that ended */
    char *joined;                      /* [nbuffers] 'y': statements write it that have no element in common; 'n'; 0: not looked at */
    int64_t steps, guess_below;        /* left; how many are left when loops are guessed */
    int64_t compared;                  /* regions, since the last step was spent on that */
    int around[64], naround;           /* variables of the loops around */
    int undecided;                     /* the counter on which the last question hung that had no answer, if that was the last failure; else -1 */
    bool eager, guessed;               /* loops that were visited often are guessed before much has been spent; one was */
    bool bold;                         /* inductions that save most, and may forget what others keep, are tried, and addresses taken from their least values (tile.c) */
    bool over;                         /* the budget is spent, or nothing can be proved */
    bool prepare;
    char why[300];                     /* the last failure */
};

/* num.c. All that return bool or MAYBE: false, MAYBE: not decided, or out of range. */
enum truth { NO, YES, MAYBE };
bool sym_fail(struct sym *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Walking iterations one by one will not help. */
bool sym_never(struct sym *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool sym_spend(struct sym *, int64_t steps);
void sym_compare(struct sym *, int64_t regions);                 /* so many with one: spent as steps, as many as take as long */
struct lin lin_of(int64_t);
bool lin_same(const struct lin *, const struct lin *);
bool lin_add(struct lin *, const struct lin *, int64_t times);
bool lin_constant(const struct lin *, int64_t *);
void lin_range(const struct sym *, const struct lin *, int64_t *lo, int64_t *hi);
enum truth lin_le(const struct sym *, const struct lin *a, const struct lin *b);       /* a <= b */
struct affine affine_of(int64_t);
bool affine_same(const struct affine *, const struct affine *);
bool affine_add(struct affine *, const struct affine *, int64_t times);
bool affine_constant(const struct affine *, int64_t *);
void affine_range(const struct sym *, const struct affine *, int64_t *lo, int64_t *hi);
void affine_ends(const struct sym *, const struct affine *, struct lin *first, struct lin *last); /* over the dimensions */
void sym_carry(int64_t *rest, int64_t by, int64_t *quotient);   /* toward 0; where there is a rest */
bool affine_divide(struct sym *, const struct affine *, int64_t by, struct affine *quotient, struct affine *rest);
void sym_set(struct sym *, int var, const struct affine *);               /* and one value that it has in v->var */
bool sym_eval(struct sym *, const struct sx *, struct affine *);
bool sym_integer(struct sym *, const struct sx *, int64_t *);
struct lin sym_extent(const struct sym *, int axis);             /* how many values it has */
struct lin sym_first(const struct sym *, int axis);              /* the first of them */

/* region.c */
const struct home_layout *sym_layout(struct sym *, int place);
bool home_address(struct sym *, int place, const struct affine *index, struct affine *out);      /* bytes from the home's start */
void region_copy(struct region *, const struct region *, int n);      /* n of them, as far as they are used */
void regions_copy(struct regions *, const struct regions *);
void region_move(struct region *, int counter, const struct lin *at, bool fixed);
/* Of any places: one of them says what x says. *next: where it is looked for first, for those that are asked for one after the other lie so. */
bool regions_imply(struct sym *, const struct region *at, int n, const struct region *x, int *next);
/* One of them is y, before iteration `at` (fixed) or `at` iterations on. *next: as above. */
bool regions_have(struct sym *, const struct regions *, const struct region *y, int counter, const struct lin *at, bool fixed, int *next);
void regions_free(struct regions *);
void regions_reserve(struct regions *, int n);
void regions_append(struct sym *, const struct region *);              /* as it is */
void regions_take_out(struct regions *, int k);
void regions_kill(struct sym *, const struct region *w);               /* what w's bytes or elements held before */
bool regions_remove(struct sym *, const struct region *w);             /* box w of boxes, of which all others stay */
void regions_forget(struct sym *, int place);                          /* all slots */
bool regions_may_meet(struct sym *, const struct region *, const struct region *);   /* two of a place */
bool region_is_constant(const struct region *);                          /* no element of the buffer is there */
bool region_same(const struct region *, const struct region *);
bool region_alike(const struct region *, const struct region *);        /* but for which elements lie where */
enum truth boxes_meet(const struct sym *, const struct region *, const struct region *);
bool box_inside(const struct sym *, const struct region *inner, const struct region *outer);
bool region_inside(struct sym *, const struct region *inner, const struct region *outer);  /* what inner says, outer says too */
bool box_in_one_fold(struct sym *, const struct region *);               /* of the home's layout */
/* The box of indices that forms run over; exact: each once. */
bool forms_box(struct sym *, const struct affine *index, int nindices, struct region *out);

/* cut.c */
bool region_empty(const struct sym *, const struct region *);
void region_tidy(struct sym *, struct region *);                       /* dimensions in one order, joined where they can be */
struct cuts { struct region at[2 * TILE_DIMS]; int n; };
/* g becomes its part from `begin` on, n long, in dimension k; false: a number is out of range. */
bool region_part(struct region *g, int k, const struct lin *begin, const struct lin *n);
/* g becomes the part of it that may have bytes from `lo` up to `hi`, false: it has none there. outside: its other parts, those that can be told. */
bool region_cut(struct sym *, struct region *g, const struct lin *lo, const struct lin *hi, struct cuts *outside);

/* neighbours.c */
bool regions_add(struct sym *, const struct region *);                  /* and joins it to its neighbours */
/* s->among: what is known of those bytes of the place's current slot, joined; false: that is nothing new. */
bool regions_cut(struct sym *, int place, const struct lin *lo, const struct lin *hi);
bool regions_coalesce_place(struct sym *, int place);                  /* counters that became numbers may have made neighbours */
bool regions_coalesce(struct sym *, const struct frame *);

/* frame.c */
void frame_groups(struct sym *);                                        /* once, before the walk */
void frame_list(struct sym *, int place);                               /* something is known of the place */
void frame_forget_sharers(struct sym *, int place);                     /* what shares bytes with it */
bool places_share(const struct place *, const struct place *);          /* bytes, in some of their slots */
int places_groups(struct verify *, int *group_of); /* [nplaces] those of one group may share bytes; how many groups, 1 at least */
void sym_frame(struct sym *, const struct loop_node *, struct frame *);
void sym_frame_free(struct frame *);
void known_take(const struct sym *, const struct frame *, struct known *);
void known_put(struct sym *, const struct frame *, const struct regions *, const struct slot *, const struct setting *);
void known_free(struct known *);

/* slots.c: of a frame's places */
void slot_rotate(struct sym *, int place);
int64_t slot_at(const struct sym *, int place, const int64_t *counter);  /* -1: not known */
/* From those of now, before iteration `from`, those before any iteration, by what the last one added; false: a place is rotated in one only. */
bool slots_general(const struct sym *, const struct frame *, const struct slot *before, int counter, int64_t from, struct slot *);
/* Where one iteration adds something else, the slot is not known; weaker: so it is with some. */
bool slots_step(const struct sym *, const struct frame *, int counter, struct slot *, bool *weaker);
void slots_over(const struct sym *, const struct frame *, int counter, const struct lin *over, struct slot *);   /* before iteration `over` */

/* setting.c */
void settings_open(struct sym *);                                       /* once, before the walk */
void settings_forget(struct sym *);
struct setting *settings_copy(const struct sym *, struct setting *to);  /* to: NULL: from the heap */
bool settings_meet(const struct sym *, struct setting *, const struct setting *); /* to what both say; true: that is less */
bool settings_configure(struct sym *, const struct configure_node *);

/* scope.c */
void sym_scopes(struct sym *, const struct section *);
void scope_ends(struct sym *, const struct loop_node *);                /* an iteration of it is over */

/* parallel.c: instances of a unit run at the same time, so that no iteration may touch what another writes. */
bool parallel_begin(struct sym *, const struct loop_node *, struct parallel *);         /* false: it is not followed */
void parallel_forget(struct sym *, const struct loop_node *);                           /* what an instance holds as an iteration begins or ends */
bool parallel_touch(struct sym *, int place, const struct lin *o, const struct lin *n, int nindices, bool write);
void parallel_fold(struct sym *, int counter);                                          /* a counter ends: all of its values are meant */
/* The iterations that the general one stands for are apart; n: how much was touched before it. */
bool parallel_general_ends(struct sym *, int counter, int n);
bool parallel_end(struct sym *, bool good);                                             /* good: it was followed; all iterations are apart */

/* work.c, box.c: one issue, with the loops directly around it, or one fallback on regions */
bool box_executed(struct sym *);                                        /* they are known from here on */
struct nest { const struct issue_node *issue; const struct loop_node *loop[16]; int n; };
bool box_issue(struct sym *, const struct nest *);
bool box_fallback(struct sym *, const struct fallback_node *);
bool box_begin(struct sym *);                                           /* what the caller gives */
bool box_end(struct sym *);                                             /* all is executed, and at home */

/* order.c: no race, tokens balanced; walks the signals of all trips. */
bool order_matters(const struct verify *);
bool order_prove(struct verify *, int64_t steps, struct text *why);
/* At all these values of a size, the others being as they are. Loops that end at it come back to where they were, but for the numbers of
 * what each queue has done: then more of their iterations change nothing. */
struct size_at;
bool order_prove_open(struct verify *, int size, const struct size_at *at, int64_t steps, struct text *why);

/* asks.c: of the nodes in a loop over the variable: signals, slots or bounds inside are other ones at each iteration; sizes are; how often loops
 * inside run is another thing at each iteration, or at each value of the size. */
bool depends_on(const struct node *, int n, int var);
bool sizes_change(const struct machine *, const struct node *, int n, int var);
bool bounds_use(const struct node *, int n, int var, int size);

/* apart.c: the instances of a parallel loop for that walk. Each is a world of its own: what was before it is done, and nobody waits for what
 * is in it. Why that is not so; NULL: it is. */
const char *instances_apart(const struct verify *, const struct loop_node *);
/* Of each instance all iterations in turn, its queues and signals new; alike: one stands for all. False: an iteration failed. */
bool instances_walk(struct verify *, const struct loop_node *, bool alike, bool (*walk)(void *user, const struct loop_node *), void *user);

/* induct.c */
/* Boldly and with eager guesses first; where these were tried and failed, without them; where that fails for another reason than its steps, with
 * care. Each may take as many steps. */
/* A size: whole · group + rest, each of the two a range. The steps of recurrences may be counted in such groups (1: they are not). */
struct size_at { int64_t group, whole[2], rest[2]; };
static inline bool size_is_open(const struct size_at *z) {
    return z->whole[0] < z->whole[1] || z->rest[0] < z->rest[1];
}
bool sym_prove(struct verify *, const struct size_at *, int64_t *steps, struct text *why);   /* one for each size of the program */

#endif
