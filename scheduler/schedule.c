#include "scheduler/schedule.h"
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

void schedule_size(struct schedule *s, const char *name) {
    struct var *v = arena_array(&s->arena, (size_t)s->nvars + 1, sizeof *v);
    if (s->nvars) memcpy(v, s->var, sizeof *v * (size_t)s->nvars);
    v[s->nvars++].name = arena_strdup(&s->arena, name);
    s->var = v;
}

int schedule_home(const struct schedule *s, int buffer) {
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].buffer == buffer && s->place[p].keep != KEEP_LOCAL) return p;
    return -1;
}

bool schedule_pads(const struct schedule *s, int place) {
    const struct place *p = &s->place[place];
    const struct buffer *b = &s->program->buffer[p->buffer];
    if (p->keep != KEEP_PREPARED && p->keep != KEEP_WORKSPACE) return false;
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

int64_t schedule_workspace(const struct schedule *s) {
    int64_t bytes = 0;
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].keep == KEEP_WORKSPACE) bytes += s->place[p].bytes * s->place[p].slots;
    return bytes;
}
