/* Statement instances on tags: what issues and fallbacks share. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- points of the program ---- */
bool point_in_domain(const struct verify *v, int stmt, const int64_t *at) {
    const struct program *p = v->p;
    const struct stmt *s = &p->stmt[stmt];
    for (uint64_t left = v->domain[stmt]; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        if (at[a] < p->axis[a].first || at[a] >= p->axis[a].extent) return false;
    }
    for (int w = 0; w < s->nwhere; w++) {
        int64_t x = s->where[w].coef[p->naxes];
        for (int k = 0; k < p->naxes; k++) x += s->where[w].coef[k] * at[k];
        if (x < 0) return false;
    }
    return true;
}

static uint64_t instance_number(const struct verify *v, int stmt, const int64_t *at) {
    uint64_t n = 0;
    for (int a = 0; a < v->p->naxes; a++)
        if (v->domain[stmt] >> a & 1) n = n * (uint64_t)v->p->axis[a].extent + (uint64_t)at[a];
    return n;
}

static void point_text(const struct verify *v, int stmt, const int64_t *at, struct text *out) {
    text_printf(out, "statement %d at (", stmt);
    bool first = true;
    for (int a = 0; a < v->p->naxes; a++) {
        if (!(v->domain[stmt] >> a & 1)) continue;
        text_printf(out, "%s%s = %" PRId64, first ? "" : ", ", v->p->axis[a].name, at[a]);
        first = false;
    }
    text_printf(out, ")");
}

bool point_error(struct verify *v, int stmt, const int64_t *at, const char *what,
                 const struct tag *found, const struct tag *expected) {
    struct text text = {0};
    point_text(v, stmt, at, &text);
    text_printf(&text, " %s", what);
    if (found) {
        text_printf(&text, " ");
        tag_text(v, found, &text);
    }
    if (expected) {
        text_printf(&text, ", expected ");
        tag_text(v, expected, &text);
    }
    verify_error(v, "%s", text.at);
    text_free(&text);
    return false;
}

/* With loops cut short, what an instance reads may have been left out: then it is left out too. */
bool point_left_out(struct verify *v, int stmt, const int64_t *at, bool overwrite) {
    const struct stmt *s = &v->p->stmt[stmt];
    struct tag ignored;
    if (s->combine != COMBINE_SET && !overwrite) {
        int64_t e = access_at(v, stmt, -1, at);
        if (e >= 0 && !v->loose[s->dst.buffer] &&
            !version_before(v, stmt, at, s->dst.buffer, e, &ignored))
            return true;
    }
    for (int r = 0; r < s->nreads; r++) {
        int b = s->read[r].buffer;
        if (!step_writes_before(v, stmt, b) || v->loose[b]) continue;
        int64_t e = access_at(v, stmt, r, at);
        if (e >= 0 && !version_before(v, stmt, at, b, e, &ignored)) return true;
    }
    return false;
}

static void mark_visited(struct verify *v, int stmt, const int64_t *at) {
    int naxes = v->p->naxes;
    for (int a = 0; a < naxes; a++) {
        if (!(v->domain[stmt] >> a & 1)) continue;
        uint64_t key = (uint64_t)(stmt * naxes + a) << 34 | (uint64_t)at[a] / PAGE_ENTRIES;
        bool *page = pages_get(&v->visited, key, NULL), *was = &page[at[a] % PAGE_ENTRIES];
        v->nvisited[stmt * naxes + a] += !*was;
        *was = true;
    }
}

/* The walk that counts: one instance is executed. */
bool point_count(struct verify *v, int stmt, const int64_t *at, int64_t element) {
    const struct stmt *s = &v->p->stmt[stmt];
    step_visit(v, stmt, at);
    uint32_t *count = count_at(v, stmt, at, element);
    bool twice = s->combine == COMBINE_SET ? *count > 0
                                           : !instance_mark(v, stmt, instance_number(v, stmt, at));
    if (twice && v->may_repeat[s->dst.buffer]) return v->repeats[s->dst.buffer] = true;
    if (twice) return point_error(v, stmt, at, "is executed twice", NULL, NULL);
    ++*count;
    v->done[stmt]++;
    if (v->trips) mark_visited(v, stmt, at);
    return true;
}

