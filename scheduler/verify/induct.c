/* The symbolic walk. Of a loop the first iterations are walked; then a general one, from what holds
 * before it by the first ones' pattern. If the same holds after it, one iteration on, it holds by
 * induction before every one. Where that fails the iterations are walked one by one. */
#include "scheduler/verify/pattern.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

static bool walk_nodes(struct sym *s, const struct node *node, int n);

/* ---- the general iteration ---- */
static bool implied(struct sym *s, const struct region *x, int *next) {
    return regions_imply(s, s->of[x->place].at, s->of[x->place].n, x, next);
}

/* Each instance of the statement that is known now is one of the pattern's, one iteration on. */
static bool no_more_of(struct sym *s, int place, const struct regions *r, int counter) {
    const struct lin one = lin_of(1);
    for (int k = 0, next = 0; k < s->of[place].n; k++) {
        const struct region *y = &s->of[place].at[k];
        if (!regions_have(s, r, y, counter, &one, false, &next) && !region_empty(s, y))
            return false;
    }
    return true;
}

static bool no_more_instances(struct sym *s, const struct frame *f, const struct regions *r,
                              int counter) {
    for (int k = 0; k < f->n; k++)
        if (f->at[k] >= s->v->s->nplaces && !no_more_of(s, f->at[k], r, counter)) return false;
    return true;
}

/* LOSES: it holds, but something that an iteration left is not known before the next one. */
enum step { HOLDS, WEAKER, LOSES, FAILS };

/* One iteration, by number. */
static bool walk_body(struct sym *s, const struct loop_node *l, int64_t k) {
    enum { DEEPEST = sizeof s->around / sizeof *s->around };
    bool parallel = l->kind == LOOP_PARALLEL;
    if (parallel) s->parallel->of = k;
    if (s->naround == DEEPEST) return sym_never(s, "many loops in each other");
    s->around[s->naround++] = l->var;
    bool good = walk_nodes(s, l->body, l->nbody);
    s->naround--;
    scope_ends(s, l);
    if (parallel) parallel_forget(s, l);
    return good;
}

static enum step general_step(struct sym *s, const struct trips *t, struct regions *inv,
                              struct slot *slot, struct setting *setting, int counter) {
    const struct loop_node *l = t->loop;
    const struct lin one = lin_of(1), first = lin_of(s->lo[counter]);
    int unpadded = s->unpadded;
    bool weaker = false;
    known_put(s, &t->frame, inv, slot, setting);
    for (int64_t k = 0; k < t->group; k++) {
        struct affine at = t->lo;
        at.l.c += (t->first + k) * l->step;
        at.l.k[counter] += t->group * l->step;
        sym_set(s, l->var, &at);
        if (!walk_body(s, l, IN_GENERAL) || s->unpadded != unpadded) return FAILS;
    }
    if (!regions_coalesce(s, &t->frame)) return FAILS;
    bool turned = slots_step(s, &t->frame, counter, slot, &weaker);
    weaker |= settings_meet(s, setting, s->setting);
    if (!turned) {
        sym_fail(s, "slots are not all turned");
        return FAILS;
    }
    for (int k = inv->n - 1, next = 0; k >= 0; k--) {
        struct region x = inv->at[k];
        region_move(&x, counter, &one, false);
        if (implied(s, &x, &next)) continue;
        if (x.place >= s->v->s->nplaces) {
            sym_fail(s, "the instances that a loop executes have no pattern");
            return FAILS;
        }
        weaker = true;
        if (pattern_moves(&inv->at[k], counter)) { /* what was there before may stay */
            region_move(&inv->at[k], counter, &first, true);
            continue;
        }
        pattern_parts(s, inv, k, counter);
    }
    if (!no_more_instances(s, &t->frame, inv, counter)) {
        sym_fail(s, "the instances that a loop executes have no pattern");
        return FAILS;
    }
    return weaker ? WEAKER : pattern_loses(s, t, inv, counter) ? LOSES : HOLDS;
}

/* By the line through two iterations; by the pattern that the loop had before, for one iteration
 * alone has none; or by a guess, before any iteration. */
enum by { BY_LINE, BY_RECALL, BY_GUESS };

static bool find_pattern(struct sym *s, struct trips *t, const struct pattern *p, enum by by,
                         struct regions *inv, int *of) {
    *of = -1;
    t->spared.n = 0;
    if (by == BY_LINE) return pattern_find(s, p, &t->before, &t->now, inv);
    if (by == BY_GUESS) return guess_find(s, t, p->counter, inv);
    *of = pattern_recall(s, p, t->loop, &t->before, &t->now, inv);
    s->history[t->loop->var].missed = *of < 0;
    return *of >= 0;
}

