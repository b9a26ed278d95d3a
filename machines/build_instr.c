#include "machines/build.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

static bool spelled_name(const char *text) {
    if (!isalpha((unsigned char)*text) && *text != '_') return false;
    while (isalnum((unsigned char)*text) || *text == '_') text++;
    return !*text;
}

/* ---- semantics ---- */

static const struct node *child_of(const struct node *n, const char *tag) {
    for (int i = 0; i < n->nchildren; i++)
        if (!strcmp(n->child[i]->tag, tag)) return n->child[i];
    return NULL;
}

static const struct kernel *build_semantics(struct build *b, const struct node *n) {
    const struct node *s = child_of(n, "semantics");
    struct source *source = arena_alloc(b->arena, sizeof *source);
    struct kernel **kernel;
    *source = (struct source){s->file, s->text, strlen(s->text), s->text_line, s->text_col};
    int before = b->diags->errors, count = kernel_parse(b->arena, source, &kernel, b->diags);
    if (count == 1) return kernel[0];
    if (b->diags->errors == before)
        diag_line(b->diags, s->file, s->text_line, s->text_col,
                  "%d kernels in the semantics of '%s', expected exactly one",
                  count < 0 ? 0 : count, node_attr(n, "id"));
    return NULL;
}

static bool is_operand_role(enum role r) {
    return r == ROLE_IN || r == ROLE_OUT || r == ROLE_INOUT || r == ROLE_CONST;
}

const struct kernel_buffer *instr_buffer(const struct instr *x, int operand) {
    int n = 0;
    for (int i = 0; i < x->semantics->nitems; i++) {
        if (x->semantics->item[i].kind != KITEM_BUFFER) continue;
        if (n++ == x->operand[operand].kernel_buffer) return x->semantics->item[i].buffer;
    }
    assert(!"operand of a buffer that the kernel does not declare");
    return NULL;
}

static void find_ranged(struct build *b, struct instr *x) {
    const struct kernel *k = x->semantics;
    x->ranged = arena_array(b->arena, (size_t)k->nparams, sizeof *x->ranged);
    for (int i = 0; i < k->nparams; i++)
        if (!k->param[i].value) x->ranged[x->nranged++] = i;
}

/* ---- operands ---- */

static void default_memories(struct operand *o, const struct instr *x) {
    bool reads = o->role == ROLE_IN || o->role == ROLE_CONST;
    if (!x->is_move) return;
    o->memory = reads ? x->from : x->to;
    o->nmemories = reads ? x->nfrom : x->nto;
}

static void build_let(struct build *b, const struct node *n, struct operand_layout *l) {
    const char *let = node_attr(n, "let"), *equals = let ? strchr(let, '=') : NULL;
    struct attr a = {"let", equals ? equals + 1 : NULL, node_attr_line(n, "let")};
    struct node value = {.tag = n->tag, .file = n->file, .line = n->line, .attr = &a, .nattrs = 1};
    if (!let) return;
    char *name = arena_strndup(b->arena, let, equals ? (size_t)(equals - let) : 0);
    while (*name && isspace((unsigned char)*name)) name++;
    for (size_t k = strlen(name); k && isspace((unsigned char)name[k - 1]);) name[--k] = 0;
    if (!spelled_name(name)) {
        diag_line(b->diags, n->file, a.line, 0, "let '%s', expected NAME=NUMBER", let);
        return;
    }
    l->let_name = name;
    l->let_value = build_int(b, &value, "let", 0, INT32_MIN);
}

static void build_layout(struct build *b, const struct node *n, const char *map,
                         struct operand_layout *l) {
    l->at = (struct place_in_file){n->file, n->line};
    l->map_text = node_attr(n, map);
    l->swizzle = node_attr(n, "swizzle");
    l->stride = build_list(b, n, "strides", &l->nstrides);
    if (l->map_text)
        l->map = layout_parse_with(b->arena, l->map_text, &b->m->params, n->file,
                                   node_attr_line(n, map), b->diags);
}

static void build_layouts(struct build *b, const struct node *n, struct operand *o) {
    o->layout = arena_array(b->arena, (size_t)n->nchildren + 1, sizeof *o->layout);
    for (int i = 0; i < n->nchildren; i++) {
        struct operand_layout *l = &o->layout[o->nlayouts++];
        build_layout(b, n->child[i], "map", l);
        build_let(b, n->child[i], l);
        if (!l->swizzle) l->swizzle = node_attr(n, "swizzle");
    }
    if (o->nlayouts && (node_attr(n, "layout") || node_attr(n, "strides")))
        diag_line(
            b->diags, n->file, n->line, 0,
            "operand '%s' has a layout both as attributes and as children, expected one of them",
            o->buffer);
    if (!o->nlayouts) build_layout(b, n, "layout", &o->layout[o->nlayouts++]);
}

