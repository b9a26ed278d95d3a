/* Factors of a sum are multiplied in the order in which the program has them. (h[i,k]·A[k,j])·s can
 * only be cut into a product as large as the sum's whole domain and s. In h[i,k]·(A[k,j]·s) each
 * side is as small as an operand: it is made apart, before the sum, and an instruction of two
 * operands takes the rest. Or s, which stands still along k, is multiplied behind the sum; so where
 * instructions multiply other types than they add. This is done before recurrences are opened, as a
 * step of its own. */
#include "mapper/group.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <math.h>
#include <string.h>

enum { MOST_GROUPED = 8 };
enum { AS_WRITTEN, GROUPED, BEHIND };

struct grouping {
    struct factors f;
    uint32_t first;                 /* factors of the first operand */
    uint32_t behind;                /* factors that are multiplied behind the sum of the others */
    double written, grouped, apart; /* multiplications and conversions; INFINITY: no such way */
};

/* ---- what is there ---- */

/* Does some instruction add products of two values of these types to sums of this one? */
static bool multiplies(const struct needles *all, enum type a, enum type b, enum type sum) {
    struct product_types t;
    for (int i = 0; i < all->n; i++)
        if (needle_product(&all->at[i], &t) && t.sum == sum &&
            ((t.a == a && t.b == b) || (t.a == b && t.b == a)))
            return true;
    return false;
}

/* Does an instruction take the statement as it stands? */
static bool taken(const struct needles *all, const struct program *p, int stmt) {
    struct arena scratch;
    arena_init(&scratch);
    struct search s = {.arena = &scratch, .needles = all, .limit = 20000, .unasked = true};
    struct site site = site_of(&scratch, p, stmt);
    for (int i = 0; i < all->n && s.nmappings == 0; i++)
        if (all->at[i].offered) search_pair(&s, &all->at[i], &site);
    arena_free(&scratch);
    return s.nmappings > 0;
}

static uint64_t sequential_axes(const struct program *p) {
    uint64_t axes = 0;
    for (int a = 0; a < p->naxes; a++)
        if (p->axis[a].sequential) axes |= UINT64_C(1) << a;
    return axes;
}

/* Elements of what these factors give, of one step. */
static double elements(const struct program *p, const struct factors *f, uint32_t mask) {
    uint64_t axes = 0;
    for (int k = 0; k < f->n; k++)
        if (mask >> k & 1) axes |= f->axes[k];
    return rw_points(p, axes & ~sequential_axes(p));
}

static uint32_t all_of(const struct factors *f) {
    return (UINT32_C(1) << f->n) - 1;
}

static bool small(const struct program *p, const struct stmt *s, const struct factors *f,
                  uint32_t mask) {
    double most = cut_elements(p, s);
    return elements(p, f, mask) <= most && elements(p, f, all_of(f) & ~mask) <= most;
}

/* ---- the other order ---- */

static double multiplications(const struct program *p, const struct factors *f, uint32_t mask) {
    return (__builtin_popcount(mask) - 1) * elements(p, f, mask);
}

/* The factors of the value's first operand: of the product as the program has it. */
static uint32_t written_first(const struct program *p, const struct stmt *s) {
    struct factors left = {0};
    rw_collect(p, s, s->op[s->nops - 1].arg[0], &left);
    return (UINT32_C(1) << left.n) - 1;
}

/* Factors of another type are converted before. */
static double conversions(const struct program *p, const struct stmt *s, const struct factors *f) {
    double n = 0;
    for (int k = 0; k < f->n; k++)
        if (rw_stored(p, s, f->node[k]) != f->type) n += elements(p, f, UINT32_C(1) << k);
    return n;
}

