/* Driving rewrites by failures (ISA Mapper §2.3): a statement that the instructions do not execute
 * says where it differs, rewrites that answer that kind of failure are applied, the deepest
 * failures first, and what comes out is searched again. Breadth first, so that short sequences come
 * first, and among equally long ones those that left least to do; programs seen before are known by
 * the hash of the canonical form of the part that is rewritten. */
#include "mapper/rewrite_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_STATES = 48, PAIR_STEPS = 20000, MOST_FAILURES = 24, LIGHT = 64 };
static const double half_empty = 1.5; /* points executed for each of the statement's */
static const double paying = 0.8;     /* of a mapping's cost: less is worth a rewrite */

struct stage {
    struct program *program;
    int from, to, depth;
    const struct rewrite *step[MAX_DERIVATION];
    const char *asked[MAX_DERIVATION];
    int past[MAX_DERIVATION]; /* the stage that each step began with */
};

struct drive {
    struct driver *d;
    struct arena arena;
    struct stage *at;
    int n, cap;
    uint64_t seen[MOST_STATES * 8];
    int nseen;
    struct near near;
    int stmt;    /* in the whole program */
    bool floats; /* the statement's result is one */
};

/* ---- what a state's instructions execute ---- */

/* Sums over axes and products of what varies; also a product that is set, of factors that differ in
 * their axes. Corrections, fills and conversions are no work. */
static bool works(const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    const struct op *root = &s->op[s->nops - 1];
    struct factors f;
    int varying = 0;
    if (s->combine == COMBINE_SET) {
        if (root->code != OP_MUL) return false;
        struct arena scratch;
        arena_init(&scratch);
        struct term t = term_of(&scratch, p, s);
        uint64_t a = t.at[root->arg[0]].axes, b = t.at[root->arg[1]].axes;
        arena_free(&scratch);
        return a & ~b && b & ~a;
    }
    if (s->combine != COMBINE_ADD) return false;
    if (s->axes & ~rw_access_axes(p, &s->dst)) return true;
    if (!rw_factors(p, stmt, &f)) return false;
    for (int k = 0; k < f.n; k++) varying += f.axes[k] != 0;
    return varying > 1;
}

static double work_of(const struct program *p, int stmt) {
    return works(p, stmt) ? rw_points(p, p->stmt[stmt].axes) : 0;
}

/* Sums that make up the work; the rest are corrections beside them. One that is made before the
 * first run, as of weights, costs the run nothing. */
static bool heavy(const struct program *p, const struct stage *x, int stmt) {
    double most = 0;
    for (int s = x->from; s < x->to; s++) most = work_of(p, s) > most ? work_of(p, s) : most;
    return work_of(p, stmt) * LIGHT >= most && work_of(p, stmt) > 0 &&
           !buffer_steady(p, p->stmt[stmt].dst.buffer);
}

static bool target(const struct driver *d, const struct needle *n) {
    struct product_types t;
    const struct machine *m = d->needles->machine;
    int queue = m->instr[n->instr].queue;
    if (d->device_only && (queue < 0 || machine_queue_is_host(m, queue))) return false;
    return needle_product(n, &t);
}

/* Of the mappings of the statement from `first` on: how many times longer than in issues that are
 * full. Axes of fixed extent are padded; short issues of a range may take as long as long ones. */
static double least_waste(const struct search *s, const struct program *p, int first) {
    double waste = INFINITY;
    for (int i = first; i < s->nmappings; i++) {
        const struct mapping *m = &s->mapping[i];
        double full = needle_point_cost(s->needles->machine, needle_of(s->needles, m->instr)) *
                      rw_points(p, p->stmt[m->stmt].axes);
        waste = fmin(waste, full > 0 ? m->cost / full : m->waste);
    }
    return waste;
}

/* The needle runs half empty: its axes find fewer values than one issue takes. The axis that all
 * operands vary with stands in the way. */
static void note_waste(struct search *s, const struct needle *n, const struct site *site,
                       int first) {
    if (s->nmappings == first || least_waste(s, site->program, first) < half_empty) return;
    const struct program *p = site->program;
    uint64_t all = rw_access_axes(p, &site->s->dst);
    for (int r = 0; r < site->s->nreads; r++) all &= rw_access_axes(p, &site->s->read[r]);
    for (int a = 0; a < p->naxes; a++)
        if (all & site->live & UINT64_C(1) << a) {
            note_axis(s, n, site, FAILURE_EXTRA_COLUMN, -1, a, n->dst,
                      "all operands vary with it, so it stays outside, and the instruction runs "
                      "half empty");
            return;
        }
}