/* The size that says how far ahead a move asks for what it will read. */
static void build_ahead(struct build *b, const struct instr *x, struct operand *o,
                        const struct node *n) {
    const char *name = node_attr(n, "ahead");
    bool cached = false;
    for (int i = 0; name && i < x->nranged; i++)
        if (!strcmp(x->semantics->param[x->ranged[i]].name, name)) o->ahead = i;
    for (int k = 0; k < o->nmemories; k++)
        cached |= o->memory[k] >= 0 && b->m->memory[o->memory[k]].caches >= 0;
    if (name && o->ahead < 0)
        diag_line(
            b->diags, n->file, node_attr_line(n, "ahead"), 0,
            "ahead '%s' of operand '%s' is no size that the schedule chooses, expected one of "
            "those of '%s'",
            name, o->buffer, x->id);
    if (name && (!x->is_move || o->role != ROLE_IN || !cached))
        diag_line(b->diags, n->file, node_attr_line(n, "ahead"), 0,
                  "ahead on operand '%s' of '%s', expected what a move reads from a cache",
                  o->buffer, x->id);
}

static void build_operand(struct build *b, struct instr *x, struct operand *o,
                          const struct kernel_buffer *k, int number, const struct node *n) {
    *o = (struct operand){.buffer = k->name,
                          .kernel_buffer = number,
                          .also = -1,
                          .ahead = -1,
                          .role = k->role,
                          .type = k->type,
                          .at = {n->file, n->line}};
    default_memories(o, x);
    if (node_attr(n, "memory"))
        o->memory = build_refs(b, n, "memory", KIND_MEMORY, &o->nmemories, true);
    if (!o->nmemories && !node_attr(n, "memory"))
        diag_line(b->diags, n->file, n->line, 0,
                  "operand '%s' of '%s' is in no memory, expected memory=\"…\"", o->buffer, x->id);
    build_layouts(b, n, o);
    o->align = build_expr(b, n, "align", NULL);
    o->accumulate = node_attr(n, "accumulate");
    o->also = build_ref(b, n, "also", KIND_MEMORY);
    build_ahead(b, x, o, n);
    o->has_pass = build_pass(n, &o->pass);
    if (o->accumulate && o->role != ROLE_INOUT)
        diag_line(b->diags, n->file, n->line, 0,
                  "accumulate on operand '%s' of '%s', which is '%s', expected an inout buffer",
                  o->buffer, x->id, role_name[o->role]);
    for (int i = 0; i < o->nmemories; i++)
        if (o->memory[i] == MEMORY_IMM && (o->role == ROLE_OUT || o->role == ROLE_INOUT))
            diag_line(b->diags, n->file, n->line, 0,
                      "operand '%s' of '%s' writes to imm, expected a memory", o->buffer, x->id);
}

static const struct node *operand_node(struct build *b, const struct node *n, const char *buffer) {
    const struct node *found = NULL;
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        if (strcmp(c->tag, "operand") || strcmp(node_attr(c, "buffer"), buffer)) continue;
        if (found)
            diag_line(b->diags, c->file, c->line, 0,
                      "a second operand for buffer '%s' of '%s', expected one", buffer,
                      node_attr(n, "id"));
        found = c;
    }
    return found;
}

static void check_operand_names(struct build *b, const struct instr *x, const struct node *n) {
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        bool found = false;
        if (strcmp(c->tag, "operand")) continue;
        for (int k = 0; k < x->noperands; k++)
            found = found || !strcmp(x->operand[k].buffer, node_attr(c, "buffer"));
        if (!found)
            diag_line(b->diags, c->file, c->line, 0,
                      "operand '%s' of '%s' is no buffer of its semantics, expected in, out, inout "
                      "or const '%s'",
                      node_attr(c, "buffer"), x->id, node_attr(c, "buffer"));
    }
}

static void build_operands(struct build *b, struct instr *x, const struct node *n) {
    const struct kernel *k = x->semantics;
    int number = 0;
    x->operand = arena_array(b->arena, (size_t)k->nitems, sizeof *x->operand);
    for (int i = 0; i < k->nitems; i++) {
        if (k->item[i].kind != KITEM_BUFFER) continue;
        const struct kernel_buffer *buffer = k->item[i].buffer;
        int at = number++;
        if (!is_operand_role(buffer->role)) continue;
        const struct node *o = operand_node(b, n, buffer->name);
        if (o)
            build_operand(b, x, &x->operand[x->noperands++], buffer, at, o);
        else
            diag_at(b->diags, k->source, buffer->at,
                    "buffer '%s' of '%s' has no operand, expected <operand buffer=\"%s\" …/>",
                    buffer->name, x->id, buffer->name);
    }
    check_operand_names(b, x, n);
}

