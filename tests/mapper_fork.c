/* Covers that go on from what earlier ones found out are those that are made anew. */
#include "mapper/mapper_int.h"
#include "mapper_help.h"

enum { SEEDS = 12, ROUNDS = 3 };

static const char bytes[] =
    "kernel block(N=16) {;"
    "  axes i: N, j: N, k: N;"
    "  in X: i8[N, N]  const V: i8[N, N]  const W: i8[N, N]  const B: i32[N];"
    "  temp A: i32[N, N]  temp C: i8[N, N]  temp D: i32[N, N];"
    "  temp E: i32[N, N]  out Y: i8[N, N];"
    "  A[i,j] = B[j];"
    "  A[i,j] += i32(X[i,k]) * i32(V[k,j]);"
    "  C[i,j] = i8(clip(round(f64(max(A[i,j], 0)) * 0.0078125), -128, 127));"
    "  D[i,j] = 0;"
    "  D[i,j] += i32(C[i,k]) * i32(W[k,j]);"
    "  E[i,j] = shr(D[i,j], 6) + i32(X[i,j]);"
    "  Y[i,j] = i8(clip(E[i,j], -128, 127));"
    "}";
static const char floats[] =
    "kernel block(N=16) {;"
    "  axes i: N, j: N, k: N;"
    "  in X: f32[N, N]  const V: f32[N, N]  const W: f32[N, N];"
    "  temp A: f32[N, N]  temp C: f32[N, N]  temp S: f32[N]  out Y: f32[N, N];"
    "  A[i,j] = 0;"
    "  A[i,j] += X[i,k] * V[j,k];"
    "  S[i] = 0;"
    "  S[i] += A[i,j] * X[i,j];"
    "  C[i,j] = max(A[i,j] * S[i] + X[j,i], 0);"
    "  Y[i,j] = 0;"
    "  Y[i,j] += C[i,k] * W[k,j];"
    "}";

/* Mostly the cheapest, so that answers agree for a while and then no more. */
static int choose(void *state, const struct question *q) {
    int best = 0;
    for (int i = 1; i < q->ncandidates; i++)
        if (q->candidate[i].cost < q->candidate[best].cost) best = i;
    return help_below(state, 4) ? best : help_below(state, q->ncandidates);
}

static void *open(uint64_t seed) {
    uint64_t *state = malloc(sizeof *state);
    assert_non_null(state);
    *state = seed * 7919 + 1;
    return state;
}

static const struct approach wandering = {
    .name = "wandering", .open = open, .close = free, .choose = choose};

static void put_cover(const struct program *p, const struct machine *m, struct needles *needles,
                      const struct refusals *refused, uint64_t seed, struct text *out) {
    struct diags diags;
    diags_init(&diags);
    struct decider *d = decider_open(&wandering, seed);
    struct cover *c = mapper_cover_allowing(p, m, REWRITE_REORDERS, refused, needles, d, &diags);
    if (c) {
        program_print(c->program, out);
        cover_print(c, m, out);
    } else {
        text_printf(out, "none\n");
    }
    cover_free(c);
    decider_close(d);
    diags_free(&diags);
}

/* By all answers in turns, with what was kept and without. How many covers there are. */
static int compare(const struct program *p, const struct machine *m, struct needles *kept,
                   const struct refusals *refused) {
    struct text first[SEEDS] = {0};
    int different = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int s = 0; s < SEEDS; s++) {
            struct text again = {0};
            put_cover(p, m, round ? kept : NULL, refused, (uint64_t)s, round ? &again : &first[s]);
            if (round) assert_string_equal(again.at, first[s].at);
            text_free(&again);
        }
    for (int s = 0; s < SEEDS; s++) {
        bool is_new = true;
        for (int t = 0; t < s; t++) is_new &= strcmp(first[s].at, first[t].at) != 0;
        different += is_new;
    }
    for (int s = 0; s < SEEDS; s++) text_free(&first[s]);
    return different;
}

