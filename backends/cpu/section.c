/* The two entries of a module: the section's nodes in parts, each a function of its own. */
#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

/* ---- at the start ---- */
static void zero_places(struct function *f, const struct section *section, int n) {
    struct cpu *c = f->cpu;
    for (int p = 0; p < c->schedule->nplaces; p++) {
        if (!zeroed_before(c->schedule, &c->room, section, p, n)) continue;
        LLVMValueRef bytes = lv_const(f, c->schedule->place[p].bytes).v;
        LLVMBuildMemSet(f->builder, place_base(f, p), LLVMConstInt(c->i8, 0, false), bytes, 1);
    }
}

static void call_around(struct function *f, const struct emit *emit, int n) {
    for (int i = 0; i < n && !f->cpu->failed; i++) {
        if (emit[i].language != LANGUAGE_LLVM || !schedule_takes(f->cpu->schedule, &emit[i]))
            continue;
        struct emitted *fn = emit_plain(f->cpu, &emit[i]);
        if (fn) LLVMBuildCall2(f->builder, fn->type, fn->fn, NULL, 0, "");
    }
}

/* Sizes known only when the program runs are the first variables. */
static void start_sizes(struct function *f) {
    struct cpu *c = f->cpu;
    for (int k = 0; k < c->schedule->program->nsizes; k++) {
        const struct size *size = &c->schedule->program->size[k];
        struct lv v = {.v = load_word(f, c->interface->at_sizes + k, c->i64, size->name)};
        v = lv_op(f, SX_MIN, v, lv_const(f, size->hi));
        f->var[k] = lv_op(f, SX_MAX, v, lv_const(f, size->lo));
    }
}

/* The caller may be a program that knows nothing of features. */
static void ask_permission(struct function *f, const struct feature *feature) {
    unsigned code, argument;
    if (!feature_permit(feature, &code, &argument)) return;
#ifdef SYS_arch_prctl
    struct cpu *c = f->cpu;
    LLVMTypeRef type = LLVMFunctionType(c->i64, &c->i64, 1, true);
    LLVMValueRef arg[] = {lv_const(f, SYS_arch_prctl).v, lv_const(f, code).v,
                          lv_const(f, argument).v};
    LLVMValueRef status = LLVMBuildCall2(f->builder, type, runtime(c, "syscall", type), arg, 3, "");
    LLVMBasicBlockRef refused = LLVMAppendBasicBlockInContext(c->context, f->fn, "refused");
    LLVMBasicBlockRef given = LLVMAppendBasicBlockInContext(c->context, f->fn, "given");
    LLVMValueRef good = LLVMBuildICmp(f->builder, LLVMIntEQ, status, lv_const(f, 0).v, "");
    LLVMBuildCondBr(f->builder, good, given, refused);
    LLVMPositionBuilderAtEnd(f->builder, refused);
    LLVMBuildRet(f->builder, LLVMConstInt(c->i32, 1, false));
    LLVMPositionBuilderAtEnd(f->builder, given);
#endif
}

static void walk_range(struct function *f, const struct section *section, int from, int to) {
    for (int n = from; n < to && !f->cpu->failed; n++) {
        zero_places(f, section, n);
        walk(f, &section->node[n], 1);
    }
}

/* The result of the last statement that the nodes execute names their function; -1: none does. */
static int result_of(const struct cpu *c, const struct node *node, int n) {
    const struct program *p = c->schedule->program;
    for (int i = n - 1; i >= 0; i--) {
        int b = -1;
        if (node[i].kind == NODE_LOOP) b = result_of(c, node[i].loop->body, node[i].loop->nbody);
        if (node[i].kind == NODE_FALLBACK) b = p->stmt[node[i].fallback->stmt].dst.buffer;
        if (node[i].kind == NODE_ISSUE && node[i].issue->stmt >= 0)
            b = p->stmt[node[i].issue->stmt].dst.buffer;
        if (b >= 0) return b;
    }
    return -1;
}

static const char *part_name(struct cpu *c, const struct section *section, int from, int to) {
    const struct program *p = c->schedule->program;
    int b = result_of(c, &section->node[from], to - from);
    return arena_printf(&c->arena, "%s.%s", c->interface->name,
                        b < 0 ? "part" : c_identifier(&c->arena, p->buffer[b].name));
}

/* The time now, as tick `at` of the run. */
static void build_tick(struct function *f, int at) {
    struct cpu *c = f->cpu;
    if (!c->ticks) return;
    LLVMTypeRef type = LLVMFunctionType(c->i64, NULL, 0, false);
    LLVMValueRef now =
        LLVMBuildCall2(f->builder, type, runtime(c, "llvm.readcyclecounter", type), NULL, 0, "");
    LLVMBuildStore(f->builder, now, offset_pointer(f, c->ticks, 8 * (int64_t)at));
}

