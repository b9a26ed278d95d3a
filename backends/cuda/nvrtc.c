/* NVRTC, which is loaded when it is needed: isamap builds and runs without the toolkit. */
#include "backends/cuda/cuda_int.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct nvrtc {
    void *library;
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *), (*log)(void *, char *);
    int (*cubin_size)(void *, size_t *), (*cubin)(void *, char *);
    int (*ptx_size)(void *, size_t *), (*ptx)(void *, char *);
    int (*destroy)(void **);
};

/* What it allocated for good when it was loaded is used again by the next compilation. */
enum { STAY = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

static void *find_library(void) {
    static const char *const name[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};
    const char *home = getenv("CUDA_HOME");
    struct arena a;
    void *library = NULL;
    arena_init(&a);
    for (int i = 0; name[i] && !library; i++) library = dlopen(name[i], STAY);
    for (int i = 0; name[i] && !library; i++)
        library = dlopen(
            arena_printf(&a, "%s/lib64/%s", home && *home ? home : "/usr/local/cuda", name[i]),
            STAY);
    arena_free(&a);
    return library;
}

static bool open_nvrtc(struct nvrtc *x, struct diags *diags) {
    const char *const name[] = {
        "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
        "nvrtcGetProgramLog", "nvrtcGetCUBINSize",   "nvrtcGetCUBIN",
        "nvrtcGetPTXSize",    "nvrtcGetPTX",         "nvrtcDestroyProgram"};
    void *const to[] = {&x->create, &x->compile,  &x->log_size, &x->log,    &x->cubin_size,
                        &x->cubin,  &x->ptx_size, &x->ptx,      &x->destroy};
    x->library = find_library();
    if (!x->library) {
        diag_line(diags, NULL, 0, 0,
                  "there is no NVRTC (libnvrtc.so) to make code for the device from CUDA C, "
                  "expected the CUDA "
                  "toolkit's in the library path, $CUDA_HOME/lib64 or /usr/local/cuda/lib64; '-o "
                  "NAME.cu' needs none");
        return false;
    }
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        void *at = dlsym(x->library, name[i]);
        if (at) {
            memcpy(to[i], &at, sizeof at);
            continue;
        }
        diag_line(diags, NULL, 0, 0, "NVRTC has no '%s', expected version 11.1 or later", name[i]);
        dlclose(x->library);
        return false;
    }
    return true;
}

/* From the line of the first error on: warnings may stand before it. */
static const char *first_error(const char *log) {
    const char *at = strstr(log, " error");
    if (!at) return log;
    while (at > log && at[-1] != '\n') at--;
    return at;
}

static bool fetch(struct arena *a, void *program, int (*size)(void *, size_t *),
                  int (*get)(void *, char *), char **at, size_t *n) {
    return !size(program, n) && !get(program, *at = arena_alloc(a, *n + 1));
}

bool cuda_compile(struct arena *a, const char *text, const char *name, const char *architecture,
                  struct device_code *out, struct diags *diags) {
    struct nvrtc x;
    void *program = NULL;
    size_t n = 0;
    if (!open_nvrtc(&x, diags)) return false;
    const char *const option[] = {arena_printf(a, "--gpu-architecture=%s", architecture),
                                  "--fmad=false", "--ptxas-options=-v", "--std=c++17"};
    bool made = !x.create(&program, text, arena_printf(a, "%s.cu", name), 0, NULL, NULL);
    bool good = made && !x.compile(program, sizeof option / sizeof *option, option);
    out->log = "";
    if (made && !x.log_size(program, &n) && n) {
        char *log = arena_alloc(a, n + 1);
        if (!x.log(program, log)) out->log = log;
    }
    good = good && fetch(a, program, x.cubin_size, x.cubin, &out->cubin, &out->ncubin) &&
           fetch(a, program, x.ptx_size, x.ptx, &out->ptx, &out->nptx);
    if (!good)
        diag_line(diags, NULL, 0, 0, "NVRTC does not compile the kernels of '%s' for '%s': %.1500s",
                  name, architecture, first_error(out->log));
    if (program) x.destroy(&program);
    dlclose(x.library);
    return good;
}

/* ---- registers and shared memory ---- */
static int64_t number_before(const char *line, const char *end, const char *words) {
    const char *at = strstr(line, words);
    if (!at || at >= end) return 0;
    while (at > line && at[-1] == ' ') at--;
    while (at > line && at[-1] >= '0' && at[-1] <= '9') at--;
    return strtoll(at, NULL, 10);
}

static const struct kernel_use *use_of(const struct cuda_source *x, const char *name) {
    for (int k = 0; k < x->nkernels; k++)
        if (!strcmp(x->use[k].name, name)) return &x->use[k];
    return NULL;
}

static void report_kernel(const struct kernel_use *use, const char *name, int64_t registers,
                          int64_t spilled, int64_t stack, struct text *report) {
    text_printf(report, "kernel      %s: %lld registers, %lld bytes spilled, %lld on the stack",
                name, (long long)registers, (long long)spilled, (long long)stack);
    if (use) text_printf(report, "; %lld threads", (long long)use->threads);
    if (use && use->registers)
        text_printf(report, ", %lld bytes of %lld in registers",
                    (long long)(4 * registers * use->threads), (long long)use->registers);
    if (use && use->shares)
        text_printf(report, ", of which roles take %lld", (long long)use->shares);
    if (use && use->memory)
        text_printf(report, ", %lld bytes of %lld in '%s'", (long long)use->shared,
                    (long long)use->limit, use->memory);
    text_printf(report, "\n");
}

void cuda_resources(const struct machine *m, const struct cuda_source *x, const char *log,
                    struct text *report, struct diags *diags) {
    char name[200] = "";
    int64_t spilled = 0, stack = 0;
    for (const char *line = log; *line;) {
        const char *end = line + strcspn(line, "\n"), *entry = strstr(line, "entry function '");
        if (entry && entry < end)
            snprintf(name, sizeof name, "%.*s", (int)strcspn(entry + 16, "'"), entry + 16);
        spilled += number_before(line, end, " bytes spill stores");
        stack += number_before(line, end, " bytes stack frame");
        int64_t used = number_before(line, end, " registers,");
        if (used && *name) {
            const struct kernel_use *use = use_of(x, name);
            if (report) report_kernel(use, name, used, spilled, stack, report);
            if (use && use->registers && 4 * used * use->threads > use->registers)
                diag_warn(diags, m->file, 0, 0,
                          "kernel '%s' cannot start: its %lld threads have %lld registers each, "
                          "more than the block's %lld bytes",
                          name, (long long)use->threads, (long long)used,
                          (long long)use->registers);
            if (use && use->registers && use->shares > use->registers)
                diag_warn(diags, m->file, 0, 0,
                          "kernel '%s' never goes on: its roles have %lld bytes of registers, more "
                          "than the block's %lld bytes",
                          name, (long long)use->shares, (long long)use->registers);
            if (spilled)
                diag_warn(diags, m->file, 0, 0,
                          "kernel '%s' has no room for %lld bytes in registers", name,
                          (long long)spilled);
            spilled = stack = 0;
        }
        line = end + (*end == '\n');
    }
}
