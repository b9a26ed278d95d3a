/* Building changed programs, for the rewrites. */
#include "ir/lexer.h"
#include "mapper/rewrite_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- names ---- */

static bool taken(const struct program *p, const char *name) {
    for (int a = 0; a < p->naxes; a++)
        if (!strcmp(p->axis[a].name, name)) return true;
    for (int k = 0; k < p->nparams; k++)
        if (!strcmp(p->param[k].name, name)) return true;
    return is_keyword(name, strlen(name)) || program_buffer(p, name) >= 0;
}

static const char *fresh(struct program *p, const char *base) {
    char *name = arena_strdup(&p->arena, base);
    for (char *c = name; *c; c++)
        if (*c == '\'') *c = '_';
    const char *root = name;
    for (int k = 2; taken(p, name); k++) name = arena_printf(&p->arena, "%s_%d", root, k);
    return name;
}

/* ---- declarations ---- */

/* Axes of recurrences stay the last ones (ir/steps.h). */
int rw_axis(struct program *p, const char *base, int64_t extent) {
    int at = p->naxes;
    while (at > 0 && p->axis[at - 1].sequential) at--;
    return extent < 1 || extent > INT64_C(1) << 48
               ? -1
               : program_add_axis(p, fresh(p, base), extent, at);
}

int rw_temporary(struct program *p, const char *base, enum type t, int ndims,
                 const int64_t *extent) {
    struct buffer b = {.type = t, .role = ROLE_TEMP, .ndims = ndims, .elements = 1};
    if (ndims > MAX_DIMS) return -1;
    for (int d = 0; d < ndims; d++)
        if (__builtin_mul_overflow(b.elements, extent[d], &b.elements) || b.elements > INT64_C(1)
                                                                                           << 50)
            return -1;
    b.name = fresh(p, base);
    b.extent = arena_copy(&p->arena, extent, (size_t)ndims * sizeof *extent);
    struct buffer *grown = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *grown);
    memcpy(grown, p->buffer, (size_t)p->nbuffers * sizeof *grown);
    grown[p->nbuffers] = b;
    p->buffer = grown;
    return p->nbuffers++;
}

bool rw_rows_equal(const struct program *p, const struct access *a, const struct access *b) {
    const struct buffer *x = &p->buffer[a->buffer], *y = &p->buffer[b->buffer];
    return x->type == y->type && x->ndims == y->ndims &&
           !memcmp(x->extent, y->extent, sizeof *x->extent * (size_t)x->ndims) &&
           !memcmp(a->coef, b->coef, sizeof *a->coef * (size_t)x->ndims * ((size_t)p->naxes + 1));
}

struct access rw_access(struct program *p, int buffer) {
    struct access a = {.buffer = buffer};
    size_t n = (size_t)p->buffer[buffer].ndims * ((size_t)p->naxes + 1);
    a.coef = arena_array(&p->arena, n + 1, sizeof *a.coef);
    return a;
}

int64_t *rw_row(const struct program *p, const struct access *a, int dim) {
    return a->coef + (size_t)dim * ((size_t)p->naxes + 1);
}

struct access rw_indexed(struct program *p, int buffer, const int *axis) {
    struct access a = rw_access(p, buffer);
    for (int d = 0; d < p->buffer[buffer].ndims; d++) rw_row(p, &a, d)[axis[d]] = 1;
    return a;
}

struct access rw_copy(struct program *p, const struct access *a) {
    struct access c = *a;
    size_t n = (size_t)p->buffer[a->buffer].ndims * ((size_t)p->naxes + 1);
    c.coef = arena_copy(&p->arena, a->coef, n * sizeof *c.coef);
    return c;
}

bool rw_temporary_of(struct program *p, const char *base, enum type t, const int *axis, int n,
                     struct access *out) {
    int64_t extent[MAX_DIMS];
    if (n > MAX_DIMS) return false;
    for (int d = 0; d < n; d++) extent[d] = p->axis[axis[d]].extent;
    if (n == 0) extent[0] = 1;
    int b = rw_temporary(p, base, t, n ? n : 1, extent);
    if (b < 0) return false;
    *out = n ? rw_indexed(p, b, axis) : rw_access(p, b);
    return true;
}

/* Axis a is now the value of the row: coef[a] of naxes + 1 numbers. */
static void rw_substitute(const struct program *p, struct access *a, int axis, const int64_t *row) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t *at = rw_row(p, a, d), c = at[axis];
        at[axis] = 0;
        for (int k = 0; k <= p->naxes; k++) at[k] += c * row[k];
    }
}

int rw_axes(uint64_t mask, int *axis) {
    int n = 0;
    for (int a = 0; a < MAX_AXES; a++)
        if (mask >> a & 1) axis[n++] = a;
    return n;
}

