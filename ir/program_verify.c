#include "ir/verify_int.h"
#include "ir/poly.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <isl/aff.h>
#include <isl/constraint.h>
#include <isl/ctx.h>
#include <isl/local_space.h>
#include <isl/options.h>
#include <isl/space.h>
#include <isl/val.h>

static const int64_t index_limit = (int64_t)1 << 60;

bool verify_fail(struct verifier *v, size_t at, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (at != nowhere && v->p->source.text)
        diag_at(v->diags, &v->p->source, at, "%s", text);
    else
        diag_line(v->diags, v->p->source.file, 0, 0, "program '%s': %s", v->p->name, text);
    v->failed = true;
    return false;
}

size_t verify_buffer_at(const struct verifier *v, int buffer) {
    return buffer < v->p->nplaces ? v->p->buffer_at[buffer] : nowhere;
}

/* ---- structure: what a stage could have built wrongly ---- */

static bool number_ok(int n, int limit) {
    return n >= 0 && n < limit;
}

static bool check_declarations(struct verifier *v) {
    const struct program *p = v->p;
    if (p->naxes > MAX_AXES) return verify_fail(v, nowhere, "more than %d axes", MAX_AXES);
    for (int a = 0; a < p->naxes; a++)
        if (p->axis[a].extent < (p->axis[a].sequential ? 0 : 1))
            return verify_fail(v, nowhere, "axis '%s' has extent %" PRId64, p->axis[a].name,
                               p->axis[a].extent);
    for (int a = 0; a < p->naxes; a++)
        if (p->axis[a].first < 0 || p->axis[a].first > p->axis[a].extent)
            return verify_fail(v, nowhere, "axis '%s' begins at %" PRId64, p->axis[a].name,
                               p->axis[a].first);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *f = &p->buffer[b];
        int64_t elements = 1;
        if (!number_ok(f->ndims, MAX_DIMS + 1) || !number_ok((int)f->type, TYPE_COUNT) ||
            !number_ok((int)f->role, ROLE_COUNT))
            return verify_fail(v, nowhere, "buffer '%s' is malformed", f->name);
        for (int d = 0; d < f->ndims; d++)
            if (f->extent[d] < 0 || __builtin_mul_overflow(elements, f->extent[d], &elements))
                return verify_fail(v, nowhere, "the shape of buffer '%s' is too large", f->name);
        if (elements != f->elements)
            return verify_fail(v, nowhere,
                               "buffer '%s' has %" PRId64 " elements, its shape %" PRId64, f->name,
                               f->elements, elements);
    }
    return true;
}

static enum type computed_in(enum type t) {
    return t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t;
}

static bool check_op(const struct program *p, const struct stmt *s, int n) {
    const struct op *o = &s->op[n];
    if (!number_ok((int)o->code, OP_COUNT) || !number_ok((int)o->type, TYPE_COUNT)) return false;
    if (computed_in(o->type) != o->type) return false;
    if (o->code == OP_AXIS) return number_ok(o->axis, p->naxes) && o->type != TYPE_BOOL;
    if (o->code == OP_READ)
        return number_ok(o->read, s->nreads) &&
               computed_in(p->buffer[s->read[o->read].buffer].type) == o->type;
    enum type from = o->type;
    for (int k = 0; k < op_info[o->code].arity; k++) {
        if (!number_ok(o->arg[k], n)) return false;
        enum type t = s->op[o->arg[k]].type;
        if (o->code == OP_CAST) return true;
        if (o->code == OP_SELECT && k == 0) {
            if (t != TYPE_BOOL) return false;
            continue;
        }
        if (op_info[o->code].flags & OP_TO_BOOL && k == 0) from = t;
        if (t != from) return false;
    }
    int flags = op_info[o->code].flags;
    if (flags & OP_FLOAT_ONLY && !type_is_float(from)) return false;
    if (flags & OP_INT_ONLY && type_is_float(from)) return false;
    return !(flags & OP_TO_BOOL) || o->type == TYPE_BOOL;
}

