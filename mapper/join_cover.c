/* One instruction for several statements against one for each (ISA Mapper §2.4): the rest of the
 * program is covered both ways, and the cheaper whole wins. While a cover is made, what such a
 * statement replaces is as if it were not there. */
#include "mapper/mapper_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WAYS = 4, AROUND = 24 /* statements before and behind that are covered anew */ };

static int first_candidate(void *state, const struct question *q) {
    int best = 0;
    (void)state;
    for (int i = 1; i < q->ncandidates; i++)
        if (q->candidate[i].cost < q->candidate[best].cost) best = i;
    return best;
}

static void *nothing(uint64_t seed) {
    (void)seed;
    return NULL;
}

static void forget(void *state) {
    (void)state;
}

static const struct approach cheapest = {
    .name = "cheapest", .open = nothing, .close = forget, .choose = first_candidate};

/* ---- replaced statements ---- */

static double option_cost(struct covering *c, const struct mapping *m) {
    const struct needle *n = needle_of(c->needles, m->instr);
    struct option o = {.map = *m};
    o.result = placing_of(c, c->cover->program, m, n->dst);
    return reference_cycles(c->machine, c->machine->instr[m->instr].unit, m->cost) + m->copies +
           neighbour_price(c, c->cover->program, m->stmt, &o);
}

static struct mapping kept(struct arena *a, const struct mapping *m) {
    struct mapping copy = *m;
    copy.group = arena_copy(a, m->group, (size_t)m->ngroups * sizeof *m->group);
    copy.operand = arena_copy(a, m->operand, (size_t)m->noperands * sizeof *m->operand);
    copy.renamed = arena_copy(a, m->renamed, (size_t)(m->nalso + 1) * sizeof *m->renamed);
    return copy;
}

/* The covering's program with the mapping's statements in one; false: it does not fit the rest. */
static bool apply(struct covering *c, const struct mapping *m) {
    struct cover *cover = c->cover;
    struct program *p = cover->program, view;
    if (joined_view(&p->arena, p, m, &view)) return false;
    struct joined_stmts *j = arena_alloc(&cover->arena, sizeof *j);
    *j = (struct joined_stmts){.n = m->nalso + 1, .next = c->joined};
    for (int q = 0; q < j->n; q++) {
        j->stmt[q] = q < m->nalso ? m->also[q] : m->stmt;
        j->own[q] = p->stmt[j->stmt[q]];
        int axis[MAX_AXES];
        for (int a = 0; a < p->naxes; a++) axis[a] = m->renamed[q][a];
        stmt_rename_axes(&p->arena, p, &j->own[q], axis);
    }
    c->joined = j;
    p->stmt[m->stmt] = view.stmt[m->stmt];
    covering_changed(c);
    for (int q = 0; q < m->nalso; q++) {
        stmt_hide(&p->arena, p, m->also[q], m->stmt);
        c->chosen[m->also[q]] = FALLBACK;
        c->inside[m->also[q]] = m->stmt;
    }
    covering_changed(c);
    double cost = option_cost(c, m);
    if (isinf(cost) || isnan(cost)) return false;
    cover->cost += cost;
    struct mapping own = kept(&cover->arena, m);
    c->chosen[m->stmt] = covering_add(c, &own, NULL);
    return true;
}

void join_shift(struct covering *c, int stmt, int n) {
    for (struct joined_stmts *j = c->joined; j; j = j->next)
        for (int q = 0; q < j->n; q++)
            if (j->stmt[q] >= stmt) j->stmt[q] += n;
    for (int i = 0; i < c->cover->nmappings; i++) {
        struct mapping *m = &c->cover->mapping[i];
        for (int q = 0; q < m->nalso; q++)
            if (m->also[q] >= stmt) m->also[q] += n;
    }
}

void join_restore(struct covering *c) {
    for (const struct joined_stmts *j = c->joined; j; j = j->next)
        for (int q = 0; q < j->n; q++) c->cover->program->stmt[j->stmt[q]] = j->own[q];
    for (int i = 0; i < c->cover->nmappings; i++) { /* the axes are common ones now */
        struct mapping *m = &c->cover->mapping[i];
        if (m->nalso == 0) continue;
        int8_t(*same)[MAX_AXES] = arena_array(&c->cover->arena, (size_t)m->nalso + 1, sizeof *same);
        for (int q = 0; q <= m->nalso; q++)
            for (int a = 0; a < MAX_AXES; a++) same[q][a] = (int8_t)a;
        m->renamed = (const int8_t(*)[MAX_AXES])same;
    }
}

/* ---- prices ---- */

struct span {
    int from, to;
};

struct span_price {
    double cycles; /* INFINITY: there is no way */
    double left;   /* points of sums of products that no device executes */
};

