/* Questions about a machine. */
#include "machines/machine.h"
#include "ir/number.h"
#include <string.h>

#define FIND(array, count)                                                                         \
    do {                                                                                           \
        for (int i = 0; i < m->count; i++)                                                         \
            if (!strcmp(m->array[i].id, id)) return i;                                             \
        return -1;                                                                                 \
    } while (0)

int machine_memory(const struct machine *m, const char *id) {
    FIND(memory, nmemories);
}

int machine_queue(const struct machine *m, const char *id) {
    FIND(queue, nqueues);
}

int machine_sync(const struct machine *m, const char *id) {
    FIND(sync, nsyncs);
}

int machine_instr(const struct machine *m, const char *id) {
    FIND(instr, ninstrs);
}

bool memory_is_home(const struct machine *m, int memory) {
    while (memory >= 0 && memory != m->home) memory = m->memory[memory].caches;
    return memory >= 0;
}

bool machine_needs_host(const struct machine *m) {
    return m->nfallbacks == 0;
}

bool machine_queue_is_host(const struct machine *m, int queue) {
    if (m->nfallbacks == 0) return false;
    for (int f = 0; f < m->nfallbacks; f++)
        if (unit_inside(m, m->queue[queue].unit, m->fallback[f].unit) ||
            unit_inside(m, m->fallback[f].unit, m->queue[queue].unit))
            return true;
    return false;
}

static bool asks_place(const struct instr *in, const struct mexpr *e, const char **function,
                       int *operand) {
    if (e->kind != MEXPR_CALL || e->nargs != 1 || e->arg[0]->kind != MEXPR_NAME) return false;
    if (strcmp(e->name, "bank") && strcmp(e->name, "word") && strcmp(e->name, "addr")) return false;
    *function = e->name;
    for (*operand = 0; *operand < in->noperands; ++*operand)
        if (!strcmp(in->operand[*operand].buffer, e->arg[0]->name)) return true;
    return false;
}

static bool asks_places(const struct instr *in, const struct mexpr *e) {
    const char *function;
    int operand;
    if (asks_place(in, e, &function, &operand)) return true;
    for (int i = 0; i < e->nargs; i++)
        if (asks_places(in, e->arg[i])) return true;
    return false;
}

bool require_apart(const struct instr *in, const struct mexpr *rule, const char **function, int *a,
                   int *b) {
    const char *other;
    return rule->kind == MEXPR_OP && !strcmp(rule->op, "!=") && rule->nargs == 2 &&
           asks_place(in, rule->arg[0], function, a) && asks_place(in, rule->arg[1], &other, b) &&
           !strcmp(*function, other);
}

bool require_every(const struct instr *in, const struct mexpr *rule, int *operand,
                   struct mexpr **every, bool *words) {
    double zero;
    const char *function;
    if (rule->kind != MEXPR_OP || strcmp(rule->op, "==") || rule->nargs != 2 ||
        !mexpr_constant(rule->arg[1], &zero) || zero != 0)
        return false;
    const struct mexpr *rest = rule->arg[0];
    if (rest->kind != MEXPR_OP || strcmp(rest->op, "%") || rest->nargs != 2 ||
        !asks_place(in, rest->arg[0], &function, operand) || !strcmp(function, "bank"))
        return false;
    *every = rest->arg[1];
    *words = !strcmp(function, "word");
    return !asks_places(in, rest->arg[1]);
}

/* Always true. */
static bool same_place(const struct instr *in, const struct mexpr *rule) {
    const char *f, *g;
    int a, b;
    return rule->kind == MEXPR_OP && !strcmp(rule->op, "==") && rule->nargs == 2 &&
           asks_place(in, rule->arg[0], &f, &a) && asks_place(in, rule->arg[1], &g, &b) &&
           !strcmp(f, g) && a == b;
}

bool require_unplanned(const struct instr *in, const struct mexpr *rule) {
    const char *function;
    struct mexpr *every;
    int a, b;
    bool words;
    return asks_places(in, rule) && !require_apart(in, rule, &function, &a, &b) &&
           !require_every(in, rule, &a, &every, &words) && !same_place(in, rule);
}

int sync_pairs(const struct sync *s) {
    int n = __builtin_popcountll(s->from) * __builtin_popcountll(s->to);
    return s->kind == SYNC_TOKEN && s->memory < 0 && n > 1 ? n : 1;
}

static int members_before(uint64_t set, int queue) {
    return __builtin_popcountll(set & ((UINT64_C(1) << queue) - 1));
}

int sync_pair(const struct sync *s, int from, int to) {
    if (sync_pairs(s) == 1) return 0;
    return members_before(s->from, from) * __builtin_popcountll(s->to) + members_before(s->to, to);
}

int64_t sync_channels(const struct sync *s) {
    const int64_t most = 1 << 20;
    int pairs = sync_pairs(s);
    return s->count < 0 || s->count > most / pairs ? most : s->count * pairs;
}

