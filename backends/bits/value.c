/* What a field is worth for one issued instruction, and its place in a word. */
#include "backends/bits/bits_int.h"

#include <math.h>
#include <string.h>

/* ---- names and functions ---- */

/* The state field that the instruction needs: what it will find. */
static bool needed(const struct issued *x, const char *state, const char *field, double *out) {
    const struct instr *in = x->site ? x->site->instr : NULL;
    for (int k = 0; in && k < in->nneeds; k++) {
        const struct need *n = &in->need[k];
        const struct state *s = &x->machine->state[n->state];
        for (int f = 0; f < s->nfields && f < n->nvalues && !strcmp(s->id, state); f++)
            if (!strcmp(s->field[f], field)) return site_eval(x->site, n->value[f], out, NULL);
    }
    return false;
}

static bool issued_name(void *user, const char *name, const char *field, double *out) {
    const struct issued *x = user;
    struct {
        const char *name;
        int64_t value;
    } own[] = {{"channel", x->channel},
               {"phase", x->phase},
               {"pending", x->pending},
               {"bytes", x->bytes},
               {"instructions", x->instructions}};
    if (x->settings) {
        struct mexpr_env env = settings_env(x->settings);
        return env.name(env.user, name, field, out);
    }
    if (field) return needed(x, name, field, out);
    if (x->site) {
        struct mexpr_env env = site_names(x->site);
        if (env.name(env.user, name, field, out)) return true;
    }
    for (size_t i = 0; !x->site && i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i].name, name)) return *out = (double)own[i].value, !x->is_read;
    return machine_param((void *)x->machine, name, NULL, out);
}

/* An argument as it is written: `l2c`, and `bell.load`, which reads as a field. */
static const char *argument(const struct mexpr *call, int i, char *room, size_t n) {
    const struct mexpr *a = i < call->nargs ? call->arg[i] : NULL;
    if (!a || (a->kind != MEXPR_NAME && a->kind != MEXPR_FIELD)) return "";
    snprintf(room, n, "%s%s%s", a->name, a->kind == MEXPR_FIELD ? "." : "",
             a->kind == MEXPR_FIELD ? a->field : "");
    return room;
}

static int loop_index(const struct instr *in, const char *id) {
    for (int l = 0; l < in->nloops; l++)
        if (!strcmp(in->loop[l].id, id)) return l;
    return -1;
}

static int operand_index(const struct instr *in, const char *buffer) {
    for (int o = 0; o < in->noperands; o++)
        if (!strcmp(in->operand[o].buffer, buffer)) return o;
    return -1;
}

static bool loop_call(const struct issued *x, const struct mexpr *call, const char *a,
                      const char *b, double *out) {
    const struct instr *in = x->site->instr;
    bool step = !strcmp(call->name, "step");
    int l = loop_index(in, step ? b : a), o = step ? operand_index(in, a) : -1;
    if (l < 0 || !x->extent) return false;
    if (!strcmp(call->name, "extent")) return *out = (double)x->extent[l], true;
    if (!strcmp(call->name, "first")) return *out = (double)x->first[l], true;
    if (!step || o < 0) return false;
    return *out = (double)x->step[l * in->noperands + o], true;
}

static bool issued_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                        double *out) {
    const struct issued *x = user;
    char room[2][256];
    const char *a = argument(call, 0, room[0], sizeof room[0]),
               *b = argument(call, 1, room[1], sizeof room[1]);
    int s = machine_sync(x->machine, a), m = machine_memory(x->machine, a);
    if (x->settings) {
        struct mexpr_env own = settings_env(x->settings);
        return own.call(own.user, call, env, out);
    }
    if (!strcmp(call->name, "push") && s >= 0) return *out = x->push ? x->push[s] : 0, true;
    if (!strcmp(call->name, "pop") && s >= 0) return *out = x->pop ? x->pop[s] : 0, true;
    if (!strcmp(call->name, "base") && !strcmp(a, "program"))
        return *out = (double)x->base[1], true;
    if (!strcmp(call->name, "base"))
        return *out = (double)x->base[0], m >= 0 && memory_is_home(x->machine, m);
    if (!strcmp(call->name, "slot"))
        for (int k = 0; k < x->machine->nstates; k++)
            if (!strcmp(x->machine->state[k].id, a) && x->slot && x->slot[k] >= 0)
                return *out = x->slot[k], true;
    if (!x->site) return false;
    if (loop_call(x, call, a, b, out)) return true;
    struct mexpr_env site = site_names(x->site);
    return site.call(site.user, call, env, out);
}

