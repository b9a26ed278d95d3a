/* The driver: one compilation from a cover to a schedule. In this order: tasks, layouts, nests,
 * plans, groups, fills in parts, copies of the host, homes, then the tree. Where no plan of a nest
 * fits, the nest is cut or a statement demoted, and nests are made anew. retry.c repeats mapping
 * and scheduling with what was refused here, ways.c with other answers to the mapper's questions.
 */
#include "ir/steps.h"
#include "scheduler/cost.h"
#include "scheduler/emit/emit.h"
#include "scheduler/finalists.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/left.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/search_known.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include "scheduler/schedule/launches.h"
#include "scheduler/schedule/sizes.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Recurrences were opened, unless there is a call, or no axis was left for copies of states. */
static bool check_items(struct work *w) {
    const struct program *p = w->cover->program;
    const struct call *call = items_call(p->item, p->nitems);
    struct source source = p->source;
    for (int i = 0; !call && i < p->nitems; i++)
        if (p->item[i].kind != ITEM_STMT) {
            diag_line(w->diags, work_file(w), 0, 0,
                      "'%s' cannot be scheduled: it has %d axes and the most is %d, which leaves "
                      "none for copies of its recurrences' states",
                      p->name, p->naxes, MAX_AXES);
            return false;
        }
    if (!call) return true;
    source.file = work_file(w);
    diag_at(w->diags, &source, call->at,
            "'%s' cannot be scheduled: no machine executes the opaque call of '%s', which the "
            "interpreter alone can",
            p->name, call->function);
    return false;
}

/* Half of the addresses are left for padding and layouts. */
static bool check_sizes(struct work *w) {
    const struct program *p = w->p;
    int64_t bytes = 0;
    for (int b = 0; b < p->nbuffers; b++) {
        int64_t size = (int64_t)type_size(p->buffer[b].type), n = p->buffer[b].elements;
        if (n >= ELEMENT_LIMIT || n * size > ADDRESS_LIMIT / 2 - bytes) {
            diag_line(w->diags, work_file(w), 0, 0,
                      "'%s' of %" PRId64
                      " elements is too large to be scheduled: expected fewer than "
                      "2^40 elements, and at most 2^46 bytes of all arrays together",
                      p->buffer[b].name, n);
            return false;
        }
        bytes += n * size;
    }
    return true;
}

static void begin(struct work *w) {
    struct program *p = w->p;
    w->uses = uses_new(w->arena);
    w->edges = edges_new(w->arena, w->m);
    w->room = arena_alloc(w->arena, sizeof *w->room);
    recur_begin(w);
    w->home = arena_array(w->arena, (size_t)p->nbuffers + 1, sizeof *w->home);
    for (int b = 0; b < p->nbuffers; b++)
        w->home[b] = (struct home){.memory = w->m->home,
                                   .extent = p->buffer[b].extent,
                                   .elements = p->buffer[b].elements,
                                   .place = -1};
    w->task_of = arena_array(w->arena, (size_t)p->nstmts + 1, sizeof *w->task_of);
    w->in_prepare = arena_array(w->arena, (size_t)p->nstmts + 1, sizeof *w->in_prepare);
    w->order = arena_array(w->arena, (size_t)p->nitems + 1, sizeof *w->order);
    for (int s = 0; s < p->nstmts; s++) w->task_of[s] = -1;
    for (int i = 0; i < p->nitems; i++) w->order[w->norder++] = p->item[i].stmt;
    w->fallback = w->m->nfallbacks > 0 ? 0 : -1;
    for (int i = 0; i < w->cover->nitems && w->fallback >= 0; i++)
        w->in_prepare[w->cover->item[i].stmt] =
            w->cover->item[i].mapping < 0 && w->cover->item[i].inside < 0;
    program_steady(p, w->in_prepare);
    for (int m = 0; m < w->m->nmemories; m++) w->capacity[m] = graph_capacity(w->m, m);
    for (int q = 0; q < w->m->nqueues; q++)
        for (int u = 0; u < w->m->nqueues; u++)
            if (counts_tokens(w->edges, q, u)) w->counts[q] |= UINT64_C(1) << u;
}

