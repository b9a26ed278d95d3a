/* Micro-ops: of the loops around an instruction with a table the machine counts some itself, those
 * with the most iterations; the others become entries of the table, one after the other (SCHEDULING
 * §7). A flag that starts sums is off in the entries of the first reduction step, which are an
 * issue of their own. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

struct result_chain { /* loops directly one inside the other, outermost first, around one issue */
    struct loop_node *loop[MAX_LOOPS];
    int64_t most[MAX_LOOPS]; /* iterations */
    bool flagged[MAX_LOOPS]; /* a flag is off only in its first iteration */
    int counter[MAX_LOOPS];  /* 1 + the machine's loop; 0: it becomes entries */
    int n;
    struct issue_node *issue;
};

/* ---- which loops ---- */

static bool chain_of(struct loop_node *l, struct result_chain *c) {
    c->n = 0;
    for (;;) {
        if (c->n == MAX_LOOPS || l->nbody != 1) return false;
        c->loop[c->n++] = l;
        if (l->body[0].kind != NODE_LOOP) break;
        l = l->body[0].loop;
    }
    c->issue = l->body[0].kind == NODE_ISSUE ? l->body[0].issue : NULL;
    return c->issue != NULL;
}

static bool names_any(const struct result_chain *c, const struct sx *x, int from) {
    for (int k = from; k < c->n; k++)
        if (sx_uses(x, c->loop[k]->var)) return true;
    return false;
}

/* Its bounds are known when the first of them begins, and in it only operands, instances and flags
 * vary. */
static bool may_be_entries(const struct work *w, const struct result_chain *c, int from) {
    const struct instr *in = &w->m->instr[c->issue->instr];
    const struct loop_node *l = c->loop[from];
    if (l->kind != LOOP_SEQUENTIAL || l->axis < 0 || l->hi->op >= SX_LT) return false;
    for (int k = 0; k < w->nscopes; k++)
        if (w->scope[k].axis == l->axis) return false;
    for (int k = from + 1; k < c->n; k++)
        if (sx_uses(c->loop[k]->lo, l->var) || sx_uses(c->loop[k]->hi, l->var)) return false;
    for (int k = 0; k < in->nranged; k++)
        if (sx_uses(c->issue->size[k], l->var)) return false;
    for (int k = 0; k < in->nstride_names; k++)
        if (sx_uses(c->issue->stride[k], l->var)) return false;
    return true;
}

/* Terms `variable != first value` of a disjunction: each variable's loop is marked. */
static bool starts_sums(struct result_chain *c, const struct sx *flag, int from) {
    int64_t zero;
    if (!names_any(c, flag, from)) return true;
    if (flag->op == SX_OR) return starts_sums(c, flag->a, from) && starts_sums(c, flag->b, from);
    if (flag->op != SX_NE || flag->a->op != SX_VAR || !sx_constant(flag->b, &zero) || zero)
        return false;
    for (int k = from; k < c->n; k++) c->flagged[k] |= c->loop[k]->var == flag->a->var;
    return true;
}

static bool counts(struct work *w, const struct result_chain *c, int from, int k, int64_t max) {
    const struct instr *in = &w->m->instr[c->issue->instr];
    const struct loop_node *l = c->loop[k];
    if (c->flagged[k] || c->most[k] > max) return false;
    for (int o = 0; o < in->noperands; o++) {
        if (c->issue->arg[o].place < 0) continue;
        const struct sx *step = sx_step(w->arena, c->issue->arg[o].offset, l->var, l->step);
        if (!step || names_any(c, step, from)) return false;
    }
    return true;
}

/* The machine's loops take those with the most iterations, in their order. */
static void give_counters(struct work *w, struct result_chain *c, int from) {
    const struct instr *in = &w->m->instr[c->issue->instr];
    int plain = 0, taken = 0;
    for (int k = 0; k < in->nloops; k++) plain += in->loop[k].table < 0;
    if (plain > MAX_HARDWARE_LOOPS - 1) plain = MAX_HARDWARE_LOOPS - 1;
    for (; taken < plain; taken++) {
        int best = -1;
        for (int k = from; k < c->n; k++)
            if (!c->counter[k] && c->most[k] > 1 && (best < 0 || c->most[k] > c->most[best]) &&
                counts(w, c, from, k, counter_max(in, plain)))
                best = k;
        if (best < 0) break;
        c->counter[best] = 1;
    }
}

int64_t counter_max(const struct instr *in, int innermost) {
    int64_t max = INT64_MAX;
    int seen = 0;
    for (int k = in->nloops - 1; k >= 0; k--) {
        if (in->loop[k].table >= 0 || seen++ >= innermost) continue;
        if (in->loop[k].max < max) max = in->loop[k].max;
    }
    return max;
}

/* ---- the entries ---- */

static const struct sx *replace(struct work *w, const struct sx *x, int var, const struct sx *by) {
    if (!sx_uses(x, var)) return x;
    if (x->op == SX_VAR) return by;
    return sx_make(&w->s->arena, x->op, replace(w, x->a, var, by), replace(w, x->b, var, by));
}

