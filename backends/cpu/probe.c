#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

struct probe {
    struct cpu c;
    LLVMOrcLLJITRef jit;
    enum probe_depth depth;
    int n;
};

struct probe *probe_open(const struct schedule *s, enum probe_depth depth, struct diags *diags) {
    struct probe *p = memory_array(1, sizeof *p);
    arena_init(&p->c.arena);
    p->c.schedule = s;
    p->c.machine = s->machine;
    p->c.diags = diags;
    p->c.draft = depth != PROBE_LOAD;
    p->depth = depth;
    if (cpu_target_open(&p->c)) return p;
    probe_close(p);
    return NULL;
}

void probe_close(struct probe *p) {
    if (p->jit) LLVMConsumeError(LLVMOrcDisposeLLJIT(p->jit));
    cpu_close(&p->c);
    free(p);
}

static LLVMValueRef field(struct cpu *c, LLVMBuilderRef b, LLVMTypeRef type, LLVMValueRef base,
                          int64_t bytes) {
    LLVMValueRef at = LLVMConstInt(c->i64, (uint64_t)bytes, false);
    LLVMValueRef v = LLVMBuildLoad2(b, type, LLVMBuildGEP2(b, c->i8, base, &at, 1, ""), "");
    LLVMSetAlignment(v, 1);
    return v;
}

static LLVMValueRef immediate(struct cpu *c, enum type t, union value v) {
    LLVMTypeRef type = element_type(c, t);
    return type_is_float(t) ? LLVMConstReal(type, v.f) : LLVMConstInt(type, (uint64_t)v.i, true);
}

/* The arguments of the call, loaded from the arrays. */
static int load_arguments(struct cpu *c, LLVMBuilderRef b, LLVMValueRef fn, const struct site *s,
                          const struct signature *sig, LLVMValueRef *arg) {
    LLVMValueRef pointers = LLVMGetParam(fn, 0);
    int n = 0;
    for (int i = 0; i < sig->nparams; i++) {
        const struct emit_param *p = &sig->param[i];
        LLVMValueRef memory = NULL;
        if (p->kind == PARAM_POINTER || p->kind == PARAM_VALUE)
            memory = field(c, b, c->ptr, pointers, 8 * (int64_t)p->index);
        switch (p->kind) {
        case PARAM_POINTER:
            arg[n++] = memory;
            break;
        case PARAM_VALUE:
            for (int w = 0; w < p->words && p->read; w++)
                arg[n++] = field(c, b, param_type(c, p), memory,
                                 (int64_t)w * p->lanes * (int64_t)type_size(p->type));
            break;
        case PARAM_IMM:
            arg[n++] = immediate(c, p->type, s->imm[p->index]);
            break;
        case PARAM_SIZE:
            arg[n++] = LLVMConstInt(c->i64, (uint64_t)s->size[p->index].value, true);
            break;
        case PARAM_STRIDE:
            arg[n++] = LLVMConstInt(c->i64, (uint64_t)s->stride[p->index].value, true);
            break;
        case PARAM_FLAG:
            arg[n++] = LLVMConstInt(c->i32, (uint64_t)s->flag[p->index].value, true);
            break;
        }
    }
    return n;
}

static void store_results(struct cpu *c, LLVMBuilderRef b, LLVMValueRef fn,
                          const struct signature *sig, LLVMValueRef result) {
    int total = signature_results(sig), at = 0;
    for (int i = 0; i < sig->nparams; i++) {
        const struct emit_param *p = &sig->param[i];
        if (p->kind != PARAM_VALUE || !p->written) continue;
        LLVMValueRef memory = field(c, b, c->ptr, LLVMGetParam(fn, 0), 8 * (int64_t)p->index);
        for (int w = 0; w < p->words; w++, at++) {
            int64_t bytes = (int64_t)w * p->lanes * (int64_t)type_size(p->type);
            LLVMValueRef offset = LLVMConstInt(c->i64, (uint64_t)bytes, false);
            LLVMValueRef v =
                total == 1 ? result : LLVMBuildExtractValue(b, result, (unsigned)at, "");
            LLVMValueRef to = LLVMBuildGEP2(b, c->i8, memory, &offset, 1, "");
            LLVMSetAlignment(LLVMBuildStore(b, v, to), 1);
        }
    }
}

bool probe_add(struct probe *p, const struct site *s, const struct emit *emit) {
    struct cpu *c = &p->c;
    struct signature sig;
    if (!emit_signature(&c->arena, s, &sig, c->diags)) return false;
    struct emitted *e = emit_function(c, s, &sig, emit);
    if (!e) return false;
    int most = 1;
    for (int i = 0; i < sig.nparams; i++) most += 1 + sig.param[i].words;
    LLVMValueRef *arg = memory_array((size_t)most, sizeof *arg);
    LLVMTypeRef type = LLVMFunctionType(c->nothing, &c->ptr, 1, false);
    LLVMValueRef fn = LLVMAddFunction(c->module, arena_printf(&c->arena, "probe_%d", p->n++), type);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(c->context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(c->context, fn, "entry"));
    int n = load_arguments(c, b, fn, s, &sig, arg);
    store_results(c, b, fn, &sig, LLVMBuildCall2(b, e->type, e->fn, arg, (unsigned)n, ""));
    LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
    free(arg);
    return true;
}

bool probe_add_plain(struct probe *p, const struct emit *emit) {
    return emit_plain(&p->c, emit) != NULL;
}

bool probe_finish(struct probe *p, probe_function *out) {
    if (!emits_link(&p->c)) return false;
    if (p->depth == PROBE_PARSE) return true;
    if (p->depth == PROBE_COMPILE) {
        LLVMMemoryBufferRef code = cpu_generate(&p->c, LLVMObjectFile);
        if (code) LLVMDisposeMemoryBuffer(code);
        return code;
    }
    p->jit = cpu_jit(&p->c, cpu_generate(&p->c, LLVMObjectFile));
    for (int i = 0; p->jit && i < p->n; i++) {
        void *address = cpu_symbol(&p->c, p->jit, arena_printf(&p->c.arena, "probe_%d", i));
        if (!address) return false;
        memcpy(&out[i], &address, sizeof address);
    }
    return p->jit;
}
#endif
