#include "report.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void report_init(struct report *r) {
    memset(r, 0, sizeof *r);
    arena_init(&r->arena);
    text_append(&r->text, "", 0);
    text_append(&r->json, "", 0);
}

void report_free(struct report *r) {
    arena_free(&r->arena);
    text_free(&r->text);
    text_free(&r->json);
}

static void quoted(struct text *t, const char *s) {
    text_append(t, "\"", 1);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else if (c == '\n')
            text_append(t, "\\n", 2);
        else if (c < 0x20)
            text_printf(t, "\\u%04x", c);
        else
            text_append(t, s, 1);
    }
    text_append(t, "\"", 1);
}

/* Comma, indentation and key of the next member; returns its path. */
static const char *begin(struct report *r, const char *key) {
    if (r->depth == 0) return "";
    int d = r->depth - 1;
    text_printf(&r->json, "%s\n%*s", r->first[d] ? "" : ",", 2 * r->depth, "");
    r->first[d] = false;
    char number[16];
    if (r->is_list[d]) {
        snprintf(number, sizeof number, "%d", r->index[d]++);
        key = number;
    } else {
        assert(key);
        quoted(&r->json, key);
        text_append(&r->json, ": ", 2);
    }
    return arena_printf(&r->arena, "%s%s", r->path, key);
}

static struct entry *note(struct report *r, const char *path) {
    if (r->nentries == r->cap) GROW(&r->arena, r->entry, r->nentries, r->cap);
    struct entry *e = &r->entry[r->nentries++];
    e->path = path;
    return e;
}

void report_open(struct report *r, const char *key, char bracket) {
    const char *path = begin(r, key);
    assert(r->depth < 16);
    r->path_n[r->depth] = strlen(r->path);
    if (*path) snprintf(r->path, sizeof r->path, "%s.", path);
    r->first[r->depth] = true;
    r->is_list[r->depth] = bracket == '[';
    r->index[r->depth] = 0;
    r->depth++;
    text_append(&r->json, &bracket, 1);
}

void report_close(struct report *r) {
    assert(r->depth > 0);
    r->depth--;
    r->path[r->path_n[r->depth]] = 0;
    if (!r->first[r->depth]) text_printf(&r->json, "\n%*s", 2 * r->depth, "");
    text_append(&r->json, r->is_list[r->depth] ? "]" : "}", 1);
    if (r->depth == 0) text_append(&r->json, "\n", 1);
}

void report_number(struct report *r, const char *key, double v) {
    const char *path = begin(r, key);
    if (isfinite(v))
        text_printf(&r->json, "%.12g", v);
    else
        text_append(&r->json, "null", 4);
    struct entry *e = note(r, path);
    e->is_number = true;
    e->number = v;
}

void report_integer(struct report *r, const char *key, int64_t v) {
    const char *path = begin(r, key);
    text_printf(&r->json, "%lld", (long long)v);
    struct entry *e = note(r, path);
    e->is_number = true;
    e->number = (double)v;
}

void report_bool(struct report *r, const char *key, bool v) {
    const char *path = begin(r, key);
    text_printf(&r->json, "%s", v ? "true" : "false");
    struct entry *e = note(r, path);
    e->is_number = true;
    e->number = v;
}

void report_string(struct report *r, const char *key, const char *v) {
    const char *path = begin(r, key);
    quoted(&r->json, v);
    note(r, path)->string = arena_strdup(&r->arena, v);
}

double report_get(const struct report *r, const char *path) {
    for (int i = 0; i < r->nentries; i++)
        if (r->entry[i].is_number && strcmp(r->entry[i].path, path) == 0) return r->entry[i].number;
    return NAN;
}

const char *report_key(const struct report *r, const char *path, int i) {
    size_t n = strlen(path);
    for (int k = 0; k < r->nentries; k++)
        if (strncmp(r->entry[k].path, path, n) == 0 && r->entry[k].path[n] == '.' && i-- == 0)
            return r->entry[k].path + n + 1;
    return NULL;
}
