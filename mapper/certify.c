/* Certificates. They trust nothing that the search computed: the terms are compared again under the
 * mapping's operands, and isl shows that φ, which takes a point of the statement to an issue and a
 * point of the needle, is injective (a function on the whole domain it is as written), and that for
 * each operand needle element -> haystack element is a function (a layout), for the result an
 * injective one. */
#include "mapper/mapper_int.h"
#include "ir/poly.h"

#include <string.h>
#include <isl/ctx.h>
#include <isl/mat.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

struct proof {
    const struct needles *all;
    const struct machine *machine;
    const struct needle *needle;
    const struct program *p;
    const struct mapping *m;
    struct site site;
    struct term term;            /* the needle's */
    const struct program *sized; /* the needle at the sizes of the mapping */
    struct text *why;
};

static bool refuse(struct proof *f, const char *what, const char *name) {
    if (f->why)
        text_printf(f->why, "%s%s%s%s", what, name ? " '" : "", name ? name : "", name ? "'" : "");
    return false;
}

/* ---- structure ---- */

static bool groups_sound(struct proof *f) {
    uint64_t used = 0;
    if (f->m->ngroups != f->needle->naxes)
        return refuse(f, "the groups are not one for each axis of the instruction", NULL);
    for (int x = 0; x < f->m->ngroups; x++)
        for (int k = 0; k < f->m->group[x].n; k++) {
            int a = f->m->group[x].axis[k];
            if (a < 0 || a >= f->p->naxes || !(f->site.s->axes >> a & 1))
                return refuse(f, "a group has an axis that the statement does not have", NULL);
            if (used >> a & 1) return refuse(f, "two groups share axis", f->p->axis[a].name);
            if (f->p->axis[a].sequential)
                return refuse(f, "a group has the sequential axis", f->p->axis[a].name);
            used |= UINT64_C(1) << a;
        }
    return true;
}

static bool operand_sound(struct proof *f, int o) {
    const struct mapped_operand *mo = &f->m->operand[o];
    const struct operand *x = &f->machine->instr[f->m->instr].operand[o];
    bool imm = f->needle->imm >> o & 1;
    if ((mo->role == OPERAND_IMM) != imm || (mo->role == OPERAND_DST) != (o == f->needle->dst))
        return refuse(f, "the role does not fit operand", x->buffer);
    if (mo->role == OPERAND_READ && (mo->read < 0 || mo->read >= f->site.s->nreads))
        return refuse(f, "no such read for operand", x->buffer);
    if (mo->role == OPERAND_DST && mo->read >= f->site.s->nreads)
        return refuse(f, "no such read for operand", x->buffer);
    return true;
}

static bool value_equal(enum type t, union value a, union value b) {
    return type_is_float(t) ? a.f == b.f || (a.f != a.f && b.f != b.f) : a.i == b.i;
}

static bool types_fit(const struct proof *f, enum type needle, enum type hay) {
    const struct instr *x = &f->machine->instr[f->m->instr];
    return needle == hay ||
           (f->needle->copy && x->move_types >> hay & 1 && type_size(needle) == type_size(hay));
}

/* An operand read beside its place: so many steps along axes of the needle, each of which one axis
 * of the program stands on; the program reads as many steps beside. */
