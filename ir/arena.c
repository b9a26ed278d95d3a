#include "ir/arena.h"
#include "ir/memory.h"
#include "ir/poison.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, BLOCK_MIN = 8192 };

struct arena_block {
    struct memory_block scope; /* first: it is what the scope frees */
    struct arena_block *next;
    size_t used, size;
    void *pad; /* the header is a multiple of ALIGN */
    unsigned char data[];
};
static_assert(sizeof(struct arena_block) % ALIGN == 0, "data must be aligned");

void arena_init(struct arena *a) {
    a->head = NULL;
}

void arena_free(struct arena *a) {
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        memory_block_leave(&b->scope);
        free(b);
    }
    a->head = NULL;
}

static struct arena_block *block_new(struct arena *a, size_t bytes) {
    size_t size = a->head && a->head->size < (1 << 20) ? 2 * a->head->size : BLOCK_MIN;
    if (size < bytes) size = bytes;
    struct arena_block *b = malloc(sizeof *b + size);
    if (!b) memory_exhausted(size);
    *b = (struct arena_block){.next = a->head, .size = size};
    memory_block_enter(&b->scope);
    ASAN_POISON_MEMORY_REGION(b->data, size);
    a->head = b;
    return b;
}

/* Only the bytes that were asked for may be touched: an array that is too short is found as with
 * malloc. */
static void *take(struct arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 2) memory_exhausted(bytes);
    size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN + POISON_GAP;
    struct arena_block *b = a->head;
    if (!b || b->size - b->used < whole) b = block_new(a, whole);
    void *p = b->data + b->used;
    b->used += whole;
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    return p;
}

void *arena_alloc(struct arena *a, size_t bytes) {
    return memset(take(a, bytes), 0, bytes);
}

void *arena_array(struct arena *a, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) memory_exhausted(0);
    return arena_alloc(a, bytes);
}

void *arena_copy(struct arena *a, const void *from, size_t bytes) {
    void *p = take(a, bytes);
    return bytes ? memcpy(p, from, bytes) : p;
}

void *arena_extended(struct arena *a, const void *from, size_t count, size_t more, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count + more, size, &bytes)) memory_exhausted(0);
    char *p = take(a, bytes);
    if (count) memcpy(p, from, count * size);
    memset(p + count * size, 0, more * size);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
    char *p = arena_alloc(a, n + 1);
    if (n) memcpy(p, s, n);
    return p;
}

char *arena_strdup(struct arena *a, const char *s) {
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    assert(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return p;
}

void *arena_grow(struct arena *a, void *old, int n, int *cap, size_t size) {
    if (n < *cap) return old;
    int more = *cap ? *cap * 2 : 8;
    if (more <= n) more = n + 1;
    void *p = arena_array(a, (size_t)more, size);
    if (n) memcpy(p, old, (size_t)n * size);
    *cap = more;
    return p;
}

static void text_reserve(struct text *t, size_t more) {
    if (t->cap - t->n > more) return;
    if (more > SIZE_MAX / 8 || t->n > SIZE_MAX / 8) memory_exhausted(more);
    size_t cap = 2 * (t->n + more) + 64;
    t->at = memory_grow(t->at, cap);
    t->cap = cap;
}

void text_append(struct text *t, const char *s, size_t n) {
    text_reserve(t, n);
    if (n) memcpy(t->at + t->n, s, n);
    t->n += n;
    t->at[t->n] = 0;
}

void text_printf(struct text *t, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    assert(n >= 0);
    text_reserve(t, (size_t)n);
    vsnprintf(t->at + t->n, (size_t)n + 1, fmt, again);
    t->n += (size_t)n;
    va_end(again);
    va_end(args);
}

void text_free(struct text *t) {
    free(t->at);
    *t = (struct text){0};
}
