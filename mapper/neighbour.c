/* What a choice costs beside its issues: moves between home and memories, repacking where
 * neighbours disagree about a buffer's order, and the doorbell where host and device take turns.
 * Estimates: layouts and fusion are the scheduler's. */
#include "mapper/mapper_int.h"
#include "ir/pick.h"

#include <math.h>
#include <string.h>

/* Of a unit of which there may be any number, as many count as the hardware runs at a time. */
double instances_at_once(const struct machine *m, int unit) {
    double count = 1;
    int64_t total = 0;
    for (int u = unit; u >= 0; u = m->unit[u].parent) {
        count *= (double)(m->unit[u].count > 0 ? m->unit[u].count : 1);
        if (m->unit[u].total > 0) total = m->unit[u].total;
        if (m->unit[u].is_virtual && total) return count * (double)total;
    }
    return count;
}

double reference_cycles(const struct machine *m, int unit, double cycles) {
    double own = m->unit[unit].clock > 0 ? m->unit[unit].clock : m->clock;
    double reference = m->nfallbacks > 0 ? m->unit[m->fallback[0].unit].clock : m->clock;
    double scale = own > 0 && reference > 0 ? reference / own : 1;
    return cycles * scale / instances_at_once(m, unit);
}

/* Its queue feeds all that is inside the queue's unit (the lanes of a warp): they count once. */
static double fallback_reference(const struct machine *m, double cycles) {
    const struct fallback *f = &m->fallback[0];
    return reference_cycles(m, f->queue >= 0 ? m->queue[f->queue].unit : f->unit, cycles);
}

double copy_interval(const struct machine *m, enum copy_kind kind) {
    if (m->nfallbacks == 0) return 2;
    return fallback_reference(m, fallback_cycles(m, 0, kind));
}

double fallback_price(const struct covering *c, const struct program *p, const struct stmt *s) {
    const struct machine *m = c->machine;
    double interval, points = 1, weight = s->combine == COMBINE_SET ? 0 : 1;
    if (m->nfallbacks == 0) return INFINITY;
    interval = fallback_cycles(m, 0, COPY_NONE);
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1) points *= (double)p->axis[a].extent;
    for (int i = 0; i < s->nops; i++)
        if (op_info[s->op[i].code].arity > 0) weight += op_weight(m, 0, s->op[i].code);
    points = (double)stmt_looks_at(p, s, (int64_t)fmin(points, 0x1p62));
    return fallback_reference(m, points * interval * fmax(weight, 1));
}

/* A round trip of tokens between the fallback's queue and the device's; 0 where one stream issues
 * both. */
double doorbell_price(const struct machine *m, int queue) {
    double there = 0, back = 0;
    if (m->nfallbacks == 0 || queue < 0 || m->fallback[0].queue < 0 ||
        m->fallback[0].queue == queue)
        return 0;
    uint64_t host = UINT64_C(1) << m->fallback[0].queue, device = UINT64_C(1) << queue;
    for (int i = 0; i < m->nsyncs; i++) {
        const struct sync *s = &m->sync[i];
        if (s->kind != SYNC_TOKEN) continue;
        if (s->from & host && s->to & device)
            there = fmax(there, reference_cycles(m, s->unit, s->latency));
        if (s->from & device && s->to & host)
            back = fmax(back, reference_cycles(m, s->unit, s->latency));
    }
    return there + back;
}

/* ---- do two operands hold a buffer in the same way? ---- */

static uint64_t memories(const struct machine *m, const struct mapping *map, int o) {
    const struct operand *x = &m->instr[map->instr].operand[o];
    uint64_t mask = 0;
    for (int k = 0; k < x->nmemories; k++)
        if (x->memory[k] >= 0 && x->memory[k] < 64 && !memory_is_home(m, x->memory[k]))
            mask |= UINT64_C(1) << x->memory[k];
    return mask;
}