/* ---- statements ---- */

struct draft draft_open(struct program *p, const struct stmt *like, enum combiner combine,
                        struct access dst) {
    return (struct draft){.p = p,
                          .s = {.combine = combine,
                                .dst = dst,
                                .at = like->at,
                                .scope = like->scope,
                                .alike = like->alike}};
}

void draft_where(struct draft *d, const struct stmt *like) {
    struct arena *arena = &d->p->arena;
    size_t row = ((size_t)d->p->naxes + 1) * sizeof *like->where->coef;
    d->s.nwhere = like->nwhere;
    d->s.where = arena_array(arena, (size_t)like->nwhere + 1, sizeof *d->s.where);
    for (int w = 0; w < like->nwhere; w++)
        d->s.where[w].coef = arena_copy(arena, like->where[w].coef, row);
}

int draft_op(struct draft *d, struct op o) {
    GROW(&d->p->arena, d->s.op, d->s.nops, d->op_cap);
    d->s.op[d->s.nops] = o;
    return d->s.nops++;
}

int draft_binary(struct draft *d, enum opcode code, int a, int b) {
    enum type t = op_info[code].flags & OP_TO_BOOL ? TYPE_BOOL : d->s.op[b].type;
    return draft_op(d, (struct op){.code = code, .type = t, .arg = {a, b}});
}

static enum type computed_in(enum type t) {
    return t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
}

int draft_read(struct draft *d, struct access a) {
    GROW(&d->p->arena, d->s.read, d->s.nreads, d->read_cap);
    d->s.read[d->s.nreads] = a;
    return draft_op(d, (struct op){.code = OP_READ,
                                   .type = computed_in(d->p->buffer[a.buffer].type),
                                   .read = d->s.nreads++});
}

int draft_cast(struct draft *d, enum type t, int a) {
    t = computed_in(t);
    if (d->s.op[a].type == t) return a;
    return draft_op(d, (struct op){.code = OP_CAST, .type = t, .arg = {a}});
}

int draft_number(struct draft *d, enum type t, double v) {
    struct op o = {.code = OP_LITERAL, .type = computed_in(t)};
    if (type_is_float(t))
        o.value.f = v;
    else
        o.value.i = type_wrap(o.type, (uint64_t)(int64_t)v);
    return draft_op(d, o);
}

int draft_axis(struct draft *d, int axis) {
    return draft_op(d, (struct op){.code = OP_AXIS, .type = TYPE_I64, .axis = axis});
}

int draft_mapped(struct draft *d, const struct stmt *from, int node, access_map map, void *user) {
    struct op o = from->op[node];
    if (o.code == OP_READ) {
        const struct access *a = &from->read[o.read];
        return draft_read(d, map ? map(user, a, o.read) : rw_copy(d->p, a));
    }
    for (int k = 0; k < op_info[o.code].arity; k++)
        o.arg[k] = draft_mapped(d, from, o.arg[k], map, user);
    return draft_op(d, o);
}

int draft_tree(struct draft *d, const struct stmt *from, int node) {
    return draft_mapped(d, from, node, NULL, NULL);
}

int64_t *rw_substitution(struct substitution *s, int axis) {
    if (s->n == MAX_SUBSTITUTED) return NULL;
    s->axis[s->n] = axis;
    return s->row[s->n++] = arena_array(&s->p->arena, (size_t)s->p->naxes + 1, sizeof(int64_t));
}

struct access rw_substituted(void *user, const struct access *a, int read) {
    const struct substitution *s = user;
    struct access c = rw_copy(s->p, a);
    (void)read;
    for (int k = 0; k < s->n; k++) rw_substitute(s->p, &c, s->axis[k], s->row[k]);
    return c;
}

uint64_t rw_access_axes(const struct program *p, const struct access *a) {
    uint64_t mask = 0;
    for (int x = 0; x < p->naxes; x++)
        if (access_varies(p, a, x)) mask |= UINT64_C(1) << x;
    return mask;
}

double rw_points(const struct program *p, uint64_t axes) {
    double n = 1;
    for (int a = 0; a < p->naxes; a++)
        if (axes >> a & 1) n *= (double)p->axis[a].extent;
    return n;
}

void draft_close(struct draft *d, int stmt) {
    assert(d->s.nops > 0);
    d->s.axes = stmt_axes(d->p, &d->s);
    d->p->stmt[stmt] = d->s;
}

void rw_fill(struct program *p, int stmt, const struct stmt *like, struct access dst, double v) {
    struct draft d = draft_open(p, like, COMBINE_SET, rw_copy(p, &dst));
    draft_number(&d, p->buffer[dst.buffer].type, v);
    draft_close(&d, stmt);
}

