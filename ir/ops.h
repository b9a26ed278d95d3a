/* The operation table: parser, printer, interpreter, rewrites, simulator and backends read it.
 * Arithmetic on integers wraps in the type; floats compute in their type (f16 and bf16 in f32 until stored in a named buffer).
 * Division of integers truncates toward zero, by zero gives 0; % has the sign of the dividend, by zero gives 0.
 * max and min of a NaN give the other operand (two NaNs: NaN). round is half to even. */
#ifndef ISAMAP_IR_OPS_H
#define ISAMAP_IR_OPS_H

#include "ir/types.h"

/* how an operation is written */
enum notation { NOTE_LEAF, NOTE_INFIX, NOTE_PREFIX, NOTE_CALL, NOTE_CAST };

enum { OP_COMM = 1, OP_ASSOC = 2, OP_TO_BOOL = 4, OP_FLOAT_ONLY = 8, OP_INT_ONLY = 16 };

/*  id    spelling arity notation precedence flags        (precedence: higher binds tighter) */
#define OP_TABLE(X)                                                                                \
    X(READ, "", 0, NOTE_LEAF, 0, 0)     /* a buffer element: op.access */                          \
    X(LITERAL, "", 0, NOTE_LEAF, 0, 0)  /* op.value */                                             \
    X(AXIS, "", 0, NOTE_LEAF, 0, 0)     /* the value of an axis: op.axis */                        \
    X(ADD, "+", 2, NOTE_INFIX, 7, OP_COMM | OP_ASSOC)                                              \
    X(SUB, "-", 2, NOTE_INFIX, 7, 0)                                                               \
    X(MUL, "*", 2, NOTE_INFIX, 8, OP_COMM | OP_ASSOC)                                              \
    X(DIV, "/", 2, NOTE_INFIX, 8, 0)                                                               \
    X(MOD, "%", 2, NOTE_INFIX, 8, 0)                                                               \
    X(NEG, "-", 1, NOTE_PREFIX, 9, 0)                                                              \
    X(EQ, "==", 2, NOTE_INFIX, 5, OP_COMM | OP_TO_BOOL)                                            \
    X(NE, "!=", 2, NOTE_INFIX, 5, OP_COMM | OP_TO_BOOL)                                            \
    X(LT, "<", 2, NOTE_INFIX, 6, OP_TO_BOOL)                                                       \
    X(LE, "<=", 2, NOTE_INFIX, 6, OP_TO_BOOL)                                                      \
    X(GT, ">", 2, NOTE_INFIX, 6, OP_TO_BOOL)                                                       \
    X(GE, ">=", 2, NOTE_INFIX, 6, OP_TO_BOOL)                                                      \
    X(AND, "&", 2, NOTE_INFIX, 4, OP_COMM | OP_ASSOC | OP_INT_ONLY)                                \
    X(XOR, "^", 2, NOTE_INFIX, 3, OP_COMM | OP_ASSOC | OP_INT_ONLY)                                \
    X(OR, "|", 2, NOTE_INFIX, 2, OP_COMM | OP_ASSOC | OP_INT_ONLY)                                 \
    X(NOT, "~", 1, NOTE_PREFIX, 9, OP_INT_ONLY)                                                    \
    X(MIN, "min", 2, NOTE_CALL, 0, OP_COMM | OP_ASSOC)                                             \
    X(MAX, "max", 2, NOTE_CALL, 0, OP_COMM | OP_ASSOC)                                             \
    X(ABS, "abs", 1, NOTE_CALL, 0, 0)                                                              \
    X(FLOOR, "floor", 1, NOTE_CALL, 0, 0)                                                          \
    X(CEIL, "ceil", 1, NOTE_CALL, 0, 0)                                                            \
    X(ROUND, "round", 1, NOTE_CALL, 0, 0)                                                          \
    X(SQRT, "sqrt", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                \
    X(RSQRT, "rsqrt", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                              \
    X(EXP, "exp", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                  \
    X(LOG, "log", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                  \
    X(SIN, "sin", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                  \
    X(COS, "cos", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                  \
    X(TANH, "tanh", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                \
    X(SIGMOID, "sigmoid", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                          \
    X(ERF, "erf", 1, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                  \
    X(POW, "pow", 2, NOTE_CALL, 0, OP_FLOAT_ONLY)                                                  \
    X(SELECT, "select", 3, NOTE_CALL, 0, 0) /* condition (bool), then, else */                     \
    X(CLIP, "clip", 3, NOTE_CALL, 0, 0)     /* x, low, high: min(max(x, low), high) */             \
    X(SHL, "shl", 2, NOTE_CALL, 0, OP_INT_ONLY)                                                    \
    X(SHR, "shr", 2, NOTE_CALL, 0, OP_INT_ONLY) /* arithmetic; negative amount shifts left; width or more: 0 or -1 */ \
    X(CAST, "", 1, NOTE_CAST, 0, 0) /* to op.type, from the argument's */

enum opcode {
#define X(id, spelling, arity, notation, precedence, flags) OP_##id,
    OP_TABLE(X)
#undef X
        OP_COUNT
};

struct op_info {
    const char *id, *spelling;
    int arity;
    enum notation notation;
    int precedence, flags;
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
