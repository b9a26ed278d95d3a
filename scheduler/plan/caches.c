/* Hardware-managed memories: what refilling them costs while instructions run. A cache keeps what
 * the loops inside some depth touch; from there outwards each line comes once for each tile
 * (SCHEDULING §3). A translation buffer is such a memory too: its lines are pages. */
#include "scheduler/plan/price.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <stdlib.h>

static double queue_width(const struct work *w, int queue) {
    return w->m->queue[queue].width > 0 ? (double)w->m->queue[queue].width : 1;
}

/* A tile that begins anywhere reaches into a second line now and then, which takes a slot more. */
static void crossings_charge(struct work *w, const struct moves *moves, const struct plan *p,
                             const struct task *t, double *queue) {
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        int q = mem->caches >= 0 && mem->line > 0 ? moves->loads[1 + m] : -1;
        for (int i = 0; i < t->nops && q >= 0; i++) {
            const struct opnd *o = &t->op[i];
            if (!o->geom.loose || o->read < 0) continue;
            const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
            double size = (double)type_size(o->decl->type), tile = (double)o->geom.tile * size,
                   lines = fmin(1, (tile - size) / (double)mem->line);
            struct region r;
            plan_region(w, p, t, acc, &o->geom, p->hold[i].depth, &r);
            for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
                lines *=
                    ceil((double)r.n[d].c / (double)o->geom.block[d]) * (double)o->geom.step[d];
            queue[q] += plan_trips(w, p, p->hold[i].depth) * lines / queue_width(w, q);
        }
    }
}

/* Again in each loop that moves them, even if an outer one repeats them. */
void direct_charge(struct work *w, const struct moves *moves, const struct plan *p,
                   const struct task *t, double *queue) {
    int q = moves->loads[0];
    crossings_charge(w, moves, p, t, queue);
    if (q < 0) return;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where != IN_HOME || o->read < 0) continue;
        const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
        double n = 1;
        struct region r;
        int depth = plan_normalise(w, p, acc, p->nloops);
        plan_region(w, p, t, acc, &o->geom, depth, &r);
        for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
            n *= (double)(r.n[d].c / o->geom.block[d]);
        queue[q] += n * plan_trips(w, p, depth) / queue_width(w, q);
    }
}

/* ---- lines of a tile ---- */

struct rows { /* how a tile lies at home: runs of consecutive bytes, repeated in strides */
    double run, count[MAX_COORDS], stride[MAX_COORDS], total;
    double elements, line; /* of the tile; gaps that are shorter than a line are parts of a run */
    int n;
};

static void rows_add(struct rows *r, bool *dense, double extent, double whole, double stride) {
    r->elements *= extent;
    if (*dense && stride == r->run) {
        r->run *= extent;
        *dense = extent == whole;
    } else if (r->n == 0 && stride >= r->run && stride - r->run < r->line) {
        r->run += (extent - 1) * stride;
        *dense = false;
    } else if (extent > 1) {
        r->count[r->n] = extent;
        r->stride[r->n++] = stride;
        r->total *= extent;
        *dense = false;
    }
}

static void rows_make(const struct work *w, int buffer, const int64_t *tile, double line,
                      struct rows *r) {
    const struct buffer *b = &w->p->buffer[buffer];
    const struct home *h = work_home(w, buffer);
    double size = (double)type_size(b->type), stride = size;
    bool dense = true;
    *r = (struct rows){.run = size, .total = 1, .elements = 1, .line = line};
    for (int i = 0; h->packed && i < h->n; i++) {
        struct coord c = h->at[i];
        double n = ceil((double)tile[c.dim] / (double)c.div),
               whole = (double)(c.mod ? c.mod : h->extent[c.dim] / c.div);
        rows_add(r, &dense, fmin(n, whole), whole, (double)h->stride[i] * size);
    }
    for (int d = b->ndims - 1; d >= 0 && !h->packed; d--) {
        double whole = (double)b->extent[d];
        rows_add(r, &dense, fmin((double)tile[d], whole), whole, stride);
        stride *= whole;
    }
}

/* Where rows begin on any boundary, a run reaches into one line more than it fills, now and then.
 */
static double run_lines(const struct rows *r, double line, double size) {
    bool aligned = fmod(r->run, line) == 0;
    for (int i = 0; i < r->n; i++) aligned &= fmod(r->stride[i], line) == 0;
    return aligned ? r->run / line : r->n ? (r->run - size) / line + 1 : ceil(r->run / line);
}

