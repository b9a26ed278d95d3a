/* Recurrences whose steps only scale their states and add to them, several steps at once: random
 * ones against the interpreter, with the proof of each; those that are not so; and what is chosen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "ir/chain.h"
#include "mapper/chunk.h"
#include "mapper/chunk_int.h"
#include "recur_help.h"
#include "tests/sample.h"

/* ---- programs ---- */

/* A state of heads × keys × values and, with `norm`, one of heads × keys. */
static char *linear_text(uint64_t seed, int T) {
    uint64_t s = seed * 7919 + 3;
    static const char *const scales[] = {"", "f[h] * ", "g[t,h] * ", "sigmoid(g[t,h] + f[h]) * ",
                                         "f[h] * g[t,h] * "};
    bool integer = !pick(&s, 4), norm = pick(&s, 2), late = pick(&s, 2), both = !pick(&s, 4),
         apart = pick(&s, 2), turned = pick(&s, 2), more = !pick(&s, 3), backwards = !pick(&s, 3);
    const char *t = integer ? "i32" : "f32", *scale = scales[pick(&s, integer ? 3 : 5)];
    const char *gate = pick(&s, 2) ? "e[h] * " : "";
    int H = 1 + (int)pick(&s, 3), K = 2 + (int)pick(&s, 5), V = 2 + (int)pick(&s, 6);
    struct text x = {0};
    text_printf(&x, "kernel r() {\n  in f: %s[%d]  in g: %s[%d,%d]  in k: %s[%d,%d,%d]\n", t, H, t,
                T, H, t, T, H, K);
    text_printf(&x, "  in v: %s[%d,%d,%d]  in q: %s[%d,%d,%d]  in S0: %s[%d,%d,%d]\n", t, T, H, V,
                t, T, H, K, t, H, K, V);
    text_printf(&x, "  in n0: %s[%d,%d]  out y: %s[%d,%d,%d]  out z: %s[%d,%d]\n", t, H, K, t, T, H,
                V, t, H, T);
    text_printf(&x, "  out ST: %s[%d,%d,%d]  out nT: %s[%d,%d]\n", t, H, K, V, t, H, K);
    if (!norm)
        text_printf(&x, "  axes o: %d, p: %d, m: %d\n  nT[o,p] = n0[o,p]\n  z[o,m] = 0\n", H, K, T);
    text_printf(&x, "  recur t: %d%s state S: %s[%d,%d,%d] from S0 to ST", T,
                backwards ? " reverse" : "", t, H, K, V);
    if (norm) text_printf(&x, " state n: %s[%d,%d] from n0 to nT", t, H, K);
    text_printf(&x,
                " {\n    axes h: %d, i: %d, j: %d, l: %d\n    temp e: %s[%d]  temp a: %s[%d,%d]\n",
                H, K, V, K, t, H, t, H, V);
    text_printf(&x, "    e[h] = g[t,h] + f[h]\n");
    const char *read =
        turned ? "    a[h,j] += q[t,h,l] * S%s[h,l,j]\n" : "    a[h,j] += S%s[h,i,j] * q[t,h,i]\n";
    const char *step = "    S'[h,i,j] = %sS[h,i,j] + %sk[t,h,i] * v[t,h,j]\n";
    text_printf(&x, "    a[h,j] = 0\n");
    if (!late || both) text_printf(&x, read, "");
    if (apart) {
        text_printf(&x, "    S'[h,i,j] = %sS[h,i,j]\n", scale);
        text_printf(&x, "    S'[h,i,j] += %sk[t,h,i] * v[t,h,j]\n", gate);
    } else {
        text_printf(&x, step, scale, gate);
    }
    if (norm) text_printf(&x, "    n'[h,i] = %sn[h,i] + %sk[t,h,i]\n", scale, gate);
    if (late || both) text_printf(&x, read, "'");
    if (norm) text_printf(&x, "    z[h,t] = 0\n    z[h,t] += q[t,h,i] * n'[h,i]\n");
    text_printf(&x, "    y[t,h,j] = a[h,j] + %s\n", more ? "e[h]" : "v[t,h,j]");
    text_printf(&x, "  }\n}\n");
    return x.at;
}

