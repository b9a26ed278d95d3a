#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- types ---- */
LLVMTypeRef element_type(struct cpu *c, enum type t) {
    switch (t) {
    case TYPE_F64:
        return c->f64;
    case TYPE_F32:
        return c->f32;
    case TYPE_F16:
        return LLVMHalfTypeInContext(c->context);
    case TYPE_BF16:
        return LLVMBFloatTypeInContext(c->context);
    default:
        return LLVMIntTypeInContext(c->context, 8 * (unsigned)type_size(t));
    }
}

LLVMTypeRef param_type(struct cpu *c, const struct emit_param *p) {
    switch (p->kind) {
    case PARAM_POINTER:
        return c->ptr;
    case PARAM_IMM:
        return element_type(c, p->type);
    case PARAM_FLAG:
        return c->i32;
    case PARAM_VALUE:
        return LLVMVectorType(element_type(c, p->type), (unsigned)p->lanes);
    case PARAM_SIZE:
    case PARAM_STRIDE:
        break;
    }
    return c->i64;
}

static LLVMTypeRef function_type(struct cpu *c, const struct signature *sig) {
    int n = 0, results = 0, words = sig->nparams + 1;
    for (int i = 0; i < sig->nparams; i++) words += sig->param[i].words;
    LLVMTypeRef *param = memory_array((size_t)words, sizeof *param),
                *result = memory_array((size_t)words, sizeof *result);
    for (int i = 0; i < sig->nparams; i++) {
        const struct emit_param *p = &sig->param[i];
        int copies = p->kind == PARAM_VALUE ? p->words : 1;
        for (int w = 0; w < copies; w++) {
            if (p->kind != PARAM_VALUE || p->read) param[n++] = param_type(c, p);
            if (p->kind == PARAM_VALUE && p->written) result[results++] = param_type(c, p);
        }
    }
    LLVMTypeRef ret = results == 0 ? c->nothing
                      : results == 1
                          ? result[0]
                          : LLVMStructTypeInContext(c->context, result, (unsigned)results, false);
    LLVMTypeRef type = LLVMFunctionType(ret, param, (unsigned)n, false);
    free(param);
    free(result);
    return type;
}

/* ---- collecting ---- */
static void bodies_append(struct cpu *c, const char *text) {
    for (const char *at = text; *at; at++) c->lines += *at == '\n';
    text_append(&c->bodies, text, strlen(text));
}

static struct emitted *declare(struct cpu *c, struct arena *scratch, const struct signature *sig,
                               const struct emit *emit, const char *body) {
    const char *key = emit_llvm_function(scratch, "", sig, body);
    for (int i = 0; i < c->nemitted; i++)
        if (!strcmp(c->emitted[i].key, key)) return &c->emitted[i];
    if (!c->bodies.n) bodies_append(c, emit_prelude(&c->arena, c->machine, LANGUAGE_LLVM));
    const char *name = arena_printf(&c->arena, "emit.%d", c->nemitted);
    GROW(&c->arena, c->line, c->nlines, c->cap_lines);
    c->line[c->nlines++] = (struct emit_line){c->lines + 1, emit->at};
    bodies_append(c, emit_llvm_function(scratch, name, sig, body));
    GROW(&c->arena, c->emitted, c->nemitted, c->cap_emitted);
    struct emitted *e = &c->emitted[c->nemitted++];
    e->key = arena_strdup(&c->arena, key);
    e->type = function_type(c, sig);
    for (int i = 0; i < sig->nparams; i++)
        c->pairs |= signature_results(sig) > 1 && sig->param[i].kind == PARAM_VALUE &&
                    (sig->param[i].type == TYPE_F16 || sig->param[i].type == TYPE_BF16);
    e->fn = LLVMAddFunction(c->module, name, e->type);
    return e;
}

