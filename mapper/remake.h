/* What a program could be made where it is compiled: what parts of it cost, and the question that chooses
 * (remake.c). Which programs are offered: rw_cover.c, rw_sums.c. */
#ifndef ISAMAP_MAPPER_REMAKE_H
#define ISAMAP_MAPPER_REMAKE_H

#include "mapper/rewrite_int.h"

enum { MAX_WAYS = 6 };
static const double margin = 0.8; /* estimates are no closer */

struct stretch {
    int from, to; /* statements from .. to - 1 */
};

struct part_price {
    double cycles;
    double constants; /* of these, for reading what is known before the first run */
    bool needles;     /* instructions execute all of it but fills */
    bool stays;       /* those of a device can */
    bool products;    /* or at least its sums of products, but for corrections beside them */
    bool device;      /* these are executed by a device */
    bool uncut;       /* these are executed whole */
};

/* What statements from .. to - 1 cost as part of program q. Of the covering's own, which many others are compared with,
 * users stay known. */
struct part_price part_price(struct covering *, struct program *q, int from, int to);
/* Of the statement as it stands. Who names a device wants sums of products done there: as long as some rewrite leads there,
 * nothing else will do. */
struct part_price price_of_keeping(struct covering *, int stmt);

/* What a statement may become. */
struct outcome {
    struct program *program; /* NULL: it stays as it is */
    struct stretch at;
    const char *by; /* NULL: what the answer says */
    struct rewrite whole;
    bool proved, refuted;
};

/* A question about a statement, as it is kept. n 0: there is nothing to ask. */
struct remake {
    const char *subject;
    struct candidate *candidate;
    struct outcome *outcome; /* of each candidate */
    int n;
};

struct remake *remake_new(struct covering *, const char *subject, int most);
/* The text of the candidate is kept; its program ends with the question. */
void remake_add(struct covering *, struct remake *, const char *text, double price, struct outcome);
/* The program that the answer leads to, what is written in place of the statement being `at`; NULL: it stays. */
struct program *remake_ask(struct covering *, struct remake *, int stmt, struct stretch *at);
struct reason reason_of(const char *by, const char *buffer, const struct rewrite *whole);

/* Into how many parts a long sum is cut, and what sums of few terms an instruction makes of it (rw_sums.c). */
struct remake *list_parts(struct covering *, int stmt);
struct remake *list_terms(struct covering *, int stmt);

#endif
