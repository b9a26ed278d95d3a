/* Nests in the wrong order: of each two neighbours in a schedule that change places, what the one
 * wrote for the other is read before anything of it is written. That is refused, also where the
 * elements are too many to be walked; neighbours that have nothing to do with each other may change
 * places. Then what writes an array is left out, whatever reads that: statements with `where`,
 * reads with `else`, issues of several statements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "command/isamap_int.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 400 };

/* What nodes read and write, by place. */
struct touched {
    bool read[PLACES], written[PLACES];
};

static void touch(const struct schedule *s, const struct node *n, struct touched *t) {
    if (n->kind == NODE_LOOP)
        for (int k = 0; k < n->loop->nbody; k++) touch(s, &n->loop->body[k], t);
    if (n->kind == NODE_ISSUE) {
        const struct instr *in = &s->machine->instr[n->issue->instr];
        for (int o = 0; o < in->noperands; o++) {
            int place = n->issue->arg[o].place;
            if (place < 0) continue;
            t->read[place] |= in->operand[o].role != ROLE_OUT;
            t->written[place] |=
                in->operand[o].role == ROLE_OUT || in->operand[o].role == ROLE_INOUT;
        }
    }
    int stmt = n->kind == NODE_ISSUE      ? n->issue->stmt
               : n->kind == NODE_FALLBACK ? n->fallback->stmt
                                          : -1;
    if (stmt < 0) return;
    const struct stmt *x = &s->program->stmt[stmt];
    for (int p = 0; p < s->nplaces && n->kind == NODE_FALLBACK; p++) {
        if (s->place[p].keep == KEEP_LOCAL) continue;
        t->written[p] |= s->place[p].buffer == x->dst.buffer;
        for (int r = 0; r < x->nreads; r++) t->read[p] |= s->place[p].buffer == x->read[r].buffer;
    }
}

static bool same_bytes(const struct place *p, const struct place *q) {
    return p->memory == q->memory && p->address < q->address + q->bytes * q->slots &&
           q->address < p->address + p->bytes * p->slots;
}

static bool share(const struct schedule *s, const bool *a, const bool *b) {
    for (int p = 0; p < s->nplaces; p++)
        for (int q = 0; q < s->nplaces; q++)
            if (a[p] && b[q] && same_bytes(&s->place[p], &s->place[q])) return true;
    return false;
}

/* The second reads a home of a temporary that of all nests the first alone writes. */
static bool made_for(const struct schedule *s, const struct touched *first,
                     const struct touched *second, const struct touched *before) {
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *x = &s->place[p];
        if (x->keep == KEEP_WORKSPACE && s->program->buffer[x->buffer].role == ROLE_TEMP &&
            first->written[p] && second->read[p] && !second->written[p] && !before->written[p])
            return true;
    }
    return false;
}

static enum proof verdict(const struct schedule *s, struct text *why) {
    int sampled;
    struct diags d;
    diags_init(&d);
    enum proof proof = schedule_prove(s, 4000, &sampled, why, &d);
    for (int k = 0; k < d.n; k++) text_printf(why, "%s\n", d.at[k].text);
    diags_free(&d);
    return proof;
}

static void swap(struct node *n) {
    struct node x = n[0];
    n[0] = n[1];
    n[1] = x;
}

struct counts {
    int wrong, refused, unwritten, apart;
};

static void neighbours(struct schedule *s, int k, const struct touched *before, struct counts *c) {
    struct touched first = {.read = {false}}, second = {.read = {false}};
    struct text why = {0};
    touch(s, &s->run.node[k], &first);
    touch(s, &s->run.node[k + 1], &second);
    bool wrong = made_for(s, &first, &second, before),
         apart = !share(s, first.written, second.read) &&
                 !share(s, first.written, second.written) && !share(s, first.read, second.written);
    swap(&s->run.node[k]);
    enum proof proof = verdict(s, &why);
    swap(&s->run.node[k]);
    bool here = proof == PROOF_REFUSED && strstr(why.at, "where nothing of it has been written");
    if (wrong && proof != PROOF_REFUSED)
        fail_msg("nodes %d and %d of '%s': %s", k, k + 1, s->program->name, proof_name[proof]);
    if (!wrong && here) fail_msg("false alarm: %s", why.at);
    c->wrong += wrong;
    c->refused += wrong && proof == PROOF_REFUSED;
    c->unwritten += here;
    c->apart += apart;
    text_free(&why);
}

