/* Nests: a reduction with the fill that starts it and the elementwise statements that follow it
 * while its result is still there. */
#include "ir/number.h"
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
#include "scheduler/plan/tiling.h"
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
    for (int i = 0; i < t->nops; i++)
        for (const struct attachment *x = t->op[i].attached; x; x = x->next)
            if (x->side == CHANGES)
                rename_task(w, &w->task[x->task], map);
            else
                stmt_rename(w->p, attached_stmt(w, x), map);
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

/* Where copies hold whole blocks and needles take parts of them. */
static int64_t begins_along(const struct work *w, const struct task *t, int axis) {
    int64_t unit = 1;
    for (int k = 0; k < t->nops; k++) {
        const struct opnd *o = &t->op[k];
        uint64_t inside = 0;
        for (int d = 0; d < MAX_DIMS; d++)
            if (o->geom.grain[d] != o->geom.block[d]) inside |= UINT64_C(1) << d;
        if (o->where == IN_LOCAL) unit = least_multiple(unit, blocks_along(w, t, o, axis, inside));
    }
    return unit;
}

static void add_grain(const struct work *w, struct nest *n, const struct task *t) {
    for (int a = 0; a < MAX_AXES; a++) {
        struct grain *g = &n->grain[a];
        bool fixed, in = w->p->stmt[t->stmt].axes >> a & 1;
        int64_t takes = task_grain(t, a, &fixed);
        if (!g->least || takes < g->least) g->least = takes;
        if (fixed && takes > g->fixed) g->fixed = takes;
        g->block = least_multiple(g->block ? g->block : 1, in ? begins_along(w, t, a) : 1);
    }
    for (int k = 0; k < t->nops; k++)
        n->registers |= t->op[k].where == IN_LOCAL && graph_is_static(w->m, t->op[k].memory);
}

static void find_grains(const struct work *w, struct nest *n) {
    memset(n->grain, 0, sizeof n->grain);
    for (int i = 0; i < n->nchain; i++) add_grain(w, n, &w->task[n->chain[i].task]);
}

void nest_rename(struct work *w, struct nest *n, const int *map) {
    int zero = n->core >= 0 ? w->task[n->core].init : -1;
    for (int i = 0; i < nest_ntasks(n); i++) rename_task(w, &w->task[nest_task(n, i)], map);
    find_grains(w, n);
    if (zero >= 0) stmt_rename(w->p, &w->p->stmt[zero], map);
}

/* A fixed extent on one side must be the other's too: they share the loops over grains. map: from
 * the axes of t to the nest's. */
static bool grains_agree(const struct work *w, const struct nest *n, const struct task *t,
                         const int *map) {
    for (uint64_t left = n->nchain ? w->p->stmt[t->stmt].axes : 0; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        const struct grain *g = &n->grain[map[a]];
        bool fixed;
        int64_t takes = task_grain(t, a, &fixed);
        if (takes < g->fixed || (fixed && g->least < takes)) return false;
    }
    return true;
}

/* Fills of a chain come straight from home. */
static bool comes_by_route(const struct task *t, const struct nest *n, const struct work *w) {
    for (uint32_t own = beside_reads(w, n, t); own; own &= own - 1)
        if (t->op[__builtin_ctz(own)].in.n) return true;
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
    const struct task *first = &w->task[n->chain[0].task];
    const struct stmt *a = &w->p->stmt[first->stmt], *b = &w->p->stmt[t->stmt];
    const struct opnd *x = task_result(first), *y = task_result(t);
    return w->p->buffer[a->dst.buffer].ndims == w->p->buffer[b->dst.buffer].ndims &&
           x->where == IN_LOCAL && y->where == IN_LOCAL && x->memory == y->memory &&
           same_inner(&x->geom, &y->geom) && nest_axes(w, &a->dst, a->axes, &b->dst, b->axes, map);
}

static bool nest_has(const struct work *w, const struct nest *n, int task) {
    return task >= 0 && (task == n->core || nest_place(w, n, task) >= 0);
}

/* What the nest reads of the buffer that a statement writes is what this one writes over: each
 * grain reads its elements before. */
