/* What stands at a loop's head: queues and what waits in them, syncs, buses, slots, pieces of
 * memory. One traversal writes it down; the same one, with what each time changes by, moves it. */
#include "scheduler/clock/period_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_BACK = 64 };

struct tape {
    struct snapshot *into;
    const double *shift; /* what times change by; NULL: they are written down */
    const int64_t *move; /* likewise numbers */
    int at, at_number;   /* the next ones */
};

static void put_word(struct tape *t, uint64_t word) {
    struct snapshot *s = t->into;
    if (t->shift) return;
    if (s->nwords == s->cap_words) {
        s->cap_words = 2 * s->cap_words + 256;
        s->word = memory_grow(s->word, (size_t)s->cap_words * sizeof *s->word);
    }
    s->word[s->nwords++] = word;
}

static void put_time(struct tape *t, double *time, bool leads) {
    struct snapshot *s = t->into;
    if (t->shift) {
        *time += t->shift[t->at++];
        return;
    }
    if (s->ntimes == s->cap_times) {
        s->cap_times = 2 * s->cap_times + 256;
        s->time = memory_grow(s->time, (size_t)s->cap_times * sizeof *s->time);
        s->leads = memory_grow(s->leads, (size_t)s->cap_times * sizeof *s->leads);
        s->gap = memory_grow(s->gap, (size_t)s->cap_times * sizeof *s->gap);
    }
    s->leads[s->ntimes] = leads;
    s->gap[s->ntimes] = false;
    s->time[s->ntimes++] = *time;
}

/* Where something lies: moves from one period to the next. */
static void put_number(struct tape *t, const struct node *node, int part, int64_t *number) {
    struct snapshot *s = t->into;
    if (t->shift) {
        *number += t->move[t->at_number++];
        return;
    }
    if (s->nnumbers == s->cap_numbers) {
        s->cap_numbers = 2 * s->cap_numbers + 64;
        s->number = memory_grow(s->number, (size_t)s->cap_numbers * sizeof *s->number);
    }
    s->number[s->nnumbers++] = (struct located){node, part, *number};
}

/* What is not after anything that is still to come delays nothing. */
static bool put_live(struct tape *t, double *time, double earliest, bool leads) {
    bool live = *time > earliest;
    put_word(t, live);
    if (live) put_time(t, time, leads);
    return live;
}

/* The last two times are the ends of a gap. */
static void mark_gap(struct tape *t) {
    if (!t->shift) t->into->gap[t->into->ntimes - 1] = true;
}

/* ---- queues ---- */

static void put_servers(struct engine *e, struct tape *t, int q, double earliest) {
    for (int w = 0; w < (int)e->machine->queue[q].width; w++) {
        struct server *s = &e->queue[q].server[w];
        if (!e->machine->queue[q].data_order) {
            put_live(t, &s->free, earliest, true);
            continue;
        }
        bool gap = put_live(t, &s->from, earliest, false);
        put_word(t, (uint64_t)s->n);
        for (int k = 0; k < s->n; k++) {
            if (put_live(t, &s->busy[k].start, earliest, false) && gap) mark_gap(t);
            gap = put_live(t, &s->busy[k].end, earliest, k == s->n - 1);
        }
    }
}

static uint64_t mixed(uint64_t hash, int64_t value) {
    hash = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t mark_of(const struct engine *e, const struct executed *x) {
    uint64_t h = mixed((uintptr_t)x->node, x->iterations);
    h = mixed(mixed(h, x->work), x->instance);
    h = mixed(mixed(h, x->also_macs), x->also_operations);
    if (x->node->kind == NODE_ISSUE) {
        const struct instr *in = &e->machine->instr[x->node->issue->instr];
        for (int k = 0; k < in->nranged; k++) h = mixed(h, x->size[k]);
        for (int k = 0; k < in->nstride_names; k++) h = mixed(h, x->stride[k]);
        for (int o = 0, flag = 0; o < in->noperands; o++)
            if (in->operand[o].accumulate) h = mixed(h, x->flag[flag++]);
    }
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npops; i++) h = mixed(h, x->pop[i].channel);
    for (int i = 0; i < g->npushes; i++) h = mixed(h, x->push[i].channel);
    return h | 1;
}

