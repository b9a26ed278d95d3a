/* Temporaries that are made again, in the symbolic proof: sums of rows that neighbouring windows
 * share. The walk of elements says which schedules are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "by_hand.h"

/* Rows of sums that windows share are made again in each turn, of four terms each in two halves.
 * `begin`: how often a row's sum begins; `term`: the first of the second half's; `to`: where these
 * are added. */
static void again(const char *begin, const char *term, const char *to, bool right) {
    char text[3000];
    snprintf(
        text, sizeof text,
        "schedule again on \"cpu-avx2\" { program { kernel again() {\n"
        "in X: f32[17, 4, 8] out O: f32[16, 8] temp T: f32[17, 8]\n"
        "axes p: 16, r: 17, k: 4, i: 8\n"
        "T[r, i] = 0\n T[r, i] += X[r, k, i]\n O[p, i] = max(T[p, i], T[p + 1, i]) } }\n"
        "place X: X in dram at 0 bytes 2176 argument\n"
        "place O: O in dram at 2176 bytes 512 argument\n"
        "place T: T in l2 at 0 bytes 160 local place x: X in ymm at 0 bytes 32 local\n"
        "place t: T in ymm at 32 bytes 32 local place u: T in ymm at 64 bytes 32 local\n"
        "place v: T in ymm at 128 bytes 32 local place o: O in ymm at 96 bytes 32 local\n"
        "place w: T in ymm at 160 bytes 32 local\n"
        "run { loop g = 0 to 16 step 4 {\n"
        "loop r = g to g + 5 { loop once = 0 to %s {\n"
        "issue fill.f32(s = imm 0, C = t) do 0 axes (j: i) at (r = r, i = 0) }\n"
        "loop k = 0 to 2 { issue load.f32(S = X + (r*4 + k)*32, D = x)\n"
        "issue add.acc.f32(A = x, C = t) do 1 axes (j: i) at (r = r, k = k, i = 0) }\n"
        "loop k = %s to 4 { issue load.f32(S = X + (r*4 + k)*32, D = x)\n"
        "issue add.acc.f32(A = x, C = %s) do 1 axes (j: i) at (r = r, k = k, i = 0) }\n"
        "issue store.f32(S = %s, D = T + (r - g)*32) }\n"
        "loop p = g to g + 4 {\n"
        "issue load.f32(S = T + (p - g)*32, D = u) issue load.f32(S = T + (p + 1 - g)*32, D = v)\n"
        "issue max.f32(A = u, B = v, C = o) do 2 axes (j: i) at (p = p, i = 0)\n"
        "issue store.f32(S = o, D = O + p*32) } } } }",
        begin, term, to, to);
    expect("cpu-avx2", text, right);
}

static void sums_made_again(void **state) {
    (void)state;
    again("1", "2", "t", RIGHT);
    again("2", "2", "t", RIGHT); /* begun twice before any term */
    /* a row goes on with the sum that an earlier turn, or row, ended */
    again("(g == 0)", "2", "t", WRONG);
    again("(3 < r)", "2", "t", WRONG);
    again("(r != g)", "2", "t", WRONG);
    /* a term twice; a term left out */
    again("1", "1", "t", WRONG);
    again("1", "3", "t", WRONG);
    /* one half in each of two places */
    again("1", "2", "w", WRONG);
}

/* One operation on the sum of row g + row: it begins in a register, gets a term, or goes on in
 * another register by way of the cache. */
struct operation {
    enum { BEGIN, TERM, COPY } kind;
    int row, in, term;
};

static void put_operation(struct text *run, const struct operation *o) {
    static const char *const name[] = {"t", "u", "v"};
    switch (o->kind) {
    case BEGIN:
        text_printf(run,
                    "issue fill.f32(s = imm 0, C = %s) do 0 axes (j: i) at (r = g + %d, i = 0)\n",
                    name[o->in], o->row);
        break;
    case TERM:
        text_printf(run,
                    "issue load.f32(S = X + ((g + %d)*2 + %d)*32, D = x) issue add.acc.f32(A = x, "
                    "C = %s) do 1 axes (j: i) at (r = g + %d, k = %d, i = 0)\n",
                    o->row, o->term, name[o->in], o->row, o->term);
        break;
    case COPY:
        text_printf(run, "issue store.f32(S = %s, D = T + %d) issue load.f32(S = T + %d, D = %s)\n",
                    name[o->in], o->row * 32, o->row * 32, name[o->term]);
    }
}

/* The sums of two rows, some operations of them exchanged, left out, twice, or of something else.
 */
