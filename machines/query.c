/* Questions about a machine. */
#include "machines/machine.h"
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

struct program *instr_bind(const struct machine *m, const struct instr *x, const int64_t *size,
                           struct diags *d) {
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
    return known && *step > 0 && *lo <= *hi;
}

const struct emit *instr_emit(const struct instr *x, enum language language) {
    for (int i = 0; i < x->nemits; i++)
        if (x->emit[i].language == language) return &x->emit[i];
    return NULL;
}

static bool parameter(void *user, const char *name, const char *field, double *out) {
    const struct machine *m = user;
    for (int i = 0; !field && i < m->nparams; i++)
        if (!strcmp(m->param[i].name, name)) return *out = (double)m->param[i].value, true;
    return false;
}

double fallback_cycles(const struct machine *m, int fallback, enum copy_kind kind) {
    const struct fallback *f = &m->fallback[fallback];
    double cycles = kind == COPY_ROWS   ? f->copy
                    : kind == COPY_TURN ? f->turn
                    : kind == COPY_ANY  ? f->gather
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

bool state_from_addresses(const struct machine *m, int state) {
    for (int i = 0; m->state[state].count < 0 && i < m->ninstrs; i++)
        for (int k = 0; k < m->instr[i].nneeds; k++) {
            const struct need *n = &m->instr[i].need[k];
            for (int f = 0; n->state == state && f < n->nvalues; f++)
                if (reads_addresses(n->value[f])) return true;
        }
    return false;
}
