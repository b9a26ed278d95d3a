/* Recurrences: named and random ones × machines × approaches, against the interpreter: schedules
 * are verified, simulated, and run by every backend that takes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "approaches/approaches.h"
#include "backends/backend.h"
#include "ir/interp.h"
#include "mapper/mapper.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- programs ---- */
static uint32_t pick(uint64_t *s, uint32_t n) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33) % n;
}

static struct program *parse_as(struct arena *a, const char *text, const struct binding *b, int n,
                                bool sizes, struct diags *d) {
    struct source *source = arena_alloc(a, sizeof *source);
    struct kernel **kernel;
    struct bindings given = {b, n, NULL};
    *source = (struct source){"recur.isam", text, strlen(text), 1, 1};
    struct program *p =
        kernel_parse(a, source, &kernel, d) > 0
            ? (sizes ? program_bind_sizes : program_bind)(kernel[0], &given, NULL, d)
            : NULL;
    if (!p || !program_verify(p, d)) {
        diags_print(d, stderr);
        fprintf(stderr, "%s", text);
    }
    assert_non_null(p);
    return p;
}

static struct program *parse(struct arena *a, const char *text, const struct binding *b, int n,
                             struct diags *d) {
    return parse_as(a, text, b, n, false, d);
}

struct kind {
    const char *small, *wide; /* types */
    const char *narrow, *half;
};
static const struct kind integers = {"i8", "i32", "i8(clip(round(f64(%s) * 0.0078125), -128, 127))",
                                     "shr(%s, 1)"};
static const struct kind floats = {"f32", "f32", "clip(%s * 0.25, -1, 1)", "%s * 0.5"};

static void apply(struct text *t, const char *format, const char *to) {
    const char *hole = strstr(format, "%s");
    text_append(t, format, (size_t)(hole - format));
    text_printf(t, "%s%s", to, hole + 2);
}

/* Rows of a temporary that grows with the steps: each step adds up what earlier steps wrote, and,
 * where it writes first, its own. */
static void grow_text(struct text *t, const struct kind *k, int T, int H, bool reverse,
                      bool integer, bool first) {
    static const char write[] = "    v[t,i] = X[t,i]\n";
    text_printf(t, "    temp v: %s[%d, %d]\n", k->wide, T + 1, H);
    if (reverse)
        text_printf(t, "    axes s: %d-t\n", first ? T : T - 1);
    else
        text_printf(t, "    axes s: t%s\n", first ? "+1" : "");
    text_printf(t, "%s    b[i] += %sv[s%s,i]\n%s", first ? write : "", integer ? "" : "0.125 * ",
                !reverse ? ""
                : first  ? "+t"
                         : "+t+1",
                first ? "" : write);
}

/* A product that no state goes into; 2: beside one that does, 3: read before it is complete. */
static void product_text(struct text *t, const struct kind *k, int H, int kind, bool shift) {
    text_printf(t, "    temp w: %s[%d]\n    w[i] = 0\n", k->wide, H);
    if (kind == 2) text_printf(t, "    w[i] += %s(U[i,j]) * %s(h[j])\n", k->wide, k->wide);
    if (kind == 3) text_printf(t, "    b[i] += w[i]\n");
    text_printf(t, "    w[i] += %s(U[j,i]) * X[t%s,j]\n", k->wide, shift ? "+1" : "");
    text_printf(t, "    w[i] += %s(U[i,j]) * X[t-1,j else 0]\n    b[i] += w[i]\n", k->wide);
}

/* A body of a few statements over states h (small) and perhaps c (wide), with inputs and outputs
 * that the step moves. */