/* Mapped, but two axes meet in one dimension of the result: the scheduler gives instructions one
 * axis along each. */
static void note_scatter(struct search *s, const struct needle *n, const struct site *site,
                         int first) {
    const struct program *p = site->program;
    if (s->nmappings == first) return;
    for (int d = 0; d < p->buffer[site->s->dst.buffer].ndims; d++) {
        int axes = 0, last = -1;
        for (int a = 0; a < p->naxes; a++)
            if (access_coef(p, &site->s->dst, d, a)) axes++, last = a;
        if (axes > 1) {
            note_axis(s, n, site, FAILURE_NOT_INJECTIVE, -1, last, n->dst,
                      "it meets another axis in one dimension of the result");
            return;
        }
    }
}

/* The statement that wrote what this one adds to; -1. */
static int begun_by(const struct program *p, int stmt) {
    int w = stmt;
    while (w-- > 0)
        if (p->stmt[w].dst.buffer == p->stmt[stmt].dst.buffer) return w;
    return -1;
}

/* Does some instruction write where the sums are what they begin with? */
static bool begun_there(const struct needles *all, const struct program *p, int stmt,
                        const struct operand *dst) {
    struct arena scratch;
    int w = begun_by(p, stmt);
    bool found = false;
    if (w < 0) return false;
    arena_init(&scratch);
    struct search s = {
        .arena = &scratch, .needles = all, .limit = PAIR_STEPS, .all = true, .unasked = true};
    struct site site = site_of(&scratch, p, w);
    site_recall(&s, &site);
    for (int i = 0; i < all->n && !found; i++) {
        int first = s.nmappings;
        const struct needle *n = &all->at[i];
        if (!n->offered || !needle_writes_one_of(all->machine, n, dst)) continue;
        s.steps = 0;
        search_pair(&s, n, &site);
        for (int k = first; k < s.nmappings && !found; k++) {
            found = true;
            for (int o = 0; o < n->noperands; o++)
                if (s.mapping[k].operand[o].role == OPERAND_READ)
                    found &= !isinf(operand_in_cost(
                        all, n, o, operand_broadcast(n, p, &p->stmt[w], &s.mapping[k], o)));
        }
    }
    arena_free(&scratch);
    return found;
}

/* Is there a way to what the sums begin with? They overwrite, or one move brings it there, or some
 * instruction sets it there. */
static bool begins(const struct needles *all, const struct program *p, int stmt,
                   const struct mapping *m) {
    const struct needle *n = needle_of(all, m->instr);
    return p->stmt[stmt].combine == COMBINE_SET || m->init >= 0 || n->home >> n->dst & 1 ||
           operand_from_home(all, n, n->dst) ||
           begun_there(all, p, stmt, &all->machine->instr[n->instr].operand[n->dst]);
}

/* Mapped, but nothing brings what the sums begin with. */
static void note_begin(struct search *s, const struct needle *n, const struct site *site,
                       int first) {
    for (int i = first; i < s->nmappings; i++)
        if (begins(s->needles, site->program, site->stmt, &s->mapping[i])) return;
    if (s->nmappings > first)
        note_axis(s, n, site, FAILURE_COMBINER, -1, -1, n->dst,
                  "nothing brings there what its sums begin with");
}

static const struct mapping *cheapest(const struct search *s, int first, int instr) {
    const struct mapping *best = NULL;
    for (int i = first; i < s->nmappings; i++)
        if ((instr < 0 || s->mapping[i].instr == instr) &&
            (!best || s->mapping[i].cost < best->cost))
            best = &s->mapping[i];
    return best;
}

/* The last issue along an axis is padded, and without padding it would all cost clearly less than
 * the cheapest mapping: the rest could be executed apart. */
