/* Peers: what users would call instead. Each is one const struct in bench/peer_*.c, built as a module of its own that is loaded only when asked for
 * (two of the libraries define the same names); a module exports `isamap_peers`. */
#ifndef ISAMAP_BENCH_PEER_H
#define ISAMAP_BENCH_PEER_H

#include "bench/work.h"

struct peer {
    const char *name;
    const char *note;                                  /* what the time contains, where that is not plain */
    bool (*can)(const struct work *);
    /* a, b, c: row-major arrays, alive until release; what may be done ahead is done here. NULL: the library refused. */
    void *(*prepare)(const struct work *, const void *a, const void *b, void *c, int threads);
    bool (*run)(void *);
    bool (*finish)(void *);                            /* the result into c, untimed; NULL: run wrote it there */
    void (*release)(void *);
    /* Of a peer on a device, as in a contender (clock.h): its median of so many calls; NULL: `run` is timed. */
    bool (*measure)(void *, int calls, int64_t span, double *seconds);
};

typedef const struct peer *const *peers_export(void);  /* `isamap_peers`: NULL-terminated */
typedef const char *peers_missing(void);               /* `isamap_peers_missing`, where what it needs is found when it runs: what is missing; NULL */

/* ---- finding them (peers.c) ---- */
enum { MAX_PEERS = 16 };

struct peers {
    const struct peer *at[MAX_PEERS];
    int n;
    const char *missing[MAX_PEERS], *why[MAX_PEERS];   /* libraries without a module here; or why they do not work */
    int nmissing;
};

/* The peers of the libraries named in `which` (commas between; NULL: all that are there), of those on a device or of those on this processor.
 * False after reporting a name that is no library's, or one that was asked for by name and is not there, or not for where the code runs. */
bool peers_load(const char *which, bool device, struct peers *, struct diags *);

#endif
