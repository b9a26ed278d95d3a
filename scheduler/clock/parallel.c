/* Loops over the instances of a unit. Instances of a virtual unit that begin alike are timed once:
 * each starts afresh, so that only buses outside of it can make a difference. */
#include "scheduler/clock/period_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBERED = 8 };

/* Buses inside the unit are each instance's own. */
static void free_buses(struct engine *e, int unit, double at) {
    for (int b = 0; b < e->machine->nbuses; b++)
        if (unit_inside(e->machine, e->machine->bus[b].unit, unit)) e->bus_free[b] = at;
}

/* The loop over instances of a unit of which only so many exist, directly inside; -1: none. */
static const struct loop_node *limited_inside(const struct engine *e, const struct loop_node *l) {
    for (int k = 0; k < l->nbody; k++) {
        const struct loop_node *x = l->body[k].kind == NODE_LOOP ? l->body[k].loop : NULL;
        if (x && x->kind == LOOP_PARALLEL && e->machine->unit[x->unit].total > 0) return x;
    }
    return NULL;
}

/* How many instances of a virtual unit the hardware has at once. */
static int64_t places_at_once(struct engine *e, const struct loop_node *l) {
    int64_t total = e->machine->unit[l->unit].total, each = 1;
    const struct loop_node *inner = limited_inside(e, l);
    if (inner) {
        const struct unit *u = &e->machine->unit[inner->unit];
        e->value[l->var] = value_of(e, l->lo);
        each = trips_of(e, inner);
        if (!u->is_virtual && each > unit_instances(e->machine, inner->unit))
            each = unit_instances(e->machine, inner->unit);
        total = u->total;
    }
    if (total < 1) return SIM_INSTANCES;
    return each > 0 && total / each > 0 ? total / each : 1;
}

static int earliest(const double *at, int64_t n) {
    int best = 0;
    for (int k = 1; k < n; k++)
        if (at[k] < at[best]) best = k;
    return best;
}

/* ---- what an instance did ---- */

struct effect {
    double *before, *after; /* [nbuses]: when they are free, counted from the instance's start */
    double end;
    int64_t *slot;                /* [nplaces] afterwards */
    double *count_before, *count; /* of the result */
};

struct effects {
    struct effect at[REMEMBERED];
    int n, next;
    int64_t same; /* instances up to here do the same */
};

static int64_t tokens_kept(const struct engine *e) {
    int64_t n = 0;
    for (int s = 0; s < e->machine->nsyncs; s++)
        for (int c = e->channel[s]; c < e->channel[s + 1]; c++)
            if (e->machine->sync[s].kind == SYNC_TOKEN) n += e->sync[c].count;
    return n;
}

static double bus_after(const struct engine *e, int unit, int b, double start) {
    if (unit_inside(e->machine, e->machine->bus[b].unit, unit)) return 0;
    return fmax(e->bus_free[b] - start, 0);
}

static const struct effect *effect_find(const struct engine *e, const struct effects *all, int unit,
                                        double start) {
    for (int k = 0; k < all->n; k++) {
        bool same = true;
        for (int b = 0; b < e->machine->nbuses && same; b++)
            same = fabs(all->at[k].before[b] - bus_after(e, unit, b, start)) <= 1e-6;
        if (same) return &all->at[k];
    }
    return NULL;
}

static struct effect *effect_begin(struct engine *e, struct effects *all, int unit, double start) {
    struct effect *x = &all->at[all->next];
    if (!x->before) {
        x->before = memory_array((size_t)e->machine->nbuses + 1, sizeof *x->before);
        x->after = memory_array((size_t)e->machine->nbuses + 1, sizeof *x->after);
        x->slot = memory_array((size_t)e->schedule->nplaces + 1, sizeof *x->slot);
        x->count_before = memory_array((size_t)counts_number(e), sizeof *x->count);
        x->count = memory_array((size_t)counts_number(e), sizeof *x->count);
    }
    for (int b = 0; b < e->machine->nbuses; b++) x->before[b] = bus_after(e, unit, b, start);
    counts_take(e, x->count_before);
    return x;
}