static double products_of(const struct program *p, const struct stmt *s) {
    return stmt_is_mac(p, s) ? (double)stmt_points(p, s) : 0;
}

/* What one instruction does of several statements counts as these did before. */
static double left_of(const struct covering *c) {
    const struct program *p = c->cover->program;
    double left = 0;
    for (int s = 0; s < p->nstmts && has_device(c->machine); s++) {
        int by = c->chosen[s];
        int queue = by < 0 ? -1 : c->machine->instr[c->cover->mapping[by].instr].queue;
        if (c->inside[s] >= 0 || (queue >= 0 && !machine_queue_is_host(c->machine, queue)))
            continue;
        const struct joined_stmts *j = c->joined;
        while (j && j->stmt[j->n - 1] != s) j = j->next;
        for (int q = 0; j && q < j->n; q++) left += products_of(p, &j->own[q]);
        if (!j) left += products_of(p, &p->stmt[s]);
    }
    return left;
}

/* Who names a device wants sums of products done there, whatever they cost. */
static bool better(const struct span_price *a, const struct span_price *b) {
    return a->left != b->left ? a->left < b->left : a->cycles < b->cycles;
}

/* Of the statements in the span, the mapping being among them; NULL: without. What is not decided
 * outside counts as the fallback's, both times. */
static struct span_price price_with(struct covering *c, struct span span, const struct mapping *m) {
    struct cover cover = {.program = program_copy(c->cover->program), .steps = c->cover->steps};
    struct diags ignored;
    diags_init(&ignored);
    arena_init(&cover.arena);
    struct covering t = {.machine = c->machine,
                         .needles = c->needles,
                         .decider = decider_open(&cheapest, 0),
                         .diags = &ignored,
                         .cover = &cover,
                         .exact = true};
    arena_init(&t.scratch);
    covering_reserve(&t, cover.program->nstmts);
    for (int i = 0; i < c->cover->nmappings; i++) covering_add(&t, &c->cover->mapping[i], NULL);
    for (int s = 0; s < cover.program->nstmts; s++) {
        bool outside = s < span.from || s > span.to;
        t.chosen[s] = outside && c->chosen[s] == UNDECIDED ? FALLBACK : c->chosen[s];
        t.inside[s] = c->inside[s];
    }
    bool good = (!m || apply(&t, m)) && covering_decide(&t);
    struct span_price price = {.cycles = good ? cover.cost : INFINITY,
                               .left = good ? left_of(&t) : INFINITY};
    covering_close(&t);
    decider_close(t.decider);
    diags_free(&ignored);
    program_free(cover.program);
    arena_free(&cover.arena);
    return price;
}

static struct span span_around(const struct mapping *way, int n) {
    struct span span = {way[0].stmt, way[0].stmt};
    for (int i = 0; i < n; i++)
        for (int q = 0; q < way[i].nalso; q++)
            if (way[i].also[q] < span.from) span.from = way[i].also[q];
    return (struct span){span.from - AROUND, span.to + AROUND};
}

/* ---- choosing ---- */

static const char *way_text(struct covering *c, const struct mapping *m) {
    const struct needle *n = needle_of(c->needles, m->instr);
    struct text t = {0};
    text_printf(&t, "%s for statements", c->machine->instr[m->instr].id);
    for (int q = 0; q < m->nalso; q++) text_printf(&t, " %d", m->also[q]);
    text_printf(&t, " %d,", m->stmt);
    for (int x = 0; x < m->ngroups; x++)
        text_printf(&t, " %s=%s", n->program->axis[x].name,
                    m->group[x].n ? c->cover->program->axis[m->group[x].axis[0]].name : "-");
    const char *copy = arena_strdup(&c->scratch, t.at);
    text_free(&t);
    return copy;
}

static int by_price(const void *a, const void *b) {
    const struct mapping *x = a, *y = b;
    if (x->instr == y->instr && x->nalso == y->nalso) return mapping_compare(x, y);
    double cx = x->cost + x->copies, cy = y->cost + y->copies;
    return cx != cy ? (cx < cy ? -1 : 1) : x->instr - y->instr;
}

static int list_ways(struct covering *c, int stmt, struct mapping *way) {
    const struct program *p = c->cover->program;
    struct search s = {.arena = &c->scratch, .needles = c->needles, .limit = 20000};
    int n = 0;
    for (int i = 0; i < c->needles->n; i++)
        if (c->needles->at[i].nparts > 0) search_joined(&s, &c->needles->at[i], p, stmt);
    if (s.nmappings > 1) qsort(s.mapping, (size_t)s.nmappings, sizeof *s.mapping, by_price);
    for (int i = 0; i < s.nmappings && n < MAX_WAYS; i++) {
        bool open = c->chosen[stmt] == UNDECIDED;
        for (int q = 0; q < s.mapping[i].nalso; q++)
            open &= c->chosen[s.mapping[i].also[q]] == UNDECIDED;
        if (!open || !mapping_certify_with(c->needles, p, &s.mapping[i], NULL)) continue;
        way[n] = s.mapping[i];
        way[n++].certified = true;
    }
    return n;
}

