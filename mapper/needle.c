/* Instructions and moves, bound once for a search. */
#include "mapper/mapper_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- extents of needle axes ---- */

static int ranged_of_param(const struct instr *x, int param) {
    for (int i = 0; i < x->nranged; i++)
        if (x->ranged[i] == param) return i;
    return -1;
}

static struct program *bind_quietly(const struct machine *m, const struct instr *x,
                                    const int64_t *size) {
    struct diags d;
    diags_init(&d);
    struct program *p = instr_bind(m, x, size, &d);
    diags_free(&d);
    return p;
}

struct ranges {
    int64_t lo[MAX_RANGED], hi[MAX_RANGED], step[MAX_RANGED];
};

static bool range_wider(const struct ranges *r, int a, int b) {
    if (r->hi[a] < 0 || r->hi[b] < 0) return r->hi[a] < 0 && r->hi[b] >= 0;
    return r->hi[a] - r->lo[a] > r->hi[b] - r->lo[b];
}

/* Which size sets the extent of each axis. Usually the extent is a size alone; otherwise (y0+Y+y1)
 * the one with the widest range, seen by binding with a larger value. Returns the sizes that some
 * axis grows with. */
static uint32_t axis_sizes(const struct machine *m, const struct instr *x, const struct ranges *r,
                           const struct program *p, int *ranged) {
    uint32_t used = 0, grows = 0;
    for (int a = 0; a < p->naxes; a++) {
        ranged[a] = p->axis[a].param < 0 ? -1 : ranged_of_param(x, p->axis[a].param);
        if (ranged[a] >= 0) used |= UINT32_C(1) << ranged[a];
    }
    for (int i = 0; i < x->nranged; i++) {
        if (used >> i & 1 || r->lo[i] == r->hi[i]) continue;
        int64_t size[MAX_RANGED];
        memcpy(size, r->lo, sizeof size);
        size[i] += r->step[i];
        struct program *q = bind_quietly(m, x, size);
        for (int a = 0; q && a < p->naxes; a++) {
            if (q->axis[a].extent != p->axis[a].extent) grows |= UINT32_C(1) << i;
            if (q->axis[a].extent - p->axis[a].extent == r->step[i] &&
                (ranged[a] < 0 || range_wider(r, i, ranged[a])))
                ranged[a] = i;
        }
        program_free(q);
    }
    return used | grows;
}

static bool size_ranges(const struct machine *m, const struct instr *x, struct ranges *r) {
    *r = (struct ranges){0};
    if (x->nranged > MAX_RANGED) return false;
    for (int i = 0; i < x->nranged; i++)
        if (!instr_size_range(m, x, i, &r->lo[i], &r->hi[i], &r->step[i])) return false;
    return true;
}

/* Sizes that leave every axis that can have an extent above 1 with one. One that no axis grows with
 * is how much of an operand there is: as large as it may be, so that nothing reads beside it. */
static void small_sizes(const struct ranges *r, int nranged, const struct program *p,
                        const int *ranged, uint32_t grows, int64_t *size) {
    memcpy(size, r->lo, sizeof r->lo);
    for (int i = 0; i < nranged; i++)
        if (!(grows >> i & 1) && r->hi[i] > 0) size[i] = r->hi[i];
    for (int a = 0; a < p->naxes; a++) {
        int i = ranged[a];
        if (i >= 0 && size[i] < 2 && (r->hi[i] < 0 || size[i] + r->step[i] <= r->hi[i]))
            size[i] += r->step[i];
    }
}

