/* Rewrites where a program is compiled. A statement that the instructions of sums do not execute
 * well is rewritten where the price of what comes out is lower by a clear margin; each such choice
 * is a question, and what is chosen is proved first. */
#include "mapper/rewrite_int.h"
#include "ir/nearest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_WAYS = 6,
    STATES = 12,
    FEW_AXES = 40 /* of MAX_AXES: from there on new ones are shared */
};
static const double margin = 0.8; /* estimates are no closer */

/* Leaving a device in the middle of a chain and coming back. */
static double interruption_price(const struct machine *m) {
    double most = 0;
    for (int i = 0; i < m->ninstrs; i++) most = fmax(most, doorbell_price(m, m->instr[i].queue));
    return 2 * most;
}

struct stretch {
    int from, to; /* statements from .. to - 1 */
};

struct part_price {
    double cycles;
    double constants; /* of these, for reading what is known before the first run */
    bool needles;     /* instructions execute all of it but fills */
    bool stays;       /* those of a device can */
    bool products;    /* or at least its sums of products, but for corrections beside them */
    bool device;      /* these are executed by a device */
    bool uncut;       /* these are executed whole */
};

/* What statements from .. to - 1 of the covering's program cost. */
static struct part_price own_price(struct covering *c, int from, int to) {
    struct program *q = c->cover->program;
    struct part_price sum = {.needles = true, .stays = true, .uncut = true};
    double all = 0, mapped = 0, away = 0;
    const bool *steady = flow_steady(c);
    const struct needle *later = NULL; /* of the statement after this one */
    for (int s = to - 1; s >= from; s--) {
        if (begins_sums(q, s) && (s == to - 1 || steady[s + 1]))
            later = best_price(c, q, s + 1, NULL).needle;
        const struct needle *sums = begins_sums(q, s) ? later : NULL;
        later = NULL;
        if (steady[s]) continue;
        struct best_price best = best_price(c, q, s, sums);
        double begin = begin_price(c, q, s, sums);
        later = best.needle;
        sum.cycles += fmin(best.cycles, begin);
        sum.needles &= best.needle || q->stmt[s].nreads == 0 || !isinf(begin); /* whoever fills */
        sum.stays &= best.whole || q->stmt[s].nreads == 0;
        double macs = stmt_is_mac(q, &q->stmt[s]) ? (double)stmt_points(q, &q->stmt[s]) : 0;
        sum.uncut &= best.uncut || macs == 0;
        all += macs;
        mapped += best.needle ? macs : 0;
        away += best.device ? macs : 0;
    }
    sum.constants = constants_price(c->machine, q, steady, from, to);
    sum.cycles += sum.constants;
    sum.products = mapped >= 0.99 * all;
    sum.device = away >= 0.99 * all;
    return sum;
}

/* What statements from .. to - 1 cost as part of program q. Of the covering's own, which many
 * others are compared with, users stay known. */
static struct part_price part_price(struct covering *c, struct program *q, int from, int to) {
    struct program *own = c->cover->program;
    if (q == own) return own_price(c, from, to);
    struct flow flow = c->flow;
    c->flow = (struct flow){.made = false};
    c->cover->program = q;
    covering_changed(c);
    struct part_price sum = own_price(c, from, to);
    flow_free(&c->flow);
    c->cover->program = own;
    covering_changed(c);
    c->flow = flow;
    return sum;
}

/* ---- questions ---- */

/* What a statement may become. */
struct outcome {
    struct program *program; /* NULL: it stays as it is */
    struct stretch at;
    const char *by; /* NULL: what the answer says */
    struct rewrite whole;
    bool proved, refuted;
};

/* A question about a statement, as it is kept. n 0: there is nothing to ask. */
struct remake {
    const char *subject;
    struct candidate *candidate;
    struct outcome *outcome; /* of each candidate */
    int n;
};

static struct remake *remake_new(struct covering *c, const char *subject, int most) {
    struct arena *a = fork_arena(c);
    struct remake *x = arena_alloc(a, sizeof *x);
    x->subject = arena_strdup(a, subject);
    x->candidate = arena_array(a, (size_t)most, sizeof *x->candidate);
    x->outcome = arena_array(a, (size_t)most, sizeof *x->outcome);
    return x;
}

static const char *subject_of(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    return arena_printf(&c->scratch, "stmt %d %s", stmt, p->buffer[p->stmt[stmt].dst.buffer].name);
}

