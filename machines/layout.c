#include "machines/layout.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 100, ENUMERATE = 1 << 20 };

struct reader {
    struct arena *arena;
    const char *text, *at;
    const struct bindings *names;
    struct layout *layout;
    const char *file;
    int line, depth;
    struct diags *diags;
    bool failed;
};

static struct lexpr *read_sum(struct reader *);

static void *fail(struct reader *r, const char *expected) {
    if (!r->failed) {
        if (*r->at)
            diag_line(r->diags, r->file, r->line, 0,
                      "expected %s before '%.12s' in layout '%.200s'", expected, r->at, r->text);
        else
            diag_line(r->diags, r->file, r->line, 0, "expected %s at the end of layout '%.200s'",
                      expected, r->text);
    }
    r->failed = true;
    return NULL;
}

static void skip_space(struct reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static size_t word_at(const char *at) {
    size_t n = 0;
    if (!isalpha((unsigned char)*at) && *at != '_') return 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
    return n;
}

static struct lexpr *leaf(struct reader *r, char op, int64_t number, int index) {
    struct lexpr *e = arena_alloc(r->arena, sizeof *e);
    e->op = op;
    e->number = number;
    e->index = index;
    return e;
}

static struct lexpr *read_name(struct reader *r) {
    size_t n = word_at(r->at);
    const char *name = arena_strndup(r->arena, r->at, n);
    for (int i = 0; i < r->layout->nindices; i++)
        if (!strcmp(r->layout->index[i], name)) {
            r->at += n;
            return leaf(r, 'i', 0, i);
        }
    for (const struct bindings *b = r->names; b; b = b->outer)
        for (int i = 0; i < b->n; i++)
            if (!strcmp(b->at[i].name, name)) {
                r->at += n;
                return leaf(r, 'n', b->at[i].value, 0);
            }
    return fail(r, "an index of the layout");
}

static struct lexpr *read_leaf(struct reader *r) {
    skip_space(r);
    if (isdigit((unsigned char)*r->at)) {
        int64_t v = 0;
        for (; isdigit((unsigned char)*r->at); r->at++)
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *r->at - '0', &v) ||
                v > INT32_MAX)
                return fail(r, "a number below 2^31");
        return leaf(r, 'n', v, 0);
    }
    if (word_at(r->at)) return read_name(r);
    if (*r->at != '(') return fail(r, "an index, a number or '('");
    if (++r->depth > MAX_DEPTH) return fail(r, "less nesting");
    r->at++;
    struct lexpr *e = read_sum(r);
    r->depth--;
    skip_space(r);
    if (e && *r->at != ')') return fail(r, "')'");
    r->at++;
    return e;
}

/* a bound on every value, with indices below 2^31: keeps all later arithmetic inside 64 bits */
static double magnitude(const struct lexpr *e) {
    if (e->op == 'n') return e->number < 0 ? -(double)e->number : (double)e->number;
    if (e->op == 'i') return 0x1p31;
    double a = magnitude(e->a), b = magnitude(e->b);
    return e->op == '*' ? a * b : e->op == '%' ? b : e->op == '/' ? a : a + b;
}

static struct lexpr *combine(struct reader *r, char op, struct lexpr *a, struct lexpr *b) {
    if (op == '*' && a->op != 'n' && b->op != 'n') return fail(r, "a number as one factor");
    if ((op == '/' || op == '%') && (b->op != 'n' || b->number <= 0))
        return fail(r, "a positive divisor");
    struct lexpr *e = leaf(r, op, 0, 0);
    e->a = a;
    e->b = b;
    if (magnitude(e) > 0x1p61) return fail(r, "smaller numbers");
    if (a->op == 'n' && b->op == 'n') {
        int64_t v = lexpr_eval(e, NULL);
        if (v > INT32_MAX || v < INT32_MIN) return fail(r, "numbers below 2^31");
        return leaf(r, 'n', v, 0);
    }
    return e;
}

static struct lexpr *read_product(struct reader *r) {
    struct lexpr *a = read_leaf(r);
    while (a) {
        skip_space(r);
        char op = *r->at;
        if (!op || !strchr("*/%", op)) break;
        r->at++;
        struct lexpr *b = read_leaf(r);
        a = b ? combine(r, op, a, b) : NULL;
    }
    return a;
}

