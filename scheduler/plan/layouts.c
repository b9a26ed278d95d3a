/* Layouts: an operand is direct, or its buffer gets a blocked home, or a copy with one
 * (docs/internals.md, "Homes and layouts"). */
#include "ir/number.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/layouts.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "machines/needle.h"
#include "scheduler/plan/recur.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/routes.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

enum { REPAIRS = 3 }; /* of an operand, before a task is demoted */

/* The result of a caller's buffer goes through a temporary of the same shape. */
static bool substitute(struct work *w, int old) {
    struct buffer b = w->p->buffer[old];
    if (w->fallback < 0 || b.size) return false;
    int made =
        rewrite_buffer(w, unique_name(w, b.name, "packed"), b.type, ROLE_TEMP, b.ndims, b.extent);
    if (made < 0) return false;
    for (int s = 0; s < w->p->nstmts; s++) {
        if (w->p->stmt[s].dst.buffer == old) w->p->stmt[s].dst.buffer = made;
        stmt_reread(&w->p->stmt[s], old, made);
    }
    return pack_whole(w, old, made, b.role == ROLE_INOUT);
}

static const char *repair_read(struct work *w, const struct moves *moves, int task, int i,
                               const char *why) {
    struct task *t = &w->task[task];
    struct opnd *o = &t->op[i];
    struct access *acc = task_access(w, t, o, false);
    const struct home *h = work_home(w, acc->buffer);
    enum role role = w->p->buffer[acc->buffer].role;
    struct region r;
    bool pads = false;
    region_padding(w->p, &w->p->stmt[t->stmt], acc, &r);
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims; d++)
        pads |= r.pad_lo[d] > 0 || r.pad_hi[d] > 0;
    bool written = recur_carries(w, acc->buffer) && written_by_tasks(w, acc->buffer);
    if (role == ROLE_TEMP && !h->locked && !written && !pads &&
        padding_neutral(w, t, o, acc->buffer)) { /* a state lies as who writes it wants it */
        home_pack(w, acc->buffer, &o->geom);
        return NULL;
    }
    if (o->writes && (role == ROLE_OUT || role == ROLE_INOUT))
        return substitute(w, acc->buffer) ? NULL : why;
    if (w->fallback < 0)
        return "an operand needs a copy in another layout, which only a fallback makes";
    bool axes = !o->by_axes && !o->writes;
    if ((role != ROLE_TEMP || written_all(w, acc->buffer, t->stmt)) &&
        !(axes && steps_stay_dear(w, moves, t, o)))
        return pack_identity(w, task, i) ? NULL : why;
    if (!axes) return why;
    o->by_axes = true;
    return pack_by_axes(w, task, i, false) ? NULL : why;
}

/* Is the result a part of its buffer, and do other tasks write others? */
static bool shares_result(const struct work *w, const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    bool part = false, others = false;
    for (int d = 0; d < w->p->buffer[st->dst.buffer].ndims; d++) {
        int64_t lo, hi;
        access_range(w->p, st, &st->dst, d, &lo, &hi);
        part |= lo > 0 || hi < w->p->buffer[st->dst.buffer].extent[d] - 1;
    }
    for (int k = 0; part && k < w->ntasks; k++) {
        const struct task *u = &w->task[k];
        others |=
            u != t && w->task_of[u->stmt] == k && w->p->stmt[u->stmt].dst.buffer == st->dst.buffer;
    }
    return others;
}

/* A result's buffer gets the layout that it is written in; one that has a layout is written by way
 * of another. Where that did not help, since parts of it are written in several layouts, this part
 * is made apart and copied there. */
