/* Words become instructions again: each field is an equation, solved where one thing in it is not
 * known. */
#include "backends/bits/bits_int.h"

#include <math.h>
#include <string.h>

/* ---- what is known so far ---- */

struct solving {
    const struct machine *machine;
    const struct instr *instr; /* NULL: not an instruction */
    struct decoded *d;
    int *pop_known, *push_known; /* [nsyncs] */
    bool contradiction;          /* a field asks for a fraction of something whole */
};

static bool take(const struct known *k, double *out) {
    *out = (double)k->value;
    return k->is;
}

static int sync_named(const struct solving *s, const struct mexpr *call) {
    char id[256];
    const struct mexpr *a = call->nargs ? call->arg[0] : NULL;
    if (!a || (a->kind != MEXPR_NAME && a->kind != MEXPR_FIELD)) return -1;
    snprintf(id, sizeof id, "%s%s%s", a->name, a->kind == MEXPR_FIELD ? "." : "",
             a->kind == MEXPR_FIELD ? a->field : "");
    return machine_sync(s->machine, id);
}

static const char *plain(const struct mexpr *call, int i) {
    return i < call->nargs && call->arg[i]->kind == MEXPR_NAME ? call->arg[i]->name : "";
}

static int operand_named(const struct solving *s, const char *name) {
    for (int o = 0; s->instr && o < s->instr->noperands; o++)
        if (!strcmp(s->instr->operand[o].buffer, name)) return o;
    return -1;
}

static int loop_named(const struct solving *s, const char *name) {
    for (int l = 0; s->instr && l < s->instr->nloops; l++)
        if (!strcmp(s->instr->loop[l].id, name)) return l;
    return -1;
}

static int state_named(const struct solving *s, const char *name) {
    for (int k = 0; k < s->machine->nstates; k++)
        if (!strcmp(s->machine->state[k].id, name)) return k;
    return -1;
}

/* Where a leaf's value is kept, and what it is there: leaf × scale. NULL: not kept. */
static struct known *kept(const struct solving *s, const struct mexpr *e, double *scale) {
    struct site *site = s->d->site;
    *scale = 1;
    if (!site || e->field) return NULL;
    if (e->kind == MEXPR_NAME) {
        for (int i = 0, flag = 0; i < s->instr->noperands; i++)
            if (s->instr->operand[i].accumulate &&
                !strcmp(s->instr->operand[i].accumulate, e->name))
                return &site->flag[flag];
            else
                flag += s->instr->operand[i].accumulate != NULL;
        for (int i = 0; i < s->instr->nranged; i++)
            if (!strcmp(s->instr->semantics->param[s->instr->ranged[i]].name, e->name))
                return &site->size[i];
        if (kernel_param_index(s->instr->semantics, e->name) >= 0) return NULL;
        for (int i = 0; i < s->instr->nstride_names; i++)
            if (!strcmp(s->instr->stride_name[i], e->name)) return &site->stride[i];
        return NULL;
    }
    if (e->kind != MEXPR_CALL) return NULL;
    int o = operand_named(s, plain(e, 0)), l = loop_named(s, plain(e, 0)),
        k = loop_named(s, plain(e, 1));
    if (o >= 0 && site->memory[o] >= 0 && !strcmp(e->name, "addr")) return &site->address[o];
    if (o >= 0 && site->memory[o] >= 0 && !strcmp(e->name, "word"))
        return *scale = (double)s->machine->memory[site->memory[o]].word, &site->address[o];
    if (l >= 0 && !strcmp(e->name, "extent")) return &s->d->extent[l];
    if (l >= 0 && !strcmp(e->name, "first")) return &s->d->first[l];
    if (o >= 0 && k >= 0 && !strcmp(e->name, "step"))
        return &s->d->step[k * s->instr->noperands + o];
    return NULL;
}

/* A signal of another queue's is never carried. */
static bool signal_value(const struct solving *s, const struct mexpr *e, bool push, double *out) {
    int n = sync_named(s, e), q = s->instr ? s->instr->queue : -1;
    if (n < 0) return false;
    const struct sync *y = &s->machine->sync[n];
    if (q >= 0 && !((push ? y->from : y->to) >> q & 1)) return *out = 0, true;
    *out = push ? s->d->push[n] : s->d->pop[n];
    return push ? s->push_known[n] : s->pop_known[n];
}