static void replace_all(struct work *w, struct issue_node *n, int var, const struct sx *by) {
    const struct instr *in = &w->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++)
        if (n->arg[o].place >= 0) n->arg[o].offset = replace(w, n->arg[o].offset, var, by);
    for (int a = 0; a < w->p->naxes; a++)
        if (n->base[a]) n->base[a] = replace(w, n->base[a], var, by);
}

static struct issue_node *issue_copy(struct work *w, const struct issue_node *old) {
    struct arena *a = &w->s->arena;
    const struct instr *in = &w->m->instr[old->instr];
    struct issue_node *n = arena_copy(a, old, sizeof *old);
    n->arg = arena_copy(a, old->arg, sizeof *old->arg * (size_t)in->noperands);
    n->base = arena_copy(a, old->base, sizeof *old->base * (size_t)w->p->naxes);
    n->flag = arena_array(a, (size_t)in->noperands + 1, sizeof *n->flag);
    for (int k = 0, f = 0; k < in->noperands; k++)
        if (in->operand[k].accumulate) n->flag[f] = old->flag[f], f++;
    return n;
}

static const struct sx *trips_of(struct work *w, const struct loop_node *l) {
    struct arena *a = &w->s->arena;
    struct val lo = {.x = l->lo, .max = INT64_C(1) << 40, .min = INT64_MIN},
               hi = {.x = l->hi, .max = INT64_C(1) << 40, .min = INT64_MIN};
    if (l->lo->op == SX_CONST) lo = val_const(l->lo->value);
    if (l->hi->op == SX_CONST) hi = val_const(l->hi->value);
    return val_sx(a, val_ceil(a, val_minus(a, hi, lo), l->step));
}

struct digits {                   /* of the entries' number, innermost first */
    const struct sx *first, *all; /* entries of the first reduction step, and all */
    bool splits;                  /* all may be more than first */
};

/* Each loop that becomes entries is a digit of the entry's number u; the flagged ones are the
 * highest. */
static struct digits number(struct work *w, struct result_chain *c, int from, const struct sx *u,
                            struct issue_node *n) {
    struct arena *a = &w->s->arena;
    const struct sx *weight = sx_const(a, 1);
    struct digits d = {weight, weight, false};
    for (int flagged = 0; flagged < 2; flagged++) {
        if (flagged) d.first = weight;
        int left = 0;
        for (int k = from; k < c->n; k++) left += !c->counter[k] && c->flagged[k];
        for (int k = c->n - 1; k >= from; k--) {
            const struct loop_node *l = c->loop[k];
            if (c->counter[k] || c->flagged[k] != (flagged == 1)) continue;
            const struct sx *trips = trips_of(w, l), *at = sx_make(a, SX_DIV, u, weight);
            bool highest = flagged && --left == 0;
            if (!highest) at = sx_make(a, SX_MOD, at, trips);
            at = sx_make(a, SX_ADD, l->lo, sx_make(a, SX_MUL, at, sx_const(a, l->step)));
            replace_all(w, n, l->var, at);
            weight = sx_make(a, SX_MUL, weight, trips);
        }
    }
    d.all = weight;
    d.splits = d.all != d.first;
    return d;
}

static struct node wrapped(struct work *w, const struct result_chain *c, int from,
                           struct issue_node *n, int var, const struct sx *lo,
                           const struct sx *hi) {
    struct arena *a = &w->s->arena;
    struct node *body = arena_alloc(a, sizeof *body), out;
    struct loop_node *u = arena_alloc(a, sizeof *u);
    *body = (struct node){.kind = NODE_ISSUE, .issue = n};
    *u = (struct loop_node){.var = var,
                            .lo = lo,
                            .hi = hi,
                            .step = 1,
                            .kind = LOOP_HARDWARE,
                            .unit = -1,
                            .table = TABLE_WANTED,
                            .axis = -1,
                            .body = body,
                            .nbody = 1};
    out = (struct node){.kind = NODE_LOOP, .loop = u};
    for (int k = c->n - 1; k >= from; k--) {
        if (!c->counter[k]) continue;
        struct loop_node *l = arena_copy(a, c->loop[k], sizeof *l);
        l->kind = LOOP_HARDWARE;
        l->body = arena_copy(a, &out, sizeof out);
        out.loop = l;
    }
    return out;
}

/* The flags with every loop at its first iteration. */
static void first_flags(struct work *w, const struct result_chain *c, int from,
                        struct issue_node *n) {
    for (int f = 0; f < flags_of(&w->m->instr[n->instr]); f++)
        for (int k = from; k < c->n; k++)
            n->flag[f] = replace(w, n->flag[f], c->loop[k]->var, c->loop[k]->lo);
}

int flags_of(const struct instr *in) {
    int n = 0;
    for (int o = 0; o < in->noperands; o++) n += in->operand[o].accumulate != NULL;
    return n;
}

