/* Is a rewritten program the same? Random evaluation at full size: single elements of what the
 * changed statements write are computed in both programs from random values of what they read
 * (Schwartz 1980, Zippel 1979).
 *
 * Over the field of 2^61 - 1 a sum of products is exact, whatever the order; functions that the
 * field does not have (exp, rounding, narrowing casts) are keyed hashes of their arguments; max,
 * min and comparisons take elements as integers around zero. Where all values are integers, and for
 * rewrites that must keep every bit, the same is computed as the machine would, on random and on
 * extreme values: wrapping and the order of casts are seen there. */
#include "mapper/rewrite_int.h"

#include "ir/interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_SAMPLES = 3,
    FIELD_SAMPLES = 32,
    VALUE_SAMPLES = 256,
    CHUNK = 32,
    SPECIAL_TRIALS = 4,
    VALUE_TRIALS = 64
};
static const uint64_t prime = (UINT64_C(1) << 61) - 1;
static const int64_t visits_in_all = 100000, visits_of_one = 3000000;

/* ---- what changed ---- */

struct window { /* items from .. to - 1 of each program differ; before and after they agree */
    int from, to[2];
};

struct both {
    const struct program *p[2];
    int *axis; /* of program 0 → of program 1; -1: gone */
    struct window w;
};

static bool row_same(const struct both *x, const int64_t *a, const int64_t *b) {
    int n = x->p[0]->naxes, m = x->p[1]->naxes, other = 0, mine = 0;
    for (int k = 0; k < n; k++) {
        if (a[k] == 0) continue;
        if (x->axis[k] < 0 || b[x->axis[k]] != a[k]) return false;
        mine++;
    }
    for (int k = 0; k < m; k++) other += b[k] != 0;
    return mine == other && a[n] == b[m];
}