/* Two small operands that take the fewest multiplications. */
static void find_grouping(const struct needles *needles, const struct program *p,
                          const struct stmt *s, struct grouping *g) {
    enum type t = g->f.type;
    double all = elements(p, &g->f, all_of(&g->f)) + conversions(p, s, &g->f);
    if (!multiplies(needles, t, t, t)) return;
    for (uint32_t mask = 1; mask < all_of(&g->f); mask += 2) { /* the first factor is in it */
        uint32_t rest = all_of(&g->f) & ~mask;
        double n = all + multiplications(p, &g->f, mask) + multiplications(p, &g->f, rest);
        if (n >= g->grouped || !small(p, s, &g->f, mask)) continue;
        g->first = mask;
        g->grouped = n;
    }
}

static uint64_t summed_axes(const struct program *p, const struct stmt *s) {
    return s->axes & ~rw_access_axes(p, &s->dst);
}

/* Two factors are summed, of types that an instruction multiplies; the others stand still. */
static void find_behind(const struct needles *needles, const struct program *p,
                        const struct stmt *s, struct grouping *g) {
    uint64_t summed = summed_axes(p, s), in = 0;
    int n = 0, node[2] = {-1, -1};
    g->behind = 0;
    for (int k = 0; k < g->f.n; k++) {
        if (!(g->f.axes[k] & summed)) {
            g->behind |= UINT32_C(1) << k;
            continue;
        }
        if (n < 2) node[n] = g->f.node[k];
        in |= g->f.axes[k];
        n++;
    }
    if (n != 2 || summed & ~in ||
        !multiplies(needles, rw_stored(p, s, node[0]), rw_stored(p, s, node[1]), g->f.type))
        return;
    double sums = rw_points(p, rw_access_axes(p, &s->dst) & ~sequential_axes(p));
    g->apart = elements(p, &g->f, all_of(&g->f) & ~g->behind) + (g->f.n - 2) * sums;
}

/* What is multiplied first may be as small as an operand as it stands; but steps make it again. */
static bool is_candidate(const struct program *p, const struct stmt *s, bool in_steps,
                         struct grouping *g) {
    *g = (struct grouping){.f.type = p->buffer[s->dst.buffer].type, .grouped = INFINITY};
    g->apart = INFINITY;
    if (s->combine != COMBINE_ADD || s->nwhere || s->unmapped || stmt_reads(s, s->dst.buffer) ||
        s->op[s->nops - 1].code != OP_MUL || s->op[s->nops - 1].type != g->f.type ||
        !rw_collect(p, s, s->nops - 1, &g->f) || g->f.n < 3 || g->f.n > MOST_GROUPED)
        return false;
    uint32_t first = written_first(p, s), all = all_of(&g->f);
    bool fits = small(p, s, &g->f, first);
    g->written = (g->f.n - 1) * elements(p, &g->f, all);
    if (fits)
        g->written = elements(p, &g->f, all) + multiplications(p, &g->f, first) +
                     multiplications(p, &g->f, all & ~first);
    return !fits || in_steps;
}

/* The approach's answer. */
static int way_of(const struct program *p, const struct stmt *s, const struct grouping *g,
                  struct decider *d) {
    struct candidate c[3] = {{"as written", g->written, NULL}};
    int n = 1, way[3] = {AS_WRITTEN};
    struct arena scratch;
    if (g->grouped < g->written) {
        way[n] = GROUPED;
        c[n++] = (struct candidate){"grouped", g->grouped, NULL};
    }
    if (g->apart < g->written) {
        way[n] = BEHIND;
        c[n++] = (struct candidate){"behind the sum", g->apart, NULL};
    }
    if (n == 1) return AS_WRITTEN;
    if (!d) return n > 2 && c[2].cost < c[1].cost ? way[2] : way[1];
    arena_init(&scratch);
    char *subject = arena_printf(&scratch, "factors of '%s'", p->buffer[s->dst.buffer].name);
    struct question q = {QUESTION_REWRITE, subject, n, 0, c, NULL};
    int answer = way[decide(d, &q)];
    arena_free(&scratch);
    return answer;
}

static void group(struct program *q, int stmt, const struct grouping *g) {
    const struct stmt old = q->stmt[stmt];
    struct draft d = draft_open(q, &old, old.combine, old.dst);
    int x = draft_product(&d, &old, &g->f, g->first);
    int y = draft_product(&d, &old, &g->f, all_of(&g->f) & ~g->first);
    draft_binary(&d, OP_MUL, x, y);
    draft_close(&d, stmt);
    q->stmt[stmt].axes = old.axes;
}

