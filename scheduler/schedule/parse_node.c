/* Nodes of a schedule's tree, read from its text: issues with their operands and signals, loops,
 * and what else queues execute. */
#include "scheduler/schedule/lex.h"

#include <string.h>

/* ---- signals ---- */

/* A number, or a place, whose slots have a channel each, and how many slots further. */
static bool read_channel(struct reader *r, struct signal *out) {
    int64_t count = sync_channels(&r->machine->sync[out->sync]), channel = 0;
    if (r->word.kind == WORD_NAME) {
        size_t at = r->word.at;
        const char *name = read_name(r, "a place");
        int place = name ? find_place(r->schedule, name) : -1;
        if (place < 0) return read_fail(r, at, "there is no place '%s'", name ? name : "");
        out->rotating = place + 1;
        if (!read_accept(r, "+")) return true;
    }
    if (!read_integer(r, "a channel", 0, count - 1, &channel)) return false;
    out->channel = (int)channel;
    return true;
}

static bool read_signal(struct reader *r, struct signal *out) {
    size_t at = r->word.at;
    *out = (struct signal){0};
    const char *name = read_name(r, "a sync of the machine");
    if (!name) return false;
    out->sync = machine_sync(r->machine, name);
    if (out->sync < 0) return read_fail(r, at, "the machine has no sync '%s'", name);
    int64_t pending = 0;
    if (read_accept(r, "[") && (!read_channel(r, out) || !read_expect(r, "]"))) return false;
    if (read_accept(r, "pending") && !read_integer(r, "groups", 0, 1 << 20, &pending)) return false;
    out->pending = (int)pending;
    return !r->failed;
}

static bool read_signals(struct reader *r, struct signals *g) {
    int pop_cap = 0, push_cap = 0;
    while (!r->failed) {
        bool pop = read_at(r, "pop");
        if (!pop && !read_at(r, "push")) return true;
        read_advance(r);
        struct signal one;
        if (!read_signal(r, &one)) return false;
        if (pop) {
            GROW(r->arena, g->pop, g->npops, pop_cap);
            g->pop[g->npops++] = one;
        } else {
            GROW(r->arena, g->push, g->npushes, push_cap);
            g->push[g->npushes++] = one;
        }
    }
    return false;
}

/* ---- issues ---- */
static const struct sx **read_named(struct reader *r, int n, bool *first,
                                    const char *(*name_at)(const struct instr *, int),
                                    const struct instr *in) {
    const struct sx **list = arena_array(r->arena, (size_t)n + 1, sizeof *list);
    for (int k = 0; k < n; k++) {
        if (!*first && !read_expect(r, ",")) return NULL;
        *first = false;
        if (r->word.kind != WORD_NAME || strcmp(r->word.text, name_at(in, k)) != 0) {
            read_fail(r, r->word.at, "unexpected '%s', instruction '%s' needs '%s' here",
                      r->word.text, in->id, name_at(in, k));
            return NULL;
        }
        read_advance(r);
        if (!read_expect(r, "=") || !(list[k] = read_sx(r))) return NULL;
    }
    return list;
}

static const char *size_name(const struct instr *in, int k) {
    return in->semantics->param[in->ranged[k]].name;
}

static const char *stride_name(const struct instr *in, int k) {
    return in->stride_name[k];
}

static const char *flag_name(const struct instr *in, int k) {
    return in->operand[instr_flag_operand(in, k)].accumulate;
}

static const char *operand_name(const struct instr *in, int k) {
    return in->operand[k].buffer;
}

static bool read_arg_place(struct reader *r, const struct operand *o, struct arg *a) {
    size_t at = r->word.at;
    const char *name = read_name(r, "a place or imm");
    if (!name) return false;
    a->place = find_place(r->schedule, name);
    if (a->place < 0) return read_fail(r, at, "there is no place '%s'", name);
    a->offset = read_accept(r, "+") ? read_sx(r) : sx_const(r->arena, 0);
    if (!a->offset || r->failed) return false;
    int64_t layout = 0;
    if (read_accept(r, "layout") &&
        !read_integer(r, "a layout's number", 0, o->nlayouts - 1, &layout))
        return false;
    a->layout = (int)layout;
    return !r->failed;
}

static bool read_arg(struct reader *r, const struct operand *o, struct arg *a) {
    if (!read_accept(r, "imm")) return !r->failed && read_arg_place(r, o, a);
    a->place = -1;
    a->offset = sx_const(r->arena, 0);
    if (type_is_float(o->type)) return read_double(r, "a value", &a->imm.f);
    return read_integer(r, "a value", INT64_MIN, INT64_MAX, &a->imm.i);
}

