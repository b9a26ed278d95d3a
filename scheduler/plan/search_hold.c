/* Residency: at which depth each operand's copy is filled, and in how many slots. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

enum { ASKED = 24 };

static const struct access *main_access(const struct search *s, const struct opnd *o) {
    return opnd_access(s->w, search_task(s), o);
}

static int64_t hold_bytes_at(const struct search *s, const struct plan *p, int i, int depth) {
    const struct opnd *o = &search_task(s)->op[i];
    return copy_bytes(s->w, p, search_task(s), o, main_access(s, o), depth);
}

static int add_hold(struct hold *out, int n, struct hold h) {
    for (int i = 0; i < n; i++)
        if (out[i].depth == h.depth && out[i].slots == h.slots && out[i].ring == h.ring &&
            out[i].pinned == h.pinned)
            return n;
    if (n < OPTIONS) out[n++] = h;
    return n;
}

static int add_option(struct hold *out, int n, int depth, int slots) {
    return add_hold(out, n, (struct hold){.depth = depth, .slots = slots});
}

static bool passes_memory(const struct route *r, int memory) {
    for (int k = 0; k < r->n; k++)
        if (r->memory[k] == memory) return true;
    return false;
}

/* Does no other copy want room in the operand's memory, nor on its way from home or there? */
static bool is_alone(const struct search *s, int i) {
    const struct task *t = search_task(s);
    int memory = t->op[i].memory;
    for (int k = 0; k < t->nops; k++) {
        const struct opnd *o = &t->op[k];
        if (k == i || o->where != IN_LOCAL) continue;
        if (o->memory == memory || passes_memory(&o->in, memory) || passes_memory(&o->out, memory))
            return false;
    }
    return true;
}

/* Registers are the others' between a group's turns, results part of a turn; all that an instance
 * of a grid holds is of its own turn. */
static int outside(const struct nest *n, int depth) {
    return depth < n->nprefix ? n->nprefix : depth;
}

/* A result inside of a cut reduction: as far out as it fits. */
static int add_spill(const struct search *s, const struct plan *p, int i, struct hold *out, int n) {
    const struct opnd *o = &search_task(s)->op[i];
    for (int d = p->depth_out + 1; d < p->nloops; d++) {
        int at = plan_normalise(s->w, p, main_access(s, o), d);
        if (at > p->depth_out && hold_bytes_at(s, p, i, at) <= nest_room(s->w, s->nest, o->memory))
            return add_option(out, n, at, 1);
    }
    return n;
}

/* What slides: a ring of this tile's rows and of those that are coming, or of all. */
static int add_rings(const struct search *s, const struct plan *p, int i, int depth,
                     struct hold *out, int n) {
    const struct task *t = search_task(s);
    const struct opnd *o = &t->op[i];
    const struct nest *nest = s->nest;
    struct ring r;
    if (!ring_find(s->w, nest, p, t, o, main_access(s, o), depth, &r)) return n;
    int told =
        operand_slots(s->w, s->moves, p, t, o, main_access(s, o), depth, slots_most(s->w, 3));
    for (int slots = 1; slots <= told; slots++) {
        struct hold h = {.depth = depth, .slots = slots, .ring = r.all};
        int64_t rows = r.window + (slots - 1) * r.step;
        if (slots < 3 && rows < r.all) h.ring = rows;
        if (slots == 3 && rows > r.all) h.slots = 2;
        if (hold_bytes(s->w, p, t, o, main_access(s, o), &h) <= nest_room(s->w, nest, o->memory))
            n = add_hold(out, n, h);
    }
    return n;
}

/* As many pieces as fit beside the slots that the others pass through. */
static int add_pinned(const struct search *s, const struct plan *p, int i, int depth, int slots,
                      struct hold *out, int n) {
    const struct opnd *o = &search_task(s)->op[i];
    const struct nest *nest = s->nest;
    struct pin pin;
    if (slots < 2 || !pin_find(s->w, nest, p, o, main_access(s, o), depth, &pin)) return n;
    struct hold h = {.depth = depth, .slots = slots};
    h.pinned =
        pin_most(&pin, nest_room(s->w, nest, o->memory), hold_bytes_at(s, p, i, depth), slots);
    return h.pinned ? add_hold(out, n, h) : n;
}

