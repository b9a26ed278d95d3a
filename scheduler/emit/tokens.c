/* Tokens between the queues of a nest: which edge a fill's user waits for, whether fills and
 * results share tokens, which syncs carry credits beside other tokens, how many a sync holds. */
#include "scheduler/emit/emit_int.h"
#include "scheduler/plan/graph.h"
#include "scheduler/plan/nest.h"
#include "scheduler/plan/rewrite.h"
#include "scheduler/plan/tiling.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

struct edge link_there(const struct emitter *e, struct link l) {
    return edge_find(e->w->edges, l.from, l.completes, l.to);
}

struct edge link_back(const struct emitter *e, struct link l) {
    return edge_find(e->w->edges, l.to, l.to_completes, l.from);
}

struct link fill_link(const struct filling *f) {
    return (struct link){f->queue, f->completes, f->user, f->user_completes};
}

struct link result_link(const struct emitter *e) {
    return (struct link){e->chain, e->exec_completes, e->store, e->store_completes};
}

struct link hand_link(const struct emitter *e) {
    return (struct link){e->exec, -1, e->chain, -1};
}

struct link start_link(const struct emitter *e) {
    return (struct link){e->load, e->load_completes, e->store, e->store_completes};
}

struct link way_link(const struct way_out *way, int k) {
    return (struct link){way->queue[k + 1], way->completes[k + 1], way->queue[k],
                         way->completes[k]};
}

/* Does the link give or take by the tokens of the other? */
static bool shares(const struct emitter *e, struct link a, struct link b) {
    struct edge one[] = {link_there(e, a), link_back(e, a)},
                other[] = {link_there(e, b), link_back(e, b)};
    return edges_share(e->w->edges, one, other);
}

size_t token_number(const struct emitter *e, const struct edge *x) {
    const struct machine *m = e->w->m;
    size_t n = 0;
    for (int i = 0; i < x->sync; i++) n += (size_t)sync_pairs(&m->sync[i]);
    return n + (size_t)sync_pair(&m->sync[x->sync], x->from, x->to);
}

size_t token_numbers(const struct emitter *e) {
    size_t n = 0;
    for (int i = 0; i < e->w->m->nsyncs; i++) n += (size_t)sync_pairs(&e->w->m->sync[i]);
    return n;
}

bool same_tokens(const struct emitter *e) {
    if (e->store < 0 || link_back(e, result_link(e)).kind != EDGE_TOKEN) return false;
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (f->queue >= 0 && f->user == e->exec && shares(e, result_link(e), fill_link(f)))
            return true;
    }
    return false;
}

static bool way_same_tokens(const struct emitter *e, const struct way_out *way, int k) {
    if (link_back(e, way_link(way, k)).kind != EDGE_TOKEN) return false;
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        if (f->queue >= 0 && f->user == way->queue[k + 1] &&
            shares(e, way_link(way, k), fill_link(f)))
            return true;
    }
    return false;
}

bool ways_same_tokens(const struct emitter *e, int user) {
    for (int i = 0; i <= e->nest->nchain; i++)
        for (int k = 0; k < e->out[i].n; k++)
            if (e->out[i].queue[k + 1] == user && way_same_tokens(e, &e->out[i], k)) return true;
    return false;
}

bool way_in_step(const struct emitter *e, const struct way_out *way, int k) {
    struct edge back = link_back(e, way_link(way, k));
    if (e->inside) return false;
    return in_step(e, &back) || way_same_tokens(e, way, k);
}

int within_depth(const struct machine *m, int credits, const struct edge *edge) {
    int64_t depth = edge->kind == EDGE_TOKEN ? m->sync[edge->sync].depth : -1;
    return depth >= 0 && depth < credits ? (int)depth : credits;
}

/* ---- who else uses a sync that carries credits ----
 *
 * Tokens are alike: the n-th that is taken is the n-th that was given. Credits are given long
 * before they are taken, so whoever else takes from the same sync would take one of them. */

/* who: fills of the core by their queue and its user */
enum { RESULTS, CHAIN, HANDED, WAYS, FILLS = WAYS + MAX_VIA };
struct use {
    size_t token; /* by number */
    int who;
    int fills, leaves; /* 1 + the queue for which copies are filled, or whose results go on: none of
                          the fills' credits is out then (stay_in_result); 0 */
    bool credits;
};
struct uses {
    struct use *at;
    int n, cap;
};

