/* VDLA twice: its model in RTL and the simulator of its machine file run the same streams of
 * instruction words; the bytes in DRAM are equal at the end, and each instruction starts and ends
 * in the same cycle. */
#include "tests/vdla_stream.h"

#include "backends/model.h"
#include "sim/sim.h"

#include <stdio.h>
#include <unistd.h>

struct pair {
    struct machine *machine;
    struct model model;
};

/* ISAMAP_RANDOM=n: n times as many streams. */
static int times_as_many(void) {
    const char *text = getenv("ISAMAP_RANDOM");
    return text && atoi(text) > 0 ? atoi(text) : 1;
}

static struct machine *load(int64_t rate, int64_t latency) {
    struct binding at[] = {{"RATE", rate}, {"LAT", latency}};
    struct bindings set = {at, 2, NULL};
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load("vdla", &set, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

static bool open_model(const char *checks, struct pair *p) {
    struct diags d;
    if (system("command -v verilator >/dev/null 2>&1")) return false;
    diags_init(&d);
    setenv("ISAMAP_CACHE", *checks ? BUILD_DIR "/models-checked" : BUILD_DIR "/models", 1);
    if (*checks)
        setenv("VDLA_CHECKS", checks, 1);
    else
        unsetenv("VDLA_CHECKS");
    p->machine = load(8, 60);
    bool ok = model_load(p->machine, NULL, &p->model, &d);
    diags_print(&d, stderr);
    assert_true(ok);
    diags_free(&d);
    return true;
}

static void close_model(struct pair *p) {
    model_free(&p->model);
    machine_free(p->machine);
}

/* ---- one run of each ---- */

struct outcome {
    bool ok;
    char why[DEVICE_TEXT];
    uint8_t *home;
    double cycles;
    struct {
        double start, end;
        int queue;
    } at[STREAM_MOST];
    int n;
};

struct conditions {
    int64_t rate, latency, high; /* latency to high: random */
    uint64_t seed;
};

static void outcome_free(struct outcome *o) {
    free(o->home);
    free(o);
}

static struct outcome *run_simulator(const struct stream *s, const struct conditions *c) {
    struct outcome *o = calloc(1, sizeof *o);
    struct machine *m = load(c->rate, c->latency);
    struct diags d;
    struct text t = {0};
    diags_init(&d);
    bool ok =
        bits_schedule(m, "stream", s->word[0], 16 * (int64_t)s->n, s->home, STREAM_HOME, &t, &d);
    struct source source = {.file = "stream", .text = t.at, .length = t.n, .line0 = 1, .col0 = 1};
    struct schedule *schedule = ok ? schedule_parse(m, &source, &d) : NULL;
    diags_print(&d, stderr);
    assert_non_null(schedule);
    void **data = calloc((size_t)schedule->program->nbuffers + 1, sizeof *data);
    o->home = malloc(STREAM_HOME);
    memcpy(o->home, s->home, STREAM_HOME);
    for (int b = 0; b < schedule->program->nbuffers; b++)
        if (schedule->program->buffer[b].role == ROLE_INOUT) data[b] = o->home;
    struct sim_options options = {.times = true};
    if (c->high > c->latency) {
        options.latency_low = (uint64_t)c->latency;
        options.latency_high = (uint64_t)c->high;
        options.latency_seed = c->seed;
    }
    struct sim_result r;
    o->ok = sim_run(schedule, data, &options, &r, &d);
    diags_print(&d, stderr);
    o->cycles = r.cycles;
    for (size_t k = 0; k < r.ntimes; k++) {
        int at = (int)r.time[k].number;
        assert_true(at < STREAM_MOST);
        o->at[at].start = r.time[k].start;
        o->at[at].end = r.time[k].end;
        o->at[at].queue = r.time[k].queue;
        o->n++;
    }
    sim_result_free(&r);
    free(data);
    schedule_free(schedule);
    text_free(&t);
    diags_free(&d);
    machine_free(m);
    return o;
}

static uint64_t counter(const struct device *v, void *chip, const char *name) {
    struct device_counter c[64];
    size_t n = v->counters(chip, c, 64);
    for (size_t k = 0; k < n && k < 64; k++)
        if (!strcmp(c[k].name, name)) return c[k].value;
    fail_msg("no counter '%s'", name);
    return 0;
}

static struct outcome *run_rtl(const struct pair *p, const struct stream *s,
                               const struct conditions *c) {
    struct outcome *o = calloc(1, sizeof *o);
    const struct device *v = p->model.device;
    struct device_setting set[] = {{"RATE", c->rate},
                                   {"LAT", c->latency},
                                   {"latency.high", c->high > c->latency ? c->high : c->latency},
                                   {"latency.seed", (int64_t)c->seed}};
    void *chip = v->open(set, 4, o->why);
    if (!chip) print_error("%s\n", o->why);
    assert_non_null(chip);
    o->home = malloc(STREAM_HOME);
    assert_int_equal(v->allocate(chip, STREAM_HOME, 16), 0);
    int64_t at = v->allocate(chip, 16 * (int64_t)s->n, 16);
    assert_int_equal(v->write(chip, 0, s->home, STREAM_HOME), 0);
    assert_int_equal(v->write(chip, at, s->word, 16 * (int64_t)s->n), 0);
    assert_int_equal(v->launch(chip, at, s->n, 16 * (int64_t)s->n, NULL, 0, o->why), 0);
    o->ok = v->wait(chip, 50000000, o->why) == DEVICE_DONE;
    assert_int_equal(v->read(chip, 0, o->home, STREAM_HOME), 0);
    o->cycles = (double)counter(v, chip, "cycles");
    struct device_record r[64];
    for (size_t first = 0, n; (n = v->records(chip, r, first, 64)) > first; first += 64)
        for (size_t k = 0; k < 64 && first + k < n; k++) {
            assert_true(r[k].number < STREAM_MOST);
            o->at[r[k].number].start = (double)r[k].start;
            o->at[r[k].number].end = (double)r[k].end;
            o->at[r[k].number].queue = machine_queue(p->machine, r[k].queue);
            o->n++;
        }
    v->close(chip);
    return o;
}

/* What differs first; NULL: nothing. */
static const char *difference(const struct outcome *a, const struct outcome *b, char *text) {
    if (a->ok != b->ok) return a->ok ? b->why : a->why;
    if (a->n != b->n) return sprintf(text, "%d and %d instructions", a->n, b->n), text;
    for (int k = 0; k < a->n; k++)
        if (a->at[k].start != b->at[k].start || a->at[k].end != b->at[k].end ||
            a->at[k].queue != b->at[k].queue)
            return sprintf(
                       text,
                       "instruction %d: queue %d from %.17g to %.17g, queue %d from %.17g to %.17g",
                       k, a->at[k].queue, a->at[k].start, a->at[k].end, b->at[k].queue,
                       b->at[k].start, b->at[k].end),
                   text;
    if (a->cycles != b->cycles)
        return sprintf(text, "%.17g and %.17g cycles", a->cycles, b->cycles), text;
    for (int k = 0; k < STREAM_HOME; k++)
        if (a->home[k] != b->home[k])
            return sprintf(text, "byte 0x%x: %d and %d", (unsigned)k, a->home[k], b->home[k]), text;
    return NULL;
}

static void expect_equal(const struct pair *p, const struct stream *s, const struct conditions *c) {
    char text[200];
    struct outcome *sim = run_simulator(s, c), *rtl = run_rtl(p, s, c);
    const char *what = difference(sim, rtl, text);
    if (what)
        fail_msg("simulator and RTL differ at %lld bytes a cycle, latency %lld to %lld: %s",
                 (long long)c->rate, (long long)c->latency, (long long)c->high, what);
    assert_true(sim->ok && sim->n == s->n - 1);
    outcome_free(sim);
    outcome_free(rtl);
}

/* ---- tests ---- */

static void streams(const char *checks, int n, int instructions) {
    static const struct conditions all[] = {
        {8, 60, 0, 1}, {8, 20, 0, 1}, {16, 200, 0, 1}, {32, 60, 0, 1},    {12, 33, 0, 1},
        {64, 8, 0, 1}, {5, 97, 0, 1}, {8, 20, 200, 7}, {24, 20, 200, 11}, {32, 8, 300, 5}};
    struct pair p;
    if (!open_model(checks, &p)) skip();
    for (int k = 0; k < n; k++) {
        struct stream *s = stream_make(p.machine, (uint64_t)k + 1, instructions);
        expect_equal(&p, s, &all[k % 10]);
        stream_free(s);
    }
    close_model(&p);
}

static void random_streams_agree(void **state) {
    (void)state;
    streams("", 20 * times_as_many(), 250);
}

static void with_assertions_and_random_initial_values(void **state) {
    (void)state;
    streams("1", 5 * times_as_many(), 150);
}

/* ---- mutants: what the comparison must see ---- */

enum { MUTANTS = 6, MOST_TRIES = 12 };

/* Changes one word; false: it cannot be changed so. */
static bool mutate(struct stream *s, int kind, int at) {
    const struct bit_word *nop = stream_form(s, "nop.load"), *w;
    uint64_t op = field_unpack(stream_field(nop, "op"), s->word[at]);
    static const char *const token[] = {"push_prev", "push_next", "pop_prev", "pop_next"};
    static const struct {
        const char *id, *field;
    } change[] = {{"ld.inp", "x0"}, {"alu.add", "code"}, {"gemm", "overwrite"}, {"st", "shift"}};
    if (kind < 2) { /* a token less, given or taken */
        for (int k = 2 * kind; k < 2 * kind + 2; k++) {
            if (!field_unpack(stream_field(nop, token[k]), s->word[at])) continue;
            stream_put(s->word[at], stream_field(nop, token[k]), 0);
            return true;
        }
        return false;
    }
    w = stream_form(s, change[kind - 2].id);
    const struct bit_field *f = stream_field(w, change[kind - 2].field);
    if (op != stream_field(w, "op")->value) return false;
    if (kind == 2 &&
        field_unpack(stream_field(w, "kind"), s->word[at]) != stream_field(w, "kind")->value)
        return false;
    if (kind == 5 &&
        field_unpack(stream_field(w, "kind"), s->word[at]) != stream_field(w, "kind")->value)
        return false;
    int64_t v = (int64_t)field_unpack(f, s->word[at]);
    stream_put(s->word[at], f, kind == 3 ? (v + 1) % 3 : v ^ 1);
    return true;
}

static void mutants_are_seen(void **state) {
    (void)state;
    struct conditions c = {8, 60, 0, 1};
    struct pair p;
    char text[200];
    if (!open_model("", &p)) skip();
    struct stream *s = stream_make(p.machine, 99, 120);
    struct outcome *right = run_simulator(s, &c);
    for (int kind = 0; kind < MUTANTS; kind++) {
        int seen = 0, tried = 0;
        for (int at = 3; at < s->n - 1 && tried < MOST_TRIES && !seen; at++) {
            uint8_t kept[16];
            memcpy(kept, s->word[at], 16);
            if (!mutate(s, kind, at)) continue;
            struct outcome *wrong = run_rtl(&p, s, &c);
            seen += difference(right, wrong, text) != NULL;
            tried++;
            outcome_free(wrong);
            memcpy(s->word[at], kept, 16);
        }
        if (!seen) print_error("kind %d: none of %d\n", kind, tried);
        assert_true(seen > 0);
    }
    struct outcome *again = run_rtl(&p, s, &c);
    assert_null(difference(right, again, text));
    outcome_free(again);
    outcome_free(right);
    stream_free(s);
    close_model(&p);
}

/* A token that nobody gives: the model says who waits for what. */
static void a_deadlock_names_queue_and_token(void **state) {
    (void)state;
    struct conditions c = {8, 60, 0, 1};
    struct pair p;
    if (!open_model("", &p)) skip();
    struct stream *s = stream_make(p.machine, 5, 40);
    stream_set(s, "nop.load", 0, "pop_next", 1);
    struct outcome *o = run_rtl(&p, s, &c);
    assert_false(o->ok);
    assert_non_null(strstr(o->why, "queue 'load' waits at instruction 0 for 'c2l'"));
    outcome_free(o);
    stream_free(s);
    close_model(&p);
}

/* An argument: the test of that name alone. */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams_agree),
        cmocka_unit_test(mutants_are_seen),
        cmocka_unit_test(a_deadlock_names_queue_and_token),
        cmocka_unit_test(with_assertions_and_random_initial_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
