/* Why an instruction does not execute a statement, in words. */
#include "mapper/mapper_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const failure_name[FAILURE_COUNT] = {
#define X(id, name) #name,
    FAILURE_TABLE(X)
#undef X
};

enum { FAILURES_PER_PAIR = 2 };

/* Room for one more failure of the pair: a new entry, or its shallowest one; NULL when that is
 * deeper, or nobody asks. */
static struct failure *failure_slot(struct search *s, int instr, int stmt, enum failure_kind kind,
                                    int depth) {
    struct failure *low = NULL;
    int n = 0;
    if (s->unasked) return NULL;
    for (int i = s->nfailures; i-- > 0;) {
        struct failure *f = &s->failure[i];
        if (f->instr != instr || f->stmt != stmt) break;
        if (f->kind == kind && f->depth >= depth) return NULL;
        n++;
        if (!low || f->depth < low->depth) low = f;
    }
    if (n >= FAILURES_PER_PAIR) return low->depth < depth ? low : NULL;
    GROW(s->arena, s->failure, s->nfailures, s->fcap);
    return &s->failure[s->nfailures++];
}

static const char *value_text(struct arena *a, enum type t, union value v) {
    return type_is_float(t) ? arena_printf(a, "%g", v.f) : arena_printf(a, "%" PRId64, v.i);
}

static const char *node_text(struct arena *a, const struct program *p, const struct stmt *s,
                             const struct term *t, int node) {
    const struct term_node *x = &t->at[node];
    if (x->code == OP_READ) {
        const struct access *acc = x->read < 0 ? &s->dst : &s->read[x->read];
        return arena_printf(a, "'%s' (%s)", p->buffer[acc->buffer].name, type_name(x->type));
    }
    if (x->code == OP_LITERAL) return value_text(a, x->type, x->value);
    if (x->code == OP_AXIS && x->origin >= 0)
        return arena_printf(a, "the value of axis '%s'", p->axis[s->op[x->origin].axis].name);
    if (x->code == OP_AXIS) return "the value of an axis";
    if (x->code == OP_CAST)
        return arena_printf(a, "a cast of %s to %s", type_name(t->at[x->arg[0]].type),
                            type_name(x->type));
    return arena_printf(a, "'%s' on %s", op_info[x->code].spelling,
                        type_name(t->at[x->arg[x->nargs > 1 ? 1 : 0]].type));
}

static const char *combine_text(struct arena *a, const struct program *p, const struct stmt *s) {
    return arena_printf(a, "'%s' on %s", combiner_spelling[s->combine],
                        type_name(p->buffer[s->dst.buffer].type));
}

static const char *stmt_text(struct arena *a, const struct site *site) {
    return arena_printf(a, "statement %d ('%s')", site->said,
                        site->program->buffer[site->s->dst.buffer].name);
}

/* A float of another type would do if it were exact. */
static const char *inexact_text(struct arena *a, const struct term_node *needle,
                                const struct term_node *hay, enum failure_kind kind) {
    const struct range *r = &hay->range;
    if (kind != FAILURE_TYPE || needle->type == hay->type || !type_is_float(needle->type) ||
        !type_is_float(hay->type) || r->grain == GRAIN_NONE)
        return "";
    return arena_printf(a, "; values from %.17g to %.17g in steps of %g are not all exact in %s",
                        r->lo, r->hi, exp2(r->grain), type_name(needle->type));
}

/* ---- what is shown of both ---- */

static const char *signature_text(struct arena *a, const struct program *p, const struct stmt *s) {
    struct text t = {0};
    for (int x = 0; x < p->naxes; x++) {
        bool any = false;
        for (int r = -1; r < s->nreads; r++) {
            const struct access *acc = r < 0 ? &s->dst : &s->read[r];
            bool again = false;
            for (int q = -1; q < r; q++)
                again |= (q < 0 ? s->dst : s->read[q]).buffer == acc->buffer;
            if (again || !access_varies(p, acc, x)) continue;
            text_printf(&t,
                        any   ? ", %s"
                        : t.n ? "; %s moves %s"
                              : "%s moves %s",
                        any ? p->buffer[acc->buffer].name : p->axis[x].name,
                        p->buffer[acc->buffer].name);
            any = true;
        }
    }
    const char *out = arena_strdup(a, t.n ? t.at : "no axis");
    text_free(&t);
    return out;
}

