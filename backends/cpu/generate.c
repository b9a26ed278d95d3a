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

static LLVMMemoryBufferRef generate_here(struct cpu *c, LLVMCodeGenFileType type) {
    LLVMMemoryBufferRef out = NULL;
    char *message = NULL;
    if (!LLVMTargetMachineEmitToMemoryBuffer(c->target, c->module, type, &message, &out))
        return out;
    cpu_error(c, "code cannot be generated: %s", message);
    LLVMDisposeMessage(message);
    return NULL;
}

static bool alone(void) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    struct dirent *entry;
    while (d && (entry = readdir(d))) n += entry->d_name[0] != '.';
    if (d) closedir(d);
    return n == 1;
}

static bool write_all(int fd, const char *at, size_t n) {
    while (n) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

static void child(struct cpu *c, LLVMCodeGenFileType type, int out, int messages) {
    dup2(messages, 2);
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL);
    LLVMMemoryBufferRef b = generate_here(c, type);
    _exit(b && write_all(out, LLVMGetBufferStart(b), LLVMGetBufferSize(b)) ? 0 : 1);
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

/* The buffer's bytes may be the compilation's. */
LLVMMemoryBufferRef cpu_generate(struct cpu *c, LLVMCodeGenFileType type, bool copy) {
    FILE *out = alone() ? tmpfile() : NULL, *messages = out ? tmpfile() : NULL;
    LLVMMemoryBufferRef buffer = NULL;
    int status = 0;
    fflush(NULL);
    pid_t pid = messages ? fork() : -1;
    if (pid == 0) child(c, type, fileno(out), fileno(messages));
    if (pid < 0) {
        buffer = generate_here(c, type);
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
        size_t n;
        char *at = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? read_all(c, out, &n) : NULL;
        if (at)
            buffer = copy ? LLVMCreateMemoryBufferWithMemoryRangeCopy(at, n, "code")
                          : LLVMCreateMemoryBufferWithMemoryRange(at, n, "code", false);
        else
            report_end(c, messages, status);
    }
    if (out) fclose(out);
    if (messages) fclose(messages);
    return buffer;
}
#endif
