#include "backends/c/c_int.h"
#include "ir/memory.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- the text ---- */
static const char threads_text[] =
    "#ifdef _OPENMP\n#include <omp.h>\n"
    "static inline int isamap_threads(int wanted, int most) {\n"
    "  int n = wanted > 0 ? wanted : omp_get_max_threads();\n"
    "  return most > 0 && n > most ? most : n;\n}\n"
    "static inline int isamap_thread(void) { return omp_get_thread_num(); }\n"
    "static inline int isamap_team(void) { return omp_get_num_threads(); }\n"
    "#else\n"
    "static inline int isamap_thread(void) { return 0; }\n"
    "static inline int isamap_team(void) { return 1; }\n"
    "#endif\n\n";

void c_headers(struct text *t, const struct schedule *s) {
    const struct machine *m = s->machine;
    bool *used = memory_array((size_t)m->ninstrs + 1, sizeof *used);
    schedule_instrs(s, used);
    for (int i = 0; i < m->ninstrs; i++) {
        const struct emit *e = used[i] ? instr_emit(&m->instr[i], LANGUAGE_C) : NULL;
        bool seen = !e || !e->header;
        for (int k = 0; k < i && !seen; k++) {
            const struct emit *f = used[k] ? instr_emit(&m->instr[k], LANGUAGE_C) : NULL;
            seen = f && f->header && !strcmp(f->header, e->header);
        }
        if (!seen) text_printf(t, "#include <%s>\n", e->header);
    }
    free(used);
    bool asks = false;
    for (int f = 0; f < m->nfeatures; f++) asks = asks || m->feature[f].permit;
    if (asks) text_printf(t, "#include <sys/syscall.h>\nlong syscall(long, ...);\n");
}

void c_embed(struct text *t, const char *name, const char *what, const char *file) {
    text_printf(t,
                "__asm__(\".section .rodata,\\\"a\\\",@progbits\\n.balign 64\\n%s_%s:\\n.incbin "
                "\\\"%s\\\"\\n.previous\\n\");\n"
                "extern const unsigned char %s_%s[] __attribute__((visibility(\"hidden\")));\n\n",
                name, what, file, name, what);
}

static void assemble(struct cgen *g, struct text *t, const char *weights) {
    const struct schedule *s = g->schedule;
    const char *name = g->interface->name;
    text_printf(t, "/* Compile with -ffp-contract=off -fno-strict-aliasing%s. */\n",
                schedule_parallel(s) ? " -fopenmp" : "");
    text_printf(t, "%s\n#include <math.h>\n#include <string.h>\n",
                interface_header(&g->arena, g->interface));
    c_headers(t, s);
    text_printf(
        t,
        "#undef I /* of <complex.h>, which some headers bring: a buffer may have that name */\n");
    text_printf(t,
                "\n#define ISAMAP_ALIGNED __attribute__((aligned(64)))\n"
                "#define ISAMAP_FUNCTION static inline\n%s\n%s\n",
                c_support_integers, c_support);
    if (schedule_parallel(s)) text_printf(t, "%s", threads_text);
    if (weights) c_embed(t, name, "weights", weights);
    text_printf(t, "%s\n", emit_prelude(&g->arena, s->machine, LANGUAGE_C));
    text_append(t, g->emits.at ? g->emits.at : "", g->emits.n);
    text_printf(t, "#line 1 \"%s.c\"\n", name);
    text_append(t, g->code.at, g->code.n);
    interface_c(t, g->interface, (size_t)g->room.prepared_block, (size_t)g->room.workspace);
}

void c_begin(struct cgen *g, const struct schedule *s, const struct c_dialect *dialect,
             struct diags *diags) {
    *g = (struct cgen){
        .schedule = s, .machine = s->machine, .dialect = dialect, .diags = diags, .unit = -1};
    arena_init(&g->arena);
    g->var = arena_array(&g->arena, (size_t)s->nvars + 1, sizeof *g->var);
    g->rotates = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *g->rotates);
    g->registers = arena_array(&g->arena, (size_t)s->machine->nmemories + 1, sizeof *g->registers);
    for (int p = 0; p < s->nplaces; p++) {
        int m = s->place[p].memory;
        g->registers[m] |=
            s->place[p].keep == KEEP_LOCAL && s->machine->memory[m].pass == PASS_VALUE;
    }
    g->failed = !room_plan(&g->arena, s, &g->room, diags);
}