static bool check_stmt(struct verifier *v, const struct stmt *s) {
    const struct program *p = v->p;
    if (!number_ok(s->dst.buffer, p->nbuffers) || s->dst.has_fill || s->nops < 1 ||
        !number_ok((int)s->combine, COMBINE_COUNT))
        return verify_fail(v, s->at, "a statement is malformed");
    for (int r = 0; r < s->nreads; r++)
        if (!number_ok(s->read[r].buffer, p->nbuffers))
            return verify_fail(v, s->at, "read %d of a statement has no buffer", r);
    for (int o = 0; o < s->nops; o++)
        if (!check_op(p, s, o))
            return verify_fail(v, s->at, "step %d of a statement (%s) is malformed", o,
                               number_ok((int)s->op[o].code, OP_COUNT) ? op_info[s->op[o].code].id
                                                                       : "?");
    if (s->op[s->nops - 1].type != computed_in(p->buffer[s->dst.buffer].type))
        return verify_fail(v, s->at, "the value is %s, but '%s' is %s",
                           type_name(s->op[s->nops - 1].type), p->buffer[s->dst.buffer].name,
                           type_name(p->buffer[s->dst.buffer].type));
    return true;
}

static bool check_state(struct verifier *v, const struct recur_state *s) {
    const struct program *p = v->p;
    const int all[4] = {s->current, s->next, s->from, s->to < 0 ? s->from : s->to};
    for (int k = 0; k < 4; k++)
        if (!number_ok(all[k], p->nbuffers)) return verify_fail(v, nowhere, "a state is malformed");
    const struct buffer *f = &p->buffer[s->current];
    for (int k = 1; k < 4; k++) {
        const struct buffer *g = &p->buffer[all[k]];
        bool same = f->type == g->type && f->ndims == g->ndims;
        for (int d = 0; same && d < f->ndims; d++) same = f->extent[d] == g->extent[d];
        if (!same)
            return verify_fail(v, verify_buffer_at(v, s->current),
                               "state '%s' and '%s' differ in type or shape", f->name, g->name);
    }
    if (f->role != ROLE_STATE || p->buffer[s->next].role != ROLE_STATE)
        return verify_fail(v, nowhere, "'%s' is not a state", f->name);
    return true;
}

static bool check_items(struct verifier *v, const struct item *item, int n,
                        const struct recur *around, int *seen) {
    const struct program *p = v->p;
    for (int k = 0; k < n; k++) {
        const struct call *c = item[k].call;
        const struct recur *r = item[k].recur;
        switch (item[k].kind) {
        case ITEM_STMT:
            if (!number_ok(item[k].stmt, p->nstmts) || seen[item[k].stmt]++)
                return verify_fail(v, nowhere, "statement %d is not there exactly once",
                                   item[k].stmt);
            v->recur_of[item[k].stmt] = around;
            break;
        case ITEM_CALL:
            for (int b = 0; b < c->nreads; b++)
                if (!number_ok(c->read[b], p->nbuffers))
                    return verify_fail(v, nowhere, "call of '%s' is malformed", c->function);
            for (int b = 0; b < c->nwrites; b++)
                if (!number_ok(c->write[b], p->nbuffers))
                    return verify_fail(v, nowhere, "call of '%s' is malformed", c->function);
            break;
        case ITEM_RECUR:
            if (!number_ok(r->axis, p->naxes))
                return verify_fail(v, nowhere, "a recurrence has no axis");
            for (int s = 0; s < r->nstates; s++)
                if (!check_state(v, &r->state[s])) return false;
            if (!check_items(v, r->item, r->nitems, r, seen)) return false;
            break;
        }
    }
    return true;
}

/* ---- ranges ---- */

struct interval {
    __int128 low, high;
};

static struct interval row_range(const struct program *p, const int64_t *row) {
    struct interval r = {row[p->naxes], row[p->naxes]};
    for (int a = 0; a < p->naxes; a++) {
        __int128 end = (__int128)row[a] * (p->axis[a].extent > 0 ? p->axis[a].extent - 1 : 0);
        if (end < 0)
            r.low += end;
        else
            r.high += end;
    }
    return r;
}

static bool row_fits(struct interval r) {
    return r.low > -index_limit && r.high < index_limit;
}

isl_ctx *verify_isl(struct verifier *v) {
    if (v->ctx) return v->ctx;
    v->ctx = poly_begin();
    isl_ctx_set_max_operations(v->ctx, 20000000);
    return v->ctx;
}

/* Position of each axis among the input dimensions (kept) or after the element's (not kept); -1:
 * not there. */
static int place_axes(const struct program *p, uint64_t axes, uint64_t keep, int *at, int *kept) {
    int hidden = 0;
    *kept = 0;
    for (int a = 0; a < p->naxes; a++) {
        at[a] = -1;
        if (!(axes >> a & 1)) continue;
        at[a] = keep >> a & 1 ? (*kept)++ : hidden++;
    }
    return hidden;
}

struct rows {
    const struct program *p;
    uint64_t axes, keep;
    const int *at;
    int ndims; /* the element's */
};

