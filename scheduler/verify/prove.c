/* What the verifier says of a schedule: proved, unproved, refused. */
#include "scheduler/verify/sym.h"

#include <stdlib.h>

/* In steps, so that a verdict is the same on each computer: about a tenth of a second each. What
 * follows the schedule's nodes has some for each of them besides. */
static const int64_t WALK_STEPS = 2000000, FEW_POINTS = 200000, SYMBOLIC_STEPS = 120000,
                     ORDER_STEPS = 1500000, STEPS_OF_NODE = 300, WALK_STEPS_OF_NODE = 1500;

const char *const proof_name[] = {
    [PROOF_UNCHECKED] = "unchecked",
    [PROOF_PROVED] = "proved",
    [PROOF_UNPROVED] = "unproved",
    [PROOF_REFUSED] = "refused",
};

static enum proof unproved(struct text *reason, const char *why) {
    text_printf(reason, "%s", why);
    return PROOF_UNPROVED;
}

/* One schedule on its way to a verdict; `steps` and `sampled` are of all its walks. */
struct proving {
    const struct schedule *s;
    int64_t steps; /* of the walk of elements, at most */
    bool guesses;  /* from the first loop on */
    enum looks { ALL, ORDER, VALUES } looks; /* of the symbolic proof */
    int sampled;   /* how many pairs of an instruction and a statement are only known to agree at
                      random points */
    struct text *reason;
    struct diags *diags;
    struct shapes *shapes;
};

static struct verify verifier(const struct proving *x, const struct program *p, int64_t steps,
                              struct diags *diags) {
    return (struct verify){.s = x->s,
                           .m = x->s->machine,
                           .p = p,
                           .diags = diags,
                           .steps = steps,
                           .shapes = x->shapes,
                           .follows_all = true};
}

static bool in_order(struct verify *v, const struct size_at *size, int64_t steps,
                     struct text *why) {
    int open = -1;
    if (!order_matters(v)) return true;
    for (int k = 0; k < v->p->nsizes; k++) {
        v->var[k] = size[k].group * size[k].whole[1] + size[k].rest[1];
        if (!size_is_open(&size[k])) continue;
        if (open >= 0) {
            text_printf(why, "the order of queues over several sizes that are open");
            return false;
        }
        open = k;
    }
    return open < 0 ? order_prove(v, steps, why)
                    : order_prove_open(v, open, &size[open], steps, why);
}

/* p: the program with the sizes of which values are given. */
static bool prove_symbolically(struct proving *x, const struct program *p,
                               const struct size_at *size, struct text *why) {
    struct diags ignored;
    int64_t nodes = schedule_nodes(x->s), steps = SYMBOLIC_STEPS + nodes * WALK_STEPS_OF_NODE;
    if (x->steps > 0 && x->steps < WALK_STEPS && x->steps < steps) steps = x->steps;
    diags_init(&ignored);
    struct verify v = verifier(x, p, INT64_C(1) << 40, &ignored);
    v.guesses = x->guesses;
    verify_open_tables(&v);
    bool good = verify_fill_tables(&v) && verify_structure(&v);
    if (!good) text_printf(why, "%s", v.limit.n ? v.limit.at : ignored.n ? ignored.at[0].text : "");
    if (good) {
        access_tables(&v);
        verify_fill_granules(&v);
        race_init(&v);
        good = x->looks == ORDER || sym_prove(&v, size, &steps, why);
        good = good && (x->looks == VALUES ||
                        in_order(&v, size, ORDER_STEPS + nodes * STEPS_OF_NODE, why));
    }
    if (v.sampled > x->sampled) x->sampled = v.sampled;
    verify_close_tables(&v);
    text_free(&v.limit);
    diags_free(&ignored);
    return good;
}

/* What can be seen without a walk is seen at any size. *points: of all issues and fallbacks, about.
 */
static enum proof prove_structure(struct proving *x, const struct program *p, double *points) {
    struct verify v = verifier(x, p, INT64_C(1) << 40, x->diags);
    enum proof proof = PROOF_PROVED;
    *points = 1e30;
    verify_open_tables(&v);
    if (verify_fill_tables(&v) && verify_structure(&v)) *points = verify_points(&v);
    if (v.errors)
        proof = PROOF_REFUSED;
    else if (v.limit.n)
        proof = unproved(x->reason, v.limit.at);
    verify_close_tables(&v);
    text_free(&v.limit);
    return proof;
}

