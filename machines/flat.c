/* Instructions described in blocks, again with rows in one piece. `C[m,i,j]` with 16 rows i in each
 * of M blocks m has two axes where a program has one. Where every operand has the blocks at 16
 * times the distance of the rows, or at one that the schedule chooses, both are one axis of 16*M
 * rows. Such a form of the instruction stands beside the one in the file, which walks images whose
 * blocks lie apart. A second form has one axis also where something lies between two blocks, as the
 * rows i in `A[k,i,e]`: the operand has a layout then, `i,k -> k/4, i, k%4`. */
#include "machines/tree.h"
#include "ir/memory.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

struct flattening {
    struct loader *l;
    const struct bindings *params;  /* of the machine */
    struct node *node;              /* the new instruction */
    struct kernel *kernel;          /* its semantics */
    int64_t rows, blocks;           /* in a block; at most */
    const char *count, *all;        /* sizes: of blocks, of all rows */
    const char *block, *row, *flat; /* axes */
    bool apart;                     /* operands whose blocks lie elsewhere get a layout */
};

/* ---- expressions in attributes ---- */

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static const char *replaced(struct arena *a, const char *text, const char *old, const char *by) {
    struct text t = {0};
    size_t n = strlen(old);
    for (const char *p = text; *p;) {
        size_t k = 0;
        while (is_word(p[k])) k++;
        if (k == n && !strncmp(p, old, n))
            text_printf(&t, "%s", by);
        else
            text_printf(&t, "%.*s", k ? (int)k : 1, p);
        p += k ? k : 1;
    }
    const char *out = arena_strdup(a, t.at ? t.at : "");
    text_free(&t);
    return out;
}

static void replace_in(struct loader *l, struct node *n, const char *old, const char *by) {
    static const char *const expressions[] = {"latency", "interval", "overhead", "energy",
                                              "strides", "align",    "test",     "value"};
    for (size_t k = 0; k < sizeof expressions / sizeof *expressions; k++) {
        const char *value = node_attr(n, expressions[k]);
        if (value) node_set(l, n, expressions[k], replaced(l->arena, value, old, by));
    }
    for (int i = 0; i < n->nchildren; i++) replace_in(l, n->child[i], old, by);
}

/* The strides of an operand, one for each dimension; 0: it has none. */
static int split(struct arena *a, const char *list, const char *at[MAX_DIMS]) {
    int n = 0;
    while (list && *list && n < MAX_DIMS) {
        size_t k = 0;
        for (int depth = 0; list[k] && (depth || list[k] != ','); k++)
            depth += (list[k] == '(') - (list[k] == ')');
        size_t from = strspn(list, " "), to = k;
        while (to > from && list[to - 1] == ' ') to--;
        at[n++] = arena_strndup(a, list + from, to - from);
        list += k + (list[k] == ',');
    }
    return n;
}

/* ---- the semantics ---- */

static bool names(const struct expr *e, const char *name) {
    return e->kind == EXPR_NAME && !strcmp(e->name, name);
}

static bool mentions(const struct expr *e, const char *name) {
    if (!e) return false;
    bool found = names(e, name) || mentions(e->fill, name);
    for (int i = 0; i < e->nindex && !found; i++) found = mentions(e->index[i], name);
    for (int i = 0; i < 3 && !found; i++) found = mentions(e->arg[i], name);
    return found;
}

/* The only dimension whose index is the axis; -1: none; -2: it stands elsewhere too. */
static int dim_of(const struct expr *read, const char *axis) {
    int dim = -1;
    for (int d = 0; d < read->nindex; d++) {
        if (!mentions(read->index[d], axis)) continue;
        if (dim != -1 || !names(read->index[d], axis)) return -2;
        dim = d;
    }
    return dim;
}

struct dims { /* of a buffer: of the blocks, of the rows; -1: it has neither */
    const char *buffer;
    int block, row;
};

struct dims_of_all {
    struct dims at[16];
    int n;
};

static bool note(const struct flattening *f, const struct expr *read, struct dims_of_all *all) {
    struct dims x = {read->name, dim_of(read, f->block), dim_of(read, f->row)};
    if (x.block < -1 || x.row < -1 || (x.block < 0) != (x.row < 0)) return false;
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->at[i].buffer, read->name))
            return all->at[i].block == x.block && all->at[i].row == x.row;
    if (all->n == (int)(sizeof all->at / sizeof *all->at)) return false;
    all->at[all->n++] = x;
    return true;
}