/* ---- one program ---- */

static const char *differs(const struct program *p, const struct program *q, struct diags *d) {
    void **want = make_data(p, 5), **got = make_data(p, 5), **bound = rebind(p, q, got);
    const char *wrong = NULL;
    if (!program_run(p, want, NULL, NULL, d) || !program_run(q, bound, NULL, NULL, d))
        wrong = "the interpreter fails";
    if (!wrong && !same_outputs(p, want, got)) wrong = "values differ";
    struct items a = {0, p->nitems}, b = {0, q->nitems};
    if (!wrong && items_equal_by(p, a, q, b, LAWS_REORDER, 0).evidence != EVIDENCE_PROVED)
        wrong = "not proved";
    free_data(p, want);
    free_data(p, got);
    free(bound);
    return wrong;
}

/* Where the body is among the items. */
static int recurrence(const struct program *p) {
    int at = 0;
    while (p->item[at].kind != ITEM_RECUR) at++;
    return at;
}

static const char *in_chunks(const struct program *p, int64_t length, struct diags *d) {
    struct program *q = program_copy(p);
    struct chunking c;
    const char *wrong = "not found";
    if (chunk_find(q, recurrence(q), &c)) {
        c.length = length;
        wrong = chunk_write(&c) ? differs(p, q, d) : "not written";
    }
    program_free(q);
    return wrong;
}

static void random_ones(void **state) {
    (void)state;
    int wrong = 0;
    for (uint64_t seed = 0; seed < 240; seed++) {
        if (!sampled(seed / 10)) continue;
        static const int lengths[][2] = {{12, 4}, {6, 2}, {8, 8},  {15, 5}, {9, 3},
                                         {11, 4}, {7, 2}, {13, 8}, {9, 4},  {5, 3}};
        const int *n = lengths[seed % 10];
        char *text = linear_text(seed, n[0]);
        struct arena a;
        struct diags d;
        arena_init(&a);
        diags_init(&d);
        struct program *p = parse(&a, text, NULL, 0, &d);
        const char *why = in_chunks(p, n[1], &d);
        if (why) fprintf(stderr, "seed %d, %d of %d: %s\n%s", (int)seed, n[1], n[0], why, text);
        wrong += why != NULL;
        program_free(p);
        diags_free(&d);
        arena_free(&a);
        free(text);
    }
    assert_int_equal(wrong, 0);
}

/* ---- of a length that is known only when the program runs ---- */

/* The interpreter's values at each length; and one proof for all of them. */
static const char *differs_at(const struct program *p, const struct program *q, int64_t most,
                              struct diags *d) {
    struct items a = {0, p->nitems}, b = {0, q->nitems};
    if (items_equal_by(p, a, q, b, LAWS_REORDER, 0).evidence != EVIDENCE_PROVED)
        return "not proved";
    const char *wrong = NULL;
    for (int64_t T = 0; T <= most && !wrong; T++) {
        struct program *u = program_at(p, &T), *v = program_at(q, &T);
        void **want = make_data(u, 5), **got = make_data(u, 5), **bound = rebind(u, v, got);
        if (!program_run(u, want, NULL, NULL, d) || !program_run(v, bound, NULL, NULL, d))
            wrong = "the interpreter fails";
        if (!wrong && !same_outputs(u, want, got)) wrong = "values differ";
        free_data(u, want);
        free_data(u, got);
        free(bound);
        program_free(u);
        program_free(v);
    }
    return wrong;
}

#define OPEN(body)                                                                                 \
    "kernel r(T=0..19) { in f: f32[T] in k: f32[T,3] in v: f32[T,4] in q: f32[T,3] "               \
    "in S0: f32[3,4] out y: f32[T,4] out ST: f32[3,4] recur t: T state S: f32[3,4] from S0 to "    \
    "ST { axes i: 3, j: 4\n" body " } }"
