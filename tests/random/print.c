/* random_program SEED [COUNT [MACHINE]]: prints the programs of these seeds, each with its classes,
 * for scripts that evaluate them elsewhere. With COUNT each stands in a file of its own in the
 * current folder: SEED.isam. Types of products are those of the machine, else any. */
#include "tests/random/trial.h"

#include "ir/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_types(const char *name, struct bench *b) {
    struct diags d;
    diags_init(&d);
    b->machine = strcmp(name, "host") == 0 ? machine_host(&d) : machine_load(name, NULL, &d);
    diags_print(&d, stderr);
    diags_free(&d);
    if (!b->machine) return false;
    bench_types(b);
    machine_free(b->machine);
    return true;
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
    struct bench bench = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: random_program SEED [COUNT [MACHINE]]\n");
        return 2;
    }
    if (argc > 3 && !read_types(argv[3], &bench)) return 1;
    uint64_t seed = strtoull(argv[1], NULL, 0);
    if (argc == 2) print_program(seed, &bench.native, stdout);
    for (int k = 0; argc > 2 && k < atoi(argv[2]); k++) {
        char name[64];
        snprintf(name, sizeof name, "%llu.isam", (unsigned long long)seed + (unsigned)k);
        FILE *f = fopen(name, "w");
        if (!f) return perror(name), 1;
        print_program(seed + (unsigned)k, &bench.native, f);
        fclose(f);
    }
    return 0;
}
