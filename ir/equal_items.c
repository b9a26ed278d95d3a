/* Two stretches of statements: do they leave the same in all that others see? What both programs
 * have at the end of a phase of writing a buffer, once proved, is read as one content: the proof
 * goes through the statements once, in their order. */
#include "ir/equal_alike.h"
#include "ir/equal_int.h"
#include "ir/memory.h"
#include "ir/poly.h"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/space.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned long default_steps = 400000;
enum { MAX_PHASES = 64 };

const char *const law_name[LAW_COUNT_OF] = {
#define X(id, name) #name,
    LAW_TABLE(X)
#undef X
};
const char *const evidence_name[EVIDENCE_COUNT] = {"proved", "sampled", "unproved", "refuted"};

bool equal_is_empty(struct equal *x, isl_set *set) {
    isl_bool none = set ? isl_set_is_empty(set) : isl_bool_error;
    if (none == isl_bool_error) equal_stop(x, "it takes too many steps");
    return none != isl_bool_false;
}

static bool same_declaration(const struct buffer *a, const struct buffer *b) {
    if (a->type != b->type || a->ndims != b->ndims) return false;
    return a->ndims == 0 || !memcmp(a->extent, b->extent, (size_t)a->ndims * sizeof *a->extent);
}

/* Opened, the next value of a state is a temporary of another name: h' is h_next. Neither has a
 * content before the first step. */
static int next_twin(const struct program *p, int b, const struct program *q) {
    char name[128];
    const char *from = p->buffer[b].name, *ends[] = {"'", "_next"};
    for (int k = 0; k < 2; k++) {
        size_t n = strlen(from), m = strlen(ends[k]);
        if (n <= m || strcmp(from + n - m, ends[k]) != 0) continue;
        int length = snprintf(name, sizeof name, "%.*s%s", (int)(n - m), from, ends[!k]);
        if (length >= (int)sizeof name || program_buffer(p, name) >= 0) continue;
        return program_buffer(q, name);
    }
    return -1;
}

/* The buffer of q that is b of p; -1. */
int buffer_twin(const struct program *p, int b, const struct program *q) {
    int found = b < q->nbuffers && !strcmp(q->buffer[b].name, p->buffer[b].name)
                    ? b
                    : program_buffer(q, p->buffer[b].name);
    if (found < 0) found = next_twin(p, b, q);
    return found >= 0 && same_declaration(&p->buffer[b], &q->buffer[found]) ? found : -1;
}

static bool recur_touches(const struct program *p, const struct recur *r, int buffer);

bool item_touches(const struct program *p, const struct item *i, int buffer) {
    if (i->kind == ITEM_RECUR) return recur_touches(p, i->recur, buffer);
    if (i->kind == ITEM_CALL) {
        for (int k = 0; k < i->call->nreads; k++)
            if (i->call->read[k] == buffer) return true;
        for (int k = 0; k < i->call->nwrites; k++)
            if (i->call->write[k] == buffer) return true;
        return false;
    }
    const struct stmt *s = &p->stmt[i->stmt];
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->dst.buffer == buffer;
}

static bool recur_touches(const struct program *p, const struct recur *r, int buffer) {
    for (int k = 0; k < r->nstates; k++)
        if (r->state[k].current == buffer || r->state[k].next == buffer ||
            r->state[k].from == buffer || r->state[k].to == buffer)
            return true;
    for (int i = 0; i < r->nitems; i++)
        if (item_touches(p, &r->item[i], buffer)) return true;
    return false;
}

bool span_shows(const struct program *p, struct items w, int buffer) {
    enum role role = p->buffer[buffer].role;
    if (role != ROLE_TEMP && role != ROLE_STATE) return true;
    for (int i = 0; i < p->nitems; i++)
        if ((i < w.from || i >= w.to) && item_touches(p, &p->item[i], buffer)) return true;
    return false;
}

static bool same_sizes(const struct program *p, const struct program *q) {
    bool same = p->nsizes == q->nsizes;
    for (int k = 0; k < p->nsizes && same; k++)
        same = !strcmp(p->size[k].name, q->size[k].name) && p->size[k].lo == q->size[k].lo &&
               p->size[k].hi == q->size[k].hi;
    return same;
}

static bool same_steps(const struct side *s, int i, const struct side *t, int j) {
    const struct recur *a = s->event[i].recur, *b = t->event[j].recur;
    const struct axis *u = &s->p->axis[a->axis], *v = &t->p->axis[b->axis];
    return a->reverse == b->reverse && u->extent == v->extent && u->size == v->size &&
           u->group == v->group && u->rest == v->rest && u->first == v->first;
}

