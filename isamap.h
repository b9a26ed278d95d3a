/* isamap: deep-learning programs on hardware that is known only from a machine file.
 *
 * One context holds everything; there is no global state. A call works on the options that were set
 * before it, leaves its result as text (JSON with option "json") and its messages, and returns a
 * status. The command `isamap` is this header and a loop over its arguments.
 *
 * A NULL where something is expected is ISAMAP_USAGE (NULL, 0, "" or NAN from calls without a
 * status). When memory ends a call returns ISAMAP_RESOURCES and the context can be used on; what the
 * call held outside its own blocks at that moment is not given back. Contexts, and code, belong to
 * one thread at a time; different ones do not know of each other.
 *
 *     isamap *im = isamap_open();
 *     isamap_option(im, "machine", "host");
 *     isamap_code *f = isamap_load(im, "gmm.isam");
 *     void *args[3] = {a, b, c};                     in, out, inout and const buffers, in the
 * program's order, row-major isamap_code_prepare(f, args); isamap_code_run(f, args, 1);
 *     isamap_code_free(f), isamap_close(im);
 */
#ifndef ISAMAP_H
#define ISAMAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define ISAMAP_API __attribute__((visibility("default")))

typedef struct isamap isamap;
typedef struct isamap_code isamap_code;

enum isamap_status {
    ISAMAP_DONE = 0,
    ISAMAP_INPUT = 1,      /* a file or value is wrong: see the messages */
    ISAMAP_USAGE = 2,      /* no such option or value; an argument of the call is not usable */
    ISAMAP_NO_MAPPING = 3, /* isamap_map: nothing maps; option "strict": products on the fallback */
    ISAMAP_DEFECT = 4,     /* a defect in isamap */
    ISAMAP_VERIFY = 5,     /* the result differs from the interpreter's */
    ISAMAP_RESOURCES = 6   /* memory, or room on a disk, is used up; the context can be used on */
};

ISAMAP_API isamap *isamap_open(void);
ISAMAP_API void isamap_close(isamap *);

/* Names as the command's long options without dashes; value NULL switches on. "define" (-D),
 * "input", "param" may be given again and again; isamap_reset forgets all options. ISAMAP_USAGE
 * with a message (the only one then) when the name or the value is not known: nothing is set. */
ISAMAP_API int isamap_option(isamap *, const char *name, const char *value);
ISAMAP_API void isamap_reset(isamap *);

/* What the command of that name does (docs/command.md). PROGRAM is a path: .isam or .onnx. */
ISAMAP_API int isamap_check(isamap *, const char *file);
ISAMAP_API int isamap_map(isamap *, const char *program);
ISAMAP_API int isamap_compile(isamap *, const char *program, const char *out);
ISAMAP_API int isamap_run(isamap *, const char *program);
ISAMAP_API int isamap_sim(isamap *, const char *program);
/* Option "set": NAME=LOW..HIGH or NAME=V,V, again and again. `out`: .csv, and .svg beside it; or NULL. */
ISAMAP_API int isamap_sweep(isamap *, const char *program, const char *out);
ISAMAP_API int isamap_bench(isamap *, const char *program); /* or a suite: .csv */
ISAMAP_API int isamap_show(isamap *, const char *file, const char *out);
ISAMAP_API int isamap_new_machine(isamap *, const char *name, const char *out); /* out NULL: NAME.xml */
ISAMAP_API int isamap_calibrate(isamap *, const char *out); /* out NULL: the user's own folder */

/* What a call that takes long is doing: "planning", or "3/24 sq128: running". For a signal handler of
 * the thread that called; "" when there is no call. */
ISAMAP_API const char *isamap_doing(const isamap *);

ISAMAP_API const char *isamap_result(const isamap *);   /* of the last call; valid until the next */
ISAMAP_API const char *isamap_messages(const isamap *); /* errors and warnings of the last call */
/* A number of the last result by its JSON path: "cycles", "macs_on.fallback". NAN where there is
 * none. */
ISAMAP_API double isamap_number(const isamap *, const char *path);
/* Names below an object of the last result, "macs_on": the i-th, or NULL. */
ISAMAP_API const char *isamap_key(const isamap *, const char *path, int i);

/* Code that runs in this process. NULL: see isamap_messages. The code outlives the context. */
ISAMAP_API isamap_code *isamap_load(isamap *, const char *program);
ISAMAP_API void isamap_code_free(isamap_code *);
ISAMAP_API int isamap_code_arguments(const isamap_code *);
/* The program's name of argument i; bytes and is_output may be NULL. NULL: there is no such argument. */
ISAMAP_API const char *isamap_code_argument(const isamap_code *, int i, size_t *bytes,
                                            int *is_output);
/* The three calls below say in isamap_code_messages what was wrong (valid until the next of them).
 * ISAMAP_USAGE: an argument is NULL, a name or a number of threads is not usable, a run without
 * prepare.
 *
 * Once, and when a const argument changed; a model's weights are its own: their args may be NULL. */
ISAMAP_API int isamap_code_prepare(isamap_code *, void *const *args);
/* A size that the program leaves open (T=0..4096 without -D), for the runs that follow; at first the
 * largest. Arrays whose first dimension it is need as many rows only. ISAMAP_INPUT: outside its
 * range; ISAMAP_USAGE: there is none of that name. The size stays as it was. */
ISAMAP_API int isamap_code_size(isamap_code *, const char *name, int64_t value);
ISAMAP_API int isamap_code_run(isamap_code *, void *const *args, int threads); /* 1 to 1024 threads */
ISAMAP_API const char *isamap_code_messages(const isamap_code *);

#ifdef __cplusplus
}
#endif
#endif