static bool writes_behind(const struct work *w, const struct nest *n, const struct stmt *st,
                          const int *map) {
    int count;
    const int *use = buffer_uses(w, st->dst.buffer, &count);
    for (int i = 0; i < count; i++) {
        const struct stmt *ms = &w->p->stmt[use[i]];
        if (!nest_has(w, n, w->task_of[use[i]])) continue;
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

/* Does anybody behind the statement, which reads the buffer, read it? */
static bool read_later(const struct work *w, int stmt, int buffer) {
    bool later = false;
    int count;
    const int *use = buffer_uses(w, buffer, &count);
    for (int i = 0; i < count; i++) {
        if (later && stmt_reads(&w->p->stmt[use[i]], buffer)) return true;
        later |= use[i] == stmt;
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
        if (nest_maker(w, n, b) >= 0 && read_later(w, t->stmt, b)) return true;
    }
    return false;
}

/* So do the moves that compute and store its result, too. */
static bool moves_behind(const struct work *w, const struct nest *n, const struct task *t,
                         const int *map) {
    for (int i = 0; i < t->nops; i++)
        for (const struct attachment *x = t->op[i].attached; x; x = x->next)
            if (x->side != FILLS && !writes_behind(w, n, attached_stmt(w, x), map)) return false;
    return true;
}

/* Does what the statement's r-th read names lie, in the memory of the maker's result, as its task
 * takes it there? */
static bool hands_on(const struct work *w, int maker, const struct task *t, int r) {
    const struct opnd *made = task_result(&w->task[maker]), *use = NULL;
    const struct access *read = w->p->stmt[t->stmt].read;
    for (int o = 0; o < t->nops; o++)
        if (t->op[o].read >= 0 && t->op[o].where == IN_LOCAL &&
            access_equal(w->p, &read[t->op[o].read], &read[r]))
            use = &t->op[o];
    return use && made->where == IN_LOCAL && use->memory == made->memory &&
           same_inner(&use->geom, &made->geom);
}

/* The task's axes to the nest's, as all that it reads of the nest says; -1 where nothing does. */
static bool map_axes(const struct work *w, const struct nest *n, const struct task *t, int *map) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    bool any = false;
    memset(map, -1, sizeof *map * MAX_AXES);
    for (int r = 0; r < st->nreads; r++) {
        int again[MAX_AXES], maker = nest_maker(w, n, st->read[r].buffer);
        if (maker < 0) continue;
        const struct stmt *ms = &w->p->stmt[w->task[maker].stmt];
        memset(again, -1, sizeof again);
        if (!nest_axes(w, &ms->dst, ms->axes, &st->read[r], st->axes, again) ||
            (any && memcmp(again, map, sizeof again)) || !hands_on(w, maker, t, r))
            return false;
        memcpy(map, again, sizeof again);
        any = true;
    }
    return any || stands_beside(w, n, t, map);
}

/* A queue that starts what is ready computes one grain while it waits for the results of another,
 * as long as both are in its window. */
static bool is_in_window(const struct work *w, const struct nest *n) {
    int64_t window = w->m->queue[w->task[nest_head(n)].needle->in->queue].window;
    return window < 0 || 2 * (n->nchain + 1) <= window;
}

/* Its instruction takes over what those before it leave: on their queue, on one in step with it,
 * or, behind sums, on another one of the same unit that hears of it from theirs and tells it when
 * it is done. */
static bool takes_over(const struct work *w, const struct nest *n, const struct task *t) {
    int own = t->needle->in->queue, head = w->task[nest_head(n)].needle->in->queue,
        last = n->nchain ? w->task[n->chain[0].task].needle->in->queue : head;
    if (queues_in_step(w->edges, own, last)) return true;
    if (n->core < 0 || n->nchain || !may_wait(w, &w->task[n->core]) || !may_wait(w, t) ||
        attached_at(task_result(&w->task[n->core]), CHANGES) ||
        w->m->queue[own].unit != w->m->queue[head].unit || t->needle->in->completes >= 0)
        return false;
    return take_turns(w, head, own);
}

/* May task k follow the nest's statements grain by grain? Renames its axes when it may. */
static bool fuse(struct work *w, const struct moves *moves, struct nest *n, int k) {
    struct task *t = &w->task[k];
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct needle *head = w->task[nest_head(n)].needle;
    int map[MAX_AXES];
    if (t->reductions || t->init >= 0 || st->combine != COMBINE_SET || t->apart ||
        join_has(w, t->stmt) || !is_in_window(w, n) || spoils(w, n, t) ||
        nest_maker(w, n, st->dst.buffer) >= 0)
        return false;
    if (!takes_over(w, n, t) || head->in->completes >= 0) /* it would have to wait */
        return false;
    if (!map_axes(w, n, t, map) || !writes_behind(w, n, st, map) || !moves_behind(w, n, t, map) ||
        !beside_comes(w, moves, n, t, left_alone(t)) || comes_by_route(t, n, w) ||
        !grains_agree(w, n, t, map))
        return false;
    rename_task(w, t, map);
    return true;
}

/* A core's result that others read too goes home whole; then nothing follows it grain by grain. */
static bool stays(const struct work *w, const struct nest *n, int next) {
    if (n->core < 0) return true;
    struct nest more = *n;
    w->task[next].place = more.nchain;
    more.chain[more.nchain++].task = next;
    return !needs_home(w, &more, w->p->stmt[w->task[n->core].stmt].dst.buffer);
}

/* Its next follower, whose axes are the nest's. */
static void follow(struct work *w, const struct moves *moves, struct nest *n, int task) {
    struct task *t = &w->task[task];
    t->place = n->nchain;
    n->chain[n->nchain] = (struct follower){
        .task = task, .own = beside_reads(w, n, t), .whole = beside_whole(w, moves, n, t)};
    add_grain(w, n, t);
    n->nchain++;
    w->nfollowers++;
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

bool nest_starts(const struct work *w, int init, int core) {
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

/* Does an elementwise nest begin with the task? Otherwise the fallback runs it. */
static bool begins_chain(struct work *w, const struct moves *moves, struct nest *n, int task) {
    const struct task *t = &w->task[task];
    bool by_route = comes_by_route(t, n, w);
    if (by_route)
        task_demote(w, task,
                    "an operand passes several memories, which only reductions' do so far");
    else if (left_alone(t))
        task_demote(w, task,
                    "no memory leads to where it reads, and it cannot follow the instruction that "
                    "leaves it there, tile by tile");
    else
        follow(w, moves, n, task);
    return n->nchain > 0;
}

/* Room for a nest of each statement, and for parts: kept, since long chains are cut often. */
static void nests_begin(struct work *w) {
    int most = 2 * w->norder + 1;
    if (most > w->cap_nests) {
        w->cap_nests = 2 * most;
        w->nest = arena_array(w->arena, (size_t)w->cap_nests, sizeof *w->nest);
        w->follower = arena_array(w->arena, (size_t)w->cap_nests, sizeof *w->follower);
    }
    w->nnests = w->nfollowers = 0;
}

bool nests_make(struct work *w, const struct moves *moves) {
    order_starts(w);
    nests_begin(w);
    for (int i = 0; i < w->norder; i++) {
        int k = w->task_of[w->order[i]], at = i;
        if (k < 0) continue;
        if (!align_zero(w, &w->task[k])) {
            task_demote(w, k, "its zero fill is addressed otherwise");
            continue;
        }
        struct nest *n = &w->nest[w->nnests++];
        *n = (struct nest){.number = w->nnests - 1,
                           .core = -1,
                           .init = -1,
                           .chain = w->follower + w->nfollowers,
                           .first = w->order[i],
                           .given = -1,
                           .next_part = -1};
        int next = next_task(w, i, &at);
        if (nest_starts(w, k, next) && adopt_init(w, k, next)) {
            n->init = k;
            k = next;
            i = at;
        }
        if (w->task[k].reductions || w->p->stmt[w->task[k].stmt].combine != COMBINE_SET ||
            join_has(w, w->task[k].stmt))
            n->core = k;
        else if (!begins_chain(w, moves, n, k)) {
            w->nnests--;
            continue;
        }
        for (;;) {
            next = next_task(w, i, &at);
            if (next < 0 || !stays(w, n, next) || !fuse(w, moves, n, next)) break;
            follow(w, moves, n, next);
            i = at;
        }
        chain_lives(w, n);
    }
    return true;
}

bool nest_cut(struct work *w, const struct nest *n) {
    int least = n->core >= 0 ? 0 : 1, half = n->nchain / 2;
    for (int i = 0; i < n->nchain; i++) { /* half, one less, one more, and so on */
        int at = half + (i % 2 ? -(i + 1) / 2 : i / 2);
        if (at < least || at >= n->nchain || left_alone(&w->task[n->chain[at].task])) continue;
        w->task[n->chain[at].task].apart = true;
        return true;
    }
    return false;
}