static struct reach any_of(const struct buffer *b) {
    return type_reach(type_is_float(b->type) ? TYPE_I64 : b->type);
}

/* ---- one buffer ---- */

/* The sizes that are open, each in its range: the first dimensions. */
static isl_set *over_sizes(struct equal *x, const struct program *p, int n) {
    isl_set *dom = isl_set_universe(isl_space_set_alloc(x->ctx, 0, (unsigned)n));
    for (int k = 0; k < p->nsizes; k++) {
        int64_t *low = equal_row(x, n), *high = equal_row(x, n);
        low[1 + k] = 1;
        low[0] = -p->size[k].lo;
        high[1 + k] = -1;
        high[0] = p->size[k].hi;
        dom = set_with(x, set_with(x, dom, low, n, false), high, n, false);
    }
    return dom;
}

static isl_set *within(struct equal *x, isl_set *dom, int d, int n, const struct axis *a) {
    int64_t *at = equal_row(x, n), *up = equal_row(x, n);
    at[1 + d] = 1;
    row_end(up, at, n, a);
    return set_with(x, set_with(x, dom, at, n, false), up, n, false);
}

/* All elements of the buffer, in all steps of the recurrences around the place before the event. */
static struct spot everywhere(struct equal *x, const struct side *s, int before, int buffer,
                              int64_t ***row) {
    const struct program *p = s->p;
    const struct buffer *b = &p->buffer[buffer];
    int first = p->nsizes;
    for (int e = event_around(s, before); e >= 0; e = event_around(s, e)) first++;
    struct spot at = {.n = first + b->ndims};
    if (at.n > MAX_SPACE) {
        equal_stop(x, "its relations have too many dimensions");
        return at;
    }
    isl_set *dom = over_sizes(x, p, at.n);
    at.name = arena_array(&x->arena, (size_t)at.n + 1, sizeof *at.name);
    at.axis = arena_array(&x->arena, (size_t)p->naxes + 1, sizeof *at.axis);
    *row = arena_array(&x->arena, (size_t)b->ndims + 1, sizeof **row);
    int d = first;
    for (int e = event_around(s, before); e >= 0; e = event_around(s, e)) {
        int a = s->event[e].recur->axis;
        at.name[--d] = p->axis[a].name;
        at.compared |= UINT64_C(1) << a;
        at.axis[a] = equal_row(x, at.n);
        at.axis[a][1 + d] = 1;
        dom = within(x, dom, d, at.n, &p->axis[a]);
    }
    for (int k = 0; k < b->ndims; k++) {
        (*row)[k] = equal_row(x, at.n);
        (*row)[k][1 + first + k] = 1;
        struct axis all = {.extent = b->extent[k], .size = k ? 0 : b->size};
        dom = within(x, dom, first + k, at.n, &all);
    }
    at.dom = equal_keep(x, dom);
    return at;
}

static bool prove_after(struct equal *x, int b0, int before0, int b1, int before1,
                        struct reach *range) {
    int64_t **row[2];
    struct spot s = everywhere(x, &x->side[0], before0, b0, &row[0]),
                t = everywhere(x, &x->side[1], before1, b1, &row[1]);
    if (x->failed || s.n != t.n) return false;
    x->depth = 0;
    struct form *f = form_element(x, &x->side[0], before0, b0, row[0], &s),
                *g = form_element(x, &x->side[1], before1, b1, row[1], &t);
    bool same = !x->failed && form_equal(x, f, g, &s);
    *range = type_reach(type_is_float(f->type) ? TYPE_I64 : f->type);
    if (same && !type_is_float(f->type)) {
        struct reach r = form_range(x, f);
        if (reach_fits(r, f->type)) *range = r;
    }
    return same && !x->failed;
}

/* What was proved once is proved for what is the same but for names. */
struct lemma {
    struct alike_row row;
    struct reach range;
    struct lemma *next;
};

static bool same_after(struct equal *x, int b0, int before0, int b1, int before1,
                       struct reach *range) {
    struct lemma l;
    x->before[0] = before0;
    x->before[1] = before1;
    known_forget(x);
    bool has_row = alike_elements(x, b0, before0, b1, before1, &l.row);
    for (const struct lemma *k = has_row ? x->lemmas : NULL; k; k = k->next)
        if (alike_same(&k->row, &l.row)) return *range = k->range, true;
    if (!prove_after(x, b0, before0, b1, before1, range)) return false;
    if (!has_row) return true;
    l.range = *range;
    l.next = x->lemmas;
    x->lemmas = arena_copy(&x->arena, &l, sizeof l);
    return true;
}

