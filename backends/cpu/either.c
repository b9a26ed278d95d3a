#if ISAMAP_WITH_LLVM
/* Of two loops of which one runs, once: sums begin with zeros, or with what went home before. What
 * both write in registers has no value before them. LLVM would keep it, since it sees a way past
 * both, and then has no registers for what stands between two such pairs. */
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>

enum { WRITTEN = 1, READ = 2 /* before it is written */ };

struct words { /* of registers */
    const struct function *f;
    unsigned char **is; /* [nmemories][words] */
    int64_t *var;       /* of unrolled loops */
};

static struct words words_open(const struct function *f) {
    const struct cpu *c = f->cpu;
    struct words x = {f, memory_array((size_t)c->machine->nmemories, sizeof *x.is),
                      memory_array((size_t)c->schedule->nvars + 1, sizeof *x.var)};
    for (int m = 0; m < c->machine->nmemories; m++)
        x.is[m] = memory_array((size_t)c->nwords[m] + 1, 1);
    return x;
}

static void words_close(struct words *x) {
    for (int m = 0; m < x->f->cpu->machine->nmemories; m++) free(x->is[m]);
    free(x->is);
    free(x->var);
}

static void mark_operand(struct words *x, const struct issue_node *n, int o) {
    const struct cpu *c = x->f->cpu;
    if (n->arg[o].place < 0) return;
    const struct place *p = &c->schedule->place[n->arg[o].place];
    int64_t word = c->machine->memory[p->memory].word, first = p->address / word,
            end = (p->address + p->bytes * p->slots + word - 1) / word;
    if (!c->nwords[p->memory]) return;
    if (c->machine->instr[n->instr].operand[o].role == ROLE_OUT && p->slots == 1) {
        int64_t at = (p->address + sx_eval(n->arg[o].offset, x->var)) / word;
        if (at >= first && at < end) x->is[p->memory][at] |= WRITTEN;
        return;
    }
    for (int64_t w = first; w < end && w < c->nwords[p->memory]; w++)
        if (!(x->is[p->memory][w] & WRITTEN)) x->is[p->memory][w] |= READ;
}

/* False: something else than instructions and unrolled loops. */
static bool mark_nodes(struct words *x, const struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        int64_t from, to;
        if (node[i].kind == NODE_ISSUE) {
            const struct instr *in = &x->f->cpu->machine->instr[node[i].issue->instr];
            for (int o = 0; o < in->noperands; o++)
                if (in->operand[o].role != ROLE_OUT) mark_operand(x, node[i].issue, o);
            for (int o = 0; o < in->noperands; o++)
                if (in->operand[o].role == ROLE_OUT) mark_operand(x, node[i].issue, o);
            continue;
        }
        if (node[i].kind != NODE_LOOP || node[i].loop->kind != LOOP_UNROLLED) return false;
        const struct loop_node *l = node[i].loop;
        if (!sx_constant(l->lo, &from) || !sx_constant(l->hi, &to)) return false;
        for (int64_t k = from; k < to; k += l->step) {
            x->var[l->var] = k;
            if (!mark_nodes(x, l->body, l->nbody)) return false;
        }
    }
    return true;
}

static bool is_not(const struct sx *a, const struct sx *b) {
    int64_t zero;
    return a->op == SX_EQ && b->op >= SX_LT && sx_constant(a->b, &zero) && zero == 0 &&
           sx_same(a->a, b);
}

static bool runs_if(const struct loop_node *l) {
    int64_t lo;
    return l->kind == LOOP_SEQUENTIAL && l->step == 1 && sx_constant(l->lo, &lo) && lo == 0;
}

void forget_before(struct function *f, const struct loop_node *a, const struct loop_node *b) {
    const struct cpu *c = f->cpu;
    if (!runs_if(a) || !runs_if(b) || (!is_not(a->hi, b->hi) && !is_not(b->hi, a->hi))) return;
    struct words x = words_open(f), y = words_open(f);
    bool ok = mark_nodes(&x, a->body, a->nbody) && mark_nodes(&y, b->body, b->nbody);
    for (int m = 0; ok && m < c->machine->nmemories; m++)
        for (int w = 0; w < c->nwords[m]; w++)
            if (x.is[m][w] == WRITTEN && y.is[m][w] == WRITTEN && f->word[m][w])
                f->word[m][w] = LLVMGetPoison(LLVMTypeOf(f->word[m][w]));
    words_close(&x);
    words_close(&y);
}
#endif
