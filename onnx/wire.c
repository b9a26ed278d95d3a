#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

enum { MAX_DEPTH = 64, MAX_MESSAGES = 1 << 21 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct wire {
    const char *path;
    const uint8_t *bytes;
    long messages;
    struct diags *diags;
};

static bool wire_fail(const struct wire *w, size_t at, const char *what) {
    diag_line(w->diags, w->path, 1, (int)at + 1, "byte %zu: %s", at, what);
    return false;
}

/* Reads a number of at most ten bytes at *at, which moves behind it. */
static bool read_varint(const struct wire *w, size_t *at, size_t end, uint64_t *out) {
    *out = 0;
    for (int k = 0; k < 10; k++) {
        if (*at + (size_t)k >= end) return wire_fail(w, *at, "the model ends inside a number");
        uint8_t b = w->bytes[*at + (size_t)k];
        *out |= (uint64_t)(b & 127) << (7 * k);
        if (b < 128) {
            *at += (size_t)k + 1;
            return true;
        }
    }
    return wire_fail(w, *at, "a number of more than ten bytes");
}

static bool skip_value(const struct wire *w, size_t *at, size_t end, unsigned wire_type,
                       size_t *length) {
    uint64_t v;
    size_t start = *at;
    *length = 0;
    switch (wire_type) {
    case WIRE_VARINT:
        return read_varint(w, at, end, &v);
    case WIRE_64:
    case WIRE_32:
        *length = wire_type == WIRE_64 ? 8 : 4;
        break;
    case WIRE_BYTES:
        if (!read_varint(w, at, end, &v)) return false;
        if (v > end - *at)
            return wire_fail(
                w, start,
                "this field is longer than what holds it: the model is cut off or damaged");
        *length = (size_t)v;
        break;
    default:
        return wire_fail(w, start, "not a field of protobuf: expected an ONNX model");
    }
    if (*length > end - *at) return wire_fail(w, start, "the model ends inside a field");
    *at += *length;
    return true;
}

static bool packed_whole(const struct wire *w, size_t at, size_t end) {
    uint64_t v;
    while (at < end)
        if (!read_varint(w, &at, end, &v)) return false;
    return true;
}

/* What protobuf-c would read from this field in another form than its type has would be kept as
 * unknown, and so be lost. */
static bool check_field(const struct wire *w, size_t at, const ProtobufCFieldDescriptor *f,
                        unsigned wire_type, size_t length) {
    bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
    bool packed = repeated && wire_type == WIRE_BYTES;
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return wire_type == WIRE_BYTES || wire_fail(w, at, "this field has the wrong kind");
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE: {
        unsigned size = f->type == PROTOBUF_C_TYPE_FLOAT ? 4 : 8;
        if (packed && length % size) return wire_fail(w, at, "a list of numbers with a broken end");
        return packed || wire_type == (size == 4 ? WIRE_32 : WIRE_64) ||
               wire_fail(w, at, "this field has the wrong kind");
    }
    default:
        if (packed) return packed_whole(w, at, at + length);
        return wire_type == WIRE_VARINT || wire_fail(w, at, "this field has the wrong kind");
    }
}

static bool check_message(struct wire *w, size_t at, size_t end,
                          const ProtobufCMessageDescriptor *kind, int depth) {
    if (depth > MAX_DEPTH) return wire_fail(w, at, "messages are nested more than 64 deep");
    if (++w->messages > MAX_MESSAGES) return wire_fail(w, at, "more than 2097152 messages");
    while (at < end) {
        size_t start = at, length;
        uint64_t tag;
        if (!read_varint(w, &at, end, &tag)) return false;
        if (tag >> 3 == 0 || tag >> 3 >= 1u << 29)
            return wire_fail(w, start, "not a field of protobuf: expected an ONNX model");
        if (!skip_value(w, &at, end, tag & 7, &length)) return false;
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field(kind, (unsigned)(tag >> 3));
        if (!f) continue;
        if (!check_field(w, at - length, f, tag & 7, length)) return false;
        if (f->type == PROTOBUF_C_TYPE_MESSAGE &&
            !check_message(w, at - length, at, f->descriptor, depth + 1))
            return false;
    }
    return true;
}

bool wire_check(const char *path, const uint8_t *bytes, size_t length,
                const ProtobufCMessageDescriptor *kind, struct diags *diags) {
    struct wire w = {.path = path, .bytes = bytes, .diags = diags};
    if (length > INT32_MAX)
        return wire_fail(&w, 0, "more than 2 GiB: keep the weights in external files");
    return check_message(&w, 0, length, kind, 1);
}
#endif
