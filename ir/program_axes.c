/* Programs have room for MAX_AXES axes, statements name a few: an axis is a name and an extent, and
 * statements that have nothing to do with each other may share it. */
#include "ir/steps.h"

static bool moved_by(const struct program *p, const struct stmt *s, int axis) {
    if (s->axes >> axis & 1) return true;
    for (int r = -1; r < s->nreads; r++) {
        const struct access *a = r < 0 ? &s->dst : &s->read[r];
        for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
            if (access_coef(p, a, d, axis)) return true;
    }
    for (int w = 0; w < s->nwhere; w++)
        if (s->where[w].coef[axis]) return true;
    for (int o = 0; o < s->nops; o++)
        if (s->op[o].code == OP_AXIS && s->op[o].axis == axis) return true;
    return false;
}

static int64_t *without_column(struct arena *a, const int64_t *coef, int rows, int n, int at) {
    int64_t *out = arena_array(a, (size_t)rows * (size_t)n + 1, sizeof *out);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < n; k++) out[r * n + k] = coef[r * (n + 1) + k + (k >= at)];
    return out;
}

static void drop_axis(struct program *p, int at) {
    int n = p->naxes;
    uint64_t low = (UINT64_C(1) << at) - 1;
    for (int k = 0; k < p->nstmts; k++) {
        struct stmt *s = &p->stmt[k];
        s->dst.coef = without_column(&p->arena, s->dst.coef, p->buffer[s->dst.buffer].ndims, n, at);
        for (int r = 0; r < s->nreads; r++)
            s->read[r].coef = without_column(&p->arena, s->read[r].coef,
                                             p->buffer[s->read[r].buffer].ndims, n, at);
        for (int w = 0; w < s->nwhere; w++)
            s->where[w].coef = without_column(&p->arena, s->where[w].coef, 1, n, at);
        for (int o = 0; o < s->nops; o++)
            if (s->op[o].code == OP_AXIS && s->op[o].axis > at) s->op[o].axis--;
        s->axes = (s->axes & low) | (s->axes >> 1 & ~low);
    }
    for (int a = at; a + 1 < n; a++) p->axis[a] = p->axis[a + 1];
    p->naxes--;
}

void program_share_axes(struct program *p, int from, int to, int first) {
    uint64_t used = 0;
    int map[MAX_AXES];
    for (int s = from; s < to; s++)
        for (int a = 0; a < p->naxes; a++)
            if (moved_by(p, &p->stmt[s], a)) used |= UINT64_C(1) << a;
    for (int s = from; s < to; s++)
        if (p->stmt[s].nwhere) return;
    for (int a = 0; a < p->naxes; a++) {
        map[a] = a;
        if (a < first || p->axis[a].sequential || !(used >> a & 1)) continue;
        for (int b = 0; b < a && map[a] == a; b++)
            if (!(used >> b & 1) && !p->axis[b].sequential &&
                p->axis[b].extent == p->axis[a].extent) {
                map[a] = b;
                used |= UINT64_C(1) << b;
            }
    }
    for (int s = from; s < to; s++) stmt_rename_axes(&p->arena, p, &p->stmt[s], map);
    for (int a = p->naxes; a-- > first;) {
        bool needed = p->axis[a].sequential;
        for (int s = 0; s < p->nstmts && !needed; s++) needed = moved_by(p, &p->stmt[s], a);
        if (!needed) drop_axis(p, a);
    }
}
