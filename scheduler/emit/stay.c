/* What one nest of a recurrence's body leaves in a local memory and a later nest, or the next step,
 * brings there again from home: it stays where it is (ISA Mapper §3.6: the machine is at a step's
 * end as it was at its beginning). Nests are planned alone, so each stores what others read and
 * loads what it reads. Once the body stands, a copy that is loaded becomes the place from which it
 * was stored; a state is loaded before the first step (prime) and stored after the last (finish).
 * Signals stay where the copies stood, so queues keep their order. */
#include "scheduler/emit/stay_int.h"
#include "ir/number.h"
#include <limits.h>
#include <string.h>

/* In memories that the nests use too, but behind all that they use. False: there is no room, or it
 * cannot move. */
static bool secure(struct stay *c, int place) {
    struct place *x = &c->w->s->place[place];
    int64_t top = 0, align = stay_alignment(c, place), room = graph_capacity(c->w->m, x->memory);
    for (int p = 0; p < c->w->s->nplaces; p++) {
        const struct place *y = stay_place(c, p);
        int64_t end = y->address + y->bytes * y->slots;
        if (p != place && y->memory == x->memory && y->keep == KEEP_LOCAL && end > top) top = end;
    }
    if (x->address >= top) return true;
    for (int i = 0; i < c->nuses; i++)
        if (c->use[i].place == place && c->use[i].fixed) return false;
    top = (top + align - 1) / align * align;
    if (top + x->bytes * x->slots > room) return false;
    x->address = top;
    return true;
}

/* ---- a copy becomes the place that was stored ---- */

static void become(struct stay *c, int place, int into, int64_t by) {
    struct arena *a = &c->w->s->arena;
    for (int i = 0; i < c->nuses; i++) {
        struct use *u = &c->use[i];
        if (u->place != place || !u->issue) continue;
        struct arg *x = &u->issue->arg[u->operand];
        x->place = u->place = into;
        x->offset = sx_make(a, SX_ADD, x->offset, sx_const(a, by));
        u->lo += by;
    }
    for (int i = 0; i < c->ncopies; i++) {
        if (c->copy[i].local != place) continue;
        c->copy[i].local = into;
        c->copy[i].from += by;
    }
}

static bool same_memory(const struct stay *c, const struct copy *l, const struct copy *s,
                        int64_t by) {
    const struct place *d = stay_place(c, l->local), *p = stay_place(c, s->local);
    return d->memory == p->memory && d->slots == 1 && p->slots == 1 && by >= 0 &&
           by + d->bytes <= p->bytes && by % stay_alignment(c, l->local) == 0;
}

/* The place still holds what was stored at s when it is loaded, and nobody wants what is then done
 * to it. */
static bool stays_until(const struct stay *c, const struct copy *l, const struct copy *s,
                        int64_t by) {
    const struct place *d = stay_place(c, l->local);
    struct span of = stay_span(c, l->local, l->issue);
    int queue;
    if (l->local == s->local || !same_memory(c, l, s, by) || of.first <= l->pos ||
        !stay_one_queue(c, l->local, s->local, &queue) ||
        (of.write < INT_MAX && c->carries[s->local]))
        return false;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (!stay_overlaps(u, s->local, by, d->bytes) || u->issue == s->issue) continue;
        if ((u->writes && u->pos > s->pos) || u->pos >= of.write) return false;
    }
    return true;
}

/* The same of the next step, whose load stands before. */
static bool stays_over(const struct stay *c, const struct copy *l, const struct copy *s,
                       int64_t by) {
    const struct place *d = stay_place(c, l->local);
    struct span of = stay_span(c, l->local, l->issue);
    bool same = l->local == s->local;
    int queue;
    if (!same_memory(c, l, s, by) || (same && by) || of.first <= l->pos || c->carries[s->local] ||
        !stay_one_queue(c, l->local, s->local, &queue))
        return false;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (!stay_overlaps(u, s->local, by, d->bytes) || u->issue == l->issue) continue;
        if ((!same && u->pos <= of.last) || (u->writes && u->pos > s->pos)) return false;
    }
    return true;
}

/* ---- loads and stores that are not needed ---- */

