/* Residencies by what their copies take of queues and buses, those that take least first: where
 * that is as much as the best plan found, all that follow cost at least as much. */
#include "scheduler/plan/price_int.h"
#include "scheduler/plan/search_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct load {  /* of the copies of one operand, on n queues and buses */
    bool none; /* no move brings them */
    int n;
    double *of[4], cycles[4];
};
struct loads {
    struct pricing sum;
    struct load at[MAX_OPERANDS][OPTIONS];
};

bool residency_next(const struct search *s, struct residencies *r) {
    int i = 0, n = search_task(s)->nops;
    while (i < n && ++r->at[i] == r->count[i]) r->at[i++] = 0;
    return i < n;
}

void residency_set(const struct search *s, struct residencies *r, int number) {
    for (int i = 0; i < search_task(s)->nops; i++) {
        r->at[i] = number % r->count[i];
        number /= r->count[i];
    }
}

/* What stands in *sum goes into the load. */
static void note_loads(double *sum, int n, struct load *l) {
    for (int k = 0; k < n; k++) {
        if (sum[k] <= 0) continue;
        l->of[l->n] = &sum[k];
        l->cycles[l->n++] = sum[k];
        sum[k] = 0;
    }
}

static void loads_make(const struct search *s, const struct residencies *r, struct loads *all) {
    const struct machine *m = s->w->m;
    for (int i = 0; i < search_task(s)->nops; i++)
        for (int k = 0; k < r->count[i]; k++) {
            struct load *l = &all->at[i][k];
            l->n = 0;
            l->none = !least_charge(&all->sum, search_task(s), i, &r->option[i][k]);
            note_loads(all->sum.queue, m->nqueues, l);
            note_loads(all->sum.bus, m->nbuses, l);
        }
}

/* Of the plan with these holds, whose instructions alone take so long. */
static double least_with(const struct search *s, const struct residencies *r, struct loads *all,
                         double alone) {
    const struct machine *m = s->w->m;
    const struct task *t = search_task(s);
    memset(all->sum.queue, 0, sizeof *all->sum.queue * (size_t)m->nqueues);
    memset(all->sum.bus, 0, sizeof *all->sum.bus * (size_t)m->nbuses);
    all->sum.queue[t->needle->in->queue] = alone;
    for (int i = 0; i < t->nops; i++) {
        const struct load *l = &all->at[i][r->at[i]];
        if (l->none) return INFINITY;
        for (int k = 0; k < l->n; k++) *l->of[k] += l->cycles[k];
    }
    return least_compared(&all->sum, t);
}

static int by_least(const void *a, const void *b) {
    const struct residency *x = a, *y = b;
    if (x->least != y->least) return x->least < y->least ? -1 : 1;
    return x->number - y->number;
}

int residencies_order(struct search *s, struct plan *p, struct residencies *r,
                      struct residency *out) {
    struct loads all;
    int n = 0;
    pricing_begin(&all.sum, s->w, s->moves, s->nest, p);
    double alone = issues_alone(&all.sum, search_task(s));
    loads_make(s, r, &all);
    do {
        out[n] = (struct residency){least_with(s, r, &all, alone), n};
        n++;
    } while (residency_next(s, r) && n < COMBINATIONS);
    qsort(out, (size_t)n, sizeof *out, by_least);
    return n;
}