static bool has_depth(const struct hold *h, int n, int depth) {
    for (int i = 0; i < n; i++)
        if (h[i].depth == depth) return true;
    return false;
}

/* Does the result leave in more issues than their queue has room for? Then it may better leave in
 * smaller pieces. */
static bool bursts(const struct search *s, const struct plan *p, int i, int depth) {
    const struct opnd *o = &search_task(s)->op[i];
    struct copy out =
        copy_price(s->w, s->moves, p, search_task(s), o, main_access(s, o), false, depth, 0);
    int64_t room = out.in ? s->w->m->queue[out.in->queue].depth : -1;
    return room >= 0 && out.issues > (double)room;
}

/* What the task reads from copies in the memory at this depth comes together: the bytes of a slot
 * of each, and the cycles of their moves on the queue. */
static void arrive_together(const struct search *s, struct plan *p, int memory, int queue,
                            int depth, double *bytes, double *cycles) {
    const struct task *t = search_task(s);
    *bytes = *cycles = 0;
    for (int k = 0; k < t->nops; k++) {
        const struct opnd *o = &t->op[k];
        if (o->writes || o->where != IN_LOCAL || o->memory != memory) continue;
        struct copy in = copy_price(s->w, s->moves, p, t, o, main_access(s, o), true, depth, 0);
        *bytes += in.bytes;
        if (in.in && in.in->queue == queue) *cycles += in.cycles;
    }
}

/* Slots of a copy whose moves take so long to arrive that instructions wait for three of them: as
 * many as fit, as can be told apart, and as the steps are that their queue holds, beside the one
 * that runs and the next; 0: three do. */
static int slots_deep(const struct search *s, struct plan *p, int i, int depth) {
    const struct task *t = search_task(s);
    const struct opnd *o = &t->op[i];
    const struct access *acc = main_access(s, o);
    if (o->writes || slots_most(s->w, 4) < 4) return 0;
    struct copy in = copy_price(s->w, s->moves, p, t, o, acc, true, depth, 0);
    int64_t room = nest_room(s->w, s->nest, o->memory);
    if (!in.in || in.latency <= in.cycles || in.bytes < 1) return 0;
    struct pricing c;
    double issues, bytes, cycles, steps = plan_trips(s->w, p, depth);
    pricing_begin(&c, s->w, s->moves, s->nest, p);
    arrive_together(s, p, o->memory, in.in->queue, depth, &bytes, &cycles);
    if (cycles + in.latency <= 2 * leaf_cycles(&c, t, &issues) / steps) return 0;
    double held = (double)s->w->m->queue[t->needle->in->queue].depth * steps / issues,
           most = fmin(slots_most(s->w, COPY_SLOTS), (double)(room / in.bytes));
    if (held >= 0) most = fmin(most, floor(held) + 2);
    if (most < 4) return 0;
    double fair = floor((double)room / bytes);
    if (fair >= 4) most = fmin(most, fair); /* as many as the others, which arrive with it */
    int told = slots_held(s->w->edges, in.in, t->needle->in, (int)most);
    return told > 3 ? told : 0;
}

/* Residencies worth trying, outermost first: as far out as fits (some depths more where operands
 * share the memory); in registers every depth inside the result's. Wide: all that fit alone; to be
 * searched, not one slot where more fit and nobody else wants the room. */