static bool solved_name(void *user, const char *name, const char *field, double *out) {
    const struct solving *s = user;
    const struct mexpr leaf = {.kind = MEXPR_NAME, .name = name};
    double scale;
    if (field) return false;
    const struct known *k = kept(s, &leaf, &scale);
    if (k) return take(k, out);
    struct issued x = {.machine = s->machine, .site = s->d->site, .is_read = true};
    struct mexpr_env env = issued_env(&x);
    return env.name(env.user, name, NULL, out);
}

static bool solved_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                        double *out) {
    const struct solving *s = user;
    double scale;
    (void)env;
    const struct known *k = kept(s, call, &scale);
    if (k) return take(k, out) ? (*out /= scale, true) : false;
    if (!strcmp(call->name, "push") || !strcmp(call->name, "pop"))
        return signal_value(s, call, call->name[1] == 'u', out);
    int state = state_named(s, plain(call, 0)), o = operand_named(s, plain(call, 0));
    if (!strcmp(call->name, "slot") && state >= 0)
        return *out = s->d->slot[state], s->d->slot[state] >= 0;
    if (!strcmp(call->name, "base")) return *out = 0, true;
    if (o >= 0 && s->d->site->memory[o] < 0 && s->d->site->address[o].is) { /* an immediate */
        struct issued x = {.machine = s->machine, .site = s->d->site};
        struct mexpr_env own = issued_env(&x);
        return own.call(own.user, call, &own, out);
    }
    return false;
}

static struct mexpr_env solving_env(const struct solving *s) {
    return (struct mexpr_env){solved_name, solved_call, (void *)s};
}

/* ---- solving one field ---- */

/* A product with 0 has a value whatever the other factor is. */
static bool value_of(const struct solving *s, const struct mexpr *e, double *out) {
    struct mexpr_env env = solving_env(s);
    double a, b;
    if (mexpr_eval(e, &env, out, NULL)) return true;
    if (e->kind != MEXPR_OP || e->nargs != 2) return false;
    bool left = value_of(s, e->arg[0], &a), right = value_of(s, e->arg[1], &b);
    if (!strcmp(e->op, "*") && ((left && a == 0) || (right && b == 0))) return *out = 0, true;
    if (!left || !right || (*e->op != '+' && *e->op != '-') || e->op[1]) return false;
    return *out = *e->op == '+' ? a + b : a - b, true;
}

static bool whole(double v, int64_t *out) {
    if (v != floor(v) || fabs(v) > 0x1p53) return false;
    *out = (int64_t)v;
    return true;
}

static bool set_immediate(struct solving *s, int o, bool bits, double v) {
    enum type t = s->instr->operand[o].type;
    struct site *site = s->d->site;
    if (bits) {
        uint64_t raw = (uint64_t)v;
        unsigned char byte[8];
        for (int k = 0; k < 8; k++) byte[k] = (unsigned char)(raw >> 8 * k);
        site->imm[o] = type_load(t, byte);
    } else if (type_is_float(t)) {
        site->imm[o].f = v;
    } else if (!whole(v, &site->imm[o].i)) {
        return false;
    }
    return site->address[o].is = true; /* of an immediate: that it is known */
}

static bool set_leaf(struct solving *s, const struct mexpr *e, double v) {
    double scale;
    int64_t n;
    struct known *k = kept(s, e, &scale);
    if (k) {
        if (!whole(v * scale, &n)) {
            s->contradiction = true;
            return false;
        }
        *k = (struct known){true, n};
        return true;
    }
    if (e->kind != MEXPR_CALL || e->field) return false;
    bool push = !strcmp(e->name, "push");
    int sync = sync_named(s, e), o = operand_named(s, plain(e, 0)),
        state = state_named(s, plain(e, 0));
    if ((push || !strcmp(e->name, "pop")) && sync >= 0 && v >= 0 && v <= 64 && whole(v, &n)) {
        *(push ? &s->d->push[sync] : &s->d->pop[sync]) = (int)n;
        *(push ? &s->push_known[sync] : &s->pop_known[sync]) = true;
        return true;
    }
    if (!strcmp(e->name, "slot") && state >= 0 && v >= 0 && whole(v, &n) && n < INT32_MAX)
        return s->d->slot[state] = (int)n, true;
    bool bits = !strcmp(e->name, "bits");
    if (o >= 0 && s->d->site->memory[o] < 0 && (bits || !strcmp(e->name, "value")))
        return set_immediate(s, o, bits, v);
    return false;
}

