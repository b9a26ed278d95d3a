/* How a program is written does not matter: axes in another order, split and fused again, of extent
 * 1, other names, operands exchanged. The set of mappings stays the same, mapping by mapping. Each
 * operator is written anew ISAMAP_INVARIANCE times (300). */
#include "mapper_help.h"

#define MATMUL "tests/data/machines/mapper/matmul16.xml"

enum { MAX_WORDS = 16 };

struct mapping_key { /* which original axes stand on each needle axis, and what plays each operand
                      */
    uint64_t word[MAX_WORDS];
};

struct mapping_set {
    struct mapping_key *at;
    int n;
};

static int compare_keys(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct mapping_key));
}

/* `origin`: the original axis that an axis is part of. A group that has one part of an axis has
 * all. */
static struct mapping_set set_of(const struct program *p, const struct machine *m,
                                 const int *origin) {
    struct findings *f = mapper_find(p, m, &(struct map_options){.all = true});
    struct mapping_set set = {calloc((size_t)f->nmappings + 1, sizeof *set.at), f->nmappings};
    assert_false(f->bounded);
    for (int i = 0; i < f->nmappings; i++) {
        const struct mapping *map = &f->mapping[i];
        const struct stmt *s = &p->stmt[map->stmt];
        struct mapping_key *k = &set.at[i];
        int n = 3;
        k->word[0] = (uint64_t)map->instr;
        k->word[1] = (uint64_t)map->stmt;
        k->word[2] = (uint64_t)(map->init + 1);
        assert_true(3 + map->ngroups + map->noperands <= MAX_WORDS);
        for (int x = 0; x < map->ngroups; x++, n++) {
            uint64_t members = 0;
            for (int g = 0; g < map->group[x].n; g++) {
                k->word[n] |= UINT64_C(1) << origin[map->group[x].axis[g]];
                members |= UINT64_C(1) << map->group[x].axis[g];
            }
            for (int a = 0; a < p->naxes; a++)
                if (s->axes >> a & 1 && p->axis[a].extent > 1 && origin[a] >= 0 &&
                    k->word[n] >> origin[a] & 1)
                    assert_true(members >> a & 1);
        }
        for (int o = 0; o < map->noperands; o++) {
            int r = map->operand[o].read;
            for (int q = r - 1; q >= 0; q--) /* one element, read twice */
                if (access_equal(p, &s->read[q], &s->read[map->operand[o].read])) r = q;
            k->word[n++] = (uint64_t)map->operand[o].role * 100 + (uint64_t)(r + 1);
        }
    }
    qsort(set.at, (size_t)set.n, sizeof *set.at, compare_keys);
    findings_free(f);
    return set;
}

/* ---- writing a program anew ---- */

struct rewriting {
    struct program *p;
    int origin[MAX_AXES]; /* -1: of extent 1, inserted */
    uint64_t *seed;
};

static int64_t *wider(struct program *p, const int64_t *old, int rows) {
    size_t n = (size_t)p->naxes;
    int64_t *new = arena_array(&p->arena, (n + 2) * (size_t)rows, sizeof *new);
    for (size_t d = 0; d < (size_t)rows; d++) {
        memcpy(new + d *(n + 2), old + d * (n + 1), n * sizeof *new);
        new[d * (n + 2) + n + 1] = old[d * (n + 1) + n];
    }
    return new;
}

/* A new axis that nothing uses. */
static int add_axis(struct rewriting *w, int64_t extent, int origin) {
    struct program *p = w->p;
    for (int k = 0; k < p->nstmts; k++) {
        struct stmt *s = &p->stmt[k];
        for (int r = -1; r < s->nreads; r++) {
            struct access *x = r < 0 ? &s->dst : &s->read[r];
            x->coef = wider(p, x->coef, p->buffer[x->buffer].ndims);
        }
        for (int c = 0; c < s->nwhere; c++) s->where[c].coef = wider(p, s->where[c].coef, 1);
    }
    struct axis *axis = arena_array(&p->arena, (size_t)p->naxes + 1, sizeof *axis);
    memcpy(axis, p->axis, (size_t)p->naxes * sizeof *axis);
    axis[p->naxes] = (struct axis){
        .name = arena_printf(&p->arena, "new%d", p->naxes), .extent = extent, .param = -1};
    p->axis = axis;
    w->origin[p->naxes] = origin;
    return p->naxes++;
}

