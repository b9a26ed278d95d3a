/* Queues that share a memory need syncs between them; memories need something that fills them. */
#include "machines/check.h"
#include "ir/memory.h"
#include <stdlib.h>
#include <string.h>

enum { QUEUES = 64 };

struct use {
    uint64_t reads, writes; /* bit q */
};

static void add_use(const struct machine *m, struct use *use, int memory, int queue, bool reads,
                    bool writes) {
    uint64_t bit = queue < 0 ? 0 : UINT64_C(1) << queue;
    for (; memory >= 0; memory = m->memory[memory].caches >= 0 ? m->memory[memory].caches
                                                               : m->memory[memory].alias) {
        if (reads) use[memory].reads |= bit;
        if (writes) use[memory].writes |= bit;
    }
}

static struct use *find_uses(const struct machine *m) {
    struct use *use = memory_array((size_t)m->nmemories + 1, sizeof *use);
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        for (int k = 0; k < x->noperands; k++) {
            const struct operand *o = &x->operand[k];
            bool writes = o->role == ROLE_OUT || o->role == ROLE_INOUT;
            for (int j = 0; j < o->nmemories; j++)
                add_use(m, use, o->memory[j], x->queue, o->role != ROLE_OUT, writes);
            add_use(m, use, o->also, x->queue, false, true);
        }
        for (int k = 0; k < x->nloops; k++)
            add_use(m, use, x->loop[k].table, x->queue, true, false);
    }
    for (int i = 0; i < m->nconfigures; i++)
        for (int k = 0; k < m->configure[i].nclobbers; k++)
            add_use(m, use, m->configure[i].clobbers[k], m->configure[i].queue, false, true);
    for (int i = 0; i < m->nfallbacks; i++)
        for (int k = 0; k < m->fallback[i].nmemories; k++)
            add_use(m, use, m->fallback[i].memory[k], m->fallback[i].queue, true, true);
    return use;
}

static uint64_t queues_inside(const struct machine *m, int unit) {
    uint64_t set = 0;
    for (int q = 0; q < m->nqueues; q++)
        if (unit_inside(m, m->queue[q].unit, unit)) set |= UINT64_C(1) << q;
    return set;
}

static void find_reach(const struct machine *m, uint64_t *reach) {
    for (int q = 0; q < m->nqueues; q++) {
        reach[q] = UINT64_C(1) << q;
        for (int s = 0; s < m->nsyncs; s++) {
            const struct sync *y = &m->sync[s];
            bool barrier = y->kind == SYNC_BARRIER && y->barrier_unit >= 0;
            uint64_t from = barrier ? queues_inside(m, y->barrier_unit) : y->from,
                     to = barrier ? from : y->to;
            if (from >> q & 1) reach[q] |= to;
        }
    }
    for (int middle = 0; middle < m->nqueues; middle++)
        for (int q = 0; q < m->nqueues; q++)
            if (reach[q] >> middle & 1) reach[q] |= reach[middle];
}

void check_queues(const struct machine *m, struct diags *d) {
    uint64_t reach[QUEUES] = {0};
    struct use *use = find_uses(m);
    find_reach(m, reach);
    for (int y = 0; y < m->nmemories; y++)
        for (int a = 0; a < m->nqueues; a++)
            for (int b = 0; b < m->nqueues; b++) {
                bool writes = use[y].writes >> a & 1,
                     uses = (use[y].reads | use[y].writes) >> b & 1;
                if (a == b || !writes || !uses || reach[a] >> b & 1) continue;
                if (m->memory[y].caches >= 0 || m->memory[y].alias >= 0)
                    continue; /* said of the memory behind it */
                check_error(d, m->memory[y].at,
                            "queue '%s' writes memory '%s', which queue '%s' uses, but no chain of "
                            "syncs leads from '%s' to '%s', expected one",
                            m->queue[a].id, m->memory[y].id, m->queue[b].id, m->queue[a].id,
                            m->queue[b].id);
            }
    free(use);
}

/* What a queue must tell or wait for where none of its instructions stands, as between two loops,
 * needs an instruction or a text of its own. */
void check_signals(const struct machine *m, struct diags *d) {
    for (int q = 0; q < m->nqueues; q++)
        for (int s = 0, said = 0; s < m->nsyncs && !said; s++) {
            const struct sync *y = &m->sync[s];
            bool pushes = y->from >> q & 1 && !machine_signals_alone(m, q, s, false),
                 pops = y->to >> q & 1 && !machine_signals_alone(m, q, s, true);
            said = y->kind == SYNC_TOKEN && (pushes || pops);
            if (said)
                diag_warn(d, m->queue[q].at.file, m->queue[q].at.line, 0,
                          "queue '%s' can %s '%s' only with an instruction that does something, "
                          "expected also one without buffers (kernel nop() { }), or an emit of "
                          "the sync",
                          m->queue[q].id, pushes ? "push" : "pop", y->id);
        }
}

void check_reach(const struct machine *m, struct diags *d) {
    bool *filled = memory_array((size_t)m->nmemories + 1, sizeof *filled);
    struct use *use = find_uses(m);
    for (int y = 0; y < m->nmemories; y++) {
        bool written = false;
        for (int i = 0; i < m->ninstrs && !written; i++)
            for (int k = 0; k < m->instr[i].noperands; k++) {
                const struct operand *o = &m->instr[i].operand[k];
                written = written || o->also == y;
                for (int j = 0; j < o->nmemories && (o->role == ROLE_OUT || o->role == ROLE_INOUT);
                     j++)
                    written = written || o->memory[j] == y;
            }
        for (int i = 0; i < m->nfallbacks && !written; i++)
            for (int k = 0; k < m->fallback[i].nmemories; k++)
                written = written || m->fallback[i].memory[k] == y;
        filled[y] = written || memory_is_home(m, y);
    }
    for (int pass = 0; pass < m->nmemories; pass++)
        for (int y = 0; y < m->nmemories; y++) {
            int behind = m->memory[y].caches >= 0 ? m->memory[y].caches : m->memory[y].alias;
            if (behind >= 0) filled[y] = filled[behind] = filled[y] || filled[behind];
        }
    for (int y = 0; y < m->nmemories; y++)
        if (use[y].reads && !filled[y])
            check_error(d, m->memory[y].at,
                        "nothing fills memory '%s', which instructions read, expected a move to it",
                        m->memory[y].id);
    free(filled);
    free(use);
}