static void close_within(struct recur *r, int stmt, int n) {
    for (int i = 0; i < r->nitems; i++) {
        if (r->item[i].kind == ITEM_STMT && r->item[i].stmt >= stmt + n) r->item[i].stmt -= n;
        if (r->item[i].kind == ITEM_RECUR) close_within(r->item[i].recur, stmt, n);
    }
}

void program_close_room(struct program *p, int stmt, int n) {
    int kept = 0;
    for (int i = 0; i < p->nitems; i++) {
        struct item *x = &p->item[i];
        if (x->kind == ITEM_STMT && x->stmt >= stmt && x->stmt < stmt + n) continue;
        if (x->kind == ITEM_STMT && x->stmt >= stmt + n) x->stmt -= n;
        if (x->kind == ITEM_RECUR) close_within(x->recur, stmt, n);
        p->item[kept++] = *x;
    }
    p->nitems = kept;
    memmove(p->stmt + stmt, p->stmt + stmt + n, (size_t)(p->nstmts - stmt - n) * sizeof *p->stmt);
    p->nstmts -= n;
}

/* ---- questions ---- */

bool rw_top(const struct program *p, int stmt) {
    return stmt >= 0 && stmt < p->nstmts && p->stmt[stmt].scope == 0 && !p->stmt[stmt].unmapped &&
           !stmt_in_recurrence(p, stmt);
}

bool rw_plain(const struct program *p, int stmt) {
    return rw_top(p, stmt) && p->stmt[stmt].nwhere == 0;
}

static bool keeps_value(const struct stmt *s, int cast) {
    enum type to = s->op[cast].type, from = s->op[s->op[cast].arg[0]].type;
    if (to == TYPE_BOOL || from == TYPE_BOOL) return false;
    if (type_is_float(to) && type_is_float(from)) return type_size(to) >= type_size(from);
    if (type_is_float(to) || type_is_float(from)) return false;
    if (type_is_signed(from) && !type_is_signed(to)) return false;
    return type_is_signed(to) == type_is_signed(from) ? type_size(to) >= type_size(from)
                                                      : type_size(to) > type_size(from);
}

int rw_bare(const struct stmt *s, int node) {
    while (s->op[node].code == OP_CAST && keeps_value(s, node)) node = s->op[node].arg[0];
    return node;
}

enum type rw_stored(const struct program *p, const struct stmt *s, int node) {
    node = rw_bare(s, node);
    return s->op[node].code == OP_READ ? p->buffer[s->read[s->op[node].read].buffer].type
                                       : s->op[node].type;
}

static uint64_t tree_axes(const struct program *p, const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    uint64_t mask = o->code == OP_AXIS ? UINT64_C(1) << o->axis : 0;
    for (int a = 0; o->code == OP_READ && a < p->naxes; a++)
        if (access_varies(p, &s->read[o->read], a)) mask |= UINT64_C(1) << a;
    for (int k = 0; k < op_info[o->code].arity; k++) mask |= tree_axes(p, s, o->arg[k]);
    return mask;
}

bool rw_collect(const struct program *p, const struct stmt *s, int node, struct factors *f) {
    const struct op *o = &s->op[node];
    if (o->code == OP_MUL) return rw_collect(p, s, o->arg[0], f) && rw_collect(p, s, o->arg[1], f);
    if (f->n == MAX_FACTORS) return false;
    f->node[f->n] = node;
    f->axes[f->n++] = tree_axes(p, s, node);
    return true;
}

bool rw_factors(const struct program *p, int stmt, struct factors *f) {
    *f = (struct factors){0};
    if (!rw_top(p, stmt) || p->stmt[stmt].combine != COMBINE_ADD) return false;
    const struct stmt *s = &p->stmt[stmt];
    f->type = s->op[s->nops - 1].type;
    return rw_collect(p, s, s->nops - 1, f);
}

uint64_t rw_value_axes(const struct stmt *s) {
    uint64_t mask = 0;
    for (int i = 0; i < s->nops; i++)
        if (s->op[i].code == OP_AXIS) mask |= UINT64_C(1) << s->op[i].axis;
    return mask;
}

bool rw_place(const struct program *p, const struct access *a, int axis, int *dim, int64_t *coef) {
    int found = 0;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, axis)) {
            *dim = d;
            *coef = access_coef(p, a, d, axis);
            found++;
        }
    return found == 1;
}

int draft_product_mapped(struct draft *d, const struct stmt *from, const struct factors *f,
                         uint32_t mask, access_map map, void *user) {
    int value = -1;
    for (int k = 0; k < f->n; k++) {
        if (!(mask >> k & 1)) continue;
        int x = draft_mapped(d, from, f->node[k], map, user);
        value = value < 0 ? x : draft_binary(d, OP_MUL, value, x);
    }
    return value;
}

