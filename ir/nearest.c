#include "ir/nearest.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 64, SHOWN = 8 };

static int least(int a, int b) {
    return a < b ? a : b;
}

static bool contains(const char *word, const char *part) {
    size_t n = strlen(part);
    for (; n > 1 && strlen(word) >= n; word++)
        if (strncasecmp(word, part, n) == 0) return true;
    return false;
}

int name_distance(const char *a, const char *b) {
    int d[LONGEST + 1][LONGEST + 1], n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    if (strcasecmp(a, b) == 0) return 0;
    if (contains(a, b) || contains(b, a)) return 1;
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            d[i][j] = least(d[i - 1][j - 1] + (x != y), least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

/* Index of the nearest of those that are not taken; the first of equals. */
static int nearest(const char *wanted, const char *const *names, int n, const bool *taken) {
    int best = -1, least_yet = 0;
    for (int i = 0; i < n; i++) {
        if (taken && taken[i]) continue;
        int d = name_distance(wanted, names[i]);
        if (best < 0 || d < least_yet) best = i, least_yet = d;
    }
    return best;
}

const char *names_near(struct arena *a, const char *wanted, const char *const *names, int n) {
    if (n == 0) return "none";
    bool *taken = arena_array(a, (size_t)n, sizeof *taken);
    const char *list = "";
    int shown = n <= SHOWN + 1 ? n : SHOWN;
    for (int k = 0; k < shown; k++) {
        int i = nearest(wanted, names, n, taken);
        const char *before = k == 0 ? "" : k == n - 1 ? " or " : ", ";
        taken[i] = true;
        list = arena_printf(a, "%s%s'%s'", list, before, names[i]);
    }
    return shown == n ? list : arena_printf(a, "%s and %d more", list, n - shown);
}

const char *name_meant(const char *wanted, const char *const *names, int n) {
    int i = nearest(wanted, names, n, NULL);
    if (i < 0 || name_distance(wanted, names[i]) > (int)(strlen(wanted) + 2) / 3) return NULL;
    return names[i];
}

void names_add(struct arena *a, struct names *names, const char *name) {
    if (names->n == names->cap) GROW(a, names->at, names->n, names->cap);
    names->at[names->n++] = name;
}

const char *names_listed(struct arena *a, const char *wanted, const struct names *names) {
    return names_near(a, wanted, names->at, names->n);
}

static int by_spelling(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *files_near(struct arena *a, const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const char *suffix = strrchr(file, '.');
    const char *folder = slash ? arena_strndup(a, path, (size_t)(slash - path + 1)) : ".";
    size_t stem = suffix ? (size_t)(suffix - file) : strlen(file);
    int most = (int)(stem + 1) / 2;
    struct names near = {0};
    DIR *dir = opendir(folder);
    if (!dir) return "";
    for (struct dirent *e; (e = readdir(dir));) {
        const char *its = strrchr(e->d_name, '.');
        bool alike = suffix ? its && strcmp(its, suffix) == 0 : e->d_name[0] != '.';
        if (alike && name_distance(file, e->d_name) <= most)
            names_add(a, &near, arena_strdup(a, e->d_name));
    }
    closedir(dir);
    if (!near.n) return "";
    qsort(near.at, (size_t)near.n, sizeof *near.at, by_spelling);
    return arena_printf(a, "; the folder has %s", names_listed(a, file, &near));
}