static bool any_joined(const struct covering *c) {
    bool any = false;
    for (int i = 0; i < c->needles->n; i++) any |= c->needles->at[i].nparts > 0;
    return any;
}

bool *join_wanted(struct covering *c) {
    const struct program *p = c->cover->program;
    bool *wanted = fork_known(c), known = wanted != NULL;
    struct mapping way[MAX_WAYS];
    if (!known) wanted = arena_array(fork_arena(c), (size_t)p->nstmts + 1, sizeof *wanted);
    for (int s = p->nstmts; !known && any_joined(c) && s-- > 0;) {
        int n =
            wanted[s] || p->stmt[s].unmapped || stmt_in_recurrence(p, s) ? 0 : list_ways(c, s, way);
        struct span span = n > 0 ? span_around(way, n) : (struct span){0};
        struct span_price apart = {0};
        if (n > 0) apart = price_with(c, span, NULL);
        for (int i = 0; i < n; i++) {
            struct span_price with = price_with(c, span, &way[i]);
            if (!better(&with, &apart)) continue;
            for (int q = 0; q < way[i].nalso; q++) wanted[way[i].also[q]] = true;
            wanted[s] = true;
        }
    }
    fork_keep(c, wanted);
    fork_follow(c, 0);
    return wanted;
}

/* The ways and "apart", the cheapest first; those that leave more to the host than others are out.
 * Returns how many. */
static int list_candidates(struct covering *c, struct mapping *way, int *nways,
                           struct candidate *candidate) {
    struct span span = span_around(way, *nways);
    struct span_price with[MAX_WAYS], apart = price_with(c, span, NULL);
    double least = apart.left;
    int n = 0;
    for (int i = 0; i < *nways; i++) {
        with[i] = price_with(c, span, &way[i]);
        least = fmin(least, with[i].left);
    }
    for (int i = 0; i < *nways; i++) {
        if (isinf(with[i].cycles) || with[i].left > least) continue;
        way[n] = way[i];
        candidate[n++] = (struct candidate){way_text(c, &way[i]), with[i].cycles, NULL};
    }
    *nways = n;
    if (n > 0 && !isinf(apart.cycles) && apart.left <= least)
        candidate[n++] = (struct candidate){"apart", apart.cycles, NULL};
    for (int i = n - 1; i > 0 && candidate[i].cost < candidate[i - 1].cost; i--) {
        struct candidate swap = candidate[i]; /* "apart" finds its place */
        candidate[i] = candidate[i - 1];
        candidate[i - 1] = swap;
    }
    return n;
}

struct asked { /* about ways that end with a statement */
    struct mapping *way;
    struct candidate *candidate; /* n 0: nothing */
    int n, nways;
};

static struct asked *list_asked(struct covering *c, int stmt) {
    struct arena *a = fork_arena(c);
    struct asked *x = arena_alloc(a, sizeof *x);
    x->candidate = arena_array(a, MAX_WAYS + 1, sizeof *x->candidate);
    x->way = arena_array(a, MAX_WAYS, sizeof *x->way);
    x->nways = list_ways(c, stmt, x->way);
    if (x->nways > 0) x->n = list_candidates(c, x->way, &x->nways, x->candidate);
    for (int i = 0; i < x->nways; i++) x->way[i] = kept(a, &x->way[i]);
    for (int i = 0; i < x->n; i++) x->candidate[i].text = arena_strdup(a, x->candidate[i].text);
    return x;
}

void join_all(struct covering *c) {
    bool any = any_joined(c), exact = c->exact;
    c->exact = true;
    for (int s = c->cover->program->nstmts; any && s-- > 0;) {
        const struct program *p = c->cover->program;
        if (p->stmt[s].unmapped || c->chosen[s] != UNDECIDED || stmt_in_recurrence(p, s)) continue;
        struct asked *x = fork_known(c);
        if (!x) x = list_asked(c, s);
        struct question q = {.kind = QUESTION_COVER,
                             .subject = arena_printf(&c->scratch, "stmts up to %d %s", s,
                                                     p->buffer[p->stmt[s].dst.buffer].name),
                             .ncandidates = x->n,
                             .candidate = x->candidate};
        int answer = x->n > 0 ? decide(c->decider, &q) : 0;
        fork_keep(c, x);
        fork_follow(c, answer);
        for (int i = 0; i < x->nways && x->n > 0; i++)
            if (!strcmp(x->candidate[answer].text, way_text(c, &x->way[i]))) {
                apply(c, &x->way[i]);
                break;
            }
    }
    c->exact = exact;
}
