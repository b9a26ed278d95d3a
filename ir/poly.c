#include "ir/poly.h"
#include "ir/memory.h"

#include <isl/options.h>
#include <stdlib.h>

#include <isl/aff.h>
#include <isl/id.h>
#include <isl/local_space.h>
#include <isl/space.h>
#include <isl/val.h>

#include <assert.h>

/* One thing that runs: a statement or a call, and the recurrence axes around it. */
struct step {
    int stmt;                /* or -1 */
    const struct call *call; /* or NULL */
    int ordinal;             /* of the call */
    const struct recur *around[MAX_AXES];
    int naround;
};

struct steps {
    struct arena arena;
    struct step *at;
    int n, cap, ncalls;
    const struct recur *around[MAX_AXES];
    int naround;
};

static void collect_steps(struct steps *s, const struct item *item, int n) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_RECUR) {
            assert(s->naround < MAX_AXES);
            s->around[s->naround++] = item[i].recur;
            collect_steps(s, item[i].recur->item, item[i].recur->nitems);
            s->naround--;
            continue;
        }
        GROW(&s->arena, s->at, s->n, s->cap);
        struct step *step = &s->at[s->n++];
        step->stmt = item[i].kind == ITEM_STMT ? item[i].stmt : -1;
        step->call = item[i].kind == ITEM_CALL ? item[i].call : NULL;
        step->ordinal = step->call ? s->ncalls++ : -1;
        step->naround = s->naround;
        for (int r = 0; r < s->naround; r++) step->around[r] = s->around[r];
    }
}

static void steps_init(struct steps *s, const struct program *p) {
    *s = (struct steps){0};
    arena_init(&s->arena);
    collect_steps(s, p->item, p->nitems);
}

static const struct step *step_of(const struct steps *s, int stmt) {
    for (int i = 0; i < s->n; i++)
        if (s->at[i].stmt == stmt) return &s->at[i];
    assert(!"a statement that no item runs");
    return NULL;
}

static isl_id *id_of(isl_ctx *ctx, const char *name) {
    return isl_id_alloc(ctx, name, NULL);
}

/* Where axis a stands in a space of `step`: a parameter when it belongs to a recurrence around. */
static bool axis_place(const struct program *p, const struct step *step, int a,
                       enum isl_dim_type *type, unsigned *pos) {
    for (int r = 0; r < step->naround; r++)
        if (step->around[r]->axis == a) {
            *type = isl_dim_param;
            *pos = (unsigned)r;
            return true;
        }
    uint64_t axes = p->stmt[step->stmt].axes;
    if (!(axes >> a & 1)) return false;
    *type = isl_dim_set;
    *pos = (unsigned)__builtin_popcountll(axes & ((UINT64_C(1) << a) - 1));
    return true;
}

static isl_space *stmt_space(isl_ctx *ctx, const struct program *p, const struct step *step) {
    uint64_t axes = step->stmt < 0 ? 0 : p->stmt[step->stmt].axes;
    isl_space *space =
        isl_space_set_alloc(ctx, (unsigned)step->naround, (unsigned)__builtin_popcountll(axes));
    unsigned pos = 0;
    for (int a = 0; a < p->naxes; a++)
        if (axes >> a & 1)
            space = isl_space_set_dim_id(space, isl_dim_set, pos++, id_of(ctx, p->axis[a].name));
    for (int r = 0; r < step->naround; r++)
        space = isl_space_set_dim_id(space, isl_dim_param, (unsigned)r,
                                     id_of(ctx, p->axis[step->around[r]->axis].name));
    char name[32];
    if (step->stmt >= 0)
        snprintf(name, sizeof name, "S%d", step->stmt);
    else
        snprintf(name, sizeof name, "C%d", step->ordinal);
    return isl_space_set_tuple_name(space, isl_dim_set, name);
}

/* Σ coef[a] * axis[a] + coef[naxes] over the space of `step` */
static isl_aff *affine(const struct program *p, const struct step *step, isl_space *space,
                       const int64_t *coef) {
    isl_ctx *ctx = isl_space_get_ctx(space);
    isl_aff *aff = isl_aff_zero_on_domain(isl_local_space_from_space(space));
    for (int a = 0; a < p->naxes; a++) {
        enum isl_dim_type type;
        unsigned pos;
        if (coef[a] == 0) continue;
        bool there = axis_place(p, step, a, &type, &pos);
        assert(there && "an access uses an axis that is not in the domain");
        if (!there) continue;
        aff = isl_aff_set_coefficient_val(aff, type == isl_dim_set ? isl_dim_in : type, (int)pos,
                                          isl_val_int_from_si(ctx, coef[a]));
    }
    return isl_aff_set_constant_val(aff, isl_val_int_from_si(ctx, coef[p->naxes]));
}

