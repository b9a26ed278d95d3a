/* What an issue is given besides its operands: the object in shared memory of the token at which it
 * completes, and states that the host makes of addresses before a launch (machine format, "State"):
 * these are parameters of the kernel. */
#include "backends/cuda/cuda_int.h"

#include <string.h>

/* ---- at which token an issue completes ---- */

/* Nodes behind an issue in its body; around it, those behind the body's loop. */
struct behind {
    const struct node *node, *rest; /* the body; what is behind the issue or the loop */
    int n, nrest;
    const struct behind *out;
};

static const struct signal *push_of(const struct signals *s, int sync) {
    for (int k = 0; s && k < s->npushes; k++)
        if (s->push[k].sync == sync) return &s->push[k];
    return NULL;
}

static bool pushes(const struct node *node, int n, int sync) {
    for (int i = 0; i < n; i++)
        if (push_of(node_signals(&node[i]), sync) ||
            (node[i].kind == NODE_LOOP && pushes(node[i].loop->body, node[i].loop->nbody, sync)))
            return true;
    return false;
}

static bool turns(const struct node *node, int n, int place) {
    for (int i = 0; i < n; i++)
        if ((node[i].kind == NODE_ROTATE && node[i].rotate == place) ||
            (node[i].kind == NODE_LOOP && turns(node[i].loop->body, node[i].loop->nbody, place)))
            return true;
    return false;
}

/* The way from an issue to the next push of its sync, in program order. */
struct way {
    const struct machine *m;
    int sync, queue, place;     /* place: of which turns are counted; -1 */
    const struct signal *until; /* a pop on the way; NULL: the push */
    const struct signal *push, *pop[MAX_LANDING_POPS];
    int turned, npops; /* pop: for what the queue waits on the way */
    bool reached, given,
        lost; /* tokens come to the queue on the way; it cannot be told where it leads */
};

static int queue_of(const struct machine *m, const struct node *node) {
    return node->kind == NODE_ISSUE  ? m->instr[node->issue->instr].queue
           : node->kind == NODE_SYNC ? node->sync.queue
                                     : -1;
}

static void follow_signals(struct way *x, const struct node *node) {
    const struct signals *s = node_signals(node);
    for (int k = 0; s && k < s->npops && queue_of(x->m, node) == x->queue; k++) {
        x->reached = x->reached || &s->pop[k] == x->until;
        if (x->npops == MAX_LANDING_POPS) x->lost = true;
        if (x->npops < MAX_LANDING_POPS) x->pop[x->npops++] = &s->pop[k];
    }
    if (x->reached) return;
    x->push = push_of(s, x->sync);
    x->reached = x->push != NULL;
    for (int k = 0; s && k < s->npushes && !x->reached; k++)
        x->given = x->given || (x->m->sync[s->push[k].sync].to >> x->queue & 1);
}

/* Of loops that push the first turn counts, if it is sure that there is one. */
static void follow(struct way *x, const struct node *node, int n) {
    for (int i = 0; i < n && !x->reached && !x->lost; i++) {
        const struct loop_node *l = node[i].kind == NODE_LOOP ? node[i].loop : NULL;
        int64_t lo, hi;
        follow_signals(x, &node[i]);
        if (node[i].kind == NODE_ROTATE && node[i].rotate == x->place) x->turned++;
        if (!l || x->reached) continue;
        if (pushes(l->body, l->nbody, x->sync)) {
            x->lost = !sx_constant(l->lo, &lo) || !sx_constant(l->hi, &hi) || hi <= lo;
            follow(x, l->body, l->nbody);
        } else if (x->place >= 0 && turns(l->body, l->nbody, x->place)) {
            x->lost = true;
        }
    }
}

