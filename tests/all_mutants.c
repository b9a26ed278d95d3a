/* Every single mutant of schedules that the scheduler makes: it is rejected by the verifier, or it
 * is harmless: then it gives the right values in the simulator, in the order of its times and in
 * random orders that its signals allow. Harmless mutants are listed by kind with what they cost or
 * save in cycles. ISAMAP_MUTANTS=N sets how many mutants of each schedule are tried (0: all;
 * default: some seconds' worth), ISAMAP_SHOW prints the harmless ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "approaches/approaches.h"
#include "ir/interp.h"
#include "mapper/mapper.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"
#include "tests/keeping.h"
#include "tests/mutate.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { ORDERS = 3, MUTANTS = 110, TRIPS = 4 };

static const char *const mutation_name[] = {
#define X(id, text) text,
    MUTATION_TABLE(X)
#undef X
};

static const char small_gmm_i8[] = "kernel gmm() {\n"
                                   "  in A: i8[10, 9]  const B: i8[9, 11]  out C: i32[10, 11]\n"
                                   "  axes i: 10, j: 11, k: 9\n"
                                   "  C[i,j]  = 0\n"
                                   "  C[i,j] += i32(A[i,k]) * i32(B[k,j])\n"
                                   "}\n";
static const char small_c1d_i8[] = "kernel c1d() {\n"
                                   "  in I: i8[6, 17]  const F: i8[7, 6, 3]  out O: i32[7, 9]\n"
                                   "  axes k: 7, p: 9, c: 6, r: 3\n"
                                   "  O[k,p]  = 0\n"
                                   "  O[k,p] += i32(I[c,2*p+r-1 else 0]) * i32(F[k,c,r])\n"
                                   "}\n";
static const char small_c2d_i8[] =
    "kernel c2d() {\n"
    "  in I: i8[5, 5, 6]  const F: i8[6, 5, 3, 3]  out O: i8[6, 5, 6]\n"
    "  axes k: 6, p: 5, q: 6, c: 5, r: 3, s: 3\n"
    "  temp T: i32[6, 5, 6]\n"
    "  T[k,p,q]  = 0\n"
    "  T[k,p,q] += i32(I[c,p+r-1,q+s-1 else 0]) * i32(F[k,c,r,s])\n"
    "  O[k,p,q]  = i8(clip(round(f64(T[k,p,q]) * 0.0625), -128, 127))\n"
    "}\n";
static const char small_layer_i8[] =
    "kernel layer() {\n"
    "  in A: i8[7, 12]  const B: i8[8, 12]  const b: i32[8]  out D: i32[7, 8]\n"
    "  temp C: i32[7, 8]  temp E: i32[7, 8]\n"
    "  axes i: 7, j: 8, k: 12\n"
    "  C[i,j]  = 0\n"
    "  C[i,j] += i32(A[i,k]) * i32(B[j,k])\n"
    "  E[i,j]  = C[i,j] + b[j]\n"
    "  D[i,j]  = max(E[i,j], 0)\n"
    "}\n";
static const char small_gmm_f32[] = "kernel gmm() {\n"
                                    "  in A: f32[7, 5]  in B: f32[5, 19]  out C: f32[7, 19]\n"
                                    "  axes i: 7, j: 19, k: 5\n"
                                    "  C[i,j]  = 0\n"
                                    "  C[i,j] += A[i,k] * B[k,j]\n"
                                    "}\n";
static const char softmax_f32[] = "kernel softmax() {\n"
                                  "  in A: f32[6, 10]  out D: f32[6, 10]\n"
                                  "  temp m: f32[6]  temp e: f32[6, 10]  temp s: f32[6]\n"
                                  "  axes i: 6, j: 10\n"
                                  "  m[i]   = -100\n"
                                  "  m[i]   max= A[i,j]\n"
                                  "  e[i,j] = exp(A[i,j] - m[i])\n"
                                  "  s[i]   = 0\n"
                                  "  s[i]   += e[i,j]\n"
                                  "  D[i,j] = e[i,j] / s[i]\n"
                                  "}\n";

struct subject {
    const char *name, *machine, *text;
    bool device;
    int seed; /* the first to try with the random approach; 0: the heuristic one */
    const struct approach *keeps; /* rings or pinned ranges: one that takes them; NULL */
};

