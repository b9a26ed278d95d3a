/* What is refused, and with which words: operators, graphs, tensors, bytes, external data. */
#include "tests/onnx_models.h"

#include <sys/stat.h>
#include <unistd.h>

#ifdef ISAMAP_WITH_ONNX
static void one_refused(const char *op, const char *dims, const char *attributes,
                        const char *expected) {
    struct model_bytes m = one_node(op, dims, attributes);
    check_refused(&m, 15, expected);
}

static void refuses_operators(void **state) {
    (void)state;
    one_refused("Multinomial", "1,2", NULL,
                "node 0 (Multinomial, opset 15): this operator is not supported");
    one_refused("Unique", "1,2", NULL, "the size of its result depends on input 0");
    one_refused("SequenceAt", "1,2", NULL, "input 1 is missing");
    one_refused("SequenceLength", "1,2", NULL, "input 0 is not a sequence");
    one_refused("Relu", "1,2", "slope~0.5", "the attribute 'slope' is not supported");
    one_refused("MaxPool", "1,1,4,4", NULL, "'kernel_shape' is missing");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2", "'kernel_shape' has 1 entries, expected 2");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2 0", "'kernel_shape' has the entry 0");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2 2,pads=-1 0 0 0", "'pads' has the entry -1");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=5 2",
                "spans 5 elements along spatial dimension 0, but the padded input has 4");
    one_refused("MaxPool", "1,1,4,4", "kernel_shape=2 2,auto_pad'BOTH", "'auto_pad' is 'BOTH'");
    one_refused("MaxPool", "1,1,5,5", "kernel_shape=1 1,pads=0 0 1 1",
                "puts a whole window behind the input");
    one_refused("MaxPool", "4,4", "kernel_shape=2 2", "an input of 2 dimensions");
    one_refused("Flatten", "2,3", "axis:3", "axis 3 is outside a tensor of 2 dimensions");
    one_refused("Softmax", "2,3", "axis:-3", "axis -3 is not a dimension of a tensor that has 2");
    one_refused("Transpose", "2,3", "perm=0", "'perm' has 1 entries");
    one_refused("Transpose", "2,3", "perm=1 1", "axis 1 is given twice");
    one_refused("Reshape", "2,3", NULL, "no shape is given");
    one_refused("Cast", "2,3", "to:8", "the type that 'to' gives, 8, is not supported");
    one_refused("Cast", "2,3", "to'x", "the attribute 'to' is not an integer");
    one_refused("Gemm", "2,3", NULL, "input 1 is missing");
    one_refused("Relu", "-2,3", NULL, "dimension 0 is -2, expected at least 0");
    one_refused("ArgMax", "0,3", NULL, "input 0 is an empty tensor");
    one_refused("Relu", "N,3", NULL, "dimension 'N' has no value; give it with -D N=...");
    one_refused("Relu", "4294967296,4294967296", NULL, "too large");
    one_refused("Relu", NULL, NULL, "it has no shape");
    one_refused("com.microsoft.nchwc.Conv", "1,2", NULL,
                "this operator of the domain 'com.microsoft.nchwc' is not supported: ONNX Runtime "
                "laid it out for one processor");
    struct model_bytes m = one_node("Relu", "1,2", NULL);
    check_refused(&m, 99, "opset 99 is not known: expected 1 to 28");
}

#define TREE(ids, modes, yes, no)                                                                  \
    "nodes_treeids=0 0 0,nodes_nodeids=" ids ",nodes_featureids=1 0 0,nodes_modes$" modes          \
    ",nodes_values%0.5 0 0,nodes_truenodeids=" yes ",nodes_falsenodeids=" no                       \
    ",target_treeids=0,target_nodeids=1,target_ids=0,target_weights%1"
#define BRANCH "BRANCH_LEQ LEAF LEAF"
#define TREES "ai.onnx.ml.TreeEnsembleRegressor"

