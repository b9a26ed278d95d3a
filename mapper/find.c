/* All needles on all statements. */
#include "mapper/mapper_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_STEPS = 1000000 /* of a statement */ };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_depth(const void *a, const void *b) {
    const struct failure *x = a, *y = b;
    if (x->depth != y->depth) return y->depth - x->depth;
    if (x->stmt != y->stmt) return x->stmt - y->stmt;
    if (x->alike != y->alike) return y->alike - x->alike;
    return x->instr - y->instr;
}

const char *const stage_key[STAGE_COUNT] = {
#define X(id, key, name) #key,
    STAGE_TABLE(X)
#undef X
};
const char *const stage_name[STAGE_COUNT] = {
#define X(id, key, name) name,
    STAGE_TABLE(X)
#undef X
};

/* Back to the program's own axes. */
static void unmerge(struct search *s, const struct merged_axes *of) {
    int kept = 0;
    for (int i = 0; i < s->nmappings; i++) {
        bool whole = true;
        for (int x = 0; x < s->mapping[i].ngroups; x++)
            whole &= group_unmerged(of, &s->mapping[i].group[x]);
        if (whole) s->mapping[kept++] = s->mapping[i];
    }
    s->bounded |= kept < s->nmappings;
    s->nmappings = kept;
    for (int i = 0; i < s->nfailures; i++)
        s->failure[i].stmt_axis = axis_unmerged(of, s->failure[i].stmt_axis);
}

/* The bound is each statement's own. */
static void begin_stmt(struct search *s, bool *bounded) {
    *bounded |= s->bounded;
    s->bounded = false;
    s->steps = 0;
}

static void search_program(struct search *s, const struct program *p) {
    struct arena scratch;
    bool bounded = false;
    arena_init(&scratch);
    for (int t = 0; t < p->nstmts; t++) {
        begin_stmt(s, &bounded);
        struct site site = site_of(&scratch, p, t);
        for (int i = 0; i < s->needles->n && !s->bounded; i++) {
            const struct needle *n = &s->needles->at[i];
            if (n->offered)
                search_pair(s, n, &site);
            else if (n->refused && n->program->nstmts > 0)
                note_refused(s, n, &site);
        }
    }
    s->bounded |= bounded;
    arena_free(&scratch);
}

/* Axes are the program's own: what is one axis for one statement need not be for the next. */
static void search_all_joined(struct search *s, const struct program *p) {
    bool bounded = false;
    for (int t = 0; t < p->nstmts; t++) {
        begin_stmt(s, &bounded);
        for (int i = 0; i < s->needles->n && !s->bounded; i++)
            if (s->needles->at[i].nparts > 0) search_joined(s, &s->needles->at[i], p, t);
    }
    s->bounded |= bounded;
}

static int by_cost(const void *a, const void *b) {
    const struct mapping *x = a, *y = b;
    double cx = x->cost + x->copies, cy = y->cost + y->copies;
    if (cx != cy) return cx < cy ? -1 : 1;
    if (x->stmt != y->stmt) return x->stmt - y->stmt;
    return x->instr != y->instr ? x->instr - y->instr : mapping_compare(x, y);
}

