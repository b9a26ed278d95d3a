/* The chain from the program as written to the scheduled one: schedules carry it in their text, it
 * is proved again from there, and a chain that is wrong in one thing is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mapper/mapper.h"
#include "scheduler_plan.h"

enum { SEEDS = 6, MUTANTS = 40 };

static const struct chain_case {
    const char *machine, *host, *text;
    enum evidence evidence;
} cases[] = {
    {"machines/cpu-avx2.xml", NULL,
     "kernel gmm() {\n in A: f32[9, 13]\n const B: f32[13, 17]\n out C: f32[9, 17]\n"
     " axes i: 9, j: 17, k: 13\n C[i,j] = 0\n C[i,j] += A[i,k] * B[k,j]\n"
     " C[i,j] = max(C[i,j], 0)\n}\n",
     EVIDENCE_PROVED},
    {"machines/edge16.xml", "machines/cpu-scalar.xml",
     "kernel c2d() {\n in I: i8[2, 3, 6, 6]\n const F: i8[5, 3, 3, 3]\n out O: i8[2, 5, 4, 4]\n"
     " temp T: i32[2, 5, 4, 4]\n axes n: 2, k: 5, p: 4, q: 4, c: 3, r: 3, s: 3\n"
     " T[n,k,p,q] = 0\n T[n,k,p,q] += i32(I[n,c,p+r,q+s]) * i32(F[k,c,r,s])\n"
     " O[n,k,p,q] = max(i8(clip(round(f64(T[n,k,p,q]) * 0.25), -128, 127)), 0)\n}\n",
     EVIDENCE_PROVED},
    {"machines/edge16.xml", "machines/cpu-scalar.xml",
     "kernel scan() {\n in X: i8[5, 20]\n inout Y: i32[40, 30]\n axes i: 5, j: 20, k: 20, n: 9\n"
     " Y[i+30,j+7] += i32(X[i,k]) where k <= j and n < 5\n}\n",
     EVIDENCE_PROVED},
    {"machines/cpu-avx2.xml", NULL,
     "kernel sep() {\n in I: f32[8, 6, 6]\n const D: f32[8, 3, 3]\n const W: f32[5, 8]\n"
     " out O: f32[5, 4, 4]\n axes k: 5, p: 4, q: 4, c: 8, r: 3, s: 3\n O[k,p,q] = 0\n"
     " O[k,p,q] += I[c,p+r,q+s] * D[c,r,s] * W[k,c]\n}\n",
     EVIDENCE_PROVED},
};

static struct schedule *compiled(const struct chain_case *c, const struct machine *m, int seed,
                                 struct diags *d) {
    struct arena a;
    arena_init(&a);
    struct program *p = plan_program(&a, c->text, NULL, 0, d);
    struct cover *cover = NULL;
    struct decider *decider = decider_open(&plan_any, (uint64_t)seed + 1);
    struct scheduler_options options = {.threads = 1};
    struct schedule *s = scheduler_compile(p, m, REWRITE_FINITE, decider, &options, &cover, d);
    decider_close(decider);
    cover_free(cover);
    program_free(p);
    arena_free(&a);
    return s;
}

static struct schedule *read_again(const struct schedule *s, struct diags *d) {
    struct text t = {0}, again = {0};
    schedule_print(s, &t);
    struct source source = {.file = "x.sched", .text = t.at, .length = t.n, .line0 = 1, .col0 = 1};
    struct schedule *r = schedule_parse(s->machine, &source, d);
    if (!r) diags_print(d, stderr);
    assert_non_null(r);
    schedule_print(r, &again);
    assert_string_equal(t.at, again.at);
    r->program->source.text = r->chain->written->source.text = NULL;
    text_free(&t);
    text_free(&again);
    return r;
}

/* Small whole numbers: nothing rounds. */
static bool same_values(const struct program *p, const struct program *q) {
    void *x[16] = {0}, *y[16] = {0};
    struct diags d;
    diags_init(&d);
    uint64_t seed = 9;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *f = &p->buffer[b];
        if (f->role == ROLE_TEMP) continue;
        x[b] = calloc((size_t)f->elements, type_size(f->type));
        for (int64_t i = 0; i < f->elements; i++) {
            int v = (int)(plan_random(&seed) % 15) - 7;
            union value u = {.i = v};
            if (type_is_float(f->type)) u.f = v;
            type_store(f->type, (char *)x[b] + (size_t)i * type_size(f->type), u);
        }
        y[b] = malloc((size_t)f->elements * type_size(f->type));
        memcpy(y[b], x[b], (size_t)f->elements * type_size(f->type));
    }
    bool same = program_run(p, x, NULL, NULL, &d) && program_run(q, y, NULL, NULL, &d);
    for (int b = 0; b < p->nbuffers; b++) {
        if (x[b])
            same &=
                !memcmp(x[b], y[b], (size_t)p->buffer[b].elements * type_size(p->buffer[b].type));
        free(x[b]);
        free(y[b]);
    }
    diags_free(&d);
    return same;
}

