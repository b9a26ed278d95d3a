/* The mapper against brute force: on random tiny programs every assignment of axes to needle axes,
 * with both orders of the operands, is executed over a prime field. The mapper must find exactly
 * the valid ones within its formulation (docs/mapping.md: V1 with its converse, collinear axes
 * together, groups as full as can be), and nothing that is invalid. Needles of fixed extents, in
 * steps and masked ones are executed issue by issue, with garbage where the program has nothing.
 * ISAMAP_BRUTE programs. */
#include "mapper_help.h"

enum { NEEDLES = 10, MAX_KEYS = 4096 };

struct needle_case {
    int instr;
    struct program *program; /* the needle */
    bool broadcast[2];       /* operand in registers: may be repeated along an elementwise axis */
    bool coupled;            /* two axes share a dimension: compared where groups have one axis */
    bool plus;               /* it adds A and B */
    struct {
        int64_t lo, hi, step; /* values of one issue; hi 0: as many as there are */
    } takes[3];
};

static bool adds(const struct program *p) {
    const struct stmt *s = help_product(p);
    return s->op[s->nops - 1].code == OP_ADD;
}

static uint32_t key_of(const struct program *p, const struct help_assignment *f) {
    uint32_t key = (uint32_t)f->read[0];
    for (int a = 0; a < p->naxes; a++) key = key * 5 + (uint32_t)(f->axis[a] + 1);
    return key;
}

static bool varies(const struct needle_case *c, const struct access *a, int x) {
    return access_varies(c->program, a, x);
}

static bool elementwise(const struct needle_case *c, int x) {
    const struct stmt *s = &c->program->stmt[0];
    return varies(c, &s->dst, x) && varies(c, &s->read[0], x) && varies(c, &s->read[1], x);
}

/* May haystack axis a be on needle axis x? Written down apart from the mapper's own rule. */
static bool in_formulation(const struct needle_case *c, const struct program *p, const int *read,
                           int a, int x) {
    const struct stmt *s = help_product(p), *ns = &c->program->stmt[0];
    if (p->axis[a].extent == 1 || !(s->axes >> a & 1) ||
        varies(c, &ns->dst, x) != access_varies(p, &s->dst, a))
        return false;
    for (int o = 0; o < 2; o++) {
        bool needle = varies(c, &ns->read[o], x), hay = access_varies(p, &s->read[read[o]], a);
        if (hay && !needle) return false;
        if (needle && !hay && !(elementwise(c, x) && c->broadcast[o])) return false;
    }
    return true;
}

static bool rows_collinear(const struct program *p, const struct access *x, int a, int b) {
    for (int d = 0; d < p->buffer[x->buffer].ndims; d++)
        if (access_coef(p, x, d, a) != access_coef(p, x, d, b) * p->axis[b].extent) return false;
    return true;
}

/* All that the product knows of axes a and b is a * extent(b) + b: one axis, written as two. */
static bool collinear(const struct program *p, int a, int b) {
    const struct stmt *s = help_product(p);
    bool live = s->axes >> a & s->axes >> b & 1 && p->axis[a].extent > 1 && p->axis[b].extent > 1;
    return live && rows_collinear(p, &s->dst, a, b) && rows_collinear(p, &s->read[0], a, b) &&
           rows_collinear(p, &s->read[1], a, b);
}

/* All groups within the formulation, none empty while an axis that could be there is outer. */
static bool admitted(const struct needle_case *c, const struct program *p,
                     const struct help_assignment *f) {
    uint64_t filled = 0, axes = help_product(p)->axes;
    for (int a = 0; a < p->naxes; a++) {
        if (f->axis[a] < 0) continue;
        if (!in_formulation(c, p, f->read, a, f->axis[a])) return false;
        if (c->coupled && filled >> f->axis[a] & 1) return false;
        filled |= UINT64_C(1) << f->axis[a];
    }
    for (int a = 0; a < p->naxes; a++)
        for (int b = 0; b < p->naxes; b++)
            if (a != b && f->axis[a] != f->axis[b] && collinear(p, a, b)) return false;
    for (int x = 0; x < c->program->naxes; x++)
        for (int a = 0; a < p->naxes && !(filled >> x & 1); a++)
            if (f->axis[a] < 0 && axes >> a & 1 && in_formulation(c, p, f->read, a, x))
                return false;
    return filled != 0;
}

/* ---- issues one after another ---- */

/* One issue: the places of needle axis x from start[x] on, extent[x] of them, padding included. */
struct issue {
    int64_t start[MAX_AXES], extent[MAX_AXES];
};

