/* The models of ONNX's own backend tests (Debian: libonnx-testdata), which
 * tests/data/onnx-cases.txt lists, and those of tests/data/onnx with ONNX Runtime's results, run by
 * the reference interpreter. Another list may be given as an argument. */
#include "ir/interp.h"
#include "onnx/onnx.h"
#include "tests/onnx_bytes.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

static const char *root = "/usr/share/libonnx-testdata/data", *cases = "tests/data/onnx-cases.txt";

enum { MOST = 16 };

struct run {
    struct arena arena;
    struct diags diags;
    const char *folder;
    unsigned constants; /* bit k: input k must be known when compiling and becomes an initialiser */
    bool rounded;       /* the expected values have three digits */
    int64_t steps;      /* by which integers may differ */
    struct array input[MOST], output[MOST];
    int ninputs, noutputs;
    struct onnx_model *model;
};

static const char *data_path(struct run *r, const char *what, int k) {
    return arena_printf(&r->arena, "%s/%s/test_data_set_0/%s_%d.pb", root, r->folder, what, k);
}

static int read_tensors(struct run *r, const char *what, struct array *to) {
    struct stat st;
    for (int k = 0; k < MOST; k++) {
        const char *path = data_path(r, what, k);
        if (stat(path, &st) != 0) return k;
        if (!onnx_tensor_read(path, &to[k], &r->diags)) return k;
    }
    return MOST;
}

/* Two occurrences of a model's graph are merged by protobuf, so an initialiser can be added at the
 * end. The files carry the names. */
static void add_initialiser(struct run *r, struct text *model, int k) {
    struct text graph = {0};
    size_t length;
    char *bytes = file_read(&r->arena, data_path(r, "input", k), 1 << 26, &length, &r->diags);
    if (bytes) put_bytes(&graph, 5, bytes, length);
    put_message(model, 7, &graph);
}

static void import_case(struct run *r) {
    struct text bytes = {0};
    size_t length;
    const char *path = arena_printf(&r->arena, "%s/%s/model.onnx", root, r->folder);
    char *file = file_read(&r->arena, path, 1 << 26, &length, &r->diags);
    if (!file) return;
    text_append(&bytes, file, length);
    for (int k = 0; k < r->ninputs; k++)
        if (r->constants >> k & 1) add_initialiser(r, &bytes, k);
    r->model = onnx_parse(path, bytes.at, bytes.n, NULL, NULL, &r->diags);
    text_free(&bytes);
}

static bool same_shape(const struct array *a, const struct buffer *b) {
    bool same = a->type == b->type && a->ndims == b->ndims;
    for (int d = 0; same && d < a->ndims; d++) same = a->extent[d] == b->extent[d];
    return same;
}

/* Integers must be equal; floats within 1e-4 of the expected value (rounded ones within 1e-3,
 * 16-bit ones within 1e-2). */
static bool close_enough(const struct run *r, const struct array *want, const void *got) {
    size_t size = type_size(want->type);
    double tolerance = size == 2 ? 1e-2 : r->rounded ? 1e-3 : 1e-4;
    for (int64_t i = 0; i < want->elements; i++) {
        union value w = type_load(want->type, (char *)want->data + (size_t)i * size);
        union value g = type_load(want->type, (const char *)got + (size_t)i * size);
        if (!type_is_float(want->type) ? llabs((long long)(w.i - g.i)) <= r->steps
                                       : w.f == g.f || (isnan(w.f) && isnan(g.f)) ||
                                             fabs(w.f - g.f) <= tolerance * (fabs(w.f) + 0.1))
            continue;
        if (type_is_float(want->type))
            print_message("element %" PRId64 ": %g, expected %g\n", i, g.f, w.f);
        else
            print_message("element %" PRId64 ": %" PRId64 ", expected %" PRId64 "\n", i, g.i, w.i);
        return false;
    }
    return true;
}

