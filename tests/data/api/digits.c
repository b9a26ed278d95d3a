/* A program that knows nothing of isamap: the compiled model, its weights embedded, in a file or as arguments, on one image.
 * Usage: digits IMAGES LOGITS [WEIGHTS BYTES] (.npy, .npy, file of weights) */
#include "digits_int8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *content(const char *path, size_t skip, size_t n) {
    char *at = aligned_alloc(64, (n + 127) / 64 * 64);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, (long)skip, SEEK_SET) || fread(at, 1, n, f) != n) exit(9);
    fclose(f);
    return at;
}

int main(int argc, char **argv) {
    struct digits_int8_args args = {.threads = 1};
    if (argc < 3 || digits_int8_check()) return 8;
    int8_t logits[10];
    args.image = content(argv[1], 128, digits_int8_argument(0)->bytes);
    args.logits = logits;
    args.prepared = aligned_alloc(64, digits_int8_prepared_bytes() + 64);
    void *work = aligned_alloc(64, digits_int8_workspace_bytes() + 64);
#ifdef WEIGHTS
    args.weights = content(argv[3], 0, (size_t)atoi(argv[4]));
#endif
    if (digits_int8_prepare(&args) || digits_int8_run(&args, work)) return 7;
    puts(digits_int8_argument(1)->name);
    return memcmp(logits, content(argv[2], 128, 10), 10) ? 6 : 0;
}
