/* Which mapping a statement takes, decided by whole plans: the mapper prices instructions and
 * copies before any tile is known. Where the schedule takes much longer than the mapper thought,
 * or than its instructions alone, other answers to its questions are tried one by one. One that
 * makes the schedule cheaper, device and host together, is preferred from then on: on a CPU or a
 * grid alone the best of them all, beside a device the first. */
#include "scheduler/retry.h"
#include "scheduler/plan/left.h"
#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    STATEMENTS = 24, /* of more not all answers are tried, but so many at 24: */
    TRIES = 64,
    SMALL = 10,
    PLANS = 12000, /* that each try looks at */
    STEPS = 30000,
    LONG_STEPS = 300000 /* of two schedules that are compared once */
};
static const double AS_PRICED = 1.25, ON_CPU = 0.97, NEARLY = 1.1, BETTER = 0.99,
                    MUCH_BETTER = 0.93, HOPELESS = 4, IDLE = 128;

/* Another answer often leads to a schedule that there was. */
struct seen {
    const char *text; /* of the schedule */
    double cycles;
    double most; /* INFINITY: it takes more than this; 0: as many cycles, or not known */
};
struct trying {
    const struct program *p;
    const struct machine *m;
    enum rewrite_effect floats;
    struct decider *decider;
    const struct scheduler_options *options;
    struct arena arena;
    uint64_t *tried; /* hashes of answers */
    int ntried, cap, left, adopted,
        warnings;  /* tries left; answers that are preferred; of the schedule at hand */
    bool walked;   /* a schedule was simulated */
    bool single;   /* mappings alone are tried, those with one axis in a vector */
    bool best;     /* all answers are tried before one is taken */
    double left_products; /* that the first schedule leaves to a device's host: no try leaves more */
    double better; /* what a try must cost at most, of the best one's cost */
    struct planned planned, next; /* of the best schedule, and of the last one; {0}: not compared */
    int64_t below;                /* effort.below when the tries began */
    double hopeless;              /* answers that are priced so many times as high are not tried */
    struct seen *seen;
    int nseen, cap_seen;
    struct known_covers *covers; /* with the answers that are preferred */
    int said, errors;            /* messages before this compilation */
    size_t explained;            /* and what was explained */
};

/* Instances of some unit are as many as the schedule has turns: it may leave most of them idle. */
static bool has_grid(const struct machine *m) {
    for (int u = 0; u < m->nunits; u++)
        if (m->unit[u].is_virtual) return true;
    return false;
}

static struct seen *seen_find(struct trying *t, const char *text) {
    for (int i = 0; i < t->nseen; i++)
        if (strcmp(t->seen[i].text, text) == 0) return &t->seen[i];
    GROW(&t->arena, t->seen, t->nseen, t->cap_seen);
    t->seen[t->nseen] = (struct seen){arena_strdup(&t->arena, text), -1, 0};
    return &t->seen[t->nseen++];
}

/* Cycles of the device: simulated where that is short. INFINITY: of others it was, not of this
 * one; what is planned is not compared with what was simulated. Or it takes more than `most`, if
 * that is above 0: once others were simulated nobody needs to know how much more. */
static double device_cycles(struct trying *t, const struct schedule *s, double most) {
    struct text text = {0};
    schedule_print(s, &text);
    struct seen *seen = seen_find(t, text.at);
    text_free(&text);
    if (!t->walked) most = 0;
    if (seen->cycles >= 0 && (seen->most <= 0 || (most > 0 && most <= seen->most)))
        return seen->cycles;
    int64_t steps = STEPS;
    bool apart = s->host_rate > 0 || has_grid(t->m);
    double cycles = t->options->simulate && apart ? t->options->simulate(s, most, &steps) : -1;
    t->walked |= cycles > 0;
    seen->most = isinf(cycles) ? most : 0;
    if (cycles <= 0) cycles = t->walked ? INFINITY : schedule_cost(s, NULL);
    return seen->cycles = cycles;
}

/* Nobody hears of it. INFINITY: there is none, or it cannot cost less than so much, since its
 * instructions and the host alone do not, or the model thinks it worse than the best one. */
