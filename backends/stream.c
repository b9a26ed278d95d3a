/* Entries for streams: runs one after the other, each with the states that the one before left. A
 * stream is a block of the caller's: head, two copies of each state, workspace. A run reads the
 * current copies and writes the others, which become current when it is done. */
#include "backends/interface.h"
#include "backends/backends_int.h"

static int64_t states_end(const struct interface *i) {
    if (!i->nstates) return STREAM_HEAD;
    const struct carried_state *s = &i->state[i->nstates - 1];
    return s->at + 2 * stream_room(s);
}

enum { COUNT_AT = 16 }; /* in the head */

void stream_header(struct text *t, const struct interface *i) {
    const char *name = i->name;
    text_printf(t, "\n/* Streams. States that runs hand on:");
    for (int k = 0; k < i->nstates; k++)
        text_printf(t, "%s %s to %s", k ? "," : "", i->field[i->state[k].to],
                    i->field[i->state[k].from]);
    for (int k = 0; k < i->nrows; k++) {
        const struct buffer *b = &i->schedule->program->buffer[i->row[k]];
        text_printf(t, "%s rows of %s, %lld bytes", i->nstates || k ? "," : "", b->name,
                    (long long)(b->elements * (int64_t)type_size(b->type)));
    }
    if (i->counted)
        text_printf(t, "%s the number of steps, int64_t", i->nstates || i->nrows ? "," : "");
    text_printf(t,
                ". A stream is %s_stream_bytes() bytes, aligned to 64;\n * any number of streams "
                "share `prepared`. 0: done.\n"
                " * init: the states are those of args, zero where a pointer is NULL; once more: "
                "the stream begins again.\n"
                " * step: one run, of any length that a run may have; the fields of states are "
                "not read. A step that fails leaves the stream as it was.\n"
                " * finish: copies the states to args, but for pointers that are NULL; the stream "
                "can go on.\n"
                " * state: the k-th, to be read, saved or changed between steps; NULL after the "
                "last. */\n"
                "size_t %s_stream_bytes(void);\n"
                "int %s_init(const struct %s_args *, void *stream);\n"
                "int %s_step(const struct %s_args *, void *stream);\n"
                "int %s_finish(const struct %s_args *, void *stream);\n"
                "void *%s_state(void *stream, int k);\n",
                name, name, name, name, name, name, name, name, name);
}

/* ---- C ---- */

/* The end of run_from, and run: the first step's number stands behind the arguments. */
void counted_c(struct text *t, const struct interface *i) {
    const char *name = i->name, *size = i->steps;
    text_printf(t,
                "  if (first < 0 || first > INT64_C(%lld) - args->%s) return %d;\n"
                "  struct { struct %s_args args; int64_t first; } one = {*args, first};\n"
                "  one.args.%s += first;\n",
                (long long)i->schedule->program->size[0].hi, size, INTERFACE_ARGUMENT, name, size);
    for (int k = 0; k < i->n; k++)
        if (interface_row_bytes(i, k))
            text_printf(t,
                        "  one.args.%s = (void *)((uintptr_t)one.args.%s - (uintptr_t)first * "
                        "%lld);\n",
                        i->field[k], i->field[k], (long long)interface_row_bytes(i, k));
    text_printf(t,
                "  return %s_run_body(&one.args, workspace);\n}\n"
                "int %s_run(const struct %s_args *args, void *workspace) {\n"
                "  return %s_run_from(args, workspace, 0);\n}\n",
                name, name, name, name);
}

