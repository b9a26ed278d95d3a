/* Scan, Loop and the activations of recurrent operators: models made byte by byte, their values,
 * and that an iteration is lowered once. */
#include "ir/interp.h"
#include "onnx/onnx.h"
#include "tests/onnx_bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#ifdef ISAMAP_WITH_ONNX
enum { F32 = 1, I32 = 6, I64 = 7, BOOL = 9 };

static void put_words(struct text *t, unsigned field, const char *words) {
    for (const char *at = words;; at++) {
        size_t n = strcspn(at, ",");
        put_bytes(t, field, at, n);
        at += n;
        if (!*at) return;
    }
}

/* A node of several results; body: its graph, emptied; floats, texts: lists of activations. */
static void put_wide(struct text *graph, const char *op, const char *in, const char *out,
                     struct model_bytes *body, const char *attributes) {
    struct text node = {0}, a = {0};
    put_words(&node, 1, in);
    put_words(&node, 2, out);
    put_string(&node, 4, op);
    if (body) {
        put_string(&a, 1, "body");
        put_message(&a, 6, &body->graph);
        put_number(&a, 20, 5);
        put_message(&node, 5, &a);
    }
    char part[100];
    for (const char *at = attributes; at && *at;) {
        size_t n = strcspn(at, ",");
        snprintf(part, sizeof part, "%.*s", (int)n, at);
        put_attribute(&node, part);
        at += n + (at[n] == ',');
    }
    put_message(graph, 1, &node);
}

static struct onnx_model *parse(struct model_bytes *m, struct diags *d) {
    struct text bytes = model_finish(m, 15);
    struct onnx_model *model = onnx_parse("m.onnx", bytes.at, bytes.n, NULL, NULL, d);
    text_free(&bytes);
    return model;
}

/* The n outputs' values after one another equal `want`; `has` stands in the text `times` times. */
static void gives(struct model_bytes *m, const float *const *in, const float *want, const char *has,
                  int times) {
    struct diags d;
    diags_init(&d);
    struct onnx_model *model = parse(m, &d);
    diags_print(&d, stderr);
    assert_non_null(model);
    void **data = calloc((size_t)model->program->nbuffers, sizeof *data);
    for (int b = 0; b < model->program->nbuffers; b++) data[b] = (void *)model->data[b];
    for (int k = 0; k < model->ninputs; k++)
        data[program_buffer(model->program, model->input[k].buffer)] = (void *)in[k];
    for (int k = 0; k < model->noutputs; k++) {
        int b = program_buffer(model->program, model->output[k].buffer);
        data[b] = calloc((size_t)model->program->buffer[b].elements, sizeof(float));
    }
    assert_true(program_run(model->program, data, NULL, NULL, &d));
    for (int k = 0, at = 0; k < model->noutputs; k++) {
        int b = program_buffer(model->program, model->output[k].buffer);
        for (int64_t e = 0; e < model->program->buffer[b].elements; e++, at++)
            if (!(fabsf(((float *)data[b])[e] - want[at]) <= 1e-5f))
                fail_msg("value %d is %g, expected %g\n%s", at, (double)((float *)data[b])[e],
                         (double)want[at], model->text);
        free(data[b]);
    }
    const char *at = model->text;
    int found = 0;
    while ((at = strstr(at, has))) found++, at++;
    assert_int_equal(found, times);
    free(data);
    onnx_free(model);
    diags_free(&d);
}

static void refused(struct model_bytes *m, const char *expected) {
    struct diags d;
    diags_init(&d);
    assert_null(parse(m, &d));
    assert_int_equal(d.errors, 1);
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    diags_free(&d);
}

/* s' = s + x; o = s' */
static struct model_bytes running_sum(const char *dims) {
    struct model_bytes b = {0};
    put_input(&b, "s", F32, dims);
    put_input(&b, "x", F32, dims);
    put_output(&b, "s_out", F32, dims);
    put_output(&b, "o", F32, dims);
    put_node(&b, "Add", "s,x", "s_out", NULL);
    put_node(&b, "Identity", "s_out", "o", NULL);
    return b;
}

