/* Random streams of VDLA's instructions, written field by field, that are right in any order of the
 * queues: whatever two queues touch has a token in between, and no more of them than needed. */
#ifndef ISAMAP_TESTS_VDLA_STREAM_H
#define ISAMAP_TESTS_VDLA_STREAM_H

#include "backends/bits/bits_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum {
    STREAM_HOME = 1 << 20, /* bytes of DRAM: sources, tables, results */
    STREAM_TABLES = 1 << 18,
    STREAM_RESULTS = 1 << 19,
    STREAM_MOST = 4000,
    STREAM_WORDS = 512, /* of each buffer that are used, where it has so many */
    STREAM_TOUCHED = 4096
};

enum { AT_LOAD, AT_EXEC, AT_STORE, AT_QUEUES };
enum { IN_INP, IN_WGT, IN_ACC, IN_UOP, IN_DRAM, IN_MEMORIES }; /* dram: pieces of 16 bytes */

struct stream_table {
    int first, n, kind; /* entries; kind 0: gemm, 1: alu, 2: alu with a constant */
    int reach[3];       /* the greatest index in each field */
};

struct stream {
    const struct machine *machine;
    struct forms forms;
    struct arena arena;
    uint64_t seed;
    uint8_t *home, (*word)[16];
    int n;
    /* knowledge: of queue q, how many instructions of queue p are surely over */
    int of[STREAM_MOST],
        number[STREAM_MOST]; /* each instruction's queue, its number there from 1 */
    int count[AT_QUEUES], knows[AT_QUEUES][AT_QUEUES];
    int last[AT_QUEUES];     /* its last instruction, -1 */
    int (*clock)[AT_QUEUES]; /* what an instruction's queue knew when it started */
    bool gives[STREAM_MOST][AT_QUEUES], takes[STREAM_MOST][AT_QUEUES];
    int *written[IN_MEMORIES],
        *read[IN_MEMORIES][AT_QUEUES]; /* last instruction + 1 of each word */
    struct stream_table table[64];
    int ntables, table_bytes, result;
    struct touch {
        int memory, at;
        bool writes;
    } touch[STREAM_TOUCHED];
    int ntouches;
};

static inline uint64_t stream_next(struct stream *s) {
    s->seed ^= s->seed << 13;
    s->seed ^= s->seed >> 7;
    s->seed ^= s->seed << 17;
    return s->seed >> 16;
}

static inline int stream_any(struct stream *s, int lo, int hi) {
    return lo + (int)(stream_next(s) % (uint64_t)(hi - lo + 1));
}

static inline const struct bit_word *stream_form(const struct stream *s, const char *id) {
    int i = machine_instr(s->machine, id);
    assert_true(i >= 0);
    return &form_find(&s->forms, FORM_INSTR, i)->word[0];
}

static inline const struct bit_field *stream_field(const struct bit_word *w, const char *name) {
    for (int k = 0; k < w->nfields; k++)
        if (!strcmp(w->field[k].name, name)) return &w->field[k];
    fail_msg("no field '%s'", name);
    return NULL;
}

static inline void stream_put(uint8_t *word, const struct bit_field *f, int64_t v) {
    assert_true(f->field->is_signed || (v >= 0 && v < (int64_t)1 << f->bits));
    for (int k = 0; k < f->bits; k++) {
        uint8_t bit = (uint8_t)(1u << (f->at + k) % 8);
        word[(f->at + k) / 8] = (uint8_t)((word[(f->at + k) / 8] & ~bit) | (v >> k & 1 ? bit : 0));
    }
}

static inline void stream_set(struct stream *s, const char *id, int at, const char *name,
                              int64_t v) {
    stream_put(s->word[at], stream_field(stream_form(s, id), name), v);
}

/* ---- tokens ---- */

