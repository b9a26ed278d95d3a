/* One issue with the loops directly around it: legality, dimensions, forms. */
#include "scheduler/verify/work.h"

#include <stddef.h>
#include <string.h>

/* ---- legality ---- */
static bool asks_addresses(const struct mexpr *x) {
    if (!x) return false;
    if (x->kind == MEXPR_CALL && strcmp(x->name, "value") != 0 && strcmp(x->name, "bits") != 0 &&
        strcmp(x->name, "bytes") != 0 && strcmp(x->name, "dim") != 0)
        for (int k = 0; k < x->nargs; k++)
            if (x->arg[k]->kind == MEXPR_NAME) return true;
    for (int k = 0; k < x->nargs; k++)
        if (asks_addresses(x->arg[k])) return true;
    return false;
}

static bool aligned(const struct affine *x, int64_t constant, int64_t align) {
    if (align <= 1) return true;
    if ((x->l.c + constant) % align != 0) return false;
    for (int k = 0; k < SYM_LOOPS; k++)
        if (x->l.k[k] && x->l.k[k] % align != 0) return false;
    for (int d = 0; d < SYM_DIMS; d++)
        if (x->d[d] && x->d[d] % align != 0) return false;
    return true;
}

static bool check_alignment(struct work *w, struct site *site, int o) {
    struct verify *v = w->s->v;
    const struct operand *op = &w->in->operand[o];
    const struct place *p = &v->s->place[w->n->arg[o].place];
    const struct memory *m = site_memory(v, op, p->memory);
    enum pass pass = op->has_pass ? op->pass : m->pass;
    struct mexpr_env env = site_env(site);
    int64_t align = m->align > 0 ? m->align : 1;
    if (op->align && (asks_addresses(op->align) || !mexpr_integer(op->align, &env, &align, NULL)))
        return sym_fail(w->s, "an alignment depends on addresses");
    bool words = pass != PASS_POINTER || m->word > (int64_t)type_size(op->type);
    int64_t word = !op->align && words && m->word > 0 ? m->word : 1;
    int64_t granule = v->granule[p->memory], all[] = {align, word, granule};
    for (int k = 0; k < 3; k++)
        if (!aligned(&w->offset[o], p->address, all[k]) ||
            (p->slots > 1 && all[k] > 1 && p->bytes % all[k] != 0))
            return sym_fail(w->s, "operand '%s' of '%s' is not known to be aligned", op->buffer,
                            w->in->id);
    return true;
}

static bool check_bounds(struct work *w, int o) {
    const struct place *p = &w->s->v->s->place[w->n->arg[o].place];
    const struct shape_operand *h = &w->h->operand[o];
    int64_t lo, hi;
    int64_t low = h->nruns ? h->low : 0, high = h->nruns ? h->high : 0;
    affine_range(w->s, &w->offset[o], &lo, &hi);
    return (lo + low >= 0 && hi + high <= p->bytes &&
            !(h->instance && p->bytes > INSTANCE_BYTES)) ||
           sym_fail(w->s, "operand '%s' of '%s' is not known to stay inside '%s'",
                    w->in->operand[o].buffer, w->in->id, p->name);
}

/* Bytes at which the operand may begin, in all slots. */
static void begins(const struct work *w, int o, int64_t *lo, int64_t *hi) {
    const struct place *p = &w->s->v->s->place[w->n->arg[o].place];
    affine_range(w->s, &w->offset[o], lo, hi);
    *lo += p->address;
    *hi += p->address + (p->slots - 1) * p->bytes;
}

/* The rule says that two operands are apart, and wherever they begin they are. */
static bool kept_apart(const struct work *w, const struct mexpr *rule) {
    const char *function;
    int o[2];
    int64_t lo[2], hi[2], piece = 1, banks = 0;
    if (!require_apart(w->in, rule, &function, &o[0], &o[1])) return false;
    for (int k = 0; k < 2; k++) {
        if (w->n->arg[o[k]].place < 0) return false;
        begins(w, o[k], &lo[k], &hi[k]);
    }
    int memory = w->s->v->s->place[w->n->arg[o[0]].place].memory;
    const struct memory *m = &w->s->v->m->memory[memory];
    if (memory != w->s->v->s->place[w->n->arg[o[1]].place].memory) return true;
    if (!strcmp(function, "word")) piece = m->word > 0 ? m->word : 1;
    if (!strcmp(function, "bank")) {
        if (m->banks < 2 || m->size < m->banks) return false;
        piece = m->interleave > 0 ? m->interleave : m->size / m->banks;
        banks = m->banks;
    }
    int64_t first = lo[0] / piece, last = hi[0] / piece, from = lo[1] / piece, to = hi[1] / piece;
    if (lo[0] < 0 || lo[1] < 0) return false;
    if (!banks) return last < from || to < first;
    /* Banks come round again: the others' first is behind our last, and their last before we begin
     * again. */
    int64_t behind = ((from - first) % banks + banks) % banks;
    return behind > last - first && behind + to - from < banks;
}

