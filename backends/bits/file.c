/* Program images as files: little endian, strings with their length, everything checked when read
 * (docs/backends.md has the format). */
#include "backends/bits/bits_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

/* The last byte is the version. */
static const char magic[8] = {'I', 'S', 'A', 'M', 'A', 'P', 'B', '1'};
enum { MOST_ENTRIES = 1 << 16, MOST_FILE = 1 << 30, MOST_NAME = 1 << 12 };
static const int64_t most_address = INT64_C(1) << 48;

/* ---- writing ---- */

static void put(struct text *t, uint64_t v, int bytes) {
    for (int k = 0; k < bytes; k++) {
        char byte = (char)(v >> 8 * k);
        text_append(t, &byte, 1);
    }
}

static void put_name(struct text *t, const char *name) {
    put(t, strlen(name), 4);
    text_append(t, name, strlen(name));
}

static void put_bytes(struct text *t, const uint8_t *at, int64_t bytes) {
    text_append(t, (const char *)at, (size_t)bytes);
}

void bits_image_write(const struct bits_image *i, struct text *t) {
    text_append(t, magic, sizeof magic);
    put_name(t, i->machine);
    put_name(t, i->program);
    put(t, (uint64_t)i->end, 8);
    put(t, (uint64_t)i->narrays, 4);
    for (int k = 0; k < i->narrays; k++) {
        const struct bits_array *a = &i->array[k];
        put_name(t, a->name);
        put_name(t, type_name(a->type));
        put(t, (uint64_t)a->role, 1);
        put(t, (uint64_t)a->ndims, 1);
        for (int d = 0; d < a->ndims; d++) put(t, (uint64_t)a->extent[d], 8);
        put(t, (uint64_t)a->address, 8);
        put(t, (uint64_t)a->bytes, 8);
    }
    put(t, (uint64_t)i->nblobs, 4);
    for (int k = 0; k < i->nblobs; k++) {
        put(t, (uint64_t)i->blob[k].address, 8);
        put(t, (uint64_t)i->blob[k].bytes, 8);
        put_bytes(t, i->blob[k].at, i->blob[k].bytes);
    }
    put(t, (uint64_t)i->nregs, 4);
    for (int k = 0; k < i->nregs; k++) {
        put(t, i->reg[k].address, 8);
        put(t, i->reg[k].value, 8);
        put(t, (uint64_t)i->reg[k].bits, 1);
    }
    put(t, (uint64_t)i->address, 8);
    put(t, (uint64_t)i->n, 8);
    put(t, (uint64_t)i->bytes, 8);
    put_bytes(t, i->stream, i->bytes);
}

/* ---- reading ---- */

struct reading {
    struct arena *arena;
    const char *path;
    const uint8_t *at, *end, *start;
    struct diags *diags;
    bool bad;
};

static bool bad(struct reading *r, const char *what) {
    if (!r->bad)
        diag_line(r->diags, r->path, 0, 0,
                  "%s at byte %lld, expected an image that `isamap compile -o x.bin` wrote", what,
                  (long long)(r->at - r->start));
    r->bad = true;
    return false;
}

static const uint8_t *get_bytes(struct reading *r, int64_t bytes) {
    const uint8_t *at = r->at;
    if (r->bad || bytes < 0 || bytes > r->end - r->at)
        return bad(r, "the file ends too early"), NULL;
    r->at += bytes;
    return at;
}

static uint64_t get(struct reading *r, int bytes) {
    const uint8_t *at = get_bytes(r, bytes);
    uint64_t v = 0;
    for (int k = bytes - 1; at && k >= 0; k--) v = v << 8 | at[k];
    return v;
}

static int64_t get_within(struct reading *r, int bytes, int64_t hi, const char *what) {
    uint64_t v = get(r, bytes);
    if (!r->bad && v > (uint64_t)hi) bad(r, what);
    return r->bad ? 0 : (int64_t)v;
}

