/* What a sum's terms have of constants alone becomes a temporary, which is made once, before the
 * first run: of x·((w - z)·s) two factors are left. */
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <math.h>

struct found {
    int n, node[MAX_CUTS];
};

/* Does the tree read constants, and nothing else? */
static bool is_steady(const struct program *p, const struct stmt *s, int node, bool *reads) {
    const struct op *o = &s->op[node];
    bool steady = o->code != OP_READ || buffer_steady(p, s->read[o->read].buffer);
    *reads |= o->code == OP_READ;
    for (int k = 0; k < op_info[o->code].arity; k++) steady &= is_steady(p, s, o->arg[k], reads);
    return steady;
}

/* The largest such trees below the node that are more than a read. */
static void find(const struct program *p, const struct stmt *s, int node, struct found *f) {
    const struct op *o = &s->op[node];
    bool reads = false;
    if (o->code == OP_READ || f->n == MAX_CUTS) return;
    if (is_steady(p, s, node, &reads)) {
        if (reads) f->node[f->n++] = node;
        return;
    }
    for (int k = 0; k < op_info[o->code].arity; k++) find(p, s, o->arg[k], f);
}

/* As many elements at most as one of the constants has: a product of two along axes of their own
 * would be larger than both. */
static bool is_small(const struct program *p, const struct stmt *s, int node) {
    struct arena scratch;
    double most = 0;
    for (int r = 0; r < s->nreads; r++)
        if (term_reads(s, node, r))
            most = fmax(most, (double)p->buffer[s->read[r].buffer].elements);
    arena_init(&scratch);
    struct term t = term_of(&scratch, p, s);
    bool small = rw_points(p, node_axes(&t, node) & s->axes) <= most;
    arena_free(&scratch);
    return small;
}

static struct program *constants(const struct program *p, const struct failure *why,
                                 const struct needle *n) {
    struct found f = {0};
    struct room room = {0};
    (void)n;
    if (!rw_top(p, why->stmt)) return NULL;
    const struct stmt *s = &p->stmt[why->stmt];
    if (s->combine != COMBINE_ADD || s->nwhere || stmt_reads(s, s->dst.buffer)) return NULL;
    find(p, s, s->nops - 1, &f);
    for (int k = 0; k < f.n; k++)
        if (!is_small(p, s, f.node[k])) return NULL;
    if (f.n == 0) return NULL;
    struct program *q = program_copy(p);
    program_cut(q, &room, why->stmt, f.node, f.n);
    return q;
}

const struct rewrite rw_constants = {
    .name = "constants",
    .doc = "what terms have of constants alone is made before the first run",
    .answers = ANSWERS(OPERATION),
    .effect = REWRITE_EXACT,
    .apply = constants,
};
