#include "sim/sim_int.h"

#include "ir/interp.h"

#include <stdlib.h>
#include <string.h>

/* ---- names in cost and stride expressions: parameters, sizes, stride names ---- */
struct names {
    const struct machine *machine;
    const struct instr *instr;
    const int64_t *size, *stride;
};

static bool name_value(void *user, const char *name, const char *field, double *out) {
    const struct names *n = user;
    if (field) return false;
    for (int i = 0; i < n->instr->nranged; i++)
        if (strcmp(name, n->instr->semantics->param[n->instr->ranged[i]].name) == 0)
            return *out = (double)n->size[i], true;
    for (int i = 0; i < n->instr->nstride_names; i++)
        if (strcmp(name, n->instr->stride_name[i]) == 0) return *out = (double)n->stride[i], true;
    for (int i = 0; i < n->machine->nparams; i++)
        if (strcmp(name, n->machine->param[i].name) == 0)
            return *out = (double)n->machine->param[i].value, true;
    return false;
}

/* A parameter of the semantics with a value of its own (W=T) is visible too. */
static bool name_or_fixed(void *user, const char *name, const char *field, double *out) {
    const struct names *n = user;
    if (name_value(user, name, field, out)) return true;
    int p = field ? -1 : kernel_param_index(n->instr->semantics, name);
    int64_t v;
    if (p < 0 || !n->instr->semantics->param[p].value) return false;
    if (!expr_integer(n->instr->semantics->param[p].value, &n->machine->params, &v)) return false;
    return *out = (double)v, true;
}

static double evaluate(const struct names *n, const struct mexpr *x) {
    struct mexpr_env env = {.name = name_or_fixed, .user = (void *)(uintptr_t)n};
    double v = 0;
    return mexpr_eval(x, &env, &v, NULL) ? v : 0;
}

/* ---- shapes ---- */

static int operand_buffer(const struct program *p, const struct operand *o) {
    return program_buffer(p, o->buffer);
}

static void shape_clear(struct shape *s) {
    for (int o = 0; o < SIM_OPERANDS; o++) {
        free(s->offset[o]);
        free(s->data[o]);
    }
    free(s->by_buffer);
    if (s->program) program_free(s->program);
    memset(s, 0, sizeof *s);
}

/* Element offsets of an operand in its memory, in row-major order of its indices; NULL where that
 * is 0, 1, 2… */
static int64_t *operand_offsets(const struct operand_layout *l, const struct buffer *b,
                                const struct names *n) {
    int64_t stride[MAX_DIMS], index[MAX_DIMS] = {0};
    for (int i = 0; i < l->nstrides; i++) stride[i] = (int64_t)evaluate(n, l->stride[i]);
    int64_t *offset = malloc((size_t)b->elements * sizeof *offset + 1);
    bool dense = true;
    for (int64_t e = 0; e < b->elements; e++) {
        offset[e] = layout_offset(l->map, b->ndims, b->extent, l->nstrides ? stride : NULL, index);
        dense = dense && offset[e] == e;
        for (int d = b->ndims - 1; d >= 0 && ++index[d] == b->extent[d]; d--) index[d] = 0;
    }
    if (!dense) return offset;
    free(offset);
    return NULL;
}

static bool same_shape(const struct shape *s, const struct instr *in, const struct issue_node *i,
                       const struct executed *x) {
    if (!s->valid) return false;
    for (int k = 0; k < in->nranged; k++)
        if (s->size[k] != x->size[k]) return false;
    for (int k = 0; k < in->nstride_names; k++)
        if (s->stride[k] != x->stride[k]) return false;
    for (int o = 0; o < in->noperands; o++)
        if (s->alternative[o] != i->arg[o].layout) return false;
    return true;
}

const struct shape *shape_of(struct engine *e, const struct issue_node *i,
                             const struct executed *x) {
    const struct instr *in = &e->machine->instr[i->instr];
    struct shape *s = &e->shape[i->instr];
    if (same_shape(s, in, i, x)) return s;
    shape_clear(s);
    s->program = instr_bind(e->machine, in, x->size, e->diags);
    if (!s->program) return NULL;
    memcpy(s->size, x->size, sizeof s->size);
    memcpy(s->stride, x->stride, sizeof s->stride);
    struct names n = {e->machine, in, x->size, x->stride};
    s->by_buffer = calloc((size_t)s->program->nbuffers + 1, sizeof *s->by_buffer);
    for (int o = 0; o < in->noperands; o++) {
        s->alternative[o] = i->arg[o].layout;
        int buffer = operand_buffer(s->program, &in->operand[o]);
        const struct buffer *b = &s->program->buffer[buffer];
        s->elements[o] = b->elements;
        s->offset[o] = i->arg[o].place < 0
                           ? NULL
                           : operand_offsets(&in->operand[o].layout[i->arg[o].layout], b, &n);
        s->span[o] = 0;
        for (int64_t k = 0; k < b->elements; k++) {
            int64_t at = s->offset[o] ? s->offset[o][k] : k;
            if (at + 1 > s->span[o]) s->span[o] = at + 1;
        }
        s->data[o] = calloc((size_t)b->elements + 1, type_size(b->type));
        s->by_buffer[buffer] = s->data[o];
    }
    s->latency = evaluate(&n, in->latency);
    s->interval = evaluate(&n, in->interval);
    s->overhead = evaluate(&n, in->overhead);
    s->energy = evaluate(&n, in->energy);
    s->valid = true;
    return s;
}

/* ---- execution ---- */

