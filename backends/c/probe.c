#include "backends/c/c_int.h"

#include <dlfcn.h>
#include <string.h>

void c_probe_begin(struct arena *a, struct text *t, const struct schedule *s) {
    text_printf(
        t, "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n");
    c_headers(t, s);
    text_printf(t, "%s\n", emit_prelude(a, s->machine, LANGUAGE_C));
}

static void print_argument(struct cgen *g, struct text *t, const struct site *s,
                           const struct emit_param *p) {
    switch (p->kind) {
    case PARAM_POINTER:
        text_printf(t, "(%s *)pointer[%d]", c_type_name(p->type), p->index);
        break;
    case PARAM_VALUE:
        text_printf(t, "(%s *)pointer[%d]", c_value_type(g->machine, s->memory[p->index], p->type),
                    p->index);
        break;
    case PARAM_IMM:
        text_printf(t, "%s", c_immediate(g, p->type, s->imm[p->index]));
        break;
    case PARAM_SIZE:
        text_printf(t, "%lldL", (long long)s->size[p->index].value);
        break;
    case PARAM_STRIDE:
        text_printf(t, "%lldL", (long long)s->stride[p->index].value);
        break;
    case PARAM_FLAG:
        text_printf(t, "%d", (int)s->flag[p->index].value);
        break;
    }
}

bool c_probe_add(struct text *t, const struct site *s, const struct emit *emit, int n,
                 struct diags *diags) {
    struct cgen g = {.machine = s->machine, .diags = diags};
    struct signature sig;
    arena_init(&g.arena);
    const char *body = NULL;
    if (emit_signature(&g.arena, s, &sig, diags))
        body = emit_expand(&g.arena, s->machine, s, emit, draft_unknown, NULL, diags);
    if (body) {
        text_printf(t, "static inline void emit_%d%s", n,
                    c_function_text(&g, s, emit, &sig, 0, NULL, 0, body));
        text_printf(t, "#line 1 \"probe.c\"\nvoid probe_%d(void *const *pointer);\n", n);
        text_printf(t, "void probe_%d(void *const *pointer) {\n  (void)pointer;\n  emit_%d(", n, n);
        for (int i = 0; i < sig.nparams; i++) {
            if (i) text_printf(t, ", ");
            print_argument(&g, t, s, &sig.param[i]);
        }
        text_printf(t, ");\n}\n");
    }
    arena_free(&g.arena);

    return body;
}

static bool compile_and_load(struct arena *a, const char *text, const struct schedule *s, int n,
                             const char *folder, probe_function *out, void **handle,
                             struct diags *diags) {
    const char *library = arena_printf(a, "%s/probe.so", folder);
    if (!c_compile(s, text, folder, library, NULL, a, diags)) return false;
    if (!out) return true;
    *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    bool good = *handle != NULL;
    if (!good)
        diag_line(diags, s->machine->file, 0, 0, "the compiled emit cannot be loaded: %s",
                  dlerror());
    for (int i = 0; good && i < n; i++) {
        void *address = dlsym(*handle, arena_printf(a, "probe_%d", i));
        good = address;
        memcpy(&out[i], &address, sizeof address);
    }
    return good;
}

bool c_probe_finish(struct arena *a, const struct text *t, const struct schedule *s, int n,
                    enum probe_depth depth, probe_function *out, void **handle,
                    struct diags *diags) {
    char *folder = folder_temporary(a, diags);
    if (!folder) return false;
    *handle = NULL;
    bool good = depth == PROBE_PARSE
                    ? c_parse(s, t->at, folder, a, diags)
                    : compile_and_load(a, t->at, s, n, folder, depth == PROBE_LOAD ? out : NULL,
                                       handle, diags);
    folder_remove(folder);
    return good;
}
