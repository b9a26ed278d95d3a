#include "ir/bind_int.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t extent_limit = (int64_t)1 << 48;

const struct symbol *binder_find(const struct binder *b, const char *name) {
    for (int k = b->nsymbols; k-- > 0;)
        if (strcmp(b->symbol[k].name, name) == 0) return &b->symbol[k];
    return NULL;
}

static const struct expr *first_unknown(const struct expr *e, const struct bindings *names) {
    int64_t ignored;
    if (e->kind == EXPR_NAME && !expr_integer(e, names, &ignored)) return e;
    if (e->kind != EXPR_OP) return NULL;
    for (int k = 0; k < op_info[e->op].arity; k++) {
        const struct expr *u = first_unknown(e->arg[k], names);
        if (u) return u;
    }
    return NULL;
}

/* An integer that parameters decide. */
static bool eval_size(struct binder *b, const struct expr *e, const char *what, int64_t *out) {
    if (expr_integer(e, &b->names, out)) return true;
    const struct expr *u = first_unknown(e, &b->names);
    if (u && binder_find(b, u->name))
        return BIND_FAIL(b, u->at, "'%s' is not a parameter; %s is made of parameters and integers",
                         u->name, what);
    if (u) return BIND_FAIL(b, u->at, "unknown name '%s' in %s", u->name, what);
    return BIND_FAIL(
        b, e->at,
        "%s is not an integer of 64 bits: only integers, parameters, + - * / %% min max "
        "may stand here, without overflow or division by zero",
        what);
}

struct range {
    int64_t lo, hi, step;
};

static bool eval_range(struct binder *b, const struct kernel_param *q, struct range *r) {
    r->step = 1;
    if (!eval_size(b, q->lo, "the range of a parameter", &r->lo)) return false;
    if (!eval_size(b, q->hi, "the range of a parameter", &r->hi)) return false;
    if (q->step && !eval_size(b, q->step, "the step of a range", &r->step)) return false;
    if (r->step < 1)
        return BIND_FAIL(b, q->step->at, "the step of a range is %" PRId64 ", expected at least 1",
                         r->step);
    if (r->lo <= r->hi) return true;
    return BIND_FAIL(b, q->at, "the range of '%s' is empty: %" PRId64 "..%" PRId64, q->name, r->lo,
                     r->hi);
}

static bool check_range(struct binder *b, const struct kernel_param *q, const struct range *r,
                        int64_t v) {
    int64_t beyond;
    bool on_step = !__builtin_sub_overflow(v, r->lo, &beyond) && beyond % r->step == 0;
    if (v >= r->lo && v <= r->hi && on_step) return true;
    return BIND_FAIL(
        b, q->at, "'%s' is %" PRId64 ", outside its range %" PRId64 "..%" PRId64 " step %" PRId64,
        q->name, v, r->lo, r->hi, r->step);
}

static const struct binding *given_value(const struct bindings *given, const char *name) {
    for (int k = 0; given && k < given->n; k++)
        if (strcmp(given->at[k].name, name) == 0) return &given->at[k];
    return NULL;
}

/* ---- sizes ---- */
static bool names(const struct expr *e, const char *name) {
    if (!e) return false;
    if (e->kind == EXPR_NAME && strcmp(e->name, name) == 0) return true;
    for (int k = 0; k < e->nindex; k++)
        if (names(e->index[k], name)) return true;
    for (int k = 0; e->kind == EXPR_OP && k < op_info[e->op].arity; k++)
        if (names(e->arg[k], name)) return true;
    return false;
}

static const struct expr *named_by_buffer(const struct kernel_buffer *f, const char *name) {
    bool may = f->role != ROLE_CONST && f->role != ROLE_STATE;
    for (int d = 0; d < f->ndims; d++)
        if (names(f->extent[d], name) && (d > 0 || !may || f->extent[d]->kind != EXPR_NAME))
            return f->extent[d];
    return NULL;
}

/* T / 8: the name of a size, divided by a number; *group: that. */
static const struct expr *in_groups(const struct expr *e, int64_t *group) {
    if (e->kind != EXPR_OP || e->op != OP_DIV || e->arg[0]->kind != EXPR_NAME ||
        e->arg[1]->kind != EXPR_INT || e->arg[1]->i < 2)
        return NULL;
    *group = e->arg[1]->i;
    return e->arg[0];
}