static bool twin_agrees(const struct proof *f, int o, const struct access *needle,
                        const struct access *played, const struct access *hay) {
    const struct program *np = f->needle->program;
    int64_t steps[MAX_NEEDLE_AXES] = {0};
    if (played->buffer != hay->buffer || played->has_fill || hay->has_fill) return false;
    for (int d = 0; d < np->buffer[needle->buffer].ndims; d++) {
        int64_t by = access_coef(np, needle, d, np->naxes) -
                     access_coef(np, f->needle->access[o], d, np->naxes);
        for (int x = 0; x < np->naxes && by != 0; x++) {
            int64_t c = access_coef(np, needle, d, x);
            if (c == 0 || by % c != 0 || f->m->group[x].n != 1) continue;
            steps[x] = by / c;
            by = 0;
        }
        if (by != 0) return false;
    }
    for (int d = 0; d < np->buffer[needle->buffer].ndims; d++) {
        int64_t sum = access_coef(np, f->needle->access[o], d, np->naxes);
        for (int x = 0; x < np->naxes; x++) sum += steps[x] * access_coef(np, needle, d, x);
        if (sum != access_coef(np, needle, d, np->naxes)) return false;
    }
    for (int d = 0; d < f->p->buffer[hay->buffer].ndims; d++) {
        int64_t at = access_coef(f->p, played, d, f->p->naxes);
        for (int x = 0; x < np->naxes; x++)
            if (steps[x] != 0)
                at += steps[x] * access_coef(f->p, played, d, f->m->group[x].axis[0]);
        if (at != access_coef(f->p, hay, d, f->p->naxes)) return false;
        for (int a = 0; a < f->p->naxes; a++)
            if (access_coef(f->p, played, d, a) != access_coef(f->p, hay, d, a)) return false;
    }
    return true;
}

/* Of the buffer that is overwritten in place nothing is read through another operand. */
static bool is_overwritten(const struct proof *f, int read) {
    int over = f->m->operand[f->needle->dst].read;
    return over >= 0 && read >= 0 && f->site.s->read[over].buffer == f->site.s->read[read].buffer;
}

/* The read of the needle's node under the mapping is the haystack's node. */
static bool reads_agree(const struct proof *f, const struct term_node *n,
                        const struct term_node *h) {
    int o = n->acc ? f->needle->dst
                   : f->needle->operand_of_buffer[f->needle->program->stmt[0].read[n->read].buffer];
    const struct mapped_operand *mo = &f->m->operand[o];
    if (mo->role == OPERAND_IMM)
        return h->constant && node_type_fits(n, h) && value_equal(n->type, mo->imm, h->value);
    if (h->code != OP_READ || !types_fit(f, n->type, h->type)) return false;
    if (!n->acc && !h->acc && is_overwritten(f, h->read)) return false;
    const struct access *own = n->acc ? NULL : &f->needle->program->stmt[0].read[n->read];
    if (own && f->needle->twins >> o & 1 &&
        !access_same(f->needle->program, own, f->needle->access[o]))
        return !h->acc && mo->role == OPERAND_READ &&
               twin_agrees(f, o, own, &f->site.s->read[mo->read], &f->site.s->read[h->read]);
    const struct access *read = f->site.s->read;
    if (!n->acc)
        return !h->acc && mo->role == OPERAND_READ &&
               access_same(f->p, &read[mo->read], &read[h->read]);
    if (mo->read != h->read &&
        (mo->read < 0 || h->read < 0 || !access_same(f->p, &read[mo->read], &read[h->read])))
        return false;
    return h->acc || may_overwrite(&f->site, f->machine, f->needle, h->read);
}

/* What the needle computes of the constants of the issue alone. */
static bool computed(const struct proof *f, int node, union value *out) {
    const struct term_node *n = &f->term.at[node];
    union value arg[3];
    *out = n->value;
    if (n->constant) return true;
    if (n->code == OP_AXIS || n->acc) return false;
    if (n->code == OP_READ) {
        int o = f->needle->operand_of_buffer[f->needle->program->stmt[0].read[n->read].buffer];
        *out = f->m->operand[o].imm;
        return f->m->operand[o].role == OPERAND_IMM;
    }
    for (int k = 0; k < n->nargs; k++)
        if (!computed(f, n->arg[k], &arg[k])) return false;
    *out = op_eval(n->code, n->type, f->term.at[n->arg[n->code == OP_SELECT ? 1 : 0]].type, arg);
    return n->nargs > 0;
}