/* The text of the candidate is kept; its program ends with the question. */
static void remake_add(struct covering *c, struct remake *x, const char *text, double price,
                       struct outcome o) {
    x->candidate[x->n] = (struct candidate){arena_strdup(fork_arena(c), text), price, NULL};
    if (!o.by) o.by = x->candidate[x->n].text;
    x->outcome[x->n++] = o;
    fork_own(c, o.program);
}

static struct reason reason_of(const char *by, const char *buffer, const struct rewrite *whole) {
    return (struct reason){.by = by,
                           .buffer = buffer,
                           .laws = rewrite_laws(whole->effect),
                           .sampling = rewrite_sampling(whole),
                           .may_sample = whole->effect != REWRITE_EXACT};
}

static void give_reason(struct covering *c, int stmt, const struct outcome *o) {
    const struct program *p = c->cover->program;
    struct reason r = reason_of(o->by, p->buffer[p->stmt[stmt].dst.buffer].name, &o->whole);
    chain_reason(c->cover->chain, &r);
}

static bool proved(struct covering *c, struct outcome *o) {
    if (!o->proved && !o->refuted) {
        o->proved = rewrite_prove(&o->whole, c->cover->program, o->program, NULL);
        o->refuted = !o->proved;
    }
    return o->proved;
}

/* The program that the answer leads to, what is written in place of the statement being `at`; NULL:
 * it stays. */
static struct program *remade(struct covering *c, struct remake *x, int stmt, struct stretch *at) {
    struct question q = {.kind = QUESTION_REWRITE,
                         .subject = x->subject,
                         .ncandidates = x->n,
                         .candidate = x->candidate};
    bool kept = c->fork != NULL;
    int answer = x->n > 0 ? decide(c->decider, &q) : 0;
    struct outcome *o = x->n > 0 ? &x->outcome[answer] : NULL;
    struct program *taken = o && o->program && proved(c, o) ? program_copy(o->program) : NULL;
    fork_keep(c, x);
    fork_follow(c, answer);
    if (taken) *at = o->at;
    if (taken) give_reason(c, stmt, o);
    for (int i = 0; i < x->n && !kept; i++)
        if (x->outcome[i].program) program_free(x->outcome[i].program);
    return taken;
}

/* ---- one step that answers no failure of sums ---- */

/* The first statement that two programs do not share; to[]: the end of the part that differs. What
 * became several statements is the one that was asked for. */
static int changed_part(const struct program *p, const struct program *q, int stmt, int *to) {
    int from = 0, more = q->nstmts - p->nstmts;
    to[0] = p->nstmts;
    to[1] = q->nstmts;
    if (more > 0) {
        to[0] = stmt + 1;
        to[1] = stmt + 1 + more;
        return stmt;
    }
    while (from < to[0] && from < to[1] && p->stmt[from].nops == q->stmt[from].nops &&
           !memcmp(p->stmt[from].op, q->stmt[from].op,
                   (size_t)p->stmt[from].nops * sizeof *p->stmt[from].op))
        from++;
    while (to[0] > from && to[1] > from && p->stmt[to[0] - 1].nops == q->stmt[to[1] - 1].nops &&
           !memcmp(p->stmt[to[0] - 1].op, q->stmt[to[1] - 1].op,
                   (size_t)p->stmt[to[0] - 1].nops * sizeof *p->stmt[to[0] - 1].op)) {
        to[0]--;
        to[1]--;
    }
    return from;
}

/* The rewrite with no needle in mind, or with the first that it can do something for. */
static struct program *applied(const struct covering *c, const struct rewrite *r,
                               const struct failure *f) {
    const struct program *p = c->cover->program;
    const struct stmt *s = &p->stmt[f->stmt];
    if (type_is_float(p->buffer[s->dst.buffer].type) && r->effect > c->floats) return NULL;
    struct program *q = r->by_needle ? NULL : r->apply(p, f, NULL);
    for (int i = 0; r->by_needle && !q && i < c->needles->n; i++)
        q = r->apply(p, f, &c->needles->at[i]);
    return q;
}

