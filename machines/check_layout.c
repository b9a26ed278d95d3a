/* Layouts by enumeration: injective, without holes in a unit, inside the unit's count (FORMAT of
 * docs/machine-format.md, "Layouts"). */
#include "machines/check.h"
#include "ir/memory.h"
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1 << 16, SPARSE = 16 };

struct trial {
    const struct machine *m;
    const struct instr *x;
    const struct operand *o;
    const struct operand_layout *l;
    struct diags *d;
    int ndims;
    int64_t extent[MAX_DIMS]; /* cut so that at most POINTS elements are tried */
};

static int inner_places(const struct layout *l) {
    int n = 0;
    for (int p = 0; p < l->nplaces; p++) n += !l->place[p].unit;
    return n;
}

static bool check_shape(const struct trial *t, int ndims) {
    const struct operand_layout *l = t->l;
    if (l->map && l->map->nindices != ndims) {
        check_error(t->d, t->l->at,
                    "layout '%s' of operand '%s' of '%s' has %d indices, expected %d, one for each "
                    "dimension of the buffer",
                    l->map_text, t->o->buffer, t->x->id, l->map->nindices, ndims);
        return false;
    }
    int places = l->map ? inner_places(l->map) : ndims;
    if (l->nstrides && l->nstrides != places) {
        check_error(t->d, t->l->at,
                    "operand '%s' of '%s' has %d strides, expected %d, one for each %s",
                    t->o->buffer, t->x->id, l->nstrides, places,
                    l->map ? "place inside the memory" : "dimension of the buffer");
        return false;
    }
    return true;
}

static int unit_named(const struct machine *m, const char *id) {
    for (int i = 1; i < m->nunits; i++)
        if (!strcmp(m->unit[i].id, id)) return i;
    return -1;
}

static bool check_units(const struct trial *t, const int64_t *place_extent) {
    const struct layout *l = t->l->map;
    for (int p = 0; p < l->nplaces; p++) {
        if (!l->place[p].unit) continue;
        int u = unit_named(t->m, l->place[p].unit);
        if (u < 0) {
            check_error(t->d, t->l->at,
                        "layout '%s' of operand '%s' of '%s' names unit '%s', expected a unit of "
                        "the machine",
                        t->l->map_text, t->o->buffer, t->x->id, l->place[p].unit);
            return false;
        }
        const struct unit *unit = &t->m->unit[u];
        if (u == t->x->unit || !unit_inside(t->m, u, t->x->unit)) {
            check_error(t->d, t->l->at,
                        "layout '%s' of operand '%s' of '%s' names unit '%s', expected one inside "
                        "the issuing unit '%s'",
                        t->l->map_text, t->o->buffer, t->x->id, unit->id,
                        t->m->unit[t->x->unit].id);
            return false;
        }
        if (place_extent[p] > unit->count_max) {
            check_error(t->d, t->l->at,
                        "layout '%s' of operand '%s' of '%s' uses %s %lld, expected numbers below "
                        "its count %lld",
                        t->l->map_text, t->o->buffer, t->x->id, unit->id,
                        (long long)place_extent[p] - 1, (long long)unit->count_max);
            return false;
        }
    }
    return true;
}

/* between the issuing unit and the memory each unit with several instances must be told apart */
static void check_instances(const struct trial *t) {
    for (int i = 0; i < t->o->nmemories; i++) {
        if (t->o->memory[i] < 0) continue;
        const struct memory *y = &t->m->memory[t->o->memory[i]];
        if (!unit_inside(t->m, y->unit, t->x->unit)) continue;
        for (int u = y->unit; u != t->x->unit; u = t->m->unit[u].parent) {
            bool named = t->m->unit[u].count_max == 1;
            for (int p = 0; t->l->map && p < t->l->map->nplaces; p++)
                named = named || (t->l->map->place[p].unit &&
                                  !strcmp(t->l->map->place[p].unit, t->m->unit[u].id));
            if (!named)
                check_error(t->d, t->l->at,
                            "operand '%s' of '%s' is in memory '%s', of which each '%s' has its "
                            "own, expected a layout with a place '%s:…'",
                            t->o->buffer, t->x->id, y->id, t->m->unit[u].id, t->m->unit[u].id);
        }
    }
}

