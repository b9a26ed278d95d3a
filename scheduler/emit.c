/* One nest as a rolled tree in program order (SCHEDULING §4): fills at their depths, the issue, the
 * grains that follow, drains; tokens as §5 places them. */
#include "scheduler/emit_int.h"
#include <assert.h>
#include <string.h>

static const double PARALLEL_CYCLES = 30000; /* smaller nests do not repay waking threads */

/* ---- the core ---- */

struct pacer {
    int queue, depth, credits, bracket;
    bool war;
};

/* How often depth d is reached in one turn of the nest. */
static double trips_inside(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    return plan_trips(e->w, p, d) / plan_trips(e->w, p, e->nest->nprefix);
}

/* At most as many credits as the syncs of both directions hold tokens. */
static int within_depth(const struct emitter *e, int credits, int queue) {
    for (int way = 0; way < 2; way++) {
        int sync = way ? graph_sync(e->w->m, e->exec, queue) : graph_sync(e->w->m, queue, e->exec);
        int64_t depth = sync >= 0 ? e->w->m->sync[sync].depth : -1;
        if (depth >= 0 && depth < credits) credits = (int)depth;
    }
    return credits;
}

static struct pacer pacer_make(const struct emitter *e, int queue) {
    const struct plan *p = &e->nest->plan;
    int root = e->nest->nprefix;
    struct pacer c = {.queue = queue, .depth = -1, .credits = 3, .bracket = root};
    for (int i = 0; i < e->t->nops; i++)
        if (e->fill_queue[i] == queue && p->hold[i].depth > c.depth) c.depth = p->hold[i].depth;
    for (int i = 0; i < e->t->nops; i++)
        if (e->fill_queue[i] == queue && p->hold[i].depth == c.depth &&
            p->hold[i].slots < c.credits)
            c.credits = p->hold[i].slots;
    c.credits = within_depth(e, c.credits, queue);
    c.war = c.depth > root && trips_inside(e, c.depth) > 1;
    for (int i = 0; i < e->t->nops; i++) {
        int d = p->hold[i].depth;
        if (e->fill_queue[i] != queue || d >= c.depth || d < root || trips_inside(e, d) <= 1)
            continue;
        if (p->hold[i].slots == 1 || plan_least_inner(e->w, p, d, c.depth) < c.credits)
            if (d > c.bracket) c.bracket = d;
    }
    return c;
}

static bool is_paced(const struct emitter *e, int queue) {
    return queue >= 0 && graph_sync(e->w->m, queue, e->exec) >= 0;
}

static int pacers(const struct emitter *e, struct pacer *out) {
    int n = 0;
    for (int i = 0; i < e->t->nops; i++) {
        bool lasting = e->nest->plan.hold[i].depth < e->nest->nprefix;
        bool known = !is_paced(e, e->fill_queue[i]) || lasting;
        for (int k = 0; k < n; k++) known |= out[k].queue == e->fill_queue[i];
        if (!known) out[n++] = pacer_make(e, e->fill_queue[i]);
    }
    return n;
}

static bool core_depth(struct emitter *e, struct nodes *out, int d);

bool fill_core(struct emitter *e, struct nodes *out, int i) {
    const struct opnd *o = &e->t->op[i];
    struct held *h = &e->held[i];
    renew_place(e, h);
    if (h->slots > 1) add_rotate(e->w, out, h->place);
    return hold_fill(e, out, e->t, o, task_access(e->w, e->t, o, o->read < 0), h);
}

static bool start_result(struct emitter *e, struct nodes *out, int i, int d) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[i];
    struct held *h = &e->held[i];
    int back = e->drained && e->store >= 0 ? graph_sync(w->m, e->store, e->exec) : -1;
    if (back >= 0 && trips_inside(e, d) > 1) add_sync(w, out, e->exec, false, back);
    renew_place(e, h);
    if (h->slots > 1) add_rotate(w, out, h->place);
    region_here(e, e->t, o, task_access(w, e->t, o, true), &h->whole);
    h->slot = slot_make(&w->s->arena, &o->geom, &h->whole);
    e->made[0].buffer = w->p->stmt[e->t->stmt].dst.buffer;
    e->made[0].held = h;
    e->nmade = 1;
    if (e->nest->init >= 0) return init_loops(e, out, 0);
    if (o->read >= 0 || (o->accumulates && e->t->init < 0))
        return emit_transfer(w, e->moves, out, task_access(w, e->t, o, o->read < 0)->buffer, o, h,
                             &h->whole, true);
    return true;
}

