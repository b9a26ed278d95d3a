/* States of a memory's words, which one configure writes all at once and which may cost the memory
 * its content. A block is cut into runs of nodes in which every word has one value; a run begins
 * where nothing in that memory is alive. */
#include "scheduler/emit/configure_words.h"
#include <string.h>

static bool fail(struct placer *p, const char *what) {
    int stmt = p->at ? state_stmt(p->w, p->at, 1, p->state) : -1;
    if (!p->failed) configure_error(p->w, p->state, stmt, what);
    p->failed = true;
    return false;
}

/* False: two values for one word. */
static bool set_word(struct placer *p, struct words *v, int64_t word, const struct sx **field) {
    if (word < 0 || word >= p->nwords) return fail(p, "an operand is outside its memory");
    if (v->field[word]) return fields_same(v->field[word], field, p->nfields);
    v->field[word] = arena_copy(&p->w->s->arena, field, sizeof *field * (size_t)p->nfields);
    return true;
}

static bool collect_issue(struct placer *p, const struct issue_node *n, struct words *v) {
    const struct work *w = p->w;
    const struct instr *in = &w->m->instr[n->instr];
    struct arena *a = &p->w->s->arena;
    for (int k = 0; k < in->nneeds; k++) {
        const struct sx *field[MAX_FIELDS];
        int64_t offset;
        if (in->need[k].state != p->state) continue;
        int o = need_operand(in, &in->need[k]);
        if (o < 0 || n->arg[o].place < 0 || !need_fields(p->w, n, &in->need[k], field))
            return fail(p, "a value depends on more than sizes and strides");
        if (p->only >= 0 && n->arg[o].place != p->only) continue;
        const struct place *place = &w->s->place[n->arg[o].place];
        if (place->slots > 1 ||
            !sx_constant(sx_known(a, n->arg[o].offset, p->known, p->value), &offset))
            return fail(p, "the word that it belongs to is not constant");
        for (int f = 0; f < p->nfields; f++) field[f] = sx_known(a, field[f], p->known, p->value);
        int64_t word = w->m->memory[place->memory].word;
        if (!set_word(p, v, (place->address + offset) / (word > 0 ? word : 1), field)) return false;
    }
    return true;
}

/* A loop that is not unrolled has one value for all its iterations, or none. */
static bool collect(struct placer *p, const struct node *n, struct words *v) {
    int64_t lo, hi;
    if (n->kind == NODE_ISSUE) return collect_issue(p, n->issue, v);
    if (n->kind != NODE_LOOP) return true;
    const struct loop_node *l = n->loop;
    if (l->kind == LOOP_PARALLEL && needs_state(p->w, n, p->state)) return false;
    if (l->kind != LOOP_UNROLLED) {
        if (!collect_all(p, l->body, l->nbody, v)) return false;
        for (int k = 0; k < p->nwords; k++)
            for (int f = 0; v->field[k] && f < p->nfields; f++)
                if (sx_uses(v->field[k][f], l->var)) return false;
        return true;
    }
    struct arena *a = &p->w->s->arena;
    if (!sx_constant(sx_known(a, l->lo, p->known, p->value), &lo) ||
        !sx_constant(sx_known(a, l->hi, p->known, p->value), &hi))
        return fail(p, "the ends of an unrolled loop are not constant");
    bool ok = true;
    p->known[l->var] = true;
    for (int64_t v0 = lo; v0 < hi && ok; v0 += l->step) {
        p->value[l->var] = v0;
        ok = collect_all(p, l->body, l->nbody, v);
    }
    p->known[l->var] = false;
    return ok;
}

bool collect_all(struct placer *p, const struct node *at, int n, struct words *v) {
    for (int i = 0; i < n; i++)
        if (!collect(p, &at[i], v)) return false;
    return true;
}

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
        return fail(p, "one issue, or an unrolled loop, wants two values of a word");
    for (int k = 0; k < p->w->s->nplaces; k++)
        if (clobbered(p, p->w->s->place[k].memory) && places_mentioned(&at[i], 1, p->w->m, k) &&
            (places_mentioned(at, i, p->w->m, k) ||
             places_mentioned(at + i + 1, n - i - 1, p->w->m, k)))
            return fail(p, "it changes while the memory that it belongs to is in use");
    return place_block(p, &l->body, &l->nbody, &none);
}

/* The longest run from `from` on in which words keep their values; *v: those. */
static int run_from(struct placer *p, const struct node *at, int n, int from, struct words *v) {
    int end = from;
    while (end < n) {
        struct words more = *v;
        p->at = &at[end];
        if (!collect(p, &at[end], &more)) break;
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
        while (end > i && end < n && needs_state(p->w, &at[end], p->state) &&
               !dead_at(p, at, n, end))
            end--;
        if (end == i && whole > i)
            return fail(p, "it changes while the memory that it belongs to is in use");
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
    const struct memory *m = &w->m->memory[w->m->state[state].of];
    size_t nvars = (size_t)w->s->nvars + 1;
    struct placer p = {.w = w,
                       .state = state,
                       .configure = configure,
                       .only = -1,
                       .nfields = w->m->state[state].nfields,
                       .users = state_users(w, run->at, run->n, state),
                       .known = arena_array(w->arena, nvars, sizeof(bool)),
                       .value = arena_array(w->arena, nvars, sizeof(int64_t))};
    int64_t words = m->size > 0 && m->word > 0 ? m->size / m->word : 1;
    struct words now = {{NULL}};
    if (words > MAX_WORDS)
        return configure_error(w, state, state_stmt(w, run->at, run->n, state),
                               "its memory has too many words");
    p.nwords = (int)words;
    places_settle(&p, run);
    bool ok = place_block(&p, &run->at, &run->n, &now);
    run->cap = run->n;
    return ok;
}
