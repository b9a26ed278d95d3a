#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"

#include <string.h>

/* A call of the C library's function stands in the way of vectors. Where the machine has an
 * instruction that computes the function for all elements of a word, the call says so: LLVM then
 * takes the instruction's text where it makes several turns of a fallback's loop at once (VFABI,
 * https://llvm.org/docs/LangRef.html#vector-function-abi-variant). */

/* D[j] = op(S[j]) for one constant axis, as exact as the operation table says. */
static bool computes(struct cpu *c, const struct instr *x, enum opcode op, enum type t) {
    struct diags quiet;
    if (x->is_move || x->nranged || x->units || x->zeroes_subnormals || x->noperands != 2 ||
        x->nneeds || x->needs_features & ~schedule_features(c->schedule) ||
        (x->completes >= 0 && c->machine->sync[x->completes].kind != SYNC_INTERLOCK))
        return false;
    for (int o = 0; o < 2; o++)
        if (x->operand[o].type != t || x->operand[o].nlayouts != 1 || x->operand[o].nmemories < 1 ||
            x->operand[o].memory[0] < 0)
            return false;
    diags_init(&quiet);
    struct program *p = instr_bind(c->machine, x, NULL, &quiet);
    const struct stmt *s = p && p->nstmts == 1 ? &p->stmt[0] : NULL;
    bool is = s && s->combine == COMBINE_SET && !s->nwhere && s->nops == 2 && s->nreads == 1 &&
              p->naxes == 1 && s->op[0].code == OP_READ && s->op[1].code == op &&
              s->op[1].type == t && p->buffer[s->dst.buffer].ndims == 1 &&
              p->buffer[s->read[0].buffer].ndims == 1 && access_coef(p, &s->dst, 0, 0) == 1 &&
              access_coef(p, &s->dst, 0, 1) == 0 && access_coef(p, &s->read[0], 0, 0) == 1 &&
              access_coef(p, &s->read[0], 0, 1) == 0;
    program_free(p);
    diags_free(&quiet);
    return is;
}

/* One word comes in, one goes out, equally long. */
static bool takes_words(const struct signature *sig) {
    const struct emit_param *a = &sig->param[0], *b = &sig->param[1];
    return sig->nparams == 2 && a->kind == PARAM_VALUE && b->kind == PARAM_VALUE && a->words == 1 &&
           b->words == 1 && a->lanes == b->lanes && a->read != b->read &&
           a->written != b->written && a->read == b->written;
}

static const char *find(struct cpu *c, enum opcode op, enum type t, const char *scalar) {
    const struct machine *m = c->machine;
    const char *text = "";
    struct arena scratch;
    struct signature sig;
    arena_init(&scratch);
    for (int i = 0; i < m->ninstrs && !*text; i++) {
        const struct emit *emit = instr_emit(&m->instr[i], LANGUAGE_LLVM);
        if (!emit || emit->library || !computes(c, &m->instr[i], op, t)) continue;
        struct site *s = site_new(&scratch, m, &m->instr[i]);
        if (!emit_signature(&scratch, s, &sig, c->diags) || !takes_words(&sig)) continue;
        struct emitted *e = emit_function(c, s, &sig, emit);
        c->failed = c->failed || !e;
        if (!e) break;
        text = arena_printf(&c->arena, "_ZGV_LLVM_N%dv_%s(%s)", sig.param[0].lanes, scalar,
                            LLVMGetValueName(e->fn));
    }
    arena_free(&scratch);
    return text;
}

static void attribute(struct cpu *c, LLVMValueRef call, const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    if (kind)
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(c->context, kind, 0));
}

void offer_vectors(struct cpu *c, LLVMValueRef call, enum opcode op, enum type t,
                   const char *scalar) {
    static const char name[] = "vector-function-abi-variant";
    const char **at = &c->variant[2 * (int)op + (t == TYPE_F64)];
    if (!*at) *at = find(c, op, t, scalar);
    if (!**at || c->failed) return;
    attribute(c, call, "memory"); /* 0: it touches none, errno neither */
    attribute(c, call, "nounwind");
    attribute(c, call, "willreturn");
    LLVMAddCallSiteAttribute(
        call, LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(c->context, name, sizeof name - 1, *at, (unsigned)strlen(*at)));
}

/* Passes delete what nothing calls: the texts stay until loops have become vectors. */
static const char used[] = "llvm.compiler.used";

bool variants_keep(struct cpu *c) {
    LLVMValueRef kept[CPU_VARIANTS];
    unsigned n = 0;
    for (int i = 0; i < CPU_VARIANTS; i++) {
        const char *open = c->variant[i] ? strchr(c->variant[i], '(') : NULL;
        if (!open) continue;
        const char *name = arena_printf(&c->arena, "%.*s", (int)strlen(open) - 2, open + 1);
        LLVMValueRef f = LLVMGetNamedFunction(c->module, name);
        if (f) kept[n++] = f;
    }
    if (!n) return false;
    LLVMValueRef all = LLVMAddGlobal(c->module, LLVMArrayType(c->ptr, n), used);
    LLVMSetInitializer(all, LLVMConstArray(c->ptr, kept, n));
    LLVMSetLinkage(all, LLVMAppendingLinkage);
    LLVMSetSection(all, "llvm.metadata");
    return true;
}

void variants_release(struct cpu *c) {
    LLVMDeleteGlobal(LLVMGetNamedGlobal(c->module, used));
}
#endif