bool machine_sync_is_host(const struct machine *m, int sync) {
    for (int q = 0; q < m->nqueues; q++)
        if (((m->sync[sync].from | m->sync[sync].to) >> q & 1) && machine_queue_is_host(m, q))
            return true;
    return false;
}

bool machine_signals_alone(const struct machine *m, int queue, int sync, bool pop) {
    const struct sync *y = &m->sync[sync];
    if (m->queue[queue].nop >= 0 || machine_sync_is_host(m, sync) ||
        (pop ? y->npop_emits : y->npush_emits))
        return true;
    for (int f = 0; f < m->nfallbacks; f++)
        if (m->fallback[f].queue == queue || m->fallback[f].unit == m->queue[queue].unit)
            return true;
    for (int i = 0; i < m->ninstrs; i++)
        if (m->instr[i].queue == queue && m->instr[i].nemits) return false;
    return true;
}

static struct program *bind_whole(const struct machine *m, const struct instr *x,
                                  const int64_t *size, struct diags *d) {
    struct arena scratch;
    arena_init(&scratch);
    struct binding *at = arena_array(&scratch, (size_t)x->nranged, sizeof *at);
    for (int i = 0; i < x->nranged; i++)
        at[i] = (struct binding){x->semantics->param[x->ranged[i]].name, size[i]};
    struct bindings given = {at, x->nranged, NULL};
    struct program *p = program_bind(x->semantics, &given, &m->params, d);
    arena_free(&scratch);
    if (p) program_forward(p, true);
    return p;
}

/* What the trimmed extent is with another size i, within its range; 0: there is no other. */
static int64_t extent_beside(const struct machine *m, const struct instr *x, const int64_t *size,
                             int i, int axis, int64_t *other) {
    enum { MOST = 64 };
    int64_t lo, hi, step, given[MOST], extent = 0;
    if (x->nranged > MOST || !instr_size_range(m, x, i, &lo, &hi, &step)) return 0;
    for (int k = 0; k < x->nranged; k++) given[k] = size[k];
    *other = given[i] = hi < 0 || size[i] + step <= hi ? size[i] + step : size[i] - step;
    if (*other < lo) return 0;
    struct diags quiet;
    diags_init(&quiet);
    struct program *p = bind_whole(m, x, given, &quiet);
    if (p) {
        program_trim(p);
        extent = p->axis[axis].extent;
    }
    program_free(p);
    diags_free(&quiet);
    return extent;
}

/* A mask is an axis as long as one size says, `where i < n`, or as a constant. */
static bool name_mask(const struct machine *m, const struct instr *x, const int64_t *size,
                      struct program *p, int axis) {
    for (int i = 0; i < x->nranged; i++) {
        int64_t other = 0, extent = extent_beside(m, x, size, i, axis, &other);
        if (extent == 0 || extent == p->axis[axis].extent) continue;
        if (p->axis[axis].extent != size[i] || extent != other) return false;
        p->axis[axis].param = x->ranged[i];
    }
    return true;
}

static int64_t reach_of(const struct program *p, const struct access *a, int buffer) {
    if (a->buffer != buffer || p->buffer[buffer].ndims == 0) return 0;
    int64_t last = access_coef(p, a, 0, p->naxes);
    for (int x = 0; x < p->naxes; x++) {
        int64_t c = access_coef(p, a, 0, x);
        if (c > 0) last += c * (p->axis[x].extent - 1);
    }
    return last + 1;
}

/* What a mask keeps from the end of an operand is not touched: it may lie behind an array. */
static void trim_operands(struct program *p) {
    for (int b = 0; b < p->nbuffers; b++) {
        struct buffer *x = &p->buffer[b];
        int64_t reach = 1;
        for (int s = 0; s < p->nstmts; s++) {
            int64_t own = reach_of(p, &p->stmt[s].dst, b);
            reach = own > reach ? own : reach;
            for (int r = 0; r < p->stmt[s].nreads; r++) {
                own = reach_of(p, &p->stmt[s].read[r], b);
                reach = own > reach ? own : reach;
            }
        }
        if (x->ndims == 0 || reach >= x->extent[0]) continue;
        x->elements = x->elements / x->extent[0] * reach;
        x->extent[0] = reach;
    }
}

struct program *instr_bind(const struct machine *m, const struct instr *x, const int64_t *size,
                           struct diags *d) {
    struct program *p = bind_whole(m, x, size, d);
    uint64_t masked = 0;
    bool named = true;
    for (int s = 0; p && s < p->nstmts; s++)
        for (int w = 0; w < p->stmt[s].nwhere; w++)
            for (int a = 0; a < p->naxes; a++)
                if (p->stmt[s].where[w].coef[a]) masked |= UINT64_C(1) << a;
    if (!masked) return p;
    program_trim(p);
    for (int a = 0; a < p->naxes && named; a++)
        if (masked >> a & 1 && p->axis[a].param < 0) named = name_mask(m, x, size, p, a);
    if (named) trim_operands(p);
    if (named) return p;
    program_free(p);
    return bind_whole(m, x, size, d);
}

