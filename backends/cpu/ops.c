#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* 16-bit floats by bit arithmetic: no conversion instruction, no runtime library. */
const char *const cpu_helpers =
    "define float @isamap.f16.load(i16 %h) alwaysinline nounwind {\n"
    "  %w = zext i16 %h to i32\n"
    "  %s = and i32 %w, 32768\n"
    "  %sign = shl i32 %s, 16\n"
    "  %em = and i32 %w, 32767\n"
    "  %sh = shl i32 %em, 13\n"
    "  %f = bitcast i32 %sh to float\n"
    "  %m = fmul float %f, 0x46F0000000000000\n" /* 2^112 moves the exponent's bias */
    "  %mi = bitcast float %m to i32\n"
    "  %special = icmp uge i32 %em, 31744\n"
    "  %inf = or i32 %sh, 2139095040\n"
    "  %r = select i1 %special, i32 %inf, i32 %mi\n"
    "  %o = or i32 %r, %sign\n"
    "  %v = bitcast i32 %o to float\n"
    "  ret float %v\n}\n"
    "define i16 @isamap.f16.store(float %v) alwaysinline nounwind {\n"
    "  %b = bitcast float %v to i32\n"
    "  %s = lshr i32 %b, 16\n"
    "  %sign = and i32 %s, 32768\n"
    "  %x = and i32 %b, 2147483647\n"
    "  %xf = bitcast i32 %x to float\n"
    "  %sub0 = fadd float %xf, 5.0e-1\n" /* its unit is the smallest subnormal */
    "  %sub1 = bitcast float %sub0 to i32\n"
    "  %sub = sub i32 %sub1, 1056964608\n"
    "  %l = lshr i32 %x, 13\n"
    "  %odd = and i32 %l, 1\n"
    "  %n0 = add i32 %x, -939520001\n" /* (15 - 127) << 23, and half a unit less one */
    "  %n1 = add i32 %n0, %odd\n"
    "  %nrm = lshr i32 %n1, 13\n"
    "  %small = icmp ult i32 %x, 947912704\n"
    "  %r0 = select i1 %small, i32 %sub, i32 %nrm\n"
    "  %big = icmp uge i32 %x, 1199566848\n"
    "  %r1 = select i1 %big, i32 31744, i32 %r0\n"
    "  %nan = icmp ugt i32 %x, 2139095040\n"
    "  %r2 = select i1 %nan, i32 32256, i32 %r1\n"
    "  %o = or i32 %r2, %sign\n"
    "  %t = trunc i32 %o to i16\n"
    "  ret i16 %t\n}\n"
    "define float @isamap.bf16.load(i16 %h) alwaysinline nounwind {\n"
    "  %w = zext i16 %h to i32\n"
    "  %s = shl i32 %w, 16\n"
    "  %v = bitcast i32 %s to float\n"
    "  ret float %v\n}\n"
    "define i16 @isamap.bf16.store(float %v) alwaysinline nounwind {\n"
    "  %b = bitcast float %v to i32\n"
    "  %s = lshr i32 %b, 16\n"
    "  %sign = and i32 %s, 32768\n"
    "  %x = and i32 %b, 2147483647\n"
    "  %odd = and i32 %s, 1\n"
    "  %n0 = add i32 %x, 32767\n"
    "  %n1 = add i32 %n0, %odd\n"
    "  %r0 = lshr i32 %n1, 16\n"
    "  %nan = icmp ugt i32 %x, 2139095040\n"
    "  %r1 = select i1 %nan, i32 32704, i32 %r0\n"
    "  %o = or i32 %r1, %sign\n"
    "  %t = trunc i32 %o to i16\n"
    "  ret i16 %t\n}\n";

/* ---- elements ---- */
/* Of a value in flight: bool is i1, f16 and bf16 are float. */
static LLVMTypeRef flight_type(struct cpu *c, enum type t) {
    if (t == TYPE_BOOL) return c->i1;
    if (t == TYPE_F64) return c->f64;
    if (type_is_float(t)) return c->f32;
    return LLVMIntTypeInContext(c->context, 8 * (unsigned)type_size(t));
}

