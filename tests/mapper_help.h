/* For the mapper's tests: programs from text, and execution of mappings over a prime field. */
#ifndef ISAMAP_TESTS_MAPPER_HELP_H
#define ISAMAP_TESTS_MAPPER_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mapper/mapper.h"

static inline uint64_t help_random(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    return *s ^= *s << 17;
}

static inline int help_below(uint64_t *s, int n) {
    return (int)(help_random(s) % (uint64_t)n);
}

/* The first kernel of a text; its own parameters, those with a range being open; `;` ends a line. Fails the test when it is not
 * one. */
static inline struct program *help_program(const char *file, const char *written) {
    struct arena a;
    struct diags d;
    struct kernel **k;
    arena_init(&a);
    diags_init(&d);
    struct source *s = arena_alloc(&a, sizeof *s);
    char *text = arena_strdup(&a, written);
    for (char *c = text; *c; c++)
        if (*c == ';') *c = '\n';
    *s = (struct source){.file = file, .text = text, .length = strlen(text), .line0 = 1, .col0 = 1};
    struct program *p =
        kernel_parse(&a, s, &k, &d) > 0 ? program_bind_sizes(k[0], NULL, NULL, &d) : NULL;
    if (!p) diags_print(&d, stderr);
    assert_non_null(p);
    p->source.text = NULL; /* it does not outlive the arena */
    diags_free(&d);
    arena_free(&a);
    return p;
}

static inline char *help_text(const char *path) {
    struct arena a;
    struct diags d;
    size_t n;
    arena_init(&a);
    diags_init(&d);
    char *text = file_read(&a, path, 1 << 20, &n, &d);
    assert_non_null(text);
    char *copy = strdup(text);
    diags_free(&d);
    arena_free(&a);
    return copy;
}

static inline struct program *help_operator(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "examples/operators/%s.isam", name);
    char *text = help_text(path);
    struct program *p = help_program(name, text);
    free(text);
    return p;
}

static inline struct machine *help_machine(const char *name) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(name, NULL, &d);
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

/* ---- the prime field 2^61 - 1 ---- */

#define HELP_PRIME ((UINT64_C(1) << 61) - 1)

static inline uint64_t help_mul(uint64_t a, uint64_t b) {
    return (uint64_t)((unsigned __int128)a * b % HELP_PRIME);
}

static inline uint64_t help_add(uint64_t a, uint64_t b) {
    return (a + b) % HELP_PRIME;
}

enum { HELP_CELLS = 4096 };

/* The only statement is dst += read0 * read1; needle likewise. One way of executing it: which axis
 * stands on which needle axis
 * (-1: outer), and which haystack read plays which needle read. */
struct help_assignment {
    int axis[MAX_AXES];
    int read[2];
    bool init; /* the first visit of an element of the result begins with 0, not with what is there */
};

/* -1: outside of the buffer. */
static inline int64_t help_index(const struct program *p, const struct access *a,
                                 const int64_t *at) {
    int64_t index = 0;
    const struct buffer *b = &p->buffer[a->buffer];
    for (int d = 0; d < b->ndims; d++) {
        int64_t i = access_coef(p, a, d, p->naxes);
        for (int x = 0; x < p->naxes; x++) i += access_coef(p, a, d, x) * at[x];
        if (i < 0 || i >= b->extent[d]) return -1;
        index = index * b->extent[d] + i;
    }
    return index;
}

/* What lies outside has a value of its own at each place: more than the fill says, so that mappings
 * are right whatever the fill is, not because all of it is alike. */
static inline uint64_t help_read(const struct program *p, const struct access *a,
                                 const uint64_t *cell, const int64_t *at) {
    int64_t e = help_index(p, a, at);
    if (e >= 0) return cell[e];
    uint64_t hash = (uint64_t)a->buffer + 1;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t i = access_coef(p, a, d, p->naxes);
        for (int x = 0; x < p->naxes; x++) i += access_coef(p, a, d, x) * at[x];
        hash = (hash ^ (uint64_t)(i + 1000)) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash % HELP_PRIME;
}

/* Odometer over the axes of the mask; false: back at the start. */
static inline bool help_step(const struct program *p, uint64_t mask, int64_t *at) {
    for (int a = p->naxes; a-- > 0;) {
        if (!(mask >> a & 1)) continue;
        if (++at[a] < p->axis[a].extent) return true;
        at[a] = 0;
    }
    return false;
}

struct help_data {
    uint64_t cell[3][HELP_CELLS];
}; /* read 0, read 1, destination */

