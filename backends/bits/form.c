/* The words of a machine file with everything resolved that does not depend on what is issued. */
#include "backends/bits/bits_int.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

struct constants {
    const struct machine *machine;
    const struct instr *instr; /* whose own names hide the machine's parameters; or NULL */
};

static bool constant_name(void *user, const char *name, const char *field, double *out) {
    const struct constants *c = user;
    if (c->instr && kernel_param_index(c->instr->semantics, name) >= 0) return false;
    return machine_param((void *)c->machine, name, field, out);
}

static int64_t number(const struct machine *m, const struct mexpr *e, int64_t without) {
    struct mexpr_env env = {machine_param, NULL, (void *)m};
    int64_t v;
    return e && mexpr_integer(e, &env, &v, NULL) ? v : without;
}

/* word(D) becomes word_D, ys/16 becomes ys_16. */
static const char *made_name(struct arena *a, const char *text) {
    struct text t = {0};
    for (const char *p = text; *p; p++) {
        bool plain = isalnum((unsigned char)*p) || *p == '_';
        if (plain) text_append(&t, p, 1);
        if (!plain && t.n && t.at[t.n - 1] != '_') text_append(&t, "_", 1);
    }
    while (t.n && t.at[t.n - 1] == '_') t.at[--t.n] = 0;
    const char *name = arena_strndup(a, t.n ? t.at : "field", t.n ? t.n : 5);
    text_free(&t);
    return isdigit((unsigned char)*name) ? arena_printf(a, "n%s", name) : name;
}

static bool name_taken(const struct bit_word *w, const char *name) {
    for (int i = 0; i < w->nfields; i++)
        if (!strcasecmp(w->field[i].name, name)) return true; /* constants are in capitals */
    return false;
}

static void add_fields(struct arena *a, const struct machine *m, const struct instr *x,
                       const struct field *field, int n, struct bit_word *w) {
    for (int i = 0; i < n; i++) {
        const struct field *f = &field[i];
        struct bit_field *b = &w->field[w->nfields];
        struct constants c = {m, x};
        struct mexpr_env env = {constant_name, NULL, &c};
        double v;
        *b = (struct bit_field){
            .field = f, .at = number(m, f->at, 0), .bits = (int)number(m, f->bits, 1)};
        uint64_t mask = b->bits < 64 ? ((uint64_t)1 << b->bits) - 1 : ~(uint64_t)0;
        b->constant = mexpr_eval(f->value, &env, &v, NULL) && v == floor(v) && fabs(v) < 0x1p63;
        if (b->constant) b->value = (uint64_t)(int64_t)v & mask;
        b->name = f->name       ? made_name(a, f->name)
                  : b->constant ? arena_printf(a, "at%lld", (long long)b->at)
                                : made_name(a, f->value->text);
        if (name_taken(w, b->name))
            b->name = arena_printf(a, "%s_at%lld", b->name, (long long)b->at);
        w->nfields++;
    }
}

static int count_format(const struct machine *m, int format) {
    return format < 0 ? 0 : m->format[format].nfields + count_format(m, m->format[format].base);
}

static void add_format(struct arena *a, const struct machine *m, const struct instr *x, int format,
                       struct bit_word *w) {
    if (format < 0) return;
    add_format(a, m, x, m->format[format].base, w);
    add_fields(a, m, x, m->format[format].field, m->format[format].nfields, w);
}

static struct bit_word word_of(struct arena *a, const struct machine *m, const struct instr *x,
                               const struct word *from) {
    const struct mexpr *bits = from->bits          ? from->bits
                               : from->format >= 0 ? m->format[from->format].bits
                                                   : NULL;
    struct bit_word w = {.bits = number(m, bits, 0), .address = number(m, from->at, -1)};
    w.field = arena_array(a, (size_t)(count_format(m, from->format) + from->nfields) + 1,
                          sizeof *w.field);
    add_format(a, m, x, from->format, &w);
    add_fields(a, m, x, from->field, from->nfields, &w);
    return w;
}