static inline int stream_begin(struct stream *s, const char *id) {
    const struct bit_word *w = stream_form(s, id);
    int q = s->machine->instr[machine_instr(s->machine, id)].queue, at = s->n++;
    assert_true(at < STREAM_MOST && w->bits == 128);
    memset(s->word[at], 0, 16);
    for (int k = 0; k < w->nfields; k++)
        if (w->field[k].constant) stream_put(s->word[at], &w->field[k], (int64_t)w->field[k].value);
    s->of[at] = q;
    s->number[at] = ++s->count[q];
    s->last[q] = at;
    memset(s->gives[at], 0, sizeof s->gives[at]);
    memset(s->takes[at], 0, sizeof s->takes[at]);
    memcpy(s->clock[at], s->knows[q], sizeof s->clock[at]);
    return at;
}

static inline void stream_nop(struct stream *s, int q) {
    static const char *const nop[] = {"nop.load", "nop.exec", "nop.store"};
    stream_begin(s, nop[q]);
}

/* Makes what comes next on queue q come after all of queue p. The token is given by the last
 * instruction of p; a nop takes it. */
static inline void stream_wait(struct stream *s, int q, int p) {
    if (p == q || s->knows[q][p] == s->count[p]) return;
    if (p != AT_EXEC && q != AT_EXEC) { /* they are no neighbours */
        stream_wait(s, AT_EXEC, p);
        stream_wait(s, q, AT_EXEC);
        return;
    }
    if (s->gives[s->last[p]][q]) stream_nop(s, p);
    int giver = s->last[p];
    s->gives[giver][q] = true;
    stream_put(s->word[giver],
               stream_field(stream_form(s, "nop.load"), q > p ? "push_next" : "push_prev"), 1);
    stream_nop(s, q);
    s->takes[s->n - 1][p] = true;
    stream_put(s->word[s->n - 1],
               stream_field(stream_form(s, "nop.load"), p < q ? "pop_prev" : "pop_next"), 1);
    for (int k = 0; k < AT_QUEUES; k++) {
        int known = k == p ? s->number[giver] : s->clock[giver][k];
        if (known > s->knows[q][k]) s->knows[q][k] = known;
    }
    memcpy(s->clock[s->n - 1], s->knows[q], sizeof s->clock[0]);
}

/* Takes back a nop just before that only takes tokens, half of the time: the instruction that
 * follows it will take them. What it was; 0: none. */
static inline uint8_t stream_unnop(struct stream *s, int q) {
    int nop = s->last[q];
    const struct bit_field *op = stream_field(stream_form(s, "nop.load"), "op");
    if (nop < 0 || nop != s->n - 1 || stream_any(s, 0, 1)) return 0;
    if (field_unpack(op, s->word[nop]) != op->value) return 0;
    for (int p = 0; p < AT_QUEUES; p++)
        if (s->gives[nop][p]) return 0;
    s->n--;
    s->count[q]--;
    s->last[q] = -1;
    for (int k = s->n - 1; k >= 0 && s->last[q] < 0; k--)
        if (s->of[k] == q) s->last[q] = k;
    return s->word[nop][0];
}

/* ---- what instructions touch ---- */

static inline void stream_touch(struct stream *s, int memory, int at, bool writes) {
    assert_true(s->ntouches < STREAM_TOUCHED);
    s->touch[s->ntouches++] = (struct touch){memory, at, writes};
}

static inline void stream_after(struct stream *s, int q, int before) {
    if (before && s->knows[q][s->of[before - 1]] < s->number[before - 1])
        stream_wait(s, q, s->of[before - 1]);
}

static inline void stream_restore(struct stream *s, int q, uint8_t nop) {
    stream_nop(s, q);
    s->word[s->n - 1][0] = nop;
}

