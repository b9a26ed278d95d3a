/* Tables: entries from which a hardware loop takes its instruction's addresses (docs/schedule.md).
 */
#include "scheduler/schedule/schedule_int.h"

#include <string.h>

struct entry_site {
    const struct machine *m;
    const struct issue_node *n;
    const struct instr *in;
    const int64_t *address, *flag;
    const int *memory;
};

static bool entry_name(void *user, const char *name, const char *field, double *out) {
    const struct entry_site *s = user;
    if (field) return false;
    for (int k = 0; k < instr_flag_count(s->in); k++)
        if (!strcmp(s->in->operand[instr_flag_operand(s->in, k)].accumulate, name))
            return *out = (double)s->flag[k], true;
    for (int k = 0; k < s->m->nparams; k++)
        if (!strcmp(s->m->param[k].name, name)) return *out = (double)s->m->param[k].value, true;
    return false;
}

static bool entry_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                       double *out) {
    const struct entry_site *s = user;
    (void)env;
    if (call->field || call->nargs != 1 || call->arg[0]->kind != MEXPR_NAME) return false;
    for (int o = 0; o < s->in->noperands; o++) {
        if (strcmp(s->in->operand[o].buffer, call->arg[0]->name)) continue;
        const struct arg *a = &s->n->arg[o];
        if (!strcmp(call->name, "value") && a->place < 0)
            *out = type_is_float(s->in->operand[o].type) ? a->imm.f : (double)a->imm.i;
        else if (a->place >= 0 && !strcmp(call->name, "addr"))
            *out = (double)s->address[o];
        else if (a->place >= 0 && !strcmp(call->name, "word"))
            *out = (double)s->address[o] / (double)s->m->memory[s->memory[o]].word;
        else
            return false;
        return true;
    }
    return false;
}

int64_t table_entry_bytes(const struct machine *m, const struct hwloop *l) {
    struct entry_site s = {.m = m, .in = &(struct instr){0}};
    struct mexpr_env env = {entry_name, entry_call, &s};
    int64_t bits;
    if (!mexpr_integer(l->entry_bits, &env, &bits, NULL)) return 0;
    return bits > 0 && bits % 8 == 0 && bits <= 8 * MAX_ENTRY ? bits / 8 : 0;
}

static bool put_bits(uint8_t *out, int64_t size, int64_t at, int64_t bits, int64_t value,
                     bool is_signed) {
    int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0,
            high = is_signed    ? -low - 1
                   : bits == 64 ? INT64_MAX
                                : (INT64_C(1) << bits) - 1;
    if (at < 0 || at + bits > size * 8 || value < low || value > high) return false;
    for (int64_t b = 0; b < bits; b++)
        if ((uint64_t)value >> b & 1) out[(at + b) / 8] |= (uint8_t)(1 << (at + b) % 8);
    return true;
}

const struct field *table_entry(const struct machine *m, const struct issue_node *n,
                                const struct hwloop *l, const int64_t *address, const int *memory,
                                const int64_t *flag, uint8_t *out) {
    struct entry_site s = {m, n, &m->instr[n->instr], address, flag, memory};
    struct mexpr_env env = {entry_name, entry_call, &s};
    int64_t size = table_entry_bytes(m, l), at, bits, value;
    memset(out, 0, (size_t)size);
    for (int k = 0; k < l->nentries; k++) {
        const struct field *f = &l->entry[k];
        if (!mexpr_integer(f->at, &env, &at, NULL) || !mexpr_integer(f->bits, &env, &bits, NULL) ||
            bits < 1 || bits > 64 || !mexpr_integer(f->value, &env, &value, NULL) ||
            !put_bits(out, size, at, bits, value, f->is_signed))
            return f;
    }
    return NULL;
}

int64_t table_find(const struct place *home, const uint8_t *entries, int64_t n, int64_t size) {
    if (!home->table || size < 1) return -1;
    for (int64_t at = 0; at + n <= home->bytes / size; at++)
        if (!memcmp(home->table + at * size, entries, (size_t)(n * size))) return at;
    return -1;
}

const struct place *table_home(const struct schedule *s, int place) {
    if (s->place[place].keep != KEEP_LOCAL) return NULL;
    int home = schedule_home(s, s->place[place].buffer);
    return home >= 0 && s->place[home].table ? &s->place[home] : NULL;
}
