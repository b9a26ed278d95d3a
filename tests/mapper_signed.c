/* Unsigned bytes kept as signed ones beside a device that multiplies those alone: every value is as
 * it was, and the device then takes the sums. */
#include "ir/interp.h"
#include "mapper_help.h"

enum { MOST = 24, LONGEST = 4096 };

struct run {
    uint8_t bytes[MOST][LONGEST];
    void *data[MOST];
};

static void fill(struct run *r, const struct program *p, uint64_t seed) {
    for (int b = 0; b < p->nbuffers; b++) {
        size_t size = (size_t)p->buffer[b].elements * type_size(p->buffer[b].type);
        assert_true(b < MOST && size <= LONGEST);
        r->data[b] = r->bytes[b];
        for (size_t i = 0; i < size; i++) r->bytes[b][i] = (uint8_t)help_below(&seed, 256);
        if (!type_is_float(p->buffer[b].type)) continue;
        for (int64_t i = 0; i < p->buffer[b].elements; i++)
            ((float *)r->data[b])[i] = (float)(help_below(&seed, 4001) - 2000) / 256.0F;
    }
}

static void interpret(struct run *r, const struct program *p) {
    struct diags d;
    diags_init(&d);
    assert_true(program_verify(p, &d));
    assert_true(program_run(p, r->data, NULL, NULL, &d));
    diags_free(&d);
}

static struct program *shifted(const struct program *p, const char *machine) {
    struct machine *m = help_machine(machine);
    struct program *q = mapper_signed(p, m);
    machine_free(m);
    return q;
}

static void results_agree(const struct program *p, const struct program *q) {
    static struct run a, b;
    for (uint64_t seed = 1; seed < 6; seed++) {
        fill(&a, q, seed);
        memcpy(b.bytes, a.bytes, sizeof a.bytes);
        for (int i = 0; i < q->nbuffers; i++) b.data[i] = b.bytes[i];
        interpret(&a, p);
        interpret(&b, q);
        for (int i = 0; i < p->nbuffers; i++)
            if (p->buffer[i].role == ROLE_OUT)
                assert_memory_equal(a.bytes[i], b.bytes[i],
                                    (size_t)p->buffer[i].elements * type_size(p->buffer[i].type));
    }
}

/* A model's layer and what stands around it: x is given, y the result. */
static void check(const char *machine, const char *text, const char *const *parts) {
    struct program *p = help_program("p", text), *q = shifted(p, machine);
    struct text t = {0};
    assert_non_null(q);
    results_agree(p, q);
    program_print(q, &t);
    for (; *parts; parts++)
        if (!strstr(t.at, *parts)) {
            print_message("no '%s' in\n%s", *parts, t.at);
            fail();
        }
    for (int b = 0; b < q->nbuffers; b++)
        assert_true(q->buffer[b].role != ROLE_TEMP || q->buffer[b].type != TYPE_U8);
    text_free(&t);
    program_free(p);
    program_free(q);
}
#define CHECK(machine, text, ...) check(machine, text, (const char *const[]){__VA_ARGS__, NULL})

/* The second layer reads what the first one rounds, the third pools that; a sum reads the input
 * again. */
static const char layers[] =
    "kernel p() {\n"
    "  in x: u8[3,5,6]  const w: i8[4,3,3]  const v: i8[4,4]  const f: f32[4]\n"
    "  temp a: u8[4,5,6]  temp m: u8[4,5,3]  out y: u8[4,5,3]  out z: u8[3,5,6]\n"
    "  temp S: i32[4,5,6]  temp T: i32[4,5,3]\n"
    "  axes k: 4, c: 3, i: 5, j: 6, r: 3, d: 4, h: 3, e: 2\n"
    "  S[k,i,j] = 0\n"
    "  S[k,i,j] += (i32(x[c,i,j + r - 1 else 120]) - 120) * i32(w[k,c,r])\n"
    "  a[k,i,j] = u8(clip(round(f32(S[k,i,j]) * f[k]) + 3.0, 0.0, 255.0))\n"
    "  m[k,i,h] = 0\n"
    "  m[k,i,h] max= a[k,i,2*h + e]\n"
    "  T[d,i,h] = 0\n"
    "  T[d,i,h] += (i32(m[k,i,h]) - 3) * i32(v[d,k])\n"
    "  y[d,i,h] = u8(clip(round(f32(T[d,i,h]) * f[d]), 7.0, 200.0))\n"
    "  z[c,i,j] = u8(clip(round(f32(i32(x[c,i,j]) - 120) * 0.5) + 128.0, 0.0, 255.0))\n}\n";

