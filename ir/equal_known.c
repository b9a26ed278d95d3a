/* What was followed or compared before in the same proof. Where values are read more than once
 * along a chain, the ways through it multiply, though values and comparisons are few: each is made
 * once. */
#include "ir/equal_int.h"

#include <isl/set.h>

#include <string.h>

enum { BUCKETS = 512 };

struct known {
    struct question asked;
    struct form *form;
    bool holds;
    struct known *next;
};

static uint64_t mixed(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    for (size_t k = 0; k < n; k++) h = (h ^ at[k]) * UINT64_C(0x100000001b3);
    return h;
}

static size_t row_bytes(const struct question *q, int r) {
    return (size_t)(q->width[r] + 1) * sizeof(int64_t);
}

static uint64_t bucket_of(const struct question *q) {
    uint64_t h = mixed(UINT64_C(0xcbf29ce484222325), &q->kind, sizeof q->kind);
    h = mixed(mixed(h, q->of, sizeof q->of), q->at, sizeof q->at);
    for (int r = 0; r < q->nrows; r++) h = mixed(h, q->row[r], row_bytes(q, r));
    return h % BUCKETS;
}

static bool rows_same(const struct question *a, const struct question *b) {
    if (a->nrows != b->nrows) return false;
    for (int r = 0; r < a->nrows; r++)
        if (a->width[r] != b->width[r] || memcmp(a->row[r], b->row[r], row_bytes(a, r)) != 0)
            return false;
    return true;
}

/* Names decide which terms are taken to be the same first. */
static bool places_same(const struct question *a, const struct question *b) {
    const struct spot *s = a->spot, *t = b->spot;
    if (!s || !t) return s == t;
    if (s->n != t->n || s->compared != t->compared) return false;
    for (int d = 0; d < s->n && s->name != t->name; d++)
        if (s->name[d] != t->name[d]) return false;
    return s->dom == t->dom || isl_set_plain_is_equal(s->dom, t->dom) == isl_bool_true;
}

static bool questions_same(const struct question *a, const struct question *b) {
    return a->kind == b->kind && memcmp(a->of, b->of, sizeof a->of) == 0 &&
           memcmp(a->at, b->at, sizeof a->at) == 0 && rows_same(a, b) && places_same(a, b);
}

void question_row(struct equal *x, struct question *q, const int64_t *row, int n) {
    if (q->nrows == QUESTION_ROWS) {
        q->unknown = true;
        return;
    }
    q->width[q->nrows] = n;
    q->row[q->nrows++] = arena_copy(&x->arena, row, (size_t)(n + 1) * sizeof *row);
}

static struct known *find(const struct equal *x, const struct question *q) {
    struct known *k = x->known && !q->unknown ? x->known[bucket_of(q)] : NULL;
    while (k && !questions_same(&k->asked, q)) k = k->next;
    return k;
}

static struct known *add(struct equal *x, const struct question *q) {
    if (q->unknown || x->failed) return NULL;
    if (!x->known) x->known = arena_array(&x->arena, BUCKETS, sizeof(struct known *));
    struct known **at = &x->known[bucket_of(q)], *k = arena_alloc(&x->arena, sizeof *k);
    *k = (struct known){.asked = *q, .next = *at};
    if (q->spot) k->asked.spot = arena_copy(&x->arena, q->spot, sizeof *q->spot);
    return *at = k;
}

void known_forget(struct equal *x) {
    if (x->known) memset(x->known, 0, BUCKETS * sizeof(struct known *));
}

/* Who gets it may add terms: they are no terms of what is known. */
static struct form *form_own(struct equal *x, const struct form *f) {
    struct form *g = arena_copy(&x->arena, f, sizeof *f);
    g->cap = g->nterms;
    return g;
}

struct form *known_form(struct equal *x, const struct question *q) {
    const struct known *k = find(x, q);
    return k ? form_own(x, k->form) : NULL;
}

void known_note_form(struct equal *x, const struct question *q, const struct form *f) {
    struct known *k = add(x, q);
    if (k) k->form = form_own(x, f);
}

bool known_answer(const struct equal *x, const struct question *q, bool *holds) {
    const struct known *k = find(x, q);
    if (k) *holds = k->holds;
    return k != NULL;
}

void known_note_answer(struct equal *x, const struct question *q, bool holds) {
    struct known *k = add(x, q);
    if (k) k->holds = holds;
}
