/* What must not stay when a call or the process ends early: temporary files and folders, and
 * running children. The table is the process's own, since a signal ends the process: cleanup_all
 * may be called from a signal handler. When it is full, what is added later is not looked after. */
#ifndef ISAMAP_IR_CLEANUP_H
#define ISAMAP_IR_CLEANUP_H

#include <sys/types.h>

enum { CLEANUP_NONE = -1 };

/* A number for cleanup_drop; CLEANUP_NONE: the table is full, or the path too long. */
int cleanup_file(const char *path);
int cleanup_folder(const char *path);  /* with the files in it */
int cleanup_child(pid_t);              /* is ended by SIGTERM, and waited for */
void cleanup_drop(int);                /* takes CLEANUP_NONE */
void cleanup_forget(const char *path); /* the same by its path */

void cleanup_all(void);    /* of all threads */
void cleanup_thread(void); /* what this thread added */

#endif
