/* Models with small damages: an attribute, an input, a type, a dimension or a version is another or
 * is missing; and with two of them, for much depends on what stands beside it. What is refused,
 * with which words, and the kernels and weights of those that are read. Kept in
 * tests/data/golden/onnx_damaged.txt. */
#include "onnx/onnx.h"
#include "tests/damage.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx.pb-c.h"

enum { MOST_BYTES = 1 << 16, NO_TYPE = 99, EVERY_FIRST = 2, EVERY_SECOND = 29 };

struct patient {
    struct damaged *d;
    Onnx__ModelProto *model;
    int alone;        /* damages by themselves so far */
    bool damaged;     /* a second damage is sought beside one of them */
    int second, turn; /* how many were met, and which of them is taken */
};

static void damage_model(struct patient *p);

/* Weights too: what constants alone decide is folded into them. */
static const char *meaning(struct damaged *d, const struct onnx_model *m) {
    uint32_t hash = GOLDEN_HASH;
    for (int b = 0; b < m->program->nbuffers; b++) {
        const struct buffer *x = &m->program->buffer[b];
        size_t n = (size_t)x->elements * type_size(x->type);
        const uint8_t *byte = m->data[b];
        for (size_t k = 0; byte && k < n; k++) hash = (hash ^ byte[k]) * 16777619u;
    }
    return arena_printf(&d->arena, "%08x %s", hash, m->text);
}

static void read_model(struct patient *p) {
    static uint8_t bytes[MOST_BYTES];
    struct damaged *d = p->d;
    size_t n = onnx__model_proto__get_packed_size(p->model);
    struct diags said;
    assert_true(n <= sizeof bytes);
    onnx__model_proto__pack(p->model, bytes);
    diags_init(&said);
    d->tried++;
    struct onnx_model *m = onnx_parse("m.onnx", bytes, n, NULL, NULL, &said);
    damage_diags(d, &said);
    if (m) damage_said(d, "read", meaning(d, m));
    onnx_free(m);
    diags_free(&said);
}

/* The model as it stands now; and beside some of the damages one or two more, others each time. */
static void try_model(struct patient *p) {
    if (p->damaged) {
        if (p->second++ % EVERY_SECOND == p->turn) read_model(p);
        return;
    }
    read_model(p);
    if (++p->alone % EVERY_FIRST) return;
    p->damaged = true;
    p->second = 0;
    p->turn = p->alone / EVERY_FIRST * 7 % EVERY_SECOND;
    damage_model(p);
    p->damaged = false;
}

static void with_number(struct patient *p, int64_t *at, int64_t value) {
    int64_t was = *at;
    if (was == value) return;
    *at = value;
    try_model(p);
    *at = was;
}

static void with_type(struct patient *p, int32_t *at, int32_t value) {
    int32_t was = *at;
    if (was == value) return;
    *at = value;
    try_model(p);
    *at = was;
}

static void with_text(struct patient *p, char **at, char *value) {
    char *was = *at;
    *at = value;
    try_model(p);
    *at = was;
}

/* The last ones are missing. */
static void with_fewer(struct patient *p, size_t *n, size_t fewer) {
    size_t was = *n;
    if (was < fewer) return;
    *n -= fewer;
    try_model(p);
    *n = was;
}

static void damage_attribute(struct patient *p, Onnx__AttributeProto *a) {
    static uint8_t wrong[] = "WRONG";
    ProtobufCBinaryData was = a->s;
    with_text(p, &a->name, "unheard_of");
    if (a->has_i) {
        with_number(p, &a->i, a->i + 1);
        with_number(p, &a->i, a->i - 1);
        with_number(p, &a->i, !a->i);
        with_number(p, &a->i, -9);
        with_number(p, &a->i, 1LL << 40);
    }
    if (a->has_f) {
        float f = a->f;
        a->f = -f - 1;
        try_model(p);
        a->f = f;
    }
    for (size_t k = 0; k < a->n_ints && k < 2; k++) {
        with_number(p, &a->ints[k], a->ints[k] + 1);
        with_number(p, &a->ints[k], -7);
    }
    with_fewer(p, &a->n_ints, 1);
    with_fewer(p, &a->n_floats, 1);
    if (a->has_s) {
        a->s = (ProtobufCBinaryData){5, wrong};
        try_model(p);
        a->s = was;
    }
    Onnx__AttributeProto__AttributeType type = a->type;
    a->type = type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
                  ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
                  : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    try_model(p);
    a->type = type;
}

