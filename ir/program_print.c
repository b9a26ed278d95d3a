#include "ir/print.h"
#include "ir/program.h"

#include <math.h>
#include <string.h>

/* What the parser would know about the type of an operand without being told: -1 nothing. */
enum { TYPE_NOT_KNOWN = -1 };

struct printer {
    const struct program *p;
    const struct stmt *s;
    struct text *out;
    struct stmt_mark *mark; /* NULL: none wanted */
};

static void print_row(const struct program *p, const int64_t *row, struct text *out) {
    bool first = true;
    for (int a = 0; a < p->naxes; a++) {
        int64_t c = row[a];
        if (c == 0) continue;
        if (!first)
            text_printf(out, " %c ", c < 0 ? '-' : '+');
        else if (c == -1)
            text_printf(out, "-");
        uint64_t magnitude = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
        if (magnitude != 1)
            text_printf(out, "%s%" PRIu64 " * ", first && c < 0 ? "-" : "", magnitude);
        text_printf(out, "%s", p->axis[a].name);
        first = false;
    }
    int64_t k = row[p->naxes];
    if (first)
        text_printf(out, "%" PRId64, k);
    else if (k != 0)
        text_printf(out, " %c %" PRIu64, k < 0 ? '-' : '+', k < 0 ? 0 - (uint64_t)k : (uint64_t)k);
}

static void print_value(enum type t, union value v, struct text *out) {
    if (!type_is_float(t) && t == TYPE_U64)
        text_printf(out, "%" PRIu64, (uint64_t)v.i);
    else if (!type_is_float(t))
        text_printf(out, "%" PRId64, v.i);
    else if (v.f == 0 && !signbit(v.f))
        text_printf(out, "0");
    else
        print_float(v.f, t, out);
}

void access_print(const struct program *p, const struct access *a, struct text *out) {
    const struct buffer *f = &p->buffer[a->buffer];
    text_printf(out, "%s[", f->name);
    for (int d = 0; d < f->ndims; d++) {
        if (d > 0) text_printf(out, ", ");
        print_row(p, a->coef + (size_t)d * ((size_t)p->naxes + 1), out);
    }
    if (a->has_fill) {
        text_printf(out, " else ");
        print_value(f->type, a->fill, out);
    }
    text_printf(out, "]");
}

static void print_marked(const struct printer *w, const struct access *a) {
    size_t start = w->out->n;
    access_print(w->p, a, w->out);
    if (!w->mark || w->mark->access != a) return;
    w->mark->at = start;
    w->mark->n = w->out->n - start;
}

/* Literals and axes take their type from the other operand or from outside; everything else shows
 * its own. */
static bool shows_type(const struct stmt *s, int n) {
    const struct op *o = &s->op[n];
    if (o->code == OP_LITERAL || o->code == OP_AXIS) return false;
    if (o->code == OP_READ || o->code == OP_CAST || op_info[o->code].flags & OP_TO_BOOL)
        return true;
    for (int k = o->code == OP_SELECT; k < op_info[o->code].arity; k++)
        if (shows_type(s, o->arg[k])) return true;
    return false;
}

static void print_op(const struct printer *w, int n, int known, int precedence);

/* A read of f16 is widened where it is read; as text that is a cast. */
static void print_leaf(const struct printer *w, const struct op *o, int known) {
    const struct access *a = &w->s->read[o->code == OP_READ ? o->read : 0];
    bool widened = o->code == OP_READ && w->p->buffer[a->buffer].type != o->type;
    bool cast = o->code == OP_READ ? widened : known != (int)o->type;
    if (cast) text_printf(w->out, "%s(", type_name(o->type));
    if (o->code == OP_READ)
        print_marked(w, a);
    else if (o->code == OP_AXIS)
        text_printf(w->out, "%s", w->p->axis[o->axis].name);
    else
        print_value(o->type, o->value, w->out);
    if (cast) text_printf(w->out, ")");
}

static void print_infix(const struct printer *w, const struct op *o, int known, int precedence) {
    int own = op_info[o->code].precedence;
    if (own < precedence) text_printf(w->out, "(");
    print_op(w, o->arg[0], known, own);
    text_printf(w->out, " %s ", op_info[o->code].spelling);
    print_op(w, o->arg[1], known, own + 1);
    if (own < precedence) text_printf(w->out, ")");
}