/* Where no needle takes the statement, which is what its failures say. */
static struct remake *list_exchanged(struct covering *c, const struct rewrite *r, int stmt) {
    struct program *p = c->cover->program;
    struct remake *x = remake_new(c, subject_of(c, stmt), 2);
    struct failure f = {.kind = FAILURE_OPERATION,
                        .instr = -1,
                        .stmt = stmt,
                        .needle_op = -1,
                        .stmt_op = -1,
                        .needle_axis = -1,
                        .stmt_axis = -1,
                        .operand = -1};
    struct program *q = applied(c, r, &f);
    int to[2];
    if (!q) return x;
    int from = changed_part(p, q, stmt, to);
    struct part_price after = part_price(c, q, from, to[1]), before = part_price(c, p, from, to[0]);
    double with = after.cycles, without = before.cycles;
    if (!before.needles || (after.stays && !before.stays))
        without += interruption_price(c->machine);
    bool leaves = (has_device(c->machine) && before.device && !after.device) ||
                  ((r->by_needle || before.uncut) && !after.uncut);
    struct derivation step = {.stmt = stmt, .nsteps = 1, .step = {r}, .program = q};
    if (!after.needles || leaves || isinf(with) || !derivation_known(c->needles, &step, p)) {
        program_free(q);
        return x;
    }
    struct outcome o = {.program = q, .at = {from, to[1]}, .whole = *r, .proved = true};
    if (with < without) remake_add(c, x, r->name, with, o);
    remake_add(c, x, "keep", without, (struct outcome){.program = NULL});
    if (with >= without) remake_add(c, x, r->name, with, o);
    return x;
}

static struct program *exchanged(struct covering *c, const struct rewrite *r, int stmt,
                                 struct stretch *at) {
    struct remake *x = fork_known(c);
    return remade(c, x ? x : list_exchanged(c, r, stmt), stmt, at);
}

/* ---- sequences ---- */

struct way {
    const struct derivation *d;
    double price;
};

static int by_way(const void *a, const void *b) {
    const struct way *x = a, *y = b;
    return x->price < y->price ? -1 : x->price > y->price;
}

const char *derivation_text(struct arena *a, const struct derivation *d) {
    const char *text = d->step[0]->name;
    for (int k = 1; k < d->nsteps; k++) text = arena_printf(a, "%s, %s", text, d->step[k]->name);
    return text;
}

/* What sums begin with, unless it stays a number, is priced with them, less its price without the
 * way: some ways change it, and who sums decides what it costs. */
static int first_of(const struct program *p, int stmt) {
    return stmt > 0 && rw_plain(p, stmt) && p->stmt[stmt].combine != COMBINE_SET &&
                   p->stmt[stmt - 1].combine == COMBINE_SET && p->stmt[stmt - 1].nreads > 0 &&
                   rw_plain(p, stmt - 1) &&
                   access_same(p, &p->stmt[stmt - 1].dst, &p->stmt[stmt].dst)
               ? stmt - 1
               : stmt;
}

/* Do the sums begin with something else than a number on this way? */
static bool begins_anew(const struct program *p, const struct derivation *d) {
    const struct program *q = d->program;
    for (int s = d->from + 1; s < d->to; s++)
        if (q->stmt[s].dst.buffer == p->stmt[d->stmt].dst.buffer && first_of(q, s) < s) return true;
    return false;
}

/* The ways that are proved and clearly cheaper, the cheapest first. Where some lead a device's
 * instructions to the products, only they: who names a device wants them done there. */
static int good_ways(struct covering *c, const struct derivations *all,
                     const struct part_price *without, struct way *way) {
    struct way *good = arena_array(&c->scratch, (size_t)all->n + 1, sizeof *good);
    int n = 0, kept = 0;
    bool devices = false;
    for (int i = 0; i < all->n; i++) {
        const struct derivation *d = &all->at[i];
        int first = first_of(c->cover->program, d->stmt), from = first < d->from ? first : d->from;
        struct part_price price = part_price(c, d->program, from, d->to),
                          begin =
                              part_price(c, c->cover->program,
                                         begins_anew(c->cover->program, d) ? from : first, d->stmt);
        if (!isinf(begin.cycles)) price.cycles -= begin.cycles;
        if (isinf(without->cycles) && !price.products) continue;
        double both = fmin(price.constants, without->constants); /* are read either way */
        if (price.cycles - both >= margin * (without->cycles - both)) continue;
        bool device = price.device && has_device(c->machine);
        if (device && !devices) n = 0;
        devices |= device;
        if (device == devices) good[n++] = (struct way){d, price.cycles};
    }
    if (n > 1) qsort(good, (size_t)n, sizeof *good, by_way);
    for (int i = 0; i < n && kept < MAX_WAYS; i++)
        if (derivation_known(c->needles, good[i].d, c->cover->program)) way[kept++] = good[i];
    return kept;
}

