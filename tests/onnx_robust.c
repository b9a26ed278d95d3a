/* A small model, cut off at every byte and with seeded bit flips: read or refused with a message,
 * never a crash. */
#include "onnx/onnx.h"
#include "tests/onnx_bytes.h"

#include <setjmp.h>
#include <cmocka.h>

enum { FLIPPED = 10000 };

static struct text small_model(void) {
    struct model_bytes m = {0};
    float w[18], g[32];
    int8_t z = 0, q[8] = {1, -2, 3, 4, -5, 6, 7, 8};
    float scale = 0.25f;
    int64_t shape[2] = {0, -1};
    for (int i = 0; i < 18; i++) w[i] = (float)i;
    for (int i = 0; i < 32; i++) g[i] = (float)-i;
    put_input(&m, "x", 1, "N,1,4,4");
    put_output(&m, "y", 1, "N,4");
    put_output(&m, "k", 3, NULL);
    put_initialiser(&m, "w", 1, 4, (int64_t[]){2, 1, 3, 3}, w, sizeof w);
    put_initialiser(&m, "g", 1, 2, (int64_t[]){8, 4}, g, sizeof g);
    put_initialiser(&m, "shape", 7, 1, (int64_t[]){2}, shape, sizeof shape);
    put_initialiser(&m, "s", 1, 0, NULL, &scale, 4);
    put_initialiser(&m, "z", 3, 0, NULL, &z, 1);
    put_initialiser(&m, "q", 3, 2, (int64_t[]){4, 2}, q, sizeof q);
    put_node(&m, "Conv", "x,w", "c", "pads=1 1 1 1,kernel_shape=3 3");
    put_node(&m, "MaxPool", "c", "p", "kernel_shape=2 2,strides=2 2");
    put_node(&m, "Reshape", "p,shape", "f", NULL);
    put_node(&m, "Gemm", "f,g", "h", "alpha~0.5");
    put_node(&m, "Softmax", "h", "y", "axis:1");
    put_node(&m, "QuantizeLinear", "y,s,z", "i", NULL);
    put_node(&m, "QLinearMatMul", "i,s,z,q,s,z,s,z", "k", NULL);
    return model_finish(&m, 15);
}

/* The bytes are copied so that a read behind them is seen by the sanitizer. */
static bool try_bytes(const char *bytes, size_t n) {
    static const struct binding batch = {"N", 3};
    const struct bindings dims = {&batch, 1, NULL};
    struct diags d;
    char *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    diags_init(&d);
    struct onnx_model *model = onnx_parse("m.onnx", exact, n, &dims, NULL, &d);
    assert_true((model == NULL) == (d.errors > 0));
    if (model) assert_non_null(model->program);
    bool ok = model != NULL;
    onnx_free(model);
    diags_free(&d);
    free(exact);
    return ok;
}

static void cut_off_anywhere(void **state) {
    (void)state;
    struct text model = small_model();
    int ok = 0;
    for (size_t n = 0; n < model.n; n++) ok += try_bytes(model.at, n);
    assert_true(try_bytes(model.at, model.n));
    assert_true(ok <= 1); /* without the opset at the end it may still be one */
    text_free(&model);
}

static void bits_flipped(void **state) {
    (void)state;
    struct text model = small_model(), copy = {0};
    uint64_t seed = 42;
    int ok = 0;
    for (int i = 0; i < FLIPPED; i++) {
        copy.n = 0;
        text_append(&copy, model.at, model.n);
        for (int k = 0; k <= i % 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            copy.at[(seed >> 33) % copy.n] ^= (char)(1 << (seed >> 20 & 7));
        }
        ok += try_bytes(copy.at, copy.n);
    }
    print_message("%d of %d damaged models were still models\n", ok, FLIPPED);
    assert_true(ok > 0 && ok < FLIPPED);
    text_free(&copy);
    text_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cut_off_anywhere),
                                       cmocka_unit_test(bits_flipped)};
#ifndef ISAMAP_WITH_ONNX
    print_message("isamap was built without protobuf-c\n");
    (void)tests;
    return 0;
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