static int64_t executed(const struct needle_case *c, int x, int64_t left) {
    int64_t n = c->takes[x].lo;
    if (c->takes[x].hi == 0) return left;
    while (n < left && n < c->takes[x].hi) n += c->takes[x].step;
    return n;
}

/* Tiles begin with garbage; along a reduction the operands of the mask have zeros behind the
 * program's end. */
static void load_garbage(const struct needle_case *c, const struct issue *v, const int64_t *all,
                         int zeros, uint64_t (*tile)[HELP_CELLS], uint64_t *seed) {
    const struct stmt *ns = &c->program->stmt[0];
    const struct access *needle[3] = {&ns->read[0], &ns->read[1], &ns->dst};
    int64_t at[MAX_AXES] = {0};
    int x;
    do {
        for (int k = 0; k < 3; k++) {
            bool behind = false;
            for (x = 0; x < c->program->naxes; x++)
                behind |= varies(c, needle[k], x) && !varies(c, &ns->dst, x) &&
                          v->start[x] + at[x] >= all[x];
            tile[k][help_needle_index(c->program, needle[k], at, v->extent)] =
                behind && zeros >> k & 1 ? 0 : help_random(seed) % HELP_PRIME;
        }
        for (x = c->program->naxes; x-- > 0;) {
            if (++at[x] < v->extent[x]) break;
            at[x] = 0;
        }
    } while (x >= 0);
}

static void run_issue(const struct needle_case *c, const struct issue *v,
                      uint64_t (*tile)[HELP_CELLS]) {
    const struct stmt *ns = &c->program->stmt[0];
    int64_t at[MAX_AXES] = {0};
    int x;
    do {
        uint64_t a = tile[0][help_needle_index(c->program, &ns->read[0], at, v->extent)],
                 b = tile[1][help_needle_index(c->program, &ns->read[1], at, v->extent)],
                 *r = &tile[2][help_needle_index(c->program, &ns->dst, at, v->extent)];
        *r = help_add(*r, c->plus ? help_add(a, b) : help_mul(a, b));
        for (x = c->program->naxes; x-- > 0;) {
            if (++at[x] < v->extent[x]) break;
            at[x] = 0;
        }
    } while (x >= 0);
}

/* Program's points of the issue at an outer point: into tiles, or the results out of them. */
static void move_points(const struct needle_case *c, const struct program *p,
                        const struct help_assignment *f, const struct issue *v, uint64_t inner,
                        int64_t *at, uint64_t (*tile)[HELP_CELLS], struct help_data *d, bool out) {
    const struct stmt *s = help_product(p), *ns = &c->program->stmt[0];
    const struct access *hay[3] = {&s->read[f->read[0]], &s->read[f->read[1]], &s->dst};
    const struct access *needle[3] = {&ns->read[0], &ns->read[1], &ns->dst};
    int data[3] = {f->read[0], f->read[1], 2};
    do {
        int64_t place[MAX_AXES];
        bool here = true;
        help_place(p, f, c->program->naxes, at, place);
        for (int x = 0; x < c->program->naxes; x++) {
            place[x] -= v->start[x];
            here &= place[x] >= 0 && place[x] < v->extent[x];
        }
        for (int k = out ? 2 : 0; k < 3 && here; k++) {
            uint64_t *t = &tile[k][help_needle_index(c->program, needle[k], place, v->extent)];
            if (out)
                d->cell[2][help_index(p, &s->dst, at)] = *t;
            else
                *t = help_read(p, hay[k], d->cell[data[k]], at);
        }
    } while (help_step(p, inner, at));
}

static void execute_issues(const struct needle_case *c, const struct program *p,
                           const struct help_assignment *f, int zeros, struct help_data *d) {
    static uint64_t tile[3][HELP_CELLS];
    uint64_t inner = 0, outer = 0, seed = 5;
    int64_t all[MAX_AXES], at[MAX_AXES] = {0};
    for (int x = 0; x < c->program->naxes; x++) all[x] = 1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(help_product(p)->axes >> a & 1)) continue;
        *(f->axis[a] >= 0 ? &inner : &outer) |= UINT64_C(1) << a;
        if (f->axis[a] >= 0) all[f->axis[a]] *= p->axis[a].extent;
    }
    do {
        struct issue v = {.start = {0}};
        int x;
        do {
            for (x = 0; x < c->program->naxes; x++)
                v.extent[x] = executed(c, x, all[x] - v.start[x]);
            load_garbage(c, &v, all, zeros, tile, &seed);
            move_points(c, p, f, &v, inner, at, tile, d, false);
            run_issue(c, &v, tile);
            move_points(c, p, f, &v, inner, at, tile, d, true);
            for (x = c->program->naxes; x-- > 0;) {
                v.start[x] += v.extent[x];
                if (v.start[x] < all[x]) break;
                v.start[x] = 0;
            }
        } while (x >= 0);
    } while (help_step(p, outer, at));
}

