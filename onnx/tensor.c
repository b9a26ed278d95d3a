#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"
#include "ir/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ONNX's number, name, our type; where typed data lies: 'f' float_data, 'd' double_data, 'i'
 * int32_data, 'l' int64_data, 'u' uint64_data */
static const struct {
    int32_t onnx;
    const char *name;
    enum type type;
    char field;
} types[] = {
    {1, "FLOAT", TYPE_F32, 'f'},      {2, "UINT8", TYPE_U8, 'i'},    {3, "INT8", TYPE_I8, 'i'},
    {4, "UINT16", TYPE_U16, 'i'},     {5, "INT16", TYPE_I16, 'i'},   {6, "INT32", TYPE_I32, 'i'},
    {7, "INT64", TYPE_I64, 'l'},      {9, "BOOL", TYPE_BOOL, 'i'},   {10, "FLOAT16", TYPE_F16, 'h'},
    {11, "DOUBLE", TYPE_F64, 'd'},    {12, "UINT32", TYPE_U32, 'u'}, {13, "UINT64", TYPE_U64, 'u'},
    {16, "BFLOAT16", TYPE_BF16, 'h'},
};
static const char *const other_types[] = {[0] = "UNDEFINED",     [8] = "STRING",
                                          [14] = "COMPLEX64",    [15] = "COMPLEX128",
                                          [17] = "FLOAT8E4M3FN", [18] = "FLOAT8E4M3FNUZ",
                                          [19] = "FLOAT8E5M2",   [20] = "FLOAT8E5M2FNUZ",
                                          [21] = "UINT4",        [22] = "INT4",
                                          [23] = "FLOAT4E2M1",   [24] = "FLOAT8E8M0",
                                          [25] = "UINT2",        [26] = "INT2"};
enum { UINT4 = 21, INT4 = 22 };
enum { TYPES = sizeof types / sizeof *types, OTHERS = sizeof other_types / sizeof *other_types };

static int type_index(int32_t onnx_type) {
    for (int i = 0; i < TYPES; i++)
        if (types[i].onnx == onnx_type) return i;
    return -1;
}

bool tensor_type(int32_t onnx_type, enum type *out) {
    int i = type_index(onnx_type);
    if (i >= 0) *out = types[i].type;
    return i >= 0;
}

const char *tensor_type_name(int32_t onnx_type) {
    int i = type_index(onnx_type);
    if (i >= 0) return types[i].name;
    return onnx_type >= 0 && onnx_type < OTHERS ? other_types[onnx_type] : NULL;
}

bool tensor_count(struct tensor *t) {
    int64_t bytes;
    t->elements = 1;
    for (int d = 0; d < t->ndims; d++)
        if (t->extent[d] < 0 || __builtin_mul_overflow(t->elements, t->extent[d], &t->elements))
            return false;
    return !__builtin_mul_overflow(t->elements, (int64_t)type_size(t->type), &bytes) &&
           bytes <= INT64_MAX / 16; /* what a kernel's buffer may have */
}

int64_t tensor_int(const struct tensor *t, int64_t i) {
    union value v = type_load(t->type, (const char *)t->data + (size_t)i * type_size(t->type));
    return type_convert(TYPE_I64, t->type, v).i;
}

double tensor_float(const struct tensor *t, int64_t i) {
    union value v = type_load(t->type, (const char *)t->data + (size_t)i * type_size(t->type));
    return type_convert(TYPE_F64, t->type, v).f;
}

char *shape_text(struct arena *arena, int ndims, const int64_t *extent) {
    struct text t = {0};
    text_printf(&t, "[");
    for (int d = 0; d < ndims; d++) text_printf(&t, "%s%" PRId64, d ? "," : "", extent[d]);
    text_printf(&t, "]");
    char *copy = arena_strdup(arena, t.at);
    text_free(&t);
    return copy;
}

/* One tensor under reading. */
struct reading {
    struct arena *arena;
    const char *path, *what;
    const Onnx__TensorProto *proto;
    struct tensor *tensor;
    size_t bytes;
    struct diags *diags;
};