/* Slots from the first to the last in which a state of words must hold what is needed: those of the
 * words in which the operand may begin. */
static bool words_needed(const struct work *w, const struct need *n, int64_t *first,
                         int64_t *last) {
    int memory = w->s->v->m->state[n->state].of, o = 0;
    int64_t word = w->s->v->m->memory[memory].word;
    while (o < w->in->noperands && (!n->of || strcmp(w->in->operand[o].buffer, n->of) != 0)) o++;
    if (o == w->in->noperands || w->n->arg[o].place < 0 ||
        w->s->v->s->place[w->n->arg[o].place].memory != memory)
        return false;
    begins(w, o, first, last);
    if (*first < 0) return false;
    *first = w->s->first_setting[n->state] + *first / (word > 0 ? word : 1);
    *last = w->s->first_setting[n->state] + *last / (word > 0 ? word : 1);
    return *last < w->s->first_setting[n->state + 1];
}

static bool holds(const struct setting *x, const struct setting *want) {
    return x->known && !memcmp(x->value, want->value, sizeof x->value);
}

/* One of the state's slots holds what the instruction needs; of one of words, each that is meant.
 */
static bool need_holds(struct work *w, struct site *site, const struct need *n, bool fixed) {
    struct sym *s = w->s;
    const struct state *state = &s->v->m->state[n->state];
    struct mexpr_env env = site_env(site);
    struct setting want = {.known = true};
    if (s->first_setting[n->state] == s->first_setting[n->state + 1] ||
        n->nvalues != state->nfields)
        return sym_never(s, "state '%s' is not followed", state->id);
    for (int f = 0; f < n->nvalues; f++)
        if ((!fixed && asks_addresses(n->value[f])) ||
            !mexpr_integer(n->value[f], &env, &want.value[f], NULL))
            return sym_fail(s, "what '%s' needs of state '%s' is not known", w->in->id, state->id);
    int64_t first, last, k;
    if (state->of >= 0) {
        if (words_needed(w, n, &first, &last)) {
            for (k = first; k <= last && holds(&s->setting[k], &want); k++) {
            }
            if (k > last) return true;
        }
    } else {
        for (k = s->first_setting[n->state]; k < s->first_setting[n->state + 1]; k++)
            if (holds(&s->setting[k], &want)) return true;
    }
    return sym_fail(s, "state '%s' is not known to hold what '%s' needs", state->id, w->in->id);
}

static bool needs_hold(struct work *w, struct site *site, bool fixed) {
    for (int k = 0; k < w->in->nneeds; k++)
        if (!state_from_addresses(w->s->v->m, w->in->need[k].state) &&
            !need_holds(w, site, &w->in->need[k], fixed))
            return false;
    return true;
}

static bool check_site(struct work *w) {
    struct verify *v = w->s->v;
    struct place_at at[MAX_OPERANDS_OF_ISSUE] = {{0}};
    struct site site = {v, w->n, w->h, w->size, w->stride, w->flag, at};
    bool fixed = true;
    for (int o = 0; o < w->in->noperands; o++) {
        int64_t offset;
        if (w->n->arg[o].place < 0) continue;
        const struct place *p = &v->s->place[w->n->arg[o].place];
        fixed &= affine_constant(&w->offset[o], &offset) && p->slots == 1;
        at[o] = (struct place_at){p->memory, 0, p->address + w->offset[o].l.c};
    }
    for (int k = 0; k < w->in->nrequires; k++) {
        if (kept_apart(w, w->in->require[k])) continue;
        if (!fixed && asks_addresses(w->in->require[k]))
            return sym_fail(w->s, "a rule of '%s' depends on addresses", w->in->id);
        if (!site_check_rule(&site, k)) return false;
    }
    if (!needs_hold(w, &site, fixed) || !work_remains_once(w)) return false;
    for (int o = 0; o < w->in->noperands; o++) {
        if (w->n->arg[o].place < 0) continue;
        if (!check_alignment(w, &site, o) || !check_bounds(w, o)) return false;
    }
    return true;
}

