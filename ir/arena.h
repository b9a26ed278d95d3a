/* Memory by lifetime: everything that belongs to one program, machine, cover or schedule is freed at once. */
#ifndef ISAMAP_IR_ARENA_H
#define ISAMAP_IR_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena {
    struct arena_block *head;
};

void arena_init(struct arena *);
void arena_free(struct arena *);
void *arena_alloc(struct arena *, size_t bytes);                  /* zeroed, aligned to 16; never NULL: ir/memory.h says what happens when memory ends */
void *arena_array(struct arena *, size_t count, size_t size);     /* as calloc; an overflow counts as the end of memory */
void *arena_copy(struct arena *, const void *, size_t bytes);
void *arena_extended(struct arena *, const void *, size_t count, size_t more, size_t size); /* a copy; `more` zeros behind */
char *arena_strdup(struct arena *, const char *);
char *arena_strndup(struct arena *, const char *, size_t);
char *arena_printf(struct arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* a growing array in an arena: GROW(a, ptr, n, cap) makes room for one more element */
void *arena_grow(struct arena *, void *old, int n, int *cap, size_t size);
#define GROW(arena, ptr, n, cap) ((ptr) = arena_grow(arena, ptr, n, &(cap), sizeof *(ptr)))

/* text that grows; text is always NUL-terminated; free with text_free */
struct text {
    char *at;
    size_t n, cap;
};
void text_printf(struct text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_append(struct text *, const char *, size_t);
void text_free(struct text *);

#endif
