#include "ir/stream.h"

#include <string.h>

struct finding {
    const struct program *p;
    struct arena *arena;
    struct stream_state *state;
    int n;
    bool counted;
    const char *why;
};

static const char writes_same[] = "each step writes the same elements of '%s'";

static bool cannot(struct finding *f, const char *fmt, const char *name) {
    f->why = arena_printf(f->arena, fmt, name);
    return false;
}

/* The step moves the first index alone, and nothing else moves it. */
static bool plain_row(const struct program *p, const struct access *a, int t) {
    const struct buffer *b = &p->buffer[a->buffer];
    for (int d = 0; d < b->ndims; d++)
        for (int x = 0; x <= p->naxes; x++) {
            int64_t c = access_coef(p, a, d, x);
            if (d == 0 && x == t ? c != 1 : (d == 0 || x == t) && c != 0) return false;
        }
    return true;
}

/* Its rows are written by the steps. */
static bool of_steps(const struct program *p, int buffer, int t) {
    for (int s = 0; s < p->nstmts; s++)
        if (p->stmt[s].dst.buffer == buffer && access_varies(p, &p->stmt[s].dst, t)) return true;
    return false;
}

static bool access_apart(struct finding *f, const struct access *a, bool writes, int t) {
    const struct program *p = f->p;
    const struct buffer *b = &p->buffer[a->buffer];
    bool varies = access_varies(p, a, t), own = varies && plain_row(p, a, t);
    bool row = b->size || (b->role == ROLE_TEMP && of_steps(p, a->buffer, t));
    /* what has no row for each step is indexed by the step's number */
    if (b->role == ROLE_CONST || (varies && !row)) {
        f->counted |= varies;
        return true;
    }
    if (b->role == ROLE_TEMP && !writes && !own && row) {
        f->counted = true;
        return true;
    }
    if (!own && (varies || (b->size && b->role != ROLE_TEMP)))
        return cannot(f, "a step touches other rows of '%s' than its own", b->name);
    if (writes && !varies && b->role != ROLE_TEMP && b->role != ROLE_STATE)
        return cannot(f, writes_same, b->name);
    return true;
}

static bool steps_apart(struct finding *f, const struct stmt *s, int t) {
    for (int o = 0; o < s->nops; o++) f->counted |= s->op[o].code == OP_AXIS && s->op[o].axis == t;
    for (int w = 0; w < s->nwhere; w++) f->counted |= s->where[w].coef[t] != 0;
    for (int r = 0; r < s->nreads; r++)
        if (!access_apart(f, &s->read[r], false, t)) return false;
    return access_apart(f, &s->dst, true, t);
}

/* Temporaries that the step does not move are the body's own: written there, touched nowhere else.
 */
struct touch {
    int inside, outside;
};

static void touched(const struct program *p, const struct item *item, int n, int t, bool inside,
                    struct touch *of) {
    for (int k = 0; k < n; k++) {
        const struct recur *in = item[k].kind == ITEM_RECUR ? item[k].recur : NULL;
        for (int q = 0; in && q < in->nstates; q++) {
            if (!inside) of[in->state[q].from].outside++;
            if (in->state[q].to >= 0) {
                struct touch *end = &of[in->state[q].to];
                ++*(inside ? &end->inside : &end->outside);
            }
        }
        if (in) touched(p, in->item, in->nitems, t, inside || in->axis == t, of);
        if (item[k].kind != ITEM_STMT) continue;
        const struct stmt *s = &p->stmt[item[k].stmt];
        for (int r = -1; r < s->nreads; r++) {
            const struct access *a = r < 0 ? &s->dst : &s->read[r];
            if (!inside)
                of[a->buffer].outside++;
            else if (r < 0 && !access_varies(p, a, t))
                of[a->buffer].inside++;
        }
    }
}

/* A recurrence inside a step may end in temporaries and states alone. */
static bool ends_apart(struct finding *f, const struct recur *r) {
    for (int k = 0; k < r->nstates; k++) {
        int to = r->state[k].to;
        const struct buffer *b = to >= 0 ? &f->p->buffer[to] : NULL;
        if (b && b->role != ROLE_TEMP && b->role != ROLE_STATE)
            return cannot(f, writes_same, b->name);
    }
    return true;
}

static bool body_apart(struct finding *f, const struct item *item, int n, int t) {
    for (int k = 0; k < n; k++) {
        if (item[k].kind == ITEM_CALL) return cannot(f, "'%s' is opaque", item[k].call->function);
        const struct recur *r = item[k].kind == ITEM_RECUR ? item[k].recur : NULL;
        if (r && (!ends_apart(f, r) || !body_apart(f, r->item, r->nitems, t))) return false;
        if (item[k].kind == ITEM_STMT && !steps_apart(f, &f->p->stmt[item[k].stmt], t))
            return false;
    }
    return true;
}