static bool value_same(union value a, union value b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool accesses_same(const struct both *x, const struct access *a, const struct access *b) {
    if (a->buffer != b->buffer || a->has_fill != b->has_fill) return false;
    if (a->has_fill && !value_same(a->fill, b->fill)) return false;
    for (int d = 0; d < x->p[0]->buffer[a->buffer].ndims; d++)
        if (!row_same(x, rw_row(x->p[0], a, d), rw_row(x->p[1], b, d))) return false;
    return true;
}

static bool op_same(const struct both *x, const struct op *a, const struct op *b) {
    if (a->code != b->code || a->type != b->type) return false;
    if (a->code == OP_READ) return a->read == b->read;
    if (a->code == OP_AXIS) return x->axis[a->axis] == b->axis;
    if (a->code == OP_LITERAL) return value_same(a->value, b->value);
    for (int k = 0; k < op_info[a->code].arity; k++)
        if (a->arg[k] != b->arg[k]) return false;
    return true;
}

static bool stmts_same(const struct both *x, const struct stmt *a, const struct stmt *b) {
    if (a->combine != b->combine || a->nreads != b->nreads || a->nops != b->nops ||
        a->nwhere != b->nwhere || a->scope != b->scope || !accesses_same(x, &a->dst, &b->dst))
        return false;
    for (int k = 0; k < a->nreads; k++)
        if (!accesses_same(x, &a->read[k], &b->read[k])) return false;
    for (int k = 0; k < a->nops; k++)
        if (!op_same(x, &a->op[k], &b->op[k])) return false;
    for (int k = 0; k < a->nwhere; k++)
        if (!row_same(x, a->where[k].coef, b->where[k].coef)) return false;
    return true;
}

/* Recurrences and calls are never rewritten: both programs have them at their place. */
static bool items_same(const struct both *x, const struct item *a, const struct item *b) {
    if (a->kind != b->kind) return false;
    return a->kind != ITEM_STMT || stmts_same(x, &x->p[0]->stmt[a->stmt], &x->p[1]->stmt[b->stmt]);
}

static bool buffers_same(const struct buffer *a, const struct buffer *b) {
    return !strcmp(a->name, b->name) && a->type == b->type && a->role == b->role &&
           a->ndims == b->ndims &&
           (a->ndims == 0 || !memcmp(a->extent, b->extent, (size_t)a->ndims * sizeof *a->extent));
}

static int axis_named(const struct program *p, const char *name) {
    for (int a = 0; a < p->naxes; a++)
        if (!strcmp(p->axis[a].name, name)) return a;
    return -1;
}

static void find_window(struct arena *arena, struct both *x) {
    const struct program *p = x->p[0], *q = x->p[1];
    x->axis = arena_array(arena, (size_t)p->naxes + 1, sizeof *x->axis);
    for (int a = 0; a < p->naxes; a++) {
        x->axis[a] = axis_named(q, p->axis[a].name);
        if (x->axis[a] >= 0 && q->axis[x->axis[a]].extent != p->axis[a].extent) x->axis[a] = -1;
    }
    int from = 0, n = p->nitems, m = q->nitems;
    while (from < n && from < m && items_same(x, &p->item[from], &q->item[from])) from++;
    while (n > from && m > from && items_same(x, &p->item[n - 1], &q->item[m - 1])) n--, m--;
    x->w = (struct window){from, {n, m}};
}

/* Statements before that fill what the changed ones read of temporaries belong to the window too.
 */
static void reach_writers(struct both *x) {
    const struct program *p = x->p[0];
    for (int at = x->w.from; at-- > 0;) {
        const struct item *item = &p->item[at];
        if (item->kind != ITEM_STMT) return;
        int b = p->stmt[item->stmt].dst.buffer;
        if (p->buffer[b].role == ROLE_TEMP &&
            items_touch(p, p->item + x->w.from, x->w.to[0] - x->w.from, b))
            x->w.from = at;
    }
}

/* The program's changed statements alone. */
static struct program view_of(const struct both *x, int side) {
    struct program view = *x->p[side];
    view.item += x->w.from;
    view.nitems = x->w.to[side] - x->w.from;
    return view;
}

static bool written(const struct program *view, int buffer) {
    for (int i = 0; i < view->nitems; i++)
        if (view->item[i].kind != ITEM_STMT || view->stmt[view->item[i].stmt].dst.buffer == buffer)
            return true;
    return false;
}

static bool seen_outside(const struct both *x, int side, int buffer) {
    const struct program *p = x->p[side];
    if (buffer >= x->p[0]->nbuffers) return false;
    if (p->buffer[buffer].role != ROLE_TEMP) return true;
    int to = x->w.to[side];
    return items_touch(p, p->item, x->w.from, buffer) ||
           items_touch(p, p->item + to, p->nitems - to, buffer);
}

/* ---- the field ---- */

struct trial {
    uint64_t seed;
    bool
        integers; /* all values are: casts keep them, the other evaluation sees what they cut off */
    int trial;    /* of real values: which kind of numbers */
};

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

static uint64_t field_mul(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b % prime);
}

static uint64_t field_power(uint64_t a, uint64_t e) {
    uint64_t r = 1;
    for (; e; e >>= 1, a = field_mul(a, a))
        if (e & 1) r = field_mul(r, a);
    return r;
}

static uint64_t field_of(int64_t i) {
    int64_t r = i % (int64_t)prime;
    return (uint64_t)(r < 0 ? r + (int64_t)prime : r);
}

static int64_t centred(union value v) {
    uint64_t x = (uint64_t)v.i;
    return x > prime / 2 ? (int64_t)x - (int64_t)prime : (int64_t)x;
}

static union value element(uint64_t x) {
    return (union value){.i = (int64_t)x};
}

static union value field_literal(void *user, enum type t, union value v) {
    (void)user;
    if (!type_is_float(t)) return element(field_of(v.i));
    if (fabs(v.f) < 0x1p53 && v.f == (double)(int64_t)v.f) return element(field_of((int64_t)v.f));
    if (isnan(v.f)) return element(prime / 3);
    if (isinf(v.f)) return element(v.f > 0 ? prime / 2 : prime / 2 + 1);
    int e;
    int64_t m = (int64_t)ldexp(frexp(v.f, &e), 53);
    e -= 53;
    uint64_t two = e < 0 ? field_power(2, prime - 2) : 2;
    return element(field_mul(field_of(m), field_power(two, (uint64_t)(e < 0 ? -e : e))));
}

static union value field_hash(const struct trial *f, enum opcode code, enum type to, int n,
                              const union value *arg) {
    uint64_t h = mix(f->seed, (uint64_t)code * 64 + (uint64_t)to);
    for (int k = 0; k < n; k++) h = mix(h, (uint64_t)arg[k].i);
    return element(to == TYPE_BOOL ? h & 1 : h % prime);
}