bool instr_size_range(const struct machine *m, const struct instr *x, int i, int64_t *lo,
                      int64_t *hi, int64_t *step) {
    const struct kernel *k = x->semantics;
    const struct kernel_param *p = &k->param[x->ranged[i]];
    struct arena scratch;
    int n = 0;
    *lo = *step = 1;
    *hi = -1;
    if (!p->lo) return true;
    arena_init(&scratch);
    struct binding *at = arena_array(&scratch, (size_t)(k->nparams + m->nparams), sizeof *at);
    for (int j = 0; j < m->nparams; j++)
        if (kernel_param_index(k, m->param[j].name) < 0) at[n++] = m->params.at[j];
    for (int j = 0; j < x->ranged[i]; j++) {
        struct bindings earlier = {at, n, NULL};
        at[n].name = k->param[j].name;
        if (k->param[j].value && expr_integer(k->param[j].value, &earlier, &at[n].value)) n++;
    }
    struct bindings names = {at, n, NULL};
    bool known = expr_integer(p->lo, &names, lo) && expr_integer(p->hi, &names, hi) &&
                 (!p->step || expr_integer(p->step, &names, step));
    arena_free(&scratch);
    if (!known || *step < 1 || *lo > *hi) return false;
    *hi -= (*hi - *lo) % *step; /* the last one that a step reaches */
    return true;
}

static const struct emit *emit_in(const struct emit *e, int n, enum language language) {
    for (int i = 0; i < n; i++)
        if (e[i].language == language) return &e[i];
    return NULL;
}

const struct emit *instr_emit(const struct instr *x, enum language language) {
    return emit_in(x->emit, x->nemits, language);
}

const struct emit *instr_ahead(const struct instr *x, enum language language) {
    return emit_in(x->ahead, x->naheads, language);
}

static bool parameter(void *user, const char *name, const char *field, double *out) {
    const struct machine *m = user;
    for (int i = 0; !field && i < m->nparams; i++)
        if (!strcmp(m->param[i].name, name)) return *out = (double)m->param[i].value, true;
    return false;
}

/* Bytes; 0: they depend on sizes. */
static int64_t asked_at_home(const struct machine *m, const struct operand *o) {
    struct mexpr_env env = {.name = parameter, .user = (void *)(uintptr_t)m};
    double v = 0;
    bool home = false;
    for (int k = 0; k < o->nmemories; k++)
        home = home || (o->memory[k] >= 0 && memory_is_home(m, o->memory[k]));
    return home && o->align && mexpr_eval(o->align, &env, &v, NULL) && v < INT32_MAX ? (int64_t)v
                                                                                     : 0;
}

int64_t machine_home_align(const struct machine *m) {
    enum { ALWAYS = 64, MOST = 1 << 20 };
    int64_t align = ALWAYS, own = m->home >= 0 ? m->memory[m->home].align : 1;
    if (own > 1 && least_multiple(align, own) <= MOST) align = least_multiple(align, own);
    for (int i = 0; i < m->ninstrs; i++)
        for (int o = 0; o < m->instr[i].noperands; o++) {
            int64_t asked = asked_at_home(m, &m->instr[i].operand[o]);
            if (asked > 1 && align % asked && least_multiple(align, asked) <= MOST)
                align = least_multiple(align, asked);
        }
    return align;
}

double fallback_cycles(const struct machine *m, int fallback, enum copy_kind kind) {
    const struct fallback *f = &m->fallback[fallback];
    double cycles = kind == COPY_ROWS     ? f->copy
                    : kind == COPY_TURN   ? f->turn
                    : kind == COPY_ANY    ? f->gather
                    : kind == COPY_VECTOR ? f->vector
                                          : -1;
    if (cycles >= 0) return cycles;
    struct mexpr_env env = {.name = parameter, .user = (void *)(uintptr_t)m};
    return mexpr_eval(f->interval, &env, &cycles, NULL) ? cycles : 1;
}

static bool reads_addresses(const struct mexpr *e) {
    if (e->kind == MEXPR_CALL && strcmp(e->name, "base") == 0) return true;
    for (int k = 0; k < e->nargs; k++)
        if (reads_addresses(e->arg[k])) return true;
    return false;
}

int64_t state_slots(const struct machine *m, int state) {
    if (m->state[state].of < 0) return m->state[state].count;
    const struct memory *of = &m->memory[m->state[state].of];
    return of->size > 0 && of->word > 0 ? of->size / of->word : 1;
}

bool state_from_addresses(const struct machine *m, int state) {
    for (int i = 0; m->state[state].count < 0 && i < m->ninstrs; i++)
        for (int k = 0; k < m->instr[i].nneeds; k++) {
            const struct need *n = &m->instr[i].need[k];
            for (int f = 0; n->state == state && f < n->nvalues; f++)
                if (reads_addresses(n->value[f])) return true;
        }
    return false;
}
