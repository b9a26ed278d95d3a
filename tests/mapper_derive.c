/* Where rewrites lead: sequences that failures ask for, on the operators. */
#include "mapper/rewrite_int.h"
#include "mapper_help.h"

#define MATMUL "tests/data/machines/mapper/matmul16.xml"

/* Is there a derivation by these rewrites, with all of them mapped and certified? */
static const struct derivation *find(const struct derivations *d, const char *sequence) {
    for (int i = 0; i < d->n; i++) {
        struct text t = {0};
        for (int k = 0; k < d->at[i].nsteps; k++)
            text_printf(&t, "%s%s", k ? ", " : "", d->at[i].step[k]->name);
        bool same = !strcmp(t.at, sequence);
        text_free(&t);
        if (same) return &d->at[i];
    }
    return NULL;
}

static int mapped(const struct derivation *d) {
    int n = 0;
    for (int s = d->from; s < d->to; s++)
        for (int k = 0; k < d->nmappings; k++)
            if (d->mapping[k].stmt == s) {
                n++;
                break;
            }
    for (int k = 0; k < d->nmappings; k++)
        assert_int_equal(d->mapping[k].certified, d->verdict.evidence == EVIDENCE_PROVED);
    return n;
}

static void test_operators(void **state) {
    static const struct {
        const char *name, *sequence;
        int statements; /* executed by the instruction */
        enum evidence evidence;
    } table[] = {{"sep", "factor, narrow", 2, EVIDENCE_SAMPLED},
                 {"men", "ones", 1, EVIDENCE_PROVED},
                 {"var", "ones", 1, EVIDENCE_PROVED},
                 {"scn", "mask", 1, EVIDENCE_PROVED},
                 {"dep", "block-diagonal", 1, EVIDENCE_PROVED},
                 {"t2d", "phases", 4, EVIDENCE_PROVED},
                 {"c2d", "winograd-2", 1, EVIDENCE_SAMPLED},
                 {"c2d", "winograd-4", 1, EVIDENCE_SAMPLED}};
    struct machine *m = help_machine(MATMUL);
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct program *p = help_operator(table[i].name);
        struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
        const struct derivation *x = find(d, table[i].sequence);
        if (!x) print_error("%s: no '%s'\n", table[i].name, table[i].sequence);
        assert_non_null(x);
        assert_int_equal(mapped(x), table[i].statements);
        assert_int_equal(x->verdict.evidence, table[i].evidence);
        assert_int_equal(d->refuted, 0);
        derivations_free(d);
        program_free(p);
    }
    machine_free(m);
}

/* Factoring answers what the mapper said of the product that is in the way (ISA Mapper §2.3). */
static void test_asked(void **state) {
    struct machine *m = help_machine(MATMUL);
    struct program *p = help_operator("sep");
    struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
    const struct derivation *x = find(d, "factor, narrow");
    (void)state;
    assert_non_null(x);
    assert_non_null(strstr(x->asked[0], "where statement 1 ('O') has '*'"));
    assert_non_null(strstr(x->asked[1], "(f16) where statement 3 ('O') has 'O.sum' (f32)"));
    assert_true(d->seconds < 5); /* well below one second; tests run on busy machines */
    derivations_free(d);
    program_free(p);
    machine_free(m);
}

/* Of two issues the padded one is asked for apart; of fourteen it is not worth it. */
static void test_residual(void **state) {
#define COLUMNS(n)                                                                                 \
    "kernel gmm() { in A: f16[64,64]  in B: f16[64," n "]  out C: f32[64," n "]\n"                 \
    "  axes i: 64, j: " n ", k: 64\n  C[i,j] = 0; C[i,j] += f32(A[i,k]) * f32(B[k,j])\n}\n"
    static const char *const text[] = {COLUMNS("17"), COLUMNS("220")};
    struct machine *m = help_machine(MATMUL);
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct program *p = help_program("gmm", text[i]);
        struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
        const struct derivation *x = find(d, "split-residual");
        assert_true((x != NULL) == (i == 0));
        if (x) {
            assert_non_null(strstr(x->asked[0], "along axis 'j': 17 values are no multiple of 16"));
            assert_int_equal(mapped(x), 2);
        }
        derivations_free(d);
        program_free(p);
    }
    machine_free(m);
}

/* Nothing is made of what maps well. */
static void test_nothing_to_do(void **state) {
    static const char *const name[] = {"gmm", "gmv", "gfc", "dil"};
    struct machine *m = help_machine(MATMUL);
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct program *p = help_operator(name[i]);
        struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
        assert_int_equal(d->n, 0);
        derivations_free(d);
        program_free(p);
    }
    machine_free(m);
}

