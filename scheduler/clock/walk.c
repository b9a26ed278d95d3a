#include "scheduler/clock/clock_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

static bool walk(struct engine *e, const struct node *node, int n);

/* ---- beside a device that somebody else runs ---- */

static bool beside(const struct engine *e) {
    return e->executor && e->executor->takes;
}

static bool beside_run(struct engine *e) {
    return !beside(e) || e->executor->run(e);
}

bool dispatch(struct engine *e, struct executed *x) {
    if (!beside(e)) return time_dispatch(e, x);
    if (!beside_run(e)) return false;
    if (x->node->kind == NODE_CONFIGURE) return configure_execute(e, x);
    return e->executor->execute(e, x);
}

int64_t value_of(const struct engine *e, const struct sx *x) {
    return sx_eval(x, e->value);
}

/* Points of the statement inside what an issue covers: padding is not work. */
int64_t issue_work(const struct engine *e, const struct issue_node *i, int stmt,
                   const struct shape *s) {
    const struct program *p = e->schedule->program;
    int64_t lo[MAX_AXES] = {0}, hi[MAX_AXES] = {0};
    if (stmt < 0) return 0;
    for (int a = 0; a < p->naxes; a++) {
        if (!(p->stmt[stmt].axes >> a & 1)) continue;
        int64_t base = i->base[a] ? value_of(e, i->base[a]) : 0, extent = 1;
        for (int k = 0; k < s->program->naxes; k++)
            if (i->axis[k] == a) extent = s->program->axis[k].extent;
        if (__builtin_add_overflow(base, extent, &hi[a])) return 0;
        lo[a] = base < 0 ? 0 : base;
        if (hi[a] > p->axis[a].extent) hi[a] = p->axis[a].extent;
        if (hi[a] <= lo[a]) return 0;
    }
    return box_points(p, stmt, lo, hi);
}

void also_work(const struct engine *e, const struct shape *s, struct executed *x) {
    const struct program *p = e->schedule->program;
    const struct issue_node *i = x->node->issue;
    for (int q = 0; q < i->nalso; q++) {
        int64_t points = issue_work(e, i, i->also[q], s);
        x->also_macs += points * stmt_macs(&p->stmt[i->also[q]]);
        x->also_operations += points * stmt_operations(p, &p->stmt[i->also[q]]);
    }
}

/* ---- issues ---- */

const struct size_range *range_of_size(struct engine *e, int instr, int k) {
    const struct instr *in = &e->machine->instr[instr];
    struct size_range *r = &e->range[(size_t)instr * SIM_SIZES + (size_t)k];
    if (r->step) return r;
    if (!in->semantics->param[in->ranged[k]].lo ||
        !instr_size_range(e->machine, in, k, &r->lo, &r->hi, &r->step))
        r->step = -1;
    return r;
}

bool sizes_of(struct engine *e, const struct node *node, struct executed *x) {
    const struct issue_node *i = node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    if (in->nranged > SIM_SIZES || in->noperands > SIM_OPERANDS || in->nstride_names > SIM_STRIDES)
        return engine_error(e, node,
                            "instruction '%s' has more sizes or operands than the simulator takes",
                            in->id);
    for (int k = 0; k < in->nranged; k++) {
        const struct size_range *r = range_of_size(e, i->instr, k);
        const char *name = in->semantics->param[in->ranged[k]].name;
        x->size[k] = value_of(e, i->size[k]);
        if (x->size[k] < 0)
            return engine_error(e, node, "size '%s' of '%s' is %lld", name, in->id,
                                (long long)x->size[k]);
        if (r->step < 0) continue;
        if (x->size[k] < r->lo || (r->hi >= 0 && x->size[k] > r->hi) ||
            (x->size[k] - r->lo) % r->step != 0)
            return engine_error(e, node, "size '%s' of '%s' is %lld; expected %lld..%lld step %lld",
                                name, in->id, (long long)x->size[k], (long long)r->lo,
                                (long long)r->hi, (long long)r->step);
    }
    for (int k = 0; k < in->nstride_names; k++) x->stride[k] = value_of(e, i->stride[k]);
    for (int o = 0, flag = 0; o < in->noperands; o++)
        if (in->operand[o].accumulate) x->flag[flag] = value_of(e, i->flag[flag]), flag++;
    return true;
}

