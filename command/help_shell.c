/* The man page and the shells' completion, from the tables of options.h. */
#include "command/options.h"
#include "command/isamap_int.h"
#include "ir/nearest.h"

#include <string.h>

/* ---- man ---- */

/* Text for roff: minus signs that can be copied, no control character at the beginning of a line.
 */
static void roff(struct text *t, const char *s) {
    bool begins = !t->n || t->at[t->n - 1] == '\n';
    for (; *s; s++) {
        if (begins && (*s == '.' || *s == '\'')) text_printf(t, "\\&");
        begins = *s == '\n';
        if (*s == '\\')
            text_printf(t, "\\e");
        else if (*s == '-')
            text_printf(t, "\\-");
        else
            text_append(t, s, 1);
    }
}

static void roff_line(struct text *t, const char *macro, const char *s) {
    text_printf(t, "%s%s", macro, *macro ? " " : "");
    roff(t, s);
    text_append(t, "\n", 1);
}

static void roff_commands(struct text *t) {
    for (int c = 0; c < COMMANDS; c++) {
        const struct command *k = &command_table[c];
        text_printf(t, ".TP\n.B isamap ");
        roff(t, k->name);
        text_append(t, " ", 1);
        roff(t, k->arguments);
        text_append(t, "\n", 1);
        roff_line(t, "", k->about);
        text_printf(t, ".RS\n.PP\n.nf\n");
        roff_line(t, "", k->examples);
        text_printf(t, ".fi\n.RE\n");
    }
}

static void roff_options(struct text *t) {
    for (const struct option *o = option_table; o->name; o++) {
        if (!o->commands) continue;
        text_printf(t, ".TP\n");
        if (o->letter)
            text_printf(t, ".BR \\-%c , \" \\-\\-", o->letter);
        else
            text_printf(t, ".B \"\\-\\-");
        roff(t, o->name);
        if (o->value) text_append(t, " ", 1);
        roff(t, o->value ? o->value : "");
        text_printf(t, "\"\n");
        roff(t, o->help);
        for (int i = 0; o->word && o->word(i); i++) {
            text_printf(t, i ? ", " : ": ");
            roff(t, o->word(i));
        }
        if (o->commands != (1u << COMMANDS) - 1) {
            text_printf(t, ". For");
            for (int c = 0, n = 0; c < COMMANDS; c++)
                if (o->commands & 1u << c) {
                    text_printf(t, n++ ? ", " : " ");
                    roff(t, command_table[c].name);
                }
        }
        text_printf(t, ".\n");
    }
}

void help_man(struct text *t, const char *version) {
    static const char *const environment[][2] = {
        {"ISAMAP_MACHINE_PATH", "folders with machine files, with colons between; before "
                                "./machines and the installed ones"},
        {"ISAMAP_PARAMETERS", "the folder with measured parameters of machines; else "
                              "$XDG_CONFIG_HOME/isamap or ~/.config/isamap"},
        {"ISAMAP_CACHE", "the folder for schedules and code of earlier calls, and for models in "
                         "RTL; else $XDG_CACHE_HOME/isamap or ~/.cache/isamap"},
        {"ISAMAP_CACHE_SIZE", "bytes that schedules and code may take there, with K, M or G (1G); "
                              "0: none are kept"},
        {"ISAMAP_PEER_PATH", "the folder with the modules of `bench`'s peers"},
        {"CC", "the C compiler (cc)"},
        {"TMPDIR", "the folder for temporary files (/tmp)"}};
    text_printf(t, ".TH ISAMAP 1 \"\" \"isamap %s\" \"User Commands\"\n", version);
    roff_line(t, ".SH", "NAME");
    roff_line(t, "",
              "isamap - compile deep-learning programs for hardware known from a machine file");
    roff_line(t, ".SH", "SYNOPSIS");
    text_printf(t, ".B isamap\n.I COMMAND\n.RI ... \" \" [options]\n.br\n.B isamap\n.I COMMAND\n.B "
                   "\\-\\-help\n");
    roff_line(t, ".SH", "DESCRIPTION");
    roff_line(
        t, "",
        "PROGRAM is a kernel (.isam) or an ONNX model (.onnx). MACHINE is a file, a name found "
        "in $ISAMAP_MACHINE_PATH, ./machines or the installed share, or 'host', the best "
        "machine file that fits this CPU. Results go to standard output, the rest to standard "
        "error. Options stand anywhere behind the command.");
    roff_line(t, ".SH", "COMMANDS");
    roff_commands(t);
    roff_line(t, ".SH", "OPTIONS");
    roff_options(t);
    roff_line(t, ".SH", "EXIT STATUS");
    for (int i = 0; *status_text(i); i++) {
        text_printf(t, ".TP\n%d\n", i);
        roff_line(t, "", status_text(i));
    }
    roff_line(t, ".SH", "ENVIRONMENT");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++) {
        text_printf(t, ".TP\n");
        roff_line(t, ".B", environment[i][0]);
        roff_line(t, "", environment[i][1]);
    }
}

