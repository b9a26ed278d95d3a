/* Temporaries between two statements that could be one: t = a * b, c += t is c += a * b. */
#include "ir/program.h"

#include <string.h>

struct forward {
    struct program *p;
    int buffer, from, to, read; /* from writes the buffer, to has the only read of it */
    int axis[MAX_AXES];         /* axis of `from` -> axis of `to` */
};

static bool items_hold(const struct item *item, int n, int buffer) {
    bool held = false;
    for (int i = 0; i < n && !held; i++) {
        const struct recur *r = item[i].kind == ITEM_RECUR ? item[i].recur : NULL;
        const struct call *c = item[i].kind == ITEM_CALL ? item[i].call : NULL;
        for (int s = 0; r && s < r->nstates; s++)
            held |= r->state[s].current == buffer || r->state[s].next == buffer ||
                    r->state[s].from == buffer || r->state[s].to == buffer;
        for (int k = 0; c && k < c->nreads; k++) held |= c->read[k] == buffer;
        for (int k = 0; c && k < c->nwrites; k++) held |= c->write[k] == buffer;
        held = held || (r && items_hold(r->item, r->nitems, buffer));
    }
    return held;
}

bool program_held(const struct program *p, int buffer) {
    return items_hold(p->item, p->nitems, buffer);
}

int program_item(const struct program *p, int stmt) {
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].kind == ITEM_STMT && p->item[i].stmt == stmt) return i;
    return -1;
}

/* One writer, then one read. */
static bool find_users(struct forward *f) {
    const struct program *p = f->p;
    f->from = f->to = -1;
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *x = &p->stmt[s];
        if (x->dst.buffer == f->buffer) {
            if (f->from >= 0 || x->combine != COMBINE_SET) return false;
            f->from = s;
        }
        for (int r = 0; r < x->nreads; r++) {
            if (x->read[r].buffer != f->buffer) continue;
            if (f->to >= 0) return false;
            f->to = s;
            f->read = r;
        }
    }
    return f->from >= 0 && f->to > f->from && program_item(p, f->from) >= 0 &&
           program_item(p, f->to) >= 0;
}

/* The axis that alone is the index of a dimension over its whole extent; -1: none is. */
static int plain_axis(const struct program *p, const struct access *a, int dim) {
    int found = -1;
    if (access_coef(p, a, dim, p->naxes) != 0 || a->has_fill) return -1;
    for (int x = 0; x < p->naxes; x++) {
        if (!access_coef(p, a, dim, x)) continue;
        if (found >= 0 || access_coef(p, a, dim, x) != 1) return -1;
        found = x;
    }
    return found >= 0 && p->axis[found].extent == p->buffer[a->buffer].extent[dim] ? found : -1;
}

/* Each point of `to` takes one element, and each element is taken once. */
static bool match_axes(struct forward *f) {
    const struct program *p = f->p;
    const struct stmt *from = &p->stmt[f->from], *to = &p->stmt[f->to];
    uint64_t in = 0, out = 0;
    for (int d = 0; d < p->buffer[f->buffer].ndims; d++) {
        int a = plain_axis(p, &from->dst, d), b = plain_axis(p, &to->read[f->read], d);
        if (a < 0 || b < 0 || in >> a & 1 || out >> b & 1) return false;
        if (p->axis[a].sequential || p->axis[b].sequential) return false;
        in |= UINT64_C(1) << a;
        out |= UINT64_C(1) << b;
        f->axis[a] = b;
    }
    return in == from->axes && out == to->axes && !from->nwhere && !to->nwhere;
}

/* What `from` reads is still there at `to`, which does not write it either. */
static bool reads_last(const struct forward *f) {
    const struct program *p = f->p;
    const struct stmt *from = &p->stmt[f->from];
    for (int i = program_item(p, f->from) + 1; i <= program_item(p, f->to); i++) {
        const struct item *x = &p->item[i];
        if (x->kind != ITEM_STMT) return false;
        for (int r = 0; r < from->nreads; r++)
            if (p->stmt[x->stmt].dst.buffer == from->read[r].buffer) return false;
    }
    return true;
}

/* Nothing but casts stands between the read and what the statement accumulates. */
static bool read_alone(const struct stmt *s, int read) {
    int n = s->nops - 1;
    while (s->op[n].code == OP_CAST) n = s->op[n].arg[0];
    return s->combine != COMBINE_SET && s->op[n].code == OP_READ && s->op[n].read == read;
}

static struct access renamed(const struct forward *f, const struct access *a) {
    struct program *p = f->p;
    struct access b = *a;
    size_t width = (size_t)p->naxes + 1;
    int ndims = p->buffer[a->buffer].ndims;
    b.coef = arena_array(&p->arena, width * (size_t)ndims, sizeof *b.coef);
    for (int d = 0; d < ndims; d++) {
        for (int x = 0; x < p->naxes; x++)
            if (access_coef(p, a, d, x))
                b.coef[(size_t)d * width + (size_t)f->axis[x]] = access_coef(p, a, d, x);
        b.coef[(size_t)d * width + width - 1] = access_coef(p, a, d, p->naxes);
    }
    return b;
}

