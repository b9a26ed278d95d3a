/* Floats of 16 bits on machines that convert them and compute in f32: who reads one reads an image
 * of the buffer in f32, and who stores one computes in f32 and leaves the rounding to a statement
 * of its own. Values stay as they are: an image is exact, and stores round once as before. */
#include "mapper/floats.h"
#include "mapper/body.h"
#include "mapper/rewrite_int.h"

#include <string.h>

struct floats {
    struct program *p;
    const struct needles *needles;
    bool converted[TYPE_COUNT]; /* the machine converts this type to f32 and back */
    int *image;                 /* [images] of the buffer, as it is now; -1: none */
    int images, made;
};

/* ---- what the machine has ---- */

static const struct buffer *result_of(const struct needle *n) {
    return &n->program->buffer[n->access[n->dst]->buffer];
}

static bool converts(const struct needles *all, enum type from, enum type to) {
    for (int k = 0; k < all->n; k++) {
        const struct needle *n = &all->at[k];
        if (!n->offered || n->refused || n->nparts || result_of(n)->type != to) continue;
        const struct term_node *root = &n->term.at[n->term.root];
        if (root->code == OP_READ && !root->acc && root->type == from) return true;
    }
    return false;
}

static bool multiplies(const struct needles *all, enum type a, enum type b) {
    struct product_types t;
    for (int k = 0; k < all->n; k++)
        if (needle_product(&all->at[k], &t) && ((t.a == a && t.b == b) || (t.a == b && t.b == a)))
            return true;
    return false;
}

/* A product that an instruction makes of the stored types themselves. */
static bool is_native(const struct floats *f, int stmt) {
    const struct stmt *s = &f->p->stmt[stmt];
    struct factors x;
    return rw_factors(f->p, stmt, &x) && x.n == 2 &&
           multiplies(f->needles, rw_stored(f->p, s, x.node[0]), rw_stored(f->p, s, x.node[1]));
}

/* A copy, a fill or a conversion: nothing is computed. */
static bool is_plain(const struct stmt *s) {
    return s->nops == 1 && s->combine == COMBINE_SET &&
           (s->op[0].code == OP_READ || s->op[0].code == OP_LITERAL);
}

/* ---- reading ---- */

static void insert(struct floats *f, int stmt, struct draft *d) {
    program_make_room(f->p, stmt, 1);
    draft_close(d, stmt);
    f->made++;
}

/* The buffer's shape, walked by axes of the program; false: there is no room. */
static bool whole(struct program *p, int buffer, int *axis) {
    uint64_t used = 0;
    for (int d = 0; d < p->buffer[buffer].ndims; d++)
        if ((axis[d] = program_copy_axis(p, "d", p->buffer[buffer].extent[d], p->naxes, &used)) < 0)
            return false;
    return true;
}

static int new_image(struct floats *f, int stmt, int buffer) {
    struct program *p = f->p;
    const struct buffer *b = &p->buffer[buffer];
    int axis[MAX_DIMS];
    if (!rw_set_whole(p, stmt, buffer) || !whole(p, buffer, axis)) return -1;
    const char *name = arena_printf(&p->arena, "%s.f32", b->name);
    int own = rw_temporary(p, name, TYPE_F32, b->ndims, b->extent);
    if (own < 0) return -1;
    struct draft d = draft_open(p, &p->stmt[stmt], COMBINE_SET, rw_indexed(p, own, axis));
    draft_read(&d, rw_indexed(p, buffer, axis));
    insert(f, stmt, &d);
    return own;
}

/* Returns where the statement stands then. */
static int read_images(struct floats *f, int stmt) {
    for (int r = 0; r < f->p->stmt[stmt].nreads; r++) {
        int b = f->p->stmt[stmt].read[r].buffer;
        if (!f->converted[f->p->buffer[b].type] || b >= f->images) continue;
        if (f->image[b] < 0) {
            int before = f->made;
            f->image[b] = new_image(f, stmt, b);
            stmt += f->made - before;
        }
        if (f->image[b] >= 0) f->p->stmt[stmt].read[r].buffer = f->image[b];
    }
    return stmt;
}

/* ---- storing ---- */