/* Adds the instruction after the tokens that its touches need. */
static inline int stream_add(struct stream *s, const char *id) {
    int q = s->machine->instr[machine_instr(s->machine, id)].queue;
    for (int k = 0; k < s->ntouches; k++) {
        struct touch t = s->touch[k];
        int w = s->written[t.memory][t.at];
        if (w && s->of[w - 1] != q) stream_after(s, q, w);
        for (int p = 0; t.writes && p < AT_QUEUES; p++)
            if (p != q) stream_after(s, q, s->read[t.memory][p][t.at]);
    }
    uint8_t nop = stream_unnop(s, q), before = nop ? stream_unnop(s, q) : 0;
    if (before & nop & 0x18) stream_restore(s, q, before), before = 0;
    int at = stream_begin(s, id);
    s->word[at][0] |= (uint8_t)((nop | before) & 0x18); /* pop_prev, pop_next */
    for (int k = 0; k < s->ntouches; k++) {
        struct touch t = s->touch[k];
        *(t.writes ? &s->written[t.memory][t.at] : &s->read[t.memory][q][t.at]) = at + 1;
    }
    s->ntouches = 0;
    return at;
}

/* ---- copies ---- */

struct stream_box {
    int z, y, x, ys, zs, pad[4]; /* y0, y1, x0, x1 */
};

static inline struct stream_box stream_any_box(struct stream *s, int most, bool pads) {
    struct stream_box b;
    do {
        b = (struct stream_box){
            stream_any(s, 1, 3), stream_any(s, 1, 6), stream_any(s, 1, 9), 0, 0, {0}};
        for (int k = 0; k < 4 && pads; k++)
            b.pad[k] = stream_any(s, -2, 3) < 1 ? 0 : stream_any(s, 0, 4);
    } while (b.z * (b.pad[0] + b.y + b.pad[1]) * (b.pad[2] + b.x + b.pad[3]) > most);
    b.ys = b.x + stream_any(s, 0, 1) * stream_any(s, 0, 9);
    b.zs = b.ys * b.y + stream_any(s, 0, 1) * stream_any(s, 0, 20);
    return b;
}

static inline int stream_places(const struct stream_box *b) {
    return b->z * (b->pad[0] + b->y + b->pad[1]) * (b->pad[2] + b->x + b->pad[3]);
}

/* Pieces of DRAM from `from` on that the box covers, whose words have so many. */
static inline void stream_touch_box(struct stream *s, const struct stream_box *b, int from,
                                    int pieces, bool writes) {
    for (int z = 0; z < b->z; z++)
        for (int y = 0; y < b->y; y++)
            for (int k = 0; k < b->x * pieces; k++)
                stream_touch(s, IN_DRAM, from + (z * b->zs + y * b->ys) * pieces + k, writes);
}

static inline int stream_span(const struct stream_box *b) { /* words */
    return (b->z - 1) * b->zs + (b->y - 1) * b->ys + b->x;
}

static inline void stream_put_box(struct stream *s, const char *id, int at,
                                  const struct stream_box *b, bool pads) {
    static const char *const side[] = {"y0", "y1", "x0", "x1"};
    stream_set(s, id, at, "z", b->z);
    stream_set(s, id, at, "y", b->y);
    stream_set(s, id, at, "x", b->x);
    stream_set(s, id, at, "ys", b->ys);
    stream_set(s, id, at, "zs", b->zs);
    for (int k = 0; k < 4 && pads; k++) stream_set(s, id, at, side[k], b->pad[k]);
}

static inline void stream_load(struct stream *s) {
    static const struct {
        const char *id;
        int memory, pieces, most;
    } kind[] = {{"ld.inp", IN_INP, 1, 300},
                {"ld.inp", IN_INP, 1, 40},
                {"ld.wgt", IN_WGT, 16, 24},
                {"ld.acc", IN_ACC, 4, 60},
                {"ld.acc8", IN_ACC, 1, 60}};
    int k = stream_any(s, 0, 4), words = kind[k].memory == IN_WGT ? 128 : STREAM_WORDS;
    struct stream_box b = stream_any_box(s, kind[k].most, true);
    int places = stream_places(&b), to = stream_any(s, 0, words - places);
    bool results = s->result > 4000 && stream_any(s, 0, 3) == 0; /* what was stored before */
    int from = results ? STREAM_RESULTS / 16 : 0,
        room = (results ? s->result : STREAM_TABLES / 16) - stream_span(&b) * kind[k].pieces;
    if (room < 0) return;
    from += stream_any(s, 0, room);
    for (int p = 0; p < places; p++) stream_touch(s, kind[k].memory, to + p, true);
    stream_touch_box(s, &b, from, kind[k].pieces, false);
    int at = stream_add(s, kind[k].id);
    stream_put_box(s, kind[k].id, at, &b, true);
    stream_set(s, kind[k].id, at, "sram", to);
    stream_set(s, kind[k].id, at, "dram", from);
}

