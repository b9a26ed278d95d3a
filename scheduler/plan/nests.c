/* Nests: a reduction with the fill that starts it and the elementwise statements that follow it
 * while its result is still there. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

static bool same_inner(const struct geom *a, const struct geom *b) {
    if (a->ninner != b->ninner || a->tile != b->tile || a->n != b->n || a->row != b->row ||
        a->loose != b->loose || a->even != b->even || a->fragment != b->fragment)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->at[i].dim != b->at[i].dim ||
            (a->at[i].dim >= 0 && a->step[a->at[i].dim] != b->step[b->at[i].dim]) ||
            a->at[i].div != b->at[i].div || a->at[i].mod != b->at[i].mod ||
            (i < a->ninner && a->stride[i] != b->stride[i]))
            return false;
    return true;
}

static void rename_task(struct work *w, struct task *t, const int *map) {
    join_rename(w, t->stmt, map);
    stmt_rename(w->p, &w->p->stmt[t->stmt], map);
    for (int i = 0; i < t->nops; i++) {
        if (t->op[i].attached[false])
            stmt_rename(w->p, attached_stmt(w, t->op[i].attached[false]), map);
        for (const struct attachment *x = t->op[i].beside; x; x = x->next)
            stmt_rename(w->p, attached_stmt(w, x), map);
    }
    for (int x = 0; x < t->needle->nx; x++)
        if (t->axis[x] >= 0) t->axis[x] = map[t->axis[x]];
    uint64_t reductions = 0;
    for (uint64_t left = t->reductions; left; left &= left - 1)
        reductions |= UINT64_C(1) << map[__builtin_ctzll(left)];
    t->reductions = reductions; /* the order of a tile's dimensions goes by them */
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where != IN_IMM) {
            geom_make(w, t, &t->op[i]);
            route_link(w, &t->op[i]);
        }
}

bool nest_unify(const struct work *w, int maker, int core, int read, int *map) {
    const struct stmt *made = &w->p->stmt[w->task[maker].stmt],
                      *used = &w->p->stmt[w->task[core].stmt];
    for (int a = 0; a < w->p->naxes; a++) map[a] = -1;
    uint64_t taken = 0;
    for (int r = 0; r < used->nreads; r++) /* axes that the read does not name keep their names */
        if (used->read[r].has_fill && r == read) return false;
    struct stmt probe = *used;
    for (int a = 0; a < w->p->naxes; a++)
        if ((used->axes >> a & 1) && !access_varies(w->p, &used->read[read], a))
            probe.axes &= ~(UINT64_C(1) << a);
    if (!nest_axes(w, &made->dst, made->axes, &used->read[read], probe.axes, map)) return false;
    for (int a = 0; a < w->p->naxes; a++) {
        if (map[a] < 0) map[a] = a;
        if ((used->axes >> a & 1) && (taken >> map[a] & 1)) return false;
        if (used->axes >> a & 1) taken |= UINT64_C(1) << map[a];
    }
    return true;
}

static void rename_begins(struct work *w, const struct task *t, const int *map) {
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].attached[true])
            stmt_rename(w->p, attached_stmt(w, t->op[i].attached[true]), map);
}

void nest_rename(struct work *w, struct nest *n, const int *map) {
    int zero = n->core >= 0 ? w->task[n->core].init : -1;
    int task[NEST_TASKS], count = nest_tasks(n, task);
    for (int i = 0; i < count; i++) rename_task(w, &w->task[task[i]], map);
    if (zero >= 0) stmt_rename(w->p, &w->p->stmt[zero], map);
    if (n->core < 0) return;
    struct task *t = &w->task[n->core];
    rename_begins(w, t, map);
    for (int i = 0; i < t->nafter; i++) {
        rename_begins(w, &w->task[t->after[i]], map);
        rename_task(w, &w->task[t->after[i]], map);
    }
}

/* A fixed extent on one side must be the other's too: they share the loops over grains. map: from
 * the axes of t to the nest's. */
