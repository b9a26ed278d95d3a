/* Tables of a nest: the tree is walked as it will run, slots turn, and what entries each issue
 * needs is written down, once; then the tables are loaded before the nest begins. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/val.h"
#include "scheduler/plan/work.h"
#include <string.h>

enum { WALK = 40000, HEAD = 16, KEY = 64, BUCKETS = 1024, TABLES = 8, AGAIN = 64 };

struct seen { /* an issue whose entries are in the table already */
    const struct loop_node *u;
    int64_t key[KEY];
    int n;
    struct seen *next;
};

struct run { /* of entries that an issue needs */
    uint8_t *at;
    int64_t n;
    uint64_t hash;
    struct run *next;
};

struct table {
    int memory, buffer, place;
    int64_t size; /* of an entry */
    struct run *run;
    uint8_t *at;
    int64_t n, cap; /* entries */
};

struct turning { /* a loop, and whether what its entries need differs between its iterations */
    const struct loop_node *loop;
    bool differs;
};

struct maker {
    struct work *w;
    struct turning *turning;
    int nturning, cap_turning;
    int64_t *value;
    int *slot; /* of each place: current; -1 before the first rotate */
    struct table table[TABLES];
    int ntables;
    struct seen *seen[BUCKETS];
    int64_t left; /* iterations that are walked before loops are cut short */
    bool failed;
};

static struct table *table_of(struct maker *k, const struct hwloop *l) {
    int64_t size = table_entry_bytes(k->w->m, l);
    for (int i = 0; i < k->ntables; i++)
        if (k->table[i].memory == l->table && k->table[i].size == size) return &k->table[i];
    if (k->ntables == TABLES || size < 1) return NULL;
    k->table[k->ntables] = (struct table){.memory = l->table, .size = size, .buffer = -1};
    return &k->table[k->ntables++];
}

/* Where these entries stand; appended, what the table's end has of them already left out. */
static void table_add(struct maker *k, struct table *t, const uint8_t *entry, int64_t n) {
    struct arena *a = k->w->arena;
    for (int64_t at = 0; at + n <= t->n; at++)
        if (t->at[at * t->size] == entry[0] &&
            !memcmp(t->at + at * t->size, entry, (size_t)(n * t->size)))
            return;
    int64_t shared = n < t->n ? n : t->n;
    while (shared > 0 &&
           memcmp(t->at + (t->n - shared) * t->size, entry, (size_t)(shared * t->size)) != 0)
        shared--;
    if (t->n + n - shared > t->cap) {
        uint8_t *old = t->at;
        t->cap = 2 * (t->n + n);
        t->at = arena_alloc(a, (size_t)(t->cap * t->size));
        if (t->n) memcpy(t->at, old, (size_t)(t->n * t->size));
    }
    memcpy(t->at + t->n * t->size, entry + shared * t->size, (size_t)((n - shared) * t->size));
    t->n += n - shared;
}

