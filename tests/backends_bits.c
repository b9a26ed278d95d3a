/* Bit fields: every instruction format of every machine file, there and back; what cannot be
 * encoded; images that are damaged. */
#include "backends/bits/bits_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static uint64_t next(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static struct machine *load(const char *name, const struct bindings *set) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(name, set, &d);
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    diags_free(&d);
    return m;
}

/* ---- there and back ---- */

static void put(uint8_t *word, const struct bit_field *f, uint64_t value) {
    for (int k = 0; k < f->bits; k++)
        if (value >> k & 1) word[(f->at + k) / 8] |= (uint8_t)(1u << (f->at + k) % 8);
}

static void random_word(const struct bit_word *w, uint8_t *word, uint64_t *seed) {
    memset(word, 0, (size_t)word_bytes(w));
    for (int i = 0; i < w->nfields; i++) {
        const struct bit_field *f = &w->field[i];
        uint64_t v = next(seed) >> (63 - next(seed) % (uint64_t)f->bits); /* small ones too */
        put(word, f, f->constant ? f->value : v);
    }
}

static void values(const struct known *k, int n, int64_t *out) {
    for (int i = 0; i < n; i++) out[i] = k[i].is ? k[i].value : 0;
}

/* The decoded instruction, encoded again. */
static bool encode(const struct machine *m, const struct decoded *d, uint8_t *out) {
    int64_t extent[8], first[8], step[8 * 8];
    struct diags diags;
    bool ok = true;
    const struct instr *in = d->site->instr;
    assert_true(in->nloops <= 8 && in->noperands <= 8);
    values(d->extent, in->nloops, extent);
    values(d->first, in->nloops, first);
    values(d->step, in->nloops * in->noperands, step);
    struct issued x = {.machine = m,
                       .site = d->site,
                       .pop = d->pop,
                       .push = d->push,
                       .extent = extent,
                       .first = first,
                       .step = step,
                       .slot = d->slot};
    diags_init(&diags);
    for (int k = 0; k < d->form->nwords && ok; k++) {
        const struct bit_word *w = &d->form->word[k];
        memset(out, 0, (size_t)word_bytes(w));
        for (int i = 0; i < w->nfields && ok; i++)
            ok = field_pack(&w->field[i], &x, d->form->id, out, &diags);
        out += word_bytes(w);
    }
    diags_free(&diags);
    return ok;
}

/* How many of `tries` random words of the form came back as they were. */
static int round_trips(const struct machine *m, const struct forms *all, const struct form *f,
                       int tries, uint64_t *seed) {
    int good = 0;
    for (int t = 0; t < tries; t++) {
        uint8_t word[1024], back[1024];
        int64_t bytes = 0;
        struct decoded d;
        struct arena a;
        arena_init(&a);
        for (int k = 0; k < f->nwords; k++) {
            random_word(&f->word[k], word + bytes, seed);
            bytes += word_bytes(&f->word[k]);
        }
        /* A value may be one that no instruction has, an end before the beginning say. */
        if (decode_one(&a, m, all, word, bytes, &d) && d.form == f && encode(m, &d, back)) {
            assert_int_equal(d.bytes, bytes);
            assert_memory_equal(word, back, (size_t)bytes);
            good++;
        }
        arena_free(&a);
    }
    return good;
}

