/* A tree of blocks over the granules, 64 of a level in each of the next; what covers a whole block
 * is left at the block ("pending") and handed down before anything inside is looked at. Blocks keep
 * the largest values of what is inside; those whose inside was changed piece by piece are counted
 * anew when they are asked for. */
#include "scheduler/clock/marks.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FAN = MARKS_PAGE, LEVELS = 8 };

/* The largest of what is inside, by queue. */
struct largest {
    int64_t wrote, read;
    double visible, read_end;
};

struct block {
    int64_t epoch;              /* other than the marks': nothing was left there since */
    bool stale;                 /* the largest values are not those of what is inside */
    bool wrote, visible, ended; /* pending: of `all` */
    uint64_t read;              /* pending, by queue */
    struct granule all;
    double soonest; /* the least read_end inside */
};

struct level {
    int64_t n, width; /* blocks; granules of each */
    struct block *block;
    struct largest *largest; /* [block][queue] */
    int64_t *reading;        /* [block][queue]: pending numbers */
};

struct marks_blocks {
    int n;
    struct level level[LEVELS]; /* from the granules up */
};

void marks_open(struct marks *m, int64_t granules, int nqueues) {
    *m = (struct marks){.n = granules, .epoch = 1, .nqueues = nqueues};
    m->page = memory_take((size_t)(granules / MARKS_PAGE) + 1, sizeof(struct marks_page *));
    arena_init(&m->arena);
}

static struct marks_page *page_made(struct marks *m, int64_t granule) {
    struct marks_page **at = &m->page[granule / MARKS_PAGE];
    size_t bytes = sizeof **at + sizeof(int64_t) * (MARKS_PAGE + 1) * (size_t)m->nqueues;
    if (!*at)
        *at = arena_alloc(&m->arena, bytes);
    else if ((*at)->epoch != m->epoch)
        memset(*at, 0, bytes);
    (*at)->epoch = m->epoch;
    return *at;
}

static void blocks_free(struct marks_blocks *b) {
    for (int l = 0; b && l < b->n; l++) {
        memory_give(b->level[l].block);
        memory_give(b->level[l].largest);
        memory_give(b->level[l].reading);
    }
    free(b);
}

void marks_close(struct marks *m) {
    memory_give(m->page);
    arena_free(&m->arena);
    blocks_free(m->blocks);
    *m = (struct marks){0};
}

void marks_forget(struct marks *m) {
    m->epoch++;
}

static void blocks_open(struct marks *m) {
    struct marks_blocks *b = m->blocks = memory_array(1, sizeof *b);
    for (int64_t n = m->n, width = 1; n > 1 && b->n < LEVELS;) {
        n = (n + FAN - 1) / FAN;
        width *= FAN;
        struct level *l = &b->level[b->n++];
        *l = (struct level){.n = n, .width = width};
        l->block = memory_take((size_t)n, sizeof *l->block);
        l->largest = memory_take((size_t)n * (size_t)m->nqueues + 1, sizeof *l->largest);
        l->reading = memory_take((size_t)n * (size_t)m->nqueues + 1, sizeof *l->reading);
    }
}

static struct block *block_at(const struct marks *m, const struct level *l, int64_t k) {
    struct block *b = &l->block[k];
    if (b->epoch != m->epoch) *b = (struct block){.epoch = m->epoch, .stale = true};
    return b;
}

/* ---- one mark on one granule, on one block ---- */

/* Granules [from, to] of the page. */
static void mark_page(const struct marks *m, struct marks_page *page, int64_t from, int64_t to,
                      const struct mark *x) {
    int16_t queue = (int16_t)(x->queue + 1);
    int64_t *most = &marks_most(m, page)[x->queue];
    struct granule *is = page->granule;
    if (x->number > *most) *most = x->number;
    if (x->at > page->latest) page->latest = x->at;
    if (x->kind == MARK_READER)
        for (int64_t k = from; k <= to; k++) page->read[k * m->nqueues + x->queue] = x->number;
    if (x->kind == MARK_WRITER)
        for (int64_t k = from; k <= to; k++) is[k].wrote = x->number, is[k].wrote_queue = queue;
    if (x->kind == MARK_WRITTEN)
        for (int64_t k = from; k <= to; k++) is[k].visible = x->at, is[k].writer = queue;
    for (int64_t k = from; x->kind == MARK_READ && k <= to; k++)
        if (x->at >= is[k].read_end) is[k].read_end = x->at, is[k].reader = queue;
}

