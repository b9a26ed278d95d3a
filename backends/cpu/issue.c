#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>

/* ---- words of registers ---- */
/* Of a word of these elements. */
static LLVMTypeRef word_type(struct function *f, int memory, enum type t) {
    int64_t lanes = f->cpu->machine->memory[memory].word / (int64_t)type_size(t);
    return LLVMVectorType(element_type(f->cpu, t), (unsigned)(lanes ? lanes : 1));
}

/* 16-bit floats are carried round loops as bits: where a processor has no arithmetic for them, LLVM
 * makes floats of such a value, by functions that are not there. */
LLVMTypeRef word_carried(struct function *f, int memory, enum type t) {
    return word_type(f, memory, t == TYPE_F16 || t == TYPE_BF16 ? TYPE_I16 : t);
}

static LLVMValueRef as_type(struct function *f, LLVMValueRef v, LLVMTypeRef type) {
    return LLVMTypeOf(v) == type ? v : LLVMBuildBitCast(f->builder, v, type, "");
}

LLVMValueRef word_read(struct function *f, int memory, int64_t w, LLVMTypeRef type) {
    LLVMValueRef v = f->word[memory][w];
    return v ? as_type(f, v, type) : LLVMGetPoison(type);
}

/* ---- issues ---- */
struct actuals {
    LLVMValueRef *arg;
    int n;
};

static struct known known_value(struct lv v) {
    struct known k = {false, 0};
    k.is = lv_constant(v, &k.value);
    return k;
}

static void site_fill(struct function *f, struct site *s, const struct issue_node *n) {
    const struct instr *instr = s->instr;
    int flags = 0;
    for (int i = 0; i < instr->nranged; i++) s->size[i] = known_value(lv_sx(f, n->size[i]));
    for (int i = 0; i < instr->nstride_names; i++)
        s->stride[i] = known_value(lv_sx(f, n->stride[i]));
    for (int o = 0; o < instr->noperands; o++) {
        const struct arg *a = &n->arg[o];
        s->layout[o] = a->layout;
        s->imm[o] = a->imm;
        if (instr->operand[o].accumulate) {
            s->flag[flags] = known_value(lv_sx(f, n->flag[flags]));
            flags++;
        }
        if (a->place < 0) {
            s->memory[o] = MEMORY_IMM;
            continue;
        }
        const struct place *p = &f->cpu->schedule->place[a->place];
        s->memory[o] = p->memory;
        struct lv slot = lv_op(f, SX_MUL, f->slot[a->place], lv_const(f, p->bytes));
        s->address[o] = known_value(lv_op(f, SX_ADD, slot, lv_sx(f, a->offset)));
        s->address[o].value += p->address;
    }
}

/* First word of a register operand; -1 after reporting. */
static int64_t operand_word(struct function *f, const struct site *s, int o, int words) {
    const struct memory *m = &f->cpu->machine->memory[s->memory[o]];
    const char *name = s->instr->operand[o].buffer;
    if (!s->address[o].is)
        cpu_error(f->cpu,
                  "operand '%s' of '%s' is passed by value, but its place in '%s' is not constant, "
                  "expected "
                  "unrolled loops around it",
                  name, s->instr->id, m->id);
    else if (s->address[o].value < 0 || s->address[o].value % m->word)
        cpu_error(f->cpu, "operand '%s' of '%s' starts inside a word of '%s'", name, s->instr->id,
                  m->id);
    else if (s->address[o].value / m->word >= f->cpu->nwords[s->memory[o]])
        cpu_error(f->cpu, "operand '%s' of '%s' is beyond its place in '%s'", name, s->instr->id,
                  m->id);
    else
        return s->address[o].value / m->word;
    (void)words;
    return -1;
}

/* Words that the operand really has at this issue's sizes; the widest where they vary. */
static int live_words(struct function *f, const struct site *s, const struct emit_param *p,
                      int64_t first) {
    int64_t word = f->cpu->machine->memory[s->memory[p->index]].word;
    int64_t span = site_span(s, p->index), n = p->words;
    if (span >= 0) n = (span * (int64_t)type_size(p->type) + word - 1) / word;
    if (n > p->words) n = p->words;
    if (first + n > f->cpu->nwords[s->memory[p->index]])
        n = f->cpu->nwords[s->memory[p->index]] - first;
    return (int)n;
}

static void push_value(struct function *f, const struct site *s, const struct emit_param *p,
                       struct actuals *call, bool ahead) {
    LLVMTypeRef type = word_type(f, s->memory[p->index], p->type);
    int64_t first = ahead ? 0 : operand_word(f, s, p->index, p->words);
    if (first < 0) return;
    int live = ahead ? 0 : live_words(f, s, p, first);
    for (int w = 0; w < p->words && p->read; w++)
        call->arg[call->n++] =
            w < live ? word_read(f, s->memory[p->index], first + w, type) : LLVMGetPoison(type);
}

