/* The operation table: parser, printer, interpreter, rewrites, simulator and backends read it.
 * Arithmetic on integers wraps in the type; floats compute in their type (f16 and bf16 in f32 until stored in a named buffer).
 * Division of integers truncates toward zero, by zero gives 0; % has the sign of the dividend, by zero gives 0.
 * max and min of a NaN give the other operand (two NaNs: NaN). round is half to even. */
#ifndef ISAMAP_IR_OPS_H
#define ISAMAP_IR_OPS_H

#include "ir/types.h"

/* how an operation is written */
enum notation { NOTE_LEAF, NOTE_INFIX, NOTE_PREFIX, NOTE_CALL, NOTE_CAST };

/* How the error of a result follows from those of the operands (ir/bound.h). SUM to POWER: on floats; integers are exact unless an
 * operand is not: then every value that it can have is tried. */
enum error_rule {
    ERROR_NONE,      /* a leaf */
    ERROR_SUM,       /* errors add */
    ERROR_PRODUCT,   /* |a|·e_b + |b|·e_a + e_a·e_b */
    ERROR_QUOTIENT,  /* (e_a + |a/b|·e_b) / (|b| - e_b); undecided where b may be 0 */
    ERROR_REMAINDER, /* e_a while the quotient's integer part is certain */
    ERROR_NEGATE,    /* the bounds change sides */
    ERROR_ABS,       /* the same below 0 */
    ERROR_RISING,    /* never falls in any operand: the ends of the operands give the ends */
    ERROR_STEP,      /* the same, with jumps: undecided between the two sides of one */
    ERROR_FALLING,   /* never rises */
    ERROR_WAVE,      /* slope at most 1, results in [-1, 1] */
    ERROR_POWER,     /* the corners of base and exponent */
    ERROR_COMPARE,   /* undecided where the operands' ranges meet */
    ERROR_SELECT,    /* both sides where the condition is undecided */
    ERROR_BITS,      /* integers alone */
    ERROR_CAST       /* float to float rounds; to an integer is a step */
};

enum { OP_COMM = 1, OP_ASSOC = 2, OP_TO_BOOL = 4, OP_FLOAT_ONLY = 8, OP_INT_ONLY = 16 };

/*  id    spelling arity notation precedence flags error units
 * (precedence: higher binds tighter; units: what a float result may differ from the exact one, in unit roundoffs of the type that it
 * is computed in: 1 correctly rounded, 8 four units in the last place) */
