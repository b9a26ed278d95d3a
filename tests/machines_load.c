/* Machine files that load, what is read from them, hosts, and files that are damaged. */
#include "machines/machine.h"
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct machine *load(const char *name, const struct bindings *set) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(name, set, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    assert_int_equal(d.n, 0);
    diags_free(&d);
    return m;
}

static const char *const good[] = {
    "machines/cpu-scalar.xml",
    "machines/cpu-avx2.xml",
    "machines/cpu-avx512.xml",
    "machines/cpu-avxvnni.xml",
    "machines/cpu-blas.xml",
    "machines/vdla-board.xml",
    "machines/edge16.xml",
    "tests/data/machines/amx.xml",
    "tests/data/machines/avx512.xml",
    "tests/data/machines/blas.xml",
    "tests/data/machines/board.xml",
    "tests/data/machines/cluster.xml",
    "tests/data/machines/edge16.xml",
    "tests/data/machines/gemmini.xml",
    "tests/data/machines/sm90.xml",
    "tests/data/machines/vdla.xml",
};
enum { GOOD = sizeof good / sizeof *good };

static void good_files(void **state) {
    (void)state;
    for (int i = 0; i < GOOD; i++) machine_free(load(good[i], NULL));
}

/* what machine.h promises of every machine */
static void invariants(void **state) {
    (void)state;
    for (int f = 0; f < GOOD; f++) {
        struct machine *m = load(good[f], NULL);
        struct diags d;
        diags_init(&d);
        assert_true(m->home >= 0 && memory_is_home(m, m->home));
        assert_int_equal(m->unit[0].parent, -1);
        for (int i = 0; i < m->nqueues; i++) assert_int_equal(machine_queue(m, m->queue[i].id), i);
        for (int i = 0; i < m->nmemories; i++)
            assert_int_equal(machine_memory(m, m->memory[i].id), i);
        for (int i = 0; i < m->nsyncs; i++) assert_int_equal(machine_sync(m, m->sync[i].id), i);
        for (int i = 0; i < m->ninstrs; i++) {
            const struct instr *x = &m->instr[i];
            int64_t size[32], hi, step;
            assert_int_equal(machine_instr(m, x->id), i);
            assert_non_null(x->latency && x->interval && x->overhead && x->energy ? x : NULL);
            for (int k = 0; k < x->nranged; k++)
                assert_true(instr_size_range(m, x, k, &size[k], &hi, &step));
            struct program *p = instr_bind(m, x, size, &d);
            assert_non_null(p);
            for (int k = 0; k < x->noperands; k++) {
                assert_true(x->operand[k].nlayouts > 0 && x->operand[k].nmemories > 0);
                assert_string_equal(p->buffer[x->operand[k].kernel_buffer].name,
                                    x->operand[k].buffer);
                assert_int_equal(p->buffer[x->operand[k].kernel_buffer].type, x->operand[k].type);
            }
            program_free(p);
        }
        assert_int_equal(d.n, 0);
        diags_free(&d);
        machine_free(m);
    }
}

static const struct instr *instr_of(const struct machine *m, const char *id) {
    int i = machine_instr(m, id);
    if (i < 0) fail_msg("no instruction %s", id);
    return &m->instr[i];
}

