/* Sizes of an instruction that are chosen once for a task: those that nothing walks, those of which
 * steps do not come out even, and those that distances in operands depend on. */
#include "scheduler/plan/task.h"
#include "machines/needle.h"
#include "scheduler/plan/work.h"
#include <math.h>

double sizes_rounded(int64_t extent, int64_t tile) {
    return (double)((extent + tile - 1) / tile * tile) / (double)extent;
}

/* Cycles for each step of the needle's axis where tiles are so long, over those where they are as
 * long as may be: what issues cost that no loop of the machine's own repeats. */
double sizes_short(const struct work *w, const struct task *t, int x, int64_t tile) {
    const struct instr *in = t->needle->in;
    int64_t size[MAX_SIZES];
    double each[2], interval, overhead;
    if (t->needle->ranged[x] < 0 || tile >= t->needle->hi[x]) return 1;
    for (int i = 0; i < in->nranged; i++) size[i] = t->needle->size[i];
    for (int k = 0; k < t->needle->nx; k++)
        if (t->needle->ranged[k] >= 0) size[t->needle->ranged[k]] = t->needle->hi[k];
    for (int k = 0; k < 2; k++) {
        int64_t n = k ? tile : t->needle->hi[x];
        size[t->needle->ranged[x]] = n;
        instr_times(w->m, in, t->needle->bound, size, NULL, &interval, &overhead);
        each[k] = (interval + (in->nloops ? 0 : overhead)) / (double)n;
    }
    return each[0] > 0 ? each[1] / each[0] : 1;
}

/* Where steps of a size do not come out even, all tiles are padded to one size: as many steps as it
 * takes, not the most that the instruction has. */
bool sizes_steps(const struct work *w, const struct task *t, int64_t *fixed) {
    const struct needle *nd = t->needle;
    bool any = false;
    for (int x = 0; x < nd->nx; x++) {
        if (nd->ranged[x] < 0 || nd->step[x] == 1 || needle_reduces(nd, x) || t->group[x].n != 1)
            continue;
        int64_t extent = w->p->axis[t->group[x].axis[0]].extent, step = nd->step[x],
                parts = (extent + nd->hi[x] - 1) / nd->hi[x];
        if (extent % step == 0) continue;
        int64_t over = (extent + parts - 1) / parts - nd->lo[x], fine = nd->fine[x];
        int64_t size = nd->lo[x] + (over + fine - 1) / fine * fine;
        fixed[nd->ranged[x]] = size > nd->lo[x] ? size : nd->lo[x];
        any = true;
    }
    return any;
}

/* Does the axis share a dimension of an operand with another one? */
static bool shares_dim(const struct program *p, int x) {
    const struct stmt *st = &p->stmt[p->nstmts - 1];
    for (int r = -1; r < st->nreads; r++) {
        const struct access *a = r < 0 ? &st->dst : &st->read[r];
        for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
            for (int y = 0; y < p->naxes && access_coef(p, a, d, x); y++)
                if (y != x && access_coef(p, a, d, y)) return true;
    }
    return false;
}

/* An axis of a window that nothing walks has one step, where the size may be 1. */
bool sizes_idle(const struct task *t, const struct mapping *map, int64_t *fixed) {
    const struct needle *nd = t->needle;
    bool any = false;
    for (int x = 0; x < nd->nx && nd->bound->nstmts == 1; x++) {
        if (nd->ranged[x] < 0 || map->group[x].n || nd->lo[x] != 1) continue;
        if (!shares_dim(nd->bound, x)) continue;
        fixed[nd->ranged[x]] = 1;
        any = true;
    }
    return any;
}

/* Elements of the operand in one issue, of so many steps of axis x and as many or as few as may be
 * of all others. */
static double issue_elements(const struct needle *nd, const struct access *a, int x, int64_t size,
                             bool fewest) {
    const struct program *p = nd->bound;
    double all = (double)p->buffer[a->buffer].elements * (double)size / (double)p->axis[x].extent;
    for (int y = 0; y < nd->nx && fewest; y++)
        if (y != x && nd->ranged[y] >= 0 && access_varies(p, a, y))
            all *= (double)nd->lo[y] / (double)p->axis[y].extent;
    return all;
}

