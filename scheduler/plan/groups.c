/* Groups: parts of the run that share loops, so that of the tensors between them only a tile is
 * there at a time, near the units (SCHEDULING §7; Apollo §4, Welder's greedy growth). For each
 * tensor, the one with most bytes first, the parts from who makes it to its last reader become a
 * group with those that stand between them and the groups they are already in, if that is cheaper
 * than all these by themselves. A question to the approach. */
#include "scheduler/plan/geom.h"
#include "scheduler/plan/group_int.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"
#include <math.h>
#include <string.h>

enum { MAX_CANDIDATES = 3, MOST_CHOICES = 6 /* with those for caches */, FEW_NESTS = 8 };
static const double LEAST_GAIN = 0.03;
/* What is priced so little below its parts stays apart: equal parts are one function. */
static const double TIE = 0.003;

/* ---- candidates ---- */

/* At most so large, of whole blocks, all tiles equal if that can be. */
static int64_t tile_near(const struct shared_axis *s, int64_t parts) {
    int64_t tile = (s->extent + parts - 1) / parts, q = s->quantum;
    tile = (tile + q - 1) / q * q;
    if (s->window.axis >= 0 || s->extent % q) return tile;
    for (int64_t t = tile; t >= q && 2 * t > tile; t -= q)
        if (s->extent % t == 0) return t;
    return tile;
}

static double turns_of(const struct work *w, const struct nest_group *g) {
    double turns = 1;
    for (int k = 0; k < g->nprefix; k++) {
        int64_t extent = w->p->axis[g->prefix[k].axis].extent;
        turns *= (double)((extent + g->prefix[k].tile - 1) / g->prefix[k].tile);
    }
    return turns;
}

/* The draft begins again with its parts as they are by themselves. */
static void restart(struct grouping *g, struct draft *d) {
    const struct work *w = g->w;
    if (!d->nest)
        d->nest = arena_array(&g->drafts, (size_t)(d->last - d->first + 1), sizeof *d->nest);
    for (int m = 0; m <= d->last - d->first; m++)
        if (d->part[d->first + m].nest >= 0) d->nest[m] = w->nest[d->part[d->first + m].nest];
    d->as = *w;
    d->as.options = w->options ? &g->quiet : NULL;
}

/* What was passed is found again when it is planned. */
static bool prefix_fits(struct grouping *g, struct draft *d, struct nest_group *x) {
    restart(g, d);
    d->as.arena = &g->drafts;
    bool fits = group_fits(&d->as, d, x);
    x->passed = NULL;
    x->npassed = x->cap_passed = 0;
    return fits;
}

static int prefix_axis(const struct draft *d, int k) {
    for (int m = d->last - d->first; m >= 0; m--)
        if (d->in[m] && d->part[d->first + m].nest >= 0 && d->shared[k].axis[m] >= 0)
            return d->shared[k].axis[m];
    return -1;
}

/* Tiles of the last loop, smaller and smaller, in a grid from where all instances have one: the
 * largest few that fit, and the first for which all that is passed lies in a cache further inside.
 */
static int loop_tiles(struct grouping *g, struct draft *d, struct nest_group *now, int n, int most,
                      struct nest_group *c) {
    int shared = now->shared[now->nprefix - 1], first = n;
    const struct shared_axis *s = &d->shared[shared];
    const struct nest *lead = draft_first(g->w, d);
    int64_t before = 0, instances = lead ? grid_instances(g->w, lead) : 1;
    for (int64_t parts = instances > 1 ? instances : 2; n < MOST_CHOICES; parts *= 2) {
        int64_t tile = tile_near(s, parts);
        now->prefix[now->nprefix - 1] =
            (struct loop){prefix_axis(d, shared), tile, LOOP_SEQUENTIAL};
        if (tile != before && tile < s->extent) {
            struct nest_group *x = &c[n];
            *x = *now;
            x->turns = turns_of(g->w, now);
            n += prefix_fits(g, d, x) && (n < most || (n > first && x->cache != c[n - 1].cache));
        }
        before = tile;
        if (tile <= s->quantum) break;
    }
    now->prefix[now->nprefix - 1].tile = s->quantum;
    return n;
}

/* Axes from the first on one by one, the last in a few tiles. */
static int prefixes(struct grouping *g, struct draft *d, int first, int n, int most,
                    struct nest_group *c) {
    struct nest_group now = {0};
    for (int last = first; last < d->nshared && now.nprefix < MAX_PREFIX && n < most; last++) {
        const struct shared_axis *s = &d->shared[last];
        if (s->extent <= s->quantum) continue;
        now.shared[now.nprefix++] = last;
        n = loop_tiles(g, d, &now, n, most, c);
    }
    return n;
}

/* Inner axes begin on their own too: in loops around them the first nest would fetch its operands
 * anew, and instructions may be shorter along one axis than along another. Each has a candidate at
 * least. */
