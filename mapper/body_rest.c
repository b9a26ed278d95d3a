/* The steps behind the last whole group of steps: the body as it was, in a recurrence of its own
 * that begins with the states that the groups leave. Where steps of an open length go backwards, it
 * goes first, and the groups begin with its states. */
#include "mapper/body.h"
#include "ir/steps.h"
#include "mapper/rewrite_int.h"

#include <string.h>

struct rest {
    const struct body *body; /* as it was */
    int64_t steps, length;
    bool open, first; /* first: the rest goes before the groups */
    struct recur *r;
};

static int state_there(const struct rest *w, int buffer) {
    const struct recur *from = w->body->r;
    for (int k = 0; k < from->nstates; k++) {
        if (from->state[k].current == buffer) return w->r->state[k].current;
        if (from->state[k].next == buffer) return w->r->state[k].next;
    }
    return buffer;
}

/* Step t of the whole is n · length + t of the rest; the first ones of the array where steps go
 * backwards. Where the length is open, the rest's steps have the numbers of the whole. */
static struct access placed(void *user, const struct access *a, int read) {
    const struct rest *w = user;
    struct program *p = w->body->p;
    struct access x = rw_copy(p, a);
    int step = w->body->r->axis;
    (void)read;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int64_t *row = rw_row(p, &x, d), k = row[step];
        row[step] = 0;
        row[w->r->axis] += k;
        if (!w->r->reverse && !w->open) row[p->naxes] += k * (w->steps / w->length * w->length);
    }
    x.buffer = state_there(w, a->buffer);
    return x;
}

static int buffer_like(struct program *p, int like, const char *base, enum role role) {
    const struct buffer *b = &p->buffer[like];
    int made = rw_temporary(p, base, b->type, b->ndims, b->extent);
    if (made >= 0) p->buffer[made].role = role;
    return made;
}

/* One of the two leaves the state in a temporary, from which the other takes it. */
static bool hand_over(struct rest *w, int k) {
    struct program *p = w->body->p;
    struct recur_state *groups = &w->body->r->state[k], *rest = &w->r->state[k];
    const char *name = p->buffer[groups->current].name,
               *between = arena_printf(&p->arena, "%s.%s", name, w->first ? "begun" : "chunks");
    int handed = buffer_like(p, groups->current, between, ROLE_TEMP);
    rest->from = w->first ? groups->from : handed;
    rest->to = w->first ? handed : groups->to;
    rest->current =
        buffer_like(p, groups->current, arena_printf(&p->arena, "%s.rest", name), ROLE_STATE);
    if (handed < 0 || rest->current < 0) return false;
    rest->next = buffer_like(p, groups->current, "next", ROLE_STATE);
    if (rest->next < 0) return false;
    p->buffer[rest->next].name = arena_printf(&p->arena, "%s'", p->buffer[rest->current].name);
    return true;
}

static int copy_stmt(struct rest *w, int item) {
    struct program *p = w->body->p;
    const struct stmt from = *body_stmt(w->body, item);
    struct draft d = draft_open(p, &from, from.combine, placed(w, &from.dst, -1));
    draft_mapped(&d, &from, from.nops - 1, placed, w);
    d.s.axes = from.axes;
    return body_append(p, d.s);
}

/* Beside the recurrence, which stays the body's. */
static void insert(struct body *b, struct recur *r, bool first) {
    struct program *p = b->p;
    int to = first ? b->at : b->at + 1;
    struct item *item = arena_array(&p->arena, (size_t)p->nitems + 1, sizeof *item);
    memcpy(item, p->item, sizeof *item * (size_t)to);
    item[to] = (struct item){.kind = ITEM_RECUR, .recur = r};
    memcpy(item + to + 1, p->item + to, sizeof *item * (size_t)(p->nitems - to));
    p->item = item;
    p->nitems++;
    b->at += first;
}

bool body_rest(struct body *b, int64_t length) {
    struct program *p = b->p;
    const struct recur *from = b->r;
    const struct axis *all = &p->axis[from->axis];
    struct rest w = {.body = b, .steps = all->extent, .length = length, .open = all->size > 0};
    w.first = w.open && from->reverse;
    w.r = arena_alloc(&p->arena, sizeof *w.r);
    *w.r = (struct recur){.nstates = from->nstates, .nitems = from->nitems, .at = from->at};
    w.r->reverse = from->reverse;
    w.r->axis =
        program_add_axis(p, program_unique(p, all->name, "rest"), w.steps % length, p->naxes);
    if (w.r->axis < 0) return false;
    struct axis *steps = &p->axis[w.r->axis];
    steps->sequential = true;
    if (w.open) {
        steps->size = p->axis[from->axis].size;
        steps->group = length;
        steps->rest = true;
        axis_resize(steps, w.steps);
    }
    w.r->state = arena_array(&p->arena, (size_t)from->nstates, sizeof *w.r->state);
    w.r->item = arena_array(&p->arena, (size_t)from->nitems, sizeof *w.r->item);
    for (int k = 0; k < from->nstates; k++)
        if (!hand_over(&w, k)) return false;
    for (int k = 0; k < from->nitems; k++)
        w.r->item[k] = (struct item){.kind = ITEM_STMT, .stmt = copy_stmt(&w, k)};
    for (int k = 0; k < from->nstates; k++) {
        struct recur_state *groups = &b->r->state[k];
        if (w.first)
            groups->from = w.r->state[k].to;
        else
            groups->to = w.r->state[k].from;
    }
    insert(b, w.r, w.first);
    return true;
}
