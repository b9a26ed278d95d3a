/* Requantisers in fixed point, where that costs less: device and host together, by the prices of
 * covers.
 *
 *     S[k,p] = 0                                    c[k] = i32(round(o[k] / f[k]))    once, before
 *     S[k,p] += X[c,p] * W[k,c]               →     S[k,p] = c[k]
 *     Y[k,p] = i8(clip(round(                       S[k,p] += X[c,p] * W[k,c]
 *         f64(S[k,p]) * f[k] + o[k]), l, h))        m[k] = i32(round(f[k] * 2^n))     once, before
 *                                                   U[k,p] = S[k,p] * m[k]
 *                                                   Y[k,p] = i8(clip(round(f64(U[k,p]) * 2^-n), l,
 * h))
 *
 * As gemmlowp and TensorFlow Lite do (Jacob and others 2018), with multipliers as short as a
 * quarter of a step allows, so that 32 bits hold the product. */
#include "mapper/fixed.h"

#include <math.h>
#include <string.h>

/* ---- writing ---- */

static int integer_of(struct draft *d, int node) {
    int r = draft_op(d, (struct op){.code = OP_ROUND, .type = TYPE_F64, .arg = {node}});
    return draft_cast(d, TYPE_I32, r);
}

static int literal_i32(struct draft *d, double v) {
    return draft_number(d, TYPE_I32, v);
}

/* A row of the channels, read as the statement's node has it, by another axis. */
struct along {
    struct program *p;
    int axis;
};

static struct access read_along(void *user, const struct access *a, int read) {
    const struct along *x = user;
    (void)read;
    return rw_indexed(x->p, a->buffer, &x->axis);
}

static int constant_node(struct draft *d, const struct stmt *from, int node, int axis) {
    struct along x = {d->p, axis};
    return draft_cast(d, TYPE_F64, draft_mapped(d, from, node, read_along, &x));
}

/* c[k], a statement at the fill, and the fill with it. */
static bool write_begin(struct program *q, const struct requantiser *x,
                        const struct fixed_point *f) {
    struct access row;
    const struct stmt s = q->stmt[x->stmt], fill = q->stmt[x->init];
    const char *base = arena_printf(&q->arena, "%s.begin", q->buffer[s.dst.buffer].name);
    if (!rw_temporary_of(q, base, TYPE_I32, &x->channel_init, 1, &row)) return false;
    program_make_room(q, x->init, 1);
    struct draft d = draft_open(q, &fill, COMBINE_SET, row);
    int c = -1;
    if (x->offset >= 0 || x->zero != 0) {
        int scale = constant_node(&d, &s, x->scale, x->channel_init), zero = -1,
            v = x->offset < 0 ? -1 : constant_node(&d, &s, x->offset, x->channel_init);
        if (x->zero != 0 || v < 0) zero = draft_number(&d, TYPE_F64, x->zero);
        v = v < 0 ? zero : zero < 0 ? v : draft_binary(&d, OP_ADD, v, zero);
        c = integer_of(&d, draft_binary(&d, OP_DIV, v, scale));
    }
    if (x->bias >= 0) {
        int b = draft_read(&d, rw_copy(q, &fill.read[x->bias]));
        c = c < 0 ? b : draft_binary(&d, OP_ADD, c, b);
    }
    if (f->before > 0) {
        int half = literal_i32(&d, ldexp(1, f->before - 1));
        c = c < 0 ? half : draft_binary(&d, OP_ADD, c, half);
    }
    draft_close(&d, x->init);
    d = draft_open(q, &fill, COMBINE_SET, fill.dst);
    draft_read(&d, rw_copy(q, &row));
    draft_close(&d, x->init + 1);
    return true;
}

/* An elementwise statement of a temporary that the others go on with. */
struct going {
    struct program *q;
    const struct stmt *like;
    struct access now; /* the value so far */
    int at;            /* the next statement */
};

static bool step(struct going *g, enum opcode code, double number, const struct access *row) {
    int extent = g->now.buffer;
    const struct buffer *b = &g->q->buffer[extent];
    const char *base =
        arena_printf(&g->q->arena, "%s.fixed", g->q->buffer[g->like->dst.buffer].name);
    int made = rw_temporary(g->q, base, TYPE_I32, b->ndims, b->extent);
    if (made < 0) return false;
    struct access to = rw_copy(g->q, &g->now);
    to.buffer = made;
    struct draft d = draft_open(g->q, g->like, COMBINE_SET, to);
    int v = draft_read(&d, rw_copy(g->q, &g->now)),
        w = row ? draft_read(&d, rw_copy(g->q, row)) : literal_i32(&d, number);
    draft_binary(&d, code, v, w);
    draft_close(&d, g->at++);
    g->now = rw_copy(g->q, &to);
    return true;
}

