/* One issue with its expressions evaluated: sizes, rules, alignment, bounds. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

static bool site_name(void *user, const char *name, const char *field, double *out) {
    const struct site *s = user;
    const struct instr *in = &s->v->m->instr[s->n->instr];
    if (field) return false;
    for (int k = 0; k < instr_flag_count(in); k++) {
        if (strcmp(in->operand[instr_flag_operand(in, k)].accumulate, name) != 0) continue;
        *out = (double)s->flag[k];
        return true;
    }
    for (int o = 0; o < in->noperands; o++) {
        const struct operand_layout *l = &in->operand[o].layout[s->n->arg[o].layout];
        if (shape_name(s->v->m, in, l, s->size, s->stride, name, out)) return true;
    }
    return in->noperands == 0 && shape_name(s->v->m, in, NULL, s->size, s->stride, name, out);
}

static int site_operand(const struct site *s, const struct mexpr *x) {
    const struct instr *in = &s->v->m->instr[s->n->instr];
    if (x->kind != MEXPR_NAME) return -1;
    for (int o = 0; o < in->noperands; o++)
        if (strcmp(in->operand[o].buffer, x->name) == 0) return o;
    return -1;
}

static bool site_place(const struct site *s, const char *function, int o, double *out) {
    if (s->n->arg[o].place < 0) return false;
    const struct memory *m = &s->v->m->memory[s->at[o].memory];
    int64_t address = s->at[o].address, word = m->word > 0 ? m->word : 1;
    int64_t interleave = m->interleave > 0 ? m->interleave : m->banks > 0 ? m->size / m->banks : 0;
    if (strcmp(function, "addr") == 0)
        *out = (double)address;
    else if (strcmp(function, "word") == 0)
        *out = (double)address / (double)word;
    else if (strcmp(function, "bank") == 0 && interleave > 0 && m->banks > 0)
        *out = (double)(address / interleave % m->banks);
    else
        return false;
    return true;
}

static bool imm_bits(enum type type, union value x, double *out) {
    uint64_t bits = 0;
    type_store(type, &bits, x);
    *out = (double)bits;
    return type_size(type) <= 4;
}

static bool site_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                      double *out) {
    const struct site *s = user;
    int o = call->nargs > 0 ? site_operand(s, call->arg[0]) : -1;
    if (o < 0) return false;
    enum type type = s->v->m->instr[s->n->instr].operand[o].type;
    if (strcmp(call->name, "value") == 0 && s->n->arg[o].place < 0) {
        *out = type_is_float(type) ? s->n->arg[o].imm.f : (double)s->n->arg[o].imm.i;
        return true;
    }
    if (strcmp(call->name, "bits") == 0 && s->n->arg[o].place < 0)
        return imm_bits(type, s->n->arg[o].imm, out);
    if (strcmp(call->name, "bytes") == 0) {
        *out = (double)s->h->operand[o].buffer_bytes;
        return true;
    }
    if (strcmp(call->name, "dim") == 0 && call->nargs == 2) {
        int b = program_buffer(s->h->bound, s->v->m->instr[s->n->instr].operand[o].buffer);
        int64_t d;
        if (b < 0 || !mexpr_integer(call->arg[1], env, &d, NULL) || d < 0 ||
            d >= s->h->bound->buffer[b].ndims)
            return false;
        *out = (double)s->h->bound->buffer[b].extent[d];
        return true;
    }
    return site_place(s, call->name, o, out);
}

struct mexpr_env site_env(struct site *s) {
    return (struct mexpr_env){.name = site_name, .call = site_call, .user = s};
}

static bool in_other_memories(const struct site *s, const struct mexpr *rule) {
    const char *function;
    int a, b;
    return require_apart(&s->v->m->instr[s->n->instr], rule, &function, &a, &b) &&
           s->n->arg[a].place >= 0 && s->n->arg[b].place >= 0 && s->at[a].memory != s->at[b].memory;
}

bool site_check_rule(struct site *s, int k) {
    const struct instr *in = &s->v->m->instr[s->n->instr];
    struct mexpr_env env = site_env(s);
    const char *rule = in->require[k]->text;
    double x;
    if (in_other_memories(s, in->require[k])) return true;
    if (!mexpr_eval(in->require[k], &env, &x, NULL))
        return verify_error(s->v, "the rule '%s' of '%s' cannot be evaluated", rule, in->id);
    return x != 0 || verify_error(s->v, "the rule '%s' of '%s' is broken", rule, in->id);
}

bool site_check_requires(struct site *s) {
    for (int k = 0; k < s->v->m->instr[s->n->instr].nrequires; k++)
        if (!site_check_rule(s, k)) return false;
    return true;
}

/* The operand's memory as the instruction names it: a cache stands for what it caches. */
const struct memory *site_memory(const struct verify *v, const struct operand *o, int memory) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] == memory) return &v->m->memory[memory];
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] >= 0 && memory_is_home(v->m, o->memory[k]))
            return &v->m->memory[o->memory[k]];
    return &v->m->memory[memory];
}