/* Share of the lines that find no room because too many rows fall on the same sets. */
static double crowded(const struct memory *mem, const struct rows *r, double lines, double line) {
    double sets = mem->ways > 0 ? floor((double)mem->size / (double)mem->ways / line) : 1;
    if (sets <= 1 || r->total <= 1) return 0;
    double reached = fmin(sets, ceil(lines));
    for (int i = 0; i < r->n; i++) {
        double step = fmod(floor(r->stride[i] / line), sets), period = sets;
        while (period > 1 && fmod(step * period / 2, sets) == 0) period /= 2;
        reached = fmin(sets, reached * fmin(r->count[i], period));
    }
    double room = reached * (double)mem->ways * mem->usable, wanted = r->total * lines;
    return wanted > room ? 1 - room / wanted : 0;
}

/* ---- refills ---- */

struct footprint { /* of a tile; ratio, runs: lines and runs for each element */
    double lines, ratio, runs;
    struct rows rows;
};

/* Of each dimension; plan_region without padding and blocks, as all that is priced asks for it. */
static void tile_extents(const struct work *w, const struct plan *p, const struct task *t,
                         const struct access *acc, int depth, int64_t *n) {
    uint64_t axes = w->p->stmt[t->stmt].axes;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++) {
        n[d] = 1;
        for (uint64_t left = axes; left; left &= left - 1) { /* a network has many others */
            int a = __builtin_ctzll(left);
            int64_t c = access_coef(w->p, acc, d, a);
            if (c) n[d] += c * (plan_tile(w, p, a, depth) - 1);
        }
    }
}

static void footprint_make(const struct work *w, double line, const struct plan *p,
                           const struct task *t, const struct access *acc, int depth,
                           struct footprint *f) {
    int64_t tile[MAX_DIMS];
    double size = (double)type_size(w->p->buffer[acc->buffer].type);
    tile_extents(w, p, t, acc, depth, tile);
    rows_make(w, acc->buffer, tile, line, &f->rows);
    double lines = run_lines(&f->rows, line, size);
    f->lines = lines * f->rows.total;
    f->ratio = f->lines / f->rows.elements;
    f->runs = f->rows.total / f->rows.elements;
}

/* Where footprints in lines of this length are remembered; -1: nowhere. */
static int lines_place(struct asked *a, double line) {
    for (int k = 0; k < MAX_LINES; k++) {
        if (a->line[k] == 0) a->line[k] = line;
        if (a->line[k] == line) return k;
    }
    return -1;
}

/* Made once for each list of loops, line and depth, whatever the memory; in *own where it is not
 * remembered. */
static const struct footprint *footprint(const struct work *w, const struct memory *mem,
                                         const struct plan *p, const struct task *t,
                                         const struct access *acc, int depth,
                                         struct footprint *own) {
    double line = mem->line > 0 ? (double)mem->line : 64;
    struct asked *a = plan_asked(p, t);
    int i = a ? asked_access(&w->p->stmt[t->stmt], acc) : -1, k = i < 0 ? -1 : lines_place(a, line);
    if (k < 0) {
        footprint_make(w, line, p, t, acc, depth, own);
        return own;
    }
    struct footprint **f = &a->print[k][i][depth];
    if (!*f) *f = arena_alloc(w->arena, sizeof **f);
    if (!(a->printed[k][i] >> depth & 1)) footprint_make(w, line, p, t, acc, depth, *f);
    a->printed[k][i] |= UINT64_C(1) << depth;
    return *f;
}

struct refilled {
    double lines, runs; /* runs: of consecutive lines, whose first is not foreseen */
    double awaited;     /* tiles of sums that come back before they can grow */
};

/* The depth whose tile is passed as a whole before it comes again: inside the last loop around the
 * sums that does not move it. Further in, registers keep what repeats. */
static int passed_again(const struct work *w, const struct plan *p, const struct task *t,
                        const struct access *acc, int d) {
    int last = p->nloops, use = d;
    while (last > 0 && !(t->reductions >> p->loop[last - 1].axis & 1)) last--;
    for (int i = d; i < last - 1; i++)
        if (!access_varies(w->p, acc, p->loop[i].axis)) use = i + 1;
    return use;
}

/* The innermost loop around the sums may go on along the rows of an operand by less than a line:
 * then it passes the same lines again, as many rows as the loops inside it have. -1: it does not.
 */