static int all_prefixes(struct grouping *g, struct draft *d, struct nest_group *c) {
    int n = 0;
    for (int i = 0; i < d->nshared && n < MOST_CHOICES; i++) {
        int left = d->nkept - i, most = left > 0 ? (MAX_CANDIDATES - n + left - 1) / left : 1;
        n = prefixes(g, d, i, n, n + (most > 1 ? most : 1), c);
    }
    return n;
}

/* ---- one group ---- */

static const char *prefix_text(struct work *w, const struct nest_group *g) {
    struct text t = {0};
    for (int i = 0; i < g->nprefix; i++)
        text_printf(&t, "%s%s %lld", i ? ", " : "", w->p->axis[g->prefix[i].axis].name,
                    (long long)g->prefix[i].tile);
    const char *out = arena_strdup(w->arena, t.at);
    text_free(&t);
    return out;
}

static const char *subject(struct work *w, const struct draft *d) {
    struct text t = {0};
    text_printf(&t, "tensor '%s' inside statements", w->p->buffer[d->buffer].name);
    for (int m = 0, k = 0; m <= d->last - d->first; m++)
        if (d->in[m]) text_printf(&t, "%s %d", k++ ? "," : "", d->part[d->first + m].stmt);
    const char *out = arena_strdup(w->arena, t.at);
    text_free(&t);
    return out;
}

/* Why a tensor goes home whole. */
static void explain(const struct grouping *g, const struct draft *d) {
    struct text *t = g->w->options ? g->w->options->explain : NULL;
    if (t) text_printf(t, "tensor '%s' apart: %s\n", g->w->p->buffer[d->buffer].name, d->why);
}

static int turn_axis(struct grouping *g, int nest, int shared) {
    for (int i = 0; i < g->nturns; i++)
        if (g->turn[i].nest == nest && g->turn[i].shared == shared) return g->turn[i].axis;
    const char *name = unique_name(g->w, g->w->p->axis[shared].name, "turn");
    GROW(g->w->arena, g->turn, g->nturns, g->cap_turns);
    g->turn[g->nturns] = (struct turn){nest, shared, rewrite_axis(g->w, name, 1)};
    return g->turn[g->nturns++].axis;
}

/* Turns of a window have an axis of their own in the plan of who makes it. */
static bool name_turns(struct grouping *g, struct draft *d) {
    for (int k = 0; k < d->nshared; k++) {
        struct window *x = &d->shared[k].window;
        if (x->axis < 0) continue;
        x->turn = turn_axis(g, d->part[d->first].nest, x->shared);
        if (x->turn < 0) return false;
    }
    return true;
}

/* What the range costs as it is now: groups that it holds, and single parts. */
static double now(const struct grouping *g, const struct draft *d) {
    double sum = 0;
    for (int q = d->first; q <= d->last; q++) {
        int x = g->group_of[q];
        bool seen = false;
        for (int r = d->first; r < q; r++) seen |= x >= 0 && g->group_of[r] == x;
        if (seen) continue;
        sum += x >= 0 ? g->w->group[x].cycles : g->alone[q];
    }
    return sum;
}

/* The last is a member: a part behind the members need not go before them, and may become one of
 * another group, which would then go before this one as a whole. */
static void members(struct grouping *g, const struct draft *d, struct nest_group *x) {
    struct work *w = g->w;
    x->n = d->last - d->first + 1;
    while (!d->in[x->n - 1]) x->n--;
    x->member = arena_array(w->arena, (size_t)x->n, sizeof *x->member);
    for (int m = 0; m < x->n; m++) {
        const struct run_part *p = &d->part[d->first + m];
        x->member[m] = (struct member){.nest = p->nest, .stmt = p->stmt, .before = !d->in[m]};
        for (int k = 0; k < x->nprefix; k++) x->member[m].axis[k] = d->shared[x->shared[k]].axis[m];
    }
}

/* Where a tile has borders they are filled with zeros, once. */
static void add_borders(struct work *w, struct nest_group *x) {
    for (int i = 0; i < x->npassed && x->n; i++) {
        struct passed *p = &x->passed[i];
        if (p->given < 0 || !p->bordered) continue;
        const struct nest *n = &w->nest[x->member[p->reader].nest];
        p->border = windows_zeros(w, &w->task[n->core].op[p->given], p->buffer);
    }
}

static void leave_plans(struct nest_group *x) {
    arena_free(&x->plans);
    x->nest = NULL;
}