static bool nodes_agree(const struct proof *f, int needle, int hay) {
    static const int order[2][3] = {{0, 1, 2}, {1, 0, 2}};
    const struct term_node *n = &f->term.at[needle], *h = &f->site.term.at[hay];
    if (n->code == OP_READ) return reads_agree(f, n, h);
    if (n->code == OP_AXIS) return false;
    if (n->constant)
        return h->constant && node_type_fits(n, h) && value_equal(n->type, n->value, h->value);
    union value v;
    if (h->constant && computed(f, needle, &v))
        return node_type_fits(n, h) && value_equal(n->type, v, h->value);
    if (n->code != h->code || !node_type_fits(n, h)) return false;
    int orders = op_info[n->code].flags & OP_COMM ? 2 : 1;
    for (int k = 0; k < orders; k++) {
        bool same = true;
        for (int i = 0; i < n->nargs && same; i++)
            same = nodes_agree(f, n->arg[i], h->arg[order[k][i]]);
        if (same) return true;
    }
    return false;
}

static bool terms_agree(struct proof *f) {
    const struct stmt *ns = &f->needle->program->stmt[0];
    enum type t = f->needle->program->buffer[ns->dst.buffer].type;
    if (!types_fit(f, t, f->p->buffer[f->site.s->dst.buffer].type))
        return refuse(f, "the result's type differs", NULL);
    if (!nodes_agree(f, f->term.root, f->site.term.root))
        return refuse(f,
                      f->needle->twins ? "the operations, or the places that are read, differ"
                                       : "the operations differ",
                      NULL);
    const struct mapped_operand *dst = &f->m->operand[f->needle->dst];
    bool reads_dst = false;
    for (int i = 0; i < f->term.n; i++) reads_dst |= f->term.at[i].acc;
    if (dst->read >= 0 && !reads_dst)
        return refuse(f, "the instruction does not read what it overwrites", NULL);
    return true;
}

static bool init_sound(struct proof *f) {
    const struct operand *dst = &f->machine->instr[f->m->instr].operand[f->needle->dst];
    if (f->m->init < 0) return true;
    if (!dst->accumulate || !f->term.accumulates)
        return refuse(f, "the instruction cannot overwrite its result", NULL);
    if (f->m->init != init_of(f->p, f->m->stmt))
        return refuse(f, "the first fill is not neutral, or is not just before", NULL);
    return true;
}

/* ---- isl ---- */

static uint64_t mapped_axes(const struct mapping *m) {
    uint64_t mask = 0;
    for (int x = 0; x < m->ngroups; x++)
        for (int k = 0; k < m->group[x].n; k++) mask |= UINT64_C(1) << m->group[x].axis[k];
    return mask;
}

/* coefficients of the mixed-radix place inside a group, added with a factor */
static void add_group(const struct proof *f, const struct group *g, int64_t factor, int64_t *coef) {
    int64_t stride = factor;
    for (int k = g->n; k-- > 0; stride *= f->p->axis[g->axis[k]].extent) coef[g->axis[k]] += stride;
}

struct rows {
    int64_t coef[MAX_DIMS][MAX_AXES + 1];
    int n;
};

static void rows_clear(struct rows *r, int n) {
    memset(r->coef, 0, (size_t)n * sizeof *r->coef);
    r->n = n;
}

static isl_mat *set_row(isl_mat *m, int row, int col, int64_t v) {
    return isl_mat_set_element_val(m, row, col, isl_val_int_from_si(isl_mat_get_ctx(m), v));
}

static isl_mat *set_linear(isl_mat *m, int row, int64_t constant, const int *axis, int n,
                           const int64_t *coef) {
    m = set_row(m, row, 0, constant);
    for (int k = 0; k < n; k++) m = set_row(m, row, k + 1, coef[axis[k]]);
    return m;
}

/* Is { d : |d| < extents, same d = 0, row d >= 1 } other than empty? */
static bool points_remain(const struct proof *f, isl_ctx *ctx, const int *axis, int n,
                          const struct rows *same, const int64_t *row) {
    isl_mat *eq = isl_mat_alloc(ctx, (unsigned)same->n, (unsigned)n + 1);
    isl_mat *ineq = isl_mat_alloc(ctx, 2 * (unsigned)n + 1, (unsigned)n + 1);
    for (int r = 0; r < same->n; r++) eq = set_linear(eq, r, 0, axis, n, same->coef[r]);
    for (int k = 0; k < n; k++)
        for (int side = 0; side < 2; side++) {
            int64_t one[MAX_AXES + 1] = {0};
            one[axis[k]] = side ? -1 : 1;
            ineq = set_linear(ineq, 2 * k + side, f->p->axis[axis[k]].extent - 1, axis, n, one);
        }
    ineq = set_linear(ineq, 2 * n, -1, axis, n, row);
    isl_basic_set *set = isl_basic_set_from_constraint_matrices(
        isl_space_set_alloc(ctx, 0, (unsigned)n), eq, ineq, isl_dim_cst, isl_dim_param, isl_dim_set,
        isl_dim_div);
    bool empty = isl_basic_set_is_empty(set) == isl_bool_true;
    isl_basic_set_free(set);
    return !empty;
}