static uint64_t bytes_hash(const uint8_t *at, size_t n) {
    uint64_t h = n, word = 0;
    for (; n >= sizeof word; at += sizeof word, n -= sizeof word) {
        memcpy(&word, at, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    for (word = 0; n > 0; n--) word = word << 8 | at[n - 1];
    return (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Long ones first: they may contain short ones. */
static void run_add(struct maker *k, struct table *t, uint8_t *entry, int64_t n) {
    size_t bytes = (size_t)(n * t->size);
    uint64_t hash = bytes_hash(entry, bytes);
    struct run **at = &t->run, *new = arena_alloc(k->w->arena, sizeof *new);
    while (*at && (*at)->n >= n) {
        if ((*at)->n == n && (*at)->hash == hash && !memcmp((*at)->at, entry, bytes)) return;
        at = &(*at)->next;
    }
    *new = (struct run){entry, n, hash, *at};
    *at = new;
}

/* All that the entries depend on beside their number. */
static bool key_of(struct maker *k, const struct hardware *h, struct seen *s) {
    const struct loop_node *u = h->loop[h->table];
    const struct instr *in = &k->w->m->instr[h->issue->instr];
    s->u = u;
    s->n = 0;
    s->key[s->n++] = sx_eval(u->lo, k->value);
    s->key[s->n++] = sx_eval(u->hi, k->value);
    for (int f = 0; f < flags_of(in) && s->n < KEY; f++)
        s->key[s->n++] = sx_eval(h->issue->flag[f], k->value);
    for (int o = 0; o < in->noperands && s->n < KEY; o++) {
        const struct arg *x = &h->issue->arg[o];
        if (x->place < 0) continue;
        s->key[s->n++] = k->slot[x->place];
        int n = s->n < KEY ? sx_rest(x->offset, u->var, k->value, s->key + s->n, KEY - s->n) : -1;
        if (n < 0) return false;
        s->n += n;
    }
    return s->n < KEY;
}

static bool known(struct maker *k, const struct seen *s) {
    uint64_t hash = (uint64_t)(uintptr_t)s->u >> 4;
    for (int i = 0; i < s->n; i++)
        hash = (hash ^ (uint64_t)s->key[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 29;
    struct seen **bucket = &k->seen[hash % BUCKETS];
    for (const struct seen *x = *bucket; x; x = x->next)
        if (x->u == s->u && x->n == s->n && !memcmp(x->key, s->key, sizeof *s->key * (size_t)s->n))
            return true;
    struct seen *kept = arena_copy(k->w->arena, s, sizeof *s);
    kept->next = *bucket;
    *bucket = kept;
    return false;
}

static void collect(struct maker *k, const struct loop_node *l) {
    struct hardware h;
    struct seen key;
    const struct work *w = k->w;
    if (!hardware_issue(w->m, l, &h) || h.table < 0) return;
    for (int i = 0; i < h.nloops; i++) k->value[h.loop[i]->var] = sx_eval(h.loop[i]->lo, k->value);
    if (key_of(k, &h, &key) && known(k, &key)) return;
    const struct loop_node *u = h.loop[h.table];
    const struct instr *in = &w->m->instr[h.issue->instr];
    int64_t lo = sx_eval(u->lo, k->value), n = sx_eval(u->hi, k->value) - lo;
    struct table *t = table_of(k, h.counter[h.table]);
    if (!t || n < 1) {
        k->failed |= !t;
        return;
    }
    uint8_t *entry = arena_alloc(w->arena, (size_t)(n * t->size));
    int64_t address[MAX_OPERANDS] = {0}, flag[MAX_OPERANDS] = {0};
    int memory[MAX_OPERANDS] = {0};
    for (int f = 0; f < flags_of(in); f++) flag[f] = sx_eval(h.issue->flag[f], k->value);
    for (int64_t i = 0; i < n; i++) {
        k->value[u->var] = lo + i;
        for (int o = 0; o < in->noperands; o++) {
            const struct arg *x = &h.issue->arg[o];
            if (x->place < 0) continue;
            const struct place *p = &w->s->place[x->place];
            int slot = k->slot[x->place] < 0 ? 0 : k->slot[x->place];
            memory[o] = p->memory;
            address[o] = p->address + slot * p->bytes + sx_eval(x->offset, k->value);
        }
        k->failed |= table_entry(w->m, h.issue, h.counter[h.table], address, memory, flag,
                                 entry + i * t->size) != NULL;
    }
    run_add(k, t, entry, n);
}

static void walk(struct maker *k, const struct node *node, int n);

/* Slots turn equally in each iteration: those left out are made up for. */
static void skip(struct maker *k, const int *before, int64_t times) {
    for (int p = 0; p < k->w->s->nplaces; p++) {
        int slots = k->w->s->place[p].slots, now = k->slot[p];
        if (slots < 2 || now < 0 || before[p] < 0) continue;
        int64_t turned = (now - before[p] + slots) % slots;
        k->slot[p] = (int)((now + turned * (times % slots)) % slots);
    }
}

/* What entries are made of, and how often loops run: does it depend on the variable? */
static bool entries_use(const struct maker *k, const struct node *node, int n, int var) {
    for (int i = 0; i < n; i++) {
        struct hardware h;
        if (node[i].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[i].loop;
        if (sx_uses(l->lo, var) || sx_uses(l->hi, var)) return true;
        if (l->kind != LOOP_HARDWARE && entries_use(k, l->body, l->nbody, var)) return true;
        if (!hardware_issue(k->w->m, l, &h) || h.table < 0) continue;
        const struct instr *in = &k->w->m->instr[h.issue->instr];
        for (int x = 0; x < h.nloops; x++)
            if (sx_uses(h.loop[x]->lo, var) || sx_uses(h.loop[x]->hi, var)) return true;
        for (int f = 0; f < flags_of(in); f++)
            if (sx_uses(h.issue->flag[f], var)) return true;
        for (int o = 0; o < in->noperands; o++)
            if (h.issue->arg[o].place >= 0 && sx_uses(h.issue->arg[o].offset, var)) return true;
    }
    return false;
}

static bool loop_differs(struct maker *k, const struct loop_node *l) {
    for (int i = 0; i < k->nturning; i++)
        if (k->turning[i].loop == l) return k->turning[i].differs;
    GROW(k->w->arena, k->turning, k->nturning, k->cap_turning);
    k->turning[k->nturning] = (struct turning){l, entries_use(k, l->body, l->nbody, l->var)};
    return k->turning[k->nturning++].differs;
}

/* Iterations that differ in their slots alone: from where slots come round on, whole periods need
 * no entries that are not there. Slots as they were before the second one. */
static int64_t skip_periods(const struct maker *k, const int *second, int64_t i, int64_t n) {
    if (memcmp(second, k->slot, sizeof *second * (size_t)k->w->s->nplaces) != 0) return i;
    return i + i * ((n - 1 - i) / i);
}

/* Whole while the budget lasts; then the first iterations, in which all slots come round, and the
 * last. */
static void walk_loop(struct maker *k, const struct loop_node *l) {
    int64_t lo = sx_eval(l->lo, k->value), hi = sx_eval(l->hi, k->value),
            n = hi > lo ? (hi - lo - 1) / l->step + 1 : 0;
    size_t slots = sizeof *k->slot * (size_t)k->w->s->nplaces;
    int *before = n > HEAD + 1 ? arena_alloc(k->w->arena, slots + 1) : NULL,
        *second = n > 2 && !loop_differs(k, l) ? arena_alloc(k->w->arena, slots + 1) : NULL;
    for (int64_t i = 0; i < n && !k->failed; i++) {
        if (k->left <= 0 && i == HEAD && n > HEAD + 1) {
            skip(k, before, n - 1 - i);
            i = n - 1;
        }
        if (before && i == HEAD - 1) memcpy(before, k->slot, slots);
        if (second && i == 1) memcpy(second, k->slot, slots);
        k->value[l->var] = lo + i * l->step;
        walk(k, l->body, l->nbody);
        k->left--;
        if (second && i > 0) i = skip_periods(k, second, i, n);
    }
}

static void walk(struct maker *k, const struct node *node, int n) {
    for (int i = 0; i < n && !k->failed; i++) {
        if (node[i].kind == NODE_ROTATE)
            k->slot[node[i].rotate] =
                (k->slot[node[i].rotate] + 1) % k->w->s->place[node[i].rotate].slots;
        if (node[i].kind != NODE_LOOP) continue;
        if (node[i].loop->kind == LOOP_HARDWARE)
            collect(k, node[i].loop);
        else
            walk_loop(k, node[i].loop);
    }
}

/* ---- homes, places, loads ---- */

static int find_move(const struct work *w, const struct moves *moves, const struct table *t) {
    for (int i = 0; i < moves->n; i++) {
        const struct instr *in = moves->at[i].needle->in;
        if (move_takes(in, w->m->home) && move_fills(in, t->memory) &&
            t->size % (int64_t)type_size(moves->at[i].type) == 0 &&
            !type_is_float(moves->at[i].type))
            return i;
    }
    return -1;
}

/* Behind all other homes. */
static void place_home(struct work *w, const struct table *t, int64_t bytes) {
    int64_t at = w->homes_end, align = w->m->home_align;
    for (int p = 0; p < w->s->nplaces; p++) {
        const struct place *x = &w->s->place[p];
        if (x->memory == w->m->home && x->address + x->bytes * x->slots > at)
            at = x->address + x->bytes * x->slots;
    }
    int p = add_place(w, t->buffer, w->m->home, align, &at, bytes, 1);
    w->homes_end = (at + align - 1) / align * align;
    w->s->place[p].keep = KEEP_PREPARED;
    w->s->place[p].name = w->p->buffer[t->buffer].name;
    w->s->place[p].extent =
        arena_copy(&w->s->arena, w->p->buffer[t->buffer].extent, sizeof(int64_t));
    w->s->place[p].table = arena_copy(&w->s->arena, t->at, (size_t)bytes);
    w->home[t->buffer].place = p;
}

/* In pieces, where one move takes less. */
static bool load(struct work *w, const struct moves *moves, struct nodes *out, struct table *t,
                 int64_t elements, int64_t piece) {
    struct opnd o = {.where = IN_LOCAL, .memory = t->memory, .read = 0};
    struct held h = {.place = t->place, .slots = 1};
    struct region whole = {.lo = {val_const(0)}, .n = {val_const(elements)}};
    o.geom = (struct geom){.at = {{0, 1, 0}},
                           .n = 1,
                           .row = -1,
                           .repeat_axis = -1,
                           .block = {1},
                           .grain = {1},
                           .step = {1},
                           .span = 1,
                           .tile = 1};
    h.whole = whole;
    h.slot = slot_make(&w->s->arena, &o.geom, &whole);
    for (int64_t at = 0; at < elements; at += piece) {
        struct region part = whole;
        part.lo[0] = val_const(at);
        part.n[0] = val_const(at + piece < elements ? piece : elements - at);
        if (!emit_transfer(w, moves, out, t->buffer, &o, &h, NULL, &part, true)) return false;
    }
    return true;
}

static int64_t longest_piece(const struct move *mv, int64_t elements) {
    for (int k = 0; k < mv->naxes; k++)
        if (!mv->axis[k].fixed && mv->axis[k].hi < elements) return mv->axis[k].hi / 16 * 16;
    return elements;
}

/* The nest has too many; its sums may be mapped otherwise. */
static bool fail(struct work *w, const struct table *t) {
    const struct memory *m = &w->m->memory[t->memory];
    const char *why = arena_printf(
        w->arena,
        "a nest needs %lld entries of %lld bytes in memory '%s', expected at most %lld bytes "
        "and a move that loads them",
        (long long)t->n, (long long)t->size, m->id, (long long)m->size);
    return emit_refuse(w, why);
}

static bool table_place(struct work *w, const struct moves *moves, struct nodes *out,
                        struct table *t, int64_t *at) {
    int move = find_move(w, moves, t);
    int64_t bytes = t->n * t->size;
    if (move < 0 ||
        (w->m->memory[t->memory].size >= 0 && *at + t->size + bytes > w->m->memory[t->memory].size))
        return fail(w, t);
    const struct move *mv = &moves->at[move];
    int64_t elements = bytes / (int64_t)type_size(mv->type);
    t->buffer = rewrite_buffer(w, unique_name(w, w->m->memory[t->memory].id, "entries"), mv->type,
                               ROLE_TEMP, 1, &elements);
    if (t->buffer < 0) return fail(w, t);
    place_home(w, t, bytes);
    t->place = add_place(w, t->buffer, t->memory, t->size, at, bytes, 1);
    return load(w, moves, out, t, elements, longest_piece(mv, elements));
}

/* Is some instruction of the queue issued over entries? */
static bool takes_entries(const struct work *w, const struct node *node, int n, int queue) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP &&
            takes_entries(w, node[i].loop->body, node[i].loop->nbody, queue))
            return true;
        if (node[i].kind != NODE_ISSUE) continue;
        const struct instr *in = &w->m->instr[node[i].issue->instr];
        if (in->queue == queue && instr_table(in)) return true;
    }
    return false;
}

static void name_tables(struct maker *k, struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        struct hardware h;
        if (node[i].kind != NODE_LOOP) continue;
        struct loop_node *l = node[i].loop;
        name_tables(k, l->body, l->nbody);
        if (l->table == TABLE_WANTED && hardware_issue(k->w->m, l, &h))
            l->table = table_of(k, h.counter[h.table])->place + 1;
    }
}

static bool wanted(const struct node *node, int n) {
    for (int i = 0; i < n; i++)
        if (node[i].kind == NODE_LOOP && (node[i].loop->table == TABLE_WANTED ||
                                          wanted(node[i].loop->body, node[i].loop->nbody)))
            return true;
    return false;
}

static bool same_slots(const int *a, const int *b, int n) {
    return !memcmp(a, b, sizeof *a * (size_t)n);
}

bool tables_load(struct work *w, const struct moves *moves, struct nodes *list, bool again) {
    if (!wanted(list->at, list->n)) return true;
    struct maker *k = arena_alloc(w->arena, sizeof *k);
    size_t places = (size_t)w->s->nplaces + 1;
    struct nodes out = {0};
    int64_t at[MAX_MEMORIES] = {0};
    k->w = w;
    k->left = WALK;
    k->value = arena_array(w->arena, (size_t)w->s->nvars + 1, sizeof *k->value);
    k->slot = arena_array(w->arena, places, sizeof *k->slot);
    int *first = arena_array(w->arena, places, sizeof *first);
    for (size_t p = 0; p < places; p++) k->slot[p] = -1;
    for (int turn = 0; turn < (again ? AGAIN : 1);
         turn++) { /* until slots stand as after the first */
        walk(k, list->at, list->n);
        if (turn && same_slots(first, k->slot, w->s->nplaces)) break;
        if (!turn) memcpy(first, k->slot, sizeof *first * places);
    }
    if (k->failed) return fail(w, &k->table[0]);
    if (!k->ntables) return true;
    for (int i = 0; i < k->ntables; i++)
        for (const struct run *r = k->table[i].run; r; r = r->next)
            table_add(k, &k->table[i], r->at, r->n);
    for (int i = 0; i < k->ntables; i++)
        if (!table_place(w, moves, &out, &k->table[i], &at[k->table[i].memory])) return false;
    uint64_t loads = nodes_queues(w, out.at, out.n), users = nodes_queues(w, list->at, list->n);
    for (int q = 0; q < w->m->nqueues; q++) {
        if (!(loads >> q & 1)) continue;
        for (int user = 0; user < w->m->nqueues; user++)
            if ((users >> user & 1) && user != q && takes_entries(w, list->at, list->n, user) &&
                !add_signal(w, &out, q, user))
                return false;
    }
    name_tables(k, list->at, list->n);
    nodes_append(w, &out, list);
    *list = out;
    return true;
}