static void damage_node(struct patient *p, Onnx__NodeProto *n) {
    with_text(p, &n->op_type, "Nonsense");
    with_text(p, &n->domain, "elsewhere");
    with_fewer(p, &n->n_input, 1);
    with_fewer(p, &n->n_attribute, 1);
    with_fewer(p, &n->n_output, 1);
    for (size_t k = 0; k < n->n_input; k++) {
        with_text(p, &n->input[k], "");
        with_text(p, &n->input[k], n->input[(k + 1) % n->n_input]);
        with_text(p, &n->input[k], "nowhere");
    }
    for (size_t k = 0; k < n->n_attribute; k++) damage_attribute(p, n->attribute[k]);
}

static void damage_value(struct patient *p, Onnx__ValueInfoProto *v) {
    static const int32_t types[] = {1, 2, 3, 6, 7, 8, 9, 10, 11, 16, NO_TYPE};
    if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return;
    Onnx__TypeProto__Tensor *t = v->type->tensor_type;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) with_type(p, &t->elem_type, types[k]);
    Onnx__TensorShapeProto *shape = t->shape;
    for (size_t k = 0; shape && k < shape->n_dim; k++) {
        if (shape->dim[k]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            continue;
        with_number(p, &shape->dim[k]->dim_value, shape->dim[k]->dim_value + 1);
        with_number(p, &shape->dim[k]->dim_value, 1);
        with_number(p, &shape->dim[k]->dim_value, 0);
    }
    if (shape) with_fewer(p, &shape->n_dim, 1);
    t->shape = NULL;
    try_model(p);
    t->shape = shape;
}

static void damage_tensor(struct patient *p, Onnx__TensorProto *t) {
    static const int32_t types[] = {1, 7, NO_TYPE};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) with_type(p, &t->data_type, types[k]);
    for (size_t k = 0; k < t->n_dims; k++) with_number(p, &t->dims[k], t->dims[k] + 1);
    with_fewer(p, &t->n_dims, 1);
}

static void damage_model(struct patient *p) {
    static const int64_t version[] = {1, 6, 7, 9, 10, 11, 12, 13, 14, 17, 18, 19, 21, 23, 99};
    Onnx__GraphProto *g = p->model->graph;
    try_model(p);
    for (size_t o = 0; o < p->model->n_opset_import; o++)
        for (size_t k = 0; k < sizeof version / sizeof *version; k++)
            with_number(p, &p->model->opset_import[o]->version, version[k]);
    with_fewer(p, &g->n_node, 1);
    with_fewer(p, &g->n_initializer, 1);
    for (size_t k = 0; k < g->n_node && k < 6; k++) damage_node(p, g->node[k]);
    for (size_t k = 0; k < g->n_input; k++) damage_value(p, g->input[k]);
    for (size_t k = 0; k < g->n_initializer; k++) damage_tensor(p, g->initializer[k]);
}

static void damage_file(void *user, const char *path) {
    struct patient *p = user;
    struct arena arena;
    struct diags said;
    size_t n;
    arena_init(&arena);
    diags_init(&said);
    const char *bytes = file_read(&arena, path, MOST_BYTES / 2, &n, &said);
    assert_non_null(bytes);
    p->model = onnx__model_proto__unpack(NULL, n, (const uint8_t *)bytes);
    assert_non_null(p->model);
    damage_model(p);
    onnx__model_proto__free_unpacked(p->model, NULL);
    diags_free(&said);
    arena_free(&arena);
}

static void damaged_models(void **state) {
    struct text seen = {0};
    struct patient p = {.d = damage_open()};
    (void)state;
    damage_files("onnx_damaged", damage_file, &p);
    damage_close(p.d, "models", &seen);
    golden_check("onnx_damaged", &seen);
}
#else
static void damaged_models(void **state) {
    (void)state;
    print_message("isamap was built without protobuf-c\n");
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
