#include "machines/share.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef ISAMAP_BIN_TO_SHARE
#define ISAMAP_BIN_TO_SHARE "../share/isamap"
#define ISAMAP_LIB_TO_SHARE "../share/isamap"
#define ISAMAP_BIN_TO_LIB "../lib"
#define ISAMAP_BUILD ""
#define ISAMAP_SOURCE ""
#endif

struct self {
    uintptr_t at; /* an address of this code */
    bool program; /* it is the program's own, not a library's */
    char path[PATH_MAX];
};

static int look(struct dl_phdr_info *info, size_t size, void *user) {
    struct self *s = user;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || s->at < first ||
            s->at - first >= info->dlpi_phdr[i].p_memsz)
            continue;
        s->program = !*info->dlpi_name;
        if (!realpath(s->program ? "/proc/self/exe" : info->dlpi_name, s->path)) *s->path = 0;
        return 1;
    }
    return 0;
}

/* The folder of the file that this code is in; NULL: it cannot be found. */
static char *own_folder(struct arena *a, bool *program) {
    struct self s = {.at = (uintptr_t)(void *)own_folder};
    dl_iterate_phdr(look, &s);
    char *slash = strrchr(s.path, '/');
    *program = s.program;
    return slash ? arena_strndup(a, s.path, (size_t)(slash - s.path)) : NULL;
}

static bool is_inside(const char *path, const char *folder) {
    size_t n = strlen(folder);
    return n && !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

static const char *folder_at(struct arena *a, const char *from, const char *to) {
    char real[PATH_MAX];
    struct stat st;
    const char *path = arena_printf(a, "%s/%s", from, to);
    if (!realpath(path, real) || stat(real, &st) || !S_ISDIR(st.st_mode)) return NULL;
    return arena_strdup(a, real);
}

/* The folder with `machines`, `bench` and `sim` in it: the sources' own where this code is in the
 * folder that it was built in, else the installed one. NULL: neither is there. */
static const char *share_folder(struct arena *a) {
    bool program;
    const char *own = own_folder(a, &program);
    if (!own) return NULL;
    if (is_inside(own, ISAMAP_BUILD)) return folder_at(a, ISAMAP_SOURCE, ".");
    return folder_at(a, own, program ? ISAMAP_BIN_TO_SHARE : ISAMAP_LIB_TO_SHARE);
}

const char *share_part(struct arena *a, const char *name) {
    const char *share = share_folder(a);
    return share ? folder_at(a, share, name) : NULL;
}

const char *module_folder(struct arena *a) {
    bool program;
    const char *own = own_folder(a, &program);
    if (!own) return NULL;
    return folder_at(a, own, program ? ISAMAP_BIN_TO_LIB "/isamap" : "isamap");
}
