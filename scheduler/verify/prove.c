/* What the verifier says of a schedule: proved, unproved, refused. */
#include "scheduler/verify/sym.h"

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

static struct verify verifier(const struct schedule *s, const struct program *p, int64_t steps,
                              struct diags *diags) {
    return (struct verify){
        .s = s, .m = s->machine, .p = p, .diags = diags, .steps = steps, .follows_all = true};
}

/* sampled: how many pairs of an instruction and a statement are only known to agree at random
 * points. */
static bool prove_symbolically(const struct schedule *s, int64_t most, int *sampled,
                               struct text *why) {
    struct diags ignored;
    int64_t nodes = schedule_nodes(s), steps = SYMBOLIC_STEPS + nodes * WALK_STEPS_OF_NODE;
    if (most > 0 && most < WALK_STEPS && most < steps) steps = most;
    diags_init(&ignored);
    struct verify v = verifier(s, s->program, INT64_C(1) << 40, &ignored);
    verify_open_tables(&v);
    bool good = verify_fill_tables(&v) && verify_structure(&v);
    if (!good) text_printf(why, "%s", v.limit.n ? v.limit.at : ignored.n ? ignored.at[0].text : "");
    if (good) {
        access_tables(&v);
        verify_fill_granules(&v);
        race_init(&v);
        good =
            sym_prove(&v, &steps, why) && order_prove(&v, ORDER_STEPS + nodes * STEPS_OF_NODE, why);
    }
    *sampled = v.sampled;
    verify_close_tables(&v);
    text_free(&v.limit);
    diags_free(&ignored);
    return good;
}

bool schedule_prove_symbolically(const struct schedule *s, int64_t most, struct text *why) {
    int sampled;
    return prove_symbolically(s, most, &sampled, why);
}

/* What can be seen without a walk is seen at any size. *points: of all issues and fallbacks, about.
 */
static enum proof prove_structure(const struct schedule *s, double *points, struct text *reason,
                                  struct diags *diags) {
    struct verify v = verifier(s, s->program, INT64_C(1) << 40, diags);
    enum proof proof = PROOF_PROVED;
    *points = 1e30;
    verify_open_tables(&v);
    if (verify_fill_tables(&v) && verify_structure(&v)) *points = verify_points(&v);
    if (v.errors)
        proof = PROOF_REFUSED;
    else if (v.limit.n)
        proof = unproved(reason, v.limit.at);
    verify_close_tables(&v);
    text_free(&v.limit);
    return proof;
}

/* With the sizes that the program leaves open at `length`. */
static enum proof prove_length(const struct schedule *s, const struct program *p, int64_t length,
                               int64_t *steps, int *sampled, struct text *reason,
                               struct diags *diags) {
    struct verify v = verifier(s, p, *steps, diags);
    verify_at(&v, length);
    *steps = v.steps;
    *sampled = v.sampled;
    enum proof proof = v.errors ? PROOF_REFUSED : PROOF_PROVED;
    if (proof == PROOF_PROVED && v.limit.n)
        proof = unproved(reason, v.limit.at);
    else if (proof == PROOF_PROVED && !v.follows_all)
        proof = unproved(reason, "what calls write is not followed");
    text_free(&v.limit);
    return proof;
}

/* A few elements are walked one by one. Of more the symbolic walk is tried first: what it cannot
 * follow is walked where the budget lasts. */
static enum proof prove_fixed(const struct schedule *s, int64_t steps, int *sampled,
                              struct text *reason, struct diags *diags) {
    double points;
    struct text why = {0};
    enum proof proof = prove_structure(s, &points, reason, diags);
    if (proof != PROOF_PROVED) return proof;
    proof = PROOF_UNPROVED;
    if (points > (double)FEW_POINTS && prove_symbolically(s, steps, sampled, &why)) {
        text_free(&why);
        return PROOF_PROVED;
    }
    if (points <= (double)steps)
        proof = prove_length(s, s->program, 0, &steps, sampled, reason, diags);
    else
        text_printf(reason, "more elements than are walked one by one");
    if (proof == PROOF_UNPROVED && !why.n && prove_symbolically(s, steps, sampled, &why)) {
        reason->n = 0;
        proof = PROOF_PROVED;
    }
    if (proof == PROOF_UNPROVED && why.n) text_printf(reason, "; %s", why.at);
    text_free(&why);
    return proof;
}

enum proof schedule_prove(const struct schedule *s, int64_t steps, int *sampled,
                          struct text *reason, struct diags *diags) {
    *sampled = 0;
    if (steps <= 0) steps = WALK_STEPS;
    if (s->program->nsizes == 0) return prove_fixed(s, steps, sampled, reason, diags);
    steps /= 4;
    for (int k = 0; k < VERIFY_LENGTHS; k++) {
        int64_t length = verify_length_number(s, k);
        struct program *at = verify_program_of(s->program, length);
        enum proof proof = prove_length(s, at, length, &steps, sampled, reason, diags);
        program_free(at);
        if (proof != PROOF_PROVED) return proof;
    }
    return unproved(reason, "a size is open, of which some values were walked");
}