static void compare_on(const char *machine, const char *text) {
    struct diags diags;
    diags_init(&diags);
    struct machine *m = machine_load(machine, NULL, &diags);
    struct program *p = help_program("block", text);
    assert_non_null(m);
    struct needles *kept = needles_open(m);
    assert_true(compare(p, m, kept, NULL) > 2);
    needles_close(kept);
    program_free(p);
    machine_free(m);
    diags_free(&diags);
}

static void as_made_anew(void **state) {
    (void)state;
    compare_on("cpu-avx2", bytes);
    compare_on("vdla-board", bytes);
    compare_on("gpu-sm80", floats);
    compare_on("cpu-avx2", floats);
}

static bool uses(const struct program *p, const struct machine *m, struct needles *needles,
                 const struct refusals *refused, const char *instr) {
    struct text t = {0};
    put_cover(p, m, needles, refused, 3, &t);
    bool found = strstr(t.at, instr) != NULL;
    text_free(&t);
    return found;
}

/* A mapping of the instruction in a cover is refused, by one schedule for two reasons: the second
 * time however mapped, where its operands read the same. */
static void refuse(const struct program *p, const struct machine *m, const char *instr,
                   struct refusals *r) {
    struct diags diags;
    diags_init(&diags);
    struct decider *d = decider_open(&wandering, 3);
    struct cover *c = mapper_cover_allowing(p, m, REWRITE_REORDERS, NULL, NULL, d, &diags);
    const struct mapping *map = NULL;
    assert_non_null(c);
    for (int k = 0; k < c->nmappings; k++)
        if (strcmp(m->instr[c->mapping[k].instr].id, instr) == 0) map = &c->mapping[k];
    assert_non_null(map);
    r->round = r->n;
    assert_true(refusals_add(r, c->program, m, map, "", 0, 0));
    int n = r->n;
    assert_true(refusals_add(r, c->program, m, map, "another", 0, 0));
    assert_int_equal(r->n, n);
    cover_free(c);
    decider_close(d);
    diags_free(&diags);
}

/* What was found out stands at the beginning of a program's covers, and another cover that begins
 * there finds it. With something refused it is another beginning. */
static void begins_where_equal(void **state) {
    (void)state;
    struct diags diags;
    diags_init(&diags);
    struct machine *m = machine_load("vdla-board", NULL, &diags);
    struct program *p = help_program("block", bytes);
    assert_non_null(m);
    struct needles *kept = needles_open(m);
    assert_null(kept->forks);
    assert_true(uses(p, m, kept, NULL, "gemm"));
    struct fork *root = kept->forks;
    struct covering c = {.needles = kept, .fork = root};
    assert_non_null(root);
    assert_non_null(fork_known(&c));
    fork_follow(&c, 0);
    assert_non_null(fork_known(&c));
    c.fork = root;
    fork_follow(&c, 1000); /* nobody answered so */
    assert_null(fork_known(&c));
    assert_true(uses(p, m, kept, NULL, "gemm"));
    assert_ptr_equal(kept->forks, root);
    struct refusals r = {.n = 0};
    arena_init(&r.arena);
    refuse(p, m, "gemm", &r);
    compare(p, m, kept, &r);
    assert_ptr_not_equal(kept->forks, root);
    struct fork *second = kept->forks;
    refuse(p, m, "gemm", &r); /* now however mapped */
    compare(p, m, kept, &r);
    assert_ptr_not_equal(kept->forks, second);
    struct fork *third = kept->forks;
    r.at[r.n - 1].operands = "others";
    compare(p, m, kept, &r); /* of operands that read something else: another beginning too */
    assert_ptr_not_equal(kept->forks, third);
    assert_true(uses(p, m, kept, NULL, "gemm"));
    arena_free(&r.arena);
    needles_close(kept);
    program_free(p);
    machine_free(m);
    diags_free(&diags);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_made_anew),
                                       cmocka_unit_test(begins_where_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
