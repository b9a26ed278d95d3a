/* Which slot of each place is the current one, in the symbolic walk. A general iteration begins
 * with SOME_SLOT where the slot differs from one iteration to the next; by how many it has been
 * rotated at its end holds for each iteration, so the slot after all of them is a number again. */
#include "scheduler/verify/sym.h"

static bool is_relative(int slot) {
    return slot >= SOME_SLOT;
}

static int rotated(int slot, int64_t by, int slots) {
    if (slot == LOST_SLOT) return slot;
    int base = is_relative(slot) ? SOME_SLOT : 0;
    return base + (int)((slot - base + by) % slots);
}

int slot_rotated(const struct sym *s, int place, int slot) {
    return slot == NOT_TURNED ? 0 : rotated(slot, 1, s->v->s->place[place].slots);
}

bool slots_general(const struct frame *f, int *slot, const int *before) {
    for (int k = 0; k < f->n; k++) {
        if ((slot[k] == NOT_TURNED) != (before[k] == NOT_TURNED)) return false;
        if (slot[k] != before[k] || slot[k] == LOST_SLOT) slot[k] = SOME_SLOT;
    }
    return true;
}

bool slots_step(const struct sym *s, const struct frame *f, int *slot, const int *after, int *turns,
                bool *weaker) {
    for (int k = 0; k < f->n; k++) {
        turns[k] = 0;
        if ((slot[k] == NOT_TURNED) != (after[k] == NOT_TURNED)) return false;
        if (slot[k] == after[k]) continue;
        int slots = s->v->s->place[f->at[k]].slots;
        if (is_relative(slot[k]) && after[k] == LOST_SLOT)
            turns[k] = LOST_SLOT;
        else if (is_relative(slot[k]) && is_relative(after[k]))
            turns[k] = (after[k] - slot[k] + slots) % slots;
        else {
            slot[k] = SOME_SLOT;
            *weaker = true;
        }
    }
    return true;
}

void slots_over(const struct sym *s, const struct frame *f, const int *now, const int *turns,
                const struct lin *times, int *slot) {
    int64_t n;
    bool counted = lin_constant(times, &n);
    for (int k = 0; k < f->n; k++) {
        slot[k] = now[k];
        if (now[k] == NOT_TURNED || turns[k] == 0) continue;
        int slots = s->v->s->place[f->at[k]].slots;
        slot[k] = counted && turns[k] != LOST_SLOT ? rotated(now[k], n % slots * turns[k], slots)
                                                   : LOST_SLOT;
    }
}
