/* States and what configure leaves in them, and copies of operands that remain in a unit. Each
 * instruction must find the values that it needs; a state is a resource like a memory: a configure
 * writes it, an instruction that needs it reads it. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

struct state_now { /* of one instance of the state's unit */
    int state;
    int64_t instance;
    int n; /* slots, words or objects */
    bool *known;
    int64_t *value; /* [n][nfields] */
    struct state_now *next;
};

bool state_index_legal(const struct verify *v, int state, int64_t index) {
    int64_t n = state_slots(v->m, state);
    return index >= 0 && index < (n < 0 || n > STATE_OBJECTS ? STATE_OBJECTS : n);
}

static struct state_now *state_get(struct verify *v, int state) {
    int64_t instance = verify_instance(v, v->m->state[state].unit), n = state_slots(v->m, state);
    for (struct state_now *s = v->states; s; s = s->next)
        if (s->state == state && s->instance == instance) return s;
    struct state_now *s = arena_alloc(&v->arena, sizeof *s);
    int nfields = v->m->state[state].nfields;
    s->state = state;
    s->instance = instance;
    s->n = (int)(n < 0 || n > STATE_OBJECTS ? STATE_OBJECTS : n);
    s->known = arena_array(&v->arena, (size_t)s->n + 1, sizeof *s->known);
    s->value = arena_array(&v->arena, (size_t)s->n * (size_t)nfields + 1, sizeof *s->value);
    s->next = v->states;
    return v->states = s;
}

static bool is_lasting(const struct verify *v, int state) {
    return v->m->state[state].count < 0;
}

/* A section finds nothing but the objects that `prepare` made. */
void state_forget(struct verify *v) {
    for (struct state_now *s = v->states; s; s = s->next)
        if (v->prepare || !is_lasting(v, s->state))
            memset(s->known, 0, (size_t)s->n * sizeof *s->known);
}

static struct place_at state_at(struct verify *v, int state, int index) {
    return (struct place_at){v->m->nmemories + state,
                             (int)verify_instance(v, v->m->state[state].unit), index};
}

static void forget_memory(struct verify *v, int memory) {
    int instance = (int)verify_instance(v, v->m->memory[memory].unit);
    for (int p = 0; p < v->s->nplaces && !v->stop; p++) {
        const struct place *place = &v->s->place[p];
        if (place->memory != memory) continue;
        int64_t bytes = place->bytes * place->slots;
        if (!verify_step(v, bytes)) return;
        for (int64_t k = 0; k < bytes; k += v->granule[memory])
            tag_set(v, (struct place_at){memory, instance, place->address + k}, TYPE_I8,
                    (struct tag){0});
    }
}

static void write_settings(struct verify *v, const struct configure_node *n) {
    const struct configure *c = &v->m->configure[n->configure];
    for (int k = 0; k < c->nsets; k++)
        if (v->m->state[c->sets[k]].of >= 0) {
            struct state_now *s = state_get(v, c->sets[k]);
            memset(s->known, 0, (size_t)s->n * sizeof *s->known);
        }
    for (int k = 0; k < n->nsets; k++) {
        const struct state_value *set = &n->set[k];
        struct state_now *s = state_get(v, set->state);
        int nfields = v->m->state[set->state].nfields;
        s->known[set->index] = true;
        for (int f = 0; f < nfields; f++)
            s->value[set->index * nfields + f] = sx_eval(set->value[f], v->var);
    }
}

static void configure_races(struct verify *v, const struct configure_node *n) {
    const struct configure *c = &v->m->configure[n->configure];
    if (c->queue < 0) return;
    int qi = race_queue(v, c->queue, c->unit);
    race_begin(v, qi, &n->signals);
    for (int k = 0; k < c->nsets && !v->stop; k++) {
        int64_t words = v->m->state[c->sets[k]].of >= 0 ? state_get(v, c->sets[k])->n : 0;
        if (words) race_access(v, qi, state_at(v, c->sets[k], 0), words, true);
    }
    for (int k = 0; k < n->nsets && !v->stop; k++)
        if (v->m->state[n->set[k].state].of < 0)
            race_access(v, qi, state_at(v, n->set[k].state, n->set[k].index), 1, true);
    for (int k = 0; k < c->nclobbers && !v->stop; k++) {
        const struct memory *m = &v->m->memory[c->clobbers[k]];
        struct place_at at = {c->clobbers[k], (int)verify_instance(v, m->unit), 0};
        race_access(v, qi, at, m->size, true);
    }
    race_push(v, qi, &n->signals);
}

void state_configure(struct verify *v, const struct configure_node *n) {
    const struct configure *c = &v->m->configure[n->configure];
    write_settings(v, n);
    if (v->counting) return;
    for (int k = 0; k < c->nclobbers; k++) forget_memory(v, c->clobbers[k]);
    if (!v->stop) configure_races(v, n);
}

/* ---- needs ---- */
static bool need_index(struct site *s, const struct need *n, int64_t *first, int64_t *last) {
    struct verify *v = s->v;
    const struct instr *in = &v->m->instr[s->n->instr];
    const struct state *state = &v->m->state[n->state];
    *first = 0;
    *last = state_get(v, n->state)->n - 1;
    if (state->of < 0) return true;
    for (int o = 0; o < in->noperands; o++) {
        if (!n->of || strcmp(in->operand[o].buffer, n->of) != 0 || s->n->arg[o].place < 0 ||
            s->at[o].memory != state->of)
            continue;
        int64_t word = v->m->memory[state->of].word;
        *first = *last = s->at[o].address / (word > 0 ? word : 1);
        if (state_index_legal(v, n->state, *first)) return true;
    }
    return verify_error(v, "the word of memory '%s' whose state '%s' it needs is not known",
                        v->m->memory[state->of].id, state->id);
}

