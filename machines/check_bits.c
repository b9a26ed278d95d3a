/* Bit fields: inside the word, not overlapping, wide enough at both ends of every range; and the
 * ${…} of emit texts. */
#include "machines/check.h"
#include <math.h>
#include <string.h>

enum { MAX_WORD_BITS = 4096 };

/* An instruction at one end of all its ranges. Functions of operands take their least or greatest
 * value; what is chosen later (strides, steps, values, state) has none. */
struct end {
    const struct machine *m;
    const struct instr *x; /* or NULL */
    struct sizes sizes;
    bool high;
};

static bool let_of(const struct instr *x, const char *name, bool high, double *out) {
    bool found = false;
    for (int i = 0; i < x->noperands; i++)
        for (int k = 0; k < x->operand[i].nlayouts; k++) {
            const struct operand_layout *l = &x->operand[i].layout[k];
            if (!l->let_name || strcmp(l->let_name, name)) continue;
            if (!found || (high ? (double)l->let_value > *out : (double)l->let_value < *out))
                *out = (double)l->let_value;
            found = true;
        }
    return found;
}

static bool end_name(void *user, const char *name, const char *field, double *out) {
    const struct end *e = user;
    if (field) return false;
    if (e->x) {
        for (int i = 0; i < e->sizes.n; i++)
            if (!strcmp(e->sizes.at[i].name, name))
                return *out = (double)e->sizes.at[i].value, true;
        if (kernel_param_index(e->x->semantics, name) >= 0) return false;
        if (let_of(e->x, name, e->high, out)) return true;
        if (instr_is_flag(e->x, name)) return *out = e->high, true;
    }
    for (int i = 0; i < e->m->nparams; i++)
        if (!strcmp(e->m->param[i].name, name)) return *out = (double)e->m->param[i].value, true;
    return false;
}

static const struct operand *operand_of(const struct instr *x, const struct mexpr *e) {
    for (int i = 0; x && e->kind == MEXPR_NAME && i < x->noperands; i++)
        if (!strcmp(x->operand[i].buffer, e->name)) return &x->operand[i];
    return NULL;
}

/* the greatest word, bank or address over the memories that the operand may be in */
static bool end_of_operand(const struct end *e, const struct operand *o, const char *what,
                           double *out) {
    *out = 0;
    if (!e->high) return true;
    for (int i = 0; i < o->nmemories; i++) {
        if (o->memory[i] < 0) return false;
        const struct memory *y = &e->m->memory[o->memory[i]];
        if (y->size < 0 || y->alias >= 0) return false;
        double v = (double)(*what == 'w'   ? y->size / y->word - 1
                            : *what == 'b' ? y->banks - 1
                                           : (y->size - 1) / y->align * y->align);
        *out = fmax(*out, v);
    }
    return o->nmemories > 0;
}

static const struct hwloop *loop_of(const struct instr *x, const struct mexpr *e) {
    for (int i = 0; x && e->kind == MEXPR_NAME && i < x->nloops; i++)
        if (!strcmp(x->loop[i].id, e->name)) return &x->loop[i];
    return NULL;
}

static bool end_of_loop(const struct end *e, const struct hwloop *l, bool first, double *out) {
    int64_t bits;
    struct mexpr_env env = {end_name, NULL, (void *)e};
    if (!first) return *out = e->high ? (double)l->max : 1, true;
    *out = 0;
    if (!e->high) return true;
    if (l->table < 0 || !l->entry_bits || e->m->memory[l->table].size < 0) return false;
    if (!mexpr_integer(l->entry_bits, &env, &bits, NULL) || bits < 1) return false;
    *out = floor((double)e->m->memory[l->table].size * 8 / (double)bits) - 1;
    return true;
}

static const char *spelled(const struct mexpr *e, char *buffer, size_t n) {
    snprintf(buffer, n, "%s%s%s", e->name ? e->name : "", e->kind == MEXPR_FIELD ? "." : "",
             e->kind == MEXPR_FIELD ? e->field : "");
    return buffer;
}

static bool end_call(void *user, const struct mexpr *c, const struct mexpr_env *env, double *out) {
    const struct end *e = user;
    char id[256];
    (void)env;
    if (c->field || c->nargs < 1) return false;
    const struct operand *o = operand_of(e->x, c->arg[0]);
    const struct hwloop *l = loop_of(e->x, c->arg[0]);
    if (o && (!strcmp(c->name, "word") || !strcmp(c->name, "addr") || !strcmp(c->name, "bank")))
        return end_of_operand(e, o, c->name, out);
    if (l && (!strcmp(c->name, "extent") || !strcmp(c->name, "first")))
        return end_of_loop(e, l, *c->name == 'f', out);
    if ((!strcmp(c->name, "push") || !strcmp(c->name, "pop")) && e->x) {
        int s = machine_sync(e->m, spelled(c->arg[0], id, sizeof id));
        if (s < 0 || e->x->queue < 0) return false;
        uint64_t queues = c->name[1] == 'u' ? e->m->sync[s].from : e->m->sync[s].to;
        return *out = e->high && (queues >> e->x->queue & 1), true;
    }
    if (!strcmp(c->name, "slot"))
        for (int i = 0; i < e->m->nstates; i++)
            if (!strcmp(e->m->state[i].id, spelled(c->arg[0], id, sizeof id)) &&
                e->m->state[i].count > 0)
                return *out = e->high ? (double)(e->m->state[i].count - 1) : 0, true;
    return false;
}

