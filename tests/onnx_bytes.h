/* For tests: ONNX models made byte by byte, so that they need no file. Fields by number as in
 * onnx.proto. */
#ifndef ISAMAP_TESTS_ONNX_BYTES_H
#define ISAMAP_TESTS_ONNX_BYTES_H

#include "ir/arena.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void put_varint(struct text *t, uint64_t v) {
    for (; v > 127; v >>= 7) text_append(t, &(char){(char)(v | 128)}, 1);
    text_append(t, &(char){(char)v}, 1);
}

static inline void put_number(struct text *t, unsigned field, int64_t v) {
    put_varint(t, field << 3);
    put_varint(t, (uint64_t)v);
}

static inline void put_bytes(struct text *t, unsigned field, const void *data, size_t n) {
    put_varint(t, field << 3 | 2);
    put_varint(t, n);
    if (n) text_append(t, data, n);
}

static inline void put_string(struct text *t, unsigned field, const char *s) {
    put_bytes(t, field, s, strlen(s));
}

/* as put_bytes; empties the message */
static inline void put_message(struct text *t, unsigned field, struct text *message) {
    put_bytes(t, field, message->at, message->n);
    text_free(message);
    *message = (struct text){0};
}

/* A graph in the making: nodes, inputs, … are appended to `graph`. */
struct model_bytes {
    struct text graph;
    struct text functions; /* of the model: put_function */
};

/* dims: "N,1,8"; a word is a symbolic dimension; NULL: no shape */
static inline void put_value(struct model_bytes *m, unsigned field, const char *name, int type,
                             const char *dims) {
    struct text value = {0}, typed = {0}, tensor = {0}, shape = {0}, dim = {0};
    put_string(&value, 1, name);
    put_number(&tensor, 1, type);
    for (const char *at = dims; at && *at;) {
        size_t n = strcspn(at, ",");
        char *end;
        long v = strtol(at, &end, 10);
        if (end == at + n)
            put_number(&dim, 1, v);
        else
            put_bytes(&dim, 2, at, n);
        put_message(&shape, 1, &dim);
        at += n + (at[n] == ',');
    }
    if (dims) put_message(&tensor, 2, &shape);
    put_message(&typed, 1, &tensor);
    put_message(&value, 2, &typed);
    put_message(&m->graph, field, &value);
}

static inline void put_input(struct model_bytes *m, const char *name, int type, const char *dims) {
    put_value(m, 11, name, type, dims);
}

static inline void put_output(struct model_bytes *m, const char *name, int type, const char *dims) {
    put_value(m, 12, name, type, dims);
}

static inline void tensor_bytes(struct text *t, const char *name, int type, int ndims,
                                const int64_t *dims, const void *raw, size_t n) {
    for (int d = 0; d < ndims; d++) put_number(t, 1, dims[d]);
    put_number(t, 2, type);
    if (name) put_string(t, 8, name);
    put_bytes(t, 9, raw, n);
}

static inline void put_initialiser(struct model_bytes *m, const char *name, int type, int ndims,
                                   const int64_t *dims, const void *raw, size_t n) {
    struct text t = {0};
    tensor_bytes(&t, name, type, ndims, dims, raw, n);
    put_message(&m->graph, 5, &t);
}

/* "name=1 2 3" a list of integers, "name%1 2.5" of floats, "name$A B" of strings, "name:4" an
 * integer, "name~0.5" a float, "name'text" a string, "name@other" what the call of the function
 * gives as `other` */
static inline void put_attribute(struct text *node, const char *spec) {
    struct text a = {0};
    size_t n = strcspn(spec, "=:~'@%$");
    const char *at = spec + n + 1;
    put_bytes(&a, 1, spec, n);
    if (spec[n] == ':') put_number(&a, 3, strtoll(at, NULL, 10));
    if (spec[n] == '\'') put_string(&a, 4, at);
    if (spec[n] == '@') {
        put_string(&a, 21, at);
        put_message(node, 5, &a);
        return;
    }
    if (spec[n] == '~') {
        float f = strtof(at, NULL);
        put_varint(&a, 2 << 3 | 5);
        text_append(&a, (char *)&f, 4);
    }
    for (char *end; spec[n] == '=' && *at; at = end + strspn(end, " "))
        put_number(&a, 8, strtoll(at, &end, 10));
    for (char *end; spec[n] == '%' && *at; at = end + strspn(end, " ")) {
        float f = strtof(at, &end);
        put_varint(&a, 7 << 3 | 5);
        text_append(&a, (char *)&f, 4);
    }
    for (const char *end; spec[n] == '$' && *at; at = end + strspn(end, " ")) {
        end = at + strcspn(at, " ");
        put_bytes(&a, 9, at, (size_t)(end - at));
    }
    put_number(&a, 20,
               spec[n] == '$'   ? 8
               : spec[n] == '=' ? 7
               : spec[n] == ':' ? 2
               : spec[n] == '~' ? 1
               : spec[n] == '%' ? 6
                                : 3);
    put_message(node, 5, &a);
}

/* words parted by commas; an empty text is no word */
static inline void put_each_word(struct text *t, unsigned field, const char *words) {
    for (const char *at = words; *at || at != words;) {
        size_t n = strcspn(at, ",");
        put_bytes(t, field, at, n);
        if (!at[n]) break;
        at += n + 1;
    }
}

/* op may have a domain: "my.Op". inputs, outputs, attributes: words parted by commas (lists inside
 * attributes use spaces) */
static inline void put_node_in(struct text *to, unsigned field, const char *op, const char *inputs,
                               const char *outputs, const char *attributes) {
    struct text node = {0};
    const char *dot = strrchr(op, '.');
    put_each_word(&node, 1, inputs);
    put_each_word(&node, 2, outputs);
    put_string(&node, 4, dot ? dot + 1 : op);
    if (dot) put_bytes(&node, 7, op, (size_t)(dot - op));
    for (const char *at = attributes; at && *at;) {
        size_t n = strcspn(at, ",");
        char *part = strndup(at, n);
        put_attribute(&node, part);
        free(part);
        at += n + (at[n] == ',');
    }
    put_message(to, field, &node);
}

static inline void put_node(struct model_bytes *m, const char *op, const char *inputs,
                            const char *output, const char *attributes) {
    put_node_in(&m->graph, 1, op, inputs, output, attributes);
}

/* A node of a function in the making. */
static inline void put_inner(struct text *function, const char *op, const char *inputs,
                             const char *outputs, const char *attributes) {
    put_node_in(function, 7, op, inputs, outputs, attributes);
}

/* Adds the function, made of `inner` nodes, which it empties. */
static inline void put_function(struct model_bytes *m, const char *domain, const char *name,
                                const char *inputs, const char *outputs, struct text *inner) {
    put_string(inner, 1, name);
    put_each_word(inner, 4, inputs);
    put_each_word(inner, 5, outputs);
    put_string(inner, 10, domain);
    put_message(&m->functions, 25, inner);
}

/* The whole model; empties m. Free with text_free. */
static inline struct text model_finish(struct model_bytes *m, int64_t opset) {
    struct text t = {0}, import = {0};
    put_number(&t, 1, 8);
    put_message(&t, 7, &m->graph);
    put_string(&import, 1, "");
    put_number(&import, 2, opset);
    put_message(&t, 8, &import);
    if (m->functions.n) text_append(&t, m->functions.at, m->functions.n);
    text_free(&m->functions);
    m->functions = (struct text){0};
    return t;
}

#endif