void stream_c(struct text *t, const struct interface *i, size_t workspace) {
    const char *name = i->name;
    unsigned long long key = i->key;
    const char *stale = "  if (!stream || (uintptr_t)stream % 64) return ";
    text_printf(t, "size_t %s_stream_bytes(void) { return %lld; }\n", name,
                (long long)(states_end(i) + (int64_t)workspace));
    text_printf(t, "int %s_init(const struct %s_args *args, void *stream) {\n", name, name);
    text_printf(t, "%s%d;\n  if (!args) return %d;\n", stale, INTERFACE_ARGUMENT,
                INTERFACE_ARGUMENT);
    for (int k = 0; k < i->nstates; k++) {
        const struct carried_state *s = &i->state[k];
        const char *from = i->field[s->from];
        text_printf(t,
                    "  if (args->%s) memcpy((char *)stream + %lld, args->%s, %lld);\n"
                    "  else memset((char *)stream + %lld, 0, %lld);\n",
                    from, (long long)s->at, from, (long long)s->bytes, (long long)s->at,
                    (long long)s->bytes);
    }
    text_printf(t,
                "  ((uint64_t *)stream)[0] = UINT64_C(0x%llx);\n"
                "  ((uint64_t *)stream)[1] = ((uint64_t *)stream)[2] = 0;\n  return 0;\n}\n",
                key);
    text_printf(t, "void *%s_state(void *stream, int k) {\n  switch (k) {\n", name);
    for (int k = 0; k < i->nstates; k++)
        text_printf(t,
                    "  case %d: return (char *)stream + %lld + ((uint64_t *)stream)[1] * %lld;\n",
                    k, (long long)i->state[k].at, (long long)stream_room(&i->state[k]));
    for (int k = 0; k < i->nrows; k++)
        text_printf(t, "  case %d: return (char *)stream + %lld;\n", i->nstates + k,
                    (long long)(states_end(i) + i->row_at[k]));
    if (i->counted)
        text_printf(t, "  case %d: return (char *)stream + %d;\n", i->nstates + i->nrows, COUNT_AT);
    text_printf(t, "  default: return 0;\n  }\n}\n");
    text_printf(t, "int %s_step(const struct %s_args *args, void *stream) {\n", name, name);
    text_printf(t, "%s%d;\n  if (!args) return %d;\n", stale, INTERFACE_ARGUMENT,
                INTERFACE_ARGUMENT);
    text_printf(t,
                "  if (((uint64_t *)stream)[0] != UINT64_C(0x%llx)) return %d;\n"
                "  struct %s_args one = *args;\n  const uint64_t now = ((uint64_t *)stream)[1];\n",
                key, INTERFACE_STREAM, name);
    for (int k = 0; k < i->nstates; k++) {
        const struct carried_state *s = &i->state[k];
        text_printf(t,
                    "  one.%s = (void *)((char *)stream + %lld + now * %lld);\n"
                    "  one.%s = (void *)((char *)stream + %lld + (1 - now) * %lld);\n",
                    i->field[s->from], (long long)s->at, (long long)stream_room(s), i->field[s->to],
                    (long long)s->at, (long long)stream_room(s));
    }
    text_printf(t, "  const int status = %s_run%s(&one, (char *)stream + %lld%s);\n", name,
                i->counted ? "_from" : "", (long long)states_end(i),
                i->counted ? ", ((const int64_t *)stream)[2]" : "");
    if (i->counted) text_printf(t, "  if (!status) ((int64_t *)stream)[2] += one.%s;\n", i->steps);
    text_printf(t, "  if (!status) ((uint64_t *)stream)[1] = 1 - now;\n  return status;\n}\n");
    text_printf(t, "int %s_finish(const struct %s_args *args, void *stream) {\n", name, name);
    text_printf(t, "%s%d;\n  if (!args) return %d;\n", stale, INTERFACE_ARGUMENT,
                INTERFACE_ARGUMENT);
    text_printf(t, "  if (((uint64_t *)stream)[0] != UINT64_C(0x%llx)) return %d;\n", key,
                INTERFACE_STREAM);
    for (int k = 0; k < i->nstates; k++)
        text_printf(t, "  if (args->%s) memcpy(args->%s, %s_state(stream, %d), %lld);\n",
                    i->field[i->state[k].to], i->field[i->state[k].to], name, k,
                    (long long)i->state[k].bytes);
    text_printf(t, "  return 0;\n}\n");
}

/* ---- LLVM ---- */

/* Bytes one by one: to may be NULL (nothing), from too (zeros). */
static const char copy_text[] =
    "define internal void @isamap.stream.copy(ptr %to, ptr %from, i64 %n) {\n"
    "  %none = icmp eq ptr %to, null\n"
    "  %m = select i1 %none, i64 0, i64 %n\n"
    "  br label %loop\n"
    "loop:\n"
    "  %k = phi i64 [ 0, %0 ], [ %next, %store ]\n"
    "  %in = icmp ult i64 %k, %m\n"
    "  br i1 %in, label %body, label %done\n"
    "body:\n"
    "  %zero = icmp eq ptr %from, null\n"
    "  br i1 %zero, label %store, label %read\n"
    "read:\n"
    "  %f = getelementptr i8, ptr %from, i64 %k\n"
    "  %b = load i8, ptr %f\n"
    "  br label %store\n"
    "store:\n"
    "  %v = phi i8 [ 0, %body ], [ %b, %read ]\n"
    "  %t = getelementptr i8, ptr %to, i64 %k\n"
    "  store i8 %v, ptr %t\n"
    "  %next = add i64 %k, 1\n"
    "  br label %loop\n"
    "done:\n"
    "  ret void\n"
    "}\n";

