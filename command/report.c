#include "command/report.h"

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

/* Bytes of the UTF-8 character that begins here; 0: none does (RFC 3629). */
static size_t character(const char *s) {
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : c >= 0xe0 && c < 0xf0 ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    unsigned char second = n > 1 ? (unsigned char)s[1] : 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80) return 0;
    bool outside = (c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
                   (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f);
    return outside ? 0 : n;
}

static void quoted(struct text *t, const char *s) {
    text_append(t, "\"", 1);
    while (*s) {
        unsigned char c = (unsigned char)*s;
        size_t n = character(s);
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else if (c == '\n')
            text_append(t, "\\n", 2);
        else if (c < 0x20)
            text_printf(t, "\\u%04x", c);
        else if (n == 0)
            text_append(t, "\\ufffd", 6);
        else
            text_append(t, s, n);
        s += n ? n : 1;
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

void report_reopen(struct report *r) {
    bool finished = r->depth == 0 && r->json.n > 2;
    if (!finished) {
        text_free(&r->json);
        r->nentries = r->depth = 0;
        r->path[0] = 0;
        report_open(r, NULL, '{');
        return;
    }
    r->json.n -= 2; /* "}\n", and the end of the last line before it */
    bool empty = r->json.at[r->json.n - 1] == '{';
    if (!empty) r->json.n--;
    r->json.at[r->json.n] = 0;
    r->depth = 1;
    r->first[0] = empty;
}

void report_error(struct report *r, int status, const char *error) {
    report_open(r, NULL, '{');
    report_string(r, "error", error);
    report_open(r, "messages", '[');
    report_open(r, NULL, '{');
    report_string(r, "severity", "error");
    report_string(r, "text", error);
    report_close(r);
    report_close(r);
    report_integer(r, "status", status);
    report_close(r);
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
