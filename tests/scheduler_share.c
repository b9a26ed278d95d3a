/* Parallel loops: no instance of a unit has more than an even share and a tile, for any number of
 * threads; and windows that slide along a vector are read where they lie. */
#include "scheduler/plan/tiling.h"
#include "tests/scheduler_plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void run_open(struct compiled *r, const char *machine, int64_t cores, const char *text,
                     int threads) {
    struct binding core = {"CORES", cores};
    struct bindings set = {&core, 1, NULL};
    struct verify_options verify = {3, 0};
    compiled_open(r, machine, NULL, &set, text, NULL, 0);
    compiled_by(r, &plan_best, 0, &(struct scheduler_options){.threads = threads});
    if (!schedule_verify(r->s, &verify, &r->diags)) diags_print(&r->diags, stderr);
    assert_int_equal(r->diags.errors, 0);
}

struct count {
    const struct program *p;
    int64_t *var, issues, largest_step; /* of the loops over the shared axis inside */
    int axis;
};

/* Issues that execute a reduction. */
static void count_nodes(struct count *c, const struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_ISSUE && node[i].issue->stmt >= 0 &&
            c->p->stmt[node[i].issue->stmt].combine != COMBINE_SET)
            c->issues++;
        if (node[i].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[i].loop;
        int64_t hi = sx_eval(l->hi, c->var);
        if (l->axis == c->axis && l->kind == LOOP_SEQUENTIAL && l->step > c->largest_step)
            c->largest_step = l->step;
        for (int64_t v = sx_eval(l->lo, c->var); v < hi; v += l->step) {
            c->var[l->var] = v;
            count_nodes(c, l->body, l->nbody);
        }
    }
}

/* Largest share of the instances of the section's parallel loops, and all of them, in issues;
 * false: there is none. */
static bool shares(const struct schedule *s, int64_t instances, int64_t *most, int64_t *all,
                   int64_t *tile) {
    struct count c = {.p = s->program, .axis = -1};
    c.var = calloc((size_t)s->nvars + 1, sizeof *c.var);
    bool found = false;
    for (int i = 0; i < s->run.nnodes; i++) {
        const struct node *n = &s->run.node[i];
        if (n->kind != NODE_LOOP || n->loop->kind != LOOP_PARALLEL) continue;
        const struct loop_node *l = n->loop;
        int64_t lo = sx_eval(l->lo, c.var), hi = sx_eval(l->hi, c.var),
                trips = (hi - lo + l->step - 1) / l->step;
        found = true;
        c.axis = l->axis;
        c.largest_step = 0;
        *most = *all = 0;
        for (int64_t k = 0; k < instances; k++) { /* docs/schedule.md, "parallel" */
            int64_t first = trips * k / instances, end = trips * (k + 1) / instances;
            c.issues = 0;
            for (int64_t t = first; t < end; t++) {
                c.var[l->var] = lo + t * l->step;
                count_nodes(&c, l->body, l->nbody);
            }
            *all += c.issues;
            if (c.issues > *most) *most = c.issues;
        }
        if (!c.largest_step) c.largest_step = l->step; /* a share is a tile */
        *tile = (*all * c.largest_step + s->program->axis[c.axis].extent - 1) /
                s->program->axis[c.axis].extent;
    }
    free(c.var);
    return found;
}

static void shares_are_balanced(void **state) {
    (void)state;
    static const char *const kernels[] = {
        "kernel a(M=91, N=200, K=120) { in A: f32[M, K]  in B: f32[K, N]  out C: f32[M, N]\n"
        "  axes i: M, j: N, k: K\n  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel b(M=36, N=104, K=600) { in A: f32[M, K]  in B: f32[K, N]  out C: f32[M, N]\n"
        "  axes i: M, j: N, k: K\n  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
        "kernel c(C=24, K=40, H=25) { in I: f32[C, H, H]  const F: f32[K, C, 3, 3]\n"
        "  out O: f32[K, H, H]  axes k: K, p: H, q: H, c: C, r: 3, s: 3\n"
        "  O[k,p,q] = 0\n  O[k,p,q] += I[c,p+r-1,q+s-1 else 0] * F[k,c,r,s] }"};
    static const char *const machines[] = {"machines/cpu-avx2.xml", "machines/cpu-avx512.xml"};
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++)
        for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
            for (int threads = 1; threads <= 8; threads += threads == 2 ? 6 : 1) {
                struct compiled r;
                int64_t most, all, tile;
                run_open(&r, machines[m], 8, kernels[k], threads);
                bool parallel = shares(r.s, threads, &most, &all, &tile);
                if (parallel != (threads > 1))
                    fail_msg("%s, kernel %c, %d threads: %s loop", machines[m], (char)('a' + k),
                             threads, parallel ? "a parallel" : "no parallel");
                if (parallel && most > all / threads + tile)
                    fail_msg(
                        "%s, kernel %c, %d threads: a share of %lld issues of %lld, a tile %lld",
                        machines[m], (char)('a' + k), threads, (long long)most, (long long)all,
                        (long long)tile);
                compiled_free(&r);
            }
}

