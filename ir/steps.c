#include "ir/steps.h"
#include "ir/lexer.h"

#include <string.h>

/* ---- axes ---- */
static int64_t *with_column(struct arena *a, const int64_t *coef, int rows, int n, int at) {
    int64_t *out = arena_array(a, (size_t)rows * (size_t)(n + 2) + 1, sizeof *out);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k <= n; k++) out[r * (n + 2) + k + (k >= at)] = coef[r * (n + 1) + k];
    return out;
}

void stmt_add_axis(struct program *p, struct stmt *s, int at) {
    int n = p->naxes;
    uint64_t low = ((uint64_t)1 << at) - 1;
    s->dst.coef = with_column(&p->arena, s->dst.coef, p->buffer[s->dst.buffer].ndims, n, at);
    for (int r = 0; r < s->nreads; r++)
        s->read[r].coef =
            with_column(&p->arena, s->read[r].coef, p->buffer[s->read[r].buffer].ndims, n, at);
    for (int w = 0; w < s->nwhere; w++)
        s->where[w].coef = with_column(&p->arena, s->where[w].coef, 1, n, at);
    for (int o = 0; o < s->nops; o++)
        if (s->op[o].code == OP_AXIS && s->op[o].axis >= at) s->op[o].axis++;
    s->axes = (s->axes & low) | (s->axes & ~low) << 1;
}

int program_add_axis(struct program *p, const char *name, int64_t extent, int at) {
    int n = p->naxes;
    if (n == MAX_AXES) return -1;
    for (int s = 0; s < p->nstmts; s++) stmt_add_axis(p, &p->stmt[s], at);
    struct axis *axis = arena_array(&p->arena, (size_t)n + 1, sizeof *axis);
    memcpy(axis, p->axis, sizeof *axis * (size_t)at);
    memcpy(axis + at + 1, p->axis + at, sizeof *axis * (size_t)(n - at));
    axis[at] = (struct axis){.name = arena_strdup(&p->arena, name), .extent = extent, .param = -1};
    p->axis = axis;
    p->naxes++;
    return at;
}

static bool taken(const struct program *p, const char *name) {
    for (int a = 0; a < p->naxes; a++)
        if (!strcmp(p->axis[a].name, name)) return true;
    for (int k = 0; k < p->nparams; k++)
        if (!strcmp(p->param[k].name, name)) return true;
    return is_keyword(name, strlen(name)) || program_buffer(p, name) >= 0;
}

/* Long names are cut: with the number they stay within what the language reads. */
char *program_unique(struct program *p, const char *base, const char *suffix) {
    enum { BASE = 160, SUFFIX = 64 };
    char *name = arena_printf(&p->arena, "%.*s_%.*s", BASE, base, SUFFIX, suffix);
    for (char *c = name; *c; c++)
        if (*c == '\'') *c = '_';
    const char *stem = name;
    for (int i = 2; taken(p, name); i++) name = arena_printf(&p->arena, "%s%d", stem, i);
    return name;
}

int program_copy_axis(struct program *p, const char *name, int64_t extent, int n, uint64_t *used) {
    int a = 0;
    while (a < n && (p->axis[a].extent != extent || p->axis[a].sequential || *used >> a & 1)) a++;
    if (a == n) a = program_add_axis(p, program_unique(p, name, "x"), extent, n);
    if (a >= 0) *used |= (uint64_t)1 << a;
    return a;
}

/* ---- opening ---- */
struct opening {
    struct program *p;
    struct arena *arena;
    struct steps *out;
    const struct recur **recur; /* of each scope */
    int *order, *scope, n, cap; /* statements in the order of execution, their scopes */
    int cap_scopes, cap_slices;
    bool failed;
};

const struct call *items_call(const struct item *item, int n) {
    const struct call *found = NULL;
    for (int k = 0; k < n && !found; k++) {
        if (item[k].kind == ITEM_CALL) found = item[k].call;
        if (item[k].kind == ITEM_RECUR)
            found = items_call(item[k].recur->item, item[k].recur->nitems);
    }
    return found;
}

static bool has_recurrence(const struct program *p) {
    for (int k = 0; k < p->nitems; k++)
        if (p->item[k].kind == ITEM_RECUR) return true;
    return false;
}

static void append(struct opening *o, int stmt, int scope) {
    int cap = o->cap;
    GROW(o->arena, o->order, o->n, cap);
    GROW(o->arena, o->scope, o->n, o->cap);
    o->order[o->n] = stmt;
    o->scope[o->n++] = scope;
}