static const char *repair_write(struct work *w, int task, int i, const char *why) {
    struct task *t = &w->task[task];
    struct opnd *o = &t->op[i];
    int b = attached_view(w, o, w->p->stmt[t->stmt].dst.buffer, false).buffer;
    if (w->p->buffer[b].role != ROLE_TEMP) return substitute(w, b) ? NULL : why;
    if (!work_home(w, b)->locked) {
        home_pack(w, b, &o->geom);
        return NULL;
    }
    if (o->repairs == REPAIRS && !o->by_axes && !attached_at(o, STORES) && shares_result(w, t)) {
        o->by_axes = true;
        o->repairs = 0;
        return pack_by_axes(w, task, i, true) ? NULL : why;
    }
    return pack_between(w, b) ? NULL : "its result is wanted in two layouts";
}

/* What sets the sums starts their nest, or they come from home. */
static bool filled_from_home(const struct work *w, const struct task *t, const struct opnd *o) {
    if (!o->accumulates || t->init >= 0 || attached_at(o, FILLS)) return false;
    int set = order_starter(w, t->stmt);
    return set < 0 || !nest_starts(w, w->task_of[set], w->task_of[t->stmt]);
}

/* Does the needle repeat this operand along one of its axes, or along an axis that nothing walks?
 */
static bool repeats(const struct opnd *o) {
    for (int i = 0; i < o->geom.n; i++)
        if (o->geom.at[i].dim < 0) return true;
    return false;
}

static bool stands_alone(const struct task *t, const struct opnd *o) {
    for (int i = 0; i < o->form.n; i++)
        if (t->axis[o->form.digit[i].x] < 0 && o->alone_dim[o->form.digit[i].x] < 0 &&
            o->form.digit[i].extent > 1)
            return true;
    return false;
}

/* No memory leads to where it is read, but an instruction leaves it just there. */
static bool handed_on(const struct work *w, const struct moves *moves, const struct task *t,
                      const struct opnd *o) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    if (o->read < 0 || o->writes || t->reductions || t->init >= 0 || st->combine != COMBINE_SET ||
        join_has(w, t->stmt) || w->p->buffer[st->read[o->read].buffer].role != ROLE_TEMP ||
        route_leads(w, moves, t, o))
        return false;
    for (int s = 0; s < w->p->nstmts; s++) {
        const struct task *k = w->task_of[s] >= 0 ? &w->task[w->task_of[s]] : NULL;
        if (!k || k == t || w->p->stmt[s].dst.buffer != st->read[o->read].buffer) continue;
        for (int i = 0; i < k->nops; i++)
            if (k->op[i].writes && k->op[i].where == IN_LOCAL && k->op[i].memory == o->memory)
                return true;
    }
    return false;
}

/* What is read at several places is neither moved nor copied: a copy would have one of them. */
static bool lies_beside(struct work *w, const struct task *t, struct opnd *o) {
    return o->where == IN_HOME && !o->writes && geom_make(w, t, o) &&
           !work_home(w, task_access(w, t, o, false)->buffer)->packed &&
           home_direct(w, t, o, false);
}

/* Of an axis of the needle that nothing walks, which is no sum, only what the first index makes
 * counts. Where moves bring less than a whole tile, the home needs no room for the rest. */
static bool comes_single(struct work *w, const struct moves *moves, const struct task *t,
                         struct opnd *o) {
    const char *why;
    bool alone = false;
    if (o->read < 0 || o->single || o->where != IN_LOCAL) return false;
    for (int i = 0; i < o->form.n; i++) {
        int x = o->form.digit[i].x;
        alone |= t->axis[x] < 0 && o->form.digit[i].extent > 1 && !needle_reduces(t->needle, x);
    }
    int buffer = task_access(w, t, o, false)->buffer;
    struct opnd probe = *o;
    if (!alone || work_home(w, buffer)->locked || w->p->buffer[buffer].role != ROLE_TEMP)
        return false;
    probe.single = true;
    if (!geom_make(w, t, &probe)) return false;
    struct homes packed = {w->tried, buffer, home_packed(w, buffer, &probe.geom)};
    struct work as = work_with(w, &packed);
    return o->single = route_first(&as, moves, t, &probe, false, &why);
}

