/* The parts of `isamap bench`: suites, what a program is to a library, limits, turns, tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench/clock.h"
#include "bench/limit.h"
#include "bench/peak.h"
#include "bench/peer.h"
#include "bench/suite.h"
#include "bench/table.h"
#include "bench/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- suites ---- */

static struct suite *parse_with(const char *text, const struct suite_options *o, struct diags *d) {
    diags_init(d);
    return suite_parse("tests/suite.csv", text, strlen(text), o, d);
}

static const struct suite_options plain = {.folder = kernel_folders};

static int64_t value_of(const struct workload *w, const char *name) {
    for (int i = 0; i < w->given.n; i++)
        if (strcmp(w->given.at[i].name, name) == 0) return w->given.at[i].value;
    return -1;
}

static void suites_bind_columns(void **state) {
    (void)state;
    struct diags d;
    struct suite *s = parse_with("# a comment\n\n# kernel: conv2d.isam\n"
                                 "name, C,K , stride,source\r\n"
                                 "a,16,32,2,someone\n  b , 8,,1,\n",
                                 &plain, &d);
    assert_non_null(s);
    assert_int_equal(s->n, 2);
    assert_string_equal(s->at[0].name, "a");
    assert_string_equal(s->at[0].kernel->name, "conv2d");
    assert_int_equal(value_of(&s->at[0], "K"), 32);
    assert_int_equal(s->at[0].line, 5);
    assert_string_equal(s->at[1].name, "b");
    assert_int_equal(value_of(&s->at[1], "C"), 8);
    assert_int_equal(value_of(&s->at[1], "K"), -1); /* the kernel's own */
    suite_free(s);
    diags_free(&d);
}