static LLVMValueRef call_named(struct function *f, const char *name, LLVMTypeRef result,
                               LLVMValueRef *arg, unsigned n) {
    LLVMTypeRef param[3];
    assert(n <= 3);
    for (unsigned i = 0; i < n; i++) param[i] = LLVMTypeOf(arg[i]);
    LLVMTypeRef type = LLVMFunctionType(result, param, n, false);
    LLVMValueRef fn = LLVMGetNamedFunction(f->cpu->module, name);
    if (!fn) fn = LLVMAddFunction(f->cpu->module, name, type);
    return LLVMBuildCall2(f->builder, type, fn, arg, n, "");
}

static LLVMValueRef helper(struct function *f, const char *name, LLVMTypeRef result,
                           LLVMValueRef arg) {
    f->cpu->helpers = true;
    return call_named(f, name, result, &arg, 1);
}

LLVMValueRef element_load(struct function *f, enum type t, LLVMValueRef pointer) {
    struct cpu *c = f->cpu;
    bool half = t == TYPE_F16 || t == TYPE_BF16;
    LLVMTypeRef type = half ? c->i16 : t == TYPE_BOOL ? c->i8 : flight_type(c, t);
    LLVMValueRef v = LLVMBuildLoad2(f->builder, type, pointer, "");
    LLVMSetAlignment(v, (unsigned)type_size(t));
    if (t == TYPE_F16) return helper(f, "isamap.f16.load", c->f32, v);
    if (t == TYPE_BF16) return helper(f, "isamap.bf16.load", c->f32, v);
    if (t == TYPE_BOOL)
        return LLVMBuildICmp(f->builder, LLVMIntNE, v, LLVMConstInt(c->i8, 0, false), "");
    return v;
}

void element_store(struct function *f, enum type t, LLVMValueRef pointer, LLVMValueRef v) {
    struct cpu *c = f->cpu;
    if (t == TYPE_F16) v = helper(f, "isamap.f16.store", c->i16, v);
    if (t == TYPE_BF16) v = helper(f, "isamap.bf16.store", c->i16, v);
    if (t == TYPE_BOOL) v = LLVMBuildZExt(f->builder, v, c->i8, "");
    LLVMSetAlignment(LLVMBuildStore(f->builder, v, pointer), (unsigned)type_size(t));
}

LLVMValueRef flight_constant(struct cpu *c, enum type t, union value v) {
    LLVMTypeRef type = flight_type(c, t);
    if (type_is_float(t)) return LLVMConstReal(type, type_round(t, v.f));
    return LLVMConstInt(type, t == TYPE_BOOL ? v.i != 0 : (uint64_t)v.i, true);
}

/* ---- floats ---- */
LLVMValueRef intrinsic(struct function *f, const char *name, LLVMTypeRef *over, unsigned nover,
                       LLVMValueRef *arg, unsigned n) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(f->cpu->module, id, over, nover);
    LLVMTypeRef type = LLVMIntrinsicGetType(f->cpu->context, id, over, nover);
    return LLVMBuildCall2(f->builder, type, fn, arg, n, "");
}

static LLVMValueRef float_unary(struct function *f, const char *name, LLVMValueRef a) {
    LLVMTypeRef type = LLVMTypeOf(a);
    return intrinsic(f, name, &type, 1, &a, 1);
}

/* The C library's function for the type: expf, exp. */
static LLVMValueRef library(struct function *f, enum opcode op, const char *name, LLVMValueRef *arg,
                            unsigned n) {
    char full[32];
    LLVMTypeRef type = LLVMTypeOf(arg[0]);
    bool single = type == f->cpu->f32;
    snprintf(full, sizeof full, "%s%s", name, single ? "f" : "");
    LLVMValueRef call = call_named(f, full, type, arg, n);
    if (n == 1) offer_vectors(f->cpu, call, op, single ? TYPE_F32 : TYPE_F64, full);
    return call;
}

