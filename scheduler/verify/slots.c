/* Which slot of each place is the current one, in the symbolic walk: a form of the counters, modulo
 * the number of slots. What two iterations add to it each iteration adds, which a general one
 * proves. */
#include "scheduler/verify/sym.h"

static int64_t modulo(int64_t x, int64_t n) {
    return x % n < 0 ? x % n + n : x % n;
}

static void reduce(const struct sym *s, int place, struct slot *x) {
    int slots = s->v->s->place[place].slots;
    x->at.c = modulo(x->at.c, slots);
    for (int k = 0; k < SYM_LOOPS; k++) x->at.k[k] = modulo(x->at.k[k], slots);
}

void slot_rotate(struct sym *s, int place) {
    struct slot *x = &s->slot[place];
    if (x->turned) x->at.c++;
    x->turned = true;
    reduce(s, place, x);
}

int64_t slot_at(const struct sym *s, int place, const int64_t *counter) {
    const struct slot *x = &s->slot[place];
    int64_t at = x->at.c;
    if (x->lost) return -1;
    for (int k = 0; k < s->nloops; k++) at += x->at.k[k] * counter[k];
    return modulo(at, s->v->s->place[place].slots);
}

bool slots_general(const struct sym *s, const struct frame *f, const struct slot *before,
                   int counter, int64_t from, struct slot *slot) {
    for (int k = 0; k < f->n; k++) {
        struct lin step = slot[k].at;
        int64_t d;
        if (slot[k].turned != before[k].turned) return false;
        if (!slot[k].turned) continue;
        slot[k].lost |=
            before[k].lost || !lin_add(&step, &before[k].at, -1) || !lin_constant(&step, &d);
        if (slot[k].lost) continue;
        int slots = s->v->s->place[f->at[k]].slots;
        d = modulo(d, slots);
        slot[k].at.k[counter] = d;
        slot[k].at.c -= d * (from % slots);
        reduce(s, f->at[k], &slot[k]);
    }
    return true;
}

bool slots_step(const struct sym *s, const struct frame *f, int counter, struct slot *slot,
                bool *weaker) {
    for (int k = 0; k < f->n; k++) {
        if (f->at[k] >= s->v->s->nplaces) continue;
        struct slot want = slot[k];
        const struct slot *after = &s->slot[f->at[k]];
        if (slot[k].turned != after->turned) return false;
        if (!slot[k].turned || slot[k].lost) continue;
        want.at.c += want.at.k[counter];
        reduce(s, f->at[k], &want);
        if (!after->lost && lin_same(&want.at, &after->at)) continue;
        slot[k].lost = *weaker = true;
    }
    return true;
}

void slots_over(const struct sym *s, const struct frame *f, int counter, const struct lin *over,
                struct slot *slot) {
    for (int k = 0; k < f->n; k++) {
        if (!slot[k].turned) continue;
        slot[k].lost |= !lin_add(&slot[k].at, over, slot[k].at.k[counter]);
        slot[k].at.k[counter] = 0;
        reduce(s, f->at[k], &slot[k]);
    }
}
