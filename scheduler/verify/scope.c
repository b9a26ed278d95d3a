/* Where the contents of local places end. Where one loop has all uses of a place, and its second
 * iteration writes it before it reads it, at the bytes of the first one and as many, what lies
 * there is forgotten at the end of each iteration: else what remains of older tiles would have to
 * be followed until new ones have overwritten it. To forget is always right, so that this may be a
 * guess. */
#include "scheduler/verify/sym.h"

/* A loop of a section, by number in the order of the text. */
struct scope {
    const struct loop_node *loop;
    int parent, depth; /* -1: none */
    int first;         /* 1 + the first place of which it has all uses; 0: none */
};

/* The bytes that an iteration writes first, and how many issues do that. */
struct first_write {
    int64_t at, issues;
};

struct finder {
    struct sym *s;
    struct scope *scope;
    int nscopes;
    int *of;       /* [nplaces] the loop that has all uses so far; NONE: no loop has; NO_USE */
    int64_t *var;  /* [nvars] */
    int scope_now; /* whose places are looked at */
    bool *used;    /* [nplaces] in the iteration that is walked, */
    bool *reads;   /* first by a read, */
    struct first_write *write;  /* or there; */
    struct first_write *before; /* in the iteration before */
};

enum { NONE = -1, NO_USE = -2 };

static int loops_of(const struct node *node, int n) {
    int loops = 0;
    for (int k = 0; k < n; k++)
        if (node[k].kind == NODE_LOOP)
            loops += 1 + loops_of(node[k].loop->body, node[k].loop->nbody);
    return loops;
}

/* ---- which loop has all uses of a place ---- */
static void use(struct finder *f, int place, int in) {
    if (place < 0) return;
    int both = f->of[place];
    if (both == NO_USE) both = in;
    while (both != in && both >= 0 && in >= 0) {
        int *deeper = f->scope[both].depth > f->scope[in].depth ? &both : &in;
        *deeper = f->scope[*deeper].parent;
    }
    f->of[place] = both == in ? both : NONE;
}

static void find_uses(struct finder *f, const struct node *node, int n, int in) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_ROTATE) use(f, node[k].rotate, in);
        if (node[k].kind == NODE_ISSUE)
            for (int o = 0; o < f->s->v->m->instr[node[k].issue->instr].noperands; o++)
                use(f, node[k].issue->arg[o].place, in);
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        int number = f->nscopes++;
        f->scope[number] = (struct scope){l, in, in < 0 ? 0 : f->scope[in].depth + 1, 0};
        use(f, l->table - 1, number);
        find_uses(f, l->body, l->nbody, number);
    }
}

/* ---- what an iteration does first with them ---- */
static bool looked_at(const struct finder *f, int place) {
    return place >= 0 && f->of[place] == f->scope_now && !f->used[place];
}

static void first_read(struct finder *f, int place) {
    if (!looked_at(f, place)) return;
    f->used[place] = f->reads[place] = true;
}

static bool overwrites(const struct finder *f, const struct issue_node *n, int operand) {
    const struct instr *in = &f->s->v->m->instr[n->instr];
    for (int k = 0; k < instr_flag_count(in); k++)
        if (instr_flag_operand(in, k) == operand && sx_eval(n->flag[k], f->var) == 0) return true;
    return in->operand[operand].role == ROLE_OUT;
}

static void first_of_issue(struct finder *f, const struct issue_node *n, int64_t trips) {
    int operands = f->s->v->m->instr[n->instr].noperands;
    for (int o = 0; o < operands; o++)
        if (!overwrites(f, n, o)) first_read(f, n->arg[o].place);
    for (int o = 0; o < operands; o++) {
        int place = n->arg[o].place;
        if (!looked_at(f, place)) continue;
        f->used[place] = true;
        f->write[place] = (struct first_write){sx_eval(n->arg[o].offset, f->var), trips};
    }
}

/* It does not run at the beginnings of the loops inside, but that is not up to those outside. */
static bool runs_later(const struct finder *f, const struct loop_node *l) {
    int64_t n;
    if (sx_constant(l->lo, &n) && sx_constant(l->hi, &n)) return false;
    for (int k = f->scope_now; k >= 0; k = f->scope[k].parent)
        if (sx_uses(l->lo, f->scope[k].loop->var) || sx_uses(l->hi, f->scope[k].loop->var))
            return false;
    return true;
}