enum width { LIKELY, WIDE, ALL };
static int hold_options(const struct search *s, struct plan *p, int i, enum width wide,
                        struct hold *out) {
    const struct task *t = search_task(s);
    const struct opnd *o = &t->op[i];
    const struct access *acc = main_access(s, o);
    const struct nest *nest = s->nest;
    int n = 0, deepest = o->writes ? p->depth_out : p->nloops;
    if (nest->kept >> i & 1) return add_option(out, 0, 0, 1);
    if (i == nest->given) return add_option(out, 0, nest->nprefix, 1);
    if (graph_is_static(s->w->m, o->memory)) {
        for (int d = o->writes ? deepest : p->depth_out; d <= deepest; d++)
            n = add_option(out, n, outside(nest, plan_normalise(s->w, p, acc, d)), 1);
        if (needs_exact(s->w->edges, t->needle->in, o->number)) /* again rather than over a tail */
            n = add_option(out, n, outside(nest, deepest), 1);
        return o->writes ? add_spill(s, p, i, out, n) : n;
    }
    bool alone = is_alone(s, i);
    int most = wide ? OPTIONS / 3 : alone ? 1 : 3; /* of each number of slots */
    int told = operand_slots(s->w, s->moves, p, t, o, acc, deepest, slots_most(s->w, wide ? 3 : 2));
    for (int slots = told; slots >= 1; slots--) {
        int before = n;
        for (int d = 0; d <= deepest && n < before + most; d++) {
            int at = plan_normalise(s->w, p, acc, d);
            if (o->writes || nest->is_grid) at = outside(nest, at);
            if (slots > 1 && (plan_trips(s->w, p, at) <= 1 || at < nest->nprefix)) continue;
            if (o->writes && nest->nchain && slots > 1 &&
                nest_chain_queue(s->w, nest) == t->needle->in->queue)
                continue;
            if (!loose_alone(s->w, p, t, o, acc, at)) continue;
            if (hold_bytes_at(s, p, i, at) > nest_room(s->w, nest, o->memory) / slots) continue;
            if (slots == 1 && wide != ALL && alone && has_depth(out, n, at)) break; /* with more */
            n = add_option(out, n, at, slots);
            if (!o->writes) n = add_pinned(s, p, i, at, slots, out, n);
            if (o->writes && !wide && alone && bursts(s, p, i, at)) most = 2;
            int deep = wide && slots > 1 && slots == told ? slots_deep(s, p, i, at) : 0;
            if (deep) n = add_option(out, n, at, deep);
        }
    }
    for (int d = 1; d <= deepest && !o->writes; d++) n = add_rings(s, p, i, d, out, n);
    return o->writes ? add_spill(s, p, i, out, n) : n;
}

static int with_more_slots(const struct hold *all, int i) {
    const struct hold *h = &all[i];
    for (int k = i - 1; k >= 0; k--)
        if (all[k].depth == h->depth && all[k].slots > h->slots && all[k].ring == h->ring &&
            !all[k].pinned && !h->pinned)
            return k;
    return -1;
}

static bool options_make(struct search *s, struct plan *p, enum width wide, struct residencies *r) {
    const struct task *t = search_task(s);
    memset(r->at, 0, sizeof r->at);
    legal_begin(&r->legal, s, p);
    for (int i = 0; i < t->nops; i++) {
        r->count[i] = 1;
        r->option[i][0] = (struct hold){.depth = p->nloops, .slots = 1};
        if (t->op[i].where == IN_LOCAL) r->count[i] = hold_options(s, p, i, wide, r->option[i]);
        if (!r->count[i]) return false;
        for (int k = 0; k < r->count[i]; k++) r->more[i][k] = with_more_slots(r->option[i], k);
    }
    return true;
}

