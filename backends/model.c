#include "backends/model.h"
#include "backends/backends_int.h"
#include "backends/bits/bits.h"

#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILE = 16 << 20, MOST_FILES = 1000, MOST_SETTINGS = 64 };

struct making {
    struct arena arena;
    const struct machine *machine;
    struct diags *diags;
    char folder[PATH_MAX];
    uint64_t hash[2];
    const char *setting[MOST_SETTINGS];
    int nsettings;
};

static bool model_error(struct making *x, const char *what, const char *subject) {
    diag_line(x->diags, x->machine->file, 0, 0, "%s '%s'", what, subject);
    return false;
}

/* ---- what the model is made of ---- */

/* FNV-1a (Fowler, Noll, Vo), twice with different starts. */
static void hash_bytes(struct making *x, const char *at, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++)
            x->hash[k] = (x->hash[k] ^ (unsigned char)at[i]) * UINT64_C(1099511628211);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool hash_folder(struct making *x, const char *path, int depth) {
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, by_name);
    bool ok = n >= 0 && n < MOST_FILES;
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        char *full = arena_printf(&x->arena, "%s/%s", path, name);
        struct stat s;
        size_t length;
        if (ok && *name != '.' && stat(full, &s) == 0) {
            hash_bytes(x, name, strlen(name) + 1);
            char *text = S_ISREG(s.st_mode)
                             ? file_read(&x->arena, full, MOST_FILE, &length, x->diags)
                             : NULL;
            if (text) hash_bytes(x, text, length);
            ok = S_ISREG(s.st_mode)
                     ? text != NULL
                     : !depth || !S_ISDIR(s.st_mode) || hash_folder(x, full, depth - 1);
        }
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return ok || (!x->diags->errors && model_error(x, "cannot read the model's folder", path));
}

/* Names between white space. */
static bool read_settings(struct making *x) {
    const char *path = arena_printf(&x->arena, "%s/settings", x->folder);
    size_t length;
    if (access(path, R_OK)) return true;
    char *text = file_read(&x->arena, path, 1 << 16, &length, x->diags), *rest = NULL;
    if (!text) return false;
    for (char *name = strtok_r(text, " \t\r\n", &rest); name;
         name = strtok_r(NULL, " \t\r\n", &rest)) {
        if (x->nsettings == MOST_SETTINGS) return model_error(x, "too many names in", path);
        x->setting[x->nsettings++] = name;
    }
    return true;
}

static bool is_setting(const struct making *x, const char *name) {
    for (int i = 0; i < x->nsettings; i++)
        if (!strcmp(x->setting[i], name)) return true;
    return false;
}

/* The device alone, as its file describes it, with what the user set of it. */
static char *package_text(struct making *x, const struct bindings *set, const char **name) {
    struct diags quiet;
    struct text t = {0};
    char *done = NULL;
    diags_init(&quiet);
    struct machine *plain = machine_load(x->machine->model_of, NULL, &quiet), *m = NULL;
    struct binding *at = arena_array(&x->arena, (size_t)(set ? set->n : 0) + 1, sizeof *at);
    struct bindings own = {at, 0, NULL};
    for (int i = 0; plain && set && i < set->n; i++)
        for (int k = 0; k < plain->nparams; k++)
            if (!strcmp(plain->param[k].name, set->at[i].name) && !is_setting(x, set->at[i].name))
                at[own.n++] = set->at[i];
    if (plain) m = machine_load(x->machine->model_of, &own, x->diags);
    if (m) {
        bits_package(m, &t);
        done = arena_strndup(&x->arena, t.at, t.n);
        *name = arena_strdup(&x->arena, m->name);
    }
    text_free(&t);
    machine_free(plain);
    machine_free(m);
    diags_free(&quiet);
    return done;
}

/* ---- building ---- */