static inline void stream_row(struct stream *s) {
    int y = stream_any(s, 1, 40), to = stream_any(s, 0, STREAM_WORDS - y),
        from = stream_any(s, 0, STREAM_TABLES / 16 - 4);
    for (int p = 0; p < y; p++) stream_touch(s, IN_ACC, to + p, true);
    for (int p = 0; p < 4; p++) stream_touch(s, IN_DRAM, from + p, false);
    int at = stream_add(s, "ld.row");
    stream_set(s, "ld.row", at, "y", y);
    stream_set(s, "ld.row", at, "sram", to);
    stream_set(s, "ld.row", at, "dram", from);
}

static inline void stream_store(struct stream *s) {
    bool narrow = stream_any(s, 0, 2);
    const char *id = narrow ? "st" : "st.acc";
    struct stream_box b = stream_any_box(s, 80, false);
    int words = stream_places(&b), from = stream_any(s, 0, STREAM_WORDS - words),
        pieces = narrow ? 1 : 4, span = stream_span(&b) * pieces;
    if (STREAM_RESULTS / 16 + s->result + span > STREAM_HOME / 16) return;
    for (int p = 0; p < words; p++) stream_touch(s, IN_ACC, from + p, false);
    stream_touch_box(s, &b, STREAM_RESULTS / 16 + s->result, pieces, true);
    int at = stream_add(s, id);
    stream_put_box(s, id, at, &b, false);
    stream_set(s, id, at, "sram", from);
    stream_set(s, id, at, "dram", STREAM_RESULTS / 16 + s->result);
    s->result += span;
    if (!narrow) return;
    int low = stream_any(s, -128, 0), high = stream_any(s, 0, 127);
    stream_set(s, id, at, "shift",
               stream_any(s, 0, 3) ? stream_any(s, 0, 12) : stream_any(s, 0, 31));
    stream_set(s, id, at, "low", stream_any(s, 0, 2) ? -128 : low);
    stream_set(s, id, at, "high", stream_any(s, 0, 2) ? 127 : high);
}

/* ---- micro-ops ---- */

static inline const struct bit_word *stream_entry(const struct stream *s, const char *id) {
    int i = machine_instr(s->machine, id);
    const struct form *f = form_find(&s->forms, FORM_ENTRY, i);
    assert_non_null(f);
    return &f->word[0];
}