static struct way follow_out(struct cuda *c, const struct instr *in, const struct behind *b,
                             const struct signal *until, int rotating) {
    struct way x = {.m = c->g.machine,
                    .sync = in->completes,
                    .queue = in->queue,
                    .place = rotating - 1,
                    .until = until};
    for (; b && !x.reached && !x.lost; b = b->out) {
        follow(&x, b->rest, b->nrest);
        if (!x.reached && b->out && pushes(b->node, b->n, x.sync))
            x.lost = true; /* that of the next turn */
    }
    return x;
}

/* The push at whose object the issue completes; none where that cannot be told. The object may
 * still be in use until the queue has waited for what it waits for on the way, so that is waited
 * for before; it must have been on its way by then. */
static struct landing landing_behind(struct cuda *c, const struct issue_node *issue,
                                     const struct behind *b) {
    const struct instr *in = &c->g.machine->instr[issue->instr];
    struct landing out = {.issue = issue};
    struct way x = follow_out(c, in, b, NULL, 0);
    if (x.lost || !x.push || (x.npops && x.given)) return out;
    struct way at = follow_out(c, in, b, NULL, x.push->rotating);
    for (int k = 0; k < x.npops && !at.lost; k++) {
        struct way to = follow_out(c, in, b, x.pop[k], x.pop[k]->rotating);
        out.pop[out.npops] = x.pop[k];
        out.pop_turned[out.npops++] = to.turned;
        at.lost = to.lost;
    }
    if (!at.lost) out.push = x.push;
    out.turned = at.turned;
    return out;
}

static void land(struct cuda *c, const struct node *node, int n, const struct behind *out) {
    for (int i = 0; i < n; i++) {
        struct behind here = {node, &node[i + 1], n, n - i - 1, out};
        if (node[i].kind == NODE_LOOP) land(c, node[i].loop->body, node[i].loop->nbody, &here);
        if (node[i].kind != NODE_ISSUE) continue;
        int sync = c->g.machine->instr[node[i].issue->instr].completes;
        if (sync < 0 || c->g.machine->sync[sync].memory < 0) continue;
        const struct signal *own = push_of(&node[i].issue->signals, sync);
        GROW(&c->g.arena, c->landing, c->nlandings, c->cap_landings);
        c->landing[c->nlandings++] = own ? (struct landing){.issue = node[i].issue, .push = own}
                                         : landing_behind(c, node[i].issue, &here);
    }
}

void cuda_find_landings(struct cuda *c, const struct node *node, int n) {
    c->nlandings = 0;
    land(c, node, n, NULL);
}

static struct landing landing_of(const struct cuda *c, const struct issue_node *n) {
    for (int k = 0; k < c->nlandings; k++)
        if (c->landing[k].issue == n) return c->landing[k];
    return (struct landing){0};
}

/* ---- states ---- */
static const char *c_state(struct cuda *c, int state) {
    return c_identifier(&c->g.arena, c->g.machine->state[state].id);
}

const char *cuda_object_type(struct cuda *c, int object) {
    return arena_printf(&c->g.arena, "struct state_%s", c_state(c, c->made[object].state));
}

static int configure_of(const struct cuda *c, int state) {
    const struct machine *m = c->g.machine;
    for (int k = 0; k < m->nconfigures; k++)
        if (m->configure[k].at_launch && m->configure[k].nsets == 1 &&
            m->configure[k].sets[0] == state)
            return k;
    return -1;
}

static const struct emit *host_emit(const struct configure *c) {
    for (int k = 0; k < c->nemits; k++)
        if (c->emit[k].language == LANGUAGE_C) return &c->emit[k];
    return NULL;
}

/* Before the issue's own body is written: the value as the host has it, which knows sizes and the
 * variables of its own loops. */
static bool hosts_know(const struct cuda *c, const struct sx *x) {
    for (int v = 0; v < c->g.schedule->nvars; v++) {
        int k = 0;
        while (k < c->nscope && c->scope[k] != v) k++;
        if (k == c->nscope && !c->g.var[v].is && sx_uses(x, v)) return false;
    }
    return true;
}