/* ---- fields ---- */

struct word_check {
    const struct machine *m;
    const struct scope *scope;
    struct end end[2];
    struct diags *d;
    const char *owner; /* for messages */
    int64_t bits;
    const struct field *taken[MAX_WORD_BITS];
};

static bool plain_integer(struct word_check *w, const struct mexpr *e, const char *what,
                          struct place_in_file at, int64_t lo, int64_t hi, int64_t *out) {
    struct mexpr_env env = {end_name, end_call, &w->end[0]};
    const struct mexpr *missing;
    if (!scope_check(w->scope, e, at.file, at.line, what, w->d)) return false;
    if (mexpr_integer(e, &env, out, &missing) && *out >= lo && *out <= hi) return true;
    check_error(w->d, at, "%s '%s' in '%s', expected a whole number from %lld to %lld", what,
                e->text, w->owner, (long long)lo, (long long)hi);
    return false;
}

static void check_value_at(struct word_check *w, const struct field *f, int64_t bits,
                           const struct end *e) {
    struct mexpr_env env = {end_name, end_call, (void *)e};
    double v, low = f->is_signed ? -ldexp(1, (int)bits - 1) : 0,
              high = ldexp(1, (int)bits - f->is_signed) - 1;
    if (bits == 64) high = ldexp(1, 64);
    if (!mexpr_eval(f->value, &env, &v, NULL)) return;
    if (v < low || v > high)
        check_error(w->d, f->place,
                    "field '%s' of '%s' reaches %.17g, which %lld %sbits cannot hold, expected "
                    "%.17g to %.17g",
                    f->value->text, w->owner, v, (long long)bits, f->is_signed ? "signed " : "",
                    low, high);
}

/* a fraction at both ends cannot be meant */
static void check_fraction(struct word_check *w, const struct field *f) {
    double a, b;
    struct mexpr_env low = {end_name, end_call, &w->end[0]},
                     high = {end_name, end_call, &w->end[1]};
    if (!mexpr_eval(f->value, &low, &a, NULL) || !mexpr_eval(f->value, &high, &b, NULL)) return;
    if (a != floor(a) && b != floor(b))
        check_error(w->d, f->place, "field '%s' of '%s' is %.17g, expected a whole number",
                    f->value->text, w->owner, a);
}

static void check_field(struct word_check *w, const struct field *f) {
    int64_t at, bits;
    int before = w->d->errors;
    if (!plain_integer(w, f->at, "field at", f->place, 0, MAX_WORD_BITS, &at)) return;
    if (!plain_integer(w, f->bits, "field bits", f->place, 1, 64, &bits)) return;
    if (at + bits > w->bits) {
        check_error(
            w->d, f->place,
            "field '%s' of '%s' takes bits %lld to %lld, expected it inside the word of %lld",
            f->value->text, w->owner, (long long)at, (long long)(at + bits - 1),
            (long long)w->bits);
        return;
    }
    for (int64_t i = at; i < at + bits; i++) {
        const struct field *o = w->taken[i];
        if (o) {
            check_error(
                w->d, f->place,
                "fields '%s' and '%s' of '%s' overlap at bit %lld, expected one field for each bit",
                o->value->text, f->value->text, w->owner, (long long)i);
            break;
        }
        w->taken[i] = f;
    }
    if (!scope_check(w->scope, f->value, f->place.file, f->place.line, "field value", w->d)) return;
    for (int k = 0; k < 2 && w->d->errors == before; k++) check_value_at(w, f, bits, &w->end[k]);
    if (w->d->errors == before) check_fraction(w, f);
}

static void check_format_fields(struct word_check *w, int format) {
    if (format < 0) return;
    check_format_fields(w, w->m->format[format].base);
    for (int i = 0; i < w->m->format[format].nfields; i++)
        check_field(w, &w->m->format[format].field[i]);
}

static void start_word(struct word_check *w, const struct scope *s, const char *owner,
                       struct diags *d) {
    *w = (struct word_check){.m = s->machine, .scope = s, .d = d, .owner = owner};
    for (int k = 0; k < 2; k++) {
        w->end[k] = (struct end){.m = s->machine, .x = s->instr, .high = k};
        if (s->instr)
            w->end[k].sizes = check_sizes(s->machine, s->instr, k ? CORNER_HIGH : CORNER_LOW);
    }
}