static bool solve(struct solving *s, const struct mexpr *e, double v);

static bool solve_op(struct solving *s, const struct mexpr *e, double v) {
    double c;
    if (e->nargs == 1)
        return !strcmp(e->op, "-")   ? solve(s, e->arg[0], -v)
               : !strcmp(e->op, "+") ? solve(s, e->arg[0], v)
               : !strcmp(e->op, "!") ? solve(s, e->arg[0], v == 0)
                                     : false;
    if (e->nargs != 2 || strlen(e->op) != 1) return false;
    bool left = value_of(s, e->arg[1], &c); /* the unknown is on the left */
    if (!left && !value_of(s, e->arg[0], &c)) return false;
    const struct mexpr *x = e->arg[left ? 0 : 1];
    switch (*e->op) {
    case '+':
        return solve(s, x, v - c);
    case '-':
        return solve(s, x, left ? v + c : c - v);
    case '*':
        return c != 0 && solve(s, x, v / c);
    case '/':
        return left ? solve(s, x, v * c) : v != 0 && solve(s, x, c / v);
    }
    return false;
}

/* Makes e worth v by the one thing in it that is not known. False: there is not one, or no way. */
static bool solve(struct solving *s, const struct mexpr *e, double v) {
    if (e->kind == MEXPR_OP) return solve_op(s, e, v);
    if (e->kind == MEXPR_CALL && !e->field && !strcmp(e->name, "log2") && e->nargs == 1)
        return fabs(v) < 1000 && solve(s, e->arg[0], exp2(v));
    if (e->kind == MEXPR_CALL && !e->field && !strcmp(e->name, "pick"))
        for (int i = 1; i < e->nargs; i++) {
            double c;
            if (value_of(s, e->arg[i], &c) && c == v) return solve(s, e->arg[0], i - 1);
        }
    return set_leaf(s, e, v);
}

/* False: the word cannot be this instruction. */
static bool solve_word(struct solving *s, const struct bit_word *w, const uint8_t *word) {
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < w->nfields; i++) {
            const struct bit_field *f = &w->field[i];
            uint64_t raw = field_unpack(f, word);
            double v = f->field->is_signed ? (double)(int64_t)raw : (double)raw, now;
            if (value_of(s, f->field->value, &now)) {
                if (now != v) return false;
                continue;
            }
            solve(s, f->field->value, v);
        }
    return !s->contradiction;
}

/* ---- finding the instruction ---- */

/* Bits in which the word must be as the form says; -1: it is not. */
static int64_t matching_bits(const struct bit_word *w, const uint8_t *word) {
    int64_t n = w->bits;
    uint8_t taken[BITS_WORD / 8] = {0};
    for (int i = 0; i < w->nfields; i++) {
        const struct bit_field *f = &w->field[i];
        uint64_t mask = f->bits < 64 ? ((uint64_t)1 << f->bits) - 1 : ~(uint64_t)0;
        if (f->constant && (field_unpack(f, word) & mask) != f->value) return -1;
        if (!f->constant) n -= f->bits;
        for (int k = 0; k < f->bits; k++)
            taken[(f->at + k) / 8] |= (uint8_t)(1u << (f->at + k) % 8);
    }
    for (int64_t k = 0; k < 8 * word_bytes(w); k++)
        if (!(taken[k / 8] >> k % 8 & 1) && (word[k / 8] >> k % 8 & 1)) return -1;
    return n;
}

static int64_t form_matches(const struct form *f, const uint8_t *word, int64_t left) {
    int64_t all = 0;
    if (f->kind != FORM_INSTR && f->kind != FORM_CONFIGURE && f->kind != FORM_END &&
        f->kind != FORM_PUSH && f->kind != FORM_POP)
        return -1;
    for (int k = 0; k < f->nwords; k++) {
        int64_t bytes = word_bytes(&f->word[k]), n;
        if (f->word[k].address >= 0 || bytes > left) return -1;
        n = matching_bits(&f->word[k], word);
        if (n < 0) return -1;
        all += n;
        word += bytes;
        left -= bytes;
    }
    return all;
}

