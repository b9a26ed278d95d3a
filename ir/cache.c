#include "ir/cache.h"
#include "ir/arena.h"
#include "ir/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char head[] = "isamap cache 1\n";
static const int64_t most_bytes = INT64_C(1) << 30; /* of an entry */
enum { STALE = 3600 }; /* seconds after which an unfinished entry is nobody's */

/* ---- hashes: FNV-1a (Fowler, Noll, Vo), in words; they only name and guard, the key decides ----
 */

static uint64_t hash(uint64_t h, const char *at, size_t n) {
    uint64_t word;
    for (; n >= sizeof word; at += sizeof word, n -= sizeof word) {
        memcpy(&word, at, sizeof word);
        h = (h ^ word) * UINT64_C(1099511628211);
        h ^= h >> 29;
    }
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)at[i]) * UINT64_C(1099511628211);
    return h ^ h >> 32;
}

static uint64_t checksum(const struct text *key, const char *value, size_t n) {
    return hash(hash(UINT64_C(14695981039346656037), key->at, key->n), value, n);
}

static char *entry_path(const struct cache *c, const struct text *key, char *path, size_t size) {
    int n = snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64 ".entry", c->folder,
                     hash(UINT64_C(14695981039346656037), key->at, key->n),
                     hash(UINT64_C(0x9e3779b97f4a7c15), key->at, key->n));
    return n > 0 && (size_t)n < size ? path : NULL;
}

/* ---- the folder ---- */

static bool make_folders(char *path) {
    for (char *c = path + 1; *c; c++) {
        if (*c != '/') continue;
        *c = 0;
        bool good = !mkdir(path, 0700) || errno == EEXIST;
        *c = '/';
        if (!good) return false;
    }
    return !mkdir(path, 0700) || errno == EEXIST;
}

char *cache_folder(struct arena *a) {
    const char *own = getenv("ISAMAP_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    char *folder = own && *own ? arena_strdup(a, own)
                   : cache && *cache
                       ? arena_printf(a, "%s/isamap", cache)
                       : arena_printf(a, "%s/.cache/isamap", home && *home ? home : "/tmp");
    bool mine = !(own && *own) && !(cache && *cache) && home && *home;
    if (mine && access(home, F_OK)) return NULL;
    return make_folders(folder) ? folder : NULL;
}

static int64_t size_limit(struct diags *d) {
    const char *text = getenv("ISAMAP_CACHE_SIZE");
    char *end;
    if (!text || !*text) return INT64_C(1) << 30;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift) end++;
    if (end != text && !*end && !errno && v >= 0 && v <= INT64_MAX >> shift)
        return (int64_t)v << shift;
    diag_warn(d, "ISAMAP_CACHE_SIZE", 0, 0,
              "'%s' is no size, expected bytes, with K, M or G; nothing is kept", text);
    return 0;
}

/* The file that this code was loaded from, as the kernel names it; false: it is not known, or gone.
 */
static bool own_file(char *path, size_t size, struct stat *st) {
    static const int here;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4200], name[4096];
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %4095[^\n]", &from, &to,
                   name) != 3)
            continue;
        found = (uintptr_t)&here >= from && (uintptr_t)&here < to;
    }
    if (maps) fclose(maps);
    return found && (size_t)snprintf(path, size, "%s", name) < size && !stat(path, st);
}

void cache_build(struct text *t) {
    char path[4096];
    struct stat st;
    if (own_file(path, sizeof path, &st))
        text_printf(t, "%s %llu %lld %lld.%09ld\n", path, (unsigned long long)st.st_ino,
                    (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

const struct cache *cache_user(struct arena *a, struct diags *d) {
    struct stat st;
    char own[4096];
    int64_t limit = size_limit(d);
    if (limit <= 0 || !own_file(own, sizeof own, &st))
        return NULL; /* builds could not be told apart */
    const char *folder = cache_folder(a);
    if (!folder || stat(folder, &st) || !S_ISDIR(st.st_mode)) return NULL;
    if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
        diag_warn(d, folder, 0, 0,
                  "nothing is kept here: others can write to it, and what is kept is code");
        return NULL;
    }
    struct cache *c = arena_alloc(a, sizeof *c);
    *c = (struct cache){folder, limit};
    return c;
}

/* ---- reading ---- */

static bool read_whole(int fd, struct text *t) {
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > most_bytes) return false;
    size_t size = (size_t)st.st_size;
    char piece[1 << 16];
    while (t->n <= size) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text_append(t, piece, (size_t)n);
    }
    return t->n == size;
}

