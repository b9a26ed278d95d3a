/* Binding a needle's term to a haystack's from the sink down (ISA Mapper §2.2; VF2-like with
 * forward checks on operation and type). Terms have a handful of nodes, so plain backtracking over
 * the operand orders of commutative operations is exact. */
#include "mapper/mapper_int.h"

#include <assert.h>
#include <string.h>

enum { MAX_PENDING = 64 };

struct pair {
    int needle, hay;
};

struct matcher {
    struct arena *arena;
    const struct machine *machine;
    const struct needle *needle;
    const struct site *site;
    bool cuts;
    struct match *out;
    struct binding_set bound;
    struct pair pending[MAX_PENDING];
    struct pair
        computed[MAX_PENDING]; /* of constants of the issue, to be compared when these are bound */
    int npending, ncomputed, depth;
};

/* ---- what may play an operand ---- */

/* Of a state that begins with nothing there is no buffer (-1), as where none is looked for. */
static bool visit(int b, int buffer, bool *touched) {
    if (b < 0) return false;
    if (touched) touched[b] = true;
    return b == buffer;
}

/* The buffers that items read or write, up to the one that is looked for. */
static bool items_visit(const struct program *p, const struct item *item, int n, int buffer,
                        bool *touched) {
    for (int i = 0; i < n; i++) {
        if (item[i].kind == ITEM_STMT) {
            const struct stmt *s = &p->stmt[item[i].stmt];
            if (visit(s->dst.buffer, buffer, touched)) return true;
            for (int r = 0; r < s->nreads; r++)
                if (visit(s->read[r].buffer, buffer, touched)) return true;
        } else if (item[i].kind == ITEM_CALL) {
            const struct call *c = item[i].call;
            for (int r = 0; r < c->nreads; r++)
                if (visit(c->read[r], buffer, touched)) return true;
            for (int w = 0; w < c->nwrites; w++)
                if (visit(c->write[w], buffer, touched)) return true;
        } else {
            const struct recur *r = item[i].recur;
            for (int s = 0; s < r->nstates; s++)
                if (visit(r->state[s].from, buffer, touched) ||
                    visit(r->state[s].to, buffer, touched))
                    return true;
            if (items_visit(p, r->item, r->nitems, buffer, touched)) return true;
        }
    }
    return false;
}

bool items_touch(const struct program *p, const struct item *item, int n, int buffer) {
    return items_visit(p, item, n, buffer, NULL);
}

void items_touched(const struct program *p, const struct item *item, int n, bool *touched) {
    items_visit(p, item, n, -1, touched);
}

/* Where no recurrences are around it is found at once. */
static int top_item(const struct program *p, int stmt) {
    int last = stmt < p->nitems ? stmt : p->nitems - 1;
    for (int k = 0; k < p->nitems; k++) {
        int i = k <= last ? last - k : k;
        if (p->item[i].kind == ITEM_STMT && p->item[i].stmt == stmt) return i;
    }
    return -1;
}

bool stmt_in_recurrence(const struct program *p, int stmt) {
    return top_item(p, stmt) < 0;
}

static bool buffer_dead_after(const struct program *p, int buffer, int stmt) {
    int at = top_item(p, stmt);
    if (at < 0 || p->buffer[buffer].role != ROLE_TEMP) return false;
    return !items_touch(p, p->item + at + 1, p->nitems - at - 1, buffer);
}

/* The dimension that the axis walks alone, from the first element on; -1. */
static int walked_alone(const struct program *p, const struct access *a, int axis, uint64_t axes) {
    int found = -1;
    for (int d = 0; d < p->buffer[a->buffer].ndims; d++) {
        if (!access_coef(p, a, d, axis)) continue;
        if (found >= 0 || access_coef(p, a, d, axis) != 1 || access_coef(p, a, d, p->naxes))
            return -1;
        for (int x = 0; x < p->naxes; x++)
            if (x != axis && (axes >> x & 1) && access_coef(p, a, d, x)) return -1;
        found = d;
    }
    return found;
}

/* Each axis walks a dimension of both: of what is read maybe a slice. */
static bool walks_alike(const struct program *p, const struct stmt *s, const struct access *a) {
    for (uint64_t left = s->axes; left; left &= left - 1) {
        int x = __builtin_ctzll(left);
        if (walked_alone(p, &s->dst, x, s->axes) < 0 || walked_alone(p, a, x, s->axes) < 0)
            return false;
    }
    return true;
}