/* Of the statement as it stands. Who names a device wants sums of products done there: as long as
 * some rewrite leads there, nothing else will do. */
static struct part_price price_of_keeping(struct covering *c, int stmt) {
    struct program *p = c->cover->program;
    struct part_price price = part_price(c, p, stmt, stmt + 1);
    if (has_device(c->machine) && !price.device) price.cycles = INFINITY;
    return price;
}

/* Long sequences are looked for only where no short one leads to something cheaper. */
static int drive_further(struct covering *c, struct driver *d, int stmt,
                         const struct part_price *without, struct way *way) {
    const struct program *p = c->cover->program;
    d->most_states = STATES;
    d->out->bounded = false;
    drive_stmt(d, p, stmt);
    int n = good_ways(c, d->out, without, way);
    if (n > 0 || !d->out->bounded) return n;
    d->most_states = 0;
    drive_stmt(d, p, stmt);
    return good_ways(c, d->out, without, way);
}

static void share_axes(const struct covering *c, struct program *q, int from, int to) {
    if (q->naxes > FEW_AXES) program_share_axes(q, from, to, c->own_axes);
}

/* The derivation's program, as it goes on from there. */
static struct outcome led_to(const struct covering *c, const struct derivation *d) {
    struct outcome o = {.program = program_copy(d->program),
                        .at = {d->from, d->to},
                        .whole = derivation_whole(d),
                        .proved = true};
    int last;
    o.at.to -= blocks_hand_on(o.program, o.at.from, o.at.to, c->cover->steps.nscopes > 0, &last);
    share_axes(c, o.program, o.at.from, last);
    return o;
}

static struct remake *list_rewritten(struct covering *c, int stmt) {
    struct derivations *all = derivations_new();
    struct driver d = {.needles = c->needles,
                       .out = all,
                       .most = c->floats,
                       .unmapped_only = true,
                       .device_only = has_device(c->machine)};
    struct way way[MAX_WAYS];
    struct part_price without = price_of_keeping(c, stmt);
    int n = drive_further(c, &d, stmt, &without, way);
    if (d.device_only && all->n == 0) { /* the device has no use for it: as well as the host can */
        d.device_only = false;
        n = drive_further(c, &d, stmt, &without, way);
    }
    struct remake *x = remake_new(c, subject_of(c, stmt), MAX_WAYS + 1);
    for (int i = 0; i < n; i++)
        remake_add(c, x, derivation_text(&c->scratch, way[i].d), way[i].price, led_to(c, way[i].d));
    if (n > 0) remake_add(c, x, "keep", without.cycles, (struct outcome){.program = NULL});
    derivations_free(all);
    return x;
}

/* The program in which statement `stmt` is another part, which is `at`. */
static struct program *rewritten(struct covering *c, int stmt, struct stretch *at) {
    struct remake *x = fork_known(c);
    return remade(c, x ? x : list_rewritten(c, stmt), stmt, at);
}

static void take(struct covering *c, struct program *q, int from, int to) {
    share_axes(c, q, from, to);
    program_free(c->cover->program);
    c->cover->program = q;
    covering_changed(c);
}

/* `kept` says of each statement whether it stays as it is; what is written in place of one does. */
static void take_at(struct covering *c, struct program *q, bool **kept, int stmt,
                    struct stretch at) {
    int before = c->cover->program->nstmts, after = q->nstmts, more = after - before;
    bool *now = arena_array(&c->scratch, (size_t)after + 1, sizeof *now);
    for (int s = 0; s < after; s++)
        now[s] = s <= stmt ? (*kept)[s] : s - more > stmt && s - more < before && (*kept)[s - more];
    *kept = now;
    take(c, q, at.from, at.to);
}

static int plain_axes(const struct program *p) {
    int n = 0;
    while (n < p->naxes && !p->axis[n].sequential) n++;
    return n;
}

/* Recurrences are opened here: the chain goes over them at once, in the end. */
static void note_step(struct covering *c, const char *by) {
    if (chain_opens(c->cover->chain)) chain_append(c->cover->chain, c->cover->program, by, true);
}