/* What was stored at `to` is read from `from` by a statement behind this one. */
static void store_behind(struct floats *f, int stmt, struct access to, struct access from) {
    struct program *p = f->p;
    struct draft d = draft_open(p, &p->stmt[stmt], COMBINE_SET, to);
    draft_read(&d, from);
    d.s.where = p->stmt[stmt].where;
    d.s.nwhere = p->stmt[stmt].nwhere;
    insert(f, stmt, &d);
    struct stmt behind = p->stmt[stmt];
    p->stmt[stmt] = p->stmt[stmt + 1];
    p->stmt[stmt + 1] = behind;
}

static int result_axes(const struct program *p, const struct access *to, int *axis) {
    uint64_t seen = 0;
    int n = 0;
    for (int d = 0; d < p->buffer[to->buffer].ndims; d++)
        for (int a = 0; a < p->naxes; a++) {
            if (seen >> a & 1 || !access_coef(p, to, d, a)) continue;
            seen |= UINT64_C(1) << a;
            axis[n++] = a;
        }
    return n;
}

static const char *result_name(const struct floats *f, int buffer) {
    return arena_printf(&f->p->arena, "%s.f32", f->p->buffer[buffer].name);
}

static bool compute_wide(struct floats *f, int stmt) {
    struct program *p = f->p;
    struct stmt *s = &p->stmt[stmt];
    struct access to = s->dst, own;
    int axis[MAX_AXES], n = result_axes(p, &to, axis);
    if (s->axes != rw_access_axes(p, &to) || n > MAX_DIMS ||
        !rw_temporary_of(p, result_name(f, to.buffer), TYPE_F32, axis, n, &own))
        return false;
    s->dst = own;
    store_behind(f, stmt, to, rw_copy(p, &own));
    return true;
}

/* The largest or least of values is one of them: rounding it once is rounding each. */
static bool choose_wide(struct floats *f, int stmt) {
    struct program *p = f->p;
    struct stmt *s = &p->stmt[stmt];
    int init = init_of(p, stmt), b = s->dst.buffer;
    if (init < 0) return false;
    int own = rw_temporary(p, result_name(f, b), TYPE_F32, p->buffer[b].ndims, p->buffer[b].extent);
    if (own < 0) return false;
    struct access to = s->dst, from = rw_copy(p, &s->dst);
    from.buffer = s->dst.buffer = p->stmt[init].dst.buffer = own;
    store_behind(f, stmt, to, from);
    return true;
}

static bool store_rounded(struct floats *f, int stmt) {
    const struct stmt *s = &f->p->stmt[stmt];
    if (!f->converted[f->p->buffer[s->dst.buffer].type] || stmt_reads(s, s->dst.buffer))
        return false;
    if (s->combine == COMBINE_SET) return compute_wide(f, stmt);
    return (s->combine == COMBINE_MAX || s->combine == COMBINE_MIN) && choose_wide(f, stmt);
}

/* ---- the program ---- */

/* Images serve until the next result of 16 bits is stored: so a later reader converts again what it
 * reads anyway, and each result is proved for itself. */
static void forget(struct floats *f, const struct item *item) {
    bool stores = item->kind != ITEM_STMT ||
                  f->converted[f->p->buffer[f->p->stmt[item->stmt].dst.buffer].type];
    for (int b = 0; b < f->images && stores; b++) f->image[b] = -1;
}

static bool may_change(const struct floats *f, int stmt) {
    return rw_top(f->p, stmt) && !is_plain(&f->p->stmt[stmt]) && !is_native(f, stmt);
}

int floats_in_f32(struct program *p, const struct needles *needles) {
    struct floats f = {.p = p, .needles = needles, .images = p->nbuffers};
    bool any = false;
    for (int t = 0; t < TYPE_COUNT; t++)
        if (t == TYPE_F16 || t == TYPE_BF16)
            any |= f.converted[t] = converts(needles, (enum type)t, TYPE_F32) &&
                                    converts(needles, TYPE_F32, (enum type)t);
    if (!any || p->nsizes > 0) return 0;
    f.image = arena_array(&p->arena, (size_t)f.images + 1, sizeof *f.image);
    for (int b = 0; b < f.images; b++) f.image[b] = -1;
    for (int i = 0; i < p->nitems; i++) {
        if (p->item[i].kind == ITEM_STMT && may_change(&f, p->item[i].stmt)) {
            int before = f.made, stmt = read_images(&f, p->item[i].stmt);
            i += f.made - before;
            if (store_rounded(&f, stmt)) i++;
        }
        forget(&f, &p->item[i]);
    }
    return f.made;
}