/* Some instruction of the form, legal or not. */
static void random_instruction(struct arena *a, const struct machine *m, const struct form *f,
                               uint64_t *seed, struct decoded *d) {
    const struct instr *in = &m->instr[f->index];
    int n = in->nloops * in->noperands;
    *d = (struct decoded){.form = f, .site = site_new(a, m, in)};
    d->pop = arena_array(a, (size_t)m->nsyncs + 1, sizeof *d->pop);
    d->push = arena_array(a, (size_t)m->nsyncs + 1, sizeof *d->push);
    d->slot = arena_array(a, (size_t)m->nstates + 1, sizeof *d->slot);
    d->extent = arena_array(a, (size_t)in->nloops + 1, sizeof *d->extent);
    d->first = arena_array(a, (size_t)in->nloops + 1, sizeof *d->first);
    d->step = arena_array(a, (size_t)n + 1, sizeof *d->step);
    for (int i = 0; i < in->nranged; i++) {
        int64_t lo = 1, hi = 1, by = 1;
        instr_size_range(m, in, i, &lo, &hi, &by);
        int64_t most = hi < 0 || hi > lo + 99 * by ? 100 : (hi - lo) / by + 1;
        d->site->size[i] = (struct known){true, lo + (int64_t)(next(seed) % (uint64_t)most) * by};
    }
    for (int i = 0; i < in->nstride_names; i++)
        d->site->stride[i] = (struct known){true, 256 * (int64_t)(next(seed) % 16)};
    for (int o = 0; o < in->noperands; o++) {
        int memory = d->site->memory[o];
        bool small = next(seed) % 2;
        d->site->flag[o] = (struct known){true, (int64_t)(next(seed) % 2)};
        if (memory < 0 && type_is_float(in->operand[o].type))
            d->site->imm[o].f =
                small ? 1.0 / (double)(1 << next(seed) % 16) : (double)(next(seed) % 100);
        else if (memory < 0)
            d->site->imm[o].i = (int64_t)(next(seed) % 100);
        int64_t size = memory < 0 || m->memory[memory].size < 0 ? 4096 : m->memory[memory].size;
        d->site->address[o] = (struct known){
            true, 256 * (int64_t)(next(seed) % (uint64_t)(size < 256 ? 1 : size / 256))};
    }
    for (int l = 0; l < in->nloops; l++) {
        d->extent[l] = (struct known){true, 1 + (int64_t)(next(seed) % 100)};
        d->first[l] = (struct known){true, (int64_t)(next(seed) % 100)};
    }
    for (int i = 0; i < n; i++) d->step[i] = (struct known){true, 256 * (int64_t)(next(seed) % 8)};
    for (int k = 0; k < m->nsyncs; k++) {
        d->pop[k] = (m->sync[k].to >> in->queue & 1) && next(seed) % 2;
        d->push[k] = (m->sync[k].from >> in->queue & 1) && next(seed) % 2;
    }
    for (int k = 0; k < m->nstates; k++)
        d->slot[k] = m->state[k].count > 1 ? (int)(next(seed) % (uint64_t)m->state[k].count) : 0;
}

/* The fixed bits of both agree. */
static bool matching(const struct form *a, const struct form *b) {
    for (int k = 0; k < a->nwords && k < b->nwords; k++)
        for (int i = 0; i < a->word[k].nfields; i++)
            for (int j = 0; j < b->word[k].nfields; j++) {
                const struct bit_field *x = &a->word[k].field[i], *y = &b->word[k].field[j];
                if (x->constant && y->constant && x->at == y->at && x->value != y->value)
                    return false;
            }
    return true;
}

/* How many of `tries` random instructions could be encoded; then they come back. */
static int instructions(const struct machine *m, const struct forms *all, const struct form *f,
                        int tries, uint64_t *seed) {
    int good = 0;
    for (int t = 0; t < tries; t++) {
        uint8_t word[1024], back[1024];
        int64_t bytes = 0;
        struct decoded d, e;
        struct arena a;
        arena_init(&a);
        random_instruction(&a, m, f, seed, &d);
        for (int k = 0; k < f->nwords; k++) bytes += word_bytes(&f->word[k]);
        if (encode(m, &d, word)) {
            assert_true(decode_one(&a, m, all, word, bytes, &e));
            /* where several instructions are written alike, it is one of them */
            assert_true(e.form == f || matching(e.form, f));
            assert_true(encode(m, &e, back));
            assert_memory_equal(word, back, (size_t)bytes);
            good++;
        }
        arena_free(&a);
    }
    return good;
}

static void there_and_back(void **state) {
    static const char *const machines[] = {"tests/data/machines/tiny.xml", "machines/edge16.xml",
                                           "machines/gemmini.xml", "machines/vdla.xml",
                                           "tests/data/machines/edge16.xml"};
    uint64_t seed = 88172645463325252u;
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        struct arena a;
        arena_init(&a);
        struct machine *m = load(machines[i], NULL);
        struct forms all = forms_of(&a, m);
        int forms = 0;
        for (int k = 0; k < all.n; k++) {
            if (all.at[k].kind != FORM_INSTR) continue;
            int words = round_trips(m, &all, &all.at[k], 200, &seed),
                made = instructions(m, &all, &all.at[k], 200, &seed);
            if (words + made < 20 || made < 10)
                fprintf(stderr, "%s: %s: %d words, %d instructions of 200\n", machines[i],
                        all.at[k].id, words, made);
            assert_true(words + made >= 20 && made >= 10);
            forms++;
        }
        assert_true(forms >= 3);
        machine_free(m);
        arena_free(&a);
    }
}