static bool temporaries_own(struct finding *f, int t) {
    const struct program *p = f->p;
    struct touch *of = arena_array(f->arena, (size_t)p->nbuffers + 1, sizeof *of);
    touched(p, p->item, p->nitems, t, false, of);
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role == ROLE_TEMP && of[b].inside && of[b].outside)
            return cannot(f, "'%s' goes from step to step and is no state", p->buffer[b].name);
    for (int b = 0; b < p->nbuffers && f->counted; b++)
        if (of[b].outside && (p->buffer[b].size || of_steps(p, b, t)))
            return cannot(f, "steps count on from run to run, and '%s' is used outside of them",
                          p->buffer[b].name);
    return true;
}

bool stream_pair(const struct program *p, int from, int to) {
    const struct buffer *a = &p->buffer[from], *b = &p->buffer[to];
    bool same = a->role == ROLE_IN && b->role == ROLE_OUT && a->type == b->type &&
                a->ndims == b->ndims && !a->size;
    for (int d = 0; same && d < a->ndims; d++) same = a->extent[d] == b->extent[d];
    return same;
}

/* Do states of other recurrences than those of an open length begin in the buffer? */
static bool begins_in(const struct program *p, const struct item *item, int n, int buffer) {
    for (int k = 0; k < n; k++) {
        const struct recur *r = item[k].kind == ITEM_RECUR ? item[k].recur : NULL;
        for (int q = 0; r && !p->axis[r->axis].size && q < r->nstates; q++)
            if (r->state[q].from == buffer) return true;
        if (r && begins_in(p, r->item, r->nitems, buffer)) return true;
    }
    return false;
}

static bool reads(const struct program *p, int buffer) {
    if (begins_in(p, p->item, p->nitems, buffer)) return true;
    for (int s = 0; s < p->nstmts; s++)
        for (int r = 0; r < p->stmt[s].nreads; r++)
            if (p->stmt[s].read[r].buffer == buffer) return true;
    return false;
}

static bool states_of(struct finding *f, const struct recur *r) {
    const struct program *p = f->p;
    for (int k = 0; k < r->nstates; k++) {
        const struct recur_state *s = &r->state[k];
        const char *name = p->buffer[s->current].name, *from = p->buffer[s->from].name;
        if (s->to < 0 || !stream_pair(p, s->from, s->to))
            return cannot(f, "the state '%s' does not begin in an input and end in an output",
                          name);
        if (reads(p, s->from)) return cannot(f, "'%s' is read besides", from);
        for (int m = 0; m < f->n; m++)
            if (f->state[m].from == s->from) return cannot(f, "two states begin in '%s'", from);
        struct stream_state *all = arena_array(f->arena, (size_t)f->n + 1, sizeof *all);
        if (f->n) memcpy(all, f->state, sizeof *all * (size_t)f->n);
        all[f->n++] = (struct stream_state){s->from, s->to};
        f->state = all;
    }
    return true;
}

static bool items_apart(struct finding *f) {
    const struct program *p = f->p;
    for (int k = 0; k < p->nitems; k++) {
        const struct recur *r = p->item[k].recur;
        if (p->item[k].kind == ITEM_CALL)
            return cannot(f, "'%s' is opaque", p->item[k].call->function);
        if (p->item[k].kind != ITEM_RECUR || !p->axis[r->axis].size) continue;
        if (r->reverse)
            return cannot(f, "the recurrence over '%s' runs backwards", p->axis[r->axis].name);
        if (!body_apart(f, r->item, r->nitems, r->axis) || !temporaries_own(f, r->axis) ||
            !states_of(f, r))
            return false;
    }
    return true;
}

bool program_stream(struct arena *a, const struct program *p, struct stream *out,
                    const char **why) {
    struct finding f = {.p = p, .arena = a};
    bool ok = p->nsizes == 1 && items_apart(&f) && (f.n || f.counted);
    *why = p->nsizes > 1 ? "several lengths are open" : f.why;
    *out = ok ? (struct stream){f.state, f.n, f.counted} : (struct stream){0};
    return ok;
}

int stream_rows(struct arena *a, const struct program *p, int **buffer) {
    int n = 0;
    *buffer = arena_array(a, (size_t)p->nbuffers + 1, sizeof **buffer);
    for (int b = 0; b < p->nbuffers; b++)
        for (int t = 0; p->buffer[b].role == ROLE_TEMP && t < p->naxes; t++)
            if (p->axis[t].size && p->axis[t].sequential && of_steps(p, b, t)) {
                (*buffer)[n++] = b;
                break;
            }
    return n;
}
