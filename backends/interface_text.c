/* The entries of compiled code, in C and in LLVM's text form: the checks of arguments around the
 * bodies of prepare and run, and what the program can be asked. */
#include "backends/interface.h"
#include "backends/backends_int.h"

#include <ctype.h>
#include <string.h>

/* ---- C ---- */

static void c_string(struct text *t, const char *s) {
    text_append(t, "\"", 1);
    for (; *s; s++) {
        if (isalnum((unsigned char)*s) || strchr(" _.,:/-'", *s))
            text_append(t, s, 1);
        else
            text_printf(t, "\\%03o", (unsigned char)*s);
    }
    text_append(t, "\"", 1);
}

static bool is_const(const struct interface *i, int k) {
    return i->schedule->program->buffer[i->buffer[k]].role == ROLE_CONST;
}

static void c_table(struct text *t, const struct interface *i) {
    const struct program *p = i->schedule->program;
    text_printf(t, "const struct isamap_argument *%s_argument(int i) {\n", i->name);
    for (int k = 0; k < i->n; k++) {
        const struct buffer *b = interface_array(i->schedule, i->buffer[k]);
        text_printf(t, "  static const int64_t extent_%d[] = {", k);
        for (int d = 0; d < b->ndims; d++) text_printf(t, "%lld, ", (long long)b->extent[d]);
        text_printf(t, "0};\n");
    }
    text_printf(t, "  static const struct isamap_argument argument[] = {\n");
    for (int k = 0; k < i->n; k++) {
        const struct buffer *b = interface_array(i->schedule, i->buffer[k]);
        text_printf(t, "    {");
        c_string(t, i->title[k]);
        text_printf(t, ", \"%s\", \"%s\", ", type_name(b->type), role_name[b->role]);
        if (b->size)
            c_string(t, p->size[b->size - 1].name);
        else
            text_printf(t, "0");
        text_printf(t, ", extent_%d, %lld, %d},\n", k,
                    (long long)(b->elements * (int64_t)type_size(b->type)), b->ndims);
    }
    text_printf(t, "    {0}};\n  return i >= 0 && i < %d ? &argument[i] : 0;\n}\n", i->n);
}

static void c_answers(struct text *t, const struct interface *i, size_t prepared,
                      size_t workspace) {
    const char *name = i->name;
    text_printf(t, "size_t %s_prepared_bytes(void) { return %zu; }\n", name, prepared);
    text_printf(t, "size_t %s_workspace_bytes(void) { return %zu; }\n", name, workspace);
    text_printf(t, "int %s_interface(void) { return %d; }\n", name, INTERFACE_VERSION);
    text_printf(t,
                "int %s_matches(int version, uint64_t key) {\n  return version == %d && key == "
                "UINT64_C(0x%llx) ? 0 : %d;\n}\n",
                name, INTERFACE_VERSION, (unsigned long long)i->key, INTERFACE_OTHER);
    text_printf(t, "const char *%s_message(int status) {\n  static const char *const text[] = {\n",
                name);
    for (int k = 0; k < INTERFACE_STATUSES; k++) {
        text_printf(t, "    ");
        c_string(t, interface_message[k]);
        text_printf(t, ",\n");
    }
    text_printf(t, "  };\n");
    if (i->device_text)
        text_printf(t, "  if (status == %d) return %s;\n", INTERFACE_DEVICE, i->device_text);
    text_printf(t, "  return status >= 0 && status < %d ? text[status] : \"unknown\";\n}\n",
                INTERFACE_STATUSES);
    c_table(t, i);
}

static void c_checks(struct text *t, const struct interface *i, bool run) {
    const struct program *p = i->schedule->program;
    text_printf(t,
                "  if (!args || !args->prepared || (uintptr_t)args->prepared %% 64) return %d;\n",
                INTERFACE_ARGUMENT);
    for (int k = 0; k < i->n; k++)
        if (run || is_const(i, k))
            text_printf(t, "  if (!args->%s) return %d;\n", i->field[k], INTERFACE_ARGUMENT);
    if (i->weights == WEIGHTS_FILE)
        text_printf(t,
                    "  if (!args->weights || (uintptr_t)args->weights %% 64) return %d;\n"
                    "  if (memcmp(args->weights, \"ISAMAPW1\", 8) || ((const uint64_t "
                    "*)args->weights)[1] != key) return %d;\n",
                    INTERFACE_ARGUMENT, INTERFACE_WEIGHTS);
    if (!run) return;
    text_printf(t, "  if (args->threads < 0 || args->threads > %d) return %d;\n",
                INTERFACE_MOST_THREADS, INTERFACE_ARGUMENT);
    for (int k = 0; k < p->nsizes; k++) {
        struct arena a;
        arena_init(&a);
        const char *size = size_name(&a, i->schedule, k);
        text_printf(t, "  if (args->%s < INT64_C(%lld) || args->%s > INT64_C(%lld)) return %d;\n",
                    size, (long long)p->size[k].lo, size, (long long)p->size[k].hi,
                    INTERFACE_ARGUMENT);
        arena_free(&a);
    }
}

