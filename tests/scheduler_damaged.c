/* Schedules with small damages: what is refused when it is read, what the verifier refuses, and
 * what it cannot prove, with which words. Kept in tests/data/golden/scheduler_damaged.txt. */
#include "tests/damage.h"
#include "tests/scheduler_help.h"

enum { STEPS = 20000 };

static void schedule_try(struct damaged *d, void *user, const char *text) {
    struct diags said;
    diags_init(&said);
    struct schedule *s = help_parse(user, "damaged", text, &said);
    if (s) {
        struct text out = {0}, why = {0};
        int sampled = 0;
        struct diags walked;
        struct verify_options all = {0, STEPS};
        diags_init(&walked);
        enum proof proof = schedule_prove(s, STEPS, &sampled, &why, &said);
        text_printf(&out, "%s %d %s", proof_name[proof], sampled, why.at ? why.at : "");
        damage_said(d, out.at, out.at);
        bool right = schedule_verify(s, &all, &walked);
        damage_said(d, right ? "walked" : "not walked", right ? "" : walked.at[0].text);
        bool more = !right && strstr(walked.at[0].text, "more steps than its budget");
        assert_true(right || more || proof != PROOF_PROVED);
        diags_free(&walked);
        text_free(&why);
        text_free(&out);
    }
    damage_diags(d, &said);
    schedule_free(s);
    diags_free(&said);
}

static const struct {
    const char *file;
    int every;
} schedules[] = {
    {"robust.sched", 1},          {"schedules/gemm.sched", 1},      {"schedules/board.sched", 1},
    {"schedules/async.sched", 1}, {"schedules/grid.sched", 1},      {"schedules/hardware.sched", 1},
    {"schedules/lanes.sched", 1}, {"schedules/states.sched", 1},    {"schedules/table.sched", 1},
    {"schedules/tiles.sched", 1}, {"schedules/fragments.sched", 1}, {"schedules/again.sched", 1},
};

static void damaged_schedules(void **state) {
    struct text seen = {0};
    (void)state;
    for (int k = 0; k < (int)(sizeof schedules / sizeof *schedules); k++) {
        struct arena arena;
        arena_init(&arena);
        char *text = help_read(&arena, arena_printf(&arena, "tests/data/%s", schedules[k].file));
        struct machine *m = help_machine(text);
        struct damaged *d = damage_open();
        damage_all(d, text, "(){}[]=+*,", schedules[k].every, schedule_try, m);
        damage_close(d, schedules[k].file, &seen);
        machine_free(m);
        arena_free(&arena);
    }
    golden_check("scheduler_damaged", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