static void forget(struct stay *c, struct copy *x) {
    int kept = 0;
    x->gone = true;
    for (int i = 0; i < c->nuses; i++)
        if (c->use[i].issue != x->issue) c->use[kept++] = c->use[i];
    c->nuses = kept;
}

static void prime(struct stay *c, const struct copy *l, int place, int64_t from) {
    struct issue_node *n = stay_again(c, l->issue);
    n->arg[l->local_operand] =
        (struct arg){.place = place, .offset = sx_const(&c->w->s->arena, from)};
    nodes_add(c->w, &c->before, (struct node){.kind = NODE_ISSUE, .issue = n});
}

/* The last store before the load of which it takes a part, and nothing else wrote there since;
 * without one the only store behind it, of the step before. */
static struct copy *store_for(struct stay *c, const struct copy *l, bool *over) {
    struct copy *before = NULL, *behind = NULL;
    int stores = 0;
    for (int i = 0; i < c->nuses; i++) {
        const struct use *u = &c->use[i];
        if (u->place != l->home || !u->writes) continue;
        struct copy *s = stay_copy_at(c, u);
        if (!s || s->loads) return NULL;
        stores++;
        bool all = s->at <= l->at && l->at + l->bytes <= s->at + s->bytes;
        if (!all && s->at < l->at + l->bytes && l->at < s->at + s->bytes) return NULL;
        if (!all) continue;
        if (s->pos < l->pos)
            before = s;
        else
            behind = s;
    }
    *over = !before;
    return before ? before : stores == 1 ? behind : NULL;
}

/* By a move between the two memories, where the store stood. */
static bool hand_on(struct stay *c, struct copy *l, struct copy *s, struct nodes *instead) {
    const struct place *d = stay_place(c, l->local), *p = stay_place(c, s->local);
    struct span of = stay_span(c, l->local, l->issue);
    int reads, makes;
    if (d->memory == p->memory || d->slots != 1 || l->at != s->at || l->bytes != s->bytes ||
        l->bytes != d->bytes || of.write < INT_MAX || of.first <= l->pos || of.last >= s->pos ||
        !stay_one_queue(c, l->local, l->local, &reads) ||
        !stay_one_queue(c, s->local, s->local, &makes))
        return false;
    struct issue_node *n = stay_issue(
        c, p->memory, d->memory, c->w->p->buffer[stay_place(c, s->home)->buffer].type, s->bytes);
    const struct move *mv = n ? stay_move(c, n->instr) : NULL;
    if (!mv || c->w->m->instr[n->instr].queue != reads || reads != makes || !secure(c, l->local))
        return false;
    struct arena *a = &c->w->s->arena;
    n->arg[mv->from_operand] = (struct arg){.place = s->local, .offset = sx_const(a, s->from)};
    n->arg[mv->to_operand] = (struct arg){.place = l->local, .offset = sx_const(a, l->from)};
    nodes_add(c->w, &instead[s->pos], (struct node){.kind = NODE_ISSUE, .issue = n});
    stay_use(c, (struct use){.pos = s->pos,
                             .queue = reads,
                             .issue = n,
                             .operand = mv->to_operand,
                             .place = l->local,
                             .n = d->bytes,
                             .writes = true});
    stay_use(c, (struct use){.pos = s->pos,
                             .queue = reads,
                             .issue = n,
                             .operand = mv->from_operand,
                             .place = s->local,
                             .n = p->bytes,
                             .reads = true});
    return true;
}

static void consider(struct stay *c, struct copy *l, struct nodes *instead) {
    bool over;
    struct copy *s = store_for(c, l, &over);
    if (!s || !stay_may(c, l->local) || !stay_may(c, s->local) || !stay_may_go(c, l->issue)) return;
    if (over && c->mixed) return;
    if (over && hand_on(c, l, s, instead)) {
        prime(c, l, l->local, l->from);
        forget(c, l);
        return;
    }
    if (over && stay_place(c, l->local)->slots == 1 && secure(c, l->local)) stay_turn(c, l, s);
    int64_t by = s->from + l->at - s->at - l->from;
    int place = s->local;
    if (!(over ? stays_over : stays_until)(c, l, s, by) || !secure(c, place)) return;
    if (over) prime(c, l, place, l->from + by);
    if (over) c->carries[place] = true;
    int local = l->local;
    forget(c, l);
    if (local != place) become(c, local, place, by);
}

