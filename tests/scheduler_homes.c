/* The static memory plan: homes of temporaries share bytes where their live ranges are apart, and
 * the verifier sees where they are not. */
#include "tests/scheduler_help.h"
#include "tests/scheduler_chain.h"
#include "tests/scheduler_plan.h"

static void chain_open(struct compiled *x, int n) {
    struct arena a;
    arena_init(&a);
    compiled_open(x, "cpu-avx2", NULL, NULL, chain_text(&a, n), NULL, 0);
    compiled_by(x, &plan_best, 1, NULL);
    assert_true(schedule_verify(x->s, &(struct verify_options){.trips = 2}, &x->diags));
    arena_free(&a);
}

/* What a product reads and what it writes are live together: two of them and a copy, however many
 * there are. */
static void chains_take_no_more_for_being_longer(void **state) {
    (void)state;
    for (int n = 3; n <= 27; n += 8) {
        struct compiled x;
        chain_open(&x, n);
        assert_in_range(schedule_workspace(x.s), 2 * 32 * 32 * 4, 3 * 32 * 32 * 4);
        assert_int_equal(schedule_workspace(x.s), schedule_workspace_bound(x.s));
        compiled_free(&x);
    }
}

/* n products of bytes, each rounded to bytes: all extents are `size`. */
static const char *byte_chain(struct arena *a, int n, int size) {
    struct text t = {0};
    text_printf(&t, "kernel bytes() {\n  in T0: i8[%d, %d]\n  out Y: i8[%d, %d]\n", size, size,
                size, size);
    text_printf(&t, "  axes i: %d, j: %d, k: %d\n", size, size, size);
    for (int p = 1; p <= n; p++) {
        const char *to = p == n ? "Y" : arena_printf(a, "T%d", p);
        text_printf(&t, "  const W%d: i8[%d, %d]\n  temp S%d: i32[%d, %d]\n", p, size, size, p,
                    size, size);
        if (p < n) text_printf(&t, "  temp %s: i8[%d, %d]\n", to, size, size);
        text_printf(&t, "  S%d[i, j] = 0\n  S%d[i, j] += i32(T%d[i, k]) * i32(W%d[j, k])\n", p, p,
                    p - 1, p);
        text_printf(&t, "  %s[i, j] = i8(clip(round(f64(S%d[i, j]) * 0.0078125), -128, 127))\n", to,
                    p);
    }
    text_printf(&t, "}\n");
    const char *out = arena_strdup(a, t.at);
    text_free(&t);
    return out;
}

/* On a device too, where all its queues meet between two products. Nobody zeroes padding between
 * them: homes that have some share no bytes. */
static int64_t workspace_on_a_device(int n, int size, int *padded) {
    struct compiled x;
    struct arena a;
    arena_init(&a);
    compiled_open(&x, "vdla", "cpu-scalar", NULL, byte_chain(&a, n, size), NULL, 0);
    compiled_by(&x, &plan_best, 1, NULL);
    assert_true(schedule_verify(x.s, &(struct verify_options){.trips = 2}, &x.diags));
    int64_t bytes = schedule_workspace(x.s);
    for (int p = 0; p < x.s->nplaces; p++) {
        const struct place *u = &x.s->place[p];
        *padded += schedule_pads(x.s, p);
        for (int q = 0; q < x.s->nplaces && schedule_pads(x.s, p); q++) {
            const struct place *v = &x.s->place[q];
            assert_true(p == q || u->memory != v->memory || v->keep == KEEP_LOCAL ||
                        u->address >= v->address + v->bytes || v->address >= u->address + u->bytes);
        }
    }
    compiled_free(&x);
    arena_free(&a);
    return bytes;
}

static void devices_share_bytes_between_products(void **state) {
    (void)state;
    int padded = 0;
    int64_t few = workspace_on_a_device(4, 64, &padded);
    assert_true(few > 0);
    assert_in_range(workspace_on_a_device(12, 64, &padded), 1, few);
    assert_int_equal(padded, 0);
    assert_true(workspace_on_a_device(4, 40, &padded) > 0);
    assert_true(padded > 0);
}

static struct place *home_named(const struct schedule *s, const char *name) {
    return &s->place[schedule_home(s, program_buffer(s->program, name))];
}

/* T2 may have the bytes of T0, T1 may not: both are in use by the product between them. */
static void verifier_sees_who_is_live(void **state) {
    (void)state;
    struct compiled x;
    chain_open(&x, 5);
    int64_t free = schedule_workspace(x.s) + home_named(x.s, "Y")->address + (1 << 20);
    home_named(x.s, "T0")->address = home_named(x.s, "T2")->address = free;
    assert_true(schedule_verify(x.s, &(struct verify_options){.trips = 2}, &x.diags));
    home_named(x.s, "T1")->address = free;
    assert_false(schedule_verify(x.s, &(struct verify_options){.trips = 2}, &x.diags));
    compiled_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_take_no_more_for_being_longer),
        cmocka_unit_test(devices_share_bytes_between_products),
        cmocka_unit_test(verifier_sees_who_is_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
