/* Certificates against brute force: mappings are perturbed (an axis moved, operands exchanged, a
 * stride of the program changed), and whatever execution over a prime field refutes must be
 * refused. */
#include "mapper_help.h"

enum { PROGRAMS = 800 };

static struct mapping copy_mapping(struct arena *a, const struct mapping *m, int noperands) {
    struct mapping c = *m;
    c.group = arena_copy(a, m->group, (size_t)m->ngroups * sizeof *m->group);
    c.operand = arena_copy(a, m->operand, (size_t)noperands * sizeof *m->operand);
    return c;
}

/* Takes an axis out of its group, puts one in, or into another. */
static void move_axis(const struct program *p, struct mapping *m, uint64_t *seed) {
    int axis = help_below(seed, p->naxes), to = help_below(seed, m->ngroups + 1);
    for (int x = 0; x < m->ngroups; x++) {
        int n = 0;
        for (int k = 0; k < m->group[x].n; k++)
            if (m->group[x].axis[k] != axis) m->group[x].axis[n++] = m->group[x].axis[k];
        m->group[x].n = n;
    }
    if (to < m->ngroups) m->group[to].axis[m->group[to].n++] = axis;
}

static void change_stride(struct program *p, uint64_t *seed) {
    struct stmt *s = &p->stmt[p->nstmts - 1];
    int r = help_below(seed, 3), a = help_below(seed, p->naxes);
    struct access *x = r == 2 ? &s->dst : &s->read[r];
    int d = help_below(seed, p->buffer[x->buffer].ndims);
    struct buffer *b = &p->buffer[x->buffer];
    int64_t *coef = &x->coef[d * (p->naxes + 1) + a], old = *coef;
    *coef = old ? (help_below(seed, 2) ? 0 : old + 1) : 1;
    b->extent[d] += (*coef - old) * (p->axis[a].extent - 1);
    b->elements = 1;
    for (int k = 0; k < b->ndims; k++) b->elements *= b->extent[k];
    s->axes = stmt_axes(p, s);
}

static bool assignment_of(const struct program *p, const struct mapping *m,
                          struct help_assignment *f) {
    *f = (struct help_assignment){.read = {m->operand[0].read, m->operand[1].read}};
    for (int a = 0; a < p->naxes; a++) f->axis[a] = -1;
    for (int x = 0; x < m->ngroups; x++)
        for (int k = 0; k < m->group[x].n; k++) {
            int a = m->group[x].axis[k];
            if (!(help_product(p)->axes >> a & 1)) return false;
            f->axis[a] = x;
        }
    return true;
}

struct totals {
    int tried, refuted, accepted;
};

static void perturb(const struct program *p, const struct machine *m, const struct mapping *map,
                    const struct program *needle, uint64_t *seed, struct totals *t) {
    struct arena arena;
    struct help_assignment f;
    arena_init(&arena);
    struct program *q = program_copy(p);
    struct mapping c = copy_mapping(&arena, map, 3);
    int what = help_below(seed, 3);
    if (what == 0) move_axis(q, &c, seed);
    if (what == 1) change_stride(q, seed);
    if (what == 2) {
        int r = c.operand[0].read;
        c.operand[0].read = c.operand[1].read;
        c.operand[1].read = r;
    }
    bool sensible = assignment_of(q, &c, &f);
    bool good = sensible && help_valid(q, needle, &f, *seed | 1);
    bool accepted = mapping_certify(q, m, &c, NULL);
    t->tried++;
    t->refuted += !good;
    t->accepted += accepted;
    if (accepted) assert_true(good);
    program_free(q);
    arena_free(&arena);
}

static void test_perturbed(void **state) {
    struct machine *m = help_machine("tests/data/machines/mapper/tiny.xml");
    struct totals t = {0};
    uint64_t seed = 11;
    (void)state;
    for (int i = 0; i < PROGRAMS; i++) {
        struct program *p = help_tiny(&seed);
        struct findings *f =
            mapper_find(p, m, &(struct map_options){.all = true, .certify_all = true});
        for (int k = 0; k < f->nmappings && k < 6; k++) {
            const struct mapping *map = &f->mapping[help_below(&seed, f->nmappings)];
            int64_t size[3] = {2, 2, 2};
            struct diags d;
            if (map->instr == machine_instr(m, "window"))
                continue; /* the order inside groups matters there */
            assert_true(map->certified);
            diags_init(&d);
            struct program *needle = instr_bind(m, &m->instr[map->instr], size, &d);
            perturb(p, m, map, needle, &seed, &t);
            program_free(needle);
            diags_free(&d);
        }
        findings_free(f);
        program_free(p);
    }
    print_message("%d perturbed, %d refuted by execution, %d certified\n", t.tried, t.refuted,
                  t.accepted);
    assert_true(t.refuted > 500 && t.accepted > 200);
    machine_free(m);
}

/* What is wrong is said. */
static void test_reasons(void **state) {
    struct machine *m = help_machine("tests/data/machines/mapper/matmul16.xml");
    struct program *p = help_operator("gmm");
    (void)state;
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true});
    struct mapping c = copy_mapping(&f->arena, &f->mapping[0], 3);
    struct text why = {0};
    assert_true(mapping_certify(p, m, &c, &why));
    c.group[0].axis[c.group[0].n++] = c.group[1].axis[0];
    assert_false(mapping_certify(p, m, &c, &why));
    assert_string_equal(why.at, "two groups share axis 'j'");
    c = copy_mapping(&f->arena, &f->mapping[0], 3);
    c.group[2].axis[c.group[2].n++] = c.group[1].axis[0];
    c.group[1].n = 0;
    text_free(&why);
    assert_false(mapping_certify(p, m, &c, &why));
    assert_string_equal(why.at,
                        "one element of the instruction would be several elements of operand 'C'");
    c = copy_mapping(&f->arena, &f->mapping[0], 3);
    c.init = 1;
    text_free(&why);
    assert_false(mapping_certify(p, m, &c, &why));
    text_free(&why);
    findings_free(f);
    program_free(p);
    machine_free(m);
}

#define IN_PLACE(value)                                                                            \
    "kernel k() { in X: i64[8]  in U: i64[8]  in B: i64[8]  out D: i64[8]  temp T: i64[8]\n"       \
    "  axes j: 8;  T[j] = X[j] + 1;  D[j] = " value " }"

/* What an instruction overwrites in place it may not read through another operand. */
static void test_overwritten(void **state) {
    struct machine *m = help_machine("tests/data/machines/mapper/tiny.xml");
    struct program *p = help_program("p", IN_PLACE("T[j] + U[j] * B[j]")),
                   *q = help_program("q", IN_PLACE("T[j] + T[j] * B[j]"));
    int found = 0;
    (void)state;
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true}),
                    *g = mapper_find(q, m, &(struct map_options){.all = true});
    for (int k = 0; k < f->nmappings; k++) {
        if (f->mapping[k].stmt != 1) continue;
        assert_true(mapping_certify(p, m, &f->mapping[k], NULL));
        assert_false(mapping_certify(q, m, &f->mapping[k], NULL));
        found++;
    }
    assert_true(found > 0);
    for (int k = 0; k < g->nmappings; k++) assert_int_not_equal(g->mapping[k].stmt, 1);
    findings_free(f);
    findings_free(g);
    program_free(p);
    program_free(q);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_perturbed),
                                       cmocka_unit_test(test_reasons),
                                       cmocka_unit_test(test_overwritten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