/* Each buffer has both axes or none, always in the same dimensions, and nothing is computed of
 * them. */
static bool collect(const struct flattening *f, const struct expr *e, struct dims_of_all *all) {
    if (!e) return true;
    if (e->kind == EXPR_READ) return !e->fill && note(f, e, all);
    bool good = !names(e, f->block) && !names(e, f->row);
    for (int i = 0; i < 3 && good; i++) good = collect(f, e->arg[i], all);
    return good;
}

static bool collect_all(const struct flattening *f, struct dims_of_all *all) {
    bool sums = false;
    for (int i = 0; i < f->kernel->nitems; i++) {
        const struct kernel_item *x = &f->kernel->item[i];
        if (x->kind == KITEM_RECUR || x->kind == KITEM_CALL) return false;
        if (x->kind != KITEM_STMT) continue;
        sums |= x->stmt->combine != COMBINE_SET;
        if (x->stmt->nwhere || !collect(f, x->stmt->dst, all) || !collect(f, x->stmt->value, all))
            return false;
    }
    return sums && all->n > 0;
}

static const struct dims *dims_in(const struct dims_of_all *all, const char *buffer) {
    for (int i = 0; i < all->n; i++)
        if (!strcmp(all->at[i].buffer, buffer)) return &all->at[i];
    return NULL;
}

/* Does the size say how many blocks there are, and nothing else? */
static bool counts_blocks(const struct flattening *f, const struct dims_of_all *all) {
    for (int i = 0; i < f->kernel->nparams; i++) {
        const struct kernel_param *p = &f->kernel->param[i];
        if (mentions(p->value, f->count) || mentions(p->lo, f->count) ||
            mentions(p->hi, f->count) || mentions(p->step, f->count))
            return false;
    }
    for (int i = 0; i < f->kernel->nitems; i++) {
        const struct kernel_item *x = &f->kernel->item[i];
        if (x->kind == KITEM_AXIS && strcmp(x->axis->name, f->block) &&
            mentions(x->axis->extent, f->count))
            return false;
        if (x->kind != KITEM_BUFFER) continue;
        const struct dims *at = dims_in(all, x->buffer->name);
        for (int d = 0; d < x->buffer->ndims; d++)
            if (at && d == at->block ? !names(x->buffer->extent[d], f->count)
                                     : mentions(x->buffer->extent[d], f->count))
                return false;
    }
    return true;
}

/* ---- where the rows lie ---- */

static int times_named(struct arena *a, const struct node *instr, const char *name) {
    int n = 0;
    for (int i = 0; i < instr->nchildren; i++) {
        const char *at[MAX_DIMS], *flag = node_attr(instr->child[i], "accumulate");
        int strides = split(a, node_attr(instr->child[i], "strides"), at);
        for (int k = 0; k < strides; k++) n += !strcmp(at[k], name);
        n += flag && !strcmp(flag, name);
    }
    return n;
}

/* A name of its own that nothing defines: the schedule chooses the stride. */
static bool is_free(const struct flattening *f, const char *stride) {
    if (!isalpha((unsigned char)*stride) && *stride != '_') return false;
    for (const char *p = stride; *p; p++)
        if (!is_word(*p)) return false;
    for (int i = 0; i < f->params->n; i++)
        if (!strcmp(f->params->at[i].name, stride)) return false;
    return kernel_param_index(f->kernel, stride) < 0 &&
           times_named(f->l->arena, f->node, stride) == 1;
}

static bool fixed(const struct flattening *f, const char *stride, double *out) {
    struct mexpr *e = mexpr_parse(f->l->arena, stride, f->node->file, f->node->line, f->l->diags);
    return e && mexpr_constant(e, out);
}

/* The dimension lies inside of a row or outside of all of them, or the schedule places it. */
static bool keeps_clear(const struct flattening *f, const char *stride, const struct expr *extent,
                        double row) {
    double distance;
    int64_t length;
    if (is_free(f, stride)) return true;
    if (!fixed(f, stride, &distance)) return false;
    return distance >= row * (double)(f->rows * f->blocks) ||
           (expr_integer(extent, f->params, &length) && distance * (double)length <= row);
}