static void note_padding(struct search *s, const struct needle *n, const struct site *site,
                         int first) {
    const struct mapping *all = cheapest(s, first, -1), *own = cheapest(s, first, n->instr);
    int at = -1, axis = -1;
    double least = 1;
    for (int x = 0; own && x < n->naxes; x++) {
        const struct group *g = &own->group[x];
        int64_t extent = group_extent(site->program, g), unit = needle_axis_unit(&n->axis[x]);
        if (g->n == 0 || site->program->axis[g->axis[0]].extent <= unit) continue;
        double part = (double)extent / axis_executed(&n->axis[x], extent);
        if (part >= least || own->cost * part > paying * all->cost) continue;
        least = part;
        at = x;
        axis = g->axis[0];
    }
    if (at >= 0)
        note_axis(s, n, site, FAILURE_EXTENT, at, axis, -1,
                  arena_printf(s->arena,
                               "%" PRId64 " values are no multiple of %" PRId64
                               ", so the last issue is padded",
                               site->program->axis[axis].extent, needle_axis_unit(&n->axis[at])));
}

static bool asks_residual(const struct failure *f) {
    return f->kind == FAILURE_EXTENT && f->needle_axis >= 0 && f->stmt_axis >= 0;
}

/* What maps already asks only for what fills the instruction better. */
static void keep_wasteful(struct search *s, const struct program *p) {
    int kept = 0;
    bool half = least_waste(s, p, 0) >= half_empty;
    for (int i = 0; i < s->nfailures; i++)
        if ((half && s->failure[i].kind == FAILURE_EXTRA_COLUMN) || asks_residual(&s->failure[i]))
            s->failure[kept++] = s->failure[i];
    s->nfailures = kept;
}

bool plain_result(const struct program *p, const struct stmt *s) {
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++) {
        int n = 0;
        for (int a = 0; a < p->naxes; a++)
            n += p->axis[a].extent > 1 && access_coef(p, &s->dst, d, a) != 0;
        if (n > 1) return false;
    }
    return true;
}

/* A result that the instruction writes in the home needs all its dimensions there. */
static bool lies_right(const struct needles *needles, const struct mapping *m) {
    const struct needle *n = needle_of(needles, m->instr);
    bool all = true;
    for (int x = 0; x < n->naxes; x++) all &= n->axis[x].reduction || m->group[x].n > 0;
    return all || !(n->home >> n->dst & 1);
}

/* Can the scheduler give the statement to one of the instructions that map on it? */
static bool usable(const struct needles *needles, const struct program *p, int stmt,
                   const struct search *s, int first) {
    bool any = false;
    for (int i = first; i < s->nmappings; i++)
        any |= lies_right(needles, &s->mapping[i]) && begins(needles, p, stmt, &s->mapping[i]);
    return any && plain_result(p, &p->stmt[stmt]);
}

/* A sum of one factor, beside a product, is as well done by an instruction that only adds; a
 * product that no instruction for two operands executes by one that multiplies in another way. */
static void search_others(struct drive *v, struct search *s, const struct stage *x, int stmt,
                          const struct site *site, int first) {
    struct factors f;
    int varying = 0;
    if (v->d->device_only || !rw_factors(x->program, stmt, &f)) return;
    for (int k = 0; k < f.n; k++) varying += f.axes[k] != 0;
    bool adds = varying == 1 && x->depth > 0,
         multiplies = varying > 1 && v->d->unmapped_only && s->nmappings == first;
    for (int i = 0; (adds || multiplies) && i < v->d->needles->n; i++) {
        const struct needle *n = &v->d->needles->at[i];
        if (!n->offered || n->refused || target(v->d, n)) continue;
        int failures = s->nfailures;
        s->steps = 0;
        search_pair(s, n, site);
        s->nfailures = failures;
    }
}

/* What is mapped of a stage, and where the rest differs. */
struct view {
    struct search found;
    double share; /* of its work is mapped */
    bool goal;
};

