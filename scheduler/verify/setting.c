/* States in the symbolic walk: which values each slot holds, where they are the same in all
 * iterations of the loops around. To forget one is always right: what needs it is not proved then.
 */
#include "scheduler/verify/sym.h"
#include "ir/memory.h"

#include <string.h>

/* Slots of the state that are followed: a word of its memory each, or as many as it counts; of
 * objects that `prepare` makes none is. */
static int slots_of(const struct machine *m, int state) {
    const struct state *s = &m->state[state];
    int64_t n = state_slots(m, state);
    return n < 0 || n > SETTING_SLOTS || s->nfields > SETTING_FIELDS ? 0 : (int)n;
}

void settings_open(struct sym *s) {
    const struct machine *m = s->v->m;
    s->first_setting = arena_array(&s->v->arena, (size_t)m->nstates + 1, sizeof *s->first_setting);
    for (int k = 0; k < m->nstates; k++)
        s->first_setting[k + 1] = s->first_setting[k] + slots_of(m, k);
    s->nsettings = s->first_setting[m->nstates];
    s->setting = arena_array(&s->v->arena, (size_t)s->nsettings + 1, sizeof *s->setting);
}

static void forget(struct sym *s, int from, int to) {
    for (int k = from; k < to; k++) s->setting[k].known = false;
}

void settings_forget(struct sym *s) {
    forget(s, 0, s->nsettings);
}

struct setting *settings_copy(const struct sym *s, struct setting *to) {
    if (!to) to = memory_array((size_t)s->nsettings + 1, sizeof *to);
    memcpy(to, s->setting, (size_t)s->nsettings * sizeof *to);
    return to;
}

bool settings_meet(const struct sym *s, struct setting *one, const struct setting *other) {
    bool less = false;
    for (int k = 0; k < s->nsettings; k++) {
        if (!one[k].known ||
            (other[k].known && !memcmp(one[k].value, other[k].value, sizeof one[k].value)))
            continue;
        one[k].known = false;
        less = true;
    }
    return less;
}

static void set(struct sym *s, const struct state_value *x) {
    struct setting *to = &s->setting[s->first_setting[x->state] + x->index];
    *to = (struct setting){.known = true};
    for (int f = 0; f < s->v->m->state[x->state].nfields; f++)
        to->known = to->known && sym_integer(s, x->value[f], &to->value[f]);
}

bool settings_configure(struct sym *s, const struct configure_node *n) {
    const struct machine *m = s->v->m;
    const struct configure *c = &m->configure[n->configure];
    for (int k = 0; k < c->nsets; k++) /* words that are given no value have none */
        if (m->state[c->sets[k]].of >= 0)
            forget(s, s->first_setting[c->sets[k]], s->first_setting[c->sets[k] + 1]);
    for (int k = 0; k < n->nsets; k++) {
        const struct state_value *x = &n->set[k];
        if (x->index >= s->first_setting[x->state + 1] - s->first_setting[x->state])
            return sym_never(s, "state '%s' is not followed", m->state[x->state].id);
        set(s, x);
    }
    return sym_spend(s, 1);
}
