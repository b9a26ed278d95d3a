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

/* ---- sizes ---- */

enum { MOST_RULED = 1 << 16 }; /* steps of a size that rules speak of are tried one by one */

/* Those of an instruction, of which rules may say what is legal. */
struct ranges {
    const struct machine *m;
    const struct instr *in;
    int64_t lo[MAX_SIZES], hi[MAX_SIZES], step[MAX_SIZES], fine[MAX_SIZES], at[MAX_SIZES];
};

static bool size_or_param(void *user, const char *name, const char *field, double *out) {
    const struct ranges *s = user;
    for (int i = 0; i < s->in->nranged && !field; i++)
        if (!strcmp(s->in->semantics->param[s->in->ranged[i]].name, name))
            return *out = (double)s->at[i], true;
    for (int i = 0; i < s->m->nparams && !field; i++)
        if (!strcmp(s->m->param[i].name, name)) return *out = (double)s->m->param[i].value, true;
    return false;
}

/* The rules that speak of nothing but sizes. */
static bool rules_hold(struct ranges *s) {
    struct mexpr_env env = {.name = size_or_param, .user = s};
    double x;
    for (int k = 0; k < s->in->nrequires; k++)
        if (mexpr_eval(s->in->require[k], &env, &x, NULL) && x == 0) return false;
    return true;
}

/* Whatever the other sizes are, as far as their ends tell. */
static bool size_is_legal(const struct ranges *s, int i, int64_t size) {
    struct ranges now = *s;
    bool holds = (size - s->lo[i]) % s->step[i] == 0;
    for (int high = 0; high < 2 && holds && s->in->nrequires; high++) {
        memcpy(now.at, high ? s->hi : s->lo, sizeof now.at);
        now.at[i] = size;
        holds = rules_hold(&now);
    }
    return holds;
}

/* Tiles are any number of steps, so the least size must be one step: of the legal sizes the
 * multiples of the least one that lead to half of the largest at least. */
static bool from_least(struct ranges *s, int i) {
    int64_t most = 0, high = s->hi[i] < MOST_RULED ? s->hi[i] : MOST_RULED;
    for (int64_t v = high; v >= s->lo[i] && v > 0 && !most; v--)
        if (size_is_legal(s, i, v)) most = v;
    for (int64_t least = s->lo[i] > 0 ? s->lo[i] : 1; least <= most; least++) {
        int64_t last = 0;
        while (last + least <= most && size_is_legal(s, i, last + least)) last += least;
        if (2 * last < most) continue;
        s->lo[i] = s->step[i] = s->fine[i] = least;
        s->hi[i] = last;
        return true;
    }
    return false;
}

static bool is_not(void *name, const struct mexpr *leaf) {
    return leaf->kind != MEXPR_NAME || strcmp(leaf->name, name) != 0;
}

static bool is_ruled(const struct instr *in, int i) {
    const char *name = in->semantics->param[in->ranged[i]].name;
    for (int k = 0; k < in->nrequires; k++)
        if (!mexpr_names(in->require[k], is_not, (void *)(uintptr_t)name)) return true;
    return false;
}

/* `size`: those at which it is bound, the largest or some where there is none. False: none is
 * legal. */
static bool sizes_find(struct ranges *s, const int64_t *fixed, int64_t *size) {
    bool bounded[MAX_SIZES];
    for (int i = 0; i < s->in->nranged; i++) {
        int64_t *lo = &s->lo[i], *hi = &s->hi[i], *step = &s->step[i];
        if (!instr_size_range(s->m, s->in, i, lo, hi, step)) return false;
        if (*step < 1) *step = 1;
        bounded[i] = *hi >= 0;
        if (*hi < 0) *hi = INT64_C(1) << 31;
        if (*hi > *lo) *hi = *lo + (*hi - *lo) / *step * *step;
        s->fine[i] = *step;
        if (fixed[i]) *lo = *hi = fixed[i];
    }
    for (int i = 0; i < s->in->nranged; i++) {
        bool from_step = s->lo[i] == s->step[i] || (!s->lo[i] && s->step[i] == 1);
        bool any = from_step && !is_ruled(s->in, i);
        if (!any && !fixed[i] && !s->in->is_move && !from_least(s, i)) return false;
        int64_t some = s->lo[i] > 0 ? UNBOUNDED_SAMPLE / s->lo[i] * s->lo[i] : UNBOUNDED_SAMPLE;
        size[i] = s->hi[i] > 1 << 20 ? 1 << 20 : s->hi[i];
        if (!bounded[i] && !fixed[i]) size[i] = some > s->lo[i] ? some : s->lo[i];
    }
    return true;
}

bool instr_has_sizes(const struct machine *m, const struct instr *in) {
    static const int64_t none[MAX_SIZES];
    struct ranges s = {.m = m, .in = in};
    int64_t size[MAX_SIZES];
    return in->nranged > MAX_SIZES || sizes_find(&s, none, size);
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
    struct ranges s = {.m = m, .in = in};
    int64_t size[MAX_SIZES];
    if (in->nranged > MAX_SIZES || !sizes_find(&s, fixed, size)) return NULL;
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
                n->lo[x] = s.lo[i];
                n->hi[x] = s.hi[i];
                n->step[x] = s.step[i];
                n->fine[x] = s.fine[i];
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