/* Which tokens and groups it waits for and gives. */
static uint64_t mix_signals(const struct engine *e, uint64_t h, const struct executed *x) {
    const struct signals *g = signals_of(x->node);
    for (int i = 0; i < g->npops; i++)
        if (e->machine->sync[g->pop[i].sync].kind == SYNC_GROUP)
            h = mixed(h, e->sync[x->pop[i].channel].dispatched - x->pop[i].number);
    for (int i = 0; i < g->npushes; i++)
        h = mixed(h, e->sync[x->push[i].channel].dispatched - x->push[i].number);
    return h;
}

/* Which of the other queues must have come how far; of meetings also when that was. `after`: as
 * the queue has it for the instruction. */
static uint64_t mix_order(const struct engine *e, uint64_t h, const int64_t *after) {
    int nq = e->machine->nqueues;
    const int64_t *left = after + nq, *seen = left + nq;
    for (int q = 0; q < nq; q++) {
        int64_t ran = e->queue[q].ran, more = after[q] - ran;
        if ((e->tracks || e->joined) && more > 0) h = mixed(mixed(h, q), more);
        if (!e->meets) continue;
        h = mixed(h, left[q] ? left[q] - ran : -1);
        h = mixed(h, seen[q] ? seen[q] - ran : -1);
    }
    return h;
}

static void put_addresses(struct engine *e, struct tape *t, struct executed *x) {
    if (!queue_tracked(e, x->queue)) return;
    if (x->node->kind == NODE_ISSUE)
        for (int o = 0; o < e->machine->instr[x->node->issue->instr].noperands; o++)
            put_number(t, x->node, o, &x->address[o]);
    for (int a = 0; x->node->kind == NODE_FALLBACK && a < e->schedule->program->naxes; a++) {
        put_number(t, x->node, 2 * a, &x->lo[a]);
        put_number(t, x->node, 2 * a + 1, &x->hi[a]);
    }
}

static void put_waiting(struct engine *e, struct tape *t, struct queue_time *q) {
    int nq = e->machine->nqueues;
    put_word(t, (uint64_t)q->count);
    for (int k = 0; k < q->count; k++) {
        int at = (q->head + k) % q->room;
        struct executed *x = &q->fifo[at];
        if (!x->mark) x->mark = mark_of(e, x); /* it is in many snapshots */
        if (!t->shift)
            put_word(t, mix_order(e, mix_signals(e, x->mark, x), &q->after[at * 3 * nq]));
        put_time(t, &x->dispatched, true);
        put_addresses(e, t, x);
    }
}

/* When those left that stood where the next ones will. */
static void put_started(struct engine *e, struct tape *t, int queue, double earliest) {
    struct queue_time *q = &e->queue[queue];
    if (e->machine->queue[queue].depth <= 0) return;
    for (int k = 1; k <= q->room - q->count; k++)
        put_live(t, &q->started[(q->dispatched + k) % q->room], earliest, true);
}

/* Of those that meetings can still ask for; earlier ones left no later. */
static void put_past(struct engine *e, struct tape *t, struct queue_time *q, double earliest) {
    for (int k = 0; k < e->machine->nqueues; k++)
        put_word(t, q->barrier[k] ? (uint64_t)(q->barrier[k] - e->queue[k].ran) : UINT64_MAX);
    int64_t n = q->ran < SIM_PAST ? q->ran + 1 : SIM_PAST;
    for (int64_t k = 0; k < n; k++) {
        double *left = &q->left[(q->ran - k) % SIM_PAST], *seen = &q->seen[(q->ran - k) % SIM_PAST];
        bool live = *left > earliest || *seen > earliest;
        put_word(t, live);
        if (!live) break;
        put_live(t, left, earliest, true);
        put_live(t, seen, earliest, true);
    }
}

static void put_queue(struct engine *e, struct tape *t, int q, double earliest) {
    struct queue_time *of = &e->queue[q];
    if (!of->fifo) return; /* never used */
    put_live(t, &of->last_start, earliest, true);
    put_live(t, &of->visible, earliest, true);
    put_servers(e, t, q, earliest);
    put_waiting(e, t, of);
    put_started(e, t, q, earliest);
    if (e->meets) put_past(e, t, of, earliest);
}

/* ---- syncs ---- */

static void put_tokens(struct tape *t, struct sync_time *s, double earliest) {
    put_word(t, (uint64_t)s->count);
    for (int k = 0; k < s->count; k++) put_live(t, &s->at[(s->head + k) % s->room], earliest, true);
}