static bool same_index(const struct program *p, const struct access *a, const struct access *d) {
    const struct buffer *x = &p->buffer[a->buffer], *y = &p->buffer[d->buffer];
    if (x->ndims != y->ndims) return false;
    for (int k = 0; k < x->ndims; k++)
        if (x->extent[k] != y->extent[k]) return false;
    size_t n = (size_t)x->ndims * ((size_t)p->naxes + 1);
    return memcmp(a->coef, d->coef, n * sizeof *a->coef) == 0;
}

enum in_place read_in_place(const struct site *site, int r) {
    const struct program *p = site->program;
    const struct stmt *s = site->s;
    const struct access *a = &s->read[r];
    if (a->has_fill || p->buffer[a->buffer].type != p->buffer[s->dst.buffer].type)
        return IN_PLACE_NEVER;
    for (int k = 0; k < s->nreads; k++)
        if (s->read[k].buffer == a->buffer && !access_same(p, &s->read[k], a))
            return IN_PLACE_NEVER;
    if (same_index(p, a, &s->dst) && buffer_dead_after(p, a->buffer, site->stmt))
        return IN_PLACE_HOME;
    return walks_alike(p, s, a) ? IN_PLACE_COPY : IN_PLACE_NEVER;
}

/* In a memory that the schedule fills; registers need no operand in place. */
static bool is_copied(const struct machine *m, const struct needle *n) {
    const struct operand *o = &m->instr[n->instr].operand[n->dst];
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] < 0 || memory_is_home(m, o->memory[k]) ||
            m->memory[o->memory[k]].pass != PASS_POINTER)
            return false;
    return true;
}

bool may_overwrite(const struct site *site, const struct machine *m, const struct needle *n,
                   int r) {
    enum in_place how = read_in_place(site, r);
    return how == IN_PLACE_HOME || (how == IN_PLACE_COPY && is_copied(m, n));
}

static bool value_same(enum type t, union value a, union value b) {
    if (!type_is_float(t)) return a.i == b.i;
    return a.f == b.f || (a.f != a.f && b.f != b.f);
}

static bool type_fits(const struct matcher *m, enum type needle, enum type hay) {
    if (needle == hay) return true;
    const struct instr *x = &m->machine->instr[m->needle->instr];
    return m->needle->copy && x->move_types >> hay & 1 && type_size(needle) == type_size(hay);
}

bool node_type_fits(const struct term_node *needle, const struct term_node *hay) {
    if (needle->type == hay->type) return true;
    return type_is_float(needle->type) && type_is_float(hay->type) &&
           type_size(needle->type) >= 4 && type_size(hay->type) >= 4 &&
           range_fits(&hay->range, needle->type) && range_fits(&hay->range, hay->type);
}

static void fail(struct matcher *m, enum failure_kind kind, struct pair at) {
    struct mismatch *w = &m->out->worst;
    if (m->depth > w->depth) *w = (struct mismatch){kind, at.needle, at.hay, m->depth};
}

static bool bind_imm(struct matcher *m, struct pair at, int operand) {
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    struct bound *b = &m->bound.operand[operand];
    if (!h->constant) return fail(m, FAILURE_OPERATION, at), false;
    if (!node_type_fits(n, h)) return fail(m, FAILURE_TYPE, at), false;
    if (b->kind == BOUND_IMM && !value_same(n->type, b->imm, h->value))
        return fail(m, FAILURE_OPERATION, at), false;
    *b = (struct bound){.kind = BOUND_IMM, .read = -1, .node = -1, .imm = h->value};
    return true;
}

static bool bind_read(struct matcher *m, struct pair at, int operand) {
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    struct bound *b = &m->bound.operand[operand];
    bool cut = h->code != OP_READ;
    if ((cut && (!m->cuts || m->needle->twins >> operand & 1 || h->made ||
                 at.hay == m->site->term.root)) ||
        h->acc)
        return fail(m, FAILURE_OPERATION, at), false;
    if (!type_fits(m, n->type, h->type)) return fail(m, FAILURE_TYPE, at), false;
    if (b->kind == BOUND_NONE) {
        *b = (struct bound){
            .kind = cut ? BOUND_CUT : BOUND_READ, .read = h->read, .node = cut ? at.hay : -1};
        return true;
    }
    bool same =
        cut ? b->kind == BOUND_CUT && b->node == at.hay
            : b->kind == BOUND_READ && access_same(m->site->program, &m->site->s->read[b->read],
                                                   &m->site->s->read[h->read]);
    if (!same) fail(m, FAILURE_OPERATION, at);
    return same;
}

