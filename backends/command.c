#include "backends/backends_int.h"
#include "ir/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { KEPT = 1500 };

/* The command's output: the first part is kept, all of it is read. */
static void read_output(int fd, char *kept) {
    char chunk[4096];
    size_t n = 0;
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        size_t take = (size_t)got < KEPT - n ? (size_t)got : KEPT - n;
        memcpy(kept + n, chunk, take);
        n += take;
    }
    while (n && kept[n - 1] == '\n') n--;
    kept[n] = 0;
}

static int spawn(const char *const *argv, int output, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    error = posix_spawnp(pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool command_run(const char *const *argv, const char *what, struct diags *diags) {
    int pipes[2], status = 0;
    pid_t pid;
    char kept[KEPT + 1];
    if (pipe2(pipes, O_CLOEXEC)) {
        diag_line(diags, NULL, 0, 0, "cannot run '%s': %s", argv[0], strerror(errno));
        return false;
    }
    int error = spawn(argv, pipes[1], &pid);
    close(pipes[1]);
    if (error) {
        close(pipes[0]);
        diag_line(diags, NULL, 0, 0,
                  "cannot run the compiler '%s' for %s: %s, expected one in PATH", argv[0], what,
                  strerror(error));
        return false;
    }
    int cleanup = cleanup_child(pid);
    read_output(pipes[0], kept);
    close(pipes[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    cleanup_drop(cleanup);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    diag_line(diags, NULL, 0, 0, "'%s' failed for %s: %s", argv[0], what,
              *kept ? kept : "no message");
    return false;
}

bool compiler_run(const char *const *arguments, const char *what, struct diags *diags) {
    const char *argv[64], *cc = getenv("CC");
    int n = 0;
    argv[n++] = cc && *cc && !strchr(cc, ' ') ? cc : "cc";
    while (*arguments && n < 63) argv[n++] = *arguments++;
    argv[n] = NULL;
    return command_run(argv, what, diags);
}

bool library_build(const char *input, const char *path, const char *const *flags,
                   const char *const *library, struct diags *diags) {
    const char *argv[64];
    struct arena a;
    int n = 0;
    struct output *o = output_reserve(path, diags);
    if (!o) return false;
    arena_init(&a);
    for (int i = 0; flags && flags[i] && n < 30; i++) argv[n++] = flags[i];
    argv[n++] = "-shared";
    argv[n++] = "-fPIC";
    argv[n++] = "-o";
    argv[n++] = output_name(o);
    argv[n++] = input;
    for (int i = 0; library && library[i] && n < 60; i++)
        argv[n++] = arena_printf(&a, "-l%s", library[i]);
    argv[n++] = "-lm";
    argv[n] = NULL;
    bool good = compiler_run(argv, path, diags);
    arena_free(&a);
    return output_close(o, good, diags);
}

char *folder_temporary(struct arena *a, struct diags *diags) {
    const char *base = getenv("TMPDIR");
    char *path = arena_printf(a, "%s/isamap.XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(path)) return cleanup_folder(path), path;
    diag_line(diags, path, 0, 0, "cannot make a temporary folder '%s': %s", path, strerror(errno));
    return NULL;
}

void folder_remove(const char *path) {
    DIR *d = opendir(path);
    struct dirent *entry;
    while (d && (entry = readdir(d)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d) closedir(d);
    rmdir(path);
    cleanup_forget(path);
}