/* Does a cast keep every value? */
static bool cast_keeps(const struct trial *f, enum type to, enum type from) {
    if (f->integers || type_is_float(to)) return true;
    if (type_is_float(from)) return false;
    if (type_is_signed(to) == type_is_signed(from)) return type_size(to) >= type_size(from);
    return type_is_signed(to) && type_size(to) > type_size(from);
}

/* Integer operations that the field lacks: on small numbers, as positions are, as they are. */
static union value field_integer(const struct trial *f, enum opcode code, enum type to,
                                 const union value *arg) {
    int64_t a = centred(arg[0]), b = centred(arg[1]);
    union value small[2] = {{.i = a}, {.i = b}};
    if (llabs(a) < INT64_C(1) << 31 && llabs(b) < INT64_C(1) << 31)
        return element(field_of(op_eval(code, TYPE_I64, TYPE_I64, small).i));
    return field_hash(f, code, to, 2, arg);
}

static union value field_logic(const struct trial *f, enum opcode code, enum type to,
                               const union value *arg) {
    if (to != TYPE_BOOL) return field_hash(f, code, to, op_info[code].arity, arg);
    bool a = arg[0].i != 0, b = op_info[code].arity > 1 && arg[1].i != 0;
    return element(code == OP_AND ? a && b : code == OP_OR ? a || b : code == OP_XOR ? a != b : !a);
}

static union value field_eval(void *user, enum opcode code, enum type to, enum type from,
                              const union value *arg) {
    const struct trial *f = user;
    uint64_t a = (uint64_t)arg[0].i, b = op_info[code].arity > 1 ? (uint64_t)arg[1].i : 0;
    int64_t ca = centred(arg[0]), cb = op_info[code].arity > 1 ? centred(arg[1]) : 0;
    switch (code) {
    case OP_ADD:
        return element((a + b) % prime);
    case OP_SUB:
        return element((a + prime - b) % prime);
    case OP_NEG:
        return element((prime - a) % prime);
    case OP_MUL:
        return element(field_mul(a, b));
    case OP_DIV:
        return type_is_float(to) || f->integers ? element(field_mul(a, field_power(b, prime - 2)))
                                                : field_integer(f, code, to, arg);
    case OP_MOD:
    case OP_SHL:
    case OP_SHR:
        return field_integer(f, code, to, arg);
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_NOT:
        return field_logic(f, code, to, arg);
    case OP_MAX:
        return ca >= cb ? arg[0] : arg[1];
    case OP_MIN:
        return ca <= cb ? arg[0] : arg[1];
    case OP_CLIP: {
        union value low = ca >= cb ? arg[0] : arg[1];
        return centred(low) <= centred(arg[2]) ? low : arg[2];
    }
    case OP_SELECT:
        return arg[0].i ? arg[1] : arg[2];
    case OP_EQ:
        return element(a == b);
    case OP_NE:
        return element(a != b);
    case OP_LT:
        return element(ca < cb);
    case OP_LE:
        return element(ca <= cb);
    case OP_GT:
        return element(ca > cb);
    case OP_GE:
        return element(ca >= cb);
    case OP_CAST:
        if (to == TYPE_BOOL) return element(a != 0);
        return cast_keeps(f, to, from) ? arg[0] : field_hash(f, code, to, 1, arg);
    default:
        return field_hash(f, code, to, op_info[code].arity, arg);
    }
}

static uint64_t place_hash(const struct trial *f, const struct program *p, int buffer,
                           int64_t element) {
    uint64_t h = mix(f->seed, (uint64_t)element);
    for (const char *c = p->buffer[buffer].name; *c; c++) h = mix(h, (unsigned char)*c);
    return h;
}

static union value field_input(void *user, const struct program *p, int buffer, int64_t at) {
    uint64_t h = place_hash(user, p, buffer, at);
    return element(p->buffer[buffer].type == TYPE_BOOL ? h & 1 : h % prime);
}

/* ---- as a machine computes ---- */

static union value real_eval(void *user, enum opcode code, enum type to, enum type from,
                             const union value *arg) {
    (void)user;
    return op_eval(code, to, from, arg);
}

static union value real_literal(void *user, enum type t, union value v) {
    (void)user;
    (void)t;
    return v;
}