/* Column `from` moves to two columns: i = e * outer + inner. */
static void split_rows(int64_t *coef, int rows, int width, int from, int outer, int inner,
                       int64_t e) {
    for (int d = 0; d < rows; d++) {
        int64_t *row = coef + d * width;
        row[inner] = row[from];
        row[outer] = row[from] * e;
        row[from] = 0;
    }
}

/* In some of the statements that have it, axis a becomes two. */
static void split(struct rewriting *w, int a) {
    struct program *p = w->p;
    int64_t extent = p->axis[a].extent, factor[8];
    int n = 0;
    for (int64_t f = 2; f < extent && n < 8; f++)
        if (extent % f == 0) factor[n++] = f;
    if (n == 0 || p->axis[a].sequential) return;
    int64_t e = factor[help_below(w->seed, n)];
    uint64_t stmts = help_below(w->seed, 2) ? ~UINT64_C(0) : help_random(w->seed);
    for (int k = 0; k < p->nstmts; k++) /* the value of an axis cannot be written with two */
        for (int o = 0; o < p->stmt[k].nops; o++)
            if (p->stmt[k].op[o].code == OP_AXIS) stmts &= ~(UINT64_C(1) << k);
    int outer = add_axis(w, extent / e, w->origin[a]), inner = add_axis(w, e, w->origin[a]);
    for (int k = 0; k < p->nstmts; k++) {
        struct stmt *s = &p->stmt[k];
        if (!(s->axes >> a & 1) || !(stmts >> k & 1)) continue;
        for (int r = -1; r < s->nreads; r++) {
            struct access *x = r < 0 ? &s->dst : &s->read[r];
            split_rows(x->coef, p->buffer[x->buffer].ndims, p->naxes + 1, a, outer, inner, e);
        }
        for (int c = 0; c < s->nwhere; c++)
            split_rows(s->where[c].coef, 1, p->naxes + 1, a, outer, inner, e);
        s->axes = stmt_axes(p, s);
    }
}

static void add_unit(struct rewriting *w) {
    struct program *p = w->p;
    int a = add_axis(w, 1, -1), k = help_below(w->seed, p->nstmts);
    struct stmt *s = &p->stmt[k];
    int r = help_below(w->seed, s->nreads + 1) - 1;
    struct access *x = r < 0 ? &s->dst : &s->read[r];
    int d = help_below(w->seed, p->buffer[x->buffer].ndims);
    x->coef[d * (p->naxes + 1) + a] = 1 + help_below(w->seed, 3);
    for (int q = -1; q < s->nreads; q++) { /* what is read in place has the destination's index */
        struct access *y = q < 0 ? &s->dst : &s->read[q];
        if (y != x && y->buffer == x->buffer)
            y->coef[d * (p->naxes + 1) + a] = x->coef[d * (p->naxes + 1) + a];
    }
    s->axes = stmt_axes(p, s);
}

static void permute_row(int64_t *row, int n, const int *at) {
    int64_t old[MAX_AXES];
    memcpy(old, row, (size_t)n * sizeof *row);
    for (int a = 0; a < n; a++) row[at[a]] = old[a];
}

