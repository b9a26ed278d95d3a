#include "ir/canonical_int.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 12 };

uint64_t colour_mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u + 0x165667b19e3779f9u;
    h ^= h >> 30;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 27;
    h *= 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

uint64_t colour_value(enum type t, union value v) {
    uint64_t bits = (uint64_t)v.i;
    if (type_is_float(t)) memcpy(&bits, &v.f, sizeof bits);
    if (type_is_float(t) && v.f != v.f) bits = 1;
    return colour_mix(bits, t);
}

struct painter {
    const struct program *p;
    struct colours now;
    uint64_t *next_axis, *next_buffer; /* sums of uses */
};

static uint64_t row_colour(const struct painter *w, const int64_t *row) {
    uint64_t h = colour_mix(7, (uint64_t)row[w->p->naxes]);
    for (int a = 0; a < w->p->naxes; a++)
        if (row[a] != 0) h += colour_mix(colour_mix(11, (uint64_t)row[a]), w->now.axis[a]);
    return h;
}

static const int64_t *row_of(const struct painter *w, const struct access *a, int d) {
    return a->coef + (size_t)d * ((size_t)w->p->naxes + 1);
}

static uint64_t access_colour(const struct painter *w, const struct access *a) {
    const struct buffer *f = &w->p->buffer[a->buffer];
    uint64_t h = colour_mix(13, w->now.buffer[a->buffer]);
    for (int d = 0; d < f->ndims; d++) h = colour_mix(h, row_colour(w, row_of(w, a, d)));
    return a->has_fill ? colour_mix(h, colour_value(f->type, a->fill)) : h;
}

static uint64_t op_colour(const struct painter *w, const struct stmt *s, int n,
                          const uint64_t *below) {
    const struct op *o = &s->op[n];
    uint64_t h = colour_mix(colour_mix(17, o->code), o->type);
    if (o->code == OP_READ) return colour_mix(h, access_colour(w, &s->read[o->read]));
    if (o->code == OP_LITERAL) return colour_mix(h, colour_value(o->type, o->value));
    if (o->code == OP_AXIS) return colour_mix(h, w->now.axis[o->axis]);
    if (op_info[o->code].flags & OP_COMM) return colour_mix(h, below[o->arg[0]] + below[o->arg[1]]);
    for (int k = 0; k < op_info[o->code].arity; k++) h = colour_mix(h, below[o->arg[k]]);
    return h;
}

static void use_axes(struct painter *w, const int64_t *row, uint64_t place) {
    for (int a = 0; a < w->p->naxes; a++)
        if (row[a] != 0) w->next_axis[a] += colour_mix(place, (uint64_t)row[a]);
}

static void use_access(struct painter *w, const struct access *a, uint64_t place) {
    place = colour_mix(place, access_colour(w, a));
    w->next_buffer[a->buffer] += place;
    for (int d = 0; d < w->p->buffer[a->buffer].ndims; d++)
        use_axes(w, row_of(w, a, d), colour_mix(place, (uint64_t)d));
}

/* What stands around each op, from the root down: operands of a commutative op have no sides. */
static void use_ops(struct painter *w, const struct stmt *s, const uint64_t *below, uint64_t place,
                    uint64_t *around) {
    memset(around, 0, (size_t)s->nops * sizeof *around);
    around[s->nops - 1] = place;
    for (int n = s->nops - 1; n >= 0; n--) {
        const struct op *o = &s->op[n];
        bool comm = op_info[o->code].flags & OP_COMM;
        for (int k = 0; k < op_info[o->code].arity; k++)
            around[o->arg[k]] +=
                colour_mix(colour_mix(around[n], below[n]), comm ? 0 : (uint64_t)k + 1);
        if (o->code == OP_READ) use_access(w, &s->read[o->read], around[n]);
        if (o->code == OP_AXIS) w->next_axis[o->axis] += colour_mix(around[n], below[n]);
    }
}

static void use_stmt(struct painter *w, int n, uint64_t place, struct arena *scratch) {
    const struct stmt *s = &w->p->stmt[n];
    uint64_t *below = w->now.op[n];
    for (int o = 0; o < s->nops; o++) below[o] = op_colour(w, s, o, below);
    uint64_t all = colour_mix(colour_mix(place, s->combine), access_colour(w, &s->dst));
    uint64_t where = 0;
    for (int k = 0; k < s->nwhere; k++) where += colour_mix(19, row_colour(w, s->where[k].coef));
    all = colour_mix(colour_mix(all, below[s->nops - 1]), where);
    use_access(w, &s->dst, colour_mix(all, 23));
    for (int k = 0; k < s->nwhere; k++)
        use_axes(w, s->where[k].coef, colour_mix(all, row_colour(w, s->where[k].coef)));
    use_ops(w, s, below, all, arena_array(scratch, (size_t)s->nops, sizeof(uint64_t)));
}