static char *random_text(uint64_t seed, bool integer) {
    const struct kind *k = integer ? &integers : &floats;
    static const int widths[] = {1, 5, 16, 24, 32, 48};
    uint64_t s = seed * 977 + 5;
    int T = (int)pick(&s, 6), H = widths[pick(&s, 6)];
    bool cell = pick(&s, 2), swap = !pick(&s, 4), late = !pick(&s, 4), nested = !pick(&s, 4),
         shift = pick(&s, 2), ends = pick(&s, 2), padded = !pick(&s, 3), turned = !pick(&s, 3),
         step = !pick(&s, 4), cut = !pick(&s, 4), grow = !pick(&s, 3);
    bool reverse = !pick(&s, 3);
    int product = (int)pick(&s, 4);
    struct text t = {0};
    text_printf(&t, "kernel r() {\n  in X: %s[%d, %d]  const U: %s[%d, %d]  in h0: %s[%d]\n",
                k->wide, T + 1, H, k->small, H, H, k->small, H);
    if (turned)
        text_printf(&t, "  out y: %s[%d, %d]\n", k->small, H, T);
    else
        text_printf(&t, "  out y: %s[%d, %d]\n", k->small, T, H);
    if (ends) text_printf(&t, "  out hT: %s[%d]\n", k->small, H);
    if (cell) text_printf(&t, "  in c0: %s[%d]  out cT: %s[%d]\n", k->wide, H, k->wide, H);
    text_printf(&t, "  recur t: %d%s state h: %s[%d] from h0%s", T, reverse ? " reverse" : "",
                k->small, H, ends ? " to hT" : "");
    if (cell) text_printf(&t, " state c: %s[%d] from c0 to cT", k->wide, H);
    if (swap)
        text_printf(&t, " state p: %s[%d] from h0 state q: %s[%d] from h0", k->small, H, k->small,
                    H);
    text_printf(&t, " {\n    axes i: %d, j: %d\n    temp a: %s[%d]  temp b: %s[%d]\n", H, H,
                k->wide, H, k->wide, H);
    text_printf(&t, "    a[i] = 0\n    a[i] += %s(U[i,j]) * %s(h[j])\n", k->wide, k->wide);
    const char *from = shift ? "X[t+1,i]" : padded ? "X[t-1,i else 0]" : "X[t,i]";
    text_printf(&t, "    b[i] = a[i] + %s\n", from);
    if (product) product_text(&t, k, H, product, shift);
    if (cut) text_printf(&t, "    b[i] += X[t,i] where i <= t\n");
    if (step) text_printf(&t, "    b[i] += %s(t)\n", k->wide);
    if (grow) grow_text(&t, k, T, H, reverse, integer, pick(&s, 2));
    if (cell) {
        text_printf(&t, "    c'[i] = ");
        apply(&t, k->half, "c[i]");
        text_printf(&t, " + b[i]\n    temp e: %s[%d]\n    e[i] = c'[i] + b[i]\n", k->wide, H);
    }
    const char *value = cell ? "e[i]" : "b[i]";
    if (nested) {
        text_printf(&t, "    temp z: %s[%d]\n    z[i] = ", k->small, H);
        apply(&t, k->narrow, value);
        text_printf(&t, "\n    recur n: %d state g: %s[%d] from z to h' {\n", (int)pick(&s, 4),
                    k->small, H);
        text_printf(&t, "      temp f: %s[%d]\n      f[i] = 0\n", k->wide, H);
        text_printf(&t, "      f[i] += %s(U[i,j]) * %s(g[j])\n      g'[i] = ", k->wide, k->wide);
        apply(&t, k->narrow, "f[i]");
        text_printf(&t, "\n    }\n");
    } else {
        text_printf(&t, "    h'[i] = ");
        apply(&t, k->narrow, value);
        text_printf(&t, "\n");
    }
    if (swap) text_printf(&t, "    p'[i] = q[i]\n    q'[i] = p[i]\n");
    const char *what = late ? "h[i]" : swap ? "max(h'[i], p'[i])" : "h'[i]";
    text_printf(&t, "    y[%s] = %s\n  }\n}\n", turned ? "i,t" : "t,i", what);
    return t.at;
}

/* ---- data ---- */
static void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP || x->role == ROLE_STATE) continue;
        data[b] = calloc((size_t)x->elements + 1, type_size(x->type));
        for (int64_t e = 0; e < x->elements; e++) {
            union value v;
            int n = (int)pick(&seed, 256) - 128;
            if (type_is_float(x->type))
                v.f = n / 1024.0;
            else
                v.i = x->role == ROLE_OUT ? 0x5a : n;
            type_store(x->type, (char *)data[b] + (size_t)e * type_size(x->type), v);
        }
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