static bool price(struct search *s, struct plan *p, struct residencies *r, double limit) {
    const struct task *t = search_task(s);
    for (int i = 0; i < t->nops; i++) {
        p->hold[i] = r->option[i][r->at[i]];
        if (t->op[i].writes && t->op[i].where == IN_LOCAL) p->depth_out = p->hold[i].depth;
    }
    for (int i = 0; i < t->nops;
         i++) /* what lies in registers lies inside the result's time there */
        if (t->op[i].where == IN_LOCAL && graph_is_static(s->w->m, t->op[i].memory) &&
            p->hold[i].depth < p->depth_out && plan_blocks(s->w, p, t, p->depth_out) > 1)
            return false;
    s->budget--;
    p->parts = PARTS_ANY;
    p->outward = 0;
    if (legal_perhaps(&r->legal, p)) return plan_price_below(s->w, s->moves, s->nest, p, limit);
    s->w->effort->plans++;
    s->w->effort->refused++;
    if (s->w->options && s->w->options->audit)
        s->w->effort->misjudged += plan_price(s->w, s->moves, s->nest, p);
    return false;
}

/* With fewer slots nothing is sooner: where more of them fit, that is not tried. */
static bool has_more(const struct search *s, const struct residencies *r, int number,
                     const bool *fits) {
    int radix = 1;
    for (int i = 0; i < search_task(s)->nops; radix *= r->count[i], i++) {
        int more = r->more[i][r->at[i]];
        if (more >= 0 && fits[number - radix * (r->at[i] - more)]) return true;
    }
    return false;
}

double residency_best(struct search *s, struct plan *p, bool wide, double limit) {
    struct residencies r;
    struct residency order[COMBINATIONS];
    bool fits[COMBINATIONS] = {false};
    double least = INFINITY;
    plan_tabulate(s->w, search_task(s), p, &s->tiling);
    struct plan best = *p, q = *p;
    best.cycles = INFINITY;
    *p = best;
    if (!options_make(s, p, wide ? WIDE : LIKELY, &r)) return least;
    int n = residencies_order(s, &q, &r, order);
    for (int k = 0, found = -1; k < n; k++) {
        const struct residency *x = &order[k];
        /* of equal ones that which is counted first */
        double better = x->number < found ? nextafter(best.cycles, INFINITY) : best.cycles,
               most = fmin(limit, better);
        if (s->tiling.fits && x->least >= most) { /* so do all that are left */
            s->budget -= n - k;
            if (least > most) least = most, best.alone = q.alone;
            break;
        }
        residency_set(s, &r, x->number);
        if (has_more(s, &r, x->number, fits)) {
            fits[x->number] = true;
            s->budget--;
            continue;
        }
        q.depth_out = p->depth_out;
        q.cycles = INFINITY;
        s->tiling.held = false;
        if (price(s, &q, &r, most) && q.cycles < better) {
            best = q;
            found = x->number;
        }
        fits[x->number] = s->tiling.held && !isinf(q.cycles);
        if (least > q.cycles) least = q.cycles, best.alone = q.alone;
    }
    *p = best;
    return least;
}

void hold_text(struct text *text, const char *name, const struct hold *h) {
    text_printf(text, "%s%s@%dx%d", text->at ? " " : "", name, h->depth, h->slots);
    if (h->ring) text_printf(text, " ring %lld", (long long)h->ring);
    if (h->pinned) text_printf(text, " and %lld stay", (long long)h->pinned);
}

static const char *holds_text(const struct search *s, const struct plan *p) {
    const struct task *t = search_task(s);
    struct text text = {0};
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL) hold_text(&text, t->op[i].decl->buffer, &p->hold[i]);
    char *out = arena_strdup(s->w->arena, text.at ? text.at : "");
    text_free(&text);
    return out;
}

static bool one_slot_each(const struct search *s, const struct plan *p) {
    for (int i = 0; i < search_task(s)->nops; i++)
        if (search_task(s)->op[i].where == IN_LOCAL && p->hold[i].slots > 1) return false;
    return true;
}

static bool same_depths(const struct search *s, const struct plan *a, const struct plan *b) {
    for (int i = 0; i < search_task(s)->nops; i++)
        if (search_task(s)->op[i].where == IN_LOCAL && a->hold[i].depth != b->hold[i].depth)
            return false;
    return true;
}

/* The plan that was found, behind it those that cost least, in order, and of all those without
 * copies in flight one for comparison: at the depths of the first, else the best. */
