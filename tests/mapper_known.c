/* What is remembered of an equal statement is what a search of this one finds. */
#include "mapper/rewrite_int.h"
#include "mapper_help.h"

/* Layers that are equal but for their names and axes, and some that differ in one thing each: an
 * extent, a role, a fill that is not before it, an operation, the order of axes. */
static const char layers[] = "kernel net(N=32) {;"
                             "  axes i: N, j: N, k: N, a: N, b: N, c: N, s: 8;"
                             "  in X: f32[N, N]  const V: f32[N, N]  const W: f32[N, N];"
                             "  temp A: f32[N, N]  temp B: f32[N, N]  temp C: f32[N, N];"
                             "  temp D: f32[N, N]  temp E: f32[N, N];"
                             "  out Y: f32[N, N]  inout Z: f32[N, N]  out S: f32[N, 8];"
                             "  A[i,j] = 0;"
                             "  A[i,j] += X[i,k] * V[k,j];"
                             "  B[a,b] = 0;"
                             "  B[a,b] += A[a,c] * W[c,b];"
                             "  C[a,b] = 0;"
                             "  C[a,b] += B[a,c] * W[c,b];"
                             "  D[i,j] = C[i,j] + A[i,j];"
                             "  E[a,c] = D[a,c] + B[a,c];"
                             "  Y[i,j] = 0;"
                             "  Y[i,j] += E[k,i] * V[k,j];"
                             "  Z[i,j] += D[i,k] * V[k,j];"
                             "  S[i,s] = 0;"
                             "  S[i,s] += E[i,k] * X[k,s];"
                             "}";

static void same_text(const char *a, const char *b) {
    assert_true((a == NULL) == (b == NULL));
    if (a) assert_string_equal(a, b);
}

static void same_found(const struct search *a, const struct search *b) {
    assert_int_equal(a->nmappings, b->nmappings);
    assert_int_equal(a->nfailures, b->nfailures);
    assert_true(a->steps == b->steps);
    for (int i = 0; i < a->nmappings; i++) {
        const struct mapping *x = &a->mapping[i], *y = &b->mapping[i];
        assert_int_equal(x->instr, y->instr);
        assert_int_equal(x->stmt, y->stmt);
        assert_int_equal(x->init, y->init);
        assert_true(x->cost == y->cost && x->copies == y->copies && x->hidden == y->hidden);
        assert_memory_equal(x->group, y->group, (size_t)x->ngroups * sizeof *x->group);
        assert_memory_equal(x->operand, y->operand, (size_t)x->noperands * sizeof *x->operand);
        assert_ptr_not_equal(x->group, y->group);
    }
    for (int i = 0; i < a->nfailures; i++) {
        const struct failure *x = &a->failure[i], *y = &b->failure[i];
        assert_true(x->kind == y->kind && x->instr == y->instr && x->stmt == y->stmt &&
                    x->stmt_axis == y->stmt_axis && x->depth == y->depth);
        same_text(x->reason, y->reason);
        same_text(x->expected, y->expected);
        same_text(x->got, y->got);
    }
}

struct counts {
    int asked, known;
};

static void search_stmt(struct needles *needles, const struct program *p, int stmt, bool unasked,
                        struct counts *n) {
    struct arena arena;
    arena_init(&arena);
    struct search anew = {.arena = &arena, .needles = needles, .limit = 100000, .unasked = unasked};
    struct search kept = anew;
    struct site site = site_of(&arena, p, stmt), recalled = site;
    site_recall(&kept, &recalled);
    for (int i = 0; i < needles->n; i++) {
        if (!needles->at[i].offered) continue;
        struct search look = kept;
        n->known += pair_recall(&look, &needles->at[i], &recalled);
        n->asked++;
        search_pair(&anew, &needles->at[i], &site);
        search_pair(&kept, &needles->at[i], &recalled);
    }
    same_found(&anew, &kept);
    arena_free(&arena);
}

/* Each statement twice, as a second try does: the second time all is known. */
static void known_as_found(void **state) {
    (void)state;
    static const char *const machines[] = {"cpu-avx2", "edge16", "gemmini"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int unasked = 0; unasked < 2; unasked++) {
            struct machine *m = help_machine(machines[i]);
            struct program *p = help_program("net", layers);
            struct needles *needles = needles_open(m);
            struct counts first = {0}, again = {0};
            for (int s = 0; s < p->nstmts; s++) search_stmt(needles, p, s, unasked, &first);
            for (int s = 0; s < p->nstmts; s++) search_stmt(needles, p, s, unasked, &again);
            assert_int_equal(again.known, again.asked);
            /* sentences name statements; without them equal layers are one */
            assert_int_equal(first.known > 0, unasked);
            needles_close(needles);
            program_free(p);
            machine_free(m);
        }
}

/* A search that its bound ended is not all that there is. */
static void cut_is_not_kept(void **state) {
    (void)state;
    struct machine *m = help_machine("cpu-avx2");
    struct program *p = help_program("net", layers);
    struct needles *needles = needles_open(m);
    struct arena arena;
    arena_init(&arena);
    struct search s = {.arena = &arena, .needles = needles, .limit = 1, .unasked = true};
    struct site site = site_of(&arena, p, 1);
    site_recall(&s, &site);
    for (int i = 0; i < needles->n; i++) {
        if (!needles->at[i].offered) continue;
        s.steps = 0;
        s.bounded = false;
        search_pair(&s, &needles->at[i], &site);
        struct search whole = {
            .arena = &arena, .needles = needles, .limit = 100000, .unasked = true};
        assert_int_equal(pair_recall(&whole, &needles->at[i], &site), !s.bounded);
    }
    arena_free(&arena);
    needles_close(needles);
    program_free(p);
    machine_free(m);
}

/* Of rewrites that differ in one thing each what is known is what a proof says, the second time
 * too. */
static void known_as_proved(void **state) {
    (void)state;
    static const char form[] =
        "kernel net() { in A: i32[8]  in B: i32[8]  out C: i32[8]  axes i: 8;"
        " C[i] = %s }";
    static const char *const before[] = {"A[i] * B[i] + 3", "A[i] * B[i] + 4"},
                             *const after[] = {"B[i] * A[i] + 3", "B[i] * A[i] + 4",
                                               "A[i] * A[i] + 3", "3 + B[i] * A[i]"};
    struct machine *m = help_machine("cpu-avx2");
    struct needles *needles = needles_open(m);
    int holds = 0;
    for (int k = 0; k < 2 * 2 * 4; k++) {
        struct text text[2] = {{0}, {0}};
        text_printf(&text[0], form, before[k / 4 % 2]);
        text_printf(&text[1], form, after[k % 4]);
        struct program *p = help_program("p", text[0].at), *q = help_program("q", text[1].at);
        struct derivation d = {.nsteps = 1, .step = {&rw_commute}, .program = q};
        bool known = derivation_known(needles, &d, p);
        assert_int_equal(known, derivation_prove(&d, p, NULL));
        holds += known;
        for (int x = 0; x < 2; x++) text_free(&text[x]);
        program_free(p);
        program_free(q);
    }
    assert_int_equal(holds, 2 * 3);
    needles_close(needles);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_as_found),
                                       cmocka_unit_test(cut_is_not_kept),
                                       cmocka_unit_test(known_as_proved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
