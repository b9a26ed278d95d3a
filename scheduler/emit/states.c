/* States: after the tree stands, a pass for each state writes it where instructions need another
 * value, as far out of loops as the value stays the same (FORMAT: "written by configure only when a
 * different value is needed"). */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/work.h"

static int setter_of(const struct work *w, int state, uint64_t users) {
    return state_setter(w->edges, state, __builtin_ctzll(users));
}

bool configures_place(struct work *w, struct nodes *prepare, struct nodes *run) {
    for (int s = 0; s < w->m->nstates; s++) {
        uint64_t users = state_users(w, run->at, run->n, s);
        if (!users || state_from_addresses(w->m, s)) continue;
        int configure = setter_of(w, s, users);
        const struct configure *c = configure < 0 ? NULL : &w->m->configure[configure];
        bool ok = c;
        if (!c)
            configure_error(w, s, state_stmt(w, run->at, run->n, s), "no configure sets it alone");
        else if (c->at_launch || c->at_program)
            ok = configure_objects(w, s, configure, prepare, run);
        else
            ok = w->m->state[s].of >= 0 ? configure_words(w, s, configure, run)
                                        : configure_slots(w, s, configure, run);
        if (!ok) return false;
    }
    return true;
}