/* The general iteration left what holds after each: after the one before iteration `over` too. */
static void all_over(struct sym *s, const struct frame *f, int counter, struct lin over,
                     const struct slot *slot) {
    over.c--;
    for (int k = 0; k < f->n; k++) {
        struct regions *r = &s->of[f->at[k]];
        for (int i = 0; i < r->n; i++) region_move(&r->at[i], counter, &over, true);
        if (f->at[k] < s->v->s->nplaces) s->slot[f->at[k]] = slot[k];
    }
}

/* The counter's last iteration is the one before `over`: known only where that is no number. */
static void tie(struct sym *s, int counter, struct lin over) {
    int64_t number;
    s->tied[counter] = !lin_constant(&over, &number);
    s->ntied += s->tied[counter];
    s->last[counter] = over;
    s->last[counter].c--;
}

/* The first iterations may be too few for the pattern of all that they leave. Where more of them
 * have not helped, later visits do not wait for them. Few that are left are walked. */
static bool may_lose(struct sym *s, struct trips *t, int64_t from, int64_t last) {
    enum { PATIENCE = 4, FEW = 8 };
    struct history *h = &s->history[t->loop->var];
    bool late = t->hasty || (from >= t->begin + PATIENCE && last - from >= FEW);
    t->lost = !late && !h->loses;
    h->loses |= late;
    return !t->lost || sym_fail(s, "a pattern that loses what iterations leave");
}

/* All iterations from `from` to `last` by induction; the state is then what holds after `over`
 * iterations. */
static bool induct(struct sym *s, struct trips *t, int64_t from, int64_t last, struct lin over,
                   enum by by) {
    const int tries = by == BY_GUESS ? 1 : 5; /* a guess that forgets may leave less than a walk */
    const struct known *before = by == BY_GUESS ? &t->start : &t->before,
                       *now = by == BY_GUESS ? &t->start : &t->now;
    const struct loop_node *l = t->loop;
    struct pattern p = {.from = from, .counter = s->nloops};
    struct regions inv = {0};
    enum step step = FAILS;
    int touched = s->parallel ? s->parallel->n : 0;
    struct slot *slot = memory_array((size_t)t->frame.n + 1, sizeof *slot);
    memcpy(slot, now->slot, (size_t)t->frame.n * sizeof *slot);
    if (!slots_general(s, &t->frame, before->slot, p.counter, from, slot)) {
        free(slot);
        return sym_fail(s, "slots are not all turned");
    }
    struct setting *setting = memory_array((size_t)s->nsettings + 1, sizeof *setting);
    memcpy(setting, now->setting, (size_t)s->nsettings * sizeof *setting);
    settings_meet(s, setting, before->setting);
    s->lo[p.counter] = from;
    s->hi[p.counter] = last;
    s->turn[p.counter] = -1;
    s->cycle[p.counter] = 1;
    tie(s, p.counter, over);
    s->nloops++;
    int of;
    if (find_pattern(s, t, &p, by, &inv, &of)) {
        step = WEAKER;
        for (int k = 0; k < tries && step == WEAKER; k++)
            step = general_step(s, t, &inv, slot, setting, p.counter);
    }
    if (step == LOSES) step = may_lose(s, t, from, last) ? HOLDS : FAILS;
    if (s->parallel && l->kind == LOOP_PARALLEL) {
        if (step == HOLDS && !parallel_general_ends(s, p.counter, touched)) step = FAILS;
        if (step != HOLDS) s->parallel->n = touched;
    }
    parallel_fold(s, p.counter);
    s->nloops--;
    s->ntied -= s->tied[p.counter];
    if (step == HOLDS) {
        s->history[l->var].visits++;
        if (by != BY_GUESS) pattern_learn(s, t, of, &inv, p.counter);
        if (s->bold && by != BY_GUESS) guess_learn(s, t, &inv, p.counter);
        slots_over(s, &t->frame, p.counter, &over, slot);
        all_over(s, &t->frame, p.counter, over, slot);
    }
    free(slot);
    free(setting);
    regions_free(&inv);
    return step == HOLDS && regions_coalesce(s, &t->frame);
}

