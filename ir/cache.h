/* What earlier calls computed, in a folder: values by key. An entry is a file that holds its key,
 * so another key is never taken for it, and a checksum. What is torn, foreign or of another version
 * is no entry. Processes may use a folder at the same time: an entry appears whole. All this is
 * best effort: what cannot be written is computed again. */
#ifndef ISAMAP_IR_CACHE_H
#define ISAMAP_IR_CACHE_H

#include "ir/diag.h"

#include <stdint.h>

struct cache {
    const char *folder;
    int64_t limit; /* bytes that all entries may take; the oldest used go first */
};

/* The user's folder for what can be made again: $ISAMAP_CACHE, else isamap in $XDG_CACHE_HOME or
 * ~/.cache. Made where it is missing, but for the home; NULL: that cannot be. */
char *cache_folder(struct arena *);

/* The same for entries, which take at most $ISAMAP_CACHE_SIZE (1G; 0: there are none). A folder that
 * somebody else could write to is not used, with a warning. NULL: none. In the arena. */
const struct cache *cache_user(struct arena *, struct diags *);

/* False: no such entry. The caller frees *value with text_free. */
bool cache_read(const struct cache *, const struct text *key, struct text *value);
void cache_write(const struct cache *, const struct text *key, const struct text *value);

/* What tells this build of isamap from all others: where, how long and from when the file is that
 * holds this code. */
void cache_build(struct text *);

#endif
