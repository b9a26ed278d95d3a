/* random_program SEED [COUNT]: prints the programs of these seeds, each with its classes, for
 * scripts that evaluate them elsewhere. With COUNT each stands in a file of its own in the current
 * folder: SEED.isam. Types of products are those of ISAMAP_TYPES, "f32,f32,f32 i8,i8,i32", else
 * any. */
#include "tests/random/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_types(struct schemes *out) {
    char text[512], *rest = text, *word;
    snprintf(text, sizeof text, "%s", getenv("ISAMAP_TYPES") ? getenv("ISAMAP_TYPES") : "");
    while ((word = strsep(&rest, " ")) && out->n < 16) {
        enum type t[3];
        int n = 0;
        for (char *one; n < 3 && (one = strsep(&word, ",")); n++)
            if (!type_parse(one, strlen(one), &t[n])) break;
        if (n == 3) out->at[out->n++] = (struct scheme){t[0], t[1], t[2]};
    }
}

static void print_program(uint64_t seed, const struct schemes *native, FILE *to) {
    struct tape tape = {.s = seed * 7919 + 13};
    struct random_info info;
    char *text = random_program(&tape, native, &info);
    fprintf(to, "# seed %llu%s%s\n# classes:", (unsigned long long)seed,
            info.exact ? ", exact" : ", rounds", info.classes >> CLASS_WIDE & 1 ? ", wide" : "");
    for (int c = 0; c < CLASS_COUNT; c++)
        if (info.classes >> c & 1) fprintf(to, " %s;", class_name[c]);
    fprintf(to, "\n%s", text);
    free(text);
}

int main(int argc, char **argv) {
    struct schemes native = {0};
    read_types(&native);
    if (argc < 2) {
        fprintf(stderr, "usage: random_program SEED [COUNT]\n");
        return 2;
    }
    uint64_t seed = strtoull(argv[1], NULL, 0);
    if (argc == 2) print_program(seed, &native, stdout);
    for (int k = 0; argc > 2 && k < atoi(argv[2]); k++) {
        char name[64];
        snprintf(name, sizeof name, "%llu.isam", (unsigned long long)seed + (unsigned)k);
        FILE *f = fopen(name, "w");
        if (!f) return perror(name), 1;
        print_program(seed + (unsigned)k, &native, f);
        fclose(f);
    }
    return 0;
}
