/* What surrounds an instruction's text in each language: names of types, the function with its
 * parameters, the machine's declarations. */
#include "backends/backends_int.h"

#include <ctype.h>
#include <string.h>

/* ---- LLVM's text form ---- */
/* Of an element in a register; bool is i8. */
static const char *llvm_type_name(enum type t) {
    static const char *const name[TYPE_COUNT] = {
        [TYPE_F64] = "double", [TYPE_F32] = "float", [TYPE_F16] = "half", [TYPE_BF16] = "bfloat",
        [TYPE_I64] = "i64",    [TYPE_I32] = "i32",   [TYPE_I16] = "i16",  [TYPE_I8] = "i8",
        [TYPE_U64] = "i64",    [TYPE_U32] = "i32",   [TYPE_U16] = "i16",  [TYPE_U8] = "i8",
        [TYPE_BOOL] = "i8",
    };
    return name[t];
}

int signature_results(const struct signature *sig) {
    int words = 0;
    for (int i = 0; i < sig->nparams; i++)
        if (sig->param[i].kind == PARAM_VALUE && sig->param[i].written)
            words += sig->param[i].words;
    return words;
}

static void print_result(struct text *t, const struct signature *sig) {
    int n = 0, total = signature_results(sig);
    if (!total) text_printf(t, "void");
    if (total > 1) text_printf(t, "{ ");
    for (int i = 0; i < sig->nparams; i++) {
        const struct emit_param *p = &sig->param[i];
        for (int w = 0; p->kind == PARAM_VALUE && p->written && w < p->words; w++)
            text_printf(t, "%s<%d x %s>", n++ ? ", " : "", p->lanes, llvm_type_name(p->type));
    }
    if (total > 1) text_printf(t, " }");
}

static void print_param(struct text *t, const struct emit_param *p, int *n) {
    const char *comma = *n ? ", " : "";
    switch (p->kind) {
    case PARAM_POINTER:
        text_printf(t, "%sptr %%%s", comma, p->name);
        break;
    case PARAM_IMM:
        text_printf(t, "%s%s %%%s", comma, llvm_type_name(p->type), p->name);
        break;
    case PARAM_SIZE:
    case PARAM_STRIDE:
        text_printf(t, "%si64 %%%s", comma, p->name);
        break;
    case PARAM_FLAG:
        text_printf(t, "%si32 %%%s", comma, p->name);
        break;
    case PARAM_VALUE:
        if (!p->read) return;
        for (int w = 0; w < p->words; w++) {
            text_printf(t, "%s<%d x %s> %%%s", *n ? ", " : "", p->lanes, llvm_type_name(p->type),
                        p->name);
            if (w) text_printf(t, ".%d", w);
            ++*n;
        }
        return;
    }
    ++*n;
}

char *emit_llvm_function(struct arena *a, const char *name, const struct signature *sig,
                         const char *body) {
    struct text t = {0};
    int n = 0;
    text_printf(&t, "define ");
    print_result(&t, sig);
    text_printf(&t, " @\"%s\"(", name);
    for (int i = 0; i < sig->nparams; i++) print_param(&t, &sig->param[i], &n);
    text_printf(&t, ") alwaysinline nounwind { %s\n}\n", body);
    char *result = arena_strdup(a, t.at);
    text_free(&t);
    return result;
}

/* A declaration that stood before (two included files may both need it) would be an error of the
 * parser. */
static bool repeated_declaration(const char *begin, const char *line, size_t n) {
    while (n && isspace((unsigned char)*line)) line++, n--;
    while (n && isspace((unsigned char)line[n - 1])) n--;
    if (n < 7 || strncmp(line, "declare", 7)) return false;
    for (const char *at = begin; at < line; at++)
        if (*at == 'd' && at + n <= line && !strncmp(at, line, n) &&
            (isspace((unsigned char)at[n]) || !at[n]))
            return true;
    return false;
}

char *emit_prelude(struct arena *a, const struct machine *m, enum language language) {
    struct text all = {0}, t = {0};
    for (int i = 0; i < m->npreludes; i++)
        if (m->prelude[i].language == language) text_printf(&all, "%s\n", m->prelude[i].text);
    for (const char *at = all.at ? all.at : ""; *at;) {
        const char *end = strchr(at, '\n');
        size_t n = end ? (size_t)(end - at) : strlen(at);
        if (language != LANGUAGE_LLVM || !repeated_declaration(all.at, at, n))
            text_append(&t, at, n);
        text_append(&t, "\n", 1);
        at += n + (end != NULL);
    }
    char *result = arena_strdup(a, t.at ? t.at : "");
    text_free(&all);
    text_free(&t);
    return result;
}

/* ---- C ---- */
const char *c_type_name(enum type t) {
    static const char *const name[TYPE_COUNT] = {
        [TYPE_F64] = "double",    [TYPE_F32] = "float",    [TYPE_F16] = "uint16_t",
        [TYPE_BF16] = "uint16_t", [TYPE_I64] = "int64_t",  [TYPE_I32] = "int32_t",
        [TYPE_I16] = "int16_t",   [TYPE_I8] = "int8_t",    [TYPE_U64] = "uint64_t",
        [TYPE_U32] = "uint32_t",  [TYPE_U16] = "uint16_t", [TYPE_U8] = "uint8_t",
        [TYPE_BOOL] = "uint8_t",
    };
    return name[t];
}

const char *c_value_type(const struct machine *m, int memory, enum type t) {
    bool narrow = memory >= 0 && m->memory[memory].word == 4 && type_size(t) < 4;
    return narrow ? "uint32_t" : c_type_name(t);
}