/* A copy of what an operand reads with all that lies outside, so that nothing is outside any more.
 * Once for an operand; false: nothing is, or there is no such copy. */
static bool pad_read(struct work *w, int task, int i) {
    const struct task *t = &w->task[task];
    struct opnd *o = &w->task[task].op[i];
    if (o->padded || o->writes || o->read < 0 || w->fallback < 0) return false;
    const struct access *acc = &w->p->stmt[t->stmt].read[o->read];
    bool outside = false;
    for (int d = 0; d < w->p->buffer[acc->buffer].ndims && acc->has_fill; d++) {
        int64_t lo, hi;
        access_range(w->p, &w->p->stmt[t->stmt], acc, d, &lo, &hi);
        outside |= lo < 0 || hi >= w->p->buffer[acc->buffer].extent[d];
    }
    o->padded = acc->has_fill;
    if (w->p->buffer[acc->buffer].role == ROLE_TEMP && !written_all(w, acc->buffer, t->stmt))
        return false;
    return outside && pack_identity(w, task, i);
}

/* An element at a time is read where it lies, whatever its layout, once nothing is outside: what
 * pads is then copied once, and not for each place of the window. */
static bool pad_home(struct work *w, int task, int i) {
    const struct opnd *o = &w->task[task].op[i];
    for (int k = 0; k < o->form.n; k++)
        if (o->form.digit[k].extent > 1) return false;
    return pad_read(w, task, i);
}

bool layouts_pad(struct work *w, const struct moves *moves, int task) {
    for (int i = 0; i < w->task[task].nops; i++) {
        const char *why;
        if (w->task[task].op[i].where != IN_LOCAL || !pad_read(w, task, i)) continue;
        struct opnd *o = &w->task[task].op[i];
        return geom_make(w, &w->task[task], o) &&
               route_first(w, moves, &w->task[task], o, false, &why);
    }
    return false;
}

/* Tasks that read or write the buffer. */
static int users(const struct work *w, int buffer) {
    int n = 0;
    for (int s = 0; s < w->p->nstmts; s++) {
        const struct stmt *st = &w->p->stmt[s];
        n += w->task_of[s] >= 0 && (st->dst.buffer == buffer || stmt_reads(st, buffer));
    }
    return n;
}

static double moved_at(struct work *w, const struct moves *moves, const struct task *t,
                       const struct opnd *o, int buffer, bool write) {
    struct region r;
    struct opnd stop = route_stop(w, o, write ? &o->out : &o->in, 0);
    operand_sample(w, t, o, write, &r);
    return operand_cost(w, moves, buffer, &stop, &r, write);
}

/* A copy that one operand reads needs no padding where moves bring zeros instead, nor does a result
 * of which moves take a part; less is moved then. */
static void leave_padding(struct work *w, const struct moves *moves, const struct task *t,
                          struct opnd *o, bool write) {
    int buffer = task_access(w, t, o, write)->buffer;
    const struct home *h = work_home(w, buffer);
    struct homes tight = {w->tried, buffer, *h};
    struct work as = work_with(w, &tight);
    struct opnd probe = *o;
    const char *why;
    if (!h->packed || h->tight || h->is_tile || o->plain || attached_at(o, STORES) ||
        attached_at(o, FILLS) || (o->writes && o->read >= 0) || users(w, buffer) != 1 ||
        w->p->buffer[buffer].role != ROLE_TEMP)
        return;
    double before = moved_at(w, moves, t, o, buffer, write);
    if (!home_tighten(w, &tight.home, &w->p->buffer[buffer], &o->geom) ||
        !route_first(&as, moves, t, &probe, write, &why) ||
        moved_at(&as, moves, t, &probe, buffer, write) >= before)
        return;
    *(write ? &o->out : &o->in) = write ? probe.out : probe.in;
    w->home[buffer] = tight.home;
}

/* On a device, a statement that copies each element once: to copy what it reads first would be its
 * own work. */
