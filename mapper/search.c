/* One needle on one statement: bindings, then groups from the classes of haystack axes
 * (docs/mapping.md; ISA Mapper §2.2, AMOS). No search over axis permutations is needed: the
 * signature says on which needle axes a haystack axis may be. */
#include "mapper/mapper_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_BEST = 8, MAX_CHOICES = 16, LEAVES_BEST = 4096 };

struct chooser {
    struct search *search;
    const struct needle *needle;
    const struct site *site;
    const struct binding_set *bound;
    uint64_t class[MAX_NEEDLE_AXES];
    struct group group[MAX_NEEDLE_AXES];
    struct group choice[MAX_NEEDLE_AXES][MAX_CHOICES]; /* best-first: the groups that are tried */
    int nchoices[MAX_NEEDLE_AXES];
    int first; /* of the pair's mappings */
    int64_t leaves;
};

/* ---- order inside a group ---- */

static void sort_by_stride(const struct program *p, const struct access *a, struct group *g) {
    for (int i = 1; i < g->n; i++)
        for (int k = i; k > 0; k--) {
            int64_t outer = linear_stride(p, a, g->axis[k - 1]),
                    inner = linear_stride(p, a, g->axis[k]);
            int64_t eo = p->axis[g->axis[k - 1]].extent, ei = p->axis[g->axis[k]].extent;
            if (llabs(outer) > llabs(inner) || (outer == inner && eo >= ei)) break;
            int t = g->axis[k];
            g->axis[k] = g->axis[k - 1];
            g->axis[k - 1] = t;
        }
}

static int count_direct(const struct chooser *c, int x, const struct group *g) {
    struct group all[MAX_NEEDLE_AXES] = {0};
    int n = 0;
    all[x] = *g;
    for (int o = 0; o < c->needle->noperands; o++) {
        const struct access *a = bound_access(c->site, &c->bound->operand[o]);
        if (a && c->needle->axis[x].signature >> o & 1)
            n += operand_direct(c->needle, c->site->program, a, all, o);
    }
    return n;
}

/* The order that leaves most operands direct: each operand's own order is tried. */
static void order_group(const struct chooser *c, int x, struct group *g) {
    struct group best = *g;
    int most = -1;
    if (g->n < 2) return;
    for (int k = -1; k < c->needle->noperands; k++) {
        int o = k < 0 ? c->needle->dst : k;
        const struct access *a = bound_access(c->site, &c->bound->operand[o]);
        if (!a || !(c->needle->axis[x].signature >> o & 1)) continue;
        struct group h = *g;
        sort_by_stride(c->site->program, a, &h);
        int direct = count_direct(c, x, &h);
        if (direct > most) {
            most = direct;
            best = h;
        }
    }
    *g = best;
}

static struct group group_of(const struct chooser *c, int x, uint64_t mask) {
    struct group g = {0};
    for (int a = 0; a < c->site->program->naxes && g.n < MAX_GROUP; a++)
        if (mask >> a & 1) g.axis[g.n++] = a;
    order_group(c, x, &g);
    return g;
}

static uint64_t group_mask(const struct group *g) {
    uint64_t mask = 0;
    for (int k = 0; k < g->n; k++) mask |= UINT64_C(1) << g->axis[k];
    return mask;
}

/* ---- leaves ---- */

static void make_operands(const struct chooser *c, struct mapping *m) {
    for (int o = 0; o < c->needle->noperands; o++) {
        const struct bound *b = &c->bound->operand[o];
        const struct access *a = bound_access(c->site, b);
        struct mapped_operand *mo = &m->operand[o];
        mo->role = b->kind == BOUND_DST   ? OPERAND_DST
                   : b->kind == BOUND_IMM ? OPERAND_IMM
                                          : OPERAND_READ;
        mo->read = b->read;
        mo->imm = b->imm;
        mo->direct = !a || operand_direct(c->needle, c->site->program, a, m->group, o);
    }
}