void c_end(struct cgen *g) {
    text_free(&g->emits);
    text_free(&g->code);
    arena_free(&g->arena);
}

static struct c_source c_text(struct arena *a, const struct schedule *s,
                              const struct backend_options *options, const char *folder,
                              struct diags *diags) {
    struct cgen g;
    struct c_source source = {0};
    struct text t = {0};
    c_begin(&g, s, &c_plain, diags);
    struct interface *interface =
        interface_make(a, s, options, (uint64_t)(g.room.prepared_block ^ g.room.workspace << 20));
    interface_rows(a, interface, g.room.offset);
    source.interface = g.interface = interface;
    const char *name = g.interface->name;
    if (g.interface->weights == WEIGHTS_EMBED)
        source.weights = arena_printf(a, "%s/%s.weights", folder, name);
    if (!g.failed)
        c_section(&g, &s->prepare, arena_printf(&g.arena, "%s_prepare_body", name), false);
    if (!g.failed) c_section(&g, &s->run, arena_printf(&g.arena, "%s_run_body", name), true);
    if (!g.failed) assemble(&g, &t, source.weights);
    source.text = g.failed ? NULL : arena_strdup(a, t.at);
    text_free(&t);
    c_end(&g);
    return source;
}

/* ---- compiling ---- */

/* "+x" of a feature's target is -mx for the compiler. */
static int feature_flags(struct arena *a, const struct schedule *s, const char **flag, int room) {
    uint64_t used = schedule_features(s);
    int n = 0;
    for (int f = 0; f < s->machine->nfeatures && f < 64; f++) {
        const char *at = used >> f & 1 ? s->machine->feature[f].target : NULL;
        while (at && *at && n < room) {
            size_t length = strcspn(at, ",");
            if (*at == '+') flag[n++] = arena_printf(a, "-m%.*s", (int)length - 1, at + 1);
            at += length + (at[length] == ',');
        }
    }
    return n;
}

enum { MOST_FLAGS = 30 };

static int compiler_flags(struct arena *a, const struct schedule *s, const char **flag) {
    static const char *const always[] = {"-std=gnu11",
                                         "-O2",
                                         "-w",
                                         "-fno-math-errno",
                                         "-ffp-contract=off",
                                         "-fwrapv",
                                         "-fno-strict-aliasing",
                                         "-Werror=implicit-function-declaration"};
    int n = sizeof always / sizeof *always;
    memcpy(flag, always, sizeof always);
    return n + feature_flags(a, s, &flag[n], 16);
}

bool c_parse(const struct schedule *s, const char *text, const char *folder, struct arena *a,
             struct diags *diags) {
    const char *flag[MOST_FLAGS + 3];
    int n = compiler_flags(a, s, flag);
    const char *source = arena_printf(a, "%s/%s.c", folder, c_identifier(a, s->program->name));
    flag[n++] = "-fsyntax-only";
    flag[n++] = source;
    flag[n] = NULL;
    return file_write(source, text, strlen(text), diags) && compiler_run(flag, source, diags);
}

bool c_compile(const struct schedule *s, const char *text, const char *folder, const char *library,
               const struct backend_options *options, struct arena *a, struct diags *diags) {
    const char *flag[MOST_FLAGS];
    int n = compiler_flags(a, s, flag);
    const char *source = arena_printf(a, "%s/%s.c", folder, c_identifier(a, s->program->name));
    if (options && options->target) flag[n++] = arena_printf(a, "-march=%s", options->target);
    if (schedule_parallel(s)) flag[n++] = "-fopenmp";
    flag[n] = NULL;
    return file_write(source, text, strlen(text), diags) &&
           library_build(source, library, flag, schedule_libraries(a, s, LANGUAGE_C), diags);
}

bool c_keep(struct arena *a, const struct schedule *s, const char *text, const char *suffix,
            const struct backend_options *options, struct diags *diags) {
    if (!options || !options->keep) return true;
    const char *path =
        arena_printf(a, "%s/%s%s", options->keep, c_identifier(a, s->program->name), suffix);
    return file_write(path, text, strlen(text), diags);
}

