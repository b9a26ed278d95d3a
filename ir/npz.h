/* NumPy's .npz files: a zip archive of .npy files, stored as numpy.savez does, not compressed. */
#ifndef ISAMAP_IR_NPZ_H
#define ISAMAP_IR_NPZ_H

#include "ir/npy.h"

struct npz {
    struct arena arena;
    const char **name; /* without .npy */
    struct array *array;
    int n;
};

/* False after reporting; messages have the byte offset as column. */
bool npz_read(const char *path, struct npz *, struct diags *);
void npz_free(struct npz *);
const struct array *npz_find(const struct npz *, const char *name); /* NULL: it is not there */

#endif
