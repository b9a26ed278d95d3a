/* Which move fills and drains each copy where several do it: a question for each. */
#include "machines/needle.h"
#include "scheduler/plan/attach.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/moves.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

static bool transfers(const struct search *s, const struct plan *p, const struct opnd *o,
                      bool fill) {
    const struct nest *n = s->nest;
    if (o->where != IN_LOCAL || o->in.n || o->out.n) return false;
    if (!fill) return o->writes && !n->nchain && !attached_at(o, STORES);
    if (o->writes && plan_blocks(s->w, p, search_task(s), p->depth_out) > 1) return true;
    return nest_begins_at_home(s->w, n, o);
}

/* Moves that ask for what lies ahead are the group's choice, which knows how far (group_ahead.c).
 */
static bool moved_by(struct search *s, const struct plan *p, int i, bool fill, int move) {
    const struct task *t = search_task(s);
    if (s->moves->at[move].ahead >= 0) return false;
    const struct opnd *o = &t->op[i];
    const struct access *acc = fill ? opnd_access(s->w, t, o) : &s->w->p->stmt[t->stmt].dst;
    return copy_price(s->w, s->moves, p, t, o, acc, fill, p->hold[i].depth, move + 1).in ==
           s->moves->at[move].needle->in;
}

/* The moves that do it, each counted from 1; `by` has room for all. */
static int list_movers(struct search *s, const struct plan *p, int i, bool fill, int *by) {
    int n = 0;
    for (int k = 0; k < s->moves->n; k++)
        if (moved_by(s, p, i, fill, k)) by[n++] = k + 1;
    return n;
}

static void path_ask_one(struct search *s, struct plan *p, int i, bool fill,
                         struct arena *scratch) {
    const struct task *t = search_task(s);
    int *by = arena_array(scratch, (size_t)s->moves->n + 1, sizeof *by), n = 0,
        movers = list_movers(s, p, i, fill, by);
    if (movers < 2) return;
    struct plan *found = arena_array(scratch, (size_t)movers, sizeof *found);
    struct candidate *c = arena_array(scratch, (size_t)movers, sizeof *c);
    for (int k = 0; k < movers; k++) {
        found[n] = *p;
        *(fill ? &found[n].hold[i].fill_by : &found[n].hold[i].drain_by) = by[k];
        if (!plan_price(s->w, s->moves, s->nest, &found[n])) continue;
        c[n] = (struct candidate){s->moves->at[by[k] - 1].needle->in->id, found[n].cycles, NULL};
        n++;
    }
    if (n < 2) return;
    const char *subject = arena_printf(scratch, "'%s' of statement %d, %s", t->op[i].decl->buffer,
                                       t->stmt, fill ? "filled" : "drained");
    int answer = work_ask(s->w, QUESTION_PATH, subject, c, n, -1);
    if (answer >= 0) *p = found[answer];
}

void path_ask(struct search *s, struct plan *p) {
    struct arena scratch;
    arena_init(&scratch);
    for (int i = 0; i < search_task(s)->nops; i++)
        for (int fill = 1; fill >= 0; fill--)
            if (transfers(s, p, &search_task(s)->op[i], fill))
                path_ask_one(s, p, i, fill, &scratch);
    arena_free(&scratch);
}
