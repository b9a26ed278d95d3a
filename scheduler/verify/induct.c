/* The symbolic walk. Of a loop the first iterations are walked; then a general one, from what holds
 * before it by the first ones' pattern. If the same holds after it, one iteration on, it holds by
 * induction before every one. Where that fails the iterations are walked one by one. */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

static bool walk_nodes(struct sym *s, const struct node *node, int n);

/* A loop while it is walked. */
struct trips {
    const struct loop_node *loop;
    struct affine lo;
    int64_t n;
    struct frame frame;
    struct known start, before, now; /* before the loop; before and after the last iteration */
};

/* ---- the pattern of two iterations ---- */
struct pattern {
    int64_t from;
    int counter;
};
/* old: regions that were there before the loop, and stayed. */
struct learned {
    const struct loop_node *loop;
    struct regions inv;
    int counter, nold;
    bool *old;
};

/* Regions that iterations left as they were. */
static bool was_there(const struct known *before, const struct region *x) {
    for (int k = 0; k < before->r.n; k++)
        if (region_same(&before->r.at[k], x)) return true;
    return false;
}

static void learn(struct sym *s, const struct loop_node *l, const struct regions *inv, int counter,
                  const struct known *start) {
    struct learned *x = &s->learned[l->var];
    x->loop = l;
    x->counter = counter;
    regions_copy(&x->inv, inv);
    if (x->nold < inv->n) x->old = memory_grow(x->old, (size_t)(x->nold = inv->n));
    for (int k = 0; k < inv->n; k++) x->old[k] = was_there(start, &inv->at[k]);
}

/* b before iteration `from`, a before the one before: the line through them. */
static bool line(const struct pattern *p, const struct lin *a, const struct lin *b, struct lin *out,
                 int *differ) {
    struct lin step = *b;
    int64_t d;
    if (!lin_add(&step, a, -1) || !lin_constant(&step, &d)) return false;
    *out = *b;
    *differ += d != 0;
    int64_t back;
    if (__builtin_mul_overflow(d, p->from, &back) || __builtin_sub_overflow(b->c, back, &out->c))
        return false;
    out->k[p->counter] = d;
    return true;
}

/* The dimension of b that a, being one shorter, has once; -1: none; -2: they have the same. */
static int extra_dim(const struct region *a, const struct region *b) {
    if (a->ndims == b->ndims) return -2;
    if (a->ndims + 1 != b->ndims) return -1;
    for (int d = 0; d < b->ndims; d++) {
        bool same = true;
        for (int k = 0; k < b->ndims && same; k++) {
            int i = k > d ? k - 1 : k;
            same = k == d || (a->s[i] == b->s[k] && !memcmp(a->c[i], b->c[k], sizeof a->c[i]));
        }
        if (same) return d;
    }
    return -1;
}

/* Dimension d of `like`, of length 1. */
static void add_dim(struct region *x, const struct region *like, int d) {
    for (int k = x->ndims; k > d; k--) {
        x->n[k] = x->n[k - 1];
        x->s[k] = x->s[k - 1];
        memcpy(x->c[k], x->c[k - 1], sizeof x->c[k]);
    }
    x->n[d] = lin_of(1);
    x->s[d] = like->s[d];
    memcpy(x->c[d], like->c[d], sizeof x->c[d]);
    x->ndims++;
}