static isl_constraint *put_axis(isl_constraint *c, const struct rows *r, int a, int64_t by) {
    bool kept = r->keep >> a & 1;
    isl_ctx *ctx = isl_constraint_get_ctx(c);
    return isl_constraint_set_coefficient_val(c, kept ? isl_dim_in : isl_dim_out,
                                              kept ? r->at[a] : r->ndims + r->at[a],
                                              isl_val_int_from_si(ctx, by));
}

static isl_constraint *put_row(isl_constraint *c, const struct rows *r, const int64_t *row) {
    for (int a = 0; a < r->p->naxes; a++)
        if (r->axes >> a & 1 && row[a] != 0) c = put_axis(c, r, a, row[a]);
    return isl_constraint_set_constant_val(
        c, isl_val_int_from_si(isl_constraint_get_ctx(c), row[r->p->naxes]));
}

static isl_basic_map *put_domain(isl_basic_map *m, isl_local_space *ls, const struct rows *r,
                                 const struct stmt *s) {
    for (int a = 0; a < r->p->naxes; a++) {
        if (!(r->axes >> a & 1)) continue;
        isl_constraint *low = isl_constraint_alloc_inequality(isl_local_space_copy(ls));
        isl_constraint *high = isl_constraint_alloc_inequality(isl_local_space_copy(ls));
        isl_val *last = isl_val_int_from_si(isl_local_space_get_ctx(ls), r->p->axis[a].extent - 1);
        isl_val *first =
            isl_val_int_from_si(isl_local_space_get_ctx(ls), -axis_least(&r->p->axis[a]));
        low = isl_constraint_set_constant_val(put_axis(low, r, a, 1), first);
        m = isl_basic_map_add_constraint(m, low);
        high = isl_constraint_set_constant_val(put_axis(high, r, a, -1), last);
        m = isl_basic_map_add_constraint(m, high);
    }
    for (int w = 0; w < s->nwhere; w++) {
        isl_constraint *c = isl_constraint_alloc_inequality(isl_local_space_copy(ls));
        m = isl_basic_map_add_constraint(m, put_row(c, r, s->where[w].coef));
    }
    return m;
}

isl_map *verify_access(struct verifier *v, const struct stmt *s, const struct access *a,
                       uint64_t time, uint64_t keep) {
    const struct program *p = v->p;
    int at[MAX_AXES], kept;
    int ndims = a ? p->buffer[a->buffer].ndims : 0;
    struct rows r = {p, s->axes | time, keep, at, ndims};
    int hidden = place_axes(p, r.axes, keep, at, &kept);
    isl_space *space =
        isl_space_alloc(verify_isl(v), 0, (unsigned)kept, (unsigned)(ndims + hidden));
    isl_local_space *ls = isl_local_space_from_space(isl_space_copy(space));
    isl_basic_map *m = put_domain(isl_basic_map_universe(space), ls, &r, s);
    for (int d = 0; d < ndims; d++) {
        isl_constraint *c = isl_constraint_alloc_equality(isl_local_space_copy(ls));
        c = put_row(c, &r, a->coef + (size_t)d * ((size_t)p->naxes + 1));
        m = isl_basic_map_add_constraint(m,
                                         isl_constraint_set_coefficient_si(c, isl_dim_out, d, -1));
    }
    isl_local_space_free(ls);
    return isl_map_from_basic_map(
        isl_basic_map_project_out(m, isl_dim_out, (unsigned)ndims, (unsigned)hidden));
}

isl_set *verify_box(struct verifier *v, int buffer) {
    const struct buffer *f = &v->p->buffer[buffer];
    isl_set *box = isl_set_universe(isl_space_set_alloc(verify_isl(v), 0, (unsigned)f->ndims));
    for (int d = 0; d < f->ndims; d++) {
        box = isl_set_lower_bound_si(box, isl_dim_set, (unsigned)d, 0);
        box = isl_set_upper_bound_val(box, isl_dim_set, (unsigned)d,
                                      isl_val_int_from_si(verify_isl(v), f->extent[d] - 1));
    }
    return box;
}

static bool inside_exactly(struct verifier *v, const struct stmt *s, const struct access *a,
                           uint64_t time) {
    isl_set *touched = isl_map_range(verify_access(v, s, a, time, 0));
    isl_set *box = verify_box(v, a->buffer);
    isl_bool inside = isl_set_is_subset(touched, box);
    isl_set_free(touched);
    isl_set_free(box);
    return inside == isl_bool_true;
}

static bool empty_domain(const struct program *p, const struct stmt *s, uint64_t time) {
    for (int a = 0; a < p->naxes; a++)
        if ((s->axes | time) >> a & 1 && p->axis[a].extent == axis_least(&p->axis[a])) return true;
    return false;
}

