/* Choosing a cover (ISA Mapper §2.4): sums of products first, then what stands between them, then
 * copies and fills; each way a question. Neighbours that are decided count in the price of what is
 * not, so chains stay in one memory. */
#include "mapper/chunk.h"
#include "mapper/floats.h"
#include "mapper/group.h"
#include "mapper/hoist.h"
#include "mapper/lift.h"
#include "mapper/rows.h"
#include "mapper/rewrite_int.h"
#include "mapper/mirror.h"
#include "mapper/stack.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = 16, MAX_CERTIFIED = 8, KEPT = 64 /* statements */ };

/* ---- bookkeeping ---- */

void covering_reserve(struct covering *c, int n) {
    if (n <= c->cap) return;
    int cap = 2 * n + 16;
    int *chosen = arena_array(&c->scratch, (size_t)cap, sizeof *chosen);
    int *inside = arena_array(&c->scratch, (size_t)cap, sizeof *inside);
    struct estimate **estimate = arena_array(&c->scratch, (size_t)cap, sizeof *estimate);
    for (int i = 0; i < cap; i++) {
        estimate[i] = i < c->cap ? c->estimate[i] : NULL;
        chosen[i] = i < c->cap ? c->chosen[i] : UNDECIDED;
        inside[i] = i < c->cap ? c->inside[i] : -1;
    }
    c->chosen = chosen;
    c->inside = inside;
    c->estimate = estimate;
    c->cap = cap;
}

int covering_add(struct covering *c, const struct mapping *m, const struct program *view) {
    struct cover *cover = c->cover;
    int at = cover->nmappings;
    GROW(&c->cover->arena, cover->mapping, at, c->mcap);
    GROW(&c->cover->arena, c->view, at, c->vcap);
    cover->mapping[at] = *m;
    c->view[at] = view;
    return cover->nmappings++;
}

void covering_shift(struct covering *c, int stmt, int n) {
    int total = c->cover->program->nstmts + n;
    covering_reserve(c, total);
    estimate_close(c->estimate[stmt]);
    c->estimate[stmt] = NULL;
    for (int i = 0; i < total - n; i++)
        if (c->estimate[i]) estimate_shift(c->estimate[i], stmt, n);
    for (int i = total - 1; i >= stmt + n; i--) {
        c->chosen[i] = c->chosen[i - n];
        c->inside[i] = c->inside[i - n];
        c->estimate[i] = c->estimate[i - n];
    }
    for (int i = stmt; i < stmt + n; i++) {
        c->chosen[i] = UNDECIDED;
        c->inside[i] = -1;
        c->estimate[i] = NULL;
    }
    plan_drop(c);
    for (int i = 0; i < total; i++)
        if (c->inside[i] >= stmt) c->inside[i] += n;
    for (int i = 0; i < c->cover->nmappings; i++) {
        struct mapping *m = &c->cover->mapping[i];
        if (m->stmt >= stmt) m->stmt += n;
        if (m->init >= stmt) m->init += n;
    }
    join_shift(c, stmt, n);
}

static struct mapping keep_mapping(struct arena *a, const struct covering *c,
                                   const struct mapping *m) {
    struct mapping copy = *m;
    copy.group = arena_copy(a, m->group, (size_t)m->ngroups * sizeof *m->group);
    copy.operand = arena_copy(a, m->operand,
                              (size_t)c->machine->instr[m->instr].noperands * sizeof *m->operand);
    return copy;
}

/* ---- questions ---- */

/* Axes that rewrites made stand before those of the recurrences. */
static int scope_axis(const struct cover *c, int scope) {
    return c->program->naxes - c->steps.nscopes + scope;
}

static const char *way_text(struct covering *c, const struct option *o) {
    struct text t = {0};
    text_printf(&t, "%s", o->fallback ? "fallback" : c->machine->instr[o->map.instr].id);
    for (int k = 0; k < o->ncuts; k++) text_printf(&t, "%s%d", k ? "," : " after ", o->cut[k]);
    const char *copy = arena_strdup(&c->scratch, t.at);
    text_free(&t);
    return copy;
}

