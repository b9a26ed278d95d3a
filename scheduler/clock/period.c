/* A loop is followed until what stands at its head is what stood there some iterations before, but
 * later by so much; then this period is multiplied, for all iterations that do the same.
 *
 * Where all times move at one rate, what follows is the same, later. Queues that do not hold up
 * each other move at rates of their own: a slower one that is ahead of a faster one is met some
 * time, and no more is multiplied than until then. */
#include "scheduler/clock/period_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEWEST = 4,   /* trips of a loop that is followed */
    DEEPEST = 32, /* loops followed one inside the other */
    LONGEST = 16, /* iterations of a period */
    SIGHTS = 2 * LONGEST + 1,
    SNAPSHOTS = 7,
    RATES = 8,
    APPROXIMATE = 10000, /* steps that are walked first where times are not exact */
    COSTLY = 300,        /* steps of an iteration beside which a snapshot is cheap */
    PER_STEP = 8,        /* numbers that snapshots may write down, for each step */
    AT_FIRST = 1 << 20   /* and before that */
};
static const double alike = 1e-6; /* cycles */

/* A cheap look at each head: where no period is in sight, none is looked for. */
struct sight {
    uint64_t word;
    double *time;
};

struct follow {
    const struct loop_node *loop;
    int64_t first, trips;
    struct snapshot snapshot[SNAPSHOTS]; /* by their number modulo SNAPSHOTS */
    int64_t nsnapshots, nsights;
    struct sight sight[SIGHTS];
    int64_t steps; /* at the last head */
    int64_t period, due, left, not_before,
        wait; /* of a period in sight: when to look closely, how often */
};

struct follow *follow_open(struct engine *e, const struct loop_node *l, int64_t first,
                           int64_t trips) {
    if (e->walks || trips < FEWEST || e->followed == DEEPEST) return NULL;
    if (!e->follow) e->follow = memory_array(DEEPEST, sizeof *e->follow);
    struct follow *f = &e->follow[e->followed++];
    f->loop = l;
    f->first = first;
    f->trips = trips;
    f->nsnapshots = f->nsights = f->period = f->not_before = 0;
    f->wait = 1;
    f->steps = e->steps;
    return f;
}

void follow_close(struct engine *e, struct follow *f) {
    if (!f || --e->followed > 0) return;
    e->touches.n = e->touches.hot = 0;
    e->touches.lost = false;
}

void follows_free(struct engine *e) {
    for (int k = 0; e->follow && k < DEEPEST; k++) {
        for (int i = 0; i < SNAPSHOTS; i++) snapshot_free(&e->follow[k].snapshot[i]);
        for (int i = 0; i < SIGHTS; i++) free(e->follow[k].sight[i].time);
    }
    free(e->follow);
    free(e->touches.at);
}

/* ---- rates ---- */

struct rate {
    double by, min, max; /* cycles in a period; of the times that move so */
};

static struct rate *rate_of(struct rate *rate, int *n, double by) {
    for (int k = 0; k < *n; k++)
        if (fabs(rate[k].by - by) <= alike) return &rate[k];
    if (*n == RATES) return NULL;
    rate[*n] = (struct rate){by, INFINITY, -INFINITY};
    return &rate[(*n)++];
}

static int rates_of(const struct snapshot *before, const struct snapshot *now, struct rate *rate) {
    int n = 0;
    for (int k = 0; k < now->ntimes; k++) {
        double by = now->time[k] - before->time[k];
        struct rate *r = by < -alike ? NULL : rate_of(rate, &n, by);
        if (!r) return -1;
        if (!now->leads[k]) continue;
        r->min = fmin(r->min, now->time[k]);
        r->max = fmax(r->max, now->time[k]);
    }
    return n;
}

static bool same_rates(const struct snapshot *a, const struct snapshot *b,
                       const struct snapshot *c) {
    for (int k = 0; k < b->ntimes; k++)
        if (fabs((c->time[k] - b->time[k]) - (b->time[k] - a->time[k])) > alike) return false;
    return true;
}