/* Trials: any value, the lowest, the highest, small ones, then any again. */
static union value real_input(void *user, const struct program *p, int buffer, int64_t at) {
    const struct trial *f = user;
    enum type t = p->buffer[buffer].type;
    uint64_t h = mix(place_hash(f, p, buffer, at), (uint64_t)f->trial);
    if (type_is_float(t)) {
        double v = (double)(int64_t)h * 0x1p-60;
        return (union value){.f = type_round(t, f->trial == 3 ? round(v) : v * 100)};
    }
    int64_t low, high;
    type_limits(t, &low, &high);
    if (f->trial == 1) return (union value){.i = low};
    if (f->trial == 2) return (union value){.i = high};
    return (union value){.i = type_wrap(t, f->trial == 3 ? h % 7 - 3 : h)};
}

/* ---- comparing ---- */

static bool all_integers(const struct program *view) {
    for (int i = 0; i < view->nitems; i++) {
        if (view->item[i].kind != ITEM_STMT) return false;
        const struct stmt *s = &view->stmt[view->item[i].stmt];
        if (type_is_float(view->buffer[s->dst.buffer].type)) return false;
        for (int o = 0; o < s->nops; o++)
            if (type_is_float(s->op[o].type)) return false;
    }
    return true;
}

/* One sample in four is any element; the others are elements that a changed statement writes, those
 * of both programs in turn: near the corners of its domain, at the borders of its constraints,
 * anywhere in it. */
static int64_t sample_place(const struct program *const view[2], int buffer, int k, uint64_t seed) {
    const struct buffer *b = &view[0]->buffer[buffer];
    uint64_t h = mix(mix(seed, (uint64_t)buffer), (uint64_t)k);
    const struct program *p = view[k & 1];
    for (int tries = 0; k % 4 != 3 && tries < p->nitems; tries++) {
        const struct item *item = &p->item[(h + (uint64_t)tries) % (uint64_t)p->nitems];
        if (item->kind != ITEM_STMT || p->stmt[item->stmt].dst.buffer != buffer) continue;
        int64_t at = stmt_place(p, &p->stmt[item->stmt], h);
        if (at >= 0) return at;
    }
    return (int64_t)(h >> 8) % b->elements;
}

struct comparison {
    const struct program *view[2];
    struct arithmetic over;
    int64_t visits, most; /* most: of a buffer, about */
    struct text *why;
};

__attribute__((format(printf, 2, 0))) static bool refuse(struct text *why, const char *text,
                                                         const char *name) {
    if (why) text_printf(why, text, name);
    return false;
}

/* Elements first .. n - 1 of the samples, in both programs; what they share is computed once. */
static bool compare_samples(struct comparison *c, int buffer, int first, int n) {
    const struct buffer *b = &c->view[0]->buffer[buffer];
    const struct trial *f = c->over.user;
    int64_t at[CHUNK];
    union value v[2][CHUNK];
    for (int k = first; k < n; k++) at[k - first] = sample_place(c->view, buffer, k, f->seed);
    n -= first;
    for (int side = 0; side < 2; side++)
        if (!program_sample_over(c->view[side], &c->over, buffer, at, n, v[side]))
            return refuse(c->why, "elements of '%s' take too many steps to compute", b->name);
    if (memcmp(v[0], v[1], (size_t)n * sizeof **v) != 0)
        return refuse(c->why, "an element of '%s' comes out differently", b->name);
    return true;
}

/* A few elements decide over a field. Values as they are have rare cases (carries): many more. */
static bool compare_buffer(struct comparison *c, int buffer) {
    const struct buffer *b = &c->view[0]->buffer[buffer];
    int most = c->over.exact ? FIELD_SAMPLES : VALUE_SAMPLES;
    c->visits = 0;
    if (b->elements == 0) return true;
    for (int k = 0; k < most && (k == 0 || c->visits < c->most);) {
        int next = k == 0 ? FIRST_SAMPLES : k + CHUNK < most ? k + CHUNK : most;
        if (!compare_samples(c, buffer, k, next)) return false;
        k = next;
    }
    return true;
}