static const char *groups_text(struct covering *c, const struct program *p,
                               const struct option *o) {
    const struct needle *n = needle_of(c->needles, o->map.instr);
    struct text t = {0};
    for (int x = 0; x < o->map.ngroups; x++) {
        text_printf(&t, "%s%s=(", x ? " " : "", n->program->axis[x].name);
        for (int k = 0; k < o->map.group[x].n; k++)
            text_printf(&t, "%s%s", k ? "," : "", p->axis[o->map.group[x].axis[k]].name);
        text_printf(&t, ")");
    }
    for (int k = 0; k < n->noperands; k++)
        if (o->map.operand[k].role == OPERAND_READ)
            text_printf(&t, " %s=read %d", n->program->buffer[n->access[k]->buffer].name,
                        o->map.operand[k].read);
        else if (o->map.operand[k].role == OPERAND_DST && o->map.operand[k].read >= 0)
            text_printf(&t, " in place of read %d", o->map.operand[k].read);
    const char *copy = arena_strdup(&c->scratch, t.at ? t.at : "");
    text_free(&t);
    return copy;
}

static bool same_way(const struct option *a, const struct option *b) {
    if (a->fallback != b->fallback || a->ncuts != b->ncuts) return false;
    if (!a->fallback && a->map.instr != b->map.instr) return false;
    return memcmp(a->cut, b->cut, (size_t)a->ncuts * sizeof *a->cut) == 0;
}

static const char *subject_of(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    return arena_printf(&c->scratch, "stmt %d %s", stmt, p->buffer[p->stmt[stmt].dst.buffer].name);
}

/* How often it is executed: a statement of a recurrence's body in each step, as far as sizes let.
 */
static double executions(const struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    const struct steps *s = &c->cover->steps;
    double turns = 1;
    for (int k = p->stmt[stmt].scope - 1; k >= 0; k = s->scope[k].parent) {
        const struct axis *a = &p->axis[scope_axis(c->cover, k)];
        turns *= (double)(a->size ? p->size[a->size - 1].hi : a->extent);
    }
    return turns;
}

/* Costs are those of a whole run, so that those of different statements can be compared. */
static int ask(struct covering *c, enum question_kind kind, int stmt, struct candidate *candidate,
               const bool *alike, int n) {
    double turns = executions(c, stmt);
    for (int i = 0; i < n; i++) candidate[i].cost *= turns;
    struct question q = {.kind = kind,
                         .subject = subject_of(c, stmt),
                         .ncandidates = n,
                         .candidate = candidate,
                         .alike = alike};
    return decide(c->decider, &q);
}

/* Does an option that is asked about do the same with the reads of alike operands swapped? */
static bool is_alike(const struct covering *c, const struct option *const *asked, int n,
                     const struct option *o) {
    const struct needle *needle = needle_of(c->needles, o->map.instr);
    for (int k = 0; k < n; k++)
        if (mapping_mirrors(c->machine, needle, &asked[k]->map, &o->map)) return true;
    return false;
}

/* First which instruction (after which cuts), then which of its mappings. Options are sorted: the
 * first of a way is its best. */
static const struct option *choose(struct covering *c, int stmt, const struct options *all) {
    struct candidate candidate[MAX_CANDIDATES];
    bool alike[MAX_CANDIDATES];
    const struct option *way[MAX_CANDIDATES], *map[MAX_CANDIDATES];
    int n = 0, maps = 0;
    for (int i = 0; i < all->n; i++) {
        bool known = false;
        for (int k = 0; k < n; k++) known |= same_way(way[k], &all->at[i]);
        bool last = n == MAX_CANDIDATES - 1; /* the fallback always has a place */
        if (known || n == MAX_CANDIDATES || (last && !all->at[i].fallback)) continue;
        candidate[n] = (struct candidate){way_text(c, &all->at[i]), all->at[i].total, NULL};
        way[n++] = &all->at[i];
    }
    const struct option *picked = way[ask(c, QUESTION_COVER, stmt, candidate, NULL, n)];
    if (picked->fallback) return picked;
    for (int i = 0; i < all->n && maps < MAX_CANDIDATES; i++) {
        if (!same_way(&all->at[i], picked)) continue;
        candidate[maps] = (struct candidate){groups_text(c, c->cover->program, &all->at[i]),
                                             all->at[i].total, NULL};
        alike[maps] = is_alike(c, map, maps, &all->at[i]);
        map[maps++] = &all->at[i];
    }
    return map[ask(c, QUESTION_MAPPING, stmt, candidate, alike, maps)];
}

/* ---- one statement ---- */

/* Certified on the program as the cuts leave it; an option that fails is a defect of the search,
 * and is not offered. */
static bool certify_option(struct covering *c, int stmt, struct option *o) {
    struct program view = *c->cover->program;
    if (o->fallback) return true;
    arena_init(&view.arena);
    if (o->ncuts > 0) view_rest(&view, stmt, o->cut, o->ncuts, false);
    o->map.certified = mapping_certify_with(c->needles, &view, &o->map, NULL);
    arena_free(&view.arena);
    return o->map.certified;
}

