#include "sim/sim_int.h"

#include "ir/interp.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* In iteration t of the hardware loops around. */
struct operand_at {
    int memory;
    int64_t address;
    size_t size;
};

/* Where an element is; NULL: no room for that instance. */
static uint8_t *element_at(struct engine *e, const struct operand_at *o, const struct reach *r,
                           int64_t k) {
    struct image *image = image_at(e, o->memory, r->instance ? r->instance[k] : 0);
    int64_t offset = (r->offset ? r->offset[k] : k) * (int64_t)o->size;
    return image ? image->byte + swizzle_address(r->swizzle, o->address + offset) : NULL;
}

static bool copy_scattered(struct engine *e, const struct operand_at *o, const struct reach *r,
                           bool out) {
    for (int64_t k = 0; k < r->elements; k++) {
        uint8_t *at = element_at(e, o, r, k), *mine = r->data + (size_t)k * o->size;
        if (!at) return false;
        if (out)
            memcpy(at, mine, o->size);
        else
            memcpy(mine, at, o->size);
    }
    return true;
}

static bool copy_elements(struct engine *e, const struct operand_at *o, const struct reach *r,
                          bool out) {
    if (r->instance || r->swizzle.bits) return copy_scattered(e, o, r, out);
    struct image *image = image_of(e, o->memory);
    if (!image) return false;
    uint8_t *memory = image->byte + o->address;
    size_t size = o->size;
    if (!r->offset) { /* behind the last that is touched the memory may end */
        size_t n = r->hi < r->lo ? 0 : (size_t)(r->hi - r->lo + 1) * size;
        uint8_t *at = memory + r->lo * (int64_t)size, *mine = r->data + r->lo * (int64_t)size;
        memcpy(out ? at : mine, out ? mine : at, n);
        return true;
    }
    for (int64_t k = 0; k < r->elements; k++) {
        int64_t offset = r->offset[k];
        if (offset < r->lo || offset > r->hi) continue; /* nobody touches it */
        uint8_t *at = memory + offset * (int64_t)size, *mine = r->data + (size_t)k * size;
        if (out)
            memcpy(at, mine, size);
        else
            memcpy(mine, at, size);
    }
    return true;
}

/* In iteration t of the hardware loops around. */
static struct operand_at operand_at(const struct engine *e, const struct executed *x, int o,
                                    int64_t t) {
    const struct issue_node *i = x->node->issue;
    int64_t at = x->address[o];
    if (x->entries) {
        at += x->entries->move[t % x->entries->n * x->entries->noperands + o];
        t /= x->entries->n;
    }
    for (int k = x->nloops - 1; k >= 0; k--) {
        at += t % x->trips[k] * x->move[k][o];
        t /= x->trips[k];
    }
    return (struct operand_at){e->schedule->place[i->arg[o].place].memory, at,
                               type_size(e->machine->instr[i->instr].operand[o].type)};
}

/* The combiner that writes a buffer of the semantics; what it starts from when the instruction
 * overwrites. */
static enum combiner written_by(const struct program *p, int buffer) {
    for (int s = 0; s < p->nstmts; s++)
        if (p->stmt[s].dst.buffer == buffer && p->stmt[s].combine != COMBINE_SET)
            return p->stmt[s].combine;
    return COMBINE_SET;
}

static void fill(const struct reach *r, enum type t, union value v) {
    for (int64_t k = 0; k < r->elements; k++) type_store(t, r->data + (size_t)k * type_size(t), v);
}

static void start_neutral(const struct shape *s, const struct reach *r, enum type t) {
    enum combiner c = written_by(s->program, r->buffer);
    fill(r, t, c != COMBINE_SET ? combiner_neutral(c, t) : (union value){.i = 0});
}

/* Copies of operands that remain in a unit. */
static bool remains_store(struct engine *e, const struct executed *x, const struct shape *s) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    for (int o = 0; o < in->noperands; o++) {
        int also = in->operand[o].also;
        const struct reach *r = &s->reach[o];
        int64_t size = (int64_t)type_size(in->operand[o].type);
        if (also < 0 || i->arg[o].place < 0 || e->schedule->place[i->arg[o].place].memory == also)
            continue;
        struct image *image = image_of(e, also);
        if (!image) return false;
        memset(image->byte, 0xa5, (size_t)image->bytes);
        for (int64_t k = 0; k < r->elements; k++) {
            int64_t at = (r->offset ? r->offset[k] : k) * size;
            if (at >= 0 && at + size <= image->bytes)
                memcpy(image->byte + at, r->data + k * size, (size_t)size);
        }
    }
    return true;
}

