#include "backends/backends_int.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static bool is_keyword(const char *name) {
    static const char *const words[] = {
        "auto",   "break",    "case",     "char",     "class", "const",     "continue", "default",
        "delete", "do",       "double",   "else",     "enum",  "extern",    "float",    "for",
        "goto",   "if",       "inline",   "int",      "long",  "namespace", "new",      "private",
        "public", "register", "restrict", "return",   "short", "signed",    "sizeof",   "static",
        "struct", "switch",   "template", "this",     "throw", "typedef",   "union",    "unsigned",
        "using",  "virtual",  "void",     "volatile", "while", "operator",  "bool",     "true",
        "false",  "and",      "or",       "not",      "xor",   "try",       "catch",    NULL};
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], name)) return true;
    return false;
}

char *c_identifier(struct arena *a, const char *name) {
    bool digit = !*name || isdigit((unsigned char)*name);
    char *id = arena_printf(a, "%s%s", digit ? "n" : "", name);
    for (char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') *c = '_';
    return is_keyword(id) ? arena_printf(a, "%s_", id) : id;
}

char **argument_names(struct arena *a, const struct schedule *s) {
    int *buffer = arena_array(a, (size_t)s->program->nbuffers + 1, sizeof *buffer);
    int n = schedule_arguments(s, buffer);
    char **name = arena_array(a, (size_t)n + 1, sizeof *name);
    for (int i = 0; i < n; i++) {
        char *plain = c_identifier(a, s->program->buffer[buffer[i]].name);
        name[i] = plain;
        bool taken = !strcmp(plain, "prepared") || !strcmp(plain, "threads");
        for (int k = 0; k < i; k++) taken = taken || !strcmp(name[k], plain);
        if (taken) name[i] = arena_printf(a, "%s_%d", plain, i);
    }
    return name;
}

static void print_shape(struct text *t, const struct buffer *b) {
    text_printf(t, "%s %s", role_name[b->role], type_name(b->type));
    for (int d = 0; d < b->ndims; d++) text_printf(t, "[%lld]", (long long)b->extent[d]);
}

char *size_name(struct arena *a, const struct schedule *s, int size) {
    return arena_printf(a, "size_%s", c_identifier(a, s->program->size[size].name));
}

char *header_text(struct arena *a, const struct schedule *s) {
    struct text t = {0};
    const char *name = c_identifier(a, s->program->name);
    char **argument = argument_names(a, s);
    int *buffer = arena_array(a, (size_t)s->program->nbuffers + 1, sizeof *buffer);
    int n = schedule_arguments(s, buffer);
    text_printf(&t,
                "/* %s, compiled by isamap for %s */\n#ifndef ISAMAP_%s_H\n#define ISAMAP_%s_H\n\n"
                "#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" "
                "{\n#endif\n\n",
                name, s->machine_name, name, name);
    text_printf(&t,
                "/* arrays are row-major; f16 and bf16 are uint16_t, bool is uint8_t */\nstruct "
                "%s_args {\n",
                name);
    for (int i = 0; i < n; i++) {
        const struct buffer *b = &s->program->buffer[buffer[i]];
        bool read_only = b->role == ROLE_IN || b->role == ROLE_CONST;
        text_printf(&t, "    %s%s *%s; /* ", read_only ? "const " : "", c_type_name(b->type),
                    argument[i]);
        print_shape(&t, b);
        text_printf(&t, " */\n");
    }
    text_printf(&t,
                "    void *prepared; /* %s_prepared_bytes(), aligned to 64 bytes */\n"
                "    int threads;    /* 0: as many as there are */\n",
                name);
    for (int k = 0; k < s->program->nsizes; k++)
        text_printf(&t, "    int64_t %s; /* %s, %lld to %lld: arrays have as many rows */\n",
                    size_name(a, s, k), s->program->size[k].name, (long long)s->program->size[k].lo,
                    (long long)s->program->size[k].hi);
    text_printf(&t,
                "};\n\n"
                "/* Once, and again when a const array has changed. 0: done. */\n"
                "int %s_prepare(const struct %s_args *);\n"
                "/* workspace: %s_workspace_bytes(), aligned to 64 bytes. 0: done. */\n"
                "int %s_run(const struct %s_args *, void *workspace);\n"
                "size_t %s_prepared_bytes(void);\nsize_t %s_workspace_bytes(void);\n\n"
                "#ifdef __cplusplus\n}\n#endif\n#endif\n",
                name, name, name, name, name, name, name);
    char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

bool file_write(const char *path, const char *text, size_t length, struct diags *diags) {
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(text, 1, length, f) == length;
    if (f && fclose(f)) good = false;
    if (!good) diag_line(diags, path, 0, 0, "cannot write '%s': %s", path, strerror(errno));
    return good;
}

const char *path_suffix(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    return dot && (!slash || dot > slash) ? dot : "";
}

bool header_write(const struct schedule *s, const char *path, struct diags *diags) {
    struct arena a;
    arena_init(&a);
    const char *slash = strrchr(path, '/');
    const char *text = header_text(&a, s);
    const char *to = arena_printf(&a, "%.*s%s.h", slash ? (int)(slash - path + 1) : 0, path,
                                  c_identifier(&a, s->program->name));
    bool good = file_write(to, text, strlen(text), diags);
    arena_free(&a);
    return good;
}
