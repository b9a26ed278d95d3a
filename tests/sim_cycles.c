/* Every schedule in tests/data/schedules/sim says in its first lines (`# name: value`, up to the
 * first that is not one) what the simulator must report; how the figures come about stands below
 * them, worked out by hand. A new file there is a new test. */
#include "tests/sim_help.h"

#include <dirent.h>
#include <math.h>

#define FOLDER SOURCE_DIR "/tests/data/schedules/sim"

struct expected {
    char name[64], text[400];
};

enum { MOST = 32 };

static int read_expected(const char *text, struct expected *out) {
    int n = 0;
    for (const char *at = text; *at == '#'; n++) {
        assert_true(n < MOST);
        if (sscanf(at, "# %63[a-z0-9_.A-Z]: %399[^\n]", out[n].name, out[n].text) != 2) break;
        at = strchr(at, '\n') + 1;
    }
    return n;
}

static const char *text_of(const struct expected *x, int n, const char *name) {
    for (int k = 0; k < n; k++)
        if (strcmp(x[k].name, name) == 0) return x[k].text;
    return NULL;
}

static double queue_figure(const struct sim_queue *q, const char *what) {
    if (strcmp(what, "busy") == 0) return q->busy;
    if (strcmp(what, "wait") == 0) return q->wait;
    return strcmp(what, "instructions") == 0 ? (double)q->instructions : NAN;
}

static double sync_figure(const struct sim_sync *s, const char *what) {
    if (strcmp(what, "pushes") == 0) return (double)s->pushes;
    if (strcmp(what, "peak") == 0) return (double)s->peak;
    return strcmp(what, "wait") == 0 ? s->wait : NAN;
}

static double part_figure(const struct machine *m, const struct sim_result *r, const char *kind,
                          const char *id, const char *what) {
    if (strcmp(kind, "queue") == 0 && machine_queue(m, id) >= 0)
        return queue_figure(&r->queue[machine_queue(m, id)], what);
    if (strcmp(kind, "sync") == 0 && machine_sync(m, id) >= 0)
        return sync_figure(&r->sync[machine_sync(m, id)], what);
    if (strcmp(kind, "memory") == 0 && machine_memory(m, id) >= 0)
        return (double)r->peak_bytes[machine_memory(m, id)];
    for (int b = 0; b < m->nbuses && strcmp(kind, "bus") == 0; b++)
        if (strcmp(m->bus[b].id, id) == 0)
            return strcmp(what, "bytes") == 0 ? r->bus[b].bytes : r->bus[b].busy;
    return NAN;
}

static double figure(const struct machine *m, const struct sim_result *r, const char *name) {
    const struct {
        const char *name;
        double value;
    } whole[] = {{"cycles", r->cycles},
                 {"host_cycles", r->host_cycles},
                 {"utilisation", r->utilisation},
                 {"macs", (double)r->macs},
                 {"instructions", (double)r->instructions},
                 {"home_read", r->home_read_bytes},
                 {"home_write", r->home_write_bytes},
                 {"host_read", r->host_read_bytes},
                 {"host_write", r->host_write_bytes},
                 {"energy", r->energy}};
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
        if (strcmp(name, whole[k].name) == 0) return whole[k].value;
    char kind[32], id[32], what[32];
    if (sscanf(name, "%31[a-z].%31[a-z0-9A-Z].%31s", kind, id, what) != 3) return NAN;
    return part_figure(m, r, kind, id, what);
}

static void check_error(const struct schedule *s, const char *name, const char *expected) {
    for (int values = 0; values < 2; values++) {
        struct diags d;
        struct sim_result r;
        struct sim_options options = {.no_values = !values};
        void **data = sim_data(s->program, 1);
        diags_init(&d);
        bool ran = sim_run(s, values ? data : NULL, &options, &r, &d);
        if (ran) fail_msg("%s: no error, expected '%s'", name, expected);
        assert_int_equal(d.errors, 1);
        if (strcmp(d.at[0].text, expected) != 0)
            fail_msg("%s: '%s', expected '%s'", name, d.at[0].text, expected);
        sim_result_free(&r);
        diags_free(&d);
        sim_data_free(s->program, data);
    }
}

static int given_up; /* of all runs with a bound below their cycles */