/* May the operand be in that memory? Caches, and other views of a memory, are the memory. */
static bool operand_in(const struct machine *m, const struct operand *o, int memory) {
    for (int k = 0; k < o->nmemories; k++) {
        int mine = o->memory[k];
        if (mine < 0) continue;
        if (mine == memory || (memory_is_home(m, mine) && memory_is_home(m, memory)) ||
            m->memory[mine].alias == memory || m->memory[memory].alias == mine)
            return true;
    }
    return false;
}

static bool operand_immediate(const struct operand *o) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] == MEMORY_IMM) return o->role == ROLE_IN;
    return false;
}

bool address_of(struct engine *e, const struct node *node, const struct shape *s, int o,
                int64_t *address) {
    const struct arg *a = &node->issue->arg[o];
    const struct operand *operand = &e->machine->instr[node->issue->instr].operand[o];
    if (a->place < 0)
        return operand_immediate(operand) ||
               engine_error(e, node, "operand '%s' cannot be a constant", operand->buffer);
    const struct place *p = &e->schedule->place[a->place];
    if (!operand_in(e->machine, operand, p->memory))
        return engine_error(e, node, "operand '%s' cannot be in memory '%s'", operand->buffer,
                            e->machine->memory[p->memory].id);
    const struct reach *r = &s->reach[o];
    int64_t size = (int64_t)type_size(operand->type), at = value_of(e, a->offset);
    if (at < 0 || at > p->bytes ||
        (r->elements && (at + r->lo * size < 0 || at + (r->hi + 1) * size > p->bytes)))
        return engine_error(e, node, "operand '%s' reaches beyond place '%s'", operand->buffer,
                            p->name);
    int64_t slot = e->slot[a->place] < 0 ? 0 : e->slot[a->place];
    *address = p->address + slot * p->bytes + at;
    return true;
}

bool addresses_count(const struct engine *e, const struct executed *x) {
    return !e->options->trusted || e->interlocked[x->queue] || e->relied >> x->queue & 1 ||
           e->machine->instr[x->node->issue->instr].nneeds > 0;
}

static bool step_issue(struct engine *e, const struct node *node) {
    const struct issue_node *i = node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    struct executed x = {
        .node = node, .queue = in->queue, .instance = e->instance, .iterations = 1};
    if (!sizes_of(e, node, &x)) return false;
    const struct shape *s = shape_of(e, node, &x);
    if (!s) return false;
    if (!addresses_count(e, &x)) return dispatch(e, &x);
    for (int o = 0; o < in->noperands; o++)
        if (!address_of(e, node, s, o, &x.address[o])) return false;
    x.work = issue_work(e, i, i->stmt, s);
    also_work(e, s, &x);
    return dispatch(e, &x);
}

bool count_step(struct engine *e) {
    if (++e->steps > e->limit) return engine_error(e, NULL, "the step bound is reached");
    if (e->end <= e->most) return true;
    e->result->beyond = true;
    return engine_error(e, NULL, "it takes more cycles than were asked for");
}