struct emitted *emit_function(struct cpu *c, const struct site *site, const struct signature *sig,
                              const struct emit *emit) {
    struct arena scratch;
    arena_init(&scratch);
    const char *body = emit_expand(&scratch, c->machine, site, emit,
                                   site->draft ? draft_unknown : NULL, NULL, c->diags);
    struct emitted *e = body ? declare(c, &scratch, sig, emit, body) : NULL;
    arena_free(&scratch);
    return e;
}

struct emitted *emit_plain(struct cpu *c, const struct emit *emit) {
    const struct signature none = {NULL, 0};
    const char *body = emit_expand(&c->arena, c->machine, NULL, emit,
                                   c->draft ? draft_unknown : NULL, NULL, c->diags);
    c->failed = c->failed || !body;
    return body ? declare(c, &c->arena, &none, emit, body) : NULL;
}

/* Values of the settings, in order; false after reporting that one is not a constant. */
static bool setting_values(struct function *f, const struct configure_node *n, int64_t *value) {
    const struct machine *m = f->cpu->machine;
    for (int k = 0; k < n->nsets; k++)
        for (int x = 0; x < m->state[n->set[k].state].nfields; x++)
            if (!lv_constant(lv_sx(f, n->set[k].value[x]), value++)) {
                cpu_error(f->cpu,
                          "'%s' sets a value that is not known when code is generated, expected "
                          "unrolled loops around it",
                          m->configure[n->configure].id);
                return false;
            }
    return true;
}

void build_configure(struct function *f, const struct configure_node *n) {
    struct cpu *c = f->cpu;
    const struct configure *configure = &c->machine->configure[n->configure];
    const struct signature none = {NULL, 0};
    size_t count = 0;
    for (int k = 0; k < n->nsets; k++) count += (size_t)c->machine->state[n->set[k].state].nfields;
    int64_t *value = arena_array(&c->arena, count + 1, sizeof *value);
    const struct emit *emit = NULL;
    for (int k = 0; k < configure->nemits; k++)
        if (configure->emit[k].language == LANGUAGE_LLVM) emit = &configure->emit[k];
    if (!emit) {
        cpu_error(c, "configure '%s' has no llvm emit", configure->id);
        return;
    }
    if (!setting_values(f, n, value)) return;
    const char *body = emit_expand_configure(&c->arena, c->machine, n, value, emit, c->diags);
    struct emitted *fn = body ? declare(c, &c->arena, &none, emit, body) : NULL;
    c->failed = c->failed || !fn;
    if (fn) LLVMBuildCall2(f->builder, fn->type, fn->fn, NULL, 0, "");
}

/* ---- linking ---- */

/* "name:LINE:COLUMN: error: text": the emit whose body has that line. */
static void report_parse(struct cpu *c, char *message) {
    int line = 0, column = 0, at = 0;
    char *colon = message ? strchr(message, ':') : NULL;
    if (!colon || sscanf(colon, ":%d:%d: error: %n", &line, &column, &at) < 2) {
        cpu_error(c, "the emit texts do not compile: %s", message ? message : "no message");
        return;
    }
    char *text = colon + at, *end = strchr(text, '\n');
    if (end) *end = 0;
    const struct emit_line *found = NULL;
    for (int i = 0; i < c->nlines && c->line[i].first <= line; i++) found = &c->line[i];
    c->failed = true;
    if (!found)
        diag_line(c->diags, c->machine->file, 0, 0,
                  "the llvm prelude does not compile: %s (its line %d)", text, line);
    else
        diag_line(c->diags, found->at.file, found->at.line + line - found->first, 0,
                  "the llvm emit does not compile: %s", text);
}

static void keep_message(LLVMDiagnosticInfoRef info, void *user) {
    struct cpu *c = user;
    char *text = LLVMGetDiagInfoDescription(info);
    if (!c->linker_message) c->linker_message = arena_strdup(&c->arena, text);
    LLVMDisposeMessage(text);
}

