/* The command: words to calls of isamap.h, by the tables of options.h. */
#include "command/guard.h"
#include "isamap.h"
#include "command/options.h"
#include "command/progress.h"
#include "command/report.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FILES = 256 };

struct line {
    isamap *im;
    int command;
    const char *file[MOST_FILES];
    int nfiles;
    const char *out;
    bool help, json;
};

/* Prints and frees the text. */
static int print(FILE *to, struct text *t, int status) {
    fputs(t->at ? t->at : "", to);
    text_free(t);
    return status;
}

/* With --json as every error is: an object on standard output, the words on standard error. */
static int usage_error(bool json, struct text *t) {
    struct report r;
    report_init(&r);
    if (json) report_error(&r, ISAMAP_USAGE, t->at);
    if (json) fputs(r.json.at, stdout);
    report_free(&r);
    fputs("isamap: ", stderr);
    text_append(t, "\n", 1);
    return print(stderr, t, ISAMAP_USAGE);
}

/* ---- words to options and files ---- */

/* The option of -Dx, -D x, --name x or --name=x; *value: what stands in the same word, or NULL. */
static const struct option *option_of(const char *word, int command, const char **value) {
    char name[64];
    *value = NULL;
    if (word[1] != '-') {
        if (word[2]) *value = word + 2;
        return option_letter(word[1], command);
    }
    size_t n = strcspn(word + 2, "=");
    if (n >= sizeof name) return NULL;
    memcpy(name, word + 2, n);
    name[n] = 0;
    if (word[2 + n]) *value = word + 3 + n;
    return option_find(name, command);
}

static int set_option(struct line *l, const struct option *o, const char *value) {
    struct text t = {0};
    if (o->at == NOT_STORED && o->kind == OPTION_SWITCH) {
        l->help = true;
    } else if (o->at == NOT_STORED && !*value) {
        text_printf(&t, "--%s '': expected %s", o->name, o->value);
        return usage_error(l->json, &t);
    } else if (o->at == NOT_STORED) {
        l->out = value;
    } else if (isamap_option(l->im, o->name, value) != ISAMAP_DONE) {
        const char *said = isamap_messages(l->im);
        if (strncmp(said, "isamap: ", 8) == 0) said += 8;
        text_append(&t, said, strcspn(said, "\n"));
        return usage_error(l->json, &t);
    }
    return ISAMAP_DONE;
}

static int add_file(struct line *l, const char *word) {
    struct text t = {0};
    if (l->nfiles < MOST_FILES) return l->file[l->nfiles++] = word, ISAMAP_DONE;
    text_printf(&t, "more than %d files from '%s' on", MOST_FILES, word);
    return usage_error(l->json, &t);
}

static int parse(struct line *l, int argc, char **argv) {
    bool options = true;
    int status = ISAMAP_DONE;
    for (int i = 0; i < argc && status == ISAMAP_DONE && !l->help; i++) {
        const char *value;
        struct text t = {0};
        if (!options || argv[i][0] != '-' || !argv[i][1]) {
            status = add_file(l, argv[i]);
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            options = false;
            continue;
        }
        const struct option *o = option_of(argv[i], l->command, &value);
        if (!o) {
            explain_option(&t, argv[i], l->command);
            return usage_error(l->json, &t);
        }
        if (!value && o->value && i + 1 == argc) {
            text_printf(&t, "no value after '%s', expected %s", argv[i], o->value);
            return usage_error(l->json, &t);
        }
        if (!value && o->value) value = argv[++i];
        status = set_option(l, o, value);
    }
    return status;
}

/* ---- the call ---- */

/* An image is shown on standard output when there is no OUT. */
static bool is_image(const char *file) {
    size_t n = strlen(file);
    return n > 4 && strcmp(file + n - 4, ".bin") == 0;
}

static bool lacks_out(const struct line *l) {
    if (l->out) return false;
    return command_table[l->command].needs_out ||
           (l->command == COMMAND_SHOW && !is_image(l->file[0]));
}

/* The number of files and -o are as the command wants them. */
static int check_line(const struct line *l) {
    const struct command *c = &command_table[l->command];
    struct text t = {0};
    if (c->files != FILES_NONE && l->nfiles == 0)
        text_printf(&t, "no %s given",
                    c->files == FILES_MANY              ? "file"
                    : l->command == COMMAND_SHOW        ? "file"
                    : l->command == COMMAND_NEW_MACHINE ? "name"
                                                        : "program");
    else if (c->files == FILES_NONE && l->nfiles)
        text_printf(&t, "'%s' is too much", l->file[0]);
    else if (c->files == FILES_ONE && l->nfiles > 1)
        text_printf(&t, "'%s' is too much after '%s'", l->file[1], l->file[0]);
    else if (lacks_out(l))
        text_printf(&t, "no -o given");
    if (!t.n) return ISAMAP_DONE;
    text_printf(&t, ", expected: isamap %s %s\nfor instance: %.*s", c->name, c->arguments,
                (int)strcspn(c->examples, "\n"), c->examples);
    return usage_error(l->json, &t);
}

