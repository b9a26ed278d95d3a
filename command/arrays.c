/* Arrays for the buffers of a program: read from files, random, or the model's own; written, and
 * handed to a schedule. */
#include "command/isamap_int.h"
#include "ir/memory.h"
#include "ir/nearest.h"
#include "ir/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t next_random(uint64_t *s) { /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Weights by the root of their fan-in, as networks are initialised: what is deep or recurrent stays
 * in range, and rounding does not grow from step to step. */
static void random_fill(const struct buffer *b, void *data, uint64_t seed) {
    size_t bytes = type_size(b->type);
    double scale = 1;
    if (b->role == ROLE_CONST && b->ndims > 1 && b->extent[0] > 0)
        scale = 1 / sqrt((double)(b->elements / b->extent[0]));
    for (int64_t i = 0; i < b->elements; i++) {
        uint64_t r = next_random(&seed);
        union value v;
        if (type_is_float(b->type))
            v.f = ((double)(r >> 11) * 0x1p-52 - 1.0) * scale;
        else if (b->type == TYPE_BOOL)
            v.i = (int64_t)(r & 1);
        else
            v.i = bytes == 1 ? (int64_t)(r & 255) : (int64_t)(r % 1999) - 999;
        if (!type_is_float(b->type) && !type_is_signed(b->type) && v.i < 0) v.i = -v.i;
        type_store(b->type, (char *)data + (size_t)i * bytes, v);
    }
}

bool is_argument(const struct buffer *b) {
    return b->role == ROLE_IN || b->role == ROLE_OUT || b->role == ROLE_INOUT ||
           b->role == ROLE_CONST;
}

/* The ONNX name of an input's buffer; NULL: none. */
static const char *model_name_of(const struct job *j, int buffer) {
    const char *name = j->program->buffer[buffer].name;
    for (int i = 0; j->model && i < j->model->ninputs; i++)
        if (strcmp(j->model->input[i].buffer, name) == 0) return j->model->input[i].onnx;
    return NULL;
}

/* The buffer of the model's input of this name; other names are those of buffers. */
static const char *input_buffer(const struct job *j, const char *name) {
    for (int i = 0; j->model && i < j->model->ninputs; i++)
        if (strcmp(j->model->input[i].onnx, name) == 0) return j->model->input[i].buffer;
    return name;
}

/* Is the buffer an input of this name, the model's or the program's? */
static bool is_input_named(const struct job *j, int buffer, const char *name) {
    const struct buffer *b = &j->program->buffer[buffer];
    return is_argument(b) && b->role != ROLE_OUT && strcmp(input_buffer(j, name), b->name) == 0;
}

static const char *input_file(const isamap *im, const struct job *j, int buffer) {
    for (int i = 0; i < im->option.input.n; i++)
        if (is_input_named(j, buffer, im->option.input.at[i].name))
            return im->option.input.at[i].value;
    return NULL;
}

/* The buffer as this run's arrays are: its open size is known. */
static struct buffer sized_buffer(const struct job *j, int buffer, int64_t extent[MAX_DIMS]) {
    struct buffer b = j->program->buffer[buffer];
    if (!j->size || !b.size) return b;
    memcpy(extent, b.extent, (size_t)b.ndims * sizeof *extent);
    b.extent = extent;
    b.elements = b.extent[0] ? b.elements / b.extent[0] * j->size[b.size - 1] : 0;
    b.extent[0] = j->size[b.size - 1];
    return b;
}

static bool take_input(isamap *im, const struct buffer *b, const char *file, struct array a,
                       void *data) {
    if (a.type == TYPE_U16 && b->type == TYPE_BF16) a.type = TYPE_BF16; /* its bits */
    bool same = a.type == b->type && a.ndims == b->ndims;
    for (int d = 0; same && d < b->ndims; d++) same = a.extent[d] == b->extent[d];
    if (same) {
        memcpy(data, a.data, (size_t)b->elements * type_size(b->type));
    } else {
        struct text want = {0}, got = {0};
        for (int d = 0; d < b->ndims; d++)
            text_printf(&want, "%s%" PRId64, d ? ", " : "", b->extent[d]);
        for (int d = 0; d < a.ndims; d++)
            text_printf(&got, "%s%" PRId64, d ? ", " : "", a.extent[d]);
        diag_line(&im->diags, file, 1, 1, "the array is %s[%s]; input '%s' is %s[%s]",
                  type_name(a.type), got.at ? got.at : "", b->name, type_name(b->type),
                  want.at ? want.at : "");
        text_free(&want);
        text_free(&got);
    }
    return same;
}

static bool read_input(isamap *im, const struct buffer *b, const char *file, void *data) {
    struct array a;
    if (!npy_read(file, &a, &im->diags)) return false;
    bool ok = take_input(im, b, file, a, data);
    array_free(&a);
    return ok;
}

static bool no_input(isamap *im, const struct job *j, const char *name) {
    struct arena *a = &im->diags.arena;
    struct names known = {0};
    for (int b = 0; b < j->program->nbuffers; b++) {
        const char *onnx = model_name_of(j, b);
        if (!is_argument(&j->program->buffer[b]) || j->program->buffer[b].role == ROLE_OUT)
            continue;
        if (j->model && !onnx) continue;
        names_add(a, &known, onnx ? onnx : j->program->buffer[b].name);
    }
    diag_line(&im->diags, "--input", 0, 0, "'%s' has no input '%s', expected %s", j->name, name,
              names_listed(a, name, &known));
    return false;
}

