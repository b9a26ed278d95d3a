/* The best mappings without all of them: groups of each needle axis are scored by padding and
 * packing, and combinations are visited by the sum of their scores. The scores only order the
 * visits; which mappings are kept is decided by their price. */
#include "mapper/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHOICES = 128, MAX_WHOLE = 6, MAX_VISITS = 768, MAX_POPS = 16 * MAX_VISITS };

struct choice {
    struct group group;
    uint64_t mask;
    double score;
};

struct choices {
    struct choice *at;
    int n;
};

struct visit { /* one choice for each needle axis; later axes than `last` have their first one */
    double score;
    int order, last;
    uint8_t at[MAX_NEEDLE_AXES];
};

struct best {
    struct arena scratch;
    struct chooser *chooser;
    struct choices of[MAX_NEEDLE_AXES];
    struct visit *heap;
    int n, cap, made;
};

/* ---- the choices of one needle axis ---- */

/* Logarithms, so that the sum over the axes stands for a product: executed points over points, and
 * a share for each operand that must be copied into another order. */
static double choice_score(const struct chooser *c, int x, const struct group *g) {
    int64_t extent = group_extent(c->site->program, g);
    double executed = axis_executed(&c->needle->axis[x], extent);
    int varying = __builtin_popcountll(c->needle->axis[x].signature & ~c->needle->imm);
    double packed = varying > 0 ? 1 - (double)count_direct(c, x, g) / varying : 0;
    return log(executed / (double)extent) + 0.25 * packed + 0.01 * g->n;
}

static void add_choice(struct best *b, int x, uint64_t mask) {
    struct choices *all = &b->of[x];
    if (all->n == MAX_CHOICES || __builtin_popcountll(mask) > MAX_GROUP) return;
    for (int k = 0; k < all->n; k++)
        if (all->at[k].mask == mask) return;
    struct choice *c = &all->at[all->n++];
    *c = (struct choice){.group = group_of(b->chooser, x, mask), .mask = mask};
    c->score = choice_score(b->chooser, x, &c->group);
}

/* Axes one by one and runs of neighbours in memory, where the class has too many subsets. */
static void add_runs(struct best *b, int x, uint64_t class) {
    struct group line = group_of(b->chooser, x, class);
    for (int length = 1; length <= line.n; length++)
        for (int from = 0; from + length <= line.n; from++) {
            uint64_t run = 0;
            for (int k = from; k < from + length; k++) run |= UINT64_C(1) << line.axis[k];
            add_choice(b, x, run);
        }
    for (int a = 0; a < MAX_AXES; a++)
        if (class >> a & 1) add_choice(b, x, UINT64_C(1) << a);
}

static int by_score(const void *a, const void *b) {
    const struct choice *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return x->mask < y->mask ? -1 : x->mask > y->mask;
}

static void list_choices(struct best *b, int x) {
    uint64_t class = b->chooser->class[x];
    b->of[x] = (struct choices){.at = arena_array(&b->scratch, MAX_CHOICES, sizeof(struct choice))};
    if (__builtin_popcountll(class) <= MAX_WHOLE)
        for (uint64_t mask = class; mask; mask = (mask - 1) & class) add_choice(b, x, mask);
    else
        add_runs(b, x, class);
    qsort(b->of[x].at, (size_t)b->of[x].n, sizeof *b->of[x].at, by_score);
    if (b->of[x].n == MAX_CHOICES) b->of[x].n--;
    struct choice *none = &b->of[x].at[b->of[x].n++];
    *none = (struct choice){.score = b->of[x].n > 1 ? none[-1].score + 1 : 0};
}

/* ---- a heap of combinations ---- */

static bool before(const struct visit *a, const struct visit *b) {
    return a->score != b->score ? a->score < b->score : a->order < b->order;
}

static void push(struct best *b, struct visit v) {
    GROW(&b->scratch, b->heap, b->n, b->cap);
    v.order = b->made++;
    int at = b->n++;
    for (; at > 0 && before(&v, &b->heap[(at - 1) / 2]); at = (at - 1) / 2)
        b->heap[at] = b->heap[(at - 1) / 2];
    b->heap[at] = v;
}

static struct visit pop(struct best *b) {
    struct visit top = b->heap[0], last = b->heap[--b->n];
    int at = 0;
    for (int child = 1; child < b->n; child = 2 * at + 1) {
        if (child + 1 < b->n && before(&b->heap[child + 1], &b->heap[child])) child++;
        if (before(&last, &b->heap[child])) break;
        b->heap[at] = b->heap[child];
        at = child;
    }
    b->heap[at] = last;
    return top;
}

/* Each combination has one predecessor: the one with its last axis that is not at the first choice
 * set back by one. Axes before the last one stay as they are in all that follows, so two of them
 * that take the same axis end it. */
static void push_next(struct best *b, const struct visit *v) {
    uint64_t used = 0;
    for (int x = 0; x < b->chooser->needle->naxes; x++) {
        const struct choice *k = &b->of[x].at[v->at[x]];
        if (x >= v->last && v->at[x] + 1 < b->of[x].n) {
            struct visit next = *v;
            next.score += k[1].score - k->score;
            next.at[x]++;
            next.last = x;
            push(b, next);
        }
        if (used & k->mask) return;
        used |= k->mask;
    }
}

/* False: two needle axes would take the same axis, as they must where the needle has more of them
 * than the statement. */
static bool look(struct best *b, const struct visit *v) {
    struct chooser *c = b->chooser;
    uint64_t used = 0;
    for (int x = 0; x < c->needle->naxes; x++) {
        const struct choice *k = &b->of[x].at[v->at[x]];
        if (used & k->mask) return false;
        used |= k->mask;
        c->group[x] = k->group;
    }
    search_leaf(c, used);
    return true;
}

void choose_best(struct chooser *c) {
    struct best b = {.chooser = c};
    struct visit first = {0};
    arena_init(&b.scratch);
    for (int x = 0; x < c->needle->naxes; x++) {
        list_choices(&b, x);
        first.score += b.of[x].at[0].score;
    }
    push(&b, first);
    for (int visits = 0, pops = 0;
         b.n > 0 && visits < MAX_VISITS && pops < MAX_POPS && !search_spent(c->search); pops++) {
        struct visit v = pop(&b);
        visits += look(&b, &v);
        push_next(&b, &v);
    }
    arena_free(&b.scratch);
}