/* A function of these nodes, with the homes that they use as parameters, and its call. */
static const char *call_part(struct function *outer, const struct section *section, int from,
                             int to) {
    enum { FIXED = 3 };
    struct cpu *c = outer->cpu;
    struct home_list homes = homes_of(c, &section->node[from], to - from);
    unsigned n = (unsigned)(FIXED + homes.n);
    LLVMTypeRef *param = memory_array(n, sizeof *param);
    LLVMValueRef *arg = memory_array(n, sizeof *arg);
    arg[0] = outer->args;
    arg[1] = outer->workspace;
    arg[2] = outer->prepared;
    for (unsigned k = 0; k < n; k++) param[k] = c->ptr;
    for (int k = 0; k < homes.n; k++) arg[FIXED + k] = place_base(outer, homes.place[k]);
    LLVMTypeRef type = LLVMFunctionType(c->nothing, param, n, false);
    struct function *f = function_open(c, outer, part_name(c, section, from, to), type, -1);
    const char *name = arena_strdup(&c->arena, LLVMGetValueName(f->fn));
    LLVMBasicBlockRef start = LLVMGetInsertBlock(f->builder);
    f->args = LLVMGetParam(f->fn, 0);
    f->workspace = LLVMGetParam(f->fn, 1);
    f->prepared = LLVMGetParam(f->fn, 2);
    LLVMPositionBuilderBefore(f->builder, f->level[0].anchor);
    f->mine = f->shared = offset_pointer(f, f->workspace, c->room.homes);
    for (int k = 0; k < homes.n; k++)
        f->base[homes.place[k]] = LLVMGetParam(f->fn, (unsigned)(FIXED + k));
    start_sizes(f);
    LLVMPositionBuilderAtEnd(f->builder, start);
    start_slots(f, &section->node[from], to - from);
    walk_range(f, section, from, to);
    LLVMBuildRetVoid(f->builder);
    LLVMBuildCall2(outer->builder, type, f->fn, arg, n, "");
    function_close(f);
    free(param);
    free(arg);
    return name;
}

static void call_parts(struct function *f, const struct section *section) {
    struct cpu *c = f->cpu;
    const bool *cut = section_cuts(c, section);
    for (int from = 0, to; from < section->nnodes && !c->failed; from = to) {
        for (to = from + 1; to < section->nnodes && !cut[to];) to++;
        build_tick(f, 2 * c->nparts);
        const char *name = call_part(f, section, from, to);
        build_tick(f, 2 * c->nparts + 1);
        if (!c->ticks) continue;
        GROW(&c->arena, c->part, c->nparts, c->cap_parts);
        c->part[c->nparts++] = (struct run_part){from, to - from, name};
    }
}

/* A place for the times of the section's parts, which the program that runs it finds by its name.
 */
static void open_ticks(struct cpu *c, const struct section *section) {
    LLVMTypeRef type = LLVMArrayType2(c->i64, 2 * (uint64_t)section->nnodes + 1);
    c->ticks =
        LLVMAddGlobal(c->module, type, arena_printf(&c->arena, "%s_ticks", c->interface->name));
    LLVMSetInitializer(c->ticks, LLVMConstNull(type));
}

void cpu_section(struct cpu *c, const struct section *section, const char *name, bool workspace) {
    LLVMTypeRef params[] = {c->ptr, c->ptr};
    LLVMTypeRef type = LLVMFunctionType(c->i32, params, workspace ? 2 : 1, false);
    if (workspace && c->options && c->options->profile) open_ticks(c, section);
    struct function *f = function_open(c, NULL, name, type, -1);
    LLVMBasicBlockRef start = LLVMGetInsertBlock(f->builder);
    f->args = LLVMGetParam(f->fn, 0);
    LLVMPositionBuilderBefore(f->builder, f->level[0].anchor);
    f->prepared = load_word(f, c->interface->at_prepared, c->ptr, "prepared");
    f->workspace = workspace              ? LLVMGetParam(f->fn, 1)
                   : c->room.scratch >= 0 ? offset_pointer(f, f->prepared, c->room.scratch)
                                          : LLVMConstNull(c->ptr);
    LLVMPositionBuilderAtEnd(f->builder, start);
    uint64_t features = workspace ? 0 : schedule_features(c->schedule);
    for (int k = 0; k < c->machine->nfeatures && k < 64; k++)
        if (features >> k & 1) ask_permission(f, &c->machine->feature[k]);
    call_around(f, c->machine->begin, c->machine->nbegins);
    call_parts(f, section);
    call_around(f, c->machine->end, c->machine->nends);
    LLVMBuildRet(f->builder, LLVMConstInt(c->i32, 0, false));
    function_close(f);
}
#endif
