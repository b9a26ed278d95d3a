/* From a cover to tasks: which program axis each needle axis walks, which memory each operand is
 * in. */
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/limits.h"
#include "machines/needle.h"
#include "scheduler/plan/needs.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

static bool choose_memory(struct work *w, struct opnd *o, enum type type) {
    const struct operand *d = o->decl;
    int best = -1;
    for (int i = 0; i < d->nmemories; i++) {
        int at = d->memory[i];
        if (at == MEMORY_IMM || !graph_holds(w->m, at, type)) continue;
        if (memory_is_home(w->m, at)) {
            best = at;
            break;
        }
        if (best < 0) best = at;
    }
    o->memory = best;
    o->where = best >= 0 && memory_is_home(w->m, best) ? IN_HOME : IN_LOCAL;
    return best >= 0;
}

static const char *operand_make(struct work *w, struct task *t, const struct mapping *map, int i) {
    struct opnd *o = &t->op[i];
    const struct stmt *st = &w->p->stmt[t->stmt];
    const struct mapped_operand *mo = &map->operand[i];
    memset(o, 0, sizeof *o);
    o->decl = &t->needle->in->operand[i];
    o->number = i;
    o->read = -1;
    for (int x = 0; x < MAX_NEEDLE; x++) o->alone_dim[x] = -1;
    if (mo->role == OPERAND_IMM) {
        o->where = IN_IMM;
        o->imm = mo->imm;
        return NULL;
    }
    if (mo->role == OPERAND_DST) {
        o->writes = true;
        o->read = mo->read;
        o->accumulates = st->combine != COMBINE_SET;
    } else {
        o->read = mo->read;
    }
    int buffer = o->writes ? st->dst.buffer : st->read[o->read].buffer;
    if (!choose_memory(w, o, w->p->buffer[buffer].type))
        return "no memory of an operand holds its type";
    if (!t->finishes && !needle_form(w->m, t->needle, i, 0, &o->form))
        return arena_printf(
            w->arena,
            "distances in operand '%s' depend on a size that varies, or its parts in several "
            "instances do; "
            "strides=\"…\" gives distances, and a size over instances must be fixed",
            o->decl->buffer);
    return NULL;
}

/* Blocks in a dimension of the result may be tiles of the instruction. */
static bool result_in_tiles(const struct program *p, const struct task *t,
                            const struct mapping *map) {
    uint64_t tiles = 0;
    for (int x = 0; x < t->needle->nx; x++)
        if (map->group[x].n == 1 && t->needle->ranged[x] < 0 &&
            p->axis[map->group[x].axis[0]].extent == t->needle->hi[x])
            tiles |= UINT64_C(1) << map->group[x].axis[0];
    return stmt_in_tiles(p, &p->stmt[t->stmt], tiles);
}

static const char *task_check(const struct work *w, const struct task *t,
                              const struct mapping *map) {
    const struct instr *in = t->needle->in;
    const struct stmt *st = &w->p->stmt[t->stmt];
    const char *why = needs_why(w->edges, in);
    if (why) return why;
    if (in->completes >= 0 && st->combine == COMBINE_SET)
        return "its results complete at a later sync, which is placed for reductions only";
    if (in->across >= 0) return "it works across units, which schedules do not do yet";
    if (in->queue < 0) return "it has no queue";
    if (st->nwhere) return "its domain is not a box";
    if (stmt_ordered(w->p, st) >= 0) return "the order of one of its axes counts";
    if (!result_in_tiles(w->p, t, map))
        return "its result's elements are not addressed by one axis each";
    return NULL;
}

/* Elements of a copy that is indexed by the axes themselves: those that move the operand, and
 * these.
 */
static double by_axes(const struct work *w, const struct task *t, const struct access *acc,
                      uint64_t members) {
    double n = 1;
    for (int a = 0; a < w->p->naxes; a++)
        if ((w->p->stmt[t->stmt].axes >> a & 1) &&
            (access_varies(w->p, acc, a) || (members >> a & 1)))
            n *= (double)w->p->axis[a].extent;
    return n;
}