struct placing placing_of(const struct covering *c, const struct program *p,
                          const struct mapping *m, int o) {
    struct placing out = {.rank = 0};
    const struct needle *n = needle_of(c->needles, m->instr);
    const struct access *a = mapped_access(&p->stmt[m->stmt], &m->operand[o]);
    out.rank = n->program->buffer[n->access[o]->buffer].ndims;
    out.fragment = (uint32_t)n->fragment[o];
    for (int d = 0; a && d < out.rank; d++)
        for (int x = 0; x < n->naxes; x++) {
            if (!access_coef(n->program, n->access[o], d, x)) continue;
            for (int k = 0; k < m->group[x].n; k++)
                for (int h = 0; h < p->buffer[a->buffer].ndims; h++)
                    if (access_coef(p, a, h, m->group[x].axis[k]) &&
                        out.n[out.rank - 1 - d] < MAX_GROUP)
                        out.dim[out.rank - 1 - d][out.n[out.rank - 1 - d]++] = (int8_t)h;
        }
    return out;
}

static bool placings_agree(const struct placing *x, const struct placing *y) {
    int rank = x->rank > y->rank ? x->rank : y->rank;
    if (x->fragment != y->fragment) return false;
    for (int d = 0; d < rank; d++)
        if (x->n[d] != y->n[d] ||
            memcmp(x->dim[d], y->dim[d], (size_t)x->n[d] * sizeof **x->dim) != 0)
            return false;
    return true;
}

/* Outer dimensions of a move lie as the schedule places them: it moves along any. */
static void inner_only(const struct covering *c, struct placing *move, const struct mapping *m,
                       int rank) {
    if (!c->machine->instr[m->instr].is_move) return;
    for (int d = rank; d < move->rank; d++) move->n[d] = 0;
}

/* Each mapping is of a statement of its own program: views differ in what a cut leaves. */
static bool operands_agree(const struct covering *c, const struct program *pa,
                           const struct mapping *a, int oa, const struct program *pb,
                           const struct mapping *b, int ob) {
    if (!(memories(c->machine, a, oa) & memories(c->machine, b, ob))) return false;
    struct placing x = placing_of(c, pa, a, oa), y = placing_of(c, pb, b, ob);
    inner_only(c, &x, a, y.rank);
    inner_only(c, &y, b, x.rank);
    return placings_agree(&x, &y);
}

/* ---- prices ---- */

static double elements_of(const struct program *p, const struct access *a, const struct stmt *s) {
    double elements = 1;
    for (int x = 0; x < p->naxes; x++)
        if (s->axes >> x & 1 && access_varies(p, a, x)) elements *= (double)p->axis[x].extent;
    return fmin(elements, (double)p->buffer[a->buffer].elements);
}

static int operand_of_buffer(const struct program *p, const struct mapping *m, int noperands,
                             int buffer, bool written) {
    const struct stmt *s = &p->stmt[m->stmt];
    for (int o = 0; o < noperands; o++) {
        const struct mapped_operand *mo = &m->operand[o];
        if (mo->role == OPERAND_DST && (written || mo->read >= 0 || s->combine != COMBINE_SET)) {
            int b = !written && mo->read >= 0 ? s->read[mo->read].buffer : s->dst.buffer;
            if (b == buffer) return o;
        }
        if (!written && mo->role == OPERAND_READ && s->read[mo->read].buffer == buffer) return o;
    }
    return -1;
}

static bool reads_buffer(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->combine != COMBINE_SET && s->dst.buffer == buffer;
}

/* A decided mapping, its needle, and the program whose statement it is of. map NULL: none. */
struct decided {
    const struct mapping *map;
    const struct needle *needle;
    const struct program *program;
};

static struct decided decided(const struct covering *c, int stmt) {
    const struct program *whole = c->cover->program;
    int at = stmt < 0 || stmt >= whole->nstmts ? UNDECIDED : c->chosen[stmt];
    if (at < 0) return (struct decided){NULL, NULL, whole};
    const struct mapping *m = &c->cover->mapping[at];
    return (struct decided){m, needle_of(c->needles, m->instr), c->view[at] ? c->view[at] : whole};
}

/* Does the value that `stmt` leaves in the buffer reach no statement after r? */
static bool value_ends(const struct program *p, int r, int buffer) {
    return p->stmt[r].dst.buffer == buffer;
}

struct pricing {
    struct covering *c;
    const struct program *p;
    int stmt;
    const struct mapping *m; /* NULL: the fallback */
    const struct needle *n;
};

static double repack(const struct pricing *q, double elements) {
    return 2 * elements * copy_interval(q->c->machine, COPY_TURN);
}