static enum proof walk_elements(struct proving *x, const struct program *p, const int64_t *size) {
    struct verify v = verifier(x, p, x->steps, x->diags);
    verify_at(&v, size);
    x->steps = v.steps;
    if (v.sampled > x->sampled) x->sampled = v.sampled;
    enum proof proof = v.errors ? PROOF_REFUSED : PROOF_PROVED;
    if (proof == PROOF_PROVED && v.limit.n)
        proof = unproved(x->reason, v.limit.at);
    else if (proof == PROOF_PROVED && !v.follows_all)
        proof = unproved(x->reason, "what calls write is not followed");
    text_free(&v.limit);
    return proof;
}

/* A few elements are walked one by one. Of more the symbolic walk is tried first: what it cannot
 * follow is walked where the budget lasts. */
static enum proof prove_fixed(struct proving *x, const struct program *p, const int64_t *size,
                              const struct size_at *at) {
    double points;
    struct text why = {0};
    enum proof proof = prove_structure(x, p, &points);
    if (proof != PROOF_PROVED) return proof;
    proof = PROOF_UNPROVED;
    if (points > (double)FEW_POINTS && prove_symbolically(x, p, at, &why)) {
        text_free(&why);
        return PROOF_PROVED;
    }
    if (points <= (double)x->steps)
        proof = walk_elements(x, p, size);
    else
        text_printf(x->reason, "more elements than are walked one by one");
    if (proof == PROOF_UNPROVED && !why.n && prove_symbolically(x, p, at, &why)) {
        x->reason->n = 0;
        proof = PROOF_PROVED;
    }
    if (proof == PROOF_UNPROVED && why.n) text_printf(x->reason, "; %s", why.at);
    text_free(&why);
    return proof;
}

/* ---- sizes that are known only when the program runs ---- */
enum { MOST_SIZES = 2 };

struct sizes {
    struct size_at at[MOST_SIZES];
    int64_t
        least;  /* of an open number of groups, and of a rest: loops' first iterations are walked */
    bool walks; /* elements, where the symbolic walk fails */
};

static enum proof prove_at(struct proving *x, const struct sizes *z) {
    const struct program *p = x->s->program;
    int64_t value[MOST_SIZES] = {0};
    bool open = false;
    for (int i = 0; i < p->nsizes; i++) {
        open |= size_is_open(&z->at[i]);
        value[i] = z->at[i].group * z->at[i].whole[1] + z->at[i].rest[1];
    }
    struct program *at = program_at(p, value);
    bool good = prove_symbolically(x, at, z->at, x->reason);
    enum proof proof = good ? PROOF_PROVED : PROOF_UNPROVED;
    if (!good && !open && z->walks) {
        x->reason->n = 0;
        proof = prove_fixed(x, at, value, z->at);
    }
    program_free(at);
    return proof;
}

static enum proof prove_sizes(struct proving *x, int k, struct sizes *z);

/* All values of one of a size's two ranges: those below `least` one by one, the others at once. */
static enum proof prove_range(struct proving *x, int k, struct sizes *z, int64_t *range, int64_t lo,
                              int64_t hi,
                              enum proof (*each)(struct proving *, int, struct sizes *)) {
    enum proof proof = PROOF_PROVED;
    for (int64_t value = lo; value <= hi && proof == PROOF_PROVED; value = range[1] + 1) {
        range[0] = value;
        range[1] = value < z->least ? value : hi;
        proof = each(x, k, z);
    }
    return proof;
}

static enum proof prove_next(struct proving *x, int k, struct sizes *z) {
    return prove_sizes(x, k + 1, z);
}

/* The rests that there are with these groups: all, but in the first and the last of all groups,
 * which are in no range with others (prove_sizes). */
static enum proof prove_rests(struct proving *x, int k, struct sizes *z) {
    const struct size *size = &x->s->program->size[k];
    struct size_at *at = &z->at[k];
    int64_t lo = size->lo - at->group * at->whole[0], hi = size->hi - at->group * at->whole[1];
    if (hi >= at->group) hi = at->group - 1;
    return prove_range(x, k, z, at->rest, lo > 0 ? lo : 0, hi, prove_next);
}

