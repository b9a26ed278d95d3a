/* Statements under other names of axes, so that two of them walk the same loops. */
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/work.h"

bool nest_axes(const struct work *w, const struct access *made, uint64_t made_axes,
               const struct access *used, uint64_t used_axes, int *map) {
    const struct program *p = w->p;
    uint64_t covered = 0, taken = 0;
    for (int d = 0; d < p->buffer[made->buffer].ndims; d++) {
        int a = access_lone(p, made, d, made_axes), b = access_lone(p, used, d, used_axes);
        if (a == -2 || b == -2) return false;
        if (a < 0 || b < 0) {
            if (a != b || access_coef(p, made, d, p->naxes) != access_coef(p, used, d, p->naxes))
                return false;
            continue;
        }
        if (p->axis[a].extent != p->axis[b].extent || (covered >> b & 1) || (taken >> a & 1))
            return false;
        map[b] = a;
        covered |= UINT64_C(1) << b;
        taken |= UINT64_C(1) << a;
    }
    for (int b = 0; b < p->naxes; b++)
        if ((used_axes >> b & 1) && !(covered >> b & 1)) {
            if (p->axis[b].extent > 1) return false;
            map[b] = b;
        }
    return !used->has_fill;
}

static void rename_access(struct program *p, struct access *a, const int *map, uint64_t axes) {
    int n = p->naxes;
    int rows = p->buffer[a->buffer].ndims;
    int64_t *out = arena_array(&p->arena, (size_t)rows * (size_t)(n + 1) + 1, sizeof *out);
    for (int d = 0; d < rows; d++) {
        out[d * (n + 1) + n] = a->coef[d * (n + 1) + n];
        for (int b = 0; b < n; b++)
            out[d * (n + 1) + (axes >> b & 1 ? map[b] : b)] += a->coef[d * (n + 1) + b];
    }
    a->coef = out;
}

void stmt_rename(struct program *p, struct stmt *st, const int *map) {
    uint64_t axes = 0;
    rename_access(p, &st->dst, map, st->axes);
    for (int r = 0; r < st->nreads; r++) rename_access(p, &st->read[r], map, st->axes);
    for (int i = 0; i < st->nops; i++)
        if (st->op[i].code == OP_AXIS) st->op[i].axis = map[st->op[i].axis];
    for (int b = 0; b < p->naxes; b++)
        if (st->axes >> b & 1) axes |= UINT64_C(1) << map[b];
    st->axes = axes;
}

bool stmt_adopt(struct work *w, struct stmt *st, const struct access *used,
                const struct access *made, uint64_t made_axes, int *map) {
    int own[MAX_AXES];
    if (!map) map = own;
    for (int a = 0; a < MAX_AXES; a++) map[a] = -1;
    if (!nest_axes(w, made, made_axes, used, st->axes, map)) return false;
    stmt_rename(w->p, st, map);
    return true;
}
