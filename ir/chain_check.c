/* A chain is checked witness by witness: what they say is changed is equal by their laws, or, where
 * that serves, agrees in samples; all between them is the same text. */
#include "ir/equal_alike.h"

#include <inttypes.h>
#include <string.h>

/* Between two witnesses nothing is changed. */
static bool same_between(const struct program *p, int i, int to, const struct program *q, int j,
                         int end) {
    if (to - i != end - j) return false;
    for (; i < to; i++, j++)
        if (!items_alike(p, &p->item[i], q, &q->item[j])) return false;
    return true;
}

/* As many rows as the same size says, or a fixed number of them. */
static bool rows_alike(const struct program *p, const struct buffer *a, const struct program *q,
                       const struct buffer *b) {
    return !a->size == !b->size &&
           (!a->size || !strcmp(p->size[a->size - 1].name, q->size[b->size - 1].name));
}

/* What callers see is declared alike, in the same order. */
static bool arguments_alike(const struct program *p, const struct program *q) {
    for (int b = 0; b < p->nbuffers; b++) {
        if (p->buffer[b].role == ROLE_TEMP || p->buffer[b].role == ROLE_STATE) continue;
        int c = buffer_twin(p, b, q);
        if (c < 0 || q->buffer[c].role != p->buffer[b].role ||
            !rows_alike(p, &p->buffer[b], q, &q->buffer[c]))
            return false;
    }
    for (int b = 0; b < q->nbuffers; b++)
        if (q->buffer[b].role != ROLE_TEMP && q->buffer[b].role != ROLE_STATE &&
            buffer_twin(q, b, p) < 0)
            return false;
    return true;
}

static bool well_placed(const struct program *p, const struct program *q,
                        const struct chain_step *s) {
    int i = 0, j = 0;
    for (int k = 0; k < s->nwitnesses; k++) {
        const struct witness *w = &s->witness[k];
        if (w->before.from < i || w->before.to < w->before.from || w->before.to > p->nitems ||
            w->after.from < j || w->after.to < w->after.from || w->after.to > q->nitems ||
            !same_between(p, i, w->before.from, q, j, w->after.from))
            return false;
        i = w->before.to;
        j = w->after.to;
    }
    return same_between(p, i, p->nitems, q, j, q->nitems) && arguments_alike(p, q);
}

static bool shows_integers(const struct program *q, struct items w) {
    for (int i = w.from; i < w.to; i++) {
        if (q->item[i].kind != ITEM_STMT) return true;
        int b = q->stmt[q->item[i].stmt].dst.buffer;
        if (span_shows(q, w, b) && !type_is_float(q->buffer[b].type)) return true;
    }
    return false;
}

/* A stretch of statements finds in temporaries what those before it leave there, not any value:
 * only what differs from the beginning on is refuted. */
static bool refuted(const struct program *p, const struct program *q, const struct witness *w) {
    struct items all = {0, p->nitems}, own = {0, q->nitems};
    return items_sampled(p, all, q, own, w->sampling, NULL).evidence == EVIDENCE_REFUTED;
}

/* With those who make what constants alone decide; *wide: they were asked. */
static struct verdict judge_with_makers(const struct program *p, const struct program *q,
                                        const struct witness *w, struct verdict v, bool *wide) {
    struct arena a;
    struct program before = *p, after = *q;
    struct items x = w->before, y = w->after;
    arena_init(&a);
    *wide = items_with_makers(&a, &before, &x, "before");
    *wide |= items_with_makers(&a, &after, &y, "after");
    if (*wide) v = items_equal_by(&before, x, &after, y, w->laws, 0);
    arena_free(&a);
    return v;
}

/* Samples stand for a proof where floats may be rounded otherwise. */
static struct verdict judge(const struct program *p, const struct program *q,
                            const struct witness *w, bool *wide) {
    struct verdict v = items_equal_by(p, w->before, q, w->after, w->laws, 0);
    *wide = false;
    if (v.evidence != EVIDENCE_PROVED) v = judge_with_makers(p, q, w, v, wide);
    if (v.evidence == EVIDENCE_PROVED) return v;
    struct verdict s = items_sampled(p, w->before, q, w->after, w->sampling, NULL);
    if (s.evidence == EVIDENCE_SAMPLED)
        return w->may_sample && !shows_integers(q, w->after) ? s : v;
    return s.evidence == EVIDENCE_REFUTED && refuted(p, q, w) ? s : v;
}

static void note(struct chain_report *r, struct verdict v, const char *by) {
    r->nproved += v.evidence == EVIDENCE_PROVED;
    r->nsampled += v.evidence == EVIDENCE_SAMPLED;
    r->nunproved += v.evidence == EVIDENCE_UNPROVED;
    r->samples += v.samples;
    if (v.evidence == EVIDENCE_PROVED) r->laws |= v.laws;
    if (v.evidence <= r->evidence) return;
    r->evidence = v.evidence;
    r->by = by;
    r->why = v.why;
}

