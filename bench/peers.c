/* The modules are called isamap-peer-LIBRARY.so. They stay loaded: their libraries start threads.
 */
#include "bench/peer.h"
#include "ir/nearest.h"
#include "machines/share.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const libraries[] = {"openblas", "onednn", "libxsmm", "blis", "cublas", "cudnn"};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, ON_DEVICE = 4 /* from here on */ };
static const char NOT_BUILT[] = "not among the libraries of this build";

static bool named(const char *which, const char *library) {
    size_t n = strlen(library);
    for (const char *p = which; *p; p += *p == ',') {
        size_t k = strcspn(p, ",");
        if (k == n && memcmp(p, library, n) == 0) return true;
        p += k;
    }
    return false;
}

static bool check_names(const char *which, struct diags *diags) {
    for (const char *p = which; *p; p += *p == ',') {
        size_t k = strcspn(p, ",");
        bool known = false;
        for (int l = 0; l < LIBRARIES; l++)
            known = known || (strlen(libraries[l]) == k && memcmp(p, libraries[l], k) == 0);
        if (!known) {
            const char *wanted = arena_strndup(&diags->arena, p, k);
            diag_line(diags, "--vs", 0, 0, "no peer '%s', expected %s, with commas between", wanted,
                      names_near(&diags->arena, wanted, libraries, LIBRARIES));
            return false;
        }
        p += k;
    }
    return true;
}

/* $ISAMAP_PEER_PATH alone where it is set; else beside this code (a build), above it, and where
 * `install` puts modules. */
static void *open_module(const char *library) {
    struct arena a;
    Dl_info here;
    const char *given = getenv("ISAMAP_PEER_PATH"), *folder[3] = {given, NULL, NULL};
    void *handle = NULL;
    arena_init(&a);
    if (!given && dladdr((const void *)libraries, &here) && here.dli_fname) {
        /* of a command that was found through the path the name alone is known */
        bool path = strchr(here.dli_fname, '/') != NULL;
        char *self = realpath(path ? here.dli_fname : "/proc/self/exe", NULL),
             *slash = self ? strrchr(self, '/') : NULL;
        if (slash) {
            folder[1] = arena_printf(&a, "%.*s/peers", (int)(slash - self), self);
            folder[2] = arena_printf(&a, "%.*s/../peers", (int)(slash - self), self);
        }
        free(self);
        folder[0] = module_folder(&a);
    }
    for (int i = 2; i >= 0 && !handle; i--) {
        if (!folder[i]) continue;
        const char *path = arena_printf(&a, "%s/isamap-peer-%s.so", folder[i], library);
        if (access(path, R_OK) == 0) handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    arena_free(&a);
    return handle;
}

/* NULL: what the module needs is there. */
static const char *not_there(void *module) {
    peers_missing *missing;
    void *symbol = module ? dlsym(module, "isamap_peers_missing") : NULL;
    memcpy(&missing, &symbol, sizeof symbol);
    if (!module) return NOT_BUILT;
    return symbol ? missing() : NULL;
}

static void add(struct peers *p, void *module) {
    peers_export *exported;
    void *symbol = dlsym(module, "isamap_peers");
    memcpy(&exported, &symbol, sizeof symbol);
    const struct peer *const *list = symbol ? exported() : NULL;
    for (int i = 0; list && list[i] && p->n < MAX_PEERS; i++) p->at[p->n++] = list[i];
}

/* It was asked for by name. */
static bool refuse(int library, bool device, const char *why, struct diags *diags) {
    if ((library >= ON_DEVICE) != device)
        diag_line(diags, "--vs", 0, 0, "'%s' works %s, and what is compared with it %s",
                  libraries[library], device ? "on this processor" : "on a CUDA device",
                  device ? "on a device" : "on this processor");
    else if (why == NOT_BUILT)
        diag_line(diags, "--vs", 0, 0,
                  "this isamap was built without %s; install it and configure again",
                  libraries[library]);
    else
        diag_line(diags, "--vs", 0, 0, "%s: %s", libraries[library], why);
    return false;
}

bool peers_load(const char *which, bool device, struct peers *p, struct diags *diags) {
    memset(p, 0, sizeof *p);
    if (which && strcmp(which, "none") == 0) return true;
    if (which && !check_names(which, diags)) return false;
    for (int l = 0; l < LIBRARIES; l++) {
        bool here = (l >= ON_DEVICE) == device;
        if (which ? !named(which, libraries[l]) : !here) continue;
        void *module = here ? open_module(libraries[l]) : NULL;
        const char *why = not_there(module);
        if (!why) {
            add(p, module);
        } else if (which) {
            return refuse(l, device, why, diags);
        } else {
            p->missing[p->nmissing] = libraries[l];
            p->why[p->nmissing++] = why;
        }
    }
    return true;
}