/* ---- completion ---- */

static void list_names(struct text *t, int command) {
    for (const struct option *o = option_table; o->name; o++) {
        if (!(o->commands & 1u << command)) continue;
        text_printf(t, " --%s", o->name);
        if (o->letter) text_printf(t, " -%c", o->letter);
    }
}

static void list_words(struct text *t, const struct option *o) {
    for (int i = 0; o->word && o->word(i); i++) text_printf(t, "%s%s", i ? " " : "", o->word(i));
}

/* What stands behind an option, once for each name. */
static void bash_values(struct text *t) {
    for (const struct option *o = option_table; o->name; o++) {
        if (!o->value || option_find(o->name, COMMANDS) != o) continue;
        text_printf(t, "    --%s", o->name);
        if (o->letter) text_printf(t, " | -%c", o->letter);
        text_printf(t, ") ");
        switch (o->kind) {
        case OPTION_MACHINE:
            text_printf(t, "_isamap_files xml; COMPREPLY+=($(compgen -W \"$(isamap --completion "
                           "machines 2>/dev/null)\" -- \"$cur\"))");
            break;
        case OPTION_WORDS:
            text_printf(t, "COMPREPLY=($(compgen -W '");
            list_words(t, o);
            text_printf(t, "' -- \"$cur\"))");
            break;
        case OPTION_FOLDER:
            text_printf(t, "COMPREPLY=($(compgen -d -- \"$cur\"))");
            break;
        case OPTION_FILE:
            text_printf(t, "COMPREPLY=($(compgen -f -- \"$cur\"))");
            break;
        default:
            text_printf(t, ":");
        }
        text_printf(t, "; return ;;\n");
    }
}

