#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cpu_error(struct cpu *c, const char *fmt, ...) {
    char text[1000];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    if (!c->failed) diag_line(c->diags, c->machine->file, 0, 0, "%s", text);
    c->failed = true;
}

/* ---- functions ---- */
static void *array(size_t n, size_t size) {
    void *p = memory_array(n + 1, size);
    return p;
}

struct function *function_open(struct cpu *c, struct function *outer, const char *name,
                               LLVMTypeRef type, int unit) {
    const struct schedule *s = c->schedule;
    struct function *f = array(1, sizeof *f);
    f->cpu = c;
    f->unit = unit;
    f->fn = LLVMAddFunction(c->module, name, type);
    f->builder = LLVMCreateBuilderInContext(c->context);
    f->var = array((size_t)s->nvars, sizeof *f->var);
    f->grid = array((size_t)s->nvars, sizeof *f->grid);
    f->slot = array((size_t)s->nplaces, sizeof *f->slot);
    f->base = array((size_t)s->nplaces, sizeof *f->base);
    f->word = array((size_t)c->machine->nmemories, sizeof *f->word);
    for (int m = 0; m < c->machine->nmemories; m++)
        if (c->nwords[m]) f->word[m] = array((size_t)c->nwords[m], sizeof **f->word);
    if (outer) LLVMSetLinkage(f->fn, LLVMInternalLinkage);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c->context, f->fn, "entry");
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(c->context, f->fn, "start");
    LLVMPositionBuilderAtEnd(f->builder, entry);
    f->level[0] = (struct level){LLVMBuildBr(f->builder, start), ++c->uid, false};
    f->nlevels = 1;
    LLVMPositionBuilderAtEnd(f->builder, start);
    return f;
}

void function_close(struct function *f) {
    phis_prune(f->fn);
    LLVMDisposeBuilder(f->builder);
    for (int m = 0; m < f->cpu->machine->nmemories; m++) free(f->word[m]);
    free(f->word);
    free(f->var);
    free(f->grid);
    free(f->slot);
    free(f->base);
    free(f->memo);
    free(f);
}

/* A place starts in its slot 0 where nothing rotates it; otherwise the first rotate makes slot 0
 * current. */
void start_slots(struct function *f, const struct node *node, int n) {
    const struct cpu *c = f->cpu;
    for (int p = 0; p < c->schedule->nplaces; p++) f->slot[p] = lv_const(f, 0);
    for (int k = 0; k < c->nturning; k++) {
        int p = c->turning[k];
        if (section_rotates(node, n, p)) f->slot[p] = lv_const(f, c->schedule->place[p].slots - 1);
    }
}

/* ---- where places are ---- */
LLVMValueRef offset_pointer(struct function *f, LLVMValueRef base, int64_t bytes) {
    LLVMValueRef c = LLVMConstInt(f->cpu->i64, (uint64_t)bytes, false);
    return bytes ? LLVMBuildGEP2(f->builder, f->cpu->i8, base, &c, 1, "") : base;
}

LLVMValueRef load_word(struct function *f, int word, LLVMTypeRef type, const char *name) {
    LLVMValueRef p = offset_pointer(f, f->args, 8 * (int64_t)word);
    return LLVMBuildLoad2(f->builder, type, p, name);
}

static LLVMValueRef load_argument(struct function *f, int buffer) {
    const struct interface *i = f->cpu->interface;
    const char *name = f->cpu->schedule->program->buffer[buffer].name;
    if (i->offset[buffer] >= 0 && i->weights == WEIGHTS_EMBED) return f->cpu->weights[buffer];
    if (i->offset[buffer] >= 0)
        return offset_pointer(f, load_word(f, i->at_weights, f->cpu->ptr, "weights"),
                              i->offset[buffer] + WEIGHTS_HEAD);
    for (int k = 0; k < i->n; k++)
        if (i->buffer[k] == buffer) return load_word(f, k, f->cpu->ptr, name);
    cpu_error(f->cpu, "place of buffer '%s' is an argument, but the buffer is none",
              f->cpu->schedule->program->buffer[buffer].name);
    return LLVMGetPoison(f->cpu->ptr);
}

