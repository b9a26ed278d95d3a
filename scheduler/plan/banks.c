/* Memories in banks that rules keep operands apart in: holds get addresses so that every byte of
 * one is in another bank than every byte of the other. */
#include "scheduler/plan/limits.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* Does a rule say bank(a) != bank(b)? */
static bool apart(const struct instr *in, int a, int b) {
    for (int k = 0; a >= 0 && b >= 0 && k < in->nrequires; k++) {
        const char *function;
        int x, y;
        if (require_apart(in, in->require[k], &function, &x, &y) && !strcmp(function, "bank") &&
            ((x == a && y == b) || (x == b && y == a)))
            return true;
    }
    return false;
}

/* 0: no two places are in different ones, or in which is not known. */
static int64_t bank_bytes(const struct memory *m) {
    if (m->banks < 2 || m->banks > 64 || m->size <= 0) return 0;
    return m->interleave > 0 ? m->interleave : m->size / m->banks;
}

static uint64_t banks_of(const struct memory *m, int64_t at, int64_t bytes) {
    int64_t piece = bank_bytes(m), n = 0;
    uint64_t out = 0;
    for (int64_t k = at / piece; k * piece < at + bytes && n < m->banks; k++, n++)
        out |= UINT64_C(1) << (k % m->banks & 63);
    return out;
}

struct piece {
    int operand; /* -1: copies of other nests that stay over all steps */
    int64_t at, bytes;
};

static bool may_stand(const struct instr *in, const struct memory *m, const struct piece *p, int n,
                      const struct piece *x) {
    if (x->at + x->bytes > m->size) return false;
    for (int k = 0; k < n; k++) {
        if (x->at < p[k].at + p[k].bytes && p[k].at < x->at + x->bytes) return false;
        if (apart(in, p[k].operand, x->operand) &&
            (banks_of(m, p[k].at, p[k].bytes) & banks_of(m, x->at, x->bytes)))
            return false;
    }
    return true;
}

/* The lowest address behind another piece, or at the start of a bank. */
static bool stand(const struct instr *in, const struct memory *m, const struct piece *p, int n,
                  struct piece *x) {
    int64_t piece = bank_bytes(m), best = -1;
    for (int64_t k = 0; k < n + m->banks; k++) {
        struct piece y = *x;
        y.at = k < n ? p[k].at + p[k].bytes : (k - n) * piece;
        if (may_stand(in, m, p, n, &y) && (best < 0 || y.at < best)) best = y.at;
    }
    x->at = best;
    return best >= 0;
}

/* Those of the nest among them, for what the rules say. */
static int stay(struct work *w, const struct nest *n, int m, struct piece *p) {
    const struct task *t = &w->task[n->core];
    int64_t end[MAX_MEMORIES] = {0};
    int count = 0;
    recur_start(w, n, end);
    if (end[m]) p[count++] = (struct piece){-1, 0, end[m]};
    for (int i = 0; i < t->nops; i++)
        if (n->kept >> i & 1 && t->op[i].memory == m)
            p[count++] = (struct piece){i, recur_address(w, n, i), recur_bytes(w, n, i)};
    return count;
}

static bool assign(struct work *w, const struct nest *nest, const int64_t *bytes,
                   int64_t *address) {
    const struct task *t = &w->task[nest->core];
    const struct instr *in = t->needle->in;
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        struct piece p[MAX_OPERANDS + 1];
        bool any = false;
        for (int i = 0; i < t->nops; i++)
            for (int k = 0; k < i; k++)
                any |= t->op[i].where == IN_LOCAL && t->op[k].where == IN_LOCAL &&
                       t->op[i].memory == m && t->op[k].memory == m && apart(in, i, k);
        if (any && !bank_bytes(mem)) return false;
        int n = any ? stay(w, nest, m, p) : 0;
        for (int i = 0; i < t->nops && any; i++) {
            if (t->op[i].where != IN_LOCAL || t->op[i].memory != m || nest->kept >> i & 1) continue;
            struct piece x = {.operand = i, .bytes = bytes[i]};
            if (!stand(in, mem, p, n, &x)) return false;
            address[i] = x.at;
            p[n++] = x;
        }
    }
    return true;
}

static bool has_rules(const struct task *t) {
    if (!t->needle->in->nrequires) return false;
    for (int i = 0; i < t->nops; i++)
        for (int k = 0; k < i; k++)
            if (t->op[i].where == IN_LOCAL && t->op[k].where == IN_LOCAL &&
                t->op[i].memory == t->op[k].memory && apart(t->needle->in, i, k))
                return true;
    return false;
}

bool banks_plan(struct work *w, const struct nest *n, const int64_t *bytes, int64_t *address) {
    const struct task *t = &w->task[n->core];
    for (int i = 0; i < t->nops; i++) address[i] = -1;
    if (!has_rules(t)) return true;
    if (n->given >= 0) return false; /* its address is not the nest's to choose */
    return assign(w, n, bytes, address);
}
