/* Floats of 16 bits pass from block to block as integers. A processor without arithmetic for them
 * has no registers of their type either: LLVM widens such a value at the end of its block, and
 * rounds it where it is used, by functions (`__truncsfbf2`) that not every library has. Inside of a
 * block it sees that nothing but the bits is wanted. Passes move values and make phis as they like,
 * so this is done behind them. */
#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>

struct halves {
    LLVMContextRef context;
    LLVMBuilderRef builder;
    LLVMValueRef *value; /* [n] a function's instructions whose results are such floats */
    size_t n, cap;
};

/* The integers of the same width and number; NULL: the type has no floats of 16 bits. */
static LLVMTypeRef bits_of(LLVMContextRef context, LLVMTypeRef type) {
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMTypeKind kind = LLVMGetTypeKind(vector ? LLVMGetElementType(type) : type);
    if (kind != LLVMHalfTypeKind && kind != LLVMBFloatTypeKind) return NULL;
    LLVMTypeRef i16 = LLVMInt16TypeInContext(context);
    return vector ? LLVMVectorType(i16, LLVMGetVectorSize(type)) : i16;
}

static LLVMValueRef as_bits(struct halves *h, LLVMValueRef v) {
    LLVMTypeRef type = bits_of(h->context, LLVMTypeOf(v));
    if (LLVMIsABitCastInst(v) && LLVMTypeOf(LLVMGetOperand(v, 0)) == type)
        return LLVMGetOperand(v, 0);
    return LLVMBuildBitCast(h->builder, v, type, "");
}

static void collect(struct halves *h, LLVMValueRef fn, bool phis) {
    h->n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v; v = LLVMGetNextInstruction(v)) {
            if (phis && !LLVMIsAPHINode(v)) break;
            if (!bits_of(h->context, LLVMTypeOf(v))) continue;
            if (h->n == h->cap) {
                h->cap = h->cap ? 2 * h->cap : 64;
                h->value = memory_grow(h->value, h->cap * sizeof(LLVMValueRef));
            }
            h->value[h->n++] = v;
        }
}

/* A block may come to the phi by several edges, always with the same value. */
static LLVMValueRef incoming_bits(struct halves *h, LLVMValueRef phi, LLVMValueRef made,
                                  unsigned k) {
    LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, k);
    for (unsigned i = 0; i < k; i++)
        if (LLVMGetIncomingBlock(made, i) == from) return LLVMGetIncomingValue(made, i);
    LLVMPositionBuilderBefore(h->builder, LLVMGetBasicBlockTerminator(from));
    return as_bits(h, LLVMGetIncomingValue(phi, k));
}

static void carry_phi(struct halves *h, LLVMValueRef phi) {
    LLVMTypeRef type = LLVMTypeOf(phi);
    LLVMPositionBuilderBefore(h->builder, phi);
    LLVMValueRef bits = LLVMBuildPhi(h->builder, bits_of(h->context, type), ""), next = phi;
    for (unsigned k = 0; k < LLVMCountIncoming(phi); k++) {
        LLVMValueRef value = incoming_bits(h, phi, bits, k);
        LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, k);
        LLVMAddIncoming(bits, &value, &from, 1);
    }
    while (LLVMIsAPHINode(next)) next = LLVMGetNextInstruction(next);
    LLVMPositionBuilderBefore(h->builder, next);
    LLVMReplaceAllUsesWith(phi, LLVMBuildBitCast(h->builder, bits, type, ""));
    LLVMInstructionEraseFromParent(phi);
}

/* A use of the value in another block; NULL. */
static LLVMValueRef used_elsewhere(LLVMValueRef v) {
    LLVMBasicBlockRef here = LLVMGetInstructionParent(v);
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u))
        if (LLVMGetInstructionParent(LLVMGetUser(u)) != here) return LLVMGetUser(u);
    return NULL;
}

/* No phi uses it any more. */
static void carry_value(struct halves *h, LLVMValueRef v) {
    LLVMValueRef bits = NULL, user;
    while ((user = used_elsewhere(v))) {
        LLVMPositionBuilderBefore(h->builder, LLVMGetNextInstruction(v));
        if (!bits) bits = as_bits(h, v);
        LLVMPositionBuilderBefore(h->builder, user);
        LLVMValueRef back = LLVMBuildBitCast(h->builder, bits, LLVMTypeOf(v), "");
        for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(user); k++)
            if (LLVMGetOperand(user, k) == v) LLVMSetOperand(user, k, back);
    }
}

void halves_carry(struct cpu *c) {
    struct halves h = {.context = c->context, .builder = LLVMCreateBuilderInContext(c->context)};
    for (LLVMValueRef f = LLVMGetFirstFunction(c->module); f; f = LLVMGetNextFunction(f)) {
        collect(&h, f, true);
        for (size_t i = 0; i < h.n; i++) carry_phi(&h, h.value[i]);
        collect(&h, f, false);
        for (size_t i = 0; i < h.n; i++) carry_value(&h, h.value[i]);
    }
    LLVMDisposeBuilder(h.builder);
    free(h.value);
}
#endif
