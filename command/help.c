/* What the tables of options.h say to people and shells: --help, what is wrong with a word, and the
 * table of docs/command.md. */
#include "command/options.h"
#include "command/isamap_int.h"
#include "ir/nearest.h"

#include <string.h>

enum { WIDTH = 80, COLUMN = 28 };

/* ---- lines ---- */

static void spaces(struct text *t, int n) {
    text_printf(t, "%*s", n, "");
}

/* Words from column `at` on; the next lines begin at `indent`. '\n' begins a line too. */
static void wrap(struct text *t, const char *words, int at, int indent) {
    bool first = true;
    while (*words) {
        size_t n = strcspn(words, " \n");
        if (!first && (at + 1 + (int)n > WIDTH || words[-1] == '\n')) {
            text_append(t, "\n", 1);
            spaces(t, indent);
            at = indent;
        } else if (!first) {
            text_append(t, " ", 1);
            at++;
        }
        text_append(t, words, n);
        at += (int)n;
        words += n + (words[n] != 0);
        first = false;
    }
    text_append(t, "\n", 1);
}

static void lines_indented(struct text *t, const char *lines, int indent) {
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        spaces(t, indent);
        text_append(t, lines, n);
        text_append(t, "\n", 1);
        lines += n + (lines[n] != 0);
    }
}

/* "-m, --machine NAME" */
static void spell(struct text *t, const struct option *o) {
    if (o->letter) text_printf(t, "-%c, ", o->letter);
    text_printf(t, "--%s", o->name);
    if (o->value) text_printf(t, " %s", o->value);
}

/* "(exact, reorders)" after the help of an option of words. */
static void say_help(struct text *t, const struct option *o) {
    text_printf(t, "%s", o->help);
    for (int i = 0; o->word && o->word(i); i++) text_printf(t, "%s%s", i ? ", " : ": ", o->word(i));
}

static void option_line(struct text *t, const struct option *o) {
    struct text left = {0}, help = {0};
    text_printf(&left, "  %s", o->letter ? "" : "    ");
    spell(&left, o);
    say_help(&help, o);
    text_append(t, left.at, left.n);
    if (left.n + 2 > COLUMN) {
        text_append(t, "\n", 1);
        spaces(t, COLUMN);
    } else {
        spaces(t, COLUMN - (int)left.n);
    }
    wrap(t, help.at, COLUMN, COLUMN);
    text_free(&left);
    text_free(&help);
}

static void say_statuses(struct text *t, unsigned which) {
    struct text s = {0};
    for (int i = 0; *status_text(i); i++)
        if (which & 1u << i) text_printf(&s, "%s%d %s", i ? ", " : "", i, status_text(i));
    wrap(t, s.at, 13, 13);
    text_free(&s);
}

/* ---- --help ---- */

void help_overview(struct text *t) {
    text_printf(t, "usage: isamap COMMAND ... [options]\n"
                   "       isamap COMMAND --help        what it does, its options, an example\n\n");
    for (int c = 0; c < COMMANDS; c++)
        text_printf(t, "  %-13s%s\n", command_table[c].name, command_table[c].summary);
    text_printf(t, "\n");
    wrap(t,
         "PROGRAM is a kernel (.isam) or an ONNX model (.onnx). MACHINE is a file, a name found in "
         "$ISAMAP_MACHINE_PATH, ./machines or the installed share, or 'host' (the default): the "
         "best machine file that fits this CPU.",
         0, 0);
    text_printf(t, "\nfor example:\n");
    for (int c = COMMAND_MAP; c <= COMMAND_SIM; c++) {
        const char *line = command_table[c].examples;
        text_printf(t, "  %.*s\n", (int)strcspn(line, "\n"), line);
    }
    text_printf(t, "\nResults go to standard output, the rest to standard error.\n\n"
                   "exit status: ");
    say_statuses(t, ~0u);
    text_append(t, "\n", 1);
    wrap(t,
         "isamap --version prints the version, --man a manual page, --completion bash (or zsh) "
         "what completes its words in that shell.",
         0, 0);
}

void help_command(struct text *t, int command) {
    const struct command *c = &command_table[command];
    text_printf(t, "usage: isamap %s %s [options]\n\n", c->name, c->arguments);
    wrap(t, c->about, 0, 0);
    text_printf(t, "\n");
    for (const struct option *o = option_table; o->name; o++)
        if (o->commands & 1u << command) option_line(t, o);
    text_printf(t, "\nfor example:\n");
    lines_indented(t, c->examples, 2);
    text_printf(t, "\nexit status: ");
    say_statuses(t, c->statuses);
}

/* ---- what is wrong with a word ---- */

static void list_commands(struct text *t, unsigned which) {
    for (int c = 0, n = 0; c < COMMANDS; c++)
        if (which & 1u << c) text_printf(t, "%s'%s'", n++ ? ", " : "", command_table[c].name);
}

void explain_option(struct text *t, const char *argument, int command) {
    const char *name = argument + strspn(argument, "-"), *known[64];
    size_t n = strcspn(name, "=");
    char wanted[64];
    int count = 0;
    snprintf(wanted, sizeof wanted, "%.*s", (int)n, name);
    const struct option *o = option_find(wanted, COMMANDS);
    if (!o && !wanted[1]) o = option_letter(*wanted, COMMANDS);
    if (o && option_commands(o->name)) {
        text_printf(t, "--%s is no option of '%s', but of ", o->name,
                    command < COMMANDS ? command_table[command].name : "isamap");
        list_commands(t, option_commands(o->name));
        return;
    }
    for (const struct option *k = option_table; k->name && count < 64; k++)
        if (command == COMMANDS || k->commands & 1u << command) known[count++] = k->name;
    const char *meant = name_meant(wanted, known, count);
    text_printf(t, "no option '%.*s'", (int)(name - argument + (ptrdiff_t)n), argument);
    if (meant) text_printf(t, ", perhaps '--%s'", meant);
    if (command < COMMANDS)
        text_printf(t, "; 'isamap %s --help' lists its options", command_table[command].name);
}

void explain_command(struct text *t, const char *name) {
    const char *known[COMMANDS];
    for (int c = 0; c < COMMANDS; c++) known[c] = command_table[c].name;
    const char *meant = name_meant(name, known, COMMANDS);
    text_printf(t, "no command '%s'", name);
    if (meant) text_printf(t, ", perhaps '%s'", meant);
    text_printf(t, "; 'isamap --help' lists commands");
}

/* ---- docs/command.md ---- */

static void escape_bar(struct text *t, const char *s) {
    for (; *s; s++) text_printf(t, *s == '|' ? "\\|" : "%c", *s);
}

void help_options_table(struct text *t) {
    text_printf(t, "| option | commands | what |\n|---|---|---|\n");
    for (const struct option *o = option_table; o->name; o++) {
        struct text words = {0};
        if (!o->commands) continue;
        text_printf(t, "| `");
        spell(t, o);
        text_printf(t, "` | ");
        if (o->commands == (1u << COMMANDS) - 1) text_printf(t, "all");
        for (int c = 0, n = 0; c < COMMANDS && o->commands != (1u << COMMANDS) - 1; c++)
            if (o->commands & 1u << c)
                text_printf(t, "%s%s", n++ ? " " : "", command_table[c].name);
        text_printf(t, " | ");
        say_help(&words, o);
        escape_bar(t, words.at);
        text_printf(t, " |\n");
        text_free(&words);
    }
}
