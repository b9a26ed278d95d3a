#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the target ---- */

/* What code may use without a feature of the machine file. */
static const char *base_cpu(const char *triple) {
    return strncmp(triple, "x86_64", 6) ? "generic" : "x86-64-v2";
}

static bool base_present(void) {
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
    return __builtin_cpu_supports("x86-64-v2");
#else
    return true;
#endif
}

/* The levels that can be asked of this processor; others only for writing. */
static bool level_present(const char *target) {
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__
    if (!strcmp(target, "x86-64")) return true;
    if (!strcmp(target, "x86-64-v2")) return __builtin_cpu_supports("x86-64-v2");
    if (!strcmp(target, "x86-64-v3")) return __builtin_cpu_supports("x86-64-v3");
    if (!strcmp(target, "x86-64-v4")) return __builtin_cpu_supports("x86-64-v4");
#endif
    return !strcmp(target, "generic");
}

static void refuse_level(const char *target, struct diags *diags) {
    static const char *const level[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", "generic"};
    struct text t = {0};
    for (size_t i = 0; i < sizeof level / sizeof *level; i++)
        if (level_present(level[i])) text_printf(&t, "%s'%s'", t.n ? ", " : "", level[i]);
    diag_line(diags, "--target", 0, 0,
              "nothing says that this processor can run code for '%s', expected one of %s", target,
              t.at);
    text_free(&t);
}

static const char *feature_string(struct cpu *c) {
    uint64_t used = schedule_features(c->schedule);
    const char *all = "";
    for (int f = 0; f < c->machine->nfeatures && f < 64; f++)
        for (int llvm = 0; llvm < 2 && used >> f & 1; llvm++) {
            const struct feature *of = &c->machine->feature[f];
            const char *more = llvm ? of->llvm : of->target;
            if (more) all = arena_printf(&c->arena, "%s%s%s", all, *all ? "," : "", more);
        }
    return all;
}

/* LLVM names a processor that it does not know on standard error, and ends the process later. So a
 * child asks it, which needs no lock that another thread may hold for long: after some seconds the
 * name counts as known. */
static bool known_cpu(LLVMTargetRef target, const char *triple, const char *cpu) {
    FILE *said = tmpfile();
    char text[256] = "";
    if (!said) return true;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(5);
        signal(SIGALRM, SIG_DFL);
        dup2(fileno(said), STDERR_FILENO);
        LLVMCreateTargetMachine(target, triple, cpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                LLVMCodeModelDefault);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = 0;
    fclose(said);
    return !strstr(text, "not a recognized processor");
}

static bool create_target(struct cpu *c) {
    LLVMTargetRef target;
    char *message = NULL, *triple = LLVMGetDefaultTargetTriple();
    const char *cpu = c->options && c->options->target ? c->options->target : base_cpu(triple);
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        cpu_error(c, "LLVM cannot compile for '%s': %s", triple, message);
        LLVMDisposeMessage(message);
    } else if (c->options && c->options->target && !known_cpu(target, triple, cpu)) {
        diag_line(
            c->diags, "--target", 0, 0,
            "LLVM knows no processor '%s' of '%s', expected a name like x86-64-v3, skylake or "
            "znver4",
            cpu, triple);
        c->failed = true;
    } else {
        c->target =
            LLVMCreateTargetMachine(target, triple, cpu, feature_string(c), LLVMCodeGenLevelDefault,
                                    LLVMRelocPIC, LLVMCodeModelDefault);
        if (!c->target) cpu_error(c, "LLVM cannot compile for '%s'", cpu);
    }
    if (c->target) {
        LLVMTargetDataRef data = LLVMCreateTargetDataLayout(c->target);
        LLVMSetModuleDataLayout(c->module, data);
        LLVMDisposeTargetData(data);
        LLVMSetTarget(c->module, triple);
    }
    LLVMDisposeMessage(triple);
    return c->target;
}

static bool llvm_ready(const struct schedule *s, struct diags *diags) {
    if (llvm_missing())
        diag_line(diags, s->machine->file, 0, 0, "LLVM cannot be loaded: %s", llvm_missing());
    return !llvm_missing();
}

