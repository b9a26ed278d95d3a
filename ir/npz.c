#include "ir/npz.h"

#include <stdint.h>
#include <string.h>

/* Records of the zip format (APPNOTE 6.3): local file header, central directory, its end. */
enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50 };
enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, MOST = 65535 };

struct archive {
    const char *path;
    const unsigned char *at;
    size_t n;
    struct diags *diags;
};

static bool fail(const struct archive *z, size_t at, const char *what) {
    diag_line(z->diags, z->path, 1, (int)(at < INT32_MAX ? at + 1 : 0), "%s", what);
    return false;
}

static uint64_t number(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

/* The record at this place is whole. */
static bool record_at(const struct archive *z, uint64_t at, size_t size, uint32_t mark) {
    return at <= z->n && z->n - at >= size && number(z->at + at, 4) == mark;
}

/* What the extra field of large files says instead of 0xffffffff: size, stored size, offset. */
static void large(const unsigned char *extra, size_t n, uint64_t *value[3]) {
    for (size_t i = 0; i + 4 <= n;) {
        size_t size = (size_t)number(extra + i + 2, 2), at = i + 4;
        if (size > n - at) return;
        for (int k = 0; number(extra + i, 2) == 1 && k < 3; k++) {
            if (*value[k] != UINT32_MAX) continue;
            if (at + 8 > i + 4 + size) return;
            *value[k] = number(extra + at, 8);
            at += 8;
        }
        i += 4 + size;
    }
}

/* The entry of the directory at *at, which moves on. */
static bool read_entry(const struct archive *z, uint64_t *at, struct npz *out) {
    if (!record_at(z, *at, CENTRAL_SIZE, CENTRAL))
        return fail(z, (size_t)*at, "the archive's directory is damaged");
    const unsigned char *e = z->at + *at;
    size_t name = (size_t)number(e + 28, 2), extra = (size_t)number(e + 30, 2),
           comment = (size_t)number(e + 32, 2);
    if (z->n - *at - CENTRAL_SIZE < name + extra + comment)
        return fail(z, (size_t)*at, "the archive's directory ends too early");
    uint64_t stored = number(e + 20, 4), size = number(e + 24, 4), from = number(e + 42, 4);
    large(e + CENTRAL_SIZE + name, extra, (uint64_t *[3]){&size, &stored, &from});
    if (number(e + 10, 2) != 0 || stored != size)
        return fail(z, (size_t)*at, "its arrays are compressed: write it with numpy.savez");
    if (!record_at(z, from, LOCAL_SIZE, LOCAL))
        return fail(z, (size_t)*at, "an entry of the archive is not where its directory says");
    uint64_t data = from + LOCAL_SIZE + number(z->at + from + 26, 2) + number(z->at + from + 28, 2);
    if (data > z->n || z->n - data < size)
        return fail(z, (size_t)from, "an entry of the archive ends too early");
    size_t shown =
        name > 4 && memcmp(e + CENTRAL_SIZE + name - 4, ".npy", 4) == 0 ? name - 4 : name;
    out->name[out->n] = arena_strndup(&out->arena, (const char *)e + CENTRAL_SIZE, shown);
    *at += CENTRAL_SIZE + name + extra + comment;
    struct array *a = &out->array[out->n];
    const char *shown_as = arena_printf(&out->arena, "%s:%s", z->path, out->name[out->n]);
    if (!npy_parse(shown_as, z->at + data, (size_t)size, a, z->diags)) return false;
    out->n++;
    return true;
}

static bool read_archive(const struct archive *z, struct npz *out) {
    size_t end = z->n;
    while (end > 0 && z->n - end <= MOST + END_SIZE && !record_at(z, end, END_SIZE, END)) end--;
    if (!record_at(z, end, END_SIZE, END)) return fail(z, 0, "this is not an .npz file");
    int n = (int)number(z->at + end + 10, 2);
    uint64_t at = number(z->at + end + 16, 4);
    if (n == MOST || at == UINT32_MAX) return fail(z, end, "the archive is too large");
    out->name = arena_array(&out->arena, (size_t)n + 1, sizeof *out->name);
    out->array = arena_array(&out->arena, (size_t)n + 1, sizeof *out->array);
    for (int i = 0; i < n; i++)
        if (!read_entry(z, &at, out)) return false;
    return true;
}

bool npz_read(const char *path, struct npz *out, struct diags *diags) {
    struct arena bytes;
    struct archive z = {.path = path, .diags = diags};
    *out = (struct npz){0};
    arena_init(&out->arena);
    arena_init(&bytes);
    z.at = (const unsigned char *)file_read(&bytes, path, INT32_MAX, &z.n, diags);
    bool ok = z.at && read_archive(&z, out);
    arena_free(&bytes);
    if (!ok) npz_free(out);
    return ok;
}

void npz_free(struct npz *z) {
    for (int i = 0; i < z->n; i++) array_free(&z->array[i]);
    arena_free(&z->arena);
    *z = (struct npz){0};
}

const struct array *npz_find(const struct npz *z, const char *name) {
    for (int i = 0; i < z->n; i++)
        if (strcmp(z->name[i], name) == 0) return &z->array[i];
    return NULL;
}