static void effect_end(struct engine *e, struct effects *all, int unit, double start) {
    struct effect *x = &all->at[all->next];
    for (int b = 0; b < e->machine->nbuses; b++) x->after[b] = bus_after(e, unit, b, start);
    x->end = e->end - start;
    memcpy(x->slot, e->slot, (size_t)e->schedule->nplaces * sizeof *x->slot);
    counts_take(e, x->count);
    all->next = (all->next + 1) % REMEMBERED;
    if (all->n < REMEMBERED) all->n++;
}

static void effect_again(struct engine *e, const struct effect *x, double start) {
    for (int b = 0; b < e->machine->nbuses; b++)
        if (x->after[b] > 0) e->bus_free[b] = start + x->after[b];
    e->end = start + x->end;
    memcpy(e->slot, x->slot, (size_t)e->schedule->nplaces * sizeof *x->slot);
    counts_add(e, x->count_before, x->count);
    e->skipped = true;
}

static void effects_free(struct effects *all) {
    for (int k = 0; k < REMEMBERED; k++) {
        free(all->at[k].before);
        free(all->at[k].after);
        free(all->at[k].slot);
        free(all->at[k].count_before);
        free(all->at[k].count);
    }
}

/* ---- instances ---- */

/* Instances are walked one after the other, though they run side by side. A bus outside of their
 * unit goes on to serve each of them from the start, at the part of its rate that those walked
 * before leave: one less the share of the time in which it was busy for them. At least an equal
 * part is left; where all of them together want more than there is, the last one ends when the bus
 * has served all. */
struct contention {
    double *free, *left, *busy; /* [nbuses] before the loop */
    double *end;                /* [nbuses]: free again behind all instances */
};

static void contention_open(const struct engine *e, struct contention *c) {
    size_t n = (size_t)e->machine->nbuses;
    c->free = memory_array(4 * n + 1, sizeof *c->free);
    c->left = c->free + n;
    c->busy = c->left + n;
    c->end = c->busy + n;
    for (size_t b = 0; b < n; b++) {
        c->free[b] = c->end[b] = e->bus_free[b];
        c->left[b] = e->bus_left[b];
        c->busy[b] = e->result->bus[b].busy;
    }
}

/* Before instance k, of which those before took `length` cycles at most. */
static void contention_next(struct engine *e, const struct contention *c, int64_t k,
                            double length) {
    for (int b = 0; b < e->machine->nbuses; b++) {
        double busy = e->result->bus[b].busy - c->busy[b],
               left = length > 0 ? 1 - busy / length : 1;
        e->bus_free[b] = c->free[b];
        e->bus_left[b] = c->left[b] * fmax(left, 1 / (double)(k + 1));
    }
}

static void contention_note(const struct engine *e, struct contention *c) {
    for (int b = 0; b < e->machine->nbuses; b++) c->end[b] = fmax(c->end[b], e->bus_free[b]);
}

static void contention_close(struct engine *e, struct contention *c) {
    for (int b = 0; b < e->machine->nbuses; b++) {
        e->bus_free[b] = c->end[b];
        e->bus_left[b] = c->left[b];
    }
    free(c->free);
}

/* Iterations in contiguous shares; every instance starts when all of them are free and, where they
 * are several, awake; the loop ends with the slowest. A virtual unit has an instance for each
 * iteration, which starts when one of the hardware's is free. */
struct shares {
    const struct loop_node *loop;
    bool is_virtual;
    int64_t trips, n, lo;
    const int64_t *slot; /* when they start */
    int instance;
    struct effects effects;
};

