/* Inside the mapper. Needles are the machine's instructions, bound once; a term is a statement's
 * value as a tree in which the accumulation stands explicitly: `t += e` is t = t + e. Vocabulary
 * and rules: docs/mapping.md. */
#ifndef ISAMAP_MAPPER_MAPPER_INT_H
#define ISAMAP_MAPPER_MAPPER_INT_H

#include "mapper/mapper.h"
#include "mapper/range.h"

enum { MAX_OPERANDS = 16, MAX_NEEDLE_AXES = 12, MAX_RANGED = 16, MAX_CUTS = 8 };

/* ---- terms ---- */
struct term_node {
    enum opcode code;
    enum type type; /* READ: the buffer's, as stored */
    int nargs, arg[3];
    int read;      /* READ: of the statement; -1 for the destination of an accumulation */
    bool acc;      /* READ of the destination at the index that is written */
    bool constant; /* no reads, no axes: `value` is known */
    union value value;
    uint64_t axes; /* axes on which the node's value depends */
    int origin;    /* the statement's op that it comes from */
    bool made;     /* by term_simplify: nothing that the statement could be cut at */
    struct range range;
    struct range alone; /* what the statement by itself says, whatever its arrays hold */
};

/* Nodes 0..nops-1 are the statement's ops; an accumulation adds its read and its root. */
struct term {
    struct term_node *at;
    int n, root;
    bool accumulates;
};

struct term term_of(struct arena *, const struct program *, const struct stmt *);
/* Casts without effect go; ranges are known. Nodes that are made come after the statement's. */
void term_simplify(struct arena *, struct term *, const struct program *, int stmt);
void term_saturates(struct term *); /* floats need not be exact beyond the clip behind them */
bool access_same(const struct program *, const struct access *, const struct access *);

/* ---- needles ---- */
struct needle_axis {
    int64_t lo, hi, step; /* legal extents; hi -1: unbounded; lo == hi: fixed */
    int ranged;           /* index into instr.ranged that sets the extent; -1 */
    bool reduction;       /* the result does not vary with it */
    bool elementwise; /* every operand in memory varies with it: reads may be broadcast along it */
    uint64_t signature; /* bit o: operand o varies with it */
};

struct needle {
    int instr;
    struct program *program; /* the semantics at small sizes; owned */
    struct term term;
    int naxes, noperands, dst; /* dst: operand that is written */
    struct needle_axis axis[MAX_NEEDLE_AXES];
    const struct access *access[MAX_OPERANDS];
    int operand_of_buffer[MAX_OPERANDS * 2];
    uint64_t imm, home; /* bit o: operand is a constant; all its memories are the home */
    uint64_t twins;     /* bit o: it is read at `access` and at constant distances from there */
    uint64_t fragment[MAX_OPERANDS]; /* of an operand that lies in several instances: how; else 0 */
    int64_t size[MAX_RANGED]; /* the sizes that `program` has */
    bool copy;                /* dst = src: a plain or broadcasting move, or one from home that widens */
    bool offered;             /* may execute statements; other moves only fill and drain memories */
    bool coupled;             /* two axes share a dimension: the certificate decides */
    uint64_t absorbing;       /* bit x: zeros may pad axis x, in the operands that vary with it */
    const char *refused;      /* why it cannot execute statements; or NULL */
    /* Of several statements (join.c); then `term` is empty, and `access` what stmts_join says. */
    struct needle
        *part;  /* each statement as a needle: temporaries are operands behind the others */
    int nparts; /* 0: one statement */
    const struct stmt *joined;
    uint64_t whole; /* bit x: an issue has all of axis x */
    int64_t chains; /* of issues that each wait for the one before, as many as fill its queue */
};

struct move_table {   /* cycles per element between the home and each memory, INFINITY: no path */
    double *in, *out; /* [memory * TYPE_COUNT + type] */
    uint64_t pads;    /* bit m: a move into memory m fills in what lies outside its source */
    struct move_step { /* a move into these memories takes elements so far apart */
        int64_t by;
        uint64_t into;
    } *step;
    int nsteps, cap_steps;
};