static inline void stream_table(struct stream *s) {
    static const char *const of[] = {"gemm", "alu.add", "alu.add.imm"};
    struct stream_table t = {.n = stream_any(s, 1, 20), .kind = stream_any(s, 0, 2)};
    if (s->ntables == 64 || s->table_bytes + 4 * t.n > STREAM_RESULTS - STREAM_TABLES) return;
    t.first = stream_any(s, 0, STREAM_WORDS - t.n);
    for (int k = 0; k < s->ntables; k++) { /* what it overwrites is gone */
        const struct stream_table *o = &s->table[k];
        if (o->first < t.first + t.n && t.first < o->first + o->n)
            s->table[k--] = s->table[--s->ntables];
    }
    const struct bit_word *w = stream_entry(s, of[t.kind]);
    int from = STREAM_TABLES + s->table_bytes, most[] = {300, 300, 100};
    for (int k = 0; k < t.n; k++)
        for (int f = 0; f < w->nfields; f++) {
            int v = stream_any(s, 0, most[f]);
            if (v > t.reach[f]) t.reach[f] = v;
            stream_put(s->home + from + 4 * k, &w->field[f], v);
        }
    for (int k = 0; k < t.n; k++) stream_touch(s, IN_UOP, t.first + k, true);
    for (int p = from / 16; p <= (from + 4 * t.n - 1) / 16; p++) stream_touch(s, IN_DRAM, p, false);
    int at = stream_add(s, "ld.uop");
    stream_set(s, "ld.uop", at, "x", t.n);
    stream_set(s, "ld.uop", at, "sram", t.first);
    stream_set(s, "ld.uop", at, "dram", from / 16);
    s->table_bytes += (4 * t.n + 15) / 16 * 16;
    s->table[s->ntables++] = t;
}

static inline int stream_step(struct stream *s, int outer, int inner, int reach, int words,
                              int *step) {
    int room = words - 1 - reach, most = outer + inner > 2 ? room / (outer + inner - 2) : 0;
    if (most > 60) most = 60;
    step[0] = outer > 1 ? stream_any(s, 0, most) : 0;
    step[1] = inner > 1 ? stream_any(s, 0, most) : 0;
    return room;
}

/* One of the tables that are there; the indices of all iterations are touched. */
static inline void stream_compute(struct stream *s) {
    static const char *const alu[] = {"alu.min", "alu.max", "alu.add", "alu.shr", "alu.mul"};
    static const char *const imm[] = {"alu.min.imm", "alu.max.imm", "alu.add.imm", "alu.shr.imm",
                                      "alu.mul.imm"};
    if (!s->ntables) return;
    const struct stream_table t = s->table[stream_any(s, 0, s->ntables - 1)];
    const char *id = t.kind == 0 ? "gemm" : (t.kind == 1 ? alu : imm)[stream_any(s, 0, 4)];
    int first = stream_any(s, 0, t.n - 1), n = stream_any(s, 1, t.n - first),
        outer = stream_any(s, 1, 4), inner = stream_any(s, 1, 5), step[3][2] = {{0}};
    const int memory[3] = {IN_ACC, t.kind ? IN_ACC : IN_INP, IN_WGT},
              words[3] = {STREAM_WORDS, STREAM_WORDS, 128}, used = t.kind == 0 ? 3 : 3 - t.kind;
    static const char *const step_name[2][3][2] = {
        {{"c_outer", "c_inner"}, {"a_outer", "a_inner"}, {"b_outer", "b_inner"}},
        {{"c_outer", "c_inner"}, {"x_outer", "x_inner"}, {NULL, NULL}}};
    const struct bit_word *w = stream_entry(s, id);
    for (int f = 0; f < used; f++) stream_step(s, outer, inner, t.reach[f], words[f], step[f]);
    const uint8_t *from = NULL; /* the entries stand in DRAM as they were loaded */
    for (int k = s->n - 1; k >= 0 && !from; k--) {
        const struct bit_word *u = stream_form(s, "ld.uop");
        if (field_unpack(stream_field(u, "op"), s->word[k]) != stream_field(u, "op")->value ||
            field_unpack(stream_field(u, "kind"), s->word[k]) != stream_field(u, "kind")->value ||
            field_unpack(stream_field(u, "sram"), s->word[k]) != (uint64_t)t.first)
            continue;
        from = s->home + 16 * field_unpack(stream_field(u, "dram"), s->word[k]);
    }
    assert_non_null(from);
    for (int u = first; u < first + n; u++) {
        stream_touch(s, IN_UOP, t.first + u, false);
        for (int f = 0; f < used; f++)
            for (int i = 0; i < outer * inner; i++)
                stream_touch(s, memory[f],
                             (int)field_unpack(&w->field[f], from + 4 * u) +
                                 i / inner * step[f][0] + i % inner * step[f][1],
                             f == 0);
    }
    int at = stream_add(s, id);
    stream_set(s, id, at, "first", t.first + first);
    stream_set(s, id, at, "end", t.first + first + n);
    stream_set(s, id, at, "outer", outer);
    stream_set(s, id, at, "inner", inner);
    for (int f = 0; f < used; f++)
        for (int l = 0; l < 2; l++) stream_set(s, id, at, step_name[t.kind > 0][f][l], step[f][l]);
    if (t.kind == 0) stream_set(s, id, at, "overwrite", stream_any(s, 0, 1));
    if (t.kind == 2)
        stream_set(s, id, at, "imm",
                   stream_any(s, 0, 1) ? stream_any(s, -40, 40) : stream_any(s, -32768, 32767));
}

