/* The element types: one table for parser, printer, interpreter, machines and backends. */
#ifndef ISAMAP_IR_TYPES_H
#define ISAMAP_IR_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*        name  bytes  kind: 'f' float, 'i' signed, 'u' unsigned, 'b' bool */
#define TYPE_TABLE(X)                                                                              \
    X(F64, f64, 8, 'f')                                                                            \
    X(F32, f32, 4, 'f')                                                                            \
    X(F16, f16, 2, 'f')                                                                            \
    X(BF16, bf16, 2, 'f')                                                                          \
    X(I64, i64, 8, 'i')                                                                            \
    X(I32, i32, 4, 'i')                                                                            \
    X(I16, i16, 2, 'i')                                                                            \
    X(I8, i8, 1, 'i')                                                                              \
    X(U64, u64, 8, 'u')                                                                            \
    X(U32, u32, 4, 'u')                                                                            \
    X(U16, u16, 2, 'u')                                                                            \
    X(U8, u8, 1, 'u')                                                                              \
    X(BOOL, bool, 1, 'b')

enum type {
#define X(id, name, bytes, kind) TYPE_##id,
    TYPE_TABLE(X)
#undef X
        TYPE_COUNT
};

const char *type_name(enum type);            /* "f32" */
size_t type_size(enum type);                 /* bytes */
bool type_is_float(enum type);
bool type_is_signed(enum type);              /* signed integers only */
bool type_parse(const char *name, size_t len, enum type *out);

/* A value in flight. Floats (f16 and bf16 too) are held in f, integers and bool in i
 * (u64 by its two's complement bits). */
union value {
    double f;
    int64_t i;
};

union value type_load(enum type, const void *at);          /* one element from memory, any alignment */
void type_store(enum type, void *at, union value);         /* rounds f32, f16, bf16 half to even; wraps integers */
union value type_convert(enum type to, enum type from, union value); /* DESIGN numerics: float to integer truncates,
                                                                        saturates, NaN gives 0; integers wrap;
                                                                        to bool: x != 0 */
int64_t type_wrap(enum type, uint64_t bits);               /* integers: the value that the low bits mean; bool: != 0 */
double type_round(enum type, double);                      /* to the nearest value of a float type, half to even */
void type_limits(enum type, int64_t *low, int64_t *high);  /* of an integer type; u64: 0 and -1, its bits */
#endif
