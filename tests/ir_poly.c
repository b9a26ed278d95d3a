#include "ir/poly.h"

#include <isl/id.h>
#include <isl/union_set.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

struct fixture {
    struct arena arena;
    struct diags diags;
    struct program *program;
    isl_ctx *ctx;
};

static void open_text(struct fixture *f, const char *text) {
    struct kernel **kernels;
    arena_init(&f->arena);
    diags_init(&f->diags);
    f->ctx = isl_ctx_alloc();
    struct source *source = arena_alloc(&f->arena, sizeof *source);
    *source = (struct source){.file = "t.isam", .text = text, .length = strlen(text)};
    assert_int_equal(kernel_parse(&f->arena, source, &kernels, &f->diags), 1);
    f->program = program_bind(kernels[0], NULL, NULL, &f->diags);
    if (!f->program) diags_print(&f->diags, stderr);
    assert_non_null(f->program);
}

static void close_text(struct fixture *f) {
    program_free(f->program);
    isl_ctx_free(f->ctx);
    diags_free(&f->diags);
    arena_free(&f->arena);
}

static void check_set(struct fixture *f, isl_set *got, const char *expected) {
    isl_set *want = isl_set_read_from_str(f->ctx, expected);
    if (!isl_set_is_equal(got, want)) {
        isl_set_dump(got);
        fail_msg("expected %s", expected);
    }
    isl_set_free(got);
    isl_set_free(want);
}

static void check_map(struct fixture *f, isl_map *got, const char *expected) {
    isl_map *want = isl_map_read_from_str(f->ctx, expected);
    if (!isl_map_is_equal(got, want)) {
        isl_map_dump(got);
        fail_msg("expected %s", expected);
    }
    isl_map_free(got);
    isl_map_free(want);
}

static void check_dependences(struct fixture *f, const char *expected) {
    isl_union_map *got = poly_dependences(f->ctx, f->program);
    isl_union_map *want = isl_union_map_read_from_str(f->ctx, expected);
    if (!isl_union_map_is_equal(got, want)) {
        isl_union_map_dump(got);
        fail_msg("expected %s", expected);
    }
    isl_union_map_free(got);
    isl_union_map_free(want);
}

static void convolution(void **state) {
    (void)state;
    struct fixture f;
    open_text(&f, "kernel c() {\n"
                  "  in x: f32[8]  const w: f32[3]  out y: f32[4]\n"
                  "  axes p: 4, r: 3\n"
                  "  y[p]  = 0\n"
                  "  y[p] += x[2*p+r-1 else 0] * w[r]\n"
                  "}\n");
    check_set(&f, poly_domain(f.ctx, f.program, 0), "{ S0[p] : 0 <= p < 4 }");
    check_set(&f, poly_domain(f.ctx, f.program, 1), "{ S1[p,r] : 0 <= p < 4 and 0 <= r < 3 }");
    check_map(&f, poly_access(f.ctx, f.program, 1, -1),
              "{ S1[p,r] -> y[p] : 0 <= p < 4 and 0 <= r < 3 }");
    check_map(&f, poly_access(f.ctx, f.program, 1, 0),
              "{ S1[p,r] -> x[2*p+r-1] : 0 <= p < 4 and 0 <= r < 3 and 1 <= 2*p+r <= 8 }");
    check_map(&f, poly_access(f.ctx, f.program, 1, 1),
              "{ S1[p,r] -> w[r] : 0 <= p < 4 and 0 <= r < 3 }");
    check_dependences(&f,
                      "{ S0[p] -> S1[p,r] : 0 <= p < 4 and 0 <= r < 3 }"); /* none within the sum */
    close_text(&f);
}

static void names_of_axes(void **state) {
    (void)state;
    struct fixture f;
    open_text(&f, "kernel t() {\n  in x: f32[4,5]  inout y: f32[4,5]\n  axes row: 4, col: 5\n"
                  "  y[row,col] = x[row,col] where col <= row\n}\n");
    isl_set *set = poly_domain(f.ctx, f.program, 0);
    assert_string_equal(isl_set_get_dim_name(set, isl_dim_set, 0), "row");
    assert_string_equal(isl_set_get_dim_name(set, isl_dim_set, 1), "col");
    assert_string_equal(isl_set_get_tuple_name(set), "S0");
    check_set(&f, set, "{ S0[i,j] : 0 <= i < 4 and 0 <= j < 5 and j <= i }");
    close_text(&f);
}

static void flow_anti_and_output(void **state) {
    (void)state;
    struct fixture f;
    open_text(&f, "kernel d() {\n"
                  "  inout a: f32[10]  out b: f32[10]  axes i: 10, j: 5\n"
                  "  b[i] = a[i] + 1\n" /* S0 */
                  "  a[2*j] = b[j]\n"   /* S1: flow from S0 through b, anti through a */
                  "  a[j] = b[2*j+1]\n" /* S2: flow from S0, anti from S0, output from S1 */
                  "}\n");
    check_dependences(&f,
                      "{ S0[i] -> S1[i] : 0 <= i < 5; S0[i] -> S1[j] : i = 2*j and 0 <= j < 5;"
                      "  S0[i] -> S2[j] : i = 2*j+1 and 0 <= j < 5; S0[j] -> S2[j] : 0 <= j < 5;"
                      "  S1[j] -> S2[k] : k = 2*j and 0 <= j and k < 5 }");
    close_text(&f);
}

/* The steps of a recurrence are a parameter: dependences are those within one step, and with what
 * is outside. */
static void recurrence(void **state) {
    (void)state;
    struct fixture f;
    open_text(&f,
              "kernel r() {\n"
              "  in x: f32[6,4]  in g: f32[4]  temp h0: f32[4]  temp hT: f32[4]  out y: f32[4]\n"
              "  axes i: 4\n"
              "  h0[i] = g[i]\n"
              "  recur t: 6 state h: f32[4] from h0 to hT {\n"
              "    h'[i] = h[i] + x[t,i]\n"
              "  }\n"
              "  y[i] = hT[i]\n"
              "}\n");
    check_set(&f, poly_domain(f.ctx, f.program, 1), "[t] -> { S1[i] : 0 <= i < 4 and 0 <= t < 6 }");
    check_map(&f, poly_access(f.ctx, f.program, 1, 1),
              "[t] -> { S1[i] -> x[t,i] : 0 <= i < 4 and 0 <= t < 6 }");
    check_dependences(&f, "[t] -> { S0[i] -> S1[i] : 0 <= i < 4 and 0 <= t < 6;"
                          "         S1[i] -> S2[i] : 0 <= i < 4 and 0 <= t < 6 }");
    close_text(&f);
}

static void calls(void **state) {
    (void)state;
    struct fixture f;
    open_text(&f, "kernel k() {\n"
                  "  in x: f32[4]  temp a: f32[4]  temp b: f32[2]  out y: f32[2]\n"
                  "  axes i: 4, j: 2\n"
                  "  a[i] = x[i]\n"
                  "  call pick(a) -> (b)\n"
                  "  y[j] = b[j]\n"
                  "}\n");
    check_dependences(&f, "{ S0[i] -> C0[] : 0 <= i < 4; C0[] -> S1[j] : 0 <= j < 2 }");
    close_text(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution),
        cmocka_unit_test(names_of_axes),
        cmocka_unit_test(flow_anti_and_output),
        cmocka_unit_test(recurrence),
        cmocka_unit_test(calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
