/* Chains of programs: what differs from one to the next, found by comparing their texts. A stretch
 * of statements is taken so long that every buffer which only one of the two programs has, or
 * declares otherwise, stays inside. */
#include "ir/chain.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_AHEAD = 64 };

/* ---- are two items the same? ---- */

struct pair {
    const struct program *p, *q;
};

static bool axes_alike(const struct pair *x, int a, int b) {
    const struct axis *u = &x->p->axis[a], *v = &x->q->axis[b];
    return u->extent == v->extent && u->sequential == v->sequential && !strcmp(u->name, v->name);
}

static int axis_like(const struct pair *x, int a) {
    if (a < x->q->naxes && axes_alike(x, a, a)) return a;
    for (int b = 0; b < x->q->naxes; b++)
        if (axes_alike(x, a, b)) return b;
    return -1;
}

static bool rows_alike(const struct pair *x, const int64_t *a, const int64_t *b) {
    int n = x->p->naxes, m = x->q->naxes, mine = 0, others = 0;
    for (int k = 0; k < n; k++) {
        if (!a[k]) continue;
        int other = axis_like(x, k);
        if (other < 0 || b[other] != a[k]) return false;
        mine++;
    }
    for (int k = 0; k < m; k++) others += b[k] != 0;
    return mine == others && a[n] == b[m];
}

static bool buffers_alike(const struct pair *x, int a, int b) {
    return !strcmp(x->p->buffer[a].name, x->q->buffer[b].name) && buffer_twin(x->p, a, x->q) == b;
}

static bool accesses_alike(const struct pair *x, const struct access *a, const struct access *b) {
    if (!buffers_alike(x, a->buffer, b->buffer) || a->has_fill != b->has_fill) return false;
    if (a->has_fill && memcmp(&a->fill, &b->fill, sizeof a->fill) != 0) return false;
    for (int d = 0; d < x->p->buffer[a->buffer].ndims; d++)
        if (!rows_alike(x, a->coef + (size_t)d * ((size_t)x->p->naxes + 1),
                        b->coef + (size_t)d * ((size_t)x->q->naxes + 1)))
            return false;
    return true;
}

static bool trees_alike(const struct pair *x, const struct stmt *s, int a, const struct stmt *t,
                        int b) {
    const struct op *u = &s->op[a], *v = &t->op[b];
    if (u->code != v->code || u->type != v->type) return false;
    if (u->code == OP_READ) return accesses_alike(x, &s->read[u->read], &t->read[v->read]);
    if (u->code == OP_AXIS) return axes_alike(x, u->axis, v->axis);
    if (u->code == OP_LITERAL) return memcmp(&u->value, &v->value, sizeof u->value) == 0;
    for (int k = 0; k < op_info[u->code].arity; k++)
        if (!trees_alike(x, s, u->arg[k], t, v->arg[k])) return false;
    return true;
}

static bool stmts_alike(const struct pair *x, const struct stmt *s, const struct stmt *t) {
    if (s->combine != t->combine || s->nwhere != t->nwhere || s->scope != t->scope ||
        __builtin_popcountll(s->axes) != __builtin_popcountll(t->axes) ||
        !accesses_alike(x, &s->dst, &t->dst))
        return false;
    for (int w = 0; w < s->nwhere; w++)
        if (!rows_alike(x, s->where[w].coef, t->where[w].coef)) return false;
    return trees_alike(x, s, s->nops - 1, t, t->nops - 1);
}

static bool numbers_alike(const struct pair *x, const int *a, int n, const int *b, int m) {
    if (n != m) return false;
    for (int k = 0; k < n; k++)
        if (!buffers_alike(x, a[k], b[k])) return false;
    return true;
}

static bool recurs_alike(const struct pair *x, const struct recur *r, const struct recur *s) {
    if (!axes_alike(x, r->axis, s->axis) || r->reverse != s->reverse || r->nstates != s->nstates ||
        r->nitems != s->nitems)
        return false;
    for (int k = 0; k < r->nstates; k++) {
        const struct recur_state *u = &r->state[k], *v = &s->state[k];
        if ((u->to < 0) != (v->to < 0) || (u->to >= 0 && !buffers_alike(x, u->to, v->to)) ||
            !buffers_alike(x, u->current, v->current) || !buffers_alike(x, u->next, v->next) ||
            !buffers_alike(x, u->from, v->from))
            return false;
    }
    for (int k = 0; k < r->nitems; k++)
        if (!items_alike(x->p, &r->item[k], x->q, &s->item[k])) return false;
    return true;
}

