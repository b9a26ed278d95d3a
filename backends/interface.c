#include "backends/interface.h"
#include "backends/backends_int.h"
#include "ir/stream.h"

#include <string.h>

const char *const interface_message[INTERFACE_STATUSES] = {
    [INTERFACE_DONE] = "done",
    [INTERFACE_REFUSED] = "the kernel refuses a permission that an instruction needs",
    [INTERFACE_ARGUMENT] = "an argument is wrong: a pointer is NULL or not aligned to 64 bytes "
                           "where that is needed, a "
                           "size is out of its range, or threads are not 0 to 1024",
    [INTERFACE_UNPREPARED] = "run without prepare, or the prepared block is another program's",
    [INTERFACE_WEIGHTS] = "the weights are not this program's",
    [INTERFACE_STREAM] = "the stream was not begun by init, or by that of another program",
    [INTERFACE_NO_DEVICE] = "there is no device that it runs on, or no driver",
    [INTERFACE_DEVICE] = "the device refuses the code, has no room for the arrays, or failed",
    [INTERFACE_OTHER] = "header and library are of different compilations",
};

const char *const weights_name[WEIGHTS_PLACES] = {"arguments", "embed", "file"};

/* ---- what there is ---- */

/* FNV-1a (Fowler, Noll, Vo), eight bytes a step. */
static uint64_t hash_bytes(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *at = bytes;
    for (; n >= 8; at += 8, n -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = (h ^ word) * UINT64_C(1099511628211);
        h ^= h >> 32;
    }
    for (; n; n--) h = (h ^ *at++) * UINT64_C(1099511628211);
    return h;
}

static int64_t buffer_bytes(const struct buffer *b) {
    return b->elements * (int64_t)type_size(b->type);
}

static void place_weights(struct interface *i) {
    const struct program *p = i->schedule->program;
    for (int b = 0; b < p->nbuffers; b++) {
        i->offset[b] = -1;
        if (!i->data || !i->data[b] || p->buffer[b].role != ROLE_CONST) continue;
        i->offset[b] = i->weight_bytes;
        i->weight_bytes += (buffer_bytes(&p->buffer[b]) + 63) / 64 * 64;
    }
    if (!i->weight_bytes) i->weights = WEIGHTS_ARGUMENTS;
}

static void list_fields(struct arena *a, struct interface *i, const char *const *title) {
    const struct program *p = i->schedule->program;
    int *all = arena_array(a, (size_t)p->nbuffers + 1, sizeof *all);
    int n = schedule_arguments(i->schedule, all);
    i->buffer = arena_array(a, (size_t)n + 1, sizeof *i->buffer);
    i->field = arena_array(a, (size_t)n + 1, sizeof *i->field);
    i->title = arena_array(a, (size_t)n + 1, sizeof *i->title);
    for (int k = 0; k < n; k++) {
        int b = all[k];
        if (i->offset[b] >= 0) continue;
        i->title[i->n] = title && title[b] ? title[b] : p->buffer[b].name;
        char *plain = i->field[i->n] = c_identifier(a, i->title[i->n]);
        bool taken =
            !strcmp(plain, "prepared") || !strcmp(plain, "threads") || !strcmp(plain, "weights");
        for (int m = 0; m < i->n; m++) taken = taken || !strcmp(i->field[m], plain);
        if (taken) i->field[i->n] = arena_printf(a, "%s_%d", plain, k);
        i->buffer[i->n++] = b;
    }
}

static int field_of(const struct interface *i, int buffer) {
    int k = 0;
    while (k < i->n && i->buffer[k] != buffer) k++;
    return k < i->n ? k : -1;
}

static void list_states(struct arena *a, struct interface *i, const struct backend_options *o) {
    i->state = arena_array(a, (size_t)o->nstates + 1, sizeof *i->state);
    int64_t at = STREAM_HEAD;
    for (int k = 0; k < o->nstates; k++) {
        struct carried_state s = {field_of(i, o->state[k].from), field_of(i, o->state[k].to), at,
                                  buffer_bytes(&i->schedule->program->buffer[o->state[k].from])};
        if (s.from < 0 || s.to < 0) continue;
        i->state[i->nstates++] = s;
        at += 2 * stream_room(&s);
    }
}