/* A word that has one immediate in two places is no instruction where these differ. */
static void written_twice(void **state) {
    static const char once[] = "value=\"value(v)\" signed=\"true\"/>";
    char path[] = "/tmp/isamap_twice_XXXXXX";
    struct arena a;
    struct diags diags;
    size_t length;
    uint64_t seed = 88172645463325252u;
    int good = 0;
    (void)state;
    arena_init(&a);
    diags_init(&diags);
    char *text = file_read(&a, "machines/edge16.xml", 1 << 20, &length, &diags);
    assert_non_null(text);
    char *at = strstr(text, once);
    assert_non_null(at);
    int file = mkstemp(path);
    assert_true(dprintf(file, "%.*s%s<field at=\"76\" bits=\"32\" %s%s", (int)(at - text), text,
                        once, once, at + strlen(once)) > 0);
    close(file);
    struct machine *m = load(path, NULL);
    struct forms all = forms_of(&a, m);
    for (int k = 0; k < 50 * all.n; k++) {
        const struct form *f = &all.at[k % all.n];
        uint8_t word[1024];
        struct decoded d, e;
        if (f->kind != FORM_INSTR || strncmp(f->id, "v.", 2) || !strstr(f->id, ".imm")) continue;
        random_instruction(&a, m, f, &seed, &d);
        if (!encode(m, &d, word)) continue;
        assert_true(decode_one(&a, m, &all, word, word_bytes(&f->word[0]), &e));
        assert_true(e.form == f && e.site->imm[0].i == d.site->imm[0].i);
        word[76 / 8] ^= 1 << 76 % 8;
        assert_false(decode_one(&a, m, &all, word, word_bytes(&f->word[0]), &e));
        good++;
    }
    assert_true(good >= 50);
    machine_free(m);
    unlink(path);
    diags_free(&diags);
    arena_free(&a);
}

/* ---- what cannot be encoded ---- */

static bool mentions(const struct diags *d, const char *text) {
    for (int i = 0; i < d->n; i++)
        if (strstr(d->at[i].text, text)) return true;
    diags_print(d, stderr);
    return false;
}

static const char schedule_of[] =
    "schedule t on %s {\n  program {\n    kernel t() {\n      in A: i32[4096]\n"
    "      temp P: i32[1024]\n    }\n  }\n"
    "  place A: A in dram at 0 bytes 16384 argument\n  place P: P in pad at 0 bytes 1024 slots 4 "
    "local\n"
    "  run {\n    %s\n  }\n}\n";

/* Encodes the run section of a schedule without loops, with the current slot of P; the text of what
 * is wrong, or NULL. */
static void encode_on(const struct machine *m, const char *step, int64_t current,
                      struct bits_launch *out, uint8_t *bytes, size_t room, struct diags *d) {
    char text[2048];
    snprintf(text, sizeof text, schedule_of, m->name, step);
    struct source source = {"t.sched", text, strlen(text), 1, 1};
    struct schedule *s = schedule_parse(m, &source, d);
    if (!s) diags_print(d, stderr);
    assert_non_null(s);
    struct bits_encoder *e = bits_open(s, 0, d);
    int64_t value[8] = {0}, slot[8] = {0, current};
    bool ok = true;
    for (int k = 0; k < s->run.nnodes && ok; k++) ok = bits_add(e, &s->run.node[k], value, slot);
    ok = ok && bits_take(e, 4096, out);
    assert_true(ok == (d->errors == 0));
    if (ok) {
        assert_true((size_t)out->bytes <= room);
        memcpy(bytes, out->stream, (size_t)out->bytes);
    }
    bits_close(e);
    schedule_free(s);
}