static const char *get_name(struct reading *r) {
    int64_t n = get_within(r, 4, MOST_NAME, "a name is too long");
    const uint8_t *at = get_bytes(r, n);
    for (int64_t k = 0; at && k < n; k++)
        if (at[k] < ' ') bad(r, "a name has control characters");
    return r->bad ? "" : arena_strndup(r->arena, (const char *)at, (size_t)n);
}

static enum type get_type(struct reading *r) {
    const char *name = get_name(r);
    for (int t = 0; t < TYPE_COUNT; t++)
        if (!strcmp(type_name((enum type)t), name)) return (enum type)t;
    bad(r, "an array has no such type");
    return (enum type)0;
}

static void get_array(struct reading *r, struct bits_array *a, int64_t end) {
    int64_t elements = 1;
    a->name = get_name(r);
    a->type = get_type(r);
    a->role = (enum role)get_within(r, 1, 255, "");
    a->ndims = (int)get_within(r, 1, MAX_DIMS, "an array has too many dimensions");
    if (a->role != ROLE_IN && a->role != ROLE_OUT && a->role != ROLE_INOUT)
        bad(r, "an array is neither in nor out");
    for (int d = 0; d < a->ndims; d++) {
        a->extent[d] = get_within(r, 8, most_address, "an array is too large");
        if (__builtin_mul_overflow(elements, a->extent[d], &elements))
            bad(r, "an array is too large");
    }
    a->address = get_within(r, 8, end, "an array lies outside the memory");
    a->bytes = get_within(r, 8, end - a->address, "an array lies outside the memory");
    if (!r->bad && a->bytes / (int64_t)type_size(a->type) != elements)
        bad(r, "an array's bytes are not its elements'");
}

static void get_blob(struct reading *r, struct bits_blob *b, int64_t end) {
    b->address = get_within(r, 8, end, "bytes lie outside the memory");
    b->bytes = get_within(r, 8, end - b->address, "bytes lie outside the memory");
    b->at = get_bytes(r, b->bytes);
}

static void get_register(struct reading *r, struct device_register *x) {
    x->address = get(r, 8);
    x->value = get(r, 8);
    x->bits = (int)get_within(r, 1, 64, "a register is too wide");
}

struct bits_image *bits_image_read(struct arena *a, const char *path, struct diags *diags) {
    struct bits_image *i = arena_alloc(a, sizeof *i);
    struct reading r = {.arena = a, .path = path, .diags = diags};
    size_t length;
    const char *file = file_read(a, path, MOST_FILE, &length, diags);
    if (!file) return NULL;
    r.at = r.start = (const uint8_t *)file;
    r.end = r.at + length;
    const uint8_t *first = get_bytes(&r, sizeof magic);
    if (first && memcmp(first, magic, sizeof magic)) {
        bool other = !memcmp(first, magic, sizeof magic - 1) && first[7] >= '0' && first[7] <= '9';
        bad(&r, other ? arena_printf(a, "the image is of version %c, this isamap reads version %c",
                                     first[7], magic[7])
                      : "the first bytes are others");
    }
    i->machine = get_name(&r);
    i->program = get_name(&r);
    i->end = get_within(&r, 8, most_address, "the memory is too large");
    i->narrays = (int)get_within(&r, 4, MOST_ENTRIES, "there are too many arrays");
    i->array = arena_array(a, (size_t)i->narrays + 1, sizeof *i->array);
    for (int k = 0; k < i->narrays && !r.bad; k++) get_array(&r, &i->array[k], i->end);
    i->nblobs = (int)get_within(&r, 4, MOST_ENTRIES, "there are too many pieces");
    i->blob = arena_array(a, (size_t)i->nblobs + 1, sizeof *i->blob);
    for (int k = 0; k < i->nblobs && !r.bad; k++) get_blob(&r, &i->blob[k], i->end);
    i->nregs = (int)get_within(&r, 4, MOST_ENTRIES, "there are too many registers");
    i->reg = arena_array(a, (size_t)i->nregs + 1, sizeof *i->reg);
    for (int k = 0; k < i->nregs && !r.bad; k++) get_register(&r, &i->reg[k]);
    i->address = get_within(&r, 8, i->end, "the stream lies outside the memory");
    i->n = get_within(&r, 8, most_address, "the stream is too long");
    i->bytes = get_within(&r, 8, i->end - i->address, "the stream lies outside the memory");
    i->stream = get_bytes(&r, i->bytes);
    if (!r.bad && r.at != r.end) bad(&r, "bytes follow the stream");
    return r.bad ? NULL : i;
}

