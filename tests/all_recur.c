/* Recurrences: named and random ones × machines × approaches, against the interpreter: schedules
 * are verified, simulated, and run by every backend that takes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/recur_help.h"

/* ---- programs ---- */
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

/* Products of the same state with other weights, each used as soon as it is there, or added to what
 * the step reads. */
static void gates_text(struct text *t, const struct kind *k, int H, int gates, bool begun) {
    for (int g = 0; g < gates; g++) {
        text_printf(t, "    temp g%d: %s[%d]\n    g%d[i] = %s\n", g, k->wide, H, g,
                    begun && g != 1 ? "X[t,i]" : "0");
        text_printf(t, "    g%d[i] += %s(V[i+%d,j]) * %s(h[j])\n    b[i] += g%d[i]\n", g, k->wide,
                    g * H, k->wide, g);
    }
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
    int product = (int)pick(&s, 4), gates = (int)pick(&s, 4);
    struct text t = {0};
    text_printf(&t, "kernel r() {\n  in X: %s[%d, %d]  const U: %s[%d, %d]  in h0: %s[%d]\n",
                k->wide, T + 1, H, k->small, H, H, k->small, H);
    text_printf(&t, "  %s V: %s[%d, %d]\n", pick(&s, 4) ? "const" : "in", k->small, 3 * H, H);
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
    gates_text(&t, k, H, gates, pick(&s, 2));
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

/* A recurrence of no steps inside one of none: the axes of both are left over. */
static void none_inside_none(void **state) {
    static const char text[] =
        "kernel r() {\n  in h0: i32[4]  out y: i32[1, 4]  out hT: i32[4]\n"
        "  axes i: 4\n  y[0,i] = h0[i]\n"
        "  recur t: 0 state h: i32[4] from h0 to hT {\n"
        "    recur n: 0 state g: i32[4] from h to h' {\n      g'[i] = g[i] * 3\n    }\n  }\n}\n";
    struct machines m = load_machines();
    (void)state;
    for (int k = 0; k < m.n; k++) assert_int_equal(failures(text, &m, k, 0), 0);
    free_machines(&m);
}

/* ---- copies that stay ---- */
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
    static const int64_t lengths[] = {0, 1, 2, 50, 3, 16, 60, 0};
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

/* Steps that only scale their state and add to it: in chunks, and the rest one by one. */
/* No stream: its last state is kept by nobody, so chunks may lie anywhere. */
static const char linear_text[] =
    "kernel linear(T=0..60, K=32, V=64) {\n"
    "  in f: f32[T]  in k: f32[T, K]  in v: f32[T, V]  in S0: f32[K, V]\n"
    "  out y: f32[T, V]\n"
    "  recur t: T state S: f32[K, V] from S0 {\n"
    "    axes i: K, j: V\n"
    "    S'[i,j] = f[t] * S[i,j] + k[t,i] * v[t,j]\n"
    "    y[t,j] = 0\n"
    "    y[t,j] += k[t,i] * S'[i,j]\n"
    "  }\n"
    "}\n";

static int groups_of(const char *text, const struct machine *m) {
    struct arena a;
    struct diags d;
    int groups = 0;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse_as(&a, text, NULL, 0, true, &d);
    struct schedule *s = compile(p, m, approaches[0], 0, &d);
    assert_non_null(s);
    for (int x = 0; x < s->program->naxes; x++) groups += s->program->axis[x].group > 0;
    schedule_free(s);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
    return groups;
}

/* With one text in place of another, at its first place behind `after`, it is not proved. */
static void is_not_proved(const struct schedule *s, const char *after, const char *old,
                          const char *now) {
    struct text printed = {0}, wrong = {0}, reason = {0};
    struct diags d;
    int sampled;
    diags_init(&d);
    schedule_print(s, &printed);
    const char *from = strstr(printed.at, after), *at = from ? strstr(from, old) : NULL;
    assert_non_null(at);
    text_printf(&wrong, "%.*s%s%s", (int)(at - printed.at), printed.at, now, at + strlen(old));
    struct source source = {"wrong", wrong.at, wrong.n, 1, 1};
    struct schedule *again = schedule_parse(s->machine, &source, &d);
    assert_non_null(again);
    if (schedule_prove(again, 0, &sampled, &reason, &d) == PROOF_PROVED)
        fail_msg("proved with '%s' in place of '%s'", now, old);
    schedule_free(again);
    diags_free(&d);
    text_free(&printed);
    text_free(&wrong);
    text_free(&reason);
}

static void faults_in_groups(const struct machine *m) {
    struct arena a;
    struct diags d;
    struct text reason = {0};
    int sampled;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse_as(&a, linear_text, NULL, 0, true, &d);
    struct schedule *s = compile(p, m, approaches[0], 0, &d);
    assert_int_equal(schedule_prove(s, 0, &sampled, &reason, &d), PROOF_PROVED);
    /* a group less, one step of the rest less, one twice, the whole sequence again */
    is_not_proved(s, "  run {", " = 0 to T/8 ", " = 0 to T/8 - 1 ");
    is_not_proved(s, "  run {", " = T/8*8 to T ", " = T/8*8 + 1 to T ");
    is_not_proved(s, "  run {", " = T/8*8 to T ", " = T/8*8 - 1 to T ");
    is_not_proved(s, "  run {", " = T/8*8 to T ", " = 0 to T ");
    is_not_proved(s, "  run {", " = T/8*8 to T ", " = T/8*8 to T - 1 ");
    is_not_proved(s, "  run {", " = T/8*8 to T ", " = T/4*4 to T ");
    schedule_free(s);
    program_free(p);
    text_free(&reason);
    diags_free(&d);
    arena_free(&a);
}

static void open_lengths_go_in_chunks(void **state) {
    struct machines m = load_machines();
    (void)state;
    assert_int_equal(groups_of(linear_text, m.at[1]), 2);
    faults_in_groups(m.at[1]);
    assert_true(run_lengths(linear_text, m.at[1], m.run[1]) > 0);
    run_lengths(linear_text, m.at[2], false);
    free_machines(&m);
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
        "kernel r(T=0..9) { out y: f32[T]\n recur t: T / 2 + 1 { y[t] = 0\n } }",
        "kernel r(T=0..9) { out y: f32[T]\n recur t: T % 2 { y[t] = 0\n } }",
        "kernel r(T=0..9) { out y: f32[T]\n recur t: T from T / 2 * 3 { y[t] = 0\n } }",
        "kernel r(T=0..9) { out y: f32[T]\n recur t: T from 1 { y[t] = 0\n } }",
        "kernel r(T=0..9, S=0..9) { out y: f32[T]\n recur t: T from S / 2 * 2 { y[t] = 0\n } }",
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

/* Shorter runs have fewer rows: each row that a statement names must be there. */
static void rows_behind_are_refused(void **state) {
    static const struct {
        const char *size, *length, *value;
        bool right;
    } row[] = {{"T=0..9", "T", "x[t+1 else 9]", false},
               {"T=0..9", "T", "x[8-t]", false},
               {"T=0..9", "T reverse", "x[t+1 else 9]", false},
               {"T=0..9", "T", "x[t-1 else 9]", true},
               {"T=0..9", "T reverse", "x[t-2 else 9] + x[t]", true},
               {"T=0..9", "T", "x[0]", true},
               {"T=0..9", "T", "x[1]", false},
               {"T=3..9", "T", "x[2]", true},
               {"T=3..9", "T", "x[3]", false},
               {"T=0..9", "4", "x[t]", false},
               {"T=4..9", "4", "x[t]", true},
               {"T=0..9", "T", "x[s] where s < t", true},
               {"T=0..9", "T", "x[s] where s < t+2", false},
               {"T=0..9", "T", "x[g]", true},
               {"T=0..9", "T / 3", "x[3*t+2]", true},
               {"T=0..9", "T / 3", "x[3*t+3 else 9]", false},
               {"T=0..9", "T from T / 3 * 3", "x[t]", true},
               {"T=0..9", "T from T / 3 * 3", "x[t+1 else 9]", false}};
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct arena a;
        struct diags d;
        struct kernel **kernel;
        arena_init(&a);
        diags_init(&d);
        char *text = arena_printf(
            &a,
            "kernel r(%s) {\n  in x: f32[T]  out y: f32[]\n  y[] = 0\n  recur t: %s {\n"
            "    axes s: 9, g: t+1\n    y[] += %s\n  }\n}",
            row[k].size, row[k].length, row[k].value);
        struct source source = {"rows.isam", text, strlen(text), 1, 1};
        assert_int_equal(kernel_parse(&a, &source, &kernel, &d), 1);
        struct program *p = program_bind_sizes(kernel[0], NULL, NULL, &d);
        if (!p == row[k].right) fprintf(stderr, "%s\n", text);
        assert_int_equal(p != NULL, row[k].right);
        if (!p)
            assert_non_null(
                strstr(d.at[0].text, "'x' has as many rows as 'T' says when the program runs"));
        program_free(p);
        p = program_bind(kernel[0], &(struct bindings){&(struct binding){"T", 9}, 1, NULL}, NULL,
                         &d);
        assert_non_null(p);
        program_free(p);
        diags_free(&d);
        arena_free(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_recurrences),
                                       cmocka_unit_test(none_inside_none),
                                       cmocka_unit_test(weights_stay),
                                       cmocka_unit_test(host_and_device_meet),
                                       cmocka_unit_test(open_lengths_go_in_chunks),
                                       cmocka_unit_test(one_object_runs_any_length),
                                       cmocka_unit_test(sizes_elsewhere_are_refused),
                                       cmocka_unit_test(rows_behind_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
