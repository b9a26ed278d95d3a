/* What `isamap check` says beyond machine_check: the file has a meaning, but not the one that its
 * author can have wanted. Costs below 0 are errors, and so is a machine from which no result
 * comes home; the rest are warnings. */
#include "machines/check.h"
#include <stdlib.h>
#include <string.h>

/* ---- ways between memories ---- */

/* A cache is the memory that it caches, an alias the one that it names; chains of them end. */
static int memory_behind(const struct machine *m, int y) {
    while (y >= 0) {
        int next = m->memory[y].caches >= 0 ? m->memory[y].caches : m->memory[y].alias;
        if (next < 0) break;
        y = next;
    }
    return y;
}

static bool in_any(const struct machine *m, const struct operand *o, const bool *set) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] == MEMORY_IMM || set[memory_behind(m, o->memory[k])]) return true;
    return false;
}

static bool is_read(const struct operand *o) {
    return o->role == ROLE_IN || o->role == ROLE_CONST || (o->role == ROLE_INOUT && !o->accumulate);
}

static bool is_written(const struct operand *o) {
    return o->role == ROLE_OUT || o->role == ROLE_INOUT;
}

/* The operand that nothing brings; NULL: all come. */
static const struct operand *missing(const struct machine *m, const struct instr *x,
                                     const bool *filled) {
    for (int i = 0; i < x->noperands; i++)
        if (is_read(&x->operand[i]) && !in_any(m, &x->operand[i], filled)) return &x->operand[i];
    return NULL;
}

static bool fill(const struct machine *m, const struct operand *o, bool *filled) {
    bool more = false;
    for (int k = 0; k < o->nmemories && is_written(o); k++) {
        int y = memory_behind(m, o->memory[k]);
        if (y < 0 || filled[y]) continue;
        more = filled[y] = true;
    }
    if (o->also >= 0 && !filled[memory_behind(m, o->also)])
        more = filled[memory_behind(m, o->also)] = true;
    return more;
}

/* The home, and what a fallback uses: it can copy. */
static void begin(const struct machine *m, bool *set) {
    set[m->home] = true;
    for (int f = 0; f < m->nfallbacks; f++)
        for (int k = 0; k < m->fallback[f].nmemories; k++)
            set[memory_behind(m, m->fallback[f].memory[k])] = true;
}

/* Memories that values from home come to. */
static void find_filled(const struct machine *m, bool *filled) {
    begin(m, filled);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->ninstrs; i++) {
            const struct instr *x = &m->instr[i];
            if (missing(m, x, filled)) continue;
            for (int o = 0; o < x->noperands; o++) more |= fill(m, &x->operand[o], filled);
        }
    }
}

/* Memories from which values come home: something reads them and writes where they do. */
static void find_homeward(const struct machine *m, bool *homeward) {
    begin(m, homeward);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->ninstrs; i++) {
            const struct instr *x = &m->instr[i];
            bool leads = false;
            for (int o = 0; o < x->noperands; o++)
                leads |= is_written(&x->operand[o]) && in_any(m, &x->operand[o], homeward);
            for (int o = 0; o < x->noperands && leads; o++)
                for (int k = 0; k < x->operand[o].nmemories; k++) {
                    int y = memory_behind(m, x->operand[o].memory[k]);
                    if (x->operand[o].role == ROLE_OUT || y < 0 || homeward[y]) continue;
                    more = homeward[y] = true;
                }
        }
    }
}

static void warn(struct diags *d, struct place_in_file at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void warn(struct diags *d, struct place_in_file at, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    diag_warn(d, at.file, at.line, 0, "%s", text);
}

static const char *memories_text(const struct machine *m, const struct operand *o, struct text *t) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] >= 0)
            text_printf(t, "%s'%s'", t->n ? " or " : "", m->memory[o->memory[k]].id);
    return t->at ? t->at : "";
}

static const struct operand *lost(const struct machine *m, const struct instr *x,
                                  const bool *homeward) {
    for (int o = 0; o < x->noperands && !x->is_move; o++)
        if (is_written(&x->operand[o]) && !in_any(m, &x->operand[o], homeward))
            return &x->operand[o];
    return NULL;
}

static bool any_comes_home(const struct machine *m, const bool *filled, const bool *homeward) {
    bool any = false;
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        bool results = false;
        for (int o = 0; o < x->noperands; o++) results |= is_written(&x->operand[o]);
        if (x->is_move || !results) continue;
        any = true;
        if (!missing(m, x, filled) && !lost(m, x, homeward)) return true;
    }
    return !any;
}