static bool same_outputs(const struct program *p, void **want, void **got) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        for (int64_t e = 0; x->role == ROLE_OUT && e < x->elements; e++) {
            size_t at = (size_t)e * type_size(x->type);
            union value w = type_load(x->type, (char *)want[b] + at),
                        g = type_load(x->type, (char *)got[b] + at);
            if (type_is_float(x->type) ? !(fabs(w.f - g.f) <= 1e-4) : w.i != g.i) return false;
        }
    }
    return true;
}

static void **rebind(const struct program *from, const struct program *to, void **data) {
    void **out = calloc((size_t)to->nbuffers + 1, sizeof *out);
    for (int b = 0; b < to->nbuffers; b++) {
        enum role role = to->buffer[b].role;
        int f =
            role == ROLE_TEMP || role == ROLE_STATE ? -1 : program_buffer(from, to->buffer[b].name);
        if (f >= 0) out[b] = data[f];
    }
    return out;
}

/* ---- one compilation ---- */
static struct schedule *schedule_of(const struct program *p, const struct machine *m,
                                    const struct approach *a, uint64_t seed, struct diags *d) {
    struct decider *decider = decider_open(a, seed);
    struct cover *cover = mapper_cover(p, m, decider, d);
    struct schedule *s =
        cover && cover_verify(cover, m, d) ? scheduler_run(cover, m, decider, NULL, d) : NULL;
    cover_free(cover);
    decider_close(decider);
    return s;
}

static struct schedule *compile(const struct program *p, const struct machine *m,
                                const struct approach *a, uint64_t seed, struct diags *d) {
    struct schedule *s = schedule_of(p, m, a, seed, d);
    if (s && !schedule_verify(s, &(struct verify_options){.trips = 0}, d)) {
        schedule_free(s);
        s = NULL;
    }
    return s;
}

static bool prints_back(const struct schedule *s, struct diags *d) {
    struct text one = {0}, two = {0};
    schedule_print(s, &one);
    struct source source = {"printed", one.at, one.n, 1, 1};
    struct schedule *again = schedule_parse(s->machine, &source, d);
    if (again) schedule_print(again, &two);
    bool same = again && strcmp(one.at, two.at) == 0 &&
                schedule_verify(again, &(struct verify_options){.trips = 0}, d);
    schedule_free(again);
    text_free(&one);
    text_free(&two);
    return same;
}

static const char *try_all(const struct program *p, const struct schedule *s, bool run,
                           struct diags *d) {
    void **want = make_data(p, 3), **got = make_data(p, 3), **bound = rebind(p, s->program, got);
    struct sim_result result = {0};
    const char *wrong = program_run(p, want, NULL, NULL, d) ? NULL : "the interpreter fails";
    if (!wrong && !sim_run(s, bound, &(struct sim_options){0}, &result, d))
        wrong = "the simulator fails";
    if (!wrong && !same_outputs(p, want, got)) wrong = "simulated values differ";
    sim_result_free(&result);
    for (int k = 0; run && !wrong && backends[k]; k++) {
        if (!backends[k]->accepts(s)) continue;
        free_data(p, got);
        free(bound);
        got = make_data(p, 3);
        bound = rebind(p, s->program, got);
        struct executable *e = backends[k]->load(s, &(struct backend_options){0}, d);
        if (!e || !executable_prepare(e, bound, d) || !executable_run(e, bound, 1, d))
            wrong = "a backend fails";
        else if (!same_outputs(p, want, got))
            wrong = backends[k]->name;
        if (e) executable_free(e);
    }
    free_data(p, want);
    free_data(p, got);
    free(bound);
    return wrong;
}

struct machines {
    struct machine *at[3];
    bool run[3], integer[3];
    int n;
};

static struct machines load_machines(void) {
    struct diags d;
    struct machines m = {.n = 3};
    diags_init(&d);
    m.at[0] = machine_load("machines/cpu-avx2.xml", NULL, &d);
    m.at[1] = machine_load("machines/cpu-scalar.xml", NULL, &d);
    m.at[2] = machine_join("machines/edge16.xml", "machines/cpu-avx2.xml", NULL, &d);
    diags_print(&d, stderr);
    for (int k = 0; k < 3; k++) assert_non_null(m.at[k]);
    m.run[0] = machine_runs_here(m.at[0], &d);
    m.run[1] = true;
    m.integer[2] = true;
    diags_free(&d);
    return m;
}