/* With what the instances of a grid lose that have no tile. Copies are not theirs. */
static double idle_price(const struct covering *c, const struct option *o, int64_t parts) {
    const struct needle *n = o->fallback ? NULL : needle_of(c->needles, o->map.instr);
    if (!n) return o->cost;
    double busy = instances_busy(c->machine, n, c->cover->program, &o->map, parts);
    double own = reference_cycles(c->machine, c->machine->instr[o->map.instr].unit, o->map.cost);
    return o->cost + own * (1 / busy - 1);
}

static double price_as_it_is(const struct covering *c, const struct options *all) {
    double best = INFINITY;
    for (int i = 0; i < all->n; i++) best = fmin(best, idle_price(c, &all->at[i], 1));
    return best;
}

/* By the instruction that is cheapest where all instances have work; then the parts are added. */
static double price_in_parts(struct covering *c, const struct options *all, struct program *q,
                             int stmt, int64_t parts) {
    double add = part_price(c, q, stmt + 2, stmt + 3).cycles;
    return idle_price(c, &all->at[0], parts) + meeting_price(c->machine) + add;
}

/* An instruction had no way to make the parts: what they cost is not known. */
static bool parts_refused(const struct covering *c, const char *buffer, const char *suffix) {
    const char *parts = arena_printf(&c->cover->arena, "%s%s", buffer, suffix);
    for (int i = 0; c->refused && i < c->refused->n; i++)
        if (strcmp(c->refused->at[i].buffer, parts) == 0) return true;
    return false;
}

/* Long sums in parts (rw_parts.c), where a grid has more instances than the statement has tiles. */
static struct remake *list_parts(struct covering *c, int stmt) {
    struct program *p = c->cover->program;
    int64_t parts[MAX_PARTS + 1] = {1};
    const struct buffer *sums = &p->buffer[p->stmt[stmt].dst.buffer];
    struct remake *x =
        remake_new(c, arena_printf(&c->scratch, "parts of '%s'", sums->name), MAX_PARTS + 1);
    if ((type_is_float(sums->type) && c->floats < rw_parts.effect) ||
        !stmt_is_mac(p, &p->stmt[stmt]) || flow_steady(c)[stmt] ||
        parts_refused(c, sums->name, PARTS_SUFFIX))
        return x;
    struct estimate *of = estimate_open(p, stmt);
    struct options all = estimate_options(c, of, p);
    int n = 1;
    if (all.n > 0 && !all.at[0].fallback)
        n += parts_of(c->machine, needle_of(c->needles, all.at[0].map.instr), p, &all.at[0].map,
                      parts + 1);
    if (n > 1) remake_add(c, x, "keep", price_as_it_is(c, &all), (struct outcome){.program = NULL});
    for (int k = 1; k < n; k++) {
        struct outcome o = {.program = sum_in_parts(p, stmt, parts[k]),
                            .at = {stmt, stmt + 3},
                            .by = rw_parts.name,
                            .whole = rw_parts};
        double price = o.program ? price_in_parts(c, &all, o.program, stmt, parts[k]) : INFINITY;
        remake_add(c, x, arena_printf(&c->scratch, "%" PRId64, parts[k]), price / margin, o);
    }
    estimate_close(of);
    return x;
}

static struct program *in_parts(struct covering *c, int stmt, struct stretch *at) {
    struct remake *x = fork_known(c);
    return remade(c, x ? x : list_parts(c, stmt), stmt, at);
}

/* ---- sums in parts of few terms ---- */

/* The cheapest mapping of the statement on an instruction of several; NULL: none. */
static const struct mapping *joined_on(struct covering *c, const struct needle *n,
                                       const struct program *p, int stmt) {
    struct search s = {.arena = &c->scratch, .needles = c->needles, .limit = 20000};
    const struct mapping *best = NULL;
    search_joined(&s, n, p, stmt);
    for (int i = 0; i < s.nmappings; i++)
        if ((!best || s.mapping[i].cost < best->cost) &&
            mapping_certify_with(c->needles, p, &s.mapping[i], NULL))
            best = &s.mapping[i];
    return best;
}

struct terms {
    struct program *program;
    const char *text; /* of the answer */
    double price;
    int stmts;
};

