/* What a decision costs with the best of all that follows: dynamic programming over the statements
 * in the order in which they are decided (MAPPING, "Choosing among covers"). A state is what the
 * decided statements leave to those that are still to come: where their results lie, in which
 * order, and what continues a fill. On chains and trees few states are open at a time, and the plan
 * is exact. Where more than MAX_STATES are, the cheapest go on and give a first plan; branch and
 * bound then follows all that it does not exclude, up to MAX_EXPANDED. */
#include "mapper/mapper_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A full window is planned anew once DECIDED of its statements are: what follows the last ones is
 * not in it. */
enum {
    WINDOW = 12,
    DECIDED = 6,
    MAX_STATES = 48,
    MAX_EXPANDED = 1024,
    MAX_TRIED = 24,
    BUCKETS = 256,
    INSIDE = -3
};

/* A device's products on the host: dearer than whatever keeps them there. */
static const double LEFT_TO_HOST = 1e13;
static const double UNKNOWN = -1; /* what follows was not looked at */

static int compare_ints(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

struct step_state {
    uint64_t key;
    double cost, togo;
    int chosen[WINDOW]; /* of the statements before: index into cover.mapping, FALLBACK, INSIDE */
    int next;           /* state of the same bucket; -1: the last */
    int since;          /* ways of the step before that are older led to a state dropped for it */
};

struct transition {
    int from, to; /* to: -1: not followed; see target() */
    double cost;
};

struct step { /* before statement order[k] is decided */
    struct step_state *state;
    int nstates, cap;
    int bucket[BUCKETS];    /* by key: its first state; -1: empty */
    int dearest;            /* state; -1: not known */
    struct transition *way; /* from here to the states of the next step */
    int nways, wcap;
    double floor; /* the statements from here on cost no less, whatever their neighbours do */
};

struct classed { /* of a mapping, which its groups tell from others */
    const struct group *group;
    int init;
    uint64_t class;
};

struct outcome { /* of a state: what all that follows costs */
    uint64_t key;
    double togo;
};

struct plan {
    int order[WINDOW], n, at;
    uint64_t later[WINDOW];              /* bit k: order[k] and this one touch one buffer's value */
    struct outcome *outcome[WINDOW + 1]; /* of the states before step k */
    int noutcomes[WINDOW + 1];
    bool kept; /* it ends with others */
    struct arena arena;
};

struct classes { /* of the last mappings of each step, by address */
    struct classed at[WINDOW][256];
};

struct making {
    struct plan *plan;
    struct step step[WINDOW + 1];
    int limit;   /* of states open at a time */
    bool cut;    /* there were more */
    double best; /* known cost of all: what must be dearer is not followed; INFINITY: not yet */
    struct memo memo[WINDOW]; /* of the options of order[k] */
    struct classes classes;
    struct arena arena;
};

/* ---- order ---- */

static bool touches(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->combine != COMBINE_SET && s->dst.buffer == buffer;
}

static int first_reader(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    int b = p->stmt[stmt].dst.buffer;
    struct users u = flow_users(c, b, stmt);
    for (int k = 0; k < u.n; k++)
        if (touches(&p->stmt[u.stmt[k]], b)) return u.stmt[k];
    return -1;
}

/* A copy or fill, and what an accumulation continues, is decided after who goes on with it: that
 * one says where it is wanted. */
static int decided_after(struct covering *c, int stmt) {
    const struct program *p = c->cover->program;
    const struct stmt *s = &p->stmt[stmt];
    int r = s->combine == COMBINE_SET ? first_reader(c, stmt) : -1;
    if (r < 0) return -1;
    bool continued = p->stmt[r].combine != COMBINE_SET && p->stmt[r].dst.buffer == s->dst.buffer;
    return s->nops == 1 || continued ? r : -1;
}

/* Statements before this one that are decided after it, from the last on: they write what it
 * touches, and nobody reads that in between. */
static int writers_after(struct covering *c, int stmt, int *out) {
    const struct program *p = c->cover->program;
    const struct stmt *s = &p->stmt[stmt];
    int n = 0;
    for (int r = -1; r < s->nreads; r++) {
        int b = r < 0 ? s->dst.buffer : s->read[r].buffer;
        struct users u = flow_users(c, b, stmt - 1);
        for (int k = 1; k <= u.before && n < WINDOW; k++) {
            int f = u.stmt[-k];
            if (p->stmt[f].dst.buffer == b && decided_after(c, f) == stmt) out[n++] = f;
            if (touches(&p->stmt[f], b)) break;
        }
    }
    return n;
}

static void order_stmt(struct covering *c, struct plan *p, int stmt) {
    int before[WINDOW], n;
    if (c->chosen[stmt] != UNDECIDED || p->n == WINDOW) return;
    for (int k = 0; k < p->n; k++)
        if (p->order[k] == stmt) return;
    p->order[p->n++] = stmt;
    n = writers_after(c, stmt, before);
    qsort(before, (size_t)n, sizeof *before, compare_ints);
    for (int i = 0; i < n; i++) order_stmt(c, p, before[i]);
}

static void order_all(struct covering *c, struct plan *p) {
    const struct program *whole = c->cover->program;
    while (c->first < whole->nstmts && c->chosen[c->first] != UNDECIDED) c->first++;
    for (int s = c->first; s < whole->nstmts && p->n < WINDOW; s++) {
        int after = decided_after(c, s);
        if (after < 0 || c->chosen[after] != UNDECIDED) order_stmt(c, p, s);
    }
    for (int s = c->first; s < whole->nstmts && p->n < WINDOW; s++) order_stmt(c, p, s);
}

static bool connected(const struct program *p, int a, int b) {
    const struct stmt *x = &p->stmt[a], *y = &p->stmt[b];
    return touches(x, y->dst.buffer) || touches(y, x->dst.buffer) || x->dst.buffer == y->dst.buffer;
}

/* ---- states ---- */

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t hash_bytes(uint64_t h, const void *at, size_t n) {
    const unsigned char *b = at;
    for (size_t i = 0; i < n; i++) h = mix(h, b[i]);
    return h;
}

/* All that later prices know of a choice: the instruction, where its result lies, and, where a fill
 * or copy is still to come, its other operands too. */
static uint64_t class_made(const struct covering *c, const struct plan *p, int k,
                           const struct mapping *m) {
    const struct needle *n = needle_of(c->needles, m->instr);
    const struct program *whole = c->cover->program;
    uint64_t h = mix(mix(17, (uint64_t)m->instr), (uint64_t)(m->init + 1));
    bool reads = false;
    for (int q = k + 1; q < p->n; q++)
        reads |= touches(&whole->stmt[p->order[k]], whole->stmt[p->order[q]].dst.buffer);
    struct placing at = placing_of(c, whole, m, n->dst);
    h = hash_bytes(h, &at, sizeof at);
    for (int x = 0; reads && x < m->ngroups; x++)
        h = hash_bytes(h, &m->group[x], sizeof m->group[x]);
    for (int o = 0; reads && o < m->noperands; o++) h = mix(h, (uint64_t)(m->operand[o].read + 1));
    return h;
}

static uint64_t class_of(const struct covering *c, const struct plan *p, struct classes *all, int k,
                         int chosen) {
    if (chosen < 0) return (uint64_t)(chosen + 10);
    const struct mapping *m = &c->cover->mapping[chosen];
    struct classed *known = &all->at[k][(uintptr_t)m->group / sizeof *m->group % 256];
    if (known->group != m->group || known->init != m->init)
        *known = (struct classed){m->group, m->init, class_made(c, p, k, m)};
    return known->class;
}

/* Of what is decided in the window before step k. */
static uint64_t key_of(const struct covering *c, const struct plan *p, struct classes *all, int k,
                       const int *chosen) {
    uint64_t h = 1;
    for (int j = 0; j < k; j++)
        if (p->later[j] >> k) h = mix(h, mix((uint64_t)j, class_of(c, p, all, j, chosen[j])));
    return h;
}

static int state_at(const struct step *s, uint64_t key) {
    int i = s->bucket[key % BUCKETS];
    while (i >= 0 && s->state[i].key != key) i = s->state[i].next;
    return i;
}

static void bucket_remove(struct step *s, int state) {
    int *at = &s->bucket[s->state[state].key % BUCKETS];
    while (*at != state) at = &s->state[*at].next;
    *at = s->state[state].next;
}

/* A state whose key is new, of no cost yet. */
static void set_state(struct step *s, int at, uint64_t key) {
    int *first = &s->bucket[key % BUCKETS];
    s->state[at] = (struct step_state){.key = key, .cost = INFINITY, .next = *first};
    *first = at;
}

static int dearest(struct step *s) {
    if (s->dearest >= 0) return s->dearest;
    s->dearest = 0;
    for (int i = 1; i < s->nstates; i++)
        if (s->state[i].cost > s->state[s->dearest].cost) s->dearest = i;
    return s->dearest;
}

static int add_state(struct making *m, int k, uint64_t key, double cost, const int *chosen) {
    struct step *s = &m->step[k];
    if (cost + s->floor > m->best) return -1;
    int at = state_at(s, key);
    if (at < 0 && s->nstates == m->limit) {
        int worst = dearest(s);
        m->cut = true;
        if (s->state[worst].cost <= cost) return -1;
        bucket_remove(s, worst);
        set_state(s, at = worst, key);
        s->state[at].since = k > 0 ? m->step[k - 1].nways : 0;
    } else if (at < 0) {
        GROW(&m->arena, s->state, s->nstates, s->cap);
        set_state(s, at = s->nstates++, key);
    }
    if (cost < s->state[at].cost) {
        if (at == s->dearest) s->dearest = -1;
        s->state[at].cost = cost;
        memcpy(s->state[at].chosen, chosen, sizeof s->state[at].chosen);
    }
    return at;
}

/* Where a way of step k leads; NULL: that was not followed, or dropped. */
static const struct step_state *target(const struct making *m, int k, int way) {
    int to = m->step[k].way[way].to;
    const struct step_state *x = to < 0 ? NULL : &m->step[k + 1].state[to];
    return x && way >= x->since ? x : NULL;
}

static void add_way(struct making *m, int k, int from, int to, double cost) {
    struct step *s = &m->step[k];
    GROW(&m->arena, s->way, s->nways, s->wcap);
    s->way[s->nways++] = (struct transition){from, to, cost};
}

/* ---- trying ---- */

/* The covering as the state has it; -1 in `upto`: as it was. */
static void enter(struct covering *c, const struct plan *p, const int *chosen, int upto) {
    for (int k = 0; k < p->n; k++)
        c->chosen[p->order[k]] = k >= upto ? UNDECIDED : chosen[k] == INSIDE ? FALLBACK : chosen[k];
}

/* Does a decided accumulation begin with the fill? */
static bool absorbed(struct covering *c, int stmt) {
    struct users u = flow_users(c, c->cover->program->stmt[stmt].dst.buffer, stmt);
    for (int k = 0; k < u.n; k++) {
        int s = u.stmt[k];
        if (c->chosen[s] >= 0 && c->cover->mapping[c->chosen[s]].init == stmt) return true;
    }
    return false;
}

static int trial_mapping(struct covering *c, const struct option *o) {
    const struct cover *cover = c->cover;
    for (int i = c->settled; i < cover->nmappings; i++)
        if (cover->mapping[i].group == o->map.group) return i;
    return covering_add(c, &o->map, o->view);
}

/* What leaves to the host what is wanted on the device counts more than any time. */
static double price_of(const struct covering *c, int stmt, const struct option *o) {
    bool away = !option_on_device(c->machine, o) && wanted_away(c, c->cover->program, stmt);
    return o->cost + (away ? LEFT_TO_HOST : 0);
}

static void try_state(struct covering *c, struct making *m, int k, int from,
                      struct arena *scratch) {
    struct step_state x = m->step[k].state[from];
    int stmt = m->plan->order[k];
    enter(c, m->plan, x.chosen, k);
    if (absorbed(c, stmt)) {
        x.chosen[k] = INSIDE;
        add_way(
            m, k, from,
            add_state(m, k + 1, key_of(c, m->plan, &m->classes, k + 1, x.chosen), x.cost, x.chosen),
            0);
        return;
    }
    struct arena own = c->scratch;
    c->scratch = *scratch;
    struct options all = options_remembered(c, &m->memo[k], stmt);
    int tried[2] = {0}; /* of a device's, and of the others, whose many ways would leave it none */
    for (int i = 0; i < all.n; i++) {
        const struct option *o = &all.at[i];
        int *of = &tried[!option_on_device(c->machine, o)];
        if (*of == MAX_TRIED) continue;
        x.chosen[k] = o->fallback ? FALLBACK : trial_mapping(c, o);
        uint64_t key = key_of(c, m->plan, &m->classes, k + 1, x.chosen);
        bool known = false; /* cheaper options come first */
        for (int w = m->step[k].nways; w-- > 0 && m->step[k].way[w].from == from && !known;) {
            const struct step_state *to = target(m, k, w);
            known = to && to->key == key;
        }
        if (known) continue;
        ++*of;
        double cost = price_of(c, stmt, o);
        add_way(m, k, from, add_state(m, k + 1, key, x.cost + cost, x.chosen), cost);
    }
    *scratch = c->scratch;
    c->scratch = own;
}

/* Of what is known the least; UNKNOWN if nothing is, INFINITY if there is no way. */
static void count_back(struct making *m) {
    for (int i = 0; i < m->step[m->plan->n].nstates; i++) m->step[m->plan->n].state[i].togo = 0;
    for (int k = m->plan->n; k-- > 0;) {
        struct step *s = &m->step[k];
        for (int i = 0; i < s->nstates; i++) s->state[i].togo = INFINITY;
        for (int i = 0; i < s->nways; i++) {
            const struct transition *w = &s->way[i];
            const struct step_state *to = target(m, k, i);
            double rest = to ? to->togo : UNKNOWN;
            double *least = &s->state[w->from].togo;
            if (rest == UNKNOWN)
                *least = isinf(*least) ? UNKNOWN : *least;
            else if (!isinf(rest))
                *least =
                    *least < 0 || isinf(*least) ? w->cost + rest : fmin(*least, w->cost + rest);
        }
    }
}

/* Expands at most so many states, and MAX_STATES of each step in any case. */
static void follow_all(struct covering *c, struct making *m, int budget) {
    int none[WINDOW] = {0}, kept = c->cover->nmappings;
    m->cut = false;
    for (int k = 0; k <= m->plan->n; k++) {
        struct step *s = &m->step[k];
        s->nstates = s->nways = 0;
        s->dearest = -1;
        for (int b = 0; b < BUCKETS; b++) s->bucket[b] = -1;
    }
    m->limit = 1;
    add_state(m, 0, key_of(c, m->plan, &m->classes, 0, none), 0, none);
    for (int k = 0; k < m->plan->n; k++) {
        budget -= m->step[k].nstates;
        m->limit = budget > MAX_STATES ? budget : MAX_STATES;
        for (int i = 0; i < m->step[k].nstates; i++) {
            struct arena scratch;
            arena_init(&scratch);
            try_state(c, m, k, i, &scratch);
            arena_free(&scratch);
        }
    }
    enter(c, m->plan, none, 0);
    c->cover->nmappings = kept;
}

/* A fill may come for nothing, within the accumulation. */
static void know_best(struct covering *c, struct making *m) {
    const struct step *last = &m->step[m->plan->n];
    for (int i = 0; i < last->nstates; i++) m->best = fmin(m->best, last->state[i].cost);
    for (int k = m->plan->n; k-- > 0;) {
        int stmt = m->plan->order[k];
        double own = decided_after(c, stmt) < 0 ? options_of(c, stmt).floor : 0;
        m->step[k].floor = m->step[k + 1].floor + own;
    }
}

/* Of the states what is asked of them later. */
static void keep_outcomes(const struct making *m) {
    struct plan *p = m->plan;
    for (int k = 0; k <= p->n; k++) {
        const struct step *s = &m->step[k];
        p->outcome[k] = arena_array(&p->arena, (size_t)s->nstates + 1, sizeof *p->outcome[k]);
        p->noutcomes[k] = s->nstates;
        for (int i = 0; i < s->nstates; i++)
            p->outcome[k][i] = (struct outcome){s->state[i].key, s->state[i].togo};
    }
}

static struct plan *plan_make(struct covering *c) {
    struct making *m = memory_array(1, sizeof *m);
    struct plan *p = memory_array(1, sizeof *p);
    arena_init(&p->arena);
    arena_init(&m->arena);
    m->plan = p;
    order_all(c, p);
    for (int k = 0; k < p->n; k++)
        for (int j = 0; j < k; j++)
            if (connected(c->cover->program, p->order[j], p->order[k]))
                p->later[j] |= UINT64_C(1) << k;
    m->best = INFINITY;
    follow_all(c, m, 0);
    if (m->cut) {
        know_best(c, m);
        follow_all(c, m, MAX_EXPANDED);
    }
    for (int k = 0; k < p->n; k++) memo_close(&m->memo[k]);
    count_back(m);
    keep_outcomes(m);
    arena_free(&m->arena);
    free(m);
    p->kept = fork_own_plan(c, p);
    return p;
}

void plan_free(struct plan *p) {
    if (p) arena_free(&p->arena);
    free(p);
}

void plan_take(struct covering *c, struct plan *p) {
    if (c->plan && !c->plan->kept) plan_free(c->plan);
    c->plan = p;
}

void plan_drop(struct covering *c) {
    plan_take(c, NULL);
}

/* ---- deciding ---- */

static void chosen_so_far(const struct covering *c, const struct plan *p, int *chosen) {
    for (int k = 0; k < p->at; k++) {
        int s = p->order[k];
        chosen[k] = c->inside[s] >= 0 ? INSIDE : c->chosen[s];
    }
}

/* NULL: the plan does not know it. */
static const struct outcome *outcome_of(const struct covering *c, const struct plan *p,
                                        struct classes *all, int k, const int *chosen) {
    uint64_t key = key_of(c, p, all, k, chosen);
    for (int i = 0; i < p->noutcomes[k]; i++)
        if (p->outcome[k][i].key == key) return &p->outcome[k][i];
    return NULL;
}

/* Is what was decided a state of the plan, and known what follows? */
static bool followed(const struct covering *c, const struct plan *p) {
    struct classes *all = memory_array(1, sizeof *all);
    int chosen[WINDOW] = {0};
    chosen_so_far(c, p, chosen);
    const struct outcome *x = outcome_of(c, p, all, p->at, chosen);
    free(all);
    return x && x->togo != UNKNOWN;
}

int plan_next(struct covering *c) {
    struct plan *p = c->plan;
    if (p) p->at = 0; /* other coverings have gone on with it */
    while (p && p->at < p->n && c->chosen[p->order[p->at]] != UNDECIDED) p->at++;
    bool end = p && (p->n < WINDOW ? p->at == p->n : p->at >= DECIDED);
    if (p && (end || !followed(c, p))) plan_drop(c);
    c->settled = c->cover->nmappings;
    if (!c->plan) c->plan = plan_make(c);
    p = c->plan;
    if (p->n == 0) return -1;
    return p->order[p->at];
}

static int by_total(const void *a, const void *b) {
    const struct option *x = a, *y = b;
    if (x->total != y->total) return x->total < y->total ? -1 : 1;
    return x->cost != y->cost ? (x->cost < y->cost ? -1 : 1) : 0;
}

/* Options after which something would be left without a way are no options, if there are others.
 * What was too dear to look at counts as the dearest. */
static void judge(struct options *o) {
    double rest = 0, total = 0;
    int kept = 0;
    for (int i = 0; i < o->n; i++) {
        const struct option *x = &o->at[i];
        if (isinf(x->total) || x->total == UNKNOWN) continue;
        rest = fmax(rest, x->total);
        total = fmax(total, x->total + x->cost);
    }
    for (int i = 0; i < o->n; i++) {
        struct option x = o->at[i];
        if (isinf(x.total)) continue;
        x.total =
            x.total != UNKNOWN ? x.total + x.cost : fmax(rest + x.cost, nextafter(total, INFINITY));
        o->at[kept++] = x;
    }
    for (int i = 0; i < o->n && kept == 0; i++) o->at[i].total = o->at[i].cost;
    if (kept > 0) o->n = kept;
}

struct options plan_options(struct covering *c, int stmt) {
    struct options all = options_of(c, stmt), out = {0};
    struct classes *classes = memory_array(1, sizeof *classes);
    struct plan *p = c->plan;
    int chosen[WINDOW] = {0}, kept = c->cover->nmappings;
    chosen_so_far(c, p, chosen);
    out.at = arena_copy(&c->scratch, all.at, (size_t)all.n * sizeof *all.at);
    out.n = all.n;
    for (int i = 0; i < out.n; i++) {
        struct option *o = &out.at[i];
        chosen[p->at] = o->fallback ? FALLBACK : trial_mapping(c, o);
        const struct outcome *after = outcome_of(c, p, classes, p->at + 1, chosen);
        o->total = after ? after->togo : UNKNOWN;
        c->cover->nmappings = kept;
    }
    free(classes);
    judge(&out);
    if (out.n > 1) qsort(out.at, (size_t)out.n, sizeof *out.at, by_total);
    return out;
}