/* ---- dimensions ---- */

/* Everywhere executed, and the source is read everywhere but where a move fills. */
static bool whole_accesses(const struct work *w) {
    for (int r = 0; r <= w->h->stmt->nreads; r++)
        for (int d = 0; d < w->f->ndims && (r == 0 || w->stmt); d++)
            if (w->f->access[r].lo[d] > 0 || w->f->access[r].hi[d] + 1 < w->f->dim[d].n)
                return sym_fail(w->s, "'%s' has points that it leaves out", w->in->id);
    return true;
}

/* What axes, loops and the instruction's own dimensions make of addresses and points. */
static bool make_forms(struct work *w) {
    struct sym *s = w->s;
    const struct program *p = s->v->p;
    for (int d = 0; d < w->f->ndims; d++) {
        w->fit_dim[d] = -1;
        if (!sym_add_dim(s, w->f->dim[d].n, &w->fit_dim[d])) return false;
    }
    for (int r = -1; r < w->h->stmt->nreads; r++) {
        int o = r < 0 ? w->h->dst_operand : w->h->read_operand[r];
        const struct fit_access *c = &w->f->access[r + 1];
        w->access[r + 1] = w->offset[o];
        w->access[r + 1].l.c += c->base;
        for (int d = 0; d < w->f->ndims; d++) w->access[r + 1].d[w->fit_dim[d]] += c->step[d];
    }
    for (int a = 0; w->stmt && a < p->naxes; a++) {
        w->point[a] = affine_of(0);
        if (w->n->base[a] && !sym_eval(s, w->n->base[a], &w->point[a])) return false;
    }
    for (int d = 0; w->stmt && d < w->f->ndims; d++) {
        int a = w->n->axis[w->f->dim[d].axis];
        if (a >= 0) w->point[a].d[w->fit_dim[d]] += w->f->dim[d].weight;
    }
    for (int d = 0; d < s->ndims; d++) w->full[d] = w->valid[d] = s->n[d];
    return true;
}

/* ---- the issue ---- */
/* Box after box: none of them reads what another one writes. */
static bool move_boxes(struct work *w) {
    struct sym *s = w->s;
    const struct place *place = s->v->s->place;
    int from = w->n->arg[w->h->read_operand[0]].place, to = w->n->arg[w->h->dst_operand].place,
        ndims = s->ndims;
    if (w->stmt) return sym_fail(s, "the accesses of '%s' are not affine", w->in->id);
    if (w->again) return sym_fail(s, "a move of several boxes, in loops");
    if (from < 0 || to < 0 || from == to || places_share(&place[from], &place[to]))
        return sym_fail(s, "a move of several boxes in place");
    for (const struct fit *f = w->f; f; f = f->rest) {
        struct work there = *w;
        there.f = f;
        s->ndims = ndims;
        if (!sym_spend(s, 1) || !whole_accesses(&there) || !make_forms(&there) ||
            !work_move(&there))
            return false;
    }
    return true;
}

static bool evaluate(struct work *w) {
    struct sym *s = w->s;
    int nflags = instr_flag_count(w->in);
    if (w->in->nranged > 64 || w->in->nstride_names > 64 || nflags > 64)
        return sym_fail(s, "'%s' has many sizes", w->in->id);
    for (int k = 0; k < w->in->nranged; k++)
        if (!sym_integer(s, w->n->size[k], &w->size[k])) return false;
    for (int k = 0; k < w->in->nstride_names; k++)
        if (!sym_integer(s, w->n->stride[k], &w->stride[k])) return false;
    for (int k = 0; k < nflags; k++)
        if (!sym_integer(s, w->n->flag[k], &w->flag[k])) return false;
    for (int o = 0; o < w->in->noperands; o++)
        if (w->n->arg[o].place >= 0 && !sym_eval(s, w->n->arg[o].offset, &w->offset[o]))
            return false;
    return site_check_sizes(s->v, w->in, w->size) && site_check_flags(s->v, w->flag, nflags);
}

static bool reads_itself(const struct shape *h) {
    if (h->stmt->combine != COMBINE_SET) return true;
    for (int r = 0; r < h->stmt->nreads; r++)
        if (h->read_operand[r] == h->dst_operand) return true;
    return false;
}