static struct lexpr *read_sum(struct reader *r) {
    struct lexpr *a = read_product(r);
    while (a) {
        skip_space(r);
        char op = *r->at;
        if (op != '+' && op != '-') break;
        r->at++;
        struct lexpr *b = read_product(r);
        a = b ? combine(r, op, a, b) : NULL;
    }
    return a;
}

static bool read_indices(struct reader *r) {
    struct layout *l = r->layout;
    const char *name[16];
    for (;;) {
        skip_space(r);
        size_t n = word_at(r->at);
        if (!n || l->nindices == 16)
            return fail(r, n ? "at most 16 indices" : "a name of an index");
        name[l->nindices] = arena_strndup(r->arena, r->at, n);
        for (int i = 0; i < l->nindices; i++)
            if (!strcmp(name[i], name[l->nindices])) return fail(r, "another name");
        l->nindices++;
        r->at += n;
        skip_space(r);
        if (*r->at != ',') break;
        r->at++;
    }
    l->index = arena_copy(r->arena, name, (size_t)l->nindices * sizeof *name);
    if (strncmp(r->at, "->", 2)) return fail(r, "',' or '->'");
    r->at += 2;
    return true;
}

static const char *read_unit(struct reader *r) {
    skip_space(r);
    size_t n = word_at(r->at);
    while (n && (isalnum((unsigned char)r->at[n]) || (r->at[n] && strchr("._-", r->at[n])))) n++;
    size_t colon = n;
    while (isspace((unsigned char)r->at[colon])) colon++;
    if (!n || r->at[colon] != ':') return NULL;
    const char *unit = arena_strndup(r->arena, r->at, n);
    r->at += colon + 1;
    return unit;
}

struct layout *layout_parse_with(struct arena *a, const char *text, const struct bindings *names,
                                 const char *file, int line, struct diags *diags) {
    struct layout *l = arena_alloc(a, sizeof *l);
    struct reader r = {a, text, text, names, l, file, line, 0, diags, false};
    if (strlen(text) > 2000) {
        diag_line(diags, file, line, 0, "layout of %zu characters, expected at most 2000",
                  strlen(text));
        return NULL;
    }
    if (!read_indices(&r)) return NULL;
    struct layout_place place[MAX_PLACES];
    for (;;) {
        if (l->nplaces == MAX_PLACES) return fail(&r, "at most 64 places");
        struct layout_place *p = &place[l->nplaces++];
        p->unit = read_unit(&r);
        p->expr = read_sum(&r);
        if (!p->expr) return NULL;
        skip_space(&r);
        if (*r.at != ',') break;
        r.at++;
    }
    if (*r.at) return fail(&r, "',' or an operator");
    l->place = arena_copy(a, place, (size_t)l->nplaces * sizeof *place);
    return l;
}

struct layout *layout_parse(struct arena *a, const char *text, const char *file, int line,
                            struct diags *diags) {
    return layout_parse_with(a, text, NULL, file, line, diags);
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

bool lexpr_uses(const struct lexpr *e, int index) {
    if (e->op == 'n' || e->op == 'i') return e->op == 'i' && e->index == index;
    return lexpr_uses(e->a, index) || lexpr_uses(e->b, index);
}

int64_t lexpr_eval(const struct lexpr *e, const int64_t *index) {
    if (e->op == 'n') return e->number;
    if (e->op == 'i') return index[e->index];
    int64_t a = lexpr_eval(e->a, index), b = lexpr_eval(e->b, index);
    switch (e->op) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return floor_div(a, b);
    default:
        assert(e->op == '%');
        return a - b * floor_div(a, b);
    }
}

/* ---- extents ---- */

struct interval {
    int64_t lo, hi;
};

static struct interval scaled(struct interval a, int64_t by) {
    return by >= 0 ? (struct interval){a.lo * by, a.hi * by}
                   : (struct interval){a.hi * by, a.lo * by};
}

