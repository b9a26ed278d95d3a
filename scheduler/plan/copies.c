/* What a copy of a tile costs and takes, remembered: the search meets the same tile of the same
 * operand in thousands of plans. */
#include "ir/number.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/moves.h"
#include "machines/needle.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

enum { COPIES = 4096, KEY_AXES = 16 };

struct key {
    const struct opnd *o;
    int64_t elements;
    int home, by, first, n;
    bool fill, packed, cut;
    int64_t tile[KEY_AXES],
        part[KEY_AXES]; /* n of each; part: of a piece (cut), else the last tile */
};
struct entry {
    bool used;
    struct key key;
    struct copy copy;
};
struct copies {
    struct entry at[COPIES];
    struct entry *used[COPIES / 2 + 1]; /* n */
    int n;
};

/* Pieces of a copy end where it does: sizes that are known when they run. False: all are alike. */
static bool last_pieces(const struct work *w, const struct region *whole, const struct region *part,
                        int ndims, struct region *last) {
    bool any = false;
    *last = *part;
    for (int d = 0; d < ndims; d++) {
        int64_t all = whole->n[d].c, piece = part->n[d].c;
        if (piece < 1 || all % piece == 0) continue;
        any = true;
        last->n[d] = val_make(w->arena, SX_MIN, part->n[d], val_var(w->arena, 0, all));
        last->n[d].min = 1;
        last->n[d].of = common_divisor(all, piece);
    }
    return any;
}

/* The copy on the operand's route that it is filled from, or goes to: only that it may be larger
 * matters. NULL: home. */
static const struct slot *outer_slot(struct work *w, const struct plan *p, const struct task *t,
                                     const struct opnd *o, const struct access *acc, bool fill,
                                     struct slot *out) {
    const struct opnd *far = fill ? o->from : o->to;
    struct region all;
    if (!far) return NULL;
    plan_region(w, p, t, acc, &far->geom, 0, &all);
    *out = slot_make(&w->s->arena, &far->geom, &all);
    return out;
}

/* Of a piece, which lies in the slot as the whole does; of no move where none brings each. */
static void price_part(struct work *w, const struct moves *moves, const struct plan *p,
                       const struct task *t, const struct opnd *o, const struct access *acc,
                       int depth, int by, int first, const struct plan *cut, struct copy *out) {
    struct opnd as = *o;
    struct region whole, part, last;
    struct fit f;
    memset(out, 0, sizeof *out);
    plan_region(w, p, t, acc, &o->geom, depth, &whole);
    plan_region(w, cut, t, acc, &o->geom, cut->nloops, &part);
    as.geom.first = first;
    struct slot s = slot_make(&w->s->arena, &as.geom, &whole), outer;
    const struct slot *far = outer_slot(w, p, t, o, acc, true, &outer);
    int ndims = w->p->buffer[acc->buffer].ndims;
    if (!copy_fit(w, moves, acc->buffer, &as, &s, far, &part, true, by, &f) ||
        (last_pieces(w, &whole, &part, ndims, &last) &&
         !copy_fit(w, moves, acc->buffer, &as, &s, far, &last, true, by, &f)))
        return;
    out->in = f.move->needle->in;
    out->issues = f.issues;
    out->cycles = f.cycles;
}

static void forget(struct copies *c) {
    for (int i = 0; i < c->n; i++) c->used[i]->used = false;
    c->n = 0;
}

struct copies *copies_new(struct work *w) {
    if (!w->room->copies) w->room->copies = arena_alloc(w->arena, sizeof(struct copies));
    forget(w->room->copies);
    return w->room->copies;
}

struct reached { /* at home, by one issue: rows, elements from the first to the last of a row */
    double rows, reach;
    bool even; /* rows begin in equal places of a line */
};

static struct reached reached_by(const struct fit *f, int64_t line) {
    struct reached r = {1, 1, true};
    int64_t size = (int64_t)type_size(f->move->type);
    for (int k = 0; k < f->move->naxes; k++) {
        const struct box_dim *d = f->dim_of[k] >= 0 ? &f->box.dim[f->dim_of[k]] : NULL;
        if (!d || d->extent.max <= 1 || val_is(d->from, 0)) continue;
        bool along = !d->from.x && d->from.c * size < line;
        if (along)
            r.reach += (double)((d->extent.max - 1) * d->from.c);
        else
            r.rows *= (double)d->extent.max;
        r.even &= along || (!d->from.x && d->from.c * size % line == 0);
    }
    return r;
}

/* A row that begins anywhere often lies in one line more of the cache that it is read from than one
 * that begins with a line, and each is an access: cycles of all of them. */
