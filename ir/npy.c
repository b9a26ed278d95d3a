#include "ir/npy.h"
#include "ir/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_HEADER = 1 << 16, MAX_PREFIX = 12, MAX_ARRAY_DIMS = 16 };

static const char magic[] = "\x93NUMPY";

static const struct {
    enum type type;
    char order; /* '|': one byte, no order; numpy loses that of V2 when it copies such an array */
    const char *code;
} npy_types[] = {
    {TYPE_F64, '<', "f8"}, {TYPE_F32, '<', "f4"}, {TYPE_F16, '<', "f2"},  {TYPE_I64, '<', "i8"},
    {TYPE_I32, '<', "i4"}, {TYPE_I16, '<', "i2"}, {TYPE_I8, '|', "i1"},   {TYPE_U64, '<', "u8"},
    {TYPE_U32, '<', "u4"}, {TYPE_U16, '<', "u2"}, {TYPE_BOOL, '|', "b1"}, {TYPE_U8, '|', "u1"},
    {TYPE_BF16, '<', "V2"},
};
enum { NPY_TYPES = sizeof npy_types / sizeof *npy_types };

/* The header under reading: a Python dictionary between `at` and `end`, both offsets into the file.
 */
struct header {
    const char *path;
    const unsigned char *bytes;
    size_t at, end;
    struct array *array;
    size_t descr_at, order_at, shape_at; /* 0: not seen */
    bool fortran;
    struct diags *diags;
};

static bool fail(const struct header *h, size_t at, const char *what) {
    diag_line(h->diags, h->path, 1, (int)at + 1, "byte %zu: %s", at, what);
    return false;
}

static void skip_space(struct header *h) {
    while (h->at < h->end && strchr(" \t\n\r", h->bytes[h->at]) && h->bytes[h->at]) h->at++;
}

static bool accept(struct header *h, char c) {
    skip_space(h);
    if (h->at >= h->end || h->bytes[h->at] != (unsigned char)c) return false;
    h->at++;
    return true;
}

static bool read_word(struct header *h, const char **word, size_t *length) {
    skip_space(h);
    size_t at = h->at;
    if (at >= h->end || (h->bytes[at] != '\'' && h->bytes[at] != '"'))
        return fail(h, at, "expected a string in quotes");
    const unsigned char *end = memchr(h->bytes + at + 1, h->bytes[at], h->end - at - 1);
    if (!end) return fail(h, at, "this string has no end");
    *word = (const char *)h->bytes + at + 1;
    *length = (size_t)(end - h->bytes) - at - 1;
    h->at = (size_t)(end - h->bytes) + 1;
    return true;
}

static bool word_is(const char *word, size_t length, const char *what) {
    return length == strlen(what) && memcmp(word, what, length) == 0;
}

static bool read_descr(struct header *h) {
    const char *word;
    size_t length, at;
    skip_space(h);
    at = h->descr_at = h->at;
    if (at < h->end && h->bytes[at] == '[')
        return fail(h, at, "structured data is not supported: save each field as an array");
    if (!read_word(h, &word, &length)) return false;
    if (length == 3 && word[0] == '>')
        return fail(h, at, "big-endian data is not supported: save it as little endian");
    for (int i = 0; i < NPY_TYPES; i++) {
        bool one = npy_types[i].order == '|' || npy_types[i].type == TYPE_BF16;
        if (length == 3 && memcmp(word + 1, npy_types[i].code, 2) == 0 &&
            (word[0] == '<' || word[0] == '=' || (one && word[0] == '|'))) {
            h->array->type = npy_types[i].type;
            return true;
        }
    }
    if (word_is(word, length, "bfloat16")) {
        h->array->type = TYPE_BF16;
        return true;
    }
    diag_line(h->diags, h->path, 1, (int)at + 1,
              "byte %zu: type '%.*s' is not supported: expected a float, an integer or bool", at,
              length > 40 ? 40 : (int)length, word);
    return false;
}

static bool read_order(struct header *h) {
    skip_space(h);
    h->order_at = h->at;
    size_t rest = h->end - h->at;
    const void *at = h->bytes + h->at;
    if (rest >= 4 && memcmp(at, "True", 4) == 0) {
        h->fortran = true;
        h->at += 4;
        return true;
    }
    if (rest >= 5 && memcmp(at, "False", 5) == 0) {
        h->at += 5;
        return true;
    }
    return fail(h, h->at, "expected True or False");
}

