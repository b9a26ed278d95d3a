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
    const struct op **native; /* [natives] trees of products that stay as they are */
    int natives;
    bool converted[TYPE_COUNT]; /* the machine converts this type to f32 and back */
    int *image;                 /* [images] of the buffer, as it is now; -1: none */
    int *inside;                /* [images] the same in a step, of what steps write */
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

/* A product of the stored types themselves that costs less so. */
static bool is_native(const struct floats *f, int stmt) {
    for (int k = 0; k < f->natives; k++)
        if (f->native[k] == f->p->stmt[stmt].op) return true;
    return false;
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

/* The statement that makes an image of all of the buffer; -1: there is no room. */
static int draft_image(struct floats *f, int stmt, int buffer, struct draft *d) {
    struct program *p = f->p;
    const struct buffer *b = &p->buffer[buffer];
    int axis[MAX_DIMS];
    if (!whole(p, buffer, axis)) return -1;
    const char *name = arena_printf(&p->arena, "%s.f32", b->name);
    int own = rw_temporary(p, name, TYPE_F32, b->ndims, b->extent);
    if (own < 0) return -1;
    *d = draft_open(p, &p->stmt[stmt], COMBINE_SET, rw_indexed(p, own, axis));
    draft_read(d, rw_indexed(p, buffer, axis));
    return own;
}

static int new_image(struct floats *f, int stmt, int buffer) {
    struct draft d;
    int own = rw_set_whole(f->p, stmt, buffer) ? draft_image(f, stmt, buffer, &d) : -1;
    if (own >= 0) insert(f, stmt, &d);
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
    draft_where(&d, &p->stmt[stmt]);
    insert(f, stmt, &d);
    struct stmt behind = p->stmt[stmt];
    p->stmt[stmt] = p->stmt[stmt + 1];
    p->stmt[stmt + 1] = behind;
}

static int result_axes(const struct program *p, const struct access *to, uint64_t steps,
                       int *axis) {
    uint64_t seen = steps;
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

/* The statement stores in a temporary in f32, one element for each point; *to: where it stored. */
static bool store_wide(struct floats *f, int stmt, uint64_t steps, struct access *to) {
    struct program *p = f->p;
    struct access own;
    int axis[MAX_AXES], n;
    *to = p->stmt[stmt].dst;
    n = result_axes(p, to, steps, axis);
    if (p->stmt[stmt].axes != (rw_access_axes(p, to) & ~steps) || n > MAX_DIMS ||
        !rw_temporary_of(p, result_name(f, to->buffer), TYPE_F32, axis, n, &own))
        return false;
    p->stmt[stmt].dst = own;
    return true;
}

static bool compute_wide(struct floats *f, int stmt) {
    struct access to;
    if (!store_wide(f, stmt, 0, &to)) return false;
    store_behind(f, stmt, to, rw_copy(f->p, &f->p->stmt[stmt].dst));
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

/* ---- steps of recurrences ---- */

/* An item at the top level before the recurrence sets all of the buffer, or it comes set. */
static bool set_before(const struct body *b, int buffer) {
    const struct program *p = b->p;
    enum role r = p->buffer[buffer].role;
    for (int i = 0; i < b->at; i++)
        if (p->item[i].kind == ITEM_STMT && p->stmt[p->item[i].stmt].dst.buffer == buffer &&
            stmt_writes_whole(p, &p->stmt[p->item[i].stmt]))
            return true;
    return r == ROLE_IN || r == ROLE_CONST || r == ROLE_INOUT;
}

/* All of the buffer has its value when the step comes to the item. */
static bool set_in_step(const struct body *b, int item, int buffer) {
    for (int k = 0; k < b->r->nstates; k++)
        if (b->r->state[k].current == buffer) return true;
    for (int i = 0; i < item; i++) {
        const struct stmt *s = body_stmt(b, i);
        if (s && s->dst.buffer == buffer && stmt_writes_whole(b->p, s)) return true;
    }
    return false;
}

static void insert_in_step(struct floats *f, struct body *b, int item, struct draft *d) {
    d->s.axes = stmt_axes(f->p, &d->s) & ~(UINT64_C(1) << b->r->axis);
    body_insert(b, item, body_append(f->p, d->s));
    f->made++;
}

/* Of what steps write, in the step; of the rest, once before all of them. */
static int image_in_step(struct floats *f, struct body *b, int *item, int buffer) {
    int *own = b->written[buffer] ? &f->inside[buffer] : &f->image[buffer];
    int stmt = b->r->item[*item].stmt;
    struct draft d;
    if (*own >= 0 || f->p->buffer[buffer].size) return *own;
    if (!(b->written[buffer] ? set_in_step(b, *item, buffer) : set_before(b, buffer))) return -1;
    *own = draft_image(f, stmt, buffer, &d);
    if (*own < 0) return -1;
    if (b->written[buffer]) {
        insert_in_step(f, b, (*item)++, &d);
    } else {
        d.s.axes = stmt_axes(f->p, &d.s);
        int one = body_append(f->p, d.s);
        body_insert_before(b, &one, 1);
        f->made++;
    }
    return *own;
}

/* Of what the statement reads there alone: a row of a sequence of any length, or of what is not
 * whole. */
static void image_of_read(struct floats *f, struct body *b, int *item, int r) {
    struct program *p = f->p;
    int stmt = b->r->item[*item].stmt, axis[MAX_AXES];
    struct access from = p->stmt[stmt].read[r], own;
    uint64_t axes = rw_access_axes(p, &from) & ~(UINT64_C(1) << b->r->axis);
    const char *name = result_name(f, from.buffer);
    if (p->stmt[stmt].nwhere || (axes & ~p->stmt[stmt].axes) ||
        !rw_temporary_of(p, name, TYPE_F32, axis, rw_axes(axes, axis), &own))
        return;
    struct draft d = draft_open(p, &p->stmt[stmt], COMBINE_SET, own);
    draft_read(&d, from);
    insert_in_step(f, b, (*item)++, &d);
    body_stmt(b, *item)->read[r] = rw_copy(p, &own);
}

static void read_images_in_step(struct floats *f, struct body *b, int *item) {
    for (int r = 0; r < body_stmt(b, *item)->nreads; r++) {
        int buffer = body_stmt(b, *item)->read[r].buffer;
        if (!f->converted[f->p->buffer[buffer].type] || buffer >= f->images) continue;
        int own = image_in_step(f, b, item, buffer);
        if (own >= 0)
            body_stmt(b, *item)->read[r].buffer = own;
        else
            image_of_read(f, b, item, r);
    }
}

static void store_in_step(struct floats *f, struct body *b, int *item) {
    int stmt = b->r->item[*item].stmt;
    const struct stmt *s = &f->p->stmt[stmt];
    struct access to;
    if (!f->converted[f->p->buffer[s->dst.buffer].type] || stmt_reads(s, s->dst.buffer) ||
        s->combine != COMBINE_SET || !store_wide(f, stmt, UINT64_C(1) << b->r->axis, &to))
        return;
    struct draft d = draft_open(f->p, &f->p->stmt[stmt], COMBINE_SET, to);
    draft_read(&d, rw_copy(f->p, &f->p->stmt[stmt].dst));
    draft_where(&d, &f->p->stmt[stmt]);
    insert_in_step(f, b, ++*item, &d);
}

/* Where the recurrence stands then. */
static int change_steps(struct floats *f, int at) {
    struct body b;
    if (!body_open(f->p, at, &b)) return at;
    for (int k = 0; k < f->images; k++) f->inside[k] = -1;
    for (int i = 0; i < b.r->nitems; i++) {
        const struct stmt *s = body_stmt(&b, i);
        bool stores = !s || f->converted[f->p->buffer[s->dst.buffer].type];
        if (s && !is_plain(s) && !is_native(f, b.r->item[i].stmt)) {
            read_images_in_step(f, &b, &i);
            store_in_step(f, &b, &i);
        }
        for (int k = 0; k < f->images && stores; k++) f->inside[k] = -1;
    }
    return b.at;
}

/* ---- the whole ---- */

static bool may_change(const struct floats *f, int stmt) {
    return rw_top(f->p, stmt) && !is_plain(&f->p->stmt[stmt]) && !is_native(f, stmt);
}

/* All statements but the native ones. */
static void change_all(struct floats *f) {
    struct program *p = f->p;
    f->images = p->nbuffers;
    f->image = arena_array(&p->arena, (size_t)f->images + 1, sizeof *f->image);
    f->inside = arena_array(&p->arena, (size_t)f->images + 1, sizeof *f->inside);
    for (int b = 0; b < f->images; b++) f->image[b] = -1;
    for (int i = 0; i < p->nitems; i++) {
        if (p->item[i].kind == ITEM_STMT && may_change(f, p->item[i].stmt)) {
            int before = f->made, stmt = read_images(f, p->item[i].stmt);
            i += f->made - before;
            if (store_rounded(f, stmt)) i++;
        }
        i = change_steps(f, i);
        forget(f, &p->item[i]);
    }
}

static bool reads_converted(const struct floats *f, int stmt) {
    const struct stmt *s = &f->p->stmt[stmt];
    for (int r = 0; r < s->nreads; r++)
        if (f->converted[f->p->buffer[s->read[r].buffer].type]) return true;
    return false;
}

/* The program with all statements changed is priced beside the one as it is: which products stay
 * as they are. */
static void choose_native(struct floats *f, const struct refusals *refused, struct decider *d) {
    struct program *p = f->p;
    int n = 0, *stmt = arena_array(&p->arena, (size_t)p->nstmts + 1, sizeof *stmt);
    for (int s = 0; s < p->nstmts; s++)
        if (reads_converted(f, s) && product_is_native(p, f->needles, s)) stmt[n++] = s;
    if (n == 0) return;
    struct floats wide = {.p = program_copy(p), .needles = f->needles};
    memcpy(wide.converted, f->converted, sizeof wide.converted);
    const struct op **tree = arena_array(&p->arena, (size_t)n, sizeof *tree);
    for (int k = 0; k < n; k++) tree[k] = wide.p->stmt[stmt[k]].op;
    change_all(&wide);
    f->native = arena_array(&p->arena, (size_t)n, sizeof *f->native);
    for (int k = 0, s = 0; k < n; k++) {
        for (s = 0; s < wide.p->nstmts && wide.p->stmt[s].op != tree[k];) s++;
        if (s == wide.p->nstmts || product_stays(p, stmt[k], wide.p, s, f->needles, refused, d))
            f->native[f->natives++] = p->stmt[stmt[k]].op;
    }
    program_free(wide.p);
}

int floats_in_f32(struct program *p, const struct needles *needles, const struct refusals *refused,
                  struct decider *d) {
    struct floats f = {.p = p, .needles = needles};
    bool any = false;
    for (int t = 0; t < TYPE_COUNT; t++)
        if (t == TYPE_F16 || t == TYPE_BF16)
            any |= f.converted[t] = converts(needles, (enum type)t, TYPE_F32) &&
                                    converts(needles, TYPE_F32, (enum type)t);
    if (!any) return 0;
    choose_native(&f, refused, d);
    change_all(&f);
    return f.made;
}