/* A run with a bound on cycles ends as without, or is given up because it takes more. */
static void check_bound(const struct schedule *s, const char *name, double cycles, double most) {
    struct diags d;
    struct sim_result r;
    struct sim_options options = {.no_values = true, .most = most};
    diags_init(&d);
    bool ran = sim_run(s, NULL, &options, &r, &d);
    if (ran ? r.beyond || r.cycles != cycles : !r.beyond || most >= cycles)
        fail_msg("%s: with at most %g cycles: %g of %g", name, most, r.cycles, cycles);
    given_up += r.beyond;
    sim_result_free(&r);
    diags_free(&d);
}

static void check_given_up(void **state) {
    (void)state;
    assert_true(given_up > 3);
}

static void check_figures(const struct schedule *s, const char *name, const struct expected *x,
                          int n) {
    struct diags d;
    struct sim_result r;
    struct sim_options options = {.no_values = true};
    int wrong = 0;
    diags_init(&d);
    bool ran = sim_run(s, NULL, &options, &r, &d);
    diags_print(&d, stderr);
    assert_true(ran);
    for (int k = 0; k < n; k++) {
        if (strcmp(x[k].name, "values") == 0) continue;
        char *end;
        double value = figure(s->machine, &r, x[k].name), want = strtod(x[k].text, &end);
        assert_true(*end == '\0');
        if (fabs(value - want) <= 1e-6) continue;
        print_error("%s: %s is %.10g, expected %.10g\n", name, x[k].name, value, want);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    if (r.cycles > 0) check_bound(s, name, r.cycles, r.cycles);
    if (r.cycles > 0) check_bound(s, name, r.cycles, r.cycles / 2);
    sim_result_free(&r);
    diags_free(&d);
}

static void check_file(void **state) {
    const char *name = *state;
    struct expected x[MOST];
    struct arena arena;
    struct diags d;
    arena_init(&arena);
    diags_init(&d);
    const char *text = help_read(&arena, arena_printf(&arena, "%s/%s", FOLDER, name));
    int n = read_expected(text, x);
    struct machine *m = help_machine(text);
    struct schedule *s = help_parse(m, name, text, &d);
    diags_print(&d, stderr);
    assert_non_null(s);
    const char *error = text_of(x, n, "error"), *values = text_of(x, n, "values");
    if (error) {
        assert_int_equal(n, 1);
        check_error(s, name, error);
    } else {
        assert_non_null(text_of(x, n, "cycles"));
        check_figures(s, name, x, n);
        if (!values) sim_check_values(s, name);
    }
    schedule_free(s);
    machine_free(m);
    diags_free(&d);
    arena_free(&arena);
}

/* Those of the verifier's tests, on three kinds of machine. */
static void check_others(void **state) {
    static const char *const name[] = {"gemm", "lanes", "board", "fragments"};
    (void)state;
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        struct arena arena;
        struct diags d;
        arena_init(&arena);
        diags_init(&d);
        const char *text =
            help_read(&arena, arena_printf(&arena, "%s/../%s.sched", FOLDER, name[k]));
        struct machine *m = help_machine(text);
        struct schedule *s = help_parse(m, name[k], text, &d);
        assert_non_null(s);
        sim_check_values(s, name[k]);
        schedule_free(s);
        machine_free(m);
        diags_free(&d);
        arena_free(&arena);
    }
}

static int is_schedule(const struct dirent *f) {
    size_t n = strlen(f->d_name);
    return n > 6 && strcmp(f->d_name + n - 6, ".sched") == 0;
}

int main(void) {
    struct dirent **file;
    int n = scandir(FOLDER, &file, is_schedule, alphasort);
    if (n < 20) {
        fprintf(stderr, "%s: %d schedules, expected at least 20\n", FOLDER, n);
        return 1;
    }
    struct CMUnitTest *test = calloc((size_t)n + 2, sizeof *test);
    for (int k = 0; k < n; k++)
        test[k] = (struct CMUnitTest){
            .name = file[k]->d_name, .test_func = check_file, .initial_state = file[k]->d_name};
    test[n] = (struct CMUnitTest)cmocka_unit_test(check_others);
    test[n + 1] = (struct CMUnitTest)cmocka_unit_test(check_given_up);
    int failed = _cmocka_run_group_tests("simulated cycles", test, (size_t)n + 2, NULL, NULL);
    for (int k = 0; k < n; k++) free(file[k]);
    free(file);
    free(test);
    return failed;
}
