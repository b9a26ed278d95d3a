/* Many trials in few processes: a child goes through them and says after each what came of it. */
#include "tests/random/trial.h"

#include "ir/arena.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What takes longer hangs; with the sanitizers everything takes about five times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { CPU_SECONDS = 150 };
#else
enum { CPU_SECONDS = 30 };
#endif

struct said { /* by the child, before the messages */
    int trial, outcome, unproved, length;
    double seconds;
    struct random_info info;
    char reason[160];
};

static bool write_all(int fd, const void *data, size_t n) {
    for (const char *at = data; n > 0;) {
        ssize_t k = write(fd, at, n);
        if (k <= 0) return false;
        at += k, n -= (size_t)k;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t n) {
    for (char *at = data; n > 0;) {
        ssize_t k = read(fd, at, n);
        if (k <= 0) return false;
        at += k, n -= (size_t)k;
    }
    return true;
}

/* A crash ends the child, whoever wanted to catch it. */
static void limit(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) signal(signals[k], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __SANITIZE_ADDRESS__
    setrlimit(RLIMIT_AS, &(struct rlimit){8ul << 30, 8ul << 30});
#endif
}

static void child(struct trial *t, int from, int n, int to) {
    limit();
    for (int k = from; k < n; k++) {
        setitimer(ITIMER_PROF, &(struct itimerval){.it_value = {.tv_sec = CPU_SECONDS}}, NULL);
        trial_here(&t[k]);
        struct said s = {.trial = k,
                         .outcome = (int)t[k].outcome,
                         .unproved = t[k].unproved,
                         .seconds = t[k].seconds,
                         .info = t[k].info};
        s.length = t[k].messages ? (int)strlen(t[k].messages) : 0;
        memcpy(s.reason, t[k].reason, sizeof s.reason);
        if (!write_all(to, &s, sizeof s) || !write_all(to, t[k].messages, (size_t)s.length)) break;
        free(t[k].messages);
    }
}

static void died(struct trial *t, int status, FILE *log) {
    static const char *const cause[] = {"it crashes", "it hangs"};
    char line[100];
    struct text all = {0};
    t->outcome = OUTCOME_CRASH;
    rewind(log);
    while (fgets(line, sizeof line, log)) text_append(&all, line, strlen(line));
    text_append(&all, "", 1);
    t->messages = all.at;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGKILL))
        t->outcome = OUTCOME_HANG;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *assertion = strstr(all.at, "Assertion"), *sanitizer = strstr(all.at, "ERROR: ");
    const char *said = assertion ? assertion : sanitizer ? sanitizer : "";
    snprintf(t->reason, sizeof t->reason, "%s (%s %d) %.*s", cause[t->outcome == OUTCOME_HANG],
             signal ? "signal" : "status", signal ? signal : WEXITSTATUS(status),
             (int)strcspn(said, "\n"), said);
    char *text = trial_program(t, &t->info);
    free(text);
}

/* From trial `from` on, until all are done or the child has died; the first that is left. */
static int some_trials(struct trial *t, int from, int n) {
    int pipes[2], status = 0, done = from;
    FILE *log = tmpfile();
    if (pipe(pipes) || !log) abort();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid == 0) {
        close(pipes[0]);
        dup2(fileno(log), 2);
        child(t, from, n, pipes[1]);
        _exit(0);
    }
    close(pipes[1]);
    for (struct said s; read_all(pipes[0], &s, sizeof s); done = s.trial + 1) {
        struct trial *x = &t[s.trial];
        x->outcome = (enum outcome)s.outcome;
        x->unproved = s.unproved;
        x->seconds = s.seconds;
        x->info = s.info;
        memcpy(x->reason, s.reason, sizeof s.reason);
        x->messages = calloc((size_t)s.length + 1, 1);
        if (!read_all(pipes[0], x->messages, (size_t)s.length)) break;
    }
    close(pipes[0]);
    waitpid(pid, &status, 0);
    if (done < n) died(&t[done++], status, log);
    fclose(log);
    return done;
}

void trials_run(struct trial *t, int n) {
    for (int k = 0; k < n; k++) t[k].messages = NULL;
    for (int k = 0; k < n;) k = some_trials(t, k, n);
}

/* ---- smaller ---- */

/* Numbers, names and places aside. */
static bool alike(const char *a, const char *b) {
    size_t n = strcspn(a, "0123456789'[");
    return strncmp(a, b, n) == 0;
}

static bool still_fails(struct trial *t, const struct tape *tape, int *tries) {
    struct trial x = *t;
    x.tape = *tape;
    x.messages = NULL;
    if (--*tries < 0) return false;
    trials_run(&x, 1);
    free(x.messages);
    return x.outcome == t->outcome && alike(t->reason, x.reason);
}

static bool try_tape(struct trial *t, const struct tape *tape, int *tries) {
    if (!still_fails(t, tape, tries)) return false;
    t->tape = *tape;
    return true;
}

/* Spans that are left out, and spans that are 0, from long ones to short ones. */
static bool shorter(struct trial *t, bool leave_out, int *tries) {
    bool any = false;
    for (int span = t->tape.n / 2; span > 0 && *tries > 0; span /= 2)
        for (int at = 0; at + span <= t->tape.n && *tries > 0;) {
            struct tape x = t->tape;
            bool zero = true;
            for (int k = 0; k < span; k++) zero &= x.at[at + k] == 0;
            if (leave_out) {
                memmove(&x.at[at], &x.at[at + span], (size_t)(x.n - at - span) * sizeof *x.at);
                x.n -= span;
            } else {
                memset(&x.at[at], 0, (size_t)span * sizeof *x.at);
            }
            bool better = (leave_out || !zero) && try_tape(t, &x, tries);
            any |= better;
            if (!better || !leave_out) at += span;
        }
    return any;
}

static bool lower(struct trial *t, int *tries) {
    bool any = false;
    for (int k = 0; k<t->tape.n && * tries> 0; k++)
        for (int was = t->tape.at[k], to = 0; to<was && * tries> 0;
             to += to < was - 1 ? (was - to + 1) / 2 : 1) {
            struct tape x = t->tape;
            x.at[k] = to;
            if (!try_tape(t, &x, tries)) continue;
            any = true;
            break;
        }
    return any;
}

void trial_shrink(struct trial *t, int tries) {
    struct random_info info;
    if (t->text) return;
    if (t->tape.s) { /* what was drawn is what there is */
        struct tape tape = t->tape;
        tape.pos = 0;
        free(random_program(&tape, &t->bench->native, &info));
        tape.n = tape.pos;
        tape.s = 0;
        t->tape = tape;
    }
    for (bool better = t->outcome != OUTCOME_HANG; better && tries > 0;) {
        better = shorter(t, true, &tries);
        better |= shorter(t, false, &tries);
        better |= lower(t, &tries);
    }
}