static isl_set *bounded(isl_set *set, enum isl_dim_type type, unsigned pos, int64_t first,
                        int64_t extent) {
    isl_ctx *ctx = isl_set_get_ctx(set);
    set = isl_set_lower_bound_val(set, type, pos, isl_val_int_from_si(ctx, first));
    return isl_set_upper_bound_val(set, type, pos, isl_val_int_from_si(ctx, extent - 1));
}

static isl_set *step_domain(isl_ctx *ctx, const struct program *p, const struct step *step) {
    isl_space *space = stmt_space(ctx, p, step);
    isl_set *set = isl_set_universe(isl_space_copy(space));
    for (int r = 0; r < step->naround; r++) {
        const struct axis *a = &p->axis[step->around[r]->axis];
        set = bounded(set, isl_dim_param, (unsigned)r, axis_least(a), a->extent);
    }
    if (step->stmt >= 0) {
        const struct stmt *s = &p->stmt[step->stmt];
        unsigned pos = 0;
        for (int a = 0; a < p->naxes; a++)
            if (s->axes >> a & 1) set = bounded(set, isl_dim_set, pos++, 0, p->axis[a].extent);
        for (int w = 0; w < s->nwhere; w++) {
            isl_aff *aff = affine(p, step, isl_space_copy(space), s->where[w].coef);
            set = isl_set_intersect(set, isl_pw_aff_nonneg_set(isl_pw_aff_from_aff(aff)));
        }
    }
    isl_space_free(space);
    return set;
}

static isl_set *buffer_box(isl_ctx *ctx, const struct program *p, int buffer) {
    const struct buffer *b = &p->buffer[buffer];
    isl_space *space = isl_space_set_alloc(ctx, 0, (unsigned)b->ndims);
    isl_set *set = isl_set_universe(isl_space_set_tuple_name(space, isl_dim_set, b->name));
    for (int d = 0; d < b->ndims; d++)
        set = bounded(set, isl_dim_set, (unsigned)d, 0, b->extent[d]);
    return set;
}

/* The access as a map to `buffer`, which has the shape of access->buffer. */
static isl_map *access_map(isl_ctx *ctx, const struct program *p, const struct step *step,
                           const struct access *access, int buffer) {
    const struct buffer *b = &p->buffer[access->buffer];
    isl_space *from = stmt_space(ctx, p, step);
    isl_space *to = isl_space_set_alloc(ctx, 0, (unsigned)b->ndims);
    to = isl_space_set_tuple_name(to, isl_dim_set, p->buffer[buffer].name);
    to = isl_space_align_params(to, isl_space_copy(from));
    isl_multi_aff *ma =
        isl_multi_aff_zero(isl_space_map_from_domain_and_range(isl_space_copy(from), to));
    for (int d = 0; d < b->ndims; d++)
        ma = isl_multi_aff_set_aff(ma, d,
                                   affine(p, step, isl_space_copy(from),
                                          access->coef + (size_t)d * ((size_t)p->naxes + 1)));
    isl_space_free(from);
    isl_map *map = isl_map_intersect_domain(isl_map_from_multi_aff(ma), step_domain(ctx, p, step));
    return isl_map_intersect_range(map, buffer_box(ctx, p, buffer));
}

isl_set *poly_domain(isl_ctx *ctx, const struct program *p, int stmt) {
    struct steps steps;
    steps_init(&steps, p);
    isl_set *set = step_domain(ctx, p, step_of(&steps, stmt));
    arena_free(&steps.arena);
    return set;
}

isl_map *poly_access(isl_ctx *ctx, const struct program *p, int stmt, int read) {
    struct steps steps;
    steps_init(&steps, p);
    const struct stmt *s = &p->stmt[stmt];
    assert(read < s->nreads);
    const struct access *access = read < 0 ? &s->dst : &s->read[read];
    isl_map *map = access_map(ctx, p, step_of(&steps, stmt), access, access->buffer);
    arena_free(&steps.arena);
    return map;
}

static isl_union_map *whole_buffer(isl_ctx *ctx, const struct program *p, const struct step *step,
                                   int buffer) {
    return isl_union_map_from_map(
        isl_map_from_domain_and_range(step_domain(ctx, p, step), buffer_box(ctx, p, buffer)));
}

/* A state is filled from `from` and ends in `to`: its reads and writes count as touching those, so
 * that the statements before and after a recurrence are ordered with it. */
