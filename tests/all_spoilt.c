/* Schedules of random programs on all machine files, each with some small damages: what is refused
 * when it is read, what the verifier and the checker of the chain of rewrites refuse, and what they
 * cannot prove, with which words. Kept in tests/data/golden/all_spoilt.txt, a line for each
 * schedule and one for each sentence. scheduler_damaged damages everything of a few schedules. */
#include "command/isamap_int.h"
#include "scheduler/schedule/schedule.h"
#include "tests/damage.h"
#include "tests/drawn.h"

enum { FIRST_SEED = 1000, STEPS = 5000, DAMAGES_EACH = 40 };

static struct schedule *read_text(struct machine *m, const char *text, struct diags *said) {
    struct source source = {
        .file = "spoilt", .text = text, .length = strlen(text), .line0 = 1, .col0 = 1};
    return schedule_parse(m, &source, said);
}

static void prove(struct damaged *d, const struct schedule *s, struct diags *said) {
    struct text why = {0}, what = {0}, all = {0};
    struct chain_report report = {0};
    int sampled = 0;
    enum proof proof = schedule_prove(s, STEPS, &sampled, &why, said);
    bool right = chain_check(s, &report, &what, said);
    text_printf(&all, "%s %d %s", proof_name[proof], sampled, why.at ? why.at : "");
    damage_said(d, all.at, all.at);
    text_printf(&all, "; chain %s %d %s", right ? "right" : "wrong", (int)report.evidence,
                what.at ? what.at : "");
    damage_said(d, right ? "chain right" : "chain wrong", all.at);
    text_free(&all);
    text_free(&why);
    text_free(&what);
}

static void try_schedule(struct damaged *d, void *machine, const char *text) {
    struct diags said;
    diags_init(&said);
    struct schedule *s = read_text(machine, text, &said);
    if (s) prove(d, s, &said);
    damage_diags(d, &said);
    schedule_free(s);
    diags_free(&said);
}

/* As text; NULL where the program is refused. */
static char *compiled(struct machine *m, const char *program) {
    struct job job;
    struct kernel **kernel;
    struct text out = {0};
    isamap *im = isamap_open();
    struct source source = {
        .file = "drawn.isam", .text = program, .length = strlen(program), .line0 = 1, .col0 = 1};
    job_init(&job, "drawn.isam");
    if (kernel_parse(&job.arena, &source, &kernel, &im->diags) == 1)
        job.own_program = program_bind_sizes(kernel[0], NULL, NULL, &im->diags);
    assert_non_null(job.own_program);
    job.program = job.own_program;
    job.name = job.program->name;
    job.machine = m;
    if (job_compile(im, &job)) schedule_print(job.schedule, &out);
    job.machine = NULL;
    job_free(&job);
    isamap_close(im);
    return out.at;
}

/* ---- damages ---- */
static const char *line_end(const char *at) {
    at += strcspn(at, "\n");
    return *at ? at + 1 : at;
}

/* The line at `at` is missing, stands twice, or changes places with the next. */
static char *other_line(struct arena *a, const char *text, const char *at, int damage) {
    const char *end = line_end(at), *next = line_end(end);
    int n = (int)(end - at), before = (int)(at - text);
    if (damage == 0) return arena_printf(a, "%.*s%s", before, text, end);
    if (damage == 1) return arena_printf(a, "%.*s%.*s%s", before, text, n, at, at);
    return arena_printf(a, "%.*s%.*s%.*s%s", before, text, (int)(next - end), end, n, at, next);
}

static char *other_number(struct arena *a, const char *text, const char *at, int by) {
    char *end;
    long long was = strtoll(at, &end, 10);
    return arena_printf(a, "%.*s%lld%s", (int)(at - text), text, was + by, end);
}

static bool number_begins(const char *text, const char *at) {
    return isdigit((unsigned char)*at) && (at == text || !damage_word(at[-1]));
}

/* Damage `which` of all that there are; NULL: there are fewer. */
static char *spoil(struct arena *a, const char *text, int which) {
    for (const char *at = text; *at; at++) {
        bool line = at == text || at[-1] == '\n', number = number_begins(text, at);
        if (line && which < 3) return other_line(a, text, at, which);
        if (number && which - 3 * line < 2)
            return other_number(a, text, at, which - 3 * line ? 1 : -1);
        which -= 3 * line + 2 * number;
    }
    return NULL;
}

static int damages_of(const char *text) {
    int n = 0;
    for (const char *at = text; *at; at++)
        n += 3 * (at == text || at[-1] == '\n') + 2 * number_begins(text, at);
    return n;
}

static void machine_damages(void *user, const char *file, int number) {
    struct damaged *d = user;
    struct machine *m = drawn_machine(file, "cpu-avx2");
    char *program = drawn_program(m, FIRST_SEED + number), *text = compiled(m, program);
    int n = text ? damages_of(text) : 0, step = n / DAMAGES_EACH + 1;
    for (int k = number % step; k < n; k += step) {
        d->tried++;
        try_schedule(d, m, spoil(&d->arena, text, k));
    }
    free(text);
    free(program);
    machine_free(m);
}

static void spoilt(void **state) {
    struct text seen = {0};
    struct damaged *d = damage_open();
    (void)state;
    drawn_machines(machine_damages, d);
    damage_close(d, "random programs", &seen);
    golden_check("all_spoilt", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(spoilt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
