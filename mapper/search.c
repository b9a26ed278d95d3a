/* One needle on one statement: bindings, then groups from the classes of haystack axes
 * (docs/mapping.md; ISA Mapper §2.2, AMOS). No search over axis permutations is needed: the
 * signature says on which needle axes a haystack axis may be. */
#include "mapper/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_BEST = 8, KEEP_UNHIDDEN = 4 };

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

int count_direct(const struct chooser *c, int x, const struct group *g) {
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

struct group group_of(const struct chooser *c, int x, uint64_t mask) {
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

static struct mapped_operand bound_operand(const struct chooser *c, int o) {
    const struct bound *b = &c->bound->operand[o];
    return (struct mapped_operand){.role = b->kind == BOUND_DST   ? OPERAND_DST
                                           : b->kind == BOUND_IMM ? OPERAND_IMM
                                                                  : OPERAND_READ,
                                   .read = b->read,
                                   .imm = b->imm};
}

static void note_representative(struct chooser *c) {
    struct mapped_operand operand[MAX_OPERANDS];
    struct mapping m = {.instr = c->needle->instr,
                        .stmt = c->site->stmt,
                        .init = -1,
                        .group = c->group,
                        .ngroups = c->needle->naxes,
                        .operand = operand,
                        .noperands = c->needle->noperands};
    for (int o = 0; o < c->needle->noperands; o++) {
        operand[o] = bound_operand(c, o);
        for (int r = operand[o].read - 1; r >= 0; r--)
            if (access_same(c->site->program, &c->site->s->read[r],
                            &c->site->s->read[operand[o].read]))
                operand[o].read = r;
    }
    c->representative = mapping_representative(c->own, c->needle, &m);
}

static void make_operands(const struct chooser *c, struct mapping *m) {
    for (int o = 0; o < c->needle->noperands; o++) {
        const struct access *a = bound_access(c->site, &c->bound->operand[o]);
        m->operand[o] = bound_operand(c, o);
        m->operand[o].direct = !a || operand_direct(c->needle, c->site->program, a, m->group, o);
    }
}

/* Does the access walk with the axis otherwise than along its tensor's rows? */
static bool walks_across(const struct program *p, const struct access *a, int axis) {
    int last = p->buffer[a->buffer].ndims - 1;
    while (last > 0 && p->buffer[a->buffer].extent[last] == 1) last--;
    return p->axis[axis].extent > 1 && access_varies(p, a, axis) && !access_coef(p, a, last, axis);
}

static int count_across(const struct chooser *c) {
    int n = 0;
    for (int o = 0; o < c->needle->noperands; o++) {
        const struct access *a = bound_access(c->site, &c->bound->operand[o]);
        for (int x = 0; a && x < c->needle->naxes; x++)
            n += c->group[x].n > 0 &&
                 walks_across(c->site->program, a, c->group[x].axis[c->group[x].n - 1]);
    }
    return n;
}

static struct mapping make_mapping(const struct chooser *c) {
    struct arena *arena = c->search->arena;
    const struct operand *dst =
        &c->search->needles->machine->instr[c->needle->instr].operand[c->needle->dst];
    struct mapping m = {.instr = c->needle->instr,
                        .stmt = c->site->stmt,
                        .init = -1,
                        .ngroups = c->needle->naxes,
                        .noperands = c->needle->noperands};
    m.group = arena_copy(arena, c->group, (size_t)c->needle->naxes * sizeof *m.group);
    m.operand = arena_array(arena, (size_t)c->needle->noperands, sizeof *m.operand);
    make_operands(c, &m);
    m.across = count_across(c);
    if (dst->accumulate && c->needle->term.accumulates)
        m.init = init_of(c->site->program, c->site->stmt);
    mapping_price(c->search->needles, c->needle, c->site->program, &m);
    return m;
}

/* By price; equal ones by what is left out of it: operands to pack, axes to fuse, rows to turn. */
int mapping_compare(const struct mapping *a, const struct mapping *b) {
    double x = a->cost + a->copies, y = b->cost + b->copies;
    int packed = 0, fused = 0;
    if (x != y) return x < y ? -1 : 1;
    for (int o = 0; o < a->noperands; o++) packed += !a->operand[o].direct - !b->operand[o].direct;
    for (int g = 0; g < a->ngroups; g++) fused += a->group[g].n - b->group[g].n;
    if (packed || fused) return packed ? packed : fused;
    if (a->across != b->across) return a->across - b->across;
    for (int g = 0; g < a->ngroups; g++)
        for (int k = 0; k < a->group[g].n && k < b->group[g].n; k++)
            if (a->group[g].axis[k] != b->group[g].axis[k])
                return a->group[g].axis[k] - b->group[g].axis[k];
    return 0;
}

/* Were the host's copies not to pass beside the device's work. */
static double unhidden(const struct mapping *m) {
    return m->cost + m->copies + m->hidden;
}

/* Fewer than KEEP_UNHIDDEN others take less time with all of their copies. */
static bool kept_for_copies(const struct chooser *c, const struct mapping *m) {
    const struct search *s = c->search;
    double mine = unhidden(m);
    int less = 0;
    for (int i = c->first; i < s->nmappings; i++)
        less += &s->mapping[i] != m && unhidden(&s->mapping[i]) <= mine;
    return less < KEEP_UNHIDDEN;
}

/* Whose place another one may take; NULL: nobody's. */
static struct mapping *worst_kept(const struct chooser *c) {
    struct search *s = c->search;
    struct mapping *worst = NULL;
    for (int i = c->first; i < s->nmappings; i++)
        if (!kept_for_copies(c, &s->mapping[i]) &&
            (!worst || mapping_compare(&s->mapping[i], worst) > 0))
            worst = &s->mapping[i];
    return worst;
}

static bool worth_keeping(const struct chooser *c, const struct mapping *m) {
    const struct mapping *worst;
    if (c->search->all || c->search->nmappings - c->first < KEEP_BEST) return true;
    worst = worst_kept(c);
    return worst && (mapping_compare(m, worst) < 0 || kept_for_copies(c, m));
}

static void keep(struct chooser *c, struct mapping m) {
    struct search *s = c->search;
    if (!s->all && s->nmappings - c->first >= KEEP_BEST) {
        *worst_kept(c) = m;
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

static void count_stage(const struct chooser *c, enum map_stage stage) {
    struct map_totals *t = c->search->totals;
    if (!t) return;
    t->count[stage]++;
    t->distinct[stage] += c->representative;
}

static void count_mapping(const struct chooser *c, const struct mapping *m) {
    bool direct = true;
    for (int o = 0; o < c->needle->noperands; o++) direct &= m->operand[o].direct;
    if (direct) count_stage(c, STAGE_DIRECT);
    if (m->init >= 0) count_stage(c, STAGE_INIT);
}

/* A needle whose axes share a dimension: the certificate decides. */
static bool coupled_sound(const struct chooser *c, struct mapping *m) {
    struct search *s = c->search;
    struct text why = {0};
    if (!c->needle->coupled) return true;
    m->certified = mapping_certify_with(s->needles, c->site->program, m, &why);
    if (!m->certified)
        note_axis(s, c->needle, c->site, FAILURE_CERTIFICATE, -1, -1, -1,
                  arena_strdup(s->arena, why.at ? why.at : ""));
    text_free(&why);
    return m->certified;
}

/* Issues of length one along an axis of a device's instruction: a window whose steps are longer
 * than one (2p + r) needs no copy then. Callers' arrays are copied beside the work before. A window
 * of one term is also a plain product of a vector and a number. */
static bool may_stay_single(const struct chooser *c, int x) {
    const struct needle *n = c->needle;
    const struct machine *m = c->search->needles->machine;
    int queue = m->instr[n->instr].queue;
    bool made = false;
    if (c->search->all || n->axis[x].ranged < 0 || n->axis[x].lo != 1 || queue < 0 ||
        machine_queue_is_host(m, queue))
        return false;
    if (n->axis[x].reduction) return n->coupled;
    for (int o = 0; o < n->noperands; o++) {
        const struct access *a = bound_access(c->site, &c->bound->operand[o]);
        made |= a && o != n->dst && n->axis[x].signature >> o & 1 &&
                c->site->program->buffer[a->buffer].role == ROLE_TEMP;
    }
    return made;
}

static bool groups_full(const struct chooser *c, uint64_t used) {
    bool any = false;
    for (int x = 0; x < c->needle->naxes; x++) {
        if (c->group[x].n == 0 && c->class[x] & ~used && !may_stay_single(c, x)) return false;
        any |= c->group[x].n > 0;
    }
    return any;
}

/* Of several statements: an axis on each of the needle's, and none left out that an issue must have
 * all of. */
static bool groups_joined(const struct chooser *c, uint64_t used) {
    uint64_t left = c->allowed[MAX_NEEDLE_AXES] & ~used;
    for (int x = 0; x < c->needle->naxes; x++)
        if (c->group[x].n > 1) return false;
    if (!left) return true;
    note_axis(c->search, c->needle, c->site, FAILURE_MISSING_AXIS, -1, __builtin_ctzll(left), -1,
              "one issue must have all of this axis, as a later statement needs the whole result, "
              "but no axis of the instruction stands for it");
    return false;
}

void search_leaf(struct chooser *c, uint64_t used) {
    struct search *s = c->search;
    if (!groups_full(c, used) || (c->allowed && !groups_joined(c, used))) return;
    if (s->totals) note_representative(c);
    count_stage(c, STAGE_FULL);
    int axis = not_injective(c);
    if (axis >= 0) {
        note_axis(s, c->needle, c->site, FAILURE_NOT_INJECTIVE, -1, axis, c->needle->dst,
                  "two points of one issue would write the same element");
        return;
    }
    count_stage(c, STAGE_INJECTIVE);
    const char *cut = joined_extents(c->needle, c->site->program, c->group, &axis);
    if (cut) {
        note_axis(s, c->needle, c->site, FAILURE_EXTENT, axis, -1, -1, cut);
        return;
    }
    if (!padding_legal(c->needle, c->site->program, c->group)) {
        note_axis(s, c->needle, c->site, FAILURE_EXTENT, -1, -1, -1,
                  "the extent of a reduction is no multiple of the instruction's, and zeros would "
                  "change its result");
        return;
    }
    count_stage(c, STAGE_EXTENT);
    struct mapping m = make_mapping(c);
    if (!worth_keeping(c, &m) || !coupled_sound(c, &m)) return;
    count_stage(c, STAGE_COUPLED);
    count_mapping(c, &m);
    keep(c, m);
}

bool search_spent(struct search *s) {
    if (s->steps >= s->limit) s->bounded = true;
    s->steps++;
    return s->bounded;
}

/* ---- choosing groups ---- */

static void choose_all(struct chooser *c, int x, uint64_t used) {
    if (search_spent(c->search)) return;
    if (x == c->needle->naxes) {
        search_leaf(c, used);
        return;
    }
    uint64_t class = c->class[x] & ~used;
    for (uint64_t mask = class;; mask = (mask - 1) & class) {
        if (__builtin_popcountll(mask) <= MAX_GROUP) {
            c->group[x] = group_of(c, x, mask);
            choose_all(c, x + 1, used | mask);
        } else {
            c->search->bounded = true;
        }
        if (mask == 0 || c->search->bounded) break;
    }
}

/* What the rules before the enumeration leave of all assignments: of each axis to a needle axis or
 * to none. */
static void count_assignments(const struct chooser *c) {
    struct map_totals *t = c->search->totals;
    const struct program *p = c->site->program;
    double all = 1, ordered = 1, signed_ = 1;
    if (!t) return;
    for (int a = 0; a < p->naxes; a++) {
        if (!(c->site->s->axes >> a & 1) || p->axis[a].extent < 2) continue;
        int choices = 1;
        for (int x = 0; x < c->needle->naxes; x++) choices += c->class[x] >> a & 1;
        all *= c->needle->naxes + 1;
        signed_ *= choices;
        if (c->site->live >> a & 1) ordered *= c->needle->naxes + 1;
    }
    t->bindings++;
    t->count[STAGE_ASSIGNMENTS] += all;
    t->count[STAGE_ORDER] += ordered;
    t->count[STAGE_SIGNATURE] += signed_;
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
                note_column(c->search, n, c->site, x, a, o, acc);
                return;
            }
        }
    note_axis(c->search, n, c->site, FAILURE_MISSING_AXIS, n->naxes > 0 ? 0 : -1, -1, -1,
              "no axis of the statement moves the same operands");
}

static void choose_groups(struct search *s, const struct needle *n, const struct site *site,
                          const struct binding_set *b, const struct automorphisms *own, int first,
                          const uint64_t *allowed) {
    struct chooser chooser = {.search = s,
                              .needle = n,
                              .site = site,
                              .bound = b,
                              .own = own,
                              .first = first,
                              .allowed = allowed},
                   *c = &chooser;
    uint64_t any = 0;
    for (int x = 0; x < n->naxes; x++) {
        for (int a = 0; a < site->program->naxes; a++)
            if (site->live >> a & 1 && (!allowed || allowed[x] >> a & 1) &&
                axis_in_class(n, site, b, x, a))
                c->class[x] |= UINT64_C(1) << a;
        any |= c->class[x];
    }
    count_assignments(c);
    if (!any)
        note_empty(c);
    else if (s->all)
        choose_all(c, 0, 0);
    else
        choose_best(c);
}

void search_groups(struct search *s, const struct needle *n, const struct site *site,
                   const struct binding_set *b, const uint64_t *allowed) {
    const struct automorphisms *own =
        s->totals ? automorphisms_of(s->arena, s->needles->machine, n) : NULL;
    choose_groups(s, n, site, b, own, s->nmappings, allowed);
}

static void search_anew(struct search *s, const struct needle *n, const struct site *site) {
    struct match match;
    int first = s->nmappings;
    if (site->s->nwhere > 0) {
        note_axis(s, n, site, FAILURE_EXTENT, -1, -1, -1,
                  "the statement's domain is cut by a constraint");
        return;
    }
    match_terms(s->arena, s->needles->machine, n, site, site->term.root, false, &match);
    if (match.n == 0) note_failure(s, n, site, &match.worst);
    const struct automorphisms *own =
        s->totals && match.n > 0 ? automorphisms_of(s->arena, s->needles->machine, n) : NULL;
    for (int i = 0; i < match.n; i++) {
        if (imm_encodable(s->needles->machine, n, &match.at[i])) {
            choose_groups(s, n, site, &match.at[i], own, first, NULL);
            continue;
        }
        struct mismatch w = {FAILURE_OPERATION, n->term.root, site->term.root, n->term.n};
        note_failure(s, n, site, &w);
    }
}

void search_pair(struct search *s, const struct needle *n, const struct site *site) {
    int mappings = s->nmappings, failures = s->nfailures;
    int64_t steps = s->steps;
    if (pair_recall(s, n, site)) return;
    search_anew(s, n, site);
    pair_keep(s, n, site, mappings, failures, steps);
}