static bool reads_home(const struct stay *c, const struct node *at, int n, int place,
                       const struct node *but) {
    const struct work *w = c->w;
    for (int i = 0; i < n; i++) {
        if (&at[i] == but) continue;
        if (at[i].kind == NODE_LOOP &&
            reads_home(c, at[i].loop->body, at[i].loop->nbody, place, but))
            return true;
        if (at[i].kind == NODE_FALLBACK) {
            const struct stmt *st = &w->p->stmt[at[i].fallback->stmt];
            for (int r = 0; r < st->nreads; r++)
                if (schedule_home(w->s, st->read[r].buffer) == place) return true;
            if (st->combine != COMBINE_SET && schedule_home(w->s, st->dst.buffer) == place)
                return true;
        }
        if (at[i].kind != NODE_ISSUE) continue;
        const struct instr *in = &w->m->instr[at[i].issue->instr];
        for (int o = 0; o < in->noperands; o++)
            if (at[i].issue->arg[o].place == place && in->operand[o].role != ROLE_OUT) return true;
    }
    return false;
}

static int writes_home(const struct stay *c, int place, bool *read) {
    int n = 0;
    *read = false;
    for (int i = 0; i < c->nuses; i++) {
        *read |= c->use[i].place == place && c->use[i].reads;
        n += c->use[i].place == place && c->use[i].writes;
    }
    return n;
}

/* After the last step the place holds what the last store would have left at home, and without a
 * step what the load before the first one brought. */
static bool may_finish(const struct stay *c, const struct copy *s) {
    bool primed = false;
    for (int i = 0; i < c->before.n; i++) {
        const struct issue_node *n = c->before.at[i].issue;
        const struct move *mv = stay_move(c, n->instr);
        primed |= n->arg[mv->to_operand].place == s->local &&
                  n->arg[mv->from_operand].place == s->home && stay_bytes(c, mv, n) == s->bytes;
    }
    return primed && c->carries[s->local];
}

static void drop_store(struct stay *c, struct copy *s, const struct nodes *run) {
    bool read, all;
    int n = writes_home(c, s->home, &read);
    if (read || !stay_may_go(c, s->issue)) return;
    all = reads_home(c, run->at, run->n, s->home, &c->list->at[c->node]);
    if (all && (n != 1 || !may_finish(c, s))) return;
    if (all)
        nodes_add(c->w, &c->after,
                  (struct node){.kind = NODE_ISSUE, .issue = stay_again(c, s->issue)});
    forget(c, s);
}

/* ---- the body anew ---- */

static const struct copy *gone_at(const struct stay *c, int pos) {
    for (int i = 0; i < c->ncopies; i++)
        if (c->copy[i].pos == pos && c->copy[i].gone) return &c->copy[i];
    return NULL;
}

/* What is handed on stands behind what the store waited for, before what it tells. */
static void rebuild(struct stay *c, const struct nodes *instead) {
    struct nodes out = {0};
    for (int i = 0; i < c->body.n; i++) {
        const struct copy *x = gone_at(c, i);
        nodes_append(c->w, &out, &instead[i]);
        if (x)
            stay_signals(c, &out, x->issue);
        else
            nodes_add(c->w, &out, c->body.at[i]);
    }
    c->list->at[c->node].loop->body = out.at;
    c->list->at[c->node].loop->nbody = out.n;
}

static bool surround(struct stay *c) {
    struct work *w = c->w;
    struct nodes out = {0};
    const struct loop_node *l = c->list->at[c->node].loop;
    uint64_t all = nodes_queues(w, l->body, l->nbody);
    for (int i = 0; i < c->node; i++) nodes_add(w, &out, c->list->at[i]);
    nodes_append(w, &out, &c->before);
    nodes_add(w, &out, c->list->at[c->node]);
    for (int i = 0; i < c->after.n; i++) {
        int queue = w->m->instr[c->after.at[i].issue->instr].queue;
        if (!add_barrier(w, &out, all, UINT64_C(1) << queue, queue)) return false;
        nodes_add(w, &out, c->after.at[i]);
    }
    int end = out.n;
    for (int i = c->node + 1; i < c->list->n; i++) nodes_add(w, &out, c->list->at[i]);
    *c->list = out;
    c->node = end - 1;
    return true;
}