static void encode_step(const char *step, struct bits_launch *out, uint8_t *bytes, size_t room,
                        struct diags *d) {
    struct machine *m = load("tests/data/machines/tiny.xml", NULL);
    encode_on(m, step, 0, out, bytes, room, d);
    machine_free(m);
}

/* Words of a sync's own name the channel, which may go round with the slots of a place; they are
 * read again. */
static void words_of_syncs(void **state) {
    static const struct {
        const char *step;
        int current;
        const char *word;
    } signals[] = {
        {"sync load push full", 0, "full.push(channel = 0)"},
        {"sync load push full[7]", 2, "full.push(channel = 7)"},
        {"sync store pop full[P]", 0, "full.pop(channel = 0)"},
        {"sync store pop full[P]", 3, "full.pop(channel = 3)"},
        {"sync load pop free[P + 1]", 0, "free.pop(channel = 1)"},
        {"sync store push free[P + 1]", 2, "free.push(channel = 3)"},
        {"sync store push free[P + 1]", 3, "free.push(channel = 0)"},
        {"sync store push free[P + 3]", 2, "free.push(channel = 1)"},
        {"sync store push free[P + 1]", -1, "free.push(channel = 1)"}, /* before the first */
    };
    struct machine *m = load("tests/data/machines/backends/flags.xml", NULL);
    struct arena a;
    (void)state;
    arena_init(&a);
    const struct forms all = forms_of(&a, m);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct bits_launch l;
        uint8_t bytes[64];
        struct decoded one;
        struct text t = {0};
        struct diags d;
        diags_init(&d);
        encode_on(m, signals[i].step, signals[i].current, &l, bytes, sizeof bytes, &d);
        diags_print(&d, stderr);
        assert_int_equal(l.bytes, 8);
        assert_true(decode_one(&a, m, &all, bytes, l.bytes, &one));
        decoded_text(m, &one, &t);
        assert_string_equal(t.at, signals[i].word);
        text_free(&t);
        diags_free(&d);
    }
    arena_free(&a);
    machine_free(m);
}

static void refused(void **state) {
    static const struct {
        const char *step, *why;
    } wrong[] = {
        {"issue ld(N = 4, s = 4, S = A + 8, D = P)",
         "operand 'S' of 'ld' lies at byte 8 of 'dram'"},
        {"issue ld(N = 4, s = 6, S = A, D = P)", "field 's/4' of 'ld' is 1.5, expected a whole"},
        {"issue ld(N = 255, s = 65536, S = A, D = P)",
         "field 's/4' of 'ld' is 16384, which 14 bits cannot hold, expected 0 to 16383"},
        {"issue ld(N = 4, s = -4, S = A, D = P)", "field 's/4' of 'ld' is -1"},
        {"issue ld(N = 4, s = 4, S = A, D = P + 4)", "operand 'D' of 'ld' lies at byte 4 of 'pad'"},
        {"sync move push filled", "a push of 'filled' on queue 'move' has no bits"},
        {"sync add pop filled push done", "a pop of 'filled' on queue 'add' has no bits"}};
    struct bits_launch l;
    uint8_t bytes[64];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct diags d;
        diags_init(&d);
        encode_step(wrong[i].step, &l, bytes, sizeof bytes, &d);
        assert_int_equal(d.errors, 1);
        assert_true(mentions(&d, wrong[i].why));
        assert_true(d.at[0].line > 0);
        diags_free(&d);
    }
}

/* Where each field of the first machine of the documentation stands. */
static void known_word(void **state) {
    struct bits_launch l;
    uint8_t bytes[64];
    uint64_t word = 0;
    struct diags d;
    (void)state;
    diags_init(&d);
    encode_step("issue ld(N = 5, s = 12, S = A + 4096, D = P + 48) pop done push filled", &l, bytes,
                sizeof bytes, &d);
    assert_int_equal(d.errors, 0);
    assert_int_equal(l.bytes, 8);
    for (int k = 7; k >= 0; k--) word = word << 8 | bytes[k];
    assert_true(word == (UINT64_C(1) << 2 | UINT64_C(1) << 3 | UINT64_C(3) << 4 |
                         UINT64_C(256) << 16 | UINT64_C(5) << 42 | UINT64_C(3) << 50));
    diags_free(&d);
}

/* ---- images ---- */

