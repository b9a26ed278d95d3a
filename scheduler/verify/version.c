/* Which statement an element must come from that is read, after how many contributions, and at
 * which step of the recurrences around that statement. */
#include "scheduler/verify/box.h"

#include <string.h>

static enum truth image_meets(const struct sym *s, const struct image *x,
                              const struct region *need) {
    bool inside = true;
    for (int e = 0; e < need->nindices; e++) {
        struct lin lo = x->from[e], end = x->end[e], to = need->o[e];
        if (!lin_add(&to, &need->n[e], 1)) return MAYBE;
        if (lin_le(s, &to, &lo) == YES || lin_le(s, &end, &need->o[e]) == YES) return NO;
        inside &= lin_le(s, &lo, &need->o[e]) == YES && lin_le(s, &to, &end) == YES;
    }
    return inside ? YES : MAYBE;
}

/* ---- concatenations ---- */
static bool boxes_apart(const struct image *x, const struct image *y, int ndims) {
    for (int e = 0; e < ndims; e++)
        if (x->lo[e] + x->n[e] <= y->lo[e] || y->lo[e] + y->n[e] <= x->lo[e]) return true;
    return false;
}

/* Several statements outside recurrences set each element of it once at most. */
static bool is_joined(struct sym *s, int buffer) {
    const struct verify *v = s->v;
    const struct writer_list *l = &v->written[buffer];
    const struct buffer *b = &v->p->buffer[buffer];
    if (s->joined[buffer]) return s->joined[buffer] == 'y';
    bool joined = l->n > 1 && (b->role == ROLE_TEMP || b->role == ROLE_OUT);
    for (int k = 0; k < l->n && joined; k++) {
        int w = v->order[l->at[k]];
        const struct image *x = sym_image(s, w);
        joined = v->p->stmt[w].combine == COMBINE_SET && v->recurrence_of[w] < 0 && x->box;
        for (int i = 0; i < k && joined; i++)
            joined = boxes_apart(x, sym_image(s, v->order[l->at[i]]), b->ndims);
    }
    s->joined[buffer] = joined ? 'y' : 'n';
    return joined;
}

/* Whoever sets an element of the box there does so before the statement. */
static bool joined_before(struct sym *s, int stmt, const struct region *need) {
    const struct verify *v = s->v;
    const struct writer_list *l = &v->written[need->buffer];
    int before = 0;
    while (before < l->n && l->at[before] < v->position[stmt]) before++;
    for (int k = before; k < l->n; k++)
        if (image_meets(s, sym_image(s, v->order[l->at[k]]), need) != NO) return false;
    return before > 0;
}

int sym_writer(struct sym *s, int stmt) {
    int buffer = s->v->p->stmt[stmt].dst.buffer;
    return is_joined(s, buffer) ? s->v->order[s->v->written[buffer].at[0]] : stmt;
}

/* ---- steps ---- */
/* The recurrences around a statement, the outermost first. */
struct around {
    int n, r[SYM_LEVELS];
};

static struct around around_of(const struct verify *v, int stmt) {
    int r = v->recurrence_of[stmt];
    struct around c = {.n = r < 0 ? 0 : v->recurrence[r].level + 1};
    for (; r >= 0; r = v->recurrence[r].parent) c.r[v->recurrence[r].level] = r;
    return c;
}

bool sym_at(struct sym *s, int stmt, const struct affine *point) {
    const struct around c = around_of(s->v, stmt);
    for (int l = 0; l < c.n; l++) {
        const struct recurrence *q = &s->v->recurrence[c.r[l]];
        const struct affine *t = &point[q->axis];
        for (int d = 0; d < s->ndims; d++)
            if (t->d[d] && s->n[d] > 1) return sym_fail(s, "several steps of a recurrence at once");
        struct lin first = sym_first(s, q->axis);
        s->time[l] = s->step[l] = t->l;
        if (!lin_add(&s->step[l], &first, -1)) return sym_fail(s, "a step is out of range");
        if (!q->reverse) continue;
        struct lin last = sym_extent(s, q->axis);
        last.c--;
        if (!lin_add(&last, &s->step[l], -1)) return sym_fail(s, "a step is out of range");
        s->step[l] = last;
    }
    return true;
}

/* The number of a step: of each recurrence in which the statement writes an element at every step,
 * those inside others counting through as many as theirs may be. at[l]: the step at level l. */
static struct lin step_of(struct sym *s, int stmt, const struct around *c, const struct lin *at) {
    const struct image *x = sym_image(s, stmt);
    struct lin number = lin_of(0);
    for (int l = 0; l < c->n; l++) {
        struct lin outer = number;
        if (x->timed[l] >= 0) continue;
        number = at[l];
        if (!lin_add(&number, &outer, s->v->recurrence[c->r[l]].steps))
            sym_never(s, "a step is out of range");
    }
    return number;
}