static void refuses_trees(void **state) {
    (void)state;
    one_refused("ai.onnx.ml.Scaler", "4,3", "offset%1 2,scale%1", "'offset' has 2 entries for 3");
    one_refused("ai.onnx.ml.Scaler", "4,3", "offset=1,scale%1",
                "'offset' is not a list of numbers");
    one_refused("ai.onnx.ml.Normalizer", "4,3", "norm'L3",
                "'norm' is 'L3', expected MAX, L1 or L2");
    one_refused("ai.onnx.ml.LinearRegressor", "4,3", "coefficients%1 2,intercepts%1",
                "2 coefficients and 1 intercepts for 1 rows of 3 features");
    one_refused("ai.onnx.ml.LinearRegressor", "4,3", "coefficients%1 2 3,post_transform'PROBIT",
                "'post_transform' is 'PROBIT', expected NONE, LOGISTIC or SOFTMAX");
    one_refused("ai.onnx.ml.LinearClassifier", "4,3", "coefficients%1 2 3", "no labels");
    one_refused(TREES, "4,3", NULL, "it has no nodes");
    one_refused(TREES, "3", NULL, "the input has one dimension, expected rows");
    one_refused(TREES, "4,1", TREE("0 1 2", BRANCH, "1 0 0", "2 0 0"),
                "a node looks at feature 1 of 1");
    one_refused(TREES, "4,3", TREE("0 1 1", BRANCH, "1 0 0", "2 0 0"), "tree 0 has two nodes 1");
    one_refused(TREES, "4,3", TREE("0 1 2", BRANCH, "1 0 0", "3 0 0"), "tree 0 has no node 3");
    one_refused(TREES, "4,3", TREE("0 1 2", BRANCH, "1 0 0", "1 0 0"), "reached twice");
    one_refused(TREES, "4,3", TREE("0 1 2", BRANCH, "0 0 0", "0 0 0"), "leads to itself");
    one_refused(TREES, "4,3", TREE("0 1 2", "BRANCH_LEQ BRANCH_LEQ LEAF", "1 0 0", "2 2 0"),
                "not reached from a root");
    one_refused(TREES, "4,3", TREE("0 1 2", "BRANCH_LEQ BRANCH_LT LEAF", "1 2 0", "2 2 0"),
                "do not all compare in one way");
    one_refused(TREES, "4,3", TREE("0 1 2", "BRANCH_LEQ LEAF", "1 0 0", "2 0 0"),
                "'nodes_modes' does not have 3 entries");
    one_refused(TREES, "4,3", TREE("0 1 2", BRANCH, "1 0 0", "2 0 0") ",n_targets:0",
                "'n_targets' is 0");
    one_refused(TREES, "4,3", TREE("0 1 2", BRANCH, "1 0 0", "2 0 0") ",aggregate_function'LAST",
                "'aggregate_function' is 'LAST', expected AVERAGE, SUM, MIN or MAX");
    one_refused(TREES, "4,3", TREE("0 1 2", BRANCH, "1 0 0", "2 0 0") ",base_values%1 2",
                "'base_values' has 2 entries, expected 1");
}

/* Forests have many nodes: the list is read as a whole. */
static void reads_long_lists(void **state) {
    (void)state;
    enum { NODES = 200000 };
    static const char name[] = "nodes_treeids=";
    char *list = malloc(sizeof name + 2 * NODES);
    assert_non_null(list);
    size_t n = sizeof name - 1;
    memcpy(list, name, n);
    for (int i = 0; i < NODES; i++, n += 2) memcpy(list + n, "0 ", 2);
    list[n - 1] = 0;
    one_refused(TREES, "4,3", list, "'nodes_nodeids' has 0 entries, expected 200000");
    free(list);
}

#define FOREST                                                                                     \
    "nodes_featureids=1,nodes_truenodeids=0,nodes_falsenodeids=1,nodes_trueleafs=1,"               \
    "nodes_falseleafs=1"