static void adopt(struct grouping *g, struct draft *d, struct nest_group *x) {
    struct work *w = g->w;
    for (int q = d->first; q <= d->last; q++) {
        if (g->group_of[q] < 0) continue;
        w->group[g->group_of[q]].n = 0;
        leave_plans(&w->group[g->group_of[q]]);
    }
    members(g, d, x);
    arena_init(&x->plans);
    x->nest = arena_copy(&x->plans, x->nest, sizeof *x->nest * (size_t)x->n);
    x->first = d->first;
    for (int q = d->first; q <= d->last; q++)
        if (d->in[q - d->first]) g->group_of[q] = w->ngroups;
    GROW(w->arena, w->group, w->ngroups, w->cap_groups);
    w->group[w->ngroups++] = *x;
}

/* Answer 0: they stay as they are. */
static int ask(struct grouping *g, const struct draft *d, const struct nest_group *c, int n) {
    struct work *w = g->w;
    struct candidate *q = arena_array(w->arena, (size_t)n, sizeof *q);
    int best = 0;
    for (int i = 0; i < n; i++) {
        q[i] = (struct candidate){i ? prefix_text(w, &c[i]) : "apart",
                                  i ? c[i].cycles : (1 - TIE) * c[i].cycles, NULL};
        if (q[i].cost < q[best].cost) best = i;
    }
    const char *what = subject(w, d);
    best = work_ask(w, QUESTION_FUSION, what, q, n, best);
    struct text *t = w->options ? w->options->explain : NULL;
    for (int i = 0; t && i < n; i++)
        text_printf(t, "%s%s %s %.0f cycles%s", i ? "" : what, i ? "," : ":", q[i].text, q[i].cost,
                    i == best ? " (taken)" : "");
    if (t) text_printf(t, "\n");
    return best;
}

/* In long programs only what may save some time is considered. */
static bool may_gain(const struct grouping *g, const struct draft *d, double cost) {
    double least = 0;
    for (int m = 0; m <= d->last - d->first; m++)
        if (d->in[m]) least += part_least(g->w, d, m);
    return g->w->nnests <= FEW_NESTS || least < (1 - LEAST_GAIN) * cost;
}

/* The candidate as planned takes the draft's nests and homes. */
static bool plan_candidate(struct grouping *g, struct draft *d, struct nest_group *x,
                           double limit) {
    restart(g, d);
    x->cycles = group_plan(&d->as, g->moves, d, x, limit);
    if (isinf(x->cycles)) return false;
    x->nest = d->nest;
    x->homes = d->as.tried;
    return true;
}

/* What comes from far away in each turn may be asked for a turn before: one array after the other,
 * where it is cheaper. `c`: the candidate before it was planned. */
static void ask_ahead(struct grouping *g, struct draft *d, const struct nest_group *c,
                      struct nest_group *x) {
    struct foreseen more;
    for (int at = 0; foreseen_next(&d->as, g->moves, d, x, &at, &more);) {
        struct nest_group tried = *c;
        tried.nforeseen = x->nforeseen + 1;
        tried.foreseen = arena_array(g->w->arena, (size_t)tried.nforeseen, sizeof *tried.foreseen);
        if (x->nforeseen) memcpy(tried.foreseen, x->foreseen, sizeof more * (size_t)x->nforeseen);
        tried.foreseen[x->nforeseen] = more;
        d->nest = NULL;
        if (plan_candidate(g, d, &tried, x->cycles) && tried.cycles < x->cycles) *x = tried;
        d->as.tried = x->homes;
        d->nest = x->nest;
    }
}

/* What a candidate must cost less than to be taken. All are planned whole where an answer need not
 * be the cheapest, or where what they cost is printed. */
static double limit_of(const struct work *w, const struct nest_group *c, int n) {
    double least = (1 - TIE) * c[0].cycles;
    if ((w->decider && !decider_by_cost(w->decider)) || (w->options && w->options->explain))
        return INFINITY;
    for (int i = 1; i < n; i++) least = fmin(least, c[i].cycles);
    return least;
}

/* What a draft may become, apart first; n 0: there is nothing to gain. */
struct choices {
    struct nest_group c[MOST_CHOICES + 1];
    int n;
};

static void consider(struct grouping *g, struct draft *d, struct choices *x) {
    *x = (struct choices){.c = {{.cycles = now(g, d)}}};
    if (!may_gain(g, d, x->c[0].cycles)) {
        d->why = "nothing to gain";
        return;
    }
    d->known = g->known;
    int made = name_turns(g, d) ? all_prefixes(g, d, x->c + 1) : 0;
    x->n = 1;
    for (int i = 1; i <= made; i++) {
        struct nest_group c = x->c[i], tried = c;
        if (!plan_candidate(g, d, &tried, limit_of(g->w, x->c, x->n))) continue;
        ask_ahead(g, d, &c, &tried);
        d->nest = NULL;
        x->c[x->n++] = tried;
    }
}

static double gain(const struct choices *x) {
    double least = x->c[0].cycles;
    for (int i = 1; i < x->n; i++) least = fmin(least, x->c[i].cycles);
    return x->c[0].cycles - least;
}

