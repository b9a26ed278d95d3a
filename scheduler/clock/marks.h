/* Who used which piece of a memory last. Pieces stand in pages, which are made when something is
 * left in them: of a large memory few are used. Where uses cover many pieces, what they leave is
 * noted once for whole blocks of pieces, and blocks of blocks, and goes on to what is inside only
 * when a part of it is asked for or changed. A use of any width takes O(64 * log64(pieces) *
 * queues) steps, amortised; up to MARKS_WIDE pieces are reached directly. */
#ifndef ISAMAP_SCHEDULER_CLOCK_MARKS_H
#define ISAMAP_SCHEDULER_CLOCK_MARKS_H

#include "ir/arena.h"
#include <stdbool.h>
#include <stdint.h>

enum { MARKS_WIDE = 512, MARKS_PAGE = 64 };

/* A piece of a memory, as far as hardware tracks who uses it. The two halves belong to two moments:
 * when an instruction enters its queue (program order), and when it runs. */
struct granule {
    double visible;  /* when the last write is seen by other queues */
    double read_end; /* when the last of its readers is finished */
    int64_t wrote;   /* number in its queue, from 1, of the last writer in program order */
    int16_t wrote_queue, writer, reader; /* queue + 1; 0: nobody. The last two: of what has run */
};

struct marks_blocks;

struct marks_page {
    int64_t epoch; /* other than the marks': it is as if there were none */
    double latest; /* no time of its granules is later */
    struct granule granule[MARKS_PAGE];
    int64_t read[]; /* [granule][queue]: number, from 1, of the last reader in program order; behind them
                       [queue]: no number of one of its readers or writers is more */
};

struct marks {
    struct marks_page **page; /* [granule / MARKS_PAGE]; NULL: nothing was left there. The array is
                                 NULL where nothing is tracked */
    int64_t n;                /* granules */
    int64_t epoch;            /* from 1: how often all was forgotten */
    int nqueues;
    struct marks_blocks *blocks; /* NULL while no use was wide */
    struct arena arena;          /* of the pages */
};

static inline struct marks_page *marks_page(const struct marks *m, int64_t granule) {
    struct marks_page *page = m->page[granule / MARKS_PAGE];
    return page && page->epoch == m->epoch ? page : NULL;
}

static inline int64_t *marks_most(const struct marks *m, struct marks_page *page) {
    return &page->read[MARKS_PAGE * m->nqueues];
}

/* As nobody left it, where there is no page. */
static inline struct granule marks_granule(const struct marks *m, int64_t granule) {
    const struct marks_page *page = marks_page(m, granule);
    return page ? page->granule[granule % MARKS_PAGE] : (struct granule){0};
}

/* What a use leaves. */
enum mark_kind {
    MARK_READER, /* it reads, in program order */
    MARK_WRITER, /* it writes, in program order */
    MARK_WRITTEN, /* what it wrote is visible at a time */
    MARK_READ     /* its reads end at a time; the latest stays */
};

struct mark {
    enum mark_kind kind;
    int queue;
    int64_t number;
    double at;
};

void marks_open(struct marks *, int64_t granules, int nqueues);
void marks_close(struct marks *);
void marks_forget(struct marks *); /* at once: what was made is used again */

/* Granules [first, last]; what lies outside is left out. */
void marks_put(struct marks *, int64_t first, int64_t last, const struct mark *);
/* number[q]: raised to the last writer's of each of these queues there, and to the last reader's. */
void marks_numbers(struct marks *, int64_t first, int64_t last, uint64_t writers, uint64_t readers,
                   int64_t *number);
/* When all that these queues wrote there is visible, and all that they read is read; 0: nothing. */
double marks_time(struct marks *, int64_t first, int64_t last, uint64_t writers, uint64_t readers);
/* What stands in the pages there is right until the next put. */
void marks_settle(struct marks *, int64_t first, int64_t last);
/* The reader or writer of this number is no longer one, in program order. */
void marks_remove(struct marks *, int64_t first, int64_t last, int queue, int64_t number);

#endif