static struct interval bounds(const struct lexpr *e, const int64_t *extent) {
    if (e->op == 'n') return (struct interval){e->number, e->number};
    if (e->op == 'i') return (struct interval){0, extent[e->index] - 1};
    struct interval a = bounds(e->a, extent), b = bounds(e->b, extent);
    switch (e->op) {
    case '+':
        return (struct interval){a.lo + b.lo, a.hi + b.hi};
    case '-':
        return (struct interval){a.lo - b.hi, a.hi - b.lo};
    case '*':
        return e->a->op == 'n' ? scaled(b, a.lo) : scaled(a, b.lo);
    case '/':
        return (struct interval){floor_div(a.lo, b.lo), floor_div(a.hi, b.lo)};
    default:
        if (floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
            int64_t base = floor_div(a.lo, b.lo) * b.lo;
            return (struct interval){a.lo - base, a.hi - base};
        }
        return (struct interval){0, b.lo - 1};
    }
}

static void count_uses(const struct lexpr *e, int *uses) {
    if (e->op == 'i') uses[e->index]++;
    if (e->a) count_uses(e->a, uses);
    if (e->b) count_uses(e->b, uses);
}

/* Steps to the next index; false after the last. */
static bool advance(int n, const int64_t *extent, int64_t *index) {
    for (int d = n; d--;) {
        if (++index[d] < extent[d]) return true;
        index[d] = 0;
    }
    return false;
}

static bool few_points(int n, const int64_t *extent) {
    int64_t points = 1;
    for (int d = 0; d < n; d++)
        if (__builtin_mul_overflow(points, extent[d], &points) || points > ENUMERATE) return false;
    return true;
}

/* Terms of a sum, each with a factor and the indices that it uses. */
struct term {
    const struct lexpr *e;
    int64_t times;
    uint32_t uses;
};

enum { TERMS = 16 };

/* At most `limit`: what would be more stays together. */
static void terms_of(const struct lexpr *e, int64_t times, struct term *out, int *n, int limit) {
    bool sum = e->op == '+' || e->op == '-';
    if (sum && limit - *n > 1) {
        terms_of(e->a, times, out, n, limit - 1);
        terms_of(e->b, e->op == '-' ? -times : times, out, n, limit);
    } else if (e->op == '*' && e->a->op == 'n') {
        terms_of(e->b, times * e->a->number, out, n, limit);
    } else if (e->op == '*' && e->b->op == 'n') {
        terms_of(e->a, times * e->b->number, out, n, limit);
    } else {
        int uses[16] = {0};
        out[*n] = (struct term){.e = e, .times = times};
        count_uses(e, uses);
        for (int i = 0; i < 16; i++)
            if (uses[i]) out[*n].uses |= UINT32_C(1) << i;
        ++*n;
    }
}

/* The largest sum of the terms that use these indices. Interval analysis is exact when each index
 * occurs once, since the parts vary independently, and when the last element reaches the bound. */
static int64_t largest(const struct term *t, int n, uint32_t among, int nindices,
                       const int64_t *extent) {
    int uses[16] = {0}, most = 0;
    int64_t only[16], index[16] = {0}, last[16], hi = INT64_MIN, bound = 0, ends = 0;
    for (int k = 0; k < n; k++) {
        if (!(t[k].uses & among)) continue;
        count_uses(t[k].e, uses);
        bound += scaled(bounds(t[k].e, extent), t[k].times).hi;
    }
    for (int i = 0; i < nindices; i++) {
        only[i] = uses[i] ? extent[i] : 1;
        last[i] = extent[i] - 1;
        if (uses[i] > most) most = uses[i];
    }
    for (int k = 0; k < n; k++)
        if (t[k].uses & among) ends += t[k].times * lexpr_eval(t[k].e, last);
    if (most <= 1 || ends == bound || !few_points(nindices, only)) return bound;
    do {
        int64_t v = 0;
        for (int k = 0; k < n; k++)
            if (t[k].uses & among) v += t[k].times * lexpr_eval(t[k].e, index);
        if (v > hi) hi = v;
    } while (advance(nindices, only, index));
    return hi;
}

/* Terms that share no index vary independently. */
static int64_t place_extent_of(const struct layout *l, const struct lexpr *e,
                               const int64_t *extent) {
    struct term t[TERMS];
    int n = 0;
    int64_t none[16] = {0}, hi = 0;
    uint32_t done = 0;
    terms_of(e, 1, t, &n, TERMS);
    for (int k = 0; k < n; k++) {
        uint32_t among = t[k].uses;
        if (!among) hi += t[k].times * lexpr_eval(t[k].e, none);
        if (!among || among & done) continue;
        for (int j = k + 1; j < n; j++)
            if (t[j].uses & among && t[j].uses & ~among) {
                among |= t[j].uses;
                j = k;
            }
        done |= among;
        hi += largest(t, n, among, l->nindices, extent);
    }
    return hi < 0 ? 1 : hi + 1;
}

