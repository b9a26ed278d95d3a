/* States with one slot or several. A loop whose instructions need no more values than there are
 * slots, all the same in each iteration, is configured before it; otherwise inside, with the value
 * in the slot whose next use is furthest replaced. */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct needed { /* a value */
    const struct sx *field[MAX_FIELDS];
    double weight; /* issues, those in loops counting more */
    bool varies;   /* with a loop inside of what is looked at */
};

struct values {
    struct needed *at;
    int n, cap;
};

struct slots { /* what they hold */
    const struct sx *const *field[MAX_SLOTS];
    bool pinned[MAX_SLOTS]; /* by a loop around */
};

static const struct need *need_of(const struct placer *p, const struct issue_node *n) {
    const struct instr *in = &p->w->m->instr[n->instr];
    for (int k = 0; k < in->nneeds; k++)
        if (in->need[k].state == p->state) return &in->need[k];
    return NULL;
}

static bool issue_value(struct placer *p, const struct issue_node *n, const struct sx **field) {
    const struct need *need = need_of(p, n);
    if (!need) return false;
    if (need_fields(p->w, n, need, field)) return true;
    return placer_fail(p, n->stmt, "a value depends on more than sizes and strides");
}

static void add_value(struct placer *p, struct values *v, const struct sx *const *field,
                      double weight) {
    for (int k = 0; k < v->n; k++)
        if (fields_same(v->at[k].field, field, p->nfields)) {
            v->at[k].weight += weight;
            return;
        }
    GROW(p->w->arena, v->at, v->n, v->cap);
    v->at[v->n] = (struct needed){.weight = weight};
    memcpy(v->at[v->n++].field, field, sizeof(struct sx *) * (size_t)p->nfields);
}

static void collect(struct placer *p, const struct node *n, double weight, struct values *v) {
    const struct sx *field[MAX_FIELDS];
    if (n->kind == NODE_ISSUE && issue_value(p, n->issue, field)) add_value(p, v, field, weight);
    for (int k = 0; n->kind == NODE_LOOP && k < n->loop->nbody; k++)
        collect(p, &n->loop->body[k], 16 * weight, v);
}

static bool varies_in(const struct placer *p, const struct sx *const *field,
                      const struct node *loop) {
    for (int var = 0; var < p->w->s->nvars; var++)
        for (int f = 0; f < p->nfields; f++)
            if (sx_uses(field[f], var) && binds(loop, var)) return true;
    return false;
}

static int holds(const struct placer *p, const struct slots *now, const struct sx *const *field) {
    for (int s = 0; s < p->nslots; s++)
        if (now->field[s] && fields_same(now->field[s], field, p->nfields)) return s;
    return -1;
}

static bool uses(struct placer *p, const struct node *n, const struct sx *const *field) {
    struct values v = {0};
    collect(p, n, 1, &v);
    for (int k = 0; k < v.n; k++)
        if (fields_same(v.at[k].field, field, p->nfields)) return true;
    return false;
}

/* An empty slot, or the one whose value is used again last (in this block). */
static int victim(struct placer *p, const struct slots *now, const struct node *rest, int n) {
    int best = -1, furthest = -1;
    for (int s = 0; s < p->nslots; s++) {
        int next = 0;
        if (now->pinned[s]) continue;
        if (!now->field[s]) return s;
        while (next < n && !uses(p, &rest[next], now->field[s])) next++;
        if (next <= furthest) continue;
        furthest = next;
        best = s;
    }
    return best;
}

static int ensure(struct placer *p, struct nodes *out, struct slots *now,
                  const struct sx *const *field, const struct node *rest, int n) {
    struct arena *a = &p->w->s->arena;
    int slot = holds(p, now, field);
    if (slot >= 0) return slot;
    slot = victim(p, now, rest, n);
    if (slot < 0) return -1;
    struct state_value *set = arena_alloc(a, sizeof *set);
    *set = (struct state_value){p->state, slot,
                                arena_copy(a, field, sizeof(struct sx *) * (size_t)p->nfields)};
    now->field[slot] = set->value;
    add_configure(p->w, out, configure_node(p->w, p->configure, set, 1), p->users);
    return slot;
}

static void place_block(struct placer *p, struct node **at, int *n, struct slots *now);

static int most_used(const struct values *v, const bool *taken) {
    int best = -1;
    for (int k = 0; k < v->n; k++)
        if (!taken[k] && !v->at[k].varies && (best < 0 || v->at[k].weight > v->at[best].weight))
            best = k;
    return best;
}

static int free_slots(const struct placer *p, const struct slots *now) {
    int n = 0;
    for (int s = 0; s < p->nslots; s++) n += !now->pinned[s];
    return n;
}

/* Before the loop: all its values, if they stay and fit; else the most used, one slot being left
 * for the others. At its head (and after it, as it may not run) the other slots hold nothing known.
 */