static void put_groups(struct tape *t, struct sync_time *s, double earliest) {
    put_word(t, (uint64_t)(s->dispatched - s->count));
    for (int64_t k = s->dispatched - 1; k >= 0 && k >= s->dispatched - GROUPS_BACK; k--) {
        bool closed = k < s->room && s->at[k] >= 0;
        put_word(t, closed);
        if (closed) put_live(t, &s->at[k], earliest, true);
    }
}

static void put_syncs(struct engine *e, struct tape *t, double earliest) {
    for (int s = 0; s < e->machine->nsyncs; s++)
        for (int c = e->channel[s]; c < e->channel[s + 1]; c++) {
            if (e->machine->sync[s].kind == SYNC_TOKEN) put_tokens(t, &e->sync[c], earliest);
            if (e->machine->sync[s].kind == SYNC_GROUP) put_groups(t, &e->sync[c], earliest);
        }
}

/* ---- memories ---- */

/* What a piece would take, of which nothing is written down. */
static int64_t piece_words(const struct engine *e) {
    return 2 + (e->exact ? e->machine->nqueues : 0);
}

/* Of most pieces nothing is left to wait for: they are not written down. */
static void put_granule(struct engine *e, struct tape *t, int64_t number, struct granule *g,
                        const int64_t *read, double earliest) {
    int nqueues = e->exact ? e->machine->nqueues : 0;
    int64_t wrote = g->wrote_queue ? g->wrote - e->queue[g->wrote_queue - 1].ran : 0;
    bool writes = g->writer && g->visible > earliest,
         reads = e->exact && g->reader && g->read_end > earliest, live = wrote > 0;
    for (int q = 0; q < nqueues && !live; q++) live = read[q] > e->queue[q].ran;
    if (!live && !writes && !reads) {
        t->into->idle += piece_words(e);
        return;
    }
    put_word(t, (uint64_t)number);
    put_word(t, wrote > 0 ? (uint64_t)(wrote * 64 + g->wrote_queue) : 0);
    for (int q = 0; q < nqueues; q++) {
        int64_t more = read[q] - e->queue[q].ran;
        put_word(t, more > 0 ? (uint64_t)more : 0);
    }
    put_word(t, (uint64_t)(writes ? g->writer : 0) << 32 | (uint64_t)(reads ? g->reader : 0));
    if (writes) put_time(t, &g->visible, e->exact);
    if (reads) put_time(t, &g->read_end, true);
}

/* Everything on the page is over. */
static bool page_idle(const struct engine *e, const struct marks *m, struct marks_page *page,
                      double earliest) {
    if (page->latest > earliest) return false;
    for (int q = 0; q < e->machine->nqueues; q++)
        if (marks_most(m, page)[q] > e->queue[q].ran) return false;
    return true;
}

static void put_page(struct engine *e, struct tape *t, struct marks_page *page, int64_t first,
                     int64_t n, double earliest) {
    for (int64_t k = 0; k < n; k++) {
        struct granule *g = &page->granule[k];
        put_granule(e, t, first + k, g, &page->read[k * e->machine->nqueues], earliest);
        if (t->shift) page->latest = fmax(page->latest, fmax(g->visible, g->read_end));
    }
}

static void put_pages(struct engine *e, struct tape *t, struct image *image, double earliest) {
    int64_t all = image->bytes / image->piece + 1;
    for (int64_t first = 0; first < all; first += MARKS_PAGE) {
        struct marks_page *page = marks_page(&image->marks, first);
        int64_t n = all - first < MARKS_PAGE ? all - first : MARKS_PAGE;
        if (!page || page_idle(e, &image->marks, page, earliest))
            t->into->idle += n * piece_words(e);
        else
            put_page(e, t, page, first, n, earliest);
    }
}

static void put_images(struct engine *e, struct tape *t, double earliest) {
    for (int i = 0; e->tracks && i < e->machine->nmemories + e->machine->nstates; i++) {
        put_word(t, UINT64_MAX); /* numbers of pieces begin again */
        struct image *image = &e->image[i][image_instance(e, i)];
        if (image->marks.page && image_small(image)) put_pages(e, t, image, earliest);
    }
}

static void put_engine(struct engine *e, struct tape *t) {
    double earliest = earliest_start(e);
    for (int p = 0; p < e->schedule->nplaces; p++)
        if (e->schedule->place[p].slots > 1) put_word(t, (uint64_t)e->slot[p]);
    put_time(t, &e->floor, true);
    put_time(t, &e->end, true);
    for (int b = 0; b < e->machine->nbuses; b++) put_live(t, &e->bus_free[b], earliest, true);
    for (int q = 0; q < e->machine->nqueues; q++) put_queue(e, t, q, earliest);
    put_syncs(e, t, earliest);
    put_images(e, t, earliest);
}