struct mexpr_env issued_env(const struct issued *x) {
    return (struct mexpr_env){issued_name, issued_call, (void *)x};
}

/* ---- words ---- */

int64_t word_bytes(const struct bit_word *w) {
    return (w->bits + 7) / 8;
}

static void put_bits(uint8_t *word, int64_t at, int bits, uint64_t value) {
    for (int k = 0; k < bits; k++)
        if (value >> k & 1) word[(at + k) / 8] |= (uint8_t)(1u << (at + k) % 8);
}

uint64_t field_unpack(const struct bit_field *f, const uint8_t *word) {
    uint64_t value = 0;
    for (int k = 0; k < f->bits; k++)
        value |= (uint64_t)(word[(f->at + k) / 8] >> (f->at + k) % 8 & 1) << k;
    if (f->field->is_signed && f->bits < 64 && value >> (f->bits - 1) & 1)
        value |= ~(uint64_t)0 << f->bits;
    return value;
}

/* The operand whose address the expression is about; -1: none. */
static int addressed(const struct issued *x, const struct mexpr *e) {
    if (e->kind == MEXPR_CALL && (!strcmp(e->name, "addr") || !strcmp(e->name, "word")) && x->site)
        return e->nargs == 1 && e->arg[0]->kind == MEXPR_NAME
                   ? operand_index(x->site->instr, e->arg[0]->name)
                   : -1;
    for (int i = 0; i < e->nargs; i++) {
        int o = addressed(x, e->arg[i]);
        if (o >= 0) return o;
    }
    return -1;
}

static bool fraction(const struct field *f, const struct issued *x, const char *owner, double v,
                     struct diags *d) {
    int o = addressed(x, f->value);
    if (o >= 0 && x->site->memory[o] >= 0)
        diag_line(d, f->place.file, f->place.line, 0,
                  "operand '%s' of '%s' lies at byte %lld of '%s', which is not aligned for field "
                  "'%s', expected a whole number, not %.17g",
                  x->site->instr->operand[o].buffer, owner, (long long)x->site->address[o].value,
                  x->machine->memory[x->site->memory[o]].id, f->value->text, v);
    else
        diag_line(d, f->place.file, f->place.line, 0,
                  "field '%s' of '%s' is %.17g, expected a whole number", f->value->text, owner, v);
    return false;
}

bool field_pack(const struct bit_field *b, const struct issued *x, const char *owner, uint8_t *word,
                struct diags *d) {
    const struct field *f = b->field;
    const struct mexpr *missing = NULL;
    struct mexpr_env env = issued_env(x);
    double v, low = f->is_signed ? -ldexp(1, b->bits - 1) : 0,
              high = ldexp(1, b->bits - f->is_signed) - 1;
    if (!mexpr_eval(f->value, &env, &v, &missing) || !isfinite(v)) {
        diag_line(d, f->place.file, f->place.line, 0,
                  "field '%s' of '%s' has no value, '%s' is not known when words are made",
                  f->value->text, owner, missing && missing->name ? missing->name : f->value->text);
        return false;
    }
    if (v != floor(v)) return fraction(f, x, owner, v, d);
    if (v < low || v > high || fabs(v) > 0x1p63) {
        diag_line(d, f->place.file, f->place.line, 0,
                  "field '%s' of '%s' is %.17g, which %d %sbits cannot hold, expected %.17g to "
                  "%.17g",
                  f->value->text, owner, v, b->bits, f->is_signed ? "signed " : "", low, high);
        return false;
    }
    put_bits(word, b->at, b->bits, v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v);
    return true;
}

static bool mentions(const struct mexpr *e, const char *function, const char *id) {
    char room[256];
    if (e->kind == MEXPR_CALL && !strcmp(e->name, function) &&
        !strcmp(argument(e, 0, room, sizeof room), id))
        return true;
    for (int i = 0; i < e->nargs; i++)
        if (mentions(e->arg[i], function, id)) return true;
    return false;
}

bool form_carries(const struct form *f, const char *function, const char *sync) {
    for (int w = 0; w < f->nwords; w++)
        for (int i = 0; i < f->word[w].nfields; i++)
            if (mentions(f->word[w].field[i].field->value, function, sync)) return true;
    return false;
}