/* Elements that copies by axes would hold, were all of the group's axes kept. */
static double copied(const struct work *w, const struct task *t, const struct group *g) {
    double sum = 0;
    uint64_t members = 0;
    for (int k = 0; k < g->n; k++) members |= UINT64_C(1) << g->axis[k];
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_IMM) continue;
        const struct access *acc =
            o->writes ? &w->p->stmt[t->stmt].dst : &w->p->stmt[t->stmt].read[o->read];
        bool varies = false;
        for (int k = 0; k < g->n; k++) varies |= access_varies(w->p, acc, g->axis[k]);
        if (varies && !buffer_prepared(w, acc->buffer)) sum += by_axes(w, t, acc, members);
    }
    return sum;
}

/* Elements that a needle along this axis alone would have to see in another layout: where it does
 * not run along the rows. */
static double packed(const struct work *w, const struct task *t, int x, int axis) {
    double sum = 0;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *o = &t->op[i];
        if (o->where == IN_IMM) continue;
        const struct access *acc =
            o->writes ? &w->p->stmt[t->stmt].dst : &w->p->stmt[t->stmt].read[o->read];
        const struct buffer *b = &w->p->buffer[acc->buffer];
        bool dense = false;
        for (int k = 0; k < o->form.n; k++)
            dense |= o->form.digit[k].x == x && o->form.digit[k].stride == 1;
        if (b->role == ROLE_CONST || b->role == ROLE_TEMP || !dense ||
            !access_varies(w->p, acc, axis))
            continue;
        if (access_coef(w->p, acc, b->ndims - 1, axis) != 1) sum += (double)b->elements;
    }
    return sum;
}

/* A result that another task builds along another axis would change its layout in between. */
static bool disagrees(const struct work *w, const struct task *t, int axis) {
    int b = w->p->stmt[t->stmt].dst.buffer;
    for (int k = 0; k < w->ntasks; k++) {
        const struct task *o = &w->task[k];
        if (o == t || !o->needle || w->task_of[o->stmt] != k || w->p->stmt[o->stmt].dst.buffer != b)
            continue;
        for (int i = 0; i < o->nops; i++)
            for (int d = 0; o->op[i].writes && d < o->op[i].form.n; d++) {
                const struct digit *dg = &o->op[i].form.digit[d];
                if (dg->stride == 1 && o->axis[dg->x] >= 0 && o->axis[dg->x] != axis) return true;
            }
    }
    return false;
}

static int dim_moved(const struct program *p, const struct access *a, int axis) {
    for (int d = 0; d < p->buffer[a->buffer].ndims && axis >= 0; d++)
        if (access_coef(p, a, d, axis)) return d;
    return -1;
}

/* What it reads another instruction leaves in that memory along another dimension: it cannot follow
 * there. */
static bool reads_otherwise(struct work *w, const struct task *t, int x, int axis) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *in = &t->op[i];
        if (in->where != IN_LOCAL || in->read < 0 || in->accumulates) continue;
        const struct access *read = &st->read[in->read];
        for (int k = 0; k < w->ntasks; k++) {
            const struct task *o = &w->task[k];
            if (o == t || !o->needle || w->task_of[o->stmt] != k ||
                w->p->stmt[o->stmt].dst.buffer != read->buffer)
                continue;
            for (int m = 0; m < o->nops; m++)
                for (int d = 0;
                     o->op[m].writes && o->op[m].memory == in->memory && d < o->op[m].form.n; d++)
                    for (int e = 0; e < in->form.n; e++)
                        if (in->form.digit[e].x == x &&
                            in->form.digit[e].stride == o->op[m].form.digit[d].stride &&
                            dim_moved(w->p, read, axis) !=
                                dim_moved(w->p, &w->p->stmt[o->stmt].dst,
                                          o->axis[o->op[m].form.digit[d].x]))
                            return true;
        }
    }
    return false;
}