static bool known_to_host(const struct cuda *c, const struct issue_node *n) {
    const struct instr *in = &c->g.machine->instr[n->instr];
    for (int i = 0; i < in->nranged; i++)
        if (!hosts_know(c, n->size[i])) return false;
    for (int i = 0; i < in->nstride_names; i++)
        if (!hosts_know(c, n->stride[i])) return false;
    return true;
}

/* ---- sizes that change inside a kernel: the last tile's ---- */
enum { MOST_VALUES = 4, MOST_TURNS = 1 << 20 };

static const struct loop_node *loop_of(const struct node *node, int n, int var) {
    for (int i = 0; i < n; i++) {
        const struct loop_node *l = node[i].kind == NODE_LOOP ? node[i].loop : NULL;
        if (l && l->var == var) return l;
        if (l && (l = loop_of(l->body, l->nbody, var))) return l;
    }
    return NULL;
}

/* All values that the size takes, if they are few, and only one loop changes it; 0: they are not
 * known. */
static int values_of(const struct cuda *c, const struct sx *size, int64_t *value, struct arena *a) {
    const struct schedule *s = c->g.schedule;
    int64_t lo, hi, *at;
    int var = -1, count = 0;
    for (int v = 0; v < s->nvars; v++) {
        if (!sx_uses(size, v)) continue;
        if (var >= 0) return 0;
        var = v;
    }
    const struct loop_node *l = var < 0 ? NULL : loop_of(s->run.node, s->run.nnodes, var);
    if (!l || !sx_constant(l->lo, &lo) || !sx_constant(l->hi, &hi) || hi - lo > MOST_TURNS)
        return 0;
    at = arena_array(a, (size_t)s->nvars + 1, sizeof *at);
    for (at[var] = lo; at[var] < hi; at[var] += l->step) {
        int64_t x = sx_eval(size, at);
        int k = 0;
        while (k < count && value[k] != x) k++;
        if (k == MOST_VALUES) return 0;
        if (k == count) value[count++] = x;
    }
    return count;
}

/* base(A): where the operand's array begins. */
static const char *field_text(struct cuda *c, const struct issue_node *n, const struct mexpr *e) {
    const struct instr *in = &c->g.machine->instr[n->instr];
    if (e->kind != MEXPR_CALL || strcmp(e->name, "base")) return c_value(&c->g, n, e);
    for (int o = 0; o < in->noperands && e->nargs == 1; o++) {
        int place = n->arg[o].place;
        if (e->arg[0]->kind != MEXPR_NAME || strcmp(e->arg[0]->name, in->operand[o].buffer) ||
            place < 0 || c->g.schedule->place[place].keep == KEEP_LOCAL)
            continue;
        return arena_printf(&c->g.arena, "(int64_t)d.base + %lld", (long long)c->home[place]);
    }
    return NULL;
}

static int made(struct cuda *c, int state, const char *values) {
    for (int k = 0; k < c->nmade; k++)
        if (c->made[k].state == state && !strcmp(c->made[k].values, values)) return k;
    GROW(&c->g.arena, c->made, c->nmade, c->cap_made);
    c->made[c->nmade] = (struct made){state, values};
    return c->nmade++;
}

/* The object with the values that the issue needs; -1 after reporting. */
static int object_of(struct cuda *c, const struct issue_node *n, const struct need *need) {
    const struct instr *in = &c->g.machine->instr[n->instr];
    const struct state *s = &c->g.machine->state[need->state];
    int configure = configure_of(c, need->state);
    if (s->size < 1 || configure < 0 || !host_emit(&c->g.machine->configure[configure])) {
        c_error(&c->g,
                "state '%s' of '%s' is made of addresses, expected its size and a configure "
                "at=\"launch\" with an emit as \"c\"",
                s->id, in->id);
        return -1;
    }
    const char *values = "";
    for (int f = 0; f < need->nvalues; f++) {
        const char *value = known_to_host(c, n) ? field_text(c, n, need->value[f]) : NULL;
        if (!value) {
            c_error(
                &c->g,
                "field '%s' of state '%s', which '%s' needs, is not known to the host, expected "
                "base, dim, sizes and strides that stand outside of kernels",
                s->field[f], s->id, in->id);
            return -1;
        }
        values = arena_printf(&c->g.arena, "%s, %s", values, value);
    }
    return made(c, need->state, values);
}

