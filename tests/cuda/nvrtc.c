/* In NVRTC's place, for tests: the host's C++ compiler makes of a kernel's text what emulate.h can
 * execute. The "cubin" is a shared library. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct program {
    char *text, *code;
    size_t bytes;
    char target[32];
};

int nvrtcCreateProgram(void **p, const char *text, const char *name, int n, const char *const *a,
                       const char *const *b) {
    struct program *x = calloc(1, sizeof *x);
    (void)name, (void)n, (void)a, (void)b;
    x->text = strdup(text);
    *p = x;
    return 0;
}

int nvrtcDestroyProgram(void **p) {
    struct program *x = *p;
    free(x->text);
    free(x->code);
    free(x);
    return 0;
}

/* The end of a piece that ends at one of these characters, outside of strings and parentheses. */
static const char *piece_end(const char *at, const char *ends) {
    int depth = 0;
    for (; *at; at++) {
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++) at += *at == '\\';
            continue;
        }
        if (!depth && strchr(ends, *at)) return at;
        depth += *at == '(' || *at == '[';
        depth -= *at == ')' || *at == ']';
    }
    return at;
}

static const char *last_parenthesis(const char *open, const char *end) {
    while (--end > open && *end != ')') continue;
    return end;
}

/* asm volatile("text" : "+f"(x), … : "r"(y), …) becomes emulated_asm("text", emulated_out(x), …,
 * emulated_in(y), …). */
static const char *rewrite_asm(const char *at, FILE *out) {
    at = strchr(at, '(') + 1;
    const char *end = piece_end(at, ":)");
    fprintf(out, "emulated_asm(%.*s", (int)(end - at), at);
    for (at = end; *at == ':' || *at == ','; at = end) {
        at += 1 + strspn(at + 1, " \t\n");
        end = piece_end(at, ",:)");
        const char *open = end > at ? memchr(at, '(', (size_t)(end - at)) : NULL;
        if (open)
            fprintf(out, ", emulated_%s(%.*s)", at[1] == '+' || at[1] == '=' ? "out" : "in",
                    (int)(last_parenthesis(open, end) - open - 1), open + 1);
    }
    fprintf(out, ")");
    return end + 1;
}

/* The type of a parameter: all but its name. */
enum { MOST_ARGUMENTS = 64 };
struct argument {
    const char *type;
    int n;
};

static int find_arguments(const char *at, const char *end, struct argument *out) {
    int count = 0;
    while (at < end && count < MOST_ARGUMENTS) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *name = comma ? comma : end;
        while (name[-1] != ' ') name--;
        out[count++] = (struct argument){at, (int)(name - at)};
        at = comma ? comma + 1 : end;
    }
    return count;
}

/* A kernel that takes its arguments from an array, beside each kernel. */
static void wrap_kernels(const char *text, FILE *out) {
    static const char head[] = "__global__ void __launch_bounds__(";
    for (const char *at = text; (at = strstr(at, head));) {
        at = strchr(at + sizeof head, ')') + 2;
        const char *open = strchr(at, '('), *close = strchr(open, ')');
        struct argument argument[MOST_ARGUMENTS];
        int n = close > open + 1 ? find_arguments(open + 1, close, argument) : 0;
        fprintf(out, "extern \"C\" const int arguments_%.*s[] = {", (int)(open - at), at);
        for (int k = 0; k < n; k++)
            fprintf(out, "sizeof(%.*s) / 8, ", argument[k].n, argument[k].type);
        fprintf(out, "0};\nextern \"C\" void emulated_%.*s(const int64_t *a) { (void)a; %.*s(",
                (int)(open - at), at, (int)(open - at), at);
        for (int k = 0; k < n; k++)
            fprintf(out, "%semulated_argument<%.*s>(a, arguments_%.*s, %d)", k ? ", " : "",
                    argument[k].n, argument[k].type, (int)(open - at), at, k);
        fprintf(out, "); }\n");
    }
}

static int read_code(struct program *x, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return 6;
    fseek(f, 0, SEEK_END);
    x->bytes = (size_t)ftell(f);
    rewind(f);
    x->code = malloc(x->bytes);
    int bad = fread(x->code, 1, x->bytes, f) != x->bytes;
    fclose(f);
    return bad ? 6 : 0;
}

/* Of the header too, which emulator.sh compiles beforehand. */
#define FLAGS "-std=c++17 -O0 -w -Wno-psabi -ffp-contract=off -fwrapv -fno-strict-aliasing -fPIC"

int nvrtcCompileProgram(void *p, int n, const char *const *option) {
    struct program *x = p;
    char folder[] = "/tmp/isamap.emulated.XXXXXX", command[2000];
    static const char word[] = "--gpu-architecture=";
    for (int k = 0; k < n; k++)
        if (!strncmp(option[k], word, sizeof word - 1))
            snprintf(x->target, sizeof x->target, "%s", option[k] + sizeof word - 1);
    if (!mkdtemp(folder)) return 6;
    snprintf(command, sizeof command, "%s/code.cpp", folder);
    FILE *out = fopen(command, "w");
    for (const char *at = x->text; *at;) {
        int word = at > x->text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (!word && !strncmp(at, "asm volatile", 12))
            at = rewrite_asm(at, out);
        else
            fputc(*at++, out);
    }
    wrap_kernels(x->text, out);
    fprintf(out, "extern \"C\" const char emulated_target[] = \"%s\";\n", x->target);
    fclose(out);
    snprintf(command, sizeof command,
             "c++ " FLAGS " -shared -include "
             "'%s/emulate.h' '%s/code.cpp' -o '%s/code.so' >&2",
             getenv("ISAMAP_EMULATE"), folder, folder);
    int status = system(command);
    snprintf(command, sizeof command, "%s/code.so", folder);
    status = status ? 6 : read_code(x, command);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) || status ? 6 : 0;
}

int nvrtcGetProgramLogSize(void *p, size_t *n) {
    (void)p;
    *n = 1;
    return 0;
}

int nvrtcGetProgramLog(void *p, char *log) {
    (void)p;
    *log = 0;
    return 0;
}

int nvrtcGetCUBINSize(void *p, size_t *n) {
    *n = ((struct program *)p)->bytes;
    return 0;
}

int nvrtcGetCUBIN(void *p, char *code) {
    struct program *x = p;
    memcpy(code, x->code, x->bytes);
    return 0;
}

/* "PTX": the same library in hexadecimal digits. */
int nvrtcGetPTXSize(void *p, size_t *n) {
    *n = sizeof "//ptx " + 2 * ((struct program *)p)->bytes;
    return 0;
}

int nvrtcGetPTX(void *p, char *text) {
    struct program *x = p;
    char *at = text + sprintf(text, "//ptx ");
    for (size_t k = 0; k < x->bytes; k++) {
        *at++ = "0123456789abcdef"[(unsigned char)x->code[k] >> 4];
        *at++ = "0123456789abcdef"[x->code[k] & 15];
    }
    *at = 0;
    return 0;
}
