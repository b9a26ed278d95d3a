/* What a chain reads and the inner loops over its grains do not move, such as a row's divisor: it
 * is filled before them, once. What comes whole is filled before all loops of the nest. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

static bool stands_still(const struct work *w, const struct access *acc, const struct several *x) {
    for (int i = 0; i < x->n; i++)
        if (access_varies(w->p, acc, x->axis[i])) return false;
    return true;
}

static bool needs_no_signals(const struct work *w, const struct nodes *fill, int exec) {
    for (uint64_t q = nodes_queues(w, fill->at, fill->n); q; q &= q - 1) {
        int from = __builtin_ctzll(q);
        if (from != exec && (edge_of_queue(w->edges, from, exec).kind != EDGE_FREE ||
                             edge_of_queue(w->edges, exec, from).kind != EDGE_FREE))
            return false;
    }
    return true;
}

/* It has its place to itself: only what all axes move takes the places of others (chain_lives). */
static bool may_lead(const struct emitter *e, int i, int operand) {
    const struct opnd *o = &e->w->task[e->nest->chain[i].task].op[operand];
    const struct held *h = &e->own[i][operand];
    return o->read >= 0 && !o->writes && !h->led && h->slots <= 1 &&
           chain_needs_hold(e->nest, i, operand);
}

/* Rows that repeat along an axis which turns inside are as many as one grain takes, which has the
 * place. */
static bool fill_ahead(struct emitter *e, struct nodes *out, const struct task *t,
                       const struct opnd *o, const struct access *acc, struct held *h,
                       const struct several *x) {
    struct along all[MAX_AXES];
    memcpy(all, e->at, sizeof all);
    for (int i = 0; i < x->n; i++)
        if (x->axis[i] == o->geom.repeat_axis) e->at[x->axis[i]].size = val_const(x->grain[i]);
    bool ok = hold_fill(e, out, t, o, acc, h, NULL);
    memcpy(e->at, all, sizeof all);
    return ok;
}

bool chain_lead(struct emitter *e, struct nodes *out, const struct several *x, int loops) {
    struct work *w = e->w;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i].task];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct held *h = &e->own[i][k];
            struct nodes fill = {0};
            if (!x->n || !may_lead(e, i, k)) continue;
            const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
            if (!stands_still(w, acc, x)) continue;
            struct held keep = *h;
            renew_place(e, h);
            if (!fill_ahead(e, &fill, t, o, acc, h, x)) return false;
            if (!needs_no_signals(w, &fill, e->chain)) {
                *h = keep;
                continue;
            }
            h->led = loops;
            nodes_append(w, out, &fill);
        }
    }
    return true;
}

void chain_lead_end(struct emitter *e, int loops) {
    for (int i = 0; i < e->nest->nchain; i++)
        for (int k = 0; k < e->w->task[e->nest->chain[i].task].nops; k++)
            if (e->own[i][k].led == loops) e->own[i][k].led = 0;
}

bool chain_whole(struct emitter *e, struct nodes *out) {
    struct work *w = e->w;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i].task];
        for (uint32_t left = e->nest->chain[i].whole; left; left &= left - 1) {
            int k = __builtin_ctz(left);
            struct held *h = &e->own[i][k];
            const struct opnd *o = t->op[k].source ? t->op[k].source : &t->op[k];
            renew_place(e, h);
            if (!fill_in_step(e, out, t, o, &w->p->stmt[t->stmt].read[o->read], h)) return false;
            h->led = WHOLE;
        }
    }
    return true;
}
