#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- values known by number ---- */
/* So small that no operation on two of them overflows. */
static struct lv lv_between(struct lv v, int64_t lo, int64_t hi) {
    int64_t most = INT64_C(1) << 31;
    v.bounded = lo >= -most && hi <= most;
    v.lo = lo;
    v.hi = hi;
    return v;
}

struct lv lv_const(struct function *f, int64_t value) {
    return lv_between((struct lv){.v = LLVMConstInt(f->cpu->i64, (uint64_t)value, true)}, value,
                      value);
}

bool lv_constant(struct lv a, int64_t *out) {
    if (!LLVMIsAConstantInt(a.v)) return false;
    *out = LLVMConstIntGetSExtValue(a.v);
    return true;
}

static unsigned memo_hash(int op, LLVMValueRef a, LLVMValueRef b) {
    uint64_t h = (uint64_t)(uintptr_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)b;
    return (unsigned)((h * 0x9e3779b97f4a7c15u + (uint64_t)op * 0xff51afd7ed558ccdu) >> 33);
}

static struct memo *memo_find(struct function *f, int op, LLVMValueRef a, LLVMValueRef b) {
    unsigned at = memo_hash(op, a, b) % f->memo_cap;
    while (f->memo[at].uid) {
        struct memo *m = &f->memo[at];
        if (m->op == op && m->a == a && m->b == b) break;
        at = (at + 1) % f->memo_cap;
    }
    return &f->memo[at];
}

static bool memo_live(const struct function *f, const struct memo *m) {
    return m->uid && m->level < f->nlevels && f->level[m->level].uid == m->uid;
}

static void memo_grow(struct function *f) {
    struct memo *old = f->memo;
    unsigned n = f->memo_cap;
    f->memo_cap = n ? 2 * n : 256;
    f->memo = memory_array(f->memo_cap, sizeof *f->memo);
    f->nmemo = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!memo_live(f, &old[i])) continue;
        *memo_find(f, old[i].op, old[i].a, old[i].b) = old[i];
        f->nmemo++;
    }
    free(old);
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

static bool fold(int op, int64_t a, int64_t b, int64_t *out) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (op) {
    case SX_ADD:
        *out = (int64_t)(x + y);
        return true;
    case SX_SUB:
        *out = (int64_t)(x - y);
        return true;
    case SX_MUL:
        *out = (int64_t)(x * y);
        return true;
    case SX_DIV:
        return b > 0 ? (*out = floor_div(a, b), true) : false;
    case SX_MOD:
        return b > 0 ? (*out = a - b * floor_div(a, b), true) : false;
    case SX_MIN:
        *out = a < b ? a : b;
        return true;
    case SX_MAX:
        *out = a > b ? a : b;
        return true;
    case SX_LT:
        *out = a < b;
        return true;
    case SX_LE:
        *out = a <= b;
        return true;
    case SX_EQ:
        *out = a == b;
        return true;
    case SX_NE:
        *out = a != b;
        return true;
    case SX_AND:
        *out = a && b;
        return true;
    case SX_OR:
        *out = a || b;
        return true;
    default:
        return false;
    }
}

static LLVMValueRef build_division(struct function *f, bool mod, LLVMValueRef a, LLVMValueRef b) {
    LLVMBuilderRef B = f->builder;
    LLVMValueRef zero = LLVMConstInt(f->cpu->i64, 0, false);
    int64_t d = LLVMIsAConstantInt(b) ? LLVMConstIntGetSExtValue(b) : 0;
    if (d > 0 && (d & (d - 1)) == 0) {
        if (mod) return LLVMBuildAnd(B, a, LLVMConstInt(f->cpu->i64, (uint64_t)d - 1, false), "");
        return LLVMBuildAShr(
            B, a, LLVMConstInt(f->cpu->i64, (uint64_t)__builtin_ctzll((uint64_t)d), 0), "");
    }
    LLVMValueRef r = LLVMBuildSRem(B, a, b, "");
    LLVMValueRef negative = LLVMBuildICmp(B, LLVMIntSLT, r, zero, "");
    if (mod) return LLVMBuildAdd(B, r, LLVMBuildSelect(B, negative, b, zero, ""), "");
    LLVMValueRef q = LLVMBuildSDiv(B, a, b, "");
    return LLVMBuildSub(B, q, LLVMBuildZExt(B, negative, f->cpu->i64, ""), "");
}