static uint8_t *operand_memory(struct engine *e, const struct executed *x, int o,
                               const struct shape *s, size_t size) {
    const struct arg *a = &x->node->issue->arg[o];
    const struct place *p = &e->schedule->place[a->place];
    struct image *image = image_of(e, p->memory, x->instance);
    int64_t end = x->address[o] + s->span[o] * (int64_t)size;
    if (x->address[o] < 0 || end > image->bytes) {
        engine_error(e, x->node, "operand '%s' reaches beyond place '%s'",
                     e->machine->instr[x->node->issue->instr].operand[o].buffer, p->name);
        return NULL;
    }
    return image->byte + x->address[o];
}

static void copy_elements(const struct shape *s, int o, uint8_t *memory, size_t size, bool out) {
    if (!s->offset[o]) {
        if (out)
            memcpy(memory, s->data[o], (size_t)s->elements[o] * size);
        else
            memcpy(s->data[o], memory, (size_t)s->elements[o] * size);
        return;
    }
    for (int64_t k = 0; k < s->elements[o]; k++) {
        uint8_t *at = memory + (size_t)s->offset[o][k] * size,
                *mine = s->data[o] + (size_t)k * size;
        if (out)
            memcpy(at, mine, size);
        else
            memcpy(mine, at, size);
    }
}

/* The combiner that writes a buffer of the semantics; what it starts from when the instruction
 * overwrites. */
static enum combiner written_by(const struct program *p, int buffer) {
    for (int s = 0; s < p->nstmts; s++)
        if (p->stmt[s].dst.buffer == buffer && p->stmt[s].combine != COMBINE_SET)
            return p->stmt[s].combine;
    return COMBINE_SET;
}

static void start_neutral(const struct shape *s, int o, int buffer) {
    const struct buffer *b = &s->program->buffer[buffer];
    enum combiner c = written_by(s->program, buffer);
    union value v = {.i = 0};
    if (c != COMBINE_SET) v = combiner_neutral(c, b->type);
    for (int64_t k = 0; k < b->elements; k++)
        type_store(b->type, s->data[o] + (size_t)k * type_size(b->type), v);
}

bool issue_execute(struct engine *e, const struct executed *x) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    const struct shape *s = shape_of(e, i, x);
    if (!s) return false;
    for (int o = 0, flag = 0; o < in->noperands; o++) {
        int buffer = operand_buffer(s->program, &in->operand[o]);
        enum type t = s->program->buffer[buffer].type;
        bool overwrite = in->operand[o].accumulate && x->flag[flag++] == 0;
        if (i->arg[o].place < 0) {
            for (int64_t k = 0; k < s->elements[o]; k++)
                type_store(t, s->data[o] + (size_t)k * type_size(t), i->arg[o].imm);
            continue;
        }
        uint8_t *memory = operand_memory(e, x, o, s, type_size(t));
        if (!memory) return false;
        if (overwrite)
            start_neutral(s, o, buffer);
        else if (in->operand[o].role != ROLE_OUT)
            copy_elements(s, o, memory, type_size(t), false);
    }
    if (!program_run(s->program, s->by_buffer, NULL, NULL, e->diags)) return false;
    for (int o = 0; o < in->noperands; o++) {
        if (in->operand[o].role == ROLE_IN) continue;
        size_t size = type_size(in->operand[o].type);
        uint8_t *memory = operand_memory(e, x, o, s, size);
        if (!memory) return false;
        copy_elements(s, o, memory, size, true);
    }
    return true;
}

/* The statement over the box alone: axes become lo + a, so accesses get their constants moved. */
static struct program *boxed(const struct program *p, int stmt, const int64_t *lo,
                             const int64_t *hi) {
    struct program *q = program_copy(p);
    struct stmt *s = &q->stmt[stmt];
    int n = q->naxes + 1;
    for (int a = 0; a < q->naxes; a++) {
        if (!(s->axes >> a & 1) || lo[a] == 0) continue;
        for (int r = -1; r < s->nreads; r++) {
            struct access *x = r < 0 ? &s->dst : &s->read[r];
            for (int d = 0; d < q->buffer[x->buffer].ndims; d++)
                x->coef[d * n + n - 1] += x->coef[d * n + a] * lo[a];
        }
        for (int w = 0; w < s->nwhere; w++) s->where[w].coef[n - 1] += s->where[w].coef[a] * lo[a];
    }
    for (int a = 0; a < q->naxes; a++)
        if (s->axes >> a & 1) q->axis[a].extent = hi[a] - lo[a];
    return q;
}

bool fallback_execute(struct engine *e, const struct executed *x) {
    const struct program *p = e->schedule->program;
    int stmt = x->node->fallback->stmt;
    const struct stmt *s = &p->stmt[stmt];
    bool whole = true;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1)) continue;
        if (x->hi[a] <= x->lo[a]) return true;
        whole = whole && x->lo[a] == 0 && x->hi[a] == p->axis[a].extent;
    }
    for (int o = 0; o < s->nops && !whole; o++)
        if (s->op[o].code == OP_AXIS)
            return engine_error(e, x->node,
                                "a statement that uses an axis as a value is simulated whole only");
    struct program *q = whole ? NULL : boxed(p, stmt, x->lo, x->hi);
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    for (int r = -1; r < s->nreads; r++) {
        int b = r < 0 ? s->dst.buffer : s->read[r].buffer;
        if (data[b]) continue;
        data[b] = malloc((size_t)p->buffer[b].elements * type_size(p->buffer[b].type) + 1);
        home_gather(e, b, data[b]);
    }
    stmt_run(q ? q : p, q ? &q->stmt[stmt] : s, data);
    home_scatter(e, s->dst.buffer, data[s->dst.buffer]);
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
    if (q) program_free(q);
    return true;
}