static bool grains_agree(const struct work *w, const struct nest *n, const struct task *t,
                         const int *map) {
    for (int a = 0; a < w->p->naxes; a++) {
        if (!(w->p->stmt[t->stmt].axes >> a & 1)) continue;
        for (int i = 0; i < n->nchain; i++) {
            bool f, g;
            int64_t e = task_grain(&w->task[n->chain[i]], map[a], &f), h = task_grain(t, a, &g);
            if ((f && h < e) || (g && e < h)) return false;
            if (f && g && e != h) return false;
        }
    }
    return true;
}

/* Operands of a fused statement that come from home must be filled by its own queue, or by one that
 * hardware interlocks. */
static bool fills_are_local(struct work *w, const struct moves *moves, const struct task *t,
                            const struct nest *n) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_LOCAL || o->read < 0) continue;
        int b = st->read[o->read].buffer;
        bool made = n->core >= 0 && w->p->stmt[w->task[n->core].stmt].dst.buffer == b;
        for (int k = 0; k < n->nchain; k++)
            made |= w->p->stmt[w->task[n->chain[k]].stmt].dst.buffer == b;
        if (made) continue;
        for (int k = 0; k < moves->n; k++) {
            const struct instr *in = moves->at[k].needle->in;
            if (move_fills(in, o->memory) &&
                !queues_in_step(w->edges, in->queue, t->needle->in->queue))
                return false;
        }
    }
    return true;
}

/* Fills of a chain come straight from home. */
static bool comes_by_route(const struct task *t, const struct nest *n, const struct work *w) {
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].in.n && chain_needs_hold(w, n, t, &t->op[i])) return true;
    return false;
}

/* It follows nobody, but reads what only who makes it leaves there. */
static bool left_alone(const struct task *t) {
    bool handed = false;
    for (int i = 0; i < t->nops; i++) handed |= t->op[i].handed;
    return handed;
}

/* In registers a value that waits for others takes one from them. */
static bool may_wait(const struct work *w, const struct task *t) {
    for (int i = 0; i < t->nops; i++)
        if (t->op[i].where == IN_LOCAL && graph_is_static(w->m, t->op[i].memory)) return false;
    return true;
}

/* It reads nothing of the elementwise nest, but writes the same elements: its value may wait for
 * who reads both. */
static bool stands_beside(const struct work *w, const struct nest *n, const struct task *t,
                          int *map) {
    if (n->core >= 0 || !may_wait(w, t)) return false;
    const struct task *first = &w->task[n->chain[0]];
    const struct stmt *a = &w->p->stmt[first->stmt], *b = &w->p->stmt[t->stmt];
    const struct opnd *x = task_result(first), *y = task_result(t);
    return w->p->buffer[a->dst.buffer].ndims == w->p->buffer[b->dst.buffer].ndims &&
           x->where == IN_LOCAL && y->where == IN_LOCAL && x->memory == y->memory &&
           same_inner(&x->geom, &y->geom) && nest_axes(w, &a->dst, a->axes, &b->dst, b->axes, map);
}

/* What the nest reads of the buffer that a statement writes is what this one writes over: each
 * grain reads its elements before. */
static bool writes_behind(const struct work *w, const struct nest *n, const struct stmt *st,
                          const int *map) {
    for (int i = n->core < 0 ? 0 : -1; i < n->nchain; i++) {
        const struct stmt *ms = &w->p->stmt[w->task[i < 0 ? n->core : n->chain[i]].stmt];
        for (int r = 0; r < ms->nreads; r++) {
            int again[MAX_AXES];
            memset(again, -1, sizeof again);
            if (ms->read[r].buffer == st->dst.buffer &&
                (!nest_axes(w, &ms->read[r], ms->axes, &st->dst, st->axes, again) ||
                 ms->read[r].has_fill || memcmp(again, map, sizeof again)))
                return false;
        }
    }
    return true;
}

static bool read_later(const struct work *w, int stmt, int buffer) {
    bool later = false;
    for (int i = 0; i < w->norder; i++) {
        if (later && stmt_reads(&w->p->stmt[w->order[i]], buffer)) return true;
        later |= w->order[i] == stmt;
    }
    return w->p->buffer[buffer].role != ROLE_TEMP || recur_carries(w, buffer);
}

/* It would change in place what the nest made and others want: it takes a copy from home, in a nest
 * of its own. */