/* The size, or how many whole groups it has. */
static bool names_whole(const struct expr *e, const char *name) {
    int64_t group;
    const struct expr *of = e->kind == EXPR_NAME ? e : in_groups(e, &group);
    return of && strcmp(of->name, name) == 0;
}

/* T from T / 8 * 8: what is behind the last whole group; its number, or 0. */
static int64_t rest_group(const struct kernel_recur *r) {
    const struct expr *e = r->first;
    int64_t group;
    if (!e || e->kind != EXPR_OP || e->op != OP_MUL || e->arg[1]->kind != EXPR_INT ||
        r->length->kind != EXPR_NAME || !in_groups(e->arg[0], &group) ||
        strcmp(in_groups(e->arg[0], &group)->name, r->length->name) != 0)
        return 0;
    return e->arg[1]->i == group ? group : 0;
}

static bool names_rest(const struct kernel_recur *r, const char *name) {
    return rest_group(r) && names_whole(r->length, name);
}

/* Where the size stands and may not; NULL: nowhere. */
static const struct expr *named_wrongly(const struct kernel_item *item, int n, const char *name) {
    const struct expr *e = NULL;
    for (int k = 0; k < n && !e; k++) {
        const struct kernel_stmt *s = item[k].stmt;
        const struct kernel_recur *r = item[k].recur;
        if (item[k].kind == KITEM_BUFFER) e = named_by_buffer(item[k].buffer, name);
        if (item[k].kind == KITEM_AXIS && names(item[k].axis->extent, name))
            e = item[k].axis->extent;
        if (item[k].kind == KITEM_STMT) {
            if (names(s->dst, name)) e = s->dst;
            if (names(s->value, name)) e = s->value;
            for (int w = 0; w < s->nwhere; w++)
                if (names(s->where[w], name)) e = s->where[w];
        }
        if (item[k].kind != KITEM_RECUR) continue;
        if (names(r->length, name) && !names_whole(r->length, name)) e = r->length;
        if (names(r->first, name) && !names_rest(r, name)) e = r->first;
        for (int s2 = 0; s2 < r->nstates && !e; s2++) e = named_by_buffer(r->state[s2], name);
        if (!e) e = named_wrongly(r->item, r->nitems, name);
    }
    return e;
}

static bool bind_size(struct binder *b, const struct kernel_param *q, const struct range *r,
                      struct binding *out) {
    struct program *p = b->p;
    const struct expr *wrong = named_wrongly(b->k->item, b->k->nitems, q->name);
    for (int k = 0; k < b->k->nparams && !wrong; k++) {
        const struct kernel_param *other = &b->k->param[k];
        if (names(other->value, q->name)) wrong = other->value;
        if (names(other->lo, q->name) || names(other->hi, q->name)) wrong = other->lo;
    }
    if (wrong)
        return BIND_FAIL(b, wrong->at,
                         "'%s' is known only when the program runs: it may be the length of a "
                         "recurrence, in groups (%s / 8, and the rest: %s from %s / 8 * 8) or "
                         "not, and the first dimension of buffers; elsewhere give it a value, "
                         "for instance -D %s=16",
                         q->name, q->name, q->name, q->name, q->name);
    if (r->step != 1 || r->lo < 0)
        return BIND_FAIL(b, q->at,
                         "the range of '%s', known only when the program runs, is %" PRId64
                         "..%" PRId64 " step %" PRId64 ", expected steps of 1 from 0 or more",
                         q->name, r->lo, r->hi, r->step);
    struct size *size = arena_array(&p->arena, (size_t)p->nsizes + 1, sizeof *size);
    if (p->nsizes) memcpy(size, p->size, (size_t)p->nsizes * sizeof *size);
    size[p->nsizes++] = (struct size){out->name, r->lo, r->hi};
    p->size = size;
    out->value = r->hi;
    b->names.n++;
    return true;
}

static int size_named(const struct program *p, const struct expr *e) {
    for (int k = 0; e->kind == EXPR_NAME && k < p->nsizes; k++)
        if (strcmp(p->size[k].name, e->name) == 0) return k + 1;
    return 0;
}