/* Host and device take turns when one writes what the other reads. */
static double crossing_price(const struct machine *m, const struct mapping *from,
                             const struct mapping *to) {
    double a = doorbell_price(m, m->instr[from->instr].queue),
           b = doorbell_price(m, m->instr[to->instr].queue);
    return (a > 0) == (b > 0) ? 0 : fmax(a, b);
}

/* Of moves that pass beside issues: they take places in the stream of instructions. */
static const double PASSING = 1.0 / 32;

/* What a product repeats in all lanes is moved for many issues, and beside them. In full, lanes
 * along what many values are read for would seem cheap: the other factor is moved as often then,
 * though it has fewer elements. Constants come from behind the caches, one element at a time. */
static double in_price(const struct pricing *q, int o, double elements) {
    const struct stmt *s = &q->p->stmt[q->stmt];
    const struct access *a = mapped_access(s, &q->m->operand[o]);
    uint64_t repeated = operand_broadcast(q->n, q->p, s, q->m, o);
    double each = operand_in_cost(q->c->needles, q->n, o, repeated);
    if (isinf(each)) return INFINITY;
    bool passes = repeated && stmt_is_mac(q->p, s) && a && !flow_constant(q->c, a->buffer);
    double all = each * elements, beside = passes ? q->m->cost : 0;
    return reference_cycles(q->c->machine, q->c->machine->instr[q->m->instr].unit,
                            fmax(PASSING * all, all - beside));
}

static double out_price(const struct covering *c, const struct mapping *m, int o, double elements) {
    const struct needle *n = needle_of(c->needles, m->instr);
    double cost = operand_out_cost(c->needles, n, o);
    return isinf(cost)
               ? INFINITY
               : reference_cycles(c->machine, c->machine->instr[m->instr].unit, cost * elements);
}

/* Is the element after the operand's last one in the needle's buffer the next one in memory? */
static bool natural_order(const struct pricing *q, int o, const struct access *a) {
    const struct needle *n = q->n;
    int last = n->program->buffer[n->access[o]->buffer].ndims - 1;
    for (int x = 0; x < n->naxes; x++) {
        const struct group *g = &q->m->group[x];
        if (last < 0 || !access_coef(n->program, n->access[o], last, x) || g->n == 0) continue;
        int64_t stride = linear_stride(q->p, a, g->axis[g->n - 1]);
        if (stride != 0 && stride != 1) return false;
    }
    return true;
}

static bool moved_or_carried(const struct steps *s, const struct program *p,
                             const struct slice *slice) {
    bool moved = s->carried[slice->buffer];
    for (int k = 0; k < p->buffer[slice->buffer].ndims * s->nscopes; k++) moved |= slice->coef[k];
    return moved;
}

/* A state, what a step sees of a buffer in which it moves on, or the whole of such a buffer: it
 * lies in rows, or is turned in each step. A body's own temporaries, and what no step moves or
 * writes, take the order in which they are wanted. */
static bool lies_in_rows(const struct covering *c, int buffer) {
    const struct steps *s = &c->cover->steps;
    for (int k = 0; k < s->nslices; k++)
        if ((buffer == s->nbuffers + k || buffer == s->slice[k].buffer) &&
            moved_or_carried(s, c->cover->program, &s->slice[k]))
            return true;
    return false;
}

/* One element of the buffer stands in all lanes: it is read anew, in whatever order the buffer has.
 */
static bool repeats(const struct pricing *q, int o) {
    return operand_broadcast(q->n, q->p, &q->p->stmt[q->stmt], q->m, o) != 0;
}

/* Is what lies in rows wanted otherwise? */
static bool is_turned(const struct pricing *q, int o, const struct access *a) {
    return lies_in_rows(q->c, a->buffer) && !repeats(q, o) && !natural_order(q, o, a);
}

/* Does some instruction leave results where operand o is read? */
static bool left_there(const struct pricing *q, int o) {
    uint64_t at = memories(q->c->machine, q->m, o);
    for (int i = 0; i < q->c->needles->n; i++) {
        const struct needle *n = &q->c->needles->at[i];
        const struct operand *dst = &q->c->machine->instr[n->instr].operand[n->dst];
        for (int k = 0; k < dst->nmemories && n->offered && !n->copy; k++)
            if (dst->memory[k] >= 0 && dst->memory[k] < 64 && at >> dst->memory[k] & 1) return true;
    }
    return false;
}

/* Nothing brings operand o from home as it lies there, but the move of `from` on its way: the
 * schedule lets it place the elements as they are wanted. */
