/* Entries of tables that a hardware loop walks, in the symbolic walk. */
#include "ir/number.h"
#include "scheduler/verify/work.h"

#include <string.h>

/* ---- tables ---- */
/* The counters on which the entries depend: all their values are tried. */
static bool entry_counters(struct sym *s, const struct hardware *h, int64_t trips, bool *counter) {
    const struct issue_node *n = h->issue;
    const struct loop_node *u = h->loop[h->table];
    const struct affine start = s->var[u->var];
    bool good = true;
    for (int64_t k = 0; k < trips && good; k++) {
        s->var[u->var] = start;
        s->var[u->var].l.c += k * u->step;
        for (int o = 0; o < s->v->m->instr[n->instr].noperands && good; o++) {
            struct affine f;
            if (n->arg[o].place < 0) continue;
            good = sym_eval(s, n->arg[o].offset, &f);
            for (int i = 0; i < s->nloops && good; i++) counter[i] |= f.l.k[i] != 0;
        }
    }
    s->var[u->var] = start;
    return good;
}

static bool loaded(struct sym *s, int place, int64_t begin, int64_t end) {
    const struct place *p = &s->v->s->place[place], *home = table_home(s->v->s, place);
    const struct buffer *b = &s->v->p->buffer[p->buffer];
    int64_t element = (int64_t)type_size(b->type);
    for (int i = 0; i < s->of[place].n; i++) {
        const struct region *g = &s->of[place].at[i];
        int64_t base, o, length = 1; /* a single entry has no dimension */
        bool row = g->ndims == 1 && g->s[0] == element && g->c[0][0] == 1 &&
                   lin_constant(&g->n[0], &length);
        if (region_is_current(g, place) && g->buffer == home->buffer && g->writer == -1 &&
            g->type == b->type && (row || (!g->box && g->ndims == 0)) &&
            lin_constant(&g->base, &base) && lin_constant(&g->o[0], &o) && base == o * element &&
            base <= begin && base + length * element >= end)
            return true;
    }
    return sym_fail(s, "the entries of a table are not known to be loaded");
}

static bool entries_with(struct sym *s, const struct hardware *h, int64_t trips,
                         const int64_t *at) {
    enum { CHOICES = 64 };
    const struct issue_node *n = h->issue;
    int slot[MAX_OPERANDS_OF_ISSUE] = {0};
    int64_t first[CHOICES], size = table_entry_bytes(s->v->m, h->counter[h->table]);
    for (int k = 0; k < s->v->s->nvars; k++) {
        s->v->var[k] = s->var[k].l.c;
        for (int i = 0; i < s->nloops; i++) s->v->var[k] += s->var[k].l.k[i] * at[i];
    }
    for (int o = 0; o < s->v->m->instr[n->instr].noperands; o++)
        if (n->arg[o].place >= 0) slot[o] = (int)slot_at(s, n->arg[o].place, at);
    int found = table_firsts(s->v, h, trips, slot, first, CHOICES);
    if (found < 0) return sym_fail(s, "entries of a table are not known to be there");
    for (int k = 0; k < found; k++)
        if (!loaded(s, h->loop[h->table]->table - 1, first[k] * size, (first[k] + trips) * size))
            return false;
    return sym_spend(s, trips * found / 4);
}

/* How many values of each counter are to be tried; 1: any will do. Slots come again. */
static bool entry_values(struct sym *s, const struct hardware *h, int64_t trips, int64_t *values) {
    enum { MOST_VALUES = 512 };
    bool counter[SYM_LOOPS] = {false};
    const struct issue_node *n = h->issue;
    int64_t all = 1;
    if (!entry_counters(s, h, trips, counter)) return false;
    for (int i = 0; i < s->nloops; i++) {
        int64_t range = s->hi[i] - s->lo[i] + 1;
        values[i] = counter[i] ? range : 1;
        for (int o = 0; o < s->v->m->instr[n->instr].noperands && !counter[i]; o++)
            if (n->arg[o].place >= 0 && s->slot[n->arg[o].place].at.k[i])
                values[i] = least_multiple(values[i], s->v->s->place[n->arg[o].place].slots);
        if (values[i] > range) values[i] = range;
        if (values[i] > MOST_VALUES || (all *= values[i]) > MOST_VALUES)
            return sym_fail(s, "entries of a table depend on a loop counter");
    }
    return true;
}

/* The entries stand in the place, whatever slots the operands are in. */
bool box_entries_there(struct sym *s, const struct hardware *h, int64_t trips) {
    int64_t at[SYM_LOOPS], values[SYM_LOOPS];
    if (!entry_values(s, h, trips, values)) return false;
    for (int i = 0; i < s->nloops; i++) at[i] = s->lo[i];
    for (;;) {
        int i = 0;
        if (!entries_with(s, h, trips, at)) return false;
        for (; i < s->nloops; i++) {
            if (++at[i] < s->lo[i] + values[i]) break;
            at[i] = s->lo[i];
        }
        if (i == s->nloops) return true;
    }
}
