/* Expressions and layouts of machine files. */
#include "machines/expr.h"
#include "machines/layout.h"
#include "machines/machine.h"
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

struct fixture {
    struct arena arena;
    struct diags diags;
};

static void begin(struct fixture *f) {
    arena_init(&f->arena);
    diags_init(&f->diags);
}

static void end(struct fixture *f) {
    diags_free(&f->diags);
    arena_free(&f->arena);
}

static bool name_value(void *user, const char *name, const char *field, double *out) {
    (void)user;
    if (field && !strcmp(name, "load") && !strcmp(field, "stride")) return *out = 64, true;
    if (field) return false;
    if (!strcmp(name, "T")) return *out = 16, true;
    if (!strcmp(name, "M")) return *out = 5, true;
    return false;
}

static bool call_value(void *user, const struct mexpr *call, const struct mexpr_env *env,
                       double *out) {
    (void)user, (void)env;
    if (!strcmp(call->name, "word") && call->nargs == 1 && call->arg[0]->kind == MEXPR_NAME)
        return *out = (double)strlen(call->arg[0]->name), true;
    if (!strcmp(call->name, "shape") && !strcmp(call->field, "rows") && call->arg[0]->number == 2)
        return *out = 9, true;
    return false;
}

static const struct mexpr_env env = {name_value, call_value, NULL};

static void values(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"2+3*4", 14},
        {"(2+3)*4", 20},
        {"64K", 65536},
        {"8*1K", 8192},
        {"1.5K", 1536},
        {"2M", 2097152},
        {"1G", 1073741824},
        {"0x80000000", 2147483648.0},
        {"2.6e9", 2.6e9},
        {"7/2", 3.5},
        {"-7 % 4", -3},
        {"1 << 4 | 1", 17},
        {"6 & 3", 2},
        {"6 ^ 3", 5},
        {"~0", -1},
        {"-3 & 255", 253},
        {"-3 | 8", -3},
        {"-3 ^ 1", -4},
        {"-3 << 2", -12},
        {"-3 >> 1", -2},
        {"!T", 0},
        {"-log2(1/4)", 2},
        {"min(3, 1, 2) + max(1, 2)", 3},
        {"ceil(7/2) - floor(7/2)", 1},
        {"pick(1, 10, 20, 30)", 20},
        {"sizeof(bf16) + sizeof(f64)", 10},
        {"T > 8 ? T : 8", 16},
        {"T < 8 ? 1/0 : 2", 2},
        {"T == 16 && M != 5", 0},
        {"T == 1 || M == 5", 1},
        {"1 || 1/0", 1},
        {"load.stride/16", 4},
        {"word(Abc) + 1", 4},
        {"shape.rows[2]", 9},
        {"500 + M*T*T/28", 500 + 5 * 256 / 28.0},
        {"2*4*M*(T-1)/T/4.8", 2 * 4 * 5 * 15 / 16.0 / 4.8},
        {"1 <= 1 == 1 >= 1", 1},
        {" T ", 16},
        {"- - 3", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        begin(&f);
        double v = 0;
        struct mexpr *e = mexpr_parse(&f.arena, cases[i].text, "t", 1, &f.diags);
        if (!e || !mexpr_eval(e, &env, &v, NULL) || v != cases[i].value)
            fail_msg("%s: %s, %.17g, expected %.17g", cases[i].text,
                     e ? "parsed" : f.diags.at[0].text, v, cases[i].value);
        end(&f);
    }
}

static void wrong_texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "expected a number, a name or '(' at the end"},
        {"1+", "expected a number"},
        {"(1", "expected ')'"},
        {"1 2", "expected an operator before '2'"},
        {"min(1", "',' or ')'"},
        {"64Q", "expected K, M, G"},
        {"T ? 1", "expected ':'"},
        {"1 = 2", "an operator"},
        {"a.b[1", "']'"},
        {"'x'", "a number, a name"},
        {"0x", "hexadecimal"},
        {"1e999", "a finite number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        begin(&f);
        assert_null(mexpr_parse(&f.arena, cases[i].text, "t", 7, &f.diags));
        assert_int_equal(f.diags.errors, 1);
        assert_int_equal(f.diags.at[0].line, 7);
        if (!strstr(f.diags.at[0].text, cases[i].says))
            fail_msg("'%s' says '%s'", cases[i].text, f.diags.at[0].text);
        end(&f);
    }
}

static void deep_texts(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct fixture f;
        char text[4000];
        begin(&f);
        memset(text, "(-!1"[kind], sizeof text - 1);
        text[sizeof text - 1] = 0;
        if (kind == 3)
            for (size_t i = 1; i < sizeof text - 1; i += 2) text[i] = '+';
        struct mexpr *e = mexpr_parse(&f.arena, text, "t", 1, &f.diags);
        assert_true(e || f.diags.errors == 1);
        end(&f);
    }
}

