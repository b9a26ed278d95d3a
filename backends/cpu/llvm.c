#if ISAMAP_WITH_LLVM
#include "backends/cpu/llvm.h"
#include "ir/memory.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define X(name) #name,
static const char *const name[] = {LLVM_CALLS(X)};
#undef X
static struct llvm table; /* a pointer for each name, in their order */
static char missing[512]; /* what of it could not be loaded; empty: nothing */
static bool loaded;

/* A function of the library, or NULL. */
static void *find(void *library, const char *function) {
    void *at = library ? dlsym(library, function) : NULL;
    if (!at) snprintf(missing, sizeof missing, "%s", dlerror());
    return at;
}

/* LLVM's header calls them by the names of this computer's processor. */
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name
static void initialize_native(void *library) {
    static const char *const part[] = {TEXT(LLVM_NATIVE_TARGETINFO), TEXT(LLVM_NATIVE_TARGET),
                                       TEXT(LLVM_NATIVE_TARGETMC), TEXT(LLVM_NATIVE_ASMPRINTER),
                                       TEXT(LLVM_NATIVE_ASMPARSER)};
    for (size_t i = 0; i < sizeof part / sizeof *part && !*missing; i++) {
        void (*initialize)(void);
        *(void **)&initialize = find(library, part[i]);
        if (initialize) initialize();
    }
}

static void no_memory(void *user, const char *reason, bool diagnose) {
    (void)user, (void)reason, (void)diagnose;
    memory_exhausted(0);
}

/* LLVM aborts where it finds no memory, unless it is told what to do, which only C++ can: the name
 * is that of llvm::install_bad_alloc_error_handler. */
static void handle_exhaustion(void *library) {
    void (*install)(void (*)(void *, const char *, bool), void *);
    *(void **)&install = dlsym(library, "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
    if (install) install(no_memory, NULL);
}

/* For all to see: code that LLVM makes calls functions of the libraries that it is linked with. */
static void load(void) {
    void *library = dlopen(ISAMAP_LLVM_NAME, RTLD_NOW | RTLD_GLOBAL);
    if (!library) library = dlopen(ISAMAP_LLVM_FILE, RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < sizeof name / sizeof *name && !*missing; i++) {
        void *at = find(library, name[i]);
        memcpy((char *)&table + i * sizeof at, &at, sizeof at);
    }
    if (!*missing) initialize_native(library);
    if (!*missing) handle_exhaustion(library);
    loaded = !*missing;
}

const char *llvm_missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return *missing ? missing : NULL;
}

const struct llvm *llvm(void) {
    assert(loaded);
    return &table;
}
#endif