static bool finish_result(struct emitter *e, struct nodes *out, int i, int d) {
    struct work *w = e->w;
    const struct opnd *o = &e->t->op[i];
    if (e->nest->nchain) return grain_loops(e, out, 0);
    if (!e->drained || o->where != IN_LOCAL) return true;
    struct nodes moves = {0};
    if (!emit_transfer(w, e->moves, &moves, w->p->stmt[e->t->stmt].dst.buffer, o, &e->held[i],
                       &e->held[i].whole, false))
        return false;
    int give = graph_sync(w->m, e->exec, e->store), back = graph_sync(w->m, e->store, e->exec);
    if (give >= 0) {
        add_sync(w, out, e->exec, true, give);
        add_sync(w, out, e->store, false, give);
    }
    for (int k = 0; k < moves.n; k++) nodes_add(w, out, moves.at[k]);
    if (back >= 0 && trips_inside(e, d) > 1) add_sync(w, out, e->store, true, back);
    return true;
}

/* Whole tiles and tail need a body each, unless a loop further in splits the same axis. */
static bool splits(const struct emitter *e, int d) {
    const struct plan *p = &e->nest->plan;
    if (!p->is_static) return false;
    for (int i = d + 1; i < p->nloops; i++)
        if (p->loop[i].axis == p->loop[d].axis && !loop_unrolled(e->w, e->nest, p, i)) return false;
    return true;
}

static bool core_body(struct emitter *e, struct nodes *out, int d) {
    const struct plan *p = &e->nest->plan;
    if (d < p->nloops)
        return emit_loop(e, out, p->loop[d].axis, p->loop[d].tile, splits(e, d),
                         loop_unrolled(e->w, e->nest, p, d), core_depth, d + 1);
    struct held *held[MAX_OPERANDS];
    for (int i = 0; i < e->t->nops; i++) held[i] = &e->held[i];
    emit_issue(e, out, e->t, held);
    return true;
}

static bool fills_at(struct emitter *e, struct nodes *out, int d, const struct pacer *pacer) {
    const struct plan *p = &e->nest->plan;
    for (int i = 0; i < e->t->nops; i++) {
        bool mine = pacer ? e->fill_queue[i] == pacer->queue
                          : e->fill_queue[i] >= 0 && !is_paced(e, e->fill_queue[i]);
        if (mine && !e->t->op[i].writes && p->hold[i].depth == d && !fill_core(e, out, i))
            return false;
    }
    return true;
}

/* Everything inside loop[0..d): brackets, results that start here, fills, what is inside, drains.
 */
static bool core_depth(struct emitter *e, struct nodes *out, int d) {
    struct work *w = e->w;
    const struct plan *p = &e->nest->plan;
    struct pacer pc[MAX_OPERANDS];
    int n = pacers(e, pc);
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL && p->hold[i].depth == d &&
            !start_result(e, out, i, d))
            return false;
    for (int k = 0; k < n; k++)
        for (int c = 0; pc[k].war && pc[k].bracket == d && c < pc[k].credits; c++)
            add_sync(w, out, e->exec, true, graph_sync(w->m, e->exec, pc[k].queue));
    for (int k = 0; k < n; k++) {
        bool paced = pc[k].depth == d;
        if (paced && pc[k].war)
            add_sync(w, out, pc[k].queue, false, graph_sync(w->m, e->exec, pc[k].queue));
        if (!fills_at(e, out, d, &pc[k])) return false;
        if (!paced) continue;
        add_sync(w, out, pc[k].queue, true, graph_sync(w->m, pc[k].queue, e->exec));
        add_sync(w, out, e->exec, false, graph_sync(w->m, pc[k].queue, e->exec));
    }
    if (!fills_at(e, out, d, NULL) || !core_body(e, out, d)) return false;
    for (int k = 0; k < n; k++)
        if (pc[k].depth == d && pc[k].war)
            add_sync(w, out, e->exec, true, graph_sync(w->m, e->exec, pc[k].queue));
    for (int k = 0; k < n; k++)
        for (int c = 0; pc[k].war && pc[k].bracket == d && c < pc[k].credits; c++)
            add_sync(w, out, pc[k].queue, false, graph_sync(w->m, e->exec, pc[k].queue));
    for (int i = 0; i < e->t->nops; i++)
        if (e->t->op[i].writes &&
            (e->t->op[i].where == IN_LOCAL ? p->hold[i].depth == d : p->depth_out == d) &&
            !finish_result(e, out, i, d))
            return false;
    return true;
}