/* Axis a goes to place at[a]; all names are new; operands change sides. */
static void shuffle(struct rewriting *w) {
    struct program *p = w->p;
    int at[MAX_AXES], origin[MAX_AXES], n = p->naxes;
    struct axis old[MAX_AXES];
    for (int a = 0; a < n; a++) at[a] = a;
    for (int a = n; a-- > 1;) {
        int b = help_below(w->seed, a + 1), t = at[a];
        at[a] = at[b];
        at[b] = t;
    }
    memcpy(old, p->axis, (size_t)n * sizeof *old);
    memcpy(origin, w->origin, sizeof origin);
    for (int a = 0; a < n; a++) {
        p->axis[at[a]] = old[a];
        p->axis[at[a]].name = arena_printf(&p->arena, "axis%d", at[a]);
        w->origin[at[a]] = origin[a];
    }
    for (int b = 0; b < p->nbuffers; b++)
        p->buffer[b].name = arena_printf(&p->arena, "buffer%d", p->nbuffers - b);
    for (int k = 0; k < p->nstmts; k++) {
        struct stmt *s = &p->stmt[k];
        for (int r = -1; r < s->nreads; r++) {
            struct access *x = r < 0 ? &s->dst : &s->read[r];
            for (int d = 0; d < p->buffer[x->buffer].ndims; d++)
                permute_row(x->coef + d * (n + 1), n, at);
        }
        for (int c = 0; c < s->nwhere; c++) permute_row(s->where[c].coef, n, at);
        for (int o = 0; o < s->nops; o++) {
            struct op *op = &s->op[o];
            if (op->code == OP_AXIS) op->axis = at[op->axis];
            if (!(op_info[op->code].flags & OP_COMM) || help_below(w->seed, 2)) continue;
            int t = op->arg[0];
            op->arg[0] = op->arg[1];
            op->arg[1] = t;
        }
        s->axes = stmt_axes(p, s);
    }
}

static struct program *written_anew(const struct program *p, int *origin, uint64_t *seed) {
    struct rewriting w = {.p = program_copy(p), .seed = seed};
    for (int a = 0; a < p->naxes; a++) w.origin[a] = a;
    for (int n = help_below(seed, 4); n > 0 && w.p->naxes < 24; n--)
        split(&w, help_below(seed, w.p->naxes));
    for (int n = help_below(seed, 3); n > 0; n--) add_unit(&w);
    shuffle(&w);
    memcpy(origin, w.origin, sizeof w.origin);
    return w.p;
}

/* ---- */

static void check_verified(const struct program *p) {
    struct diags d;
    diags_init(&d);
    bool good = program_verify(p, &d);
    if (!good) diags_print(&d, stderr);
    assert_true(good);
    diags_free(&d);
}

static void compare(const struct program *p, const struct machine *m, int times, uint64_t *seed) {
    int origin[MAX_AXES];
    for (int a = 0; a < p->naxes; a++) origin[a] = a;
    struct mapping_set want = set_of(p, m, origin);
    for (int i = 0; i < times; i++) {
        struct program *q = written_anew(p, origin, seed);
        if (i % 8 == 0) check_verified(q);
        struct mapping_set got = set_of(q, m, origin);
        bool same =
            got.n == want.n && memcmp(got.at, want.at, (size_t)want.n * sizeof *want.at) == 0;
        if (!same) {
            struct text t = {0};
            program_print(q, &t);
            print_error("%d mappings, then %d\n%s\n", want.n, got.n, t.at);
            text_free(&t);
        }
        assert_true(same);
        free(got.at);
        program_free(q);
    }
    free(want.at);
}

static int times_of(int usual) {
    const char *given = getenv("ISAMAP_INVARIANCE");
    return given ? atoi(given) : usual;
}

static void test_operators(void **state) {
    static const char *const name[] = {"gmv", "gmm", "c1d", "c2d",     "c3d",      "t2d", "grp",
                                       "dil", "dep", "cap", "bcv",     "gfc",      "men", "var",
                                       "scn", "sep", "att", "softmax", "layernorm"};
    struct machine *m = help_machine(MATMUL);
    uint64_t seed = 5;
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        struct program *p = help_operator(name[i]);
        compare(p, m, times_of(300), &seed);
        program_free(p);
    }
    machine_free(m);
}

/* On many needles. */
static void test_tiny(void **state) {
    struct machine *m = help_machine("tests/data/machines/mapper/tiny.xml");
    uint64_t seed = 6;
    (void)state;
    for (int i = 0; i < times_of(300); i++) {
        struct program *p = help_tiny(&seed);
        compare(p, m, 1, &seed);
        program_free(p);
    }
    machine_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operators),
                                       cmocka_unit_test(test_tiny)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
