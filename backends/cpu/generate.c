#if ISAMAP_WITH_LLVM
#include "backends/cpu/cpu_int.h"
#include "ir/memory.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* LLVM's code generator ends the process when it meets an intrinsic that the target lacks, which a
 * wrong machine file can make it do. So it runs in a child process, whose end is a message; but not
 * beside other threads, since one of them may hold a lock that the child would wait for. */

static bool alone(void) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    struct dirent *entry;
    while (d && (entry = readdir(d))) n += entry->d_name[0] != '.';
    if (d) closedir(d);
    return n == 1;
}

/* By its name in this process, so that LLVM writes piece by piece: embedded weights make it large.
 */
static bool generate_into(struct cpu *c, LLVMCodeGenFileType type, int fd) {
    char name[32], *message = NULL;
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    if (!LLVMTargetMachineEmitToFile(c->target, c->module, name, type, &message)) return true;
    cpu_error(c, "code cannot be generated: %s", message);
    LLVMDisposeMessage(message);
    return false;
}

/* Its errors reach the parent as text. */
static void child(struct cpu *c, LLVMCodeGenFileType type, int out, int messages) {
    dup2(messages, 2);
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL);
    if (generate_into(c, type, out)) _exit(0);
    diags_print(c->diags, stderr);
    fflush(stderr);
    _exit(1);
}

static char *read_all(struct cpu *c, FILE *f, size_t *n) {
    *n = 0;
    if (fseek(f, 0, SEEK_END) || ftell(f) < 0) return NULL;
    *n = (size_t)ftell(f);
    rewind(f);
    char *at = arena_alloc(&c->arena, *n + 1);
    return fread(at, 1, *n, f) == *n ? at : NULL;
}

static void report_end(struct cpu *c, FILE *messages, int status) {
    size_t n;
    char *text = read_all(c, messages, &n);
    bool exhausted = WIFEXITED(status) && WEXITSTATUS(status) == MEMORY_STATUS;
    if (exhausted || (text && (strstr(text, "out of memory") || strstr(text, "bad_alloc"))))
        memory_exhausted(0);
    if (text) text[strcspn(text, "\n")] = 0;
    cpu_error(c,
              "the code generator cannot compile the emit texts used: %s; expected the features "
              "that they need in "
              "'needs'",
              text && *text ? text : "no message");
}

FILE *cpu_generate_file(struct cpu *c, LLVMCodeGenFileType type) {
    FILE *out = tmpfile(), *messages = out && alone() ? tmpfile() : NULL;
    bool good = false;
    int status = 0;
    if (!out) {
        cpu_error(c, "cannot make a temporary file: %s", strerror(errno));
        return NULL;
    }
    fflush(NULL);
    pid_t pid = messages ? fork() : -1;
    if (pid == 0) child(c, type, fileno(out), fileno(messages));
    if (pid < 0) {
        good = generate_into(c, type, fileno(out));
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!good) report_end(c, messages, status);
    }
    if (messages) fclose(messages);
    if (good && fseek(out, 0, SEEK_SET) == 0) return out;
    fclose(out);
    return NULL;
}

LLVMMemoryBufferRef cpu_generate(struct cpu *c, LLVMCodeGenFileType type) {
    FILE *f = cpu_generate_file(c, type);
    size_t n = 0;
    char *at = f ? read_all(c, f, &n) : NULL;
    if (f) fclose(f);
    return at ? LLVMCreateMemoryBufferWithMemoryRangeCopy(at, n, "code") : NULL;
}
#endif