static bool is_other(void *user, const struct mexpr *leaf) {
    return leaf->kind != MEXPR_NAME || strcmp(leaf->name, user) != 0;
}

/* The first size that the host does not know and a field speaks of; -1: none. */
static int open_size(const struct cuda *c, const struct issue_node *n, const struct need *need) {
    const struct instr *in = &c->g.machine->instr[n->instr];
    for (int i = 0; i < in->nranged; i++)
        for (int f = 0; f < need->nvalues && !hosts_know(c, n->size[i]); f++)
            if (!mexpr_names(need->value[f], is_other,
                             (void *)(uintptr_t)in->semantics->param[in->ranged[i]].name))
                return i;
    return -1;
}

/* Its address, or the address of the one for the value that a size has. NULL after reporting. */
static const char *objects_of(struct cuda *c, const struct issue_node *n, const struct need *need) {
    struct cgen *g = &c->g;
    int open = open_size(c, n, need), count = 0, object = -1;
    int64_t value[MOST_VALUES];
    const char *text = "";
    if (open >= 0) count = values_of(c, n->size[open], value, &g->arena);
    struct issue_node one = *n;
    int nranged = g->machine->instr[n->instr].nranged;
    one.size = arena_array(&g->arena, (size_t)nranged + 1, sizeof *one.size);
    for (int i = 0; i < nranged; i++) /* of the others no field speaks */
        one.size[i] = hosts_know(c, n->size[i]) || i == open ? n->size[i] : sx_const(&g->arena, 1);
    for (int k = 0; k < (count ? count : 1); k++) {
        if (count) one.size[open] = sx_const(&g->arena, value[k]);
        object = object_of(c, &one, need);
        if (object < 0) return NULL;
        text = k + 1 < count ? arena_printf(&g->arena, "%s%s == %lld ? &o_%d : ", text,
                                            c_sx(g, n->size[open]), (long long)value[k], object)
                             : arena_printf(&g->arena, "%s&o_%d", text, object);
    }
    return count > 1 ? arena_printf(&g->arena, "(%s)", text) : text;
}

/* ---- what the issue is given ---- */
int cuda_handles(struct cgen *g, const struct issue_node *n, struct c_handle *out) {
    struct cuda *c = g->user;
    const struct instr *in = &g->machine->instr[n->instr];
    int count = 0, sync = in->completes;
    if (sync >= 0 && g->machine->sync[sync].memory >= 0) {
        struct landing at = landing_of(c, n);
        if (!at.push) {
            c_error(g, "at which token of '%s' '%s' completes cannot be said in CUDA C",
                    g->machine->sync[sync].id, in->id);
            return -1;
        }
        out[count++] =
            (struct c_handle){"unsigned char *", "bar", cuda_object(g, at.push, at.turned)};
    }
    for (int k = 0; k < in->nneeds; k++) {
        int state = in->need[k].state;
        if (!state_from_addresses(g->machine, state)) continue;
        if (count == MAX_HANDLES) {
            c_error(g, "'%s' needs more than %d states that are made of addresses", in->id,
                    MAX_HANDLES);
            return -1;
        }
        const char *object = objects_of(c, n, &in->need[k]);
        if (!object) return -1;
        out[count++] =
            (struct c_handle){arena_printf(&g->arena, "const struct state_%s *", c_state(c, state)),
                              c_state(c, state), object};
    }
    return count;
}

