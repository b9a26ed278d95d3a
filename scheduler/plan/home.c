/* Homes: the layout of a buffer between the nests that write and read it. */
#include "ir/number.h"
#include "scheduler/plan/geom.h"
#include "scheduler/plan/task.h"
#include "scheduler/plan/work.h"

static struct homes *tried(const struct work *w, int buffer) {
    struct homes *h = w->tried;
    while (h && h->buffer != buffer) h = h->rest;
    return h;
}

const struct home *work_home(const struct work *w, int buffer) {
    const struct homes *h = w->tried ? tried(w, buffer) : NULL;
    return h ? &h->home : &w->home[buffer];
}

struct home *home_own(struct work *w, int buffer) {
    struct homes own = {w->tried, buffer, w->home[buffer]}, *h = tried(w, buffer);
    if (!h) h = w->tried = arena_copy(w->arena, &own, sizeof own);
    return &h->home;
}

struct view view_plain(int buffer) {
    struct view v = {.of = buffer, .buffer = buffer};
    for (int d = 0; d < MAX_DIMS; d++) v.dim[d] = d;
    return v;
}

bool view_stride(const struct work *w, const struct view *v, struct coord c, int64_t *stride) {
    if (c.dim >= 0) c.dim = v->dim[c.dim];
    return home_stride(work_home(w, v->buffer), w->p->buffer[v->buffer].ndims, c, stride);
}

bool home_stride(const struct home *h, int ndims, struct coord c, int64_t *stride) {
    *stride = 0;
    if (c.dim < 0) return true;
    if (h->packed) {
        for (int i = 0; i < h->n; i++)
            if (h->at[i].dim == c.dim && h->at[i].div == c.div && h->at[i].mod == c.mod) {
                *stride = h->stride[i];
                return true;
            }
        for (int i = 0; i < h->n; i++)
            if (h->at[i].dim == c.dim && h->at[i].div == 1 && !h->at[i].mod) {
                *stride = h->stride[i] * c.div;
                return true;
            }
        return false;
    }
    *stride = c.div;
    for (int d = c.dim + 1; d < ndims; d++) *stride *= h->extent[d];
    return true;
}

void home_run(struct home *h, int ndims) {
    int64_t run = 1;
    for (int i = 0; h->packed && i < h->n; i++) {
        struct coord c = h->at[i];
        if (h->spaced && i == h->spaced) run = round_up(run, h->unit);
        h->stride[i] = run;
        int64_t all = h->fold && h->fold[c.dim] ? h->fold[c.dim] : h->extent[c.dim];
        run *= c.mod ? c.mod : all / c.div;
    }
    for (int d = 0; !h->packed && d < ndims; d++) run *= h->extent[d];
    h->elements = run;
}

/* The coordinate that is the k-th from the innermost one in a home made for g. */
static struct coord home_coord(const struct geom *g, int k) {
    return g->at[!k ? g->turned : k <= g->turned ? k - 1 : k];
}

struct home home_packed(const struct work *w, int buffer, const struct geom *g) {
    struct home h = *work_home(w, buffer);
    const struct buffer *b = &w->p->buffer[buffer];
    int64_t size = (int64_t)type_size(b->type);
    h.packed = h.locked = true;
    h.n = h.spaced = 0;
    h.unit = least_multiple(w->m->memory[w->m->home].align, size) / size;
    h.extent = arena_array(w->arena, (size_t)b->ndims + 1, sizeof *h.extent);
    for (int d = 0; d < b->ndims; d++)
        h.extent[d] =
            g->loose >> d & 1 ? b->extent[d] + g->room[d] : round_up(b->extent[d], g->block[d]);
    for (int i = 0; i < g->n && g->plain_home; i++) {
        bool known = g->at[i].dim < 0;
        if (i == g->spaced) h.spaced = h.n;
        for (int k = 0; k < h.n; k++) known |= h.at[k].dim == g->at[i].dim;
        if (!known) h.at[h.n++] = (struct coord){g->at[i].dim, 1, 0, false};
    }
    for (int i = 0; i < g->n && !g->plain_home; i++) {
        struct coord c = home_coord(g, i);
        bool loose = c.dim >= 0 && (g->loose >> c.dim & 1);
        if (i == g->spaced) h.spaced = h.n;
        if (c.dim >= 0 && !loose) h.at[h.n++] = c;
        if (loose && i < g->ninner) h.at[h.n++] = (struct coord){c.dim, 1, 0, false};
    }
    home_run(&h, b->ndims);
    return h;
}

void home_pack(struct work *w, int buffer, const struct geom *g) {
    w->home[buffer] = home_packed(w, buffer, g);
}