/* What prepare writes and runs read stays: its homes are kept between runs. */
static void mark_prepared(struct work *w) {
    for (int b = 0; b < w->p->nbuffers; b++) w->home[b].prepared = false;
    for (int i = 0; i < w->norder; i++) {
        const struct stmt *s = &w->p->stmt[w->order[i]];
        for (int r = 0; r < s->nreads && !w->in_prepare[w->order[i]]; r++) {
            int b = s->read[r].buffer;
            if (w->p->buffer[b].role != ROLE_CONST && !w->home[b].prepared)
                w->home[b].prepared = buffer_prepared(w, b);
        }
    }
}

static bool packable(const struct work *w, const struct task *t, const struct opnd *o) {
    if (o->where != IN_LOCAL || o->read < 0 || o->writes || w->fallback < 0) return false;
    const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
    const struct buffer *b = &w->p->buffer[acc->buffer];
    const struct home *h = &w->home[acc->buffer];
    bool blocked = false;
    for (int d = 0; d < b->ndims; d++) blocked |= o->geom.block[d] > 1;
    return !h->packed && blocked && !o->geom.loose && !acc->has_fill &&
           (b->role == ROLE_IN || buffer_prepared(w, acc->buffer));
}

/* Of the copy that pack_identity would make, before it is made. */
static double panel_cycles(const struct work *w, const struct task *t, const struct opnd *o,
                           int buffer) {
    const struct buffer *b = &w->p->buffer[buffer];
    bool rows = o->geom.at[0].dim == b->ndims - 1;
    if (buffer_prepared(w, buffer)) return 0;
    double each = fallback_cycles(w->m, w->fallback, rows ? COPY_ROWS : COPY_TURN);
    return host_in_cycles(w, t->needle->in->queue, (double)b->elements * each);
}

/* With the buffer copied, as the work tries it. Where little can be won at all, of the plan that
 * was found for it as it lies; otherwise that of a search of its own, in *packed. */
static double packed_cost(struct work *as, const struct moves *moves, struct nest *n,
                          struct search *direct, struct search **packed) {
    if (near_alone(direct)) return nest_cost_again(direct, as);
    *packed = nest_search(as, moves, n);
    return *packed ? nest_cost(*packed) : INFINITY;
}

/* Share of a nest's price below which two layouts are not told apart. */
#define LAYOUT_DOUBT 0.03

/* The plan with a copy of what the operand reads, if one can be made: in panels that the moves read
 * one after the other, or of nothing but the elements that are read. *cost: of both; infinite:
 * there is none. */
static struct search *search_copied(struct work *w, const struct moves *moves, struct nest *n,
                                    struct search *direct, const struct opnd *o, double *cost) {
    const struct task *t = &w->task[n->core];
    bool panels = packable(w, t, o), steps = false;
    struct homes copied = {.rest = w->tried};
    struct stepped was;
    struct search *found = NULL;
    double copy;
    *cost = INFINITY;
    if (o->read < 0) return NULL;
    copied.buffer = w->p->stmt[t->stmt].read[o->read].buffer;
    if (panels) {
        copied.home = home_packed(w, copied.buffer, &o->geom);
        copy = panel_cycles(w, t, o, copied.buffer);
    } else {
        steps = w->fallback >= 0 && !near_alone(direct) && pack_steps(w, t, o, &copied.home, &was);
        if (!steps) return NULL;
        copy = host_in_cycles(w, t->needle->in->queue,
                              (double)copied.home.elements *
                                  fallback_cycles(w->m, w->fallback, COPY_TURN)) +
               LAYOUT_DOUBT * nest_cost(direct);
    }
    if (copy < nest_cost(direct)) {
        struct work as = work_with(w, &copied);
        *cost = packed_cost(&as, moves, n, direct, &found) + copy;
    }
    if (steps) pack_steps_end(w, &was);
    if (found) nest_enter(found, w, n);
    return found;
}

/* A copy in panels, or of every so manieth element, against rows as the caller gives them (a
 * question to the approach). */
