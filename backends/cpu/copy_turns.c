#if ISAMAP_WITH_LLVM
/* Copies in turns of the loops around them: each kind of turn has code of its own. */
#include "backends/cpu/copy_int.h"

/* The copy of these turns; `only` to see whether there is one. */
static bool build_part(struct function *f, const struct fallback_node *node, struct turns turns,
                       bool only, struct copier *c) {
    struct entry entry[MAX_LISTED];
    struct ways ways;
    if (!copier_open(c, f, node, entry, turns) || !find_ways(c, &ways)) return false;
    c->type = LLVMIntTypeInContext(f->cpu->context, (unsigned)(8 * c->size));
    c->fill = copy_fill(c);
    if (c->fill && !only) copy_build(c, &ways);
    return c->fill != NULL;
}

enum kind { WHOLE, FIRST, LAST, KINDS }; /* WHOLE: those between, where the first is apart */

static struct turns with(struct turns t, int axis, enum kind kind) {
    uint64_t bit = UINT64_C(1) << axis;
    if (kind == FIRST) t.first |= bit;
    if (kind == LAST) t.last |= bit;
    return t;
}

/* Where the first turn is apart there are three kinds, otherwise a shorter last one. */
static bool has_kind(const struct turns *t, int axis, enum kind kind) {
    return kind != FIRST || t->apart >> axis & 1;
}

/* `differ`: the axes of which not all turns are alike, and that are not decided yet. */
static bool all_parts(struct function *f, const struct fallback_node *node, uint64_t differ,
                      struct turns t) {
    struct copier own;
    if (!differ) return build_part(f, node, t, true, &own);
    int a = __builtin_ctzll(differ);
    for (enum kind k = 0; k < KINDS; k++)
        if (has_kind(&t, a, k) && !all_parts(f, node, differ & (differ - 1), with(t, a, k)))
            return false;
    return true;
}

static LLVMValueRef is_kind(const struct copier *c, int a, bool apart, enum kind kind) {
    LLVMBuilderRef B = c->f->builder;
    LLVMValueRef at = c->first[a].v, last = lv_const(c->f, c->start_high[a]).v;
    if (kind == FIRST) return LLVMBuildICmp(B, LLVMIntEQ, at, lv_const(c->f, 0).v, "");
    if (kind == LAST) return LLVMBuildICmp(B, LLVMIntSGT, at, last, "");
    LLVMValueRef whole = LLVMBuildICmp(B, LLVMIntSLE, at, last, "");
    if (!apart) return whole;
    return LLVMBuildAnd(B, whole, LLVMBuildICmp(B, LLVMIntNE, at, lv_const(c->f, 0).v, ""), "");
}

/* c: the copy of WHOLE turns, whose variables are those of the loops around. */
static void build_parts(const struct copier *c, const struct fallback_node *node, uint64_t differ,
                        struct turns t) {
    if (!differ) {
        struct copier own;
        build_part(c->f, node, t, false, &own);
        return;
    }
    int a = __builtin_ctzll(differ);
    for (enum kind k = 0; k < KINDS; k++) {
        struct frame r;
        if (!has_kind(&t, a, k) || (k == WHOLE && !has_turns(c, a))) continue;
        frame_branch(c->f, &r, is_kind(c, a, t.apart >> a & 1, k));
        build_parts(c, node, differ & (differ - 1), with(t, a, k));
        frame_close(c->f, &r, NULL);
    }
}

/* Where some turns read outside the source, the first and the last one are apart from the others,
 * which are inside. */
bool build_copy(struct function *f, const struct fallback_node *node) {
    struct copier c;
    struct turns t = {0};
    if (!build_part(f, node, t, true, &c)) {
        t.apart = c.edged;
        if (!t.apart || !build_part(f, node, t, true, &c)) return false;
    }
    uint64_t differ = c.ragged | t.apart;
    if (!all_parts(f, node, differ, t)) return false;
    build_parts(&c, node, differ, t);
    return true;
}
#endif