static void print_prefix(const struct printer *w, const struct op *o, int known) {
    bool bracket = o->code == OP_NEG && w->s->op[o->arg[0]].code == OP_LITERAL;
    text_printf(w->out, "%s%s", op_info[o->code].spelling, bracket ? "(" : "");
    print_op(w, o->arg[0], known, op_info[o->code].precedence);
    if (bracket) text_printf(w->out, ")");
}

static void print_call(const struct printer *w, const struct op *o, int known) {
    bool cast = o->code == OP_CAST;
    text_printf(w->out, "%s(", cast ? type_name(o->type) : op_info[o->code].spelling);
    for (int k = 0; k < op_info[o->code].arity; k++) {
        if (k > 0) text_printf(w->out, ", ");
        print_op(w, o->arg[k], o->code == OP_SELECT && k == 0 ? TYPE_BOOL : known, 0);
    }
    text_printf(w->out, ")");
}

/* known: the type that the place gives to what has none of its own, or TYPE_NOT_KNOWN */
static void print_whole(const struct printer *w, int n, int known, int precedence) {
    const struct op *o = &w->s->op[n];
    int arity = op_info[o->code].arity;
    if (arity == 0) {
        print_leaf(w, o, known);
        return;
    }
    if (o->code == OP_CAST || op_info[o->code].flags & OP_TO_BOOL) known = TYPE_NOT_KNOWN;
    for (int k = o->code == OP_SELECT; k < arity && o->code != OP_CAST; k++)
        if (shows_type(w->s, o->arg[k])) known = (int)w->s->op[o->arg[k]].type;
    switch (op_info[o->code].notation) {
    case NOTE_INFIX:
        print_infix(w, o, known, precedence);
        return;
    case NOTE_PREFIX:
        print_prefix(w, o, known);
        return;
    default:
        print_call(w, o, known);
        return;
    }
}

static void print_op(const struct printer *w, int n, int known, int precedence) {
    size_t start = w->out->n;
    print_whole(w, n, known, precedence);
    if (!w->mark || w->mark->access || w->mark->op != n) return;
    w->mark->at = start;
    w->mark->n = w->out->n - start;
}

/* The cast to f16 of a whole value, which is the rounding at the store; a plain copy needs none. */
static void print_root(const struct printer *w) {
    const struct stmt *s = w->s;
    const struct op *root = &s->op[s->nops - 1];
    enum type dst = w->p->buffer[s->dst.buffer].type;
    bool narrow = dst != root->type;
    if (narrow && root->code == OP_READ && w->p->buffer[s->read[root->read].buffer].type == dst) {
        print_marked(w, &s->read[root->read]);
        return;
    }
    bool cast = narrow && shows_type(s, s->nops - 1);
    if (cast) text_printf(w->out, "%s(", type_name(dst));
    print_op(w, s->nops - 1, (int)root->type, 0);
    if (cast) text_printf(w->out, ")");
}

void stmt_print(const struct program *p, const struct stmt *s, struct text *out,
                struct stmt_mark *mark) {
    struct printer w = {p, s, out, mark};
    print_marked(&w, &s->dst);
    text_printf(out, " %s ", combiner_spelling[s->combine]);
    print_root(&w);
    for (int k = 0; k < s->nwhere; k++) {
        text_printf(out, k ? " and " : " where ");
        print_row(p, s->where[k].coef, out);
        text_printf(out, " >= 0");
    }
}

static void print_extent(const struct program *p, int64_t extent, int size, struct text *out) {
    if (size)
        text_printf(out, "%s", p->size[size - 1].name);
    else
        text_printf(out, "%" PRId64, extent);
}

static void print_shape(const struct program *p, const struct buffer *f, struct text *out) {
    text_printf(out, "%s: %s[", f->name, type_name(f->type));
    for (int d = 0; d < f->ndims; d++) {
        if (d) text_printf(out, ", ");
        print_extent(p, f->extent[d], d ? 0 : f->size, out);
    }
    text_printf(out, "]");
}