static bool needle_bind(const struct machine *m, struct needle *n) {
    const struct instr *x = &m->instr[n->instr];
    struct ranges r;
    int ranged[MAX_AXES];
    if (!size_ranges(m, x, &r)) return false;
    struct program *p = bind_quietly(m, x, r.lo);
    if (!p) return false;
    if (p->naxes > MAX_NEEDLE_AXES || x->noperands > MAX_OPERANDS ||
        p->nbuffers > MAX_OPERANDS * 2) {
        program_free(p);
        return false;
    }
    uint32_t grows = axis_sizes(m, x, &r, p, ranged);
    small_sizes(&r, x->nranged, p, ranged, grows, n->size);
    if (memcmp(n->size, r.lo, sizeof r.lo) != 0) {
        program_free(p);
        if (!(p = bind_quietly(m, x, n->size))) return false;
    }
    n->program = p;
    n->naxes = p->naxes;
    for (int a = 0; a < p->naxes; a++) {
        struct needle_axis *axis = &n->axis[a];
        int i = ranged[a];
        int64_t beside = i < 0 ? p->axis[a].extent : p->axis[a].extent - n->size[i];
        axis->ranged = i;
        axis->lo = i < 0 ? beside : beside + r.lo[i];
        axis->hi = i < 0 ? beside : r.hi[i] < 0 ? -1 : beside + r.hi[i];
        axis->step = i < 0 ? 1 : r.step[i];
    }
    return true;
}

/* ---- what a needle is ---- */

static bool home_only(const struct machine *m, const struct operand *o) {
    for (int k = 0; k < o->nmemories; k++)
        if (!memory_is_home(m, o->memory[k])) return false;
    return o->nmemories > 0;
}

static void note_operands(const struct machine *m, struct needle *n) {
    const struct instr *x = &m->instr[n->instr];
    n->noperands = x->noperands;
    for (int b = 0; b < n->program->nbuffers; b++) n->operand_of_buffer[b] = -1;
    for (int o = 0; o < x->noperands; o++) {
        int b = program_buffer(n->program, x->operand[o].buffer);
        if (b >= 0) n->operand_of_buffer[b] = o;
        if (x->operand[o].nmemories == 1 && x->operand[o].memory[0] == MEMORY_IMM)
            n->imm |= UINT64_C(1) << o;
        else if (home_only(m, &x->operand[o]))
            n->home |= UINT64_C(1) << o;
    }
}

/* Operands that lie in several instances, told apart at the largest sizes. */
static void note_fragments(const struct machine *m, struct needle *n) {
    const struct instr *x = &m->instr[n->instr];
    bool any = false;
    for (int o = 0; o < x->noperands; o++) any |= layout_spreads(x->operand[o].layout[0].map);
    struct ranges r;
    if (!any || !size_ranges(m, x, &r)) return;
    struct program *largest = bind_quietly(m, x, r.hi);
    for (int o = 0; o < x->noperands && largest; o++)
        n->fragment[o] = instr_fragment(m, x, o, largest);
    program_free(largest);
}

/* Where the access is for all axes at 0. */
static bool at_origin(const struct program *p, const struct access *a) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++)
        if (access_coef(p, a, d, p->naxes) != 0) return false;
    return true;
}

/* The same place of the operand, moved along axes. */
static bool moved(const struct program *p, const struct access *a, const struct access *b) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        bool walked = access_coef(p, a, d, p->naxes) == access_coef(p, b, d, p->naxes);
        for (int x = 0; x < p->naxes; x++) {
            if (access_coef(p, a, d, x) != access_coef(p, b, d, x)) return false;
            walked |= access_coef(p, a, d, x) != 0;
        }
        if (!walked) return false;
    }
    return !a->has_fill && !b->has_fill;
}