static bool lies_plainly(const struct node *operand) {
    return !operand->nchildren && !node_attr(operand, "layout") && !node_attr(operand, "swizzle");
}

static bool lies_in_rows(const struct flattening *f, const struct node *operand,
                         const struct kernel_buffer *b, const struct dims *at) {
    const char *stride[MAX_DIMS];
    double block, row;
    if (at->block < 0) return true;
    int n = split(f->l->arena, node_attr(operand, "strides"), stride);
    if (n == 0) return at->row == at->block + 1;
    if (n != b->ndims) return false;
    const char *far = stride[at->block], *near = stride[at->row];
    if (!is_free(f, far))
        return fixed(f, far, &block) && fixed(f, near, &row) && block == row * (double)f->rows;
    for (int d = 0; d < n && fixed(f, near, &row); d++)
        if (d != at->block && d != at->row && !keeps_clear(f, stride[d], b->extent[d], row))
            return false;
    return true;
}

/* ---- the new form ---- */

static struct expr *number(struct arena *a, int64_t i) {
    struct expr *e = arena_alloc(a, sizeof *e);
    *e = (struct expr){.kind = EXPR_INT, .i = i};
    return e;
}

static struct expr *name_of(struct arena *a, const char *name) {
    struct expr *e = arena_alloc(a, sizeof *e);
    *e = (struct expr){.kind = EXPR_NAME, .name = name};
    return e;
}

static void drop(struct expr **at, int *n, int which) {
    memmove(&at[which], &at[which + 1], (size_t)(--*n - which) * sizeof *at);
}

static void flatten_reads(const struct flattening *f, struct expr *e,
                          const struct dims_of_all *all) {
    if (!e) return;
    const struct dims *at = e->kind == EXPR_READ ? dims_in(all, e->name) : NULL;
    if (at && at->block >= 0) {
        e->index[at->row] = name_of(f->l->arena, f->flat);
        drop(e->index, &e->nindex, at->block);
    }
    for (int i = 0; i < 3; i++) flatten_reads(f, e->arg[i], all);
}

static void flatten_kernel(struct flattening *f, const struct dims_of_all *all) {
    struct arena *a = f->l->arena;
    struct kernel *k = f->kernel;
    struct kernel_param *p = &k->param[kernel_param_index(k, f->count)];
    int64_t low, step = 1;
    if (p->step) expr_integer(p->step, f->params, &step);
    expr_integer(p->lo, f->params, &low);
    p->name = f->all;
    p->lo = number(a, low * f->rows);
    p->hi = number(a, f->blocks * f->rows);
    p->step = number(a, step * f->rows);
    int kept = 0;
    for (int i = 0; i < k->nitems; i++) {
        struct kernel_item *x = &k->item[i];
        const struct dims *at = x->kind == KITEM_BUFFER ? dims_in(all, x->buffer->name) : NULL;
        if (x->kind == KITEM_AXIS && !strcmp(x->axis->name, f->row)) continue;
        if (x->kind == KITEM_AXIS && !strcmp(x->axis->name, f->block)) {
            x->axis->name = f->flat;
            x->axis->extent = name_of(a, f->all);
        }
        if (at && at->block >= 0) {
            x->buffer->extent[at->row] = name_of(a, f->all);
            drop(x->buffer->extent, &x->buffer->ndims, at->block);
        }
        if (x->kind == KITEM_STMT) flatten_reads(f, x->stmt->dst, all);
        if (x->kind == KITEM_STMT) flatten_reads(f, x->stmt->value, all);
        k->item[kept++] = *x;
    }
    k->nitems = kept;
}

static const struct kernel_buffer *buffer_of(const struct kernel *k, const char *name) {
    for (int i = 0; i < k->nitems; i++)
        if (k->item[i].kind == KITEM_BUFFER && !strcmp(k->item[i].buffer->name, name))
            return k->item[i].buffer;
    return NULL;
}