/* Of a buffer with as many rows as a size says: does the statement name a row that a run of a
 * smaller size does not have? Rows below the least size are there, and those up to the step of a
 * recurrence of that length; where steps are groups, up to the end of the group. */
static bool row_may_lack(struct verifier *v, const struct stmt *s, const struct access *a,
                         uint64_t time) {
    const struct program *p = v->p;
    int size = p->buffer[a->buffer].size, at[MAX_AXES], kept;
    struct rows r = {p, s->axes | time, 0, at, 0};
    unsigned hidden = (unsigned)place_axes(p, r.axes, 0, at, &kept);
    isl_space *space = isl_space_alloc(verify_isl(v), 0, 0, hidden);
    isl_local_space *ls = isl_local_space_from_space(isl_space_copy(space));
    isl_basic_map *m = put_domain(isl_basic_map_universe(space), ls, &r, s);
    for (int t = -1; t < p->naxes; t++) {
        if (t >= 0 && (!(time >> t & 1) || p->axis[t].size != size)) continue;
        isl_constraint *c = isl_constraint_alloc_inequality(isl_local_space_copy(ls));
        c = put_row(c, &r, a->coef);
        int64_t rows = t >= 0 && p->axis[t].group && !p->axis[t].rest ? p->axis[t].group : 1;
        if (t >= 0) c = put_axis(c, &r, t, a->coef[t] - rows);
        int64_t first = t >= 0 ? rows : p->size[size - 1].lo;
        isl_val *least = isl_val_int_from_si(verify_isl(v), a->coef[p->naxes] - first);
        m = isl_basic_map_add_constraint(m, isl_constraint_set_constant_val(c, least));
    }
    isl_local_space_free(ls);
    bool lacks = isl_basic_map_is_empty(m) != isl_bool_true;
    isl_basic_map_free(m);
    return lacks;
}

static bool check_rows(struct verifier *v, const struct stmt *s, const struct access *a,
                       uint64_t time) {
    const struct buffer *f = &v->p->buffer[a->buffer];
    if (!f->size || !row_may_lack(v, s, a, time)) return true;
    const char *size = v->p->size[f->size - 1].name;
    return verify_fail(
        v, s->at,
        "'%s' has as many rows as '%s' says when the program runs, and the first index "
        "may lie behind them, expected one that is at most the step of a recurrence of "
        "that length; or give the size a value, for instance -D %s=16",
        f->name, size, size);
}

static bool check_access(struct verifier *v, const struct stmt *s, const struct access *a,
                         uint64_t time) {
    const struct program *p = v->p;
    const struct buffer *f = &p->buffer[a->buffer];
    for (int d = 0; d < f->ndims; d++) {
        struct interval r = row_range(p, a->coef + (size_t)d * ((size_t)p->naxes + 1));
        if (!row_fits(r))
            return verify_fail(v, s->at, "index %d of '%s' leaves the 60 bits of an index", d,
                               f->name);
        if (a->has_fill || empty_domain(p, s, time)) continue;
        if (r.low >= 0 && r.high < f->extent[d]) continue;
        if (s->nwhere && inside_exactly(v, s, a, time)) continue;
        return verify_fail(v, s->at,
                           "index %d of '%s' runs from %" PRId64 " to %" PRId64
                           ", but the dimension has %" PRId64 " elements; %s",
                           d, f->name, (int64_t)r.low, (int64_t)r.high, f->extent[d],
                           a == &s->dst ? "constrain it with 'where'"
                                        : "give a fill with 'else', or constrain it "
                                          "with 'where'");
    }
    return check_rows(v, s, a, time);
}

static uint64_t time_of(const struct verifier *v, const struct stmt *s);

/* ---- a set statement writes each element once ---- */

static bool axis_separate(const struct program *p, const struct access *a, uint64_t axes, int x) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        bool alone = access_coef(p, a, d, x) != 0;
        for (int y = 0; y < p->naxes && alone; y++)
            if (y != x && axes >> y & 1 && access_coef(p, a, d, y) != 0) alone = false;
        if (alone) return true;
    }
    return false;
}