/* From event `from` to `to`, one behind the other: the body of a recurrence, or all. */
struct stretch {
    int from, to;
};

/* The writes after which somebody reads, and the last ones; by events. */
static int phases_of(const struct side *s, struct stretch w, int buffer, int *out) {
    int n = 0, last = -1;
    for (int i = w.from; i < w.to; i = event_behind(s, i)) {
        int writes = event_writes(s, i, buffer);
        if (last >= 0 && event_reads(s, i, buffer)) {
            if (n == MAX_PHASES) return -1;
            out[n++] = last;
            last = -1;
        }
        if (writes >= 0) last = writes;
    }
    if (last >= 0 && n < MAX_PHASES) out[n++] = last;
    return n;
}

static int content_of_both(struct equal *x, struct reach r, enum type t, int event0, int event1) {
    if (x->ncontents == MAX_CONTENTS) {
        equal_stop(x, "it has too many buffers");
        return 0;
    }
    x->content[x->ncontents] = (struct content){r, t, {event0, event1}};
    return x->ncontents++;
}

/* Buffer b of side 0 and c of side 1 are the same behind these events. */
static void share(struct equal *x, int event0, int b, int event1, int c, struct reach r) {
    *event_content(&x->side[0], event0, b) = *event_content(&x->side[1], event1, c) =
        content_of_both(x, r, x->side[0].p->buffer[b].type, event0, event1);
}

/* A proof that fails in the middle costs no other one. */
static void retry(struct equal *x) {
    isl_ctx_reset_operations(x->ctx);
    isl_ctx_reset_error(x->ctx);
    x->failed = false;
}

/* What stands behind event i reads the buffer. */
static bool read_after(const struct side *s, int i, struct stretch w, int buffer) {
    for (i++; i < w.to; i = event_behind(s, i))
        if (event_reads(s, i, buffer)) return true;
    return false;
}

static void share_phase(struct equal *x, int i, struct stretch v, struct stretch w) {
    struct side *s = &x->side[0], *t = &x->side[1];
    int b = s->event[i].to, c = buffer_twin(s->p, b, t->p), first[MAX_PHASES], second[MAX_PHASES],
        k = 0;
    struct reach r;
    if (c < 0) return;
    int n = phases_of(s, v, b, first);
    if (n <= 0 || n != phases_of(t, w, c, second)) return;
    while (k < n && first[k] != i) k++;
    if (k == n || t->event[second[k]].kind == EVENT_LEAVE ||
        read_after(s, i, v, b) != read_after(t, second[k], w, c))
        return;
    if (same_after(x, b, i + 1, c, second[k] + 1, &r)) share(x, i, b, second[k], c, r);
    retry(x);
}

static void share_phases(struct equal *x, struct stretch v, struct stretch w);

/* ---- recurrences: by induction over their steps ---- */

/* What a step finds in the buffer matters: to it, to others, or to what comes behind. */
static bool crosses(const struct side *s, int enter, int buffer) {
    const struct event *e = &s->event[enter];
    if (span_shows(s->p, s->span, buffer)) return true;
    for (int i = 0; i < s->nevents; i = i == enter ? e->match + 1 : i + 1)
        if (i != enter && s->event[i].kind != EVENT_ENTER && event_reads(s, i, buffer)) return true;
    for (int i = enter + 1; i < e->match; i = event_behind(s, i)) {
        const struct event *k = &s->event[i];
        const struct stmt *st = k->kind == EVENT_STMT ? &s->p->stmt[k->stmt] : NULL;
        if (event_reads(s, i, buffer)) return true;
        if (k->to != buffer) continue;
        if (!st || (st->combine == COMBINE_SET && equal_writes_all(s->p, st))) return false;
    }
    return true;
}

static void forget(struct side *s, int enter) {
    for (int i = enter; i <= s->event[enter].match; i++) {
        s->event[i].content = -1;
        for (int b = 0; s->event[i].contents && b < s->p->nbuffers; b++)
            s->event[i].contents[b] = -1;
    }
}

/* Buffers that are the same before the recurrences, and behind each step if they were before it,
 * are the same behind all. twin[b]: buffer b of side 0 is taken to be the same as that of side 1;
 * what a step refutes goes, until nothing does. */
