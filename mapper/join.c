/* Needles of several statements (ISA Mapper §2.2): matmul, bias and ReLU; a softmax row. Each
 * statement is matched as a needle of its own, from the last one up; what one hands to another
 * leads to the statement that wrote it. Then the haystack's statements are one statement
 * (stmts_join) in common axes, and groups are chosen as for any other. */
#include "mapper/mapper_int.h"

#include <string.h>

enum { MAX_MATCHES = 8, DEPTH_OF_PART = 20 };

/* ---- the needle ---- */

static bool padding_absorbed(const struct needle *n, int x) {
    for (int q = 0; q < n->nparts; q++) {
        const struct needle *part = &n->part[q];
        const struct stmt *s = &part->program->stmt[0];
        if (!(s->axes >> x & 1) || access_varies(part->program, &s->dst, x)) continue;
        if (!needle_absorbs(part, x)) return false;
        for (int r = 0; r < s->nreads; r++)
            if (part->operand_of_buffer[s->read[r].buffer] >= n->noperands) return false;
    }
    return true;
}

static bool set_access(struct needle *n, int o, const struct access *a) {
    if (o < 0) return false;
    if (n->access[o] && !access_equal(n->program, n->access[o], a)) return false;
    n->access[o] = a;
    return true;
}

/* A statement of the semantics; temporaries are operands too. */
static bool make_part(struct arena *arena, struct needle *n, int q, int ntemps,
                      const int *operand_of) {
    struct needle *part = &n->part[q];
    struct program *view = arena_copy(arena, n->program, sizeof *view);
    view->stmt = &n->program->stmt[q];
    view->nstmts = 1;
    *part = *n;
    part->program = view;
    part->noperands = n->noperands + ntemps;
    part->nparts = 0;
    memset(part->access, 0, sizeof part->access);
    memcpy(part->operand_of_buffer, operand_of, sizeof part->operand_of_buffer);
    const struct stmt *s = view->stmt;
    part->dst = operand_of[s->dst.buffer];
    bool good = set_access(part, part->dst, &s->dst);
    for (int r = 0; r < s->nreads; r++)
        good &= set_access(part, operand_of[s->read[r].buffer], &s->read[r]);
    part->term = term_of(arena, n->program, s);
    term_simplify(arena, &part->term, n->program, q);
    return good;
}

void needle_join(struct arena *arena, const struct machine *m, struct needle *n) {
    const struct program *p = n->program;
    int all[MAX_JOINED], operand_of[MAX_OPERANDS * 2], ntemps = 0;
    struct stmt *joined = arena_alloc(arena, sizeof *joined);
    for (int o = 0; o < n->noperands; o++)
        if (m->instr[n->instr].operand[o].accumulate)
            n->refused = "has several statements and an accumulate flag";
    if (n->refused) return;
    if (p->nstmts > MAX_JOINED) {
        n->refused = "has too many statements";
        return;
    }
    for (int q = 0; q < p->nstmts; q++) all[q] = q;
    const char *why = stmts_join(arena, p, all, p->nstmts, joined);
    if (why) {
        n->refused = arena_printf(arena, "has statements that are not one: %s", why);
        return;
    }
    memcpy(operand_of, n->operand_of_buffer, sizeof operand_of);
    for (int b = 0; b < p->nbuffers; b++)
        if (operand_of[b] < 0) operand_of[b] = n->noperands + ntemps++;
    n->dst = n->operand_of_buffer[joined->dst.buffer];
    bool good = n->noperands + ntemps <= MAX_OPERANDS && set_access(n, n->dst, &joined->dst);
    for (int r = 0; r < joined->nreads && good; r++)
        good = set_access(n, n->operand_of_buffer[joined->read[r].buffer], &joined->read[r]);
    for (int o = 0; o < n->noperands && good; o++) good = n->access[o] != NULL;
    n->part = arena_array(arena, (size_t)p->nstmts, sizeof *n->part);
    for (int q = 0; q < p->nstmts && good; q++) good = make_part(arena, n, q, ntemps, operand_of);
    if (!good) {
        n->refused = "reads one operand, or what it keeps to itself, at several places";
        return;
    }
    n->joined = joined;
    n->nparts = p->nstmts;
    n->whole = stmts_whole_axes(p, all, p->nstmts);
    for (int x = 0; x < n->naxes; x++)
        if (padding_absorbed(n, x)) n->absorbing |= UINT64_C(1) << x;
}

/* ---- which statement is which ---- */

struct joining {
    struct search *search;
    const struct needle *needle;
    const struct program *p;
    int stmt[MAX_JOINED]; /* haystack statement of each part; -1: open */
    struct binding_set bound[MAX_JOINED];
    int pair[MAX_OPERANDS * 2]; /* of each buffer of the semantics that it writes; -1 */
    int found;
};