static inline void help_fill(const struct program *p, struct help_data *d, uint64_t seed) {
    const struct stmt *s = &p->stmt[p->nstmts - 1];
    int buffer[3] = {s->read[0].buffer, s->read[1].buffer, s->dst.buffer};
    for (int k = 0; k < 3; k++) {
        assert_true(p->buffer[buffer[k]].elements <= HELP_CELLS);
        for (int64_t i = 0; i < p->buffer[buffer[k]].elements; i++)
            d->cell[k][i] = help_random(&seed) % HELP_PRIME;
    }
}

static inline void help_reference(const struct program *p, struct help_data *d) {
    const struct stmt *s = &p->stmt[p->nstmts - 1];
    int64_t at[MAX_AXES] = {0};
    do {
        uint64_t product = help_mul(help_read(p, &s->read[0], d->cell[0], at),
                                    help_read(p, &s->read[1], d->cell[1], at));
        uint64_t *c = &d->cell[2][help_index(p, &s->dst, at)];
        *c = help_add(*c, product);
    } while (help_step(p, s->axes, at));
}

/* The needle's place of a point: mixed radix in each group, needle extents those of the groups. */
static inline void help_place(const struct program *p, const struct help_assignment *f, int nneedle,
                              const int64_t *at, int64_t *place) {
    for (int x = 0; x < nneedle; x++) place[x] = 0;
    for (int a = 0; a < p->naxes; a++)
        if (f->axis[a] >= 0) place[f->axis[a]] = place[f->axis[a]] * p->axis[a].extent + at[a];
}

static inline const struct stmt *help_product(const struct program *p) {
    return &p->stmt[p->nstmts - 1];
}

static inline int64_t help_needle_index(const struct program *n, const struct access *a,
                                        const int64_t *place, const int64_t *extent) {
    int64_t index = 0;
    for (int d = 0; d < n->buffer[a->buffer].ndims; d++) {
        int64_t i = access_coef(n, a, d, n->naxes), size = 1;
        for (int x = 0; x < n->naxes; x++) {
            i += access_coef(n, a, d, x) * place[x];
            size += access_coef(n, a, d, x) * (extent[x] - 1);
        }
        index = index * size + i;
    }
    return index;
}

/* For each outer point: load the tiles, run the needle on all its points, store the result's tile.
 */
static inline void help_execute(const struct program *p, const struct program *n,
                                const struct help_assignment *f, struct help_data *d) {
    static uint64_t tile[3][HELP_CELLS];
    static int first[HELP_CELLS]; /* the issue that comes to an element first */
    int issue = 1;
    const struct stmt *s = &p->stmt[p->nstmts - 1], *ns = &n->stmt[0];
    const struct access *hay[3] = {&s->read[f->read[0]], &s->read[f->read[1]], &s->dst};
    const struct access *needle[3] = {&ns->read[0], &ns->read[1], &ns->dst};
    int data[3] = {f->read[0], f->read[1], 2};
    uint64_t inner = 0, outer = 0;
    int64_t extent[MAX_AXES], at[MAX_AXES] = {0}, place[MAX_AXES];
    if (f->init) memset(first, 0, sizeof first);
    for (int x = 0; x < n->naxes; x++) extent[x] = 1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1)) continue;
        *(f->axis[a] >= 0 ? &inner : &outer) |= UINT64_C(1) << a;
        if (f->axis[a] >= 0) extent[f->axis[a]] *= p->axis[a].extent;
    }
    do {
        do {
            help_place(p, f, n->naxes, at, place);
            for (int k = 0; k < 3; k++)
                tile[k][help_needle_index(n, needle[k], place, extent)] =
                    help_read(p, hay[k], d->cell[data[k]], at);
            int64_t e = help_index(p, &s->dst, at);
            if (f->init && !first[e]) first[e] = issue;
            if (f->init && first[e] == issue)
                tile[2][help_needle_index(n, &ns->dst, place, extent)] = 0;
        } while (help_step(p, inner, at));
        do {
            help_place(p, f, n->naxes, at, place);
            int64_t i[3];
            for (int k = 0; k < 3; k++) i[k] = help_needle_index(n, needle[k], place, extent);
            tile[2][i[2]] = help_add(tile[2][i[2]], help_mul(tile[0][i[0]], tile[1][i[1]]));
        } while (help_step(p, inner, at));
        do {
            help_place(p, f, n->naxes, at, place);
            d->cell[2][help_index(p, &s->dst, at)] =
                tile[2][help_needle_index(n, &ns->dst, place, extent)];
        } while (help_step(p, inner, at));
        issue++;
    } while (help_step(p, outer, at));
}