/* ---- loops ---- */
static bool walk_iteration(struct sym *s, const struct trips *t, int64_t k) {
    bool good = true;
    for (int64_t i = t->first + k * t->group; i < t->first + (k + 1) * t->group && good; i++) {
        struct affine at = t->lo;
        at.l.c += i * t->loop->step;
        sym_set(s, t->loop->var, &at);
        good = sym_spend(s, 1) && walk_body(s, t->loop, i);
    }
    return good;
}

/* Where the last iteration is another, or an answer changes, it goes as far as that: not for few
 * iterations, for what an induction cannot follow it forgets. How many iterations are over then; 0:
 * none more. */
static int64_t walk_rest(struct sym *s, struct trips *t, int64_t from, bool recalls) {
    enum { WORTH = 8 };
    struct history *h = &s->history[t->loop->var];
    int64_t to = s->bold && recalls && h->turn > from && h->turn < t->n - 1 ? h->turn : t->n - 1;
    enum by by = recalls ? BY_RECALL : BY_LINE;
    t->lost = false;
    if (induct(s, t, from, to, lin_of(to + 1), by)) {
        if (to == t->n - 1) h->turn = -1;
        return to + 1;
    }
    if (t->lost) return 0;
    int64_t turn = s->turn[s->nloops], last[] = {turn, t->n - 2};
    for (int k = turn < from + WORTH || turn >= t->n - 2; k < 2 && !s->over; k++) {
        if (last[k] <= from || !induct(s, t, from, last[k], lin_of(last[k] + 1), by)) continue;
        h->turn = last[k];
        return last[k] + 1;
    }
    return 0;
}

static bool worth_trying(int64_t k) {
    return k <= 4 || (k & (k - 1)) == 0;
}

static bool walk_all(struct sym *s, const struct trips *t) {
    for (int64_t k = 0; k < t->n; k++)
        if (!walk_iteration(s, t, k)) return false;
    return true;
}

/* Of a loop of three iterations, of which the first two are over: the pattern that the next visit
 * tries. */
static void guess(struct sym *s, struct trips *t) {
    const struct pattern p = {.from = 2, .counter = s->nloops};
    struct regions inv = {0};
    if (!regions_coalesce(s, &t->frame)) return;
    known_take(s, &t->frame, &t->now);
    if (pattern_find(s, &p, &t->before, &t->now, &inv)) pattern_learn(s, t, -1, &inv, p.counter);
    regions_free(&inv);
}

static bool walk_groups(struct sym *s, const struct trips *t, int64_t first, int64_t group);

/* Iterations that an induction may take together: a quotient is in the same place of its course
 * again. 0: none, or too few of them. */
static int64_t worth_grouping(const struct sym *s, const struct trips *t, int64_t done,
                              int64_t cycle) {
    enum { FEW = 3 };
    return s->bold && t->group == 1 && t->loop->kind != LOOP_PARALLEL && cycle > 1 &&
                   (t->n - done) / cycle >= FEW
               ? cycle
               : 0;
}

/* A guess may cut what is known into other pieces, in which later loops have no pattern: only where
 * much has been spent, and of loops that were visited often and had a pattern that they knew. */
static bool worth_guessing(struct sym *s, const struct history *h) {
    enum { OFTEN = 64, WRONG = 4 };
    if (!s->bold || !h->guess || h->failed >= WRONG) return false;
    if (s->steps <= s->guess_below) return true;
    if (!s->eager || h->missed || h->visits < OFTEN) return false;
    return s->guessed = true;
}

/* All iterations at once, before one is walked. *hopeless: whichever is walked, the same question
 * about a loop around has no answer. */
static bool walk_guessed(struct sym *s, struct trips *t, bool *hopeless) {
    struct history *h = &s->history[t->loop->var];
    *hopeless = false;
    if (!worth_guessing(s, h) || t->first > 0 || t->loop->kind == LOOP_PARALLEL) return false;
    s->undecided = -1;
    if (induct(s, t, 0, t->n - 1, lin_of(t->n), BY_GUESS)) return !(h->failed = 0);
    *hopeless = s->undecided >= 0 && s->undecided < s->nloops;
    t->misled = true;
    known_put(s, &t->frame, &t->start.r, t->start.slot, t->start.setting);
    return false;
}