/* max and min of a NaN give the other operand */
static LLVMValueRef float_extreme(struct function *f, bool max, LLVMValueRef a, LLVMValueRef b) {
    LLVMBuilderRef B = f->builder;
    LLVMValueRef first = LLVMBuildFCmp(B, max ? LLVMRealUGT : LLVMRealULT, a, b, "");
    LLVMValueRef nan = LLVMBuildFCmp(B, LLVMRealUNO, a, a, "");
    return LLVMBuildSelect(B, nan, b, LLVMBuildSelect(B, first, a, b, ""), "");
}

/* Maxima and minima of many floats are made of integers in the same order, which LLVM takes several
 * at a time: the bits, of negative numbers all but the sign inverted. A NaN's key stands behind all
 * others, so that it loses; where there are NaNs alone it is a NaN again. */
static LLVMValueRef key_bits(struct function *f, LLVMValueRef key) {
    LLVMBuilderRef B = f->builder;
    LLVMTypeRef type = LLVMTypeOf(key);
    unsigned bits = LLVMGetIntTypeWidth(type);
    LLVMValueRef negative =
        LLVMBuildAShr(B, key, LLVMConstInt(type, (uint64_t)bits - 1, false), "");
    uint64_t other = UINT64_MAX >> (65 - bits);
    LLVMValueRef inverted = LLVMBuildAnd(B, negative, LLVMConstInt(type, other, false), "");
    return LLVMBuildXor(B, key, inverted, "");
}

LLVMValueRef float_key(struct function *f, bool max, LLVMValueRef a) {
    LLVMBuilderRef B = f->builder;
    LLVMTypeRef type = LLVMTypeOf(a) == f->cpu->f64 ? f->cpu->i64 : f->cpu->i32;
    uint64_t least = UINT64_C(1) << (LLVMGetIntTypeWidth(type) - 1);
    LLVMValueRef key = key_bits(f, LLVMBuildBitCast(B, a, type, "")),
                 last = LLVMConstInt(type, max ? least : least - 1, false);
    return LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealUNO, a, a, ""), last, key, "");
}

LLVMValueRef key_float(struct function *f, LLVMValueRef key) {
    LLVMTypeRef type = LLVMTypeOf(key) == f->cpu->i64 ? f->cpu->f64 : f->cpu->f32;
    return LLVMBuildBitCast(f->builder, key_bits(f, key), type, "");
}

LLVMValueRef key_extreme(struct function *f, bool max, LLVMValueRef a, LLVMValueRef b) {
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef arg[] = {a, b};
    return intrinsic(f, max ? "llvm.smax" : "llvm.smin", &type, 1, arg, 2);
}

static LLVMValueRef widen(struct function *f, LLVMValueRef a) {
    return LLVMTypeOf(a) == f->cpu->f64 ? a : LLVMBuildFPExt(f->builder, a, f->cpu->f64, "");
}

static LLVMValueRef narrow(struct function *f, LLVMValueRef a, LLVMTypeRef type) {
    return type == f->cpu->f64 ? a : LLVMBuildFPTrunc(f->builder, a, type, "");
}

/* 1/sqrt(a) and 1/(1 + exp(-a)): in double, rounded once */
static LLVMValueRef float_inverse(struct function *f, enum opcode op, LLVMValueRef a) {
    LLVMBuilderRef B = f->builder;
    LLVMValueRef one = LLVMConstReal(f->cpu->f64, 1), x = widen(f, a);
    if (op == OP_RSQRT) {
        x = float_unary(f, "llvm.sqrt", x);
    } else {
        LLVMValueRef minus = LLVMBuildFNeg(B, x, "");
        x = LLVMBuildFAdd(B, one, library(f, OP_EXP, "exp", &minus, 1), "");
    }
    return narrow(f, LLVMBuildFDiv(B, one, x, ""), LLVMTypeOf(a));
}

