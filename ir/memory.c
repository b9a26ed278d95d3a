#include "ir/memory.h"
#include "ir/cleanup.h"
#include "ir/poison.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of this thread: the calls of isamap.h that it is in. */
static _Thread_local struct memory_scope *innermost;

void memory_block_leave(struct memory_block *b) {
    if (!b->link) return;
    *b->link = b->next;
    if (b->next) b->next->link = b->link;
    b->next = NULL;
    b->link = NULL;
}

void memory_block_enter(struct memory_block *b) {
    *b = (struct memory_block){0};
    if (!innermost) return;
    b->next = innermost->blocks;
    b->link = &innermost->blocks;
    if (b->next) b->next->link = &b->next;
    innermost->blocks = b;
}

void memory_scope_open(struct memory_scope *s) {
    s->outer = innermost;
    s->blocks = NULL;
    s->wanted = 0;
    s->process = getpid();
    innermost = s;
}

void memory_scope_close(struct memory_scope *s) {
    while (s->blocks) memory_block_leave(s->blocks);
    innermost = s->outer;
}

void memory_exhausted(size_t bytes) {
    struct memory_scope *s = innermost;
    if (!s || s->process != getpid()) {
        static const char text[] = "isamap: error: not enough memory\n";
        ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
        cleanup_all();
        _exit(MEMORY_STATUS);
    }
    cleanup_thread();
    s->wanted = bytes;
    while (s->blocks) {
        struct memory_block *b = s->blocks;
        memory_block_leave(b);
        free(b);
    }
    innermost = s->outer;
    longjmp(s->escape, 1);
}

static size_t total(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) memory_exhausted(0);
    return bytes ? bytes : 1;
}

void *memory_array(size_t count, size_t size) {
    size_t bytes = total(count, size);
    void *p = calloc(bytes, 1);
    if (!p) memory_exhausted(bytes);
    return p;
}

void *memory_bytes(size_t bytes) {
    void *p = malloc(total(bytes, 1));
    if (!p) memory_exhausted(bytes);
    return p;
}

void *memory_grow(void *old, size_t bytes) {
    void *p = realloc(old, total(bytes, 1));
    if (!p) memory_exhausted(bytes);
    return p;
}

/* | block | … | address of the block | what the caller gets, aligned | */
enum { TAKEN_ALIGN = 64 };

/* Weights and arrays of many pages lie in large ones, where the system gives such on demand: their
 * addresses need few entries of the TLB, and prefetchers go on where a small page ends. It is no
 * error where it does not. Whole pages of the block alone, since others may have the rest. */
static void ask_large_pages(void *block, size_t bytes) {
    enum { WORTH = 4 << 20 }; /* two large pages of 2 MiB: one of them at least is whole */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)block,
              first = (at + page - 1) / page * page;
    if (bytes >= WORTH)
        madvise((char *)block + (first - at), bytes / page * page - page, MADV_HUGEPAGE);
}

void *memory_take(size_t count, size_t size) {
    size_t bytes = total(count, size);
    size_t whole = bytes + sizeof(struct memory_block) + sizeof(void *) + TAKEN_ALIGN;
    struct memory_block *b = calloc(whole, 1);
    if (!b) memory_exhausted(bytes);
    ask_large_pages(b, bytes);
    memory_block_enter(b);
    uintptr_t first = (uintptr_t)(b + 1) + sizeof b;
    char *at = (char *)b + ((first + TAKEN_ALIGN - 1) / TAKEN_ALIGN * TAKEN_ALIGN - (uintptr_t)b);
    memcpy(at - sizeof b, &b, sizeof b);
    ASAN_POISON_MEMORY_REGION(at + bytes, (size_t)((char *)b + whole - at) - bytes);
    return at;
}

void memory_give(void *p) {
    struct memory_block *b;
    if (!p) return;
    memcpy(&b, (char *)p - sizeof b, sizeof b);
    memory_block_leave(b);
    free(b);
}