/* ---- names of strides ---- */

bool instr_is_flag(const struct instr *x, const char *name) {
    for (int i = 0; i < x->noperands; i++) {
        const struct operand *o = &x->operand[i];
        if (o->accumulate && !strcmp(o->accumulate, name)) return true;
        for (int k = 0; k < o->nlayouts; k++)
            if (o->layout[k].let_name && !strcmp(o->layout[k].let_name, name)) return true;
    }
    return false;
}

static bool is_defined(const struct build *b, const struct instr *x, const char *name) {
    return kernel_param_index(x->semantics, name) >= 0 || build_find(b, KIND_PARAM, name) >= 0 ||
           instr_is_flag(x, name);
}

static void find_stride_names(struct build *b, struct instr *x) {
    int cap = 0;
    for (int i = 0; i < x->noperands; i++)
        for (int k = 0; k < x->operand[i].nlayouts; k++)
            for (int s = 0; s < x->operand[i].layout[k].nstrides; s++) {
                const struct mexpr *e = x->operand[i].layout[k].stride[s];
                bool known = e->kind != MEXPR_NAME || is_defined(b, x, e->name);
                for (int j = 0; j < x->nstride_names && !known; j++)
                    known = !strcmp(x->stride_name[j], e->name);
                if (known) continue;
                GROW(b->arena, x->stride_name, x->nstride_names, cap);
                x->stride_name[x->nstride_names++] = e->name;
            }
}

/* ---- require, need, loop ---- */

static void build_loop(struct build *b, struct hwloop *l, const struct node *n) {
    const struct node *entry = child_of(n, "entry");
    *l = (struct hwloop){.id = node_attr(n, "id"),
                         .max = build_int(b, n, "max", 1, 1),
                         .table = build_ref(b, n, "table", KIND_MEMORY),
                         .at = {n->file, n->line}};
    if (entry) {
        l->entry_bits = build_expr(b, entry, "bits", NULL);
        l->entry = build_fields(b, entry, &l->nentries);
    }
    if ((l->table >= 0) != (entry != NULL) && (l->table >= 0) == (node_attr(n, "table") != NULL))
        diag_line(b->diags, n->file, n->line, 0,
                  "loop '%s' has %s, expected both table and entry or neither", l->id,
                  entry ? "an entry but no table" : "a table but no entry");
}

static void add_rule(struct instr *x, struct mexpr *rule) {
    struct mexpr *every;
    int operand;
    bool words;
    x->require[x->nrequires++] = rule;
    if (!require_every(x, rule, &operand, &every, &words)) return;
    x->operand[operand].every = every;
    x->operand[operand].words = words;
}

static void build_details(struct build *b, struct instr *x, const struct node *n) {
    size_t most = (size_t)n->nchildren;
    x->require = arena_array(b->arena, most, sizeof *x->require);
    x->need = arena_array(b->arena, most, sizeof *x->need);
    x->loop = arena_array(b->arena, most, sizeof *x->loop);
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        if (!strcmp(c->tag, "require")) {
            struct mexpr *e = build_expr(b, c, "test", NULL);
            if (e) add_rule(x, e);
        } else if (!strcmp(c->tag, "need")) {
            struct need *d = &x->need[x->nneeds];
            d->state = build_ref(b, c, "state", KIND_STATE);
            d->of = node_attr(c, "of");
            d->value = build_list(b, c, "value", &d->nvalues);
            if (d->state >= 0 && d->value) x->nneeds++;
        } else if (!strcmp(c->tag, "loop")) {
            build_loop(b, &x->loop[x->nloops++], c);
        }
    }
}

static bool is_operand(const struct expr *e) {
    return e->kind == EXPR_READ || e->kind == EXPR_FLOAT || e->kind == EXPR_INT;
}

/* One operation on floats, which is set: what its results may differ by has a meaning. */
static bool one_operation(const struct kernel *k, enum opcode *op) {
    const struct kernel_stmt *only = NULL;
    bool floats = true, one = true;
    for (int i = 0; i < k->nitems; i++) {
        const struct kernel_item *x = &k->item[i];
        if (x->kind == KITEM_BUFFER) floats &= type_is_float(x->buffer->type);
        if (x->kind == KITEM_STMT && !only)
            only = x->stmt;
        else
            one &= x->kind == KITEM_BUFFER || x->kind == KITEM_AXIS;
    }
    if (!only || !one || !floats || only->combine != COMBINE_SET || only->value->kind != EXPR_OP)
        return false;
    *op = only->value->op;
    for (int a = 0; a < op_info[*op].arity; a++) one &= is_operand(only->value->arg[a]);
    return one && op_info[*op].units > 0;
}