static bool write_multiplier(struct going *g, const struct requantiser *x, int shift,
                             struct access *row) {
    const char *base =
        arena_printf(&g->q->arena, "%s.multiplier", g->q->buffer[g->like->dst.buffer].name);
    if (!rw_temporary_of(g->q, base, TYPE_I32, &x->channel, 1, row)) return false;
    struct draft d = draft_open(g->q, g->like, COMBINE_SET, *row);
    int scale = constant_node(&d, g->like, x->scale, x->channel),
        power = draft_number(&d, TYPE_F64, ldexp(1, shift));
    integer_of(&d, draft_binary(&d, OP_MUL, scale, power));
    draft_close(&d, g->at++);
    return true;
}

/* Is the bound one that values reach? Then *out is it in units of the product. */
static bool bound_of(double bound, int after, double *out) {
    *out = ldexp(bound, after);
    return fabs(*out) < 0x1p31;
}

static void write_result(struct going *g, const struct stmt *old, int after, double lo, double hi) {
    enum type t = old->op[old->nops - 1].type;
    struct draft d = draft_open(g->q, old, COMBINE_SET, old->dst);
    int v = draft_cast(&d, TYPE_F64, draft_read(&d, g->now));
    v = draft_binary(&d, OP_MUL, v, draft_number(&d, TYPE_F64, ldexp(1, -after)));
    v = draft_op(&d, (struct op){.code = OP_ROUND, .type = TYPE_F64, .arg = {v}});
    int l = draft_number(&d, TYPE_F64, lo), h = draft_number(&d, TYPE_F64, hi);
    v = draft_op(&d, (struct op){.code = OP_CLIP, .type = TYPE_F64, .arg = {v, l, h}});
    draft_cast(&d, t, v);
    draft_close(&d, g->at++);
}

static bool write_scaling(struct program *q, const struct requantiser *x,
                          const struct fixed_point *f, bool apart, int stmt) {
    const struct stmt old = q->stmt[stmt];
    struct going g = {q, &old, rw_copy(q, &old.read[x->read]), stmt};
    enum type t = old.op[old.nops - 1].type;
    struct access row;
    int64_t least, most;
    double lo = 0, hi = 0;
    type_limits(t, &least, &most);
    bool low = apart && x->lo > (double)least && bound_of(x->lo, f->after, &lo),
         high = apart && x->hi < (double)most && bound_of(x->hi, f->after, &hi);
    program_make_room(q, stmt, (x->channel >= 0) + (f->before > 0) + 1 + low + high);
    bool ok = x->channel < 0 || write_multiplier(&g, x, f->before + f->after, &row);
    if (ok && f->before > 0) ok = step(&g, OP_SHR, f->before, NULL);
    double one = rint(ldexp(x->scales[0], f->before + f->after));
    ok = ok && step(&g, OP_MUL, one, x->channel >= 0 ? &row : NULL);
    if (ok && low) ok = step(&g, OP_MAX, lo, NULL);
    if (ok && high) ok = step(&g, OP_MIN, hi, NULL);
    if (ok)
        write_result(&g, &old, f->after, apart ? (double)least : x->lo,
                     apart ? (double)most : x->hi);
    return ok;
}

struct program *fixed_point_write(const struct program *p, const struct requantiser *x,
                                  const struct fixed_point *f, bool apart) {
    struct program *q = program_copy(p);
    int stmt = x->stmt;
    bool ok = true;
    if (f->shifts_sums) ok = write_begin(q, x, f), stmt++;
    if (ok && write_scaling(q, x, f, apart, stmt)) return q;
    program_free(q);
    return NULL;
}

/* ---- prices ---- */

struct pricing {
    const struct machine *m;
    enum rewrite_effect floats;
    struct needles *needles;
    struct decider *decider;
};

/* The requantiser, its sums and what is new, as a program of its own: what else they read is given,
 * and nobody says how the result has to lie. */
