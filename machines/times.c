/* What instructions and configures cost at given sizes, and what alignment operands ask for. */
#include "ir/number.h"
#include "machines/machine.h"
#include <string.h>

struct bindings_at {
    const struct machine *m;
    const struct program *bound;
    const struct instr *in;
    const int64_t *size;
};

static bool look_up(void *user, const char *name, const char *field, double *out) {
    const struct bindings_at *n = user;
    if (field) return false;
    for (int i = 0; n->size && i < n->in->nranged; i++)
        if (!strcmp(n->bound->param[n->in->ranged[i]].name, name)) {
            *out = (double)n->size[i];
            return true;
        }
    for (int i = 0; i < n->bound->nparams; i++)
        if (!strcmp(n->bound->param[i].name, name)) {
            *out = (double)n->bound->param[i].value;
            return true;
        }
    for (int i = 0; i < n->m->nparams; i++)
        if (!strcmp(n->m->param[i].name, name)) {
            *out = (double)n->m->param[i].value;
            return true;
        }
    return false;
}

static double number(struct mexpr_env *env, const struct mexpr *e, double otherwise) {
    double v;
    return e && mexpr_eval(e, env, &v, NULL) ? v : otherwise;
}

void instr_times(const struct machine *m, const struct instr *in, const struct program *bound,
                 const int64_t *size, double *latency, double *interval, double *overhead) {
    struct bindings_at names = {m, bound, in, size};
    struct mexpr_env env = {.name = look_up, .user = &names};
    if (latency) *latency = number(&env, in->latency, 1);
    if (interval) *interval = number(&env, in->interval, 1);
    if (overhead) *overhead = number(&env, in->overhead, 0);
}

double configure_cycles(const struct machine *m, int configure) {
    static const struct program none;
    const struct configure *c = &m->configure[configure];
    struct bindings_at names = {m, &none, NULL, NULL};
    struct mexpr_env env = {.name = look_up, .user = &names};
    return number(&env, c->overhead, 0) + number(&env, c->interval, 1);
}

int64_t operand_align(const struct machine *m, const struct operand *o, int memory,
                      const struct program *bound) {
    struct bindings_at names = {m, bound, NULL, NULL};
    struct mexpr_env env = {.name = look_up, .user = &names};
    const struct memory *y = &m->memory[memory];
    double v;
    int64_t align = y->align > 0 ? y->align : 1;
    if (o->align && mexpr_eval(o->align, &env, &v, NULL) && v >= 1) align = (int64_t)v;
    if (o->every && mexpr_eval(o->every, &env, &v, NULL) && v >= 1 && v < INT32_MAX)
        align = least_multiple(align, (int64_t)v * (o->words && y->word > 0 ? y->word : 1));
    return align;
}