void layout_extents(const struct layout *l, const int64_t *buffer_extent, int64_t *place_extent) {
    for (int p = 0; p < l->nplaces; p++)
        place_extent[p] = place_extent_of(l, l->place[p].expr, buffer_extent);
}

/* ---- offsets ---- */

void layout_strides(const struct layout *l, int ndims, const int64_t *extent,
                    int64_t stride[MAX_PLACES]) {
    int64_t s = 1;
    int n = 0;
    for (int d = ndims; !l && d--; s *= extent[d]) stride[d] = s;
    if (!l) return;
    for (int p = 0; p < l->nplaces; p++) n += !l->place[p].unit;
    for (int p = l->nplaces; p--;)
        if (!l->place[p].unit) {
            stride[--n] = s;
            s *= place_extent_of(l, l->place[p].expr, extent);
        }
}

static int64_t offset_with(const struct layout *l, const int64_t *stride, const int64_t *index) {
    int64_t sum = 0;
    int k = 0;
    for (int p = 0; p < l->nplaces; p++)
        if (!l->place[p].unit) sum += lexpr_eval(l->place[p].expr, index) * stride[k++];
    return sum;
}

int64_t layout_offset(const struct layout *l, int ndims, const int64_t *buffer_extent,
                      const int64_t *stride, const int64_t *index) {
    int64_t own[MAX_PLACES], sum = 0;
    if (!stride) {
        layout_strides(l, ndims, buffer_extent, own);
        stride = own;
    }
    if (l) return offset_with(l, stride, index);
    for (int d = 0; d < ndims; d++) sum += index[d] * stride[d];
    return sum;
}

/* Each place at its bounds. */
static struct interval span_of_places(const struct layout *l, const int64_t *extent,
                                      const int64_t *stride) {
    struct interval sum = {0, 0};
    for (int p = 0, k = 0; p < l->nplaces; p++)
        if (!l->place[p].unit) {
            struct interval i = scaled(bounds(l->place[p].expr, extent), stride[k++]);
            sum.lo += i.lo;
            sum.hi += i.hi;
        }
    return sum;
}

/* Places that share an index may not reach their bounds together: then all points are tried, unless
 * the first and the last one show that they do. */
static struct interval span_bounds(const struct layout *l, const int64_t *extent,
                                   const int64_t *stride) {
    struct interval sum = span_of_places(l, extent, stride);
    int uses[16] = {0}, most = 0;
    int64_t index[16] = {0}, last[16];
    for (int p = 0; p < l->nplaces; p++)
        if (!l->place[p].unit) count_uses(l->place[p].expr, uses);
    for (int i = 0; i < l->nindices; i++) {
        if (uses[i] > most) most = uses[i];
        last[i] = extent[i] - 1;
    }
    if (most <= 1 || !few_points(l->nindices, extent)) return sum;
    if (offset_with(l, stride, index) == sum.lo && offset_with(l, stride, last) == sum.hi)
        return sum;
    sum = (struct interval){INT64_MAX, INT64_MIN};
    do {
        int64_t v = offset_with(l, stride, index);
        if (v < sum.lo) sum.lo = v;
        if (v > sum.hi) sum.hi = v;
    } while (advance(l->nindices, extent, index));
    return sum;
}

int64_t layout_span(const struct layout *l, int ndims, const int64_t *buffer_extent,
                    const int64_t *stride) {
    int64_t own[MAX_PLACES];
    struct interval sum = {0, 0};
    for (int d = 0; d < ndims; d++)
        if (buffer_extent[d] <= 0) return 0;
    if (!stride) {
        layout_strides(l, ndims, buffer_extent, own);
        stride = own;
    }
    if (l) sum = span_bounds(l, buffer_extent, stride);
    for (int d = 0; !l && d < ndims; d++) {
        struct interval i = scaled((struct interval){0, buffer_extent[d] - 1}, stride[d]);
        sum.lo += i.lo;
        sum.hi += i.hi;
    }
    return sum.hi - sum.lo + 1;
}