static void refuses_values(void **state) {
    (void)state;
    one_refused("ai.onnx.ml.LabelEncoder", "4", "keys_strings$a,values_int64s=1",
                "'keys_strings': strings are not supported");
    one_refused("ai.onnx.ml.LabelEncoder", "4", "keys_int64s=1 2,values_int64s=1",
                "2 keys have 1 values");
    one_refused("ai.onnx.ml.LabelEncoder", "4", "keys_int64s=1,values_int64s=1",
                "the input is f32, but the keys are i64");
    one_refused("ai.onnx.ml.LabelEncoder", "4", "keys_floats%1", "it has no values");
    one_refused("ai.onnx.ml.Imputer", "4,3", "imputed_value_floats%1 2", "2 values for 3 features");
    one_refused("ai.onnx.ml.OneHotEncoder", "4", "cats_strings$a", "strings are not supported");
    one_refused("ai.onnx.ml.OneHotEncoder", "4", NULL, "it has no categories");
    one_refused("ai.onnx.ml.FeatureVectorizer", "4,3", "inputdimensions=3 1",
                "'inputdimensions' has 2 entries for 1 inputs");
    one_refused("ai.onnx.ml.FeatureVectorizer", "4", "inputdimensions=2", "input 0 has one column");
    one_refused("ai.onnx.ml.SVMRegressor", "4,3", "kernel_type'COSINE",
                "'kernel_type' is 'COSINE'");
    one_refused("ai.onnx.ml.SVMRegressor", "4,3", "coefficients%1 2,rho%1",
                "for 0 vectors, of which it has 0");
    one_refused("ai.onnx.ml.SVMClassifier", "4,3",
                "support_vectors%1 2 3 4 5 6,vectors_per_class=1 1,classlabels_ints=0 1,"
                "coefficients%1 2,rho%1,prob_a%1 2",
                "'prob_a' and 'prob_b' have 2 and 0 entries, expected 1");
    one_refused("ai.onnx.ml.SVMClassifier", "4,3",
                "support_vectors%1 2 3 4 5 6,vectors_per_class=1 2",
                "'vectors_per_class' does not add up to 2 vectors");
    one_refused("ai.onnx.ml.TreeEnsemble", "4,3", NULL, "it has no nodes");
    one_refused("ai.onnx.ml.TreeEnsemble", "4,3", "nodes_featureids=1 2,nodes_truenodeids=0",
                "'nodes_truenodeids' has 1 entries, expected 2");
    one_refused("ai.onnx.ml.TreeEnsemble", "4,3", FOREST,
                "'nodes_splits' has 0 entries, expected 1");
}

