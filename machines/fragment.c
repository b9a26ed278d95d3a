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

bool memory_pool(const struct machine *m, int memory, int *unit, int64_t *bytes) {
    const char *text = m->memory[memory].pool;
    char id[64], suffix = 0, rest = 0;
    long long n = 0;
    if (!text) return false;
    int read = sscanf(text, "%63s %lld%c%c", id, &n, &suffix, &rest);
    *unit = -1;
    for (int u = 0; read >= 2 && u < m->nunits; u++)
        if (strcmp(m->unit[u].id, id) == 0) *unit = u;
    if (n < 1 || n >= INT64_C(1) << 30) return false;
    int shift = suffix == 'K' ? 10 : suffix == 'M' ? 20 : suffix == 'G' ? 30 : 0;
    *bytes = n << shift;
    return *unit >= 0 && (read == 2 || (read == 3 && shift)) && m->memory[memory].unit != *unit &&
           unit_inside(m, m->memory[memory].unit, *unit);
}

int64_t pool_share(const struct machine *m, int memory, const bool *shared) {
    int unit;
    int64_t bytes, n = 1;
    if (!memory_pool(m, memory, &unit, &bytes)) return INT64_MAX;
    for (int u = m->memory[memory].unit; u != unit; u = m->unit[u].parent) {
        bool chosen = m->unit[u].count_max > m->unit[u].count;
        if (!chosen || (shared && shared[u])) n *= unit_instances(m, u);
    }
    return bytes / n;
}