/* Of a chain the last token alone is a credit: the others are taken as soon as they are given. */
static void add_use(struct emitter *e, struct uses *u, struct edge x, struct use use) {
    bool more = x.kind == EDGE_TOKEN;
    for (; more; more = edge_before(e->w->edges, &x, &x)) {
        GROW(e->w->arena, u->at, u->n, u->cap);
        use.token = token_number(e, &x);
        u->at[u->n++] = use;
        use.credits = false;
    }
}

/* What goes from one queue to the other, and the credits that come back. */
static void add_uses(struct emitter *e, struct uses *u, struct link l, struct use use) {
    add_use(e, u, link_there(e, l), use);
    use.credits = true;
    add_use(e, u, link_back(e, l), use);
}

static bool clash(const struct use *a, const struct use *b) {
    bool settled = (a->fills && a->fills == b->leaves) || (b->fills && b->fills == a->leaves);
    return a->token == b->token && a->who != b->who && !settled && (a->credits || b->credits);
}

/* What the chain reads from home: its fills wait for the queue that takes them, which waits for
 * them. */
static void chain_uses(struct emitter *e, struct uses *u) {
    struct work *w = e->w;
    for (int i = 0; i < e->nest->nchain; i++) {
        const struct task *t = &w->task[e->nest->chain[i].task];
        for (int k = 0; k < t->nops; k++) {
            const struct opnd *o = &t->op[k];
            struct region r;
            int completes;
            if (o->read < 0 || !chain_needs_hold(e->nest, i, k)) continue;
            if (o->source) o = o->source;
            chain_region(w, &e->nest->plan, e->nest, t, o, &r);
            int queue = transfer_queue(w, e->moves, task_access(w, t, o, false)->buffer, o, &r,
                                       true, e->own[i][k].fill_by, &completes);
            if (queue < 0) continue;
            e->own[i][k].queue = queue + 1;
            if (e->nest->chain[i].whole >> k & 1) continue; /* before any credit is given */
            add_use(e, u, edge_of_queue(w->edges, queue, e->chain), (struct use){.who = CHAIN});
            add_use(e, u, edge_of_queue(w->edges, e->chain, queue), (struct use){.who = CHAIN});
        }
    }
}

void tokens_share(struct emitter *e) {
    struct uses u = {0};
    add_uses(e, &u, result_link(e), (struct use){.who = RESULTS, .leaves = e->exec + 1});
    if (e->chain != e->exec) add_uses(e, &u, hand_link(e), (struct use){.who = HANDED});
    if (e->load_ahead)
        add_uses(e, &u, start_link(e), (struct use){.who = RESULTS, .leaves = e->exec + 1});
    for (int i = 0; i < e->nfills; i++) {
        const struct filling *f = &e->fill[i];
        add_uses(e, &u, fill_link(f),
                 (struct use){.who = FILLS + f->queue * e->w->m->nqueues + f->user,
                              .fills = f->user + 1});
    }
    for (int i = 0; i <= e->nest->nchain; i++)
        for (int k = 0; k < e->out[i].n; k++)
            add_uses(e, &u, way_link(&e->out[i], k),
                     (struct use){.who = WAYS + k, .leaves = e->out[i].queue[k + 1] + 1});
    chain_uses(e, &u);
    e->shared = arena_array(e->w->arena, token_numbers(e) + 1, sizeof *e->shared);
    for (int i = 0; i < u.n; i++)
        for (int k = 0; k < i; k++)
            if (clash(&u.at[i], &u.at[k])) e->shared[u.at[i].token] = true;
}

bool in_step(const struct emitter *e, const struct edge *back) {
    return back->kind == EDGE_TOKEN && e->shared[token_number(e, back)];
}

void results_root(struct emitter *e) {
    int deepest = -1;
    if (!e->drained || e->load >= 0 || e->out[0].n > 1) return;
    struct link own = result_link(e), out = e->out[0].n ? way_link(&e->out[0], 0) : own;
    if (e->out[0].n && shares(e, out, own)) return; /* a credit would be taken for it */
    for (int i = 0; i < e->nfills && out.to >= 0; i++) {
        const struct filling *f = &e->fill[i];
        struct link fill = fill_link(f);
        if (f->queue < 0 || (!shares(e, out, fill) && !shares(e, own, fill))) continue;
        if (f->hold->spread || f->hold->ahead) return;
        if (f->hold->depth > deepest) deepest = f->hold->depth;
    }
    if (deepest < 0 || !results_lend(e->w, e->nest, &e->nest->plan, deepest)) return;
    e->inside = true;
    e->root = deepest;
}
