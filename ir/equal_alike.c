/* Proofs that are the same but for names. All that a proof looks at stands in a row of numbers:
 * statements of both programs, with axes numbered as they occur, of which a name that both programs
 * have is one. Buffers are numbered likewise, or, where contents are known that both sides share,
 * each read is followed to the statements that wrote it, until it comes to such a content. */
#include "ir/equal_alike.h"
#include "ir/equal_int.h"

#include <string.h>

enum { MOST_NUMBERS = 20000 };

struct writer {
    struct arena *arena;
    const struct program *p[2];
    struct items span[2];
    int *buffer[2], *axis[2]; /* 1 + the number; 0: not met */
    int nbuffers, naxes;
    struct equal *x; /* reads are followed; NULL: buffers have numbers */
    int *content, ncontents;
    struct alike_row *row;
    bool good;
};

static void put(struct writer *w, int64_t x) {
    struct alike_row *r = w->row;
    w->good &= r->n < MOST_NUMBERS;
    if (!w->good) return;
    GROW(w->arena, r->at, r->n, r->cap);
    r->at[r->n++] = x;
    r->hash = (r->hash ^ (uint64_t)x) * UINT64_C(0x9e3779b97f4a7c15);
    r->hash ^= r->hash >> 29;
}

static void put_value(struct writer *w, union value x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put(w, bits);
}

static void put_declaration(struct writer *w, int side, int b) {
    const struct buffer *x = b < 0 ? NULL : &w->p[side]->buffer[b];
    put(w, x != NULL);
    if (!x) return;
    put(w, x->type);
    put(w, x->size);
    if (!w->x) put(w, x->role);
    if (!w->x) put(w, span_shows(w->p[side], w->span[side], b));
    put(w, x->ndims);
    for (int d = 0; d < x->ndims; d++) put(w, x->extent[d]);
}

/* What an integer temporary holds before the stretch is looked up in the statements before it,
 * which are not in the row. */
static bool holds_range(const struct writer *w, const int *b) {
    const struct buffer *x = b[0] < 0 ? NULL : &w->p[0]->buffer[b[0]];
    return x && b[1] >= 0 && x->role == ROLE_TEMP && !type_is_float(x->type);
}

static void put_buffer(struct writer *w, int side, int b) {
    int *number = &w->buffer[side][b], both[2];
    if (!*number) {
        both[side] = b;
        both[!side] = program_buffer(w->p[!side], w->p[side]->buffer[b].name);
        *number = ++w->nbuffers;
        if (both[!side] >= 0) w->buffer[!side][both[!side]] = *number;
        for (int k = 0; k < 2; k++) put_declaration(w, k, both[k]);
        w->good &= !holds_range(w, both);
    }
    put(w, *number);
}

static int axis_named(const struct program *p, const char *name) {
    for (int a = 0; a < p->naxes; a++)
        if (!strcmp(p->axis[a].name, name)) return a;
    return -1;
}

static void put_axis(struct writer *w, int side, int a) {
    int *number = &w->axis[side][a];
    if (!*number) {
        int other = axis_named(w->p[!side], w->p[side]->axis[a].name);
        *number = ++w->naxes;
        if (other >= 0) w->axis[!side][other] = *number;
        for (int k = 0; k < 2; k++) {
            const struct axis *x = k == side    ? &w->p[k]->axis[a]
                                   : other >= 0 ? &w->p[k]->axis[other]
                                                : NULL;
            put(w, x ? x->extent : -1);
            put(w, x ? x->sequential : -1);
            put(w, x ? x->size : -1);
            put(w, x ? x->first : -1);
            put(w, x ? (x->rest ? -x->group : x->group) : 0);
        }
    }
    put(w, *number);
}

static void put_form(struct writer *w, int side, const int64_t *coef) {
    int n = w->p[side]->naxes;
    for (int a = 0; a < n; a++) {
        if (!coef[a]) continue;
        put_axis(w, side, a);
        put(w, coef[a]);
    }
    put(w, 0);
    put(w, coef[n]);
}

static void put_access(struct writer *w, int side, const struct access *a) {
    const struct program *p = w->p[side];
    if (w->x)
        put_declaration(w, side, a->buffer);
    else
        put_buffer(w, side, a->buffer);
    put(w, a->has_fill);
    if (a->has_fill) put_value(w, a->fill);
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        put_form(w, side, a->coef + (size_t)d * ((size_t)p->naxes + 1));
}