/* trips: of the loops around, each in its first iteration's bounds; only compared. */
static void first_uses(struct finder *f, const struct node *node, int n, int64_t trips) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_ISSUE) first_of_issue(f, node[k].issue, trips);
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        f->var[l->var] = sx_eval(l->lo, f->var);
        int64_t iterations = sx_eval(l->hi, f->var) - f->var[l->var], all;
        if (iterations <= 0 && !runs_later(f, l)) continue;
        first_read(f, l->table - 1);
        if (__builtin_mul_overflow(trips, iterations, &all)) all = INT64_MAX;
        first_uses(f, l->body, l->nbody, all);
    }
}

/* The second iteration begins to write where the first one did, and as much: less of it keeps rows
 * of the first one, such as those of a window in a ring. A last iteration may be shorter. */
static bool writes_again(const struct finder *f, const struct loop_node *l, int place) {
    const struct first_write *x = &f->write[place], *before = &f->before[place];
    bool last = sx_eval(l->hi, f->var) - sx_eval(l->lo, f->var) <= 2 * l->step;
    return x->at == before->at && (last || x->issues >= before->issues);
}

/* Of the places that end with the loop those that its second iteration writes first, where the
 * first one did. */
static void judge(struct finder *f, int number) {
    struct sym *s = f->s;
    const struct loop_node *l = f->scope[number].loop;
    int64_t lo = f->var[l->var];
    f->scope_now = number;
    first_uses(f, l->body, l->nbody, 1);
    for (int p = f->scope[number].first; p > 0; p = s->ending[p - 1].next) {
        f->before[p - 1] = f->write[p - 1];
        f->used[p - 1] = f->reads[p - 1] = false;
    }
    f->var[l->var] = lo + l->step;
    first_uses(f, l->body, l->nbody, 1);
    f->var[l->var] = lo;
    for (int p = f->scope[number].first; p > 0; p = s->ending[p - 1].next)
        if (f->used[p - 1] && !f->reads[p - 1] && writes_again(f, l, p - 1))
            s->ending[p - 1].with = l;
}

static void judge_all(struct finder *f, const struct node *node, int n, int *number) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        int own = (*number)++;
        f->var[l->var] = sx_eval(l->lo, f->var);
        if (f->scope[own].first) judge(f, own);
        judge_all(f, l->body, l->nbody, number);
    }
}

static void section_scopes(struct sym *s, const struct section *c) {
    struct arena *a = &s->v->arena;
    size_t places = (size_t)s->v->s->nplaces + 1, loops = (size_t)loops_of(c->node, c->nnodes) + 1;
    struct finder f = {.s = s};
    int number = 0;
    f.scope = arena_array(a, loops, sizeof *f.scope);
    f.of = arena_array(a, places, sizeof *f.of);
    f.var = arena_array(a, (size_t)s->v->s->nvars + 1, sizeof *f.var);
    f.used = arena_array(a, places, sizeof *f.used);
    f.reads = arena_array(a, places, sizeof *f.reads);
    f.write = arena_array(a, places, sizeof *f.write);
    f.before = arena_array(a, places, sizeof *f.before);
    for (size_t p = 0; p < places; p++) f.of[p] = NO_USE;
    find_uses(&f, c->node, c->nnodes, NONE);
    for (int p = 0; p < s->v->s->nplaces; p++) {
        if (f.of[p] < 0 || s->v->s->place[p].keep != KEEP_LOCAL) continue;
        struct scope *x = &f.scope[f.of[p]];
        s->ending[p].next = x->first;
        x->first = p + 1;
    }
    judge_all(&f, c->node, c->nnodes, &number);
}

/* A local place's contents do not reach from one section into the other. */
void sym_scopes(struct sym *s, const struct section *c) {
    for (int p = 0; p < s->v->s->nplaces; p++) s->ending[p] = (struct ending){0};
    for (int k = 0; k < s->v->s->nvars; k++) s->ends[k] = 0;
    section_scopes(s, c);
    for (int p = 0; p < s->v->s->nplaces; p++) {
        if (!s->ending[p].with) continue;
        int *first = &s->ends[s->ending[p].with->var];
        s->ending[p].next = *first;
        *first = p + 1;
    }
}

void scope_ends(struct sym *s, const struct loop_node *l) {
    for (int p = s->ends[l->var]; p > 0; p = s->ending[p - 1].next)
        if (s->ending[p - 1].with == l) regions_forget(s, p - 1);
}