static bool read_shape(struct header *h) {
    struct array *a = h->array;
    skip_space(h);
    h->shape_at = h->at;
    if (!accept(h, '(')) return fail(h, h->at, "expected the shape, as in (2, 3)");
    while (!accept(h, ')')) {
        size_t at = h->at;
        int64_t v = 0;
        if (a->ndims == MAX_ARRAY_DIMS) return fail(h, at, "more than 16 dimensions");
        for (; h->at < h->end && h->bytes[h->at] >= '0' && h->bytes[h->at] <= '9'; h->at++)
            if (__builtin_mul_overflow(v, 10, &v) ||
                __builtin_add_overflow(v, h->bytes[h->at] - '0', &v))
                return fail(h, at, "this extent is too large");
        if (h->at == at) return fail(h, at, "expected an extent, a number of elements");
        a->extent[a->ndims++] = v;
        if (h->at < h->end && h->bytes[h->at] == 'L') h->at++; /* Python 2 wrote long integers so */
        if (!accept(h, ',')) {
            if (!accept(h, ')')) return fail(h, h->at, "expected ',' or ')' in the shape");
            break;
        }
    }
    return true;
}

static bool read_entry(struct header *h) {
    const char *key;
    size_t length, at;
    skip_space(h);
    at = h->at;
    if (!read_word(h, &key, &length)) return false;
    if (!accept(h, ':')) return fail(h, h->at, "expected ':'");
    size_t *seen = word_is(key, length, "descr")           ? &h->descr_at
                   : word_is(key, length, "fortran_order") ? &h->order_at
                   : word_is(key, length, "shape")         ? &h->shape_at
                                                           : NULL;
    if (!seen) return fail(h, at, "unknown key: expected descr, fortran_order and shape");
    if (*seen) return fail(h, at, "this key is given twice");
    if (seen == &h->descr_at) return read_descr(h);
    return seen == &h->order_at ? read_order(h) : read_shape(h);
}

static bool read_dictionary(struct header *h) {
    size_t start = h->at;
    if (!accept(h, '{')) return fail(h, h->at, "expected '{', the beginning of the header");
    while (!accept(h, '}')) {
        if (!read_entry(h)) return false;
        if (!accept(h, ',')) {
            if (!accept(h, '}')) return fail(h, h->at, "expected ',' or '}' in the header");
            break;
        }
    }
    skip_space(h);
    if (h->at != h->end) return fail(h, h->at, "unexpected text after the header");
    if (!h->descr_at) return fail(h, start, "the header has no 'descr'");
    if (!h->order_at) return fail(h, start, "the header has no 'fortran_order'");
    if (!h->shape_at) return fail(h, start, "the header has no 'shape'");
    if (h->fortran && h->array->ndims > 1)
        return fail(h, h->order_at,
                    "Fortran order is not supported: save it through numpy.ascontiguousarray");
    return true;
}

static bool count_elements(const struct header *h, int64_t *bytes) {
    struct array *a = h->array;
    a->elements = 1;
    bool empty = false;
    for (int d = 0; d < a->ndims; d++) empty |= a->extent[d] == 0;
    for (int d = 0; d < a->ndims && !empty; d++)
        if (__builtin_mul_overflow(a->elements, a->extent[d], &a->elements))
            return fail(h, h->shape_at, "this shape has too many elements");
    if (empty) a->elements = 0;
    if (__builtin_mul_overflow(a->elements, (int64_t)type_size(a->type), bytes))
        return fail(h, h->shape_at, "this shape has too many bytes");
    return true;
}

/* Fills all of `a` but its data. `length`: bytes at hand, the whole header at least when the file
 * has one. */
static bool parse_header(const char *path, const unsigned char *bytes, size_t length,
                         struct array *a, size_t *data_at, int64_t *data_bytes,
                         struct diags *diags) {
    struct header h = {.path = path, .bytes = bytes, .array = a, .diags = diags};
    memset(a, 0, sizeof *a);
    if (length < 6 || memcmp(bytes, magic, 6) != 0)
        return fail(&h, 0, "this is not a .npy file: expected the magic bytes \\x93NUMPY");
    if (length < 10) return fail(&h, length, "the file ends inside its header");
    if (bytes[6] < 1 || bytes[6] > 3)
        return fail(&h, 6, "unknown version of .npy: expected 1.0, 2.0 or 3.0");
    size_t prefix = bytes[6] == 1 ? 10 : 12;
    if (length < prefix) return fail(&h, length, "the file ends inside its header");
    size_t n = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (prefix == 12) n |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (n > MAX_HEADER) return fail(&h, 8, "the header is longer than 65536 bytes");
    if (length - prefix < n) return fail(&h, length, "the file ends inside its header");
    h.at = prefix;
    h.end = prefix + n;
    *data_at = h.end;
    return read_dictionary(&h) && count_elements(&h, data_bytes);
}

