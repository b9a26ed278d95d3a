#include "backends/conform.h"
#include "backends/conform_int.h"
#include "ir/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A step is one text of one instruction (llvm, then c), or the texts without operands; each is
 * tried in the child process, which tells the parent in lines: "S" step starts, "R" a text was
 * read, "X" it was executed, "N" note, "E" file TAB line TAB message. */
struct conform {
    const struct machine *machine;
    bool execute;
    FILE *out;
};

/* A schedule of this instruction alone: what features, libraries and headers are taken from. */
static void probe_schedule(struct schedule *s, const struct machine *m, struct program *p,
                           struct issue_node *issue, struct node *node, int instr) {
    *s = (struct schedule){.machine = m, .machine_name = m->name, .program = p};
    *issue = (struct issue_node){.instr = instr};
    *node = (struct node){.kind = NODE_ISSUE, .issue = issue};
    s->run = (struct section){node, instr >= 0};
}

enum { STEP_SECONDS = 60, LEAST_RUNS = 8 };

/* ---- in the child ---- */
static void tell_error(struct conform *c, const char *file, int line, const char *text) {
    fprintf(c->out, "E%s\t%d\t", file ? file : "", line);
    for (; *text; text++) fputc(*text == '\n' ? ' ' : *text, c->out);
    fputc('\n', c->out);
}

/* Errors without a place get the emit's. */
static void tell_diags(struct conform *c, const struct diags *d, const struct place_in_file *at) {
    for (int i = 0; i < d->n; i++) {
        bool placed = d->at[i].file && d->at[i].line;
        if (d->at[i].warning) continue;
        tell_error(c, placed ? d->at[i].file : at->file, placed ? d->at[i].line : at->line,
                   d->at[i].text);
    }
}

static bool lacks_library(const struct diags *d) {
    for (int i = 0; i < d->n; i++)
        if (strstr(d->at[i].text, "No such file or directory") ||
            strstr(d->at[i].text, "cannot find -l") || strstr(d->at[i].text, "is not installed"))
            return true;
    return false;
}

/* What a call alone cannot do. */
static const char *beyond(const struct machine *m, const struct instr *x, bool execute) {
    if (x->across >= 0) return "it moves across units";
    if (x->completes >= 0 && m->sync[x->completes].kind != SYNC_INTERLOCK)
        return "it completes through a sync";
    if (execute && x->nneeds) return "it needs a state";
    for (int o = 0; execute && o < x->noperands; o++) {
        int memory = x->operand[o].nmemories ? x->operand[o].memory[0] : m->home;
        enum pass pass = x->operand[o].has_pass ? x->operand[o].pass
                         : memory < 0           ? PASS_VALUE
                                                : m->memory[memory].pass;
        if (pass == PASS_NUMBER) return "an operand stays in the unit";
    }
    return NULL;
}

static bool compile_trials(struct arena *a, const struct schedule *s, const struct emit *e,
                           struct site **trial, int n, enum probe_depth depth, probe_function *out,
                           void **opened, const char **why, struct diags *d) {
    if (e->language == LANGUAGE_C) {
        struct text t = {0};
        bool good = true;
        c_probe_begin(a, &t, s);
        for (int i = 0; i < n && good; i++) good = c_probe_add(&t, trial[i], e, i, d);
        if (good && depth == PROBE_PARSE) *why = c_guard(a, t.at);
        good = good && (*why || c_probe_finish(a, &t, s, n, depth, out, opened, d));
        text_free(&t);
        return good;
    }
#if ISAMAP_WITH_LLVM
    struct probe *p = probe_open(s, depth, d);
    bool good = p;
    for (int i = 0; i < n && good; i++) good = probe_add(p, trial[i], e);
    good = good && probe_finish(p, out);
    *opened = p;
    return good;
#else
    return false;
#endif
}

static void close_trials(const struct emit *e, void *opened) {
    if (!opened) return;
    if (e->language == LANGUAGE_C) dlclose(opened);
#if ISAMAP_WITH_LLVM
    else
        probe_close(opened);
#endif
}

