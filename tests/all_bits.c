/* Compiled programs as instruction words: the words, read again and simulated from the machine file
 * as the device beside the host, give the interpreter's values. */
#include "tests/scheduler_plan.h"
#include "backends/bits.h"
#include "sim/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define VDLA "tests/data/machines/vdla.xml"

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
    bool ok = bits_schedule(w->m, "words", l->stream, l->bytes, bytes, &t, w->diags);
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

/* Returns launches; the values are compared. */
static struct words_device check_words(const char *machine, const char *text) {
    struct compiled x;
    struct sim_result r;
    compiled_open(&x, machine, "cpu-scalar", NULL, text, NULL, 0);
    compiled_by(&x, &plan_best, 1, &(struct scheduler_options){.threads = 1});
    void **want = plan_data(x.p), **got = plan_data(x.s->program);
    assert_true(program_run(x.p, want, NULL, NULL, &x.diags));
    struct words_device w = {.m = x.m, .diags = &x.diags};
    w.encoder = bits_open(x.s, 0, &x.diags);
    struct sim_device device = {device_step, device_run, &w};
    bool ok = sim_run(x.s, got, &(struct sim_options){.device = &device}, &r, &x.diags);
    if (!ok) diags_print(&x.diags, stderr);
    assert_true(ok);
    assert_int_equal(plan_differ(x.p, want, x.s->program, got), 0);
    sim_result_free(&r);
    assert_true(sim_run(x.s, NULL, &(struct sim_options){.no_values = true}, &r, &x.diags));
    if (w.launches == 1 && r.host_cycles == 0) /* the last words only tell the host */
        assert_true(w.cycles <= r.cycles && w.cycles >= r.cycles - 8);
    sim_result_free(&r);
    bits_close(w.encoder);
    plan_data_free(x.p, want);
    plan_data_free(x.s->program, got);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(edge16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