static bool tensor_fail(const struct reading *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool tensor_fail(const struct reading *r, const char *fmt, ...) {
    va_list args;
    char text[512];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    diag_line(r->diags, r->path, 0, 0, "%s: %s", r->what, text);
    return false;
}

/* Instructions read a model's weights where they are: no vector of theirs lies in two cache lines.
 */
static void *data_alloc(struct arena *a, size_t bytes) {
    enum { LINE = 64 };
    if (bytes > SIZE_MAX / 2) memory_exhausted(bytes);
    uintptr_t at = (uintptr_t)arena_alloc(a, bytes + LINE);
    return (void *)((at + LINE - 1) / LINE * LINE);
}

static bool copy_raw(struct reading *r) {
    const ProtobufCBinaryData *raw = &r->proto->raw_data;
    if (raw->len != r->bytes)
        return tensor_fail(r, "it has %zu bytes of data, but %" PRId64 " elements of %s are %zu",
                           raw->len, r->tensor->elements, type_name(r->tensor->type), r->bytes);
    void *data = data_alloc(r->arena, raw->len);
    if (raw->len) memcpy(data, raw->data, raw->len);
    r->tensor->data = data;
    return true;
}

static bool typed_count(const struct reading *r, char field, size_t *n) {
    const Onnx__TensorProto *p = r->proto;
    *n = field == 'f'   ? p->n_float_data
         : field == 'd' ? p->n_double_data
         : field == 'l' ? p->n_int64_data
         : field == 'u' ? p->n_uint64_data
                        : p->n_int32_data;
    if (*n == (size_t)r->tensor->elements) return true;
    return tensor_fail(r, "it has %zu values, but its shape has %" PRId64 " elements", *n,
                       r->tensor->elements);
}

static bool copy_typed(struct reading *r) {
    struct tensor *t = r->tensor;
    const Onnx__TensorProto *p = r->proto;
    char field = types[type_index(p->data_type)].field;
    size_t n, size = type_size(t->type);
    if (!typed_count(r, field, &n)) return false;
    char *to = data_alloc(r->arena, r->bytes);
    t->data = to;
    for (size_t i = 0; i < n; i++) {
        union value v;
        if (field == 'f')
            v.f = p->float_data[i];
        else if (field == 'd')
            v.f = p->double_data[i];
        else if (field == 'l')
            v.i = p->int64_data[i];
        else if (field == 'u')
            v.i = (int64_t)p->uint64_data[i];
        else
            v.i = p->int32_data[i];
        if (field == 'h')
            memcpy(to + i * size, &(uint16_t){(uint16_t)v.i}, 2); /* the bits of the float */
        else
            type_store(t->type, to + i * size, v);
    }
    return true;
}

/* Two elements in a byte, the first in its lower half, become a byte each. */
static void open_halves(struct reading *r) {
    const unsigned char *from = r->tensor->data;
    signed char *to = data_alloc(r->arena, (size_t)r->tensor->elements);
    for (int64_t i = 0; i < r->tensor->elements; i++) {
        int half = from[i / 2] >> i % 2 * 4 & 15;
        to[i] = (signed char)(r->tensor->type == TYPE_I8 && half > 7 ? half - 16 : half);
    }
    r->tensor->data = to;
}

/* The same in numbers of 32 bits, each of which holds such a byte. */
static bool copy_halves(struct reading *r) {
    const Onnx__TensorProto *p = r->proto;
    if (p->n_int32_data != r->bytes)
        return tensor_fail(r, "it has %zu values, but %" PRId64 " elements of 4 bits are in %zu",
                           p->n_int32_data, r->tensor->elements, r->bytes);
    unsigned char *to = data_alloc(r->arena, r->bytes);
    for (size_t i = 0; i < r->bytes; i++) to[i] = (unsigned char)p->int32_data[i];
    r->tensor->data = to;
    return true;
}

/* ---- external data ---- */

static bool location_inside(const char *location) {
    if (!*location || *location == '/' || strchr(location, '\\')) return false;
    for (const char *at = location; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return false;
    return true;
}

/* The real path of the file, malloc'ed, when it lies in the model's folder. */
static char *external_path(struct reading *r, const char *location) {
    const char *slash = strrchr(r->path, '/');
    char *folder = slash ? arena_strndup(r->arena, r->path, (size_t)(slash - r->path) + 1) : "./";
    char *base = realpath(folder, NULL);
    char *file = realpath(arena_printf(r->arena, "%s%s", folder, location), NULL);
    size_t n = base ? strlen(base) : 0;
    if (!base || !file)
        tensor_fail(r, "its data file '%s' cannot be found: %s", name_shown(r->arena, location),
                    strerror(errno));
    else if (strncmp(file, base, n) == 0 && (file[n] == '/' || strcmp(base, "/") == 0)) {
        free(base);
        return file;
    } else
        tensor_fail(r, "its data file '%s' leads out of the model's folder",
                    name_shown(r->arena, location));
    free(base);
    free(file);
    return NULL;
}

static bool parse_number(const char *s, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return *s && !*end && errno == 0 && *out >= 0;
}

static bool read_file_part(struct reading *r, const char *file, int64_t offset) {
    struct stat st;
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); /* a pipe must not wait */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!f) return tensor_fail(r, "its data file cannot be opened: %s", strerror(errno));
    bool ok = fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode);
    if (!ok) tensor_fail(r, "its data file is not a regular file");
    if (ok && (offset > st.st_size || (uint64_t)(st.st_size - offset) < r->bytes))
        ok = tensor_fail(r,
                         "its data, %zu bytes at %" PRId64 ", reach past the end of the data file",
                         r->bytes, offset);
    if (ok) {
        void *data = data_alloc(r->arena, r->bytes);
        r->tensor->data = data;
        ok = fseeko(f, (off_t)offset, SEEK_SET) == 0 && fread(data, 1, r->bytes, f) == r->bytes;
        if (!ok) tensor_fail(r, "its data file cannot be read");
    }
    fclose(f);
    return ok;
}