bool cpu_target_open(struct cpu *c) {
    if (!llvm_ready(c->schedule, c->diags)) return false;
    c->context = LLVMContextCreate();
    c->module = LLVMModuleCreateWithNameInContext(c->schedule->program->name, c->context);
    c->i1 = LLVMInt1TypeInContext(c->context);
    c->i8 = LLVMInt8TypeInContext(c->context);
    c->i16 = LLVMInt16TypeInContext(c->context);
    c->i32 = LLVMInt32TypeInContext(c->context);
    c->i64 = LLVMInt64TypeInContext(c->context);
    c->f32 = LLVMFloatTypeInContext(c->context);
    c->f64 = LLVMDoubleTypeInContext(c->context);
    c->ptr = LLVMPointerTypeInContext(c->context, 0);
    c->nothing = LLVMVoidTypeInContext(c->context);
    return create_target(c);
}

void cpu_close(struct cpu *c) {
    if (c->module) LLVMDisposeModule(c->module);
    if (c->target) LLVMDisposeTargetMachine(c->target);
    if (c->context) LLVMContextDispose(c->context);
    text_free(&c->bodies);
    arena_free(&c->arena);
}

/* ---- the module ---- */
static bool count_words(struct cpu *c) {
    const struct schedule *s = c->schedule;
    c->nwords = arena_array(&c->arena, (size_t)c->machine->nmemories + 1, sizeof *c->nwords);
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *place = &s->place[p];
        const struct memory *m = &c->machine->memory[place->memory];
        if (m->pass != PASS_VALUE || m->word < 1) continue;
        int64_t end = place->address + place->bytes * place->slots;
        if (place->address < 0 || end / m->word >= 1 << 16) {
            cpu_error(c, "place '%s' is at byte %lld of '%s', too far for registers", place->name,
                      (long long)place->address, m->id);
            return false;
        }
        int words = (int)((end + m->word - 1) / m->word);
        if (words > c->nwords[place->memory]) c->nwords[place->memory] = words;
    }
    return true;
}

static void list_places(struct cpu *c) {
    const struct schedule *s = c->schedule;
    size_t places = (size_t)s->nplaces + 1;
    c->turning = arena_array(&c->arena, places, sizeof *c->turning);
    c->listed = arena_array(&c->arena, places, sizeof *c->listed);
    c->home = arena_array(&c->arena, (size_t)s->program->nbuffers + 1, sizeof *c->home);
    for (int b = 0; b < s->program->nbuffers; b++) c->home[b] = -1;
    for (int p = 0; p < s->nplaces; p++) {
        if (s->place[p].slots > 1) c->turning[c->nturning++] = p;
        if (s->place[p].keep != KEEP_LOCAL) c->home[s->place[p].buffer] = p;
    }
}

static void bytes_function(struct cpu *c, const char *name, int64_t bytes) {
    LLVMTypeRef type = LLVMFunctionType(c->i64, NULL, 0, false);
    LLVMValueRef f = LLVMAddFunction(c->module, name, type);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(c->context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(c->context, f, "entry"));
    LLVMBuildRet(b, LLVMConstInt(c->i64, (uint64_t)bytes, false));
    LLVMDisposeBuilder(b);
}

static bool emit_text(struct cpu *c, const char *path) {
    char *text = LLVMPrintModuleToString(c->module);
    bool good = file_write(path, text, strlen(text), c->diags);
    LLVMDisposeMessage(text);
    return good;
}

static void keep_text(struct cpu *c, const char *name) {
    if (!c->options || !c->options->keep) return;
    c->failed = !emit_text(c, arena_printf(&c->arena, "%s/%s.ll", c->options->keep, name));
}

/* More would be beyond the reach of code that addresses them relative to itself. */
enum { MOST_EMBEDDED = 1 << 30 };

static bool embed_weights(struct cpu *c) {
    const struct interface *i = c->interface;
    if (i->weights != WEIGHTS_EMBED) return true;
    if (i->weight_bytes > MOST_EMBEDDED) {
        cpu_error(c, "weights of %lld bytes are too many to embed, expected --weights file",
                  (long long)i->weight_bytes);
        return false;
    }
    const struct program *p = c->schedule->program;
    c->weights = arena_array(&c->arena, (size_t)p->nbuffers + 1, sizeof *c->weights);
    for (int b = 0; b < p->nbuffers; b++) {
        if (i->offset[b] < 0) continue;
        size_t n = (size_t)p->buffer[b].elements * type_size(p->buffer[b].type);
        LLVMValueRef content = LLVMConstStringInContext2(c->context, i->data[b], n, true);
        LLVMValueRef v = c->weights[b] = LLVMAddGlobal(
            c->module, LLVMTypeOf(content), arena_printf(&c->arena, "%s.weights.%d", i->name, b));
        LLVMSetInitializer(v, content);
        LLVMSetLinkage(v, LLVMInternalLinkage);
        LLVMSetGlobalConstant(v, true);
        LLVMSetAlignment(v, 64);
    }
    return true;
}

