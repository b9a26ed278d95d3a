#include "ir/memory.h"

#include <stdio.h>
#include <stdlib.h>
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
    innermost = s;
}

void memory_scope_close(struct memory_scope *s) {
    while (s->blocks) memory_block_leave(s->blocks);
    innermost = s->outer;
}

void memory_exhausted(size_t bytes) {
    struct memory_scope *s = innermost;
    if (!s) {
        static const char text[] = "isamap: error: not enough memory\n";
        ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
        (void)written;
        _exit(6);
    }
    s->wanted = bytes;
    while (s->blocks) {
        struct memory_block *b = s->blocks;
        memory_block_leave(b);
        free(b);
    }
    innermost = s->outer;
    longjmp(s->escape, 1);
}

void *memory_checked(void *p) {
    if (!p) memory_exhausted(0);
    return p;
}

void *memory_array(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) memory_exhausted(0);
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) memory_exhausted(bytes);
    return p;
}

void *memory_grow(void *old, size_t bytes) {
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p) memory_exhausted(bytes);
    return p;
}
