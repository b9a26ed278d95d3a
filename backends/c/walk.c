#include "backends/c/c_int.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { MAX_ISSUES = 200000 };

void c_error(struct cgen *g, const char *fmt, ...) {
    char text[1000];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    if (!g->failed) diag_line(g->diags, g->machine->file, 0, 0, "%s", text);
    g->failed = true;
}

void c_line(struct cgen *g, const char *fmt, ...) {
    char small[256], *line = small;
    va_list list;
    va_start(list, fmt);
    int n = vsnprintf(small, sizeof small, fmt, list);
    va_end(list);
    if ((size_t)n >= sizeof small) {
        line = arena_alloc(&g->arena, (size_t)n + 1);
        va_start(list, fmt);
        vsnprintf(line, (size_t)n + 1, fmt, list);
        va_end(list);
    }
    text_printf(&g->code, "%*s%s\n", 2 * g->indent, "", line);
}

const char *c_integer(struct cgen *g, int64_t v) {
    if (v == INT64_MIN) return "INT64_MIN";
    if (v >= -INT32_MAX && v <= INT32_MAX)
        return arena_printf(&g->arena, v < 0 ? "(%" PRId64 ")" : "%" PRId64, v);
    return arena_printf(&g->arena, "INT64_C(%" PRId64 ")", v);
}

/* ---- expressions ---- */
bool c_known(struct cgen *g, const struct sx *e, int64_t *out) {
    int64_t a, b;
    if (e->op == SX_CONST) return *out = e->value, true;
    if (e->op == SX_VAR) return *out = g->var[e->var].value, g->var[e->var].is;
    if (!c_known(g, e->a, &a) || !c_known(g, e->b, &b)) return false;
    struct sx x = {.op = SX_CONST, .value = a}, y = {.op = SX_CONST, .value = b};
    struct sx both = {.op = e->op, .a = &x, .b = &y};
    *out = sx_eval(&both, NULL);
    return true;
}

const char *c_sx(struct cgen *g, const struct sx *e) {
    static const char *const format[] = {
        [SX_ADD] = "(%s + %s)",          [SX_SUB] = "(%s - %s)",
        [SX_MUL] = "(%s * %s)",          [SX_DIV] = "isamap_div(%s, %s)",
        [SX_MOD] = "isamap_mod(%s, %s)", [SX_MIN] = "isamap_min(%s, %s)",
        [SX_MAX] = "isamap_max(%s, %s)", [SX_LT] = "(%s < %s)",
        [SX_LE] = "(%s <= %s)",          [SX_EQ] = "(%s == %s)",
        [SX_NE] = "(%s != %s)",          [SX_AND] = "(%s & %s)",
        [SX_OR] = "(%s | %s)",
    };
    int64_t known;
    if (c_known(g, e, &known)) return c_integer(g, known);
    if (e->op == SX_VAR) return arena_printf(&g->arena, "v%d", e->var);
    char text[64];
    snprintf(text, sizeof text, "%s", format[e->op]);
    const char *a = c_sx(g, e->a), *b = c_sx(g, e->b);
    char *middle = strstr(text, "%s"), *second = strstr(middle + 2, "%s");
    *middle = *second = 0;
    return arena_printf(&g->arena, "%s%s%s%s%s", text, a, middle + 2, b, second + 2);
}

/* ---- declarations ---- */
static bool private_here(struct cgen *g, int memory) {
    return g->unit < 0 || memory_in_unit(g->machine, memory, g->unit);
}

int64_t c_register_bytes(struct cgen *g, int memory) {
    int64_t most = 0;
    for (int p = 0; p < g->schedule->nplaces; p++) {
        const struct place *place = &g->schedule->place[p];
        int64_t end = place->address + place->bytes * place->slots;
        if (place->memory == memory && end > most) most = end;
    }
    return most;
}

static void declare_registers(struct cgen *g) {
    for (int m = 0; m < g->machine->nmemories; m++) {
        if (!g->registers[m] || !private_here(g, m)) continue;
        int64_t bytes = c_register_bytes(g, m);
        if (bytes > 1 << 20)
            c_error(g, "registers of '%s' of %" PRId64 " bytes are too many",
                    g->machine->memory[m].id, bytes);
        c_line(g, "ISAMAP_ALIGNED unsigned char m_%d[%" PRId64 "]; /* %s */", m, bytes + 64,
               g->machine->memory[m].id);
        c_line(g, "(void)m_%d;", m);
    }
}