bool items_alike(const struct program *p, const struct item *a, const struct program *q,
                 const struct item *b) {
    struct pair x = {p, q};
    if (a->kind != b->kind) return false;
    if (a->kind == ITEM_STMT) return stmts_alike(&x, &p->stmt[a->stmt], &q->stmt[b->stmt]);
    if (a->kind == ITEM_RECUR) return recurs_alike(&x, a->recur, b->recur);
    return !strcmp(a->call->function, b->call->function) &&
           numbers_alike(&x, a->call->read, a->call->nreads, b->call->read, b->call->nreads) &&
           numbers_alike(&x, a->call->write, a->call->nwrites, b->call->write, b->call->nwrites);
}

/* ---- what differs ---- */

struct stretches {
    struct items *before, *after;
    int n;
};

/* The nearest place from which on both go on alike. */
static bool next_alike(const struct program *p, int i, const struct program *q, int j, int *di,
                       int *dj) {
    for (int far = 0; far <= LOOK_AHEAD; far++)
        for (int a = 0; a <= far; a++) {
            int b = far - a;
            if (i + a >= p->nitems || j + b >= q->nitems) continue;
            if (!items_alike(p, &p->item[i + a], q, &q->item[j + b])) continue;
            *di = a;
            *dj = b;
            return true;
        }
    return false;
}

/* ---- long differences in parts ----
 * A difference may be cut where either side has written the same buffers of both programs, and
 * writes none of them again: each part is proved for itself. */

struct span { /* items of the difference that write a buffer; last -1: none */
    int first, last;
};

static void note_write(struct span *of, int buffer, int item) {
    if (of[buffer].last < 0) of[buffer].first = item;
    of[buffer].last = item;
}

static struct span *written_by(struct arena *arena, const struct program *p, struct items at) {
    struct span *of = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *of);
    for (int b = 0; b < p->nbuffers; b++) of[b].last = -1;
    for (int i = at.from; i < at.to; i++) {
        if (p->item[i].kind == ITEM_STMT) {
            note_write(of, p->stmt[p->item[i].stmt].dst.buffer, i);
            continue;
        }
        for (int b = 0; b < p->nbuffers; b++)
            if (item_touches(p, &p->item[i], b)) note_write(of, b, i);
    }
    return of;
}

struct twins { /* buffers of both programs that the difference writes */
    struct span *before, *after;
    int n;
};

static struct twins twins_of(struct arena *arena, const struct program *p, struct items before,
                             const struct program *q, struct items after) {
    struct span *mine = written_by(arena, p, before), *other = written_by(arena, q, after);
    struct twins t = {.before = mine,
                      .after = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *t.after)};
    for (int b = 0; b < p->nbuffers; b++) {
        int twin = mine[b].last < 0 ? -1 : buffer_twin(p, b, q);
        if (twin < 0 || other[twin].last < 0) continue;
        t.before[t.n] = mine[b];
        t.after[t.n++] = other[twin];
    }
    return t;
}

/* The item of the second program behind which it may be cut where the first is cut behind item i;
 * -1: nowhere. */
static int cut_behind(const struct twins *t, int i) {
    int j = -1;
    for (int k = 0; k < t->n; k++) {
        if (t->before[k].first > i) continue;
        if (t->before[k].last > i) return -1;
        if (t->after[k].last > j) j = t->after[k].last;
    }
    for (int k = 0; k < t->n; k++)
        if (t->before[k].first > i && t->after[k].first <= j) return -1;
    return j;
}

static void add_stretch(struct stretches *s, struct items before, struct items after) {
    s->before[s->n] = before;
    s->after[s->n++] = after;
}

static void add_in_parts(struct arena *arena, const struct program *p, struct items before,
                         const struct program *q, struct items after, struct stretches *s) {
    struct twins t = twins_of(arena, p, before, q, after);
    int from = before.from, to = after.from;
    for (int i = before.from; i + 1 < before.to; i++) {
        int j = cut_behind(&t, i);
        if (j < to || j + 1 >= after.to) continue;
        add_stretch(s, (struct items){from, i + 1}, (struct items){to, j + 1});
        from = i + 1;
        to = j + 1;
    }
    add_stretch(s, (struct items){from, before.to}, (struct items){to, after.to});
}