static bool copy_external(struct reading *r) {
    const char *location = NULL;
    int64_t offset = 0, length = (int64_t)r->bytes;
    for (size_t i = 0; i < r->proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = r->proto->external_data[i];
        if (!e->key || !e->value) continue;
        if (strcmp(e->key, "location") == 0) location = e->value;
        if (strcmp(e->key, "offset") == 0 && !parse_number(e->value, &offset))
            return tensor_fail(r, "the offset of its external data is not a number");
        if (strcmp(e->key, "length") == 0 && !parse_number(e->value, &length))
            return tensor_fail(r, "the length of its external data is not a number");
    }
    if (!location) return tensor_fail(r, "its external data have no location");
    if (!location_inside(location))
        return tensor_fail(r, "the location of its external data is not inside the model's folder: "
                              "expected a relative path without '..'");
    if (length != (int64_t)r->bytes)
        return tensor_fail(
            r, "it has %" PRId64 " bytes of external data, but %" PRId64 " elements of %s are %zu",
            length, r->tensor->elements, type_name(r->tensor->type), r->bytes);
    char *file = external_path(r, location);
    bool ok = file && read_file_part(r, file, offset);
    free(file);
    return ok;
}

static bool of_halves(const Onnx__TensorProto *p) {
    return p->data_type == UINT4 || p->data_type == INT4;
}

bool tensor_readable(const Onnx__TensorProto *p) {
    return type_index(p->data_type) >= 0 || of_halves(p) || !tensor_type_name(p->data_type);
}

bool tensor_from_proto(struct arena *arena, const char *path, const char *what,
                       const Onnx__TensorProto *p, struct tensor *t, struct diags *diags) {
    struct reading r = {arena, path, what, p, t, 0, diags};
    t->halves = of_halves(p);
    if (t->halves) {
        t->type = p->data_type == INT4 ? TYPE_I8 : TYPE_U8;
    } else if (!tensor_type(p->data_type, &t->type)) {
        const char *name = tensor_type_name(p->data_type);
        if (name) return tensor_fail(&r, "the type %s is not supported", name);
        return tensor_fail(&r, "unknown type %d", p->data_type);
    }
    if (p->n_dims > MAX_DIMS) return tensor_fail(&r, "more than %d dimensions", MAX_DIMS);
    t->ndims = (int)p->n_dims;
    for (int d = 0; d < t->ndims; d++) t->extent[d] = p->dims[d];
    if (!tensor_count(t))
        return tensor_fail(&r, "its shape %s is negative or too large",
                           shape_text(arena, t->ndims, t->extent));
    if (p->segment) return tensor_fail(&r, "tensors in segments are not supported");
    r.bytes = (size_t)t->elements * type_size(t->type);
    if (t->halves) r.bytes = (r.bytes + 1) / 2;
    bool ok =
        p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL
            ? copy_external(&r)
        : p->has_raw_data && p->raw_data.len ? copy_raw(&r)
        : t->halves                          ? copy_halves(&r)
                                             : copy_typed(&r);
    if (ok && t->halves) open_halves(&r);
    if (ok && t->type == TYPE_BOOL) {
        unsigned char *b = (unsigned char *)t->data;
        for (int64_t i = 0; i < t->elements; i++) b[i] = b[i] != 0;
    }
    return ok;
}

