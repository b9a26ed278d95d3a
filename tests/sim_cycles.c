/* Schedules whose cycles were computed by hand from the machine format's costs; the derivation
 * stands at the top of each file, and the last number of its line `# cycles:` is what the simulator
 * must give. `# values` asks for the interpreter's values too, `# deadlock: SYNC` for that report.
 */
#include "ir/interp.h"
#include "sim/sim.h"
#include "tests/scheduler_help.h"

#include <glob.h>
#include <stdlib.h>

static const char *note(const char *text, const char *word) {
    const char *at = strstr(text, word);
    return at ? at + strlen(word) : NULL;
}

/* Arrays of the program's arguments: inputs random, the rest a pattern that must be overwritten. */
static void **arrays_new(struct arena *arena, const struct program *p, unsigned seed) {
    void **data = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        if (p->buffer[b].role == ROLE_TEMP || p->buffer[b].role == ROLE_STATE) continue;
        size_t size = type_size(p->buffer[b].type), n = (size_t)p->buffer[b].elements;
        unsigned char *at = data[b] = arena_array(arena, n + 1, size);
        for (size_t k = 0; k < n; k++) {
            union value x;
            seed = seed * 1103515245u + 12345u;
            if (type_is_float(p->buffer[b].type))
                x.f = (double)(seed >> 16 & 255) / 16 - 8;
            else
                x.i = (int64_t)(seed >> 16 & 15) - 8;
            type_store(p->buffer[b].type, at + k * size, x);
        }
    }
    return data;
}

static void check_values(struct arena *arena, const struct schedule *s, struct diags *d) {
    void **given = arrays_new(arena, s->program, 7), **expected = arrays_new(arena, s->program, 7);
    struct sim_result r;
    assert_true(sim_run(s, given, &(struct sim_options){0}, &r, d));
    assert_true(program_run(s->program, expected, NULL, NULL, d));
    for (int b = 0; b < s->program->nbuffers; b++)
        if (given[b])
            assert_memory_equal(given[b], expected[b],
                                (size_t)s->program->buffer[b].elements *
                                    type_size(s->program->buffer[b].type));
    sim_result_free(&r);
}

static int check_file(const char *path) {
    struct arena arena;
    struct diags d;
    struct sim_result r;
    arena_init(&arena);
    diags_init(&d);
    char *text = help_read(&arena, path);
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, path, text, &d);
    diags_print(&d, stderr);
    assert_non_null(s);
    int wrong = 0;
    bool ran = sim_run(s, NULL, &(struct sim_options){.no_values = true}, &r, &d);
    const char *deadlock = note(text, "# deadlock: "), *cycles = note(text, "# cycles: ");
    if (deadlock) {
        char *sync = arena_strndup(&arena, deadlock, strcspn(deadlock, "\n"));
        char *messages = help_messages(&arena, &d);
        wrong = ran || !strstr(messages, "deadlock") || !strstr(messages, sync);
        if (wrong) print_error("%s: no deadlock at '%s' is reported\n%s", path, sync, messages);
    } else {
        assert_non_null(cycles);
        char *line = arena_strndup(&arena, cycles, strcspn(cycles, "\n"));
        const char *number = strrchr(line, '=');
        double expected = strtod(number ? number + 1 : line, NULL);
        diags_print(&d, stderr);
        wrong = !ran || r.cycles != expected;
        if (wrong) print_error("%s: %g cycles, expected %g\n", path, r.cycles, expected);
        if (strstr(text, "# values\n")) check_values(&arena, s, &d);
    }
    sim_result_free(&r);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    arena_free(&arena);
    return wrong;
}

static void test_cycles(void **state) {
    (void)state;
    glob_t found;
    int wrong = 0;
    assert_int_equal(glob("tests/data/schedules/sim/*.sched", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 10);
    for (size_t k = 0; k < found.gl_pathc; k++) wrong += check_file(found.gl_pathv[k]);
    globfree(&found);
    assert_int_equal(wrong, 0);
}

/* The verifier's schedules give the interpreter's values on three kinds of machine. */
static void test_values(void **state) {
    (void)state;
    static const char *const file[] = {"gemm", "lanes", "board"};
    for (size_t f = 0; f < 3; f++) {
        struct arena arena;
        struct diags d;
        arena_init(&arena);
        diags_init(&d);
        char *text =
            help_read(&arena, arena_printf(&arena, "tests/data/schedules/%s.sched", file[f]));
        struct machine *m = help_machine(text);
        struct schedule *s = help_parse(m, file[f], text, &d);
        assert_non_null(s);
        check_values(&arena, s, &d);
        schedule_free(s);
        machine_free(m);
        diags_free(&d);
        arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cycles),
                                       cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