static void start(struct arena *a, const struct machine *m, const struct form *f, struct solving *s,
                  struct decoded *d) {
    const struct instr *in =
        f->kind == FORM_INSTR || f->kind == FORM_ENTRY ? &m->instr[f->index] : NULL;
    int loops = in ? in->nloops : 0, operands = in ? in->noperands : 0;
    *d = (struct decoded){.form = f};
    *s = (struct solving){.machine = m, .instr = in, .d = d};
    d->pop = arena_array(a, (size_t)m->nsyncs + 1, sizeof *d->pop);
    d->push = arena_array(a, (size_t)m->nsyncs + 1, sizeof *d->push);
    d->slot = arena_array(a, (size_t)m->nstates + 1, sizeof *d->slot);
    for (int k = 0; k < m->nstates; k++) d->slot[k] = -1;
    s->pop_known = arena_array(a, (size_t)m->nsyncs + 1, sizeof *s->pop_known);
    s->push_known = arena_array(a, (size_t)m->nsyncs + 1, sizeof *s->push_known);
    d->extent = arena_array(a, (size_t)loops + 1, sizeof *d->extent);
    d->first = arena_array(a, (size_t)loops + 1, sizeof *d->first);
    d->step = arena_array(a, (size_t)(loops * operands) + 1, sizeof *d->step);
    if (in) d->site = site_new(a, m, in);
}

/* `flag`: what is known of the flags, or NULL. */
static bool try_form(struct arena *a, const struct machine *m, const struct form *f,
                     const uint8_t *word, const struct known *flag, struct decoded *d) {
    struct solving s;
    start(a, m, f, &s, d);
    if (flag) memcpy(d->site->flag, flag, (size_t)d->site->instr->noperands * sizeof *flag);
    d->word = word;
    for (int round = 0; round < 2; round++) {
        const uint8_t *at = word;
        for (int k = 0; k < f->nwords; k++) {
            if (!solve_word(&s, &f->word[k], at)) return false;
            at += word_bytes(&f->word[k]);
        }
        d->bytes = at - word;
    }
    return true;
}

static bool size_legal(const struct machine *m, const struct instr *in, int i, int64_t size) {
    int64_t lo, hi, step;
    if (!instr_size_range(m, in, i, &lo, &hi, &step)) return size >= 0;
    return size >= lo && (hi < 0 || size <= hi) && (size - lo) % step == 0;
}

/* Sizes that have become known are in their ranges, addresses in their memories. */
static bool legal(const struct machine *m, const struct decoded *d) {
    for (int i = 0; d->site && i < d->site->instr->nranged; i++)
        if (d->site->size[i].is && !size_legal(m, d->site->instr, i, d->site->size[i].value))
            return false;
    for (int o = 0; d->site && o < d->site->instr->noperands; o++) {
        int memory = d->site->memory[o];
        if (memory < 0 || !d->site->address[o].is) continue;
        if (d->site->address[o].value < 0 ||
            (m->memory[memory].size >= 0 && d->site->address[o].value >= m->memory[memory].size))
            return false;
    }
    return true;
}

/* Flags that share a field with an address: the value with which the address lies in its memory. */
static bool try_flags(struct arena *a, const struct machine *m, const struct form *f,
                      const uint8_t *word, struct decoded *d) {
    if (!try_form(a, m, f, word, NULL, d)) return false;
    for (int o = 0, flag = 0; d->site && o < d->site->instr->noperands; o++) {
        if (!d->site->instr->operand[o].accumulate) continue;
        for (int v = 0; v < 2 && !d->site->flag[flag].is; v++) {
            struct decoded guess;
            struct known *set = arena_array(a, (size_t)d->site->instr->noperands, sizeof *set);
            memcpy(set, d->site->flag, (size_t)d->site->instr->noperands * sizeof *set);
            set[flag] = (struct known){true, v};
            if (try_form(a, m, f, word, set, &guess) && legal(m, &guess)) *d = guess;
        }
        flag++;
    }
    return legal(m, d);
}

bool decode_one(struct arena *a, const struct machine *m, const struct forms *all,
                const uint8_t *word, int64_t left, struct decoded *out) {
    int64_t best = -1;
    for (int i = 0; i < all->n; i++) {
        struct decoded d;
        int64_t n = form_matches(&all->at[i], word, left);
        if (n <= best || !try_flags(a, m, &all->at[i], word, &d)) continue;
        best = n;
        *out = d;
    }
    return best >= 0;
}