static LLVMValueRef build_binary(struct function *f, int op, LLVMValueRef a, LLVMValueRef b) {
    LLVMBuilderRef B = f->builder;
    LLVMTypeRef i64 = f->cpu->i64;
    static const LLVMIntPredicate predicate[] = {
        [SX_MIN] = LLVMIntSLT, [SX_MAX] = LLVMIntSGT, [SX_LT] = LLVMIntSLT,
        [SX_LE] = LLVMIntSLE,  [SX_EQ] = LLVMIntEQ,   [SX_NE] = LLVMIntNE,
    };
    switch (op) {
    case SX_ADD:
        return LLVMBuildAdd(B, a, b, "");
    case SX_SUB:
        return LLVMBuildSub(B, a, b, "");
    case SX_MUL:
        return LLVMBuildMul(B, a, b, "");
    case SX_DIV:
        return build_division(f, false, a, b);
    case SX_MOD:
        return build_division(f, true, a, b);
    case SX_MIN:
    case SX_MAX:
        return LLVMBuildSelect(B, LLVMBuildICmp(B, predicate[op], a, b, ""), a, b, "");
    case SX_LT:
    case SX_LE:
    case SX_EQ:
    case SX_NE:
        return LLVMBuildZExt(B, LLVMBuildICmp(B, predicate[op], a, b, ""), i64, "");
    case SX_AND:
    case LV_AND1:
        return LLVMBuildAnd(B, a, b, "");
    case SX_OR:
        return LLVMBuildOr(B, a, b, "");
    case LV_ULT:
        return LLVMBuildICmp(B, LLVMIntULT, a, b, "");
    case LV_SGE:
        return LLVMBuildICmp(B, LLVMIntSGE, a, b, "");
    default:
        return LLVMBuildGEP2(B, f->cpu->i8, a, &b, 1, "");
    }
}

static bool neutral(int op, struct lv a, struct lv b, struct lv *out) {
    int64_t x = 0, y = 0;
    bool ca = lv_constant(a, &x), cb = lv_constant(b, &y);
    *out = a;
    if (op == LV_GEP || op == SX_ADD || op == SX_SUB) {
        if (cb && y == 0) return true;
        if (op == SX_ADD && ca && x == 0) return *out = b, true;
    }
    if (op == SX_MUL && cb && y == 1) return true;
    if (op == SX_MUL && ca && x == 1) return *out = b, true;
    if (op == SX_DIV && cb && y == 1) return true;
    return (op == SX_MIN || op == SX_MAX || op == LV_AND1) && a.v == b.v;
}

/* What bounds alone decide: a window that lies inside of its buffer needs no test. */
static bool decided(struct function *f, int op, struct lv a, struct lv b, struct lv *out) {
    if (!a.bounded || !b.bounded) return false;
    bool less = a.hi < b.lo, most = a.hi <= b.lo, over = a.lo > b.hi, least = a.lo >= b.hi;
    *out = (op == SX_MIN ? most : least) ? a : b;
    if (op == SX_MIN || op == SX_MAX) return most || least;
    if ((op == SX_LT && (less || least)) || (op == SX_LE && (most || over)))
        return *out = lv_const(f, op == SX_LT ? less : most), true;
    if (op == SX_MUL && ((a.lo == 0 && a.hi == 0) || (b.lo == 0 && b.hi == 0)))
        return *out = lv_const(f, 0), true;
    return false;
}

static int64_t least_of(const int64_t *x, int n) {
    int64_t least = x[0];
    for (int i = 1; i < n; i++)
        if (x[i] < least) least = x[i];
    return least;
}

static struct lv with_bounds(int op, struct lv v, struct lv a, struct lv b) {
    v.bounded = false;
    if (!a.bounded || !b.bounded) return v;
    int64_t all[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi},
            none[] = {-all[0], -all[1], -all[2], -all[3]};
    switch (op) {
    case SX_ADD:
        return lv_between(v, a.lo + b.lo, a.hi + b.hi);
    case SX_SUB:
        return lv_between(v, a.lo - b.hi, a.hi - b.lo);
    case SX_MUL:
        return lv_between(v, least_of(all, 4), -least_of(none, 4));
    case SX_MIN:
        return lv_between(v, a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi);
    case SX_MAX:
        return lv_between(v, a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi);
    case SX_LT:
    case SX_LE:
    case SX_EQ:
    case SX_NE:
        return lv_between(v, 0, 1);
    default:
        return v;
    }
}

