/* NumPy's .npy files (format 1.0 and 2.0): dense arrays, C order, little endian. */
#ifndef ISAMAP_IR_NPY_H
#define ISAMAP_IR_NPY_H

#include "ir/diag.h"
#include "ir/types.h"

struct array {
    enum type type;
    int ndims;
    int64_t extent[16];
    int64_t elements;
    void *data;                 /* malloc'ed */
};

/* Messages have the byte offset as column. f16 is '<f2'. bf16 is '<V2', as ml_dtypes' bfloat16 is saved; '|V2' and 'bfloat16'
 * are read too. */
bool npy_read(const char *path, struct array *, struct diags *);
bool npy_parse(const char *path, const void *bytes, size_t length, struct array *, struct diags *);
bool npy_write(const char *path, const struct array *, struct diags *);  /* through a temporary file: nothing half written */
void array_free(struct array *);

#endif