/* Both matrix products of attention map as they are, and the sum between them with ones. */
static void test_attention(void **state) {
    struct machine *m = help_machine(MATMUL);
    struct program *p = help_operator("att");
    struct findings *f = mapper_find(p, m, &(struct map_options){.certify_all = true});
    int at[2] = {0};
    (void)state;
    for (int i = 0; i < f->nmappings; i++) {
        const struct stmt *s = &p->stmt[f->mapping[i].stmt];
        assert_true(f->mapping[i].certified && stmt_is_mac(p, s));
        at[strcmp(p->buffer[s->dst.buffer].name, "S") ? 1 : 0]++;
    }
    assert_true(at[0] > 0 && at[1] > 0);
    struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
    assert_int_equal(d->n, 1);
    assert_non_null(find(d, "ones"));
    derivations_free(d);
    findings_free(f);
    program_free(p);
    machine_free(m);
}

static void test_types(void **state) {
    static const struct {
        const char *a, *b, *sum, *sequence;
    } table[] = {{"i8", "i8", "i64", "narrow-sum"}, {"i16", "u8", "i32", "widen"}};
    struct machine *m = help_machine("tests/data/machines/mapper/types.xml");
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct text t = {0};
        text_printf(&t,
                    "kernel p() { in A: %s[64,48]  in B: %s[48,32]  inout C: %s[64,32]\n"
                    "  axes i: 64, j: 32, k: 48\n  C[i,j] += %s(A[i,k]) * %s(B[k,j])\n}\n",
                    table[i].a, table[i].b, table[i].sum, table[i].sum, table[i].sum);
        struct program *p = help_program("p", t.at);
        struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
        assert_non_null(find(d, table[i].sequence));
        derivations_free(d);
        program_free(p);
        text_free(&t);
    }
    machine_free(m);
}

/* Each product of a chain of layers is rewritten in the part of the chain that is near it. What
 * comes out is the whole chain, proved against it, with the layer's statements where they were. */
static void test_chain(void **state) {
    enum { LAYERS = 12, EACH = 3 };
    struct machine *m = help_machine("tests/data/machines/mapper/types.xml");
    struct text t = {0};
    (void)state;
    text_printf(&t, "kernel p() { in x0: u8[8,48]  axes i: 8, j: 48, k: 48\n");
    for (int l = 0; l < LAYERS; l++) {
        text_printf(&t, "  const w%d: i16[48,48]  temp s%d: i32[8,48]  %s x%d: u8[8,48]\n", l, l,
                    l + 1 < LAYERS ? "temp" : "out", l + 1);
        text_printf(&t, "  s%d[i,j] = 0\n  s%d[i,j] += i32(x%d[i,k]) * i32(w%d[k,j])\n", l, l, l,
                    l);
        text_printf(&t, "  x%d[i,j] = u8(clip(shr(s%d[i,j], %d), 0, 255))\n", l + 1, l, 8 + l);
    }
    text_printf(&t, "}\n");
    struct program *p = help_program("p", t.at);
    struct derivations *d = mapper_derive(p, m, &(struct map_options){0});
    int found[LAYERS] = {0};
    for (int i = 0; i < d->n; i++) {
        const struct derivation *x = &d->at[i];
        const struct program *q = x->program;
        int more = x->to - x->from - (x->stmt + 1 - x->from), layer = x->stmt / EACH;
        assert_int_equal(x->stmt % EACH, 1);
        assert_int_equal(q->nstmts, p->nstmts + more);
        for (int s = 0; s < p->nstmts; s++)
            if (s < x->from || s > x->stmt)
                assert_string_equal(q->buffer[q->stmt[s < x->from ? s : s + more].dst.buffer].name,
                                    p->buffer[p->stmt[s].dst.buffer].name);
        assert_int_equal(x->verdict.evidence, EVIDENCE_PROVED);
        assert_true(mapped(x) > 0);
        char said[40];
        snprintf(said, sizeof said, "statement %d ('s%d')", x->stmt, layer);
        assert_non_null(strstr(x->asked[0], said));
        found[layer]++;
    }
    for (int l = 0; l < LAYERS; l++) assert_true(found[l] > 0 && found[l] == found[0]);
    struct arena scratch;
    struct near near;
    arena_init(&scratch);
    near_open(&near, &scratch, p, p->nstmts / 2);
    assert_in_range(near.n, 2 * EACH, p->nstmts / 2);
    near_close(&near);
    arena_free(&scratch);
    derivations_free(d);
    program_free(p);
    text_free(&t);
    machine_free(m);
}

static void test_bound(void **state) {
    struct machine *m = help_machine(MATMUL);
    struct program *p = help_operator("sep");
    (void)state;
    struct derivations *d = mapper_derive(p, m, &(struct map_options){.steps = 1});
    assert_true(d->bounded);
    assert_int_equal(d->n, 0);
    derivations_free(d);
    program_free(p);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators), cmocka_unit_test(test_asked),
        cmocka_unit_test(test_residual),  cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_types),
        cmocka_unit_test(test_chain),     cmocka_unit_test(test_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