/* Are there two points of one issue that agree in `same` and differ in `differ`? Accesses are
 * linear and the domain is a box, so the set of differences of points says it. isl is asked where
 * simple algebra does not know. */
static bool distinguishes(const struct proof *f, isl_ctx *ctx, uint64_t axes,
                          const struct rows *same, const struct rows *differ) {
    int64_t extent[MAX_AXES];
    int axis[MAX_AXES], n = 0;
    bool found = false;
    for (int a = 0; a < f->p->naxes; a++) {
        extent[a] = f->p->axis[a].extent;
        if (axes >> a & 1) axis[n++] = a;
    }
    struct differences all = {
        .extent = extent, .axis = axis, .naxes = n, .nsame = same->n, .same = same->coef};
    for (int d = 0; d < differ->n && !found; d++) {
        enum agreement simply = differences_agree(&all, differ->coef[d]);
        found = simply == AGREE_OPEN ? points_remain(f, ctx, axis, n, same, differ->coef[d])
                                     : simply == AGREE_NO;
    }
    return found;
}

/* φ takes the place g of a point in a group to issue g div T and needle point g mod T, T the
 * needle's extent: a function on the whole domain; injective, and so a bijection with the places,
 * if g is. */
static bool phi_sound(struct proof *f, isl_ctx *ctx, int x) {
    const struct group *g = &f->m->group[x];
    struct rows place, each;
    uint64_t axes = 0;
    if (g->n == 0) return true;
    rows_clear(&place, 1);
    rows_clear(&each, g->n);
    add_group(f, g, 1, place.coef[0]);
    for (int k = 0; k < g->n; k++) {
        each.coef[k][g->axis[k]] = 1;
        axes |= UINT64_C(1) << g->axis[k];
    }
    if (!distinguishes(f, ctx, axes, &place, &each)) return true;
    return refuse(f, "two points of the statement share a place on axis", f->sized->axis[x].name);
}

static const struct access *sized_access(const struct proof *f, int o) {
    const struct stmt *s = &f->sized->stmt[0], *own = &f->needle->program->stmt[0];
    if (o == f->needle->dst) return &s->dst;
    for (int r = 0; r < s->nreads; r++)
        if (&own->read[r] == f->needle->access[o]) return &s->read[r];
    return NULL;
}

/* Which element of the instruction and of the program a point of the mapped axes reads or writes.
 */
static void element_rows(struct proof *f, const struct access *hay, const struct access *needle,
                         struct rows *inside, struct rows *outside) {
    rows_clear(inside, f->sized->buffer[needle->buffer].ndims);
    rows_clear(outside, f->p->buffer[hay->buffer].ndims);
    for (int d = 0; d < inside->n; d++)
        for (int x = 0; x < f->m->ngroups; x++)
            add_group(f, &f->m->group[x], access_coef(f->sized, needle, d, x), inside->coef[d]);
    for (int d = 0; d < outside->n; d++)
        memcpy(outside->coef[d], hay->coef + (size_t)d * ((size_t)f->p->naxes + 1),
               ((size_t)f->p->naxes + 1) * sizeof(int64_t));
}

/* needle element -> haystack element is a function within each issue; for the result an injective
 * one. */