/* Two items before the statement's, in whose body it is. */
static bool insert(struct program *p, struct item **item, int *n, int stmt, const int *two) {
    for (int i = 0; i < *n; i++) {
        struct item *x = &(*item)[i];
        if (x->kind == ITEM_RECUR && insert(p, &x->recur->item, &x->recur->nitems, stmt, two))
            return true;
        if (x->kind != ITEM_STMT || x->stmt != stmt) continue;
        struct item *more = arena_extended(&p->arena, *item, (size_t)*n, 2, sizeof *more);
        memmove(more + i + 2, more + i, (size_t)(*n - i) * sizeof *more);
        for (int k = 0; k < 2; k++) more[i + k] = (struct item){.kind = ITEM_STMT, .stmt = two[k]};
        *item = more;
        *n += 2;
        return true;
    }
    return false;
}

/* Statements that others have replaced are no items. */
static bool is_item(const struct item *item, int n, int stmt) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_STMT && item[i].stmt == stmt) return true;
        if (item[i].kind == ITEM_RECUR && is_item(item[i].recur->item, item[i].recur->nitems, stmt))
            return true;
    }
    return false;
}

/* The sum in a temporary of one step, then it times the others; false: there is no room. */
static bool put_behind(struct program *q, int stmt, const struct grouping *g) {
    const struct stmt old = q->stmt[stmt];
    uint32_t inner = all_of(&g->f) & ~g->behind;
    uint64_t kept = 0;
    struct access sum;
    int axis[MAX_AXES];
    for (int k = 0; k < g->f.n; k++)
        if (inner >> k & 1) kept |= g->f.axes[k];
    kept &= rw_access_axes(q, &old.dst) & ~sequential_axes(q);
    const char *name = arena_printf(&q->arena, "%s.sum", q->buffer[old.dst.buffer].name);
    if (!rw_temporary_of(q, name, g->f.type, axis, rw_axes(kept, axis), &sum)) return false;
    int two[2] = {body_append(q, (struct stmt){0}), body_append(q, (struct stmt){0})};
    insert(q, &q->item, &q->nitems, stmt, two);
    rw_fill(q, two[0], &old, sum, 0);
    struct draft d = draft_open(q, &old, COMBINE_ADD, rw_copy(q, &sum));
    draft_product(&d, &old, &g->f, inner);
    draft_close(&d, two[1]);
    q->stmt[two[1]].axes &= old.axes; /* a recurrence's axis is around the statement */
    d = draft_open(q, &old, COMBINE_ADD, old.dst);
    int x = draft_read(&d, rw_copy(q, &sum));
    draft_binary(&d, OP_MUL, x, draft_product(&d, &old, &g->f, g->behind));
    draft_close(&d, stmt);
    q->stmt[stmt].axes &= old.axes;
    return true;
}

struct program *group_factors(const struct program *p, const struct needles *needles,
                              bool floats_too, struct decider *d) {
    struct program *q = NULL;
    for (int s = 0; s < p->nstmts; s++) {
        struct grouping g;
        const struct stmt *st = &p->stmt[s];
        if (!is_candidate(p, st, stmt_in_recurrence(p, s), &g) ||
            (type_is_float(g.f.type) && !floats_too))
            continue;
        find_grouping(needles, p, st, &g);
        find_behind(needles, p, st, &g);
        if (fmin(g.grouped, g.apart) >= g.written || !is_item(p->item, p->nitems, s) ||
            taken(needles, p, s))
            continue;
        int way = way_of(p, st, &g, d);
        if (way == AS_WRITTEN) continue;
        struct program *to = q ? q : program_copy(p);
        if (way == GROUPED) group(to, s, &g);
        if (way == GROUPED || put_behind(to, s, &g))
            q = to;
        else if (!q)
            program_free(to);
    }
    return q;
}