static bool made_on_the_way(const struct pricing *q, const struct decided *from, int o) {
    const struct machine *m = q->c->machine;
    if (!m->instr[from->map->instr].is_move || from->needle->fragment[from->needle->dst] ||
        !(memories(m, from->map, from->needle->dst) & memories(m, q->m, o)) ||
        !isinf(operand_in_cost(q->c->needles, q->n, o, 0)))
        return false;
    for (int k = 0; k < from->needle->noperands; k++)
        if (from->map->operand[k].role == OPERAND_READ && !(from->needle->home >> k & 1))
            return false;
    return true;
}

/* A buffer that statement w wrote comes to operand o (or to the fallback). */
static double arrival(const struct pricing *q, int w, int o, const struct access *a) {
    struct decided by = decided(q->c, w);
    const struct mapping *from = by.map;
    double elements = elements_of(q->p, a, &q->p->stmt[q->stmt]);
    bool home = q->m && q->n->home >> o & 1;
    if (from) {
        const struct needle *n = by.needle;
        if (q->m && (operands_agree(q->c, by.program, from, n->dst, q->p, q->m, o) ||
                     made_on_the_way(q, &by, o)))
            return 0;
        double out = out_price(q->c, from, n->dst, elements);
        if (!q->m)
            return out + doorbell_price(q->c->machine, q->c->machine->instr[from->instr].queue);
        bool same = !repeats(q, o) &&
                    memories(q->c->machine, from, n->dst) & memories(q->c->machine, q->m, o);
        out += crossing_price(q->c->machine, from, q->m);
        return out + (home ? 0 : in_price(q, o, elements)) + (same ? repack(q, elements) : 0);
    }
    double turn = q->m && is_turned(q, o, a) ? repack(q, elements) : 0;
    if (!q->m || home) return turn;
    double in = in_price(q, o, elements);
    if (turn > 0) return in + turn;
    bool temporary = q->p->buffer[a->buffer].role == ROLE_TEMP && !flow_constant(q->c, a->buffer);
    bool undecided = !q->c->exact && temporary &&
                     (w < 0 || (w < q->c->cover->program->nstmts && q->c->chosen[w] == UNDECIDED));
    bool cut = a->buffer >= q->c->cover->program->nbuffers; /* priced with the cut */
    double guess = undecided && !cut && o != q->n->dst && !natural_order(q, o, a)
                       ? repack(q, elements)
                       : 0; /* its writer will likely write rows */
    bool by_host = w >= 0 && w < q->c->cover->program->nstmts && q->c->chosen[w] == FALLBACK;
    if (by_host) in += doorbell_price(q->c->machine, q->c->machine->instr[q->m->instr].queue);
    bool comes = !isinf(in) || (undecided && left_there(q, o));
    return temporary && !by_host && comes && !repeats(q, o) ? guess : in;
}

/* Does the statement go on with all that was written? Then that need not go home as it is. */
static bool continues_whole(const struct program *p, int stmt, int buffer, double elements) {
    const struct stmt *s = &p->stmt[stmt];
    return s->combine != COMBINE_SET && s->dst.buffer == buffer &&
           elements_of(p, &s->dst, s) >= elements;
}

/* The result goes to those that read it and are decided, and home if it must. */
static double departure(const struct pricing *q) {
    const struct stmt *s = &q->p->stmt[q->stmt];
    int b = s->dst.buffer;
    double elements = elements_of(q->p, &s->dst, s), sum = 0;
    double out =
        q->m && !(q->n->home >> q->n->dst & 1) ? out_price(q->c, q->m, q->n->dst, elements) : 0;
    bool kept = q->p->buffer[b].role != ROLE_TEMP, leaves = false, ended = false;
    const struct program *whole = q->c->cover->program;
    struct users u = flow_users(q->c, b, q->stmt);
    for (int k = 0; k < u.n && !ended; k++) {
        int r = u.stmt[k];
        struct decided by = decided(q->c, r);
        const struct mapping *to = by.map;
        ended = value_ends(whole, r, b);
        if (!reads_buffer(&whole->stmt[r], b)) continue;
        if (!to) {
            leaves |= q->c->chosen[r] == FALLBACK;
            continue;
        }
        const struct needle *n = by.needle;
        int o = operand_of_buffer(by.program, to, n->noperands, b, false);
        if (o < 0) continue;
        if (!q->m) sum += doorbell_price(q->c->machine, q->c->machine->instr[to->instr].queue);
        if (q->m && operands_agree(q->c, q->p, q->m, q->n->dst, by.program, to, o)) {
            kept &= !continues_whole(whole, r, b, elements);
            continue;
        }
        struct pricing reader = {q->c, by.program, r, to, n};
        bool same = q->m && !repeats(&reader, o) &&
                    memories(q->c->machine, q->m, q->n->dst) & memories(q->c->machine, to, o);
        leaves = true;
        if (!(n->home >> o & 1)) sum += in_price(&reader, o, elements);
        if (q->m) sum += crossing_price(q->c->machine, q->m, to);
        if (same) sum += repack(q, elements);
    }
    leaves |= kept;
    if (q->m && leaves && is_turned(q, q->n->dst, &s->dst)) sum += repack(q, elements);
    return sum + (leaves ? out : 0);
}