struct lv lv_op(struct function *f, int op, struct lv a, struct lv b) {
    int64_t x, y, folded;
    struct lv out;
    if (op < LV_ULT && lv_constant(a, &x) && lv_constant(b, &y) && fold(op, x, y, &folded))
        return lv_const(f, folded);
    if (neutral(op, a, b, &out) || decided(f, op, a, b, &out)) return out;
    if (2 * (f->nmemo + 1) > f->memo_cap) memo_grow(f);
    struct memo *m = memo_find(f, op, a.v, b.v);
    if (memo_live(f, m)) return with_bounds(op, (struct lv){.v = m->v, .level = m->level}, a, b);
    int level = a.level > b.level ? a.level : b.level;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(f->builder);
    LLVMPositionBuilderBefore(f->builder, f->level[level].anchor);
    LLVMValueRef v = build_binary(f, op, a.v, b.v);
    LLVMPositionBuilderAtEnd(f->builder, here);
    if (!m->uid) f->nmemo++;
    *m = (struct memo){op, a.v, b.v, v, level, f->level[level].uid};
    return with_bounds(op, (struct lv){.v = v, .level = LLVMIsConstant(v) ? 0 : level}, a, b);
}

struct lv lv_sx(struct function *f, const struct sx *e) {
    if (e->op == SX_CONST) return lv_const(f, e->value);
    if (e->op == SX_VAR) {
        if (!f->var[e->var].v) {
            cpu_error(f->cpu, "loop variable '%s' is used outside its loop",
                      f->cpu->schedule->var[e->var].name);
            return lv_const(f, 0);
        }
        return f->var[e->var];
    }
    return lv_op(f, (int)e->op, lv_sx(f, e->a), lv_sx(f, e->b));
}

/* ---- addresses ---- */
enum { MAX_TERMS = 40 };

struct sum {
    struct term term[MAX_TERMS];
    int n;
    int64_t constant;
};

static void add_term(struct function *f, struct sum *s, int64_t coef, struct lv v) {
    int64_t c;
    if (lv_constant(v, &c)) {
        s->constant += coef * c;
        return;
    }
    for (int i = 0; i < s->n; i++) {
        if (s->term[i].v.v != v.v) continue;
        s->term[i].coef += coef;
        return;
    }
    if (s->n == MAX_TERMS) {
        struct lv two = lv_op(f, SX_MUL, s->term[s->n - 1].v, lv_const(f, s->term[s->n - 1].coef));
        v = lv_op(f, SX_ADD, two, lv_op(f, SX_MUL, v, lv_const(f, coef)));
        s->n--;
        coef = 1;
    }
    s->term[s->n++] = (struct term){coef, v};
}

static void linear(struct function *f, struct sum *s, int64_t coef, const struct sx *e) {
    int64_t c;
    switch (e->op) {
    case SX_CONST:
        s->constant += coef * e->value;
        return;
    case SX_ADD:
        linear(f, s, coef, e->a);
        linear(f, s, coef, e->b);
        return;
    case SX_SUB:
        linear(f, s, coef, e->a);
        linear(f, s, -coef, e->b);
        return;
    case SX_MUL:
        if (lv_constant(lv_sx(f, e->b), &c)) {
            linear(f, s, coef * c, e->a);
            return;
        }
        if (lv_constant(lv_sx(f, e->a), &c)) {
            linear(f, s, coef * c, e->b);
            return;
        }
        break;
    default:
        break;
    }
    add_term(f, s, coef, lv_sx(f, e));
}

static int compare_levels(const void *a, const void *b) {
    const struct term *x = a, *y = b;
    return x->v.level - y->v.level;
}

LLVMValueRef pointer_terms(struct function *f, LLVMValueRef base, struct term *term, int n,
                           int64_t constant) {
    struct lv p = {.v = base};
    /* insertion sort: stable, and short */
    for (int i = 1; i < n; i++)
        for (int k = i; k && compare_levels(&term[k - 1], &term[k]) > 0; k--) {
            struct term t = term[k];
            term[k] = term[k - 1];
            term[k - 1] = t;
        }
    for (int i = 0; i < n; i++)
        if (term[i].coef)
            p = lv_op(f, LV_GEP, p, lv_op(f, SX_MUL, term[i].v, lv_const(f, term[i].coef)));
    if (!constant) return p.v;
    LLVMValueRef c = lv_const(f, constant).v;
    return LLVMBuildGEP2(f->builder, f->cpu->i8, p.v, &c, 1, "");
}