/* ---- their texts ---- */
static bool used(const struct cuda *c, int state) {
    for (int k = 0; k < c->nmade; k++)
        if (c->made[k].state == state) return true;
    return false;
}

void cuda_declare_states(struct cuda *c, struct text *t) {
    for (int s = 0; s < c->g.machine->nstates; s++)
        if (used(c, s))
            text_printf(t,
                        "struct state_%s { __attribute__((aligned(%lld))) unsigned char at[%lld]; "
                        "};\n",
                        c_state(c, s), (long long)c->g.machine->state[s].align,
                        (long long)c->g.machine->state[s].size);
}

/* ${STATE.FIELD} in a configure's text is a parameter of its function. */
struct fields {
    struct arena *arena;
    const struct state *state;
};

static const char *field_parameter(void *user, const struct mexpr *whole,
                                   const struct mexpr *missing) {
    const struct fields *x = user;
    (void)missing;
    for (int f = 0; f < x->state->nfields && whole->kind == MEXPR_FIELD; f++)
        if (!strcmp(whole->name, x->state->id) && !strcmp(whole->field, x->state->field[f]))
            return arena_printf(x->arena, "isamap_f%d", f);
    return NULL;
}

/* Its library is looked for when a program first runs, as the driver is. */
static void write_library(struct text *t, const char *id, const char *library) {
    text_printf(t,
                "static void *library_%s(const char *name) {\n"
                "  static void *library;\n"
                "  if (!library) library = dlopen(\"lib%s.so.1\", RTLD_NOW | RTLD_LOCAL);\n"
                "  if (!library) library = dlopen(\"lib%s.so\", RTLD_NOW | RTLD_LOCAL);\n"
                "  return library ? dlsym(library, name) : 0;\n"
                "}\n",
                id, library, library);
}

static void write_configure(struct cuda *c, struct text *t, int state) {
    struct cgen *g = &c->g;
    const struct state *s = &g->machine->state[state];
    const struct configure *x = &g->machine->configure[configure_of(c, state)];
    const struct emit *emit = host_emit(x);
    const char *id = c_identifier(&g->arena, x->id);
    struct fields fields = {&g->arena, s};
    const char *body =
        emit_expand(&g->arena, g->machine, NULL, emit, field_parameter, &fields, g->diags);
    g->failed = g->failed || !body;
    if (!body) return;
    if (emit->library) write_library(t, id, emit->library);
    text_printf(t, "static int configure_%s(struct state_%s *%s", id, c_state(c, state),
                c_state(c, state));
    for (int f = 0; f < s->nfields; f++) text_printf(t, ", int64_t isamap_f%d", f);
    text_printf(t, ") {\n  void *(*const function)(const char *) = %s%s;\n  (void)function;\n",
                emit->library ? "library_" : "", emit->library ? id : "0");
    for (int f = 0; f < s->nfields; f++) text_printf(t, "  (void)isamap_f%d;\n", f);
    text_printf(t, "#line %d \"%s\"\n%s\n}\n", emit->at.line > 0 ? emit->at.line : 1, emit->at.file,
                body);
}

void cuda_write_configures(struct cuda *c, struct text *t) {
    cuda_declare_states(c, t);
    for (int s = 0; s < c->g.machine->nstates; s++)
        if (used(c, s)) write_configure(c, t, s);
}

void cuda_make_object(struct cuda *c, int object) {
    const struct made *x = &c->made[object];
    const struct machine *m = c->g.machine;
    c_line(&c->g, "struct state_%s o_%d;", c_state(c, x->state), object);
    c_line(&c->g,
           "if (!d.failed) isamap_check_of(&d, configure_%s(&o_%d%s), \"the driver does not make "
           "state \", \"%s\");",
           c_identifier(&c->g.arena, m->configure[configure_of(c, x->state)].id), object, x->values,
           m->state[x->state].id);
}
