/* States: a configure writes them when it runs, an instruction must find what it needs when it
 * runs, whatever program order says. As far as hardware tracks dependences, a state is a memory of
 * its own: a byte for each slot, word or object. */
#include "scheduler/clock/clock_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OBJECTS = 4096, MOST_FIELDS = 64 };

struct state_values {
    bool *known;
    int64_t *value; /* [slots][fields] */
};

int64_t slots_kept(const struct machine *m, int state) {
    int64_t n = state_slots(m, state);
    return n < 0 || n > MOST_OBJECTS ? MOST_OBJECTS : n;
}

void states_open(struct engine *e) {
    const struct machine *m = e->machine;
    e->state = arena_array(&e->arena, (size_t)m->nstates + 1, sizeof *e->state);
    for (int s = 0; s < m->nstates; s++) {
        size_t instances = (size_t)e->images[m->nmemories + s];
        e->state[s] = arena_array(&e->arena, instances + 1, sizeof *e->state[s]);
    }
}

static struct state_values *values_of(struct engine *e, int state) {
    const struct machine *m = e->machine;
    struct state_values *v = &e->state[state][image_instance(e, m->nmemories + state)];
    size_t n = (size_t)slots_kept(m, state);
    if (v->known) return v;
    v->known = arena_array(&e->arena, n + 1, sizeof *v->known);
    v->value = arena_array(&e->arena, n * (size_t)m->state[state].nfields + 1, sizeof *v->value);
    return v;
}

/* All but objects that the host made. */
void states_forget(struct engine *e) {
    const struct machine *m = e->machine;
    for (int s = 0; s < m->nstates; s++)
        for (int64_t k = 0; k < e->images[m->nmemories + s] && m->state[s].count >= 0; k++)
            if (e->state[s][k].known)
                memset(e->state[s][k].known, 0,
                       (size_t)slots_kept(m, s) * sizeof *e->state[s][k].known);
}

/* ---- configure ---- */

/* Values are those of the loops around now; it runs later. */
bool configure_evaluate(struct engine *e, const struct node *node, struct executed *x) {
    const struct configure_node *n = node->configure;
    size_t count = 0;
    for (int k = 0; k < n->nsets; k++) {
        if (n->set[k].index < 0 || n->set[k].index >= slots_kept(e->machine, n->set[k].state))
            return engine_error(e, node, "state '%s' has no number %d",
                                e->machine->state[n->set[k].state].id, n->set[k].index);
        count += (size_t)e->machine->state[n->set[k].state].nfields;
    }
    x->setting = memory_bytes(sizeof *x->setting + count * sizeof *x->setting->value);
    if (!x->setting) return engine_error(e, node, "there is not enough memory");
    *x->setting = (struct setting){.next = e->settings};
    if (e->settings) e->settings->before = x->setting;
    e->settings = x->setting;
    count = 0;
    for (int k = 0; k < n->nsets; k++)
        for (int f = 0; f < e->machine->state[n->set[k].state].nfields; f++)
            x->setting->value[count++] = sx_eval(n->set[k].value[f], e->value);
    return true;
}

static void setting_free(struct engine *e, struct setting *s) {
    *(s->before ? &s->before->next : &e->settings) = s->next;
    if (s->next) s->next->before = s->before;
    free(s);
}

void settings_free(struct engine *e) {
    while (e->settings) setting_free(e, e->settings);
}

bool configure_execute(struct engine *e, const struct executed *x) {
    const struct configure_node *n = x->node->configure;
    const struct configure *c = &e->machine->configure[n->configure];
    const int64_t *value = x->setting->value;
    for (int k = 0; k < c->nsets; k++)
        if (e->machine->state[c->sets[k]].of >= 0)
            memset(values_of(e, c->sets[k])->known, 0,
                   (size_t)slots_kept(e->machine, c->sets[k]) * sizeof(bool));
    for (int k = 0; k < n->nsets; k++) {
        struct state_values *v = values_of(e, n->set[k].state);
        int nfields = e->machine->state[n->set[k].state].nfields, at = n->set[k].index;
        v->known[at] = true;
        memcpy(&v->value[at * nfields], value, (size_t)nfields * sizeof *value);
        value += nfields;
    }
    setting_free(e, x->setting);
    for (int k = 0; k < c->nclobbers && e->executor; k++) {
        struct image *image = image_of(e, c->clobbers[k]);
        if (!image) return false;
        memset(image->byte, 0xa5, (size_t)image->bytes);
    }
    return !e->failed;
}