static void accelerator(void **state) {
    (void)state;
    struct machine *m = load("machines/edge16.xml", NULL);
    int64_t lo, hi, step;
    assert_true(machine_needs_host(m));
    assert_int_equal(m->memory[machine_memory(m, "inp")].size, 65536);
    assert_int_equal(m->memory[machine_memory(m, "inp")].interleave, 32768);
    assert_int_equal(m->memory[machine_memory(m, "wgt")].word, 256);
    assert_int_equal(m->memory[machine_memory(m, "acc")].types, 1u << TYPE_I32);
    assert_int_equal(m->home, machine_memory(m, "dram"));
    const struct instr *mm = instr_of(m, "mm16"), *ld = instr_of(m, "ld.inp"),
                       *row = instr_of(m, "ld.row");
    assert_int_equal(mm->nloops, 2);
    assert_string_equal(mm->operand[2].accumulate, "add");
    assert_int_equal(mm->operand[2].role, ROLE_INOUT);
    assert_int_equal(ld->nranged, 6);
    assert_int_equal(ld->nstride_names, 1);
    assert_string_equal(ld->stride_name[0], "ys");
    assert_true(instr_size_range(m, ld, 0, &lo, &hi, &step));
    assert_int_equal(hi, 65535);
    assert_int_equal(row->queue, machine_queue(m, "exec"));
    for (int q = 0; q < 3; q++) {
        assert_true(m->queue[q].nop >= 0);
        assert_int_equal(m->instr[m->queue[q].nop].queue, q);
    }
    assert_int_equal(machine_instr(m, "nobody"), -1);
    assert_null(instr_emit(mm, LANGUAGE_LLVM));
    assert_int_equal(instr_emit(mm, LANGUAGE_BITS)->nwords, 1);
    machine_free(m);
}

static void vectors(void **state) {
    (void)state;
    struct machine *m = load("machines/cpu-avx2.xml", NULL);
    assert_int_equal(m->priority, 10);
    assert_int_equal(m->nfallbacks, 1);
    assert_true(memory_is_home(m, machine_memory(m, "l1")));
    assert_false(memory_is_home(m, machine_memory(m, "ymm")));
    assert_int_equal(m->memory[machine_memory(m, "ymm")].pass, PASS_VALUE);
    const struct instr *masked = instr_of(m, "load.f32.masked");
    assert_int_equal(masked->nranged, 1);
    assert_int_equal(instr_of(m, "max.imm.f32")->operand[1].memory[0], MEMORY_IMM);
    assert_true(m->queue[0].data_order && m->sync[0].from == 7 && m->sync[0].to == 7);
    machine_free(m);
}

static void alternatives(void **state) {
    (void)state;
    struct machine *m = load("tests/data/machines/blas.xml", NULL);
    const struct instr *x = instr_of(m, "sgemm");
    int64_t lo, hi, step;
    assert_int_equal(x->operand[0].nlayouts, 2);
    assert_string_equal(x->operand[0].layout[1].let_name, "ta");
    assert_int_equal(x->operand[0].layout[1].let_value, 112);
    assert_int_equal(x->nstride_names, 3);
    assert_true(instr_size_range(m, x, 0, &lo, &hi, &step));
    assert_true(lo == 1 && hi == -1 && step == 1);
    machine_free(m);
    m = load("tests/data/machines/amx.xml", NULL);
    assert_true(instr_of(m, "tileload")->move_types & 1u << TYPE_BF16);
    assert_int_equal(m->nends, 1);
    assert_true(instr_size_range(m, instr_of(m, "tdpbssd"), 2, &lo, &hi, &step));
    assert_true(lo == 4 && hi == 64 && step == 4);
    assert_int_equal(m->state[0].of, machine_memory(m, "tmm"));
    /* what it includes needs its features too */
    for (int f = 0; f < m->nfeatures; f++)
        assert_true((m->needs_features >> f & 1) == (strcmp(m->feature[f].id, "avx512vnni") != 0));
    /* what it adds to a host needs its own, and other code only what the host needs */
    uint64_t own = 0;
    for (int f = 0; f < m->nfeatures; f++)
        if (!strncmp(m->feature[f].id, "amx-", 4)) own |= UINT64_C(1) << f;
    assert_true(own && m->code_features == (m->needs_features & ~own));
    assert_true(instr_of(m, "tdpbssd")->needs_features == own);
    assert_true(instr_of(m, "tileload")->needs_features == own);
    assert_true(m->end[0].needs_features == own);
    assert_true(!(instr_of(m, "vnni")->needs_features & own));
    machine_free(m);
    m = load("tests/data/machines/avx512.xml", NULL);
    assert_true(m->code_features == m->needs_features);
    machine_free(m);
}