/* The places are the dimensions of the file: one of them counts blocks, one the rows in a block. */
static void lay_out(struct flattening *f, struct node *operand, const struct dims_of_all *all) {
    const char *buffer = node_attr(operand, "buffer");
    const struct dims *at = dims_in(all, buffer);
    struct text left = {0}, right = {0};
    int flat = at->row - (at->row > at->block), n = buffer_of(f->kernel, buffer)->ndims;
    for (int d = 0; d < n; d++) {
        int i = d == at->block ? flat : d - (d > at->block);
        const char *comma = d ? ", " : "";
        if (d != at->block) text_printf(&left, "%si%d", left.at ? "," : "", i);
        if (d == at->block)
            text_printf(&right, "%si%d/%" PRId64, comma, i, f->rows);
        else if (d == at->row)
            text_printf(&right, "%si%d%%%" PRId64, comma, i, f->rows);
        else
            text_printf(&right, "%si%d", comma, i);
    }
    node_set(f->l, operand, "layout", arena_printf(f->l->arena, "%s -> %s", left.at, right.at));
    text_free(&left);
    text_free(&right);
}

static void flatten_operand(struct flattening *f, struct node *operand, const struct dims *at) {
    struct arena *a = f->l->arena;
    const char *stride[MAX_DIMS];
    struct text rest = {0};
    int n = split(a, node_attr(operand, "strides"), stride);
    if (n == 0 || at->block < 0) return;
    bool chosen = is_free(f, stride[at->block]);
    for (int d = 0; d < n; d++)
        if (d != at->block) text_printf(&rest, "%s%s", rest.at ? ", " : "", stride[d]);
    node_set(f->l, operand, "strides", arena_strdup(a, rest.at));
    text_free(&rest);
    if (chosen)
        replace_in(f->l, f->node, stride[at->block],
                   arena_printf(a, "(%" PRId64 " * (%s))", f->rows, stride[at->row]));
}

/* Where the operand's elements lie once both axes are one; false: nothing says that. */
static bool placed(struct flattening *f, struct node *operand, const struct dims_of_all *all,
                   bool *layout) {
    const struct dims *at = dims_in(all, node_attr(operand, "buffer"));
    const struct kernel_buffer *b = buffer_of(f->kernel, node_attr(operand, "buffer"));
    if (!at || !b || !lies_plainly(operand)) return false;
    *layout = !lies_in_rows(f, operand, b, at);
    return !*layout || f->apart;
}

static bool flatten_pair(struct flattening *f) {
    struct dims_of_all all = {.n = 0};
    const struct node *n = f->node;
    bool *layout = arena_array(f->l->arena, (size_t)n->nchildren + 1, sizeof *layout);
    if (!collect_all(f, &all) || !counts_blocks(f, &all)) return false;
    for (int i = 0; i < n->nchildren; i++)
        if (!strcmp(n->child[i]->tag, "operand") && !placed(f, n->child[i], &all, &layout[i]))
            return false;
    for (int i = 0; i < n->nchildren; i++)
        if (layout[i]) lay_out(f, n->child[i], &all);
    flatten_kernel(f, &all);
    for (int i = 0; i < n->nchildren; i++)
        if (!strcmp(n->child[i]->tag, "operand") && !layout[i])
            flatten_operand(f, n->child[i], dims_in(&all, node_attr(n->child[i], "buffer")));
    replace_in(f->l, f->node, f->count,
               arena_printf(f->l->arena, "(%s / %" PRId64 ")", f->all, f->rows));
    return true;
}

/* ---- which axes ---- */

static bool is_name(const struct kernel *k, const char *name) {
    for (int i = 0; i < k->nitems; i++) {
        const struct kernel_item *x = &k->item[i];
        if (x->kind == KITEM_BUFFER && !strcmp(x->buffer->name, name)) return true;
        if (x->kind == KITEM_AXIS && !strcmp(x->axis->name, name)) return true;
    }
    return kernel_param_index(k, name) >= 0;
}

/* Axis `block` has a size of its own, `row` a constant length. */
static bool may_pair(struct flattening *f, const struct kernel_axis *block,
                     const struct kernel_axis *row) {
    if (block->sequential || row->sequential || block->extent->kind != EXPR_NAME) return false;
    int p = kernel_param_index(f->kernel, block->extent->name);
    const struct kernel_param *size = p < 0 ? NULL : &f->kernel->param[p];
    int64_t low, step;
    if (!size || size->value || !size->lo || !expr_integer(size->lo, f->params, &low) ||
        !expr_integer(size->hi, f->params, &f->blocks) ||
        (size->step && !expr_integer(size->step, f->params, &step)) ||
        !expr_integer(row->extent, f->params, &f->rows) || f->rows < 2)
        return false;
    f->count = size->name;
    f->block = block->name;
    f->row = row->name;
    f->flat = arena_printf(f->l->arena, "%s_%s", block->name, row->name);
    f->all = arena_printf(f->l->arena, "%s_all", f->flat);
    return f->blocks <= INT32_MAX / f->rows && !is_name(f->kernel, f->flat) &&
           !is_name(f->kernel, f->all);
}