static void make_internal(struct cpu *c) {
    unsigned kind = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    for (LLVMValueRef f = LLVMGetFirstFunction(c->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        const char *name = LLVMGetValueName(f), *dot = strrchr(name, '.');
        if (LLVMGetEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, kind) ||
            (dot && !strcmp(dot, ".body")))
            LLVMSetLinkage(f, LLVMInternalLinkage);
    }
}

static bool parse_and_link(struct cpu *c) {
    char *message = NULL;
    LLVMModuleRef emits = NULL;
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(c->bodies.at, c->bodies.n, "emits");
    if (LLVMParseIRInContext(c->context, buffer, &emits, &message)) {
        report_parse(c, message);
        LLVMDisposeMessage(message);
        return false;
    }
    LLVMSetTarget(emits, LLVMGetTarget(c->module));
    LLVMSetDataLayout(emits, LLVMGetDataLayoutStr(c->module));
    LLVMContextSetDiagnosticHandler(c->context, keep_message, c);
    if (LLVMLinkModules2(c->module, emits)) {
        cpu_error(c, "the emit texts do not link: %s",
                  c->linker_message ? c->linker_message : "no message");
        return false;
    }
    return true;
}

/* Features stand in each function too, so that the text form can be compiled by itself. */
static void set_attributes(struct cpu *c) {
    char *cpu = LLVMGetTargetMachineCPU(c->target);
    char *features = LLVMGetTargetMachineFeatureString(c->target);
    const char *tune = strncmp(cpu, "x86-64", 6) ? NULL : "x86-64-v3";
    const char *pair[][2] = {
        {"target-cpu", cpu}, {"target-features", features}, {"tune-cpu", tune}};
    for (LLVMValueRef f = LLVMGetFirstFunction(c->module); f; f = LLVMGetNextFunction(f)) {
        if (LLVMIsDeclaration(f)) continue;
        for (int i = 0; i < 3; i++) {
            if (!pair[i][1] || !*pair[i][1]) continue;
            LLVMAttributeRef a =
                LLVMCreateStringAttribute(c->context, pair[i][0], (unsigned)strlen(pair[i][0]),
                                          pair[i][1], (unsigned)strlen(pair[i][1]));
            LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, a);
        }
    }
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
}

/* Of loops that ask for it, and no others: the schedule has decided about those. */
#define VECTORISE                                                                                  \
    ",function(loop-simplify,lcssa,loop-vectorize<interleave-forced-only;vectorize-forced-only>)"

static bool run_passes(struct cpu *c, const char *passes) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(c->module, passes, c->target, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error) return true;
    char *message = LLVMGetErrorMessage(error);
    cpu_error(c, "inlining failed: %s", message);
    LLVMDisposeErrorMessage(message);
    return false;
}

bool emits_link(struct cpu *c) {
    char *message = NULL;
    if (c->helpers) bodies_append(c, cpu_helpers);
    if (c->interface) interface_llvm(&c->bodies, c->interface, (size_t)c->room.workspace);
    if (c->bodies.n && !parse_and_link(c)) return false;
    set_attributes(c);
    make_internal(c);
    bool variants = c->vectorises && variants_keep(c);
    char passes[256];
    snprintf(passes, sizeof passes, "%salways-inline,globaldce%s%s%s", c->ticks ? "" : "mergefunc,",
             c->pairs ? ",function(instsimplify)" : "",
             c->ticks ? "" : ",function(loop-mssa(licm))", c->vectorises ? VECTORISE : "");
    bool done = run_passes(c, passes);
    if (variants) variants_release(c);
    if (!done || (variants && !run_passes(c, "always-inline,globaldce"))) return false;
    halves_carry(c);
    if (LLVMVerifyModule(c->module, LLVMReturnStatusAction, &message))
        cpu_error(c, "the emit texts do not fit together: %.400s", message);
    LLVMDisposeMessage(message);
    return !c->failed;
}
#endif
