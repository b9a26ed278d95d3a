/* Mappings that a scheduler had no way to use: covers are chosen again without them. */
#include "mapper/mapper_int.h"
#include <string.h>

enum {
    MAX_OF_BUFFER = 8,
    MAX_WAYS = 4 /* of one instruction, before it is refused however mapped */
};

/* Axes by name and operands by what they read: the same for a statement in every cover. */
static const char *way_of(struct arena *a, const struct program *p, const struct machine *m,
                          const struct mapping *map) {
    struct text t = {0};
    for (int x = 0; x < map->ngroups; x++) {
        text_printf(&t, "(");
        for (int k = 0; k < map->group[x].n; k++)
            text_printf(&t, " %s", p->axis[map->group[x].axis[k]].name);
        text_printf(&t, ")");
    }
    for (int o = 0; o < m->instr[map->instr].noperands; o++)
        text_printf(&t, " %d:%d", (int)map->operand[o].role, map->operand[o].read);
    const char *way = arena_strdup(a, t.at);
    text_free(&t);
    return way;
}

static const char *result_of(const struct program *p, const struct mapping *map) {
    return p->buffer[p->stmt[map->stmt].dst.buffer].name;
}

bool refusals_have(const struct refusals *r, const struct program *p, const struct machine *m,
                   const struct mapping *map) {
    struct arena scratch;
    bool found = false;
    arena_init(&scratch);
    for (int i = 0; i < r->n && !found; i++)
        found = r->at[i].instr == map->instr && strcmp(r->at[i].buffer, result_of(p, map)) == 0 &&
                (!r->at[i].way || strcmp(r->at[i].way, way_of(&scratch, p, m, map)) == 0);
    arena_free(&scratch);
    return found;
}

bool refusals_add(struct refusals *r, const struct program *p, const struct machine *m,
                  const struct mapping *map, const char *why, int line, int col) {
    int before = 0;
    for (int i = 0; i < r->n; i++) before += strcmp(r->at[i].buffer, result_of(p, map)) == 0;
    bool again = refusals_have(r, p, m, map); /* its axes had other names when it was chosen */
    for (int i = 0; i < r->n && again; i++)
        if (r->at[i].instr == map->instr && !r->at[i].way &&
            strcmp(r->at[i].buffer, result_of(p, map)) == 0)
            return false;
    if (before == MAX_OF_BUFFER) return false;
    const char *buffer = arena_strdup(&r->arena, result_of(p, map)),
               *way = way_of(&r->arena, p, m, map);
    int ways = 0; /* of this instruction */
    for (int i = 0; i < r->n; i++)
        ways += r->at[i].instr == map->instr && strcmp(r->at[i].buffer, buffer) == 0;
    if (again || ways == MAX_WAYS) way = NULL;
    GROW(&r->arena, r->at, r->n, r->cap);
    r->at[r->n++] =
        (struct refusal){map->instr, buffer, way, arena_strdup(&r->arena, why), line, col};
    return true;
}