static bool build(struct making *x, const char *package, const char *name, const char *library) {
    char *work = arena_printf(&x->arena, "%s.XXXXXX", library);
    if (!mkdtemp(work)) return model_error(x, "cannot make a folder beside", library);
    char *file = arena_printf(&x->arena, "%s/%s_pkg.sv", work, name);
    char *made = arena_printf(&x->arena, "%s/model.so", work);
    char *script = arena_printf(&x->arena, "%s/build", x->folder);
    const char *const argv[] = {"sh",
                                "-c",
                                "cd \"$0\" && exec \"$1\" \"$2\" \"$3\" >log 2>&1 || { grep -m 3 "
                                "-iE 'error|not found' log || tail -n 3 log; exit 1; } >&2",
                                work,
                                script,
                                file,
                                made,
                                NULL};
    bool ok = file_write(file, package, strlen(package), x->diags) &&
              command_run(argv, "the model's build", x->diags);
    if (ok && rename(made, library)) ok = model_error(x, "the model's build did not make", made);
    const char *const clean[] = {"rm", "-rf", work, NULL};
    return command_run(clean, "rm", x->diags) && ok;
}

static bool find_library(struct making *x, const struct bindings *set, char **library) {
    const char *name;
    x->hash[0] = UINT64_C(14695981039346656037);
    x->hash[1] = UINT64_C(1099511628211);
    char *package = read_settings(x) ? package_text(x, set, &name) : NULL;
    if (!package || !hash_folder(x, x->folder, 1)) return false;
    hash_bytes(x, package, strlen(package));
    const char *cache = cache_folder(&x->arena);
    char whole[PATH_MAX]; /* the build runs elsewhere */
    if (!cache || !realpath(cache, whole))
        return model_error(x, "cannot make the folder for models,", "$ISAMAP_CACHE");
    *library = arena_printf(&x->arena, "%s/%s-%016llx%016llx.so", whole, name,
                            (unsigned long long)x->hash[0], (unsigned long long)x->hash[1]);
    return !access(*library, R_OK) || build(x, package, name, *library);
}

bool model_load(const struct machine *m, const struct bindings *set, struct model *out,
                struct diags *diags) {
    struct making x = {.machine = m, .diags = diags};
    char *library = NULL;
    *out = (struct model){0};
    if (!m->model) {
        diag_line(diags, m->file, 0, 0,
                  "machine '%s' names no model in RTL, expected the "
                  "attribute model=\"FOLDER\"",
                  m->name);
        return false;
    }
    arena_init(&x.arena);
    bool ok = realpath(m->model, x.folder) || model_error(&x, "there is no folder", m->model);
    ok = ok && find_library(&x, set, &library);
    if (ok) {
        const struct device *(*get)(void) = NULL;
        out->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        void *symbol = out->library ? dlsym(out->library, "isamap_device") : NULL;
        memcpy(&get, &symbol, sizeof get);
        out->device = get ? get() : NULL;
        ok = out->device && out->device->version == DEVICE_VERSION;
        if (!ok) model_error(&x, "the model exports no device of this version:", library);
    }
    if (!ok) model_free(out);
    arena_free(&x.arena);
    return ok;
}

void *model_open(const struct model *model, const struct machine *m,
                 const struct device_setting *more, int nmore, struct diags *diags) {
    struct making x = {.machine = m, .diags = diags};
    struct device_setting set[2 * MOST_SETTINGS];
    char what[DEVICE_TEXT] = "";
    int n = 0;
    arena_init(&x.arena);
    bool ok = realpath(m->model, x.folder) && read_settings(&x);
    for (int k = 0; ok && k < x.nsettings; k++)
        for (int i = 0; i < m->nparams; i++)
            if (!strcmp(m->param[i].name, x.setting[k]))
                set[n++] = (struct device_setting){m->param[i].name, m->param[i].value};
    assert(nmore <= MOST_SETTINGS);
    for (int k = 0; k < nmore; k++) set[n++] = more[k];
    void *handle = ok ? model->device->open(set, n, what) : NULL;
    if (ok && !handle) model_error(&x, "the model cannot be opened:", what);
    arena_free(&x.arena);
    return handle;
}

void model_free(struct model *model) {
    if (model->library) dlclose(model->library);
    *model = (struct model){0};
}