static LLVMValueRef float_build(struct function *f, enum opcode op, LLVMValueRef *arg) {
    LLVMBuilderRef B = f->builder;
    switch (op) {
    case OP_ADD:
        return LLVMBuildFAdd(B, arg[0], arg[1], "");
    case OP_SUB:
        return LLVMBuildFSub(B, arg[0], arg[1], "");
    case OP_MUL:
        return LLVMBuildFMul(B, arg[0], arg[1], "");
    case OP_DIV:
        return LLVMBuildFDiv(B, arg[0], arg[1], "");
    case OP_MOD:
        return library(f, op, "fmod", arg, 2);
    case OP_NEG:
        return LLVMBuildFNeg(B, arg[0], "");
    case OP_MIN:
        return float_extreme(f, false, arg[0], arg[1]);
    case OP_MAX:
        return float_extreme(f, true, arg[0], arg[1]);
    case OP_CLIP:
        return float_extreme(f, false, float_extreme(f, true, arg[0], arg[1]), arg[2]);
    case OP_ABS:
        return float_unary(f, "llvm.fabs", arg[0]);
    case OP_FLOOR:
        return float_unary(f, "llvm.floor", arg[0]);
    case OP_CEIL:
        return float_unary(f, "llvm.ceil", arg[0]);
    case OP_ROUND:
        return float_unary(f, "llvm.rint", arg[0]);
    case OP_SQRT:
        return float_unary(f, "llvm.sqrt", arg[0]);
    case OP_RSQRT:
    case OP_SIGMOID:
        return float_inverse(f, op, arg[0]);
    case OP_EXP:
        return library(f, op, "exp", arg, 1);
    case OP_LOG:
        return library(f, op, "log", arg, 1);
    case OP_SIN:
        return library(f, op, "sin", arg, 1);
    case OP_COS:
        return library(f, op, "cos", arg, 1);
    case OP_TANH:
        return library(f, op, "tanh", arg, 1);
    case OP_ERF:
        return library(f, op, "erf", arg, 1);
    case OP_ATAN:
        return library(f, op, "atan", arg, 1);
    case OP_POW:
        return library(f, op, "pow", arg, 2);
    default:
        break;
    }
    assert(!"an operation on floats");
    return NULL;
}

/* ---- integers ---- */
static LLVMValueRef integer(LLVMValueRef like, int64_t v) {
    return LLVMConstInt(LLVMTypeOf(like), (uint64_t)v, true);
}

static LLVMValueRef integer_less(struct function *f, enum type t, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(f->builder, type_is_signed(t) ? LLVMIntSLT : LLVMIntULT, a, b, "");
}

static LLVMValueRef integer_min(struct function *f, enum type t, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(f->builder, integer_less(f, t, b, a), b, a, "");
}

static LLVMValueRef integer_max(struct function *f, enum type t, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildSelect(f->builder, integer_less(f, t, a, b), b, a, "");
}

/* By zero gives 0; the lowest value by -1 wraps. Neither reaches the machine's division. */
static LLVMValueRef integer_divide(struct function *f, enum type t, bool mod, LLVMValueRef a,
                                   LLVMValueRef b) {
    LLVMBuilderRef B = f->builder;
    LLVMValueRef zero = integer(b, 0), one = integer(b, 1);
    LLVMValueRef none = LLVMBuildICmp(B, LLVMIntEQ, b, zero, ""), odd = none;
    LLVMValueRef minus = LLVMBuildICmp(B, LLVMIntEQ, b, integer(b, -1), "");
    if (type_is_signed(t)) odd = LLVMBuildOr(B, none, minus, "");
    LLVMValueRef safe = LLVMBuildSelect(B, odd, one, b, ""), r;
    if (type_is_signed(t))
        r = mod ? LLVMBuildSRem(B, a, safe, "") : LLVMBuildSDiv(B, a, safe, "");
    else
        r = mod ? LLVMBuildURem(B, a, safe, "") : LLVMBuildUDiv(B, a, safe, "");
    if (type_is_signed(t) && !mod) r = LLVMBuildSelect(B, minus, LLVMBuildNeg(B, a, ""), r, "");
    return LLVMBuildSelect(B, none, zero, r, "");
}