/* No way out of the destination's memory: whoever reads the temporary must do so there. */
static bool stays_inside(const struct pricing *q) {
    const struct program *whole = q->c->cover->program;
    const struct stmt *s = &q->p->stmt[q->stmt];
    bool read = false, ended = false;
    if (q->p->buffer[s->dst.buffer].role != ROLE_TEMP || s->dst.buffer >= whole->nbuffers)
        return false;
    struct users u = flow_users(q->c, s->dst.buffer, q->stmt);
    for (int k = 0; k < u.n && !ended; k++) {
        int r = u.stmt[k];
        struct decided by = decided(q->c, r);
        const struct mapping *to = by.map;
        ended = value_ends(whole, r, s->dst.buffer);
        if (!reads_buffer(&whole->stmt[r], s->dst.buffer)) continue;
        if (!to && q->c->exact && q->c->chosen[r] == UNDECIDED) {
            read = true; /* it will not find a way to it, or agree */
            continue;
        }
        if (!to) return false;
        int o = operand_of_buffer(by.program, to, by.needle->noperands, s->dst.buffer, false);
        if (o < 0 || !operands_agree(q->c, q->p, q->m, q->n->dst, by.program, to, o)) return false;
        read = true;
    }
    return read;
}

/* A copying move only fills what another statement continues in the same memory. */
static bool move_wanted(const struct pricing *q) {
    const struct program *whole = q->c->cover->program;
    int b = q->p->stmt[q->stmt].dst.buffer;
    bool ended = false;
    struct users u = flow_users(q->c, b, q->stmt);
    for (int k = 0; k < u.n && !ended; k++) {
        int r = u.stmt[k];
        struct decided by = decided(q->c, r);
        const struct mapping *to = by.map;
        ended = value_ends(whole, r, b);
        if (!to || !reads_buffer(&whole->stmt[r], b)) continue;
        int o = operand_of_buffer(by.program, to, by.needle->noperands, b, false);
        if (o >= 0 && operands_agree(q->c, q->p, q->m, q->n->dst, by.program, to, o)) return true;
    }
    return false;
}

/* A move writes along single axes: an element's index in each dimension is one axis. */
static bool one_axis_each(const struct program *p, const struct access *a) {
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int n = 0;
        for (int x = 0; x < p->naxes; x++) n += access_coef(p, a, d, x) && p->axis[x].extent > 1;
        if (n > 1) return false;
    }
    return true;
}

static double fallback_arrivals(const struct pricing *q) {
    const struct stmt *s = &q->p->stmt[q->stmt];
    double sum = 0;
    for (int r = 0; r < s->nreads; r++)
        sum += arrival(q, flow_writer(q->c, q->stmt, s->read[r].buffer), -1, &s->read[r]);
    if (s->combine != COMBINE_SET)
        sum += arrival(q, flow_writer(q->c, q->stmt, s->dst.buffer), -1, &s->dst);
    return sum;
}

/* An accumulation continues what an undecided statement wrote before (a bias): can some needle
 * write it as it is wanted? Otherwise the fallback fills the home first. */
