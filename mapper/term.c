/* Statements as trees, and cutting trees out of statements. */
#include "mapper/mapper_int.h"

#include <assert.h>
#include <string.h>

bool access_same(const struct program *p, const struct access *a, const struct access *b) {
    return access_equal(p, a, b);
}

static void fold(struct term *t, struct term_node *node) {
    union value arg[3];
    if (node->nargs == 0) return;
    for (int k = 0; k < node->nargs; k++) {
        const struct term_node *a = &t->at[node->arg[k]];
        node->axes |= a->axes;
        if (!a->constant) return;
        arg[k] = a->value;
    }
    const struct term_node *typed = &t->at[node->arg[node->code == OP_SELECT ? 1 : 0]];
    node->constant = true;
    node->value = op_eval(node->code, node->type, typed->type, arg);
}

static uint64_t access_axes(const struct program *p, const struct access *a) {
    uint64_t mask = 0;
    for (int x = 0; x < p->naxes; x++)
        if (access_varies(p, a, x)) mask |= UINT64_C(1) << x;
    return mask;
}

static void add_axes(struct term *t) {
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->at[i].nargs; k++) t->at[i].axes |= t->at[t->at[i].arg[k]].axes;
}

struct term term_of(struct arena *arena, const struct program *p, const struct stmt *s) {
    struct term t = {.n = s->nops, .root = s->nops - 1, .accumulates = s->combine != COMBINE_SET};
    t.at = arena_array(arena, (size_t)s->nops + 2, sizeof *t.at);
    for (int i = 0; i < s->nops; i++) {
        const struct op *o = &s->op[i];
        struct term_node *node = &t.at[i];
        *node = (struct term_node){.code = o->code,
                                   .type = o->type,
                                   .nargs = op_info[o->code].arity,
                                   .read = -1,
                                   .origin = i,
                                   .constant = o->code == OP_LITERAL && !o->unsaid,
                                   .value = o->value};
        for (int k = 0; k < node->nargs; k++) node->arg[k] = o->arg[k];
        if (o->code == OP_AXIS) node->axes = UINT64_C(1) << o->axis;
        if (o->code == OP_READ) {
            const struct access *a = &s->read[o->read];
            node->read = o->read;
            node->type = p->buffer[a->buffer].type;
            node->axes = access_axes(p, a);
            node->acc = a->buffer == s->dst.buffer && !t.accumulates;
        }
        fold(&t, node);
    }
    if (t.accumulates) {
        enum type value_type = s->op[s->nops - 1].type; /* a read's node has the type as stored */
        t.at[t.n] = (struct term_node){.code = OP_READ,
                                       .type = p->buffer[s->dst.buffer].type,
                                       .read = -1,
                                       .origin = t.n,
                                       .acc = true,
                                       .axes = access_axes(p, &s->dst)};
        t.at[t.n + 1] = (struct term_node){.code = combiner_op(s->combine),
                                           .type = value_type,
                                           .nargs = 2,
                                           .arg = {t.n, t.root},
                                           .read = -1,
                                           .origin = t.n + 1};
        t.n += 2;
        t.root = t.n - 1;
    }
    add_axes(&t);
    return t;
}

uint64_t node_axes(const struct term *t, int node) {
    return t->at[node].axes;
}

/* ---- cutting ---- */

/* A name that nothing else has: the destination's, then a number. */
static const char *fresh_name(struct program *p, const char *base) {
    for (int k = 1;; k++) {
        const char *name = arena_printf(&p->arena, "%s_%d", base, k);
        bool taken = program_buffer(p, name) >= 0;
        for (int a = 0; a < p->naxes; a++) taken |= !strcmp(p->axis[a].name, name);
        for (int a = 0; a < p->nparams; a++) taken |= !strcmp(p->param[a].name, name);
        if (!taken) return name;
    }
}

/* Axes of the mask in the order in which the destination has them, the others after. */
static int ordered_axes(const struct program *p, const struct stmt *s, uint64_t mask, int *out) {
    int n = 0;
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++)
            if (mask >> a & 1 && access_coef(p, &s->dst, d, a)) {
                out[n++] = a;
                mask &= ~(UINT64_C(1) << a);
            }
    for (int a = 0; a < p->naxes; a++)
        if (mask >> a & 1) out[n++] = a;
    return n;
}

/* A temporary with one element for each point of the axes; without axes one element. It is the
 * program's buffer `at`, and has the destination's name. */