/* The inputs that are not constants, in order, are the model's. */
static bool give_inputs(struct run *r, void **data) {
    const struct program *p = r->model->program;
    int n = 0;
    for (int k = 0; k < r->ninputs; k++) {
        if (r->constants >> k & 1 || r->input[k].elements == 0) continue;
        if (n == r->model->ninputs) return false;
        int b = program_buffer(p, r->model->input[n++].buffer);
        if (b < 0 || !same_shape(&r->input[k], &p->buffer[b])) return false;
        data[b] = r->input[k].data;
    }
    return n == r->model->ninputs;
}

static bool run_model(struct run *r) {
    const struct program *p = r->model->program;
    void **data = arena_array(&r->arena, (size_t)p->nbuffers, sizeof *data);
    for (int b = 0; b < p->nbuffers; b++) data[b] = (void *)r->model->data[b];
    if (!give_inputs(r, data)) {
        print_message("the inputs do not fit\n");
        return false;
    }
    for (int k = 0; k < r->model->noutputs; k++) {
        int b = program_buffer(p, r->model->output[k].buffer);
        data[b] =
            arena_array(&r->arena, (size_t)p->buffer[b].elements, type_size(p->buffer[b].type));
    }
    if (!program_run(p, data, NULL, NULL, &r->diags)) return false;
    bool ok = r->model->noutputs == r->noutputs;
    for (int k = 0; ok && k < r->noutputs; k++) {
        int b = program_buffer(p, r->model->output[k].buffer);
        ok = same_shape(&r->output[k], &p->buffer[b]) && close_enough(r, &r->output[k], data[b]);
    }
    return ok;
}

/* words: numbers of inputs that are constants; ~, the expected values have three digits; +1,
 * integers may differ by one */
static bool run_case(const char *folder, char *words) {
    struct run r = {.folder = folder};
    char *save = NULL;
    for (char *word = strtok_r(words, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        r.rounded |= *word == '~';
        r.steps += *word == '+';
        if (*word != '~' && *word != '+') r.constants |= 1u << strtoul(word, NULL, 10);
    }
    arena_init(&r.arena);
    diags_init(&r.diags);
    r.ninputs = read_tensors(&r, "input", r.input);
    r.noutputs = read_tensors(&r, "output", r.output);
    if (r.diags.errors == 0) import_case(&r);
    bool ok = r.model && run_model(&r) && r.diags.errors == 0;
    if (!ok) {
        print_message("%s (known inputs: %#x) failed\n", folder, r.constants);
        diags_print(&r.diags, stderr);
        if (r.model) print_message("%s", r.model->text);
    }
    for (int k = 0; k < r.ninputs; k++) array_free(&r.input[k]);
    for (int k = 0; k < r.noutputs; k++) array_free(&r.output[k]);
    onnx_free(r.model);
    diags_free(&r.diags);
    arena_free(&r.arena);
    return ok;
}

static void run_cases(int least) {
    char line[256];
    int n = 0, failed = 0;
    struct stat st;
#ifndef ISAMAP_WITH_ONNX
    print_message("isamap was built without protobuf-c\n");
    skip();
#endif
    if (stat(root, &st) != 0) {
        print_message("%s is not there: libonnx-testdata is not installed\n", root);
        skip();
    }
    FILE *f = fopen(cases, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char *save = NULL, *folder = strtok_r(line, " \n", &save);
        if (!folder || *folder == '#') continue;
        n++;
        failed += !run_case(folder, save);
    }
    fclose(f);
    print_message("%d models of %s, %d failed\n", n, root, failed);
    assert_int_equal(failed, 0);
    assert_true(n >= least);
}

static void gives_what_onnx_gives(void **state) {
    (void)state;
    run_cases(980);
}

static void gives_what_onnx_runtime_gives(void **state) {
    (void)state;
    root = "tests/data/onnx";
    cases = "tests/data/onnx/cases.txt";
    run_cases(40);
}

static void gives_what_the_list_says(void **state) {
    (void)state;
    run_cases(1);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gives_what_onnx_gives),
                                       cmocka_unit_test(gives_what_onnx_runtime_gives)};
    const struct CMUnitTest list[] = {cmocka_unit_test(gives_what_the_list_says)};
    if (argc > 1) cases = argv[1];
    if (argc > 2) root = argv[2];
    return argc > 1 ? cmocka_run_group_tests(list, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
