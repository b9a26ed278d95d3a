/* Which code was executed: linked into each library of a build with ISAMAP_TRACE, where the
 * compiler calls __sanitizer_cov_trace_pc at the beginning of each basic block. If $ISAMAP_TRACE
 * names a folder, byte N of its file LIBRARY becomes 1 when the call was made that returns to
 * address N of the library. The processes of a test share the file. Each call is made once: it
 * replaces itself by an instruction that does nothing, with the variable and without, so the
 * program is nearly as fast as one without calls. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES ((size_t)64 << 20) /* more than any of the libraries has; the file is sparse */
#define HIDDEN __attribute__((visibility("hidden")))
#define UNSEEN __attribute__((no_sanitize_coverage))

HIDDEN UNSEEN void __sanitizer_cov_trace_pc(void);
extern const char __ehdr_start[] HIDDEN,
    _etext[] HIDDEN; /* the linker's: where the library begins, where its code ends */
static unsigned char *executed;
static bool can_replace;

/* The call's five bytes become a no-op of five bytes; other threads see all of it or nothing, as a
 * store within a line of the cache is one. */
static UNSEEN void replace_call(uintptr_t after) {
    uintptr_t at = after - 5;
    uint64_t code;
    if (!can_replace || (at & 63) > 56) return;
    memcpy(&code, (const void *)at, sizeof code);
    int32_t distance = (int32_t)(code >> 8);
    if ((code & 0xff) != 0xe8 ||
        after + (uintptr_t)(intptr_t)distance != (uintptr_t)__sanitizer_cov_trace_pc)
        return;
    *(volatile uint64_t *)at = (code & ~(uint64_t)0xffffffffff) | 0x0000441f0f;
}

void __sanitizer_cov_trace_pc(void) {
    uintptr_t after = (uintptr_t)__builtin_return_address(0);
    if (executed) executed[after - (uintptr_t)__ehdr_start] = 1;
    replace_call(after);
}

static UNSEEN __attribute__((constructor)) void begin(void) {
    const char *folder = getenv("ISAMAP_TRACE");
    Dl_info library;
    char path[4096];
#ifdef __x86_64__
    uintptr_t first = (uintptr_t)__ehdr_start & ~(uintptr_t)4095;
    can_replace = !mprotect((void *)first, ((uintptr_t)_etext - first + 4095) & ~(uintptr_t)4095,
                            PROT_READ | PROT_WRITE | PROT_EXEC);
#endif
    if (!folder || !dladdr(__ehdr_start, &library)) return;
    const char *slash = strrchr(library.dli_fname, '/');
    snprintf(path, sizeof path, "%s/%s", folder, slash ? slash + 1 : library.dli_fname);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return;
    void *at = ftruncate(file, (off_t)BYTES)
                   ? MAP_FAILED
                   : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) executed = at;
}