/* Leads, or a server is free from then on. */
static bool counts_ahead(const struct snapshot *s, int k) {
    return s->leads[k] || (k + 1 < s->ntimes && s->gap[k + 1]);
}

/* How far ahead the first time is that the period leaves as it is, of any that it moves by so much:
 * an instruction that lasts, for one, or a gap that can be filled. */
static double rest_ahead(const struct snapshot *before, const struct snapshot *now, double by) {
    double least = INFINITY;
    for (int k = 0; k < now->ntimes; k++) {
        if (!counts_ahead(now, k) || fabs(now->time[k] - before->time[k]) > alike) continue;
        for (int i = 0; i < now->ntimes; i++) {
            double ahead = now->time[k] - now->time[i];
            if (now->leads[i] && ahead > 0 && fabs(now->time[i] - before->time[i] - by) <= alike)
                least = fmin(least, ahead);
        }
    }
    return least;
}

/* How often the period can come again until a gap between instructions is filled that it takes so
 * much of: then what went there goes elsewhere. */
static double periods_in_gaps(const struct snapshot *before, const struct snapshot *now) {
    double most = INFINITY;
    for (int k = 1; k < now->ntimes; k++) {
        if (!now->gap[k]) continue;
        double wide = now->time[k] - now->time[k - 1],
               taken = before->time[k] - before->time[k - 1] - wide;
        if (taken > alike) most = fmin(most, floor(wide / taken));
    }
    return most;
}

/* How often the period can come again before something fast meets something slow; 0: they may be
 * together now. Out-of-order queues leave much behind that rests; what lies ahead counts. */
static double periods_apart(const struct engine *e, const struct snapshot *before,
                            const struct snapshot *now, const struct rate *rate, int n) {
    double most = e->eager ? periods_in_gaps(before, now) : INFINITY, margin = 0;
    for (int k = 0; k < n; k++) margin = fmax(margin, rate[k].by);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const struct rate *slow = &rate[i], *fast = &rate[j];
            bool rests = slow->by <= alike;
            double ahead = slow->min - fast->max;
            if (slow->by >= fast->by) continue;
            if (rests && e->eager)
                ahead = rest_ahead(before, now, fast->by);
            else if (fast->min - slow->max >= (rests ? 0 : margin))
                continue;
            most = fmin(most, floor((ahead - margin) / (fast->by - slow->by)));
        }
    return fmax(most, 0);
}

/* ---- periods ---- */

static const struct snapshot *snapshot_at(const struct follow *f, int64_t trip) {
    for (int64_t k = f->nsnapshots - 1; k >= 0 && k >= f->nsnapshots - SNAPSHOTS; k--)
        if (f->snapshot[k % SNAPSHOTS].trip == trip) return &f->snapshot[k % SNAPSHOTS];
    return NULL;
}

/* How many periods from `before` to `now` come after that. Where there are several rates, the
 * period from `first` to `before` has them too. */
static int64_t periods_after(struct engine *e, const struct follow *f,
                             const struct snapshot *before, const struct snapshot *now,
                             const struct snapshot **first) {
    struct rate rate[RATES];
    int64_t period = now->trip - before->trip, left = (f->trips - now->trip) / period;
    if (left < 1 || !snapshot_alike(before, now)) return 0;
    if (!e->exact && before->touches < now->touches - before->touches)
        return 0; /* what the period writes is told from the one before it */
    int n = rates_of(before, now, rate), moving = 0;
    for (int k = 0; k < n; k++) moving += rate[k].by > alike;
    if (n < 0) return 0;
    if (moving > 1 || e->eager) {
        *first = snapshot_at(f, before->trip - period);
        if (!*first || !snapshot_alike(*first, before) || !same_rates(*first, before, now) ||
            !snapshot_writes_alike(e, *first, before, now))
            return 0;
    }
    double apart = periods_apart(e, before, now, rate, n);
    if (apart < (double)left) left = (int64_t)apart;
    if (left < 1) return 0;
    return periods_steady(e, f->loop, f->first + before->trip * f->loop->step, before, now, left);
}