static int passed_along(const struct work *w, const struct memory *mem, const struct plan *p,
                        const struct task *t, const struct access *acc) {
    struct footprint own[2];
    int last = p->nloops;
    while (last > 0 && !(t->reductions >> p->loop[last - 1].axis & 1)) last--;
    if (!last) return -1;
    const struct footprint *one = footprint(w, mem, p, t, acc, last, &own[0]),
                           *next = footprint(w, mem, p, t, acc, last - 1, &own[1]);
    bool along = next->rows.total == one->rows.total && next->rows.run > one->rows.run;
    return along && one->rows.run < (double)mem->line ? last : -1;
}

/* Lines that come again and find their sets taken by other rows of the same tile. */
static struct refilled missed_lines(const struct work *w, const struct memory *mem,
                                    const struct plan *p, const struct task *t,
                                    const struct access *acc, int depth, double known) {
    struct refilled sum = {0, 0, 0};
    struct footprint own;
    double line = mem->line > 0 ? (double)mem->line : 64;
    const struct footprint *f = footprint(w, mem, p, t, acc, depth, &own);
    double again = plan_trips(w, p, depth) * f->lines;
    if (again <= known) return sum;
    sum.lines = crowded(mem, &f->rows, f->lines / f->rows.total, line) * (again - known);
    sum.runs = sum.lines * fmin(1, f->runs / f->ratio); /* as they lie in the inner tile */
    return sum;
}

/* Share of the lines that are fetched ahead and find, with those that one step of the sums reads,
 * no room in their sets: they come once more when they are read. */
static double lost_ahead(const struct work *w, const struct memory *mem, const struct plan *p,
                         const struct task *t, const struct access *acc) {
    struct footprint own;
    int last = p->nloops;
    while (last > 0 && !(t->reductions >> p->loop[last - 1].axis & 1)) last--;
    if (mem->streams <= 0 || !last || !access_varies(w->p, acc, p->loop[last - 1].axis)) return 0;
    const struct footprint *f = footprint(w, mem, p, t, acc, last, &own);
    return crowded(mem, &f->rows, f->lines / f->rows.total, mem->line > 0 ? (double)mem->line : 64);
}

/* Of so many lines that come anyhow; the caller's cache holds what is touched inside depth d. */
static struct refilled crowded_out(const struct work *w, const struct memory *mem,
                                   const struct plan *p, const struct task *t,
                                   const struct access *acc, int d, double known) {
    if (acc == &w->p->stmt[t->stmt].dst) /* where it leaves, its reduction inside */
        return missed_lines(w, mem, p, t, acc, d > p->depth_out ? p->depth_out : d, known);
    int along = passed_along(w, mem, p, t, acc);
    struct refilled a = missed_lines(w, mem, p, t, acc, passed_again(w, p, t, acc, d), known);
    if (along <= d) return a;
    struct refilled b = missed_lines(w, mem, p, t, acc, along, known);
    return b.lines > a.lines ? b : a;
}

/* Of what the nest brings to a memory for one operand, the part that counts for the busiest of the
 * instances that share it: what a shared axis moves, by itself or in a loop around, is divided
 * where the memory is the instance's own; the memory behind gives its rate to so many at a time. */
static double instance_part(const struct work *w, int memory, const struct plan *p,
                            const struct task *t, const struct share *s, const struct access *acc,
                            int depth) {
    const struct memory *mem = &w->m->memory[memory], *behind = &w->m->memory[mem->caches];
    int unit = w->m->queue[t->needle->in->queue].unit;
    double part = 1, instances = 1;
    bool own = unit_inside(w->m, mem->unit, unit);
    for (int k = 0; k < s->n; k++) {
        bool moves = !own || access_varies(w->p, acc, s->axis[k]);
        for (int i = 0; i < depth; i++) moves |= p->loop[i].axis == s->axis[k];
        if (moves) part *= s->of[k];
        instances *= (double)s->parts[k];
    }
    bool alone = unit_inside(w->m, behind->unit, unit) || behind->serves <= 0;
    return alone ? part : part * fmax(1, instances / behind->serves);
}

/* Share of a tile of sums that its queue begins only once the one before has ended. */
static double behind_window(const struct work *w, const struct plan *p, const struct task *t) {
    double window = (double)w->m->queue[t->needle->in->queue].window,
           period = plan_trips(w, p, p->nloops) / plan_trips(w, p, p->depth_out);
    return window < 0 || window >= period ? 0 : 1 - window / period;
}

/* Tiles of sums at whose beginning the operand's first line is not there, of so many lines that
 * come during the nest. */
