/* Results of the command: written once, readable as text, as JSON, and by path. */
#ifndef ISAMAP_COMMAND_REPORT_H
#define ISAMAP_COMMAND_REPORT_H

#include "ir/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct entry {
    const char *path;
    bool is_number;
    double number;
    const char *string;
};

struct report {
    struct arena arena;
    struct text text; /* for people */
    struct text json;
    struct entry *entry;
    int nentries, cap;
    char path[256]; /* of the open objects, with a dot at the end */
    size_t path_n[16];
    bool first[16], is_list[16];
    int depth, index[16];
};

void report_init(struct report *);
void report_free(struct report *);
void report_open(struct report *, const char *key,
                 char bracket); /* '{' or '['; key NULL inside a list and for the outermost */
void report_close(struct report *);
void report_number(struct report *, const char *key,
                   double); /* NaN and infinity are written as null */
void report_integer(struct report *, const char *key, int64_t);
void report_bool(struct report *, const char *key, bool);
void report_string(struct report *, const char *key, const char *);
/* A finished result takes more members; one that was left half written is given up for an empty one.
 * report_close ends it again. */
void report_reopen(struct report *);
/* A result that is nothing but an error: {"error": …, "messages": […], "status": …}. */
void report_error(struct report *, int status, const char *error);
double report_get(const struct report *, const char *path); /* NAN: none */
const char *report_key(const struct report *, const char *path, int i);

#endif