static bool injective_exactly(struct verifier *v, const struct stmt *s, uint64_t time) {
    /* for each fixed time: the time's axes are made part of the result */
    isl_map *m = verify_access(v, s, &s->dst, time, s->axes | time);
    unsigned at = 0;
    for (int a = 0; a < v->p->naxes; a++) {
        if (!((s->axes | time) >> a & 1)) continue;
        if (time >> a & 1) {
            m = isl_map_add_dims(m, isl_dim_out, 1);
            m = isl_map_equate(m, isl_dim_in, (int)at, isl_dim_out,
                               (int)isl_map_dim(m, isl_dim_out) - 1);
        }
        at++;
    }
    isl_bool ok = isl_map_is_injective(m);
    isl_map_free(m);
    return ok == isl_bool_true;
}

static bool check_once(struct verifier *v, const struct stmt *s, uint64_t time) {
    const struct program *p = v->p;
    uint64_t varying = 0;
    if (s->combine != COMBINE_SET) return true;
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1 && p->axis[a].extent > 1) varying |= (uint64_t)1 << a;
    bool separate = true;
    for (int a = 0; a < p->naxes; a++) {
        if (!(varying >> a & 1) || axis_separate(p, &s->dst, varying, a)) continue;
        separate = false;
        if (access_varies(p, &s->dst, a) || s->nwhere) continue;
        return verify_fail(v, s->at,
                           "axis '%s' is not an index of '%s', which '=' would set many "
                           "times; reduce it with +=, *=, max= or min=",
                           p->axis[a].name, p->buffer[s->dst.buffer].name);
    }
    if (separate || injective_exactly(v, s, time)) return true;
    return verify_fail(v, s->at,
                       "'=' sets elements of '%s' more than once; use +=, *=, max= or min=",
                       p->buffer[s->dst.buffer].name);
}

static bool check_where(struct verifier *v, const struct stmt *s) {
    for (int w = 0; w < s->nwhere; w++)
        if (!row_fits(row_range(v->p, s->where[w].coef)))
            return verify_fail(v, s->at, "a constraint leaves the 60 bits of an index");
    return true;
}

static bool check_own_reads(struct verifier *v, const struct stmt *s) {
    for (int r = 0; r < s->nreads; r++) {
        struct access a = s->read[r];
        a.has_fill = false;
        if (a.buffer != s->dst.buffer || access_equal(v->p, &a, &s->dst)) continue;
        return verify_fail(v, s->at,
                           "a statement reads its own destination '%s' at another index; "
                           "write to a temp first",
                           v->p->buffer[a.buffer].name);
    }
    return true;
}

static bool check_stmt_meaning(struct verifier *v, const struct stmt *s) {
    uint64_t time = time_of(v, s);
    if ((stmt_axes(v->p, s) & ~time) != s->axes)
        return verify_fail(v, s->at, "the statement's set of axes is not the set of axes in it");
    if (!check_where(v, s) || !check_access(v, s, &s->dst, time)) return false;
    for (int r = 0; r < s->nreads; r++)
        if (!check_access(v, s, &s->read[r], time)) return false;
    return check_own_reads(v, s) && check_once(v, s, time);
}

/* ---- recurrences around a statement ---- */

static uint64_t find_time(const struct item *item, int n, const struct recur *r, uint64_t around) {
    for (int k = 0; k < n; k++) {
        if (item[k].kind != ITEM_RECUR) continue;
        uint64_t here = around | (uint64_t)1 << item[k].recur->axis;
        if (item[k].recur == r) return here;
        uint64_t inner = find_time(item[k].recur->item, item[k].recur->nitems, r, here);
        if (inner) return inner;
    }
    return 0;
}

static uint64_t time_of(const struct verifier *v, const struct stmt *s) {
    const struct recur *r = v->recur_of[s - v->p->stmt];
    return r ? find_time(v->p->item, v->p->nitems, r, 0) : 0;
}

static bool verify(struct verifier *v) {
    const struct program *p = v->p;
    int *seen = arena_array(&v->arena, (size_t)p->nstmts, sizeof *seen);
    v->recur_of = arena_array(&v->arena, (size_t)p->nstmts, sizeof *v->recur_of);
    if (!check_declarations(v) || !check_items(v, p->item, p->nitems, NULL, seen)) return false;
    for (int s = 0; s < p->nstmts; s++)
        if (!seen[s] || !check_stmt(v, &p->stmt[s]))
            return v->failed ? false : verify_fail(v, nowhere, "statement %d is in no body", s);
    for (int s = 0; s < p->nstmts; s++) check_stmt_meaning(v, &p->stmt[s]);
    return !v->failed && verify_flow(v);
}

bool program_verify(const struct program *p, struct diags *d) {
    struct verifier v = {.p = p, .diags = d};
    arena_init(&v.arena);
    bool ok = verify(&v);
    if (v.ctx) poly_end(v.ctx);
    arena_free(&v.arena);
    return ok;
}