static void missing_values(void **state) {
    (void)state;
    static const char *const cases[] = {"Q + 1",      "word(1)",   "T.x",     "1/0",     "log2(0)",
                                        "pick(3, 1)", "sizeof(T)", "1.5 & 1", "1 << 64", "min()"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        begin(&f);
        double v;
        const struct mexpr *missing = NULL, *e = mexpr_parse(&f.arena, cases[i], "t", 1, &f.diags);
        if (e) {
            assert_false(mexpr_eval(e, &env, &v, &missing));
            assert_non_null(missing);
        } else {
            assert_int_equal(f.diags.errors, 1);
        }
        end(&f);
    }
}

static bool collect(void *user, const struct mexpr *leaf) {
    text_printf(user, " %s", leaf->name);
    return true;
}

static void names(void **state) {
    (void)state;
    struct fixture f;
    struct text t = {0};
    int64_t v;
    begin(&f);
    mexpr_names(mexpr_parse(&f.arena, "max(M, T*2) + step(A, outer) + load.stride + sizeof(f32)",
                            "t", 1, &f.diags),
                collect, &t);
    assert_string_equal(t.at, " M T step load sizeof");
    assert_true(mexpr_integer(mexpr_parse(&f.arena, "T/4", "t", 1, &f.diags), &env, &v, NULL));
    assert_int_equal(v, 4);
    assert_false(mexpr_integer(mexpr_parse(&f.arena, "M/4", "t", 1, &f.diags), &env, &v, NULL));
    text_free(&t);
    end(&f);
}

/* ---- layouts ---- */

/* what each place gives for each element, against a formula written in C */
struct formula {
    const char *text;
    int ndims;
    int64_t extent[2];
    int nplaces;
    int64_t (*place)(int64_t, int64_t, int);
    int64_t place_extent[5];
};

static int64_t amx_b(int64_t k, int64_t j, int p) {
    return p == 0 ? k / 4 : p == 1 ? j : k % 4;
}
static int64_t mma_a(int64_t i, int64_t k, int p) {
    return p == 0 ? 4 * (i % 8) + (k % 8) / 2 : p == 1 ? k / 8 : p == 2 ? i / 8 : k % 2;
}
static int64_t wgmma_c(int64_t i, int64_t j, int p) {
    return p == 0   ? i / 16
           : p == 1 ? 4 * (i % 8) + (j % 8) / 2
           : p == 2 ? j / 8
           : p == 3 ? i % 16 / 8
                    : j % 2;
}
static int64_t fractal(int64_t i, int64_t j, int p) {
    return p == 0 ? j / 16 : p == 1 ? i / 16 : p == 2 ? i % 16 : j % 16;
}
static int64_t reduced(int64_t q, int64_t x, int p) {
    return p == 0 ? q : x;
}

static const struct formula formulas[] = {
    {"k,j -> k/4, j, k%4", 2, {64, 16}, 3, amx_b, {16, 16, 4}},
    {"i,k -> lane:4*(i%8)+(k%8)/2, k/8, i/8, k%2", 2, {16, 16}, 4, mma_a, {32, 2, 2, 2}},
    {"i,j -> warp:i/16, lane:4*(i%8)+(j%8)/2, j/8, i%16/8, j%2",
     2,
     {64, 64},
     5,
     wgmma_c,
     {4, 32, 8, 2, 2}},
    {"i,j -> j/16, i/16, i%16, j%16", 2, {32, 48}, 4, fractal, {3, 2, 16, 16}},
    {"q,x -> node:q, x", 2, {4, 100}, 2, reduced, {4, 100}},
};

static void layouts_of_the_manual(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof formulas / sizeof *formulas; n++) {
        const struct formula *c = &formulas[n];
        struct fixture f;
        begin(&f);
        struct layout *l = layout_parse(&f.arena, c->text, "t", 1, &f.diags);
        assert_non_null(l);
        assert_int_equal(l->nplaces, c->nplaces);
        int64_t extent[5], index[2];
        layout_extents(l, c->extent, extent);
        for (int p = 0; p < c->nplaces; p++) assert_int_equal(extent[p], c->place_extent[p]);
        size_t box = 1;
        for (int p = 0; p < c->nplaces; p++) box *= (size_t)extent[p];
        char *seen = arena_alloc(&f.arena, box);
        for (index[0] = 0; index[0] < c->extent[0]; index[0]++)
            for (index[1] = 0; index[1] < c->extent[1]; index[1]++) {
                size_t key = 0;
                for (int p = 0; p < c->nplaces; p++) {
                    int64_t v = lexpr_eval(l->place[p].expr, index);
                    assert_int_equal(v, c->place(index[0], index[1], p));
                    key = key * (size_t)extent[p] + (size_t)v;
                }
                assert_false(seen[key]);
                seen[key] = 1;
            }
        for (size_t i = 0; i < box; i++) assert_true(seen[i]);
        end(&f);
    }
}