/* Pointer to slot 0 of the place, made once in the function's entry. */
LLVMValueRef place_base(struct function *f, int place) {
    const struct place *p = &f->cpu->schedule->place[place];
    if (f->base[place]) return f->base[place];
    LLVMBasicBlockRef here = LLVMGetInsertBlock(f->builder);
    LLVMPositionBuilderBefore(f->builder, f->level[0].anchor);
    LLVMValueRef v = NULL;
    int64_t offset = f->cpu->room.offset[place];
    switch (p->keep) {
    case KEEP_ARGUMENT:
        v = load_argument(f, p->buffer);
        break;
    case KEEP_PREPARED:
        v = offset_pointer(f, f->prepared, offset);
        break;
    case KEEP_WORKSPACE:
        v = offset_pointer(f, f->workspace, offset);
        break;
    case KEEP_LOCAL: {
        bool mine = f->unit < 0 || memory_in_unit(f->cpu->machine, p->memory, f->unit);
        v = offset_pointer(f, mine ? f->mine : f->shared, offset);
        break;
    }
    }
    LLVMPositionBuilderAtEnd(f->builder, here);
    return f->base[place] = v;
}

/* What a loop's body writes: the types of words, and slots. */
struct carried {
    LLVMTypeRef **type; /* [nmemories][words] */
    bool *slot;         /* [nturning] */
};

static void carry_operand(struct function *f, struct carried *c, const struct issue_node *n,
                          int o) {
    const struct schedule *s = f->cpu->schedule;
    const struct instr *instr = &s->machine->instr[n->instr];
    const struct operand *op = &instr->operand[o];
    if (n->arg[o].place < 0 || op->role == ROLE_IN || op->role == ROLE_CONST) return;
    const struct place *p = &s->place[n->arg[o].place];
    if (!c->type[p->memory]) return;
    int64_t word = s->machine->memory[p->memory].word;
    int64_t end = (p->address + p->bytes * p->slots + word - 1) / word;
    for (int64_t w = p->address / word; w < end && w < f->cpu->nwords[p->memory]; w++)
        c->type[p->memory][w] = word_carried(f, p->memory, op->type);
}

/* Steps that the nodes rotate the place by, modulo its slots; -1: it depends on bounds. */
static int rotations(const struct schedule *s, const struct node *node, int n, int place) {
    int slots = s->place[place].slots;
    int64_t sum = 0, lo, hi;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_ROTATE && node[i].rotate == place) sum++;
        if (node[i].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[i].loop;
        int one = rotations(s, l->body, l->nbody, place);
        if (one == 0) continue;
        if (one < 0 || !sx_constant(l->lo, &lo) || !sx_constant(l->hi, &hi)) return -1;
        int64_t trips = hi > lo ? (hi - lo + l->step - 1) / l->step : 0;
        sum += one * (trips % slots);
    }
    return (int)(sum % slots);
}

static void carry_slot(struct function *f, struct carried *c, int place) {
    for (int k = 0; k < f->cpu->nturning; k++)
        if (f->cpu->turning[k] == place) c->slot[k] = true;
}

static void carry_nodes(struct function *f, struct carried *c, const struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_ROTATE) carry_slot(f, c, node[i].rotate);
        if (node[i].kind == NODE_LOOP && (node[i].loop->kind != LOOP_PARALLEL || f->unit >= 0))
            carry_nodes(f, c, node[i].loop->body, node[i].loop->nbody);
        if (node[i].kind != NODE_ISSUE) continue;
        const struct instr *instr = &f->cpu->machine->instr[node[i].issue->instr];
        for (int o = 0; o < instr->noperands; o++) carry_operand(f, c, node[i].issue, o);
    }
}

/* Loads what is carried into value[] (to the types of c), or stores it back. Returns the number of
 * values. */
static int carry_pass(struct function *f, struct carried *c, LLVMValueRef *value, bool store,
                      int level) {
    const struct schedule *s = f->cpu->schedule;
    int n = 0;
    for (int m = 0; m < s->machine->nmemories; m++) {
        for (int w = 0; c->type[m] && w < f->cpu->nwords[m]; w++) {
            if (!c->type[m][w]) continue;
            if (store)
                f->word[m][w] = value[n];
            else if (value)
                value[n] = word_read(f, m, w, c->type[m][w]);
            n++;
        }
    }
    for (int k = 0; k < f->cpu->nturning; k++) {
        int p = f->cpu->turning[k];
        if (!c->slot[k]) continue;
        if (store)
            f->slot[p] = (struct lv){.v = value[n], .level = level};
        else if (value)
            value[n] = f->slot[p].v;
        n++;
    }
    return n;
}