static void settings(void **state) {
    (void)state;
    struct binding at = {"SPAD", 16384}, wrong = {"SPAT", 1}, far = {"SPAD", 1 << 20};
    struct bindings set = {&at, 1, NULL}, bad[] = {{&wrong, 1, NULL}, {&far, 1, NULL}};
    struct machine *m = load("machines/edge16.xml", &set);
    assert_int_equal(m->memory[machine_memory(m, "acc")].size, 32768);
    machine_free(m);
    static const char *const says[] = {"no parameter 'SPAT', expected 'SPAD' or 'T'",
                                       "is 1048576, expected a value in its range"};
    for (int i = 0; i < 2; i++) {
        struct diags d;
        diags_init(&d);
        assert_null(machine_load("machines/edge16.xml", &bad[i], &d));
        assert_non_null(strstr(d.at[0].text, says[i]));
        diags_free(&d);
    }
}

/* every parameter at both ends, one after the other */
static void range_ends(void **state) {
    (void)state;
    for (int f = 0; f < GOOD; f++) {
        struct machine *m = load(good[f], NULL);
        for (int i = 0; i < m->nparams; i++)
            for (int end = 0; m->param[i].has_range && end < 2; end++) {
                struct binding at = {m->param[i].name, end ? m->param[i].hi : m->param[i].lo};
                struct bindings set = {&at, 1, NULL};
                struct machine *other = load(good[f], &set);
                assert_int_equal(other->param[i].value, at.value);
                assert_int_equal(other->params.at[i].value, at.value);
                machine_free(other);
            }
        machine_free(m);
    }
}