static void write_file(const char *path, const void *at, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(at, 1, n, f), n);
    fclose(f);
}

/* Reads and disassembles; true: without an error. */
static bool shown(const struct machine *m, const char *path, struct text *out) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    struct bits_image *i = bits_image_read(&a, path, &d);
    bool ok = i && bits_disassemble(m, i, path, out, &d);
    assert_true(ok == (d.errors == 0));
    int before = d.errors;
    if (i && i->end < 1 << 20) { /* as a schedule too */
        bool said = bits_image_schedule(m, i, path, out, &d);
        assert_true(said == (d.errors == before));
        assert_true(ok || !said);
    }
    diags_free(&d);
    arena_free(&a);
    return ok;
}

static void other_machine(struct text *image, const char *path) {
    struct machine *m = load("tests/data/machines/vdla.xml", NULL);
    struct text out = {0};
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    write_file(path, image->at, image->n);
    struct bits_image *i = bits_image_read(&a, path, &d);
    assert_non_null(i);
    assert_false(bits_image_schedule(m, i, path, &out, &d));
    assert_non_null(strstr(d.at[0].text, "is for machine 'tiny', not 'vdla'"));
    assert_int_equal(out.n, 0);
    text_free(&out);
    diags_free(&d);
    arena_free(&a);
    machine_free(m);
}

static void other_version(struct text *image, const char *path) {
    struct arena a;
    struct diags d;
    arena_init(&a);
    diags_init(&d);
    image->at[7] = '2';
    write_file(path, image->at, image->n);
    assert_null(bits_image_read(&a, path, &d));
    assert_int_equal(d.errors, 1);
    assert_non_null(strstr(d.at[0].text, "of version 2, this isamap reads version 1"));
    image->at[7] = '1';
    diags_free(&d);
    arena_free(&a);
}

static void damaged_images(void **state) {
    struct machine *m = load("tests/data/machines/tiny.xml", NULL);
    struct bits_launch l;
    uint8_t bytes[64], constants[16] = {1, 2, 3};
    struct bits_array array = {"A", ROLE_IN, TYPE_I32, 1, {16}, 0, 64};
    struct bits_blob blob = {64, 16, constants};
    struct device_register reg = {8, 1, 32};
    struct diags d;
    struct text t = {0}, out = {0};
    char path[] = "/tmp/isamap-test.XXXXXX";
    uint64_t seed = 2463534242u;
    int good = 0;
    (void)state;
    diags_init(&d);
    encode_step("issue ld(N = 5, s = 4, S = A, D = P)\n    issue add(N = 3, X = P, C = P + 48)", &l,
                bytes, sizeof bytes, &d);
    assert_int_equal(d.errors, 0);
    struct bits_image image = {"tiny", "t", &array,  1,     &blob,        1, &reg, 1,
                               128,    2,   l.bytes, bytes, 128 + l.bytes};
    bits_image_write(&image, &t);
    close(mkstemp(path));
    write_file(path, t.at, t.n);
    assert_true(shown(m, path, &out));
    other_version(&t, path);
    other_machine(&t, path);
    assert_non_null(strstr(out.at, "ld(N = 5, s = 4, S = dram + 0, D = pad + 0)"));
    assert_non_null(strstr(out.at, "add(N = 3, X = pad + 0, C = pad + 48)"));
    for (size_t n = 0; n < t.n; n++) { /* every file that ends too early */
        write_file(path, t.at, n);
        assert_false(shown(m, path, &out));
    }
    for (int k = 0; k < 2000; k++) { /* some bytes are others */
        char *copy = malloc(t.n);
        memcpy(copy, t.at, t.n);
        for (uint64_t n = 1 + next(&seed) % 3; n > 0; n--)
            copy[next(&seed) % t.n] = (char)next(&seed);
        write_file(path, copy, t.n);
        good += shown(m, path, &out);
        free(copy);
    }
    assert_true(good < 2000);
    unlink(path);
    text_free(&t);
    text_free(&out);
    diags_free(&d);
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back), cmocka_unit_test(written_twice),
        cmocka_unit_test(words_of_syncs), cmocka_unit_test(refused),
        cmocka_unit_test(known_word),     cmocka_unit_test(damaged_images)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