static bool operand_layout_sound(struct proof *f, isl_ctx *ctx, int o) {
    const struct access *hay = mapped_access(f->site.s, &f->m->operand[o]);
    const struct access *needle = sized_access(f, o);
    const char *name = f->machine->instr[f->m->instr].operand[o].buffer;
    struct rows inside, outside;
    if (!hay) return true;
    if (!needle) return refuse(f, "the instruction does not read operand", name);
    element_rows(f, hay, needle, &inside, &outside);
    if (distinguishes(f, ctx, mapped_axes(f->m), &inside, &outside))
        return refuse(f, "one element of the instruction would be several elements of operand",
                      name);
    if (o == f->needle->dst && distinguishes(f, ctx, mapped_axes(f->m), &outside, &inside))
        return refuse(f, "two elements of the instruction would be one element of operand", name);
    return true;
}

static bool relations_sound(struct proof *f) {
    isl_ctx *ctx = poly_begin();
    bool sound = true;
    for (int x = 0; x < f->m->ngroups && sound; x++) sound = phi_sound(f, ctx, x);
    for (int o = 0; o < f->needle->noperands && sound; o++) sound = operand_layout_sound(f, ctx, o);
    poly_end(ctx);
    return sound;
}

static bool bind_sized(struct proof *f) {
    int64_t size[MAX_RANGED];
    mapping_sizes(f->needle, f->p, f->m->group, size);
    f->sized = needle_sized(f->all, f->needle, size);
    return f->sized ? true : refuse(f, "the sizes are not legal for the instruction", NULL);
}

static bool sound(struct proof *f) {
    if (f->site.s->nwhere > 0)
        return refuse(f, "the statement's domain is cut by a constraint", NULL);
    if (!groups_sound(f)) return false;
    for (int o = 0; o < f->needle->noperands; o++)
        if (!operand_sound(f, o)) return false;
    if (!terms_agree(f) || !init_sound(f)) return false;
    if (!padding_legal(f->needle, f->p, f->m->group))
        return refuse(f, "padding a reduction would change its result", NULL);
    return bind_sized(f) && relations_sound(f);
}

/* ---- several statements ---- */

/* Axes get other names: of the same extent, each its own. */
static bool names_sound(struct proof *f) {
    for (int q = 0; q <= f->m->nalso; q++) {
        const struct stmt *s = &f->p->stmt[q < f->m->nalso ? f->m->also[q] : f->m->stmt];
        uint64_t used = 0;
        for (int a = 0; a < f->p->naxes; a++) {
            int x = f->m->renamed[q][a];
            if (!(s->axes >> a & 1)) continue;
            if (x < 0 || x >= f->p->naxes || used >> x & 1 ||
                f->p->axis[x].extent != f->p->axis[a].extent ||
                f->p->axis[x].sequential != f->p->axis[a].sequential ||
                (q == f->m->nalso && x != a))
                return refuse(f, "an axis cannot be counted as another", f->p->axis[a].name);
            used |= UINT64_C(1) << x;
        }
    }
    return true;
}

static bool touches(const struct stmt *s, int buffer) {
    for (int r = 0; r < s->nreads; r++)
        if (s->read[r].buffer == buffer) return true;
    return s->dst.buffer == buffer;
}

/* Statements that share what one of them writes come in the instruction's order. */
static bool order_sound(struct proof *f, const struct needle *n, const struct mapping *m) {
    for (int q = 0; q < n->nparts; q++)
        for (int k = q + 1; k < n->nparts; k++) {
            int first = q < m->nalso ? m->also[q] : m->stmt,
                then = k < m->nalso ? m->also[k] : m->stmt;
            const struct stmt *a = &n->program->stmt[q], *b = &n->program->stmt[k];
            bool tied = touches(b, a->dst.buffer) || touches(a, b->dst.buffer);
            if (first == then || (tied && first > then))
                return refuse(f, "the statements are in another order", NULL);
        }
    return true;
}

/* As operand_layout_sound, for one statement; `both`: an element of the program is one of the
 * instruction too. */
static bool part_layout_sound(struct proof *f, isl_ctx *ctx, int o, const struct access *needle,
                              bool both) {
    const struct access *hay = mapped_access(f->site.s, &f->m->operand[o]);
    struct rows inside, outside;
    if (!hay) return true;
    element_rows(f, hay, needle, &inside, &outside);
    if (distinguishes(f, ctx, mapped_axes(f->m), &inside, &outside) ||
        (both && distinguishes(f, ctx, mapped_axes(f->m), &outside, &inside)))
        return refuse(f, "elements of the instruction and of the program are not the same ones",
                      NULL);
    return true;
}

