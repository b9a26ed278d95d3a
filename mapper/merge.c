/* Canonical axes (MAPPING, step 1): where all that a statement knows of axes a and b is
 * a * extent(b) + b, they are one axis there. So splitting an axis by hand changes no mapping. */
#include "mapper/mapper_int.h"

#include <string.h>

static bool rows_collinear(const int64_t *row, int a, int b, int64_t extent) {
    int64_t whole;
    return !__builtin_mul_overflow(row[b], extent, &whole) && row[a] == whole;
}

static bool access_merges(const struct program *p, const struct access *x, int a, int b) {
    for (int d = 0; d < p->buffer[x->buffer].ndims; d++)
        if (!rows_collinear(x->coef + (size_t)d * ((size_t)p->naxes + 1), a, b, p->axis[b].extent))
            return false;
    return true;
}

static bool axis_plain(const struct program *p, const struct stmt *s, int a) {
    return s->axes >> a & 1 && p->axis[a].extent > 1 && !p->axis[a].sequential &&
           p->axis[a].size == 0;
}

static bool stmt_merges(const struct program *p, const struct stmt *s, int a, int b) {
    if (a == b || !axis_plain(p, s, a) || !axis_plain(p, s, b)) return false;
    if (!access_merges(p, &s->dst, a, b)) return false;
    for (int r = 0; r < s->nreads; r++)
        if (!access_merges(p, &s->read[r], a, b)) return false;
    for (int w = 0; w < s->nwhere; w++)
        if (!rows_collinear(s->where[w].coef, a, b, p->axis[b].extent)) return false;
    for (int o = 0; o < s->nops; o++)
        if (s->op[o].code == OP_AXIS && (s->op[o].axis == a || s->op[o].axis == b)) return false;
    return true;
}

static bool find_pair(const struct program *p, int *a, int *b) {
    for (int s = 0; s < p->nstmts; s++)
        for (*a = 0; *a < p->naxes; ++*a)
            for (*b = 0; *b < p->naxes; ++*b) {
                int64_t extent;
                if (stmt_merges(p, &p->stmt[s], *a, *b) &&
                    !__builtin_mul_overflow(p->axis[*a].extent, p->axis[*b].extent, &extent))
                    return true;
            }
    return false;
}

/* Rows get one more column, before the constant; with `merge` it takes b's place, and a's. */
static int64_t *wider(struct program *p, const int64_t *old, int rows, bool merge, int a, int b) {
    size_t n = (size_t)p->naxes;
    int64_t *new = arena_array(&p->arena, (n + 2) * (size_t)rows, sizeof *new);
    for (size_t d = 0; d < (size_t)rows; d++) {
        int64_t *row = new + d *(n + 2);
        memcpy(row, old + d * (n + 1), n * sizeof *row);
        row[n] = merge ? row[b] : 0;
        row[n + 1] = old[d * (n + 1) + n];
        if (merge) row[a] = row[b] = 0;
    }
    return new;
}

static void merge_pair(struct program *p, int a, int b) {
    int made = p->naxes;
    for (int k = 0; k < p->nstmts; k++) {
        struct stmt *s = &p->stmt[k];
        bool merge = stmt_merges(p, s, a, b);
        for (int r = -1; r < s->nreads; r++) {
            struct access *x = r < 0 ? &s->dst : &s->read[r];
            x->coef = wider(p, x->coef, p->buffer[x->buffer].ndims, merge, a, b);
        }
        for (int w = 0; w < s->nwhere; w++)
            s->where[w].coef = wider(p, s->where[w].coef, 1, merge, a, b);
        if (!merge) continue;
        s->axes &= ~(UINT64_C(1) << a | UINT64_C(1) << b);
        s->axes |= UINT64_C(1) << made;
    }
    struct axis *grown = arena_array(&p->arena, (size_t)made + 1, sizeof *grown);
    memcpy(grown, p->axis, (size_t)made * sizeof *grown);
    grown[made] =
        (struct axis){.name = arena_printf(&p->arena, "%s.%s", p->axis[a].name, p->axis[b].name),
                      .extent = p->axis[a].extent * p->axis[b].extent,
                      .param = -1};
    p->axis = grown;
    p->naxes++;
}

struct program *program_merged(const struct program *p, struct merged_axes *of) {
    int a, b;
    *of = (struct merged_axes){.first = p->naxes};
    if (!find_pair(p, &a, &b) || p->naxes == MAX_AXES) return NULL;
    struct program *q = program_copy(p);
    while (q->naxes < MAX_AXES && find_pair(q, &a, &b)) {
        of->pair[q->naxes][0] = a;
        of->pair[q->naxes][1] = b;
        merge_pair(q, a, b);
    }
    return q;
}

int axis_unmerged(const struct merged_axes *of, int axis) {
    while (axis >= of->first) axis = of->pair[axis][1];
    return axis;
}

static bool unmerge(const struct merged_axes *of, int axis, struct group *out) {
    if (axis >= of->first)
        return unmerge(of, of->pair[axis][0], out) && unmerge(of, of->pair[axis][1], out);
    if (out->n == MAX_GROUP) return false;
    out->axis[out->n++] = axis;
    return true;
}

bool group_unmerged(const struct merged_axes *of, struct group *g) {
    struct group out = {.n = 0};
    for (int k = 0; k < g->n; k++)
        if (!unmerge(of, g->axis[k], &out)) return false;
    *g = out;
    return true;
}
