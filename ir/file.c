#include "ir/file.h"
#include "ir/cleanup.h"
#include "ir/memory.h"
#include "ir/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- in ---- */

static const char *kind_of(mode_t mode) {
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

FILE *file_open(const char *path, struct diags *d) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st)) {
        int why = errno;
        diag_line(d, path, 0, 0, "cannot open '%s': %s%s", path, strerror(why),
                  why == ENOENT ? files_near(&d->arena, path) : "");
        if (fd >= 0) close(fd);
        return NULL;
    }
    if (!S_ISREG(st.st_mode)) {
        diag_line(d, path, 0, 0, "'%s' is %s, expected a regular file", path, kind_of(st.st_mode));
        close(fd);
        return NULL;
    }
    FILE *f = fdopen(fd, "rb");
    if (!f) memory_exhausted(0);
    return f;
}

static char *read_rest(struct arena *a, FILE *f, size_t size, size_t limit, size_t *length,
                       bool *too_long) {
    size_t cap = size + 1, n = 0;
    char *bytes = arena_alloc(a, cap + 1);
    *too_long = size > limit;
    while (!*too_long) {
        size_t got = fread(bytes + n, 1, cap - n, f);
        n += got;
        *too_long = n > limit;
        if (!got) break;
        if (n < cap) continue;
        char *more = arena_alloc(a, 2 * cap + 1);
        bytes = memcpy(more, bytes, n);
        cap *= 2;
    }
    *length = n;
    bytes[n] = 0;
    return *too_long || ferror(f) ? NULL : bytes;
}

char *file_read(struct arena *a, const char *path, size_t limit, size_t *length, struct diags *d) {
    struct stat st;
    FILE *f = file_open(path, d);
    if (!f) return NULL;
    bool too_long = fstat(fileno(f), &st) == 0 && (uint64_t)st.st_size > limit;
    errno = 0;
    char *bytes = too_long ? NULL : read_rest(a, f, (size_t)st.st_size, limit, length, &too_long);
    if (!bytes && too_long)
        diag_line(d, path, 0, 0, "'%s' is longer than %zu bytes, the most that is read", path,
                  limit);
    else if (!bytes)
        diag_line(d, path, 0, 0, "cannot read '%s': %s", path, strerror(errno));
    fclose(f);
    return bytes;
}

/* ---- out ---- */

void file_write_failed(const char *path, int why, struct diags *d) {
    diag_line(d, path, 0, 0, "cannot write '%s': %s", path, strerror(why));
    d->exhausted |= why == ENOSPC || why == EDQUOT || why == EFBIG;
}

static bool writable_folder(const char *path) {
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) return errno = ENOTDIR, false;
    return access(path, W_OK | X_OK) == 0;
}

bool file_writable(const char *path, bool folder, struct diags *d) {
    struct stat st;
    const char *name = strrchr(path, '/');
    struct text above = {0};
    if (name) text_printf(&above, "%.*s", name == path ? 1 : (int)(name - path), path);
    bool good = folder                 ? writable_folder(path)
                : stat(path, &st) == 0 ? true /* a link, a device: what writes it says more */
                                       : writable_folder(name ? above.at : ".");
    if (!good) file_write_failed(path, errno, d);
    text_free(&above);
    return good;
}

static struct output *output_new(const char *path) {
    struct output *o = memory_array(1, sizeof *o);
    char *real = realpath(path, NULL); /* a link stays one */
    struct text own = {0};
    text_printf(&own, "%s", real ? real : path);
    free(real);
    o->path = own.at;
    o->cleanup = CLEANUP_NONE;
    return o;
}

static void output_free(struct output *o) {
    cleanup_drop(o->cleanup);
    free(o->path);
    free(o->part);
    free(o);
}

/* The other name, as a file that is empty. */
static bool make_part(struct output *o, mode_t mode) {
    static atomic_uint number;
    struct text name = {0};
    text_printf(&name, "%s.%ld-%u.part", o->path, (long)getpid(), atomic_fetch_add(&number, 1));
    o->part = name.at;
    o->cleanup = cleanup_file(o->part);
    int fd = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return false;
    o->file = fdopen(fd, "wb");
    if (!o->file) close(fd);
    return o->file != NULL;
}

static struct output *open_whole(const char *path, bool any_kind, struct diags *d) {
    struct stat st;
    struct output *o = output_new(path);
    bool there = stat(o->path, &st) == 0, regular = !there || S_ISREG(st.st_mode), ok;
    if (!regular && !S_ISDIR(st.st_mode) && any_kind)
        ok = (o->file = fopen(o->path, "wb")) != NULL;
    else if (!regular)
        ok = (errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP, false);
    else
        ok = (!there || access(o->path, W_OK) == 0) &&
             make_part(o, there ? st.st_mode & 0777 : 0666);
    if (ok) return o;
    file_write_failed(path, errno, d);
    if (o->part) unlink(o->part);
    output_free(o);
    return NULL;
}

struct output *output_open(const char *path, struct diags *d) {
    return open_whole(path, true, d);
}

struct output *output_reserve(const char *path, struct diags *d) {
    struct output *o = open_whole(path, false, d);
    if (o) fclose(o->file), o->file = NULL;
    return o;
}

const char *output_name(const struct output *o) {
    return o->part;
}

bool output_close(struct output *o, bool good, struct diags *d) {
    int why = 0;
    if (o->file) {
        if (ferror(o->file)) why = errno ? errno : EIO;
        if (fclose(o->file) && !why) why = errno;
    }
    if (good && !why && o->part && rename(o->part, o->path)) why = errno;
    if (o->part && (!good || why)) unlink(o->part);
    if (good && why) file_write_failed(o->path, why, d);
    output_free(o);
    return good && !why;
}

bool file_write(const char *path, const char *bytes, size_t length, struct diags *d) {
    struct output *o = output_open(path, d);
    if (!o) return false;
    errno = 0;
    if (length) fwrite(bytes, 1, length, o->file);
    return output_close(o, true, d);
}
