/* The text form of schedules: what is printed is read back, and what is wrong is reported where it
 * is. A schedule in tests/data/schedules has its printed form beside it, one in bad/ its messages.
 */
#include "tests/scheduler_help.h"

#include <glob.h>

static char *printed(struct arena *arena, const struct schedule *s) {
    struct text text = {0};
    schedule_print(s, &text);
    char *copy = arena_strndup(arena, text.at, text.n);
    text_free(&text);
    return copy;
}

static const char *file_name(const char *path) {
    return strrchr(path, '/') + 1;
}

static char *expected_of(struct arena *arena, const char *path) {
    return help_read(arena, arena_printf(arena, "%.*sexpected", (int)(strlen(path) - 5), path));
}

static void each_file(const char *pattern, size_t least,
                      void (*check)(struct arena *, const char *path)) {
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= least);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        struct arena arena;
        arena_init(&arena);
        check(&arena, found.gl_pathv[k]);
        arena_free(&arena);
    }
    globfree(&found);
}

static void check_identity(struct arena *arena, const char *path) {
    struct diags d;
    diags_init(&d);
    char *text = help_read(arena, path);
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, file_name(path), text, &d);
    diags_print(&d, stderr);
    assert_non_null(s);
    char *once = printed(arena, s);
    struct schedule *again = help_parse(m, "printed", once, &d);
    diags_print(&d, stderr);
    assert_non_null(again);
    assert_string_equal(printed(arena, again), once);
    assert_true(program_equal(s->program, again->program));
    assert_int_equal(schedule_nodes(s), schedule_nodes(again));
    assert_int_equal(s->nplaces, again->nplaces);
    assert_int_equal(s->nvars, again->nvars);
    assert_string_equal(once, expected_of(arena, path));
    schedule_free(again);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
}

static void test_identity(void **state) {
    (void)state;
    each_file("tests/data/schedules/*.sched", 3, check_identity);
}

static void check_bad(struct arena *arena, const char *path) {
    struct diags d;
    diags_init(&d);
    char *text = help_read(arena, path);
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, file_name(path), text, &d);
    if (s) fail_msg("%s is accepted", path);
    char *messages = help_messages(arena, &d);
    assert_string_equal(messages, expected_of(arena, path));
    machine_free(m);
    diags_free(&d);
}

static void test_bad(void **state) {
    (void)state;
    each_file("tests/data/schedules/bad/*.sched", 30, check_bad);
}

/* The structure that the text stands for, field by field. */
static void test_structure(void **state) {
    (void)state;
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    diags_init(&d);
    char *text = help_read(&arena, "tests/data/schedules/gemm.sched");
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, "gemm", text, &d);
    assert_non_null(s);
    assert_int_equal(s->nplaces, 6);
    assert_int_equal(s->place[3].slots, 2);
    assert_int_equal(s->place[3].keep, KEEP_LOCAL);
    assert_int_equal(s->place[3].memory, machine_memory(m, "inp"));
    assert_int_equal(s->place[2].address, 2048);
    assert_int_equal(schedule_home(s, s->place[2].buffer), 2);
    assert_int_equal(schedule_nodes(s), 14);
    assert_int_equal(schedule_workspace(s), 0);
    assert_int_equal(s->run.nnodes, 5);
    const struct loop_node *outer = s->run.node[2].loop, *inner = outer->body[1].loop;
    assert_int_equal(outer->step, 1);
    assert_string_equal(s->program->axis[inner->axis].name, "kb");
    const struct issue_node *mm = inner->body[4].issue;
    int64_t value[8] = {0};
    value[outer->var] = 1;
    value[inner->var] = 1;
    assert_string_equal(m->instr[mm->instr].id, "mm16");
    assert_int_equal(mm->stmt, 1);
    assert_int_equal(mm->init, 0);
    assert_int_equal(sx_eval(mm->flag[0], value), 1);
    assert_int_equal(sx_eval(mm->base[0], value), 16);
    assert_int_equal(mm->signals.npops, 1);
    assert_int_equal(mm->signals.push[0].sync, machine_sync(m, "e2l"));
    assert_int_equal(sx_eval(inner->body[2].issue->arg[0].offset, value), 528);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    arena_free(&arena);
}

/* ---- expressions ---- */
static void expect_sx(const struct sx *x, const struct schedule *s, const char *expected) {
    struct text text = {0};
    sx_print(x, s, &text);
    assert_string_equal(text.at, expected);
    text_free(&text);
}

