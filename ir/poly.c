#include "ir/poly.h"
#include "ir/memory.h"

#include <isl/options.h>
#include <stdlib.h>

/* isl does not survive a context for which there is no memory: enough is asked for before. */
isl_ctx *poly_begin(void) {
    free(memory_bytes(1 << 16));
    isl_ctx *ctx = isl_ctx_alloc();
    if (!ctx) memory_exhausted(0);
    isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
    return ctx;
}

void poly_end(isl_ctx *ctx) {
    bool exhausted = isl_ctx_last_error(ctx) == isl_error_alloc;
    isl_ctx_free(ctx);
    if (exhausted) memory_exhausted(0);
}