static void choose(struct grouping *g, struct draft *d, struct choices *x) {
    int best = x->n > 1 ? ask(g, d, x->c, x->n) : 0;
    if (x->n <= 1) explain(g, d);
    if (best > 0) adopt(g, d, &x->c[best]);
}

/* ---- all of them ---- */

/* Groups that are there grow, but none loses a part. What stands with one nest alone turns with it
 * (feeds.c). */
static bool is_group(const struct grouping *g, struct draft *d) {
    int nests = 0;
    for (int q = d->first; q <= d->last; q++) {
        d->why = "it would cut a group";
        if (g->group_of[q] >= 0 && !d->in[q - d->first]) return false;
        nests += d->in[q - d->first] && g->part[q].nest >= 0;
    }
    d->why = "one nest shares no loops";
    return nests > 1;
}

static bool draft_around(struct grouping *g, const struct tensor *t, bool copies, struct draft *d) {
    int first, last;
    const char *why = tensor_range(g, t, copies, &first, &last);
    *d = (struct draft){.buffer = t->buffer, .first = first, .last = last, .why = why};
    return !why && draft_make(g, d, first, last, t->buffer) && is_group(g, d);
}

/* A copy that turns with its reader may lack an axis which all others share: then the group without
 * the copies around it is considered too. */
static void tensor_consider(struct grouping *g, const struct tensor *t) {
    struct draft d, bare;
    struct choices with = {.n = 0}, without = {.n = 0};
    bool ok = draft_around(g, t, true, &d), lean = draft_around(g, t, false, &bare) &&
                                                   (bare.first > d.first || bare.last < d.last) &&
                                                   bare.nshared > (ok ? d.nshared : 0);
    if (ok) consider(g, &d, &with);
    if (lean) consider(g, &bare, &without);
    if (lean && gain(&without) > gain(&with))
        choose(g, &bare, &without);
    else
        choose(g, &d, &with);
}

static bool tensor_decide(struct grouping *g, const struct tensor *t) {
    bool together = g->group_of[t->first] >= 0;
    for (int q = t->first; q <= t->last; q++) together &= g->group_of[q] == g->group_of[t->first];
    if (together) return true;
    arena_init(&g->drafts);
    tensor_consider(g, t);
    arena_free(&g->drafts);
    return !g->w->diags->errors;
}

/* The group is decided: its nests and homes are the work's. */
static void take(struct work *w, int number) {
    struct nest_group *x = &w->group[number];
    for (const struct homes *h = x->homes; h; h = h->rest) w->home[h->buffer] = h->home;
    for (int m = 0; m < x->n; m++) {
        int nest = x->member[m].nest;
        if (nest < 0 || x->member[m].before) continue;
        w->nest[nest] = x->nest[m];
        w->nest[nest].group = number + 1;
        if (!m && x->nest[m].nwindows) windows_prefix(w, &w->nest[nest], x->prefix, x->nprefix);
    }
    leave_plans(x);
}

bool groups_decide(struct work *w, const struct moves *moves) {
    struct grouping g = {.w = w, .moves = moves};
    if (w->options) g.quiet = *w->options;
    g.quiet.explain = NULL;
    g.part_of = arena_array(w->arena, (size_t)w->p->nstmts + 1, sizeof *g.part_of);
    parts_find(&g);
    g.group_of = arena_array(w->arena, (size_t)g.nparts + 1, sizeof *g.group_of);
    g.alone = arena_array(w->arena, (size_t)g.nparts + 1, sizeof *g.alone);
    g.known = arena_array(w->arena, (size_t)w->nnests + 1, sizeof *g.known);
    for (int q = 0; q < g.nparts; q++) {
        struct draft d = {.part = g.part, .first = q, .last = q};
        draft_touch(w, &d, 0);
        g.group_of[q] = -1;
        g.alone[q] = part_cycles(w, &d, NULL, 0);
        if (copy_belongs(&g, q, q + 1, q + 1) || copy_belongs(&g, q, q - 1, q - 1))
            g.alone[q] = host_turns(w, g.part[q].stmt, 1, false);
    }
    struct tensor *t = arena_array(w->arena, (size_t)w->p->nbuffers + 1, sizeof *t);
    int n = tensors_find(&g, t);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) ok = tensor_decide(&g, &t[i]);
    for (int i = 0; i < w->ngroups && !ok; i++) leave_plans(&w->group[i]);
    if (!ok) return false;
    w->group_of = arena_array(w->arena, (size_t)w->p->nstmts + 1, sizeof *w->group_of);
    for (int i = 0; i < w->ngroups; i++) {
        if (w->group[i].n) take(w, i);
        add_borders(w, &w->group[i]);
        for (int m = 0; m < w->group[i].n; m++) w->group_of[w->group[i].member[m].stmt] = i + 1;
    }
    return true;
}
