/* Where the files are that come with isamap: machine files, suites, models of devices, peers. Found from where this code is (the command,
 * or the library in somebody's program), so that an installation can be moved. */
#ifndef ISAMAP_MACHINES_SHARE_H
#define ISAMAP_MACHINES_SHARE_H

#include "ir/arena.h"

/* The folder with `machines`, `bench` and `sim` in it: the sources' own where this code is in the folder that it was built in, else the
 * installed one. NULL: neither is there. */
const char *share_folder(struct arena *);
/* A folder in it; NULL. */
const char *share_part(struct arena *, const char *name);
/* The folder of modules (the peers of `bench`) that were installed; NULL. */
const char *module_folder(struct arena *);

#endif
