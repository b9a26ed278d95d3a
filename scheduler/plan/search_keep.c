/* Questions about copies of which a part may stay: whether windows that slide are fetched whole or
 * only what is new of them, and what stays of pieces that come again. */
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/limits.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/price.h"
#include "scheduler/plan/search_int.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <string.h>

enum { CHOICES = 14 };

static const struct access *read_of(const struct search *s, int i) {
    return &s->w->p->stmt[search_task(s)->stmt].read[search_task(s)->op[i].read];
}

static bool passes(const struct search *s, int i) {
    const struct opnd *o = &search_task(s)->op[i];
    return o->where == IN_LOCAL && o->read >= 0 && !o->writes;
}

/* Those of the holds with which the plan is legal; the first is the plan's own. */
static void ask(struct search *s, struct plan *p, int i, enum question_kind kind,
                const char *subject, const struct hold *hold, int n) {
    struct plan plan[CHOICES];
    struct candidate c[CHOICES];
    int count = 0;
    for (int k = 0; k < n; k++) {
        plan[count] = *p;
        plan[count].hold[i] = hold[k];
        plan[count].parts = PARTS_ANY;
        plan[count].outward = 0;
        if (k && memcmp(&hold[k], &hold[0], sizeof *hold) == 0) continue;
        if (!plan_price(s->w, s->moves, s->nest, &plan[count])) continue;
        struct text text = {0};
        hold_text(&text, search_task(s)->op[i].decl->buffer, &hold[k]);
        double cost = count ? beside(s, plan[count].cycles, plan[0].cycles) : plan[0].cycles;
        c[count] = (struct candidate){arena_strdup(s->w->arena, text.at), cost, NULL};
        text_free(&text);
        count++;
    }
    if (count < 2) return;
    subject = arena_printf(s->w->arena, "%s '%s' of statement %d", subject,
                           search_task(s)->op[i].decl->buffer, search_task(s)->stmt);
    int answer = work_ask(s->w, kind, subject, c, count, -1);
    if (answer >= 0) *p = plan[answer];
}

/* The plan's copy, whole windows there, and rings in each loop that slides the window. */
static void ask_window(struct search *s, struct plan *p, int i) {
    const struct task *t = search_task(s);
    struct ring r;
    struct hold hold[CHOICES] = {p->hold[i], p->hold[i]};
    int n = 2;
    hold[1].ring = hold[1].pinned = 0;
    for (int d = 1; d <= p->nloops && n + 3 <= CHOICES; d++) {
        if (!ring_find(s->w, s->nest, p, t, &t->op[i], read_of(s, i), d, &r)) continue;
        for (int slots = 1; slots <= slots_most(s->w, 3); slots++) {
            int64_t rows = r.window + (slots - 1) * r.step;
            hold[n] = hold[1];
            hold[n].depth = d;
            hold[n].slots = slots;
            hold[n++].ring = slots == 3 || rows > r.all ? r.all : rows;
        }
    }
    if (n > 2) ask(s, p, i, QUESTION_COPY, "window of", hold, n);
}

static void ask_pinned(struct search *s, struct plan *p, int i) {
    const struct nest *nest = s->nest;
    const struct opnd *o = &search_task(s)->op[i];
    const struct hold *h = &p->hold[i];
    struct pin pin;
    struct hold hold[CHOICES] = {*h, *h, *h, *h}, one = *h;
    one.pinned = 0;
    if (h->ring || h->slots < 2 || !pin_find(s->w, nest, p, o, read_of(s, i), h->depth, &pin))
        return;
    int64_t most =
        pin_most(&pin, nest_room(s->w, nest, o->memory),
                 hold_bytes(s->w, p, search_task(s), o, read_of(s, i), &one) / h->slots, h->slots);
    hold[1].pinned = 0;
    hold[2].pinned = most - most / 2 / h->slots * h->slots;
    hold[3].pinned = most;
    ask(s, p, i, QUESTION_EVICT, "what stays of", hold, 4);
}

void keeps_ask(struct search *s, struct plan *p) {
    for (int i = 0; i < search_task(s)->nops; i++)
        if (passes(s, i)) {
            ask_window(s, p, i);
            ask_pinned(s, p, i);
        }
}
