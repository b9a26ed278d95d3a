/* A value that an instruction changes in place while later statements want it too goes home and
 * comes back. Where the same instruction undoes the change, as that of a sign, the value is made
 * again from what it became: d = n * -1, ... h + d ..., n = d * -1. */
#include "mapper/rewrite_int.h"

enum { FROM_HOME, MADE_AGAIN };

struct changed {
    int stmt;     /* which changes it */
    int read;     /* what it changes; its result is `dst` of the statement */
    int from, to; /* statements from .. to - 1 read it later, the first and the last of them */
};

/* Executed twice it gives the integers that it began with. */
static bool undoes_itself(const struct program *p, const struct stmt *s) {
    const struct op *last = &s->op[s->nops - 1];
    if (s->combine != COMBINE_SET || s->nops != 3 || s->nreads != 1 || s->nwhere ||
        last->code != OP_MUL || type_is_float(last->type) ||
        last->type != p->buffer[s->dst.buffer].type)
        return false;
    for (int k = 0; k < 2; k++)
        if (s->op[k].code == OP_LITERAL && s->op[!k].code == OP_READ) return s->op[k].value.i == -1;
    return false;
}

static bool hands_over(const struct covering *c, int buffer) {
    const struct cover *v = c->cover;
    return v->program->buffer[buffer].role != ROLE_TEMP ||
           (buffer < v->steps.nbuffers && v->steps.carried[buffer]);
}

static const struct mapping *mapping_at(const struct covering *c, int stmt) {
    return c->chosen[stmt] < 0 ? NULL : &c->cover->mapping[c->chosen[stmt]];
}

/* The read that the statement's instruction changes in place; -1. */
static int changes(const struct covering *c, int stmt) {
    const struct mapping *m = mapping_at(c, stmt);
    return m ? m->operand[needle_of(c->needles, m->instr)->dst].read : -1;
}

/* Does nobody change the buffer, or read it later, than from..to - 1? */
static bool rests(struct covering *c, int buffer, int from, int to) {
    const struct program *p = c->cover->program;
    struct users u = flow_users(c, buffer, from);
    for (int k = 0; k < u.n; k++) {
        const struct stmt *s = &p->stmt[u.stmt[k]];
        int r = changes(c, u.stmt[k]);
        if (u.stmt[k] >= to || s->dst.buffer == buffer || (r >= 0 && s->read[r].buffer == buffer))
            return false;
    }
    return true;
}

static bool find(struct covering *c, int stmt, struct changed *x) {
    const struct program *p = c->cover->program;
    const struct stmt *s = &p->stmt[stmt];
    *x = (struct changed){.stmt = stmt, .read = changes(c, stmt), .from = -1};
    if (x->read < 0 || mapping_at(c, stmt)->nalso || !undoes_itself(p, s) ||
        s->read[x->read].has_fill || !rw_rows_equal(p, &s->read[x->read], &s->dst))
        return false;
    int b = s->read[x->read].buffer;
    if (rw_points(p, s->axes) != (double)p->buffer[b].elements) return false;
    if (b == s->dst.buffer || hands_over(c, b) || hands_over(c, s->dst.buffer)) return false;
    struct users u = flow_users(c, b, stmt);
    for (int k = 0; k < u.n; k++) {
        const struct stmt *t = &p->stmt[u.stmt[k]];
        if (t->dst.buffer == b || t->scope != s->scope || !mapping_at(c, u.stmt[k])) return false;
        if (x->from < 0) x->from = u.stmt[k];
        x->to = u.stmt[k] + 1;
    }
    return x->from >= 0 && rests(c, s->dst.buffer, stmt, x->from);
}

static bool pays(struct covering *c, const struct changed *x) {
    struct program *p = c->cover->program;
    const struct mapping *m = mapping_at(c, x->stmt);
    const struct needle *n = needle_of(c->needles, m->instr);
    int made = flow_writer(c, x->stmt, p->stmt[x->stmt].read[x->read].buffer);
    double home = operand_in_cost(c->needles, n, n->dst, 0);
    if (made >= 0 && mapping_at(c, made)) home += operand_out_cost(c->needles, n, n->dst);
    struct candidate each[2] = {{"from home", home * rw_points(p, p->stmt[x->stmt].axes), NULL},
                                {"made again", m->cost, NULL}};
    const char *name = p->buffer[p->stmt[x->stmt].read[x->read].buffer].name;
    struct question q = {.kind = QUESTION_REWRITE,
                         .subject = arena_printf(&c->scratch, "'%s' behind its change", name),
                         .ncandidates = 2,
                         .candidate = each};
    return decide(c->decider, &q) == MADE_AGAIN;
}

/* Its own instruction does so, and who reads it later reads the new one. */
static void make_again(struct covering *c, const struct changed *x) {
    struct program *p = c->cover->program;
    const struct stmt *s = &p->stmt[x->stmt];
    int b = s->read[x->read].buffer;
    const struct buffer *old = &p->buffer[b];
    int made = rw_temporary(p, old->name, old->type, old->ndims, old->extent);
    if (made < 0) return;
    covering_shift(c, x->from, 1);
    program_make_room(p, x->from, 1);
    covering_changed(c);
    s = &p->stmt[x->stmt];
    struct stmt again = *s;
    again.dst = rw_copy(p, &s->read[x->read]);
    again.dst.buffer = made;
    again.read = arena_copy(&p->arena, &s->dst, sizeof s->dst);
    p->stmt[x->from] = again;
    struct mapping m = *mapping_at(c, x->stmt);
    m.stmt = x->from;
    m.certified = mapping_certify_with(c->needles, p, &m, NULL);
    c->chosen[x->from] = m.certified ? covering_add(c, &m, NULL) : FALLBACK;
    for (int k = x->from + 1; k <= x->to; k++)
        for (int r = 0; r < p->stmt[k].nreads; r++)
            if (p->stmt[k].read[r].buffer == b) p->stmt[k].read[r].buffer = made;
}

void values_again(struct covering *c) {
    for (int s = 0; s < c->cover->program->nstmts; s++) {
        struct changed x;
        if (find(c, s, &x) && pays(c, &x)) make_again(c, &x);
    }
}