static struct access whole_access(struct program *p, int buffer, const int *axis) {
    int rows = p->buffer[buffer].ndims, n = p->naxes + 1;
    struct access a = {.buffer = buffer};
    a.coef = arena_array(&p->arena, (size_t)rows * (size_t)n + 1, sizeof *a.coef);
    for (int d = 0; d < rows; d++) a.coef[d * n + axis[d]] = 1;
    return a;
}

/* to = from, whole */
static void append_copy(struct opening *o, int to, int from, int scope, size_t at) {
    struct program *p = o->p;
    int axis[MAX_DIMS];
    uint64_t used = 0;
    for (int d = 0; d < p->buffer[to].ndims; d++) {
        axis[d] = /* a new one stands behind all: the recurrences' keep their numbers */
            program_copy_axis(p, p->buffer[to].name, p->buffer[to].extent[d], p->naxes, &used);
        o->failed |= axis[d] < 0;
        if (o->failed) return;
    }
    enum type t = p->buffer[to].type;
    struct op *op = arena_alloc(&p->arena, sizeof *op);
    *op = (struct op){.code = OP_READ, .type = t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t};
    op->arg[0] = op->arg[1] = op->arg[2] = -1;
    struct stmt s = {
        .combine = COMBINE_SET, .nreads = 1, .nops = 1, .op = op, .axes = used, .at = at};
    s.dst = whole_access(p, to, axis);
    s.read = arena_alloc(&p->arena, sizeof *s.read);
    s.read[0] = whole_access(p, from, axis);
    struct stmt *all = arena_array(&p->arena, (size_t)p->nstmts + 1, sizeof *all);
    memcpy(all, p->stmt, sizeof *all * (size_t)p->nstmts);
    all[p->nstmts] = s;
    p->stmt = all;
    append(o, p->nstmts++, scope);
}

/* The scope of the n-th statement that is directly inside `around`, or `around` itself. */
static int child_at(const struct opening *o, int n, int around) {
    int c = o->scope[n];
    while (c != around && o->out->scope[c].parent != around) c = o->out->scope[c].parent;
    return c;
}

static bool reads_only_same_index(const struct program *p, const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++) {
        struct access a = s->read[r];
        if (a.buffer != buffer) continue;
        a.buffer = s->dst.buffer;
        if (a.has_fill || !access_equal(p, &a, &s->dst)) return false;
    }
    return true;
}

static bool reads(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return false;
}

/* No read of the old value follows the first write of the next one; the statement that writes it
 * may read the same element. Statements [from, n) are the body. */
static bool in_place(const struct opening *o, const struct recur_state *q, int from, int scope) {
    const struct program *p = o->p;
    int first = from;
    while (first < o->n && p->stmt[o->order[first]].dst.buffer != q->next) first++;
    if (first == o->n) return true;
    int child = child_at(o, first, scope), start = first;
    while (child != scope && start > from && child_at(o, start - 1, scope) == child) start--;
    for (int k = start; k < o->n; k++) {
        const struct stmt *s = &p->stmt[o->order[k]];
        if (!reads(s, q->current)) continue;
        if (k != first || child != scope || s->combine != COMBINE_SET ||
            !reads_only_same_index(p, s, q->current))
            return false;
    }
    return true;
}

static void rename_buffer(struct opening *o, int from_stmt, int old, int now) {
    for (int k = from_stmt; k < o->n; k++) {
        struct stmt *s = &o->p->stmt[o->order[k]];
        if (s->dst.buffer == old) s->dst.buffer = now;
        for (int r = 0; r < s->nreads; r++)
            if (s->read[r].buffer == old) s->read[r].buffer = now;
    }
}

static int scope_new(struct opening *o, const struct recur *r, int parent) {
    struct steps *s = o->out;
    GROW(o->arena, s->scope, s->nscopes, o->cap_scopes);
    s->scope[s->nscopes] = (struct scope){r->axis, parent, r->reverse};
    return s->nscopes++;
}

static void open_items(struct opening *o, const struct item *item, int n, int scope);

/* What never runs leaves its axes, and those of recurrences inside, that nothing uses: 0 is for
 * recurrences only. */
static void leave_axes(struct program *p, const struct recur *r) {
    if (p->axis[r->axis].extent == 0) p->axis[r->axis].extent = 1;
    for (int k = 0; k < r->nitems; k++)
        if (r->item[k].kind == ITEM_RECUR) leave_axes(p, r->item[k].recur);
}