static bool region_line(const struct pattern *p, const struct region *a, const struct region *b,
                        struct region *out, int *differ) {
    struct lin one = lin_of(1);
    struct region longer;
    if (!a->box && !b->box && a->ndims == b->ndims + 1) {
        int d = extra_dim(b, a);
        if (d < 0) return false;
        longer = *b;
        add_dim(&longer, a, d);
        b = &longer;
    }
    *out = *b;
    *differ = 0;
    if (a->place != b->place || a->age != b->age || a->buffer != b->buffer ||
        a->writer != b->writer || a->type != b->type || a->box != b->box ||
        a->filled != b->filled || (a->filled && a->fill.i != b->fill.i) ||
        a->nindices != b->nindices || !line(p, &a->count, &b->count, &out->count, differ) ||
        !line(p, &a->step, &b->step, &out->step, differ))
        return false;
    for (int e = 0; e < a->nindices; e++)
        if (!line(p, &a->o[e], &b->o[e], &out->o[e], differ) ||
            (a->box && !line(p, &a->n[e], &b->n[e], &out->n[e], differ)))
            return false;
    if (a->box) return true;
    int extra = extra_dim(a, b);
    if (extra == -1 || !line(p, &a->base, &b->base, &out->base, differ)) return false;
    for (int d = 0; d < b->ndims; d++) {
        int i = extra >= 0 && d > extra ? d - 1 : d;
        if (d != extra && (a->s[i] != b->s[d] || memcmp(a->c[i], b->c[d], sizeof a->c[i]) != 0))
            return false;
        if (!line(p, d == extra ? &one : &a->n[i], &b->n[d], &out->n[d], differ)) return false;
    }
    return true;
}

/* What the loop's last induction found, for the state after its first iteration: by how much each
 * number of a region grows. Others are taken to stay. */
static void learned_line(const struct pattern *p, const struct lin *grows, int counter,
                         struct lin *out) {
    int64_t step = grows->k[counter];
    out->c -= step * p->from;
    out->k[p->counter] += step;
}

static bool alike_but_numbers(const struct region *a, const struct region *b) {
    if (a->place != b->place || a->age != b->age || a->buffer != b->buffer || a->type != b->type ||
        a->box != b->box || a->filled != b->filled || a->nindices != b->nindices)
        return false;
    return a->box || extra_dim(a, b) != -1;
}

/* As long as the grown one was after its first iteration, where both are numbers: what is left of
 * an older region grows otherwise. */
static bool begins_alike(const struct learned *l, const struct region *a,
                         const struct region *grown) {
    for (int k = 0; k < (a->box ? a->nindices : a->ndims); k++) {
        struct lin then = grown->n[k];
        int64_t x, y;
        then.c += then.k[l->counter];
        then.k[l->counter] = 0;
        if (lin_constant(&then, &x) && lin_constant(&a->n[k], &y) && x != y) return false;
    }
    return true;
}

static bool by_learned(const struct pattern *p, const struct learned *l, const struct region *a,
                       const struct region *grown, struct region *out) {
    *out = *a;
    if (!alike_but_numbers(a, grown)) return false;
    int extra = a->box ? -2 : extra_dim(a, grown);
    if (extra >= 0) {
        add_dim(out, grown, extra);
    }
    for (int d = 0; !a->box && d < out->ndims; d++)
        if (out->s[d] != grown->s[d] || memcmp(out->c[d], grown->c[d], sizeof out->c[d]) != 0)
            return false;
    if (!begins_alike(l, out, grown)) return false;
    if (a->writer == grown->writer) {
        learned_line(p, &grown->count, l->counter, &out->count);
        learned_line(p, &grown->step, l->counter, &out->step);
    }
    learned_line(p, &grown->base, l->counter, &out->base);
    for (int e = 0; e < out->nindices; e++) learned_line(p, &grown->o[e], l->counter, &out->o[e]);
    for (int k = 0; k < (out->box ? out->nindices : out->ndims); k++)
        learned_line(p, &grown->n[k], l->counter, &out->n[k]);
    return true;
}