static bool part_uses(const struct needle *part, int buffer) {
    const struct stmt *s = &part->program->stmt[0];
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->dst.buffer == buffer;
}

/* What part q writes is written last before the parts behind it that use it. */
static int writer_for(const struct joining *j, int q) {
    int buffer = j->needle->part[q].program->stmt[0].dst.buffer, before = j->p->nstmts;
    for (int k = q + 1; k < j->needle->nparts; k++)
        if (part_uses(&j->needle->part[k], buffer) && j->stmt[k] < before) before = j->stmt[k];
    for (int s = before; s-- > 0;)
        if (j->p->stmt[s].dst.buffer == j->pair[buffer]) return s;
    return -1;
}

static bool pair_buffers(struct joining *j, int buffer, int hay) {
    if (j->pair[buffer] >= 0) return j->pair[buffer] == hay;
    for (int b = 0; b < j->needle->program->nbuffers; b++)
        if (j->pair[b] == hay) return false;
    j->pair[buffer] = hay;
    return true;
}

/* Temporaries of the needle are played by temporaries; what it overwrites by what is overwritten.
 */
static bool pairs_agree(struct joining *j, int q) {
    const struct needle *part = &j->needle->part[q];
    const struct stmt *s = &part->program->stmt[0], *h = &j->p->stmt[j->stmt[q]];
    if (!pair_buffers(j, s->dst.buffer, h->dst.buffer)) return false;
    const struct bound *dst = &j->bound[q].operand[part->dst];
    if (dst->read >= 0 && h->read[dst->read].buffer != h->dst.buffer) return false;
    for (int r = 0; r < s->nreads; r++) {
        int o = part->operand_of_buffer[s->read[r].buffer];
        const struct bound *b = &j->bound[q].operand[o];
        if (o < j->needle->noperands || b->kind != BOUND_READ) continue;
        int hay = h->read[b->read].buffer;
        if (j->p->buffer[hay].role != ROLE_TEMP || !pair_buffers(j, s->read[r].buffer, hay))
            return false;
    }
    return true;
}

static void take(struct joining *j);

static void assign(struct joining *j, int q) {
    const struct needle *part = &j->needle->part[q];
    struct joining saved = *j;
    struct match match;
    if (q + 1 < j->needle->nparts) j->stmt[q] = writer_for(j, q);
    if (j->stmt[q] < 0) {
        struct site last = site_of(j->search->arena, j->p, j->stmt[q + 1]);
        int buffer = part->program->stmt[0].dst.buffer;
        note_axis(j->search, j->needle, &last, FAILURE_MISSING_STATEMENT, -1, -1, -1,
                  arena_printf(j->search->arena,
                               "no statement before it does what fills '%s' there",
                               part->program->buffer[buffer].name));
        *j = saved;
        return;
    }
    struct site site = site_of(j->search->arena, j->p, j->stmt[q]);
    match_terms(j->search->arena, j->search->needles->machine, part, &site, site.term.root, false,
                &match);
    match.worst.depth += match.worst.depth < 0 ? 0 : DEPTH_OF_PART * (j->needle->nparts - 1 - q);
    if (match.n == 0) note_failure(j->search, part, &site, &match.worst);
    for (int i = 0; i < match.n && j->found < MAX_MATCHES; i++) {
        struct joining before = *j;
        j->bound[q] = match.at[i];
        if (imm_encodable(j->search->needles->machine, part, &match.at[i]) && pairs_agree(j, q)) {
            if (q > 0)
                assign(j, q - 1);
            else
                take(j);
        }
        before.found = j->found;
        *j = before;
    }
    saved.found = j->found;
    *j = saved;
}

/* ---- common axes ---- */

struct classes { /* of axes of parts: node part * MAX_AXES + axis */
    int of[MAX_JOINED * MAX_AXES];
};

static int class_of(const struct classes *c, int node) {
    while (c->of[node] != node) node = c->of[node];
    return node;
}

static int lone_axis(const struct program *p, const struct access *a, int dim) {
    int found = -1;
    for (int x = 0; x < p->naxes; x++) {
        if (!access_coef(p, a, dim, x)) continue;
        if (found >= 0) return -1;
        found = x;
    }
    return found;
}

/* One index of one buffer, written in the axes of two parts. */
static void unify(struct classes *c, const struct program *p, int q, const struct access *a, int k,
                  const struct access *b) {
    if (a->buffer != b->buffer) return;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        int x = lone_axis(p, a, d), y = lone_axis(p, b, d);
        if (x < 0 || y < 0 || access_coef(p, a, d, x) != access_coef(p, b, d, y)) continue;
        int m = class_of(c, q * MAX_AXES + x), n = class_of(c, k * MAX_AXES + y);
        if (m != n) c->of[m < n ? m : n] = m < n ? n : m; /* later parts lead */
    }
}

