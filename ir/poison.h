/* Bytes that nobody may touch, for the address sanitizer; nothing without it. */
#ifndef ISAMAP_IR_POISON_H
#define ISAMAP_IR_POISON_H

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
enum { POISON_GAP = 16 }; /* bytes between two pieces of a block */
#else
enum { POISON_GAP = 0 };
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at))
#endif

#endif