static bool next_point(const struct trial *t, int64_t *index) {
    for (int d = t->ndims; d--;) {
        if (++index[d] < t->extent[d]) return true;
        index[d] = 0;
    }
    return false;
}

/* ---- all points of a box, the last index fastest ---- */

/* Adds so many times the expression, which depends on index d alone, at each point. */
static void add_along(const struct trial *t, const struct lexpr *e, int64_t times, int d,
                      int64_t *out) {
    int64_t index[MAX_DIMS] = {0}, outer = 1, inner = 1, *at = out;
    for (int i = 0; i < d; i++) outer *= t->extent[i];
    for (int i = d + 1; i < t->ndims; i++) inner *= t->extent[i];
    int64_t *value = memory_array((size_t)t->extent[d], sizeof *value);
    for (int64_t v = 0; v < t->extent[d]; v++) {
        index[d] = v;
        value[v] = times * lexpr_eval(e, index);
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t v = 0; v < t->extent[d]; v++)
            for (int64_t i = 0; i < inner; i++) *at++ += value[v];
    free(value);
}

static void add_everywhere(const struct trial *t, const struct lexpr *e, int64_t times,
                           int64_t *out) {
    int64_t index[MAX_DIMS] = {0};
    do *out++ += times * lexpr_eval(e, index);
    while (next_point(t, index));
}

/* The same of any expression. Sums are added term by term: most terms depend on one index. */
static void add_values(const struct trial *t, const struct lexpr *e, int64_t times, int64_t *out) {
    int uses = 0, last = 0;
    for (int d = 0; d < t->ndims; d++)
        if (lexpr_uses(e, d)) uses++, last = d;
    if (uses <= 1) {
        add_along(t, e, times, last, out);
    } else if (e->op == '+' || e->op == '-') {
        add_values(t, e->a, times, out);
        add_values(t, e->b, e->op == '+' ? times : -times, out);
    } else if (e->op == '*' && e->a->op == 'n') {
        add_values(t, e->b, times * e->a->number, out);
    } else if (e->op == '*' && e->b->op == 'n') {
        add_values(t, e->a, times * e->b->number, out);
    } else {
        add_everywhere(t, e, times, out);
    }
}

struct seen {
    int64_t key, point;
};

/* The place of each point, as one number; true: some are negative. */
static bool find_places(const struct trial *t, const int64_t *place_extent, int64_t points,
                        struct seen *seen) {
    const struct layout *l = t->l->map;
    int64_t *value = memory_array((size_t)points, sizeof *value);
    bool negative = false;
    for (int64_t n = 0; n < points; n++) seen[n].point = n;
    for (int p = 0; p < l->nplaces; p++) {
        memset(value, 0, (size_t)points * sizeof *value);
        add_values(t, l->place[p].expr, 1, value);
        for (int64_t n = 0; n < points; n++) {
            negative |= value[n] < 0;
            seen[n].key = seen[n].key * place_extent[p] + value[n];
        }
    }
    free(value);
    return negative;
}