static struct mapping make_mapping(const struct chooser *c) {
    struct arena *arena = c->search->arena;
    const struct operand *dst =
        &c->search->needles->machine->instr[c->needle->instr].operand[c->needle->dst];
    struct mapping m = {
        .instr = c->needle->instr, .stmt = c->site->stmt, .init = -1, .ngroups = c->needle->naxes};
    m.group = arena_copy(arena, c->group, (size_t)c->needle->naxes * sizeof *m.group);
    m.operand = arena_array(arena, (size_t)c->needle->noperands, sizeof *m.operand);
    make_operands(c, &m);
    if (dst->accumulate && c->needle->term.accumulates)
        m.init = init_of(c->site->program, c->site->stmt);
    mapping_price(c->search->needles, c->needle, c->site->program, &m);
    return m;
}

static void keep(struct chooser *c, struct mapping m) {
    struct search *s = c->search;
    int at = s->nmappings;
    if (!s->all && at - c->first >= KEEP_BEST) {
        for (int i = c->first; i < s->nmappings; i++)
            if (at == s->nmappings || s->mapping[i].cost + s->mapping[i].copies >
                                          s->mapping[at].cost + s->mapping[at].copies)
                at = i;
        if (s->mapping[at].cost + s->mapping[at].copies > m.cost + m.copies) s->mapping[at] = m;
        return;
    }
    GROW(s->arena, s->mapping, s->nmappings, s->cap);
    s->mapping[s->nmappings++] = m;
}

/* V3: axes on which the needle's result varies must tell its elements apart. */
static int not_injective(const struct chooser *c) {
    uint64_t axes = 0;
    int last = -1;
    for (int x = 0; x < c->needle->naxes; x++)
        if (!c->needle->axis[x].reduction) axes |= group_mask(&c->group[x]);
    if (access_injective(c->site->program, &c->site->s->dst, axes)) return -1;
    for (int a = 0; a < c->site->program->naxes; a++)
        if (axes >> a & 1) last = a;
    return last;
}

static void leaf(struct chooser *c, uint64_t used) {
    struct search *s = c->search;
    bool any = false;
    for (int x = 0; x < c->needle->naxes; x++) {
        if (c->group[x].n == 0 && c->class[x] & ~used) return;
        any |= c->group[x].n > 0;
    }
    if (!any) return;
    int axis = not_injective(c);
    if (axis >= 0) {
        note_axis(s, c->needle, c->site, FAILURE_NOT_INJECTIVE, -1, axis, c->needle->dst,
                  "two points of one issue would write the same element");
        return;
    }
    if (!padding_legal(c->needle, c->site->program, c->site->s, c->group)) {
        note_axis(s, c->needle, c->site, FAILURE_EXTENT, -1, -1, -1,
                  "the extent of a reduction is no multiple of the instruction's, and zeros would "
                  "change its result");
        return;
    }
    struct mapping m = make_mapping(c);
    if (c->needle->coupled) {
        struct text why = {0};
        m.certified = mapping_certify_with(s->needles, c->site->program, &m, &why);
        if (!m.certified)
            note_axis(s, c->needle, c->site, FAILURE_CERTIFICATE, -1, -1, -1,
                      arena_strdup(s->arena, why.at ? why.at : ""));
        text_free(&why);
        if (!m.certified) return;
    }
    keep(c, m);
}

static bool spent(struct chooser *c) {
    struct search *s = c->search;
    if (s->steps >= s->limit) s->bounded = true;
    s->steps++;
    return s->bounded || (!s->all && c->leaves++ > LEAVES_BEST);
}

/* ---- choosing groups ---- */

static void choose_all(struct chooser *c, int x, uint64_t used) {
    if (spent(c)) return;
    if (x == c->needle->naxes) {
        leaf(c, used);
        return;
    }
    uint64_t class = c->class[x] & ~used;
    for (uint64_t mask = class;; mask = (mask - 1) & class) {
        if (__builtin_popcountll(mask) <= MAX_GROUP) {
            c->group[x] = group_of(c, x, mask);
            choose_all(c, x + 1, used | mask);
        }
        if (mask == 0 || c->search->bounded) break;
    }
}

static void choose_best(struct chooser *c, int x, uint64_t used) {
    if (spent(c)) return;
    if (x == c->needle->naxes) {
        leaf(c, used);
        return;
    }
    for (int k = 0; k <= c->nchoices[x]; k++) {
        c->group[x] = k < c->nchoices[x] ? c->choice[x][k] : (struct group){0};
        uint64_t mask = group_mask(&c->group[x]);
        if (!(mask & used)) choose_best(c, x + 1, used | mask);
    }
}