/* Another place of an operand: the certificate says whether it is the right one. */
static bool bind_twin(struct matcher *m, struct pair at) {
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    if (h->code != OP_READ || h->acc) return fail(m, FAILURE_OPERATION, at), false;
    if (!type_fits(m, n->type, h->type)) return fail(m, FAILURE_TYPE, at), false;
    return true;
}

/* What an operand is bound to already is this node, or another read of the same elements. */
static bool same_place(const struct matcher *m, const struct bound *b, const struct term_node *h,
                       int cut) {
    const struct stmt *s = m->site->s;
    if (b->node >= 0 || cut >= 0) return b->node == cut;
    if (b->read < 0 || h->read < 0) return b->read == h->read;
    return access_same(m->site->program, &s->read[b->read], &s->read[h->read]);
}

/* The needle reads what it overwrites in as many places as the statement reads the buffer of this
 * read: none is left that would read it afterwards. */
static bool overwrites_all(const struct matcher *m, int read) {
    const struct stmt *s = m->site->s;
    int reads = 0, places = 0;
    for (int k = 0; k < s->nreads; k++) reads += s->read[k].buffer == s->read[read].buffer;
    for (int k = 0; k < m->needle->term.n; k++)
        places += m->needle->term.at[k].code == OP_READ && m->needle->term.at[k].acc;
    return reads == places;
}

/* The needle reads what it overwrites. */
static bool bind_acc(struct matcher *m, struct pair at) {
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    struct bound *b = &m->bound.operand[m->needle->dst];
    bool cut = h->code != OP_READ;
    if (n->type != h->type) return fail(m, FAILURE_TYPE, at), false;
    if (cut && (!m->cuts || h->made || m->site->term.accumulates || at.hay == m->site->term.root ||
                h->constant || node_axes(&m->site->term, at.hay) != m->site->s->axes))
        return fail(m, FAILURE_OPERATION, at), false;
    if (!cut && !h->acc &&
        (m->site->term.accumulates || !overwrites_all(m, h->read) ||
         !may_overwrite(m->site, m->machine, m->needle, h->read)))
        return fail(m, m->site->term.accumulates ? FAILURE_OPERATION : FAILURE_LIVE_OUT, at), false;
    if ((b->read >= 0 || b->node >= 0) && !same_place(m, b, h, cut ? at.hay : -1))
        return fail(m, FAILURE_OPERATION, at), false;
    *b = (struct bound){.kind = BOUND_DST, .read = h->read, .node = cut ? at.hay : -1};
    return true;
}

static bool bind_leaf(struct matcher *m, struct pair at) {
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    if (n->code == OP_AXIS) return fail(m, FAILURE_OPERATION, at), false;
    if (n->code == OP_READ && n->acc) return bind_acc(m, at);
    if (n->code == OP_READ) {
        const struct stmt *s = &m->needle->program->stmt[0];
        int operand = m->needle->operand_of_buffer[s->read[n->read].buffer];
        bool twin = m->needle->twins >> operand & 1 &&
                    !access_same(m->needle->program, &s->read[n->read], m->needle->access[operand]);
        if (twin) return bind_twin(m, at);
        return m->needle->imm >> operand & 1 ? bind_imm(m, at, operand) : bind_read(m, at, operand);
    }
    if (!h->constant) return fail(m, FAILURE_OPERATION, at), false;
    if (!node_type_fits(n, h)) return fail(m, FAILURE_TYPE, at), false;
    if (!value_same(n->type, n->value, h->value)) return fail(m, FAILURE_OPERATION, at), false;
    return true;
}

/* ---- constants that the needle computes of its own: `shl(1, sh[] - 1)` ---- */

static int imm_of(const struct matcher *m, const struct term_node *n) {
    if (n->code != OP_READ || n->read < 0) return -1;
    int o = m->needle->operand_of_buffer[m->needle->program->stmt[0].read[n->read].buffer];
    return o >= 0 && m->needle->imm >> o & 1 ? o : -1;
}

static bool is_computed(const struct matcher *m, int node) {
    const struct term_node *n = &m->needle->term.at[node];
    if (n->constant || imm_of(m, n) >= 0) return true;
    bool all = n->nargs > 0;
    for (int k = 0; k < n->nargs; k++) all &= is_computed(m, n->arg[k]);
    return all;
}

