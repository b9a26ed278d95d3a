/* What the command does when it ends early: by a signal, without memory, with nowhere to write to. The library installs none of this. */
#ifndef ISAMAP_COMMAND_GUARD_H
#define ISAMAP_COMMAND_GUARD_H

/* Signals take temporary files along and then end the process as they do by default; a stack that cannot grow, and memory that ends inside
 * a library in C++, are exit status 6; an error that LLVM would abort for is 4. */
void guard_install(void);
/* The status, unless standard output could not be written: that is an error too. */
int guard_finish(int status);

#endif
