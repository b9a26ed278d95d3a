/* The simulator survives whatever the parser lets through: it answers or reports, and returns. */
#include "tests/sim_help.h"

enum { FLIPS = 2000, STEPS = 2000, MOST = 1 << 20 };

static uint64_t next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static int64_t total_bytes(const struct program *p) {
    int64_t n = 0;
    for (int b = 0; b < p->nbuffers && n <= MOST; b++) n += (int64_t)sim_bytes(&p->buffer[b]);
    return n;
}

static void simulate(const struct schedule *s, struct diags *d, int *good) {
    struct sim_result r;
    struct sim_options options = {.no_values = true, .steps = STEPS};
    bool ran = sim_run(s, NULL, &options, &r, d);
    if (!ran) assert_true(d->errors > 0);
    sim_result_free(&r);
    if (total_bytes(s->program) > MOST) return;
    void **data = sim_data(s->program, 1);
    options.no_values = false;
    int before = d->errors;
    ran = sim_run(s, data, &options, &r, d);
    if (!ran) assert_true(d->errors > before);
    *good += ran;
    sim_result_free(&r);
    sim_data_free(s->program, data);
}

static bool try_text(const struct machine *m, const char *text, int *good) {
    struct diags d;
    diags_init(&d);
    struct schedule *s = help_parse(m, "flipped", text, &d);
    if (s) simulate(s, &d, good);
    bool parsed = s != NULL;
    if (s) schedule_free(s);
    diags_free(&d);
    return parsed;
}

/* One digit, or a number that is no such, in the schedule proper. */
static char *with_number(struct arena *arena, const char *text, uint64_t *seed) {
    static const char *const number[] = {"0",
                                         "1",
                                         "7",
                                         "65535",
                                         "1000000000000",
                                         "(0-1)",
                                         "i0*9",
                                         "(0-99)",
                                         "4611686018427387904",
                                         "9223372036854775807"};
    size_t length = strlen(text), at = next(seed) % length;
    while (at < length && (text[at] < '0' || text[at] > '9')) at++;
    size_t end = at;
    while (end < length && text[end] >= '0' && text[end] <= '9') end++;
    return arena_printf(arena, "%.*s%s%s", (int)at, text,
                        number[next(seed) % (sizeof number / sizeof *number)], text + end);
}

static void survives(const char *path) {
    struct arena arena;
    uint64_t seed = 42;
    int parsed = 0, good = 0;
    arena_init(&arena);
    char *text = help_read(&arena, path);
    struct machine *m = help_machine(text);
    size_t length = strlen(text);
    for (int k = 0; k < FLIPS; k++) {
        size_t at = next(&seed) % length;
        char bit = (char)(1 << next(&seed) % 7);
        if (text[at] == bit) continue;
        text[at] = (char)(text[at] ^ bit);
        parsed += try_text(m, text, &good);
        text[at] = (char)(text[at] ^ bit);
    }
    for (int k = 0; k < FLIPS; k++) {
        struct arena scratch;
        arena_init(&scratch);
        parsed += try_text(m, with_number(&scratch, text, &seed), &good);
        arena_free(&scratch);
    }
    assert_true(parsed > 100 && good > 50 && good < parsed);
    machine_free(m);
    arena_free(&arena);
}

static void edge(void **state) {
    (void)state;
    survives(SOURCE_DIR "/tests/data/schedules/edge/edge_17x19x23.sched");
}

static void parallel(void **state) {
    (void)state;
    survives(SOURCE_DIR "/tests/data/schedules/sim/parallel.sched");
}

static void host_and_device(void **state) {
    (void)state;
    survives(SOURCE_DIR "/tests/data/schedules/sim/host_device.sched");
}

static void must_fail(const struct schedule *s, void **data, struct diags *d, int *tried) {
    struct sim_result r;
    struct sim_options options = {.trusted = true};
    assert_false(sim_run(s, data, &options, &r, d));
    assert_int_equal(d->errors, ++*tried);
    sim_result_free(&r);
}

/* Whatever a statement of the host reads or writes has a home that holds it, or the simulation
 * fails, with one message: homes that are away, or too small for their layout. */
static void bad_homes(const char *path, bool away) {
    struct arena arena;
    struct diags d;
    int tried = 0;
    arena_init(&arena);
    diags_init(&d);
    char *text = help_replace(&arena, help_read(&arena, path), "  run {\n",
                              "  run {\n    fallback host c do 0\n", 0);
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, path, text, &d);
    assert_non_null(s);
    void **data = sim_data(s->program, 1);
    for (int k = 0; k < s->nplaces; k++) {
        struct place *home = &s->place[k], kept = *home;
        if (home->keep == KEEP_LOCAL || schedule_home(s, home->buffer) != k) continue;
        if (away)
            home->keep = KEEP_LOCAL;
        else
            home->bytes = 1;
        if (away || home->layout) must_fail(s, data, &d, &tried);
        *home = kept;
    }
    assert_true(tried > 0);
    sim_data_free(s->program, data);
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    arena_free(&arena);
}

static void homes(void **state) {
    (void)state;
    bad_homes(SOURCE_DIR "/tests/data/schedules/sim/host_device.sched", true);
    bad_homes(SOURCE_DIR "/tests/data/schedules/board.sched", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(edge), cmocka_unit_test(parallel),
                                       cmocka_unit_test(host_and_device), cmocka_unit_test(homes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
