/* Which recurrences only scale their states and add to them, and in chunks of how many steps that
 * is cheapest. */
#include "mapper/chunk.h"
#include "mapper/chunk_int.h"
#include "ir/steps.h"
#include "ir/stream.h"

#include <string.h>

enum { MOST_STEPS = 128 }; /* of a chunk: work with pairs of steps grows with it */

/* ---- states and other buffers ---- */

static int state_of(const struct chunking *c, int buffer, bool *next) {
    const struct recur *r = c->body.r;
    for (int k = 0; k < r->nstates; k++) {
        *next = r->state[k].next == buffer;
        if (*next || r->state[k].current == buffer) return k;
    }
    return -1;
}

/* The read under the node that is of a state; -1: none. */
static int state_read(const struct chunking *c, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    bool next;
    if (o->code == OP_READ) return state_of(c, s->read[o->read].buffer, &next) < 0 ? -1 : o->read;
    for (int k = 0; k < op_info[o->code].arity; k++) {
        int r = state_read(c, s, o->arg[k]);
        if (r >= 0) return r;
    }
    return -1;
}

/* Each step has the buffer to itself: all of it is set before it is read. */
static bool is_own(const struct chunking *c, int buffer) {
    int sets = 0, first = -1;
    for (int i = 0; i < c->body.r->nitems; i++) {
        const struct stmt *s = body_stmt(&c->body, i);
        bool reads = stmt_reads(s, buffer), writes = s->dst.buffer == buffer;
        if (!reads && !writes) continue;
        if (first < 0) first = i;
        if (i == first &&
            (reads || s->combine != COMBINE_SET || s->nwhere || !stmt_writes_whole(c->body.p, s)))
            return false;
        sets += writes && s->combine == COMBINE_SET;
        for (int r = -1; r < s->nreads; r++) {
            const struct access *a = r < 0 ? &s->dst : &s->read[r];
            if (a->buffer == buffer && access_varies(c->body.p, a, c->body.r->axis)) return false;
        }
    }
    return sets == 1 && body_owns(&c->body, buffer);
}

/* The body touches only the step's row of it, in one dimension. */
static bool is_row(const struct chunking *c, int buffer) {
    const struct program *p = c->body.p;
    const int64_t *index = NULL;
    int dim = -1, step = c->body.r->axis;
    for (int i = 0; i < c->body.r->nitems; i++) {
        const struct stmt *s = body_stmt(&c->body, i);
        for (int r = -1; r < s->nreads; r++) {
            const struct access *a = r < 0 ? &s->dst : &s->read[r];
            if (a->buffer != buffer) continue;
            for (int d = 0; d < p->buffer[buffer].ndims && !index; d++)
                if (access_coef(p, a, d, step) == 1) index = rw_row(p, a, dim = d);
            if (!index || memcmp(rw_row(p, a, dim), index, sizeof *index * ((size_t)p->naxes + 1)))
                return false;
        }
    }
    for (int a = 0; a < p->naxes; a++)
        if (a != step && index && index[a]) return false;
    return index != NULL;
}

static bool follows_steps(struct chunking *c) {
    const struct program *p = c->body.p;
    c->nbuffers = p->nbuffers;
    c->by_rows = arena_array(&c->body.p->arena, (size_t)p->nbuffers + 1, sizeof *c->by_rows);
    for (int i = 0; i < c->body.r->nitems; i++) {
        int b = body_stmt(&c->body, i)->dst.buffer;
        bool next;
        if (state_of(c, b, &next) >= 0) {
            if (!next) return false;
            continue;
        }
        c->by_rows[b] = is_own(c, b);
        if (!c->by_rows[b] && !is_row(c, b)) return false;
    }
    return true;
}

/* ---- products ---- */

/* One axis for each dimension, each once and whole. */
static bool plain_rows(const struct program *p, const struct access *a, int *axis) {
    uint64_t seen = 0;
    if (a->has_fill) return false;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        axis[d] = -1;
        for (int x = 0; x < p->naxes; x++) {
            if (!access_coef(p, a, d, x)) continue;
            if (axis[d] >= 0 || access_coef(p, a, d, x) != 1) return false;
            axis[d] = x;
        }
        if (axis[d] < 0 || seen >> axis[d] & 1 || access_coef(p, a, d, p->naxes) ||
            p->axis[axis[d]].extent != p->buffer[a->buffer].extent[d])
            return false;
        seen |= UINT64_C(1) << axis[d];
    }
    return true;
}