static const struct mapping *mapping_at(const struct work *w, int stmt) {
    const struct cover *c = w->cover;
    for (int i = 0; i < c->nitems; i++)
        if (c->item[i].stmt == stmt && c->item[i].mapping >= 0)
            return &c->mapping[c->item[i].mapping];
    return NULL;
}

static bool stands_alone_in(const struct mapping *m, int axis) {
    for (int x = 0; m && x < m->ngroups; x++)
        if (m->group[x].n == 1 && m->group[x].axis[0] == axis) return true;
    return false;
}

/* Does a sum that reads the buffer, or what is made of it element by element, have an axis of its
 * instruction along that dimension? Its rows lie so. seen: bit (buffer * MAX_DIMS + dim). */
static bool read_along(const struct work *w, int buffer, int dim, int from, uint64_t *seen) {
    int count, bit = buffer * MAX_DIMS + dim;
    const int *use = buffer_uses(w, buffer, &count);
    if (dim < 0 || seen[bit / 64] >> bit % 64 & 1) return false;
    seen[bit / 64] |= UINT64_C(1) << bit % 64;
    for (int i = 0; i < count; i++) {
        int s = use[i];
        const struct stmt *st = &w->p->stmt[s];
        for (int r = 0; r < st->nreads && s > from; r++)
            for (int a = 0; a < w->p->naxes && st->read[r].buffer == buffer; a++) {
                if (!(st->axes >> a & 1) || !access_coef(w->p, &st->read[r], dim, a)) continue;
                if (st->combine == COMBINE_SET
                        ? read_along(w, st->dst.buffer, dim_moved(w->p, &st->dst, a), s, seen)
                        : stands_alone_in(mapping_at(w, s), a))
                    return true;
            }
    }
    return false;
}

static bool rows_along(const struct work *w, const struct task *t, int axis) {
    const struct access *dst = &w->p->stmt[t->stmt].dst;
    size_t words = (size_t)w->p->nbuffers * MAX_DIMS / 64 + 1;
    uint64_t *seen = arena_array(w->arena, words, sizeof *seen);
    return read_along(w, dst->buffer, dim_moved(w->p, dst, axis), t->stmt, seen);
}

/* Would who reads the sums take rows along another axis of the group? */
static bool read_otherwise(const struct work *w, const struct task *t, const struct group *g,
                           int axis) {
    if (w->p->stmt[t->stmt].combine == COMBINE_SET || rows_along(w, t, axis)) return false;
    for (int k = 0; k < g->n; k++)
        if (rows_along(w, t, g->axis[k])) return true;
    return false;
}

/* Elements of the copies by axes that operands need where the needle's axis x walks this one:
 * windows whose steps no move makes, or that overlap along it. Of the other groups, the first axes.
 */
static double copied_anyway(struct work *w, const struct task *t, const struct mapping *map, int x,
                            int axis) {
    struct task one = *t;
    double sum = 0;
    for (int y = 0; y < t->needle->nx; y++)
        one.axis[y] = y == x ? axis : map->group[y].n ? map->group[y].axis[0] : -1;
    for (int i = 0; i < t->nops; i++) {
        struct opnd o = t->op[i];
        if (o.where != IN_LOCAL || o.writes || o.read < 0) continue;
        const struct access *acc = task_access(w, t, &o, false);
        if (!buffer_prepared(w, acc->buffer) && !geom_make(w, &one, &o))
            sum += by_axes(w, t, acc, 0);
    }
    return sum;
}

/* One of several axes, or all of them as one: copies against wasted lanes (a question to the
 * approach). */
