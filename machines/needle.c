/* Needles: an instruction bound at its largest sizes, with the range and step of each axis. */
#include "machines/expr.h"
#include "machines/needle.h"
#include <string.h>

enum { UNBOUNDED_SAMPLE = 64 };

/* Rules that say bank(a) != bank(b). */
static void find_banks(struct needle *nd) {
    const struct instr *in = nd->in;
    for (int k = 0; k < in->nrequires; k++) {
        const char *function;
        int a, b;
        if (!require_apart(in, in->require[k], &function, &a, &b) || strcmp(function, "bank") ||
            a >= MAX_SIZES || b >= MAX_SIZES)
            continue;
        nd->other_bank[a] |= UINT64_C(1) << b;
        nd->other_bank[b] |= UINT64_C(1) << a;
    }
}

/* Tiles are any number of steps, so the least size must be one step: of the legal sizes its
 * multiples, or one alone. `size` is the one at which the needle is bound. */
static void from_least(int64_t *lo, int64_t *hi, int64_t *step, int64_t *size) {
    if (*lo > 0 && *lo % *step == 0) {
        *step = *lo;
        *hi = *hi / *lo * *lo;
        *size = *size / *lo * *lo;
    } else {
        *size = *lo + (*size - *lo) / *step * *step;
        *lo = *step = *hi = *size;
    }
}

/* Elements of the operand from one step of the axis to the next; 0: none, or they are not the same
 * everywhere. */
static int64_t apart_by(const struct needle *n, int operand, int x) {
    const struct operand *o = &n->in->operand[operand];
    const struct access *a = needle_access(n, operand);
    if (!a || o->nlayouts != 1 || o->layout[0].map || o->layout[0].stride) return 0;
    int64_t by = 0, stride = 1;
    for (int d = n->bound->buffer[a->buffer].ndims - 1; d >= 0; d--) {
        by += access_coef(n->bound, a, d, x) * stride;
        stride *= n->bound->buffer[a->buffer].extent[d];
    }
    return by;
}

/* Tiles begin where operands may: of the axis as many steps as lead from one such place to another.
 */
static void to_alignment(struct needle *n, const struct machine *m, int x) {
    for (int i = 0; i < n->in->noperands && n->ranged[x] >= 0; i++) {
        const struct operand *o = &n->in->operand[i];
        int64_t by = apart_by(n, i, x) * (int64_t)type_size(o->type);
        if (by <= 0 || (!o->align && !o->every) || o->nmemories != 1 || o->memory[0] < 0 ||
            o->memory[0] == m->home)
            continue;
        int64_t align = operand_align(m, o, o->memory[0], n->bound), step = n->step[x],
                *size = &n->size[n->ranged[x]];
        while (step <= *size && step * by % align) step += n->step[x];
        if (step == n->step[x] || step > *size) continue;
        n->lo[x] = n->step[x] = n->fine[x] = step;
        n->hi[x] = n->hi[x] / step * step;
        *size = *size / step * step;
    }
}

static bool align_axes(struct needle *n, const struct machine *m, struct diags *diags) {
    bool shorter = false;
    for (int x = 0; x < n->nx && !n->in->is_move; x++) {
        int64_t step = n->step[x];
        to_alignment(n, m, x);
        shorter |= n->step[x] != step;
    }
    if (!shorter) return true;
    program_free(n->bound);
    n->bound = instr_bind(m, n->in, n->size, diags);
    return n->bound != NULL;
}

struct needle *needle_make(struct arena *arena, const struct machine *m, int instr,
                           struct diags *diags) {
    static const int64_t none[MAX_SIZES];
    return needle_fixed(arena, m, instr, none, diags);
}