struct known_in;
struct known_proofs;

struct needles {
    struct arena arena;
    const struct machine *machine;
    struct needle *at, **of; /* of: by instruction; NULL: it is none */
    int n;
    struct move_table moves;
    struct sized_needles *sized; /* at sizes that were asked for */
    struct known_sites *sites;   /* statements that were searched; NULL: none yet */
    struct known_proofs *proofs; /* of rewrites; NULL: none yet */
    struct fork *forks;          /* programs that were covered, and what was found out about them */
    struct known_in *in;         /* what copies of operands cost, where that was asked for; NULL: nowhere */
    struct needles *kept;        /* itself, for what is remembered */
};

const struct needle *needle_of(const struct needles *, int instr); /* NULL: none */
/* One statement: does it add? And is what it adds zero where all operands that vary with axis x are? */
bool needle_sums(const struct needle *);
bool needle_absorbs(const struct needle *, int x);
/* The needle's program at these sizes, until others are asked for; NULL: they are not legal. */
const struct program *needle_sized(const struct needles *, const struct needle *,
                                   const int64_t *size);
double needle_issue_cost(const struct machine *, const struct needle *, const int64_t *size);
/* Cycles for each point of an issue whose axes are as long as they may be (64 at most). */
double needle_point_cost(const struct machine *, const struct needle *);

/* May its result be where the operand may be? */
bool needle_writes_one_of(const struct machine *, const struct needle *, const struct operand *);

/* Can a copy of a buffer of this type be in one of the operand's memories? `broadcast` has bit d
 * for the needle buffer's dimensions, counted from the last, along which one element is repeated.
 * Cycles per element, INFINITY: no. */
bool operand_from_home(const struct needles *, const struct needle *, int operand); /* does one move bring it? */
double operand_in_cost(const struct needles *, const struct needle *, int operand,
                       uint64_t broadcast);
double operand_out_cost(const struct needles *, const struct needle *, int operand);

/* ---- matching terms ---- */
enum bound_kind { BOUND_NONE, BOUND_READ, BOUND_DST, BOUND_IMM, BOUND_CUT };

struct bound {
    enum bound_kind kind;
    int read;
    int node; /* CUT: the haystack node that must become a buffer of its own; DST: in place of it,
                 -1 */
    union value imm;
};

struct binding_set { /* σ and β: what plays each operand */
    struct bound operand[MAX_OPERANDS];
};

struct mismatch {
    enum failure_kind kind;
    int needle_node, node, depth; /* depth -1: none */
};

struct match {
    struct binding_set *at;
    int n, cap;
    struct mismatch worst;
};

struct site { /* a haystack statement */
    const struct program *program;
    int stmt; /* its index in `program` */
    int said; /* and in messages: `program` may be a part of the one that they speak of */
    const struct stmt *s;
    struct term term;
    uint64_t live; /* axes that may be mapped: extent above 1, not sequential */
    uint64_t mentioned;       /* with `known`: its axes and those of its accesses */
    struct known_site *known; /* what was found on equal statements; NULL: nothing is kept */
};

struct site site_of(struct arena *, const struct program *, int stmt);
/* The haystack node's value is one of the needle node's type: the same, or exact in both. */
bool node_type_fits(const struct term_node *needle, const struct term_node *hay);
/* All ways to bind the needle's term to the statement's, at `root` of the latter. */
void match_terms(struct arena *, const struct machine *, const struct needle *, const struct site *,
                 int root, bool cuts, struct match *);
bool imm_encodable(const struct machine *, const struct needle *, const struct binding_set *);
/* May the destination overwrite what is read? The buffer itself: same place, same index, dead
 * afterwards. Or a copy that comes from home, in a memory that the schedule fills. */
enum in_place { IN_PLACE_NEVER, IN_PLACE_COPY, IN_PLACE_HOME };
enum in_place read_in_place(const struct site *, int read);
bool may_overwrite(const struct site *, const struct machine *, const struct needle *, int read);
bool items_touch(const struct program *, const struct item *, int n, int buffer);
void items_touched(const struct program *, const struct item *, int n, bool *touched); /* sets those of the buffers they touch */
bool stmt_in_recurrence(const struct program *, int stmt);
bool stmt_continued(const struct program *, int stmt); /* a later one adds to its result */

