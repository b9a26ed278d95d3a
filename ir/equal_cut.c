/* A recurrence of n·L + m steps seen as n of L steps each, and one of the m that are left: of
 * programs in which the other side has n steps, then m. The states go on from one to the next.
 * Where steps go backwards, the m are the first ones of arrays.
 *
 * It is what the checker compares in place of the program as it stands; no stage makes such
 * programs. */
#include "ir/equal_int.h"
#include "ir/steps.h"

#include <string.h>

struct cut {
    struct program *p;
    const struct recur *whole;
    const struct program *other;
    const struct recur *like; /* the other program's rest, whose states' names it takes; NULL */
    const struct recur
        *groups; /* the same of its groups, where the steps of one are a recurrence too */
    int64_t n, l, m;
    bool open; /* how many steps there are is known when the program runs; n and m are the most */
    int chunk, inner, rest; /* axes */
};

static bool counts_steps(const struct program *p, const struct item *item, int n, int axis) {
    for (int k = 0; k < n; k++) {
        if (item[k].kind != ITEM_STMT) return true; /* not followed into */
        const struct stmt *s = &p->stmt[item[k].stmt];
        for (int o = 0; o < s->nops; o++)
            if (s->op[o].code == OP_AXIS && s->op[o].axis == axis) return true;
    }
    return false;
}

/* step = outer·coef + inner·sign + add, in a row over the axes. now[b]: the buffer in place of b;
 * NULL. */
struct place_of_step {
    int from, outer, inner;
    int64_t coef, sign, add;
    const int *now;
};

static void renumber(const struct program *p, int64_t *row, const struct place_of_step *w) {
    int64_t k = row[w->from];
    if (!k) return;
    row[w->from] = 0;
    if (w->outer >= 0) row[w->outer] += k * w->coef;
    row[w->inner] += k * w->sign;
    row[p->naxes] += k * w->add;
}

static void renumber_access(const struct program *p, struct access *a,
                            const struct place_of_step *w) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        renumber(p, a->coef + (size_t)d * ((size_t)p->naxes + 1), w);
    if (w->now) a->buffer = w->now[a->buffer];
}

static int64_t *copied(struct program *p, const int64_t *row, int n) {
    return arena_copy(&p->arena, row, ((size_t)p->naxes + 1) * (size_t)n * sizeof *row);
}

/* A statement of the body, in other steps. */
static int stmt_in(struct program *p, int stmt, const struct place_of_step *w) {
    struct stmt *all = arena_array(&p->arena, (size_t)p->nstmts + 1, sizeof *all);
    memcpy(all, p->stmt, sizeof *all * (size_t)p->nstmts);
    struct stmt *s = &all[p->nstmts];
    p->stmt = all;
    *s = all[stmt];
    s->read = arena_copy(&p->arena, s->read, (size_t)s->nreads * sizeof *s->read);
    s->where = arena_copy(&p->arena, s->where, (size_t)s->nwhere * sizeof *s->where);
    for (int r = -1; r < s->nreads; r++) {
        struct access *a = r < 0 ? &s->dst : &s->read[r];
        a->coef = copied(p, a->coef, p->buffer[a->buffer].ndims);
        renumber_access(p, a, w);
    }
    for (int k = 0; k < s->nwhere; k++) {
        s->where[k].coef = copied(p, s->where[k].coef, 1);
        renumber(p, s->where[k].coef, w);
    }
    return p->nstmts++;
}

static struct recur *recur_over(struct program *p, int axis, const struct recur *like, int nitems) {
    struct recur *r = arena_alloc(&p->arena, sizeof *r);
    *r = (struct recur){.axis = axis, .nstates = like->nstates, .nitems = nitems, .at = like->at};
    r->state = arena_copy(&p->arena, like->state, (size_t)like->nstates * sizeof *r->state);
    r->item = arena_array(&p->arena, (size_t)nitems + 1, sizeof *r->item);
    return r;
}

static void fill_body(struct program *p, struct recur *r, const struct recur *like,
                      const struct place_of_step *w) {
    for (int k = 0; k < like->nitems; k++)
        r->item[k] = (struct item){.kind = ITEM_STMT, .stmt = stmt_in(p, like->item[k].stmt, w)};
}

/* A state with this name, if no buffer has it. */
static int state_named(struct program *p, const char *name, int like, enum role role) {
    if (program_buffer(p, name) >= 0) return -1;
    struct buffer *all = arena_array(&p->arena, (size_t)p->nbuffers + 1, sizeof *all);
    memcpy(all, p->buffer, sizeof *all * (size_t)p->nbuffers);
    all[p->nbuffers] = all[like];
    all[p->nbuffers].name = arena_strdup(&p->arena, name);
    all[p->nbuffers].role = role;
    p->buffer = all;
    return p->nbuffers++;
}

/* Backwards through an open length the steps behind the last whole group come first. */
static bool rest_is_first(const struct cut *c) {
    return c->open && c->whole->reverse;
}

