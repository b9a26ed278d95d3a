/* Where each element of an operand is: made for values only. */
#include "sim/sim_int.h"
#include "ir/memory.h"

#include <stdlib.h>

enum { MOST_ELEMENTS = 1 << 27 };

/* Element offsets in row-major order of the indices; NULL where that is 0, 1, 2… */
static int64_t *offsets(const struct operand_layout *l, const struct buffer *b,
                        const int64_t *stride) {
    int64_t index[MAX_DIMS] = {0}, dense_stride[MAX_PLACES];
    if (!l->nstrides) layout_strides(l->map, b->ndims, b->extent, dense_stride);
    if (!l->nstrides) stride = dense_stride;
    int64_t *offset = memory_bytes((size_t)b->elements * sizeof *offset + 1);
    bool dense = true;
    for (int64_t k = 0; k < b->elements; k++) {
        offset[k] = layout_offset(l->map, b->ndims, b->extent, stride, index);
        dense = dense && offset[k] == k;
        for (int d = b->ndims - 1; d >= 0 && ++index[d] == b->extent[d]; d--) index[d] = 0;
    }
    if (!dense) return offset;
    free(offset);
    return NULL;
}

/* Which instance of the memory holds each element; NULL: all in the one where the operand is. */
static int32_t *instances(const struct engine *e, const struct layout *map, const struct buffer *b,
                          int memory) {
    int64_t index[MAX_DIMS] = {0};
    if (!layout_spreads(map)) return NULL;
    int32_t *out = memory_bytes((size_t)b->elements * sizeof *out + 1);
    for (int64_t k = 0; k < b->elements; k++) {
        out[k] = (int32_t)layout_instance(e->machine, map, memory, index);
        for (int d = b->ndims - 1; d >= 0 && ++index[d] == b->extent[d]; d--) index[d] = 0;
    }
    return out;
}

bool shape_ready(struct engine *e, const struct node *node, const struct shape *made) {
    struct shape *s = &e->shape[made - e->shape];
    const struct instr *in = &e->machine->instr[node->issue->instr];
    if (s->ready) return true;
    s->by_buffer = memory_array((size_t)s->program->nbuffers + 1, sizeof *s->by_buffer);
    for (int o = 0; o < in->noperands; o++) {
        struct reach *r = &s->reach[o];
        const struct operand_layout *l = &in->operand[o].layout[s->alternative[o]];
        const struct buffer *b = &s->program->buffer[r->buffer];
        int64_t stride[SIM_SIZES + MAX_DIMS];
        if (r->elements > MOST_ELEMENTS)
            return engine_error(e, node, "operand '%s' has %lld elements, too many to be computed",
                                in->operand[o].buffer, (long long)r->elements);
        if (!shape_strides(e, node, s, o, stride)) return false;
        if (in->operand[o].memory[0] != MEMORY_IMM) {
            r->offset = offsets(l, b, stride);
            r->instance = instances(e, l->map, b, in->operand[o].memory[0]);
        }
        r->data = memory_array((size_t)r->elements + 1, type_size(b->type));
        s->by_buffer[r->buffer] = r->data;
    }
    return s->ready = true;
}