/* The node as a product; *state: the read among its factors that is of a state, alone, which is
 * left out; -1: none. False: it is in another way. */
static bool product_of(const struct chunking *c, int item, int node, struct product *out,
                       int *state) {
    const struct stmt *s = body_stmt(&c->body, item);
    struct factors all = {0};
    *state = -1;
    *out = (struct product){.item = item};
    if (!rw_collect(c->body.p, s, node, &all)) return false;
    for (int k = 0; k < all.n; k++) {
        const struct op *o = &s->op[all.node[k]];
        all.axes[k] &= ~(UINT64_C(1) << c->body.r->axis);
        if (o->type != s->op[s->nops - 1].type) return false;
        if (state_read(c, s, all.node[k]) < 0) {
            out->f.node[out->f.n] = all.node[k];
            out->f.axes[out->f.n++] = all.axes[k];
        } else if (o->code != OP_READ || *state >= 0) {
            return false;
        } else {
            *state = o->read;
        }
    }
    out->f.type = s->op[s->nops - 1].type;
    return true;
}

uint64_t chunk_axes(const struct product *x, uint32_t mask) {
    uint64_t axes = 0;
    for (int k = 0; k < x->f.n; k++)
        if (mask >> k & 1) axes |= x->f.axes[k];
    return axes;
}

/* ---- what writes a state ---- */

static bool add_term(struct chunking *c, struct linear *l, int item, int node) {
    const struct stmt *s = body_stmt(&c->body, item);
    struct product x;
    int state;
    if (s->op[node].code == OP_ADD)
        return add_term(c, l, item, s->op[node].arg[0]) && add_term(c, l, item, s->op[node].arg[1]);
    if (!product_of(c, item, node, &x, &state)) return false;
    if (state < 0) {
        struct product *more = arena_array(&c->body.p->arena, (size_t)l->nadded + 1, sizeof *more);
        if (l->nadded) memcpy(more, l->added, sizeof *more * (size_t)l->nadded);
        more[l->nadded++] = x;
        l->added = more;
        return x.f.n > 0;
    }
    struct access same = s->read[state];
    if (same.buffer != c->body.r->state[l->state].current || item != l->first || l->scale.item >= 0)
        return false;
    same.buffer = s->dst.buffer;
    l->scale = x;
    l->scale_axes = chunk_axes(&x, ~UINT32_C(0));
    return access_equal(c->body.p, &same, &s->dst);
}

static bool find_linear(struct chunking *c, struct linear *l) {
    const struct program *p = c->body.p;
    int next = c->body.r->state[l->state].next;
    enum type t = p->buffer[next].type;
    l->first = l->last = l->scale.item = -1;
    if (t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_BOOL) return false; /* each step rounds */
    for (int i = 0; i < c->body.r->nitems; i++) {
        const struct stmt *s = body_stmt(&c->body, i);
        if (s->dst.buffer != next) continue;
        if (l->first < 0) l->first = i;
        l->last = i;
        if (s->combine != (i == l->first ? COMBINE_SET : COMBINE_ADD) ||
            (i == l->first && !plain_rows(p, &s->dst, l->axis)) ||
            !access_equal(p, &s->dst, &body_stmt(&c->body, l->first)->dst) ||
            !add_term(c, l, i, s->nops - 1))
            return false;
        c->part[i] = PART_UPDATE;
    }
    return l->first >= 0 && l->scale.item >= 0 && l->nadded > 0;
}

uint64_t chunk_renamed(const struct chunking *c, const struct reader *r, uint64_t axes) {
    const struct linear *l = &c->linear[r->state];
    int ndims = c->body.p->buffer[c->body.r->state[l->state].next].ndims;
    uint64_t out = axes;
    for (int d = 0; d < ndims; d++) out &= ~(UINT64_C(1) << l->axis[d]);
    for (int d = 0; d < ndims; d++)
        if (axes >> l->axis[d] & 1) out |= UINT64_C(1) << r->axis[d];
    return out;
}

uint32_t chunk_inner(const struct product *x, uint64_t reduced, const struct chunking *c,
                     const struct reader *r) {
    uint32_t mask = 0;
    for (int k = 0; k < x->f.n; k++) {
        uint64_t axes = r ? chunk_renamed(c, r, x->f.axes[k]) : x->f.axes[k];
        if (axes & reduced) mask |= UINT32_C(1) << k;
    }
    return mask;
}