static bool spoils(const struct work *w, const struct nest *n, const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (!o->writes || o->read < 0) continue;
        int b = st->read[o->read].buffer;
        for (int k = n->core < 0 ? 0 : -1; k < n->nchain; k++)
            if (w->p->stmt[w->task[k < 0 ? n->core : n->chain[k]].stmt].dst.buffer == b &&
                read_later(w, t->stmt, b))
                return true;
    }
    return false;
}

/* So do the moves that compute and store its result, too. */
static bool moves_behind(const struct work *w, const struct nest *n, const struct task *t,
                         const int *map) {
    for (int i = 0; i < t->nops; i++) {
        const struct attachment *x = t->op[i].attached[false];
        if (x && !writes_behind(w, n, attached_stmt(w, x), map)) return false;
        for (x = t->op[i].beside; x; x = x->next)
            if (!writes_behind(w, n, attached_stmt(w, x), map)) return false;
    }
    return true;
}

/* May task k follow the nest's statements grain by grain? Renames its axes when it may. */
static bool fuse(struct work *w, const struct moves *moves, struct nest *n, int k) {
    struct task *t = &w->task[k];
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct task *last = n->core >= 0 ? &w->task[n->core] : &w->task[n->chain[0]];
    if (t->reductions || t->init >= 0 || st->combine != COMBINE_SET || n->nchain == MAX_CHAIN ||
        t->apart || join_has(w, t->stmt) || spoils(w, n, t))
        return false;
    if (!queues_in_step(w->edges, t->needle->in->queue, last->needle->in->queue) ||
        last->needle->in->completes >= 0) /* it would have to wait */
        return false;
    int map[MAX_AXES], from = -1, reads = 0;
    memset(map, -1, sizeof map);
    for (int i = -1; i < n->nchain; i++) {
        int maker = i < 0 ? n->core : n->chain[i];
        if (maker < 0) continue;
        const struct stmt *ms = &w->p->stmt[w->task[maker].stmt];
        if (ms->dst.buffer == st->dst.buffer) return false;
        for (int r = 0; r < st->nreads; r++) {
            if (st->read[r].buffer != ms->dst.buffer) continue;
            int again[MAX_AXES];
            memset(again, -1, sizeof again);
            if (!nest_axes(w, &ms->dst, ms->axes, &st->read[r], st->axes, again)) return false;
            if (reads++ && memcmp(again, map, sizeof map)) return false;
            memcpy(map, again, sizeof map);
            from = maker;
            const struct opnd *made = task_result(&w->task[maker]), *use = NULL;
            for (int o = 0; o < t->nops; o++)
                if (t->op[o].read == r && t->op[o].where == IN_LOCAL) use = &t->op[o];
            if (!use || made->where != IN_LOCAL || use->memory != made->memory ||
                !same_inner(&use->geom, &made->geom))
                return false;
        }
    }
    if (from < 0 && !stands_beside(w, n, t, map)) return false;
    if (!writes_behind(w, n, st, map) || !moves_behind(w, n, t, map)) return false;
    if (!fills_are_local(w, moves, t, n) || comes_by_route(t, n, w)) return false;
    if (!grains_agree(w, n, t, map)) return false;
    rename_task(w, t, map);
    return true;
}

/* A core's result that others read too goes home whole; then nothing follows it grain by grain. */
static bool stays(const struct work *w, const struct nest *n, int next) {
    if (n->core < 0) return true;
    if (n->nchain == MAX_CHAIN) return false;
    int b = w->p->stmt[w->task[n->core].stmt].dst.buffer;
    struct nest more = *n;
    more.chain[more.nchain++] = next;
    return !needs_home(w, &more, b);
}

static int next_task(const struct work *w, int at, int *where) {
    for (int i = at + 1; i < w->norder; i++) {
        int s = w->order[i];
        if (w->task_of[s] == -2 || w->in_prepare[s]) continue;
        *where = i;
        return w->p->stmt[s].scope == w->p->stmt[w->order[at]].scope ? w->task_of[s] : -1;
    }
    return -1;
}

/* The statement that starts the core's result, when it stands just before it and writes the same
 * tiles. */