/* ---- setting up ---- */

static int add_place(struct work *w, int buffer, int memory, int64_t *at, int64_t bytes,
                     int slots) {
    struct schedule *s = w->s;
    struct place *pl = arena_array(&s->arena, (size_t)s->nplaces + 1, sizeof *pl);
    memcpy(pl, s->place, sizeof *pl * (size_t)s->nplaces);
    int64_t word = w->m->memory[memory].word > 0 ? w->m->memory[memory].word : 1;
    int64_t align = w->m->memory[memory].align > word ? w->m->memory[memory].align : word;
    *at = (*at + align - 1) / align * align;
    pl[s->nplaces] =
        (struct place){.name = arena_printf(&s->arena, "%s.%s.%d", w->p->buffer[buffer].name,
                                            w->m->memory[memory].id, s->nplaces),
                       .buffer = buffer,
                       .memory = memory,
                       .keep = KEEP_LOCAL,
                       .address = *at,
                       .bytes = bytes,
                       .slots = slots};
    s->place = pl;
    *at += bytes * slots;
    return s->nplaces++;
}

static int fit_queue(struct emitter *e, const struct task *t, const struct opnd *o,
                     const struct access *acc, bool fill, const struct region *r) {
    struct work *w = e->w;
    struct slot s = slot_make(&w->s->arena, &o->geom, r);
    struct box box;
    struct fit f;
    int home = w->home[acc->buffer].memory;
    (void)t;
    if (!box_make(w, acc->buffer, &o->geom, &s, r, fill, &box) ||
        !fit_box(w, e->moves, fill ? home : o->memory, fill ? o->memory : home, &box, &f))
        return -1;
    return f.move->needle->in->queue;
}

/* Results, and what stays over several of them, first: the chain may use the rest of a register
 * file again. */
static void place_core(struct emitter *e, int64_t *at, bool lasting) {
    struct work *w = e->w;
    const struct plan *p = &e->nest->plan;
    for (int i = 0; i < e->t->nops; i++) {
        const struct opnd *o = &e->t->op[i];
        bool lasts = o->writes || p->hold[i].depth < p->depth_out;
        if (o->where != IN_LOCAL || lasts != lasting) continue;
        const struct access *acc = task_access(w, e->t, o, o->read < 0);
        struct region r;
        e->held[i].slots = p->hold[i].slots;
        e->held[i].place = w->home[acc->buffer].place;
        if (i == e->nest->given) continue;
        plan_region(w, p, e->t, acc, &o->geom, p->hold[i].depth, &r);
        e->held[i].place = add_place(w, acc->buffer, o->memory, &at[o->memory],
                                     slot_bytes(w, o, &r), p->hold[i].slots);
        if (!o->writes) e->fill_queue[i] = fit_queue(e, e->t, o, acc, true, &r);
        if (o->writes && e->drained)
            e->store = fit_queue(e, e->t, o, task_access(w, e->t, o, true), false, &r);
    }
}

static void place_chain(struct emitter *e, int64_t *at) {
    struct work *w = e->w;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i]];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            const struct access *acc =
                o->where == IN_LOCAL ? task_access(w, t, o, o->read < 0) : NULL;
            struct region r;
            if (!acc) continue;
            chain_region(w, &e->nest->plan, e->nest, t, o, &r);
            if (o->writes && needs_home(w, e->nest, w->p->stmt[t->stmt].dst.buffer) && e->store < 0)
                e->store = fit_queue(e, t, o, task_access(w, t, o, true), false, &r);
            if (!chain_needs_hold(w, e->nest, t, o)) continue;
            e->own[i][k].slots = chain_slots(w, e->moves, e->nest, &e->nest->plan, t, o);
            e->own[i][k].place = add_place(w, acc->buffer, o->memory, &at[o->memory],
                                           slot_bytes(w, o, &r), e->own[i][k].slots);
        }
    }
}