static double cost_of(struct trying *t, double most, enum question_kind kind) {
    struct diags diags;
    struct cover *cover = NULL;
    struct scheduler_options quiet = *t->options;
    diags_init(&diags);
    quiet.explain = NULL;
    quiet.doing = NULL;
    quiet.steps = PLANS;
    quiet.trying = decider_by_cost(t->decider);
    quiet.warned = t->warnings;
    quiet.other = t->planned;
    quiet.most = t->planned.cycles > 0 ? most : 0;
    quiet.covers = kind == QUESTION_FUSION ? NULL : t->covers; /* asked beside the cover too */
    struct schedule *s = schedule_mapped(t->p, t->m, t->floats, t->decider, &quiet, &cover, &diags);
    if (s) t->next = s->planned;
    bool may = s && diags.n <= t->warnings && s->least + s->host < most &&
               (s->host_rate <= 0 || left_products(cover, t->m) <= t->left_products);
    double cost = may ? device_cycles(t, s, most - s->host) + s->host : INFINITY;
    schedule_free(s);
    cover_free(cover);
    diags_free(&diags);
    return cost;
}

/* ---- what may be tried ---- */

struct answer { /* another one than was given */
    const struct put_question *to;
    int candidate;
    double ratio;                     /* of its price to that of the one given */
    bool late;                        /* tried behind the others */
    const struct put_question *whole; /* answered "all" with it; NULL */
};
struct answers {
    struct answer *at;
    int n, cap;
};

static uint64_t hash_text(uint64_t h, const char *s) {
    for (; *s; s++) h = (h ^ (uint64_t)(unsigned char)*s) * 0x100000001b3u;
    return (h ^ 0xff) * 0x100000001b3u;
}

/* How axes fuse is asked anew beside another mapping. */
static uint64_t hash_answer(const struct trying *t, const struct answer *x) {
    uint64_t h = x->to->kind == QUESTION_FUSION ? (uint64_t)t->adopted : 0;
    h = hash_text(hash_text(h, question_name[x->to->kind]), x->to->subject);
    return hash_text(h, x->to->text[x->candidate]);
}

static bool was_tried(const struct trying *t, uint64_t hash) {
    for (int i = 0; i < t->ntried; i++)
        if (t->tried[i] == hash) return true;
    return false;
}

static void note_tried(struct trying *t, uint64_t hash) {
    GROW(&t->arena, t->tried, t->ntried, t->cap);
    t->tried[t->ntried++] = hash;
}

static double largest(const struct put_question *a, int n) {
    double most = 0;
    for (int i = 0; i < n; i++)
        if (a[i].kind == QUESTION_MAPPING) most = fmax(most, a[i].cost[a[i].answer]);
    return most;
}

/* As the mapper priced all statements, in cycles of the fallback. */
static double priced(const struct put_question *a, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (a[i].kind == QUESTION_MAPPING) sum += a[i].cost[a[i].answer];
    return sum;
}

/* Whether an axis is rows of lanes changes all that has it, so it is no answer like others. */
static bool asks_for_rows(const struct put_question *a) {
    return a->kind == QUESTION_FUSION && strncmp(a->subject, "axes of '", 9) == 0;
}

/* Statements that hardly count stay as they are, as do those that could save too little if they
 * took no time; and nothing goes to the fallback. */
static void add_answers(struct trying *t, const struct put_question *a, double least,
                        struct answers *all) {
    double given = a->cost[a->answer];
    if (a->kind == QUESTION_FUSION && strncmp(a->subject, "axes of", 7) != 0) return;
    if (asks_for_rows(a)) return;
    if (a->kind != QUESTION_FUSION && given < least) return;
    if (t->single && a->kind != QUESTION_MAPPING) return;
    for (int i = 0; i < a->n; i++) {
        double ratio = given > 0 ? a->cost[i] / given : 1;
        if (i == a->answer || a->alike[i] || !(ratio <= t->hopeless) ||
            strcmp(a->text[i], "fallback") == 0 || (t->single && strchr(a->text[i], ',')))
            continue;
        GROW(&t->arena, all->at, all->n, all->cap);
        bool late = a->kind == QUESTION_FUSION && isinf(t->hopeless);
        all->at[all->n++] = (struct answer){a, i, ratio, late, NULL};
    }
}

static bool before(const struct answer *a, const struct answer *b) {
    return a->late != b->late ? b->late : a->ratio < b->ratio;
}

/* Least priced first, in the order of the questions where that is equal. */
static struct answers list_answers(struct trying *t, const struct put_question *asked, int n) {
    struct answers all = {.n = 0};
    double least = fmax(largest(asked, n) / SMALL, (1 - t->better) * priced(asked, n));
    for (int i = 0; i < n; i++) add_answers(t, &asked[i], least, &all);
    for (int i = 1; i < all.n; i++) {
        struct answer x = all.at[i];
        int k = i;
        for (; k > 0 && before(&x, &all.at[k - 1]); k--) all.at[k] = all.at[k - 1];
        all.at[k] = x;
    }
    return all;
}