static bool starts(const struct work *w, int init, int core) {
    if (init < 0 || core < 0) return false;
    const struct task *a = &w->task[init], *b = &w->task[core];
    if (a->reductions || !b->reductions || b->init >= 0 || b->needle->in->completes >= 0 ||
        w->p->stmt[a->stmt].combine != COMBINE_SET)
        return false;
    const struct stmt *sa = &w->p->stmt[a->stmt], *sb = &w->p->stmt[b->stmt];
    const struct opnd *ra = task_result(a), *rb = task_result(b);
    if (sa->dst.buffer != sb->dst.buffer || ra->where != IN_LOCAL || ra->memory != rb->memory ||
        !same_inner(&ra->geom, &rb->geom))
        return false;
    for (int i = 0; i < a->nops; i++) /* changed in place, it is read too */
        if (a->op[i].read >= 0 && a->op[i].where == IN_LOCAL) return false;
    return !stmt_reads(sb, sa->dst.buffer) &&
           queues_in_step(w->edges, a->needle->in->queue, b->needle->in->queue);
}

static bool adopt_init(struct work *w, int init, int core) {
    int map[MAX_AXES];
    memset(map, -1, sizeof map);
    const struct stmt *sa = &w->p->stmt[w->task[init].stmt], *sb = &w->p->stmt[w->task[core].stmt];
    if (!nest_axes(w, &sb->dst, sb->axes, &sa->dst, sa->axes, map)) return false;
    rename_task(w, &w->task[init], map);
    return true;
}

/* The zero fill inside an issue counts by the core's axes. */
static bool align_zero(struct work *w, const struct task *t) {
    if (t->init < 0) return true;
    struct stmt *zero = &w->p->stmt[t->init];
    const struct stmt *st = &w->p->stmt[t->stmt];
    return stmt_adopt(w, zero, &zero->dst, &st->dst, st->axes, NULL);
}

/* Room for a nest of each statement, and for parts: kept, since long chains are cut often. */
static void nests_begin(struct work *w) {
    int most = 2 * w->norder + 1;
    if (most > w->cap_nests) {
        w->cap_nests = 2 * most;
        w->nest = arena_array(w->arena, (size_t)w->cap_nests, sizeof *w->nest);
    }
    w->nnests = 0;
}

bool nests_make(struct work *w, const struct moves *moves) {
    nests_begin(w);
    for (int i = 0; i < w->norder; i++) {
        int k = w->task_of[w->order[i]], at = i;
        if (k < 0) continue;
        if (!align_zero(w, &w->task[k])) {
            task_demote(w, k, "its zero fill is addressed otherwise");
            continue;
        }
        struct nest *n = &w->nest[w->nnests++];
        *n = (struct nest){
            .core = -1, .init = -1, .first = w->order[i], .given = -1, .next_part = -1};
        int next = next_task(w, i, &at);
        if (starts(w, k, next) && adopt_init(w, k, next)) {
            n->init = k;
            k = next;
            i = at;
        }
        if (w->task[k].reductions || w->p->stmt[w->task[k].stmt].combine != COMBINE_SET ||
            join_has(w, w->task[k].stmt))
            n->core = k;
        else
            n->chain[n->nchain++] = k;
        if (n->core < 0 && comes_by_route(&w->task[k], n, w)) {
            task_demote(w, k,
                        "an operand passes several memories, which only reductions' do so far");
            w->nnests--;
            continue;
        }
        if (n->core < 0 && left_alone(&w->task[k])) {
            task_demote(w, k,
                        "no memory leads to where it reads, and it cannot follow the instruction "
                        "that leaves it there, "
                        "tile by tile");
            w->nnests--;
            continue;
        }
        for (;;) {
            next = next_task(w, i, &at);
            if (next < 0 || !stays(w, n, next) || !fuse(w, moves, n, next)) break;
            n->chain[n->nchain++] = next;
            i = at;
        }
    }
    return true;
}

bool nest_cut(struct work *w, const struct nest *n) {
    int least = n->core >= 0 ? 0 : 1, half = n->nchain / 2;
    for (int i = 0; i < n->nchain; i++) { /* half, one less, one more, and so on */
        int at = half + (i % 2 ? -(i + 1) / 2 : i / 2);
        if (at < least || at >= n->nchain || left_alone(&w->task[n->chain[at]])) continue;
        w->task[n->chain[at]].apart = true;
        return true;
    }
    return false;
}