/* The products as the mapper prices them, and the additions behind them. */
static bool price_terms(struct covering *c, const struct needle *n, int stmt, struct terms *t) {
    const struct machine *m = c->machine;
    const struct instr *in = &m->instr[n->instr];
    if (has_device(m) && (in->queue < 0 || machine_queue_is_host(m, in->queue))) return false;
    t->program = sum_of_terms(c->cover->program, stmt, n, &t->stmts);
    t->text = in->id;
    t->price = 0;
    for (int s = stmt + 1; t->program && s < stmt + t->stmts; s += 3) {
        const struct mapping *map = joined_on(c, n, t->program, s);
        if (!map) {
            program_free(t->program);
            return false;
        }
        t->price += reference_cycles(m, in->unit, map->cost) + map->copies +
                    part_price(c, t->program, s + 1, s + 2).cycles;
    }
    return t->program != NULL;
}

/* Is it a sum of products that no instruction takes whole, of a device if there is one? */
static bool lacks_sums(struct covering *c, int stmt) {
    struct program *p = c->cover->program;
    const struct buffer *sums = &p->buffer[p->stmt[stmt].dst.buffer];
    if ((type_is_float(sums->type) && c->floats < rw_terms.effect) || !rw_plain(p, stmt) ||
        !stmt_is_mac(p, &p->stmt[stmt]) || flow_steady(c)[stmt] ||
        parts_refused(c, sums->name, TERMS_SUFFIX))
        return false;
    struct best_price best = best_price(c, p, stmt, NULL);
    bool lacks = has_device(c->machine) ? !best.device : !best.needle;
    for (int i = 0; i < c->needles->n && lacks; i++)
        lacks = c->needles->at[i].nparts == 0 || !joined_on(c, &c->needles->at[i], p, stmt);
    return lacks;
}

/* An instruction makes sums of few terms and adds them to nothing: each part is an issue of it, and
 * the parts are added by whoever adds. */
static struct remake *list_terms(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    const char *name = p->buffer[p->stmt[stmt].dst.buffer].name;
    struct remake *x =
        remake_new(c, arena_printf(&c->scratch, "terms of '%s'", name), MAX_WAYS + 1);
    if (!lacks_sums(c, stmt)) return x;
    for (int i = 0; i < c->needles->n && x->n < MAX_WAYS; i++) {
        struct terms t;
        if (!price_terms(c, &c->needles->at[i], stmt, &t)) continue;
        struct outcome o = {.program = t.program,
                            .at = {stmt, stmt + t.stmts},
                            .by = rw_terms.name,
                            .whole = rw_terms};
        remake_add(c, x, t.text, t.price, o);
    }
    if (x->n > 0)
        remake_add(c, x, "keep", price_of_keeping(c, stmt).cycles,
                   (struct outcome){.program = NULL});
    return x;
}

static struct program *in_terms(struct covering *c, int stmt, struct stretch *at) {
    struct remake *x = fork_known(c);
    return remade(c, x ? x : list_terms(c, stmt), stmt, at);
}

static void terms_all(struct covering *c) {
    bool any = false;
    for (int i = 0; i < c->needles->n; i++) any |= c->needles->at[i].nparts > 0;
    for (int s = 0; any && s < c->cover->program->nstmts; s++) {
        struct stretch at;
        struct program *q = in_terms(c, s, &at);
        if (!q) continue;
        take(c, q, at.from, at.to);
        s = at.to - 1;
    }
    note_step(c, "rewrites");
}

/* What nothing reads any more, since who read it reads what it was made of, is made no more. */
static void drop_unread(struct covering *c, const bool *before, int nbefore) {
    struct program *q = unread_dropped(c->cover->program, before, nbefore);
    if (!q) return;
    note_step(c, "rewrites");
    take(c, q, 0, 0);
}

void rewrite_all(struct covering *c) {
    c->own_axes = plain_axes(c->cover->program);
    terms_all(c);
    bool *kept = join_wanted(c);
    for (int s = 0; s < c->cover->program->nstmts;) {
        struct stretch at = {s, s + 1};
        struct program *q = kept[s] ? NULL : rewritten(c, s, &at);
        if (q) take_at(c, q, &kept, s, at);
        s = at.to;
    }
    note_step(c, "rewrites");
    int nbuffers = c->cover->program->nbuffers;
    const bool *read = buffers_read(&c->scratch, c->cover->program);
    for (int s = 0; s < c->cover->program->nstmts; s++)
        for (int r = 0; rewrites[r] && s < c->cover->program->nstmts; r++) {
            if (!rewrites[r]->everywhere || kept[s]) continue;
            struct stretch at;
            struct program *q = exchanged(c, rewrites[r], s, &at);
            if (q) take_at(c, q, &kept, s, at);
        }
    drop_unread(c, read, nbuffers);
    for (int s = 0; s < c->cover->program->nstmts; s++) {
        struct stretch at = {s, s + 1};
        struct program *q = kept[s] ? NULL : in_parts(c, s, &at);
        if (!q) continue;
        take_at(c, q, &kept, s, at);
        s = at.to - 1;
    }
    note_step(c, "rewrites");
}