#define NEXT "S'[i,j] = f[t] * S[i,j] + k[t,i] * v[t,j]\n"
#define SUM(S) "y[t,j] = 0\n y[t,j] += q[t,i] * " S "[i,j]\n"

static const char *const open_texts[] = {OPEN(NEXT SUM("S'")), OPEN(SUM("S") NEXT),
                                         OPEN("S'[i,j] = S[i,j] + k[t,i] * v[t,j]\n" SUM("S'")),
                                         OPEN("temp g: f32[3]\n g[i] = k[t,i] * f[t]\n S'[i,j] = "
                                              "f[t] * S[i,j] + g[i] * v[t,j]\n" SUM("S'"))};

static struct program *open_chunks(struct arena *a, const char *text, int64_t length,
                                   struct program **of, struct diags *d) {
    struct program *p = *of = parse_as(a, text, NULL, 0, true, d), *q = program_copy(p);
    struct chunking c;
    assert_true(chunk_find(q, recurrence(q), &c));
    c.length = length;
    assert_true(chunk_write(&c));
    return q;
}

static void open_lengths(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof open_texts / sizeof *open_texts; k++)
        for (int64_t length = 2; length <= 8; length *= 2) {
            struct arena a;
            struct diags d;
            arena_init(&a);
            diags_init(&d);
            struct program *p, *q = open_chunks(&a, open_texts[k], length, &p, &d);
            const char *why = differs_at(p, q, 19, &d);
            if (why) fail_msg("%s in chunks of %d: %s", open_texts[k], (int)length, why);
            program_free(p);
            program_free(q);
            diags_free(&d);
            arena_free(&a);
        }
}

/* The rest that begins too early or too late, chunks that are others, a step backwards. */
static void open_faults(void **state) {
    (void)state;
    for (int fault = 0; fault < 4; fault++) {
        struct arena a;
        struct diags d;
        arena_init(&a);
        diags_init(&d);
        struct program *p, *q = open_chunks(&a, open_texts[0], 4, &p, &d);
        int at = recurrence(q);
        struct axis *chunks = &q->axis[q->item[at].recur->axis],
                    *rest = &q->axis[q->item[at + 1].recur->axis];
        if (fault == 0) rest->group = 2;
        if (fault == 1) rest->rest = false, rest->group = 0, rest->first = 0;
        if (fault == 2) chunks->group = rest->group = 8;
        if (fault == 3) q->item[at].recur->reverse = true;
        struct items whole = {0, p->nitems}, cut = {0, q->nitems};
        if (items_equal_by(p, whole, q, cut, LAWS_REORDER, 0).evidence == EVIDENCE_PROVED)
            fail_msg("fault %d is proved", fault);
        program_free(p);
        program_free(q);
        diags_free(&d);
        arena_free(&a);
    }
}

/* ---- those that are not so ---- */

#define HEAD                                                                                       \
    "kernel r() { in f: f32[12] in k: f32[12,4] in v: f32[12,4] in S0: f32[4,4] out y: f32[12,4] " \
    "out ST: f32[4,4] "
#define STATE "state S: f32[4,4] from S0 to ST { axes i: 4, j: 4, l: 4\n"
#define ADDS " + k[t,i] * v[t,j]\n"
#define READS "y[t,j] = 0\n y[t,j] += k[t,i] * S'[i,j] } }"

static bool found(const char *text) {
    struct arena a;
    struct diags d;
    struct chunking c;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    bool is = chunk_find(p, recurrence(p), &c);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
    return is;
}