void interface_c(struct text *t, const struct interface *i, size_t prepared, size_t workspace) {
    const char *name = i->name;
    c_answers(t, i, prepared, workspace);
    text_printf(t,
                "int %s_prepare(const struct %s_args *args) {\n  const uint64_t key = "
                "UINT64_C(0x%llx);\n",
                name, name, (unsigned long long)i->key);
    c_checks(t, i, false);
    text_printf(t,
                "  const int status = %s_prepare_body(args);\n"
                "  *(uint64_t *)args->prepared = status ? 0 : key;\n  return status;\n}\n",
                name);
    text_printf(t,
                "%s%s%s(const struct %s_args *args, void *workspace%s) {\n"
                "  const uint64_t key = UINT64_C(0x%llx);\n",
                i->counted ? "static int " : "int ", name, i->counted ? "_run_from" : "_run", name,
                i->counted ? ", int64_t first" : "", (unsigned long long)i->key);
    c_checks(t, i, true);
    text_printf(t, "  if (*(const uint64_t *)args->prepared != key) return %d;\n",
                INTERFACE_UNPREPARED);
    if (workspace)
        text_printf(t, "  if (!workspace || (uintptr_t)workspace %% 64) return %d;\n",
                    INTERFACE_ARGUMENT);
    if (i->counted)
        counted_c(t, i);
    else
        text_printf(t, "  return %s_run_body(args, workspace);\n}\n", name);
    if (interface_streams(i)) stream_c(t, i, workspace);
}

/* ---- LLVM ---- */

static void llvm_string(struct text *t, const char *name, const char *s) {
    text_printf(t, "@%s = private constant [%zu x i8] c\"", name, strlen(s) + 1);
    for (; *s; s++) {
        if (isalnum((unsigned char)*s) || *s == ' ' || *s == '_')
            text_append(t, s, 1);
        else
            text_printf(t, "\\%02X", (unsigned char)*s);
    }
    text_printf(t, "\\00\"\n");
}

/* f(i32) → the i-th of n pointers, else `other`. */
static void llvm_choose(struct text *t, const char *name, const char *suffix, const char *type,
                        int n, const char *table, const char *other) {
    text_printf(t,
                "define ptr @%s_%s(i32 %%i) {\n  %%in = icmp ult i32 %%i, %d\n"
                "  %%w = zext i32 %%i to i64\n  %%x = select i1 %%in, i64 %%w, i64 0\n"
                "  %%p = getelementptr %s, ptr @%s, i64 %%x\n",
                name, suffix, n, type, table);
    if (!strcmp(type, "ptr"))
        text_printf(t, "  %%v = load ptr, ptr %%p\n  %%r = select i1 %%in, ptr %%v, ptr %s\n",
                    other);
    else
        text_printf(t, "  %%r = select i1 %%in, ptr %%p, ptr %s\n", other);
    text_printf(t, "  ret ptr %%r\n}\n");
}

static void llvm_table(struct text *t, const struct interface *i) {
    static const char type[] = "{ ptr, ptr, ptr, ptr, ptr, i64, i32 }";
    const struct program *p = i->schedule->program;
    struct text rows = {0}, name = {0};
    for (int k = 0; k < i->n; k++) {
        const struct buffer *b = interface_array(i->schedule, i->buffer[k]);
        const char *word[4] = {i->title[k], type_name(b->type), role_name[b->role],
                               b->size ? p->size[b->size - 1].name : NULL};
        text_printf(&rows, "%s  %s { ", k ? ",\n" : "", type);
        for (int w = 0; w < 4; w++) {
            name.n = 0;
            text_printf(&name, "isamap.word.%d.%d", k, w);
            if (word[w]) llvm_string(t, name.at, word[w]);
            text_printf(&rows, word[w] ? "ptr @%s, " : "ptr null, ", name.at);
        }
        text_printf(t, "@isamap.extent.%d = private constant [%d x i64] [", k, b->ndims + 1);
        for (int d = 0; d < b->ndims; d++) text_printf(t, "i64 %lld, ", (long long)b->extent[d]);
        text_printf(t, "i64 0]\n");
        text_printf(&rows, "ptr @isamap.extent.%d, i64 %lld, i32 %d }", k,
                    (long long)(b->elements * (int64_t)type_size(b->type)), b->ndims);
    }
    text_printf(t, "@isamap.arguments = private constant [%d x %s] [\n%s%s  %s zeroinitializer]\n",
                i->n + 1, type, rows.n ? rows.at : "", rows.n ? ",\n" : "", type);
    llvm_choose(t, i->name, "argument", type, i->n, "isamap.arguments", "null");
    text_free(&rows);
    text_free(&name);
}