static int by_key(const void *a, const void *b) {
    const struct seen *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

static void spell_point(const struct trial *t, int64_t point, struct text *out) {
    int64_t index[MAX_DIMS];
    for (int d = t->ndims; d--; point /= t->extent[d]) index[d] = point % t->extent[d];
    for (int d = 0; d < t->ndims; d++)
        text_printf(out, "%s%lld", d ? "," : "", (long long)index[d]);
}

static void report_twice(const struct trial *t, const struct seen *a, const struct seen *b) {
    struct text one = {0}, two = {0};
    spell_point(t, a->point, &one);
    spell_point(t, b->point, &two);
    check_error(t->d, t->l->at,
                "layout '%s' of operand '%s' of '%s' puts elements %s and %s in one place, "
                "expected a place for each",
                t->l->map_text, t->o->buffer, t->x->id, one.at ? one.at : "", two.at ? two.at : "");
    text_free(&one);
    text_free(&two);
}

/* The first two points in one place; false: there are none. In a table of the places where these
 * are few. */
static bool find_twice(struct seen *seen, int64_t points, int64_t box, struct seen *a,
                       struct seen *b) {
    if (box > SPARSE * points) {
        qsort(seen, (size_t)points, sizeof *seen, by_key);
        for (int64_t n = 1; n < points; n++)
            if (seen[n].key == seen[n - 1].key) return *a = seen[n - 1], *b = seen[n], true;
        return false;
    }
    int32_t *at = memory_array((size_t)box, sizeof *at); /* 1 + the point there */
    bool found = false;
    for (int64_t n = 0; n < points && !found; n++) {
        int32_t *here = &at[seen[n].key];
        found = *here != 0;
        if (found) *a = seen[*here - 1], *b = seen[n];
        *here = (int32_t)n + 1;
    }
    free(at);
    return found;
}

static void check_places(const struct trial *t) {
    const struct layout *l = t->l->map;
    int64_t place_extent[64], box = 1, points = 1;
    bool units = false;
    for (int d = 0; d < t->ndims; d++) points *= t->extent[d];
    if (points == 0) return;
    layout_extents(l, t->extent, place_extent);
    for (int p = 0; p < l->nplaces; p++) {
        if (l->place[p].unit) units = true;
        if (place_extent[p] < 1) place_extent[p] = 1;
        if (__builtin_mul_overflow(box, place_extent[p], &box)) {
            check_error(t->d, t->l->at,
                        "layout '%s' of operand '%s' of '%s' reaches beyond 2^63 elements, "
                        "expected places near each other",
                        t->l->map_text, t->o->buffer, t->x->id);
            return;
        }
    }
    struct seen *seen = memory_array((size_t)points, sizeof *seen);
    bool negative = find_places(t, place_extent, points, seen);
    int before = t->d->errors;
    if (negative)
        check_error(t->d, t->l->at,
                    "layout '%s' of operand '%s' of '%s' has negative places, expected them from 0",
                    t->l->map_text, t->o->buffer, t->x->id);
    struct seen a, b;
    if (!negative && find_twice(seen, points, box, &a, &b)) report_twice(t, &a, &b);
    if (units && box != points && t->d->errors == before)
        check_error(t->d, t->l->at,
                    "layout '%s' of operand '%s' of '%s' leaves holes: %lld elements in %lld "
                    "places, expected each place of each unit used",
                    t->l->map_text, t->o->buffer, t->x->id, (long long)points, (long long)box);
    free(seen);
}

static void cut(struct trial *t) {
    for (;;) {
        int64_t points = 1;
        int widest = 0;
        bool many = false;
        for (int d = 0; d < t->ndims; d++) {
            many = many || __builtin_mul_overflow(points, t->extent[d], &points) || points > POINTS;
            if (t->extent[d] > t->extent[widest]) widest = d;
        }
        if (!many || t->extent[widest] <= 1) return;
        t->extent[widest] = (t->extent[widest] + 1) / 2;
    }
}

static void check_strides_differ(const struct trial *t) {
    for (int i = 0; i < t->l->nstrides; i++) {
        double v;
        if (mexpr_constant(t->l->stride[i], &v) && v == 0)
            check_error(t->d, t->l->at,
                        "operand '%s' of '%s' has stride 0, expected a broadcast to be said in the "
                        "semantics",
                        t->o->buffer, t->x->id);
    }
}

static bool known_right(const struct known_maps *k, const char *map, int ndims,
                        const int64_t *extent) {
    for (int i = 0; i < k->n; i++)
        if (k->at[i].ndims == ndims && !strcmp(k->at[i].map, map) &&
            !memcmp(k->at[i].extent, extent, (size_t)ndims * sizeof *extent))
            return true;
    return false;
}

static void know_right(struct known_maps *k, const char *map, int ndims, const int64_t *extent) {
    GROW(&k->arena, k->at, k->n, k->cap);
    struct known_map *x = &k->at[k->n++];
    *x = (struct known_map){.map = map, .ndims = ndims};
    memcpy(x->extent, extent, (size_t)ndims * sizeof *extent);
}

void check_instr_layouts(const struct machine *m, const struct instr *x, const struct program *p,
                         struct known_maps *known, struct diags *d) {
    for (int i = 0; i < x->noperands; i++) {
        int buffer = program_buffer(p, x->operand[i].buffer);
        if (buffer < 0) continue;
        const struct buffer *b = &p->buffer[buffer];
        for (int k = 0; k < x->operand[i].nlayouts; k++) {
            struct trial t = {m, x, &x->operand[i], &x->operand[i].layout[k], d, b->ndims, {0}};
            int64_t place_extent[64];
            memcpy(t.extent, b->extent, (size_t)b->ndims * sizeof *t.extent);
            if (!check_shape(&t, b->ndims)) continue;
            check_strides_differ(&t);
            struct swizzle swizzle;
            if (!swizzle_parse(t.l->swizzle, &swizzle))
                check_error(
                    d, t.l->at,
                    "swizzle '%s' of operand '%s' of '%s' is none, expected BITS,BASE,SHIFT "
                    "with BITS from 1 to SHIFT, 30 together at most",
                    t.l->swizzle, t.o->buffer, x->id);
            check_instances(&t);
            if (!t.l->map) continue;
            layout_extents(t.l->map, t.extent, place_extent);
            if (!check_units(&t, place_extent)) continue;
            if (known_right(known, t.l->map_text, b->ndims, b->extent)) continue;
            int before = d->errors;
            cut(&t);
            check_places(&t);
            if (d->errors == before) know_right(known, t.l->map_text, b->ndims, b->extent);
        }
    }
}

/* ---- copies that remain ---- */

struct bound {
    const struct machine *m;
    const struct program *p;
};

static bool value_of(void *user, const char *name, const char *field, double *out) {
    const struct bound *b = user;
    for (int i = 0; i < b->p->nparams && !field; i++)
        if (!strcmp(b->p->param[i].name, name)) return *out = (double)b->p->param[i].value, true;
    for (int i = 0; i < b->m->nparams && !field; i++)
        if (!strcmp(b->m->param[i].name, name)) return *out = (double)b->m->param[i].value, true;
    return false;
}

/* Bytes from the operand's first element to its last; 0: its strides are the schedule's choice. */
static int64_t operand_bytes(const struct bound *at, const struct operand *o,
                             const struct buffer *b) {
    const struct operand_layout *l = o->nlayouts == 1 ? &o->layout[0] : NULL;
    struct mexpr_env env = {.name = value_of, .user = (void *)at};
    int64_t last = 0, stride, bytes;
    if (o->nlayouts && (!l || l->map)) return 0;
    if (!l || !l->nstrides) return b->elements * (int64_t)type_size(o->type);
    for (int i = 0; i < b->ndims && i < l->nstrides; i++)
        if (!mexpr_integer(l->stride[i], &env, &stride, NULL) ||
            __builtin_mul_overflow(b->extent[i] - 1, stride, &bytes) ||
            __builtin_add_overflow(last, bytes, &last))
            return 0;
    return __builtin_mul_overflow(last + 1, (int64_t)type_size(o->type), &bytes) ? INT64_MAX
                                                                                 : bytes;
}

void check_copies(const struct machine *m, const struct instr *x, const struct program *p,
                  struct diags *d) {
    struct bound at = {m, p};
    for (int i = 0; i < x->noperands; i++) {
        const struct operand *o = &x->operand[i];
        int buffer = program_buffer(p, o->buffer);
        int64_t room = o->also >= 0 ? m->memory[o->also].size : -1;
        if (buffer < 0 || room < 0) continue;
        int64_t bytes = operand_bytes(&at, o, &p->buffer[buffer]);
        if (bytes > room)
            check_error(d, o->at,
                        "operand '%s' of '%s' takes up to %lld bytes, of which a copy remains in "
                        "memory '%s' of %lld, expected one that it fits",
                        o->buffer, x->id, (long long)bytes, m->memory[o->also].id, (long long)room);
    }
}