static void others(void **state) {
    (void)state;
    static const char *const not_linear[] = {
        /* another element, a function, a square, a product of states */
        HEAD "recur t: 12 " STATE "S'[i,j] = f[t] * S[j,i]" ADDS READS,
        HEAD "recur t: 12 " STATE "S'[i,j] = tanh(S[i,j])" ADDS READS,
        HEAD "recur t: 12 " STATE "S'[i,j] = S[i,j] * S[i,j]" ADDS READS,
        HEAD "recur t: 12 " STATE "S'[i,j] = f[t] * S[i,j] + S[i,j]" ADDS READS,
        HEAD "recur t: 12 " STATE "S'[i,j] = f[t]" ADDS READS,
        /* what they read is of another step */
        HEAD "recur t: 12 " STATE "S'[i,j] = S[i,j] + k[t,i] * y[t-1,j else 0]\n " READS,
        HEAD "recur t: 12 " STATE "S'[i,j] = S[i,j] + k[t,i] * f32(t)\n " READS,
        /* a decays along what the reader sums over */
        HEAD "recur t: 12 " STATE "S'[i,j] = k[t,i] * S[i,j]" ADDS READS,
        /* the reader is no sum of products; it reads the state twice */
        HEAD "recur t: 12 " STATE "S'[i,j] = S[i,j]" ADDS "y[t,j] = S'[0,j] } }",
        HEAD "recur t: 12 " STATE "S'[i,j] = S[i,j]" ADDS
             "y[t,j] = 0\n y[t,j] += S'[i,j] * S'[i,j] } }",
        HEAD "recur t: 12 " STATE "S'[i,j] = S[i,j]" ADDS "y[t,j] = 0\n y[t,j] max= S'[i,j] } }",
        /* what is added depends on the state */
        HEAD "recur t: 12 " STATE "temp a: f32[4]\n a[i] = 0\n a[i] += S[i,l] * k[t,l]\n S'[i,j] = "
             "S[i,j] + a[i] * v[t,j]\n " READS,
    };
    assert_true(found(HEAD "recur t: 12 " STATE "S'[i,j] = f[t] * S[i,j]" ADDS READS));
    for (size_t k = 0; k < sizeof not_linear / sizeof *not_linear; k++)
        if (found(not_linear[k])) fail_msg("taken for linear: %s", not_linear[k]);
}

/* ---- what is chosen, and all of it ---- */

/* A machine's, as a file has them that says nothing of them. */
static struct rank_cycles cycles = {.statement = 100, .bring = 0.32, .product = 0.08, .cut = 1.76};

static int64_t steps_of(const char *text, bool reorders) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    chunk_steps(p, &cycles, reorders ? REWRITE_REORDERS : REWRITE_EXACT, NULL);
    int64_t n = p->axis[p->item[recurrence(p)].recur->axis].extent;
    program_free(p);
    diags_free(&d);
    arena_free(&a);
    return n;
}

/* Where the cuts of a stream decide where chunks lie, its floats differ by rounding from cut to
 * cut. */
static int changed(const char *text, enum rewrite_effect floats) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse_as(&a, text, NULL, 0, true, &d);
    int n = chunk_steps(p, &cycles, floats, NULL);
    program_free(p);
    diags_free(&d);
    arena_free(&a);
    return n;
}

#define OPEN_SUM(type, last)                                                                       \
    "kernel r(T=0..1024) { in k: " type "[T,64] in v: " type "[T,64] in S0: " type "[64,64] "      \
    "out y: " type "[T,64] " last " recur t: T state S: " type "[64,64] from S0 "

#define OPEN_BODY                                                                                  \
    " { axes i: 64, j: 64\n S'[i,j] = S[i,j] + k[t,i] * v[t,j]\n y[t,j] = 0\n "                    \
    "y[t,j] += k[t,i] * S'[i,j] } }"

static void streams_keep_their_bits(void **state) {
    static const char stream[] = OPEN_SUM("f32", "out ST: f32[64,64]") "to ST" OPEN_BODY,
                      whole[] = OPEN_SUM("f32", "") OPEN_BODY,
                      integer[] = OPEN_SUM("i32", "out ST: i32[64,64]") "to ST" OPEN_BODY;
    (void)state;
    assert_int_equal(changed(stream, REWRITE_FINITE), 0);
    assert_int_equal(changed(stream, REWRITE_ROUNDS), 1);
    assert_int_equal(changed(whole, REWRITE_REORDERS), 1);
    assert_int_equal(changed(integer, REWRITE_EXACT), 1);
}