static bool compute(const struct matcher *m, int node, union value *out) {
    const struct term_node *n = &m->needle->term.at[node];
    union value arg[3];
    int o = imm_of(m, n);
    *out = o < 0 ? n->value : m->bound.operand[o].imm;
    if (n->constant) return true;
    if (o >= 0) return m->bound.operand[o].kind == BOUND_IMM;
    for (int k = 0; k < n->nargs; k++)
        if (!compute(m, n->arg[k], &arg[k])) return false;
    *out = op_eval(n->code, n->type, m->needle->term.at[n->arg[n->code == OP_SELECT ? 1 : 0]].type,
                   arg);
    return true;
}

/* A constant that occurs under casts alone, `f32(lo[])`: these are undone, and computing the result
 * says whether anything was lost. */
static void bind_cast(struct matcher *m, struct pair at) {
    const struct term_node *n = &m->needle->term.at[at.needle];
    union value v = m->site->term.at[at.hay].value;
    if (!node_type_fits(n, &m->site->term.at[at.hay])) return;
    for (; n->code == OP_CAST && !n->constant; n = &m->needle->term.at[n->arg[0]])
        v = op_eval(OP_CAST, m->needle->term.at[n->arg[0]].type, n->type, &v);
    int o = imm_of(m, n);
    if (o >= 0 && m->bound.operand[o].kind == BOUND_NONE)
        m->bound.operand[o] = (struct bound){.kind = BOUND_IMM, .read = -1, .node = -1, .imm = v};
}

static bool computed_agree(struct matcher *m) {
    for (int i = 0; i < m->ncomputed; i++) bind_cast(m, m->computed[i]);
    for (int i = 0; i < m->ncomputed; i++) {
        struct pair at = m->computed[i];
        const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
        union value v;
        if (compute(m, at.needle, &v) && node_type_fits(n, h) && value_same(n->type, v, h->value))
            continue;
        fail(m, FAILURE_OPERATION, at);
        return false;
    }
    return true;
}

/* ---- backtracking ---- */

static bool bound_same(const struct matcher *m, const struct bound *a, const struct bound *b) {
    if (a->kind != b->kind || a->node != b->node) return false;
    if (a->kind == BOUND_IMM) return memcmp(&a->imm, &b->imm, sizeof a->imm) == 0;
    if (a->read < 0 || b->read < 0) return a->read == b->read;
    return access_same(m->site->program, &m->site->s->read[a->read], &m->site->s->read[b->read]);
}

static void emit(struct matcher *m) {
    for (int i = 0; i < m->out->n; i++) {
        bool same = true;
        for (int o = 0; o < m->needle->noperands && same; o++)
            same = bound_same(m, &m->out->at[i].operand[o], &m->bound.operand[o]);
        if (same) return;
    }
    GROW(m->arena, m->out->at, m->out->n, m->out->cap);
    m->out->at[m->out->n++] = m->bound;
}

static void next(struct matcher *m);

static void branch(struct matcher *m, struct pair at, const int *order) {
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    struct matcher saved = *m;
    if (m->npending + n->nargs > MAX_PENDING) return;
    for (int k = n->nargs; k-- > 0;)
        m->pending[m->npending++] = (struct pair){n->arg[k], h->arg[order[k]]};
    m->depth++;
    next(m);
    *m = saved;
}

static void next(struct matcher *m) {
    static const int straight[3] = {0, 1, 2}, swapped[3] = {1, 0, 2};
    if (m->npending == 0) {
        if (computed_agree(m)) emit(m);
        return;
    }
    struct matcher saved = *m;
    struct pair at = m->pending[--m->npending];
    const struct term_node *n = &m->needle->term.at[at.needle], *h = &m->site->term.at[at.hay];
    if (n->nargs == 0 || n->constant) {
        m->depth++;
        if (bind_leaf(m, at)) next(m);
    } else if (h->constant && is_computed(m, at.needle) && m->ncomputed < MAX_PENDING) {
        m->depth++;
        m->computed[m->ncomputed++] = at;
        next(m);
    } else if (n->code != h->code) {
        bool root = at.hay == m->site->term.root &&
                    (m->needle->term.accumulates || m->site->term.accumulates);
        fail(m, root ? FAILURE_COMBINER : FAILURE_OPERATION, at);
    } else if (!node_type_fits(n, h)) {
        fail(m, FAILURE_TYPE, at);
    } else {
        branch(m, at, straight);
        if (op_info[n->code].flags & OP_COMM) branch(m, at, swapped);
    }
    *m = saved;
}

