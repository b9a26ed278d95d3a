/* Files in and out. Inputs are regular files: a folder, a pipe or a device is an error at once.
 * Outputs are written whole or not at all: beside the file, under another name that takes its place
 * at the end; what is no regular file (/dev/stdout, a pipe) is written as it is. */
#ifndef ISAMAP_IR_FILE_H
#define ISAMAP_IR_FILE_H

#include "ir/diag.h"

#include <stdio.h>

/* NULL after reporting. */
FILE *file_open(const char *path, struct diags *);

struct output {
    FILE *file;        /* where to write; NULL for output_reserve */
    char *path, *part; /* part: the other name; NULL: it is written as it is */
    int cleanup;
};
/* NULL after reporting. */
struct output *output_open(const char *path, struct diags *);
/* For others to write to output_name; path must be, or become, a regular file. */
struct output *output_reserve(const char *path, struct diags *);
const char *output_name(const struct output *);
/* Takes the file's place when `good` and nothing failed; frees. False after reporting a failure, or
 * when not good. */
bool output_close(struct output *, bool good, struct diags *);

/* Says that the file cannot be written, by this errno. */
void file_write_failed(const char *path, int why, struct diags *);
/* Before any work: could the file, or files in the folder, be written at the end? False after
 * saying why not. */
bool file_writable(const char *path, bool folder, struct diags *);
bool file_write(const char *path, const char *bytes, size_t length, struct diags *);

#endif
