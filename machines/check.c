#include "machines/check.h"
#include <string.h>

void check_error(struct diags *d, struct place_in_file at, const char *fmt, ...) {
    struct text t = {0};
    char small[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    text_append(&t, small, n < (int)sizeof small ? (size_t)n : sizeof small - 1);
    diag_line(d, at.file, at.line, 0, "%s", t.at ? t.at : "");
    text_free(&t);
}

bool unit_inside(const struct machine *m, int unit, int outer) {
    for (; unit >= 0; unit = m->unit[unit].parent)
        if (unit == outer) return true;
    return false;
}

/* ---- sizes ---- */

/* Sizes are those that an axis can have, or 0: a range within them has no ends too far apart. */
static const int64_t most_size = INT64_C(1) << 48;

static bool size_at(const struct kernel_param *p, const struct bindings *names, enum corner corner,
                    int64_t *out, bool *unbounded) {
    int64_t lo, hi, step = 1;
    if (p->value) return expr_integer(p->value, names, out);
    if (!p->lo) {
        *out = corner == CORNER_LOW ? 1 : 16;
        *unbounded = corner == CORNER_HIGH;
        return true;
    }
    if (!expr_integer(p->lo, names, &lo) || !expr_integer(p->hi, names, &hi)) return false;
    if (p->step && !expr_integer(p->step, names, &step)) return false;
    if (step < 1 || lo < 0 || lo > hi || hi > most_size) return false;
    int64_t steps = corner == CORNER_LOW ? 0 : (hi - lo) / step;
    if (corner == CORNER_MIDDLE && steps > 15) steps = 15;
    *out = lo + steps * step;
    return true;
}

struct sizes check_sizes(const struct machine *m, const struct instr *x, enum corner corner) {
    struct sizes s = {.known = x->semantics->nparams <= MOST_SIZES};
    int ranged = 0;
    for (int i = 0; i < x->semantics->nparams && s.known; i++) {
        const struct kernel_param *p = &x->semantics->param[i];
        struct bindings names = {s.at, s.n, &m->params};
        int64_t v = 0;
        bool unbounded = false;
        s.missing = p;
        s.known = size_at(p, &names, corner, &v, &unbounded);
        if (!p->value) {
            s.ranged[ranged] = v;
            s.unbounded[ranged++] = unbounded;
        }
        if (!unbounded) s.at[s.n++] = (struct binding){p->name, v};
    }
    return s;
}

/* ---- one instruction ---- */

static void check_scope(const struct machine *m, const struct instr *x, const struct mexpr *e,
                        const char *what, struct diags *d) {
    struct scope s = {.machine = m, .instr = x};
    if (e) scope_check(&s, e, x->at.file, e->line, what, d);
}

static bool is_no_distance(void *instr, const struct mexpr *leaf) {
    const struct instr *x = instr;
    for (int i = 0; i < x->nstride_names && leaf->kind == MEXPR_NAME; i++)
        if (!strcmp(x->stride_name[i], leaf->name)) return false;
    return true;
}

/* Rules by which nobody plans. */
static void check_rule(const struct instr *x, const struct mexpr *rule, struct diags *d) {
    struct place_in_file at = {x->at.file, rule->line};
    if (require_unplanned(x, rule))
        check_error(d, at,
                    "the rule '%s' of '%s' says where operands lie, expected f(A) != f(B), "
                    "word(A) %% N == 0 or addr(A) %% N == 0: places are planned by these alone",
                    rule->text, x->id);
    else if (!x->is_move && !mexpr_names(rule, is_no_distance, (void *)(uintptr_t)x))
        check_error(
            d, at,
            "the rule '%s' of '%s' speaks of a distance that the schedule chooses, expected "
            "sizes and parameters; 'align' of an operand says where rows may begin",
            rule->text, x->id);
}

static bool goes_by(const struct operand *o, const char *name) {
    for (int k = 0; k < o->nlayouts; k++)
        for (int i = 0; i < o->layout[k].nstrides; i++)
            if (o->layout[k].stride[i]->kind == MEXPR_NAME &&
                !strcmp(o->layout[k].stride[i]->name, name))
                return true;
    return false;
}

/* Each copy has a distance of its own. */
static void check_distances(const struct instr *x, struct diags *d) {
    for (int s = 0; s < x->nstride_names && !x->is_move; s++) {
        int n = 0;
        for (int i = 0; i < x->noperands; i++) n += goes_by(&x->operand[i], x->stride_name[s]);
        if (n > 1)
            check_error(d, x->at,
                        "%d operands of '%s' go by the distance '%s', expected a name for each: "
                        "the schedule chooses one for each copy",
                        n, x->id, x->stride_name[s]);
    }
}

static void check_expressions(const struct machine *m, const struct instr *x, struct diags *d) {
    check_scope(m, x, x->latency, "latency", d);
    check_scope(m, x, x->interval, "interval", d);
    check_scope(m, x, x->overhead, "overhead", d);
    check_scope(m, x, x->energy, "energy", d);
    for (int i = 0; i < x->nrequires; i++) {
        check_scope(m, x, x->require[i], "require", d);
        check_rule(x, x->require[i], d);
    }
    if (x->nrequires && !x->is_move && !instr_has_sizes(m, x))
        check_error(d, (struct place_in_file){x->at.file, x->require[0]->line},
                    "the rules of '%s' allow none of its sizes, expected some", x->id);
    check_distances(x, d);
    for (int i = 0; i < x->nneeds; i++)
        for (int k = 0; k < x->need[i].nvalues; k++)
            check_scope(m, x, x->need[i].value[k], "need", d);
    for (int i = 0; i < x->noperands; i++) {
        const struct operand *o = &x->operand[i];
        check_scope(m, x, o->align, "align", d);
        for (int k = 0; k < o->nlayouts; k++)
            for (int j = 0; j < o->layout[k].nstrides; j++)
                check_scope(m, x, o->layout[k].stride[j], "strides", d);
    }
}

static bool operand_exists(const struct instr *x, const char *buffer) {
    for (int i = 0; i < x->noperands; i++)
        if (!strcmp(x->operand[i].buffer, buffer)) return true;
    return false;
}

static void check_needs(const struct machine *m, const struct instr *x, struct diags *d) {
    for (int i = 0; i < x->nneeds; i++) {
        const struct need *n = &x->need[i];
        const struct state *s = &m->state[n->state];
        struct place_in_file at = {x->at.file, n->value[0]->line};
        if (n->nvalues != s->nfields)
            check_error(
                d, at, "need of '%s' has %d values for state '%s', expected %d, one for each field",
                x->id, n->nvalues, s->id, s->nfields);
        if (n->of && !operand_exists(x, n->of))
            check_error(d, at, "need of '%s' is of '%s', expected one of its operands", x->id,
                        n->of);
        if (s->of >= 0 && !n->of)
            check_error(d, at,
                        "need of '%s' names no operand, expected of=\"…\" because state '%s' has a "
                        "value for each word of memory '%s'",
                        x->id, s->id, m->memory[s->of].id);
        if (s->of < 0 && n->of)
            check_error(
                d, at,
                "need of '%s' is of '%s', but state '%s' belongs to no memory, expected no of",
                x->id, n->of, s->id);
    }
}

static void check_operand_memory(const struct machine *m, const struct instr *x,
                                 const struct operand *o, int memory, struct diags *d) {
    if (memory == MEMORY_IMM) return;
    const struct memory *y = &m->memory[memory];
    uint32_t types = (UINT32_C(1) << o->type) | x->move_types;
    if (y->types && !(y->types & types))
        check_error(d, o->at, "operand '%s' of '%s' is %s, but memory '%s' does not hold that type",
                    o->buffer, x->id, type_name(o->type), y->id);
    if (!unit_inside(m, x->unit, y->unit) && !unit_inside(m, y->unit, x->unit))
        check_error(d, o->at,
                    "operand '%s' of '%s' is in memory '%s' of unit '%s', which unit '%s' does not "
                    "see, expected a memory of its own, of "
                    "an outer or of an inner unit",
                    o->buffer, x->id, y->id, m->unit[y->unit].id, m->unit[x->unit].id);
}

static void check_queue_of(const struct machine *m, const struct instr *x, struct diags *d) {
    if (x->queue < 0) {
        check_error(d, x->at, "%s '%s' has no queue, expected queue=\"…\"",
                    x->is_move ? "move" : "instruction", x->id);
        return;
    }
    if (!unit_inside(m, x->unit, m->queue[x->queue].unit))
        check_error(d, x->at,
                    "'%s' of unit '%s' is issued on queue '%s' of unit '%s', expected a queue of "
                    "its own or an outer unit",
                    x->id, m->unit[x->unit].id, m->queue[x->queue].id,
                    m->unit[m->queue[x->queue].unit].id);
    if (x->completes >= 0 && !(m->sync[x->completes].from >> x->queue & 1))
        check_error(
            d, x->at,
            "'%s' completes sync '%s', which does not come from queue '%s', expected one that does",
            x->id, m->sync[x->completes].id, m->queue[x->queue].id);
}

static void check_move(const struct machine *m, const struct instr *x, struct diags *d) {
    if (!x->is_move) return;
    if (x->across >= 0 && !unit_inside(m, x->unit, x->across))
        check_error(d, x->at,
                    "move '%s' goes across unit '%s', expected the unit it is in or an outer one",
                    x->id, m->unit[x->across].id);
    for (int i = 0; i < x->noperands && x->move_types; i++)
        if (x->operand[i].type != TYPE_I8 && x->operand[i].nmemories &&
            x->operand[i].memory[0] != MEMORY_IMM)
            check_error(
                d, x->operand[i].at,
                "move '%s' has types but its buffer '%s' is %s, expected a byte-wise copy of i8",
                x->id, x->operand[i].buffer, type_name(x->operand[i].type));
}

/* binds at two places of the ranges: what the IR has to say about the semantics */
static void check_semantics(const struct machine *m, const struct instr *x,
                            struct known_maps *known, struct diags *d) {
    if (x->semantics->nparams > MOST_SIZES) {
        check_error(d, x->at, "'%s' has %d parameters, expected at most %d", x->id,
                    x->semantics->nparams, MOST_SIZES);
        return;
    }
    for (int c = CORNER_LOW; c <= CORNER_MIDDLE; c++) {
        struct sizes s = check_sizes(m, x, (enum corner)c);
        if (!s.known) {
            diag_at(
                d, x->semantics->source, s.missing->at,
                "size '%s' of '%s' has no value here, expected numbers, machine parameters and "
                "earlier sizes, the smaller end of a range first, from 0 to 2^48, and steps from 1",
                s.missing->name, x->id);
            return;
        }
        struct program *p = instr_bind(m, x, s.ranged, d);
        if (!p) return;
        bool good = program_verify(p, d);
        if (good && c == CORNER_MIDDLE) check_instr_layouts(m, x, p, known, d);
        program_free(p);
        if (!good) return;
    }
}

/* What lies ahead is asked for and not read: the semantics are the same however far it is. */
static void check_ahead(const struct machine *m, const struct instr *x, const struct operand *o,
                        struct diags *d) {
    struct sizes s = check_sizes(m, x, CORNER_LOW), other = check_sizes(m, x, CORNER_HIGH);
    struct text text[2] = {{0}, {0}};
    for (int k = 0; k < 2; k++) {
        if (k) s.ranged[o->ahead] = other.ranged[o->ahead];
        struct program *p = instr_bind(m, x, s.ranged, d);
        if (p) program_print_body(p, &text[k]);
        if (p) program_free(p);
    }
    if (text[0].at && text[1].at && strcmp(text[0].at, text[1].at) != 0)
        check_error(d, o->at,
                    "the semantics of '%s' depend on size '%s', which says how far ahead operand "
                    "'%s' asks, expected a size of its own",
                    x->id, x->semantics->param[x->ranged[o->ahead]].name, o->buffer);
    text_free(&text[0]);
    text_free(&text[1]);
}

static void check_stored_ahead(const struct machine *m, const struct instr *x, struct diags *d) {
    bool caches = false;
    for (int k = 0; k < x->nto; k++) caches |= m->memory[x->to[k]].line > 0;
    for (int k = 0; k < x->nfrom; k++) caches |= m->memory[x->from[k]].line > 0;
    if (x->naheads && !caches)
        check_error(d, x->ahead->at,
                    "'%s' says how lines of a cache are asked for, but neither stores to one nor "
                    "reads one, expected no 'ahead'",
                    x->id);
    for (int i = 0; i < x->naheads; i++)
        if (x->ahead[i].language != LANGUAGE_LLVM)
            check_error(d, x->ahead[i].at, "the 'ahead' of '%s' is in '%s', expected llvm", x->id,
                        language_name[x->ahead[i].language]);
}

static bool leaves_copies(const struct instr *x) {
    for (int i = 0; i < x->noperands; i++)
        if (x->operand[i].also >= 0) return true;
    return false;
}

static void check_largest(const struct machine *m, const struct instr *x, struct diags *d) {
    struct sizes s = check_sizes(m, x, CORNER_HIGH);
    bool bounded = s.known;
    for (int i = 0; i < x->nranged; i++) bounded &= !s.unbounded[i];
    struct program *p = bounded ? instr_bind(m, x, s.ranged, d) : NULL;
    if (!p) return;
    check_copies(m, x, p, d);
    program_free(p);
}

static void check_instr(const struct machine *m, const struct instr *x, struct known_maps *known,
                        struct diags *d) {
    int before = d->errors;
    check_queue_of(m, x, d);
    check_move(m, x, d);
    check_stored_ahead(m, x, d);
    for (int i = 0; i < x->noperands; i++) {
        const struct operand *o = &x->operand[i];
        for (int k = 0; k < o->nmemories; k++) check_operand_memory(m, x, o, o->memory[k], d);
        if (o->also >= 0) check_operand_memory(m, x, o, o->also, d);
    }
    check_expressions(m, x, d);
    check_needs(m, x, d);
    if (d->errors > before) return;
    check_semantics(m, x, known, d);
    for (int i = 0; i < x->noperands && d->errors == before; i++)
        if (x->operand[i].ahead >= 0) check_ahead(m, x, &x->operand[i], d);
    if (d->errors == before && leaves_copies(x)) check_largest(m, x, d);
    check_instr_bits(m, x, d);
}

/* ---- the rest ---- */

static void check_states(const struct machine *m, struct diags *d) {
    for (int s = 0; s < m->nstates; s++) {
        bool set = false;
        for (int i = 0; i < m->nconfigures; i++)
            for (int k = 0; k < m->configure[i].nsets; k++)
                set = set || m->configure[i].sets[k] == s;
        if (!set)
            check_error(d, m->state[s].at,
                        "nothing sets state '%s', expected a configure with sets=\"%s\"",
                        m->state[s].id, m->state[s].id);
    }
}

static void check_memories(const struct machine *m, struct diags *d) {
    for (int i = 0; i < m->nmemories; i++) {
        const struct memory *y = &m->memory[i];
        if (y->size >= 0 && y->size % y->word)
            check_error(d, y->at, "memory '%s' of %lld bytes is no whole number of words of %lld",
                        y->id, (long long)y->size, (long long)y->word);
        if (y->align % y->word)
            check_error(d, y->at,
                        "align of memory '%s' is %lld, expected a multiple of its word of %lld",
                        y->id, (long long)y->align, (long long)y->word);
        int unit;
        int64_t bytes;
        if (y->pool && !memory_pool(m, i, &unit, &bytes))
            check_error(
                d, y->at,
                "pool '%s' of memory '%s' is none, expected a unit around its own and bytes, "
                "as in \"block 256K\"",
                y->pool, y->id);
        if (y->banks > 1 && y->size < 0)
            check_error(d, y->at, "memory '%s' has banks but no size, expected both", y->id);
        if (y->caches >= 0 && y->align != y->word)
            check_error(d, y->at,
                        "align of '%s' is %lld, expected none: that of the memory it caches counts",
                        y->id, (long long)y->align);
        if (y->alias >= 0 && y->caches >= 0)
            check_error(d, y->at, "memory '%s' is both a cache and an alias, expected one of them",
                        y->id);
        if (y->map && y->alias < 0)
            check_error(d, y->at, "memory '%s' has a map but is no alias, expected alias=\"…\"",
                        y->id);
    }
    for (int i = 0; i < m->nfallbacks; i++)
        for (int k = 0; k < m->fallback[i].nmemories; k++) {
            const struct memory *y = &m->memory[m->fallback[i].memory[k]];
            if (!unit_inside(m, m->fallback[i].unit, y->unit))
                check_error(d, m->unit[m->fallback[i].unit].at,
                            "the fallback of unit '%s' uses memory '%s', which it does not see, "
                            "expected one of its own "
                            "or an outer unit",
                            m->unit[m->fallback[i].unit].id, y->id);
        }
}

static void check_costs(const struct machine *m, struct diags *d) {
    struct scope s = {.machine = m, .states = true};
    for (int i = 0; i < m->nconfigures; i++) {
        const struct configure *c = &m->configure[i];
        scope_check(&s, c->latency, c->at.file, c->latency->line, "latency", d);
        scope_check(&s, c->interval, c->at.file, c->interval->line, "interval", d);
        scope_check(&s, c->overhead, c->at.file, c->overhead->line, "overhead", d);
    }
    for (int i = 0; i < m->nfallbacks; i++) {
        struct place_in_file at = m->unit[m->fallback[i].unit].at;
        scope_check(&s, m->fallback[i].latency, at.file, m->fallback[i].latency->line, "latency",
                    d);
        scope_check(&s, m->fallback[i].interval, at.file, m->fallback[i].interval->line, "interval",
                    d);
    }
}

bool machine_check(const struct machine *m, struct diags *d) {
    int before = d->errors;
    check_memories(m, d);
    check_states(m, d);
    check_costs(m, d);
    struct known_maps known = {.n = 0};
    arena_init(&known.arena);
    for (int i = 0; i < m->ninstrs; i++) check_instr(m, &m->instr[i], &known, d);
    arena_free(&known.arena);
    check_other_bits(m, d);
    check_queues(m, d);
    check_reach(m, d);
    return d->errors == before;
}
