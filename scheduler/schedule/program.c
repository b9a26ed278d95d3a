/* A program inside a schedule's text: `{ kernel }`. */
#include "scheduler/schedule/lex.h"
#include "scheduler/schedule/schedule_int.h"
#include "ir/kernel.h"
#include "ir/parser.h"

#include <string.h>

/* The program stands between braces; its own text is read by the IR's parser. */
struct program *read_program_of(struct reader *r, const char *word) {
    if (!read_expect(r, word)) return NULL;
    if (!read_at(r, "{")) {
        read_expect(r, "{");
        return NULL;
    }
    const struct source *s = r->source;
    size_t start = r->word.end, at = start;
    for (int depth = 1; at < s->length; at++) {
        if (s->text[at] == '#')
            while (at + 1 < s->length && s->text[at + 1] != '\n') at++;
        depth += (s->text[at] == '{') - (s->text[at] == '}');
        if (depth == 0) break;
    }
    if (at >= s->length) {
        read_fail(r, r->word.at, "the program's '{' has no '}'");
        return NULL;
    }
    struct source *inner = arena_alloc(r->arena, sizeof *inner);
    inner->file = s->file;
    inner->text = arena_strndup(r->arena, s->text + start, at - start);
    inner->length = at - start;
    source_place(s, start, &inner->line0, &inner->col0);
    struct kernel **kernel;
    int n = kernel_parse(r->arena, inner, &kernel, r->diags);
    if (n >= 0 && n != 1) read_fail(r, start, "%d kernels, expected 1", n);
    struct program *p = n == 1 ? program_bind_sizes(kernel[0], NULL, NULL, r->diags) : NULL;
    if (!p) r->failed = true;
    r->word.end = at + 1;
    read_advance(r);
    return p;
}

void print_program_block(const struct program *p, int indent, struct text *out) {
    struct text text = {0};
    program_print(p, &text);
    text_printf(out, "{\n");
    for (const char *line = text.at, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        text_printf(out, "%*s", indent + 2, "");
        text_append(out, line, (size_t)(end - line));
    }
    text_printf(out, "%*s}\n", indent, "");
    text_free(&text);
}