struct interface *interface_make(struct arena *a, const struct schedule *s,
                                 const struct backend_options *options, uint64_t blocks) {
    struct interface *i = arena_alloc(a, sizeof *i);
    i->schedule = s;
    i->name = c_identifier(a, s->program->name);
    i->weights = options ? options->weights : WEIGHTS_ARGUMENTS;
    i->data = i->weights == WEIGHTS_ARGUMENTS ? NULL : options->data;
    i->offset = arena_array(a, (size_t)s->program->nbuffers + 1, sizeof *i->offset);
    place_weights(i);
    list_fields(a, i, options ? options->title : NULL);
    if (options && options->nstates) list_states(a, i, options);
    i->counted = options && options->counted;
    if (i->counted) {
        i->steps = size_name(a, s, 0);
        i->nrows = stream_rows(a, s->program, &i->row);
    }
    i->words = i->n;
    i->at_weights = i->weights == WEIGHTS_FILE ? i->words++ : -1;
    i->at_prepared = i->words++;
    i->at_threads = i->words++;
    i->at_sizes = i->words;
    i->words += s->program->nsizes;
    const char *header = interface_header(a, i);
    i->key = hash_bytes(UINT64_C(14695981039346656037), header, strlen(header));
    i->key = hash_bytes(i->key, &blocks, sizeof blocks);
    for (int b = 0; b < s->program->nbuffers; b++)
        if (i->offset[b] >= 0)
            i->key = hash_bytes(i->key, i->data[b], (size_t)buffer_bytes(&s->program->buffer[b]));
    return i;
}

void interface_rows(struct arena *a, struct interface *i, const int64_t *offset) {
    int64_t *at = arena_array(a, (size_t)i->nrows + 1, sizeof *at);
    for (int k = 0; k < i->nrows; k++) {
        const struct schedule *s = i->schedule;
        for (int p = 0; p < s->nplaces; p++)
            if (s->place[p].buffer == i->row[k] && s->place[p].keep == KEEP_WORKSPACE)
                at[k] = offset[p];
    }
    i->row_at = at;
}

int64_t interface_row_bytes(const struct interface *i, int field) {
    const struct buffer *b = &i->schedule->program->buffer[i->buffer[field]];
    return b->size && b->extent[0] ? buffer_bytes(b) / b->extent[0] : 0;
}

/* Dimensions that are one in the program that is scheduled are several to the caller. */
const struct buffer *interface_array(const struct schedule *s, int buffer) {
    const struct program *written = s->chain ? s->chain->written : s->program;
    int b = program_buffer(written, s->program->buffer[buffer].name);
    return b < 0 ? &s->program->buffer[buffer] : &written->buffer[b];
}

/* ---- weights ---- */

char *interface_weights(struct arena *a, const struct interface *i, bool head, size_t *n) {
    const struct program *p = i->schedule->program;
    size_t start = head ? WEIGHTS_HEAD : 0;
    *n = start + (size_t)i->weight_bytes;
    char *at = arena_alloc(a, *n);
    if (head) {
        memcpy(at, "ISAMAPW1", 8);
        memcpy(at + 8, &i->key, 8);
        memcpy(at + 16, &i->weight_bytes, 8);
    }
    for (int b = 0; b < p->nbuffers; b++)
        if (i->offset[b] >= 0)
            memcpy(at + start + i->offset[b], i->data[b], (size_t)buffer_bytes(&p->buffer[b]));
    return at;
}

/* The file that goes with OUT; NULL where there is none. */
static const char *interface_weights_path(struct arena *a, const struct interface *i,
                                          const char *out) {
    if (i->weights != WEIGHTS_FILE) return NULL;
    size_t n = strlen(out) - strlen(path_suffix(out));
    return arena_printf(a, "%.*s.weights", (int)n, out);
}

bool interface_write_weights(const struct interface *i, const char *out, struct diags *diags) {
    struct arena a;
    arena_init(&a);
    const char *path = interface_weights_path(&a, i, out);
    size_t n;
    const char *bytes = path ? interface_weights(&a, i, true, &n) : NULL;
    bool good = !path || file_write(path, bytes, n, diags);
    arena_free(&a);
    return good;
}

bool weights_in_text(const struct interface *i, const char *out, struct diags *diags) {
    if (i->weights != WEIGHTS_EMBED) return false;
    diag_line(diags, out, 0, 0,
              "weights are embedded in .so and .o alone, expected --weights file or arguments");
    return true;
}

/* ---- the header ---- */

static void shape_text(struct text *t, const struct buffer *b) {
    text_printf(t, "%s %s", role_name[b->role], type_name(b->type));
    for (int d = 0; d < b->ndims; d++) text_printf(t, "[%lld]", (long long)b->extent[d]);
}

/* A name of the model inside a comment. */
static void title_text(struct text *t, const char *title) {
    text_printf(t, "'");
    for (const char *c = title; *c; c++)
        text_append(t, (unsigned char)*c < ' ' || (*c == '*' && c[1] == '/') ? "?" : c, 1);
    text_printf(t, "'");
}