struct lin sym_step(struct sym *s, int stmt) {
    const struct around c = around_of(s->v, stmt);
    return step_of(s, stmt, &c, s->step);
}

/* ---- versions ---- */
enum found { NOT_HERE, HERE, UNKNOWN };

static enum found fails(struct sym *s, const char *what, int buffer) {
    sym_fail(s, what, s->v->p->buffer[buffer].name);
    return UNKNOWN;
}

/* What is looked for: the last write of the box before a statement's place, in these recurrences.
 */
struct quest {
    const struct region *need;
    struct around c;
    int at; /* by position in the order */
    enum when { NONE, ALL, NOW, EARLIER, BOTH, LATER } when[SYM_LEVELS];
    struct wanted_version *out;
};

/* The steps of a recurrence that write elements of the box. NONE: nothing inside writes the buffer;
 * ALL: each of them does. */
static enum found when_written(struct sym *s, const struct region *need, int r, int level,
                               enum when *when) {
    const struct verify *v = s->v;
    const struct recurrence *q = &v->recurrence[r];
    const struct writer_list *l = &v->written[need->buffer];
    const struct image *x = NULL;
    for (int k = 0; k < l->n; k++) {
        if (l->at[k] < q->first || l->at[k] >= q->last) continue;
        const struct image *y = sym_image(s, v->order[l->at[k]]);
        if (!x) x = y;
        int e = x->timed[level];
        bool same = y->timed[level] == e && (e < 0 || y->lo[e] == x->lo[e]);
        for (int m = 0; m <= level && same && e >= 0; m++)
            same = (y->timed[m] == e) == (x->timed[m] == e) &&
                   (x->timed[m] != e || y->rows[m] == x->rows[m]);
        if (!same) return fails(s, "a recurrence writes '%s' in several ways", need->buffer);
    }
    *when = x ? ALL : NONE;
    if (!x || x->timed[level] < 0) return HERE;
    int e = x->timed[level];
    struct lin begin = lin_of(x->lo[e]), from = need->o[e], to = from;
    bool fits = lin_add(&to, &need->n[e], 1);
    for (int k = 0; k <= level; k++)
        fits &= x->timed[k] != e || lin_add(&begin, &s->time[k], x->rows[k]);
    if (!fits) return fails(s, "an index of '%s' is out of range", need->buffer);
    struct lin end = begin;
    end.c += x->rows[level];
    bool low = lin_le(s, &to, &begin) == YES, high = lin_le(s, &end, &from) == YES,
         starts = lin_le(s, &begin, &from) == YES, ends = lin_le(s, &to, &end) == YES;
    bool done = q->reverse ? high : low, past = q->reverse ? low : high,
         up_to = q->reverse ? starts : ends;
    *when = done ? EARLIER : past ? LATER : starts && ends ? NOW : BOTH;
    return done || past || up_to
               ? HERE
               : fails(s, "a read of '%s' is not known to follow its step", need->buffer);
}

/* All recurrences around the statement but the first n have made all of their steps. */
static enum found ran(struct sym *s, const struct around *c, int n, struct lin *at, int buffer) {
    struct lin one = lin_of(1);
    for (int l = n; l < c->n; l++) {
        at[l] = sym_extent(s, s->v->recurrence[c->r[l]].axis);
        enum truth runs = lin_le(s, &one, &at[l]);
        at[l].c--;
        if (runs == NO) return NOT_HERE;
        if (runs == MAYBE)
            return fails(s, "a recurrence that writes '%s' may have no step", buffer);
    }
    return HERE;
}

/* The last of the statements order[from .. to) that writes the box; of the first n recurrences
 * around it the step is that of now, of the last of these as many before as `back` says. */
static enum found last_writer(struct sym *s, const struct quest *q, int from, int to, int n,
                              int back) {
    struct verify *v = s->v;
    const struct writer_list *l = &v->written[q->need->buffer];
    for (int k = l->n - 1; k >= 0; k--) {
        int w = v->order[l->at[k]];
        struct lin at[SYM_LEVELS];
        if (l->at[k] < from || l->at[k] >= to) continue;
        const struct image *x = sym_image(s, w);
        const struct around c = around_of(v, w);
        if (!x->box && !x->whole)
            return fails(s, "what a statement writes of '%s' is no box", q->need->buffer);
        enum truth meets = image_meets(s, x, q->need);
        if (meets == NO) continue;
        if (meets == MAYBE) {
            q->out->spans = x;
            return fails(s, "a read of '%s' spans what several statements wrote", q->need->buffer);
        }
        memcpy(at, s->step, sizeof at);
        if (n > 0) at[n - 1].c -= back;
        enum found found = ran(s, &c, n, at, q->need->buffer);
        if (found == NOT_HERE) continue;
        *q->out = (struct wanted_version){
            .writer = w, .count = lin_of(x->times), .step = step_of(s, w, &c, at), .own = -1};
        return found;
    }
    return NOT_HERE;
}

