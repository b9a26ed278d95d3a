/* What the operating system says of this computer, for parameters of a machine file that name it.
 * Linux describes each cache of a processor in a folder index0, index1, ... of one file a value. */
#include "machines/machine.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CACHES = 16 };

static const char *const files[][2] = {
    {"size", "size"}, {"ways", "ways_of_associativity"}, {"line", "coherency_line_size"}};

bool system_word(const char *word, int *level, const char **file) {
    char what[8], rest;
    if (sscanf(word, "cache %d %7s %c", level, what, &rest) != 2 || *level < 1 || *level > 4)
        return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(what, files[i][0])) {
            *file = files[i][1];
            return true;
        }
    return false;
}

static bool read_word(const char *folder, int index, const char *file, char *out, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/index%d/%s", folder, index, file);
    FILE *f = fopen(path, "r");
    bool read = f && fgets(out, (int)size, f);
    if (f) fclose(f);
    if (read) out[strcspn(out, "\n")] = 0;
    return read;
}

/* 48K and the like; 0: no number, or too large for one. */
static int64_t number_of(const char *text) {
    char *end;
    int64_t n = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end == text || end[shift > 0] || n <= 0 || n > INT64_MAX >> 31) return 0;
    return n << shift;
}

int64_t system_value(const char *folder, const char *word) {
    int level;
    const char *file;
    char text[64];
    if (!system_word(word, &level, &file)) return 0;
    for (int i = 0; i < MOST_CACHES && read_word(folder, i, "level", text, sizeof text); i++) {
        if (number_of(text) != level) continue;
        if (!read_word(folder, i, "type", text, sizeof text) || !strcmp(text, "Instruction"))
            continue;
        return read_word(folder, i, file, text, sizeof text) ? number_of(text) : 0;
    }
    return 0;
}
