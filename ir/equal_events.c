/* A stretch of items as a row of events, in the order in which one step of each recurrence executes
 * them. A recurrence is what stands between its two ends, with the copies of its states: from what
 * they begin with before the first step, from the next value to the current one at the end of each
 * step, to where the last ones go behind it. */
#include "ir/equal_int.h"

struct flattening {
    struct equal *x;
    struct side *s;
    int cap, around;
};

static struct event *add(struct flattening *f, enum event_kind kind, int to) {
    struct side *s = f->s;
    GROW(&f->x->arena, s->event, s->nevents, f->cap);
    s->event[s->nevents] =
        (struct event){.kind = kind, .to = to, .from = -1, .content = -1, .around = f->around};
    return &s->event[s->nevents++];
}

static void add_copy(struct flattening *f, int to, int from) {
    if (to >= 0 && to != from) add(f, EVENT_COPY, to)->from = from;
}

static int add_end(struct flattening *f, enum event_kind kind, const struct recur *r) {
    struct event *e = add(f, kind, -1);
    e->recur = r;
    e->contents = arena_array(&f->x->arena, (size_t)f->s->p->nbuffers + 1, sizeof *e->contents);
    for (int b = 0; b < f->s->p->nbuffers; b++) e->contents[b] = -1;
    return f->s->nevents - 1;
}

static void add_items(struct flattening *f, const struct item *item, int n);

static void add_recur(struct flattening *f, const struct recur *r) {
    int around = f->around;
    for (int k = 0; k < r->nstates; k++) add_copy(f, r->state[k].current, r->state[k].from);
    int first = add_end(f, EVENT_ENTER, r);
    f->around = first;
    add_items(f, r->item, r->nitems);
    for (int k = 0; k < r->nstates; k++) add_copy(f, r->state[k].current, r->state[k].next);
    int last = add_end(f, EVENT_LEAVE, r);
    f->around = around;
    f->s->event[first].match = last;
    f->s->event[last].match = first;
    for (int k = 0; k < r->nstates; k++) add_copy(f, r->state[k].to, r->state[k].current);
}

static void add_items(struct flattening *f, const struct item *item, int n) {
    for (int k = 0; k < n && !f->x->failed; k++) {
        if (item[k].kind == ITEM_CALL) equal_stop(f->x, "a call is part of it");
        if (item[k].kind == ITEM_RECUR) add_recur(f, item[k].recur);
        if (item[k].kind != ITEM_STMT) continue;
        const struct stmt *st = &f->s->p->stmt[item[k].stmt];
        if (st->scope && f->around < 0) equal_stop(f->x, "its recurrences are opened");
        add(f, EVENT_STMT, st->dst.buffer)->stmt = item[k].stmt;
    }
}

bool side_open(struct equal *x, struct side *s, const struct program *p, struct items w) {
    struct flattening f = {.x = x, .s = s, .around = -1};
    *s = (struct side){.p = p, .span = w};
    s->initial = arena_array(&x->arena, (size_t)p->nbuffers + 1, sizeof *s->initial);
    for (int b = 0; b < p->nbuffers; b++) s->initial[b] = -1;
    add_items(&f, p->item + w.from, w.to - w.from);
    return !x->failed;
}

int event_behind(const struct side *s, int i) {
    return s->event[i].kind == EVENT_ENTER ? s->event[i].match + 1 : i + 1;
}

bool event_reads(const struct side *s, int i, int buffer) {
    const struct event *e = &s->event[i];
    if (e->kind == EVENT_ENTER)
        for (int k = i + 1; k < e->match; k++)
            if (event_reads(s, k, buffer)) return true;
    if (e->kind == EVENT_COPY) return e->from == buffer;
    const struct stmt *st = e->kind == EVENT_STMT ? &s->p->stmt[e->stmt] : NULL;
    for (int r = 0; st && r < st->nreads; r++)
        if (st->read[r].buffer == buffer) return true;
    return false;
}

int event_writes(const struct side *s, int i, int buffer) {
    const struct event *e = &s->event[i];
    if (e->kind != EVENT_ENTER) return e->to == buffer ? i : -1;
    for (int k = i + 1; k < e->match; k++)
        if (s->event[k].to == buffer) return e->match;
    return -1;
}

int event_writer(const struct side *s, int before, int buffer) {
    while (--before >= 0) {
        const struct event *e = &s->event[before];
        if (e->kind == EVENT_ENTER || e->kind == EVENT_LEAVE) {
            int enter = e->kind == EVENT_ENTER ? before : e->match;
            if (event_writes(s, enter, buffer) >= 0) return before;
            before = enter;
        } else if (e->to == buffer) {
            return before;
        }
    }
    return -1;
}

int *event_content(const struct side *s, int i, int buffer) {
    struct event *e = &s->event[i];
    return e->contents ? &e->contents[buffer] : &e->content;
}

int event_around(const struct side *s, int before) {
    return before < s->nevents ? s->event[before].around : -1;
}