static bool only_copies(const struct work *w, const struct task *t) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    if (!t->needle->in->is_move || machine_queue_is_host(w->m, t->needle->in->queue) ||
        st->combine != COMBINE_SET || st->nops != 1 || st->nreads != 1)
        return false;
    for (int a = 0; a < w->p->naxes; a++)
        if ((st->axes >> a & 1) && !access_varies(w->p, &st->read[0], a)) return false;
    return true;
}

/* A home in whole tiles of a move whose sizes reach far beyond the tensor's would be padding for
 * the most part. */
static bool mostly_padding(struct work *w, const struct task *t, const struct opnd *o) {
    const struct buffer *b = &w->p->buffer[task_access(w, t, o, o->writes)->buffer];
    double padded = 1;
    for (int d = 0; d < b->ndims; d++) padded *= (double)round_up(b->extent[d], o->geom.block[d]);
    return padded > 16 * (double)b->elements;
}

/* NULL: fine, or repaired (*changed); otherwise why not. */
static const char *check_operand(struct work *w, const struct moves *moves, int task, int i,
                                 bool *changed) {
    struct task *t = &w->task[task];
    struct opnd *o = &t->op[i];
    const char *why = NULL;
    if (o->where == IN_IMM) return NULL;
    if (needle_reads_beside(t->needle, o->number) && !lies_beside(w, t, o))
        return "an operand that is read at several places does not lie as the instruction wants it";
    if (!geom_make(w, t, o)) {
        *changed = true;
        if (!o->writes && attached_at(o, FILLS)) {
            attached_drop(w, t, FILLS, "the index of what it makes does not follow the axes");
            return NULL;
        }
        if (route_plain(w, moves, t, o)) return NULL;
        if (o->writes) {
            attached_drop(w, t, STORES, "its result's index does not follow the needle's axes");
            attached_drop(w, t, FILLS,
                          "the index of what it starts does not follow the needle's axes");
        }
        if (o->by_axes || (o->writes && o->read >= 0))
            return "an operand's index does not follow the needle's axes";
        if (w->fallback < 0)
            return "an operand needs a copy indexed by the axes, which only a fallback makes";
        o->by_axes = true;
        return pack_by_axes(w, task, i, o->writes) ? NULL
                                                   : "an operand's copy by axes is too large";
    }
    if (only_copies(w, t) && mostly_padding(w, t, o))
        return "its home would be padding for the most part";
    if (attached_at(o, FILLS) && (why = attached_check(w, t, o, true)) &&
        (o->writes || !attached_other(w, t, o))) {
        *changed = true;
        if (!o->writes && !o->repairs++ && begin_pack(w, o)) return NULL;
        attached_drop(w, t, FILLS, why);
        return NULL;
    }
    if ((why = finish_beside_check(w, t, o))) {
        attached_drop(w, t, STORES_TOO, why);
        *changed = true;
        return NULL;
    }
    for (int side = 0; side < 2; side++) {
        bool write = side == 1;
        if (write ? !o->writes : o->read < 0 && !filled_from_home(w, t, o)) continue;
        struct opnd *now = &w->task[task].op[i];
        if (!write && now->source) {
            struct opnd as = *now->source;
            if (!route_first(w, moves, t, &as, false, &why)) return why;
            if (as.in.n) return "what it changes in place passes several memories";
            continue;
        }
        if (now->where == IN_HOME) {
            if (home_direct(w, t, now, now->writes)) continue;
            why = "its home does not lie as the instruction wants it";
        } else if (route_first(w, moves, t, now, write, &why)) {
            if (!write && now->in.n && route_plain(w, moves, t, now)) return *changed = true, NULL;
            if (write || now->read >= 0) leave_padding(w, moves, t, now, write);
            if (write) now->returns = operand_fits(w, moves, t, now, false, &why);
            continue;
        }
        if (!write && (now->handed = now->where == IN_LOCAL && handed_on(w, moves, t, now)))
            continue;
        *changed = true;
        if (!write && (route_plain(w, moves, t, now) || comes_single(w, moves, t, now)))
            return NULL;
        if (++now->repairs > REPAIRS) {
            if (!write || !attached_at(now, STORES)) return why;
            attached_drop(w, t, STORES, why);
            now->repairs = 0;
            return NULL;
        }
        if (route_in_blocks(w, moves, t, now, write)) return NULL;
        if (!write) route_whole(w, moves, t, now);
        if (route_turned(w, moves, t, now, write) || route_spaced(w, moves, t, now, write))
            now->repairs = 0;
        if (now->where == IN_HOME && !now->by_axes && pad_home(w, task, i)) return NULL;
        if (now->where == IN_HOME && only_copies(w, t)) return why;
        bool at_home = now->where == IN_HOME,
             expand = !at_home && repeats(now) && (now->repairs > 1 || stands_alone(t, now));
        if ((at_home || expand) && !now->by_axes && w->fallback >= 0 &&
            !(now->writes && now->read >= 0)) {
            if (now->writes && attached_at(now, STORES)) { /* of the array that would be replaced */
                attached_drop(w, t, STORES, why);
                now->repairs = 0;
                return NULL;
            }
            now->by_axes = true;
            now->expand |= expand;
            return pack_by_axes(w, task, i, now->writes) ? NULL : why;
        }
        return write || now->read < 0 ? repair_write(w, task, i, why)
                                      : repair_read(w, moves, task, i, why);
    }
    return NULL;
}