static bool walk_parts(struct sym *s, struct trips *t) {
    const struct history *h = &s->history[t->loop->var];
    bool groups = h->loop == t->loop && worth_grouping(s, t, h->first, h->group), hopeless;
    known_take(s, &t->frame, &t->start);
    if (!groups && walk_guessed(s, t, &hopeless)) return true;
    if (!groups && hopeless) return false;
    for (int64_t k = 0; k < t->n; k++) {
        if (groups && k == h->first) return walk_groups(s, t, k, h->group);
        bool learned = pattern_known(s, t), tried = worth_trying(k + 1 - t->begin) && !groups;
        if (tried && !regions_coalesce(s, &t->frame)) return false;
        if (tried) known_take(s, &t->frame, &t->before);
        if (!walk_iteration(s, t, k)) return false;
        /* The last one alone is walked: an induction may forget what it leaves. */
        if (s->bold && t->n == 3 && k == 1 && (!learned || h->missed)) guess(s, t);
        if (!tried || (k == t->begin && !learned) || t->n - k < 3) continue;
        if (!regions_coalesce(s, &t->frame)) return false;
        known_take(s, &t->frame, &t->now);
        int64_t done = walk_rest(s, t, k + 1, k == t->begin), cycle = s->cycle[s->nloops];
        if (s->over) return false;
        if (!done) known_put(s, &t->frame, &t->now.r, t->now.slot, t->now.setting);
        if (!done && worth_grouping(s, t, k + 1, cycle)) return walk_groups(s, t, k + 1, cycle);
        if (done) t->begin = (k = done - 1) + 1;
    }
    return true;
}

/* A guess is to blame only if the loop holds without it. */
static bool walk_by_induction(struct sym *s, struct trips *t) {
    bool good = walk_parts(s, t);
    if (good && t->misled) s->history[t->loop->var].failed++;
    return good;
}

static void known_all_free(struct trips *t) {
    known_free(&t->start);
    known_free(&t->before);
    known_free(&t->now);
    regions_free(&t->spared);
}

static bool walk_groups(struct sym *s, const struct trips *t, int64_t first, int64_t group) {
    struct trips g = {.loop = t->loop, .lo = t->lo, .frame = t->frame, .first = first};
    g.group = group;
    g.n = (t->n - first) / group;
    bool good = walk_by_induction(s, &g);
    for (int64_t k = first + g.n * group; k < t->n && good; k++) good = walk_iteration(s, t, k);
    known_all_free(&g);
    return good;
}

/* As often as an open size says, t->n times at least. */
static bool walk_open(struct sym *s, struct trips *t, struct lin count) {
    int64_t least, most;
    bool done = false, good = true;
    lin_range(s, &count, &least, &most);
    t->n = least;
    t->hasty = true;
    if (s->nloops == SYM_LOOPS) return sym_fail(s, "loops in loops in a loop of open length");
    sym_frame(s, t->loop, &t->frame);
    known_take(s, &t->frame, &t->start);
    for (int64_t k = 0; k < t->n && good && !done && !s->over; k++) {
        good = regions_coalesce(s, &t->frame);
        known_take(s, &t->frame, &t->before);
        good = good && walk_iteration(s, t, k) && regions_coalesce(s, &t->frame);
        if (k == 0 || !good) continue;
        known_take(s, &t->frame, &t->now);
        done = induct(s, t, k + 1, most - 1, count, BY_LINE);
        if (!done) known_put(s, &t->frame, &t->now.r, t->now.slot, t->now.setting);
    }
    known_all_free(t);
    sym_frame_free(&t->frame);
    return done;
}

/* It depends on nothing but sizes. */
static bool is_open(const struct sym *s, const struct affine *f) {
    struct lin rest = f->l;
    for (int k = 0; k < s->nsizes; k++) rest.k[k] = 0;
    int64_t c;
    return lin_constant(&rest, &c);
}

static bool walk_trips(struct sym *s, struct trips *t) {
    enum { FEW = 2 };
    if (t->n <= FEW || s->nloops == SYM_LOOPS) return walk_all(s, t);
    sym_frame(s, t->loop, &t->frame);
    bool good = walk_by_induction(s, t);
    known_all_free(t);
    sym_frame_free(&t->frame);
    return good;
}

static bool is_nest(const struct loop_node *l, struct nest *out) {
    *out = (struct nest){0};
    for (;;) {
        if (out->n == 16 || l->nbody != 1) return false;
        out->loop[out->n++] = l;
        if (l->body[0].kind == NODE_ISSUE) return out->issue = l->body[0].issue, true;
        if (l->body[0].kind != NODE_LOOP) return false;
        l = l->body[0].loop;
    }
}