static void scan_in_both_directions(void **state) {
    static const float s[] = {10, 20}, x[] = {1, 2, 3, 4, 5, 6};
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++) {
        struct model_bytes m = {0}, body = running_sum("2");
        put_input(&m, "S", F32, "2");
        put_input(&m, "X", F32, "2,3");
        put_output(&m, "Y", F32, NULL);
        put_output(&m, "O", F32, NULL);
        put_wide(&m.graph, "Scan", "S,X", "Y,O", &body,
                 reverse ? "num_scan_inputs:1,scan_input_axes=1,scan_input_directions=1,"
                           "scan_output_axes=-1,scan_output_directions=1"
                         : "num_scan_inputs:1,scan_input_axes=-1");
        static const float forward[] = {16, 35, 11, 24, 13, 29, 16, 35},
                           back[] = {16, 35, 16, 15, 13, 35, 31, 26};
        gives(&m, (const float *const[]){s, x}, reverse ? back : forward, "recur", 1);
    }
}

static struct model_bytes loop(const char *op, const char *in, const char *more, bool constant) {
    struct model_bytes m = {0}, body = {0};
    static const int64_t three = 3, all[] = {0};
    put_input(&body, "i", I64, "");
    put_input(&body, "c", BOOL, "");
    put_input(&body, "s", F32, "4");
    put_output(&body, "c_out", BOOL, "");
    put_output(&body, "s_out", F32, NULL);
    put_node(&body, "Identity", "c", "c_out", NULL);
    if (!strcmp(more, "slice")) {
        put_node(&body, "Add", "i,one", "after", NULL);
        put_node(&body, "Unsqueeze", "i,zero", "from", NULL);
        put_node(&body, "Unsqueeze", "after,zero", "to", NULL);
        put_node(&body, "Slice", "X,from,to", "row", NULL);
    }
    if (!strcmp(more, "gather")) put_node(&body, "Gather", "X,i", "row", NULL);
    put_node(&body, op, in, "s_out", NULL);
    if (constant)
        put_initialiser(&m, "n", I64, 0, NULL, &three, 8);
    else
        put_input(&m, "n", I64, "");
    static const int64_t one = 1, dims[] = {1};
    put_initialiser(&m, "one", I64, 0, NULL, &one, 8);
    put_initialiser(&m, "zero", I64, 1, dims, all, 8);
    put_input(&m, "S", F32, "4");
    put_input(&m, "X", F32, "3,4");
    put_output(&m, "Y", F32, NULL);
    put_wide(&m.graph, "Loop", "n,,S", "Y", &body, NULL);
    return m;
}

static void loop_is_a_recurrence(void **state) {
    static const float s[] = {1, 2, 3, 4}, x[] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4};
    static const float doubled[] = {8, 16, 24, 32}, summed[] = {7, 8, 9, 11};
    (void)state;
    struct model_bytes m = loop("Add", "s,s", "", true);
    gives(&m, (const float *const[]){s, x}, doubled, "recur t: 3 ", 1);
    m = loop("Add", "s,row", "gather", true);
    gives(&m, (const float *const[]){s, x}, summed, "recur t: 3 ", 1);
    m = loop("Add", "s,row", "slice", true); /* the slice's place must be known */
    gives(&m, (const float *const[]){s, x}, (const float[]){7, 8, 9, 11}, "recur", 0);
}

/* s += x while a condition holds that the body computes: from the iteration's number (`i`), from a
 * state that counts by itself (`k`), or of what it has summed up (`s`). */