static void find_stretches(struct arena *arena, const struct program *p, const struct program *q,
                           struct stretches *s) {
    int i = 0, j = 0;
    s->before = arena_array(arena, (size_t)(p->nitems + q->nitems) + 1, sizeof *s->before);
    s->after = arena_array(arena, (size_t)(p->nitems + q->nitems) + 1, sizeof *s->after);
    while (i < p->nitems || j < q->nitems) {
        int di = 0, dj = 0;
        bool found = next_alike(p, i, q, j, &di, &dj);
        if (!found) {
            di = p->nitems - i;
            dj = q->nitems - j;
        }
        if (di || dj)
            add_in_parts(arena, p, (struct items){i, i + di}, q, (struct items){j, j + dj}, s);
        i += di + found;
        j += dj + found;
    }
}

static void merge(struct stretches *s, int from, int to) {
    s->before[from].to = s->before[to].to;
    s->after[from].to = s->after[to].to;
    size_t rest = (size_t)(s->n - to - 1);
    memmove(s->before + from + 1, s->before + to + 1, rest * sizeof *s->before);
    memmove(s->after + from + 1, s->after + to + 1, rest * sizeof *s->after);
    s->n -= to - from;
}

/* Items of p that touch the buffer. */
static bool extent_of(const struct program *p, int buffer, struct items *out) {
    *out = (struct items){p->nitems, -1};
    for (int i = 0; i < p->nitems; i++) {
        if (!item_touches(p, &p->item[i], buffer)) continue;
        if (out->to < 0) out->from = i;
        out->to = i + 1;
    }
    return out->to >= 0;
}

/* One stretch from the first item that touches the buffer to the last. */
static void contain(struct stretches *s, const struct items *own, struct items touched) {
    int first = -1, last = -1;
    for (int k = 0; k < s->n; k++) {
        if (own[k].to <= touched.from || own[k].from >= touched.to) continue;
        if (first < 0) first = k;
        last = k;
    }
    if (first >= 0 && last > first) merge(s, first, last);
}

static bool writes(const struct program *p, struct items at, const char *buffer) {
    for (int i = at.from; i < at.to; i++)
        if (p->item[i].kind == ITEM_STMT &&
            !strcmp(p->buffer[p->stmt[p->item[i].stmt].dst.buffer].name, buffer))
            return true;
    return false;
}

/* Stretch k with all that follows it up to these items; behind a stretch, items of both are alike.
 */
static void lengthen(struct stretches *s, int k, int before, int after) {
    for (;;) {
        int apart = s->after[k].to - s->before[k].to, to = s->before[k].to;
        if (before > to) to = before;
        if (after - apart > to) to = after - apart;
        if (k + 1 < s->n && s->before[k + 1].from < to) {
            merge(s, k, k + 1);
            continue;
        }
        s->before[k].to = to;
        s->after[k].to = to + apart;
        return;
    }
}

/* What one program alone writes in a stretch, both must have written when it ends. */
static void contain_writes(struct stretches *s, int k, const struct program *p,
                           const struct program *q, bool after) {
    const struct items *own = after ? s->after : s->before, *other = after ? s->before : s->after;
    struct items here, there;
    for (int i = own[k].from; i < own[k].to; i++) {
        if (p->item[i].kind != ITEM_STMT) continue;
        int b = p->stmt[p->item[i].stmt].dst.buffer, c = buffer_twin(p, b, q);
        if (c < 0 || writes(q, other[k], p->buffer[b].name) || !extent_of(p, b, &here) ||
            !extent_of(q, c, &there))
            continue;
        lengthen(s, k, after ? there.to : here.to, after ? here.to : there.to);
    }
}

static void contain_all(struct stretches *s, const struct program *p, const struct program *q) {
    struct items at;
    for (int b = 0; b < p->nbuffers; b++)
        if (buffer_twin(p, b, q) < 0 && extent_of(p, b, &at)) contain(s, s->before, at);
    for (int b = 0; b < q->nbuffers; b++)
        if (buffer_twin(q, b, p) < 0 && extent_of(q, b, &at)) contain(s, s->after, at);
    for (int k = 0; k < s->n; k++) {
        contain_writes(s, k, p, q, false);
        contain_writes(s, k, q, p, true);
    }
}

/* ---- building ---- */

struct chain *chain_new(const struct program *written) {
    struct chain *c = memory_array(1, sizeof *c);
    arena_init(&c->arena);
    c->written = program_copy(written);
    return c;
}

