/* Products of floats of 16 bits: by an instruction that takes them as they are stored, or in f32
 * after conversions. Either way costs what its mapping does, with the copies that its operands
 * need; the conversions are statements, which have prices too. */
#include "mapper/floats.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <math.h>

enum { PRICE_STEPS = 20000 };
static const double margin = 0.8; /* estimates are no closer */

static bool multiplies(const struct needles *all, enum type a, enum type b) {
    struct product_types t;
    for (int k = 0; k < all->n; k++)
        if (needle_product(&all->at[k], &t) && ((t.a == a && t.b == b) || (t.a == b && t.b == a)))
            return true;
    return false;
}

bool product_is_native(const struct program *p, const struct needles *needles, int stmt) {
    const struct stmt *s = &p->stmt[stmt];
    struct factors x = {0};
    return s->combine == COMBINE_ADD && rw_collect(p, s, s->nops - 1, &x) && x.n == 2 &&
           multiplies(needles, rw_stored(p, s, x.node[0]), rw_stored(p, s, x.node[1]));
}

struct priced {
    double cycles; /* INFINITY: no instruction takes the statement */
    bool device;
};

/* By the cheapest instruction alone. A mapping's copies count twice, for reading and for writing; a
 * conversion is priced as one pass, and beside it a copy is one too. */
static struct priced price_of(const struct program *p, int stmt, const struct needles *needles,
                              const struct refusals *refused) {
    const struct machine *m = needles->machine;
    struct priced best = {INFINITY, false};
    struct arena scratch;
    arena_init(&scratch);
    struct search s = {
        .arena = &scratch, .needles = needles, .limit = PRICE_STEPS, .unasked = true};
    struct site site = site_of(&scratch, p, stmt);
    site_recall(&s, &site);
    for (int i = 0; i < needles->n; i++)
        if (needles->at[i].offered) search_pair(&s, &needles->at[i], &site);
    for (int i = 0; i < s.nmappings; i++) {
        const struct mapping *map = &s.mapping[i];
        const struct instr *x = &m->instr[map->instr];
        if (refused && refusals_have(refused, p, m, map)) continue;
        double cycles = reference_cycles(m, x->unit, map->cost) + map->copies / 2;
        best.cycles = fmin(best.cycles, cycles);
        best.device |= x->queue >= 0 && !machine_queue_is_host(m, x->queue);
    }
    arena_free(&scratch);
    return best;
}

/* The statement's share of making the image: its readers divide it among them. What constants alone
 * decide is made once, and so is what a recurrence reads in each step. */
static double image_price(const struct program *p, int stmt, int buffer,
                          const struct needles *needles) {
    int readers = 0, writer = -1;
    for (int s = 0; s < p->nstmts; s++) {
        readers += stmt_reads(&p->stmt[s], buffer);
        if (p->stmt[s].dst.buffer == buffer) writer = s;
    }
    if (writer < 0 || buffer_steady(p, buffer) || (!rw_top(p, stmt) && rw_top(p, writer))) return 0;
    return price_of(p, writer, needles, NULL).cycles / fmax(readers, 1);
}

bool product_stays(struct program *p, int stmt, struct program *wide, int then,
                   const struct needles *needles, const struct refusals *refused,
                   struct decider *d) {
    stmt_normalise(p, stmt);
    stmt_normalise(wide, then);
    struct priced as_is = price_of(p, stmt, needles, refused);
    struct priced in_f32 = price_of(wide, then, needles, refused);
    const struct stmt *s = &wide->stmt[then];
    if (as_is.device || isinf(in_f32.cycles)) return true;
    for (int r = 0; r < s->nreads; r++)
        if (r == 0 || s->read[r].buffer != s->read[0].buffer)
            in_f32.cycles += image_price(wide, then, s->read[r].buffer, needles);
    const char *name = p->buffer[p->stmt[stmt].dst.buffer].name;
    struct candidate candidate[] = {{"keep", as_is.cycles, NULL},
                                    {"f32", in_f32.cycles / margin, NULL}};
    struct question q = {.kind = QUESTION_REWRITE,
                         .subject = arena_printf(&p->arena, "stored types of '%s'", name),
                         .ncandidates = 2,
                         .candidate = candidate};
    return decide(d, &q) == 0;
}
