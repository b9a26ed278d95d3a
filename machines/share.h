/* Where the files are that come with isamap: machine files, suites, models of devices, peers. Found from where this code is (the command,
 * or the library in somebody's program), so that an installation can be moved. */
#ifndef ISAMAP_MACHINES_SHARE_H
#define ISAMAP_MACHINES_SHARE_H

#include "ir/arena.h"

/* A folder in it; NULL. */
const char *share_part(struct arena *, const char *name);
/* The folder of modules (the peers of `bench`) that were installed; NULL. */
const char *module_folder(struct arena *);

#endif