static void free_machines(struct machines *m) {
    for (int k = 0; k < m->n; k++) machine_free(m->at[k]);
}

static int failures(const char *text, const struct machines *m, int k, uint64_t seed) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    const struct approach *approach = approaches[seed % 2];
    struct schedule *s = compile(p, m->at[k], approach, seed, &d);
    const char *wrong = s ? try_all(p, s, m->run[k], &d) : "no schedule";
    if (!wrong && !prints_back(s, &d)) wrong = "printed and read it differs";
    if (wrong) {
        fprintf(stderr, "seed %llu on %s: %s\n", (unsigned long long)seed, m->at[k]->name, wrong);
        diags_print(&d, stderr);
        fprintf(stderr, "%s\n", text);
    }
    schedule_free(s);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
    return wrong != NULL;
}

static void random_recurrences(void **state) {
    struct machines m = load_machines();
    const char *count = getenv("ISAMAP_RANDOM"), *first = getenv("ISAMAP_SEED");
    int n = count ? atoi(count) : 12, from = first ? atoi(first) : 0, wrong = 0;
    (void)state;
    for (int seed = from; seed < from + n; seed++)
        for (int k = 0; k < m.n; k++) {
            char *text = random_text((uint64_t)seed, m.integer[k] || seed % 3 == 0);
            wrong += failures(text, &m, k, (uint64_t)seed);
            free(text);
        }
    free_machines(&m);
    assert_int_equal(wrong, 0);
}

/* ---- copies that stay ---- */
static char *read_example(struct arena *a, const char *path) {
    struct diags d;
    size_t length;
    diags_init(&d);
    char *text = file_read(a, path, 1 << 20, &length, &d);
    assert_non_null(text);
    diags_free(&d);
    return text;
}

struct step_cost {
    double cycles, bytes; /* of one step */
};

/* Steps 2 and 3 of an example on the device with this much scratchpad; values are checked. */
static struct step_cost cost_of_step(const char *example, int64_t H, int64_t spad) {
    struct arena a;
    struct diags d;
    double cycles[2], bytes[2];
    int64_t nodes = 0;
    arena_init(&a);
    diags_init(&d);
    struct binding size = {"SPAD", spad};
    struct bindings set = {&size, 1, NULL};
    struct machine *m = machine_join("machines/edge16.xml", "machines/cpu-scalar.xml", &set, &d);
    assert_non_null(m);
    char *text = read_example(&a, example);
    for (int k = 0; k < 2; k++) {
        struct binding b[2] = {{"T", 1 + 2 * k}, {"H", H}};
        struct program *p = parse(&a, text, b, 2, &d);
        struct schedule *s = compile(p, m, approaches[0], 0, &d);
        struct sim_result result = {0};
        if (!s) diags_print(&d, stderr);
        assert_non_null(s);
        assert_null(try_all(p, s, false, &d));
        assert_true(sim_run(s, NULL, &(struct sim_options){.no_values = true}, &result, &d));
        cycles[k] = result.cycles;
        assert_true(!k || schedule_nodes(s) == nodes);
        nodes = schedule_nodes(s);
        bytes[k] = result.home_read_bytes;
        sim_result_free(&result);
        schedule_free(s);
        program_free(p);
    }
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
    return (struct step_cost){(cycles[1] - cycles[0]) / 2, (bytes[1] - bytes[0]) / 2};
}

/* The weights of a step of 256 units are 64 KiB. */
static void weights_stay(void **state) {
    (void)state;
    struct step_cost whole = cost_of_step("examples/i8/rnn.isam", 256, 64 << 10),
                     part = cost_of_step("examples/i8/rnn.isam", 256, 48 << 10),
                     less = cost_of_step("examples/i8/rnn.isam", 256, 16 << 10);
    printf("cycles a step: %.0f, in part %.0f and %.0f; bytes read: %.0f, %.0f, %.0f\n",
           whole.cycles, part.cycles, less.cycles, whole.bytes, part.bytes, less.bytes);
    assert_true(whole.bytes < 8192); /* the state and X */
    assert_true(part.bytes < 0.5 * 65536 && less.bytes < 0.95 * 65536);
    assert_true(whole.cycles < 0.7 * part.cycles && part.cycles < 0.9 * less.cycles);
}