static bool bind_param(struct binder *b, int n, const struct bindings *given) {
    const struct kernel_param *q = &b->k->param[n];
    const struct binding *g = given_value(given, q->name);
    struct binding *out = &b->p->param[n];
    struct range range;
    for (int k = 0; k < n; k++)
        if (strcmp(b->k->param[k].name, q->name) == 0)
            return BIND_FAIL(b, q->at, "parameter '%s' is already declared", q->name);
    out->name = arena_strdup(&b->p->arena, q->name);
    if (q->lo && !eval_range(b, q, &range)) return false;
    if (g)
        out->value = g->value;
    else if (q->value && !eval_size(b, q->value, "the value of a parameter", &out->value))
        return false;
    else if (!q->value && b->sizes && q->lo)
        return bind_size(b, q, &range, out);
    else if (!q->value)
        return BIND_FAIL(b, q->at, "parameter '%s' has no value; give one, for instance -D %s=16",
                         q->name, q->name);
    if (q->lo && !check_range(b, q, &range, out->value)) return false;
    b->names.n = n + 1;
    return true;
}

static bool bind_params(struct binder *b, const struct bindings *given) {
    b->p->nparams = b->k->nparams;
    b->p->param = arena_array(&b->p->arena, (size_t)b->k->nparams, sizeof *b->p->param);
    b->names.at = b->p->param;
    for (int k = 0; given && k < given->n; k++)
        if (kernel_param_index(b->k, given->at[k].name) < 0)
            BIND_FAIL(b, b->k->at, "kernel '%s' has no parameter '%s', which was given a value",
                      b->k->name, given->at[k].name);
    for (int k = 0; k < b->k->nparams; k++)
        if (!bind_param(b, k, given)) return false;
    return !b->failed;
}

static bool name_used(const struct program *p, int naxes, const char *name) {
    for (int k = 0; k < naxes; k++)
        if (strcmp(p->axis[k].name, name) == 0) return true;
    return program_buffer(p, name) >= 0;
}

/* Two recurrences may use one name; in the program names are unique. The prime stays at the end. */
static const char *unique_name(struct binder *b, const char *name, const char *prime) {
    const char *unique = arena_printf(&b->p->arena, "%s%s", name, prime);
    for (int n = 2; name_used(b->p, b->axes_declared, unique); n++)
        unique = arena_printf(&b->p->arena, "%s_%d%s", name, n, prime);
    return unique;
}

static bool declare(struct binder *b, const char *name, size_t at, bool is_axis, int index) {
    if (binder_find(b, name) || kernel_param_index(b->k, name) >= 0)
        return BIND_FAIL(b, at, "'%s' is already declared; choose another name", name);
    GROW(&b->p->arena, b->symbol, b->nsymbols, b->symbol_cap);
    b->symbol[b->nsymbols++] = (struct symbol){arena_strdup(&b->p->arena, name), is_axis, index};
    return true;
}

static bool bind_axis(struct binder *b, const char *name, size_t at, const struct expr *extent,
                      bool sequential, bool recurring) {
    int64_t n;
    int64_t least = recurring ? 0 : 1;
    bool wrong = false;
    const char *what = recurring ? "the length of a recurrence" : "the extent of an axis";
    const char *has = recurring ? "recurrence" : "axis";
    bool grows = !recurring && bind_growing(b, extent, &n, &wrong);
    if (wrong || (!grows && !eval_size(b, extent, what, &n))) return false;
    if (n < least || n > extent_limit)
        return BIND_FAIL(b, extent->at,
                         "%s '%s' has extent %" PRId64 ", expected %" PRId64 " to 2^48", has, name,
                         n, least);
    struct axis *a = &b->p->axis[b->axes_declared];
    int param = extent->kind == EXPR_NAME ? kernel_param_index(b->k, extent->name) : -1;
    const char *unique = unique_name(b, name, "");
    *a = (struct axis){.name = unique,
                       .extent = n,
                       .sequential = sequential || recurring,
                       .param = param,
                       .size = size_named(b->p, extent)};
    return declare(b, name, at, true, b->axes_declared++);
}

/* The first step, and steps in groups of a size that is open. */
static bool bind_steps(struct binder *b, const struct kernel_recur *k, struct axis *a) {
    int64_t group = 0;
    const struct expr *of = in_groups(k->length, &group);
    if (of) a->size = size_named(b->p, of);
    if (k->first) {
        if (!eval_size(b, k->first, "the first step of a recurrence", &a->first)) return false;
        if (a->first < 0 || a->first > a->extent)
            return BIND_FAIL(b, k->first->at,
                             "the first step of '%s' is %" PRId64 ", expected 0 to %" PRId64,
                             k->axis, a->first, a->extent);
        if (a->size && !(group = rest_group(k)))
            return BIND_FAIL(b, k->first->at,
                             "where the length is known only when the program runs, the first step "
                             "is behind whole groups: T from T / 8 * 8");
        a->rest = a->size;
    }
    if (a->size) a->group = group;
    return true;
}

