/* Equal kernels are written once: layers of a network often differ only in the arrays that they are
 * given. What a body uses and does not declare becomes its parameters; two kernels whose texts are
 * equal once names are numbered as they come are one. */
#include "backends/cuda/cuda_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A place, a variable, a slot or an object of a state by its name in the text: p_3, v3, s_3, o_3.
 */
struct name {
    const char *at;
    size_t n;
    char kind; /* 0: another word */
    int number;
};

static bool of_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static struct name word_at(const char *at) {
    struct name x = {.at = at};
    while (of_word(at[x.n])) x.n++;
    size_t head = at[0] == 'v' ? 1 : 2;
    if (!strchr("pvso", at[0]) || x.n <= head || (head == 2 && at[1] != '_')) return x;
    for (size_t i = head; i < x.n; i++)
        if (!isdigit((unsigned char)at[i])) return x;
    x.kind = at[0];
    x.number = atoi(at + head);
    return x;
}

/* The next piece of the text: a comment, a word, or one character; returns where it ends. */
static const char *piece(const char *at, bool *comment, struct name *word) {
    const char *end = strncmp(at, "/*", 2) == 0 ? strstr(at, "*/") : NULL;
    *comment = end != NULL;
    *word = (struct name){0};
    if (end) return end + 2;
    if (!of_word(*at)) return at + 1;
    *word = word_at(at);
    return at + word->n;
}

static int known(const struct given *list, int n, const struct name *word) {
    int k = 0;
    while (k < n && (list[k].kind != word->kind || list[k].number != word->number)) k++;
    return k;
}

/* All of them, in the order in which they come. */
static struct given *names_of(struct arena *a, const char *text, int *n) {
    struct given *list = NULL;
    int cap = 0;
    bool comment;
    struct name word;
    *n = 0;
    for (const char *at = text; *at;) {
        at = piece(at, &comment, &word);
        if (!word.kind || known(list, *n, &word) < *n) continue;
        GROW(a, list, *n, cap);
        list[(*n)++] = (struct given){word.kind, word.number};
    }
    return list;
}

/* The text with these names numbered from 0. */
static void renamed(struct text *out, const char *text, const struct given *list, int n,
                    bool comments) {
    bool comment;
    struct name word;
    for (const char *at = text, *next; *at; at = next) {
        next = piece(at, &comment, &word);
        if (word.kind)
            text_printf(out, "%c%s%d", word.kind, word.kind == 'v' ? "" : "_",
                        known(list, n, &word));
        else if (comments || !comment)
            text_append(out, at, (size_t)(next - at));
    }
}

static const char *kept(struct cuda *c, struct text *t) {
    const char *text = arena_strdup(&c->g.arena, t->at ? t->at : "");
    text_free(t);
    return text;
}

/* The host has it: a home's address, a size or the variable of a loop around, the slot of a home
 * that the host turns. */
static bool from_host(const struct cuda *c, const struct given *x) {
    if (x->kind == 'p') return !c->inside[x->number];
    if (x->kind == 'o') return true;
    const int *list = x->kind == 'v' ? c->scope : c->turning;
    int n = x->kind == 'v' ? c->nscope : c->nturning;
    for (int k = 0; k < n; k++)
        if (list[k] == x->number) return true;
    return false;
}

static const char *parameters(struct cuda *c, const struct given *list, int n) {
    struct text t = {0};
    int given = 0;
    for (int k = 0; k < n; k++) {
        if (!from_host(c, &list[k])) continue;
        const char *type = list[k].kind == 'p' ? "unsigned char *const" : "const int64_t";
        if (list[k].kind == 'o')
            type = arena_printf(&c->g.arena, "const __grid_constant__ %s",
                                cuda_object_type(c, list[k].number));
        text_printf(&t, "%s%s %c%s%d", given++ ? ", " : "", type, list[k].kind,
                    list[k].kind == 'v' ? "" : "_", k);
    }
    return kept(c, &t);
}

int cuda_write_kernel(struct cuda *c, const char *bounds, const char *body,
                      const struct given **given, int *ngiven) {
    struct arena *a = &c->g.arena;
    struct text key = {0};
    int n;
    struct given *list = names_of(a, body, &n);
    text_printf(&key, "%s(%s)", bounds, parameters(c, list, n));
    renamed(&key, body, list, n, false);
    const char *same = kept(c, &key), *head = parameters(c, list, n);
    *ngiven = 0;
    struct given *from = arena_array(a, (size_t)n + 1, sizeof *from);
    for (int k = 0; k < n; k++)
        if (from_host(c, &list[k])) from[(*ngiven)++] = list[k];
    *given = from;
    int k = 0;
    while (k < c->nkernels && strcmp(c->use[k].text, same) != 0) k++;
    if (k < c->nkernels) return k;
    const char *name = arena_printf(a, "%s_%d", c->g.interface->name, c->nkernels);
    text_printf(&c->kernels, "extern \"C\" __global__ void %s %s(%s) {\n", bounds, name, head);
    renamed(&c->kernels, body, list, n, true);
    text_printf(&c->kernels, "}\n\n");
    GROW(a, c->use, c->nkernels, c->cap_kernels);
    c->use[c->nkernels++] = (struct kernel_use){.name = name, .text = same};
    return k;
}