static int ask_fusion(struct work *w, const struct task *t, const struct mapping *map, int x) {
    const struct group *g = &map->group[x];
    int64_t tile = t->needle->ranged[x] < 0 ? t->needle->hi[x] : t->needle->step[x], whole = 1;
    int queue = t->needle->in->queue;
    double interval = 1, turn = 1;
    if (w->fallback >= 0) {
        interval = host_in_cycles(w, queue, fallback_cycles(w->m, w->fallback, COPY_ANY));
        turn = host_in_cycles(w, queue, fallback_cycles(w->m, w->fallback, COPY_TURN));
    }
    struct candidate c[MAX_GROUP + 1];
    for (int i = 0; i < g->n; i++) whole *= w->p->axis[g->axis[i]].extent;
    int best = 0;
    for (int i = 0; i < g->n; i++) { /* the innermost first: of equal ones it is the rows' */
        int axis = g->axis[g->n - 1 - i];
        int64_t e = w->p->axis[axis].extent;
        double cycles = map->cost * sizes_rounded(e, tile) / sizes_rounded(whole, tile);
        if (price_counts(w, PRICE_LANES)) cycles *= sizes_short(w, t, x, e);
        c[i] =
            (struct candidate){w->p->axis[axis].name, cycles + turn * packed(w, t, x, axis), NULL};
        if (disagrees(w, t, axis) || read_otherwise(w, t, g, axis))
            c[i].cost += turn * (double)w->p->buffer[w->p->stmt[t->stmt].dst.buffer].elements;
        if (reads_otherwise(w, t, x, axis)) /* it goes home and comes back */
            c[i].cost += 2 * turn * (double)w->p->buffer[w->p->stmt[t->stmt].dst.buffer].elements;
        c[i].cost += interval * copied_anyway(w, t, map, x, axis);
        if (c[i].cost < c[best].cost) best = i;
    }
    int n = g->n;
    if (w->fallback >= 0) {
        c[n] = (struct candidate){"all", map->cost + interval * copied(w, t, g), NULL};
        if (disagrees(w, t, -1))
            c[n].cost += turn * (double)w->p->buffer[w->p->stmt[t->stmt].dst.buffer].elements;
        if (c[n].cost < c[best].cost) best = n;
        n++;
    }
    const char *subject = arena_printf(w->arena, "axes of statement %d on %s", t->stmt,
                                       t->needle->bound->axis[x].name);
    int answer = work_ask(w, QUESTION_FUSION, subject, c, n, best);
    return answer < g->n ? g->n - 1 - answer : answer;
}

static void fuse_axes(struct stmt *st, uint64_t members, int made) {
    if (st->axes & members) st->axes = (st->axes & ~members) | UINT64_C(1) << made;
}

static bool moves_any(struct work *w, const struct task *t, int i, const uint64_t *members) {
    const struct opnd *o = &t->op[i];
    if (o->where == IN_IMM) return false;
    const struct access *acc = task_access(w, t, o, o->writes);
    for (int x = 0; x < t->needle->nx; x++)
        for (int a = 0; a < w->p->naxes; a++)
            if ((members[x] >> a & 1) && access_varies(w->p, acc, a)) return true;
    return false;
}

/* Back from the fused axis to its members, of what was copied already. */
static void unfuse(const struct work *w, const struct task *t, struct access *acc) {
    int n = w->p->naxes + 1;
    for (int x = 0; x < t->needle->nx; x++) {
        const struct group *g = &t->group[x];
        for (int d = 0; g->n > 1 && d < w->p->buffer[acc->buffer].ndims; d++) {
            int64_t c = acc->coef[d * n + t->axis[x]];
            acc->coef[d * n + t->axis[x]] = 0;
            for (int i = g->n - 1; c && i >= 0; i--) {
                acc->coef[d * n + g->axis[i]] = c;
                c *= w->p->axis[g->axis[i]].extent;
            }
        }
    }
}

/* The fill of a sum goes by the sum's axes once its result was copied. */
static void unfuse_zero(const struct work *w, const struct task *t, const uint64_t *members) {
    struct stmt *zero = &w->p->stmt[t->init];
    unfuse(w, t, &zero->dst);
    for (int x = 0; x < t->needle->nx; x++)
        if (members[x] && zero->axes >> t->axis[x] & 1)
            zero->axes = (zero->axes & ~(UINT64_C(1) << t->axis[x])) | members[x];
}