static bool bind_extents(struct binder *b, const struct kernel_buffer *from, struct buffer *f) {
    if (from->ndims > MAX_DIMS)
        return BIND_FAIL(b, from->at, "buffer '%s' has %d dimensions, the most is %d", from->name,
                         from->ndims, MAX_DIMS);
    f->ndims = from->ndims;
    f->extent = arena_array(&b->p->arena, (size_t)f->ndims, sizeof *f->extent);
    f->elements = 1;
    for (int d = 0; d < f->ndims; d++) {
        int64_t n;
        if (!eval_size(b, from->extent[d], "the extent of a buffer", &n)) return false;
        /* 0 is what a recurrence of length 0 indexes */
        if (n < 0)
            return BIND_FAIL(b, from->extent[d]->at,
                             "dimension %d of '%s' has extent %" PRId64 ", expected 0 or more", d,
                             from->name, n);
        f->extent[d] = n;
        if (d == 0) f->size = size_named(b->p, from->extent[d]);
        int64_t limit = INT64_MAX / 16 / (int64_t)type_size(f->type);
        if (n > limit || __builtin_mul_overflow(f->elements, n, &f->elements) ||
            f->elements > limit)
            return BIND_FAIL(b, from->extent[d]->at,
                             "buffer '%s' is too large: its bytes do not fit 60 bits", from->name);
    }
    return true;
}

static int bind_buffer(struct binder *b, const struct kernel_buffer *from, const char *prime) {
    struct program *p = b->p;
    struct buffer f = {.type = from->type, .role = from->role};
    if (!bind_extents(b, from, &f)) return -1;
    f.name = unique_name(b, from->name, prime);
    GROW(&p->arena, p->buffer, p->nbuffers, b->buffers_cap);
    p->buffer[p->nbuffers] = f;
    GROW(&p->arena, p->buffer_at, p->nplaces, b->places_cap);
    p->buffer_at[p->nplaces++] = from->at;
    char *name = arena_printf(&p->arena, "%s%s", from->name, prime);
    return declare(b, name, from->at, false, p->nbuffers) ? p->nbuffers++ : -1;
}

struct items {
    struct item *at;
    int n, cap;
};

static struct item *item_new(struct binder *b, struct items *l, enum item_kind kind) {
    GROW(&b->p->arena, l->at, l->n, l->cap);
    struct item *i = &l->at[l->n++];
    *i = (struct item){.kind = kind, .stmt = -1};
    return i;
}

static int find_buffer(struct binder *b, const char *name, size_t at) {
    const struct symbol *s = binder_find(b, name);
    if (s && !s->is_axis) return s->index;
    BIND_FAIL(b, at, s ? "'%s' is an axis, expected a buffer" : "unknown buffer '%s'", name);
    return -1;
}

static bool bind_call(struct binder *b, const struct kernel_call *c, struct items *out) {
    struct call *r = arena_alloc(&b->p->arena, sizeof *r);
    r->function = arena_strdup(&b->p->arena, c->function);
    r->at = c->at;
    r->nreads = c->nreads;
    r->nwrites = c->nwrites;
    r->read = arena_array(&b->p->arena, (size_t)c->nreads, sizeof *r->read);
    r->write = arena_array(&b->p->arena, (size_t)c->nwrites, sizeof *r->write);
    for (int k = 0; k < c->nreads; k++)
        if ((r->read[k] = find_buffer(b, c->read[k], c->at)) < 0) return false;
    for (int k = 0; k < c->nwrites; k++)
        if ((r->write[k] = find_buffer(b, c->write[k], c->at)) < 0) return false;
    item_new(b, out, ITEM_CALL)->call = r;
    return true;
}

static bool bind_state(struct binder *b, const struct kernel_buffer *s, struct recur_state *out) {
    /* looked up first: the state itself is not visible in its own declaration */
    if ((out->from = find_buffer(b, s->from, s->at)) < 0) return false;
    out->to = -1;
    if (s->to && (out->to = find_buffer(b, s->to, s->at)) < 0) return false;
    return (out->current = bind_buffer(b, s, "")) >= 0 && (out->next = bind_buffer(b, s, "'")) >= 0;
}

