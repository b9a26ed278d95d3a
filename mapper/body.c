/* Bodies of recurrences: what their statements read and write, and how items come and go. */
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <string.h>

static void note_written(const struct program *p, const struct recur *r, bool *written) {
    for (int k = 0; k < r->nstates; k++)
        written[r->state[k].current] = written[r->state[k].next] = true;
    for (int i = 0; i < r->nitems; i++) {
        const struct item *x = &r->item[i];
        if (x->kind == ITEM_STMT) written[p->stmt[x->stmt].dst.buffer] = true;
        if (x->kind == ITEM_RECUR) {
            note_written(p, x->recur, written);
            for (int k = 0; k < x->recur->nstates; k++)
                if (x->recur->state[k].to >= 0) written[x->recur->state[k].to] = true;
        }
        for (int k = 0; x->kind == ITEM_CALL && k < x->call->nwrites; k++)
            written[x->call->write[k]] = true;
    }
}

void body_renew(struct body *b) {
    b->written = arena_array(&b->p->arena, (size_t)b->p->nbuffers + 1, sizeof *b->written);
    note_written(b->p, b->r, b->written);
}

bool body_open(struct program *p, int at, struct body *b) {
    if (p->item[at].kind != ITEM_RECUR) return false;
    *b = (struct body){.p = p, .r = p->item[at].recur, .at = at};
    body_renew(b);
    return true;
}

struct stmt *body_stmt(const struct body *b, int item) {
    const struct item *x = &b->r->item[item];
    return x->kind == ITEM_STMT ? &b->p->stmt[x->stmt] : NULL;
}

bool body_reads_inputs(const struct body *b, const struct stmt *s) {
    bool fits = s->nwhere == 0 && !access_varies(b->p, &s->dst, b->r->axis);
    for (int r = 0; r < s->nreads; r++) fits &= !b->written[s->read[r].buffer];
    for (int i = 0; i < s->nops; i++)
        fits &= s->op[i].code != OP_AXIS || s->op[i].axis != b->r->axis;
    return fits;
}

bool stmt_reads(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return false;
}

/* The items among which the recurrence stands. */
static struct item **list_of(const struct body *b, int **n) {
    *n = b->around ? &b->around->r->nitems : &b->p->nitems;
    return b->around ? &b->around->r->item : &b->p->item;
}

bool body_owns(const struct body *b, int buffer) {
    for (const struct body *o = b; o; o = o->around) {
        int *n;
        const struct item *item = *list_of(o, &n);
        for (int i = 0; i < *n; i++)
            if (i != o->at && items_touch(b->p, &item[i], 1, buffer)) return false;
    }
    for (int i = 0; i < b->r->nitems; i++)
        if (!body_stmt(b, i) && items_touch(b->p, &b->r->item[i], 1, buffer)) return false;
    return b->p->buffer[buffer].role == ROLE_TEMP;
}

int body_find_set(const struct body *b, int sum, bool *alone) {
    const struct stmt *s = body_stmt(b, sum);
    int buffer = s->dst.buffer, sets = 0, at = -1;
    *alone = true;
    for (int i = 0; i < b->r->nitems; i++) {
        const struct stmt *o = body_stmt(b, i);
        if (!o || i == sum) continue;
        if (i < sum && stmt_reads(o, buffer)) return -1;
        if (o->dst.buffer != buffer) continue;
        if (o->combine == COMBINE_SET)
            sets++, at = i;
        else if (o->combine != COMBINE_ADD)
            return -1;
        else
            *alone = false;
    }
    const struct stmt *set = at >= 0 ? body_stmt(b, at) : NULL;
    return sets == 1 && at < sum && body_reads_inputs(b, set) &&
                   access_equal(b->p, &set->dst, &s->dst) && body_owns(b, buffer)
               ? at
               : -1;
}

struct access body_row(struct program *p, int all, const struct access *a) {
    struct access c = rw_access(p, all);
    int rows = p->buffer[all].ndims - 1;
    c.has_fill = a->has_fill;
    c.fill = a->fill;
    for (int d = 0; d < rows; d++)
        memcpy(rw_row(p, &c, d + 1), rw_row(p, a, d), ((size_t)p->naxes + 1) * sizeof *a->coef);
    return c;
}

int body_append(struct program *p, struct stmt s) {
    struct stmt *all = arena_array(&p->arena, (size_t)p->nstmts + 1, sizeof *all);
    memcpy(all, p->stmt, sizeof *all * (size_t)p->nstmts);
    all[p->nstmts] = s;
    p->stmt = all;
    return p->nstmts++;
}

void body_insert_before(struct body *b, const int *stmt, int n) {
    int *nitems;
    struct item **list = list_of(b, &nitems);
    struct item *item = arena_array(&b->p->arena, (size_t)(*nitems + n), sizeof *item);
    memcpy(item, *list, sizeof *item * (size_t)b->at);
    for (int k = 0; k < n; k++) item[b->at + k] = (struct item){.kind = ITEM_STMT, .stmt = stmt[k]};
    memcpy(item + b->at + n, *list + b->at, sizeof *item * (size_t)(*nitems - b->at));
    *list = item;
    *nitems += n;
    b->at += n;
}

void body_insert(struct body *b, int item, int stmt) {
    struct recur *r = b->r;
    struct item *all = arena_array(&b->p->arena, (size_t)r->nitems + 1, sizeof *all);
    memcpy(all, r->item, sizeof *all * (size_t)item);
    all[item] = (struct item){.kind = ITEM_STMT, .stmt = stmt};
    memcpy(all + item + 1, r->item + item, sizeof *all * (size_t)(r->nitems - item));
    r->item = all;
    r->nitems++;
}

void body_drop(struct body *b, int item) {
    struct recur *r = b->r;
    memmove(r->item + item, r->item + item + 1, sizeof *r->item * (size_t)(r->nitems - item - 1));
    r->nitems--;
}

bool body_is_plain(const struct body *b) {
    for (int i = 0; i < b->r->nitems; i++) {
        const struct stmt *s = body_stmt(b, i);
        if (!s || s->nwhere) return false;
        for (int o = 0; o < s->nops; o++)
            if (s->op[o].code == OP_AXIS) return false;
    }
    return b->r->nstates > 0;
}
