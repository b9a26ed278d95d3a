/* Statements run element by element on homes, and what must hold at the end. */
#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BOX_POINTS = 250000 }; /* of a fallback, in a walk that is cut short */

/* ---- fallbacks ---- */
static bool fallback_point(struct verify *v, int stmt, const int64_t *at, const int *home) {
    const struct stmt *s = &v->p->stmt[stmt];
    int64_t element = access_at(v, stmt, -1, at);
    if (element < 0) return point_error(v, stmt, at, "writes outside its buffer", NULL, NULL);
    if (v->clamped && point_left_out(v, stmt, at, false)) {
        v->skipped[stmt] = true;
        return true;
    }
    if (v->counting) return point_count(v, stmt, at, element);
    enum type type = v->p->buffer[s->dst.buffer].type;
    for (int r = 0; r < s->nreads; r++) {
        int64_t e = access_at(v, stmt, r, at);
        enum type from = v->p->buffer[s->read[r].buffer].type;
        struct tag found =
            e >= 0 ? tag_get(v, home_of(v, home[r], e), from) : tag_const(from, s->read[r].fill);
        if (!point_check_read(v, stmt, r, at, &found)) return false;
    }
    struct place_at where = home_of(v, home[s->nreads], element);
    struct tag cur = tag_get(v, where, type);
    if (s->combine != COMBINE_SET && !point_check_partial(v, stmt, at, element, &cur)) return false;
    if (!point_after(v, stmt, at, element, &cur, &cur)) return false;
    tag_set(v, where, type, cur);
    return true;
}

static void fallback_races(struct verify *v, int qi, int stmt, const int64_t *at, const int *home) {
    const struct stmt *s = &v->p->stmt[stmt];
    for (int r = 0; r <= s->nreads; r++) {
        const struct access *a = r < s->nreads ? &s->read[r] : &s->dst;
        int64_t e = access_at(v, stmt, r < s->nreads ? r : -1, at);
        if (e >= 0)
            race_access(v, qi, home_of(v, home[r], e),
                        (int64_t)type_size(v->p->buffer[a->buffer].type), r == s->nreads);
    }
}

/* A walk that is cut short takes of a large box only the first and the last values of each axis. */
struct box {
    const int64_t *lo, *hi;
    int64_t ends; /* values at either end; INT64_MAX: all */
};

static double box_points(const struct verify *v, const struct box *x) {
    double points = 1;
    for (int a = 0; a < v->p->naxes; a++) {
        int64_t n = x->hi[a] - x->lo[a];
        points *= (double)(x->ends < n / 2 ? 2 * x->ends : n);
    }
    return points;
}

static void cut_box(struct verify *v, struct box *x) {
    x->ends = INT64_MAX;
    if (!v->trips || box_points(v, x) <= BOX_POINTS) return;
    v->clamped = true;
    for (x->ends = 1024; x->ends > 1 && box_points(v, x) > BOX_POINTS;) x->ends = x->ends * 3 / 4;
}

static bool box_next(const struct verify *v, const struct box *x, int64_t *at) {
    for (int a = v->p->naxes - 1; a >= 0; a--) {
        int64_t n = x->hi[a] - x->lo[a];
        at[a]++;
        if (x->ends < n / 2 && at[a] == x->lo[a] + x->ends) at[a] = x->hi[a] - x->ends;
        if (at[a] < x->hi[a]) return true;
        at[a] = x->lo[a];
    }
    return false;
}

static void fallback_box(struct verify *v, const struct fallback_node *n, struct box *x, int qi,
                         const int *home) {
    int64_t at[MAX_AXES] = {0};
    for (int a = 0; a < v->p->naxes; a++) {
        at[a] = x->lo[a];
        if (x->hi[a] <= x->lo[a]) return;
    }
    cut_box(v, x);
    do {
        if (!verify_step(v, 1)) return;
        if (!point_in_domain(v, n->stmt, at)) continue;
        if (!v->loose_stmt[n->stmt] && !fallback_point(v, n->stmt, at, home)) return;
        if (qi >= 0 && v->races_matter) fallback_races(v, qi, n->stmt, at, home);
    } while (!v->stop && box_next(v, x, at));
}

void content_fallback(struct verify *v, const struct fallback_node *n, const int64_t *lo,
                      const int64_t *hi) {
    const struct fallback *f = &v->m->fallback[n->fallback];
    const struct stmt *s = &v->p->stmt[n->stmt];
    struct box box = {.lo = lo, .hi = hi};
    int qi = v->counting ? -1 : race_queue(v, f->queue, f->unit);
    int *home = memory_array((size_t)s->nreads + 1, sizeof *home);
    for (int r = 0; r <= s->nreads; r++)
        home[r] = v->home[r < s->nreads ? s->read[r].buffer : s->dst.buffer];
    if (qi >= 0) race_begin(v, qi, &n->signals);
    fallback_box(v, n, &box, qi, home);
    if (qi >= 0) race_push(v, qi, &n->signals);
    free(home);
}

/* ---- the end ---- */
static bool page_written(const struct verify *v, int buffer, int64_t element) {
    const struct writer_list *l = &v->written[buffer];
    for (int k = 0; k < l->n; k++) {
        int w = v->order[l->at[k]];
        if (v->recurrence_of[w] >= 0 || counts_page(v, w, element)) return true;
    }
    return false;
}

static void check_output(struct verify *v, int buffer) {
    const struct buffer *b = &v->p->buffer[buffer];
    int home = v->home[buffer];
    if (home < 0) {
        verify_error(v, "buffer '%s' has no home", b->name);
        return;
    }
    int64_t end = b->elements;
    if (b->size && b->extent[0] > 0) end = end / b->extent[0] * v->var[b->size - 1];
    for (int64_t e = 0; e < end && verify_step(v, 1); e++) {
        if (v->clamped && e % PAGE_ENTRIES == 0 && !page_written(v, buffer, e)) {
            e += PAGE_ENTRIES - 1;
            continue;
        }
        struct tag expected, found = tag_get(v, home_of(v, home, e), b->type);
        bool written = version_before(v, v->p->nstmts, NULL, buffer, e, &expected);
        if ((!written && v->clamped) || (written && tag_same(&found, &expected))) continue;
        struct text text = {0};
        text_printf(&text, "at the end ");
        element_text(v, buffer, e, &text);
        text_printf(&text, " is not complete at home, which holds ");
        tag_text(v, &found, &text);
        verify_error(v, "%s", text.at);
        text_free(&text);
        return;
    }
}

static int64_t step_points(const struct verify *v, int stmt) {
    struct stmt s = v->p->stmt[stmt];
    s.axes = v->domain[stmt];
    return stmt_points(v->p, &s);
}

static void check_all_done(struct verify *v) {
    for (int s = 0; s < v->p->nstmts; s++) {
        if (v->loose_stmt[s]) continue;
        int64_t points = step_points(v, s);
        if (v->done[s] != points)
            verify_error(v, "%" PRId64 " of the %" PRId64 " instances of statement %d are executed",
                         v->done[s], points, s);
    }
}

void content_end(struct verify *v) {
    v->node = NULL;
    if (v->counting) {
        if (!v->clamped) check_all_done(v);
        return;
    }
    for (int b = 0; b < v->p->nbuffers && !v->stop; b++) {
        enum role role = v->p->buffer[b].role;
        if ((role == ROLE_OUT || role == ROLE_INOUT) && !v->loose[b]) check_output(v, b);
    }
}