static struct access open_temporary(struct program *p, const struct stmt *s, uint64_t mask,
                                    enum type type, int at, struct buffer *made) {
    int axis[MAX_AXES];
    int n = ordered_axes(p, s, mask, axis);
    struct buffer b = {.name = p->buffer[s->dst.buffer].name,
                       .type = type,
                       .role = ROLE_TEMP,
                       .ndims = n ? n : 1,
                       .elements = 1};
    b.extent = arena_array(&p->arena, (size_t)b.ndims, sizeof *b.extent);
    struct access a = {.buffer = at};
    size_t width = (size_t)p->naxes + 1;
    a.coef = arena_array(&p->arena, width * (size_t)b.ndims, sizeof *a.coef);
    b.extent[0] = 1;
    for (int d = 0; d < n; d++) {
        b.extent[d] = p->axis[axis[d]].extent;
        b.elements *= b.extent[d];
        a.coef[(size_t)d * width + (size_t)axis[d]] = 1;
    }
    *made = b;
    return a;
}

struct copier {
    struct program *p;
    const struct stmt *from;
    struct stmt *to;
    const int *cut;
    const struct access *temporary;
    int ncuts;
};

static int copy_read(struct copier *c, const struct access *a, enum type type) {
    c->to->read[c->to->nreads] = *a;
    c->to->op[c->to->nops] = (struct op){.code = OP_READ, .type = type, .read = c->to->nreads++};
    return c->to->nops++;
}

static int copy_node(struct copier *c, int node) {
    const struct op *o = &c->from->op[node];
    for (int k = 0; k < c->ncuts; k++)
        if (c->cut[k] == node) return copy_read(c, &c->temporary[k], o->type);
    if (o->code == OP_READ) return copy_read(c, &c->from->read[o->read], o->type);
    struct op copy = *o;
    for (int k = 0; k < op_info[o->code].arity; k++) copy.arg[k] = copy_node(c, o->arg[k]);
    c->to->op[c->to->nops] = copy;
    return c->to->nops++;
}

/* Trees may share nodes: a copy has at most as many as the tree has paths, which expressions as
 * written keep small. */
static int tree_size(const struct stmt *s, int node) {
    int n = 1;
    for (int k = 0; k < op_info[s->op[node].code].arity; k++) n += tree_size(s, s->op[node].arg[k]);
    return n;
}

static void copy_tree(struct copier *c, int root) {
    int n = tree_size(c->from, root);
    c->to->op = arena_array(&c->p->arena, (size_t)n, sizeof *c->to->op);
    c->to->read = arena_array(&c->p->arena, (size_t)n, sizeof *c->to->read);
    c->to->nops = c->to->nreads = 0;
    copy_node(c, root);
}

static void shift_items(struct item *item, int n, int from, int by) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_RECUR)
            shift_items(item[i].recur->item, item[i].recur->nitems, from, by);
        else if (item[i].kind == ITEM_STMT && item[i].stmt >= from)
            item[i].stmt += by;
    }
}

/* Statements from `stmt` on, and what stands behind them, go on by n; the arrays have room. */
static void open_gap(struct program *p, int stmt, int n) {
    int at = 0;
    while (at < p->nitems && !(p->item[at].kind == ITEM_STMT && p->item[at].stmt == stmt)) at++;
    assert(at < p->nitems);
    memmove(p->stmt + stmt + n, p->stmt + stmt, (size_t)(p->nstmts - stmt) * sizeof *p->stmt);
    p->nstmts += n;
    shift_items(p->item, p->nitems, stmt, n);
    memmove(p->item + at + n, p->item + at, (size_t)(p->nitems - at) * sizeof *p->item);
    p->nitems += n;
    for (int k = 0; k < n; k++)
        p->item[at + k] = (struct item){.kind = ITEM_STMT, .stmt = stmt + k};
}

void program_make_room(struct program *p, int stmt, int n) {
    p->stmt = arena_extended(&p->arena, p->stmt, (size_t)p->nstmts, (size_t)n, sizeof *p->stmt);
    p->item = arena_extended(&p->arena, p->item, (size_t)p->nitems, (size_t)n, sizeof *p->item);
    open_gap(p, stmt, n);
    memset(p->stmt + stmt, 0, (size_t)n * sizeof *p->stmt);
}

struct division {
    struct buffer buffer[MAX_CUTS]; /* the temporaries, to stand behind the program's own */
    struct stmt part[MAX_CUTS];     /* what fills them */
    struct stmt rest;               /* what is left of the statement */
};