static void open_recur(struct opening *o, const struct recur *r, int scope) {
    struct program *p = o->p;
    bool runs = p->axis[r->axis].extent > 0;
    for (int k = 0; k < r->nstates; k++) {
        const struct recur_state *q = &r->state[k];
        o->out->carried[q->current] = true;
        append_copy(o, q->current, q->from, scope, r->at);
    }
    if (!runs) leave_axes(p, r);
    if (runs) {
        int inner = scope_new(o, r, scope), from = o->n;
        open_items(o, r->item, r->nitems, inner);
        for (int k = 0; k < r->nstates && !o->failed; k++) {
            const struct recur_state *q = &r->state[k];
            if (in_place(o, q, from, inner))
                rename_buffer(o, from, q->next, q->current);
            else
                append_copy(o, q->current, q->next, inner, r->at);
        }
    }
    for (int k = 0; k < r->nstates && !o->failed; k++)
        if (r->state[k].to >= 0) append_copy(o, r->state[k].to, r->state[k].current, scope, r->at);
}

static void open_items(struct opening *o, const struct item *item, int n, int scope) {
    for (int k = 0; k < n && !o->failed; k++) {
        if (item[k].kind == ITEM_STMT) append(o, item[k].stmt, scope);
        if (item[k].kind == ITEM_RECUR) open_recur(o, item[k].recur, scope);
    }
}

/* The recurrences' axes last, so that what is declared for all stands before them. */
static void axes_last(struct opening *o) {
    struct program *p = o->p;
    for (int k = 0; k < o->out->nscopes; k++) {
        int old = o->out->scope[k].axis;
        struct axis axis = p->axis[old];
        int to = p->naxes - 1;
        for (int s = 0; s < p->nstmts; s++) {
            struct stmt *st = &p->stmt[s];
            for (int r = -1; r < st->nreads; r++) {
                struct access *a = r < 0 ? &st->dst : &st->read[r];
                for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
                    int64_t *row = a->coef + d * (p->naxes + 1), c = row[old];
                    memmove(row + old, row + old + 1, sizeof *row * (size_t)(to - old));
                    row[to] = c;
                }
            }
            for (int w = 0; w < st->nwhere; w++) {
                int64_t *row = st->where[w].coef, c = row[old];
                memmove(row + old, row + old + 1, sizeof *row * (size_t)(to - old));
                row[to] = c;
            }
            for (int i = 0; i < st->nops; i++)
                if (st->op[i].code == OP_AXIS)
                    st->op[i].axis =
                        st->op[i].axis == old ? to : st->op[i].axis - (st->op[i].axis > old);
            uint64_t low = ((uint64_t)1 << old) - 1;
            st->axes = (st->axes & low) | (st->axes >> 1 & ~low);
        }
        memmove(p->axis + old, p->axis + old + 1, sizeof axis * (size_t)(to - old));
        p->axis[to] = axis;
        for (int j = 0; j < o->out->nscopes; j++)
            if (o->out->scope[j].axis > old) o->out->scope[j].axis--;
        o->out->scope[k].axis = to;
    }
}

/* ---- slices ---- */
static bool depends_on_step(const struct opening *o, const struct stmt *s) {
    const struct program *p = o->p;
    for (int k = 0; k < o->out->nscopes; k++) {
        int a = o->out->scope[k].axis;
        for (int w = 0; w < s->nwhere; w++)
            if (s->where[w].coef[a]) return true;
        for (int i = 0; i < s->nops; i++)
            if (s->op[i].code == OP_AXIS && s->op[i].axis == a) return true;
        for (int r = 0; r < s->nreads; r++)
            if (s->read[r].has_fill && access_varies(p, &s->read[r], a)) return true;
    }
    return false;
}

static bool moved_by_steps(const struct opening *o, const struct access *a) {
    for (int k = 0; k < o->out->nscopes; k++)
        if (access_varies(o->p, a, o->out->scope[k].axis)) return true;
    return false;
}

/* A temporary of one body alone, whole in each step. */
static bool is_local(const struct opening *o, int buffer) {
    if (o->p->buffer[buffer].role != ROLE_TEMP || o->out->carried[buffer]) return false;
    int scope = -2;
    for (int k = 0; k < o->n; k++) {
        const struct stmt *s = &o->p->stmt[o->order[k]];
        for (int r = -1; r < s->nreads; r++) {
            const struct access *a = r < 0 ? &s->dst : &s->read[r];
            if (a->buffer != buffer) continue;
            if ((scope != -2 && scope != o->scope[k]) || moved_by_steps(o, a)) return false;
            scope = o->scope[k];
        }
    }
    return true;
}

static int64_t *step_coefs(const struct opening *o, const struct access *a) {
    int rows = o->p->buffer[a->buffer].ndims, n = o->out->nscopes;
    int64_t *c = arena_array(o->arena, (size_t)rows * (size_t)n + 1, sizeof *c);
    for (int d = 0; d < rows; d++)
        for (int k = 0; k < n; k++) c[d * n + k] = access_coef(o->p, a, d, o->out->scope[k].axis);
    return c;
}