static bool c_write_library(struct arena *a, const struct schedule *s, const char *path,
                            const struct backend_options *options, struct diags *diags) {
    char *folder = folder_temporary(a, diags);
    if (!folder) return false;
    struct c_source x = c_text(a, s, options, folder, diags);
    size_t n;
    const char *weights = x.text && x.weights ? interface_weights(a, x.interface, false, &n) : NULL;
    bool good = x.text && c_keep(a, s, x.text, ".c", options, diags) &&
                (!weights || file_write(x.weights, weights, n, diags)) &&
                c_compile(s, x.text, folder, path, options, a, diags) &&
                interface_write_header(x.interface, path, diags) &&
                interface_write_weights(x.interface, path, diags);
    folder_remove(folder);
    return good;
}

static bool c_write(const struct schedule *s, const char *path,
                    const struct backend_options *options, struct diags *diags) {
    struct arena a;
    arena_init(&a);
    bool good;
    if (strcmp(path_suffix(path), ".c")) {
        good = c_write_library(&a, s, path, options, diags);
    } else {
        struct c_source x = c_text(&a, s, options, ".", diags);
        good = x.text && !weights_in_text(x.interface, path, diags) &&
               c_keep(&a, s, x.text, ".c", options, diags) &&
               file_write(path, x.text, strlen(x.text), diags) &&
               interface_write_weights(x.interface, path, diags);
    }
    arena_free(&a);
    return good;
}

static void release_library(void *handle) {
    dlclose(handle);
}

struct executable *c_open(const struct schedule *s, const char *path, struct arena *a,
                          struct diags *diags) {
    static const char *const suffix[4] = {"prepare", "run", "prepared_bytes", "workspace_bytes"};
    /* threads of OpenMP's runtime outlive the code that started them, so neither may be unloaded */
    int stay = schedule_parallel(s) ? RTLD_NODELETE : 0;
    void *entry[4], *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | stay);
    bool good = handle;
    for (int i = 0; i < 4 && good; i++) {
        entry[i] =
            dlsym(handle, arena_printf(a, "%s_%s", c_identifier(a, s->program->name), suffix[i]));
        good = entry[i];
    }
    if (good) {
        struct executable *e = executable_make(s, handle, release_library, entry);
        const char *name = c_identifier(a, s->program->name);
        void *message = dlsym(handle, arena_printf(a, "%s_message", name)),
             *seconds = dlsym(handle, arena_printf(a, "%s_device_seconds", name)),
             *rounds = dlsym(handle, arena_printf(a, "%s_device_rounds", name));
        memcpy(&e->message, &message, sizeof message);
        memcpy(&e->device_seconds, &seconds, sizeof seconds);
        memcpy(&e->device_rounds, &rounds, sizeof rounds);
        return e;
    }
    diag_line(diags, s->machine->file, 0, 0, "the compiled code cannot be loaded: %s", dlerror());
    if (handle) dlclose(handle);
    return NULL;
}

static struct executable *c_load(const struct schedule *s, const struct backend_options *options,
                                 struct diags *diags) {
    struct arena a;
    struct executable *e = NULL;
    if (!features_ready(s, diags)) return NULL;
    arena_init(&a);
    const char *text = c_text(&a, s, NULL, ".", diags).text;
    char *folder =
        text && c_keep(&a, s, text, ".c", options, diags) ? folder_temporary(&a, diags) : NULL;
    if (folder) {
        const char *library = arena_printf(&a, "%s/code.so", folder);
        if (c_compile(s, text, folder, library, options, &a, diags))
            e = c_open(s, library, &a, diags);
        folder_remove(folder);
    }
    arena_free(&a);
    return e;
}

static bool c_accepts(const struct schedule *s) {
    return schedule_speaks(s, LANGUAGE_C, NULL);
}

static const char *const c_suffixes[] = {".c", ".so", NULL};

const struct backend backend_c = {
    .name = "c",
    .doc = "portable C, compiled by the system's compiler",
    .suffixes = c_suffixes,
    .accepts = c_accepts,
    .write = c_write,
    .load = c_load,
};