/* ---- results ---- */

/* Calls f on each number of the result that grows. */
static void each_count(struct engine *e, void (*f)(double *, int64_t *, void *), void *user) {
    struct sim_result *r = e->result;
    const struct machine *m = e->machine;
    double *sums[] = {&r->host_cycles,     &r->home_read_bytes,  &r->home_write_bytes,
                      &r->host_read_bytes, &r->host_write_bytes, &r->energy};
    for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) f(sums[k], NULL, user);
    f(NULL, &r->instructions, user);
    f(NULL, &r->launches, user);
    for (int i = 0; i < r->nhost; i++) f(&r->host_of[i], NULL, user);
    for (int q = 0; q < m->nqueues; q++) {
        f(&r->queue[q].busy, NULL, user);
        f(&r->queue[q].wait, NULL, user);
        f(NULL, &r->queue[q].instructions, user);
    }
    for (int b = 0; b < m->nbuses; b++) {
        f(&r->bus[b].bytes, NULL, user);
        f(&r->bus[b].busy, NULL, user);
    }
    for (int s = 0; s < m->nsyncs; s++) {
        f(&r->sync[s].wait, NULL, user);
        f(NULL, &r->sync[s].pushes, user);
    }
    for (int i = 0; i <= m->ninstrs; i++) {
        f(NULL, &r->macs_on[i], user);
        f(NULL, &r->operations_on[i], user);
    }
}

struct counting {
    const double *first, *before, *now; /* first: NULL where each period adds the same */
    double *out;
    int n;
    int64_t periods;
};

static void count_note(double *sum, int64_t *number, void *user) {
    struct counting *c = user;
    c->out[c->n++] = sum ? *sum : (double)*number;
}

/* Waiting for what moves at another rate grows from one period to the next. */
static void count_more(double *sum, int64_t *number, void *user) {
    struct counting *c = user;
    double each = c->now[c->n] - c->before[c->n], n = (double)c->periods,
           growth = c->first ? each - (c->before[c->n] - c->first[c->n]) : 0;
    if (sum) *sum += n * each + growth * n * (n + 1) / 2;
    if (number) *number += c->periods * (int64_t)each;
    c->n++;
}

int counts_number(const struct engine *e) {
    const struct machine *m = e->machine;
    return 8 + e->result->nhost + 3 * m->nqueues + 2 * m->nbuses + 2 * m->nsyncs +
           2 * (m->ninstrs + 1);
}

void counts_take(struct engine *e, double *out) {
    struct counting c = {.out = out};
    each_count(e, count_note, &c);
}

void counts_add(struct engine *e, const double *before, const double *now) {
    each_count(e, count_more, &(struct counting){.before = before, .now = now, .periods = 1});
}

/* ---- touches ---- */

/* All that can still delay something; numbers count from what has run. */
static void put_touches(struct engine *e, struct tape *t, double earliest) {
    struct touches *all = &e->touches;
    struct snapshot *s = t->into;
    s->ntouches = 0;
    s->touches = all->n;
    if (!e->exact) return;
    while (all->hot < all->n && !touch_hot(e, &all->at[all->hot], earliest)) all->hot++;
    for (size_t k = all->hot; k < all->n; k++) {
        struct touch one = all->at[k];
        if (!touch_hot(e, &one, earliest)) continue;
        if (one.number) one.number -= e->queue[one.queue].ran;
        if (s->ntouches == s->cap_touches) {
            s->cap_touches = 2 * s->cap_touches + 64;
            s->touch = memory_grow(s->touch, (size_t)s->cap_touches * sizeof *s->touch);
        }
        s->touch[s->ntouches++] = one;
        put_time(t, &one.visible, one.visible > earliest);
        put_time(t, &one.end, one.end > earliest);
    }
}

static bool touch_alike(const struct touch *a, const struct touch *b) {
    return a->image == b->image && a->node == b->node && a->bytes == b->bytes &&
           a->queue == b->queue && a->use == b->use && a->reads == b->reads &&
           a->writes == b->writes && a->number == b->number;
}

static bool touches_alike(const struct touch *a, const struct touch *b, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (!touch_alike(&a[k], &b[k])) return false;
    return true;
}

