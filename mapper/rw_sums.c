/* Sums that are cut where a program is compiled: long ones into parts for the instances of a grid,
 * and those that no instruction takes whole into sums of few terms. */
#include "mapper/remake.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- long sums in parts ---- */

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
struct remake *list_parts(struct covering *c, int stmt) {
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
struct remake *list_terms(struct covering *c, int stmt) {
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
