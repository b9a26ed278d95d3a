/* Mappings that a scheduler had no way to use: covers are chosen again without them. */
#include "mapper/mapper_int.h"
#include <string.h>

enum {
    MANY = 24,   /* of one buffer, before each refusal is of all ways of an instruction */
    MAX_WAYS = 4 /* of one instruction whose operands read the same, before all are refused */
};

/* What each operand reads: the others of an instruction, such as weights for pixels, may be had
 * where these are not. */
static const char *operands_of(struct arena *a, const struct machine *m,
                               const struct mapping *map) {
    struct text t = {0};
    for (int o = 0; o < m->instr[map->instr].noperands; o++)
        text_printf(&t, " %d:%d", (int)map->operand[o].role, map->operand[o].read);
    const char *operands = arena_strdup(a, t.at ? t.at : "");
    text_free(&t);
    return operands;
}

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
    text_printf(&t, "%s", operands_of(a, m, map));
    const char *way = arena_strdup(a, t.at);
    text_free(&t);
    return way;
}

static const char *result_of(const struct program *p, const struct mapping *map) {
    return p->buffer[p->stmt[map->stmt].dst.buffer].name;
}

/* Of the same instruction on the same result. */
static bool is_near(const struct refusal *x, const struct mapping *map, const char *buffer) {
    return x->instr == map->instr && strcmp(x->buffer, buffer) == 0;
}

/* And with operands that read the same. */
static bool is_like(const struct refusal *x, const struct mapping *map, const char *buffer,
                    const char *operands) {
    return is_near(x, map, buffer) && strcmp(x->operands, operands) == 0;
}

/* From refusal `first` on, before refusal `end`. */
static bool have_among(const struct refusals *r, int first, int end, const struct program *p,
                       const struct machine *m, const struct mapping *map) {
    struct arena scratch;
    bool found = false;
    const char *buffer = result_of(p, map);
    while (first < end && !is_near(&r->at[first], map, buffer)) first++;
    if (first == end) return false;
    arena_init(&scratch);
    const char *operands = operands_of(&scratch, m, map);
    for (int i = first; i < end && !found; i++)
        found = is_like(&r->at[i], map, buffer, operands) &&
                (!r->at[i].way || strcmp(r->at[i].way, way_of(&scratch, p, m, map)) == 0);
    arena_free(&scratch);
    return found;
}

bool refusals_have(const struct refusals *r, const struct program *p, const struct machine *m,
                   const struct mapping *map) {
    return have_among(r, 0, r->n, p, m, map);
}

bool refusals_add(struct refusals *r, const struct program *p, const struct machine *m,
                  const struct mapping *map, const char *why, int line, int col) {
    if (have_among(r, r->round, r->n, p, m, map)) return true;
    const char *buffer = arena_strdup(&r->arena, result_of(p, map)),
               *operands = operands_of(&r->arena, m, map), *way = way_of(&r->arena, p, m, map);
    bool again = refusals_have(r, p, m, map); /* its axes had other names when it was chosen */
    int before = 0, ways = 0;                 /* of the buffer, and of those like this one */
    for (int i = 0; i < r->n; i++) {
        bool like = is_like(&r->at[i], map, buffer, operands);
        if (again && like && !r->at[i].way) return false;
        before += strcmp(r->at[i].buffer, buffer) == 0;
        ways += like;
    }
    if (again || ways == MAX_WAYS || before >= MANY) way = NULL;
    GROW(&r->arena, r->at, r->n, r->cap);
    r->at[r->n++] = (struct refusal){
        map->instr, buffer, operands, way, arena_strdup(&r->arena, why), line, col};
    return true;
}