static struct program *part_of(const struct program *p, int known, int sums, int result) {
    struct program *part = program_copy(p);
    int kept = 0;
    for (int i = 0; i < part->nitems; i++) {
        const struct item *it = &part->item[i];
        if (it->kind != ITEM_STMT) continue;
        int b = part->stmt[it->stmt].dst.buffer;
        if (b != sums && b != result && b < known) continue;
        part->stmt[kept] = part->stmt[it->stmt];
        part->item[kept] = (struct item){.kind = ITEM_STMT, .stmt = kept};
        kept++;
    }
    part->nitems = part->nstmts = kept;
    for (int b = 0; b < known; b++)
        if (b != sums && b != result && part->buffer[b].role != ROLE_CONST)
            part->buffer[b].role = ROLE_IN;
    part->buffer[result].role = ROLE_TEMP;
    return part;
}

static bool places_agree(const struct program *p, const struct access *a, const struct access *b) {
    const struct buffer *x = &p->buffer[a->buffer], *y = &p->buffer[b->buffer];
    if (x->ndims != y->ndims) return false;
    for (int d = 0; d < x->ndims; d++) {
        if (x->extent[d] != y->extent[d]) return false;
        for (int k = 0; k <= p->naxes; k++)
            if (access_coef(p, a, d, k) != access_coef(p, b, d, k)) return false;
    }
    return true;
}

/* Is the result, or a copy of it, a part of a larger tensor? */
static bool in_larger(const struct program *p, const struct stmt *s, const struct access *sums) {
    bool larger = !places_agree(p, &s->dst, sums);
    for (int k = 0; k < p->nstmts; k++) {
        const struct stmt *c = &p->stmt[k];
        if (c->nops == 1 && c->nreads == 1 && c->read[0].buffer == s->dst.buffer)
            larger |= !places_agree(p, &c->dst, &c->read[0]);
    }
    return larger;
}

/* A move that computes takes a whole tile where it stores each element as the sums count it
 * (scheduler/plan/finish.c). */
static bool stored_by_move(const struct cover *c, const struct machine *m) {
    for (int i = 0; i < c->nitems; i++) {
        int map = c->item[i].mapping;
        if (map >= 0 && c->program->stmt[c->item[i].stmt].nops > 1 &&
            m->instr[c->mapping[map].instr].is_move)
            return true;
    }
    return false;
}

static double price(const struct program *p, int known, int sums, int result, bool larger,
                    const struct pricing *x) {
    struct program *part = part_of(p, known, sums, result);
    struct diags quiet;
    diags_init(&quiet);
    decider_again(x->decider, 0);
    struct cover *c =
        mapper_cover_allowing(part, x->m, x->floats, NULL, x->needles, x->decider, &quiet);
    double cost = !c || (larger && stored_by_move(c, x->m)) ? INFINITY : c->cost;
    cover_free(c);
    diags_free(&quiet);
    program_free(part);
    return cost;
}

/* Prices add up what queues do side by side: stores of sums beside products. Where products take
 * nearly all of the time, integers that are a little cheaper in the sum are not. */
static const double CLEARLY_LESS = 0.7;

/* The cheaper of both forms where it costs clearly less than the statement as it is; else NULL. */
static struct program *cheaper(const struct program *p, const struct requantiser *x,
                               const struct fixed_point *f, const struct pricing *by) {
    const struct stmt *s = &p->stmt[x->stmt];
    int known = p->nbuffers, sums = s->read[x->read].buffer, result = s->dst.buffer;
    bool larger = in_larger(p, s, &s->read[x->read]);
    double least = CLEARLY_LESS * price(p, known, sums, result, false, by);
    struct program *best = NULL;
    for (int apart = 0; apart < 2; apart++) {
        struct program *q = fixed_point_write(p, x, f, apart);
        double cost = q ? price(q, known, sums, result, larger, by) : INFINITY;
        bool less = cost < least;
        program_free(less ? best : q);
        if (less) best = q, least = cost;
    }
    return best;
}

struct program *mapper_fixed_point(const struct program *p, const struct machine *m,
                                   const void *const *data, enum rewrite_effect floats,
                                   struct decider *decider, int *changed) {
    struct arena arena;
    struct program *now = NULL;
    *changed = 0;
    if (!has_device(m)) return NULL;
    arena_init(&arena);
    struct pricing by = {m, floats, needles_open(m), decider};
    for (int s = 0; s < (now ? now : p)->nstmts; s++) {
        struct requantiser x;
        struct fixed_point f;
        const struct program *of = now ? now : p;
        if (!requantiser_find(&arena, of, data, s, &x) || !fixed_point_of(&x, &f)) continue;
        struct program *q = cheaper(of, &x, &f, &by);
        if (!q) continue;
        s += q->nstmts - of->nstmts;
        program_free(now);
        now = q;
        ++*changed;
    }
    needles_close(by.needles);
    arena_free(&arena);
    return now;
}