static void try_trials(struct conform *c, struct arena *a, const struct schedule *s,
                       const struct instr *x, const struct emit *e, bool execute) {
    struct site *trial[MAX_TRIALS];
    probe_function call[MAX_TRIALS];
    struct diags d;
    void *opened = NULL;
    const char *language = language_name[e->language], *unread = NULL;
    enum probe_depth depth = !c->execute ? PROBE_PARSE : execute ? PROBE_LOAD : PROBE_COMPILE;
    diags_init(&d);
    int n = trials_make(a, c->machine, x, !execute, trial);
    bool good = n && compile_trials(a, s, e, trial, n, depth, call, &opened, &unread, &d);
    if (unread)
        fprintf(c->out, "N%s: %s not read without --execute: %s\n", x->id, language, unread);
    else if (good)
        fprintf(c->out, "R\n");
    if (!n)
        fprintf(c->out, "N%s: %s not tried: no legal sizes were found\n", x->id, language);
    else if (!good && lacks_library(&d))
        fprintf(c->out, "N%s: %s not tried: a library or header is missing\n", x->id, language);
    else if (!good)
        tell_diags(c, &d, &e->at);
    int runs = 0;
    for (; good && execute && (runs < n || runs < LEAST_RUNS); runs++) {
        const char *what = "";
        good = trial_run(a, trial[runs % n], call[runs % n], (uint64_t)(runs + runs / n), &what);
        if (!good)
            tell_error(c, e->at.file, e->at.line,
                       arena_printf(a, "the %s emit of '%s' does not do what its semantics say: %s",
                                    language, x->id, what));
    }
    if (good && execute) fprintf(c->out, "X\nN%s: %s executed %d times\n", x->id, language, runs);
    close_trials(e, opened);
    diags_free(&d);
}

static void try_instr(struct conform *c, int instr, enum language language) {
    const struct instr *x = &c->machine->instr[instr];
    const struct emit *e = instr_emit(x, language), *ahead = instr_ahead(x, language);
    struct arena a;
    struct schedule s;
    struct issue_node issue;
    struct node node;
    struct diags d;
    if (!e) return;
    arena_init(&a);
    diags_init(&d);
    struct program *p = program_new("probe");
    probe_schedule(&s, c->machine, p, &issue, &node, instr);
    const char *why = beyond(c->machine, x, false);
    if (why) {
        fprintf(c->out, "N%s: %s not tried: %s\n", x->id, language_name[language], why);
    } else {
        if (c->execute) why = beyond(c->machine, x, true);
        if (c->execute && !why && !features_ready(&s, &d)) why = "this processor lacks a feature";
        try_trials(c, &a, &s, x, e, c->execute && !why);
        if (ahead) try_trials(c, &a, &s, x, ahead, false);
        if (why)
            fprintf(c->out, "N%s: %s compiled, not executed: %s\n", x->id, language_name[language],
                    why);
    }
    program_free(p);
    diags_free(&d);
    arena_free(&a);
}

#if ISAMAP_WITH_LLVM
static bool add_texts(struct probe *p, const struct emit *e, int n) {
    for (int i = 0; i < n; i++)
        if (e[i].language == LANGUAGE_LLVM && !probe_add_plain(p, &e[i])) return false;
    return true;
}

/* Texts of syncs and configurations, before and after programs: compiled, with 1 for what is not
 * known. */
static void try_plain(struct conform *c) {
    const struct machine *m = c->machine;
    struct schedule s;
    struct issue_node issue;
    struct node node;
    struct diags d;
    diags_init(&d);
    struct program *program = program_new("probe");
    probe_schedule(&s, m, program, &issue, &node, -1);
    struct probe *p = probe_open(&s, c->execute ? PROBE_COMPILE : PROBE_PARSE, &d);
    bool good = p && add_texts(p, m->begin, m->nbegins) && add_texts(p, m->end, m->nends);
    for (int i = 0; i < m->nsyncs && good; i++)
        good = add_texts(p, m->sync[i].push_emit, m->sync[i].npush_emits) &&
               add_texts(p, m->sync[i].pop_emit, m->sync[i].npop_emits);
    for (int i = 0; i < m->nconfigures && good; i++)
        good = add_texts(p, m->configure[i].emit, m->configure[i].nemits);
    if (good) probe_finish(p, NULL);
    tell_diags(c, &d, &(struct place_in_file){m->file, 0});
    if (p) probe_close(p);
    program_free(program);
    diags_free(&d);
}
#endif

static int step_count(const struct machine *m) {
    return 1 + 2 * m->ninstrs;
}