static const char *marked_text(struct arena *a, const struct program *p, const struct stmt *s,
                               struct stmt_mark mark, size_t *at, size_t *n) {
    struct text t = {0};
    stmt_print(p, s, &t, &mark);
    const char *out = arena_strdup(a, t.at);
    *at = mark.at;
    *n = mark.n ? mark.n : t.n;
    text_free(&t);
    return out;
}

static const struct failure_sight *sight_of(struct search *s, const struct needle *n,
                                            const struct site *site, struct stmt_mark needle,
                                            struct stmt_mark stmt) {
    if (!s->explain || n->nparts > 0) return NULL;
    struct failure_sight *v = arena_alloc(s->arena, sizeof *v);
    const struct stmt *own = &n->program->stmt[0];
    v->needle = marked_text(s->arena, n->program, own, needle, &v->needle_at, &v->needle_n);
    v->stmt = marked_text(s->arena, site->program, site->s, stmt, &v->stmt_at, &v->stmt_n);
    v->needle_axes = signature_text(s->arena, n->program, own);
    v->stmt_axes = signature_text(s->arena, site->program, site->s);
    return v;
}

static struct stmt_mark mark_node(const struct term *t, int node, const struct stmt *s) {
    const struct term_node *x = &t->at[node];
    if (x->code == OP_READ)
        return (struct stmt_mark){.access = x->read < 0 ? &s->dst : &s->read[x->read]};
    return (struct stmt_mark){.op = x->origin};
}

/* Operations that agree from these nodes on, casts apart. */
static int alike(const struct term *a, int x, const struct term *b, int y) {
    while (a->at[x].code == OP_CAST) x = a->at[x].arg[0];
    while (b->at[y].code == OP_CAST) y = b->at[y].arg[0];
    const struct term_node *m = &a->at[x], *n = &b->at[y];
    if (m->code != n->code || m->acc != n->acc) return 0;
    int straight = 0, turned = 0;
    for (int k = 0; k < m->nargs; k++) straight += alike(a, m->arg[k], b, n->arg[k]);
    if (m->nargs == 2 && op_info[m->code].flags & OP_COMM)
        turned = alike(a, m->arg[0], b, n->arg[1]) + alike(a, m->arg[1], b, n->arg[0]);
    return 1 + (straight > turned ? straight : turned);
}

void note_failure(struct search *s, const struct needle *n, const struct site *site,
                  const struct mismatch *w) {
    if (w->depth < 0) return;
    struct failure *f = failure_slot(s, n->instr, site->stmt, w->kind, w->depth);
    if (!f) return;
    struct arena *a = s->arena;
    const char *id = s->needles->machine->instr[n->instr].id;
    *f = (struct failure){.kind = w->kind,
                          .instr = n->instr,
                          .stmt = site->stmt,
                          .needle_op = n->term.at[w->needle_node].origin,
                          .stmt_op = site->term.at[w->node].origin,
                          .needle_axis = -1,
                          .stmt_axis = -1,
                          .operand = -1,
                          .depth = w->depth,
                          .alike = alike(&n->term, n->term.root, &site->term, site->term.root)};
    const struct stmt *ns = &n->program->stmt[0];
    bool root = w->kind == FAILURE_COMBINER;
    bool result = w->kind == FAILURE_TYPE && w->depth == 0;
    f->expected = root     ? combine_text(a, n->program, ns)
                  : result ? arena_printf(a, "a result of %s",
                                          type_name(n->program->buffer[ns->dst.buffer].type))
                           : node_text(a, n->program, ns, &n->term, w->needle_node);
    f->got = root ? combine_text(a, site->program, site->s)
             : result
                 ? arena_printf(a, "%s", type_name(site->program->buffer[site->s->dst.buffer].type))
                 : node_text(a, site->program, site->s, &site->term, w->node);
    const char *more =
        w->kind == FAILURE_LIVE_OUT
            ? "; it would be overwritten in place, but is no temporary that ends there"
        : n->term.at[w->needle_node].code == OP_AXIS
            ? "; an instruction that computes with the values of its axes is matched with nothing"
            : inexact_text(a, &n->term.at[w->needle_node], &site->term.at[w->node], w->kind);
    f->reason = arena_printf(a, "'%s' has %s where %s has %s%s", id, f->expected,
                             stmt_text(a, site), f->got, more);
    f->sight = sight_of(
        s, n, site,
        root || result ? (struct stmt_mark){.op = -1} : mark_node(&n->term, w->needle_node, ns),
        root || result ? (struct stmt_mark){.op = -1} : mark_node(&site->term, w->node, site->s));
}