static bool need_values(struct site *s, const struct need *n, int64_t *value) {
    struct mexpr_env env = site_env(s);
    for (int f = 0; f < n->nvalues; f++) {
        const struct mexpr *missing = NULL;
        if (!mexpr_integer(n->value[f], &env, &value[f], &missing))
            return verify_error(s->v, "field '%s' of state '%s' that it needs has no integer value",
                                s->v->m->state[n->state].field[f], s->v->m->state[n->state].id);
    }
    return true;
}

static void values_text(const int64_t *value, int n, struct text *out) {
    for (int f = 0; f < n; f++) text_printf(out, f ? ", %" PRId64 : "%" PRId64, value[f]);
}

static bool need_error(struct site *s, const struct need *n, const int64_t *wanted,
                       const struct state_now *now, int64_t first, int64_t last) {
    const struct state *state = &s->v->m->state[n->state];
    struct text want = {0}, has = {0};
    values_text(wanted, state->nfields, &want);
    for (int64_t k = first; k <= last; k++) {
        if (!now->known[k]) continue;
        text_printf(&has, has.n ? " and (" : "(");
        values_text(&now->value[k * state->nfields], state->nfields, &has);
        text_printf(&has, ")");
    }
    if (has.n)
        verify_error(s->v, "it needs state '%s' = (%s), which holds %s", state->id, want.at,
                     has.at);
    else
        verify_error(s->v, "it needs state '%s' = (%s), which nothing has set", state->id,
                     want.at ? want.at : "");
    text_free(&want);
    text_free(&has);
    return false;
}

/* The slot (word, object) that holds what the instruction needs; -1 after reporting. */
static int64_t need_slot(struct site *s, const struct need *n) {
    int64_t value[STATE_FIELDS], first, last;
    struct state_now *now = state_get(s->v, n->state);
    if (n->nvalues > STATE_FIELDS || n->nvalues != s->v->m->state[n->state].nfields)
        return verify_limit(s->v, "state '%s' has too many fields to verify",
                            s->v->m->state[n->state].id) -
               1;
    if (!need_index(s, n, &first, &last) || !need_values(s, n, value)) return -1;
    for (int64_t k = first; k <= last; k++)
        if (now->known[k] &&
            !memcmp(&now->value[k * n->nvalues], value, (size_t)n->nvalues * sizeof *value))
            return k;
    need_error(s, n, value, now, first, last);
    return -1;
}

bool state_needs(struct site *s) {
    const struct instr *in = &s->v->m->instr[s->n->instr];
    for (int k = 0; k < in->nneeds; k++)
        if (!state_from_addresses(s->v->m, in->need[k].state) && need_slot(s, &in->need[k]) < 0)
            return false;
    return true;
}

void state_races(struct site *s, int qi) {
    const struct instr *in = &s->v->m->instr[s->n->instr];
    for (int k = 0; k < in->nneeds && !s->v->stop; k++) {
        if (is_lasting(s->v, in->need[k].state) || state_from_addresses(s->v->m, in->need[k].state))
            continue;
        int64_t slot = need_slot(s, &in->need[k]);
        if (slot >= 0)
            race_access(s->v, qi, state_at(s->v, in->need[k].state, (int)slot), 1, false);
    }
}

/* ---- copies that remain ---- */

/* From the start of the memory on, as the operand's strides say; what was there is lost. */
void state_remains(struct site *s) {
    struct verify *v = s->v;
    const struct instr *in = &v->m->instr[s->n->instr];
    for (int o = 0; o < in->noperands && !v->stop; o++) {
        const struct operand *op = &in->operand[o];
        const struct shape_operand *p = &s->h->operand[o];
        if (op->also < 0 || s->n->arg[o].place < 0 || s->at[o].memory == op->also) continue;
        const struct memory *m = &v->m->memory[op->also];
        if (p->low < 0 || m->size < 0 || p->high > m->size) {
            verify_error(v, "the copy of operand '%s' does not fit into memory '%s'", op->buffer,
                         m->id);
            return;
        }
        struct place_at to = {op->also, (int)verify_instance(v, m->unit), 0};
        for (int64_t k = 0; k < m->size; k += v->granule[op->also]) {
            to.address = k;
            tag_set(v, to, TYPE_I8, (struct tag){0});
        }
        for (int64_t e = 0; e < p->elements; e++) {
            struct place_at from = s->at[o];
            from.address += to.address = shape_offset(s->h, o, e);
            tag_copy(v, to, from, op->type);
        }
        verify_step(v, m->size);
    }
}

void state_remains_races(struct site *s, int qi) {
    struct verify *v = s->v;
    const struct instr *in = &v->m->instr[s->n->instr];
    for (int o = 0; o < in->noperands && !v->stop; o++) {
        int also = in->operand[o].also;
        if (also < 0 || s->n->arg[o].place < 0 || s->at[o].memory == also) continue;
        struct place_at to = {also, (int)verify_instance(v, v->m->memory[also].unit), 0};
        race_access(v, qi, to, v->m->memory[also].size, true);
    }
}