/* Each operand at one access, or beside it at constant distances; NULL, or why not. */
static const char *note_accesses(struct arena *arena, struct needle *n) {
    const struct program *p = n->program;
    const struct stmt *s = &p->stmt[0];
    n->dst = n->operand_of_buffer[s->dst.buffer];
    if (n->dst < 0) return "writes a temporary";
    n->access[n->dst] = &s->dst;
    for (int r = 0; r < s->nreads; r++) {
        int o = n->operand_of_buffer[s->read[r].buffer];
        if (o < 0) return "reads a temporary";
        if (!n->access[o] ||
            (o != n->dst && at_origin(p, &s->read[r]) && !at_origin(p, n->access[o])))
            n->access[o] = &s->read[r];
    }
    for (int r = 0; r < s->nreads; r++) {
        int o = n->operand_of_buffer[s->read[r].buffer];
        size_t size = (size_t)p->buffer[s->read[r].buffer].ndims * ((size_t)p->naxes + 1);
        if (memcmp(n->access[o]->coef, s->read[r].coef, size * sizeof(int64_t)) == 0) continue;
        if (o == n->dst || !(n->home >> o & 1) || !at_origin(p, n->access[o]) ||
            !moved(p, n->access[o], &s->read[r]))
            return arena_printf(arena, "reads operand '%s' at several places",
                                p->buffer[s->read[r].buffer].name);
        n->twins |= UINT64_C(1) << o;
    }
    for (int o = 0; o < n->noperands; o++)
        if (!n->access[o]) return "has an operand that it does not use";
    return NULL;
}

static bool access_coupled(const struct program *p, const struct access *a) {
    uint64_t seen = 0;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int varying = 0;
        for (int x = 0; x < p->naxes; x++)
            if (access_coef(p, a, d, x)) {
                varying++;
                if (seen >> x & 1) return true;
                seen |= UINT64_C(1) << x;
            }
        if (varying > 1) return true;
    }
    return false;
}

static void note_signatures(struct needle *n) {
    const struct program *p = n->program;
    for (int a = 0; a < n->naxes; a++) {
        struct needle_axis *axis = &n->axis[a];
        uint64_t all = 0;
        for (int o = 0; o < n->noperands; o++) {
            if (n->imm >> o & 1) continue;
            all |= UINT64_C(1) << o;
            if (access_varies(p, n->access[o], a)) axis->signature |= UINT64_C(1) << o;
        }
        axis->reduction = !(axis->signature >> n->dst & 1);
        axis->elementwise = axis->signature == all;
    }
    for (int o = 0; o < n->noperands; o++)
        n->coupled |= n->twins || (!(n->imm >> o & 1) && access_coupled(p, n->access[o]));
}

bool needle_sums(const struct needle *n) {
    return n->term.accumulates && n->term.at[n->term.root].code == OP_ADD;
}

bool needle_absorbs(const struct needle *n, int x) {
    const struct stmt *s = &n->program->stmt[0];
    uint64_t along = 0;
    for (int r = 0; r < s->nreads && r < 64; r++)
        if (access_varies(n->program, &s->read[r], x)) along |= UINT64_C(1) << r;
    return needle_sums(n) && stmt_zero_when(n->program, s, along);
}

static bool from_home(const struct machine *m, const struct instr *x) {
    bool home = false;
    for (int k = 0; k < x->nfrom; k++) home |= memory_is_home(m, x->from[k]);
    for (int k = 0; k < x->nto; k++) home &= !memory_is_home(m, x->to[k]);
    return home;
}

/* A constant of the instruction's own word. */
static bool is_imm(const struct needle *n, int node) {
    int read = n->term.at[node].read;
    return n->imm >> n->operand_of_buffer[n->program->stmt[0].read[read].buffer] & 1;
}

static void classify(struct arena *arena, const struct machine *m, struct needle *n) {
    const struct instr *x = &m->instr[n->instr];
    const struct program *p = n->program;
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].kind != ITEM_STMT) n->refused = "has a recurrence or a call";
    if (p->nstmts == 0 || n->refused) {
        n->refused = n->refused ? n->refused : "has no statement";
        return;
    }
    note_operands(m, n);
    note_fragments(m, n);
    if (p->nstmts > 1) {
        needle_join(arena, m, n);
        if (!n->refused) note_signatures(n);
        return;
    }
    n->refused = note_accesses(arena, n);
    if (n->refused) return;
    note_signatures(n);
    n->term = term_of(&n->program->arena, p, &p->stmt[0]);
    term_simplify(&n->program->arena, &n->term, p, 0);
    const struct term_node *root = &n->term.at[n->term.root];
    bool narrows = root->type != p->buffer[p->stmt[0].dst.buffer].type && !from_home(m, x);
    n->copy = root->code == OP_READ && !is_imm(n, n->term.root) && !narrows;
    if (p->stmt[0].nwhere > 0) n->refused = "has a constraint over several axes on its domain";
    if (x->across >= 0) n->refused = "moves between instances of a unit";
    n->offered = !n->refused && !stmt_reads_beside(p, &p->stmt[0]) &&
                 !(n->copy && (!x->is_move || !from_home(m, x)));
    for (int y = 0; y < n->naxes && !n->twins; y++)
        if (needle_absorbs(n, y)) n->absorbing |= UINT64_C(1) << y;
}

