/* Options that are remembered are those that would be priced anew, whatever else is decided. */
#include "mapper/mapper_int.h"
#include "mapper_help.h"

enum { TRIALS = 400, WAYS = 4, STMTS = 16 };

static const char text[] = "kernel net(N=32) {;"
                           "  axes i: N, j: N, k: N;"
                           "  in X: f32[N, N]  const V: f32[N, N]  const W: f32[N, N];"
                           "  temp A: f32[N, N]  temp B: f32[N, N]  temp C: f32[N, N];"
                           "  temp D: f32[N, N]  out Y: f32[N, N]  out Z: f32[N];"
                           "  A[i,j] = 0;"
                           "  A[i,j] += X[i,k] * V[k,j];"
                           "  B[i,j] = clip(A[i,j], -1, 1);"
                           "  C[i,j] = X[i,j];"
                           "  C[i,j] += B[i,k] * W[k,j];"
                           "  D[i,j] = C[i,j] + A[i,j] * X[j,i];"
                           "  Y[i,j] = 0;"
                           "  Y[i,j] += D[i,k] * B[k,j];"
                           "  Z[i] = 0;"
                           "  Z[i] += Y[i,j] * D[i,j];"
                           "}";

static void same_options(const struct options *a, const struct options *b) {
    assert_int_equal(a->n, b->n);
    assert_true(a->floor == b->floor);
    for (int i = 0; i < a->n; i++) {
        assert_true(a->at[i].cost == b->at[i].cost);
        assert_ptr_equal(a->at[i].map.group, b->at[i].map.group);
        assert_int_equal(a->at[i].fallback, b->at[i].fallback);
    }
}

/* The first few ways of each statement, as mappings of the cover. */
static void add_ways(struct covering *c, int way[STMTS][WAYS]) {
    for (int s = 0; s < c->cover->program->nstmts; s++) {
        struct options all = options_of(c, s);
        for (int w = 0; w < WAYS; w++) {
            bool mapped = w < all.n && !all.at[w].fallback && all.at[w].ncuts == 0;
            way[s][w] = mapped ? covering_add(c, &all.at[w].map, all.at[w].view) : FALLBACK;
        }
    }
}

static void decide_some(struct covering *c, int way[STMTS][WAYS], uint64_t *seed) {
    for (int s = 0; s < c->cover->program->nstmts; s++)
        c->chosen[s] = help_below(seed, 3) ? way[s][help_below(seed, WAYS)] : UNDECIDED;
}

static void compare_all(const char *machine) {
    struct diags diags;
    struct memo memo[STMTS] = {0};
    int way[STMTS][WAYS], priced = 0, remembered = 0;
    uint64_t seed = 7;
    diags_init(&diags);
    struct machine *m = machine_load(machine, NULL, &diags);
    assert_non_null(m);
    struct needles *needles = needles_open(m);
    struct cover cover = {.program = help_program("net", text)};
    arena_init(&cover.arena);
    struct covering c = {.machine = m, .needles = needles, .diags = &diags, .cover = &cover};
    arena_init(&c.scratch);
    assert_true(cover.program->nstmts <= STMTS);
    covering_reserve(&c, cover.program->nstmts);
    for (int s = 0; s < cover.program->nstmts; s++) c.chosen[s] = UNDECIDED, c.inside[s] = -1;
    add_ways(&c, way);
    for (int t = 0; t < TRIALS; t++) {
        decide_some(&c, way, &seed);
        for (int s = 0; s < cover.program->nstmts; s++) {
            if (c.chosen[s] != UNDECIDED) continue;
            struct options anew = options_of(&c, s);
            int64_t turn = c.turn;
            struct options known = options_remembered(&c, &memo[s], s);
            same_options(&anew, &known);
            priced += c.turn != turn;
            remembered += c.turn == turn;
        }
    }
    assert_true(priced > 0 && remembered > priced);
    for (int s = 0; s < STMTS; s++) memo_close(&memo[s]);
    covering_close(&c);
    program_free(cover.program);
    arena_free(&cover.arena);
    needles_close(needles);
    machine_free(m);
    diags_free(&diags);
}

static void remembered_as_priced(void **state) {
    (void)state;
    compare_all("cpu-avx2");
    compare_all("cpu-scalar");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(remembered_as_priced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