struct chain *chain_copy(const struct chain *c) {
    if (!c) return NULL;
    struct chain *d = chain_new(c->written);
    for (int k = 0; k < c->nsteps; k++) {
        const struct chain_step *s = &c->step[k];
        GROW(&d->arena, d->step, d->nsteps, d->cap);
        struct chain_step *t = &d->step[d->nsteps++];
        *t = (struct chain_step){.program = s->program ? program_copy(s->program) : NULL,
                                 .nwitnesses = s->nwitnesses};
        t->witness = arena_copy(&d->arena, s->witness, (size_t)s->nwitnesses * sizeof *s->witness);
        for (int w = 0; w < t->nwitnesses; w++)
            t->witness[w].by = arena_strdup(&d->arena, t->witness[w].by);
    }
    for (int k = 0; k < c->nreasons; k++) chain_reason(d, &c->reason[k]);
    return d;
}

bool chain_opens(const struct chain *c) {
    for (int i = 0; i < c->written->nitems; i++)
        if (c->written->item[i].kind != ITEM_STMT) return false;
    return true;
}

void chain_free(struct chain *c) {
    if (!c) return;
    program_free(c->written);
    for (int k = 0; k < c->nsteps; k++)
        if (c->step[k].program) program_free(c->step[k].program);
    arena_free(&c->arena);
    free(c);
}

static bool named(const char *all, const char *by) {
    const char *at = strstr(all, by);
    size_t n = strlen(by);
    return at && (at == all || at[-1] == ' ') && (at[n] == 0 || at[n] == ',');
}

/* All reasons for one of its buffers together; without one, the stage. */
static struct witness witness_of(struct chain *c, const struct program *p, const struct program *q,
                                 struct items a, struct items b, const char *by) {
    struct witness w = {.laws = LAWS_EXACT, .sampling = SAMPLE_VALUES, .before = a, .after = b};
    for (int k = 0; k < c->nreasons; k++) {
        const struct reason *r = &c->reason[k];
        if (r->buffer && !writes(p, a, r->buffer) && !writes(q, b, r->buffer)) continue;
        if (!w.by || r->sampling > w.sampling) w.sampling = r->sampling;
        w.may_sample |= r->may_sample;
        w.laws |= r->laws;
        if (!w.by)
            w.by = r->by;
        else if (!named(w.by, r->by))
            w.by = arena_printf(&c->arena, "%s, %s", w.by, r->by);
    }
    w.by = arena_strdup(&c->arena, w.by ? w.by : by);
    return w;
}

void chain_reason(struct chain *c, const struct reason *r) {
    GROW(&c->arena, c->reason, c->nreasons, c->reason_cap);
    struct reason *own = &c->reason[c->nreasons++];
    *own = *r;
    own->by = arena_strdup(&c->arena, r->by);
    own->buffer = r->buffer ? arena_strdup(&c->arena, r->buffer) : NULL;
}

static bool step_of(struct chain *c, const struct program *p, const struct program *q,
                    const char *by, struct chain_step *out) {
    struct arena scratch;
    struct stretches s = {.n = 0};
    arena_init(&scratch);
    find_stretches(&scratch, p, q, &s);
    contain_all(&s, p, q);
    *out = (struct chain_step){.nwitnesses = s.n};
    out->witness = arena_array(&c->arena, (size_t)s.n + 1, sizeof *out->witness);
    for (int k = 0; k < s.n; k++)
        out->witness[k] = witness_of(c, p, q, s.before[k], s.after[k], by);
    arena_free(&scratch);
    if (s.n) c->nreasons = 0;
    return s.n > 0;
}

void chain_append(struct chain *c, const struct program *q, const char *by, bool keep) {
    const struct program *p = c->nsteps ? c->step[c->nsteps - 1].program : c->written;
    struct chain_step step;
    if (!step_of(c, p, q, by, &step) && keep) return;
    step.program = keep ? program_copy(q) : NULL;
    GROW(&c->arena, c->step, c->nsteps, c->cap);
    c->step[c->nsteps++] = step;
}

void chain_prefix(struct chain *c, const struct program *first, const struct reason *r) {
    struct chain_step step;
    c->nreasons = 0;
    chain_reason(c, r);
    if (!step_of(c, first, c->written, r->by, &step)) return;
    step.program = c->written;
    c->written = program_copy(first);
    GROW(&c->arena, c->step, c->nsteps, c->cap);
    memmove(c->step + 1, c->step, (size_t)c->nsteps * sizeof *c->step);
    c->step[0] = step;
    c->nsteps++;
}