int draft_product(struct draft *d, const struct stmt *from, const struct factors *f,
                  uint32_t mask) {
    return draft_product_mapped(d, from, f, mask, NULL, NULL);
}

/* ---- needles ---- */

static bool operand_type(const struct needle *n, int node, enum type *out) {
    const struct term *t = &n->term;
    while (t->at[node].code == OP_CAST) node = t->at[node].arg[0];
    *out = t->at[node].type;
    return t->at[node].code == OP_READ && !t->at[node].acc;
}

bool needle_product(const struct needle *n, struct product_types *out) {
    if (!n->offered || n->refused || n->twins || !needle_sums(n)) return false;
    const struct term_node *root = &n->term.at[n->term.root];
    int value = root->arg[1];
    while (n->term.at[value].code == OP_CAST) value = n->term.at[value].arg[0];
    const struct term_node *product = &n->term.at[value];
    out->sum = n->term.at[root->arg[0]].type;
    return product->code == OP_MUL && operand_type(n, product->arg[0], &out->a) &&
           operand_type(n, product->arg[1], &out->b);
}

int64_t rw_tile(const struct needle *n) {
    int64_t most = 0;
    for (int x = 0; n && x < n->naxes; x++)
        if (n->axis[x].reduction && n->axis[x].hi > most) most = n->axis[x].hi;
    return most > 1 && most <= 1024 ? most : 16;
}

enum type rw_partner(const struct needle *n, enum type other) {
    struct product_types t;
    if (!n || !needle_product(n, &t)) return other;
    return t.a == other ? t.b : t.b == other ? t.a : other;
}

/* ---- images ---- */

/* The box of the buffer that the statement sets, at the top level. */
static bool sets_box(const struct program *p, int stmt, int buffer, int64_t *lo, int64_t *n) {
    const struct stmt *s = &p->stmt[stmt];
    return s->dst.buffer == buffer && s->scope == 0 && stmt_writes_box(p, s, lo, n);
}

static bool set_before(const struct program *p, int stmt, int buffer, const int64_t *lo,
                       const int64_t *n) {
    int64_t from[MAX_DIMS], size[MAX_DIMS];
    for (int s = 0; s < stmt; s++) {
        if (!sets_box(p, s, buffer, from, size)) continue;
        bool meet = true;
        for (int d = 0; d < p->buffer[buffer].ndims; d++)
            meet &= from[d] < lo[d] + n[d] && lo[d] < from[d] + size[d];
        if (meet) return true;
    }
    return false;
}

/* Boxes that do not meet count, until they are as large as the buffer: parts of a concatenation. */
bool rw_set_whole(const struct program *p, int stmt, int buffer) {
    enum role r = p->buffer[buffer].role;
    int64_t lo[MAX_DIMS], n[MAX_DIMS], set = 0;
    for (int s = 0; s < stmt && (r == ROLE_TEMP || r == ROLE_OUT); s++) {
        if (!sets_box(p, s, buffer, lo, n)) continue;
        int64_t elements = 1;
        for (int d = 0; d < p->buffer[buffer].ndims; d++) elements *= n[d];
        if (elements == p->buffer[buffer].elements) return true;
        if (!set_before(p, s, buffer, lo, n)) set += elements;
        if (set == p->buffer[buffer].elements) return true;
    }
    return r != ROLE_TEMP && r != ROLE_OUT;
}

static bool image_by_axes(struct program *p, const char *name, int stmt, int read, enum type t,
                          struct image *out) {
    int axis[MAX_AXES];
    uint64_t axes = rw_access_axes(p, &p->stmt[stmt].read[read]);
    if (!rw_temporary_of(p, name, t, axis, rw_axes(axes, axis), &out->own)) return false;
    out->original = rw_copy(p, &p->stmt[stmt].read[read]);
    out->buffer = out->own.buffer;
    return true;
}

bool rw_image(struct program *p, int stmt, int read, enum type t, struct image *out) {
    int buffer = p->stmt[stmt].read[read].buffer, n = p->buffer[buffer].ndims;
    const char *name = arena_printf(&p->arena, "%s.%s", p->buffer[buffer].name, type_name(t));
    out->by_axes = !rw_set_whole(p, stmt, buffer);
    out->of = buffer;
    if (out->by_axes) return image_by_axes(p, name, stmt, read, t, out);
    for (int d = 0; d < n; d++)
        if ((out->axis[d] = rw_axis(p, "d", p->buffer[buffer].extent[d])) < 0) return false;
    out->buffer = rw_temporary(p, name, t, n, p->buffer[buffer].extent);
    return out->buffer >= 0;
}

struct access rw_imaged(struct program *p, const struct image *x, bool original) {
    if (x->by_axes) return rw_copy(p, original ? &x->original : &x->own);
    return rw_indexed(p, original ? x->of : x->buffer, x->axis);
}
