/* What takes long says so on a terminal: one line on standard error, rewritten five times a second,
 * gone when the call is over. Nothing within the first second, nothing where standard error is no
 * terminal. By a timer's signal: the command has one thread, and the backends rely on it. */
#ifndef ISAMAP_COMMAND_PROGRESS_H
#define ISAMAP_COMMAND_PROGRESS_H

#include "isamap.h"

void progress_begin(const isamap *);
void progress_end(void);

#endif
