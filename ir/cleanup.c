#include "ir/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENTRIES = 64, MOST_PATH = 1024 };
enum kind { FREE, FILLING, A_FILE, A_FOLDER, A_CHILD };

struct entry {
    atomic_int kind;
    pid_t process; /* that added it: a child that ends does not clean up its parent's */
    const void *thread;
    pid_t child;
    char path[MOST_PATH];
};

static struct entry table[ENTRIES];
static _Thread_local char me; /* its address stands for the thread */

static int add(enum kind kind, const char *path, pid_t child) {
    if (path && strlen(path) >= MOST_PATH) return CLEANUP_NONE;
    for (int i = 0; i < ENTRIES; i++) {
        int none = FREE;
        if (!atomic_compare_exchange_strong(&table[i].kind, &none, FILLING)) continue;
        table[i].process = getpid();
        table[i].thread = &me;
        table[i].child = child;
        strcpy(table[i].path, path ? path : "");
        atomic_store(&table[i].kind, kind);
        return i;
    }
    return CLEANUP_NONE;
}

int cleanup_file(const char *path) {
    return add(A_FILE, path, 0);
}

int cleanup_folder(const char *path) {
    return add(A_FOLDER, path, 0);
}

int cleanup_child(pid_t pid) {
    return add(A_CHILD, NULL, pid);
}

void cleanup_drop(int i) {
    if (i >= 0) atomic_store(&table[i].kind, FREE);
}

void cleanup_forget(const char *path) {
    for (int i = 0; i < ENTRIES; i++) {
        int kind = atomic_load(&table[i].kind);
        if ((kind == A_FILE || kind == A_FOLDER) && !strcmp(table[i].path, path)) cleanup_drop(i);
    }
}

/* A folder's entries as the kernel gives them: opendir is not for signal handlers. */
static void empty_folder(const char *path) {
    struct record {
        uint64_t inode, offset;
        unsigned short length;
        unsigned char type;
        char name[];
    };
    _Alignas(8) char room[2048];
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    for (long n; (n = syscall(SYS_getdents64, fd, room, sizeof room)) > 0;)
        for (long at = 0; at < n;) {
            const struct record *r = (const void *)(room + at);
            unlinkat(fd, r->name, 0);
            at += r->length;
        }
    close(fd);
    rmdir(path);
}

static void clean(const struct entry *e, int kind) {
    if (kind == A_FILE) unlink(e->path);
    if (kind == A_FOLDER) empty_folder(e->path);
    if (kind != A_CHILD) return;
    kill(e->child, SIGTERM);
    while (waitpid(e->child, NULL, 0) < 0 && errno == EINTR) continue;
}

static void clean_entries(const void *thread) {
    static const int order[] = {A_CHILD, A_FILE, A_FOLDER};
    pid_t own = getpid();
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < ENTRIES; i++) {
            struct entry *e = &table[i];
            if (atomic_load(&e->kind) != order[k] || e->process != own) continue;
            if (thread && e->thread != thread) continue;
            clean(e, order[k]);
            atomic_store(&e->kind, FREE);
        }
}

void cleanup_all(void) {
    clean_entries(NULL);
}

void cleanup_thread(void) {
    clean_entries(&me);
}