/* Factors of these axes alone. */
uint32_t chunk_factors(const struct chunking *c, const struct product *x, uint64_t axes,
                       const struct reader *r) {
    uint32_t mask = 0;
    for (int k = 0; k < x->f.n; k++) {
        uint64_t own = r ? chunk_renamed(c, r, x->f.axes[k]) : x->f.axes[k];
        if (!(own & ~axes)) mask |= UINT32_C(1) << k;
    }
    return mask;
}

/* The factors that are scaled beforehand: one, with all that have no other axes; so that few are
 * left, then so that few elements are. */
uint32_t chunk_scaled(const struct chunking *c, const struct linear *l, const struct product *b,
                      uint64_t *axes) {
    uint64_t scale = l->scale.f.n ? l->scale_axes : 0;
    uint32_t best = 0;
    double least = 0;
    int fewest = 0;
    for (int k = 0; k < b->f.n; k++) {
        uint32_t with = chunk_factors(c, b, b->f.axes[k] | scale, NULL);
        int left = b->f.n - __builtin_popcount(with);
        double n = rw_points(c->body.p, b->f.axes[k] | scale);
        if (best && (left > fewest || (left == fewest && n >= least))) continue;
        best = with;
        least = n;
        fewest = left;
        *axes = b->f.axes[k] | scale;
    }
    return best;
}

/* ---- who reads one ---- */

static bool find_reader(struct chunking *c, int item, struct reader *r) {
    const struct program *p = c->body.p;
    const struct stmt *s = body_stmt(&c->body, item);
    int read;
    *r = (struct reader){.item = item};
    if (s->combine != COMBINE_ADD || !product_of(c, item, s->nops - 1, &r->own, &read) || read < 0)
        return false;
    const struct access *a = &s->read[read];
    int state = state_of(c, a->buffer, &r->next);
    const struct linear *l = &c->linear[r->state = state];
    if (!plain_rows(p, a, r->axis) || (r->next && item < l->last)) return false;
    uint64_t kept = rw_access_axes(p, &s->dst), mine = s->axes;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (l->scale_axes >> l->axis[d] & 1 && !(kept >> r->axis[d] & 1)) return false;
    for (int k = 0; k < l->nadded; k++) {
        uint64_t more = chunk_axes(&l->added[k], ~UINT32_C(0));
        for (int d = 0; d < p->buffer[a->buffer].ndims; d++) more &= ~(UINT64_C(1) << l->axis[d]);
        if (more & mine) return false;
        more = chunk_axes(&r->own, ~UINT32_C(0)) |
               chunk_renamed(c, r, chunk_axes(&l->added[k], ~UINT32_C(0)));
        if (mine & ~kept & ~more) return false; /* it would be counted less often */
    }
    c->current |= !r->next;
    return p->buffer[s->dst.buffer].type == p->buffer[a->buffer].type;
}

/* ---- the order ---- */

static bool touches(const struct stmt *s, int buffer) {
    return s->dst.buffer == buffer || stmt_reads(s, buffer);
}

/* May the later one not go before the other? */
static bool waits(const struct stmt *later, const struct stmt *s) {
    bool sums = later->dst.buffer == s->dst.buffer && later->combine == COMBINE_ADD &&
                s->combine == COMBINE_ADD;
    return stmt_reads(later, s->dst.buffer) || stmt_reads(s, later->dst.buffer) ||
           (touches(s, later->dst.buffer) && !sums);
}

static void find_order(struct chunking *c) {
    for (int i = 0; i < c->body.r->nitems; i++)
        for (int k = 0; k < i && c->part[i] == PART_FIRST; k++)
            if ((c->part[k] == PART_LATER || c->part[k] == PART_READER) &&
                waits(body_stmt(&c->body, i), body_stmt(&c->body, k)))
                c->part[i] = PART_LATER;
}

/* What scales a state or is added to it is there before any state is. */
static bool comes_first(const struct chunking *c, const struct product *x) {
    const struct stmt *s = x->item < 0 ? NULL : body_stmt(&c->body, x->item);
    for (int r = 0; s && r < s->nreads; r++)
        for (int i = 0; i < c->body.r->nitems; i++)
            if (body_stmt(&c->body, i)->dst.buffer == s->read[r].buffer &&
                c->part[i] != PART_FIRST && c->part[i] != PART_UPDATE)
                return false;
    return true;
}

