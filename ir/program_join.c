/* Several statements that one instruction executes, seen as one: matmul, bias and ReLU; the parts
 * of a softmax. What they hand to one another are temporaries that nobody else touches. */
#include "ir/program.h"

#include <string.h>

static bool member(const int *stmt, int n, int s) {
    for (int k = 0; k < n; k++)
        if (stmt[k] == s) return true;
    return false;
}

static bool written_by(const struct program *p, const int *stmt, int n, int buffer) {
    for (int k = 0; k < n; k++)
        if (p->stmt[stmt[k]].dst.buffer == buffer) return true;
    return false;
}

static bool uses(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->dst.buffer == buffer;
}

static bool used_elsewhere(const struct program *p, const int *stmt, int n, int buffer) {
    for (int s = 0; s < p->nstmts; s++)
        if (!member(stmt, n, s) && uses(&p->stmt[s], buffer)) return true;
    for (int i = 0; i < p->nitems; i++) {
        const struct recur *r = p->item[i].kind == ITEM_RECUR ? p->item[i].recur : NULL;
        const struct call *c = p->item[i].kind == ITEM_CALL ? p->item[i].call : NULL;
        for (int k = 0; r && k < r->nstates; k++)
            if (r->state[k].from == buffer || r->state[k].to == buffer) return true;
        for (int k = 0; c && k < c->nreads; k++)
            if (c->read[k] == buffer) return true;
        for (int k = 0; c && k < c->nwrites; k++)
            if (c->write[k] == buffer) return true;
    }
    return false;
}

/* The earlier statements end up where the last one is: nothing in between may change what they
 * read. */
static bool read_changes(const struct program *p, const int *stmt, int n, int k) {
    const struct stmt *s = &p->stmt[stmt[k]];
    for (int between = stmt[k] + 1; between < stmt[n - 1]; between++)
        for (int r = 0; r < s->nreads && !member(stmt, n, between); r++)
            if (p->stmt[between].dst.buffer == s->read[r].buffer) return true;
    return false;
}

static bool one_place(const struct program *p, const struct stmt *s, const struct access *a) {
    for (int r = -1; r < s->nreads; r++) {
        const struct access *own = r < 0 ? &s->dst : &s->read[r];
        if (own->buffer == a->buffer && !access_equal(p, own, a)) return false;
    }
    return true;
}

/* Nobody sees the result before it is complete, and nothing that it was before is left of it. */
static const char *result_refusal(const struct program *p, const int *stmt, int n) {
    int result = p->stmt[stmt[n - 1]].dst.buffer, first = 0, least = stmt[0];
    while (!uses(&p->stmt[stmt[first]], result)) first++;
    const struct stmt *s = &p->stmt[stmt[first]];
    if (s->combine != COMBINE_SET) return "it accumulates to its result";
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == result) return "it reads its result";
    for (int k = 0; k < n; k++) {
        if (stmt[k] < least) least = stmt[k];
        if (!one_place(p, &p->stmt[stmt[k]], &p->stmt[stmt[n - 1]].dst))
            return "it uses its result at several places";
    }
    for (int between = least + 1; between < stmt[n - 1]; between++)
        if (!member(stmt, n, between) && uses(&p->stmt[between], result))
            return "its result is used between its statements";
    return NULL;
}

static const char *refusal(const struct program *p, const int *stmt, int n) {
    int result = p->stmt[stmt[n - 1]].dst.buffer;
    for (int k = 0; k < n; k++) {
        const struct stmt *s = &p->stmt[stmt[k]];
        int b = s->dst.buffer;
        if (s->nwhere) return "one of its statements has a constraint on its domain";
        if (s->scope || s->unmapped) return "one of its statements belongs to a recurrence";
        if (b != result && p->buffer[b].role != ROLE_TEMP)
            return "it writes something else than temporaries before its last statement";
        if (b != result && used_elsewhere(p, stmt, n, b))
            return "a temporary between its statements is needed elsewhere";
        if (read_changes(p, stmt, n, k)) return "what it reads changes between its statements";
    }
    return result_refusal(p, stmt, n);
}

int stmt_joined_read(const struct program *p, const struct stmt *joined, const struct access *a) {
    for (int r = 0; r < joined->nreads; r++)
        if (access_equal(p, &joined->read[r], a)) return r;
    return -1;
}