/* the example in the manual is a machine */
static void example_of_the_manual(void **state) {
    (void)state;
    struct arena a;
    struct diags d;
    size_t n;
    arena_init(&a);
    diags_init(&d);
    const char *text = file_read(&a, "docs/machine-format.md", 1 << 20, &n, &d),
               *start = text ? strstr(text, "<?xml") : NULL;
    assert_non_null(start);
    struct machine *m = machine_parse("docs/machine-format.md", start,
                                      (size_t)(strstr(start, "```") - start), NULL, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    assert_int_equal(m->ninstrs, 5);
    machine_free(m);
    diags_free(&d);
    arena_free(&a);
}

/* ---- hosts ---- */

static void joined(void **state) {
    (void)state;
    static const char *const devices[] = {"machines/edge16.xml", "tests/data/machines/gemmini.xml",
                                          "tests/data/machines/vdla.xml"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        for (int h = 0; h < 2; h++) {
            struct diags d;
            diags_init(&d);
            struct machine *device = machine_load(devices[i], NULL, &d);
            struct machine *m = machine_join(devices[i], h ? "cpu-avx2" : "cpu-scalar", NULL, &d);
            diags_print(&d, stderr);
            assert_non_null(m);
            assert_false(machine_needs_host(m));
            assert_string_equal(m->name, device->name);
            assert_int_equal(m->memory[m->home].unit, 0);
            assert_int_equal(m->memory[m->home].size, device->memory[device->home].size);
            int host = m->fallback[0].queue;
            for (int q = 0; q < device->nqueues; q++) {
                char id[64];
                int there = machine_queue(m, device->queue[q].id);
                assert_true(there >= 0 && there != host);
                assert_float_equal(m->unit[m->queue[there].unit].clock, device->clock, 0);
                snprintf(id, sizeof id, "bell.%s", device->queue[q].id);
                const struct sync *bell = &m->sync[machine_sync(m, id)];
                assert_true(bell->from == UINT64_C(1) << host && bell->to == UINT64_C(1) << there &&
                            bell->depth == 1);
                snprintf(id, sizeof id, "done.%s", device->queue[q].id);
                const struct sync *done = &m->sync[machine_sync(m, id)];
                assert_true(done->from == UINT64_C(1) << there && done->to == UINT64_C(1) << host &&
                            done->latency == 200);
            }
            for (int k = 0; k < device->ninstrs; k++)
                assert_true(machine_instr(m, device->instr[k].id) >= 0);
            machine_free(device);
            machine_free(m);
            diags_free(&d);
        }
}

/* host and device with the same ids for everything, and different ids for the memory that they
 * share */
static void joined_with_the_same_ids(void **state) {
    (void)state;
    static const char device[] =
        "<machine name='dev' xmlns='urn:isamap:machine:1'><param name='T' value='4'/><memory "
        "id='ddr' size='1M' align='128'/>"
        "<memory id='buf' size='T*16' word='T'/><queue id='q'/><queue id='r'/><sync id='s' "
        "kind='token' from='q r' to='r q' depth='9'/>"
        "<move id='ld' queue='q' from='ddr' to='buf' interval='T'><semantics>kernel ld(N=1..4) { "
        "in S: i8[N,T] out D: i8[N,T] axes n: N, t: T "
        "D[n,t] = S[n,t] }</semantics><operand buffer='S'/><operand buffer='D'/></move>"
        "<move id='st' queue='r' from='buf' to='ddr'><semantics>kernel st(N=1..4) { in S: i8[N,T] "
        "out D: i8[N,T] axes n: N, t: T "
        "D[n,t] = S[n,t] }</semantics><operand buffer='S'/><operand buffer='D'/></move></machine>";
    static const char host[] =
        "<machine name='hst' xmlns='urn:isamap:machine:1'><param name='T' value='8'/><memory "
        "id='buf'/><memory id='ddr' caches='buf' size='1K'/>"
        "<queue id='q'/><queue id='r'/><sync id='s' kind='interlock' from='q r' to='r "
        "q'/><fallback as='c' queue='q' memory='ddr' interval='T'/>"
        "<instruction id='ld' queue='r' interval='T+push(s)'><semantics>kernel ld() { in S: i8[T] "
        "out D: i8[T] axes t: T D[t] = S[t] }</semantics>"
        "<operand buffer='S' memory='ddr'/><operand buffer='D' "
        "memory='ddr'/></instruction></machine>";
    char folder[] = "/tmp/isamap-join-XXXXXX", path[2][64];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s.xml", folder, i ? "hst" : "dev");
        FILE *f = fopen(path[i], "w");
        fputs(i ? host : device, f);
        fclose(f);
    }
    struct diags d;
    diags_init(&d);
    struct binding at = {"T", 2};
    struct bindings set = {&at, 1, NULL};
    struct machine *m = machine_join(path[0], path[1], &set, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    assert_string_equal(m->memory[m->home].id, "ddr");
    assert_int_equal(m->memory[m->home].align, 128);
    assert_int_equal(m->memory[machine_memory(m, "buf")].word, 2);
    assert_int_equal(m->memory[machine_memory(m, "host_ddr")].caches, m->home);
    assert_int_equal(m->fallback[0].queue, machine_queue(m, "host_q"));
    assert_int_equal(m->fallback[0].memory[0], machine_memory(m, "host_ddr"));
    assert_int_equal(instr_of(m, "host_ld")->operand[0].memory[0], machine_memory(m, "host_ddr"));
    struct program *p = instr_bind(m, instr_of(m, "host_ld"), NULL, &d);
    assert_int_equal(p->buffer[0].extent[0], 8);
    program_free(p);
    machine_free(m);
    /* a host is no device */
    assert_null(machine_join(path[1], path[1], NULL, &d));
    assert_non_null(strstr(d.at[0].text, "has a fallback of its own, expected a device"));
    diags_free(&d);
    for (int i = 0; i < 2; i++) unlink(path[i]);
    rmdir(folder);
}

static void this_host(void **state) {
    (void)state;
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_host(&d), *best = NULL;
    assert_non_null(m);
    assert_true(m->priority >= 0 && machine_runs_here(m, &d) && m->nfallbacks);
    assert_int_equal(d.n, 0);
    /* no shipped machine that runs here has a higher priority */
    for (int i = 0; i < 5; i++) {
        struct diags ignored;
        diags_init(&ignored);
        best = machine_load(good[i], NULL, &ignored);
        if (machine_runs_here(best, &ignored) && best->nfallbacks)
            assert_true(best->priority <= m->priority);
        else if (best->nfallbacks)
            assert_non_null(strstr(ignored.at[0].text, "which this computer does not have"));
        diags_free(&ignored);
        machine_free(best);
    }
    machine_free(m);
    /* of two that a computer can run, the one that adds to the other */
    struct machine *less = load("machines/cpu-avx2.xml", NULL);
    m = load("machines/cpu-avxvnni.xml", NULL);
    best = load("machines/cpu-avx512.xml", NULL);
    assert_true(less->priority < m->priority && m->priority < best->priority);
    machine_free(less);
    machine_free(m);
    machine_free(best);
    diags_free(&d);
}

static void search_path(void **state) {
    (void)state;
    char folder[] = "/tmp/isamap-path-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/own.xml", folder);
    FILE *f = fopen(path, "w");
    fputs("<machine name='own' priority='99' xmlns='urn:isamap:machine:1'><memory id='m'/><queue "
          "id='q'/><fallback as='c' queue='q' memory='m'/></machine>",
          f);
    fclose(f);
    struct diags d;
    diags_init(&d);
    assert_null(machine_load("own", NULL, &d));
    assert_non_null(strstr(d.at[0].text, "no machine 'own', expected a file (./own.xml) or "));
    setenv("ISAMAP_MACHINE_PATH", folder, 1);
    struct machine *m = machine_load("own", NULL, &d);
    assert_non_null(m);
    assert_float_equal(m->clock, 1e9, 0);
    machine_free(m);
    m = machine_host(&d);
    assert_string_equal(m->name, "own");
    machine_free(m);
    m = machine_load("edge16", NULL, &d);
    assert_non_null(m);
    machine_free(m);
    /* a broken candidate is said and passed over */
    f = fopen(path, "w");
    fputs("<machine name='own' priority='99' xmlns='urn:isamap:machine:1'>", f);
    fclose(f);
    m = machine_host(&d);
    assert_non_null(m);
    assert_string_not_equal(m->name, "own");
    machine_free(m);
    unsetenv("ISAMAP_MACHINE_PATH");
    unlink(path);
    rmdir(folder);
    diags_free(&d);
}

static void features(void **state) {
    (void)state;
    struct feature never = {"x", 0x7fffffff, 0, 0, 0, NULL, NULL, NULL, NULL},
                   device = {"y", -1, 0, 0, 0, "9.0", NULL, NULL, NULL};
    assert_false(machine_feature_present(&never));
    assert_false(machine_feature_present(&device));
#if defined(__x86_64__)
    struct feature sse2 = {"sse2", 1, 0, 3, 26, NULL, NULL, NULL, NULL},
                   avx = {"avx", 1, 0, 2, 28, NULL, NULL, NULL, NULL},
                   avx2 = {"avx2", 7, 0, 1, 5, NULL, NULL, NULL, NULL},
                   wide = {"avx512f", 7, 0, 1, 16, NULL, NULL, NULL, NULL};
    __builtin_cpu_init();
    assert_true(machine_feature_present(&sse2));
    assert_int_equal(machine_feature_present(&avx), __builtin_cpu_supports("avx") != 0);
    assert_int_equal(machine_feature_present(&avx2), __builtin_cpu_supports("avx2") != 0);
    assert_int_equal(machine_feature_present(&wide), __builtin_cpu_supports("avx512f") != 0);
#endif
}

/* ---- damage ---- */

static void must_end(const char *file, const char *text, size_t n) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_parse(file, text, n, NULL, &d);
    assert_true(m ? d.errors == 0 : d.errors > 0);
    machine_free(m);
    diags_free(&d);
}