static void put_op(struct writer *w, int side, const struct op *o) {
    put(w, o->code);
    put(w, o->type);
    for (int k = 0; k < op_info[o->code].arity; k++) put(w, o->arg[k]);
    if (o->code == OP_READ) put(w, o->read);
    if (o->code == OP_AXIS) put_axis(w, side, o->axis);
    if (o->code == OP_LITERAL) put_value(w, o->value);
}

static void put_stmt(struct writer *w, int side, const struct stmt *s) {
    put(w, s->combine);
    put(w, s->scope);
    put(w, s->unmapped);
    put(w, s->nreads);
    put(w, s->nwhere);
    put(w, s->nops);
    for (int a = 0; a < w->p[side]->naxes; a++)
        if (s->axes >> a & 1) put_axis(w, side, a);
    put(w, 0);
    put_access(w, side, &s->dst);
    for (int r = 0; r < s->nreads; r++) put_access(w, side, &s->read[r]);
    for (int k = 0; k < s->nwhere; k++) put_form(w, side, s->where[k].coef);
    for (int k = 0; k < s->nops; k++) put_op(w, side, &s->op[k]);
}

/* ---- by contents ---- */
static void put_content(struct writer *w, int content) {
    const struct content *c = &w->x->content[content];
    if (!w->content[content]) w->content[content] = ++w->ncontents;
    put(w, w->content[content]);
    put(w, c->type);
    put(w, (int64_t)(c->range.lo >> 64));
    put(w, (int64_t)c->range.lo);
    put(w, (int64_t)(c->range.hi >> 64));
    put(w, (int64_t)c->range.hi);
}

/* The buffer before event `before` of the side. */
static void put_element(struct writer *w, int side, int before, int buffer) {
    const struct side *s = &w->x->side[side];
    int event, content = equal_content(w->x, s, before, buffer, &event);
    put(w, content >= 0);
    if (content >= 0) {
        put_content(w, content);
        return;
    }
    const struct event *e = event >= 0 ? &s->event[event] : NULL;
    const struct stmt *st = e && e->kind == EVENT_STMT ? &s->p->stmt[e->stmt] : NULL;
    if (e && e->kind == EVENT_COPY) {
        put_element(w, side, event, e->from);
        return;
    }
    w->good &= st != NULL;
    if (!w->good) return;
    bool part = st->combine != COMBINE_SET || !equal_writes_all(s->p, st);
    put_stmt(w, side, st);
    for (int r = 0; r < st->nreads && w->good; r++) put_element(w, side, event, st->read[r].buffer);
    put(w, part);
    if (part) put_element(w, side, event, buffer);
}

bool alike_elements(struct equal *x, int b0, int before0, int b1, int before1,
                    struct alike_row *out) {
    struct writer w = {
        .arena = &x->arena, .p = {x->side[0].p, x->side[1].p}, .x = x, .row = out, .good = true};
    *out = (struct alike_row){.n = 0};
    w.content = arena_array(w.arena, MAX_CONTENTS, sizeof *w.content);
    for (int k = 0; k < 2; k++)
        w.axis[k] = arena_array(w.arena, (size_t)w.p[k]->naxes + 1, sizeof *w.axis[k]);
    put_declaration(&w, 0, b0);
    put_element(&w, 0, before0, b0);
    put_element(&w, 1, before1, b1);
    return w.good;
}

/* ---- by names ---- */
bool alike_witness(struct arena *arena, const struct program *p, const struct program *q,
                   const struct witness *x, struct alike_row *out) {
    struct writer w = {
        .arena = arena, .p = {p, q}, .span = {x->before, x->after}, .row = out, .good = true};
    *out = (struct alike_row){.n = 0};
    for (int k = 0; k < 2; k++) {
        w.buffer[k] = arena_array(arena, (size_t)w.p[k]->nbuffers + 1, sizeof *w.buffer[k]);
        w.axis[k] = arena_array(arena, (size_t)w.p[k]->naxes + 1, sizeof *w.axis[k]);
    }
    put(&w, x->laws);
    for (int k = 0; k < 2 && w.good; k++) {
        put(&w, w.span[k].to - w.span[k].from);
        for (int i = w.span[k].from; i < w.span[k].to && w.good; i++) {
            const struct item *item = &w.p[k]->item[i];
            w.good &= item->kind == ITEM_STMT;
            if (w.good) put_stmt(&w, k, &w.p[k]->stmt[item->stmt]);
        }
    }
    return w.good;
}

bool alike_same(const struct alike_row *a, const struct alike_row *b) {
    return a->n == b->n && a->hash == b->hash &&
           !memcmp(a->at, b->at, (size_t)a->n * sizeof *a->at);
}
