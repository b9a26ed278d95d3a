/* Rewrites where a program is compiled. A statement that the instructions of sums do not execute
 * well is rewritten where the price of what comes out is lower by a clear margin; each such choice
 * is a question, and what is chosen is proved first. */
#include "mapper/remake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATES = 12, FEW_AXES = 40 /* of MAX_AXES: from there on new ones are shared */ };

/* Leaving a device in the middle of a chain and coming back. */
static double interruption_price(const struct machine *m) {
    double most = 0;
    for (int i = 0; i < m->ninstrs; i++) most = fmax(most, doorbell_price(m, m->instr[i].queue));
    return 2 * most;
}

static const char *subject_of(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    return arena_printf(&c->scratch, "stmt %d %s", stmt, p->buffer[p->stmt[stmt].dst.buffer].name);
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
    return remake_ask(c, x ? x : list_exchanged(c, r, stmt), stmt, at);
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

static const char *derivation_text(struct arena *a, const struct derivation *d) {
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

/* The ways that are proved and clearly cheaper, the cheapest first. Of what is wanted on a device
 * only those that lead there, if some do. */
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
        bool device = price.device && wanted_away(c, c->cover->program, d->stmt);
        if (device && !devices) n = 0;
        devices |= device;
        if (device == devices) good[n++] = (struct way){d, price.cycles};
    }
    if (n > 1) qsort(good, (size_t)n, sizeof *good, by_way);
    for (int i = 0; i < n && kept < MAX_WAYS; i++)
        if (derivation_known(c->needles, good[i].d, c->cover->program)) way[kept++] = good[i];
    return kept;
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
    return remake_ask(c, x ? x : list_rewritten(c, stmt), stmt, at);
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

static struct program *in_parts(struct covering *c, int stmt, struct stretch *at) {
    struct remake *x = fork_known(c);
    return remake_ask(c, x ? x : list_parts(c, stmt), stmt, at);
}

static struct program *in_terms(struct covering *c, int stmt, struct stretch *at) {
    struct remake *x = fork_known(c);
    return remake_ask(c, x ? x : list_terms(c, stmt), stmt, at);
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