static void tell(struct text *what, const struct witness *w, struct verdict v) {
    if (!what) return;
    text_printf(what, "'%s', items %d to %d as %d to %d: %s", w->by, w->before.from, w->before.to,
                w->after.from, w->after.to, evidence_name[v.evidence]);
    if (v.evidence == EVIDENCE_SAMPLED) text_printf(what, ", %" PRId64 " elements", v.samples);
    if (v.why && v.evidence != EVIDENCE_SAMPLED) text_printf(what, ": %s", v.why);
    bool first = true;
    for (int l = 0; l < LAW_COUNT_OF && v.evidence == EVIDENCE_PROVED; l++)
        if (v.laws >> l & 1) {
            text_printf(what, "%s%s", first ? " by " : ", ", law_name[l]);
            first = false;
        }
    text_printf(what, "\n");
}

/* From the first to the last: where what one witness leaves is what another one expects. */
static struct witness together(struct arena *a, const struct chain_step *s) {
    struct witness all = s->witness[0];
    for (int w = 1; w < s->nwitnesses; w++) {
        const struct witness *x = &s->witness[w];
        all.laws |= x->laws;
        all.before.to = x->before.to;
        all.after.to = x->after.to;
        all.may_sample &= x->may_sample;
        if (x->sampling > all.sampling) all.sampling = x->sampling;
        if (strcmp(all.by, x->by)) all.by = arena_printf(a, "%s; %s", all.by, x->by);
    }
    return all;
}

/* Each alone. What was proved once is proved for those that are the same but for names, unless what
 * stands elsewhere belonged to the proof. */
static bool judge_each(struct arena *a, const struct program *p, const struct program *q,
                       const struct chain_step *s, struct verdict *each) {
    struct alike_row *row = arena_array(a, (size_t)s->nwitnesses, sizeof *row);
    bool good = true;
    for (int w = 0; w < s->nwitnesses; w++) {
        bool wide = false;
        bool has_row = alike_witness(a, p, q, &s->witness[w], &row[w]);
        int like = -1;
        for (int k = 0; k < w && has_row && like < 0; k++)
            if (each[k].evidence == EVIDENCE_PROVED && alike_same(&row[k], &row[w])) like = k;
        each[w] = like >= 0 ? each[like] : judge(p, q, &s->witness[w], &wide);
        if (!has_row || wide) row[w].n = 0;
        good &= each[w].evidence == EVIDENCE_PROVED || each[w].evidence == EVIDENCE_SAMPLED;
    }
    return good;
}

static void judge_step(const struct program *p, const struct program *q, const struct chain_step *s,
                       struct chain_report *r, struct text *what) {
    struct arena a;
    struct verdict whole = {.evidence = EVIDENCE_UNPROVED};
    if (!s->nwitnesses) return;
    arena_init(&a);
    struct verdict *each = arena_array(&a, (size_t)s->nwitnesses, sizeof *each);
    bool good = judge_each(&a, p, q, s, each);
    struct witness all = together(&a, s);
    if (!good && s->nwitnesses > 1) {
        bool wide;
        whole = judge(p, q, &all, &wide);
        note(r, whole, s->witness[0].by);
        tell(what, &all, whole);
    }
    for (int w = 0; w < s->nwitnesses && (good || s->nwitnesses == 1); w++) {
        note(r, each[w], s->witness[w].by);
        tell(what, &s->witness[w], each[w]);
    }
    arena_free(&a);
}

struct chain_report chain_verify(const struct chain *c, const struct program *last,
                                 struct text *what) {
    struct chain_report r = {.evidence = EVIDENCE_PROVED};
    static const struct verdict torn = {.evidence = EVIDENCE_REFUTED,
                                        .why = "its witnesses do not cover what is changed"};
    if (!c) {
        r.evidence = EVIDENCE_UNPROVED;
        r.why = "the schedule carries no program as it was written";
        return r;
    }
    const struct program *p = c->written;
    static const struct chain_step same = {.nwitnesses = 0};
    for (int k = 0; k < c->nsteps || (k == 0 && c->nsteps == 0); k++) {
        const struct chain_step *s = c->nsteps ? &c->step[k] : &same;
        const struct program *q = s->program ? s->program : last;
        /* arrays that are declared otherwise, with fewer dimensions in one of both: they are
         * compared as if they were not */
        bool alike = arguments_alike(p, q);
        struct program *after = alike ? NULL : program_spread(q, p);
        struct program *before = alike || after ? NULL : program_spread(p, q);
        const struct program *x = before ? before : p, *y = after ? after : q;
        bool good = well_placed(x, y, s);
        if (good) judge_step(x, y, s, &r, what);
        program_free(after);
        program_free(before);
        if (!good) {
            note(&r, torn, s->nwitnesses ? s->witness[0].by : "copies");
            return r;
        }
        p = q;
    }
    return r;
}
