/* What is read has been written: by statements as a whole where that is plain, element by element
 * with isl where it is not. Time is the vector of the enclosing recurrences' steps. A write serves
 * a read that stands after it, at the same step of the recurrences that both are in. Where the
 * steps move what is written (`K[t,d] = …`) it serves reads at later steps too; other temporaries
 * of a body begin anew in each step. */
#include "ir/verify_int.h"

#include <isl/space.h>

#include <string.h>

/* One place that writes. */
struct writer {
    int stmt; /* -1: all elements, by a call or a recurrence's end */
    const struct recur *path[MAX_AXES];
    int depth; /* of the recurrences around it */
};

struct flow {
    struct verifier *v;
    struct writer **writer; /* by buffer: those that stand before */
    int *nwriters, *cap;
    struct writer **within; /* by buffer: all inside the recurrences around */
    int *nwithin, *cap_within;
    const struct recur *path[MAX_AXES];
    int depth;
};

static bool needs_write(const struct flow *f, int buffer) {
    enum role r = f->v->p->buffer[buffer].role;
    if (r == ROLE_OUT || r == ROLE_TEMP) return true;
    if (r != ROLE_STATE) return false;
    const char *name = f->v->p->buffer[buffer].name;
    return name[strlen(name) - 1] == '\'';
}

static void add_writer(struct flow *f, int buffer, int stmt) {
    GROW(&f->v->arena, f->writer[buffer], f->nwriters[buffer], f->cap[buffer]);
    struct writer *w = &f->writer[buffer][f->nwriters[buffer]++];
    w->stmt = stmt;
    w->depth = f->depth;
    memcpy(w->path, f->path, sizeof w->path);
}

static bool moved(const struct flow *f, const struct access *a) {
    for (int k = 0; k < f->depth; k++)
        if (access_varies(f->v->p, a, f->path[k]->axis)) return true;
    return false;
}

/* The statements that set something inside a recurrence that begins, for reads at later steps. */
static void add_within(struct flow *f, const struct item *item, int n) {
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].recur;
        if (item[k].kind == ITEM_RECUR) {
            f->path[f->depth++] = r;
            add_within(f, r->item, r->nitems);
            f->path[--f->depth] = NULL;
        }
        if (item[k].kind != ITEM_STMT) continue;
        const struct stmt *s = &f->v->p->stmt[item[k].stmt];
        int b = s->dst.buffer;
        if (s->combine != COMBINE_SET || !moved(f, &s->dst)) continue;
        GROW(&f->v->arena, f->within[b], f->nwithin[b], f->cap_within[b]);
        struct writer *w = &f->within[b][f->nwithin[b]++];
        *w = (struct writer){.stmt = item[k].stmt, .depth = f->depth};
        memcpy(w->path, f->path, sizeof w->path);
    }
}

static int common_depth(const struct flow *f, const struct writer *w) {
    int n = 0;
    while (n < f->depth && n < w->depth && f->path[n] == w->path[n]) n++;
    return n;
}

/* Every dimension is swept by an axis of its own, each at every element. */
static bool covers_buffer(const struct program *p, const struct stmt *s) {
    const struct buffer *f = &p->buffer[s->dst.buffer];
    uint64_t used = 0;
    if (s->nwhere) return false;
    for (int d = 0; d < f->ndims; d++) {
        int swept = -1;
        if (access_coef(p, &s->dst, d, p->naxes) != 0) return false;
        for (int a = 0; a < p->naxes; a++) {
            int64_t c = access_coef(p, &s->dst, d, a);
            if (c == 0) continue;
            if (swept >= 0 || c != 1 || used >> a & 1 || !(s->axes >> a & 1)) return false;
            swept = a;
        }
        if (swept < 0 && f->extent[d] != 1) return false;
        if (swept >= 0 && p->axis[swept].extent != f->extent[d]) return false;
        if (swept >= 0) used |= (uint64_t)1 << swept;
    }
    return true;
}

/* The recurrences that only the writer is in have steps. */
static bool happens(const struct flow *f, const struct writer *w) {
    for (int k = common_depth(f, w); k < w->depth; k++)
        if (f->v->p->axis[w->path[k]->axis].extent == 0) return false;
    return true;
}

static bool plainly_covered(const struct flow *f, const struct access *a, int buffer) {
    const struct program *p = f->v->p;
    for (int k = 0; k < f->nwriters[buffer]; k++) {
        const struct writer *w = &f->writer[buffer][k];
        if (w->stmt < 0 && !happens(f, w)) continue;
        if (w->stmt < 0 || (happens(f, w) && covers_buffer(p, &p->stmt[w->stmt]))) return true;
        const struct stmt *s = &p->stmt[w->stmt];
        struct access same = a ? *a : s->dst;
        same.has_fill = false;
        if (a && !s->nwhere && w->depth == common_depth(f, w) && access_equal(p, &same, &s->dst))
            return true;
    }
    return false;
}

static uint64_t path_axes(const struct recur *const *path, int depth) {
    uint64_t axes = 0;
    for (int k = 0; k < depth; k++) axes |= (uint64_t)1 << path[k]->axis;
    return axes;
}