bool decode_entry(struct arena *a, const struct machine *m, const struct forms *all, int instr,
                  const uint8_t *entry, struct site *site) {
    for (int i = 0; i < all->n; i++) {
        const struct form *f = &all->at[i];
        struct decoded d;
        if (f->kind != FORM_ENTRY || f->index != instr) continue;
        if (matching_bits(&f->word[0], entry) < 0 || !try_form(a, m, f, entry, NULL, &d))
            return false;
        for (int o = 0; o < m->instr[instr].noperands; o++)
            if (d.site->address[o].is && d.site->memory[o] >= 0)
                site->address[o] = d.site->address[o];
        return true;
    }
    return false;
}

/* ---- as text ---- */

static void item(struct text *t, bool *any, const char *name, const struct known *k) {
    text_printf(t, "%s%s = ", *any ? ", " : "", name);
    if (k->is)
        text_printf(t, "%lld", (long long)k->value);
    else
        text_printf(t, "?");
    *any = true;
}

static void operand_text(const struct machine *m, const struct decoded *d, int o, bool *any,
                         struct text *t) {
    const struct site *s = d->site;
    const struct operand *op = &s->instr->operand[o];
    if (s->memory[o] >= 0 && !s->address[o].is) return;
    text_printf(t, "%s%s = ", *any ? ", " : "", op->buffer);
    *any = true;
    if (s->memory[o] < 0 && !s->address[o].is)
        text_printf(t, "?");
    else if (s->memory[o] < 0 && type_is_float(op->type))
        text_printf(t, "%.17g", s->imm[o].f);
    else if (s->memory[o] < 0)
        text_printf(t, "%lld", (long long)s->imm[o].i);
    else
        text_printf(t, "%s + %lld", m->memory[s->memory[o]].id, (long long)s->address[o].value);
}

static void loops_text(const struct decoded *d, struct text *t) {
    const struct instr *in = d->site->instr;
    for (int l = 0; l < in->nloops; l++) {
        bool any = false;
        if (!d->extent[l].is) continue;
        text_printf(t, " %s %lld", in->loop[l].id, (long long)d->extent[l].value);
        if (d->first[l].is) text_printf(t, " from %lld", (long long)d->first[l].value);
        for (int o = 0; o < in->noperands; o++) {
            const struct known *k = &d->step[l * in->noperands + o];
            if (!k->is || !k->value) continue;
            text_printf(t, "%s%s %+lld", any ? ", " : " (", in->operand[o].buffer,
                        (long long)k->value);
            any = true;
        }
        if (any) text_printf(t, ")");
    }
}

static void plain_fields(const struct decoded *d, struct text *t) {
    const uint8_t *at = d->word;
    bool any = false;
    for (int k = 0; k < d->form->nwords; k++) {
        const struct bit_word *w = &d->form->word[k];
        for (int i = 0; i < w->nfields; i++) {
            if (w->field[i].constant) continue;
            uint64_t raw = field_unpack(&w->field[i], at);
            if (w->field[i].field->is_signed)
                text_printf(t, "%s%s = %lld", any ? ", " : "(", w->field[i].field->value->text,
                            (long long)raw);
            else
                text_printf(t, "%s%s = %llu", any ? ", " : "(", w->field[i].field->value->text,
                            (unsigned long long)raw);
            any = true;
        }
        at += word_bytes(w);
    }
    if (any) text_printf(t, ")");
}

void decoded_text(const struct machine *m, const struct decoded *d, struct text *t) {
    bool any = false;
    text_printf(t, "%s", d->form->id);
    if (!d->site) {
        plain_fields(d, t);
        return;
    }
    const struct instr *in = d->site->instr;
    text_printf(t, "(");
    for (int i = 0; i < in->nranged; i++)
        item(t, &any, in->semantics->param[in->ranged[i]].name, &d->site->size[i]);
    for (int i = 0; i < in->nstride_names; i++)
        item(t, &any, in->stride_name[i], &d->site->stride[i]);
    for (int o = 0, flag = 0; o < in->noperands; o++)
        if (in->operand[o].accumulate)
            item(t, &any, in->operand[o].accumulate, &d->site->flag[flag++]);
    for (int o = 0; o < in->noperands; o++) operand_text(m, d, o, &any, t);
    text_printf(t, ")");
    loops_text(d, t);
    for (int s = 0; s < m->nsyncs; s++)
        for (int k = 0; k < d->pop[s]; k++) text_printf(t, " pop %s", m->sync[s].id);
    for (int s = 0; s < m->nsyncs; s++)
        for (int k = 0; k < d->push[s]; k++) text_printf(t, " push %s", m->sync[s].id);
}
