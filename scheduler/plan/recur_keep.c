/* Copies that stay over all steps of a recurrence: filled once before it, where they fit beside
 * what each step needs (DESIGN §5, "prime"). */
#include "ir/number.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"

enum { STREAM_SHARE = 8 }; /* of a memory, for copies that pass where a part stays */

int recur_outermost(const struct work *w, const struct nest *n) {
    int k = w->p->stmt[n->first].scope - 1;
    while (k >= 0 && w->scope[k].parent >= 0) k = w->scope[k].parent;
    return k;
}

/* How many steps the nest has in one of the outermost recurrence. */
static double inner_steps(const struct work *w, const struct nest *n) {
    double steps = 1;
    for (int k = w->p->stmt[n->first].scope - 1; k >= 0 && w->scope[k].parent >= 0;
         k = w->scope[k].parent)
        steps *= (double)w->p->axis[w->scope[k].axis].extent;
    return steps;
}

int64_t part_open(struct work *w, const struct nest *n) {
    struct axis *a = &w->p->axis[n->part_axis];
    int64_t extent = a->extent;
    if (n->part_n) a->extent = n->part_n;
    return extent;
}

void part_close(struct work *w, const struct nest *n, int64_t extent) {
    w->p->axis[n->part_axis].extent = extent;
}

int64_t recur_bytes(struct work *w, const struct nest *n, int i) {
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    if (!t || recur_outermost(w, n) < 0) return 0;
    const struct opnd *o = &t->op[i];
    if (o->where != IN_LOCAL || o->read < 0 || o->writes || o->in.n > 0 ||
        graph_is_static(w->m, o->memory) || w->m->memory[o->memory].size < 0)
        return 0;
    const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
    struct region r;
    struct plan none = {.nloops = 0};
    if (acc->has_fill || recur_copy_scope(w, t->stmt, acc) || work_home(w, acc->buffer)->is_tile)
        return 0;
    int64_t extent = part_open(w, n);
    plan_region(w, &none, t, acc, &o->geom, 0, &r);
    part_close(w, n, extent);
    return slot_bytes(w, o, &r);
}

/* Least bytes of the memory that the steps' own copies take: two words of tiles of each operand
 * that does not stay. */
static int64_t least_room(struct work *w, const struct nest *n, int memory) {
    int64_t sum = 0;
    const struct task *t = n->core >= 0 ? &w->task[n->core] : NULL;
    for (int i = 0; t && i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || o->memory != memory || (n->kept >> i & 1)) continue;
        sum += 2 * o->geom.tile * (int64_t)type_size(o->decl->type);
    }
    return sum;
}

static bool fits(struct work *w, int scope, int memory, int64_t kept) {
    int64_t most = 0;
    for (int k = 0; k < w->nnests; k++) {
        int64_t room =
            recur_outermost(w, &w->nest[k]) == scope ? least_room(w, &w->nest[k], memory) : 0;
        if (room > most) most = room;
    }
    return kept + most <= graph_capacity(w->m, memory);
}

/* What a fill costs in each step, cycles of its queue. */
static double fill_cycles(struct work *w, const struct moves *moves, const struct nest *n, int i) {
    const struct task *t = &w->task[n->core];
    struct region r;
    const struct access *acc = operand_sample(w, t, &t->op[i], false, &r);
    struct plan none = {.nloops = 0};
    plan_region(w, &none, t, acc, &t->op[i].geom, 0, &r);
    return operand_cost(w, moves, acc->buffer, &t->op[i], &r, false);
}

static bool has_room(struct work *w, struct nest *n, int i, int64_t bytes) {
    int scope = recur_outermost(w, n), m = w->task[n->core].op[i].memory;
    uint32_t before = n->kept;
    if (!n->part_n) n->kept |= UINT32_C(1) << i;
    bool room = fits(w, scope, m, w->kept_bytes[scope][m] + bytes);
    n->kept = before;
    return room;
}

static void keep(struct work *w, struct nest *n, int i, int64_t bytes) {
    n->kept |= UINT32_C(1) << i;
    w->kept_bytes[recur_outermost(w, n)][w->task[n->core].op[i].memory] += bytes;
}

/* What every task's needle takes along the axis at once; 0: they do not agree. */
static int64_t part_unit(const struct work *w, const struct nest *n, int axis) {
    int64_t unit = 1;
    for (int k = 0; k < nest_ntasks(n); k++) {
        const struct task *t = &w->task[nest_task(n, k)];
        const struct needle *nd = t->needle;
        for (int x = 0; x < nd->nx; x++) {
            if (t->axis[x] != axis) continue;
            int64_t u = nd->ranged[x] < 0 ? nd->hi[x] : nd->step[x];
            if (u % unit && unit % u) return 0;
            if (u > unit) unit = u;
        }
    }
    return unit;
}

/* The longest axis along which a part of the operand goes with a part of the result. */
static int part_axis(const struct work *w, const struct nest *n, int i) {
    const struct task *t = &w->task[n->core];
    const struct stmt *st = &w->p->stmt[t->stmt];
    int best = -1;
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(st->axes >> a & 1) || (t->reductions >> a & 1) || !part_unit(w, n, a) ||
            !access_varies(w->p, &st->read[t->op[i].read], a))
            continue;
        if (best < 0 || w->p->axis[a].extent > w->p->axis[best].extent) best = a;
    }
    return best;
}

/* How much of the operand fits beside copies of the rest, which pass in each step: extent along the
 * axis; 0: none. */