static double starts_missed(const struct work *w, const struct memory *mem, const struct plan *p,
                            const struct task *t, const struct access *acc, double lines) {
    struct footprint own;
    return lines / footprint(w, mem, p, t, acc, p->depth_out, &own)->lines;
}

/* Runs for each element, where the innermost loop that moves the operand jumps along its rows: all
 * its turns together fill them, but each begins where nothing foresees it. 0: it goes on where it
 * was. */
static double jumping(const struct work *w, const struct memory *mem, const struct plan *p,
                      const struct task *t, const struct access *acc, int depth) {
    int64_t by;
    int last = p->nloops;
    struct footprint own;
    while (last > depth && !access_varies(w->p, acc, p->loop[last - 1].axis)) last--;
    if (last <= depth || work_home(w, acc->buffer)->packed) return 0;
    int axis = p->loop[last - 1].axis;
    if (access_dim(w->p, acc, axis, &by) != w->p->buffer[acc->buffer].ndims - 1) return 0;
    double distance = (double)(llabs(by) * plan_tile(w, p, axis, last)) *
                      (double)type_size(w->p->buffer[acc->buffer].type);
    const struct footprint *f = footprint(w, mem, p, t, acc, last, &own);
    return distance >= f->rows.run + (double)mem->line ? f->runs : 0;
}

int cache_depth(const struct work *w, const struct memory *mem, const struct plan *p,
                const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    double line = mem->line > 0 ? (double)mem->line : 64;
    struct footprint own;
    int d = 0;
    for (; d < p->nloops; d++) {
        double lines = 0;
        for (int r = -1; r < st->nreads; r++)
            lines += footprint(w, mem, p, t, r < 0 ? &st->dst : &st->read[r], d, &own)->lines;
        if (lines * line <= mem->usable * (double)mem->size) break;
    }
    return d;
}

struct brought { /* for one read: its runs; cycles that the instructions wait for its lines */
    double runs, pace, late;
};

/* Lines that one pass brings and later ones find again come while that pass computes. One line
 * takes its bytes' time (pace), or longer (late) where too few are under way: of each row that a
 * step of the sums reads as many as are fetched ahead, of all together as many as the queue's
 * window reaches. */
static struct brought read_brought(const struct work *w, const struct memory *mem,
                                   const struct plan *p, const struct task *t,
                                   const struct access *acc, int d, double lines, double runs) {
    double window = (double)w->m->queue[t->needle->in->queue].window,
           all = plan_trips(w, p, p->nloops);
    int last = p->nloops, pass = passed_again(w, p, t, acc, d);
    struct brought sum = {.runs = runs};
    struct footprint own;
    if (mem->prefetch <= 0 || window < 0) return sum;
    while (last > 0 && !(t->reductions >> p->loop[last - 1].axis & 1)) last--;
    double between = all / plan_trips(w, p, pass) / footprint(w, mem, p, t, acc, pass, &own)->lines,
           ahead = (double)mem->prefetch * footprint(w, mem, p, t, acc, last, &own)->rows.total,
           computes = between * p->alone / all, pace = fmax(mem->refill, computes);
    sum.pace = lines * (pace - computes);
    sum.late = lines * fmax(0, mem->first / fmax(ahead, window / between) - pace);
    return sum;
}

/* What one memory is given during the nest, and of each read. */
static struct refilled lines_refilled(const struct work *w, int memory, const struct plan *p,
                                      const struct task *t, const struct share *s,
                                      struct brought *read) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct memory *mem = &w->m->memory[memory];
    struct refilled sum = {0, 0, 0};
    struct footprint own;
    double blocks = plan_blocks(w, p, t, p->depth_out), starts = 0;
    int d = cache_depth(w, mem, p, t);
    if (!d) return sum; /* all of it stays from run to run */
    for (int r = -1; r < st->nreads; r++) {
        const struct access *acc = r < 0 ? &st->dst : &st->read[r];
        if (tile_stays(w, acc->buffer, memory)) continue;
        int at = plan_normalise(w, p, acc, d);
        if (at == d && d > 0) at--; /* what a step shares with the one before is still there */
        const struct footprint *f = footprint(w, mem, p, t, acc, d, &own);
        double apart = mem->streams > 0 && f->rows.total > (double)mem->streams ? f->runs : 0;
        if (mem->streams > 0) apart = fmax(apart, jumping(w, mem, p, t, acc, at));
        f = footprint(w, mem, p, t, acc, at, &own);
        double elements = plan_traffic(w, p, t, acc, at), n = elements * f->ratio,
               runs = elements * fmax(f->runs, apart);
        double part = instance_part(w, memory, p, t, s, acc, at);
        if (r >= 0 && r < MAX_OPERANDS)
            read[r] = read_brought(w, mem, p, t, acc, d, n * part, runs * part);
        struct refilled missed = crowded_out(w, mem, p, t, acc, d, n);
        double ahead = r < 0 ? 0 : lost_ahead(w, mem, p, t, acc) * n;
        n += missed.lines + ahead;
        runs += missed.runs + ahead;
        sum.lines += n * (r < 0 ? 1 + mem->writeback : 1) * part;
        sum.runs += runs * part;
        if (r >= 0) starts = fmax(starts, part * starts_missed(w, mem, p, t, acc, n));
        if (r >= 0 || blocks <= 1) continue;
        double lines = footprint(w, mem, p, t, acc, p->depth_out, &own)->lines;
        sum.awaited = part * n / lines * (1 - 1 / blocks);
    }
    sum.awaited += starts * behind_window(w, p, t);
    return sum;
}