/* ---- trying ---- */

/* All answers, however many instructions there are: what cannot pay is left out by its price, and
 * given up by its bound. A longer program has more of them, and each is a plan of the whole: the
 * work of all tries together is that of a program of so many statements. */
static int tries_of(const struct schedule *s) {
    double n = s->program->nstmts;
    return n <= STATEMENTS ? INT_MAX : (int)(TRIES * STATEMENTS / n * STATEMENTS / n);
}

static struct put_question *asked_copy(struct trying *t, int *n) {
    const struct put_question *a = decider_asked(t->decider, n);
    return arena_copy(&t->arena, a, sizeof *a * (size_t)*n);
}

struct adopted {                 /* of a round of tries, the best so far */
    const struct answer *answer; /* NULL: none pays */
    struct put_question *asked;
    int nasked;
    double cost;
    struct planned planned;
};

static void prefer(struct trying *t, const struct answer *x) {
    decider_again(t->decider, t->adopted);
    decider_prefer(t->decider, x->to->kind, x->to->subject, x->to->text[x->candidate]);
    if (x->whole) decider_prefer(t->decider, x->whole->kind, x->whole->subject, "all");
}

static enum question_kind kind_of(const struct answer *x) {
    return x->whole ? x->whole->kind : x->to->kind;
}

static double try_answer(struct trying *t, const struct answer *x, double most) {
    t->left--;
    prefer(t, x);
    t->next = (struct planned){0};
    return cost_of(t, most, kind_of(x));
}

/* A mapping with several axes on one of the instruction's, of which one was taken: then it is
 * another mapping that is tried by itself. What is its own is all of them. NULL: it has none such.
 */
static const struct put_question *left_apart(struct trying *t, const struct answer *x) {
    int n;
    const struct put_question *a = decider_asked(t->decider, &n), *found = NULL;
    for (int i = 0; i < n && x->to->kind == QUESTION_MAPPING; i++) {
        int all = a[i].n - 1;
        if (a[i].kind != QUESTION_FUSION || asks_for_rows(&a[i]) || a[i].answer == all ||
            strncmp(a[i].subject, "axes of", 7) != 0 || strcmp(a[i].text[all], "all") != 0 ||
            a[i].cost[all] > t->hopeless * a[i].cost[a[i].answer])
            continue;
        found = arena_copy(&t->arena, &a[i], sizeof a[i]);
    }
    return found;
}

/* On a CPU or a grid alone the answer that makes it cheapest of all: one that pays may stand in the
 * way of another that pays more. Beside a device the first that pays. What did not pay is not tried
 * again. */
static struct adopted best_answer(struct trying *t, struct answers *all, double cost) {
    struct adopted best = {.cost = INFINITY};
    for (int i = 0; i < all->n && t->left > 0 && !(best.answer && !t->best); i++) {
        uint64_t hash = hash_answer(t, &all->at[i]);
        if (was_tried(t, hash)) continue;
        double now = try_answer(t, &all->at[i], t->better * cost);
        if (now >= t->better * cost && !t->best) all->at[i].whole = left_apart(t, &all->at[i]);
        if (all->at[i].whole) now = try_answer(t, &all->at[i], t->better * cost);
        if (now >= t->better * cost) note_tried(t, hash);
        if (now >= fmin(best.cost, t->better * cost)) continue;
        best.answer = &all->at[i];
        best.asked = asked_copy(t, &best.nasked);
        best.cost = now;
        best.planned = t->next;
    }
    return best;
}

/* Another answer that makes it cheaper is preferred. False: none, or there were enough. */
static bool improve(struct trying *t, struct put_question **asked, int *n, double *cost) {
    struct answers all = list_answers(t, *asked, *n);
    struct adopted best = best_answer(t, &all, *cost);
    const struct answer *x = best.answer;
    if (!x) return false;
    note_tried(t, hash_answer(t, x));
    prefer(t, x);
    *cost = best.cost;
    *asked = best.asked;
    *n = best.nasked;
    if (t->planned.cycles > 0) t->planned = best.planned;
    t->adopted += x->whole ? 2 : 1;
    if (kind_of(x) == QUESTION_FUSION) covers_forget(t->covers);
    return true;
}

/* The bound by which tries are given up turned out to be wrong meanwhile: all may be tried again,
 * without it. */
