/* Which statements need be executed once for any number of runs: their results depend on constants
 * alone. A temporary is steady when all that write it are, so this is a greatest fixed point. */
#include "ir/program.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 8 }; /* statements behind one another that a price looks at */

/* Is something added to what a fill leaves? */
static bool adds(const struct stmt *s) {
    return s->nreads > 0 && s->combine != COMBINE_SET;
}

static bool begins_sum(const struct program *p, int buffer) {
    for (int s = 0; s < p->nstmts; s++)
        if (p->stmt[s].dst.buffer == buffer && adds(&p->stmt[s])) return true;
    return false;
}

/* Axes whose extent stays open, or along which a recurrence goes on. */
static uint64_t axes_open(const struct program *p) {
    uint64_t open = 0;
    for (int a = 0; a < p->naxes; a++)
        if (p->axis[a].size || p->axis[a].sequential) open |= UINT64_C(1) << a;
    return open;
}

/* By buffer: does something add to it? */
static bool *sums_of(const struct program *p) {
    bool *sum = memory_array((size_t)p->nbuffers + 1, sizeof *sum);
    for (int s = 0; s < p->nstmts; s++) sum[p->stmt[s].dst.buffer] |= adds(&p->stmt[s]);
    return sum;
}

/* Does a fill compute functions of the axes, as a transform's cosines? That costs more than reading
 * what it gives. */
static bool computes(const struct stmt *s) {
    for (int o = 0; o < s->nops; o++)
        if (op_info[s->op[o].code].units > 1) return true;
    return false;
}

/* Sums of products are left where instructions execute them; other fills cost no more than what
 * they would be read from, but for those that a sum begins with, and numbers, which would stand
 * between the statements of a chain that use them. */
static bool may_be(const struct program *p, const struct stmt *s, uint64_t open, const bool *sum) {
    const struct buffer *b = &p->buffer[s->dst.buffer];
    bool may = s->scope == 0 && b->role == ROLE_TEMP && !b->size && !(s->axes & open) &&
               (s->nreads > 0 || b->elements == 1 || computes(s) ||
                (sum ? sum[s->dst.buffer] : begins_sum(p, s->dst.buffer)));
    return may && !stmt_is_mac(p, s);
}

/* A statement that something else writes the result of, that reads what may change, or that writes
 * what a run has read before. */
static bool disturbed(const struct stmt *s, const bool *varies, const bool *read) {
    bool is = varies[s->dst.buffer] || read[s->dst.buffer];
    for (int r = 0; r < s->nreads; r++) is |= varies[s->read[r].buffer];
    return is;
}

static bool made_of_constants(const struct program *p, int buffer, uint64_t open, int depth) {
    bool any = p->buffer[buffer].role == ROLE_CONST;
    if (any || p->buffer[buffer].role != ROLE_TEMP) return any;
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *st = &p->stmt[s];
        if (st->dst.buffer != buffer) continue;
        if (!may_be(p, st, open, NULL)) return false;
        for (int r = 0; r < st->nreads; r++)
            if (st->read[r].buffer != buffer &&
                (depth == 0 || !made_of_constants(p, st->read[r].buffer, open, depth - 1)))
                return false;
        any = true;
    }
    return any;
}

bool buffer_steady(const struct program *p, int buffer) {
    return made_of_constants(p, buffer, axes_open(p), DEEPEST);
}

bool stmt_steady(const struct program *p, const struct stmt *s) {
    uint64_t open = axes_open(p);
    bool steady = (s->nreads > 0 || computes(s)) && may_be(p, s, open, NULL);
    for (int r = 0; r < s->nreads && steady; r++)
        steady = made_of_constants(p, s->read[r].buffer, open, DEEPEST);
    return steady;
}

/* One more pass: true where a statement was found that is not steady. */
static bool settle(const struct program *p, bool *steady, bool *varies, bool *read) {
    bool changed = false;
    memset(read, 0, (size_t)p->nbuffers * sizeof *read);
    for (int s = 0; s < p->nstmts; s++) {
        const struct stmt *st = &p->stmt[s];
        if (steady[s] && disturbed(st, varies, read)) {
            steady[s] = false;
            changed = varies[st->dst.buffer] = true;
        }
        for (int r = 0; r < st->nreads && !steady[s]; r++) read[st->read[r].buffer] = true;
    }
    return changed;
}

void program_steady(const struct program *p, bool *steady) {
    bool *varies = memory_array((size_t)p->nbuffers + 1, sizeof *varies),
         *read = memory_array((size_t)p->nbuffers + 1, sizeof *read), *sum = sums_of(p);
    uint64_t open = axes_open(p);
    for (int b = 0; b < p->nbuffers; b++)
        varies[b] = p->buffer[b].role != ROLE_CONST && p->buffer[b].role != ROLE_TEMP;
    for (int i = 0; i < p->nitems; i++)
        for (int k = 0; p->item[i].kind == ITEM_CALL && k < p->item[i].call->nwrites; k++)
            varies[p->item[i].call->write[k]] = true;
    for (int s = 0; s < p->nstmts; s++) {
        steady[s] = steady[s] && may_be(p, &p->stmt[s], open, sum);
        if (!steady[s]) varies[p->stmt[s].dst.buffer] = true;
    }
    while (settle(p, steady, varies, read)) {
    }
    free(varies);
    free(read);
    free(sum);
}

void program_constants(const struct program *p, bool *constant) {
    bool *written = memory_array((size_t)p->nbuffers + 1, sizeof *written), *sum = sums_of(p);
    uint64_t open = axes_open(p);
    for (int s = 0; s < p->nstmts; s++) written[p->stmt[s].dst.buffer] = true;
    for (int b = 0; b < p->nbuffers; b++)
        constant[b] =
            p->buffer[b].role == ROLE_CONST || (p->buffer[b].role == ROLE_TEMP && written[b]);
    for (bool changed = true; changed;) {
        changed = false;
        for (int s = 0; s < p->nstmts; s++) {
            const struct stmt *st = &p->stmt[s];
            int b = st->dst.buffer;
            if (!constant[b] || p->buffer[b].role == ROLE_CONST) continue;
            bool is = may_be(p, st, open, sum);
            for (int r = 0; r < st->nreads; r++) is &= constant[st->read[r].buffer];
            constant[b] = is;
            changed |= !is;
        }
    }
    free(written);
    free(sum);
}