static void print_buffer_names(const struct program *p, const int *buffer, int n,
                               struct text *out) {
    text_printf(out, "(");
    for (int k = 0; k < n; k++) text_printf(out, "%s%s", k ? ", " : "", p->buffer[buffer[k]].name);
    text_printf(out, ")");
}

/* Where declarations go, so that reading them back numbers buffers and axes as they are: scope 0 is
 * the kernel's body, the others the recurrences in the order of the text. A thing belongs to the
 * outermost scope that has no recurrence's own buffers and axes, which are introduced by its head,
 * before it. */
struct scopes {
    int parent, depth;
    int first_state; /* the least buffer that this recurrence or one inside it introduces */
    int axis;
};

struct layout {
    const struct program *p;
    struct text *out;
    struct arena arena;
    struct scopes *scope;
    int nscopes, cap;
    int *buffer_scope, *axis_scope; /* -1: not used */
    bool *buffer_done, *axis_done;
};

static int common_scope(const struct layout *l, int a, int b) {
    if (a < 0) return b;
    while (a != b) {
        if (l->scope[a].depth >= l->scope[b].depth)
            a = l->scope[a].parent;
        else
            b = l->scope[b].parent;
    }
    return a;
}

static void use_buffer(struct layout *l, int b, int scope) {
    if (b >= 0) l->buffer_scope[b] = common_scope(l, l->buffer_scope[b], scope);
}

static void use_stmt(struct layout *l, const struct stmt *s, int scope) {
    uint64_t axes = stmt_axes(l->p, s);
    use_buffer(l, s->dst.buffer, scope);
    for (int r = 0; r < s->nreads; r++) use_buffer(l, s->read[r].buffer, scope);
    for (int a = 0; a < l->p->naxes; a++)
        if (axes >> a & 1) l->axis_scope[a] = common_scope(l, l->axis_scope[a], scope);
}

static int scope_new(struct layout *l, int parent) {
    GROW(&l->arena, l->scope, l->nscopes, l->cap);
    int depth = parent < 0 ? 0 : l->scope[parent].depth + 1;
    l->scope[l->nscopes] = (struct scopes){parent, depth, l->p->nbuffers, -1};
    return l->nscopes++;
}

static void use_items(struct layout *l, const struct item *item, int n, int scope) {
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].recur;
        const struct call *c = item[k].call;
        if (item[k].kind == ITEM_STMT) use_stmt(l, &l->p->stmt[item[k].stmt], scope);
        if (item[k].kind == ITEM_CALL) {
            for (int b = 0; b < c->nreads; b++) use_buffer(l, c->read[b], scope);
            for (int b = 0; b < c->nwrites; b++) use_buffer(l, c->write[b], scope);
        }
        if (item[k].kind != ITEM_RECUR) continue;
        int inner = scope_new(l, scope);
        l->scope[inner].axis = r->axis;
        l->axis_scope[r->axis] = inner;
        l->axis_done[r->axis] = true;
        for (int s = 0; s < r->nstates; s++) {
            use_buffer(l, r->state[s].from, scope);
            use_buffer(l, r->state[s].to, scope);
            l->buffer_scope[r->state[s].current] = l->buffer_scope[r->state[s].next] = inner;
            l->buffer_done[r->state[s].current] = l->buffer_done[r->state[s].next] = true;
            for (int o = inner; o > 0; o = l->scope[o].parent)
                if (r->state[s].current < l->scope[o].first_state)
                    l->scope[o].first_state = r->state[s].current;
        }
        use_items(l, r->item, r->nitems, inner);
    }
}

static void declare_buffers(struct layout *l, int scope, int below, int indent) {
    for (int b = 0; b < below; b++) {
        if (l->buffer_scope[b] != scope || l->buffer_done[b]) continue;
        l->buffer_done[b] = true;
        text_printf(l->out, "%*s%s ", indent, "", role_name[l->p->buffer[b].role]);
        print_shape(l->p, &l->p->buffer[b], l->out);
        text_printf(l->out, "\n");
    }
}