static bool flatten_once(struct flattening *f) {
    const struct kernel *k = f->kernel;
    for (int i = 0; i < k->nitems; i++)
        for (int j = 0; j < k->nitems; j++)
            if (i != j && k->item[i].kind == KITEM_AXIS && k->item[j].kind == KITEM_AXIS &&
                may_pair(f, k->item[i].axis, k->item[j].axis) && flatten_pair(f))
                return true;
    return false;
}

static bool flatten_all(struct flattening *f, bool apart) {
    bool any = false;
    f->apart = apart;
    while (flatten_once(f)) any = true;
    return any;
}

/* ---- instructions ---- */

static struct node *copy_node(struct loader *l, const struct node *n) {
    struct node *copy = node_new(l, n->tag, n->file, n->line, n->depth);
    copy->text = n->text;
    copy->text_line = n->text_line;
    copy->text_col = n->text_col;
    for (int i = 0; i < n->nattrs; i++) node_set(l, copy, n->attr[i].name, n->attr[i].value);
    for (int i = 0; i < n->nchildren; i++) node_add(l, copy, copy_node(l, n->child[i]));
    return copy;
}

static struct node *child_of(const struct node *n, const char *tag) {
    for (int i = 0; i < n->nchildren; i++)
        if (!strcmp(n->child[i]->tag, tag)) return n->child[i];
    return NULL;
}

/* Texts have the sizes and strides of the file as arguments, and loops walk what it says. */
static bool speaks_of_sizes(const struct node *n) {
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        if (!strcmp(c->tag, "loop")) return true;
        if (!strcmp(c->tag, "emit") && strcmp(node_attr(c, "as"), "bits")) return true;
    }
    return false;
}

/* NULL: it has no axes of blocks, or with `apart` none whose operands need layouts. */
static struct node *flattened(struct loader *l, const struct node *n, bool apart,
                              const struct bindings *params) {
    struct flattening f = {.l = l, .params = params, .node = copy_node(l, n)};
    struct node *s = child_of(f.node, "semantics");
    struct kernel **kernel;
    struct text text = {0};
    struct source *source = arena_alloc(l->arena, sizeof *source);
    *source = (struct source){s->file, s->text, strlen(s->text), s->text_line, s->text_col};
    if (speaks_of_sizes(n) || kernel_parse(l->arena, source, &kernel, l->diags) != 1) return NULL;
    f.kernel = kernel[0];
    bool any = flatten_all(&f, false);
    if (apart) any = flatten_all(&f, true);
    if (!any) return NULL;
    kernel_print(f.kernel, &text);
    s->text = arena_strdup(l->arena, text.at);
    text_free(&text);
    return f.node;
}

static bool has_id(const struct node *n, const char *id) {
    for (int i = 0; i < n->nchildren; i++) {
        const char *own = node_key(n->child[i]);
        if ((own && !strcmp(own, id)) || has_id(n->child[i], id)) return true;
    }
    return false;
}

void tree_flatten(struct loader *l, struct node *root, struct node *n,
                  const struct bindings *params) {
    static const char *const form[] = {"flat", "blocks"};
    int before = n->nchildren;
    for (int i = 0; i < before; i++) {
        struct node *c = n->child[i];
        if (!strcmp(c->tag, "unit")) tree_flatten(l, root, c, params);
        if (strcmp(c->tag, "instruction")) continue;
        for (int apart = 0; apart < 2; apart++) {
            const char *id = arena_printf(l->arena, "%s.%s", node_attr(c, "id"), form[apart]);
            struct node *other = has_id(root, id) ? NULL : flattened(l, c, apart, params);
            if (!other) continue;
            node_set(l, other, "id", id);
            node_add(l, n, other);
        }
    }
}