static void check_ways(const struct machine *m, struct diags *d) {
    bool *filled = calloc((size_t)m->nmemories + 1, sizeof *filled),
         *homeward = calloc((size_t)m->nmemories + 1, sizeof *homeward);
    if (!filled || !homeward) abort();
    find_filled(m, filled);
    find_homeward(m, homeward);
    bool some = any_comes_home(m, filled, homeward);
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        const struct operand *in = missing(m, x, filled), *out = lost(m, x, homeward);
        struct text t = {0};
        if (in)
            warn(
                d, x->at,
                "nothing can ever use '%s': no chain of moves brings operand '%s' from '%s' to %s, "
                "expected one",
                x->id, in->buffer, m->memory[m->home].id, memories_text(m, in, &t));
        else if (out && some)
            warn(d, x->at,
                 "what '%s' leaves in %s has no way home: no chain of moves leads from there to "
                 "'%s', expected one",
                 x->id, memories_text(m, out, &t), m->memory[m->home].id);
        else if (out)
            check_error(d, x->at,
                        "what '%s' leaves in %s has no way home, and no other result has: no chain "
                        "of moves leads from there to '%s', expected one",
                        x->id, memories_text(m, out, &t), m->memory[m->home].id);
        text_free(&t);
    }
    free(filled);
    free(homeward);
}

/* ---- emits ---- */

static void check_emits(const struct machine *m, struct diags *d) {
    int with = 0;
    for (int i = 0; i < m->ninstrs; i++) with += m->instr[i].nemits > 0;
    for (int i = 0; i < m->ninstrs && with; i++)
        if (!m->instr[i].nemits)
            warn(d, m->instr[i].at,
                 "'%s' has no emit, others have: no backend can use it, only the simulator; "
                 "expected one",
                 m->instr[i].id);
}

/* ---- instances ---- */

/* An operand in no memory of the unit's; NULL: there is none. */
static const struct operand *held_outside(const struct machine *m, const struct instr *x,
                                          int unit) {
    for (int i = 0; i < x->noperands; i++) {
        const struct operand *o = &x->operand[i];
        bool inside = false;
        for (int k = 0; k < o->nmemories; k++)
            inside |= o->memory[k] == MEMORY_IMM || memory_is_home(m, o->memory[k]) ||
                      unit_inside(m, m->memory[o->memory[k]].unit, unit);
        if (!inside) return o;
    }
    return NULL;
}

static bool runs_inside(const struct machine *m, const struct instr *x, int unit) {
    return !x->is_move && x->queue >= 0 && unit_inside(m, m->queue[x->queue].unit, unit);
}

/* Are there instances of a unit around it, each with all that the instruction has? */
static bool shared_around(const struct machine *m, const struct instr *x, int unit) {
    for (int u = m->unit[unit].parent; u > 0; u = m->unit[u].parent)
        if ((m->unit[u].is_virtual || m->unit[u].count_max > 1) && !held_outside(m, x, u))
            return true;
    return false;
}

/* Where others can run on several instances, those that cannot. */
static void check_one_instance(const struct machine *m, int u, struct diags *d) {
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        const struct operand *o = runs_inside(m, x, u) ? held_outside(m, x, u) : NULL;
        if (o && !shared_around(m, x, u))
            warn(d, x->at,
                 "only one instance of unit '%s' executes '%s': its operand '%s' lies in a memory "
                 "outside of the unit, expected one in it",
                 m->unit[u].id, x->id, o->buffer);
    }
}

/* Instances of a unit work together where it has the queue itself (they share the loop of a nest),
 * or where the schedule chooses how many there are and each has all memories of what it does. */
static void check_instances(const struct machine *m, struct diags *d) {
    for (int u = 1; u < m->nunits; u++) {
        const struct unit *y = &m->unit[u];
        bool chosen = y->is_virtual || y->count_max > y->count, used = false, any = false;
        if (y->count < 2 && y->count_max < 2) continue;
        for (int i = 0; i < m->ninstrs; i++) {
            const struct instr *x = &m->instr[i];
            if (!runs_inside(m, x, u)) continue;
            any = true;
            used |= chosen ? !held_outside(m, x, u) : m->queue[x->queue].unit == u;
        }
        if (used && chosen) check_one_instance(m, u, d);
        if (!any || used) continue;
        warn(d, y->at, "only one instance of unit '%s' can run: %s", y->id,
             chosen ? "its instructions use memories outside of it, expected memories of its own"
                    : "its instructions are on queues of units inside it, expected a queue of its "
                      "own, or a range for count");
    }
}

/* ---- intervals, latencies, overheads ---- */

struct corner_of { /* parameters and sizes at which a cost is looked at */
    const struct machine *m;
    const struct sizes *sizes; /* NULL: none */
};

static bool name_value(void *user, const char *name, const char *field, double *out) {
    const struct corner_of *c = user;
    for (int i = 0; c->sizes && !field && i < c->sizes->n; i++)
        if (!strcmp(c->sizes->at[i].name, name)) return *out = (double)c->sizes->at[i].value, true;
    for (int i = 0; !field && i < c->m->nparams; i++)
        if (!strcmp(c->m->param[i].name, name)) return *out = (double)c->m->param[i].value, true;
    return false;
}