/* Some statements of so wide a body run on the host's instructions, in queues of their own. */
static void host_and_device_meet(void **state) {
    struct machines m = load_machines();
    struct arena a;
    struct diags d;
    (void)state;
    arena_init(&a);
    diags_init(&d);
    struct binding b[2] = {{"T", 2}, {"H", 512}};
    struct program *p = parse(&a, read_example(&a, "examples/i8/rnn.isam"), b, 2, &d);
    struct schedule *s = compile(p, m.at[2], approaches[0], 0, &d);
    diags_print(&d, stderr);
    assert_non_null(s);
    assert_null(try_all(p, s, false, &d));
    schedule_free(s);
    program_free(p);
    free_machines(&m);
    diags_free(&d);
    arena_free(&a);
}

/* ---- the order in which operands lie ---- */

/* The batch is as long as a vector: lanes along it would need nothing packed, but what steps move
 * in, and what they hand on, lies in rows. */
static void lanes_lie_along_rows(void **state) {
    static const char *const cell[] = {"gru", "lstm"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct arena a;
        struct diags d;
        struct kernel **kernel;
        arena_init(&a);
        diags_init(&d);
        struct machine *m = machine_load("machines/cpu-avx512.xml", NULL, &d);
        assert_non_null(m);
        char *text = read_example(&a, "bench/recurrent.isam");
        struct source source = {"recurrent.isam", text, strlen(text), 1, 1};
        assert_true(kernel_parse(&a, &source, &kernel, &d) > k);
        assert_string_equal(kernel[k]->name, cell[k]);
        struct binding b[3] = {{"T", 8}, {"B", 16}, {"H", 512}};
        struct bindings given = {b, 3, NULL};
        struct program *p = program_bind(kernel[k], &given, NULL, &d);
        assert_non_null(p);
        struct decider *decider = decider_open(approaches[0], 0);
        struct cover *cover = mapper_cover(p, m, decider, &d);
        assert_non_null(cover);
        for (int i = 0; i < cover->nmappings; i++) { /* of what has rows of vectors */
            const struct mapping *x = &cover->mapping[i];
            const struct stmt *s = &cover->program->stmt[x->stmt];
            int last = cover->program->buffer[s->dst.buffer].ndims - 1, lanes = x->ngroups - 1;
            if (!s->scope || last < 0 || lanes < 0 || x->group[lanes].n != 1) continue;
            assert_true(access_coef(cover->program, &s->dst, last, x->group[lanes].axis[0]) == 1);
        }
        assert_true(cover->nmappings > 8);
        cover_free(cover);
        decider_close(decider);
        program_free(p);
        machine_free(m);
        diags_free(&d);
        arena_free(&a);
    }
}

/* What a step costs does not grow with the rows that other steps read; a state that the product
 * wants in another order than who writes it is turned, and nobody leaves the vectors for it. */