/* A new buffer for what one body sees of another. */
static int slice_of(struct opening *o, const struct access *a, int scope) {
    struct steps *s = o->out;
    struct program *p = o->p;
    int64_t *coef = step_coefs(o, a);
    size_t bytes = sizeof *coef * (size_t)p->buffer[a->buffer].ndims * (size_t)s->nscopes;
    for (int k = 0; k < s->nslices; k++)
        if (s->slice[k].buffer == a->buffer && s->slice[k].scope == scope &&
            !memcmp(s->slice[k].coef, coef, bytes))
            return k;
    GROW(o->arena, s->slice, s->nslices, o->cap_slices);
    s->slice[s->nslices] = (struct slice){a->buffer, scope, coef};
    struct buffer *all = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *all);
    memcpy(all, p->buffer, sizeof *all * (size_t)p->nbuffers);
    struct buffer *b = &all[p->nbuffers];
    *b = p->buffer[a->buffer];
    b->name = program_unique(p, b->name, "step");
    if (b->role == ROLE_TEMP) b->role = ROLE_CONST; /* made of constants alone, before the steps */
    if (b->role != ROLE_IN && b->role != ROLE_CONST) b->role = ROLE_INOUT;
    p->buffer = all;
    p->nbuffers++;
    return s->nslices++;
}

static void take_slice(struct opening *o, struct access *a, int scope) {
    struct program *p = o->p;
    int k = slice_of(o, a, scope), n = p->naxes + 1;
    size_t rows = (size_t)p->buffer[a->buffer].ndims;
    a->coef = arena_copy(&p->arena, a->coef, sizeof *a->coef * rows * (size_t)n);
    for (size_t d = 0; d < rows; d++)
        for (int q = 0; q < o->out->nscopes; q++)
            a->coef[d * (size_t)n + (size_t)o->out->scope[q].axis] = 0;
    a->buffer = o->out->nbuffers + k;
}

/* Two slices of one buffer in one body: what one writes the other may read. */
static bool is_split(const struct opening *o, const struct access *a) {
    const struct steps *s = o->out;
    if (a->buffer < s->nbuffers || o->p->buffer[a->buffer].role != ROLE_INOUT) return false;
    const struct slice *mine = &s->slice[a->buffer - s->nbuffers];
    for (int k = 0; k < s->nslices; k++)
        if (&s->slice[k] != mine && s->slice[k].buffer == mine->buffer &&
            s->slice[k].scope == mine->scope)
            return true;
    return false;
}

static void take_slices(struct opening *o) {
    struct program *p = o->p;
    bool *local = arena_array(o->arena, (size_t)o->out->nbuffers + 1, sizeof *local),
         *seen = arena_array(o->arena, (size_t)o->out->nbuffers + 1, sizeof *seen);
    for (int k = 0; k < o->n; k++) p->stmt[o->order[k]].scope = o->scope[k] + 1;
    for (int b = 0; b < o->out->nbuffers; b++) {
        local[b] = is_local(o, b);
        seen[b] = p->buffer[b].role == ROLE_TEMP && !local[b] && !buffer_steady(p, b);
    }
    for (int b = 0; b < o->out->nbuffers; b++)
        if (seen[b]) p->buffer[b].role = ROLE_INOUT;
    for (int k = 0; k < o->n; k++) {
        struct stmt *s = &p->stmt[o->order[k]];
        s->unmapped = s->scope && depends_on_step(o, s);
        for (int r = -1; s->scope && r < s->nreads; r++) {
            struct access *a = r < 0 ? &s->dst : &s->read[r];
            if (!local[a->buffer]) take_slice(o, a, o->scope[k]);
        }
    }
    for (int k = 0; k < o->n; k++) {
        struct stmt *s = &p->stmt[o->order[k]];
        for (int r = -1; r < s->nreads; r++)
            s->unmapped |= is_split(o, r < 0 ? &s->dst : &s->read[r]);
    }
}

/* Statements numbered as they are executed. */
static void renumber(struct opening *o) {
    struct program *p = o->p;
    struct stmt *stmt = arena_array(&p->arena, (size_t)o->n + 1, sizeof *stmt);
    p->item = arena_array(&p->arena, (size_t)o->n + 1, sizeof *p->item);
    for (int k = 0; k < o->n; k++) {
        stmt[k] = p->stmt[o->order[k]];
        p->item[k] = (struct item){.kind = ITEM_STMT, .stmt = k};
    }
    p->stmt = stmt;
    p->nstmts = p->nitems = o->n;
}

