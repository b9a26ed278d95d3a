/* Memories in banks that rules keep operands apart in: holds get addresses so that every byte of
 * one is in another bank than every byte of the other. */
#include "ir/memory.h"
#include "ir/number.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/work.h"

#include <stdlib.h>
#include <string.h>

static bool apart(const struct needle *nd, int a, int b) {
    return a >= 0 && b >= 0 && nd->other_bank[a] >> b & 1;
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
    int follower,
        operand; /* of the chain, -1: of the core; operand -1: what stands there already */
    int64_t at, bytes, align;
};

static bool may_stand(const struct needle *nd, const struct memory *m, const struct piece *p, int n,
                      const struct piece *x) {
    if (x->at + x->bytes > m->size) return false;
    for (int k = 0; k < n; k++) {
        if (x->at < p[k].at + p[k].bytes && p[k].at < x->at + x->bytes) return false;
        if (p[k].follower == x->follower && apart(nd, p[k].operand, x->operand) &&
            (banks_of(m, p[k].at, p[k].bytes) & banks_of(m, x->at, x->bytes)))
            return false;
    }
    return true;
}

/* The lowest address behind another piece, or at the start of a bank. */
static bool stand(const struct needle *nd, const struct memory *m, const struct piece *p, int n,
                  struct piece *x) {
    int64_t piece = bank_bytes(m), best = -1;
    for (int64_t k = 0; k < n + m->banks; k++) {
        struct piece y = *x;
        y.at = round_up(k < n ? p[k].at + p[k].bytes : (k - n) * piece, x->align);
        if (may_stand(nd, m, p, n, &y) && (best < 0 || y.at < best)) best = y.at;
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
    if (end[m]) p[count++] = (struct piece){-1, -1, 0, end[m], 1};
    for (int i = 0; i < t->nops; i++)
        if (n->kept >> i & 1 && t->op[i].memory == m)
            p[count++] = (struct piece){-1, i, recur_address(w, n, i), recur_bytes(w, n, i), 1};
    return count;
}

/* A rule keeps the copy out of the banks of another operand in the same memory. */
static bool is_kept_apart(const struct task *t, int operand) {
    const struct opnd *o = &t->op[operand];
    for (int k = 0; k < t->nops && o->where == IN_LOCAL; k++)
        if (t->op[k].where == IN_LOCAL && t->op[k].memory == o->memory &&
            apart(t->needle, operand, k))
            return true;
    return false;
}

static bool assign(struct work *w, const struct nest *nest, const int64_t *bytes,
                   int64_t *address) {
    const struct task *t = &w->task[nest->core];
    const struct needle *nd = t->needle;
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        struct piece p[MAX_OPERANDS + 1];
        bool any = false;
        for (int i = 0; i < t->nops; i++) any |= t->op[i].memory == m && is_kept_apart(t, i);
        if (any && !bank_bytes(mem)) return false;
        int n = any ? stay(w, nest, m, p) : 0;
        for (int i = 0; i < t->nops && any; i++) {
            if (t->op[i].where != IN_LOCAL || t->op[i].memory != m || nest->kept >> i & 1) continue;
            struct piece x = {-1, i, 0, bytes[i], least_multiple(mem->align, t->op[i].align)};
            if (!stand(nd, mem, p, n, &x)) return false;
            address[i] = x.at;
            p[n++] = x;
        }
    }
    return true;
}

static bool has_rules(const struct task *t) {
    for (int i = 0; i < t->nops; i++)
        if (is_kept_apart(t, i)) return true;
    return false;
}

bool banks_plan(struct work *w, const struct nest *n, const int64_t *bytes, int64_t *address) {
    const struct task *t = &w->task[n->core];
    for (int i = 0; i < t->nops; i++) address[i] = -1;
    if (!has_rules(t)) return true;
    if (n->given >= 0) return false; /* its address is not the nest's to choose */
    return assign(w, n, bytes, address);
}