static int out_credits(const struct emitter *e) {
    int n = 0;
    if (e->store < 0 || graph_sync(e->w->m, e->store, e->exec) < 0) return 0;
    for (int i = 0; e->t && e->drained && i < e->t->nops; i++)
        if (e->t->op[i].writes && e->t->op[i].where == IN_LOCAL &&
            trips_inside(e, e->nest->plan.hold[i].depth) > 1)
            n += e->held[i].slots;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &e->w->task[e->nest->chain[i]];
        for (int k = 0; k < t->nops; k++)
            if (t->op[k].writes && chain_needs_hold(e->w, e->nest, t, &t->op[k]) &&
                needs_home(e->w, e->nest, e->w->p->stmt[t->stmt].dst.buffer))
                n += e->own[i][k].slots;
    }
    return within_depth(e, n, e->store);
}

/* Many in a loop. */
static void add_credits(struct emitter *e, struct nodes *out, int queue, bool push, int sync,
                        int n) {
    struct nodes body = {0};
    if (n > 4) {
        add_sync(e->w, &body, queue, push, sync);
        nodes_add(e->w, out,
                  loop_node(e->w, new_var(e->w, "t"), val_const(0), val_const(n), 1,
                            LOOP_SEQUENTIAL, -1, &body));
        return;
    }
    for (int i = 0; i < n; i++) add_sync(e->w, out, queue, push, sync);
}

bool nest_turn(struct emitter *e, struct nodes *out) {
    int credits = out_credits(e), back = credits ? graph_sync(e->w->m, e->store, e->exec) : -1;
    add_credits(e, out, e->store, true, back, credits);
    if (!(e->t ? core_depth(e, out, e->nest->nprefix) : grain_loops(e, out, 0))) return false;
    add_credits(e, out, e->exec, false, back, credits);
    return true;
}

static bool nest_root(struct emitter *e, struct nodes *out, int arg) {
    return e->partner ? pair_depth(e, out, arg) : nest_turn(e, out);
}

/* The axis whose tiles are shared by the instances of the unit, and the share of each; 0: not
 * parallel. */
static int64_t share(const struct emitter *e, int *axis) {
    const struct work *w = e->w;
    const struct unit *u = &w->m->unit[w->m->queue[e->exec].unit];
    int64_t n = u->count;
    int threads = w->options ? w->options->threads : 0, list[MAX_AXES];
    if (threads > 0 && threads < n) n = threads;
    double points =
        (double)stmt_points(w->p, &w->p->stmt[e->t ? e->t->stmt : w->task[e->nest->chain[0]].stmt]);
    if (n < 2 || (e->t ? e->nest->plan.cycles : points / 4) < PARALLEL_CYCLES) return 0;
    int64_t best = 0, most = 1;
    int count = result_axes(w, e->t ? e->t->stmt : w->task[e->nest->chain[0]].stmt, list);
    for (int i = 0; i < count; i++) {
        int a = list[i];
        int64_t tile = e->t ? plan_tile(w, &e->nest->plan, a, e->nest->plan.nloops)
                            : nest_grain(w, e->nest, a);
        bool shared = !e->partner;
        for (int k = 0; k < e->nest->nprefix; k++) shared |= e->nest->prefix[k].axis == a;
        if (!shared || (e->t && (e->t->reductions >> a & 1))) continue;
        for (int k = e->nest->plan.nloops - 1; e->t && k >= 0; k--)
            if (e->nest->plan.loop[k].axis == a)
                tile = e->nest->plan.loop[k].tile; /* the outermost */
        int64_t tiles = (w->p->axis[a].extent + tile - 1) / tile;
        if (tiles > n) tiles = n; /* enough for everybody */
        if (tiles <= most) continue;
        most = tiles;
        *axis = a;
        int64_t all = (w->p->axis[a].extent + tile - 1) / tile;
        best = (all + n - 1) / n * tile;
    }
    return best;
}