static bool carries_slots(struct function *f, const struct carried *c) {
    for (int k = 0; k < f->cpu->nturning; k++)
        if (c->slot[k]) return true;
    return false;
}

static struct carried carry_open(struct function *f) {
    struct carried c;
    c.type = array((size_t)f->cpu->machine->nmemories, sizeof *c.type);
    c.slot = array((size_t)f->cpu->nturning, sizeof *c.slot);
    for (int m = 0; m < f->cpu->machine->nmemories; m++)
        if (f->cpu->nwords[m]) c.type[m] = array((size_t)f->cpu->nwords[m], sizeof **c.type);
    return c;
}

static void carry_close(struct function *f, struct carried *c) {
    for (int m = 0; m < f->cpu->machine->nmemories; m++) free(c->type[m]);
    free(c->type);
    free(c->slot);
}

/* ---- loops ---- */
bool is_summed(const struct program *p, const struct loop_node *l, int axis, bool nests) {
    for (int i = 0; i < l->nbody; i++) {
        const struct node *n = &l->body[i];
        if (n->kind == NODE_LOOP && (nests || n->loop->kind == LOOP_UNROLLED) &&
            is_summed(p, n->loop, axis, nests))
            return true;
        const struct stmt *s =
            n->kind == NODE_ISSUE && n->issue->stmt >= 0 ? &p->stmt[n->issue->stmt] : NULL;
        if (s && (s->axes >> axis & 1) && !access_varies(p, &s->dst, axis)) return true;
    }
    return false;
}

bool turn_cycles(const struct function *f, const struct node *node, int n, double times,
                 double many, double *cycles) {
    static const struct program none;
    for (int i = 0; i < n; i++) {
        int64_t from, to;
        double interval;
        if (node[i].kind == NODE_LOOP) {
            const struct loop_node *l = node[i].loop;
            bool known = sx_constant(l->lo, &from) && sx_constant(l->hi, &to);
            double turns = known ? (double)((to - from) / l->step) : many;
            if ((many == 0 && (l->kind != LOOP_UNROLLED || !known)) ||
                !turn_cycles(f, l->body, l->nbody, times * turns, many, cycles))
                return false;
            continue;
        }
        if (node[i].kind != NODE_ISSUE) return false;
        instr_times(f->cpu->machine, &f->cpu->machine->instr[node[i].issue->instr], &none, NULL,
                    NULL, &interval, NULL);
        *cycles += times * interval;
    }
    return true;
}

/* Turns of a loop that are walked one behind the other, since to count and to jump takes a
 * processor as long as some instructions do, and takes its decoder's time from a thread beside it:
 * as many as take FEW_CYCLES, but of a sum SUM_CYCLES, whose turns do not share what they read. */
static int64_t turns_at_once(const struct function *f, const struct loop_node *l, bool summed) {
    enum { MOST = 4, FEW_CYCLES = 8, SUM_CYCLES = 80 };
    double cycles = 0;
    int64_t n = MOST;
    if (l->kind != LOOP_SEQUENTIAL || !turn_cycles(f, l->body, l->nbody, 1, 0, &cycles)) return 1;
    if (!summed) return cycles > FEW_CYCLES ? 1 : n;
    while (n > 1 && (double)n * cycles > SUM_CYCLES) n--;
    return n;
}

/* What two steps of a sum read alike, as windows that overlap do, the compiler would keep in
 * registers, of which the schedule has none left: each step reads it anew. A fence of one thread is
 * no instruction. */
static void read_anew(struct function *f) {
    LLVMBuildFence(f->builder, LLVMAtomicOrderingSequentiallyConsistent, true, "");
}

/* Sums of integers that two turns make the compiler would join in another order, which takes more
 * registers. A fence of arithmetic, which is no instruction, ends each turn's; it takes floats. */