/* Right by an amount seen as unsigned: the width or more leaves only the sign. */
static LLVMValueRef shift_right(struct function *f, enum type t, LLVMValueRef a, LLVMValueRef n) {
    LLVMBuilderRef B = f->builder;
    int64_t width = 8 * (int64_t)type_size(t);
    LLVMValueRef inside = LLVMBuildICmp(B, LLVMIntULT, n, integer(n, width), "");
    LLVMValueRef amount = LLVMBuildSelect(B, inside, n, integer(n, width - 1), "");
    if (type_is_signed(t)) return LLVMBuildAShr(B, a, amount, "");
    return LLVMBuildSelect(B, inside, LLVMBuildLShr(B, a, amount, ""), integer(a, 0), "");
}

static LLVMValueRef shift_left(struct function *f, enum type t, LLVMValueRef a, LLVMValueRef n) {
    LLVMBuilderRef B = f->builder;
    int64_t width = 8 * (int64_t)type_size(t);
    LLVMValueRef inside = LLVMBuildICmp(B, LLVMIntULT, n, integer(n, width), "");
    LLVMValueRef amount = LLVMBuildSelect(B, inside, n, integer(n, 0), "");
    return LLVMBuildSelect(B, inside, LLVMBuildShl(B, a, amount, ""), integer(a, 0), "");
}

/* A negative amount shifts the other way. */
static LLVMValueRef integer_shift(struct function *f, enum type t, bool left, LLVMValueRef a,
                                  LLVMValueRef n) {
    LLVMBuilderRef B = f->builder;
    if (!type_is_signed(t)) return left ? shift_left(f, t, a, n) : shift_right(f, t, a, n);
    LLVMValueRef back = LLVMBuildNeg(B, n, "");
    LLVMValueRef negative = LLVMBuildICmp(B, LLVMIntSLT, n, integer(n, 0), "");
    LLVMValueRef l = shift_left(f, t, a, left ? n : back),
                 r = shift_right(f, t, a, left ? back : n);
    return LLVMBuildSelect(B, negative, left ? r : l, left ? l : r, "");
}

static LLVMValueRef integer_abs(struct function *f, enum type t, LLVMValueRef a) {
    if (!type_is_signed(t)) return a;
    LLVMValueRef negative = LLVMBuildICmp(f->builder, LLVMIntSLT, a, integer(a, 0), "");
    return LLVMBuildSelect(f->builder, negative, LLVMBuildNeg(f->builder, a, ""), a, "");
}

static LLVMValueRef integer_build(struct function *f, enum opcode op, enum type t,
                                  LLVMValueRef *arg) {
    LLVMBuilderRef B = f->builder;
    LLVMValueRef a = arg[0];
    switch (op) {
    case OP_ADD:
        return LLVMBuildAdd(B, a, arg[1], "");
    case OP_SUB:
        return LLVMBuildSub(B, a, arg[1], "");
    case OP_MUL:
        return LLVMBuildMul(B, a, arg[1], "");
    case OP_DIV:
        return integer_divide(f, t, false, a, arg[1]);
    case OP_MOD:
        return integer_divide(f, t, true, a, arg[1]);
    case OP_NEG:
        return LLVMBuildNeg(B, a, "");
    case OP_AND:
        return LLVMBuildAnd(B, a, arg[1], "");
    case OP_XOR:
        return LLVMBuildXor(B, a, arg[1], "");
    case OP_OR:
        return LLVMBuildOr(B, a, arg[1], "");
    case OP_NOT:
        return LLVMBuildNot(B, a, "");
    case OP_MIN:
        return integer_min(f, t, a, arg[1]);
    case OP_MAX:
        return integer_max(f, t, a, arg[1]);
    case OP_CLIP:
        return integer_min(f, t, integer_max(f, t, a, arg[1]), arg[2]);
    case OP_ABS:
        return integer_abs(f, t, a);
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
        return a;
    case OP_SHL:
        return integer_shift(f, t, true, a, arg[1]);
    case OP_SHR:
        return integer_shift(f, t, false, a, arg[1]);
    default:
        break;
    }
    assert(!"an operation on integers");
    return NULL;
}