/* ---- legality (V1-V6) and price ---- */
const struct access *bound_access(const struct site *, const struct bound *);
bool axis_in_class(const struct needle *, const struct site *, const struct binding_set *,
                   int needle_axis, int axis);
bool access_injective(const struct program *, const struct access *, uint64_t axes);
/* May the instruction, whose results may be farther off than its operation's, execute the statement (rounding.c)? */
bool rounding_fits(const struct program *, int stmt, const struct instr *, enum rewrite_effect floats);
/* Some index may lie outside of the buffer, constraints aside. */
bool leaves_buffer(const struct program *, const struct stmt *, const struct access *);
bool padding_legal(const struct needle *, const struct program *, const struct group *);
uint64_t operand_broadcast(const struct needle *, const struct program *, const struct stmt *,
                           const struct mapping *, int operand);
const struct access *mapped_access(const struct stmt *,
                                   const struct mapped_operand *); /* NULL: imm */
int64_t group_extent(const struct program *, const struct group *);
int64_t linear_stride(const struct program *, const struct access *, int axis);
bool operand_direct(const struct needle *, const struct program *, const struct access *,
                    const struct group *, int operand);
double axis_executed(const struct needle_axis *,
                     int64_t extent); /* points of a group, padding included */
void mapping_sizes(const struct needle *, const struct program *, const struct group *,
                   int64_t *size);
void mapping_price(const struct needles *, const struct needle *, const struct program *,
                   struct mapping *);
/* cycles for one element that the fallback copies */
double copy_interval(const struct machine *, enum copy_kind);
/* What it takes to read the constants, and what is made of them alone, that statements from .. to - 1 read in each run. */
double constants_price(const struct machine *, const struct program *, const bool *steady, int from, int to);
/* What making so many elements before the first run counts beside a run. */
double prepared_price(const struct machine *, double elements);

/* ---- canonical axes ---- */
struct merged_axes { /* axis a >= first of the merged program is pair[a][0] * extent + pair[a][1] */
    int first, pair[MAX_AXES][2];
};

/* A copy in which collinear axes of each statement are one; NULL: there are none. */
struct program *program_merged(const struct program *, struct merged_axes *);
int axis_unmerged(const struct merged_axes *, int axis); /* the fastest axis of the original */
bool group_unmerged(const struct merged_axes *, struct group *); /* false: too many axes */

/* ---- several statements ---- */
struct search;
struct covering;
void needle_join(struct arena *, const struct machine *,
                 struct needle *); /* its semantics have several */
/* The mappings of a needle of several statements that end with this one, and the reasons. */
void search_joined(struct search *, const struct needle *, const struct program *, int stmt);
/* The statements of a joined mapping with common axes, and what they are as one, in a view of the
 * program where that stands in the last one's place. NULL, or why it is none. */
const char *joined_view(struct arena *, const struct program *, const struct mapping *,
                        struct program *view);
/* Further rules of one group: no axis of `whole` may be cut. NULL, or the reason; *axis: of the
 * needle. */
const char *joined_extents(const struct needle *, const struct program *, const struct group *,
                           int *axis);
/* Statements that one instruction executes where that is cheaper, each choice a question. Until
 * join_restore the program has one statement for them. */
void join_all(struct covering *);
bool *join_wanted(
    struct covering *); /* of each statement: one of several that one instruction takes for less */
void join_shift(struct covering *, int stmt, int n); /* n statements come before `stmt` */
void join_restore(struct covering *);

/* ---- counting modulo the needle's automorphisms ---- */
struct automorphisms;
struct automorphisms *automorphisms_of(struct arena *, const struct machine *,
                                       const struct needle *);
/* Of the mappings that automorphisms turn into each other one is the representative. */
bool mapping_representative(const struct automorphisms *, const struct needle *,
                            const struct mapping *);
int count_distinct(const struct needles *, const struct mapping *, int n);