static void end_sums(struct function *f, const struct carried *c) {
    for (int m = 0; m < f->cpu->machine->nmemories; m++)
        for (int w = 0; c->type[m] && w < f->cpu->nwords[m]; w++) {
            LLVMTypeRef type = c->type[m][w], as = f->cpu->f32;
            if (!type) continue;
            unsigned lanes =
                LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetVectorSize(type) : 0;
            LLVMTypeRef of = lanes ? LLVMGetElementType(type) : type;
            if (LLVMGetTypeKind(of) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(of) != 32)
                continue;
            if (lanes) as = LLVMVectorType(as, lanes);
            LLVMValueRef v = LLVMBuildBitCast(f->builder, word_read(f, m, w, type), as, "");
            v = intrinsic(f, "llvm.arithmetic.fence", &as, 1, &v, 1);
            f->word[m][w] = LLVMBuildBitCast(f->builder, v, type, "");
        }
}

static void walk_frame(struct function *f, const struct loop_node *l, struct lv lo, struct lv hi,
                       int64_t turns, bool apart) {
    struct carried c = carry_open(f);
    struct frame r;
    carry_nodes(f, &c, l->body, l->nbody);
    struct lv *slot = array((size_t)f->cpu->nturning, sizeof *slot);
    for (int k = 0; k < f->cpu->nturning; k++) {
        int p = f->cpu->turning[k];
        slot[k] = f->slot[p];
        /* the same slot at the start of every iteration: no counter, so that registers keep
         * constant places */
        if (c.slot[k] && !rotations(f->cpu->schedule, l->body, l->nbody, p)) c.slot[k] = false;
    }
    int n = carry_pass(f, &c, NULL, false, 0);
    LLVMValueRef *value = array((size_t)n, sizeof *value);
    carry_pass(f, &c, value, false, 0);
    int64_t first;
    f->grid[l->var] = lv_constant(lo, &first) && first % l->step == 0 ? l->step : 0;
    struct lv at = frame_open(f, &r, lo, hi, l->step * turns, n, value);
    f->var[l->var] = at;
    if (!r.never) {
        if (!r.once) carry_pass(f, &c, r.phi, true, f->nlevels - 1);
        f->around[f->naround++] = l;
        for (int64_t k = 0; k < turns; k++) {
            if (k) f->var[l->var] = lv_op(f, SX_ADD, at, lv_const(f, k * l->step));
            if (k && apart) end_sums(f, &c);
            if (k && apart) read_anew(f);
            ask_next(f);
            walk(f, l->body, l->nbody);
        }
        f->naround--;
        carry_pass(f, &c, value, false, 0);
    }
    bool blocks = !r.never && !r.once;
    frame_close(f, &r, value);
    for (int k = 0; k < f->cpu->nturning; k++)
        if (!c.slot[k]) f->slot[f->cpu->turning[k]] = slot[k];
    free(slot);
    if (blocks) carry_pass(f, &c, value, true, carries_slots(f, &c) ? level_after(f) : 0);
    f->var[l->var].v = NULL;
    free(value);
    carry_close(f, &c);
}

/* Several turns at once. Of known trips as many as leave none over; where a sum leaves some, or
 * may, they are a loop of their own behind it, whose end is one more jump that is guessed wrong: of
 * short loops that costs what it saves. */
static void walk_turns(struct function *f, const struct loop_node *l, struct lv lo, struct lv hi) {
    enum { LONG = 8 };
    bool summed = l->axis >= 0 && is_summed(f->cpu->schedule->program, l, l->axis, false);
    int64_t from, to, most = turns_at_once(f, l, summed), n = most;
    bool known = lv_constant(lo, &from) && lv_constant(hi, &to) && to > from;
    int64_t trips = known && (to - from) % l->step == 0 ? (to - from) / l->step : 0;
    bool all = summed && trips && trips <= most;
    if (all) n = trips;
    while (n > 1 && !all && (trips % n || trips < 2 * n)) n--;
    if (n > 1 || !summed || most == 1 || (known && trips < LONG * most)) {
        walk_frame(f, l, lo, hi, n, summed);
        return;
    }
    struct lv zero = lv_const(f, 0), many = lv_const(f, most * l->step);
    struct lv span = lv_op(f, SX_MAX, lv_op(f, SX_SUB, hi, lo), zero);
    struct lv whole = lv_op(f, SX_MUL, lv_op(f, SX_DIV, span, many), many);
    struct lv middle = lv_op(f, SX_ADD, lo, whole);
    walk_frame(f, l, lo, middle, most, summed);
    walk_frame(f, l, middle, hi, 1, summed);
}