static struct view look(struct drive *v, const struct stage *x) {
    struct search s = {.arena = &v->arena, .needles = v->d->needles, .limit = INT64_MAX};
    double work = 0, mapped = 0;
    for (int t = x->from; t < x->to; t++) {
        if (x->depth > 0 && !heavy(x->program, x, t)) continue;
        struct site site = site_of(&v->arena, x->program, t);
        site.said = near_stmt(&v->near, x->program, x->from, x->to, t);
        site_recall(&s, &site);
        int first = s.nmappings;
        for (int i = 0; i < v->d->needles->n; i++) {
            const struct needle *n = &v->d->needles->at[i];
            if (!target(v->d, n)) continue;
            int own = s.nmappings;
            s.steps = 0;
            s.limit = PAIR_STEPS;
            s.bounded = false;
            search_pair(&s, n, &site);
            note_waste(&s, n, &site, own);
            if (v->d->unmapped_only) note_scatter(&s, n, &site, own);
            if (v->d->unmapped_only) note_begin(&s, n, &site, own);
        }
        for (int i = 0; i < v->d->needles->n; i++)
            if (!v->d->device_only || target(v->d, &v->d->needles->at[i]))
                note_padding(&s, &v->d->needles->at[i], &site, first);
        search_others(v, &s, x, t, &site, first);
        work += work_of(x->program, t);
        bool done = v->d->unmapped_only ? usable(v->d->needles, x->program, t, &s, first)
                                        : s.nmappings > first;
        if (done) mapped += work_of(x->program, t);
    }
    /* transforms of a bilinear algorithm may be left to others */
    bool bilinear = x->depth > 0 && x->step[0]->answers == 0;
    return (struct view){.found = s,
                         .share = work > 0 ? mapped / work : 0,
                         .goal = mapped > (bilinear ? work / 2 : work * 0.999)};
}

/* ---- applying ---- */

static bool known(struct drive *v, uint64_t hash) {
    for (int i = 0; i < v->nseen; i++)
        if (v->seen[i] == hash) return true;
    if (v->nseen < (int)(sizeof v->seen / sizeof *v->seen)) v->seen[v->nseen++] = hash;
    return false;
}

static void apply(struct drive *v, int from, const struct rewrite *r, const struct failure *f,
                  const struct needle *n) {
    struct stage next = v->at[from];
    if (v->n >= v->d->most_states) {
        v->d->out->bounded = true;
        return;
    }
    if (r->effect > v->d->most && v->floats) return;
    struct program *q = r->apply(next.program, f, n);
    if (!q) return;
    v->d->out->tried++;
    if (next.from > 0 &&
        q->stmt[next.from - 1].dst.buffer != next.program->stmt[next.from - 1].dst.buffer)
        next.from--; /* what the sums began with is part of it now */
    next.to += q->nstmts - next.program->nstmts;
    int outer = v->at[0].program->nbuffers;
    if (!v->nseen) known(v, rw_part_hash(v->at[0].program, v->at[0].from, v->at[0].to, outer));
    if (known(v, rw_part_hash(q, next.from, next.to, outer))) {
        program_free(q);
        return;
    }
    next.program = q;
    next.step[next.depth] = r;
    next.past[next.depth] = from;
    next.asked[next.depth++] = f->reason ? arena_strdup(&v->d->out->arena, f->reason) : NULL;
    GROW(&v->arena, v->at, v->n, v->cap);
    v->at[v->n++] = next;
}