static void begin(struct work *w, struct sym *s, const struct issue_node *n) {
    memset(w, 0, offsetof(struct work, size));
    w->s = s;
    w->n = n;
    w->in = &s->v->m->instr[n->instr];
    memset(w->offset, 0, (size_t)w->in->noperands * sizeof *w->offset);
}

static bool one_issue(struct sym *s, const struct issue_node *n, bool again) {
    struct work w;
    int64_t cost;
    begin(&w, s, n);
    w.again = again;
    for (int d = 0; d < s->ndims; d++) w.of_loop[d] = true;
    s->nexecuted = 0;
    if (n->nalso) return sym_fail(s, "issues of several statements are not followed");
    if (!evaluate(&w)) return false;
    w.h = shape_get(s->v, n, w.size, w.stride);
    if (!w.h) return sym_fail(s, "'%s' is not followed", w.in->id);
    w.f = fit_get(s->v, w.h, &cost);
    if (!w.f) return sym_fail(s, "the accesses of '%s' are not affine", w.in->id);
    if (n->stmt >= 0) w.stmt = &s->v->p->stmt[n->stmt];
    w.overwrite = w.h->initialises || !reads_itself(w.h);
    for (int k = 0; k < instr_flag_count(w.in); k++)
        if (instr_flag_operand(w.in, k) == w.h->dst_operand && w.flag[k] == 0) w.overwrite = true;
    if (!sym_spend(s, 4 + cost / 64) || !check_site(&w)) return false;
    if (w.f->rest) return move_boxes(&w);
    if (!whole_accesses(&w) || !make_forms(&w)) return false;
    if (!(w.stmt ? work_compute(&w) : work_move(&w))) return false;
    work_remain(&w);
    return box_executed(s);
}

static bool enter(struct sym *s, const struct loop_node *l, int64_t *trips, bool dim) {
    struct affine lo, hi;
    if (!sym_eval(s, l->lo, &lo) || !sym_eval(s, l->hi, &hi)) return false;
    if (!affine_add(&hi, &lo, -1) || !affine_constant(&hi, trips))
        return sym_fail(s, "how often a loop runs depends on a loop counter");
    *trips = *trips <= 0 ? 0 : (*trips - 1) / l->step + 1;
    sym_set(s, l->var, &lo);
    if (!dim || *trips <= 1) return true;
    int d = 0;
    if (!sym_add_dim(s, *trips, &d)) return false;
    s->var[l->var].d[d] = l->step;
    return true;
}

bool box_issue(struct sym *s, const struct nest *nest) {
    struct hardware h = {.table = -1};
    const struct loop_node *u = NULL;
    bool hardware = false;
    int64_t entries = 1;
    if (nest->issue->stmt >= 0 && s->v->in_order[nest->issue->stmt])
        return sym_fail(s, "a sum's points have an order");
    s->ndims = 0;
    for (int k = 0; k < nest->n; k++) {
        const struct loop_node *l = nest->loop[k];
        int64_t trips;
        if (l->kind == LOOP_PARALLEL) return sym_fail(s, "a parallel loop is no dimension");
        if (!enter(s, l, &trips, !l->table)) return false;
        if (trips == 0 && l->kind == LOOP_HARDWARE)
            return sym_fail(s, "a hardware loop does not run");
        if (trips == 0) return true;
        if (l->kind != LOOP_HARDWARE) continue;
        if (!hardware && !hardware_issue(s->v->m, l, &h))
            return sym_fail(s, "hardware loops around no issue");
        hardware = true;
        for (int i = 0; i < h.nloops; i++)
            if (h.loop[i] == l && trips > h.counter[i]->max)
                return sym_fail(s, "a hardware loop runs too often");
        if (l->table) {
            u = l;
            entries = trips;
        }
    }
    bool again = nest->n > 0 && nest->loop[0]->kind != LOOP_HARDWARE;
    if (!u) return one_issue(s, nest->issue, again);
    if (!box_entries_there(s, &h, entries)) return false;
    struct affine first = s->var[u->var];
    int ndims = s->ndims;
    int64_t n[SYM_DIMS];
    memcpy(n, s->n, sizeof n);
    for (int64_t k = 0; k < entries; k++) {
        s->var[u->var] = first;
        s->var[u->var].l.c += k * u->step;
        s->ndims = ndims;
        memcpy(s->n, n, sizeof n);
        if (!one_issue(s, nest->issue, again)) return false;
    }
    return true;
}