static int64_t look_closely(struct engine *e, struct follow *f, int64_t trip) {
    struct snapshot *now = &f->snapshot[f->nsnapshots++ % SNAPSHOTS];
    snapshot_take(e, trip, now);
    for (int64_t k = f->nsnapshots - 2; k >= 0 && k > f->nsnapshots - 1 - SNAPSHOTS; k--) {
        const struct snapshot *before = &f->snapshot[k % SNAPSHOTS];
        const struct snapshot *first = NULL;
        int64_t periods = periods_after(e, f, before, now, &first);
        if (periods < 1) continue;
        snapshot_advance(e, first, before, now, periods);
        e->skipped = true;
        f->nsnapshots = f->nsights = f->period = 0;
        return periods * (now->trip - before->trip);
    }
    return 0;
}

/* ---- what is in sight ---- */

static double queue_end(const struct engine *e, int q) {
    const struct server *s = e->queue[q].server;
    if (!e->machine->queue[q].data_order) return s->free;
    return s->n ? s->busy[s->n - 1].end : s->from;
}

static void see(struct engine *e, struct follow *f) {
    struct sight *s = &f->sight[f->nsights++ % SIGHTS];
    int nq = e->machine->nqueues;
    if (!s->time) s->time = memory_array((size_t)nq + 2, sizeof *s->time);
    s->time[0] = e->floor;
    s->time[1] = e->end;
    s->word = 0;
    for (int q = 0; q < nq; q++) {
        s->time[2 + q] = queue_end(e, q);
        s->word = s->word * 31 + (uint64_t)e->queue[q].count;
    }
    for (int c = 0; c < e->nchannels; c++) s->word = s->word * 31 + (uint64_t)e->sync[c].count;
    for (int p = 0; p < e->schedule->nplaces; p++)
        if (e->schedule->place[p].slots > 1) s->word = s->word * 31 + (uint64_t)e->slot[p];
}

static bool in_sight(const struct engine *e, const struct follow *f, int64_t period) {
    const struct sight *a = &f->sight[(f->nsights - 1 - 2 * period) % SIGHTS],
                       *b = &f->sight[(f->nsights - 1 - period) % SIGHTS],
                       *c = &f->sight[(f->nsights - 1) % SIGHTS];
    if (a->word != b->word || b->word != c->word) return false;
    for (int k = 0; k < e->machine->nqueues + 2; k++)
        if (fabs((c->time[k] - b->time[k]) - (b->time[k] - a->time[k])) > alike) return false;
    return true;
}

static bool look_now(struct engine *e, struct follow *f, int64_t trip) {
    see(e, f);
    if (f->period == 0) {
        if (trip < f->not_before) return false;
        for (int64_t p = 1; p <= LONGEST && 2 * p < f->nsights && f->period == 0; p++)
            if (in_sight(e, f, p)) f->period = p;
        f->due = trip;
        f->left = 3;
    }
    if (f->period == 0 || trip < f->due) return false;
    f->due = trip + f->period;
    if (--f->left == 0) {
        f->period = 0;
        f->not_before = trip + f->wait;
        f->wait *= 2;
    }
    return true;
}

int64_t follow_head(struct engine *e, struct follow *f, int64_t trip) {
    int64_t cost = e->steps - f->steps;
    f->steps = e->steps;
    if (trip == 0 || trip + 1 >= f->trips || e->failed) return 0;
    if (e->eager && e->steps < APPROXIMATE) return 0;
    if (e->written > AT_FIRST + PER_STEP * (e->steps + e->saved)) return 0;
    if (cost < COSTLY && !look_now(e, f, trip)) return 0;
    int64_t skipped = look_closely(e, f, trip);
    e->saved += skipped * cost;
    return skipped;
}
