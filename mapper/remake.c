/* Prices of parts of a program that rewrites give, and the question which of them it becomes. */
#include "mapper/remake.h"

#include <math.h>

/* ---- prices ---- */

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

struct part_price part_price(struct covering *c, struct program *q, int from, int to) {
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

struct part_price price_of_keeping(struct covering *c, int stmt) {
    struct program *p = c->cover->program;
    struct part_price price = part_price(c, p, stmt, stmt + 1);
    if (wanted_away(c, p, stmt) && !price.device) price.cycles = INFINITY;
    return price;
}

/* ---- questions ---- */

struct remake *remake_new(struct covering *c, const char *subject, int most) {
    struct arena *a = fork_arena(c);
    struct remake *x = arena_alloc(a, sizeof *x);
    x->subject = arena_strdup(a, subject);
    x->candidate = arena_array(a, (size_t)most, sizeof *x->candidate);
    x->outcome = arena_array(a, (size_t)most, sizeof *x->outcome);
    return x;
}

void remake_add(struct covering *c, struct remake *x, const char *text, double price,
                struct outcome o) {
    x->candidate[x->n] = (struct candidate){arena_strdup(fork_arena(c), text), price, NULL};
    if (!o.by) o.by = x->candidate[x->n].text;
    x->outcome[x->n++] = o;
    fork_own(c, o.program);
}

struct reason reason_of(const char *by, const char *buffer, const struct rewrite *whole) {
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

struct program *remake_ask(struct covering *c, struct remake *x, int stmt, struct stretch *at) {
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