struct asked_plans {
    struct plan at[ASKED], simple;
    int n, number[ASKED]; /* in the order in which they were priced */
    int simple_number;    /* 0: the first one, or there is none */
    bool alike;           /* the simple one has the first one's depths */
};

static void keep_simple(const struct search *s, struct asked_plans *all, const struct plan *p,
                        int number) {
    bool alike = same_depths(s, p, &all->at[0]), known = all->simple_number > 0;
    if (known && (alike == all->alike ? p->cycles >= all->simple.cycles : all->alike)) return;
    all->simple = *p;
    all->simple_number = number;
    all->alike = alike;
}

static void keep_plan(struct asked_plans *all, const struct plan *p, int number) {
    if (all->n == ASKED && p->cycles >= all->at[ASKED - 1].cycles) return;
    if (all->n < ASKED) all->n++;
    int i = all->n - 1;
    for (; i > 1 && all->at[i - 1].cycles > p->cycles; i--) {
        all->at[i] = all->at[i - 1];
        all->number[i] = all->number[i - 1];
    }
    all->at[i] = *p;
    all->number[i] = number;
}

static void ask_simple(struct asked_plans *all) {
    for (int i = 0; i < all->n; i++)
        if (all->number[i] == all->simple_number) return;
    all->at[ASKED - 1] = all->simple;
}

static bool copies_in_flight(const struct search *s, const struct residencies *r) {
    for (int i = 0; i < search_task(s)->nops; i++)
        if (search_task(s)->op[i].where == IN_LOCAL && r->option[i][r->at[i]].slots > 1)
            return true;
    return false;
}

/* All that fit, but for those with copies in flight that cost more than so many others. */
static void price_asked(struct search *s, const struct plan *loops, struct asked_plans *all) {
    struct residencies r;
    struct plan q = *loops;
    bool found_simple = one_slot_each(s, &all->at[0]);
    if (!options_make(s, &q, ALL, &r)) return;
    for (int k = 0; k < COMBINATIONS; k++) {
        bool full = all->n == ASKED && copies_in_flight(s, &r);
        q.depth_out = loops->depth_out;
        if (price(s, &q, &r, full ? all->at[ASKED - 1].cycles : INFINITY) &&
            memcmp(q.hold, all->at[0].hold, sizeof q.hold) != 0) {
            keep_plan(all, &q, k + 1);
            if (!found_simple && one_slot_each(s, &q)) keep_simple(s, all, &q, k + 1);
        }
        if (!residency_next(s, &r)) break;
    }
}

/* Beside a plan that the clock has chosen no other is taken to be better. */
double beside(const struct search *s, double cost, double own) {
    return s->walked ? fmax(cost, own * (1 + 1e-6)) : cost;
}

/* A question: the best of all that fit, and what the search found. */
void residency_ask(struct search *s, struct plan *p) {
    struct arena scratch;
    arena_init(&scratch);
    struct asked_plans *all = arena_alloc(&scratch, sizeof *all);
    struct candidate c[ASKED];
    struct plan loops = *p;
    plan_tabulate(s->w, search_task(s), &loops, &s->tiling);
    loops.depth_out = loops.nloops;
    for (int i = loops.nloops - 1; i >= 0; i--)
        if (search_task(s)->reductions >> loops.loop[i].axis & 1) loops.depth_out = i;
    all->at[all->n++] = *p; /* tiling of the same loops */
    all->at[0].tiling = &s->tiling;
    price_asked(s, &loops, all);
    ask_simple(all);
    for (int i = 0; i < all->n; i++) {
        double cost = i ? beside(s, all->at[i].cycles, all->at[0].cycles) : all->at[0].cycles;
        c[i] = (struct candidate){holds_text(s, &all->at[i]), cost, NULL};
    }
    const char *subject = arena_printf(s->w->arena, "copies of statement %d", search_task(s)->stmt);
    *p = all->at[work_ask(s->w, QUESTION_RESIDENCY, subject, c, all->n, 0)];
    arena_free(&scratch);
}