static bool step_fallback(struct engine *e, const struct node *node) {
    const struct fallback_node *f = node->fallback;
    const struct program *p = e->schedule->program;
    const struct stmt *s = &p->stmt[f->stmt];
    struct executed x = {
        .node = node, .queue = e->machine->fallback[f->fallback].queue, .instance = e->instance};
    for (int r = -1; r < s->nreads; r++) {
        int b = r < 0 ? s->dst.buffer : s->read[r].buffer;
        if (schedule_home(e->schedule, b) < 0)
            return engine_error(e, node, "buffer '%s' has no home", p->buffer[b].name);
    }
    for (int a = 0; a < p->naxes; a++) {
        bool ranged = f->lo && f->lo[a] && f->hi && f->hi[a]; /* of an axis around it: one value */
        if (!(s->axes >> a & 1) && !ranged) continue;
        x.lo[a] = ranged ? value_of(e, f->lo[a]) : 0;
        x.hi[a] = ranged ? value_of(e, f->hi[a]) : p->axis[a].extent;
        if (x.lo[a] < 0 || x.hi[a] > p->axis[a].extent)
            return engine_error(e, node, "the box %lld..%lld leaves axis '%s'", (long long)x.lo[a],
                                (long long)x.hi[a], p->axis[a].name);
    }
    x.work = box_points(p, f->stmt, x.lo, x.hi);
    return dispatch(e, &x);
}

/* ---- loops ---- */

bool walk_trips(struct engine *e, const struct loop_node *l, int64_t lo, int64_t first,
                int64_t last) {
    struct follow *f = follow_open(e, l, lo + first * l->step, last - first);
    bool ok = true;
    for (int64_t t = first; t < last && ok; t++) {
        e->value[l->var] = lo + t * l->step;
        if (f) t += follow_head(e, f, t - first);
        if (t >= last) break;
        e->value[l->var] = lo + t * l->step;
        ok = count_step(e) && walk(e, l->body, l->nbody);
    }
    follow_close(e, f);
    return ok && !e->failed;
}

/* Below 0: more than there are numbers. */
int64_t trips_of(const struct engine *e, const struct loop_node *l) {
    __int128 distance = (__int128)value_of(e, l->hi) - value_of(e, l->lo);
    return distance <= 0 ? 0 : (int64_t)((distance + l->step - 1) / l->step);
}

static bool walk_loop(struct engine *e, const struct loop_node *l) {
    int64_t lo = value_of(e, l->lo);
    if (l->kind == LOOP_PARALLEL && l->unit >= 0) return walk_parallel(e, l);
    if (l->kind == LOOP_HARDWARE) return walk_hardware(e, l);
    int64_t trips = trips_of(e, l);
    return walk_trips(e, l, lo, 0, trips < 0 ? INT64_MAX : trips);
}

static bool step_sync(struct engine *e, const struct node *node) {
    struct executed x = {.node = node, .queue = node->sync.queue, .instance = e->instance};
    return dispatch(e, &x);
}

static bool step_configure(struct engine *e, const struct node *node) {
    struct executed x = {.node = node,
                         .queue = e->machine->configure[node->configure->configure].queue,
                         .instance = e->instance};
    return configure_evaluate(e, node, &x) && dispatch(e, &x);
}

static bool walk_node(struct engine *e, const struct node *node) {
    if (!count_step(e)) return false;
    if (beside(e) && e->executor->takes(e, node)) return e->executor->step(e, node);
    switch (node->kind) {
    case NODE_LOOP:
        return walk_loop(e, node->loop);
    case NODE_ISSUE:
        return step_issue(e, node);
    case NODE_FALLBACK:
        return step_fallback(e, node);
    case NODE_ROTATE:
        e->slot[node->rotate] =
            (e->slot[node->rotate] + 1) % e->schedule->place[node->rotate].slots;
        return true;
    case NODE_SYNC:
        return step_sync(e, node);
    case NODE_CONFIGURE:
        return step_configure(e, node);
    }
    return false;
}

/* ---- launches ---- */

/* What was launched before is complete, and holds up nobody any more; then this takes its time to
 * begin. */
static bool begin_launch(struct engine *e) {
    if (!time_drain(e)) return false;
    images_forget(e);
    if (e->counting) e->result->launches++;
    time_reset_queues(e, e->end + e->machine->launch);
    return true;
}

