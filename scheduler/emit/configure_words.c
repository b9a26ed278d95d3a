/* States of a memory's words, which one configure writes all at once and which may cost the memory
 * its content. A block is cut into runs of nodes in which every word has one value; a run begins
 * where nothing in that memory is alive. */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/work.h"
#include <string.h>

/* ---- what is alive ---- */

static bool clobbered(const struct placer *p, int memory) {
    const struct configure *c = &p->w->m->configure[p->configure];
    for (int k = 0; k < c->nclobbers; k++)
        if (c->clobbers[k] == memory) return true;
    return false;
}

/* May the memory lose its content between at[cut - 1] and at[cut]? */
static bool dead_at(const struct placer *p, const struct node *at, int n, int cut) {
    const struct work *w = p->w;
    for (int k = 0; k < w->s->nplaces; k++)
        if (clobbered(p, w->s->place[k].memory) && places_mentioned(at, cut, w->m, k) &&
            places_mentioned(at + cut, n - cut, w->m, k))
            return false;
    return true;
}

/* ---- placing ---- */

static bool covers(const struct placer *p, const struct words *now, const struct words *v) {
    for (int k = 0; k < p->nwords; k++)
        if (v->field[k] && (!now->field[k] || !fields_same(now->field[k], v->field[k], p->nfields)))
            return false;
    return true;
}

static void write_words(struct placer *p, struct nodes *out, const struct words *v) {
    struct arena *a = &p->w->s->arena;
    struct state_value *set = arena_array(a, (size_t)p->nwords + 1, sizeof *set);
    int n = 0;
    for (int k = 0; k < p->nwords; k++)
        if (v->field[k]) set[n++] = (struct state_value){p->state, k, v->field[k]};
    add_configure(p->w, out, configure_node(p->w, p->configure, set, n), p->users);
}

static bool place_block(struct placer *p, struct node **at, int *n, struct words *now);

/* Does the one node want two values of a word? Then its body is configured, if nothing lives
 * across. */
static bool place_inside(struct placer *p, const struct node *at, int n, int i) {
    struct words none = {{NULL}};
    struct loop_node *l = at[i].loop;
    if (p->failed) return false;
    if (at[i].kind != NODE_LOOP || l->kind == LOOP_UNROLLED)
        return words_fail(p, "one issue, or an unrolled loop, wants two values of a word");
    for (int k = 0; k < p->w->s->nplaces; k++)
        if (clobbered(p, p->w->s->place[k].memory) && places_mentioned(&at[i], 1, p->w->m, k) &&
            (places_mentioned(at, i, p->w->m, k) ||
             places_mentioned(at + i + 1, n - i - 1, p->w->m, k)))
            return words_fail(p, "it changes while the memory that it belongs to is in use");
    return place_block(p, &l->body, &l->nbody, &none);
}

/* The longest run from `from` on in which words keep their values; *v: those. */
static int run_from(struct placer *p, const struct node *at, int n, int from, struct words *v) {
    int end = from;
    while (end < n) {
        struct words more = *v;
        p->at = &at[end];
        if (!collect_all(p, &at[end], 1, &more)) break;
        *v = more;
        end++;
    }
    return end;
}

static bool place_block(struct placer *p, struct node **nodes, int *count, struct words *now) {
    const struct node *at = *nodes;
    int n = *count;
    struct nodes out = {0};
    for (int i = 0; i < n;) {
        struct words v = {{NULL}};
        int end = run_from(p, at, n, i, &v);
        if (p->failed) return false;
        int whole = end;
        p->at = &at[end < n ? end : i];
        while (end > i && end < n && !dead_at(p, at, n, end)) end--;
        if (end == i && whole > i)
            return words_fail(p, "it changes while the memory that it belongs to is in use");
        if (end == i) {
            if (!place_inside(p, at, n, i)) return false;
            memset(now, 0, sizeof *now);
            nodes_add(p->w, &out, at[i++]);
            continue;
        }
        if (end < whole) { /* cut earlier: only what is left of the run counts */
            memset(&v, 0, sizeof v);
            collect_all(p, at + i, end - i, &v);
        }
        if (!covers(p, now, &v)) {
            write_words(p, &out, &v);
            *now = v;
        }
        while (i < end) nodes_add(p->w, &out, at[i++]);
    }
    *nodes = out.at;
    *count = out.n;
    return true;
}

bool configure_words(struct work *w, int state, int configure, struct nodes *run) {
    size_t nvars = (size_t)w->s->nvars + 1;
    struct placer p = {.w = w,
                       .state = state,
                       .configure = configure,
                       .only = -1,
                       .stmt = state_stmt(w, run->at, run->n, state),
                       .nfields = w->m->state[state].nfields,
                       .users = state_users(w, run->at, run->n, state),
                       .known = arena_array(w->arena, nvars, sizeof(bool)),
                       .value = arena_array(w->arena, nvars, sizeof(int64_t))};
    int64_t words = state_slots(w->m, state);
    struct words now = {{NULL}};
    if (words > MAX_WORDS)
        return configure_error(w, state, p.stmt, "its memory has too many words");
    p.nwords = (int)words;
    places_settle(&p, run);
    bool ok = place_block(&p, &run->at, &run->n, &now);
    run->cap = run->n;
    return ok;
}