static void prune(struct covering *c, int stmt, struct options *all) {
    int kept = 0, certified = 0;
    for (int i = 0; i < all->n; i++) {
        bool wanted = all->at[i].fallback || certified < MAX_CERTIFIED;
        if (!wanted || !certify_option(c, stmt, &all->at[i])) continue;
        certified += !all->at[i].fallback;
        all->at[kept++] = all->at[i];
    }
    all->n = kept;
}

static void settle(struct covering *c, int stmt, const struct option *o) {
    struct cover *cover = c->cover;
    cover->cost += o->cost;
    if (o->fallback) {
        c->chosen[stmt] = FALLBACK;
        return;
    }
    struct mapping m = keep_mapping(&cover->arena, c, &o->map);
    if (o->ncuts > 0) {
        covering_shift(c, stmt, o->ncuts);
        program_cut(cover->program, &c->room, stmt, o->cut, o->ncuts);
        covering_changed(c);
        for (int s = stmt; s < stmt + o->ncuts; s++)
            if (c->machine->nfallbacks > 0 && stmt_steady(cover->program, &cover->program->stmt[s]))
                c->chosen[s] = FALLBACK;
    }
    m.stmt = stmt + o->ncuts;
    if (m.init >= stmt) m.init += o->ncuts;
    c->chosen[m.stmt] = covering_add(c, &m, NULL);
    if (m.init >= 0) c->inside[m.init] = m.stmt;
    if (m.init >= 0) c->chosen[m.init] = FALLBACK;
}

struct turn { /* what is decided next */
    int stmt; /* -1: nothing is left */
    struct options ways;
    struct plan *plan; /* by which they are priced */
};

static struct turn *find_turn(struct covering *c) {
    struct turn *t = arena_alloc(fork_arena(c), sizeof *t);
    t->stmt = plan_next(c);
    if (t->stmt < 0) return t;
    t->ways = plan_options(c, t->stmt);
    t->plan = c->plan;
    prune(c, t->stmt, &t->ways);
    t->ways.at = arena_copy(fork_arena(c), t->ways.at, (size_t)t->ways.n * sizeof *t->ways.at);
    for (int i = 0; i < t->ways.n; i++)
        if (!t->ways.at[i].fallback)
            t->ways.at[i].map = keep_mapping(fork_arena(c), c, &t->ways.at[i].map);
    estimate_close(c->estimate[t->stmt]); /* its views are as large as the program */
    c->estimate[t->stmt] = NULL;
    return t;
}

/* Decides it. False after reporting: nothing executes it. */
static bool take_turn(struct covering *c, const struct turn *t) {
    const struct program *p = c->cover->program;
    if (t->ways.n == 0) {
        int line = 0, col = 0;
        if (p->source.text) source_place(&p->source, p->stmt[t->stmt].at, &line, &col);
        diag_line(c->diags, p->source.file, line, col,
                  "no instruction of '%s' executes this statement (of '%s'), and the machine has "
                  "no fallback; see map --why",
                  c->machine->name, p->buffer[p->stmt[t->stmt].dst.buffer].name);
        return false;
    }
    const struct option *o = choose(c, t->stmt, &t->ways);
    fork_follow(c, (int)(o - t->ways.at));
    settle(c, t->stmt, o);
    return true;
}

bool covering_decide(struct covering *c) {
    struct program *p = c->cover->program;
    c->room = (struct room){0};
    covering_reserve(c, p->nstmts);
    for (int s = 0; s < p->nstmts; s++)
        if (c->chosen[s] == UNDECIDED && (p->stmt[s].unmapped || stmt_in_recurrence(p, s) ||
                                          (c->inside[s] < 0 && flow_steady(c)[s])))
            c->chosen[s] = FALLBACK;
    c->exact = true;
    for (;;) {
        struct turn *t = fork_known(c);
        if (t) plan_take(c, t->plan);
        if (!t) t = find_turn(c);
        fork_keep(c, t);
        if (t->stmt < 0) return true;
        if (!take_turn(c, t)) return false;
    }
}

/* ---- rewrites ---- */

/* What sums begin with, left by an instruction elsewhere than where they are made, is brought
 * there. */
static double brought_price(const struct covering *c, const struct program *p, int stmt,
                            const struct option *o, const struct needle *sums) {
    const struct machine *m = c->machine;
    if (!sums || o->fallback || sums->home >> sums->dst & 1) return 0;
    const struct operand *wanted = &m->instr[sums->instr].operand[sums->dst];
    if (needle_writes_one_of(m, needle_of(c->needles, o->map.instr), wanted)) return 0;
    double each = operand_in_cost(c->needles, sums, sums->dst, 0);
    return isinf(each) ? 0
                       : reference_cycles(m, m->instr[sums->instr].unit,
                                          each * rw_points(p, p->stmt[stmt].axes));
}

