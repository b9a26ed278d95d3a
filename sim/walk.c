#include "sim/sim_int.h"

#include <string.h>

static bool walk(struct engine *e, const struct node *node, int n);

static int64_t evaluate(const struct engine *e, const struct sx *x) {
    return sx_eval(x, e->value);
}

/* Points of the statement inside what an issue covers: padding is not work. */
static int64_t issue_work(const struct engine *e, const struct issue_node *i,
                          const struct shape *s) {
    const struct program *p = e->schedule->program;
    if (i->stmt < 0) return 0;
    const struct stmt *stmt = &p->stmt[i->stmt];
    int64_t work = 1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(stmt->axes >> a & 1)) continue;
        int64_t base = i->base[a] ? evaluate(e, i->base[a]) : 0, extent = 1;
        for (int k = 0; k < s->program->naxes; k++)
            if (i->axis[k] == a) extent = s->program->axis[k].extent;
        int64_t lo = base < 0 ? 0 : base,
                hi = base + extent < p->axis[a].extent ? base + extent : p->axis[a].extent;
        work *= hi > lo ? hi - lo : 0;
    }
    return work;
}

static bool step_issue(struct engine *e, const struct node *node) {
    const struct issue_node *i = node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    if (in->nranged > SIM_SIZES || in->noperands > SIM_OPERANDS || in->nstride_names > SIM_STRIDES)
        return engine_error(e, node,
                            "instruction '%s' has more sizes or operands than the simulator takes",
                            in->id);
    struct executed x = {.node = node, .queue = in->queue, .instance = e->instance};
    for (int k = 0; k < in->nranged; k++) {
        int64_t lo, hi, step;
        x.size[k] = evaluate(e, i->size[k]);
        if (instr_size_range(e->machine, in, k, &lo, &hi, &step) &&
            (x.size[k] < lo || (hi >= 0 && x.size[k] > hi)))
            return engine_error(e, node, "size '%s' of '%s' is %lld; expected %lld..%lld",
                                in->semantics->param[in->ranged[k]].name, in->id,
                                (long long)x.size[k], (long long)lo, (long long)hi);
    }
    for (int k = 0; k < in->nstride_names; k++) x.stride[k] = evaluate(e, i->stride[k]);
    for (int o = 0, flag = 0; o < in->noperands; o++) {
        if (in->operand[o].accumulate) x.flag[flag] = evaluate(e, i->flag[flag]), flag++;
        if (i->arg[o].place < 0) continue;
        const struct place *p = &e->schedule->place[i->arg[o].place];
        int64_t slot = e->slot[i->arg[o].place] < 0 ? 0 : e->slot[i->arg[o].place];
        x.address[o] = p->address + slot * p->bytes + evaluate(e, i->arg[o].offset);
    }
    const struct shape *s = shape_of(e, i, &x);
    if (!s) return false;
    x.work = issue_work(e, i, s);
    return time_dispatch(e, &x);
}

static bool step_fallback(struct engine *e, const struct node *node) {
    const struct fallback_node *f = node->fallback;
    const struct program *p = e->schedule->program;
    const struct stmt *s = &p->stmt[f->stmt];
    struct executed x = {
        .node = node, .queue = e->machine->fallback[f->fallback].queue, .instance = e->instance};
    x.work = s->nwhere ? stmt_points(p, s) : 1;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1)) continue;
        x.lo[a] = f->lo && f->lo[a] ? evaluate(e, f->lo[a]) : 0;
        x.hi[a] = f->hi && f->hi[a] ? evaluate(e, f->hi[a]) : p->axis[a].extent;
        if (x.lo[a] < 0 || x.hi[a] > p->axis[a].extent)
            return engine_error(e, node, "the box %lld..%lld leaves axis '%s'", (long long)x.lo[a],
                                (long long)x.hi[a], p->axis[a].name);
        if (!s->nwhere) x.work *= x.hi[a] > x.lo[a] ? x.hi[a] - x.lo[a] : 0;
    }
    return time_dispatch(e, &x);
}

/* Iterations in contiguous shares; every instance starts when all of them are free, and the loop
 * ends with the slowest. */
static bool walk_parallel(struct engine *e, const struct loop_node *l, int64_t lo, int64_t hi) {
    int64_t trips = hi > lo ? (hi - lo + l->step - 1) / l->step : 0,
            n = e->machine->unit[l->unit].count;
    if (n > e->instances) n = e->instances;
    if (n > trips) n = trips;
    if (!time_drain(e)) return false;
    double start = e->end, end = start;
    for (int64_t k = 0; k < n; k++) {
        time_reset_queues(e, start);
        e->instance = (int)k;
        int64_t first = trips * k / n, last = trips * (k + 1) / n;
        for (int64_t t = first; t < last; t++) {
            e->value[l->var] = lo + t * l->step;
            if (!walk(e, l->body, l->nbody)) return false;
        }
        if (!time_drain(e)) return false;
        if (e->end > end) end = e->end;
    }
    e->instance = 0;
    e->end = end;
    time_reset_queues(e, end);
    return true;
}

static bool walk_loop(struct engine *e, const struct loop_node *l) {
    int64_t lo = evaluate(e, l->lo), hi = evaluate(e, l->hi);
    if (l->kind == LOOP_PARALLEL && l->unit >= 0) return walk_parallel(e, l, lo, hi);
    for (int64_t v = lo; v < hi; v += l->step) {
        e->value[l->var] = v;
        if (++e->steps > e->limit) return engine_error(e, NULL, "the step bound is reached");
        if (!walk(e, l->body, l->nbody)) return false;
        if (v > INT64_MAX - l->step) break;
    }
    return true;
}

static bool walk(struct engine *e, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (++e->steps > e->limit) return engine_error(e, &node[k], "the step bound is reached");
        bool ok = true;
        switch (node[k].kind) {
        case NODE_LOOP:
            ok = walk_loop(e, node[k].loop);
            break;
        case NODE_ISSUE:
            ok = step_issue(e, &node[k]);
            break;
        case NODE_FALLBACK:
            ok = step_fallback(e, &node[k]);
            break;
        case NODE_ROTATE:
            e->slot[node[k].rotate] =
                (e->slot[node[k].rotate] + 1) % e->schedule->place[node[k].rotate].slots;
            break;
        case NODE_SYNC: {
            struct executed x = {
                .node = &node[k], .queue = node[k].sync.queue, .instance = e->instance};
            ok = time_dispatch(e, &x);
            break;
        }
        }
        if (!ok) return false;
    }
    return true;
}

bool walk_section(struct engine *e, const struct section *s) {
    for (int p = 0; p < e->schedule->nplaces; p++) e->slot[p] = -1;
    return walk(e, s->node, s->nnodes) && time_drain(e);
}