struct costs {
    const struct mexpr *interval, *latency, *overhead;
};

/* An interval of 0 is hardly meant; nothing takes less than no time. False after reporting. */
static bool check_cost(const struct corner_of *c, const struct mexpr *e, const char *cost,
                       const char *what, struct place_in_file at, struct diags *d) {
    struct mexpr_env env = {.name = name_value, .user = (void *)(uintptr_t)c};
    bool positive = !strcmp(cost, "interval");
    double cycles;
    if (!e || !mexpr_eval(e, &env, &cycles, NULL) || cycles > 0 || (cycles >= 0 && !positive))
        return true;
    struct text t = {0};
    for (int i = 0; i < c->m->nparams; i++)
        if (c->m->param[i].has_range)
            text_printf(&t, "%s%s=%lld", t.n ? ", " : " at ", c->m->param[i].name,
                        (long long)c->m->param[i].value);
    for (int i = 0; c->sizes && i < c->sizes->n; i++)
        text_printf(&t, "%s%s=%lld", t.n ? ", " : " at ", c->sizes->at[i].name,
                    (long long)c->sizes->at[i].value);
    (cycles < 0 ? check_error : warn)(d, (struct place_in_file){at.file, e->line},
                                      "%s of %s is %.6g%s, expected %s for all values in range",
                                      cost, what, cycles, t.at ? t.at : "",
                                      positive ? "more than 0" : "0 or more");
    text_free(&t);
    return false;
}

static bool check_costs(const struct corner_of *c, struct costs x, const char *what,
                        struct place_in_file at, struct diags *d) {
    return check_cost(c, x.interval, "interval", what, at, d) &&
           check_cost(c, x.latency, "latency", what, at, d) &&
           check_cost(c, x.overhead, "overhead", what, at, d);
}

/* All that have costs, with the parameters as `m` has them; said[i]: of instruction i. */
static void check_costs_at(const struct machine *m, bool *said, struct diags *d) {
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        for (int c = CORNER_LOW; c <= CORNER_HIGH && !said[i]; c++) {
            struct sizes s = check_sizes(m, x, (enum corner)c);
            struct corner_of at = {m, &s};
            struct text what = {0};
            text_printf(&what, "'%s'", x->id);
            if (s.known)
                said[i] = !check_costs(&at, (struct costs){x->interval, x->latency, x->overhead},
                                       what.at, x->at, d);
            text_free(&what);
        }
    }
    struct corner_of at = {m, NULL};
    for (int i = 0; i < m->nconfigures; i++) {
        const struct configure *x = &m->configure[i];
        bool *known = &said[m->ninstrs + i];
        if (!*known)
            *known = !check_costs(&at, (struct costs){x->interval, x->latency, x->overhead}, x->id,
                                  x->at, d);
    }
    for (int i = 0; i < m->nfallbacks; i++) {
        const struct fallback *x = &m->fallback[i];
        bool *known = &said[m->ninstrs + m->nconfigures + i];
        if (!*known)
            *known = !check_costs(&at, (struct costs){x->interval, x->latency, NULL},
                                  "the fallback", m->unit[x->unit].at, d);
    }
}

/* Every parameter at either end of its range, alone and all together. */
static void check_all_costs(const struct machine *m, struct diags *d) {
    size_t n = (size_t)(m->ninstrs + m->nconfigures + m->nfallbacks) + 1;
    struct machine at = *m;
    struct param *param = calloc((size_t)m->nparams + 1, sizeof *param);
    struct binding *value = calloc((size_t)m->nparams + 1, sizeof *value);
    bool *said = calloc(n, sizeof *said);
    if (!param || !value || !said) abort();
    at.param = param;
    at.params.at = value;
    for (int end = 0; end < 2; end++)
        for (int which = -2; which < m->nparams; which++) { /* -2: as they are; -1: all */
            if (which >= 0 && !m->param[which].has_range) continue;
            for (int i = 0; i < m->nparams; i++) {
                param[i] = m->param[i];
                if (param[i].has_range && (which == -1 || which == i))
                    param[i].value = end ? param[i].hi : param[i].lo;
                value[i] = (struct binding){param[i].name, param[i].value};
            }
            check_costs_at(&at, said, d);
        }
    free(param);
    free(value);
    free(said);
}

bool machine_advise(const struct machine *m, struct diags *d) {
    int before = d->errors;
    check_all_costs(m, d);
    check_ways(m, d);
    check_emits(m, d);
    check_instances(m, d);
    check_axes(m, d);
    check_signals(m, d);
    return d->errors == before;
}
