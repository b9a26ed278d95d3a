#include "command/guard.h"
#include "isamap.h"
#include "ir/cleanup.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

static void say(const char *text) {
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

_Noreturn static void leave(const char *text, int status) {
    say(text);
    cleanup_all();
    _exit(status);
}

/* ---- signals ---- */

static void on_end(int number) {
    cleanup_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Is this the first access below the stack, within what it may grow to? */
static bool is_stack(const siginfo_t *info, const void *context) {
#if defined __x86_64__ && defined __linux__
    const ucontext_t *c = context;
    uintptr_t at = (uintptr_t)info->si_addr, stack = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
    return at + 65536 >= stack && at < stack + (1 << 20);
#else
    (void)info, (void)context;
    return false;
#endif
}

static void on_fault(int number, siginfo_t *info, void *context) {
    if (is_stack(info, context))
        leave("isamap: error: not enough memory for the stack\n", ISAMAP_RESOURCES);
    cleanup_all();
    signal(number, SIG_DFL);
    raise(number);
}

static void install_signals(void) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    static _Alignas(16) char room[1 << 16];
    struct sigaction now, action = {.sa_handler = on_end};
    stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    sigfillset(&action.sa_mask);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond its limit is an error of the write */
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!sigaction(ends[i], NULL, &now) && now.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
    if (sigaltstack(&own, NULL)) return;
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (!sigaction(SIGSEGV, NULL, &now) && now.sa_handler == SIG_DFL)
        sigaction(SIGSEGV, &fault, NULL);
}

/* ---- other libraries ---- */

static void no_memory(void) {
    leave("isamap: error: not enough memory\n", ISAMAP_RESOURCES);
}

static void *found(void *p) {
    if (!p) no_memory();
    return p;
}

static void *found_malloc(size_t bytes) {
    return found(malloc(bytes));
}

static void *found_realloc(void *old, size_t bytes) {
    return found(realloc(old, bytes));
}

static char *found_strdup(const char *text) {
    return found(strdup(text));
}

static void bad_allocation(void *user, const char *reason, bool crash) {
    (void)user, (void)reason, (void)crash;
    no_memory();
}

static void fatal(const char *reason) {
    if (strstr(reason, "memory") || strstr(reason, "allocat")) no_memory();
    say("isamap: error: the code generator cannot go on: ");
    say(reason);
    leave("; this is a defect of isamap\n", ISAMAP_DEFECT);
}

/* Found by name: where one is not in this process, its library is not used. The first two are
 * std::set_new_handler and llvm::install_bad_alloc_error_handler. libxml2 does not survive the end
 * of memory. */
static void install_handlers(void) {
    void *symbol;
    void *(*set_new_handler)(void (*)(void));
    void (*set_bad_alloc)(void (*)(void *, const char *, bool), void *);
    void (*set_fatal)(void (*)(const char *));
    int (*set_xml)(void (*)(void *), void *(*)(size_t), void *(*)(void *, size_t),
                   char *(*)(const char *));
    if ((symbol = dlsym(RTLD_DEFAULT, "_ZSt15set_new_handlerPFvvE"))) {
        memcpy(&set_new_handler, &symbol, sizeof symbol);
        set_new_handler(no_memory);
    }
    if ((symbol = dlsym(RTLD_DEFAULT, "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_"))) {
        memcpy(&set_bad_alloc, &symbol, sizeof symbol);
        set_bad_alloc(bad_allocation, NULL);
    }
    if ((symbol = dlsym(RTLD_DEFAULT, "LLVMInstallFatalErrorHandler"))) {
        memcpy(&set_fatal, &symbol, sizeof symbol);
        set_fatal(fatal);
    }
    if ((symbol = dlsym(RTLD_DEFAULT, "xmlMemSetup"))) {
        memcpy(&set_xml, &symbol, sizeof symbol);
        set_xml(free, found_malloc, found_realloc, found_strdup);
    }
}

void guard_install(void) {
    install_signals();
    install_handlers();
}

/* ---- standard output ---- */

int guard_finish(int status) {
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    int why = errno;
    if (fclose(stdout) && !failed) failed = true, why = errno;
    if (!failed) return status;
    fprintf(stderr, "isamap: error: cannot write the results to standard output: %s\n",
            why ? strerror(why) : "an earlier write failed");
    int own = why == ENOSPC || why == EDQUOT || why == EFBIG ? ISAMAP_RESOURCES : ISAMAP_INPUT;
    return status > own ? status : own;
}