bool home_tighten(const struct work *w, struct home *h, const struct buffer *b,
                  const struct geom *g) {
    int n = 0;
    if (!h->packed || h->spaced || g->plain_home) return false;
    h->extent = arena_copy(w->arena, h->extent, sizeof *h->extent * (size_t)b->ndims);
    for (int d = 0; d < b->ndims; d++)
        if (!((g->loose | g->exact | g->even | g->live) >> d & 1) && b->extent[d] < g->block[d]) {
            h->tight |= UINT64_C(1) << d;
            h->extent[d] = b->extent[d];
        }
    uint64_t seen = 0;
    for (int i = 0; i < h->n; i++) {
        struct coord c = h->at[i];
        if (c.dim >= 0 && (h->tight >> c.dim & 1)) {
            if (seen >> c.dim & 1) continue;
            seen |= UINT64_C(1) << c.dim;
            c = (struct coord){c.dim, 1, 0, false};
        }
        h->at[n++] = c;
    }
    h->n = n;
    home_run(h, b->ndims);
    return h->tight != 0;
}

/* With gaps, one place that says all distances. */
struct layout *home_layout(struct work *w, struct arena *arena, const struct home *h, int ndims,
                           const char **text) {
    struct text t = {0};
    for (int d = 0; d < ndims; d++) text_printf(&t, "%si%d", d ? "," : "", d);
    text_printf(&t, " -> ");
    for (int i = h->n - 1; i >= 0; i--) {
        struct coord c = h->at[i];
        text_printf(&t, "%s", i == h->n - 1 ? "" : h->spaced ? " + " : ", ");
        if (h->spaced && h->stride[i] > 1) text_printf(&t, "%lld * ", (long long)h->stride[i]);
        text_printf(&t, h->spaced ? "(i%d" : "i%d", c.dim);
        if (c.div > 1) text_printf(&t, "/%lld", (long long)c.div);
        if (c.mod)
            text_printf(&t, "%%%lld", (long long)c.mod);
        else if (h->fold && h->fold[c.dim])
            text_printf(&t, "%%%lld", (long long)(h->fold[c.dim] / c.div));
        if (h->spaced) text_printf(&t, ")");
    }
    *text = arena_strdup(arena, t.at);
    text_free(&t);
    return layout_parse(arena, *text, "layout", 1, w->diags);
}

bool tile_stays(const struct work *w, int buffer, int memory) {
    const struct home *h = work_home(w, buffer);
    for (int m = home_near(h); m >= 0; m = w->m->memory[m].caches)
        if (m == memory) return true;
    return false;
}

int home_near(const struct home *h) {
    return h->is_tile ? h->memory : h->fold || h->lies_in || h->asked ? h->near : -1;
}

/* Then padding holds what the instructions left there; otherwise the zeros that every larger home
 * starts with. */
bool written_by_tasks(const struct work *w, int buffer) {
    for (int s = 0; s < w->p->nstmts; s++)
        if (w->task_of[s] != -1 && w->p->stmt[s].dst.buffer == buffer) return true;
    return false;
}

/* Does a zero operand `zero` alone make zero of all that operand o gives? */
static bool zero_makes_zero(const struct needle *nd, int o, int zero) {
    const struct operand *operand = nd->in->operand;
    for (int q = 0; q < nd->bound->nstmts; q++) {
        const struct stmt *s = &nd->bound->stmt[q];
        uint64_t zeros = 0;
        bool reads = false;
        for (int r = 0; r < s->nreads && r < 64; r++) {
            zeros |= (uint64_t)(s->read[r].buffer == operand[zero].kernel_buffer) << r;
            reads |= s->read[r].buffer == operand[o].kernel_buffer;
        }
        if (reads && !stmt_zero_when(nd->bound, s, zeros)) return false;
    }
    return true;
}

/* Is some other operand sure to be zero where a reduction is padded, and that enough? Then integers
 * need no zeros here. */
static bool zero_elsewhere(const struct work *w, const struct task *t, const struct opnd *o) {
    const struct stmt *st = &w->p->stmt[t->stmt];
    if (type_is_float(w->p->buffer[st->dst.buffer].type)) return false;
    for (int i = 0; i < t->nops; i++) {
        const struct opnd *other = &t->op[i];
        if (other == o || other->read < 0 || other->writes || !other->zero_tail ||
            !zero_makes_zero(t->needle, o->number, other->number))
            continue;
        int b = st->read[other->read].buffer;
        if (work_home(w, b)->packed && !other->geom.live && !written_by_tasks(w, b)) return true;
    }
    return false;
}

bool padding_neutral(const struct work *w, const struct task *t, const struct opnd *o, int buffer) {
    return !o->zero_tail || (!o->geom.live && !written_by_tasks(w, buffer)) ||
           zero_elsewhere(w, t, o);
}