/* ---- asked for by name ---- */

static const struct rewrite *rewrite_named(const char *name, size_t n) {
    for (int r = 0; rewrites[r]; r++)
        if (strlen(rewrites[r]->name) == n && !memcmp(rewrites[r]->name, name, n))
            return rewrites[r];
    return NULL;
}

static bool parse_sequence(const char *names, struct derivation *d, struct diags *diags) {
    d->nsteps = 0;
    for (const char *at = names;; at++) {
        while (*at == ' ') at++;
        size_t n = strcspn(at, ",");
        const struct rewrite *r = rewrite_named(at, n);
        if (!r || d->nsteps == MAX_DERIVATION) {
            const char *wanted = arena_strndup(&diags->arena, at, n);
            struct names known = {0};
            for (int k = 0; rewrites[k]; k++) names_add(&diags->arena, &known, rewrites[k]->name);
            if (!r)
                diag_line(diags, "--rewrite", 0, 0, "no rewrite '%s', expected %s", wanted,
                          names_listed(&diags->arena, wanted, &known));
            else
                diag_line(diags, "--rewrite", 0, 0, "more than %d rewrites", MAX_DERIVATION);
            return false;
        }
        d->step[d->nsteps++] = r;
        at += n;
        if (!*at) return true;
    }
}

/* Step k on some statement of the part, for some needle of sums or for none in mind. */
static bool apply_steps(const struct needles *needles, struct program *p, int k,
                        struct derivation *d) {
    if (k == d->nsteps) {
        d->program = p;
        return true;
    }
    for (int s = d->from; s < d->to; s++)
        for (int i = -1; i < needles->n; i++) {
            const struct needle *n = i < 0 ? NULL : &needles->at[i];
            struct product_types t;
            struct failure f = {.stmt = s,
                                .instr = n ? n->instr : -1,
                                .needle_op = -1,
                                .stmt_op = -1,
                                .needle_axis = -1,
                                .stmt_axis = -1,
                                .operand = -1};
            if (n && !d->step[k]->by_needle && !needle_product(n, &t)) continue;
            struct program *q = d->step[k]->apply(p, &f, n);
            if (!q) continue;
            int to = d->to;
            d->to += q->nstmts - p->nstmts;
            if (apply_steps(needles, q, k + 1, d)) {
                if (d->program != q) program_free(q);
                return true;
            }
            d->to = to;
            program_free(q);
        }
    return false;
}

struct program *mapper_rewrite(const struct program *p, const struct machine *m, const char *names,
                               struct diags *diags) {
    struct derivation d = {0};
    if (!parse_sequence(names, &d, diags)) return NULL;
    struct needles *needles = needles_open(m);
    struct program *copy = program_copy(p);
    bool done = false;
    for (d.stmt = 0; d.stmt < p->nstmts && !done; d.stmt += !done) {
        d.from = d.stmt;
        d.to = d.stmt + 1;
        done = apply_steps(needles, copy, 0, &d);
    }
    if (!done)
        diag_line(diags, "--rewrite", 0, 0, "'%s' applies to no statement of '%s'", names, p->name);
    struct text why = {0};
    if (done && !derivation_prove(&d, p, &why)) {
        diag_line(diags, "--rewrite", 0, 0, "'%s' was not proved on '%s': %s", names, p->name,
                  why.at ? why.at : "");
        program_free(d.program);
        done = false;
    }
    text_free(&why);
    program_free(copy);
    needles_close(needles);
    return done ? d.program : NULL;
}

struct reason mapper_rewrite_reason(const char *names) {
    struct derivation d = {0};
    struct diags none;
    diags_init(&none);
    parse_sequence(names, &d, &none);
    diags_free(&none);
    struct rewrite whole = derivation_whole(&d);
    return reason_of(names, NULL, &whole);
}
