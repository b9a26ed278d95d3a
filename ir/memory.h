/* When memory ends. Each call of isamap.h opens a scope; an allocation that fails inside it ends the call: the blocks of arenas that
 * the call took are given back, and the call returns ISAMAP_RESOURCES. Other memory that it held at that moment stays with the
 * process. Without a scope the process ends with a message and exit status 6. */
#ifndef ISAMAP_IR_MEMORY_H
#define ISAMAP_IR_MEMORY_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* They never return NULL. Free with free(). */
void *memory_array(size_t count, size_t size); /* zeroed; an overflow counts as the end of memory */
void *memory_bytes(size_t bytes);              /* not zeroed, as what memory_grow adds */
void *memory_grow(void *old, size_t bytes);
/* What may be large: zeroed, aligned to 64 bytes, in large pages from some MiB on, given back by the scope too. Free with memory_give, which takes NULL. */
void *memory_take(size_t count, size_t size);
void memory_give(void *);

/* The process's exit status where no call is there to end. */
enum { MEMORY_STATUS = 6 };

/* Ends the call, or the process. bytes: what was asked for; 0: not known. */
_Noreturn void memory_exhausted(size_t bytes);

/* A block that its scope gives back when memory ends: the header of what malloc gave. */
struct memory_block {
    struct memory_block *next, **link; /* link: what points here; NULL: in no scope */
};

struct memory_scope {
    jmp_buf escape;
    struct memory_scope *outer;
    struct memory_block *blocks;
    pid_t process; /* a child does not go on where its parent called */
    size_t wanted; /* bytes, once memory has ended */
};

/* The block joins the innermost scope of this thread, or leaves the one that it is in. */
void memory_block_enter(struct memory_block *);
void memory_block_leave(struct memory_block *);

/* memory_scope_open(&s); if (setjmp(s.escape)) …memory has ended: the scope is closed… ; …; memory_scope_close(&s) */
void memory_scope_open(struct memory_scope *);
void memory_scope_close(struct memory_scope *);

#endif