static void llvm_messages(struct text *t, const struct interface *i) {
    struct text name = {0}, rows = {0};
    for (int k = 0; k < INTERFACE_STATUSES; k++) {
        name.n = 0;
        text_printf(&name, "isamap.message.%d", k);
        llvm_string(t, name.at, interface_message[k]);
        text_printf(&rows, "%sptr @%s", k ? ", " : "", name.at);
    }
    llvm_string(t, "isamap.unknown", "unknown");
    text_printf(t, "@isamap.messages = private constant [%d x ptr] [%s]\n", INTERFACE_STATUSES,
                rows.at);
    llvm_choose(t, i->name, "message", "ptr", INTERFACE_STATUSES, "isamap.messages",
                "@isamap.unknown");
    text_free(&name);
    text_free(&rows);
}

/* One check: a line that defines the i1 %<name>, and the jump to its status when it is false. */
static void llvm_need(struct text *t, const char *status, int *n, const char *condition) {
    text_printf(t, "  %%c%d = %s\n  br i1 %%c%d, label %%l%d, label %%%s\nl%d:\n", *n, condition,
                *n, *n, status, *n);
    ++*n;
}

static void llvm_field(struct text *t, int word, const char *name, const char *type) {
    text_printf(t,
                "  %%at.%s = getelementptr i8, ptr %%args, i64 %d\n  %%%s = load %s, ptr %%at.%s\n",
                name, 8 * word, name, type, name);
}

/* The pointer in this word is there, and aligned when it must be. */
static void llvm_pointer(struct text *t, int *n, int word, const char *name, bool aligned) {
    char condition[160];
    llvm_field(t, word, name, "ptr");
    snprintf(condition, sizeof condition, "icmp ne ptr %%%s, null", name);
    llvm_need(t, "wrong", n, condition);
    if (!aligned) return;
    text_printf(t, "  %%int.%s = ptrtoint ptr %%%s to i64\n  %%low.%s = and i64 %%int.%s, 63\n",
                name, name, name, name);
    snprintf(condition, sizeof condition, "icmp eq i64 %%low.%s, 0", name);
    llvm_need(t, "wrong", n, condition);
}

static void llvm_weights(struct text *t, const struct interface *i, int *n) {
    char condition[160];
    llvm_pointer(t, n, i->at_weights, "weights", true);
    uint64_t magic;
    memcpy(&magic, "ISAMAPW1", 8);
    text_printf(
        t, "  %%magic = load i64, ptr %%weights\n  %%at.key = getelementptr i8, ptr %%weights, "
           "i64 8\n  %%owner = load i64, ptr %%at.key\n");
    snprintf(condition, sizeof condition, "icmp eq i64 %%magic, %lld", (long long)magic);
    llvm_need(t, "foreign", n, condition);
    snprintf(condition, sizeof condition, "icmp eq i64 %%owner, %lld", (long long)i->key);
    llvm_need(t, "foreign", n, condition);
}

static void llvm_ranges(struct text *t, const struct interface *i, int *n) {
    const struct program *p = i->schedule->program;
    char condition[160], name[32];
    llvm_field(t, i->at_threads, "threads", "i32");
    snprintf(condition, sizeof condition, "icmp ult i32 %%threads, %d", INTERFACE_MOST_THREADS + 1);
    llvm_need(t, "wrong", n, condition);
    for (int k = 0; k < p->nsizes; k++) {
        snprintf(name, sizeof name, "size.%d", k);
        llvm_field(t, i->at_sizes + k, name, "i64");
        snprintf(condition, sizeof condition, "icmp sge i64 %%%s, %lld", name,
                 (long long)p->size[k].lo);
        llvm_need(t, "wrong", n, condition);
        snprintf(condition, sizeof condition, "icmp sle i64 %%%s, %lld", name,
                 (long long)p->size[k].hi);
        llvm_need(t, "wrong", n, condition);
    }
}

