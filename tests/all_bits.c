/* Compiled programs as instruction words: the words, read again and simulated from the machine file
 * as the device beside the host, give the interpreter's values. */
#include "tests/scheduler_plan.h"
#include "backends/bits/bits.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* A device that knows words and a machine file alone. */
struct words_device {
    const struct machine *m; /* beside its host */
    struct bits_encoder *encoder;
    struct diags *diags;
    double cycles;
    int64_t words;
    int launches;
};

static bool device_step(void *user, const struct node *n, const int64_t *value,
                        const int64_t *slot) {
    struct words_device *w = user;
    return bits_add(w->encoder, n, value, slot);
}

static bool simulate(struct words_device *w, const struct bits_launch *l, uint8_t *home,
                     int64_t bytes) {
    struct text t = {0};
    struct sim_result r;
    struct sim_options options = {0};
    bool ok = bits_schedule(w->m, "words", l->stream, l->bytes, home, bytes, &t, w->diags);
    struct source source = {"words", t.at, t.n, 1, 1};
    struct schedule *s = ok ? schedule_parse(w->m, &source, w->diags) : NULL;
    if (s) {
        void **data = calloc((size_t)s->program->nbuffers + 1, sizeof *data);
        data[0] = home;
        ok = sim_run(s, data, &options, &r, w->diags);
        w->cycles += r.cycles;
        sim_result_free(&r);
        free(data);
        schedule_free(s);
    }
    text_free(&t);
    return ok && s;
}

static bool device_run(void *user, uint8_t *home, int64_t bytes, bool prepare) {
    struct words_device *w = user;
    struct bits_launch l;
    (void)prepare;
    if (!bits_pending(w->encoder)) return true;
    if (!bits_take(w->encoder, bytes, &l)) return false;
    w->words += l.n;
    w->launches++;
    return simulate(w, &l, home, bytes);
}

/* The schedule's device is the words; the values are the program's. */
static struct words_device check_schedule(const struct schedule *s, const struct program *p,
                                          struct diags *d) {
    struct sim_result r;
    void **want = plan_data(p), **got = plan_data(s->program);
    assert_true(program_run(p, want, NULL, NULL, d));
    struct words_device w = {.m = s->machine, .diags = d};
    w.encoder = bits_open(s, 0, d);
    struct sim_device device = {device_step, device_run, &w};
    bool ok = sim_run(s, got, &(struct sim_options){.device = &device}, &r, d);
    if (!ok) diags_print(d, stderr);
    assert_true(ok);
    assert_int_equal(plan_differ(p, want, s->program, got), 0);
    sim_result_free(&r);
    assert_true(sim_run(s, NULL, &(struct sim_options){.no_values = true}, &r, d));
    if (w.launches == 1 && r.host_cycles == 0) /* the last words only tell the host */
        assert_true(w.cycles <= r.cycles && w.cycles >= r.cycles - 8);
    sim_result_free(&r);
    bits_close(w.encoder);
    plan_data_free(p, want);
    plan_data_free(s->program, got);
    return w;
}

static struct words_device check_words(const char *machine, const char *text) {
    struct compiled x;
    compiled_open(&x, machine, "cpu-scalar", NULL, text, NULL, 0);
    compiled_by(&x, &plan_best, 1, &(struct scheduler_options){.threads = 1});
    struct words_device w = check_schedule(x.s, x.p, &x.diags);
    compiled_free(&x);
    return w;
}

static void edge16(void **state) {
    static const char *const text[] = {gmm_i8, c2d_i8, c1d_i8, layer_i8, gmv_i8};
    (void)state;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        struct words_device w = check_words("edge16", text[i]);
        assert_true(w.launches >= 1);
        assert_true(w.words > 4);
    }
}

/* Entries in a table: the words of the loops over them, and the entries as they lie in memory. */
static void tables(void **state) {
    struct diags d;
    struct arena a;
    (void)state;
    diags_init(&d);
    arena_init(&a);
    struct machine *m = machine_load("vdla", NULL, &d);
    struct source source = {.file = "tests/data/backends/table.sched", .line0 = 1, .col0 = 1};
    source.text = file_read(&a, source.file, 1 << 20, &source.length, &d);
    struct schedule *s = schedule_parse(m, &source, &d);
    if (!s) diags_print(&d, stderr);
    assert_non_null(s);
    bool verified = schedule_verify(s, &(struct verify_options){0}, &d);
    if (!verified) diags_print(&d, stderr);
    assert_true(verified);
    assert_int_equal(check_schedule(s, s->program, &d).words, 7);
    schedule_free(s);
    machine_free(m);
    arena_free(&a);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(edge16), cmocka_unit_test(tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
