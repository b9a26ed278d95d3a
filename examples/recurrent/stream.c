/* Frames that arrive a few at a time, by a recurrent network compiled into a library: any cut of the sequence gives the same numbers.
 *
 *   isamap compile examples/f32/gru.isam -D H=16 -o gru.so
 *   cc -I. examples/recurrent/stream.c ./gru.so -o stream
 *   ./stream frames.f32 weights.f32 7 >out.f32       # 7 frames a step, as many as there are in the end
 *
 * A frame is the gates' inputs of a step, 3 x 16 floats; the weights are 3 x 16 x 16. */
#include "gru.h"

#include <stdio.h>
#include <stdlib.h>

enum { HIDDEN = 16, FRAME = 3 * HIDDEN, MOST = 64 };

static int fail(const char *what, int status) {
    fprintf(stderr, "%s: %s\n", what, gru_message(status));
    return 1;
}

static float *aligned(size_t bytes) {
    return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: stream FRAMES WEIGHTS FRAMES-A-STEP\n"), 2;
    FILE *frames = fopen(argv[1], "rb"), *weights = fopen(argv[2], "rb");
    int n = atoi(argv[3]), status;
    float *u = aligned(sizeof *u * 3 * HIDDEN * HIDDEN), in[MOST * FRAME], out[MOST * HIDDEN];
    if (!frames || !weights || n < 1 || n > MOST ||
        fread(u, sizeof *u, 3 * HIDDEN * HIDDEN, weights) != 3 * HIDDEN * HIDDEN)
        return fprintf(stderr, "no frames or no weights\n"), 2;

    /* All memory is taken here. */
    struct gru_args args = {.X = in, .U = u, .y = out, .threads = 1, .prepared = aligned(gru_prepared_bytes())};
    void *stream = aligned(gru_stream_bytes());
    if (gru_check()) return fail("gru.h", 5);
    if ((status = gru_prepare(&args))) return fail("prepare", status);

    if ((status = gru_init(&args, stream))) return fail("init", status); /* args.h0 is NULL: zeros */
    for (size_t got; (got = fread(in, sizeof *in * FRAME, (size_t)n, frames)) > 0;) {
        args.size_T = (int64_t)got;
        if ((status = gru_step(&args, stream))) return fail("step", status);
        fwrite(out, sizeof *out * HIDDEN, got, stdout);
    }
    float last[HIDDEN];
    args.hT = last;
    if ((status = gru_finish(&args, stream))) return fail("finish", status);
    fwrite(last, sizeof last, 1, stdout);
    free(stream);
    free(args.prepared);
    free(u);
    fclose(frames);
    fclose(weights);
    return 0;
}