/* A model's input of no elements is no buffer; its array may be given. */
static bool of_nothing(const struct job *j, const char *file) {
    struct array a;
    struct diags
        unsaid; /* what is wrong with the file matters less than that its name is unknown */
    diags_init(&unsaid);
    bool read = j->model && npy_read(file, &a, &unsaid), nothing = read && a.elements == 0;
    if (read) array_free(&a);
    diags_free(&unsaid);
    return nothing;
}

/* What the file of --compare has for an input; NULL: nothing. */
static const struct array *expected_input(const struct job *j, int buffer) {
    const char *name = j->expected.n ? model_name_of(j, buffer) : NULL;
    return name ? npz_find(&j->expected, name) : NULL;
}

bool arrays_fill(isamap *im, const struct job *j, struct arrays *out) {
    const struct program *p = j->program;
    out->n = p->nbuffers;
    out->data = memory_array((size_t)p->nbuffers + 1, sizeof *out->data);
    out->lent = memory_array((size_t)p->nbuffers + 1, sizeof *out->lent);
    for (int i = 0; i < im->option.input.n; i++) {
        const struct pair *given = &im->option.input.at[i];
        int b = 0;
        while (b < p->nbuffers && !is_input_named(j, b, given->name)) b++;
        if (b == p->nbuffers && of_nothing(j, given->value)) continue;
        if (b == p->nbuffers) return no_input(im, j, given->name);
        if (input_file(im, j, b) == given->value) continue;
        diag_line(&im->diags, "--input", 0, 0, "input '%s' is given twice", given->name);
        return false;
    }
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *buffer = &p->buffer[b];
        if (!is_argument(buffer)) continue;
        const char *file = input_file(im, j, b);
        const void *weights = weights_of(j, b);
        out->lent[b] = !file && weights && buffer->role == ROLE_CONST;
        out->data[b] = out->lent[b]
                           ? (void *)(uintptr_t)weights
                           : memory_take((size_t)buffer->elements + 1, type_size(buffer->type));
        if (out->lent[b]) continue;
        if (file) {
            int64_t extent[MAX_DIMS];
            struct buffer sized = sized_buffer(j, b, extent);
            if (!read_input(im, &sized, file, out->data[b])) return false;
        } else if (buffer->role == ROLE_IN && expected_input(j, b)) {
            if (!take_input(im, buffer, im->option.compare, *expected_input(j, b), out->data[b]))
                return false;
        } else if (weights) {
            memcpy(out->data[b], weights, (size_t)buffer->elements * type_size(buffer->type));
        } else if (buffer->role != ROLE_OUT) {
            random_fill(buffer, out->data[b], im->option.seed + (uint64_t)b * 0x100000001b3u);
        }
    }
    return true;
}

struct arrays arrays_copy(const struct job *j, const struct arrays *from) {
    struct arrays to = {.data = memory_array((size_t)from->n + 1, sizeof *to.data),
                        .lent = memory_array((size_t)from->n + 1, sizeof *to.lent),
                        .n = from->n};
    for (int b = 0; b < from->n; b++) {
        to.lent[b] = from->data[b] && j->program->buffer[b].role == ROLE_CONST;
        if (to.lent[b]) to.data[b] = from->data[b];
        if (!from->data[b] || to.lent[b]) continue;
        size_t bytes =
            (size_t)j->program->buffer[b].elements * type_size(j->program->buffer[b].type);
        to.data[b] = memory_take(bytes + 1, 1);
        memcpy(to.data[b], from->data[b], bytes);
    }
    return to;
}

void arrays_free(struct arrays *a) {
    for (int b = 0; b < a->n && a->data; b++)
        if (!a->lent || !a->lent[b]) memory_give(a->data[b]);
    free(a->data);
    free(a->lent);
    *a = (struct arrays){0};
}

bool arrays_write(isamap *im, const struct job *j, const struct arrays *a) {
    if (!im->option.output_dir) return true;
    bool ok = true;
    for (int b = 0; b < a->n && ok; b++) {
        int64_t extent[MAX_DIMS];
        struct buffer sized = sized_buffer(j, b, extent);
        const struct buffer *buffer = &sized;
        if (buffer->role != ROLE_OUT && buffer->role != ROLE_INOUT) continue;
        struct array array = {.type = buffer->type,
                              .ndims = buffer->ndims,
                              .elements = buffer->elements,
                              .data = a->data[b]};
        memcpy(array.extent, buffer->extent, (size_t)buffer->ndims * sizeof *buffer->extent);
        struct text path = {0};
        text_printf(&path, "%s/%s.npy", im->option.output_dir, buffer->name);
        ok = npy_write(path.at, &array, &im->diags);
        text_free(&path);
    }
    return ok;
}

void **arrays_for_schedule(const struct job *j, const struct arrays *a) {
    const struct program *p = j->schedule->program;
    void **data = memory_array((size_t)p->nbuffers + 1, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) {
        int from = is_argument(&p->buffer[b]) ? program_buffer(j->program, p->buffer[b].name) : -1;
        if (from >= 0) data[b] = a->data[from];
    }
    return data;
}
