#if ISAMAP_WITH_LLVM
#include "backends/cpu/llvm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name) #name,
static const char *const name[] = {LLVM_CALLS(X)};
#undef X
static struct llvm table; /* a pointer for each name, in their order */
static void *library;

static void *find(const char *function) {
    void *at = library ? dlsym(library, function) : NULL;
    if (at) return at;
    fprintf(stderr, "isamap: error: %s\n", dlerror());
    exit(EXIT_FAILURE);
}

/* For all to see: code that LLVM makes calls functions of the libraries that it is linked with. */
static void load(void) {
    library = dlopen(ISAMAP_LLVM_NAME, RTLD_NOW | RTLD_GLOBAL);
    if (!library) library = dlopen(ISAMAP_LLVM_FILE, RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        void *at = find(name[i]);
        memcpy((char *)&table + i * sizeof at, &at, sizeof at);
    }
}

const struct llvm *llvm(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return &table;
}

/* LLVM's header calls them by the names of this computer's processor. */
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name
void llvm_native(void) {
    static const char *const part[] = {TEXT(LLVM_NATIVE_TARGETINFO), TEXT(LLVM_NATIVE_TARGET),
                                       TEXT(LLVM_NATIVE_TARGETMC), TEXT(LLVM_NATIVE_ASMPRINTER),
                                       TEXT(LLVM_NATIVE_ASMPARSER)};
    llvm();
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        void (*initialize)(void);
        *(void **)&initialize = find(part[i]);
        initialize();
    }
}
#endif
