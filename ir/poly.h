/* Contexts of isl. isl's ownership: results are the caller's (__isl_give). */
#ifndef ISAMAP_IR_POLY_H
#define ISAMAP_IR_POLY_H

#include <isl/ctx.h>

/* A context whose errors are results that are NULL or isl_bool_error. */
isl_ctx *poly_begin(void);
/* Frees it. When isl had not enough memory for something, memory has ended (ir/memory.h): what it said then means nothing. */
void poly_end(isl_ctx *);

#endif