#define RETENTION(T, K, V)                                                                         \
    "kernel r() { in f: f32[" T "] in k: f32[" T "," K "] in v: f32[" T "," V "] in S0: f32[" K    \
    "," V "] out y: f32[" T "," V "] out ST: f32[" K "," V "] recur t: " T " state S: f32[" K      \
    "," V "] from S0 to ST { axes i: " K ", j: " V                                                 \
    "\n S'[i,j] = f[t] * S[i,j] + k[t,i] * v[t,j]\n y[t,j] = 0\n y[t,j] += k[t,i] * S'[i,j] } }"

#define BACKWARDS(T, K, V)                                                                         \
    "kernel r() { in f: f32[" T "] in k: f32[" T "," K "] in v: f32[" T "," V "] in S0: f32[" K    \
    "," V "] out y: f32[" T "," V "] out ST: f32[" K "," V "] recur t: " T                         \
    " reverse state S: f32[" K "," V "] from S0 to ST { axes i: " K ", j: " V                      \
    "\n y[t,j] = 0\n y[t,j] += k[t,i] * S[i,j]\n"                                                  \
    " S'[i,j] = f[t] * S[i,j] + k[t,i] * v[t,j] } }"
#define SUMS(value)                                                                                \
    "kernel r() { in k: f32[1024,32] in v: f32[1024,32] in x: f32[1024,32,32] "                    \
    "in z: f32[1024,32,32] in S0: f32[32,32] out ST: f32[32,32] recur t: 1024 "                    \
    "state S: f32[32,32] from S0 to ST { axes i: 32, j: 32\n S'[i,j] = " value " } }"

static void choices(void **state) {
    (void)state;
    assert_int_equal(steps_of(RETENTION("1024", "64", "64"), true), 1024 / 8);
    /* a chunk's statements cost more to begin than a small state is worth */
    assert_int_equal(steps_of(RETENTION("1024", "32", "32"), true), 1024 / 8);
    assert_int_equal(steps_of(RETENTION("1024", "16", "16"), true), 1024);
    assert_int_equal(steps_of(RETENTION("1024", "64", "64"), false), 1024);
    assert_int_equal(steps_of(RETENTION("1000", "64", "64"), true), 1000 / 8);
    /* no length divides the steps: the last five go one by one */
    assert_int_equal(steps_of(RETENTION("1021", "64", "64"), true), 1021 / 8);
    assert_int_equal(steps_of(RETENTION("1021", "16", "16"), true), 1021);
    /* a state as small as what it is made from */
    assert_int_equal(steps_of(RETENTION("1024", "64", "1"), true), 1024);
    /* nobody reads the state: what steps add is a product, or as much as the state is */
    assert_int_equal(steps_of(SUMS("S[i,j] + k[t,i] * v[t,j]"), true), 1024 / 64);
    assert_int_equal(steps_of(SUMS("S[i,j] + x[t,i,j]"), true), 1024);
    assert_int_equal(steps_of(SUMS("S[i,j] + x[t,i,j] * z[t,i,j]"), true), 1024);
    assert_int_equal(steps_of(SUMS("k[t,0] * S[i,j] + x[t,i,j]"), true), 1024);
}

/* A product of inputs with weights is made for all steps; then the steps go in chunks. */
#define PROJECTED(T)                                                                               \
    "kernel r() { in x: f32[" T ",24] const W: f32[32,24] in f: f32[" T "] in v: f32[" T           \
    ",24] in S0: f32[32,24] out y: f32[" T ",24] out ST: f32[32,24] recur t: " T                   \
    " state S: f32[32,24] from S0 to ST { axes i: 32, j: 24, e: 24\n temp k: f32[32]\n"            \
    " k[i] = 0\n k[i] += W[i,e] * x[t,e]\n S'[i,j] = f[t] * S[i,j] + k[i] * v[t,j]\n"              \
    " y[t,j] = 0\n y[t,j] += k[i] * S'[i,j] } }"