static double lines_crossed(const struct work *w, const struct opnd *o, const struct fit *f) {
    const struct instr *in = f->move->needle->in;
    const struct operand *from = &in->operand[f->move->from_operand];
    int64_t line = in->nfrom ? w->m->memory[in->from[0]].line : 0,
            align = operand_align(w->m, from, in->nfrom ? in->from[0] : -1, f->move->needle->bound);
    if (line <= 0 || align >= line) return 0;
    struct reached r = reached_by(f, line);
    if (!o->geom.loose && r.even) return 0;
    double bytes = r.reach * (double)type_size(f->move->type), least = ceil(bytes / (double)line),
           more = r.rows * (1 + (bytes - (double)align) / (double)line - least);
    if (in->crossing >= 0) return f->issues * more * in->crossing;
    return f->cycles * more / (r.rows * least);
}

/* The last tiles end where their axes do. Such a copy must have a move, too. */
static bool last_fits(struct work *w, const struct moves *moves, const struct plan *p,
                      const struct task *t, const struct opnd *o, const struct access *acc,
                      bool fill, int depth, int by, const struct slot *s, const struct slot *far) {
    struct region r;
    struct fit f;
    if (!last_region(w, p, t, acc, &o->geom, depth, &r)) return true;
    return copy_fit(w, moves, acc->buffer, o, s, far, &r, fill, by, &f);
}

/* Of the buffer: of those that a tile or its rows repeat, one. */
static double elements_once(const struct geom *g, const struct region *r, double elements) {
    for (int i = 0; i < g->n; i++)
        if (g->at[i].dim < 0) elements /= (double)(i < g->ninner ? g->at[i].mod : r->repeat.c);
    return elements;
}

static void price_as(struct work *w, const struct moves *moves, const struct plan *p,
                     const struct task *t, const struct opnd *o, const struct access *acc,
                     bool fill, int depth, int by, struct copy *out) {
    struct region r;
    struct slot outer;
    struct fit f;
    memset(out, 0, sizeof *out);
    plan_region(w, p, t, acc, &o->geom, depth, &r);
    struct slot s = slot_make(&w->s->arena, &o->geom, &r);
    const struct slot *far = outer_slot(w, p, t, o, acc, fill, &outer);
    out->bytes = slot_bytes(w, o, &r);
    out->elements = elements_once(&o->geom, &r, (double)s.elements.c);
    if (!copy_fit(w, moves, acc->buffer, o, &s, far, &r, fill, by, &f) ||
        !last_fits(w, moves, p, t, o, acc, fill, depth, by, &s, far))
        return;
    out->in = f.move->needle->in;
    out->issues = f.issues;
    out->cycles = f.cycles + (fill && !far ? lines_crossed(w, o, &f) : 0);
    out->reads = f.reads;
    instr_times(w->m, out->in, f.move->needle->bound, NULL, &out->latency, NULL, NULL);
    if (out->in->bus >= 0) out->latency += w->m->bus[out->in->bus].latency;
}

/* Of a copy whose tiles may lie in another order, the one that takes least. */
static void price(struct work *w, const struct moves *moves, const struct plan *p,
                  const struct task *t, const struct opnd *o, const struct access *acc, bool fill,
                  int depth, int by, struct copy *out) {
    price_as(w, moves, p, t, o, acc, fill, depth, by, out);
    if (!fill || o->from || !out->in || out->issues <= 1) return;
    for (uint64_t left = o->firsts; left; left &= left - 1) {
        struct opnd other = *o;
        struct copy as;
        other.geom.first = __builtin_ctzll(left);
        price_as(w, moves, p, t, &other, acc, fill, depth, by, &as);
        as.first = other.geom.first;
        if (as.in == out->in && as.cycles < out->cycles) *out = as;
    }
}

/* Axes along which tiles of the copy differ. */
static uint64_t axes_counted(const struct work *w, const struct task *t, const struct opnd *o,
                             const struct access *acc) {
    uint64_t axes = 0;
    for (uint64_t left = w->p->stmt[t->stmt].axes; left; left &= left - 1) {
        int a = __builtin_ctzll(left);
        bool counts = access_varies(w->p, acc, a) || o->geom.repeat_axis == a;
        if (counts && w->p->axis[a].extent > 1) axes |= UINT64_C(1) << a;
    }
    return axes;
}

/* `cut`: loops that cut the copy in pieces; NULL: it is whole. */
static bool key_make(const struct work *w, const struct plan *p, const struct task *t,
                     const struct opnd *o, const struct access *acc, bool fill, int depth, int by,
                     const struct plan *cut, struct key *k, uint64_t *hash) {
    memset(k, 0, offsetof(struct key, tile));
    k->o = o;
    k->fill = fill;
    k->by = by;
    k->cut = cut;
    k->home = work_home(w, acc->buffer)->memory;
    k->packed = work_home(w, acc->buffer)->packed;
    k->elements = work_home(w, acc->buffer)->elements;
    *hash = ((uint64_t)(uintptr_t)o * 2 + (uint64_t)fill) * 64 + (uint64_t)by;
    uint64_t left = axes_counted(w, t, o, acc);
    if (__builtin_popcountll(left) > KEY_AXES) return false;
    for (; left; left &= left - 1, k->n++) {
        int a = __builtin_ctzll(left);
        k->tile[k->n] = plan_tile(w, p, a, depth);
        k->part[k->n] = cut ? plan_tile(w, cut, a, cut->nloops) : plan_least(w, p, a, depth);
        *hash = hash_add(hash_add(*hash, k->tile[k->n]), k->part[k->n]);
    }
    return true;
}

