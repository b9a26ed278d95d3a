/* What code calls must be in a library that is linked with it: a function of the C library, of a
 * machine file's libraries, of OpenMP's runtime or of the compiler's. LLVM's code generator adds
 * calls of its own where the processor lacks an instruction, so its object is asked. */
#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"

#include <dlfcn.h>
#include <string.h>

struct symbols {
    const char **name;
    int n, cap;
};

/* ---- libraries ---- */
const char *library_file(struct cpu *c, const char *name) {
    for (int version = -1; version < 10; version++) {
        const char *file = version < 0 ? arena_printf(&c->arena, "lib%s.so", name)
                                       : arena_printf(&c->arena, "lib%s.so.%d", name, version);
        /* it stays: threads of a runtime may outlive the code that started them */
        void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle) continue;
        dlclose(handle);
        return file;
    }
    return NULL;
}

const char **code_libraries(struct cpu *c) {
    const char **used = schedule_libraries(&c->arena, c->schedule, LANGUAGE_LLVM), **all;
    int n = 0, at = 0;
    while (used[n]) n++;
    all = arena_array(&c->arena, (size_t)n + 2, sizeof *all);
    for (int i = 0; i < n; i++) all[at++] = used[i];
    if (c->parallel) all[at++] = "gomp";
    all[at] = NULL;
    return all;
}

/* ---- calls ---- */
static void add_name(struct cpu *c, struct symbols *all, const char *name) {
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->name[i], name)) return;
    GROW(&c->arena, all->name, all->n, all->cap);
    all->name[all->n++] = arena_strdup(&c->arena, name);
}

/* The symbols that code refers to and no section defines. */
static void read_section(struct cpu *c, LLVMBinaryRef binary, LLVMSectionIteratorRef section,
                         struct symbols *all) {
    LLVMRelocationIteratorRef r = LLVMGetRelocations(section);
    LLVMSectionIteratorRef of = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMIsRelocationIteratorAtEnd(section, r); LLVMMoveToNextRelocation(r)) {
        LLVMSymbolIteratorRef s = LLVMGetRelocationSymbol(r);
        if (!LLVMObjectFileIsSymbolIteratorAtEnd(binary, s)) {
            const char *name = LLVMGetSymbolName(s);
            LLVMMoveToContainingSection(of, s);
            if (name && *name && LLVMObjectFileIsSectionIteratorAtEnd(binary, of))
                add_name(c, all, name);
        }
        LLVMDisposeSymbolIterator(s);
    }
    LLVMDisposeSectionIterator(of);
    LLVMDisposeRelocationIterator(r);
}

/* False: it is no object that LLVM reads. */
static bool read_calls(struct cpu *c, LLVMMemoryBufferRef object, struct symbols *all) {
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, c->context, &message);
    LLVMDisposeMessage(message);
    if (!binary) return false;
    LLVMSectionIteratorRef s = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMObjectFileIsSectionIteratorAtEnd(binary, s); LLVMMoveToNextSection(s))
        read_section(c, binary, s, all);
    LLVMDisposeSectionIterator(s);
    LLVMDisposeBinary(binary);
    return true;
}

/* ---- the question ---- */
static bool has_symbol(const char *file, const char *name) {
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    bool has = handle && dlsym(handle, name);
    if (handle) dlclose(handle);
    return has;
}

bool symbols_found(struct cpu *c, LLVMMemoryBufferRef object) {
    static const char *const always[] = {"c", "m", "gcc_s"};
    const char **used = code_libraries(c), *file[32], *missing = "";
    struct symbols calls = {0};
    int nfiles = 0;
    if (!read_calls(c, object, &calls) || !calls.n) return true;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if ((file[nfiles] = library_file(c, always[i]))) nfiles++;
    /* one that only the linker finds may have it: the linker says so */
    for (int i = 0; used[i] && nfiles < 32; i++)
        if (!(file[nfiles++] = library_file(c, used[i]))) return true;
    for (int i = 0; i < calls.n; i++) {
        bool found = false;
        for (int k = 0; k < nfiles && !found; k++) found = has_symbol(file[k], calls.name[i]);
        if (!found)
            missing =
                arena_printf(&c->arena, "%s%s'%s'", missing, *missing ? ", " : "", calls.name[i]);
    }
    if (!*missing) return true;
    cpu_error(c,
              "compiled code calls %s, which is in no library that is linked; expected emits that "
              "name its library, or features in their 'needs' with which no call is needed",
              missing);
    return false;
}
#endif
