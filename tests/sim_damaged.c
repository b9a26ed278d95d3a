/* Schedules with small damages on the simulator: what it refuses, with which words, and of what it
 * runs the cycles, the figures and the results. Kept in tests/data/golden/sim_damaged.txt. */
#include "tests/damage.h"
#include "tests/sim_help.h"

#include <glob.h>

enum { STEPS = 3000, MOST_BYTES = 1 << 16 };

static bool is_small(const struct program *p) {
    size_t n = 0;
    for (int b = 0; b < p->nbuffers; b++) {
        if (p->buffer[b].elements > MOST_BYTES) return false;
        n += sim_bytes(&p->buffer[b]);
    }
    return n <= MOST_BYTES;
}

/* What the results are, as a hash. */
static uint32_t results(const struct program *p, void **data) {
    uint32_t hash = GOLDEN_HASH;
    for (int b = 0; b < p->nbuffers; b++)
        for (size_t k = 0; data[b] && k < sim_bytes(&p->buffer[b]); k++)
            hash = (hash ^ ((uint8_t *)data[b])[k]) * 16777619u;
    return hash;
}

static void figures(const struct machine *m, const struct sim_result *r, struct text *out) {
    text_printf(out, "%.6g cycles, %.6g of the host, %lld instructions, %lld MACs, %.4g used\n",
                r->cycles, r->host_cycles, (long long)r->instructions, (long long)r->macs,
                r->utilisation);
    text_printf(out, "%.6g %.6g %.6g %.6g bytes, %.6g pJ\n", r->home_read_bytes,
                r->home_write_bytes, r->host_read_bytes, r->host_write_bytes, r->energy);
    for (int q = 0; q < m->nqueues; q++)
        text_printf(out, "queue %.6g %.6g %lld\n", r->queue[q].busy, r->queue[q].wait,
                    (long long)r->queue[q].instructions);
    for (int b = 0; b < m->nbuses; b++)
        text_printf(out, "bus %.6g %.6g\n", r->bus[b].bytes, r->bus[b].busy);
    for (int s = 0; s < m->nsyncs; s++)
        text_printf(out, "sync %lld %.6g %lld\n", (long long)r->sync[s].pushes, r->sync[s].wait,
                    (long long)r->sync[s].peak);
    for (int k = 0; k < m->nmemories; k++)
        text_printf(out, "memory %lld\n", (long long)r->peak_bytes[k]);
    for (int i = 0; i <= m->ninstrs; i++)
        text_printf(out, "on %lld %lld\n", (long long)r->macs_on[i],
                    (long long)r->operations_on[i]);
}

/* Cycles alone, cycles in another order, and with values. */
static void simulate(struct damaged *d, const struct schedule *s, struct diags *said) {
    static const struct sim_options way[] = {
        {.no_values = true, .steps = STEPS},
        {.no_values = true, .walk = true, .with_prepare_cost = true, .steps = STEPS},
        {.steps = STEPS, .order_seed = 5}};
    struct text out = {0};
    struct sim_result r;
    for (int k = 0; k < 3; k++) {
        void **data = k == 2 && is_small(s->program) ? sim_data(s->program, 1) : NULL;
        if (k == 2 && !data) continue;
        bool ran = sim_run(s, data, &way[k], &r, said);
        if (ran && k < 2) figures(s->machine, &r, &out);
        if (ran && data) text_printf(&out, "%08x\n", results(s->program, data));
        damage_said(d, ran ? "runs" : "does not run", out.at ? out.at : "");
        sim_result_free(&r);
        if (data) sim_data_free(s->program, data);
    }
    text_free(&out);
}

static void schedule_try(struct damaged *d, void *user, const char *text) {
    struct diags said;
    diags_init(&said);
    struct schedule *s = help_parse(user, "damaged", text, &said);
    if (s) {
        simulate(d, s, &said);
        damage_diags(d, &said);
    }
    schedule_free(s);
    diags_free(&said);
}

static void damaged_schedules(void **state) {
    struct damaged *d = damage_open();
    struct text seen = {0};
    glob_t found;
    (void)state;
    assert_int_equal(glob("tests/data/schedules/sim/*.sched", 0, NULL, &found), 0);
    for (size_t k = 0; k < found.gl_pathc; k++) {
        struct arena arena;
        arena_init(&arena);
        char *text = help_read(&arena, found.gl_pathv[k]);
        struct machine *m = help_machine(text);
        damage_all(d, text, "=+*", 2, schedule_try, m);
        machine_free(m);
        arena_free(&arena);
    }
    globfree(&found);
    damage_close(d, "tests/data/schedules/sim", &seen);
    golden_check("sim_damaged", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