static void refuses_two_inputs(void **state) {
    (void)state;
    static const struct {
        const char *op, *x, *w, *attributes, *expected;
    } wrong[] = {
        {"Add", "2,3", "2,4", NULL, "shapes [2,3] and [2,4] cannot be broadcast together"},
        {"MatMul", "2,3", "4,5", NULL,
         "[2,3] cannot be multiplied by [4,5]: 3 columns, but 4 rows"},
        {"MatMul", "2,2,3", "3,3,4", NULL, "cannot be broadcast"},
        {"MatMul", "1073741824,1", "1,1073741824", NULL, "too large"},
        {"Gemm", "2,3", "5,4", "transB:1", "the factors have 3 columns and 4 rows"},
        {"Gemm", "2,3,1", "5,4", NULL, "its factors are not matrices"},
        {"Conv", "1,4,5,5", "2,3,3,3", NULL, "the weights take 3 channels, but the input has 4"},
        {"Conv", "1,4,5,5", "3,2,3,3", "group:2", "2 groups do not divide 4 and 3 channels"},
        {"Conv", "1,4,5,5", "3,4,3,3", "kernel_shape=3 2",
         "'kernel_shape' is not that of the weights"},
        {"Conv", "1,4,5,5", "3,4,3", NULL, "input and weights have 4 and 3 dimensions"},
        {"Concat", "2,3", "3,3", "axis:1", "input 1 does not fit beside input 0 along axis 1"},
        {"Reshape", "2,3", "2", NULL, "input 1 ('shape') is not a constant list of integers"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct model_bytes m = {0};
        put_input(&m, "x", F32, wrong[i].x);
        put_input(&m, "w", F32, wrong[i].w);
        put_output(&m, "y", F32, NULL);
        put_node(&m, wrong[i].op, "x,w", "y", wrong[i].attributes);
        check_refused(&m, 15, wrong[i].expected);
    }
}

/* Inputs by name, each with its dimensions. */
static void several_refused(const char *op, const char *const (*input)[2], const char *names,
                            const char *attributes, const char *expected) {
    struct model_bytes m = {0};
    for (; (*input)[0]; input++) put_input(&m, (*input)[0], F32, (*input)[1]);
    put_output(&m, "y", F32, NULL);
    put_node(&m, op, names, "y", attributes);
    check_refused(&m, 23, expected);
}

static void refuses_attention(void **state) {
    (void)state;
    static const char multi[] = "com.microsoft.MultiHeadAttention";
    const char *const flat[][2] = {{"q", "2,3,8"}, {"k", "2,5,8"}, {"v", "2,5,8"}, {"w", "2,5,4"},
                                   {"u", "2,6,8"}, {"b", "24"},    {NULL}},
                      *const apart[][2] = {{"q", "2,3,4,8"}, {"k", "2,3,6,8"}, {"v", "2,3,6,5"},
                                           {"l", "2,3,2,5"}, {"p", "2,3,4,8"}, {NULL}};
    several_refused(multi, flat, "q,k,v,q", "num_heads:2", "the bias has 3 dimensions");
    several_refused(multi, flat, "q,w,v", "num_heads:2", "queries have 4 elements, but keys 2");
    several_refused(multi, flat, "q,k,u", "num_heads:2",
                    "queries, keys and values do not fit each other");
    several_refused("Attention", apart, "q,k,v,,p", NULL, "a past of keys alone");
    several_refused("Attention", apart, "q,k,v,,p,l", NULL, "the past has 4 keys, but 2 values");
    several_refused("Attention", apart, "q,k,v", "left_window_size:2",
                    "windows without 'is_causal'");
    several_refused("Attention", apart, "q,k,v", "right_window_size:0",
                    "windows without 'is_causal'");
}

static void refuses_graphs(void **state) {
    (void)state;
    struct model_bytes m = {0};
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "z", "y", NULL);
    put_node(&m, "Relu", "y", "z", NULL);
    check_refused(
        &m, 15,
        "input 'z' is made by node 1, which comes later: the graph has a cycle or is not in order");
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "y", "y", NULL);
    check_refused(&m, 15, "input 'y' is its own result");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "q", "y", NULL);
    check_refused(&m, 15, "input 'q' is made by nothing in the graph");
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "x", "y", NULL);
    put_node(&m, "Exp", "x", "y", NULL);
    check_refused(&m, 15, "node 1 (Exp, opset 15): its result 'y' has the name of another value");
    put_input(&m, "x", F32, "2");
    check_refused(&m, 15, "the graph has no outputs");
    put_input(&m, "x", F32, "2");
    put_input(&m, "x", F32, "2");
    check_refused(&m, 15, "two inputs are named 'x'");
    put_input(&m, "x", STRING, "2");
    put_output(&m, "y", F32, NULL);
    check_refused(&m, 15, "input 'x': the type STRING is not supported");
    put_output(&m, "y", F32, NULL);
    check_refused(&m, 15, "output 'y' is made by nothing");
    put_input(&m, "x", F32, "2,3");
    put_output(&m, "y", I8, NULL);
    put_node(&m, "Relu", "x", "y", NULL);
    check_refused(&m, 15, "its result 'y' is f32, but");
}

/* All that is missing is told at once. */
static void counts_missing_operators(void **state) {
    (void)state;
    struct model_bytes m = {0};
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Bernoulli", "x", "a", NULL);
    put_node(&m, "Multinomial", "a", "b", NULL);
    put_node(&m, "Bernoulli", "b", "y", NULL);
    check_refused(&m, 15,
                  "2 operators of the model are not supported: Bernoulli in 2 nodes, "
                  "Multinomial in 1 node");
    put_input(&m, "x", F32, "2");
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Bernoulli", "x", "a", NULL);
    put_node(&m, "Bernoulli", "a", "y", NULL);
    check_refused(&m, 15,
                  "node 1 (Bernoulli, opset 15): this operator, in 2 nodes, is not supported");
}