static void induct(struct equal *x, int i, int j, int *twin) {
    struct side *s = &x->side[0], *t = &x->side[1];
    struct stretch v = {i + 1, s->event[i].match}, w = {j + 1, t->event[j].match};
    struct reach r;
    for (bool again = true; again;) {
        again = false;
        forget(s, i);
        forget(t, j);
        for (int b = 0; b < s->p->nbuffers; b++)
            if (twin[b] >= 0) share(x, i, b, j, twin[b], any_of(&s->p->buffer[b]));
        share_phases(x, v, w);
        for (int b = 0; b < s->p->nbuffers; b++) {
            if (twin[b] < 0 || same_after(x, b, v.to, twin[b], w.to, &r)) continue;
            twin[b] = -1;
            again = true;
            retry(x);
        }
    }
    for (int b = 0; b < s->p->nbuffers; b++)
        if (twin[b] >= 0) share(x, v.to, b, w.to, twin[b], any_of(&s->p->buffer[b]));
}

static void share_recurrence(struct equal *x, int i, int j) {
    const struct side *s = &x->side[0], *t = &x->side[1];
    int *twin = arena_array(&x->arena, (size_t)s->p->nbuffers + 1, sizeof *twin);
    struct reach r;
    for (int b = 0; b < s->p->nbuffers; b++) {
        int c = event_writes(s, i, b) >= 0 ? buffer_twin(s->p, b, t->p) : -1;
        twin[b] = -1;
        if (c < 0 || event_writes(t, j, c) < 0 || !(crosses(s, i, b) || crosses(t, j, c))) continue;
        if (same_after(x, b, i, c, j, &r)) twin[b] = c;
        retry(x);
    }
    induct(x, i, j, twin);
}

static bool both_write(const struct equal *x, int i, int j) {
    const struct side *s = &x->side[0], *t = &x->side[1];
    for (int b = 0; b < s->p->nbuffers; b++) {
        int c = event_writes(s, i, b) >= 0 ? buffer_twin(s->p, b, t->p) : -1;
        if (c >= 0 && event_writes(t, j, c) >= 0) return true;
    }
    return false;
}

/* The next recurrence of side 1, from event `from` on, of the same steps that writes what that of
 * side 0 writes; -1: none. */
static int recurrence_twin(const struct equal *x, int enter, int from, int to) {
    const struct side *t = &x->side[1];
    for (int j = from; j < to; j = event_behind(t, j))
        if (t->event[j].kind == EVENT_ENTER && same_steps(&x->side[0], enter, t, j) &&
            both_write(x, enter, j))
            return j;
    return -1;
}

/* What is read on one side alone stays open: the other side has its terms from somewhere else. */
static void share_phases(struct equal *x, struct stretch v, struct stretch w) {
    const struct side *s = &x->side[0];
    int next = w.from;
    for (int i = v.from; i < v.to; i = event_behind(s, i)) {
        int j = s->event[i].kind == EVENT_ENTER ? recurrence_twin(x, i, next, w.to) : -1;
        if (j >= 0) {
            share_recurrence(x, i, j);
            next = event_behind(&x->side[1], j);
        }
        if (s->event[i].kind != EVENT_ENTER) share_phase(x, i, v, w);
    }
}

/* ---- what temporaries can hold when the stretch begins ---- */

/* A statement of no recurrence, opened or not. */
static bool stands_alone(const struct program *p, const struct item *item) {
    return item->kind == ITEM_STMT && !p->stmt[item->stmt].scope;
}

static void initial_range(struct equal *x, const struct program *p, int from, int buffer,
                          int content) {
    struct side *s = &x->side[0], keep = *s;
    int64_t **row;
    if (p->buffer[buffer].role != ROLE_TEMP || type_is_float(p->buffer[buffer].type)) return;
    for (int i = 0; i < from; i++)
        if (!stands_alone(p, &p->item[i]) && item_touches(p, &p->item[i], buffer)) return;
    int last = from;
    while (last > 0 && !(p->item[last - 1].kind == ITEM_STMT &&
                         p->stmt[p->item[last - 1].stmt].dst.buffer == buffer))
        last--;
    int first = last;
    while (first > 0 && stands_alone(p, &p->item[first - 1])) first--;
    if (last == first || !side_open(x, s, p, (struct items){first, last})) {
        *s = keep;
        retry(x);
        return;
    }
    x->shallow = buffer + 1;
    struct spot at = everywhere(x, s, s->nevents, buffer, &row);
    struct form *f = x->failed ? NULL : form_element(x, s, s->nevents, buffer, row, &at);
    struct reach r = f && !x->failed ? form_range(x, f) : type_reach(p->buffer[buffer].type);
    if (reach_fits(r, p->buffer[buffer].type)) x->content[content].range = r;
    x->shallow = 0;
    *s = keep;
    retry(x);
}