static void check_word(const struct scope *s, const struct word *x, const char *owner,
                       struct diags *d) {
    struct word_check w;
    int64_t at;
    start_word(&w, s, owner, d);
    const struct mexpr *bits = x->bits          ? x->bits
                               : x->format >= 0 ? s->machine->format[x->format].bits
                                                : NULL;
    if (!bits || !plain_integer(&w, bits, "word bits", x->place, 1, MAX_WORD_BITS, &w.bits)) return;
    if (x->at) plain_integer(&w, x->at, "word at", x->place, 0, INT64_C(1) << 48, &at);
    check_format_fields(&w, x->format);
    for (int i = 0; i < x->nfields; i++) check_field(&w, &x->field[i]);
}

static void check_entry(const struct scope *s, const struct hwloop *l, const char *owner,
                        struct diags *d) {
    struct word_check w;
    if (!l->entry_bits) return;
    start_word(&w, s, owner, d);
    if (!plain_integer(&w, l->entry_bits, "entry bits", l->at, 1, MAX_WORD_BITS, &w.bits)) return;
    for (int i = 0; i < l->nentries; i++) check_field(&w, &l->entry[i]);
}

/* ---- texts ---- */

struct hole_check {
    const struct scope *scope;
    const struct emit *emit;
    struct diags *d;
    struct arena scratch;
};

static int line_in(const struct emit *e, size_t offset) {
    int line = e->at.line;
    for (size_t i = 0; i < offset; i++) line += e->text[i] == '\n';
    return line;
}

static bool check_hole(void *user, const char *text, size_t length, size_t offset) {
    struct hole_check *h = user;
    int line = line_in(h->emit, offset);
    const struct mexpr *e = mexpr_parse(&h->scratch, arena_strndup(&h->scratch, text, length),
                                        h->emit->at.file, line, h->d);
    if (e) scope_check(h->scope, e, h->emit->at.file, line, "${…}", h->d);
    return true;
}

static void check_emits(const struct scope *s, const struct emit *e, int n, const char *owner,
                        struct diags *d) {
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < e[i].nwords; k++) check_word(s, &e[i].word[k], owner, d);
        if (e[i].language == LANGUAGE_BITS) continue;
        struct hole_check h = {.scope = s, .emit = &e[i], .d = d};
        size_t bad;
        arena_init(&h.scratch);
        if (!emit_holes(e[i].text, check_hole, &h, &bad))
            diag_line(d, e[i].at.file, line_in(&e[i], bad), 0,
                      "'${' in the emit of '%s' is not closed, expected '}'", owner);
        arena_free(&h.scratch);
    }
}

void check_instr_bits(const struct machine *m, const struct instr *x, struct diags *d) {
    struct scope s = {.machine = m, .instr = x};
    for (int i = 0; i < x->nloops; i++) {
        for (int k = 0; k < i; k++)
            if (!strcmp(x->loop[i].id, x->loop[k].id))
                check_error(d, x->loop[i].at,
                            "loop '%s' of '%s' is defined twice, expected another id",
                            x->loop[i].id, x->id);
        check_entry(&s, &x->loop[i], x->id, d);
    }
    check_emits(&s, x->emit, x->nemits, x->id, d);
    check_emits(&s, x->ahead, x->naheads, x->id, d);
}

void check_other_bits(const struct machine *m, struct diags *d) {
    struct scope plain = {.machine = m};
    for (int i = 0; i < m->nformats; i++) {
        struct word_check w;
        start_word(&w, &plain, m->format[i].id, d);
        plain_integer(&w, m->format[i].bits, "format bits", m->format[i].at, 1, MAX_WORD_BITS,
                      &w.bits);
    }
    for (int i = 0; i < m->nconfigures; i++) {
        struct scope s = {.machine = m, .states = true};
        check_emits(&s, m->configure[i].emit, m->configure[i].nemits, m->configure[i].id, d);
    }
    for (int i = 0; i < m->nqueues; i++)
        check_emits(&plain, m->queue[i].begin, m->queue[i].nbegins, m->queue[i].id, d);
    for (int i = 0; i < m->nsyncs; i++) {
        struct scope s = {.machine = m, .sync = true};
        check_emits(&s, m->sync[i].push_emit, m->sync[i].npush_emits, m->sync[i].id, d);
        check_emits(&s, m->sync[i].pop_emit, m->sync[i].npop_emits, m->sync[i].id, d);
    }
    struct scope program = {.machine = m, .program = true};
    check_emits(&program, m->begin, m->nbegins, "begin", d);
    check_emits(&program, m->end, m->nends, "end", d);
}