/* A question, where some local place might keep anything. What the body's copies take at the rate
 * of home is what staying may save at most: which of them can go is not known before. */
static bool agrees(const struct stay *c) {
    const struct work *w = c->w;
    double rate = w->m->memory[w->m->home].rate, bytes = 0;
    bool any = false;
    for (int i = 0; i < c->nuses && !any; i++) any = stay_may(c, c->use[i].place);
    for (int i = 0; i < c->ncopies; i++) bytes += (double)c->copy[i].bytes;
    int axis = c->list->at[c->node].loop->axis;
    struct candidate each[2] = {{"go home", rate > 0 ? bytes / rate : bytes, NULL},
                                {"stay", 0, NULL}};
    const char *subject = arena_printf(w->arena, "what steps of '%s' make", w->p->axis[axis].name);
    return any && work_ask(w, QUESTION_RESIDENCY, subject, each, 2, 1) == 1;
}

static bool recurrence_stays(struct work *w, const struct moves *moves, const struct nodes *run,
                             struct nodes *list, int *node) {
    struct loop_node *l = list->at[*node].loop;
    struct stay c = {.w = w, .moves = moves, .list = list, .node = *node};
    c.body = (struct nodes){l->body, l->nbody, l->nbody};
    if (!stay_look(&c) || !agrees(&c)) return true;
    while (stay_image(&c) || stay_pieces(&c))
        if (!stay_look(&c)) return true;
    c.carries = arena_array(w->arena, (size_t)w->s->nplaces + 1, sizeof *c.carries);
    struct nodes *instead = arena_array(w->arena, (size_t)c.body.n + 1, sizeof *instead);
    for (int i = 0; i < c.ncopies; i++)
        if (c.copy[i].loads) consider(&c, &c.copy[i], instead);
    for (int i = 0; i < c.ncopies; i++)
        if (!c.copy[i].loads) drop_store(&c, &c.copy[i], run);
    rebuild(&c, instead);
    bool ok = surround(&c);
    *node = c.node;
    return ok;
}

static bool is_recurrence(const struct work *w, const struct node *n) {
    for (int k = 0; k < w->nscopes && n->kind == NODE_LOOP; k++)
        if (n->loop->axis == w->scope[k].axis) return true;
    return false;
}

static int at_loop(const struct nodes *list, const struct loop_node *l) {
    int i = 0;
    while (list->at[i].kind != NODE_LOOP || list->at[i].loop != l) i++;
    return i;
}

/* What begins behind node i begins so many nodes later. */
static void marks_move(struct marks *parts, int i, int by) {
    for (int k = 0; parts && k < parts->n; k++)
        if (parts->at[k] > i) parts->at[k] += by;
}

static bool list_stays(struct work *w, const struct moves *moves, const struct nodes *run,
                       struct nodes *list, struct marks *parts) {
    for (int i = 0; i < list->n; i++) {
        if (!is_recurrence(w, &list->at[i])) continue;
        struct loop_node *l = list->at[i].loop;
        struct nodes body = {l->body, l->nbody, l->nbody};
        int first = i, n = list->n;
        if (!list_stays(w, moves, run, &body, NULL)) return false;
        l->body = body.at;
        l->nbody = body.n;
        if (!recurrence_stays(w, moves, run, list, &i)) return false;
        struct stay c = {.w = w, .moves = moves, .list = list, .node = at_loop(list, l)};
        int behind = i - c.node;
        if (!steps_overlap(&c)) return false;
        i = c.node + behind;
        marks_move(parts, first, list->n - n);
    }
    return true;
}

bool values_stay(struct work *w, const struct moves *moves, struct nodes *run,
                 struct marks *parts) {
    return w->nscopes == 0 || list_stays(w, moves, run, run, parts) ||
           emit_fail(w, "queues of the machine have no sync between them");
}
