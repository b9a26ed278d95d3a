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

/* The buffer of q that is b of p; -1. */
int buffer_twin(const struct program *p, int b, const struct program *q) {
    int found = b < q->nbuffers && !strcmp(q->buffer[b].name, p->buffer[b].name)
                    ? b
                    : program_buffer(q, p->buffer[b].name);
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
    if (p->buffer[buffer].role != ROLE_TEMP) return true;
    for (int i = 0; i < p->nitems; i++)
        if ((i < w.from || i >= w.to) && item_touches(p, &p->item[i], buffer)) return true;
    return false;
}

static bool side_open(struct equal *x, struct side *s, const struct program *p, struct items w) {
    *s = (struct side){.p = p, .nitems = w.to - w.from, .item = p->item + w.from};
    s->initial = arena_array(&x->arena, (size_t)p->nbuffers + 1, sizeof *s->initial);
    s->content = arena_array(&x->arena, (size_t)s->nitems + 1, sizeof *s->content);
    for (int b = 0; b < p->nbuffers; b++) s->initial[b] = -1;
    for (int i = 0; i < s->nitems; i++) {
        s->content[i] = -1;
        if (s->item[i].kind != ITEM_STMT)
            return equal_stop(x, "a recurrence or a call is part of it");
    }
    return true;
}

/* ---- one buffer ---- */

static struct spot everywhere(struct equal *x, const struct buffer *b, int64_t ***row) {
    struct spot s = {.n = b->ndims};
    isl_set *dom = isl_set_universe(isl_space_set_alloc(x->ctx, 0, (unsigned)b->ndims));
    s.name = arena_array(&x->arena, (size_t)b->ndims + 1, sizeof *s.name);
    *row = arena_array(&x->arena, (size_t)b->ndims + 1, sizeof **row);
    for (int d = 0; d < b->ndims; d++) {
        int64_t *up = equal_row(x, b->ndims);
        (*row)[d] = equal_row(x, b->ndims);
        (*row)[d][d + 1] = 1;
        up[d + 1] = -1;
        up[0] = b->extent[d] - 1;
        dom = set_with(x, set_with(x, dom, (*row)[d], b->ndims, false), up, b->ndims, false);
    }
    s.dom = equal_keep(x, dom);
    return s;
}