static isl_union_map *add_access(isl_union_map *all, const struct program *p,
                                 const struct step *step, const struct access *access, bool write) {
    isl_ctx *ctx = isl_union_map_get_ctx(all);
    all = isl_union_map_add_map(all, access_map(ctx, p, step, access, access->buffer));
    for (int r = 0; r < step->naround; r++)
        for (int s = 0; s < step->around[r]->nstates; s++) {
            const struct recur_state *state = &step->around[r]->state[s];
            int other = write && access->buffer == state->next       ? state->to
                        : !write && access->buffer == state->current ? state->from
                                                                     : -1;
            if (other >= 0)
                all = isl_union_map_add_map(all, access_map(ctx, p, step, access, other));
        }
    return all;
}

static isl_union_map *touched(isl_ctx *ctx, const struct program *p, const struct step *step,
                              bool write) {
    isl_union_map *all = isl_union_map_empty_ctx(ctx);
    if (step->call) {
        int n = write ? step->call->nwrites : step->call->nreads;
        const int *buffer = write ? step->call->write : step->call->read;
        for (int i = 0; i < n; i++)
            all = isl_union_map_union(all, whole_buffer(ctx, p, step, buffer[i]));
        return all;
    }
    const struct stmt *s = &p->stmt[step->stmt];
    if (write) return add_access(all, p, step, &s->dst, true);
    for (int r = 0; r < s->nreads; r++) all = add_access(all, p, step, &s->read[r], false);
    return all;
}

/* pairs of instances of one statement of which the first comes before the second: the lexicographic
 * order of all axes, or of the sequential ones alone */
static isl_union_map *order_within(isl_ctx *ctx, const struct program *p, const struct step *step,
                                   bool sequential_only) {
    const struct stmt *s = &p->stmt[step->stmt];
    isl_space *space = isl_space_map_from_set(stmt_space(ctx, p, step));
    isl_map *equal = isl_map_universe(isl_space_copy(space));
    isl_map *order = isl_map_empty(isl_space_copy(space));
    int pos = 0;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1)) continue;
        if (!sequential_only || p->axis[a].sequential) {
            isl_map *less = isl_map_order_lt(isl_map_universe(isl_space_copy(space)), isl_dim_in,
                                             pos, isl_dim_out, pos);
            order = isl_map_union(order, isl_map_intersect(less, isl_map_copy(equal)));
            equal = isl_map_equate(equal, isl_dim_in, pos, isl_dim_out, pos);
        }
        pos++;
    }
    isl_map_free(equal);
    isl_space_free(space);
    return isl_union_map_from_map(order);
}

static isl_union_map *conflicts(__isl_keep isl_union_map *a, __isl_keep isl_union_map *b) {
    return isl_union_map_apply_range(isl_union_map_copy(a),
                                     isl_union_map_reverse(isl_union_map_copy(b)));
}

isl_union_map *poly_dependences(isl_ctx *ctx, const struct program *p) {
    struct steps steps;
    steps_init(&steps, p);
    isl_union_map *all = isl_union_map_empty_ctx(ctx);
    isl_union_map *read_before = isl_union_map_empty_ctx(ctx);
    isl_union_map *written_before = isl_union_map_empty_ctx(ctx);
    for (int i = 0; i < steps.n; i++) {
        const struct step *step = &steps.at[i];
        isl_union_map *reads = touched(ctx, p, step, false);
        isl_union_map *writes = touched(ctx, p, step, true);
        all = isl_union_map_union(all, conflicts(written_before, reads));
        all = isl_union_map_union(all, conflicts(written_before, writes));
        all = isl_union_map_union(all, conflicts(read_before, writes));
        if (step->stmt >= 0) {
            bool accumulates = p->stmt[step->stmt].combine != COMBINE_SET;
            isl_union_map *self = conflicts(writes, writes);
            self = isl_union_map_union(self, conflicts(writes, reads));
            self = isl_union_map_union(self, conflicts(reads, writes));
            all = isl_union_map_union(
                all, isl_union_map_intersect(self, order_within(ctx, p, step, accumulates)));
        }
        read_before = isl_union_map_union(read_before, reads);
        written_before = isl_union_map_union(written_before, writes);
    }
    isl_union_map_free(read_before);
    isl_union_map_free(written_before);
    arena_free(&steps.arena);
    return isl_union_map_coalesce(all);
}

/* isl does not survive a context for which there is no memory: enough is asked for before. */
isl_ctx *poly_begin(void) {
    free(memory_bytes(1 << 16));
    isl_ctx *ctx = isl_ctx_alloc();
    if (!ctx) memory_exhausted(0);
    isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
    return ctx;
}

void poly_end(isl_ctx *ctx) {
    bool exhausted = isl_ctx_last_error(ctx) == isl_error_alloc;
    isl_ctx_free(ctx);
    if (exhausted) memory_exhausted(0);
}