static void note(struct search *s, const struct needle *n, const struct site *site,
                 enum failure_kind kind, int needle_axis, int axis, int operand,
                 const struct access *played_by, const char *why) {
    enum { AFTER_TERMS = 100 }; /* the terms agree: deeper than any mismatch of them */
    struct failure *f = failure_slot(s, n->instr, site->stmt, kind, AFTER_TERMS);
    if (!f) return;
    struct arena *a = s->arena;
    const struct instr *x = &s->needles->machine->instr[n->instr];
    *f = (struct failure){.kind = kind,
                          .instr = n->instr,
                          .stmt = site->stmt,
                          .needle_op = -1,
                          .stmt_op = -1,
                          .needle_axis = needle_axis,
                          .stmt_axis = axis,
                          .operand = operand,
                          .depth = AFTER_TERMS};
    f->expected = needle_axis >= 0
                      ? arena_printf(a, "an axis for '%s'", n->program->axis[needle_axis].name)
                      : "a legal mapping";
    f->got = axis >= 0 ? arena_printf(a, "axis '%s'", site->program->axis[axis].name) : "none";
    const char *played =
        operand >= 0 ? arena_printf(a, ", operand '%s'", x->operand[operand].buffer) : "";
    const char *along =
        axis >= 0 ? arena_printf(a, " along axis '%s'", site->program->axis[axis].name) : "";
    f->reason =
        arena_printf(a, "'%s'%s on %s%s: %s", x->id, played, stmt_text(a, site), along, why);
    struct stmt_mark none = {.op = -1},
                     own = {.op = -1, .access = operand >= 0 ? n->access[operand] : NULL};
    if (!played_by && operand == n->dst) played_by = &site->s->dst;
    f->sight = sight_of(s, n, site, operand >= 0 ? own : none,
                        played_by ? (struct stmt_mark){.op = -1, .access = played_by} : none);
}

void note_axis(struct search *s, const struct needle *n, const struct site *site,
               enum failure_kind kind, int needle_axis, int axis, int operand, const char *why) {
    note(s, n, site, kind, needle_axis, axis, operand, NULL, why);
}

void note_column(struct search *s, const struct needle *n, const struct site *site, int needle_axis,
                 int axis, int operand, const struct access *a) {
    note(s, n, site, FAILURE_EXTRA_COLUMN, needle_axis, axis, operand, a,
         "the operand of the instruction stands still there");
}

void note_refused(struct search *s, const struct needle *n, const struct site *site) {
    struct failure *f = failure_slot(s, n->instr, site->stmt, FAILURE_MISSING_STATEMENT, 0);
    if (!f) return;
    const char *id = s->needles->machine->instr[n->instr].id;
    *f = (struct failure){.kind = FAILURE_MISSING_STATEMENT,
                          .instr = n->instr,
                          .stmt = site->stmt,
                          .needle_op = -1,
                          .stmt_op = -1,
                          .needle_axis = -1,
                          .stmt_axis = -1,
                          .operand = -1,
                          .expected = "one plain statement",
                          .got = n->refused};
    f->reason =
        arena_printf(s->arena, "'%s' %s, so it executes no statement of a program", id, n->refused);
}