static bool bound_broke(struct trying *t) {
    int64_t before = t->below;
    t->below = known_effort(t->options->searches)->below;
    if (t->below == before) return false;
    covers_forget(t->covers);
    t->ntried = 0;
    return true;
}

/* Are some preferred from now on? */
static bool improved(struct trying *t, struct put_question *asked, int n, double cost) {
    int given = decider_preferred(t->decider);
    t->adopted = given;
    t->below = known_effort(t->options->searches)->below;
    while (improve(t, &asked, &n, &cost) || bound_broke(t)) {
    }
    decider_again(t->decider, t->adopted);
    return t->adopted > given;
}

/* One of several axes was taken, which fills vectors worse than the mapper thought of all of them.
 */
static bool loses_lanes(const struct put_question *a, int n) {
    double most = largest(a, n);
    for (int i = 0; i < n; i++)
        if (a[i].kind == QUESTION_FUSION && strncmp(a[i].subject, "axes of", 7) == 0 &&
            a[i].cost[a[i].answer] > NEARLY * most)
            return true;
    return false;
}

/* On a CPU alone: where lanes are lost, or where the schedule takes longer than its instructions
 * and the mapper saw hardly a difference; and only for what saves more than prices are off. */
static bool better_on_cpu(struct trying *t, const struct schedule *s) {
    int n = 0;
    struct put_question *asked = asked_copy(t, &n);
    bool lost = loses_lanes(asked, n);
    if (!n || s->program->nstmts > STATEMENTS) return false;
    double cost = device_cycles(t, s, 0);
    if (!lost && cost <= NEARLY * s->alone) return false;
    t->left = tries_of(s);
    t->hopeless = lost ? HOPELESS : NEARLY;
    t->better = ON_CPU;
    t->single = t->best = true;
    return improved(t, asked, n, cost);
}

/* The first cover that is asked for is priced with all that follows. */
static double covered(const struct put_question *a, int n) {
    for (int i = 0; i < n; i++)
        if (a[i].kind == QUESTION_COVER) return a[i].cost[a[i].answer];
    return 0;
}

/* The mapper's price has all instances at work. Where the tiles of one of the larger products are
 * too few for that, smaller ones may be better, though each takes longer for its part. */
static bool better_on_grid(struct trying *t, const struct schedule *s) {
    int n = 0;
    struct put_question *asked = asked_copy(t, &n);
    double cost = s->program->nstmts > STATEMENTS ? 0 : device_cycles(t, s, 0);
    if (cost <= AS_PRICED * covered(asked, n) || cost > IDLE * covered(asked, n)) return false;
    t->left = tries_of(s);
    t->hopeless = HOPELESS;
    t->better = MUCH_BETTER;
    t->best = true;
    t->planned = s->planned;
    return improved(t, asked, n, cost);
}

/* Are there better ways? They are preferred from now on. */
static bool better_ways(struct trying *t, const struct schedule *s) {
    int n = 0;
    if (!s || !t->decider) return false;
    if (s->host_rate <= 0) return has_grid(t->m) ? better_on_grid(t, s) : better_on_cpu(t, s);
    t->better = BETTER;
    t->planned = s->planned;
    double cost = device_cycles(t, s, 0) + s->host;
    struct put_question *asked = asked_copy(t, &n);
    t->left = tries_of(s);
    bool as_priced = cost * s->host_rate <= AS_PRICED * priced(asked, n);
    /* Copies hardly count for the mapper: where they take most of the time its prices say little,
     * and another mapping saves more than other axes of the same. */
    t->hopeless = s->host > cost / 2 ? INFINITY : HOPELESS;
    if (!n || (as_priced && cost <= NEARLY * s->alone)) return false;
    return improved(t, asked, n, cost);
}

/* ---- the whole ---- */

/* Anew, with the answers that are preferred; the schedule and the cover at hand end. */
static struct schedule *again(struct trying *t, struct schedule *s, struct cover **cover,
                              struct diags *diags) {
    struct text *explain = t->options->explain;
    struct scheduler_options options = *t->options;
    options.covers = NULL;
    cover_free(*cover);
    schedule_free(s);
    diags->n = t->said;
    diags->errors = t->errors;
    if (explain && explain->at) explain->at[explain->n = t->explained] = 0;
    s = schedule_mapped(t->p, t->m, t->floats, t->decider, &options, cover, diags);
    t->warnings = diags->n - t->said;
    return s;
}