/* The ops of `from` come first, then those of `to`, whose read becomes their value. */
static void join(struct forward *f) {
    struct program *p = f->p;
    const struct stmt *from = &p->stmt[f->from];
    struct stmt *to = &p->stmt[f->to];
    int n = from->nops, reads = to->nreads;
    struct op *op = arena_array(&p->arena, (size_t)(n + to->nops), sizeof *op);
    struct access *read = arena_array(&p->arena, (size_t)(reads + from->nreads), sizeof *read);
    memcpy(read, to->read, (size_t)reads * sizeof *read);
    for (int r = 0; r < from->nreads; r++) read[reads + r] = renamed(f, &from->read[r]);
    for (int i = 0; i < n; i++) {
        op[i] = from->op[i];
        if (op[i].code == OP_READ) op[i].read += reads;
        if (op[i].code == OP_AXIS) op[i].axis = f->axis[op[i].axis];
    }
    int kept = 0, *now = arena_array(&p->arena, (size_t)to->nops, sizeof *now);
    for (int i = 0; i < to->nops; i++) {
        struct op x = to->op[i];
        if (x.code == OP_READ && x.read == f->read) {
            now[i] = n - 1;
            continue;
        }
        for (int k = 0; k < op_info[x.code].arity; k++) x.arg[k] = now[x.arg[k]];
        now[i] = n + kept;
        op[n + kept++] = x;
    }
    to->op = op;
    to->nops = n + kept;
    to->read = read;
    to->nreads = reads + from->nreads;
}

static void drop_read(struct stmt *s, int read) {
    memmove(s->read + read, s->read + read + 1, (size_t)(s->nreads - read - 1) * sizeof *s->read);
    s->nreads--;
    for (int i = 0; i < s->nops; i++)
        if (s->op[i].code == OP_READ && s->op[i].read > read) s->op[i].read--;
}

static void renumber_items(struct item *item, int n, int stmt) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_RECUR)
            renumber_items(item[i].recur->item, item[i].recur->nitems, stmt);
        else if (item[i].kind == ITEM_STMT && item[i].stmt > stmt)
            item[i].stmt--;
    }
}

void program_drop_stmt(struct program *p, int stmt) {
    int at = program_item(p, stmt);
    memmove(p->item + at, p->item + at + 1, (size_t)(p->nitems - at - 1) * sizeof *p->item);
    p->nitems--;
    renumber_items(p->item, p->nitems, stmt);
    memmove(p->stmt + stmt, p->stmt + stmt + 1, (size_t)(p->nstmts - stmt - 1) * sizeof *p->stmt);
    p->nstmts--;
}

static void down(int *buffer, int gone) {
    if (*buffer > gone) --*buffer;
}

static void renumber_buffers(struct item *item, int n, int gone) {
    for (int i = 0; i < n; i++) {
        struct item *x = &item[i];
        if (x->kind == ITEM_CALL) {
            for (int r = 0; r < x->call->nreads; r++) down(&x->call->read[r], gone);
            for (int w = 0; w < x->call->nwrites; w++) down(&x->call->write[w], gone);
        } else if (x->kind == ITEM_RECUR) {
            for (int s = 0; s < x->recur->nstates; s++) {
                down(&x->recur->state[s].current, gone);
                down(&x->recur->state[s].next, gone);
                down(&x->recur->state[s].from, gone);
                down(&x->recur->state[s].to, gone);
            }
            renumber_buffers(x->recur->item, x->recur->nitems, gone);
        }
    }
}

void program_drop_buffer(struct program *p, int gone) {
    for (int s = 0; s < p->nstmts; s++) {
        down(&p->stmt[s].dst.buffer, gone);
        for (int r = 0; r < p->stmt[s].nreads; r++) down(&p->stmt[s].read[r].buffer, gone);
    }
    renumber_buffers(p->item, p->nitems, gone);
    memmove(p->buffer + gone, p->buffer + gone + 1,
            (size_t)(p->nbuffers - gone - 1) * sizeof *p->buffer);
    p->nbuffers--;
    if (gone >= p->nplaces) return;
    memmove(p->buffer_at + gone, p->buffer_at + gone + 1,
            (size_t)(p->nplaces - gone - 1) * sizeof *p->buffer_at);
    p->nplaces--;
}

static bool forward_one(struct program *p, int buffer, bool all) {
    struct forward f = {.p = p, .buffer = buffer};
    enum type t = p->buffer[buffer].type;
    if (p->buffer[buffer].role != ROLE_TEMP || t == TYPE_F16 || t == TYPE_BF16) return false;
    if (program_held(p, buffer) || !find_users(&f) || !match_axes(&f) || !reads_last(&f))
        return false;
    if (!all && !read_alone(&p->stmt[f.to], f.read)) return false;
    join(&f);
    drop_read(&p->stmt[f.to], f.read);
    program_drop_stmt(p, f.from);
    program_drop_buffer(p, buffer);
    return true;
}

int program_forward(struct program *p, bool all) {
    int n = 0;
    for (int b = 0; b < p->nbuffers; b++)
        if (forward_one(p, b, all)) {
            n++;
            b = -1;
        }
    return n;
}