static enum proof prove_whole(struct proving *x, int k, struct sizes *z, int64_t whole) {
    z->at[k].whole[0] = z->at[k].whole[1] = whole;
    return prove_rests(x, k, z);
}

static enum proof prove_sizes(struct proving *x, int k, struct sizes *z) {
    const struct program *p = x->s->program;
    if (k == p->nsizes) return prove_at(x, z);
    const struct size *size = &p->size[k];
    int64_t group = z->at[k].group = size_group(p, k), first = size->lo / group,
            last = size->hi / group;
    bool low = size->lo % group != 0, high = (size->hi + 1) % group != 0 && !(low && first == last);
    enum proof proof = low ? prove_whole(x, k, z, first++) : PROOF_PROVED;
    if (high && proof == PROOF_PROVED) proof = prove_whole(x, k, z, last--);
    if (proof != PROOF_PROVED) return proof;
    return prove_range(x, k, z, z->at[k].whole, first, last, prove_rests);
}

/* The order of the queues at all sizes at once, if it can be had so; otherwise it is left to each
 * range of values. */
static enum looks prove_order(struct proving *x) {
    struct sizes all = {0};
    x->looks = ORDER;
    bool good = prove_sizes(x, 0, &all) == PROOF_PROVED;
    x->reason->n = 0;
    return good ? VALUES : ALL;
}

/* Most loops come to a pattern after two iterations; others get more of them before it, as many as
 * bring all slots round. */
static enum proof prove_open(struct proving *x, bool walks) {
    enum { LAST_TRY = 2 };
    int nsizes = x->s->program->nsizes;
    int64_t slots = verify_most_slots(x->s), least[] = {2, slots + 1, slots + 3};
    if (nsizes > MOST_SIZES) return unproved(x->reason, "many sizes are open");
    if (nsizes > 0) x->looks = prove_order(x);
    for (int k = nsizes > 0 ? 0 : LAST_TRY;; k++) {
        struct sizes all = {.least = least[k], .walks = walks && k == LAST_TRY};
        enum proof proof = prove_sizes(x, 0, &all);
        if (proof == PROOF_PROVED || k == LAST_TRY) return proof;
        x->reason->n = 0;
    }
}

static enum proof prove(struct proving *x, bool walks) {
    struct shapes shapes;
    verify_shapes_open(x->shapes = &shapes);
    enum proof proof = walks && x->s->program->nsizes == 0
                           ? prove_fixed(x, x->s->program, NULL, NULL)
                           : prove_open(x, walks);
    verify_shapes_close(&shapes);
    x->shapes = NULL;
    return proof;
}

/* Some values of them, to find what is wrong. */
static enum proof walk_lengths(struct proving *x) {
    enum proof proof = PROOF_PROVED;
    x->steps /= 4;
    for (int k = 0; k < VERIFY_LENGTHS && proof == PROOF_PROVED; k++) {
        int64_t *size = verify_length(x->s, k);
        struct program *at = program_at(x->s->program, size);
        proof = walk_elements(x, at, size);
        program_free(at);
        free(size);
    }
    return proof;
}

bool schedule_prove_symbolically(const struct schedule *s, int64_t most, struct text *why) {
    struct proving x = {.s = s, .steps = most, .reason = why};
    return prove(&x, false) == PROOF_PROVED;
}

bool schedule_prove_guessing(const struct schedule *s, struct text *why) {
    struct proving x = {.s = s, .reason = why, .guesses = true};
    return prove(&x, false) == PROOF_PROVED;
}

enum proof schedule_prove(const struct schedule *s, int64_t steps, int *sampled,
                          struct text *reason, struct diags *diags) {
    struct proving x = {
        .s = s, .steps = steps > 0 ? steps : WALK_STEPS, .reason = reason, .diags = diags};
    enum proof proof = prove(&x, true);
    if (proof == PROOF_UNPROVED && s->program->nsizes > 0) {
        struct text why = *reason;
        *reason = (struct text){0};
        x.steps = steps > 0 ? steps : WALK_STEPS;
        proof = walk_lengths(&x);
        if (proof == PROOF_PROVED)
            proof = unproved(reason, "a size is open, of which some values were walked");
        if (proof == PROOF_UNPROVED && why.n) text_printf(reason, "; %s", why.at);
        text_free(&why);
    }
    *sampled = x.sampled;
    return proof;
}