/* False: the first iteration made what no iteration made then. */
static bool recall_pattern(struct sym *s, const struct pattern *p, const struct learned *l,
                           const struct known *before, const struct known *now,
                           struct regions *out) {
    bool *used = memory_array((size_t)l->inv.n + 1, sizeof *used), good = true;
    regions_copy(out, &now->r);
    for (int k = 0; k < out->n; k++) {
        const struct region a = out->at[k];
        if (was_there(before, &a)) continue;
        bool found = false;
        /* What is left of older ones may have been written by another statement then. */
        for (int i = 0; i < 2 * l->inv.n && !found; i++) {
            const struct region *grown = &l->inv.at[i % l->inv.n];
            struct region x;
            bool same = a.writer == grown->writer, now_same = i < l->inv.n;
            if (used[i % l->inv.n] || l->old[i % l->inv.n] || same != now_same ||
                !by_learned(p, l, &a, grown, &x))
                continue;
            used[i % l->inv.n] = found = true;
            out->at[k] = x;
        }
        good &= found;
    }
    free(used);
    return good || sym_fail(s, "another pattern than before");
}

/* False: an executed instance fits no pattern. */
static bool find_pattern(struct sym *s, const struct pattern *p, const struct known *before,
                         const struct known *now, struct regions *out) {
    bool *used = memory_array((size_t)before->r.n + 1, sizeof *used), good = true;
    out->n = 0;
    regions_copy(out, &now->r);
    out->n = 0;
    for (int k = 0; k < now->r.n && good; k++) {
        const struct region *b = &now->r.at[k];
        int best = -1, least = 1000;
        struct region x, found;
        for (int i = 0; i < before->r.n; i++) {
            int differ;
            if (used[i] || !region_line(p, &before->r.at[i], b, &x, &differ) || differ >= least)
                continue;
            best = i;
            least = differ;
            found = x;
        }
        if (best >= 0) used[best] = true;
        out->at[out->n++] = best >= 0 ? found : *b; /* what has no pattern may stay */
        good = best >= 0 || b->place < s->v->s->nplaces;
    }
    for (int i = 0; i < before->r.n && good; i++)
        good = used[i] || before->r.at[i].place < s->v->s->nplaces;
    free(used);
    return good || sym_fail(s, "the instances that a loop executes have no pattern");
}

/* ---- the general iteration ---- */
static void move_lin(struct lin *x, int counter, const struct lin *at, bool fixed) {
    lin_add(x, at, x->k[counter]);
    if (fixed) x->k[counter] = 0;
}

/* Before iteration `at` (fixed), or `at` iterations on. */
static void move_region(struct region *x, int counter, const struct lin *at, bool fixed) {
    move_lin(&x->count, counter, at, fixed);
    move_lin(&x->step, counter, at, fixed);
    move_lin(&x->base, counter, at, fixed);
    for (int e = 0; e < x->nindices; e++) move_lin(&x->o[e], counter, at, fixed);
    for (int k = 0; k < (x->box ? x->nindices : x->ndims); k++)
        move_lin(&x->n[k], counter, at, fixed);
}

static bool implied(struct sym *s, const struct region *x) {
    for (int k = 0; k < s->of[x->place].n; k++) {
        const struct region *y = &s->of[x->place].at[k];
        bool instances = x->place >= s->v->s->nplaces;
        if (instances ? region_same(x, y) : region_inside(s, x, y)) return true;
    }
    return region_empty(s, x);
}

/* Each instance of the statement that is known now is one of the pattern's, one iteration on. */
static bool no_more_of(const struct sym *s, int place, const struct regions *r, int counter) {
    const struct lin one = lin_of(1);
    for (int k = 0; k < s->of[place].n; k++) {
        const struct region *y = &s->of[place].at[k];
        bool found = region_empty(s, y);
        for (int i = 0; i < r->n && !found; i++) {
            struct region x = r->at[i];
            if (x.place != place) continue;
            move_region(&x, counter, &one, false);
            found = region_same(&x, y);
        }
        if (!found) return false;
    }
    return true;
}

static bool no_more_instances(const struct sym *s, const struct frame *f, const struct regions *r,
                              int counter) {
    for (int k = 0; k < f->n; k++)
        if (f->at[k] >= s->v->s->nplaces && !no_more_of(s, f->at[k], r, counter)) return false;
    return true;
}

enum step { HOLDS, WEAKER, FAILS };