static void push_param(struct function *f, const struct issue_node *n, const struct site *s,
                       const struct emit_param *p, struct actuals *call, bool ahead) {
    const struct schedule *sch = f->cpu->schedule;
    const struct arg *a = &n->arg[p->index];
    LLVMValueRef v = NULL;
    switch (p->kind) {
    case PARAM_VALUE:
        push_value(f, s, p, call, ahead);
        return;
    case PARAM_POINTER: {
        struct lv slot =
            lv_op(f, SX_MUL, f->slot[a->place], lv_const(f, sch->place[a->place].bytes));
        v = pointer_sx(f, place_base(f, a->place), slot, a->offset, 0);
        break;
    }
    case PARAM_IMM: {
        LLVMTypeRef t = element_type(f->cpu, p->type);
        v = type_is_float(p->type) ? LLVMConstReal(t, a->imm.f)
                                   : LLVMConstInt(t, (uint64_t)a->imm.i, true);
        break;
    }
    case PARAM_SIZE:
        v = lv_sx(f, n->size[p->index]).v;
        break;
    case PARAM_STRIDE:
        v = lv_sx(f, n->stride[p->index]).v;
        break;
    case PARAM_FLAG:
        v = LLVMBuildTrunc(f->builder, lv_sx(f, n->flag[p->index]).v, f->cpu->i32, "");
        break;
    }
    call->arg[call->n++] = v;
}

static void store_results(struct function *f, const struct site *s, const struct signature *sig,
                          LLVMValueRef result) {
    int total = signature_results(sig), at = 0;
    for (int i = 0; i < sig->nparams; i++) {
        const struct emit_param *p = &sig->param[i];
        if (p->kind != PARAM_VALUE || !p->written) continue;
        int64_t first = operand_word(f, s, p->index, p->words);
        if (first < 0) return;
        int live = live_words(f, s, p, first);
        for (int w = 0; w < p->words; w++, at++) {
            if (w >= live) continue;
            f->word[s->memory[p->index]][first + w] =
                total == 1 ? result : LLVMBuildExtractValue(f->builder, result, (unsigned)at, "");
        }
    }
}

static bool pass_fits(struct function *f, const struct site *s, int o) {
    enum pass pass = site_pass(s, o);
    if (s->memory[o] < 0 || pass == PASS_NUMBER ||
        (pass == PASS_VALUE) == (f->word[s->memory[o]] != NULL))
        return true;
    cpu_error(
        f->cpu,
        "operand '%s' of '%s' is passed in another way than its memory '%s', expected the same",
        s->instr->operand[o].buffer, s->instr->id, f->cpu->machine->memory[s->memory[o]].id);
    return false;
}

/* ahead: the text says what comes, before there are values. */
static void issue_text(struct function *f, const struct issue_node *n, const struct emit *text,
                       bool ahead) {
    struct cpu *c = f->cpu;
    struct arena scratch;
    struct signature sig;
    arena_init(&scratch);
    struct site *s = site_new(&scratch, c->machine, &c->machine->instr[n->instr]);
    struct emitted *fn = NULL;
    site_fill(f, s, n);
    bool fits = !c->failed;
    for (int o = 0; o < s->instr->noperands && fits; o++) fits = pass_fits(f, s, o);
    if (fits && emit_signature(&scratch, s, &sig, c->diags)) fn = emit_function(c, s, &sig, text);
    c->failed = c->failed || !fn;
    if (fn) {
        int most = sig.nparams;
        for (int i = 0; i < sig.nparams; i++) most += sig.param[i].words;
        struct actuals call = {memory_array((size_t)most + 1, sizeof(LLVMValueRef)), 0};
        for (int i = 0; i < sig.nparams && !c->failed; i++)
            push_param(f, n, s, &sig.param[i], &call, ahead);
        if (!c->failed) {
            LLVMValueRef r =
                LLVMBuildCall2(f->builder, fn->type, fn->fn, call.arg, (unsigned)call.n, "");
            if (!ahead) store_results(f, s, &sig, r);
        }
        free(call.arg);
    }
    if (++c->issues > MAX_ISSUES)
        cpu_error(c, "unrolled loops make more than %d instructions", MAX_ISSUES);
    arena_free(&scratch);
}

void build_issue(struct function *f, const struct issue_node *n) {
    issue_text(f, n, instr_emit(&f->cpu->machine->instr[n->instr], LANGUAGE_LLVM), false);
}

void build_ahead(struct function *f, const struct issue_node *n) {
    issue_text(f, n, instr_ahead(&f->cpu->machine->instr[n->instr], LANGUAGE_LLVM), true);
}
#endif