/* Of the groups' states: with names of their own where the other program's have; else the steps of
 * a group go on with the same buffers, and there is no other next value. */
static bool group_states(const struct cut *c, struct recur *out, struct recur *in) {
    struct program *p = c->p;
    for (int k = 0; k < out->nstates; k++) {
        struct recur_state *of = &out->state[k];
        in->state[k].to = -1;
        of->next = of->current;
        if (c->groups) {
            const struct recur_state *there = &c->groups->state[k];
            const struct buffer *b = c->other->buffer;
            int like = of->current;
            of->current = state_named(p, b[there->current].name, like, ROLE_STATE);
            of->next = state_named(p, b[there->next].name, like, ROLE_STATE);
            if (of->current < 0 || of->next < 0) return false;
            in->state[k].to = of->next;
        }
        in->state[k].from = of->current;
        if (c->m && !rest_is_first(c)) of->to = -1;
    }
    return true;
}

static struct recur *chunks_of(const struct cut *c) {
    struct program *p = c->p;
    struct recur *out = recur_over(p, c->chunk, c->whole, 1),
                 *in = recur_over(p, c->inner, c->whole, c->whole->nitems);
    struct place_of_step w = {c->whole->axis, c->chunk, c->inner, c->l, 1, 0, NULL};
    out->reverse = c->whole->reverse;
    if (out->reverse) w.add = c->open ? 0 : c->m;
    in->reverse = out->reverse && c->groups;
    if (out->reverse && !in->reverse) w.sign = -1, w.add += c->l - 1;
    if (!group_states(c, out, in)) return NULL;
    fill_body(p, in, c->whole, &w);
    out->item[0] = (struct item){.kind = ITEM_RECUR, .recur = in};
    return out;
}

/* The rest's states are buffers of their own where the other program's are: then they are compared
 * by their names. */
static bool rename_states(const struct cut *c, struct recur *chunks, struct recur *rest, int *now) {
    struct program *p = c->p;
    bool first = rest_is_first(c);
    for (int k = 0; k < rest->nstates; k++) {
        const struct recur_state *there = &c->like->state[k], old = rest->state[k];
        const struct buffer *b = c->other->buffer;
        int current = state_named(p, b[there->current].name, old.current, ROLE_STATE),
            next = old.next == old.current
                       ? current
                       : state_named(p, b[there->next].name, old.current, ROLE_STATE),
            handed =
                state_named(p, b[first ? there->to : there->from].name, old.current, ROLE_TEMP);
        if (current < 0 || next < 0 || handed < 0) return false;
        now[old.current] = current;
        now[old.next] = next;
        *(first ? &chunks->state[k].from : &chunks->state[k].to) = handed;
        rest->state[k] = first ? (struct recur_state){current, next, old.from, handed}
                               : (struct recur_state){current, next, handed, old.to};
    }
    return true;
}

static struct recur *rest_of(const struct cut *c, struct recur *chunks) {
    struct program *p = c->p;
    struct recur *r = recur_over(p, c->rest, c->whole, c->whole->nitems);
    int *now = arena_array(&p->arena, (size_t)(p->nbuffers + 3 * r->nstates) + 1, sizeof *now);
    for (int b = 0; b < p->nbuffers; b++) now[b] = b;
    if (rest_is_first(c) && !c->like) return NULL;
    for (int k = 0; k < r->nstates && !rest_is_first(c); k++)
        r->state[k].from = r->state[k].current;
    struct place_of_step w = {c->whole->axis, -1, c->rest, 0, 1, c->open ? 0 : c->n * c->l, now};
    r->reverse = c->whole->reverse; /* then these are the first ones of an array */
    if (r->reverse) w.add = 0;
    if (c->like && !rename_states(c, chunks, r, now)) return NULL;
    fill_body(p, r, c->whole, &w);
    return r;
}

/* Of an open length: whole groups of steps, and the rest of them. */
static void open_axis(struct cut *c, int axis, bool rest) {
    struct axis *a = &c->p->axis[axis];
    const struct axis *whole = &c->p->axis[c->whole->axis];
    a->size = whole->size;
    a->group = c->l;
    a->rest = rest;
    axis_resize(a, whole->extent);
}

static bool cut_item(struct cut *c, int item) {
    struct program *p = c->p;
    c->chunk = program_add_axis(p, "chunks", c->n, p->naxes);
    c->inner = c->chunk < 0 ? -1 : program_add_axis(p, "in chunk", c->l, p->naxes);
    c->rest = c->inner < 0 || !c->m ? c->inner : program_add_axis(p, "rest", c->m, p->naxes);
    if (c->rest < 0) return false;
    p->axis[c->chunk].sequential = p->axis[c->inner].sequential = p->axis[c->rest].sequential =
        true;
    if (c->open) {
        open_axis(c, c->chunk, false);
        open_axis(c, c->rest, true);
    }
    int more = c->m > 0;
    struct item *items = arena_array(&p->arena, (size_t)(p->nitems + more), sizeof *items);
    memcpy(items, p->item, sizeof *items * (size_t)(item + 1));
    memcpy(items + item + 1 + more, p->item + item + 1,
           sizeof *items * (size_t)(p->nitems - item - 1));
    items[item].recur = chunks_of(c);
    if (!items[item].recur) return false;
    if (more) {
        struct recur *rest = rest_of(c, items[item].recur);
        if (!rest) return false;
        items[item + 1] = items[item];
        items[item + !rest_is_first(c)] = (struct item){.kind = ITEM_RECUR, .recur = rest};
    }
    p->item = items;
    p->nitems += more;
    return true;
}