static bool prove_after(struct equal *x, int b0, int before0, int b1, int before1,
                        struct reach *range) {
    int64_t **row;
    struct spot s = everywhere(x, &x->side[0].p->buffer[b0], &row);
    if (x->failed) return false;
    x->depth = 0;
    struct form *f = form_element(x, &x->side[0], before0, b0, row, &s),
                *g = form_element(x, &x->side[1], before1, b1, row, &s);
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

/* The writes after which somebody reads, and the last ones; by items. */
static int phases_of(const struct side *s, int buffer, int *out) {
    int n = 0, last = -1;
    for (int i = 0; i < s->nitems; i++) {
        const struct stmt *st = &s->p->stmt[s->item[i].stmt];
        bool reads = false;
        for (int r = 0; r < st->nreads; r++) reads |= st->read[r].buffer == buffer;
        if (reads && last >= 0) {
            if (n == MAX_PHASES) return -1;
            out[n++] = last;
            last = -1;
        }
        if (st->dst.buffer == buffer) last = i;
    }
    if (last >= 0 && n < MAX_PHASES) out[n++] = last;
    return n;
}

static void share(struct equal *x, int content0, int content1, struct reach r, enum type t) {
    if (x->ncontents == MAX_CONTENTS) {
        equal_stop(x, "it has too many buffers");
        return;
    }
    if (content0 >= 0) x->side[0].content[content0] = x->ncontents;
    if (content1 >= 0) x->side[1].content[content1] = x->ncontents;
    x->content[x->ncontents++] = (struct content){r, t, {content0, content1}};
}

/* A proof that fails in the middle costs no other one. */
static void retry(struct equal *x) {
    isl_ctx_reset_operations(x->ctx);
    isl_ctx_reset_error(x->ctx);
    x->failed = false;
}

/* Statements behind item i read the buffer. */
static bool read_after(const struct side *s, int i, int buffer) {
    for (i++; i < s->nitems; i++) {
        const struct stmt *st = &s->p->stmt[s->item[i].stmt];
        for (int r = 0; r < st->nreads; r++)
            if (st->read[r].buffer == buffer) return true;
    }
    return false;
}

/* What is read on one side alone stays open: the other side has its terms from somewhere else. */
static void share_phases(struct equal *x) {
    struct side *s = &x->side[0], *t = &x->side[1];
    for (int i = 0; i < s->nitems; i++) {
        int b = s->p->stmt[s->item[i].stmt].dst.buffer, c = buffer_twin(s->p, b, t->p),
            first[MAX_PHASES], second[MAX_PHASES], k = 0;
        struct reach r;
        if (c < 0) continue;
        int n = phases_of(s, b, first);
        if (n <= 0 || n != phases_of(t, c, second)) continue;
        while (k < n && first[k] != i) k++;
        if (k == n || read_after(s, i, b) != read_after(t, second[k], c)) continue;
        if (same_after(x, b, i + 1, c, second[k] + 1, &r))
            share(x, i, second[k], r, s->p->buffer[b].type);
        retry(x);
    }
}

/* ---- what temporaries can hold when the stretch begins ---- */

static void initial_range(struct equal *x, const struct program *p, int from, int buffer,
                          int content) {
    struct side *s = &x->side[0], keep = *s;
    int64_t **row;
    if (p->buffer[buffer].role != ROLE_TEMP || type_is_float(p->buffer[buffer].type)) return;
    for (int i = 0; i < from; i++)
        if (p->item[i].kind != ITEM_STMT && item_touches(p, &p->item[i], buffer)) return;
    int last = from;
    while (last > 0 && !(p->item[last - 1].kind == ITEM_STMT &&
                         p->stmt[p->item[last - 1].stmt].dst.buffer == buffer))
        last--;
    int first = last;
    while (first > 0 && p->item[first - 1].kind == ITEM_STMT) first--;
    if (last == first || !side_open(x, s, p, (struct items){first, last})) {
        *s = keep;
        return;
    }
    x->shallow = buffer + 1;
    struct spot at = everywhere(x, &p->buffer[buffer], &row);
    struct form *f = x->failed ? NULL : form_element(x, s, s->nitems, buffer, row, &at);
    struct reach r = f && !x->failed ? form_range(x, f) : type_reach(p->buffer[buffer].type);
    if (reach_fits(r, p->buffer[buffer].type)) x->content[content].range = r;
    x->shallow = 0;
    *s = keep;
    retry(x);
}

static void share_initial(struct equal *x, struct items a) {
    const struct program *p = x->side[0].p, *q = x->side[1].p;
    for (int b = 0; b < p->nbuffers; b++) {
        int c = buffer_twin(p, b, q), content = x->ncontents;
        bool reads = false;
        if (c < 0) continue;
        for (int i = 0; i < x->side[0].nitems; i++)
            reads |= item_touches(p, &x->side[0].item[i], b);
        for (int i = 0; i < x->side[1].nitems; i++)
            reads |= item_touches(q, &x->side[1].item[i], c);
        if (!reads) continue;
        share(x, -1, -1,
              type_reach(type_is_float(p->buffer[b].type) ? TYPE_I64 : p->buffer[b].type),
              p->buffer[b].type);
        x->side[0].initial[b] = x->side[1].initial[c] = content;
        initial_range(x, p, a.from, b, content);
    }
}

/* ---- the whole ---- */

static int writer_of(const struct side *s, int buffer) {
    int last = -1;
    for (int i = 0; i < s->nitems; i++)
        if (s->p->stmt[s->item[i].stmt].dst.buffer == buffer) last = i;
    return last;
}

/* Every buffer that others see. */
static bool all_agree(struct equal *x, struct items a, struct items b) {
    const struct program *p = x->side[0].p, *q = x->side[1].p;
    struct reach r;
    for (int k = 0; k < p->nbuffers; k++) {
        int c = program_buffer(q, p->buffer[k].name);
        int u = writer_of(&x->side[0], k), v = c >= 0 ? writer_of(&x->side[1], c) : -1;
        if ((u < 0 && v < 0) || (!span_shows(p, a, k) && (c < 0 || !span_shows(q, b, c)))) continue;
        if (buffer_twin(p, k, q) != c || c < 0)
            return equal_stop(x, "a buffer that others see is declared differently");
        if (u >= 0 && v >= 0 && x->side[0].content[u] >= 0 &&
            x->side[0].content[u] == x->side[1].content[v])
            continue;
        if (!same_after(x, k, x->side[0].nitems, c, x->side[1].nitems, &r))
            return equal_stop(x, "an element comes from other terms");
    }
    for (int k = 0; k < q->nbuffers; k++)
        if (writer_of(&x->side[1], k) >= 0 && program_buffer(p, q->buffer[k].name) < 0 &&
            span_shows(q, b, k))
            return equal_stop(x, "a new buffer is seen by others");
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
    bool good = side_open(x, &x->side[0], p, a) && side_open(x, &x->side[1], q, b);
    if (good) share_initial(x, a);
    if (good && !x->failed) share_phases(x);
    good = good && !x->failed && all_agree(x, a, b);
    v.evidence = good ? EVIDENCE_PROVED : EVIDENCE_UNPROVED;
    v.laws = x->used;
    v.why = good ? NULL : x->why;
    for (int k = 0; k < x->nkept; k++) isl_set_free(x->kept[k]);
    poly_end(x->ctx);
    arena_free(&x->arena);
    free(x);
    return v;
}