static int64_t page_end(int64_t granule, int64_t last) {
    int64_t end = granule | (MARKS_PAGE - 1);
    return end < last ? end : last;
}

static void mark_granules(struct marks *m, int64_t first, int64_t last, const struct mark *x) {
    for (int64_t g = first, end; g <= last; g = end + 1) {
        end = page_end(g, last);
        mark_page(m, page_made(m, g), g % MARKS_PAGE, end % MARKS_PAGE, x);
    }
}

static void read_block(const struct marks *m, struct block *b, struct largest *most,
                       const struct mark *x) {
    if (x->at >= b->all.read_end || !b->ended)
        b->all.read_end = x->at, b->all.reader = (int16_t)(x->queue + 1);
    b->ended = true;
    for (int q = 0; q < m->nqueues; q++)
        if (most[q].read_end <= x->at) most[q].read_end = 0;
    if (x->at < b->soonest) return;
    if (most[x->queue].read_end < x->at) most[x->queue].read_end = x->at;
    b->soonest = x->at;
}

static void mark_block(const struct marks *m, struct level *l, int64_t k, const struct mark *x) {
    struct block *b = block_at(m, l, k);
    struct largest *most = &l->largest[k * m->nqueues];
    int16_t queue = (int16_t)(x->queue + 1);
    if (x->kind == MARK_READER) {
        b->read |= UINT64_C(1) << x->queue;
        l->reading[k * m->nqueues + x->queue] = most[x->queue].read = x->number;
    } else if (x->kind == MARK_WRITER) {
        b->wrote = true;
        b->all.wrote = x->number, b->all.wrote_queue = queue;
        for (int q = 0; q < m->nqueues; q++) most[q].wrote = q == x->queue ? x->number : 0;
    } else if (x->kind == MARK_WRITTEN) {
        b->visible = true;
        b->all.visible = x->at, b->all.writer = queue;
        for (int q = 0; q < m->nqueues; q++) most[q].visible = q == x->queue ? x->at : 0;
    } else {
        read_block(m, b, most, x);
    }
}

static void mark_one(struct marks *m, int level, int64_t k, const struct mark *x) {
    if (level < 0)
        mark_granules(m, k, k, x);
    else
        mark_block(m, &m->blocks->level[level], k, x);
}

/* ---- blocks and what is inside ---- */

static int64_t count_of(const struct marks *m, int level) {
    return level < 0 ? m->n : m->blocks->level[level].n;
}

/* All that is pending goes to what is inside. */
static void hand_down(struct marks *m, int level, int64_t k) {
    struct level *l = &m->blocks->level[level];
    struct block *b = block_at(m, l, k);
    struct mark mark[4 + 64];
    int n = 0;
    if (!b->wrote && !b->visible && !b->ended && !b->read) return;
    for (uint64_t left = b->read; left; left &= left - 1) {
        int q = __builtin_ctzll(left);
        mark[n++] = (struct mark){MARK_READER, q, l->reading[k * m->nqueues + q], 0};
    }
    if (b->wrote) mark[n++] = (struct mark){MARK_WRITER, b->all.wrote_queue - 1, b->all.wrote, 0};
    if (b->visible) mark[n++] = (struct mark){MARK_WRITTEN, b->all.writer - 1, 0, b->all.visible};
    if (b->ended) mark[n++] = (struct mark){MARK_READ, b->all.reader - 1, 0, b->all.read_end};
    b->wrote = b->visible = b->ended = false;
    b->read = 0;
    int64_t first = k * FAN, end = first + FAN, all = count_of(m, level - 1);
    if (end > all) end = all;
    for (int i = 0; i < n && level == 0; i++) mark_granules(m, first, end - 1, &mark[i]);
    for (int64_t c = first; c < end && level > 0; c++)
        for (int i = 0; i < n; i++) mark_one(m, level - 1, c, &mark[i]);
}

static double largest(double a, double b) {
    return a > b ? a : b;
}

static void count_granule(const struct marks *m, const struct marks_page *page, int64_t k,
                          struct block *b, struct largest *most) {
    const struct granule *is = &page->granule[k];
    const int64_t *read = &page->read[k * m->nqueues];
    for (int q = 0; q < m->nqueues; q++)
        if (read[q] > most[q].read) most[q].read = read[q];
    if (is->wrote_queue && is->wrote > most[is->wrote_queue - 1].wrote)
        most[is->wrote_queue - 1].wrote = is->wrote;
    if (is->writer)
        most[is->writer - 1].visible = largest(most[is->writer - 1].visible, is->visible);
    if (is->reader)
        most[is->reader - 1].read_end = largest(most[is->reader - 1].read_end, is->read_end);
    if (is->read_end < b->soonest) b->soonest = is->read_end;
}