const char *c_array(struct cgen *g, int buffer) {
    const struct interface *i = g->interface;
    long long offset = (long long)i->offset[buffer];
    if (offset >= 0 && i->weights == WEIGHTS_EMBED)
        return arena_printf(&g->arena, "(%s_weights + %lld)", i->name, offset);
    if (offset >= 0)
        return arena_printf(&g->arena, "((const unsigned char *)args->weights + %lld)",
                            offset + WEIGHTS_HEAD);
    for (int k = 0; k < i->n; k++)
        if (i->buffer[k] == buffer) return arena_printf(&g->arena, "args->%s", i->field[k]);
    c_error(g, "place of buffer '%s' is an argument, but the buffer is none",
            g->schedule->program->buffer[buffer].name);
    return "0";
}

static void declare_place(struct cgen *g, int p) {
    const struct place *place = &g->schedule->place[p];
    long long offset = (long long)g->room.offset[p];
    switch (place->keep) {
    case KEEP_ARGUMENT:
        c_line(g, "unsigned char *const p_%d = (unsigned char *)%s;", p, c_array(g, place->buffer));
        break;
    case KEEP_PREPARED:
        c_line(g, "unsigned char *const p_%d = (unsigned char *)args->prepared + %lld;", p, offset);
        break;
    case KEEP_WORKSPACE:
        c_line(g, "unsigned char *const p_%d = work + %lld;", p, offset);
        break;
    case KEEP_LOCAL:
        if (g->registers[place->memory])
            c_line(g, "unsigned char *const p_%d = m_%d + %lld; /* %s */", p, place->memory,
                   (long long)place->address, place->name);
        else
            c_line(g, "unsigned char *const p_%d = mine + %lld; /* %s */", p, offset, place->name);
        break;
    }
    c_line(g, "(void)p_%d;", p);
}

/* Counters of the places that rotate among these nodes. */
static void c_slots(struct cgen *g, const struct node *node, int n) {
    for (int p = 0; p < g->schedule->nplaces; p++)
        if (g->rotates[p] && section_rotates(node, n, p))
            c_line(g, "int64_t s_%d = %d;", p, g->schedule->place[p].slots - 1);
}

/* ---- nodes ---- */
static void walk_unrolled(struct cgen *g, const struct loop_node *l) {
    int64_t lo, hi;
    if (!c_known(g, l->lo, &lo) || !c_known(g, l->hi, &hi)) {
        c_error(g, "the bounds of unrolled loop '%s' are not constant",
                g->schedule->var[l->var].name);
        return;
    }
    for (int64_t i = lo; i < hi && !g->failed; i += l->step) {
        g->var[l->var] = (struct known){true, i};
        c_walk(g, l->body, l->nbody);
        if (++g->issues > MAX_ISSUES)
            c_error(g, "unrolled loops make more than %d statements", MAX_ISSUES);
    }
    g->var[l->var].is = false;
}

/* A few calls without signals, of which no text says that it stands where it is: what one turn
 * reads may then be under way while another computes. */
static bool movable(const struct cgen *g, const struct node *node, int n) {
    enum { FEW = 4 };
    for (int i = 0; i < n; i++) {
        if (node[i].kind != NODE_ISSUE || node[i].issue->signals.npops ||
            node[i].issue->signals.npushes)
            return false;
        const struct emit *e =
            instr_emit(&g->machine->instr[node[i].issue->instr], g->dialect->language);
        if (!e || !e->text || strstr(e->text, "volatile") || strstr(e->text, "__sync"))
            return false;
    }
    return n <= FEW;
}

void c_for(struct cgen *g, const struct loop_node *l, const char *lo, const char *hi) {
    const char *rolled =
        g->dialect->plain && movable(g, l->body, l->nbody) ? g->dialect->plain : g->dialect->rolled;
    if (rolled) c_line(g, "%s", rolled);
    c_line(g, "for (int64_t v%d = %s; v%d < %s; v%d += %s) { /* %s */", l->var, lo, l->var, hi,
           l->var, c_integer(g, l->step), g->schedule->var[l->var].name);
    g->indent++;
    c_walk(g, l->body, l->nbody);
    if (g->dialect->turned) g->dialect->turned(g, l);
    g->indent--;
    c_line(g, "}");
}