static bool share_walk(struct engine *e, const struct shares *s, int64_t k, double start) {
    const struct loop_node *l = s->loop;
    time_reset_queues(e, start);
    free_buses(e, l->unit, start);
    memcpy(e->slot, s->slot, (size_t)e->schedule->nplaces * sizeof *e->slot);
    e->unit_instance[l->unit] =
        s->is_virtual ? 0 : k; /* one after the other in the same memories */
    if (s->is_virtual) images_renew(e, l->unit);
    e->instance = (int)(s->instance * s->n + k);
    return walk_trips(e, l, s->lo, (int64_t)((__int128)s->trips * k / s->n),
                      (int64_t)((__int128)s->trips * (k + 1) / s->n)) &&
           time_drain(e);
}

/* As an earlier one, or walked; what it did is remembered where others do the same. */
static bool share_run(struct engine *e, struct shares *s, int64_t k, double start) {
    struct effects *all = &s->effects;
    int unit = s->loop->unit;
    if (!s->is_virtual || e->walks || tokens_kept(e)) return share_walk(e, s, k, start);
    if (k > all->same || k == 0) {
        all->n = all->next = 0;
        all->same = k + instances_steady(e, s->loop, s->lo + k * s->loop->step, s->trips - k - 1);
    }
    const struct effect *known = effect_find(e, all, unit, start);
    if (known) return effect_again(e, known, start), true;
    if (all->same > k) effect_begin(e, all, unit, start);
    bool ok = share_walk(e, s, k, start);
    if (ok && all->same > k && !tokens_kept(e)) effect_end(e, all, unit, start);
    return ok;
}

static int64_t shares_number(struct engine *e, const struct loop_node *l, int64_t trips,
                             int64_t *most) {
    bool is_virtual = e->machine->unit[l->unit].is_virtual;
    int64_t n = is_virtual ? trips : unit_instances(e->machine, l->unit);
    *most = is_virtual ? places_at_once(e, l) : SIM_INSTANCES;
    if (!is_virtual && n > *most) n = *most;
    if (n > trips) n = trips;
    if (*most > n) *most = n;
    return n;
}

static bool shares_run(struct engine *e, struct shares *s, int64_t most) {
    const struct unit *unit = &e->machine->unit[s->loop->unit];
    double start = e->end + (s->n > 1 ? unit->waking * e->machine->clock / unit->clock : 0),
           end = start, *free_at = memory_bytes((size_t)most * sizeof *free_at + 1);
    bool ok = true;
    struct contention c;
    contention_open(e, &c);
    for (int64_t k = 0; k < most; k++) free_at[k] = start;
    for (int64_t k = 0; k < s->n && ok; k++) {
        int at = earliest(free_at, most);
        if (!s->is_virtual) contention_next(e, &c, k, end - start);
        ok = share_run(e, s, k, free_at[at]);
        contention_note(e, &c);
        free_at[at] = e->end;
        if (e->end > end) end = e->end;
    }
    free(free_at);
    contention_close(e, &c);
    time_reset_queues(e, end);
    return ok;
}

bool walk_parallel(struct engine *e, const struct loop_node *l) {
    struct shares s = {.loop = l,
                       .is_virtual = e->machine->unit[l->unit].is_virtual,
                       .trips = trips_of(e, l),
                       .lo = value_of(e, l->lo),
                       .instance = e->instance};
    int64_t most, outer = e->unit_instance[l->unit], active = e->unit_active[l->unit];
    if (s.trips == 0) return true;
    if (s.trips < 0) return engine_error(e, NULL, "a loop has too many iterations");
    s.n = shares_number(e, l, s.trips, &most);
    if (!time_drain(e)) return false;
    size_t slots = (size_t)e->schedule->nplaces * sizeof *e->slot;
    int64_t *slot = memory_bytes(slots + 1);
    memcpy(slot, e->slot, slots);
    s.slot = slot;
    e->unit_active[l->unit] = most;
    bool ok = shares_run(e, &s, most);
    effects_free(&s.effects);
    free(slot);
    e->instance = s.instance;
    e->unit_instance[l->unit] = outer;
    e->unit_active[l->unit] = active;
    return ok;
}