/* ---- the search ---- */
struct search {
    struct arena *arena; /* of the results */
    const struct needles *needles;
    int64_t steps, limit;
    bool all, bounded, explain;
    bool unasked; /* nobody reads why there are none */
    struct map_totals *totals; /* counted when all are enumerated; or NULL */
    struct mapping *mapping;
    int nmappings, cap;
    struct failure *failure;
    int nfailures, fcap;
};

/* Appends the mappings of one needle on one statement and the reasons why there are none. */
void search_pair(struct search *, const struct needle *, const struct site *);
/* The same for one binding; axes outside `allowed[x]` do not stand on needle axis x. NULL: all may.
 */
void search_groups(struct search *, const struct needle *, const struct site *,
                   const struct binding_set *, const uint64_t *allowed);
/* known.c. What the search finds on the statement is remembered, with what it is asked for. */
void site_recall(const struct search *, struct site *);
/* Appends what was found before; false: nothing was, or the bound on steps would cut it. */
bool pair_recall(struct search *, const struct needle *, const struct site *);
/* What the search has beyond these is all that it found for the pair. */
void pair_keep(struct search *, const struct needle *, const struct site *, int mappings,
               int failures, int64_t steps);
/* Of one instruction and statement; < 0: a is better. */
int mapping_compare(const struct mapping *, const struct mapping *);
void note_failure(struct search *, const struct needle *, const struct site *,
                  const struct mismatch *);
void note_axis(struct search *, const struct needle *, const struct site *, enum failure_kind,
               int needle_axis, int axis, int operand, const char *reason);
/* The same of an access of the statement that moves where its operand stands still. */
void note_column(struct search *, const struct needle *, const struct site *, int needle_axis,
                 int axis, int operand, const struct access *);
void note_refused(struct search *, const struct needle *, const struct site *);
bool mapping_certify_with(const struct needles *, const struct program *, const struct mapping *,
                          struct text *why_not);

/* ---- differences of points (differences.c) ---- */
struct differences {       /* of two points that differ along these axes and agree in these forms */
    const int64_t *extent; /* of every axis of the program */
    const int *axis;
    int naxes, nsame;
    const int64_t (*same)[MAX_AXES + 1]; /* coefficients by axis */
};
enum agreement { AGREE_NO, AGREE_YES, AGREE_OPEN };
enum agreement differences_agree(const struct differences *, const int64_t *form); /* there too? */

/* Each dimension of the result along one axis at most: what the scheduler gives to an instruction.
 */
bool plain_result(const struct program *, const struct stmt *);

/* ---- editing programs ---- */
/* Arrays of a program with entries to spare, so that many cuts do not copy it each time. Zero at
 * first; for one program. */
struct room {
    struct stmt *stmt;
    struct buffer *buffer;
    struct item *item;
    int stmts, buffers, items; /* allocated */
};

/* Cuts `n` nodes out of a statement's value: each becomes a statement before it that fills a new
 * temporary, shaped by the axes on which the node depends. Statement `stmt` moves to stmt + n.
 * Indices of later statements grow by n. */
void program_cut(struct program *, struct room *, int stmt, const int *node, int n);
uint64_t node_axes(const struct term *, int node);
/* Room for n statements before `stmt`, which is at the top level. */
void program_make_room(struct program *, int stmt, int n);
/* Views: shallow copies of a program with an arena of their own, in which one statement is what a
 * cut would leave of it (view_rest; once: what constants alone decide is made before the first run,
 * and is one) or what would fill the temporary (view_part). */
void view_rest(struct program *view, int stmt, const int *node, int n, bool once);
void view_part(struct program *view, int stmt, int node);
void stmt_normalise(struct program *,
                    int stmt);                /* its ops as a tree in post-order, each used once */
bool term_reads(const struct stmt *, int node, int read); /* the tree below has that read */
int term_size(const struct stmt *, int node); /* nodes of the tree below, itself included */

/* ---- covers ---- */
/* For each dimension of the needle's buffer from the last: dimensions of the haystack's buffer that
 * stand there, slowest first. */