/* Places of a nest from these addresses on, which advance. False after reporting. */
static bool emitter_open(struct emitter *e, struct work *w, const struct moves *moves,
                         const struct nest *n, int64_t *at) {
    int64_t base[MAX_MEMORIES], top[MAX_MEMORIES];
    *e = (struct emitter){.w = w,
                          .moves = moves,
                          .nest = n,
                          .t = n->core >= 0 ? &w->task[n->core] : NULL,
                          .store = -1};
    e->exec = w->task[n->core >= 0 ? n->core : n->chain[0]].needle->in->queue;
    for (int a = 0; a < w->p->naxes; a++) {
        e->lo[a] = val_const(0);
        e->size[a] = val_const(w->p->axis[a].extent);
        e->tile[a] = w->p->axis[a].extent;
    }
    for (int i = 0; i < MAX_OPERANDS; i++) e->fill_queue[i] = e->held[i].place = -1;
    e->drained = e->t && !n->nchain;
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++)
        if (graph_is_static(w->m, m)) at[m] = 0;
    if (e->t) place_core(e, at, true);
    memcpy(base, at, sizeof base);
    if (e->t) place_core(e, at, false);
    memcpy(top, at, sizeof top);
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++)
        if (graph_is_static(w->m, m)) at[m] = base[m];
    place_chain(e, at);
    for (int m = 0; m < w->m->nmemories && m < MAX_MEMORIES; m++) {
        int64_t used = at[m] > top[m] ? at[m] : top[m];
        if (m != w->m->home && used > graph_capacity(w->m, m) && used > w->m->memory[m].size &&
            w->m->memory[m].size >= 0) {
            diag_line(w->diags, w->p->source.file ? w->p->source.file : w->p->name, 0, 0,
                      "statement %d needs %lld bytes of memory '%s', which has %lld",
                      w->task[n->core >= 0 ? n->core : n->chain[0]].stmt, (long long)used,
                      w->m->memory[m].id, (long long)w->m->memory[m].size);
            return false;
        }
    }
    return true;
}

/* The place of the tile that a pair passes on. */
static void place_tile(struct work *w, const struct nest *n, int64_t *at) {
    int b = maker_result(w, n);
    struct home *h = &w->home[b];
    h->place = add_place(w, b, h->memory, &at[h->memory],
                         h->elements * (int64_t)type_size(w->p->buffer[b].type), 1);
}

bool emit_nest(struct work *w, const struct moves *moves, int nest, struct nodes *out) {
    struct emitter *e = arena_alloc(w->arena, sizeof *e), *next = NULL;
    struct nest *n = &w->nest[nest];
    int64_t at[MAX_MEMORIES] = {0};
    int axis = -1;
    if (n->core >= 0) plan_arrange(w, n, &n->plan);
    if (n->partner >= 0) place_tile(w, n, at);
    if (!emitter_open(e, w, moves, n, at)) return false;
    if (n->partner >= 0) {
        next = arena_alloc(w->arena, sizeof *next);
        if (w->nest[n->partner].core >= 0)
            plan_arrange(w, &w->nest[n->partner], &w->nest[n->partner].plan);
        if (!emitter_open(next, w, moves, &w->nest[n->partner], at)) return false;
        e->partner = next;
    }
    int64_t tile = share(e, &axis);
    struct nodes list = {0};
    bool ok;
    if (tile) {
        ok = emit_loop(e, &list, axis, tile, false, false, nest_root, 0);
        for (int i = 0; i < list.n; i++)
            if (list.at[i].kind == NODE_LOOP) {
                list.at[i].loop->kind = LOOP_PARALLEL;
                list.at[i].loop->unit = w->m->queue[e->exec].unit;
            }
    } else {
        ok = nest_root(e, &list, 0);
    }
    if (!e->split && (!next || !next->split)) nodes_hardware(w, list.at, list.n);
    nodes_fold(w, &list);
    *out = list;
    if (!ok && !w->diags->errors)
        diag_line(w->diags, w->p->source.file ? w->p->source.file : w->p->name, 0, 0,
                  "queues that a nest joins have no sync between them");
    return ok;
}