/* Each use moves by as much as that before it of the same operand. */
static bool touches_follow(const struct touch *a, const struct touch *b, int n) {
    for (int k = 1; k < n; k++) {
        int i = k - 1;
        while (i >= 0 && (b[i].node != b[k].node || b[i].use != b[k].use)) i--;
        if (i >= 0 && b[i].address - a[i].address != b[k].address - a[k].address) return false;
    }
    return true;
}

/* What was written between the snapshots moves as it did before. */
bool snapshot_writes_alike(const struct engine *e, const struct snapshot *a,
                           const struct snapshot *b, const struct snapshot *c) {
    const struct touch *all = e->touches.at;
    size_t n = b->touches - a->touches;
    if (e->touches.lost) return false;
    if (e->exact) return true;
    if (c->touches - b->touches != n) return false;
    return touches_alike(all + a->touches, all + b->touches, n);
}

/* Out-of-order queues alone: each write of the last period, so many times more. Those that are
 * visible before anything can start hold up nobody, and are left out. */
static void write_again(struct engine *e, const struct snapshot *before, const struct snapshot *now,
                        int64_t periods) {
    size_t n = now->touches - before->touches;
    double earliest = earliest_start(e);
    for (int64_t k = 1; k <= periods; k++)
        for (size_t i = 0; i < n; i++) {
            struct touch last = e->touches.at[before->touches + i];
            const struct touch *first = &e->touches.at[before->touches - n + i];
            double later = (double)k * (last.visible - first->visible);
            if (last.visible + later <= earliest) continue;
            touch_again(e, &last, k * (last.address - first->address), later);
        }
}

static void touches_advance(struct engine *e, const struct snapshot *before,
                            const struct snapshot *now, int64_t periods) {
    int base = now->ntimes - 2 * now->ntouches;
    if (e->exact) touches_restart(e, now->touch, now->ntouches);
    for (int k = 0; k < now->ntouches; k++) {
        struct touch t = now->touch[k];
        int at = base + 2 * k;
        if (t.number) t.number += e->queue[t.queue].ran;
        touch_again(e, &t, periods * (t.address - before->touch[k].address),
                    (double)periods * fmax(now->time[at] - before->time[at],
                                           now->time[at + 1] - before->time[at + 1]));
    }
    if (!e->exact) write_again(e, before, now, periods);
}

/* ---- snapshots ---- */

void snapshot_take(struct engine *e, int64_t trip, struct snapshot *s) {
    struct tape t = {.into = s};
    s->trip = trip;
    s->nwords = s->ntimes = s->nnumbers = 0;
    s->idle = 0;
    put_engine(e, &t);
    put_touches(e, &t, earliest_start(e));
    e->written += s->idle + s->nwords + s->ntimes + s->nnumbers;
    if (!s->count) s->count = memory_array((size_t)counts_number(e), sizeof *s->count);
    counts_take(e, s->count);
}

void snapshot_free(struct snapshot *s) {
    free(s->word);
    free(s->time);
    free(s->leads);
    free(s->gap);
    free(s->number);
    free(s->touch);
    free(s->count);
    memset(s, 0, sizeof *s);
}

bool snapshot_alike(const struct snapshot *a, const struct snapshot *b) {
    return a->nwords == b->nwords && a->ntimes == b->ntimes && a->ntouches == b->ntouches &&
           a->nnumbers == b->nnumbers &&
           memcmp(a->word, b->word, (size_t)a->nwords * sizeof *a->word) == 0 &&
           touches_alike(a->touch, b->touch, (size_t)a->ntouches) &&
           touches_follow(a->touch, b->touch, a->ntouches);
}

void snapshot_advance(struct engine *e, const struct snapshot *first, const struct snapshot *before,
                      const struct snapshot *now, int64_t periods) {
    double *shift = memory_bytes((size_t)now->ntimes * sizeof *shift + 1);
    int64_t *move = memory_bytes((size_t)now->nnumbers * sizeof *move + 1);
    struct snapshot none = {0};
    for (int k = 0; k < now->ntimes; k++)
        shift[k] = (double)periods * (now->time[k] - before->time[k]);
    for (int k = 0; k < now->nnumbers; k++)
        move[k] = periods * (now->number[k].at - before->number[k].at);
    put_engine(e, &(struct tape){.into = &none, .shift = shift, .move = move});
    touches_advance(e, before, now, periods);
    each_count(e, count_more,
               &(struct counting){.first = first ? first->count : NULL,
                                  .before = before->count,
                                  .now = now->count,
                                  .periods = periods});
    free(shift);
    free(move);
}
