/* Hardware loops and the issue inside: one entry of the queue. Operands move in equal steps, except
 * over the entries of a table. */
#include "scheduler/clock/clock_int.h"

#include <string.h>

static bool loop_trips(struct engine *e, const struct hardware *h, struct executed *x) {
    x->nloops = h->table < 0 ? h->nloops : h->table;
    x->iterations = 1;
    for (int k = 0; k < h->nloops; k++) {
        const struct loop_node *l = h->loop[k];
        int64_t lo = value_of(e, l->lo), hi = value_of(e, l->hi);
        uint64_t n = hi <= lo ? 0 : ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)l->step + 1;
        if (n < 1 || n > (uint64_t)h->counter[k]->max)
            return engine_error(e, x->node,
                                "hardware loop '%s' of '%s' runs %llu times, not 1 to %lld",
                                h->counter[k]->id, e->machine->instr[h->issue->instr].id,
                                (unsigned long long)n, (long long)h->counter[k]->max);
        e->value[l->var] = lo;
        x->trips[k] = (int64_t)n;
        if (__builtin_mul_overflow(x->iterations, x->trips[k], &x->iterations))
            return engine_error(e, x->node, "hardware loops run too often");
    }
    return true;
}

/* How far the operands move from the first iteration of each loop to its second. */
static bool loop_moves(struct engine *e, const struct hardware *h, const struct shape *s,
                       struct executed *x) {
    for (int k = 0; k < x->nloops; k++) {
        if (x->trips[k] < 2) continue;
        e->value[h->loop[k]->var] += h->loop[k]->step;
        for (int o = 0; o < e->machine->instr[h->issue->instr].noperands; o++) {
            int64_t at = 0;
            if (!address_of(e, x->node, s, o, &at)) return false;
            x->move[k][o] = at - x->address[o];
        }
        e->value[h->loop[k]->var] -= h->loop[k]->step;
    }
    return true;
}

/* Tables are few: the same one is kept once. */
static const struct entries *entries_keep(struct engine *e, const struct entries *new) {
    size_t bytes = (size_t)(new->n *new->noperands) * sizeof *new->move;
    for (const struct entries *x = e->entries; x; x = x->next)
        if (x->n == new->n && x->noperands == new->noperands && !memcmp(x->move, new->move, bytes))
            return x;
    struct entries *kept = arena_alloc(&e->arena, sizeof *kept);
    *kept = *new;
    kept->move = arena_copy(&e->arena, new->move, bytes);
    kept->next = e->entries;
    e->entries = kept;
    for (int64_t t = 0; t < kept->n; t++)
        for (int o = 0; o < kept->noperands; o++) {
            int64_t move = kept->move[t * kept->noperands + o];
            if (move < kept->lo[o]) kept->lo[o] = move;
            if (move > kept->hi[o]) kept->hi[o] = move;
        }
    return kept;
}

/* All that the moves depend on beside the entry's number; false: too much. */
static bool key_of(struct engine *e, const struct hardware *h, struct entries_key *key) {
    const struct loop_node *u = h->loop[h->table];
    key->loop = u;
    key->n = 0;
    key->value[key->n++] = value_of(e, u->lo);
    key->value[key->n++] = value_of(e, u->hi);
    for (int o = 0; o < e->machine->instr[h->issue->instr].noperands; o++) {
        const struct arg *a = &h->issue->arg[o];
        int left = ENTRIES_KEY - key->n,
            n = a->place < 0 ? 0 : sx_rest(a->offset, u->var, e->value, key->value + key->n, left);
        if (n < 0) return false;
        key->n += n;
    }
    return true;
}