/* Do two tiles of each operand fit where they lie, of so many steps of the axis? */
static bool fits_twice(const struct work *w, const struct task *t, int x, int64_t size,
                       bool fewest) {
    const struct program *p = t->needle->bound;
    for (int i = 0; i < t->needle->in->noperands; i++) {
        const struct operand *o = &t->needle->in->operand[i];
        const struct access *a = needle_access(t->needle, i);
        if (!a || !access_varies(p, a, x) || !o->nmemories || o->memory[0] == MEMORY_IMM) continue;
        double all = (double)w->m->memory[o->memory[0]].size,
               word = (double)type_size(p->buffer[a->buffer].type);
        if (all > 0 && 2 * word * issue_elements(t->needle, a, x, size, fewest) > all) return false;
    }
    return true;
}

/* The axis of the needle that alone walks the dimension of the access; -1. */
static int walker(const struct work *w, const struct task *t, const struct group *group,
                  const struct access *a, int dim) {
    for (int x = 0; x < t->needle->nx; x++)
        if (group[x].n == 1 && access_coef(w->p, a, dim, group[x].axis[0]) == 1) return x;
    return -1;
}

/* What the task reads lies in tiles of one size along the axis where an instruction leaves it
 * there, and it takes them as they are: they could not be handed on otherwise. 0: no such size. */
static int64_t size_handed(const struct work *w, const struct task *t, const struct group *group,
                           int x) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct needle *nd = t->needle;
    for (int r = 0; r < st->nreads; r++)
        for (int k = 0; k < w->ntasks; k++) {
            const struct task *maker = &w->task[k];
            const struct access *made = &w->p->stmt[maker->stmt].dst;
            if (maker == t || !maker->group || made->buffer != st->read[r].buffer) continue;
            for (int d = 0; d < w->p->buffer[made->buffer].ndims; d++) {
                int by = walker(w, maker, maker->group, made, d);
                if (by < 0 || walker(w, t, group, &st->read[r], d) != x) continue;
                int64_t size = maker->needle->ranged[by] < 0 ? maker->needle->hi[by] : 0;
                if (size >= nd->lo[x] && size <= nd->hi[x] &&
                    (size - nd->lo[x]) % nd->step[x] == 0 && fits_twice(w, t, x, size, true))
                    return size;
            }
        }
    return 0;
}

/* In tiles of one size, the last of them padded, the axis takes the least time. Windows come out
 * even. */
static int64_t equal_tiles(const struct work *w, const struct task *t, int x, int64_t extent) {
    const struct needle *nd = t->needle;
    int64_t best = nd->lo[x], size = INT64_MAX, parts = (extent + nd->hi[x] - 1) / nd->hi[x];
    double least = INFINITY;
    bool fits = false, window = shares_dim(nd->bound, x);
    for (; size > nd->lo[x]; parts += 1 + parts / 16) {
        int64_t over = (extent + parts - 1) / parts - nd->lo[x];
        size = nd->lo[x] + (over > 0 ? (over + nd->step[x] - 1) / nd->step[x] * nd->step[x] : 0);
        if (size > nd->hi[x] || (window && extent % size)) continue;
        double cost = sizes_rounded(extent, size) * sizes_short(w, t, x, size);
        bool now = fits_twice(w, t, x, size, false);
        if (now < fits || (now == fits && cost >= least)) continue;
        least = cost;
        fits = now;
        best = size;
    }
    return best;
}

/* Sizes that dense strides of operands depend on are the same everywhere. */
bool sizes_dense(struct work *w, struct task *t, const struct group *group, int64_t *fixed) {
    bool any = false;
    int instr = t->needle->instr;
    program_free(t->needle->bound);
    if (!(t->needle = needle_make(w->arena, w->m, instr, w->diags))) return false;
    for (int x = 0; x < t->needle->nx; x++) {
        int64_t extent = 1;
        if (t->needle->ranged[x] < 0 || !needle_dense(t->needle, x)) continue;
        for (int i = 0; i < group[x].n; i++)
            if (__builtin_mul_overflow(extent, w->p->axis[group[x].axis[i]].extent, &extent))
                return false;
        int64_t handed = size_handed(w, t, group, x);
        fixed[t->needle->ranged[x]] = handed ? handed : equal_tiles(w, t, x, extent);
        any = true;
    }
    return any;
}
