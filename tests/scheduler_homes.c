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
        assert_in_range(schedule_workspace(x.s), 2 * 64 * 64 * 4, 3 * 64 * 64 * 4);
        assert_int_equal(schedule_workspace(x.s), schedule_workspace_bound(x.s));
        compiled_free(&x);
    }
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
        cmocka_unit_test(verifier_sees_who_is_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
