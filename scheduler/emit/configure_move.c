/* Places in a memory whose words have states: a place moves to words of its own, or to ones where
 * the same value is needed, if that spares a change. */
#include "scheduler/emit/configure_int.h"
#include <string.h>

static bool mentions(const struct node *n, const struct machine *m, int place) {
    if (n->kind == NODE_ISSUE)
        for (int o = 0; o < m->instr[n->issue->instr].noperands; o++)
            if (n->issue->arg[o].place == place) return true;
    for (int k = 0; n->kind == NODE_LOOP && k < n->loop->nbody; k++)
        if (mentions(&n->loop->body[k], m, place)) return true;
    return false;
}

bool places_mentioned(const struct node *at, int n, const struct machine *m, int place) {
    for (int i = 0; i < n; i++)
        if (mentions(&at[i], m, place)) return true;
    return false;
}

static void span(const struct node *at, int n, const struct machine *m, int place, int *first,
                 int *last) {
    *first = n;
    *last = -1;
    for (int i = 0; i < n; i++) {
        if (!mentions(&at[i], m, place)) continue;
        if (*last < 0) *first = i;
        *last = i;
    }
}

/* Are both alive somewhere at the same time? */
static bool together(const struct node *at, int n, const struct machine *m, int p, int q) {
    int first_p, last_p, first_q, last_q;
    span(at, n, m, p, &first_p, &last_p);
    span(at, n, m, q, &first_q, &last_q);
    if (last_p < 0 || last_q < 0 || last_p < first_q || last_q < first_p) return false;
    int shared = last_p == first_q ? last_p : last_q == first_p ? last_q : -1;
    if (shared < 0 || at[shared].kind != NODE_LOOP) return true;
    return together(at[shared].loop->body, at[shared].loop->nbody, m, p, q);
}

static bool overlap(const struct place *a, const struct place *b, int64_t at) {
    return at < b->address + b->bytes * b->slots && b->address < at + a->bytes * a->slots;
}

static bool may_move(const struct placer *p, const struct nodes *run, int place, int64_t at,
                     const bool *settled) {
    const struct schedule *s = p->w->s;
    for (int q = 0; q < s->nplaces; q++) {
        if (q == place || s->place[q].memory != s->place[place].memory) continue;
        if (!settled[q] && at == s->place[place].address) continue; /* as it was */
        if (overlap(&s->place[place], &s->place[q], at) &&
            together(run->at, run->n, p->w->m, place, q))
            return false;
    }
    return true;
}

/* ---- where places stand ----
 * The tree is cut where nothing in the memory is alive: there all words may change. A place takes
 * words that agree with all other places' if it can, else with those of its own pieces. */

struct pieces {
    int n;
    const int *of; /* piece of each node of the run */
    struct words *words;
};

static struct pieces pieces_of(struct placer *p, const struct nodes *run, int memory) {
    struct arena *a = p->w->arena;
    bool *joined = arena_array(a, (size_t)run->n + 1, sizeof *joined); /* to the node before */
    int *of = arena_array(a, (size_t)run->n + 1, sizeof *of), n = 0;
    for (int k = 0; k < p->w->s->nplaces; k++) {
        int first, last;
        if (p->w->s->place[k].memory != memory) continue;
        span(run->at, run->n, p->w->m, k, &first, &last);
        for (int i = first + 1; i <= last; i++) joined[i] = true;
    }
    for (int i = 0; i < run->n; i++) {
        n += i > 0 && !joined[i];
        of[i] = n;
    }
    return (struct pieces){n + 1, of, arena_array(a, (size_t)n + 1, sizeof(struct words))};
}

/* The words of the place, moved by `shift`, beside those that are settled. */
static bool agrees(const struct placer *p, const struct words *all, const struct words *mine,
                   int64_t shift) {
    for (int k = 0; k < p->nwords; k++) {
        if (!mine->field[k]) continue;
        if (k + shift < 0 || k + shift >= p->nwords) return false;
        const struct sx **other = all->field[k + shift];
        if (other && !fields_same(other, mine->field[k], p->nfields)) return false;
    }
    return true;
}

static bool fits(const struct placer *p, const struct place *place, int64_t at) {
    const struct memory *m = &p->w->m->memory[place->memory];
    return at >= 0 && at + place->bytes * place->slots <= m->size;
}

/* The address where pieces from .. to agree; -1: none. */
static int64_t agreed(struct placer *p, const struct nodes *run, int place,
                      const struct words *mine, const struct pieces *pieces, int from, int to,
                      const bool *settled) {
    const struct place *pl = &p->w->s->place[place];
    int64_t word = p->w->m->memory[pl->memory].word;
    for (int k = -1; k < p->nwords; k++) {
        int64_t at = k < 0 ? pl->address : k * word;
        bool ok = fits(p, pl, at);
        for (int i = from; i <= to && ok; i++)
            ok = agrees(p, &pieces->words[i], mine, (at - pl->address) / word);
        if (ok && may_move(p, run, place, at, settled)) return at;
    }
    return -1;
}

static void settle(struct placer *p, const struct nodes *run, int place,
                   const struct pieces *pieces, bool *settled) {
    struct place *pl = &p->w->s->place[place];
    struct words mine = {{NULL}};
    int first, last;
    span(run->at, run->n, p->w->m, place, &first, &last);
    p->only = place;
    bool one = collect_all(p, run->at, run->n, &mine);
    p->only = -1;
    settled[place] = true;
    if (!one || last < 0) return;
    int from = pieces->of[first], to = pieces->of[last];
    int64_t found = agreed(p, run, place, &mine, pieces, 0, pieces->n - 1, settled);
    if (found < 0) found = agreed(p, run, place, &mine, pieces, from, to, settled);
    int64_t shift = found < 0 ? 0 : (found - pl->address) / p->w->m->memory[pl->memory].word;
    for (int i = from; i <= to; i++)
        for (int k = 0; k < p->nwords; k++)
            if (mine.field[k] && !pieces->words[i].field[k + shift])
                pieces->words[i].field[k + shift] = mine.field[k];
    if (found >= 0) pl->address = found;
}

void places_settle(struct placer *p, const struct nodes *run) {
    const struct schedule *s = p->w->s;
    int memory = p->w->m->state[p->state].of;
    struct pieces pieces = pieces_of(p, run, memory);
    bool *settled = arena_array(p->w->arena, (size_t)s->nplaces + 1, sizeof *settled);
    for (int k = 0; k < s->nplaces; k++)
        if (s->place[k].memory == memory && s->place[k].keep == KEEP_LOCAL)
            settle(p, run, k, &pieces, settled);
}