static void test_expressions(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a);
    struct var var[] = {{"i", false}, {"j", false}, {"i", true}};
    struct schedule s = {.var = var, .nvars = 3};
    const struct sx *i = sx_var(&a, 0), *j = sx_var(&a, 1), *i2 = sx_var(&a, 2);
    const struct sx *three = sx_const(&a, 3), *zero = sx_const(&a, 0), *one = sx_const(&a, 1);
    int64_t value;
    assert_true(sx_constant(sx_make(&a, SX_DIV, sx_const(&a, -7), three), &value));
    assert_int_equal(value, -3);
    assert_true(sx_constant(sx_make(&a, SX_MOD, sx_const(&a, -7), three), &value));
    assert_int_equal(value, 2);
    assert_true(sx_constant(sx_make(&a, SX_DIV, sx_const(&a, 7), sx_const(&a, -3)), &value));
    assert_int_equal(value, -3);
    assert_true(sx_constant(sx_make(&a, SX_MUL, i, zero), &value));
    assert_int_equal(value, 0);
    assert_false(sx_constant(i, &value));
    assert_ptr_equal(sx_make(&a, SX_ADD, zero, i), i);
    assert_ptr_equal(sx_make(&a, SX_MUL, one, i), i);
    assert_true(sx_constant(sx_make(&a, SX_SUB, i, i), &value));
    expect_sx(sx_make(&a, SX_ADD, sx_make(&a, SX_SUB, i, three), sx_const(&a, 5)), &s, "i + 2");
    expect_sx(sx_make(&a, SX_SUB, i, three), &s, "i - 3");
    expect_sx(sx_make(&a, SX_SUB, i, sx_make(&a, SX_SUB, j, three)), &s, "i - (j - 3)");
    expect_sx(sx_make(&a, SX_MUL, sx_make(&a, SX_ADD, i, j), three), &s, "(i + j)*3");
    expect_sx(sx_make(&a, SX_DIV, i, sx_make(&a, SX_MUL, j, three)), &s, "i/(j*3)");
    expect_sx(sx_make(&a, SX_MIN, i, sx_make(&a, SX_MAX, j, i2)), &s, "min(i, max(j, i~2))");
    const struct sx *both =
        sx_make(&a, SX_AND, sx_make(&a, SX_LT, i, j), sx_make(&a, SX_NE, j, zero));
    expect_sx(sx_make(&a, SX_OR, both, sx_make(&a, SX_EQ, i, three)), &s,
              "i < j and j != 0 or i == 3");
    int64_t at[] = {INT64_MAX, INT64_MIN, 0};
    assert_int_equal(sx_eval(sx_make(&a, SX_ADD, i, one), at), INT64_MIN);
    assert_int_equal(sx_eval(sx_make(&a, SX_DIV, j, sx_make(&a, SX_SUB, i2, one)), at), INT64_MIN);
    assert_int_equal(sx_eval(sx_make(&a, SX_MOD, i, i2), at), 0);
    arena_free(&a);
}

/* Sibling loops may share a variable, and two variables a name. */
static void test_variables(void **state) {
    (void)state;
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    diags_init(&d);
    char *text = help_read(&arena, "tests/data/schedules/gemm.sched");
    struct machine *m = help_machine(text);
    text = help_replace(&arena, text, "sync load pop e2l pop e2l",
                        "loop k0 = 0 to 2 { sync load pop e2l }", 0);
    struct schedule *s = help_parse(m, "shared", text, &d);
    assert_non_null(s);
    assert_int_equal(s->nvars, 2);
    assert_true(schedule_verify(s, NULL, &d));
    s->var[1] = (struct var){s->var[0].name, true};
    char *once = printed(&arena, s);
    assert_non_null(strstr(once, "loop i0~1 = 0 to 2"));
    struct schedule *again = help_parse(m, "printed", once, &d);
    assert_non_null(again);
    assert_string_equal(printed(&arena, again), once);
    schedule_free(again);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    arena_free(&arena);
}

static void test_other_machine(void **state) {
    (void)state;
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    diags_init(&d);
    char *text = help_read(&arena, "tests/data/schedules/gemm.sched");
    char *other = help_read(&arena, "tests/data/schedules/lanes.sched");
    struct machine *m = help_machine(other);
    assert_null(help_parse(m, "gemm", text, &d));
    assert_string_equal(help_messages(&arena, &d),
                        "2:18: the schedule is for machine 'edge16', not 'lanes'\n");
    machine_free(m);
    diags_free(&d);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),  cmocka_unit_test(test_bad),
        cmocka_unit_test(test_structure), cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_variables), cmocka_unit_test(test_other_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