static const struct access *played(const struct joining *j, int q, int operand) {
    const struct stmt *h = &j->p->stmt[j->stmt[q]];
    const struct bound *b = &j->bound[q].operand[operand];
    if (operand == j->needle->part[q].dst) return &h->dst;
    return j->needle->part[q].access[operand] && b->kind == BOUND_READ ? &h->read[b->read] : NULL;
}

static void find_classes(const struct joining *j, struct classes *c) {
    int n = j->needle->nparts;
    for (int k = 0; k < n * MAX_AXES; k++) c->of[k] = k;
    for (int q = 0; q < n; q++)
        for (int k = q + 1; k < n; k++)
            for (int o = 0; o < j->needle->part[q].noperands; o++) {
                const struct access *a = played(j, q, o), *b = played(j, k, o);
                if (a && b) unify(c, j->p, q, a, k, b);
            }
}

/* An axis for each class: its own in the last part that has it, unless another class has that one.
 */
static const char *name_classes(const struct joining *j, const struct classes *c,
                                int8_t (*name)[MAX_AXES]) {
    const struct program *p = j->p;
    int given[MAX_JOINED * MAX_AXES];
    uint64_t used = 0;
    for (int k = 0; k < MAX_JOINED * MAX_AXES; k++) given[k] = -1;
    for (int q = j->needle->nparts; q-- > 0;) {
        uint64_t axes = p->stmt[j->stmt[q]].axes, here = 0;
        for (int a = 0; a < p->naxes; a++) {
            name[q][a] = (int8_t)a;
            if (!(axes >> a & 1)) continue;
            int *id = &given[class_of(c, q * MAX_AXES + a)];
            for (int b = -1; b < p->naxes && *id < 0; b++) {
                int x = b < 0 ? a : b;
                if (!(used >> x & 1) && p->axis[x].extent == p->axis[a].extent &&
                    p->axis[x].sequential == p->axis[a].sequential)
                    *id = x;
            }
            if (*id < 0) return "its statements have too many axes that are not the same";
            if (here >> *id & 1 || p->axis[*id].extent != p->axis[a].extent)
                return "the axes of its statements do not agree";
            used |= UINT64_C(1) << *id;
            here |= UINT64_C(1) << *id;
            name[q][a] = (int8_t)*id;
        }
    }
    return NULL;
}

static int joined_stmts(const struct mapping *m, int *stmt) {
    memcpy(stmt, m->also, sizeof *stmt * (size_t)m->nalso);
    stmt[m->nalso] = m->stmt;
    return m->nalso + 1;
}

const char *joined_view(struct arena *arena, const struct program *p, const struct mapping *m,
                        struct program *view) {
    int stmt[MAX_JOINED], n = joined_stmts(m, stmt), axis[MAX_AXES];
    struct stmt joined;
    *view = *p;
    view->stmt = arena_copy(arena, p->stmt, (size_t)p->nstmts * sizeof *p->stmt);
    for (int q = 0; q < n; q++) {
        for (int a = 0; a < p->naxes; a++) axis[a] = m->renamed[q][a];
        stmt_rename_axes(arena, view, &view->stmt[stmt[q]], axis);
    }
    const char *why = stmts_join(arena, view, stmt, n, &joined);
    if (!why) view->stmt[m->stmt] = joined;
    return why;
}

bool mapping_program(struct arena *arena, const struct program *p, const struct mapping *m,
                     struct program *view) {
    return m->nalso > 0 && !joined_view(arena, p, m, view);
}

/* ---- groups ---- */

/* Haystack axis a may stand on needle axis x if it does in each part. */
static bool axis_fits(const struct joining *j, const struct program *parts, int x, int a) {
    for (int q = 0; q < j->needle->nparts; q++) {
        const struct needle *part = &j->needle->part[q];
        const struct stmt *s = &part->program->stmt[0], *h = &parts->stmt[j->stmt[q]];
        if ((s->axes >> x & 1) != (h->axes >> a & 1)) return false;
        for (int o = 0; o < part->noperands; o++) {
            const struct bound *b = &j->bound[q].operand[o];
            const struct access *hay = o == part->dst          ? &h->dst
                                       : b->kind == BOUND_READ ? &h->read[b->read]
                                                               : NULL;
            if (!part->access[o] || !hay) continue;
            if (access_varies(part->program, part->access[o], x) != access_varies(parts, hay, a))
                return false;
        }
    }
    return true;
}