/* ---- whole streams ---- */

/* Every word of every buffer that may be read is loaded first: times do not depend on it, values
 * do. */
static inline void stream_fill(struct stream *s) {
    static const struct {
        const char *id;
        int memory, words, pieces;
    } fill[] = {{"ld.inp", IN_INP, STREAM_WORDS, 1},
                {"ld.wgt", IN_WGT, 128, 16},
                {"ld.acc", IN_ACC, STREAM_WORDS, 4}};
    for (int k = 0; k < 3; k++) {
        struct stream_box b = {1, 1, fill[k].words, fill[k].words, fill[k].words, {0}};
        for (int p = 0; p < fill[k].words; p++) stream_touch(s, fill[k].memory, p, true);
        stream_touch_box(s, &b, 100 * k, fill[k].pieces, false);
        int at = stream_add(s, fill[k].id);
        stream_put_box(s, fill[k].id, at, &b, true);
        stream_set(s, fill[k].id, at, "dram", 100 * k);
    }
}

static inline struct stream *stream_make(const struct machine *m, uint64_t seed, int instructions) {
    struct stream *s = calloc(1, sizeof *s);
    static const int words[] = {STREAM_WORDS, 128, STREAM_WORDS, STREAM_WORDS, STREAM_HOME / 16};
    s->machine = m;
    s->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    arena_init(&s->arena);
    s->forms = forms_of(&s->arena, m);
    s->home = calloc(1, STREAM_HOME);
    s->word = calloc(STREAM_MOST, 16);
    s->clock = calloc(STREAM_MOST, sizeof *s->clock);
    for (int k = 0; k < IN_MEMORIES; k++) {
        s->written[k] = calloc((size_t)words[k], sizeof(int));
        for (int q = 0; q < AT_QUEUES; q++) s->read[k][q] = calloc((size_t)words[k], sizeof(int));
    }
    for (int q = 0; q < AT_QUEUES; q++) s->last[q] = -1;
    for (int k = 0; k < STREAM_TABLES; k++) s->home[k] = (uint8_t)stream_next(s);
    stream_fill(s);
    while (s->n < instructions) {
        int what = stream_any(s, 0, 9);
        if (what < 3) stream_load(s);
        if (what == 3) stream_row(s);
        if (what == 4 || s->ntables < 3) stream_table(s);
        if (what > 4 && what < 8) stream_compute(s);
        if (what >= 8) stream_store(s);
    }
    int end = s->n++;
    memset(s->word[end], 0, 16);
    const struct bit_word *w = &form_find(&s->forms, FORM_END, 0)->word[0];
    for (int k = 0; k < w->nfields; k++)
        if (w->field[k].constant)
            stream_put(s->word[end], &w->field[k], (int64_t)w->field[k].value);
    return s;
}

static inline void stream_free(struct stream *s) {
    for (int k = 0; k < IN_MEMORIES; k++) {
        free(s->written[k]);
        for (int q = 0; q < AT_QUEUES; q++) free(s->read[k][q]);
    }
    free(s->home);
    free(s->word);
    free(s->clock);
    arena_free(&s->arena);
    free(s);
}

#endif