static struct entries_key *key_slot(struct engine *e, const struct entries_key *key) {
    uint64_t hash = (uint64_t)(uintptr_t)key->loop >> 4;
    for (int i = 0; i < key->n; i++) {
        hash = (hash ^ (uint64_t)key->value[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    if (!e->keys) e->keys = arena_array(&e->arena, ENTRIES_KEYS, sizeof *e->keys);
    return &e->keys[hash % ENTRIES_KEYS];
}

static bool entry_moves(struct engine *e, const struct hardware *h, const struct shape *s,
                        struct executed *x) {
    const struct loop_node *u = h->loop[h->table];
    struct entries new = {.n = x->trips[h->table],
                          .noperands = e->machine->instr[h->issue->instr].noperands};
    size_t needed = (size_t)(new.n *new.noperands);
    struct entries_key key, *slot = key_of(e, h, &key) ? key_slot(e, &key) : NULL;
    if (slot && slot->loop == key.loop && slot->n == key.n &&
        !memcmp(slot->value, key.value, sizeof *key.value * (size_t)key.n)) {
        x->entries = slot->entries;
        return true;
    }
    if (needed > e->moves_cap) {
        e->moves = arena_array(&e->arena, 2 * needed, sizeof *e->moves);
        e->moves_cap = 2 * needed;
    }
    new.move = e->moves;
    for (int64_t t = 0; t < new.n; t++, e->value[u->var] += u->step) {
        if (!count_step(e)) return false;
        for (int o = 0; o < new.noperands; o++) {
            int64_t at = x->address[o];
            if (!address_of(e, x->node, s, o, &at)) return false;
            new.move[t * new.noperands + o] = at - x->address[o];
        }
    }
    e->value[u->var] = value_of(e, u->lo);
    x->entries = key.entries = entries_keep(e, &new);
    if (slot) *slot = key;
    return true;
}

/* Of all iterations: the first and the last that each operand reaches lie in its place. */
static bool reach_inside(struct engine *e, const struct hardware *h, const struct shape *s,
                         const struct executed *x) {
    const struct instr *in = &e->machine->instr[h->issue->instr];
    for (int o = 0; o < in->noperands; o++) {
        const struct arg *a = &h->issue->arg[o];
        const struct reach *r = &s->reach[o];
        if (a->place < 0 || !r->elements) continue;
        const struct place *p = &e->schedule->place[a->place];
        int64_t size = (int64_t)type_size(in->operand[o].type), first = value_of(e, a->offset),
                last = first;
        for (int k = 0; k < x->nloops; k++)
            *(x->move[k][o] < 0 ? &first : &last) += x->move[k][o] * (x->trips[k] - 1);
        if (x->entries) first += x->entries->lo[o], last += x->entries->hi[o];
        if (first + r->lo * size < 0 || last + (r->hi + 1) * size > p->bytes)
            return engine_error(e, x->node, "operand '%s' reaches beyond place '%s'",
                                in->operand[o].buffer, p->name);
    }
    return true;
}

/* ---- work ---- */

/* Which of the loops move the axis: bit k. */
static uint64_t movers(const struct hardware *h, int axis) {
    uint64_t out = 0;
    for (int k = 0; h->issue->base[axis] && k < h->nloops; k++)
        if (sx_uses(h->issue->base[axis], h->loop[k]->var)) out |= UINT64_C(1) << k;
    return out;
}

static int64_t axis_points(struct engine *e, const struct issue_node *i, const struct shape *s,
                           int axis) {
    int64_t lo = i->base[axis] ? value_of(e, i->base[axis]) : 0, hi = lo + 1,
            all = e->schedule->program->axis[axis].extent;
    for (int k = 0; k < s->program->naxes; k++)
        if (i->axis[k] == axis) hi = lo + s->program->axis[k].extent;
    if (lo < 0) lo = 0;
    if (hi > all) hi = all;
    return hi > lo ? hi - lo : 0;
}

static int64_t all_points(struct engine *e, const struct hardware *h, const struct shape *s,
                          struct executed *x, int loop) {
    if (loop == h->nloops) {
        also_work(e, s, x);
        return issue_work(e, h->issue, h->issue->stmt, s);
    }
    const struct loop_node *l = h->loop[loop];
    int64_t sum = 0;
    for (int64_t t = 0; t < x->trips[loop]; t++, e->value[l->var] += l->step)
        sum += all_points(e, h, s, x, loop + 1);
    e->value[l->var] = value_of(e, l->lo);
    return sum;
}

/* Points of the statement that all iterations execute: where each axis is moved by one loop at
 * most, a product of sums. */
static int64_t work_of(struct engine *e, const struct hardware *h, const struct shape *s,
                       struct executed *x) {
    const struct program *p = e->schedule->program;
    int64_t points = 1;
    if (h->issue->stmt < 0) return 0;
    const struct stmt *st = &p->stmt[h->issue->stmt];
    uint64_t by[MAX_AXES] = {0};
    bool apart = !st->nwhere && h->issue->nalso == 0;
    for (int a = 0; a < p->naxes && apart; a++) {
        by[a] = (st->axes >> a & 1) ? movers(h, a) : 0;
        apart = !(by[a] & (by[a] - 1));
    }
    if (!apart) return all_points(e, h, s, x, 0);
    for (int k = -1; k < h->nloops; k++) {
        uint64_t mine = k < 0 ? 0 : UINT64_C(1) << k;
        int64_t sum = 0;
        for (int64_t t = 0; t < (k < 0 ? 1 : x->trips[k]); t++) {
            int64_t here = 1;
            for (int a = 0; a < p->naxes; a++)
                if ((st->axes >> a & 1) && by[a] == mine) here *= axis_points(e, h->issue, s, a);
            sum += here;
            if (k >= 0) e->value[h->loop[k]->var] += h->loop[k]->step;
        }
        if (k >= 0) e->value[h->loop[k]->var] = value_of(e, h->loop[k]->lo);
        points *= sum;
    }
    return points;
}

bool walk_hardware(struct engine *e, const struct loop_node *l) {
    struct hardware h;
    if (!hardware_issue(e->machine, l, &h))
        return engine_error(e, NULL, "hardware loops are not around one issue that has them");
    const struct node *node = &h.loop[h.nloops - 1]->body[0];
    const struct instr *in = &e->machine->instr[h.issue->instr];
    struct executed x = {.node = node, .queue = in->queue, .instance = e->instance};
    if (!loop_trips(e, &h, &x) || !sizes_of(e, node, &x)) return false;
    const struct shape *s = shape_of(e, node, &x);
    if (!s) return false;
    if (!addresses_count(e, &x)) return dispatch(e, &x);
    for (int o = 0; o < in->noperands; o++)
        if (!address_of(e, node, s, o, &x.address[o])) return false;
    if (!loop_moves(e, &h, s, &x) || (h.table >= 0 && !entry_moves(e, &h, s, &x)) ||
        !reach_inside(e, &h, s, &x))
        return false;
    x.work = work_of(e, &h, s, &x);
    return dispatch(e, &x);
}