static struct model_bytes loop_while(const char *of, bool trips, bool scanned) {
    struct model_bytes m = {0}, body = {0};
    static const int64_t five = 5, two = 2;
    static const float limit = 6;
    put_input(&body, "i", I64, "");
    put_input(&body, "c", BOOL, "");
    put_input(&body, "s", F32, "1");
    bool counts = !strcmp(of, "k");
    if (counts) put_input(&body, "k", I64, "");
    put_output(&body, "c_out", BOOL, "");
    put_output(&body, "s_out", F32, NULL);
    if (counts) put_output(&body, "k_out", I64, NULL);
    if (scanned) put_output(&body, "row", F32, NULL);
    put_node(&body, "Add", "s,X", "s_out", NULL);
    if (scanned) put_node(&body, "Identity", "s_out", "row", NULL);
    if (!strcmp(of, "i")) {
        put_node(&body, "Less", "i,two", "c_out", NULL);
    } else if (counts) {
        put_node(&body, "Add", "k,two", "k_out", NULL);
        put_node(&body, "Less", "k_out,n", "c_out", NULL);
    } else {
        put_node(&body, "Squeeze", "s_out", "number", NULL);
        put_node(&body, "Less", "number,limit", "c_out", NULL);
    }
    put_initialiser(&m, "n", I64, 0, NULL, &five, 8);
    put_initialiser(&m, "two", I64, 0, NULL, &two, 8);
    put_initialiser(&m, "limit", F32, 0, NULL, &limit, 4);
    put_input(&m, "S", F32, "1");
    put_input(&m, "X", F32, "1");
    put_output(&m, "Y", F32, NULL);
    if (scanned) put_output(&m, "Z", F32, NULL);
    if (counts)
        put_wide(&m.graph, "Loop", trips ? "n,,S,two" : ",,S,two", scanned ? "Y,K,Z" : "Y,K", &body,
                 NULL);
    else
        put_wide(&m.graph, "Loop", trips ? "n,,S" : ",,S", scanned ? "Y,Z" : "Y", &body, NULL);
    return m;
}

static void conditions_end_loops(void **state) {
    static const float s[] = {1}, x[] = {2}, little[] = {0.5f};
    (void)state;
    struct model_bytes m = loop_while("i", true, true); /* after two more it is not less */
    gives(&m, (const float *const[]){s, x}, (const float[]){7, 3, 5, 7}, "recur t: 3 ", 1);
    m = loop_while("i", false, false);
    gives(&m, (const float *const[]){s, x}, (const float[]){7}, "recur t: 3 ", 1);
    m = loop_while("k", true, true); /* from 2 to 4 and 6, which is not less than 5 */
    gives(&m, (const float *const[]){s, x}, (const float[]){5, 3, 5}, "recur t: 2 ", 1);
    m = loop_while("k", false, false);
    gives(&m, (const float *const[]){s, x}, (const float[]){5}, "recur t: 2 ", 1);
    m = loop_while("s", true, false); /* 3, 5, 7, and no more */
    gives(&m, (const float *const[]){s, x}, (const float[]){7}, "recur t: 5 ", 1);
    m = loop_while("s", true, false); /* never */
    gives(&m, (const float *const[]){s, little}, (const float[]){3.5f}, "recur t: 5 ", 1);
    m = loop_while("s", false, false);
    refused(&m, "it has no trip count, and its condition follows from values");
    m = loop_while("s", true, true);
    refused(&m, "how long its scanned results are follows from values");
}

static void loops_are_refused(void **state) {
    (void)state;
    struct model_bytes m = loop("Add", "s,s", "", false);
    refused(&m, "how often it runs at most is not known when compiling");
    m = loop("Add", "s,X", "", true);
    refused(&m, "its body makes 's' f32[3,4] of what is f32[4]: a state keeps its type and shape");
    struct model_bytes body = running_sum("2"), two = {0};
    put_input(&two, "S", F32, "2");
    put_input(&two, "X", F32, "2,3");
    put_output(&two, "Y", F32, NULL);
    put_wide(&two.graph, "Scan", "S,X", "Y", &body, "num_scan_inputs:3");
    refused(&two, "'num_scan_inputs' is 3 of 2 inputs");
}