static inline bool help_valid(const struct program *p, const struct program *n,
                              const struct help_assignment *f, uint64_t seed) {
    static struct help_data want, got;
    const struct stmt *s = &p->stmt[p->nstmts - 1];
    help_fill(p, &want, seed);
    int buffer[3] = {s->read[0].buffer, s->read[1].buffer, s->dst.buffer};
    for (int k = 0; k < 3; k++)
        memcpy(got.cell[k], want.cell[k],
               (size_t)p->buffer[buffer[k]].elements * sizeof(uint64_t));
    if (f->init) memset(want.cell[2], 0, sizeof want.cell[2]);
    help_reference(p, &want);
    help_execute(p, n, f, &got);
    size_t bytes = (size_t)p->buffer[s->dst.buffer].elements * sizeof(uint64_t);
    return memcmp(want.cell[2], got.cell[2], bytes) == 0;
}

/* ---- random tiny programs ---- */

struct help_row { /* of an access: up to two axes with their factors, and a shift */
    int axis[2], factor[2], n, shift;
};

static inline struct help_row help_random_row(uint64_t *seed, int naxes, bool shifted) {
    struct help_row r = {.n = 1 + (help_below(seed, 4) == 0)};
    for (int t = 0; t < r.n; t++) {
        r.axis[t] = help_below(seed, naxes);
        r.factor[t] = 1 + (help_below(seed, 5) == 0) + (help_below(seed, 10) == 0);
    }
    if (shifted) r.shift = -help_below(seed, 2);
    return r;
}

/* dst += A * B, in either order, with at most 4 axes of extents up to 3, rows of one or two axes,
 * strides up to 3, reads beyond the ends, and perhaps a fill before. The last statement is the
 * product. */
static inline struct program *help_tiny(uint64_t *seed) {
    static const char *const axis[4] = {"a", "b", "c", "d"};
    static const char *const buffer[3] = {"C", "A", "B"}, *const role[3] = {"inout", "in", "in"};
    int naxes = 2 + help_below(seed, 3), extent[4];
    bool fill = help_below(seed, 3) == 0, swap = help_below(seed, 2);
    struct text decl = {0}, index[3] = {{0}}, plain = {0};
    for (int a = 0; a < naxes; a++)
        extent[a] = help_below(seed, 8) == 0 ? 1 : 2 + help_below(seed, 2);
    text_printf(&decl, "kernel tiny() {\n axes");
    for (int a = 0; a < naxes; a++)
        text_printf(&decl, "%s %s: %d", a ? "," : "", axis[a], extent[a]);
    for (int b = 0; b < 3; b++) {
        int ndims = 1 + help_below(seed, 3);
        bool shifted = b > 0 && help_below(seed, 4) == 0;
        text_printf(&index[b], "%s[", buffer[b]);
        if (b == 0) text_printf(&plain, "C[");
        struct text shape = {0};
        for (int d = 0; d < ndims; d++) {
            struct help_row r = help_random_row(seed, naxes, shifted);
            int size = 1;
            text_printf(&index[b], "%s", d ? ", " : "");
            for (int t = 0; t < r.n; t++) {
                text_printf(&index[b], "%s%d*%s", t ? "+" : "", r.factor[t], axis[r.axis[t]]);
                size += r.factor[t] * (extent[r.axis[t]] - 1);
            }
            if (r.shift) text_printf(&index[b], "%d", r.shift);
            text_printf(&shape, "%s%d", d ? ", " : "", size);
            if (b == 0) text_printf(&plain, "%sf%d", d ? ", " : "", d);
            if (b == 0) text_printf(&decl, ", f%d: %d", d, size);
        }
        if (shifted) text_printf(&index[b], " else %d", help_below(seed, 3));
        text_printf(&index[b], "]");
        if (b == 0) text_printf(&plain, "]");
        text_printf(&decl, "\n %s %s: i64[%s]", b == 0 && fill ? "out" : role[b], buffer[b],
                    shape.at);
        text_free(&shape);
    }
    if (fill) text_printf(&decl, "\n %s = 0", plain.at);
    text_printf(&decl, "\n %s += %s * %s\n}\n", index[0].at, index[1 + swap].at,
                index[2 - swap].at);
    struct program *p = help_program("tiny", decl.at);
    text_free(&decl);
    text_free(&plain);
    for (int b = 0; b < 3; b++) text_free(&index[b]);
    return p;
}

#endif