static bool cpu_module_build(struct cpu *c) {
    const struct schedule *s = c->schedule;
    const char *name = c_identifier(&c->arena, s->program->name);
    if (!room_plan(&c->arena, s, &c->room, c->diags) || !count_words(c)) return false;
    struct interface *interface = interface_make(
        &c->arena, s, c->options, (uint64_t)(c->room.prepared_block ^ c->room.workspace << 20));
    interface_rows(&c->arena, interface, c->room.offset);
    c->interface = interface;
    if (!embed_weights(c)) return false;
    list_places(c);
    cpu_section(c, &s->prepare, arena_printf(&c->arena, "%s_prepare.body", name), false);
    if (!c->failed) cpu_section(c, &s->run, arena_printf(&c->arena, "%s_run.body", name), true);
    bytes_function(c, arena_printf(&c->arena, "%s_prepared_bytes", name), c->room.prepared_block);
    bytes_function(c, arena_printf(&c->arena, "%s_workspace_bytes", name), c->room.workspace);
    if (c->failed || !emits_link(c)) return false;
    keep_text(c, name);
    return !c->failed;
}

static struct cpu *cpu_new(const struct schedule *s, const struct backend_options *options,
                           struct diags *diags) {
    struct cpu *c = memory_array(1, sizeof *c);
    arena_init(&c->arena);
    c->schedule = s;
    c->machine = s->machine;
    c->options = options;
    c->diags = diags;
    return c;
}

static struct cpu *cpu_open(const struct schedule *s, const struct backend_options *options,
                            struct diags *diags) {
    struct cpu *c = cpu_new(s, options, diags);
    if (cpu_target_open(c) && cpu_module_build(c)) return c;
    cpu_close(c);
    free(c);
    return NULL;
}

/* ---- writing ---- */
/* In pieces: embedded weights make it large. */
static void copy_file(FILE *from, FILE *to) {
    static const size_t piece = 1 << 16;
    char *bytes = memory_array(piece, 1);
    size_t n;
    while ((n = fread(bytes, 1, piece, from)) > 0 && fwrite(bytes, 1, n, to) == n) continue;
    free(bytes);
}

/* By its name in this process: LLVM reads what it needs. */
static bool calls_found(struct cpu *c, FILE *object) {
    char name[32], *message = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    snprintf(name, sizeof name, "/dev/fd/%d", fileno(object));
    if (LLVMCreateMemoryBufferWithContentsOfFile(name, &buffer, &message)) {
        cpu_error(c, "cannot read a temporary file: %s", message);
        LLVMDisposeMessage(message);
        return false;
    }
    bool found = symbols_found(c, buffer);
    LLVMDisposeMemoryBuffer(buffer);
    return found;
}

static bool emit_file(struct cpu *c, const char *path, LLVMCodeGenFileType type) {
    FILE *code = cpu_generate_file(c, type);
    bool whole = code && (type != LLVMObjectFile || calls_found(c, code));
    struct output *o = whole ? output_open(path, c->diags) : NULL;
    bool good = o != NULL;
    errno = 0;
    if (good) {
        copy_file(code, o->file);
        good = !ferror(code);
        if (!good) cpu_error(c, "cannot read a temporary file: %s", strerror(errno));
        good = output_close(o, good, c->diags);
    }
    if (code) fclose(code);
    return good;
}

static bool emit_library(struct cpu *c, const char *path) {
    char *folder = folder_temporary(&c->arena, c->diags);
    if (!folder) return false;
    const char *object = arena_printf(&c->arena, "%s/code.o", folder);
    static const char *const whole[] = {"-Wl,-z,defs", NULL};
    bool good = emit_file(c, object, LLVMObjectFile) &&
                library_build(object, path, whole, code_libraries(c), c->diags) &&
                interface_write_header(c->interface, path, c->diags);
    folder_remove(folder);
    return good;
}