static void llvm_begin(struct text *t, const struct interface *i, const char *what, bool begun) {
    text_printf(t,
                "define i32 @%s_%s(ptr %%args, ptr %%stream) {\n"
                "  %%a = icmp ne ptr %%args, null\n  %%s = icmp ne ptr %%stream, null\n"
                "  %%int = ptrtoint ptr %%stream to i64\n  %%low = and i64 %%int, 63\n"
                "  %%aligned = icmp eq i64 %%low, 0\n  %%both = and i1 %%a, %%s\n"
                "  %%all = and i1 %%both, %%aligned\n  br i1 %%all, label %%there, label %%wrong\n"
                "wrong:\n  ret i32 %d\n",
                i->name, what, INTERFACE_ARGUMENT);
    if (begun)
        text_printf(t,
                    "stale:\n  ret i32 %d\nthere:\n  %%key = load i64, ptr %%stream\n"
                    "  %%mine = icmp eq i64 %%key, %lld\n  br i1 %%mine, label %%go, label "
                    "%%stale\ngo:\n",
                    INTERFACE_STREAM, (long long)i->key);
    else
        text_printf(t, "there:\n");
}

/* %NAME: the pointer in that word of %args. */
static void llvm_word(struct text *t, const char *name, int k, int word) {
    text_printf(t, "  %%at.%s.%d = getelementptr i8, ptr %%args, i64 %d\n", name, k, 8 * word);
    text_printf(t, "  %%%s.%d = load ptr, ptr %%at.%s.%d\n", name, k, name, k);
}

/* %now, and %cur.k: the current copy of each state. */
static void llvm_current(struct text *t, const struct interface *i) {
    text_printf(t, "  %%at.now = getelementptr i8, ptr %%stream, i64 8\n"
                   "  %%now = load i64, ptr %%at.now\n");
    for (int k = 0; k < i->nstates; k++)
        text_printf(t,
                    "  %%off.%d = mul i64 %%now, %lld\n  %%from.%d = add i64 %%off.%d, %lld\n"
                    "  %%cur.%d = getelementptr i8, ptr %%stream, i64 %%from.%d\n",
                    k, (long long)stream_room(&i->state[k]), k, k, (long long)i->state[k].at, k, k);
}

static void llvm_init(struct text *t, const struct interface *i) {
    llvm_begin(t, i, "init", false);
    for (int k = 0; k < i->nstates; k++) {
        llvm_word(t, "given", k, i->state[k].from);
        text_printf(t,
                    "  %%to.%d = getelementptr i8, ptr %%stream, i64 %lld\n"
                    "  call void @isamap.stream.copy(ptr %%to.%d, ptr %%given.%d, i64 %lld)\n",
                    k, (long long)i->state[k].at, k, k, (long long)i->state[k].bytes);
    }
    text_printf(
        t,
        "  store i64 %lld, ptr %%stream\n  %%at.now = getelementptr i8, ptr %%stream, i64 "
        "8\n  store i64 0, ptr %%at.now\n  %%at.count = getelementptr i8, ptr %%stream, i64 "
        "%d\n  store i64 0, ptr %%at.count\n  ret i32 0\n}\n",
        (long long)i->key, COUNT_AT);
}

/* %one: the arguments again, in n words. */
static void llvm_copy(struct text *t, const struct interface *i, int n) {
    text_printf(t, "  %%one = alloca [%d x i64], align 8\n", n);
    for (int w = 0; w < i->words; w++)
        text_printf(t,
                    "  %%w.%d = getelementptr i8, ptr %%args, i64 %d\n  %%v.%d = load i64, ptr "
                    "%%w.%d\n  %%o.%d = getelementptr i8, ptr %%one, i64 %d\n  store i64 %%v.%d, "
                    "ptr %%o.%d\n",
                    w, 8 * w, w, w, w, 8 * w, w, w);
}

void counted_llvm(struct text *t, const struct interface *i) {
    llvm_copy(t, i, i->words + 1);
    for (int k = 0; k < i->n; k++)
        if (interface_row_bytes(i, k))
            text_printf(t,
                        "  %%rows.%d = mul i64 %%first, %lld\n  %%moved.%d = sub i64 %%v.%d, "
                        "%%rows.%d\n  store i64 %%moved.%d, ptr %%o.%d\n",
                        k, (long long)interface_row_bytes(i, k), k, k, k, k, k);
    text_printf(t,
                "  store i64 %%end, ptr %%o.%d\n  %%o.first = getelementptr i8, ptr %%one, i64 "
                "%d\n  store i64 %%first, ptr %%o.first\n",
                i->at_sizes, 8 * i->words);
}