static void reference(const struct program *p, struct help_data *d) {
    const struct stmt *s = help_product(p);
    int64_t at[MAX_AXES] = {0};
    do {
        uint64_t a = help_read(p, &s->read[0], d->cell[0], at),
                 b = help_read(p, &s->read[1], d->cell[1], at);
        uint64_t *r = &d->cell[2][help_index(p, &s->dst, at)];
        *r = help_add(*r, adds(p) ? help_add(a, b) : help_mul(a, b));
    } while (help_step(p, s->axes, at));
}

/* Whatever lies in the padding, and whichever factor has the zeros; a sum needs them in both. */
static bool valid_issues(const struct needle_case *c, const struct program *p,
                         const struct help_assignment *f, uint64_t seed) {
    static struct help_data want, got;
    const struct stmt *s = help_product(p);
    int buffer[3] = {s->read[0].buffer, s->read[1].buffer, s->dst.buffer};
    bool same = true;
    for (int zeros = c->plus ? 3 : 1; zeros < (c->plus ? 4 : 3) && same; zeros++) {
        help_fill(p, &want, seed);
        for (int k = 0; k < 3; k++)
            memcpy(got.cell[k], want.cell[k],
                   (size_t)p->buffer[buffer[k]].elements * sizeof(uint64_t));
        reference(p, &want);
        execute_issues(c, p, f, zeros, &got);
        int64_t n = p->buffer[help_product(p)->dst.buffer].elements;
        same = memcmp(want.cell[2], got.cell[2], (size_t)n * sizeof(uint64_t)) == 0;
    }
    return same;
}

struct totals {
    long tried, admitted, valid, found, fills;
    long uneven,
        refused; /* issues with padding or a mask: valid; not valid though whole ones are */
};

/* Some issue has padding, or is shorter than others. */
static bool uneven(const struct needle_case *c, const struct program *p,
                   const struct help_assignment *f) {
    int64_t all[MAX_AXES];
    for (int x = 0; x < c->program->naxes; x++) all[x] = 1;
    for (int a = 0; a < p->naxes; a++)
        if (f->axis[a] >= 0) all[f->axis[a]] *= p->axis[a].extent;
    for (int x = 0; x < c->program->naxes; x++)
        if (c->takes[x].hi != 0 && all[x] % c->takes[x].hi != 0) return true;
    return false;
}

/* The places of a group are told apart in one issue of any length (V3), and in those that there
 * are. */
static bool valid(const struct needle_case *c, const struct program *p,
                  const struct help_assignment *f, uint64_t seed, struct totals *t) {
    struct needle_case whole = *c;
    bool tiled = false;
    for (int x = 0; x < c->program->naxes; x++) {
        tiled |= c->takes[x].hi != 0;
        whole.takes[x].hi = 0;
    }
    if (!tiled) return help_valid(p, c->program, f, seed);
    if (!valid_issues(&whole, p, f, seed)) return false;
    bool good = valid_issues(c, p, f, seed);
    t->uneven += good && uneven(c, p, f);
    t->refused += !good;
    return good;
}