bool chunk_find(struct program *p, int at, struct chunking *c) {
    *c = (struct chunking){.row = -1};
    if (!body_open(p, at, &c->body) || !body_is_plain(&c->body)) return false;
    const struct axis *steps = &p->axis[c->body.r->axis];
    int nitems = c->body.r->nitems;
    c->steps = steps->extent;
    c->open = steps->size > 0;
    if (steps->group || steps->first || (c->open && c->body.r->reverse)) return false;
    c->part = arena_array(&p->arena, (size_t)nitems + 1, sizeof *c->part);
    c->nlinear = c->body.r->nstates;
    c->linear = arena_array(&p->arena, (size_t)c->nlinear, sizeof *c->linear);
    c->reader = arena_array(&p->arena, (size_t)nitems + 1, sizeof *c->reader);
    if (!follows_steps(c)) return false;
    for (int k = 0; k < c->nlinear; k++) {
        c->linear[k].state = k;
        if (!find_linear(c, &c->linear[k])) return false;
    }
    for (int i = 0; i < nitems; i++) {
        const struct stmt *s = body_stmt(&c->body, i);
        if (c->part[i] == PART_UPDATE || state_read(c, s, s->nops - 1) < 0) continue;
        if (!find_reader(c, i, &c->reader[c->nreaders++])) return false;
        c->part[i] = PART_READER;
    }
    find_order(c);
    bool first = true;
    for (int k = 0; k < c->nlinear; k++) {
        first &= comes_first(c, &c->linear[k].scale);
        for (int x = 0; x < c->linear[k].nadded; x++)
            first &= comes_first(c, &c->linear[k].added[x]);
    }
    return first;
}

/* ---- the price ---- */

/* In cycles of the machine (struct rank_cycles). Its defaults are fitted to retention of 16², 32²
 * and 64² states in chunks of 4 to 32 steps on AVX-512 (docs/bench.md). */

static double points(const struct chunking *c, uint64_t axes) {
    return rw_points(c->body.p, axes & ~(UINT64_C(1) << c->body.r->axis));
}

/* The axes of the state's dimensions there, of which a varies with some. */
static uint64_t scaled_axes(const struct chunking *c, const struct reader *r) {
    const struct linear *l = &c->linear[r->state];
    uint64_t axes = 0;
    int ndims = c->body.p->buffer[c->body.r->state[l->state].next].ndims;
    for (int d = 0; d < ndims; d++)
        if (l->scale_axes >> l->axis[d] & 1) axes |= UINT64_C(1) << r->axis[d];
    return axes;
}

static double reader_price(const struct chunking *c, const struct reader *r, double length) {
    const struct program *p = c->body.p;
    const struct rank_cycles *y = &c->cycles;
    const struct linear *l = &c->linear[r->state];
    const struct stmt *s = body_stmt(&c->body, r->item);
    double whole = y->bring * (double)p->buffer[c->body.r->state[r->state].next].elements,
           price = 0;
    uint64_t dst = rw_access_axes(p, &s->dst), reduced = s->axes & ~dst, scaled = scaled_axes(c, r);
    if (length == 1) return whole + y->product * points(c, s->axes);
    price = whole / length + y->product * points(c, s->axes);
    if (l->scale.f.n) price += 2 * y->bring * points(c, chunk_axes(&r->own, ~UINT32_C(0)) | scaled);
    for (int k = 0; k < l->nadded; k++) {
        const struct product *b = &l->added[k];
        uint32_t mine = chunk_inner(&r->own, reduced, NULL, NULL),
                 theirs = chunk_inner(b, reduced, c, r);
        uint64_t inner = chunk_axes(&r->own, mine) | chunk_renamed(c, r, chunk_axes(b, theirs)),
                 outer = chunk_axes(&r->own, ~mine) | chunk_renamed(c, r, chunk_axes(b, ~theirs));
        uint64_t kept = (inner & ~reduced) | scaled;
        price += length * (y->product * points(c, inner) + 2 * y->bring * points(c, kept)) +
                 y->cut * length / 2 * points(c, kept | outer | dst);
    }
    return price;
}

/* What is added for all steps of a chunk is a product that leaves the state in registers; but where
 * as much is brought for each step as the state has, it goes over the state in each. */