/* ---- as text ---- */

static void head_text(const struct bits_image *i, struct text *t) {
    text_printf(t, "program %s on %s, %lld bytes of memory\n", i->program, i->machine,
                (long long)i->end);
    for (int k = 0; k < i->narrays; k++) {
        const struct bits_array *a = &i->array[k];
        text_printf(t, "array %s: %s[", a->name, type_name(a->type));
        for (int d = 0; d < a->ndims; d++)
            text_printf(t, "%s%lld", d ? ", " : "", (long long)a->extent[d]);
        text_printf(t, "] %s at %lld bytes %lld\n", role_name[a->role], (long long)a->address,
                    (long long)a->bytes);
    }
    for (int k = 0; k < i->nblobs; k++)
        text_printf(t, "constants at %lld bytes %lld\n", (long long)i->blob[k].address,
                    (long long)i->blob[k].bytes);
    for (int k = 0; k < i->nregs; k++)
        text_printf(t, "register 0x%llx = %llu\n", (unsigned long long)i->reg[k].address,
                    (unsigned long long)i->reg[k].value);
    text_printf(t, "stream at %lld: %lld words, %lld bytes\n", (long long)i->address,
                (long long)i->n, (long long)i->bytes);
}

static bool is_of(const struct machine *m, const struct bits_image *i, const char *path,
                  struct diags *diags) {
    if (!strcmp(m->name, i->machine)) return true;
    diag_line(diags, path, 0, 0, "the image is for machine '%s', not '%s'", i->machine, m->name);
    return false;
}

bool bits_image_schedule(const struct machine *m, const struct bits_image *i, const char *path,
                         struct text *out, struct diags *diags) {
    if (!is_of(m, i, path, diags)) return false;
    uint8_t *home = memory_array((size_t)i->end + 1, 1);
    for (int k = 0; k < i->nblobs; k++)
        memcpy(home + i->blob[k].address, i->blob[k].at, (size_t)i->blob[k].bytes);
    bool ok = bits_schedule(m, i->program, i->stream, i->bytes, home, i->end, out, diags);
    free(home);
    return ok;
}

bool bits_disassemble(const struct machine *m, const struct bits_image *i, const char *path,
                      struct text *t, struct diags *diags) {
    struct arena a;
    if (!is_of(m, i, path, diags)) return false;
    arena_init(&a);
    struct forms all = forms_of(&a, m);
    head_text(i, t);
    bool ok = true;
    for (int64_t at = 0, n = 0; at < i->bytes && ok; n++) {
        struct arena one;
        struct decoded d;
        arena_init(&one);
        ok = decode_one(&one, m, &all, i->stream + at, i->bytes - at, &d);
        if (ok) {
            text_printf(t, "%6lld  ", (long long)n);
            for (int64_t k = d.bytes - 1; k >= 0; k--) text_printf(t, "%02x", i->stream[at + k]);
            text_printf(t, "  ");
            decoded_text(m, &d, t);
            text_printf(t, "\n");
            at += d.bytes;
        } else {
            diag_line(diags, path, 0, 0,
                      "the word at byte %lld of the stream is no instruction "
                      "of '%s'",
                      (long long)at, m->name);
        }
        arena_free(&one);
    }
    arena_free(&a);
    return ok;
}
