/* How much work a program is. Sizes saturate at INT64_MAX. */
#include "ir/program.h"

#include <string.h>

static int64_t times(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t plus(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static __int128 floor_div(__int128 a, __int128 b) {
    __int128 q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* Points of a few axes under constraints, counted by enumerating all axes but the longest, which is
 * solved. */
struct counter {
    const struct program *p;
    const struct stmt *s;
    int axis[MAX_AXES], naxes;
};

/* The most that axes from `from` on can add to constraint w. */
static __int128 rest_of(const struct counter *c, int w, int from) {
    __int128 most = 0;
    for (int k = from; k < c->naxes; k++) {
        const struct axis *a = &c->p->axis[c->axis[k]];
        int64_t coef = c->s->where[w].coef[c->axis[k]];
        most += (__int128)coef * (coef > 0 ? a->extent - 1 : a->first);
    }
    return most;
}

static int64_t count_from(const struct counter *c, int k, int64_t *at) {
    const struct axis *x = &c->p->axis[c->axis[k]];
    __int128 low = x->first, high = x->extent - 1;
    for (int w = 0; w < c->s->nwhere; w++) {
        const int64_t *row = c->s->where[w].coef;
        int64_t coef = row[c->axis[k]];
        __int128 rest = row[c->p->naxes] + rest_of(c, w, k + 1);
        bool ours = false;
        for (int a = 0; a < c->naxes; a++) ours = ours || row[c->axis[a]] != 0;
        for (int a = 0; a < k; a++) rest += (__int128)row[c->axis[a]] * at[a];
        if (!ours) continue;
        if (coef == 0 && rest < 0) return 0;
        if (coef > 0 && -floor_div(rest, coef) > low) low = -floor_div(rest, coef);
        if (coef < 0 && floor_div(rest, -(__int128)coef) < high)
            high = floor_div(rest, -(__int128)coef);
    }
    if (low > high) return 0;
    if (k == c->naxes - 1) return (int64_t)(high - low + 1);
    int64_t n = 0;
    for (at[k] = (int64_t)low; at[k] <= (int64_t)high; at[k]++)
        n = plus(n, count_from(c, k + 1, at));
    return n;
}

/* Axes that constraints tie to those in `seed`. */
static uint64_t connected(const struct program *p, const struct stmt *s, uint64_t seed) {
    for (bool more = true; more;) {
        more = false;
        for (int w = 0; w < s->nwhere; w++) {
            uint64_t in = 0;
            for (int a = 0; a < p->naxes; a++)
                if (s->where[w].coef[a] != 0) in |= (uint64_t)1 << a;
            if (!(in & seed) || !(in & ~seed)) continue;
            seed |= in;
            more = true;
        }
    }
    return seed;
}

static int64_t count_component(const struct program *p, const struct stmt *s, uint64_t axes) {
    struct counter c = {.p = p, .s = s};
    int64_t at[MAX_AXES];
    int longest = 0;
    for (int a = 0; a < p->naxes; a++)
        if (axes >> a & 1) c.axis[c.naxes++] = a;
    for (int k = 1; k < c.naxes; k++)
        if (p->axis[c.axis[k]].extent > p->axis[c.axis[longest]].extent) longest = k;
    int last = c.axis[longest];
    memmove(c.axis + longest, c.axis + longest + 1,
            (size_t)(c.naxes - 1 - longest) * sizeof *c.axis);
    c.axis[c.naxes - 1] = last;
    return count_from(&c, 0, at);
}

static bool constant_holds(const struct program *p, const struct constraint *w) {
    for (int a = 0; a < p->naxes; a++)
        if (w->coef[a] != 0) return true;
    return w->coef[p->naxes] >= 0;
}

static int64_t count_points(const struct program *p, const struct stmt *s, uint64_t axes) {
    int64_t n = 1;
    uint64_t done = 0;
    for (int w = 0; w < s->nwhere; w++)
        if (!constant_holds(p, &s->where[w])) return 0;
    for (int a = 0; a < p->naxes; a++) {
        if (!(axes >> a & 1) || done >> a & 1) continue;
        if (axis_steps(&p->axis[a]) == 0) return 0;
        uint64_t tied = connected(p, s, (uint64_t)1 << a);
        done |= tied;
        n = times(n, count_component(p, s, tied));
    }
    return n;
}

/* Where constraints mention a recurrence's step the average over the steps, rounded up. */
int64_t stmt_points(const struct program *p, const struct stmt *s) {
    uint64_t time = 0;
    int64_t steps = 1;
    for (int a = 0; a < p->naxes && s->nwhere; a++) {
        if (!((stmt_axes(p, s) & ~s->axes) >> a & 1)) continue;
        time |= (uint64_t)1 << a;
        steps = times(steps, axis_steps(&p->axis[a]));
    }
    if (steps == 0) return 0;
    int64_t all = count_points(p, s, s->axes | time);
    return all / steps + (all % steps != 0);
}

bool stmt_is_mac(const struct program *p, const struct stmt *s) {
    (void)p;
    const struct op *o = &s->op[s->nops - 1];
    while (o->code == OP_CAST) o = &s->op[o->arg[0]];
    return s->combine == COMBINE_ADD && o->code == OP_MUL;
}

/* Terms of a sum, if all are products; 0. */
static int products(const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    if (o->code == OP_CAST) return products(s, o->arg[0]);
    if (o->code != OP_ADD && o->code != OP_SUB) return o->code == OP_MUL;
    int a = products(s, o->arg[0]), b = products(s, o->arg[1]);
    return a && b ? a + b : 0;
}

int64_t stmt_macs(const struct stmt *s) {
    return s->combine == COMBINE_ADD ? products(s, s->nops - 1) : 0;
}

int64_t stmt_operations(const struct program *p, const struct stmt *s) {
    (void)p;
    int64_t n = s->combine != COMBINE_SET;
    for (int o = 0; o < s->nops; o++)
        n += op_info[s->op[o].code].arity > 0 && s->op[o].code != OP_CAST;
    return n - 2 * stmt_macs(s);
}

static int64_t work_of(const struct program *p, const struct item *item, int n, uint64_t time,
                       bool macs) {
    int64_t sum = 0;
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].recur;
        if (item[k].kind == ITEM_RECUR)
            sum = plus(sum, work_of(p, r->item, r->nitems, time | (uint64_t)1 << r->axis, macs));
        if (item[k].kind != ITEM_STMT) continue;
        const struct stmt *s = &p->stmt[item[k].stmt];
        int64_t each = macs ? stmt_macs(s) : stmt_operations(p, s);
        if (each > 0) sum = plus(sum, times(each, count_points(p, s, s->axes | time)));
    }
    return sum;
}

static void points_of(const struct program *p, const struct item *item, int n, uint64_t time,
                      int64_t *points) {
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].recur;
        if (item[k].kind == ITEM_RECUR)
            points_of(p, r->item, r->nitems, time | (uint64_t)1 << r->axis, points);
        if (item[k].kind != ITEM_STMT) continue;
        const struct stmt *s = &p->stmt[item[k].stmt];
        points[item[k].stmt] = count_points(p, s, s->axes | time);
    }
}

void program_points(const struct program *p, int64_t *points) {
    points_of(p, p->item, p->nitems, 0, points);
}

int64_t program_macs(const struct program *p) {
    return work_of(p, p->item, p->nitems, 0, true);
}

int64_t program_operations(const struct program *p) {
    return work_of(p, p->item, p->nitems, 0, false);
}