static int call(isamap *im, int command, const char *file, const char *out) {
    switch ((enum command_id)command) {
    case COMMAND_CHECK:
        return isamap_check(im, file);
    case COMMAND_MAP:
        return isamap_map(im, file);
    case COMMAND_COMPILE:
        return isamap_compile(im, file, out);
    case COMMAND_RUN:
        return isamap_run(im, file);
    case COMMAND_SIM:
        return isamap_sim(im, file);
    case COMMAND_SWEEP:
        return isamap_sweep(im, file, out);
    case COMMAND_BENCH:
        return isamap_bench(im, file);
    case COMMAND_SHOW:
        return isamap_show(im, file, out);
    case COMMAND_NEW_MACHINE:
        return isamap_new_machine(im, file, out);
    case COMMAND_CALIBRATE:
        return isamap_calibrate(im, out);
    case COMMANDS:
        break;
    }
    return ISAMAP_USAGE;
}

/* The worst status of all files. */
static int work(struct line *l) {
    int status = ISAMAP_DONE;
    if (command_table[l->command].files == FILES_NONE) l->file[l->nfiles++] = "";
    for (int i = 0; i < l->nfiles; i++) {
        progress_begin(l->im);
        int one = call(l->im, l->command, l->file[i], l->out);
        progress_end();
        if (one > status) status = one;
        fputs(isamap_result(l->im), stdout);
        fputs(isamap_messages(l->im), stderr);
    }
    return status;
}

/* ---- main ---- */

/* Each plan's simulation takes and frees much of the same memory: fresh pages from the system would
 * be a tenth of the compile time. */
static void keep_memory(void) {
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

static bool is(const char *word, const char *other) {
    return strcmp(word, other) == 0;
}

/* `isamap --version`, `isamap help [COMMAND]` and what is printed from the tables; -1: none. */
static int answer(int argc, char **argv) {
    struct text t = {0};
    const char *second = argc > 2 ? argv[2] : NULL;
    if (is(argv[1], "--version")) {
        text_printf(&t, "isamap " ISAMAP_VERSION "\n");
    } else if (is(argv[1], "--man")) {
        help_man(&t, ISAMAP_VERSION);
    } else if (is(argv[1], "--completion")) {
        if (second && help_completion(&t, second)) return print(stdout, &t, ISAMAP_DONE);
        text_printf(&t, "--completion '%s': expected bash or zsh", second ? second : "");
        return usage_error(false, &t);
    } else if (is(argv[1], "--help") || is(argv[1], "-h") || is(argv[1], "help")) {
        bool of_command = second && *second != '-';
        if (of_command && command_find(second) == COMMANDS)
            return explain_command(&t, second), usage_error(false, &t);
        if (of_command)
            help_command(&t, command_find(second));
        else
            help_overview(&t);
    } else {
        return -1;
    }
    return print(stdout, &t, ISAMAP_DONE);
}

static int command_line(int argc, char **argv) {
    struct text t = {0};
    if (argc < 2) return help_overview(&t), print(stderr, &t, ISAMAP_USAGE);
    int status = answer(argc, argv);
    if (status >= 0) return status;
    struct line l = {.command = command_find(argv[1])};
    for (int i = 2; i < argc; i++) l.json |= is(argv[i], "--json");
    if (l.command == COMMANDS) return explain_command(&t, argv[1]), usage_error(l.json, &t);
    l.im = isamap_open();
    if (!l.im) return fputs("isamap: not enough memory\n", stderr), ISAMAP_RESOURCES;
    status = parse(&l, argc - 2, argv + 2);
    if (status == ISAMAP_DONE && l.help) {
        help_command(&t, l.command);
        print(stdout, &t, ISAMAP_DONE);
    } else if (status == ISAMAP_DONE) {
        status = check_line(&l);
        if (status == ISAMAP_DONE) status = work(&l);
    }
    isamap_close(l.im);
    return status;
}

int main(int argc, char **argv) {
    keep_memory();
    guard_install();
    return guard_finish(command_line(argc, argv));
}