/* Some number of it changes from one iteration to the next. */
static bool changes(const struct region *x, int counter) {
    bool some = x->base.k[counter] || x->count.k[counter] || x->step.k[counter];
    for (int e = 0; e < x->nindices; e++) some |= x->o[e].k[counter] != 0;
    for (int k = 0; k < (x->box ? x->nindices : x->ndims); k++) some |= x->n[k].k[counter] != 0;
    return some;
}

/* Of region k of the pattern, which the iteration did not leave whole, the parts that it left. */
static void keep_parts(struct sym *s, struct regions *inv, int k, int counter) {
    const struct region x = inv->at[k];
    inv->n--;
    memmove(&inv->at[k], &inv->at[k + 1], (size_t)(inv->n - k) * sizeof *inv->at);
    for (int i = 0; i < s->of[x.place].n; i++) {
        const struct region *y = &s->of[x.place].at[i];
        if (changes(y, counter) || !region_inside(s, y, &x)) continue;
        regions_reserve(inv, inv->n + 1);
        inv->at[inv->n++] = *y;
    }
}

/* One iteration, by number. */
static bool walk_body(struct sym *s, const struct loop_node *l, int64_t k) {
    bool parallel = l->kind == LOOP_PARALLEL;
    if (parallel) s->parallel->of = k;
    bool good = walk_nodes(s, l->body, l->nbody);
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
    struct affine at = t->lo;
    at.l.k[counter] += l->step;
    sym_set(s, l->var, &at);
    if (!walk_body(s, l, IN_GENERAL) || s->unpadded != unpadded) return FAILS;
    if (!regions_coalesce(s, &t->frame)) return FAILS;
    struct known after = {0};
    known_take(s, &t->frame, &after);
    bool turned = slots_step(s, &t->frame, after.slot, counter, slot, &weaker);
    weaker |= settings_meet(s, setting, after.setting);
    known_free(&after);
    if (!turned) {
        sym_fail(s, "slots are not all turned");
        return FAILS;
    }
    for (int k = inv->n - 1; k >= 0; k--) {
        struct region x = inv->at[k];
        move_region(&x, counter, &one, false);
        if (implied(s, &x)) continue;
        if (x.place >= s->v->s->nplaces) {
            sym_fail(s, "the instances that a loop executes have no pattern");
            return FAILS;
        }
        weaker = true;
        if (changes(&inv->at[k], counter)) { /* what was there before may stay */
            move_region(&inv->at[k], counter, &first, true);
            continue;
        }
        keep_parts(s, inv, k, counter);
    }
    if (no_more_instances(s, &t->frame, inv, counter)) return weaker ? WEAKER : HOLDS;
    sym_fail(s, "the instances that a loop executes have no pattern");
    return FAILS;
}

/* All iterations from `from` to `last` by induction; the state is then what holds after `over`
 * iterations. `recall`: by the pattern that the loop had before, for one iteration alone has none.
 */