#define SUMMED(T)                                                                                  \
    "kernel r() { in x: f32[" T ",24] const W: f32[24,24] in S0: f32[24] out ST: f32[24] "         \
    "recur t: " T " state S: f32[24] from S0 to ST { axes i: 24, e: 24\n temp k: f32[24]\n"        \
    " k[i] = 0\n k[i] += W[i,e] * x[t,e]\n S'[i] = S[i] + k[i] } }"

/* Where the product with W stands, and how many steps are left. */
static void lifted_and_chunked(const char *text, int64_t least, int64_t most) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct machine *m = machine_load("machines/cpu-scalar.xml", NULL, &d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    struct decider *decider = decider_open(approaches[0], 0);
    struct cover *c = mapper_cover(p, m, decider, &d);
    int inside = 0, before = 0;
    assert_non_null(c);
    const struct program *q = c->program;
    for (int s = 0; s < q->nstmts; s++)
        for (int r = 0; r < q->stmt[s].nreads && q->stmt[s].combine == COMBINE_ADD; r++)
            if (!strcmp(q->buffer[q->stmt[s].read[r].buffer].name, "W"))
                ++*(q->stmt[s].scope ? &inside : &before);
    assert_int_equal(inside, 0);
    assert_int_equal(before, 1);
    assert_int_equal(c->steps.nscopes, 1);
    int64_t left = q->axis[c->steps.scope[0].axis].extent;
    if (left < least || left > most) fail_msg("%d steps are left", (int)left);
    cover_free(c);
    decider_close(decider);
    program_free(p);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

static void products_before_chunks(void **state) {
    (void)state;
    lifted_and_chunked(PROJECTED("1024"), 2, 1024 / 4);
    lifted_and_chunked(SUMMED("1024"), 1024, 1024);
    lifted_and_chunked(SUMMED("9"), 9, 9);
}

struct facts { /* of a cover */
    int64_t steps;
    bool lifts; /* a sum of W is made before the steps */
};

/* What the machine's file says decides: of a cover on one whose fallback has this attribute. */
static struct facts facts_with(const char *attribute, const char *text) {
    char path[] = "/tmp/isamap-test-XXXXXX";
    int file = mkstemp(path);
    struct arena a;
    struct diags d;
    struct text xml = {0};
    arena_init(&a);
    diags_init(&d);
    text_printf(&xml,
                "<machine xmlns=\"urn:isamap:machine:1\" name=\"m\"><memory id=\"dram\" "
                "rate=\"16\"/><queue id=\"cpu\"/>"
                "<fallback as=\"c\" queue=\"cpu\" memory=\"dram\" interval=\"2\" %s/></machine>",
                attribute);
    assert_true(write(file, xml.at, xml.n) == (ssize_t)xml.n);
    close(file);
    struct machine *m = machine_load(path, NULL, &d);
    unlink(path);
    assert_non_null(m);
    struct program *p = parse(&a, text, NULL, 0, &d);
    struct decider *decider = decider_open(approaches[0], 0);
    struct cover *c = mapper_cover(p, m, decider, &d);
    assert_non_null(c);
    struct facts x = {.steps = c->program->axis[c->steps.scope[0].axis].extent};
    for (int k = 0; k < c->program->nstmts; k++) {
        const struct stmt *s = &c->program->stmt[k];
        int w = program_buffer(c->program, "W");
        x.lifts |= !s->scope && s->combine == COMBINE_ADD && w >= 0 && stmt_reads(s, w);
    }
    cover_free(c);
    decider_close(decider);
    program_free(p);
    machine_free(m);
    text_free(&xml);
    diags_free(&d);
    arena_free(&a);
    return x;
}

static void machine_decides(void **state) {
    (void)state;
    static const char *const dearer[] = {"statement=\"1000\"", "product=\"20\"", "cut=\"50\"",
                                         "bring=\"0.01\""};
    const char *text = RETENTION("256", "64", "64");
    assert_int_equal(facts_with("", text).steps, 256 / 8);
    assert_int_equal(
        facts_with("statement=\"100\" bring=\"0.32\" product=\"0.08\" cut=\"1.76\"", text).steps,
        256 / 8);
    for (size_t k = 0; k < sizeof dearer / sizeof *dearer; k++)
        if (facts_with(dearer[k], text).steps == 256 / 8) fail_msg("%s decides nothing", dearer[k]);
    assert_int_equal(facts_with("bring=\"0.01\"", text).steps, 256);
}

static void lifting_is_priced(void **state) {
    (void)state;
    const char *text = "kernel a() { in x: f32[32, 64]  in W: f32[8, 64]  in h0: f32[8]\n"
                       "out y: f32[32, 8]\n"
                       "recur t: 32 state h: f32[8] from h0 { axes i: 8, j: 64  temp a: f32[8]\n"
                       "a[i] = 0\n a[i] += W[i,j] * x[t,j]\n h'[i] = tanh(h[i] + a[i])\n"
                       "y[t,i] = h'[i] } }";
    /* in each step 32 · 512; before them 512 + 32 · 2 · home · 8 */
    assert_true(facts_with("", text).lifts);
    assert_true(facts_with("home=\"30\"", text).lifts);
    assert_false(facts_with("home=\"32\"", text).lifts);
}

/* Mapped, scheduled and run; each program of the chain is proved. At least so many axes are new. */
static void compile_one(const char *text, const struct machines *m, int axes, bool warns) {
    struct arena a;
    struct diags d;
    struct text why = {0};
    arena_init(&a);
    diags_init(&d);
    struct program *p = parse(&a, text, NULL, 0, &d);
    struct schedule *s = compile(p, m->at[0], approaches[0], 1, &d);
    assert_non_null(s);
    assert_int_equal(warns ? d.errors : d.n, 0);
    assert_true(s->program->naxes >= p->naxes + axes);
    assert_true(prints_back(s, &d));
    if (!schedule_prove_symbolically(s, 0, &why)) fail_msg("%s", why.at);
    struct chain_report r = chain_verify(s->chain, s->program, NULL);
    assert_int_equal(r.evidence, EVIDENCE_PROVED);
    const char *wrong = try_all(p, s, m->run[0], &d);
    if (wrong) fail_msg("%s", wrong);
    schedule_free(s);
    program_free(p);
    text_free(&why);
    diags_free(&d);
    arena_free(&a);
}

static void compiled(void **state) {
    (void)state;
    struct machines m = load_machines();
    compile_one(RETENTION("64", "32", "24"), &m, 3, false);
    compile_one(RETENTION("61", "32", "24"), &m, 4, false);
    compile_one(BACKWARDS("61", "32", "24"), &m, 4, false);
    compile_one(BACKWARDS("71", "64", "64"), &m, 4, false);
    compile_one(PROJECTED("64"), &m, 4, true);
    compile_one(PROJECTED("67"), &m, 5, true);
    compile_one(SUMS("S[i,j] + k[t,i] * v[t,j]"), &m, 1, false);
    free_machines(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_ones),
                                       cmocka_unit_test(others),
                                       cmocka_unit_test(open_lengths),
                                       cmocka_unit_test(open_faults),
                                       cmocka_unit_test(streams_keep_their_bits),
                                       cmocka_unit_test(choices),
                                       cmocka_unit_test(products_before_chunks),
                                       cmocka_unit_test(machine_decides),
                                       cmocka_unit_test(lifting_is_priced),
                                       cmocka_unit_test(compiled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