static double linear_price(const struct chunking *c, const struct linear *l, double length) {
    const struct program *p = c->body.p;
    const struct rank_cycles *y = &c->cycles;
    double whole = y->bring * (double)p->buffer[c->body.r->state[l->state].next].elements;
    double price = 2 * whole / length;
    for (int k = 0; k < l->nadded; k++) {
        const struct product *b = &l->added[k];
        uint64_t axes = 0;
        uint32_t one = chunk_scaled(c, l, b, &axes);
        price += y->product * points(c, body_stmt(&c->body, b->item)->axes);
        if (length > 1 && chunk_apart(l, one)) price += 2 * y->bring * points(c, axes);
        if (length > 1 && __builtin_popcount(one) == b->f.n) price += 2 * whole;
    }
    if (length > 1 && l->scale.f.n)
        price += y->cut * length * length / 2 * points(c, l->scale_axes);
    return price;
}

/* That a chunk is written as (chunk_write.c), about. */
static int statements(const struct chunking *c) {
    int n = 0;
    for (int i = 0; i < c->body.r->nitems; i++)
        n += c->part[i] == PART_FIRST || c->part[i] == PART_LATER;
    for (int k = 0; k < c->nlinear; k++) {
        const struct linear *l = &c->linear[k];
        n += 1 + (l->scale.f.n ? 4 : 0);
        for (int b = 0; b < l->nadded; b++) {
            uint64_t axes;
            n += 1 + chunk_apart(l, chunk_scaled(c, l, &l->added[b], &axes));
        }
    }
    for (int k = 0; k < c->nreaders; k++) {
        const struct linear *l = &c->linear[c->reader[k].state];
        n += 1 + (l->scale.f.n > 0) + 4 * l->nadded;
    }
    return n;
}

/* In cycles, of one step: as it stands, and in chunks of this length. */
static double chunk_price(const struct chunking *c, int64_t length) {
    double price = 0;
    for (int k = 0; k < c->nlinear; k++) price += linear_price(c, &c->linear[k], (double)length);
    for (int k = 0; k < c->nreaders; k++) price += reader_price(c, &c->reader[k], (double)length);
    if (length > 1) price += c->cycles.statement * statements(c) / (double)length;
    return price;
}

static int64_t choose(struct chunking *c, struct decider *d) {
    struct program *p = c->body.p;
    struct candidate at[MOST_STEPS];
    int64_t length[MOST_STEPS] = {1};
    int n = 1, best = 0;
    at[0] = (struct candidate){"one by one", (double)c->steps * chunk_price(c, 1), NULL};
    for (int64_t l = 2; l < MOST_STEPS && 2 * l <= c->steps; l++) {
        double rest = c->open ? (double)(l - 1) / 2 : (double)(c->steps % l);
        if (rest > 0 && l & (l - 1)) continue; /* whole vectors, or nothing is left */
        double cost = ((double)c->steps - rest) * chunk_price(c, l) + rest * chunk_price(c, 1);
        length[n] = l;
        at[n++] = (struct candidate){arena_printf(&p->arena, "%d at once", (int)l), cost, NULL};
    }
    for (int k = 1; k < n; k++)
        if (at[k].cost < at[best].cost) best = k;
    char *subject =
        arena_printf(&p->arena, "steps of '%s'", p->buffer[c->body.r->state[0].current].name);
    struct question q = {QUESTION_REWRITE, subject, n, 0, at, NULL};
    if (n == 1) return 1;
    return length[d ? decide(d, &q) : best];
}

int chunk_steps(struct program *p, const struct rank_cycles *cycles, enum rewrite_effect floats,
                struct decider *d) {
    int changed = 0;
    struct stream stream = {.counted = false};
    const char *why;
    bool is_stream = p->nsizes > 0 && program_stream(&p->arena, p, &stream, &why);
    for (int at = 0; at < p->nitems; at++) {
        struct chunking c;
        /* A stream that counts its steps begins its loops there, in the middle of a chunk. */
        if (!chunk_find(p, at, &c) || (c.open && stream.counted)) continue;
        c.cycles = *cycles;
        /* In a stream the chunks lie where the caller cuts it: other cuts, other roundings. */
        bool may = true, cut = c.open && is_stream;
        for (int k = 0; k < c.nlinear; k++)
            may &= floats >= (cut ? REWRITE_ROUNDS : REWRITE_REORDERS) ||
                   !type_is_float(p->buffer[c.body.r->state[k].next].type);
        c.length = may ? choose(&c, d) : 1;
        if (c.length == 1 || !chunk_write(&c)) continue;
        changed++;
        at += c.open || c.steps % c.length > 0; /* the rest stays one by one */
    }
    return changed;
}