static void walk_unrolled(struct function *f, const struct loop_node *l, struct lv lo,
                          struct lv hi) {
    bool apart = l->axis >= 0 && is_summed(f->cpu->schedule->program, l, l->axis, false);
    int64_t from, to;
    if (!lv_constant(lo, &from) || !lv_constant(hi, &to)) {
        cpu_error(f->cpu, "the bounds of unrolled loop '%s' are not constant",
                  f->cpu->schedule->var[l->var].name);
        return;
    }
    for (int64_t i = from; i < to && !f->cpu->failed; i += l->step) {
        f->var[l->var] = lv_const(f, i);
        if (apart && i > from) read_anew(f);
        walk(f, l->body, l->nbody);
        if (++f->cpu->issues > MAX_ISSUES) cpu_error(f->cpu, "unrolled loops make too much code");
    }
    f->var[l->var].v = NULL;
}

/* ---- parallel loops ---- */
enum { CONTEXT_ARGS, CONTEXT_WORKSPACE, CONTEXT_PREPARED, CONTEXT_LO, CONTEXT_HI, CONTEXT_FREE };

static LLVMValueRef context_field(struct function *f, LLVMValueRef context, int field) {
    LLVMValueRef at = LLVMConstInt(f->cpu->i64, (uint64_t)field, false);
    return LLVMBuildGEP2(f->builder, f->cpu->i64, context, &at, 1, "");
}

static void context_store(struct function *f, LLVMValueRef context, int field, LLVMValueRef v) {
    LLVMBuildStore(f->builder, v, context_field(f, context, field));
}

static LLVMValueRef context_load(struct function *f, int field, LLVMTypeRef type) {
    return LLVMBuildLoad2(f->builder, type, context_field(f, LLVMGetParam(f->fn, 0), field), "");
}

LLVMValueRef runtime(struct cpu *c, const char *name, LLVMTypeRef type) {
    LLVMValueRef fn = LLVMGetNamedFunction(c->module, name);
    return fn ? fn : LLVMAddFunction(c->module, name, type);
}

static LLVMValueRef runtime_number(struct function *f, const char *name) {
    LLVMTypeRef type = LLVMFunctionType(f->cpu->i32, NULL, 0, false);
    LLVMValueRef v = LLVMBuildCall2(f->builder, type, runtime(f->cpu, name, type), NULL, 0, "");
    return LLVMBuildSExt(f->builder, v, f->cpu->i64, "");
}

/* Iterations [trips*id/threads, trips*(id+1)/threads) of the loop, as bounds of its variable. */
static void share(struct function *f, const struct loop_node *l, LLVMValueRef id,
                  LLVMValueRef threads, struct lv *lo, struct lv *hi) {
    LLVMBuilderRef B = f->builder;
    LLVMValueRef step = lv_const(f, l->step).v, one = lv_const(f, 1).v;
    LLVMValueRef span = LLVMBuildSub(B, hi->v, lo->v, "");
    LLVMValueRef up = LLVMBuildAdd(B, span, lv_const(f, l->step - 1).v, "");
    LLVMValueRef trips = LLVMBuildSDiv(B, up, step, "");
    LLVMValueRef a = LLVMBuildSDiv(B, LLVMBuildMul(B, trips, id, ""), threads, "");
    LLVMValueRef next = LLVMBuildMul(B, trips, LLVMBuildAdd(B, id, one, ""), "");
    LLVMValueRef b = LLVMBuildSDiv(B, next, threads, "");
    LLVMValueRef last = LLVMBuildAdd(B, lo->v, LLVMBuildMul(B, b, step, ""), "");
    LLVMValueRef over = LLVMBuildICmp(B, LLVMIntSGT, last, hi->v, "");
    LLVMValueRef first = LLVMBuildAdd(B, lo->v, LLVMBuildMul(B, a, step, ""), "");
    hi->v = LLVMBuildSelect(B, over, hi->v, last, "");
    lo->v = first;
    lo->level = hi->level = 0;
}