struct program *program_open(const struct program *from, struct arena *arena, struct steps *out) {
    struct program *p = program_copy(from);
    *out = (struct steps){.nbuffers = p->nbuffers};
    if (!has_recurrence(p) || items_call(p->item, p->nitems)) return p;
    struct opening o = {.p = p, .arena = arena, .out = out};
    out->role = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *out->role);
    out->carried = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *out->carried);
    for (int b = 0; b < p->nbuffers; b++) {
        const char *name = p->buffer[b].name;
        size_t n = strlen(name);
        if (p->buffer[b].role != ROLE_STATE) continue;
        p->buffer[b].role = ROLE_TEMP;
        if (name[n - 1] == '\'')
            p->buffer[b].name = program_unique(p, arena_strndup(arena, name, n - 1), "next");
    }
    const struct item *item = p->item;
    open_items(&o, item, p->nitems, -1);
    for (int b = 0; b < p->nbuffers; b++) out->role[b] = p->buffer[b].role;
    axes_last(&o);
    if (!o.failed) take_slices(&o);
    renumber(&o);
    if (!o.failed) return p;
    program_free(p);
    *out = (struct steps){.nbuffers = from->nbuffers};
    return program_copy(from);
}

/* ---- closing ---- */
static void close_access(struct program *p, const struct steps *s, struct access *a) {
    int k = a->buffer - s->nbuffers;
    if (k >= s->nslices) a->buffer -= s->nslices;
    if (k < 0 || k >= s->nslices) return;
    const struct slice *slice = &s->slice[k];
    size_t n = (size_t)p->naxes + 1, rows = (size_t)p->buffer[slice->buffer].ndims;
    a->coef = arena_copy(&p->arena, a->coef, sizeof *a->coef * rows * n);
    for (size_t d = 0; d < rows; d++)
        for (int q = 0; q < s->nscopes; q++)
            a->coef[d * n + (size_t)s->scope[q].axis] =
                slice->coef[d * (size_t)s->nscopes + (size_t)q];
    a->buffer = slice->buffer;
}

void program_close(struct program *p, const struct steps *s) {
    if (!s->role) return;
    for (int k = 0; k < p->nstmts; k++) {
        close_access(p, s, &p->stmt[k].dst);
        for (int r = 0; r < p->stmt[k].nreads; r++) close_access(p, s, &p->stmt[k].read[r]);
    }
    for (int b = 0; b < s->nbuffers; b++) p->buffer[b].role = s->role[b];
    int after = s->nbuffers + s->nslices;
    memmove(p->buffer + s->nbuffers, p->buffer + after,
            sizeof *p->buffer * (size_t)(p->nbuffers - after));
    p->nbuffers -= s->nslices;
}

/* ---- nesting ---- */
static int outermost_below(const struct scope *scope, int inner, int around) {
    while (inner != around && scope[inner].parent != around) inner = scope[inner].parent;
    return inner;
}

static struct item *nest(struct program *p, const struct scope *scope, const int *stmt, int n,
                         int around, int *count) {
    struct item *item = arena_array(&p->arena, (size_t)n + 1, sizeof *item);
    *count = 0;
    for (int k = 0; k < n;) {
        int inner = outermost_below(scope, p->stmt[stmt[k]].scope - 1, around), end = k + 1;
        if (inner == around) {
            item[(*count)++] = (struct item){.kind = ITEM_STMT, .stmt = stmt[k++]};
            continue;
        }
        while (end < n && outermost_below(scope, p->stmt[stmt[end]].scope - 1, around) == inner)
            end++;
        struct recur *r = arena_alloc(&p->arena, sizeof *r);
        *r = (struct recur){.axis = scope[inner].axis, .reverse = scope[inner].reverse};
        r->item = nest(p, scope, stmt + k, end - k, inner, &r->nitems);
        item[(*count)++] = (struct item){.kind = ITEM_RECUR, .recur = r};
        k = end;
    }
    return item;
}

void program_nest(struct program *p, const struct scope *scope, const int *stmt, int n) {
    p->item = nest(p, scope, stmt, n, -1, &p->nitems);
}

struct program *program_closed(const struct program *opened, const struct steps *s) {
    struct program *p = program_copy(opened);
    if (!s->role) return p;
    int *order = arena_array(&p->arena, (size_t)p->nstmts + 1, sizeof *order);
    for (int k = 0; k < p->nstmts; k++) order[k] = k;
    program_close(p, s);
    program_nest(p, s->scope, order, p->nstmts);
    return p;
}