static void declare_axes(struct layout *l, int scope, int below, int indent) {
    for (int a = 0; a < below; a++) {
        if (l->axis_scope[a] != scope || l->axis_done[a]) continue;
        l->axis_done[a] = true;
        text_printf(l->out, "%*s%s %s: %" PRId64 "\n", indent, "",
                    l->p->axis[a].sequential ? "seq" : "axes", l->p->axis[a].name,
                    l->p->axis[a].extent);
    }
}

/* Marks what items use, bodies included. */
static void mark_items(const struct program *p, const struct item *item, int n, bool *buffer,
                       uint64_t *axes) {
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].recur;
        const struct call *c = item[k].call;
        const struct stmt *s = item[k].kind == ITEM_STMT ? &p->stmt[item[k].stmt] : NULL;
        if (s) {
            *axes |= stmt_axes(p, s);
            buffer[s->dst.buffer] = true;
        }
        for (int b = 0; s && b < s->nreads; b++) buffer[s->read[b].buffer] = true;
        for (int b = 0; item[k].kind == ITEM_CALL && b < c->nreads; b++) buffer[c->read[b]] = true;
        for (int b = 0; item[k].kind == ITEM_CALL && b < c->nwrites; b++)
            buffer[c->write[b]] = true;
        if (item[k].kind != ITEM_RECUR) continue;
        for (int b = 0; b < r->nstates; b++) {
            buffer[r->state[b].from] = true;
            if (r->state[b].to >= 0) buffer[r->state[b].to] = true;
        }
        mark_items(p, r->item, r->nitems, buffer, axes);
    }
}

/* The first number inside scope `inner` or deeper; 0 when there is none. */
static int first_inside(const struct layout *l, const int *scope_of, int n, int inner) {
    for (int k = 0; k < n; k++)
        for (int s = scope_of[k]; s >= inner; s = l->scope[s].parent)
            if (s == inner) return k;
    return 0;
}

/* Declares, in the order of their numbers, what the item needs of this scope and what comes before
 * what it declares. */
static void declare_for(struct layout *l, const struct item *item, int scope, int inner,
                        int indent) {
    const struct program *p = l->p;
    bool *used = arena_array(&l->arena, (size_t)p->nbuffers + 1, sizeof *used);
    uint64_t axes = 0;
    bool recur = item->kind == ITEM_RECUR;
    int buffers = recur ? first_inside(l, l->buffer_scope, p->nbuffers, inner) : 0;
    int naxes = recur ? first_inside(l, l->axis_scope, p->naxes, inner) : 0;
    mark_items(p, item, 1, used, &axes);
    for (int b = buffers; b < p->nbuffers; b++)
        if (used[b] && l->buffer_scope[b] == scope) buffers = b + 1;
    for (int a = naxes; a < p->naxes; a++)
        if (axes >> a & 1 && l->axis_scope[a] == scope) naxes = a + 1;
    declare_buffers(l, scope, buffers, indent);
    declare_axes(l, scope, naxes, indent);
}

static void print_items(struct layout *l, const struct item *item, int n, int scope, int *inner,
                        int indent);

static void print_steps(const struct program *p, const struct axis *a, struct text *out) {
    print_extent(p, a->extent, a->size, out);
    if (a->group && !a->rest) text_printf(out, " / %" PRId64, a->group);
    if (!a->rest && !a->first) return;
    text_printf(out, " from ");
    print_extent(p, a->first, a->rest ? a->size : 0, out);
    if (a->rest) text_printf(out, " / %" PRId64 " * %" PRId64, a->group, a->group);
}

static void print_recur(struct layout *l, const struct recur *r, int *inner, int indent) {
    const struct program *p = l->p;
    int scope = (*inner)++;
    text_printf(l->out, "%*srecur %s: ", indent, "", p->axis[r->axis].name);
    print_steps(p, &p->axis[r->axis], l->out);
    if (r->reverse) text_printf(l->out, " reverse");
    for (int k = 0; k < r->nstates; k++) {
        const struct recur_state *s = &r->state[k];
        text_printf(l->out, " state ");
        print_shape(p, &p->buffer[s->current], l->out);
        text_printf(l->out, " from %s", p->buffer[s->from].name);
        if (s->to >= 0) text_printf(l->out, " to %s", p->buffer[s->to].name);
    }
    text_printf(l->out, " {\n");
    print_items(l, r->item, r->nitems, scope, inner, indent + 2);
    text_printf(l->out, "%*s}\n", indent, "");
}