static int draw_operations(uint64_t *seed, struct operation *o) {
    int n = 0;
    for (int row = 0; row < 2; row++) {
        o[n++] = (struct operation){BEGIN, row, row, 0};
        o[n++] = (struct operation){TERM, row, row, 0};
        if (draw(seed, 6) == 0) o[n++] = (struct operation){COPY, row, row, row};
        o[n++] = (struct operation){TERM, row, row, 1};
    }
    for (int k = (int)draw(seed, 4); k > 0; k--) {
        int at = (int)draw(seed, (uint64_t)n), other = (int)draw(seed, (uint64_t)n);
        struct operation was = o[at];
        switch (draw(seed, 6)) {
        case 0:
            o[at] = o[other], o[other] = was;
            break;
        case 1:
            o[at] = o[--n];
            break;
        case 2:
            o[n++] = was;
            break;
        case 3:
            o[at].row = 1 - was.row;
            break;
        case 4:
            o[at].in = (int)draw(seed, 3);
            break;
        default:
            o[n++] = (struct operation){COPY, was.row, was.in, (int)draw(seed, 3)};
        }
    }
    return n;
}

/* Both rows in turn, and O from t and u. */
static void put_sums(struct text *text, const struct operation *o, int n) {
    text_printf(text,
                "schedule sums on \"cpu-avx2\" { program { kernel sums() {\n"
                "in X: f32[4, 2, 8] out O: f32[3, 8] temp T: f32[4, 8]\n"
                "axes p: 3, r: 4, k: 2, i: 8\n"
                "T[r, i] = 0\n T[r, i] += X[r, k, i]\n O[p, i] = max(T[p, i], T[p + 1, i]) } }\n"
                "place X: X in dram at 0 bytes 256 argument\n"
                "place O: O in dram at 256 bytes 96 argument\n"
                "place T: T in l2 at 0 bytes 64 local place x: X in ymm at 0 bytes 32 local\n"
                "place t: T in ymm at 32 bytes 32 local place u: T in ymm at 64 bytes 32 local\n"
                "place v: T in ymm at 96 bytes 32 local place o: O in ymm at 128 bytes 32 local\n"
                "run { loop g = 0 to 3 {\n");
    for (int i = 0; i < n; i++) put_operation(text, &o[i]);
    text_printf(text, "issue max.f32(A = t, B = u, C = o) do 2 axes (j: i) at (p = g, i = 0)\n"
                      "issue store.f32(S = o, D = O + g*32) } } }");
}

/* A part of a sum is kept elsewhere, and when the sum has ended, a term comes to it once more. */
static void parts_kept_apart(void **state) {
    (void)state;
    static const struct operation wrong[] = {{BEGIN, 1, 1, 0}, {TERM, 1, 1, 0}, {TERM, 1, 1, 1},
                                             {BEGIN, 0, 0, 0}, {TERM, 0, 0, 0}, {COPY, 0, 0, 2},
                                             {TERM, 0, 0, 1},  {TERM, 0, 2, 0}, {COPY, 0, 2, 0}};
    struct text text = {0};
    put_sums(&text, wrong, 7);
    expect("cpu-avx2", text.at, RIGHT);
    text_free(&text);
    put_sums(&text, wrong, 9);
    expect("cpu-avx2", text.at, WRONG);
    text_free(&text);
}

static void random_sums_are_not_proved_wrongly(void **state) {
    (void)state;
    enum { TRIES = 2500 };
    isamap *im = isamap_open();
    struct job j;
    uint64_t seed = 11;
    int proved = 0, right = 0;
    isamap_option(im, "machine", "cpu-avx2");
    job_init(&j, "examples/f32/gmm.isam");
    assert_true(job_machine(im, &j, USE_SIM));
    for (int k = 0; k < TRIES; k++) {
        struct text text = {0}, why = {0};
        struct operation o[16];
        struct diags ignored;
        put_sums(&text, o, draw_operations(&seed, o));
        struct source source = {.file = "x.sched", .text = text.at, .length = text.n};
        struct schedule *s = schedule_parse(j.machine, &source, &im->diags);
        assert_non_null(s);
        diags_init(&ignored);
        bool walked = schedule_verify(s, NULL, &ignored),
             claimed = schedule_prove_symbolically(s, 0, &why);
        if (claimed && !walked) fail_msg("proved, but wrong:\n%s", text.at);
        proved += claimed;
        right += walked;
        schedule_free(s);
        diags_free(&ignored);
        text_free(&text);
        text_free(&why);
    }
    print_message("%d of %d right ones proved, %d wrong\n", proved, right, TRIES - right);
    assert_true(proved > right * 9 / 10 && right > 500 && TRIES - right > 500);
    job_free(&j);
    isamap_close(im);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_made_again),
                                       cmocka_unit_test(parts_kept_apart),
                                       cmocka_unit_test(random_sums_are_not_proved_wrongly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