static void steps_cost_the_same(void **state) {
    static const char text[] =
        "kernel gru(T=4, B=16, H=1024) {\n"
        "  in x: f32[T, B, 3, H]  const U: f32[3, H, H]  in h0: f32[B, H]  out y: f32[T, B, H]\n"
        "  recur t: T state h: f32[B, H] from h0 {\n"
        "    axes b: B, g: 3, i: H, j: H\n"
        "    temp a: f32[B, 3, H] temp z: f32[B, H] temp r: f32[B, H] temp v: f32[B, H]\n"
        "    a[b,g,i] = 0\n"
        "    a[b,g,i] += U[g,i,j] * h[b,j]\n"
        "    z[b,i] = sigmoid(a[b,0,i] + x[t,b,0,i])\n"
        "    r[b,i] = sigmoid(a[b,1,i] + x[t,b,1,i])\n"
        "    v[b,i] = tanh(r[b,i] * a[b,2,i] + x[t,b,2,i])\n"
        "    h'[b,i] = v[b,i] + z[b,i] * (h[b,i] - v[b,i])\n"
        "    y[t,b,i] = h'[b,i]\n"
        "  }\n"
        "}\n";
    double cost[2];
    struct arena a;
    struct diags d;
    (void)state;
    arena_init(&a);
    diags_init(&d);
    struct machine *m = machine_load("machines/cpu-avx512.xml", NULL, &d);
    assert_non_null(m);
    for (int k = 0; k < 2; k++) {
        struct binding b = {"T", k ? 128 : 4};
        struct program *p = parse(&a, text, &b, 1, &d);
        struct schedule *s = schedule_of(p, m, approaches[0], 0, &d);
        assert_non_null(s);
        cost[k] = schedule_cost(s, NULL) / (double)b.value;
        schedule_free(s);
        program_free(p);
    }
    diags_print(&d, stderr);
    assert_int_equal(d.n, 0);
    printf("cycles a step: %.0f of 4, %.0f of 128\n", cost[0], cost[1]);
    assert_true(cost[1] < 1.01 * cost[0]);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

/* ---- what needs no step before it ---- */

/* Sums of products that stand in the steps, and before them, as the mapper has the program. */
static void count_sums(const char *text, const struct machine *m, int *inside, int *before) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    struct decider *decider = decider_open(approaches[0], 0);
    struct cover *cover = mapper_cover(p, m, decider, &d);
    assert_non_null(cover);
    *inside = *before = 0;
    for (int s = 0; s < cover->program->nstmts; s++)
        if (cover->program->stmt[s].combine == COMBINE_ADD)
            ++*(cover->program->stmt[s].scope ? inside : before);
    cover_free(cover);
    decider_close(decider);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
}

static void inputs_products_come_before_the_steps(void **state) {
    static const struct {
        const char *steps, *body;
        int inside, before;
    } body[] = {
        {"9", "w[i] = 0\n w[i] += W[i,j] * X[t,j]\n h'[i] = h[i] + w[i]\n", 0, 1},
        {"9 reverse", "w[i] = b[i]\n w[i] += W[i,j] * X[t-1,j else 0]\n h'[i] = h[i] + w[i]\n", 0,
         1},
        {"9",
         "w[i] = b[i]\n w[i] += W[i,j] * h[j]\n w[i] += W[j,i] * X[t,j]\n"
         " w[i] += W[i,j] * X[t+1,j else 0]\n h'[i] = w[i]\n",
         1, 2},
        /* a state goes in, or it is read before, or there is one step, or nothing is saved */
        {"9", "w[i] = h[i]\n w[i] += W[i,j] * X[t,j]\n h'[i] = w[i]\n", 1, 0},
        {"9", "w[i] = 0\n w[i] += W[i,j] * h[j]\n h'[i] = w[i]\n", 1, 0},
        {"9", "w[i] = 0\n v[i] = w[i]\n w[i] += W[i,j] * X[t,j]\n h'[i] = w[i] + v[i]\n", 1, 0},
        {"1", "w[i] = 0\n w[i] += W[i,j] * X[t,j]\n h'[i] = h[i] + w[i]\n", 1, 0},
        {"9", "w[i] = 0\n w[i] += X[t,j] * X[t+1,i]\n h'[i] = h[i] + w[i]\n", 1, 0},
        {"9", "w[i] = 0\n w[i] += V[i,e] * X[t,e]\n h'[i] = h[i] + w[i]\n", 1, 0},
    };
    struct diags d;
    (void)state;
    diags_init(&d);
    struct machine *m = machine_load("machines/cpu-scalar.xml", NULL, &d);
    assert_non_null(m);
    for (size_t k = 0; k < sizeof body / sizeof *body; k++) {
        struct text t = {0};
        int inside, before;
        text_printf(&t,
                    "kernel r() {\n in X: f32[10, 24]  const W: f32[24, 24]  const V: f32[24, 4]  "
                    "const b: f32[24]\n"
                    " in h0: f32[24]  out hT: f32[24]\n"
                    " recur t: %s state h: f32[24] from h0 to hT {\n axes i: 24, j: 24, e: 4\n"
                    " temp w: f32[24] temp v: f32[24]\n %s}\n}\n",
                    body[k].steps, body[k].body);
        count_sums(t.at, m, &inside, &before);
        if (inside != body[k].inside || before != body[k].before)
            print_error("%s%d in the steps, %d before\n", t.at, inside, before);
        assert_int_equal(inside, body[k].inside);
        assert_int_equal(before, body[k].before);
        struct machines all = {.at = {m}, .run = {true}, .n = 1};
        assert_int_equal(failures(t.at, &all, 0, k), 0);
        text_free(&t);
    }
    machine_free(m);
    diags_free(&d);
}