static bool cpu_write(const struct schedule *s, const char *path,
                      const struct backend_options *options, struct diags *diags) {
    struct cpu *c = cpu_open(s, options, diags);
    const char *suffix = path_suffix(path);
    if (!c) return false;
    bool good = false, text = !strcmp(suffix, ".ll") || !strcmp(suffix, ".s");
    if (text && weights_in_text(c->interface, path, diags))
        good = false;
    else if (!strcmp(suffix, ".ll"))
        good = emit_text(c, path);
    else if (!strcmp(suffix, ".s"))
        good = emit_file(c, path, LLVMAssemblyFile);
    else if (!strcmp(suffix, ".o"))
        good =
            emit_file(c, path, LLVMObjectFile) && interface_write_header(c->interface, path, diags);
    else
        good = emit_library(c, path);
    good = good && interface_write_weights(c->interface, path, diags);
    cpu_close(c);
    free(c);
    return good;
}

/* ---- running here ---- */
static bool take_error(struct cpu *c, LLVMErrorRef error, const char *what) {
    if (!error) return false;
    char *message = LLVMGetErrorMessage(error);
    cpu_error(c, "%s: %s", what, message);
    LLVMDisposeErrorMessage(message);
    return true;
}

static void quiet(void *user, LLVMErrorRef error) {
    (void)user;
    LLVMConsumeError(error);
}

static bool add_library(struct cpu *c, LLVMOrcLLJITRef jit, const char *name) {
    LLVMOrcDefinitionGeneratorRef generator;
    char prefix = LLVMOrcLLJITGetGlobalPrefix(jit);
    LLVMErrorRef error;
    if (!name) {
        error =
            LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&generator, prefix, NULL, NULL);
    } else {
        const char *file = library_file(c, name);
        if (!file) {
            cpu_error(c, "library '%s' is not installed, but compiled code calls it", name);
            return false;
        }
        error =
            LLVMOrcCreateDynamicLibrarySearchGeneratorForPath(&generator, file, prefix, NULL, NULL);
    }
    if (take_error(c, error, "cannot search a library")) return false;
    LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit), generator);
    return true;
}

static bool add_libraries(struct cpu *c, LLVMOrcLLJITRef jit) {
    const char **used = code_libraries(c);
    if (!add_library(c, jit, NULL) || !add_library(c, jit, "m")) return false;
    if (library_file(c, "gcc_s") && !add_library(c, jit, "gcc_s")) return false;
    for (int i = 0; used[i]; i++)
        if (!add_library(c, jit, used[i])) return false;
    return true;
}

LLVMOrcLLJITRef cpu_jit(struct cpu *c, LLVMMemoryBufferRef object) {
    LLVMOrcLLJITRef jit = NULL;
    if (!object) return NULL;
    if (!symbols_found(c, object)) {
        LLVMDisposeMemoryBuffer(object);
        return NULL;
    }
    if (c->ticks)
        c->names = perf_map_read(c, object, arena_printf(&c->arena, "%s_run", c->interface->name));
    if (take_error(c, LLVMOrcCreateLLJIT(&jit, LLVMOrcCreateLLJITBuilder()),
                   "cannot start the JIT compiler")) {
        LLVMDisposeMemoryBuffer(object);
        return NULL;
    }
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit), quiet, NULL);
    LLVMErrorRef error = LLVMOrcLLJITAddObjectFile(jit, LLVMOrcLLJITGetMainJITDylib(jit), object);
    if (!take_error(c, error, "cannot load the code") && add_libraries(c, jit)) return jit;
    LLVMConsumeError(LLVMOrcDisposeLLJIT(jit));
    return NULL;
}

static void release_jit(void *jit) {
    LLVMConsumeError(LLVMOrcDisposeLLJIT(jit));
}

void *cpu_symbol(struct cpu *c, LLVMOrcLLJITRef jit, const char *name) {
    LLVMOrcExecutorAddress address = 0;
    if (take_error(c, LLVMOrcLLJITLookup(jit, &address, name), "cannot compile")) return NULL;
    return (void *)(uintptr_t)address;
}

static bool keep_profile(struct cpu *c, LLVMOrcLLJITRef jit, struct executable *e) {
    e->ticks = cpu_symbol(c, jit, arena_printf(&c->arena, "%s_ticks", c->interface->name));
    e->part = arena_copy(&e->arena, c->part, sizeof *c->part * (size_t)c->nparts);
    e->nparts = c->nparts;
    for (int i = 0; i < e->nparts; i++)
        e->part[i].function = arena_strdup(&e->arena, c->part[i].function);
    return e->ticks;
}