bool site_check_alignment(struct site *s, int o) {
    struct verify *v = s->v;
    const struct operand *op = &v->m->instr[s->n->instr].operand[o];
    const struct memory *m = site_memory(v, op, s->at[o].memory);
    enum pass pass = op->has_pass ? op->pass : m->pass;
    struct mexpr_env env = site_env(s);
    int64_t align = m->align > 0 ? m->align : 1;
    if (op->align && !mexpr_integer(op->align, &env, &align, NULL))
        return verify_error(v, "the alignment of operand '%s' cannot be evaluated", op->buffer);
    bool words = pass != PASS_POINTER || m->word > (int64_t)type_size(op->type);
    if (align > 0 && s->at[o].address % align != 0)
        return verify_error(
            v, "operand '%s' is at byte %" PRId64 " of memory '%s', not a multiple of %" PRId64,
            op->buffer, s->at[o].address, m->id, align);
    if (!op->align && words && m->word > 0 && s->at[o].address % m->word != 0)
        return verify_error(
            v, "operand '%s' is at byte %" PRId64 " of memory '%s', inside a word of %" PRId64,
            op->buffer, s->at[o].address, m->id, m->word);
    if (s->at[o].address % v->granule[s->at[o].memory] != 0)
        return verify_error(v,
                            "operand '%s' is at byte %" PRId64 " of memory '%s', inside an element",
                            op->buffer, s->at[o].address, m->id);
    return true;
}

bool site_check_bounds(struct site *s, int o) {
    struct verify *v = s->v;
    const struct place *p = &v->s->place[s->n->arg[o].place];
    const struct shape_operand *h = &s->h->operand[o];
    int64_t start = p->address + verify_slot(v, s->n->arg[o].place) * p->bytes;
    if (h->nruns == 0) return true;
    int64_t low = s->at[o].address + h->low - start, high = s->at[o].address + h->high - start;
    if (h->swizzle.bits) { /* stays inside pieces of that size */
        int64_t piece = INT64_C(1) << (h->swizzle.base + h->swizzle.bits);
        low = (low + start) / piece * piece - start;
        high = (high + start + piece - 1) / piece * piece - start;
    }
    if (low >= 0 && high <= p->bytes) return true;
    return verify_error(
        v,
        "operand '%s' touches bytes %" PRId64 " to %" PRId64 " of place '%s', which has %" PRId64,
        v->m->instr[s->n->instr].operand[o].buffer, low, high - 1, p->name, p->bytes);
}

/* Of the sizes of one instruction, which are the same wherever it is issued. */
struct size_range {
    int64_t lo, hi, step;
    bool known;
};

static const struct size_range *size_ranges(struct verify *v, const struct instr *in) {
    const struct size_range **kept = &v->ranges[in - v->m->instr];
    if (*kept) return *kept;
    struct size_range *made = arena_array(&v->arena, (size_t)in->nranged + 1, sizeof *made);
    for (int k = 0; k < in->nranged; k++)
        made[k].known = instr_size_range(v->m, in, k, &made[k].lo, &made[k].hi, &made[k].step);
    return *kept = made;
}

bool site_check_sizes(struct verify *v, const struct instr *in, const int64_t *size) {
    const struct size_range *range = size_ranges(v, in);
    for (int k = 0; k < in->nranged; k++) {
        int64_t lo = range[k].lo, hi = range[k].hi, step = range[k].step;
        if (!range[k].known) continue;
        if (size[k] >= lo && (hi < 0 || size[k] <= hi) && (size[k] - lo) % step == 0) continue;
        const char *name = in->semantics->param[in->ranged[k]].name;
        if (hi < 0)
            return verify_error(v, "size %s is %" PRId64 ", expected %" PRId64 " or more", name,
                                size[k], lo);
        return verify_error(
            v, "size %s is %" PRId64 ", expected %" PRId64 " to %" PRId64 " in steps of %" PRId64,
            name, size[k], lo, hi, step);
    }
    return true;
}

bool site_check_flags(struct verify *v, const int64_t *flag, int n) {
    for (int k = 0; k < n; k++)
        if (flag[k] != 0 && flag[k] != 1)
            return verify_error(v, "an accumulate flag is %" PRId64 ", expected 0 or 1", flag[k]);
    return true;
}
