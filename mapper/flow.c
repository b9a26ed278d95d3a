/* Who reads or writes a buffer, in the order of the statements: neighbours are looked up, not
 * searched for. What is executed once, before the first run, is nobody's neighbour. Made anew after
 * the covering's program changed (covering_changed). */
#include "mapper/mapper_int.h"

static bool touches(const struct stmt *s, int r) {
    for (int q = 0; q < r; q++)
        if (s->read[q].buffer == s->read[r].buffer) return false; /* listed already */
    return s->read[r].buffer != s->dst.buffer;
}

/* Counts the users of each buffer, or lists them. */
static void list_users(const struct program *p, const bool *steady, int *at, int *user) {
    for (int k = 0; k < p->nstmts; k++) {
        const struct stmt *s = &p->stmt[k];
        if (steady[k]) continue;
        int n = at[s->dst.buffer]++;
        if (user) user[n] = k;
        for (int r = 0; r < s->nreads; r++) {
            if (!touches(s, r)) continue;
            n = at[s->read[r].buffer]++;
            if (user) user[n] = k;
        }
    }
}

static void flow_make(struct flow *f, const struct program *p, bool once) {
    if (f->made) arena_free(&f->arena);
    arena_init(&f->arena);
    f->made = true;
    f->program = p;
    size_t n = (size_t)p->nbuffers;
    int *at = arena_array(&f->arena, n + 1, sizeof *at), sum = 0;
    f->steady = arena_array(&f->arena, (size_t)p->nstmts + 1, sizeof *f->steady);
    for (int s = 0; s < p->nstmts; s++) f->steady[s] = once;
    program_steady(p, f->steady);
    f->constant = arena_array(&f->arena, n + 1, sizeof *f->constant);
    program_constants(p, f->constant);
    list_users(p, f->steady, at, NULL);
    f->first = arena_array(&f->arena, n + 2, sizeof *f->first);
    for (int b = 0; b < p->nbuffers; b++) {
        f->first[b] = sum;
        sum += at[b];
        at[b] = f->first[b];
    }
    f->first[n] = sum;
    f->user = arena_array(&f->arena, (size_t)sum + 1, sizeof *f->user);
    list_users(p, f->steady, at, f->user);
}

void flow_free(struct flow *f) {
    if (f->made) arena_free(&f->arena);
    *f = (struct flow){.made = false};
}

void covering_changed(struct covering *c) {
    c->flow.program = NULL;
    c->prologue.program = NULL;
}

static const struct flow *flow_of(struct covering *c) {
    if (c->flow.program != c->cover->program)
        flow_make(&c->flow, c->cover->program, c->machine->nfallbacks > 0);
    return &c->flow;
}

const bool *flow_steady(struct covering *c) {
    return flow_of(c)->steady;
}

bool flow_constant(struct covering *c, int buffer) {
    return buffer < c->cover->program->nbuffers && flow_of(c)->constant[buffer];
}

struct users flow_users(struct covering *c, int buffer, int stmt) {
    const struct program *p = c->cover->program;
    flow_of(c);
    if (buffer >= p->nbuffers) return (struct users){0};
    int lo = c->flow.first[buffer], hi = c->flow.first[buffer + 1], end = hi;
    while (lo < hi) { /* the first behind the statement */
        int mid = lo + (hi - lo) / 2;
        if (c->flow.user[mid] > stmt)
            hi = mid;
        else
            lo = mid + 1;
    }
    return (struct users){
        .stmt = c->flow.user + lo, .n = end - lo, .before = lo - c->flow.first[buffer]};
}

int flow_writer(struct covering *c, int stmt, int buffer) {
    struct users u = flow_users(c, buffer, stmt - 1);
    for (int k = 1; k <= u.before; k++)
        if (c->cover->program->stmt[u.stmt[-k]].dst.buffer == buffer) return u.stmt[-k];
    return -1;
}