/* The loops from `from` on and the issue as one entry of the queue, or two. */
static void make_entries(struct work *w, struct result_chain *c, int from, struct nodes *out) {
    struct arena *a = &w->s->arena;
    struct issue_node *first = issue_copy(w, c->issue), *rest;
    int var = new_var(w, "u");
    struct digits d = number(w, c, from, sx_var(a, var), first);
    int64_t some, all;
    rest = issue_copy(w, first);
    first_flags(w, c, from, first);
    if (d.splits && sx_constant(d.first, &some) && sx_constant(d.all, &all)) d.splits = all > some;
    const struct sx *zero = sx_const(a, 0);
    nodes_add(w, out, wrapped(w, c, from, first, var, zero, d.splits ? d.first : d.all));
    if (!d.splits) return;
    for (int f = 0; f < flags_of(&w->m->instr[rest->instr]); f++)
        if (names_any(c, rest->flag[f], from)) rest->flag[f] = sx_const(a, 1);
    rest->init = -1;
    struct node more = wrapped(w, c, from, rest, var, d.first, d.all);
    if (!sx_constant(d.first, NULL) || !sx_constant(d.all, NULL)) { /* there may be none */
        struct nodes body = {0};
        nodes_add(w, &body, more);
        more.loop = arena_alloc(a, sizeof *more.loop);
        *more.loop = (struct loop_node){.var = new_var(w, "once"),
                                        .lo = zero,
                                        .hi = sx_make(a, SX_LT, d.first, d.all),
                                        .step = 1,
                                        .kind = LOOP_SEQUENTIAL,
                                        .unit = -1,
                                        .axis = -1,
                                        .body = body.at,
                                        .nbody = body.n};
    }
    nodes_add(w, out, more);
}

/* ---- the tree ---- */

static int64_t room(const struct work *w, const struct hwloop *l) {
    int64_t bytes = w->m->memory[l->table].size, size = table_entry_bytes(w->m, l);
    int64_t most = size > 0 && bytes >= 0 ? bytes / size : INT64_MAX;
    return l->max < most ? l->max : most;
}

/* The outermost loop from which on they may be entries and are not too many. */
static int chain_begin(struct work *w, struct result_chain *c) {
    const struct instr *in = &w->m->instr[c->issue->instr];
    int from = c->n;
    while (from > 0 && may_be_entries(w, c, from - 1)) {
        bool fine = true;
        int64_t entries = 1;
        memset(c->flagged, 0, sizeof c->flagged);
        memset(c->counter, 0, sizeof c->counter);
        for (int f = 0; f < flags_of(in) && fine; f++)
            fine = starts_sums(c, c->issue->flag[f], from - 1);
        for (int k = from - 1; k < c->n; k++) c->most[k] = loop_most(w, c->loop[k]);
        if (fine) give_counters(w, c, from - 1);
        for (int k = from - 1; k < c->n && fine; k++)
            if (!c->counter[k])
                fine = c->most[k] < INT64_MAX &&
                       !__builtin_mul_overflow(entries, c->most[k], &entries);
        if (!fine || entries > room(w, instr_table(in)) / 2) break;
        from--;
    }
    memset(c->flagged, 0, sizeof c->flagged);
    memset(c->counter, 0, sizeof c->counter);
    for (int f = 0; f < flags_of(in) && from < c->n; f++) starts_sums(c, c->issue->flag[f], from);
    if (from < c->n) give_counters(w, c, from);
    return from;
}

static bool wants_table(const struct work *w, const struct issue_node *n) {
    return instr_table(&w->m->instr[n->instr]) != NULL;
}

static void in_place(struct work *w, struct nodes *out, struct node *n, bool whole) {
    struct result_chain c = {.n = 0};
    if (n->kind == NODE_ISSUE && wants_table(w, n->issue)) {
        c.issue = n->issue;
        make_entries(w, &c, 0, out);
        return;
    }
    if (n->kind != NODE_LOOP) {
        nodes_add(w, out, *n);
        return;
    }
    if (whole && chain_of(n->loop, &c) && wants_table(w, c.issue)) {
        int from = chain_begin(w, &c);
        if (from == 0) {
            make_entries(w, &c, 0, out);
            return;
        }
        if (from < c.n) { /* the loops outside stay the program's */
            struct nodes inner = {0};
            make_entries(w, &c, from, &inner);
            c.loop[from - 1]->body = inner.at;
            c.loop[from - 1]->nbody = inner.n;
            nodes_add(w, out, *n);
            return;
        }
    }
    struct nodes inner = {0};
    for (int k = 0; k < n->loop->nbody; k++) in_place(w, &inner, &n->loop->body[k], whole);
    n->loop->body = inner.at;
    n->loop->nbody = inner.n;
    nodes_add(w, out, *n);
}

void micro_make(struct work *w, struct nodes *list, bool whole) {
    struct nodes out = {0};
    for (int i = 0; i < list->n; i++) in_place(w, &out, &list->at[i], whole);
    *list = out;
}