static void use_items(struct painter *w, const struct item *item, int n, uint64_t place,
                      struct arena *scratch) {
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].recur;
        const struct call *c = item[k].call;
        place = colour_mix(place, 29);
        if (item[k].kind == ITEM_STMT) use_stmt(w, item[k].stmt, place, scratch);
        if (item[k].kind == ITEM_CALL) {
            for (int b = 0; b < c->nreads; b++)
                w->next_buffer[c->read[b]] += colour_mix(place, (uint64_t)b);
            for (int b = 0; b < c->nwrites; b++)
                w->next_buffer[c->write[b]] += colour_mix(place, (uint64_t)b + 1000);
        }
        if (item[k].kind != ITEM_RECUR) continue;
        w->next_axis[r->axis] += colour_mix(place, 31);
        for (int b = 0; b < r->nstates; b++) {
            const struct recur_state *s = &r->state[b];
            uint64_t both = colour_mix(colour_mix(place, w->now.buffer[s->current]),
                                       colour_mix(w->now.buffer[s->next], w->now.buffer[s->from]));
            w->next_buffer[s->current] += colour_mix(both, 1);
            w->next_buffer[s->next] += colour_mix(both, 2);
            w->next_buffer[s->from] += colour_mix(both, 3);
            if (s->to >= 0) w->next_buffer[s->to] += colour_mix(both, 4);
        }
        use_items(w, r->item, r->nitems, colour_mix(place, 37), scratch);
    }
}

static void first_colours(struct painter *w) {
    const struct program *p = w->p;
    for (int a = 0; a < p->naxes; a++)
        w->now.axis[a] =
            colour_mix(colour_mix(41, (uint64_t)p->axis[a].extent), p->axis[a].sequential);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *f = &p->buffer[b];
        uint64_t h = colour_mix(colour_mix(43, f->type), f->role);
        for (int d = 0; d < f->ndims; d++) h = colour_mix(h, (uint64_t)f->extent[d]);
        w->now.buffer[b] = h;
    }
}

static int compare_colours(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int distinct(const uint64_t *colour, int n, struct arena *scratch) {
    uint64_t *all = arena_array(scratch, (size_t)n + 1, sizeof *all);
    int found = 0;
    memcpy(all, colour, (size_t)n * sizeof *all);
    qsort(all, (size_t)n, sizeof *all, compare_colours);
    for (int k = 0; k < n; k++) found += k == 0 || all[k] != all[k - 1];
    return found;
}

/* A colour is mixed into the one that follows it, so a round only divides classes: where none was
 * divided, none will be. */
struct colours program_colours(const struct program *p, struct arena *a) {
    struct painter w = {.p = p};
    w.now.axis = arena_array(a, (size_t)p->naxes + 1, sizeof(uint64_t));
    w.now.buffer = arena_array(a, (size_t)p->nbuffers + 1, sizeof(uint64_t));
    w.now.op = arena_array(a, (size_t)p->nstmts + 1, sizeof *w.now.op);
    for (int s = 0; s < p->nstmts; s++)
        w.now.op[s] = arena_array(a, (size_t)p->stmt[s].nops, sizeof(uint64_t));
    first_colours(&w);
    for (int round = 0, classes = 0, before = -1; round < ROUNDS && classes != before; round++) {
        struct arena scratch;
        before = classes;
        arena_init(&scratch);
        w.next_axis = arena_array(&scratch, (size_t)p->naxes + 1, sizeof(uint64_t));
        w.next_buffer = arena_array(&scratch, (size_t)p->nbuffers + 1, sizeof(uint64_t));
        use_items(&w, p->item, p->nitems, 47, &scratch);
        for (int k = 0; k < p->naxes; k++)
            w.now.axis[k] = colour_mix(w.now.axis[k], w.next_axis[k]);
        for (int k = 0; k < p->nbuffers; k++)
            w.now.buffer[k] = colour_mix(w.now.buffer[k], w.next_buffer[k]);
        classes = distinct(w.now.axis, p->naxes, &scratch) +
                  distinct(w.now.buffer, p->nbuffers, &scratch);
        arena_free(&scratch);
    }
    return w.now;
}