struct placing {
    int8_t dim[MAX_DIMS][MAX_GROUP];
    int n[MAX_DIMS], rank;
    uint32_t fragment; /* the operand's, where it lies in several instances (needle.fragment) */
};

struct option {               /* one way to execute a statement */
    int ncuts, cut[MAX_CUTS]; /* nodes that become statements of their own first */
    bool fallback;
    bool multiplies; /* what map executes is a sum of products */
    const struct program
        *view;             /* where map's statement is what the cuts leave; NULL: the cover's */
    struct placing result; /* of map's destination */
    struct mapping map;    /* of what is left, at the statement's index before the cuts */
    double cost;           /* cycles of the reference clock, estimated copies and moves included */
    double total;          /* and what the others cost then, as far as planned */
};

struct options {
    struct option *at;
    int n, cap;
    double floor; /* no option costs less, whatever neighbours decide */
};

enum { UNDECIDED = -2, FALLBACK = -1 };

struct estimate; /* the ways of one statement: found once, priced for each state of the others */
struct plan;     /* what the statements after the next one will cost (plan.c) */

struct joined_stmts { /* what a statement replaces, in common axes; the last one stands there */
    int stmt[MAX_JOINED], n;
    struct stmt own[MAX_JOINED];
    struct joined_stmts *next;
};

struct fork;

struct flow { /* of one program; program NULL: none, or it has changed */
    struct arena arena;
    const struct program *program;
    int *first, *user; /* of buffer b: user[first[b]] to user[first[b + 1] - 1] */
    bool *steady;   /* statements that are executed once, before the first run */
    bool *constant; /* buffers that constants alone decide */
    bool made;
};

/* Statements behind one that read or write a buffer; stmt[-1], stmt[-2], …: those up to it. */
struct users {
    const int *stmt;
    int n, before;
};

struct covering {
    const struct machine *machine;
    const struct needles *needles;
    struct decider *decider;
    struct diags *diags;
    enum rewrite_effect floats;     /* what rewrites may do to them */
    int own_axes;                   /* of the program before rewrites added some */
    const struct refusals *refused; /* NULL: none */
    struct cover *cover;
    struct arena scratch;
    int *chosen, *inside; /* for each statement: index into cover.mapping, FALLBACK or UNDECIDED;
                             the statement that includes it */
    struct estimate **estimate;  /* for each statement, NULL: none yet */
    const struct program **view; /* of each mapping of the cover, as in its option */
    int cap, mcap, vcap;
    struct joined_stmts *joined;
    bool exact;   /* what is undecided costs nothing yet: it will be priced when it is decided */
    int64_t turn; /* of pricing: `chosen` changed since the last one */
    struct plan *plan;
    struct fork *fork; /* where it has come to; NULL: what it finds out is not kept */
    struct { /* mappings of the statement before an accumulation, searched once */
        const struct program *program;
        int stmt, n;
        const struct mapping *mapping;
    } prologue;
    struct flow flow;
    struct room room; /* of its program, while it is decided */
    int first;   /* no statement before it is undecided */
    int settled; /* mappings of the cover; those behind them are trials */
};

void covering_shift(struct covering *, int stmt, int n); /* n statements come before this one */
/* All is decided: statements that make values again which instructions change in place. */
void values_again(struct covering *);
void covering_changed(struct covering *); /* its program is another one, or has other statements */
struct users flow_users(struct covering *, int buffer, int stmt);
int flow_writer(struct covering *, int stmt, int buffer); /* the last before that writes it; -1 */
const bool *flow_steady(struct covering *); /* for each statement of its program */
bool flow_constant(struct covering *, int buffer); /* a buffer that constants alone decide */
void flow_free(struct flow *);

struct estimate *estimate_open(const struct program *, int stmt);
void estimate_close(struct estimate *);
void estimate_shift(struct estimate *, int from, int by); /* statements from `from` on have moved */
/* All legal ways, the cheapest first, in c->scratch. `p` is the covering's program, or another one
 * that the estimate is of. */
struct options estimate_options(struct covering *, struct estimate *, const struct program *p);
struct options options_of(struct covering *, int stmt);