static bool check_size(const char *path, const struct array *a, size_t data_at, int64_t want,
                       uint64_t have, struct diags *diags) {
    if ((uint64_t)want == have) return true;
    diag_line(diags, path, 1, (int)data_at + 1,
              "byte %zu: %" PRIu64 " bytes of data follow, but the shape needs %" PRId64
              " elements of %s, %" PRId64 " bytes",
              data_at, have, a->elements, type_name(a->type), want);
    return false;
}

static void *data_room(const char *path, int64_t bytes, struct diags *diags) {
    void *data = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!data) diag_line(diags, path, 0, 0, "no memory for %" PRId64 " bytes", bytes);
    return data;
}

static void normalise_bools(struct array *a) {
    unsigned char *at = a->data;
    for (int64_t i = 0; a->type == TYPE_BOOL && i < a->elements; i++) at[i] = at[i] != 0;
}

bool npy_parse(const char *path, const void *bytes, size_t length, struct array *a,
               struct diags *diags) {
    size_t data_at;
    int64_t want;
    if (!parse_header(path, bytes, length, a, &data_at, &want, diags) ||
        !check_size(path, a, data_at, want, length - data_at, diags) ||
        !(a->data = data_room(path, want, diags)))
        return false;
    memcpy(a->data, (const char *)bytes + data_at, (size_t)want);
    normalise_bools(a);
    return true;
}

static bool read_open(const char *path, FILE *f, struct array *a, struct diags *diags) {
    struct stat st;
    if (fstat(fileno(f), &st) != 0) {
        diag_line(diags, path, 0, 0, "cannot be read: %s", strerror(errno));
        return false;
    }
    unsigned char *head = malloc(MAX_PREFIX + MAX_HEADER);
    if (!head) return data_room(path, MAX_HEADER, diags) != NULL;
    size_t got = fread(head, 1, MAX_PREFIX + MAX_HEADER, f), data_at;
    int64_t want;
    bool ok = parse_header(path, head, got, a, &data_at, &want, diags);
    free(head);
    uint64_t size = (uint64_t)st.st_size;
    if (!ok || !check_size(path, a, data_at, want, size > data_at ? size - data_at : 0, diags) ||
        !(a->data = data_room(path, want, diags)))
        return false;
    if (fseeko(f, (off_t)data_at, SEEK_SET) != 0 ||
        fread(a->data, 1, (size_t)want, f) != (size_t)want) {
        diag_line(diags, path, 0, 0, "cannot be read: %s",
                  ferror(f) ? strerror(errno) : "it ends early");
        array_free(a);
        return false;
    }
    normalise_bools(a);
    return true;
}

bool npy_read(const char *path, struct array *a, struct diags *diags) {
    memset(a, 0, sizeof *a);
    FILE *f = file_open(path, diags);
    if (!f) return false;
    bool ok = read_open(path, f, a, diags);
    fclose(f);
    return ok;
}

static const char *descr_of(enum type type, char *room) {
    for (int i = 0; i < NPY_TYPES; i++)
        if (npy_types[i].type == type) {
            room[0] = npy_types[i].order;
            memcpy(room + 1, npy_types[i].code, 3);
            return room;
        }
    return NULL;
}

/* The header with its magic, filled with spaces to a multiple of 64 bytes. */
static void make_header(struct text *t, const struct array *a, const char *descr) {
    struct text dict = {0};
    text_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < a->ndims; d++)
        text_printf(&dict, "%s%" PRId64, d ? ", " : "", a->extent[d]);
    text_printf(&dict, "%s), }", a->ndims == 1 ? "," : "");
    while ((10 + dict.n + 1) % 64) text_append(&dict, " ", 1);
    text_append(&dict, "\n", 1);
    unsigned char prefix[10] = {0};
    memcpy(prefix, magic, 6);
    prefix[6] = 1;
    prefix[8] = dict.n & 255;
    prefix[9] = (unsigned char)(dict.n >> 8);
    text_append(t, (const char *)prefix, sizeof prefix);
    text_append(t, dict.at, dict.n);
    text_free(&dict);
}

bool npy_write(const char *path, const struct array *a, struct diags *diags) {
    char room[4];
    const char *descr = descr_of(a->type, room);
    if (!descr) {
        diag_line(diags, path, 0, 0, ".npy has no type for %s: cast to f32", type_name(a->type));
        return false;
    }
    struct output *o = output_open(path, diags);
    if (!o) return false;
    struct text head = {0};
    make_header(&head, a, descr);
    fwrite(head.at, 1, head.n, o->file);
    fwrite(a->data, 1, (size_t)a->elements * type_size(a->type), o->file);
    text_free(&head);
    return output_close(o, true, diags);
}

void array_free(struct array *a) {
    free(a->data);
    a->data = NULL;
}