/* What plays each operand: the same in all parts. */
static bool bind_operands(const struct joining *j, const struct program *parts,
                          const struct stmt *joined, struct binding_set *out) {
    memset(out, 0, sizeof *out);
    for (int o = 0; o < j->needle->noperands; o++) {
        struct bound *b = &out->operand[o];
        for (int q = 0; q < j->needle->nparts; q++) {
            const struct bound *own = &j->bound[q].operand[o];
            if (!j->needle->part[q].access[o] || o == j->needle->dst) continue;
            struct bound now = *own;
            if (own->kind == BOUND_READ)
                now.read =
                    stmt_joined_read(parts, joined, &parts->stmt[j->stmt[q]].read[own->read]);
            if (b->kind != BOUND_NONE &&
                (b->kind != now.kind || b->read != now.read || b->imm.i != now.imm.i))
                return false;
            *b = now;
        }
        if (o == j->needle->dst) *b = (struct bound){.kind = BOUND_DST, .read = -1, .node = -1};
        if (b->kind == BOUND_NONE || (b->kind == BOUND_READ && b->read < 0)) return false;
    }
    return true;
}

const char *joined_extents(const struct needle *n, const struct program *p, const struct group *g,
                           int *axis) {
    for (int x = 0; x < n->naxes; x++) {
        if (!(n->whole >> x & 1)) continue;
        *axis = x;
        int64_t hi = n->axis[x].hi, extent = group_extent(p, &g[x]);
        if (hi >= 0 && extent > hi)
            return "one issue must have all of this axis, as a later statement of the instruction "
                   "needs the whole sum, but the axis is longer than the instruction's";
    }
    *axis = -1;
    return NULL;
}

static void refuse(const struct joining *j, enum failure_kind kind, const char *why) {
    struct site last = site_of(j->search->arena, j->p, j->stmt[j->needle->nparts - 1]);
    note_axis(j->search, j->needle, &last, kind, -1, -1, -1, why);
}

static void choose(const struct joining *j, const struct mapping *as, const struct program *view,
                   const struct program *parts, const struct binding_set *b) {
    struct search *s = j->search;
    uint64_t allowed[MAX_NEEDLE_AXES + 1] = {0};
    int stmt[MAX_JOINED], n = joined_stmts(as, stmt), first = s->nmappings;
    struct site site = {
        .program = view, .stmt = as->stmt, .said = as->stmt, .s = &view->stmt[as->stmt]};
    for (int a = 0; a < view->naxes; a++)
        if (site.s->axes >> a & 1 && view->axis[a].extent > 1 && !view->axis[a].sequential)
            site.live |= UINT64_C(1) << a;
    for (int x = 0; x < j->needle->naxes; x++)
        for (int a = 0; a < view->naxes; a++)
            if (site.live >> a & 1 && axis_fits(j, parts, x, a)) allowed[x] |= UINT64_C(1) << a;
    for (int a = 0; a < view->naxes; a++)
        if (view->axis[a].extent > 1 && stmts_whole_axes(parts, stmt, n) >> a & 1)
            allowed[MAX_NEEDLE_AXES] |= UINT64_C(1) << a;
    search_groups(s, j->needle, &site, b, allowed);
    for (int i = first; i < s->nmappings; i++) {
        s->mapping[i].nalso = as->nalso;
        memcpy(s->mapping[i].also, as->also, sizeof as->also);
        s->mapping[i].renamed = as->renamed;
    }
}

/* All parts have a statement. */
static void take(struct joining *j) {
    struct search *s = j->search;
    int n = j->needle->nparts;
    struct classes *c = arena_alloc(s->arena, sizeof *c);
    int8_t(*name)[MAX_AXES] = arena_array(s->arena, (size_t)n, sizeof *name);
    struct mapping as = {.stmt = j->stmt[n - 1], .nalso = n - 1, .renamed = name};
    struct program view, parts;
    struct binding_set b;
    memcpy(as.also, j->stmt, sizeof *as.also * (size_t)as.nalso);
    find_classes(j, c);
    const char *why = name_classes(j, c, name);
    if (!why) why = joined_view(s->arena, j->p, &as, &view);
    if (why) {
        refuse(j, FAILURE_MISSING_STATEMENT, why);
        return;
    }
    parts = view;
    parts.stmt = arena_copy(s->arena, view.stmt, (size_t)view.nstmts * sizeof *view.stmt);
    parts.stmt[as.stmt] = j->p->stmt[as.stmt]; /* the last one's axes stay */
    if (!bind_operands(j, &parts, &view.stmt[as.stmt], &b)) {
        refuse(j, FAILURE_OPERATION, "its statements read different things as one operand");
        return;
    }
    j->found++;
    choose(j, &as, &view, &parts, &b);
}

void search_joined(struct search *s, const struct needle *n, const struct program *p, int stmt) {
    struct joining j = {.search = s, .needle = n, .p = p};
    for (int q = 0; q < MAX_JOINED; q++) j.stmt[q] = -1;
    for (int b = 0; b < MAX_OPERANDS * 2; b++) j.pair[b] = -1;
    j.stmt[n->nparts - 1] = stmt;
    assign(&j, n->nparts - 1);
}