static char *content(struct arena *a, const char *file, size_t *n) {
    struct diags d;
    diags_init(&d);
    char *text = file_read(a, file, 1 << 20, n, &d);
    assert_non_null(text);
    diags_free(&d);
    return text;
}

static void truncations(void **state) {
    (void)state;
    for (int i = 0; i < GOOD; i++) {
        struct arena a;
        size_t n;
        arena_init(&a);
        char *text = content(&a, good[i], &n);
        size_t step = strstr(good[i], "gemmini") || strstr(good[i], "board") ? 1 : 97;
        for (size_t k = 0; k < n; k += step) must_end(good[i], text, k);
        arena_free(&a);
    }
}

static uint64_t next_random(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* ISAMAP_FLIPS: how many; the default keeps the test short */
static void flips(void **state) {
    (void)state;
    const char *wish = getenv("ISAMAP_FLIPS");
    long count = wish ? atol(wish) : 1000;
    uint64_t seed = 88172645463325252u;
    for (long i = 0; i < count; i++) {
        struct arena a;
        size_t n;
        const char *file = good[next_random(&seed) % GOOD];
        arena_init(&a);
        char *text = content(&a, file, &n);
        for (uint64_t k = next_random(&seed) % 3 + 1; k; k--)
            text[next_random(&seed) % n] ^= (char)(1 << next_random(&seed) % 8);
        must_end(file, text, n);
        arena_free(&a);
    }
}

/* whole words exchanged: gets further than flipped bits */
static void exchanges(void **state) {
    (void)state;
    static const char *const words[] = {"dram",
                                        "0",
                                        "-1",
                                        "1..2",
                                        "1e30",
                                        "*",
                                        "imm",
                                        "A",
                                        "M",
                                        "load",
                                        "9223372036854775807",
                                        "0x7fffffffffffffff",
                                        "((",
                                        "1/0",
                                        "$(x)",
                                        "",
                                        "core",
                                        "a b c"};
    uint64_t seed = 424242;
    for (int i = 0; i < 800; i++) {
        struct arena a;
        size_t n;
        const char *file = good[next_random(&seed) % GOOD];
        struct text t = {0};
        arena_init(&a);
        char *text = content(&a, file, &n);
        const char *p = strchr(text + next_random(&seed) % (n - 1), '"'),
                   *q = p ? strchr(p + 1, '"') : NULL;
        const char *word = words[next_random(&seed) % (sizeof words / sizeof *words)];
        if (q) {
            text_append(&t, text, (size_t)(p + 1 - text));
            text_append(&t, word, strlen(word));
            text_append(&t, q, strlen(q));
            must_end(file, t.at, t.n);
        }
        text_free(&t);
        arena_free(&a);
    }
}

/* files made to be too much: each must end quickly, in a report */
static void bombs(void **state) {
    (void)state;
    static const char head[] = "<machine name='b' xmlns='urn:isamap:machine:1'>";
    for (int kind = 0; kind < 7; kind++) {
        struct text t = {0};
        text_printf(&t, "%s", head);
        if (kind == 0)
            for (int i = 0; i < 12; i++)
                text_printf(&t, "<for each='v%c' in='1;2;3;4;5;6;7;8;9;10'>", 'a' + i);
        for (int i = 0; kind == 1 && i < 100000; i++) text_printf(&t, "<queue id='q%d'/>", i);
        for (int i = 0; kind == 2 && i < 5000; i++) text_printf(&t, "<unit id='u%d'>", i);
        if (kind == 3) {
            text_printf(&t, "<memory id='m' size='");
            for (int i = 0; i < 100000; i++) text_printf(&t, "(");
            text_printf(&t, "'/>");
        }
        if (kind == 4) {
            text_printf(&t, "<memory ");
            for (int i = 0; i < 50000; i++) text_printf(&t, "a%d='1' ", i);
            text_printf(&t, "/>");
        }
        for (int i = 0; kind == 5 && i < 300; i++)
            text_printf(&t, "<param name='p%d' value='1' range='1..9'/>", i);
        if (kind == 6) text_printf(&t, "<doc>%9000000s</doc>", "x");
        if (kind == 0) {
            text_printf(&t, "<queue id='q$(va)$(vb)$(vc)$(vd)$(ve)$(vf)$(vg)'/>");
            for (int i = 0; i < 12; i++) text_printf(&t, "</for>");
        }
        for (int i = 0; kind == 2 && i < 5000; i++) text_printf(&t, "</unit>");
        text_printf(&t, "<memory id='home'/></machine>");
        struct diags d;
        diags_init(&d);
        assert_null(machine_parse("bomb.xml", t.at, t.n, NULL, &d));
        assert_true(d.errors > 0);
        diags_free(&d);
        text_free(&t);
    }
}

static void include_limits(void **state) {
    (void)state;
    char folder[] = "/tmp/isamap-deep-XXXXXX", path[96];
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/m%d.xml", folder, i);
        FILE *f = fopen(path, "w");
        fprintf(f, "<machine name='m%d' xmlns='urn:isamap:machine:1'>", i);
        if (i < 19) fprintf(f, "<include href='m%d.xml'/>", i + 1);
        fprintf(f, "<memory id='x%d'/></machine>", i);
        fclose(f);
    }
    for (int i = 0; i < 20; i++) {
        struct diags d;
        diags_init(&d);
        snprintf(path, sizeof path, "%s/m%d.xml", folder, i);
        struct machine *m = machine_load(path, NULL, &d);
        /* the file itself and 15 below it are 16 within each other */
        assert_int_equal(m != NULL, i >= 4);
        if (!m) assert_non_null(strstr(d.at[0].text, "too many includes, expected at most 16"));
        machine_free(m);
        diags_free(&d);
    }
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, "%s/m%d.xml", folder, i);
        unlink(path);
    }
    rmdir(folder);
}