static void put_branch(struct text *node, const char *name, struct model_bytes *graph) {
    struct text a = {0};
    put_string(&a, 1, name);
    put_message(&a, 6, &graph->graph);
    put_number(&a, 20, 5);
    put_message(node, 5, &a);
}

/* s + x, or s · x · x: both branches name what they make alike. The result of the second is of the
 * shape that `wide` says; dims: as their results are declared. */
static void put_if(struct text *graph, const char *condition, bool wide, const char *dims) {
    struct text node = {0};
    struct model_bytes yes = {0}, no = {0};
    put_output(&yes, "r", F32, dims);
    put_output(&no, "r", F32, dims);
    put_node(&yes, "Identity", "x", "a", NULL);
    put_node(&yes, "Add", "s,a", "r", NULL);
    put_node(&no, "Mul", "s,x", "a", NULL);
    put_node(&no, "Mul", wide ? "a,many" : "a,x", "r", NULL);
    put_words(&node, 1, condition);
    put_words(&node, 2, "s_out");
    put_string(&node, 4, "If");
    put_branch(&node, "then_branch", &yes);
    put_branch(&node, "else_branch", &no);
    put_message(graph, 1, &node);
}

static struct model_bytes scan_with_if(bool wide) {
    static const float limit = 2;
    static const int64_t three[] = {3};
    static const float many[] = {1, 2, 3};
    struct model_bytes m = {0}, body = {0};
    put_input(&body, "s", F32, "1");
    put_input(&body, "x", F32, "1");
    put_output(&body, "s_out", F32, NULL);
    put_output(&body, "o", F32, NULL);
    put_node(&body, "Less", "x,limit", "small", NULL);
    put_if(&body.graph, "small", wide, NULL);
    put_node(&body, "Identity", "s_out", "o", NULL);
    put_initialiser(&m, "limit", F32, 0, NULL, &limit, 4);
    put_initialiser(&m, "many", F32, 1, three, many, 12);
    put_input(&m, "S", F32, "1");
    put_input(&m, "X", F32, "4,1");
    put_output(&m, "Y", F32, NULL);
    put_output(&m, "O", F32, NULL);
    put_wide(&m.graph, "Scan", "S,X", "Y,O", &body, "num_scan_inputs:1");
    return m;
}

/* A condition that follows from values: in each step of one recurrence that branch's result. */
static void branches_are_chosen_by_value(void **state) {
    static const float s[] = {5}, x[] = {1, 3, 0.5f, 2};
    (void)state;
    struct model_bytes m = scan_with_if(false); /* 5 + 1, 6 · 9, 54 + 0.5, 54.5 · 4 */
    gives(&m, (const float *const[]){s, x}, (const float[]){218, 6, 54, 54.5f, 218}, "recur t: 4 ",
          1);
    m = scan_with_if(true);
    refused(&m, "its branches give f32[1] and f32[3], and which is taken is not known when "
                "compiling");
}

/* A branch that depends on the number of the iteration: where its results are declared, one body
 * serves all iterations; else each is lowered with its branch. */
static void branches_follow_the_iteration(void **state) {
    static const float s[] = {5}, x[] = {2};
    (void)state;
    for (int declared = 0; declared < 2; declared++) {
        struct model_bytes m = {0}, body = {0};
        static const int64_t two = 2, three = 3;
        put_input(&body, "i", I64, "");
        put_input(&body, "c", BOOL, "");
        put_input(&body, "s", F32, "1");
        put_output(&body, "c", BOOL, "");
        put_output(&body, "s_out", F32, NULL);
        put_node(&body, "Less", "i,two", "small", NULL);
        put_if(&body.graph, "small", false, declared ? "1" : NULL);
        put_initialiser(&m, "n", I64, 0, NULL, &three, 8);
        put_initialiser(&m, "two", I64, 0, NULL, &two, 8);
        put_input(&m, "S", F32, "1");
        put_input(&m, "x", F32, "1");
        put_output(&m, "Y", F32, NULL);
        put_wide(&m.graph, "Loop", "n,,S", "Y", &body, NULL);
        /* (5 + 2 + 2) · 2 · 2 */
        gives(&m, (const float *const[]){s, x}, (const float[]){36}, "recur t: 3 ", declared);
    }
}