struct needle *needle_fixed(struct arena *arena, const struct machine *m, int instr,
                            const int64_t *fixed, struct diags *diags) {
    const struct instr *in = &m->instr[instr];
    int64_t lo[MAX_SIZES], hi[MAX_SIZES], step[MAX_SIZES], fine[MAX_SIZES], size[MAX_SIZES];
    if (in->nranged > MAX_SIZES) return NULL;
    for (int i = 0; i < in->nranged; i++) {
        if (!instr_size_range(m, in, i, &lo[i], &hi[i], &step[i])) return NULL;
        if (step[i] < 1) step[i] = 1;
        if (hi[i] > lo[i]) hi[i] = lo[i] + (hi[i] - lo[i]) / step[i] * step[i];
        size[i] = hi[i] < 0 ? (lo[i] > UNBOUNDED_SAMPLE ? lo[i] : UNBOUNDED_SAMPLE) : hi[i];
        if (hi[i] > 1 << 20) size[i] = 1 << 20;
        if (hi[i] < 0) hi[i] = INT64_C(1) << 31;
        fine[i] = step[i];
        if (!in->is_move && lo[i] != step[i]) from_least(&lo[i], &hi[i], &step[i], &size[i]);
        if (fixed[i]) size[i] = fixed[i];
    }
    struct needle *n = arena_alloc(arena, sizeof *n);
    n->in = in;
    n->instr = instr;
    n->again = n->remaining = -1;
    find_banks(n);
    n->bound = instr_bind(m, in, size, diags);
    if (!n->bound) return NULL;
    n->nx = n->bound->naxes;
    if (n->nx > MAX_NEEDLE || n->bound->nstmts < 1) {
        program_free(n->bound);
        return NULL;
    }
    for (int i = 0; i < in->nranged; i++) n->size[i] = size[i];
    for (int x = 0; x < n->nx; x++) {
        n->ranged[x] = -1;
        n->lo[x] = n->hi[x] = n->step[x] = n->fine[x] = n->bound->axis[x].extent;
        for (int i = 0; i < in->nranged; i++)
            if (in->ranged[i] == n->bound->axis[x].param && !fixed[i]) {
                n->ranged[x] = i;
                n->lo[x] = lo[i];
                n->hi[x] = hi[i];
                n->step[x] = step[i];
                n->fine[x] = fine[i];
            }
    }
    return align_axes(n, m, diags) ? n : NULL;
}

int64_t needle_unit(const struct needle *n, int x) {
    return n->ranged[x] < 0 || n->whole[x] ? n->hi[x] : n->step[x];
}

static bool at_origin(const struct program *p, const struct access *a) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, p->naxes)) return false;
    return true;
}

const struct access *needle_access(const struct needle *n, int operand) {
    int b = n->in->operand[operand].kernel_buffer;
    for (int s = 0; s < n->bound->nstmts; s++) {
        const struct stmt *st = &n->bound->stmt[s];
        const struct access *found = NULL;
        if (st->dst.buffer == b) return &st->dst;
        for (int r = 0; r < st->nreads; r++)
            if (st->read[r].buffer == b && (!found || at_origin(n->bound, &st->read[r])))
                found = &st->read[r];
        if (found) return found;
    }
    return NULL;
}

static bool is_not(void *name, const struct mexpr *leaf) {
    return leaf->kind != MEXPR_NAME || strcmp(leaf->name, name) != 0;
}

bool needle_strides_use(const struct needle *n, const struct operand_layout *l, int x) {
    if (n->ranged[x] < 0) return false;
    const char *size = n->bound->param[n->in->ranged[n->ranged[x]]].name;
    for (int i = 0; l->stride && i < l->nstrides; i++)
        if (!mexpr_names(l->stride[i], is_not, (void *)(uintptr_t)size)) return true;
    return false;
}

bool needle_dense(const struct needle *n, int x) {
    for (int i = 0; i < n->in->noperands; i++) {
        const struct operand *o = &n->in->operand[i];
        if (needle_strides_use(n, &o->layout[0], x)) return true;
        const struct access *a = o->nlayouts == 1 && !o->layout[0].map && !o->layout[0].stride
                                     ? needle_access(n, i)
                                     : NULL;
        for (int d = 1; a && d < n->bound->buffer[a->buffer].ndims; d++)
            if (access_coef(n->bound, a, d, x)) return true;
    }
    return false;
}

bool needle_reads_beside(const struct needle *n, int operand) {
    const struct access *a = needle_access(n, operand);
    for (int r = 0; r < n->bound->stmt[0].nreads && n->bound->nstmts == 1; r++) {
        const struct access *x = &n->bound->stmt[0].read[r];
        for (int d = 0; a && x->buffer == a->buffer && d < n->bound->buffer[a->buffer].ndims; d++)
            if (access_coef(n->bound, x, d, n->bound->naxes) !=
                access_coef(n->bound, a, d, n->bound->naxes))
                return true;
    }
    return false;
}

int64_t needle_leaf(const struct needle *nd, int x, int64_t tile) {
    if (nd->ranged[x] < 0 || nd->whole[x]) return nd->hi[x];
    int64_t hi = nd->hi[x], step = nd->step[x];
    if (tile <= hi) return (tile + step - 1) / step * step;
    int64_t parts = (tile + hi - 1) / hi, leaf = (tile + parts - 1) / parts;
    return (leaf + step - 1) / step * step;
}

bool needle_reduces(const struct needle *nd, int x) {
    return !access_varies(nd->bound, &nd->bound->stmt[nd->bound->nstmts - 1].dst, x);
}