/* ---- cost of one issue ---- */

static double operand_bytes(const struct needle *n, const int64_t *size, int o) {
    double elements = 1;
    for (int a = 0; a < n->naxes; a++) {
        if (!(n->axis[a].signature >> o & 1)) continue;
        int i = n->axis[a].ranged;
        int64_t extent = n->program->axis[a].extent;
        elements *= (double)(i < 0 ? extent : extent - n->size[i] + size[i]);
    }
    return elements * (double)type_size(n->program->buffer[n->access[o]->buffer].type);
}

/* Cycles on the queue; overhead counts little where a hardware loop spreads it over many
 * iterations. */
double needle_issue_cost(const struct machine *m, const struct needle *n, const int64_t *size) {
    const struct instr *x = &m->instr[n->instr];
    double interval, overhead;
    instr_times(m, x, n->program, size, NULL, &interval, &overhead);
    if (x->nloops > 0) overhead /= 16;
    if (x->bus >= 0 && m->bus[x->bus].rate > 0 && !n->refused) {
        double written = operand_bytes(n, size, n->dst), read = 0;
        for (int o = 0; o < n->noperands; o++)
            if (o != n->dst && !(n->imm >> o & 1)) read += operand_bytes(n, size, o);
        interval = fmax(interval, fmin(read, written) / m->bus[x->bus].rate);
    }
    double width =
        x->queue >= 0 && m->queue[x->queue].width > 1 ? (double)m->queue[x->queue].width : 1;
    return (overhead + interval) / width;
}

static void largest_sizes(const struct needle *n, int64_t *size) {
    memcpy(size, n->size, sizeof n->size);
    for (int a = 0; a < n->naxes; a++) {
        int i = n->axis[a].ranged;
        if (i < 0) continue;
        int64_t beside = n->program->axis[a].extent - n->size[i];
        int64_t most = n->axis[a].hi < 0 || n->axis[a].hi > 64 ? 64 : n->axis[a].hi;
        int64_t steps = (most - n->axis[a].lo) / n->axis[a].step;
        size[i] = n->axis[a].lo - beside + (steps > 0 ? steps * n->axis[a].step : 0);
    }
}

double needle_point_cost(const struct machine *m, const struct needle *n) {
    int64_t size[MAX_RANGED];
    double points = 1;
    largest_sizes(n, size);
    for (int a = 0; a < n->naxes; a++) {
        int i = n->axis[a].ranged;
        points *=
            (double)(i < 0 ? n->axis[a].hi : size[i] + n->program->axis[a].extent - n->size[i]);
    }
    return needle_issue_cost(m, n, size) / points;
}

/* ---- moves between the home and other memories ---- */

/* Cycles for one byte of the destination. */
static double move_cost(const struct machine *m, const struct needle *n) {
    int64_t size[MAX_RANGED];
    largest_sizes(n, size);
    return needle_issue_cost(m, n, size) / operand_bytes(n, size, n->dst);
}

static bool move_serves(const struct instr *x, const struct needle *n, enum type t) {
    enum type own = n->program->buffer[n->access[n->dst]->buffer].type;
    return own == t || x->move_types >> t & 1;
}