static void child(const struct machine *m, bool execute, int from, int fd) {
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    struct conform c = {m, execute, fdopen(fd, "w")};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL);
    if (!freopen("/dev/null", "w", stderr) || !c.out) _exit(1);
    for (int step = from; step < step_count(m); step++) {
        fprintf(c.out, "S%d\n", step);
        fflush(c.out);
        alarm(STEP_SECONDS); /* a text that never ends is a crash too */
        if (step > 0) {
            enum language language = (step - 1) % 2 ? LANGUAGE_C : LANGUAGE_LLVM;
#if !ISAMAP_WITH_LLVM
            if (language == LANGUAGE_LLVM) continue;
#endif
            try_instr(&c, (step - 1) / 2, language);
        }
#if ISAMAP_WITH_LLVM
        else
            try_plain(&c);
#endif
    }
    fflush(c.out);
    _exit(0);
}

/* ---- in the parent ---- */
static void take_line(const struct machine *m, char *line, int *step, struct conformity *counts,
                      struct diags *diags, struct text *report) {
    size_t n = strlen(line);
    if (n && line[n - 1] == '\n') line[n - 1] = 0;
    if (*line == 'S') {
        *step = atoi(line + 1);
    } else if (*line == 'R') {
        counts->read++;
    } else if (*line == 'X') {
        counts->executed++;
    } else if (*line == 'N' && report) {
        text_printf(report, "%s\n", line + 1);
    } else if (*line == 'E') {
        char *tab = strchr(line, '\t'), *second = tab ? strchr(tab + 1, '\t') : NULL;
        if (!second) return;
        *tab = *second = 0;
        /* files outlive the diagnostics' user: the machine's own name where it is the same */
        const char *file =
            strcmp(line + 1, m->file) ? arena_strdup(&diags->arena, line + 1) : m->file;
        diag_line(diags, file, atoi(tab + 1), 0, "%s", second + 1);
    }
}

static void report_crash(const struct machine *m, int step, int status, struct diags *diags) {
    int instr = (step - 1) / 2;
    enum language language = (step - 1) % 2 ? LANGUAGE_C : LANGUAGE_LLVM;
    const char *how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit";
    const struct emit *e = step > 0 ? instr_emit(&m->instr[instr], language) : NULL;
    if (!e)
        diag_line(diags, m->file, 0, 0, "compiling the emits without operands crashed: %s", how);
    else
        diag_line(diags, e->at.file, e->at.line, 0,
                  "the %s emit of '%s' crashed when compiled or executed (%s), expected its "
                  "features in 'needs' and "
                  "accesses inside its operands",
                  language_name[language], m->instr[instr].id, how);
}

/* Runs the steps from `from` on; returns the next one to run, after the one that crashed. -1 after
 * reporting that nothing can run. */
static int run_child(const struct machine *m, bool execute, int from, struct conformity *counts,
                     struct diags *diags, struct text *report) {
    int fd[2], status = 0, step = from;
    char *line = NULL;
    size_t cap = 0;
    if (pipe(fd)) {
        diag_line(diags, m->file, 0, 0, "cannot start a process to try emits: %s", strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        child(m, execute, from, fd[1]);
    }
    close(fd[1]);
    FILE *in = fdopen(fd[0], "r");
    while (in && getline(&line, &cap, in) > 0) take_line(m, line, &step, counts, diags, report);
    free(line);
    if (in) fclose(in);
    if (pid < 0) {
        diag_line(diags, m->file, 0, 0, "cannot start a process to try emits: %s", strerror(errno));
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return step_count(m);
    if (WIFEXITED(status) && WEXITSTATUS(status) == MEMORY_STATUS) memory_exhausted(0);
    report_crash(m, step, status, diags);
    return step + 1;
}

bool emit_conform(const struct machine *m, bool execute, struct conformity *counts,
                  struct diags *diags, struct text *report) {
    int errors = diags->errors, step = 0;
    *counts = (struct conformity){0};
    for (int i = 0; i < m->ninstrs; i++)
        for (int k = 0; k < m->instr[i].nemits; k++)
            counts->others += m->instr[i].emit[k].language != LANGUAGE_LLVM &&
                              m->instr[i].emit[k].language != LANGUAGE_C;
    while (step >= 0 && step < step_count(m))
        step = run_child(m, execute, step, counts, diags, report);
    return diags->errors == errors;
}