static bool writes(const struct program *p, const struct recur *r, const char *name) {
    for (int k = 0; k < r->nitems; k++) {
        const struct item *x = &r->item[k];
        if (x->kind == ITEM_STMT && !strcmp(p->buffer[p->stmt[x->stmt].dst.buffer].name, name))
            return true;
        if (x->kind == ITEM_RECUR && writes(p, x->recur, name)) return true;
    }
    return false;
}

static bool write_alike(const struct program *p, const struct recur *r, const struct program *q,
                        const struct recur *s) {
    for (int k = 0; k < r->nitems; k++)
        if (r->item[k].kind == ITEM_STMT &&
            writes(q, s, p->buffer[p->stmt[r->item[k].stmt].dst.buffer].name))
            return true;
    return false;
}

/* It goes on where the first one ends. */
static bool goes_on(const struct recur *first, const struct recur *r) {
    return r->nstates > 0 && r->nstates == first->nstates && first->state[0].to >= 0 &&
           r->state[0].from == first->state[0].to;
}

/* The steps of one of its groups are a recurrence that begins with the groups' states. */
static bool holds_steps(const struct recur *groups) {
    for (int k = 0; k < groups->nitems; k++) {
        const struct recur *in = groups->item[k].kind == ITEM_RECUR ? groups->item[k].recur : NULL;
        if (in && in->nstates == groups->nstates && in->nstates > 0 &&
            in->state[0].from == groups->state[0].current)
            return true;
    }
    return false;
}

static bool cut_open(const struct recur *r, const struct program *q, const struct recur *like,
                     const struct recur *groups, int64_t group, int64_t most, struct cut *c) {
    *c = (struct cut){
        .whole = r, .other = q, .like = like, .groups = groups, .open = true, .l = group};
    c->n = most / group;
    c->m = group - 1;
    return true;
}

/* How the other program's recurrences that write the same say that it is cut. */
static bool cut_for(const struct program *p, const struct recur *r, const struct program *q,
                    struct items b, struct cut *c) {
    const struct axis *t = &p->axis[r->axis];
    int64_t steps[2] = {0, 0}, group[2] = {0, 0};
    const struct recur *first = NULL, *like = NULL, *groups = NULL;
    int found = 0;
    if (t->group || t->first || counts_steps(p, r->item, r->nitems, r->axis)) return false;
    for (int k = b.from; k < b.to; k++) {
        const struct recur *s = q->item[k].kind == ITEM_RECUR ? q->item[k].recur : NULL;
        bool follows = s && first && goes_on(first, s);
        if (!s || !(follows || write_alike(p, r, q, s))) continue;
        const struct axis *a = &q->axis[s->axis];
        if (found == 2 || s->reverse != r->reverse || a->size != t->size || !a->group != !t->size ||
            (!t->size && a->first))
            return false;
        if (follows && s->nstates == r->nstates) like = q->axis[first->axis].rest ? first : s;
        if (!first) first = s;
        if (!a->rest && s->nstates == r->nstates && holds_steps(s)) groups = s;
        group[found] = a->rest ? -a->group : a->group;
        steps[found++] = a->extent;
    }
    if (t->size)
        return found == 2 && group[r->reverse] > 1 && group[0] == -group[1] &&
               cut_open(r, q, like, groups, group[r->reverse], t->extent, c);
    if (!found || steps[0] < 1 || steps[0] + steps[1] >= t->extent ||
        (t->extent - steps[1]) % steps[0])
        return false;
    *c = (struct cut){.whole = r,
                      .other = q,
                      .like = like,
                      .groups = groups,
                      .n = steps[0],
                      .l = (t->extent - steps[1]) / steps[0],
                      .m = steps[1]};
    return true;
}

struct program *equal_cut(const struct program *p, struct items *a, const struct program *q,
                          struct items b) {
    struct program *out = NULL;
    for (int k = a->from; k < a->to; k++) {
        const struct program *now = out ? out : p;
        struct cut c;
        if (now->item[k].kind != ITEM_RECUR || !cut_for(now, now->item[k].recur, q, b, &c))
            continue;
        if (!out) out = program_copy(p);
        c.p = out;
        c.whole = out->item[k].recur;
        if (!cut_item(&c, k)) continue;
        a->to += c.m > 0;
        k += c.m > 0;
    }
    return out;
}
