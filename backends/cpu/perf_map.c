/* Names of generated functions for Linux's perf, which reads /tmp/perf-PID.map: start, size and
 * name of each function, in hexadecimal numbers, one a line. */
#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct named {
    const char *name;
    uint64_t at, size; /* in its section */
};

struct perf_map {
    struct named *function;
    int n, cap;
    uint64_t entry; /* in the section */
};

/* Those of the entry's section, once it is known. */
static void read_symbols(struct cpu *c, LLVMBinaryRef binary, LLVMSectionIteratorRef text,
                         struct perf_map *m) {
    LLVMSymbolIteratorRef s = LLVMObjectFileCopySymbolIterator(binary);
    for (; !LLVMObjectFileIsSymbolIteratorAtEnd(binary, s); LLVMMoveToNextSymbol(s)) {
        if (!LLVMGetSectionContainsSymbol(text, s) || !LLVMGetSymbolSize(s)) continue;
        GROW(&c->arena, m->function, m->n, m->cap);
        m->function[m->n++] = (struct named){arena_strdup(&c->arena, LLVMGetSymbolName(s)),
                                             LLVMGetSymbolAddress(s), LLVMGetSymbolSize(s)};
    }
    LLVMDisposeSymbolIterator(s);
}

struct perf_map *perf_map_read(struct cpu *c, LLVMMemoryBufferRef object, const char *entry) {
    struct perf_map *m = NULL;
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, c->context, &message);
    LLVMDisposeMessage(message);
    if (!binary) return NULL;
    LLVMSymbolIteratorRef s = LLVMObjectFileCopySymbolIterator(binary);
    while (!LLVMObjectFileIsSymbolIteratorAtEnd(binary, s) && strcmp(LLVMGetSymbolName(s), entry))
        LLVMMoveToNextSymbol(s);
    if (!LLVMObjectFileIsSymbolIteratorAtEnd(binary, s)) {
        LLVMSectionIteratorRef text = LLVMObjectFileCopySectionIterator(binary);
        LLVMMoveToContainingSection(text, s);
        m = arena_alloc(&c->arena, sizeof *m);
        *m = (struct perf_map){.entry = LLVMGetSymbolAddress(s)};
        read_symbols(c, binary, text, m);
        LLVMDisposeSectionIterator(text);
    }
    LLVMDisposeSymbolIterator(s);
    LLVMDisposeBinary(binary);
    return m;
}

void perf_map_write(const struct perf_map *m, const void *entry) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "a");
    if (!f) { /* the code runs without it */
        if (fd >= 0) close(fd);
        return;
    }
    for (int i = 0; i < m->n; i++)
        fprintf(f, "%" PRIx64 " %" PRIx64 " %s\n",
                (uint64_t)(uintptr_t)entry - m->entry + m->function[i].at, m->function[i].size,
                m->function[i].name);
    fclose(f);
}
#endif