static bool consider_packing(struct work *w, const struct moves *moves, struct nest *n,
                             struct search **search) {
    for (int i = 0; i < w->task[n->core].nops; i++) {
        const struct task *t = &w->task[n->core];
        double direct = nest_cost(*search), cost;
        struct search *packed = search_copied(w, moves, n, *search, &t->op[i], &cost);
        if (isinf(cost)) continue; /* then nothing was found */
        int b = w->p->stmt[t->stmt].read[t->op[i].read].buffer;
        struct candidate c[2] = {{"direct", direct, NULL}, {"packed", cost, NULL}};
        const char *subject =
            arena_printf(w->arena, "'%s' for statement %d", w->p->buffer[b].name, t->stmt);
        if (work_ask(w, QUESTION_LAYOUT, subject, c, 2, cost < direct) != 1) {
            if (packed) nest_drop(packed);
            continue;
        }
        struct homes panels = {w->tried, b, home_packed(w, b, &t->op[i].geom)};
        struct work as = work_with(w, &panels);
        if (!packed) packed = nest_search(&as, moves, n);
        if (!packed) continue;
        if (!pack_identity(w, n->core, i)) return false;
        nest_enter(packed, w, n);
        nest_drop(*search);
        *search = packed;
    }
    return true;
}

/* A copy of planes that is made anyhow, against the same one with its planes innermost (a question
 * to the approach). */
static void consider_planes(struct work *w, const struct moves *moves, struct nest *n,
                            struct search **search) {
    const struct task *t = &w->task[n->core];
    for (int i = 0; i < t->nops && !near_alone(*search); i++) {
        const struct opnd *o = &t->op[i];
        struct homes inside = {.rest = w->tried};
        const char *why;
        int copy = pack_planes_inside(w, t, o, &inside.home);
        if (copy < 0) continue;
        inside.buffer = w->p->stmt[copy].dst.buffer;
        struct work as = work_with(w, &inside);
        double direct = nest_cost(*search), doubt = LAYOUT_DOUBT * direct,
               turn = host_in_cycles(w, t->needle->in->queue,
                                     host_cycles(&as, copy) - host_cycles(w, copy));
        if (turn + doubt >= direct - nest_alone(*search) ||
            !operand_fits(&as, moves, t, o, false, &why))
            continue;
        struct search *turned = nest_search(&as, moves, n);
        if (!turned) continue;
        struct candidate c[2] = {{"planes outside", direct, NULL},
                                 {"planes inside", nest_cost(turned) + turn + doubt, NULL}};
        const char *subject = arena_printf(w->arena, "'%s' for statement %d",
                                           w->p->buffer[inside.buffer].name, t->stmt);
        if (work_ask(w, QUESTION_LAYOUT, subject, c, 2, c[1].cost < c[0].cost) != 1) {
            nest_drop(turned);
            continue;
        }
        w->home[inside.buffer] = inside.home;
        nest_enter(turned, w, n);
        nest_drop(*search);
        *search = turned;
    }
}

static bool gives_up(const struct work *w) {
    if (!w->options) return false;
    double most = w->options->most;
    struct planned other = w->options->other, own = w->planned;
    if (other.cycles > 0 && own.cycles > other.cycles) return true;
    if (other.cycles > 0 && own.cycles == other.cycles && own.unsearched == other.unsearched)
        return true;
    for (int q = 0; q < w->m->nqueues && most > 0; q++)
        if (w->alone[q] + w->on_host >= most) return true;
    return false;
}

/* A try that leaves more to others than the best schedule does is not taken, whatever it takes. */
static bool leaves_more(const struct work *w) {
    const struct scheduler_options *o = w->options;
    return o && o->trying && o->left && o->left->n > o->warned;
}

static bool may_pack(const struct work *w, const struct nest *n) {
    const struct task *t = &w->task[n->core];
    struct home inside;
    for (int i = 0; i < t->nops; i++)
        if (packable(w, t, &t->op[i]) || pack_planes_inside(w, t, &t->op[i], &inside) >= 0)
            return true;
    return false;
}