/* remember.c: options_of for each state of the statement's neighbours, priced once. As long as it
 * lives neither program nor estimates change. */
struct remembered {
    uint64_t *state; /* [near] what each neighbour's decision is */
    uint64_t hash;
    struct options options;
    struct remembered *next;
};
struct memo {
    struct arena arena;
    int *near, nnear, cap; /* statements whose decisions the prices of this one depend on */
    struct remembered *bucket[64];
    bool open;
};
struct options options_remembered(struct covering *, struct memo *, int stmt);
void memo_close(struct memo *);

/* The undecided statement that is decided next; -1: none. */
int plan_next(struct covering *);
/* Its options with `total`, what they and the best of all that follows cost; the best first. */
struct options plan_options(struct covering *, int stmt);
void plan_drop(struct covering *); /* statements have moved */
void plan_take(struct covering *, struct plan *); /* it goes on with this one */
void plan_free(struct plan *);     /* NULL: nothing */

/* fork.c: coverings that came to the same by the same answers know what one of them found out there. */
struct fork *fork_root(const struct needles *, const char *key); /* of a program, with all that its covers depend on */
void fork_follow(struct covering *, int answer); /* on, after each decision, with what was answered */
struct arena *fork_arena(struct covering *);     /* for what is found out here */
void *fork_known(const struct covering *);       /* NULL: nothing yet */
void fork_keep(struct covering *, void *known);
void fork_own(struct covering *, struct program *);   /* it ends with what is known here */
bool fork_own_plan(struct covering *, struct plan *); /* so does this; false: nothing is kept */
void forks_close(struct fork *);                      /* of all roots; NULL: none */
/* Of what is cut off a statement: a temporary may not be much larger than what the statement touches anyway. */
double cut_elements(const struct program *, const struct stmt *);
struct best_price {      /* of the statement's cheapest option; no option: INFINITY */
    double cycles;
    const struct needle *needle; /* NULL: it is no instruction */
    bool device;                 /* it is one of a device */
    bool uncut;                  /* it executes all of the statement */
    bool whole;                  /* some instruction of a device executes all of the statement */
};
/* `sums`: who executes the next statement, whose sums begin with this one's result; NULL: none does. */
struct best_price best_price(struct covering *, const struct program *, int stmt, const struct needle *sums);
/* Does the next statement add to what this one sets? */
bool begins_sums(const struct program *, int stmt);
/* What it sets, copied: a move brings it to where the sums are made. INFINITY: it is none such. */
double begin_price(struct covering *, const struct program *, int stmt, const struct needle *sums);
bool has_device(const struct machine *);                          /* some queue is none of a host */
bool option_on_device(const struct machine *, const struct option *);
/* Who names a device wants sums of products over an axis done there, however slow it is: the host's time is reported apart. */
bool wanted_away(const struct covering *, const struct program *, int stmt);
void covering_reserve(struct covering *, int n);
/* Appends to the cover's mappings, which keep the arrays of `m`; returns the index. */
int covering_add(struct covering *, const struct mapping *m, const struct program *view);
bool covering_decide(struct covering *); /* all statements; false: something has no way */
void covering_close(struct covering *);  /* the scratch too */
/* Rewrites where they pay, each choice a question (rw_cover.c). */
void rewrite_all(struct covering *);
double fallback_price(const struct covering *, const struct program *, const struct stmt *);
double reference_cycles(const struct machine *, int unit, double cycles);
double instances_at_once(const struct machine *, int unit); /* that the hardware runs, of those around and of the unit */
double doorbell_price(const struct machine *, int queue);
/* Moves, copies and phases that this way causes beside the issues, given what neighbours decided;
 * INFINITY: not possible. */
double neighbour_price(struct covering *, const struct program *, int stmt, const struct option *);
/* A temporary that `from` writes comes to operand o of `to`, on statement `stmt` of p. */
double transfer_price(struct covering *, const struct program *p, int stmt,
                      const struct option *from, const struct mapping *to, int o);
struct placing placing_of(const struct covering *, const struct program *, const struct mapping *,
                          int operand);

#endif