static struct arg *read_args(struct reader *r, const struct instr *in, bool *first) {
    struct arg *arg = arena_array(r->arena, (size_t)in->noperands + 1, sizeof *arg);
    for (int o = 0; o < in->noperands; o++) {
        if (!*first && !read_expect(r, ",")) return NULL;
        *first = false;
        const char *name = operand_name(in, o);
        if (r->word.kind != WORD_NAME || strcmp(r->word.text, name) != 0) {
            read_fail(r, r->word.at, "unexpected '%s', instruction '%s' needs operand '%s' here",
                      r->word.text, in->id, name);
            return NULL;
        }
        read_advance(r);
        if (!read_expect(r, "=") || !read_arg(r, &in->operand[o], &arg[o])) return NULL;
    }
    return arg;
}

static bool read_stmt(struct reader *r, int *out) {
    int64_t stmt;
    if (!read_integer(r, "a statement's number", 0, r->schedule->program->nstmts - 1, &stmt))
        return false;
    *out = (int)stmt;
    return true;
}

static bool read_axis_map(struct reader *r, const struct instr *in, int *axis) {
    if (!read_expect(r, "axes") || !read_expect(r, "(")) return false;
    for (int x = 0; x < kernel_axis_count(in->semantics); x++) {
        const char *name = kernel_axis_at(in->semantics, x)->name;
        if (x > 0 && !read_expect(r, ",")) return false;
        if (r->word.kind != WORD_NAME || strcmp(r->word.text, name) != 0)
            return read_fail(r, r->word.at, "unexpected '%s', expected axis '%s' of '%s'",
                             r->word.text, name, in->id);
        read_advance(r);
        if (!read_expect(r, ":")) return false;
        if (read_accept(r, "-")) continue;
        if ((axis[x] = read_axis(r)) < 0) return false;
    }
    return read_expect(r, ")");
}

static bool read_bases(struct reader *r, const struct sx **base) {
    if (!read_expect(r, "at") || !read_expect(r, "(")) return false;
    for (bool first = true; !r->failed && !read_at(r, ")"); first = false) {
        if (!first && !read_expect(r, ",")) return false;
        size_t at = r->word.at;
        int a = read_axis(r);
        if (a < 0 || !read_expect(r, "=")) return false;
        if (base[a])
            return read_fail(r, at, "axis '%s' has two values", r->schedule->program->axis[a].name);
        if (!(base[a] = read_sx(r))) return false;
    }
    return read_expect(r, ")");
}

/* "after 0, 1": executed by the same issue, in the order of the instruction. */
static bool read_also(struct reader *r, struct issue_node *n) {
    if (!read_accept(r, "after")) return true;
    n->also = arena_array(r->arena, MAX_JOINED, sizeof *n->also);
    do {
        if (n->nalso == MAX_JOINED - 1)
            return read_fail(r, r->word.at, "more than %d statements in one issue", MAX_JOINED);
        if (!read_stmt(r, &n->also[n->nalso++])) return false;
    } while (read_accept(r, ","));
    return true;
}

static bool read_work(struct reader *r, const struct instr *in, struct issue_node *n) {
    n->stmt = n->init = -1;
    int naxes = kernel_axis_count(in->semantics);
    n->axis = arena_array(r->arena, (size_t)naxes + 1, sizeof *n->axis);
    for (int x = 0; x < naxes; x++) n->axis[x] = -1;
    n->base = arena_array(r->arena, (size_t)r->schedule->program->naxes + 1, sizeof *n->base);
    if (!read_accept(r, "do")) return !r->failed;
    if (!read_stmt(r, &n->stmt) || !read_also(r, n)) return false;
    if (read_accept(r, "init") && !read_stmt(r, &n->init)) return false;
    return read_axis_map(r, in, n->axis) && read_bases(r, n->base);
}

static bool read_issue(struct reader *r, struct node *node) {
    size_t at = r->word.at;
    const char *name = read_name(r, "an instruction of the machine");
    if (!name) return false;
    int i = machine_instr(r->machine, name);
    if (i < 0) return read_fail(r, at, "the machine has no instruction '%s'", name);
    const struct instr *in = &r->machine->instr[i];
    struct issue_node *n = arena_alloc(r->arena, sizeof *n);
    bool first = true;
    node->kind = NODE_ISSUE;
    node->issue = n;
    n->instr = i;
    return read_expect(r, "(") && (n->size = read_named(r, in->nranged, &first, size_name, in)) &&
           (n->stride = read_named(r, in->nstride_names, &first, stride_name, in)) &&
           (n->flag = read_named(r, instr_flag_count(in), &first, flag_name, in)) &&
           (n->arg = read_args(r, in, &first)) && read_expect(r, ")") && read_work(r, in, n) &&
           read_signals(r, &n->signals);
}

