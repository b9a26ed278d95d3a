/* Tables: before hardware walks entries, they must stand one after the other in its table, written
 * and in order. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

struct wanted { /* the entries that an issue must find, the other loops being in their first
                   iterations */
    struct verify *v;
    const struct hardware *h;
    int64_t trips, size;
    int slot[MAX_OPERANDS_OF_ISSUE]; /* of each operand's place */
    uint8_t *at;
};

static bool locate_entry(const struct wanted *w, int64_t *address, int *memory) {
    struct verify *v = w->v;
    const struct issue_node *n = w->h->issue;
    const struct instr *in = &v->m->instr[n->instr];
    for (int o = 0; o < in->noperands; o++) {
        if (n->arg[o].place < 0) continue;
        const struct place *p = &v->s->place[n->arg[o].place];
        int64_t offset = sx_eval(n->arg[o].offset, v->var);
        memory[o] = p->memory;
        if (offset < 0 || offset > INT64_C(1) << 48)
            return verify_error(v, "operand '%s' is outside its memory", in->operand[o].buffer);
        address[o] = p->address + w->slot[o] * p->bytes + offset;
    }
    return true;
}

static bool entries_make(const struct wanted *w) {
    struct verify *v = w->v;
    const struct hardware *h = w->h;
    const struct issue_node *n = h->issue;
    const struct instr *in = &v->m->instr[n->instr];
    const struct loop_node *u = h->loop[h->table];
    int64_t address[MAX_OPERANDS_OF_ISSUE], flag[64];
    int memory[MAX_OPERANDS_OF_ISSUE];
    for (int k = 0; k < h->nloops; k++) v->var[h->loop[k]->var] = sx_eval(h->loop[k]->lo, v->var);
    for (int k = 0; k < instr_flag_count(in) && k < 64; k++) flag[k] = sx_eval(n->flag[k], v->var);
    for (int64_t t = 0; t < w->trips; t++, v->var[u->var] += u->step) {
        if (!verify_step(v, 1) || !locate_entry(w, address, memory)) return false;
        const struct field *f =
            table_entry(v->m, n, h->counter[h->table], address, memory, flag, w->at + t * w->size);
        if (f)
            return verify_error(v, "field '%s' of an entry of '%s' does not take its value",
                                f->value->text, in->id);
    }
    return true;
}

/* Where loops were cut short other slots may be current than when all is walked: some must do. */
static bool other_slots(struct wanted *w) {
    const struct issue_node *n = w->h->issue;
    for (int o = 0; o < w->v->m->instr[n->instr].noperands; o++) {
        if (n->arg[o].place < 0) continue;
        if (++w->slot[o] < w->v->s->place[n->arg[o].place].slots) return true;
        w->slot[o] = 0;
    }
    return false;
}

static int64_t entries_find(struct wanted *w, const struct place *home) {
    const struct issue_node *n = w->h->issue;
    int noperands = w->v->m->instr[n->instr].noperands;
    for (int o = 0; o < noperands; o++)
        w->slot[o] = n->arg[o].place < 0 ? 0 : verify_slot(w->v, n->arg[o].place);
    if (!entries_make(w)) return -1;
    int64_t found = table_find(home, w->at, w->trips, w->size);
    if (found >= 0 || !w->v->clamped) return found;
    memset(w->slot, 0, sizeof w->slot);
    do {
        if (!entries_make(w)) return -1;
        found = table_find(home, w->at, w->trips, w->size);
    } while (found < 0 && other_slots(w));
    return found;
}

static bool entries_there(struct verify *v, const struct place *p, const struct place *home,
                          int64_t first, int64_t bytes) {
    enum type type = v->p->buffer[p->buffer].type;
    int64_t size = (int64_t)type_size(type);
    for (int64_t at = first; at < first + bytes; at += size) {
        struct tag want = tag_element(home->buffer, at / size, -1, 0, type),
                   found = tag_get(v, (struct place_at){p->memory, 0, p->address + at}, type);
        if (!tag_same(&found, &want))
            return verify_error(v,
                                "its entries are not in the table: byte %" PRId64
                                " of place '%s' was not loaded",
                                at, p->name);
    }
    return true;
}

bool table_walk(struct verify *v, const struct hardware *h, int64_t trips, int qi) {
    int place = h->loop[h->table]->table - 1;
    const struct place *p = &v->s->place[place], *home = table_home(v->s, place);
    int64_t size = table_entry_bytes(v->m, h->counter[h->table]);
    if (v->counting) return true;
    struct wanted w = {.v = v, .h = h, .trips = trips, .size = size};
    w.at = arena_alloc(&v->arena, (size_t)(trips * size) + 1);
    int errors = v->errors;
    int64_t first = entries_find(&w, home);
    if (v->errors > errors) return false;
    if (first < 0)
        return verify_error(v, "its %" PRId64 " entries stand nowhere in place '%s'", trips,
                            p->name);
    if (!entries_there(v, p, home, first * size, trips * size)) return false;
    struct place_at at = {p->memory, (int)verify_instance(v, v->m->memory[p->memory].unit),
                          p->address + first * size};
    race_access(v, qi, at, trips * size, false);
    return !v->stop;
}

/* The next choice of slots for operands whose slot is not given. */
static bool next_slots(struct wanted *w, const int *slot) {
    const struct issue_node *n = w->h->issue;
    for (int o = 0; o < w->v->m->instr[n->instr].noperands; o++) {
        if (n->arg[o].place < 0 || slot[o] >= 0) continue;
        if (++w->slot[o] < w->v->s->place[n->arg[o].place].slots) return true;
        w->slot[o] = 0;
    }
    return false;
}

int table_firsts(struct verify *v, const struct hardware *h, int64_t trips, const int *slot,
                 int64_t *first, int most) {
    const struct place *home = table_home(v->s, h->loop[h->table]->table - 1);
    struct wanted w = {
        .v = v, .h = h, .trips = trips, .size = table_entry_bytes(v->m, h->counter[h->table])};
    w.at = arena_alloc(&v->arena, (size_t)(trips * w.size) + 1);
    for (int o = 0; o < MAX_OPERANDS_OF_ISSUE; o++) w.slot[o] = slot[o] < 0 ? 0 : slot[o];
    int n = 0;
    do {
        if (n == most || !home || !entries_make(&w)) return -1;
        first[n] = table_find(home, w.at, trips, w.size);
    } while (first[n++] >= 0 && next_slots(&w, slot));
    return first[n - 1] < 0 ? -1 : n;
}
