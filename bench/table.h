/* Aligned columns of text: the first to the left, the others to the right. */
#ifndef ISAMAP_BENCH_TABLE_H
#define ISAMAP_BENCH_TABLE_H

#include "ir/arena.h"

enum { TABLE_COLUMNS = 32 };

struct table {
    struct arena arena;
    const char *title[TABLE_COLUMNS];
    int ncolumns;
    const char **cell; /* row by row */
    int ncells, cap;
};

void table_init(struct table *);
void table_free(struct table *);
void table_column(struct table *, const char *title); /* before the first cell */
void table_cell(struct table *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_number(struct table *, double, int digits); /* significant digits; NaN: a dash */
void table_end_row(struct table *);                    /* what is left of the row stays empty */
void table_print(const struct table *, struct text *);

#endif
