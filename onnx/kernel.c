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

void kernel_node(struct import *im) {
    GROW(im->arena, im->origin, im->norigins, im->origin_cap);
    im->origin[im->norigins++] = (struct import_origin){
        {im->body.n, im->first.n},
        arena_printf(im->arena, "%s (%s)", node_shown(im),
                     name_shown(im->arena, im->node->op_type ? im->node->op_type : ""))};
}

/* The nodes of the statements in one of the texts, whose first line is `line`, by lines. */
static void lines_from(const struct import *im, const char **name, int line,
                       const struct text *part, bool ahead) {
    int at = -1;
    for (size_t k = 0; k < part->n; k++) {
        if (k && part->at[k - 1] != '\n') continue;
        while (at + 1 < im->norigins &&
               (ahead ? im->origin[at + 1].from.first : im->origin[at + 1].from.body) <= k)
            at++;
        name[line++ - 1] = at < 0 ? NULL : im->origin[at].node;
    }
}

static int lines_of(const char *text, size_t n) {
    int lines = 0;
    for (size_t k = 0; k < n; k++) lines += text[k] == '\n';
    return lines;
}

/* Statements are the last lines of the text but one: `first`, then `body`. */
static void name_lines(struct import *im, const char *text) {
    int lines = lines_of(text, strlen(text)), body = lines - lines_of(im->body.at, im->body.n),
        first = body - lines_of(im->first.at, im->first.n);
    const char **name = arena_array(im->arena, (size_t)lines + 1, sizeof *name);
    lines_from(im, name, first, &im->first, true);
    lines_from(im, name, body, &im->body, false);
    diags_origin(im->diags, im->path, name, lines);
}

struct program *kernel_program(struct import *im, const char *text, const struct bindings *outer,
                               struct source *source, struct kernel **kernel, const void ***data) {
    struct kernel **kernels;
    struct bindings none = {.outer = outer};
    *source = (struct source){
        .file = arena_strdup(im->arena, im->path), .text = text, .length = strlen(text)};
    name_lines(im, text);
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