/* A copy without change of type, at least as many elements read as written. */
static bool plain_copy(const struct needle *n) {
    if (!n->copy || n->refused) return false;
    const struct term_node *root = &n->term.at[n->term.root];
    const struct program *p = n->program;
    if (root->type != p->buffer[n->access[n->dst]->buffer].type) return false;
    int src = n->operand_of_buffer[p->stmt[0].read[root->read].buffer];
    for (int a = 0; a < n->naxes; a++)
        if (n->axis[a].signature >> n->dst & 1 && !(n->axis[a].signature >> src & 1)) return false;
    return true;
}

static double *move_at(double *table, int memory, enum type t) {
    return &table[memory * TYPE_COUNT + (int)t];
}

static bool relax(const struct needles *all, const struct needle *n, double cost) {
    const struct instr *x = &all->machine->instr[n->instr];
    bool changed = false;
    for (int f = 0; f < x->nfrom; f++)
        for (int t = 0; t < x->nto; t++)
            for (int type = 0; type < TYPE_COUNT; type++) {
                if (!move_serves(x, n, (enum type)type)) continue;
                double c = cost * (double)type_size((enum type)type);
                double *in = move_at(all->moves.in, x->to[t], (enum type)type);
                double *out = move_at(all->moves.out, x->from[f], (enum type)type);
                double via_in = *move_at(all->moves.in, x->from[f], (enum type)type) + c;
                double via_out = *move_at(all->moves.out, x->to[t], (enum type)type) + c;
                changed |= via_in < *in || via_out < *out;
                if (via_in < *in) *in = via_in;
                if (via_out < *out) *out = via_out;
            }
    return changed;
}

static void note_padding(struct needles *all, const struct needle *n) {
    const struct instr *x = &all->machine->instr[n->instr];
    if (!n->copy || n->refused || !n->program->stmt[0].read[0].has_fill) return;
    for (int t = 0; t < x->nto; t++)
        if (x->to[t] < 64) all->moves.pads |= UINT64_C(1) << x->to[t];
}

/* From home, of elements that are more than one apart. */
static void note_step(struct needles *all, const struct needle *n) {
    const struct instr *x = &all->machine->instr[n->instr];
    struct move_table *t = &all->moves;
    int64_t by = 1;
    if (!n->copy || n->refused) return;
    const struct access *a = &n->program->stmt[0].read[0];
    int last = n->program->buffer[a->buffer].ndims - 1;
    for (int k = 0; last >= 0 && k < n->naxes; k++)
        if (access_coef(n->program, a, last, k) > by) by = access_coef(n->program, a, last, k);
    if (by == 1) return;
    GROW(&all->arena, t->step, t->nsteps, t->cap_steps);
    t->step[t->nsteps] = (struct move_step){.by = by};
    for (int k = 0; k < x->nto; k++)
        if (x->to[k] < 64) t->step[t->nsteps].into |= UINT64_C(1) << x->to[k];
    t->nsteps++;
}

static void find_moves(struct needles *all) {
    const struct machine *m = all->machine;
    for (int i = 0; i < all->n; i++)
        if (m->instr[all->at[i].instr].is_move) {
            note_padding(all, &all->at[i]);
            note_step(all, &all->at[i]);
        }
    size_t n = (size_t)m->nmemories * TYPE_COUNT;
    all->moves.in = arena_array(&all->arena, n, sizeof(double));
    all->moves.out = arena_array(&all->arena, n, sizeof(double));
    for (int k = 0; k < m->nmemories; k++)
        for (int t = 0; t < TYPE_COUNT; t++) {
            double cost = memory_is_home(m, k) ? 0 : INFINITY;
            *move_at(all->moves.in, k, (enum type)t) = cost;
            *move_at(all->moves.out, k, (enum type)t) = cost;
        }
    bool changed = true;
    for (int round = 0; changed && round < m->nmemories; round++) {
        changed = false;
        for (int i = 0; i < all->n; i++)
            if (m->instr[all->at[i].instr].is_move && plain_copy(&all->at[i]))
                changed |= relax(all, &all->at[i], move_cost(m, &all->at[i]));
    }
}

