/* Is a rewritten program the same? Which statements differ, that they are well formed and declare
 * alike what others see; then the checker of ir/equal_*.c, which knows no rewrites, proves it by
 * the laws that the rewrite's effect allows, or compares samples where that is enough. */
#include "mapper/rewrite_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- what changed ---- */

struct window { /* items from .. to - 1 of each program differ; before and after they agree */
    int from, to[2];
};

struct both {
    const struct program *p[2];
    int *axis; /* of program 0 → of program 1; -1: gone */
    struct window w;
    bool *outside[2]; /* [buffer]: touched by what is not changed */
};

static bool row_same(const struct both *x, const int64_t *a, const int64_t *b) {
    int n = x->p[0]->naxes, m = x->p[1]->naxes, other = 0, mine = 0;
    for (int k = 0; k < n; k++) {
        if (a[k] == 0) continue;
        if (x->axis[k] < 0 || b[x->axis[k]] != a[k]) return false;
        mine++;
    }
    for (int k = 0; k < m; k++) other += b[k] != 0;
    return mine == other && a[n] == b[m];
}

static bool value_same(union value a, union value b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool accesses_same(const struct both *x, const struct access *a, const struct access *b) {
    if (a->buffer != b->buffer || a->has_fill != b->has_fill) return false;
    if (a->has_fill && !value_same(a->fill, b->fill)) return false;
    for (int d = 0; d < x->p[0]->buffer[a->buffer].ndims; d++)
        if (!row_same(x, rw_row(x->p[0], a, d), rw_row(x->p[1], b, d))) return false;
    return true;
}

static bool op_same(const struct both *x, const struct op *a, const struct op *b) {
    if (a->code != b->code || a->type != b->type) return false;
    if (a->code == OP_READ) return a->read == b->read;
    if (a->code == OP_AXIS) return x->axis[a->axis] == b->axis;
    if (a->code == OP_LITERAL) return value_same(a->value, b->value);
    for (int k = 0; k < op_info[a->code].arity; k++)
        if (a->arg[k] != b->arg[k]) return false;
    return true;
}

static bool stmts_same(const struct both *x, const struct stmt *a, const struct stmt *b) {
    if (a->combine != b->combine || a->nreads != b->nreads || a->nops != b->nops ||
        a->nwhere != b->nwhere || a->scope != b->scope || !accesses_same(x, &a->dst, &b->dst))
        return false;
    for (int k = 0; k < a->nreads; k++)
        if (!accesses_same(x, &a->read[k], &b->read[k])) return false;
    for (int k = 0; k < a->nops; k++)
        if (!op_same(x, &a->op[k], &b->op[k])) return false;
    for (int k = 0; k < a->nwhere; k++)
        if (!row_same(x, a->where[k].coef, b->where[k].coef)) return false;
    return true;
}

/* Recurrences and calls are never rewritten: both programs have them at their place. */
static bool items_same(const struct both *x, const struct item *a, const struct item *b) {
    if (a->kind != b->kind) return false;
    return a->kind != ITEM_STMT || stmts_same(x, &x->p[0]->stmt[a->stmt], &x->p[1]->stmt[b->stmt]);
}

static bool buffers_same(const struct buffer *a, const struct buffer *b) {
    return !strcmp(a->name, b->name) && a->type == b->type && a->role == b->role &&
           a->ndims == b->ndims &&
           (a->ndims == 0 || !memcmp(a->extent, b->extent, (size_t)a->ndims * sizeof *a->extent));
}

static int axis_named(const struct program *p, const char *name) {
    for (int a = 0; a < p->naxes; a++)
        if (!strcmp(p->axis[a].name, name)) return a;
    return -1;
}

static void find_window(struct arena *arena, struct both *x) {
    const struct program *p = x->p[0], *q = x->p[1];
    x->axis = arena_array(arena, (size_t)p->naxes + 1, sizeof *x->axis);
    for (int a = 0; a < p->naxes; a++) {
        x->axis[a] = axis_named(q, p->axis[a].name);
        if (x->axis[a] >= 0 && q->axis[x->axis[a]].extent != p->axis[a].extent) x->axis[a] = -1;
    }
    int from = 0, n = p->nitems, m = q->nitems;
    while (from < n && from < m && items_same(x, &p->item[from], &q->item[from])) from++;
    while (n > from && m > from && items_same(x, &p->item[n - 1], &q->item[m - 1])) n--, m--;
    x->w = (struct window){from, {n, m}};
}

/* Statements before that fill what the changed ones read of temporaries belong to the window too,
 * but for those of an opened recurrence and before it: what these fill counts as any values. */
static void reach_writers(struct both *x) {
    const struct program *p = x->p[0];
    for (int at = x->w.from; at-- > 0;) {
        const struct item *item = &p->item[at];
        if (item->kind != ITEM_STMT || p->stmt[item->stmt].scope) return;
        int b = p->stmt[item->stmt].dst.buffer;
        if (p->buffer[b].role == ROLE_TEMP &&
            items_touch(p, p->item + x->w.from, x->w.to[0] - x->w.from, b))
            x->w.from = at;
    }
}

/* The program's changed statements alone. */
static struct program view_of(const struct both *x, int side) {
    struct program view = *x->p[side];
    view.item += x->w.from;
    view.nitems = x->w.to[side] - x->w.from;
    return view;
}

static void find_outside(struct arena *arena, struct both *x) {
    for (int k = 0; k < 2; k++) {
        const struct program *p = x->p[k];
        int to = x->w.to[k];
        x->outside[k] = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *x->outside[k]);
        items_touched(p, p->item, x->w.from, x->outside[k]);
        items_touched(p, p->item + to, p->nitems - to, x->outside[k]);
    }
}