/* ---- other nodes ---- */
static int find_unit(const struct machine *m, const char *id) {
    for (int u = 0; u < m->nunits; u++)
        if (strcmp(m->unit[u].id, id) == 0) return u;
    return -1;
}

static int find_fallback(const struct machine *m, int unit, const char *language) {
    for (int f = 0; f < m->nfallbacks; f++)
        if (m->fallback[f].unit == unit &&
            strcmp(language_name[m->fallback[f].language], language) == 0)
            return f;
    return -1;
}

static bool read_box(struct reader *r, struct fallback_node *n) {
    size_t naxes = (size_t)r->schedule->program->naxes + 1;
    n->lo = arena_array(r->arena, naxes, sizeof *n->lo);
    n->hi = arena_array(r->arena, naxes, sizeof *n->hi);
    for (bool first = true; !r->failed && !read_at(r, ")"); first = false) {
        if (!first && !read_expect(r, ",")) return false;
        size_t at = r->word.at;
        int a = read_axis(r);
        if (a < 0 || !read_expect(r, "=")) return false;
        if (n->lo[a])
            return read_fail(r, at, "axis '%s' has two ranges", r->schedule->program->axis[a].name);
        if (!(n->lo[a] = read_sx(r)) || !read_expect(r, "to") || !(n->hi[a] = read_sx(r)))
            return false;
    }
    return read_expect(r, ")");
}

static bool read_fallback(struct reader *r, struct node *node) {
    struct fallback_node *n = arena_alloc(r->arena, sizeof *n);
    node->kind = NODE_FALLBACK;
    node->fallback = n;
    size_t at = r->word.at;
    const char *unit = read_name(r, "a unit with a fallback");
    const char *language = unit ? read_name(r, "the fallback's language") : NULL;
    if (!language) return false;
    int u = find_unit(r->machine, unit);
    n->fallback = u < 0 ? -1 : find_fallback(r->machine, u, language);
    if (n->fallback < 0)
        return read_fail(r, at, "the machine has no unit '%s' with a fallback in '%s'", unit,
                         language);
    if (!read_expect(r, "do") || !read_stmt(r, &n->stmt)) return false;
    if (read_accept(r, "over") && (!read_expect(r, "(") || !read_box(r, n))) return false;
    return read_signals(r, &n->signals);
}

static bool read_sync(struct reader *r, struct node *node) {
    size_t at = r->word.at;
    const char *name = read_name(r, "a queue of the machine");
    if (!name) return false;
    node->kind = NODE_SYNC;
    node->sync.queue = machine_queue(r->machine, name);
    if (node->sync.queue < 0) return read_fail(r, at, "the machine has no queue '%s'", name);
    return read_signals(r, &node->sync.signals);
}

static bool read_rotate(struct reader *r, struct node *node) {
    size_t at = r->word.at;
    const char *name = read_name(r, "a place");
    if (!name) return false;
    node->kind = NODE_ROTATE;
    node->rotate = find_place(r->schedule, name);
    return node->rotate >= 0 || read_fail(r, at, "there is no place '%s'", name);
}

static int find_state(const struct machine *m, const struct configure *c, const char *id) {
    for (int k = 0; k < c->nsets; k++)
        if (strcmp(m->state[c->sets[k]].id, id) == 0) return c->sets[k];
    return -1;
}

static bool read_setting(struct reader *r, const struct configure *c, struct state_value *set) {
    size_t at = r->word.at;
    const char *name = read_name(r, "a state");
    if (!name) return false;
    set->state = find_state(r->machine, c, name);
    if (set->state < 0) return read_fail(r, at, "'%s' does not set a state '%s'", c->id, name);
    const struct state *state = &r->machine->state[set->state];
    int64_t index = 0;
    if (read_accept(r, "[") &&
        (!read_integer(r, "a number", 0, 1 << 20, &index) || !read_expect(r, "]")))
        return false;
    set->index = (int)index;
    set->value = arena_array(r->arena, (size_t)state->nfields + 1, sizeof *set->value);
    if (!read_expect(r, "=") || !read_expect(r, "(")) return false;
    for (int k = 0; k < state->nfields; k++)
        if ((k > 0 && !read_expect(r, ",")) || !(set->value[k] = read_sx(r))) return false;
    return read_expect(r, ")");
}

