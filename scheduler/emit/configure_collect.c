/* The values that nodes need of the words of a memory. */
#include "scheduler/emit/configure_int.h"
#include "scheduler/plan/work.h"

/* What the node that is being configured wants cannot be. */
bool words_fail(struct placer *p, const char *what) {
    int stmt = p->at ? state_stmt(p->w, p->at, 1, p->state) : -1;
    return placer_fail(p, stmt >= 0 ? stmt : p->stmt, what);
}

/* False: two values for one word. */
static bool set_word(struct placer *p, struct words *v, int64_t word, const struct sx **field) {
    if (word < 0 || word >= p->nwords) return words_fail(p, "an operand is outside its memory");
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
            return words_fail(p, "a value depends on more than sizes and strides");
        if (p->only >= 0 && n->arg[o].place != p->only) continue;
        const struct place *place = &w->s->place[n->arg[o].place];
        if (place->slots > 1 ||
            !sx_constant(sx_known(a, n->arg[o].offset, p->known, p->value), &offset))
            return words_fail(p, "the word that it belongs to is not constant");
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
        return words_fail(p, "the ends of an unrolled loop are not constant");
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