static void offsets(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    int64_t extent[2] = {64, 16}, index[2] = {6, 3}, stride[3] = {64, 4, 1}, square[2] = {20, 4},
            plain[2] = {100, 1}, back[2] = {-4, 1};
    struct layout *b = layout_parse(&f.arena, "k,j -> k/4, j, k%4", "t", 1, &f.diags);
    assert_int_equal(layout_offset(b, 2, extent, stride, index), 64 + 12 + 2);
    assert_int_equal(layout_offset(b, 2, extent, NULL, index), 64 + 12 + 2);
    assert_int_equal(layout_span(b, 2, extent, NULL), 1024);
    assert_int_equal(layout_offset(NULL, 2, extent, NULL, index), 6 * 16 + 3);
    assert_int_equal(layout_offset(NULL, 2, extent, plain, index), 603);
    assert_int_equal(layout_span(NULL, 2, extent, plain), 6316);
    assert_int_equal(layout_span(NULL, 2, square, back), 19 * 4 + 3 + 1);
    /* 20 rows in tiles of 16: the last tile is not full, so the span is less than two tiles */
    struct layout *tiles = layout_parse(&f.arena, "i,j -> i/16, i%16, j", "t", 1, &f.diags);
    assert_int_equal(layout_span(tiles, 2, square, NULL), 64 + 16);
    struct layout *lane = layout_parse(&f.arena, "i,j -> lane:i, j", "t", 1, &f.diags);
    assert_int_equal(layout_span(lane, 2, square, NULL), 4);
    assert_int_equal(layout_offset(lane, 2, square, NULL, index), 3);
    int64_t none[2] = {0, 4};
    assert_int_equal(layout_span(NULL, 2, none, NULL), 0);
    end(&f);
}

/* span and extents against all offsets, on random layouts */
static void spans_by_enumeration(void **state) {
    (void)state;
    static const char *const texts[] = {"i,j -> i, j",
                                        "i,j -> j, i",
                                        "i,j -> i/3, j, i%3",
                                        "i,j -> (i+2*j)/2, i%2, j",
                                        "i,j -> i%4+i/4*8, j",
                                        "i,j -> 3*i+j/2, j%2",
                                        "i,j -> j/5, i/2, j%5, i%2",
                                        "i,j -> 4*(i/3+j/4)+i%3, 2*(i%2)+j%4/2",
                                        "i,j -> 3+(i%5+j)*2+i/2, (i+j)/3+j%2+1"};
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
        for (int64_t a = 1; a < 12; a++)
            for (int64_t b = 1; b < 12; b++) {
                struct fixture f;
                begin(&f);
                struct layout *l = layout_parse(&f.arena, texts[n], "t", 1, &f.diags);
                int64_t extent[2] = {a, b}, index[2], place[5], most[5] = {0}, hi = 0,
                        lo = INT64_MAX;
                layout_extents(l, extent, place);
                for (index[0] = 0; index[0] < a; index[0]++)
                    for (index[1] = 0; index[1] < b; index[1]++) {
                        int64_t o = layout_offset(l, 2, extent, NULL, index);
                        hi = o > hi ? o : hi;
                        lo = o < lo ? o : lo;
                        for (int p = 0; p < l->nplaces; p++) {
                            int64_t v = lexpr_eval(l->place[p].expr, index) + 1;
                            most[p] = v > most[p] ? v : most[p];
                        }
                    }
                for (int p = 0; p < l->nplaces; p++) assert_int_equal(place[p], most[p]);
                assert_int_equal(layout_span(l, 2, extent, NULL), hi - lo + 1);
                end(&f);
            }
}

static void wrong_layouts(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"i,j", "'->'"},
        {"i -> ", "an index, a number"},
        {"i -> k", "an index of the layout"},
        {"i,i -> i", "another name"},
        {"i -> i*i", "a number"},
        {"i -> i/0", "a positive divisor"},
        {"i -> i%i", "a positive divisor"},
        {"i -> (i", "')'"},
        {"-> 1", "name of an index"},
        {"i -> i, ", "an index, a number"},
        {"i -> i j", "an operator"},
        {"i -> i*65536*65536*65536", "smaller numbers"},
        {"i -> i/2147483648", "a number below 2^31"},
    };
    struct fixture good;
    begin(&good);
    assert_non_null(layout_parse(&good.arena, "i -> i/2147483647", "t", 3, &good.diags));
    end(&good);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        begin(&f);
        assert_null(layout_parse(&f.arena, cases[i].text, "t", 3, &f.diags));
        assert_int_equal(f.diags.errors, 1);
        if (!strstr(f.diags.at[0].text, cases[i].says))
            fail_msg("'%s' says '%s'", cases[i].text, f.diags.at[0].text);
        end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),         cmocka_unit_test(wrong_texts),
        cmocka_unit_test(deep_texts),     cmocka_unit_test(names),
        cmocka_unit_test(missing_values), cmocka_unit_test(layouts_of_the_manual),
        cmocka_unit_test(offsets),        cmocka_unit_test(spans_by_enumeration),
        cmocka_unit_test(wrong_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