static bool walk_loop(struct sym *s, const struct loop_node *l) {
    struct nest nest;
    struct affine lo, hi;
    int64_t n;
    if (is_nest(l, &nest)) { /* an issue that fails has changed nothing */
        bool good = box_issue(s, &nest);
        if (good || s->over || l->kind == LOOP_HARDWARE) return good;
    }
    if (!sym_eval(s, l->lo, &lo) || !sym_eval(s, l->hi, &hi)) return false;
    if (!affine_add(&hi, &lo, -1)) return sym_fail(s, "a number is out of range");
    struct trips t = {.loop = l, .lo = lo, .group = 1};
    if (!affine_constant(&hi, &n))
        return l->step == 1 && l->kind != LOOP_PARALLEL && is_open(s, &hi)
                   ? walk_open(s, &t, hi.l)
                   : sym_fail(s, "how often a loop runs depends on a loop counter");
    t.n = (n - 1) / l->step + 1;
    if (n <= 0) return true;
    if (l->kind != LOOP_PARALLEL) return walk_trips(s, &t);
    struct parallel instances;
    return parallel_begin(s, l, &instances) && parallel_end(s, walk_trips(s, &t));
}

static bool rotate(struct sym *s, int place) {
    int slots = s->v->s->place[place].slots;
    bool first = !s->slot[place].turned;
    slot_rotate(s, place);
    if (first) return true;
    for (int k = 0; k < s->of[place].n; k++)
        s->of[place].at[k].age = (s->of[place].at[k].age + 1) % slots;
    return true;
}

static bool configure(struct sym *s, const struct configure_node *n) {
    const struct configure *c = &s->v->m->configure[n->configure];
    for (int k = 0; k < c->nclobbers; k++)
        for (int p = 0; p < s->v->s->nplaces; p++)
            if (s->v->s->place[p].memory == c->clobbers[k]) regions_forget(s, p);
    return settings_configure(s, n);
}

static bool walk_node(struct sym *s, const struct node *n) {
    struct nest alone = {.n = 0};
    switch (n->kind) {
    case NODE_LOOP:
        return walk_loop(s, n->loop);
    case NODE_ISSUE:
        alone.issue = n->issue;
        return box_issue(s, &alone);
    case NODE_FALLBACK:
        return box_fallback(s, n->fallback);
    case NODE_ROTATE:
        return rotate(s, n->rotate);
    case NODE_SYNC:
        return true;
    case NODE_CONFIGURE:
        return configure(s, n->configure);
    }
    return sym_fail(s, "a node that is not followed");
}

static bool walk_nodes(struct sym *s, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        s->v->node = &node[k];
        if (!walk_node(s, &node[k])) return false;
    }
    return true;
}

/* Homes with padding are zeroed before the first node that uses them: what shares bytes with one is
 * lost. next[p]: another one of the same node; first[k], of node k. */
static void list_zeroed(struct sym *s, bool prepare, int *first, int *next) {
    const struct schedule *x = s->v->s;
    for (int p = 0; p < x->nplaces; p++) {
        int k = uses_first(s->v, prepare, p);
        if (x->place[p].keep != (prepare ? KEEP_PREPARED : KEEP_WORKSPACE) || k < 0 ||
            !schedule_pads(x, p))
            continue;
        next[p] = first[k];
        first[k] = p + 1;
    }
}

static bool walk_section(struct sym *s, const struct section *c, bool prepare) {
    const struct schedule *x = s->v->s;
    int *first = arena_array(&s->v->arena, (size_t)c->nnodes + 1, sizeof *first);
    int *next = arena_array(&s->v->arena, (size_t)x->nplaces + 1, sizeof *next);
    for (int p = 0; p < x->nplaces; p++) {
        enum keep keep = x->place[p].keep;
        s->slot[p] = (struct slot){0};
        if (keep == KEEP_LOCAL || (keep == KEEP_WORKSPACE && !prepare)) regions_forget(s, p);
    }
    s->prepare = prepare;
    settings_forget(s);
    sym_scopes(s, c);
    list_zeroed(s, prepare, first, next);
    for (int k = 0; k < c->nnodes; k++) {
        for (int p = first[k]; p > 0; p = next[p - 1]) {
            frame_forget_sharers(s, p - 1);
            s->padded[p - 1] = true;
            frame_list(s, p - 1);
        }
        if (!walk_nodes(s, &c->node[k], 1)) return false;
    }
    return true;
}