/* Where element i of a sparse tensor stands, by its index among all elements or in each dimension.
 * False: outside. */
static bool sparse_place(const struct tensor *t, const struct tensor *places, int64_t i,
                         int64_t *at) {
    *at = 0;
    for (int d = 0; places->ndims == 2 && d < t->ndims; d++) {
        int64_t x = tensor_int(places, i * t->ndims + d);
        if (x < 0 || x >= t->extent[d]) return false;
        *at = *at * t->extent[d] + x;
    }
    if (places->ndims == 1) *at = tensor_int(places, i);
    return *at >= 0 && *at < t->elements;
}

bool tensor_from_sparse(struct arena *arena, const char *path, const char *what,
                        const Onnx__SparseTensorProto *p, struct tensor *t, struct diags *diags) {
    struct reading r = {arena, path, what, p->values, t, 0, diags};
    struct tensor values = {0}, places = {0};
    if (!p->values || !p->indices) return tensor_fail(&r, "it has no values or no indices");
    if (!tensor_from_proto(arena, path, what, p->values, &values, diags) ||
        !tensor_from_proto(arena, path, what, p->indices, &places, diags))
        return false;
    if (p->n_dims > MAX_DIMS) return tensor_fail(&r, "more than %d dimensions", MAX_DIMS);
    t->type = values.type;
    t->halves = values.halves;
    t->ndims = (int)p->n_dims;
    for (int d = 0; d < t->ndims; d++) t->extent[d] = p->dims[d];
    if (!tensor_count(t))
        return tensor_fail(&r, "its shape %s is negative or too large",
                           shape_text(arena, t->ndims, t->extent));
    bool fits = values.ndims == 1 && places.type == TYPE_I64 &&
                (places.ndims == 1 || (places.ndims == 2 && places.extent[1] == t->ndims)) &&
                places.extent[0] == values.elements;
    if (!fits)
        return tensor_fail(&r, "its indices %s do not fit its values %s",
                           shape_text(arena, places.ndims, places.extent),
                           shape_text(arena, values.ndims, values.extent));
    size_t size = type_size(t->type), bytes = (size_t)t->elements * size;
    char *data = data_alloc(arena, bytes);
    if (bytes) memset(data, 0, bytes);
    for (int64_t i = 0, at; i < values.elements; i++) {
        if (!sparse_place(t, &places, i, &at))
            return tensor_fail(&r, "its value %" PRId64 " lies outside its shape %s", i,
                               shape_text(arena, t->ndims, t->extent));
        memcpy(data + (size_t)at * size, (const char *)values.data + (size_t)i * size, size);
    }
    t->data = data;
    return true;
}

static bool tensor_to_array(const struct tensor *t, struct array *a) {
    size_t bytes = (size_t)t->elements * type_size(t->type);
    *a = (struct array){.type = t->type, .ndims = t->ndims, .elements = t->elements};
    memcpy(a->extent, t->extent, sizeof *a->extent * (size_t)t->ndims);
    a->data = memory_bytes(bytes);
    memcpy(a->data, t->data, bytes);
    return true;
}

bool onnx_tensor_read(const char *path, struct array *a, struct diags *diags) {
    struct arena arena;
    size_t length;
    memset(a, 0, sizeof *a);
    arena_init(&arena);
    char *bytes = file_read(&arena, path, INT32_MAX, &length, diags);
    bool ok =
        bytes && wire_check(path, (uint8_t *)bytes, length, &onnx__tensor_proto__descriptor, diags);
    Onnx__TensorProto *p = ok ? onnx__tensor_proto__unpack(NULL, length, (uint8_t *)bytes) : NULL;
    if (ok && !p) diag_line(diags, path, 1, 1, "this is not a serialised tensor of ONNX");
    if (p) {
        struct tensor t = {0};
        ok = tensor_from_proto(&arena, path, "tensor", p, &t, diags) && tensor_to_array(&t, a);
        onnx__tensor_proto__free_unpacked(p, NULL);
    }
    arena_free(&arena);
    return ok && p;
}
#else
bool onnx_tensor_read(const char *path, struct array *a, struct diags *diags) {
    *a = (struct array){0};
    diag_line(diags, path, 0, 0,
              "ONNX files are not supported: isamap was built without protobuf-c");
    return false;
}
#endif
