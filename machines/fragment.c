/* Where the elements of an operand are beyond its offsets: which instance holds each, and which
 * address a swizzle makes of theirs. */
#include "machines/machine.h"
#include <stdio.h>
#include <string.h>

bool swizzle_parse(const char *text, struct swizzle *out) {
    char end;
    *out = (struct swizzle){0};
    if (!text) return true;
    return sscanf(text, "%d,%d,%d%c", &out->bits, &out->base, &out->shift, &end) == 3 &&
           out->bits > 0 && out->base >= 0 && out->shift >= out->bits &&
           out->bits + out->base + out->shift <= 30;
}

int64_t swizzle_address(struct swizzle s, int64_t address) {
    int64_t mask = ((INT64_C(1) << s.bits) - 1) << s.base;
    return address ^ (address >> s.shift & mask);
}

int64_t unit_instances(const struct machine *m, int unit) {
    const struct unit *u = &m->unit[unit];
    int64_t n = u->count_max > u->count ? u->count_max : u->count;
    return n < 1 ? 1 : n;
}

bool layout_spreads(const struct layout *l) {
    for (int p = 0; l && p < l->nplaces; p++)
        if (l->place[p].unit) return true;
    return false;
}

/* Instances are numbered as memories are nested: the innermost unit counts fastest. */
int64_t layout_instance(const struct machine *m, const struct layout *l, int memory,
                        const int64_t *index) {
    int64_t at = 0, scale = 1;
    if (!layout_spreads(l)) return 0;
    for (int u = m->memory[memory].unit; u >= 0; u = m->unit[u].parent) {
        for (int p = 0; p < l->nplaces; p++)
            if (l->place[p].unit && strcmp(l->place[p].unit, m->unit[u].id) == 0)
                at += scale * lexpr_eval(l->place[p].expr, index);
        scale *= unit_instances(m, u);
    }
    return at;
}

int64_t layout_instances(const struct machine *m, const struct layout *l, int memory) {
    int64_t n = 1, scale = 1;
    for (int u = m->memory[memory].unit; u >= 0; u = m->unit[u].parent) {
        scale *= unit_instances(m, u);
        for (int p = 0; l && p < l->nplaces; p++)
            if (l->place[p].unit && strcmp(l->place[p].unit, m->unit[u].id) == 0) n = scale;
    }
    return n;
}