/* ---- the proof ---- */
static bool can_follow(struct sym *s) {
    const struct program *p = s->v->p;
    for (int r = 0; r < s->v->nrecurrences; r++)
        if (s->v->recurrence[r].level >= SYM_LEVELS)
            return sym_fail(s, "recurrences deep inside others are not followed");
    for (int b = 0; b < p->nbuffers; b++)
        if (s->v->loose[b]) return sym_fail(s, "what calls write is not followed");
    return true;
}

/* times · x, x any value of the range: where there are several, a counter. */
static void add_range(struct sym *s, struct lin *to, const int64_t *range, int64_t times) {
    to->c += range[0] == range[1] ? times * range[0] : 0;
    if (range[0] == range[1]) return;
    s->lo[s->nloops] = range[0];
    s->hi[s->nloops] = range[1];
    to->k[s->nloops++] = times;
}

static void open_sizes(struct sym *s, const struct size_at *size) {
    for (int k = 0; k < s->v->p->nsizes; k++) {
        const struct size_at *z = &size[k];
        s->v->var[k] = z->group * z->whole[1] + z->rest[1];
        s->var[k] = affine_of(0);
        add_range(s, &s->var[k].l, z->whole, z->group);
        add_range(s, &s->var[k].l, z->rest, 1);
    }
    s->nsizes = s->nloops;
}

enum mode { EAGER, BOLD, CAREFUL };

/* How one is made, and what may have made it fail: a guess that only an eager one makes; instances
 * of temporaries that are made again. */
struct trial {
    enum mode mode;
    bool remakes, guessed, made_again;
};

static bool attempt(struct verify *v, const struct size_at *size, struct trial *t, int64_t *steps,
                    struct text *why) {
    struct sym s = {.v = v, .steps = *steps, .guess_below = *steps / 3 * 2};
    s.bold = t->mode != CAREFUL;
    s.eager = t->mode == EAGER;
    s.remakes = t->remakes;
    if (v->guesses) s.guess_below = *steps;
    size_t places = (size_t)v->s->nplaces + 1;
    s.var = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *s.var);
    s.home = arena_array(&v->arena, places, sizeof *s.home);
    s.turn = arena_array(&v->arena, SYM_LOOPS, sizeof *s.turn);
    s.cycle = arena_array(&v->arena, SYM_LOOPS, sizeof *s.cycle);
    s.ending = arena_array(&v->arena, places, sizeof *s.ending);
    s.ends = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *s.ends);
    s.image = arena_array(&v->arena, (size_t)v->p->nstmts + 1, sizeof *s.image);
    s.padded = arena_array(&v->arena, places, sizeof *s.padded);
    s.joined = arena_array(&v->arena, (size_t)v->p->nbuffers + 1, sizeof *s.joined);
    s.history = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *s.history);
    size_t all = places + (size_t)v->p->nstmts;
    s.of = arena_array(&v->arena, all, sizeof *s.of);
    s.stamp = arena_array(&v->arena, all, sizeof *s.stamp);
    s.slot = arena_array(&v->arena, places, sizeof *s.slot);
    frame_groups(&s);
    settings_open(&s);
    open_sizes(&s, size);
    bool good = can_follow(&s) && box_begin(&s) && walk_section(&s, &v->s->prepare, true) &&
                walk_section(&s, &v->s->run, false) && box_end(&s);
    if (good && v->errors) good = sym_fail(&s, "an error");
    if (!good) text_printf(why, "%s", s.why);
    *steps = s.steps;
    t->guessed = s.guessed;
    t->made_again = s.made_again;
    for (size_t k = 0; k < all; k++) regions_free(&s.of[k]);
    regions_free(&s.among);
    for (int k = 0; k < v->s->nvars; k++) history_free(&s.history[k]);
    return good;
}

bool sym_prove(struct verify *v, const struct size_at *size, int64_t *steps, struct text *why) {
    int64_t most = *steps;
    for (struct trial t = {.mode = EAGER};;) {
        if (attempt(v, size, &t, steps, why)) return true;
        bool remakes = t.made_again && !t.remakes;
        if (!remakes && (t.mode == CAREFUL || (*steps < 0 && !t.guessed))) return false;
        if (remakes)
            t.remakes = true;
        else
            t.mode = t.guessed ? BOLD : CAREFUL;
        v->errors = 0;
        v->stop = false;
        why->n = 0;
        *steps = most;
    }
}