static void a_network_stays_as_it_is(void **state) {
    (void)state;
    CHECK("edge16", layers, "x.signed[c, i, j + r - 1 else -8]) - -8)",
          "i8(clip(round(f32(S[k, i, j]) * f[k]) + -125.0, -128.0, 127.0))", "m[k, i, h] = -128",
          "m[k, i, h] max= a[k, i, 2 * h + e]", "(i32(m[k, i, h]) - -125)",
          "+ -128.0, -121.0, 72.0))",
          "round(f32(i32(x.signed[c, i, j]) - -8) * 0.5), -128.0, 127.0))");
    CHECK("gemmini", layers, "x.signed");
    CHECK("vdla", layers, "x.signed");
}

/* Weights may be unsigned too; what is not rounded, or is no byte in between, is what it was. */
static void other_forms_stay_as_they_are(void **state) {
    (void)state;
    CHECK("edge16",
          "kernel p() {\n"
          "  in x: u8[8,5]  const w: u8[6,8]  in g: f32[6,5]  out y: u8[6,5]  out n: i32[6,5]\n"
          "  temp a: u8[6,5]  temp b: u8[6,5]  temp S: i32[6,5]\n"
          "  axes k: 6, c: 8, p: 5\n"
          "  S[k,p] = 0\n"
          "  S[k,p] += (i32(x[c,p]) - 128) * (i32(w[k,c]) - 17)\n"
          "  a[k,p] = u8(clip(g[k,p], 0.0, 255.0))\n"
          "  b[k,p] = a[k,p] + u8(S[k,p])\n"
          "  y[k,p] = b[k,p] * b[k,p]\n"
          "  n[k,p] = i32(y[k,p]) - 300 * i32(a[k,p]) + i32(i8(b[k,p]))\n}\n",
          "i32(x.signed[c, p]) * (i32(w.signed[k, c]) - -111)");
}

static void nothing_changes(const char *machine, const char *text) {
    struct program *p = help_program("p", text);
    assert_null(shifted(p, machine));
    program_free(p);
}

/* A CPU multiplies unsigned bytes; sums of signed ones need nothing; bytes that are summed up, and
 * recurrences, are left alone. */
static void others_are_left_alone(void **state) {
    (void)state;
    nothing_changes("cpu-avx512", layers);
    nothing_changes("edge16", "kernel p() { in x: i8[8,5]  const w: i8[6,8]  out y: i32[6,5]\n"
                              "  axes k: 6, c: 8, p: 5\n  y[k,p] = 0\n"
                              "  y[k,p] += i32(x[c,p]) * i32(w[k,c])\n}\n");
    nothing_changes("edge16", "kernel p() { in x: u8[8,5]  const w: i8[6,8]  out y: i32[6,5]\n"
                              "  out z: u8[8]\n  axes k: 6, c: 8, p: 5\n  y[k,p] = 0\n"
                              "  y[k,p] += i32(x[c,p]) * i32(w[k,c])\n"
                              "  z[c] = 0\n  z[c] += x[c,p]\n}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_stays_as_it_is),
        cmocka_unit_test(other_forms_stay_as_they_are),
        cmocka_unit_test(others_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