static bool induct(struct sym *s, struct trips *t, int64_t from, int64_t last, struct lin over,
                   bool recall) {
    enum { TRIES = 5 };
    const struct loop_node *l = t->loop;
    struct pattern p = {.from = from, .counter = s->nloops};
    struct regions inv = {0};
    enum step step = FAILS;
    int touched = s->parallel ? s->parallel->n : 0;
    struct slot *slot = memory_array((size_t)t->frame.n + 1, sizeof *slot);
    memcpy(slot, t->now.slot, (size_t)t->frame.n * sizeof *slot);
    if (!slots_general(s, &t->frame, t->before.slot, p.counter, from, slot)) {
        free(slot);
        return sym_fail(s, "slots are not all turned");
    }
    struct setting *setting = memory_array((size_t)s->nsettings + 1, sizeof *setting);
    memcpy(setting, t->now.setting, (size_t)s->nsettings * sizeof *setting);
    settings_meet(s, setting, t->before.setting);
    s->lo[p.counter] = from;
    s->hi[p.counter] = last;
    s->turn[p.counter] = -1;
    s->nloops++;
    if (recall ? recall_pattern(s, &p, &s->learned[l->var], &t->before, &t->now, &inv)
               : find_pattern(s, &p, &t->before, &t->now, &inv)) {
        step = WEAKER;
        for (int k = 0; k < TRIES && step == WEAKER; k++)
            step = general_step(s, t, &inv, slot, setting, p.counter);
    }
    if (s->parallel && l->kind == LOOP_PARALLEL) {
        if (step == HOLDS && !parallel_general_ends(s, p.counter, touched)) step = FAILS;
        if (step != HOLDS) s->parallel->n = touched;
    }
    parallel_fold(s, p.counter);
    s->nloops--;
    if (step == HOLDS) {
        learn(s, l, &inv, p.counter, &t->start);
        for (int k = 0; k < inv.n; k++) move_region(&inv.at[k], p.counter, &over, true);
        slots_over(s, &t->frame, p.counter, &over, slot);
        known_put(s, &t->frame, &inv, slot, setting);
    }
    free(slot);
    free(setting);
    regions_free(&inv);
    return step == HOLDS && regions_coalesce(s, &t->frame);
}

/* ---- loops ---- */
static bool walk_iteration(struct sym *s, const struct trips *t, int64_t k) {
    struct affine at = t->lo;
    at.l.c += k * t->loop->step;
    sym_set(s, t->loop->var, &at);
    return sym_spend(s, 1) && walk_body(s, t->loop, k);
}

/* Where the last iteration is another, or an answer changes, it goes as far as that: not for few
 * iterations, for what an induction cannot follow it forgets. How many iterations are over then; 0:
 * none more. */
static int64_t walk_rest(struct sym *s, struct trips *t, int64_t from, bool recall) {
    if (induct(s, t, from, t->n - 1, lin_of(t->n), recall)) return t->n;
    enum { WORTH = 8 };
    int64_t turn = s->turn[s->nloops], last[] = {turn, t->n - 2};
    for (int k = turn < from + WORTH || turn >= t->n - 2; k < 2 && !s->over; k++)
        if (last[k] > from && induct(s, t, from, last[k], lin_of(last[k] + 1), recall))
            return last[k] + 1;
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

static bool walk_by_induction(struct sym *s, struct trips *t) {
    int64_t begin = 0; /* of the part whose iterations are alike */
    known_take(s, &t->frame, &t->start);
    for (int64_t k = 0; k < t->n; k++) {
        bool learned = s->learned[t->loop->var].loop == t->loop,
             tried = worth_trying(k + 1 - begin);
        if (tried && !regions_coalesce(s, &t->frame)) return false;
        if (tried) known_take(s, &t->frame, &t->before);
        if (!walk_iteration(s, t, k)) return false;
        /* The last one alone is walked: an induction may forget what it leaves. */
        if (!tried || (k == begin && !learned) || t->n - k < 3) continue;
        if (!regions_coalesce(s, &t->frame)) return false;
        known_take(s, &t->frame, &t->now);
        int64_t done = walk_rest(s, t, k + 1, k == begin);
        if (s->over) return false;
        if (done)
            begin = (k = done - 1) + 1;
        else
            known_put(s, &t->frame, &t->now.r, t->now.slot, t->now.setting);
    }
    return true;
}

/* As often as an open size says, t->n times at least. */
static bool walk_open(struct sym *s, struct trips *t, struct lin count) {
    int64_t least, most;
    bool done = false, good = true;
    lin_range(s, &count, &least, &most);
    t->n = least;
    if (s->nloops == SYM_LOOPS) return sym_fail(s, "loops in loops in a loop of open length");
    sym_frame(s, t->loop, &t->frame);
    known_take(s, &t->frame, &t->start);
    for (int64_t k = 0; k < t->n && good && !done && !s->over; k++) {
        good = regions_coalesce(s, &t->frame);
        known_take(s, &t->frame, &t->before);
        good = good && walk_iteration(s, t, k) && regions_coalesce(s, &t->frame);
        if (k == 0 || !good) continue;
        known_take(s, &t->frame, &t->now);
        done = induct(s, t, k + 1, most - 1, count, false);
        if (!done) known_put(s, &t->frame, &t->now.r, t->now.slot, t->now.setting);
    }
    known_free(&t->start);
    known_free(&t->before);
    known_free(&t->now);
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
    known_free(&t->start);
    known_free(&t->before);
    known_free(&t->now);
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
    struct trips t = {.loop = l, .lo = lo};
    if (!affine_constant(&hi, &n))
        return (l->step == 1 && l->kind != LOOP_PARALLEL && is_open(s, &hi) && walk_open(s, &t, hi.l)) ||
               sym_fail(s, "how often a loop runs depends on a loop counter");
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
        }
        if (!walk_nodes(s, &c->node[k], 1)) return false;
    }
    return true;
}