static struct executable *start(struct cpu *c, LLVMMemoryBufferRef object) {
    static const char *const suffix[4] = {"prepare", "run", "prepared_bytes", "workspace_bytes"};
    LLVMOrcLLJITRef jit = cpu_jit(c, object);
    const char *program = c_identifier(&c->arena, c->schedule->program->name);
    void *entry[4];
    if (!jit) return NULL;
    for (int i = 0; i < 4; i++) {
        entry[i] = cpu_symbol(c, jit, arena_printf(&c->arena, "%s_%s", program, suffix[i]));
        if (entry[i]) continue;
        release_jit(jit);
        return NULL;
    }
    struct executable *e = executable_make(c->schedule, jit, release_jit, entry);
    if (c->ticks && !keep_profile(c, jit, e)) return executable_free(e), NULL;
    if (c->names) perf_map_write(c->names, entry[1]);
    return e;
}

/* ---- code of earlier calls ---- */
/* All that decides about the code. */
static void code_key(const struct schedule *s, const struct backend_options *options,
                     struct text *key) {
    char *triple = LLVMGetDefaultTargetTriple();
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    text_printf(key, "code\n");
    cache_build(key);
    text_printf(key, "LLVM %u.%u.%u %s %s\n", major, minor, patch, triple,
                options->target ? options->target : "-");
    LLVMDisposeMessage(triple);
    machine_describe(s->machine, key);
    schedule_print(s, key);
}

/* An entry is a letter, p where OpenMP's runtime is called, before the object. */
static struct executable *load_new(struct cpu *c, const struct cache *cache,
                                   const struct text *key) {
    struct text value = {0};
    LLVMMemoryBufferRef object = cpu_generate(c, LLVMObjectFile);
    if (object && cache) {
        text_append(&value, c->parallel ? "p" : "s", 1);
        text_append(&value, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
    }
    struct executable *e = start(c, object);
    if (e && cache) cache_write(cache, key, &value);
    text_free(&value);
    cpu_close(c);
    free(c);
    return e;
}

static struct executable *load_kept(const struct schedule *s, const struct backend_options *options,
                                    const struct cache *cache, const struct text *key,
                                    struct diags *diags) {
    struct text value = {0};
    if (!cache_read(cache, key, &value) || value.n < 2) return text_free(&value), NULL;
    struct cpu *c = cpu_new(s, options, diags);
    c->parallel = value.at[0] == 'p';
    struct executable *e =
        start(c, LLVMCreateMemoryBufferWithMemoryRangeCopy(value.at + 1, value.n - 1, "code"));
    text_free(&value);
    cpu_close(c);
    free(c);
    return e;
}

static struct executable *cpu_load(const struct schedule *s, const struct backend_options *options,
                                   struct diags *diags) {
    if (!features_ready(s, diags) || !llvm_ready(s, diags)) return NULL;
    if (options && options->target && !level_present(options->target))
        return refuse_level(options->target, diags), NULL;
    if (!(options && options->target) && !base_present()) {
        diag_line(diags, s->machine->file, 0, 0,
                  "code for 'x86-64-v2' cannot run on this processor, expected one that can");
        return NULL;
    }
    struct text key = {0};
    const struct cache *cache =
        options && !options->profile && !options->keep && !options->nstates && !options->counted
            ? options->cache
            : NULL;
    if (cache) code_key(s, options, &key);
    struct executable *e = cache ? load_kept(s, options, cache, &key, diags) : NULL;
    struct cpu *c = e ? NULL : cpu_open(s, options, diags);
    if (c) e = load_new(c, cache, &key);
    text_free(&key);
    return e;
}

static bool cpu_accepts(const struct schedule *s) {
    return schedule_speaks(s, LANGUAGE_LLVM, NULL);
}

static const char *const cpu_suffixes[] = {".so", ".o", ".s", ".ll", NULL};

const struct backend backend_cpu = {
    .name = "cpu",
    .doc = "machine code for this kind of processor, by LLVM",
    .suffixes = cpu_suffixes,
    .accepts = cpu_accepts,
    .write = cpu_write,
    .load = cpu_load,
};
#endif
