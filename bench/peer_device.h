/* What peers on a CUDA device share: the driver, found when it is needed, and arrays in the device's memory that are used in turns. */
#ifndef ISAMAP_BENCH_PEER_DEVICE_H
#define ISAMAP_BENCH_PEER_DEVICE_H

#include "bench/peer.h"

/* A context on the first device is there. False: `why` says what is not. */
bool peer_device(const char **why);
/* The first library of these names that is found, in the library path or the toolkit's folder; NULL. */
void *peer_library(const char *const *name);
/* Functions of a library, by name; false: one is missing. */
bool peer_symbols(void *library, const char *const *name, void *const *to, int n);

/* Copies of the two operands and the result, one behind the other. */
struct peer_arrays {
    uint64_t base;
    int64_t at[3], bytes[3], each;
    int copies;
};
bool peer_arrays_make(struct peer_arrays *, const int64_t bytes[3], const void *a, const void *b);
void peer_arrays_free(struct peer_arrays *);
bool peer_result(const struct peer_arrays *, void *c);
void *peer_memory(size_t bytes); /* of the device; NULL: none, or no room */
void peer_memory_free(void *);

/* The library's call, with the addresses of both operands and the result. */
typedef bool peer_call(void *user, void *a, void *b, void *c);
bool peer_once(const struct peer_arrays *, peer_call *, void *user);
/* The median of so many calls between events, over copies that take `span` bytes together. */
bool peer_measure(struct peer_arrays *, peer_call *, void *user, int calls, int64_t span, double *seconds);

#endif