static void refuses_tensors(void **state) {
    (void)state;
    struct model_bytes m = {0};
    float data[4] = {0};
    put_initialiser(&m, "w", F32, 1, (int64_t[]){5}, data, sizeof data);
    check_refused(&m, 15, "initialiser 'w': it has 16 bytes of data, but 5 elements of f32 are 20");
    put_initialiser(&m, "w", F32, 2, (int64_t[]){INT64_C(1) << 40, INT64_C(1) << 40}, data,
                    sizeof data);
    check_refused(&m, 15, "is negative or too large");
    put_initialiser(&m, "w", STRING, 1, (int64_t[]){1}, data, 1);
    put_output(&m, "w", STRING, NULL);
    check_refused(&m, 15, "the type STRING is not supported");
    put_initialiser(&m, "w", 22, 1, (int64_t[]){5}, data, 4);
    check_refused(&m, 15, "initialiser 'w': it has 4 bytes of data, but 5 elements of i8 are 3");
    put_initialiser(&m, "w", 22, 1, (int64_t[]){5}, data, 3);
    put_output(&m, "y", F32, NULL);
    put_node(&m, "Relu", "w", "y", NULL);
    check_refused(&m, 15, "input 0 is of integers of 4 bits, which this operator does not take");
    put_initialiser(&m, "w", 17, 1, (int64_t[]){1}, data, 1);
    put_node(&m, "Relu", "w", "y", NULL);
    check_refused(&m, 15, "the type FLOAT8E4M3FN is not supported");
    put_initialiser(&m, "w", 77, 1, (int64_t[]){1}, data, 1);
    check_refused(&m, 15, "unknown type 77");
    put_initialiser(&m, "w", F32, 1, (int64_t[]){1000000000}, "", 0);
    check_refused(&m, 15, "it has 0 values, but its shape has 1000000000 elements");
    put_initialiser(&m, "w", F32, 1, (int64_t[]){4}, data, 16);
    put_initialiser(&m, "w", F32, 1, (int64_t[]){4}, data, 16);
    check_refused(&m, 15, "two initialisers are named 'w'");
    int64_t ones[17];
    for (int d = 0; d < 17; d++) ones[d] = 1;
    put_initialiser(&m, "w", F32, 17, ones, data, 4);
    check_refused(&m, 15, "more than 16 dimensions");
}

static void check_bytes(const char *bytes, size_t n, const char *expected) {
    struct diags d;
    diags_init(&d);
    assert_null(onnx_parse("m.onnx", bytes, n, NULL, NULL, &d));
    assert_int_equal(d.errors, 1);
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    diags_free(&d);
}

static void refuses_bytes(void **state) {
    (void)state;
    check_bytes("", 0, "the file is empty");
    check_bytes("hello, world", 12, "byte 3: not a field of protobuf");
    check_bytes("\x3a\x7f", 2, "byte 1: this field is longer than what holds it");
    check_bytes("\x08", 1, "byte 1: the model ends inside a number");
    check_bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12,
                "byte 1: a number of more than ten bytes");
    check_bytes("\x3d\x01\x01\x01\x01", 5, "byte 1: this field has the wrong kind");
    check_bytes("\x08\x08", 2, "the model has no graph");
    struct text deep = {0}; /* attribute of a node of a graph of an attribute … */
    for (int i = 0; i < 198; i++) {
        struct text outer = {0};
        put_message(&outer, i % 3 == 0 ? 6 : i % 3 == 1 ? 5 : 1, &deep);
        deep = outer;
    }
    struct text model = {0};
    put_message(&model, 7, &deep);
    check_bytes(model.at, model.n, "messages are nested more than 64 deep");
    text_free(&model);
}

static void dims_must_fit(void **state) {
    (void)state;
    struct diags d;
    struct binding given[2] = {{"N", 4}, {"M", 5}};
    diags_init(&d);
    struct model_bytes m = one_node("Relu", "N,3", NULL);
    assert_null(parse(&m, 15, &(struct bindings){given, 2, NULL}, &d));
    assert_string_equal(d.at[0].text, "no input has the name 'M', or a dimension of that name");
    m = one_node("Relu", "N,3", NULL);
    given[0].value = -1;
    assert_null(parse(&m, 15, &(struct bindings){given, 1, NULL}, &d));
    assert_string_equal(d.at[1].text, "'N' is -1, but a dimension is at least 0");
    diags_free(&d);
}