/* ---- the proof ---- */
static bool can_follow(struct sym *s) {
    const struct program *p = s->v->p;
    for (int r = 0; r < s->v->nrecurrences; r++)
        if (s->v->recurrence[r].parent >= 0)
            return sym_fail(s, "recurrences inside others are not followed");
    for (int b = 0; b < p->nbuffers; b++)
        if (s->v->loose[b]) return sym_fail(s, "what calls write is not followed");
    return true;
}

static void open_sizes(struct sym *s, const int64_t *size, const int64_t *least) {
    for (int k = 0; k < s->v->p->nsizes; k++) {
        bool open = size[k] == OPEN_SIZE;
        s->v->var[k] = open ? s->v->p->size[k].hi : size[k];
        s->var[k] = affine_of(open ? 0 : size[k]);
        if (!open) continue;
        s->lo[s->nloops] = least[k];
        s->hi[s->nloops] = s->v->p->size[k].hi;
        s->var[k].l.k[s->nloops++] = 1;
    }
    s->nsizes = s->nloops;
}

bool sym_prove(struct verify *v, const int64_t *size, const int64_t *least, int64_t *steps,
               struct text *why) {
    struct sym s = {.v = v, .steps = *steps};
    size_t places = (size_t)v->s->nplaces + 1;
    s.var = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *s.var);
    s.home = arena_array(&v->arena, places, sizeof *s.home);
    s.turn = arena_array(&v->arena, SYM_LOOPS, sizeof *s.turn);
    s.ending = arena_array(&v->arena, places, sizeof *s.ending);
    s.ends = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *s.ends);
    s.image = arena_array(&v->arena, (size_t)v->p->nstmts + 1, sizeof *s.image);
    s.padded = arena_array(&v->arena, places, sizeof *s.padded);
    s.joined = arena_array(&v->arena, (size_t)v->p->nbuffers + 1, sizeof *s.joined);
    s.learned = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *s.learned);
    size_t all = places + (size_t)v->p->nstmts;
    s.of = arena_array(&v->arena, all, sizeof *s.of);
    s.stamp = arena_array(&v->arena, all, sizeof *s.stamp);
    s.slot = arena_array(&v->arena, places, sizeof *s.slot);
    frame_groups(&s);
    settings_open(&s);
    open_sizes(&s, size, least);
    bool good = can_follow(&s) && box_begin(&s) && walk_section(&s, &v->s->prepare, true) &&
                walk_section(&s, &v->s->run, false) && box_end(&s);
    if (good && v->errors) good = sym_fail(&s, "an error");
    if (!good) text_printf(why, "%s", s.why);
    *steps = s.steps;
    for (size_t k = 0; k < all; k++) regions_free(&s.of[k]);
    for (int k = 0; k < v->s->nvars; k++) {
        regions_free(&s.learned[k].inv);
        free(s.learned[k].old);
    }
    return good;
}