/* Of [first, last], which one page has. */
static void count_page(const struct marks *m, int64_t first, int64_t last, struct block *b,
                       struct largest *most) {
    const struct marks_page *page = marks_page(m, first);
    if (!page) b->soonest = fmin(b->soonest, 0);
    for (int64_t g = first; page && g <= last; g++) count_granule(m, page, g % MARKS_PAGE, b, most);
}

static void count_anew(struct marks *m, int level, int64_t k);

static void count_block(struct marks *m, int level, int64_t k, struct block *b,
                        struct largest *most) {
    count_anew(m, level, k);
    const struct level *l = &m->blocks->level[level];
    for (int q = 0; q < m->nqueues; q++) {
        const struct largest *is = &l->largest[k * m->nqueues + q];
        if (is->wrote > most[q].wrote) most[q].wrote = is->wrote;
        if (is->read > most[q].read) most[q].read = is->read;
        most[q].visible = largest(most[q].visible, is->visible);
        most[q].read_end = largest(most[q].read_end, is->read_end);
    }
    b->soonest = fmin(b->soonest, l->block[k].soonest);
}

static void count_anew(struct marks *m, int level, int64_t k) {
    struct level *l = &m->blocks->level[level];
    struct block *b = block_at(m, l, k);
    struct largest *most = &l->largest[k * m->nqueues];
    int64_t first = k * FAN, end = first + FAN, all = count_of(m, level - 1);
    if (!b->stale) return;
    hand_down(m, level, k);
    memset(most, 0, (size_t)m->nqueues * sizeof *most);
    b->soonest = INFINITY;
    if (end > all) end = all;
    if (level == 0) count_page(m, first, end - 1, b, most);
    for (int64_t c = first; c < end && level > 0; c++) count_block(m, level - 1, c, b, most);
    b->stale = false;
}

/* ---- ranges ---- */

/* Visits the fewest blocks and granules that make up [first, last]. */
struct visit {
    void (*at)(struct marks *, int level, int64_t k, void *user); /* level -1: a granule */
    void *user;
    bool changes;
};

static void visit(struct marks *m, int level, int64_t k, int64_t first, int64_t last,
                  const struct visit *v) {
    int64_t width = level < 0 ? 1 : m->blocks->level[level].width, from = k * width,
            to = from + width - 1;
    if (to < first || from > last) return;
    if (from >= first && to <= last) {
        v->at(m, level, k, v->user);
        return;
    }
    int64_t inner = width / FAN, all = count_of(m, level - 1);
    hand_down(m, level, k);
    if (v->changes) m->blocks->level[level].block[k].stale = true;
    int64_t c = first > from ? first / inner : k * FAN,
            end = last < to ? last / inner : k * FAN + FAN - 1;
    for (; c <= end && c < all; c++) visit(m, level - 1, c, first, last, v);
}

static bool is_wide(struct marks *m, int64_t *first, int64_t *last) {
    if (*first < 0) *first = 0;
    if (*last >= m->n) *last = m->n - 1;
    if (*last - *first <= MARKS_WIDE) return false;
    if (!m->blocks) blocks_open(m);
    return true;
}

static void visit_all(struct marks *m, int64_t first, int64_t last, const struct visit *v) {
    int top = m->blocks->n - 1;
    for (int64_t k = 0; k < m->blocks->level[top].n; k++) visit(m, top, k, first, last, v);
}

/* What is pending above them is handed down; with `change`, what is above is stale. */
static void reach(struct marks *m, int64_t first, int64_t last, bool change) {
    if (last < first) return;
    for (int level = m->blocks ? m->blocks->n - 1 : -1; level >= 0; level--) {
        struct level *l = &m->blocks->level[level];
        for (int64_t k = first / l->width; k <= last / l->width; k++) {
            hand_down(m, level, k);
            l->block[k].stale |= change;
        }
    }
}

void marks_settle(struct marks *m, int64_t first, int64_t last) {
    if (first < 0) first = 0;
    if (last >= m->n) last = m->n - 1;
    reach(m, first, last, false);
}

static void put_at(struct marks *m, int level, int64_t k, void *user) {
    mark_one(m, level, k, user);
}

void marks_put(struct marks *m, int64_t first, int64_t last, const struct mark *x) {
    struct mark mark = *x;
    if (is_wide(m, &first, &last)) {
        visit_all(m, first, last, &(struct visit){put_at, &mark, true});
        return;
    }
    reach(m, first, last, true);
    mark_granules(m, first, last, x);
}