static bool touches(const struct side *s, int buffer) {
    for (int i = 0; i < s->nevents; i++)
        if (s->event[i].to == buffer ||
            (s->event[i].kind != EVENT_ENTER && event_reads(s, i, buffer)))
            return true;
    return false;
}

static void share_initial(struct equal *x, struct items a) {
    const struct program *p = x->side[0].p, *q = x->side[1].p;
    for (int b = 0; b < p->nbuffers; b++) {
        int c = buffer_twin(p, b, q), content = x->ncontents;
        if (c < 0 || !(touches(&x->side[0], b) || touches(&x->side[1], c))) continue;
        x->side[0].initial[b] = x->side[1].initial[c] =
            content_of_both(x, any_of(&p->buffer[b]), p->buffer[b].type, -1, -1);
        initial_range(x, p, a.from, b, content);
    }
}

/* ---- the whole ---- */

/* A buffer, k of the one program and c of the other, that one of them has written. */
static bool agrees(struct equal *x, struct items a, struct items b, int k, int c) {
    const struct program *p = x->side[0].p, *q = x->side[1].p;
    struct reach r;
    int n = x->side[0].nevents, m = x->side[1].nevents, u = event_writer(&x->side[0], n, k),
        v = c >= 0 ? event_writer(&x->side[1], m, c) : -1;
    if (!span_shows(p, a, k) && (c < 0 || !span_shows(q, b, c))) return true;
    if (buffer_twin(p, k, q) != c || c < 0)
        return equal_stop(x, "a buffer that others see is declared differently");
    if (u >= 0 && v >= 0 && *event_content(&x->side[0], u, k) >= 0 &&
        *event_content(&x->side[0], u, k) == *event_content(&x->side[1], v, c))
        return true;
    return same_after(x, k, n, c, m, &r) || equal_stop(x, "an element comes from other terms");
}

/* Every buffer that others see. Names are looked up of those alone that something writes: there are
 * as many witnesses as there are buffers. */
static bool all_agree(struct equal *x, struct items a, struct items b) {
    const struct program *p = x->side[0].p, *q = x->side[1].p;
    for (int k = 0; k < p->nbuffers; k++)
        if (event_writer(&x->side[0], x->side[0].nevents, k) >= 0 &&
            !agrees(x, a, b, k, program_buffer(q, p->buffer[k].name)))
            return false;
    for (int c = 0; c < q->nbuffers; c++) {
        if (event_writer(&x->side[1], x->side[1].nevents, c) < 0) continue;
        int k = program_buffer(p, q->buffer[c].name);
        if (k < 0 && span_shows(q, b, c)) return equal_stop(x, "a new buffer is seen by others");
        if (k >= 0 && event_writer(&x->side[0], x->side[0].nevents, k) < 0 &&
            !agrees(x, a, b, k, c))
            return false;
    }
    return !x->failed;
}

struct verdict items_equal_by(const struct program *p, struct items a, const struct program *q,
                              struct items b, uint32_t laws, int64_t steps) {
    struct verdict v = {.evidence = EVIDENCE_UNPROVED};
    struct equal *x = memory_array(1, sizeof *x);
    arena_init(&x->arena);
    x->ctx = poly_begin();
    isl_ctx_set_max_operations(x->ctx, steps > 0 ? (unsigned long)steps : default_steps);
    x->laws = laws;
    struct items of[2] = {a, b};
    struct program *cut[2] = {equal_cut(p, &a, q, of[1]), equal_cut(q, &b, p, of[0])};
    if (cut[0]) p = cut[0];
    if (cut[1]) q = cut[1];
    bool good = side_open(x, &x->side[0], p, a) && side_open(x, &x->side[1], q, b);
    if (good && !same_sizes(p, q)) good = equal_stop(x, "its open sizes are others");
    if (good) share_initial(x, a);
    if (good && !x->failed)
        share_phases(x, (struct stretch){0, x->side[0].nevents},
                     (struct stretch){0, x->side[1].nevents});
    good = good && !x->failed && all_agree(x, a, b);
    v.evidence = good ? EVIDENCE_PROVED : EVIDENCE_UNPROVED;
    v.laws = x->used;
    v.nodes = x->nodes;
    v.why = good ? NULL : x->why;
    for (int k = 0; k < x->nkept; k++) isl_set_free(x->kept[k]);
    poly_end(x->ctx);
    for (int k = 0; k < 2; k++) program_free(cut[k]);
    arena_free(&x->arena);
    free(x);
    return v;
}