/* Bit 16 of this register is reserved: no processor sets it. */
static void features_of_instructions(void **state) {
    (void)state;
    static const char text[] =
        "<machine name='own' %s xmlns='urn:isamap:machine:1'><feature id='never' "
        "cpuid='1,0,ecx,16'/><memory id='m'/><queue id='q'/><fallback as='c' queue='q' memory='m'/>"
        "<instruction id='far' queue='q' needs='never'><semantics>kernel f() { out C: i32[4]  axes "
        "j: 4  C[j] = 0 }</semantics><operand buffer='C' memory='m'/></instruction>"
        "<instruction id='near' queue='q'><semantics>kernel f() { out C: i32[4]  axes "
        "j: 4  C[j] = 0 }</semantics><operand buffer='C' memory='m'/></instruction></machine>";
    for (int whole = 0; whole < 2; whole++) {
        char xml[1024];
        struct diags d;
        diags_init(&d);
        int n = snprintf(xml, sizeof xml, text, whole ? "needs='never'" : "");
        struct machine *m = machine_parse("own.xml", xml, (size_t)n, NULL, &d);
        assert_non_null(m);
        assert_int_equal(m->ninstrs, 2);
        machine_fit_here(m);
        assert_int_equal(m->ninstrs, whole ? 2 : 1); /* elsewhere it is as it is */
        assert_string_equal(m->instr[m->ninstrs - 1].id, "near");
        machine_free(m);
        diags_free(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files),     cmocka_unit_test(invariants),
        cmocka_unit_test(accelerator),    cmocka_unit_test(vectors),
        cmocka_unit_test(alternatives),   cmocka_unit_test(example_of_the_manual),
        cmocka_unit_test(settings),       cmocka_unit_test(range_ends),
        cmocka_unit_test(joined),         cmocka_unit_test(joined_with_the_same_ids),
        cmocka_unit_test(this_host),      cmocka_unit_test(search_path),
        cmocka_unit_test(features),       cmocka_unit_test(features_of_instructions),
        cmocka_unit_test(include_limits), cmocka_unit_test(bombs),
        cmocka_unit_test(truncations),    cmocka_unit_test(exchanges),
        cmocka_unit_test(flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