/* { [time of the reader] -> [element] }: what `w` has written by then */
static isl_map *written_by(const struct flow *f, const struct writer *w) {
    const struct program *p = f->v->p;
    int common = common_depth(f, w);
    uint64_t reader = path_axes(f->path, f->depth);
    uint64_t both = path_axes(f->path, common);
    const struct stmt *s = &p->stmt[w->stmt];
    /* the recurrences that only the writer is in have run to their end: projected out */
    isl_map *m = verify_access(f->v, s, &s->dst, path_axes(w->path, w->depth), both);
    /* the reader's own recurrences are free */
    unsigned at = 0;
    for (int a = 0; a < p->naxes; a++) {
        if (!(reader >> a & 1)) continue;
        if (!(both >> a & 1)) m = isl_map_insert_dims(m, isl_dim_in, at, 1);
        at++;
    }
    return m;
}

/* { [time of the reader] -> [earlier time] } of the first n recurrences of the path. */
static isl_map *earlier(const struct flow *f, int n) {
    const struct program *p = f->v->p;
    isl_space *space = isl_space_alloc(verify_isl(f->v), 0, (unsigned)f->depth, (unsigned)n);
    isl_map *equal = isl_map_universe(isl_space_copy(space));
    isl_map *all = isl_map_empty(isl_space_copy(space));
    for (int k = 0; k < n; k++) {
        uint64_t below = ((uint64_t)1 << f->path[k]->axis) - 1;
        int in = __builtin_popcountll(path_axes(f->path, f->depth) & below),
            out = __builtin_popcountll(path_axes(f->path, n) & below);
        isl_map *first = isl_map_universe(isl_space_copy(space));
        first = f->path[k]->reverse ? isl_map_order_lt(first, isl_dim_in, in, isl_dim_out, out)
                                    : isl_map_order_gt(first, isl_dim_in, in, isl_dim_out, out);
        if (p->axis[f->path[k]->axis].extent > 1)
            all = isl_map_union(all, isl_map_intersect(isl_map_copy(equal), isl_map_copy(first)));
        isl_map_free(first);
        equal = isl_map_equate(equal, isl_dim_in, in, isl_dim_out, out);
    }
    isl_map_free(equal);
    isl_space_free(space);
    return all;
}

/* { [time of the reader] -> [element] }: what `w` has written in earlier steps */
static isl_map *written_earlier(const struct flow *f, const struct writer *w) {
    int common = common_depth(f, w);
    const struct stmt *s = &f->v->p->stmt[w->stmt];
    isl_map *m =
        verify_access(f->v, s, &s->dst, path_axes(w->path, w->depth), path_axes(f->path, common));
    return isl_map_apply_range(earlier(f, common), m);
}

static isl_map *wanted_by(const struct flow *f, const struct stmt *s, const struct access *a,
                          int buffer) {
    uint64_t time = path_axes(f->path, f->depth);
    if (a) {
        isl_map *m = verify_access(f->v, s, a, time, time);
        return isl_map_intersect_range(m, verify_box(f->v, buffer));
    }
    struct stmt nothing = {.axes = 0};
    isl_map *always = verify_access(f->v, &nothing, NULL, time, time);
    return isl_map_from_domain_and_range(isl_map_domain(always), verify_box(f->v, buffer));
}

static bool exactly_covered(const struct flow *f, const struct stmt *s, const struct access *a,
                            int buffer) {
    isl_ctx_reset_operations(verify_isl(f->v)); /* each question has the whole budget */
    isl_map *wanted = wanted_by(f, s, a, buffer);
    int most = f->nwriters[buffer] + f->nwithin[buffer], n = 0;
    struct written *w = arena_array(&f->v->arena, (size_t)most, sizeof *w);
    for (int k = 0; k < f->nwriters[buffer]; k++) {
        const struct writer *x = &f->writer[buffer][k];
        if (x->stmt < 0) continue;
        w[n++] = (struct written){&f->v->p->stmt[x->stmt].dst, written_by(f, x)};
    }
    for (int k = 0; k < f->nwithin[buffer]; k++) {
        const struct writer *x = &f->within[buffer][k];
        w[n++] = (struct written){&f->v->p->stmt[x->stmt].dst, written_earlier(f, x)};
    }
    bool ok = verify_covered(f->v, wanted, w, n, f->v->p->buffer[buffer].ndims);
    for (int k = 0; k < n; k++) isl_map_free(w[k].elements);
    isl_map_free(wanted);
    return ok;
}

/* a NULL: the whole buffer */
static bool check_read(struct flow *f, size_t at, const struct stmt *s, const struct access *a,
                       int buffer) {
    const char *name = f->v->p->buffer[buffer].name;
    if (!needs_write(f, buffer)) return true;
    if (plainly_covered(f, a, buffer) || exactly_covered(f, s, a, buffer)) return true;
    if (f->nwriters[buffer] + f->nwithin[buffer] == 0)
        return verify_fail(f->v, at, "'%s' is read before it is written", name);
    return verify_fail(f->v, at, "elements of '%s' are read that were not written before", name);
}