/* What plays the operands of part q: those of the whole, and the temporaries as the statements that
 * write them pair them. */
static bool part_operands(struct proof *f, const struct program *parts, const struct stmt *joined,
                          const struct mapping *whole, int q, const int *pair,
                          struct mapped_operand *out) {
    const struct needle *part = f->needle;
    const struct stmt *own = &part->program->stmt[0], *hay = &parts->stmt[f->m->stmt];
    for (int o = 0; o < part->noperands; o++) out[o] = (struct mapped_operand){.read = -1};
    out[part->dst].role = OPERAND_DST;
    if (q < whole->nalso && pair[own->dst.buffer] != hay->dst.buffer)
        return refuse(f, "a statement writes another temporary than is read", NULL);
    for (int r = 0; r < own->nreads; r++) {
        int b = own->read[r].buffer, o = part->operand_of_buffer[b];
        bool outside = o < whole->noperands && o != part->dst && pair[b] < 0;
        if (o == part->dst) {
            for (int k = 0; k < hay->nreads; k++)
                if (hay->read[k].buffer == hay->dst.buffer) out[o].read = k;
            continue;
        }
        if (outside && whole->operand[o].role == OPERAND_IMM) {
            out[o] = whole->operand[o];
            continue;
        }
        out[o].role = OPERAND_READ;
        for (int k = 0; k < hay->nreads && out[o].read < 0; k++)
            if (outside ? stmt_joined_read(parts, joined, &hay->read[k]) == whole->operand[o].read
                        : hay->read[k].buffer == pair[b])
                out[o].read = k;
        if (out[o].read < 0) return refuse(f, "a statement does not read what plays operand", NULL);
    }
    return true;
}

static bool part_axes_agree(struct proof *f, const struct mapping *whole, uint64_t all) {
    const struct stmt *own = &f->needle->program->stmt[0], *hay = f->site.s;
    uint64_t mapped = 0;
    for (int x = 0; x < whole->ngroups; x++) {
        if (whole->group[x].n > 1) return refuse(f, "an axis is several axes", NULL);
        if (whole->group[x].n == 0) continue;
        int a = whole->group[x].axis[0];
        mapped |= UINT64_C(1) << a;
        if ((own->axes >> x & 1) != (hay->axes >> a & 1))
            return refuse(f, "a statement does not go over the axis", f->p->axis[a].name);
    }
    for (int a = 0; a < f->p->naxes; a++)
        if (all >> a & 1 && !(mapped >> a & 1) && f->p->axis[a].extent > 1 &&
            (!(hay->axes >> a & 1) || !access_varies(f->p, &hay->dst, a)))
            return refuse(f, "an issue has only a part of the axis", f->p->axis[a].name);
    return true;
}

static bool part_sound(struct proof *f, struct arena *scratch, const struct program *parts,
                       const struct stmt *joined, const struct mapping *whole,
                       const struct needle *n, int q, const int *pair) {
    struct mapped_operand operand[MAX_OPERANDS];
    struct mapping m = *whole;
    struct program sized = *f->sized;
    const struct proof outer = *f;
    struct program view = *parts;
    m.stmt = q < whole->nalso ? whole->also[q] : whole->stmt;
    m.operand = operand;
    m.noperands = n->part[q].noperands;
    sized.stmt = &f->sized->stmt[q];
    f->needle = &n->part[q];
    f->p = &view;
    f->m = &m;
    f->sized = &sized;
    f->site = site_of(scratch, &view, m.stmt);
    f->term = n->part[q].term;
    bool good = part_operands(f, parts, joined, whole, q, pair, operand) &&
                part_axes_agree(f, whole, joined->axes) && terms_agree(f);
    if (good) {
        isl_ctx *ctx = poly_begin();
        const struct stmt *own = &sized.stmt[0];
        bool seen[MAX_OPERANDS] = {false};
        for (int r = -1; r < own->nreads && good; r++) {
            int o = r < 0 ? f->needle->dst : f->needle->operand_of_buffer[own->read[r].buffer];
            if (seen[o]) continue;
            seen[o] = true;
            good = part_layout_sound(f, ctx, o, r < 0 ? &own->dst : &own->read[r],
                                     o == f->needle->dst || o >= n->noperands);
        }
        poly_end(ctx);
    }
    struct text *why = f->why;
    *f = outer;
    f->why = why;
    return good;
}

