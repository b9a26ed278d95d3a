/* Copies into a part of a larger temporary (a concatenation): who makes the part writes it there.
 *
 *     t[i,j] = 0                          c[i + 8, j] = 0
 *     t[i,j] += a[i,k] * b[k,j]     →     c[i + 8, j] += a[i,k] * b[k,j]
 *     c[i + 8, j] = t[i,j]
 *
 * Copy coalescing (Chaitin 1982), of arrays. */
#include "ir/program.h"

#include <string.h>

struct coalescing {
    struct program *p;
    int buffer, first, copy; /* who writes it first; the copy, which alone reads it */
    int axis[MAX_DIMS];      /* of the copy: what walks each dimension of the buffer; -1: only 0 */
};

/* Written only before the copy, which alone reads it. */
static bool find_copy(struct coalescing *c) {
    const struct program *p = c->p;
    c->first = c->copy = -1;
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *x = &p->stmt[s];
        if (x->dst.buffer == c->buffer) {
            if (c->copy >= 0 || program_item(p, s) < 0) return false;
            if (c->first < 0) c->first = s;
        }
        for (int r = 0; r < x->nreads; r++) {
            if (x->read[r].buffer != c->buffer) continue;
            if (c->copy >= 0 || c->first < 0) return false;
            c->copy = s;
        }
    }
    if (c->copy < 0 || program_item(p, c->copy) < 0) return false;
    const struct stmt *x = &p->stmt[c->copy];
    const struct buffer *to = &p->buffer[x->dst.buffer];
    return x->combine == COMBINE_SET && x->nops == 1 && !x->nwhere && to->role == ROLE_TEMP &&
           to->type == p->buffer[c->buffer].type;
}

/* The axis that alone walks the dimension, in steps of one; -1: none does, -2: another walk. */
static int walking_axis(const struct program *p, const struct access *a, int dim) {
    int found = -1;
    for (int x = 0; x < p->naxes; x++) {
        if (!access_coef(p, a, dim, x)) continue;
        if (found >= 0 || access_coef(p, a, dim, x) != 1) return -2;
        found = x;
    }
    return found;
}

/* All of the buffer is read, each element once. */
static bool match_axes(struct coalescing *c) {
    const struct program *p = c->p;
    const struct stmt *copy = &p->stmt[c->copy];
    uint64_t seen = 0;
    if (copy->read[0].has_fill) return false;
    for (int d = 0; d < p->buffer[c->buffer].ndims; d++) {
        int x = c->axis[d] = walking_axis(p, &copy->read[0], d);
        if (access_coef(p, &copy->read[0], d, p->naxes) != 0) return false;
        if (x < -1 || (x >= 0 && (seen >> x & 1 || p->axis[x].sequential))) return false;
        if ((x >= 0 ? p->axis[x].extent : 1) != p->buffer[c->buffer].extent[d]) return false;
        if (x >= 0) seen |= UINT64_C(1) << x;
    }
    return seen == copy->axes;
}

/* The part lies there in the order in which the buffer lies: no transposition, no stride. */
static bool keeps_order(const struct coalescing *c) {
    const struct program *p = c->p;
    const struct access *to = &p->stmt[c->copy].dst;
    int ndims = p->buffer[c->buffer].ndims;
    if (p->buffer[to->buffer].ndims != ndims) return false;
    for (int d = 0; d < ndims; d++)
        for (int x = 0; x < p->naxes; x++)
            if (access_coef(p, to, d, x) != (x == c->axis[d])) return false;
    return true;
}

/* Every statement that makes the buffer walks it without strides: what is interleaved would lend
 * the whole an order in which others read it badly. */
static bool made_in_order(const struct coalescing *c) {
    const struct program *p = c->p;
    for (int s = c->first; s < c->copy; s++) {
        const struct access *to = &p->stmt[s].dst;
        for (int d = 0; to->buffer == c->buffer && d < p->buffer[c->buffer].ndims; d++)
            if (walking_axis(p, to, d) < -1) return false;
    }
    return true;
}

/* Nothing meets the part between the first value there and the copy. */
static bool part_is_free(const struct coalescing *c) {
    const struct program *p = c->p;
    const struct stmt *copy = &p->stmt[c->copy];
    for (int s = c->first; s < c->copy; s++) {
        const struct stmt *x = &p->stmt[s];
        if (x->dst.buffer == copy->dst.buffer && !stmt_parts_differ(p, x, copy)) return false;
        for (int r = 0; r < x->nreads; r++)
            if (x->read[r].buffer == copy->dst.buffer) return false;
    }
    return true;
}

/* Somebody reads what stands there already while parts are still to come: then parts would be made
 * in one layout for all of these readers. */
static bool grows(const struct program *p, int whole) {
    bool read = false;
    for (int s = 0; s < p->nstmts; s++) {
        if (read && p->stmt[s].dst.buffer == whole) return true;
        for (int r = 0; r < p->stmt[s].nreads; r++) read |= p->stmt[s].read[r].buffer == whole;
    }
    return false;
}

/* The place in the part of the element that the access names. */
static struct access moved(const struct coalescing *c, const struct access *from) {
    struct program *p = c->p;
    const struct access *to = &p->stmt[c->copy].dst;
    size_t width = (size_t)p->naxes + 1, ndims = (size_t)p->buffer[to->buffer].ndims;
    struct access a = {.buffer = to->buffer};
    a.coef = arena_array(&p->arena, width * ndims, sizeof *a.coef);
    memcpy(a.coef, from->coef, width * ndims * sizeof *a.coef);
    for (size_t d = 0; d < ndims; d++)
        a.coef[d * width + width - 1] += access_coef(p, to, (int)d, p->naxes);
    return a;
}

/* What constants alone decide stays: it is made once, and its copy is all that each run does. */
static bool coalesce(struct program *p, int buffer) {
    struct coalescing c = {.p = p, .buffer = buffer};
    if (p->buffer[buffer].role != ROLE_TEMP || p->buffer[buffer].size) return false;
    if (!find_copy(&c) || !match_axes(&c)) return false;
    const struct stmt *copy = &p->stmt[c.copy];
    if (p->buffer[copy->dst.buffer].size || !keeps_order(&c) || !made_in_order(&c)) return false;
    if (program_held(p, buffer) || program_held(p, copy->dst.buffer)) return false;
    if (!part_is_free(&c) || grows(p, copy->dst.buffer) || buffer_steady(p, buffer)) return false;
    for (int s = c.first; s < c.copy; s++)
        if (p->stmt[s].dst.buffer == buffer) p->stmt[s].dst = moved(&c, &p->stmt[s].dst);
    program_drop_stmt(p, c.copy);
    program_drop_buffer(p, buffer);
    return true;
}

int program_coalesce(struct program *p) {
    int n = 0;
    for (int b = 0; b < p->nbuffers;)
        if (coalesce(p, b))
            n++;
        else
            b++;
    return n;
}
