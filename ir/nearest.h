/* A name that is not there: what is, those spelt most like it first. */
#ifndef ISAMAP_IR_NEAREST_H
#define ISAMAP_IR_NEAREST_H

#include "ir/arena.h"

/* Insertions, deletions, substitutions and exchanges of neighbours from one to the other, letters
 * of either case alike (optimal string alignment, Damerau 1964); 1 where one word contains the
 * other. */
int name_distance(const char *, const char *);

/* "'edge16', 'vdla' and 9 more": nearest first, at most eight; "none" when there is no name. */
const char *names_near(struct arena *, const char *wanted, const char *const *names, int n);

struct names {
    const char **at;
    int n, cap;
};
void names_add(struct arena *, struct names *, const char *); /* keeps the pointer */
const char *names_listed(struct arena *, const char *wanted, const struct names *); /* names_near */

/* "; the folder has 'gmm.isam' or 'gmv.isam'" for a path that is not there: files of its folder
 * with its suffix. "" where the folder has none like it, or is not there. */
const char *files_near(struct arena *, const char *path);

/* The nearest where it is near enough to be meant, else NULL. */
const char *name_meant(const char *wanted, const char *const *names, int n);

#endif