/* ---- lengths known only when the program runs ---- */
static const char open_text[] =
    "kernel scan(T=0..60, H=24) {\n"
    "  in X: f32[T, H]  const U: f32[H, H]  in h0: f32[H]  out y: f32[T, H]  out hT: f32[H]\n"
    "  recur t: T reverse state h: f32[H] from h0 to hT {\n"
    "    axes i: H, j: H\n"
    "    temp a: f32[H]\n"
    "    a[i] = 0\n"
    "    a[i] += U[i,j] * h[j]\n"
    "    h'[i] = clip(a[i] + X[t,i], -1, 1)\n"
    "    y[t,i] = h'[i]\n"
    "  }\n"
    "}\n";

static size_t bytes_of(const struct buffer *x, int64_t rows) {
    size_t bytes = (size_t)x->elements * type_size(x->type);
    return x->size ? bytes / (size_t)x->extent[0] * (size_t)rows : bytes;
}

/* Rows behind the run's length belong to nobody. */
static void **cut_data(const struct program *p, void **data, int64_t rows) {
    void **cut = calloc((size_t)p->nbuffers + 1, sizeof *cut);
    for (int b = 0; b < p->nbuffers; b++) {
        size_t bytes = bytes_of(&p->buffer[b], rows);
        if (!data[b]) continue;
        cut[b] = malloc(bytes + 1);
        memcpy(cut[b], data[b], bytes);
        ((unsigned char *)cut[b])[bytes] = 0xa5;
    }
    return cut;
}

static bool same_rows(const struct program *p, void **want, void **got, int64_t rows) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        size_t bytes = bytes_of(x, rows);
        if (!got[b]) continue;
        if (((unsigned char *)got[b])[bytes] != 0xa5) return false;
        for (size_t at = 0; x->role == ROLE_OUT && at < bytes; at += type_size(x->type)) {
            union value w = type_load(x->type, (char *)want[b] + at),
                        g = type_load(x->type, (char *)got[b] + at);
            if (type_is_float(x->type) ? !(fabs(w.f - g.f) <= 1e-4) : w.i != g.i) return false;
        }
    }
    return true;
}

struct open_run {
    struct diags d;
    struct program *p;
    struct schedule *s;
    struct executable *e[8];
};

static void run_length(struct open_run *r, int64_t length) {
    struct program *at = program_at(r->p, &length);
    void **want = make_data(r->p, 3), **got = make_data(r->p, 3);
    void **bound = rebind(r->p, r->s->program, got);
    struct sim_result result = {0};
    assert_true(program_run(at, want, NULL, NULL, &r->d));
    assert_true(sim_run(r->s, bound, &(struct sim_options){.size = &length}, &result, &r->d));
    assert_true(same_outputs(r->p, want, got));
    sim_result_free(&result);
    free(bound);
    for (int k = 0; k < 8; k++) {
        if (!r->e[k]) continue;
        free_data(r->p, got);
        void **fresh = make_data(r->p, 3);
        got = cut_data(r->p, fresh, length);
        bound = rebind(r->p, r->s->program, got);
        executable_sizes(r->e[k], &length);
        assert_true(executable_prepare(r->e[k], bound, &r->d));
        assert_true(executable_run(r->e[k], bound, 1, &r->d));
        assert_true(same_rows(r->p, want, got, length));
        free(bound);
        free_data(r->p, fresh);
    }
    free_data(r->p, got);
    free_data(r->p, want);
    program_free(at);
}