/* Nodes that go together (launch_next). */
static bool walk_together(struct engine *e, const struct node *node, int n, enum launch_kind kind) {
    bool begins = kind == LAUNCH_ONE || kind == LAUNCH_GRID, ok = true;
    for (int k = 0, part; begins && ok && k < (kind == LAUNCH_GRID ? node->loop->nbody : 1);
         k += part) {
        part = kind == LAUNCH_GRID ? launch_part(e->schedule, node->loop, k) : 1;
        ok = begin_launch(e);
    }
    e->launching = kind == LAUNCH_LOOP;
    for (int k = 0; k < n && ok; k++) ok = walk_node(e, &node[k]);
    e->launching = true;
    return ok;
}

static bool walk_launches(struct engine *e, const struct node *node, int n) {
    enum launch_kind kind;
    for (int k = 0, more; k < n; k += more) {
        more = launch_next(e->schedule, &node[k], n - k, &kind);
        if (!walk_together(e, &node[k], more, kind)) return false;
    }
    return true;
}

static bool walk(struct engine *e, const struct node *node, int n) {
    if (e->launching) return walk_launches(e, node, n);
    for (int k = 0; k < n; k++)
        if (!walk_node(e, &node[k])) return false;
    return true;
}

/* ---- sections ---- */

static bool uses_place(const struct schedule *s, const struct node *n, int place) {
    int buffer = s->place[place].buffer;
    if (n->kind == NODE_ISSUE)
        for (int o = 0; o < s->machine->instr[n->issue->instr].noperands; o++)
            if (n->issue->arg[o].place == place) return true;
    if (n->kind == NODE_FALLBACK) {
        const struct stmt *t = &s->program->stmt[n->fallback->stmt];
        if (t->dst.buffer == buffer) return true;
        for (int r = 0; r < t->nreads; r++)
            if (t->read[r].buffer == buffer) return true;
    }
    if (n->kind == NODE_LOOP && n->loop->table == place + 1) return true;
    for (int k = 0; n->kind == NODE_LOOP && k < n->loop->nbody; k++)
        if (uses_place(s, &n->loop->body[k], place)) return true;
    return false;
}

static bool shares_bytes(const struct schedule *s, int place) {
    const struct place *a = &s->place[place];
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *b = &s->place[p];
        if (p != place && b->memory == a->memory && a->address < b->address + b->bytes * b->slots &&
            b->address < a->address + a->bytes)
            return true;
    }
    return false;
}

/* Homes with padding are zero when the first node that uses them begins; those that share their
 * bytes with others must be made so then. */
static void find_zeros(struct engine *e, const struct section *section) {
    const struct schedule *s = e->schedule;
    for (int p = 0; p < s->nplaces; p++) {
        e->zero_at[p] = -1;
        if (s->place[p].keep == KEEP_PREPARED && section == &s->run) continue;
        if (!schedule_pads(s, p) || !shares_bytes(s, p)) continue;
        for (int k = 0; k < section->nnodes && e->zero_at[p] < 0; k++)
            if (uses_place(s, &section->node[k], p)) e->zero_at[p] = k;
    }
}

static bool zeroes_at(const struct engine *e, int node) {
    for (int p = 0; p < e->schedule->nplaces; p++)
        if (e->zero_at[p] == node) return true;
    return false;
}

static bool zero_homes(struct engine *e, int node) {
    for (int p = 0; p < e->schedule->nplaces; p++) {
        if (e->zero_at[p] != node) continue;
        if (!beside_run(e) || !time_drain(e)) return false;
        if (e->executor && !e->executor->zero(e, p)) return false;
    }
    return true;
}

bool walk_section(struct engine *e, const struct section *s) {
    e->preparing = s == &e->schedule->prepare;
    for (int p = 0; p < e->schedule->nplaces; p++) e->slot[p] = -1;
    states_forget(e);
    find_zeros(e, s);
    e->launching = e->machine->launch > 0 && !e->joined;
    for (int k = 0, next; k < s->nnodes; k = next) {
        next = k + 1;
        while (e->launching && next < s->nnodes && !zeroes_at(e, next)) next++;
        if (!zero_homes(e, k) || !walk(e, &s->node[k], next - k)) return false;
    }
    return beside_run(e) && time_drain(e);
}