static void fields_text(struct arena *a, struct text *t, const struct interface *i) {
    const struct schedule *s = i->schedule;
    for (int k = 0; k < i->n; k++) {
        const struct buffer *b = interface_array(s, i->buffer[k]);
        bool read_only = b->role == ROLE_IN || b->role == ROLE_CONST;
        text_printf(t, "    %s%s *%s; /* ", read_only ? "const " : "", c_type_name(b->type),
                    i->field[k]);
        shape_text(t, b);
        if (strcmp(i->field[k], i->title[k])) {
            text_printf(t, ", ");
            title_text(t, i->title[k]);
        }
        text_printf(t, " */\n");
    }
    if (i->weights == WEIGHTS_FILE)
        text_printf(t,
                    "    const void *weights; /* the content of the file of weights, %lld bytes, "
                    "aligned to 64 */\n",
                    (long long)i->weight_bytes + WEIGHTS_HEAD);
    text_printf(t,
                "    void *prepared; /* %s_prepared_bytes(), aligned to 64 bytes */\n"
                "    int threads;    /* 1 to %d; 0: as many as there are */\n",
                i->name, INTERFACE_MOST_THREADS);
    for (int k = 0; k < s->program->nsizes; k++)
        text_printf(t, "    int64_t %s; /* %s, %lld to %lld: arrays have as many rows */\n",
                    size_name(a, s, k), s->program->size[k].name, (long long)s->program->size[k].lo,
                    (long long)s->program->size[k].hi);
}

static void common_text(struct text *t) {
    text_printf(
        t,
        "#ifndef ISAMAP_INTERFACE\n"
        "#define ISAMAP_INTERFACE %d\n"
        "struct isamap_argument {\n"
        "    const char *name, *type, *role; /* as the program or model names it; f32, …; in, "
        "out, inout, const */\n"
        "    const char *size;               /* the open size that extent[0] is; NULL: it is "
        "fixed */\n"
        "    const int64_t *extent;          /* [ndims]; of an open size the largest */\n"
        "    size_t bytes;                   /* with these extents */\n"
        "    int ndims;\n"
        "};\n"
        "#elif ISAMAP_INTERFACE != %d\n"
        "#error \"headers of different versions of isamap: compile the programs again\"\n"
        "#endif\n\n",
        INTERFACE_VERSION, INTERFACE_VERSION);
}

static void entries_text(struct text *t, const char *name) {
    text_printf(
        t,
        "/* Once, and again when a const array has changed; it needs those and `prepared`. 0: "
        "done, else %s_message says why. */\n"
        "int %s_prepare(const struct %s_args *);\n"
        "/* workspace: %s_workspace_bytes(), aligned to 64 bytes. 0: done. */\n"
        "int %s_run(const struct %s_args *, void *workspace);\n"
        "size_t %s_prepared_bytes(void);\nsize_t %s_workspace_bytes(void);\n\n",
        name, name, name, name, name, name, name, name);
    text_printf(t,
                "/* The pointers of struct %s_args, in order; NULL after the last. */\n"
                "const struct isamap_argument *%s_argument(int i);\n"
                "/* The version of the interface of the library, and what a status means. */\n"
                "int %s_interface(void);\nconst char *%s_message(int status);\n"
                "/* 0: this header belongs to the library. */\n"
                "int %s_matches(int interface, uint64_t key);\n",
                name, name, name, name, name);
}

const char *interface_header(struct arena *a, const struct interface *i) {
    struct text t = {0};
    const char *name = i->name;
    text_printf(&t,
                "/* %s, compiled by isamap for %s */\n#ifndef ISAMAP_%s_H\n#define ISAMAP_%s_H\n\n"
                "#include <stddef.h>\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" "
                "{\n#endif\n\n",
                name, i->schedule->machine_name, name, name);
    common_text(&t);
    text_printf(&t,
                "/* arrays are row-major; f16 and bf16 are uint16_t, bool is uint8_t */\nstruct "
                "%s_args {\n",
                name);
    fields_text(a, &t, i);
    text_printf(&t, "};\n\n");
    entries_text(&t, name);
    if (interface_streams(i)) stream_header(&t, i);
    if (i->key)
        text_printf(&t, "#define %s_check() %s_matches(ISAMAP_INTERFACE, UINT64_C(0x%llx))\n", name,
                    name, (unsigned long long)i->key);
    text_printf(&t, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

bool interface_write_header(const struct interface *i, const char *path, struct diags *diags) {
    struct arena a;
    arena_init(&a);
    const char *slash = strrchr(path, '/');
    const char *text = interface_header(&a, i);
    const char *to =
        arena_printf(&a, "%.*s%s.h", slash ? (int)(slash - path + 1) : 0, path, i->name);
    bool good = file_write(to, text, strlen(text), diags);
    arena_free(&a);
    return good;
}