static void add_form(struct arena *a, const struct machine *m, struct forms *all, struct form f,
                     const struct instr *x, const struct emit *emit, int nemits) {
    for (int i = 0; i < nemits; i++) {
        if (emit[i].language != LANGUAGE_BITS || !emit[i].nwords) continue;
        f.word = arena_array(a, (size_t)emit[i].nwords, sizeof *f.word);
        for (int k = 0; k < emit[i].nwords; k++)
            f.word[f.nwords++] = word_of(a, m, x, &emit[i].word[k]);
        if (all->n == all->cap) GROW(a, all->at, all->n, all->cap);
        all->at[all->n++] = f;
        return;
    }
}

static void add_entry(struct arena *a, const struct machine *m, struct forms *all, int instr,
                      int loop) {
    const struct instr *x = &m->instr[instr];
    const struct hwloop *l = &x->loop[loop];
    if (l->table < 0 || !l->entry_bits) return;
    struct form f = {FORM_ENTRY, arena_printf(a, "%s.%s", x->id, l->id), instr, loop, NULL, 1};
    f.word = arena_alloc(a, sizeof *f.word);
    *f.word = (struct bit_word){.bits = number(m, l->entry_bits, 0), .address = -1};
    f.word->field = arena_array(a, (size_t)l->nentries + 1, sizeof *f.word->field);
    add_fields(a, m, x, l->entry, l->nentries, f.word);
    if (all->n == all->cap) GROW(a, all->at, all->n, all->cap);
    all->at[all->n++] = f;
}

static void add_head(struct arena *a, const struct machine *m, struct forms *all, int format) {
    struct form f = {FORM_HEAD, m->format[format].id, format, 0, NULL, 1};
    struct word alone = {.format = format};
    f.word = arena_alloc(a, sizeof *f.word);
    *f.word = word_of(a, m, NULL, &alone);
    if (all->n == all->cap) GROW(a, all->at, all->n, all->cap);
    all->at[all->n++] = f;
}

struct forms forms_of(struct arena *a, const struct machine *m) {
    struct forms all = {0};
    add_form(a, m, &all, (struct form){FORM_BEGIN, "begin", 0, 0, NULL, 0}, NULL, m->begin,
             m->nbegins);
    for (int i = 0; i < m->nformats; i++) add_head(a, m, &all, i);
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        add_form(a, m, &all, (struct form){FORM_INSTR, x->id, i, 0, NULL, 0}, x, x->emit,
                 x->nemits);
        for (int l = 0; l < x->nloops; l++) add_entry(a, m, &all, i, l);
    }
    for (int i = 0; i < m->nconfigures; i++)
        add_form(a, m, &all, (struct form){FORM_CONFIGURE, m->configure[i].id, i, 0, NULL, 0}, NULL,
                 m->configure[i].emit, m->configure[i].nemits);
    for (int i = 0; i < m->nsyncs; i++) {
        const struct sync *s = &m->sync[i];
        add_form(a, m, &all,
                 (struct form){FORM_PUSH, arena_printf(a, "%s.push", s->id), i, 0, NULL, 0}, NULL,
                 s->push_emit, s->npush_emits);
        add_form(a, m, &all,
                 (struct form){FORM_POP, arena_printf(a, "%s.pop", s->id), i, 0, NULL, 0}, NULL,
                 s->pop_emit, s->npop_emits);
    }
    add_form(a, m, &all, (struct form){FORM_END, "end", 0, 0, NULL, 0}, NULL, m->end, m->nends);
    return all;
}

const struct form *form_find(const struct forms *all, enum form_kind kind, int index) {
    for (int i = 0; i < all->n; i++)
        if (all->at[i].kind == kind && all->at[i].index == index) return &all->at[i];
    return NULL;
}

bool bits_spoken(const struct machine *m) {
    for (int i = 0; i < m->ninstrs; i++)
        if (instr_emit(&m->instr[i], LANGUAGE_BITS)) return true;
    return false;
}