/* The value in a whole file; false: it is not this key's. */
static bool take_value(const struct text *file, const struct text *key, struct text *value) {
    unsigned long long keys, values;
    uint64_t sum;
    int at = 0;
    size_t start = sizeof head - 1;
    if (file->n < start || memcmp(file->at, head, start) ||
        sscanf(file->at + start, "%llu %llu %" SCNx64 "\n%n", &keys, &values, &sum, &at) != 3 ||
        !at)
        return false;
    start += (size_t)at;
    if (keys != key->n || values > file->n || file->n != start + keys + values) return false;
    if (memcmp(file->at + start, key->at, key->n)) return false;
    const char *v = file->at + start + keys;
    if (checksum(key, v, (size_t)values) != sum) return false;
    text_append(value, v, (size_t)values);
    return true;
}

bool cache_read(const struct cache *c, const struct text *key, struct text *value) {
    char path[4096];
    struct text file = {0};
    if (!c || !entry_path(c, key, path, sizeof path)) return false;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    bool good = read_whole(fd, &file) && take_value(&file, key, value);
    if (good) futimens(fd, NULL); /* used now */
    close(fd);
    text_free(&file);
    return good;
}

/* ---- writing ---- */

struct listed {
    const char *name;
    int64_t bytes;
    struct timespec used;
};

static int older_first(const void *a, const void *b) {
    const struct timespec *s = &((const struct listed *)a)->used,
                          *t = &((const struct listed *)b)->used;
    if (s->tv_sec != t->tv_sec) return s->tv_sec < t->tv_sec ? -1 : 1;
    return (s->tv_nsec > t->tv_nsec) - (s->tv_nsec < t->tv_nsec);
}

static bool ends_in(const char *name, const char *suffix) {
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && !strcmp(name + n - k, suffix);
}

/* Makes room: entries used longest ago go until the others take three quarters of the limit. */
static void trim(const struct cache *c) {
    struct arena arena;
    struct listed *list = NULL;
    int n = 0, cap = 0;
    int64_t bytes = 0;
    DIR *d = opendir(c->folder);
    if (!d) return;
    arena_init(&arena);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        bool entry = ends_in(e->d_name, ".entry"), part = ends_in(e->d_name, ".part");
        if ((!entry && !part) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(st.st_mode))
            continue;
        if (part && time(NULL) - st.st_mtim.tv_sec > STALE) unlinkat(dirfd(d), e->d_name, 0);
        if (part) continue;
        GROW(&arena, list, n, cap);
        list[n].name = arena_strdup(&arena, e->d_name);
        list[n].bytes = st.st_size;
        list[n++].used = st.st_mtim;
        bytes += st.st_size;
    }
    if (bytes > c->limit) {
        qsort(list, (size_t)n, sizeof *list, older_first);
        for (int i = 0; i < n && bytes > c->limit / 4 * 3; i++)
            if (!unlinkat(dirfd(d), list[i].name, 0)) bytes -= list[i].bytes;
    }
    closedir(d);
    arena_free(&arena);
}

void cache_write(const struct cache *c, const struct text *key, const struct text *value) {
    char path[4096], part[4096];
    int64_t bytes = (int64_t)(key->n + value->n);
    if (!c || bytes > c->limit / 4 || !entry_path(c, key, path, sizeof path)) return;
    int n = snprintf(part, sizeof part, "%s/XXXXXX.part", c->folder);
    if (n < 0 || (size_t)n >= sizeof part) return;
    int fd = mkostemps(part, 5, O_CLOEXEC);
    if (fd < 0) return;
    int cleanup = cleanup_file(part);
    FILE *f = fdopen(fd, "wb");
    bool good = f && fprintf(f, "%s%zu %zu %016" PRIx64 "\n", head, key->n, value->n,
                             checksum(key, value->at, value->n)) > 0;
    good = good && fwrite(key->at, 1, key->n, f) == key->n;
    good = good && fwrite(value->at, 1, value->n, f) == value->n;
    good = (f ? !fclose(f) : (close(fd), false)) && good;
    if (!good || rename(part, path)) unlink(part);
    cleanup_drop(cleanup);
    if (good) trim(c);
}