/* One inside another runs in its thread. */
static void walk_parallel(struct cgen *g, const struct loop_node *l) {
    if (g->unit >= 0) {
        c_for(g, l, c_sx(g, l->lo), c_sx(g, l->hi));
        return;
    }
    const char *step = c_integer(g, l->step);
    g->unit = l->unit >= 0 ? l->unit : 0;
    c_line(g, "{");
    g->indent++;
    c_line(g, "const int64_t from = %s, to = %s;", c_sx(g, l->lo), c_sx(g, l->hi));
    c_line(g, "#pragma omp parallel num_threads(isamap_threads(args->threads, %d))",
           g->room.local ? g->room.instances : 0);
    c_line(g, "{");
    g->indent++;
    c_line(g, "const int64_t id = isamap_thread(), team = isamap_team();");
    c_line(g, "const int64_t trips = (to - from + %s - 1) / %s;", step, step);
    c_line(g, "unsigned char *const mine = shared + id * %s;", c_integer(g, g->room.local));
    c_line(g, "(void)mine;");
    declare_registers(g);
    for (int p = 0; p < g->schedule->nplaces; p++)
        if (g->schedule->place[p].keep == KEEP_LOCAL &&
            private_here(g, g->schedule->place[p].memory))
            declare_place(g, p);
    c_slots(g, l->body, l->nbody);
    c_for(g, l, arena_printf(&g->arena, "from + trips * id / team * %s", step),
          arena_printf(&g->arena, "isamap_min(to, from + trips * (id + 1) / team * %s)", step));
    g->indent--;
    c_line(g, "}");
    g->indent--;
    c_line(g, "}");
    g->unit = -1;
}

const struct c_dialect c_plain = {
    .language = LANGUAGE_C, .function = "static inline void", .parallel = walk_parallel};

static void walk_loop(struct cgen *g, const struct loop_node *l) {
    if (l->kind == LOOP_UNROLLED)
        walk_unrolled(g, l);
    else if (l->kind == LOOP_PARALLEL)
        g->dialect->parallel(g, l);
    else
        c_for(g, l,
              g->interface && g->interface->counted && loop_counts(g->schedule, l)
                  ? "((const int64_t *)(args + 1))[0]"
                  : c_sx(g, l->lo),
              c_sx(g, l->hi));
}

static void walk_signals(struct cgen *g, const struct signal *signal, int n, bool pop) {
    for (int i = 0; i < n; i++) {
        const struct sync *s = &g->machine->sync[signal[i].sync];
        if (g->dialect->signal) {
            g->dialect->signal(g, &signal[i], pop);
            continue;
        }
        c_plain_emit(g, pop ? s->pop_emit : s->push_emit, pop ? s->npop_emits : s->npush_emits);
    }
}

static void walk_configure(struct cgen *g, const struct configure_node *n) {
    const struct configure *c = &g->machine->configure[n->configure];
    const struct emit *emit = NULL;
    size_t count = 0, at = 0;
    for (int k = 0; k < c->nemits; k++)
        if (c->emit[k].language == g->dialect->language) emit = &c->emit[k];
    if (!emit) {
        c_error(g, "configure '%s' has no %s emit", c->id, language_name[g->dialect->language]);
        return;
    }
    for (int k = 0; k < n->nsets; k++) count += (size_t)g->machine->state[n->set[k].state].nfields;
    int64_t *value = arena_array(&g->arena, count + 1, sizeof *value);
    for (int k = 0; k < n->nsets; k++)
        for (int f = 0; f < g->machine->state[n->set[k].state].nfields; f++)
            if (!sx_constant(n->set[k].value[f], &value[at++])) {
                c_error(g, "'%s' sets a value that is not known when code is generated", c->id);
                return;
            }
    const char *body = emit_expand_configure(&g->arena, g->machine, n, value, emit, g->diags);
    g->failed = !body;
    if (body) c_line(g, "{ %s }", body);
}