static void divide(struct program *p, int stmt, const int *node, int n, struct division *x) {
    struct stmt old = p->stmt[stmt];
    struct term t = term_of(&p->arena, p, &old);
    struct access temporary[MAX_CUTS];
    assert(n <= MAX_CUTS && old.nwhere == 0);
    for (int k = 0; k < n; k++) {
        uint64_t axes = node_axes(&t, node[k]) & old.axes;
        temporary[k] =
            open_temporary(p, &old, axes, old.op[node[k]].type, p->nbuffers + k, &x->buffer[k]);
        x->part[k] = (struct stmt){.combine = COMBINE_SET,
                                   .dst = temporary[k],
                                   .axes = axes,
                                   .at = old.at,
                                   .scope = old.scope};
        struct copier c = {.p = p, .from = &old, .to = &x->part[k]};
        copy_tree(&c, node[k]);
    }
    x->rest = old;
    struct copier c = {p, &old, &x->rest, node, temporary, n};
    copy_tree(&c, old.nops - 1);
}

/* An array of the program with room for more entries: grown in steps that double it. */
static void *with_room(struct arena *a, void *now, void *mine, int n, int more, int *cap,
                       size_t size) {
    if (now == mine && n + more <= *cap) return now;
    *cap = 2 * (n + more);
    char *grown = arena_array(a, (size_t)*cap, size);
    memcpy(grown, now, (size_t)n * size);
    return grown;
}

void program_cut(struct program *p, struct room *room, int stmt, const int *node, int n) {
    struct division x;
    divide(p, stmt, node, n, &x);
    room->stmt = p->stmt =
        with_room(&p->arena, p->stmt, room->stmt, p->nstmts, n, &room->stmts, sizeof *p->stmt);
    room->item = p->item =
        with_room(&p->arena, p->item, room->item, p->nitems, n, &room->items, sizeof *p->item);
    room->buffer = p->buffer = with_room(&p->arena, p->buffer, room->buffer, p->nbuffers, n,
                                         &room->buffers, sizeof *p->buffer);
    for (int k = 0; k < n; k++) {
        x.buffer[k].name = fresh_name(p, x.buffer[k].name);
        p->buffer[p->nbuffers++] = x.buffer[k];
    }
    open_gap(p, stmt, n);
    memcpy(p->stmt + stmt, x.part, (size_t)n * sizeof *x.part);
    p->stmt[stmt + n] = x.rest;
}

/* The view has arrays of its own: one statement is another, temporaries stand behind its buffers.
 */
static void view_open(struct program *view, int stmt, const struct stmt *with,
                      const struct buffer *more, int n) {
    struct buffer *buffer = arena_extended(&view->arena, view->buffer, (size_t)view->nbuffers,
                                           (size_t)n, sizeof *buffer);
    memcpy(buffer + view->nbuffers, more, (size_t)n * sizeof *more);
    view->buffer = buffer;
    view->nbuffers += n;
    view->stmt = arena_copy(&view->arena, view->stmt, (size_t)view->nstmts * sizeof *view->stmt);
    view->stmt[stmt] = *with;
}

void view_rest(struct program *view, int stmt, const int *node, int n, bool once) {
    struct division x;
    divide(view, stmt, node, n, &x);
    view_open(view, stmt, &x.rest, x.buffer, n);
    for (int k = 0; k < n && once; k++)
        if (stmt_steady(view, &x.part[k])) view->buffer[x.part[k].dst.buffer].role = ROLE_CONST;
}

void view_part(struct program *view, int stmt, int node) {
    struct division x;
    divide(view, stmt, &node, 1, &x);
    view_open(view, stmt, &x.part[0], x.buffer, 1);
}

void stmt_normalise(struct program *p, int stmt) {
    struct stmt old = p->stmt[stmt];
    struct copier c = {.p = p, .from = &old, .to = &p->stmt[stmt]};
    copy_tree(&c, old.nops - 1);
}

bool term_reads(const struct stmt *s, int node, int read) {
    const struct op *o = &s->op[node];
    bool reads = o->code == OP_READ && o->read == read;
    for (int k = 0; k < op_info[o->code].arity; k++) reads |= term_reads(s, o->arg[k], read);
    return reads;
}

int term_size(const struct stmt *s, int node) {
    return tree_size(s, node);
}