int configure_uses(const struct engine *e, const struct configure_node *n, struct use *use) {
    const struct machine *m = e->machine;
    const struct configure *c = &m->configure[n->configure];
    int count = 0;
    for (int k = 0; k < c->nsets && count < SIM_USES; k++)
        if (m->state[c->sets[k]].of >= 0)
            use[count++] = (struct use){.memory = m->nmemories + c->sets[k],
                                        .bytes = slots_kept(m, c->sets[k]),
                                        .writes = true};
    for (int k = 0; k < n->nsets && count < SIM_USES; k++)
        if (m->state[n->set[k].state].of < 0)
            use[count++] = (struct use){.memory = m->nmemories + n->set[k].state,
                                        .address = n->set[k].index,
                                        .bytes = 1,
                                        .writes = true};
    for (int k = 0; k < c->nclobbers && count < SIM_USES; k++)
        use[count++] = (struct use){
            .memory = c->clobbers[k], .bytes = e->image[c->clobbers[k]][0].bytes, .writes = true};
    return count;
}

/* ---- needs ---- */

static int64_t need_word(const struct engine *e, const struct executed *x, const struct need *n) {
    const struct instr *in = &e->machine->instr[x->node->issue->instr];
    int of = e->machine->state[n->state].of;
    for (int o = 0; o < in->noperands; o++) {
        int place = x->node->issue->arg[o].place;
        if (n->of && !strcmp(in->operand[o].buffer, n->of) && place >= 0 &&
            e->schedule->place[place].memory == of && e->machine->memory[of].word > 0)
            return x->address[o] / e->machine->memory[of].word;
    }
    return -1;
}

/* The state is used whole: which slot holds the value is known only when the instruction runs. */
int need_uses(const struct engine *e, const struct executed *x, struct use *use) {
    const struct instr *in = &e->machine->instr[x->node->issue->instr];
    int count = 0;
    for (int k = 0; k < in->nneeds && count < SIM_USES; k++) {
        const struct need *n = &in->need[k];
        if (state_from_addresses(e->machine, n->state)) continue;
        int64_t word = e->machine->state[n->state].of >= 0 ? need_word(e, x, n) : -1;
        use[count++] = (struct use){.memory = e->machine->nmemories + n->state,
                                    .address = word < 0 ? 0 : word,
                                    .bytes = word < 0 ? slots_kept(e->machine, n->state) : 1,
                                    .reads = true};
    }
    return count;
}

static bool need_holds(struct engine *e, const struct executed *x, const struct shape *s,
                       const struct need *n) {
    const struct state *state = &e->machine->state[n->state];
    const struct state_values *now = values_of(e, n->state);
    int64_t value[MOST_FIELDS], first = 0, last = slots_kept(e->machine, n->state);
    if (n->nvalues > MOST_FIELDS || n->nvalues != state->nfields)
        return engine_error(e, x->node, "state '%s' has too many fields", state->id);
    for (int f = 0; f < n->nvalues; f++)
        if (!shape_number(e, x, s, n->value[f], &value[f]))
            return engine_error(e, x->node, "field '%s' of state '%s' has no integer value",
                                state->field[f], state->id);
    if (state->of >= 0) {
        first = need_word(e, x, n);
        last = first + 1;
    }
    for (int64_t k = first; k >= 0 && k < last; k++)
        if (now->known[k] &&
            !memcmp(&now->value[k * n->nvalues], value, (size_t)n->nvalues * sizeof *value))
            return true;
    return engine_error(e, x->node, "state '%s' does not hold what is needed", state->id);
}

bool needs_hold(struct engine *e, const struct executed *x, const struct shape *s) {
    const struct instr *in = &e->machine->instr[x->node->issue->instr];
    for (int k = 0; k < in->nneeds; k++)
        if (!state_from_addresses(e->machine, in->need[k].state) &&
            !need_holds(e, x, s, &in->need[k]))
            return false;
    return true;
}

/* ---- copies of operands that remain in a unit ---- */

int remains_uses(const struct engine *e, const struct issue_node *i, struct use *use) {
    const struct instr *in = &e->machine->instr[i->instr];
    int count = 0;
    for (int o = 0; o < in->noperands && count < SIM_USES; o++) {
        int also = in->operand[o].also;
        if (also < 0 || i->arg[o].place < 0 || e->schedule->place[i->arg[o].place].memory == also)
            continue;
        use[count++] =
            (struct use){.memory = also, .bytes = e->image[also][0].bytes, .writes = true};
    }
    return count;
}