#define EDGE4 SOURCE_DIR "/tests/data/machines/proof/edge4.xml"
#define BOARD SOURCE_DIR "/tests/data/machines/schedule/board.xml"
#define AVX2 SOURCE_DIR "/machines/cpu-avx2.xml"
static const struct subject subjects[] = {
    {"gmm i8", EDGE4, small_gmm_i8, true, 0, NULL},
    {"gmm i8, any plan", EDGE4, small_gmm_i8, true, 100, NULL},
    {"gmm i8, another", EDGE4, small_gmm_i8, true, 200, NULL},
    {"c1d i8", EDGE4, small_c1d_i8, true, 0, NULL},
    {"c1d i8, any plan", EDGE4, small_c1d_i8, true, 100, NULL},
    {"c2d i8 requantised", EDGE4, small_c2d_i8, true, 0, NULL},
    {"c2d i8, any plan", EDGE4, small_c2d_i8, true, 100, NULL},
    {"c2d i8, rings", EDGE4, small_c2d_i8, true, 1, &plan_rings},
    {"c2d i8, pinned", EDGE4, small_c2d_i8, true, 1, &plan_pinned},
    {"layer i8", EDGE4, small_layer_i8, true, 0, NULL},
    {"layer i8, any plan", EDGE4, small_layer_i8, true, 100, NULL},
    {"gmm i8", BOARD, small_gmm_i8, false, 0, NULL},
    {"gmm i8, any plan", BOARD, small_gmm_i8, false, 100, NULL},
    {"gmm i8", SOURCE_DIR "/machines/gemmini.xml", small_gmm_i8, true, 0, NULL},
    {"gmm f32", AVX2, small_gmm_f32, false, 0, NULL},
    {"softmax f32", AVX2, softmax_f32, false, 0, NULL},
    {"gmm f32", SOURCE_DIR "/tests/data/machines/sim/ooo.xml", small_gmm_f32, false, 0, NULL},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

struct row {
    int tried, rejected, harmless;
    double least, most; /* cycles of harmless ones, by the original's */
};

struct run {
    const struct program *program;
    struct schedule *schedule;
    void **fresh, **want, **data, **bound;
    double cycles;
    int every, seen, wrong, missed, proved;
    const char *name;
    struct row row[MUTATION_COUNT];
};

/* ---- data ---- */
static size_t buffer_bytes(const struct buffer *b) {
    return (size_t)b->elements * type_size(b->type);
}

static void **make_data(const struct program *p) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    unsigned x = 12345;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *buf = &p->buffer[b];
        if (buf->role == ROLE_TEMP) continue;
        data[b] = malloc(buffer_bytes(buf) + 1);
        memset(data[b], 0x5a, buffer_bytes(buf));
        for (int64_t k = 0; k < buf->elements && buf->role != ROLE_OUT; k++) {
            x = x * 1664525u + 1013904223u;
            union value v = {.i = (int)(x >> 24) % 19 - 9};
            v = type_convert(buf->type, TYPE_I64, v);
            type_store(buf->type, (char *)data[b] + (size_t)k * type_size(buf->type), v);
        }
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static bool close_to(enum type type, union value w, union value g) {
    return type_is_float(type) ? fabs(w.f - g.f) <= 1e-4 * fmax(1, fabs(w.f)) : w.i == g.i;
}

static bool right_values(const struct run *r) {
    for (int b = 0; b < r->program->nbuffers; b++) {
        const struct buffer *x = &r->program->buffer[b];
        if (x->role != ROLE_OUT) continue;
        for (int64_t e = 0; e < x->elements; e++) {
            size_t at = (size_t)e * type_size(x->type);
            if (!close_to(x->type, type_load(x->type, (char *)r->want[b] + at),
                          type_load(x->type, (char *)r->data[b] + at)))
                return false;
        }
    }
    return true;
}

/* ---- one mutant ---- */
static const char *simulate(struct run *r, uint64_t order, double *cycles) {
    struct sim_result x = {0};
    struct diags d;
    diags_init(&d);
    for (int b = 0; b < r->program->nbuffers; b++)
        if (r->data[b]) memcpy(r->data[b], r->fresh[b], buffer_bytes(&r->program->buffer[b]));
    struct sim_options options = {.order_seed = order, .steps = 10000000};
    bool ran = sim_run(r->schedule, r->bound, &options, &x, &d);
    const char *wrong = !ran ? "does not run" : !right_values(r) ? "gives wrong values" : NULL;
    if (!ran) diags_print(&d, stderr);
    *cycles = x.cycles;
    sim_result_free(&x);
    diags_free(&d);
    return wrong;
}

static bool verified(const struct schedule *s, int trips) {
    struct diags d;
    diags_init(&d);
    bool good = schedule_verify(s, &(struct verify_options){.trips = trips}, &d);
    diags_free(&d);
    return good;
}

static void complain(struct run *r, enum mutation kind, const char *where, const char *what) {
    if (++r->wrong > 5) return;
    fprintf(stderr, "%s: a mutant %s: %s at %s\n", r->name, what,
            mutation_name[kind], where ? where : "");
    struct text t = {0};
    schedule_print(r->schedule, &t);
    fprintf(stderr, "%s", t.at);
    text_free(&t);
}

static void try_mutant(void *user, enum mutation kind, const char *where) {
    struct run *r = user;
    struct row *row = &r->row[kind];
    const char *wrong = NULL;
    double cycles = r->cycles, ignored;
    if (r->seen++ % r->every != 0) return;
    row->tried++;
    bool whole = verified(r->schedule, 0), cut = verified(r->schedule, TRIPS);
    r->missed += !whole && cut;
    struct text why = {0};
    bool symbolic = schedule_prove_symbolically(r->schedule, 0, &why);
    text_free(&why);
    r->proved += symbolic;
    if (!whole && symbolic) complain(r, kind, where, "is proved, though the whole walk rejects it");
    if (whole && !cut) complain(r, kind, where, "is rejected by the cut walk alone");
    if (!whole) {
        row->rejected++;
        return;
    }
    row->harmless++;
    wrong = simulate(r, 0, &cycles);
    for (int k = 0; k < ORDERS && !wrong; k++)
        wrong = simulate(r, (uint64_t)(r->seen * ORDERS + k), &ignored);
    if (wrong) complain(r, kind, where, wrong);
    double by = r->cycles > 0 ? cycles / r->cycles : 1;
    if (row->harmless == 1 || by < row->least) row->least = by;
    if (row->harmless == 1 || by > row->most) row->most = by;
    if (getenv("ISAMAP_SHOW"))
        fprintf(stderr, "harmless on %s: %s, cycles x %.3f, at %s\n", r->name, mutation_name[kind],
                by, where ? where : "");
}

static void count_mutant(void *user, enum mutation kind, const char *where) {
    (void)kind, (void)where;
    ++*(int *)user;
}

/* ---- subjects ---- */
static struct program *parse(struct arena *a, const char *text, struct diags *d) {
    struct source *source = arena_alloc(a, sizeof *source);
    struct kernel **kernel;
    *source = (struct source){
        .file = "mutants", .line0 = 1, .col0 = 1, .text = text, .length = strlen(text)};
    return kernel_parse(a, source, &kernel, d) == 1 ? program_bind(kernel[0], NULL, NULL, d) : NULL;
}

static void mutate_all(struct run *r) {
    int all = 0, most = getenv("ISAMAP_MUTANTS") ? atoi(getenv("ISAMAP_MUTANTS")) : MUTANTS;
    struct mutator counter = {.s = r->schedule, .try = count_mutant, .user = &all};
    mutate_schedule(&counter);
    r->every = most > 0 ? (all + most - 1) / most : 1;
    struct mutator m = {.s = r->schedule, .try = try_mutant, .user = r};
    mutate_schedule(&m);
}

static bool computes(const struct node *n, int count) {
    for (int k = 0; k < count; k++)
        if ((n[k].kind == NODE_ISSUE && n[k].issue->stmt >= 0) ||
            (n[k].kind == NODE_LOOP && computes(n[k].loop->body, n[k].loop->nbody)))
            return true;
    return false;
}

/* NULL: all is left to the fallback. */
static struct schedule *compile(const struct subject *x, const struct program *p,
                                const struct machine *m, uint64_t seed, struct diags *d) {
    const struct approach *approach = x->keeps ? x->keeps : approaches[x->seed > 0];
    struct decider *decider = decider_open(approach, seed);
    struct cover *cover = mapper_cover(p, m, decider, d);
    struct scheduler_options options = {0};
    struct schedule *s = cover ? scheduler_run(cover, m, decider, &options, d) : NULL;
    if (cover) cover_free(cover);
    decider_close(decider);
    int turns = 0, pinned = 0;
    if (s) keeping_count(s, s->run.node, s->run.nnodes, &turns, &pinned);
    bool keeps = !x->keeps || (x->keeps == &plan_rings ? turns : pinned) > 0;
    if (s && keeps && computes(s->run.node, s->run.nnodes)) return s;
    if (s) schedule_free(s);
    return NULL;
}

static void run_subject(const struct subject *x, struct row *sum, int *wrong) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct machine *m = x->device ? machine_join(x->machine, "cpu-scalar", NULL, &d)
                                  : machine_load(x->machine, NULL, &d);
    struct program *p = parse(&a, x->text, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    assert_non_null(p);
    struct schedule *s = NULL;
    for (int k = 0; k < 60 && !s; k++) s = compile(x, p, m, (uint64_t)(x->seed + k), &d);
    assert_non_null(s);
    struct run r = {.program = p, .schedule = s, .name = x->name};
    r.fresh = make_data(p), r.want = make_data(p), r.data = make_data(p);
    r.bound = calloc((size_t)s->program->nbuffers + 1, sizeof *r.bound);
    for (int b = 0; b < s->program->nbuffers; b++) {
        int f = s->program->buffer[b].role == ROLE_TEMP
                    ? -1
                    : program_buffer(p, s->program->buffer[b].name);
        if (f >= 0) r.bound[b] = r.data[f];
    }
    assert_true(program_run(p, r.want, NULL, NULL, &d));
    assert_true(schedule_verify(s, &(struct verify_options){0}, &d));
    assert_null(simulate(&r, 0, &r.cycles));
    clock_t begin = clock();
    mutate_all(&r);
    int tried = 0, rejected = 0;
    for (int k = 0; k < MUTATION_COUNT; k++) {
        struct row *from = &r.row[k], *to = &sum[k];
        tried += from->tried, rejected += from->rejected;
        if (from->harmless && (!to->harmless || from->least < to->least)) to->least = from->least;
        if (from->harmless && (!to->harmless || from->most > to->most)) to->most = from->most;
        to->tried += from->tried, to->rejected += from->rejected, to->harmless += from->harmless;
    }
    fprintf(stderr,
            "%-20s on %-10s %5d mutants, %4d tried, %4d rejected, %3d harmless, %d wrong, %d "
            "missed by the cut walk, %d proved symbolically, %.2f s\n",
            x->name, m->name, r.seen, tried, rejected, tried - rejected, r.wrong, r.missed, r.proved,
            (double)(clock() - begin) / CLOCKS_PER_SEC);
    *wrong += r.wrong;
    free(r.bound);
    free_data(p, r.fresh), free_data(p, r.want), free_data(p, r.data);
    schedule_free(s);
    program_free(p);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

static void mutants_are_rejected_or_harmless(void **state) {
    (void)state;
    struct row sum[MUTATION_COUNT] = {0};
    int wrong = 0, rejected = 0;
    for (int k = 0; k < SUBJECTS; k++) run_subject(&subjects[k], sum, &wrong);
    for (int k = 0; k < MUTATION_COUNT; k++) {
        rejected += sum[k].rejected;
        if (!sum[k].tried) continue;
        fprintf(stderr, "%-24s %5d tried, %5d rejected, %4d harmless", mutation_name[k],
                sum[k].tried, sum[k].rejected, sum[k].harmless);
        if (sum[k].harmless)
            fprintf(stderr, ", at %.3f to %.3f of the cycles", sum[k].least, sum[k].most);
        fprintf(stderr, "\n");
    }
    assert_int_equal(wrong, 0);
    assert_true(rejected > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(mutants_are_rejected_or_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