/* In a recurrence of which each step writes the box: in this step, or in the one before. */
static enum found in_each_step(struct sym *s, const struct quest *q, int level, int at) {
    const struct recurrence *r = &s->v->recurrence[q->c.r[level]];
    struct lin one = lin_of(1);
    enum found found = last_writer(s, q, r->first, at, level + 1, 0);
    if (found != NOT_HERE) return found;
    enum truth follows = lin_le(s, &one, &s->step[level]);
    if (follows != NO) found = last_writer(s, q, r->first, r->last, level + 1, 1);
    return found == HERE && follows == MAYBE
               ? fails(s, "a read of '%s' is not known to follow its step", q->need->buffer)
               : found;
}

/* From the level inwards out. */
static enum found search(struct sym *s, const struct quest *q, int level, int at) {
    for (; level >= 0; level--) {
        const struct recurrence *r = &s->v->recurrence[q->c.r[level]];
        enum found found = NOT_HERE;
        enum when when = q->when[level];
        if (when == ALL) found = in_each_step(s, q, level, at);
        if (when == NOW) found = last_writer(s, q, r->first, at, level + 1, 0);
        if (when == EARLIER) found = last_writer(s, q, r->first, r->last, level + 1, 0);
        if (found != NOT_HERE) return found;
        at = r->first;
    }
    return last_writer(s, q, 0, at, 0, 0);
}

/* A recurrence that wrote the box at earlier steps wrote nothing of it in this one: those inside it
 * are not asked. */
static enum found search_from(struct sym *s, struct quest *q) {
    int n = 0, at = q->at;
    while (n < q->c.n && q->when[n] != EARLIER && q->when[n] != LATER) n++;
    if (n < q->c.n - 1) at = s->v->recurrence[q->c.r[n + 1]].first;
    return search(s, q, n < q->c.n ? n : n - 1, at);
}

/* Of a box that this step and earlier ones have written, one statement wrote all. */
static enum found search_both(struct sym *s, struct quest *q, int level) {
    struct quest now = *q, before = *q;
    struct wanted_version other;
    now.when[level] = NOW;
    before.when[level] = EARLIER;
    before.out = &other;
    enum found found = search_from(s, &now), also = search_from(s, &before);
    bool same = found == HERE && also == HERE && q->out->writer == other.writer &&
                lin_same(&q->out->step, &other.step);
    return same || found == UNKNOWN || also == UNKNOWN || (found == NOT_HERE && also == NOT_HERE)
               ? found
               : fails(s, "a read of '%s' spans what several steps wrote", q->need->buffer);
}

static enum found search_all(struct sym *s, int stmt, const struct region *need,
                             struct wanted_version *out) {
    struct quest q = {
        .need = need, .c = around_of(s->v, stmt), .at = s->v->position[stmt], .out = out};
    int both = -1;
    for (int l = 0; l < q.c.n; l++) {
        if (when_written(s, need, q.c.r[l], l, &q.when[l]) == UNKNOWN) return UNKNOWN;
        if (q.when[l] == EARLIER || q.when[l] == LATER) break;
        if (q.when[l] != BOTH) continue;
        if (both >= 0)
            return fails(s, "a read of '%s' spans what several steps wrote", need->buffer);
        both = l;
    }
    return both < 0 ? search_from(s, &q) : search_both(s, &q, both);
}

/* What statement `stmt` (nstmts: the end) must find in the box of the buffer. */
bool version_wanted(struct sym *s, int stmt, const struct region *need,
                    struct wanted_version *out) {
    struct verify *v = s->v;
    *out = (struct wanted_version){.writer = -1, .own = -1};
    out->any = region_empty(s, need);
    if (out->any) return true;
    const struct writer_list *l = &v->written[need->buffer];
    if (is_joined(s, need->buffer) && joined_before(s, stmt, need)) {
        *out = (struct wanted_version){.writer = v->order[l->at[0]], .count = lin_of(1), .own = -1};
        return true;
    }
    enum found found = search_all(s, stmt, need, out);
    if (found != NOT_HERE) return found == HERE;
    enum role role = v->p->buffer[need->buffer].role;
    out->unset = role != ROLE_IN && role != ROLE_INOUT && role != ROLE_CONST;
    return !out->unset ||
           sym_fail(s, "a read of '%s' finds nothing written", v->p->buffer[need->buffer].name);
}

bool has_version(const struct region *g, const struct wanted_version *want) {
    if (want->any) return true;
    struct lin whole = lin_of(WHOLE), parted = lin_of(PARTED);
    if (want->own >= 0 && g->writer == want->own && lin_same(&g->step, &want->own_step) &&
        !lin_same(&g->count, &whole) && !lin_same(&g->count, &parted))
        return true;
    return g->writer == want->writer && !want->own_only && lin_same(&g->count, &want->count) &&
           lin_same(&g->step, &want->step);
}