static int by_depth(const void *a, const void *b) {
    const struct failure *x = a, *y = b;
    if (x->depth != y->depth) return y->depth - x->depth;
    return x->stmt != y->stmt ? x->stmt - y->stmt : x->instr - y->instr;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Another instruction fails in the same way: one of a family that differs in its tiles. */
static bool asked_before(const struct search *s, int i) {
    const struct failure *x = &s->failure[i];
    for (int k = 0; k < i; k++) {
        const struct failure *y = &s->failure[k];
        if (x->kind == y->kind && x->stmt == y->stmt && x->needle_op == y->needle_op &&
            x->stmt_op == y->stmt_op && x->needle_axis == y->needle_axis &&
            x->stmt_axis == y->stmt_axis && x->operand == y->operand &&
            same_text(x->expected, y->expected) && same_text(x->got, y->got))
            return true;
    }
    return false;
}

/* Of many failures the deepest, and in a long search one of each of the other kinds. */
static bool worth_asking(struct drive *v, const struct search *s, int i) {
    if (i < MOST_FAILURES) return true;
    bool far = v->d->most_states == MOST_STATES;
    v->d->out->bounded |= !far;
    return far && !asked_before(s, i);
}

static void expand(struct drive *v, int at, struct search *s) {
    if (s->nfailures > 1) qsort(s->failure, (size_t)s->nfailures, sizeof *s->failure, by_depth);
    for (int i = 0; i < s->nfailures; i++) {
        const struct failure *f = &s->failure[i];
        if (!worth_asking(v, s, i)) continue;
        for (int r = 0; rewrites[r]; r++)
            if (rewrites[r]->answers >> f->kind & 1)
                apply(v, at, rewrites[r], f, needle_of(v->d->needles, f->instr));
    }
    struct failure none = {.stmt = v->near.stmt, .needle_axis = -1, .stmt_axis = -1, .operand = -1};
    for (int r = 0; rewrites[r] && at == 0; r++)
        for (int i = 0; i < v->d->needles->n && rewrites[r]->answers == 0; i++)
            if (target(v->d, &v->d->needles->at[i]))
                apply(v, 0, rewrites[r], &none, &v->d->needles->at[i]);
}

/* ---- results ---- */

/* As a mapping of the whole program. */
static struct mapping copy_mapping(struct drive *v, const struct stage *x,
                                   const struct mapping *m) {
    struct arena *a = &v->d->out->arena;
    struct mapping c = *m;
    c.group = arena_copy(a, m->group, (size_t)m->ngroups * sizeof *m->group);
    size_t n = (size_t)v->d->needles->machine->instr[m->instr].noperands;
    c.operand = arena_copy(a, m->operand, n * sizeof *m->operand);
    c.stmt = near_stmt(&v->near, x->program, x->from, x->to, m->stmt);
    c.init = near_stmt(&v->near, x->program, x->from, x->to, m->init);
    return c;
}

static int by_statement(const void *a, const void *b) {
    const struct mapping *x = a, *y = b;
    if (x->stmt != y->stmt) return x->stmt - y->stmt;
    return x->instr != y->instr ? x->instr - y->instr : mapping_compare(x, y);
}

static struct program *whole_of(const struct drive *v, const struct stage *x) {
    return near_whole(&v->near, x->program, x->from, x->to);
}

static void keep(struct drive *v, const struct stage *x, const struct search *s) {
    struct derivations *out = v->d->out;
    int cap = out->n, from = near_stmt(&v->near, x->program, x->from, x->to, x->from);
    struct derivation y = {.program = whole_of(v, x),
                           .stmt = v->stmt,
                           .from = from,
                           .to = from + x->to - x->from,
                           .nsteps = x->depth,
                           .nmappings = s->nmappings};
    memcpy(y.step, x->step, sizeof y.step);
    memcpy(y.asked, x->asked, sizeof y.asked);
    for (int k = 1; k < x->depth; k++) y.between[k - 1] = whole_of(v, &v->at[x->past[k]]);
    y.mapping = arena_array(&out->arena, (size_t)s->nmappings, sizeof *y.mapping);
    for (int i = 0; i < s->nmappings; i++) y.mapping[i] = copy_mapping(v, x, &s->mapping[i]);
    qsort(y.mapping, (size_t)y.nmappings, sizeof *y.mapping, by_statement);
    GROW(&out->arena, out->at, out->n, cap);
    out->at[out->n++] = y;
}

/* The stages from `from` on, all as many rewrites away: those of which most is mapped are written
 * further first, since there may not be room for what comes of all. */
static void step_on(struct drive *v, int from) {
    int n = v->n - from, *order = arena_array(&v->arena, (size_t)n, sizeof *order);
    struct view *all = arena_array(&v->arena, (size_t)n, sizeof *all);
    for (int i = 0; i < n; i++) {
        int k = i;
        all[i] = look(v, &v->at[from + i]);
        for (; k > 0 && all[order[k - 1]].share < all[i].share; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int i = 0; i < n; i++) {
        int at = from + order[i];
        struct view *x = &all[order[i]];
        if (x->goal && v->d->unmapped_only) keep_wasteful(&x->found, v->at[at].program);
        if (x->goal && at > 0)
            keep(v, &v->at[at], &x->found);
        else if (v->at[at].depth < MAX_DERIVATION)
            expand(v, at, &x->found);
    }
}

void drive_stmt(struct driver *d, const struct program *p, int stmt) {
    if (!rw_top(p, stmt) || (p->stmt[stmt].combine != COMBINE_ADD && work_of(p, stmt) == 0)) return;
    if (d->most_states <= 0 || d->most_states > MOST_STATES) d->most_states = MOST_STATES;
    struct drive v = {
        .d = d, .stmt = stmt, .floats = type_is_float(p->buffer[p->stmt[stmt].dst.buffer].type)};
    arena_init(&v.arena);
    near_open(&v.near, &v.arena, p, stmt);
    struct stage root = {.from = v.near.stmt, .to = v.near.stmt + 1};
    root.program = (struct program *)near_program(&v.near); /* only read */
    GROW(&v.arena, v.at, v.n, v.cap);
    v.at[v.n++] = root;
    for (int from = 0, to; from < v.n; from = to) {
        to = v.n;
        step_on(&v, from);
    }
    for (int i = 1; i < v.n; i++) program_free(v.at[i].program);
    near_close(&v.near);
    arena_free(&v.arena);
}

struct rewrite derivation_whole(const struct derivation *d) {
    struct rewrite whole = {.name = "sequence"};
    for (int k = 0; k < d->nsteps; k++) {
        whole.by_values |= d->step[k]->by_values;
        whole.by_ranges |= d->step[k]->by_ranges;
        whole.by_makers |= d->step[k]->by_makers;
        if (d->step[k]->effect > whole.effect) whole.effect = d->step[k]->effect;
    }
    return whole;
}

static void derivation_free(struct derivation *d) {
    for (int k = 0; k < MAX_DERIVATION; k++)
        if (d->between[k]) program_free(d->between[k]);
    program_free(d->program);
}

/* Each step from the one before it: proved only when all of them are. */
static struct verdict stepwise_verdict(const struct derivation *d, const struct program *before) {
    struct verdict all = {.evidence = EVIDENCE_UNPROVED};
    const struct program *from = before;
    for (int k = 0; k < d->nsteps; k++) {
        const struct program *to = k + 1 < d->nsteps ? d->between[k] : d->program;
        struct verdict v = {.evidence = EVIDENCE_UNPROVED};
        if (to) v = rewrite_judge(d->step[k], from, to, SAMPLES_NONE, NULL);
        if (v.evidence != EVIDENCE_PROVED) return v;
        v.laws |= all.laws;
        all = v;
        from = to;
    }
    return all;
}

static struct verdict derivation_judge(const struct derivation *d, const struct program *before,
                                       enum samples use, struct text *why) {
    struct rewrite whole = derivation_whole(d);
    struct verdict v = rewrite_judge(&whole, before, d->program, use, why);
    if (v.evidence != EVIDENCE_UNPROVED) return v;
    struct verdict steps = stepwise_verdict(d, before);
    if (steps.evidence != EVIDENCE_PROVED) return v;
    if (why) text_free(why);
    return steps;
}

static struct verdict derivation_verdict(const struct derivation *d, const struct program *before,
                                         struct text *why) {
    return derivation_judge(d, before, SAMPLES_REFUTE, why);
}

bool derivation_prove(const struct derivation *d, const struct program *before, struct text *why) {
    enum evidence e = derivation_judge(d, before, SAMPLES_SERVE, why).evidence;
    return e == EVIDENCE_PROVED || e == EVIDENCE_SAMPLED;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct derivations *derivations_new(void) {
    struct derivations *d = memory_array(1, sizeof *d);
    arena_init(&d->arena);
    return d;
}

struct derivations *mapper_derive(const struct program *p, const struct machine *m,
                                  const struct map_options *o) {
    struct derivations *out = derivations_new();
    double start = now();
    struct needles *needles = needles_open(m);
    struct driver d = {.needles = needles, .out = out, .most = REWRITE_ROUNDS};
    if (o->steps > 0 && o->steps < MOST_STATES) d.most_states = (int)o->steps;
    for (int s = 0; s < p->nstmts; s++) drive_stmt(&d, p, s);
    int kept = 0;
    for (int i = 0; i < out->n; i++) {
        struct derivation *x = &out->at[i];
        x->verdict = derivation_verdict(x, p, NULL);
        bool proved = x->verdict.evidence == EVIDENCE_PROVED;
        bool good = proved || x->verdict.evidence == EVIDENCE_SAMPLED;
        for (int k = 0; k < x->nmappings && good; k++)
            x->mapping[k].certified =
                mapping_certify_with(needles, x->program, &x->mapping[k], NULL) && proved;
        out->refuted += !good;
        if (good)
            out->at[kept++] = *x;
        else
            derivation_free(x);
    }
    out->n = kept;
    needles_close(needles);
    out->seconds = now() - start;
    return out;
}

void derivations_free(struct derivations *d) {
    if (!d) return;
    for (int i = 0; i < d->n; i++) derivation_free(&d->at[i]);
    arena_free(&d->arena);
    free(d);
}