/* One thing of a statement is another. */
static void change(struct program *p, uint64_t *seed) {
    struct stmt *s = &p->stmt[plan_random(seed) % (uint64_t)p->nstmts];
    struct access *a = s->nreads && plan_random(seed) % 2
                           ? &s->read[plan_random(seed) % (uint64_t)s->nreads]
                           : &s->dst;
    struct op *o = &s->op[plan_random(seed) % (uint64_t)s->nops];
    int dim = (int)(plan_random(seed) % (uint64_t)p->buffer[a->buffer].ndims);
    int64_t *row = a->coef + (size_t)dim * ((size_t)p->naxes + 1);
    switch (plan_random(seed) % 6) {
    case 0:
        row[p->naxes] += plan_random(seed) % 2 ? 1 : -1;
        break;
    case 1:
        if (s->nwhere) s->where[0].coef[p->naxes] += plan_random(seed) % 2 ? 1 : -1;
        break;
    case 2:
        if (s->nwhere) s->nwhere--;
        break;
    case 3:
        if (o->code == OP_LITERAL && type_is_float(o->type))
            o->value.f += 1;
        else if (o->code == OP_LITERAL)
            o->value.i += 1;
        else if (o->code == OP_MUL)
            o->code = OP_ADD;
        else if (o->code == OP_MAX)
            o->code = OP_MIN;
        break;
    case 4:
        s->combine = s->combine == COMBINE_ADD ? COMBINE_MAX : COMBINE_ADD;
        break;
    default:
        for (int x = 0; x < p->naxes; x++) {
            int y = (int)(plan_random(seed) % (uint64_t)p->naxes);
            int64_t c = row[x];
            row[x] = row[y];
            row[y] = c;
        }
    }
    s->axes = stmt_axes(p, s);
}

static void check_mutants(const struct schedule *s, int *caught, int *harmless) {
    uint64_t seed = 5;
    for (int k = 0; k < MUTANTS; k++) {
        struct program *own = s->chain->written, *q = program_copy(own);
        struct diags d;
        diags_init(&d);
        change(q, &seed);
        bool valid = program_verify(q, &d);
        if (valid) {
            s->chain->written = q;
            enum evidence e = chain_verify(s->chain, s->program, NULL).evidence;
            s->chain->written = own;
            bool good = e == EVIDENCE_PROVED || e == EVIDENCE_SAMPLED;
            if (good && !same_values(own, q)) {
                struct text t = {0};
                program_print(q, &t);
                print_error("%s:\n%s", evidence_name[e], t.at);
                text_free(&t);
            }
            assert_true(!good || same_values(own, q));
            *caught += !good;
            *harmless += good;
        }
        diags_free(&d);
        program_free(q);
    }
}

static void test_chains(void **state) {
    int caught = 0, harmless = 0, schedules = 0;
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct diags d;
        diags_init(&d);
        struct machine *m = plan_machine(cases[k].machine, cases[k].host, &d);
        assert_non_null(m);
        for (int seed = 0; seed < SEEDS; seed++) {
            struct schedule *s = compiled(&cases[k], m, seed, &d);
            if (!s) continue; /* not every answer leads to a schedule */
            schedules++;
            struct schedule *r = read_again(s, &d);
            struct text what = {0};
            enum evidence e = chain_verify(r->chain, r->program, &what).evidence;
            if (e != cases[k].evidence) print_error("%s%s", cases[k].text, what.at ? what.at : "");
            assert_int_equal(e, cases[k].evidence);
            assert_int_equal(chain_verify(s->chain, s->program, NULL).evidence, e);
            if (seed % 3 == 0) check_mutants(r, &caught, &harmless);
            text_free(&what);
            schedule_free(r);
            schedule_free(s);
        }
        machine_free(m);
        diags_free(&d);
    }
    print_message("%d changes refused, %d that changed nothing\n", caught, harmless);
    assert_true(schedules > SEEDS && caught > 40);
}

/* Witnesses that say too little: a law is missing, a change is left out, or stands elsewhere. */
static int check_witnesses(const struct schedule *s) {
    int laws = 0;
    for (int k = 0; k < s->chain->nsteps; k++)
        for (int w = 0; w < s->chain->step[k].nwitnesses; w++) {
            struct witness *x = &s->chain->step[k].witness[w], keep = *x;
            x->may_sample = false;
            x->laws = LAWS_EXACT;
            laws += chain_verify(s->chain, s->program, NULL).evidence == EVIDENCE_UNPROVED;
            *x = keep;
            x->after.to--;
            assert_int_equal(chain_verify(s->chain, s->program, NULL).evidence, EVIDENCE_REFUTED);
            *x = keep;
            x->before.from++;
            assert_int_equal(chain_verify(s->chain, s->program, NULL).evidence, EVIDENCE_REFUTED);
            *x = keep;
        }
    return laws;
}

static void test_witnesses(void **state) {
    struct diags d;
    (void)state;
    diags_init(&d);
    struct machine *m = plan_machine(cases[3].machine, NULL, &d);
    int laws = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct schedule *s = compiled(&cases[3], m, seed, &d);
        if (s) laws += check_witnesses(s);
        if (s) assert_int_equal(chain_verify(NULL, s->program, NULL).evidence, EVIDENCE_UNPROVED);
        schedule_free(s);
    }
    assert_true(laws > 0);
    machine_free(m);
    diags_free(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains),
                                       cmocka_unit_test(test_witnesses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
