/* Copies by the host in turns with a nest (scheduler/plan/feeds.c): the schedule is verified, simulator
 * and compiled code give the interpreter's values, and homes of equal tiles hold one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/plan_run.h"

static const char depthwise[] =
    "kernel dw(C, H, W, stride) {\n"
    "  in I: f32[C, H, W]  const F: f32[C, 3, 3]  out O: f32[C, (H-1)/stride+1, (W-1)/stride+1]\n"
    "  axes c: C, p: (H-1)/stride+1, q: (W-1)/stride+1, r: 3, s: 3\n"
    "  O[c,p,q]  = 0\n"
    "  O[c,p,q] += I[c,stride*p+r-1,stride*q+s-1 else 0] * F[c,r,s]\n"
    "}\n";
/* What follows the sum goes home by tiles. */
static const char clipped[] =
    "kernel dw(C, H, W, stride) {\n"
    "  in I: f32[C, H, W]  const F: f32[C, 3, 3]  out O: f32[C, (H-1)/stride+1, (W-1)/stride+1]\n"
    "  temp a: f32[C, (H-1)/stride+1, (W-1)/stride+1]\n"
    "  axes c: C, p: (H-1)/stride+1, q: (W-1)/stride+1, r: 3, s: 3\n"
    "  a[c,p,q]  = 0\n"
    "  a[c,p,q] += I[c,stride*p+r-1,stride*q+s-1 else 0] * F[c,r,s]\n"
    "  O[c,p,q]  = max(a[c,p,q], 0)\n"
    "}\n";

struct feed_case {
    const char *machine, *text;
    int64_t c, h, w, stride;
    bool folds; /* some home holds less than its buffer */
};
static const struct feed_case cases[] = {
    {"machines/cpu-avx2.xml", depthwise, 48, 13, 19, 3, true},
    {"machines/cpu-avx2.xml", depthwise, 40, 7, 7, 3, true},
    {"machines/cpu-avx2.xml", depthwise, 24, 13, 19, 3, true},
    {"machines/cpu-avx2.xml", depthwise, 21, 13, 19, 3, false},
    {"machines/cpu-avx2.xml", clipped, 24, 13, 19, 3, true},
    {"machines/cpu-avx512.xml", depthwise, 48, 13, 19, 3, true},
};

static bool about_copies(const struct question *q) {
    return strncmp(q->subject, "the copy of", 11) == 0;
}

/* Copies turn with their nests; the rest at the least cost, or, where the seed is odd, anything. */
static int choose_turns(void *s, const struct question *q) {
    uint64_t *seed = s;
    if (about_copies(q)) return 1;
    return *seed == 1 ? plan_cheapest(s, q) : plan_choose(s, q);
}

static void *open_turns(uint64_t seed) {
    uint64_t *s = plan_open(seed);
    if (!seed) *s = 1;
    return s;
}

static const struct approach turning = {"turning",    "copies in turns", open_turns, free,
                                        choose_turns, plan_stay,         NULL, false};

static int copies_inside(const struct node *at, int n, bool inside) {
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_FALLBACK) found += inside && at[i].fallback->lo != NULL;
        if (at[i].kind == NODE_LOOP)
            found += copies_inside(at[i].loop->body, at[i].loop->nbody, true);
    }
    return found;
}

static int folded(const struct schedule *s) {
    int found = 0;
    for (int i = 0; i < s->nplaces; i++) {
        const struct buffer *b = &s->program->buffer[s->place[i].buffer];
        found += s->place[i].keep == KEEP_WORKSPACE &&
                 s->place[i].bytes < b->elements * (int64_t)type_size(b->type);
    }
    return found;
}

static void turn(const struct feed_case *k, uint64_t seed) {
    struct compiled x;
    const struct binding size[] = {{"C", k->c}, {"H", k->h}, {"W", k->w}, {"stride", k->stride}};
    compiled_open(&x, k->machine, NULL, NULL, k->text, size, 4);
    compiled_by(&x, &turning, seed, NULL);
    if (!seed) assert_true(copies_inside(x.s->run.node, x.s->run.nnodes, false) > 0);
    if (!seed) assert_int_equal(folded(x.s) > 0, k->folds);
    struct verify_options whole = {0, 0};
    if (!schedule_verify(x.s, &whole, &x.diags)) diags_print(&x.diags, stderr);
    assert_int_equal(x.diags.errors, 0);
    plan_values(&x, 1);
    compiled_free(&x);
}

static void every_turn_is_right(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = 0; seed <= 4; seed++) turn(&cases[i], seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_turn_is_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