/* Destinations are read too: what the semantics leaves alone stays as it is. */
static bool execute_once(struct engine *e, const struct executed *x, const struct shape *s,
                         int64_t turn) {
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    for (int o = 0, flag = 0; o < in->noperands; o++) {
        const struct reach *r = &s->reach[o];
        enum type t = in->operand[o].type;
        bool overwrite = in->operand[o].accumulate && x->flag[flag++] == 0;
        if (i->arg[o].place < 0) {
            fill(r, t, i->arg[o].imm);
        } else if (overwrite) {
            start_neutral(s, r, t);
        } else {
            struct operand_at at = operand_at(e, x, o, turn);
            if (!copy_elements(e, &at, r, false)) return false;
        }
    }
    if (!remains_store(e, x, s)) return false;
    if (!program_run(s->program, s->by_buffer, NULL, NULL, e->diags))
        return engine_error(e, x->node, "its semantics cannot be computed");
    for (int o = 0; o < in->noperands; o++) {
        if (in->operand[o].role == ROLE_IN) continue;
        struct operand_at at = operand_at(e, x, o, turn);
        if (!copy_elements(e, &at, &s->reach[o], true)) return false;
    }
    return true;
}

static bool issue_execute(struct engine *e, const struct executed *x) {
    const struct shape *s = shape_of(e, x->node, x);
    if (!s || !shape_ready(e, x->node, s)) return false;
    for (int64_t t = 0; t < x->iterations; t++)
        if (!execute_once(e, x, s, t)) return false;
    return true;
}

/* Indices inside the buffer that the access reaches, axes going over the box. */
static void reached(const struct program *p, const struct stmt *s, const struct access *acc,
                    const struct executed *x, int64_t *lo, int64_t *hi) {
    for (int d = 0; d < p->buffer[acc->buffer].ndims; d++) {
        lo[d] = hi[d] = access_coef(p, acc, d, p->naxes);
        for (int a = 0; a < p->naxes; a++) {
            int64_t c = access_coef(p, acc, d, a),
                    last = s->axes >> a & 1 ? x->hi[a] - 1 : x->lo[a];
            if (!c) continue;
            lo[d] += c * (c > 0 ? x->lo[a] : last);
            hi[d] += c * (c > 0 ? last : x->lo[a]);
        }
        hi[d]++;
        if (lo[d] < 0) lo[d] = 0;
        if (hi[d] > p->buffer[acc->buffer].extent[d]) hi[d] = p->buffer[acc->buffer].extent[d];
    }
}

static bool gather_all(struct engine *e, const struct stmt *s, const struct executed *x,
                       void **data) {
    const struct program *p = e->schedule->program;
    int64_t lo[MAX_DIMS], hi[MAX_DIMS];
    for (int r = -1; r < s->nreads; r++) {
        const struct access *acc = r < 0 ? &s->dst : &s->read[r];
        int b = acc->buffer;
        if (!data[b])
            data[b] = memory_take((size_t)p->buffer[b].elements + 1, type_size(p->buffer[b].type));
        reached(p, s, acc, x, lo, hi);
        if (!home_gather(e, b, lo, hi, data[b])) return false;
    }
    return true;
}

static bool fallback_execute(struct engine *e, const struct executed *x) {
    const struct program *p = e->schedule->program;
    int stmt = x->node->fallback->stmt;
    const struct stmt *s = &p->stmt[stmt];
    bool whole = true;
    for (int a = 0; a < p->naxes; a++) {
        if (!(s->axes >> a & 1)) continue;
        if (x->hi[a] <= x->lo[a]) return true;
        whole = whole && x->lo[a] == 0 && x->hi[a] == p->axis[a].extent;
    }
    void **data = ((struct simulation *)e->executor->user)->row_major;
    int64_t lo[MAX_DIMS], hi[MAX_DIMS];
    bool ok = gather_all(e, s, x, data);
    if (ok) {
        struct program *q = whole ? NULL : boxed(p, stmt, x->lo, x->hi);
        stmt_run_part(q ? q : p, q ? &q->stmt[stmt] : s, data, x->lo, q ? x->lo : NULL);
        reached(p, s, &s->dst, x, lo, hi);
        ok = home_scatter(e, s->dst.buffer, lo, hi, data[s->dst.buffer]);
        if (q) program_free(q);
    }
    return ok;
}

bool values_execute(struct engine *e, const struct executed *x) {
    if (x->node->kind == NODE_ISSUE) return issue_execute(e, x);
    return x->node->kind != NODE_FALLBACK || fallback_execute(e, x);
}