/* The thread's function: finds its share and walks it. */
static LLVMValueRef build_thread(struct function *outer, const struct loop_node *l,
                                 const struct home_list *homes) {
    struct cpu *c = outer->cpu;
    LLVMTypeRef type = LLVMFunctionType(c->nothing, &c->ptr, 1, false);
    struct function *f = function_open(c, outer, "parallel", type, l->unit >= 0 ? l->unit : 0);
    LLVMBuilderRef B = f->builder;
    LLVMBasicBlockRef start = LLVMGetInsertBlock(B);
    int field = CONTEXT_FREE;
    LLVMPositionBuilderBefore(B, f->level[0].anchor);
    f->args = context_load(f, CONTEXT_ARGS, c->ptr);
    f->workspace = context_load(f, CONTEXT_WORKSPACE, c->ptr);
    f->prepared = context_load(f, CONTEXT_PREPARED, c->ptr);
    struct lv lo = {.v = context_load(f, CONTEXT_LO, c->i64)},
              hi = {.v = context_load(f, CONTEXT_HI, c->i64)};
    for (int v = 0; v < c->schedule->nvars; v++) {
        f->var[v] = outer->var[v];
        if (!outer->var[v].v || LLVMIsConstant(outer->var[v].v)) continue;
        f->var[v] = (struct lv){.v = context_load(f, field++, c->i64)};
    }
    start_slots(f, l->body, l->nbody);
    for (int k = 0; k < c->nturning; k++) {
        int p = c->turning[k];
        if (section_rotates(l->body, l->nbody, p)) continue;
        f->slot[p] = outer->slot[p];
        if (LLVMIsConstant(outer->slot[p].v)) continue;
        f->slot[p] = (struct lv){.v = context_load(f, field++, c->i64)};
    }
    for (int k = 0; k < homes->n; k++) f->base[homes->place[k]] = context_load(f, field++, c->ptr);
    LLVMValueRef id = runtime_number(f, "omp_get_thread_num");
    LLVMValueRef threads = runtime_number(f, "omp_get_num_threads");
    f->shared = offset_pointer(f, f->workspace, c->room.homes);
    LLVMValueRef part = LLVMBuildMul(B, id, lv_const(f, c->room.local).v, "");
    f->mine = LLVMBuildGEP2(B, c->i8, f->shared, &part, 1, "");
    share(f, l, id, threads, &lo, &hi);
    LLVMPositionBuilderAtEnd(B, start);
    walk_frame(f, l, lo, hi, 1, false);
    LLVMBuildRetVoid(f->builder);
    LLVMValueRef fn = f->fn;
    function_close(f);
    return fn;
}

static LLVMValueRef thread_count(struct function *f) {
    LLVMBuilderRef B = f->builder;
    struct cpu *c = f->cpu;
    LLVMValueRef n = load_word(f, c->interface->at_threads, c->i32, "threads"),
                 zero = LLVMConstInt(c->i32, 0, false);
    n = LLVMBuildSelect(B, LLVMBuildICmp(B, LLVMIntSLT, n, zero, ""), zero, n, "");
    if (!c->room.local) return n;
    /* no more threads than have a part of the workspace; 0 would be as many as there are */
    LLVMValueRef most = LLVMConstInt(c->i32, (unsigned)c->room.instances, false);
    LLVMValueRef fits = LLVMBuildAnd(B, LLVMBuildICmp(B, LLVMIntSGT, n, zero, ""),
                                     LLVMBuildICmp(B, LLVMIntSLE, n, most, ""), "");
    return LLVMBuildSelect(B, fits, n, most, "");
}