static bool seen_outside(const struct both *x, int side, int buffer) {
    return buffer < x->p[0]->nbuffers &&
           (x->p[side]->buffer[buffer].role != ROLE_TEMP || x->outside[side][buffer]);
}

__attribute__((format(printf, 2, 0))) static bool refuse(struct text *why, const char *text,
                                                         const char *name) {
    if (why) text_printf(why, text, name);
    return false;
}

/* What both programs see must be declared alike; what only the new one has is its own. */
static bool declarations_agree(const struct both *x, struct text *why) {
    const struct program *p = x->p[0], *q = x->p[1];
    if (q->nbuffers < p->nbuffers) return refuse(why, "%s", "a buffer is gone");
    for (int b = 0; b < q->nbuffers; b++) {
        bool own = b >= p->nbuffers, inside = own || !seen_outside(x, 0, b);
        if (own && q->buffer[b].role != ROLE_TEMP)
            return refuse(why, "'%s' is new, and no temporary", q->buffer[b].name);
        if (!inside && !buffers_same(&p->buffer[b], &q->buffer[b]))
            return refuse(why, "'%s' is declared differently", q->buffer[b].name);
    }
    return true;
}

/* The changed statements as a program of their own: what they find there counts as set. */
static bool well_formed(struct arena *arena, const struct both *x, struct text *why) {
    struct program alone = view_of(x, 1);
    struct diags diags;
    diags_init(&diags);
    alone.source.text = NULL;
    alone.buffer = arena_copy(arena, alone.buffer, (size_t)alone.nbuffers * sizeof *alone.buffer);
    alone.item = arena_copy(arena, alone.item, (size_t)alone.nitems * sizeof *alone.item);
    alone.stmt = arena_array(arena, (size_t)alone.nitems + 1, sizeof *alone.stmt);
    alone.nstmts = 0;
    for (int b = 0; b < x->p[0]->nbuffers; b++)
        if (seen_outside(x, 1, b)) alone.buffer[b].role = ROLE_INOUT;
    for (int i = 0; i < alone.nitems; i++) {
        if (alone.item[i].kind != ITEM_STMT) return refuse(why, "%s", "a recurrence was changed");
        alone.stmt[alone.nstmts] = x->p[1]->stmt[alone.item[i].stmt];
        alone.item[i].stmt = alone.nstmts++;
    }
    bool ok = program_verify(&alone, &diags);
    if (!ok)
        refuse(why, "it is malformed: %s", diags.errors > 0 ? diags.at[0].text : "no reason given");
    diags_free(&diags);
    return ok;
}

/* What rewrites of this effect may use. */
uint32_t rewrite_laws(enum rewrite_effect effect) {
    return effect == REWRITE_EXACT      ? LAWS_EXACT
           : effect == REWRITE_REORDERS ? LAWS_REORDER
                                        : LAWS_FINITE;
}

/* Something that others see is an integer. */
static bool writes_integers(const struct both *x) {
    for (int i = x->w.from; i < x->w.to[1]; i++) {
        if (x->p[1]->item[i].kind != ITEM_STMT) continue;
        int b = x->p[1]->stmt[x->p[1]->item[i].stmt].dst.buffer;
        if (seen_outside(x, 1, b) && !type_is_float(x->p[1]->buffer[b].type)) return true;
    }
    return false;
}

/* Samples alone cannot say of integers, or of what must keep every bit, that it does. */
static bool sample_serves(const struct rewrite *r, const struct both *x) {
    return r->effect != REWRITE_EXACT && !writes_integers(x);
}

enum sampling rewrite_sampling(const struct rewrite *r) {
    return r->by_ranges ? SAMPLE_RANGES : r->by_values ? SAMPLE_VALUES : SAMPLE_FIELD;
}

struct verdict rewrite_judge(const struct rewrite *r, const struct program *before,
                             const struct program *after, enum samples use, struct text *why) {
    struct arena arena;
    struct verdict v = {.evidence = EVIDENCE_REFUTED, .why = "it is malformed"};
    arena_init(&arena);
    struct both x = {.p = {before, after}};
    find_window(&arena, &x);
    if (r->by_ranges) reach_writers(&x);
    find_outside(&arena, &x);
    if (declarations_agree(&x, why) && well_formed(&arena, &x, why)) {
        struct items a = {x.w.from, x.w.to[0]}, b = {x.w.from, x.w.to[1]};
        struct program old = *before, new = *after;
        if (r->by_makers && items_with_makers(&arena, &old, &a, "before")) before = &old;
        if (r->by_makers && items_with_makers(&arena, &new, &b, "after")) after = &new;
        bool serves = sample_serves(r, &x);
        v = (struct verdict){.evidence = EVIDENCE_UNPROVED};
        if (r->effect != REWRITE_ROUNDS || !serves)
            v = items_equal_by(before, a, after, b, rewrite_laws(r->effect), 0);
        const char *unproved = v.why;
        if (v.evidence == EVIDENCE_UNPROVED &&
            (use == SAMPLES_REFUTE || (serves && use != SAMPLES_NONE)))
            v = items_sampled(before, a, after, b, rewrite_sampling(r), why);
        if (v.evidence == EVIDENCE_SAMPLED && !serves) v.evidence = EVIDENCE_UNPROVED;
        if (v.evidence == EVIDENCE_UNPROVED && !serves) {
            v.why = unproved;
            refuse(why, "it is not proved: %s", unproved);
        }
    }
    arena_free(&arena);
    return v;
}

bool rewrite_prove(const struct rewrite *r, const struct program *before,
                   const struct program *after, struct text *why) {
    enum evidence e = rewrite_judge(r, before, after, SAMPLES_SERVE, why).evidence;
    return e == EVIDENCE_PROVED || e == EVIDENCE_SAMPLED;
}
