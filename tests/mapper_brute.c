/* The mapper against brute force: on random tiny programs every assignment of axes to needle axes,
 * with both orders of the operands, is executed over a prime field. The mapper must find exactly
 * the valid ones within its formulation (docs/mapping.md: V1 with its converse, collinear axes
 * together, groups as full as can be), and nothing that is invalid. ISAMAP_BRUTE programs. */
#include "mapper_help.h"

enum { NEEDLES = 5, MAX_KEYS = 4096 };

struct needle_case {
    int instr;
    struct program *program; /* the needle */
    bool broadcast[2];       /* operand in registers: may be repeated along an elementwise axis */
    bool coupled;            /* two axes share a dimension: compared where groups have one axis */
};

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

struct totals {
    long tried, admitted, valid, found, fills;
};

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
    for (int order = 0; order < 2; order++)
        for (int code = 0; code < total; code++) {
            struct help_assignment x = {.read = {order, 1 - order}};
            for (int a = 0, rest = code; a < p->naxes; a++) {
                x.axis[a] = axes >> a & 1 ? rest % choices - 1 : -1;
                if (axes >> a & 1) rest /= choices;
            }
            t->tried++;
            if (!admitted(c, p, &x)) continue;
            t->admitted++;
            if (help_valid(p, c->program, &x, seed)) want[n++] = key_of(p, &x);
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
    static const char *const id[NEEDLES] = {"matmul", "vector", "scaled", "dot", "window"};
    for (int k = 0; k < NEEDLES; k++) {
        int64_t size[3] = {3, 3, 3};
        struct diags d;
        diags_init(&d);
        needle[k].instr = machine_instr(m, id[k]);
        needle[k].program = instr_bind(m, &m->instr[needle[k].instr], size, &d);
        needle[k].coupled = k == NEEDLES - 1;
        assert_non_null(needle[k].program);
        for (int o = 0; o < 2; o++)
            needle[k].broadcast[o] = m->instr[needle[k].instr].operand[o].memory[0] != m->home;
        diags_free(&d);
    }
}

static void test_exactly_the_valid(void **state) {
    struct machine *m = help_machine("tests/data/machines/mapper/tiny.xml");
    struct needle_case needle[NEEDLES];
    struct totals totals = {0};
    const char *given = getenv("ISAMAP_BRUTE");
    long programs = given ? atol(given) : 10000;
    uint64_t seed = 20;
    (void)state;
    open_needles(m, needle);
    for (long i = 0; i < programs; i++) {
        struct program *p = help_tiny(&seed);
        struct findings *f = mapper_find(p, m, &(struct map_options){.all = true});
        assert_false(f->bounded);
        for (int k = 0; k < NEEDLES; k++) compare(&needle[k], p, f, &totals, seed | 1);
        findings_free(f);
        program_free(p);
    }
    print_message(
        "%ld programs, %ld assignments: %ld admitted by signatures, %ld valid, %ld found, "
        "%ld fills with them\n",
        programs, totals.tried, totals.admitted, totals.valid, totals.found, totals.fills);
    assert_true(totals.found > programs && totals.fills > programs / 100);
    assert_true(totals.admitted > totals.found); /* V3 had something to refuse */
    for (int k = 0; k < NEEDLES; k++) program_free(needle[k].program);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exactly_the_valid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