static struct group *choose_groups(struct work *w, const struct task *t,
                                   const struct mapping *map) {
    struct group *group = arena_array(w->arena, (size_t)t->needle->nx + 1, sizeof *group);
    for (int x = 0; x < t->needle->nx; x++) {
        group[x] = map->group[x];
        if (group[x].n < 2) continue;
        int k = ask_fusion(w, t, map, x);
        if (k < group[x].n) group[x] = (struct group){{map->group[x].axis[k]}, 1};
    }
    return group;
}

/* Fused axes become one axis: every operand that depends on them gets a temporary indexed by the
 * axes themselves. */
static const char *fuse(struct work *w, int task) {
    struct task *t = &w->task[task];
    uint64_t members[MAX_NEEDLE] = {0}, used = w->p->stmt[t->stmt].axes;
    bool any = false;
    const struct group *group = t->group;
    if (t->init >= 0) used |= w->p->stmt[t->init].axes;
    for (int x = 0; x < t->needle->nx; x++)
        for (int i = 0; group[x].n > 1 && i < group[x].n; i++)
            members[x] |= UINT64_C(1) << group[x].axis[i];
    for (int i = 0; i < t->nops; i++) /* before anything is rewritten */
        if (moves_any(w, t, i, members) && t->op[i].read >= 0 && t->op[i].writes)
            return "fused axes on an operand changed in place";
    for (int x = 0; x < t->needle->nx; x++) {
        const struct group *g = &group[x];
        t->axis[x] = g->n == 1 ? g->axis[0] : -1;
        if (g->n < 2) continue;
        int64_t extent = 1;
        any = true;
        for (int i = 0; i < g->n; i++)
            if (__builtin_mul_overflow(extent, w->p->axis[g->axis[i]].extent, &extent))
                return "fused axes are too long";
        t->axis[x] = rewrite_axis_apart(
            w, unique_name(w, w->p->axis[g->axis[0]].name, w->p->axis[g->axis[g->n - 1]].name),
            extent, used);
        if (t->axis[x] < 0) return "the program has too many axes";
        used |= UINT64_C(1) << t->axis[x];
    }
    if (!any) return NULL;
    if (w->fallback < 0) return "fused axes need a copy that only a fallback makes";
    for (int i = 0; i < t->nops; i++) {
        t = &w->task[task];
        if (t->op[i].where == IN_IMM) continue;
        if (!moves_any(w, t, i, members)) continue;
        if (!pack_by_axes(w, task, i, t->op[i].writes)) {
            t = &w->task[task];
            struct stmt *st = &w->p->stmt[t->stmt];
            unfuse(w, t, &st->dst);
            for (int r = 0; r < st->nreads; r++) unfuse(w, t, &st->read[r]);
            if (t->init >= 0) unfuse_zero(w, t, members);
            return "fused axes need a copy that is too large";
        }
        w->task[task].op[i].by_axes = true;
    }
    t = &w->task[task];
    for (int x = 0; x < t->needle->nx; x++)
        if (members[x]) fuse_axes(&w->p->stmt[t->stmt], members[x], t->axis[x]);
    return NULL;
}

static void find_reductions(struct work *w, struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    t->reductions = 0;
    for (int a = 0; a < w->p->naxes; a++)
        if ((st->axes >> a & 1) && !access_varies(w->p, &st->dst, a))
            t->reductions |= UINT64_C(1) << a;
}

static const char *operands_make(struct work *w, struct task *t, const struct mapping *map) {
    const char *why = NULL;
    for (int i = 0; i < t->nops && !why; i++) why = operand_make(w, t, map, i);
    return why;
}

static const char *choose_sizes(struct work *w, struct task *t, const struct mapping *map,
                                const int64_t *fixed) {
    int instr = t->needle->instr;
    program_free(t->needle->bound);
    t->needle = needle_fixed(w->arena, w->m, instr, fixed, w->diags);
    return t->needle ? operands_make(w, t, map) : "its sizes are not legal";
}