static void place_loop(struct placer *p, struct nodes *out, struct node *loop, struct slots *now,
                       const struct node *rest, int n) {
    struct values v = {0};
    bool all = true;
    collect(p, loop, 1, &v);
    bool *taken = arena_array(p->w->arena, (size_t)v.n + 1, sizeof *taken);
    for (int k = 0; k < v.n; k++) all &= !(v.at[k].varies = varies_in(p, v.at[k].field, loop));
    struct slots inner = *now, head = {0};
    int room = 0;
    for (int s = 0; s < p->nslots; s++) {
        if (now->pinned[s]) head.field[s] = now->field[s];
        head.pinned[s] = now->pinned[s];
    }
    for (int k = 0; k < v.n; k++) {
        int slot = holds(p, now, v.at[k].field);
        taken[k] = slot >= 0 && now->pinned[slot];
        room += !taken[k];
    }
    all &= room <= free_slots(p, now);
    int most = all ? room : free_slots(p, now) - 1;
    for (int k; most > 0 && (k = most_used(&v, taken)) >= 0; most--) {
        taken[k] = true;
        int slot = ensure(p, out, &inner, v.at[k].field, rest, n);
        inner.pinned[slot] = head.pinned[slot] = true;
        head.field[slot] = inner.field[slot];
    }
    struct slots after = head;
    for (int s = 0; s < p->nslots; s++) after.pinned[s] = now->pinned[s];
    if (all) { /* nothing changes inside */
        for (int s = 0; s < p->nslots; s++) after.field[s] = inner.field[s];
    } else {
        place_block(p, &loop->loop->body, &loop->loop->nbody, &head);
    }
    *now = after;
    nodes_add(p->w, out, *loop);
}

static bool own_instance(const struct placer *p, const struct loop_node *l) {
    return l->kind == LOOP_PARALLEL && unit_inside(p->w->m, p->w->m->state[p->state].unit, l->unit);
}

static void place_block(struct placer *p, struct node **at, int *n, struct slots *now) {
    struct nodes out = {0};
    for (int i = 0; i < *n; i++) {
        struct node *node = &(*at)[i];
        const struct sx *field[MAX_FIELDS];
        if (node->kind == NODE_LOOP && own_instance(p, node->loop)) {
            struct slots none = {0};
            place_block(p, &node->loop->body, &node->loop->nbody, &none);
            memset(now, 0, sizeof *now);
        } else if (node->kind == NODE_LOOP && needs_state(p->w, node, p->state)) {
            place_loop(p, &out, node, now, *at + i + 1, *n - i - 1);
            continue;
        } else if (node->kind == NODE_ISSUE && issue_value(p, node->issue, field)) {
            if (ensure(p, &out, now, field, *at + i + 1, *n - i - 1) < 0) p->failed = true;
        }
        nodes_add(p->w, &out, *node);
    }
    *at = out.at;
    *n = out.n;
}

bool configure_slots(struct work *w, int state, int configure, struct nodes *run) {
    int64_t count = w->m->state[state].count;
    struct placer p = {.w = w,
                       .state = state,
                       .configure = configure,
                       .nslots = count > MAX_SLOTS ? MAX_SLOTS : (int)count,
                       .nfields = w->m->state[state].nfields,
                       .users = state_users(w, run->at, run->n, state)};
    struct slots now = {0};
    place_block(&p, &run->at, &run->n, &now);
    run->cap = run->n;
    return !p.failed;
}

/* ---- objects: made before anything runs ---- */

bool configure_objects(struct work *w, int state, int configure, struct nodes *prepare,
                       const struct nodes *run) {
    struct placer p = {
        .w = w, .state = state, .configure = configure, .nfields = w->m->state[state].nfields};
    struct values v = {0};
    struct nodes out = {0};
    for (int i = 0; i < run->n; i++) collect(&p, &run->at[i], 1, &v);
    int64_t count = w->m->state[state].count;
    int stmt = state_stmt(w, run->at, run->n, state);
    if (count >= 0 && v.n > count)
        return configure_error(w, state, stmt, "more values are needed than it has slots");
    for (int k = 0; k < v.n; k++) {
        struct state_value *set = arena_alloc(&w->s->arena, sizeof *set);
        *set = (struct state_value){
            state, k,
            arena_copy(&w->s->arena, v.at[k].field, sizeof(struct sx *) * (size_t)p.nfields)};
        for (int f = 0; f < p.nfields; f++)
            if (!sx_constant(set->value[f], NULL))
                return configure_error(w, state, stmt,
                                       "a value changes while it runs, but it is set before");
        nodes_add(w, &out, configure_node(w, configure, set, 1));
    }
    nodes_append(w, &out, prepare);
    *prepare = out;
    return !p.failed;
}