static struct counts changed_places(const char *machine, const char *program,
                                    const char *const *define) {
    struct counts c = {0};
    struct touched before = {.read = {false}};
    struct job j;
    isamap *im = isamap_open();
    isamap_option(im, "machine", machine);
    for (; *define; define++) isamap_option(im, "define", *define);
    job_init(&j, program);
    if (!job_machine(im, &j, USE_SIM) || !job_program(im, &j) || !job_compile(im, &j))
        diags_print(&im->diags, stderr);
    assert_non_null(j.schedule);
    assert_true(j.schedule->nplaces <= PLACES);
    for (int k = 0; k + 1 < j.schedule->run.nnodes; k++) {
        neighbours(j.schedule, k, &before, &c);
        touch(j.schedule, &j.schedule->run.node[k], &before);
    }
    job_free(&j);
    isamap_close(im);
    return c;
}

static const char *const as_it_is[] = {NULL};

/* ---- what is not written ---- */

/* The outermost node that writes the array is left out; then the message names the statement that
 * reads it first, and the array. */
static void left_out(const char *machine, const char *program, const char *array,
                     const char *expected) {
    struct text why = {0};
    struct job j;
    isamap *im = isamap_open();
    isamap_option(im, "machine", machine);
    job_init(&j, program);
    if (!job_machine(im, &j, USE_SIM) || !job_program(im, &j) || !job_compile(im, &j))
        diags_print(&im->diags, stderr);
    assert_non_null(j.schedule);
    assert_int_not_equal(verdict(j.schedule, &why), PROOF_REFUSED);
    struct section *run = &j.schedule->run;
    bool found = false;
    for (int k = 0; k + 1 < run->nnodes && !found; k++) {
        struct touched t = {.read = {false}};
        touch(j.schedule, &run->node[k], &t);
        for (int p = 0; p < j.schedule->nplaces; p++) {
            const struct place *x = &j.schedule->place[p];
            found |= t.written[p] && x->keep == KEEP_WORKSPACE &&
                     !strcmp(j.schedule->program->buffer[x->buffer].name, array);
        }
        for (int i = k; found && i + 1 < run->nnodes; i++) run->node[i] = run->node[i + 1];
    }
    assert_true(found);
    run->nnodes--;
    enum proof proof = verdict(j.schedule, &why);
    if (proof != PROOF_REFUSED || !strstr(why.at, expected))
        fail_msg("%s on %s: %s: %s", program, machine, proof_name[proof], why.at ? why.at : "");
    text_free(&why);
    job_free(&j);
    isamap_close(im);
}

static void writers_left_out(void **state) {
    (void)state;
    static const char triangle[] = "tests/data/proofs/sums-in-a-triangle.isam",
                      window[] = "tests/data/proofs/window-over-what-was-made.isam",
                      layers[] = "tests/data/proofs/layers-on-one-instruction.isam",
                      fused[] = "tests/data/machines/fused.xml";
    left_out("cpu-avx2", triangle, "A",
             "statement 2 reads 'A' where nothing of it has been written");
    left_out("cpu-scalar", window, "A",
             "statement 2 reads 'A' where nothing of it has been written");
    left_out("cpu-avx2", window, "A", "statement 2 reads 'A' where nothing of it has been written");
    left_out(fused, layers, "C", "statement 4 reads 'C' where nothing of it has been written");
}

static void nests_in_the_wrong_order(void **state) {
    (void)state;
    static const char *const programs[] = {"examples/f32/att.isam", "examples/f32/bottleneck.isam",
                                           "examples/f32/mobilenet.isam",
                                           "tests/data/proofs/two-branches.isam"};
    struct counts all = {0};
    for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
        struct counts c = changed_places("cpu-avx2", programs[k], as_it_is);
        fprintf(stderr, "%s: %d wrong, %d of them refused; %d as right\n", programs[k], c.wrong,
                c.refused, c.apart);
        all.wrong += c.wrong;
        all.refused += c.refused;
        all.unwritten += c.unwritten;
        all.apart += c.apart;
    }
    assert_true(all.refused >= 4);
    assert_true(all.unwritten >= 2);
    assert_true(all.apart >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nests_in_the_wrong_order),
                                       cmocka_unit_test(writers_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