LLVMValueRef pointer_sx(struct function *f, LLVMValueRef base, struct lv slot_bytes,
                        const struct sx *offset, int64_t more) {
    struct sum s = {.n = 0, .constant = more};
    add_term(f, &s, 1, slot_bytes);
    linear(f, &s, 1, offset);
    return pointer_terms(f, base, s.term, s.n, s.constant);
}

/* ---- loops ---- */
static void level_push(struct function *f, LLVMValueRef anchor) {
    if (f->nlevels == MAX_LEVELS) {
        cpu_error(f->cpu, "more than %d nested loops", MAX_LEVELS - 1);
        f->nlevels--;
    }
    f->level[f->nlevels++] = (struct level){anchor, ++f->cpu->uid, false};
}

static LLVMBasicBlockRef block(struct function *f, const char *name) {
    return LLVMAppendBasicBlockInContext(f->cpu->context, f->fn, name);
}

int level_after(struct function *f) {
    LLVMBasicBlockRef next = block(f, "next");
    if (f->level[f->nlevels - 1].after) f->nlevels--;
    level_push(f, LLVMBuildBr(f->builder, next));
    f->level[f->nlevels - 1].after = true;
    LLVMPositionBuilderAtEnd(f->builder, next);
    return f->nlevels - 1;
}

static void open_blocks(struct function *f, struct frame *r, bool sure, struct lv lo) {
    LLVMBuilderRef B = f->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(B), body;
    r->header = block(f, "loop");
    body = block(f, "body");
    r->exit = block(f, "after");
    if (sure) {
        LLVMBuildBr(B, r->header);
    } else {
        r->guard = before;
        LLVMBuildCondBr(B, LLVMBuildICmp(B, LLVMIntSLT, lo.v, r->hi.v, ""), r->header, r->exit);
    }
    LLVMPositionBuilderAtEnd(B, r->header);
    r->var = LLVMBuildPhi(B, f->cpu->i64, "i");
    LLVMAddIncoming(r->var, &lo.v, &before, 1);
    for (int i = 0; i < r->nphis; i++) {
        r->phi[i] = LLVMBuildPhi(B, LLVMTypeOf(r->init[i]), "");
        LLVMAddIncoming(r->phi[i], &r->init[i], &before, 1);
    }
    level_push(f, LLVMBuildBr(B, body));
    LLVMPositionBuilderAtEnd(B, body);
}

struct lv frame_open(struct function *f, struct frame *r, struct lv lo, struct lv hi, int64_t step,
                     int nphis, LLVMValueRef *init) {
    int64_t from = 0, to = 0;
    bool both = lv_constant(lo, &from) && lv_constant(hi, &to);
    *r = (struct frame){.hi = hi, .step = step, .nphis = nphis, .depth = f->nlevels};
    r->init = memory_bytes(((size_t)nphis + 1) * sizeof *r->init);
    r->phi = memory_bytes(((size_t)nphis + 1) * sizeof *r->phi);
    for (int i = 0; i < nphis; i++) r->init[i] = r->phi[i] = init[i];
    r->never = both && from >= to;
    r->once = both && from < to && to - from <= step;
    if (r->never || r->once) return lo;
    open_blocks(f, r, both, lo);
    struct lv v = {.v = r->var, .level = f->nlevels - 1};
    return both ? lv_between(v, from, from + (to - from - 1) / step * step) : v;
}

void frame_branch(struct function *f, struct frame *r, LLVMValueRef test) {
    *r = (struct frame){.branch = true, .depth = f->nlevels};
    LLVMBasicBlockRef then = block(f, "then"), body = block(f, "body");
    r->exit = block(f, "after");
    LLVMBuildCondBr(f->builder, test, then, r->exit);
    LLVMPositionBuilderAtEnd(f->builder, then);
    level_push(f, LLVMBuildBr(f->builder, body));
    LLVMPositionBuilderAtEnd(f->builder, body);
}

/* A node of its own for each loop, as LLVM wants it: the first operand is the node. Sums of floats
 * may be taken in another order then. */
static void ask_for_vectors(struct function *f, LLVMValueRef branch) {
    LLVMContextRef context = f->cpu->context;
    LLVMMetadataRef enable[2] = {
        LLVMMDStringInContext2(context, "llvm.loop.vectorize.enable", 26),
        LLVMValueAsMetadata(LLVMConstInt(f->cpu->i1, 1, false))};
    LLVMMetadataRef self = LLVMTemporaryMDNode(context, NULL, 0);
    LLVMMetadataRef loop[2] = {self, LLVMMDNodeInContext2(context, enable, 2)};
    LLVMMetadataRef node = LLVMMDNodeInContext2(context, loop, 2);
    LLVMMetadataReplaceAllUsesWith(self, node);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(context, "llvm.loop", 9),
                    LLVMMetadataAsValue(context, node));
    f->cpu->vectorises = true;
}