void banks_gaps(const struct work *w, const struct nest *n, const int64_t *bytes,
                const int64_t *address, int64_t *used) {
    const struct task *t = &w->task[n->core];
    int64_t begin[MAX_MEMORIES] = {0};
    recur_start(w, n, begin);
    for (int m = 0; m < w->m->nmemories; m++) {
        int64_t end = 0, copies = 0;
        for (int i = 0; i < t->nops; i++) {
            if (address[i] < 0 || t->op[i].memory != m) continue;
            copies += bytes[i];
            if (address[i] + bytes[i] > end) end = address[i] + bytes[i];
        }
        if (end - begin[m] > copies) used[m] += end - begin[m] - copies;
    }
}

/* ---- chains ---- */

bool banks_of_chain(const struct work *w, const struct nest *n) {
    bool any = false;
    for (int i = 0; i < n->nchain; i++) any |= has_rules(&w->task[n->chain[i].task]);
    return any;
}

/* The copies of one memory, in order, behind what stands there. A copy in the place of a dead one
 * has that one's address, whatever bank it is in. */
static bool assign_chain(struct work *w, const struct moves *moves, const struct nest *n,
                         const struct plan *plan, int m, struct piece *p,
                         int64_t (*address)[MAX_OPERANDS]) {
    const struct memory *mem = &w->m->memory[m];
    int count = p[0].bytes > 0;
    for (int i = 0; i < n->nchain; i++) {
        const struct task *t = &w->task[n->chain[i].task];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct region r;
            if (o->where != IN_LOCAL || o->memory != m) continue;
            if (!chain_needs_hold(n, i, k)) {
                if (is_kept_apart(t, k))
                    return false; /* its address is not the chain's to choose */
                continue;
            }
            chain_region(w, plan, n, t, o, &r);
            struct piece x = {i, k, 0, slot_bytes(w, o, &r) * chain_slots_least(w, moves, n, t, o),
                              least_multiple(mem->align, o->align)};
            struct chain_copy over = chain_takes_over(w, plan, n, i, k);
            if (over.follower >= 0) {
                if (is_kept_apart(t, k)) return false;
                continue;
            }
            if (!stand(t->needle, mem, p, count, &x)) return false;
            address[i][k] = x.at;
            p[count++] = x;
        }
    }
    return true;
}

bool banks_chain(struct work *w, const struct moves *moves, const struct nest *n,
                 const struct plan *plan, const int64_t *at, int64_t (*address)[MAX_OPERANDS]) {
    bool good = n->core < 0 || !has_rules(&w->task[n->core]);
    struct piece *p = memory_array((size_t)n->nchain * MAX_OPERANDS + 1, sizeof *p);
    for (int m = 0; m < w->m->nmemories && good; m++) {
        bool any = false;
        for (int i = 0; i < n->nchain; i++) {
            const struct task *t = &w->task[n->chain[i].task];
            for (int k = 0; k < t->nops; k++) any |= t->op[k].memory == m && is_kept_apart(t, k);
        }
        p[0] = (struct piece){-1, -1, 0, at[m], 1};
        good = !any ||
               (bank_bytes(&w->m->memory[m]) && assign_chain(w, moves, n, plan, m, p, address));
    }
    free(p);
    return good;
}

bool banks_chain_fits(struct work *w, const struct moves *moves, const struct nest *n,
                      const struct plan *plan, const int64_t *core) {
    int64_t at[MAX_MEMORIES] = {0};
    if (!banks_of_chain(w, n)) return true;
    recur_start(w, n, at);
    for (int m = 0; m < w->m->nmemories; m++) at[m] += core[m];
    int64_t(*address)[MAX_OPERANDS] = memory_array((size_t)n->nchain, sizeof *address);
    bool fits = banks_chain(w, moves, n, plan, at, address);
    free(address);
    return fits;
}