static int64_t part_extent(struct work *w, const struct nest *n, int i, int axis, int64_t *bytes) {
    int m = w->task[n->core].op[i].memory;
    int64_t unit = part_unit(w, n, axis), units = w->p->axis[axis].extent / unit;
    struct nest part = *n;
    part.part_axis = axis;
    for (int64_t k = units - 1; k > 0; k--) {
        part.part_n = k * unit;
        *bytes = recur_bytes(w, &part, i);
        if (has_room(w, &part, i, *bytes + graph_capacity(w->m, m) / STREAM_SHARE))
            return part.part_n;
    }
    return 0;
}

static bool agrees(struct work *w, const struct nest *n, int i, const char *what, double each,
                   double stays) {
    const struct task *t = &w->task[n->core];
    struct candidate c[2] = {{"each step", each, NULL}, {what, stays, NULL}};
    const char *subject = arena_printf(w->arena, "'%s' of statement %d over the steps",
                                       t->op[i].decl->buffer, t->stmt);
    return work_ask(w, QUESTION_RESIDENCY, subject, c, 2, 1) == 1;
}

/* One nest for the part that stays, one for the rest. */
static void split(struct work *w, struct nest *n, int i, int axis, int64_t extent, int64_t bytes) {
    struct nest *rest = &w->nest[w->nnests];
    n->part_axis = axis;
    *rest = *n;
    rest->number = w->nnests;
    rest->part_lo = extent;
    rest->part_n = w->p->axis[axis].extent - extent;
    n->part_n = extent;
    n->next_part = w->nnests++;
    keep(w, n, i, bytes);
}

/* A part stays where the whole does not fit. */
static void ask(struct work *w, const struct moves *moves, struct nest *n, int i, int64_t bytes) {
    double cycles = fill_cycles(w, moves, n, i);
    int64_t steps = w->p->axis[w->scope[recur_outermost(w, n)].axis].extent, some;
    double once = cycles / (double)(steps > 2 ? steps : 2); /* one step is planned as many are */
    if (has_room(w, n, i, bytes)) {
        if (agrees(w, n, i, "stays", cycles, once)) keep(w, n, i, bytes);
        return;
    }
    int axis = n->part_n || n->kept ? -1 : part_axis(w, n, i);
    int64_t extent = axis >= 0 ? part_extent(w, n, i, axis, &some) : 0;
    double share = extent ? (double)extent / (double)w->p->axis[axis].extent : 0;
    if (extent && agrees(w, n, i, "stays in part", cycles, cycles * (1 - share) + once * share))
        split(w, n, i, axis, extent, some);
}

/* The rest of each memory is the nest's. */
static void reserve(struct work *w, struct nest *n) {
    int scope = recur_outermost(w, n);
    for (int m = 0; scope >= 0 && m < w->m->nmemories; m++) {
        n->reserved[m] = w->kept_bytes[scope][m];
        for (int i = 0; n->kept && i < w->task[n->core].nops; i++)
            if ((n->kept >> i & 1) && w->task[n->core].op[i].memory == m)
                n->reserved[m] -= recur_bytes(w, n, i);
    }
}

/* Those first that would bring the most: each byte that stays saves one a step, and whole operands
 * need no copy in slots. */
void recur_keep(struct work *w, const struct moves *moves) {
    w->kept_bytes = arena_array(w->arena, (size_t)w->nscopes + 1, sizeof *w->kept_bytes);
    while (!w->keep_nothing) {
        struct nest *best = NULL;
        int operand = -1;
        double most = 0;
        for (int k = 0; k < w->nnests && w->nscopes; k++)
            for (int i = 0; w->nest[k].core >= 0 && i < w->task[w->nest[k].core].nops; i++) {
                int64_t bytes = w->nest[k].asked >> i & 1 ? 0 : recur_bytes(w, &w->nest[k], i);
                double brought = (double)bytes * inner_steps(w, &w->nest[k]);
                if (brought <= most) continue;
                most = brought;
                best = &w->nest[k];
                operand = i;
            }
        if (!best) break;
        best->asked |= UINT32_C(1) << operand;
        ask(w, moves, best, operand, recur_bytes(w, best, operand));
    }
    for (int k = 0; k < w->nnests; k++) reserve(w, &w->nest[k]);
}

bool recur_release(struct work *w) {
    bool any = false;
    for (int k = 0; k < w->nnests; k++) any |= w->nest[k].kept || w->nest[k].part_n;
    w->keep_nothing |= any;
    return any;
}

int64_t recur_address(struct work *w, const struct nest *n, int operand) {
    int scope = recur_outermost(w, n), memory = w->task[n->core].op[operand].memory;
    int64_t at = 0;
    for (const struct nest *x = w->nest; x <= n; x++)
        for (int i = 0; x->kept && recur_outermost(w, x) == scope && i < w->task[x->core].nops;
             i++) {
            const struct opnd *o = &w->task[x->core].op[i];
            if (!(x->kept >> i & 1) || o->memory != memory) continue;
            int64_t align = least_multiple(w->m->memory[memory].align, o->align);
            at = (at + align - 1) / align * align;
            if (x == n && i == operand) return at;
            at += recur_bytes(w, x, i);
        }
    return at;
}

void recur_start(const struct work *w, const struct nest *n, int64_t *at) {
    int scope = recur_outermost(w, n);
    for (int m = 0; scope >= 0 && m < w->m->nmemories; m++) at[m] = w->kept_bytes[scope][m];
}
