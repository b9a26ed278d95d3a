/* Preloaded: from the N-th allocation on ($SCARCE) there is no memory; 0 counts them on standard error. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static atomic_long count, first = -1;

static int none(void) {
    long n = atomic_fetch_add(&count, 1);
    if (atomic_load(&first) > 0 && n >= atomic_load(&first)) return errno = ENOMEM, 1;
    return 0;
}
void *malloc(size_t n) { return none() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return none() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return none() ? NULL : __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { return none() ? NULL : __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) {
    return (*p = memalign(a, n)) ? 0 : ENOMEM;
}

/* From main on, so that the loader has what it needs. */
__attribute__((constructor)) static void start(void) {
    const char *at = getenv("SCARCE");
    atomic_store(&count, 0);
    atomic_store(&first, at ? atol(at) : 0);
}
__attribute__((destructor)) static void stop(void) {
    char text[64];
    if (atomic_load(&first)) return;
    int n = snprintf(text, sizeof text, "allocations %ld\n", atomic_load(&count));
    if (write(2, text, (size_t)n) < 0) return;
}
