#include "bench/peak.h"

#include <string.h>

/* Axes added behind those of the semantics. */
enum { AXIS_V, AXIS_U, AXIS_T, ADDED };
enum { V = 24, U = 12, MAX_T = 512, MIN_T = 16 };
static const double MOST_MACS = 1 << 27; /* an instruction may be a library call */

static int64_t smallest_cache(const struct machine *m) {
    int64_t size = 0;
    for (int i = 0; i < m->nmemories; i++)
        if (m->memory[i].caches >= 0 && m->memory[i].size > 0 &&
            (size == 0 || m->memory[i].size < size))
            size = m->memory[i].size;
    return size;
}

/* A's first dimension; C is there for every v and u. */
static struct buffer grown(struct arena *a, const struct buffer *from, enum role role,
                           const int64_t *more, int n) {
    struct buffer b = *from;
    b.name = arena_strdup(a, from->name);
    b.role = role;
    b.ndims = from->ndims + n;
    b.extent = arena_array(a, (size_t)b.ndims + 1, sizeof *b.extent);
    for (int d = 0; d < n; d++) b.extent[d] = more[d];
    for (int d = 0; d < from->ndims; d++) b.extent[n + d] = from->extent[d];
    b.elements = 1;
    for (int d = 0; d < b.ndims; d++) b.elements *= b.extent[d];
    return b;
}

static struct access widened(struct arena *a, const struct program *from, const struct access *x,
                             int buffer, const int *added, int n) {
    struct access y = *x;
    int old = from->naxes, now = old + ADDED, ndims = from->buffer[x->buffer].ndims;
    y.buffer = buffer;
    y.coef = arena_array(a, (size_t)((ndims + n) * (now + 1)) + 1, sizeof *y.coef);
    for (int d = 0; d < n; d++) y.coef[d * (now + 1) + old + added[d]] = 1;
    for (int d = 0; d < ndims; d++) {
        int64_t *row = y.coef + (n + d) * (now + 1);
        for (int k = 0; k < old; k++) row[k] = access_coef(from, x, d, k);
        row[now] = access_coef(from, x, d, old);
    }
    return y;
}

struct program *peak_program(const struct machine *m, const struct mac_unit *u) {
    const struct program *from = u->semantics;
    const struct stmt *s = &from->stmt[u->stmt];
    static const int of_c[] = {AXIS_V, AXIS_U}, of_a[] = {AXIS_T};
    if (s->nwhere || s->nreads != 2 || s->read[0].buffer == s->read[1].buffer ||
        from->naxes + ADDED > MAX_AXES)
        return NULL;
    const struct buffer *a = &from->buffer[s->read[0].buffer];
    int64_t tile = a->elements * (int64_t)type_size(a->type), cache = smallest_cache(m),
            t = cache ? cache / 2 / tile : MAX_T;
    t = t > MAX_T ? MAX_T : t < MIN_T ? MIN_T : t;
    int64_t v = V, w = U;
    double points = (double)stmt_points(from, s);
    while (points * (double)(v * w * t) > MOST_MACS && v * w * t > 1)
        *(v > 1 ? &v : w > 1 ? &w : &t) /= 2;

    struct program *p = program_new("peak");
    p->buffer = arena_array(&p->arena, 3, sizeof *p->buffer);
    p->nbuffers = 3;
    p->buffer[0] = grown(&p->arena, a, ROLE_IN, &t, 1);
    p->buffer[1] = grown(&p->arena, &from->buffer[s->read[1].buffer], ROLE_CONST, NULL, 0);
    p->buffer[2] = grown(&p->arena, &from->buffer[s->dst.buffer], ROLE_INOUT, (int64_t[]){v, w}, 2);
    p->naxes = from->naxes + ADDED;
    p->axis = arena_array(&p->arena, (size_t)p->naxes, sizeof *p->axis);
    for (int k = 0; k < from->naxes; k++) {
        p->axis[k] = from->axis[k];
        p->axis[k].name = arena_strdup(&p->arena, from->axis[k].name);
        p->axis[k].param = -1;
    }
    static const char *const name[] = {"peak.v", "peak.u", "peak.t"};
    int64_t extent[] = {v, w, t};
    for (int k = 0; k < ADDED; k++)
        p->axis[from->naxes + k] = (struct axis){.name = name[k], .extent = extent[k], .param = -1};

    p->stmt = arena_array(&p->arena, 1, sizeof *p->stmt);
    p->nstmts = p->nitems = 1;
    struct stmt *to = &p->stmt[0];
    *to = *s;
    to->op = arena_copy(&p->arena, s->op, (size_t)s->nops * sizeof *s->op);
    to->read = arena_array(&p->arena, 2, sizeof *to->read);
    to->read[0] = widened(&p->arena, from, &s->read[0], 0, of_a, 1);
    to->read[1] = widened(&p->arena, from, &s->read[1], 1, NULL, 0);
    to->dst = widened(&p->arena, from, &s->dst, 2, of_c, 2);
    to->where = NULL;
    for (int k = 0; k < ADDED; k++) to->axes |= (uint64_t)1 << (from->naxes + k);
    p->item = arena_array(&p->arena, 1, sizeof *p->item);
    p->item[0] = (struct item){.kind = ITEM_STMT, .stmt = 0};
    return p;
}