/* ---- comparisons, casts ---- */
static LLVMValueRef compare(struct function *f, enum opcode op, enum type t, LLVMValueRef a,
                            LLVMValueRef b) {
    static const LLVMRealPredicate real[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                             LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
    static const LLVMIntPredicate sign[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntSLT,
                                            LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
    static const LLVMIntPredicate plain[] = {LLVMIntEQ,  LLVMIntNE,  LLVMIntULT,
                                             LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
    int k = (int)op - (int)OP_EQ;
    if (type_is_float(t)) return LLVMBuildFCmp(f->builder, real[k], a, b, "");
    return LLVMBuildICmp(f->builder, type_is_signed(t) ? sign[k] : plain[k], a, b, "");
}

/* The nearest number of the type, and 0 of NaN. What i32 holds is cut in floats and converted as
 * i32: loops of this become vectors, which they do not with LLVM's own saturating conversion. */
static LLVMValueRef cast_to_integer(struct function *f, enum type to, LLVMValueRef a) {
    LLVMBuilderRef B = f->builder;
    LLVMTypeRef type = flight_type(f->cpu, to), from = LLVMTypeOf(a);
    if (type_size(to) > 4 || to == TYPE_U32) {
        LLVMTypeRef over[] = {type, from};
        return intrinsic(f, type_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", over, 2, &a,
                         1);
    }
    int bits = 8 * (int)type_size(to) - type_is_signed(to);
    bool inexact = to == TYPE_I32 && from != f->cpu->f64; /* the next float below is 127 less */
    LLVMValueRef most = LLVMConstReal(from, ldexp(1, bits) - (inexact ? 128 : 1)),
                 least = LLVMConstReal(from, type_is_signed(to) ? -ldexp(1, bits) : 0);
    LLVMValueRef number = LLVMBuildFCmp(B, LLVMRealORD, a, a, ""),
                 above = LLVMBuildFCmp(B, LLVMRealOGT, a, most, "");
    a = LLVMBuildSelect(B, number, a, LLVMConstReal(from, 0), "");
    a = LLVMBuildSelect(B, LLVMBuildFCmp(B, LLVMRealOLT, a, least, ""), least, a, "");
    a = LLVMBuildFPToSI(B, LLVMBuildSelect(B, above, most, a, ""), f->cpu->i32, "");
    if (inexact) a = LLVMBuildSelect(B, above, LLVMConstInt(type, INT32_MAX, 0), a, "");
    return LLVMBuildTruncOrBitCast(B, a, type, "");
}

static LLVMValueRef cast_build(struct function *f, enum type to, enum type from, LLVMValueRef a) {
    LLVMBuilderRef B = f->builder;
    LLVMTypeRef type = flight_type(f->cpu, to);
    bool wide = type_size(to) > type_size(from) || from == TYPE_BOOL;
    if (type_is_float(to) && type_is_float(from)) {
        if (type == LLVMTypeOf(a)) return a;
        return type == f->cpu->f64 ? widen(f, a) : narrow(f, a, type);
    }
    if (type_is_float(to))
        return type_is_signed(from) ? LLVMBuildSIToFP(B, a, type, "")
                                    : LLVMBuildUIToFP(B, a, type, "");
    if (to == TYPE_BOOL && type_is_float(from))
        return LLVMBuildFCmp(B, LLVMRealUNE, a, LLVMConstReal(LLVMTypeOf(a), 0), "");
    if (to == TYPE_BOOL) return LLVMBuildICmp(B, LLVMIntNE, a, integer(a, 0), "");
    if (type_is_float(from)) return cast_to_integer(f, to, a);
    if (type == LLVMTypeOf(a)) return a;
    if (!wide) return LLVMBuildTrunc(B, a, type, "");
    return type_is_signed(from) ? LLVMBuildSExt(B, a, type, "") : LLVMBuildZExt(B, a, type, "");
}

LLVMValueRef op_build(struct function *f, enum opcode op, enum type to, enum type from,
                      LLVMValueRef *arg) {
    if (op == OP_CAST) return cast_build(f, to, from, arg[0]);
    if (op == OP_SELECT) return LLVMBuildSelect(f->builder, arg[0], arg[1], arg[2], "");
    if (op_info[op].flags & OP_TO_BOOL) return compare(f, op, from, arg[0], arg[1]);
    return type_is_float(from) ? float_build(f, op, arg) : integer_build(f, op, from, arg);
}
#endif