static bool check_write(struct flow *f, size_t at, int buffer) {
    const struct buffer *b = &f->v->p->buffer[buffer];
    if (needs_write(f, buffer) || b->role == ROLE_INOUT) return true;
    if (b->role == ROLE_STATE)
        return verify_fail(f->v, at, "state '%s' is written; write its next value, %s'[…]", b->name,
                           b->name);
    return verify_fail(f->v, at,
                       "'%s' is written, but it is declared '%s'; declare it out or inout", b->name,
                       role_name[b->role]);
}

static bool flow_stmt(struct flow *f, int n) {
    const struct stmt *s = &f->v->p->stmt[n];
    int dst = s->dst.buffer;
    size_t at = s->at;
    if (!check_write(f, at, dst)) return false;
    for (int r = 0; r < s->nreads; r++)
        if (!check_read(f, at, s, &s->read[r], s->read[r].buffer)) return false;
    if (s->combine != COMBINE_SET) {
        if (needs_write(f, dst) && f->nwriters[dst] == 0)
            return verify_fail(f->v, at,
                               "'%s' is accumulated before it is set; start with '%s[…] = …'",
                               f->v->p->buffer[dst].name, f->v->p->buffer[dst].name);
        if (!check_read(f, at, s, &s->dst, dst)) return false;
    } else {
        add_writer(f, dst, n);
    }
    return true;
}

static bool flow_items(struct flow *f, const struct item *item, int n);

static bool flow_recur(struct flow *f, const struct recur *r) {
    const struct program *p = f->v->p;
    for (int k = 0; k < r->nstates; k++) {
        if (!check_read(f, r->at, NULL, NULL, r->state[k].from)) return false;
        if (r->state[k].to >= 0 && !check_write(f, r->at, r->state[k].to)) return false;
    }
    f->path[f->depth++] = r;
    if (f->depth == 1) add_within(f, r->item, r->nitems);
    if (!flow_items(f, r->item, r->nitems)) return false;
    for (int k = 0; k < r->nstates; k++) {
        int next = r->state[k].next;
        if (f->nwriters[next] == 0)
            return verify_fail(f->v, r->at, "the recurrence over '%s' never writes '%s'",
                               p->axis[r->axis].name, p->buffer[next].name);
        if (!plainly_covered(f, NULL, next) && !exactly_covered(f, NULL, NULL, next))
            return verify_fail(f->v, r->at, "the recurrence over '%s' does not write all of '%s'",
                               p->axis[r->axis].name, p->buffer[next].name);
    }
    f->path[--f->depth] = NULL;
    if (f->depth == 0) memset(f->nwithin, 0, sizeof *f->nwithin * (size_t)p->nbuffers);
    for (int k = 0; k < r->nstates; k++)
        if (r->state[k].to >= 0) add_writer(f, r->state[k].to, -1);
    return true;
}

static bool flow_items(struct flow *f, const struct item *item, int n) {
    for (int k = 0; k < n; k++) {
        const struct call *c = item[k].call;
        if (item[k].kind == ITEM_STMT && !flow_stmt(f, item[k].stmt)) return false;
        if (item[k].kind == ITEM_RECUR && !flow_recur(f, item[k].recur)) return false;
        if (item[k].kind != ITEM_CALL) continue;
        for (int b = 0; b < c->nreads; b++)
            if (!check_read(f, c->at, NULL, NULL, c->read[b])) return false;
        for (int b = 0; b < c->nwrites; b++) {
            if (!check_write(f, c->at, c->write[b])) return false;
            add_writer(f, c->write[b], -1);
        }
    }
    return true;
}

static bool check_outputs(struct flow *f) {
    const struct program *p = f->v->p;
    for (int b = 0; b < p->nbuffers; b++) {
        if (p->buffer[b].role != ROLE_OUT || p->buffer[b].elements == 0) continue;
        if (f->nwriters[b] == 0)
            return verify_fail(f->v, verify_buffer_at(f->v, b), "output '%s' is never written",
                               p->buffer[b].name);
        if (!plainly_covered(f, NULL, b) && !exactly_covered(f, NULL, NULL, b))
            return verify_fail(f->v, verify_buffer_at(f->v, b),
                               "elements of output '%s' are never written; set them, or "
                               "declare it inout",
                               p->buffer[b].name);
    }
    return true;
}

bool verify_flow(struct verifier *v) {
    struct flow f = {.v = v};
    size_t n = (size_t)v->p->nbuffers;
    f.writer = arena_array(&v->arena, n, sizeof *f.writer);
    f.nwriters = arena_array(&v->arena, n, sizeof *f.nwriters);
    f.cap = arena_array(&v->arena, n, sizeof *f.cap);
    f.within = arena_array(&v->arena, n, sizeof *f.within);
    f.nwithin = arena_array(&v->arena, n, sizeof *f.nwithin);
    f.cap_within = arena_array(&v->arena, n, sizeof *f.cap_within);
    return flow_items(&f, v->p->item, v->p->nitems) && check_outputs(&f);
}