static void build_units(struct build *b, struct instr *x, const struct node *n) {
    x->units = node_attr(n, "units") ? (int)build_int(b, n, "units", 0, 1) : 0;
    if (x->units == 0) return;
    if (!one_operation(x->semantics, &x->rounded))
        diag_line(b->diags, n->file, node_attr_line(n, "units"), 0,
                  "'units' of '%s' says how far results of one operation may be off, expected "
                  "semantics of one such operation on floats, which is set",
                  x->id);
    else if (x->units > 255 || x->units <= op_info[x->rounded].units)
        diag_line(b->diags, n->file, node_attr_line(n, "units"), 0,
                  "'units' of '%s' is %d, expected more than the %d that every '%s' may be off, "
                  "and at most 255",
                  x->id, x->units, op_info[x->rounded].units, op_info[x->rounded].spelling);
}

static void build_instr(struct build *b, struct instr *x, const struct found *f) {
    const struct node *n = f->node;
    const struct node *doc = child_of(n, "doc");
    *x = (struct instr){.id = f->id,
                        .unit = f->unit,
                        .across = -1,
                        .is_move = !strcmp(n->tag, "move"),
                        .doc = doc ? doc->text : NULL,
                        .at = {n->file, n->line}};
    x->queue = build_ref(b, n, "queue", KIND_QUEUE);
    x->bus = build_ref(b, n, "bus", KIND_BUS);
    x->completes = build_ref(b, n, "completes", KIND_SYNC);
    const char *blocking = node_attr(n, "blocking");
    x->blocking = blocking && (*blocking == 't' || *blocking == '1');
    const char *subnormals = node_attr(n, "subnormals");
    x->zeroes_subnormals = subnormals && !strcmp(subnormals, "zero");
    x->crossing = build_number(b, n, "crossing", -1);
    x->needs_features = build_features(b, n, "needs");
    x->from = build_refs(b, n, "from", KIND_MEMORY, &x->nfrom, false);
    x->to = build_refs(b, n, "to", KIND_MEMORY, &x->nto, false);
    x->move_types = build_types(b, n);
    x->across = build_ref(b, n, "across", KIND_UNIT);
    x->latency = build_expr(b, n, "latency", "1");
    x->interval = build_expr(b, n, "interval", "1");
    x->overhead = build_expr(b, n, "overhead", "0");
    x->energy = build_expr(b, n, "energy", "0");
    x->semantics = build_semantics(b, n);
    if (!x->semantics) return;
    build_units(b, x, n);
    x->scratch = build_int(b, n, "scratch", 0, 0);
    find_ranged(b, x);
    build_operands(b, x, n);
    find_stride_names(b, x);
    build_details(b, x, n);
    x->emit = build_emits(b, n, &x->nemits);
    const struct node *ahead = child_of(n, "ahead");
    if (ahead) x->ahead = build_emits(b, ahead, &x->naheads);
}

/* But for the name of the elements themselves. */
static bool same_node(const struct node *a, const struct node *b, bool named) {
    if (strcmp(a->tag, b->tag) != 0 || a->nattrs != b->nattrs || a->nchildren != b->nchildren ||
        (a->text == NULL) != (b->text == NULL) || (a->text && strcmp(a->text, b->text) != 0))
        return false;
    for (int i = 0; i < a->nattrs; i++)
        if (strcmp(a->attr[i].name, b->attr[i].name) != 0 ||
            (strcmp(a->attr[i].value, b->attr[i].value) != 0 &&
             !(named && strcmp(a->attr[i].name, "id") == 0)))
            return false;
    for (int i = 0; i < a->nchildren; i++)
        if (!same_node(a->child[i], b->child[i], false)) return false;
    return true;
}

static bool is_repeated(const struct build *b, int at) {
    const struct instr *in = b->m->instr;
    for (int i = 0; i < at; i++)
        if (!in[at].is_move && in[i].unit == in[at].unit && in[i].queue == in[at].queue &&
            same_node(b->found[KIND_INSTR][i].node, b->found[KIND_INSTR][at].node, true))
            return true;
    return false;
}

void build_instrs(struct build *b) {
    struct machine *m = b->m;
    m->instr = arena_array(b->arena, (size_t)b->n[KIND_INSTR], sizeof *m->instr);
    m->ninstrs = b->n[KIND_INSTR];
    for (int i = 0; i < m->ninstrs; i++) {
        build_instr(b, &m->instr[i], &b->found[KIND_INSTR][i]);
        m->instr[i].repeated = is_repeated(b, i);
    }
}
