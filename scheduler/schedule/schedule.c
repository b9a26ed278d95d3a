#include "scheduler/schedule/schedule.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

struct schedule *schedule_new(const struct machine *machine) {
    struct schedule *s = memory_array(1, sizeof *s);
    arena_init(&s->arena);
    s->machine = machine;
    s->machine_name = arena_strdup(&s->arena, machine->name);
    return s;
}

void schedule_free(struct schedule *s) {
    if (!s) return;
    if (s->program) program_free(s->program);
    chain_free(s->chain);
    arena_free(&s->arena);
    free(s);
}

/* Where the name stands among the variables' names, or would. */
static size_t var_slot(const struct schedule *s, const char *name) {
    size_t n = 2 * (size_t)s->cap_vars, h = 5381;
    for (const char *c = name; *c; c++) h = h * 33 + (unsigned char)*c;
    for (h %= n; s->var_of[h]; h = (h + 1) % n)
        if (strcmp(s->var[s->var_of[h] - 1].name, name) == 0) break;
    return h;
}

double schedule_cost(const struct schedule *s, const int64_t *size) {
    double sum = s->cost;
    for (int k = 0; k < s->nopen; k++) {
        double cycles = s->open[k].cycles;
        for (int z = 0; z < s->program->nsizes; z++)
            if (s->open[k].sizes >> z & 1)
                cycles *= (double)(size ? size[z] : s->program->size[z].hi);
        sum += cycles;
    }
    return sum;
}

int schedule_var_named(const struct schedule *s, const char *name) {
    return s->cap_vars ? s->var_of[var_slot(s, name)] - 1 : -1;
}

int schedule_var(struct schedule *s, const char *name) {
    if (s->nvars == s->cap_vars) {
        s->cap_vars = 2 * s->nvars + 16;
        struct var *v = arena_array(&s->arena, (size_t)s->cap_vars, sizeof *v);
        if (s->nvars) memcpy(v, s->var, sizeof *v * (size_t)s->nvars);
        s->var = v;
        s->var_of = arena_array(&s->arena, 2 * (size_t)s->cap_vars, sizeof *s->var_of);
        for (int i = 0; i < s->nvars; i++)
            if (!v[i].again) s->var_of[var_slot(s, v[i].name)] = i + 1;
    }
    size_t slot = var_slot(s, name);
    int n = s->nvars++;
    s->var[n] = (struct var){arena_strdup(&s->arena, name), s->var_of[slot] > 0};
    if (!s->var[n].again) s->var_of[slot] = n + 1;
    return n;
}

void schedule_size(struct schedule *s, const char *name) {
    schedule_var(s, name);
}

int schedule_home(const struct schedule *s, int buffer) {
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].buffer == buffer && s->place[p].keep != KEEP_LOCAL) return p;
    return -1;
}

bool schedule_pads(const struct schedule *s, int place) {
    const struct place *p = &s->place[place];
    const struct buffer *b = &s->program->buffer[p->buffer];
    if ((p->keep != KEEP_PREPARED && p->keep != KEEP_WORKSPACE) || p->bytes == 0) return false;
    for (int d = 0; p->extent && d < b->ndims;
         d++) /* tiles that lie over one another take less room */
        if (p->extent[d] > b->extent[d]) return true;
    return p->bytes > b->elements * (int64_t)type_size(b->type);
}

static int64_t count_nodes(const struct node *node, int nnodes) {
    int64_t n = nnodes;
    for (int i = 0; i < nnodes; i++)
        if (node[i].kind == NODE_LOOP) n += count_nodes(node[i].loop->body, node[i].loop->nbody);
    return n;
}

int64_t schedule_nodes(const struct schedule *s) {
    return count_nodes(s->prepare.node, s->prepare.nnodes) +
           count_nodes(s->run.node, s->run.nnodes);
}