struct findings *mapper_find(const struct program *p, const struct machine *m,
                             const struct map_options *o) {
    struct findings *f = memory_array(1, sizeof *f);
    arena_init(&f->arena);
    double start = now();
    struct needles *needles = needles_open(m);
    struct search s = {.arena = &f->arena,
                       .needles = needles,
                       .all = o->all,
                       .explain = o->explain,
                       .limit = o->steps > 0 ? o->steps : DEFAULT_STEPS,
                       .totals = o->all ? &f->totals : NULL};
    struct merged_axes of;
    struct program *merged = program_merged(p, &of);
    search_program(&s, merged ? merged : p);
    if (merged) unmerge(&s, &of);
    program_free(merged);
    search_all_joined(&s, p);
    if (s.nmappings > 1) qsort(s.mapping, (size_t)s.nmappings, sizeof *s.mapping, by_cost);
    if (s.nfailures > 1) qsort(s.failure, (size_t)s.nfailures, sizeof *s.failure, by_depth);
    f->mapping = s.mapping;
    f->nmappings = s.nmappings;
    f->failure = s.failure;
    f->nfailures = s.nfailures;
    f->bounded = s.bounded;
    f->distinct = o->all ? (int)f->totals.distinct[STAGE_COUPLED]
                         : count_distinct(needles, s.mapping, s.nmappings);
    f->seconds_find = now() - start;
    start = now();
    for (int i = 0; o->certify_all && i < f->nmappings; i++)
        f->mapping[i].certified = mapping_certify_with(needles, p, &f->mapping[i], NULL);
    for (int i = 0; i < f->nmappings; i++) f->totals.certified += f->mapping[i].certified;
    f->seconds_certify = now() - start;
    needles_close(needles);
    return f;
}

void findings_free(struct findings *f) {
    if (!f) return;
    arena_free(&f->arena);
    free(f);
}

/* ---- printing ---- */

static void print_groups(const struct program *p, const struct needle *n, const struct mapping *m,
                         struct text *t) {
    for (int x = 0; x < m->ngroups; x++) {
        text_printf(t, " %s=(", n->program->axis[x].name);
        for (int k = 0; k < m->group[x].n; k++)
            text_printf(t, "%s%s", k ? "," : "", p->axis[m->group[x].axis[k]].name);
        text_printf(t, ")");
    }
}

static void print_statements(const struct mapping *m, struct text *t) {
    text_printf(t, m->nalso ? "statements" : "statement");
    for (int q = 0; q < m->nalso; q++) text_printf(t, " %d", m->also[q]);
    text_printf(t, " %d", m->stmt);
}

static void print_operands(const struct program *p, const struct instr *x, const struct mapping *m,
                           struct text *t) {
    const struct stmt *s = &p->stmt[m->stmt];
    for (int o = 0; o < x->noperands; o++) {
        const struct mapped_operand *mo = &m->operand[o];
        const struct access *a = mapped_access(s, mo);
        text_printf(t, " %s=", x->operand[o].buffer);
        if (!a && type_is_float(x->operand[o].type))
            text_printf(t, "%.17g", mo->imm.f);
        else if (!a)
            text_printf(t, "%lld", (long long)mo->imm.i);
        else
            text_printf(t, "%s%s", p->buffer[a->buffer].name, mo->direct ? "" : "*");
        if (mo->role == OPERAND_DST && mo->read >= 0)
            text_printf(t, "<-%s", p->buffer[s->read[mo->read].buffer].name);
    }
}

void mapping_print(const struct program *p, const struct machine *m, const struct mapping *map,
                   struct text *t) {
    const struct instr *x = &m->instr[map->instr];
    struct needle names = {0};
    struct arena scratch;
    struct program view;
    int64_t size[MAX_RANGED];
    struct diags d;
    diags_init(&d);
    arena_init(&scratch);
    if (mapping_program(&scratch, p, map, &view)) p = &view;
    for (int i = 0; i < x->nranged && i < MAX_RANGED; i++) {
        int64_t lo, hi, step;
        size[i] = instr_size_range(m, x, i, &lo, &hi, &step) ? lo : 1;
    }
    names.program = instr_bind(m, x, size, &d);
    text_printf(t, "%s: ", x->id);
    print_statements(map, t);
    if (names.program) print_groups(p, &names, map, t);
    print_operands(p, x, map, t);
    if (map->init >= 0) text_printf(t, " init %d", map->init);
    text_printf(t, " cost %.6g copies %.6g waste %.4g%s", map->cost, map->copies, map->waste,
                map->certified ? " certified" : "");
    program_free(names.program);
    arena_free(&scratch);
    diags_free(&d);
}