static int compare_keys(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int found_keys(const struct needle_case *c, const struct program *p,
                      const struct findings *f, uint32_t *key, struct totals *t) {
    int n = 0;
    for (int i = 0; i < f->nmappings; i++) {
        const struct mapping *m = &f->mapping[i];
        if (m->instr != c->instr) continue;
        struct help_assignment x = {.read = {m->operand[0].read, m->operand[1].read}};
        bool fused = false;
        assert_int_equal(m->stmt, p->nstmts - 1);
        for (int a = 0; a < p->naxes; a++) x.axis[a] = -1;
        for (int g = 0; g < m->ngroups; g++) {
            for (int k = 0; k < m->group[g].n; k++) x.axis[m->group[g].axis[k]] = g;
            fused |= m->group[g].n > 1;
        }
        if (c->coupled && fused) continue; /* places depend on the order inside groups */
        if (m->init >= 0) {
            x.init = true;
            assert_true(help_valid(p, c->program, &x, 77));
            t->fills++;
        }
        assert_true(n < MAX_KEYS);
        key[n++] = key_of(p, &x);
    }
    qsort(key, (size_t)n, sizeof *key, compare_keys);
    for (int i = 1; i < n; i++) assert_int_not_equal(key[i], key[i - 1]);
    return n;
}

static void compare(const struct needle_case *c, const struct program *p, const struct findings *f,
                    struct totals *t, uint64_t seed) {
    static uint32_t want[MAX_KEYS], got[MAX_KEYS];
    int n = 0, choices = c->program->naxes + 1, total = 1;
    uint64_t axes = help_product(p)->axes;
    for (int a = 0; a < p->naxes; a++) total *= axes >> a & 1 ? choices : 1;
    for (int order = 0; order < 2 && adds(p) == c->plus; order++)
        for (int code = 0; code < total; code++) {
            struct help_assignment x = {.read = {order, 1 - order}};
            for (int a = 0, rest = code; a < p->naxes; a++) {
                x.axis[a] = axes >> a & 1 ? rest % choices - 1 : -1;
                if (axes >> a & 1) rest /= choices;
            }
            t->tried++;
            if (!admitted(c, p, &x)) continue;
            t->admitted++;
            if (valid(c, p, &x, seed, t)) want[n++] = key_of(p, &x);
        }
    qsort(want, (size_t)n, sizeof *want, compare_keys);
    int found = found_keys(c, p, f, got, t);
    t->valid += n;
    t->found += found;
    bool same = found == n && memcmp(want, got, (size_t)n * sizeof *want) == 0;
    if (!same) {
        struct text text = {0};
        program_print(p, &text);
        print_error("needle %d: %d valid, %d found\n%s\n", c->instr, n, found, text.at);
        text_free(&text);
    }
    assert_true(same);
}

static void open_needles(const struct machine *m, struct needle_case *needle) {
    static const char *const id[NEEDLES] = {"matmul", "vector", "scaled", "dot",  "window",
                                            "fixed",  "steps",  "masked", "plus", "apart"};
    for (int k = 0; k < NEEDLES; k++) {
        int64_t size[3] = {k == 6 ? 2 : 3, k == 6 ? 4 : 3, 3};
        struct diags d;
        diags_init(&d);
        needle[k].instr = machine_instr(m, id[k]);
        needle[k].program = instr_bind(m, &m->instr[needle[k].instr], size, &d);
        needle[k].coupled = k == 4;
        needle[k].plus = k >= 8;
        for (int x = 0; x < 3 && (k == 5 || k >= 8); x++)
            needle[k].takes[x].lo = needle[k].takes[x].hi = needle[k].takes[x].step = 2;
        assert_non_null(needle[k].program);
        for (int o = 0; o < 2; o++)
            needle[k].broadcast[o] = m->instr[needle[k].instr].operand[o].memory[0] != m->home;
        diags_free(&d);
    }
}

/* The sum of the operands in place of their product. */
static void add_up(struct program *p) {
    struct stmt *s = &p->stmt[p->nstmts - 1];
    assert_int_equal(s->op[s->nops - 1].code, OP_MUL);
    s->op[s->nops - 1].code = OP_ADD;
}

static void test_exactly_the_valid(void **state) {
    struct machine *m = help_machine("tests/data/machines/mapper/tiny.xml");
    struct needle_case needle[NEEDLES] = {0};
    struct totals totals = {0};
    const char *given = getenv("ISAMAP_BRUTE");
    long programs = given ? atol(given) : 10000;
    uint64_t seed = 20;
    (void)state;
    open_needles(m, needle);
    needle[6].takes[0].lo = needle[6].takes[0].step = needle[7].takes[0].lo =
        needle[7].takes[0].step = 1;
    needle[6].takes[0].hi = needle[6].takes[1].lo = needle[6].takes[1].step = 2;
    needle[6].takes[1].hi = needle[7].takes[0].hi = 4;
    for (long i = 0; i < programs; i++) {
        struct program *p = help_tiny(&seed);
        if (help_below(&seed, 5) == 0) add_up(p);
        struct findings *f = mapper_find(p, m, &(struct map_options){.all = true});
        assert_false(f->bounded);
        for (int k = 0; k < NEEDLES; k++) compare(&needle[k], p, f, &totals, seed | 1);
        findings_free(f);
        program_free(p);
    }
    print_message(
        "%ld programs, %ld assignments: %ld admitted by signatures, %ld valid, %ld found, "
        "%ld fills with them; %ld with padding or masks, %ld refused for it\n",
        programs, totals.tried, totals.admitted, totals.valid, totals.found, totals.fills,
        totals.uneven, totals.refused);
    assert_true(totals.uneven > programs / 4 && totals.refused > 0);
    assert_true(totals.found > programs && totals.fills > programs / 100);
    assert_true(totals.admitted > totals.found); /* V3 had something to refuse */
    for (int k = 0; k < NEEDLES; k++) program_free(needle[k].program);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exactly_the_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