const char *stmts_join(struct arena *arena, const struct program *p, const int *stmt, int n,
                       struct stmt *out) {
    const char *why = refusal(p, stmt, n);
    if (why) return why;
    const struct stmt *last = &p->stmt[stmt[n - 1]];
    int most = 0;
    for (int k = 0; k < n; k++) most += p->stmt[stmt[k]].nreads;
    *out = (struct stmt){.combine = COMBINE_SET, .dst = last->dst, .at = last->at};
    out->read = arena_array(arena, (size_t)most + 1, sizeof *out->read);
    for (int k = 0; k < n; k++) {
        const struct stmt *s = &p->stmt[stmt[k]];
        out->axes |= s->axes;
        for (int r = 0; r < s->nreads; r++)
            if (!written_by(p, stmt, n, s->read[r].buffer) &&
                stmt_joined_read(p, out, &s->read[r]) < 0)
                out->read[out->nreads++] = s->read[r];
    }
    enum type t = p->buffer[last->dst.buffer].type;
    out->nops = out->nreads + 1;
    out->op = arena_array(arena, (size_t)out->nops, sizeof *out->op);
    for (int r = 0; r < out->nreads; r++) {
        enum type of = p->buffer[out->read[r].buffer].type;
        out->op[r] = (struct op){
            .code = OP_READ, .type = of == TYPE_F16 || of == TYPE_BF16 ? TYPE_F32 : of, .read = r};
    }
    out->op[out->nreads] = (struct op){
        .code = OP_LITERAL, .type = t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t, .unsaid = true};
    return NULL;
}

void stmt_rename_axes(struct arena *arena, const struct program *p, struct stmt *s,
                      const int *axis) {
    size_t n = (size_t)p->naxes + 1;
    uint64_t axes = 0;
    s->read = arena_copy(arena, s->read, (size_t)s->nreads * sizeof *s->read);
    s->op = arena_copy(arena, s->op, (size_t)s->nops * sizeof *s->op);
    for (int r = -1; r < s->nreads; r++) {
        struct access *a = r < 0 ? &s->dst : &s->read[r];
        int rows = p->buffer[a->buffer].ndims;
        int64_t *coef = arena_array(arena, (size_t)rows * n + 1, sizeof *coef);
        for (int d = 0; d < rows; d++) {
            coef[(size_t)d * n + n - 1] = access_coef(p, a, d, p->naxes);
            for (int x = 0; x < p->naxes; x++)
                coef[(size_t)d * n + (size_t)axis[x]] += access_coef(p, a, d, x);
        }
        a->coef = coef;
    }
    for (int o = 0; o < s->nops; o++)
        if (s->op[o].code == OP_AXIS) s->op[o].axis = axis[s->op[o].axis];
    for (int x = 0; x < p->naxes; x++)
        if (s->axes >> x & 1) axes |= UINT64_C(1) << axis[x];
    s->axes = axes;
}

/* Statement s is part of what `last` stands for: nobody could tell that it is there. */
void stmt_hide(struct arena *arena, struct program *p, int s, int last) {
    enum type t = p->buffer[p->stmt[last].dst.buffer].type;
    struct op *op = arena_alloc(arena, sizeof *op);
    *op = (struct op){.code = OP_LITERAL, .type = t == TYPE_F16 || t == TYPE_BF16 ? TYPE_F32 : t};
    p->stmt[s] = (struct stmt){.combine = COMBINE_SET,
                               .dst = p->stmt[last].dst,
                               .axes = p->stmt[last].axes,
                               .at = p->stmt[s].at,
                               .op = op,
                               .nops = 1};
}

/* With an axis that is a part of what the others do alone, a result of theirs is complete only when
 * all of it is done. */
uint64_t stmts_whole_axes(const struct program *p, const int *stmt, int n) {
    uint64_t all = 0, whole = 0;
    for (int k = 0; k < n; k++) all |= p->stmt[stmt[k]].axes;
    for (int k = 0; k < n; k++)
        for (int x = 0; x < p->naxes; x++)
            if (all >> x & 1 &&
                (!(p->stmt[stmt[k]].axes >> x & 1) || !access_varies(p, &p->stmt[stmt[k]].dst, x)))
                whole |= UINT64_C(1) << x;
    return whole;
}