static void llvm_run(struct text *t, const char *name) {
    text_printf(t,
                "define i32 @%s_run(ptr %%args, ptr %%workspace) {\n  %%s = call i32 "
                "@%s_run.from(ptr %%args, ptr %%workspace, i64 0)\n  ret i32 %%s\n}\n",
                name, name);
}

static void llvm_step(struct text *t, const struct interface *i) {
    llvm_begin(t, i, "step", true);
    llvm_copy(t, i, i->words);
    llvm_current(t, i);
    text_printf(t, "  %%then = sub i64 1, %%now\n");
    for (int k = 0; k < i->nstates; k++)
        text_printf(t,
                    "  %%noff.%d = mul i64 %%then, %lld\n  %%nat.%d = add i64 %%noff.%d, %lld\n"
                    "  %%next.%d = getelementptr i8, ptr %%stream, i64 %%nat.%d\n"
                    "  store ptr %%cur.%d, ptr %%o.%d\n  store ptr %%next.%d, ptr %%o.%d\n",
                    k, (long long)stream_room(&i->state[k]), k, k, (long long)i->state[k].at, k, k,
                    k, i->state[k].from, k, i->state[k].to);
    text_printf(t, "  %%work = getelementptr i8, ptr %%stream, i64 %lld\n",
                (long long)states_end(i));
    if (i->counted)
        text_printf(t,
                    "  %%at.count = getelementptr i8, ptr %%stream, i64 %d\n  %%count = load i64, "
                    "ptr %%at.count\n  %%status = call i32 @%s_run.from(ptr %%one, ptr %%work, i64 "
                    "%%count)\n",
                    COUNT_AT, i->name);
    else
        text_printf(t, "  %%status = call i32 @%s_run(ptr %%one, ptr %%work)\n", i->name);
    text_printf(t, "  %%done = icmp eq i32 %%status, 0\n  %%mark = select i1 %%done, i64 %%then, "
                   "i64 %%now\n  store i64 %%mark, ptr %%at.now\n");
    if (i->counted)
        text_printf(
            t,
            "  %%sum = add i64 %%count, %%v.%d\n  %%steps = select i1 %%done, i64 %%sum, i64 "
            "%%count\n  store i64 %%steps, ptr %%at.count\n",
            i->at_sizes);
    text_printf(t, "  ret i32 %%status\n}\n");
}

static void llvm_finish(struct text *t, const struct interface *i) {
    llvm_begin(t, i, "finish", true);
    llvm_current(t, i);
    for (int k = 0; k < i->nstates; k++) {
        llvm_word(t, "to", k, i->state[k].to);
        text_printf(t, "  call void @isamap.stream.copy(ptr %%to.%d, ptr %%cur.%d, i64 %lld)\n", k,
                    k, (long long)i->state[k].bytes);
    }
    text_printf(t, "  ret i32 0\n}\n");
}

/* %r.k: the pointer in %at.k where it is the k-th that is asked for, otherwise the one before. */
static void llvm_choose_state(struct text *t, int k, const char *pointer) {
    text_printf(t, "  %%is.%d = icmp eq i32 %%k, %d\n", k, k);
    if (k)
        text_printf(t, "  %%r.%d = select i1 %%is.%d, ptr %s, ptr %%r.%d\n", k, k, pointer, k - 1);
    else
        text_printf(t, "  %%r.0 = select i1 %%is.0, ptr %s, ptr null\n", pointer);
}

static void llvm_state(struct text *t, const struct interface *i) {
    char pointer[32];
    text_printf(t, "define ptr @%s_state(ptr %%stream, i32 %%k) {\n", i->name);
    llvm_current(t, i);
    int last = i->nstates + i->nrows - !i->counted;
    for (int k = 0; k <= last; k++) {
        snprintf(pointer, sizeof pointer, k < i->nstates ? "%%cur.%d" : "%%kept.%d", k);
        if (k >= i->nstates)
            text_printf(
                t, "  %%kept.%d = getelementptr i8, ptr %%stream, i64 %lld\n", k,
                (long long)(k == last ? COUNT_AT : states_end(i) + i->row_at[k - i->nstates]));
        llvm_choose_state(t, k, pointer);
    }
    text_printf(t, "  ret ptr %%r.%d\n}\n", last);
}

void stream_llvm(struct text *t, const struct interface *i, size_t workspace) {
    text_printf(t, "%sdefine i64 @%s_stream_bytes() {\n  ret i64 %lld\n}\n", copy_text, i->name,
                (long long)(states_end(i) + (int64_t)workspace));
    if (i->counted) llvm_run(t, i->name);
    llvm_init(t, i);
    llvm_step(t, i);
    llvm_finish(t, i);
    llvm_state(t, i);
}