/* Dimensions of the destination, counted from the last, along which a move repeats one element. */
static bool move_broadcast(const struct needle *n, uint64_t *repeats) {
    if (!n->copy || n->refused) return false;
    const struct program *p = n->program;
    const struct term_node *root = &n->term.at[n->term.root];
    int src = n->operand_of_buffer[p->stmt[0].read[root->read].buffer];
    int rank = p->buffer[n->access[n->dst]->buffer].ndims;
    *repeats = 0;
    for (int a = 0; a < n->naxes; a++)
        for (int d = 0; d < rank; d++)
            if (access_coef(p, n->access[n->dst], d, a) && !(n->axis[a].signature >> src & 1))
                *repeats |= UINT64_C(1) << (rank - 1 - d);
    return *repeats != 0;
}

static double broadcast_cost(const struct needles *all, int memory, enum type type,
                             uint64_t broadcast) {
    const struct machine *m = all->machine;
    double best = INFINITY;
    for (int i = 0; i < all->n; i++) {
        const struct needle *n = &all->at[i];
        const struct instr *x = &m->instr[n->instr];
        uint64_t repeats;
        if (!x->is_move || !move_broadcast(n, &repeats) || repeats != broadcast) continue;
        if (!move_serves(x, n, type)) continue;
        for (int f = 0; f < x->nfrom; f++)
            for (int t = 0; t < x->nto; t++)
                if (x->to[t] == memory)
                    best = fmin(best, *move_at(all->moves.in, x->from[f], type) +
                                          move_cost(m, n) * (double)type_size(type));
    }
    return best;
}

static double in_cost(const struct needles *all, int instr, int operand, uint64_t broadcast) {
    const struct operand *o = &all->machine->instr[instr].operand[operand];
    double best = INFINITY;
    for (int k = 0; k < o->nmemories; k++) {
        if (o->memory[k] < 0) continue;
        bool home = memory_is_home(all->machine, o->memory[k]);
        if (broadcast && !home)
            best = fmin(best, broadcast_cost(all, o->memory[k], o->type, broadcast));
        else if (!broadcast)
            best = fmin(best, *move_at(all->moves.in, o->memory[k], o->type));
    }
    return best;
}

/* The last answers, by what was asked. */
enum { KNOWN_IN = 512 };
struct asked_in {
    int instr, operand; /* instr: + 1 */
    uint64_t broadcast;
    double cost;
};
struct known_in {
    struct asked_in at[KNOWN_IN];
};

double operand_in_cost(const struct needles *all, const struct needle *n, int operand,
                       uint64_t broadcast) {
    struct needles *kept = all->kept;
    if (n->imm >> operand & 1) return 0;
    if (!kept->in) kept->in = arena_alloc(&kept->arena, sizeof *kept->in);
    uint64_t place = (uint64_t)n->instr * MAX_OPERANDS + (uint64_t)operand + broadcast * 61;
    struct asked_in *known = &kept->in->at[place % KNOWN_IN];
    if (known->instr != n->instr + 1 || known->operand != operand || known->broadcast != broadcast)
        *known = (struct asked_in){n->instr + 1, operand, broadcast,
                                   in_cost(all, n->instr, operand, broadcast)};
    return known->cost;
}

bool operand_from_home(const struct needles *all, const struct needle *n, int operand) {
    const struct machine *m = all->machine;
    const struct operand *o = &m->instr[n->instr].operand[operand];
    for (int i = 0; i < all->n; i++) {
        const struct needle *x = &all->at[i];
        const struct instr *in = &m->instr[x->instr];
        if (!in->is_move || !plain_copy(x) || !from_home(m, in) || !move_serves(in, x, o->type))
            continue;
        for (int t = 0; t < in->nto; t++)
            for (int k = 0; k < o->nmemories; k++)
                if (in->to[t] == o->memory[k]) return true;
    }
    return false;
}