static void bash(struct text *t) {
    text_printf(t, "# completion of isamap in bash; made by `isamap --completion bash`\n"
                   "_isamap_files() {\n"
                   "  local file suffix IFS=$'\\n'\n"
                   "  for file in $(compgen -f -- \"$cur\"); do\n"
                   "    [ -d \"$file\" ] && COMPREPLY+=(\"$file\")\n"
                   "    for suffix in \"$@\"; do [ \"${file%%.$suffix}\" != \"$file\" ] && "
                   "COMPREPLY+=(\"$file\"); done\n"
                   "  done\n"
                   "}\n"
                   "_isamap() {\n"
                   "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                   "  COMPREPLY=()\n"
                   "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                   "    COMPREPLY=($(compgen -W 'help --help --version --man --completion");
    for (int c = 0; c < COMMANDS; c++) text_printf(t, " %s", command_table[c].name);
    text_printf(t, "' -- \"$cur\"))\n    return\n  fi\n  case $prev in\n");
    bash_values(t);
    text_printf(t, "  esac\n  local options= suffixes=\n  case ${COMP_WORDS[1]} in\n");
    for (int c = 0; c < COMMANDS; c++) {
        text_printf(t, "    %s) suffixes='%s' options='", command_table[c].name,
                    command_table[c].suffixes);
        list_names(t, c);
        text_printf(t, "' ;;\n");
    }
    text_printf(t, "  esac\n"
                   "  case $cur in\n"
                   "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
                   "    *) _isamap_files $suffixes ;;\n"
                   "  esac\n"
                   "}\n"
                   "complete -o filenames -F _isamap isamap\n");
}

/* Inside '[…]' of _arguments, in single quotes. */
static void zsh_text(struct text *t, const char *s) {
    for (; *s; s++) {
        if (*s == '\'')
            text_printf(t, "'\\''");
        else if (strchr("[]:\\", *s))
            text_printf(t, "\\%c", *s);
        else
            text_append(t, s, 1);
    }
}

static void zsh_option(struct text *t, const struct option *o) {
    bool again = o->kind == OPTION_PAIR || o->kind == OPTION_PAIR_FILE;
    text_printf(t, " \\\n        ");
    if (again)
        text_printf(t, "'*'");
    else if (o->letter)
        text_printf(t, "'(-%c --%s)'", o->letter, o->name);
    if (o->letter)
        text_printf(t, "{-%c,--%s}'[", o->letter, o->name);
    else
        text_printf(t, "'--%s[", o->name);
    zsh_text(t, o->help);
    text_printf(t, "]");
    if (o->value) {
        text_printf(t, ":");
        zsh_text(t, o->value);
        text_printf(t, ":");
    }
    if (o->kind == OPTION_MACHINE) text_printf(t, "_isamap_machines");
    if (o->kind == OPTION_FILE) text_printf(t, "_files");
    if (o->kind == OPTION_FOLDER) text_printf(t, "_files -/");
    if (o->word) {
        text_printf(t, "(");
        list_words(t, o);
        text_printf(t, ")");
    }
    text_printf(t, "'");
}

static void zsh(struct text *t) {
    text_printf(t, "#compdef isamap\n# made by `isamap --completion zsh`\n"
                   "_isamap_machines() {\n"
                   "  local -a names\n"
                   "  names=(${(f)\"$(isamap --completion machines 2>/dev/null)\"})\n"
                   "  _alternative \"machines:machine:(${names})\" 'files:file:_files -g "
                   "\"*.xml\"'\n"
                   "}\n"
                   "_isamap() {\n"
                   "  local -a commands\n"
                   "  commands=(");
    for (int c = 0; c < COMMANDS; c++) {
        text_printf(t, "\n    '%s:", command_table[c].name);
        zsh_text(t, command_table[c].summary);
        text_printf(t, "'");
    }
    text_printf(t, ")\n"
                   "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
                   "  local command=$words[2]\n"
                   "  (( CURRENT-- ))\n"
                   "  shift words\n"
                   "  case $command in\n");
    for (int c = 0; c < COMMANDS; c++) {
        char suffixes[64];
        snprintf(suffixes, sizeof suffixes, "%s", command_table[c].suffixes);
        for (char *s = suffixes; *s; s++)
            if (*s == ' ') *s = '|';
        text_printf(t, "    %s)\n      _arguments -s", command_table[c].name);
        for (const struct option *o = option_table; o->name; o++)
            if (o->commands & 1u << c) zsh_option(t, o);
        if (*suffixes) text_printf(t, " \\\n        '*:file:_files -g \"*.(%s)\"'", suffixes);
        text_printf(t, " ;;\n");
    }
    text_printf(t, "  esac\n}\n_isamap \"$@\"\n");
}

/* The names that -m knows now, which the shells ask for. */
static void machines(struct text *t) {
    struct arena a;
    struct names known = {0};
    arena_init(&a);
    machine_names(&a, &known);
    for (int i = 0; i < known.n; i++) text_printf(t, "%s\n", known.at[i]);
    arena_free(&a);
}

bool help_completion(struct text *t, const char *shell) {
    if (strcmp(shell, "bash") == 0)
        bash(t);
    else if (strcmp(shell, "zsh") == 0)
        zsh(t);
    else if (strcmp(shell, "machines") == 0)
        machines(t);
    else
        return false;
    return true;
}
