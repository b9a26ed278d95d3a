/* From what the nodes were lowered to, declarations and statements, to a program. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <inttypes.h>
#include <string.h>

char *kernel_text(struct import *im, const char *name) {
    struct text t = {0};
    struct name_table none = {0}, used = im->used;
    im->used = none; /* the kernel's name is in a scope of its own */
    text_printf(&t, "kernel %s() {\n", name_unique(im, name));
    im->used = used;
    const struct text *parts[] = {&im->ins, &im->consts, &im->outs, &im->temps};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i]->n) text_append(&t, parts[i]->at, parts[i]->n);
    for (int i = 0; i < im->naxes; i++)
        text_printf(&t, "%s%s: %" PRId64 "%s", i % 8 ? ", " : "  axes  ", im->axis[i].name,
                    im->axis[i].extent, i % 8 == 7 || i == im->naxes - 1 ? "\n" : "");
    if (im->first.n) text_append(&t, im->first.at, im->first.n);
    if (im->body.n) text_append(&t, im->body.at, im->body.n);
    text_printf(&t, "}\n");
    char *copy = arena_strdup(im->arena, t.at);
    text_free(&t);
    return copy;
}

struct program *kernel_program(struct import *im, const char *text, const struct bindings *outer,
                               struct source *source, struct kernel **kernel, const void ***data) {
    struct kernel **kernels;
    struct bindings none = {.outer = outer};
    *source = (struct source){
        .file = arena_strdup(im->arena, im->path), .text = text, .length = strlen(text)};
    if (kernel_parse(im->arena, source, &kernels, im->diags) != 1) return NULL;
    *kernel = kernels[0];
    struct program *p = program_bind(*kernel, &none, outer, im->diags);
    if (!p) return NULL;
    *data = arena_array(im->arena, (size_t)p->nbuffers, sizeof **data);
    for (int i = 0; i < im->nconstants; i++)
        (*data)[program_buffer(p, im->constant[i].buffer)] = im->constant[i].data;
    return p;
}

void import_free(struct import *im) {
    struct text *texts[] = {&im->ins, &im->outs, &im->consts, &im->temps, &im->first, &im->body};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) text_free(texts[i]);
}
#endif