/* With better answers where there are such. */
static struct schedule *settled(struct trying *t, struct schedule *s, struct cover **cover,
                                struct diags *diags) {
    struct decider_mark first = {0};
    if (t->decider) first = decider_mark(t->decider);
    if (!better_ways(t, s)) {
        if (t->decider) decider_back(t->decider, &first);
        return s;
    }
    s = again(t, s, cover, diags); /* once more, for the record */
    return s && bound_broke(t) ? settled(t, s, cover, diags) : s;
}

struct times {        /* of device and host together */
    double simulated; /* -1: it takes too long */
    double planned;
};

static struct times times_of(struct trying *t, const struct schedule *s) {
    int64_t steps = LONG_STEPS;
    if (!s) return (struct times){INFINITY, INFINITY};
    double cycles = t->options->simulate ? t->options->simulate(s, 0, &steps) : -1;
    return (struct times){cycles > 0 ? cycles + s->host : -1, schedule_cost(s, NULL) + s->host};
}

/* Simulated times are compared with one another alone. */
static bool clearly_less(struct times a, struct times b) {
    return a.simulated > 0 && b.simulated > 0 ? a.simulated < BETTER * b.simulated
                                              : a.planned < BETTER * b.planned;
}

/* Instructions that could take several rows and get one take so much of the time that a plan
 * without them could be the better one. */
static bool may_gain_rows(struct trying *t, const struct schedule *s, const struct cover *cover,
                          const struct put_question *asked, int n) {
    bool rows = false;
    for (int i = 0; i < n; i++) rows |= asks_for_rows(&asked[i]) && asked[i].answer == 0;
    return rows && (s->host_rate <= 0 || cover_of_one_row(cover, t->options->needles) >=
                                             (1 - BETTER) * (device_cycles(t, s, 0) + s->host));
}

/* As at first, but for the first so many answers that are preferred. */
static void begin_again(struct trying *t, int preferred) {
    decider_again(t->decider, preferred);
    covers_forget(t->covers);
    t->ntried = 0;
}

/* Both ways where axes may be in rows, each with its better answers: as it was, and in rows if that
 * is cheaper. */
static struct schedule *in_rows_or_whole(struct trying *t, struct schedule *s, struct cover **cover,
                                         struct diags *diags) {
    int n = 0, given = t->decider ? decider_preferred(t->decider) : 0;
    const struct put_question *asked = s && t->decider ? asked_copy(t, &n) : NULL;
    bool rows = asked && may_gain_rows(t, s, *cover, asked, n);
    s = settled(t, s, cover, diags);
    if (!rows || !s) return s;
    struct decider_mark first = decider_mark(t->decider);
    struct times whole = times_of(t, s);
    begin_again(t, given);
    for (int i = 0; i < n; i++)
        if (asks_for_rows(&asked[i]) && asked[i].answer == 0)
            decider_prefer(t->decider, asked[i].kind, asked[i].subject, asked[i].text[1]);
    begin_again(t, decider_preferred(t->decider));
    s = settled(t, again(t, s, cover, diags), cover, diags);
    if (clearly_less(times_of(t, s), whole)) return s;
    decider_back(t->decider, &first);
    decider_again(t->decider, decider_preferred(t->decider));
    return again(t, s, cover, diags); /* with the answers that were found for it */
}

struct schedule *scheduler_compile(const struct program *p, const struct machine *m,
                                   enum rewrite_effect floats, struct decider *decider,
                                   const struct scheduler_options *options, struct cover **cover,
                                   struct diags *diags) {
    struct scheduler_options shared = options ? *options : (struct scheduler_options){.threads = 0};
    struct trying t = {.p = p,
                       .m = m,
                       .floats = floats,
                       .decider = decider,
                       .options = &shared,
                       .said = diags->n,
                       .errors = diags->errors,
                       .explained = shared.explain ? shared.explain->n : 0};
    arena_init(&t.arena);
    struct known_searches *own = shared.searches ? NULL : known_open();
    if (own) shared.searches = own; /* what a try leaves as it was is not planned again */
    struct needles *needles = shared.needles ? NULL : needles_open(m);
    if (needles) shared.needles = needles; /* nor mapped again */
    shared.covers = t.covers = covers_open();
    struct schedule *s = schedule_mapped(p, m, floats, decider, &shared, cover, diags);
    t.warnings = diags->n - t.said;
    if (s) t.left_products = left_products(*cover, m);
    s = in_rows_or_whole(&t, s, cover, diags);
    known_close(own);
    needles_close(needles);
    covers_close(t.covers);
    arena_free(&t.arena);
    return s;
}