static double prologue_price(const struct pricing *q, int w) {
    struct covering *c = q->c;
    const struct stmt *s = &q->p->stmt[w];
    if (c->prologue.stmt != w || c->prologue.program != c->cover->program) {
        struct search search = {.arena = &c->scratch,
                                .needles = c->needles,
                                .limit = 100000,
                                .all = true,
                                .unasked = true};
        struct site site = site_of(&c->scratch, q->p, w);
        site_recall(&search, &site);
        for (int i = 0; i < c->needles->n; i++)
            if (c->needles->at[i].offered) search_pair(&search, &c->needles->at[i], &site);
        c->prologue.program = c->cover->program;
        c->prologue.stmt = w;
        c->prologue.mapping = search.mapping;
        c->prologue.n = search.nmappings;
    }
    for (int i = 0; i < c->prologue.n; i++) {
        const struct mapping *m = &c->prologue.mapping[i];
        const struct needle *n = needle_of(c->needles, m->instr);
        bool loads = true;
        struct pricing of = {c, q->p, w, m, n};
        for (int o = 0; o < n->noperands; o++)
            if (m->operand[o].role == OPERAND_READ)
                loads &= !isinf(operand_in_cost(c->needles, n, o,
                                                operand_broadcast(n, q->p, s, m, o))) &&
                         !is_turned(&of, o, mapped_access(s, &m->operand[o]));
        if (loads && operands_agree(c, q->p, m, n->dst, q->p, q->m, q->n->dst)) return 0;
    }
    double elements = elements_of(q->p, &s->dst, s);
    return fallback_price(c, q->p, s) + in_price(q, q->n->dst, elements) +
           doorbell_price(c->machine, c->machine->instr[q->m->instr].queue);
}

double neighbour_price(struct covering *c, const struct program *p, int stmt,
                       const struct option *option) {
    struct pricing q = {c, p, stmt, option->fallback ? NULL : &option->map, NULL};
    const struct stmt *s = &p->stmt[stmt];
    if (!q.m) return fallback_arrivals(&q) + departure(&q);
    q.n = needle_of(c->needles, q.m->instr);
    if (q.n->copy && !(move_wanted(&q) && one_axis_each(p, &s->dst))) return INFINITY;
    double sum = 0;
    for (int o = 0; o < q.n->noperands; o++) {
        const struct mapped_operand *mo = &q.m->operand[o];
        const struct access *a =
            mo->role == OPERAND_DST && mo->read >= 0 ? &s->read[mo->read] : mapped_access(s, mo);
        bool read = mo->role == OPERAND_READ ||
                    (mo->role == OPERAND_DST &&
                     (mo->read >= 0 || (s->combine != COMBINE_SET && q.m->init < 0)));
        int w = a && read ? flow_writer(c, stmt, a->buffer) : -1;
        bool continues = w >= 0 && mo->role == OPERAND_DST && mo->read < 0 &&
                         c->chosen[w] == UNDECIDED && p->stmt[w].combine == COMBINE_SET;
        if (a && read && !(continues && c->exact))
            sum += continues ? prologue_price(&q, w) : arrival(&q, w, o, a);
    }
    bool way_out = !isinf(operand_out_cost(c->needles, q.n, q.n->dst));
    if (!way_out) return stays_inside(&q) ? sum : INFINITY;
    return sum + departure(&q);
}

double transfer_price(struct covering *c, const struct program *p, int stmt,
                      const struct option *from, const struct mapping *to, int o) {
    struct pricing q = {c, p, stmt, to, needle_of(c->needles, to->instr)};
    const struct stmt *s = &p->stmt[stmt];
    const struct mapped_operand *mo = &to->operand[o];
    const struct access *a =
        mo->role == OPERAND_DST && mo->read >= 0 ? &s->read[mo->read] : mapped_access(s, mo);
    double elements = elements_of(p, a, s), in = q.n->home >> o & 1 ? 0 : in_price(&q, o, elements);
    const struct instr *x = &c->machine->instr[to->instr];
    if (from->fallback)
        return in + doorbell_price(c->machine, x->queue) +
               (natural_order(&q, o, a) ? 0 : repack(&q, elements));
    const struct needle *n = needle_of(c->needles, from->map.instr);
    bool same = memories(c->machine, &from->map, n->dst) & memories(c->machine, to, o);
    struct placing reader = placing_of(c, p, to, o);
    if (same && placings_agree(&from->result, &reader)) return 0;
    return out_price(c, &from->map, n->dst, elements) + in +
           crossing_price(c->machine, &from->map, to) +
           (same && !repeats(&q, o) ? repack(&q, elements) : 0);
}