static bool compare(const struct both *x, const struct arithmetic *over, int64_t most,
                    int64_t *visits, struct text *why) {
    struct program view[2] = {view_of(x, 0), view_of(x, 1)};
    struct comparison c = {{&view[0], &view[1]}, *over, 0, most, why};
    c.over.visits = &c.visits;
    for (int b = 0; b < x->p[0]->nbuffers; b++) {
        if (!written(&view[0], b) && !written(&view[1], b)) continue;
        if (!seen_outside(x, 0, b) && !seen_outside(x, 1, b)) continue;
        if (!compare_buffer(&c, b)) return false;
        *visits += c.visits;
    }
    return true;
}

/* What both programs see must be declared alike; what only the new one has is its own. */
static bool declarations_agree(const struct both *x, struct text *why) {
    const struct program *p = x->p[0], *q = x->p[1];
    if (q->nbuffers < p->nbuffers) return refuse(why, "%s", "a buffer is gone");
    for (int b = 0; b < q->nbuffers; b++) {
        bool own = b >= p->nbuffers, inside = own || !seen_outside(x, 0, b);
        if (own && q->buffer[b].role != ROLE_TEMP)
            return refuse(why, "'%s' is new, and no temporary", q->buffer[b].name);
        if (!inside && !buffers_same(&p->buffer[b], &q->buffer[b]))
            return refuse(why, "'%s' is declared differently", q->buffer[b].name);
    }
    return true;
}

/* The changed statements as a program of their own: what they find there counts as set. */
static bool well_formed(struct arena *arena, const struct both *x, struct text *why) {
    struct program alone = view_of(x, 1);
    struct diags diags;
    diags_init(&diags);
    alone.source.text = NULL;
    alone.buffer = arena_copy(arena, alone.buffer, (size_t)alone.nbuffers * sizeof *alone.buffer);
    alone.item = arena_copy(arena, alone.item, (size_t)alone.nitems * sizeof *alone.item);
    alone.stmt = arena_array(arena, (size_t)alone.nitems + 1, sizeof *alone.stmt);
    alone.nstmts = 0;
    for (int b = 0; b < x->p[0]->nbuffers; b++)
        if (seen_outside(x, 1, b)) alone.buffer[b].role = ROLE_INOUT;
    for (int i = 0; i < alone.nitems; i++) {
        if (alone.item[i].kind != ITEM_STMT) return refuse(why, "%s", "a recurrence was changed");
        alone.stmt[alone.nstmts] = x->p[1]->stmt[alone.item[i].stmt];
        alone.item[i].stmt = alone.nstmts++;
    }
    bool ok = program_verify(&alone, &diags);
    if (!ok)
        refuse(why, "it is malformed: %s", diags.errors > 0 ? diags.at[0].text : "no reason given");
    diags_free(&diags);
    return ok;
}

bool rewrite_prove(const struct rewrite *r, const struct program *before,
                   const struct program *after, struct text *why) {
    struct arena arena;
    arena_init(&arena);
    struct both x = {.p = {before, after}};
    find_window(&arena, &x);
    if (r->by_ranges) reach_writers(&x);
    struct program view[2] = {view_of(&x, 0), view_of(&x, 1)};
    bool integers = all_integers(&view[0]) && all_integers(&view[1]);
    struct trial f = {.seed = 0x51a5, .integers = integers};
    struct arithmetic field = {.eval = field_eval,
                               .literal = field_literal,
                               .input = field_input,
                               .user = &f,
                               .exact = true,
                               .most_visits = visits_of_one};
    struct arithmetic real = {.eval = real_eval,
                              .literal = real_literal,
                              .input = real_input,
                              .user = &f,
                              .most_visits = visits_of_one};
    int64_t visits = 0;
    bool ok = declarations_agree(&x, why);
    ok = ok && well_formed(&arena, &x, why);
    if (ok && !r->by_values) ok = compare(&x, &field, visits_in_all, &visits, why);
    /* what the field has decided needs few values: only wrapping and casts are left */
    int64_t most = r->by_values ? visits_in_all : visits_in_all / SPECIAL_TRIALS;
    visits = 0;
    for (; ok && (r->by_values || integers) && f.trial < VALUE_TRIALS &&
           (f.trial < SPECIAL_TRIALS || visits < (r->by_ranges ? 4 : 1) * visits_in_all);
         f.trial++)
        ok = compare(&x, &real, most, &visits, why);
    arena_free(&arena);
    return ok;
}