/* Before any search: does what is known of the nests cost too much already? Of nests that were
 * searched before it is their plan, unless panels may shorten it; of the others their instructions
 * alone. Where there is nothing to search, nothing is spared. */
static bool is_hopeless(struct work *w) {
    bool limited = w->options && (w->options->most > 0 || w->options->other.cycles > 0),
         searches = false;
    for (int i = 0; i < w->nnests && limited; i++) {
        struct nest *n = &w->nest[i];
        if (n->core < 0 || n->part_n) continue;
        if (grid_possible(w, n)) return false; /* how much of it instances do is not known yet */
        double least = nest_least(w, n), known = may_pack(w, n) ? -1 : nest_known(w, n);
        cost_plan(w, n, fmax(least, known), least);
        searches = true;
    }
    bool hopeless = searches && gives_up(w);
    cost_begin(w);
    return hopeless;
}

/* Instances that each bring what the others bring too take turns on one bus, and all wait for
 * what they share: one that does all may be done sooner. By the clock, where it knows both. */
static struct search *search_best(struct work *w, const struct moves *moves, struct nest *n) {
    struct search *grid = nest_search(w, moves, n);
    if (!grid || !n->is_grid || grid_is_open(w, n)) return grid;
    double part = grid_part(w, n), together = nest_clocked(grid);
    struct nest whole = *n;
    grid_leave(&whole);
    struct search *alone = nest_search(w, moves, &whole);
    double one = alone ? nest_clocked(alone) : -1;
    bool known = together > 0 && one > 0;
    if (alone && (known ? one < together * part : nest_cost(alone) < nest_cost(grid) * part)) {
        nest_drop(grid);
        *n = whole;
        nest_enter(alone, w, n);
        return alone;
    }
    if (alone) nest_drop(alone);
    return grid;
}

/* False: no plan (searched), or a defect that is reported. */
static bool plan_core(struct work *w, const struct moves *moves, struct nest *n, bool *searched) {
    if (n->part_n) { /* its layouts are decided */
        int64_t extent = part_open(w, n);
        bool ok = nest_plan(w, moves, n);
        part_close(w, n, extent);
        if (ok) cost_plan(w, n, n->plan.predicted, n->plan.alone);
        return ok;
    }
    struct search *s = search_best(w, moves, n);
    *searched = s != NULL;
    if (!s || !consider_packing(w, moves, n, &s)) return false;
    consider_planes(w, moves, n, &s);
    cost_plan(w, n, nest_cost(s), nest_alone(s));
    if (gives_up(w)) return false;
    nest_decide(s);
    return true;
}

/* Without sums there is one plan. How long it takes only the clock says: where each grain goes from
 * home and back before the next one begins, that is many times what its instructions take. Of the
 * steps of a recurrence it does not know: what they make may stay, and goes home when alone. */
static bool plan_chain(struct work *w, const struct moves *moves, struct nest *n, bool *searched) {
    if (!nest_plan(w, moves, n)) return false;
    bool steps = w->p->stmt[n->first].scope > 0;
    double cycles = steps ? -1 : plan_simulated(w, moves, n, &n->plan);
    if (cycles <= 0) return true;
    *searched = true;
    n->plan.predicted = cycles;
    cost_plan(w, n, cycles, 0);
    return !gives_up(w);
}

static void plan_begin(struct work *w, const struct moves *moves) {
    recur_keep(w, moves);
    groups_rename(w);
    cost_begin(w);
}