void frame_close(struct function *f, struct frame *r, LLVMValueRef *value) {
    LLVMBuilderRef B = f->builder;
    if (r->branch) {
        LLVMBuildBr(B, r->exit);
        LLVMPositionBuilderAtEnd(B, r->exit);
        f->nlevels = r->depth;
        return;
    }
    if (!r->once && !r->never) {
        LLVMBasicBlockRef latch = LLVMGetInsertBlock(B);
        LLVMValueRef next = LLVMBuildNSWAdd(B, r->var, lv_const(f, r->step).v, "");
        LLVMValueRef branch = LLVMBuildCondBr(
            B, LLVMBuildICmp(B, LLVMIntSLT, next, r->hi.v, ""), r->header, r->exit);
        if (r->vectorise) ask_for_vectors(f, branch);
        LLVMAddIncoming(r->var, &next, &latch, 1);
        LLVMPositionBuilderAtEnd(B, r->exit);
        for (int i = 0; i < r->nphis; i++) {
            LLVMAddIncoming(r->phi[i], &value[i], &latch, 1);
            if (!r->guard) continue;
            LLVMValueRef after = LLVMBuildPhi(B, LLVMTypeOf(value[i]), "");
            LLVMAddIncoming(after, &r->init[i], &r->guard, 1);
            LLVMAddIncoming(after, &value[i], &latch, 1);
            value[i] = after;
        }
        f->nlevels = r->depth;
    }
    free(r->init);
    free(r->phi);
}

/* ---- phis that nobody needs ---- */
struct marks {
    LLVMValueRef *at;
    size_t n, cap;
};

static void marks_add(struct marks *m, LLVMValueRef v) {
    if (m->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->at = memory_grow(m->at, m->cap * sizeof *m->at);
    }
    m->at[m->n++] = v;
}

static int compare_refs(const void *a, const void *b) {
    LLVMValueRef x = *(LLVMValueRef const *)a, y = *(LLVMValueRef const *)b;
    return ((uintptr_t)x > (uintptr_t)y) - ((uintptr_t)x < (uintptr_t)y);
}

/* A register that holds another type is the same one. */
static bool used_by_code(LLVMValueRef v) {
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (LLVMIsAPHINode(user) || (LLVMIsABitCastInst(user) && !used_by_code(user))) continue;
        return true;
    }
    return false;
}

static void collect_phis(LLVMValueRef fn, struct marks *all) {
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v && LLVMIsAPHINode(v);
             v = LLVMGetNextInstruction(v))
            marks_add(all, v);
}

/* Each word that a loop writes got a phi; the ones that only feed phis go. */
void phis_prune(LLVMValueRef fn) {
    struct marks all = {0}, work = {0};
    collect_phis(fn, &all);
    if (!all.n) return;
    qsort(all.at, all.n, sizeof *all.at, compare_refs);
    bool *needed = memory_array(all.n, sizeof *needed);
    for (size_t i = 0; i < all.n; i++) {
        needed[i] = used_by_code(all.at[i]);
        if (needed[i]) marks_add(&work, all.at[i]);
    }
    while (work.n) {
        LLVMValueRef v = work.at[--work.n];
        for (unsigned k = 0; k < LLVMCountIncoming(v); k++) {
            LLVMValueRef from = LLVMGetIncomingValue(v, k);
            while (LLVMIsABitCastInst(from)) from = LLVMGetOperand(from, 0);
            LLVMValueRef *found = bsearch(&from, all.at, all.n, sizeof *all.at, compare_refs);
            if (!found || needed[found - all.at]) continue;
            needed[found - all.at] = true;
            marks_add(&work, from);
        }
    }
    for (size_t i = 0; i < all.n; i++)
        if (!needed[i]) LLVMReplaceAllUsesWith(all.at[i], LLVMGetPoison(LLVMTypeOf(all.at[i])));
    for (size_t i = 0; i < all.n; i++)
        if (!needed[i]) LLVMInstructionEraseFromParent(all.at[i]);
    free(needed);
    free(all.at);
    free(work.at);
}
#endif