static int find_configure(const struct machine *m, const char *id) {
    for (int k = 0; k < m->nconfigures; k++)
        if (strcmp(m->configure[k].id, id) == 0) return k;
    return -1;
}

static bool read_configure(struct reader *r, struct node *node) {
    struct configure_node *n = arena_alloc(r->arena, sizeof *n);
    int cap = 0;
    size_t at = r->word.at;
    const char *name = read_name(r, "a configure of the machine");
    if (!name) return false;
    node->kind = NODE_CONFIGURE;
    node->configure = n;
    n->configure = find_configure(r->machine, name);
    if (n->configure < 0) return read_fail(r, at, "the machine has no configure '%s'", name);
    if (!read_expect(r, "(")) return false;
    while (!r->failed && !read_at(r, ")")) {
        struct state_value set = {0};
        if (n->nsets > 0 && !read_expect(r, ",")) return false;
        if (!read_setting(r, &r->machine->configure[n->configure], &set)) return false;
        GROW(r->arena, n->set, n->nsets, cap);
        n->set[n->nsets++] = set;
    }
    return read_expect(r, ")") && read_signals(r, &n->signals);
}

static bool read_loop_table(struct reader *r, struct loop_node *l) {
    size_t at = r->word.at;
    const char *name = read_name(r, "a place");
    if (!name) return false;
    l->table = 1 + find_place(r->schedule, name);
    return l->table || read_fail(r, at, "there is no place '%s'", name);
}

static bool read_loop_kind(struct reader *r, struct loop_node *l) {
    l->unit = l->axis = -1;
    if (read_accept(r, "unrolled"))
        l->kind = LOOP_UNROLLED;
    else if (read_accept(r, "hardware")) {
        l->kind = LOOP_HARDWARE;
        if (read_accept(r, "table") && !read_loop_table(r, l)) return false;
    } else if (read_accept(r, "parallel")) {
        l->kind = LOOP_PARALLEL;
        size_t at = r->word.at;
        const char *unit = read_name(r, "a unit of the machine");
        if (!unit) return false;
        l->unit = find_unit(r->machine, unit);
        if (l->unit < 0) return read_fail(r, at, "the machine has no unit '%s'", unit);
    }
    return !read_accept(r, "axis") || (l->axis = read_axis(r)) >= 0;
}

static bool read_loop(struct reader *r, struct node *node) {
    struct loop_node *l = arena_alloc(r->arena, sizeof *l);
    node->kind = NODE_LOOP;
    node->loop = l;
    l->step = 1;
    size_t at = r->word.at;
    const char *name = read_name(r, "a loop's variable");
    if (!name || !read_expect(r, "=")) return false;
    if (!(l->lo = read_sx(r)) || !read_expect(r, "to") || !(l->hi = read_sx(r))) return false;
    if (read_accept(r, "step") && !read_integer(r, "a step", 1, INT64_MAX, &l->step)) return false;
    if (!read_loop_kind(r, l) || (l->var = bind_var(r, at, name)) < 0) return false;
    r->loops++;
    r->bound[l->var] = true;
    bool good = r->loops <= SCHEDULE_DEPTH
                    ? read_block(r, &l->body, &l->nbody)
                    : read_fail(r, at, "loops nest deeper than %d", SCHEDULE_DEPTH);
    r->bound[l->var] = false;
    r->loops--;
    return good;
}

static bool read_node(struct reader *r, struct node *node) {
    *node = (struct node){0};
    if (read_accept(r, "loop")) return read_loop(r, node);
    if (read_accept(r, "issue")) return read_issue(r, node);
    if (read_accept(r, "fallback")) return read_fallback(r, node);
    if (read_accept(r, "rotate")) return read_rotate(r, node);
    if (read_accept(r, "sync")) return read_sync(r, node);
    if (read_accept(r, "configure")) return read_configure(r, node);
    if (r->word.kind == WORD_END)
        return read_fail(r, r->word.at, "the schedule ends where a node or '}' is expected");
    return read_fail(
        r, r->word.at,
        "unexpected '%s', expected loop, issue, fallback, configure, rotate, sync or '}'",
        r->word.text);
}

bool read_block(struct reader *r, struct node **out, int *n) {
    int cap = 0;
    if (!read_expect(r, "{")) return false;
    while (!r->failed && !read_at(r, "}")) {
        struct node node;
        if (!read_node(r, &node)) return false;
        GROW(r->arena, *out, *n, cap);
        (*out)[(*n)++] = node;
    }
    return read_expect(r, "}");
}