static bool same_key(const struct key *a, const struct key *b) {
    size_t tiles = (size_t)b->n * sizeof *b->tile;
    return memcmp(a, b, offsetof(struct key, tile)) == 0 && memcmp(a->tile, b->tile, tiles) == 0 &&
           memcmp(a->part, b->part, tiles) == 0;
}

static struct entry *find(struct copies *c, const struct key *k, uint64_t hash) {
    if (c->n > COPIES / 2) forget(c);
    struct entry *e = &c->at[hash % COPIES];
    while (e->used && !same_key(&e->key, k)) e = e + 1 == c->at + COPIES ? c->at : e + 1;
    if (e->used) return e;
    e->key = *k;
    c->used[c->n++] = e;
    return e;
}

struct copy copy_part_price(struct work *w, const struct moves *moves, const struct plan *p,
                            const struct task *t, const struct opnd *o, const struct access *acc,
                            int depth, int by, int first, const struct plan *cut) {
    struct copy once;
    struct key k;
    uint64_t hash;
    if (!w->copies || !key_make(w, p, t, o, acc, true, depth, by, cut, &k, &hash)) {
        price_part(w, moves, p, t, o, acc, depth, by, first, cut, &once);
        return once;
    }
    k.first = first;
    struct entry *e = find(w->copies, &k, hash_add(hash, first));
    if (!e->used) price_part(w, moves, p, t, o, acc, depth, by, first, cut, &e->copy);
    e->used = true;
    return e->copy;
}

static struct copy look_up(struct work *w, const struct moves *moves, const struct plan *p,
                           const struct task *t, const struct opnd *o, const struct access *acc,
                           bool fill, int depth, int by) {
    struct copy once;
    struct key k;
    uint64_t hash;
    if (!w->copies || !key_make(w, p, t, o, acc, fill, depth, by, NULL, &k, &hash)) {
        price(w, moves, p, t, o, acc, fill, depth, by, &once);
        return once;
    }
    struct entry *e = find(w->copies, &k, hash);
    if (!e->used) price(w, moves, p, t, o, acc, fill, depth, by, &e->copy);
    e->used = true;
    return e->copy;
}

/* A move that is asked for and that joins other memories is as good as none. */
static int move_asked(const struct work *w, const struct moves *moves, const struct opnd *o,
                      const struct access *acc, bool fill, int by) {
    const struct opnd *outer = fill ? o->from : o->to;
    int far = outer ? outer->memory : work_home(w, acc->buffer)->memory,
        from = fill ? far : o->memory, to = fill ? o->memory : far;
    enum type type = w->p->buffer[acc->buffer].type;
    return by && move_joins(w->m, &moves->at[by - 1], from, to, type) ? by : 0;
}

/* Where it is remembered; -1: it is not. */
static int64_t asked_operand(const struct asked *a, const struct task *t, const struct opnd *o) {
    if (o >= t->op && o < t->op + t->nops) return o - t->op;
    for (int i = 0; i < a->nstops; i++)
        if (a->stop[i] == o) return MAX_OPERANDS + i;
    return -1;
}

struct copy copy_price(struct work *w, const struct moves *moves, const struct plan *p,
                       const struct task *t, const struct opnd *o, const struct access *acc,
                       bool fill, int depth, int by) {
    by = move_asked(w, moves, o, acc, fill, by);
    struct asked *a = by ? NULL : plan_asked(p, t);
    int64_t i = a ? asked_operand(a, t, o) : -1;
    if (i < 0) return look_up(w, moves, p, t, o, acc, fill, depth, by);
    struct copy *known = &a->copy[fill][i][depth];
    uint64_t *mask = &a->copied[fill][i];
    if (!(*mask >> depth & 1)) *known = look_up(w, moves, p, t, o, acc, fill, depth, by);
    *mask |= UINT64_C(1) << depth;
    return *known;
}

int64_t copy_bytes(struct work *w, const struct plan *p, const struct task *t, const struct opnd *o,
                   const struct access *acc, int depth) {
    struct asked *a = plan_asked(p, t);
    int64_t i = a ? asked_operand(a, t, o) : -1;
    struct region r;
    if (i >= 0 && (a->sized[i] >> depth & 1)) return a->bytes[i][depth];
    plan_region(w, p, t, acc, &o->geom, depth, &r);
    int64_t bytes = slot_bytes(w, o, &r);
    if (i < 0) return bytes;
    a->sized[i] |= UINT64_C(1) << depth;
    return a->bytes[i][depth] = bytes;
}