bool point_count_element(struct verify *v, int stmt, const int64_t *at, int64_t element,
                         uint32_t times) {
    step_visit(v, stmt, at);
    uint32_t *count = count_at(v, stmt, at, element);
    if (v->p->stmt[stmt].combine == COMBINE_SET && *count > 0)
        return point_error(v, stmt, at, "is executed twice", NULL, NULL);
    *count += times;
    return true;
}

static void mark_range(struct verify *v, int stmt, int axis, int64_t from, int64_t n) {
    uint64_t base = (uint64_t)(stmt * v->p->naxes + axis) << 34;
    for (int64_t x = from; x < from + n; x++) {
        bool *page = pages_get(&v->visited, base | (uint64_t)x / PAGE_ENTRIES, NULL),
             *was = &page[x % PAGE_ENTRIES];
        v->nvisited[stmt * v->p->naxes + axis] += !*was;
        *was = true;
    }
}

static void mark_box(struct verify *v, int stmt, const struct walked *box) {
    for (int a = 0; a < v->p->naxes; a++) {
        if (!(v->domain[stmt] >> a & 1)) continue;
        int64_t n = 1;
        for (int x = 0; x < box->naxes; x++)
            if (box->axis[x] == a) n = box->extent[x];
        mark_range(v, stmt, a, box->base[a], n);
    }
}

/* The instances of a box, one by one. */
struct box_walk {
    const struct walked *box;
    int64_t x[MAX_AXES], step[MAX_AXES];
    uint64_t number;
};

static void box_begin(const struct verify *v, int stmt, const struct walked *box,
                      struct box_walk *b) {
    *b = (struct box_walk){.box = box, .number = instance_number(v, stmt, box->base)};
    for (int k = 0; k < box->naxes; k++) {
        if (box->axis[k] < 0) continue;
        b->step[k] = 1;
        for (int a = box->axis[k] + 1; a < v->p->naxes; a++)
            if (v->domain[stmt] >> a & 1) b->step[k] *= v->p->axis[a].extent;
    }
}

static bool box_next(struct box_walk *b) {
    int k = b->box->naxes - 1;
    for (; k >= 0 && b->x[k] + 1 == b->box->extent[k]; k--) {
        b->number -= (uint64_t)(b->x[k] * b->step[k]);
        b->x[k] = 0;
    }
    if (k < 0) return false;
    b->x[k]++;
    b->number += (uint64_t)b->step[k];
    return true;
}

/* All marked now, none before. */
static bool mark_instances(struct verify *v, int stmt, const struct walked *box, int64_t *at) {
    struct box_walk b;
    box_begin(v, stmt, box, &b);
    do {
        if (instance_mark(v, stmt, b.number)) continue;
        for (int k = 0; k < box->naxes; k++)
            if (box->axis[k] >= 0) at[box->axis[k]] += b.x[k];
        return false;
    } while (box_next(&b));
    return true;
}

bool point_box_is_new(const struct verify *v, int stmt, const struct walked *box) {
    struct box_walk b;
    box_begin(v, stmt, box, &b);
    do
        if (instance_marked(v, stmt, b.number)) return false;
    while (box_next(&b));
    return true;
}

bool point_count_box(struct verify *v, int stmt, const struct walked *box) {
    int64_t at[MAX_AXES], points = 1;
    memcpy(at, box->base, sizeof *at * (size_t)v->p->naxes);
    for (int x = 0; x < box->naxes; x++) points *= box->extent[x];
    if (v->p->stmt[stmt].combine != COMBINE_SET && !mark_instances(v, stmt, box, at))
        return point_error(v, stmt, at, "is executed twice", NULL, NULL);
    v->done[stmt] += points;
    if (v->trips) mark_box(v, stmt, box);
    return true;
}

/* ---- tags of reads ---- */
bool tag_same(const struct tag *a, const struct tag *b) {
    return a->kind == b->kind && a->id == b->id && a->type == b->type &&
           (a->kind != TAG_DATA ||
            (a->writer == b->writer && a->count == b->count && a->step == b->step));
}