struct best_price best_price(struct covering *c, const struct program *p, int stmt,
                             const struct needle *sums) {
    covering_reserve(c, p->nstmts);
    struct estimate *of = estimate_open(p, stmt);
    struct options all = estimate_options(c, of, p);
    struct best_price best = {.cycles = INFINITY};
    for (int i = 0; i < all.n; i++) {
        const struct option *o = &all.at[i];
        bool device = option_on_device(c->machine, o);
        double cycles = o->cost + brought_price(c, p, stmt, o, sums);
        best.whole |= device && o->ncuts == 0;
        if (i > 0 && cycles >= best.cycles) continue;
        best.cycles = cycles;
        best.needle = o->fallback ? NULL : needle_of(c->needles, o->map.instr);
        best.device = device;
        best.uncut = best.needle && o->ncuts == 0;
    }
    estimate_close(of);
    return best;
}

bool begins_sums(const struct program *p, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    return stmt + 1 < p->nstmts && s->combine == COMBINE_SET &&
           p->stmt[stmt + 1].combine == COMBINE_ADD && rw_plain(p, stmt) && rw_plain(p, stmt + 1) &&
           access_same(p, &s->dst, &p->stmt[stmt + 1].dst);
}

double begin_price(struct covering *c, const struct program *p, int stmt,
                   const struct needle *sums) {
    const struct stmt *s = &p->stmt[stmt];
    return s->nops == 1 && s->nreads == 1 && sums && operand_from_home(c->needles, sums, sums->dst)
               ? rw_points(p, s->axes) * operand_in_cost(c->needles, sums, sums->dst, 0)
               : INFINITY;
}

/* ---- the whole ---- */

static void list_items(struct covering *c) {
    struct cover *cover = c->cover;
    cover->nitems = cover->program->nstmts;
    cover->item = arena_array(&cover->arena, (size_t)cover->nitems, sizeof *cover->item);
    for (int s = 0; s < cover->nitems; s++)
        cover->item[s] = (struct cover_item){
            .stmt = s, .mapping = c->inside[s] >= 0 ? -1 : c->chosen[s], .inside = c->inside[s]};
}

void covering_close(struct covering *c) {
    plan_drop(c);
    flow_free(&c->flow);
    for (int s = 0; s < c->cap; s++) estimate_close(c->estimate[s]);
    arena_free(&c->scratch);
}

struct cover *mapper_cover(const struct program *p, const struct machine *m, struct decider *d,
                           struct diags *diags) {
    return mapper_cover_allowing(p, m, REWRITE_REORDERS, NULL, NULL, d, diags);
}

static void number_scopes(struct cover *c) {
    for (int k = 0; k < c->steps.nscopes; k++) c->steps.scope[k].axis = scope_axis(c, k);
}

/* A change of the order of sums or products is a step of its own: the others keep every bit. */
static void append_reordered(struct chain *chain, const struct program *was,
                             const struct program *is, const char *by) {
    const struct reason r = {.by = by, .laws = LAWS_REORDER, .sampling = SAMPLE_FIELD};
    chain_append(chain, was, "forward", true);
    chain_reason(chain, &r);
    chain_append(chain, is, r.by, true);
}

/* What needs no step before it is made first, so that chunks find it as an input. */
static void change_recurrences(struct program *p, const struct machine *m,
                               enum rewrite_effect floats, struct decider *d, struct chain *chain) {
    struct program *was = program_copy(p);
    if (hoist_steady(p, floats >= REWRITE_REORDERS)) append_reordered(chain, was, p, "associate");
    program_free(was);
    lift_sums(p, &m->cycles, d);
    was = program_copy(p);
    if (chunk_steps(p, &m->cycles, floats, d)) append_reordered(chain, was, p, "chunks");
    program_free(was);
    stack_products(p, m, d);
}

/* The program with factors in an order that instructions take, also in a step of its own; or as it
 * was. */
static struct program *change_factors(struct program *p, const struct needles *needles,
                                      enum rewrite_effect floats, struct decider *d,
                                      struct chain *chain) {
    struct program *q = group_factors(p, needles, floats >= REWRITE_REORDERS, d);
    if (!q) return p;
    append_reordered(chain, p, q, "associate");
    program_free(p);
    return q;
}

/* The program with dimensions in rows of lanes; or as it was. A step of its own, as arguments have
 * other dimensions then. */
