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

char *size_name(struct arena *a, const struct schedule *s, int size) {
    return arena_printf(a, "size_%s", c_identifier(a, s->program->size[size].name));
}

const char *path_suffix(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    return dot && (!slash || dot > slash) ? dot : "";
}