bool point_expected(struct verify *v, int stmt, int read, const int64_t *at, struct tag *out) {
    const struct access *a = &v->p->stmt[stmt].read[read];
    int64_t e = access_at(v, stmt, read, at);
    if (e >= 0) return version_before(v, stmt, at, a->buffer, e, out);
    *out = tag_const(v->p->buffer[a->buffer].type, a->fill);
    return a->has_fill;
}

/* The destination of a reduction before one more contribution. */
bool point_check_partial(struct verify *v, int stmt, const int64_t *at, int64_t element,
                         const struct tag *found) {
    int buffer = v->p->stmt[stmt].dst.buffer;
    struct tag expected;
    struct tag own = tag_element(buffer, element, stmt, found->count, v->p->buffer[buffer].type);
    own.step = step_number(v, stmt, at);
    if (v->loose[buffer] || (found->count > 0 && tag_same(found, &own))) return true;
    bool written = version_before(v, stmt, at, buffer, element, &expected);
    if (written && tag_same(found, &expected)) return true;
    return point_error(v, stmt, at, "accumulates to", found, &expected);
}

/* A sum that reads itself (a statement may, at the index that it writes) sees what it adds to. */
static bool reads_own_sum(const struct stmt *s, int read, int64_t element) {
    return s->combine != COMBINE_SET && s->read[read].buffer == s->dst.buffer && element >= 0;
}

bool point_check_read(struct verify *v, int stmt, int read, const int64_t *at,
                      const struct tag *found) {
    const struct stmt *s = &v->p->stmt[stmt];
    struct tag expected = {0};
    int64_t element = access_at(v, stmt, read, at);
    if (v->loose[s->read[read].buffer]) return true;
    if (reads_own_sum(s, read, element)) return point_check_partial(v, stmt, at, element, found);
    if (!point_expected(v, stmt, read, at, &expected))
        return point_error(v, stmt, at, "reads what nothing has written:", &expected, NULL);
    if (tag_same(found, &expected)) return true;
    return point_error(v, stmt, at, "reads", found, &expected);
}

/* Of the points that differ from this one along axes in order alone, is none in the sum yet that
 * comes after it? The others' order is free. */
static bool comes_next(struct verify *v, int stmt, const int64_t *at, uint32_t life) {
    uint64_t axes = v->in_order[stmt], n = 0, others = 0;
    if (!axes) return true;
    for (int a = 0; a < v->p->naxes; a++) {
        uint64_t *number = axes >> a & 1 ? &n : &others;
        if (v->domain[stmt] >> a & 1)
            *number = *number * (uint64_t)v->p->axis[a].extent + (uint64_t)at[a];
    }
    uint64_t key = (uint64_t)stmt << 48 | others / PAGE_ENTRIES;
    struct last_point *page = pages_get(&v->last, key, NULL), *last = &page[others % PAGE_ENTRIES];
    bool next = last->life != life || n >= last->n;
    *last = (struct last_point){n, life};
    return next;
}

bool point_after(struct verify *v, int stmt, const int64_t *at, int64_t element,
                 const struct tag *before, struct tag *out) {
    const struct stmt *s = &v->p->stmt[stmt];
    uint32_t step = step_number(v, stmt, at);
    bool adds = s->combine != COMBINE_SET && before->kind == TAG_DATA,
         partial = adds && before->writer == stmt && before->step == step;
    uint32_t life = adds ? before->life : ++v->lives;
    *out = tag_element(s->dst.buffer, element, stmt, partial ? before->count + 1 : 1,
                       v->p->buffer[s->dst.buffer].type);
    out->step = step;
    out->life = life;
    if (!comes_next(v, stmt, at, life))
        return point_error(v, stmt, at, "comes after a later one of its sum", NULL, NULL);
    if (!v->repeats[s->dst.buffer] || s->combine == COMBINE_SET ||
        instance_live(v, stmt, instance_number(v, stmt, at), life))
        return true;
    return point_error(v, stmt, at, "is executed twice", NULL, NULL);
}