static struct program *change_rows(struct program *p, const struct needles *needles,
                                   struct decider *d, struct chain *chain) {
    const struct reason r = {.by = "rows", .laws = LAWS_EXACT, .sampling = SAMPLE_VALUES};
    struct program *q = split_rows(p, needles, d);
    if (!q) return p;
    chain_append(chain, p, "forward", true);
    chain_reason(chain, &r);
    chain_append(chain, q, r.by, true);
    program_free(p);
    return q;
}

/* Where covers of this program begin that depend on the same; NULL: it is so long that what they
 * find out is not kept, as each rewrite would be a copy of it. */
static struct fork *root_of(const struct needles *needles, const struct program *p,
                            enum rewrite_effect floats, const struct refusals *refused) {
    struct text key = {0};
    if (p->nstmts > KEPT) return NULL;
    text_printf(&key, "%d\n", (int)floats);
    program_print(p, &key);
    for (int i = 0; refused && i < refused->n; i++)
        text_printf(&key, "%d %s %s\n", refused->at[i].instr, refused->at[i].buffer,
                    refused->at[i].way ? refused->at[i].way : refused->at[i].operands);
    struct fork *root = fork_root(needles, key.at);
    text_free(&key);
    return root;
}

/* The sums of open recurrences for groups of steps, in a step of its own. */
static void change_groups(struct program *p, const struct machine *m, enum rewrite_effect floats,
                          struct decider *d, struct chain *chain) {
    const struct reason r = {.by = "groups", .laws = LAWS_EXACT, .sampling = SAMPLE_VALUES};
    struct program *was = program_copy(p);
    if (lift_in_groups(p, &m->cycles, floats, d)) {
        chain_append(chain, was, "forward", true);
        chain_reason(chain, &r);
        chain_append(chain, p, r.by, true);
    }
    program_free(was);
}

/* kept: the needles are, and what covers find out with them. grouped: steps of open recurrences may
 * be grouped; it becomes false where what has to be alike then is not. */
static struct cover *cover_program(const struct program *p, const struct machine *m,
                                   enum rewrite_effect floats, const struct refusals *refused,
                                   struct needles *needles, bool kept, bool *grouped,
                                   struct decider *d, struct diags *diags) {
    struct cover *cover = memory_array(1, sizeof *cover);
    arena_init(&cover->arena);
    cover->chain = chain_new(p);
    struct program *joined = program_copy(p);
    program_equate(joined);
    program_forward(joined, false);
    program_absorb(joined);
    program_coalesce(joined);
    joined = change_rows(joined, needles, d, cover->chain);
    change_recurrences(joined, m, floats, d, cover->chain);
    joined = change_factors(joined, needles, floats, d, cover->chain);
    floats_in_f32(joined, needles, refused, d);
    if (*grouped) change_groups(joined, m, floats, d, cover->chain);
    cover->program = program_open(joined, &cover->arena, &cover->steps);
    struct covering c = {.machine = m,
                         .needles = needles,
                         .decider = d,
                         .diags = diags,
                         .cover = cover,
                         .floats = floats,
                         .refused = refused,
                         .fork = kept ? root_of(needles, joined, floats, refused) : NULL};
    program_free(joined);
    arena_init(&c.scratch);
    for (int s = 0; s < cover->program->nstmts; s++) stmt_normalise(cover->program, s);
    if (chain_opens(cover->chain)) chain_append(cover->chain, cover->program, "forward", true);
    covering_reserve(&c, cover->program->nstmts);
    rewrite_all(&c);
    join_all(&c);
    bool done = covering_decide(&c);
    if (done) values_again(&c);
    join_restore(&c);
    number_scopes(cover);
    if (done) list_items(&c);
    if (done && chain_opens(cover->chain)) chain_append(cover->chain, cover->program, "cut", true);
    covering_close(&c);
    *grouped = done && cover_is_alike(cover);
    if (done) return cover;
    cover_free(cover);
    return NULL;
}

struct cover *mapper_cover_allowing(const struct program *p, const struct machine *m,
                                    enum rewrite_effect floats, const struct refusals *refused,
                                    struct needles *kept, struct decider *d, struct diags *diags) {
    struct needles *needles = kept ? kept : needles_open(m);
    bool grouped = true;
    struct cover *cover = cover_program(p, m, floats, refused, needles, kept, &grouped, d, diags);
    if (cover && !grouped) {
        cover_free(cover);
        cover = cover_program(p, m, floats, refused, needles, kept, &grouped, d, diags);
    }
    if (!kept) needles_close(needles);
    return cover;
}

void cover_free(struct cover *c) {
    if (!c) return;
    program_free(c->program);
    chain_free(c->chain);
    arena_free(&c->arena);
    free(c);
}
