/* The words of the command line: a table of commands, a table of options, a table of exit statuses.
 * Parsing, messages, --help, the man page, shell completion and docs/command.md read them; nothing
 * else says them again. */
#ifndef ISAMAP_COMMAND_OPTIONS_H
#define ISAMAP_COMMAND_OPTIONS_H

#include "ir/arena.h"
#include <stdbool.h>

/* identifier, name */
#define ISAMAP_COMMANDS(X)                                                                         \
    X(CHECK, "check")                                                                              \
    X(MAP, "map")                                                                                  \
    X(COMPILE, "compile")                                                                          \
    X(RUN, "run")                                                                                  \
    X(SIM, "sim")                                                                                  \
    X(SWEEP, "sweep")                                                                              \
    X(BENCH, "bench")                                                                              \
    X(SHOW, "show")                                                                                \
    X(NEW_MACHINE, "new-machine")                                                                  \
    X(CALIBRATE, "calibrate")

enum command_id {
#define COMMAND_ID(id, name) COMMAND_##id,
    ISAMAP_COMMANDS(COMMAND_ID)
#undef COMMAND_ID
        COMMANDS
};

enum command_files { FILES_NONE, FILES_ONE, FILES_MANY };

struct command {
    const char *name;
    const char *arguments; /* "PROGRAM -m MACHINE" */
    enum command_files files;
    const char *suffixes; /* of its files: "isam onnx" */
    bool needs_out;       /* -o must be given */
    unsigned statuses;    /* bit n: it may end with exit status n */
    const char *summary;  /* one line */
    const char *about;    /* paragraphs, '\n' between them */
    const char *examples; /* one a line */
};

/* What stands behind an option and where it is kept. */
enum option_kind {
    OPTION_SWITCH, /* bool; no value */
    OPTION_TEXT,   /* const char *, as are the next four */
    OPTION_FILE,
    OPTION_FOLDER,
    OPTION_MACHINE,
    OPTION_WORDS,     /* one of those that `word` names */
    OPTION_PAIR,      /* struct pairs: NAME=VALUE, again and again */
    OPTION_PAIR_FILE, /* the same, VALUE is a file */
    OPTION_COUNT,     /* int, from `least` to `most` */
    OPTION_LONG,      /* int64_t */
    OPTION_REAL,      /* double, from `least` to `most` */
    OPTION_COUNTS,    /* thread_count, nthreads, threads: numbers with commas between */
    OPTION_LATENCIES, /* LOW..HIGH */
};

struct option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t at; /* in struct options; NOT_STORED: the command's own, no option of the library */
    double least, most;
    const char *value;          /* "NAME=VALUE"; NULL for a switch */
    unsigned commands;          /* bit COMMAND_x: it applies there; 0: the library alone has it */
    const char *(*word)(int i); /* OPTION_WORDS: the i-th; NULL behind the last */
    const char *help;
};

#define NOT_STORED ((size_t)-1)

extern const struct command command_table[COMMANDS];

/* An option that means something else to another command stands again, with that command. The last
 * has no name. */
extern const struct option option_table[];

/* The first of that name that applies to the command; COMMANDS: to any. NULL: there is none. */
const struct option *option_find(const char *name, int command);
const struct option *option_letter(char letter, int command);
int command_find(const char *name);         /* COMMANDS: there is none */
unsigned option_commands(const char *name); /* of all that are called so */

/* Stores the value. False: it is not usable, and `expected` says what is. */
struct options;
bool option_store(struct options *, struct arena *, const struct option *, const char *value,
                  struct text *expected);

const char *status_text(int status);

/* ---- what is printed from the tables (help.c, help_shell.c) ---- */
void help_overview(struct text *);
void help_command(struct text *, int command);
void help_man(struct text *, const char *version);      /* isamap(1), in roff's macros of man(7) */
bool help_completion(struct text *, const char *shell); /* bash or zsh; false: another */
void help_options_table(struct text *);                 /* Markdown */
/* "unknown option", "… is for `map`": what is wrong with an argument that names an option. */
void explain_option(struct text *, const char *argument, int command);
void explain_command(struct text *, const char *name);

#endif