static void walk_parallel(struct function *f, const struct loop_node *l, struct lv lo,
                          struct lv hi) {
    struct cpu *c = f->cpu;
    int field = CONTEXT_FREE;
    struct home_list homes = homes_of(c, l->body, l->nbody);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(f->builder);
    LLVMPositionBuilderBefore(f->builder, f->level[0].anchor);
    unsigned fields = (unsigned)(CONTEXT_FREE + c->nturning + homes.n);
    for (int v = 0; v < c->schedule->nvars; v++) fields += f->var[v].v != NULL;
    LLVMValueRef context = LLVMBuildAlloca(f->builder, LLVMArrayType2(c->i64, fields), "context");
    LLVMPositionBuilderAtEnd(f->builder, here);
    context_store(f, context, CONTEXT_ARGS, f->args);
    context_store(f, context, CONTEXT_WORKSPACE, f->workspace);
    context_store(f, context, CONTEXT_PREPARED, f->prepared);
    context_store(f, context, CONTEXT_LO, lo.v);
    context_store(f, context, CONTEXT_HI, hi.v);
    for (int v = 0; v < c->schedule->nvars; v++)
        if (f->var[v].v && !LLVMIsConstant(f->var[v].v))
            context_store(f, context, field++, f->var[v].v);
    for (int k = 0; k < c->nturning; k++) {
        int p = c->turning[k];
        if (!section_rotates(l->body, l->nbody, p) && !LLVMIsConstant(f->slot[p].v))
            context_store(f, context, field++, f->slot[p].v);
    }
    for (int k = 0; k < homes.n; k++)
        context_store(f, context, field++, place_base(f, homes.place[k]));
    LLVMValueRef thread = build_thread(f, l, &homes);
    LLVMTypeRef params[] = {c->ptr, c->ptr, c->i32, c->i32};
    LLVMTypeRef type = LLVMFunctionType(c->nothing, params, 4, false);
    LLVMValueRef arg[] = {thread, context, thread_count(f), LLVMConstInt(c->i32, 0, false)};
    LLVMBuildCall2(f->builder, type, runtime(c, "GOMP_parallel", type), arg, 4, "");
    c->parallel = true;
}

static void walk_loop(struct function *f, const struct loop_node *l) {
    struct lv lo = lv_sx(f, l->lo), hi = lv_sx(f, l->hi);
    const struct interface *i = f->cpu->interface;
    if (i->counted && loop_counts(f->cpu->schedule, l))
        lo = (struct lv){.v = load_word(f, i->words, f->cpu->i64, "first")};
    if (l->kind == LOOP_UNROLLED)
        walk_unrolled(f, l, lo, hi);
    else if (l->kind == LOOP_PARALLEL && f->unit < 0)
        walk_parallel(f, l, lo, hi);
    else
        walk_turns(f, l, lo, hi);
}

/* ---- other nodes ---- */
/* The texts of the syncs that this language has are built too; program order itself needs none. */
static void walk_signals(struct function *f, const struct signal *signal, int n, bool pop) {
    for (int i = 0; i < n && !f->cpu->failed; i++) {
        const struct sync *s = &f->cpu->machine->sync[signal[i].sync];
        const struct emit *e = pop ? s->pop_emit : s->push_emit;
        for (int k = pop ? s->npop_emits : s->npush_emits; k > 0; k--, e++) {
            if (e->language != LANGUAGE_LLVM) continue;
            struct emitted *fn = emit_plain(f->cpu, e);
            if (fn) LLVMBuildCall2(f->builder, fn->type, fn->fn, NULL, 0, "");
        }
    }
}

static void walk_rotate(struct function *f, int place) {
    int slots = f->cpu->schedule->place[place].slots;
    if (slots < 2) return;
    struct lv next = lv_op(f, SX_ADD, f->slot[place], lv_const(f, 1));
    struct lv inside = lv_op(f, SX_LT, next, lv_const(f, slots));
    f->slot[place] = lv_op(f, SX_MUL, next, inside);
}

void walk(struct function *f, const struct node *node, int n) {
    bool inside = f->in_entry;
    int asked = 0;
    for (int i = 0; i < n && !f->cpu->failed; i++) {
        if (i >= asked) asked = i + ask_stored(f, node + i, n - i);
        const struct signals *g = f->in_entry ? NULL : node_signals(&node[i]);
        if (g) walk_signals(f, g->pop, g->npops, true);
        switch (node[i].kind) {
        case NODE_LOOP:
            f->in_entry = node[i].loop->kind == LOOP_HARDWARE;
            if (i + 1 < n && node[i + 1].kind == NODE_LOOP)
                forget_before(f, node[i].loop, node[i + 1].loop);
            walk_loop(f, node[i].loop);
            f->in_entry = inside;
            break;
        case NODE_ISSUE:
            build_issue(f, node[i].issue);
            break;
        case NODE_FALLBACK:
            build_fallback(f, node[i].fallback);
            break;
        case NODE_ROTATE:
            walk_rotate(f, node[i].rotate);
            break;
        case NODE_CONFIGURE:
            build_configure(f, node[i].configure);
            break;
        case NODE_SYNC:
            break;
        }
        if (g) walk_signals(f, g->push, g->npushes, false);
    }
}
#endif