/* What instructions made comes last: what lies there as padding may depend on how the others lie.
 */
static const char *check_task(struct work *w, const struct moves *moves, int task, bool *changed) {
    const char *why = NULL;
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < w->task[task].nops && !why && !*changed; i++) {
            const struct task *t = &w->task[task];
            int read = t->op[i].read;
            bool made = read >= 0 && written_by_tasks(w, w->p->stmt[t->stmt].read[read].buffer);
            if (made == last) why = check_operand(w, moves, task, i, changed);
        }
    return why;
}

/* A fixed point. It is reached: a change drops a finishing or a starting move, turns an operand
 * plain or into a copy by axes, pads what it reads, is one of three repairs of an operand, gives a
 * home its layout for good, or demotes a task. Each happens to an operand or a task at most so
 * often, repairs anew only behind a copy by axes; none is undone.
 */
bool layouts_decide(struct work *w, const struct moves *moves) {
    struct due *due = due_begin(w);
    for (int task; (task = due_next(due)) >= 0;) {
        bool changed = false;
        const char *why = check_task(w, moves, task, &changed);
        if (!why && !changed && (why = follow_check(w, moves, &w->task[task], &changed))) {
            attached_drop(w, &w->task[task], STORES, why);
            changed = true;
            why = NULL;
        }
        if (why) task_demote(w, task, why);
        if (why || changed) due_again(due, task);
    }
    routes_decide(w, moves);
    return !w->diags->errors;
}

bool homes_beyond(struct work *w, const char *name) {
    const struct memory *home = &w->m->memory[w->m->home];
    diag_line(w->diags, work_file(w), 0, 0,
              "buffers do not fit memory '%s' of %lld bytes: '%s' would be the first beyond it",
              home->id, (long long)home->size, name);
    return false;
}

bool homes_hold_arguments(struct work *w) {
    const struct memory *home = &w->m->memory[w->m->home];
    int64_t all = 0, bytes;
    for (int b = 0; b < w->p->nbuffers && home->size >= 0; b++) {
        const struct buffer *buf = &w->p->buffer[b];
        if (buf->role == ROLE_TEMP || buf->role == ROLE_STATE) continue;
        if (__builtin_mul_overflow(buf->elements, (int64_t)type_size(buf->type), &bytes) ||
            __builtin_add_overflow(all, bytes, &all) || all > home->size)
            return homes_beyond(w, buf->name);
    }
    return true;
}
