/* Instructions whose results may be farther off than the operation table says (`units` of the
 * machine file): a division by way of the reciprocal, an approximate function. Such a rounding is
 * made only where an operand is already as far off, being the result of such a function. So exact
 * operands keep the result that IEEE 754 gives, and what an exponential's bound leaves is shared.
 */
#include "mapper/mapper_int.h"

/* Unit roundoffs by which the value of the node may be off. */
static int node_units(const struct stmt *s, int node) {
    const struct op *o = &s->op[node];
    int units = type_is_float(o->type) ? op_info[o->code].units : 0;
    if (o->code != OP_MUL && o->code != OP_DIV && o->code != OP_NEG && o->code != OP_ABS)
        return units;
    for (int k = 0; k < op_info[o->code].arity; k++) {
        int of = node_units(s, o->arg[k]);
        if (of > units) units = of;
    }
    return units;
}

/* Of a buffer, as its last writer before the statement leaves it. */
static int buffer_units(const struct program *p, int stmt, int buffer) {
    while (stmt-- > 0)
        if (p->stmt[stmt].dst.buffer == buffer)
            return p->stmt[stmt].combine == COMBINE_SET
                       ? node_units(&p->stmt[stmt], p->stmt[stmt].nops - 1)
                       : 0;
    return 0;
}

bool rounding_fits(const struct program *p, int stmt, const struct instr *in,
                   enum rewrite_effect floats) {
    const struct stmt *s = &p->stmt[stmt];
    if (in->units == 0) return true;
    for (int r = 0; r < s->nreads && floats >= REWRITE_REORDERS; r++)
        if (buffer_units(p, stmt, s->read[r].buffer) >= in->units) return true;
    return false;
}