bool needle_writes_one_of(const struct machine *m, const struct needle *n,
                          const struct operand *o) {
    const struct operand *dst = &m->instr[n->instr].operand[n->dst];
    for (int i = 0; i < dst->nmemories; i++)
        for (int k = 0; k < o->nmemories; k++)
            if (dst->memory[i] == o->memory[k]) return true;
    return false;
}

double operand_out_cost(const struct needles *all, const struct needle *n, int operand) {
    const struct operand *o = &all->machine->instr[n->instr].operand[operand];
    double best = INFINITY;
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] >= 0) best = fmin(best, *move_at(all->moves.out, o->memory[k], o->type));
    return best;
}

/* ---- at the sizes of a mapping ---- */

enum { MAX_SIZED = 64, MOST_CHAINS = 1024 };

struct sized_needles { /* the latest ones, each in the place of the oldest */
    struct {
        int instr;
        int64_t size[MAX_RANGED];
        struct program *program;
    } at[MAX_SIZED];
    int n, next;
};

const struct program *needle_sized(const struct needles *all, const struct needle *n,
                                   const int64_t *size) {
    struct sized_needles *known = all->sized;
    for (int i = 0; i < known->n; i++)
        if (known->at[i].instr == n->instr &&
            !memcmp(known->at[i].size, size, sizeof known->at[i].size))
            return known->at[i].program;
    struct diags d;
    int at = known->next;
    known->next = (at + 1) % MAX_SIZED;
    if (at < known->n)
        program_free(known->at[at].program);
    else
        known->n++;
    known->at[at].instr = n->instr;
    memcpy(known->at[at].size, size, sizeof known->at[at].size);
    diags_init(&d);
    known->at[at].program = instr_bind(all->machine, &all->machine->instr[n->instr], size, &d);
    diags_free(&d);
    return known->at[at].program;
}

static void sized_close(struct sized_needles *known) {
    for (int i = 0; i < known->n; i++) program_free(known->at[i].program);
    free(known);
}

/* Where the queue starts an issue when its operands are there, others run meanwhile; elsewhere all
 * go one after the other. */
static int64_t chains_of(const struct machine *m, const struct needle *n) {
    const struct instr *in = &m->instr[n->instr];
    double latency, interval;
    if (in->queue < 0 || !m->queue[in->queue].data_order) return 1;
    instr_times(m, in, n->program, NULL, &latency, &interval, NULL);
    double chains = latency * (double)m->queue[in->queue].width / fmax(interval, 1);
    return chains >= 1 && chains < MOST_CHAINS ? (int64_t)chains : 1;
}

struct needles *needles_open(const struct machine *m) {
    struct needles *all = memory_array(1, sizeof *all);
    all->sized = memory_array(1, sizeof *all->sized);
    arena_init(&all->arena);
    all->machine = m;
    all->kept = all;
    all->at = arena_array(&all->arena, (size_t)m->ninstrs + 1, sizeof *all->at);
    all->of = arena_array(&all->arena, (size_t)m->ninstrs + 1, sizeof *all->of);
    for (int i = 0; i < m->ninstrs; i++) {
        struct needle *n = &all->at[all->n];
        n->instr = i;
        if (m->instr[i].repeated || !needle_bind(m, n)) continue;
        all->of[i] = n;
        all->n++;
        classify(&all->arena, m, n);
        n->chains = chains_of(m, n);
    }
    find_moves(all);
    return all;
}

void needles_close(struct needles *all) {
    if (!all) return;
    for (int i = 0; i < all->n; i++) program_free(all->at[i].program);
    sized_close(all->sized);
    forks_close(all->forks);
    arena_free(&all->arena);
    free(all);
}

const struct needle *needle_of(const struct needles *all, int instr) {
    return instr >= 0 && instr < all->machine->ninstrs ? all->of[instr] : NULL;
}