static void print_items(struct layout *l, const struct item *item, int n, int scope, int *inner,
                        int indent) {
    for (int k = 0; k < n; k++) {
        declare_for(l, &item[k], scope, *inner, indent);
        if (item[k].kind == ITEM_RECUR) {
            print_recur(l, item[k].recur, inner, indent);
        } else if (item[k].kind == ITEM_STMT) {
            text_printf(l->out, "%*s", indent, "");
            stmt_print(l->p, &l->p->stmt[item[k].stmt], l->out, NULL);
            text_printf(l->out, "\n");
        } else {
            text_printf(l->out, "%*scall %s", indent, "", item[k].call->function);
            print_buffer_names(l->p, item[k].call->read, item[k].call->nreads, l->out);
            text_printf(l->out, " -> ");
            print_buffer_names(l->p, item[k].call->write, item[k].call->nwrites, l->out);
            text_printf(l->out, "\n");
        }
    }
    declare_buffers(l, scope, l->p->nbuffers, indent);
    declare_axes(l, scope, l->p->naxes, indent);
}

static void move_outwards(struct layout *l) {
    for (int b = 0; b < l->p->nbuffers; b++) {
        int *s = &l->buffer_scope[b];
        while (!l->buffer_done[b] && *s > 0 && b < l->scope[*s].first_state)
            *s = l->scope[*s].parent;
    }
    for (int a = 0; a < l->p->naxes; a++) {
        int *s = &l->axis_scope[a];
        while (!l->axis_done[a] && *s > 0 && a < l->scope[*s].axis) *s = l->scope[*s].parent;
    }
}

/* What nothing uses is declared where its predecessor is. */
static void place_unused(int *scope, int n) {
    for (int k = 0; k < n; k++)
        if (scope[k] < 0) scope[k] = k > 0 ? scope[k - 1] : 0;
}

static void layout_open(struct layout *l, const struct program *p, struct text *out) {
    *l = (struct layout){.p = p, .out = out};
    arena_init(&l->arena);
    l->buffer_scope = arena_array(&l->arena, (size_t)p->nbuffers + 1, sizeof *l->buffer_scope);
    l->axis_scope = arena_array(&l->arena, (size_t)p->naxes + 1, sizeof *l->axis_scope);
    l->buffer_done = arena_array(&l->arena, (size_t)p->nbuffers + 1, sizeof *l->buffer_done);
    l->axis_done = arena_array(&l->arena, (size_t)p->naxes + 1, sizeof *l->axis_done);
    for (int b = 0; b < p->nbuffers; b++) l->buffer_scope[b] = -1;
    for (int a = 0; a < p->naxes; a++) l->axis_scope[a] = -1;
    scope_new(l, -1);
    use_items(l, p->item, p->nitems, 0);
    move_outwards(l);
    place_unused(l->buffer_scope, p->nbuffers);
    place_unused(l->axis_scope, p->naxes);
}

void program_print_body(const struct program *p, struct text *out) {
    struct layout l;
    int inner = 1;
    layout_open(&l, p, out);
    for (int b = 0; b < p->nbuffers; b++) l.buffer_done[b] |= p->buffer[b].role < ROLE_TEMP;
    for (int a = 0; a < p->naxes; a++) l.axis_done[a] |= !p->axis[a].sequential;
    print_items(&l, p->item, p->nitems, 0, &inner, 2);
    arena_free(&l.arena);
}

void program_print(const struct program *p, struct text *out) {
    struct layout l;
    int inner = 1;
    layout_open(&l, p, out);
    text_printf(out, "kernel %s(", p->name);
    for (int k = 0; k < p->nsizes; k++)
        text_printf(out, "%s%s=%" PRId64 "..%" PRId64, k ? ", " : "", p->size[k].name,
                    p->size[k].lo, p->size[k].hi);
    text_printf(out, ") {\n");
    print_items(&l, p->item, p->nitems, 0, &inner, 2);
    text_printf(out, "}\n");
    arena_free(&l.arena);
}