static void mark_caches(const struct machine *m, int memory, bool *used) {
    for (; memory >= 0 && m->memory[memory].caches >= 0; memory = m->memory[memory].caches)
        used[memory] = true;
}

/* The caches that the task's operands pass through, and what stands beside them in their unit: a
 * device beside a host has none. */
static void caches_of(const struct work *w, const struct moves *moves, const struct task *t,
                      bool *used) {
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        for (int k = 0; o->where == IN_HOME && k < o->decl->nmemories; k++)
            mark_caches(w->m, o->decl->memory[k], used);
        for (int k = 0; o->where == IN_LOCAL && k < moves->n; k++) {
            const struct instr *in = moves->at[k].needle->in;
            for (int d = 0; move_fills(in, o->memory) && d < in->nfrom; d++)
                mark_caches(w->m, in->from[d], used);
        }
    }
    for (int m = 0; m < w->m->nmemories; m++)
        for (int k = 0; k < w->m->nmemories && w->m->memory[m].caches >= 0 && !used[m]; k++)
            used[m] = used[k] && w->m->memory[k].unit == w->m->memory[m].unit;
}

static void refills_make(const struct work *w, const struct moves *moves, const struct plan *p,
                         const struct task *t, const struct share *s, struct refills *out) {
    bool used[MAX_MEMORIES] = {false};
    *out = (struct refills){.queue = -1};
    caches_of(w, moves, t, used);
    for (int m = 0; m < w->m->nmemories; m++) {
        const struct memory *mem = &w->m->memory[m];
        if (!used[m] || mem->size <= 0 || mem->refill <= 0) continue;
        struct brought read[MAX_OPERANDS] = {{0}};
        struct refilled n = lines_refilled(w, m, p, t, s, read);
        double cycles = n.lines * mem->refill,
               exposed =
                   (cycles + n.runs * mem->first) * (1 - mem->hidden) + n.awaited * mem->first;
        int queue = moves->loads[1 + m];
        out->exposed += exposed;
        for (int r = 0; r < MAX_OPERANDS; r++) {
            out->late[r] += read[r].runs * mem->first + read[r].late;
            out->apart[r] += read[r].runs * mem->first * (1 - mem->hidden) + read[r].late;
            out->exposed += read[r].late;
            out->waits += read[r].pace;
        }
        if (cycles > out->worst) {
            out->worst = cycles;
            out->worst_exposed = exposed;
        }
        if (queue < 0 || mem->rate <= 0 || mem->line <= 0) continue;
        out->queue = queue;
        out->port = n.lines * (double)mem->line / mem->rate;
    }
}

const struct refills *caches_charge(struct work *w, const struct moves *moves, struct plan *p,
                                    const struct task *t, const struct share *s, double *queue) {
    static const struct share alone = {.part = 1};
    struct tiling *known = p->tiling;
    struct refills *r = known ? known->refills : arena_alloc(w->arena, 2 * sizeof *r);
    if (!known || known->refills_of != p->depth_out + 1) {
        refills_make(w, moves, p, t, &alone, &r[0]);
        r[1] = r[0];
        if (s->n) refills_make(w, moves, p, t, s, &r[1]);
    }
    if (known) known->refills_of = p->depth_out + 1;
    if (r->queue >= 0) queue[r->queue] += r->port;
    return r;
}

double caches_cycles(const struct refills *r, double core) {
    core += r->waits;
    if (r->worst <= core) return core + r->exposed;
    return r->worst + r->exposed -
           r->worst_exposed * (1 - core / r->worst); /* refills hide as much of the computing */
}