static bool bind_items(struct binder *b, const struct kernel_item *item, int n, struct items *out);

static bool bind_recur(struct binder *b, const struct kernel_recur *k, struct items *out) {
    struct recur *r = arena_alloc(&b->p->arena, sizeof *r);
    struct items body = {0};
    int visible = b->nsymbols;
    uint64_t recurring = b->recurring;
    r->at = k->at;
    r->axis = b->axes_declared;
    r->reverse = k->reverse;
    r->nstates = k->nstates;
    r->state = arena_array(&b->p->arena, (size_t)k->nstates, sizeof *r->state);
    if (!bind_axis(b, k->axis, k->at, k->length, true, true) ||
        !bind_steps(b, k, &b->p->axis[r->axis]))
        return false;
    b->recurring |= (uint64_t)1 << r->axis;
    for (int s = 0; s < k->nstates; s++)
        if (!bind_state(b, k->state[s], &r->state[s])) return false;
    if (!bind_items(b, k->item, k->nitems, &body)) return false;
    r->item = body.at;
    r->nitems = body.n;
    b->recurring = recurring;
    b->nsymbols = visible;
    item_new(b, out, ITEM_RECUR)->recur = r;
    return true;
}

/* A wrong statement does not hide the next one's errors; a wrong declaration would only cause more.
 */
static bool bind_item(struct binder *b, const struct kernel_item *i, struct items *out) {
    const struct kernel_axis *a = i->axis;
    switch (i->kind) {
    case KITEM_BUFFER:
        return bind_buffer(b, i->buffer, "") >= 0;
    case KITEM_AXIS:
        return bind_axis(b, a->name, a->at, a->extent, a->sequential, false);
    case KITEM_RECUR:
        return bind_recur(b, i->recur, out);
    case KITEM_CALL:
        return bind_call(b, i->call, out);
    case KITEM_STMT:
        if (lower_stmt(b, i->stmt)) item_new(b, out, ITEM_STMT)->stmt = b->p->nstmts - 1;
        return true;
    }
    return false;
}

static bool bind_items(struct binder *b, const struct kernel_item *item, int n, struct items *out) {
    for (int k = 0; k < n; k++)
        if (!bind_item(b, &item[k], out)) return false;
    return true;
}

static int count_axes(const struct kernel_item *item, int n) {
    int count = 0;
    for (int k = 0; k < n; k++) {
        if (item[k].kind == KITEM_AXIS) count++;
        if (item[k].kind == KITEM_RECUR)
            count += 1 + count_axes(item[k].recur->item, item[k].recur->nitems);
    }
    return count;
}

static bool bind_kernel(struct binder *b, const struct bindings *given) {
    struct program *p = b->p;
    struct items body = {0};
    p->naxes = count_axes(b->k->item, b->k->nitems);
    if (p->naxes > MAX_AXES)
        return BIND_FAIL(b, b->k->at, "kernel '%s' has %d axes, the most is %d", b->k->name,
                         p->naxes, MAX_AXES);
    p->axis = arena_array(&p->arena, (size_t)p->naxes, sizeof *p->axis);
    b->grows = arena_array(&p->arena, (size_t)p->naxes, sizeof *b->grows);
    if (!bind_params(b, given) || !bind_items(b, b->k->item, b->k->nitems, &body)) return false;
    p->item = body.at;
    p->nitems = body.n;
    return !b->failed && program_verify(p, b->diags);
}

static struct program *bind(const struct kernel *k, const struct bindings *given,
                            const struct bindings *outer, bool sizes, struct diags *d) {
    struct program *p = program_new(k->name);
    const struct source *s = k->source;
    p->source = *s;
    p->source.file = s->file ? arena_strdup(&p->arena, s->file) : NULL;
    p->source.text = arena_strndup(&p->arena, s->text, s->length);
    struct binder b = {
        .p = p, .k = k, .source = s, .diags = d, .names = {.outer = outer}, .sizes = sizes};
    if (bind_kernel(&b, given)) return p;
    program_free(p);
    return NULL;
}

struct program *program_bind(const struct kernel *k, const struct bindings *given,
                             const struct bindings *outer, struct diags *d) {
    return bind(k, given, outer, false, d);
}

struct program *program_bind_sizes(const struct kernel *k, const struct bindings *given,
                                   const struct bindings *outer, struct diags *d) {
    return bind(k, given, outer, true, d);
}