static bool plan_all(struct work *w, const struct moves *moves) {
    plan_begin(w, moves);
    if (leaves_more(w) || is_hopeless(w)) return false;
    for (int i = 0; i < w->nnests; i++) {
        bool searched = false;
        struct nest *n = &w->nest[i];
        if (!n->is_grid) grid_decide(w, moves, n);
        if (n->core < 0 ? plan_chain(w, moves, n, &searched) : plan_core(w, moves, n, &searched))
            continue;
        if (searched) return false;
        if (n->is_grid) {
            grid_leave(n);
            i--;
            continue;
        }
        if (!recur_release(w) && !nest_cut(w, n) && !layouts_pad(w, moves, nest_head(n)))
            task_demote(w, nest_head(n),
                        "no tile of it has room in the machine's memories and moves that take it, "
                        "also where it is the last of its axis");
        if (w->diags->errors) return false;
        if (w->refused) continue; /* what else is refused is told in the same turn */
        if (leaves_more(w) || !nests_make(w, moves)) /* its followers may stand alone now */
            return false;
        plan_begin(w, moves);
        i = -1;
    }
    return !w->refused;
}

static bool check_machine(struct work *w) {
    const struct machine *m = w->m;
    if (m->nmemories <= MAX_MEMORIES && m->nqueues <= MAX_QUEUES && m->nbuses <= MAX_BUSES)
        return true;
    diag_line(w->diags, m->file, 0, 0,
              "machine '%s' has too many memories, queues or buses to schedule for: at most %d, %d "
              "and %d",
              m->name, MAX_MEMORIES, MAX_QUEUES, MAX_BUSES);
    return false;
}

static bool run(struct work *w) {
    if (!check_items(w) || !check_machine(w) || !check_sizes(w) || !homes_hold_arguments(w))
        return false;
    begin(w);
    struct moves moves = *known_moves(w->searches, w);
    bool ok = join_begin(w) && tasks_make(w);
    if (ok) operands_align(w, &moves);
    ok = ok && !w->refused && layouts_decide(w, &moves) && !w->refused && nests_make(w, &moves) &&
         !w->refused && plan_all(w, &moves) && !w->refused && groups_decide(w, &moves);
    for (int i = 0; ok && i < w->nnests; i++) parts_ask(w, &moves, &w->nest[i]);
    for (int i = 0; ok && i < w->nnests; i++) unit_ask(w, i);
    if (ok) mark_prepared(w);
    if (ok) feeds_decide(w);
    for (int i = 0; ok && i < w->norder; i++)
        if (w->task_of[w->order[i]] == -1 && w->fallback < 0) {
            diag_line(w->diags, work_file(w), 0, 0,
                      "no instruction runs statement %d and machine '%s' has no fallback",
                      w->order[i], w->m->name);
            ok = false;
        }
    ok = ok && schedule_emit(w, &moves);
    for (int i = 0; i < w->nfinishing; i++) program_free(w->finishing[i]);
    for (int i = 0; i < w->ntasks; i++)
        if (w->task[i].needle) program_free(w->task[i].needle->bound);
    if (!ok) return false;
    join_finish(w);
    rewrite_items(w);
    cost_sum(w);
    w->s->planned = w->planned;
    statements_number(w);
    if (w->m->launch > 0) w->s->cost += w->m->launch * section_launches(w->s, &w->s->run);
    return true;
}

struct schedule *scheduler_run(const struct cover *cover, const struct machine *m,
                               struct decider *decider, const struct scheduler_options *options,
                               struct diags *diags) {
    struct arena scratch;
    arena_init(&scratch);
    struct schedule *s = schedule_new(m);
    s->program = program_copy(cover->program);
    struct known_searches *own = options && options->searches ? NULL : known_open();
    struct known_searches *searches = own ? own : options->searches;
    struct work w = {.arena = &scratch,
                     .searches = searches,
                     .effort = known_effort(searches),
                     .m = m,
                     .cover = cover,
                     .decider = decider,
                     .options = options,
                     .diags = diags,
                     .s = s,
                     .p = s->program,
                     .time = nest_time,
                     .fallback = -1};
    int before = diags->errors;
    bool ok = run(&w);
    arena_free(&scratch);
    known_close(own);
    if (ok) {
        s->chain = chain_copy(cover->chain);
        if (s->chain) chain_append(s->chain, s->program, "layouts", false);
        return s;
    }
    if (diags->errors == before && !w.refused)
        diag_line(diags, cover->program->name, 0, 0, "'%s' cannot be scheduled on '%s'",
                  cover->program->name, m->name);
    schedule_free(s);
    return NULL;
}
