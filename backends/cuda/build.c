/* Files and code that runs here. */
#include "backends/cuda/cuda_int.h"

#include <dlfcn.h>
#include <string.h>

/* Of the features, the last one says most. */
const char *cuda_target(const struct schedule *s, const struct backend_options *options) {
    uint64_t used = schedule_features(s);
    const char *target = NULL;
    if (options && options->target) return options->target;
    for (int f = 0; f < s->machine->nfeatures && f < 64; f++)
        if (used >> f & 1 && s->machine->feature[f].capability && s->machine->feature[f].target)
            target = s->machine->feature[f].target;
    return target;
}

bool cuda_runs_later(const char *target) {
    size_t n = strlen(target);
    return n && target[n - 1] >= '0' && target[n - 1] <= '9';
}

static bool compile(struct arena *a, const struct schedule *s, const struct cuda_source *x,
                    const struct backend_options *options, struct device_code *out,
                    struct diags *diags) {
    if (!x->target)
        diag_line(diags, s->machine->file, 0, 0,
                  "no feature that '%s' needs has a capability and a target, expected what NVRTC "
                  "calls the "
                  "device (target=\"sm_80\")",
                  s->machine->name);
    if (!x->target || !c_keep(a, s, x->device, ".cu", options, diags) ||
        !cuda_compile(a, x->device, x->interface->name, x->target, out, diags))
        return false;
    cuda_resources(s->machine, x, out->log, options ? options->report : NULL, diags);
    return true;
}

/* The device's code and the host's part in a folder, linked to a shared library. */
static bool build_library(struct arena *a, const struct schedule *s, const char *path,
                          const char *folder, const struct backend_options *options,
                          const struct cuda_source *x, struct diags *diags) {
    struct device_code code;
    struct backend_options host = {0};
    size_t n;
    const char *name = x->interface->name;
    const char *weights = x->weights ? interface_weights(a, x->interface, false, &n) : NULL;
    return compile(a, s, x, options, &code, diags) &&
           file_write(arena_printf(a, "%s/%s.cubin", folder, name), code.cubin, code.ncubin,
                      diags) &&
           file_write(arena_printf(a, "%s/%s.ptx", folder, name), code.ptx, code.nptx, diags) &&
           (!weights || file_write(x->weights, weights, n, diags)) &&
           c_compile(s, x->host, folder, path, &host, a, diags);
}

static bool write_library(struct arena *a, const struct schedule *s, const char *path,
                          const struct backend_options *options, struct diags *diags) {
    char *folder = folder_temporary(a, diags);
    if (!folder) return false;
    struct cuda_source x = cuda_text(a, s, options, folder, diags);
    bool good = x.host && build_library(a, s, path, folder, options, &x, diags) &&
                interface_write_header(x.interface, path, diags) &&
                interface_write_weights(x.interface, path, diags);
    folder_remove(folder);
    return good;
}

static bool write_device(struct arena *a, const struct schedule *s, const char *path,
                         const struct backend_options *options, struct diags *diags) {
    struct backend_options plain = options ? *options : (struct backend_options){0};
    struct device_code code;
    plain.weights = WEIGHTS_ARGUMENTS;
    struct cuda_source x = cuda_text(a, s, &plain, ".", diags);
    if (!x.device) return false;
    if (!strcmp(path_suffix(path), ".cu"))
        return file_write(path, x.device, strlen(x.device), diags);
    if (!compile(a, s, &x, &plain, &code, diags)) return false;
    return strcmp(path_suffix(path), ".ptx")
               ? file_write(path, code.cubin, code.ncubin, diags)
               : file_write(path, code.ptx, code.nptx - 1, diags); /* without its 0 */
}

static bool cuda_write(const struct schedule *s, const char *path,
                       const struct backend_options *options, struct diags *diags) {
    struct arena a;
    arena_init(&a);
    bool good = strcmp(path_suffix(path), ".so") ? write_device(&a, s, path, options, diags)
                                                 : write_library(&a, s, path, options, diags);
    arena_free(&a);
    return good;
}

/* A driver is there; what the device can do, it says when the kernels are loaded. */
static bool driver_ready(const struct schedule *s, struct diags *diags) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver) return dlclose(driver), true;
    diag_line(diags, s->machine->file, 0, 0,
              "'%s' is a CUDA device, and there is no driver for one here (libcuda.so.1); 'isamap "
              "sim' executes any machine",
              s->machine_name);
    return false;
}

static struct executable *cuda_load(const struct schedule *s, const struct backend_options *options,
                                    struct diags *diags) {
    struct arena a;
    struct executable *e = NULL;
    if (!driver_ready(s, diags)) return NULL;
    arena_init(&a);
    char *folder = folder_temporary(&a, diags);
    if (folder) {
        struct backend_options plain = options ? *options : (struct backend_options){0};
        plain.weights = WEIGHTS_ARGUMENTS;
        const char *library = arena_printf(&a, "%s/code.so", folder);
        struct cuda_source x = cuda_text(&a, s, &plain, folder, diags);
        if (x.host && build_library(&a, s, library, folder, &plain, &x, diags))
            e = c_open(s, library, &a, diags);
        folder_remove(folder);
    }
    arena_free(&a);
    return e;
}

static bool cuda_accepts(const struct schedule *s) {
    return schedule_speaks(s, LANGUAGE_CUDA, NULL);
}

static const char *const cuda_suffixes[] = {".cu", ".ptx", ".cubin", ".so", NULL};

const struct backend backend_cuda = {
    .name = "cuda",
    .doc = "CUDA C, compiled by NVRTC, launched through the driver",
    .suffixes = cuda_suffixes,
    .accepts = cuda_accepts,
    .write = cuda_write,
    .load = cuda_load,
};