/* How many checks there are. */
static int llvm_checks(struct text *t, const struct interface *i, bool run) {
    int n = 0;
    char name[32];
    llvm_need(t, "wrong", &n, "icmp ne ptr %args, null");
    llvm_pointer(t, &n, i->at_prepared, "prepared", true);
    for (int k = 0; k < i->n; k++) {
        snprintf(name, sizeof name, "array.%d", k);
        if (run || is_const(i, k)) llvm_pointer(t, &n, k, name, false);
    }
    if (i->weights == WEIGHTS_FILE) llvm_weights(t, i, &n);
    if (run) llvm_ranges(t, i, &n);
    return n;
}

static void llvm_entry(struct text *t, const struct interface *i, bool run, bool workspace) {
    const char *name = i->name;
    char condition[160];
    text_printf(t, "declare i32 @%s_%s.body(ptr%s)\n", name, run ? "run" : "prepare",
                run ? ", ptr" : "");
    text_printf(t, "define %s @%s_%s(ptr %%args%s%s) {\n",
                run && i->counted ? "internal i32" : "i32", name,
                !run         ? "prepare"
                : i->counted ? "run.from"
                             : "run",
                run ? ", ptr %workspace" : "", run && i->counted ? ", i64 %first" : "");
    int n = llvm_checks(t, i, run);
    if (run) {
        text_printf(t, "  %%mark = load i64, ptr %%prepared\n");
        snprintf(condition, sizeof condition, "icmp eq i64 %%mark, %lld", (long long)i->key);
        llvm_need(t, "unprepared", &n, condition);
        if (workspace) {
            text_printf(t, "  %%int.work = ptrtoint ptr %%workspace to i64\n  %%low.work = and i64 "
                           "%%int.work, 63\n");
            llvm_need(t, "wrong", &n, "icmp ne ptr %workspace, null");
            llvm_need(t, "wrong", &n, "icmp eq i64 %low.work, 0");
        }
        if (i->counted) {
            text_printf(t, "  %%end = add i64 %%first, %%size.0\n");
            snprintf(condition, sizeof condition, "icmp sle i64 %%end, %lld",
                     (long long)i->schedule->program->size[0].hi);
            llvm_need(t, "wrong", &n, condition);
            counted_llvm(t, i);
        }
        text_printf(t, "  %%status = call i32 @%s_run.body(ptr %%%s, ptr %%workspace)\n", name,
                    i->counted ? "one" : "args");
    } else {
        text_printf(t, "  %%status = call i32 @%s_prepare.body(ptr %%args)\n", name);
        text_printf(
            t,
            "  %%good = icmp eq i32 %%status, 0\n  %%mark = select i1 %%good, i64 %lld, i64 0\n"
            "  store i64 %%mark, ptr %%prepared\n",
            (long long)i->key);
    }
    text_printf(t, "  ret i32 %%status\nwrong:\n  ret i32 %d\n", INTERFACE_ARGUMENT);
    if (run) text_printf(t, "unprepared:\n  ret i32 %d\n", INTERFACE_UNPREPARED);
    if (i->weights == WEIGHTS_FILE) text_printf(t, "foreign:\n  ret i32 %d\n", INTERFACE_WEIGHTS);
    text_printf(t, "}\n");
}

void interface_llvm(struct text *t, const struct interface *i, size_t workspace) {
    const char *name = i->name;
    text_printf(t, "define i32 @%s_interface() {\n  ret i32 %d\n}\n", name, INTERFACE_VERSION);
    text_printf(t,
                "define i32 @%s_matches(i32 %%version, i64 %%key) {\n"
                "  %%a = icmp eq i32 %%version, %d\n  %%b = icmp eq i64 %%key, %lld\n"
                "  %%both = and i1 %%a, %%b\n  %%r = select i1 %%both, i32 0, i32 %d\n  ret i32 "
                "%%r\n}\n",
                name, INTERFACE_VERSION, (long long)i->key, INTERFACE_OTHER);
    llvm_messages(t, i);
    llvm_table(t, i);
    llvm_entry(t, i, false, false);
    llvm_entry(t, i, true, workspace > 0);
    if (interface_streams(i)) stream_llvm(t, i, workspace);
}