static void suites_find_kernels(void **state) {
    (void)state;
    static const struct {
        const char *text, *option, *file, *kernel;
    } row[] = {
        {"name,M,N,K\nx,1,2,3\n", NULL, "bench/gemm.isam", "gemm"},
        {"name,H,W,R,S\nx,9,9,3,3\n", NULL, "bench/conv2d.isam", "conv2d"},
        {"# kernel: gemm.isam:gemm_weights\nname,M\nx,4\n", NULL, "bench/gemm.isam",
         "gemm_weights"},
        {"# kernel: gemm.isam\nname,M\nx,4\n", "gemm_weights", "bench/gemm.isam", "gemm_weights"},
        {"# kernel: gemm.isam\nname,M\nx,4\n", "gemm_i8.isam", "bench/gemm_i8.isam", "gemm_i8"},
        {"name,kernel,M\nx,examples/f32/gmv.isam,4\n", NULL, "examples/f32/gmv.isam", "gmv"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct suite_options o = plain;
        struct diags d;
        o.kernel = row[i].option;
        struct suite *s = parse_with(row[i].text, &o, &d);
        assert_non_null(s);
        assert_string_equal(s->at[0].file, row[i].file);
        assert_string_equal(s->at[0].kernel->name, row[i].kernel);
        suite_free(s);
        diags_free(&d);
    }
}

static void suites_obey_options(void **state) {
    (void)state;
    static const char text[] = "# kernel: conv2d.isam\nname,N,C\nab,1,16\nac,2,16\nb,3,16\n";
    struct binding set = {"C", 8};
    struct suite_options o = plain;
    struct diags d;
    o.only = "a*,zz";
    o.batch = 7;
    o.set = &(struct bindings){.at = &set, .n = 1};
    struct suite *s = parse_with(text, &o, &d);
    assert_non_null(s);
    assert_int_equal(s->n, 2);
    assert_string_equal(s->at[1].name, "ac");
    assert_int_equal(value_of(&s->at[1], "N"), 7);
    assert_int_equal(value_of(&s->at[1], "C"), 8);
    suite_free(s);
    diags_free(&d);
    o.only = "nobody";
    assert_null(parse_with(text, &o, &d));
    assert_int_equal(d.errors, 1);
    diags_free(&d);
}

/* Every kind of defect has its place. */
static void suites_report_places(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
        int line, col;
    } bad[] = {
        {"", "no header", 1, 1},
        {"# only a comment\n", "no header", 1, 1},
        {"M,N\n1,2\n", "no column 'name'", 1, 1},
        {"name,M,\nx,1,\n", "column 3 has no name", 1, 8},
        {"name,M,M\nx,1,2\n", "column 'M' is there twice", 1, 8},
        {"# kernel: gemm.isam\nname,M\n", "no rows", 2, 1},
        {"# kernel: gemm.isam\nname,M\nx\n", "1 cells, but the header has 2 columns", 3, 1},
        {"# kernel: gemm.isam\nname,M\nx,1,2\n", "3 cells", 3, 1},
        {"# kernel: gemm.isam\nname,M\n,1\n", "has no name", 3, 1},
        {"# kernel: gemm.isam\nname,M\nx,four\n", "'four' is not an integer", 3, 3},
        {"# kernel: gemm.isam\nname,M\nx,99999999999999999999\n", "is not an integer", 3, 3},
        {"# kernel: gemm.isam\nname,M\nx,1\nx,2\n", "there twice, first in line 3", 4, 1},
        {"# kernel: gemm.isam\nname,Q\nx,1\n", "has a parameter 'Q'", 2, 6},
        {"# kernel: gemm.isam\nname,M\nx,0\n", "fits no kernel", 3, 1},
        {"# kernel: gemm.isam:other\nname\nx\n", "no kernel 'other'", 3, 1},
        {"# kernel: nowhere.isam\nname\nx\n", "no kernel file 'nowhere.isam'", 1, 11},
        {"name,kernel\nx,gemm\n", "expected FILE.isam", 2, 3},
        {"name,cells\nx,3\n", "no kernel has these columns", 1, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct diags d;
        assert_null(parse_with(bad[i].text, &plain, &d));
        if (d.n == 0 || !strstr(d.at[0].text, bad[i].says) || d.at[0].line != bad[i].line ||
            d.at[0].col != bad[i].col)
            fail_msg("'%s' said '%s' at %d:%d", bad[i].text, d.n ? d.at[0].text : "",
                     d.n ? d.at[0].line : 0, d.n ? d.at[0].col : 0);
        diags_free(&d);
    }
}

/* ---- programs ---- */

/* The first dimension of all inputs and outputs, and of no constant, wherever that is declared. */
static void batches_are_no_dimension_of_constants(void **state) {
    (void)state;
    static const struct {
        const char *buffers;
        int batch;
    } row[] = {
        {"const W: f32[3] in X: f32[N,3] out Y: f32[N,3]", 1},
        {"in X: f32[N,3] const W: f32[3] out Y: f32[N,3]", 1},
        {"const W: f32[N] in X: f32[N,3] out Y: f32[N,3]", -1},
        {"in X: f32[N,3] out Y: f32[N,3] const W: f32[N]", -1},
        {"in X: f32[N,3] const W: f32[M] out Y: f32[N,3]", 1},
        {"in X: f32[N,3] const W: f32[3] out Y: f32[M,3]", -1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct arena a;
        struct diags d;
        struct kernel **k;
        arena_init(&a);
        diags_init(&d);
        const char *text = arena_printf(
            &a, "kernel k(M, N) { %s axes n: N, j: 3\n Y[n,j] = X[n,j] * W[0] }", row[i].buffers);
        struct source s = {.file = "k", .text = text, .length = strlen(text)};
        assert_int_equal(kernel_parse(&a, &s, &k, &d), 1);
        assert_int_equal(kernel_batch(k[0]), row[i].batch);
        diags_free(&d);
        arena_free(&a);
    }
}

static struct program *bind(const char *text, const char *sizes) {
    struct arena a;
    struct diags d;
    struct kernel **k;
    struct binding given[32];
    int n = 0;
    arena_init(&a);
    diags_init(&d);
    struct source s = {.file = "k", .text = text, .length = strlen(text), .line0 = 1, .col0 = 1};
    assert_int_equal(kernel_parse(&a, &s, &k, &d), 1);
    for (const char *p = sizes; *p;) {
        size_t name = strcspn(p, "=");
        char *end;
        given[n].name = arena_strndup(&a, p, name);
        given[n++].value = strtoll(p + name + 1, &end, 10);
        p = *end ? end + 1 : end;
    }
    struct program *p = program_bind(k[0], &(struct bindings){.at = given, .n = n}, NULL, &d);
    if (!p) diags_print(&d, stderr);
    assert_non_null(p);
    diags_free(&d);
    arena_free(&a);
    return p;
}

static struct program *bind_file(const char *path, const char *sizes) {
    struct arena a;
    struct diags d;
    size_t length;
    arena_init(&a);
    diags_init(&d);
    char *text = file_read(&a, path, 1 << 20, &length, &d);
    assert_non_null(text);
    char *second = strstr(text + 1, "\nkernel ");
    for (; second; second = strstr(second + 1, "\nkernel "))
        if (strstr(text, "kernel ") < second) {
            second[1] = 0;
            break;
        }
    struct program *p = bind(text, sizes);
    diags_free(&d);
    arena_free(&a);
    return p;
}

static struct work recognised(struct program *p) {
    struct work w;
    work_recognise(p, &w);
    program_free(p);
    return w;
}

static const char product[] = "kernel g(M=5, N=6, K=7) { in A: f32[%s] const B: f32[%s] out C: "
                              "f32[M, N] axes i: M, j: N, k: K\n"
                              "C[i,j] = 0\nC[i,j] += %s }";

static struct work product_work(const char *a, const char *b, const char *value,
                                const char *sizes) {
    char text[512];
    snprintf(text, sizeof text, product, a, b, value);
    return recognised(bind(text, sizes));
}

static void products_are_recognised(void **state) {
    (void)state;
    struct work w = product_work("M, K", "K, N", "A[i,k] * B[k,j]", "");
    assert_int_equal(w.kind, WORK_GEMM);
    assert_true(w.m == 5 && w.n == 6 && w.k == 7 && !w.a_transposed && !w.b_transposed);
    assert_true(w.b_constant && !w.a_constant);
    w = product_work("K, M", "N, K", "B[j,k] * A[k,i]", "");
    assert_int_equal(w.kind, WORK_GEMM);
    assert_true(w.a == 0 && w.b == 1 && w.a_transposed && w.b_transposed && w.m == 5);
    w = product_work("K, N", "M, K", "A[k,j] * B[i,k]",
                     ""); /* the first array is the right factor */
    assert_true(w.kind == WORK_GEMM && w.a == 1 && w.b == 0 && !w.a_transposed && !w.b_transposed);
    w = product_work("M, K", "K, N", "A[i,k] * B[k,j]", "M=1,N=1");
    assert_true(w.kind == WORK_GEMM && w.m == 1 && w.n == 1 && w.k == 7);
    w = product_work("M, K", "K, N", "A[i,k] + B[k,j]", "");
    assert_int_equal(w.kind, WORK_OTHER);
    w = product_work("M, K", "K+1, N", "A[i,k] * B[k+1,j]", "");
    assert_int_equal(w.kind, WORK_OTHER);
    w = product_work("M, 2*K", "K, N", "A[i,2*k] * B[k,j]", "");
    assert_int_equal(w.kind, WORK_OTHER);
}

/* ---- cells ---- */

static struct work cell_work(const char *kernel, const char *sizes) {
    struct arena a;
    struct diags d;
    size_t length;
    arena_init(&a);
    diags_init(&d);
    char *text = file_read(&a, "bench/recurrent.isam", 1 << 20, &length, &d);
    assert_non_null(text);
    char *at = strstr(text, kernel);
    assert_non_null(at);
    char *end = strstr(at + 1, "\nkernel ");
    if (end) *end = 0;
    struct work w = recognised(bind(at, sizes));
    diags_free(&d);
    arena_free(&a);
    return w;
}

static void cells_are_recognised(void **state) {
    (void)state;
    struct work w = cell_work("kernel gru(", "T=3,B=2,H=5");
    assert_int_equal(w.kind, WORK_CELL);
    assert_true(w.gates == 3 && w.steps == 3 && w.batch == 2 && w.units == 5 && w.inputs == 5);
    assert_true(w.part[CELL_X] == 0 && w.part[CELL_W] == 1 && w.part[CELL_U] == 2);
    assert_true(w.part[CELL_BIAS] == 3 && w.part[CELL_BIAS_NEW] == 4 && w.part[CELL_C0] == -1);
    w = cell_work("kernel lstm(", "T=3,B=1,H=4");
    assert_int_equal(w.kind, WORK_CELL);
    assert_true(w.gates == 4 && w.part[CELL_H0] == 4 && w.part[CELL_C0] == 5 && w.c == 6);
    assert_int_equal(cell_work("kernel rnn(", "T=2,B=3,H=6").gates, 1);
    /* other types; no state that is multiplied; two gates */
    assert_int_equal(cell_work("kernel gru_i8(", "T=3,H=16").kind, WORK_OTHER);
    assert_int_equal(
        recognised(bind("kernel r() { in X: f32[3,2,4] in h0: f32[2,4] out y: f32[3,2,4] "
                        "recur t: 3 state h: f32[2,4] from h0 { axes b: 2, i: 4\n "
                        "h'[b,i] = h[b,i] + X[t,b,i]\n y[t,b,i] = h'[b,i] } }",
                        ""))
            .kind,
        WORK_OTHER);
}

static void convolutions_are_recognised(void **state) {
    (void)state;
    struct work w = recognised(bind_file(
        "bench/conv2d.isam", "N=2,C=16,H=15,W=13,K=32,R=3,S=5,stride=2,pad=2,dilation=2,groups=4"));
    assert_int_equal(w.kind, WORK_CONV);
    assert_true(w.batch == 2 && w.groups == 4 && w.c_in == 4 && w.c_out == 8 && w.b_constant);
    assert_true(w.image[0] == 15 && w.image[1] == 13 && w.filter[0] == 3 && w.filter[1] == 5);
    assert_true(w.stride[0] == 2 && w.dilation[1] == 2 && w.pad[0] == 2 && w.pad[1] == 2);
    assert_true(w.result[0] == 8 && w.result[1] == 5);
    w = recognised(bind_file("bench/conv2d.isam", "C=16,K=16,groups=16"));
    assert_true(w.kind == WORK_CONV && w.groups == 16 && w.c_in == 1 && w.c_out == 1);
    w = recognised(bind_file("bench/conv2d.isam", "R=1,S=1,stride=2,pad=0"));
    assert_true(w.kind == WORK_CONV && w.stride[1] == 2 && w.result[0] == 28 && w.pad[0] == 0);
    w = recognised(bind_file("examples/conv2d.isam", "")); /* without groups */
    assert_true(w.kind == WORK_CONV && w.groups == 1 && w.pad[0] == 1 && w.c_in == 64);
    w = recognised(bind_file("bench/conv2d_i8.isam", "")); /* something follows */
    assert_int_equal(w.kind, WORK_OTHER);
}

static void touched_bytes_are_exact(void **state) {
    (void)state;
    struct program *p =
        bind_file("bench/conv2d.isam", "C=64,K=128,H=56,W=56,R=1,S=1,stride=2,pad=0");
    assert_int_equal(program_touched_bytes(p), 4 * (64 * 28 * 28 + 64 * 128 + 128 * 28 * 28));
    program_free(p);
    p = bind_file("bench/conv2d.isam", "C=1,K=1,H=9,W=9,R=2,S=2,stride=3,pad=1");
    /* rows -1,0 2,3 5,6 8,9: six of nine */
    assert_int_equal(program_touched_bytes(p), 4 * (6 * 6 + 4 + 4 * 4));
    program_free(p);
    p = bind("kernel k() { in A: f32[9, 9] inout B: f32[9] axes i: 4\n B[8-2*i] += A[i,i] }", "");
    assert_int_equal(program_touched_bytes(p), 4 * (4 + 2 * 4));
    program_free(p);
}

/* ---- machines ---- */

static struct machine *machine(const char *name) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(name, NULL, &d);
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

static void best_multipliers(void **state) {
    (void)state;
    static const struct {
        const char *machine;
        enum type a, b;
        double rate;
    } known[] = {
        {"cpu-avx2", TYPE_F32, TYPE_F32, 16}, /* two queues' widths of eight */
        {"cpu-avx512", TYPE_F32, TYPE_F32, 32},
        {"edge16", TYPE_I8, TYPE_I8, 256},
        {"edge16", TYPE_F32, TYPE_F32, 0},
        {"tests/data/machines/gemmini.xml", TYPE_I8, TYPE_I8, 256},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct machine *m = machine(known[i].machine);
        struct mac_unit u;
        mac_unit_find(m, known[i].a, known[i].b, &u);
        assert_true(fabs(u.rate - known[i].rate) < 1e-9);
        assert_true((u.instr < 0) == (known[i].rate == 0));
        mac_unit_free(&u);
        machine_free(m);
    }
}

/* The loop that measures the peak is a right program, of the instruction's own types, on any
 * machine. */
static void peak_programs(void **state) {
    (void)state;
    static const char *const name[] = {"cpu-avx2",
                                       "cpu-avx512",
                                       "cpu-blas",
                                       "edge16",
                                       "tests/data/machines/gemmini.xml",
                                       "tests/data/machines/amx.xml"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct machine *m = machine(name[i]);
        struct mac_unit u;
        struct diags d;
        enum type a, b, t = i < 3 ? TYPE_F32 : TYPE_I8;
        diags_init(&d);
        mac_unit_find(m, t, t, &u);
        assert_true(u.instr >= 0);
        struct program *p = peak_program(m, &u);
        assert_non_null(p);
        if (!program_verify(p, &d)) diags_print(&d, stderr);
        assert_int_equal(d.errors, 0);
        assert_true(program_mac_types(p, &a, &b) && a == t && b == t);
        assert_true(program_macs(p) > 1000000 && program_macs(p) < 200000000);
        program_free(p);
        mac_unit_free(&u);
        machine_free(m);
        diags_free(&d);
    }
}

/* What it reads again and again are the most tiles that half of the nearest cache holds. */
static void peak_stays_in_the_cache(void **state) {
    (void)state;
    struct machine *m = machine("tests/data/machines/amx.xml");
    struct mac_unit u;
    int64_t cache = INT64_MAX;
    for (int i = 0; i < m->nmemories; i++)
        if (m->memory[i].caches >= 0 && m->memory[i].size > 0 && m->memory[i].size < cache)
            cache = m->memory[i].size;
    mac_unit_find(m, TYPE_I8, TYPE_I8, &u);
    struct program *p = peak_program(m, &u);
    assert_non_null(p);
    int64_t tile = p->buffer[0].elements / p->buffer[0].extent[0];
    assert_in_range(p->buffer[0].elements, cache / 2 - tile + 1, cache / 2);
    program_free(p);
    mac_unit_free(&u);
    machine_free(m);
}

/* ---- turns, tables ---- */

struct counter {
    int calls, *order, *next, number;
};

static bool count_call(void *user) {
    struct counter *c = user;
    c->calls++;
    if (*c->next < 64) c->order[(*c->next)++] = c->number;
    return c->calls < 3000000; /* three turns of six blocks, where other work disturbs each */
}

static bool refuse(void *user) {
    (void)user;
    return false;
}

static bool fail_once(void *user) {
    return ++*(int *)user > 1;
}

static void turns_alternate(void **state) {
    (void)state;
    int order[64], next = 0;
    double first[3] = {-1, -1, -1}, second[3] = {-1, -1, -1};
    struct counter a = {.order = order, .next = &next, .number = 1},
                   b = {.order = order, .next = &next, .number = 2};
    struct contender list[] = {{.run = count_call, .user = &a, .seconds = first},
                               {.run = count_call, .user = &b, .seconds = second}};
    assert_true(clock_rounds(list, 2, 3, 1));
    for (int r = 0; r < 3; r++) assert_true(first[r] >= 0 && second[r] >= 0);
    assert_true(a.calls > 6 && b.calls > 6);
    assert_int_equal(order[0], 1);
    list[1].run = refuse;
    assert_false(clock_rounds(list, 2, 3, 1));
    int tries = 0;
    struct contender alone = {.run = fail_once, .user = &tries, .seconds = second};
    assert_false(clock_rounds(&alone, 1, 3, 1));
    assert_int_equal(tries, 1);
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    assert_true(clock_median(odd, 3) == 3 && clock_median(even, 4) == 2.5);
}

static void tables_align(void **state) {
    (void)state;
    struct table t;
    struct text out = {0};
    table_init(&t);
    table_column(&t, "name");
    table_column(&t, "x");
    table_column(&t, "ratio");
    table_cell(&t, "%s", "a");
    table_number(&t, 1234.5678, 3);
    table_number(&t, 0.012345, 3);
    table_end_row(&t);
    table_cell(&t, "%s", "longer");
    table_number(&t, NAN, 3);
    table_end_row(&t);
    table_print(&t, &out);
    assert_string_equal(out.at, "name       x   ratio\na       1235  0.0123\nlonger     -\n");
    text_free(&out);
    table_free(&t);
}

/* Each library works on this processor or on a device, and is missing there alone. */
static void peers_are_where_they_work(void **state) {
    static const char *const libraries[] = {"openblas", "onednn", "libxsmm",
                                            "blis",     "cublas", "cudnn"};
    (void)state;
    setenv("ISAMAP_PEER_PATH", "/nowhere", 1);
    for (int device = 0; device < 2; device++) {
        struct diags d;
        struct peers p;
        diags_init(&d);
        assert_true(peers_load(NULL, device, &p, &d));
        assert_int_equal(p.n, 0);
        assert_int_equal(p.nmissing, device ? 2 : 4);
        for (int l = 0; l < p.nmissing; l++)
            assert_string_equal(p.missing[l], libraries[device ? 4 + l : l]);
        for (int l = 0; l < 6; l++) {
            const char *says = (l >= 4) == device ? "was built without"
                               : device           ? "on this processor, and"
                                                  : "on a CUDA device, and";
            assert_false(peers_load(libraries[l], device, &p, &d));
            assert_non_null(strstr(d.at[d.n - 1].text, says));
        }
        assert_true(peers_load("none", device, &p, &d));
        assert_int_equal(p.n + p.nmissing, 0);
        diags_free(&d);
    }
    unsetenv("ISAMAP_PEER_PATH");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suites_bind_columns),
        cmocka_unit_test(suites_find_kernels),
        cmocka_unit_test(suites_obey_options),
        cmocka_unit_test(batches_are_no_dimension_of_constants),
        cmocka_unit_test(suites_report_places),
        cmocka_unit_test(products_are_recognised),
        cmocka_unit_test(cells_are_recognised),
        cmocka_unit_test(convolutions_are_recognised),
        cmocka_unit_test(touched_bytes_are_exact),
        cmocka_unit_test(best_multipliers),
        cmocka_unit_test(peak_programs),
        cmocka_unit_test(peak_stays_in_the_cache),
        cmocka_unit_test(turns_alternate),
        cmocka_unit_test(tables_align),
        cmocka_unit_test(peers_are_where_they_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