static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void put_external(struct model_bytes *m, const char *location, const char *offset,
                         const char *length) {
    const char *pairs[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    struct text t = {0}, pair = {0};
    put_number(&t, 1, 3);
    put_number(&t, 2, F32);
    put_string(&t, 8, "w");
    for (int k = 0; k < 3; k++) {
        if (!pairs[k][1]) continue;
        put_string(&pair, 1, pairs[k][0]);
        put_string(&pair, 2, pairs[k][1]);
        put_message(&t, 13, &pair);
    }
    put_number(&t, 14, 1);
    put_message(&m->graph, 5, &t);
    put_input(m, "x", F32, "3");
    put_output(m, "y", F32, "3");
    put_node(m, "Mul", "x,w", "y", NULL);
}

static void external_refused(const char *folder, const char *location, const char *offset,
                             const char *length, const char *expected) {
    struct diags d;
    struct model_bytes m = {0};
    char path[200];
    diags_init(&d);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    put_external(&m, location, offset, length);
    struct text bytes = model_finish(&m, 15);
    assert_null(onnx_parse(path, bytes.at, bytes.n, NULL, NULL, &d));
    if (!strstr(d.at[0].text, expected)) fail_msg("'%s' has no '%s'", d.at[0].text, expected);
    text_free(&bytes);
    diags_free(&d);
}

static void external_data(void **state) {
    (void)state;
    char root[] = "/tmp/isamap-onnx-XXXXXX", folder[100], path[200];
    float w[4] = {9, 2, 3, 4}, x[3] = {1, 10, 100}, y[3];
    struct diags d;
    struct model_bytes m = {0};
    assert_non_null(mkdtemp(root));
    snprintf(folder, sizeof folder, "%s/model", root);
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/outside.bin", root);
    write_file(path, w, sizeof w);
    snprintf(path, sizeof path, "%s/link.bin", folder);
    assert_int_equal(symlink("../outside.bin", path), 0);
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_file(path, w, sizeof w);
    external_refused(folder, "../outside.bin", NULL, NULL, "not inside the model's folder");
    external_refused(folder, "a/../../outside.bin", NULL, NULL, "not inside the model's folder");
    external_refused(folder, "/etc/passwd", NULL, NULL, "not inside the model's folder");
    external_refused(folder, "link.bin", NULL, NULL, "leads out of the model's folder");
    external_refused(folder, ".", NULL, NULL, "data file");
    external_refused(folder, "none.bin", NULL, NULL, "cannot be found");
    external_refused(folder, NULL, NULL, NULL, "have no location");
    external_refused(folder, "w.bin", "8", NULL, "reach past the end");
    external_refused(folder, "w.bin", "-4", NULL,
                     "the offset of its external data is not a number");
    external_refused(folder, "w.bin", "9223372036854775807", "12", "reach past the end");
    external_refused(folder, "w.bin", "4", "16",
                     "it has 16 bytes of external data, but 3 elements of f32 are 12");
    diags_init(&d);
    put_external(&m, "w.bin", "4", "12");
    struct text bytes = model_finish(&m, 15);
    char model_path[200];
    snprintf(model_path, sizeof model_path, "%s/m.onnx", folder);
    write_file(model_path, bytes.at, bytes.n);
    struct onnx_model *model = onnx_load(model_path, NULL, NULL, &d);
    assert_non_null(model);
    run_one(model, x, y, &d);
    for (int i = 0; i < 3; i++) assert_float_equal(y[i], x[i] * w[i + 1], 0);
    onnx_free(model);
    text_free(&bytes);
    diags_free(&d);
    unlink(model_path);
    unlink(path);
    snprintf(path, sizeof path, "%s/link.bin", folder);
    unlink(path);
    rmdir(folder);
    snprintf(path, sizeof path, "%s/outside.bin", root);
    unlink(path);
    rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_operators),  cmocka_unit_test(refuses_trees),
        cmocka_unit_test(reads_long_lists),   cmocka_unit_test(refuses_values),
        cmocka_unit_test(refuses_two_inputs), cmocka_unit_test(refuses_attention),
        cmocka_unit_test(refuses_graphs),     cmocka_unit_test(counts_missing_operators),
        cmocka_unit_test(refuses_tensors),    cmocka_unit_test(refuses_bytes),
        cmocka_unit_test(dims_must_fit),      cmocka_unit_test(external_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
    return 0; /* onnx_import.c has what is said then */
}
#endif