static void add_choice(struct chooser *c, int x, uint64_t mask) {
    int *n = &c->nchoices[x];
    if (*n == MAX_CHOICES || __builtin_popcountll(mask) > MAX_GROUP) return;
    for (int k = 0; k < *n; k++)
        if (group_mask(&c->choice[x][k]) == mask) return;
    c->choice[x][(*n)++] = group_of(c, x, mask);
}

/* Axes one by one, then runs of neighbours in memory. */
static void list_choices(struct chooser *c, int x) {
    const struct program *p = c->site->program;
    struct group line = {0};
    for (int a = 0; a < p->naxes; a++)
        if (c->class[x] >> a & 1) {
            add_choice(c, x, UINT64_C(1) << a);
            if (line.n < MAX_GROUP) line.axis[line.n++] = a;
        }
    order_group(c, x, &line);
    for (int from = line.n - 2; from >= 0; from--) {
        uint64_t run = 0;
        for (int k = from; k < line.n; k++) run |= UINT64_C(1) << line.axis[k];
        add_choice(c, x, run);
    }
    for (int from = 0; from + 2 < line.n; from++)
        add_choice(c, x, UINT64_C(1) << line.axis[from] | UINT64_C(1) << line.axis[from + 1]);
}

/* No axis fits: say which needle axis found none, and what stands in the way of the nearest
 * haystack axis. */
static void note_empty(const struct chooser *c) {
    const struct needle *n = c->needle;
    const struct program *p = c->site->program;
    for (int x = 0; x < n->naxes; x++)
        for (int a = 0; a < p->naxes; a++) {
            if (!(c->site->live >> a & 1)) continue;
            for (int o = 0; o < n->noperands; o++) {
                const struct access *acc = bound_access(c->site, &c->bound->operand[o]);
                if (!acc || n->axis[x].signature >> o & 1 || !access_varies(p, acc, a)) continue;
                note_axis(c->search, n, c->site, FAILURE_EXTRA_COLUMN, x, a, o,
                          "the operand of the instruction stands still there");
                return;
            }
        }
    note_axis(c->search, n, c->site, FAILURE_MISSING_AXIS, n->naxes > 0 ? 0 : -1, -1, -1,
              "no axis of the statement moves the same operands");
}

static void choose_groups(struct search *s, const struct needle *n, const struct site *site,
                          const struct binding_set *b, int first) {
    struct chooser *c = arena_alloc(s->arena, sizeof *c);
    *c = (struct chooser){.search = s, .needle = n, .site = site, .bound = b, .first = first};
    uint64_t any = 0;
    for (int x = 0; x < n->naxes; x++) {
        for (int a = 0; a < site->program->naxes; a++)
            if (site->live >> a & 1 && axis_in_class(n, site, b, x, a))
                c->class[x] |= UINT64_C(1) << a;
        any |= c->class[x];
    }
    if (!any) {
        note_empty(c);
    } else if (s->all) {
        choose_all(c, 0, 0);
    } else {
        for (int x = 0; x < n->naxes; x++) list_choices(c, x);
        choose_best(c, 0, 0);
    }
}

void search_pair(struct search *s, const struct needle *n, const struct site *site) {
    struct match match;
    int first = s->nmappings;
    if (site->s->nwhere > 0) {
        note_axis(s, n, site, FAILURE_EXTENT, -1, -1, -1,
                  "the statement's domain is cut by a constraint");
        return;
    }
    match_terms(s->arena, s->needles->machine, n, site, site->term.root, false, &match);
    if (match.n == 0) note_failure(s, n, site, &match.worst);
    for (int i = 0; i < match.n; i++) {
        if (imm_encodable(s->needles->machine, n, &match.at[i])) {
            choose_groups(s, n, site, &match.at[i], first);
            continue;
        }
        struct mismatch w = {FAILURE_OPERATION, n->term.root, site->term.root, n->term.n};
        note_failure(s, n, site, &w);
    }
}