void match_terms(struct arena *arena, const struct machine *machine, const struct needle *needle,
                 const struct site *site, int root, bool cuts, struct match *out) {
    struct matcher m = {.arena = arena,
                        .machine = machine,
                        .needle = needle,
                        .site = site,
                        .cuts = cuts,
                        .out = out};
    *out = (struct match){.worst = {.depth = -1, .needle_node = -1, .node = -1}};
    const struct buffer *nd = &needle->program->buffer[needle->access[needle->dst]->buffer];
    enum type dst = root == site->term.root ? site->program->buffer[site->s->dst.buffer].type
                                            : site->term.at[root].type;
    for (int o = 0; o < needle->noperands; o++)
        m.bound.operand[o].read = m.bound.operand[o].node = -1;
    m.bound.operand[needle->dst].kind = BOUND_DST;
    m.pending[m.npending++] = (struct pair){needle->term.root, root};
    if (!type_fits(&m, nd->type, dst)) {
        fail(&m, FAILURE_TYPE, m.pending[0]);
        return;
    }
    next(&m);
}

/* ---- encodability of constants: a field that comes out fractional or too large makes the
 * candidate illegal ---- */

struct imm_names {
    const struct machine *machine;
    const struct needle *needle;
    const struct binding_set *bound;
    bool used;
};

static bool imm_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                     double *out) {
    struct imm_names *u = user;
    const struct instr *x = &u->machine->instr[u->needle->instr];
    (void)env;
    if (strcmp(call->name, "value") != 0 || call->nargs != 1 || call->arg[0]->kind != MEXPR_NAME)
        return false;
    for (int o = 0; o < x->noperands; o++) {
        const struct bound *b = &u->bound->operand[o];
        if (strcmp(x->operand[o].buffer, call->arg[0]->name) != 0 || b->kind != BOUND_IMM) continue;
        u->used = true;
        *out = type_is_float(x->operand[o].type) ? b->imm.f : (double)b->imm.i;
        return true;
    }
    return false;
}

static bool imm_name(void *user, const char *name, const char *field, double *out) {
    const struct imm_names *u = user;
    if (field) return false;
    for (int k = 0; k < u->machine->nparams; k++)
        if (!strcmp(u->machine->param[k].name, name)) {
            *out = (double)u->machine->param[k].value;
            return true;
        }
    return false;
}

/* The value, where it is known: false, and `none` if what is known gives no finite number. */
static bool known_value(const struct mexpr *e, const struct mexpr_env *env, double *out,
                        bool *none) {
    const struct mexpr *missing;
    bool known = mexpr_eval(e, env, out, &missing);
    *none = !known && missing && missing->kind == MEXPR_OP;
    return known;
}

static bool field_holds(const struct field *f, const struct mexpr_env *env, struct imm_names *u) {
    double value, bits;
    bool none;
    u->used = false;
    if (!f->value) return true;
    if (!known_value(f->value, env, &value, &none) || !u->used) return !(none && u->used);
    if (!f->bits || !mexpr_eval(f->bits, env, &bits, NULL) || bits > 62)
        return value == (double)(int64_t)value;
    if (!(value >= -0x1p62 && value <= 0x1p62) || value != (double)(int64_t)value) return false;
    double room = (double)(INT64_C(1) << (int)bits);
    return f->is_signed ? value >= -room / 2 && value < room / 2 : value >= 0 && value < room;
}

bool imm_encodable(const struct machine *m, const struct needle *n, const struct binding_set *b) {
    const struct instr *x = &m->instr[n->instr];
    struct imm_names names = {m, n, b, false};
    struct mexpr_env env = {.name = imm_name, .call = imm_call, .user = &names};
    if (!n->imm && !x->nrequires) return true;
    for (int r = 0; r < x->nrequires; r++) {
        double holds = 1;
        bool none;
        if (known_value(x->require[r], &env, &holds, &none) ? !holds : none) return false;
    }
    for (int e = 0; e < x->nemits; e++)
        for (int w = 0; w < x->emit[e].nwords; w++)
            for (int f = 0; f < x->emit[e].word[w].nfields; f++)
                if (!field_holds(&x->emit[e].word[w].field[f], &env, &names)) return false;
    return true;
}