/* Tiles are chosen with the loop that is shared: with many instances none of them is idle. */
static void tiles_suit_the_instances(void **state) {
    (void)state;
    static const struct {
        int64_t cores, m, n;
        double most; /* issues of the busiest, of an even share */
    } rows[] = {{64, 512, 512, 1.05}, {48, 384, 256, 1.1}, {16, 96, 1024, 1.05}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        struct compiled r;
        int64_t most, all, tile;
        snprintf(
            text, sizeof text,
            "kernel a(M=%d, N=%d, K=192) { in A: f32[M, K]  in B: f32[K, N]  out C: f32[M, N]\n"
            "  axes i: M, j: N, k: K\n  C[i,j] = 0\n  C[i,j] += A[i,k] * B[k,j] }",
            (int)rows[i].m, (int)rows[i].n);
        run_open(&r, "machines/cpu-avx512.xml", rows[i].cores, text, (int)rows[i].cores);
        assert_true(shares(r.s, rows[i].cores, &most, &all, &tile));
        if ((double)most * (double)rows[i].cores > rows[i].most * (double)all)
            fail_msg("%dx%d on %d: the busiest instance issues %lld of %lld", (int)rows[i].m,
                     (int)rows[i].n, (int)rows[i].cores, (long long)most, (long long)all);
        compiled_free(&r);
    }
}

/* Loops of the fallback are shared where waking the threads costs less than what they save: that
 * hangs on how much a turn computes. */
static void loops_are_shared_by_their_work(void **state) {
    (void)state;
    static const struct {
        const char *is;
        bool shared;
    } loops[] = {{"i16(clip(shr(i64(A[i,j]) * 1234567 + 8, 24), -128, 127))", true},
                 {"A[i,j] ^ 3", false}};
    for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
        char text[300];
        struct compiled r;
        int64_t most, all, tile;
        snprintf(text, sizeof text,
                 "kernel a() { in A: i16[64, 512]  out y: i16[64, 512]\n"
                 "  axes i: 64, j: 512\n  y[i,j] = %s }",
                 loops[k].is);
        run_open(&r, "machines/cpu-avx2.xml", 8, text, 8);
        if (shares(r.s, 8, &most, &all, &tile) != loops[k].shared)
            fail_msg("%s: %s", loops[k].is, loops[k].shared ? "not shared" : "shared");
        compiled_free(&r);
    }
}

/* Sums inside a loop that instances share whose axis they reduce over. */
static int sums_over(const struct program *p, const struct node *node, int n, int axis) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP)
            found += sums_over(p, node[i].loop->body, node[i].loop->nbody, axis);
        if (node[i].kind != NODE_ISSUE || node[i].issue->stmt < 0) continue;
        const struct stmt *st = &p->stmt[node[i].issue->stmt];
        found += st->combine != COMBINE_SET && (stmt_axes(p, st) >> axis & 1) &&
                 !access_varies(p, &st->dst, axis);
    }
    return found;
}

/* An elementwise statement and a sum of what it makes share a loop over the terms. The instances
 * do not share that loop: each would store sums of its own in the same place. */
static void sums_have_one_instance(void **state) {
    (void)state;
    static const char columns[] =
        "kernel s(M=4096, N=64) { in X: f32[M, N]  in w: f32[M]  out s: f32[N]\n"
        "  temp Y: f32[M, N]  axes k: M, i: N\n  Y[k,i] = max(X[k,i] * 3 + 1, 0)\n"
        "  s[i] = 0\n  s[i] += Y[k,i] * w[k] }";
    struct compiled r;
    run_open(&r, "machines/cpu-avx2.xml", 2, columns, 2);
    for (int i = 0; i < r.s->run.nnodes; i++) {
        const struct loop_node *l =
            r.s->run.node[i].kind == NODE_LOOP ? r.s->run.node[i].loop : NULL;
        if (l && l->kind == LOOP_PARALLEL)
            assert_int_equal(sums_over(r.s->program, l->body, l->nbody, l->axis), 0);
    }
    compiled_free(&r);
}

/* A depthwise convolution along its rows: the input is copied with its padding, not once for each
 * place of the window. */
static void windows_lie_where_they_are(void **state) {
    (void)state;
    static const char depthwise[] =
        "kernel d(C=5, H=20, W=32) { in I: f32[C, H, W]  const F: f32[C, 3, 3]  out O: f32[C, H, "
        "W]\n"
        "  axes c: C, p: H, q: W, r: 3, s: 3\n"
        "  O[c,p,q] = 0\n  O[c,p,q] += I[c,p+r-1,q+s-1 else 0] * F[c,r,s] }";
    struct compiled r;
    run_open(&r, "machines/cpu-avx2.xml", 1, depthwise, 1);
    bool vectors = false;
    for (int s = 0; s < r.s->program->nstmts; s++)
        vectors |= r.s->program->stmt[s].combine != COMBINE_SET;
    assert_true(vectors);
    for (int b = 0; b < r.s->program->nbuffers; b++)
        assert_true(r.s->program->buffer[b].elements <= 5 * 22 * 34);
    compiled_free(&r);
}

/* Three taps read two rows each of windows that move by two: where one begins in the last row of
 * the ring, it goes on in the first. */
static void rings_break_windows(void **state) {
    (void)state;
    const struct ring r = {.coef = 1, .step = 2, .window = 4, .overlap = 2, .all = 10};
    /* first rows: 0 1 2, 2 3 4, 4 5 6, 6 7 8 */
    assert_true(ring_turns(&r, 6) == 13.0 / 12);
    assert_true(ring_turns(&r, 5) == 14.0 / 12);
    assert_true(ring_turns(&r, 10) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares_are_balanced),
                                       cmocka_unit_test(tiles_suit_the_instances),
                                       cmocka_unit_test(loops_are_shared_by_their_work),
                                       cmocka_unit_test(sums_have_one_instance),
                                       cmocka_unit_test(windows_lie_where_they_are),
                                       cmocka_unit_test(rings_break_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