static bool joined_sound(struct proof *f, struct arena *scratch) {
    const struct needle *n = f->needle;
    const struct mapping *m = f->m;
    struct program view, parts;
    int pair[MAX_OPERANDS * 2], axis = -1;
    if (m->nalso + 1 != n->nparts || !m->renamed)
        return refuse(f, "the statements are not those of the instruction", NULL);
    for (int q = 0; q < m->nalso; q++)
        if (m->also[q] < 0 || m->also[q] >= m->stmt)
            return refuse(f, "the statements are in another order", NULL);
    const char *why = joined_view(scratch, f->p, m, &view);
    if (why) return refuse(f, why, NULL);
    if (!names_sound(f)) return false;
    parts = view;
    parts.stmt = arena_copy(scratch, view.stmt, (size_t)view.nstmts * sizeof *view.stmt);
    parts.stmt[m->stmt] = f->p->stmt[m->stmt];
    f->site =
        (struct site){.program = &view, .stmt = m->stmt, .said = m->stmt, .s = &view.stmt[m->stmt]};
    f->p = &view;
    if (!groups_sound(f)) return false;
    for (int o = 0; o < n->noperands; o++)
        if (!operand_sound(f, o)) return false;
    if (joined_extents(n, f->p, m->group, &axis))
        return refuse(f, "an issue has only a part of axis", n->program->axis[axis].name);
    if (!padding_legal(n, f->p, m->group))
        return refuse(f, "padding would change what later statements read", NULL);
    for (int b = 0; b < MAX_OPERANDS * 2; b++) pair[b] = -1;
    for (int q = 0; q < n->nparts; q++) {
        int *p = &pair[n->program->stmt[q].dst.buffer],
            hay = parts.stmt[q < m->nalso ? m->also[q] : m->stmt].dst.buffer;
        if (*p >= 0 && *p != hay) return refuse(f, "one temporary would be two", NULL);
        for (int b = 0; b < n->program->nbuffers; b++)
            if (pair[b] == hay && &pair[b] != p) return refuse(f, "two temporaries are one", NULL);
        *p = hay;
    }
    if (!order_sound(f, n, m) || !bind_sized(f)) return false;
    for (int q = 0; q < n->nparts; q++)
        if (!part_sound(f, scratch, &parts, &view.stmt[m->stmt], m, n, q, pair)) return false;
    return true;
}

bool mapping_certify_with(const struct needles *all, const struct program *p,
                          const struct mapping *m, struct text *why) {
    struct arena scratch;
    arena_init(&scratch);
    struct proof f = {.all = all, .machine = all->machine, .p = p, .m = m, .why = why};
    f.needle = needle_of(all, m->instr);
    bool good = false;
    if (!f.needle || f.needle->refused || m->stmt < 0 || m->stmt >= p->nstmts) {
        refuse(&f, "the instruction executes no statement of a program", NULL);
    } else if (m->nalso > 0 || f.needle->nparts > 0) {
        good = f.needle->nparts > 0 && joined_sound(&f, &scratch);
    } else {
        f.site = site_of(&scratch, p, m->stmt);
        f.term = term_of(&scratch, f.needle->program, &f.needle->program->stmt[0]);
        term_simplify(&scratch, &f.term, f.needle->program, 0);
        good = sound(&f);
    }
    arena_free(&scratch);
    return good;
}

bool mapping_certify(const struct program *p, const struct machine *m, const struct mapping *map,
                     struct text *why_not) {
    struct needles *all = needles_open(m);
    bool good = mapping_certify_with(all, p, map, why_not);
    needles_close(all);
    return good;
}