/* One schedule, one object: runs of each length. Gives how many objects there were. */
static int run_lengths(const char *text, const struct machine *m, bool run) {
    static const int64_t lengths[] = {0, 1, 2, 50, 3, 0};
    struct open_run r = {.p = NULL};
    struct arena a;
    int objects = 0;
    arena_init(&a);
    diags_init(&r.d);
    r.p = parse_as(&a, text, NULL, 0, true, &r.d);
    assert_int_equal(r.p->nsizes, 1);
    r.s = compile(r.p, m, approaches[0], 0, &r.d);
    if (!r.s) diags_print(&r.d, stderr);
    assert_non_null(r.s);
    assert_true(prints_back(r.s, &r.d));
    for (int k = 0; run && backends[k]; k++)
        if (backends[k]->accepts(r.s)) {
            r.e[k] = backends[k]->load(r.s, &(struct backend_options){0}, &r.d);
            assert_non_null(r.e[k]);
            objects++;
        }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) run_length(&r, lengths[i]);
    for (int k = 0; k < 8; k++)
        if (r.e[k]) executable_free(r.e[k]);
    schedule_free(r.s);
    program_free(r.p);
    diags_free(&r.d);
    arena_free(&a);
    return objects;
}

static void one_object_runs_any_length(void **state) {
    struct machines m = load_machines();
    struct arena a;
    (void)state;
    arena_init(&a);
    run_lengths(open_text, m.at[0], m.run[0]);
    assert_true(run_lengths(open_text, m.at[1], m.run[1]) > 0);
    char *text = read_example(&a, "examples/i8/rnn.isam"), *range = strstr(text, "T=0..4096");
    assert_non_null(range);
    memcpy(range, "T=0..0060", 9);
    assert_true(run_lengths(text, m.at[1], m.run[1]) > 0);
    run_lengths(text, m.at[2], false);
    free_machines(&m);
    arena_free(&a);
}

/* A size may be nothing but a length and a first dimension. */
static void sizes_elsewhere_are_refused(void **state) {
    static const char *const wrong[] = {
        "kernel r(T=0..9) { in x: f32[4, T]  in h0: f32[1]  out y: f32[T]\n  axes i: 1\n  recur t: "
        "T "
        "state h: f32[1] from h0 { h'[i] = h[i] + x[0,t]\n y[t+i] = h'[i]\n } }",
        "kernel r(T=0..9) { in x: f32[T]  out y: f32[T]\n axes i: T\n y[i] = x[i]\n }",
        "kernel r(T=0..9) { in x: f32[T]  in h0: f32[1]  out y: f32[T]\n  axes i: 1\n  recur t: T "
        "state h: f32[1] from h0 { h'[i] = h[i] + x[T-1-t]\n y[t+i] = h'[i]\n } }",
        "kernel r(T=0..9) { in x: f32[T]  in h0: f32[1]  out y: f32[T]\n  axes i: 1\n  recur t: T "
        "state h: f32[1] from h0 { h'[i] = h[i] + f32(T)\n y[t+i] = h'[i]\n } }",
    };
    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct arena a;
        struct diags d;
        struct kernel **kernel;
        arena_init(&a);
        diags_init(&d);
        struct source source = {"wrong.isam", wrong[k], strlen(wrong[k]), 1, 1};
        int n = kernel_parse(&a, &source, &kernel, &d);
        diags_print(&d, stderr);
        assert_int_equal(n, 1);
        assert_null(program_bind_sizes(kernel[0], NULL, NULL, &d));
        assert_non_null(strstr(d.at[0].text, "known only when the program runs"));
        diags_free(&d);
        arena_free(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_recurrences),
                                       cmocka_unit_test(weights_stay),
                                       cmocka_unit_test(host_and_device_meet),
                                       cmocka_unit_test(lanes_lie_along_rows),
                                       cmocka_unit_test(steps_cost_the_same),
                                       cmocka_unit_test(inputs_products_come_before_the_steps),
                                       cmocka_unit_test(one_object_runs_any_length),
                                       cmocka_unit_test(sizes_elsewhere_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