#define OP_TABLE(X)                                                                                \
    X(READ, "", 0, NOTE_LEAF, 0, 0, ERROR_NONE, 0) /* a buffer element: op.access */                                  \
    X(LITERAL, "", 0, NOTE_LEAF, 0, 0, ERROR_NONE, 0) /* op.value */                                                  \
    X(AXIS, "", 0, NOTE_LEAF, 0, 0, ERROR_NONE, 0) /* the value of an axis: op.axis */                                \
    X(ADD, "+", 2, NOTE_INFIX, 7, OP_COMM | OP_ASSOC, ERROR_SUM, 1)                                                   \
    X(SUB, "-", 2, NOTE_INFIX, 7, 0, ERROR_SUM, 1)                                                                    \
    X(MUL, "*", 2, NOTE_INFIX, 8, OP_COMM | OP_ASSOC, ERROR_PRODUCT, 1)                                               \
    X(DIV, "/", 2, NOTE_INFIX, 8, 0, ERROR_QUOTIENT, 1)                                                               \
    X(MOD, "%", 2, NOTE_INFIX, 8, 0, ERROR_REMAINDER, 0)                                                              \
    X(NEG, "-", 1, NOTE_PREFIX, 9, 0, ERROR_NEGATE, 0)                                                                \
    X(EQ, "==", 2, NOTE_INFIX, 5, OP_COMM | OP_TO_BOOL, ERROR_COMPARE, 0)                                             \
    X(NE, "!=", 2, NOTE_INFIX, 5, OP_COMM | OP_TO_BOOL, ERROR_COMPARE, 0)                                             \
    X(LT, "<", 2, NOTE_INFIX, 6, OP_TO_BOOL, ERROR_COMPARE, 0)                                                        \
    X(LE, "<=", 2, NOTE_INFIX, 6, OP_TO_BOOL, ERROR_COMPARE, 0)                                                       \
    X(GT, ">", 2, NOTE_INFIX, 6, OP_TO_BOOL, ERROR_COMPARE, 0)                                                        \
    X(GE, ">=", 2, NOTE_INFIX, 6, OP_TO_BOOL, ERROR_COMPARE, 0)                                                       \
    X(AND, "&", 2, NOTE_INFIX, 4, OP_COMM | OP_ASSOC | OP_INT_ONLY, ERROR_BITS, 0)                                    \
    X(XOR, "^", 2, NOTE_INFIX, 3, OP_COMM | OP_ASSOC | OP_INT_ONLY, ERROR_BITS, 0)                                    \
    X(OR, "|", 2, NOTE_INFIX, 2, OP_COMM | OP_ASSOC | OP_INT_ONLY, ERROR_BITS, 0)                                     \
    X(NOT, "~", 1, NOTE_PREFIX, 9, OP_INT_ONLY, ERROR_BITS, 0)                                                        \
    X(MIN, "min", 2, NOTE_CALL, 0, OP_COMM | OP_ASSOC, ERROR_RISING, 0)                                               \
    X(MAX, "max", 2, NOTE_CALL, 0, OP_COMM | OP_ASSOC, ERROR_RISING, 0)                                               \
    X(ABS, "abs", 1, NOTE_CALL, 0, 0, ERROR_ABS, 0)                                                                   \
    X(FLOOR, "floor", 1, NOTE_CALL, 0, 0, ERROR_STEP, 0)                                                              \
    X(CEIL, "ceil", 1, NOTE_CALL, 0, 0, ERROR_STEP, 0)                                                                \
    X(ROUND, "round", 1, NOTE_CALL, 0, 0, ERROR_STEP, 0)                                                              \
    X(SQRT, "sqrt", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 1)                                                  \
    X(RSQRT, "rsqrt", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_FALLING, 8)                                               \
    X(EXP, "exp", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 8)                                                    \
    X(LOG, "log", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 8)                                                    \
    X(SIN, "sin", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_WAVE, 8)                                                      \
    X(COS, "cos", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_WAVE, 8)                                                      \
    X(TANH, "tanh", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 8)                                                  \
    X(SIGMOID, "sigmoid", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 8)                                            \
    X(ERF, "erf", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 8)                                                    \
    X(POW, "pow", 2, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_POWER, 8)                                                     \
    X(SELECT, "select", 3, NOTE_CALL, 0, 0, ERROR_SELECT, 0) /* condition (bool), then, else */                       \
    X(CLIP, "clip", 3, NOTE_CALL, 0, 0, ERROR_RISING, 0) /* x, low, high: min(max(x, low), high) */                   \
    X(SHL, "shl", 2, NOTE_CALL, 0, OP_INT_ONLY, ERROR_BITS, 0)                                                        \
    X(SHR, "shr", 2, NOTE_CALL, 0, OP_INT_ONLY, ERROR_BITS, 0) /* arithmetic; negative amount shifts left; width or more: 0 or -1 */\
    X(CAST, "", 1, NOTE_CAST, 0, 0, ERROR_CAST, 0) /* to op.type, from the argument's */                              \
    X(ATAN, "atan", 1, NOTE_CALL, 0, OP_FLOAT_ONLY, ERROR_RISING, 8)

enum opcode {
#define X(id, spelling, arity, notation, precedence, flags, error, units) OP_##id,
    OP_TABLE(X)
#undef X
        OP_COUNT
};

struct op_info {
    const char *id, *spelling;
    int arity;
    enum notation notation;
    int precedence, flags;
    enum error_rule error;
    int units;
};
extern const struct op_info op_info[OP_COUNT];

/* The meaning: op applied to values of type `from` (operands; for SELECT the type of the last two), result of type `to`. */
union value op_eval(enum opcode, enum type to, enum type from, const union value *arg);

/* How a statement combines with its destination: `=`, and four reductions. */
enum combiner { COMBINE_SET, COMBINE_ADD, COMBINE_MUL, COMBINE_MAX, COMBINE_MIN, COMBINE_COUNT };
extern const char *const combiner_spelling[COMBINE_COUNT];        /* "=", "+=", "*=", "max=", "min=" */
enum opcode combiner_op(enum combiner);                           /* OP_ADD…; not for SET */
union value combiner_neutral(enum combiner, enum type);

#endif