void c_walk(struct cgen *g, const struct node *node, int n) {
    bool inside = g->in_entry;
    for (int i = 0; i < n && !g->failed; i++) {
        const struct signals *s = g->in_entry ? NULL : node_signals(&node[i]);
        if (g->dialect->mine && !g->dialect->mine(g, &node[i])) continue;
        if (s) walk_signals(g, s->pop, s->npops, true);
        switch (node[i].kind) {
        case NODE_LOOP:
            g->in_entry = node[i].loop->kind == LOOP_HARDWARE;
            walk_loop(g, node[i].loop);
            g->in_entry = inside;
            break;
        case NODE_ISSUE:
            c_issue(g, node[i].issue);
            if (++g->issues > MAX_ISSUES)
                c_error(g, "unrolled loops make more than %d statements", MAX_ISSUES);
            break;
        case NODE_FALLBACK:
            c_fallback(g, node[i].fallback);
            break;
        case NODE_ROTATE:
            if (g->rotates[node[i].rotate])
                c_line(g, "s_%d = s_%d + 1 == %d ? 0 : s_%d + 1;", node[i].rotate, node[i].rotate,
                       g->schedule->place[node[i].rotate].slots, node[i].rotate);
            break;
        case NODE_CONFIGURE:
            walk_configure(g, node[i].configure);
            break;
        case NODE_SYNC:
            break;
        }
        if (s) walk_signals(g, s->push, s->npushes, false);
    }
}

void c_sizes(struct cgen *g) {
    for (int k = 0; k < g->schedule->program->nsizes; k++) {
        const struct size *size = &g->schedule->program->size[k];
        c_line(g, "const int64_t v%d = isamap_max(%s, isamap_min(%s, args->%s));", k,
               c_integer(g, size->lo), c_integer(g, size->hi),
               size_name(&g->arena, g->schedule, k));
        c_line(g, "(void)v%d;", k);
    }
}

/* ---- sections ---- */
static void zero_places(struct cgen *g, const struct section *section, int n) {
    for (int p = 0; p < g->schedule->nplaces; p++)
        if (zeroed_before(g->schedule, &g->room, section, p, n))
            c_line(g, "memset(p_%d, 0, %lld);", p, (long long)g->schedule->place[p].bytes);
}

static void declare_all(struct cgen *g, const struct section *section, bool workspace) {
    if (workspace)
        c_line(g, "unsigned char *const work = (unsigned char *)workspace;");
    else if (g->room.scratch >= 0)
        c_line(g, "unsigned char *const work = (unsigned char *)args->prepared + %lld;",
               (long long)g->room.scratch);
    else
        c_line(g, "unsigned char *const work = 0;");
    c_line(g, "unsigned char *const shared = %s;",
           workspace || g->room.scratch >= 0
               ? arena_printf(&g->arena, "work + %lld", (long long)g->room.homes)
               : "work");
    c_line(g, "unsigned char *const mine = shared;");
    c_line(g, "(void)args, (void)mine;");
    c_sizes(g);
    declare_registers(g);
    for (int p = 0; p < g->schedule->nplaces; p++) {
        const struct place *place = &g->schedule->place[p];
        bool in_work = place->keep == KEEP_WORKSPACE ||
                       (place->keep == KEEP_LOCAL && !g->registers[place->memory]);
        if (workspace || g->room.scratch >= 0 || !in_work) declare_place(g, p);
    }
    c_slots(g, section->node, section->nnodes);
}

/* The caller may be a program that knows nothing of features. */
static void ask_permissions(struct cgen *g) {
    uint64_t used = schedule_features(g->schedule);
    unsigned code, argument;
    for (int f = 0; f < g->machine->nfeatures && f < 64; f++)
        if (used >> f & 1 && feature_permit(&g->machine->feature[f], &code, &argument))
            c_line(g, "if (syscall(SYS_arch_prctl, %#xL, %uL)) return 1;", code, argument);
}

static void emit_around(struct cgen *g, const struct emit *emit, int n) {
    for (int k = 0; k < n; k++)
        if (schedule_takes(g->schedule, &emit[k])) c_plain_emit(g, &emit[k], 1);
}

void c_section(struct cgen *g, const struct section *section, const char *name, bool workspace) {
    const char *program = c_identifier(&g->arena, g->schedule->program->name);
    for (int p = 0; p < g->schedule->nplaces; p++)
        g->rotates[p] =
            g->schedule->place[p].slots > 1 && section_rotates(section->node, section->nnodes, p);
    c_line(g, "static int %s(const struct %s_args *args%s) {", name, program,
           workspace ? ", void *workspace" : "");
    g->indent++;
    declare_all(g, section, workspace);
    if (!workspace) ask_permissions(g);
    emit_around(g, g->machine->begin, g->machine->nbegins);
    for (int n = 0; n < section->nnodes && !g->failed; n++) {
        zero_places(g, section, n);
        c_walk(g, &section->node[n], 1);
    }
    emit_around(g, g->machine->end, g->machine->nends);
    c_line(g, "return 0;");
    g->indent--;
    c_line(g, "}");
    text_printf(&g->code, "\n");
}