/* Sizes that must be equal everywhere, or all of an axis, follow from the axes that are walked. */
static const char *fix_sizes(struct work *w, struct task *t, const struct mapping *map,
                             int64_t *fixed) {
    bool equal = needs_equal_tiles(w, t, t->group, fixed);
    equal |= sizes_steps(w, t, fixed);
    if (!join_sizes(w, t, map, fixed) && !equal) return NULL;
    return choose_sizes(w, t, map, fixed);
}

/* Of a table that tells the addresses of issues: bytes of an entry, cycles to load it. */
static void learn_entries(const struct machine *m, struct needle *n) {
    const struct hwloop *l = instr_table(n->in);
    if (!l) return;
    n->entry_bytes = table_entry_bytes(m, l);
    for (int i = 0; i < m->ninstrs; i++)
        if (m->instr[i].is_move && move_fills(&m->instr[i], l->table) && m->instr[i].bus >= 0 &&
            m->bus[m->instr[i].bus].rate > 0)
            n->entry_cycles = (double)n->entry_bytes / m->bus[m->instr[i].bus].rate;
}

static const char *task_make(struct work *w, int task, const struct mapping *map) {
    struct task *t = &w->task[task];
    int first = remain_first(w->m, map->instr); /* the other one comes in where loops allow it */
    t->needle = needle_make(w->arena, w->m, first >= 0 ? first : map->instr, w->diags);
    if (!t->needle) return "its sizes depend on each other";
    const char *why = task_check(w, t, map);
    if (why) return why;
    t->nops = t->needle->in->noperands;
    if (t->nops > MAX_OPERANDS) return "it has too many operands";
    t->finishes = finish_may(w, t, map);
    int64_t fixed[MAX_SIZES] = {0};
    if (sizes_idle(t, map, fixed))
        why = choose_sizes(w, t, map, fixed);
    else
        why = operands_make(w, t, map);
    bool dense = why && t->needle && sizes_dense(w, t, map->group, fixed);
    if (dense) why = choose_sizes(w, t, map, fixed);
    if (why) return why;
    for (int i = 0; i < t->nops; i++) {
        struct opnd *o = &t->op[i];
        const struct stmt *st = &w->p->stmt[t->stmt];
        if (o->writes && o->read >= 0 && o->where != IN_LOCAL &&
            !access_same_index(w->p, &st->dst, &st->read[o->read]))
            return "an operand changed in place is read at another index";
    }
    why = recur_check(w, t);
    if (why || t->finishes || begin_link(w, task) || begin_read(w, task)) return why;
    t->group = choose_groups(w, t, map);
    if (dense)
        why = sizes_dense(w, t, t->group, fixed) ? choose_sizes(w, t, map, fixed)
                                                 : "its sizes are not legal";
    if (!why) why = fix_sizes(w, t, map, fixed);
    if (!why) why = fuse(w, task);
    if (why) return why;
    t = &w->task[task];
    learn_entries(w->m, t->needle);
    t->needle->again = remain_again(w->m, t->needle->instr, &t->needle->remaining);
    find_reductions(w, t);
    return NULL;
}

bool tasks_make(struct work *w) {
    const struct cover *c = w->cover;
    w->task = arena_array(w->arena, (size_t)c->nitems + 1, sizeof *w->task);
    for (int pass = 0; pass < 2; pass++) /* reductions first: fills of their results follow them */
        for (int i = 0; i < c->nitems; i++) {
            const struct cover_item *it = &c->item[i];
            if (it->mapping < 0 || it->inside >= 0) continue;
            if ((w->p->stmt[it->stmt].combine == COMBINE_SET) == (pass == 0)) continue;
            const struct mapping *map = &c->mapping[it->mapping];
            int n = w->ntasks++;
            w->task[n] = (struct task){.stmt = it->stmt, .init = map->init, .item = i};
            w->task_of[it->stmt] = n;
            if (map->init >= 0) w->task_of[map->init] = -2;
            const char *why = task_make(w, n, map);
            if (why) task_demote(w, n, why);
        }
    finishes_link(w);
    return !w->diags->errors;
}