/* Only the functions that have an alpha or beta take one, in their order; a function of more than
 * one term is a factor as a whole. */
static void activations_take_their_numbers(void **state) {
    static const float w[] = {0.5f, 0.5f}, lstm[] = {1, 1, 1, 1}, none[8] = {0}, x[] = {2};
    static const int64_t of[2][3] = {{2, 1, 1}, {1, 4, 1}};
    (void)state;
    for (int cell = 0; cell < 2; cell++) {
        struct model_bytes m = {0};
        struct text node = {0}, a = {0};
        put_input(&m, "X", F32, "1,1,1");
        put_output(&m, "Y", F32, NULL);
        put_initialiser(&m, "W", F32, 3, of[cell], cell ? lstm : w, cell ? 16 : 8);
        put_initialiser(&m, "R", F32, 3, of[cell], none, cell ? 16 : 8);
        put_words(&node, 1, "X,W,R");
        put_words(&node, 2, "Y");
        put_string(&node, 4, cell ? "LSTM" : "RNN");
        put_string(&a, 1, "activations");
        put_words(&a, 9, cell ? "Sigmoid,Tanh,Affine" : "Tanh,Affine");
        put_number(&a, 20, 8);
        put_message(&node, 5, &a);
        for (int k = 0; k < 2; k++) {
            float v = k ? 0.5f : 0.25f;
            put_string(&a, 1, k ? "activation_beta" : "activation_alpha");
            put_varint(&a, 7 << 3 | 5);
            text_append(&a, (char *)&v, 4);
            put_number(&a, 20, 6);
            put_message(&node, 5, &a);
        }
        if (!cell) put_attribute(&node, "direction'bidirectional");
        put_message(&m.graph, 1, &node);
        double gate = 1 / (1 + exp(-2.0)), c = gate * tanh(2.0);
        float want[2][2] = {{(float)tanh(1.0), 0.75f}, {(float)(gate * (0.25 * c + 0.5)), 0}};
        gives(&m, (const float *const[]){x}, want[cell], "recur", cell ? 1 : 2);
    }
}
/* A sequence of no steps leaves the state that it began with, and writes zeros. */
static void empty_sequences_keep_their_state(void **state) {
    static const float w[] = {1}, r[] = {0}, x[] = {2, 3}, h[] = {0.25f, 0.5f};
    static const int32_t lengths[] = {0, 1};
    static const int64_t one[] = {1, 1, 1}, two[] = {2};
    struct model_bytes m = {0};
    (void)state;
    put_input(&m, "X", F32, "1,2,1");
    put_input(&m, "H", F32, "1,2,1");
    put_output(&m, "Y", F32, NULL);
    put_output(&m, "E", F32, NULL);
    put_initialiser(&m, "W", F32, 3, one, w, 4);
    put_initialiser(&m, "R", F32, 3, one, r, 4);
    put_initialiser(&m, "L", I32, 1, two, lengths, 8);
    put_node(&m, "RNN", "X,W,R,,L,H", "Y,E", NULL);
    const float last = (float)tanh(3);
    gives(&m, (const float *const[]){x, h}, (const float[]){0, last, 0.25f, last}, "recur", 1);
}
#endif

int main(void) {
#ifdef ISAMAP_WITH_ONNX
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan_in_both_directions),
        cmocka_unit_test(loop_is_a_recurrence),
        cmocka_unit_test(conditions_end_loops),
        cmocka_unit_test(loops_are_refused),
        cmocka_unit_test(branches_are_chosen_by_value),
        cmocka_unit_test(branches_follow_the_iteration),
        cmocka_unit_test(activations_take_their_numbers),
        cmocka_unit_test(empty_sequences_keep_their_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 0;
#endif
}
