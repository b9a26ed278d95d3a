/* Operands that stay in the unit (`also`): where loops do not move an operand that an instruction
 * leaves behind, the first iteration is split off and the others take what stands there. */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct remain {
    struct work *w;
    int first, again, operand, memory;
    int place; /* where the copy is */
};

/* The one issue of `first` in the nodes that uses the memory; *count: how many do. */
static struct issue_node *find_issue(const struct remain *r, const struct node *at, int n,
                                     int *count) {
    struct issue_node *found = NULL;
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_LOOP) {
            struct issue_node *f = find_issue(r, at[i].loop->body, at[i].loop->nbody, count);
            if (f) found = f;
        }
        if (at[i].kind != NODE_ISSUE) continue;
        const struct instr *in = &r->w->m->instr[at[i].issue->instr];
        bool uses = at[i].issue->instr == r->first;
        for (int o = 0; o < in->noperands; o++) uses |= in->operand[o].also == r->memory;
        *count += uses;
        if (at[i].issue->instr == r->first) found = at[i].issue;
    }
    return found;
}

static bool touches(const struct work *w, const struct node *at, int n, int place) {
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_ROTATE && at[i].rotate == place) return true;
        if (at[i].kind == NODE_LOOP && touches(w, at[i].loop->body, at[i].loop->nbody, place))
            return true;
        if (at[i].kind != NODE_ISSUE) continue;
        const struct instr *in = &w->m->instr[at[i].issue->instr];
        for (int o = 0; o < in->noperands; o++)
            if (at[i].issue->arg[o].place == place && in->operand[o].role != ROLE_IN) return true;
    }
    return false;
}

static bool axis_moves(const struct remain *r, const struct issue_node *n, int var) {
    const struct instr *in = &r->w->m->instr[n->instr];
    const struct program *p = r->w->p;
    const struct task *t = NULL;
    for (int k = 0; k < r->w->ntasks; k++)
        if (r->w->task[k].needle && r->w->task[k].stmt == n->stmt) t = &r->w->task[k];
    if (!t || t->op[r->operand].read < 0) return true;
    const struct access *a = &p->stmt[n->stmt].read[t->op[r->operand].read];
    for (int x = 0; x < p->naxes; x++)
        if (n->base[x] && sx_uses(n->base[x], var) && access_varies(p, a, x)) return true;
    for (int i = 0; i < in->nranged; i++) /* sizes of its own: which axes have them */
        if (sx_uses(n->size[i], var))
            for (int x = 0; x < t->needle->nx; x++)
                if (t->needle->ranged[x] == i && t->axis[x] >= 0 && access_varies(p, a, t->axis[x]))
                    return true;
    return sx_uses(n->arg[r->operand].offset, var);
}

/* Each iteration finds what the one before left: neither this loop nor one inside moves the
 * operand.
 */
static bool stays(const struct remain *r, const struct node *node) {
    const struct loop_node *l = node->loop;
    int count = 0;
    const struct issue_node *n = find_issue(r, l->body, l->nbody, &count);
    if (!n || count != 1 || l->kind != LOOP_SEQUENTIAL || n->stmt < 0 ||
        touches(r->w, l->body, l->nbody, n->arg[r->operand].place))
        return false;
    for (int var = 0; var < r->w->s->nvars; var++)
        if (binds(node, var) && axis_moves(r, n, var)) return false;
    return true;
}

static int copy_place(struct remain *r, const struct issue_node *n) {
    struct schedule *s = r->w->s;
    const struct memory *m = &r->w->m->memory[r->memory];
    int buffer = s->place[n->arg[r->operand].place].buffer;
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].memory == r->memory && s->place[p].buffer == buffer) return p;
    struct place made = {.name = arena_printf(&s->arena, "%s.%s.%d", r->w->p->buffer[buffer].name,
                                              m->id, s->nplaces),
                         .buffer = buffer,
                         .memory = r->memory,
                         .keep = KEEP_LOCAL,
                         .bytes = m->size,
                         .slots = 1};
    return place_append(r->w, &made);
}

/* A copy of the nodes, which share nothing that is changed later, in which the issue takes the
 * operand from the unit. */
static struct node *copied(struct remain *r, const struct node *at, int n) {
    struct arena *a = &r->w->s->arena;
    struct node *out = arena_copy(a, at, sizeof *at * (size_t)n);
    for (int i = 0; i < n; i++) {
        if (at[i].kind == NODE_LOOP) {
            out[i].loop = arena_copy(a, at[i].loop, sizeof *at[i].loop);
            out[i].loop->body = copied(r, at[i].loop->body, at[i].loop->nbody);
        }
        if (at[i].kind == NODE_FALLBACK)
            out[i].fallback = arena_copy(a, at[i].fallback, sizeof *at[i].fallback);
        if (at[i].kind != NODE_ISSUE) continue;
        const struct instr *in = &r->w->m->instr[at[i].issue->instr];
        struct issue_node *n1 = arena_copy(a, at[i].issue, sizeof *n1);
        n1->arg = arena_copy(a, n1->arg, sizeof *n1->arg * (size_t)in->noperands);
        out[i].issue = n1;
        if (n1->instr != r->first) continue;
        n1->instr = r->again;
        n1->arg[r->operand].place = r->place;
        n1->arg[r->operand].offset = sx_const(a, 0);
    }
    return out;
}

static void split(struct remain *r, struct node **at, int *n);

static void split_loop(struct remain *r, struct nodes *out, const struct node *node) {
    struct arena *a = &r->w->s->arena;
    struct loop_node *l = node->loop;
    int count = 0;
    const struct issue_node *issue = find_issue(r, l->body, l->nbody, &count);
    r->place = copy_place(r, issue);
    const struct sx *second = sx_make(a, SX_ADD, l->lo, sx_const(a, l->step));
    struct loop_node *rest = arena_copy(a, l, sizeof *l);
    rest->lo = second;
    rest->body = copied(r, l->body, l->nbody);
    l->hi = sx_make(a, SX_MIN, second, l->hi);
    split(r, &l->body, &l->nbody);
    nodes_add(r->w, out, *node);
    nodes_add(r->w, out, (struct node){.kind = NODE_LOOP, .loop = rest});
}

static void split(struct remain *r, struct node **at, int *n) {
    struct nodes out = {0};
    for (int i = 0; i < *n; i++) {
        struct node *node = &(*at)[i];
        if (node->kind == NODE_LOOP && stays(r, node)) {
            split_loop(r, &out, node);
            continue;
        }
        if (node->kind == NODE_LOOP) split(r, &node->loop->body, &node->loop->nbody);
        nodes_add(r->w, &out, *node);
    }
    *at = out.at;
    *n = out.n;
}

void remains_place(struct work *w, struct nodes *run) {
    for (int k = 0; k < w->m->ninstrs; k++) {
        struct remain r = {.w = w, .first = k};
        r.again = remain_again(w->m, k, &r.operand);
        if (r.again < 0) continue;
        r.memory = w->m->instr[k].operand[r.operand].also;
        if (w->m->memory[r.memory].size <= 0) continue;
        split(&r, &run->at, &run->n);
        run->cap = run->n;
    }
}