struct numbers {
    uint64_t writers, readers;
    int64_t *number;
};

static void raise(int64_t *number, int64_t to) {
    if (to > *number) *number = to;
}

static void numbers_at(struct marks *m, int level, int64_t k, void *user) {
    const struct numbers *x = user;
    if (level < 0) {
        const struct marks_page *page = marks_page(m, k);
        if (!page) return;
        const struct granule *is = &page->granule[k % MARKS_PAGE];
        if (is->wrote_queue && x->writers >> (is->wrote_queue - 1) & 1)
            raise(&x->number[is->wrote_queue - 1], is->wrote);
        for (uint64_t left = x->readers; left; left &= left - 1) {
            int q = __builtin_ctzll(left);
            raise(&x->number[q], page->read[k % MARKS_PAGE * m->nqueues + q]);
        }
        return;
    }
    count_anew(m, level, k);
    const struct largest *most = &m->blocks->level[level].largest[k * m->nqueues];
    for (int q = 0; q < m->nqueues; q++) {
        if (x->writers >> q & 1) raise(&x->number[q], most[q].wrote);
        if (x->readers >> q & 1) raise(&x->number[q], most[q].read);
    }
}

/* Does the granule's page have a number that is more? */
static bool page_may_raise(const struct marks *m, int64_t granule, const struct numbers *x) {
    struct marks_page *page = marks_page(m, granule);
    uint64_t more = 0;
    for (int q = 0; page && q < m->nqueues; q++)
        more |= (uint64_t)(marks_most(m, page)[q] > x->number[q]) << q;
    return more & (x->writers | x->readers);
}

void marks_numbers(struct marks *m, int64_t first, int64_t last, uint64_t writers, uint64_t readers,
                   int64_t *number) {
    struct numbers x = {writers, readers, number};
    if (!(writers | readers)) return;
    if (is_wide(m, &first, &last)) {
        visit_all(m, first, last, &(struct visit){numbers_at, &x, false});
        return;
    }
    reach(m, first, last, false);
    for (int64_t g = first, end; g <= last; g = end + 1) {
        end = page_end(g, last);
        if (!page_may_raise(m, g, &x)) continue;
        for (; g <= end; g++) numbers_at(m, -1, g, &x);
    }
}

struct times {
    uint64_t writers, readers;
    double at;
};

static void times_at(struct marks *m, int level, int64_t k, void *user) {
    struct times *x = user;
    if (level < 0) {
        const struct granule is = marks_granule(m, k);
        if (is.writer && x->writers >> (is.writer - 1) & 1) x->at = largest(x->at, is.visible);
        if (is.reader && x->readers >> (is.reader - 1) & 1) x->at = largest(x->at, is.read_end);
        return;
    }
    count_anew(m, level, k);
    const struct largest *most = &m->blocks->level[level].largest[k * m->nqueues];
    for (int q = 0; q < m->nqueues; q++) {
        if (x->writers >> q & 1) x->at = largest(x->at, most[q].visible);
        if (x->readers >> q & 1) x->at = largest(x->at, most[q].read_end);
    }
}

double marks_time(struct marks *m, int64_t first, int64_t last, uint64_t writers,
                  uint64_t readers) {
    struct times x = {writers, readers, 0};
    if (!(writers | readers)) return 0;
    if (is_wide(m, &first, &last)) {
        visit_all(m, first, last, &(struct visit){times_at, &x, false});
        return x.at;
    }
    reach(m, first, last, false);
    for (int64_t g = first, end; g <= last; g = end + 1) {
        const struct marks_page *page = marks_page(m, g);
        end = page_end(g, last);
        for (; page && page->latest > x.at && g <= end; g++) times_at(m, -1, g, &x);
    }
    return x.at;
}

void marks_remove(struct marks *m, int64_t first, int64_t last, int queue, int64_t number) {
    if (first < 0) first = 0;
    if (last >= m->n) last = m->n - 1;
    reach(m, first, last, true);
    for (int64_t g = first; g <= last; g++) {
        struct marks_page *page = marks_page(m, g);
        if (!page) continue;
        struct granule *is = &page->granule[g % MARKS_PAGE];
        int64_t *read = &page->read[g % MARKS_PAGE * m->nqueues + queue];
        if (is->wrote_queue == queue + 1 && is->wrote == number) is->wrote_queue = 0;
        if (*read == number) *read = 0;
    }
}
